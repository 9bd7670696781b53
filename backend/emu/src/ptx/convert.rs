//! Conversions between types.

use super::arithmetic::{operand, ty, unsupported};
use super::decode::ones;
use super::float::{format, rounding};
use super::{Block, Step, WARP, each};
use crate::float::{self, BF16, F16, F32, F64, Format, Rounding, TF32};
use crate::launch::FaultKind;
use crate::narrow::{E2M1, Narrow, scale};
use ptx_backend::input::{Instr, Operand};
use ptx_isa::{FormId, Mod, Opcode, ScalarType};

/// The first of the random bits for the upper number, or the upper pair.
const RANDOM_OF_HIGH: u32 = 16;

impl Block<'_> {
    pub(super) fn convert(&mut self, w: usize, mask: u32, instr: &Instr) -> Step<()> {
        let op = &instr.opcode;
        let (d, s) = (ty(op, 0)?, ty(op, 1)?);
        match op.form {
            FormId::CvtPair if op.has(Mod::Rs) => {
                let to = if d == ScalarType::F16x2 { F16 } else { BF16 };
                self.map3(w, mask, instr, d, [s, s, ScalarType::B32], |a, b, random| {
                    let narrow = |x, random| limit(op, to, F32.convert_randomly(x, to, random));
                    Ok(narrow(a, random >> RANDOM_OF_HIGH) << 16 | narrow(b, random))
                })
            }
            FormId::CvtPair => {
                let to = if d == ScalarType::F16x2 { F16 } else { BF16 };
                self.map2(w, mask, instr, d, [s, s], |a, b| {
                    let narrow = |x| limit(op, to, F32.convert(x, to, rounding(op)));
                    Ok(narrow(a) << 16 | narrow(b))
                })
            }
            FormId::CvtTf32 => self.map1(w, mask, instr, ScalarType::B32, s, |a| {
                let mode = if op.has(Mod::Rna) { Rounding::NearestAway } else { rounding(op) };
                let narrow = limit(op, TF32, F32.convert(a, TF32, mode));
                Ok(narrow << (F32.fraction - TF32.fraction))
            }),
            FormId::CvtToNarrow => {
                let Some(to) = narrow(d) else { return unsupported(instr) };
                let relu = op.has(Mod::Relu);
                if s == ScalarType::F16x2 {
                    return self.map1(w, mask, instr, d, s, |a| {
                        let half = |shift: u32| to.limited(F16.to_f64(a >> shift & 0xffff), relu);
                        Ok(pair(d, half(16), half(0)))
                    });
                }
                self.map2(w, mask, instr, d, [s, s], |a, b| {
                    let single = |x| to.limited(F32.to_f64(x), relu);
                    Ok(pair(d, single(a), single(b)))
                })
            }
            FormId::CvtToNarrow4 => self.convert_to_four(w, mask, instr),
            FormId::CvtFromNarrow => {
                let Some(from) = narrow(s) else { return unsupported(instr) };
                self.map1(w, mask, instr, d, s, |a| {
                    let bits = s.bits() / 2;
                    let half = |shift: u32| limit(op, F16, F16.from_f64(from.to_f64((a >> shift) as u8)));
                    Ok(half(bits) << 16 | half(0))
                })
            }
            FormId::CvtToScale => {
                let code = |x| u64::from(scale::from_single(x, rounding(op), op.has(Mod::Satfinite)));
                if s == ScalarType::Bf16x2 {
                    // A bfloat16 is the upper half of a single-precision number.
                    let single = |half: u64| half << 16 & ones(32);
                    return self
                        .map1(w, mask, instr, d, s, |a| Ok(code(single(a >> 16)) << 8 | code(single(a))));
                }
                self.map2(w, mask, instr, d, [s, s], |a, b| Ok(code(a) << 8 | code(b)))
            }
            FormId::CvtFromScale => self.map1(w, mask, instr, d, s, |a| {
                let half = |code: u64| BF16.from_f64(scale::to_f64(code as u8));
                Ok(half(a >> 8) << 16 | half(a))
            }),
            FormId::CvtPack | FormId::CvtPackInto => {
                let (least, greatest) = range(d);
                let clamp = |x: u64| i128::from(x as i64).clamp(least, greatest) as u64 & ones(d.bits());
                self.map3(w, mask, instr, ScalarType::B32, [s, s, ScalarType::B32], |a, b, c| {
                    // The existing contents are shifted up.
                    let above = if d.bits() == 16 { 0 } else { c << (2 * d.bits()) };
                    Ok((above | clamp(a) << d.bits() | clamp(b)) & ones(32))
                })
            }
            FormId::Cvt => self.map1(w, mask, instr, d, s, |a| convert(op, d, s, a)),
            _ => unsupported(instr),
        }
    }

    /// Four narrow numbers. Two share the upper half of the random bits, the other two the lower half. PTX does not
    /// define the order of the bits; it was measured on a GPU for `.e4m3x4`. The distribution for `.e2m1x4` is unknown.
    fn convert_to_four(&mut self, w: usize, mask: u32, instr: &Instr) -> Step<()> {
        let (op, d) = (&instr.opcode, ty(&instr.opcode, 0)?);
        let to = d.text().strip_suffix("x4").and_then(Narrow::named).filter(|to| *to != E2M1);
        let (Some(to), Operand::Vector(sources)) = (to, operand(instr, 1)?) else {
            return unsupported(instr);
        };
        let [a, b, e, f] = &sources[..] else { return unsupported(instr) };
        let mut singles = [[0; WARP]; 4];
        for (values, source) in singles.iter_mut().zip([a, b, e, f]) {
            *values = self.gather(w, mask, source, ScalarType::F32)?;
        }
        let random = self.gather(w, mask, operand(instr, 2)?, ScalarType::B32)?;
        for lane in each(mask) {
            let [a, b, e, f] = singles.map(|values| F32.to_f64(values[lane]));
            let pair = |singles, random: u64| to.random_pair(singles, random as u16, op.has(Mod::Relu));
            let ([a, b], [e, f]) = (pair([a, b], random[lane] >> RANDOM_OF_HIGH), pair([e, f], random[lane]));
            let word = u32::from_be_bytes([a, b, e, f]);
            self.put(w, lane, operand(instr, 0)?, d, word.into())?;
        }
        Ok(())
    }
}

/// The element format of a packed type with two narrow numbers.
fn narrow(ty: ScalarType) -> Option<Narrow> {
    Narrow::named(ty.text().strip_suffix("x2")?)
}

/// Two narrow numbers, the first one in the upper half.
fn pair(ty: ScalarType, high: u8, low: u8) -> u64 {
    u64::from(high) << (ty.bits() / 2) | u64::from(low)
}

/// `.relu` and `.satfinite`.
fn limit(op: &Opcode, format: Format, value: u64) -> u64 {
    let magnitude = value & (format.sign() - 1);
    match () {
        () if op.has(Mod::Relu) && format.is_negative(value) && !format.is_nan(value) => 0,
        () if op.has(Mod::Satfinite) && magnitude == format.infinity() => {
            value & format.sign() | format.greatest()
        }
        () => value,
    }
}

fn integral(op: &Opcode) -> Option<Rounding> {
    Some(match () {
        () if op.has(Mod::Rni) => Rounding::Nearest,
        () if op.has(Mod::Rzi) => Rounding::Zero,
        () if op.has(Mod::Rmi) => Rounding::Down,
        () if op.has(Mod::Rpi) => Rounding::Up,
        () => return None,
    })
}

/// The smallest and the largest value of an integer type.
fn range(ty: ScalarType) -> (i128, i128) {
    let bits = ty.bits();
    if ty.is_signed() { (-1 << (bits - 1), (1 << (bits - 1)) - 1) } else { (0, ones(bits).into()) }
}

fn convert(op: &Opcode, d: ScalarType, s: ScalarType, a: u64) -> Step<u64> {
    let missing = || FaultKind::Malformed("a conversion without rounding".into());
    match (format(d), format(s)) {
        (None, None) => {
            let value = if s.is_signed() { i128::from(a as i64) } else { a.into() };
            let (least, greatest) = range(d);
            Ok(if op.has(Mod::Sat) { value.clamp(least, greatest) } else { value } as u64)
        }
        (Some(to), None) => {
            let value = if s.is_signed() { i128::from(a as i64) } else { a.into() };
            let result = to.round(float::from_integer(value), rounding(op));
            Ok(if op.has(Mod::Sat) { to.saturate(result) } else { result })
        }
        (None, Some(from)) => {
            let a = if op.has(Mod::Ftz) { from.flush(a) } else { a };
            let mode = integral(op).ok_or_else(missing)?;
            let (least, greatest) = range(d);
            if from.is_nan(a) {
                let wide = s == ScalarType::F64 || d.bits() == 64;
                return Ok(if wide { 1 << (d.bits() - 1) } else { 0 });
            }
            let limit = if from.is_negative(a) { least } else { greatest };
            let value = float::integer(from.unpack(a), mode).unwrap_or(limit);
            Ok(value.clamp(least, greatest) as u64)
        }
        (Some(to), Some(from)) => {
            let ftz = op.has(Mod::Ftz);
            let flush = |format: Format, x: u64| if ftz && format == F32 { format.flush(x) } else { x };
            let a = flush(from, a);
            let a = integral(op).map_or(a, |mode| from.integral(a, mode));
            let result = match () {
                () if to == from && !from.is_nan(a) => a,
                () if to == F64 && from == F16 => {
                    F32.resize(from.convert(a, F32, Rounding::Nearest), to, Rounding::Nearest)
                }
                () => from.resize(a, to, rounding(op)),
            };
            let result = if op.has(Mod::Sat) { to.saturate(result) } else { result };
            Ok(limit(op, to, flush(to, result)))
        }
    }
}
