//! Floating-point arithmetic of all widths.

use super::arithmetic::{ty, unsupported};
use super::decode::ones;
use super::{Block, Step};
use crate::approximate::{Function, double, single};
use crate::float::{BF16, F16, F32, F64, Format, Rounding};
use ptx_backend::input::Instr;
use ptx_isa::{FormId, Mod, Opcode, ScalarType, TypeKind};

pub(super) fn rounding(op: &Opcode) -> Rounding {
    match () {
        () if op.has(Mod::Rz) => Rounding::Zero,
        () if op.has(Mod::Rm) => Rounding::Down,
        () if op.has(Mod::Rp) => Rounding::Up,
        () => Rounding::Nearest,
    }
}

pub(super) fn format(ty: ScalarType) -> Option<Format> {
    Some(match ty {
        ScalarType::F16 | ScalarType::F16x2 => F16,
        ScalarType::Bf16 | ScalarType::Bf16x2 => BF16,
        ScalarType::F32 | ScalarType::F32x2 => F32,
        ScalarType::F64 => F64,
        _ => return None,
    })
}

impl Block<'_> {
    pub(super) fn float(&mut self, w: usize, mask: u32, instr: &Instr) -> Step<()> {
        use FormId as F;
        let op = &instr.opcode;
        let t = ty(op, 0)?;
        let Some(format) = format(t) else { return unsupported(instr) };
        if op.form == F::Testp {
            return self.map1(
                w,
                mask,
                instr,
                ScalarType::Pred,
                t,
                |a| Ok(has_property(op, format, a).into()),
            );
        }
        let packed = t.kind() == TypeKind::Packed;
        self.map4(w, mask, instr, t, [t; 4], |a, b, c, _| {
            if !packed {
                return compute(instr, format, a, b, c);
            }
            let half = t.bits() / 2;
            let ones = ones(half);
            let low = compute(instr, format, a & ones, b & ones, c & ones)?;
            let high = compute(instr, format, a >> half, b >> half, c >> half)?;
            Ok(high << half | low)
        })
    }

    /// Single-precision sums whose other sources are halves.
    pub(super) fn mixed(&mut self, w: usize, mask: u32, instr: &Instr) -> Step<()> {
        let op = &instr.opcode;
        let (d, t) = (ty(op, 0)?, ty(op, 1)?);
        let Some(half) = format(t) else { return unsupported(instr) };
        let mode = rounding(op);
        let widen = |x: u64| half.convert(x, F32, Rounding::Nearest);
        let finish = |sum: u64| if op.has(Mod::Sat) { F32.saturate(sum) } else { sum };
        if op.form == FormId::FmaMixed {
            let result = |a, b, c| Ok(finish(F32.fma(widen(a), widen(b), c, mode)));
            return self.map3(w, mask, instr, d, [t, t, d], result);
        }
        let sign = if op.form == FormId::SubMixed { F32.sign() } else { 0 };
        self.map2(w, mask, instr, d, [t, d], |a, c| Ok(finish(F32.add(widen(a), c ^ sign, mode))))
    }
}

/// The largest or the smallest of several numbers, or of their magnitudes.
pub(super) fn extremum(op: &Opcode, format: Format, sources: &[u64], greatest: bool) -> u64 {
    let nan = op.has(Mod::Nan);
    let magnitude = |x: &u64| if op.has(Mod::Abs) { x & (format.sign() - 1) } else { *x };
    let found = sources.iter().map(magnitude).reduce(|a, b| format.extremum(a, b, greatest, nan));
    let signs = sources.iter().fold(0, |signs, x| signs ^ x) & format.sign();
    found.unwrap_or(0) | if op.has(Mod::XorSign) { signs } else { 0 }
}

fn has_property(op: &Opcode, format: Format, a: u64) -> bool {
    let magnitude = a & (format.sign() - 1);
    match () {
        () if op.has(Mod::Finite) => magnitude < format.infinity(),
        () if op.has(Mod::Infinite) => magnitude == format.infinity(),
        () if op.has(Mod::Number) => magnitude <= format.infinity(),
        () if op.has(Mod::NotANumber) => magnitude > format.infinity(),
        // Zero counts as normal.
        () if op.has(Mod::Normal) => magnitude < format.infinity() && !format.is_subnormal(a),
        () => format.is_subnormal(a),
    }
}

/// The rounded quotient. If subnormal results are flushed, so are those that rounding makes normal, as in ptxas's code.
fn quotient(format: Format, a: u64, b: u64, mode: Rounding, ftz: bool) -> u64 {
    let result = format.div(a, b, mode);
    let is_small = || (F32.to_f64(a) / F32.to_f64(b)).abs() < f64::from(f32::MIN_POSITIVE);
    if ftz && format == F32 && is_small() { result & format.sign() } else { result }
}

fn compute(instr: &Instr, format: Format, a: u64, b: u64, c: u64) -> Step<u64> {
    use FormId as F;
    let op = &instr.opcode;
    // ptxas accepts the modifier for double precision, but it has no effect.
    let ftz = op.has(Mod::Ftz) && op.form != F::RcpF64;
    let flush = |x: u64| if ftz { format.flush(x) } else { x };
    let (a, b, c) = match op.form {
        F::Copysign => (a, b, c),
        _ => (flush(a), flush(b), flush(c)),
    };
    let mode = rounding(op);
    let approximate = op.has(Mod::Approx);
    let function = |function| {
        if format == F64 { double(function, f64::from_bits(a)).to_bits() } else { single(function, a) }
    };
    let result = match op.form {
        F::AddF32 | F::AddF64 | F::AddF32x2 | F::AddHalf => format.add(a, b, mode),
        F::SubF32 | F::SubF64 | F::SubF32x2 | F::SubHalf => format.add(a, b ^ format.sign(), mode),
        F::MulF32 | F::MulF64 | F::MulF32x2 | F::MulHalf => format.mul(a, b, mode),
        // The NaN that is loaded for elements outside of a tensor is not documented.
        F::FmaHalf if op.has(Mod::Oob) => return unsupported(instr),
        // ptxas accepts these names, which are not in the manual, and computes something else.
        F::FmaHalf if mode != Rounding::Nearest => return unsupported(instr),
        F::FmaF32 | F::FmaF64 | F::FmaF32x2 | F::MadF32 | F::MadF64 | F::FmaHalf => format.fma(a, b, c, mode),
        F::DivFull => F32.from_f64(F32.to_f64(a) / F32.to_f64(b)),
        F::DivF32 if approximate => F32.from_f64(F32.to_f64(a) / F32.to_f64(b)),
        F::DivF32 | F::DivF64 => quotient(format, a, b, mode, ftz),
        F::RcpF32 if approximate => function(Function::Reciprocal),
        F::RcpF32 | F::RcpF64 => quotient(format, format.one(), a, mode, ftz),
        F::RcpApproxF64 => function(Function::Reciprocal) & !0xffff_ffff,
        F::SqrtF32 if approximate => function(Function::Root),
        F::SqrtF32 | F::SqrtF64 => format.sqrt(a, mode),
        F::RsqrtF32 | F::RsqrtF64 => function(Function::ReciprocalRoot),
        F::Sin => F32.from_f64(F32.to_f64(a).sin()),
        F::Cos => F32.from_f64(F32.to_f64(a).cos()),
        F::Lg2 => function(Function::Logarithm),
        F::Ex2 => function(Function::Exponential),
        F::Tanh => function(Function::Tangent),
        F::Ex2Half => format.from_f64(format.to_f64(a).exp2()),
        F::TanhHalf => format.from_f64(format.to_f64(a).tanh()),
        F::AbsFloat | F::AbsHalf => a & !format.sign(),
        F::NegFloat | F::NegHalf => a ^ format.sign(),
        F::Copysign => a & format.sign() | b & (format.sign() - 1),
        F::MinF32 | F::MaxF32 | F::MinF64 | F::MaxF64 | F::MinHalf | F::MaxHalf => {
            let greatest = matches!(op.form, F::MaxF32 | F::MaxF64 | F::MaxHalf);
            extremum(op, format, &[a, b, c][..instr.operands.len() - 1], greatest)
        }
        _ => return unsupported(instr),
    };
    let result = if op.has(Mod::Sat) { format.saturate(result) } else { result };
    let result =
        if op.has(Mod::Relu) && format.is_negative(result) && !format.is_nan(result) { 0 } else { result };
    Ok(flush(result))
}
