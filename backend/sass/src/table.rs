//! The rows of the table by instruction family, and the operands that they share.
//!
//! The meaning of the bits was found by flipping bits of real instructions and comparing NVIDIA's disassembly.

mod bulk;
mod control;
mod convert;
mod copies;
mod float;
mod half;
mod integer;
mod matrix;
mod matrix_moves;
mod memory;
mod moves;
mod pack;
mod remote;
mod tensor_memory;
mod texture;
mod uniform;
mod warpgroup;

pub(crate) use moves::special_registers;

use crate::model::*;

/// All rows. Within one generation, no word matches two of them.
pub(crate) static FAMILIES: &[&[Family]] = &[
    moves::ROWS,
    integer::ROWS,
    float::ROWS,
    half::ROWS,
    convert::ROWS,
    pack::ROWS,
    uniform::ROWS,
    memory::ROWS,
    &copies::LDGSTS,
    &copies::LDGSTS_100,
    copies::ROWS,
    remote::ROWS,
    bulk::ROWS,
    &texture::TEX,
    &texture::TLD,
    &texture::TLD4,
    &texture::TXD,
    &texture::TMML,
    texture::TXQ,
    &texture::SULD,
    &texture::SUST,
    &texture::SUST_P,
    &texture::SURED,
    matrix::ROWS,
    matrix_moves::ROWS,
    warpgroup::ROWS,
    tensor_memory::ROWS,
    control::ROWS,
];

const RZ: u64 = 255;
const URZ: u64 = 63;
const PT: u64 = 7;

const fn one(bit: u32) -> u128 {
    1 << bit
}

/// An optional modifier of one bit: `flag(Field::Ftz, 80, &["", ".FTZ"])`.
const fn flag(field: Field, bit: u8, texts: &'static [&'static str]) -> Piece {
    Piece::Mod(FieldSpec::new(field, bit, 1).choice(texts))
}

/// A modifier of several bits.
const fn choice(field: Field, lo: u8, width: u8, texts: &'static [&'static str]) -> Piece {
    Piece::Mod(FieldSpec::new(field, lo, width).choice(texts))
}

/// A modifier of several bits whose value in a new instruction is not 0.
const fn choice_from(field: Field, lo: u8, width: u8, texts: &'static [&'static str], neutral: u64) -> Piece {
    Piece::Mod(FieldSpec::new(field, lo, width).choice(texts).neutral(neutral))
}

/// The piece with its values from `first` on restricted to generations from `sm` on.
const fn since(piece: Piece, first: u64, sm: u8) -> Piece {
    match piece {
        Piece::Mod(spec) => Piece::Mod(spec.since(first, sm)),
        other => other,
    }
}

/// A flag that is set in a new instruction.
const fn flag_from(field: Field, bit: u8, texts: &'static [&'static str], neutral: u64) -> Piece {
    choice_from(field, bit, 1, texts, neutral)
}

const fn reg_at(field: Field, lo: u8, role: Role) -> RegOperand {
    RegOperand::new(RegFile::R, FieldSpec::new(field, lo, 8).neutral(RZ), role)
}

const fn ureg_at(field: Field, lo: u8, role: Role) -> RegOperand {
    RegOperand::new(RegFile::UR, FieldSpec::new(field, lo, 6).neutral(URZ), role)
}

const fn pred_at(field: Field, lo: u8, role: Role) -> RegOperand {
    RegOperand::new(RegFile::P, FieldSpec::new(field, lo, 3).neutral(PT), role)
}

const fn upred_at(field: Field, lo: u8, role: Role) -> RegOperand {
    RegOperand { file: RegFile::UP, ..pred_at(field, lo, role) }
}

const fn counted(reg: RegOperand, count: Count) -> RegOperand {
    RegOperand { count, ..reg }
}

const fn reused(reg: RegOperand, bit: u8) -> RegOperand {
    RegOperand { reuse: Some(bit), ..reg }
}

const fn noted(reg: RegOperand, not: Field, bit: u8) -> RegOperand {
    RegOperand { not: Some(FieldSpec::new(not, bit, 1)), ..reg }
}

/// As [`noted`], but with the negation set in a new instruction: the neutral operand is `!PT`.
const fn noted_false(reg: RegOperand, not: Field, bit: u8) -> RegOperand {
    RegOperand { not: Some(FieldSpec::new(not, bit, 1).neutral(1)), ..reg }
}

/// A predicate source whose register number is stored inverted, so that zero is PT.
const fn inverted(reg: RegOperand) -> RegOperand {
    RegOperand { spec: FieldSpec { value: Value::Inverted, neutral: 0, ..reg.spec }, ..reg }
}

const fn op(reg: RegOperand) -> Piece {
    Piece::Op(Operand::Reg(reg))
}

/// An operand that is printed unless it is neutral.
const fn optional(reg: RegOperand) -> Piece {
    Piece::OpIf(Operand::Reg(reg), Show::NotNeutral)
}

const fn op_when(reg: RegOperand, field: Field, value: u64) -> Piece {
    Piece::OpIf(Operand::Reg(reg), Show::When(field, value))
}

/// `gdesc[UR4]`, `tmem[UR4+0x10]`.
const fn handle(word: &'static str, reg: RegOperand, offset: Option<FieldSpec>) -> Piece {
    Piece::Op(Operand::Handle(HandleOperand { word, reg, offset, next: false }))
}

/// `word[UR]`. The operand may span several registers.
const fn bracket(word: &'static str, reg: RegOperand) -> Piece {
    Piece::Op(Operand::Handle(HandleOperand { word, reg, offset: None, next: false }))
}

const fn imm(field: Field, lo: u8, width: u8) -> Piece {
    Piece::Op(Operand::Imm(FieldSpec::new(field, lo, width), ImmStyle::Hex))
}

/// The destination at bits 16–23.
const RD: Piece = op(reg_at(Field::Rd, 16, Role::Dst));
const RD2: Piece = op(counted(reg_at(Field::Rd, 16, Role::Dst), Count::Fixed(2)));
const RD_OPERAND: RegOperand = reg_at(Field::Rd, 16, Role::Dst);
const URD: Piece = op(ureg_at(Field::URd, 16, Role::Dst));
const URD2: Piece = op(counted(ureg_at(Field::URd, 16, Role::Dst), Count::Fixed(2)));
/// Sources at their usual places, in rows where they can only be general registers.
const RA_OPERAND: RegOperand = reused(reg_at(Field::Ra, 24, Role::A), 0);
const RB_OPERAND: RegOperand = reused(reg_at(Field::Rb, 32, Role::B), 1);
const RC_OPERAND: RegOperand = reused(reg_at(Field::Rc, 64, Role::C), 2);
const RA: Piece = op(RA_OPERAND);
const RB: Piece = op(RB_OPERAND);
const RC: Piece = op(RC_OPERAND);
/// Predicates at their usual places.
const PD_OPERAND: RegOperand = pred_at(Field::Pd, 81, Role::Dst);
const PQ_OPERAND: RegOperand = pred_at(Field::Pq, 84, Role::Dst);
const PP_OPERAND: RegOperand = noted(pred_at(Field::Pp, 87, Role::Carry), Field::PpNot, 90);
const PD: Piece = op(PD_OPERAND);
const PQ: Piece = op(PQ_OPERAND);
const PP: Piece = op(PP_OPERAND);
const UPD_OPERAND: RegOperand = upred_at(Field::Pd, 81, Role::Dst);
const UPQ_OPERAND: RegOperand = upred_at(Field::Pq, 84, Role::Dst);
const UPP_OPERAND: RegOperand = noted(upred_at(Field::Pp, 87, Role::Carry), Field::PpNot, 90);
const UPD: Piece = op(UPD_OPERAND);
const UPQ: Piece = op(UPQ_OPERAND);
const UPP: Piece = op(UPP_OPERAND);

/// The modifier of minima and maxima with a predicate that says whether the result is the first source.
const WHICH: Piece = since(flag(Field::Flag2, 65, &["", ".IS_A"]), 1, 90);

/// The predicate result that says so, for one of two halves.
const fn which(field: Field, lo: u8) -> Piece {
    let spec = FieldSpec::new(field, lo, 3).since(0, 90);
    Piece::OpIf(Operand::Reg(RegOperand { spec, ..PD_OPERAND }), Show::When(Field::Flag2, 1))
}

/// Sources whose place depends on the shape.
const fn slot(role: Role, place: Place, mods: Mods, imm: ImmStyle) -> Slot {
    Slot { role, place, mods, count: Count::Fixed(1), imm, suffix: None, text: "" }
}

const fn source(slot: Slot) -> Piece {
    Piece::Op(Operand::Slot(slot))
}

const fn source_a(mods: Mods, imm: ImmStyle) -> Piece {
    source(slot(Role::A, Place::A, mods, imm))
}

const fn source_b(mods: Mods, imm: ImmStyle) -> Piece {
    source(slot(Role::B, Place::B, mods, imm))
}

const fn source_c(mods: Mods, imm: ImmStyle) -> Piece {
    source(slot(Role::C, Place::C, mods, imm))
}

/// The second source, where it always occupies the wide slot.
const fn source_wide(mods: Mods, imm: ImmStyle) -> Piece {
    source(slot(Role::B, Place::Wide, mods, imm))
}

/// The second source, where it occupies the wide slot in the role of the third.
const fn source_wide_c(mods: Mods, imm: ImmStyle) -> Piece {
    source(slot(Role::B, Place::WideC, mods, imm))
}

const fn pair(piece: Piece) -> Piece {
    match piece {
        Piece::Op(Operand::Slot(slot)) => source(Slot { count: Count::Fixed(2), ..slot }),
        other => other,
    }
}

const ROUND: Piece = choice(Field::Round, 78, 2, &["", ".RM", ".RP", ".RZ"]);
/// The treatment of subnormal numbers: `.FTZ` flushes both operands to zero; `.FMZ` also makes the product of zero and
/// anything zero.
const FTZ_FMZ: Piece =
    Piece::Mod(FieldSpec::new(Field::Ftz, 80, 1).high(76, 1).choice(&["", ".FTZ", ".FMZ", BAD]));
const FTZ: Piece = flag(Field::Ftz, 80, &["", ".FTZ"]);
const SAT: Piece = flag(Field::Sat, 77, &["", ".SAT"]);
const BOOL: Piece = choice(Field::Bool, 74, 2, &[".AND", ".OR", ".XOR"]);
const FLOAT_COMPARE: &[&str] = &[
    ".F", ".LT", ".EQ", ".LE", ".GT", ".NE", ".GE", ".NUM", ".NAN", ".LTU", ".EQU", ".LEU", ".GTU", ".NEU",
    ".GEU", ".T",
];
const INT_COMPARE: &[&str] = &[".F", ".LT", ".EQ", ".LE", ".GT", ".NE", ".GE", ".T"];
