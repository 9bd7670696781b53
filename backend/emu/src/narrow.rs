//! Floating-point formats of at most eight bits. They round to the nearest number, ties to even, or with random bits, and
//! saturate.

/// A format: a sign, an exponent and a fraction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Narrow {
    exponent: u32,
    fraction: u32,
    special: Special,
}

/// Which encodings are not finite numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Special {
    /// Infinities and NaNs, as in IEEE 754.
    Both,
    /// One NaN, with all bits set.
    Nan,
    Nothing,
}

pub const E4M3: Narrow = Narrow { exponent: 4, fraction: 3, special: Special::Nan };
pub const E5M2: Narrow = Narrow { exponent: 5, fraction: 2, special: Special::Both };
pub const E2M3: Narrow = Narrow { exponent: 2, fraction: 3, special: Special::Nothing };
pub const E3M2: Narrow = Narrow { exponent: 3, fraction: 2, special: Special::Nothing };
pub const E2M1: Narrow = Narrow { exponent: 2, fraction: 1, special: Special::Nothing };

impl Narrow {
    /// The format with a name.
    pub fn named(name: &str) -> Option<Narrow> {
        Some(match name {
            "e4m3" => E4M3,
            "e5m2" => E5M2,
            "e2m3" => E2M3,
            "e3m2" => E3M2,
            "e2m1" => E2M1,
            _ => return None,
        })
    }

    /// The number of bits without the sign.
    const fn magnitude_bits(self) -> u32 {
        self.exponent + self.fraction
    }

    /// The encoding of the largest finite number.
    const fn greatest(self) -> u8 {
        let all = ((1 << self.magnitude_bits()) - 1) as u8;
        match self.special {
            Special::Both => all - (1 << self.fraction),
            Special::Nan => all - 1,
            Special::Nothing => all,
        }
    }

    /// The number of an encoding. Bits above the sign are ignored.
    pub fn to_f64(self, code: u8) -> f64 {
        let magnitude = code & ((1 << self.magnitude_bits()) - 1) as u8;
        let negative = code >> self.magnitude_bits() & 1 == 1;
        let (exponent, fraction) = (magnitude >> self.fraction, magnitude & ((1 << self.fraction) - 1));
        let bias = (1 << (self.exponent - 1)) - 1;
        let unit = |exponent: i32| f64::from(exponent - bias - self.fraction as i32).exp2();
        let value = match exponent {
            _ if magnitude > self.greatest() && self.special == Special::Both && fraction == 0 => {
                f64::INFINITY
            }
            _ if magnitude > self.greatest() => f64::NAN,
            0 => f64::from(fraction) * unit(1),
            _ => f64::from(u32::from(fraction) + (1 << self.fraction)) * unit(exponent.into()),
        };
        if negative { -value } else { value }
    }

    /// The encoding of the nearest number.
    pub fn from_f64(self, value: f64) -> u8 {
        if value.is_nan() {
            return ((1 << self.magnitude_bits()) - 1) as u8;
        }
        let magnitude = value.abs();
        let above = (0..=self.greatest()).find(|&code| self.to_f64(code) >= magnitude);
        let code = match above {
            None => self.greatest(),
            Some(0) => 0,
            Some(above) => {
                let down = magnitude - self.to_f64(above - 1);
                let up = self.to_f64(above) - magnitude;
                match down.total_cmp(&up) {
                    std::cmp::Ordering::Less => above - 1,
                    std::cmp::Ordering::Greater => above,
                    // Even codes are even numbers.
                    std::cmp::Ordering::Equal => above - (above & 1),
                }
            }
        };
        if value.is_sign_negative() { code | 1 << self.magnitude_bits() } else { code }
    }

    /// The same, but with `relu`, negative numbers become zero.
    pub fn limited(self, value: f64, relu: bool) -> u8 {
        if relu && value.is_sign_negative() && !value.is_nan() { 0 } else { self.from_f64(value) }
    }

    /// Two numbers from single-precision numbers that share random bits: the high number takes them in reverse order.
    pub fn random_pair(self, singles: [f64; 2], random: u16, relu: bool) -> [u8; 2] {
        let [high, low] = singles;
        [self.limited_randomly(high, random.reverse_bits(), relu), self.limited_randomly(low, random, relu)]
    }

    /// Rounds the magnitude down, or up if the sum of the dropped part and the random bits, as fractions of the distance
    /// to the next number, has a carry.
    fn limited_randomly(self, value: f64, random: u16, relu: bool) -> u8 {
        let magnitude = value.abs();
        let below = (0..self.greatest()).rev().find(|&code| self.to_f64(code) <= magnitude);
        let Some(below) = below.filter(|_| magnitude < self.to_f64(self.greatest())) else {
            return self.limited(value, relu);
        };
        let (down, up) = (self.to_f64(below), self.to_f64(below + 1));
        let carries = (magnitude - down) / (up - down) + f64::from(random) / 65536.0 >= 1.0;
        self.limited(if carries { up } else { down }.copysign(value), relu)
    }
}

/// The format `ue8m0` of scale factors for blocks of a matrix: powers of two from 2⁻¹²⁷ on, and one NaN.
pub mod scale {
    use crate::float::{F32, Rounding};

    const NAN: u8 = 0xff;
    const BIAS: i32 = 127;

    /// The power of two of an encoding.
    pub fn to_f64(code: u8) -> f64 {
        if code == NAN { f64::NAN } else { f64::from(i32::from(code) - BIAS).exp2() }
    }

    /// The encoding of the nearest power of two, towards zero or upwards, for the magnitude of a single-precision
    /// number.
    pub fn from_single(bits: u64, mode: Rounding, finite: bool) -> u8 {
        let magnitude = F32.to_f64(bits & (F32.sign() - 1));
        if magnitude.is_nan() {
            return NAN;
        }
        let code = match mode {
            Rounding::Up => (0..NAN).find(|&code| to_f64(code) >= magnitude),
            _ => (0..NAN).rev().find(|&code| to_f64(code) <= magnitude).or(Some(0)),
        };
        match code {
            Some(code) if magnitude.is_finite() => code,
            _ if finite => NAN - 1,
            _ => NAN,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_numbers_and_back() {
        for format in [E4M3, E5M2, E2M3, E3M2, E2M1] {
            for code in 0..=format.greatest() {
                assert_eq!(format.from_f64(format.to_f64(code)), code, "{format:?}");
            }
        }
        assert_eq!((E4M3.to_f64(0x7e), E5M2.to_f64(0x7b), E2M1.to_f64(7)), (448.0, 57344.0, 6.0));
        assert_eq!((E4M3.from_f64(1e9), E5M2.from_f64(f64::NEG_INFINITY)), (0x7e, 0xfb));
        assert!(E4M3.to_f64(0xff).is_nan() && E5M2.to_f64(0x7c).is_infinite());
        // Between 1 and 1.125, and between 1.125 and 1.25.
        assert_eq!((E4M3.from_f64(1.0625), E4M3.from_f64(1.1875)), (0x38, 0x3a));
        assert_eq!(E4M3.limited(-1.0, true), 0);
    }

    #[test]
    fn random_bits_decide_the_direction() {
        // A quarter between 1 and 1.125.
        let value = 1.0 + 0.125 / 4.0;
        assert_eq!(E4M3.random_pair([value, value], 0xbfff, false), [0x39, 0x38]);
        assert_eq!(E4M3.random_pair([-value, -value], 0xc000, false), [0xb8, 0xb9]);
        // Below the smallest number, an exact number, and above the greatest.
        let least = E4M3.to_f64(1);
        assert_eq!(E4M3.random_pair([least / 2.0, least / 2.0], 0x8000, false), [0, 1]);
        assert_eq!(E4M3.random_pair([2.0, 1e9], 0xffff, false), [0x40, 0x7e]);
        assert_eq!(E4M3.random_pair([f64::NAN, -1.0], 0xffff, true), [0x7f, 0]);
        assert_eq!(E5M2.random_pair([57345.0, f64::NEG_INFINITY], 0xffff, false), [0x7b, 0xfb]);
    }
}
