//! Checks of `wgmma` products: the fence before them, the group and the wait after them, and accesses to their
//! registers in between.

use crate::flow::Instr;
use ptx_backend::input::{Operand, RegId};
use rustc_hash::FxHashMap;
use text_size::TextRange;

use super::{Inventory, Kind};
use crate::declare_lint;
use crate::diagnostic::{Diagnostic, Findings};
use crate::text::indentation;

declare_lint! {
    /// A `wgmma.mma_async` lacks a fence or wait, or its registers are accessed before the wait.
    pub(crate) PRODUCT_ORDER = "W0516" "product-order", Warning, since "0.1.0"
}

pub(super) fn check(inventory: &Inventory<'_, '_>, out: &mut Findings) {
    if inventory.is_whole && inventory.has(&[Kind::Product, Kind::ProductCommit]) {
        missing(inventory, out);
    }
    if inventory.has(&[Kind::Product]) {
        in_flight(inventory, out);
    }
}

fn missing(inventory: &Inventory<'_, '_>, out: &mut Findings) {
    let name = |instr: Instr<'_>| inventory.body.name(instr);
    let order = inventory.order(&[Kind::ProductFence]);
    let unfenced = inventory.of(&[Kind::Product]).find(|site| !order.precedes(site));
    if let Some(site) = unfenced
        && let (Some(place), Some(statement)) =
            (name(site.instr), inventory.body.map.statement(site.instr.src))
    {
        let message = "missing `wgmma.fence` before this `wgmma.mma_async`: it may read registers before they are written";
        out.push(Diagnostic::new(&PRODUCT_ORDER, place, message).rule().fix(
            "insert `wgmma.fence.sync.aligned;`",
            TextRange::empty(statement.start()),
            format!("wgmma.fence.sync.aligned;\n{}", indentation(inventory.body.text, statement.start())),
        ));
    }
    let order = inventory.order(&[Kind::ProductCommit]);
    let open = inventory.of(&[Kind::Product]).find(|site| !order.follows(site));
    if let Some(place) = open.and_then(|site| name(site.instr)) {
        let message = "this `wgmma.mma_async` is never committed to a wgmma-group, so no wait covers it";
        out.push(Diagnostic::new(&PRODUCT_ORDER, place, message).rule());
    }
    let order = inventory.order(&[Kind::Product]);
    let empty = inventory.of(&[Kind::ProductCommit]).find(|site| !order.precedes(site));
    if let Some(place) = empty.and_then(|site| name(site.instr)) {
        let message = "this commits an empty wgmma-group: no `wgmma.mma_async` precedes it";
        out.push(Diagnostic::new(&PRODUCT_ORDER, place, message).rule());
    }
    let order = inventory.order(&[Kind::ProductWait]);
    let last = inventory.of(&[Kind::ProductCommit]).find(|site| !order.follows(site));
    if let Some(place) = last.and_then(|site| name(site.instr)) {
        let message = "this wgmma-group is never waited for";
        out.push(Diagnostic::new(&PRODUCT_ORDER, place, message).rule());
    }
}

/// How a product uses a register while it is in flight.
#[derive(Clone, Copy)]
struct Use {
    product: TextRange,
    /// The number of the product's group in the block.
    group: u32,
    /// The product only reads the register.
    is_source: bool,
}

/// Follows each block from its start; products of earlier blocks count as complete.
fn in_flight(inventory: &Inventory<'_, '_>, out: &mut Findings) {
    let flow = inventory.flow;
    let mut block = None;
    for site in inventory.of(&[Kind::Product]) {
        if block.replace(site.block) == Some(site.block) {
            continue;
        }
        let mut busy: FxHashMap<RegId, Use> = FxHashMap::default();
        let mut group = 0;
        for instr in flow.instructions(site.block) {
            match Kind::of(instr) {
                Some(Kind::Product) => start(inventory, instr, group, &mut busy),
                Some(Kind::ProductCommit) => group += 1,
                Some(Kind::ProductWait) => {
                    if let Some(Operand::Int(pending)) = instr.operands.first() {
                        let done = i64::from(group).saturating_sub(*pending);
                        busy.retain(|_, held| i64::from(held.group) >= done);
                    }
                }
                Some(Kind::ProductFence) => {}
                // It is not known what a call waits for.
                Some(Kind::Call) => busy.clear(),
                _ => touch(inventory, instr, &mut busy, out),
            }
        }
    }
}

fn start(inventory: &Inventory<'_, '_>, instr: Instr<'_>, group: u32, busy: &mut FxHashMap<RegId, Use>) {
    let Some(product) = inventory.body.name(instr) else { return };
    for (operand, is_source) in instr.operands.iter().take(2).zip([false, true]) {
        let Operand::Vector(registers) = operand else { continue };
        for register in registers {
            if let Operand::Reg(register) = register {
                busy.insert(*register, Use { product, group, is_source });
            }
        }
    }
}

fn touch(
    inventory: &Inventory<'_, '_>,
    instr: Instr<'_>,
    busy: &mut FxHashMap<RegId, Use>,
    out: &mut Findings,
) {
    if busy.is_empty() {
        return;
    }
    for access in inventory.flow.accesses().registers(instr.src) {
        let Some(held) = busy.get(&access.register).copied() else { continue };
        if held.is_source && !access.writes() {
            continue;
        }
        let Some(range) = inventory.flow.place(instr.src, &access) else { continue };
        let name = &inventory.body.text[range];
        let what = if held.is_source { "being read" } else { "being written" };
        let message = format!("`{name}` is still {what} by a `wgmma.mma_async` that has not been waited for");
        out.push(
            Diagnostic::new(&PRODUCT_ORDER, range, message)
                .related(held.product, "by this `wgmma.mma_async`")
                .note("execute `wgmma.commit_group` and `wgmma.wait_group` in between"),
        );
        // One report for each product is enough.
        busy.retain(|_, other| other.product != held.product);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::marks;

    const PRODUCT: &str =
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %a, %a, %p, 1, 1, 0, 0;";
    const OTHER: &str = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f5, %f6, %f7, %f8}, {%r1, %r2, %r3, %r4}, %a, %p, 1, 1, 0;";
    const FENCE: &str = "wgmma.fence.sync.aligned;";
    const COMMIT: &str = "wgmma.commit_group.sync.aligned;";

    fn found(body: &str) -> Vec<String> {
        let head = ".reg .f32 %f<9>; .reg .b32 %r<9>; .reg .b64 %a; .reg .pred %p; mov.b64 %a, 0;\n\
                    setp.eq.u32 %p, 1, 2;\n";
        marks(&PRODUCT_ORDER, &format!("{head}{body}"))
    }

    #[test]
    fn everything_in_its_place() {
        let body =
            format!("{FENCE} {PRODUCT} {COMMIT} wgmma.wait_group.sync.aligned 0; mov.f32 %f1, %f2; ret;");
        assert!(found(&body).is_empty(), "{:?}", found(&body));
    }

    #[test]
    fn what_is_missing() {
        let wait = "wgmma.wait_group.sync.aligned 0; ret;";
        let name = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16";
        assert_eq!(
            found(&format!("{PRODUCT} {COMMIT} {wait}")),
            [format!(
                "{name}: missing `wgmma.fence` before this `wgmma.mma_async`: it may read registers before they are written"
            )]
        );
        assert_eq!(
            found(&format!("{FENCE} {PRODUCT} {wait}")),
            [format!(
                "{name}: this `wgmma.mma_async` is never committed to a wgmma-group, so no wait covers it"
            )]
        );
        assert_eq!(
            found(&format!("{FENCE} {PRODUCT} {COMMIT} ret;")),
            ["wgmma.commit_group.sync.aligned: this wgmma-group is never waited for"]
        );
        assert_eq!(
            found(&format!("{COMMIT} {wait}")),
            [
                "wgmma.commit_group.sync.aligned: this commits an empty wgmma-group: no `wgmma.mma_async` precedes it"
            ]
        );
    }

    #[test]
    fn the_latest_groups_stay_in_flight() {
        let after = |use_: &str| {
            let wait = "wgmma.wait_group.sync.aligned 1;";
            let end = "wgmma.wait_group.sync.aligned 0; ret;";
            found(&format!("{FENCE} {PRODUCT} {COMMIT} {OTHER} {COMMIT} {wait} {use_} {end}")).len()
        };
        assert_eq!(after("mov.f32 %f1, %f2;"), 0);
        assert_eq!(after("mov.f32 %f1, %f5;"), 1);
        // Registers that a product reads may still be read, but not written.
        assert_eq!(after("mov.b32 %r5, %r1;"), 0);
        assert_eq!(after("mov.b32 %r1, 0;"), 1);
    }
}
