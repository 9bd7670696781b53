//! Floats of all widths and conversions.

use super::integer::boolean;
use super::{Compute, Lane, Mode, Results};
use crate::approximate::{Function, double, single};
use crate::float::{self, F16, F32, F64, Format, Rounding};
use crate::machine::Result;
use std::cmp::Ordering;

/// Comparisons are sets of less, equal, greater and unordered.
fn compares(cmp: u8, order: Option<Ordering>) -> bool {
    let bit = match order {
        Some(Ordering::Less) => 0,
        Some(Ordering::Equal) => 1,
        Some(Ordering::Greater) => 2,
        None => 3,
    };
    cmp >> bit & 1 == 1
}

/// An integer type of the conversions: the sign in the low bit, the size in the others.
fn integer_type(ty: u8) -> (u32, bool) {
    (8 << (ty >> 1), ty & 1 == 1)
}

impl Mode {
    fn flush(self, format: Format, bits: u64) -> u64 {
        if self.ftz { format.flush(bits) } else { bits }
    }

    fn finish(self, format: Format, bits: u64) -> u64 {
        let bits = if self.sat { format.saturate(bits) } else { bits };
        self.flush(format, bits)
    }

    fn product(self, format: Format, a: u64, b: u64) -> Option<u64> {
        let zero = |x: u64| x & (format.sign() - 1) == 0;
        (self.fmz && (zero(a) || zero(b))).then_some(0)
    }
}

impl Lane<'_, '_> {
    fn modified(&self, i: usize, format: Format, bits: u64) -> u64 {
        let source = self.source(i);
        let bits = if source.absolute { bits & !format.sign() } else { bits };
        if source.negated { bits ^ format.sign() } else { bits }
    }

    fn single(&self, i: usize, mode: Mode) -> Result<u64> {
        Ok(mode.flush(F32, self.modified(i, F32, self.bits(i)?.into())))
    }

    fn double(&self, i: usize) -> Result<u64> {
        Ok(self.modified(i, F64, self.pair(i, true)?))
    }

    /// The two halves of a packed source, low first.
    fn halves(&self, i: usize, format: Format, mode: Mode) -> Result<[u64; 2]> {
        let bits = self.bits(i)?;
        let (low, high) = (u64::from(bits & 0xffff), u64::from(bits >> 16));
        let picked = match self.source(i).swizzle {
            2 => [low, low],
            3 => [high, high],
            1 => {
                // A single-precision number in the place of a half, cut off: for both lanes.
                let narrow = F32.convert(bits.into(), format, Rounding::Zero);
                [narrow, narrow]
            }
            // Times i.
            4 => [high ^ 0x8000, low],
            _ => [low, high],
        };
        Ok(picked.map(|half| mode.flush(format, self.modified(i, format, half))))
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
                let sign = if xor { (a ^ b) & F32.sign() } else { 0 };
                let keep = if xor { F32.sign() - 1 } else { u64::MAX };
                word(F32.extremum(a & keep, b & keep, !self.p(0), nan) | sign)
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
                // Whatever the short path of a division could lose takes the long one.
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
                    // The unit knows no subnormal numbers.
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
                // Whether the first is the one to take, and whether neither is a number.
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
            Compute::Hadd2 { format, mode, single } => {
                let (a, b) = (self.halves(0, format, mode)?, self.halves(1, format, mode)?);
                if single {
                    // One operand may be a whole single-precision number.
                    let wide = |i: usize, half: u64| -> Result<u64> {
                        if self.source(i).swizzle == 1 {
                            return Ok(self.modified(i, F32, self.bits(i)?.into()));
                        }
                        Ok(format.convert(half, F32, Rounding::Nearest))
                    };
                    let sum = F32.add(wide(0, a[0])?, wide(1, b[0])?, mode.round);
                    return Ok(Some(word(mode.finish(F32, sum))));
                }
                pack(|i| mode.finish(format, format.add(a[i], b[i], Rounding::Nearest)))
            }
            Compute::Hmul2 { format, mode } => {
                let (a, b) = (self.halves(0, format, mode)?, self.halves(1, format, mode)?);
                pack(|i| {
                    let zero = mode.product(format, a[i], b[i]);
                    mode.finish(format, zero.unwrap_or_else(|| format.mul(a[i], b[i], Rounding::Nearest)))
                })
            }
            Compute::Hfma2 { format, mode, relu } => {
                let (a, b) = (self.halves(0, format, mode)?, self.halves(1, format, mode)?);
                let c = self.halves(2, format, mode)?;
                pack(|i| {
                    let sum = match mode.product(format, a[i], b[i]) {
                        Some(zero) => format.add(zero, c[i], Rounding::Nearest),
                        None => format.fma(a[i], b[i], c[i], Rounding::Nearest),
                    };
                    let result = mode.finish(format, sum);
                    if relu && format.is_negative(result) && !format.is_nan(result) { 0 } else { result }
                })
            }
            Compute::Hmnmx2 { format, nan, ftz, xor } if !xor => {
                let m = Mode { round: Rounding::Nearest, ftz, fmz: false, sat: false };
                let (a, b, greatest) = (self.halves(0, format, m)?, self.halves(1, format, m)?, !self.p(0));
                pack(|i| format.extremum(a[i], b[i], greatest, nan))
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
                    false => {
                        self.modified(1, from, u64::from(self.bits(1)?) & (from.sign() << 1).wrapping_sub(1))
                    }
                };
                let flush =
                    |format: Format, bits: u64| if ftz && format == F32 { format.flush(bits) } else { bits };
                let result = flush(to, from.convert(flush(from, bits), to, mode));
                if to == F64 { Results::from(result) } else { word(result) }
            }
            Compute::Frnd { format, mode, ftz } => {
                if format == F64 {
                    return Ok(Some(Results::from(F64.integral(self.double(1)?, mode))));
                }
                let bits = self.modified(1, format, u64::from(self.bits(1)?) & ((format.sign() << 1) - 1));
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
                // Two bytes above those that were converted before.
                word(u64::from(self.bits(2)?) << 16 | byte(0)? << 8 | byte(1)?)
            }
            Compute::Narrow { format, halves, relu } => {
                let (high, low) = if halves {
                    let word = u64::from(self.bits(1)?);
                    (F16.to_f64(word >> 16), F16.to_f64(word & 0xffff))
                } else {
                    (F32.to_f64(self.bits(0)?.into()), F32.to_f64(self.bits(1)?.into()))
                };
                let merged = u64::from(self.bits(2)?);
                let upper = if self.source(2).swizzle == 1 { merged >> 16 } else { merged & 0xffff };
                let byte = |value| u64::from(format.limited(value, relu));
                word(upper << 16 | byte(high) << 8 | byte(low))
            }
            Compute::Widen { format, relu } => {
                let bytes = self.bits(1)? >> (16 * u32::from(self.source(1).swizzle));
                let half = |byte: u32| {
                    let half = F16.from_f64(format.to_f64(byte as u8));
                    if relu && F16.is_negative(half) && !F16.is_nan(half) { 0 } else { half }
                };
                word(half(bytes >> 8) << 16 | half(bytes))
            }
            Compute::F2fp { format, relu, finite, mode } => {
                let narrow = |i: usize| -> Result<u64> {
                    let bits = self.modified(i, F32, self.bits(i)?.into());
                    let result = F32.convert(bits, format, mode);
                    let magnitude = result & (format.sign() - 1);
                    Ok(match () {
                        () if relu && format.is_negative(result) && !format.is_nan(result) => 0,
                        () if finite && magnitude == format.infinity() => {
                            result & format.sign() | format.greatest()
                        }
                        () => result,
                    })
                };
                word(narrow(0)? << 16 | narrow(1)?)
            }
            _ => return Ok(None),
        }))
    }
}

/// Two halves, low first.
fn pack(half: impl Fn(usize) -> u64) -> Results {
    Results::from((half(1) << 16 | half(0)) as u32)
}
