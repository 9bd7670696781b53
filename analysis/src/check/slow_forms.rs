//! Forms that work, but for which the manual recommends a faster form.

use ptx_isa::{Mod, TargetSet};

use super::{Context, Statement};
use crate::declare_lint;
use crate::diagnostic::{Diagnostic, Findings};

declare_lint! {
    /// The instruction may be slow on this or future targets.
    pub(super) SLOW_FORM = "W0521" "slow-form", Information, since "0.1.0"
}

/// Targets on which a copy can reach several CTAs of a cluster at full speed.
const MULTICAST: TargetSet = TargetSet::arch(90).or(TargetSet::family(100)).or(TargetSet::family(110));

pub(super) fn check(ctx: &Context<'_>, statement: &Statement<'_>, out: &mut Findings) {
    if !statement.available {
        return;
    }
    let suffix = |word: &str| statement.suffixes.iter().copied().find(|&suffix| ctx.slice(suffix) == word);
    let opcode = &statement.opcode;
    if statement.form.mnemonic() == "mma"
        && opcode.has(Mod::Sp)
        && let Some(range) = suffix(".sp")
    {
        let message = "`mma.sp` may be much slower on future architectures";
        let note =
            "`mma.sp::ordered_metadata` does the same if the indices in the metadata are in increasing order";
        let diagnostic = Diagnostic::new(&SLOW_FORM, range, message).note(note);
        out.push(diagnostic.fix("change to `.sp::ordered_metadata`", range, ".sp::ordered_metadata"));
    }
    if statement.form.mnemonic() == "cp"
        && opcode.has(Mod::MulticastCluster)
        && !MULTICAST.contains(ctx.gates.target)
        && let Some(range) = suffix(".multicast::cluster")
    {
        let message = format!("`.multicast::cluster` may be very slow on {}", ctx.gates.target);
        let note = format!("it runs at full speed on {MULTICAST}");
        out.push(Diagnostic::new(&SLOW_FORM, range, message).note(note));
    }
}
