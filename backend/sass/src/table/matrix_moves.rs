//! Copies of matrices from shared memory to registers and back, and transposition of matrices in registers.

use super::memory::{ADDRESS32, WITH_BASE, based, data, memory};
use super::*;
use crate::class::Class::*;

/// The formats of loaded elements. From sm_100 on, there are formats that are widened to bytes.
const LOAD_FORMAT: Piece = since(
    choice(Field::Type, 75, 3, &[".16", BAD, BAD, BAD, BAD, ".U4x16P64TO8", ".U6x16P32TO8", ".8"]),
    5,
    100,
);
const LOAD_LAYOUT: Piece =
    since(choice(Field::Mode, 78, 3, &[".M88", ".MT88", ".M816", ".M832", ".MT1616", BAD, BAD, BAD]), 4, 100);
const STORE_FORMAT: Piece = since(flag(Field::Type, 75, &[".16", ".8"]), 1, 100);
const STORE_LAYOUT: Piece = since(choice(Field::Mode, 78, 2, &[".M88", ".MT88", ".MT168", BAD]), 2, 100);
const MOVE_FORMAT: Piece =
    since(choice(Field::Type, 75, 3, &[".16", ".U4TO8", BAD, BAD, BAD, BAD, BAD, BAD]), 1, 100);
const MOVE_LAYOUT: Piece = choice(Field::Mode, 78, 2, &[".MT88", ".M832", ".M864", BAD]);
const MATRICES: Piece = choice(Field::Size, 72, 2, &["", ".2", ".4", BAD]);
/// The number of registers of a load. A 16 by 16 matrix takes two registers.
const LOAD_COUNT: Count = Count::By2(Field::Size, &[1, 2, 4], Field::Mode, &[1, 1, 1, 1, 2]);
/// The number of registers of a move. A widening move takes twice as many.
const MOVE_COUNT: Count = Count::By(Field::Type, &[1, 2]);
const STORE_COUNT: Count = Count::By(Field::Size, &[1, 2, 4]);
const LOADED: Piece = op(counted(RD_OPERAND, LOAD_COUNT));

#[rustfmt::skip]
pub(super) const ROWS: &[Family] = &[
    Family::new("LDSM", 0x83b, "", Load, &[LOAD_FORMAT, LOAD_LAYOUT, MATRICES, LOADED, memory(ADDRESS32)]),
    Family::new("LDSM", 0x83b, "", Load, &[LOAD_FORMAT, LOAD_LAYOUT, MATRICES, LOADED, based(ADDRESS32, 32, 1)]).ones(WITH_BASE).labelled("u"),
    Family::new("STSM", 0x844, "", Store, &[STORE_FORMAT, STORE_LAYOUT, MATRICES, memory(ADDRESS32), data(STORE_COUNT)]).sm(90, 255),
    Family::new("STSM", 0x844, "", Store, &[STORE_FORMAT, STORE_LAYOUT, MATRICES, based(ADDRESS32, 64, 1), data(STORE_COUNT)]).ones(WITH_BASE).sm(90, 255).labelled("u"),
    Family::new("MOVM", 0x23a, "", Load, &[MOVE_FORMAT, MOVE_LAYOUT, op(counted(RD_OPERAND, MOVE_COUNT)), RA]),
];
