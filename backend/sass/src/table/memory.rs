//! Loads, stores and atomics.

use super::*;
use crate::class::Class::*;

const SIZES: &[&str] = &[".U8", ".S8", ".U16", ".S16", "", ".64", ".128", BAD];
const SIZE: Piece = choice_from(Field::Size, 73, 3, SIZES, 4);
const COUNT: Count = Count::By(Field::Size, &[1, 1, 1, 1, 1, 2, 4, 1]);
const EVICT: Piece = choice_from(Field::Evict, 84, 3, &[".EF", "", ".EL", ".LU", ".EU", ".NA", BAD, BAD], 1);
/// Ordering and scope of a global or generic access; a load that need not be coherent is `.CONSTANT`.
const LOAD_ORDER: &[&str] = &[
    "",
    ".CONSTANT.PRIVATE",
    ".CONSTANT.CTA",
    ".CONSTANT.CTA.PRIVATE",
    ".CONSTANT",
    ".STRONG.SM",
    ".STRONG.GPU.PRIVATE",
    ".STRONG.GPU",
    ".MMIO.GPU",
    ".CONSTANT.SM",
    ".STRONG.SYS",
    ".CONSTANT.SM.PRIVATE",
    ".MMIO.SYS",
    ".CONSTANT.VC",
    ".CONSTANT.VC.PRIVATE",
    ".CONSTANT.GPU",
];
const STORE_ORDER: &[&str] = &[
    "",
    ".CONSTANT.PRIVATE",
    ".CONSTANT.CTA",
    ".CONSTANT.CTA.PRIVATE",
    ".STRONG.SM.PRIVATE",
    ".STRONG.SM",
    ".STRONG.GPU.PRIVATE",
    ".STRONG.GPU",
    ".MMIO.GPU",
    ".CONSTANT.SM",
    ".STRONG.SYS",
    ".CONSTANT.SM.PRIVATE",
    ".MMIO.SYS",
    ".CONSTANT.VC",
    ".CONSTANT.VC.PRIVATE",
    ".CONSTANT.GPU",
];
const EXTENDED: Piece = Piece::Text(".E");
const PREFETCH: Piece = choice(Field::Prefetch, 68, 2, &["", ".LTC64B", ".LTC128B", ".LTC256B"]);
const OFFSET: FieldSpec = FieldSpec::new(Field::Offset, 40, 24).value(Value::Signed { scale: 1 });
const ADDRESS64: RegOperand = RegOperand {
    count: Count::Fixed(2),
    suffix: Some(FieldSpec::new(Field::AddressWidth, 90, 1).choice(&[".U32", ".64"]).neutral(1)),
    ..reg_at(Field::Ra, 24, Role::Address)
};
const GLOBAL: Piece = Piece::Op(Operand::Mem(MemOperand {
    desc: Some(FieldSpec::new(Field::UrDesc, 32, 6).neutral(URZ)),
    reg: Some(ADDRESS64),
    ureg: None,
    offset: Some(OFFSET),
}));
const GLOBAL_BITS: u128 = one(72) | one(76) | one(91);

#[rustfmt::skip]
pub(super) const ROWS: &[Family] = &[
    Family::new("LDG", 0x981, "", Load, &[
        EXTENDED, EVICT, PREFETCH, SIZE, choice(Field::Order, 77, 4, LOAD_ORDER),
        optional(PD_OPERAND), op(counted(RD_OPERAND, COUNT)), GLOBAL,
    ]).ones(GLOBAL_BITS).sm(80, 255),
    Family::new("STG", 0x986, "", Store, &[
        EXTENDED, EVICT, SIZE, choice(Field::Order, 77, 4, STORE_ORDER),
        GLOBAL_STORE, op(RegOperand { role: Role::Data, ..counted(RB_OPERAND, COUNT) }),
    ]).ones(GLOBAL_BITS).sm(80, 255),
];

const GLOBAL_STORE: Piece = Piece::Op(Operand::Mem(MemOperand {
    desc: Some(FieldSpec::new(Field::UrDesc, 64, 6).neutral(URZ)),
    reg: Some(ADDRESS64),
    ureg: None,
    offset: Some(OFFSET),
}));
