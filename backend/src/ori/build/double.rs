//! fp64 arithmetic.

use super::integer::lut;
use super::operand::literal;
use super::{Lowering, Result, Statement};
use crate::ori::ir::{Dst, File, Inst, Src, SrcKind};
use crate::ori::op::{Bool, FCmp, MufuFunc, Op};
use ptx_isa::{FormId, Mod, ScalarType};

/// The bit in the high word of a NaN that makes it quiet.
const QUIET: u32 = 1 << 19;

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
        let max = instr.form() == FormId::MaxF64;
        let (mut a, mut b) = (self.source_double(instr, 1)?, self.source_double(instr, 2)?);
        let operands = [self.operand(instr, 1)?, self.operand(instr, 2)?];
        let is_number = operands.iter().any(|operand| {
            literal(operand, ScalarType::F64).is_some_and(|bits| !f64::from_bits(bits).is_nan())
        });
        // Only the second operand may be an immediate.
        if matches!(a.kind, SrcKind::Imm(_)) {
            std::mem::swap(&mut a, &mut b);
        }
        let [is_first, is_nan] = [(); 2].map(|()| self.new_value(File::P, 1));
        let op = Op::Dextreme { max };
        self.push(Inst::new(op, &[Dst::Value(is_first), Dst::Value(is_nan)], &[a, b, Src::TRUE], self.src));
        // The low word of a double that is an immediate is zero.
        let words = |this: &Self, src: Src| match src.kind {
            SrcKind::Imm(_) => [Src::ZERO, src],
            _ => this.pair(src),
        };
        let (a, b) = (words(self, a), words(self, b));
        let chosen = self.select_pair(is_first.into(), a, b);
        if is_number {
            return self.result_pair(instr, chosen);
        }
        let quiet = self.lop3(lut::A | lut::B, b[1], Src::imm(QUIET), Src::ZERO);
        let high = self.select(is_nan.into(), quiet, chosen[1], 1);
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
