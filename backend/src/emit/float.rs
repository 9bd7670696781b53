//! Floating-point arithmetic and conversions.

use super::Emitter;
use super::builder::Builder;
use super::compute::{A, B, C, operand};
use crate::CodegenError;
use crate::ori::ir::{File, Inst, Src};
use crate::ori::op::{FloatType, IntRound, IntType, Op, Round, Sign};
use sass::Field;

impl Emitter<'_> {
    pub(super) fn float(&mut self, inst: &Inst) -> Result<(), CodegenError> {
        let builder = match inst.op {
            Op::Fadd { round, ftz, sat } => {
                let mut add = self.alu(inst, "FADD", &[A, B])?;
                add.rounded(round).flag(Field::Ftz, ftz).flag(Field::Sat, sat);
                add
            }
            Op::Fmul { round, ftz, sat } => {
                let mut mul = self.alu(inst, "FMUL", &[A, B])?;
                mul.rounded(round).flag(Field::Ftz, ftz).flag(Field::Sat, sat);
                mul
            }
            Op::Ffma { round, ftz, sat } => {
                let mut fma = self.alu(inst, "FFMA", &[A, B, C])?;
                fma.rounded(round).flag(Field::Ftz, ftz).flag(Field::Sat, sat);
                fma
            }
            Op::Fmnmx { ftz, nan } => {
                let mut minmax = self.alu(inst, "FMNMX", &[A, B])?;
                minmax.flag(Field::Ftz, ftz).text(Field::Mode, if nan { ".NAN" } else { "" });
                minmax.pred(Field::Pp, Field::PpNot, operand(inst, 2)?);
                minmax
            }
            Op::Fsetp { cmp, ftz, bool_ } => {
                let mut set = self.alu(inst, "FSETP", &[A, B])?;
                set.flag(Field::Ftz, ftz).text(Field::Cmp, cmp.text()).text(Field::Bool, bool_.text());
                self.compared(&mut set, inst);
                set
            }
            Op::Mufu { func } => {
                let mut special = self.alu(inst, "MUFU", &[B])?;
                special.text(Field::Op, func.text());
                special
            }
            Op::Fchk => {
                let mut check = self.alu(inst, "FCHK", &[A, B])?;
                check.dst(Field::Pd, inst.dsts.first());
                check
            }
            Op::Dadd { round } => {
                let mut add = self.alu(inst, "DADD", &[A, B])?;
                add.rounded(round);
                add
            }
            Op::Dmul { round } => {
                let mut mul = self.alu(inst, "DMUL", &[A, B])?;
                mul.rounded(round);
                mul
            }
            Op::Dfma { round } => {
                let mut fma = self.alu(inst, "DFMA", &[A, B, C])?;
                fma.rounded(round);
                fma
            }
            Op::Dsetp { cmp, bool_ } => {
                let mut set = self.alu(inst, "DSETP", &[A, B])?;
                set.text(Field::Cmp, cmp.text()).text(Field::Bool, bool_.text());
                self.compared(&mut set, inst);
                set
            }
            _ => return self.misplaced(inst),
        };
        self.pure(builder, inst)
    }

    /// The predicates of a comparison: two results, and the one it is combined with.
    fn compared(&self, set: &mut Builder, inst: &Inst) {
        set.dst(Field::Pd, inst.dsts.first()).dst(Field::Pq, inst.dsts.get(1));
        set.pred(Field::Pp, Field::PpNot, inst.srcs.get(2).unwrap_or(&Src::TRUE));
    }

    pub(super) fn half(&mut self, inst: &Inst) -> Result<(), CodegenError> {
        let format = |bf16| if bf16 { ".BF16_V2" } else { "" };
        let builder = match inst.op {
            Op::Hadd2 { bf16, ftz, sat, f32 } => {
                let mut add = self.alu(inst, "HADD2", &[A, B])?;
                add.text(Field::Type, format(bf16))
                    .flag(Field::High, f32)
                    .flag(Field::Ftz, ftz)
                    .flag(Field::Sat, sat);
                add
            }
            Op::Hmul2 { bf16, ftz, sat } => {
                let mut mul = self.alu(inst, "HMUL2", &[A, B])?;
                mul.text(Field::Type, format(bf16)).flag(Field::Ftz, ftz).flag(Field::Sat, sat);
                mul
            }
            Op::Hfma2 { bf16, ftz, sat, relu } => {
                let mut fma = self.alu(inst, "HFMA2", &[A, B, C])?;
                fma.text(Field::Type, format(bf16))
                    .flag(Field::Ftz, ftz)
                    .flag(Field::Sat, sat)
                    .text(Field::Relu, if relu { ".RELU" } else { "" });
                fma
            }
            Op::Hsetp2 { cmp, bf16, ftz, bool_ } => {
                let mut set = self.alu(inst, "HSETP2", &[A, B])?;
                set.text(Field::Type, format(bf16)).flag(Field::Ftz, ftz);
                set.text(Field::Cmp, cmp.text()).text(Field::Bool, bool_.text());
                self.compared(&mut set, inst);
                set
            }
            Op::Hmnmx2 { bf16, nan, ftz } => {
                let mut minmax = self.alu(inst, "HMNMX2", &[A, B])?;
                minmax.text(Field::Type, format(bf16)).flag(Field::Ftz, ftz);
                minmax.text(Field::Mode, if nan { ".NAN" } else { "" });
                minmax.pred(Field::Pp, Field::PpNot, operand(inst, 2)?);
                minmax
            }
            _ => return self.misplaced(inst),
        };
        self.pure(builder, inst)
    }

    pub(super) fn conversion(&mut self, inst: &Inst) -> Result<(), CodegenError> {
        let builder = match inst.op {
            Op::I2f { to, from, round } => {
                let mut cvt = self.int_to_float(inst, to, from)?;
                cvt.text(Field::Type, float_text(to)).text(Field::SrcType, from.text()).rounded(round);
                cvt
            }
            Op::I2fp { sign, round } => {
                let mut cvt = self.alu(inst, "I2FP.F32", &[B])?;
                cvt.value(Field::SrcType, u64::from(sign == Sign::S32)).rounded(round);
                cvt
            }
            Op::F2i { to, from, round, ftz, ntz } => {
                let mnemonic = match (is_long(to), from) {
                    (false, FloatType::F32) => "F2I",
                    (false, FloatType::F64) => "F2I.F64",
                    (false, _) => "F2I.F16",
                    (true, FloatType::F32) => "F2I.S64",
                    (true, FloatType::F64) => "F2I.S64.F64",
                    (true, _) => "F2I.S64.F16",
                };
                let mut cvt = self.alu(inst, mnemonic, &[B])?;
                cvt.text(Field::Type, to.text()).text(Field::SrcType, float_text(from));
                cvt.text(Field::Round, integral(round)).flag(Field::Ftz, ftz).flag(Field::Mode, ntz);
                cvt
            }
            Op::F2f { to, from, round, ftz, sat } => {
                let mnemonic = match (to, from) {
                    (FloatType::F64, FloatType::F32 | FloatType::F64) => "F2F.F64",
                    (FloatType::F64, _) => "F2F.F64.F16",
                    (_, FloatType::F64) => "F2F.F32.F64",
                    (_, _) => "F2F",
                };
                let mut cvt = self.alu(inst, mnemonic, &[B])?;
                cvt.text(Field::Type, to.text());
                // To halves there is a form from floats only.
                if from != FloatType::F32 || cvt.has(Field::SrcType) {
                    cvt.text(Field::SrcType, from.text());
                }
                cvt.rounded(round).flag(Field::Ftz, ftz).flag(Field::Sat, sat);
                cvt
            }
            Op::Frnd { ty, round, ftz } => {
                let mnemonic = match ty {
                    FloatType::F64 => "FRND.F64",
                    FloatType::F32 => "FRND",
                    FloatType::F16 => "FRND.F16",
                    FloatType::Bf16 => "FRND.BF16",
                };
                let mut cvt = self.alu(inst, mnemonic, &[B])?;
                cvt.text(Field::Round, integral(round)).flag(Field::Ftz, ftz);
                cvt
            }
            Op::F2fp { bf16, round, relu, sat } => {
                let mut pack = self.alu(inst, "F2FP.PACK_AB", &[A, B])?;
                pack.value(Field::Type, bf16.into()).rounded(round);
                pack.flag(Field::Relu, relu).flag(Field::Sat, sat);
                pack
            }
            _ => return self.misplaced(inst),
        };
        self.pure(builder, inst)
    }

    /// Bytes and halves have forms of their own, which take registers only.
    fn int_to_float(&self, inst: &Inst, to: FloatType, from: IntType) -> Result<Builder, CodegenError> {
        let double = to == FloatType::F64;
        let narrow = match from {
            IntType::U8 | IntType::S8 => {
                if double {
                    "I2F.F64.S8"
                } else {
                    "I2F.S8"
                }
            }
            IntType::U16 | IntType::S16 => {
                if double {
                    "I2F.F64.S16"
                } else {
                    "I2F.S16"
                }
            }
            IntType::U32 | IntType::S32 => {
                return self.alu(inst, if double { "I2F.F64" } else { "I2F" }, &[B]);
            }
            IntType::U64 | IntType::S64 => {
                return self.alu(inst, if double { "I2F.F64.S64" } else { "I2F.S64" }, &[B]);
            }
        };
        let mut cvt = self.plain(inst, narrow)?;
        cvt.reg(Field::Rb, File::R, operand(inst, 0)?);
        Ok(cvt)
    }
}

impl Builder {
    pub(super) fn rounded(&mut self, round: Round) -> &mut Builder {
        self.text(Field::Round, round.text())
    }
}

fn is_long(ty: IntType) -> bool {
    matches!(ty, IntType::U64 | IntType::S64)
}

/// The format's text where single precision is the default.
fn float_text(ty: FloatType) -> &'static str {
    if ty == FloatType::F32 { "" } else { ty.text() }
}

/// Rounding to integral values prints nothing for the nearest.
fn integral(round: IntRound) -> &'static str {
    if round == IntRound::Near { "" } else { round.text() }
}
