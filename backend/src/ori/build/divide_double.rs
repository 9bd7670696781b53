//! Division and roots of fp64, correctly rounded.
//!
//! The fast paths refine the unit's estimate with fused operations. They are taken if no step leaves the normal range,
//! which tests of the high words determine. The runtime library ([`crate::runtime`]) handles other operands.

use super::divide::double;
use super::float::{magnitude, negated, rounding};
use super::integer::lut;
use super::{Lowering, Result, Statement};
use crate::ori::ir::Src;
use crate::ori::op::{Bool, FCmp, ICmp, MufuFunc, Op, Round, Routine};
use ptx_isa::{FormId, Mod, ScalarType};
use smallvec::SmallVec;

/// High words of numbers: one, the least normal one, infinity.
const ONE: u32 = 0x3ff0_0000;
const LEAST_NORMAL: u32 = 0x0010_0000;
const INFINITY: u32 = 0x7ff0_0000;
/// What ptxas adds to the high word of a number for the low word of its reciprocal's estimate.
const RECIPROCAL_LOW: u32 = 0x0030_0402;
/// The least high word of a dividend whose remainder is certainly normal: exponent 54.
const LEAST_DIVIDEND: u32 = 0x0360_0000;

impl<'a> Lowering<'a> {
    /// `div`, `rcp` and `sqrt` of .f64.
    pub(super) fn divide_double(&mut self, instr: &Statement<'a>) -> Result<()> {
        // ptxas does not flush doubles.
        instr.ignore(&[Mod::Ftz]);
        let ty = ScalarType::F64;
        let a = self.source(instr, 1, ty)?;
        let round = rounding(instr);
        if round != Round::Rn {
            return self.divide_double_directed(instr, a, round);
        }
        let result = match instr.form() {
            FormId::SqrtF64 => self.root_of_double(a),
            FormId::RcpF64 => self.reciprocal_of_double(a),
            _ => {
                let b = self.source(instr, 2, ty)?;
                self.quotient_of_doubles(a, b)
            }
        };
        self.result(instr, result)
    }

    /// The same for directed rounding: the result rounded toward zero, plus one unit if the mode rounds away from zero.
    fn divide_double_directed(&mut self, instr: &Statement<'a>, a: Src, round: Round) -> Result<()> {
        let one = [Src::ZERO, Src::imm(ONE)];
        let (routine, words) = match instr.form() {
            FormId::SqrtF64 => (Routine::TruncatedRootF64, self.pair(a).to_vec()),
            FormId::RcpF64 => (Routine::TruncatedQuotientF64, [one, self.pair(a)].concat()),
            _ => {
                let b = self.source(instr, 2, ScalarType::F64)?;
                (Routine::TruncatedQuotientF64, [self.pair(a), self.pair(b)].concat())
            }
        };
        let [low, high, inexact] = self.compute(routine, &words);
        if round == Round::Rz {
            return self.result_pair(instr, [low, high]);
        }
        let sign = self.shift_right(high, 31, false);
        let away = if round == Round::Rp { lut::A & !lut::B } else { lut::A & lut::B };
        let more = self.lop3(away, inexact, sign, Src::ZERO);
        let rounded = self.add_pair([low, high], [more, Src::ZERO]);
        self.result_pair(instr, rounded)
    }

    /// A double in its own registers, so that both halves can be named.
    fn double_in_register(&mut self, src: Src) -> Src {
        let halves = self.pair(src).map(|half| self.in_register(half));
        self.pack(&halves)
    }

    /// The refined reciprocal of `b`, from the unit's estimate of its high word and the low word `low`.
    fn refined_reciprocal(&mut self, b: Src, low: Src) -> Src {
        let high = self.part(b, 1);
        let high = self.mufu(MufuFunc::Rcp64h, high);
        let estimate = self.pack(&[low, high]);
        let error = self.dfma(estimate, negated(b), double(1.0));
        let error = self.dfma(error, error, error);
        let inverse = self.dfma(estimate, error, estimate);
        let error = self.dfma(inverse, negated(b), double(1.0));
        self.dfma(inverse, error, inverse)
    }

    fn quotient_of_doubles(&mut self, a: Src, b: Src) -> Src {
        let (a, b) = (self.double_in_register(a), self.double_in_register(b));
        // If all bits of the significand are ones, the estimate must not be below the exact reciprocal. The least bit
        // ensures this if the unit gives exactly one half.
        let inverse = self.refined_reciprocal(b, Src::imm(1));
        let quotient = self.dmul(a, inverse);
        let rest = self.dfma(quotient, negated(b), a);
        let fast = self.dfma(inverse, rest, quotient);
        // Read as fp32, the high word of an infinite or NaN quotient is a NaN, and so is that of a divisor whose
        // reciprocal is denormal. The product with zero preserves the NaN.
        let (high_a, high_b, high) = (self.part(a, 1), self.part(b, 1), self.part(fast, 1));
        let seen = self.ffma(Round::Rn, high_b, Src::ZERO, high);
        let normal = self.fcompare(FCmp::Gt, false, magnitude(seen), Src::imm(LEAST_NORMAL));
        let op = Op::Fsetp { cmp: FCmp::Geu, ftz: false, bool_: Bool::And };
        let easy = self.pred(op, &[magnitude(high_a), Src::imm(LEAST_DIVIDEND), normal]);
        self.unless(fast, easy.not(), 2, |this| this.compute_double(Routine::QuotientF64, &[a, b]))
    }

    /// The steps are those of ptxas: the same sum is the low word of the estimate and, read as fp32, tells whether the
    /// reciprocal is normal.
    fn reciprocal_of_double(&mut self, b: Src) -> Src {
        let b = self.double_in_register(b);
        let high = self.part(b, 1);
        let low = self.add(high, Src::imm(RECIPROCAL_LOW));
        let fast = self.refined_reciprocal(b, low);
        let op = Op::Fsetp { cmp: FCmp::Geu, ftz: false, bool_: Bool::And };
        let least = Src::imm(RECIPROCAL_LOW + LEAST_NORMAL);
        let easy = self.pred(op, &[magnitude(low), least, Src::TRUE]);
        self.unless(fast, easy.not(), 2, |this| this.compute_double(Routine::ReciprocalF64, &[b]))
    }

    /// The reciprocal of the square root of `a`, which is normal: the estimate and a step of third order.
    fn refined_reciprocal_root(&mut self, a: Src) -> Src {
        let high = self.part(a, 1);
        let high = self.mufu(MufuFunc::Rsq64h, high);
        let estimate = self.pack(&[Src::ZERO, high]);
        // 1/sqrt(a) = y * (1 + e/2 + 3e^2/8 + ...) where e = 1 - a*y^2.
        let square = self.dmul(estimate, estimate);
        let error = self.dfma(square, negated(a), double(1.0));
        let series = self.dfma(error, double(0.375), double(0.5));
        let step = self.dmul(estimate, error);
        self.dfma(series, step, estimate)
    }

    /// The square root of a double whose exponent is neither close to the minimum nor special.
    pub(super) fn refined_root(&mut self, a: Src) -> Src {
        let inverse = self.refined_reciprocal_root(a);
        let root = self.dmul(a, inverse);
        let half = self.dmul(inverse, double(0.5));
        let rest = self.dfma(negated(root), root, a);
        self.dfma(rest, half, root)
    }

    fn root_of_double(&mut self, a: Src) -> Src {
        let a = self.double_in_register(a);
        let fast = self.refined_root(a);
        // From exponent 53 to the largest finite number, positive.
        const LEAST: u32 = 0x0350_0000;
        let high = self.part(a, 1);
        let above = self.subtract(high, Src::imm(LEAST));
        let slow = self.compare(ICmp::Ge, false, above, Src::imm(INFINITY - LEAST));
        self.unless(fast, slow, 2, |this| this.compute_double(Routine::RootF64, &[a]))
    }

    /// The result of a runtime routine for doubles.
    fn compute_double(&mut self, routine: Routine, operands: &[Src]) -> Src {
        let words: SmallVec<[Src; 4]> = operands.iter().flat_map(|operand| self.pair(*operand)).collect();
        let result: [Src; 2] = self.compute(routine, &words);
        self.pack(&result)
    }

    /// `rsqrt.approx.f64`.
    pub(super) fn reciprocal_root_of_double(&mut self, instr: &Statement<'a>) -> Result<()> {
        let a = self.source(instr, 1, ScalarType::F64)?;
        let a = self.double_in_register(a);
        let fast = self.refined_reciprocal_root(a);
        let high = self.part(a, 1);
        let above = self.subtract(high, Src::imm(LEAST_NORMAL));
        let slow = self.compare(ICmp::Ge, false, above, Src::imm(INFINITY - LEAST_NORMAL));
        let result = self.unless(fast, slow, 2, |this| this.compute_double(Routine::ReciprocalRootF64, &[a]));
        self.result(instr, result)
    }
}
