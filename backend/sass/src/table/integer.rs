//! Integer arithmetic, shifts, logic and comparison.

use super::*;
use crate::class::Class::*;
use AliasValue::*;
use ImmStyle::*;

/// Whether comparisons and products are signed.
const SIGNED: Piece = choice_from(Field::Signed, 73, 1, &[".U32", ""], 1);
const EXTEND: Piece = flag(Field::Extend, 74, &["", ".X"]);
const WRAP: Piece = flag(Field::Wrap, 75, &["", ".W"]);
/// The carry-in and the second carry-in, printed with `.X`. In a new instruction they are `!PT`.
const CARRY: Piece =
    op_when(noted_false(pred_at(Field::Pp, 87, Role::Carry), Field::PpNot, 90), Field::Extend, 1);
const CARRY2: Piece =
    op_when(noted_false(pred_at(Field::Pr, 77, Role::Carry), Field::PrNot, 80), Field::Extend, 1);
/// The result of the comparison of the low words.
const LOW_RESULT: RegOperand = noted(pred_at(Field::Pr, 68, Role::Carry), Field::PrNot, 71);
const NEG: Mods = Mods::NegOrNot(Field::Extend);
const A: Piece = source_a(NEG, SignedHex);
const B: Piece = source_b(NEG, SignedHex);
const B_HEX: Piece = source_b(NEG, Hex);
const C: Piece = source_c(NEG, SignedHex);
const A_PLAIN: Piece = source_a(Mods::None, Hex);
const B_PLAIN: Piece = source_b(Mods::None, Hex);
const C_PLAIN: Piece = source_c(Mods::None, Hex);
const B_SIGNED: Piece = source_b(Mods::None, SignedHex);
const TERNARY: &str = "rrr rir rcr rxr rur";
const MULTIPLY: &str = "rrr rri rrc rrx rir rcr rxr rur rru";
const BINARY: &str = "rr ri rc rx ru";
const UNARY: &str = "r i c x u:6";
/// The optional predicate results: carry, or result not zero.
const CARRY_OUT: Piece = optional(PD_OPERAND);
const CARRY_OUT2: Piece = optional(PQ_OPERAND);
/// The bits of an absent third source, which must be RZ.
const NO_C: u128 = 0xff << 64;
const NO_PD: u128 = 7 << 81;

const NOT_X: (Field, AliasValue) = (Field::Extend, Is(0));
/// A product with zero, one or a power of two is printed with the name of the equivalent operation.
const IMAD_ALIAS: Piece = Piece::Alias(&[
    (".MOV", &[NOT_X, (Field::Ra, Is(RZ))]),
    (".MOV", &[NOT_X, (Field::Rb, Is(RZ))]),
    (".MOV", &[NOT_X, (Field::Imm32, Is(0)), (Field::Rc, Below(256))]),
    (".MOV", &[NOT_X, (Field::Imm32, Is(1)), (Field::Rc, Is(RZ))]),
    (".IADD", &[NOT_X, (Field::Imm32, Is(1)), (Field::Rc, Below(256))]),
    (".SHL", &[NOT_X, (Field::Imm32, PowerOfTwo), (Field::Rc, Is(RZ))]),
]);
const IMAD: [Piece; 8] =
    [IMAD_ALIAS, SIGNED, EXTEND, RD, source_a(Mods::None, SignedHex), B_SIGNED, C, CARRY];

const WIDE: &[Piece] = &[
    SIGNED,
    EXTEND,
    RD2,
    CARRY_OUT,
    source_a(Mods::None, SignedHex),
    source_b(Mods::None, SignedHex),
    pair(source_c(NEG, SignedHex)),
    CARRY,
];

const SHIFT_FUNNEL: [Piece; 8] = [
    flag(Field::Right, 76, &[".L", ".R"]),
    WRAP,
    choice(Field::Type, 73, 2, &[".S64", ".U64", ".S32", ".U32"]),
    flag(Field::High, 80, &["", ".HI"]),
    RD,
    A_PLAIN,
    B_PLAIN,
    C_PLAIN,
];

#[rustfmt::skip]
pub(super) const ROWS: &[Family] = &[
    Family::new("IADD3", 0x010, TERNARY, Alu, &[EXTEND, RD, CARRY_OUT, CARRY_OUT2, A, B, C, CARRY, CARRY2]).sm(75, 90),
    Family::new("IADD3", 0x010, TERNARY, Alu, &[EXTEND, RD, PD, PQ, A, B, C, CARRY, CARRY2]).sm(100, 255),
    Family::new("IMAD", 0x024, "rrr rri rrc rir rcr", Fma, &IMAD).filled(NO_PD),
    Family::new("IMAD", 0x024, "rrx rxr rur rru", Fma, IMAD.split_at(1).1).filled(NO_PD),
    Family::new("IMAD.WIDE", 0x025, "rrr rrc rrx rir rcr rxr rur rru", ImadWide, &with_text(".WIDE", WIDE)),
    Family::new("IMAD.HI", 0x027, "rrr rrc rrx rir rcr rxr rur rru", ImadWide, &with_text(".HI", HIGH)),
    Family::new("LEA", 0x011, BINARY, Alu, &[EXTEND, RD, CARRY_OUT, A, B_HEX, SHIFT, CARRY]).filled(NO_C),
    Family::new("LEA.HI", 0x011, "rri", Alu, &[Piece::Text(".HI"), EXTEND, RD, CARRY_OUT, A, B_PLAIN, C_PLAIN, SHIFT, CARRY]).ones(one(80)),
    Family::new("LEA.HI", 0x011, TERNARY, Alu, &[Piece::Text(".HI"), EXTEND, RD, CARRY_OUT, A, B_HEX, C_PLAIN, SHIFT, CARRY]).ones(one(80)),
    Family::new("LEA.HI.SX32", 0x011, BINARY, Alu, &[Piece::Text(".HI"), EXTEND, Piece::Text(".SX32"), RD, CARRY_OUT, A, B_HEX, SHIFT, CARRY])
        .filled(NO_C).ones(one(73) | one(80)),
    Family::new("LOP3", 0x012, TERNARY, Alu, &[
        Piece::Text(".LUT"), flag(Field::Mode, 80, &["", ".PAND"]), CARRY_OUT, RD, A_PLAIN, B_PLAIN, C_PLAIN, imm(Field::Lut, 72, 8),
        op(noted_false(pred_at(Field::Pp, 87, Role::Carry), Field::PpNot, 90)),
    ]),
    Family::new("SHF", 0x019, MULTIPLY, Alu, &SHIFT_FUNNEL).sm(75, 90),
    Family::new("SHF", 0x019, MULTIPLY, Alu, &[
        flag(Field::Op, 77, &["", ".XOR"]), SHIFT_FUNNEL[0], SHIFT_FUNNEL[1], SHIFT_FUNNEL[2], SHIFT_FUNNEL[3], RD, A_PLAIN, B_PLAIN, C_PLAIN,
    ]).sm(100, 103),
    Family::new("SHF", 0x019, MULTIPLY, Alu, &SHIFT_FUNNEL).sm(110, 255),
    Family::new("ISETP", 0x00c, BINARY, Alu, &[
        choice(Field::Cmp, 76, 3, INT_COMPARE), SIGNED, BOOL, flag(Field::Extend, 72, &["", ".EX"]), PD, PQ, A_PLAIN, B_SIGNED, PP, optional(LOW_RESULT),
    ]).sm(75, 75),
    Family::new("ISETP", 0x00c, BINARY, Alu, &[
        choice(Field::Cmp, 76, 3, INT_COMPARE), SIGNED, BOOL, flag(Field::Extend, 72, &["", ".EX"]), PD, PQ, A_PLAIN, B_SIGNED, PP, op_when(LOW_RESULT, Field::Extend, 1),
    ]).sm(80, 255),
    Family::new("IMNMX", 0x017, BINARY, Alu, &[SIGNED, RD, A_PLAIN, B_SIGNED, PP]).sm(75, 103),
    Family::new("IMNMX", 0x017, BINARY, Alu, &[SIGNED, RD, A_PLAIN, B_SIGNED, PP]).ones(0x3ff << 77).sm(110, 110),
    Family::new("IMNMX", 0x017, BINARY, Alu, &[
        choice_from(Field::Type, 73, 2, &[".U32", "", ".U64", ".S64"], 1), PD, PQ,
        op(counted(RD_OPERAND, MINIMUM_COUNT)), minimum_of(Role::A, Place::A), minimum_of(Role::B, Place::B), PP,
        op(noted_false(pred_at(Field::Pr, 77, Role::Carry), Field::PrNot, 80)),
    ]).sm(120, 255),
    Family::new("VIMNMX", 0x048, BINARY, Alu, &[VIDEO_TYPE, VIDEO_RELU, RD, A_PLAIN, B_SIGNED, PP]).ones(0x3f << 81).sm(90, 90),
    Family::new("VIMNMX", 0x048, BINARY, Alu, &[VIDEO_TYPE, VIDEO_RELU, RD, PD, PQ, A_PLAIN, B_SIGNED, PP]).sm(100, 103),
    Family::new("VIMNMX", 0x048, BINARY, Alu, &[
        choice_from(Field::Type, 72, 3, &[".U32", ".S32", ".U16x2", ".S16x2", ".U8x4", ".S8x4", BAD, BAD], 1), VIDEO_RELU, RD, A_PLAIN, B_SIGNED, PP,
    ]).ones(0x3f << 81).sm(120, 255),
    Family::new("IADD.64", 0x035, BINARY, Alu, &[
        Piece::Text(".64"), EXTEND, RD2, CARRY_OUT, pair(A), pair(B), CARRY,
    ]).ones(one(73)).sm(120, 255),
    Family::new("IADD", 0x035, BINARY, Alu, &[EXTEND, RD, CARRY_OUT, A, B, CARRY]).sm(120, 255),
    Family::new("ISETP.64", 0x00c, BINARY, Alu, &[
        choice(Field::Cmp, 76, 3, INT_COMPARE), flag_from(Field::Signed, 73, &[".U64", ".S64"], 1), BOOL, flag(Field::Extend, 72, &["", ".EX"]),
        PD, PQ, pair(A_PLAIN), pair(B_SIGNED), PP, op_when(LOW_RESULT, Field::Extend, 1),
    ]).ones(one(80)).sm(120, 255),
    Family::new("VIADDMNMX", 0x046, MULTIPLY, Alu, &[VIDEO_TYPE, VIDEO_RELU, RD, A_PLAIN, source_b(Mods::Neg, Hex), C_PLAIN, PP]).sm(90, 103),
    Family::new("VIMNMX3", 0x00f, TERNARY, Alu, &[VIDEO_TYPE, VIDEO_RELU, RD, A_PLAIN, B_PLAIN, C_PLAIN, PP]).sm(90, 103),
    Family::new("IABS", 0x013, UNARY, Alu, &[RD, source_wide(Mods::None, SignedHex)]),
    Family::new("SGXT", 0x01a, BINARY, Alu, &[WRAP, SIGNED, RD, A_PLAIN, B_PLAIN]),
    Family::new("BMSK", 0x01b, BINARY, Alu, &[WRAP, RD, A_PLAIN, B_PLAIN]),
    Family::new("VIADD", 0x036, BINARY, Alu, &[flag(Field::Type, 73, &["", ".16x2"]), RD, A_PLAIN, source_b(Mods::Neg, Hex)]).sm(90, 103),
    Family::new("VIADD", 0x036, BINARY, Alu, &[VECTOR_TYPE, SATURATE, RD, source_a(Mods::Neg, Hex), source_b(Mods::Neg, Hex)]).sm(120, 255),
    Family::new("IDP", 0x026, "rrr rcr rxr rur", Fma, &[
        choice(Field::Mode, 76, 2, &[".4A", ".2A.LO", BAD, ".2A.HI"]),
        Piece::ModIf(FieldSpec::new(Field::SrcType, 73, 1).choice(&[".U8", ".S8"]), Show::When(Field::Mode, 0)),
        Piece::ModIf(FieldSpec::new(Field::SrcType, 73, 1).choice(&[".U16", ".S16"]), Show::Unless(Field::Mode, 0)),
        choice(Field::SrcType2, 74, 1, &[".U8", ".S8"]), RD, A_PLAIN, B_PLAIN, source_c(Mods::Neg, Hex),
    ]),
    Family::new("VABSDIFF", 0x014, MULTIPLY, Alu, &[SIGNED, RD, CARRY_OUT, A_PLAIN, B_PLAIN, C_PLAIN]).sm(75, 110),
    Family::new("PLOP3", 0x81c, "", Alu, &[
        Piece::Text(".LUT"), PD, PQ, PP,
        op(noted(pred_at(Field::Pr, 77, Role::Carry), Field::PrNot, 80)),
        op(noted(pred_at(Field::Ps, 68, Role::Carry), Field::PsNot, 71)),
        Piece::Op(Operand::Imm(FieldSpec::new(Field::Lut, 64, 3).high(72, 5), Hex)), imm(Field::Lut2, 16, 8),
    ]),
    Family::new("PLOP3", 0x81c, "", Alu, &[
        Piece::Text(".LUT"), PD, PQ, PP,
        op(noted(pred_at(Field::Pr, 77, Role::Carry), Field::PrNot, 80)),
        op(noted(upred_at(Field::Ps, 68, Role::Carry), Field::PsNot, 71)),
        Piece::Op(Operand::Imm(FieldSpec::new(Field::Lut, 64, 3).high(72, 5), Hex)), imm(Field::Lut2, 16, 8),
    ]).ones(one(67)).labelled("u"),
    Family::new("PLOP3.SIGN", 0x01f, "rrr rcr rxr rur", Alu, &[
        Piece::Text(".LUT"), PD, PQ, sign_of(Role::A, Place::A), sign_of(Role::B, Place::B), sign_of(Role::C, Place::C), imm(Field::Lut, 72, 8), imm(Field::Lut2, 16, 8),
    ]),
    Family::new("PLOP3.SIGN", 0x01d, "r c:5 x:5 u:6", Alu, &[
        Piece::Text(".LUT"), PD, PQ, PP, sign_of(Role::B, Place::Wide),
        op(noted(pred_at(Field::Ps, 68, Role::Carry), Field::PsNot, 71)), imm(Field::Lut, 72, 8), imm(Field::Lut2, 16, 8),
    ]),
    Family::new("PLOP3.SIGN", 0x01e, "rr:1 cr:5 xr:5 ur:6", Alu, &[
        Piece::Text(".LUT"), PD, PQ, PP, sign_of(Role::B, Place::B), sign_of(Role::C, Place::C), imm(Field::Lut, 72, 8), imm(Field::Lut2, 16, 8),
    ]),
    Family::new("VABSDIFF4", 0x015, MULTIPLY, Alu, &[flag(Field::Signed, 73, &[".U8", ""]), flag(Field::Mode, 75, &["", ".ACC"]), RD, CARRY_OUT, A_PLAIN, B_PLAIN, C_PLAIN]).sm(75, 110),
    Family::new("I2I", 0x038, UNARY, Alu, &[choice(Field::Type, 76, 2, &[".U8", ".S8", ".U16", ".S16"]), Piece::Text(".S32"), Piece::Text(".SAT"), RD, source_wide(Mods::None, SignedHex)]),
    Family::new("I2IP", 0x039, TERNARY, Alu, &[PACKED, Piece::Text(".S32"), Piece::Text(".SAT"), RD, A_PLAIN, B_SIGNED, C_HALF]).sm(75, 85),
    Family::new("I2IP", 0x039, TERNARY, Alu, &[PACKED, Piece::Text(".S32"), choice(Field::Sat, 74, 2, &[".SAT", "", ".SATRELU", BAD]), RD, A_PLAIN, B_SIGNED, C_HALF]).sm(86, 89),
    Family::new("I2IP", 0x039, TERNARY, Alu, &[PACKED, Piece::Text(".S32"), choice(Field::Sat, 74, 2, &["", ".SAT", ".SATRELU", BAD]), RD, A_PLAIN, B_SIGNED, C_HALF]).sm(90, 255),
    Family::new("CLMAD", 0x02c, "rrr rrc rrx rcr rxr rur rru", ImadWide, &[
        flag(Field::High, 77, &[".LO", ".HI"]), RD2, pair(A_PLAIN), pair(B_PLAIN), pair(C_PLAIN),
    ]).sm(80, 255),
    Family::new("POPC", 0x109, UNARY, Xu, &[RD, source_wide(Mods::Not, Hex)]),
    Family::new("BREV", 0x101, UNARY, Xu, &[RD, source_wide(Mods::None, Hex)]),
    Family::new("FLO", 0x100, UNARY, Xu, &[SIGNED, flag(Field::Mode, 74, &["", ".SH"]), RD, CARRY_OUT, source_wide(Mods::Not, Hex)]),
];

const VIDEO_TYPE: Piece = choice_from(Field::Type, 72, 2, &[".U32", "", ".U16x2", ".S16x2"], 1);
const VIDEO_RELU: Piece = flag(Field::Relu, 76, &["", ".RELU"]);
/// The type of the elements of a vector.
pub(super) const VECTOR_TYPE: Piece =
    choice(Field::Type, 73, 3, &[".32", ".16x2", ".S32", ".S16x2", ".U8x4", ".S8x4", BAD, BAD]);
pub(super) const SATURATE: Piece = flag(Field::Sat, 80, &["", ".ISAT"]);
/// The number of registers of a minimum's or maximum's operand: words, or pairs.
pub(super) const MINIMUM_COUNT: Count = Count::By(Field::Type, &[1, 1, 2, 2]);
pub(super) const fn minimum_of(role: Role, place: Place) -> Piece {
    source(Slot { count: MINIMUM_COUNT, ..slot(role, place, Mods::None, SignedHex) })
}
/// The formats that a packing conversion makes from words.
pub(super) const PACKED: Piece =
    choice(Field::Type, 76, 3, &[".U8", ".S8", ".U16", ".S16", ".U2", ".S2", ".U4", ".S4"]);
/// The part of the third source that a packing conversion keeps: a half, or the low 24 or 28 bits, which it shifts up.
pub(super) const C_HALF: Piece = source(Slot {
    suffix: Some(FieldSpec::new(Field::SwizzleC, 72, 2).choice(&["", ".H1", ".24", ".28"])),
    ..slot(Role::C, Place::C, Mods::None, Hex)
});
/// The sign bit of a source, used as a predicate.
const fn sign_of(role: Role, place: Place) -> Piece {
    source(Slot { text: ".SIGN", ..slot(role, place, Mods::None, Hex) })
}

const SHIFT: Piece = imm(Field::Imm2, 75, 5);

const HIGH: &[Piece] = &[
    SIGNED,
    EXTEND,
    RD,
    CARRY_OUT,
    source_a(Mods::None, SignedHex),
    source_b(Mods::None, SignedHex),
    pair(source_c(NEG, SignedHex)),
    CARRY,
];

/// The pieces after a fixed modifier.
const fn with_text(text: &'static str, pieces: &[Piece]) -> [Piece; 9] {
    let mut out = [Piece::Text(text); 9];
    let mut i = 0;
    while i < pieces.len() {
        out[i + 1] = pieces[i];
        i += 1;
    }
    out
}
