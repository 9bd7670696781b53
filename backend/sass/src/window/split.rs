//! Divides the lines of a listing into functions.
//!
//! A new function begins where addresses decrease, or where there are more lines between two addresses than
//! instructions fit between them. Lines without addresses before a function may be its beginning, as many as there is
//! room for. They may also be the end of the function before, if that was not seen.

use super::Line;
use crate::print::INST_BYTES;
use std::ops::Range;

/// If more than one in so many lines fits into no function, most functions show no address. Lines without addresses
/// then probably belong to such functions.
const LOOSE: usize = 4;
/// A function with a single address needs at least this many lines to show which registers it uses.
const LONG: usize = 100;

/// Divides lines into functions. Lines that fit into no function are alone.
pub(super) fn functions(lines: &[Line]) -> Vec<Range<usize>> {
    let known = addressed(lines);
    let fitting = split(lines, &known, |_, known, before| (0, own_before(lines, known, before)));
    let alone = fitting.iter().filter(|function| function.len() == 1).count();
    if alone > lines.len() / LOOSE {
        return split(lines, &known, |_, _, _| (0, 0));
    }
    split(lines, &known, |last, known, before| between(lines, last, known, before))
}

/// Divides lines into functions. `known` holds the lines from the first to the last address of each function. `between`
/// says how many of the lines between two functions belong to each of them.
fn split(
    lines: &[Line],
    known: &[Range<usize>],
    between: impl Fn(&Range<usize>, &Range<usize>, usize) -> (usize, usize),
) -> Vec<Range<usize>> {
    let mut functions: Vec<Range<usize>> = Vec::new();
    // The last function, as far as it is known.
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

/// Whether enough of the function is visible to say which registers it uses.
pub(super) fn tells(lines: &[Line]) -> bool {
    let mut addresses = lines.iter().map(|line| line.address).filter(|&address| address != 0);
    // With a single address, the extent of the function is uncertain, unless its lines fill most of it.
    let last = addresses.next_back().unwrap_or(0);
    let fill = lines.len() >= LONG && lines.len() as u64 > last / INST_BYTES / 2;
    fill || addresses.next().is_some()
}

/// The lines from the first to the last address of each function.
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

/// Whether the line is the last one of a function, a branch to itself.
fn ends(line: &Line) -> bool {
    line.is("BRA") && line.target() == Some(line.address)
}

/// Whether two lines with addresses, and the lines between them, may belong to the same function.
fn has_room(lines: &[Line], line: usize, next: usize) -> bool {
    let bytes = lines[next].address.checked_sub(lines[line].address);
    bytes.is_some_and(|bytes| (next - line) as u64 <= bytes / INST_BYTES)
}

/// How many of the lines between two functions are the end of the first, and how many the beginning of the second.
fn between(lines: &[Line], last: &Range<usize>, known: &Range<usize>, count: usize) -> (usize, usize) {
    let own = own_before(lines, known, count);
    if last.len() < 2 || ends(&lines[last.end - 1]) {
        return (0, own);
    }
    let own = if known.len() > 1 { own.min(likely_before(lines, known)) } else { own };
    // If there are more, they belong to functions without addresses.
    let end = Some(count - own).filter(|&end| end <= last.len() / 2);
    (end.unwrap_or(0), own)
}

/// How many of the lines before the known ones may be the beginning of the function.
fn own_before(lines: &[Line], known: &Range<usize>, before: usize) -> usize {
    let room = lines[known.start].address / INST_BYTES;
    // Otherwise, some lines belong to other functions.
    if before as u64 <= room { before } else { likely_before(lines, known).min(before) }
}

/// How many lines of the function's beginning are probably present, if the beginning has as many missing lines as the
/// rest, in proportion.
fn likely_before(lines: &[Line], known: &Range<usize>) -> usize {
    let (first, last) = (lines[known.start].address, lines[known.end - 1].address);
    let (room, places) = (first / INST_BYTES, (last - first) / INST_BYTES);
    let likely = u128::from(room) * (known.len() - 1) as u128 / u128::from(places.max(1));
    usize::try_from(likely).unwrap_or(usize::MAX)
}
