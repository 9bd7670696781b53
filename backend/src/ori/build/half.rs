//! Half precision: operations on both halves of a register. A scalar is the low half.

use super::operand::known;
use super::{Lowering, Result, Statement};
use crate::ori::ir::{Dst, File, Inst, Src};
use crate::ori::op::{Bool, FCmp, HalfFunc, HalfRead, HalfZeros, Op};
use ptx_isa::{Mod, ScalarType};

impl<'a> Lowering<'a> {
    /// Whether the instruction is on bfloat16. Rejects other types and old targets.
    pub(super) fn half_type(&self, instr: &Statement<'_>) -> Result<bool> {
        let bf16 = match self.type_of(instr, 0)? {
            ScalarType::F16 | ScalarType::F16x2 => false,
            ScalarType::Bf16 | ScalarType::Bf16x2 => true,
            ty => return self.unsupported(instr, &format!("the type `.{}`", ty.text())),
        };
        if bf16 && !self.encodes(&Op::Hfma2 { bf16, zeros: HalfZeros::Zero, sat: false, relu: false }) {
            return self.unsupported(instr, "bfloat16 on this target");
        }
        Ok(bf16)
    }

    /// As [`Self::half_type`], for additions and products that are not fused.
    pub(super) fn half_sum_type(&self, instr: &Statement<'_>) -> Result<bool> {
        let bf16 = self.half_type(instr)?;
        if bf16 && !self.encodes(&Op::Hmul2 { bf16, ftz: false, sat: false }) {
            return self.unsupported(instr, "`.bf16` instructions other than `fma` on this target");
        }
        Ok(bf16)
    }

    /// An operand. A scalar constant is in both halves.
    pub(super) fn source_half(&mut self, instr: &Statement<'a>, i: usize) -> Result<Src> {
        let ty = self.type_of(instr, 0)?;
        self.source_half_as(instr, i, ty)
    }

    /// As [`Self::source_half`], for a type other than the instruction's first.
    fn source_half_as(&mut self, instr: &Statement<'a>, i: usize, ty: ScalarType) -> Result<Src> {
        let src = self.source(instr, i, ty)?;
        Ok(match known(src) {
            Some(bits) if ty.bits() == 16 => Src::imm(bits & 0xffff | bits << 16),
            _ => src,
        })
    }

    /// `ex2` and `tanh` of one half or of both.
    pub(super) fn approximate_half(&mut self, instr: &Statement<'a>, func: HalfFunc) -> Result<()> {
        // The operation itself flushes denormals of bf16.
        instr.ignore(&[Mod::Ftz]);
        let ty = self.type_of(instr, 0)?;
        let bf16 = matches!(ty, ScalarType::Bf16 | ScalarType::Bf16x2);
        let op = |high| Op::MufuHalf { func, bf16, high };
        if !self.encodes(&op(false)) {
            return self.unsupported(instr, "bfloat16 on this target");
        }
        let src = self.source(instr, 1, ty)?;
        let low = self.reg(op(false), &[src]);
        if ty.bits() == 16 {
            return self.result(instr, low);
        }
        let src = self.in_register(src);
        let high = self.reg(op(true), &[src]);
        let both = self.halves_of(low, high);
        self.result(instr, both)
    }

    /// `abs` and `neg`: a bit operation on the signs of both halves. With `.ftz`, adding a negative zero flushes
    /// denormal halves and keeps their signs.
    pub(super) fn sign_of_half(&mut self, instr: &Statement<'a>, lut: u8, mask: u32) -> Result<()> {
        const NEGATIVE_ZEROS: u32 = 0x8000_8000;
        let bf16 = self.half_type(instr)?;
        let src = self.source_half(instr, 1)?;
        let mut result = self.lop3(lut, src, Src::imm(mask), Src::ZERO);
        if instr.has(Mod::Ftz) {
            let op = Op::Hadd2 { bf16, ftz: true, sat: false, f32: false, half: HalfRead::Own };
            result = self.reg(op, &[result, Src::imm(NEGATIVE_ZEROS)]);
        }
        self.result(instr, result)
    }

    /// The operands of a comparison of halves for the machine instruction, and whether their type is bf16.
    fn compared_halves(
        &mut self,
        instr: &Statement<'a>,
        ty: ScalarType,
        cmp: Option<FCmp>,
    ) -> Result<(bool, FCmp, [Src; 2])> {
        let bf16 = matches!(ty, ScalarType::Bf16 | ScalarType::Bf16x2);
        let Some(cmp) = cmp else { return self.unsupported(instr, "an unsigned comparison of floats") };
        if !self.encodes(&Op::Hsetp2 { cmp, bf16, ftz: false, bool_: Bool::And }) {
            return self.unsupported(instr, "bfloat16 on this target");
        }
        Ok((bf16, cmp, [self.source_half_as(instr, 1, ty)?, self.source_half_as(instr, 2, ty)?]))
    }

    /// A comparison of the low halves and of the high halves, each combined with `with`.
    pub(super) fn compare_halves(
        &mut self,
        instr: &Statement<'a>,
        ty: ScalarType,
        cmp: Option<FCmp>,
        bool_: Bool,
        with: Src,
    ) -> Result<[Src; 2]> {
        let (bf16, cmp, [a, b]) = self.compared_halves(instr, ty, cmp)?;
        let results = [self.new_value(File::P, 1), self.new_value(File::P, 1)];
        let op = Op::Hsetp2 { cmp, bf16, ftz: instr.has(Mod::Ftz), bool_ };
        self.push(Inst::new(op, &results.map(Dst::Value), &[a, b, with], self.src));
        Ok(results.map(Src::from))
    }

    /// The results of [`Self::compare_halves`] as numbers in both halves: all ones, or 1 if `one` is set.
    pub(super) fn set_halves(
        &mut self,
        instr: &Statement<'a>,
        ty: ScalarType,
        cmp: Option<FCmp>,
        bool_: Bool,
        with: Src,
        one: bool,
    ) -> Result<Src> {
        let (bf16, cmp, [a, b]) = self.compared_halves(instr, ty, cmp)?;
        Ok(self.reg(Op::Hset2 { bf16, one, cmp, ftz: instr.has(Mod::Ftz), bool_ }, &[a, b, with]))
    }
}
