//! Division and roots of fp64, correctly rounded.
//!
//! The fast paths refine the unit's estimate with fused operations and are taken where no step leaves the normal
//! range, which tests on the high words find out. The slow paths scale the operands first.

use super::divide::double;
use super::float::{magnitude, negated};
use super::integer::lut;
use super::{Lowering, Result, Statement};
use crate::ori::ir::Src;
use crate::ori::op::{Bool, FCmp, ICmp, MufuFunc, Op, Round};
use ptx_isa::{FormId, Mod, ScalarType};

/// Where the high word of a double has its exponent.
const EXPONENT_SHIFT: u32 = 20;
const EXPONENT_MASK: u32 = 0x7ff;
/// High words of numbers: one, the least normal one, infinity.
const ONE: u32 = 0x3ff0_0000;
const LEAST_NORMAL: u32 = 0x0010_0000;
const INFINITY: u32 = 0x7ff0_0000;
/// Least high word of a dividend whose remainder is surely normal: exponent 54.
const LEAST_DIVIDEND: u32 = 0x0360_0000;

fn power_of_two(exponent: u32) -> f64 {
    f64::from_bits(u64::from(1023 + exponent) << 52)
}

/// A number as its significand in [1, 2) and its biased exponent, which may lie outside the format's.
struct Scaled {
    /// Without sign.
    significand: Src,
    exponent: Src,
    /// Zero, infinity or NaN: the significand means nothing.
    special: Src,
}

impl<'a> Lowering<'a> {
    /// `div`, `rcp` and `sqrt` of .f64.
    pub(super) fn divide_double(&mut self, instr: &Statement<'a>) -> Result<()> {
        // The one rounding that there is here.
        instr.ignore(&[Mod::Rn]);
        let ty = ScalarType::F64;
        let a = self.source(instr, 1, ty)?;
        let result = match instr.form() {
            FormId::SqrtF64 => self.root_of_double(a),
            FormId::RcpF64 => {
                let one = self.pack(&[Src::ZERO, Src::imm(ONE)]);
                self.quotient_of_doubles(one, a)
            }
            _ => {
                let b = self.source(instr, 2, ty)?;
                self.quotient_of_doubles(a, b)
            }
        };
        self.result(instr, result)
    }

    /// A double in registers of its own, both halves nameable.
    fn double_in_register(&mut self, src: Src) -> Src {
        let halves = self.pair(src).map(|half| self.in_register(half));
        self.pack(&halves)
    }

    /// The refined reciprocal of `b`, from the unit's estimate of its high word.
    fn refined_reciprocal(&mut self, b: Src) -> Src {
        let high = self.part(b, 1);
        let high = self.mufu(MufuFunc::Rcp64h, high);
        // For a significand of all ones the estimate must not be below the exact reciprocal: the least bit sees
        // to that where the unit gives exactly one half.
        let estimate = self.pack(&[Src::imm(1), high]);
        let error = self.dfma(estimate, negated(b), double(1.0));
        let error = self.dfma(error, error, error);
        let inverse = self.dfma(estimate, error, estimate);
        let error = self.dfma(inverse, negated(b), double(1.0));
        self.dfma(inverse, error, inverse)
    }

    fn quotient_of_doubles(&mut self, a: Src, b: Src) -> Src {
        let (a, b) = (self.double_in_register(a), self.double_in_register(b));
        let inverse = self.refined_reciprocal(b);
        let quotient = self.dmul(a, inverse);
        let rest = self.dfma(quotient, negated(b), a);
        let fast = self.dfma(inverse, rest, quotient);
        // Seen as fp32, the high word of an infinite or NaN quotient is a NaN, and so is that of a divisor
        // whose reciprocal is denormal; the product with zero passes it on.
        let (high_a, high_b, high) = (self.part(a, 1), self.part(b, 1), self.part(fast, 1));
        let seen = self.ffma(Round::Rn, high_b, Src::ZERO, high);
        let normal = self.fcompare(FCmp::Gt, false, magnitude(seen), Src::imm(LEAST_NORMAL));
        let op = Op::Fsetp { cmp: FCmp::Geu, ftz: false, bool_: Bool::And };
        let easy = self.pred(op, &[magnitude(high_a), Src::imm(LEAST_DIVIDEND), normal]);
        self.unless(fast, easy.not(), 2, |this| this.quotient_scaled(a, b))
    }

    /// Takes a number apart; denormals are made normal first.
    fn scaled(&mut self, a: Src) -> Scaled {
        let high = self.part(a, 1);
        let positive = self.lop3(lut::A & lut::B, high, Src::imm(0x7fff_ffff), Src::ZERO);
        let denormal = self.compare(ICmp::Lt, false, positive, Src::imm(LEAST_NORMAL));
        let large = self.dmul(a, double(power_of_two(54)));
        let [large_low, large_high] = self.pair(large);
        let [low, _] = self.pair(a);
        let (low, high) =
            (self.select(denormal, large_low, low, 1), self.select(denormal, large_high, high, 1));
        let exponent = self.shift_right(high, EXPONENT_SHIFT, false);
        let exponent = self.lop3(lut::A & lut::B, exponent, Src::imm(EXPONENT_MASK), Src::ZERO);
        // Zero stays zero, and 0 - 1 is as large as can be.
        let below = self.add(exponent, Src::imm(!0));
        let special = self.compare(ICmp::Ge, false, below, Src::imm(EXPONENT_MASK - 1));
        let undone = self.select(denormal, Src::imm(54), Src::ZERO, 1);
        let exponent = self.subtract(exponent, undone);
        let fraction = self.lop3(lut::A & lut::B, high, Src::imm(0x000f_ffff), Src::ZERO);
        let high = self.lop3(lut::A | lut::B, fraction, Src::imm(ONE), Src::ZERO);
        Scaled { significand: self.pack(&[low, high]), exponent, special }
    }

    /// The quotient of any doubles, by that of their significands.
    fn quotient_scaled(&mut self, a: Src, b: Src) -> Src {
        let (x, y) = (self.scaled(a), self.scaled(b));
        let [high_a, high_b] = [a, b].map(|v| self.part(v, 1));
        let differ = self.lop3(lut::A ^ lut::B, high_a, high_b, Src::ZERO);
        let sign = self.lop3(lut::A & lut::B, differ, Src::imm(0x8000_0000), Src::ZERO);

        let inverse = self.refined_reciprocal(y.significand);
        let quotient = self.dmul(x.significand, inverse);
        let rest = self.dfma(quotient, negated(y.significand), x.significand);
        let quotient = self.dfma(inverse, rest, quotient);
        let rest = self.dfma(quotient, negated(y.significand), x.significand);

        let shift = self.subtract(x.exponent, y.exponent);
        let normal = self.with_exponent(quotient, shift);
        let denormal = self.denormal_quotient(quotient, rest, shift);
        let exponent = self.biased(quotient, shift);
        let small = self.compare(ICmp::Lt, true, exponent, Src::imm(1));
        let overflow = self.compare(ICmp::Ge, true, exponent, Src::imm(EXPONENT_MASK));
        let finite = self.select_pair(small, denormal, normal);
        let result = self.select_pair(overflow, [Src::ZERO, Src::imm(INFINITY)], finite);
        let high = self.lop3(lut::A | lut::B, result[1], sign, Src::ZERO);

        // A special dividend times the estimate for the divisor's significand, or for a special divisor itself.
        let significand = self.part(y.significand, 1);
        let choose = (lut::C & lut::A) | (!lut::C & lut::B);
        let signed = self.lop3(choose, high_b, significand, Src::imm(0x8000_0000));
        let divisor = self.select(y.special, high_b, signed, 1);
        let divisor = self.nan_in_high_word(b, divisor);
        let estimate = self.mufu(MufuFunc::Rcp64h, divisor);
        let estimate = self.pack(&[Src::ZERO, estimate]);
        let crude = self.dmul(a, estimate);
        let special = self.plop3(lut::A | lut::B, x.special, y.special, Src::TRUE);
        let finite = self.pack(&[result[0], high]);
        self.select(special, crude, finite, 2)
    }

    /// A high word that shows a NaN also where only the low word tells it from infinity.
    fn nan_in_high_word(&mut self, whole: Src, high: Src) -> Src {
        let nan = self.dcompare(FCmp::Nan, whole, whole);
        self.select(nan, Src::imm(0x7fff_ffff), high, 1)
    }

    /// The biased exponent of `quotient * 2^shift`.
    fn biased(&mut self, quotient: Src, shift: Src) -> Src {
        let high = self.part(quotient, 1);
        let exponent = self.shift_right(high, EXPONENT_SHIFT, false);
        self.add(exponent, shift)
    }

    /// `quotient * 2^shift` where that is normal.
    fn with_exponent(&mut self, quotient: Src, shift: Src) -> [Src; 2] {
        let [low, high] = self.pair(quotient);
        let moved = self.shift_left(shift, Src::imm(EXPONENT_SHIFT));
        [low, self.add(high, moved)]
    }

    /// `quotient * 2^shift` where that is denormal, rounded once: `rest` tells on which side of the exact quotient
    /// the given one lies.
    fn denormal_quotient(&mut self, quotient: Src, rest: Src, shift: Src) -> [Src; 2] {
        // Down to the 53 bits at or below the exact quotient, and whether there is more.
        let above = self.dcompare(FCmp::Lt, rest, Src::ZERO);
        let inexact = self.dcompare(FCmp::Ne, rest, Src::ZERO);
        let down = self.select(above, Src::imm(!0), Src::ZERO, 1);
        let bits = self.pair(quotient);
        let bits = self.add_pair_registers(bits, [down, down]);
        let truncated = self.pack(&bits);
        let exponent = self.biased(truncated, shift);
        let fraction = self.lop3(lut::A & lut::B, bits[1], Src::imm(0x000f_ffff), Src::ZERO);
        let high = self.lop3(lut::A | lut::B, fraction, Src::imm(LEAST_NORMAL), Src::ZERO);
        // Ten more bits below, the last of which stands for all that is lost.
        let wide = self.shift_left_pair([bits[0], high], Src::imm(10));
        let sticky = self.select(inexact, Src::imm(1), Src::ZERO, 1);
        let low = self.lop3(lut::A | lut::B, wide[0], sticky, Src::ZERO);
        let wide = [low, wide[1]];
        let by = self.subtract(Src::imm(1), exponent);
        let by = self.minimum(true, true, by, Src::imm(63));
        let by = self.minimum(true, false, by, Src::imm(1));
        let back = self.subtract(Src::imm(64), by);
        let lost = self.shift_left_pair(wide, back);
        let lost = self.compare_pair(ICmp::Ne, false, lost, [Src::ZERO; 2]);
        let sticky = self.select(lost, Src::imm(1), Src::ZERO, 1);
        let kept = self.shift_right_pair(wide, by, false);
        let low = self.lop3(lut::A | lut::B, kept[0], sticky, Src::ZERO);
        let kept = [low, kept[1]];
        // To nearest: half less one, plus the bit that makes a tie even.
        let odd = self.shift_right(kept[0], 10, false);
        let odd = self.lop3(lut::A & lut::B, odd, Src::imm(1), Src::ZERO);
        let addend = self.add(odd, Src::imm(0x1ff));
        let rounded = self.add_pair_registers(kept, [addend, Src::ZERO]);
        self.shift_right_pair(rounded, Src::imm(10), false)
    }

    fn add_pair_registers(&mut self, a: [Src; 2], b: [Src; 2]) -> [Src; 2] {
        let (low, carry) = self.add_carry_out(a[0], b[0]);
        [low, self.add_last(a[1], b[1], carry)]
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

    /// The square root of a double whose exponent is neither near the least nor special.
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
        self.unless(fast, slow, 2, |this| {
            let scaled = this.dmul(a, double(power_of_two(108)));
            let root = this.refined_root(scaled);
            let root = this.dmul(root, double(1.0 / power_of_two(54)));
            // Zero and infinity are their own roots.
            let zero = this.dcompare(FCmp::Eq, a, Src::ZERO);
            let infinite = this.dcompare(FCmp::Eq, a, double(f64::INFINITY));
            let itself = this.plop3(lut::A | lut::B, zero, infinite, Src::TRUE);
            this.select(itself, a, root, 2)
        })
    }

    /// `rsqrt.approx.f64`.
    pub(super) fn reciprocal_root_of_double(&mut self, instr: &Statement<'a>) -> Result<()> {
        let a = self.source(instr, 1, ScalarType::F64)?;
        let a = self.double_in_register(a);
        let fast = self.refined_reciprocal_root(a);
        let high = self.part(a, 1);
        let above = self.subtract(high, Src::imm(LEAST_NORMAL));
        let slow = self.compare(ICmp::Ge, false, above, Src::imm(INFINITY - LEAST_NORMAL));
        let result = self.unless(fast, slow, 2, |this| {
            let scaled = this.dmul(a, double(power_of_two(54)));
            let root = this.refined_reciprocal_root(scaled);
            let root = this.dmul(root, double(power_of_two(27)));
            let zero = this.dcompare(FCmp::Eq, a, Src::ZERO);
            let sign = this.lop3(lut::A & lut::B, high, Src::imm(0x8000_0000), Src::ZERO);
            let infinity = this.lop3(lut::A | lut::B, sign, Src::imm(INFINITY), Src::ZERO);
            let infinity = this.pack(&[Src::ZERO, infinity]);
            let infinite = this.dcompare(FCmp::Eq, a, double(f64::INFINITY));
            let root = this.select(infinite, Src::ZERO, root, 2);
            this.select(zero, infinity, root, 2)
        });
        self.result(instr, result)
    }
}
