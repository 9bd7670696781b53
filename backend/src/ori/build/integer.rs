//! Integer arithmetic.
//!
//! 8-bit and 16-bit operations are executed in 32 bits. The upper bits of a result are undefined; operands are extended
//! where the upper bits matter.

use super::operand::{known, registers};
use super::row::{AB, LARGER, SMALLER};
use super::ssa::Variable;
use super::{Lowering, Result, Statement};
use crate::ori::ir::{Dst, File, Inst, Src, Value};
use crate::ori::op::{ICmp, Op, PairType, ShfType, Sign, WideSign};
use ptx_isa::{FormId, Mod, ScalarType, TypeKind};

pub(super) fn sign_of(signed: bool) -> Sign {
    if signed { Sign::S32 } else { Sign::U32 }
}

pub(super) use crate::ori::op::lut;

/// `.hi` or `.lo`.
pub(super) fn takes_high(instr: &Statement<'_>) -> bool {
    instr.any_of(&[Mod::Lo, Mod::Hi]) == Some(Mod::Hi)
}

/// `.wrap` or `.clamp`.
pub(super) fn wraps(instr: &Statement<'_>) -> bool {
    instr.any_of(&[Mod::Wrap, Mod::Clamp]) == Some(Mod::Wrap)
}

/// `~src` as the operand of an addition with carry.
fn complementable(src: Src) -> Src {
    match known(src) {
        Some(v) => Src::imm(!v),
        None => src.neg(),
    }
}

impl<'a> Lowering<'a> {
    pub(super) fn push_add(&mut self, op: Op, dst: Value, srcs: [Src; 3]) {
        let dsts = [Dst::Value(dst), Dst::Sink, Dst::Sink];
        self.push(Inst::new(op, &dsts, &srcs, self.src));
    }

    /// `a + b`, 32-bit.
    pub(super) fn add(&mut self, a: Src, b: Src) -> Src {
        self.add3(a, b, Src::ZERO)
    }

    /// `a + b + c`, 32-bit.
    pub(super) fn add3(&mut self, a: Src, b: Src, c: Src) -> Src {
        match (known(a), known(b), known(c)) {
            (Some(x), Some(y), Some(z)) => return Src::imm(x.wrapping_add(y).wrapping_add(z)),
            (None, Some(0), Some(0)) if a.mods == Default::default() => return a,
            (Some(0), None, Some(0)) if b.mods == Default::default() => return b,
            _ => {}
        }
        let dst = self.new_value(File::R, 1);
        let (a, b) = if known(a).is_some() { (b, a) } else { (a, b) };
        self.push_add(Op::Iadd3 { x: false }, dst, [a, b, c]);
        dst.into()
    }

    /// `a - b`, 32-bit.
    pub(super) fn subtract(&mut self, a: Src, b: Src) -> Src {
        let b = match known(b) {
            Some(v) => Src::imm(v.wrapping_neg()),
            None => b.neg(),
        };
        self.add(a, b)
    }

    /// `a * b + c`, low 32 bits.
    pub(super) fn multiply_add(&mut self, a: Src, b: Src, c: Src) -> Src {
        let (a, b) = if known(a).is_some() { (b, a) } else { (a, b) };
        self.reg(Op::Imad { sign: Sign::U32 }, &[a, b, c])
    }

    /// The 64-bit product of 32-bit factors, plus a 64-bit addend.
    pub(super) fn multiply_wide(&mut self, signed: bool, a: Src, b: Src, c: Src) -> Src {
        let (a, b) = if known(a).is_some() { (b, a) } else { (a, b) };
        self.wide(2, Op::ImadWide { sign: sign_of(signed), x: false }, &[a, b, c])
    }

    /// `a * b + c` of unsigned integers and the carry.
    fn multiply_wide_carry_out(&mut self, a: Src, b: Src, c: Src) -> (Src, Src) {
        let (a, b) = if known(a).is_some() { (b, a) } else { (a, b) };
        let (dst, carry) = (self.new_value(File::R, 2), self.new_value(File::P, 1));
        let op = Op::ImadWide { sign: Sign::U32, x: false };
        self.push(Inst::new(op, &[Dst::Value(dst), Dst::Value(carry)], &[a, b, c], self.src));
        (dst.into(), carry.into())
    }

    /// `a * b + c + carry` of unsigned integers.
    fn multiply_wide_last(&mut self, a: Src, b: Src, c: Src, carry: Src) -> Src {
        let (a, b) = if known(a).is_some() { (b, a) } else { (a, b) };
        self.wide(2, Op::ImadWide { sign: Sign::U32, x: true }, &[a, b, c, carry])
    }

    /// `a + b` and the carry.
    pub(super) fn add_carry_out(&mut self, a: Src, b: Src) -> (Src, Src) {
        let (dst, carry) = (self.new_value(File::R, 1), self.new_value(File::P, 1));
        let dsts = [Dst::Value(dst), Dst::Value(carry), Dst::Sink];
        self.push(Inst::new(Op::Iadd3 { x: false }, &dsts, &[a, b, Src::ZERO], self.src));
        (dst.into(), carry.into())
    }

    /// `a + b + carry` and the carry; a negated `b` is complemented.
    pub(super) fn add_carry(&mut self, a: Src, b: Src, carry: Src) -> (Src, Src) {
        let (dst, out) = (self.new_value(File::R, 1), self.new_value(File::P, 1));
        let dsts = [Dst::Value(dst), Dst::Value(out), Dst::Sink];
        let srcs = [a, b, Src::ZERO, carry, Src::FALSE];
        self.push(Inst::new(Op::Iadd3 { x: true }, &dsts, &srcs, self.src));
        (dst.into(), out.into())
    }

    /// As [`Self::add_carry`], if the carry is not read.
    pub(super) fn add_last(&mut self, a: Src, b: Src, carry: Src) -> Src {
        let dst = self.new_value(File::R, 1);
        let dsts = [Dst::Value(dst), Dst::Sink, Dst::Sink];
        let srcs = [a, b, Src::ZERO, carry, Src::FALSE];
        self.push(Inst::new(Op::Iadd3 { x: true }, &dsts, &srcs, self.src));
        dst.into()
    }

    pub(super) fn add_pair(&mut self, a: [Src; 2], b: [Src; 2]) -> [Src; 2] {
        if known(b[0]) == Some(0) {
            return [a[0], self.add(a[1], b[1])];
        }
        if known(a[0]) == Some(0) {
            return [b[0], self.add(a[1], b[1])];
        }
        let (low, carry) = self.add_carry_out(a[0], b[0]);
        [low, self.add_last(a[1], b[1], carry)]
    }

    pub(super) fn subtract_pair(&mut self, a: [Src; 2], b: [Src; 2]) -> [Src; 2] {
        if let (Some(low), Some(high)) = (known(b[0]), known(b[1])) {
            let negated = (u64::from(high) << 32 | u64::from(low)).wrapping_neg();
            return self.add_pair(a, super::operand::halves(negated));
        }
        // If the subtrahend is a known zero, there is no borrow; its negation would not give a carry.
        if known(b[0]) == Some(0) {
            return [a[0], self.subtract(a[1], b[1])];
        }
        let subtrahend = self.negatable(b[0]);
        let (low, carry) = self.add_carry_out(a[0], subtrahend);
        [low, self.add_last(a[1], complementable(b[1]), carry)]
    }

    /// `-src` as the operand of an addition whose carry is read.
    fn negatable(&mut self, src: Src) -> Src {
        match known(src) {
            Some(_) => self.in_register(src).neg(),
            None => src.neg(),
        }
    }

    fn integer_type(&self, instr: &Statement<'_>) -> Result<ScalarType> {
        match instr.ty(0) {
            Some(ty) if matches!(ty.kind(), TypeKind::Signed | TypeKind::Unsigned | TypeKind::Bits) => Ok(ty),
            Some(ty) => self.unsupported(instr, &format!("the type `.{}`", ty.text())),
            None => self.malformed("an integer instruction without a type"),
        }
    }

    /// `add` and `sub`.
    pub(super) fn add_integer(&mut self, instr: &Statement<'a>) -> Result<()> {
        if let ScalarType::U16x2 | ScalarType::S16x2 = self.type_of(instr, 0)? {
            let op = Op::Viadd2 { ty: PairType::B16 };
            if !self.encodes(&op) {
                return self.add_pairs(instr);
            }
            return self.one(instr, op, AB);
        }
        let ty = self.integer_type(instr)?;
        let minus = instr.form() == FormId::SubInt;
        if ty.bits() == 64 {
            let (a, b) = (self.source_pair(instr, 1, ty)?, self.source_pair(instr, 2, ty)?);
            let sum = if minus { self.subtract_pair(a, b) } else { self.add_pair(a, b) };
            return self.result_pair(instr, sum);
        }
        let (a, b) = (self.source(instr, 1, ty)?, self.source(instr, 2, ty)?);
        let sum = if minus { self.subtract(a, b) } else { self.add(a, b) };
        if !instr.has(Mod::Sat) {
            return self.result(instr, sum);
        }
        if ty != ScalarType::S32 {
            return self.unsupported(instr, ".sat of a type other than .s32");
        }
        let result = self.saturated(a, b, sum, minus);
        self.result(instr, result)
    }

    /// Sums of pairs of 16-bit integers on targets that only add 32 bits.
    fn add_pairs(&mut self, instr: &Statement<'a>) -> Result<()> {
        let [a, b] = [self.source(instr, 1, ScalarType::B32)?, self.source(instr, 2, ScalarType::B32)?];
        let low = self.add(a, b);
        let [a, b] = [a, b].map(|pair| self.shift_right(pair, 16, false));
        let high = self.add(a, b);
        let sums = self.halves_of(low, high);
        self.result(instr, sums)
    }

    /// A sum or difference of signed integers, saturated.
    pub(super) fn saturated(&mut self, a: Src, b: Src, sum: Src, minus: bool) -> Src {
        // Overflow: the operands have the same sign (different signs, for a difference), and the result does not have
        // the sign of `a`.
        let sign_a_sum = lut::A ^ lut::C;
        let test = if minus { sign_a_sum & (lut::A ^ lut::B) } else { sign_a_sum & (lut::B ^ lut::C) };
        let overflow = self.reg(Op::Lop3 { lut: test }, &[a, b, sum]);
        let overflowed = self.compare(ICmp::Lt, true, overflow, Src::ZERO);
        let sign = self.shift_right(sum, 31, true);
        let limit = self.reg(Op::Lop3 { lut: lut::A ^ lut::B }, &[sign, Src::imm(0x8000_0000), Src::ZERO]);
        self.select(overflowed, limit, sum, 1)
    }

    /// A 32-bit shift to the right by a constant below 32.
    pub(super) fn shift_right(&mut self, src: Src, by: u32, signed: bool) -> Src {
        if let (Some(v), false) = (known(src), signed) {
            return Src::imm(v >> by);
        }
        let ty = if signed { ShfType::S32 } else { ShfType::U32 };
        self.reg(Op::Shf { right: true, wrap: false, hi: true, ty }, &[Src::ZERO, Src::imm(by), src])
    }

    /// `mul` and `mad`, of any width and part.
    pub(super) fn multiply(&mut self, instr: &Statement<'a>) -> Result<()> {
        let ty = self.integer_type(instr)?;
        let signed = ty.is_signed();
        let add = instr.form() == FormId::MadInt;
        let part = instr.any_of(&[Mod::Lo, Mod::Hi, Mod::Wide]);
        match (ty.bits(), part == Some(Mod::Wide), part == Some(Mod::Hi)) {
            (16, true, _) => {
                let (a, b) = (self.source_extended(instr, 1, ty)?, self.source_extended(instr, 2, ty)?);
                let c = if add { self.source(instr, 3, ScalarType::U32)? } else { Src::ZERO };
                let product = self.multiply_add(a, b, c);
                self.result(instr, product)
            }
            (16, false, true) => {
                let (a, b) = (self.source_extended(instr, 1, ty)?, self.source_extended(instr, 2, ty)?);
                let product = self.multiply_add(a, b, Src::ZERO);
                let high = self.shift_right(product, 16, signed);
                let c = if add { self.source(instr, 3, ty)? } else { Src::ZERO };
                let sum = self.add(high, c);
                self.result(instr, sum)
            }
            (16 | 32, false, false) => {
                let (a, b) = (self.source(instr, 1, ty)?, self.source(instr, 2, ty)?);
                let c = if add { self.source(instr, 3, ty)? } else { Src::ZERO };
                let product = self.multiply_add(a, b, c);
                self.result(instr, product)
            }
            (32, true, _) => {
                let (a, b) = (self.source(instr, 1, ty)?, self.source(instr, 2, ty)?);
                let c = if add { self.source(instr, 3, ScalarType::U64)? } else { Src::ZERO };
                let product = self.multiply_wide(signed, a, b, c);
                self.result(instr, product)
            }
            (32, false, true) => {
                let (a, b) = (self.source(instr, 1, ty)?, self.source(instr, 2, ty)?);
                let high = self.multiply_high(signed, a, b);
                let c = if add { self.source(instr, 3, ty)? } else { Src::ZERO };
                let mut sum = self.add(high, c);
                if instr.has(Mod::Sat) {
                    sum = self.saturated(high, c, sum, false);
                }
                self.result(instr, sum)
            }
            (64, false, high) => {
                let (a, b) = (self.source_pair(instr, 1, ty)?, self.source_pair(instr, 2, ty)?);
                let c = if add { self.source_pair(instr, 3, ty)? } else { [Src::ZERO; 2] };
                let product = if high {
                    let product = self.multiply_high_pair(signed, a, b);
                    if add { self.add_pair(product, c) } else { product }
                } else {
                    self.multiply_low_pair(a, b, c)
                };
                self.result_pair(instr, product)
            }
            _ => self.unsupported(instr, &format!("the type `.{}`", ty.text())),
        }
    }

    /// High 32 bits of the product.
    pub(super) fn multiply_high(&mut self, signed: bool, a: Src, b: Src) -> Src {
        let (a, b) = if known(a).is_some() { (b, a) } else { (a, b) };
        self.reg(Op::ImadHi { sign: sign_of(signed) }, &[a, b, Src::ZERO])
    }

    /// `a * b + c` modulo 2^64.
    pub(super) fn multiply_low_pair(&mut self, a: [Src; 2], b: [Src; 2], c: [Src; 2]) -> [Src; 2] {
        let c = self.pack(&c);
        let low = self.multiply_wide(false, a[0], b[0], c);
        let [low, mut high] = self.pair(low);
        for (x, y) in [(a[0], b[1]), (a[1], b[0])] {
            if known(x) != Some(0) && known(y) != Some(0) {
                high = self.multiply_add(x, y, high);
            }
        }
        [low, high]
    }

    /// High 64 bits of the 128-bit product.
    pub(super) fn multiply_high_pair(&mut self, signed: bool, a: [Src; 2], b: [Src; 2]) -> [Src; 2] {
        let mut high = self.multiply_high_unsigned(a, b);
        if signed {
            // A negative factor, read as unsigned, is too large by 2^64, so the product is too large by 2^64 times the
            // other factor.
            for (x, y) in [(a, b), (b, a)] {
                let mask = self.shift_right(x[1], 31, true);
                let off = y.map(|half| self.reg(Op::Lop3 { lut: lut::A & lut::B }, &[mask, half, Src::ZERO]));
                high = self.subtract_pair(high, off);
            }
        }
        high
    }

    fn multiply_high_unsigned(&mut self, a: [Src; 2], b: [Src; 2]) -> [Src; 2] {
        let is_word = |factor: [Src; 2]| known(factor[1]) == Some(0);
        let (a, b) = if is_word(a) { (b, a) } else { (a, b) };
        if is_word(a) || b.iter().all(|half| known(*half) == Some(0)) {
            return [Src::ZERO; 2];
        }
        let low = self.multiply_wide(false, a[0], b[0], Src::ZERO);
        let carried = self.part(low, 1);
        if is_word(b) {
            // The sum does not overflow: (2^32 - 1)^2 + 2^32 - 1 < 2^64.
            let addend = self.pack(&[carried, Src::ZERO]);
            let high = self.multiply_wide(false, a[1], b[0], addend);
            return [self.part(high, 1), Src::ZERO];
        }
        let cross = self.multiply_wide(false, a[1], b[0], Src::ZERO);
        let (cross, carry) = self.multiply_wide_carry_out(a[0], b[1], cross);
        let carry = self.add_last(Src::ZERO, Src::ZERO, carry);
        let [middle, upper] = self.pair(cross);
        let (_, middle_carry) = self.add_carry_out(carried, middle);
        let addend = self.pack(&[upper, carry]);
        let high = self.multiply_wide_last(a[1], b[1], addend, middle_carry);
        self.pair(high)
    }

    /// `mul24` and `mad24`.
    pub(super) fn multiply_24(&mut self, instr: &Statement<'a>) -> Result<()> {
        let ty = self.integer_type(instr)?;
        let signed = ty.is_signed();
        let factor = |this: &mut Self, i| {
            let src = this.source(instr, i, ty)?;
            Ok(this.reg(Op::Sgxt { sign: sign_of(signed), wrap: false }, &[src, Src::imm(24)]))
        };
        let (a, b) = (factor(self, 1)?, factor(self, 2)?);
        let c = if instr.form() == FormId::Mad24 { self.source(instr, 3, ty)? } else { Src::ZERO };
        if !takes_high(instr) {
            let product = self.multiply_add(a, b, c);
            return self.result(instr, product);
        }
        // Bits 16 to 47 of the 48-bit product.
        let product = self.multiply_wide(signed, a, b, Src::ZERO);
        let [low, high] = self.pair(product);
        let op = Op::Shf { right: true, wrap: false, hi: false, ty: ShfType::U64 };
        let middle = self.reg(op, &[low, Src::imm(16), high]);
        let mut sum = self.add(middle, c);
        if instr.has(Mod::Sat) {
            sum = self.saturated(middle, c, sum, false);
        }
        self.result(instr, sum)
    }

    /// `sad`: |a - b| + c.
    pub(super) fn sum_of_differences(&mut self, instr: &Statement<'a>) -> Result<()> {
        let ty = self.integer_type(instr)?;
        let signed = ty.is_signed();
        if ty.bits() == 64 {
            let (a, b) = (self.source_pair(instr, 1, ty)?, self.source_pair(instr, 2, ty)?);
            let c = self.source_pair(instr, 3, ty)?;
            let less = self.compare_pair(ICmp::Lt, signed, a, b);
            let (large, small) = (self.select_pair(less, b, a), self.select_pair(less, a, b));
            let difference = self.subtract_pair(large, small);
            let sum = self.add_pair(difference, c);
            return self.result_pair(instr, sum);
        }
        let (a, b) = (self.source_extended(instr, 1, ty)?, self.source_extended(instr, 2, ty)?);
        let c = self.source(instr, 3, ty)?;
        let difference = Op::Vabsdiff { sign: sign_of(signed) };
        let sum = if self.encodes(&difference) {
            self.reg(difference, &[a, b, c])
        } else {
            let small = self.minimum(signed, true, a, b);
            let large = self.minimum(signed, false, a, b);
            self.add3(large, small.neg(), c)
        };
        self.result(instr, sum)
    }

    /// The smaller (if `min`) or the larger of two 32-bit integers.
    pub(super) fn minimum(&mut self, signed: bool, min: bool, a: Src, b: Src) -> Src {
        let choose = if min { Src::TRUE } else { Src::FALSE };
        let (a, b) = if known(a).is_some() { (b, a) } else { (a, b) };
        self.reg(Op::Imnmx { sign: sign_of(signed) }, &[a, b, choose])
    }

    /// `min` and `max`.
    pub(super) fn minimum_integer(&mut self, instr: &Statement<'a>) -> Result<()> {
        let pair = match self.type_of(instr, 0)? {
            ScalarType::U16x2 => Some(PairType::U16),
            ScalarType::S16x2 => Some(PairType::S16),
            _ => None,
        };
        if let Some(ty) = pair {
            let op = Op::Vimnmx2 { ty, relu: instr.has(Mod::Relu) };
            if !self.encodes(&op) {
                return self.minimum_of_pairs(instr, ty == PairType::S16);
            }
            return self.one(instr, op, if instr.form() == FormId::MinInt { SMALLER } else { LARGER });
        }
        let ty = self.integer_type(instr)?;
        let (signed, min) = (ty.is_signed(), instr.form() == FormId::MinInt);
        if ty.bits() == 64 {
            let (a, b) = (self.source_pair(instr, 1, ty)?, self.source_pair(instr, 2, ty)?);
            let op = Op::Imnmx64 { sign: if signed { WideSign::S64 } else { WideSign::U64 } };
            if self.encodes(&op) {
                let choose = if min { Src::TRUE } else { Src::FALSE };
                let (a, b) = if a.iter().all(|half| known(*half).is_some()) { (b, a) } else { (a, b) };
                let srcs = [self.pack(&a), self.pack_extended(&b), choose];
                let result = self.wide(2, op, &srcs);
                return self.result(instr, result);
            }
            let cmp = if min { ICmp::Lt } else { ICmp::Gt };
            let first = self.compare_pair(cmp, signed, a, b);
            let result = self.select_pair(first, a, b);
            return self.result_pair(instr, result);
        }
        let (a, b) = (self.source_extended(instr, 1, ty)?, self.source_extended(instr, 2, ty)?);
        let mut result = self.minimum(signed, min, a, b);
        if instr.has(Mod::Relu) {
            result = self.minimum(true, false, result, Src::ZERO);
        }
        self.result(instr, result)
    }

    /// Packs a pair; if the slot can extend an immediate to the pair, returns the immediate.
    fn pack_extended(&mut self, pair: &[Src; 2]) -> Src {
        let number = match pair.map(known) {
            [Some(low), Some(high)] => Src::extended(low, high),
            _ => None,
        };
        number.unwrap_or_else(|| self.pack(pair))
    }

    /// `min` and `max` of pairs of 16-bit integers on targets that have them only for single ones.
    fn minimum_of_pairs(&mut self, instr: &Statement<'a>, signed: bool) -> Result<()> {
        let min = instr.form() == FormId::MinInt;
        let pairs = [self.source(instr, 1, ScalarType::B32)?, self.source(instr, 2, ScalarType::B32)?];
        let element = if signed { ScalarType::S16 } else { ScalarType::U16 };
        let low = pairs.map(|pair| self.extend(pair, element));
        let high = pairs.map(|pair| self.shift_right(pair, 16, signed));
        let [low, high] = [low, high].map(|[a, b]| {
            let least = self.minimum(signed, min, a, b);
            if instr.has(Mod::Relu) { self.minimum(true, false, least, Src::ZERO) } else { least }
        });
        let pair = self.halves_of(low, high);
        self.result(instr, pair)
    }

    /// `abs` and `neg`.
    pub(super) fn negate_integer(&mut self, instr: &Statement<'a>) -> Result<()> {
        let ty = self.integer_type(instr)?;
        let abs = instr.form() == FormId::AbsInt;
        if ty.bits() == 64 {
            let a = self.source_pair(instr, 1, ty)?;
            let negated = self.subtract_pair([Src::ZERO; 2], a);
            if !abs {
                return self.result_pair(instr, negated);
            }
            let negative = self.compare(ICmp::Lt, true, a[1], Src::ZERO);
            let result = self.select_pair(negative, negated, a);
            return self.result_pair(instr, result);
        }
        let a = self.source(instr, 1, ty)?;
        let result = self.subtract(Src::ZERO, a);
        self.result(instr, result)
    }

    /// A comparison of 64-bit integers: the low words unsigned, then the high words with its result.
    pub(super) fn compare_pair(&mut self, cmp: ICmp, signed: bool, a: [Src; 2], b: [Src; 2]) -> Src {
        use crate::ori::op::Bool;
        self.compare_pair_with(cmp, signed, a, b, Bool::And, Src::TRUE)
    }

    pub(super) fn compare_pair_with(
        &mut self,
        cmp: ICmp,
        signed: bool,
        a: [Src; 2],
        b: [Src; 2],
        bool_: crate::ori::op::Bool,
        with: Src,
    ) -> Src {
        let low = self.compare(cmp, false, a[0], b[0]);
        self.pred(Op::Isetp { cmp, sign: sign_of(signed), bool_, ex: true }, &[a[1], b[1], with, low])
    }

    /// `clz`, and `popc`, `bfind`, `brev` of 64 bits.
    pub(super) fn count_bits(&mut self, instr: &Statement<'a>) -> Result<()> {
        let ty = self.integer_type(instr)?;
        if ty.bits() == 32 {
            let a = self.source(instr, 1, ty)?;
            let position = self.reg(Op::Flo { sign: Sign::U32, shift: false }, &[a]);
            let count = self.subtract(Src::imm(31), position);
            return self.result(instr, count);
        }
        let a = self.source_pair(instr, 1, ty)?;
        let result = match instr.form() {
            FormId::Popc => {
                let (low, high) = (self.reg(Op::Popc, &[a[0]]), self.reg(Op::Popc, &[a[1]]));
                self.add(low, high)
            }
            FormId::Brev => {
                let halves = [self.reg(Op::Brev, &[a[1]]), self.reg(Op::Brev, &[a[0]])];
                return self.result_pair(instr, halves);
            }
            FormId::Clz => {
                let position = self.leading_one(a, false);
                self.subtract(Src::imm(63), position)
            }
            _ => {
                let a = if ty.is_signed() {
                    let sign = self.shift_right(a[1], 31, true);
                    a.map(|half| self.reg(Op::Lop3 { lut: lut::A ^ lut::B }, &[half, sign, Src::ZERO]))
                } else {
                    a
                };
                self.leading_one(a, instr.has(Mod::Shiftamt))
            }
        };
        self.result(instr, result)
    }

    /// Position of the leading one of 64 bits, from the bottom or (`shift`) from the top; all ones if none.
    pub(super) fn leading_one(&mut self, a: [Src; 2], shift: bool) -> Src {
        let in_high = self.compare(ICmp::Ne, false, a[1], Src::ZERO);
        let word = self.select(in_high, a[1], a[0], 1);
        let position = self.reg(Op::Flo { sign: Sign::U32, shift }, &[word]);
        let further = self.add(position, Src::imm(32));
        if !shift {
            return self.select(in_high, further, position, 1);
        }
        let none = self.compare(ICmp::Eq, false, word, Src::ZERO);
        let low = self.select(none, position, further, 1);
        self.select(in_high, position, low, 1)
    }

    /// `bfe`.
    pub(super) fn extract_bits(&mut self, instr: &Statement<'a>) -> Result<()> {
        let ty = self.integer_type(instr)?;
        let signed = ty.is_signed();
        if ty.bits() == 64 {
            let a = self.source_pair(instr, 1, ty)?;
            let (from, count) = (self.byte(instr, 2)?, self.byte(instr, 3)?);
            let moved = self.shift_right_pair(a, from, signed);
            // The field is shifted to the top and back, which extends it with its sign or zeros.
            let count = self.minimum(false, true, count, Src::imm(64));
            let gap = self.subtract(Src::imm(64), count);
            let top = self.shift_left_pair(moved, gap);
            let result = self.shift_right_pair(top, gap, signed);
            return self.result_pair(instr, result);
        }
        let a = self.source(instr, 1, ty)?;
        let (from, count) = (self.byte(instr, 2)?, self.byte(instr, 3)?);
        let shift = if signed { ShfType::S32 } else { ShfType::U32 };
        let op = Op::Shf { right: true, wrap: false, hi: true, ty: shift };
        let moved = self.reg(op, &[Src::ZERO, from, a]);
        let result = self.reg(Op::Sgxt { sign: sign_of(signed), wrap: false }, &[moved, count]);
        self.result(instr, result)
    }

    /// The low byte of an operand.
    fn byte(&mut self, instr: &Statement<'a>, i: usize) -> Result<Src> {
        let src = self.source(instr, i, ScalarType::U32)?;
        Ok(self.extend(src, ScalarType::U8))
    }

    /// `bfi`.
    pub(super) fn insert_bits(&mut self, instr: &Statement<'a>) -> Result<()> {
        let ty = self.integer_type(instr)?;
        // The field where the mask `c` is set, otherwise `b`.
        let choose = Op::Lop3 { lut: (lut::A & lut::C) | (lut::B & !lut::C) };
        if ty.bits() == 64 {
            let (a, b) = (self.source_pair(instr, 1, ty)?, self.source_pair(instr, 2, ty)?);
            let (to, count) = (self.byte(instr, 3)?, self.byte(instr, 4)?);
            let one = self.shift_left_pair([Src::imm(1), Src::ZERO], count);
            let ones = self.add_pair(one, [Src::imm(!0), Src::imm(!0)]);
            let mask = self.shift_left_pair(ones, to);
            let field = self.shift_left_pair(a, to);
            let result = [0, 1].map(|i| self.reg(choose, &[field[i], b[i], mask[i]]));
            return self.result_pair(instr, result);
        }
        let (a, b) = (self.source(instr, 1, ty)?, self.source(instr, 2, ty)?);
        let (to, count) = (self.byte(instr, 3)?, self.byte(instr, 4)?);
        let mask = match (known(to), known(count)) {
            (Some(to), Some(count)) => {
                let ones = 1u32.checked_shl(count).unwrap_or(0).wrapping_sub(1);
                Src::imm(ones.checked_shl(to).unwrap_or(0))
            }
            _ => self.reg(Op::Bmsk { wrap: false }, &[to, count]),
        };
        let field = self.shift_left(a, to);
        let result = self.reg(choose, &[field, b, mask]);
        self.result(instr, result)
    }

    /// `add.cc`, `addc`, `sub.cc`, `subc`, `mad.cc`, `madc`. The carry is that of the hardware: a subtraction adds the
    /// complement and sets the carry if it does not borrow. Compilers let `addc` follow `subc`, so PTX has the same
    /// carry.
    pub(super) fn extended_precision(&mut self, instr: &Statement<'a>) -> Result<()> {
        let ty = self.integer_type(instr)?;
        let form = instr.form();
        if ty.bits() == 16 && (instr.has(Mod::Cc) || form == FormId::Madc && instr.has(Mod::Hi)) {
            // ptxas takes the upper half of a 32-bit product, which is the sign.
            return self.unsupported(instr, "the carry output or upper product half of a 16-bit integer");
        }
        let minus = matches!(form, FormId::SubCc | FormId::Subc);
        let takes = matches!(form, FormId::Addc | FormId::Subc | FormId::Madc);
        let (mut a, mut b) = self.extended_operands(instr, ty)?;
        if minus {
            // For a known subtrahend, the carry of adding one to the complement would be lost.
            b = b.map(|half| self.in_register(half));
        } else if a.iter().any(|half| known(*half).is_some()) {
            std::mem::swap(&mut a, &mut b);
        }
        let count = registers(ty) as usize;
        let mut carry = takes.then(|| self.read_variable(Variable::Carry));
        let mut sum = [Src::ZERO; 2];
        for i in 0..count {
            let addend = if minus { b[i].neg() } else { b[i] };
            let (word, out) = match carry {
                Some(c) => self.add_carry(a[i], addend, c),
                None => self.add_carry_out(a[i], addend),
            };
            (sum[i], carry) = (word, Some(out));
        }
        if instr.has(Mod::Cc)
            && let Some(c) = carry
        {
            let c = if self.guard.is_true() {
                c
            } else {
                let old = self.read_variable(Variable::Carry);
                self.pred(Op::Plop3 { lut: 0xca, lut2: 0 }, &[self.guard, c, old])
            };
            self.write_variable(Variable::Carry, c);
        }
        if instr.has(Mod::Sat) {
            let addend = if minus { self.lop3(!lut::A, b[0], Src::ZERO, Src::ZERO) } else { b[0] };
            sum[0] = self.clamped(a[0], addend, sum[0]);
        }
        let result = if count == 2 { self.pack(&sum) } else { sum[0] };
        self.result(instr, result)
    }

    /// A sum of signed terms, clamped: terms with the same sign have a sum of that sign.
    fn clamped(&mut self, a: Src, b: Src, sum: Src) -> Src {
        let differ = self.lop3((lut::A ^ lut::C) & (lut::B ^ lut::C), a, b, sum);
        let over = self.compare(crate::ori::op::ICmp::Lt, true, differ, Src::ZERO);
        let sign = Op::Shf { right: true, wrap: false, ty: ShfType::S32, hi: true };
        let sign = self.reg(sign, &[Src::ZERO, Src::imm(31), sum]);
        let limit = self.lop3(lut::A ^ lut::B, sign, Src::imm(1 << 31), Src::ZERO);
        self.select(over, limit, sum, 1)
    }

    /// The terms of the sum: the operands, or half of a product and the addend.
    fn extended_operands(&mut self, instr: &Statement<'a>, ty: ScalarType) -> Result<([Src; 2], [Src; 2])> {
        let wide = ty.bits() == 64;
        let operand = |this: &mut Self, i| {
            if wide { this.source_pair(instr, i, ty) } else { Ok([this.source(instr, i, ty)?, Src::ZERO]) }
        };
        let (a, b) = (operand(self, 1)?, operand(self, 2)?);
        if !matches!(instr.form(), FormId::MadCc | FormId::Madc) {
            return Ok((a, b));
        }
        let c = operand(self, 3)?;
        let product = match (wide, takes_high(instr)) {
            (true, true) => self.multiply_high_pair(ty.is_signed(), a, b),
            (true, false) => self.multiply_low_pair(a, b, [Src::ZERO; 2]),
            (false, true) => [self.multiply_high(ty.is_signed(), a[0], b[0]), Src::ZERO],
            (false, false) => [self.multiply_add(a[0], b[0], Src::ZERO), Src::ZERO],
        };
        Ok((product, c))
    }
}
