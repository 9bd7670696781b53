//! Moves, selection, integer and predicate operations.

use super::builder::{Builder, Slot};
use super::{Emitter, PHASE};
use crate::CodegenError;
use crate::mach::Effect;
use crate::ori::ir::{File, Inst, Src, SrcKind};
use crate::ori::op::{Op, Sign};
use crate::ori::signature::special;
use sass::Field;

pub(super) const A: Slot = Slot::A;
pub(super) const B: Slot = Slot::B;
pub(super) const C: Slot = Slot::C;

impl Emitter<'_> {
    /// Chooses the machine instruction of an operation; exhaustive, one family per method.
    pub(super) fn select(&mut self, inst: &Inst) -> Result<(), CodegenError> {
        match inst.op {
            // The allocator has made moves of them.
            Op::Pack | Op::Copy => self.misplaced(inst),
            Op::Mov => match inst.dsts.first() {
                Some(dst) => self.mov(dst, operand(inst, 0)?, Some(inst.src)),
                None => self.misplaced(inst),
            },
            Op::Sel
            | Op::Fsel { .. }
            | Op::Prmt
            | Op::S2r { .. }
            | Op::Cs2r { .. }
            | Op::P2r { .. }
            | Op::R2p { .. } => self.selection(inst),
            Op::Iadd3 { .. }
            | Op::Imad { .. }
            | Op::ImadWide { .. }
            | Op::ImadHi { .. }
            | Op::ImadX { .. }
            | Op::Lea { .. }
            | Op::LeaHi { .. }
            | Op::LeaHiSx32 { .. }
            | Op::Imnmx { .. }
            | Op::Iabs
            | Op::Idp { .. }
            | Op::Vabsdiff { .. } => self.integer(inst),
            Op::Lop3 { .. }
            | Op::Lop3P { .. }
            | Op::Plop3 { .. }
            | Op::Shf { .. }
            | Op::Isetp { .. }
            | Op::Popc
            | Op::Flo { .. }
            | Op::Brev
            | Op::Sgxt { .. }
            | Op::Bmsk { .. } => self.bits(inst),
            Op::Fadd { .. }
            | Op::Fmul { .. }
            | Op::Ffma { .. }
            | Op::Fmnmx { .. }
            | Op::Fsetp { .. }
            | Op::Mufu { .. }
            | Op::Fchk
            | Op::Dadd { .. }
            | Op::Dmul { .. }
            | Op::Dfma { .. }
            | Op::Dsetp { .. } => self.float(inst),
            Op::Hadd2 { .. }
            | Op::Hmul2 { .. }
            | Op::Hfma2 { .. }
            | Op::Hsetp2 { .. }
            | Op::Hmnmx2 { .. } => self.half(inst),
            Op::I2f { .. }
            | Op::I2fp { .. }
            | Op::F2i { .. }
            | Op::F2f { .. }
            | Op::Frnd { .. }
            | Op::F2fp { .. } => self.conversion(inst),
            Op::Uldc { .. } | Op::Umov | Op::Ulea { .. } | Op::S2ur { .. } | Op::R2ur => self.uniform(inst),
            Op::Ldg { .. }
            | Op::Stg { .. }
            | Op::Ld { .. }
            | Op::St { .. }
            | Op::Lds { .. }
            | Op::Sts { .. }
            | Op::Ldl { .. }
            | Op::Stl { .. }
            | Op::Ldc { .. }
            | Op::Atom { .. }
            | Op::AtomCas { .. }
            | Op::Red { .. }
            | Op::Atoms { .. }
            | Op::AtomsCas { .. } => self.memory(inst),
            Op::Membar { .. } | Op::Errbar | Op::Cctl { .. } => self.fence(inst),
            Op::Shfl { .. }
            | Op::Vote { .. }
            | Op::Match { .. }
            | Op::Redux { .. }
            | Op::Warpsync
            | Op::Nanosleep => self.warp(inst),
            Op::Bar { .. }
            | Op::B2r { .. }
            | Op::Bssy { .. }
            | Op::Bsync
            | Op::Break
            | Op::Bpt { .. }
            | Op::Nop => self.control(inst),
        }
    }

    /// An instruction of a register result whose slots take the sources in order.
    pub(super) fn alu(&self, inst: &Inst, mnemonic: &str, slots: &[Slot]) -> Result<Builder, CodegenError> {
        let mut sources: [(Slot, &Src); 3] = [(A, &Src::ZERO); 3];
        for (i, (entry, &slot)) in sources.iter_mut().zip(slots).enumerate() {
            *entry = (slot, operand(inst, i)?);
        }
        let mut builder = Builder::shaped(self.sm, inst.src, mnemonic, &sources[..slots.len()])?;
        if builder.has(Field::Rd) {
            builder.dst(Field::Rd, inst.dsts.first());
        }
        Ok(builder)
    }

    /// An instruction without slots, its register result set.
    pub(super) fn plain(&self, inst: &Inst, mnemonic: &str) -> Result<Builder, CodegenError> {
        let mut builder = Builder::new(self.sm, inst.src, mnemonic, "")?;
        if builder.has(Field::Rd) {
            builder.dst(Field::Rd, inst.dsts.first());
        }
        Ok(builder)
    }

    pub(super) fn pure(&mut self, builder: Builder, inst: &Inst) -> Result<(), CodegenError> {
        self.push(builder, Some(inst.src), Effect::None)
    }

    fn selection(&mut self, inst: &Inst) -> Result<(), CodegenError> {
        let builder = match inst.op {
            Op::Sel => {
                let mut sel = self.alu(inst, "SEL", &[A, B])?;
                sel.pred(Field::Pp, Field::PpNot, operand(inst, 2)?);
                sel
            }
            Op::Fsel { ftz } => {
                let mut sel = self.alu(inst, "FSEL", &[A, B])?;
                sel.flag(Field::Ftz, ftz).pred(Field::Pp, Field::PpNot, operand(inst, 2)?);
                sel
            }
            Op::Prmt => self.alu(inst, "PRMT", &[A, B, C])?,
            Op::S2r { sr } => {
                let mut read = self.plain(inst, "S2R")?;
                read.value(Field::Special, sr.0.into());
                read
            }
            Op::Cs2r { sr, wide } => {
                let mut read = self.plain(inst, "CS2R")?;
                read.value(Field::Special, sr.0.into()).text(Field::Wide, if wide { "" } else { ".32" });
                let effect = if sr == special::ZERO { Effect::None } else { Effect::Fence { pinned: true } };
                return self.push(read, Some(inst.src), effect);
            }
            Op::P2r { mask } => {
                let mask = Src::imm(mask.into());
                let mut read =
                    Builder::shaped(self.sm, inst.src, "P2R", &[(A, &Src::ZERO), (B, &nonzero(mask))])?;
                read.dst(Field::Rd, inst.dsts.first());
                read
            }
            Op::R2p { mask } => {
                let mask = Src::imm(mask.into());
                Builder::shaped(self.sm, inst.src, "R2P", &[(A, operand(inst, 0)?), (B, &nonzero(mask))])?
            }
            _ => return self.misplaced(inst),
        };
        self.pure(builder, inst)
    }

    fn integer(&mut self, inst: &Inst) -> Result<(), CodegenError> {
        let builder = match inst.op {
            Op::Iadd3 { x } => {
                let mut add = self.alu(inst, "IADD3", &[A, B, C])?;
                add.dst(Field::Pd, inst.dsts.get(1)).dst(Field::Pq, inst.dsts.get(2)).flag(Field::Extend, x);
                if x {
                    add.pred(Field::Pp, Field::PpNot, inst.srcs.get(3).unwrap_or(&Src::FALSE));
                    add.pred(Field::Pr, Field::PrNot, inst.srcs.get(4).unwrap_or(&Src::FALSE));
                }
                add
            }
            Op::Imad { sign } => {
                let mut mad = self.alu(inst, "IMAD", &[A, B, C])?;
                mad.signed(sign);
                mad
            }
            Op::ImadWide { sign } => {
                let mut mad = self.alu(inst, "IMAD.WIDE", &[A, B, C])?;
                mad.signed(sign);
                mad
            }
            Op::ImadHi { sign } => {
                let mut mad = self.alu(inst, "IMAD.HI", &[A, B, C])?;
                mad.signed(sign);
                mad
            }
            Op::ImadX { sign, hi } => {
                let mut mad = self.alu(inst, if hi { "IMAD.HI" } else { "IMAD" }, &[A, B, C])?;
                mad.signed(sign).flag(Field::Extend, true);
                mad.dst(Field::Pd, inst.dsts.get(1)).pred(
                    Field::Pp,
                    Field::PpNot,
                    inst.srcs.get(3).unwrap_or(&Src::FALSE),
                );
                mad
            }
            Op::Lea { shift } => {
                let mut lea = self.alu(inst, "LEA", &[A, B])?;
                lea.value(Field::Imm2, shift.into()).dst(Field::Pd, inst.dsts.get(1));
                lea
            }
            Op::LeaHi { shift, x } => {
                let mut lea = self.alu(inst, "LEA.HI", &[A, B, C])?;
                lea.value(Field::Imm2, shift.into()).flag(Field::Extend, x).dst(Field::Pd, inst.dsts.get(1));
                if x {
                    lea.pred(Field::Pp, Field::PpNot, inst.srcs.get(3).unwrap_or(&Src::FALSE));
                }
                lea
            }
            Op::LeaHiSx32 { shift, x } => {
                let mut lea = self.alu(inst, "LEA.HI.SX32", &[A, B])?;
                lea.value(Field::Imm2, shift.into()).flag(Field::Extend, x).dst(Field::Pd, inst.dsts.get(1));
                if x {
                    lea.pred(Field::Pp, Field::PpNot, inst.srcs.get(2).unwrap_or(&Src::FALSE));
                }
                lea
            }
            Op::Imnmx { sign } => {
                let (mnemonic, field) =
                    if self.sm.0 >= 90 { ("VIMNMX", Field::Type) } else { ("IMNMX", Field::Signed) };
                let mut minmax = self.alu(inst, mnemonic, &[A, B])?;
                // From sm_120 on the type has a name for either sign.
                let sign = if self.sm.0 >= 120 && sign == Sign::S32 { ".S32" } else { sign.text() };
                minmax.text(field, sign).pred(Field::Pp, Field::PpNot, operand(inst, 2)?);
                minmax
            }
            Op::Iabs => self.alu(inst, "IABS", &[B])?,
            Op::Idp { two, a_signed, b_signed, hi } => {
                let mut dot = self.alu(inst, "IDP", &[A, B, C])?;
                dot.text(
                    Field::Mode,
                    match (two, hi) {
                        (false, _) => ".4A",
                        (true, false) => ".2A.LO",
                        (true, true) => ".2A.HI",
                    },
                );
                dot.value(Field::SrcType, a_signed.into()).value(Field::SrcType2, b_signed.into());
                dot
            }
            Op::Vabsdiff { sign } => {
                let mut diff = self.alu(inst, "VABSDIFF", &[A, B, C])?;
                diff.signed(sign);
                diff
            }
            _ => return self.misplaced(inst),
        };
        self.pure(builder, inst)
    }

    fn bits(&mut self, inst: &Inst) -> Result<(), CodegenError> {
        let builder = match inst.op {
            Op::Lop3 { lut } => {
                let mut lop = self.alu(inst, "LOP3", &[A, B, C])?;
                lop.value(Field::Lut, lut.into());
                lop
            }
            Op::Lop3P { lut } => {
                let sources = [(A, operand(inst, 0)?), (B, operand(inst, 1)?), (C, operand(inst, 2)?)];
                let mut lop = Builder::shaped(self.sm, inst.src, "LOP3", &sources)?;
                lop.value(Field::Lut, lut.into()).dst(Field::Pd, inst.dsts.first());
                lop
            }
            Op::Plop3 { lut, lut2 } => {
                let mut lop = self.plain(inst, "PLOP3")?;
                lop.value(Field::Lut, lut.into()).value(Field::Lut2, lut2.into());
                lop.dst(Field::Pd, inst.dsts.first()).dst(Field::Pq, inst.dsts.get(1));
                lop.pred(Field::Pp, Field::PpNot, operand(inst, 0)?);
                lop.pred(Field::Pr, Field::PrNot, inst.srcs.get(1).unwrap_or(&Src::TRUE));
                lop.pred(Field::Ps, Field::PsNot, inst.srcs.get(2).unwrap_or(&Src::TRUE));
                lop
            }
            Op::Shf { right, wrap, hi, ty } => {
                let mut shift = self.alu(inst, "SHF", &[A, B, C])?;
                shift.text(Field::Right, if right { ".R" } else { ".L" }).text(Field::Type, ty.text());
                shift.flag(Field::Wrap, wrap).flag(Field::High, hi);
                shift
            }
            Op::Isetp { cmp, sign, bool_, ex } => {
                let mut set = self.alu(inst, "ISETP", &[A, B])?;
                set.text(Field::Cmp, cmp.text()).text(Field::Bool, bool_.text()).signed(sign);
                set.dst(Field::Pd, inst.dsts.first()).dst(Field::Pq, inst.dsts.get(1));
                set.pred(Field::Pp, Field::PpNot, inst.srcs.get(2).unwrap_or(&Src::TRUE))
                    .flag(Field::Extend, ex);
                if ex {
                    set.pred(Field::Pr, Field::PrNot, inst.srcs.get(3).unwrap_or(&Src::TRUE));
                }
                set
            }
            Op::Popc => self.alu(inst, "POPC", &[B])?,
            Op::Flo { sign, shift } => {
                let mut find = self.alu(inst, "FLO", &[B])?;
                find.signed(sign).text(Field::Mode, if shift { ".SH" } else { "" });
                find
            }
            Op::Brev => self.alu(inst, "BREV", &[B])?,
            Op::Sgxt { sign, wrap } => {
                let mut extend = self.alu(inst, "SGXT", &[A, B])?;
                extend.signed(sign).flag(Field::Wrap, wrap);
                extend
            }
            Op::Bmsk { wrap } => {
                let mut mask = self.alu(inst, "BMSK", &[A, B])?;
                mask.flag(Field::Wrap, wrap);
                mask
            }
            _ => return self.misplaced(inst),
        };
        self.pure(builder, inst)
    }

    fn uniform(&mut self, inst: &Inst) -> Result<(), CodegenError> {
        let mut builder = match inst.op {
            Op::Uldc { wide } => {
                let mnemonic = if self.sm.0 >= 100 { "LDCU" } else { "ULDC" };
                let mut load = Builder::new(self.sm, inst.src, mnemonic, "")?;
                load.text(Field::Size, if wide { ".64" } else { "" }).constant(operand(inst, 0)?);
                load
            }
            Op::Umov => self.alu(inst, "UMOV", &[B])?,
            Op::Ulea { shift } => {
                let mut lea = self.alu(inst, "ULEA", &[A, B])?;
                lea.value(Field::Imm2, shift.into());
                lea
            }
            Op::S2ur { sr } => {
                let mut read = self.plain(inst, "S2UR")?;
                read.value(Field::Special, sr.0.into());
                read
            }
            Op::R2ur => {
                let mut read = self.plain(inst, "R2UR")?;
                read.reg(Field::Ra, File::R, operand(inst, 0)?);
                read
            }
            _ => return self.misplaced(inst),
        };
        builder.dst(Field::URd, inst.dsts.first());
        self.pure(builder, inst)
    }

    /// A dispatcher sent an operation to the wrong family.
    pub(super) fn misplaced(&self, inst: &Inst) -> Result<(), CodegenError> {
        Err(CodegenError::internal(inst.src, PHASE, format!("no selection for {:?}", inst.op)))
    }
}

impl Builder {
    pub(super) fn signed(&mut self, sign: Sign) -> &mut Builder {
        self.text(Field::Signed, sign.text())
    }
}

/// The n-th source.
pub(super) fn operand(inst: &Inst, n: usize) -> Result<&Src, CodegenError> {
    inst.srcs
        .get(n)
        .ok_or_else(|| CodegenError::internal(inst.src, PHASE, format!("{:?} lacks source {n}", inst.op)))
}

/// An immediate zero takes the immediate form all the same.
fn nonzero(src: Src) -> Src {
    if src.kind == SrcKind::Zero { Src::new(SrcKind::Imm(0)) } else { src }
}
