//! Matrix products on the tensor pipe.

use super::*;
use crate::class::Class::*;

const NEG_A: RegOperand = RegOperand { neg: Some(FieldSpec::new(Field::NegA, 72, 1)), ..RA_OPERAND };
const NEG_B: RegOperand = RegOperand { neg: Some(FieldSpec::new(Field::NegB, 63, 1)), ..RB_OPERAND };
const NEG_C: RegOperand = RegOperand { neg: Some(FieldSpec::new(Field::NegC, 75, 1)), ..RC_OPERAND };
const HALF_SHAPE: Piece =
    Piece::Mod(FieldSpec::new(Field::Size, 75, 1).high(78, 1).choice(&[".1688", ".16816", ".1684", BAD]));
const TF32_SHAPE: Piece =
    Piece::Mod(FieldSpec::new(Field::Size, 78, 1).high(75, 1).choice(&[".1688", ".1684", ".16816", BAD]));
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

/// Saturation to finite values, on Turing.
const SATFINITE: Piece = flag(Field::Sat, 77, &["", ".SATFINITE"]);
const SPARSE: Piece = Piece::Text(".SP");
const SPARSE_HALF_SHAPE: Piece =
    Piece::Mod(FieldSpec::new(Field::Size, 75, 1).high(78, 1).choice(&[".1688", ".16816", BAD, ".16832"]));
const BF16: Piece = flag(Field::SrcType, 82, &["", ".BF16"]);

const fn part_layout(field: Field, bit: u8) -> Option<FieldSpec> {
    Some(FieldSpec::new(field, bit, 1).choice(&[".ROW", ".COL"]))
}

const SIGN_A: Piece = choice(Field::SrcType, 76, 1, &[".U8", ".S8"]);
const SIGN_B: Piece = choice(Field::SrcType2, 78, 1, &[".U8", ".S8"]);
const NIBBLE_A: Piece = choice(Field::SrcType, 76, 1, &[".U4", ".S4"]);
const NIBBLE_B: Piece = choice(Field::SrcType2, 78, 1, &[".U4", ".S4"]);
/// Formats of up to eight bits.
const QUARTER: &[&str] = &[".E4M3", ".E5M2", BAD, ".E3M2", ".E2M3", ".E2M1", BAD, BAD];
const QUARTER_A: Piece = Piece::Mod(FieldSpec::new(Field::SrcType, 78, 1).high(82, 2).choice(QUARTER));
const QUARTER_B: Piece = Piece::Mod(FieldSpec::new(Field::SrcType2, 79, 1).high(84, 2).choice(QUARTER));
const E4M3_A: Piece = flag(Field::SrcType, 78, &[".E4M3", ".E5M2"]);
const E4M3_B: Piece = flag(Field::SrcType2, 79, &[".E4M3", ".E5M2"]);
const QUARTER_RESULT: Piece = flag(Field::Type, 77, &[".F16", ".F32"]);
const QUARTER_SHAPE: Piece = choice(Field::Size, 75, 2, &[".16816", ".16832", BAD, BAD]);
const SPARSE_QUARTER_SHAPE: Piece = choice_from(Field::Size, 75, 2, &[BAD, ".16832", ".16864", BAD], 1);
const QUARTER_D: Piece = op(counted(RD_OPERAND, RESULT_COUNT));
const QUARTER_C: Piece = op(counted(RC_OPERAND, RESULT_COUNT));
const DENSE_A: Count = by_shape(&[2, 4]);
const DENSE_B: Count = by_shape(&[1, 2]);
const SPARSE_AB: Count = by_shape(&[1, 2, 4]);
/// The selectors of scale factors, in a uniform register.
const SCALE_SELECTORS: Piece =
    op(RegOperand::new(RegFile::UR, FieldSpec::new(Field::Ur, 60, 3).high(73, 5).neutral(255), Role::D));
const SCALE_A: Piece = op(reg_at(Field::Re, 40, Role::D));
/// The metadata, followed by the scale factors of the first side.
const METADATA_AND_SCALE_A: Piece = op(counted(reg_at(Field::Re, 40, Role::D), Count::Fixed(2)));
const SCALE_B: Piece = op(RegOperand {
    suffix: Some(FieldSpec::new(Field::KeepD, 51, 1).choice(&["", ".reuse"])),
    ..reg_at(Field::Rd2, 52, Role::D)
});
const FIXED_4: Count = Count::Fixed(4);
const FIXED_2: Count = Count::Fixed(2);

const INT_SHAPE: FieldSpec = FieldSpec::new(Field::Size, 75, 1).high(85, 2);
const BYTES: &[&str] = &[".8816", BAD, BAD, BAD, ".16816", ".16832", BAD, BAD];
/// The shapes that remain from sm_100 on.
const LARGE: &[&str] = &[BAD, BAD, BAD, BAD, ".16816", ".16832", BAD, BAD];
const NIBBLES: &[&str] = &[BAD, BAD, ".8832", BAD, BAD, ".16832", ".16864", BAD];
/// Sparse shapes of byte products, and the smaller set from sm_90 on.
const SPARSE_BYTES: &[&str] = &[BAD, BAD, ".8832", BAD, BAD, ".16832", ".16864", BAD];
const SPARSE_BYTES_90: &[&str] = &[BAD, BAD, BAD, BAD, BAD, ".16832", ".16864", BAD];
const SPARSE_NIBBLES: &[&str] = &[BAD, BAD, BAD, ".8864", BAD, BAD, ".16864", ".168128"];
const SAT: Piece = flag(Field::Sat, 82, &["", ".SAT"]);

const fn by_shape(counts: &'static [u8]) -> Count {
    Count::By(Field::Size, counts)
}

#[rustfmt::skip]
pub(super) const ROWS: &[Family] = &[
    Family::new("HMMA", 0x23c, "", Hmma16, &[
        HALF_SHAPE, RESULT, SATFINITE,
        op(counted(RD_OPERAND, RESULT_COUNT)), op(counted(NEG_A, by_shape(&[2, 4, 1]))), op(counted(NEG_B, by_shape(&[1, 2, 1]))), op(counted(RC_OPERAND, RESULT_COUNT)),
    ]).sm(75, 75),
    // One of the two or four steps of an 8 by 8 product of a quarter-warp.
    Family::new("HMMA.884", 0x236, "", Hmma16, &[
        Piece::Text(".884"), Piece::Mod(FieldSpec::new(Field::Type, 76, 1).high(78, 1).choice(&[".F16.F16", ".F32.F16", BAD, ".F32.F32"])),
        choice(Field::Mode, 79, 2, &[".STEP0", ".STEP1", ".STEP2", ".STEP3"]), SATFINITE,
        op(counted(RD_OPERAND, FIXED_2)), op(RegOperand { suffix: part_layout(Field::LayoutA, 73), ..counted(NEG_A, FIXED_2) }),
        op(RegOperand { suffix: part_layout(Field::LayoutB, 74), ..counted(NEG_B, FIXED_2) }), op(counted(RC_OPERAND, FIXED_2)),
    ]).sm(75, 75).reserved(one(75)),
    Family::new("HMMA", 0x23c, "", Hmma16, &[
        HALF_SHAPE, RESULT, BF16,
        op(counted(RD_OPERAND, RESULT_COUNT)), op(counted(NEG_A, by_shape(&[2, 4, 1]))), op(counted(NEG_B, by_shape(&[1, 2, 1]))), op(counted(RC_OPERAND, RESULT_COUNT)), CONDITION_86,
    ]).sm(80, 255),
    Family::new("HMMA.TF32", 0x23c, "", Hmma16, &[
        TF32_SHAPE, RESULT, Piece::Text(".TF32"),
        op(counted(RD_OPERAND, RESULT_COUNT)), op(counted(NEG_A, by_shape(&[4, 2, 8]))), op(counted(NEG_B, by_shape(&[2, 1, 4]))), op(counted(RC_OPERAND, RESULT_COUNT)), CONDITION_86,
    ]).ones(one(83)).sm(80, 255).reserved(one(82)),
    Family::new("HMMA.SP", 0x23c, "", Hmma32, &[
        SPARSE, SPARSE_HALF_SHAPE, RESULT, BF16,
        op(counted(RD_OPERAND, RESULT_COUNT)), op(counted(NEG_A, by_shape(&[2, 2, 2, 4]))), op(counted(NEG_B, by_shape(&[2, 2, 2, 4]))), op(counted(RC_OPERAND, RESULT_COUNT)), CONDITION_86, METADATA_KEPT, SELECTOR,
    ]).ones(one(73)).sm(80, 110).reserved(one(81)),
    Family::new("HMMA.SP", 0x23c, "", Hmma32, &[
        SPARSE, SPARSE_HALF_SHAPE, RESULT, BF16,
        op(counted(RD_OPERAND, RESULT_COUNT)), op(counted(NEG_A, by_shape(&[2, 2, 2, 4]))), op(counted(NEG_B, by_shape(&[2, 2, 2, 4]))), op(counted(RC_OPERAND, RESULT_COUNT)), UNIFORM_CONDITION, METADATA, SELECTOR,
    ]).ones(one(73)).sm(120, 255).reserved(one(81)),
    Family::new("HMMA.SP.TF32", 0x23c, "", Hmma32, &[
        SPARSE, SPARSE_HALF_SHAPE, RESULT, Piece::Text(".TF32"),
        op(counted(RD_OPERAND, RESULT_COUNT)), op(counted(NEG_A, by_shape(&[2, 4, 4, 8]))), op(counted(NEG_B, by_shape(&[2, 4, 4, 8]))), op(counted(RC_OPERAND, RESULT_COUNT)), CONDITION_86, METADATA_KEPT, SELECTOR,
    ]).ones(one(73) | one(83)).sm(80, 110).reserved(one(81) | one(82)),
    Family::new("HMMA.SP.TF32", 0x23c, "", Hmma32, &[
        SPARSE, SPARSE_HALF_SHAPE, RESULT, Piece::Text(".TF32"),
        op(counted(RD_OPERAND, RESULT_COUNT)), op(counted(NEG_A, by_shape(&[2, 4, 4, 8]))), op(counted(NEG_B, by_shape(&[2, 4, 4, 8]))), op(counted(RC_OPERAND, RESULT_COUNT)), UNIFORM_CONDITION, METADATA, SELECTOR,
    ]).ones(one(73) | one(83)).sm(120, 255).reserved(one(81) | one(82)),
    Family::new("IMMA", 0x237, "", Imma16, &[
        Piece::Mod(INT_SHAPE.choice(BYTES).since(4, 80)), SIGN_A, SIGN_B, SAT,
        op(counted(RD_OPERAND, by_shape(&[2, 2, 2, 2, 4, 4]))), op(counted(layout_a(RA_OPERAND), by_shape(&[1, 1, 1, 1, 2, 4]))), op(counted(layout_b(RB_OPERAND), by_shape(&[1, 1, 1, 1, 1, 2]))), op(counted(RC_OPERAND, by_shape(&[2, 2, 2, 2, 4, 4]))), CONDITION_86,
    ]).sm(75, 89).reserved(one(77) | one(79)),
    Family::new("IMMA", 0x237, "", Imma16, &[
        Piece::Mod(INT_SHAPE.choice(BYTES)), SIGN_A, SIGN_B, SAT,
        op(counted(RD_OPERAND, by_shape(&[2, 2, 2, 2, 4, 4]))), op(counted(layout_a(RA_OPERAND), by_shape(&[1, 1, 1, 1, 2, 4]))), op(counted(layout_b(RB_OPERAND), by_shape(&[1, 1, 1, 1, 1, 2]))), op(counted(RC_OPERAND, by_shape(&[2, 2, 2, 2, 4, 4]))), UNIFORM_CONDITION,
    ]).sm(90, 90).reserved(one(77) | one(79)),
    Family::new("IMMA", 0x237, "", Imma16, &[
        Piece::Mod(INT_SHAPE.choice(LARGE).neutral(4)), SIGN_A, SIGN_B, SAT,
        op(counted(RD_OPERAND, by_shape(&[2, 2, 2, 2, 4, 4]))), op(counted(layout_a(RA_OPERAND), by_shape(&[1, 1, 1, 1, 2, 4]))), op(counted(layout_b(RB_OPERAND), by_shape(&[1, 1, 1, 1, 1, 2]))), op(counted(RC_OPERAND, by_shape(&[2, 2, 2, 2, 4, 4]))), UNIFORM_CONDITION,
    ]).sm(100, 255).reserved(one(77) | one(79)),
    Family::new("IMMA.S4", 0x237, "", Imma32, &[
        Piece::Mod(INT_SHAPE.choice(NIBBLES).neutral(2).since(4, 80)), NIBBLE_A, NIBBLE_B, SAT,
        op(counted(RD_OPERAND, by_shape(&[2, 2, 2, 2, 4, 4, 4]))), op(counted(layout_a(RA_OPERAND), by_shape(&[1, 1, 1, 1, 2, 2, 4]))), op(counted(layout_b(RB_OPERAND), by_shape(&[1, 1, 1, 1, 1, 1, 2]))), op(counted(RC_OPERAND, by_shape(&[2, 2, 2, 2, 4, 4, 4]))), CONDITION_86,
    ]).ones(one(83) | one(84)).sm(75, 89).reserved(one(77) | one(79)),
    Family::new("IMMA.SP", 0x237, "", Imma32, &[
        SPARSE, Piece::Mod(INT_SHAPE.choice(SPARSE_BYTES).neutral(5)), SIGN_A, SIGN_B, SAT,
        op(counted(RD_OPERAND, by_shape(&[2, 2, 2, 2, 4, 4, 4, 4]))), op(counted(layout_a(RA_OPERAND), by_shape(&[1, 1, 1, 1, 2, 2, 4]))), op(counted(layout_b(RB_OPERAND), by_shape(&[1, 1, 1, 1, 2, 2, 4]))), op(counted(RC_OPERAND, by_shape(&[2, 2, 2, 2, 4, 4, 4, 4]))), CONDITION_86, METADATA_KEPT, SELECTOR,
    ]).ones(one(72)).sm(80, 89).reserved(one(77) | one(79) | one(81)),
    Family::new("IMMA.SP", 0x237, "", Imma32, &[
        SPARSE, Piece::Mod(INT_SHAPE.choice(SPARSE_BYTES_90).neutral(5)), SIGN_A, SIGN_B, SAT,
        op(counted(RD_OPERAND, by_shape(&[2, 2, 2, 2, 4, 4, 4, 4]))), op(counted(layout_a(RA_OPERAND), by_shape(&[1, 1, 1, 1, 2, 2, 4]))), op(counted(layout_b(RB_OPERAND), by_shape(&[1, 1, 1, 1, 2, 2, 4]))), op(counted(RC_OPERAND, by_shape(&[2, 2, 2, 2, 4, 4, 4, 4]))), UNIFORM_CONDITION, METADATA_KEPT, SELECTOR,
    ]).ones(one(72)).sm(90, 110).reserved(one(77) | one(79) | one(81)),
    Family::new("IMMA.SP", 0x237, "", Imma32, &[
        SPARSE, Piece::Mod(INT_SHAPE.choice(SPARSE_BYTES_90).neutral(5)), SIGN_A, SIGN_B, SAT,
        op(counted(RD_OPERAND, by_shape(&[2, 2, 2, 2, 4, 4, 4, 4]))), op(counted(layout_a(RA_OPERAND), by_shape(&[1, 1, 1, 1, 2, 2, 4]))), op(counted(layout_b(RB_OPERAND), by_shape(&[1, 1, 1, 1, 2, 2, 4]))), op(counted(RC_OPERAND, by_shape(&[2, 2, 2, 2, 4, 4, 4, 4]))), UNIFORM_CONDITION, METADATA, SELECTOR,
    ]).ones(one(72)).sm(120, 255).reserved(one(77) | one(79) | one(81)),
    Family::new("IMMA.SP.S4", 0x237, "", Imma32, &[
        SPARSE, Piece::Mod(INT_SHAPE.choice(SPARSE_NIBBLES).neutral(6)), NIBBLE_A, NIBBLE_B, SAT,
        op(counted(RD_OPERAND, by_shape(&[2, 2, 2, 2, 4, 4, 4, 4]))), op(counted(layout_a(RA_OPERAND), by_shape(&[1, 1, 1, 1, 2, 2, 2, 4]))), op(counted(layout_b(RB_OPERAND), by_shape(&[1, 1, 1, 1, 2, 2, 2, 4]))), op(counted(RC_OPERAND, by_shape(&[2, 2, 2, 2, 4, 4, 4, 4]))), CONDITION_86, METADATA_KEPT, SELECTOR,
    ]).ones(one(72) | one(83) | one(84)).sm(80, 89).reserved(one(77) | one(79) | one(81)),
    Family::new("BMMA", 0x23d, "", Imma32, &[
        since(choice(Field::Size, 75, 2, &[".88128", ".168128", ".168256", BAD]), 1, 80), since(flag(Field::Op, 78, &[".XOR", ".AND"]), 1, 80), Piece::Text(".POPC"),
        op(counted(RD_OPERAND, by_shape(&[2, 4, 4]))), op(counted(layout_a(RA_OPERAND), by_shape(&[1, 2, 4]))),
        op(counted(layout_b(RB_OPERAND), by_shape(&[1, 1, 2]))), op(counted(RC_OPERAND, by_shape(&[2, 4, 4]))), CONDITION_86,
    ]).ones(one(80)).sm(75, 89).reserved(one(77)),
    Family::new("BMMA", 0x23d, "", Imma32, &[
        choice(Field::Size, 75, 2, &[".88128", ".168128", ".168256", BAD]), flag_from(Field::Op, 78, &[BAD, ".AND"], 1), Piece::Text(".POPC"),
        op(counted(RD_OPERAND, by_shape(&[2, 4, 4]))), op(counted(layout_a(RA_OPERAND), by_shape(&[1, 2, 4]))),
        op(counted(layout_b(RB_OPERAND), by_shape(&[1, 1, 2]))), op(counted(RC_OPERAND, by_shape(&[2, 4, 4]))), UNIFORM_CONDITION,
    ]).ones(one(80)).sm(90, 90).reserved(one(77)),
    Family::new("DMMA", 0x23f, "", Dmma, &[
        Piece::Text(".884"), choice(Field::Round, 78, 2, &["", ".RM", ".RP", ".RZ"]), op(counted(RD_OPERAND, Count::Fixed(4))),
        op(counted(NEG_ABS_A, Count::Fixed(2))), op(counted(NEG_ABS_B, Count::Fixed(2))), op(counted(NEG_ABS_C, Count::Fixed(4))), CONDITION_86,
    ]).sm(80, 89),
    Family::new("DMMA", 0x23f, "", Dmma, &[
        choice(Field::Size, 76, 2, &[".8x8x4", ".16x8x4", ".16x8x8", ".16x8x16"]), choice(Field::Round, 78, 2, &["", ".RM", ".RP", ".RZ"]),
        op(counted(RD_OPERAND, by_shape(&[4, 8, 8, 8]))), op(counted(NEG_ABS_A, by_shape(&[2, 4, 8, 16]))), op(counted(NEG_ABS_B, by_shape(&[2, 2, 4, 8]))),
        op(counted(NEG_ABS_C, by_shape(&[4, 8, 8, 8]))), UNIFORM_CONDITION,
    ]).sm(90, 255),
    Family::new("QMMA", 0x27a, "", Hmma16, &[
        QUARTER_SHAPE, QUARTER_RESULT, E4M3_A, E4M3_B,
        QUARTER_D, op(counted(layout_a(NEG_A), DENSE_A)), op(counted(layout_b(NEG_B), DENSE_B)), QUARTER_C, UNIFORM_CONDITION,
    ]).sm(89, 89),
    Family::new("QMMA.SP", 0x27a, "", Hmma32, &[
        SPARSE, REGOFFSET, SPARSE_QUARTER_SHAPE, QUARTER_RESULT, E4M3_A, E4M3_B,
        QUARTER_D, op(counted(layout_a(NEG_A), SPARSE_AB)), op(counted(layout_b(NEG_B), SPARSE_AB)), QUARTER_C, UNIFORM_CONDITION, METADATA_KEPT, SELECTOR,
    ]).ones(one(80)).sm(89, 89).reserved(one(81)),
    Family::new("QMMA", 0x27a, "", Hmma16, &[
        QUARTER_SHAPE, QUARTER_RESULT, QUARTER_A, QUARTER_B,
        QUARTER_D, op(counted(NEG_A, DENSE_A)), op(counted(NEG_B, DENSE_B)), QUARTER_C, UNIFORM_CONDITION,
    ]).filled(one(74)).sm(120, 255),
    Family::new("QMMA.SP", 0x27a, "", Hmma32, &[
        SPARSE, SPARSE_QUARTER_SHAPE, QUARTER_RESULT, QUARTER_A, QUARTER_B,
        QUARTER_D, op(counted(NEG_A, SPARSE_AB)), op(counted(NEG_B, SPARSE_AB)), QUARTER_C, UNIFORM_CONDITION, METADATA, SELECTOR,
    ]).ones(one(80)).filled(one(74)).sm(120, 255).reserved(one(81)),
    Family::new("QMMA.SF", 0x47a, "", Hmma32, &[
        Piece::Text(".SF"), Piece::Text(".16832"), Piece::Text(".F32"), QUARTER_A, QUARTER_B, Piece::Text(".E8"),
        op(counted(RD_OPERAND, FIXED_4)), op(counted(NEG_A, FIXED_4)), op(counted(NEG_B, FIXED_2)), op(counted(RC_OPERAND, FIXED_4)), UNIFORM_CONDITION,
        SCALE_A, SCALE_B, SCALE_SELECTORS,
    ]).sm(120, 255),
    Family::new("QMMA.SF.SP", 0x47a, "", Hmma32, &[
        Piece::Text(".SF"), SPARSE, Piece::Text(".16864"), Piece::Text(".F32"), QUARTER_A, QUARTER_B, Piece::Text(".E8"),
        op(counted(RD_OPERAND, FIXED_4)), op(counted(NEG_A, FIXED_4)), op(counted(NEG_B, FIXED_4)), op(counted(RC_OPERAND, FIXED_4)), UNIFORM_CONDITION,
        METADATA_AND_SCALE_A, SCALE_B, SCALE_SELECTORS, SELECTOR,
    ]).ones(one(80)).sm(120, 255).reserved(one(81)),
    Family::new("OMMA.SF", 0x47f, "", Hmma32, &[
        Piece::Text(".SF"), Piece::Text(".16864"), Piece::Text(".F32"), Piece::Text(".E2M1"), Piece::Text(".E2M1"), SCALE_FORMAT, SCALE_BLOCKS,
        op(counted(RD_OPERAND, FIXED_4)), op(counted(NEG_A, FIXED_4)), op(counted(NEG_B, FIXED_2)), op(counted(RC_OPERAND, FIXED_4)), UNIFORM_CONDITION,
        SCALE_A, SCALE_B, SCALE_SELECTORS,
    ]).sm(120, 255).reserved(one(78) | one(79)),
    Family::new("OMMA.SF.SP", 0x47f, "", Hmma32, &[
        Piece::Text(".SF"), SPARSE, Piece::Text(".168128"), Piece::Text(".F32"), Piece::Text(".E2M1"), Piece::Text(".E2M1"), SCALE_FORMAT, SCALE_BLOCKS,
        op(counted(RD_OPERAND, FIXED_4)), op(counted(NEG_A, FIXED_4)), op(counted(NEG_B, FIXED_4)), op(counted(RC_OPERAND, FIXED_4)), UNIFORM_CONDITION,
        METADATA_AND_SCALE_A, SCALE_B, SCALE_SELECTORS, SELECTOR,
    ]).ones(one(80)).sm(120, 255).reserved(one(78) | one(79) | one(81)),
];

const NEG_ABS_A: RegOperand = RegOperand { abs: Some(FieldSpec::new(Field::AbsA, 73, 1)), ..NEG_A };
const NEG_ABS_B: RegOperand = RegOperand { abs: Some(FieldSpec::new(Field::AbsB, 62, 1)), ..NEG_B };
const NEG_ABS_C: RegOperand = RegOperand { abs: Some(FieldSpec::new(Field::AbsC, 74, 1)), ..NEG_C };
const METADATA: Piece = op(reg_at(Field::Re, 40, Role::D));
/// The metadata operand. Before sm_120, the operand cache's bit for the fourth source is here.
const METADATA_KEPT: Piece = op(RegOperand {
    suffix: Some(FieldSpec::new(Field::KeepD, 50, 1).choice(&["", ".reuse"])),
    ..reg_at(Field::Re, 40, Role::D)
});
const SELECTOR: Piece = imm(Field::Imm2, 48, 2);
/// A uniform predicate, printed unless it is UPT.
const UNIFORM_CONDITION: Piece = optional(inverted(UPP_OPERAND));
/// The same, from sm_86 on.
const CONDITION_86: Piece = optional(RegOperand {
    spec: UPP_OPERAND.spec.value(Value::Inverted).neutral(0).since(0, 86),
    ..UPP_OPERAND
});
const REGOFFSET: Piece = flag(Field::Flag, 81, &["", ".REGOFFSET"]);
const SCALE_FORMAT: Piece = flag(Field::Mode, 82, &[".E8", ".UE4M3"]);
const SCALE_BLOCKS: Piece = flag(Field::Scale, 83, &[".4X", ""]);
