//! `cvt` to and from floats that are narrower than halves, and formats of tensor cores.

use super::float::{float, magnitude, rounding};
use super::integer::lut;
use super::{Lowering, Result, Statement};
use crate::input::Operand;
use crate::ori::ir::Src;
use crate::ori::op::{
    FCmp, Op, PackKept, PackSat, PackType, QuarterType, RandomRound, ScaleRound, ScaleType,
};
use ptx_isa::{FormId, Mod, ScalarType};

/// The format of each element of a pair.
fn pair_of(ty: ScalarType) -> Option<QuarterType> {
    match ty {
        ScalarType::E4m3x2 => Some(QuarterType::E4m3),
        ScalarType::E5m2x2 => Some(QuarterType::E5m2),
        ScalarType::E2m3x2 => Some(QuarterType::E2m3),
        ScalarType::E3m2x2 => Some(QuarterType::E3m2),
        ScalarType::E2m1x2 => Some(QuarterType::E2m1),
        _ => None,
    }
}

impl<'a> Lowering<'a> {
    /// `cvt.tf32.f32`. With `.rna`, half a unit of the last remaining place is added to finite values, and the lower
    /// bits are cleared.
    pub(super) fn convert_to_tf32(&mut self, instr: &Statement<'a>) -> Result<()> {
        const PLACES: u32 = 13;
        if !instr.has(Mod::Rna) {
            return self.round_to_tf32(instr);
        }
        let a = self.source(instr, 1, ScalarType::F32)?;
        let finite = self.fcompare(FCmp::Lt, false, magnitude(a), float(f32::INFINITY));
        let a = self.in_register(a);
        let rounded = self.add_where(finite, a, Src::imm(1 << (PLACES - 1)), a);
        let mut result = self.lop3(lut::A & lut::B, rounded, Src::imm(!0 << PLACES), Src::ZERO);
        if instr.has(Mod::Satfinite) {
            let infinite = self.fcompare(FCmp::Geu, false, magnitude(result), float(f32::INFINITY));
            result = self.add_where(infinite, result, Src::imm(!0 << PLACES), result);
        }
        self.result(instr, result)
    }

    fn round_to_tf32(&mut self, instr: &Statement<'a>) -> Result<()> {
        let op = Op::F2fpTf32 {
            sat: instr.has(Mod::Satfinite),
            relu: instr.has(Mod::Relu),
            round: rounding(instr),
        };
        if !self.encodes(&op) {
            return self.unsupported(instr, "this rounding to .tf32 on this target");
        }
        let a = self.source(instr, 1, ScalarType::F32)?;
        let result = self.reg(op, &[a]);
        self.result(instr, result)
    }

    /// `cvt` of two floats or halves to a pair of narrow floats. The first operand is the high one.
    pub(super) fn convert_to_narrow(&mut self, instr: &Statement<'a>) -> Result<()> {
        let (to, from) = (self.type_of(instr, 0)?, self.type_of(instr, 1)?);
        let Some(format) = pair_of(to) else {
            return self.unsupported(instr, &format!("conversion to `.{}`", to.text()));
        };
        // These formats have only one rounding.
        instr.ignore(&[Mod::Rn]);
        let (sat, relu) = (instr.has(Mod::Satfinite), instr.has(Mod::Relu));
        let (op, count) = match from {
            ScalarType::F32 => (Op::F2fpNarrow { sat, relu, to: format }, 2),
            ScalarType::F16x2 => (Op::F2fpNarrowHalf { sat, relu, to: format }, 1),
            _ => return self.unsupported(instr, &format!("conversion from `.{}`", from.text())),
        };
        if !self.encodes(&op) {
            return self.unsupported(instr, &format!("conversion to `.{}` on this target", to.text()));
        }
        self.narrow_pair(instr, op, count, from)
    }

    /// `cvt` of a pair of narrow floats to two halves.
    pub(super) fn convert_from_narrow(&mut self, instr: &Statement<'a>) -> Result<()> {
        let (to, from) = (self.type_of(instr, 0)?, self.type_of(instr, 1)?);
        let Some(format) = pair_of(from).filter(|_| to == ScalarType::F16x2) else {
            return self
                .unsupported(instr, &format!("conversion from `.{}` to `.{}`", from.text(), to.text()));
        };
        // Exact conversions need no rounding.
        instr.ignore(&[Mod::Rn]);
        let relu = instr.has(Mod::Relu);
        let op = match format {
            QuarterType::E2m1 => Op::F2fpUnpackByte { relu },
            from => Op::F2fpUnpack { relu, from },
        };
        if !self.encodes(&op) {
            return self.unsupported(instr, &format!("conversion from `.{}` on this target", from.text()));
        }
        let pair = self.source(instr, 1, from)?;
        let result = self.reg(op, &[pair]);
        self.result(instr, result)
    }

    /// `cvt.rs` of four floats to narrow floats; the first operand is the highest. The second operation takes the
    /// result of the first in place of the random bits.
    pub(super) fn convert_to_four(&mut self, instr: &Statement<'a>) -> Result<()> {
        // The form has no other rounding.
        instr.ignore(&[Mod::Rs]);
        let to = match self.type_of(instr, 0)? {
            ScalarType::E4m3x4 => QuarterType::E4m3,
            ScalarType::E5m2x4 => QuarterType::E5m2,
            ScalarType::E2m3x4 => QuarterType::E2m3,
            ScalarType::E3m2x4 => QuarterType::E3m2,
            ScalarType::E2m1x4 => QuarterType::E2m1,
            other => return self.unsupported(instr, &format!("conversion to `.{}`", other.text())),
        };
        let (sat, relu) = (instr.has(Mod::Satfinite), instr.has(Mod::Relu));
        let op = Op::F2fpNarrowRandom { sat, relu, to, round: RandomRound::Rs };
        if !self.encodes(&op) {
            return self.unsupported(instr, "random rounding on this target");
        }
        let floats = match self.operand(instr, 1)? {
            Operand::Vector(floats) if floats.len() == 4 => floats,
            _ => return self.unsupported(instr, "a vector with a number of elements other than four"),
        };
        let floats =
            floats.iter().map(|float| self.read(float, ScalarType::F32)).collect::<Result<Vec<Src>>>()?;
        let random = self.source(instr, 2, ScalarType::B32)?;
        let high = self.reg(op, &[floats[0], floats[1], random]);
        let both = self.reg(op, &[floats[2], floats[3], high]);
        self.result(instr, both)
    }

    /// `cvt` of two floats to scale factors. The first operand is the high one.
    pub(super) fn convert_to_scale(&mut self, instr: &Statement<'a>) -> Result<()> {
        let sat = instr.has(Mod::Satfinite);
        let Some(round) = instr.take(&[(Mod::Rp, ScaleRound::Rp), (Mod::Rz, ScaleRound::Rz)]) else {
            return self.malformed("a scale factor without its rounding");
        };
        let to = ScaleType::E8;
        let from = self.type_of(instr, 1)?;
        let (op, count) = match from {
            ScalarType::F32 => (Op::F2fpScale { sat, to, round }, 2),
            ScalarType::Bf16x2 => (Op::F2fpScaleHalf { sat, to, bf16: true, round }, 1),
            _ => return self.unsupported(instr, &format!("conversion from `.{}`", from.text())),
        };
        if !self.encodes(&op) {
            return self.unsupported(instr, "scale factors on this target");
        }
        self.narrow_pair(instr, op, count, from)
    }

    /// The result of an operation that converts a pair of `count` sources; a zero upper half follows the sources.
    fn narrow_pair(&mut self, instr: &Statement<'a>, op: Op, count: usize, from: ScalarType) -> Result<()> {
        let mut srcs = Vec::new();
        for i in 1..=count {
            srcs.push(self.source(instr, i, from)?);
        }
        srcs.push(Src::ZERO);
        let result = self.reg(op, &srcs);
        self.result(instr, result)
    }

    /// `cvt` of a pair of scale factors to bf16.
    pub(super) fn convert_from_scale(&mut self, instr: &Statement<'a>) -> Result<()> {
        // Exact conversions need no rounding.
        instr.ignore(&[Mod::Rn]);
        if !self.encodes(&Op::F2fpUnpackScale) {
            return self.unsupported(instr, "scale factors on this target");
        }
        let pair = self.source(instr, 1, ScalarType::Ue8m0x2)?;
        let result = self.reg(Op::F2fpUnpackScale, &[pair]);
        self.result(instr, result)
    }

    /// `cvt.pack`: converts two integers to narrower ones, with the first operand as the high one, above the kept part
    /// of a third operand.
    pub(super) fn convert_and_pack(&mut self, instr: &Statement<'a>) -> Result<()> {
        // All forms saturate.
        instr.ignore(&[Mod::Sat]);
        let (to, kept) = match self.type_of(instr, 0)? {
            ScalarType::U16 => (PackType::U16, PackKept::Half),
            ScalarType::S16 => (PackType::S16, PackKept::Half),
            ScalarType::U8 => (PackType::U8, PackKept::Half),
            ScalarType::S8 => (PackType::S8, PackKept::Half),
            ScalarType::U4 => (PackType::U4, PackKept::Most),
            ScalarType::S4 => (PackType::S4, PackKept::Most),
            ScalarType::U2 => (PackType::U2, PackKept::Nearly),
            ScalarType::S2 => (PackType::S2, PackKept::Nearly),
            other => return self.unsupported(instr, &format!("conversion to `.{}`", other.text())),
        };
        let (a, b) = (self.source(instr, 1, ScalarType::S32)?, self.source(instr, 2, ScalarType::S32)?);
        let c = match instr.form() {
            FormId::CvtPackInto => self.source(instr, 3, ScalarType::B32)?,
            _ => Src::ZERO,
        };
        let result = self.reg(Op::I2ip { to, sat: PackSat::Sat, kept }, &[a, b, c]);
        let result = self.widen_to(self.operand(instr, 0)?, result, ScalarType::B32)?;
        self.result(instr, result)
    }
}
