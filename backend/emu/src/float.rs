//! IEEE 754 arithmetic in binary formats of at most 64 bits, in every rounding mode.
//!
//! A number is split into an integer and a power of two. Operations combine these exactly, except for a sticky last
//! bit, and round once. The usual case, round to nearest of `f32` and `f64`, uses the processor.

/// A binary interchange format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Format {
    /// The number of stored significand bits.
    pub fraction: u32,
    /// The number of exponent bits.
    pub exponent: u32,
}

pub const F16: Format = Format { fraction: 10, exponent: 5 };
pub const BF16: Format = Format { fraction: 7, exponent: 8 };
pub const TF32: Format = Format { fraction: 10, exponent: 8 };
pub const F32: Format = Format { fraction: 23, exponent: 8 };
pub const F64: Format = Format { fraction: 52, exponent: 11 };

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rounding {
    Nearest,
    /// To nearest, with ties away from zero.
    NearestAway,
    Zero,
    Down,
    Up,
}

impl Rounding {
    /// Whether rounding increases the last kept digit of the magnitude. The dropped digits begin with `half`, and
    /// `rest` says whether any digit after it is not zero.
    fn is_away(self, negative: bool, odd: bool, half: bool, rest: bool) -> bool {
        match self {
            Rounding::Nearest => half && (rest || odd),
            Rounding::NearestAway => half,
            Rounding::Zero => false,
            Rounding::Down => negative && (half || rest),
            Rounding::Up => !negative && (half || rest),
        }
    }
}

/// A number split into its parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Number {
    Nan,
    Infinity {
        negative: bool,
    },
    /// `magnitude * 2^exponent`.
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

    /// The exponent of the last bit of the smallest numbers.
    const fn least(self) -> i32 {
        1 - self.bias() - self.fraction as i32
    }

    pub const fn infinity(self) -> u64 {
        ((1 << self.exponent) - 1) << self.fraction
    }

    pub const fn sign(self) -> u64 {
        1 << (self.exponent + self.fraction)
    }

    /// The NaN that arithmetic operations return.
    pub const fn nan(self) -> u64 {
        self.sign() - 1
    }

    /// The largest finite number.
    pub const fn greatest(self) -> u64 {
        self.infinity() - 1
    }

    pub const fn is_nan(self, bits: u64) -> bool {
        bits & (self.sign() - 1) > self.infinity()
    }

    pub const fn is_subnormal(self, bits: u64) -> bool {
        let magnitude = bits & (self.sign() - 1);
        magnitude != 0 && magnitude >> self.fraction == 0
    }

    pub const fn is_negative(self, bits: u64) -> bool {
        bits & self.sign() != 0
    }

    /// Replaces subnormal numbers with zeros of the same sign.
    pub const fn flush(self, bits: u64) -> u64 {
        if self.is_subnormal(bits) { bits & self.sign() } else { bits }
    }

    pub const fn one(self) -> u64 {
        (self.bias() as u64) << self.fraction
    }

    pub fn unpack(self, bits: u64) -> Number {
        let negative = self.is_negative(bits);
        let biased = (bits & (self.sign() - 1)) >> self.fraction;
        let fraction = u128::from(bits & ((1 << self.fraction) - 1));
        if biased == (1 << self.exponent) - 1 {
            return if fraction != 0 { Nan } else { Infinity { negative } };
        }
        let hidden = u128::from(biased != 0) << self.fraction;
        let exponent = self.least() + (biased as i32 - 1).max(0);
        Finite { negative, magnitude: fraction | hidden, exponent }
    }

    /// The number rounded once to this format.
    pub fn round(self, number: Number, mode: Rounding) -> u64 {
        let (negative, magnitude, exponent) = match number {
            Nan => return self.nan(),
            Infinity { negative } => return self.infinity() | self.signed(negative),
            Finite { negative, magnitude, exponent } => (negative, magnitude, exponent),
        };
        let sign = self.signed(negative);
        if magnitude == 0 {
            return sign;
        }
        let width = 128 - magnitude.leading_zeros() as i32;
        // Keeps one bit more than the format has, so that ties can be recognized.
        let last = (exponent + width - 1 - self.fraction as i32).max(self.least());
        let drop = last - exponent;
        let (kept, half, rest) = if drop <= 0 {
            (magnitude << -drop, false, false)
        } else if drop > 128 {
            (0, false, true)
        } else {
            let kept = if drop == 128 { 0 } else { magnitude >> drop };
            let half = magnitude >> (drop - 1) & 1 == 1;
            (kept, half, magnitude & ((1 << (drop - 1)) - 1) != 0)
        };
        let up = mode.is_away(negative, kept & 1 == 1, half, rest);
        let kept = kept as u64 + u64::from(up);
        // Adding the significand with its hidden bit to the exponent minus one lets a carry reach the exponent.
        let exponent = (last - self.least()) as u64;
        if exponent >= 1 << self.exponent || kept + (exponent << self.fraction) >= self.infinity() {
            let finite = match mode {
                Rounding::Nearest | Rounding::NearestAway => false,
                Rounding::Zero => true,
                Rounding::Down => !negative,
                Rounding::Up => negative,
            };
            return sign | if finite { self.greatest() } else { self.infinity() };
        }
        sign | (kept + (exponent << self.fraction))
    }

    const fn signed(self, negative: bool) -> u64 {
        if negative { self.sign() } else { 0 }
    }

    pub fn add(self, a: u64, b: u64, mode: Rounding) -> u64 {
        if mode == Rounding::Nearest {
            if self == F32 {
                return canonical32(f32::from_bits(a as u32) + f32::from_bits(b as u32));
            }
            if self == F64 {
                return canonical64(f64::from_bits(a) + f64::from_bits(b));
            }
        }
        self.round(add(self.unpack(a), self.unpack(b), mode), mode)
    }

    pub fn mul(self, a: u64, b: u64, mode: Rounding) -> u64 {
        if mode == Rounding::Nearest {
            if self == F32 {
                return canonical32(f32::from_bits(a as u32) * f32::from_bits(b as u32));
            }
            if self == F64 {
                return canonical64(f64::from_bits(a) * f64::from_bits(b));
            }
        }
        self.round(mul(self.unpack(a), self.unpack(b)), mode)
    }

    pub fn fma(self, a: u64, b: u64, c: u64, mode: Rounding) -> u64 {
        if mode == Rounding::Nearest {
            if self == F32 {
                let [a, b, c] = [a, b, c].map(|bits| f32::from_bits(bits as u32));
                return canonical32(a.mul_add(b, c));
            }
            if self == F64 {
                let [a, b, c] = [a, b, c].map(f64::from_bits);
                return canonical64(a.mul_add(b, c));
            }
        }
        let product = mul(self.unpack(a), self.unpack(b));
        self.round(add(product, self.unpack(c), mode), mode)
    }

    pub fn div(self, a: u64, b: u64, mode: Rounding) -> u64 {
        let negative = self.is_negative(a) != self.is_negative(b);
        let quotient = match (self.unpack(a), self.unpack(b)) {
            (Nan, _) | (_, Nan) | (Infinity { .. }, Infinity { .. }) => Nan,
            (Infinity { .. }, _) => Infinity { negative },
            (_, Infinity { .. }) => Finite { negative, magnitude: 0, exponent: 0 },
            (Finite { magnitude: 0, .. }, Finite { magnitude: 0, .. }) => Nan,
            (_, Finite { magnitude: 0, .. }) => Infinity { negative },
            (
                Finite { magnitude: m, exponent: e, .. },
                Finite { magnitude: divisor, exponent: divided, .. },
            ) => {
                let shift = m.leading_zeros() as i32 - 1;
                let m = m << shift;
                let sticky = u128::from(!m.is_multiple_of(divisor));
                // The quotient has at least 73 bits, so the sticky bit is below the last bit of every format.
                Finite { negative, magnitude: (m / divisor) << 1 | sticky, exponent: e - shift - divided - 1 }
            }
        };
        self.round(quotient, mode)
    }

    pub fn sqrt(self, a: u64, mode: Rounding) -> u64 {
        let root = match self.unpack(a) {
            Finite { negative, magnitude: 0, .. } => Finite { negative, magnitude: 0, exponent: 0 },
            Nan | Infinity { negative: true } | Finite { negative: true, .. } => Nan,
            infinity @ Infinity { .. } => infinity,
            Finite { magnitude, exponent, .. } => {
                let mut shift = magnitude.leading_zeros() as i32 - 1;
                shift -= (exponent - shift) & 1;
                let m = magnitude << shift;
                let root = m.isqrt();
                let sticky = u128::from(root * root != m);
                Finite {
                    negative: false,
                    magnitude: root << 1 | sticky,
                    exponent: (exponent - shift) / 2 - 1,
                }
            }
        };
        self.round(root, mode)
    }

    /// Compares two numbers. `None` if one is NaN. Zeros are equal.
    pub fn compare(self, a: u64, b: u64) -> Option<std::cmp::Ordering> {
        if self.is_nan(a) || self.is_nan(b) {
            return None;
        }
        let key = |bits: u64| {
            let magnitude = (bits & (self.sign() - 1)) as i64;
            if self.is_negative(bits) { -magnitude } else { magnitude }
        };
        Some(key(a).cmp(&key(b)))
    }

    /// The smaller or the larger of two numbers. If one is NaN, the result is the other, unless `nan` is set. Minus
    /// zero is less than plus zero.
    pub fn extremum(self, a: u64, b: u64, greatest: bool, nan: bool) -> u64 {
        match (self.is_nan(a), self.is_nan(b)) {
            (true, true) => return self.nan(),
            (true, false) | (false, true) if nan => return self.nan(),
            (true, false) => return b,
            (false, true) => return a,
            _ => {}
        }
        let key = |bits: u64| {
            let magnitude = (bits & (self.sign() - 1)) as i64;
            if self.is_negative(bits) { -magnitude - 1 } else { magnitude }
        };
        if (key(a) > key(b)) == greatest { a } else { b }
    }

    /// Clamps a number to the range from zero to one. NaN becomes plus zero.
    pub fn saturate(self, a: u64) -> u64 {
        if self.is_nan(a) || self.is_negative(a) {
            return 0;
        }
        a.min(self.one())
    }

    /// Converts a number to another format.
    pub fn convert(self, bits: u64, to: Format, mode: Rounding) -> u64 {
        to.round(self.unpack(bits), mode)
    }

    /// Converts as the conversion instructions do. To or from doubles, NaN keeps its sign and the upper bits of its
    /// fraction, as hardware showed; PTX does not define them.
    pub fn resize(self, bits: u64, to: Format, mode: Rounding) -> u64 {
        if !self.is_nan(bits) || (self == F64) == (to == F64) {
            return self.convert(bits, to, mode);
        }
        let fraction = bits & ((1 << self.fraction) - 1);
        let fraction = fraction << (64 - self.fraction) >> (64 - to.fraction);
        let quiet = 1 << (to.fraction - 1);
        to.signed(self.is_negative(bits)) | to.infinity() | quiet | fraction
    }

    /// Converts to a narrower format. The magnitude is rounded up with the probability of the dropped part: the first
    /// dropped bits and the random bits are added, and a carry increases the last kept bit. There are as many random
    /// bits as the format has more bits of fraction. PTX does not define what the random bits mean; this is our reading.
    pub fn convert_randomly(self, bits: u64, to: Format, random: u64) -> u64 {
        let count = (self.fraction - to.fraction) as i32;
        let Finite { negative, magnitude, exponent } = self.unpack(bits) else {
            return self.convert(bits, to, Rounding::Zero);
        };
        let width = 128 - magnitude.leading_zeros() as i32;
        let last = (exponent + width - 1 - to.fraction as i32).max(to.least());
        let drop = last - exponent;
        if magnitude == 0 || drop <= 0 {
            return self.convert(bits, to, Rounding::Zero);
        }
        let random = u128::from(random & ((1 << count) - 1));
        let random = if drop < count { random >> (count - drop) } else { random << (drop - count) };
        let magnitude = (magnitude + random) >> drop;
        to.round(Finite { negative, magnitude, exponent: last }, Rounding::Nearest)
    }

    pub fn to_f64(self, bits: u64) -> f64 {
        f64::from_bits(self.convert(bits, F64, Rounding::Nearest))
    }

    pub fn from_f64(self, value: f64) -> u64 {
        F64.convert(value.to_bits(), self, Rounding::Nearest)
    }

    /// Rounds a number to an integer in the same format.
    pub fn integral(self, bits: u64, mode: Rounding) -> u64 {
        match (self.unpack(bits), integer(self.unpack(bits), mode)) {
            (Nan, _) => self.nan(),
            (Finite { negative, .. }, Some(value)) => {
                let whole = Finite { negative, magnitude: value.unsigned_abs(), exponent: 0 };
                self.round(whole, Rounding::Zero)
            }
            // Infinite, or so large that it is an integer.
            _ => bits,
        }
    }
}

fn canonical32(value: f32) -> u64 {
    if value.is_nan() { F32.nan() } else { value.to_bits().into() }
}

fn canonical64(value: f64) -> u64 {
    if value.is_nan() { F64.nan() } else { value.to_bits() }
}

/// An integer as a number.
pub fn from_integer(value: i128) -> Number {
    Finite { negative: value < 0, magnitude: value.unsigned_abs(), exponent: 0 }
}

/// Rounds a number to an integer. `None` for NaN, infinities and integers that do not fit into 128 bits.
pub fn integer(number: Number, mode: Rounding) -> Option<i128> {
    let Finite { negative, magnitude, exponent } = number else { return None };
    if magnitude == 0 {
        return Some(0);
    }
    let value = if exponent >= 0 {
        if exponent as u32 >= magnitude.leading_zeros().saturating_sub(1) {
            return None;
        }
        magnitude << exponent
    } else {
        let drop = exponent.unsigned_abs();
        let (kept, half, rest) = if drop > 127 {
            (0, false, true)
        } else {
            (magnitude >> drop, magnitude >> (drop - 1) & 1 == 1, magnitude & ((1 << (drop - 1)) - 1) != 0)
        };
        let up = mode.is_away(negative, kept & 1 == 1, half, rest);
        kept + u128::from(up)
    };
    let value = i128::try_from(value).ok()?;
    Some(if negative { -value } else { value })
}

/// The exact product. Both magnitudes have at most 64 bits.
pub fn mul(a: Number, b: Number) -> Number {
    match (a, b) {
        (Nan, _) | (_, Nan) => Nan,
        (Infinity { .. }, Finite { magnitude: 0, .. }) | (Finite { magnitude: 0, .. }, Infinity { .. }) => {
            Nan
        }
        (Infinity { negative: a }, Infinity { negative: b } | Finite { negative: b, .. })
        | (Finite { negative: a, .. }, Infinity { negative: b }) => Infinity { negative: a != b },
        (
            Finite { negative: a, magnitude: m, exponent: e },
            Finite { negative: b, magnitude: n, exponent: f },
        ) => Finite { negative: a != b, magnitude: m * n, exponent: e + f },
    }
}

/// The sum, exact except for a sticky last bit far below the last bit of any format. The rounding mode determines the
/// sign of an exact zero.
pub fn add(a: Number, b: Number, mode: Rounding) -> Number {
    let (
        Finite { negative: sa, magnitude: ma, exponent: ea },
        Finite { negative: sb, magnitude: mb, exponent: eb },
    ) = (a, b)
    else {
        return match (a, b) {
            (Nan, _) | (_, Nan) => Nan,
            (Infinity { negative: a }, Infinity { negative: b }) if a != b => Nan,
            (infinity @ Infinity { .. }, _) | (_, infinity) => infinity,
        };
    };
    if ma == 0 && mb == 0 {
        let negative = if sa == sb { sa } else { mode == Rounding::Down };
        return Finite { negative, magnitude: 0, exponent: 0 };
    }
    if ma == 0 {
        return b;
    }
    if mb == 0 {
        return a;
    }
    // The number with the higher leading bit is shifted to the top, with one bit left for a carry.
    let top = |m: u128, e: i32| e + 128 - m.leading_zeros() as i32;
    let ((sa, ma, ea), (sb, mb, eb)) =
        if top(ma, ea) >= top(mb, eb) { ((sa, ma, ea), (sb, mb, eb)) } else { ((sb, mb, eb), (sa, ma, ea)) };
    let shift = ma.leading_zeros() as i32 - 1;
    let (ma, exponent) = (ma << shift, ea - shift);
    let move_ = eb - exponent;
    let mb = if move_ >= 0 {
        mb << move_
    } else if move_ <= -128 {
        1
    } else {
        mb >> -move_ | u128::from(mb & ((1 << -move_) - 1) != 0)
    };
    if sa == sb {
        return Finite { negative: sa, magnitude: ma + mb, exponent };
    }
    match ma.cmp(&mb) {
        std::cmp::Ordering::Equal => Finite { negative: mode == Rounding::Down, magnitude: 0, exponent: 0 },
        std::cmp::Ordering::Greater => Finite { negative: sa, magnitude: ma - mb, exponent },
        std::cmp::Ordering::Less => Finite { negative: sb, magnitude: mb - ma, exponent },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EDGES: &[u32] = &[
        0,
        1,
        0x0080_0000,
        0x007f_ffff,
        0x3f80_0000,
        0x3f80_0001,
        0x7f7f_ffff,
        0x7f80_0000,
        0x7fc0_0000,
        0x3300_0000,
        0x4b80_0000,
        0x3eaa_aaab,
        0x40490fdb,
    ];

    #[test]
    fn agrees_with_the_processor() {
        let all: Vec<u32> = EDGES.iter().flat_map(|&e| [e, e | 1 << 31]).collect();
        for &a in &all {
            let x = f32::from_bits(a);
            let root = F32.sqrt(a.into(), Rounding::Nearest);
            assert_eq!(root, canonical32(x.sqrt()), "{x}");
            for &b in &all {
                let y = f32::from_bits(b);
                let quotient = F32.div(a.into(), b.into(), Rounding::Nearest);
                assert_eq!(quotient, canonical32(x / y), "{x} / {y}");
                let (p, q) = (F32.unpack(a.into()), F32.unpack(b.into()));
                let sum = F32.round(add(p, q, Rounding::Nearest), Rounding::Nearest);
                assert_eq!(sum, canonical32(x + y), "{x} + {y}");
                assert_eq!(F32.round(mul(p, q), Rounding::Nearest), canonical32(x * y), "{x} * {y}");
                for &c in &all {
                    let z = f32::from_bits(c);
                    let exact = add(mul(p, q), F32.unpack(c.into()), Rounding::Nearest);
                    let fused = F32.round(exact, Rounding::Nearest);
                    assert_eq!(fused, canonical32(x.mul_add(y, z)), "{x} * {y} + {z}");
                }
            }
        }
    }

    #[test]
    fn directed_rounding_brackets() {
        let third = |mode| F32.div(F32.one(), 0x4040_0000, mode);
        assert_eq!(third(Rounding::Down) + 1, third(Rounding::Up));
        assert_eq!(third(Rounding::Zero), third(Rounding::Down));
        assert_eq!(F32.add(F32.one(), F32.one() | F32.sign(), Rounding::Down), F32.sign());
    }

    #[test]
    fn random_bits_carry_into_the_kept_part() {
        let half = |value: f32, random| F32.convert_randomly(value.to_bits().into(), F16, random);
        let step = 1.0 / 1024.0;
        assert_eq!((half(1.0, 0x1fff), half(1.0 + step / 2.0, 0xfff)), (0x3c00, 0x3c00));
        assert_eq!((half(1.0 + step / 2.0, 0x1000), half(-1.0 - step / 2.0, 0x1000)), (0x3c01, 0xbc01));
        // Numbers below the normal ones, and above the greatest.
        assert_eq!((half(2f32.powi(-25), 0xfff), half(2f32.powi(-25), 0x1000)), (0, 1));
        assert_eq!((half(65520.0, 0xfff), half(65520.0, 0x1000), half(1e9, 0)), (0x7bff, 0x7c00, 0x7c00));
        assert_eq!(F32.convert_randomly(0x3f80_8000, BF16, 0x8000), 0x3f81);
    }

    #[test]
    fn integral_values() {
        let half = 1.5f32.to_bits().into();
        assert_eq!(F32.integral(half, Rounding::Nearest), 2f32.to_bits().into());
        assert_eq!(F32.integral(half, Rounding::Zero), 1f32.to_bits().into());
        assert_eq!(F32.integral((-0.25f32).to_bits().into(), Rounding::Nearest), F32.sign());
        assert_eq!(integer(F64.unpack((-2.5f64).to_bits()), Rounding::Down), Some(-3));
    }
}
