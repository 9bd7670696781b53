//! The uniform datapath, and moves of values into and out of it.

use super::convert::{C_HALF_FLOAT, HALF, WORD32, WORDS};
use super::float::{COMPARE, HALF_TYPE, SCALE, half_of};
use super::integer::{C_HALF, MINIMUM_COUNT, PACKED, SATURATE, VECTOR_TYPE, minimum_of};
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
        choice_from(Field::Size, 73, 3, &[".U8", ".S8", ".U16", ".S16", "", ".64", ".128", BAD], 4), since(choice(Field::Mode, 80, 2, &["", ".TEXUNPACK", ".HDRUNPACK", BAD]), 2, 120),
        op(counted(ureg_at(Field::URd, 16, Role::Dst), Count::By(Field::Size, &[1, 1, 1, 1, 1, 2, 4]))), CONSTANT_WORDS,
    ]).uniform().ones(one(91)).sm(100, 255),
    row("UIADD3", 0x090, TERNARY, &[EXTEND, URD, CARRY_OUT, CARRY_OUT2, A, B, C, CARRY, CARRY2]).sm(75, 90),
    row("UIADD3", 0x090, TERNARY, &[EXTEND, URD, UPD, UPQ, A, B, C, CARRY, CARRY2]).sm(100, 255),
    row("UIADD3.64", 0x097, TERNARY, &[
        Piece::Text(".64"), EXTEND, URD2, CARRY_OUT, CARRY_OUT2, pair(A), pair(B), pair(C), CARRY, CARRY2,
    ]).sm(75, 90),
    row("UIADD3.64", 0x097, TERNARY, &[
        Piece::Text(".64"), EXTEND, URD2, UPD, UPQ, pair(A), pair(B), pair(C), CARRY, CARRY2,
    ]).sm(100, 255),
    row("ULEA", 0x091, BINARY, &[EXTEND, URD, CARRY_OUT, A, source_b(NEG, Hex), SHIFT, CARRY]).filled(NO_C).sm(75, 90),
    row("ULEA", 0x091, BINARY, &[EXTEND, URD, CARRY_OUT, A, source_b(NEG, Hex), SHIFT, CARRY]).filled(NO_C_WIDE).sm(100, 255),
    row("ULEA.HI", 0x091, "uui", &[Piece::Text(".HI"), EXTEND, URD, CARRY_OUT, A, B_PLAIN, C_PLAIN, SHIFT, CARRY]).ones(one(80)),
    row("ULEA.HI", 0x091, TERNARY, &[Piece::Text(".HI"), EXTEND, URD, CARRY_OUT, A, source_b(NEG, Hex), C_PLAIN, SHIFT, CARRY]).ones(one(80)),
    row("ULEA.HI.SX32", 0x091, BINARY, &[Piece::Text(".HI"), EXTEND, Piece::Text(".SX32"), URD, CARRY_OUT, A, source_b(NEG, Hex), SHIFT, CARRY])
        .filled(NO_C).ones(one(73) | one(80)).sm(75, 90),
    row("ULEA.HI.SX32", 0x091, BINARY, &[Piece::Text(".HI"), EXTEND, Piece::Text(".SX32"), URD, CARRY_OUT, A, source_b(NEG, Hex), SHIFT, CARRY])
        .filled(NO_C_WIDE).ones(one(73) | one(80)).sm(100, 255),
    row("UIMAD", 0x0a4, MULTIPLY, &[SIGNED, EXTEND, URD, source_a(Mods::None, SignedHex), source_b(Mods::None, SignedHex), C, CARRY]).ones(7 << 81),
    row("UIMAD.WIDE", 0x0a5, TERNARY, &[
        Piece::Text(".WIDE"), SIGNED, EXTEND, URD2, CARRY_OUT, source_a(Mods::None, SignedHex), source_b(Mods::None, SignedHex), pair(C), CARRY,
    ]),
    row("UIMAD.HI", 0x0a6, TERNARY, &[
        Piece::Text(".HI"), SIGNED, EXTEND, URD, CARRY_OUT, source_a(Mods::None, SignedHex), source_b(Mods::None, SignedHex), pair(C), CARRY,
    ]).sm(120, 255),
    unary("UFLO", 0x0bd, &[SIGNED, flag(Field::Mode, 74, &["", ".SH"]), URD, CARRY_OUT, source_wide(Mods::Not, Hex)]),
    unary("UPOPC", 0x0bf, &[URD, source_wide(Mods::Not, Hex)]),
    unary("UBREV", 0x0be, &[URD, source_wide(Mods::None, Hex)]),
    row("UP2UR", 0x083, "ui uu:6", &[choice(Field::Mode, 76, 2, &["", ".B1", ".B2", ".B3"]), URD, Piece::Op(Operand::Literal("UPR")), A_PLAIN, B_PLAIN]),
    row("UR2UP", 0x884, "", &[Piece::Op(Operand::Literal("UPR")), source_a_bytes(), UNLESS_ALL]).ones(one(91)),
    row("UR2UP", 0xc84, "", &[Piece::Op(Operand::Literal("UPR")), source_a_bytes(), op(ureg_at(Field::Ur, 32, Role::B))]).ones(one(91)).labelled("u"),
    Family::new("UPLOP3", 0x89c, "", Uniform, &[
        Piece::Text(".LUT"), UPD, UPQ, UPP,
        op(noted(upred_at(Field::Pr, 77, Role::Carry), Field::PrNot, 80)),
        op(noted(upred_at(Field::Ps, 68, Role::Carry), Field::PsNot, 71)),
        Piece::Op(Operand::Imm(FieldSpec::new(Field::Lut, 64, 3).high(72, 5), Hex)), imm(Field::Lut2, 16, 8),
    ]).uniform(),
    row("UPLOP3.SIGN", 0x09d, "u:1", &[
        Piece::Text(".LUT"), UPD, UPQ, UPP, sign_of(Role::B, Place::Wide),
        op(noted(upred_at(Field::Ps, 68, Role::Carry), Field::PsNot, 71)), imm(Field::Lut, 72, 8), imm(Field::Lut2, 16, 8),
    ]),
    row("UPLOP3.SIGN", 0x09e, "uu", &[
        Piece::Text(".LUT"), UPD, UPQ, UPP, sign_of(Role::B, Place::B), sign_of(Role::C, Place::C), imm(Field::Lut, 72, 8), imm(Field::Lut2, 16, 8),
    ]),
    row("UPLOP3.SIGN", 0x09f, "uuu", &[
        Piece::Text(".LUT"), UPD, UPQ, sign_of(Role::A, Place::A), sign_of(Role::B, Place::B), sign_of(Role::C, Place::C), imm(Field::Lut, 72, 8), imm(Field::Lut2, 16, 8),
    ]),
    row("UBMSK", 0x09b, BINARY, &[flag(Field::Wrap, 75, &["", ".W"]), URD, A_PLAIN, B_PLAIN]),
    row("USGXT", 0x09a, BINARY, &[flag(Field::Wrap, 75, &["", ".W"]), SIGNED, URD, A_PLAIN, B_PLAIN]),
    row("UCLEA", 0x8bc, "", &[URD, UPD, op(ureg_at(Field::URa, 24, Role::A)), imm(Field::Imm32, 32, 16), imm(Field::Imm2, 73, 4)]).ones(one(91)).labelled("i").sm(75, 90),
    row("UCLEA", 0x8bc, "", &[URD, UPD, op(ureg_at(Field::URa, 24, Role::A)), imm(Field::Imm32, 32, 16), imm(Field::Imm2, 73, 5)]).ones(one(91)).labelled("i").sm(100, 255),
    row("UCLEA", 0xcbc, "", &[URD, UPD, op(ureg_at(Field::URa, 24, Role::A)), op(ureg_at(Field::Ur, 32, Role::B)), imm(Field::Imm2, 73, 4)]).ones(one(91)).labelled("u").sm(75, 90),
    row("UCLEA", 0xcbc, "", &[URD, UPD, op(ureg_at(Field::URa, 24, Role::A)), op(ureg_at(Field::Ur, 32, Role::B)), imm(Field::Imm2, 73, 5)]).ones(one(91)).labelled("u").sm(100, 255),
    row("UIMNMX", 0x085, BINARY, &[
        choice_from(Field::Type, 73, 2, &[".U32", "", ".U64", ".S64"], 1), UPD, UPQ,
        op(counted(ureg_at(Field::URd, 16, Role::Dst), MINIMUM_COUNT)), minimum_of(Role::A, Place::A), minimum_of(Role::B, Place::B), UPP,
        op(noted(upred_at(Field::Pr, 77, Role::Carry), Field::PrNot, 80)),
    ]).sm(120, 255),
    row("UVIMNMX", 0x04a, BINARY, &[
        choice_from(Field::Type, 72, 3, &[".U32", ".S32", ".U16x2", ".S16x2", ".U8x4", ".S8x4", BAD, BAD], 1), flag(Field::Relu, 76, &["", ".RELU"]),
        URD, A_PLAIN, source_b(Mods::None, SignedHex), UPP,
    ]).ones(0x3f << 81).sm(120, 255),
    row("UVIADD", 0x049, BINARY, &[VECTOR_TYPE, SATURATE, URD, source_a(Mods::Neg, Hex), source_b(Mods::Neg, Hex)]).sm(120, 255),
    unary("UIABS", 0x04d, &[URD, source_wide(Mods::None, SignedHex)]).sm(120, 255),
    unary("UI2I", 0x04e, &[choice(Field::Type, 76, 2, &[".U8", ".S8", ".U16", ".S16"]), Piece::Text(".S32"), Piece::Text(".SAT"), URD, source_wide(Mods::None, SignedHex)]).sm(120, 255),
    row("UI2IP", 0x04f, TERNARY, &[
        PACKED, Piece::Text(".S32"), choice(Field::Sat, 74, 2, &["", ".SAT", ".RELU", BAD]), URD, A_PLAIN, source_b(Mods::None, SignedHex), C_HALF,
    ]).sm(120, 255),
    row("UFADD", 0x054, "uu ui:2", &[FTZ, ROUND, SAT, URD, FLOAT_A, source(slot(Role::B, Place::C, Mods::NegAbs, F32))]).sm(120, 255),
    row("UFFMA", 0x055, MULTIPLY, &[FTZ_FMZ, ROUND, SAT, URD, FLOAT_A, FLOAT_B, source_c(Mods::NegAbs, F32)]).sm(120, 255),
    row("UFMUL", 0x056, BINARY, &[FTZ_FMZ, SCALE, ROUND, SAT, URD, FLOAT_A, FLOAT_B]).sm(120, 255),
    row("UFHADD", 0x054, "uu", &[HALF_TYPE, ROUND, SAT, URD, half_of(Role::A, Place::A, 83), source(slot(Role::B, Place::C, Mods::NegAbs, F32))]).ones(one(81)).sm(120, 255),
    row("UFHFMA", 0x055, "uuu", &[HALF_TYPE, ROUND, SAT, URD, half_of(Role::A, Place::A, 83), half_of(Role::B, Place::B, 84), source_c(Mods::NegAbs, F32)])
        .ones(one(81)).sm(120, 255),
    row("UFMNMX", 0x050, BINARY, &[FTZ, flag(Field::Mode, 81, &["", ".NAN"]), flag(Field::Flag, 82, &["", ".XORSIGN"]), URD, FLOAT_A, FLOAT_B, UPP]).sm(120, 255),
    row("UFSEL", 0x051, BINARY, &[FTZ, URD, FLOAT_A, FLOAT_B, UPP]).sm(120, 255),
    row("UFSET", 0x052, BINARY, &[Piece::Text(".BF"), COMPARE, FTZ, BOOL, URD, FLOAT_A, FLOAT_B, UPP]).sm(120, 255),
    row("UFSETP", 0x053, BINARY, &[COMPARE, FTZ, BOOL, UPD, UPQ, FLOAT_A, FLOAT_B, UPP]).sm(120, 255),
    unary("UF2I", 0x05c, &[
        FTZ, to_integer(), choice_from(Field::SrcType, 84, 3, &[BAD, BAD, "", BAD, BAD, BAD, BAD, BAD], 2), choice(Field::Round, 78, 2, INTEGRAL), NTZ, URD, source_wide(Mods::NegAbs, F32),
    ]).sm(120, 255),
    unary("UF2I.F16", 0x05c, &[
        FTZ, to_integer(), choice_from(Field::SrcType, 84, 3, &[BAD, ".F16", BAD, BAD, ".BF16", BAD, BAD, BAD], 1), choice(Field::Round, 78, 2, INTEGRAL), NTZ, URD, HALF,
    ]).sm(120, 255),
    row("UF2IP", 0x059, MULTIPLY, &[
        choice(Field::Type, 76, 2, &[".U8", ".S8", BAD, BAD]), Piece::Text(".F32"), choice(Field::Round, 78, 2, &["", BAD, BAD, ".TRUNC"]),
        NTZ_74, flag(Field::Relu, 75, &["", ".RELU"]), URD, source_a(Mods::None, F32), source_b(Mods::None, F32), C_HALF_FLOAT,
    ]).sm(120, 255),
    unary("UF2F", 0x05b, &[FTZ, choice_from(Field::Type, 75, 3, &[BAD, ".F16", BAD, BAD, ".BF16"], 1), Piece::Text(".F32"), ROUND, URD, source_wide(Mods::NegAbs, F32)])
        .ones(2 << 84 | one(91)).sm(120, 255),
    unary("UF2F.F32.F16", 0x05b, &[
        FTZ, Piece::Text(".F32"), choice_from(Field::SrcType, 84, 3, &[BAD, ".F16", BAD, BAD, ".BF16"], 1), ROUND, URD, HALF,
    ]).ones(2 << 75 | one(91)).sm(120, 255),
    unary("UF2F.F16.BF16", 0x05b, &[FTZ, Piece::Text(".F16"), choice_from(Field::SrcType, 84, 3, &[BAD, BAD, BAD, BAD, ".BF16"], 4), ROUND, URD, HALF])
        .ones(1 << 75 | one(91)).sm(120, 255),
    unary("UF2F.BF16.F16", 0x05b, &[FTZ, Piece::Text(".BF16"), choice_from(Field::SrcType, 84, 3, &[BAD, ".F16"], 1), ROUND, URD, HALF])
        .ones(4 << 75 | one(91)).sm(120, 255),
    unary("UFRND", 0x05d, &[FTZ, choice(Field::Round, 78, 2, INTEGRAL), URD, source_wide(Mods::NegAbs, F32)]).ones(2 << 75 | 2 << 84 | one(91)).sm(120, 255),
    unary("UFRND.F16", 0x05d, &[
        FTZ, Piece::Text(".F16"), choice_from(Field::SrcType, 84, 3, &[BAD, ""], 1), choice(Field::Round, 78, 2, INTEGRAL), URD, HALF,
    ]).ones(1 << 75 | one(91)).sm(120, 255),
    unary("UFRND.BF16", 0x05d, &[
        FTZ, Piece::Text(".BF16"), choice_from(Field::SrcType, 84, 3, &[BAD, BAD, BAD, BAD, ""], 4), choice(Field::Round, 78, 2, INTEGRAL), URD, HALF,
    ]).ones(4 << 75 | one(91)).sm(120, 255),
    row("UF2FP.PACK_AB", 0x0ba, BINARY, &[
        flag(Field::Sat, 82, &["", ".SATFINITE"]), flag(Field::Relu, 74, &["", ".RELU"]),
        choice(Field::Type, 75, 3, &[".BF16", ".F16", BAD, ".TF32", ".E5M2", ".E4M3", BAD, BAD]), Piece::Text(".F32"), Piece::Text(".PACK_AB"),
        choice(Field::Round, 79, 2, &["", BAD, BAD, ".RZ"]), URD, source_a(Mods::None, F32), source_b(Mods::None, F32),
    ]).ones(one(85)).sm(120, 255).reserved(one(81) | one(84) | one(89) | one(90)),
    unary("UI2F", 0x05a, &[TO_FLOAT, from_integer(WORD32, 5), ROUND, URD, source_wide(Mods::None, SignedBy(Field::SrcType))]).sm(120, 255),
    row("UI2F.S8", 0x05a, "u:1", &[TO_FLOAT, from_integer(&[".U8", ".S8", BAD, BAD, BAD, BAD, BAD, BAD], 1), ROUND, URD, part_of(&["", ".B1", ".B2", ".B3"])]).sm(120, 255),
    row("UI2F.S16", 0x05a, "u:1", &[TO_FLOAT, from_integer(&[BAD, BAD, ".U16", ".S16", BAD, BAD, BAD, BAD], 3), ROUND, URD, part_of(&["", ".H1", BAD, BAD])]).sm(120, 255),
    unary("UI2FP.F32", 0x05e, &[Piece::Text(".F32"), flag(Field::SrcType, 74, &[".U32", ".S32"]), choice(Field::Round, 78, 2, &["", BAD, BAD, ".RZ"]), URD, source_wide(Mods::None, SignedBy(Field::SrcType))])
        .ones(one(76) | one(85) | one(91)).sm(120, 255),
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
    Family::new("UMOV.64", 0x082, "u:6", UniformMove, &[Piece::Text(".64"), URD2, pair(source_wide(Mods::None, Hex))]).uniform().ones(one(80)).sm(120, 255),
    Family::new("UMOV.64", 0x482, "", UniformMove, &[Piece::Text(".64"), URD2, imm(Field::Imm32, 24, 64)]).uniform().ones(one(91)).sm(120, 255).labelled("i"),
    row("UISETP.64", 0x08c, BINARY, &[
        choice(Field::Cmp, 76, 3, INT_COMPARE), choice_from(Field::Signed, 73, 1, &[".U64", ".S64"], 1), BOOL, flag(Field::Extend, 72, &["", ".EX"]),
        UPD, UPQ, pair(A_PLAIN), pair(source_b(Mods::None, SignedHex)), UPP, op_when(noted(upred_at(Field::Pr, 68, Role::Carry), Field::PrNot, 71), Field::Extend, 1),
    ]).ones(one(80)).sm(120, 255),
    row("USEL.64", 0x087, "uu:6", &[Piece::Text(".64"), URD2, pair(A_PLAIN), pair(B_PLAIN), UPP]).sm(120, 255),
    row("USEL.64", 0x487, "", &[
        Piece::Text(".64"), URD2, op(counted(ureg_at(Field::URa, 24, Role::A), Count::Fixed(2))),
        Piece::Op(Operand::Imm(FieldSpec::new(Field::Imm32, 32, 33).value(Value::Signed { scale: 1 }), SignedHex)), UPP,
    ]).ones(one(91)).sm(120, 255).labelled("ui"),
    row("USEL", 0x087, BINARY, &[URD, A_PLAIN, B_PLAIN, UPP]),
    row("UPRMT", 0x096, TERNARY, &[URD, A_PLAIN, B_PLAIN, C_PLAIN]).reserved(one(72)),
    Family::new("S2UR", 0x9c3, "", UniformLoad, &[URD, SPECIAL]).uniform(),
    Family::new("R2UR", 0x3c2, "", UniformLoad, &[optional(PD_OPERAND), URD, RA]).sm(75, 89),
    Family::new("R2UR.OR", 0x3c2, "", UniformLoad, &[Piece::Text(".OR"), PD, URD, RA]).ones(one(84)).sm(75, 89),
    Family::new("R2UR", 0x2ca, "", UniformLoad, &[optional(PD_OPERAND), URD, RA]).sm(90, 90),
    Family::new("R2UR.OR", 0x2ca, "", UniformLoad, &[Piece::Text(".OR"), PD, URD, RA]).ones(one(84)).sm(90, 90),
    Family::new("R2UR", 0x2ca, "", UniformLoad, &[SPREAD, optional(PD_OPERAND), URD, RA]).sm(100, 255),
    Family::new("R2UR.OR", 0x2ca, "", UniformLoad, &[Piece::Text(".OR"), SPREAD, PD, URD, RA]).ones(one(84)).sm(100, 255),
    Family::new("CREDUX", 0x2cc, "", UniformLoad, &[
        choice(Field::Op, 78, 2, &[".MAX", ".MAXABS", ".MIN", ".MINABS"]), choice(Field::Type, 73, 2, &["", ".S32", ".F32", BAD]), flag(Field::Mode, 77, &["", ".NAN"]), URD, RA,
    ]).sm(100, 103),
    row("ULEPC", 0x3ce, "", &[URD2]).ones(one(91)).sm(90, 255).labelled("u"),
    row("ULEPC", 0x9ce, "", &[URD2, NEXT]).ones(one(91)).sm(90, 255),
    Family::new("USETMAXREG.DEALLOC", 0x3c8, "", UniformLoad, &[Piece::Text(".DEALLOC"), POOL, UNTOLD, op(ureg_at(Field::Ur, 32, Role::B))]).uniform().ones(one(91) | one(72)).sm(90, 255).labelled("u"),
    Family::new("USETMAXREG.DEALLOC", 0x9c8, "", UniformLoad, &[Piece::Text(".DEALLOC"), POOL, UNTOLD, imm(Field::Imm32, 32, 10)]).uniform().ones(one(91) | one(72)).sm(90, 255),
    Family::new("USETMAXREG.TRY_ALLOC", 0x3c8, "", UniformLoad, &[Piece::Text(".TRY_ALLOC"), POOL, UPD, op(ureg_at(Field::Ur, 32, Role::B))]).uniform().ones(one(91) | one(73)).sm(90, 255).labelled("u"),
    Family::new("USETMAXREG.TRY_ALLOC", 0x9c8, "", UniformLoad, &[Piece::Text(".TRY_ALLOC"), POOL, UPD, imm(Field::Imm32, 32, 10)]).uniform().ones(one(91) | one(73)).sm(90, 255),
];

const SIZES: &[&str] = &[".U8", ".S8", ".U16", ".S16", "", ".64", BAD, BAD];
const LOAD_SIZE: Piece = choice_from(Field::Size, 73, 3, SIZES, 4);
const UNIFORM_COUNT: Count = Count::By(Field::Size, &[1, 1, 1, 1, 1, 2]);
/// The predicates that `UR2UP` writes, printed unless they are the lowest eight.
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

/// A unary operation. The bit for the uniform datapath is set with an immediate too.
const fn unary(name: &'static str, opcode: u16, pieces: &'static [Piece]) -> Family {
    row(name, opcode, "u:1 i", pieces).ones(one(91))
}

/// The pool to which `USETMAXREG` releases registers, or from which it takes them. Both variants set a scoreboard that
/// signals completion.
const POOL: Piece = choice_from(Field::Mode, 74, 1, &[BAD, ".CTAPOOL"], 1);
/// A predicate that is not printed: releasing registers has no result.
const UNTOLD: Piece = Piece::OpIf(Operand::Reg(UPD_OPERAND), Show::Never);
/// The address that `ULEPC` adds to the program counter.
const NEXT: Piece = Piece::Op(Operand::Target(
    FieldSpec::new(Field::Target, 24, 58).value(Value::Signed { scale: 1 }),
    TargetStyle::FromNext,
));
const SPREAD: Piece = choice(Field::Mode2, 86, 2, &["", ".FILL", ".BROADCAST", BAD]);
const FLOAT_A: Piece = source_a(Mods::NegAbs, F32);
const FLOAT_B: Piece = source_b(Mods::NegAbs, F32);
const NTZ: Piece = flag(Field::Mode, 77, &["", ".NTZ"]);
const NTZ_74: Piece = flag(Field::Mode, 74, &["", ".NTZ"]);
const INTEGRAL: &[&str] = &["", ".FLOOR", ".CEIL", ".TRUNC"];
const TO_FLOAT: Piece = choice_from(Field::Type, 75, 3, &[BAD, ".F16", "", BAD, ".BF16", BAD, BAD, BAD], 2);

const fn to_integer() -> Piece {
    Piece::Mod(FieldSpec::new(Field::Type, 72, 1).high(75, 2).choice(WORDS).neutral(5))
}

const fn from_integer(texts: &'static [&'static str], neutral: u64) -> Piece {
    Piece::Mod(FieldSpec::new(Field::SrcType, 74, 1).high(84, 2).choice(texts).neutral(neutral))
}

/// A byte or half of the source.
const fn part_of(texts: &'static [&'static str]) -> Piece {
    source(Slot {
        suffix: Some(FieldSpec::new(Field::SwizzleB, 60, 2).choice(texts)),
        ..slot(Role::B, Place::Wide, Mods::None, Hex)
    })
}

/// The sign bit of a source, used as a predicate.
const fn sign_of(role: Role, place: Place) -> Piece {
    source(Slot { text: ".SIGN", ..slot(role, place, Mods::None, Hex) })
}
