//! Brackets with several parts: tensors with their maps, and addresses in the memory of another GPU.

use ptx_backend::input::Operand;
use ptx_isa::{Expected, ExpectedType, Mod, Part, ScalarType, TypeKind};
use text_size::TextRange;

use super::operands::is_sum;
use super::spaces::tensor_map;
use super::{Context, Statement, lints};
use crate::diagnostic::Diagnostic;

/// Checks `[map, …, {coordinates}]` or `[endpoint, …, offset]`; the table describes the parts in the middle.
pub(super) fn check(
    ctx: &Context<'_>,
    statement: &Statement<'_>,
    row: &Expected,
    parts: &[Operand],
    moved: bool,
    range: TextRange,
) -> Option<Diagnostic> {
    let is_tensor = row.ty == ExpectedType::Integer(32);
    let head = match parts {
        [map, head @ .., Operand::Vector(_)] if is_tensor => {
            if let Some(found) = tensor_map(ctx, map, moved, range) {
                return Some(found);
            }
            head
        }
        _ if is_tensor => return Some(no_tensor(range)),
        // The offset is a register without an addend.
        [head @ .., Operand::Reg(_)] if !is_sum(ctx.slice(range).trim_end_matches(']')) => head,
        _ => return Some(wrong(row, range)),
    };
    let dimensions = statement.opcode.mods().find_map(dimensions).unwrap_or(0);
    let fits = head.len() == row.head.len()
        && head.iter().zip(row.head).all(|(part, expected)| fits(ctx, part, *expected, dimensions));
    (!fits).then(|| wrong(row, range))
}

pub(super) fn no_tensor(range: TextRange) -> Diagnostic {
    let message = "expected a tensor map followed by coordinates in braces";
    let note = "the tensor map is a variable or a register that holds its address, without an offset";
    Diagnostic::new(&lints::ADDRESS, range, message).note(note)
}

fn wrong(row: &Expected, range: TextRange) -> Diagnostic {
    let is_tensor = row.ty == ExpectedType::Integer(32);
    let (first, last) = if is_tensor {
        (Some("a tensor map".to_owned()), "the coordinates in braces")
    } else {
        (None, "a register with a 64-bit offset")
    };
    let middle = row.head.iter().map(|part| match part {
        Part::Integer(bits) => format!("a register with a {bits}-bit integer"),
        Part::Sizes => "the size of each dimension in braces".to_owned(),
        Part::Strides => "the stride of each dimension except the first in braces".to_owned(),
    });
    let parts: Vec<String> = first.into_iter().chain(middle).collect();
    let message = format!("expected {} and {last} in brackets", parts.join(", "));
    Diagnostic::new(&lints::ADDRESS, range, message)
}

fn fits(ctx: &Context<'_>, part: &Operand, expected: Part, dimensions: usize) -> bool {
    let integer =
        |ty: ScalarType| matches!(ty.kind(), TypeKind::Bits | TypeKind::Unsigned | TypeKind::Signed);
    match (expected, part) {
        (Part::Integer(bits), Operand::Reg(register)) => {
            let ty = ctx.register_type(*register);
            integer(ty) && ty.bits() == bits
        }
        (Part::Sizes, Operand::Vector(elements)) => {
            let is_size = |ty: ScalarType| integer(ty) && matches!(ty.bits(), 8 | 16);
            elements.len() == dimensions && elements.iter().all(|element| each(ctx, element, is_size))
        }
        (Part::Strides, Operand::Vector(elements)) => {
            let is_stride = |ty: ScalarType| ty.bits() == 32;
            elements.len() + 1 == dimensions && elements.iter().all(|element| each(ctx, element, is_stride))
        }
        _ => false,
    }
}

/// Whether an element is a constant, or a register for whose type `fits` is true.
fn each(ctx: &Context<'_>, element: &Operand, fits: impl Fn(ScalarType) -> bool) -> bool {
    match element {
        Operand::Reg(register) => fits(ctx.register_type(*register)),
        element => matches!(element, Operand::Int(_)),
    }
}

/// The number of tensor dimensions that a modifier names.
fn dimensions(modifier: Mod) -> Option<usize> {
    Some(match modifier {
        Mod::D1d => 1,
        Mod::D2d => 2,
        Mod::D3d => 3,
        Mod::D4d => 4,
        Mod::D5d => 5,
        _ => return None,
    })
}
