//! Matrix products of a warpgroup. Their operands are in shared memory and given by descriptors.
//!
//! They run asynchronously. `gsb0` on an instruction ends a group of products, and `WARPGROUP.DEPBAR` waits for groups.

use super::*;
use crate::class::Class::*;

/// Lists the shapes with 64 rows and every multiple of eight columns, for each depth.
macro_rules! every_eighth {
    ($($k:literal),*) => {
        &[$(
            concat!(".64x8x", $k), concat!(".64x16x", $k), concat!(".64x24x", $k), concat!(".64x32x", $k),
            concat!(".64x40x", $k), concat!(".64x48x", $k), concat!(".64x56x", $k), concat!(".64x64x", $k),
            concat!(".64x72x", $k), concat!(".64x80x", $k), concat!(".64x88x", $k), concat!(".64x96x", $k),
            concat!(".64x104x", $k), concat!(".64x112x", $k), concat!(".64x120x", $k), concat!(".64x128x", $k),
            concat!(".64x136x", $k), concat!(".64x144x", $k), concat!(".64x152x", $k), concat!(".64x160x", $k),
            concat!(".64x168x", $k), concat!(".64x176x", $k), concat!(".64x184x", $k), concat!(".64x192x", $k),
            concat!(".64x200x", $k), concat!(".64x208x", $k), concat!(".64x216x", $k), concat!(".64x224x", $k),
            concat!(".64x232x", $k), concat!(".64x240x", $k), concat!(".64x248x", $k), concat!(".64x256x", $k)
        ),*]
    };
}

/// Lists the shapes of integer products, which have fewer numbers of columns.
macro_rules! integer_widths {
    ($list:ident, $k:literal) => {
        $list!(
            concat!(".64x8x", $k),
            concat!(".64x16x", $k),
            concat!(".64x24x", $k),
            concat!(".64x32x", $k),
            concat!(".64x48x", $k),
            concat!(".64x64x", $k),
            concat!(".64x80x", $k),
            concat!(".64x96x", $k),
            concat!(".64x112x", $k),
            concat!(".64x128x", $k),
            concat!(".64x144x", $k),
            concat!(".64x160x", $k),
            concat!(".64x176x", $k),
            concat!(".64x192x", $k),
            concat!(".64x208x", $k),
            concat!(".64x224x", $k),
            concat!(".64x240x", $k),
            concat!(".64x256x", $k)
        )
    };
}

macro_rules! bits {
    ($($text:expr),*) => { &[$($text),*] };
}

/// The shapes of byte products. Of every three codes, one is a dense shape, one a sparse shape, and one is unused.
macro_rules! dense_bytes {
    ($($text:expr),*) => { &[$($text, BAD, BAD),*] };
}

macro_rules! sparse_bytes {
    ($($text:expr),*) => { &[$(BAD, $text, BAD),*] };
}

/// The number of registers of a half-precision accumulator. Single precision takes twice as many.
const HALF_COUNTS: &[u8; 64] = &{
    let mut counts = [0; 64];
    let mut i = 0;
    while i < 64 {
        counts[i] = (i as u8 % 32 + 1) * 2;
        i += 1;
    }
    counts
};

/// The numbers of columns of integer products, in units of eight.
const INTEGER_WIDTHS: [u8; 18] = [1, 2, 3, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32];

const BIT_COUNTS: &[u8; 18] = &{
    let mut counts = INTEGER_WIDTHS;
    let mut i = 0;
    while i < 18 {
        counts[i] *= 4;
        i += 1;
    }
    counts
};

/// The number of accumulator registers of byte products, by shape code. The codes of dense and sparse shapes alternate.
const BYTE_COUNTS: &[u8; 54] = &{
    let mut counts = [0; 54];
    let mut i = 0;
    while i < 54 {
        counts[i] = INTEGER_WIDTHS[i / 3] * 4;
        i += 1;
    }
    counts
};

const RESULT: Piece = flag(Field::Type, 75, &[".F16", ".F32"]);
const FORMAT: Piece = choice(Field::SrcType, 76, 2, &["", ".BF16", ".TF32", BAD]);
const HALF_SHAPE: Piece = choice(Field::Size, 53, 6, every_eighth!(16, 8));
const SPARSE_HALF_SHAPE: Piece =
    Piece::Mod(FieldSpec::new(Field::Size, 53, 5).high(59, 1).choice(every_eighth!(16, 32)));
const BYTE_SHAPE: Piece = choice(Field::Size, 53, 6, integer_widths!(dense_bytes, 32));
const SPARSE_BYTE_SHAPE: Piece = choice_from(Field::Size, 53, 6, integer_widths!(sparse_bytes, 64), 1);
const BIT_SHAPE: Piece = choice(Field::Size, 53, 6, integer_widths!(bits, 256));
const QUARTER_SHAPE: Piece = choice(Field::Size, 53, 5, every_eighth!(32));
const SPARSE_QUARTER_SHAPE: Piece = choice(Field::Size, 53, 5, every_eighth!(64));
const FORMAT_A: Piece = flag(Field::SrcType, 76, &[".E4M3", ".E5M2"]);
const FORMAT_B: Piece = flag(Field::SrcType2, 77, &[".E4M3", ".E5M2"]);
const SIGN_A: Piece = choice(Field::SrcType, 76, 2, &[".U8", ".S8", BAD, BAD]);
const SIGN_B: Piece = choice(Field::SrcType2, 82, 2, &[".U8", ".S8", BAD, BAD]);
const SAT: Piece = flag(Field::Sat, 75, &["", ".SAT"]);
const SPARSE: Piece = Piece::Text(".SP");
const REGOFFSET: Piece = flag(Field::Flag, 74, &["", ".REGOFFSET"]);
const SPARSE_BIT: u128 = one(73);

const FLOAT_COUNT: Count = Count::By2(Field::Size, HALF_COUNTS, Field::Type, &[1, 2]);
const FLOAT_D: Piece = op(counted(RD_OPERAND, FLOAT_COUNT));
const FLOAT_C: Piece = op(counted(C_OPERAND, FLOAT_COUNT));
const BYTE_D: Piece = op(counted(RD_OPERAND, Count::By(Field::Size, BYTE_COUNTS)));
const BYTE_C: Piece = op(counted(C_OPERAND, Count::By(Field::Size, BYTE_COUNTS)));
const BIT_D: Piece = op(counted(RD_OPERAND, Count::By(Field::Size, BIT_COUNTS)));
const BIT_C: Piece = op(counted(C_OPERAND, Count::By(Field::Size, BIT_COUNTS)));
const C_OPERAND: RegOperand = reg_at(Field::Rc, 64, Role::C);
/// The first factor, in registers.
const A_OPERAND: RegOperand = counted(reg_at(Field::Ra, 24, Role::A), Count::Fixed(4));
const A: Piece = op(A_OPERAND);
const NEG_A: Piece = op(RegOperand { neg: Some(FieldSpec::new(Field::NegA, 72, 1)), ..A_OPERAND });

/// The descriptor of the second factor. The text names the first of its two register pairs.
const fn second(suffix: Option<FieldSpec>) -> Piece {
    let reg = counted(ureg_at(Field::URb, 32, Role::B), Count::Fixed(4));
    handle("gdesc", RegOperand { suffix, ..reg }, None)
}

/// The descriptors of both factors, in two pairs of registers.
const fn both(suffix: Option<FieldSpec>) -> Piece {
    let reg = counted(ureg_at(Field::URa, 24, Role::A), Count::Fixed(4));
    handle("gdesc", RegOperand { suffix, ..reg }, None)
}

const B_HALF: Piece =
    second(Some(FieldSpec::new(Field::LayoutB, 62, 2).choice(&["", ".tnspB", ".negB", ".negB.tnspB"])));
const AB_HALF: Piece = both(Some(FieldSpec::new(Field::LayoutB, 61, 3).high(72, 1).choice(&[
    "",
    ".tnspA",
    ".tnspB",
    ".tnspA.tnspB",
    ".negB",
    ".negB.tnspA",
    ".negB.tnspB",
    ".negB.tnspA.tnspB",
    ".negA",
    ".negA.tnspA",
    ".negA.tnspB",
    ".negA.tnspA.tnspB",
    ".negA.negB",
    ".negA.negB.tnspA",
    ".negA.negB.tnspB",
    ".negA.negB.tnspA.tnspB",
])));
const B_QUARTER: Piece = second(Some(FieldSpec::new(Field::LayoutB, 63, 1).choice(&["", ".negB"])));
const AB_QUARTER: Piece = both(Some(FieldSpec::new(Field::LayoutB, 63, 1).high(72, 1).choice(&[
    "",
    ".negB",
    ".negA",
    ".negA.negB",
])));
const B_PLAIN: Piece = second(None);
const AB_PLAIN: Piece = both(None);
/// Whether the product is added to the accumulator.
const ACCUMULATE: Piece = optional(inverted(UPP_OPERAND));
const METADATA: Piece = op(reg_at(Field::Re, 40, Role::D));
const SELECTOR_SPEC: FieldSpec = FieldSpec::new(Field::Imm2, 48, 2);
const SELECTOR: Piece = Piece::Op(Operand::Imm(SELECTOR_SPEC, ImmStyle::Hex));
const SELECTOR_UNLESS_ZERO: Piece = Piece::OpIf(Operand::Imm(SELECTOR_SPEC, ImmStyle::Hex), Show::NotNeutral);
/// Ends the group.
const GROUP: Piece = Piece::OpIf(
    Operand::Word(
        FieldSpec::new(Field::Scoreboard, 84, 3)
            .choice(&["gsb0", BAD, BAD, BAD, BAD, BAD, BAD, ""])
            .neutral(7),
    ),
    Show::NotNeutral,
);

/// Products with the first factor in registers.
const fn registers(name: &'static str, opcode: u16, pieces: &'static [Piece]) -> Family {
    Family::new(name, opcode, "", Async, pieces).ones(one(91)).sm(90, 90).labelled("r")
}

/// Products with both factors in shared memory.
const fn shared(name: &'static str, opcode: u16, pieces: &'static [Piece]) -> Family {
    Family::new(name, opcode, "", Async, pieces).ones(one(91)).sm(90, 90)
}

const fn control(name: &'static str, ones: u128, pieces: &'static [Piece]) -> Family {
    Family::new(name, 0x9c5, "", Sync, pieces).ones(ones).sm(90, 90)
}

#[rustfmt::skip]
pub(super) const ROWS: &[Family] = &[
    registers("HGMMA", 0xdf0, &[HALF_SHAPE, RESULT, FORMAT, FLOAT_D, NEG_A, B_HALF, FLOAT_C, ACCUMULATE, GROUP]),
    shared("HGMMA", 0x9f0, &[HALF_SHAPE, RESULT, FORMAT, FLOAT_D, AB_HALF, FLOAT_C, ACCUMULATE, GROUP]),
    registers("HGMMA.SP", 0xdf0, &[
        SPARSE, REGOFFSET, SPARSE_HALF_SHAPE, RESULT, FORMAT, FLOAT_D, NEG_A, B_HALF, FLOAT_C, ACCUMULATE, METADATA, SELECTOR, GROUP,
    ]).ones(one(91) | SPARSE_BIT),
    shared("HGMMA.SP", 0x9f0, &[
        SPARSE, REGOFFSET, SPARSE_HALF_SHAPE, RESULT, FORMAT, FLOAT_D, AB_HALF, FLOAT_C, ACCUMULATE, METADATA, SELECTOR, GROUP,
    ]).ones(one(91) | SPARSE_BIT),
    registers("IGMMA", 0xdf1, &[BYTE_SHAPE, SIGN_A, SIGN_B, SAT, BYTE_D, A, B_PLAIN, BYTE_C, ACCUMULATE, GROUP]),
    shared("IGMMA", 0x9f1, &[BYTE_SHAPE, SIGN_A, SIGN_B, SAT, BYTE_D, AB_PLAIN, BYTE_C, ACCUMULATE, GROUP]),
    registers("IGMMA.SP", 0xdf1, &[
        SPARSE, REGOFFSET, SPARSE_BYTE_SHAPE, SIGN_A, SIGN_B, SAT, BYTE_D, A, B_PLAIN, BYTE_C, ACCUMULATE, METADATA, SELECTOR_UNLESS_ZERO, GROUP,
    ]).ones(one(91) | SPARSE_BIT),
    shared("IGMMA.SP", 0x9f1, &[
        SPARSE, REGOFFSET, SPARSE_BYTE_SHAPE, SIGN_A, SIGN_B, SAT, BYTE_D, AB_PLAIN, BYTE_C, ACCUMULATE, METADATA, SELECTOR_UNLESS_ZERO, GROUP,
    ]).ones(one(91) | SPARSE_BIT),
    registers("BGMMA", 0xdf2, &[BIT_SHAPE, Piece::Text(".AND"), Piece::Text(".POPC"), BIT_D, A, B_PLAIN, BIT_C, ACCUMULATE, GROUP])
        .ones(one(91) | one(78) | one(80)),
    shared("BGMMA", 0x9f2, &[BIT_SHAPE, Piece::Text(".AND"), Piece::Text(".POPC"), BIT_D, AB_PLAIN, BIT_C, ACCUMULATE, GROUP])
        .ones(one(91) | one(78) | one(80)),
    registers("QGMMA", 0xdf3, &[QUARTER_SHAPE, RESULT, FORMAT_A, FORMAT_B, FLOAT_D, NEG_A, B_QUARTER, FLOAT_C, ACCUMULATE, GROUP]),
    shared("QGMMA", 0x9f3, &[QUARTER_SHAPE, RESULT, FORMAT_A, FORMAT_B, FLOAT_D, AB_QUARTER, FLOAT_C, ACCUMULATE, GROUP]),
    registers("QGMMA.SP", 0xdf3, &[
        SPARSE, REGOFFSET, SPARSE_QUARTER_SHAPE, RESULT, FORMAT_A, FORMAT_B, FLOAT_D, NEG_A, B_QUARTER, FLOAT_C, ACCUMULATE, METADATA, SELECTOR_UNLESS_ZERO, GROUP,
    ]).ones(one(91) | SPARSE_BIT | one(58)),
    shared("QGMMA.SP", 0x9f3, &[
        SPARSE, REGOFFSET, SPARSE_QUARTER_SHAPE, RESULT, FORMAT_A, FORMAT_B, FLOAT_D, AB_QUARTER, FLOAT_C, ACCUMULATE, METADATA, SELECTOR_UNLESS_ZERO, GROUP,
    ]).ones(one(91) | SPARSE_BIT | one(58)),
    control("WARPGROUP.ARRIVE", 0, &[Piece::Text(".ARRIVE")]),
    control("WARPGROUP.WAIT", one(79), &[Piece::Text(".WAIT")]),
    control("WARPGROUP.DEPBAR", one(47) | one(80), &[
        Piece::Text(".DEPBAR"), Piece::Text(".LE"), Piece::Op(Operand::Literal("gsb0")), imm(Field::Imm2, 72, 3),
    ]),
];
