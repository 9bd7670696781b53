//! Addresses: the operands in brackets, and whether a named variable is in the state space that the instruction
//! accesses.

use ptx_backend::input::{Address, AddressBase, Operand, Symbol};
use ptx_isa::{
    AddressSize, Base, Class, Expected, ExpectedType, Facts, FormId, Mod, ScalarType, Space, SpecialReg,
    Target, TypeKind, Window,
};
use text_size::TextRange;

use super::brackets;
use super::operands::is_sum;
use super::textures::INDIRECT;
use super::{Context, Hidden, Statement, lints};
use crate::declare_lint;
use crate::diagnostic::{Diagnostic, Findings};

declare_lint! {
    /// An address refers to a variable in another state space than the one accessed.
    pub(super) STATE_SPACE = "E0308" "state-space", Error, since "0.1.0"
}

/// Tensor memory, where an operand may also be something other than an address.
const TENSOR: Target = Target {
    base: Base {
        window: Window::Tensor,
        variables: None,
        symbols: false,
        opaque: true,
        size: AddressSize::Any,
    },
    space: Space::Generic,
};

pub(super) fn check(ctx: &Context<'_>, statement: &Statement<'_>, out: &mut Findings) {
    let Some(rows) = statement.rows else { return };
    let compiled = ctx.gates.is_compiled();
    if statement.form.id == FormId::Cvta
        && statement.opcode.ty(0) == Some(ScalarType::U32)
        && ctx.header.address_size() == 64
        && compiled
    {
        let message = "generic addresses are 64 bits wide in this module";
        out.push(Diagnostic::new(&lints::ADDRESS, statement.name, message));
    }
    let moved = ptx_isa::moved_on(&statement.opcode).contains(ctx.gates.target);
    let operands = rows.iter().zip(statement.operands).zip(statement.ranges);
    for (index, ((row, operand), &range)) in operands.enumerate() {
        if moved && let ExpectedType::Address(target) = row.ty {
            out.extend(operand.as_ref().and_then(|operand| movable(ctx, target, operand, range)));
        }
        if operand.is_none() {
            out.extend(special_base(ctx, statement, row, moved, range));
        }
        match (operand, row.ty) {
            (Some(Operand::Address(address)), ExpectedType::Address(target)) => {
                out.extend(direction(ctx, statement.form.mnemonic(), *address, range));
                out.extend(
                    access(ctx, target, *address, range).map(|d| respaced(ctx, statement, *address, d)),
                );
                out.extend(unified(ctx, statement, index, *address, range));
                out.extend(guarded(ctx, statement, *address, range));
                if let (AddressBase::Symbol(symbol), true) = (address.base, writes(statement)) {
                    out.extend(input_parameter(ctx, symbol, range));
                }
            }
            (Some(Operand::Address(address)), ExpectedType::Integer(_)) => {
                out.extend(access(ctx, TENSOR, *address, range));
            }
            (Some(Operand::Symbol(symbol, _)), ExpectedType::Address(target)) => {
                out.extend(named(ctx, target, *symbol, range));
            }
            (
                Some(Operand::Symbol(symbol @ (Symbol::Global(_) | Symbol::Local(_) | Symbol::Param(_)), _)),
                ExpectedType::AddressOf(_, target),
            ) => {
                if row.class.intersects(Class::SYMBOL) {
                    out.extend(argument(ctx, *symbol, range));
                }
                if row.class.intersects(Class::SYMBOL) {
                    out.extend(named(ctx, target, *symbol, range));
                }
            }
            (Some(Operand::Symbol(symbol @ Symbol::Function(_), _)), ExpectedType::AddressOf(_, target))
                if statement.form.id == FormId::Cvta && row.class.intersects(Class::SYMBOL) =>
            {
                out.extend(named(ctx, target, *symbol, range));
            }
            (Some(Operand::List(parts)), _)
                if row.class.intersects(Class::TEXTURE) && is_place(statement) =>
            {
                out.extend(brackets::check(ctx, statement, row, parts, moved, range));
            }
            (Some(Operand::Label(_)), ExpectedType::Address(_)) => {
                let message = format!("expected an address, found label `{}`", ctx.slice(range));
                out.push(Diagnostic::new(&lints::ADDRESS, range, message));
            }
            (Some(Operand::Symbol(symbol, _)), ExpectedType::Typed(ty))
                if row.class.intersects(Class::SYMBOL) =>
            {
                out.extend(copied(ctx, *symbol, ty, range));
            }
            _ => {}
        }
    }
}

/// Offers to replace the state space of the instruction by that of the variable.
fn respaced(
    ctx: &Context<'_>,
    statement: &Statement<'_>,
    address: Address,
    diagnostic: Diagnostic,
) -> Diagnostic {
    if diagnostic.lint != &STATE_SPACE {
        return diagnostic;
    }
    let note = "name the state space of the variable; omit it for a generic address";
    let diagnostic = diagnostic.note(note);
    let found = match address.base {
        AddressBase::Symbol(Symbol::Param(_) | Symbol::Return(_)) => Space::Param,
        AddressBase::Symbol(symbol) => match ctx.variables.get(&symbol) {
            Some(place) => place.space,
            None => return diagnostic,
        },
        _ => return diagnostic,
    };
    let words: Vec<&str> = statement.suffixes.iter().map(|&suffix| &ctx.slice(suffix)[1..]).collect();
    let is_space = |word: &&str| Mod::parse(word).and_then(Mod::space).is_some();
    let Some(index) = words.iter().position(is_space) else { return diagnostic };
    let mut other = words;
    other[index] = found.text();
    if ptx_isa::resolve(statement.form.mnemonic(), &other).is_err() {
        return diagnostic;
    }
    let word = format!(".{}", found.text());
    diagnostic.fix(format!("change to `{word}`"), statement.suffixes[index], word)
}

/// Checks that results of a function are only written, and its parameters only read. A variable with the name of a
/// parameter or result counts as that one.
fn direction(ctx: &Context<'_>, mnemonic: &str, address: Address, range: TextRange) -> Option<Diagnostic> {
    let AddressBase::Symbol(symbol) = address.base else { return None };
    let hides = || ctx.variables.get(&symbol).and_then(|place| place.hides);
    let what = match (mnemonic, symbol) {
        ("ld", Symbol::Return(_)) => "is a return parameter of this function and can only be written",
        ("st", Symbol::Param(_)) => "is an input parameter of this function and can only be read",
        ("ld", Symbol::Local(_)) if hides() == Some(Hidden::Result) => {
            "has the same name as a return parameter of this function and can only be written"
        }
        ("st", Symbol::Local(_)) if hides() == Some(Hidden::Parameter) => {
            "has the same name as an input parameter of this function and can only be read"
        }
        _ => return None,
    };
    let message = format!("`{}` {what}", ctx.slice(range));
    Some(Diagnostic::new(&STATE_SPACE, range, message))
}

/// Checks `[a].unified`: a load through a pointer to unified memory. In instructions that do not depend on a state
/// space, or have `.global` first, ptxas reads `.unified` as the second operand.
fn unified(
    ctx: &Context<'_>,
    statement: &Statement<'_>,
    index: usize,
    address: Address,
    range: TextRange,
) -> Option<Diagnostic> {
    let is_loaded = index == 1
        && !statement.opcode.has(Mod::Tensor)
        && matches!(statement.opcode.mods().find_map(Mod::space), None | Some(Space::Global))
        && matches!(address.base, AddressBase::Reg(_));
    let message = "`.unified` is allowed only on the register address of a load from `.global`";
    (!is_loaded && ctx.slice(range).ends_with(".unified"))
        .then(|| Diagnostic::new(&lints::BAD_MODIFIER, range, message))
}

/// Checks `[%clock]`: ptxas accepts any special register as an address where it does not check the address or first
/// copies it.
fn special_base(
    ctx: &Context<'_>,
    statement: &Statement<'_>,
    row: &Expected,
    moved: bool,
    range: TextRange,
) -> Option<Diagnostic> {
    use FormId as F;
    let inner = ctx.slice(range).strip_prefix('[')?;
    let base = inner.split(['+', '-', ']']).next().unwrap_or_default().trim();
    let register = SpecialReg::parse(base)?;
    let (id, opcode) = (statement.form.id, &statement.opcode);
    let copied = moved || id == F::MultimemRed || id == F::Tcgen05Alloc && opcode.has(Mod::SharedCta);
    let fits = match row.ty {
        ExpectedType::Address(target) => {
            let asks = match target.base.window {
                Window::Tensor => true,
                Window::Unchecked => matches!(id, F::Txq | F::Suq),
                _ => target.base.variables.is_some() || !target.base.symbols,
            };
            row.class.intersects(Class::ADDRESS) && !asks && (!copied || register.ty().bits() == 64)
        }
        _ => false,
    };
    let message = || format!("`{base}` cannot be used as an address here; copy it to a register first");
    (!fits).then(|| Diagnostic::new(&lints::ADDRESS, range, message()))
}

fn access(ctx: &Context<'_>, target: Target, address: Address, range: TextRange) -> Option<Diagnostic> {
    let bad = |message: String| Some(Diagnostic::new(&lints::ADDRESS, range, message));
    match address.base {
        AddressBase::Reg(register)
            if target.base.window == Window::Unchecked && ctx.register_type(register).bits() <= 64 =>
        {
            None
        }
        AddressBase::Symbol(_) | AddressBase::Absolute if target.base.window == Window::Unchecked => None,
        AddressBase::Reg(register) => {
            let ty = ctx.register_type(register);
            let name = ctx.slice(range);
            let integer = matches!(ty.kind(), TypeKind::Bits | TypeKind::Unsigned | TypeKind::Signed);
            if target.base.window == Window::Tensor {
                let fits = match target.base.size {
                    AddressSize::Copied => ty.bits() == 32 && (integer || ty.kind() == TypeKind::Packed),
                    _ => ty == ScalarType::B32,
                };
                return match fits {
                    true => None,
                    false => bad(format!(
                        "`{name}` is `.{}`, expected a 32-bit address of tensor memory",
                        ty.text()
                    )),
                };
            }
            if !integer || ty.bits() > 64 {
                let text = ty.text();
                return bad(format!("`{name}` is `.{text}`, expected an integer address of at most 64 bits"));
            }
            if target.base.size == AddressSize::Copied && ty.bits() < 32 {
                return bad(format!(
                    "`{name}` is {} bits wide, expected a 32-bit or 64-bit address",
                    ty.bits()
                ));
            }
            let far = matches!(target.space, Space::Generic | Space::Global);
            let compiled = ctx.gates.is_compiled();
            let wrong = match target.base.size {
                AddressSize::Any | AddressSize::Copied => false,
                AddressSize::Moved => ty.bits() < 32,
                AddressSize::Module => ty.bits() == 32,
                AddressSize::Exact => {
                    let is_short = ty.bits() < 32;
                    ty.bits() == 32 || is_short && !ptx_isa::SHORT_ADDRESSES.contains(ctx.gates.target)
                }
            };
            if far && wrong && ctx.header.address_size() == 64 && compiled {
                let bits = ty.bits();
                if ctx.header.stated_address_size.is_none() && bits == 32 {
                    let message =
                        format!("`{name}` is 32 bits wide, but 32-bit addresses are no longer supported");
                    let note = "addresses have 64 bits in a module without `.address_size`";
                    return bad(message).map(|diagnostic| diagnostic.note(note));
                }
                let message = format!("`{name}` is {bits} bits wide, expected a 64-bit address");
                let note = match target.space {
                    Space::Global => "`.global` addresses have 64 bits in a module with `.address_size 64`",
                    _ => "generic addresses have 64 bits in a module with `.address_size 64`",
                };
                return bad(message).map(|diagnostic| diagnostic.note(note));
            }
            None
        }
        AddressBase::Symbol(symbol) => named(ctx, target, symbol, range),
        AddressBase::Absolute if target.space == Space::Local => None,
        AddressBase::Absolute => bad("constant addresses are allowed only in `.local`".to_owned()),
    }
}

/// Whether brackets with several parts are an address in memory; otherwise they are a texture.
fn is_place(statement: &Statement<'_>) -> bool {
    matches!(statement.form.mnemonic(), "cp" | "applypriority" | "fabric" | "createpolicy")
}

/// Checks the map in `[map, {coordinates}]`: a variable in global memory, or an address in a register.
pub(super) fn tensor_map(
    ctx: &Context<'_>,
    map: &Operand,
    moved: bool,
    range: TextRange,
) -> Option<Diagnostic> {
    const GLOBAL: Target = Target {
        base: Base {
            window: Window::In(Space::Global),
            variables: None,
            symbols: true,
            opaque: false,
            size: AddressSize::Any,
        },
        space: Space::Global,
    };
    let written = ctx.slice(range).split(',').next().unwrap_or_default();
    match map {
        Operand::Reg(register)
            if !is_sum(written) && (!moved || ctx.register_type(*register).bits() == 64) =>
        {
            None
        }
        Operand::Symbol(symbol, 0) => named(ctx, GLOBAL, *symbol, range),
        _ => Some(brackets::no_tensor(range)),
    }
}

fn movable(ctx: &Context<'_>, target: Target, operand: &Operand, range: TextRange) -> Option<Diagnostic> {
    let register = match operand {
        Operand::Address(Address { base: AddressBase::Symbol(symbol), .. }) | Operand::Symbol(symbol, _) => {
            if target.space != Space::Shared {
                return None;
            }
            let place = ctx.variables.get(symbol).filter(|place| place.ty.kind() == TypeKind::Opaque)?;
            let message =
                format!("`{}` is a `.{}`, not a variable in memory", ctx.slice(range), place.ty.text());
            return Some(Diagnostic::new(&lints::ADDRESS, range, message));
        }
        Operand::Address(Address { base: AddressBase::Reg(register), .. }) => *register,
        Operand::Reg(register) => *register,
        Operand::NotPred(register) => *register,
        _ => return None,
    };
    let ty = ctx.register_type(register);
    let integer = matches!(ty.kind(), TypeKind::Bits | TypeKind::Unsigned | TypeKind::Signed);
    let fits = ty.bits() == 64 || integer && ty.bits() == 32 && target.space == Space::Shared;
    let wanted = match target.space {
        Space::Shared => "a 64-bit address or a 32-bit integer",
        _ => "a 64-bit address",
    };
    let message = || format!("`{}` is `.{}`, expected {wanted}", ctx.slice(range), ty.text());
    (!fits).then(|| Diagnostic::new(&lints::ADDRESS, range, message()))
}

/// Whether the instruction stores to the parameters of a call.
fn writes(statement: &Statement<'_>) -> bool {
    statement.form.facts.has(Facts::WRITES) && !statement.form.facts.has(Facts::READS)
}

/// Checks that a function reads only its own parameters.
fn input_parameter(ctx: &Context<'_>, symbol: Symbol, range: TextRange) -> Option<Diagnostic> {
    let Symbol::Param(_) = symbol else { return None };
    let message =
        format!("`{}` is an input parameter of this function and cannot be written", ctx.slice(range));
    Some(Diagnostic::new(&STATE_SPACE, range, message))
}

/// Arguments and results of a call cannot be accessed by instructions with a guard.
fn guarded(
    ctx: &Context<'_>,
    statement: &Statement<'_>,
    address: Address,
    range: TextRange,
) -> Option<Diagnostic> {
    let AddressBase::Symbol(symbol) = address.base else { return None };
    let is_guarded = is_argument(ctx, symbol) && ctx.slice(statement.range).starts_with('@');
    let message = || {
        let name = ctx.slice(range);
        format!("`{name}` is an argument or a result of a call; an instruction with a guard cannot access it")
    };
    is_guarded.then(|| {
        let note = "branch around the call, or select the value before it with `selp`";
        Diagnostic::new(&lints::ADDRESS, range, message()).note(note)
    })
}

fn is_argument(ctx: &Context<'_>, symbol: Symbol) -> bool {
    matches!(symbol, Symbol::Local(_))
        && ctx.variables.get(&symbol).is_some_and(|place| place.space == Space::Param)
}

/// Arguments and results of a call have no address in the caller.
fn argument(ctx: &Context<'_>, symbol: Symbol, range: TextRange) -> Option<Diagnostic> {
    let message =
        || format!("cannot take the address of `{}`: it is an argument of a call", ctx.slice(range));
    is_argument(ctx, symbol).then(|| Diagnostic::new(&lints::ADDRESS, range, message()))
}

/// Checks the name of a variable as a value: the type must be wide enough for its address, and be a type that addresses
/// have.
fn copied(ctx: &Context<'_>, symbol: Symbol, ty: ScalarType, range: TextRange) -> Option<Diagnostic> {
    let name = ctx.slice(range);
    let bad = |message: String| Some(Diagnostic::new(&lints::ADDRESS, range, message));
    let integer = matches!(ty.kind(), TypeKind::Bits | TypeKind::Unsigned | TypeKind::Signed);
    if !integer && !matches!(symbol, Symbol::Function(_)) {
        return bad(format!("the address of `{name}` is an integer and cannot be moved as `.{}`", ty.text()));
    }
    if let Some(diagnostic) = argument(ctx, symbol, range) {
        return Some(diagnostic);
    }
    let place = ctx.variables.get(&symbol)?;
    if place.ty.kind() == TypeKind::Opaque {
        if ty != ScalarType::U64 {
            return bad(format!("the address of `{name}` must be moved as `.u64`"));
        }
        return ctx.gates.check_phrase(&INDIRECT, format!("the address of `{name}`"), range);
    }
    let compiled = ctx.gates.is_compiled();
    let cut = ty.bits() == 32 && !is_sum(name) && ctx.header.address_size() == 64;
    if place.space == Space::Global && cut && compiled {
        let message = format!("`{name}` has a 64-bit address, which does not fit in `.{}`", ty.text());
        let note = "move it to a 64-bit register with `mov.u64`";
        return Some(Diagnostic::new(&lints::ADDRESS, range, message).note(note));
    }
    None
}

fn named(ctx: &Context<'_>, target: Target, symbol: Symbol, range: TextRange) -> Option<Diagnostic> {
    let name = ctx.slice(range);
    let found = match symbol {
        Symbol::Param(_) | Symbol::Return(_) => Space::Param,
        Symbol::Function(_) => {
            let message = format!("expected a variable, found function `{name}`");
            return Some(Diagnostic::new(&lints::ADDRESS, range, message));
        }
        Symbol::Global(_) | Symbol::Local(_) => {
            let place = ctx.variables.get(&symbol)?;
            if place.ty.kind() == TypeKind::Opaque && target.base.window != Window::Tensor {
                let message = format!("`{name}` is a `.{}`, not a variable in memory", place.ty.text());
                let copied = target.base.size == AddressSize::Moved && target.space == Space::Generic;
                let taken = target.base.opaque && target.base.symbols && !copied;
                return (!taken).then(|| Diagnostic::new(&lints::ADDRESS, range, message));
            }
            place.space
        }
    };
    if !target.base.symbols || target.base.window == Window::Tensor {
        let message = format!("expected a register that holds the address, found variable `{name}`");
        return Some(Diagnostic::new(&lints::ADDRESS, range, message));
    }
    let fits = match (target.base.variables, target.space) {
        (Some(only), _) => found == only,
        (None, Space::Generic) => matches!(found, Space::Global | Space::Shared | Space::Local),
        (None, expected) => found == expected,
    };
    if fits {
        return None;
    }
    let accessed = match target.base.variables.unwrap_or(target.space) {
        Space::Generic => "generic addresses".to_owned(),
        expected => format!("`.{}`", expected.text()),
    };
    let message = format!("`{name}` is in `.{}`, but the instruction accesses {accessed}", found.text());
    Some(Diagnostic::new(&STATE_SPACE, range, message).rule())
}
