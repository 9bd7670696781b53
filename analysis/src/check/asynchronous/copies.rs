//! Finds copies that are never waited for.

use text_size::TextRange;

use super::{Inventory, Kind};
use crate::declare_lint;
use crate::diagnostic::{Diagnostic, Findings};
use crate::text::indentation;

declare_lint! {
    /// An asynchronous copy is never waited for, or a wait has nothing to wait for.
    pub(crate) UNAWAITED_COPY = "W0512" "unawaited-copy", Warning, since "0.1.0"
}

pub(super) fn check(inventory: &Inventory<'_, '_>, out: &mut Findings) {
    if !inventory.is_whole {
        return;
    }
    let ends = &[Kind::CopyWait, Kind::CopyWaitAll, Kind::BarrierArrive];
    unawaited(inventory, &[Kind::Copy], ends, "this asynchronous copy is never waited for", out);
    let message = "this bulk copy is never committed to a bulk async-group, so no wait covers it";
    let is_committed = unawaited(inventory, &[Kind::BulkOfGroup], &[Kind::BulkCommit], message, out);
    if is_committed {
        let message = "the bulk async-group of this copy is never waited for";
        unawaited(inventory, &[Kind::BulkOfGroup], &[Kind::BulkWait], message, out);
    }
    empty_wait(inventory, out);
}

/// Reports the first copy of a kind after which none of `ends` can be executed; returns `true` if there is none.
fn unawaited(
    inventory: &Inventory<'_, '_>,
    copies: &'static [Kind],
    ends: &'static [Kind],
    message: &str,
    out: &mut Findings,
) -> bool {
    if !inventory.has(copies) {
        return true;
    }
    let order = inventory.order(ends);
    let Some(site) = inventory.of(copies).find(|site| !order.follows(site)) else { return true };
    if let Some(place) = inventory.body.name(site.instr) {
        out.push(Diagnostic::new(&UNAWAITED_COPY, place, message).rule());
    }
    false
}

/// Reports the first wait for async-groups of small copies, if no group is ever committed.
fn empty_wait(inventory: &Inventory<'_, '_>, out: &mut Findings) {
    if inventory.has(&[Kind::CopyCommit]) || !inventory.has(&[Kind::Copy]) {
        return;
    }
    let Some(site) = inventory.of(&[Kind::CopyWait]).next() else { return };
    let statement = inventory.body.map.statement(site.instr.src);
    if let (Some(place), Some(statement)) = (inventory.body.name(site.instr), statement) {
        let message = "no cp.async group is ever committed, so this wait has no effect";
        out.push(Diagnostic::new(&UNAWAITED_COPY, place, message).rule().fix(
            "insert `cp.async.commit_group;`",
            TextRange::empty(statement.start()),
            format!("cp.async.commit_group;\n{}", indentation(inventory.body.text, statement.start())),
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::marks;

    fn messages(body: &str) -> Vec<String> {
        let head = ".shared .align 16 .b8 s[64]; .reg .b64 %a; .reg .pred %p; mov.b64 %a, 0; setp.eq.u32 %p, 1, 2;\n";
        let found = marks(&UNAWAITED_COPY, &format!("{head}{body}"));
        found.into_iter().filter_map(|mark| Some(mark.split_once(": ")?.1.to_owned())).collect()
    }

    const COPY: &str = "cp.async.cg.shared.global [s], [%a], 16;";
    const BULK: &str = "cp.async.bulk.global.shared::cta.bulk_group [%a], [s], 64;";

    #[test]
    fn a_wait_on_some_path_is_enough() {
        let none: [&str; 0] = [];
        assert_eq!(
            messages(&format!("{COPY} cp.async.commit_group; @%p bra A; cp.async.wait_group 0; A: ret;")),
            none
        );
        assert_eq!(messages(&format!("A: cp.async.wait_all; {COPY} @%p bra A; ret;")), none);
        assert_eq!(
            messages(&format!("cp.async.wait_all; {COPY} ret;")),
            ["this asynchronous copy is never waited for"]
        );
    }

    #[test]
    fn groups_need_commits() {
        let found = messages(&format!("{COPY} cp.async.wait_group 0; ret;"));
        assert_eq!(found, ["no cp.async group is ever committed, so this wait has no effect"]);
        let found = messages(&format!("{BULK} cp.async.bulk.wait_group 0; ret;"));
        assert_eq!(found, ["this bulk copy is never committed to a bulk async-group, so no wait covers it"]);
        let found = messages(&format!("{BULK} cp.async.bulk.commit_group; ret;"));
        assert_eq!(found, ["the bulk async-group of this copy is never waited for"]);
    }
}
