//! Clusters: the barrier of all blocks, and addresses in the shared memory of other blocks.
//!
//! A shared address has the rank of its block in the top byte. A generic address also has the high word of the window.
//! The code for the barrier was observed on ptxas 13.0.88.

use super::memory::Target;
use super::special::sr;
use super::{Lowering, Result, Statement};
use crate::input::Address;
use crate::ori::ir::{Src, Term};
use crate::ori::memory::Scope;
use crate::ori::op::{AtomOp, AtomType, BarMode, CctlOp, ICmp, MemSize, Op};
use ptx_isa::{FormId, Mod, ScalarType};

/// The rank of a block is in the byte from this bit on.
const RANK_AT: u32 = 24;
/// The low three bytes of the third operand, below the lowest byte of the first.
const RANKED: Src = Src::imm(0x0654);

impl<'a> Lowering<'a> {
    /// `barrier.cluster`. A launch without clusters has no cluster barrier, and each block is a cluster by itself: the
    /// block's own barrier replaces it.
    pub(super) fn cluster_barrier(&mut self, instr: &Statement<'a>) -> Result<()> {
        let Some(word) = self.target.driver.explicit_cluster else {
            return self.unsupported(instr, "clusters on this target");
        };
        // These are the defaults.
        instr.ignore(&[Mod::Acquire, Mod::Release]);
        let aligned = instr.has(Mod::Aligned);
        if aligned {
            self.join_all();
        }
        let arrives = instr.any_of(&[Mod::Arrive, Mod::Wait]) == Some(Mod::Arrive);
        let relaxed = instr.has(Mod::Relaxed);
        let meet = |this: &mut Self| match arrives {
            true => {
                if !relaxed {
                    this.release(Scope::Gpu);
                }
                this.effect(Op::ClusterArrive, &[]);
            }
            false => {
                this.effect(Op::ClusterWait, &[]);
                this.effect(Op::Cctl { op: CctlOp::Ivall }, &[]);
            }
        };
        if self.func.launch.explicitcluster {
            meet(self);
            return Ok(());
        }
        let clusters = self.compare(ICmp::Eq, true, Src::constant(0, word), Src::imm(1));
        let (all, own, join) = (self.new_block(1), self.new_block(1), self.new_block(2));
        self.end(Term::Branch { cond: clusters, then: all, els: own, uniform: true });
        self.start(all);
        meet(self);
        self.end(Term::Jump(join));
        self.start(own);
        if !arrives {
            let barriers = &mut self.out.facts.barriers;
            *barriers = 1.max(*barriers);
            let mode = if aligned { BarMode::SyncAligned } else { BarMode::Sync };
            self.effect(Op::Bar { mode }, &[Src::ZERO]);
        }
        self.end(Term::Jump(join));
        self.start(join);
        Ok(())
    }

    /// `mapa`.
    pub(super) fn address_in_block(&mut self, instr: &Statement<'a>) -> Result<()> {
        instr.ignore(&[Mod::SharedCluster]);
        let ty = self.type_of(instr, 0)?;
        let address = self.source(instr, 1, ty)?;
        let rank = self.source(instr, 2, ScalarType::U32)?;
        if !self.target.clusters {
            return self.unsupported(instr, "clusters on this target");
        }
        if ty.bits() == 32 {
            let there = self.reg(Op::Prmt, &[rank, RANKED, address]);
            return self.result(instr, there);
        }
        let [low, high] = self.pair(address);
        let there = self.reg(Op::Prmt, &[rank, RANKED, low]);
        self.result_pair(instr, [there, high])
    }

    /// `getctarank`.
    pub(super) fn block_of_address(&mut self, instr: &Statement<'a>) -> Result<()> {
        instr.ignore(&[Mod::SharedCluster]);
        if !self.target.clusters {
            return self.unsupported(instr, "clusters on this target");
        }
        let ty = self.type_of(instr, 0)?;
        let address = self.source(instr, 1, ty)?;
        let low = if ty.bits() == 64 { self.part(address, 0) } else { address };
        let rank = self.shift_right(low, RANK_AT, false);
        self.result(instr, rank)
    }

    /// The target of an access to any block's shared memory: a generic address.
    pub(super) fn cluster_target(&mut self, instr: &Statement<'a>, address: Address) -> Result<Target> {
        if !self.target.clusters {
            return self.unsupported(instr, "clusters on this target");
        }
        let Target::Shared { address, base, offset } = self.shared_target(instr, address)? else {
            return self.malformed("a `.shared` address used in another state space");
        };
        let low = self.based(address, base);
        let high = self.s2r(sr::SHARED_WINDOW_HIGH);
        Ok(Target::Wide { address: self.pack(&[low, high]), offset, generic: true })
    }

    /// The address of an operand in the shared memory of the cluster, in one register.
    pub(super) fn shared_address(&mut self, instr: &Statement<'a>, i: usize) -> Result<Src> {
        let address = self.address(instr, i)?;
        let Target::Shared { address, base, offset } = self.shared_target(instr, address)? else {
            return self.malformed("a `.shared` address used in another state space");
        };
        let address = self.based(address, base);
        Ok(if offset == 0 { address } else { self.add(address, Src::imm(offset as u32)) })
    }

    /// `st.async` to a block of the cluster, and `red.async`: an mbarrier object there counts the bytes.
    pub(super) fn store_asynchronously(&mut self, instr: &Statement<'a>) -> Result<()> {
        instr.ignore(&[
            Mod::Weak,
            Mod::Relaxed,
            Mod::Cluster,
            Mod::Shared,
            Mod::SharedCta,
            Mod::SharedCluster,
            Mod::MbarrierCompleteTxBytes,
        ]);
        if instr.operand_count() != 3 {
            // ptxas accepts the form but generates no code for it.
            return self.unsupported(instr, "an operand list without a barrier object");
        }
        if !self.encodes(&Op::Stas { size: MemSize::B32 }) {
            return self.unsupported(instr, "clusters on this target");
        }
        let ty = self.type_of(instr, 0)?;
        let address = self.shared_address(instr, 0)?;
        let object = self.shared_address(instr, 2)?;
        let values = super::memory::elements(instr, self.operand(instr, 1)?);
        let to = self.pack(&[address, object]);
        if instr.form() == FormId::StAsync {
            let size = match ty.bytes() as usize * values.len() {
                4 => MemSize::B32,
                8 => MemSize::B64,
                16 => MemSize::B128,
                bytes => return self.unsupported(instr, &format!("a store of {bytes} bytes")),
            };
            let data = self.stored(values, ty)?;
            self.effect(Op::Stas { size }, &[to, Src::ZERO, data]);
            return Ok(());
        }
        let Some(op) = instr.take(&super::atomic::OPERATIONS) else {
            return self.malformed("a reduction without an operation such as `.add`");
        };
        let ty_of = match (op, ty.bits(), ty.is_signed()) {
            (AtomOp::Min | AtomOp::Max, 32, true) => AtomType::S32,
            (_, 32, _) => AtomType::U32,
            (AtomOp::Add, 64, _) => AtomType::U64,
            _ => return self.unsupported(instr, "this operation and type"),
        };
        let data = self.stored(values, ty)?;
        self.effect(Op::Redas { op, ty: ty_of }, &[to, Src::ZERO, data]);
        Ok(())
    }

    /// `st.async` and `red.async` of global memory, for which no thread waits. They become stores and reductions that
    /// are executed at once. Some targets have their own instructions (`USTGR`, `UREDGR`), whose only reduction is
    /// addition.
    pub(super) fn store_released(&mut self, instr: &Statement<'a>) -> Result<()> {
        if instr.form() == FormId::StAsyncRelease {
            if !instr.has(Mod::Release) {
                self.release(super::memory::scope(instr).unwrap_or(Scope::Sys));
            }
            return self.store(instr);
        }
        // Atomic operations always have this property.
        instr.ignore(&[Mod::Mmio]);
        self.atomic(instr)
    }
}
