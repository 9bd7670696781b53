//! Fences between accesses of threads and those of asynchronous copies.
//!
//! The code for them was observed on ptxas 13.0.88.

use super::{Lowering, Result, Statement};
use crate::ori::op::{MembarScope, Op, ViewOf};
use ptx_isa::{FormId, Mod};

impl<'a> Lowering<'a> {
    /// `fence.proxy.async`.
    pub(super) fn fence_async(&mut self, instr: &Statement<'a>) -> Result<()> {
        if instr.has(Mod::Alias) {
            return self.fence_aliases(instr);
        }
        if !self.encodes(&Op::FenceView { of: ViewOf::Shared }) {
            return self.unsupported(instr, "fences between proxies on this target");
        }
        instr.ignore(&[Mod::Async]);
        let of = instr.any_of(&[
            Mod::AsyncGlobal,
            Mod::AsyncSharedCta,
            Mod::AsyncSharedCluster,
            Mod::Global,
            Mod::Shared,
            Mod::SharedCta,
            Mod::SharedCluster,
        ]);
        match of {
            Some(Mod::AsyncGlobal | Mod::Global) => {
                self.effect(Op::FenceView { of: ViewOf::Global }, &[]);
            }
            Some(Mod::AsyncSharedCta | Mod::SharedCta | Mod::Shared) => self.show_shared(MembarScope::AllCta),
            _ => self.show_shared(MembarScope::AllGpu),
        }
        Ok(())
    }

    /// Makes the writes of threads in a scope to shared memory visible.
    fn show_shared(&mut self, scope: MembarScope) {
        self.effect(Op::Membar { scope }, &[]);
        self.effect(Op::FenceView { of: ViewOf::Shared }, &[]);
    }

    /// Fences that only affect mbarrier objects or remote copies. Only releasing ones need code: mbarrier objects are
    /// accessed in the order of their operations, and no later access overtakes a wait for one.
    pub(super) fn fence_restricted(&mut self, instr: &Statement<'a>) -> Result<()> {
        instr.ignore(&[
            Mod::Cluster,
            Mod::MbarrierInit,
            Mod::SyncRestrictSharedCta,
            Mod::SyncRestrictSharedCluster,
        ]);
        let releases = instr.any_of(&[Mod::Acquire, Mod::Release]) == Some(Mod::Release);
        if releases && instr.form() != FormId::FenceMbarrierInit {
            self.show_shared(MembarScope::AllCta);
        }
        Ok(())
    }
}
