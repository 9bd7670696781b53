//! The number of general registers that a thread has at each point, if `setmaxnreg` changes it.
//!
//! The number follows from the instructions before a point. Where paths with different numbers join, the smallest
//! number counts. This does not restrict warps with more registers, and registers that only some warps have hold no
//! values.

use crate::ori::cfg::{Cfg, for_each_successor};
use crate::ori::ir::{BlockId, Function};
use crate::ori::op::Op;
use crate::regalloc::live::{Interval, Liveness, Ranges};
use crate::target::{HIDDEN_REGISTERS, MAX_REGISTERS};
use std::collections::{BTreeMap, BTreeSet};

/// Numbers as ptxas counts registers.
#[derive(Clone, Debug)]
pub(crate) struct Counts {
    /// For each block, the number at its start.
    starts: Vec<u32>,
}

impl Counts {
    /// `None` for a function in which the number never changes.
    pub(crate) fn of(func: &Function, cfg: &Cfg) -> Option<Counts> {
        let first = func.facts.starts_with?;
        Some(Counts { starts: flow(func, cfg, first, MAX_REGISTERS, u32::min) })
    }

    pub(crate) fn at_start(&self, b: BlockId) -> u32 {
        self.starts[b.index()]
    }

    /// The number that most instructions of a block are executed with; the smallest of them if several are as common.
    pub(crate) fn usual_in(&self, func: &Function, b: BlockId) -> u32 {
        let mut times: BTreeMap<u32, usize> = BTreeMap::new();
        std::iter::once(self.at_start(b))
            .chain(self.in_block(func, b))
            .for_each(|count| *times.entry(count).or_default() += 1);
        // `max_by_key` returns the last of several maxima.
        times.into_iter().rev().max_by_key(|(_, times)| *times).map_or(MAX_REGISTERS, |(count, _)| count)
    }

    /// The largest number in the function.
    pub(crate) fn most(&self, func: &Function) -> u32 {
        let all = func.layout.iter().map(|&b| self.in_block(func, b).fold(self.at_start(b), u32::max));
        all.max().unwrap_or(MAX_REGISTERS)
    }

    /// The general registers that a thread has at some points but not at others, each with the ranges in which the
    /// thread does not have it.
    pub(crate) fn lacking(&self, func: &Function, live: &Liveness) -> Vec<(u8, Ranges)> {
        // Ascending, each with the end of the registers at that point.
        let mut pieces: Vec<(Interval, u8)> = Vec::new();
        let mut add = |interval: Interval, count: u32| match pieces.last_mut() {
            Some((last, held)) if *held == end(count) && last.end == interval.start => {
                last.end = interval.end
            }
            _ => pieces.push((interval, end(count))),
        };
        for &b in &func.layout {
            let span = live.spans[b.index()];
            let (mut start, mut count) = (span.start(), self.at_start(b));
            for (i, next) in self.in_block(func, b).enumerate().filter(|(i, _)| changes(func, b, *i)) {
                add(Interval { start, end: span.write(i) }, count);
                (start, count) = (span.write(i), next);
            }
            add(Interval { start, end: span.end() }, count);
        }
        let ends = || pieces.iter().map(|piece| piece.1);
        let lacking = |register: u8| {
            let without = pieces.iter().filter(|(_, end)| *end <= register);
            (register, Ranges(without.map(|(interval, _)| *interval).collect()))
        };
        let (fewest, most) = (ends().min().unwrap_or(0), ends().max().unwrap_or(0));
        (fewest..most).map(lacking).collect()
    }

    /// The number after each instruction of a block.
    fn in_block<'a>(&self, func: &'a Function, b: BlockId) -> impl Iterator<Item = u32> + 'a {
        func.block(b).insts.iter().scan(self.at_start(b), |count, inst| {
            *count = after(*count, &inst.op);
            Some(*count)
        })
    }
}

fn changes(func: &Function, b: BlockId, i: usize) -> bool {
    matches!(func.block(b).insts[i].op, Op::GiveRegisters { .. } | Op::HaveRegisters { .. })
}

/// Propagates the number of registers from block to block. `join` combines the numbers of two paths; `none` is its identity.
fn flow(func: &Function, cfg: &Cfg, first: u32, none: u32, join: fn(u32, u32) -> u32) -> Vec<u32> {
    let mut starts = vec![none; func.blocks.len()];
    if let Some(&entry) = cfg.order.first() {
        starts[entry.index()] = first;
    }
    // The number at a block only decreases, or only increases.
    let mut work: BTreeSet<usize> = (0..cfg.order.len()).collect();
    while let Some(place) = work.pop_first() {
        let b = cfg.order[place];
        let end = func.block(b).insts.iter().fold(starts[b.index()], |count, inst| after(count, &inst.op));
        for_each_successor(func, b, |to| {
            let joined = join(starts[to.index()], end);
            if std::mem::replace(&mut starts[to.index()], joined) != joined {
                work.insert(cfg.place(to));
            }
        });
    }
    starts
}

/// The number of registers that a thread starts with, at most `most`. It is not larger than the number that any first
/// `setmaxnreg` increase requests. `None` if some instruction decreases to more registers than the thread has, or
/// increases to fewer.
pub(crate) fn to_start_with(func: &Function, most: u32) -> Option<u32> {
    let cfg = Cfg::new(func);
    let mut first = most;
    let mut seen = vec![false; func.blocks.len()];
    let mut work: Vec<BlockId> = cfg.order.first().copied().into_iter().collect();
    while let Some(b) = work.pop() {
        if std::mem::replace(&mut seen[b.index()], true) {
            continue;
        }
        let change = func.block(b).insts.iter().find_map(|inst| match inst.op {
            Op::GiveRegisters { .. } => Some(MAX_REGISTERS),
            Op::TakeRegisters { count } => Some(count),
            _ => None,
        });
        match change {
            Some(count) => first = first.min(count),
            None => for_each_successor(func, b, |to| work.push(to)),
        }
    }
    let fewest = flow(func, &cfg, first, MAX_REGISTERS, u32::min);
    let most = flow(func, &cfg, first, 0, u32::max);
    for &b in &cfg.order {
        let (mut fewest, mut most) = (fewest[b.index()], most[b.index()]);
        for inst in &func.block(b).insts {
            match inst.op {
                Op::GiveRegisters { count } if count > most => return None,
                Op::TakeRegisters { count } if count < fewest => return None,
                op => (fewest, most) = (after(fewest, &op), after(most, &op)),
            }
        }
    }
    Some(first)
}

/// The number of registers after an operation. A decrease to more registers than the thread has is undefined, so a
/// thread with fewer does not come: programs let each role of a warp decrease in a branch of its own, one after the other.
pub(crate) fn after(count: u32, op: &Op) -> u32 {
    match *op {
        Op::GiveRegisters { count } | Op::HaveRegisters { count } => count.min(MAX_REGISTERS),
        _ => count,
    }
}

/// The highest register that code may name plus one, for a number of registers.
pub(crate) fn end(count: u32) -> u8 {
    count.saturating_sub(HIDDEN_REGISTERS).min(MAX_REGISTERS) as u8
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ori::text;

    /// Warps with fewer registers do not reach the decrease of another role, although control flow would let them.
    #[test]
    fn a_decrease_sets_the_number() {
        let func = text::parse(
            "entry \"f\" facts(registers=128) {
             b0:
             %v0:p, _ = ISETP.EQ.AND c[0x0][0x160], RZ, PT
             BRA %v0, b1, b2
             b1:
             USETMAXREG.DEALLOC{count=0x20}
             JUMP b2
             b2:
             USETMAXREG.DEALLOC{count=0x60}
             JUMP b3
             b3:
             EXIT
             }",
        )
        .unwrap();
        let counts = Counts::of(&func, &Cfg::new(&func)).unwrap();
        let starts: Vec<u32> = (0..4).map(|b| counts.at_start(BlockId(b))).collect();
        assert_eq!(starts, [128, 128, 32, 96]);
    }
}
