//! Exact division, remainder, reciprocal and square root.
//!
//! For 32-bit integers: an estimate of 2^32 / b that is never too large, refined in fixed point, then at most two
//! corrections of the quotient. For floats: a fast path after a check of the operands' exponents. The runtime library
//! ([`crate::runtime`]) handles longer integers and other floats.

use super::float::{TWO_POW_126, float, magnitude, negated, rounding};
use super::integer::lut;
use super::{Lowering, Result, Statement};
use crate::ori::ir::{Dst, File, Inst, Src, Term};
use crate::ori::op::{FCmp, FloatType, ICmp, IntRound, IntType, MufuFunc, Op, Round, Routine, Sign};
use ptx_isa::{FormId, Mod, ScalarType};
use smallvec::SmallVec;

/// When added to the bits of a float, multiplies it by almost 2^32, minus two units. So the product with a reciprocal,
/// however rounded, stays below the exact one.
const BELOW_TWO_POW_32: u32 = 0x0fff_fffe;

/// An immediate of fp64: the high word of a value whose low word is zero.
pub(super) fn double(value: f64) -> Src {
    Src::imm((value.to_bits() >> 32) as u32)
}

impl<'a> Lowering<'a> {
    /// `a + b` if the predicate is true, otherwise `old`.
    pub(super) fn add_where(&mut self, cond: Src, a: Src, b: Src, old: Src) -> Src {
        let value = self.new_value(File::R, 1);
        let dsts = [Dst::Value(value), Dst::Sink, Dst::Sink];
        let mut inst = Inst::new(Op::Iadd3 { x: false }, &dsts, &[a, b, Src::ZERO], self.src);
        inst.guard = cond;
        inst.old = SmallVec::from_slice(&[old, Src::UNDEF, Src::UNDEF]);
        self.push(inst);
        value.into()
    }

    /// `div` and `rem`. Division by zero gives all ones, as in the other paths of the hardware.
    pub(super) fn divide_integer(&mut self, instr: &Statement<'a>) -> Result<()> {
        let ty = self.type_of(instr, 0)?;
        let (signed, rem) = (ty.is_signed(), instr.form() == FormId::RemInt);
        if ty.bits() == 64 {
            let (a, b) = (self.source_pair(instr, 1, ty)?, self.source_pair(instr, 2, ty)?);
            let result = self.divide_pair(signed, rem, a, b);
            return self.result_pair(instr, result);
        }
        let (a, b) = (self.source_extended(instr, 1, ty)?, self.source_extended(instr, 2, ty)?);
        let (a, b) = (self.in_register(a), self.in_register(b));
        let zero = self.compare(ICmp::Eq, false, b, Src::ZERO);
        let result = if signed {
            let (positive_a, positive_b) = (self.reg(Op::Iabs, &[a]), self.reg(Op::Iabs, &[b]));
            let result = self.divide_unsigned(rem, positive_a, positive_b);
            let sign = if rem { a } else { self.lop3(lut::A ^ lut::B, a, b, Src::ZERO) };
            let negative = self.compare(ICmp::Lt, true, sign, Src::ZERO);
            self.add_where(negative, result.neg(), Src::ZERO, result)
        } else {
            self.divide_unsigned(rem, a, b)
        };
        let result = self.select(zero, Src::imm(!0), result, 1);
        self.result(instr, result)
    }

    /// The quotient or remainder of 32-bit unsigned integers; `b` is not zero.
    fn divide_unsigned(&mut self, rem: bool, a: Src, b: Src) -> Src {
        let up = self.reg(Op::I2f { to: FloatType::F32, from: IntType::U32, round: Round::Rp }, &[b]);
        let inverse = self.mufu(MufuFunc::Rcp, up);
        let scaled = self.add(inverse, Src::imm(BELOW_TWO_POW_32));
        let convert =
            Op::F2i { to: IntType::U32, from: FloatType::F32, round: IntRound::Trunc, ftz: true, ntz: true };
        let estimate = self.reg(convert, &[scaled]);
        // One Newton step: estimate + estimate * (2^32 - estimate * b) / 2^32.
        let minus = self.subtract(Src::ZERO, estimate);
        let error = self.multiply_add(minus, b, Src::ZERO);
        let addend = self.pack(&[Src::ZERO, estimate]);
        let refined = self.reg(Op::ImadHi { sign: Sign::U32 }, &[estimate, error, addend]);
        let quotient = self.multiply_high(false, refined, a);
        let minus = self.subtract(Src::ZERO, quotient);
        let rest = self.multiply_add(minus, b, a);
        let over = self.compare(ICmp::Ge, false, rest, b);
        let rest1 = self.add_where(over, rest, b.neg(), rest);
        if rem {
            let over = self.compare(ICmp::Ge, false, rest1, b);
            return self.add_where(over, rest1, b.neg(), rest1);
        }
        let quotient = self.add_where(over, quotient, Src::imm(1), quotient);
        let over = self.compare(ICmp::Ge, false, rest1, b);
        self.add_where(over, quotient, Src::imm(1), quotient)
    }

    fn divide_pair(&mut self, signed: bool, rem: bool, a: [Src; 2], b: [Src; 2]) -> [Src; 2] {
        let (a, b) = (a.map(|half| self.in_register(half)), b.map(|half| self.in_register(half)));
        let divided = |this: &mut Self, a: [Src; 2], b: [Src; 2]| {
            let [q_low, q_high, r_low, r_high] = this.compute(Routine::DivideU64, &[a[0], a[1], b[0], b[1]]);
            if rem { [r_low, r_high] } else { [q_low, q_high] }
        };
        if !signed {
            return divided(self, a, b);
        }
        let (positive_a, positive_b) = (self.absolute_pair(a), self.absolute_pair(b));
        let result = divided(self, positive_a, positive_b);
        let sign = if rem { a[1] } else { self.lop3(lut::A ^ lut::B, a[1], b[1], Src::ZERO) };
        let negative = self.compare(ICmp::Lt, true, sign, Src::ZERO);
        // A zero divisor gives all ones, which are not corrected.
        let zero = self.compare_pair(ICmp::Eq, false, b, [Src::ZERO; 2]);
        let negative = self.plop3(lut::A & !lut::B, negative, zero, Src::TRUE);
        let negated = self.subtract_pair([Src::ZERO; 2], result);
        self.select_pair(negative, negated, result)
    }

    fn absolute_pair(&mut self, a: [Src; 2]) -> [Src; 2] {
        let negative = self.compare(ICmp::Lt, true, a[1], Src::ZERO);
        let negated = self.subtract_pair([Src::ZERO; 2], a);
        self.select_pair(negative, negated, a)
    }

    /// `fast`, unless `slow` is true; then the result of `path`, which is computed in a separate block.
    pub(super) fn unless(
        &mut self,
        fast: Src,
        slow: Src,
        width: u8,
        path: impl FnOnce(&mut Self) -> Src,
    ) -> Src {
        let result = self.temporary(File::R, width);
        self.write_variable(result, fast);
        let (then, join) = (self.new_block(1), self.new_block(2));
        self.end(Term::Branch { cond: slow, then, els: join, uniform: false });
        self.start(then);
        let value = path(self);
        self.write_variable(result, value);
        self.end(Term::Jump(join));
        self.start(join);
        self.read_variable(result)
    }

    fn fma(&mut self, a: Src, b: Src, c: Src) -> Src {
        self.ffma(Round::Rn, a, b, c)
    }

    pub(super) fn dfma(&mut self, a: Src, b: Src, c: Src) -> Src {
        self.wide(2, Op::Dfma { round: Round::Rn }, &[a, b, c])
    }

    pub(super) fn dmul(&mut self, a: Src, b: Src) -> Src {
        self.wide(2, Op::Dmul { round: Round::Rn }, &[a, b])
    }

    /// The fp32 value. The addition makes every NaN the one that arithmetic returns.
    fn narrowed(&mut self, src: Src, round: Round) -> Src {
        let op = Op::F2f { to: FloatType::F32, from: FloatType::F64, round, ftz: false, sat: false };
        let single = self.reg(op, &[src]);
        self.fadd(false, single, Src::ZERO.neg())
    }

    /// `div` of .f32 with a rounding modifier.
    pub(super) fn divide_float(&mut self, instr: &Statement<'a>) -> Result<()> {
        let (round, ftz) = (rounding(instr), instr.has(Mod::Ftz));
        let (a, b) = (self.source(instr, 1, ScalarType::F32)?, self.source(instr, 2, ScalarType::F32)?);
        let (a, b) = (self.in_register(a), self.in_register(b));
        if round != Round::Rn {
            let result = self.divide_in_double(a, b, round, ftz);
            return self.result(instr, result);
        }
        let slow = self.pred(Op::Fchk, &[a, b]);
        let inverse = self.mufu(MufuFunc::Rcp, b);
        let error = self.fma(inverse, negated(b), float(1.0));
        let inverse = self.fma(inverse, error, inverse);
        let quotient = self.fma(a, inverse, Src::ZERO);
        let rest = self.fma(quotient, negated(b), a);
        let fast = self.fma(inverse, rest, quotient);
        let result = self.unless(fast, slow, 1, |this| this.divide_in_double(a, b, Round::Rn, ftz));
        self.result(instr, result)
    }

    /// The quotient of fp32 values, assembled in fp64: exact for every operand.
    fn divide_in_double(&mut self, a: Src, b: Src, round: Round, ftz: bool) -> Src {
        let (a, b) = if ftz { (self.flush(a), self.flush(b)) } else { (a, b) };
        let quotient: [Src; 2] = self.compute(Routine::QuotientF32, &[a, b]);
        let high = quotient[1];
        let quotient = self.pack(&quotient);
        let single = self.narrowed(quotient, round);
        if !ftz {
            return single;
        }
        // As in ptxas, a subnormal quotient is flushed even if rounding makes it normal.
        let magnitude = self.lop3(lut::A & lut::B, high, Src::imm(0x7fff_ffff), Src::ZERO);
        let is_small = self.compare(ICmp::Lt, false, magnitude, double(f32::MIN_POSITIVE.into()));
        self.zero_if(is_small, single)
    }

    /// A zero with the sign of an fp32 value, if the predicate holds; otherwise the value.
    fn zero_if(&mut self, holds: Src, value: Src) -> Src {
        let zero = self.lop3(lut::A & lut::B, value, Src::imm(0x8000_0000), Src::ZERO);
        self.select(holds, zero, value, 1)
    }

    /// `rcp` and `sqrt` of .f32 with a rounding modifier.
    pub(super) fn round_float(&mut self, instr: &Statement<'a>) -> Result<()> {
        let (round, ftz) = (rounding(instr), instr.has(Mod::Ftz));
        let a = self.source(instr, 1, ScalarType::F32)?;
        let a = self.in_register(a);
        let root = instr.form() == FormId::SqrtF32;
        let result = match (root, round) {
            (true, Round::Rn) => self.root_with_fast_path(a, ftz),
            (true, _) => self.root_in_double(a, round, ftz),
            (false, Round::Rn) => self.reciprocal_with_fast_path(a, ftz),
            (false, _) => self.divide_in_double(float(1.0), a, round, ftz),
        };
        self.result(instr, result)
    }

    fn reciprocal_with_fast_path(&mut self, a: Src, ftz: bool) -> Src {
        // Exponents of 2^-126 to 2^125: neither the operand nor the result nor an intermediate value is denormal.
        let shifted = self.add(a, Src::imm(0x0180_0000));
        let exponent = self.lop3(lut::A & lut::B, shifted, Src::imm(0x7f80_0000), Src::ZERO);
        let slow = self.compare(ICmp::Le, false, exponent, Src::imm(0x01ff_ffff));
        let inverse = self.mufu(MufuFunc::Rcp, a);
        let error = self.fma(inverse, a, float(-1.0));
        let fast = self.fma(inverse, negated(error), inverse);
        self.unless(fast, slow, 1, |this| this.any_reciprocal(a, ftz))
    }

    /// The reciprocal of any fp32 value.
    fn any_reciprocal(&mut self, a: Src, ftz: bool) -> Src {
        let a = if ftz { self.flush(a) } else { a };
        let [inverse] = self.compute(Routine::ReciprocalF32, &[a]);
        if !ftz {
            return inverse;
        }
        let is_small = self.fcompare(FCmp::Gt, false, magnitude(a), float(TWO_POW_126));
        self.zero_if(is_small, inverse)
    }

    fn root_with_fast_path(&mut self, a: Src, ftz: bool) -> Src {
        // From 2^-101 to the largest finite value: positive, and the remainder below is exact.
        let shifted = self.add(a, Src::imm(0xf300_0000));
        let slow = self.compare(ICmp::Gt, false, shifted, Src::imm(0x727f_ffff));
        let inverse = self.mufu(MufuFunc::Rsq, a);
        let root = self.fmul(true, a, inverse);
        let half = self.fmul(true, inverse, float(0.5));
        let rest = self.fma(negated(root), root, a);
        let fast = self.fma(rest, half, root);
        self.unless(fast, slow, 1, |this| this.root_in_double(a, Round::Rn, ftz))
    }

    /// The square root of an fp32 value, assembled in fp64.
    fn root_in_double(&mut self, a: Src, round: Round, ftz: bool) -> Src {
        let a = if ftz { self.flush(a) } else { a };
        let root: [Src; 2] = self.compute(Routine::RootF32, &[a]);
        let root = self.pack(&root);
        self.narrowed(root, round)
    }

    /// The result of a routine of the runtime library for these words.
    pub(super) fn compute<const N: usize>(&mut self, routine: Routine, words: &[Src]) -> [Src; N] {
        let words: SmallVec<[Src; 4]> = words.iter().map(|word| self.in_register(*word)).collect();
        let values = [(); N].map(|()| self.new_value(File::R, 1));
        let dsts = values.map(Dst::Value);
        self.push(Inst::new(Op::Compute { routine }, &dsts, &words, self.src));
        values.map(Src::from)
    }
}
