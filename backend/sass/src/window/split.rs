//! Which lines are of one function.
//!
//! Addresses tell that another function begins: where they fall, or where more lines lie between two than have room. Of
//! lines without an address in front of a function, as many as have room may be its beginning.

use super::Line;
use crate::print::INST_BYTES;
use std::ops::Range;

/// Where more than one line of so many fits into no function, most functions show no address, and lines in front of one
/// that does are as likely theirs.
const LOOSE: usize = 4;

/// Splits lines by function. Those that fit nowhere are alone.
pub(super) fn functions(lines: &[Line]) -> Vec<Range<usize>> {
    let known = addressed(lines);
    let functions = split(lines, &known, |known, before| own_before(lines, known, before));
    let alone = functions.iter().filter(|function| function.len() == 1).count();
    if alone > lines.len() / LOOSE { split(lines, &known, |_, _| 0) } else { functions }
}

/// Splits lines, given those of functions from one address to another and how many before them are the function's.
fn split(
    lines: &[Line],
    known: &[Range<usize>],
    own_before: impl Fn(&Range<usize>, usize) -> usize,
) -> Vec<Range<usize>> {
    let mut functions = Vec::new();
    let mut split = 0;
    for known in known {
        let start = known.start - own_before(known, known.start - split);
        functions.extend((split..start).map(|alone| alone..alone + 1));
        functions.push(start..known.end);
        split = known.end;
    }
    functions.extend((split..lines.len()).map(|alone| alone..alone + 1));
    functions
}

/// Whether enough of the function is seen to tell which registers it uses.
pub(super) fn tells(lines: &[Line]) -> bool {
    // A single address says little about which lines are the function's.
    lines.iter().filter(|line| line.address != 0).nth(1).is_some()
}

/// From the first to the last line of each function that has an address.
fn addressed(lines: &[Line]) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    let mut ended = true;
    for (index, line) in lines.iter().enumerate().filter(|(_, line)| line.address != 0) {
        match ranges.last_mut().filter(|_| !ended) {
            Some(range) if has_room(lines, range.end - 1, index) => range.end = index + 1,
            _ => ranges.push(index..index + 1),
        }
        // A function ends with a branch to itself.
        ended = line.is("BRA") && line.target() == Some(line.address);
    }
    ranges
}

/// Whether the lines between two with addresses may be of the same function.
fn has_room(lines: &[Line], line: usize, next: usize) -> bool {
    let bytes = lines[next].address.checked_sub(lines[line].address);
    bytes.is_some_and(|bytes| (next - line) as u64 <= bytes / INST_BYTES)
}

/// How many of the lines before the known ones are the beginning of the function.
fn own_before(lines: &[Line], known: &Range<usize>, before: usize) -> usize {
    let (first, last) = (lines[known.start].address, lines[known.end - 1].address);
    let room = first / INST_BYTES;
    if before as u64 <= room {
        return before;
    }
    // Some are of other functions. As large a part of the beginning may be missing as of the rest.
    let places = (last - first) / INST_BYTES;
    let own = u128::from(room) * (known.len() - 1) as u128 / u128::from(places.max(1));
    own.min(before as u128) as usize
}
