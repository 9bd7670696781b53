//! The range of lines in which a function needs the descriptor, as far as its branches show.
//!
//! NVIDIA's compiler uses one load for all accesses and places it as late as possible: in a block on every path to the
//! accesses, and before the loops that contain them. It chooses the register as if the load were right before the first
//! access, or at the end of the load's block if that block has no access, and moves the load up afterwards. The
//! descriptor is live until the last access, and as long as control may return to an access: until the end of a loop,
//! and in out-of-line blocks and subroutines that return.

use super::Line;
use crate::model::{RegFile, Sm};
use crate::print::INST_BYTES;
use crate::roles::RegUse;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

/// How often branches may extend the range. Compilers do not nest loops deeper, and the limit bounds the time for
/// arbitrary text.
const PASSES: usize = 16;
/// If lines may be missing before the first access of a block, an earlier access may be missing too. The load is then
/// assumed after one in so many of the lines from the start of the block to the access.
const EARLY: usize = 3;
/// If at least this many instructions lie between two accesses, the compiler may load the descriptor again instead of
/// keeping it.
const RELOADED_AFTER: usize = 300;

/// The first generation for which the compiler may load the descriptor again instead of keeping it.
const RELOADING_SM: u8 = 86;

/// The range of lines in which accesses need the descriptor.
pub(super) struct Extent {
    /// The line at which the load is expected.
    pub(super) load: usize,
    /// The first access.
    pub(super) first: usize,
    /// The line after the last one from which control may return to an access.
    pub(super) end: usize,
    /// No line except the load is missing.
    pub(super) is_complete: bool,
    /// The ranges after the first access in which the descriptor is kept.
    pub(super) kept: Vec<Range<usize>>,
    /// Between the accesses, the function calls functions in other places or through pointers. They preserve only some
    /// registers.
    pub(super) has_far_calls: bool,
}

impl Extent {
    /// The extent of the accesses in the given lines. The lines are sorted, and there is at least one.
    pub(super) fn new(sm: Sm, flow: &Flow, accesses: &[usize]) -> Extent {
        let (first, last) = (accesses[0], accesses[accesses.len() - 1]);
        let (load, end) = (flow.load(first, last), flow.end(last));
        let keeps = |pair: &&[usize]| sm.0 < RELOADING_SM || flow.keeps(pair[0], pair[1]);
        let mut kept: Vec<_> = accesses.windows(2).filter(keeps).map(|pair| pair[0]..pair[1]).collect();
        kept.push(last..end);
        kept.extend(flow.called(load..end));
        // Subroutines load the descriptor after such calls.
        let has_far_calls =
            first < flow.routines() && flow.far_calls.iter().any(|call| (load..last).contains(call));
        let is_complete = flow.is_complete(load..end - 1);
        Extent { load, first, end, is_complete, kept, has_far_calls }
    }
}

/// The control flow of a function, some lines of which may be missing.
pub(super) struct Flow {
    /// The address of each line; 0 if it is unknown.
    addresses: Vec<u64>,
    /// Lines with branches, and their target lines.
    branches: Vec<(usize, usize)>,
    /// Lines with calls, and the lines of the called subroutines.
    calls: Vec<(usize, Range<usize>)>,
    /// Lines that call functions in other places.
    far_calls: Vec<usize>,
    /// The first lines of blocks.
    starts: Vec<usize>,
}

impl Flow {
    pub(super) fn new(sm: Sm, lines: &[Line]) -> Flow {
        let earliest = earliest_addresses(lines);
        let line_at = |address: u64| earliest.partition_point(|&earliest| earliest < address);
        let addresses = lines.iter().map(|line| line.address).collect();
        let mut flow = Flow {
            addresses,
            branches: Vec::new(),
            calls: Vec::new(),
            far_calls: Vec::new(),
            starts: vec![0],
        };
        for (index, line) in lines.iter().enumerate() {
            let Ok(inst) = &line.inst else { continue };
            match inst.form().mnemonic {
                "BRA" => {
                    flow.starts.push(index + 1);
                    if let Some(target) = line.target() {
                        let to = line_at(target);
                        flow.branches.push((index, to));
                        flow.starts.push(to);
                    }
                }
                "EXIT" | "RET" => flow.starts.push(index + 1),
                "CALL" => {
                    if let Some(target) = line.target() {
                        let first = line_at(target);
                        // A branch over just the next instruction leaves a loop.
                        if target != line.address.saturating_add(2 * INST_BYTES) {
                            flow.calls.push((index, first..first));
                        }
                    } else if inst.reads(sm).any(|used| used.file == RegFile::R) {
                        flow.far_calls.push(index);
                    }
                }
                _ => {}
            }
        }
        flow.starts.sort_unstable();
        flow.find_ends(sm, lines);
        flow
    }

    /// Finds the end of each subroutine, which is its return. A subroutine that makes calls itself and returns to the
    /// address in R20 counts as a function in another place.
    fn find_ends(&mut self, sm: Sm, lines: &[Line]) {
        let returns: Vec<usize> = (0..lines.len()).filter(|&line| lines[line].is("RET")).collect();
        let to_r20 = |line: usize| {
            let r20 = |used: RegUse| used.file == RegFile::R && used.index == 20;
            lines[line].inst.as_ref().is_ok_and(|inst| inst.reads(sm).any(r20))
        };
        let callers: Vec<usize> = self.calls.iter().map(|&(call, _)| call).collect();
        for (call, routine) in &mut self.calls {
            let Some(&end) = returns.get(returns.partition_point(|&line| line < routine.start)) else {
                continue;
            };
            routine.end = end + 1;
            let calls = callers.get(callers.partition_point(|&call| call < routine.start));
            if to_r20(end) && calls.is_some_and(|call| routine.contains(call)) {
                self.far_calls.push(*call);
            }
        }
    }

    /// The first line of the subroutines, which have their own loads.
    pub(super) fn routines(&self) -> usize {
        self.calls.iter().map(|(_, routine)| routine.start).min().unwrap_or(usize::MAX)
    }

    /// The loops, sorted by their ends.
    pub(super) fn loops(&self) -> impl Iterator<Item = Range<usize>> {
        self.branches.iter().filter(|(from, to)| to < from).map(|&(from, to)| to..from)
    }

    /// The place of a single load for the accesses from line `first` to line `last`. Some of them may be missing.
    fn load(&self, first: usize, last: usize) -> usize {
        // The load is before this line, in the same block.
        let mut before = first;
        for _ in 0..PASSES {
            let was = before;
            for &(from, to) in &self.branches {
                if to < before && before <= from {
                    before = to.saturating_sub(1);
                } else if from < before && before < to && to <= last {
                    before = from;
                }
            }
            if before == was {
                break;
            }
        }
        let start = self.start(before);
        let may_miss_access = start == self.start(first) && !self.is_complete(start..before);
        if may_miss_access { start + (before - start) / EARLY } else { before }
    }

    /// Whether no line except the load is missing in the range.
    fn is_complete(&self, lines: Range<usize>) -> bool {
        let bytes = self.addresses[lines.end].checked_sub(self.addresses[lines.start]);
        bytes.is_some_and(|bytes| bytes != 0 && bytes / INST_BYTES <= lines.len() as u64 + 1)
    }

    /// The first line of a line's block.
    fn start(&self, line: usize) -> usize {
        let before = &self.starts[..self.starts.partition_point(|&start| start <= line)];
        before.last().copied().unwrap_or(0)
    }

    /// The line after the last one from which control may return to line `last`.
    fn end(&self, last: usize) -> usize {
        let mut end = last;
        for _ in 0..PASSES {
            let was = end;
            for &(from, to) in &self.branches {
                if to <= end && end < from {
                    end = from;
                }
            }
            if end == was {
                break;
            }
        }
        end + 1
    }

    /// Whether the descriptor is kept between two accesses instead of being loaded again. This is so if there are few
    /// instructions between them, or if a loop begins between them.
    fn keeps(&self, access: usize, next: usize) -> bool {
        let enters = |&(from, to): &(usize, usize)| access < to && to <= next && next <= from;
        next - access < RELOADED_AFTER || self.branches.iter().any(enters)
    }

    /// For each of the given lines, which are sorted: the first line after it that is the target of an earlier branch
    /// or the start of a subroutine.
    pub(super) fn passed_by(&self, lines: impl Iterator<Item = usize>) -> Vec<Option<usize>> {
        // Branches are sorted by line.
        let mut branches = self.branches.iter().peekable();
        let mut targets: BinaryHeap<_> =
            self.calls.iter().map(|(_, routine)| Reverse(routine.start)).collect();
        let passed_by = |line: usize| {
            while let Some(&(_, to)) = branches.next_if(|&&(from, _)| from < line) {
                targets.push(Reverse(to));
            }
            while targets.peek().is_some_and(|&Reverse(to)| to <= line) {
                targets.pop();
            }
            targets.peek().map(|&Reverse(to)| to)
        };
        lines.map(passed_by).collect()
    }

    /// The subroutines outside of these lines that these lines call.
    fn called(&self, lines: Range<usize>) -> impl Iterator<Item = Range<usize>> {
        let outside = move |(call, routine): &&(usize, Range<usize>)| {
            lines.contains(call) && !lines.contains(&routine.start)
        };
        self.calls.iter().filter(outside).map(|(_, routine)| routine.clone())
    }
}

/// The smallest possible address of each line.
fn earliest_addresses(lines: &[Line]) -> Vec<u64> {
    let mut next = 0;
    let earliest = |line: &Line| {
        let address = if line.address == 0 { next } else { line.address };
        next = address.saturating_add(INST_BYTES);
        address
    };
    lines.iter().map(earliest).collect()
}
