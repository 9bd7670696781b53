//! `cvt` to and from floats that are narrower than halves, and to those that tensor cores take.

use super::float::{float, magnitude, rounding};
use super::integer::lut;
use super::{Lowering, Result, Statement};
use crate::ori::ir::Src;
use crate::ori::op::{FCmp, Op, QuarterType};
use ptx_isa::{Mod, ScalarType};

/// The format of each of a pair.
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
    /// `cvt.tf32.f32`; with `.rna` half a unit of the last place that stays is added to what is finite, and the rest cleared.
    pub(super) fn convert_to_tf32(&mut self, instr: &Statement<'a>) -> Result<()> {
        const PLACES: u32 = 13;
        if !instr.has(Mod::Rna) {
            return self.round_to_tf32(instr);
        }
        let a = self.source(instr, 1, ScalarType::F32)?;
        let finite = self.fcompare(FCmp::Lt, false, magnitude(a), float(f32::INFINITY));
        let a = self.in_register(a);
        let rounded = self.add_where(finite, a, Src::imm(1 << (PLACES - 1)), a);
        let result = self.lop3(lut::A & lut::B, rounded, Src::imm(!0 << PLACES), Src::ZERO);
        self.result(instr, result)
    }

    fn round_to_tf32(&mut self, instr: &Statement<'a>) -> Result<()> {
        let op = Op::F2fpTf32 {
            sat: instr.has(Mod::Satfinite),
            relu: instr.has(Mod::Relu),
            round: rounding(instr),
        };
        if !self.encodes(&op) {
            return self.unsupported(instr, "this rounding to .tf32 on the target");
        }
        let a = self.source(instr, 1, ScalarType::F32)?;
        let result = self.reg(op, &[a]);
        self.result(instr, result)
    }

    /// `cvt` of two floats or halves to a pair of narrow ones: the first operand is the high one.
    pub(super) fn convert_to_narrow(&mut self, instr: &Statement<'a>) -> Result<()> {
        let (to, from) = (self.type_of(instr, 0)?, self.type_of(instr, 1)?);
        let Some(format) = pair_of(to) else { return self.unsupported(instr, &format!("to .{}", to.text())) };
        // The one rounding of these formats.
        instr.ignore(&[Mod::Rn]);
        let (sat, relu) = (instr.has(Mod::Satfinite), instr.has(Mod::Relu));
        let (op, count) = match from {
            ScalarType::F32 => (Op::F2fpNarrow { sat, relu, to: format }, 2),
            ScalarType::F16x2 => (Op::F2fpNarrowHalf { sat, relu, to: format }, 1),
            _ => return self.unsupported(instr, &format!("from .{}", from.text())),
        };
        if !self.encodes(&op) {
            return self.unsupported(instr, &format!("to .{} on the target", to.text()));
        }
        let mut srcs = Vec::new();
        for i in 1..=count {
            srcs.push(self.source(instr, i, from)?);
        }
        srcs.push(Src::ZERO);
        let result = self.reg(op, &srcs);
        self.result(instr, result)
    }

    /// `cvt` of a pair of narrow floats to two halves.
    pub(super) fn convert_from_narrow(&mut self, instr: &Statement<'a>) -> Result<()> {
        let (to, from) = (self.type_of(instr, 0)?, self.type_of(instr, 1)?);
        let Some(format) = pair_of(from).filter(|_| to == ScalarType::F16x2) else {
            return self.unsupported(instr, &format!("from .{} to .{}", from.text(), to.text()));
        };
        // Nothing is rounded.
        instr.ignore(&[Mod::Rn]);
        let op = Op::F2fpUnpack { relu: instr.has(Mod::Relu), from: format };
        if !self.encodes(&op) {
            return self.unsupported(instr, &format!("from .{} on the target", from.text()));
        }
        let pair = self.source(instr, 1, from)?;
        let result = self.reg(op, &[pair]);
        self.result(instr, result)
    }
}
