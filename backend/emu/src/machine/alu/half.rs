//! Half-precision arithmetic, on single halves and on pairs.

use super::float::compares;
use super::integer::boolean;
use super::{Compute, Lane, Mode, Results};
use crate::float::{F32, Format, Rounding};
use crate::machine::Result;

impl Lane<'_, '_> {
    /// The two halves of a packed source, low first, without modifiers.
    fn picked(&self, i: usize, format: Format) -> Result<[u64; 2]> {
        let bits = self.bits(i)?;
        let (low, high) = (u64::from(bits & 0xffff), u64::from(bits >> 16));
        Ok(match self.source(i).swizzle {
            2 => [low, low],
            3 => [high, high],
            1 => {
                // A single-precision number in place of a half is truncated and used for both lanes.
                let narrow = F32.convert(bits.into(), format, Rounding::Zero);
                [narrow, narrow]
            }
            // The product with i.
            4 => [high ^ 0x8000, low],
            _ => [low, high],
        })
    }

    fn halves(&self, i: usize, format: Format, mode: Mode) -> Result<[u64; 2]> {
        Ok(self.picked(i, format)?.map(|half| mode.flush(format, self.modified(i, format, half))))
    }

    /// A half of a source as a single-precision number.
    fn widened(&self, i: usize, format: Format) -> Result<u64> {
        let half = self.bits(i)? >> (16 * u32::from(self.source(i).swizzle)) & 0xffff;
        Ok(format.convert(self.modified(i, format, half.into()), F32, Rounding::Nearest))
    }

    pub(super) fn half(&self, compute: Compute) -> Result<Option<Results>> {
        let word = |bits: u64| Results::from(bits as u32);
        Ok(Some(match compute {
            Compute::Hadd2 { format, mode, single } => {
                let (a, b) = (self.halves(0, format, mode)?, self.halves(1, format, mode)?);
                if single {
                    // One operand may be a single-precision number.
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
            Compute::Hmnmx2 { format, nan, ftz, xor } => {
                let m = Mode { round: Rounding::Nearest, ftz, fmz: false, sat: false };
                let (a, b, greatest) = (self.halves(0, format, m)?, self.halves(1, format, m)?, !self.p(0));
                // The signs are those before taking the magnitudes that are compared.
                let (x, y) = (self.picked(0, format)?, self.picked(1, format)?);
                let sign = |i: usize| if xor { (x[i] ^ y[i]) & format.sign() } else { 0 };
                pack(|i| format.extremum(a[i], b[i], greatest, nan) ^ sign(i))
            }
            Compute::Hset2 { format, cmp, ftz, combine, ones } => {
                let holds = self.compared(format, cmp, ftz)?;
                let p = self.p(0);
                let one = if ones { format.one() } else { 0xffff };
                pack(|i| if boolean(combine, holds[i], p) { one } else { 0 })
            }
            Compute::Hsetp2 { format, cmp, ftz, combine } => {
                let holds = self.compared(format, cmp, ftz)?;
                let p = self.p(0);
                Results {
                    p: boolean(combine, holds[0], p),
                    q: boolean(combine, holds[1], p),
                    ..Results::default()
                }
            }
            Compute::MufuHalf { op, format } => {
                let half = self.bits(1)? >> (16 * u32::from(self.source(1).swizzle)) & 0xffff;
                let x = format.to_f64(self.modified(1, format, half.into()));
                let result = match op {
                    2 => x.exp2(),
                    9 => x.tanh(),
                    _ => return Ok(None),
                };
                word(format.from_f64(result))
            }
            Compute::Fhadd { half, mode } => {
                let sum = F32.add(self.widened(0, half)?, self.single(1, mode)?, mode.round);
                word(mode.finish(F32, sum))
            }
            Compute::Fhfma { half, mode } => {
                let (a, b) = (self.widened(0, half)?, self.widened(1, half)?);
                word(mode.finish(F32, F32.fma(a, b, self.single(2, mode)?, mode.round)))
            }
            _ => return Ok(None),
        }))
    }

    /// Whether a comparison of halves is true, low first.
    fn compared(&self, format: Format, cmp: u8, ftz: bool) -> Result<[bool; 2]> {
        let m = Mode { round: Rounding::Nearest, ftz, fmz: false, sat: false };
        let (a, b) = (self.halves(0, format, m)?, self.halves(1, format, m)?);
        Ok([0, 1].map(|i| compares(cmp, format.compare(a[i], b[i]))))
    }
}

/// Computes two halves, low first.
fn pack(half: impl Fn(usize) -> u64) -> Results {
    Results::from((half(1) << 16 | half(0)) as u32)
}
