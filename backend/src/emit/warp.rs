//! Operations of the whole warp or block, and of control flow.

use super::Emitter;
use super::builder::{Builder, PHASE};
use super::compute::operand;
use crate::CodegenError;
use crate::mach::{Effect, MachInst};
use crate::ori::ir::{Dst, File, Inst, Src, SrcKind};
use crate::ori::op::{BarMode, MatchMode, Op, ReduxOp, Sign};
use sass::Field;

impl Emitter<'_> {
    pub(super) fn warp(&mut self, inst: &Inst) -> Result<(), CodegenError> {
        let builder = match inst.op {
            Op::Shfl { mode } => {
                // Bits that do not count need not fit either.
                let (lane, clamp) = (low_bits(operand(inst, 1)?, 0x1f), low_bits(operand(inst, 2)?, 0x1f1f));
                let mut shuffle = Builder::new(self.sm, inst.src, "SHFL", shape(&lane, &clamp))?;
                shuffle.text(Field::Mode, mode.text());
                shuffle.dst(Field::Rd, inst.dsts.first()).dst(Field::Pd, inst.dsts.get(1));
                shuffle.reg(Field::Ra, File::R, operand(inst, 0)?);
                shuffle.reg_or_imm(Field::Rb, Field::Imm2, &lane).reg_or_imm(Field::Rc, Field::Imm3, &clamp);
                shuffle
            }
            Op::Vote { mode } => {
                let mut vote = self.plain(inst, "VOTE")?;
                vote.text(Field::Mode, mode.text()).dst(Field::Pd, inst.dsts.get(1));
                vote.pred(Field::Pp, Field::PpNot, operand(inst, 0)?);
                vote
            }
            Op::Match { mode, wide } => {
                let all = mode == MatchMode::All;
                let mut matching = self.plain(inst, if all { "MATCH.ALL" } else { "MATCH.ANY" })?;
                matching.flag(Field::Wide, wide).reg(Field::Ra, File::R, operand(inst, 0)?);
                if all {
                    matching.dst(Field::Pd, inst.dsts.get(1));
                }
                matching
            }
            Op::Redux { op, sign } => {
                let mut redux = self.plain(inst, "REDUX")?;
                // The bitwise ones and the sum do not care, and `AND` is not named.
                let signed = sign == Sign::S32 && matches!(op, ReduxOp::Min | ReduxOp::Max);
                redux
                    .text(Field::Op, if op == ReduxOp::And { "" } else { op.text() })
                    .flag(Field::Signed, signed);
                redux.dst(Field::URd, inst.dsts.first()).reg(Field::Ra, File::R, operand(inst, 0)?);
                redux
            }
            Op::Warpsync => {
                let sync = self.warpsync(inst, operand(inst, 0)?)?;
                return self.push(sync, Some(inst.src), Effect::Fence { pinned: false });
            }
            Op::Nanosleep => {
                let time = operand(inst, 0)?;
                let mut sleep =
                    Builder::new(self.sm, inst.src, "NANOSLEEP", if is_imm(time) { "" } else { "r" })?;
                sleep.reg_or_imm(Field::Rb, Field::Imm32, time);
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
                let mut read = Builder::new(self.sm, inst.src, "B2R.RESULT", "")?;
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
            // A breakpoint is a trap to the hardware too.
            Op::Bpt { .. } => {
                let mut stop = self.plain(inst, "BPT")?;
                stop.text(Field::Mode, ".TRAP").value(Field::Imm2, 1);
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
        let threads = inst.srcs.get(1).unwrap_or(&Src::ZERO);
        let shape = match (is_imm(id), is_imm(threads)) {
            (true, true) => "",
            (true, false) => "ir",
            (false, true) => "r",
            (false, false) => {
                return Err(CodegenError::unsupported(inst.src, "barrier and thread count in registers"));
            }
        };
        let (kind, reduction, defers) = match mode {
            BarMode::Sync => (".SYNC", None, false),
            BarMode::SyncDefer => (".SYNC", None, true),
            BarMode::Arv => (".ARV", None, false),
            BarMode::RedPopc => (".RED", Some(".POPC"), true),
            BarMode::RedAnd => (".RED", Some(".AND"), true),
            BarMode::RedOr => (".RED", Some(".OR"), true),
        };
        let mut bar = Builder::new(self.sm, inst.src, "BAR", shape)?;
        bar.text(Field::Mode, kind).flag(Field::Flag, defers);
        if let Some(reduction) = reduction {
            bar.text(Field::Op, reduction);
        }
        bar.reg_or_imm(Field::Rb, Field::Imm2, id).reg_or_imm(Field::Rb, Field::Imm3, threads);
        if let Some(p) = inst.srcs.get(2)
            && reduction.is_some()
        {
            bar.pred(Field::Pp, Field::PpNot, p);
        }
        Ok(bar)
    }

    fn warpsync(&self, inst: &Inst, mask: &Src) -> Result<Builder, CodegenError> {
        if self.sm.0 >= 90 && mask.kind == SrcKind::Imm(u32::MAX) {
            return Builder::new(self.sm, inst.src, "WARPSYNC.ALL", "");
        }
        if self.sm.0 >= 90 {
            let mut sync = Builder::new(self.sm, inst.src, "WARPSYNC", "r")?;
            sync.reg(Field::Ra, File::R, mask);
            return Ok(sync);
        }
        let mut sync = Builder::new(self.sm, inst.src, "WARPSYNC", if is_imm(mask) { "" } else { "r" })?;
        sync.reg_or_imm(Field::Rb, Field::Imm32, mask);
        Ok(sync)
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

/// An immediate without the bits outside `mask`.
fn low_bits(source: &Src, mask: u32) -> Src {
    match source.kind {
        SrcKind::Imm(bits) => Src { kind: SrcKind::Imm(bits & mask), ..*source },
        _ => *source,
    }
}

fn is_imm(source: &Src) -> bool {
    matches!(source.kind, SrcKind::Imm(_) | SrcKind::Zero)
}

/// The shape of two sources that are registers or immediates.
fn shape(a: &Src, b: &Src) -> &'static str {
    match (is_imm(a), is_imm(b)) {
        (false, false) => "rr",
        (false, true) => "ri",
        (true, false) => "ir",
        (true, true) => "ii",
    }
}
