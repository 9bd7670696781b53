//! 32-bit and 64-bit floating-point arithmetic, and conversions.

use super::integer::boolean;
use super::{Compute, Lane, Mode, Results};
use crate::approximate::{Function, double, single};
use crate::float::{self, F16, F32, F64, Format, Rounding};
use crate::machine::Result;
use std::cmp::Ordering;

/// Which lanes of a pair of singles an instruction uses, by the number in its form. With 0, it uses both in their
/// order.
const SWAPPED: u8 = 1;
const ONE_FOR_BOTH: u8 = 2;

/// A comparison is a set of the relations less, equal, greater and unordered.
pub(super) fn compares(cmp: u8, order: Option<Ordering>) -> bool {
    let bit = match order {
        Some(Ordering::Less) => 0,
        Some(Ordering::Equal) => 1,
        Some(Ordering::Greater) => 2,
        None => 3,
    };
    cmp >> bit & 1 == 1
}

/// An integer type of conversions. The low bit is the sign, the other bits are the size.
fn integer_type(ty: u8) -> (u32, bool) {
    (8 << (ty >> 1), ty & 1 == 1)
}

impl Mode {
    pub(super) fn flush(self, format: Format, bits: u64) -> u64 {
        if self.ftz { format.flush(bits) } else { bits }
    }

    pub(super) fn finish(self, format: Format, bits: u64) -> u64 {
        let bits = if self.sat { format.saturate(bits) } else { bits };
        self.flush(format, bits)
    }

    pub(super) fn product(self, format: Format, a: u64, b: u64) -> Option<u64> {
        let zero = |x: u64| x & (format.sign() - 1) == 0;
        (self.fmz && (zero(a) || zero(b))).then_some(0)
    }
}

impl Lane<'_, '_> {
    pub(super) fn modified(&self, i: usize, format: Format, bits: u64) -> u64 {
        let source = self.source(i);
        let bits = if source.absolute { bits & !format.sign() } else { bits };
        if source.negated { bits ^ format.sign() } else { bits }
    }

    pub(super) fn single(&self, i: usize, mode: Mode) -> Result<u64> {
        Ok(mode.flush(F32, self.modified(i, F32, self.bits(i)?.into())))
    }

    /// The second source as a 16-bit number in either half of its register, or as a 32-bit number.
    fn narrow(&self, format: Format) -> Result<u64> {
        let is_half = format.sign() == 1 << 15;
        let shift = if is_half { 16 * u32::from(self.source(1).swizzle) } else { 0 };
        let bits = u64::from(self.bits(1)? >> shift);
        Ok(self.modified(1, format, bits & ((format.sign() << 1) - 1)))
    }

    fn double(&self, i: usize) -> Result<u64> {
        Ok(self.modified(i, F64, self.pair(i, true)?))
    }

    /// The two numbers of a register pair, low first; or one number twice.
    fn singles(&self, i: usize, mode: Mode) -> Result<[u64; 2]> {
        let pair = match self.source(i).swizzle {
            ONE_FOR_BOTH => [self.bits(i)?.into(); 2],
            swizzle => {
                let pair = self.pair(i, false)?;
                let lanes = [pair & 0xffff_ffff, pair >> 32];
                if swizzle == SWAPPED { [lanes[1], lanes[0]] } else { lanes }
            }
        };
        Ok(pair.map(|bits| mode.flush(F32, self.modified(i, F32, bits))))
    }

    pub(super) fn float(&self, compute: Compute) -> Result<Option<Results>> {
        let word = |bits: u64| Results::from(bits as u32);
        Ok(Some(match compute {
            Compute::Fadd(m) => word(m.finish(F32, F32.add(self.single(0, m)?, self.single(1, m)?, m.round))),
            Compute::Fmul(m, scale) => {
                let (a, b) = (self.single(0, m)?, self.single(1, m)?);
                let product = match m.product(F32, a, b) {
                    Some(zero) => zero,
                    None if scale == 4 || scale == 0 => F32.mul(a, b, m.round),
                    None => {
                        let exact = float::mul(F32.unpack(a), F32.unpack(b));
                        let by = float::Number::Finite {
                            negative: false,
                            magnitude: 1,
                            exponent: i32::from(scale) - 4,
                        };
                        F32.round(float::mul(exact, by), m.round)
                    }
                };
                word(m.finish(F32, product))
            }
            Compute::Ffma(m) => {
                let (a, b, c) = (self.single(0, m)?, self.single(1, m)?, self.single(2, m)?);
                let sum = match m.product(F32, a, b) {
                    Some(zero) => F32.add(zero, c, m.round),
                    None => F32.fma(a, b, c, m.round),
                };
                word(m.finish(F32, sum))
            }
            Compute::Fmnmx { ftz, nan, xor } => {
                let m = Mode { round: Rounding::Nearest, ftz, fmz: false, sat: false };
                let (a, b) = (self.single(0, m)?, self.single(1, m)?);
                // The signs are those before taking the magnitudes that are compared.
                let sign = |i: usize| -> Result<u64> {
                    Ok(if xor { u64::from(self.bits(i)?) & F32.sign() } else { 0 })
                };
                word(F32.extremum(a, b, !self.p(0), nan) ^ (sign(0)? ^ sign(1)?))
            }
            Compute::Fsel { ftz } => {
                let m = Mode { round: Rounding::Nearest, ftz, fmz: false, sat: false };
                word(if self.p(0) { self.single(0, m)? } else { self.single(1, m)? })
            }
            Compute::Fsetp { cmp, ftz, combine } | Compute::Fset { cmp, ftz, combine } => {
                let m = Mode { round: Rounding::Nearest, ftz, fmz: false, sat: false };
                let holds = compares(cmp, F32.compare(self.single(0, m)?, self.single(1, m)?));
                let p = self.p(0);
                let (yes, no) = (boolean(combine, holds, p), boolean(combine, !holds, p));
                let low = if matches!(compute, Compute::Fset { .. }) && yes { F32.one() as u32 } else { 0 };
                Results { low, high: None, p: yes, q: no }
            }
            Compute::Fchk => {
                let exponent = |bits: u32| (bits >> 23 & 255) as i32;
                let (a, b) = (exponent(self.bits(0)?), exponent(self.bits(1)?));
                // Divisions that could lose accuracy on the short path use the long one.
                let slow = a == 255
                    || b == 255
                    || a < 25
                    || !(2..=252).contains(&b)
                    || !(-124..=125).contains(&(a - b));
                Results { p: slow, ..Results::default() }
            }
            Compute::Mufu(op) => {
                const FUNCTIONS: [Option<Function>; 10] = [
                    Some(Function::Cosine),
                    Some(Function::Sine),
                    Some(Function::Exponential),
                    Some(Function::Logarithm),
                    Some(Function::Reciprocal),
                    Some(Function::ReciprocalRoot),
                    None,
                    None,
                    Some(Function::Root),
                    Some(Function::Tangent),
                ];
                let a = self.modified(1, F32, self.bits(1)?.into());
                match FUNCTIONS.get(usize::from(op)).copied().flatten() {
                    // The unit treats subnormal numbers as zero, except for the tangent.
                    Some(Function::Tangent) => word(single(Function::Tangent, a)),
                    Some(function) => word(F32.flush(single(function, F32.flush(a)))),
                    None => {
                        let function = if op == 6 { Function::Reciprocal } else { Function::ReciprocalRoot };
                        let result = double(function, f64::from_bits(F64.flush(a << 32)));
                        let bits = F64.flush(result.to_bits());
                        word((if result.is_nan() { F64.nan() } else { bits }) >> 32)
                    }
                }
            }
            Compute::Dadd(m) => F64.add(self.double(0)?, self.double(1)?, m.round).into(),
            Compute::Dmul(m) => F64.mul(self.double(0)?, self.double(1)?, m.round).into(),
            Compute::Dfma(m) => F64.fma(self.double(0)?, self.double(1)?, self.double(2)?, m.round).into(),
            Compute::Dsetp { cmp: cmp @ (0 | 15), .. } => {
                // Whether the first is the result, and whether neither is a number.
                let (a, b) = (self.double(0)?, self.double(1)?);
                let (first, second) = if cmp == 0 { (a, b) } else { (b, a) };
                let zeros = (a | b) & (F64.sign() - 1) == 0;
                let less = match F64.compare(first, second) {
                    Some(Ordering::Equal) if zeros => F64.is_negative(first) && !F64.is_negative(second),
                    order => order == Some(Ordering::Less),
                };
                let (a_nan, b_nan) = (F64.is_nan(a), F64.is_nan(b));
                Results { p: less || b_nan && !a_nan, q: a_nan && b_nan, ..Results::default() }
            }
            Compute::Dsetp { cmp, combine } => {
                let holds = compares(cmp, F64.compare(self.double(0)?, self.double(1)?));
                let p = self.p(0);
                Results {
                    p: boolean(combine, holds, p),
                    q: boolean(combine, !holds, p),
                    ..Results::default()
                }
            }
            Compute::F2i { from, ty, long, mode, ftz } => {
                let bits =
                    if from == F64 { self.double(1)? } else { self.modified(1, from, self.bits(1)?.into()) };
                let bits = if from == F16 { bits & 0xffff } else { bits };
                let bits = if ftz { from.flush(bits) } else { bits };
                let (width, signed) = integer_type(ty);
                let (least, greatest) = match signed {
                    true => (-1i128 << (width - 1), (1i128 << (width - 1)) - 1),
                    false => (0, (1i128 << width) - 1),
                };
                let nan_is_zero = self.step.inst.get(sass::Field::Mode) == Some(1);
                let value = if from.is_nan(bits) {
                    if nan_is_zero { 0 } else { 1i128 << (width - 1) }
                } else {
                    let limit = if from.is_negative(bits) { least } else { greatest };
                    float::integer(from.unpack(bits), mode).unwrap_or(limit).clamp(least, greatest)
                };
                if long { Results::from(value as u64) } else { Results::from(value as u32) }
            }
            Compute::I2f { to, ty, mode } => {
                let (width, signed) = integer_type(ty);
                let bits = if width == 64 { self.pair(1, false)? } else { self.bits(1)?.into() };
                let shift = u64::from(width.min(32)) * self.step.inst.get(sass::Field::SwizzleB).unwrap_or(0);
                let unused = 64 - width;
                let bits = bits >> if width < 32 { shift } else { 0 };
                let value = match signed {
                    true => i128::from((bits << unused) as i64 >> unused),
                    false => i128::from(bits << unused >> unused),
                };
                let result = to.round(float::from_integer(value), mode);
                if to == F64 { Results::from(result) } else { word(result) }
            }
            Compute::F2f { from, to, mode, ftz } => {
                let bits = match from == F64 {
                    true => self.double(1)?,
                    false => self.narrow(from)?,
                };
                let flush =
                    |format: Format, bits: u64| if ftz && format == F32 { format.flush(bits) } else { bits };
                let bits = flush(from, bits);
                let result = flush(to, from.resize(bits, to, mode));
                if to == F64 { Results::from(result) } else { word(result) }
            }
            Compute::Frnd { format, mode, ftz } => {
                if format == F64 {
                    return Ok(Some(Results::from(F64.integral(self.double(1)?, mode))));
                }
                let bits = self.narrow(format)?;
                let bits = if ftz { format.flush(bits) } else { bits };
                word(format.integral(bits, mode))
            }
            Compute::F2ip { signed, mode } => {
                let (least, greatest) = if signed { (-128, 127) } else { (0, 255) };
                let byte = |i: usize| -> Result<u64> {
                    let bits = self.modified(i, F32, self.bits(i)?.into());
                    let limit = if F32.is_negative(bits) { least } else { greatest };
                    let value = match F32.is_nan(bits) {
                        true => 0,
                        false => {
                            float::integer(F32.unpack(bits), mode).unwrap_or(limit).clamp(least, greatest)
                        }
                    };
                    Ok(value as u64 & 255)
                };
                // Two bytes above the bytes of an earlier conversion.
                word(u64::from(self.bits(2)?) << 16 | byte(0)? << 8 | byte(1)?)
            }
            Compute::Pack(pack) => word(self.pack(pack)?.into()),
            Compute::Fmnmx3 { ftz, nan } => {
                let m = Mode { round: Rounding::Nearest, ftz, fmz: false, sat: false };
                let first = F32.extremum(self.single(0, m)?, self.single(1, m)?, !self.p(0), nan);
                word(F32.extremum(first, self.single(2, m)?, !self.p(0), nan))
            }
            Compute::Fadd2(m) => {
                let (a, b) = (self.singles(0, m)?, self.singles(1, m)?);
                both(|i| m.finish(F32, F32.add(a[i], b[i], m.round)))
            }
            Compute::Fmul2(m) => {
                let (a, b) = (self.singles(0, m)?, self.singles(1, m)?);
                both(|i| {
                    let zero = m.product(F32, a[i], b[i]);
                    m.finish(F32, zero.unwrap_or_else(|| F32.mul(a[i], b[i], m.round)))
                })
            }
            Compute::Ffma2(m) => {
                let (a, b, c) = (self.singles(0, m)?, self.singles(1, m)?, self.singles(2, m)?);
                both(|i| {
                    let sum = match m.product(F32, a[i], b[i]) {
                        Some(zero) => F32.add(zero, c[i], m.round),
                        None => F32.fma(a[i], b[i], c[i], m.round),
                    };
                    m.finish(F32, sum)
                })
            }
            _ => return Ok(None),
        }))
    }
}

/// Computes two singles, low first.
fn both(single: impl Fn(usize) -> u64) -> Results {
    Results::from(single(1) << 32 | single(0))
}
