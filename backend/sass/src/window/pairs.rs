//! Finds the pair of uniform registers that the other instructions leave free for the descriptor.
//!
//! NVIDIA's compiler gives each value the lowest free registers from UR4 on. Lines may be missing, so the uses of the
//! other values are only partly known. Values that the missing lines must have held are taken into account too.

use super::extent::Extent;
use super::{Line, Load, loaded};
use crate::model::{RegFile, Role, Sm};
use crate::parse::USUAL_DESCRIPTOR;
use crate::print::INST_BYTES;
use crate::roles::RegUse;
use std::collections::BTreeSet;
use std::iter;
use std::ops::Range;
use std::slice;

/// The number of pairs of uniform registers without URZ.
const PAIRS: usize = 31;
/// The first pair that is allocated.
const FIRST: usize = USUAL_DESCRIPTOR as usize / 2;
/// The first callee-saved pair, UR36.
const FIRST_KEPT: usize = 18;
/// How many lines after its expected place the load is searched for.
const MOST_LATER: usize = 100;
/// The length, in instructions, of the subroutine for a vote of all threads of a warp, counted from the `WARPSYNC` to
/// the end.
const VOTE: Range<u64> = 8..10;

/// How a line uses a pair of uniform registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Event {
    Read,
    Write,
    /// A write by `R2UR`. In unoptimized code, this copies the descriptor.
    WriteFromRegister,
}

/// The uses of each pair in a function, without loads of the descriptor and hidden uses.
pub(super) struct Pairs {
    /// For each pair, the lines that use it.
    events: Vec<Vec<(usize, Event)>>,
}

impl Pairs {
    pub(super) fn new(sm: Sm, lines: &[Line]) -> Pairs {
        let mut events = vec![Vec::new(); PAIRS];
        for (index, line) in lines.iter().enumerate() {
            let Ok(inst) = &line.inst else { continue };
            if loaded(inst).is_some() {
                continue;
            }
            if line.is("WARPSYNC") && begins_vote(&lines[index..]) {
                events[FIRST].push((index, Event::Write));
            }
            let hides = line.hides_descriptor(sm);
            let mut note = |used: RegUse, event| {
                if used.file == RegFile::UR && !(hides && used.role == Role::Descriptor) {
                    let (first, count) = (usize::from(used.index), usize::from(used.count));
                    let last = (first + count - 1) / 2;
                    events[first / 2..PAIRS.min(last + 1)]
                        .iter_mut()
                        .for_each(|events| events.push((index, event)));
                }
            };
            inst.reads(sm).for_each(|used| note(used, Event::Read));
            let written = if line.is("R2UR") { Event::WriteFromRegister } else { Event::Write };
            inst.writes(sm).for_each(|used| note(used, written));
        }
        Pairs { events }
    }

    /// Records that these loops count in a uniform register: the lowest one, unless the loop visibly uses a uniform
    /// register.
    pub(super) fn count(&mut self, loops: &[Range<usize>]) {
        for turn in loops {
            if (0..PAIRS).all(|pair| !self.is_used(pair, slice::from_ref(turn))) {
                let events = &mut self.events[FIRST];
                events.extend([(turn.start, Event::Write), (turn.end, Event::Read)]);
                events.sort_unstable_by_key(|&(line, _)| line);
            }
        }
    }

    /// The copies of the descriptor from general registers. Empty if the function uses uniform registers in any other
    /// visible way, as only optimized code does.
    pub(super) fn copies(&self) -> Vec<Load> {
        if self.events.iter().flatten().any(|&(_, event)| event != Event::WriteFromRegister) {
            return Vec::new();
        }
        let mut copies = Vec::new();
        for (register, events) in (0..).step_by(2).zip(&self.events) {
            copies.extend(events.iter().map(|&(line, _)| Load { line, register }));
        }
        copies.sort_unstable_by_key(|copy| copy.line);
        copies
    }

    /// The register of the lowest pair that is free while accesses need the descriptor. Prefers pairs that are seen to
    /// be loaded elsewhere, because a missing load is a repetition of a visible one.
    pub(super) fn free(&self, extent: &Extent, seen: &BTreeSet<u64>) -> u64 {
        let kept: Vec<bool> = (0..PAIRS).map(|pair| self.is_used(pair, &extent.kept)).collect();
        let taken = |load: usize| {
            let taken = |pair: usize| {
                kept[pair]
                    || !self.in_lines(pair, &(load..extent.first)).is_empty()
                    || self.lives_through(pair, load..extent.end)
            };
            (0..PAIRS).map(taken).collect::<Vec<_>>()
        };
        let register = |pair: usize| 2 * pair as u64;
        let is_seen = |pair: &usize| seen.contains(&register(*pair));
        let taken_likely = taken(extent.load);
        let likely = self.lowest_free(extent, &taken_likely);
        // The load may come later, or missing lines may use the pair.
        let later = (extent.load + 1..=extent.first).take(MOST_LATER);
        let later = later.map(|load| self.lowest_free(extent, &taken(load)));
        let higher = (likely..PAIRS).filter(|&pair| !taken_likely[pair]);
        register(iter::once(likely).chain(later).chain(higher).find(is_seen).unwrap_or(likely))
    }

    fn lowest_free(&self, extent: &Extent, taken: &[bool]) -> usize {
        let lowest = if extent.has_far_calls { FIRST_KEPT } else { FIRST };
        if extent.is_complete {
            return (lowest..PAIRS).find(|&pair| !taken[pair]).unwrap_or(PAIRS - 1);
        }
        let Some(highest) = (lowest..PAIRS).rev().find(|&pair| taken[pair]) else { return lowest };
        // When the highest pair was allocated, missing lines used the pairs below it. One of these pairs may be the
        // descriptor's: it must be the next lower pair, or a higher pair must have been allocated after the first
        // access.
        let accesses = extent.first..extent.end;
        let given = |pair| self.in_lines(pair, &accesses).iter().any(|&(_, event)| event != Event::Read);
        let free = (lowest..highest).rev().find(|&pair| !taken[pair]);
        let may_be = |free: &usize| free + 1 == highest || (free + 1..=highest).any(given);
        free.filter(may_be).unwrap_or(highest + 1).min(PAIRS - 1)
    }

    fn is_used(&self, pair: usize, lines: &[Range<usize>]) -> bool {
        lines.iter().any(|lines| !self.in_lines(pair, lines).is_empty())
    }

    fn in_lines(&self, pair: usize, lines: &Range<usize>) -> &[(usize, Event)] {
        let events = &self.events[pair];
        let until = |end| events.partition_point(|&(line, _)| line < end);
        &events[until(lines.start)..until(lines.end)]
    }

    /// Whether a value from before the lines is read after them.
    fn lives_through(&self, pair: usize, lines: Range<usize>) -> bool {
        let events = &self.events[pair];
        let next = events.get(events.partition_point(|&(line, _)| line < lines.start));
        next.is_some_and(|&(line, event)| line >= lines.end && event == Event::Read)
    }
}

/// Whether the first line begins the subroutine in which the threads of a warp vote. The subroutine uses UR4, but its
/// lines are identical in most copies and so may be missing from each. Its length distinguishes it from other
/// subroutines.
fn begins_vote(lines: &[Line]) -> bool {
    let end = lines.iter().take(VOTE.end as usize).find(|line| line.is("RET") && line.address != 0);
    let bytes = end.and_then(|end| end.address.checked_sub(lines[0].address));
    lines[0].address != 0 && bytes.is_some_and(|bytes| VOTE.contains(&(bytes / INST_BYTES)))
}
