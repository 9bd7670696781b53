//! The number of operands and the class of each.

use ptx_backend::input;
use ptx_isa::{Class, Facts, Form, Mod, Opcode, Operand as Row, Presence, Role, ScalarType};
use smallvec::SmallVec;
use text_size::TextRange;

use super::{Context, Statement};
use crate::declare_lint;
use crate::diagnostic::Diagnostic;
use crate::scope::RegisterName;

declare_lint! {
    /// An instruction has too many or too few operands.
    pub(super) OPERAND_COUNT = "E0301" "operand-count", Error, since "0.1.0"
}

declare_lint! {
    /// An operand is of a kind that the instruction does not take there.
    pub(super) OPERAND_CLASS = "E0302" "operand-class", Error, since "0.1.0"
}

pub(super) fn check(_: &Context<'_>, statement: &Statement<'_>, out: &mut Vec<Diagnostic>) {
    let Some(rows) = statement.rows else {
        out.push(count(statement));
        return;
    };
    for ((row, operand), &range) in rows.iter().zip(statement.operands).zip(statement.ranges) {
        if let Some(operand) = operand {
            // Memory and matrix instructions take one element with or without its braces.
            let facts = statement.form.facts;
            let accesses = facts.has(Facts::READS)
                || facts.has(Facts::WRITES)
                || matches!(statement.form.mnemonic(), "mma");
            match operand {
                input::Operand::Vector(elements) if accesses && elements.len() == 1 => {}
                operand => class(row, operand, range, out),
            }
            match operand {
                // A texture's result may be a vector with a predicate.
                input::Operand::Pair(pair) => {
                    destinations(&elements(&pair.0), range, out);
                    destinations(&[&pair.1], range, out);
                }
                input::Operand::Vector(_) if row.role == Role::Destination => {
                    destinations(&elements(operand), range, out);
                }
                _ => {}
            }
            // `mov` leaves the bits of a `_` in a vector undefined.
            if statement.form.mnemonic() != "mov" || matches!(operand, input::Operand::Sink) {
                sink(row, operand, range, out);
            }
        }
    }
}

/// The elements of a vector; anything else by itself.
fn elements(operand: &input::Operand) -> SmallVec<[&input::Operand; 8]> {
    match operand {
        input::Operand::Vector(elements) => elements.iter().collect(),
        other => smallvec::smallvec![other],
    }
}

/// The row of each written operand. `None` when their number is wrong.
///
/// An optional operand is taken for present when what is written there can be it, so that `call f, (x)` and
/// `call (r), f` are told apart; when that leaves operands over, by count alone.
pub fn bind(
    form: &'static Form,
    opcode: &Opcode,
    operands: &[Option<input::Operand>],
    registers: &[RegisterName],
) -> Option<Rows> {
    let (least, _) = bounds(form, opcode);
    let spare = operands.len().checked_sub(least)?;
    assign(form, opcode, operands, spare, Some(registers))
        .or_else(|| assign(form, opcode, operands, spare, None))
}

/// The rows of the operands of one instruction.
pub(crate) type Rows = SmallVec<[&'static Row; 8]>;

fn assign(
    form: &'static Form,
    opcode: &Opcode,
    operands: &[Option<input::Operand>],
    mut spare: usize,
    registers: Option<&[RegisterName]>,
) -> Option<Rows> {
    let mut bound = SmallVec::new();
    for row in form.operands {
        match presence(opcode, row) {
            Some(true) => bound.push(row),
            None if spare > 0 => {
                let operand = operands.get(bound.len()).and_then(Option::as_ref);
                let fits =
                    |registers| operand.is_none_or(|operand| row.class.intersects(exact(operand, registers)));
                if registers.is_none_or(fits) {
                    spare -= 1;
                    bound.push(row);
                }
            }
            _ => {}
        }
    }
    (spare == 0).then_some(bound)
}

/// `Some(true)`: must be written; `Some(false)`: must not; `None`: may.
fn presence(opcode: &Opcode, row: &Row) -> Option<bool> {
    let any = |mods: &[Mod]| mods.iter().any(|&m| opcode.has(m));
    match row.presence {
        Presence::Always => Some(true),
        Presence::Optional => None,
        Presence::With(mods) => Some(any(mods)),
        Presence::Without(mods) => Some(!any(mods)),
        Presence::OptionalWith(mods) => (!any(mods)).then_some(false),
    }
}

/// The least and the greatest number of operands.
fn bounds(form: &Form, opcode: &Opcode) -> (usize, usize) {
    form.operands.iter().fold((0, 0), |(least, most), row| match presence(opcode, row) {
        Some(true) => (least + 1, most + 1),
        Some(false) => (least, most),
        None => (least, most + 1),
    })
}

fn count(statement: &Statement<'_>) -> Diagnostic {
    let (form, opcode) = (statement.form, &statement.opcode);
    let (least, most) = bounds(form, opcode);
    let found = statement.operands.len();
    let expected = match (least, most) {
        (0, 0) => "no operands".to_owned(),
        (1, 1) => "1 operand".to_owned(),
        (a, b) if a == b => format!("{a} operands"),
        (a, b) => format!("{a} to {b} operands"),
    };
    let range = match statement.ranges.get(most) {
        Some(first) if found > most => first.cover(statement.ranges[found - 1]),
        _ => statement.name,
    };
    let rows = form.operands.iter().filter(|row| presence(opcode, row) != Some(false));
    let names: Vec<&str> = rows.map(|row| row.name).collect();
    let message = format!("`{}` takes {expected} here, found {found}", form.mnemonic());
    let diagnostic = Diagnostic::new(&OPERAND_COUNT, range, message);
    if names.is_empty() { diagnostic } else { diagnostic.note(format!("operands: {}", names.join(", "))) }
}

fn class(row: &Row, operand: &input::Operand, range: TextRange, out: &mut Vec<Diagnostic>) {
    if row.class.intersects(classes(operand)) || row.class == Class(0) {
        return;
    }
    let message = format!("expected {}, found {}", describe(row.class), name(operand));
    out.push(
        Diagnostic::new(&OPERAND_CLASS, range, message).note(format!("this is the operand `{}`", row.name)),
    );
}

/// The classes of an operand, registers told apart by their type.
fn exact(operand: &input::Operand, registers: &[RegisterName]) -> Class {
    match operand {
        input::Operand::Reg(register) => match registers.get(register.0 as usize) {
            Some(name) if name.ty == ScalarType::Pred => Class::PREDICATE,
            _ => Class::REGISTER,
        },
        other => classes(other),
    }
}

/// The classes that an operand can pass for. Whether a register is a predicate is a question of its type; see
/// the type check.
fn classes(operand: &input::Operand) -> Class {
    use input::Operand as O;
    let register = Class::REGISTER.or(Class::PREDICATE);
    match operand {
        O::Reg(_) => register,
        O::NotPred(_) => Class::PREDICATE,
        O::Int(_) | O::F64(_) | O::F32(_) => Class::IMMEDIATE,
        O::Address(_) => Class::ADDRESS.or(Class::TEXTURE),
        O::Symbol(..) => Class::SYMBOL.or(Class::IMMEDIATE),
        O::Special(_) => Class::SPECIAL,
        O::Label(_) | O::Targets(_) | O::Prototype(_) => Class::LABEL.or(Class::SYMBOL),
        O::Vector(_) => Class::VECTOR,
        O::Pair(_) => Class::PAIR,
        O::Sink => Class::SINK,
        // Arguments, or brackets with several parts.
        O::List(_) => Class::LIST.or(Class::TEXTURE).or(Class::ADDRESS),
    }
}

/// Both halves of `d|p` and all elements of a vector are written.
fn destinations(parts: &[&input::Operand], range: TextRange, out: &mut Vec<Diagnostic>) {
    let written = Class::REGISTER.or(Class::PREDICATE).or(Class::SINK);
    if let Some(wrong) = parts.iter().find(|part| !classes(part).intersects(written)) {
        let message = format!("expected a register or a predicate, found {}", name(wrong));
        out.push(Diagnostic::new(&OPERAND_CLASS, range, message));
    }
}

/// `_` stands for a result that nobody wants, so it is no source.
fn sink(row: &Row, operand: &input::Operand, range: TextRange, out: &mut Vec<Diagnostic>) {
    let is_sink = |operand: &input::Operand| matches!(operand, input::Operand::Sink);
    let read = match operand {
        input::Operand::Vector(elements) => elements.iter().any(is_sink),
        // Where the row takes no `_` that is said already.
        operand => is_sink(operand) && (row.class.intersects(Class::SINK) || row.class == Class(0)),
    };
    if row.role == Role::Source && read {
        out.push(Diagnostic::new(&OPERAND_CLASS, range, "`_` cannot be read"));
    }
}

fn name(operand: &input::Operand) -> &'static str {
    use input::Operand as O;
    match operand {
        O::Reg(_) => "a register",
        O::NotPred(_) => "a negated predicate",
        O::Int(_) => "an integer constant",
        O::F64(_) | O::F32(_) => "a floating-point constant",
        O::Address(_) => "an address in brackets",
        O::Symbol(..) => "the name of a variable or function",
        O::Special(_) => "a special register",
        O::Label(_) => "a label",
        O::Targets(_) => "a list of targets",
        O::Prototype(_) => "a prototype",
        O::Vector(_) => "a vector",
        O::Pair(_) => "a pair of destinations",
        O::Sink => "`_`",
        O::List(_) => "a list",
    }
}

fn describe(class: Class) -> String {
    let names = [
        (Class::REGISTER, "a register"),
        (Class::PREDICATE, "a predicate"),
        (Class::IMMEDIATE, "a constant"),
        (Class::ADDRESS, "an address in brackets"),
        (Class::LABEL, "a label"),
        (Class::SYMBOL, "the name of a variable or function"),
        (Class::VECTOR, "a vector in braces"),
        (Class::PAIR, "a pair `d|p`"),
        (Class::LIST, "a list in parentheses"),
        (Class::TEXTURE, "a texture or surface in brackets"),
        (Class::SPECIAL, "a special register"),
    ];
    let names: Vec<&str> =
        names.iter().filter(|(bit, _)| class.intersects(*bit)).map(|&(_, name)| name).collect();
    match names.as_slice() {
        [] => "nothing".to_owned(),
        [only] => (*only).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}
