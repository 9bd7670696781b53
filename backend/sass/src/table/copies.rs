//! Asynchronous copies from global to shared memory, and instructions that wait for them.
//!
//! The shape "u" has a uniform register in the source address. "s" has one in the destination address and a descriptor
//! for the source; "su" has the former without a descriptor.

use super::memory::{ADDRESS_DESC, ADDRESS32, EVICT, EXTENDED, WITH_BASE, address_beside, based, descriptor};
use super::*;
use crate::class::Class::*;

const COPY_ORDER: &[&str] = &[
    "",
    ".CONSTANT.PRIVATE",
    ".CONSTANT.CTA",
    ".CONSTANT.CTA.PRIVATE",
    ".CONSTANT",
    ".MMIO.CTA",
    ".GPU.PRIVATE",
    ".MMIO.CTA.PRIVATE",
    ".MMIO.SM",
    ".CONSTANT.SM",
    ".MMIO.VC",
    ".CONSTANT.SM.PRIVATE",
    ".MMIO.GPU",
    ".CONSTANT.VC",
    ".CONSTANT.VC.PRIVATE",
    ".CONSTANT.GPU",
];
const ORDER: Piece = choice(Field::Order, 77, 4, COPY_ORDER);
/// The copy bypasses the first-level cache.
const BYPASS: Piece = flag_from(Field::Bypass, 81, &[".BYPASS", ""], 1);
const PREFETCHES: &[&str] = &["", ".LTC64B", ".LTC128B", ".LTC256B"];
const PREFETCH: Piece = choice(Field::Prefetch, 71, 2, PREFETCHES);
const PREFETCH_100: Piece = choice(Field::Prefetch, 72, 2, PREFETCHES);
const SIZE: Piece = choice_from(Field::Size, 73, 3, &[BAD, BAD, BAD, BAD, "", ".64", ".128", BAD], 4);
const SIZE_100: Piece = choice(Field::Size, 74, 2, &["", ".64", ".128", BAD]);
const ZERO_FILL: Piece = flag(Field::ZeroFill, 82, &["", ".ZFILL"]);
/// The condition of the copy. If it is false, nothing is copied.
const CONDITION: Piece = optional(PP_OPERAND);

const TO_OFFSET: Option<FieldSpec> =
    Some(FieldSpec::new(Field::Imm2, 44, 20).value(Value::Signed { scale: 1 }));
const FROM_OFFSET: Option<FieldSpec> =
    Some(FieldSpec::new(Field::Offset, 32, 12).value(Value::Signed { scale: 1 }));
const TO_REGISTER: RegOperand = reg_at(Field::Rc, 16, Role::Address);
/// A uniform base of the destination. The registers after it hold the descriptor of the source.
const TO_BASE: FieldSpec = FieldSpec::new(Field::UrBase, 64, 6).neutral(URZ);

const fn address(
    desc: Option<Descriptor>,
    reg: RegOperand,
    ureg: Option<(FieldSpec, u8)>,
    urz: Urz,
    offset: Option<FieldSpec>,
) -> Piece {
    Piece::Op(Operand::Mem(MemOperand { desc, reg: Some(reg), ureg, urz, offset }))
}

const TO: Piece = address(None, TO_REGISTER, None, Urz::Shown, TO_OFFSET);
const TO_BASED: Piece = address(None, TO_REGISTER, Some((TO_BASE, 1)), Urz::Shown, TO_OFFSET);
const TO_BASED_BEFORE_DESCRIPTOR: Piece =
    address(None, TO_REGISTER, Some((TO_BASE, 3)), Urz::Shown, TO_OFFSET);
const FROM: Piece = address(Some(descriptor(64)), ADDRESS_DESC, None, Urz::Shown, FROM_OFFSET);
const FROM_AFTER_BASE: Piece = address(
    Some(Descriptor { spec: TO_BASE, next: true, ..descriptor(64) }),
    ADDRESS_DESC,
    None,
    Urz::Shown,
    FROM_OFFSET,
);
const FROM_ALONE: Piece = address(None, ADDRESS_DESC, None, Urz::Shown, FROM_OFFSET);

const fn from_based(width_bit: u8) -> Piece {
    address(None, address_beside(width_bit), Some((TO_BASE, 2)), Urz::Hidden, FROM_OFFSET)
}

/// The rows of a generation. Parameters: its prefetch sizes, its access sizes, and the bit with the width of the source
/// address.
macro_rules! copies {
    ($prefetch:expr, $size:expr, $width:literal, $first:literal, $last:literal) => {
        [
            Family::new(
                "LDGSTS",
                0xfae,
                "",
                Async,
                &[EXTENDED, BYPASS, EVICT, $prefetch, $size, ZERO_FILL, ORDER, TO, FROM, CONDITION],
            )
            .ones(one($width) | one(76) | one(91))
            .sm($first, $last),
            Family::new(
                "LDGSTS",
                0xfae,
                "",
                Async,
                &[
                    EXTENDED,
                    BYPASS,
                    EVICT,
                    $prefetch,
                    $size,
                    ZERO_FILL,
                    ORDER,
                    TO,
                    from_based($width),
                    CONDITION,
                ],
            )
            .ones(one(91))
            .sm($first, $last)
            .labelled("u"),
            Family::new(
                "LDGSTS",
                0xdae,
                "",
                Async,
                &[
                    EXTENDED,
                    BYPASS,
                    EVICT,
                    $prefetch,
                    $size,
                    ZERO_FILL,
                    ORDER,
                    TO_BASED_BEFORE_DESCRIPTOR,
                    FROM_AFTER_BASE,
                    CONDITION,
                ],
            )
            .ones(one($width) | one(76) | one(91))
            .sm($first, $last)
            .labelled("s"),
            Family::new(
                "LDGSTS",
                0xdae,
                "",
                Async,
                &[
                    EXTENDED, BYPASS, EVICT, $prefetch, $size, ZERO_FILL, ORDER, TO_BASED, FROM_ALONE,
                    CONDITION,
                ],
            )
            .ones(one($width) | one(91))
            .sm($first, $last)
            .labelled("su"),
        ]
    };
}

#[rustfmt::skip]
pub(super) const LDGSTS: [Family; 4] = copies!(PREFETCH, SIZE, 70, 80, 90);
#[rustfmt::skip]
pub(super) const LDGSTS_100: [Family; 4] = copies!(PREFETCH_100, SIZE_100, 83, 100, 255);

const COUNTS: &[&str] = &["", ".ARVCNT", ".TRANSCNT", BAD];

#[rustfmt::skip]
pub(super) const ROWS: &[Family] = &[
    Family::new("LDGDEPBAR", 0x9af, "", Async, &[]).sm(80, 255),
    Family::new("ARRIVES.LDGSTSBAR", 0x9b0, "", Async, &[Piece::Text(".LDGSTSBAR"), Piece::Text(".64"), since(choice(Field::Flag, 70, 2, COUNTS), 1, 90), based(ADDRESS32, 64, 1)])
        .ones(one(73) | one(75) | WITH_BASE).sm(80, 90).reserved(one(72) | one(74)),
    Family::new("ARRIVES.LDGSTSBAR", 0x9b0, "", Async, &[Piece::Text(".LDGSTSBAR"), Piece::Text(".64"), choice(Field::Flag, 76, 2, COUNTS), based(ADDRESS32, 64, 1)])
        .ones(one(73) | one(75) | WITH_BASE).sm(100, 255).reserved(one(72) | one(74)),
];
