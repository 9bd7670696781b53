//! Tensor memory: its matrix products, copies to and from it, and its allocation.

use super::*;
use crate::class::Class::*;

/// The instruction acts for the pair of thread blocks instead of one block.
const PAIR: Piece = flag(Field::Size, 85, &["", ".2CTA"]);
const WEIGHT_STATIONARY: Piece = flag(Field::Mode, 83, &["", ".WS"]);
const SHIFT_A: Piece = flag(Field::Flag, 74, &["", ".ASHIFT"]);
/// The scale factors: four per row; on sm_103 the text describes this as one per block of 16.
const SCALES: Piece = flag(Field::Scale, 62, &[".4X", ""]);
const BLOCKS: Piece = flag(Field::Scale, 62, &[".BLOCK16", ""]);

/// Adds how the product uses the collector buffer of the first factor.
const fn collect_a(reg: RegOperand) -> RegOperand {
    let suffix = FieldSpec::new(Field::LayoutA, 84, 1).high(86, 1).choice(&[
        "",
        ".A_KEEP",
        ".A_REUSE",
        ".A_REUSE.A_KEEP",
    ]);
    RegOperand { suffix: Some(suffix), ..reg }
}

/// How the product uses the collector buffers of the second factor, and which of the four it uses.
const COLLECT_B: &[&str] = &[
    "",
    ".BUFFER1",
    ".BUFFER2",
    ".BUFFER3",
    ".B_KEEP",
    ".B_KEEP.BUFFER1",
    ".B_KEEP.BUFFER2",
    ".B_KEEP.BUFFER3",
    ".B_REUSE",
    ".B_REUSE.BUFFER1",
    ".B_REUSE.BUFFER2",
    ".B_REUSE.BUFFER3",
    ".B_REUSE.B_KEEP",
    ".B_REUSE.B_KEEP.BUFFER1",
    ".B_REUSE.B_KEEP.BUFFER2",
    ".B_REUSE.B_KEEP.BUFFER3",
];

/// A matrix in shared memory, given by a descriptor in a pair of registers.
const fn shared(reg: RegOperand) -> Piece {
    handle("gdesc", counted(reg, Count::Fixed(2)), None)
}

const fn tensor(reg: RegOperand) -> Piece {
    handle("tmem", reg, None)
}

const A_OPERAND: RegOperand = ureg_at(Field::URa, 24, Role::A);
const B_OPERAND: RegOperand = ureg_at(Field::URb, 32, Role::B);
const A_SHARED: Piece = shared(collect_a(A_OPERAND));
const A_TENSOR: Piece = tensor(collect_a(A_OPERAND));
const B_PLAIN: Piece = shared(B_OPERAND);
const B: Piece = shared(RegOperand {
    suffix: Some(FieldSpec::new(Field::LayoutB, 79, 4).choice(COLLECT_B).silent(&[(Field::Size, 1)])),
    ..B_OPERAND
});
/// The accumulator.
const D: Piece = tensor(ureg_at(Field::URc, 64, Role::C));
/// A pair of registers: the address of a sparse product's metadata, and the instruction descriptor.
const METADATA_OPERAND: RegOperand = ureg_at(Field::UrBase, 40, Role::D);
const METADATA: Piece = tensor(counted(METADATA_OPERAND, Count::Fixed(2)));
const DESCRIPTION: Piece = Piece::Op(Operand::Handle(HandleOperand {
    word: "idesc",
    reg: METADATA_OPERAND,
    offset: None,
    next: true,
}));
/// A mask: 128 bits for the lanes that are not written, for each block; or 64 bits for the columns that are zero.
const MASK: Piece = optional(counted(
    ureg_at(Field::Ur, 48, Role::D),
    Count::By2(Field::Size, &[2, 4], Field::Mode, &[2, 1]),
));
/// The scale factors of both sides, as a pair of addresses.
const BLOCK_SCALES: Piece = tensor(counted(ureg_at(Field::Ur, 48, Role::D), Count::Fixed(2)));
/// Whether the product is added to the accumulator.
const ACCUMULATE: Piece = op(UPP_OPERAND);
/// The accumulator is scaled by a power of two first.
const SCALE_D: Piece =
    Piece::OpIf(Operand::Imm(FieldSpec::new(Field::Imm2, 75, 4), ImmStyle::Hex), Show::NotNeutral);

const OFFSET: FieldSpec = FieldSpec::new(Field::Offset, 40, 24).high(72, 8).value(Value::Signed { scale: 1 });
const ADDRESS_OPERAND: RegOperand = ureg_at(Field::UrBase, 24, Role::Address);
const ADDRESS: Piece = handle("tmem", ADDRESS_OPERAND, Some(OFFSET));
const ADDRESS_LOAD: Piece = handle("tmem", ureg_at(Field::UrBase, 32, Role::Address), Some(OFFSET));
const ADDRESS_STORE: Piece = handle("tmem", ureg_at(Field::UrBase, 64, Role::Address), Some(OFFSET));

const LANES: Piece = Piece::Mod(
    FieldSpec::new(Field::Type, 81, 2)
        .high(87, 1)
        .choice(&[
            ".16dp128bit",
            ".16dp256bit",
            "",
            ".16dp64bit",
            ".16dp32bit_t0_t15",
            ".16dp32bit_t16_t31",
            BAD,
            BAD,
        ])
        .neutral(2),
);
const REPEAT: Piece = choice(Field::Size, 83, 3, &["", ".x2", ".x4", ".x8", ".x16", ".x32", ".x64", ".x128"]);
/// The repeat counts of loads with statistics, which have at least two columns.
const STAT_REPEAT: Piece =
    choice_from(Field::Size, 83, 3, &[BAD, ".x2", ".x4", ".x8", ".x16", ".x32", ".x64", ".x128"], 1);
const COUNT: Count =
    Count::By2(Field::Type, &[2, 4, 1, 1, 1, 1], Field::Size, &[1, 2, 4, 8, 16, 32, 64, 128]);
/// The lane shapes of loads that also compute a statistic of the loaded values.
const STAT_LANES: Piece = Piece::Mod(
    FieldSpec::new(Field::Type, 81, 2)
        .high(87, 1)
        .choice(&[BAD, BAD, "", BAD, ".16dp32bit_t0_t15", ".16dp32bit_t16_t31", BAD, BAD])
        .neutral(2),
);
const STAT_OP: Piece = choice(Field::Op, 66, 2, &[".MAX", ".MAXABS", ".MIN", ".MINABS"]);
const STAT_TYPE: Piece = choice(Field::SrcType, 64, 2, &["", ".S32", ".F32", BAD]);
const STAT_NAN: Piece = flag(Field::Mode, 68, &["", ".NAN"]);
const COPY_SHAPE: Piece = Piece::Mod(FieldSpec::new(Field::Type, 83, 2).high(88, 1).choice(&[
    "",
    BAD,
    ".4dp256bit",
    ".128dp128bit",
    ".2x64dp128bit_lw02_lw13",
    ".2x64dp128bit_lw01_lw23",
    ".4x32dp128bit",
    BAD,
]));
const COPY_FORMAT: Piece = choice(Field::SrcType, 80, 2, &["", ".U4x16P64", ".U6x16P32", BAD]);
const MULTICAST: Piece = flag(Field::Flag, 75, &["", ".MULTICAST"]);

const fn row(name: &'static str, opcode: u16, ones: u128, pieces: &'static [Piece]) -> Family {
    Family::new(name, opcode, "", Async, pieces).uniform().ones(one(91) | ones).sm(100, 110)
}

/// Matrix products by element type. In rows with `.TENSOR` in their names, matrix A is in tensor memory.
const INTEGER: u128 = one(72);
const QUARTER: u128 = one(72) | one(73);
const NIBBLE: u128 = one(63);

#[rustfmt::skip]
pub(super) const ROWS: &[Family] = &[
    row("UTCHMMA", 0x5ea, 0, &[PAIR, WEIGHT_STATIONARY, A_SHARED, B, D, METADATA, DESCRIPTION, MASK, ACCUMULATE, SCALE_D]),
    row("UTCHMMA.TENSOR", 0x9ea, 0, &[PAIR, WEIGHT_STATIONARY, SHIFT_A, A_TENSOR, B, D, METADATA, DESCRIPTION, MASK, ACCUMULATE, SCALE_D]),
    row("UTCIMMA", 0x5ea, INTEGER, &[PAIR, WEIGHT_STATIONARY, A_SHARED, B, D, METADATA, DESCRIPTION, MASK, ACCUMULATE]).sm(100, 100),
    row("UTCIMMA.TENSOR", 0x9ea, INTEGER, &[PAIR, WEIGHT_STATIONARY, SHIFT_A, A_TENSOR, B, D, METADATA, DESCRIPTION, MASK, ACCUMULATE]).sm(100, 100),
    row("UTCIMMA", 0x5ea, INTEGER, &[PAIR, WEIGHT_STATIONARY, A_SHARED, B, D, METADATA, DESCRIPTION, MASK, ACCUMULATE]).sm(110, 110),
    row("UTCIMMA.TENSOR", 0x9ea, INTEGER, &[PAIR, WEIGHT_STATIONARY, SHIFT_A, A_TENSOR, B, D, METADATA, DESCRIPTION, MASK, ACCUMULATE]).sm(110, 110),
    row("UTCQMMA", 0x5ea, QUARTER, &[PAIR, WEIGHT_STATIONARY, A_SHARED, B, D, METADATA, DESCRIPTION, MASK, ACCUMULATE]),
    row("UTCQMMA.TENSOR", 0x9ea, QUARTER, &[PAIR, WEIGHT_STATIONARY, SHIFT_A, A_TENSOR, B, D, METADATA, DESCRIPTION, MASK, ACCUMULATE]),
    row("UTCQMMA.SCALED", 0xdea, QUARTER, &[PAIR, A_SHARED, B_PLAIN, D, METADATA, DESCRIPTION, BLOCK_SCALES, ACCUMULATE]).reserved(one(63)),
    row("UTCQMMA.SCALED.TENSOR", 0xfea, QUARTER, &[PAIR, A_TENSOR, B_PLAIN, D, METADATA, DESCRIPTION, BLOCK_SCALES, ACCUMULATE]).reserved(one(63)),
    row("UTCOMMA", 0x5ea, NIBBLE, &[PAIR, SCALES, A_SHARED, B_PLAIN, D, METADATA, DESCRIPTION, BLOCK_SCALES, ACCUMULATE]).sm(100, 100),
    row("UTCOMMA.TENSOR", 0x9ea, NIBBLE, &[PAIR, SCALES, A_TENSOR, B_PLAIN, D, METADATA, DESCRIPTION, BLOCK_SCALES, ACCUMULATE]).sm(100, 100),
    row("UTCOMMA", 0x5ea, NIBBLE, &[PAIR, BLOCKS, A_SHARED, B_PLAIN, D, METADATA, DESCRIPTION, BLOCK_SCALES, ACCUMULATE]).sm(103, 103),
    row("UTCOMMA.TENSOR", 0x9ea, NIBBLE, &[PAIR, BLOCKS, A_TENSOR, B_PLAIN, D, METADATA, DESCRIPTION, BLOCK_SCALES, ACCUMULATE]).sm(103, 103),
    row("UTCOMMA", 0x5ea, NIBBLE, &[PAIR, SCALES, A_SHARED, B_PLAIN, D, METADATA, DESCRIPTION, BLOCK_SCALES, ACCUMULATE]).sm(110, 110),
    row("UTCOMMA.TENSOR", 0x9ea, NIBBLE, &[PAIR, SCALES, A_TENSOR, B_PLAIN, D, METADATA, DESCRIPTION, BLOCK_SCALES, ACCUMULATE]).sm(110, 110),
    row("UTCCP", 0x9e7, 0, &[
        Piece::Text(".T"), Piece::Text(".S"), PAIR, COPY_SHAPE, COPY_FORMAT, ADDRESS, shared(B_OPERAND),
    ]).reserved(one(86) | one(87)),
    row("UTCSHIFT", 0x9e6, one(80), &[PAIR, Piece::Text(".DOWN"), ADDRESS]),
    Family::new("UVIRTCOUNT", 0x44c, "", Sync, &[Piece::Text(".DEALLOC"), Piece::Text(".SMPOOL"), op(ureg_at(Field::URa, 24, Role::A))])
        .uniform().ones(one(91)).sm(100, 110).labelled("u"),
    Family::new("UVIRTCOUNT", 0x84c, "", Sync, &[Piece::Text(".DEALLOC"), Piece::Text(".SMPOOL"), imm(Field::Imm32, 32, 32)])
        .uniform().sm(100, 110).labelled("i"),
    row("UTCBAR", 0x3e9, 0, &[
        PAIR_WAKEUP, MULTICAST, BARRIER, op(ureg_at(Field::URb, 32, Role::B)), MULTICAST_MASK,
    ]),
    row("UTCATOMSWS.CAS", 0x3e3, 0, &[
        PAIR, Piece::Text(".CAS"), UPD, URD, op(ureg_at(Field::URb, 32, Role::B)), op(ureg_at(Field::URc, 64, Role::C)),
    ]),
    row("UTCATOMSWS.FIND_AND_SET", 0x5e3, 0, &[
        PAIR, Piece::Text(".FIND_AND_SET"), flag(Field::Mode, 75, &["", ".ALIGN"]), UPD, URD, op(ureg_at(Field::URb, 32, Role::B)),
    ]),
    row("UTCATOMSWS", 0x9e3, 0, &[PAIR, flag(Field::Op, 87, &[".AND", ".OR"]), URD, op(ureg_at(Field::URb, 32, Role::B))]),
    Family::new("LDTM", 0x9ee, "", Load, &[
        LANES, REPEAT, flag(Field::Mode, 80, &["", ".PACK16BIT"]), op(counted(RD_OPERAND, COUNT)), ADDRESS_LOAD,
    ]).uniform().ones(one(91)).sm(100, 110),
    Family::new("LDTM.STAT", 0x5ee, "", Load, &[
        Piece::Text(".STAT"), STAT_LANES, STAT_REPEAT, STAT_OP, STAT_TYPE, STAT_NAN,
        op(reg_at(Field::Rd2, 24, Role::Dst)), op(counted(RD_OPERAND, COUNT)), ADDRESS_LOAD,
    ]).uniform().ones(one(91)).sm(103, 110),
    Family::new("STTM", 0x9ed, "", Store, &[
        LANES, REPEAT, flag(Field::Mode, 80, &["", ".EXPAND16BIT"]), ADDRESS_STORE,
        op(counted(reg_at(Field::Rb, 32, Role::Data), COUNT)),
    ]).uniform().ones(one(91)).sm(100, 110),
];

/// Only a single thread block can be woken.
const PAIR_WAKEUP: Piece = Piece::Mod(FieldSpec::new(Field::Size, 85, 1).high(76, 2).choice(&[
    "",
    ".2CTA",
    ".WAKEUP",
    BAD,
    ".A0TX",
    ".2CTA.A0TX",
    ".A0TX.WAKEUP",
    BAD,
]));
const BARRIER: Piece = Piece::Op(Operand::Mem(MemOperand {
    desc: None,
    reg: None,
    ureg: Some((FieldSpec::new(Field::UrBase, 24, 6).neutral(URZ), 1)),
    urz: Urz::Shown,
    offset: None,
}));
const MULTICAST_MASK: Piece = optional(ureg_at(Field::URc, 64, Role::C));
