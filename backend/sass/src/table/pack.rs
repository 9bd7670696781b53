//! Conversions of pairs: packing two values into one register in a narrow format, and unpacking.

use super::*;
use crate::class::Class::*;
use ImmStyle::*;

const RELU: Piece = flag(Field::Relu, 75, &["", ".RELU"]);
const SATFINITE: Piece = flag(Field::Sat, 77, &["", ".SATFINITE"]);
const ROUND_PACK: Piece = choice(Field::Round, 79, 2, &["", BAD, BAD, ".RZ"]);
/// Rounding to formats of at most eight bits: with random bits from the third source, or upwards for scale factors.
const ROUND_NARROW: Piece = choice(Field::Round, 79, 3, &["", BAD, ".RP", ".RZ", ".RS", BAD, BAD, BAD]);
const ROUND_SCALE: Piece = choice(Field::Round, 79, 2, &["", BAD, ".RP", ".RZ"]);

/// The result formats before sm_100.
const EARLY: Piece = Piece::Mod(
    FieldSpec::new(Field::Type, 76, 1)
        .high(86, 2)
        .choice(&[".F16", ".BF16", BAD, ".TF32", ".E5M2", ".E4M3", BAD, BAD]),
);
const HALF: Piece = flag(Field::Type, 76, &[".F16", ".BF16"]);
const NARROW: Piece = Piece::Mod(
    FieldSpec::new(Field::Type, 76, 1)
        .high(85, 3)
        .choice(&[
            BAD, BAD, BAD, ".E2M1", BAD, BAD, ".E2M3", ".E3M2", ".E5M2", ".E4M3", BAD, BAD, ".E8", BAD, BAD,
            BAD,
        ])
        .neutral(8),
);
const FROM_BYTE: Piece = flag(Field::SrcType, 73, &[".E5M2", ".E4M3"]);
const FROM_NARROW: Piece = Piece::Mod(
    FieldSpec::new(Field::SrcType, 73, 2)
        .high(82, 2)
        .choice(&[
            BAD, BAD, ".E5M2", ".E4M3", BAD, BAD, ".E2M3", ".E3M2", BAD, BAD, BAD, BAD, BAD, BAD, BAD, BAD,
        ])
        .neutral(2),
);
const FROM_HALF: Piece = flag(Field::SrcType, 83, &[".F16", ".BF16"]);
const FROM_SINGLE: Piece = Piece::Text(".F32");

const A: Piece = source_a(Mods::None, F32);
const B: Piece = source_b(Mods::None, F32);
const C: Piece = source_c(Mods::None, F32);
/// The only source, at the place of the second.
const ONE: Piece = source_wide(Mods::None, F32);
const ONE_HALF: Piece = source(Slot {
    suffix: Some(FieldSpec::new(Field::SwizzleB, 88, 1).choice(UPPER)),
    ..slot(Role::B, Place::Wide, Mods::None, F32)
});
/// The byte of a register that holds a pair of four-bit values.
const ONE_BYTE: Piece = source(Slot {
    suffix: Some(FieldSpec::new(Field::SwizzleB, 72, 1).high(88, 1).choice(&["", ".B1", ".B2", ".B3"])),
    ..slot(Role::B, Place::Wide, Mods::None, F32)
});
/// The value whose upper half is kept, or whose lower half moves to the upper half.
const MERGED: Piece = source(Slot {
    suffix: Some(FieldSpec::new(Field::SwizzleC, 72, 1).choice(UPPER)),
    ..slot(Role::C, Place::C, Mods::None, F32)
});
/// The same for pairs of four-bit values and for random rounding, which do not select a half.
const MERGED_NARROW: Piece = source(Slot {
    suffix: Some(
        FieldSpec::new(Field::SwizzleC, 72, 1).choice(UPPER).silent(&[(Field::Type, 3), (Field::Round, 4)]),
    ),
    ..slot(Role::C, Place::C, Mods::None, F32)
});
const UPPER: &[&str] = &["", ".H1"];

const PACK_AB: Piece = Piece::Text(".PACK_AB");
const PACK_AB_MERGE_C: Piece = Piece::Text(".PACK_AB_MERGE_C");
const MERGE_C: Piece = Piece::Text(".MERGE_C");
const UNPACK_B: Piece = Piece::Text(".UNPACK_B");
const UNPACK_B_MERGE_C: Piece = Piece::Text(".UNPACK_B_MERGE_C");
const PACK_B: Piece = Piece::Text(".PACK_B");
const BINARY: &str = "rr ri rc rx ru";
const UNARY: &str = "r i c x u:6";
const TERNARY: &str = "rrr rri rrc rrx rir rcr rxr rur rru";
/// The operand shapes of the second and the third source.
const B_AND_C: &str = "rr ri:2 rc:3 rx:3 ir cr xr ur ru:7";
/// The bits of an absent first source: RZ, which is never read.
const NO_A: u128 = 0xff << 24;
const NO_C: u128 = 0xff << 64;
const UNPACKED: u128 = one(89);
const MERGED_WITH: u128 = one(90);
const SINGLE_MERGED: u128 = one(78);
const FROM_16: u128 = one(73);

const fn row(name: &'static str, shapes: &'static str, ones: u128, pieces: &'static [Piece]) -> Family {
    let unread = NO_A | NO_C;
    Family::new(name, 0x03e, shapes, Alu, pieces).ones(ones & !unread).filled(ones & unread)
}

#[rustfmt::skip]
pub(super) const ROWS: &[Family] = &[
    row("F2FP.PACK_AB", BINARY, NO_C, &[SATFINITE, RELU, choice(Field::Type, 76, 1, &["", ".BF16"]), PACK_AB, ROUND_PACK, RD, A, B]).sm(80, 88),
    row("F2FP.MERGE_C", B_AND_C, NO_A | SINGLE_MERGED, &[SATFINITE, RELU, choice(Field::Type, 76, 1, &["", ".BF16"]), MERGE_C, ROUND_PACK, RD, B, MERGED]).sm(80, 88),
    row("F2FP.PACK_AB", BINARY, NO_C, &[SATFINITE, RELU, EARLY, FROM_SINGLE, PACK_AB, ROUND_PACK, RD, A, B]).sm(89, 90),
    row("F2FP.MERGE_C", B_AND_C, NO_A | SINGLE_MERGED, &[SATFINITE, RELU, EARLY, FROM_SINGLE, MERGE_C, ROUND_PACK, RD, B, MERGED]).sm(89, 90),
    row("F2FP.PACK_AB_MERGE_C", TERNARY, SINGLE_MERGED | MERGED_WITH, &[SATFINITE, RELU, EARLY, FROM_SINGLE, PACK_AB_MERGE_C, RD, A, B, MERGED]).sm(89, 90),
    row("F2FP.UNPACK_B", UNARY, NO_A | NO_C | UNPACKED | one(74), &[RELU, EARLY, FROM_BYTE, UNPACK_B, RD, ONE_HALF]).sm(89, 90).reserved(one(79) | one(80)),
    row("F2FP.UNPACK_B_MERGE_C", B_AND_C, NO_A | FROM_16 | MERGED_WITH, &[SATFINITE, RELU, EARLY, Piece::Text(".F16"), UNPACK_B_MERGE_C, RD, B, MERGED]).sm(89, 90),
    row("F2FP.PACK_B", UNARY, NO_A | NO_C | UNPACKED | SINGLE_MERGED | one(76) | one(86), &[RELU, Piece::Text(".TF32"), FROM_SINGLE, PACK_B, ROUND_PACK, RD, ONE]).sm(89, 90).reserved(one(87)),
    row("F2FP.PACK_AB", BINARY, NO_C, &[SATFINITE, RELU, HALF, FROM_SINGLE, PACK_AB, ROUND_PACK, RD, A, B]).sm(100, 255),
    row("F2FP.PACK_AB.RS", TERNARY, one(81), &[SATFINITE, RELU, HALF, FROM_SINGLE, PACK_AB, Piece::Text(".RS"), RD, A, B, C]).sm(100, 103).reserved(one(79) | one(80) | one(85) | one(87)),
    row("F2FP.MERGE_C", B_AND_C, NO_A | SINGLE_MERGED, &[SATFINITE, RELU, HALF, FROM_SINGLE, MERGE_C, ROUND_PACK, RD, B, MERGED]).sm(100, 255),
    row("F2FP.PACK_AB_MERGE_C", TERNARY, SINGLE_MERGED | MERGED_WITH, &[SATFINITE, RELU, NARROW, FROM_SINGLE, PACK_AB_MERGE_C, ROUND_NARROW, RD, A, B, MERGED_NARROW]).sm(100, 110),
    row("F2FP.PACK_AB_MERGE_C", TERNARY, SINGLE_MERGED | MERGED_WITH, &[SATFINITE, RELU, NARROW, FROM_SINGLE, PACK_AB_MERGE_C, ROUND_SCALE, RD, A, B, MERGED_NARROW]).sm(120, 255),
    row("F2FP.UNPACK_B", UNARY, NO_A | NO_C | UNPACKED, &[RELU, Piece::Text(".F16"), FROM_NARROW, UNPACK_B, RD, ONE_HALF]).sm(100, 255).reserved(one(79) | one(80)),
    row("F2FP.UNPACK_B.E2M1", UNARY, NO_A | NO_C | UNPACKED | one(73) | one(82), &[RELU, Piece::Text(".F16"), Piece::Text(".E2M1"), UNPACK_B, RD, ONE_BYTE]).sm(100, 255).reserved(one(77) | one(79) | one(80) | one(85) | one(87)),
    row("F2FP.UNPACK_B.E8", UNARY, NO_A | NO_C | UNPACKED | 0xb << 73 | one(83), &[Piece::Text(".BF16"), Piece::Text(".E8"), UNPACK_B, RD, ONE_HALF]).sm(100, 255).reserved(one(77) | one(79) | one(80) | one(85) | one(87)),
    row("F2FP.UNPACK_B_MERGE_C", B_AND_C, NO_A | FROM_16 | MERGED_WITH, &[SATFINITE, RELU, NARROW, FROM_HALF, UNPACK_B_MERGE_C, ROUND_SCALE, RD, B, MERGED_NARROW]).sm(100, 255),
    row("F2FP.PACK_B", UNARY, NO_A | NO_C | UNPACKED | SINGLE_MERGED | one(76) | one(86), &[SATFINITE, RELU, Piece::Text(".TF32"), FROM_SINGLE, PACK_B, ROUND_PACK, RD, ONE]).sm(100, 255).reserved(one(87)),
];
