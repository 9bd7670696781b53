//! Agreement of register types with the instruction's types.
//!
//! The rules are those of "Operand Type Checking" and "Operand Size Exceeding Instruction-Type Size" in the
//! manual, as the vendor's assembler applies them: an untyped instruction takes registers of any kind, an
//! integer one those without a float, a float one those of its own type or untyped; widths are equal, except
//! that loads, stores and conversions take wider registers. A packed pair of halves counts as an integer.

use ptx_backend::input::Operand;
use ptx_isa::{Mod, OperandType, ScalarType, TypeKind};
use text_size::TextRange;

use super::{Context, Statement};
use crate::declare_lint;
use crate::diagnostic::Diagnostic;

declare_lint! {
    /// A register's type does not fit the instruction's.
    pub(super) OPERAND_TYPE = "E0303" "operand-type", Error, since "0.1.0"
}

pub(super) fn check(ctx: &Context<'_>, statement: &Statement<'_>, out: &mut Vec<Diagnostic>) {
    let Some(rows) = statement.rows else { return };
    let mnemonic = statement.form.mnemonic();
    let wider = matches!(mnemonic, "ld" | "ldu" | "st" | "cvt" | "suld" | "sust");
    let element_width = if mnemonic == "mov" { ElementWidth::Share } else { ElementWidth::Whole };
    for ((row, operand), &range) in rows.iter().zip(statement.operands).zip(statement.ranges) {
        let Some(operand) = operand else { continue };
        let expected = match row.ty {
            OperandType::Suffix(i) => statement.opcode.ty(usize::from(i)),
            OperandType::Wide(i) => statement.opcode.ty(usize::from(i)).map(|ty| widened(ty, statement)),
            OperandType::Is(ty) => Some(ty),
            OperandType::Address => {
                address(ctx, operand, range, out);
                None
            }
            OperandType::Bits(_) | OperandType::Free => None,
        };
        if let Some(expected) = expected {
            operand_type(ctx, operand, range, expected, wider, element_width, out);
        }
    }
}

/// A register that holds an address, without brackets.
fn address(ctx: &Context<'_>, operand: &Operand, range: TextRange, out: &mut Vec<Diagnostic>) {
    if let Operand::Reg(register) = operand {
        let ty = ctx.register_type(*register);
        if matches!(ty.kind(), TypeKind::Float | TypeKind::Pred) {
            let message = format!("`{}` is `.{}`, expected an address", ctx.slice(range), ty.text());
            out.push(Diagnostic::new(&OPERAND_TYPE, range, message));
        }
    }
}

/// How the type of an instruction relates to the elements of a vector operand.
#[derive(Clone, Copy)]
enum ElementWidth {
    /// Each element has the type.
    Whole,
    /// The elements share the bits of the type.
    Share,
}

fn untyped(bits: u32) -> Option<ScalarType> {
    Some(match bits {
        8 => ScalarType::B8,
        16 => ScalarType::B16,
        32 => ScalarType::B32,
        64 => ScalarType::B64,
        _ => return None,
    })
}

fn widened(ty: ScalarType, statement: &Statement<'_>) -> ScalarType {
    if !statement.opcode.has(Mod::Wide) {
        return ty;
    }
    match ty {
        ScalarType::U16 => ScalarType::U32,
        ScalarType::S16 => ScalarType::S32,
        ScalarType::U32 => ScalarType::U64,
        ScalarType::S32 => ScalarType::S64,
        other => other,
    }
}

fn operand_type(
    ctx: &Context<'_>,
    operand: &Operand,
    range: TextRange,
    expected: ScalarType,
    wider: bool,
    element_width: ElementWidth,
    out: &mut Vec<Diagnostic>,
) {
    match operand {
        Operand::Reg(register) | Operand::NotPred(register) => {
            let found = ctx.register_type(*register);
            if !fits(expected, found, wider) {
                let name = ctx.slice(range);
                let message =
                    format!("`{name}` is `.{}`, expected {}", found.text(), describe(expected, wider));
                out.push(Diagnostic::new(&OPERAND_TYPE, range, message));
            }
        }
        Operand::Vector(elements) => {
            // `mov` packs and unpacks; everywhere else each element has the instruction's type.
            let expected = match (element_width, elements.len() as u32) {
                (ElementWidth::Whole, _) | (_, 0) => expected,
                (ElementWidth::Share, count) => match untyped(expected.bits() / count) {
                    Some(share) => share,
                    None => return,
                },
            };
            for element in elements {
                // Elements have no ranges of their own; the first wrong one stands for all.
                let before = out.len();
                operand_type(ctx, element, range, expected, wider, ElementWidth::Whole, out);
                if out.len() > before {
                    break;
                }
            }
        }
        Operand::Pair(pair) => {
            operand_type(ctx, &pair.0, range, expected, wider, element_width, out);
            // The second result of every such instruction is a predicate.
            operand_type(ctx, &pair.1, range, ScalarType::Pred, wider, element_width, out);
        }
        _ => {}
    }
}

/// Whether a register of type `found` can hold a value of the instruction type `expected`.
fn fits(expected: ScalarType, found: ScalarType, wider: bool) -> bool {
    use TypeKind::*;
    let integer = |kind| matches!(kind, Bits | Unsigned | Signed | Packed);
    let same_width = found.bits() == expected.bits();
    let width = same_width || wider && found.bits() > expected.bits();
    match (expected.kind(), found.kind()) {
        // The assembler lets a packed pair pass for a predicate.
        (Pred, kind) => kind == Pred || kind == Packed,
        (_, Pred) => false,
        (Opaque, _) | (_, Opaque) => found.bits() == 64,
        (Bits, _) => width,
        (Unsigned | Signed, kind) => width && integer(kind),
        (Float, Float) => found == expected,
        (Float, Bits) => width,
        (Float, _) => false,
        (Packed, Bits | Packed) => width,
        (Packed, _) => false,
    }
}

fn describe(expected: ScalarType, wider: bool) -> String {
    let bits = expected.bits();
    let or_wider = if wider { " or more" } else { "" };
    match expected.kind() {
        TypeKind::Pred => "a predicate".to_owned(),
        TypeKind::Bits => format!("a register of {bits} bits{or_wider}"),
        TypeKind::Unsigned | TypeKind::Signed => format!("an integer register of {bits} bits{or_wider}"),
        _ => format!("`.{}` or `.b{bits}`", expected.text()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ScalarType::*;

    #[test]
    fn as_the_assembler_has_it() {
        assert!(fits(U32, S32, false) && fits(S32, F16x2, false) && !fits(U32, F32, false));
        assert!(fits(B32, F32, false) && fits(F32, B32, false) && !fits(F32, U32, false));
        assert!(fits(F32, B64, true) && !fits(F32, F64, true) && !fits(F32, B64, false));
        assert!(fits(U8, B128, true) && !fits(U8, F32, true) && fits(B8, F32, true));
        assert!(fits(F16x2, B32, false) && !fits(F16x2, U32, false));
        assert!(!fits(B32, Pred, false) && !fits(Pred, B32, false));
    }
}
