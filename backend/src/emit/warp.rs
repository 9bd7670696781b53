//! Operations of the whole warp or block, and of control flow.

use super::Emitter;
use super::builder::{Builder, PHASE};
use super::compute::operand;
use crate::CodegenError;
use crate::mach::{Effect, MachInst};
use crate::ori::ir::{Dst, File, Inst, Src, SrcKind};
use crate::ori::op::{BarMode, Op};
use sass::Field;

impl Emitter<'_> {
    pub(super) fn warp(&mut self, inst: &Inst) -> Result<(), CodegenError> {
        let builder = match inst.op {
            Op::Shfl { mode } => {
                let (lane, clamp) = (operand(inst, 1)?, operand(inst, 2)?);
                let mut shuffle = Builder::new(self.sm, inst.src, "SHFL", shape(&[lane, clamp]))?;
                shuffle.text(Field::Mode, mode.text());
                shuffle.dst(Field::Rd, inst.dsts.first()).dst(Field::Pd, inst.dsts.get(1));
                shuffle.reg(Field::Ra, File::R, operand(inst, 0)?);
                shuffle.reg_or_imm(Field::Rb, Field::Imm2, lane).reg_or_imm(Field::Rc, Field::Imm3, clamp);
                shuffle
            }
            Op::Vote { mode } => {
                let mut vote = self.plain(inst, "VOTE")?;
                vote.text(Field::Mode, mode.text()).dst(Field::Pd, inst.dsts.get(1));
                vote.pred(Field::Pp, Field::PpNot, operand(inst, 0)?);
                vote
            }
            Op::Match { mode, wide } => {
                let mut matching = self.plain(inst, "MATCH")?;
                matching.text(Field::Mode, mode.text()).text(Field::Size, if wide { ".U64" } else { "" });
                matching.reg(Field::Ra, File::R, operand(inst, 0)?);
                if matching.has(Field::Pd) {
                    matching.dst(Field::Pd, inst.dsts.get(1));
                }
                matching
            }
            Op::Redux { op, sign } => {
                let mut redux = self.plain(inst, "REDUX")?;
                redux.text(Field::Op, op.text()).signed(sign);
                redux.dst(Field::URd, inst.dsts.first()).reg(Field::Ra, File::R, operand(inst, 0)?);
                redux
            }
            Op::Warpsync => {
                let mask = operand(inst, 0)?;
                let mut sync = Builder::new(self.sm, inst.src, "WARPSYNC", shape(&[mask]))?;
                sync.reg_or_imm(Field::Ra, Field::Imm32, mask);
                return self.push(sync, Some(inst.src), Effect::Fence { pinned: false });
            }
            Op::Nanosleep => {
                let sleep = self.alu(inst, "NANOSLEEP", &[super::compute::B])?;
                return self.push(sleep, Some(inst.src), Effect::Fence { pinned: true });
            }
            _ => return self.misplaced(inst),
        };
        self.push(builder, Some(inst.src), Effect::Convergent)
    }

    pub(super) fn control(&mut self, inst: &Inst) -> Result<(), CodegenError> {
        let fence = Effect::Fence { pinned: false };
        let (builder, effect) = match inst.op {
            Op::Bar { mode } => (self.barrier(inst, mode)?, fence),
            Op::B2r { result } => {
                let mut read = Builder::new(self.sm, inst.src, "B2R", "")?;
                read.text(Field::Mode, ".RESULT");
                read.dst(if result { Field::Pd } else { Field::Rd }, inst.dsts.first());
                (read, fence)
            }
            Op::Bssy { target } => {
                let Some(target) = self.plan.machine_block(target) else {
                    return Err(CodegenError::internal(
                        inst.src,
                        PHASE,
                        "threads are to meet in a dead block",
                    ));
                };
                let mut set = self.plain(inst, "BSSY")?;
                if let Some(Dst::Reg(reg)) = inst.dsts.first() {
                    set.value(Field::Barrier, reg.index.into());
                }
                let inst = MachInst {
                    inst: set.finish()?,
                    src: Some(inst.src),
                    target: Some(target),
                    effect: fence,
                };
                self.out.push(inst);
                return Ok(());
            }
            Op::Bsync => (self.on_barrier(inst, "BSYNC")?, Effect::Fence { pinned: true }),
            Op::Break => (self.on_barrier(inst, "BREAK")?, Effect::Fence { pinned: true }),
            Op::Bpt { trap } => {
                let mut stop = self.plain(inst, "BPT")?;
                stop.text(Field::Mode, if trap { ".TRAP" } else { ".INT" }).value(Field::Imm2, 1);
                (stop, Effect::Fence { pinned: true })
            }
            Op::Nop => (self.plain(inst, "NOP")?, Effect::Fence { pinned: true }),
            _ => return self.misplaced(inst),
        };
        self.push(builder, Some(inst.src), effect)
    }

    fn on_barrier(&self, inst: &Inst, mnemonic: &str) -> Result<Builder, CodegenError> {
        let mut builder = self.plain(inst, mnemonic)?;
        if let SrcKind::Reg(reg) = operand(inst, 0)?.kind {
            builder.value(Field::Barrier, reg.index.into());
        }
        Ok(builder)
    }

    fn barrier(&self, inst: &Inst, mode: BarMode) -> Result<Builder, CodegenError> {
        let id = operand(inst, 0)?;
        let threads = inst.srcs.get(1).filter(|s| s.kind != SrcKind::Zero);
        let mut bar = Builder::new(self.sm, inst.src, "BAR", shape(&[id]))?;
        bar.text(Field::Mode, mode.text());
        bar.reg_or_imm(Field::Ra, Field::Imm2, id);
        if let Some(threads) = threads {
            bar.reg_or_imm(Field::Rb, Field::Imm3, threads);
        }
        if let Some(p) = inst.srcs.get(2) {
            bar.pred(Field::Pp, Field::PpNot, p);
        }
        Ok(bar)
    }
}

impl Builder {
    /// A source that is a register or a small immediate by the shape; zero is the immediate.
    fn reg_or_imm(&mut self, reg: Field, imm: Field, source: &Src) -> &mut Builder {
        match source.kind {
            SrcKind::Imm(bits) => self.value(imm, bits.into()),
            SrcKind::Zero => self.value(imm, 0),
            _ => self.reg(reg, File::R, source),
        }
    }
}

/// The shape of sources that are registers or immediates.
fn shape(sources: &[&Src]) -> &'static str {
    let imm = |n: usize| sources.get(n).map(|s| matches!(s.kind, SrcKind::Imm(_) | SrcKind::Zero));
    match (imm(0), imm(1)) {
        (Some(false), None) => "r",
        (Some(true), None) => "i",
        (Some(false), Some(false)) => "rr",
        (Some(false), Some(true)) => "ri",
        (Some(true), Some(false)) => "ir",
        (Some(true), Some(true)) => "ii",
        (None, _) => "",
    }
}
