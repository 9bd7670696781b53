//! The number of elements of vector operands.

use ptx_backend::input::Operand;
use ptx_isa::{Class, Expected, ExpectedLanes, FormId};
use text_size::TextRange;

use super::{Context, Statement};
use crate::declare_lint;
use crate::diagnostic::{Diagnostic, Findings};

declare_lint! {
    /// A vector operand has the wrong number of elements.
    pub(crate) VECTOR_SIZE = "E0307" "vector-size", Error, since "0.1.0"
}

pub(super) fn check(ctx: &Context<'_>, statement: &Statement<'_>, out: &mut Findings) {
    let Some(rows) = statement.rows else { return };
    // `mov` without a vector modifier packs or unpacks, but not both.
    if statement.form.id == FormId::Mov
        && let [Some(Operand::Vector(_)), Some(Operand::Vector(_))] = statement.operands
    {
        let message = "cannot copy a vector to a vector without `.v2` or `.v4`";
        let note =
            "without a vector modifier, `mov` packs elements into one register or unpacks one register";
        out.push(Diagnostic::new(&VECTOR_SIZE, statement.ranges[1], message).note(note));
    }
    counted(ctx, statement, out);
    for ((row, operand), &range) in rows.iter().zip(statement.operands).zip(statement.ranges) {
        if !row.class.intersects(Class::VECTOR.or(Class::TEXTURE)) {
            continue;
        }
        let operand = match operand {
            Some(Operand::Pair(pair)) => Some(&pair.0),
            operand => operand.as_ref(),
        };
        let found = match operand {
            Some(Operand::Vector(elements)) => elements.len(),
            Some(Operand::List(parts)) => match parts.last() {
                Some(Operand::Vector(elements)) => elements.len(),
                _ if matches!(row.lanes, ExpectedLanes::OrBare(_)) => continue,
                _ => 1,
            },
            Some(Operand::Sink) | None => continue,
            Some(_) if matches!(row.lanes, ExpectedLanes::OrBare(_)) => continue,
            // A single element may be written without braces.
            Some(_) => 1,
        };
        if row.lanes == ExpectedLanes::Any && !(found.is_power_of_two() && found <= 8) {
            let message = format!("a vector cannot have {found} elements");
            let note = "vectors have 1, 2, 4 or 8 elements";
            out.push(Diagnostic::new(&VECTOR_SIZE, range, message).note(note));
        } else if !row.lanes.contains(found) || is_braced_one(row, operand) {
            let message = match row.lanes {
                ExpectedLanes::Exactly(1) => {
                    format!("expected one element, found {found}; the instruction has no `.v{found}`")
                }
                ExpectedLanes::OrBare(&[]) => {
                    format!("expected a scalar, found a vector of {found} elements")
                }
                lanes => format!("expected a vector of {}, found {found}", describe(lanes)),
            };
            let diagnostic = Diagnostic::new(&VECTOR_SIZE, range, message);
            let tells = if row.class.intersects(Class::TEXTURE) { is_dimension } else { is_count };
            let count = statement.suffixes.iter().find(|&&suffix| tells(ctx.slice(suffix)));
            out.push(match count {
                Some(&suffix) if row.class.intersects(Class::TEXTURE) => {
                    let note = format!("`{}` determines the number of coordinates", ctx.slice(suffix));
                    diagnostic.related(suffix, "number of coordinates").note(note)
                }
                Some(&suffix) => diagnostic
                    .related(suffix, "number of elements")
                    .note(format!("`{}` determines the number of elements", ctx.slice(suffix))),
                None => diagnostic.note(format!(
                    "`{}` determines the number of elements of `{}`",
                    ctx.slice(statement.name),
                    row.name
                )),
            });
        }
    }
}

/// Checks `.v4` of a matrix product, which is not part of its opcode: every vector has that number of elements and at
/// most 128 bits.
fn counted(ctx: &Context<'_>, statement: &Statement<'_>, out: &mut Findings) {
    if !matches!(statement.form.mnemonic(), "mma" | "wmma" | "wgmma") {
        return;
    }
    let named = |&&suffix: &&TextRange| matches!(ctx.slice(suffix), ".v2" | ".v4" | ".v8");
    let Some(&suffix) = statement.suffixes.iter().find(named) else { return };
    let count: u32 = ctx.slice(suffix)[2..].parse().unwrap_or(0);
    let bits = statement.opcode.ty(0).map_or(0, |ty| ty.bits() * count);
    let fits = |operand: &Option<Operand>| match operand {
        Some(Operand::Vector(elements)) => elements.len() == count as usize,
        _ => true,
    };
    if bits > 128 || !statement.operands.iter().all(fits) {
        let message = format!("expected all vectors to have {count} elements and at most 128 bits");
        out.push(Diagnostic::new(&VECTOR_SIZE, suffix, message));
    }
}

/// Whether there is one element in braces where a longer vector may appear, or a register without braces.
fn is_braced_one(row: &Expected, operand: Option<&Operand>) -> bool {
    matches!(row.lanes, ExpectedLanes::Of(counts) if counts.len() > 1)
        && row.class.intersects(Class::REGISTER)
        && matches!(operand, Some(Operand::Vector(elements)) if elements.len() == 1)
}

/// `.2d`
fn is_dimension(suffix: &str) -> bool {
    matches!(suffix, ".1d" | ".2d" | ".3d" | ".4d" | ".5d")
}

/// `.v4` or `.x4`
fn is_count(suffix: &str) -> bool {
    let digits = suffix.strip_prefix(".v").or_else(|| suffix.strip_prefix(".x"));
    digits.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

fn describe(lanes: ExpectedLanes) -> String {
    match lanes {
        ExpectedLanes::Exactly(1) | ExpectedLanes::Any => "1 element".to_owned(),
        ExpectedLanes::Exactly(count) => format!("{count} elements"),
        ExpectedLanes::Of(counts) | ExpectedLanes::OrBare(counts) => {
            let counts: Vec<String> = counts.iter().map(u8::to_string).collect();
            match counts.as_slice() {
                [first @ .., last] if !first.is_empty() => format!("{} or {last} elements", first.join(", ")),
                counts => format!("{} elements", counts.concat()),
            }
        }
    }
}
