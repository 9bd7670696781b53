//! IEEE 754 arithmetic on bits, in any binary format of at most 64 bits and with any rounding.
//!
//! Numbers are exact integers times powers of two; [`Format::round`] rounds them once at the end.

use crate::ori::op::{IntRound, Round};

/// A binary interchange format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Format {
    /// The number of bits of the significand, without the hidden bit.
    pub fraction: u32,
    pub exponent: u32,
}

pub const F16: Format = Format { fraction: 10, exponent: 5 };
pub const BF16: Format = Format { fraction: 7, exponent: 8 };
pub const F32: Format = Format { fraction: 23, exponent: 8 };
pub const F64: Format = Format { fraction: 52, exponent: 11 };

/// A decoded number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Number {
    Nan,
    Infinity {
        negative: bool,
    },
    /// `magnitude * 2^exponent`; zero has magnitude 0.
    Finite {
        negative: bool,
        magnitude: u128,
        exponent: i32,
    },
}

use Number::{Finite, Infinity, Nan};

impl Format {
    const fn bias(self) -> i32 {
        (1 << (self.exponent - 1)) - 1
    }

    pub const fn infinity(self) -> u64 {
        ((1 << self.exponent) - 1) << self.fraction
    }

    pub const fn sign(self) -> u64 {
        1 << (self.exponent + self.fraction)
    }

    /// The NaN that the hardware generates: all bits set except the sign.
    pub const fn nan(self) -> u64 {
        self.sign() - 1
    }

    pub fn is_nan(self, bits: u64) -> bool {
        bits & (self.sign() - 1) > self.infinity()
    }

    pub fn is_denormal(self, bits: u64) -> bool {
        let magnitude = bits & (self.sign() - 1);
        magnitude != 0 && magnitude >> self.fraction == 0
    }

    /// Replaces denormals by zeros of the same sign.
    pub fn flush(self, bits: u64) -> u64 {
        if self.is_denormal(bits) { bits & self.sign() } else { bits }
    }

    pub fn unpack(self, bits: u64) -> Number {
        let negative = bits & self.sign() != 0;
        let magnitude = bits & (self.sign() - 1);
        if magnitude > self.infinity() {
            return Nan;
        }
        if magnitude == self.infinity() {
            return Infinity { negative };
        }
        let fraction = magnitude & ((1 << self.fraction) - 1);
        let least = 1 - self.bias() - self.fraction as i32;
        match magnitude >> self.fraction {
            0 => Finite { negative, magnitude: fraction.into(), exponent: least },
            e => Finite {
                negative,
                magnitude: (fraction | 1 << self.fraction).into(),
                exponent: least + e as i32 - 1,
            },
        }
    }

    /// Rounds a number to the format.
    pub fn round(self, number: Number, mode: Round) -> u64 {
        let (negative, magnitude, exponent) = match number {
            Nan => return self.nan(),
            Infinity { negative } => return self.infinity() | self.signed(negative),
            Finite { negative, magnitude, exponent } => (negative, magnitude, exponent),
        };
        let sign = self.signed(negative);
        if magnitude == 0 {
            return sign;
        }
        let top = 127 - magnitude.leading_zeros() as i32;
        let least = 1 - self.bias() - self.fraction as i32;
        // The exponent of the last place of the result.
        let last = (exponent + top - self.fraction as i32).max(least);
        let (kept, rest) = shift_right(magnitude, last - exponent);
        let up = match mode {
            Round::Rn => rest > HALF || (rest == HALF && kept & 1 == 1),
            Round::Rz => false,
            Round::Rm => negative && rest != 0,
            Round::Rp => !negative && rest != 0,
        };
        let kept = kept as u64 + u64::from(up);
        // The hidden bit and carries are added to the exponent, as the format is designed.
        let bits = kept + ((last - least) as u64) * (1 << self.fraction);
        if bits < self.infinity() {
            return bits | sign;
        }
        let to_infinity = match mode {
            Round::Rn => true,
            Round::Rz => false,
            Round::Rm => negative,
            Round::Rp => !negative,
        };
        sign | if to_infinity { self.infinity() } else { self.infinity() - 1 }
    }

    const fn signed(self, negative: bool) -> u64 {
        if negative { self.sign() } else { 0 }
    }

    pub fn add(self, a: u64, b: u64, mode: Round) -> u64 {
        self.round(add(self.unpack(a), self.unpack(b), mode), mode)
    }

    pub fn mul(self, a: u64, b: u64, mode: Round) -> u64 {
        self.round(multiply(self.unpack(a), self.unpack(b)), mode)
    }

    pub fn fma(self, a: u64, b: u64, c: u64, mode: Round) -> u64 {
        self.round(add(multiply(self.unpack(a), self.unpack(b)), self.unpack(c), mode), mode)
    }
}

/// An integer as a number.
pub fn integer(value: i128) -> Number {
    Finite { negative: value < 0, magnitude: value.unsigned_abs(), exponent: 0 }
}

/// Rounds a number to an integer; `None` for a NaN. Infinities become very large integers.
pub fn to_integer(number: Number, mode: IntRound) -> Option<i128> {
    let (negative, magnitude, exponent) = match number {
        Nan => return None,
        Infinity { negative } => return Some(if negative { i128::MIN } else { i128::MAX }),
        Finite { negative, magnitude, exponent } => (negative, magnitude, exponent),
    };
    if exponent >= 64 && magnitude != 0 {
        return Some(if negative { i128::MIN } else { i128::MAX });
    }
    let (kept, rest) = shift_right(magnitude, -exponent);
    let up = match mode {
        IntRound::Near => rest > HALF || (rest == HALF && kept & 1 == 1),
        IntRound::Trunc => false,
        IntRound::Floor => negative && rest != 0,
        IntRound::Ceil => !negative && rest != 0,
    };
    let magnitude = kept as i128 + i128::from(up);
    Some(if negative { -magnitude } else { magnitude })
}

/// Half a unit of the result of [`shift_right`], in its description of the remainder.
const HALF: u8 = 2;

/// `magnitude * 2^-by` as an integer, and its remainder: 0 none, 1 less than half, 2 half, 3 more.
fn shift_right(magnitude: u128, by: i32) -> (u128, u8) {
    match by {
        ..=0 => (magnitude << -by, 0),
        1..=127 => {
            let rest = magnitude & ((1 << by) - 1);
            let half = 1 << (by - 1);
            let kind = match rest.cmp(&half) {
                _ if rest == 0 => 0,
                std::cmp::Ordering::Less => 1,
                std::cmp::Ordering::Equal => 2,
                std::cmp::Ordering::Greater => 3,
            };
            (magnitude >> by, kind)
        }
        _ => (0, u8::from(magnitude != 0)),
    }
}

fn multiply(a: Number, b: Number) -> Number {
    match (a, b) {
        (Nan, _) | (_, Nan) => Nan,
        (Infinity { negative: x }, Infinity { negative: y }) => Infinity { negative: x != y },
        (Infinity { negative: x }, Finite { negative: y, magnitude, .. })
        | (Finite { negative: y, magnitude, .. }, Infinity { negative: x }) => {
            if magnitude == 0 {
                Nan
            } else {
                Infinity { negative: x != y }
            }
        }
        (
            Finite { negative: x, magnitude: m, exponent: e },
            Finite { negative: y, magnitude: n, exponent: f },
        ) => Finite { negative: x != y, magnitude: m * n, exponent: e + f },
    }
}

/// The sum, exact except for a last bit that represents all bits below it.
fn add(a: Number, b: Number, mode: Round) -> Number {
    let ((x, m, e), (y, n, f)) = match (a, b) {
        (Nan, _) | (_, Nan) => return Nan,
        (Infinity { negative: x }, Infinity { negative: y }) => {
            return if x == y { a } else { Nan };
        }
        (Infinity { .. }, _) => return a,
        (_, Infinity { .. }) => return b,
        (
            Finite { negative: x, magnitude: m, exponent: e },
            Finite { negative: y, magnitude: n, exponent: f },
        ) => ((x, m, e), (y, n, f)),
    };
    if m == 0 && n == 0 {
        let negative = if x == y { x } else { mode == Round::Rm };
        return Finite { negative, magnitude: 0, exponent: 0 };
    }
    if m == 0 {
        return b;
    }
    if n == 0 {
        return a;
    }
    // Shift both to a top bit of 124, then the smaller one down to the exponent of the larger.
    let normal = |m: u128, e: i32| {
        let up = m.leading_zeros() as i32 - 3;
        (m << up, e - up)
    };
    let ((m, e), (n, f)) = (normal(m, e), normal(n, f));
    let ((x, m, e), (y, n, f)) = if e >= f { ((x, m, e), (y, n, f)) } else { ((y, n, f), (x, m, e)) };
    let (aligned, rest) = shift_right(n, e - f);
    let aligned = aligned | u128::from(rest != 0);
    if x == y {
        return Finite { negative: x, magnitude: m + aligned, exponent: e };
    }
    let (negative, magnitude) = match m.cmp(&aligned) {
        std::cmp::Ordering::Equal => (mode == Round::Rm, 0),
        std::cmp::Ordering::Greater => (x, m - aligned),
        std::cmp::Ordering::Less => (y, aligned - m),
    };
    Finite { negative, magnitude, exponent: e }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn same(a: u64, b: f64) -> bool {
        if b.is_nan() { F64.is_nan(a) } else { a == b.to_bits() }
    }

    proptest! {
        #[test]
        fn nearest_agrees_with_the_host(a: u64, b: u64, c: u64) {
            let [x, y, z] = [a, b, c].map(f64::from_bits);
            prop_assert!(same(F64.add(a, b, Round::Rn), x + y));
            prop_assert!(same(F64.mul(a, b, Round::Rn), x * y));
            prop_assert!(same(F64.fma(a, b, c, Round::Rn), x.mul_add(y, z)));
            let near = f64::from_bits(a.wrapping_add(b & 0xff)) ;
            prop_assert!(same(F64.fma(a, 1f64.to_bits(), (-near).to_bits(), Round::Rn), x - near));
        }

        #[test]
        fn narrow_formats_agree_with_the_host(a: u32, b: u32, c: u32) {
            let [x, y, z] = [a, b, c].map(f32::from_bits);
            let expected = x.mul_add(y, z);
            let got = F32.fma(a.into(), b.into(), c.into(), Round::Rn) as u32;
            let agrees = if expected.is_nan() { F32.is_nan(got.into()) } else { got == expected.to_bits() };
            prop_assert!(agrees);
            let wide = f64::from(x) * 1e-30;
            let got = F32.round(F64.unpack(wide.to_bits()), Round::Rn) as u32;
            prop_assert!(wide.is_nan() || got == (wide as f32).to_bits());
        }

        #[test]
        fn directed_roundings_bracket_the_nearest(a: u32, b: u32) {
            let [down, up] = [Round::Rm, Round::Rp].map(|m| f32::from_bits(F32.mul(a.into(), b.into(), m) as u32));
            let exact = f64::from(f32::from_bits(a)) * f64::from(f32::from_bits(b));
            if !exact.is_nan() {
                prop_assert!(f64::from(down) <= exact && exact <= f64::from(up));
                prop_assert!(down == up || down.to_bits().abs_diff(up.to_bits()) == 1 || down == 0.0 || up == 0.0);
            }
        }
    }
}
