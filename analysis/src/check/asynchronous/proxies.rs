//! Finds accesses of the async proxy to memory that the generic proxy has written, without a proxy fence in between.

use ptx_backend::input::{AddressBase, Operand};
use ptx_isa::{FormId, Mod};
use text_size::TextRange;

use super::{Inventory, Kind};
use crate::declare_lint;
use crate::diagnostic::{Diagnostic, Findings};
use crate::flow::{Instr, Site};
use crate::text::indentation;

declare_lint! {
    /// An asynchronous read of shared memory is not ordered after a write by a proxy fence.
    pub(crate) PROXY_FENCE = "W0515" "proxy-fence", Warning, since "0.1.0"
}

const READERS: &[Kind] = &[Kind::BulkOfGroup, Kind::Product, Kind::TensorRead];
const FENCE: &str = "fence.proxy.async.shared::cta;";

pub(super) fn check(inventory: &Inventory<'_, '_>, out: &mut Findings) {
    if !inventory.has(READERS) {
        return;
    }
    // According to the manual, data copied by `cp.async` needs the fence too, but compilers omit it.
    let filled = &[Kind::CompletesBytes, Kind::Copy];
    if inventory.is_whole && !inventory.has(&[Kind::ProxyFence]) && !inventory.has(filled) {
        nowhere(inventory, out);
    } else {
        straight(inventory, out);
    }
}

/// Reports a kernel without such a fence, in which only stores write shared memory.
fn nowhere(inventory: &Inventory<'_, '_>, out: &mut Findings) {
    let graph = inventory.flow.graph();
    let instructions = graph
        .reached_blocks()
        .flat_map(|block| inventory.flow.instructions(block).map(move |instr| Site { instr, block }));
    let writes: Vec<Site<'_>> = instructions.filter(|site| writes_shared(site.instr)).collect();
    let order = crate::flow::Order::new(graph, writes.iter());
    let Some(reader) = inventory.of(READERS).find(|site| order.precedes(site)) else { return };
    // The last write above it in the text, as an example.
    let above = writes.iter().rev().find(|write| write.instr.src < reader.instr.src);
    report(inventory, above.unwrap_or(&writes[0]).instr, reader.instr, out);
}

/// Reports a bulk copy of data that the same block has just written.
fn straight(inventory: &Inventory<'_, '_>, out: &mut Findings) {
    let flow = inventory.flow;
    let mut block = None;
    for site in inventory.of(&[Kind::BulkOfGroup]) {
        if block.replace(site.block) == Some(site.block) {
            continue;
        }
        let mut write: Option<Instr<'_>> = None;
        for instr in flow.instructions(site.block) {
            match Kind::of(instr) {
                Some(Kind::ProxyFence | Kind::Call) => write = None,
                Some(Kind::BulkOfGroup) => {
                    if let Some(write) = write.take_if(|write| overlap(inventory, *write, instr)) {
                        report(inventory, write, instr, out);
                    }
                }
                _ if instr.opcode.form == FormId::St && writes_shared(instr) => write = Some(instr),
                _ => {}
            }
        }
    }
}

fn report(inventory: &Inventory<'_, '_>, write: Instr<'_>, reader: Instr<'_>, out: &mut Findings) {
    let body = inventory.body;
    let (Some(write), Some(reader)) = (body.map.statement(write.src), body.name(reader)) else { return };
    let message =
        "asynchronous read of shared memory is not ordered after the preceding writes: no proxy fence";
    let fence = format!("\n{}{FENCE}", indentation(body.text, write.start()));
    out.push(
        Diagnostic::new(&PROXY_FENCE, reader, message)
            .related(write, "written here")
            .note("execute `fence.proxy.async` in the writing thread before signaling the reader")
            .fix(format!("insert `{FENCE}`"), TextRange::empty(write.end()), fence),
    );
}

/// Whether a generic access writes shared memory, according to its name.
fn writes_shared(instr: Instr<'_>) -> bool {
    use FormId as F;
    let is_shared = |m| matches!(m, Mod::Shared | Mod::SharedCta);
    match instr.opcode.form {
        F::St | F::Stmatrix | F::StmatrixBytes => instr.opcode.mods().any(is_shared),
        _ => false,
    }
}

/// Whether a store certainly overlaps the source of a bulk copy.
fn overlap(inventory: &Inventory<'_, '_>, write: Instr<'_>, copy: Instr<'_>) -> bool {
    let source = match copy.opcode.form {
        FormId::CpAsyncBulkStore | FormId::CpReduceAsyncBulkStore => copy.operands.get(1),
        _ => None,
    };
    let (Some(Operand::Address(from)), Some(Operand::Address(to))) = (source, write.operands.first()) else {
        return false;
    };
    if write.guard.is_some() && write.guard != copy.guard {
        return false;
    }
    let flow = inventory.flow;
    let size = match copy.operands.get(2).map(|size| flow.value(size)) {
        Some(crate::flow::Value::Constant(size)) => size,
        // The copy has at least this size.
        _ => 16,
    };
    let inside = |offset: i64, start: i64| (start..start.saturating_add(size)).contains(&offset);
    match (flow.address(to), flow.address(from)) {
        (Some((a, Some(to))), Some((b, Some(from)))) => a == b && inside(to, from),
        _ => {
            from.base == to.base && matches!(from.base, AddressBase::Reg(_)) && inside(to.offset, from.offset)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::marks;

    fn count(body: &str) -> usize {
        let head = ".shared .align 16 .b8 s[256]; .reg .b32 %s, %r; .reg .b64 %a; .reg .pred %p; mov.b64 %a, 0;\n\
                    mov.b32 %s, s; mov.b32 %r, %tid.x; setp.eq.u32 %p, 1, 2;\n";
        let end = "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; ret;";
        marks(&PROXY_FENCE, &format!("{head}{body}{end}")).len()
    }

    const COPY: &str = "cp.async.bulk.global.shared::cta.bulk_group [%a], [%s+16], 64;";
    const FENCED: &str = "fence.proxy.async.shared::cta; st.shared.b32";

    #[test]
    fn kernels_without_any_fence() {
        assert_eq!(count(&format!("st.shared.b32 [%s], 1; bar.sync 0; @%p bra A; {COPY} A:")), 1);
        assert_eq!(count(&format!("{COPY} st.shared.b32 [%s], 1;")), 0);
        let fenced = "st.shared.b32 [%s], 1; fence.proxy.async.shared::cta; bar.sync 0; @%p bra A;";
        assert_eq!(count(&format!("{fenced} {COPY} A:")), 0);
    }

    #[test]
    fn a_store_into_what_is_copied_next() {
        assert_eq!(count(&format!("{FENCED} [s+76], 1; {COPY}")), 1);
        assert_eq!(count(&format!("{FENCED} [s+80], 1; {COPY}")), 0);
        assert_eq!(count(&format!("{FENCED} [s+12], 1; {COPY}")), 0);
        assert_eq!(count(&format!("{FENCED} [%s+16], 1; fence.proxy.async; {COPY}")), 0);
        assert_eq!(count(&format!("{FENCED} [%r], 1; {COPY}")), 0);
    }
}
