//! Conversions of pairs to narrower formats and back: `F2FP`.

use super::Lane;
use crate::float::{BF16, F16, F32, Rounding, TF32};
use crate::machine::Result;
use crate::machine::compute::pack::{Pack, Small, What};
use crate::narrow::scale;

impl Lane<'_, '_> {
    pub(super) fn pack(&self, pack: Pack) -> Result<u32> {
        let single = |i: usize| -> Result<u64> { Ok(self.modified(i, F32, self.bits(i)?.into())) };
        let merged = || -> Result<u64> {
            let bits = u64::from(self.bits(2)?);
            Ok(if self.source(2).swizzle == 1 { bits >> 16 } else { bits & 0xffff })
        };
        let word = match pack.what {
            What::Halves { format, both } => {
                let half = |i| Ok(pack.limit(format, F32.convert(single(i)?, format, pack.mode)));
                (if both { half(0)? } else { merged()? }) << 16 | half(1)?
            }
            What::HalvesRandomly { format } => {
                let random = u64::from(self.bits(2)?);
                let half =
                    |i, random| Ok(pack.limit(format, F32.convert_randomly(single(i)?, format, random)));
                half(0, random >> 16)? << 16 | half(1, random)?
            }
            What::Tf32 => {
                let narrow = pack.limit(TF32, F32.convert(single(1)?, TF32, pack.mode));
                narrow << (F32.fraction - TF32.fraction)
            }
            What::Small { to, from } => {
                let (high, low) = match from {
                    None => (single(0)?, single(1)?),
                    Some(half) => {
                        let bits = u64::from(self.bits(1)?);
                        let widen = |bits: u64| half.convert(bits & 0xffff, F32, Rounding::Nearest);
                        (widen(bits >> 16), widen(bits))
                    }
                };
                merged()? << (2 * to.bits()) | pack.small(to, high) << to.bits() | pack.small(to, low)
            }
            What::SmallRandomly { to } => {
                let bits = self.bits(2)?;
                u64::from(bits) << 16 | pack.small_pair(to, [single(0)?, single(1)?], (bits >> 16) as u16)
            }
            What::Widen { from } => {
                let pair = self.bits(1)? >> (2 * from.bits() * u32::from(self.source(1).swizzle));
                let half = |code: u32| match from {
                    Small::Number(format) => pack.limit(F16, F16.from_f64(format.to_f64(code as u8))),
                    Small::Scale => BF16.from_f64(scale::to_f64(code as u8)),
                };
                half(pair >> from.bits()) << 16 | half(pair)
            }
        };
        Ok(word as u32)
    }
}
