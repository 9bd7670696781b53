//! Constants as operands: their kind and their range.

use ptx_backend::input::Operand;
use ptx_isa::{Class, Expected, ExpectedType, FormId, Role, ScalarType, TypeKind, Values};
use text_size::TextRange;

use super::operands::title;
use super::{Context, Statement};
use crate::declare_lint;
use crate::diagnostic::{Diagnostic, Findings};

declare_lint! {
    /// A constant does not match the type of the instruction.
    pub(crate) CONSTANT_TYPE = "E0304" "constant-type", Error, since "0.1.0"
}

declare_lint! {
    /// A constant is outside the range that the instruction accepts.
    pub(super) CONSTANT_RANGE = "E0310" "constant-range", Error, since "0.1.0"
}

pub(super) fn check(ctx: &Context<'_>, statement: &Statement<'_>, out: &mut Findings) {
    let Some(rows) = statement.rows else { return };
    for ((row, operand), &range) in rows.iter().zip(statement.operands).zip(statement.ranges) {
        if let (Some(Operand::Vector(elements)), Values::Each(each)) = (operand, row.values) {
            out.extend(
                elements.iter().zip(each).find_map(|(element, values)| field(row, element, *values, range)),
            );
        }
        if let Some(Operand::Vector(elements)) = operand
            && row.role == Role::Source
            && (row.ty != ExpectedType::Typed(ScalarType::F64) || is_scalar(statement, elements))
            && elements.iter().all(is_constant)
            && !is_number_factor(statement, row)
        {
            let ty = super::types::element_type(row, elements.len());
            let ty = if is_matrix(statement) { matrix_type(ty, elements) } else { ty };
            out.extend(elements.iter().find_map(|element| kind(element, "", range, ty)));
        } else if let Some(Operand::Vector(elements)) = operand
            && row.role == Role::Source
        {
            out.extend(beside_registers(ctx, statement, row, elements, range));
        }
        if let Some(operand @ (Operand::Int(_) | Operand::F32(_) | Operand::F64(_))) = operand
            && row.class.intersects(Class::IMMEDIATE)
        {
            if row.values != Values::Of(&[]) {
                out.extend(kind(operand, ctx.slice(range), range, row.ty));
            }
            out.extend(value(ctx, statement, row, operand, range));
        }
    }
}

/// Whether the vectors of an instruction are fragments of matrices.
fn is_matrix(statement: &Statement<'_>) -> bool {
    matches!(statement.form.mnemonic(), "mma" | "wmma" | "wgmma" | "stmatrix" | "tcgen05")
}

/// Whether ptxas reads a single element in braces like a scalar.
fn is_scalar(statement: &Statement<'_>, elements: &[Operand]) -> bool {
    statement.form.mnemonic() == "wmma" && elements.len() == 1
}

/// Whether an operand is a factor of bytes, which cannot consist only of constants.
fn is_number_factor(statement: &Statement<'_>, row: &Expected) -> bool {
    let is_factor = is_matrix(statement) && matches!(row.name, "a" | "b");
    is_factor && matches!(row.ty, ExpectedType::Integer(_)) && statement.form.id != FormId::WmmaMmaInt4
}

/// Reports a constant that cannot be an element of a vector with registers.
fn beside_registers(
    ctx: &Context<'_>,
    statement: &Statement<'_>,
    row: &Expected,
    elements: &[Operand],
    range: TextRange,
) -> Option<Diagnostic> {
    if !elements.iter().any(is_constant) {
        return None;
    }
    let form = statement.form;
    let is_number = is_number_factor(statement, row)
        && (elements.iter().all(is_constant) || form.mnemonic() == "wmma" && row.name == "b");
    // The first element determines the type of the vector.
    let is_untyped = row.ty == ExpectedType::Typed(ScalarType::F16x2)
        && matches!(form.mnemonic(), "atom" | "red" | "multimem")
        && is_constant(&elements[0]);
    if is_number || is_untyped {
        let what = if is_untyped {
            "the first element must be a register"
        } else {
            "the elements must be registers"
        };
        let note = format!("operand `{}` of `{}`: {what}", row.name, title(ctx, statement));
        let message = "expected a register, found a constant";
        return Some(Diagnostic::new(&CONSTANT_TYPE, range, message).note(note));
    }
    // Floating-point constants have 64 bits, unlike the registers.
    let is_stored = form.mnemonic() == "tcgen05" || form.id == FormId::WmmaStore;
    let is_double = elements.iter().any(|element| matches!(element, Operand::F64(_)));
    let is_wide = row.ty == ExpectedType::Typed(ScalarType::F64);
    (is_stored && is_double && !is_wide)
        .then(|| kind(&Operand::F64(0), "", range, ExpectedType::Typed(ScalarType::B32)))
        .flatten()
}

/// The type of the constants in a fragment of a matrix, independently of other vectors of its type.
fn matrix_type(ty: ExpectedType, elements: &[Operand]) -> ExpectedType {
    match (ty, elements.first()) {
        // Integers are signed, and no packed factor is signed.
        (ExpectedType::Typed(ScalarType::B32) | ExpectedType::Word, Some(Operand::Int(_))) => {
            ExpectedType::Typed(ScalarType::F16x2)
        }
        // Floating-point constants have 64 bits.
        (ExpectedType::Typed(ScalarType::F32), Some(Operand::F64(_))) => ExpectedType::Typed(ScalarType::B32),
        _ => ty,
    }
}

fn is_constant(operand: &Operand) -> bool {
    matches!(operand, Operand::Int(_) | Operand::F32(_) | Operand::F64(_))
}

/// Checks the kind of a constant. Untyped operands accept the bits of a float of their width.
fn kind(operand: &Operand, written: &str, range: TextRange, ty: ExpectedType) -> Option<Diagnostic> {
    let is_float = matches!(ty, ExpectedType::Typed(ty) if matches!(ty, ScalarType::F32 | ScalarType::F64));
    let (fits, ty) = match ty {
        ExpectedType::Typed(ty) | ExpectedType::AddressOf(ty, _) => {
            let fits = match (operand, ty.kind()) {
                (Operand::Int(_), _) => super::types::takes_integers(ty),
                (_, TypeKind::Float) => matches!(ty, ScalarType::F32 | ScalarType::F64),
                (Operand::F32(_), _) => ty == ScalarType::B32,
                _ => ty == ScalarType::B64,
            };
            (fits, format!("`.{}`", ty.text()))
        }
        ExpectedType::Integer(bits) => (matches!(operand, Operand::Int(_)), format!("a {bits}-bit integer")),
        ExpectedType::Pointer | ExpectedType::Length => {
            (matches!(operand, Operand::Int(_)), "an address".to_owned())
        }
        ExpectedType::OrDescriptor(_) => (matches!(operand, Operand::Int(_)), "a descriptor".to_owned()),
        ExpectedType::Word => return None,
        ExpectedType::Address(_) => (matches!(operand, Operand::Int(_)), "an address".to_owned()),
        ExpectedType::Coordinates(..) | ExpectedType::Free => return None,
    };
    if fits {
        return None;
    }
    Some(match operand {
        Operand::Int(value) => {
            let message = format!("expected {ty}, found an integer constant");
            let bits = written.strip_prefix("0x").or_else(|| written.strip_prefix("0X")).filter(|_| is_float);
            let spelled = bits.and_then(|digits| match (digits.len(), ty.as_str()) {
                (1..=8, "`.f32`") => Some(format!("0f{digits:0>8}")),
                (1..=16, "`.f64`") => Some(format!("0d{digits:0>16}")),
                _ => None,
            });
            if let Some(spelled) = spelled {
                let message = format!("expected {ty}, found an integer constant");
                let note = "write the bits of a float as `0f` and 8 hexadecimal digits, or `0d` and 16";
                let diagnostic = Diagnostic::new(&CONSTANT_TYPE, range, message).note(note);
                return Some(diagnostic.fix(format!("change to `{spelled}`"), range, spelled));
            }
            let note =
                format!("integer constants are not converted; write `{value}.0` or the bits of the float");
            let diagnostic = Diagnostic::new(&CONSTANT_TYPE, range, message).note(note);
            let digits = written.strip_prefix('-').unwrap_or(written);
            // A leading zero makes it octal.
            let is_decimal =
                digits == "0" || !digits.starts_with('0') && digits.bytes().all(|byte| byte.is_ascii_digit());
            if is_float && is_decimal && !written.is_empty() {
                diagnostic.sure_fix(format!("change to `{written}.0`"), TextRange::empty(range.end()), ".0")
            } else {
                diagnostic
            }
        }
        _ => {
            let message = format!("expected {ty}, found a floating-point constant");
            let note = "floating-point constants are not converted; write an integer or the bits of the float in hexadecimal";
            let diagnostic = Diagnostic::new(&CONSTANT_TYPE, range, message).note(note);
            match written.strip_suffix(".0") {
                Some(whole) => diagnostic.fix(format!("change to `{whole}`"), range, whole),
                None => diagnostic,
            }
        }
    })
}

fn value(
    ctx: &Context<'_>,
    statement: &Statement<'_>,
    row: &Expected,
    operand: &Operand,
    range: TextRange,
) -> Option<Diagnostic> {
    let (values, is_low) = match row.values {
        Values::Low(&values) => (values, true),
        values => (values, false),
    };
    let counted = |value: i64| if is_low { i64::from(value as u32) } else { value };
    let fits = match (operand, values) {
        (Operand::Int(value), Values::UpTo(name)) => {
            constant_of(statement, name).is_none_or(|most| (0..=counted(most)).contains(&counted(*value)))
        }
        (Operand::Int(value), values) => values.contains(counted(*value)),
        // The bits of a 32-bit float are accepted where no constant is intended.
        (Operand::F64(_), Values::Of([])) => row.ty != ExpectedType::Word,
        (Operand::F32(bits), Values::Fraction) => is_fraction(f64::from(f32::from_bits(*bits))),
        (Operand::F64(bits), Values::Fraction) => is_fraction(f64::from_bits(*bits)),
        _ => true,
    };
    if fits {
        return None;
    }
    let found = match operand {
        Operand::Int(value) => value.to_string(),
        Operand::F32(bits) => f32::from_bits(*bits).to_string(),
        Operand::F64(bits) => f64::from_bits(*bits).to_string(),
        _ => String::new(),
    };
    let message = match row.values {
        Values::Of([]) => "expected a register, found a constant".to_owned(),
        values => format!("{found} is out of range for `{}`: expected {values}", row.name),
    };
    let diagnostic = Diagnostic::new(&CONSTANT_RANGE, range, message);
    Some(match row.values {
        Values::Of([]) => diagnostic.note(format!(
            "operand `{}` of `{}` must be a register",
            row.name,
            title(ctx, statement)
        )),
        Values::Of([only]) => diagnostic.fix(format!("change to `{only}`"), range, only.to_string()),
        _ => diagnostic,
    })
}

/// Checks an element of a vector of constants.
fn field(row: &Expected, element: &Operand, values: Values, range: TextRange) -> Option<Diagnostic> {
    let message = match element {
        Operand::Reg(_) => return None,
        Operand::Int(value) if values.contains(*value) => return None,
        Operand::Int(value) => {
            format!("{value} is out of range for an element of `{}`: expected {values}", row.name)
        }
        _ => format!("`{}` must be a vector of integer constants", row.name),
    };
    Some(Diagnostic::new(&CONSTANT_RANGE, range, message))
}

fn is_fraction(value: f64) -> bool {
    value > 0.0 && value <= 1.0
}

/// The value of another operand of the statement, if it is a constant.
fn constant_of(statement: &Statement<'_>, name: &str) -> Option<i64> {
    let index = statement.rows?.iter().position(|row| row.name == name)?;
    match statement.operands.get(index)? {
        Some(Operand::Int(value)) => Some(*value),
        _ => None,
    }
}
