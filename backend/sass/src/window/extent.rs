//! From where to where a function needs the descriptor, as far as its branches tell.
//!
//! NVIDIA's compiler loads the descriptor as late as one load serves all accesses: in the block that every way to them
//! passes, and before the loops that they are in. It chooses the register as if the load were right before the
//! first access, or at the end of the block where that has none, and moves the load up afterwards. The value lives until
//! the last access, and as long as code may come back to one: to the end of a loop, and in blocks out of line and
//! routines that return.

use super::Line;
use crate::model::{RegFile, Sm};
use crate::print::INST_BYTES;
use crate::roles::RegUse;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

/// How often branches may move the ends of the extent. No compiler nests deeper, and text may be anything.
const PASSES: usize = 16;
/// Of the lines before the first access in its block, one of so many has no missing access before it.
const EARLY: usize = 3;
/// From this many instructions on that do without it, the descriptor may be loaded again rather than kept.
const RELOADED_AFTER: usize = 300;

/// From this generation on the descriptor may be loaded again after a while, rather than kept.
const RELOADING_SM: u8 = 86;

/// From where to where accesses need the descriptor.
pub(super) struct Extent {
    /// Where it is likely to be loaded.
    pub(super) load: usize,
    /// The first access.
    pub(super) first: usize,
    /// After the last line that may come back to an access.
    pub(super) end: usize,
    /// No line but the load is missing.
    pub(super) is_complete: bool,
    /// Where it is kept from the first access on.
    pub(super) kept: Vec<Range<usize>>,
    /// Functions are called meanwhile, through pointers or from elsewhere, that keep some registers only.
    pub(super) has_far_calls: bool,
}

impl Extent {
    /// For accesses in these lines, which are in order; there is at least one.
    pub(super) fn new(sm: Sm, flow: &Flow, accesses: &[usize]) -> Extent {
        let (first, last) = (accesses[0], accesses[accesses.len() - 1]);
        let (load, end) = (flow.load(first, last), flow.end(last));
        let keeps = |pair: &&[usize]| sm.0 < RELOADING_SM || flow.keeps(pair[0], pair[1]);
        let mut kept: Vec<_> = accesses.windows(2).filter(keeps).map(|pair| pair[0]..pair[1]).collect();
        kept.push(last..end);
        kept.extend(flow.called(load..end));
        // Routines load it after such calls.
        let has_far_calls =
            first < flow.routines() && flow.far_calls.iter().any(|call| (load..last).contains(call));
        let is_complete = flow.is_complete(load..end - 1);
        Extent { load, first, end, is_complete, kept, has_far_calls }
    }
}

/// The control flow of a function of which lines may be missing.
pub(super) struct Flow {
    /// Of each line, 0 where it is not known.
    addresses: Vec<u64>,
    /// Lines that branch, and those that they go to.
    branches: Vec<(usize, usize)>,
    /// Calls, and the routines.
    calls: Vec<(usize, Range<usize>)>,
    /// Calls of functions that may be anywhere.
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
                        // One over the next instruction leaves a loop.
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

    /// Routines end where they return. Those that call others and return to the address in R20 are functions like those
    /// elsewhere.
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

    /// Where routines begin, which have loads of their own.
    pub(super) fn routines(&self) -> usize {
        self.calls.iter().map(|(_, routine)| routine.start).min().unwrap_or(usize::MAX)
    }

    /// Loops, in the order of their ends.
    pub(super) fn loops(&self) -> impl Iterator<Item = Range<usize>> {
        self.branches.iter().filter(|(from, to)| to < from).map(|&(from, to)| to..from)
    }

    /// Where one load would be that serves accesses from the first line to the last, some of which may be missing.
    fn load(&self, first: usize, last: usize) -> usize {
        // The load is before this line, in its block.
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

    /// Whether no line but the load is missing between the ends of the range.
    fn is_complete(&self, lines: Range<usize>) -> bool {
        let bytes = self.addresses[lines.end].checked_sub(self.addresses[lines.start]);
        bytes.is_some_and(|bytes| bytes != 0 && bytes / INST_BYTES <= lines.len() as u64 + 1)
    }

    /// The first line of the block of a line.
    fn start(&self, line: usize) -> usize {
        let before = &self.starts[..self.starts.partition_point(|&start| start <= line)];
        before.last().copied().unwrap_or(0)
    }

    /// After the last line that may come back to the line.
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

    /// Whether the descriptor is rather kept between two accesses than loaded again before the next: where few
    /// instructions are between, or a loop begins.
    fn keeps(&self, access: usize, next: usize) -> bool {
        let enters = |&(from, to): &(usize, usize)| access < to && to <= next && next <= from;
        next - access < RELOADED_AFTER || self.branches.iter().any(enters)
    }

    /// For each of some lines in order, the first after it that a branch of before goes to, or where a routine begins.
    pub(super) fn passed_by(&self, lines: impl Iterator<Item = usize>) -> Vec<Option<usize>> {
        // Branches are in the order of their lines.
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

    /// Routines outside of lines that these call.
    fn called(&self, lines: Range<usize>) -> impl Iterator<Item = Range<usize>> {
        let outside = move |(call, routine): &&(usize, Range<usize>)| {
            lines.contains(call) && !lines.contains(&routine.start)
        };
        self.calls.iter().filter(outside).map(|(_, routine)| routine.clone())
    }
}

/// The lowest address that each line can have.
fn earliest_addresses(lines: &[Line]) -> Vec<u64> {
    let mut next = 0;
    let earliest = |line: &Line| {
        let address = if line.address == 0 { next } else { line.address };
        next = address.saturating_add(INST_BYTES);
        address
    };
    lines.iter().map(earliest).collect()
}
