//! Exchanges between the threads of a warp that do not say which threads take part.

use ptx_isa::Mod;
use text_size::TextRange;

use super::{Context, Statement};
use crate::declare_lint;
use crate::diagnostic::{Diagnostic, Findings, Fix, TextEdit};

declare_lint! {
    /// `shfl` or `vote` without `.sync`: threads of a warp no longer run in step from sm_70 on.
    pub(super) NO_SYNC = "W0505" "no-sync", Warning, since "0.1.0"
}

pub(super) fn check(_: &Context<'_>, statement: &Statement<'_>, out: &mut Findings) {
    let mnemonic = statement.form.mnemonic();
    let is_old = matches!(mnemonic, "shfl" | "vote") && !statement.opcode.mods().any(|m| m == Mod::Sync);
    if !is_old || !statement.available {
        return;
    }
    let message =
        format!("`{mnemonic}` without `.sync` depends on threads running in step, which they may not");
    let mut diagnostic = Diagnostic::new(&NO_SYNC, statement.name, message).note(format!(
        "`{mnemonic}.sync` names the threads that take part and is the only form from sm_70 on"
    ));
    if let (Some(suffix), Some(last)) = (statement.suffixes.first(), statement.ranges.last()) {
        let insert = |range: TextRange, text: &str| TextEdit { range, text: text.to_owned() };
        diagnostic.fixes.push(Fix {
            title: "add `.sync` and the mask of a whole warp".to_owned(),
            edits: vec![
                insert(TextRange::empty(suffix.start()), ".sync"),
                insert(TextRange::empty(last.end()), ", 0xffffffff"),
            ],
        });
    }
    out.push(diagnostic);
}
