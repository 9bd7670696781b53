//! Constants where an instruction reads a value.

use ptx_backend::input::Operand;
use ptx_isa::{OperandType, Role, ScalarType, TypeKind};
use text_size::TextRange;

use super::{Context, Statement};
use crate::declare_lint;
use crate::diagnostic::Diagnostic;

declare_lint! {
    /// A constant is of a kind that the instruction's type does not have.
    pub(super) CONSTANT_TYPE = "E0304" "constant-type", Error, since "0.1.0"
}

pub(super) fn check(_: &Context<'_>, statement: &Statement<'_>, out: &mut Vec<Diagnostic>) {
    let Some(rows) = statement.rows else { return };
    for ((row, operand), &range) in rows.iter().zip(statement.operands).zip(statement.ranges) {
        let expected = match row.ty {
            OperandType::Suffix(i) | OperandType::Wide(i) => statement.opcode.ty(usize::from(i)),
            OperandType::Is(ty) => Some(ty),
            _ => None,
        };
        if let (Some(operand), Some(expected)) = (operand, expected)
            && row.role == Role::Source
        {
            let fixed = matches!(row.ty, OperandType::Is(_));
            constant(operand, range, expected, fixed, out);
        }
    }
}

/// An untyped operand takes a floating-point constant for its bits where the type is the instruction's own, and
/// not where the operand has a `fixed` one.
fn constant(
    operand: &Operand,
    range: TextRange,
    expected: ScalarType,
    fixed: bool,
    out: &mut Vec<Diagnostic>,
) {
    let ty = expected.text();
    match (operand, expected.kind()) {
        (Operand::F32(_) | Operand::F64(_), kind)
            if matches!(kind, TypeKind::Signed | TypeKind::Unsigned | TypeKind::Pred)
                || fixed && kind == TypeKind::Bits =>
        {
            let message = format!("a floating-point constant in place of a `.{ty}`");
            let note = "write the value as an integer, or its bits in hexadecimal";
            out.push(Diagnostic::new(&CONSTANT_TYPE, range, message).note(note));
        }
        (Operand::Int(value), TypeKind::Float) => {
            let message = format!("an integer constant in place of a `.{ty}`");
            let note = format!("write it with a point or by its bits, as `{value}.0`");
            out.push(Diagnostic::new(&CONSTANT_TYPE, range, message).note(note));
        }
        _ => {}
    }
}
