//! The number of operands and the class of each.

use ptx_backend::input::{self, AddressBase};
use ptx_isa::{Class, Form, Mod, Opcode, Operand as Row, Presence, ScalarType};
use smallvec::SmallVec;
use text_size::TextRange;

use super::{Context, Statement};
use crate::declare_lint;
use crate::diagnostic::Diagnostic;

declare_lint! {
    /// An instruction has too many or too few operands.
    pub OPERAND_COUNT = "E0301" "operand-count", Error, since "0.1.0"
}

declare_lint! {
    /// An operand is of a kind that the instruction does not take there.
    pub OPERAND_CLASS = "E0302" "operand-class", Error, since "0.1.0"
}

pub(super) fn check(ctx: &Context<'_>, statement: &Statement<'_>, out: &mut Vec<Diagnostic>) {
    let Some(rows) = statement.rows else {
        out.push(count(statement));
        return;
    };
    for ((row, operand), &range) in rows.iter().zip(statement.operands).zip(statement.ranges) {
        if let Some(operand) = operand {
            class(ctx, row, operand, range, out);
        }
    }
}

/// The row of each written operand. `None` when their number is wrong.
pub fn bind(form: &'static Form, opcode: &Opcode, written: usize) -> Option<SmallVec<[&'static Row; 8]>> {
    let (least, _) = bounds(form, opcode);
    let mut spare = written.checked_sub(least)?;
    let mut bound = SmallVec::new();
    for row in form.operands {
        match presence(opcode, row) {
            Some(true) => bound.push(row),
            None if spare > 0 => {
                spare -= 1;
                bound.push(row);
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
    let (least, most) = bounds(statement.form, &statement.opcode);
    let found = statement.operands.len();
    let expected = match (least, most) {
        (1, 1) => "1 operand".to_owned(),
        (a, b) if a == b => format!("{a} operands"),
        (a, b) => format!("{a} to {b} operands"),
    };
    let mnemonic = statement.form.mnemonic();
    let range = match statement.ranges.get(most) {
        Some(first) if found > most => first.cover(statement.ranges[found - 1]),
        _ => statement.name,
    };
    let names: Vec<&str> = statement
        .form
        .operands
        .iter()
        .filter(|row| presence(&statement.opcode, row) != Some(false))
        .map(|row| row.name)
        .collect();
    Diagnostic::new(&OPERAND_COUNT, range, format!("`{mnemonic}` takes {expected} here, found {found}"))
        .note(format!("operands: {}", names.join(", ")))
}

fn class(
    ctx: &Context<'_>,
    row: &Row,
    operand: &input::Operand,
    range: TextRange,
    out: &mut Vec<Diagnostic>,
) {
    let found = classes(ctx, operand);
    if row.class.intersects(found) || row.class == Class(0) {
        return;
    }
    // Whether a register is a predicate is a question of its type; see the type check.
    let registers = Class::REGISTER.or(Class::PREDICATE);
    if found.intersects(registers) && row.class.intersects(registers) {
        return;
    }
    let message = format!("expected {}, found {}", describe(row.class), name(operand));
    out.push(
        Diagnostic::new(&OPERAND_CLASS, range, message).note(format!("this is the operand `{}`", row.name)),
    );
}

/// The classes that an operand can pass for.
fn classes(ctx: &Context<'_>, operand: &input::Operand) -> Class {
    use input::Operand as O;
    match operand {
        O::Reg(register) if ctx.register_type(*register) == ScalarType::Pred => Class::PREDICATE,
        O::Reg(_) => Class::REGISTER,
        O::NotPred(_) => Class::PREDICATE,
        O::Int(_) | O::F64(_) | O::F32(_) => Class::IMMEDIATE,
        O::Address(address) => match address.base {
            AddressBase::Reg(_) | AddressBase::Symbol(_) | AddressBase::Absolute => {
                Class::ADDRESS.or(Class::TEXTURE)
            }
        },
        O::Symbol(..) => Class::SYMBOL.or(Class::IMMEDIATE).or(Class::LABEL),
        O::Special(_) => Class::SPECIAL.or(Class::REGISTER),
        O::Label(_) | O::Targets(_) | O::Prototype(_) => Class::LABEL.or(Class::SYMBOL),
        O::Vector(_) => Class::VECTOR,
        O::Pair(_) => Class::PAIR,
        O::Sink => Class::SINK,
        O::List(_) => Class::LIST,
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
        O::List(_) => "a list in parentheses",
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
    ];
    let names: Vec<&str> =
        names.iter().filter(|(bit, _)| class.intersects(*bit)).map(|&(_, name)| name).collect();
    match names.as_slice() {
        [] => "nothing".to_owned(),
        [only] => (*only).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}
