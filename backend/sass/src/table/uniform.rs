//! The uniform datapath, and what moves values into and out of it.

use super::moves::SPECIAL;
use super::*;
use crate::class::Class::*;
use ImmStyle::*;

const EXTEND: Piece = flag(Field::Extend, 74, &["", ".X"]);
const SIGNED: Piece = choice_from(Field::Signed, 73, 1, &[".U32", ""], 1);
const NEG: Mods = Mods::NegOrNot(Field::Extend);
const A: Piece = source_a(NEG, SignedHex);
const B: Piece = source_b(NEG, SignedHex);
const C: Piece = source_c(NEG, SignedHex);
const A_PLAIN: Piece = source_a(Mods::None, Hex);
const B_PLAIN: Piece = source_b(Mods::None, Hex);
const C_PLAIN: Piece = source_c(Mods::None, Hex);
const CARRY: Piece =
    op_when(noted_false(upred_at(Field::Pp, 87, Role::Carry), Field::PpNot, 90), Field::Extend, 1);
const CARRY2: Piece =
    op_when(noted_false(upred_at(Field::Pr, 77, Role::Carry), Field::PrNot, 80), Field::Extend, 1);
const SHIFT: Piece = imm(Field::Imm2, 75, 5);
const CARRY_OUT: Piece = optional(UPD_OPERAND);
const CARRY_OUT2: Piece = optional(UPQ_OPERAND);
const TERNARY: &str = "uuu uiu";
const MULTIPLY: &str = "uuu uiu uui";
const BINARY: &str = "uu ui";
const NO_C: u128 = 0x3f << 64;
const NO_C_WIDE: u128 = 0xff << 64;

const fn row(name: &'static str, opcode: u16, shapes: &'static str, pieces: &'static [Piece]) -> Family {
    Family::new(name, opcode, shapes, Uniform, pieces).uniform()
}

#[rustfmt::skip]
pub(super) const ROWS: &[Family] = &[
    Family::new("UMOV", 0x082, "u:6 i", UniformMove, &[URD, source_wide(Mods::None, Hex)]).uniform(),
    Family::new("ULDC", 0xab9, "", UniformMove, &[LOAD_SIZE, op(counted(ureg_at(Field::URd, 16, Role::Dst), UNIFORM_COUNT)), CONSTANT]).uniform().sm(75, 90),
    Family::new("ULDC", 0xabb, "", UniformMove, &[LOAD_SIZE, op(counted(ureg_at(Field::URd, 16, Role::Dst), UNIFORM_COUNT)), CONSTANT_INDEX])
        .uniform().ones(one(91)).sm(75, 90).labelled("u"),
    Family::new("LDCU", 0x7ac, "", UniformLoad, &[
        choice_from(Field::Size, 73, 3, &[".U8", ".S8", ".U16", ".S16", "", ".64", ".128", BAD], 4),
        op(counted(ureg_at(Field::URd, 16, Role::Dst), Count::By(Field::Size, &[1, 1, 1, 1, 1, 2, 4]))), CONSTANT_WORDS,
    ]).uniform().ones(one(91)).sm(100, 255),
    row("UIADD3", 0x090, TERNARY, &[EXTEND, URD, CARRY_OUT, CARRY_OUT2, A, B, C, CARRY, CARRY2]).sm(75, 90),
    row("UIADD3", 0x090, TERNARY, &[EXTEND, URD, UPD, UPQ, A, B, C, CARRY, CARRY2]).sm(100, 255),
    row("UIADD3.64", 0x097, TERNARY, &[
        Piece::Text(".64"), EXTEND, URD2, CARRY_OUT, CARRY_OUT2, pair(A), pair(B), pair(C), CARRY, CARRY2,
    ]).sm(90, 90),
    row("UIADD3.64", 0x097, TERNARY, &[
        Piece::Text(".64"), EXTEND, URD2, UPD, UPQ, pair(A), pair(B), pair(C), CARRY, CARRY2,
    ]).sm(100, 255),
    row("ULEA", 0x091, BINARY, &[EXTEND, URD, CARRY_OUT, A, source_b(NEG, Hex), SHIFT, CARRY]).ones(NO_C).sm(75, 90),
    row("ULEA", 0x091, BINARY, &[EXTEND, URD, CARRY_OUT, A, source_b(NEG, Hex), SHIFT, CARRY]).ones(NO_C_WIDE).sm(100, 255),
    row("ULEA.HI", 0x091, TERNARY, &[Piece::Text(".HI"), EXTEND, URD, CARRY_OUT, A, source_b(NEG, Hex), C_PLAIN, SHIFT, CARRY]).ones(one(80)),
    row("ULEA.HI.SX32", 0x091, BINARY, &[Piece::Text(".HI"), EXTEND, Piece::Text(".SX32"), URD, CARRY_OUT, A, source_b(NEG, Hex), SHIFT, CARRY])
        .ones(NO_C | one(73) | one(80)).sm(75, 90),
    row("ULEA.HI.SX32", 0x091, BINARY, &[Piece::Text(".HI"), EXTEND, Piece::Text(".SX32"), URD, CARRY_OUT, A, source_b(NEG, Hex), SHIFT, CARRY])
        .ones(NO_C_WIDE | one(73) | one(80)).sm(100, 255),
    row("UIMAD", 0x0a4, MULTIPLY, &[SIGNED, EXTEND, URD, source_a(Mods::None, SignedHex), source_b(Mods::None, SignedHex), C, CARRY]).ones(7 << 81),
    row("UIMAD.WIDE", 0x0a5, TERNARY, &[
        Piece::Text(".WIDE"), SIGNED, EXTEND, URD2, CARRY_OUT, source_a(Mods::None, SignedHex), source_b(Mods::None, SignedHex), pair(C), CARRY,
    ]),
    row("UFLO", 0x0bd, "u:1", &[SIGNED, flag(Field::Mode, 74, &["", ".SH"]), URD, CARRY_OUT, source_wide(Mods::Not, Hex)]),
    row("UPOPC", 0x0bf, "u:1", &[URD, source_wide(Mods::Not, Hex)]),
    row("UBREV", 0x0be, "u:1", &[URD, source_wide(Mods::None, Hex)]),
    row("UP2UR", 0x083, "ui", &[choice(Field::Mode, 76, 2, &["", ".B1", ".B2", ".B3"]), URD, Piece::Op(Operand::Literal("UPR")), A_PLAIN, B_PLAIN]),
    row("UR2UP", 0x884, "", &[Piece::Op(Operand::Literal("UPR")), source_a_bytes(), UNLESS_ALL]).ones(one(91)),
    row("ULOP3", 0x092, TERNARY, &[
        Piece::Text(".LUT"), flag(Field::Mode, 80, &["", ".PAND"]), CARRY_OUT, URD, A_PLAIN, B_PLAIN, C_PLAIN, imm(Field::Lut, 72, 8),
        op(noted_false(upred_at(Field::Pp, 87, Role::Carry), Field::PpNot, 90)),
    ]),
    row("USHF", 0x099, MULTIPLY, &[
        flag(Field::Right, 76, &[".L", ".R"]), flag(Field::Wrap, 75, &["", ".W"]), choice(Field::Type, 73, 2, &[".S64", ".U64", ".S32", ".U32"]),
        flag(Field::High, 80, &["", ".HI"]), URD, A_PLAIN, B_PLAIN, C_PLAIN,
    ]),
    row("UISETP", 0x08c, BINARY, &[
        choice(Field::Cmp, 76, 3, INT_COMPARE), SIGNED, BOOL, flag(Field::Extend, 72, &["", ".EX"]), UPD, UPQ,
        A_PLAIN, source_b(Mods::None, SignedHex), UPP, op_when(noted(upred_at(Field::Pr, 68, Role::Carry), Field::PrNot, 71), Field::Extend, 1),
    ]),
    Family::new("UMOV.64", 0x482, "", UniformMove, &[Piece::Text(".64"), URD2, imm(Field::Imm32, 24, 64)]).uniform().ones(one(91)).sm(120, 255).labelled("i"),
    row("UISETP.64", 0x08c, BINARY, &[
        choice(Field::Cmp, 76, 3, INT_COMPARE), choice_from(Field::Signed, 73, 1, &[".U64", ".S64"], 1), BOOL, UPD, UPQ, pair(A_PLAIN), pair(source_b(Mods::None, SignedHex)), UPP,
    ]).ones(one(80) | 7 << 68).sm(120, 255),
    row("USEL", 0x087, BINARY, &[URD, A_PLAIN, B_PLAIN, UPP]),
    row("UPRMT", 0x096, TERNARY, &[URD, A_PLAIN, B_PLAIN, C_PLAIN]),
    Family::new("S2UR", 0x9c3, "", UniformLoad, &[URD, SPECIAL]).uniform(),
    Family::new("R2UR", 0x3c2, "", UniformLoad, &[optional(PD_OPERAND), URD, RA]).sm(75, 89),
    Family::new("R2UR", 0x2ca, "", UniformLoad, &[optional(PD_OPERAND), URD, RA]).sm(90, 255),
];

const SIZES: &[&str] = &[".U8", ".S8", ".U16", ".S16", "", ".64", BAD, BAD];
const LOAD_SIZE: Piece = choice_from(Field::Size, 73, 3, SIZES, 4);
const UNIFORM_COUNT: Count = Count::By(Field::Size, &[1, 1, 1, 1, 1, 2]);
/// The predicates that `UR2UP` writes, shown unless the lowest eight.
const UNLESS_ALL: Piece =
    Piece::OpIf(Operand::Imm(FieldSpec::new(Field::Imm32, 32, 32).neutral(0xff), Hex), Show::NotNeutral);

/// `UR.B1`.
const fn source_a_bytes() -> Piece {
    op(RegOperand {
        suffix: Some(FieldSpec::new(Field::Mode, 76, 2).choice(&["", ".B1", ".B2", ".B3"])),
        ..ureg_at(Field::URa, 24, Role::A)
    })
}

const CONSTANT_INDEX: Piece = Piece::Op(Operand::Const(ConstOperand {
    bank: FieldSpec::new(Field::CBank, 54, 5),
    offset: FieldSpec::new(Field::COffset, 38, 16),
    index: Some(ureg_at(Field::URa, 24, Role::Address)),
    handle: None,
    neg: None,
    abs: None,
    suffix: None,
    text: "",
    complement: None,
}));
const CONSTANT_WORDS: Piece = Piece::Op(Operand::Const(ConstOperand {
    bank: FieldSpec::new(Field::CBank, 54, 5),
    offset: FieldSpec::new(Field::COffset, 37, 17),
    index: Some(ureg_at(Field::URa, 24, Role::Address)),
    handle: None,
    neg: None,
    abs: None,
    suffix: None,
    text: "",
    complement: None,
}));
const CONSTANT: Piece = Piece::Op(Operand::Const(ConstOperand {
    bank: FieldSpec::new(Field::CBank, 54, 5),
    offset: FieldSpec::new(Field::COffset, 38, 16),
    index: None,
    handle: None,
    neg: None,
    abs: None,
    suffix: None,
    text: "",
    complement: None,
}));
