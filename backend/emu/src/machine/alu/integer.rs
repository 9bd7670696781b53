//! Integer arithmetic, logic, selection.

use super::{Compute, Lane, Results};
use crate::machine::Result;

const fn ones(bits: u32) -> u32 {
    if bits >= 32 { u32::MAX } else { (1 << bits) - 1 }
}

fn less(signed: bool, a: u32, b: u32) -> bool {
    if signed { (a as i32) < b as i32 } else { a < b }
}

/// Combines a comparison with a predicate: and, or, exclusive or.
pub(super) fn boolean(combine: u8, holds: bool, p: bool) -> bool {
    match combine {
        0 => holds & p,
        1 => holds | p,
        _ => holds ^ p,
    }
}

fn extend64(value: u32, signed: bool) -> i128 {
    if signed { (value as i32).into() } else { value.into() }
}

/// The value that a word adds to a sum. A negated word adds its complement and one; this carries out of 32 bits if the
/// word is zero. In extended arithmetic, the carry from the lower word replaces the one.
fn summand(negated: bool, extended: bool, bits: u32) -> u64 {
    match (negated, extended) {
        (false, _) => bits.into(),
        (true, true) => (!bits).into(),
        (true, false) => u64::from(!bits) + 1,
    }
}

impl Lane<'_, '_> {
    /// A summand: negated or, in extended arithmetic, complemented. It may have 33 bits.
    fn summand(&self, i: usize, x: bool) -> Result<u64> {
        Ok(summand(self.source(i).negated, x, self.bits(i)?))
    }

    /// The third source of a wide product: 64 bits, negated like a summand.
    fn wide_summand(&self, x: bool) -> Result<u128> {
        let c = self.pair(2, false)?;
        Ok(match (self.source(2).negated, x) {
            (false, _) => c.into(),
            (true, true) => (!c).into(),
            (true, false) => u128::from(!c) + 1,
        })
    }

    /// The one or two carries into a sum.
    fn carries_in(&self, x: bool) -> u64 {
        let second = x && self.step.inst.has(sass::Field::Pr) && self.p(1);
        self.carry_in(x) + u64::from(second)
    }

    fn carry_in(&self, x: bool) -> u64 {
        u64::from(x && self.p(0))
    }

    pub(super) fn integer(&self, compute: Compute) -> Result<Option<Results>> {
        Ok(Some(match compute {
            Compute::Mov => self.bits(1)?.into(),
            Compute::Mov64 => match self.step.inst.get(sass::Field::Imm32) {
                Some(bits) => bits.into(),
                None => self.pair(1, false)?.into(),
            },
            Compute::Sel64 if self.p(0) => self.pair(0, false)?.into(),
            Compute::Sel64 => match self.step.inst.get(sass::Field::Imm32) {
                // Sign-extended from 33 bits.
                Some(bits) => bits.into(),
                None => self.pair(1, false)?.into(),
            },
            Compute::Iadd64 { x } => {
                let mut sum = u128::from(self.carries_in(x));
                for i in 0..3 {
                    let term = self.pair(i, false)?;
                    sum += match (self.source(i).negated, x) {
                        (false, _) => term.into(),
                        (true, true) => (!term).into(),
                        (true, false) => u128::from(!term) + 1,
                    };
                }
                let carry = sum >> 64;
                Results { p: carry >= 1, q: carry >= 2, ..Results::from(sum as u64) }
            }
            Compute::Imnmx64 { signed } => {
                let (a, b) = (self.pair(0, false)?, self.pair(1, false)?);
                let less = if signed { (a as i64) < b as i64 } else { a < b };
                if less == self.p(0) { a } else { b }.into()
            }
            Compute::Isetp64 { cmp, signed, combine } => {
                let (a, b) = (self.pair(0, false)?, self.pair(1, false)?);
                let b = if self.source(1).negated { b.wrapping_neg() } else { b };
                let order = if signed { (a as i64).cmp(&(b as i64)) } else { a.cmp(&b) };
                let holds = match cmp {
                    0 => false,
                    1 => order.is_lt(),
                    2 => order.is_eq(),
                    3 => order.is_le(),
                    4 => order.is_gt(),
                    5 => order.is_ne(),
                    6 => order.is_ge(),
                    _ => true,
                };
                let p = self.p(0);
                Results {
                    p: boolean(combine, holds, p),
                    q: boolean(combine, !holds, p),
                    ..Results::default()
                }
            }
            Compute::Sel => if self.p(0) { self.bits(0)? } else { self.bits(1)? }.into(),
            Compute::Prmt { mode } => permute(mode, self.bits(0)?, self.bits(1)?, self.bits(2)?).into(),
            Compute::P2r { byte } => {
                let (keep, which) = (self.bits(0)?, self.bits(1)?);
                let mut values = 0;
                for p in 0..7 {
                    let p_ = super::super::operand::Predicate { index: p, negated: false };
                    let holds = self.block.holds(self.w, self.lane, self.step.uniform, p_);
                    values |= u32::from(holds) << p;
                }
                let shift = 8 * u32::from(byte);
                let which = which & 0x7f;
                (keep & !(which << shift) | (values & which) << shift).into()
            }
            Compute::I2ip { bits, signed } => {
                let (least, greatest) = match signed {
                    true => (-1i64 << (bits - 1), (1i64 << (bits - 1)) - 1),
                    false => (0, (1i64 << bits) - 1),
                };
                let mask = u64::MAX >> (64 - bits);
                let clamp = |x: u32| i64::from(x as i32).clamp(least, greatest) as u64 & mask;
                let kept = match self.source(2).swizzle {
                    1 => u64::from(self.bits(2)? >> 16),
                    _ => self.bits(2)?.into(),
                };
                let pair = clamp(self.bits(0)?) << bits | clamp(self.bits(1)?);
                ((if bits == 16 { 0 } else { kept << (2 * bits) } | pair) as u32).into()
            }
            Compute::Iadd3 { x } => {
                let carries = self.carries_in(x);
                let sum = self.summand(0, x)? + self.summand(1, x)? + self.summand(2, x)? + carries;
                let carry = sum >> 32;
                Results { low: sum as u32, high: None, p: carry >= 1, q: carry >= 2 }
            }
            Compute::Imad { x } => {
                let product = self.bits(0)?.wrapping_mul(self.bits(1)?);
                let sum = self.summand(2, x)? as u32;
                product.wrapping_add(sum).wrapping_add(self.carry_in(x) as u32).into()
            }
            Compute::ImadWide { signed, x } | Compute::ImadHi { signed, x } => {
                let product = extend64(self.bits(0)?, signed) * extend64(self.bits(1)?, signed);
                let product = u128::from(product as u64);
                let sum = product + self.wide_summand(x)? + u128::from(self.carry_in(x));
                let p = sum >> 64 != 0;
                if matches!(compute, Compute::ImadHi { .. }) {
                    Results { low: (sum >> 32) as u32, high: None, p, q: false }
                } else {
                    Results { p, ..Results::from(sum as u64) }
                }
            }
            Compute::Lea { shift, x } => {
                let shifted = self.bits(0)? << shift;
                let sum =
                    summand(self.source(0).negated, x, shifted) + self.summand(1, x)? + self.carry_in(x);
                Results { low: sum as u32, high: None, p: sum >> 32 != 0, q: false }
            }
            // The carry of a negation from the low word is unknown.
            Compute::LeaHi { .. } if self.source(0).negated => return Ok(None),
            Compute::LeaHi { shift, x, sign } => {
                let a = self.bits(0)?;
                let high = if sign { (a as i32 >> 31) as u32 } else { self.bits(2)? };
                let both = (u64::from(high) << 32 | u64::from(a)) << shift;
                let sum = (both >> 32) + self.summand(1, x)? + self.carry_in(x);
                Results { low: sum as u32, high: None, p: sum >> 32 != 0, q: false }
            }
            Compute::Lop3 { lut, and } => {
                let (a, b, c) = (self.bits(0)?, self.bits(1)?, self.bits(2)?);
                let mut result = 0;
                for i in (0..8).filter(|i| lut >> i & 1 == 1) {
                    let pick = |x: u32, bit: u32| if i >> bit & 1 == 1 { x } else { !x };
                    result |= pick(a, 2) & pick(b, 1) & pick(c, 0);
                }
                let p = self.p(0);
                let some = result != 0;
                Results { low: result, high: None, p: if and { some & p } else { some | p }, q: false }
            }
            Compute::Plop3 { lut, lut2, uniform_s } => {
                let s = if uniform_s {
                    self.block.holds(self.w, self.lane, true, self.step.predicates[2])
                } else {
                    self.p(2)
                };
                let index = u8::from(self.p(0)) << 2 | u8::from(self.p(1)) << 1 | u8::from(s);
                Results { p: lut >> index & 1 == 1, q: lut2 >> index & 1 == 1, ..Results::default() }
            }
            Compute::Plop3Sign { lut, lut2 } => {
                let sign = |i: usize| -> Result<u8> {
                    let bit = (self.bits(i)? >> 31) as u8;
                    Ok(bit ^ u8::from(self.source(i).negated))
                };
                let index = sign(0)? << 2 | sign(1)? << 1 | sign(2)?;
                Results { p: lut >> index & 1 == 1, q: lut2 >> index & 1 == 1, ..Results::default() }
            }
            Compute::Shf { right, wrap, high, ty } => {
                let both = u64::from(self.bits(2)?) << 32 | u64::from(self.bits(0)?);
                // 64-bit types limit the shift to 64, 32-bit types to 32.
                let limit = if ty < 2 { 64 } else { 32 };
                let count = self.bits(1)?;
                let count = if wrap { count & (limit - 1) } else { count.min(limit) };
                let signed = ty == 0 || ty == 2;
                let shifted = match (right, signed) {
                    (false, _) => (u128::from(both) << count) as u64,
                    (true, true) => (both as i64 >> count.min(63)) as u64,
                    (true, false) => (u128::from(both) >> count) as u64,
                };
                if high { (shifted >> 32) as u32 } else { shifted as u32 }.into()
            }
            Compute::Isetp { cmp, signed, combine, extended } => {
                let (a, b) = (self.bits(0)?, self.bits(1)?);
                let b = if self.source(1).negated { b.wrapping_neg() } else { b };
                let (lt, eq) = (less(signed, a, b), a == b);
                let low = !extended || self.p(1);
                let holds = match cmp {
                    0 => false,
                    1 | 3 if extended => lt || eq && low,
                    4 | 6 if extended => !lt && !eq || eq && low,
                    2 => eq && low,
                    5 if extended => !eq || low,
                    1 => lt,
                    3 => lt || eq,
                    4 => !lt && !eq,
                    5 => !eq,
                    6 => !lt,
                    _ => true,
                };
                let p = self.p(0);
                Results {
                    p: boolean(combine, holds, p),
                    q: boolean(combine, !holds, p),
                    ..Results::default()
                }
            }
            Compute::Imnmx { signed } => {
                let (a, b) = (self.bits(0)?, self.bits(1)?);
                if less(signed, a, b) == self.p(0) { a } else { b }.into()
            }
            Compute::Vimnmx { ty, relu } => {
                extremum(ty, relu, self.p(0), self.bits(0)?, self.bits(1)?).into()
            }
            Compute::Vimnmx3 { ty, relu } => {
                let two = extremum(ty, false, self.p(0), self.bits(0)?, self.bits(1)?);
                extremum(ty, relu, self.p(0), two, self.bits(2)?).into()
            }
            Compute::Viaddmnmx { ty, relu } => {
                let sum = add(ty >= 2, self.source(1).negated, self.bits(0)?, self.bits(1)?);
                extremum(ty, relu, self.p(0), sum, self.bits(2)?).into()
            }
            Compute::Viadd { bits, signed, limits } => {
                let (a, b) = (self.bits(0)?, self.bits(1)?);
                let mut result = 0;
                for shift in (0..32).step_by(bits as usize) {
                    let term = |i: usize, word: u32| {
                        let field = i64::from(word >> shift & ones(bits));
                        let unused = 64 - bits;
                        let value = if signed { field << unused >> unused } else { field };
                        if self.source(i).negated { -value } else { value }
                    };
                    let sum = term(0, a) + term(1, b);
                    let sum = match (limits, signed) {
                        (false, _) => sum,
                        (true, true) => sum.clamp(-1 << (bits - 1), (1 << (bits - 1)) - 1),
                        (true, false) => sum.clamp(0, ones(bits).into()),
                    };
                    result |= (sum as u32 & ones(bits)) << shift;
                }
                result.into()
            }
            Compute::Iabs => (self.bits(1)? as i32).unsigned_abs().into(),
            Compute::Popc => {
                let a = self.bits(1)?;
                if self.source(1).negated { !a } else { a }.count_ones().into()
            }
            Compute::Brev => self.bits(1)?.reverse_bits().into(),
            Compute::Flo { signed, shift } => {
                let a = self.bits(1)?;
                let a = if self.source(1).negated { !a } else { a };
                let a = if signed && (a as i32) < 0 { !a } else { a };
                match (a, shift) {
                    (0, _) => u32::MAX,
                    (_, true) => a.leading_zeros(),
                    (_, false) => 31 - a.leading_zeros(),
                }
                .into()
            }
            Compute::Sgxt { signed, wrap } => {
                let (a, b) = (self.bits(0)?, self.bits(1)?);
                let b = if wrap { b & 31 } else { b.min(32) };
                match (b, signed) {
                    (0, _) => 0,
                    (_, true) => ((a << (32 - b)) as i32 >> (32 - b)) as u32,
                    (_, false) => a & ones(b),
                }
                .into()
            }
            Compute::Bmsk { wrap } => {
                let (a, b) = (self.bits(0)?, self.bits(1)?);
                let (a, b) = if wrap { (a & 31, b & 31) } else { (a.min(32), b.min(32)) };
                ((u64::from(ones(b)) << a) as u32).into()
            }
            Compute::Idp { mode, a_signed, b_signed } => {
                let (a, b, c) = (self.bits(0)?, self.bits(1)?, self.bits(2)?);
                let c = if self.source(2).negated { c.wrapping_neg() } else { c };
                let part = |x: u32, at: u32, bits: u32, signed: bool| {
                    let x = i64::from(x >> at & ones(bits));
                    if signed { x << (64 - bits) >> (64 - bits) } else { x }
                };
                let sum: i64 = match mode {
                    0 => (0..4).map(|i| part(a, 8 * i, 8, a_signed) * part(b, 8 * i, 8, b_signed)).sum(),
                    _ => {
                        let from = if mode == 3 { 16 } else { 0 };
                        (0..2)
                            .map(|i| part(a, 16 * i, 16, a_signed) * part(b, from + 8 * i, 8, b_signed))
                            .sum()
                    }
                };
                c.wrapping_add(sum as u32).into()
            }
            Compute::Vabsdiff { signed } => {
                let (a, b, c) = (self.bits(0)?, self.bits(1)?, self.bits(2)?);
                let difference = if less(signed, a, b) { b.wrapping_sub(a) } else { a.wrapping_sub(b) };
                c.wrapping_add(difference).into()
            }
            Compute::Vabsdiff4 { signed, adds } => {
                let (a, b, c) = (self.bits(0)?, self.bits(1)?, self.bits(2)?);
                let differences = [0, 8, 16, 24].map(|shift| {
                    let byte = |x: u32| {
                        let byte = (x >> shift) as u8;
                        if signed { i32::from(byte as i8) } else { i32::from(byte) }
                    };
                    byte(a).abs_diff(byte(b)) << if adds { 0 } else { shift }
                });
                // Without the sum, the third source is not used.
                let start = if adds { c } else { 0 };
                differences.iter().fold(start, |sum, difference| sum.wrapping_add(*difference)).into()
            }
            Compute::I2i { ty } => {
                let a = self.bits(1)? as i32;
                (match ty {
                    0 => a.clamp(0, 0xff),
                    1 => a.clamp(-0x80, 0x7f),
                    2 => a.clamp(0, 0xffff),
                    _ => a.clamp(-0x8000, 0x7fff),
                } as u32)
                    .into()
            }
            _ => return Ok(None),
        }))
    }
}

/// The smaller or the larger of two numbers of a video instruction's type: one, two or four numbers in a word.
fn extremum(ty: u8, relu: bool, smallest: bool, a: u32, b: u32) -> u32 {
    let (bits, signed) = (32 >> (ty >> 1), ty & 1 == 1);
    let mut result = 0;
    for shift in (0..32).step_by(bits as usize) {
        let unused = 64 - bits;
        let cut = |x: u32| {
            let field = i64::from(x >> shift) << unused;
            if signed { field >> unused } else { (field as u64 >> unused) as i64 }
        };
        let value = if (cut(a) < cut(b)) == smallest { cut(a) } else { cut(b) };
        let value = if relu && signed { value.max(0) } else { value };
        result |= (value as u32 & ones(bits)) << shift;
    }
    result
}

/// The sum or the difference of the one or two numbers in a word.
fn add(packed: bool, negated: bool, a: u32, b: u32) -> u32 {
    let add = |a: u32, b: u32| if negated { a.wrapping_sub(b) } else { a.wrapping_add(b) };
    if !packed {
        return add(a, b);
    }
    add(a & 0xffff, b & 0xffff) & 0xffff | add(a >> 16, b >> 16) << 16
}

fn permute(mode: u8, a: u32, selector: u32, c: u32) -> u32 {
    let bytes = u64::from(c) << 32 | u64::from(a);
    let byte = |i: u32| (bytes >> (8 * (i & 7)) & 255) as u32;
    let s = selector & 3;
    let picks = match mode {
        0 => {
            return (0..4).fold(0, |result, i| {
                let nibble = selector >> (4 * i) & 15;
                let value = byte(nibble);
                let value = if nibble & 8 == 0 {
                    value
                } else if value & 128 != 0 {
                    255
                } else {
                    0
                };
                result | value << (8 * i)
            });
        }
        1 => [s, s + 1, s + 2, s + 3],
        2 => [s, s + 7, s + 6, s + 5],
        3 => [s; 4],
        4 => [s, s.max(1), s.max(2), 3],
        5 => [0, s.min(1), s.min(2), s],
        _ => [2 * (s & 1), 2 * (s & 1) + 1, 2 * (s & 1), 2 * (s & 1) + 1],
    };
    picks.iter().enumerate().fold(0, |result, (i, &pick)| result | byte(pick) << (8 * i))
}
