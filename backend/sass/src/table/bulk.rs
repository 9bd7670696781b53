//! Bulk copies and reductions of blocks of memory and of tensors; the barrier objects that count their bytes; and
//! operations on the shared memory of other thread blocks or on memory of several devices.
//!
//! The shape "d" adds a descriptor with a cache policy, "m" a uniform register with a mask or with offsets, and "md"
//! both. "u" adds a uniform register to the address.

use super::*;
use crate::class::Class::*;

/// `[UR]`: the addresses in `count` uniform registers.
const fn place(field: Field, lo: u8, count: u8) -> Piece {
    bracket("", counted(ureg_at(field, lo, Role::Base), Count::Fixed(count)))
}

/// The destination, in two registers: an address and, if it is in shared memory, the address of a barrier object; or
/// the coordinates.
const TO: Piece = place(Field::UrBase, 32, 2);
const FROM: Piece = place(Field::Ur, 24, 2);
/// The source; one register if it is in shared memory.
const FROM_EITHER: Piece =
    bracket("", counted(ureg_at(Field::Ur, 24, Role::Base), Count::By(Field::Mode2, &[2, 1])));
const FROM_SHARED: Piece = place(Field::Ur, 24, 1);
/// The size in units of 16 bytes. The next register holds the mask of a multicast.
const SIZE: Piece = op(RegOperand { role: Role::B, ..ureg_at(Field::URb, 64, Role::B) });
const EXTRA: Piece = op(ureg_at(Field::URc, 64, Role::C));
const POLICY: Piece = bracket("desc", counted(ureg_at(Field::UrDesc, 40, Role::Descriptor), Count::Fixed(2)));
const WITH_POLICY: u128 = one(91) | one(76);

const DESTINATION: Piece = flag(Field::Mode, 73, &[".G", ".S"]);
const SOURCE: Piece = flag(Field::Mode2, 74, &[".G", ".S"]);
const MULTICAST: Piece = flag(Field::Flag, 75, &["", ".MULTICAST"]);
const MASKED: Piece = flag(Field::Mask, 84, &["", ".DST_G_BYTE_MASK"]);
const PREFETCH: Piece = choice(Field::Prefetch, 81, 2, &["", ".LTC64B", ".LTC128B", ".LTC256B"]);
const SEQUENCED: Piece = flag(Field::Flag2, 83, &["", ".SEQUENCED"]);
const COUNTED: Piece = flag(Field::Flag3, 85, &["", ".COUNTED"]);
const ORDER: Piece = choice(
    Field::Order,
    77,
    4,
    &[
        "",
        BAD,
        BAD,
        BAD,
        BAD,
        ".STRONG.SM",
        BAD,
        ".STRONG.GPU",
        BAD,
        BAD,
        ".STRONG.SYS",
        BAD,
        BAD,
        BAD,
        BAD,
        BAD,
    ],
);
const REDUCTION: Piece = memory::RED_OP;
const REDUCTION_TYPE: Piece = choice(
    Field::Type,
    81,
    4,
    &[
        "",
        ".S32",
        ".U64",
        ".S64",
        ".F16.RN",
        ".F32.RN",
        ".F32.FTZ.RN",
        ".F64.RN",
        ".BF16.RN",
        BAD,
        BAD,
        BAD,
        BAD,
        BAD,
        BAD,
        BAD,
    ],
);

const DIMS: Piece = choice(Field::Dims, 79, 3, &[".1D", ".2D", ".3D", ".4D", ".5D", BAD, BAD, BAD]);
const COORDINATES: &[u8] = &[2, 3, 4, 5, 6];
/// The address in shared memory, and the coordinates in the tensor.
const TILE: Piece = place_by_dims(COORDINATES);
/// The same with a barrier object between the two.
const TILE_AND_BARRIER: Piece = place_by_dims(&[3, 4, 5, 6, 7]);
/// The coordinates alone.
const COORDINATE: Piece = place_by_dims(&[1, 2, 3, 4, 5]);

const fn place_by_dims(counts: &'static [u8]) -> Piece {
    bracket("", counted(ureg_at(Field::UrBase, 32, Role::Base), Count::By(Field::Dims, counts)))
}
/// The same, for modes that read or write four rows of a matrix. The coordinates of the four rows then replace one
/// coordinate.
const TILE_OR_ROWS: Piece = place_by_mode(&[(Field::Dims, COORDINATES), (Field::Mode, &[0, 0, 3, 0])]);
const ROWS_AND_BARRIER: Piece =
    place_by_mode(&[(Field::Dims, &[3, 4, 5, 6, 7]), (Field::Mode, &[0, 0, 0, 0, 3])]);
const ROW_COORDINATES: Piece =
    place_by_mode(&[(Field::Dims, &[1, 2, 3, 4, 5]), (Field::Mode, &[0, 0, 0, 0, 3])]);

const fn place_by_mode(counts: &'static [(Field, &'static [u8])]) -> Piece {
    bracket("", counted(ureg_at(Field::UrBase, 32, Role::Base), Count::Sum(counts)))
}
const IMAGE_90: Piece = flag(Field::Mode, 82, &["", ".IM2COL"]);
const IMAGE_100: Piece =
    choice(Field::Mode, 82, 3, &["", ".IM2COL", ".W128", ".W", ".GATHER4", BAD, BAD, BAD]);
const IMAGE_120: Piece = choice(Field::Mode, 82, 3, &["", ".IM2COL", BAD, ".W", ".GATHER4", BAD, BAD, BAD]);
const PLAIN_100: Piece = choice(Field::Mode, 82, 3, &["", BAD, BAD, BAD, ".GATHER4", BAD, BAD, BAD]);
const ONLY_IMAGE_90: Piece = flag_from(Field::Mode, 82, &[BAD, ".IM2COL"], 1);
const ONLY_IMAGE_100: Piece =
    choice_from(Field::Mode, 82, 3, &[BAD, ".IM2COL", ".W128", ".W", BAD, BAD, BAD, BAD], 1);
const ONLY_IMAGE_120: Piece =
    choice_from(Field::Mode, 82, 3, &[BAD, ".IM2COL", BAD, ".W", BAD, BAD, BAD, BAD], 1);
const STORED_IMAGE: Piece = choice(Field::Mode, 82, 2, &["", ".IM2COL", ".SCATTER4", BAD]);
const PAIR: Piece = flag(Field::Flag2, 85, &["", ".2CTA"]);

/// A row, and the same row with a cache policy.
macro_rules! with_policy {
    ($name:literal, $opcode:literal, $first:literal, $last:literal, $label:literal, $labelled:literal, [$($piece:expr),*]) => {
        [
            Family::new($name, $opcode, "", Async, &[$($piece),*]).ones(one(91)).uniform().sm($first, $last).labelled($label),
            Family::new($name, $opcode, "", Async, &[$($piece,)* POLICY]).ones(WITH_POLICY).uniform().sm($first, $last).labelled($labelled),
        ]
    };
}

#[rustfmt::skip]
const PAIRS: [[Family; 2]; 21] = [
    with_policy!("UBLKCP", 0x3ba, 90, 90, "", "d", [DESTINATION, SOURCE, MULTICAST, PREFETCH, SEQUENCED, ORDER, TO, FROM_EITHER, SIZE]),
    with_policy!("UBLKCP", 0x3ba, 100, 119, "", "d", [DESTINATION, SOURCE, MULTICAST, MASKED, PREFETCH, SEQUENCED, COUNTED, ORDER, TO, FROM_EITHER, SIZE]),
    with_policy!("UBLKCP", 0x3ba, 120, 255, "", "d", [DESTINATION, SOURCE, MULTICAST, MASKED, PREFETCH, SEQUENCED, ORDER, TO, FROM_EITHER, SIZE]),
    with_policy!("UBLKPF", 0x3bc, 90, 255, "", "d", [Piece::Text(".L2"), FROM, SIZE]),
    with_policy!("UBLKRED", 0x3bb, 90, 90, "", "d", [DESTINATION, FROM_SOURCE, REDUCTION, REDUCTION_TYPE, ORDER, TO, FROM_SHARED, SIZE]),
    with_policy!("UBLKRED", 0x3bb, 100, 119, "", "d", [DESTINATION, FROM_SOURCE, REDUCTION, COUNTED, REDUCTION_TYPE, ORDER, TO, FROM_SHARED, SIZE]),
    with_policy!("UBLKRED", 0x3bb, 120, 255, "", "d", [DESTINATION, FROM_SOURCE, REDUCTION, REDUCTION_TYPE, ORDER, TO, FROM_SHARED, SIZE]),
    with_policy!("UTMALDG", 0x5b4, 90, 90, "", "d", [DIMS, TILE_AND_BARRIER, FROM]),
    with_policy!("UTMALDG", 0x5b4, 100, 119, "", "d", [DIMS, PLAIN_100, PAIR, ROWS_AND_BARRIER, FROM]),
    with_policy!("UTMALDG", 0x5b4, 120, 255, "", "d", [DIMS, PLAIN_100, ROWS_AND_BARRIER, FROM]),
    with_policy!("UTMALDG", 0x3b4, 90, 90, "m", "md", [DIMS, IMAGE_90, MULTICAST, TILE_AND_BARRIER, FROM, EXTRA]),
    with_policy!("UTMALDG", 0x3b4, 100, 119, "m", "md", [DIMS, IMAGE_100, MULTICAST, PAIR, ROWS_AND_BARRIER, FROM, EXTRA]),
    with_policy!("UTMALDG", 0x3b4, 120, 255, "m", "md", [DIMS, IMAGE_120, MULTICAST, ROWS_AND_BARRIER, FROM, EXTRA]),
    with_policy!("UTMASTG", 0x3b5, 90, 90, "", "d", [DIMS, IMAGE_90, TILE, FROM]),
    with_policy!("UTMASTG", 0x3b5, 100, 255, "", "d", [DIMS, STORED_IMAGE, TILE_OR_ROWS, FROM]),
    with_policy!("UTMAREDG", 0x3b6, 90, 255, "", "d", [DIMS, IMAGE_90, REDUCTION, TILE, FROM]),
    with_policy!("UTMAPF", 0x5b8, 90, 90, "", "d", [Piece::Text(".L2"), DIMS, COORDINATE, FROM]),
    with_policy!("UTMAPF", 0x5b8, 100, 255, "", "d", [Piece::Text(".L2"), DIMS, PLAIN_100, ROW_COORDINATES, FROM]),
    with_policy!("UTMAPF", 0x3b8, 90, 90, "m", "md", [Piece::Text(".L2"), DIMS, ONLY_IMAGE_90, COORDINATE, FROM, EXTRA]),
    with_policy!("UTMAPF", 0x3b8, 100, 119, "m", "md", [Piece::Text(".L2"), DIMS, ONLY_IMAGE_100, COORDINATE, FROM, EXTRA]),
    with_policy!("UTMAPF", 0x3b8, 120, 255, "m", "md", [Piece::Text(".L2"), DIMS, ONLY_IMAGE_120, COORDINATE, FROM, EXTRA]),
];

/// The source of a reduction, which is in shared memory.
const FROM_SOURCE: Piece = flag_from(Field::Mode2, 74, &[BAD, ".S"], 1);

/// All pairs of rows in one list.
pub(super) const ROWS: &[Family] = PAIRS.as_flattened();
