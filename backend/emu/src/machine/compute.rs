//! The computations of machine instructions, with everything that their encodings select.

pub(super) mod pack;

use crate::float::{Format, Rounding};
use sass::{Field, Inst};

/// A computation, with everything that its encoding selects besides operands.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Compute {
    Mov,
    Mov64,
    Sel,
    Sel64,
    Iadd64 {
        x: bool,
    },
    Imnmx64 {
        signed: bool,
    },
    Isetp64 {
        cmp: u8,
        signed: bool,
        combine: u8,
    },
    Fsel {
        ftz: bool,
    },
    Prmt {
        mode: u8,
    },
    P2r {
        byte: u8,
    },
    R2p {
        byte: u8,
    },
    Iadd3 {
        x: bool,
    },
    Imad {
        x: bool,
    },
    ImadWide {
        signed: bool,
        x: bool,
    },
    ImadHi {
        signed: bool,
        x: bool,
    },
    Lea {
        shift: u8,
        x: bool,
    },
    LeaHi {
        shift: u8,
        x: bool,
        sign: bool,
    },
    Lop3 {
        lut: u8,
        and: bool,
    },
    Plop3 {
        lut: u8,
        lut2: u8,
        uniform_s: bool,
    },
    Plop3Sign {
        lut: u8,
        lut2: u8,
    },
    Shf {
        right: bool,
        wrap: bool,
        high: bool,
        ty: u8,
    },
    Isetp {
        cmp: u8,
        signed: bool,
        combine: u8,
        extended: bool,
    },
    Imnmx {
        signed: bool,
    },
    Vimnmx {
        ty: u8,
        relu: bool,
    },
    Iabs,
    Vimnmx3 {
        ty: u8,
        relu: bool,
    },
    Viaddmnmx {
        ty: u8,
        relu: bool,
    },
    /// Sums in one, two or four lanes.
    Viadd {
        bits: u32,
        signed: bool,
        limits: bool,
    },
    Popc,
    Flo {
        signed: bool,
        shift: bool,
    },
    Brev,
    Sgxt {
        signed: bool,
        wrap: bool,
    },
    Bmsk {
        wrap: bool,
    },
    Idp {
        mode: u8,
        a_signed: bool,
        b_signed: bool,
    },
    Vabsdiff {
        signed: bool,
    },
    Vabsdiff4 {
        signed: bool,
        adds: bool,
    },
    I2i {
        ty: u8,
    },
    Fadd(Mode),
    Fmul(Mode, u8),
    Ffma(Mode),
    Fmnmx {
        ftz: bool,
        nan: bool,
        xor: bool,
    },
    Fsetp {
        cmp: u8,
        ftz: bool,
        combine: u8,
    },
    Fset {
        cmp: u8,
        ftz: bool,
        combine: u8,
    },
    Fchk,
    Mufu(u8),
    Dadd(Mode),
    Dmul(Mode),
    Dfma(Mode),
    Dsetp {
        cmp: u8,
        combine: u8,
    },
    Hadd2 {
        format: Format,
        mode: Mode,
        single: bool,
    },
    Hmul2 {
        format: Format,
        mode: Mode,
    },
    Hfma2 {
        format: Format,
        mode: Mode,
        relu: bool,
    },
    Hmnmx2 {
        format: Format,
        nan: bool,
        ftz: bool,
        xor: bool,
    },
    F2i {
        from: Format,
        ty: u8,
        long: bool,
        mode: Rounding,
        ftz: bool,
    },
    I2f {
        to: Format,
        ty: u8,
        mode: Rounding,
    },
    F2f {
        from: Format,
        to: Format,
        mode: Rounding,
        ftz: bool,
    },
    Frnd {
        format: Format,
        mode: Rounding,
        ftz: bool,
    },
    F2ip {
        signed: bool,
        mode: Rounding,
    },
    I2ip {
        bits: u32,
        signed: bool,
    },
    Pack(pack::Pack),
    /// A single-precision sum whose first summand is a half.
    Fhadd {
        half: Format,
        mode: Mode,
    },
    Fhfma {
        half: Format,
        mode: Mode,
    },
    Fadd2(Mode),
    Fmul2(Mode),
    Ffma2(Mode),
    Fmnmx3 {
        ftz: bool,
        nan: bool,
    },
    /// A function of a half.
    MufuHalf {
        op: u8,
        format: Format,
    },
    Hset2 {
        format: Format,
        cmp: u8,
        ftz: bool,
        combine: u8,
        /// A true result is 1.0; otherwise it is a mask of ones.
        ones: bool,
    },
    Hsetp2 {
        format: Format,
        cmp: u8,
        ftz: bool,
        combine: u8,
    },
}

/// How a floating-point result is rounded.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Mode {
    pub(super) round: Rounding,
    pub(super) ftz: bool,
    /// Zero times anything is zero.
    pub(super) fmz: bool,
    pub(super) sat: bool,
}

pub(super) fn rounding(raw: u64) -> Rounding {
    [Rounding::Nearest, Rounding::Down, Rounding::Up, Rounding::Zero][raw as usize & 3]
}

fn format_of(text: &str) -> Option<Format> {
    use crate::float::{BF16, F16, F32, F64};
    Some(match text {
        ".F16" => F16,
        ".BF16" | ".BF16_V2" => BF16,
        "" | ".F32" => F32,
        ".F64" => F64,
        _ => return None,
    })
}

impl Compute {
    /// `None` if the emulator does not execute the instruction.
    pub(super) fn of(inst: &Inst) -> Option<Compute> {
        use crate::float::{BF16, F16, F32, F64};
        let get = |field| inst.get(field).unwrap_or(0);
        let flag = |field| get(field) == 1;
        let byte = |field| get(field) as u8;
        let text = |field| inst.text(field).unwrap_or("");
        let round = rounding(get(Field::Round));
        let ftz = get(Field::Ftz) >= 1;
        let mode = Mode { round, ftz, fmz: get(Field::Ftz) == 2, sat: flag(Field::Sat) };
        let x = flag(Field::Extend);
        let signed = get(Field::Signed) == 1;
        let combine = byte(Field::Bool);
        let half = if text(Field::Type) == ".BF16_V2" { BF16 } else { F16 };
        let mixed = if text(Field::Type) == ".BF16" { BF16 } else { F16 };
        let name = inst.form().name;
        let (name, uniform) = match name.strip_prefix('U') {
            Some(rest) => (rest, true),
            None => (name, false),
        };
        Some(match name {
            // In the lanes that the step gives.
            "MOV" => Compute::Mov,
            "MOV.64" => Compute::Mov64,
            "SEL" => Compute::Sel,
            "SEL.64" => Compute::Sel64,
            "IADD.64" | "IADD3.64" => Compute::Iadd64 { x },
            "ISETP.64" if !x => Compute::Isetp64 { cmp: byte(Field::Cmp), signed, combine },
            "FSEL" => Compute::Fsel { ftz },
            "PRMT" => Compute::Prmt { mode: byte(Field::Mode) },
            "P2R" | "P2UR" => Compute::P2r { byte: byte(Field::Mode) },
            "R2P" | "R2UP" => Compute::R2p { byte: byte(Field::Mode) },
            "IADD3" | "IADD" => Compute::Iadd3 { x },
            "IMAD" => Compute::Imad { x },
            "IMAD.WIDE" => Compute::ImadWide { signed, x },
            "IMAD.HI" => Compute::ImadHi { signed, x },
            "LEA" => Compute::Lea { shift: byte(Field::Imm2), x },
            "LEA.HI" => Compute::LeaHi { shift: byte(Field::Imm2), x, sign: false },
            "LEA.HI.SX32" => Compute::LeaHi { shift: byte(Field::Imm2), x, sign: true },
            "LOP3" => Compute::Lop3 { lut: byte(Field::Lut), and: flag(Field::Mode) },
            "PLOP3" => Compute::Plop3 {
                lut: byte(Field::Lut),
                lut2: byte(Field::Lut2),
                uniform_s: inst.form().shape == "u",
            },
            "PLOP3.SIGN" => Compute::Plop3Sign { lut: byte(Field::Lut), lut2: byte(Field::Lut2) },
            "SHF" => Compute::Shf {
                right: flag(Field::Right),
                wrap: flag(Field::Wrap),
                high: flag(Field::High),
                ty: byte(Field::Type),
            },
            "ISETP" => Compute::Isetp { cmp: byte(Field::Cmp), signed, combine, extended: x },
            "VIMNMX3" => Compute::Vimnmx3 { ty: byte(Field::Type), relu: flag(Field::Relu) },
            "VIADDMNMX" => Compute::Viaddmnmx { ty: byte(Field::Type), relu: flag(Field::Relu) },
            "IMNMX" if !inst.has(Field::Pd) => Compute::Imnmx { signed },
            "IMNMX" if get(Field::Pd) == 7 && text(Field::Type).ends_with("64") => {
                Compute::Imnmx64 { signed: text(Field::Type) == ".S64" }
            }
            "IMNMX" if get(Field::Pd) == 7 => Compute::Imnmx { signed: text(Field::Type) != ".U32" },
            "VIMNMX" if inst.get(Field::Pd).is_none_or(|p| p == 7) => {
                Compute::Vimnmx { ty: byte(Field::Type), relu: flag(Field::Relu) }
            }
            "VIADD" => {
                let (bits, signed) = match byte(Field::Type) {
                    0 => (32, false),
                    1 => (16, false),
                    2 => (32, true),
                    3 => (16, true),
                    4 => (8, false),
                    5 => (8, true),
                    _ => return None,
                };
                Compute::Viadd { bits, signed, limits: flag(Field::Sat) }
            }
            "IABS" => Compute::Iabs,
            "POPC" => Compute::Popc,
            "FLO" if get(Field::Pd) == 7 => Compute::Flo { signed, shift: flag(Field::Mode) },
            "BREV" => Compute::Brev,
            "SGXT" => Compute::Sgxt { signed, wrap: flag(Field::Wrap) },
            "BMSK" => Compute::Bmsk { wrap: flag(Field::Wrap) },
            "IDP" => Compute::Idp {
                mode: byte(Field::Mode),
                a_signed: flag(Field::SrcType),
                b_signed: flag(Field::SrcType2),
            },
            "VABSDIFF4" if get(Field::Pd) == 7 => Compute::Vabsdiff4 { signed, adds: flag(Field::Mode) },
            "VABSDIFF" if get(Field::Pd) == 7 => Compute::Vabsdiff { signed },
            "I2I" => Compute::I2i { ty: byte(Field::Type) },
            "FADD" => Compute::Fadd(mode),
            "FMUL" => Compute::Fmul(mode, byte(Field::Scale)),
            "FFMA" => Compute::Ffma(mode),
            // The predicate that says which source is the result is not implemented.
            "FMNMX" | "HMNMX2" if inst.register(Field::Pd).is_some() => return None,
            "FMNMX" => Compute::Fmnmx { ftz, nan: flag(Field::Mode), xor: flag(Field::Flag) },
            "FSETP" => Compute::Fsetp { cmp: byte(Field::Cmp), ftz, combine },
            "FSET" => Compute::Fset { cmp: byte(Field::Cmp), ftz, combine },
            "FCHK" => Compute::Fchk,
            "MUFU" => Compute::Mufu(byte(Field::Op)),
            "DADD" => Compute::Dadd(mode),
            "DMUL" => Compute::Dmul(mode),
            "DFMA" => Compute::Dfma(mode),
            "DSETP" => Compute::Dsetp { cmp: byte(Field::Cmp), combine },
            "HADD2" => Compute::Hadd2 { format: half, mode, single: flag(Field::High) },
            "HMUL2" if !flag(Field::High) => Compute::Hmul2 { format: half, mode },
            // The NaN that is loaded for elements outside of a tensor is not documented.
            "HFMA2" if text(Field::Ftz) == ".OOB" => return None,
            "HFMA2" | "HFMA2.MMA" if text(Field::Type) != ".F32" => {
                Compute::Hfma2 { format: half, mode, relu: get(Field::Relu) != 0 }
            }
            "HMNMX2" => Compute::Hmnmx2 { format: half, nan: flag(Field::Mode), ftz, xor: flag(Field::Flag) },
            "F2I.F16" | "F2I.S64.F16" if get(Field::SwizzleB) != 0 => return None,
            "F2I" | "F2I.F64" | "F2I.F16" | "F2I.S64" | "F2I.S64.F64" | "F2I.S64.F16" => Compute::F2i {
                from: format_of(text(Field::SrcType))?,
                ty: byte(Field::Type),
                long: name.contains("S64"),
                mode: round,
                ftz,
            },
            "I2F" | "I2F.S8" | "I2F.S16" | "I2F.S64" | "I2F.F64" | "I2F.F64.S64" | "I2F.F64.S8"
            | "I2F.F64.S16" => {
                Compute::I2f { to: format_of(text(Field::Type))?, ty: byte(Field::SrcType), mode: round }
            }
            "I2FP.F32" => Compute::I2f { to: F32, ty: 4 + byte(Field::SrcType), mode: round },
            "F2F" => Compute::F2f { from: F32, to: format_of(text(Field::Type))?, mode: round, ftz },
            "F2F.F64" | "F2F.F64.F16" => {
                Compute::F2f { from: format_of(text(Field::SrcType))?, to: F64, mode: round, ftz }
            }
            "F2F.F32.F16" | "F2F.F16.BF16" | "F2F.BF16.F16" => Compute::F2f {
                from: format_of(text(Field::SrcType))?,
                to: format_of(text(Field::Type))?,
                mode: round,
                ftz,
            },
            "F2F.F32.F64" => Compute::F2f { from: F64, to: format_of(text(Field::Type))?, mode: round, ftz },
            "FRND" => Compute::Frnd { format: F32, mode: round, ftz },
            "FRND.F16" => Compute::Frnd { format: F16, mode: round, ftz },
            "FRND.BF16" => Compute::Frnd { format: BF16, mode: round, ftz },
            "FRND.F64" => Compute::Frnd { format: F64, mode: round, ftz },
            "F2IP" if get(Field::Relu) == 0 && flag(Field::Mode) => {
                Compute::F2ip { signed: get(Field::Type) == 1, mode: round }
            }
            "I2IP" if inst.text(Field::Sat).is_none_or(|text| text == ".SAT") => {
                let ty = byte(Field::Type);
                Compute::I2ip { bits: [8, 16, 2, 4][usize::from(ty >> 1) & 3], signed: ty & 1 == 1 }
            }
            "FHADD" => Compute::Fhadd { half: mixed, mode },
            "FHFMA" => Compute::Fhfma { half: mixed, mode },
            "FADD2" | "FMUL2" | "FFMA2"
                if [Field::SwizzleA, Field::SwizzleB, Field::SwizzleC]
                    .iter()
                    .any(|&lanes| get(lanes) > 2) =>
            {
                return None;
            }
            "FADD2" => Compute::Fadd2(mode),
            "FMUL2" => Compute::Fmul2(mode),
            "FFMA2" => Compute::Ffma2(mode),
            "FMNMX3" => Compute::Fmnmx3 { ftz, nan: flag(Field::Mode) },
            "MUFU.F16" => Compute::MufuHalf {
                op: byte(Field::Op),
                format: if text(Field::Type) == ".BF16" { BF16 } else { F16 },
            },
            "HSET2" => {
                Compute::Hset2 { format: half, cmp: byte(Field::Cmp), ftz, combine, ones: flag(Field::Flag) }
            }
            "HSETP2" if !flag(Field::Flag) => {
                Compute::Hsetp2 { format: half, cmp: byte(Field::Cmp), ftz, combine }
            }
            _ if name.starts_with("F2FP.") => Compute::Pack(pack::Pack::of(name, inst)?),
            _ => {
                let _ = uniform;
                return None;
            }
        })
    }
}
