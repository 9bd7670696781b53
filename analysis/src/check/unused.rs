//! Names that nothing uses.
//!
//! Compilers declare ranges of registers with room to spare and labels that nothing jumps to, so these lints
//! are off unless asked for.

use super::Body;
use crate::declare_lint;
use crate::diagnostic::{Diagnostic, Findings};
use crate::ide::Access;
use crate::scope::DeclKind;

declare_lint! {
    /// Nothing jumps to a label.
    pub(crate) UNUSED_LABEL = "W0501" "unused-label", Allow, since "0.1.0"
}

declare_lint! {
    /// A register is declared and never mentioned.
    pub(crate) UNUSED_REGISTER = "W0502" "unused-register", Allow, since "0.1.0"
}

pub(super) fn check(body: &Body<'_>, out: &mut Findings) {
    if body.flow().is_none() || !body.extras.unused {
        return;
    }
    let mut used = vec![false; body.map.declarations.len()];
    for occurrence in body.map.occurrences.iter().filter(|o| o.access != Access::Declaration) {
        if let Some(declaration) = body.map.declaration_of(occurrence.entity) {
            used[declaration.0 as usize] = true;
        }
    }
    for (declaration, _) in body.map.declarations.iter().zip(used).filter(|(_, used)| !used) {
        let name = &body.text[declaration.range];
        let diagnostic = match declaration.kind {
            DeclKind::Label(_) => {
                Diagnostic::new(&UNUSED_LABEL, declaration.range, format!("nothing jumps to `{name}`"))
            }
            DeclKind::Register { .. } => {
                Diagnostic::new(&UNUSED_REGISTER, declaration.range, format!("`{name}` is never used"))
            }
            _ => continue,
        };
        out.push(diagnostic.unnecessary());
    }
}
