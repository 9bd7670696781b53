//! Barriers, and other control operations that a row cannot describe.

use super::builder::{Builder, PHASE, is_imm};
use super::generic::operand;
use super::{Emitter, products};
use crate::CodegenError;
use crate::input::SrcId;
use crate::mach::{Effect, MachInst};
use crate::ori::ir::{Dst, File, Inst, Reg, Src, SrcKind};
use crate::ori::op::{BarMode, GroupFormat, Op};
use crate::ori::operations::signature;
use crate::ori::signature::Width;
use crate::target::DeferredBarriers;
use sass::Field;

const FENCE: Effect = Effect::Fence { pinned: false };

impl Emitter<'_> {
    /// `BSSY`, whose target is a block of this function.
    pub(super) fn set_barrier(&mut self, inst: &Inst) -> Result<(), CodegenError> {
        let Op::Bssy { target, .. } = inst.op else { return Ok(()) };
        let Some(target) = self.plan.machine_block(target) else {
            return Err(CodegenError::internal(inst.src, PHASE, "the meeting point is in a dead block"));
        };
        let set = self.by_row(inst)?.finish()?;
        self.out.push(MachInst {
            inst: set,
            src: Some(inst.src),
            target: Some(target),
            link: None,
            effect: FENCE,
        });
        Ok(())
    }

    /// The hardware treats a breakpoint as a trap.
    pub(super) fn stop(&mut self, inst: &Inst) -> Result<(), CodegenError> {
        let mut stop = self.by_row(inst)?;
        stop.text(Field::Mode, ".TRAP").value(Field::Imm2, 1);
        self.push(stop, Some(inst.src), Effect::Fence { pinned: true })
    }

    /// `BAR`: the mode takes three fields, and the barrier and the thread count share a register field.
    pub(super) fn barrier(&mut self, inst: &Inst) -> Result<(), CodegenError> {
        let Op::Bar { mode } = inst.op else { return Ok(()) };
        let id = operand(inst, 0)?;
        let threads = inst.srcs.get(1).unwrap_or(&Src::ZERO);
        let shape = match (is_imm(id), is_imm(threads)) {
            (true, true) => "",
            (true, false) => "ir",
            (false, true) => "r",
            (false, false) if id == threads => "rr",
            (false, false) => {
                return Err(CodegenError::internal(
                    inst.src,
                    PHASE,
                    "barrier and thread count in two registers",
                ));
            }
        };
        let deferred = self.target.deferred_barriers;
        let [defers_all, defers_aligned] =
            [deferred == DeferredBarriers::All, deferred != DeferredBarriers::None];
        let (kind, reduction, defers) = match mode {
            BarMode::Sync => (".SYNC", None, defers_all),
            BarMode::SyncAligned => (".SYNC", None, defers_aligned),
            BarMode::Arv => (".ARV", None, false),
            BarMode::RedPopc => (".RED", Some(".POPC"), defers_aligned),
            BarMode::RedAnd => (".RED", Some(".AND"), defers_aligned),
            BarMode::RedOr => (".RED", Some(".OR"), defers_aligned),
        };
        let mut bar = Builder::new(self.sm, inst.src, "BAR", shape)?;
        bar.text(Field::Mode, kind).flag(Field::Flag, defers);
        if let Some(reduction) = reduction {
            bar.text(Field::Op, reduction);
        }
        for (slot, source) in signature(&inst.op).srcs.iter().zip([id, threads]) {
            bar.operand(slot, source);
        }
        if let Some(p) = inst.srcs.get(2)
            && reduction.is_some()
        {
            bar.pred(Field::Pp, p);
        }
        self.push(bar, Some(inst.src), FENCE)
    }

    /// A `wgmma` product, with its result in the registers of the accumulator. It ends no group.
    pub(super) fn group_product(&mut self, inst: &Inst) -> Result<(), CodegenError> {
        let pinned = Effect::Fence { pinned: true };
        let mut inst = inst.clone();
        let at = inst.srcs.len() - 2;
        // A product without a group has a result that is never read.
        let Some(Dst::Reg(sum)) = inst.dsts.first().copied() else { return Ok(()) };
        let Width::Exactly(count) = signature(&inst.op).dsts[0].width else { return Ok(()) };
        if let SrcKind::Reg(old) = inst.srcs[at].kind {
            self.move_run(sum, old, count, inst.src)?;
            inst.srcs[at].kind = SrcKind::Reg(sum);
        }
        let arrive = Builder::new(self.sm, inst.src, "WARPGROUP.ARRIVE", "")?;
        self.push(arrive, Some(inst.src), pinned)?;
        let mut product = self.by_row(&inst)?;
        product.value(Field::Scoreboard, products::NO_GROUP);
        self.push(product, Some(inst.src), pinned)
    }

    /// Moves consecutive registers.
    pub(super) fn move_run(&mut self, to: Reg, from: Reg, count: u8, at: SrcId) -> Result<(), CodegenError> {
        let mut order: Vec<u8> = (0..count).collect();
        if from.index < to.index {
            order.reverse();
        }
        for i in order.into_iter().filter(|_| from != to) {
            let register = |of: Reg| Reg { index: of.index + i, ..of };
            self.mov(&Dst::Reg(register(to)), &Src::new(SrcKind::Reg(register(from))), Some(at))?;
        }
        Ok(())
    }

    /// The accumulator of completed products. It needs no moves if the allocator kept it in their registers.
    pub(super) fn settled(&mut self, inst: &Inst, registers: u8) -> Result<(), CodegenError> {
        match (inst.dsts.first(), operand(inst, 0)?.kind) {
            (Some(Dst::Reg(to)), SrcKind::Reg(from)) => self.move_run(*to, from, registers, inst.src),
            _ => Ok(()),
        }
    }

    /// Marks the last product of the block as the end of its group, or adds an empty product.
    pub(super) fn end_product_group(&mut self, inst: &Inst) -> Result<(), CodegenError> {
        if products::close(&mut self.out) {
            return Ok(());
        }
        let nothing = Op::Hgmma { shape: 0, registers: 2, f32: false, format: GroupFormat::F16, layout: 0 };
        let product = Inst::new(nothing, &[Dst::Sink], &[Src::ZERO, Src::ZERO, Src::FALSE], inst.src);
        let mut product = self.by_row(&product)?;
        product.value(Field::Scoreboard, products::GROUP);
        self.push(product, Some(inst.src), Effect::Fence { pinned: true })
    }

    /// `R2UR`: newer targets encode whether it takes the value of a chosen thread.
    pub(super) fn uniform_copy(&mut self, inst: &Inst) -> Result<(), CodegenError> {
        let mut copy = self.by_row(inst)?;
        if !inst.guard.is_true() && copy.has(Field::Mode2) {
            copy.text(Field::Mode2, ".BROADCAST");
        }
        self.push(copy, Some(inst.src), Effect::Convergent)
    }

    /// `WARPSYNC`: newer targets have a separate form for all threads, and take masks only from registers.
    pub(super) fn warpsync(&mut self, inst: &Inst, exclusive: bool) -> Result<(), CodegenError> {
        let mask = operand(inst, 0)?;
        let all = mask.kind == SrcKind::Imm(u32::MAX) && sass::lookup(self.sm, "WARPSYNC.ALL", "").is_some();
        let sync = if all {
            Builder::new(self.sm, inst.src, "WARPSYNC.ALL", "")?
        } else {
            let mut sync = Builder::new(self.sm, inst.src, "WARPSYNC", if is_imm(mask) { "" } else { "r" })?;
            if sync.has(Field::Ra) {
                sync.reg(Field::Ra, File::R, mask);
            } else {
                sync.reg_or_imm(Field::Rb, Field::Imm32, mask);
            }
            // A mask of the whole warp excludes no thread. On targets that cannot separate threads, results are masked.
            if exclusive && mask.kind != SrcKind::Imm(u32::MAX) && parts_warps(self.sm) {
                sync.text(Field::Mode, ".EXCLUSIVE");
            }
            sync
        };
        self.push(sync, Some(inst.src), FENCE)
    }
}

/// Whether `WARPSYNC` can separate threads whose masks differ.
pub(crate) fn parts_warps(sm: sass::Sm) -> bool {
    let form = sass::lookup(sm, "WARPSYNC", "r");
    form.and_then(|id| sass::form(id).spec(Field::Mode)).is_some_and(|mode| mode.allows(1))
}
