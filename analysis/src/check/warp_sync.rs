//! Finds exchanges between threads of a warp that do not name the participating threads.

use ptx_isa::Mod;
use text_size::{TextRange, TextSize};

use super::{Context, Statement};
use crate::declare_lint;
use crate::diagnostic::{Applicability, Diagnostic, Findings, TextEdit};

declare_lint! {
    /// `shfl` or `vote` is used without `.sync`.
    pub(super) NO_SYNC = "W0505" "no-sync", Warning, since "0.1.0"
}

pub(super) fn check(_: &Context<'_>, statement: &Statement<'_>, out: &mut Findings) {
    if !is_old(statement) || !statement.available {
        return;
    }
    let mnemonic = statement.form.mnemonic();
    let message = format!("`{mnemonic}` without `.sync` assumes that the threads of a warp run in lockstep");
    let diagnostic = Diagnostic::new(&NO_SYNC, statement.name, message).note(format!(
        "from sm_70 on, only `{mnemonic}.sync` is available; its operand `membermask` names the participating threads"
    ));
    out.push(synchronise(diagnostic, statement));
}

fn is_old(statement: &Statement<'_>) -> bool {
    matches!(statement.form.mnemonic(), "shfl" | "vote") && !statement.opcode.mods().any(|m| m == Mod::Sync)
}

/// Adds the fix to a finding about an old form. The text does not show whether the whole warp takes part.
pub(super) fn synchronise(diagnostic: Diagnostic, statement: &Statement<'_>) -> Diagnostic {
    let (Some(suffix), Some(last)) = (statement.suffixes.first(), statement.ranges.last()) else {
        return diagnostic;
    };
    if !is_old(statement) {
        return diagnostic;
    }
    let insert =
        |offset: TextSize, text: &str| TextEdit { range: TextRange::empty(offset), text: text.into() };
    // The mask is an additional operand.
    if statement.rows.is_none() && statement.ranges.len() == statement.signature.operands.len() + 1 {
        let edits = vec![insert(suffix.start(), ".sync")];
        return diagnostic.remedy("add `.sync`", edits, Applicability::MachineApplicable);
    }
    diagnostic.remedy(
        "add `.sync` and the mask of a full warp",
        vec![insert(suffix.start(), ".sync"), insert(last.end(), ", 0xffffffff")],
        Applicability::MaybeIncorrect,
    )
}
