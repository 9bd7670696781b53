//! Textures and surfaces.
//!
//! The shape says where the handle of the texture or surface is: "c" in a constant, given by bank and word; "r" in a
//! general register before the coordinates; "u" in a uniform register, the only choice from sm_100 on.

use super::*;
use crate::class::Class::*;
use ImmStyle::*;

/// The number of registers from that of the first coordinate on, by dimensions.
const COORDINATES: &[u8] = &[1, 2, 3, 3, 2, 3, 1, 4];
const SAMPLED_DIMS: &[&str] = &["1D", "2D", "3D", "CUBE", "ARRAY_1D", "ARRAY_2D", BAD, "ARRAY_CUBE"];
const FETCHED_DIMS: &[&str] = &["1D", "2D", "3D", BAD, "ARRAY_1D", "ARRAY_2D", BAD, BAD];
const GATHERED_DIMS: &[&str] = &[BAD, "2D", BAD, "CUBE", BAD, "ARRAY_2D", BAD, "ARRAY_CUBE"];
const DERIVED_DIMS: &[&str] = &["1D", "2D", BAD, BAD, "ARRAY_1D", "ARRAY_2D", BAD, BAD];

const fn dims(texts: &'static [&'static str], neutral: u64) -> Piece {
    Piece::Op(Operand::Word(FieldSpec::new(Field::Dims, 61, 3).choice(texts).neutral(neutral)))
}

/// The mask of the components that are written, printed unless it is all four. The first two components of the mask go
/// to the destination in bits 16–23, the others to that in bits 64–71.
const MASK_SPEC: FieldSpec = FieldSpec::new(Field::Mask, 72, 4).neutral(0xf);
const MASK: Piece = Piece::OpIf(Operand::Imm(MASK_SPEC, Hex), Show::NotNeutral);
const FIRST_TWO: &[u8] = &[0, 1, 1, 2, 1, 2, 2, 2, 1, 2, 2, 2, 2, 2, 2, 2];
const LAST_TWO: &[u8] = &[0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 1, 1, 2];

const RESIDENT: Piece = optional(PD_OPERAND);
const HIGH: Piece = op(counted(reg_at(Field::Rd2, 64, Role::Dst), halved(&Count::By(Field::Mask, LAST_TWO))));
const LOW: Piece = op(counted(RD_OPERAND, halved(&Count::By(Field::Mask, FIRST_TWO))));
/// The register count for halves: two in each register.
const fn halved(count: &'static Count) -> Count {
    Count::AtMost(Field::Round, 1, count)
}
const COORDINATE: Piece = op(counted(reg_at(Field::Ra, 24, Role::A), Count::By(Field::Dims, COORDINATES)));
/// With `.SCR`, the values in registers are divided evenly between both operands.
const fn first_of(behind: &'static Count) -> Piece {
    op(counted(reg_at(Field::Ra, 24, Role::A), Count::First(Field::Flag, &ALL_COORDINATES, behind)))
}
const fn second_of(behind: &'static Count) -> RegOperand {
    counted(EXTRA_OPERAND, Count::Second(Field::Flag, &ALL_COORDINATES, behind))
}
const ALL_COORDINATES: Count = Count::By(Field::Dims, COORDINATES);
const EXTRA_OPERAND: RegOperand = reg_at(Field::Rb, 32, Role::B);
/// The operands after the coordinates: level of detail, offsets, comparison value. Printed unless there are none.
const LEVEL_EXTRA: Piece = optional(second_of(&BEHIND_SAMPLED));
const LEVEL_PLACE: Piece = first_of(&BEHIND_SAMPLED);
const BEHIND_SAMPLED: Count = Count::Sum(&[
    (Field::Lod, &[0, 0, 1, 1, 1, 2, 0, 0, 0, 1, 1]),
    (Field::Offsets, &[0, 1, 0]),
    (Field::Compare, &[0, 1]),
]);
const FETCH_EXTRA: Piece = optional(second_of(&BEHIND_FETCHED));
const FETCH_PLACE: Piece = first_of(&BEHIND_FETCHED);
const BEHIND_FETCHED: Count =
    Count::Sum(&[(Field::Lod, &[0, 0, 0, 1]), (Field::Offsets, &[0, 1, 0]), (Field::Compare, &[0, 1])]);
const FETCH_EXTRA_100: Piece = optional(second_of(&BEHIND_FETCHED_100));
const FETCH_PLACE_100: Piece = first_of(&BEHIND_FETCHED_100);
const BEHIND_FETCHED_100: Count =
    Count::Sum(&[(Field::Lod, &[0, 1]), (Field::Offsets, &[0, 1, 0]), (Field::Compare, &[0, 1])]);
const GATHER_EXTRA: Piece = optional(second_of(&BEHIND_GATHERED));
const GATHER_PLACE: Piece = first_of(&BEHIND_GATHERED);
const BEHIND_GATHERED: Count = Count::Sum(&[(Field::Offsets, &[0, 1, 2, 0]), (Field::Compare, &[0, 1])]);
const DERIVATIVES: Piece = optional(counted(EXTRA_OPERAND, DERIVATIVE_COUNT));
const DERIVATIVE_COUNT: Count = Count::By(Field::Dims, &[2, 4, 1, 1, 2, 4]);
/// The coordinates, followed by the offsets, which share a register with the layer index.
const DERIVED_COORDINATE: Piece = op(counted(reg_at(Field::Ra, 24, Role::A), DERIVED_COUNT));
const DERIVED_COUNT: Count =
    Count::Select(Field::Offsets, &[ALL_COORDINATES, Count::By(Field::Dims, &[2, 3, 1, 1, 2, 3])]);
/// The same, preceded by a handle.
const DERIVED_COORDINATE_R: Piece =
    op(counted(reg_at(Field::Ra, 24, Role::A), Count::Plus(1, &DERIVED_COUNT)));
const EXTRA: Piece = optional(EXTRA_OPERAND);
/// The operand if its register is always present because it holds the handle. The other values follow the handle.
const LEVEL_PRESENT: Piece = op(second_of(&WITH_SAMPLED));
const LEVEL_PLACE_R: Piece = first_of(&WITH_SAMPLED);
const WITH_SAMPLED: Count = Count::Plus(1, &BEHIND_SAMPLED);
const FETCH_PRESENT: Piece = op(second_of(&WITH_FETCHED));
const FETCH_PLACE_R: Piece = first_of(&WITH_FETCHED);
const WITH_FETCHED: Count = Count::Plus(1, &BEHIND_FETCHED);
const GATHER_PRESENT: Piece = op(second_of(&WITH_GATHERED));
const GATHER_PLACE_R: Piece = first_of(&WITH_GATHERED);
const WITH_GATHERED: Count = Count::Plus(1, &BEHIND_GATHERED);
const DERIVATIVES_PRESENT: Piece = op(counted(EXTRA_OPERAND, DERIVATIVE_COUNT));
const HANDLE_PRESENT: Piece = op(EXTRA_OPERAND);
/// A handle, followed by the level of a query.
const QUERIED_LEVEL_R: Piece = op(counted(RA_OPERAND, Count::Fixed(2)));

const SCALAR: Piece = flag(Field::Flag, 60, &["", ".SCR"]);
/// The handle is in a register.
const BINDLESS: Piece = flag(Field::Flag2, 59, &["", ".B"]);
const IN_REGISTER: Piece = Piece::Text(".B");
const HALVES: Piece = choice(Field::Round, 79, 2, &["", ".F16.RN", ".F16.RZ", BAD]);
const LEVEL: Piece = choice(Field::Lod, 87, 3, &["", ".LZ", ".LB", ".LL", ".LC", ".LB.LC", ".LC.FDV", BAD]);
const LEVEL_100: Piece =
    Piece::Mod(FieldSpec::new(Field::Lod, 59, 1).high(87, 3).choice(&[
        "", ".LZ", ".LB", ".LL", ".LC", ".LB.LC", BAD, BAD, BAD, BAD, BAD, BAD, BAD, BAD, BAD, BAD,
    ]));
const LEVEL_120: Piece = Piece::Mod(FieldSpec::new(Field::Lod, 59, 1).high(87, 3).choice(&[
    "", ".LZ", ".LB", ".LL", ".LC", ".LB.LC", ".ULB", ".ULL", ".ULC", ".ULB.LC", ".LB.ULC", BAD, BAD, BAD,
    BAD, BAD,
]));
const FETCH_LEVEL: Piece = choice_from(Field::Lod, 87, 3, &[BAD, ".LZ", BAD, ".LL", BAD, BAD, BAD, BAD], 1);
const FETCH_LEVEL_100: Piece = choice(Field::Lod, 87, 2, &[".LZ", ".LL", BAD, BAD]);
const FETCH_LEVEL_120: Piece = choice(Field::Lod, 87, 2, &[".LZ", ".LL", ".ULL", BAD]);
const COMPONENT: Piece = choice(Field::Op, 87, 2, &[".R", ".G", ".B", ".A"]);
const OFFSETS: Piece = flag(Field::Offsets, 76, &["", ".AOFFI"]);
const OFFSETS_100: Piece = choice(Field::Offsets, 56, 2, &["", ".AOFFI", BAD, BAD]);
const OFFSETS_120: Piece = choice(Field::Offsets, 56, 2, &["", ".AOFFI", ".UAOFFI", BAD]);
const GATHER_OFFSETS: Piece = choice(Field::Offsets, 76, 2, &["", ".AOFFI", ".PTP", BAD]);
const GATHER_OFFSETS_120: Piece = choice(Field::Offsets, 76, 2, &["", ".AOFFI", ".PTP", ".UAOFFI"]);
/// The array index is in a uniform register.
const UNIFORM_INDEX: Piece = flag(Field::Index, 58, &["", ".UAI"]);
const COMPARE: Piece = flag(Field::Compare, 78, &["", ".DC"]);
const DERIVATIVE: Piece = flag(Field::Mode2, 77, &["", ".NDV"]);
const DERIVATIVE_100: Piece = choice(Field::Mode2, 76, 2, &["", ".NDV", ".FDV", BAD]);
const DERIVATIVE_120: Piece = choice(Field::Mode2, 76, 2, &["", ".NDV", BAD, ".DXY"]);
const LEVEL_DERIVATIVE_100: Piece = choice(Field::Mode2, 76, 2, &["", ".NDV", BAD, BAD]);
const CLAMP_LEVEL: Piece = flag(Field::Mode2, 77, &["", ".CL"]);
const CLAMP_LEVEL_100: Piece = flag(Field::Mode2, 76, &["", ".CL"]);
const SAMPLES: Piece = flag(Field::Compare, 78, &["", ".MS"]);
const SAMPLES_100: Piece = choice(Field::Compare, 77, 2, &["", ".MS", BAD, BAD]);
const SAMPLES_120: Piece = choice(Field::Compare, 77, 2, &["", ".MS", ".UMS", BAD]);
const CLAMPED: Piece = flag(Field::Lod, 87, &["", ".LC"]);
const CLAMPED_120: Piece = choice(Field::Lod, 87, 2, &["", ".LC", ".ULC", BAD]);
const EVICT: Piece = memory::EVICT;
const NODEP: Piece = flag(Field::Flag3, 90, &["", ".NODEP"]);
const QUERY: Piece = Piece::Op(Operand::Word(FieldSpec::new(Field::Op, 62, 2).choice(&[
    "TEX_HEADER_DIMENSION",
    "TEX_HEADER_TEXTURE_TYPE",
    "TEX_HEADER_SAMPLER_POS",
    BAD,
])));
const QUERIED: Piece = Piece::Op(Operand::Imm(MASK_SPEC, Hex));

/// The handle: bank and word of a constant; a uniform register and an offset; or two uniform registers.
const BANK: Piece = imm(Field::CBank, 54, 5);
const WORD: Piece = imm(Field::COffset, 40, 14);
const HANDLE: Piece = op(ureg_at(Field::Ur, 40, Role::Descriptor));
const DISTANCE: Piece = imm(Field::Imm2, 46, 8);
const SAMPLER: Piece = optional(ureg_at(Field::UrBase, 48, Role::Descriptor));
/// The bits that NVIDIA's compiler sets in an unused sampler field. The text does not show them.
const UNUSED_SAMPLER: Piece = Piece::Hidden(FieldSpec::new(Field::UrBase, 48, 8).neutral(255));
const UNIFORM: u128 = one(91);
const REGISTER: u128 = one(59);

/// The rows of an instruction for its five kinds of handles. Parameters: the opcodes of the constant, uniform and
/// register kinds; the modifiers before and after `.B`, and those from sm_100 and from sm_120 on; the operands before
/// and after the handle.
macro_rules! by_handle {
    ($name:ident, $class:expr, [$c:literal $u:literal $r:literal],
     [$($before:expr),*], [$($after:expr),*], [$($on100:expr),*], [$($on120:expr),*],
     [$($operand:expr),*], [$($operand_r:expr),*], [$($operand_100:expr),*], [$($handle_120:expr),*], [$($last:expr),*]) => {
        [
            Family::new(stringify!($name), $c, "", $class, &[$($before,)* BINDLESS, $($after,)* $($operand,)* BANK, WORD, $($last),*])
                .sm(75, 90).labelled("c"),
            Family::new(stringify!($name), $u, "", $class, &[$($before,)* $($after,)* $($operand,)* HANDLE, DISTANCE, $($last),*])
                .ones(UNIFORM).sm(75, 90).labelled("u"),
            Family::new(stringify!($name), $r, "", $class, &[$($before,)* IN_REGISTER, $($after,)* $($operand_r,)* $($last),*])
                .ones(REGISTER).sm(75, 90).labelled("r"),
            Family::new(stringify!($name), $u, "", $class, &[$($on100,)* $($operand_100,)* HANDLE, UNUSED_SAMPLER, $($last),*])
                .ones(UNIFORM).sm(100, 119).labelled("u"),
            Family::new(stringify!($name), $u, "", $class, &[$($on120,)* $($operand_100,)* $($handle_120,)* $($last),*])
                .ones(UNIFORM).sm(120, 255).labelled("u"),
        ]
    };
}

#[rustfmt::skip]
pub(super) const TEX: [Family; 5] = by_handle!(TEX, Texture, [0xb60 0xf60 0x361],
    [SCALAR], [HALVES, LEVEL, OFFSETS, COMPARE, EVICT, DERIVATIVE, NODEP],
    [SCALAR, HALVES, LEVEL_100, OFFSETS_100, COMPARE, EVICT, DERIVATIVE_100, NODEP],
    [SCALAR, HALVES, LEVEL_120, OFFSETS_120, UNIFORM_INDEX, COMPARE, EVICT, DERIVATIVE_120, NODEP],
    [RESIDENT, HIGH, LOW, LEVEL_PLACE, LEVEL_EXTRA], [RESIDENT, HIGH, LOW, LEVEL_PLACE_R, LEVEL_PRESENT],
    [RESIDENT, HIGH, LOW, LEVEL_PLACE, LEVEL_EXTRA], [HANDLE, SAMPLER], [dims(SAMPLED_DIMS, 0), MASK]);

#[rustfmt::skip]
pub(super) const TLD: [Family; 5] = by_handle!(TLD, Texture, [0xb66 0xf66 0x367],
    [SCALAR], [HALVES, FETCH_LEVEL, OFFSETS, EVICT, SAMPLES, CLAMP_LEVEL, NODEP],
    [SCALAR, HALVES, FETCH_LEVEL_100, OFFSETS_100, EVICT, SAMPLES_100, CLAMP_LEVEL_100, NODEP],
    [SCALAR, HALVES, FETCH_LEVEL_120, OFFSETS_120, UNIFORM_INDEX, EVICT, SAMPLES_120, CLAMP_LEVEL_100, NODEP],
    [RESIDENT, HIGH, LOW, FETCH_PLACE, FETCH_EXTRA], [RESIDENT, HIGH, LOW, FETCH_PLACE_R, FETCH_PRESENT],
    [RESIDENT, HIGH, LOW, FETCH_PLACE_100, FETCH_EXTRA_100], [HANDLE, SAMPLER], [dims(FETCHED_DIMS, 0), MASK]);

#[rustfmt::skip]
pub(super) const TLD4: [Family; 5] = by_handle!(TLD4, Texture, [0xb63 0xf63 0x364],
    [SCALAR, COMPONENT], [HALVES, GATHER_OFFSETS, COMPARE, EVICT, NODEP],
    [SCALAR, COMPONENT, HALVES, GATHER_OFFSETS, COMPARE, EVICT, NODEP],
    [SCALAR, COMPONENT, HALVES, GATHER_OFFSETS_120, UNIFORM_INDEX, COMPARE, EVICT, NODEP],
    [RESIDENT, HIGH, LOW, GATHER_PLACE, GATHER_EXTRA], [RESIDENT, HIGH, LOW, GATHER_PLACE_R, GATHER_PRESENT],
    [RESIDENT, HIGH, LOW, GATHER_PLACE, GATHER_EXTRA], [HANDLE, SAMPLER], [dims(GATHERED_DIMS, 1), MASK]);

#[rustfmt::skip]
pub(super) const TXD: [Family; 5] = by_handle!(TXD, Texture, [0xb6c 0xf6c 0x36d],
    [], [HALVES, CLAMPED, OFFSETS, EVICT, NODEP],
    [HALVES, CLAMPED, OFFSETS_100, EVICT, NODEP],
    [HALVES, CLAMPED_120, OFFSETS_120, UNIFORM_INDEX, EVICT, NODEP],
    [RESIDENT, HIGH, LOW, DERIVED_COORDINATE, DERIVATIVES], [RESIDENT, HIGH, LOW, DERIVED_COORDINATE_R, DERIVATIVES_PRESENT],
    [RESIDENT, HIGH, LOW, DERIVED_COORDINATE, DERIVATIVES], [HANDLE, SAMPLER], [dims(DERIVED_DIMS, 0), MASK]);

/// Queries the level of detail that a fetch would use.
#[rustfmt::skip]
pub(super) const TMML: [Family; 5] = by_handle!(TMML, Texture, [0xb69 0xf69 0x36a],
    [], [Piece::Text(".LOD"), DERIVATIVE, NODEP],
    [Piece::Text(".LOD"), LEVEL_DERIVATIVE_100, NODEP],
    [Piece::Text(".LOD"), DERIVATIVE_120, NODEP],
    [HIGH, LOW, COORDINATE, EXTRA], [HIGH, LOW, COORDINATE, HANDLE_PRESENT],
    [HIGH, LOW, COORDINATE, EXTRA], [HANDLE, UNUSED_SAMPLER], [dims(SAMPLED_DIMS, 0), MASK]);

#[rustfmt::skip]
pub(super) const TXQ: &[Family] = &[
    Family::new("TXQ", 0xb6f, "", Texture, &[BINDLESS, NODEP, HIGH, LOW, RA, QUERY, BANK, WORD, QUERIED]).sm(75, 90).labelled("c"),
    Family::new("TXQ", 0xf6f, "", Texture, &[NODEP, HIGH, LOW, RA, QUERY, HANDLE, DISTANCE, QUERIED]).ones(UNIFORM).sm(75, 90).labelled("u"),
    Family::new("TXQ", 0xf6f, "", Texture, &[NODEP, HIGH, LOW, RA, QUERY, HANDLE, NO_DISTANCE, QUERIED]).ones(UNIFORM).sm(100, 255).labelled("u"),
    Family::new("TXQ", 0x370, "", Texture, &[IN_REGISTER, NODEP, HIGH, LOW, QUERIED_LEVEL_R, QUERY, QUERIED]).ones(REGISTER).labelled("r"),
];
const NO_DISTANCE: Piece = Piece::Op(Operand::Literal("0x0"));

const SURFACE_DIMS: Piece =
    choice(Field::Dims, 61, 3, &[".1D", ".1D_BUFFER", ".1D_ARRAY", ".2D", ".2D_ARRAY", ".3D", BAD, BAD]);
/// The effect of coordinates out of bounds: none, the nearest element, or an error.
const CLAMP: Piece = choice(Field::Clamp, 59, 2, &[".IGN", "", ".TRAP", BAD]);
/// An access to raw bytes. The first coordinate is a byte offset.
const RAW: Piece = Piece::Text(".D");
const BYTES: Piece = flag(Field::Flag, 72, &["", ".BA"]);
const FORMATTED: Piece = Piece::Text(".P");
const SURFACE_COORDINATES: &[u8] = &[1, 1, 2, 2, 3, 3];
const SURFACE_ADDRESS: Piece = Piece::Op(Operand::Mem(MemOperand {
    desc: None,
    reg: Some(counted(reg_at(Field::Ra, 24, Role::Address), Count::By(Field::Dims, SURFACE_COORDINATES))),
    ureg: None,
    urz: Urz::Shown,
    offset: None,
}));
const SIZE: Piece = memory::SIZE;
const STORED: Piece = op(RegOperand { role: Role::Data, reuse: None, ..counted(RB_OPERAND, memory::COUNT) });
const STORED_PIXELS: Piece = op(RegOperand {
    role: Role::Data,
    reuse: None,
    ..counted(RB_OPERAND, Count::By(Field::Mask, &[1, 1, 1, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 4]))
});
const CHANNELS: Piece = choice_from(
    Field::Mask,
    72,
    4,
    &[BAD, ".R", BAD, ".RG", BAD, BAD, BAD, BAD, BAD, BAD, BAD, BAD, BAD, BAD, BAD, ""],
    15,
);
const REDUCED: Piece = op(RegOperand {
    role: Role::Data,
    reuse: None,
    ..counted(RB_OPERAND, Count::By(Field::Type, &[1, 1, 2, 1, 1, 2, 1, 2]))
});
const REDUCTION_TYPE: Piece =
    choice(Field::Type, 73, 3, &["", ".S32", ".U64", ".F32.FTZ.RN", ".F16x2.RN", ".S64", ".SD32", ".SD64"]);
const SURFACE_REGISTER: Piece = op(reg_at(Field::Rc, 64, Role::Descriptor));

/// The rows of a surface instruction. Parameters: the opcodes of the constant, uniform and register kinds; the
/// modifiers before the one for the index, after it on sm_75, and after it on later generations; the operands.
macro_rules! surface {
    ($name:ident $label:literal, $class:expr, [$c:literal $u:literal $r:literal],
     [$($before:expr),*], [$($on75:expr),*], [$($later:expr),*], [$($operand:expr),*]) => {
        [
            Family::new($label, $c, "", $class, &[$($before,)* $($on75,)* $($operand,)* BANK, WORD]).sm(75, 75).labelled("c"),
            Family::new($label, $u, "", $class, &[$($before,)* $($on75,)* $($operand,)* HANDLE, DISTANCE]).ones(UNIFORM).sm(75, 75).labelled("u"),
            Family::new($label, $r, "", $class, &[$($before,)* $($on75,)* $($operand,)* SURFACE_REGISTER]).sm(75, 75).labelled("r"),
            Family::new($label, $c, "", $class, &[$($before,)* $($later,)* $($operand,)* BANK, WORD]).sm(80, 90).labelled("c"),
            Family::new($label, $u, "", $class, &[$($before,)* $($later,)* $($operand,)* HANDLE, DISTANCE]).ones(UNIFORM).sm(80, 90).labelled("u"),
            Family::new($label, $r, "", $class, &[$($before,)* $($later,)* $($operand,)* SURFACE_REGISTER]).sm(80, 119).labelled("r"),
            Family::new($label, $u, "", $class, &[$($before,)* $($later,)* $($operand,)* HANDLE, UNUSED_SAMPLER]).ones(UNIFORM).sm(100, 119).labelled("u"),
            Family::new($label, $u, "", $class, &[$($before,)* UNIFORM_INDEX, $($later,)* $($operand,)* HANDLE, SAMPLER]).ones(UNIFORM).sm(120, 255).labelled("u"),
            Family::new($label, $r, "", $class, &[$($before,)* UNIFORM_INDEX, $($later,)* $($operand,)* SURFACE_REGISTER, SAMPLER]).sm(120, 255).labelled("r"),
        ]
    };
}

#[rustfmt::skip]
pub(super) const SULD: [Family; 9] = surface!(SULD "SULD", Texture, [0xb99 0xf99 0x99a],
    [RAW, BYTES, SURFACE_DIMS], [EVICT, SIZE, memory::ORDER_STORE_75, memory::PRIVATE, CLAMP], [EVICT, SIZE, memory::ORDER_LOAD, CLAMP],
    [RESIDENT, op(counted(RD_OPERAND, memory::COUNT)), SURFACE_ADDRESS]);

#[rustfmt::skip]
pub(super) const SUST: [Family; 9] = surface!(SUST "SUST", Store, [0xb9d 0xf9d 0x99e],
    [RAW, BYTES, SURFACE_DIMS], [EVICT, SIZE, memory::ORDER_STORE_75, memory::PRIVATE, CLAMP], [EVICT, SIZE, memory::ORDER_STORE, CLAMP],
    [SURFACE_ADDRESS, STORED]);

#[rustfmt::skip]
pub(super) const SUST_P: [Family; 9] = surface!(SUST "SUST.P", Store, [0xb9b 0xf9b 0x99c],
    [FORMATTED, SURFACE_DIMS], [EVICT, memory::ORDER_STORE_75, memory::PRIVATE, CHANNELS, CLAMP], [EVICT, memory::ORDER_STORE, CHANNELS, CLAMP],
    [SURFACE_ADDRESS, STORED_PIXELS]);

#[rustfmt::skip]
pub(super) const SURED: [Family; 9] = surface!(SURED "SURED", Store, [0x59f 0xf9f 0x3a0],
    [RAW, BYTES, SURFACE_DIMS], [memory::RED_OP, EVICT, REDUCTION_TYPE, memory::ORDER_ATOM_75, memory::PRIVATE, CLAMP],
    [memory::RED_OP, EVICT, REDUCTION_TYPE, memory::ORDER_STORE, CLAMP],
    [SURFACE_ADDRESS, REDUCED]);
