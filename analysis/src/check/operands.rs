//! The number of operands, and the class of each operand.

use ptx_backend::input;
use ptx_isa::{Class, Expected, ExpectedType, FormId, Role, ScalarType, Signature, TypeKind};
use smallvec::SmallVec;
use text_size::TextRange;

use super::types::takes_integers;
use super::{Context, Statement};
use crate::declare_lint;
use crate::diagnostic::{Diagnostic, Findings};
use crate::scope::RegisterName;

declare_lint! {
    /// An instruction has too many or too few operands.
    pub(crate) OPERAND_COUNT = "E0301" "operand-count", Error, since "0.1.0"
}

declare_lint! {
    /// An operand is of the wrong kind for the instruction.
    pub(crate) OPERAND_CLASS = "E0302" "operand-class", Error, since "0.1.0"
}

const NO_VALUE: &str = "`_` discards a result and has no value";

pub(super) fn check(ctx: &Context<'_>, statement: &Statement<'_>, out: &mut Findings) {
    let Some(rows) = statement.rows else {
        out.push(count(ctx, statement));
        return;
    };
    if let Some(exchanged) = exchanged(ctx, statement, rows) {
        out.push(exchanged);
        return;
    }
    beside(ctx, statement, rows, out);
    transposition(statement, rows, out);
    ignored_source(statement, rows, out);
    for ((row, operand), &range) in rows.iter().zip(statement.operands).zip(statement.ranges) {
        if let Some(operand) = operand {
            class(ctx, statement, row, operand, range, out);
            match operand {
                // The destination of a texture instruction may be a vector with a predicate.
                input::Operand::Pair(pair) => {
                    let vectors = Class::SPECIAL;
                    let of = |part: &_| {
                        if matches!(part, input::Operand::Vector(_)) { vectors } else { Class::NONE }
                    };
                    destinations(&elements(&pair.0), of(&pair.0), range, out);
                    destinations(&[&pair.1], Class::NONE, range, out);
                }
                // ptxas accepts special registers there.
                input::Operand::Vector(_) if row.role == Role::Destination => {
                    let specials = if is_rewritten(statement) { Class::NONE } else { Class::SPECIAL };
                    destinations(&elements(operand), specials, range, out);
                }
                input::Operand::Reg(_) if row.role == Role::Destination && is_sum(ctx.slice(range)) => {
                    let message = "expected a register as the destination, found a register with an offset";
                    out.push(Diagnostic::new(&OPERAND_CLASS, range, message));
                }
                input::Operand::NotPred(_) if row.role == Role::Destination => {
                    let message = "a negated predicate cannot be a destination";
                    let note = "`!` applies only to predicates that are read";
                    out.push(Diagnostic::new(&OPERAND_CLASS, range, message).note(note));
                }
                _ => {}
            }
            sink(statement, row, operand, range, out);
        }
    }
}

/// Checks operands that must have a certain form, or be absent, if an optional operand is present.
fn beside(ctx: &Context<'_>, statement: &Statement<'_>, rows: &[&Expected], out: &mut Findings) {
    for ((row, operand), &range) in rows.iter().zip(statement.operands).zip(statement.ranges) {
        if let (Some((other, class)), Some(operand)) = (row.beside, operand)
            && rows.iter().any(|row| row.name == other)
            && !class.intersects(exact(operand, ctx.registers))
        {
            let (name, found) = (row.name, ctx.slice(range));
            let message = match class {
                Class::NONE => format!("operands `{name}` and `{other}` cannot be combined"),
                _ => format!(
                    "operand `{name}` must be {} when `{other}` is present, found `{found}`",
                    describe(class)
                ),
            };
            out.push(Diagnostic::new(&OPERAND_CLASS, range, message));
        }
    }
}

/// Whether ptxas replaces this instruction by others, whose vectors may only contain registers.
fn is_rewritten(statement: &Statement<'_>) -> bool {
    use FormId as F;
    match statement.form.id {
        F::Tcgen05Ld | F::Tcgen05LdRed | F::Tcgen05St | F::WmmaLoad | F::WmmaLoadC => true,
        F::Tex => statement.opcode.ty(0) == Some(ScalarType::F16x2),
        _ => false,
    }
}

/// The elements of a vector; any other operand by itself.
fn elements(operand: &input::Operand) -> SmallVec<[&input::Operand; 8]> {
    match operand {
        input::Operand::Vector(elements) => elements.iter().collect(),
        other => smallvec::smallvec![other],
    }
}

/// Finds the row of the signature for each written operand. `None` if their number is wrong.
///
/// An optional operand counts as present if the written operand fits it. This distinguishes `call f, (x)` from
/// `call (r), f`. If operands are left over in this way, only their number decides.
pub fn bind<'s>(
    signature: &'s Signature,
    operands: &[Option<input::Operand>],
    registers: &[RegisterName],
) -> Option<Rows<'s>> {
    let spare = operands.len().checked_sub(signature.least)?;
    if signature.least == signature.operands.len() {
        return (spare == 0).then(|| signature.operands.iter().collect());
    }
    assign(signature, operands, spare, Some(registers)).or_else(|| assign(signature, operands, spare, None))
}

/// The rows of the operands of one instruction.
pub(crate) type Rows<'s> = SmallVec<[&'s Expected; 8]>;

fn assign<'s>(
    signature: &'s Signature,
    operands: &[Option<input::Operand>],
    mut spare: usize,
    registers: Option<&[RegisterName]>,
) -> Option<Rows<'s>> {
    let mut bound = SmallVec::new();
    for (index, row) in signature.operands.iter().enumerate() {
        if !row.optional {
            bound.push(row);
        } else if spare > 0 {
            let operand = operands.get(bound.len()).and_then(Option::as_ref);
            // A single float is more likely the later scalar than all of a vector of integers.
            let is_later = spare == 1
                && row.class.intersects(Class::VECTOR)
                && operand.is_some_and(|operand| is_float(operand, registers))
                && signature.operands[index + 1..]
                    .iter()
                    .any(|later| later.optional && later.class.intersects(Class::REGISTER));
            let fits = |registers| {
                !is_later && operand.is_none_or(|operand| row.class.intersects(exact(operand, registers)))
            };
            if registers.is_none_or(fits) {
                spare -= 1;
                bound.push(row);
            }
        }
    }
    (spare == 0).then_some(bound)
}

/// Whether the operand is a single float.
fn is_float(operand: &input::Operand, registers: Option<&[RegisterName]>) -> bool {
    match operand {
        input::Operand::F32(_) | input::Operand::F64(_) => true,
        input::Operand::Reg(register) => registers
            .and_then(|registers| registers.get(register.0 as usize))
            .is_some_and(|name| name.ty.kind() == TypeKind::Float),
        _ => false,
    }
}

/// Reports exchanged first and second operands, a common mistake in `st` and `ld`.
fn exchanged(ctx: &Context<'_>, statement: &Statement<'_>, rows: &[&Expected]) -> Option<Diagnostic> {
    let ([first, second, ..], [Some(one), Some(other), ..]) = (rows, statement.operands) else { return None };
    let takes = |row: &Expected, operand| row.class.intersects(classes(operand));
    let is_address = |row: &Expected| row.class == Class::ADDRESS;
    if takes(first, one) || takes(second, other) || !takes(first, other) || !takes(second, one) {
        return None;
    }
    if is_address(first) == is_address(second) {
        return None;
    }
    let range = statement.ranges[0].cover(statement.ranges[1]);
    let (here, there) = (ctx.slice(statement.ranges[0]), ctx.slice(statement.ranges[1]));
    let order =
        if is_address(first) { "the address must come first" } else { "the address must come second" };
    let message = format!("operands of `{}` are in the wrong order", statement.form.mnemonic());
    let title = format!("change to `{there}, {here}`");
    Some(Diagnostic::new(&OPERAND_CLASS, range, message).note(order).fix(
        title,
        range,
        format!("{there}, {here}"),
    ))
}

fn count(ctx: &Context<'_>, statement: &Statement<'_>) -> Diagnostic {
    let signature = statement.signature;
    let (least, most) = (signature.least, signature.operands.len());
    let found = statement.operands.len();
    let expected = match (least, most) {
        (0, 0) => "no operands".to_owned(),
        (1, 1) => "1 operand".to_owned(),
        (a, b) if a == b => format!("{a} operands"),
        (a, b) if b == a + 1 => format!("{a} or {b} operands"),
        (a, b) => format!("{a} to {b} operands"),
    };
    let range = match statement.ranges.get(most) {
        Some(first) if found > most => first.cover(statement.ranges[found - 1]),
        _ => statement.name,
    };
    let message = format!("`{}` takes {expected}, found {found}", title(ctx, statement));
    let diagnostic = uncounted(ctx, statement, Diagnostic::new(&OPERAND_COUNT, range, message));
    if signature.operands.is_empty() {
        return diagnostic.note("remove everything between the name and `;`");
    }
    let described = signature.operands.iter().map(|row| {
        let optional = if row.optional { ", optional" } else { "" };
        format!("`{}` ({}{optional})", row.name, describe(row.documented()))
    });
    diagnostic.note(format!("the operands are {}", described.collect::<Vec<_>>().join(", ")))
}

/// Reports which operand is missing or superfluous, if that can be determined.
fn uncounted(ctx: &Context<'_>, statement: &Statement<'_>, diagnostic: Diagnostic) -> Diagnostic {
    let required: SmallVec<[&Expected; 8]> =
        statement.signature.operands.iter().filter(|row| !row.optional).collect();
    let fits = |row: &&Expected, operand: &Option<input::Operand>| {
        operand.as_ref().is_none_or(|operand| row.class.intersects(classes(operand)))
    };
    let written = statement.operands;
    if written.len() < required.len() {
        let (before, missing) = required.split_at(written.len());
        if !before.iter().zip(written).all(|(row, operand)| fits(row, operand)) {
            return diagnostic;
        }
        let names: Vec<String> = missing.iter().map(|row| format!("`{}`", row.name)).collect();
        let verb = if names.len() == 1 { "is" } else { "are" };
        let diagnostic = diagnostic.note(format!("{} {verb} missing", listed(&names, "and")));
        let (title, text) = match (statement.form.mnemonic(), missing) {
            (_, [only]) if only.name == "membermask" => ("add the mask of a full warp", "0xffffffff"),
            ("bar" | "barrier", [only]) if only.name == "a" => ("add barrier 0", "0"),
            _ => return diagnostic,
        };
        let (at, comma) = match statement.ranges.last() {
            Some(last) => (last.end(), ", "),
            None => (statement.name.end(), " "),
        };
        return diagnostic.fix(title, TextRange::empty(at), format!("{comma}{text}"));
    }
    // `red` with a destination.
    if let ("red", [Some(input::Operand::Reg(_)), rest @ ..], [result, next, ..]) =
        (statement.form.mnemonic(), written, statement.ranges)
        && rest.len() == required.len()
        && required.iter().zip(rest).all(|(row, operand)| fits(row, operand))
    {
        let result = TextRange::new(result.start(), next.start());
        let name = TextRange::at(statement.name.start(), text_size::TextSize::of("red"));
        return diagnostic
            .note("`red` has no destination; `atom` does the same and returns the old value")
            .fix("change to `atom`", name, "atom")
            .fix(format!("remove `{}`", ctx.slice(result).trim_end()), result, "");
    }
    diagnostic
}

/// The name of the instruction in messages: `cp.async.bulk` rather than `cp`.
pub(super) fn title(ctx: &Context<'_>, statement: &Statement<'_>) -> String {
    let mnemonic = statement.form.mnemonic();
    let words: SmallVec<[&str; 8]> =
        statement.suffixes.iter().map(|&suffix| &ctx.slice(suffix)[1..]).collect();
    let count = ptx_isa::title(mnemonic, &words);
    words[..count].iter().fold(mnemonic.to_owned(), |title, word| title + "." + word)
}

/// Checks the transposition operand: a factor in shared memory has one, a factor in registers does not.
fn transposition(statement: &Statement<'_>, rows: &[&Expected], out: &mut Findings) {
    let is_trans = |row: &Expected| row.name == "imm-trans-a";
    if statement.signature.operands.iter().any(is_trans) {
        let is_written = rows.iter().any(|row| is_trans(row));
        let in_registers = matches!(statement.operands.get(1), Some(Some(input::Operand::Vector(_))));
        if is_written == in_registers {
            let message = match in_registers {
                true => "operand `imm-trans-a` is not allowed when matrix `a` is in registers",
                false => "operand `imm-trans-a` is required when matrix `a` is in shared memory",
            };
            let note = "only a matrix in shared memory can be transposed";
            out.push(Diagnostic::new(&OPERAND_COUNT, statement.ranges[1], message).note(note));
        }
    }
}

/// Checks that a copy does not have both a source size and a predicate that ignores the source.
fn ignored_source(statement: &Statement<'_>, rows: &[&Expected], out: &mut Findings) {
    let position = |name| rows.iter().position(|row| row.name == name);
    if let (Some(_), Some(ignored)) = (position("src-size"), position("ignore-src")) {
        let message = "a copy cannot have both a source size and an `ignore-src` predicate";
        out.push(Diagnostic::new(&OPERAND_COUNT, statement.ranges[ignored], message));
    }
}

fn class(
    ctx: &Context<'_>,
    statement: &Statement<'_>,
    row: &Expected,
    operand: &input::Operand,
    range: TextRange,
    out: &mut Findings,
) {
    let written = is_special_vector(operand) && !ctx.slice(range).starts_with('{');
    let fits = if written {
        row.class.intersects(Class::SPECIAL) && row.class.intersects(Class::VECTOR)
    } else {
        row.class.intersects(classes(operand))
            || is_value(row, operand, is_sum(ctx.slice(range))) && !is_expanded(ctx, statement, row)
            || is_element(statement, row, operand, ctx.slice(range))
    };
    if fits {
        return;
    }
    let message = format!("expected {}, found {}", describe(row.documented()), name(operand));
    let instruction = ctx.slice(statement.name);
    let role = match row.role {
        Role::Destination => "is a destination",
        Role::Source => "is a source",
        Role::Both => "is read and written",
    };
    let note = format!("operand `{}` of `{instruction}` {role}", row.name);
    let diagnostic = Diagnostic::new(&OPERAND_CLASS, range, message).note(note);
    let is_read = row.role == Role::Source;
    out.push(match (operand, row.class) {
        (input::Operand::Symbol(..), class) if is_read && class.intersects(Class::REGISTER) => {
            diagnostic.note("use `mov` to load the address of a variable into a register")
        }
        (input::Operand::Address(_), class) if class.intersects(Class::REGISTER) => {
            diagnostic.note("use `ld` and `st` to access memory; other instructions work on registers")
        }
        (input::Operand::Special(_), class) if is_read && class.intersects(Class::REGISTER) => {
            diagnostic.note("use `mov` to copy a special register to a register")
        }
        (input::Operand::Reg(_) | input::Operand::Symbol(..), class) if class == Class::ADDRESS => {
            let text = format!("[{}]", ctx.slice(range));
            let title = format!("change to `{text}`");
            diagnostic.note("addresses are written in brackets, as in `[%rd1+8]`").fix(title, range, text)
        }
        (input::Operand::Reg(register), class)
            if class.intersects(Class::PAIR_WITHOUT_FIRST)
                && ctx.register_type(*register) == ScalarType::Pred =>
        {
            let text = format!("_|{}", ctx.slice(range));
            let title = format!("change to `{text}`");
            diagnostic
                .note("the predicate is the second destination; `_` discards the first")
                .fix(title, range, text)
        }
        (input::Operand::Sink, _) => {
            diagnostic.note(if is_read { NO_VALUE } else { "this destination cannot be discarded" })
        }
        _ => diagnostic,
    });
}

/// Whether the operand is a special register such as `%tid`, which stands for its components.
fn is_special_vector(operand: &input::Operand) -> bool {
    matches!(operand, input::Operand::Vector(elements)
        if matches!(elements.first(), Some(input::Operand::Special(_))))
}

/// Whether the name of a function, or a variable plus an offset, is used as a number.
fn is_value(row: &Expected, operand: &input::Operand, is_sum: bool) -> bool {
    let input::Operand::Symbol(symbol, _) = operand else { return false };
    if !row.class.intersects(Class::IMMEDIATE) || !row.class.intersects(Class::REGISTER) {
        return false;
    }
    let is_function = matches!(symbol, input::Symbol::Function(_));
    match row.ty {
        ExpectedType::Typed(ty) | ExpectedType::AddressOf(ty, _) if is_function => {
            !super::types::is_untyped_only(ty)
        }
        ExpectedType::Typed(ty) => is_sum && takes_integers(ty) && ty != ScalarType::Pred,
        ExpectedType::AddressOf(..) => is_sum,
        ExpectedType::Integer(bits) => is_sum && bits == 32,
        ExpectedType::Pointer | ExpectedType::Length | ExpectedType::Word => is_sum,
        _ => false,
    }
}

/// Whether the operand is an array element such as `table[3]`, which plain loads and stores accept as an address in
/// brackets.
fn is_element(statement: &Statement<'_>, row: &Expected, operand: &input::Operand, text: &str) -> bool {
    use FormId as F;
    matches!(statement.form.id, F::Ld | F::Ldu | F::St | F::MultimemRed)
        && row.class.intersects(Class::ADDRESS)
        && matches!(operand, input::Operand::Symbol(..))
        && text.ends_with(']')
}

/// Whether a variable is written with an offset, and therefore is a number. It is not a number if it is written alone
/// or with an index.
pub(super) fn is_sum(operand: &str) -> bool {
    !operand.ends_with(']') && operand.contains('+')
}

/// Whether ptxas replaces this instruction by others, in which only plain names can appear.
pub(super) fn is_expanded(ctx: &Context<'_>, statement: &Statement<'_>, row: &Expected) -> bool {
    use FormId as F;
    match statement.form.id {
        // This does not apply to the descriptors.
        F::Tcgen05Mma | F::Tcgen05MmaBlockScale | F::Tcgen05MmaWs => row.ty == ExpectedType::Integer(32),
        _ => ptx_isa::expanded_on(&statement.opcode).contains(ctx.gates.target),
    }
}

/// The classes of an operand; registers are distinguished by their type.
fn exact(operand: &input::Operand, registers: &[RegisterName]) -> Class {
    match operand {
        input::Operand::Reg(register) => match registers.get(register.0 as usize) {
            Some(name) if name.ty == ScalarType::Pred => Class::PREDICATE,
            _ => Class::REGISTER,
        },
        other => classes(other),
    }
}

/// The classes that an operand is accepted for. Whether a register is a predicate depends on its type; the type check
/// decides.
fn classes(operand: &input::Operand) -> Class {
    use input::Operand as O;
    let register = Class::REGISTER.or(Class::PREDICATE);
    match operand {
        O::Reg(_) | O::Sum(..) => register,
        O::NotPred(_) => Class::PREDICATE,
        O::Int(_) | O::F64(_) | O::F32(_) => Class::IMMEDIATE,
        O::Address(_) => Class::ADDRESS,
        O::Symbol(..) => Class::SYMBOL,
        O::Special(_) => Class::SPECIAL,
        O::Label(_) => Class::LABEL,
        O::Targets(_) => Class::BRANCH_TARGETS,
        O::Prototype(_) => Class::PROTOTYPE,
        O::Vector(_) => Class::VECTOR,
        O::Pair(pair) => match **pair {
            (_, O::Sink) => Class::NONE,
            (O::Sink, _) => Class::PAIR_WITHOUT_FIRST,
            _ => Class::PAIR,
        },
        O::Sink => Class::SINK,
        // Arguments, or brackets with several parts.
        O::List(_) => Class::LIST.or(Class::TEXTURE),
    }
}

/// Checks that both parts of `d|p` and all elements of a vector can be written.
fn destinations(parts: &[&input::Operand], more: Class, range: TextRange, out: &mut Findings) {
    let written = Class::REGISTER.or(Class::PREDICATE).or(Class::SINK).or(more);
    let is_wrong = |part: &&&input::Operand| {
        !classes(part).intersects(written) || matches!(part, input::Operand::NotPred(_))
    };
    if let Some(wrong) = parts.iter().find(is_wrong) {
        let message = format!("expected a register or a predicate, found {}", name(wrong));
        let note = "each part of a destination must be a register, or `_` to discard it";
        out.push(Diagnostic::new(&OPERAND_CLASS, range, message).note(note));
    }
}

/// Checks `_`: it discards a result, so it cannot be a source, and a vector must have another element.
fn sink(
    statement: &Statement<'_>,
    row: &Expected,
    operand: &input::Operand,
    range: TextRange,
    out: &mut Findings,
) {
    let is_sink = |operand: &input::Operand| matches!(operand, input::Operand::Sink);
    let elements = match operand {
        input::Operand::Vector(elements) => elements,
        input::Operand::List(parts) => match parts.last() {
            Some(input::Operand::Vector(elements)) => elements,
            _ => return,
        },
        _ => return,
    };
    // For an instruction that packs 32 bits, the bits of `_` are undefined.
    let packs = row.class.intersects(Class::SYMBOL) && row.ty == ExpectedType::Typed(ScalarType::B32);
    // Stores of 256 bits do not write the element of `_`.
    let bits = statement.opcode.ty(0).map_or(0, |ty| ty.bits() * elements.len() as u32);
    let stores = statement.form.id == FormId::St && bits == 256;
    let loads = matches!(statement.form.id, FormId::WmmaLoad | FormId::WmmaLoadC);
    let is_special = |operand: &input::Operand| matches!(operand, input::Operand::Special(_));
    if row.role == Role::Source && is_rewritten(statement) && elements.iter().any(is_special) {
        let message = "a special register is not allowed here";
        out.push(Diagnostic::new(&OPERAND_CLASS, range, message));
    }
    if row.role == Role::Destination && is_rewritten(statement) && !loads && elements.iter().any(is_sink) {
        let note = "every element of this destination must be a register";
        out.push(Diagnostic::new(&OPERAND_CLASS, range, "`_` is not allowed in this destination").note(note));
    } else if row.role != Role::Destination && !packs && !stores && elements.iter().any(is_sink) {
        let message = "`_` cannot be used as a source";
        out.push(Diagnostic::new(&OPERAND_CLASS, range, message).note(NO_VALUE));
    } else if elements.iter().all(is_sink) {
        let message = "a vector cannot consist of `_` only";
        let note = "at least one element must be a register, which determines the type";
        out.push(Diagnostic::new(&OPERAND_CLASS, range, message).note(note));
    }
}

fn name(operand: &input::Operand) -> &'static str {
    use input::Operand as O;
    match operand {
        O::Reg(_) | O::Sum(..) => "a register",
        O::NotPred(_) => "a negated predicate",
        O::Int(_) => "an integer constant",
        O::F64(_) | O::F32(_) => "a floating-point constant",
        O::Address(_) => "an address in brackets",
        O::Symbol(..) => "the name of a variable or function",
        O::Special(_) => "a special register",
        O::Label(_) => "a label",
        O::Targets(_) => "a `.branchtargets` list",
        O::Prototype(_) => "a prototype or `.calltargets` list",
        O::Vector(_) => "a vector",
        O::Pair(_) => "a pair of destinations",
        O::Sink => "`_`",
        O::List(_) => "a list",
    }
}

/// The description of a class in messages.
pub fn describe(class: Class) -> String {
    let names = [
        (Class::REGISTER, "a register"),
        (Class::PREDICATE, "a predicate"),
        (Class::IMMEDIATE, "a constant"),
        (Class::ADDRESS, "an address in brackets"),
        (Class::LABEL, "a label"),
        (Class::BRANCH_TARGETS, "a `.branchtargets` list"),
        (Class::PROTOTYPE, "a prototype or `.calltargets` list"),
        (Class::SYMBOL, "the name of a variable or function"),
        (Class::VECTOR, "a vector in braces"),
        (Class::PAIR, "a pair `d|p`"),
        (Class::PAIR_WITHOUT_FIRST, "a pair `_|p`"),
        (Class::LIST, "a list in parentheses"),
        (Class::TEXTURE, "a texture, surface or tensor map in brackets"),
        (Class::SPECIAL, "a special register"),
        (Class::SINK, "`_`"),
    ];
    let names: Vec<&str> =
        names.iter().filter(|(bit, _)| class.intersects(*bit)).map(|&(_, name)| name).collect();
    if names.is_empty() { "nothing".to_owned() } else { listed(&names, "or") }
}

/// `a, b and c`
pub(crate) fn listed<T: AsRef<str>>(parts: &[T], conjunction: &str) -> String {
    let parts: Vec<&str> = parts.iter().map(AsRef::as_ref).collect();
    match parts.as_slice() {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [first @ .., last] => format!("{} {conjunction} {last}", first.join(", ")),
    }
}
