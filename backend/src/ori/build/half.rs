//! Half precision: operations on both halves of a register; a scalar is the low one.

use super::operand::known;
use super::{Lowering, Result};
use crate::input::{Instr, Operand};
use crate::ori::ir::Src;
use crate::ori::op::{Bool, FCmp, Op};
use ptx_isa::{FormId, Mod, ScalarType};

impl<'a> Lowering<'a> {
    /// Is the instruction on bfloat16? Refuses other types and old targets.
    fn half_type(&self, instr: &Instr) -> Result<bool> {
        let bf16 = match instr.opcode.ty(0) {
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
    fn source_half(&mut self, instr: &'a Instr, i: usize) -> Result<Src> {
        let ty = self.type_of(instr, 0)?;
        let src = self.source(instr, i, ty)?;
        Ok(match known(src) {
            Some(bits) if ty.bits() == 16 => Src::imm(bits & 0xffff | bits << 16),
            _ => src,
        })
    }

    /// `add`, `sub`, `mul`, `fma` of .f16, .bf16 and their pairs.
    pub(super) fn half_arithmetic(&mut self, instr: &'a Instr) -> Result<()> {
        self.accept(instr, &[Mod::Rn, Mod::Ftz, Mod::Sat, Mod::Relu])?;
        let bf16 = self.half_type(instr)?;
        let opcode = instr.opcode;
        let (ftz, sat, relu) = (opcode.has(Mod::Ftz), opcode.has(Mod::Sat), opcode.has(Mod::Relu));
        let (a, b) = (self.source_half(instr, 1)?, self.source_half(instr, 2)?);
        if bf16 && opcode.form != FormId::FmaHalf && self.sm < 90 {
            return self.unsupported(instr, "bfloat16 before sm_90");
        }
        let result = match opcode.form {
            FormId::AddHalf => self.reg(Op::Hadd2 { bf16, ftz, sat, f32: false }, &[a, b]),
            FormId::SubHalf => {
                let b = known(b).map_or(b.neg(), |bits| Src::imm(bits ^ 0x8000_8000));
                self.reg(Op::Hadd2 { bf16, ftz, sat, f32: false }, &[a, b])
            }
            FormId::MulHalf => self.reg(Op::Hmul2 { bf16, ftz, sat }, &[a, b]),
            _ => {
                let c = self.source_half(instr, 3)?;
                self.reg(Op::Hfma2 { bf16, ftz, sat, relu }, &[a, b, c])
            }
        };
        self.result(instr, result)
    }

    /// `abs`, `neg`, on the sign bits.
    pub(super) fn half_sign(&mut self, instr: &'a Instr) -> Result<()> {
        use super::integer::lut;
        self.accept(instr, &[])?;
        self.half_type(instr)?;
        let a = self.source_half(instr, 1)?;
        let result = if instr.opcode.form == FormId::AbsHalf {
            self.lop3(lut::A & lut::B, a, Src::imm(0x7fff_7fff), Src::ZERO)
        } else {
            self.lop3(lut::A ^ lut::B, a, Src::imm(0x8000_8000), Src::ZERO)
        };
        self.result(instr, result)
    }

    /// `min`, `max`.
    pub(super) fn half_minimum(&mut self, instr: &'a Instr) -> Result<()> {
        self.accept(instr, &[Mod::Ftz, Mod::Nan])?;
        self.arity(instr, 3..=3)?;
        let bf16 = self.half_type(instr)?;
        if self.sm < 80 {
            return self.unsupported(instr, "before sm_80");
        }
        let (a, b) = (self.source_half(instr, 1)?, self.source_half(instr, 2)?);
        let choose = if instr.opcode.form == FormId::MinHalf { Src::TRUE } else { Src::FALSE };
        let op = Op::Hmnmx2 { bf16, nan: instr.opcode.has(Mod::Nan), ftz: instr.opcode.has(Mod::Ftz) };
        let result = self.reg(op, &[a, b, choose]);
        self.result(instr, result)
    }

    /// A comparison of scalar halves: the first result is the low halves'.
    pub(super) fn compare_half(
        &mut self,
        instr: &'a Instr,
        ty: ScalarType,
        cmp: Option<FCmp>,
        ftz: bool,
        bool_: Bool,
        with: Src,
    ) -> Result<Src> {
        let bf16 = self.half_type(instr)?;
        if ty.bits() != 16 || matches!(self.operand(instr, 0)?, Operand::Pair(_)) {
            return self.unsupported(instr, "a comparison of pairs");
        }
        let Some(cmp) = cmp else { return self.unsupported(instr, "an unsigned comparison of floats") };
        let (a, b) = (self.source_half(instr, 1)?, self.source_half(instr, 2)?);
        Ok(self.pred(Op::Hsetp2 { cmp, bf16, ftz, bool_ }, &[a, b, with]))
    }
}
