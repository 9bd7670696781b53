//! Packed half precision.

use super::*;
use crate::class::Class::*;
use crate::expand::SWIZZLE;
use ImmStyle::*;

const BF16: Piece = flag(Field::Type, 85, &["", ".BF16_V2"]);
const BF16_COMPARE: Piece = since(flag(Field::Type, 65, &["", ".BF16_V2"]), 1, 90);
const BF16_90: Piece = since(BF16, 1, 90);
const BF16_OR_SINGLE: Piece =
    Piece::Mod(FieldSpec::new(Field::Type, 85, 1).high(78, 1).choice(&["", ".BF16_V2", ".F32", BAD]));
const STYLE: ImmStyle = HalfBy(Field::Type, 1);
const A: Piece = source_a(Mods::Half, STYLE);
const B: Piece = source_b(Mods::Half, STYLE);
const B_TIMES_I: Piece = source_b(Mods::HalfTimesI, STYLE);
const C: Piece = source_c(Mods::Half, STYLE);
/// The third source of a three-input minimum.
const C_76: Piece = source(Slot {
    suffix: Some(FieldSpec::new(Field::SwizzleC, 76, 2).choice(SWIZZLE)),
    ..slot(Role::C, Place::C, Mods::HalfWhole, STYLE)
});
/// The second source of `HADD2` and of comparisons. It occupies the wide slot in every shape.
const B_WIDE: Piece = source_wide_c(Mods::Half, STYLE);
/// The treatment of subnormal numbers. With `.OOB`, values out of bounds, which were not read, do not turn a product
/// into NaN.
const FTZ_FMZ_OOB: Piece = Piece::Mod(
    FieldSpec::new(Field::Ftz, 80, 1).high(76, 1).choice(&["", ".FTZ", ".FMZ", ".OOB"]).since(3, 90),
);
const SINGLE: Piece = flag(Field::High, 78, &["", ".F32"]);
/// With `.RELU`, bits 87 to 89 are PT. Without it they are zero, and NVIDIA's disassembler ignores them.
const RELU: Piece =
    Piece::Mod(FieldSpec::new(Field::Relu, 79, 1).high(87, 3).choice(RELU_TEXTS).since(1, 80));
const RELU_TEXTS: &[&str] = &["", BAD, "", BAD, "", BAD, "", BAD, "", BAD, "", BAD, "", BAD, "", ".RELU"];
const COMPARE: Piece = choice(Field::Cmp, 76, 4, FLOAT_COMPARE);
const COMBINE: Piece = choice(Field::Bool, 69, 2, &[".AND", ".OR", ".XOR", BAD]);
/// In single precision, `HADD2` from sm_86 on has no magnitude of its first source, and uses the low half of an
/// immediate.
const SUM_A: Piece = source_a(Mods::HalfSum(&[(Field::High, 1)]), STYLE);
const SUM_B: Piece = source_wide_c(Mods::Half, HalfSum(Field::Type, 1, Field::High));
const BINARY: &str = "rr ri rc rx ru";
const AS_C: &str = "rr ri:2 rc:3 rx:3 ru:7";
const MULTIPLY: &str = "rrr rri rrc rrx rir rcr rxr rur rru";
const A_WHOLE: Piece = source_a(Mods::HalfWhole, STYLE);
const B_WHOLE: Piece = source_b(Mods::HalfWhole, STYLE);
const C_WHOLE: Piece = source_c(Mods::HalfWhole, STYLE);

#[rustfmt::skip]
pub(super) const ROWS: &[Family] = &[
    Family::new("HADD2", 0x030, AS_C, Half, &[SINGLE, FTZ, SAT, RD, A, B_WIDE]).sm(75, 80),
    Family::new("HADD2", 0x030, AS_C, Half, &[BF16_90, SINGLE, FTZ, SAT, RD, SUM_A, SUM_B]).sm(86, 255),
    Family::new("HMUL2", 0x032, BINARY, Half, &[BF16_90, SINGLE, FTZ_FMZ, SAT, RD, A, B]),
    Family::new("HFMA2", 0x031, MULTIPLY, Half, &[SINGLE, FTZ_FMZ_OOB, SAT, RD, A, B, C]).sm(75, 75),
    Family::new("HFMA2", 0x031, MULTIPLY, Half, &[BF16_OR_SINGLE, FTZ_FMZ_OOB, RELU, SAT, RD, A, B, C]).sm(80, 80),
    Family::new("HFMA2", 0x031, MULTIPLY, Half, &[BF16_OR_SINGLE, FTZ_FMZ_OOB, RELU, SAT, RD, A, B_TIMES_I, C]).sm(86, 255),
    Family::new("HFMA2.MMA", 0x035, MULTIPLY, HalfMma, &[Piece::Text(".MMA"), BF16_90, FTZ_FMZ, RELU, SAT, RD, A_WHOLE, B_WHOLE, C_WHOLE]).sm(80, 90),
    Family::new("HSET2", 0x033, AS_C, Half, &[BF16_COMPARE, flag(Field::Flag, 71, &["", ".BF"]), COMPARE, FTZ, COMBINE, RD, A, B_WIDE, PP]),
    Family::new("HSETP2", 0x034, AS_C, Half, &[BF16_COMPARE, COMPARE, flag(Field::Flag, 71, &["", ".H_AND"]), FTZ, COMBINE, PD, PQ, A, B_WIDE, PP]),
    Family::new("VHMNMX", 0x047, "rrr rir rcr rxr rur", Half, &[
        BF16, FTZ, flag(Field::Mode, 81, &["", ".NAN"]), flag(Field::Flag, 82, &["", ".XORSIGN"]), RD, A, B, C_76, PP,
    ]).sm(90, 103).reserved(one(78)),
    Family::new("HMNMX2", 0x040, BINARY, Half, &[
        BF16_OR_SINGLE, FTZ, flag(Field::Mode, 81, &["", ".NAN"]), since(flag(Field::Flag, 82, &["", ".XORSIGN"]), 1, 86), RD, A, B, PP,
    ]).sm(80, 89),
    Family::new("HMNMX2", 0x040, BINARY, Half, &[
        BF16, FTZ, flag(Field::Mode, 81, &["", ".NAN"]), flag(Field::Flag, 82, &["", ".XORSIGN"]), WHICH, RD,
        which(Field::Pd, 66), which(Field::Pq, 69), A, B, PP,
    ]).sm(90, 255),
];
