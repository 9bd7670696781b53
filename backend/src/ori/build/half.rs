//! Half precision: operations on both halves of a register; a scalar is the low one.

use super::operand::known;
use super::{Lowering, Result, Statement};
use crate::input::Operand;
use crate::ori::ir::Src;
use crate::ori::op::{Bool, FCmp, HalfFunc, Op};
use ptx_isa::{Mod, ScalarType};

impl<'a> Lowering<'a> {
    /// Is the instruction on bfloat16? Refuses other types and old targets.
    pub(super) fn half_type(&self, instr: &Statement<'_>) -> Result<bool> {
        let bf16 = match instr.ty(0) {
            Some(ScalarType::F16 | ScalarType::F16x2) => false,
            Some(ScalarType::Bf16 | ScalarType::Bf16x2) => true,
            Some(ty) => return self.unsupported(instr, &format!("the type .{}", ty.text())),
            None => return self.malformed("a half precision instruction without a type"),
        };
        if bf16 && !self.encodes(&Op::Hfma2 { bf16, ftz: false, sat: false, relu: false }) {
            return self.unsupported(instr, "bfloat16 on this target");
        }
        Ok(bf16)
    }

    /// As [`Self::half_type`], of additions and products that are not fused.
    pub(super) fn half_sum_type(&self, instr: &Statement<'_>) -> Result<bool> {
        let bf16 = self.half_type(instr)?;
        if bf16 && !self.encodes(&Op::Hmul2 { bf16, ftz: false, sat: false }) {
            return self.unsupported(instr, "bfloat16 other than fma on this target");
        }
        Ok(bf16)
    }

    /// As [`Self::half_type`], of `min` and `max`.
    pub(super) fn half_minimum_type(&self, instr: &Statement<'_>) -> Result<bool> {
        let bf16 = self.half_type(instr)?;
        if !self.encodes(&Op::Hmnmx2 { bf16, nan: false, ftz: false }) {
            return self.unsupported(instr, "on this target");
        }
        Ok(bf16)
    }

    /// An operand with the same value in both halves where it is a scalar's constant.
    pub(super) fn source_half(&mut self, instr: &Statement<'a>, i: usize) -> Result<Src> {
        let ty = self.type_of(instr, 0)?;
        let src = self.source(instr, i, ty)?;
        Ok(match known(src) {
            Some(bits) if ty.bits() == 16 => Src::imm(bits & 0xffff | bits << 16),
            _ => src,
        })
    }

    /// `ex2` and `tanh` of one half or of both.
    pub(super) fn approximate_half(&mut self, instr: &Statement<'a>, func: HalfFunc) -> Result<()> {
        // What bf16 loses of denormals the operation loses by itself.
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

    /// A comparison of scalar halves: the first result is the low halves'.
    pub(super) fn compare_half(
        &mut self,
        instr: &Statement<'a>,
        ty: ScalarType,
        cmp: Option<FCmp>,
        bool_: Bool,
        with: Src,
    ) -> Result<Src> {
        let bf16 = self.half_type(instr)?;
        if ty.bits() != 16 || matches!(self.operand(instr, 0)?, Operand::Pair(_)) {
            return self.unsupported(instr, "a comparison of pairs");
        }
        let Some(cmp) = cmp else { return self.unsupported(instr, "an unsigned comparison of floats") };
        let (a, b) = (self.source_half(instr, 1)?, self.source_half(instr, 2)?);
        Ok(self.pred(Op::Hsetp2 { cmp, bf16, ftz: instr.has(Mod::Ftz), bool_ }, &[a, b, with]))
    }
}
