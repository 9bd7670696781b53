//! Which lines are of one function.
//!
//! Addresses tell that another function begins: where they fall, or where more lines lie between two than have room. Of
//! lines without an address before a function, as many as have room may be its beginning; but where the end of the
//! function before was not seen, they may be that.

use super::Line;
use crate::print::INST_BYTES;
use std::ops::Range;

/// Where more than one line of so many fits into no function, most functions show no address, and lines before one
/// that does are as likely theirs.
const LOOSE: usize = 4;
/// From so many lines on, a function that has a single address may tell which registers it uses.
const LONG: usize = 100;

/// Splits lines by function. Those that fit nowhere are alone.
pub(super) fn functions(lines: &[Line]) -> Vec<Range<usize>> {
    let known = addressed(lines);
    let fitting = split(lines, &known, |_, known, before| (0, own_before(lines, known, before)));
    let alone = fitting.iter().filter(|function| function.len() == 1).count();
    if alone > lines.len() / LOOSE {
        return split(lines, &known, |_, _, _| (0, 0));
    }
    split(lines, &known, |last, known, before| between(lines, last, known, before))
}

/// Splits lines, given those of functions from one address to another, and how many of those between such a function
/// and the next belong to either.
fn split(
    lines: &[Line],
    known: &[Range<usize>],
    between: impl Fn(&Range<usize>, &Range<usize>, usize) -> (usize, usize),
) -> Vec<Range<usize>> {
    let mut functions: Vec<Range<usize>> = Vec::new();
    // The last function as far as it is known.
    let mut last = 0..0;
    for known in known {
        let (after, before) = between(&last, known, known.start - last.end);
        last.end += after;
        functions.extend((!last.is_empty()).then(|| last.clone()));
        let start = known.start - before;
        functions.extend((last.end..start).map(|alone| alone..alone + 1));
        last = start..known.end;
    }
    functions.extend((!last.is_empty()).then(|| last.clone()));
    functions.extend((last.end..lines.len()).map(|alone| alone..alone + 1));
    functions
}

/// Whether enough of the function is seen to tell which registers it uses.
pub(super) fn tells(lines: &[Line]) -> bool {
    let mut addresses = lines.iter().map(|line| line.address).filter(|&address| address != 0);
    // A single address says little about which lines are the function's, unless they fill most of it.
    let last = addresses.next_back().unwrap_or(0);
    let fill = lines.len() >= LONG && lines.len() as u64 > last / INST_BYTES / 2;
    fill || addresses.next().is_some()
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
        ended = ends(line);
    }
    ranges
}

/// Whether the line ends a function: it branches to itself.
fn ends(line: &Line) -> bool {
    line.is("BRA") && line.target() == Some(line.address)
}

/// Whether the lines between two with addresses may be of the same function.
fn has_room(lines: &[Line], line: usize, next: usize) -> bool {
    let bytes = lines[next].address.checked_sub(lines[line].address);
    bytes.is_some_and(|bytes| (next - line) as u64 <= bytes / INST_BYTES)
}

/// How many of the lines between two functions are the end of the one and the beginning of the other.
fn between(lines: &[Line], last: &Range<usize>, known: &Range<usize>, count: usize) -> (usize, usize) {
    let own = own_before(lines, known, count);
    if last.len() < 2 || ends(&lines[last.end - 1]) {
        return (0, own);
    }
    let own = if known.len() > 1 { own.min(likely_before(lines, known)) } else { own };
    // More than that are of functions without an address.
    let end = Some(count - own).filter(|&end| end <= last.len() / 2);
    (end.unwrap_or(0), own)
}

/// How many of the lines before the known ones may be the beginning of the function.
fn own_before(lines: &[Line], known: &Range<usize>, before: usize) -> usize {
    let room = lines[known.start].address / INST_BYTES;
    // Else some are of other functions.
    if before as u64 <= room { before } else { likely_before(lines, known).min(before) }
}

/// How many lines of the beginning are there, if as large a part of it is missing as of the rest.
fn likely_before(lines: &[Line], known: &Range<usize>) -> usize {
    let (first, last) = (lines[known.start].address, lines[known.end - 1].address);
    let (room, places) = (first / INST_BYTES, (last - first) / INST_BYTES);
    let likely = u128::from(room) * (known.len() - 1) as u128 / u128::from(places.max(1));
    usize::try_from(likely).unwrap_or(usize::MAX)
}
