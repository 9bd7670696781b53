//! Half precision: operations on both halves of a register; a scalar is the low one.

use super::operand::known;
use super::{Lowering, Result, Statement};
use crate::input::Operand;
use crate::ori::ir::Src;
use crate::ori::op::{Bool, FCmp, Op};
use ptx_isa::{FormId, Mod, ScalarType};

impl<'a> Lowering<'a> {
    /// Is the instruction on bfloat16? Refuses other types and old targets.
    fn half_type(&self, instr: &Statement<'_>) -> Result<bool> {
        let bf16 = match instr.ty(0) {
            Some(ScalarType::F16 | ScalarType::F16x2) => false,
            Some(ScalarType::Bf16 | ScalarType::Bf16x2) => true,
            Some(ty) => return self.unsupported(instr, &format!("the type .{}", ty.text())),
            None => return self.malformed("a half precision instruction without a type"),
        };
        if bf16 && self.sm < 80 {
            return self.unsupported(instr, "bfloat16 before sm_80");
        }
        Ok(bf16)
    }

    /// An operand with the same value in both halves where it is a scalar's constant.
    fn source_half(&mut self, instr: &Statement<'a>, i: usize) -> Result<Src> {
        let ty = self.type_of(instr, 0)?;
        let src = self.source(instr, i, ty)?;
        Ok(match known(src) {
            Some(bits) if ty.bits() == 16 => Src::imm(bits & 0xffff | bits << 16),
            _ => src,
        })
    }

    /// `add`, `sub`, `mul`, `fma` of .f16, .bf16 and their pairs.
    pub(super) fn half_arithmetic(&mut self, instr: &Statement<'a>) -> Result<()> {
        // The one rounding that there is here.
        instr.ignore(&[Mod::Rn]);
        let bf16 = self.half_type(instr)?;
        let (ftz, sat) = (instr.has(Mod::Ftz), instr.has(Mod::Sat));
        let (a, b) = (self.source_half(instr, 1)?, self.source_half(instr, 2)?);
        if bf16 && instr.form() != FormId::FmaHalf && self.sm < 90 {
            return self.unsupported(instr, "bfloat16 before sm_90");
        }
        let result = match instr.form() {
            FormId::AddHalf => self.reg(Op::Hadd2 { bf16, ftz, sat, f32: false }, &[a, b]),
            FormId::SubHalf => {
                let b = known(b).map_or(b.neg(), |bits| Src::imm(bits ^ 0x8000_8000));
                self.reg(Op::Hadd2 { bf16, ftz, sat, f32: false }, &[a, b])
            }
            FormId::MulHalf => self.reg(Op::Hmul2 { bf16, ftz, sat }, &[a, b]),
            _ => {
                let c = self.source_half(instr, 3)?;
                self.reg(Op::Hfma2 { bf16, ftz, sat, relu: instr.has(Mod::Relu) }, &[a, b, c])
            }
        };
        self.result(instr, result)
    }

    /// `abs`, `neg`, on the sign bits.
    pub(super) fn half_sign(&mut self, instr: &Statement<'a>) -> Result<()> {
        use super::integer::lut;
        self.half_type(instr)?;
        let a = self.source_half(instr, 1)?;
        let result = if instr.form() == FormId::AbsHalf {
            self.lop3(lut::A & lut::B, a, Src::imm(0x7fff_7fff), Src::ZERO)
        } else {
            self.lop3(lut::A ^ lut::B, a, Src::imm(0x8000_8000), Src::ZERO)
        };
        self.result(instr, result)
    }

    /// `min`, `max`.
    pub(super) fn half_minimum(&mut self, instr: &Statement<'a>) -> Result<()> {
        let bf16 = self.half_type(instr)?;
        if self.sm < 80 {
            return self.unsupported(instr, "before sm_80");
        }
        let (a, b) = (self.source_half(instr, 1)?, self.source_half(instr, 2)?);
        let choose = if instr.form() == FormId::MinHalf { Src::TRUE } else { Src::FALSE };
        let op = Op::Hmnmx2 { bf16, nan: instr.has(Mod::Nan), ftz: instr.has(Mod::Ftz) };
        let result = self.reg(op, &[a, b, choose]);
        self.result(instr, result)
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
