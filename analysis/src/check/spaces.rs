//! Addresses: what stands in brackets, and whether the variable that is named lies where the instruction looks.

use ptx_backend::input::{Address, AddressBase, Operand, Symbol};
use ptx_isa::{Base, ExpectedType, Space, Target, TypeKind, Window};
use text_size::TextRange;

use super::{Context, Statement, lints};
use crate::declare_lint;
use crate::diagnostic::Diagnostic;

declare_lint! {
    /// An address names a variable of another state space than the instruction's.
    pub(super) STATE_SPACE = "E0308" "state-space", Error, since "0.1.0"
}

/// Tensor memory, where an operand may be something else than an address too.
const TENSOR: Target = Target {
    base: Base { window: Window::Tensor, variables: None, opaque: true, sized: false },
    space: Space::Generic,
};

/// Code for targets below is no longer made.
const OLDEST_COMPILED: u16 = 75;

pub(super) fn check(ctx: &Context<'_>, statement: &Statement<'_>, out: &mut Vec<Diagnostic>) {
    let Some(rows) = statement.rows else { return };
    for ((row, operand), &range) in rows.iter().zip(statement.operands).zip(statement.ranges) {
        match (operand, row.ty) {
            (Some(Operand::Address(address)), ExpectedType::Address(target)) => {
                out.extend(direction(ctx, statement.form.mnemonic(), *address, range));
                out.extend(access(ctx, target, *address, range));
            }
            (Some(Operand::Address(address)), ExpectedType::Integer(_)) => {
                out.extend(access(ctx, TENSOR, *address, range));
            }
            (Some(Operand::Symbol(symbol, _)), ExpectedType::Address(target)) => {
                out.extend(named(ctx, target, *symbol, range));
            }
            _ => {}
        }
    }
}

/// Results of a function are written and its parameters read, not the other way round.
fn direction(ctx: &Context<'_>, mnemonic: &str, address: Address, range: TextRange) -> Option<Diagnostic> {
    let what = match (mnemonic, address.base) {
        ("ld", AddressBase::Symbol(Symbol::Return(_))) => "a result of this function, which is only written",
        ("st", AddressBase::Symbol(Symbol::Param(_))) => "a parameter of this function, which is only read",
        _ => return None,
    };
    let message = format!("`{}` is {what}", ctx.slice(range));
    Some(Diagnostic::new(&STATE_SPACE, range, message))
}

fn access(ctx: &Context<'_>, target: Target, address: Address, range: TextRange) -> Option<Diagnostic> {
    if target.base.window == Window::Unchecked {
        return None;
    }
    let bad = |message: String| Some(Diagnostic::new(&lints::ADDRESS, range, message));
    match address.base {
        AddressBase::Reg(register) => {
            let ty = ctx.register_type(register);
            let name = ctx.slice(range);
            let integer = matches!(ty.kind(), TypeKind::Bits | TypeKind::Unsigned | TypeKind::Signed);
            if target.base.window == Window::Tensor {
                return match ty.bits() {
                    32 if integer => None,
                    _ => bad(format!("`{name}` is `.{}`, tensor memory has 32-bit addresses", ty.text())),
                };
            }
            if !integer || ty.bits() > 64 {
                let text = ty.text();
                return bad(format!("`{name}` is `.{text}`, an address is an integer of up to 64 bits"));
            }
            let far = matches!(target.space, Space::Generic | Space::Global);
            let compiled = ctx.gates.target.number >= OLDEST_COMPILED;
            if far && ty.bits() == 32 && target.base.sized && ctx.header.address_size == 64 && compiled {
                return bad(format!("`{name}` has 32 bits, addresses of the module have 64"));
            }
            None
        }
        AddressBase::Symbol(symbol) => named(ctx, target, symbol, range),
        AddressBase::Absolute if target.space == Space::Local => None,
        AddressBase::Absolute => bad("constant addresses exist in `.local` alone".to_owned()),
    }
}

fn named(ctx: &Context<'_>, target: Target, symbol: Symbol, range: TextRange) -> Option<Diagnostic> {
    let name = ctx.slice(range);
    let found = match symbol {
        Symbol::Param(_) | Symbol::Return(_) => Space::Param,
        Symbol::Function(_) => {
            let message = format!("`{name}` is a function, not a variable");
            return Some(Diagnostic::new(&lints::ADDRESS, range, message));
        }
        Symbol::Global(_) | Symbol::Local(_) => {
            let place = ctx.variables.get(&symbol)?;
            if place.ty.kind() == TypeKind::Opaque {
                let message = format!("`{name}` is a `.{}`, which is no memory", place.ty.text());
                return (!target.base.opaque).then(|| Diagnostic::new(&lints::ADDRESS, range, message));
            }
            place.space
        }
    };
    if target.base.window == Window::Tensor {
        return None;
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
        Space::Generic => "the generic window, where it is not".to_owned(),
        expected => format!("`.{}`", expected.text()),
    };
    let message = format!("`{name}` is in `.{}`, the instruction accesses {accessed}", found.text());
    Some(Diagnostic::new(&STATE_SPACE, range, message))
}
