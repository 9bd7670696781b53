//! Conversions between formats.

use super::*;
use crate::class::Class::*;
use ImmStyle::*;

const FLOAT_ROUND: Piece = ROUND;
const TO_INTEGRAL: Piece = choice(Field::Round, 78, 2, &["", ".FLOOR", ".CEIL", ".TRUNC"]);
const NTZ: Piece = flag(Field::Mode, 77, &["", ".NTZ"]);
const FLOAT: Piece = source_wide(Mods::NegAbs, F32);
const DOUBLE: Piece = pair(source_wide(Mods::NegAbs, F64));
const INT: Piece = source_wide(Mods::None, SignedHex);
const LONG: Piece = pair(source_wide(Mods::None, SignedHex));
const UNARY: &str = "r i c u:6";

const fn integer_type(
    field: Field,
    sign: u8,
    size: u8,
    texts: &'static [&'static str],
    neutral: u64,
) -> Piece {
    Piece::Mod(FieldSpec::new(field, sign, 1).high(size, 2).choice(texts).neutral(neutral))
}

/// Sign in the low bit, size in the others.
const WORDS: &[&str] = &[".U8", ".S8", ".U16", ".S16", ".U32", "", BAD, BAD];
const LONGS: &[&str] = &[BAD, BAD, BAD, BAD, BAD, BAD, ".U64", ".S64"];
const WORD32: &[&str] = &[BAD, BAD, BAD, BAD, ".U32", "", BAD, BAD];
const BYTES: &[&str] = &[".U8", ".S8", BAD, BAD, BAD, BAD, BAD, BAD];
const HALVES: &[&str] = &[BAD, BAD, ".U16", ".S16", BAD, BAD, BAD, BAD];
const DOUBLE_ONLY: &[&str] = &[BAD, BAD, BAD, ".F64", BAD, BAD, BAD, BAD];
/// Formats of at most 32 bits, where single precision goes without saying.
const SINGLES: &[&str] = &[BAD, ".F16", "", BAD, ".BF16", BAD, BAD, BAD];
const HALF_ONLY: &[&str] = &[BAD, ".F16", BAD, BAD, ".BF16", BAD, BAD, BAD];
const SHORT: &[&str] = &[BAD, ".F16", ".F32", BAD, ".BF16", BAD, BAD, BAD];

const fn to_int(texts: &'static [&'static str], neutral: u64) -> Piece {
    integer_type(Field::Type, 72, 75, texts, neutral)
}

const fn from_int(texts: &'static [&'static str], neutral: u64) -> Piece {
    integer_type(Field::SrcType, 74, 84, texts, neutral)
}

const fn float_type(field: Field, lo: u8, texts: &'static [&'static str], neutral: u64) -> Piece {
    // Bfloat16 came late to the conversions.
    since(choice_from(field, lo, 3, texts, neutral), 4, 90)
}

const BYTE_SELECT: &[&str] = &["", ".B1", ".B2", ".B3"];
const HALF_SELECT: &[&str] = &["", ".H1", BAD, BAD];

/// A byte or half of a register as a source.
const fn part(texts: &'static [&'static str]) -> Piece {
    op(RegOperand { suffix: Some(FieldSpec::new(Field::SwizzleB, 60, 2).choice(texts)), ..RB_OPERAND })
}

#[rustfmt::skip]
pub(super) const ROWS: &[Family] = &[
    Family::new("F2I", 0x105, UNARY, Xu, &[FTZ, to_int(WORDS, 5), float_type(Field::SrcType, 84, SINGLES, 2), TO_INTEGRAL, NTZ, RD, FLOAT]),
    Family::new("F2I.F64", 0x111, UNARY, Xu, &[FTZ, to_int(WORDS, 5), float_type(Field::SrcType, 84, DOUBLE_ONLY, 3), TO_INTEGRAL, NTZ, RD, DOUBLE]),
    Family::new("F2I.S64", 0x111, UNARY, Xu, &[FTZ, to_int(LONGS, 7), float_type(Field::SrcType, 84, SINGLES, 2), TO_INTEGRAL, NTZ, RD2, FLOAT]),
    Family::new("F2I.S64.F64", 0x111, UNARY, Xu, &[FTZ, to_int(LONGS, 7), float_type(Field::SrcType, 84, DOUBLE_ONLY, 3), TO_INTEGRAL, NTZ, RD2, DOUBLE]),
    Family::new("I2F", 0x106, UNARY, Xu, &[float_type(Field::Type, 75, SINGLES, 2), from_int(WORD32, 5), FLOAT_ROUND, RD, INT]),
    Family::new("I2F.S8", 0x306, "", Xu, &[float_type(Field::Type, 75, SINGLES, 2), from_int(BYTES, 1), FLOAT_ROUND, RD, part(BYTE_SELECT)]),
    Family::new("I2F.S16", 0x306, "", Xu, &[float_type(Field::Type, 75, SINGLES, 2), from_int(HALVES, 3), FLOAT_ROUND, RD, part(HALF_SELECT)]),
    Family::new("I2F.S64", 0x112, UNARY, Xu, &[float_type(Field::Type, 75, SINGLES, 2), from_int(LONGS, 7), FLOAT_ROUND, RD, LONG]),
    Family::new("I2F.F64", 0x112, UNARY, Xu, &[float_type(Field::Type, 75, DOUBLE_ONLY, 3), from_int(WORD32, 5), FLOAT_ROUND, RD2, INT]),
    Family::new("I2F.F64.S64", 0x112, UNARY, Xu, &[float_type(Field::Type, 75, DOUBLE_ONLY, 3), from_int(LONGS, 7), FLOAT_ROUND, RD2, LONG]),
    Family::new("I2F.F64.S8", 0x312, "", Xu, &[float_type(Field::Type, 75, DOUBLE_ONLY, 3), from_int(BYTES, 1), FLOAT_ROUND, RD2, part(BYTE_SELECT)]),
    Family::new("I2F.F64.S16", 0x312, "", Xu, &[float_type(Field::Type, 75, DOUBLE_ONLY, 3), from_int(HALVES, 3), FLOAT_ROUND, RD2, part(HALF_SELECT)]),
    Family::new("F2F", 0x104, UNARY, Xu, &[FTZ, float_type(Field::Type, 75, HALF_ONLY, 1), Piece::Text(".F32"), FLOAT_ROUND, RD, FLOAT]).ones(2 << 84),
    Family::new("F2F.F64", 0x110, UNARY, Xu, &[FTZ, float_type(Field::Type, 75, DOUBLE_ONLY, 3), float_type(Field::SrcType, 84, SHORT, 2), FLOAT_ROUND, RD2, FLOAT]),
    Family::new("F2F.F32.F64", 0x110, UNARY, Xu, &[FTZ, float_type(Field::Type, 75, SHORT, 2), float_type(Field::SrcType, 84, DOUBLE_ONLY, 3), FLOAT_ROUND, RD, DOUBLE]),
    Family::new("FRND", 0x107, UNARY, Xu, &[FTZ, Piece::Mod(FieldSpec::new(Field::Type, 75, 2).high(84, 2).choice(SAME).neutral(10)), TO_INTEGRAL, RD, FLOAT]),
    Family::new("FRND.F64", 0x113, UNARY, Xu, &[Piece::Text(".F64"), TO_INTEGRAL, RD2, DOUBLE]).ones(0xf << 75 & (one(75) | one(76)) | 3 << 84),
    Family::new("I2FP.F32", 0x045, UNARY, Alu, &[Piece::Text(".F32"), flag(Field::SrcType, 74, &[".U32", ".S32"]), choice(Field::Round, 78, 2, &["", BAD, BAD, ".RZ"]), RD, INT]).ones(one(76) | one(85)).sm(86, 255),
    Family::new("F2FP.PACK_AB", 0x03e, "rr ri rc ru", Alu, &[
        RELU, choice(Field::Type, 76, 1, &["", ".BF16"]), Piece::Text(".PACK_AB"), ROUND_PACK, RD, source_a(Mods::None, F32), source_b(Mods::None, F32),
    ]).ones(0xff << 64).sm(80, 88),
    Family::new("F2FP.PACK_AB", 0x03e, "rr ri rc ru", Alu, &[
        SATFINITE, RELU, PACKED, Piece::Text(".F32"), Piece::Text(".PACK_AB"), ROUND_PACK, RD, source_a(Mods::None, F32), source_b(Mods::None, F32),
    ]).ones(0xff << 64).sm(89, 255),
    Family::new("F2FP.PACK_AB_MERGE_C", 0x23e, "", Alu, &[
        SATFINITE, RELU, PACKED8, Piece::Text(".F32"), Piece::Text(".PACK_AB_MERGE_C"), RD, RA, RB, RC,
    ]).ones(one(78) | one(90)).sm(89, 255),
    Family::new("F2FP.UNPACK_B", 0x23e, "", Alu, &[
        RELU, PACKED, flag(Field::SrcType, 73, &[".E5M2", ".E4M3"]), Piece::Text(".UNPACK_B"), RD, UPPER_HALF,
    ]).ones(0xff << 64 | 0xff << 24 | one(74) | one(89)).sm(89, 255),
    Family::new("F2FP.UNPACK_B_MERGE_C", 0x23e, "", Alu, &[
        SATFINITE, RELU, PACKED8, Piece::Text(".F16"), Piece::Text(".UNPACK_B_MERGE_C"), RD, RB, RC,
    ]).ones(0xff << 24 | one(73) | one(90)).sm(89, 255),
];

const UPPER_HALF: Piece = op(RegOperand {
    suffix: Some(FieldSpec::new(Field::SwizzleB, 88, 1).choice(&["", ".H1"])),
    ..RB_OPERAND
});
/// The same of bytes alone.
const PACKED8: Piece = Piece::Mod(
    FieldSpec::new(Field::Type, 76, 1).high(87, 1).choice(&[BAD, BAD, ".E5M2", ".E4M3"]).neutral(3),
);
/// The format of the packed results.
const PACKED: Piece =
    Piece::Mod(FieldSpec::new(Field::Type, 76, 1).high(87, 1).choice(&[".F16", ".BF16", ".E5M2", ".E4M3"]));

const RELU: Piece = flag(Field::Relu, 75, &["", ".RELU"]);
const SATFINITE: Piece = flag(Field::Sat, 77, &["", ".SATFINITE"]);
const ROUND_PACK: Piece = choice(Field::Round, 79, 2, &["", BAD, BAD, ".RZ"]);
/// Source and destination have the same format.
const SAME: &[&str] = &[BAD, BAD, BAD, BAD, BAD, ".F16", BAD, BAD, BAD, BAD, "", BAD, BAD, BAD, BAD, BAD];
