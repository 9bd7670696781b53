//! Single and double precision arithmetic.

use super::*;
use crate::class::Class::*;
use ImmStyle::*;

pub(super) const COMPARE: Piece = choice(Field::Cmp, 76, 4, FLOAT_COMPARE);
/// A scale factor of the product. A new instruction has none.
pub(super) const SCALE: Piece =
    choice_from(Field::Scale, 84, 3, &[BAD, ".D8", ".D4", ".D2", "", ".M2", ".M4", ".M8"], 4);
const A: Piece = source_a(Mods::NegAbs, F32);
const B: Piece = source_b(Mods::NegAbs, F32);
const C: Piece = source_c(Mods::NegAbs, F32);
const A2: Piece = pair(source_a(Mods::NegAbs, F64));
const B2: Piece = pair(source_b(Mods::NegAbs, F64));
const C2: Piece = pair(source_c(Mods::NegAbs, F64));
/// The second source of `DADD`, which is encoded like the third.
const B2_AS_C: Piece = pair(source(slot(Role::B, Place::C, Mods::NegAbs, F64)));
const B2_WIDE: Piece = pair(source_wide_c(Mods::NegAbs, F64));
/// The source of `MUFU`. For `RCP64H` and `RSQ64H`, it is the high word of a double.
const MUFU_SOURCE: Piece = source_wide(Mods::NegAbs, DoubleIn(Field::Op, 6, 7));
const BINARY: &str = "rr ri rc rx ru";
const AS_C: &str = "rr ri:2 rc:3 rx:3 ru:7";
const MULTIPLY: &str = "rrr rri rrc rrx rir rcr rxr rur rru";
const UNARY: &str = "r i c x u:6";

#[rustfmt::skip]
pub(super) const ROWS: &[Family] = &[
    Family::new("FADD", 0x021, AS_C, Fma, &[FTZ, ROUND, SAT, RD, A, source_wide_c(Mods::NegAbs, F32)]),
    Family::new("FMUL", 0x020, BINARY, Fma, &[FTZ_FMZ, SCALE, ROUND, SAT, RD, A, B]),
    Family::new("FFMA", 0x023, MULTIPLY, Fma, &[FTZ_FMZ, ROUND, SAT, RD, A, B, C]),
    Family::new("FMNMX", 0x009, BINARY, Alu, &[FTZ, since(flag(Field::Mode, 81, &["", ".NAN"]), 1, 80), since(flag(Field::Flag, 82, &["", ".XORSIGN"]), 1, 86), WHICH, RD, which(Field::Pd, 66), A, B, PP]),
    Family::new("FMNMX3", 0x076, "rrr rir rcr rur", Alu, &[FTZ, flag(Field::Mode, 81, &["", ".NAN"]), RD, A, B, C, PP]).sm(100, 110),
    Family::new("FSETP", 0x00b, BINARY, Alu, &[COMPARE, FTZ, BOOL, PD, PQ, A, B, PP]),
    Family::new("FSET", 0x00a, BINARY, Alu, &[Piece::Text(".BF"), COMPARE, FTZ, BOOL, RD, A, B, PP]),
    Family::new("FADD2", 0x04b, "rr ru:7", Fma, ADD_2).sm(100, 103),
    Family::new("FADD2", 0x04b, "ri:2", Fma, ADD_2).sm(100, 103).filled(ONE_C),
    Family::new("FMUL2", 0x04a, "rr ru", Fma, MULTIPLY_2).sm(100, 103),
    Family::new("FMUL2", 0x04a, "ri", Fma, MULTIPLY_2).sm(100, 103).filled(ONE_B),
    Family::new("FFMA2", 0x049, "rrr rur rru", Fma, MULTIPLY_ADD_2).sm(100, 103),
    Family::new("FFMA2", 0x049, "rir", Fma, MULTIPLY_ADD_2).sm(100, 103).filled(ONE_B),
    Family::new("FFMA2", 0x049, "rri", Fma, MULTIPLY_ADD_2).sm(100, 103).filled(ONE_C),
    Family::new("FHADD", 0x021, "rr ru:7", Fma, &[HALF_TYPE, ROUND, SAT, RD, half_of(Role::A, Place::A, 83), source_wide_c(Mods::NegAbs, F32)]).ones(one(81)).sm(100, 255),
    Family::new("FHFMA", 0x023, "rrr rur rru", Fma, &[HALF_TYPE, ROUND, SAT, RD, half_of(Role::A, Place::A, 83), half_of(Role::B, Place::B, 84), C])
        .ones(one(81)).sm(100, 255),
    Family::new("FSWZADD", 0x822, "", Fma, &[
        FTZ, ROUND, flag(Field::Mode, 77, &["", ".NDV"]), RD, RA, op(RegOperand { role: Role::B, ..RC_OPERAND }), Piece::Op(Operand::Signs(FieldSpec::new(Field::Imm32, 32, 8))),
    ]),
    Family::new("FCHK", 0x102, BINARY, Xu, &[PD, A, source_wide(Mods::NegAbs, F32)]),
    Family::new("MUFU", 0x108, UNARY, Xu, &[choice(Field::Op, 74, 4, MUFU), RD, MUFU_SOURCE]),
    Family::new("MUFU.F16", 0x108, UNARY, Xu, &[choice(Field::Op, 74, 4, MUFU_HALF), Piece::Text(".F16"), RD, MUFU_HALF_SOURCE]).ones(one(73)).sm(75, 89),
    Family::new("MUFU.F16", 0x108, UNARY, Xu, &[
        choice(Field::Op, 74, 4, MUFU_HALF), choice_from(Field::Type, 72, 2, &[BAD, ".F16", ".BF16", BAD], 1), RD, MUFU_HALF_SOURCE,
    ]).sm(90, 255),
    Family::new("MUFU.F16x2", 0x108, "r u:6", Xu, &[
        choice_from(Field::Op, 74, 4, &[BAD, BAD, ".EX2"], 2),
        Piece::Mod(FieldSpec::new(Field::Type, 72, 2).high(80, 1).choice(&[BAD, BAD, BAD, ".F16x2", ".BF16x2"]).neutral(3)),
        RD, MUFU_SOURCE,
    ]).sm(103, 103),
    Family::new("DADD", 0x029, AS_C, Fp64, &[ROUND, RD2, A2, B2_AS_C]),
    Family::new("DMUL", 0x028, BINARY, Fp64, &[ROUND, RD2, A2, B2]),
    Family::new("DFMA", 0x02b, MULTIPLY, Fp64, &[ROUND, RD2, A2, B2, C2]),
    Family::new("DSETP", 0x02a, AS_C, Fp64Compare, &[
        choice(Field::Cmp, 76, 4, DOUBLE_COMPARE), BOOL, PD, PQ, A2, B2_WIDE, PP,
    ]),
];

const MUFU_HALF: &[&str] = &[
    ".COS", ".SIN", ".EX2", ".LG2", ".RCP", ".RSQ", BAD, BAD, ".SQRT", ".TANH", BAD, BAD, BAD, BAD, BAD, BAD,
];
const MUFU_HALF_SOURCE: Piece = source(Slot {
    suffix: Some(FieldSpec::new(Field::SwizzleB, 60, 2).choice(&["", ".H1", BAD, BAD])),
    ..slot(Role::B, Place::Wide, Mods::NegAbs, HalfWord(Field::Type, 2))
});

/// The type of instructions that mix half and single precision.
pub(super) const HALF_TYPE: Piece = flag(Field::Type, 82, &["", ".BF16"]);

/// The lower half of a source, or the upper half if the bit is set.
pub(super) const fn half_of(role: Role, place: Place, bit: u8) -> Piece {
    let field = if matches!(role, Role::A) { Field::SwizzleA } else { Field::SwizzleB };
    source(Slot {
        suffix: Some(FieldSpec::new(field, bit, 1).choice(&["", ".H1"])),
        ..slot(role, place, Mods::NegAbs, F32)
    })
}

/// Which single of a pair each half of the result uses. A single register serves for both.
const LANES: &[&str] =
    &[".F32x2.HI_LO", ".F32x2.LO_HI", ".F32", BAD, ".F32x2.HI_LO.NP", ".F32x2.LO_HI.NP", ".F32.NP", BAD];
const LANE_COUNT: &[u8] = &[2, 2, 1, 1, 2, 2, 1, 1];
const A_OF_2: Piece = two_of(Role::A, Place::A, 81);
const B_OF_2: Piece = source(Slot {
    count: Count::By(Field::SwizzleB, LANE_COUNT),
    suffix: Some(FieldSpec::new(Field::SwizzleB, 87, 2).choice(LANES.split_at(4).0)),
    ..slot(Role::B, Place::B, Mods::NegAbs, F32)
});

/// A pair of singles whose lanes are encoded at bit `lanes`.
const fn two_of(role: Role, place: Place, lanes: u8) -> Piece {
    let field = match role {
        Role::A => Field::SwizzleA,
        Role::B => Field::SwizzleB,
        _ => Field::SwizzleC,
    };
    source(Slot {
        count: Count::By(field, LANE_COUNT),
        suffix: Some(FieldSpec::new(field, lanes, 3).choice(LANES)),
        ..slot(role, place, Mods::NegAbs, F32)
    })
}

const ADD_2: &[Piece] = &[FTZ, ROUND, RD2, A_OF_2, two_of(Role::B, Place::WideC, 84)];
const MULTIPLY_2: &[Piece] = &[FTZ_FMZ, ROUND, RD2, A_OF_2, B_OF_2];
const MULTIPLY_ADD_2: &[Piece] = &[FTZ_FMZ, ROUND, RD2, A_OF_2, B_OF_2, two_of(Role::C, Place::C, 84)];
/// An immediate is one number for both lanes, and the text does not show its lanes. These fixed bits set the lanes of
/// the second source, and those of a source encoded like the third.
const ONE_B: u128 = one(88);
const ONE_C: u128 = one(85);

const MUFU: &[&str] = &[
    ".COS", ".SIN", ".EX2", ".LG2", ".RCP", ".RSQ", ".RCP64H", ".RSQ64H", ".SQRT", ".TANH", BAD, BAD, BAD,
    BAD, BAD, BAD,
];
/// The codes for "never" and "always" stand for the comparisons that select a minimum or a maximum.
const DOUBLE_COMPARE: &[&str] = &[
    ".MIN", ".LT", ".EQ", ".LE", ".GT", ".NE", ".GE", ".NUM", ".NAN", ".LTU", ".EQU", ".LEU", ".GTU", ".NEU",
    ".GEU", ".MAX",
];
