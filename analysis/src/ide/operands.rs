//! Describes operands in words: of a form for the reference, of one instruction for hovers.

use std::fmt::Write as _;

use ptx_isa::{
    Class, Column, Expected, ExpectedLanes, ExpectedType, Form, Lanes, Opcode, Operand, OperandType,
    Presence, Role, ScalarType, Then, Values, Window, form, forms_of,
};

use crate::check::{describe_class, listed};
use crate::ide::reference::any_of;

/// Whether the operand is read or written; empty for an address, because this depends on the instruction.
fn access(role: Role, class: Class) -> &'static str {
    match role {
        _ if class == Class::ADDRESS => "",
        Role::Destination => "written",
        Role::Source => "read",
        Role::Both => "read and written",
    }
}

/// The type of an operand in a row, in words; empty if it has none.
fn type_words(form: &Form, ty: OperandType) -> String {
    let suffix = |position: u8| match form.types.get(usize::from(position)).map(|set| set.iter()) {
        Some(mut set) => match (set.next(), set.next()) {
            (Some(only), None) => format!("`.{}`", only.text()),
            _ if form.types.len() == 1 => "instruction type".to_owned(),
            _ => format!("type {}", position + 1),
        },
        None => "instruction type".to_owned(),
    };
    match ty {
        OperandType::Suffix(i) => suffix(i),
        OperandType::Wide(i) => format!("{}, or twice that width with `.wide`", suffix(i)),
        OperandType::Is(ty) => format!("`.{}`", ty.text()),
        OperandType::Integer(bits) => format!("{bits}-bit integer"),
        OperandType::IntegerLike(i) => format!("integer as wide as {}", suffix(i)),
        OperandType::Pointer => "32-bit or 64-bit integer".to_owned(),
        OperandType::Length => "`.u32`, `.s32` or 64-bit integer".to_owned(),
        OperandType::Word => "`.b32`".to_owned(),
        OperandType::Fragment(_) => "matrix fragment".to_owned(),
        OperandType::FragmentOrDescriptor(_) => "matrix fragment, or 64-bit matrix descriptor".to_owned(),
        OperandType::Coordinates(i) => format!("coordinates of {}", suffix(i)),
        OperandType::AddressOf(i, _) => format!("{}, or the address of a variable", suffix(i)),
        OperandType::Address(base) if base.window == Window::Tensor => {
            "32-bit tensor memory address".to_owned()
        }
        OperandType::Address(_) => String::new(),
        OperandType::Free => String::new(),
    }
}

fn lanes_words(lanes: Lanes) -> String {
    let counts = |counts: &[u8]| {
        let counts: Vec<String> = counts.iter().map(u8::to_string).collect();
        format!("{} elements", listed(&counts, "or"))
    };
    match lanes {
        Lanes::Any | Lanes::Bf16Pair | Lanes::Of(&[1]) | Lanes::OrBare(&[]) => String::new(),
        Lanes::Of(of) => counts(of),
        Lanes::OrBare(of) => format!("{} in braces", counts(of)),
        Lanes::Named(1) => "as many elements as the modifier (`.v2`, `.x4`) states".to_owned(),
        Lanes::Named(most) => {
            format!("as many elements as the modifier (`.v2`, `.x4`) states; {most} without one")
        }
        Lanes::Sparse(_) => "number of elements depends on count, types and sparsity".to_owned(),
        Lanes::Fragment(_) => "number of elements depends on shape and type".to_owned(),
    }
}

fn presence_words(presence: Presence) -> Option<String> {
    Some(match presence {
        Presence::Always => return None,
        Presence::Optional => "optional".to_owned(),
        Presence::Never => "only with certain modifiers".to_owned(),
        Presence::With(with) => format!("only with {}", any_of(with)),
        Presence::Without(without) => format!("not with {}", any_of(without)),
        Presence::OptionalWith(with) => format!("optional with {}", any_of(with)),
    })
}

/// A row of the table of operands: role, kinds, type and limits.
fn cells(form: &Form, operand: &Operand) -> String {
    let class = operand.documented();
    let what = if class == Class::NONE { String::new() } else { describe_class(class) };
    let mut types = vec![type_words(form, operand.ty)];
    if class.intersects(Class::VECTOR) {
        types.push(lanes_words(operand.lanes));
    }
    types.retain(|part| !part.is_empty());
    let mut limits: Vec<String> = presence_words(operand.presence).into_iter().collect();
    if operand.values != Values::Any && class.intersects(Class::IMMEDIATE) {
        limits.push(format!("constants: {}", operand.values));
    }
    for rule in form.rules {
        if let Then::Operand(name, Column::Values(values)) = rule.then
            && name == operand.name
            && !rule.when.any.is_empty()
        {
            limits.push(format!("with {}: {values}", any_of(rule.when.any)));
        }
    }
    let is_varied = form.rules.iter().any(|rule| {
        matches!(rule.then, Then::Operand(name, Column::Class(_) | Column::Type(_) | Column::Lanes(_)) if name == operand.name)
    });
    if is_varied {
        limits.push("depends on modifiers and types".to_owned());
    }
    format!("{} | {what} | {} | {}", access(operand.role, class), types.join("; "), limits.join("; "))
}

/// The operands of all forms of a mnemonic as a table, with equal ones in one row. Empty if no form has operands.
pub(super) fn table(mnemonic: &str) -> String {
    let forms = forms_of(mnemonic);
    let mut rows: Vec<(String, Vec<usize>)> = Vec::new();
    for (number, &id) in forms.iter().enumerate() {
        let form = form(id);
        for operand in form.operands {
            let row = format!("`{}` | {}", operand.name, cells(form, operand));
            match rows.iter_mut().find(|(known, _)| *known == row) {
                Some((_, numbers)) => numbers.push(number + 1),
                None => rows.push((row, vec![number + 1])),
            }
        }
    }
    if rows.is_empty() {
        return String::new();
    }
    let mut out = String::from(
        "| operand | access | accepts | type | restrictions | forms |\n|---|---|---|---|---|---|\n",
    );
    for (row, mut numbers) in rows {
        numbers.dedup();
        let all = numbers.len() == forms.len();
        let numbers: Vec<String> = numbers.iter().map(usize::to_string).collect();
        let numbers = if all { "all".to_owned() } else { numbers.join(", ") };
        let row = row.replace("d|p", "d\\|p").replace("_|p", "_\\|p");
        let _ = writeln!(out, "| {row} | {numbers} |");
    }
    out
}

fn expected_type(opcode: &Opcode, ty: ExpectedType) -> String {
    let is_half =
        |ty| matches!(ty, ScalarType::F16 | ScalarType::F16x2 | ScalarType::Bf16 | ScalarType::Bf16x2);
    match ty {
        // Assemblers treat fragments of narrow floats and of `.tf32` like those of halves; the manual says `.b32`.
        ExpectedType::Typed(ScalarType::F16x2 | ScalarType::Bf16x2) if !opcode.types().any(is_half) => {
            "`.b32`".to_owned()
        }
        ExpectedType::Typed(ty) => format!("`.{}`", ty.text()),
        ExpectedType::Integer(bits) => format!("{bits}-bit integer"),
        ExpectedType::Pointer => "32-bit or 64-bit integer".to_owned(),
        ExpectedType::Length => "`.u32`, `.s32` or 64-bit integer".to_owned(),
        ExpectedType::Word => "`.b32`".to_owned(),
        ExpectedType::AddressOf(ty, _) => format!("`.{}`, or the address of a variable", ty.text()),
        ExpectedType::OrDescriptor(ty) => format!("`.{}`, or 64-bit matrix descriptor", ty.text()),
        ExpectedType::Coordinates(ty, _) => format!("coordinates of type `.{}`", ty.text()),
        ExpectedType::Address(target) => match (target.base.window, target.space.text()) {
            (Window::Tensor, _) => "32-bit tensor memory address".to_owned(),
            (Window::Unchecked, _) => String::new(),
            (_, "") => "generic".to_owned(),
            (_, space) => format!("in `.{space}`"),
        },
        ExpectedType::Free => String::new(),
    }
}

/// An operand in a syntax line: `d`, `[a]`, `c?`.
pub(super) fn spelled(operand: &Expected) -> String {
    let is_address = operand.documented() == Class::ADDRESS;
    let name = if is_address { format!("[{}]", operand.name) } else { operand.name.to_owned() };
    if operand.optional { format!("{name}?") } else { name }
}

/// The operands of one instruction as a list, with what each of them may be.
pub(super) fn list(opcode: &Opcode, operands: &[Expected]) -> String {
    let mut out = String::new();
    for operand in operands {
        let class = operand.documented();
        let mut parts = vec![access(operand.role, class).to_owned()];
        if operand.optional {
            parts.push("optional".to_owned());
        }
        if class != Class::NONE {
            parts.push(describe_class(class));
        }
        parts.push(match operand.ty {
            ExpectedType::Integer(bits) if class == Class::TEXTURE && operand.head.is_empty() => {
                format!("coordinates: {bits}-bit integers")
            }
            ty => expected_type(opcode, ty),
        });
        if class.intersects(Class::VECTOR) {
            match operand.lanes {
                ExpectedLanes::Exactly(count) if count > 1 => parts.push(format!("{count} elements")),
                ExpectedLanes::Of(counts) | ExpectedLanes::OrBare(counts) if counts.len() > 1 => {
                    let counts: Vec<String> = counts.iter().map(u8::to_string).collect();
                    parts.push(format!("{} elements", listed(&counts, "or")));
                }
                _ => {}
            }
        }
        if operand.values != Values::Any && class.intersects(Class::IMMEDIATE) {
            parts.push(format!("constants: {}", operand.values));
        }
        parts.retain(|part| !part.is_empty());
        let _ = writeln!(out, "- `{}`: {}", operand.name, parts.join("; "));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn operands_of_forms() {
        expect![[r#"
            | operand | access | accepts | type | restrictions | forms |
            |---|---|---|---|---|---|
            | `d` | written | a register or `_` | `.b32` | depends on modifiers and types | all |
            | `a` | read | a register or a constant | `.b32` |  | all |
            | `b` | read | a register or a constant | `.b32` |  | all |
            | `c` | read | a register or a constant | `.b32` |  | all |
            | `immLut` | read | a constant | 32-bit integer |  | all |
            | `q` | read | a predicate or a constant | `.pred` | only with `.and` or `.or` | all |
        "#]]
        .assert_eq(&table("lop3"));
        expect![[r#"
            | operand | access | accepts | type | restrictions | forms |
            |---|---|---|---|---|---|
            | `d` | written | a register | instruction type, or twice that width with `.wide` |  | 1 |
            | `a` | read | a register or a constant | instruction type |  | 1, 2 |
            | `b` | read | a register or a constant | instruction type |  | 1, 2 |
            | `c` | read | a register or a constant | instruction type, or twice that width with `.wide` |  | 1 |
            | `d` | written | a register | instruction type |  | 2 |
            | `c` | read | a register or a constant | instruction type |  | 2 |
            | `d` | written | a register | `.f32` |  | 3 |
            | `a` | read | a register or a constant | `.f32` |  | 3 |
            | `b` | read | a register or a constant | `.f32` |  | 3 |
            | `c` | read | a register or a constant | `.f32` |  | 3 |
            | `d` | written | a register | `.f64` |  | 4 |
            | `a` | read | a register or a constant | `.f64` |  | 4 |
            | `b` | read | a register or a constant | `.f64` |  | 4 |
            | `c` | read | a register or a constant | `.f64` |  | 4 |
        "#]]
        .assert_eq(&table("mad"));
    }

    #[test]
    fn only_what_the_manual_mentions_is_described() {
        let words: Vec<&str> =
            "async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes".split('.').collect();
        let opcode = ptx_isa::resolve("cp", &words).unwrap();
        expect![[r#"
            - `dstMem`: an address in brackets; in `.shared`
            - `tensorMap`: read; a texture, surface or tensor map in brackets; coordinates: 32-bit integers
            - `mbar`: an address in brackets; in `.shared`
        "#]]
        .assert_eq(&list(&opcode, &ptx_isa::signature(&opcode).operands));
        let opcode = ptx_isa::resolve("movmatrix", &["sync", "aligned", "m8n8", "trans", "b16"]).unwrap();
        expect![[r#"
            - `d`: written; a register; `.b32`
            - `a`: read; a register; `.b32`
        "#]]
        .assert_eq(&list(&opcode, &ptx_isa::signature(&opcode).operands));
    }

    #[test]
    fn operands_of_an_instruction() {
        let opcode = ptx_isa::resolve("ld", &["global", "v4", "f32"]).unwrap();
        expect![[r#"
            - `d`: written; a register or a vector in braces; `.f32`; 4 elements
            - `a`: an address in brackets; in `.global`
        "#]]
        .assert_eq(&list(&opcode, &ptx_isa::signature(&opcode).operands));
        let words = ["sync", "aligned", "m16n8k8", "row", "col", "f32", "tf32", "tf32", "f32"];
        let opcode = ptx_isa::resolve("mma", &words).unwrap();
        expect![[r#"
            - `d`: written; a vector in braces; `.f32`; 4 elements
            - `a`: read; a vector in braces; `.b32`; 4 elements
            - `b`: read; a vector in braces; `.b32`; 2 elements
            - `c`: read; a vector in braces; `.f32`; 4 elements
        "#]]
        .assert_eq(&list(&opcode, &ptx_isa::signature(&opcode).operands));
    }
}
