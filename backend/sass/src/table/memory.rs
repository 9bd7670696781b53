//! Loads, stores and atomics.
//!
//! The shape "" is the usual form: for global and generic accesses from sm_80 on, an address with the window's
//! descriptor; for all others, the address alone. "u" adds a uniform register to the address. "r" has neither a uniform
//! register nor a descriptor, although the usual form has one.

use super::*;
use crate::class::Class::*;

const SIZES: &[&str] = &[".U8", ".S8", ".U16", ".S16", "", ".64", ".128", BAD];
pub(super) const SIZE: Piece = choice_from(Field::Size, 73, 3, SIZES, 4);
/// The size of a constant load. NVIDIA's compiler emits loads of size 6, whose result is never read, and its
/// disassembler has no name for this size.
const CONSTANT_SIZE: Piece =
    choice_from(Field::Size, 73, 3, &[".U8", ".S8", ".U16", ".S16", "", ".64", ".INVALID6", BAD], 4);
const SIZE_75: Piece =
    choice_from(Field::Size, 73, 3, &[".U8", ".S8", ".U16", ".S16", "", ".64", ".128", ".U.128"], 4);
const COUNT_75: Count = Count::By(Field::Size, &[1, 1, 1, 1, 1, 2, 4, 4]);
pub(super) const COUNT: Count = Count::By(Field::Size, &[1, 1, 1, 1, 1, 2, 4, 1]);
pub(super) const EVICT: Piece =
    choice_from(Field::Evict, 84, 3, &[".EF", "", ".EL", ".LU", ".EU", ".NA", BAD, BAD], 1);
/// Ordering and scope of a global or generic load. A load without coherence is `.CONSTANT`.
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
const STORE_ORDER: &[&str] = &store_order([".CONSTANT.VC", ".CONSTANT.VC.PRIVATE", ".CONSTANT.GPU"]);

/// The orders of stores. The last three depend on the generation.
const fn store_order(last: [&'static str; 3]) -> [&'static str; 16] {
    [
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
        last[0],
        last[1],
        last[2],
    ]
}
pub(super) const EXTENDED: Piece = Piece::Text(".E");
const PREFETCH: Piece = choice(Field::Prefetch, 68, 2, &["", ".LTC64B", ".LTC128B", ".LTC256B"]);
pub(super) const OFFSET: FieldSpec = FieldSpec::new(Field::Offset, 40, 24).value(Value::Signed { scale: 1 });
/// The width of an address without descriptor: 64 bits or, rarely, 32.
const EXTENDED_OR_NOT: Piece = flag_from(Field::Wide, 72, &["", ".E"], 1);
const ADDRESS_PLAIN: RegOperand =
    counted(reg_at(Field::Ra, 24, Role::Address), Count::By(Field::Wide, &[1, 2]));
/// A 64-bit address after a descriptor. Its width and its suffix are fixed.
pub(super) const ADDRESS_DESC: RegOperand =
    RegOperand { text: ".64", count: Count::Fixed(2), ..reg_at(Field::Ra, 24, Role::Address) };
/// An address with a uniform register.
pub(super) const fn address_beside(width_bit: u8) -> RegOperand {
    RegOperand {
        count: Count::By(Field::AddressWidth, &[1, 2]),
        suffix: Some(FieldSpec::new(Field::AddressWidth, width_bit, 1).choice(&[".U32", ".64"]).neutral(1)),
        ..reg_at(Field::Ra, 24, Role::Address)
    }
}
/// A 32-bit address in shared or local memory.
pub(super) const ADDRESS32: RegOperand = reg_at(Field::Ra, 24, Role::Address);
/// The same, as the index of an element.
const INDEX32: RegOperand = RegOperand {
    suffix: Some(FieldSpec::new(Field::Scale, 78, 2).choice(&["", ".X4", ".X8", ".X16"])),
    ..ADDRESS32
};

pub(super) const fn memory(reg: RegOperand) -> Piece {
    Piece::Op(Operand::Mem(MemOperand {
        desc: None,
        reg: Some(reg),
        ureg: None,
        urz: Urz::Shown,
        offset: Some(OFFSET),
    }))
}

/// `[R+offset]` with a 32-bit offset, in forms without another operand in the wide slot.
const fn far(reg: RegOperand) -> Piece {
    let offset = FieldSpec::new(Field::Offset, 32, 32).value(Value::Signed { scale: 1 });
    Piece::Op(Operand::Mem(MemOperand {
        desc: None,
        reg: Some(reg),
        ureg: None,
        urz: Urz::Shown,
        offset: Some(offset),
    }))
}

/// The descriptor of the global window, or a descriptor for this access alone.
pub(super) const fn descriptor(lo: u8) -> Descriptor {
    Descriptor {
        spec: FieldSpec::new(Field::UrDesc, lo, 6).neutral(URZ),
        own: FieldSpec::new(Field::OwnDescriptor, 101, 1),
        next: false,
    }
}

/// `desc[UR][R.64+offset]`, with the descriptor's register encoded from bit `lo` on.
const fn described(lo: u8) -> Piece {
    Piece::Op(Operand::Mem(MemOperand {
        desc: Some(descriptor(lo)),
        reg: Some(ADDRESS_DESC),
        ureg: None,
        urz: Urz::Shown,
        offset: Some(OFFSET),
    }))
}

/// The same with a 32-bit address.
const fn described32(lo: u8) -> Piece {
    Piece::Op(Operand::Mem(MemOperand {
        desc: Some(descriptor(lo)),
        reg: Some(ADDRESS32),
        ureg: None,
        urz: Urz::Shown,
        offset: Some(OFFSET),
    }))
}

/// `[R+UR+offset]`, with the uniform register encoded from bit `lo` on. It is printed even if it is URZ.
pub(super) const fn based(reg: RegOperand, lo: u8, count: u8) -> Piece {
    Piece::Op(Operand::Mem(MemOperand {
        desc: None,
        reg: Some(reg),
        ureg: Some((FieldSpec::new(Field::UrBase, lo, 6).neutral(URZ), count)),
        urz: Urz::Shown,
        offset: Some(OFFSET),
    }))
}

pub(super) const fn data(count: Count) -> Piece {
    op(RegOperand { role: Role::Data, reuse: None, ..counted(RB_OPERAND, count) })
}

pub(super) const fn data2(count: Count) -> Piece {
    op(RegOperand { role: Role::Data, reuse: None, ..counted(RC_OPERAND, count) })
}

const LOADED: Piece = op(counted(RD_OPERAND, COUNT));
const LOADED_75: Piece = op(counted(RD_OPERAND, COUNT_75));
/// A condition of loads in addition to the guard.
const CONDITION: Piece = optional(inverted(noted(pred_at(Field::Pp, 64, Role::Carry), Field::PpNot, 67)));
pub(super) const ORDER_LOAD: Piece = choice(Field::Order, 77, 4, LOAD_ORDER);
/// Ordering of stores to global memory, from sm_100 on.
const ORDER_STORE_100: Piece =
    choice(Field::Order, 77, 4, &store_order([".SYS.ORDERED", ".STRONG.SYS.ORDERED", ".MMIO.SYS.ORDERED"]));
pub(super) const ORDER_STORE: Piece = choice(Field::Order, 77, 4, STORE_ORDER);
pub(super) const WITH_BASE: u128 = one(91);
/// The fixed bits of loads and stores with a descriptor and a 64-bit address.
const DESCRIPTOR: u128 = one(76) | one(90) | one(91);
const ATOM_OPS: &[&str] = &[
    ".ADD", ".MIN", ".MAX", ".INC", ".DEC", ".AND", ".OR", ".XOR", ".EXCH", BAD, BAD, BAD, BAD, BAD, BAD, BAD,
];
/// The operations from sm_90 on, where integers have an opcode of their own.
const ATOMG_OP: Piece = choice(
    Field::Op,
    87,
    4,
    &[
        ".ADD", ".MIN", ".MAX", ".INC", ".DEC", ".AND", ".OR", ".XOR", ".EXCH", ".SAFEADD", BAD, BAD, BAD,
        BAD, BAD, BAD,
    ],
);
const RED_OPS: &[&str] = &[".ADD", ".MIN", ".MAX", ".INC", ".DEC", ".AND", ".OR", ".XOR"];
const ATOM_OP: Piece = choice(Field::Op, 87, 4, ATOM_OPS);
pub(super) const RED_OP: Piece = choice(Field::Op, 87, 3, RED_OPS);
/// Integer and floating-point types, up to sm_89.
const ATOM_TYPE: Piece =
    choice(Field::Type, 73, 3, &["", ".S32", ".64", ".F32.FTZ.RN", ".F16x2.RN", ".S64", ".F64.RN", BAD]);
const ATOM_COUNT: Count = Count::By(Field::Type, &[1, 1, 2, 1, 1, 2, 2, 1]);
/// Integer types, from sm_90 on.
const ATOM_INT_TYPE: Piece = choice(Field::Type, 73, 3, &["", ".S32", ".64", ".S64", ".128", BAD, BAD, BAD]);
const RED_INT_TYPE: Piece = choice(Field::Type, 73, 3, &["", ".S32", ".64", ".S64", BAD, BAD, BAD, BAD]);
const ATOM_INT_COUNT: Count = Count::By(Field::Type, &[1, 1, 2, 2, 4]);
const ATOM_FLOAT_TYPE: Piece = choice(
    Field::Type,
    73,
    4,
    &[
        ".F16x2.RN",
        ".F16x4.RN",
        ".F16x8.RN",
        ".BF16x2.RN",
        ".BF16x4.RN",
        ".BF16x8.RN",
        BAD,
        BAD,
        BAD,
        ".F32.FTZ.RN",
        ".F32x2.FTZ.RN",
        ".F32x4.FTZ.RN",
        ".F32.RN",
        ".F32x2.RN",
        ".F32x4.RN",
        ".F64.RN",
    ],
);
const ATOM_FLOAT_COUNT: Count = Count::By(Field::Type, &[1, 2, 4, 1, 2, 4, 1, 1, 1, 1, 2, 4, 1, 2, 4, 2]);
const ATOM_FLOAT_OP: Piece = choice(Field::Op, 87, 3, &[".ADD", BAD, ".MIN", BAD, ".MAX", BAD, BAD, BAD]);
const RED_FLOAT_OP: Piece = choice(Field::Op, 87, 3, &[".ADD", BAD, ".MIN", BAD, ".MAX", BAD, BAD, BAD]);
const CAS_TYPE: Piece =
    since(choice(Field::Type, 73, 3, &["", ".S32", ".64", BAD, ".128", BAD, BAD, BAD]), 4, 90);
const CAS_COUNT: Count = Count::By(Field::Type, &[1, 1, 2, 1, 4]);
/// The fixed bits of atomics with a descriptor and a 64-bit address.
const ATOM_DESCRIPTOR: u128 = one(70) | one(71) | one(91);
const RED_DESCRIPTOR_100: u128 = one(81) | one(90) | one(91);
/// Ordering and scope on sm_75, where a load without ordering is `.SYS`.
const ORDER_LOAD_75: Piece = choice_from(
    Field::Order,
    77,
    4,
    &[
        ".CONSTANT.CTA",
        ".CONSTANT.SM",
        ".CONSTANT.GPU",
        ".CONSTANT.SYS",
        ".CTA",
        ".SM",
        ".GPU",
        ".SYS",
        ".STRONG.CTA",
        ".STRONG.SM",
        ".STRONG.GPU",
        ".STRONG.SYS",
        ".MMIO.CTA",
        ".MMIO.SM",
        ".MMIO.GPU",
        ".MMIO.SYS",
    ],
    7,
);
pub(super) const ORDER_STORE_75: Piece = choice_from(
    Field::Order,
    77,
    4,
    &[
        BAD,
        BAD,
        BAD,
        BAD,
        ".CTA",
        ".SM",
        ".GPU",
        ".SYS",
        ".STRONG.CTA",
        ".STRONG.SM",
        ".STRONG.GPU",
        ".STRONG.SYS",
        ".MMIO.CTA",
        ".MMIO.SM",
        ".MMIO.GPU",
        ".MMIO.SYS",
    ],
    7,
);
pub(super) const ORDER_ATOM_75: Piece = choice_from(
    Field::Order,
    77,
    4,
    &[
        BAD,
        BAD,
        BAD,
        BAD,
        ".CTA",
        ".SM",
        ".GPU",
        ".SYS",
        ".STRONG.CTA",
        ".STRONG.SM",
        ".STRONG.GPU",
        ".STRONG.SYS",
        BAD,
        BAD,
        BAD,
        BAD,
    ],
    10,
);
/// The predicate says which data is absent; the load returns zero for it.
const ZERO: Piece = flag(Field::ZeroFill, 87, &["", ".ZD"]);
const ZERO_OR_PREDICATE: Piece =
    Piece::OpIf(Operand::Reg(PD_OPERAND), Show::NotNeutralOr(Field::ZeroFill, 1));
const ZERO_PREDICATE: Piece = Piece::OpIf(
    Operand::Reg(RegOperand { spec: FieldSpec::new(Field::Pd, 81, 3), ..PD_OPERAND }),
    Show::When(Field::ZeroFill, 1),
);
pub(super) const PRIVATE: Piece = flag(Field::Mode2, 76, &["", ".PRIVATE"]);
/// As [`described`], but the offset lacks its highest bit.
const fn described_short(lo: u8) -> Piece {
    Piece::Op(Operand::Mem(MemOperand {
        desc: Some(descriptor(lo)),
        reg: Some(ADDRESS_DESC),
        ureg: None,
        urz: Urz::Shown,
        offset: Some(FieldSpec::new(Field::Offset, 40, 23).value(Value::Signed { scale: 1 })),
    }))
}
/// The L2 eviction policy of an access to eight registers. The registers form two groups of four, each with its own
/// field.
const EVICT_L2: Piece = choice_from(Field::Scope, 81, 2, &[".EFL2", ".ENL2", ".ELL2", BAD], 1);
const PREFETCH_WIDE: Piece = choice(Field::Prefetch, 73, 2, &["", ".LTC64B", ".LTC128B", ".LTC256B"]);
const LOADED_HIGH: Piece =
    op(counted(reg_at(Field::Rd2, 64, Role::Dst), Count::By(Field::Mask, &ones_in_mask(4))));
const LOADED_LOW: Piece = op(counted(RD_OPERAND, Count::By(Field::Mask, &ones_in_mask(0))));
const STORED_LOW: Piece = data(Count::Fixed(4));
const STORED_HIGH: Piece = op(counted(reg_at(Field::Rc, 16, Role::Data), Count::Fixed(4)));
/// A mask of the registers that are loaded or stored. It is printed unless all bits are set.
const LOADED_MASK: Piece = mask(FieldSpec::new(Field::Mask, 57, 7).high(72, 1));
const STORED_MASK: Piece = mask(FieldSpec::new(Field::Mask, 59, 5).high(88, 3));
const CONDITION_WIDE: Piece =
    optional(inverted(noted(pred_at(Field::Pp, 87, Role::Carry), Field::PpNot, 90)));

/// The number of ones among the four bits from `first` on, for each mask.
const fn ones_in_mask(first: u32) -> [u8; 256] {
    let mut counts = [0; 256];
    let mut mask = 0;
    while mask < 256 {
        counts[mask] = (mask as u32 >> first & 0xf).count_ones() as u8;
        mask += 1;
    }
    counts
}

const fn mask(spec: FieldSpec) -> Piece {
    Piece::OpIf(Operand::Imm(spec.neutral(0xff), ImmStyle::Hex), Show::NotNeutral)
}

const fn wide_offset(bits: u8) -> Option<FieldSpec> {
    Some(FieldSpec::new(Field::Offset, 40, bits).value(Value::Signed { scale: 32 }))
}

const fn described_wide(lo: u8, offset_bits: u8) -> Piece {
    Piece::Op(Operand::Mem(MemOperand {
        desc: Some(descriptor(lo)),
        reg: Some(ADDRESS_DESC),
        ureg: None,
        urz: Urz::Shown,
        offset: wide_offset(offset_bits),
    }))
}

const fn based_wide(lo: u8, offset_bits: u8) -> Piece {
    Piece::Op(Operand::Mem(MemOperand {
        desc: None,
        reg: Some(ADDRESS_DESC),
        ureg: Some((FieldSpec::new(Field::UrBase, lo, 6).neutral(URZ), 2)),
        urz: Urz::Shown,
        offset: wide_offset(offset_bits),
    }))
}

/// As [`based`], but the offset lacks its highest bit, which holds the width of the address instead.
const BASED_SHORT: Piece = Piece::Op(Operand::Mem(MemOperand {
    desc: None,
    reg: Some(address_beside(63)),
    ureg: Some((FieldSpec::new(Field::UrBase, 64, 6).neutral(URZ), 2)),
    urz: Urz::Shown,
    offset: Some(FieldSpec::new(Field::Offset, 40, 23).value(Value::Signed { scale: 1 })),
}));
const RED_DESCRIPTOR: u128 = one(71) | one(90) | one(91);
const ATOMS_TYPE: Piece =
    since(choice(Field::Type, 73, 3, &["", ".S32", ".64", BAD, ".128", BAD, BAD, BAD]), 4, 90);
const ATOMS_COUNT: Count = Count::By(Field::Type, &[1, 1, 2, 1, 4]);
const ATOMS_OP: Piece = choice(
    Field::Op,
    87,
    4,
    &[
        ".ADD", ".MIN", ".MAX", ".INC", ".DEC", ".AND", ".OR", ".XOR", ".EXCH", BAD, BAD, BAD, BAD, BAD, BAD,
        BAD,
    ],
);
const SHARED_CAS: Piece = choice(Field::Op, 87, 2, &[".CAS", ".CAST", BAD, ".CAST.SPIN"]);
const CONSTANT_INDEX: Piece = Piece::Op(Operand::Const(ConstOperand {
    bank: FieldSpec::new(Field::CBank, 54, 5),
    offset: FieldSpec::new(Field::COffset, 38, 16),
    index: Some(ADDRESS32),
    handle: None,
    neg: None,
    abs: None,
    suffix: None,
    text: "",
    complement: None,
}));

/// How the address is computed from the index and the offset.
const CONSTANT_MODE: Piece = choice(Field::Mode, 78, 2, &["", ".IL", ".IS", ".ISL"]);
/// A constant whose bank is given by a handle.
const CONSTANT_HANDLE: Piece = Piece::Op(Operand::Const(ConstOperand {
    bank: FieldSpec::new(Field::CBank, 54, 5),
    offset: FieldSpec::new(Field::COffset, 38, 16),
    index: Some(reg_at(Field::Rc, 64, Role::Address)),
    handle: Some(FieldSpec::new(Field::Ur, 24, 6).neutral(URZ)),
    neg: None,
    abs: None,
    suffix: None,
    text: "",
    complement: None,
}));

/// The barrier object. Its address is in the register after that of the result's address.
const NEXT_BRACKET: Piece = Piece::Op(Operand::Handle(HandleOperand {
    word: "",
    reg: ureg_at(Field::UrBase, 24, Role::Base),
    offset: None,
    next: true,
}));

/// The other fixed bits of `ATOMS.POPC.INC.32`.
const POPC_INC: u128 = one(88) | one(90);

const fn atomic(name: &'static str, opcode: u16, pieces: &'static [Piece]) -> Family {
    Family::new(name, opcode, "", Atomic, pieces).sm(80, 255)
}

#[rustfmt::skip]
pub(super) const ROWS: &[Family] = &[
    Family::new("LDG", 0x981, "", Load, &[EXTENDED, EVICT, PREFETCH, SIZE, ORDER_LOAD, optional(PD_OPERAND), LOADED, described(32), CONDITION])
        .ones(one(72) | DESCRIPTOR).sm(80, 255),
    Family::new("LDG", 0x981, "", Load, &[EXTENDED, EVICT, PREFETCH, SIZE, ORDER_LOAD, optional(PD_OPERAND), LOADED, based(address_beside(90), 32, 2), CONDITION])
        .ones(one(72) | WITH_BASE).sm(80, 255).labelled("u"),
    Family::new("LDG", 0x381, "", Load, &[EXTENDED_OR_NOT, EVICT, PREFETCH, SIZE, ORDER_LOAD, optional(PD_OPERAND), LOADED, memory(ADDRESS_PLAIN), CONDITION])
        .sm(80, 255).labelled("r"),
    Family::new("STG", 0x986, "", Store, &[EXTENDED, EVICT, SIZE, ORDER_STORE, described(64), data(COUNT)])
        .ones(one(72) | DESCRIPTOR).sm(80, 90),
    Family::new("STG", 0x986, "", Store, &[EXTENDED, EVICT, SIZE, ORDER_STORE_100, described(64), data(COUNT)])
        .ones(one(72) | DESCRIPTOR).sm(100, 255),
    Family::new("STG", 0x986, "", Store, &[EXTENDED, EVICT, SIZE, ORDER_STORE, based(address_beside(90), 64, 2), data(COUNT)])
        .ones(one(72) | WITH_BASE).sm(80, 90).labelled("u"),
    Family::new("STG", 0x986, "", Store, &[EXTENDED, EVICT, SIZE, ORDER_STORE_100, based(address_beside(90), 64, 2), data(COUNT)])
        .ones(one(72) | WITH_BASE).sm(100, 255).labelled("u"),
    Family::new("LDG.256", 0x97e, "", Load, &[EXTENDED, EVICT, EVICT_L2, PREFETCH_WIDE, Piece::Text(".256"), ORDER_LOAD, LOADED_HIGH, LOADED_LOW, described_wide(32, 17), LOADED_MASK, CONDITION_WIDE])
        .ones(one(75) | one(76) | one(91)).sm(100, 255),
    Family::new("LDG.256", 0x97e, "", Load, &[EXTENDED, EVICT, EVICT_L2, PREFETCH_WIDE, Piece::Text(".256"), ORDER_LOAD, LOADED_HIGH, LOADED_LOW, based_wide(32, 17), LOADED_MASK, CONDITION_WIDE])
        .ones(one(75) | one(91)).sm(100, 255).labelled("u"),
    Family::new("STG.256", 0x97f, "", Store, &[EXTENDED, EVICT, EVICT_L2, Piece::Text(".256"), ORDER_STORE_100, described_wide(64, 19), STORED_LOW, STORED_HIGH, STORED_MASK])
        .ones(one(75) | one(76) | one(91)).sm(100, 255),
    Family::new("STG.256", 0x97f, "", Store, &[EXTENDED, EVICT, EVICT_L2, Piece::Text(".256"), ORDER_STORE_100, based_wide(64, 19), STORED_LOW, STORED_HIGH, STORED_MASK])
        .ones(one(75) | one(91)).sm(100, 255).labelled("u"),
    Family::new("LD", 0x980, "", Load, &[EXTENDED, EVICT, PREFETCH, SIZE, ORDER_LOAD, LOADED, described(32), CONDITION])
        .ones(one(72) | DESCRIPTOR).sm(80, 255),
    Family::new("LD", 0x980, "", Load, &[EXTENDED, EVICT, PREFETCH, SIZE, ORDER_LOAD, LOADED, based(address_beside(90), 32, 2), CONDITION])
        .ones(one(72) | WITH_BASE).sm(80, 255).labelled("u"),
    Family::new("LD", 0x980, "", Load, &[EXTENDED_OR_NOT, EVICT, PREFETCH, SIZE, ORDER_LOAD, LOADED, far(ADDRESS_PLAIN), CONDITION])
        .sm(80, 255).labelled("r"),
    Family::new("ST", 0x385, "", Store, &[EXTENDED_OR_NOT, EVICT, SIZE, ORDER_STORE, far(ADDRESS_PLAIN), data2(COUNT)]).sm(80, 255).labelled("r"),
    Family::new("STG", 0x386, "", Store, &[EXTENDED_OR_NOT, EVICT, SIZE, ORDER_STORE, memory(ADDRESS_PLAIN), data(COUNT)]).sm(80, 90).labelled("r"),
    Family::new("STG", 0x386, "", Store, &[EXTENDED_OR_NOT, EVICT, SIZE, ORDER_STORE_100, memory(ADDRESS_PLAIN), data(COUNT)]).sm(100, 255).labelled("r"),
    Family::new("ST", 0x985, "", Store, &[EXTENDED, EVICT, SIZE, ORDER_STORE, described(64), data(COUNT)])
        .ones(one(72) | DESCRIPTOR).sm(80, 255),
    Family::new("ST", 0x985, "", Store, &[EXTENDED, EVICT, SIZE, ORDER_STORE, based(address_beside(90), 64, 2), data(COUNT)])
        .ones(one(72) | WITH_BASE).sm(80, 255).labelled("u"),
    Family::new("LDS", 0x984, "", Load, &[SIZE, LOADED, memory(INDEX32)]).sm(80, 255),
    Family::new("LDS", 0x984, "", Load, &[SIZE, LOADED, based(INDEX32, 32, 1)]).ones(WITH_BASE).sm(80, 255).labelled("u"),
    Family::new("STS", 0x388, "", Store, &[SIZE, memory(INDEX32), data(COUNT)]),
    Family::new("STS", 0x988, "", Store, &[SIZE, based(INDEX32, 64, 1), data(COUNT)]).ones(WITH_BASE).labelled("u"),
    Family::new("LDL", 0x983, "", Load, &[EVICT, SIZE, LOADED, memory(ADDRESS32)]),
    Family::new("LDL", 0x983, "", Load, &[EVICT, SIZE, LOADED, based(ADDRESS32, 32, 1)]).ones(WITH_BASE).labelled("u"),
    Family::new("LDL", 0x983, "", Load, &[EVICT, SIZE, LOADED, described32(32)]).ones(one(76) | one(91)).sm(80, 255).labelled("d"),
    Family::new("STL", 0x387, "", Store, &[EVICT, SIZE, memory(ADDRESS32), data(COUNT)]),
    Family::new("STL", 0x987, "", Store, &[EVICT, SIZE, based(ADDRESS32, 64, 1), data(COUNT)]).ones(WITH_BASE).labelled("u"),
    Family::new("STL", 0x987, "", Store, &[EVICT, SIZE, described32(64), data(COUNT)]).ones(one(76) | one(91)).sm(80, 255).labelled("d"),
    Family::new("LDC", 0xb82, "", LoadConstant, &[CONSTANT_SIZE, CONSTANT_MODE, LOADED, CONSTANT_INDEX]),
    atomic("ATOM", 0x98a, &[EXTENDED, ATOM_OP, EVICT, ATOM_TYPE, ORDER_STORE, PD, op(counted(RD_OPERAND, ATOM_COUNT)), described(64), data(ATOM_COUNT)])
        .ones(one(72) | ATOM_DESCRIPTOR).sm(80, 89),
    atomic("ATOMG", 0x9a8, &[EXTENDED, ATOM_OP, EVICT, ATOM_TYPE, ORDER_STORE, PD, op(counted(RD_OPERAND, ATOM_COUNT)), described(64), data(ATOM_COUNT)])
        .ones(one(72) | ATOM_DESCRIPTOR).sm(80, 89),
    atomic("ATOM", 0x98a, &[EXTENDED, ATOM_OP, EVICT, ATOM_INT_TYPE, ORDER_STORE, PD, op(counted(RD_OPERAND, ATOM_INT_COUNT)), described(64), data(ATOM_INT_COUNT)])
        .ones(one(72) | ATOM_DESCRIPTOR).sm(90, 90),
    atomic("ATOMG", 0x9a8, &[EXTENDED, ATOMG_OP, EVICT, ATOM_INT_TYPE, ORDER_STORE, PD, op(counted(RD_OPERAND, ATOM_INT_COUNT)), described(64), data(ATOM_INT_COUNT)])
        .ones(one(72) | ATOM_DESCRIPTOR).sm(90, 90),
    atomic("ATOM.F", 0x9a2, &[EXTENDED, ATOM_FLOAT_OP, EVICT, ATOM_FLOAT_TYPE, ORDER_STORE, PD, op(counted(RD_OPERAND, ATOM_FLOAT_COUNT)), described(64), data(ATOM_FLOAT_COUNT)])
        .ones(one(72) | ATOM_DESCRIPTOR).sm(90, 90),
    atomic("ATOMG.F", 0x9a3, &[EXTENDED, ATOM_FLOAT_OP, EVICT, ATOM_FLOAT_TYPE, ORDER_STORE, PD, op(counted(RD_OPERAND, ATOM_FLOAT_COUNT)), described(64), data(ATOM_FLOAT_COUNT)])
        .ones(one(72) | ATOM_DESCRIPTOR).sm(90, 90),
    atomic("ATOM", 0x38a, &[EXTENDED_OR_NOT, ATOM_OP, EVICT, ATOM_TYPE, ORDER_STORE, PD, op(counted(RD_OPERAND, ATOM_COUNT)), memory(ADDRESS_PLAIN), data(ATOM_COUNT)])
        .sm(80, 89).labelled("r"),
    atomic("ATOM", 0x38a, &[EXTENDED_OR_NOT, ATOM_OP, EVICT, ATOM_INT_TYPE, ORDER_STORE, PD, op(counted(RD_OPERAND, ATOM_INT_COUNT)), memory(ADDRESS_PLAIN), data(ATOM_INT_COUNT)])
        .sm(90, 255).labelled("r"),
    atomic("ATOMG", 0x3a8, &[EXTENDED_OR_NOT, ATOM_OP, EVICT, ATOM_TYPE, ORDER_STORE, PD, op(counted(RD_OPERAND, ATOM_COUNT)), memory(ADDRESS_PLAIN), data(ATOM_COUNT)])
        .sm(80, 89).labelled("r"),
    atomic("ATOMG", 0x3a8, &[EXTENDED_OR_NOT, ATOMG_OP, EVICT, ATOM_INT_TYPE, ORDER_STORE, PD, op(counted(RD_OPERAND, ATOM_INT_COUNT)), memory(ADDRESS_PLAIN), data(ATOM_INT_COUNT)])
        .sm(90, 255).labelled("r"),
    atomic("ATOM.CAS", 0x38b, &[EXTENDED_OR_NOT, SHARED_CAS, EVICT, CAS_TYPE, ORDER_STORE, PD, op(counted(RD_OPERAND, CAS_COUNT)), memory(ADDRESS_PLAIN), data(CAS_COUNT), data2(CAS_COUNT)])
        .sm(80, 255),
    atomic("ATOM.CAS", 0x38b, &[EXTENDED_OR_NOT, SHARED_CAS, EVICT, CAS_TYPE, ORDER_ATOM_75, PRIVATE, PD, op(counted(RD_OPERAND, CAS_COUNT)), memory(ADDRESS_PLAIN), data(CAS_COUNT), data2(CAS_COUNT)])
        .sm(75, 75),
    atomic("ATOMG.CAS", 0x3a9, &[EXTENDED_OR_NOT, Piece::Text(".CAS"), EVICT, CAS_TYPE, ORDER_STORE, PD, op(counted(RD_OPERAND, CAS_COUNT)), memory(ADDRESS_PLAIN), data(CAS_COUNT), data2(CAS_COUNT)])
        .sm(80, 255),
    atomic("ATOMG.CAS", 0x3a9, &[EXTENDED_OR_NOT, Piece::Text(".CAS"), EVICT, CAS_TYPE, ORDER_ATOM_75, PRIVATE, PD, op(counted(RD_OPERAND, CAS_COUNT)), memory(ADDRESS_PLAIN), data(CAS_COUNT), data2(CAS_COUNT)])
        .sm(75, 75),
    atomic("RED", 0x98e, &[EXTENDED, RED_OP, EVICT, ATOM_TYPE, ORDER_STORE, described(64), data(ATOM_COUNT)]).ones(one(72) | RED_DESCRIPTOR).sm(80, 89),
    atomic("REDG", 0x98e, &[EXTENDED, RED_OP, EVICT, RED_INT_TYPE, ORDER_STORE, described(64), data(ATOM_INT_COUNT)]).ones(one(72) | RED_DESCRIPTOR).sm(90, 90),
    atomic("REDG.F", 0x9a6, &[EXTENDED, RED_FLOAT_OP, EVICT, ATOM_FLOAT_TYPE, ORDER_STORE, described(64), data(ATOM_FLOAT_COUNT)])
        .ones(one(72) | RED_DESCRIPTOR).sm(90, 90),
    atomic("ATOMS", 0x38c, &[ATOMS_OP, ATOMS_TYPE, op(counted(RD_OPERAND, ATOMS_COUNT)), memory(INDEX32), data(ATOMS_COUNT)]).sm(80, 255),
    atomic("ATOMS", 0x38c, &[ATOMS_OP, ATOMS_TYPE, op(counted(RD_OPERAND, ATOMS_COUNT)), memory(INDEX32), data(ATOMS_COUNT)]).ones(0xff << 64).sm(75, 75),
    atomic("ATOMS", 0x98c, &[ATOMS_OP, ATOMS_TYPE, op(counted(RD_OPERAND, ATOMS_COUNT)), based(INDEX32, 64, 1), data(ATOMS_COUNT)]).ones(WITH_BASE).sm(75, 255).labelled("u"),
    atomic("ATOMS.POPC.INC", 0xf8c, &[Piece::Text(".POPC"), Piece::Text(".INC"), Piece::Text(".32"), RD, based(INDEX32, 64, 1)]).ones(POPC_INC | WITH_BASE).sm(80, 89).reserved(one(73) | one(89)),
    atomic("ATOMS.POPC.INC", 0xf8c, &[Piece::Text(".POPC"), Piece::Text(".INC"), Piece::Text(".32"), RD, based(INDEX32, 64, 1)]).ones(POPC_INC | one(87) | WITH_BASE).sm(90, 255).reserved(one(73) | one(89)),
    atomic("ATOMS.ARRIVE", 0xf8c, &[Piece::Text(".ARRIVE"), Piece::Text(".64"), RD2, based(INDEX32, 64, 1)]).ones(one(74) | one(87) | one(90) | WITH_BASE).sm(80, 89).reserved(one(73) | one(89)),
    atomic("ATOMS.CAS", 0x38d, &[SHARED_CAS, since(choice(Field::Type, 73, 3, &["", ".S32", ".64", BAD, ".128", BAD, BAD, BAD]), 4, 90), op(counted(RD_OPERAND, CAS_COUNT)), memory(INDEX32), data(CAS_COUNT), data2(CAS_COUNT)])
        .sm(75, 255),
    atomic("ATOMS.CAST", 0x58d, &[choice_from(Field::Op, 87, 2, &[BAD, ".CAST", BAD, ".CAST.SPIN"], 1), CAS_TYPE, PD, memory(INDEX32), data(CAS_COUNT), data2(CAS_COUNT)])
        .sm(100, 255),
    Family::new("LDG", 0x381, "", Load, &[EXTENDED_OR_NOT, EVICT, PREFETCH, SIZE_75, ORDER_LOAD_75, PRIVATE, ZERO, ZERO_OR_PREDICATE, LOADED_75, memory(ADDRESS_PLAIN), CONDITION]).sm(75, 75),
    Family::new("LDG", 0x981, "", Load, &[EXTENDED, EVICT, PREFETCH, SIZE_75, ORDER_LOAD_75, PRIVATE, ZERO, ZERO_OR_PREDICATE, LOADED_75, based(address_beside(90), 32, 2), CONDITION])
        .ones(one(72) | WITH_BASE).sm(75, 75).labelled("u"),
    Family::new("STG", 0x386, "", Store, &[EXTENDED_OR_NOT, EVICT, SIZE_75, ORDER_STORE_75, PRIVATE, memory(ADDRESS_PLAIN), data(COUNT_75)]).sm(75, 75),
    Family::new("STG", 0x986, "", Store, &[EXTENDED, EVICT, SIZE_75, ORDER_STORE_75, PRIVATE, based(address_beside(90), 64, 2), data(COUNT_75)]).ones(one(72) | WITH_BASE).sm(75, 75).labelled("u"),
    Family::new("LD", 0x980, "", Load, &[EXTENDED_OR_NOT, EVICT, PREFETCH, SIZE_75, ORDER_LOAD_75, PRIVATE, ZERO, ZERO_PREDICATE, LOADED_75, far(ADDRESS_PLAIN), CONDITION]).sm(75, 75),
    Family::new("ST", 0x385, "", Store, &[EXTENDED_OR_NOT, EVICT, SIZE_75, ORDER_STORE_75, PRIVATE, far(ADDRESS_PLAIN), data2(COUNT_75)]).sm(75, 75),
    Family::new("ST", 0x985, "", Store, &[EXTENDED, EVICT, SIZE_75, ORDER_STORE_75, PRIVATE, based(address_beside(90), 64, 2), data(COUNT_75)]).ones(one(72) | WITH_BASE).sm(75, 75).labelled("u"),
    Family::new("LDS", 0x984, "", Load, &[flag(Field::Flag, 76, &["", ".U"]), SIZE, ZERO, ZERO_PREDICATE, LOADED, memory(INDEX32)]).sm(75, 75),
    Family::new("LDS", 0x984, "", Load, &[flag(Field::Flag, 76, &["", ".U"]), SIZE, ZERO, ZERO_PREDICATE, LOADED, based(INDEX32, 32, 1)]).ones(WITH_BASE).sm(75, 75).labelled("u"),
    Family::new("RED", 0x98e, "", Atomic, &[EXTENDED_OR_NOT, RED_OP, EVICT, ATOM_TYPE, ORDER_ATOM_75, PRIVATE, memory(ADDRESS_PLAIN), data(ATOM_COUNT)]).sm(75, 75),
    Family::new("RED", 0x98e, "", Atomic, &[EXTENDED, RED_OP, EVICT, ATOM_TYPE, ORDER_ATOM_75, PRIVATE, based(address_beside(90), 64, 2), data(ATOM_COUNT)])
        .ones(one(72) | WITH_BASE).sm(75, 75).labelled("u"),
    Family::new("ATOM", 0x38a, "", Atomic, &[EXTENDED_OR_NOT, ATOM_OP, EVICT, ATOM_TYPE, ORDER_ATOM_75, PRIVATE, PD, op(counted(RD_OPERAND, ATOM_COUNT)), memory(ADDRESS_PLAIN), data(ATOM_COUNT)])
        .ones(0xff << 64).sm(75, 75),
    Family::new("ATOM", 0x98a, "", Atomic, &[EXTENDED, ATOM_OP, EVICT, ATOM_TYPE, ORDER_ATOM_75, PRIVATE, PD, op(counted(RD_OPERAND, ATOM_COUNT)), based(address_beside(70), 64, 2), data(ATOM_COUNT)])
        .ones(one(72) | WITH_BASE).sm(75, 75).labelled("u"),
    Family::new("ATOMG", 0x3a8, "", Atomic, &[EXTENDED_OR_NOT, ATOM_OP, EVICT, ATOM_TYPE, ORDER_ATOM_75, PRIVATE, PD, op(counted(RD_OPERAND, ATOM_COUNT)), memory(ADDRESS_PLAIN), data(ATOM_COUNT)])
        .ones(0xff << 64).sm(75, 75),
    Family::new("ATOMG", 0x9a8, "", Atomic, &[EXTENDED, ATOM_OP, EVICT, ATOM_TYPE, ORDER_ATOM_75, PRIVATE, PD, op(counted(RD_OPERAND, ATOM_COUNT)), based(address_beside(70), 64, 2), data(ATOM_COUNT)])
        .ones(one(72) | WITH_BASE).sm(75, 75).labelled("u"),
    atomic("ATOM", 0x98a, &[EXTENDED, ATOM_OP, EVICT, ATOM_TYPE, ORDER_STORE, PD, op(counted(RD_OPERAND, ATOM_COUNT)), based(address_beside(70), 64, 2), data(ATOM_COUNT)])
        .ones(one(72) | WITH_BASE).sm(80, 89).labelled("u"),
    atomic("ATOM", 0x98a, &[EXTENDED, ATOM_OP, EVICT, ATOM_INT_TYPE, ORDER_STORE, PD, op(counted(RD_OPERAND, ATOM_INT_COUNT)), based(address_beside(70), 64, 2), data(ATOM_INT_COUNT)])
        .ones(one(72) | WITH_BASE).sm(90, 90).labelled("u"),
    atomic("ATOM", 0x98a, &[EXTENDED, ATOM_OP, EVICT, ATOM_INT_TYPE, ORDER_STORE, PD, op(counted(RD_OPERAND, ATOM_INT_COUNT)), BASED_SHORT, data(ATOM_INT_COUNT)])
        .ones(one(72) | WITH_BASE).sm(100, 255).labelled("u"),
    atomic("ATOM.F", 0x9a2, &[EXTENDED, ATOM_FLOAT_OP, EVICT, ATOM_FLOAT_TYPE, ORDER_STORE, PD, op(counted(RD_OPERAND, ATOM_FLOAT_COUNT)), based(address_beside(70), 64, 2), data(ATOM_FLOAT_COUNT)])
        .ones(one(72) | WITH_BASE).sm(90, 90).labelled("u"),
    atomic("ATOM.F", 0x9a2, &[EXTENDED, ATOM_FLOAT_OP, EVICT, ATOM_FLOAT_TYPE, ORDER_STORE, PD, op(counted(RD_OPERAND, ATOM_FLOAT_COUNT)), BASED_SHORT, data(ATOM_FLOAT_COUNT)])
        .ones(one(72) | WITH_BASE).sm(100, 255).labelled("u"),
    atomic("ATOMG", 0x9a8, &[EXTENDED, ATOM_OP, EVICT, ATOM_TYPE, ORDER_STORE, PD, op(counted(RD_OPERAND, ATOM_COUNT)), based(address_beside(70), 64, 2), data(ATOM_COUNT)])
        .ones(one(72) | WITH_BASE).sm(80, 89).labelled("u"),
    atomic("ATOMG", 0x9a8, &[EXTENDED, ATOMG_OP, EVICT, ATOM_INT_TYPE, ORDER_STORE, PD, op(counted(RD_OPERAND, ATOM_INT_COUNT)), based(address_beside(70), 64, 2), data(ATOM_INT_COUNT)])
        .ones(one(72) | WITH_BASE).sm(90, 90).labelled("u"),
    atomic("ATOMG", 0x9a8, &[EXTENDED, ATOMG_OP, EVICT, ATOM_INT_TYPE, ORDER_STORE, PD, op(counted(RD_OPERAND, ATOM_INT_COUNT)), BASED_SHORT, data(ATOM_INT_COUNT)])
        .ones(one(72) | WITH_BASE).sm(100, 255).labelled("u"),
    atomic("ATOMG.F", 0x9a3, &[EXTENDED, ATOM_FLOAT_OP, EVICT, ATOM_FLOAT_TYPE, ORDER_STORE, PD, op(counted(RD_OPERAND, ATOM_FLOAT_COUNT)), based(address_beside(70), 64, 2), data(ATOM_FLOAT_COUNT)])
        .ones(one(72) | WITH_BASE).sm(90, 90).labelled("u"),
    atomic("ATOMG.F", 0x9a3, &[EXTENDED, ATOM_FLOAT_OP, EVICT, ATOM_FLOAT_TYPE, ORDER_STORE, PD, op(counted(RD_OPERAND, ATOM_FLOAT_COUNT)), BASED_SHORT, data(ATOM_FLOAT_COUNT)])
        .ones(one(72) | WITH_BASE).sm(100, 255).labelled("u"),
    atomic("RED", 0x98e, &[EXTENDED, RED_OP, EVICT, ATOM_TYPE, ORDER_STORE, based(address_beside(90), 64, 2), data(ATOM_COUNT)]).ones(one(72) | WITH_BASE).sm(80, 89).labelled("u"),
    atomic("RED", 0x98e, &[EXTENDED_OR_NOT, RED_OP, EVICT, ATOM_TYPE, ORDER_STORE, memory(ADDRESS_PLAIN), data(ATOM_COUNT)]).sm(80, 89).labelled("r"),
    atomic("REDG", 0x98e, &[EXTENDED, RED_OP, EVICT, RED_INT_TYPE, ORDER_STORE, based(address_beside(90), 64, 2), data(ATOM_INT_COUNT)]).ones(one(72) | WITH_BASE).sm(90, 255).labelled("u"),
    atomic("REDG", 0x98e, &[EXTENDED_OR_NOT, RED_OP, EVICT, RED_INT_TYPE, ORDER_STORE, memory(ADDRESS_PLAIN), data(ATOM_INT_COUNT)]).sm(90, 255).labelled("r"),
    atomic("REDG.F", 0x9a6, &[EXTENDED, RED_FLOAT_OP, EVICT, ATOM_FLOAT_TYPE, ORDER_STORE, based(address_beside(90), 64, 2), data(ATOM_FLOAT_COUNT)]).ones(one(72) | WITH_BASE).sm(90, 255).labelled("u"),
    atomic("REDG.F", 0x9a6, &[EXTENDED_OR_NOT, RED_FLOAT_OP, EVICT, ATOM_FLOAT_TYPE, ORDER_STORE, memory(ADDRESS_PLAIN), data(ATOM_FLOAT_COUNT)]).sm(90, 255).labelled("r"),
    atomic("ATOM.ARRIVE", 0xf8a, &[EXTENDED, Piece::Text(".ARRIVE"), EVICT, Piece::Text(".64"), ORDER_STORE, PD, RD2, based(address_beside(70), 64, 2)])
        .ones(one(72) | one(74) | one(87) | one(90) | WITH_BASE).sm(80, 89).reserved(one(73) | one(75) | one(76) | one(89)),
    atomic("ATOM.POPC.INC", 0xf8a, &[EXTENDED, Piece::Text(".POPC"), Piece::Text(".INC"), EVICT, Piece::Text(".32"), ORDER_STORE, PD, RD, based(address_beside(70), 64, 2)])
        .ones(one(72) | one(88) | one(90) | WITH_BASE).sm(80, 89).reserved(one(73) | one(75) | one(76) | one(89)),
    Family::new("LD", 0x980, "", Load, &[EXTENDED, EVICT, PREFETCH, SIZE_75, ORDER_LOAD_75, PRIVATE, ZERO, ZERO_PREDICATE, LOADED_75, based(address_beside(90), 32, 2), CONDITION])
        .ones(one(72) | WITH_BASE).sm(75, 75).labelled("u"),
    Family::new("LDC", 0x582, "", LoadConstant, &[CONSTANT_SIZE, since(CONSTANT_MODE, 1, 80), LOADED, CONSTANT_HANDLE]).ones(one(91)).labelled("x"),
    atomic("REDG", 0x98e, &[EXTENDED, RED_OP, EVICT, RED_INT_TYPE, ORDER_STORE, described(64), data(ATOM_INT_COUNT)]).ones(one(72) | RED_DESCRIPTOR_100).sm(100, 255),
    atomic("REDG.F", 0x9a6, &[EXTENDED, RED_FLOAT_OP, EVICT, ATOM_FLOAT_TYPE, ORDER_STORE, described(64), data(ATOM_FLOAT_COUNT)])
        .ones(one(72) | RED_DESCRIPTOR_100).sm(100, 255),
    atomic("ATOM.F", 0x3a2, &[EXTENDED_OR_NOT, ATOM_FLOAT_OP, EVICT, ATOM_FLOAT_TYPE, ORDER_STORE, PD, op(counted(RD_OPERAND, ATOM_FLOAT_COUNT)), memory(ADDRESS_PLAIN), data(ATOM_FLOAT_COUNT)])
        .sm(90, 255).labelled("r"),
    atomic("ATOMG.F", 0x3a3, &[EXTENDED_OR_NOT, ATOM_FLOAT_OP, EVICT, ATOM_FLOAT_TYPE, ORDER_STORE, PD, op(counted(RD_OPERAND, ATOM_FLOAT_COUNT)), memory(ADDRESS_PLAIN), data(ATOM_FLOAT_COUNT)])
        .sm(90, 255).labelled("r"),
    atomic("ATOM", 0x98a, &[EXTENDED, ATOM_OP, EVICT, ATOM_INT_TYPE, ORDER_STORE, PD, op(counted(RD_OPERAND, ATOM_INT_COUNT)), described_short(64), data(ATOM_INT_COUNT)])
        .ones(one(72) | one(63) | one(76) | one(91)).sm(100, 255),
    atomic("ATOMG", 0x9a8, &[EXTENDED, ATOMG_OP, EVICT, ATOM_INT_TYPE, ORDER_STORE, PD, op(counted(RD_OPERAND, ATOM_INT_COUNT)), described_short(64), data(ATOM_INT_COUNT)])
        .ones(one(72) | one(63) | one(76) | one(91)).sm(100, 255),
    atomic("ATOM.F", 0x9a2, &[EXTENDED, ATOM_FLOAT_OP, EVICT, ATOM_FLOAT_TYPE, ORDER_STORE, PD, op(counted(RD_OPERAND, ATOM_FLOAT_COUNT)), described_short(64), data(ATOM_FLOAT_COUNT)])
        .ones(one(72) | one(63) | one(90) | one(91)).sm(100, 255),
    atomic("ATOMG.F", 0x9a3, &[EXTENDED, ATOM_FLOAT_OP, EVICT, ATOM_FLOAT_TYPE, ORDER_STORE, PD, op(counted(RD_OPERAND, ATOM_FLOAT_COUNT)), described_short(64), data(ATOM_FLOAT_COUNT)])
        .ones(one(72) | one(63) | one(90) | one(91)).sm(100, 255),
    Family::new("QSPC", 0x3aa, "", Load, &[EXTENDED_OR_NOT, since(choice(Field::Mode, 73, 2, &[".G", ".L", ".S", ".D"]), 3, 90), PD, RD, memory(ADDRESS_PLAIN)]),
    Family::new("QSPC", 0x9aa, "", Load, &[EXTENDED_OR_NOT, since(choice(Field::Mode, 73, 2, &[".G", ".L", ".S", ".D"]), 3, 90), PD, RD, based(address_beside(90), 32, 2)]).ones(WITH_BASE).labelled("u"),
    Family::new("CCTL", 0x98f, "", Sync, &[
        EXTENDED_OR_NOT, choice(Field::Mode, 78, 3, &["", ".U", ".C", BAD, BAD, BAD, BAD, BAD]),
        since(choice(Field::Op, 87, 4, &[".PF1", ".PF2", ".WB", ".IV", BAD, ".RS", BAD, BAD, BAD, ".PML2", ".DML2", ".RML2", BAD, BAD, BAD, BAD]), 9, 80),
        far(ADDRESS_PLAIN),
    ]),
    Family::new("CCTL.IVALL", 0x98f, "", Sync, &[Piece::Text(".IVALL")]).ones(one(89) | 0xff << 24).reserved(one(80)),
    Family::new("CCTLL", 0x990, "", Sync, &[choice(Field::Op, 87, 3, &[".PF1", ".PF2", ".WB", BAD, ".IVALL", BAD, BAD, BAD]), memory(ADDRESS32)]).reserved(one(90)),
    Family::new("MEMBAR", 0x992, "", Sync, &[
        choice(Field::Mode, 79, 2, &[".SC", ".ALL", "", BAD]), choice(Field::Scope, 76, 3, &[".CTA", ".SM", ".GPU", ".SYS", BAD, ".VC", BAD, BAD]),
        flag(Field::Flag, 72, &["", ".MMIO"]),
    ]).sm(75, 75),
    Family::new("MEMBAR", 0x992, "", Sync, &[
        choice(Field::Mode, 79, 2, &[".SC", ".ALL", "", ".MMIO"]), since(choice(Field::Scope, 76, 3, &[".CTA", ".SM", ".GPU", ".SYS", BAD, ".VC", ".CTA.PARTIAL", BAD]), 6, 90),
    ]).sm(80, 255),
    Family::new("ERRBAR", 0x9ab, "", Sync, &[]),
    Family::new("SYNCS.PHASECHK", 0x5a7, "", Load, &[
        Piece::Text(".PHASECHK"), Piece::Text(".TRANS64"), flag(Field::Mode, 72, &["", ".TRYWAIT"]), PD, based(ADDRESS32, 64, 1), data(Count::Fixed(1)),
    ]).ones(one(70) | WITH_BASE).sm(90, 90),
    Family::new("SYNCS.PHASECHK", 0x5a7, "", Load, &[
        Piece::Text(".PHASECHK"), Piece::Text(".TRANS64"), flag(Field::Mode, 72, &["", ".TRYWAIT"]), PD, based(ADDRESS32, 64, 1), data(Count::Fixed(1)),
    ]).ones(one(76) | WITH_BASE).sm(100, 255),
    Family::new("SYNCS.ARRIVE", 0x9a7, "", Atomic, &[
        Piece::Text(".ARRIVE"), Piece::Text(".TRANS64"), choice(Field::Flag, 73, 2, &["", ".TMASK", ".RED", BAD]),
        flag(Field::Flag3, 75, &["", ".OPTOUT"]), choice(Field::Mode, 84, 3, &["", ".A1T0", ".A0T1", ".A0TR", ".A0TX", ".ART0", BAD, BAD]), RD2, based(ADDRESS32, 64, 1), data(Count::Fixed(1)),
    ]).ones(WITH_BASE).sm(90, 255),
    Family::new("SYNCS.CCTL", 0x9b1, "", Sync, &[Piece::Text(".CCTL"), flag(Field::Op, 72, &[".IV", ".WB"]), based(ADDRESS32, 64, 1)]).ones(WITH_BASE).sm(90, 255).reserved(one(73)),
    Family::new("SYNCS.CCTL.IVALL", 0x9b1, "", Sync, &[Piece::Text(".CCTL"), flag(Field::Op, 72, &[".IVALL", ".WBALL"])]).sm(90, 255).reserved(one(73)),
    Family::new("SYNCS.EXCH", 0x5b2, "", Atomic, &[
        Piece::Text(".EXCH"), Piece::Text(".64"), op(counted(ureg_at(Field::URd, 16, Role::Dst), Count::Fixed(2))),
        Piece::Op(Operand::Mem(MemOperand { desc: None, reg: None, ureg: Some((FieldSpec::new(Field::UrBase, 24, 6).neutral(URZ), 1)), urz: Urz::Shown, offset: Some(OFFSET) })),
        op(RegOperand { role: Role::Data, ..counted(ureg_at(Field::URb, 32, Role::Data), Count::Fixed(2)) }),
    ]).ones(one(72) | WITH_BASE).uniform().sm(90, 255).reserved(one(73)),
    Family::new("UGETNEXTWORKID", 0x3ca, "", Async, &[choice(Field::Mode, 72, 1, &[".SELFCAST", ".BROADCAST"]), bracket("", counted(ureg_at(Field::UrBase, 24, Role::Base), Count::Fixed(2))), NEXT_BRACKET])
        .ones(one(91)).uniform().sm(100, 255),
    Family::new("UTMACCTL", 0x9b9, "", Sync, &[choice(Field::Op, 82, 1, &[".IV", ".PF"]), bracket("", counted(ureg_at(Field::UrBase, 24, Role::Base), Count::Fixed(2)))])
        .ones(one(91)).uniform().sm(90, 255),
    Family::new("UTMACCTL.IVALL", 0x9b9, "", Sync, &[Piece::Text(".IVALL")]).ones(one(83)).uniform().sm(90, 255),
    Family::new("CCTL.C", 0x540, "", Sync, &[
        EXTENDED, Piece::Text(".C"), Piece::Text(".LDCU"), Piece::Text(".IV"), flag(Field::Flag, 86, &["", ".DEEP"]),
        Piece::Op(Operand::Mem(MemOperand { desc: None, reg: None, ureg: Some((FieldSpec::new(Field::UrBase, 24, 6).neutral(URZ), 2)), urz: Urz::Shown, offset: Some(FieldSpec::new(Field::Offset, 32, 32).value(Value::Signed { scale: 1 })) })),
    ]).ones(one(79) | one(87) | one(88) | one(91)).sm(100, 255).reserved(one(78) | one(80) | one(89) | one(90)),
    Family::new("FENCE.VIEW.ASYNC", 0x3c6, "", Sync, &[Piece::Text(".VIEW"), Piece::Text(".ASYNC"), choice(Field::Mode, 72, 1, &[".S", ".G"])]).sm(90, 90),
    Family::new("FENCE.VIEW.ASYNC", 0x3c6, "", Sync, &[Piece::Text(".VIEW"), Piece::Text(".ASYNC"), choice(Field::Mode, 72, 2, &[".S", ".G", ".T", BAD])]).sm(100, 110),
    Family::new("FENCE.VIEW.ASYNC", 0x3c6, "", Sync, &[Piece::Text(".VIEW"), Piece::Text(".ASYNC"), choice(Field::Mode, 72, 1, &[".S", ".G"])]).sm(120, 255),
    Family::new("ACQBULK", 0x82e, "", Sync, &[]).sm(90, 255),
    Family::new("PREEXIT", 0x82d, "", Sync, &[]).sm(90, 255),
    Family::new("UCGABAR_ARV", 0x9c7, "", Sync, &[]).ones(one(91)).uniform().sm(90, 255).reserved(one(72)),
    Family::new("UCGABAR_WAIT", 0xdc7, "", Sync, &[]).ones(one(91)).uniform().sm(90, 255),
    Family::new("UTMACMDFLUSH", 0x9b7, "", Sync, &[]).uniform().sm(90, 255),
    Family::new("CGAERRBAR", 0x5ab, "", Sync, &[]).sm(90, 255),
];
