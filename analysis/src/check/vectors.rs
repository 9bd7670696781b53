//! The number of elements of vector operands.

use ptx_backend::input::Operand;
use ptx_isa::{Class, Mod};

use super::{Context, Statement};
use crate::declare_lint;
use crate::diagnostic::Diagnostic;

declare_lint! {
    /// A vector operand has another number of elements than the instruction says.
    pub(super) VECTOR_SIZE = "E0307" "vector-size", Error, since "0.1.0"
}

pub(super) fn check(_: &Context<'_>, statement: &Statement<'_>, out: &mut Vec<Diagnostic>) {
    // Surface accesses and `st.async` take fewer and more elements than their names say.
    if !matches!(statement.form.mnemonic(), "ld" | "ldu" | "st") || statement.opcode.has(Mod::Async) {
        return;
    }
    let Some(rows) = statement.rows else { return };
    let lanes = statement.opcode.mods().find_map(|m| match m {
        Mod::V2 => Some(2),
        Mod::V4 => Some(4),
        Mod::V8 => Some(8),
        _ => None,
    });
    for ((row, operand), &range) in rows.iter().zip(statement.operands).zip(statement.ranges) {
        if !row.class.intersects(Class::VECTOR) {
            continue;
        }
        let found = match operand {
            Some(Operand::Vector(elements)) => elements.len(),
            // One element may stand without braces.
            Some(_) => 1,
            None => continue,
        };
        let expected = lanes.unwrap_or(1);
        if found != expected {
            let plural = if expected == 1 { "" } else { "s" };
            let message = match lanes {
                Some(_) => format!("expected a vector of {expected} element{plural}, found {found}"),
                None => format!("found {found} elements, but the instruction has no `.v{found}`"),
            };
            out.push(Diagnostic::new(&VECTOR_SIZE, range, message));
        }
    }
}
