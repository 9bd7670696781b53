//! fp32 arithmetic and the approximate functions of the multi-function unit.
//!
//! The unit flushes denormals. Functions that must not flush them are computed on a scaled operand and scaled back. The
//! scales are powers of two, so no precision is lost.

use super::integer::lut;
use super::operand::known;
use super::{Lowering, Result, Statement};
use crate::ori::ir::{Src, SrcKind};
use crate::ori::op::{Bool, FCmp, ICmp, MufuFunc, Op, Round};
use ptx_isa::{FormId, Mod, ScalarType};

pub(super) const MIN_NORMAL: f32 = f32::MIN_POSITIVE;
const TWO_POW_24: f32 = 16_777_216.0;
pub(super) const TWO_POW_126: f32 = 8.507_059e37;

pub(super) fn float(value: f32) -> Src {
    Src::imm(value.to_bits())
}

/// `-src` as the operand of a float operation.
pub(super) fn negated(src: Src) -> Src {
    match known(src) {
        Some(bits) => Src::new(SrcKind::Imm(bits ^ 0x8000_0000)),
        None => src.neg(),
    }
}

/// `|src|` as the operand of a float operation.
pub(super) fn magnitude(src: Src) -> Src {
    match known(src) {
        Some(bits) => Src::imm(bits & 0x7fff_ffff),
        None => {
            let mut src = src;
            src.mods.neg = false;
            src.mods.abs = true;
            src
        }
    }
}

/// The rounding modifier of an instruction; nearest even by default.
pub(super) fn rounding(instr: &Statement<'_>) -> Round {
    let roundings = [(Mod::Rn, Round::Rn), (Mod::Rz, Round::Rz), (Mod::Rm, Round::Rm), (Mod::Rp, Round::Rp)];
    instr.take(&roundings).unwrap_or(Round::Rn)
}

impl<'a> Lowering<'a> {
    /// Arithmetic on `.f32x2`. If the target computes only one float at a time, two instructions follow each other.
    pub(super) fn compute_pair_of_floats(&mut self, instr: &Statement<'a>) -> Result<()> {
        let (round, ftz) = (rounding(instr), instr.has(Mod::Ftz));
        let count = if instr.form() == FormId::FmaF32x2 { 3 } else { 2 };
        let mut srcs = [Src::ZERO; 3];
        for (i, src) in srcs.iter_mut().enumerate().take(count) {
            *src = self.source(instr, i + 1, ScalarType::F32x2)?;
        }
        let srcs = &srcs[..count];
        let minus = |i: usize, src: Src| match (instr.form(), i) {
            (FormId::SubF32x2, 1) => negated(src),
            _ => src,
        };
        let (both, one) = match instr.form() {
            FormId::FmaF32x2 => (Op::Ffma2 { ftz, round }, Op::Ffma { round, ftz, sat: false }),
            FormId::MulF32x2 => (Op::Fmul2 { ftz, round }, Op::Fmul { round, ftz, sat: false }),
            _ => (Op::Fadd2 { ftz, round }, Op::Fadd { round, ftz, sat: false }),
        };
        if self.encodes(&both) {
            let srcs: Vec<Src> = srcs.iter().enumerate().map(|(i, src)| minus(i, *src)).collect();
            let result = self.wide(2, both, &srcs);
            self.note_unrounded(instr, &[result]);
            return self.result(instr, result);
        }
        let halves = [0, 1].map(|half| {
            let srcs: Vec<Src> =
                srcs.iter().enumerate().map(|(i, src)| minus(i, self.part(*src, half))).collect();
            self.reg(one, &srcs)
        });
        self.note_unrounded(instr, &halves);
        self.result_pair(instr, halves)
    }

    pub(super) fn fmul(&mut self, ftz: bool, a: Src, b: Src) -> Src {
        let (a, b) = if known(a).is_some() { (b, a) } else { (a, b) };
        self.reg(Op::Fmul { round: Round::Rn, ftz, sat: false }, &[a, b])
    }

    pub(super) fn fadd(&mut self, ftz: bool, a: Src, b: Src) -> Src {
        self.reg(Op::Fadd { round: Round::Rn, ftz, sat: false }, &[a, b])
    }

    pub(super) fn ffma(&mut self, round: Round, a: Src, b: Src, c: Src) -> Src {
        self.reg(Op::Ffma { round, ftz: false, sat: false }, &[a, b, c])
    }

    pub(super) fn fcompare(&mut self, cmp: FCmp, ftz: bool, a: Src, b: Src) -> Src {
        self.pred(Op::Fsetp { cmp, ftz, bool_: Bool::And }, &[a, b, Src::TRUE])
    }

    pub(super) fn mufu(&mut self, func: MufuFunc, a: Src) -> Src {
        self.reg(Op::Mufu { func }, &[a])
    }

    /// `copysign` of .f64: the sign of a and the magnitude of b.
    pub(super) fn copy_sign(&mut self, instr: &Statement<'a>) -> Result<()> {
        let ty = self.type_of(instr, 0)?;
        let (a, b) = (self.source_pair(instr, 1, ty)?, self.source_pair(instr, 2, ty)?);
        let high = self.lop3(lut::SELECT, b[1], Src::imm(0x8000_0000), a[1]);
        self.result_pair(instr, [b[0], high])
    }

    /// `testp`, on the bits.
    pub(super) fn test_property(&mut self, instr: &Statement<'a>) -> Result<()> {
        const TESTS: [Mod; 6] =
            [Mod::Finite, Mod::Infinite, Mod::Number, Mod::NotANumber, Mod::Normal, Mod::Subnormal];
        let ty = self.type_of(instr, 0)?;
        let Some(test) = instr.any_of(&TESTS) else {
            return self.unsupported(instr, "`testp` without a property");
        };
        let double = ty.bits() == 64;
        let a =
            if double { self.source_pair(instr, 1, ty)? } else { [Src::ZERO, self.source(instr, 1, ty)?] };
        let high = self.lop3(lut::A & lut::B, a[1], Src::imm(0x7fff_ffff), Src::ZERO);
        let (infinity, normal) = if double { (0x7ff0_0000, 0x0010_0000) } else { (0x7f80_0000, 0x0080_0000) };
        let bits = [a[0], high];
        let mut is = |cmp, limit| {
            if double {
                self.compare_pair(cmp, false, bits, [Src::ZERO, Src::imm(limit)])
            } else {
                self.compare(cmp, false, high, Src::imm(limit))
            }
        };
        let result = match test {
            Mod::Finite => is(ICmp::Lt, infinity),
            Mod::Infinite => is(ICmp::Eq, infinity),
            Mod::Number => is(ICmp::Le, infinity),
            Mod::NotANumber => is(ICmp::Gt, infinity),
            Mod::Normal => {
                // Zeros count as normal.
                let (below, above) = (is(ICmp::Lt, infinity), is(ICmp::Ge, normal));
                let zero = is(ICmp::Eq, 0);
                self.plop3(lut::A & lut::B | lut::C, below, above, zero)
            }
            _ => {
                let (below, above) = (is(ICmp::Lt, normal), is(ICmp::Ne, 0));
                self.plop3(lut::A & lut::B, below, above, Src::TRUE)
            }
        };
        self.result(instr, result)
    }

    /// `sin` and `cos`. If denormals are kept, also `ex2`, `lg2` and the approximate `rcp`, `rsqrt` and `sqrt` of .f32.
    pub(super) fn approximate(&mut self, instr: &Statement<'a>) -> Result<()> {
        let a = self.source(instr, 1, ScalarType::F32)?;
        let result = match instr.form() {
            FormId::Ex2 => self.exponential(a),
            FormId::Lg2 => {
                let (scaled, normal) = self.scale_up(a);
                let log = self.mufu(MufuFunc::Lg2, scaled);
                let less = self.fadd(false, log, float(-24.0));
                self.select(normal, log, less, 1)
            }
            FormId::Sin | FormId::Cos => {
                // A denormal angle has the sine and the cosine of zero, flushed or not.
                instr.ignore(&[Mod::Ftz]);
                // The unit's operand is a number of turns.
                const TURN: f32 = std::f32::consts::FRAC_1_PI / 2.0;
                let op = Op::Fmul { round: Round::Rz, ftz: false, sat: false };
                let turns = self.reg(op, &[a, float(TURN)]);
                self.mufu(if instr.form() == FormId::Sin { MufuFunc::Sin } else { MufuFunc::Cos }, turns)
            }
            FormId::RcpF32 => self.reciprocal(a),
            FormId::RsqrtF32 => self.scaled_root(MufuFunc::Rsq, a, 4096.0),
            _ => self.scaled_root(MufuFunc::Sqrt, a, 1.0 / 4096.0),
        };
        self.note_unrounded(instr, &[result]);
        self.result(instr, result)
    }

    /// Multiplies `a` by 2^24 if it is denormal. Also returns whether `a` is not denormal.
    fn scale_up(&mut self, a: Src) -> (Src, Src) {
        let normal = self.fcompare(FCmp::Geu, false, magnitude(a), float(MIN_NORMAL));
        let scaled = self.fmul(false, a, float(TWO_POW_24));
        (self.select(normal, a, scaled, 1), normal)
    }

    fn exponential(&mut self, a: Src) -> Src {
        // A denormal result is the square of a result that is not denormal.
        let normal = self.fcompare(FCmp::Geu, false, a, float(-126.0));
        let half = self.fmul(false, a, float(0.5));
        let scaled = self.select(normal, a, half, 1);
        let power = self.mufu(MufuFunc::Ex2, scaled);
        let square = self.fmul(false, power, power);
        self.select(normal, power, square, 1)
    }

    fn scaled_root(&mut self, func: MufuFunc, a: Src, back: f32) -> Src {
        let (scaled, normal) = self.scale_up(a);
        let root = self.mufu(func, scaled);
        let descaled = self.fmul(false, root, float(back));
        self.select(normal, root, descaled, 1)
    }

    fn reciprocal(&mut self, a: Src) -> Src {
        let normal = self.fcompare(FCmp::Geu, false, magnitude(a), float(MIN_NORMAL));
        let large = self.fcompare(FCmp::Gt, false, magnitude(a), float(TWO_POW_126));
        let up = self.select(normal, float(1.0), float(TWO_POW_24), 1);
        let scale = self.select(large, float(0.25), up, 1);
        let scaled = self.fmul(false, scale, a);
        let inverse = self.mufu(MufuFunc::Rcp, scaled);
        self.fmul(false, scale, inverse)
    }

    /// `min` and `max` of two or three .f32 operands.
    pub(super) fn single_minimum(&mut self, instr: &Statement<'a>) -> Result<()> {
        let (ftz, nan, xor) = (instr.has(Mod::Ftz), instr.has(Mod::Nan), instr.has(Mod::XorSign));
        let choose = if instr.form() == FormId::MinF32 { Src::TRUE } else { Src::FALSE };
        let abs = instr.has(Mod::Abs);
        let mut srcs = Vec::new();
        for i in 1..instr.operand_count() {
            let src = self.source(instr, i, ScalarType::F32)?;
            srcs.push(if abs { magnitude(src) } else { src });
        }
        let two = Op::Fmnmx { ftz, nan, xor };
        if !self.encodes(&two) {
            return self.unsupported(instr, "this mode on this target");
        }
        let result = match srcs[..] {
            [a, b] => self.ordered(two, a, b, choose),
            [a, b, c] => {
                let three = Op::Fmnmx3 { ftz, nan };
                if self.encodes(&three) {
                    self.reg(three, &[a, b, c, choose])
                } else {
                    let first = self.ordered(two, a, b, choose);
                    self.ordered(two, first, c, choose)
                }
            }
            _ => return self.malformed("a minimum of a number of operands other than two or three"),
        };
        self.result(instr, result)
    }

    /// `min` and `max` of halves.
    pub(super) fn half_minimum(&mut self, instr: &Statement<'a>) -> Result<()> {
        let bf16 = self.half_type(instr)?;
        let (ftz, nan, xor) = (instr.has(Mod::Ftz), instr.has(Mod::Nan), instr.has(Mod::XorSign));
        let op = Op::Hmnmx2 { bf16, ftz, nan, xor };
        if !self.encodes(&op) {
            return self.unsupported(instr, "this instruction on this target");
        }
        let choose = if instr.form() == FormId::MinHalf { Src::TRUE } else { Src::FALSE };
        let abs = instr.has(Mod::Abs);
        let mut srcs = [Src::ZERO; 2];
        for (i, src) in srcs.iter_mut().enumerate() {
            *src = self.source_half(instr, i + 1)?;
            if abs {
                *src = magnitude(*src);
            }
        }
        let result = self.ordered(op, srcs[0], srcs[1], choose);
        self.result(instr, result)
    }

    /// A commutative operation, with a literal as its second operand.
    fn ordered(&mut self, op: Op, a: Src, b: Src, choose: Src) -> Src {
        let (a, b) = if known(a).is_some() { (b, a) } else { (a, b) };
        self.reg(op, &[a, b, choose])
    }

    /// `add`, `sub` and `fma` of halves with a float.
    pub(super) fn compute_mixed(&mut self, instr: &Statement<'a>) -> Result<()> {
        let half = self.type_of(instr, 1)?;
        let (bf16, round, sat) = (half == ScalarType::Bf16, rounding(instr), instr.has(Mod::Sat));
        let fused = instr.form() == FormId::FmaMixed;
        let op = if fused { Op::Fhfma { bf16, round, sat } } else { Op::Fhadd { bf16, round, sat } };
        if !self.encodes(&op) {
            return self.unsupported(instr, "mixed precision on this target");
        }
        let last = if fused { 3 } else { 2 };
        let mut srcs = Vec::new();
        for i in 1..=last {
            srcs.push(self.source(instr, i, if i == last { ScalarType::F32 } else { half })?);
        }
        if instr.form() == FormId::SubMixed {
            srcs[1] = negated(srcs[1]);
        }
        let result = self.reg(op, &srcs);
        self.result(instr, result)
    }

    /// `div.approx` and `div.full` of .f32.
    pub(super) fn divide_approximately(&mut self, instr: &Statement<'a>, full: bool) -> Result<()> {
        let ftz = instr.has(Mod::Ftz);
        let (mut a, mut b) =
            (self.source(instr, 1, ScalarType::F32)?, self.source(instr, 2, ScalarType::F32)?);
        let divisor = b;
        if full {
            // The reciprocal of a larger divisor would be denormal.
            let large = self.fcompare(FCmp::Gt, ftz, magnitude(divisor), float(TWO_POW_126));
            let (small_a, small_b) = (self.fmul(ftz, a, float(0.25)), self.fmul(ftz, b, float(0.25)));
            (a, b) = (self.select(large, small_a, a, 1), self.select(large, small_b, b, 1));
        }
        if !ftz {
            let normal = self.fcompare(FCmp::Geu, false, magnitude(divisor), float(MIN_NORMAL));
            let (large_a, large_b) =
                (self.fmul(false, a, float(TWO_POW_24)), self.fmul(false, b, float(TWO_POW_24)));
            (a, b) = (self.select(normal, a, large_a, 1), self.select(normal, b, large_b, 1));
        }
        let inverse = self.mufu(MufuFunc::Rcp, b);
        let quotient = self.fmul(ftz, inverse, a);
        self.note_unrounded(instr, &[quotient]);
        self.result(instr, quotient)
    }
}
