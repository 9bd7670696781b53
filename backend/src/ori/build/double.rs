//! fp64 arithmetic.

use super::integer::lut;
use super::operand::literal;
use super::{Lowering, Result, Statement};
use crate::ori::ir::Src;
use crate::ori::op::{Bool, FCmp, MufuFunc, Op};
use ptx_isa::{FormId, Mod, ScalarType};

impl<'a> Lowering<'a> {
    /// An operand of an fp64 operation. A constant whose low word is zero becomes an immediate, its high word.
    pub(super) fn source_double(&mut self, instr: &Statement<'a>, i: usize) -> Result<Src> {
        let operand = self.operand(instr, i)?;
        match literal(operand, ScalarType::F64) {
            Some(bits) if bits as u32 == 0 => Ok(Src::imm((bits >> 32) as u32)),
            _ => self.read(operand, ScalarType::F64),
        }
    }

    pub(super) fn dcompare(&mut self, cmp: FCmp, a: Src, b: Src) -> Src {
        self.pred(Op::Dsetp { cmp, bool_: Bool::And }, &[a, b, Src::TRUE])
    }

    /// `min`, `max` of .f64: a NaN gives the other operand, and -0 is less than +0.
    pub(super) fn double_minimum(&mut self, instr: &Statement<'a>) -> Result<()> {
        let min = instr.form() == FormId::MinF64;
        let (a, b) = (self.source(instr, 1, ScalarType::F64)?, self.source(instr, 2, ScalarType::F64)?);
        let first = self.dcompare(if min { FCmp::Lt } else { FCmp::Gt }, a, b);
        let invalid = self.dcompare(FCmp::Nan, b, b);
        let first = self.plop3(lut::A | lut::B, first, invalid, Src::TRUE);
        let equal = self.dcompare(FCmp::Eq, a, b);
        let (a, b) = (self.pair(a), self.pair(b));
        let chosen = self.select_pair(first, a, b);
        // Equal operands differ at most in the sign of zero.
        let zero = self.lop3(if min { lut::A | lut::B } else { lut::A & lut::B }, a[1], b[1], Src::ZERO);
        let high = self.select(equal, zero, chosen[1], 1);
        self.result_pair(instr, [chosen[0], high])
    }

    /// `rcp.approx` and `rsqrt.approx` of .f64; with `.ftz`, of the high word alone.
    pub(super) fn double_approximate(&mut self, instr: &Statement<'a>) -> Result<()> {
        match (instr.has(Mod::Ftz), instr.form()) {
            (true, _) => {}
            (false, FormId::RsqrtF64) => return self.reciprocal_root_of_double(instr),
            (false, _) => return self.unsupported(instr, "an approximation without `.ftz`"),
        }
        let a = self.source_pair(instr, 1, ScalarType::F64)?;
        let func = match instr.form() {
            FormId::RsqrtF64 => MufuFunc::Rsq64h,
            _ => MufuFunc::Rcp64h,
        };
        let high = self.mufu(func, a[1]);
        self.result_pair(instr, [Src::ZERO, high])
    }
}
