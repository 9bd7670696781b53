//! `cvt`: between integers, between floats, and between integers and floats.

use super::float::rounding;
use super::integer::sign_of;
use super::operand::{known, registers};
use super::{Lowering, Result, Statement};
use crate::input::Operand;
use crate::ori::ir::Src;
use crate::ori::op::{FCmp, FloatType, HalfRead, IntRound, IntType, Op, Round, Sign};
use ptx_isa::{Mod, ScalarType, TypeKind};

fn float_type(ty: ScalarType) -> Option<FloatType> {
    match ty {
        ScalarType::F16 => Some(FloatType::F16),
        ScalarType::Bf16 => Some(FloatType::Bf16),
        ScalarType::F32 => Some(FloatType::F32),
        ScalarType::F64 => Some(FloatType::F64),
        _ => None,
    }
}

fn integer_type(ty: ScalarType) -> Option<IntType> {
    match (ty.kind(), ty.bits()) {
        (TypeKind::Signed, 8) => Some(IntType::S8),
        (TypeKind::Signed, 16) => Some(IntType::S16),
        (TypeKind::Signed, 32) => Some(IntType::S32),
        (TypeKind::Signed, 64) => Some(IntType::S64),
        (TypeKind::Unsigned | TypeKind::Bits, 8) => Some(IntType::U8),
        (TypeKind::Unsigned | TypeKind::Bits, 16) => Some(IntType::U16),
        (TypeKind::Unsigned | TypeKind::Bits, 32) => Some(IntType::U32),
        (TypeKind::Unsigned | TypeKind::Bits, 64) => Some(IntType::U64),
        _ => None,
    }
}

/// Rounding to an integral value.
fn integral_rounding(instr: &Statement<'_>) -> Option<IntRound> {
    instr.take(&[
        (Mod::Rni, IntRound::Near),
        (Mod::Rzi, IntRound::Trunc),
        (Mod::Rmi, IntRound::Floor),
        (Mod::Rpi, IntRound::Ceil),
    ])
}

/// The least and greatest value of an integer type.
fn range(ty: ScalarType) -> (i128, i128) {
    let bits = ty.bits();
    if ty.is_signed() { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) }
}

impl<'a> Lowering<'a> {
    /// `cvt` of one scalar to another.
    pub(super) fn convert(&mut self, instr: &Statement<'a>) -> Result<()> {
        let (to, from) = (self.type_of(instr, 0)?, self.type_of(instr, 1)?);
        let result = match (float_type(to), float_type(from)) {
            (None, None) => self.integer_to_integer(instr, to, from)?,
            (Some(float), None) => self.integer_to_float(instr, float, from)?,
            (None, Some(float)) => self.float_to_integer(instr, to, float)?,
            (Some(to), Some(from)) => self.float_to_float(instr, to, from)?,
        };
        let dst = self.operand(instr, 0)?;
        let result = self.in_destination(dst, result, to)?;
        self.write(dst, result)
    }

    /// Extends a small integer to a destination register that is larger than its type.
    fn in_destination(&mut self, dst: &Operand, src: Src, ty: ScalarType) -> Result<Src> {
        let Operand::Reg(reg) = dst else { return Ok(src) };
        let bits = self.register_type(*reg)?.bits();
        let src = if bits > ty.bits() && integer_type(ty).is_some() { self.extend(src, ty) } else { src };
        self.widen_to(dst, src, ty)
    }

    fn integer_to_integer(&mut self, instr: &Statement<'a>, to: ScalarType, from: ScalarType) -> Result<Src> {
        if integer_type(to).is_none() || integer_type(from).is_none() {
            return self
                .unsupported(instr, &format!("conversion from `.{}` to `.{}`", from.text(), to.text()));
        }
        let sat = instr.has(Mod::Sat);
        let wide = to.bits() == 64 || from.bits() == 64;
        if !wide {
            let src = if sat || from.bits() < to.bits() {
                self.source_extended(instr, 1, from)?
            } else {
                self.source(instr, 1, from)?
            };
            return Ok(if sat { self.clamp(src, to, from) } else { src });
        }
        let pair = if from.bits() == 64 {
            self.source_pair(instr, 1, from)?
        } else {
            let low = self.source_extended(instr, 1, from)?;
            let high = match (from.is_signed(), known(low)) {
                (false, _) => Src::ZERO,
                (true, Some(v)) => Src::imm((v as i32 >> 31) as u32),
                (true, None) => self.shift_right(low, 31, true),
            };
            [low, high]
        };
        let pair = if sat { self.clamp_pair(pair, to, from) } else { pair };
        Ok(if to.bits() == 64 { self.pack(&pair) } else { pair[0] })
    }

    /// Clamps a 32-bit integer to the range of another type of at most 32 bits.
    fn clamp(&mut self, src: Src, to: ScalarType, from: ScalarType) -> Src {
        let ((least, most), (from_least, from_most)) = (range(to), range(from));
        let signed = from.is_signed();
        let mut src = src;
        if least > from_least {
            src = self.minimum(signed, false, src, Src::imm(least as u32));
        }
        if most < from_most {
            src = self.minimum(signed, true, src, Src::imm(most as u32));
        }
        src
    }

    /// As [`Self::clamp`], in 64 bits.
    fn clamp_pair(&mut self, src: [Src; 2], to: ScalarType, from: ScalarType) -> [Src; 2] {
        use crate::ori::op::ICmp;
        let ((least, most), (from_least, from_most)) = (range(to), range(from));
        let mut src = src;
        let bounds = [(least > from_least, ICmp::Lt, least), (most < from_most, ICmp::Gt, most)];
        for (needed, outside, bound) in bounds {
            if needed {
                let limit = super::operand::halves(bound as u64);
                let outside = self.compare_pair(outside, from.is_signed(), src, limit);
                src = self.select_pair(outside, limit, src);
            }
        }
        src
    }

    fn integer_to_float(&mut self, instr: &Statement<'a>, to: FloatType, from: ScalarType) -> Result<Src> {
        let Some(kind) = integer_type(from) else {
            return self.unsupported(instr, &format!("conversion from `.{}`", from.text()));
        };
        let (src, kind) = match kind {
            IntType::U64 | IntType::S64 => (self.source(instr, 1, from)?, kind),
            _ => {
                let kind = if from.is_signed() { IntType::S32 } else { IntType::U32 };
                (self.source_extended(instr, 1, from)?, kind)
            }
        };
        // No integer is denormal.
        instr.ignore(&[Mod::Ftz]);
        let width = if to == FloatType::F64 { 2 } else { 1 };
        let op = Op::I2f { to, from: kind, round: rounding(instr) };
        if !self.encodes(&op) {
            return self.unsupported(instr, "conversion from an integer to `.bf16` on this target");
        }
        let result = match op {
            Op::I2f { to: FloatType::F32, from: IntType::U32 | IntType::S32, round } => {
                self.word_to_float(sign_of(kind == IntType::S32), round, src)
            }
            _ => self.wide(width, op, &[src]),
        };
        match (instr.has(Mod::Sat), to) {
            (false, _) => Ok(result),
            (true, FloatType::F32) => Ok(self.saturate(false, result)),
            (true, FloatType::F16) => Ok(self.saturate_half(result)),
            (true, FloatType::F64) => Ok(self.saturate_double(result)),
            _ => self.unsupported(instr, ".sat of this type"),
        }
    }

    /// A 32-bit integer as `.f32`.
    pub(super) fn word_to_float(&mut self, sign: Sign, round: Round, word: Src) -> Src {
        let fast = Op::I2fp { sign, round };
        let from = if sign == Sign::S32 { IntType::S32 } else { IntType::U32 };
        let op = if self.encodes(&fast) { fast } else { Op::I2f { to: FloatType::F32, from, round } };
        self.reg(op, &[word])
    }

    fn float_to_integer(&mut self, instr: &Statement<'a>, to: ScalarType, from: FloatType) -> Result<Src> {
        let Some(round) = integral_rounding(instr) else {
            return self.malformed("a conversion to an integer without its rounding");
        };
        let Some(kind) = integer_type(to) else {
            return self.unsupported(instr, &format!("conversion to `.{}`", to.text()));
        };
        let src = self.float_source(instr, from)?;
        // A value out of range becomes the nearest one, with or without it.
        instr.ignore(&[Mod::Sat]);
        // The operation saturates to its own type; smaller types are clamped after it. A NaN gives the highest bit of
        // the operation's type, which clamping would lose for an unsigned type.
        let (wide, kind) = match (to.bits(), to.is_signed()) {
            (64, _) => (to, kind),
            (..32, false) if from == FloatType::F64 => (to, kind),
            (_, true) => (ScalarType::S32, IntType::S32),
            (_, false) => (ScalarType::U32, IntType::U32),
        };
        let ntz = from != FloatType::F64 && to.bits() < 64;
        // With a 64-bit result, the operation does not flush denormals. Only rounding up or down distinguishes
        // denormals from zero.
        let (src, ftz) = match (instr.has(Mod::Ftz), to.bits(), round) {
            (true, 64, IntRound::Floor | IntRound::Ceil) => (self.flush(src), false),
            (ftz, bits, _) => (src, ftz && bits < 64),
        };
        let op = Op::F2i { to: kind, from, round, ftz, ntz };
        if !self.encodes(&op) {
            return self.unsupported(instr, "conversion from `.bf16` to an integer on this target");
        }
        let result = self.wide(registers(wide), op, &[src]);
        Ok(if wide == to { result } else { self.clamp(result, to, wide) })
    }

    fn float_source(&mut self, instr: &Statement<'a>, ty: FloatType) -> Result<Src> {
        match ty {
            FloatType::F64 => self.source_double(instr, 1),
            FloatType::F32 => self.source(instr, 1, ScalarType::F32),
            FloatType::F16 => self.source(instr, 1, ScalarType::F16),
            FloatType::Bf16 => self.source(instr, 1, ScalarType::Bf16),
        }
    }

    /// Clamps a half to [0, 1]; a NaN gives 0.
    fn saturate_half(&mut self, src: Src) -> Src {
        const NEGATIVE_ZEROS: u32 = 0x8000_8000;
        self.reg(
            Op::Hadd2 { bf16: false, ftz: false, sat: true, f32: false, half: HalfRead::Own },
            &[src, Src::imm(NEGATIVE_ZEROS)],
        )
    }

    /// Clamps to [0, 1]; a NaN gives 0.
    fn saturate(&mut self, ftz: bool, src: Src) -> Src {
        self.reg(Op::Fadd { round: Round::Rn, ftz, sat: true }, &[src, Src::ZERO])
    }

    /// The value with denormals replaced by zeros of the same sign.
    pub(super) fn flush(&mut self, src: Src) -> Src {
        self.reg(Op::Fadd { round: Round::Rn, ftz: true, sat: false }, &[src, Src::ZERO.neg()])
    }

    /// A float with denormals replaced by zeros if `ftz`, clamped if `sat`.
    fn adjust(&mut self, ftz: bool, sat: bool, src: Src) -> Src {
        match (sat, ftz) {
            (true, _) => self.saturate(ftz, src),
            (false, true) => self.flush(src),
            (false, false) => src,
        }
    }

    fn saturate_double(&mut self, src: Src) -> Src {
        let one = Src::imm((1f64.to_bits() >> 32) as u32);
        let positive = self.dcompare(FCmp::Gt, src, Src::ZERO);
        let least = self.select(positive, src, Src::ZERO, 2);
        let below = self.dcompare(FCmp::Lt, least, one);
        let one = self.pack(&[Src::ZERO, one]);
        self.select(below, least, one, 2)
    }

    fn float_to_float(&mut self, instr: &Statement<'a>, to: FloatType, from: FloatType) -> Result<Src> {
        use FloatType::{Bf16, F16, F32, F64};
        let src = self.float_source(instr, from)?;
        let (ftz, sat) = (|| instr.has(Mod::Ftz), || instr.has(Mod::Sat));
        let exactly = Round::Rn;
        let result = match (from, to) {
            (F32, F32) => match integral_rounding(instr) {
                Some(round) => {
                    let rounded = self.reg(Op::Frnd { ty: F32, round, ftz: ftz() }, &[src]);
                    if sat() { self.saturate(ftz(), rounded) } else { rounded }
                }
                None => self.adjust(ftz(), sat(), src),
            },
            (F64, F64) => {
                let rounded = match integral_rounding(instr) {
                    Some(round) => self.wide(2, Op::Frnd { ty: F64, round, ftz: false }, &[src]),
                    None => self.source(instr, 1, ScalarType::F64)?,
                };
                if sat() { self.saturate_double(rounded) } else { rounded }
            }
            (F16, F16) => {
                let rounded = match integral_rounding(instr) {
                    Some(round) => self.reg(Op::Frnd { ty: F16, round, ftz: ftz() }, &[src]),
                    None => src,
                };
                if sat() { self.saturate_half(rounded) } else { rounded }
            }
            (F64, F32) => {
                let op = Op::F2f { to, from, round: rounding(instr), ftz: false, sat: false };
                let rounded = self.reg(op, &[src]);
                self.adjust(ftz(), sat(), rounded)
            }
            (F32, F64) => {
                let src = if ftz() { self.flush(src) } else { src };
                let wide = self.wide(2, Op::F2f { to, from, round: exactly, ftz: false, sat: false }, &[src]);
                if sat() { self.saturate_double(wide) } else { wide }
            }
            (F32, F16 | Bf16) => {
                let src = self.adjust(ftz(), sat(), src);
                self.float_to_half(instr, to, rounding(instr), src)?
            }
            (F16, F32) => {
                let op = Op::Hadd2 { bf16: false, ftz: false, sat: false, f32: true, half: HalfRead::Own };
                let wide = self.reg(op, &[Src::ZERO.neg(), src]);
                // Every half is a normal single float, so there is nothing to flush.
                let ftz = ftz();
                if sat() { self.saturate(ftz, wide) } else { wide }
            }
            (Bf16, F32) => {
                // The result is the upper half of the float, without rounding.
                rounding(instr);
                let wide = self.reg(Op::Prmt, &[src, Src::imm(0x1044), Src::ZERO]);
                self.adjust(ftz(), sat(), wide)
            }
            (F16, F64) => {
                let wide = self.wide(2, Op::F2f { to, from, round: exactly, ftz: false, sat: false }, &[src]);
                if sat() { self.saturate_double(wide) } else { wide }
            }
            (F64, F16) => {
                let op = Op::F2f { to, from, round: rounding(instr), ftz: false, sat: false };
                let half = self.reg(op, &[src]);
                if sat() { self.saturate_half(half) } else { half }
            }
            (Bf16, Bf16) => match integral_rounding(instr) {
                Some(round) => self.narrow_float(instr, Op::Frnd { ty: Bf16, round, ftz: false }, src)?,
                None => src,
            },
            (Bf16, F64) | (F64, Bf16) | (F16, Bf16) | (Bf16, F16) if !sat() => {
                let op = Op::F2f { to, from, round: rounding(instr), ftz: false, sat: false };
                self.narrow_float(instr, op, src)?
            }
            _ => return self.unsupported(instr, "conversion between these floating-point types"),
        };
        Ok(result)
    }

    /// An operation on a float that some targets lack.
    fn narrow_float(&mut self, instr: &Statement<'_>, op: Op, src: Src) -> Result<Src> {
        if !self.encodes(&op) {
            return self.unsupported(instr, "conversion between these floating-point types on this target");
        }
        Ok(match op {
            Op::F2f { to: FloatType::F64, .. } => self.wide(2, op, &[src]),
            _ => self.reg(op, &[src]),
        })
    }

    fn float_to_half(&mut self, instr: &Statement<'_>, to: FloatType, round: Round, src: Src) -> Result<Src> {
        let (bf16, relu) = (to == FloatType::Bf16, instr.has(Mod::Relu));
        let sat = instr.has(Mod::Satfinite);
        let pack = Op::F2fp { bf16, round, relu, sat };
        match round {
            Round::Rn | Round::Rz if self.encodes(&pack) => Ok(self.reg(pack, &[Src::ZERO, src])),
            _ if relu || sat => self.unsupported(instr, "this rounding on this target"),
            _ => {
                let op = Op::F2f { to, from: FloatType::F32, round, ftz: false, sat: false };
                if !self.encodes(&op) {
                    return self.unsupported(instr, "this rounding on this target");
                }
                Ok(self.reg(op, &[src]))
            }
        }
    }

    /// `cvt` of two floats to a pair of halves; the first operand is the high one.
    pub(super) fn convert_pair(&mut self, instr: &Statement<'a>) -> Result<()> {
        let bf16 = match self.type_of(instr, 0)? {
            ScalarType::F16x2 => false,
            ScalarType::Bf16x2 => true,
            other => return self.unsupported(instr, &format!("conversion to `.{}`", other.text())),
        };
        let (relu, sat) = (instr.has(Mod::Relu), instr.has(Mod::Satfinite));
        let random = instr.has(Mod::Rs);
        let op = match random {
            true => Op::F2fpRandom { bf16, relu, sat },
            false => Op::F2fp { bf16, round: rounding(instr), relu, sat },
        };
        if !self.encodes(&op) {
            return self.unsupported(instr, "packed conversions on this target");
        }
        let mut srcs = vec![self.source(instr, 1, ScalarType::F32)?, self.source(instr, 2, ScalarType::F32)?];
        if random {
            srcs.push(self.source(instr, 3, ScalarType::B32)?);
        }
        let both = self.reg(op, &srcs);
        // A 64-bit register gets zero in its high word.
        let result = self.widen_to(self.operand(instr, 0)?, both, ScalarType::B32)?;
        self.result(instr, result)
    }
}
