//! Accesses to the shared memory of other thread blocks, and to memory that several devices share.
//!
//! The shape "d" has a descriptor. Other shapes add a uniform register to the address.

use super::memory::{ADDRESS_DESC, EXTENDED, OFFSET, RED_OP, address_beside, data, descriptor};
use super::*;
use crate::class::Class::*;

/// `[R.64+UR+offset]`; one bit holds the width of the address. In a 64-bit register pair, the first register is the
/// address and the second is the address of a barrier object.
const fn based(width_bit: u8, urz: Urz) -> Piece {
    Piece::Op(Operand::Mem(MemOperand {
        desc: None,
        reg: Some(address_beside(width_bit)),
        ureg: Some((FieldSpec::new(Field::UrBase, 64, 6).neutral(URZ), 1)),
        urz,
        offset: Some(OFFSET),
    }))
}

const DESCRIBED: Piece = Piece::Op(Operand::Mem(MemOperand {
    desc: Some(descriptor(64)),
    reg: Some(ADDRESS_DESC),
    ureg: None,
    urz: Urz::Shown,
    offset: Some(OFFSET),
}));

const STORE_SIZE: Piece = choice_from(Field::Size, 73, 3, &[BAD, BAD, BAD, BAD, "", ".64", ".128", BAD], 4);
const STORE_COUNT: Count = Count::By(Field::Size, &[1, 1, 1, 1, 1, 2, 4]);
const REDUCTION_TYPE: Piece = choice(Field::Type, 73, 3, &["", ".S32", ".64", BAD, BAD, BAD, BAD, BAD]);
const REDUCTION_COUNT: Count = Count::By(Field::Type, &[1, 1, 2]);

/// Reductions over several devices, as loads that return the result.
const INT_OP: Piece = choice(
    Field::Op,
    87,
    4,
    &[".ADD", ".MIN", ".MAX", BAD, BAD, ".AND", ".OR", ".XOR", BAD, BAD, BAD, BAD, BAD, BAD, BAD, BAD],
);
const INT_TYPE: Piece = choice(Field::Type, 73, 3, &[".32", ".S32", ".64", ".S64", BAD, BAD, BAD, BAD]);
const INT_COUNT: Count = Count::By(Field::Type, &[1, 1, 2, 2]);
const FLOAT_OP: Piece = choice(Field::Op, 88, 2, &[".ADD", ".MIN", ".MAX", ".F32ADD"]);
const FLOAT_OP_100: Piece = choice(Field::Op, 88, 2, &[".ADD", ".MIN", ".MAX", ".HPADD"]);
const FLOAT_TYPE: Piece = choice(
    Field::Type,
    73,
    4,
    &[
        ".F16x2", ".F16x4", ".F16x8", ".BF16x2", ".BF16x4", ".BF16x8", BAD, BAD, BAD, BAD, BAD, BAD, ".F32",
        ".F32x2", ".F32x4", ".F64",
    ],
);
/// Byte formats exist from sm_100 on.
const FLOAT_TYPE_100: Piece = Piece::Mod(FieldSpec::new(Field::Type, 73, 4).high(87, 1).choice(&[
    ".F16x2", ".F16x4", ".F16x8", ".BF16x2", ".BF16x4", ".BF16x8", BAD, BAD, BAD, BAD, BAD, BAD, ".F32",
    ".F32x2", ".F32x4", ".F64", BAD, ".E5M2x4", ".E5M2x8", ".E5M2x16", ".E4M3x4", ".E4M3x8", ".E4M3x16", BAD,
    BAD, BAD, BAD, BAD, BAD, BAD, BAD, BAD,
]));
const FLOAT_COUNT: Count =
    Count::By(Field::Type, &[1, 2, 4, 1, 2, 4, 1, 1, 1, 1, 1, 1, 1, 2, 4, 2, 1, 1, 2, 4, 1, 2, 4]);
const ROUNDED: Piece = Piece::Text(".RN");
const ORDER: Piece = Piece::Text(".STRONG.SYS");
/// The fixed bits that correspond to [`ORDER`], to the width of the address, and to the uniform register.
const LOAD: u128 = one(72) | one(78) | one(80) | one(91);
const INT_LOADED: Piece = op(counted(RD_OPERAND, INT_COUNT));
const FLOAT_LOADED: Piece = op(counted(RD_OPERAND, FLOAT_COUNT));

/// Reductions of uniform registers into global memory.
const UNIFORM_EVICT: Piece = choice_from(Field::Evict, 83, 2, &[".EFL2", "", ".ELL2", BAD], 1);
const UNIFORM_TYPE: Piece = choice(Field::Type, 73, 3, &["", ".S32", ".64", BAD, BAD, BAD, BAD, BAD]);
const STORED_SIZE: Piece =
    choice_from(Field::Size, 73, 3, &[".U8", ".S8", ".U16", ".S16", "", ".64", BAD, BAD], 4);
const UNIFORM_ORDER: Piece = choice_from(
    Field::Order,
    77,
    4,
    &[
        BAD,
        BAD,
        BAD,
        BAD,
        BAD,
        BAD,
        BAD,
        ".STRONG.GPU",
        ".MMIO.GPU",
        BAD,
        ".STRONG.SYS",
        BAD,
        ".MMIO.SYS",
        BAD,
        BAD,
        BAD,
    ],
    7,
);

#[rustfmt::skip]
pub(super) const ROWS: &[Family] = &[
    Family::new("STAS", 0xdbd, "", Store, &[STORE_SIZE, based(90, Urz::Beside32), data(STORE_COUNT)]).ones(one(91)).sm(90, 255),
    Family::new("REDAS", 0xdbe, "", Store, &[RED_OP, REDUCTION_TYPE, based(72, Urz::Beside32), data(REDUCTION_COUNT)]).ones(one(91)).sm(90, 255).reserved(one(90)),
    Family::new("LDGMC", 0x9a4, "", Load, &[EXTENDED, INT_OP, INT_TYPE, ORDER, INT_LOADED, based(70, Urz::Shown)]).ones(LOAD).sm(90, 90).reserved(one(77) | one(79)),
    Family::new("LDGMC", 0x9a4, "", Load, &[EXTENDED, INT_OP, INT_TYPE, ORDER, INT_LOADED, DESCRIBED]).ones(LOAD | one(70) | one(71)).sm(90, 90).labelled("d").reserved(one(77) | one(79)),
    Family::new("LDGMC", 0x9a4, "", Load, &[EXTENDED, INT_OP, INT_TYPE, ORDER, INT_LOADED, based(81, Urz::Shown)]).ones(LOAD).sm(100, 255).reserved(one(77) | one(79)),
    Family::new("LDGMC", 0x9a4, "", Load, &[EXTENDED, INT_OP, INT_TYPE, ORDER, INT_LOADED, DESCRIBED]).ones(LOAD | one(81) | one(82)).sm(100, 255).labelled("d").reserved(one(77) | one(79)),
    Family::new("LDGMC.F", 0x9a5, "", Load, &[EXTENDED, FLOAT_OP, FLOAT_TYPE, ROUNDED, ORDER, FLOAT_LOADED, based(70, Urz::Shown)]).ones(LOAD).sm(90, 90).reserved(one(77) | one(79)),
    Family::new("LDGMC.F", 0x9a5, "", Load, &[EXTENDED, FLOAT_OP, FLOAT_TYPE, ROUNDED, ORDER, FLOAT_LOADED, DESCRIBED]).ones(LOAD | one(70) | one(71)).sm(90, 90).labelled("d").reserved(one(77) | one(79)),
    Family::new("LDGMC.F", 0x9a5, "", Load, &[EXTENDED, FLOAT_OP_100, FLOAT_TYPE_100, ROUNDED, ORDER, FLOAT_LOADED, based(81, Urz::Shown)]).ones(LOAD).sm(100, 255).reserved(one(77) | one(79)),
    Family::new("LDGMC.F", 0x9a5, "", Load, &[EXTENDED, FLOAT_OP_100, FLOAT_TYPE_100, ROUNDED, ORDER, FLOAT_LOADED, DESCRIBED]).ones(LOAD | one(81) | one(82)).sm(100, 255).labelled("d").reserved(one(77) | one(79)),
    Family::new("USTGR", 0x377, "", Store, &[
        EXTENDED, Piece::Text(".NA"), UNIFORM_EVICT, STORED_SIZE, UNIFORM_ORDER,
        Piece::Op(Operand::Mem(MemOperand {
            desc: None, reg: None, ureg: Some((FieldSpec::new(Field::UrBase, 24, 6).neutral(URZ), 2)), urz: Urz::Shown, offset: Some(OFFSET),
        })),
        op(RegOperand { role: Role::Data, ..counted(ureg_at(Field::URb, 32, Role::Data), Count::By(Field::Size, &[1, 1, 1, 1, 1, 2])) }),
    ]).ones(one(91)).uniform().sm(100, 119),
    Family::new("UMEMSETS", 0x3cb, "", Store, &[
        Piece::Text(".64"),
        Piece::Op(Operand::Mem(MemOperand {
            desc: None, reg: None, ureg: Some((FieldSpec::new(Field::UrBase, 24, 6).neutral(URZ), 1)), urz: Urz::Shown, offset: Some(OFFSET),
        })),
        Piece::Op(Operand::Literal("URZ")), op(ureg_at(Field::URc, 64, Role::C)),
    ]).ones(0xff << 32 | one(91)).uniform().sm(100, 255),
    Family::new("UREDGR", 0x378, "", Store, &[
        EXTENDED, Piece::Text(".ADD"), Piece::Text(".NA"), UNIFORM_EVICT, UNIFORM_TYPE, UNIFORM_ORDER,
        Piece::Op(Operand::Mem(MemOperand {
            desc: None, reg: None, ureg: Some((FieldSpec::new(Field::UrBase, 24, 6).neutral(URZ), 2)), urz: Urz::Shown, offset: Some(OFFSET),
        })),
        op(RegOperand { role: Role::Data, ..counted(ureg_at(Field::URb, 32, Role::Data), REDUCTION_COUNT) }),
    ]).ones(one(91)).uniform().sm(100, 119).reserved(one(87) | one(88) | one(89)),
];
