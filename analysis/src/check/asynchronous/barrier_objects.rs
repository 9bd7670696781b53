//! Checks of mbarrier objects: the operations that are required for a wait to complete.

use ptx_backend::input::Operand;
use ptx_isa::Mod;

use super::{Inventory, Kind};
use crate::declare_lint;
use crate::diagnostic::{Diagnostic, Findings};
use crate::flow::{Order, Site, Value};
use crate::scope::Entity;
use crate::source_map::Usage;

declare_lint! {
    /// A kernel uses an mbarrier object without a required operation.
    pub(crate) BARRIER_OBJECT = "W0513" "barrier-object", Warning, since "0.1.0"
}

declare_lint! {
    /// The result of an mbarrier wait is never read.
    pub(crate) IGNORED_WAIT = "W0514" "ignored-wait", Warning, since "0.1.0"
}

/// The maximum number of arrivals that an mbarrier object counts.
const MOST_ARRIVALS: i64 = (1 << 20) - 1;

pub(super) fn check(inventory: &Inventory<'_, '_>, out: &mut Findings) {
    counts(inventory, out);
    ignored(inventory, out);
    if inventory.is_whole {
        missing(inventory, out);
    }
}

fn report(inventory: &Inventory<'_, '_>, site: &Site<'_>, message: impl Into<String>, out: &mut Findings) {
    if let Some(place) = inventory.body.name(site.instr) {
        out.push(Diagnostic::new(&BARRIER_OBJECT, place, message).rule());
    }
}

fn counts(inventory: &Inventory<'_, '_>, out: &mut Findings) {
    for site in inventory.of(&[Kind::BarrierInit]) {
        let Some(Value::Constant(count)) = site.instr.operands.get(1).map(|o| inventory.flow.value(o)) else {
            continue;
        };
        let count = i64::from(count as u32);
        if !(1..=MOST_ARRIVALS).contains(&count) {
            let message = format!("expected an arrival count from 1 to {MOST_ARRIVALS}, found {count}");
            report(inventory, site, message, out);
        }
    }
}

fn missing(inventory: &Inventory<'_, '_>, out: &mut Findings) {
    let used = &[Kind::BarrierArrive, Kind::BarrierWait, Kind::ExpectsBytes];
    let order = inventory.order(&[Kind::BarrierInit]);
    // Another warp may execute the initialization, unless it comes after the use.
    let first = inventory.of(used).find(|site| !order.precedes(site));
    let is_early = |site: &&Site<'_>| {
        let after = Order::new(inventory.flow.graph(), std::iter::once(*site));
        inventory.of(&[Kind::BarrierInit]).all(|init| after.precedes(init))
    };
    if let Some(site) = first.filter(is_early) {
        let message = match inventory.has(&[Kind::BarrierInit]) {
            true => "this mbarrier object is used before it is initialized on any path",
            false => "this kernel never initializes an mbarrier object",
        };
        report(inventory, site, message, out);
    }
    if !inventory.has(&[Kind::BarrierArrive])
        && let Some(site) = inventory.of(&[Kind::BarrierWait]).next()
    {
        report(
            inventory,
            site,
            "this wait never completes: no instruction in this kernel arrives on an mbarrier object",
            out,
        );
    }
    let expects = |site: &Site<'_>| site.instr.opcode.has(Mod::ExpectTx);
    if !inventory.has(&[Kind::ExpectsBytes])
        && !inventory.of(&[Kind::BarrierArrive]).any(expects)
        && let Some(site) = inventory.of(&[Kind::CompletesBytes]).next()
    {
        let message = "no `expect_tx` in this kernel announces the bytes of this copy";
        report(inventory, site, message, out);
    }
}

fn ignored(inventory: &Inventory<'_, '_>, out: &mut Findings) {
    if !inventory.has(&[Kind::BarrierWait]) {
        return;
    }
    let body = inventory.body;
    let mut is_read = vec![false; body.map.registers.len()];
    for occurrence in &body.map.occurrences {
        if let (Entity::Register(register), Usage::Read | Usage::ReadWrite) =
            (occurrence.entity, occurrence.access)
        {
            is_read[register.0 as usize] = true;
        }
    }
    for site in inventory.of(&[Kind::BarrierWait]) {
        let Some(Operand::Reg(result)) = site.instr.operands.first() else { continue };
        let Some(place) = body.name(site.instr) else { continue };
        if !is_read[result.0 as usize] {
            let name = if site.instr.opcode.has(Mod::TryWait) { "try_wait" } else { "test_wait" };
            let message = format!("the result of `{name}` is never read");
            out.push(Diagnostic::new(&IGNORED_WAIT, place, message).note(
                "a wait can return before the phase completes; repeat it in a loop until it returns true",
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::marks;

    fn messages(body: &str) -> Vec<String> {
        let head =
            ".shared .align 16 .b8 s[64]; .shared .b64 b; .reg .b32 %n; .reg .b64 %a; mov.b64 %a, 0;\n";
        let found = marks(&BARRIER_OBJECT, &format!("{head}{body}"));
        found.into_iter().filter_map(|mark| Some(mark.split_once(": ")?.1.to_owned())).collect()
    }

    const LOAD: &str =
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%a], 64, [b];";

    #[test]
    fn counts_are_of_arrivals() {
        let arrive = "mbarrier.arrive.shared.b64 _, [b]; ret;";
        let found = messages(&format!("mov.b32 %n, 0; mbarrier.init.shared.b64 [b], %n; {arrive}"));
        assert_eq!(found, ["expected an arrival count from 1 to 1048575, found 0"]);
        assert!(messages(&format!("mbarrier.init.shared.b64 [b], 1048575; {arrive}")).is_empty());
        assert_eq!(messages(arrive), ["this kernel never initializes an mbarrier object"]);
        let found = messages("mbarrier.arrive.shared.b64 _, [b]; mbarrier.init.shared.b64 [b], 1; ret;");
        assert_eq!(found, ["this mbarrier object is used before it is initialized on any path"]);
        let other_warp = "mov.u32 %n, %tid.x; setp.gt.u32 %p, %n, 31; @%p bra USE; \
            mbarrier.init.shared.b64 [b], 1; bar.sync 0; ret; USE: bar.sync 0;";
        assert!(messages(&format!(".reg .pred %p; {other_warp} {arrive}")).is_empty());
    }

    #[test]
    fn bytes_are_expected() {
        let init = "mbarrier.init.shared.b64 [b], 1;";
        let found = messages(&format!("{init} {LOAD} mbarrier.arrive.shared.b64 _, [b]; ret;"));
        assert_eq!(found, ["no `expect_tx` in this kernel announces the bytes of this copy"]);
        let found = messages(&format!("{init} {LOAD} mbarrier.arrive.expect_tx.shared.b64 _, [b], 64; ret;"));
        assert!(found.is_empty());
    }
}
