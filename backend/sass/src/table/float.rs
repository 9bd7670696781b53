//! Single and double precision arithmetic.

use super::*;
use crate::class::Class::*;
use ImmStyle::*;

const COMPARE: Piece = choice(Field::Cmp, 76, 4, FLOAT_COMPARE);
/// A factor of the product; new instructions have none.
const SCALE: Piece =
    choice_from(Field::Scale, 84, 3, &[BAD, ".D8", ".D4", ".D2", "", ".M2", ".M4", ".M8"], 4);
const A: Piece = source_a(Mods::NegAbs, F32);
const B: Piece = source_b(Mods::NegAbs, F32);
const C: Piece = source_c(Mods::NegAbs, F32);
const A2: Piece = pair(source_a(Mods::NegAbs, F64));
const B2: Piece = pair(source_b(Mods::NegAbs, F64));
const C2: Piece = pair(source_c(Mods::NegAbs, F64));
/// The second source of `DADD` is encoded as if it were the third.
const B2_AS_C: Piece = pair(source(slot(Role::B, Place::C, Mods::NegAbs, F64)));
const B2_WIDE: Piece = pair(source_wide_c(Mods::NegAbs, F64));
/// `RCP64H` and `RSQ64H` take the high word of a double.
const MUFU_SOURCE: Piece = source_wide(Mods::NegAbs, DoubleIn(Field::Op, 6, 7));
const BINARY: &str = "rr ri rc ru";
const AS_C: &str = "rr ri:2 rc:3 ru:7";
const MULTIPLY: &str = "rrr rri rrc rir rcr rur rru";

#[rustfmt::skip]
pub(super) const ROWS: &[Family] = &[
    Family::new("FADD", 0x021, AS_C, Fma, &[FTZ, ROUND, SAT, RD, A, source_wide_c(Mods::NegAbs, F32)]),
    Family::new("FMUL", 0x020, BINARY, Fma, &[FTZ_FMZ, SCALE, ROUND, SAT, RD, A, B]),
    Family::new("FFMA", 0x023, MULTIPLY, Fma, &[FTZ_FMZ, ROUND, SAT, RD, A, B, C]),
    Family::new("FMNMX", 0x009, BINARY, Alu, &[FTZ, since(flag(Field::Mode, 81, &["", ".NAN"]), 1, 80), since(flag(Field::Flag, 82, &["", ".XORSIGN"]), 1, 86), RD, A, B, PP]),
    Family::new("FMNMX3", 0x076, "rrr rir rcr rur", Alu, &[FTZ, flag(Field::Mode, 81, &["", ".NAN"]), RD, A, B, C, PP]).sm(100, 110),
    Family::new("FSETP", 0x00b, BINARY, Alu, &[COMPARE, FTZ, BOOL, PD, PQ, A, B, PP]),
    Family::new("FSET", 0x00a, BINARY, Alu, &[Piece::Text(".BF"), COMPARE, FTZ, BOOL, RD, A, B, PP]),
    Family::new("FCHK", 0x102, "rr ri rc ru", Xu, &[PD, A, source_wide(Mods::NegAbs, F32)]),
    Family::new("MUFU", 0x108, "r i c u:6", Xu, &[
        choice(Field::Op, 74, 4, MUFU), choice(Field::Type, 72, 2, &["", BAD, ".F16", BAD]), RD, MUFU_SOURCE,
    ]).sm(75, 89),
    Family::new("MUFU", 0x108, "r i c u:6", Xu, &[
        choice(Field::Op, 74, 4, MUFU), choice(Field::Type, 72, 2, &["", ".F16", ".BF16", BAD]), RD, MUFU_SOURCE,
    ]).sm(90, 255),
    Family::new("DADD", 0x029, AS_C, Fp64, &[ROUND, RD2, A2, B2_AS_C]),
    Family::new("DMUL", 0x028, BINARY, Fp64, &[ROUND, RD2, A2, B2]),
    Family::new("DFMA", 0x02b, MULTIPLY, Fp64, &[ROUND, RD2, A2, B2, C2]),
    Family::new("DSETP", 0x02a, AS_C, Fp64Compare, &[
        choice(Field::Cmp, 76, 4, DOUBLE_COMPARE), BOOL, PD, PQ, A2, B2_WIDE, PP,
    ]),
];

const MUFU: &[&str] = &[
    ".COS", ".SIN", ".EX2", ".LG2", ".RCP", ".RSQ", ".RCP64H", ".RSQ64H", ".SQRT", ".TANH", BAD, BAD, BAD,
    BAD, BAD, BAD,
];
/// In the places of never and always, the comparisons that select a minimum or maximum.
const DOUBLE_COMPARE: &[&str] = &[
    ".MIN", ".LT", ".EQ", ".LE", ".GT", ".NE", ".GE", ".NUM", ".NAN", ".LTU", ".EQU", ".LEU", ".GTU", ".NEU",
    ".GEU", ".MAX",
];
