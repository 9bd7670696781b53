//! Checks of asynchronous operations: copies, mbarrier objects and `wgmma` products.
//!
//! One pass over a body collects the instructions that take part; most bodies have none. A missing instruction is
//! reported only in kernels without calls, because no other function can contain it.

mod barrier_objects;
mod copies;
mod proxies;
mod warp_groups;

use ptx_isa::{FormId, Mod};

pub(super) use barrier_objects::{BARRIER_OBJECT, IGNORED_WAIT};
pub(super) use copies::UNAWAITED_COPY;
pub(super) use proxies::PROXY_FENCE;
pub(super) use warp_groups::PRODUCT_ORDER;

use super::Body;
use crate::diagnostic::Findings;
use crate::flow::{Flow, Instr, Order, Site};

/// The role of an instruction in asynchronous operations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// `cp.async` of up to 16 bytes.
    Copy,
    CopyCommit,
    /// `cp.async.wait_group`
    CopyWait,
    /// Waits for all copies, committed or not: `cp.async.wait_all`, `cp.async.mbarrier.arrive`.
    CopyWaitAll,
    /// A bulk copy that belongs to a bulk async-group; it reads shared memory.
    BulkOfGroup,
    BulkCommit,
    BulkWait,
    /// Completes bytes of an mbarrier object.
    CompletesBytes,
    ExpectsBytes,
    BarrierInit,
    BarrierArrive,
    BarrierWait,
    /// Makes writes of the generic proxy to shared memory visible to the async proxy.
    ProxyFence,
    ProductFence,
    /// `wgmma.mma_async`
    Product,
    ProductCommit,
    ProductWait,
    /// `tcgen05.mma` and `tcgen05.cp`: read shared memory.
    TensorRead,
    Call,
}

impl Kind {
    fn of(instr: Instr<'_>) -> Option<Self> {
        Self::of_form(instr.opcode.form)
            .filter(|_| instr.opcode.form != FormId::FenceProxy || !instr.opcode.has(Mod::Alias))
    }

    /// The roles that instructions of a form may have.
    fn of_form(form: FormId) -> Option<Self> {
        use FormId as F;
        Some(match form {
            F::CpAsync => Self::Copy,
            F::CpAsyncCommitGroup => Self::CopyCommit,
            F::CpAsyncWaitGroup => Self::CopyWait,
            F::CpAsyncWaitAll => Self::CopyWaitAll,
            F::CpAsyncBulkStore | F::CpReduceAsyncBulkStore => Self::BulkOfGroup,
            F::CpAsyncBulkTensorStore | F::CpReduceAsyncBulkTensor => Self::BulkOfGroup,
            F::CpAsyncBulkCommitGroup => Self::BulkCommit,
            F::CpAsyncBulkWaitGroup => Self::BulkWait,
            F::CpAsyncBulkLoad | F::CpAsyncBulkTensorLoad | F::CpAsyncBulkCluster => Self::CompletesBytes,
            F::CpReduceAsyncBulkCluster | F::StAsync | F::RedAsync => Self::CompletesBytes,
            F::MbarrierInit => Self::BarrierInit,
            F::MbarrierExpectTx => Self::ExpectsBytes,
            F::MbarrierTestWait | F::MbarrierTryWait => Self::BarrierWait,
            F::MbarrierArrive | F::MbarrierArriveDrop | F::CpAsyncMbarrierArrive | F::Tcgen05Commit => {
                Self::BarrierArrive
            }
            F::FenceProxy | F::FenceProxySpace | F::FenceProxyAsyncGeneric => Self::ProxyFence,
            F::WgmmaFence => Self::ProductFence,
            F::WgmmaMma | F::WgmmaMmaSp | F::WgmmaMmaBits => Self::Product,
            F::WgmmaCommitGroup => Self::ProductCommit,
            F::WgmmaWaitGroup => Self::ProductWait,
            F::Tcgen05Mma | F::Tcgen05MmaBlockScale | F::Tcgen05MmaWs | F::Tcgen05Cp => Self::TensorRead,
            F::Call => Self::Call,
            _ => return None,
        })
    }
}

/// The asynchronous instructions of a body, in text order.
struct Inventory<'b, 'a> {
    body: &'b Body<'a>,
    flow: &'b Flow<'a>,
    sites: Vec<(Kind, Site<'a>)>,
    /// The body is a kernel without calls, so no instruction that takes part is elsewhere.
    is_whole: bool,
}

impl<'a> Inventory<'_, 'a> {
    fn of(&self, kinds: &'static [Kind]) -> impl Iterator<Item = &Site<'a>> {
        self.sites.iter().filter(move |(kind, _)| kinds.contains(kind)).map(|(_, site)| site)
    }

    fn has(&self, kinds: &'static [Kind]) -> bool {
        self.of(kinds).next().is_some()
    }

    fn order(&self, kinds: &'static [Kind]) -> Order {
        Order::new(self.flow.graph(), self.of(kinds))
    }
}

pub(super) fn check(body: &Body<'_>, out: &mut Findings) {
    let Some(flow) = body.flow() else { return };
    if !flow.survey().any(|form| Kind::of_form(form).is_some_and(|kind| kind != Kind::Call)) {
        return;
    }
    let mut sites = Vec::new();
    for block in flow.graph().reached_blocks() {
        for instr in flow.landmarks(block) {
            if let Some(kind) = Kind::of(instr) {
                sites.push((kind, Site { instr, block }));
            }
        }
    }
    if sites.iter().all(|(kind, _)| *kind == Kind::Call) {
        return;
    }
    let is_whole = body.function.entry && sites.iter().all(|(kind, _)| *kind != Kind::Call);
    let inventory = Inventory { body, flow, sites, is_whole };
    copies::check(&inventory, out);
    barrier_objects::check(&inventory, out);
    proxies::check(&inventory, out);
    warp_groups::check(&inventory, out);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::is_notable;

    #[test]
    fn what_takes_part_is_a_landmark() {
        let takes_part = FormId::ALL.iter().filter(|&&form| Kind::of_form(form).is_some());
        assert_eq!(takes_part.filter(|&&form| !is_notable(form)).collect::<Vec<_>>(), Vec::<&FormId>::new());
    }
}
