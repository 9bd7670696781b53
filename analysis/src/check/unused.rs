//! Finds unused names.
//!
//! Compilers declare more registers than they use, and labels without branches, so these lints are off by default.

use ptx_backend::input::Operand;
use ptx_isa::Facts;
use text_size::TextRange;

use super::Body;
use crate::declare_lint;
use crate::diagnostic::{Diagnostic, Findings};
use crate::scope::{DeclKind, Entity};
use crate::source_map::Usage;

declare_lint! {
    /// No branch targets this label.
    pub(crate) UNUSED_LABEL = "W0501" "unused-label", Allow, since "0.1.0"
}

declare_lint! {
    /// A register is declared but never used.
    pub(crate) UNUSED_REGISTER = "W0502" "unused-register", Allow, since "0.1.0"
}

declare_lint! {
    /// A register is written but never read.
    pub(super) UNREAD_REGISTER = "W0522" "unread-register", Allow, since "0.1.0"
}

pub(super) fn check(body: &Body<'_>, out: &mut Findings) {
    if body.flow().is_none() || !body.extras.unused {
        return;
    }
    let mut used = vec![false; body.map.declarations.len()];
    for occurrence in body.map.occurrences.iter().filter(|o| o.access != Usage::Declaration) {
        if let Some(declaration) = body.map.declaration_of(occurrence.entity) {
            used[declaration.0 as usize] = true;
        }
    }
    unread(body, out);
    for (declaration, _) in body.map.declarations.iter().zip(used).filter(|(_, used)| !used) {
        let name = &body.text[declaration.range];
        let diagnostic = match declaration.kind {
            DeclKind::Label(_) => {
                Diagnostic::new(&UNUSED_LABEL, declaration.range, format!("unused label `{name}`")).rule()
            }
            DeclKind::Register { .. } => {
                Diagnostic::new(&UNUSED_REGISTER, declaration.range, format!("unused register `{name}`"))
                    .rule()
            }
            _ => continue,
        };
        out.push(diagnostic.unnecessary());
    }
}

/// Whether the write at a position is the only effect of its instruction.
fn is_needless(body: &Body<'_>, write: TextRange) -> bool {
    let map = body.map;
    let Some(src) = map.statement_at(write.start()) else { return false };
    let (Some(flow), Some(statement)) = (body.flow(), map.statement(src)) else { return false };
    let Some(instr) = flow.instruction(src) else { return false };
    const MORE: [Facts; 5] = [Facts::WRITES, Facts::EFFECT, Facts::ASYNC, Facts::CONVERGENT, Facts::CONTROL];
    let facts = ptx_isa::form(instr.opcode.form).facts;
    let first = map.occurrences.partition_point(|o| o.range.start() < statement.start());
    let inside = map.occurrences[first..].iter().take_while(|o| o.range.end() <= statement.end());
    !MORE.into_iter().any(|more| facts.has(more))
        && inside.filter(|o| o.access == Usage::Write).count() == 1
        && !matches!(instr.operands.first(), Some(Operand::Vector(_) | Operand::Pair(_)))
}

/// Reports registers whose values are never read. Parts of vectors are written together, and module-scope registers may
/// be read elsewhere.
fn unread(body: &Body<'_>, out: &mut Findings) {
    let map = body.map;
    let mut read = vec![false; map.registers.len()];
    let mut written = vec![None; map.registers.len()];
    for occurrence in map.occurrences.iter().filter(|o| o.access != Usage::Declaration) {
        let Entity::Register(register) = occurrence.entity else { continue };
        match occurrence.access {
            Usage::Write => _ = written[register.0 as usize].get_or_insert(occurrence.range),
            _ => read[register.0 as usize] = true,
        }
    }
    for ((register, range), _) in map.registers.iter().zip(written).zip(read).filter(|(_, read)| !read) {
        let declaration = &map.declarations[register.declaration.0 as usize];
        let is_whole = matches!(declaration.kind, DeclKind::Register { lanes: 1, .. });
        if let (Some(range), true) = (range, is_whole && !declaration.range.is_empty())
            && is_needless(body, range)
        {
            let message = format!("register `{}` is written but never read", &body.text[range]);
            out.push(Diagnostic::new(&UNREAD_REGISTER, range, message).rule());
        }
    }
}
