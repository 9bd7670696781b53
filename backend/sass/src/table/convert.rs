//! Conversions between formats.

use super::*;
use crate::class::Class::*;
use ImmStyle::*;

const FLOAT_ROUND: Piece = ROUND;
const TO_INTEGRAL: Piece = choice(Field::Round, 78, 2, &["", ".FLOOR", ".CEIL", ".TRUNC"]);
const NTZ: Piece = flag(Field::Mode, 77, &["", ".NTZ"]);
const FLOAT: Piece = source_wide(Mods::NegAbs, F32);
const DOUBLE: Piece = pair(source_wide(Mods::NegAbs, F64));
const INT: Piece = source_wide(Mods::None, SignedBy(Field::SrcType));
const LONG: Piece = pair(source_wide(Mods::None, SignedBy(Field::SrcType)));
const UNARY: &str = "r i c x u:6";
/// The operand forms that select a byte or a half of a source that is not a general register.
const PARTS: &str = "c:5 x:5 u:6";
/// A half as a source. A register has two.
pub(super) const HALF: Piece = source(Slot {
    suffix: Some(FieldSpec::new(Field::SwizzleB, 60, 2).choice(HALF_SELECT)),
    ..slot(Role::B, Place::Wide, Mods::NegAbs, HalfWord(Field::SrcType, 4))
});

const fn integer_type(
    field: Field,
    sign: u8,
    size: u8,
    texts: &'static [&'static str],
    neutral: u64,
) -> Piece {
    Piece::Mod(FieldSpec::new(field, sign, 1).high(size, 2).choice(texts).neutral(neutral))
}

/// The low bit is the sign, the other bits are the size.
pub(super) const WORDS: &[&str] = &[".U8", ".S8", ".U16", ".S16", ".U32", "", BAD, BAD];
const LONGS: &[&str] = &[BAD, BAD, BAD, BAD, BAD, BAD, ".U64", ".S64"];
pub(super) const WORD32: &[&str] = &[BAD, BAD, BAD, BAD, ".U32", "", BAD, BAD];
const BYTES: &[&str] = &[".U8", ".S8", BAD, BAD, BAD, BAD, BAD, BAD];
const HALVES: &[&str] = &[BAD, BAD, ".U16", ".S16", BAD, BAD, BAD, BAD];
const DOUBLE_ONLY: &[&str] = &[BAD, BAD, BAD, ".F64", BAD, BAD, BAD, BAD];
/// Formats of at most 32 bits. Single precision is the default and is not printed.
const SINGLES: &[&str] = &[BAD, ".F16", "", BAD, ".BF16", BAD, BAD, BAD];
const SINGLE_ONLY: &[&str] = &[BAD, BAD, "", BAD, BAD, BAD, BAD, BAD];
const F32_ONLY: &[&str] = &[BAD, BAD, ".F32", BAD, BAD, BAD, BAD, BAD];
const F16_ONLY: &[&str] = &[BAD, ".F16", BAD, BAD, BAD, BAD, BAD, BAD];
const BF16_ONLY: &[&str] = &[BAD, BAD, BAD, BAD, ".BF16", BAD, BAD, BAD];
const HALF_ONLY: &[&str] = &[BAD, ".F16", BAD, BAD, ".BF16", BAD, BAD, BAD];
const SHORT: &[&str] = &[BAD, ".F16", ".F32", BAD, ".BF16", BAD, BAD, BAD];

const fn to_int(texts: &'static [&'static str], neutral: u64) -> Piece {
    integer_type(Field::Type, 72, 75, texts, neutral)
}

const fn from_int(texts: &'static [&'static str], neutral: u64) -> Piece {
    integer_type(Field::SrcType, 74, 84, texts, neutral)
}

const fn float_type(field: Field, lo: u8, texts: &'static [&'static str], neutral: u64) -> Piece {
    // Conversions support bfloat16 only from sm_90 on.
    since(choice_from(field, lo, 3, texts, neutral), 4, 90)
}

const BYTE_SELECT: &[&str] = &["", ".B1", ".B2", ".B3"];
const HALF_SELECT: &[&str] = &["", ".H1", BAD, BAD];

/// A byte or half of a register as a source.
const fn part(texts: &'static [&'static str]) -> Piece {
    op(RegOperand { suffix: Some(FieldSpec::new(Field::SwizzleB, 60, 2).choice(texts)), ..RB_OPERAND })
}

/// The half of a register that a packing conversion keeps.
pub(super) const C_HALF_FLOAT: Piece = source(Slot {
    suffix: Some(FieldSpec::new(Field::SwizzleC, 72, 1).choice(&["", ".H1"])),
    ..slot(Role::C, Place::C, Mods::None, F32)
});
/// The same of a constant or a uniform register.
const fn part_of(texts: &'static [&'static str]) -> Piece {
    source(Slot {
        suffix: Some(FieldSpec::new(Field::SwizzleB, 60, 2).choice(texts)),
        ..slot(Role::B, Place::Wide, Mods::None, Hex)
    })
}

#[rustfmt::skip]
pub(super) const ROWS: &[Family] = &[
    Family::new("F2I", 0x105, UNARY, Xu, &[FTZ, to_int(WORDS, 5), float_type(Field::SrcType, 84, SINGLE_ONLY, 2), TO_INTEGRAL, NTZ, RD, FLOAT]),
    Family::new("F2I.F16", 0x105, UNARY, Xu, &[FTZ, to_int(WORDS, 5), float_type(Field::SrcType, 84, HALF_ONLY, 1), TO_INTEGRAL, NTZ, RD, HALF]),
    Family::new("F2I.F64", 0x111, UNARY, Xu, &[FTZ, to_int(WORDS, 5), float_type(Field::SrcType, 84, DOUBLE_ONLY, 3), TO_INTEGRAL, NTZ, RD, DOUBLE]),
    Family::new("F2I.S64", 0x111, UNARY, Xu, &[FTZ, to_int(LONGS, 7), float_type(Field::SrcType, 84, SINGLE_ONLY, 2), TO_INTEGRAL, NTZ, RD2, FLOAT]),
    Family::new("F2I.S64.F16", 0x111, UNARY, Xu, &[FTZ, to_int(LONGS, 7), float_type(Field::SrcType, 84, HALF_ONLY, 1), TO_INTEGRAL, NTZ, RD2, HALF]),
    Family::new("F2I.S64.F64", 0x111, UNARY, Xu, &[FTZ, to_int(LONGS, 7), float_type(Field::SrcType, 84, DOUBLE_ONLY, 3), TO_INTEGRAL, NTZ, RD2, DOUBLE]),
    Family::new("I2F", 0x106, UNARY, Xu, &[float_type(Field::Type, 75, SINGLES, 2), from_int(WORD32, 5), FLOAT_ROUND, RD, INT]),
    Family::new("I2F.S8", 0x106, PARTS, Xu, &[float_type(Field::Type, 75, SINGLES, 2), from_int(BYTES, 1), FLOAT_ROUND, RD, part_of(BYTE_SELECT)]),
    Family::new("I2F.S8", 0x306, "", Xu, &[float_type(Field::Type, 75, SINGLES, 2), from_int(BYTES, 1), FLOAT_ROUND, RD, part(BYTE_SELECT)]).labelled("r"),
    Family::new("I2F.S16", 0x106, PARTS, Xu, &[float_type(Field::Type, 75, SINGLES, 2), from_int(HALVES, 3), FLOAT_ROUND, RD, part_of(HALF_SELECT)]),
    Family::new("I2F.S16", 0x306, "", Xu, &[float_type(Field::Type, 75, SINGLES, 2), from_int(HALVES, 3), FLOAT_ROUND, RD, part(HALF_SELECT)]).labelled("r"),
    Family::new("I2F.S64", 0x112, UNARY, Xu, &[float_type(Field::Type, 75, SINGLES, 2), from_int(LONGS, 7), FLOAT_ROUND, RD, LONG]),
    Family::new("I2F.F64", 0x112, UNARY, Xu, &[float_type(Field::Type, 75, DOUBLE_ONLY, 3), from_int(WORD32, 5), FLOAT_ROUND, RD2, INT]),
    Family::new("I2F.F64.S64", 0x112, UNARY, Xu, &[float_type(Field::Type, 75, DOUBLE_ONLY, 3), from_int(LONGS, 7), FLOAT_ROUND, RD2, LONG]),
    Family::new("I2F.F64.S8", 0x112, PARTS, Xu, &[float_type(Field::Type, 75, DOUBLE_ONLY, 3), from_int(BYTES, 1), FLOAT_ROUND, RD2, part_of(BYTE_SELECT)]),
    Family::new("I2F.F64.S8", 0x312, "", Xu, &[float_type(Field::Type, 75, DOUBLE_ONLY, 3), from_int(BYTES, 1), FLOAT_ROUND, RD2, part(BYTE_SELECT)]).labelled("r"),
    Family::new("I2F.F64.S16", 0x112, PARTS, Xu, &[float_type(Field::Type, 75, DOUBLE_ONLY, 3), from_int(HALVES, 3), FLOAT_ROUND, RD2, part_of(HALF_SELECT)]),
    Family::new("I2F.F64.S16", 0x312, "", Xu, &[float_type(Field::Type, 75, DOUBLE_ONLY, 3), from_int(HALVES, 3), FLOAT_ROUND, RD2, part(HALF_SELECT)]).labelled("r"),
    Family::new("F2F", 0x104, UNARY, Xu, &[FTZ, since(choice_from(Field::Type, 75, 3, HALF_ONLY, 1), 4, 80), Piece::Text(".F32"), FLOAT_ROUND, RD, FLOAT]).ones(2 << 84),
    Family::new("F2F.F32.F16", 0x104, UNARY, Xu, &[FTZ, float_type(Field::Type, 75, F32_ONLY, 2), float_type(Field::SrcType, 84, HALF_ONLY, 1), FLOAT_ROUND, RD, HALF]),
    Family::new("F2F.F16.BF16", 0x104, UNARY, Xu, &[FTZ, float_type(Field::Type, 75, F16_ONLY, 1), float_type(Field::SrcType, 84, BF16_ONLY, 4), FLOAT_ROUND, RD, HALF]).sm(90, 255),
    Family::new("F2F.BF16.F16", 0x104, UNARY, Xu, &[FTZ, float_type(Field::Type, 75, BF16_ONLY, 4), float_type(Field::SrcType, 84, F16_ONLY, 1), FLOAT_ROUND, RD, HALF]).sm(90, 255),
    Family::new("F2F.F64", 0x110, UNARY, Xu, &[FTZ, float_type(Field::Type, 75, DOUBLE_ONLY, 3), float_type(Field::SrcType, 84, F32_ONLY, 2), FLOAT_ROUND, RD2, FLOAT]),
    Family::new("F2F.F64.F16", 0x110, UNARY, Xu, &[FTZ, float_type(Field::Type, 75, DOUBLE_ONLY, 3), float_type(Field::SrcType, 84, HALF_ONLY, 1), FLOAT_ROUND, RD2, HALF]),
    Family::new("F2F.F32.F64", 0x110, UNARY, Xu, &[FTZ, float_type(Field::Type, 75, SHORT, 2), float_type(Field::SrcType, 84, DOUBLE_ONLY, 3), FLOAT_ROUND, RD, DOUBLE]),
    Family::new("FRND", 0x107, UNARY, Xu, &[FTZ, TO_INTEGRAL, RD, FLOAT]).ones(2 << 75 | 2 << 84).reserved(one(84)),
    Family::new("FRND.F16", 0x107, UNARY, Xu, &[FTZ, Piece::Text(".F16"), float_type(Field::SrcType, 84, &[BAD, ""], 1), TO_INTEGRAL, RD, HALF]).ones(one(75)),
    Family::new("FRND.BF16", 0x107, UNARY, Xu, &[FTZ, Piece::Text(".BF16"), float_type(Field::SrcType, 84, &[BAD, BAD, BAD, BAD, ""], 4), TO_INTEGRAL, RD, HALF])
        .ones(4 << 75).sm(90, 255),
    Family::new("FRND.F64", 0x113, UNARY, Xu, &[FTZ, Piece::Text(".F64"), TO_INTEGRAL, RD2, DOUBLE]).ones(3 << 75 | 3 << 84),
    Family::new("F2IP", 0x043, "rrr rri rrc rrx rir rcr rxr rur rru", Alu, &[
        choice(Field::Type, 76, 2, &[".U8", ".S8", BAD, BAD]), Piece::Text(".F32"), choice(Field::Round, 78, 2, &["", BAD, BAD, ".TRUNC"]),
        flag(Field::Mode, 74, &["", ".NTZ"]), RELU, RD, source_a(Mods::None, F32), source_b(Mods::None, F32), C_HALF_FLOAT,
    ]).sm(86, 255),
    Family::new("I2FP.F16x2", 0x045, "r:2 u:7", Alu, &[
        Piece::Text(".F16x2"), flag(Field::SrcType, 74, &[".U4x2", ".S4x2"]), choice(Field::Round, 78, 2, &["", BAD, BAD, ".RZ"]), RD,
        source(Slot { suffix: Some(FieldSpec::new(Field::SwizzleB, 80, 2).choice(BYTE_SELECT)), ..slot(Role::B, Place::Wide, Mods::None, Hex) }),
    ]).sm(100, 103),
    Family::new("I2FP.F32", 0x045, UNARY, Alu, &[Piece::Text(".F32"), flag(Field::SrcType, 74, &[".U32", ".S32"]), choice(Field::Round, 78, 2, &["", BAD, BAD, ".RZ"]), RD, INT]).ones(one(76) | one(85)).sm(86, 255).reserved(one(75) | one(77) | one(84)),
];

const RELU: Piece = flag(Field::Relu, 75, &["", ".RELU"]);
