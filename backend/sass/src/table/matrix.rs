//! Matrix products on the tensor pipe.

use super::*;
use crate::class::Class::*;

const NEG_A: RegOperand = RegOperand { neg: Some(FieldSpec::new(Field::NegA, 72, 1)), ..RA_OPERAND };
const NEG_B: RegOperand = RegOperand { neg: Some(FieldSpec::new(Field::NegB, 63, 1)), ..RB_OPERAND };
const NEG_C: RegOperand = RegOperand { neg: Some(FieldSpec::new(Field::NegC, 75, 1)), ..RC_OPERAND };
const HALF_SHAPE: Piece = choice(Field::Size, 75, 1, &[".1688", ".16816"]);
const TF32_SHAPE: Piece = choice(Field::Size, 78, 1, &[".1688", ".1684"]);
const RESULT: Piece = flag(Field::Type, 76, &[".F16", ".F32"]);
const RESULT_COUNT: Count = Count::By(Field::Type, &[2, 4]);

const fn layout_a(reg: RegOperand) -> RegOperand {
    RegOperand { suffix: Some(FieldSpec::new(Field::LayoutA, 73, 1).choice(&[".ROW", BAD])), ..reg }
}

const fn layout_b(reg: RegOperand) -> RegOperand {
    RegOperand {
        suffix: Some(FieldSpec::new(Field::LayoutB, 74, 1).choice(&[BAD, ".COL"]).neutral(1)),
        ..reg
    }
}

const INT_SHAPE: FieldSpec = FieldSpec::new(Field::Size, 75, 1).high(85, 2);
const BYTES: &[&str] = &[".8816", BAD, BAD, BAD, ".16816", ".16832", BAD, BAD];
/// The shapes that are left from sm_100 on.
const LARGE: &[&str] = &[BAD, BAD, BAD, BAD, ".16816", ".16832", BAD, BAD];
const NIBBLES: &[&str] = &[BAD, BAD, ".8832", BAD, BAD, ".16832", ".16864", BAD];
const SAT: Piece = flag(Field::Sat, 82, &["", ".SAT"]);

const fn by_shape(counts: &'static [u8]) -> Count {
    Count::By(Field::Size, counts)
}

#[rustfmt::skip]
pub(super) const ROWS: &[Family] = &[
    Family::new("HMMA", 0x23c, "", Hmma16, &[
        HALF_SHAPE, RESULT, flag(Field::SrcType, 82, &["", ".BF16"]),
        op(counted(RD_OPERAND, RESULT_COUNT)), op(counted(NEG_A, by_shape(&[2, 4]))), op(counted(NEG_B, by_shape(&[1, 2]))), op(counted(NEG_C_HMMA, RESULT_COUNT)),
    ]).sm(80, 89),
    Family::new("HMMA", 0x23c, "", Hmma16, &[
        HALF_SHAPE, RESULT, flag(Field::SrcType, 82, &["", ".BF16"]),
        op(counted(RD_OPERAND, RESULT_COUNT)), op(counted(NEG_A, by_shape(&[2, 4]))), op(counted(NEG_B, by_shape(&[1, 2]))), op(counted(NEG_C_HMMA, RESULT_COUNT)), UNIFORM_CONDITION,
    ]).sm(90, 255),
    Family::new("HMMA.TF32", 0x23c, "", Hmma16, &[
        TF32_SHAPE, RESULT, Piece::Text(".TF32"),
        op(counted(RD_OPERAND, RESULT_COUNT)), op(counted(NEG_A, by_shape(&[4, 2]))), op(counted(NEG_B, by_shape(&[2, 1]))), op(counted(NEG_C_HMMA, RESULT_COUNT)),
    ]).ones(one(83)).sm(80, 89),
    Family::new("HMMA.TF32", 0x23c, "", Hmma16, &[
        TF32_SHAPE, RESULT, Piece::Text(".TF32"),
        op(counted(RD_OPERAND, RESULT_COUNT)), op(counted(NEG_A, by_shape(&[4, 2]))), op(counted(NEG_B, by_shape(&[2, 1]))), op(counted(NEG_C_HMMA, RESULT_COUNT)), UNIFORM_CONDITION,
    ]).ones(one(83)).sm(90, 255),
    Family::new("HMMA.SP", 0x23c, "", Hmma32, &[
        Piece::Text(".SP"), Piece::Mod(FieldSpec::new(Field::Size, 75, 1).high(78, 1).choice(&[".1688", ".16816", BAD, ".16832"])), RESULT, flag(Field::SrcType, 82, &["", ".BF16"]),
        op(counted(RD_OPERAND, RESULT_COUNT)), op(counted(NEG_A, by_shape(&[2, 2, 2, 4]))), op(counted(NEG_B, by_shape(&[2, 2, 2, 4]))), op(counted(NEG_C_HMMA, RESULT_COUNT)),
        METADATA, SELECTOR,
    ]).ones(one(73)).sm(80, 255),
    Family::new("IMMA.SP", 0x237, "", Imma32, &[
        Piece::Text(".SP"), Piece::Mod(INT_SHAPE.choice(&[BAD, BAD, BAD, BAD, BAD, ".16832", ".16864", BAD]).neutral(5)),
        choice(Field::SrcType, 76, 1, &[".U8", ".S8"]), choice(Field::SrcType2, 78, 1, &[".U8", ".S8"]), SAT,
        op(counted(RD_OPERAND, Count::Fixed(4))), op(counted(layout_a(RA_OPERAND), by_shape(&[2, 2, 2, 2, 2, 2, 4]))),
        op(counted(layout_b(RB_OPERAND), by_shape(&[2, 2, 2, 2, 2, 2, 4]))), op(counted(RC_OPERAND, Count::Fixed(4))), METADATA, SELECTOR,
    ]).ones(one(72)).sm(80, 255),
    Family::new("BMMA", 0x23d, "", Imma32, &[
        choice(Field::Size, 75, 2, &[".88128", ".168128", ".168256", BAD]), flag(Field::Op, 78, &[".XOR", ".AND"]), Piece::Text(".POPC"),
        op(counted(RD_OPERAND, by_shape(&[2, 4, 4]))), op(counted(layout_a(RA_OPERAND), by_shape(&[1, 2, 4]))),
        op(counted(layout_b(RB_OPERAND), by_shape(&[1, 1, 2]))), op(counted(RC_OPERAND, by_shape(&[2, 4, 4]))),
    ]).ones(one(80)).sm(80, 90),
    Family::new("IMMA", 0x237, "", Imma16, &[
        Piece::Mod(INT_SHAPE.choice(BYTES).since(4, 80)), choice(Field::SrcType, 76, 1, &[".U8", ".S8"]), choice(Field::SrcType2, 78, 1, &[".U8", ".S8"]), SAT,
        op(counted(RD_OPERAND, by_shape(&[2, 2, 2, 2, 4, 4]))), op(counted(layout_a(RA_OPERAND), by_shape(&[1, 1, 1, 1, 2, 4]))),
        op(counted(layout_b(RB_OPERAND), by_shape(&[1, 1, 1, 1, 1, 2]))), op(counted(RC_OPERAND, by_shape(&[2, 2, 2, 2, 4, 4]))),
    ]).sm(75, 89),
    Family::new("IMMA", 0x237, "", Imma16, &[
        Piece::Mod(INT_SHAPE.choice(BYTES).since(4, 80)), choice(Field::SrcType, 76, 1, &[".U8", ".S8"]), choice(Field::SrcType2, 78, 1, &[".U8", ".S8"]), SAT,
        op(counted(RD_OPERAND, by_shape(&[2, 2, 2, 2, 4, 4]))), op(counted(layout_a(RA_OPERAND), by_shape(&[1, 1, 1, 1, 2, 4]))),
        op(counted(layout_b(RB_OPERAND), by_shape(&[1, 1, 1, 1, 1, 2]))), op(counted(RC_OPERAND, by_shape(&[2, 2, 2, 2, 4, 4]))), UNIFORM_CONDITION,
    ]).sm(90, 90),
    Family::new("IMMA", 0x237, "", Imma16, &[
        Piece::Mod(INT_SHAPE.choice(LARGE).neutral(4)), choice(Field::SrcType, 76, 1, &[".U8", ".S8"]), choice(Field::SrcType2, 78, 1, &[".U8", ".S8"]), SAT,
        op(counted(RD_OPERAND, by_shape(&[2, 2, 2, 2, 4, 4]))), op(counted(layout_a(RA_OPERAND), by_shape(&[1, 1, 1, 1, 2, 4]))),
        op(counted(layout_b(RB_OPERAND), by_shape(&[1, 1, 1, 1, 1, 2]))), op(counted(RC_OPERAND, by_shape(&[2, 2, 2, 2, 4, 4]))), UNIFORM_CONDITION,
    ]).sm(100, 255),
    Family::new("IMMA.S4", 0x237, "", Imma32, &[
        Piece::Mod(INT_SHAPE.choice(NIBBLES).neutral(2).since(4, 80)), choice(Field::SrcType, 76, 1, &[".U4", ".S4"]), choice(Field::SrcType2, 78, 1, &[".U4", ".S4"]), SAT,
        op(counted(RD_OPERAND, by_shape(&[2, 2, 2, 2, 4, 4, 4]))), op(counted(layout_a(RA_OPERAND), by_shape(&[1, 1, 1, 1, 2, 2, 4]))),
        op(counted(layout_b(RB_OPERAND), by_shape(&[1, 1, 1, 1, 1, 1, 2]))), op(counted(RC_OPERAND, by_shape(&[2, 2, 2, 2, 4, 4, 4]))),
    ]).ones(one(83) | one(84)).sm(75, 89),
    Family::new("DMMA", 0x23f, "", Dmma, &[
        Piece::Text(".884"), choice(Field::Round, 78, 2, &["", ".RM", ".RP", ".RZ"]), op(counted(RD_OPERAND, Count::Fixed(4))),
        op(counted(NEG_ABS_A, Count::Fixed(2))), op(counted(NEG_ABS_B, Count::Fixed(2))), op(counted(NEG_ABS_C, Count::Fixed(4))),
    ]).sm(80, 89),
    Family::new("DMMA", 0x23f, "", Dmma, &[
        choice(Field::Size, 76, 2, &[".8x8x4", ".16x8x4", ".16x8x8", ".16x8x16"]), choice(Field::Round, 78, 2, &["", ".RM", ".RP", ".RZ"]),
        op(counted(RD_OPERAND, by_shape(&[4, 8, 8, 8]))), op(counted(NEG_ABS_A, by_shape(&[2, 4, 8, 16]))), op(counted(NEG_ABS_B, by_shape(&[2, 2, 4, 8]))),
        op(counted(NEG_ABS_C, by_shape(&[4, 8, 8, 8]))), UNIFORM_CONDITION,
    ]).sm(90, 255),
];

const NEG_C_HMMA: RegOperand = RC_OPERAND;
const NEG_ABS_A: RegOperand = RegOperand { abs: Some(FieldSpec::new(Field::AbsA, 73, 1)), ..NEG_A };
const NEG_ABS_B: RegOperand = RegOperand { abs: Some(FieldSpec::new(Field::AbsB, 62, 1)), ..NEG_B };
const NEG_ABS_C: RegOperand = RegOperand { abs: Some(FieldSpec::new(Field::AbsC, 74, 1)), ..NEG_C };
const METADATA: Piece = op(reg_at(Field::Re, 40, Role::D));
const SELECTOR: Piece = imm(Field::Imm2, 48, 2);
/// A uniform predicate, shown unless UPT.
const UNIFORM_CONDITION: Piece = optional(inverted(UPP_OPERAND));
