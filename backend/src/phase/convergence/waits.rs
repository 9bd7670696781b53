//! Finds the barriers that would keep threads waiting forever.
//!
//! A thread `t` that waits at the meeting point of a barrier waits for all threads that set the barrier with it. One of
//! these threads may wait in the barrier's region, at an operation of the warp or of the block, for `t`. Without the
//! barrier, `t` would continue after the meeting point and reach the operation; with the barrier, both wait forever.
//! `docs/convergence.md` states the rule that finds such barriers, and why it suffices.

use super::plan::Barrier;
use crate::ori::cfg::for_each_successor;
use crate::ori::dominators::Tree;
use crate::ori::ir::{BlockId, Function, Inst, Src, SrcKind, Term};
use crate::ori::loops::Loops;
use crate::ori::op::{BarMode, Callee, Op};
use std::ops::Range;

/// The threads that an operation waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Wait {
    /// All threads of the warp, at this operation.
    Warp,
    /// The threads of the warp that a mask names, at this operation. The mask may be full if the operation has a guard.
    Some,
    /// All threads of the block, each at any barrier of the block.
    Block,
    /// A number of threads that the operation states, each at any barrier of the block.
    Count,
    /// The threads that the callee waits for.
    Call,
    /// No threads, but other threads wait for the threads that execute the operation.
    Arrives,
}

impl Wait {
    /// The threads that wait for each other may be at different instructions.
    fn pairs_elsewhere(self) -> bool {
        matches!(self, Wait::Block | Wait::Count | Wait::Call)
    }
}

/// The operations of a function that wait.
pub(super) struct Waits<'a> {
    dom: &'a Tree,
    loops: &'a Loops,
    /// The blocks with such operations, in preorder of the dominator tree, each with its operations in their order.
    blocks: Vec<(BlockId, Vec<Wait>)>,
    /// Indexed by block: its position in `blocks`.
    place: Vec<Option<u32>>,
    /// Whether some operation waits for threads at other operations, but not for all threads of the block: `Count` or
    /// `Call`.
    any_counts: bool,
}

impl<'a> Waits<'a> {
    pub(super) fn new(func: &Function, dom: &'a Tree, loops: &'a Loops) -> Waits<'a> {
        let mut waits =
            Waits { dom, loops, blocks: Vec::new(), place: vec![None; func.blocks.len()], any_counts: false };
        for &b in &dom.preorder {
            let own = waits_of(&func.block(b).insts, func.facts.pointees_never_wait);
            if !own.is_empty() {
                waits.place[b.index()] = Some(waits.blocks.len() as u32);
                waits.any_counts |= own.iter().any(|wait| matches!(wait, Wait::Count | Wait::Call));
                waits.blocks.push((b, own));
            }
        }
        waits
    }

    pub(super) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Whether the barrier's region has an operation that waits.
    pub(super) fn any_inside(&self, barrier: Barrier) -> bool {
        self.inside(barrier).next().is_some()
    }

    /// The operations in the barrier's region that wait.
    fn inside(&self, barrier: Barrier) -> impl Iterator<Item = Wait> {
        let (below, past) = (self.below(barrier.place), self.below(barrier.meet));
        let clamp = |place: usize| place.clamp(below.start, below.end);
        let before = &self.blocks[below.start..clamp(past.start)];
        let after = &self.blocks[clamp(past.end)..below.end];
        let around = before.iter().chain(after).filter(move |(b, _)| barrier.is_around(self.dom, *b));
        around.flat_map(|(_, waits)| waits.iter().copied()).filter(|wait| *wait != Wait::Arrives)
    }

    /// The range of `blocks` that a block dominates. They are adjacent because of the preorder.
    fn below(&self, b: BlockId) -> Range<usize> {
        let start = self.blocks.partition_point(|(other, _)| self.dom.number(*other) < self.dom.number(b));
        let count = self.blocks[start..].partition_point(|(other, _)| self.dom.dominates(b, *other));
        start..start + count
    }

    fn barriers_of_the_block(&self) -> impl Iterator<Item = BlockId> {
        let waits = |wait: &Wait| wait.pairs_elsewhere();
        self.blocks.iter().filter(move |(_, all)| all.iter().any(waits)).map(|(b, _)| *b)
    }

    /// For each barrier: whether threads that wait for it and threads in its region may wait for each other forever.
    pub(super) fn unsafe_barriers(&self, func: &Function, barriers: &[Barrier]) -> Vec<bool> {
        let mut walk = Walk {
            seen: vec![0; func.blocks.len()],
            number: 0,
            work: Vec::new(),
            budget: 1_000_000 + 64 * func.blocks.len(),
        };
        barriers.iter().map(|barrier| self.is_unsafe(func, barriers, *barrier, &mut walk)).collect()
    }

    /// Whether the region has an operation of the whole warp or of the block, and threads may exit after the meeting
    /// point without an operation of the whole warp. Then the threads in the region wait for the threads at the meeting
    /// point to exit, and these wait for the threads in the region.
    fn may_be_ended_for(&self, func: &Function, barrier: Barrier, walk: &mut Walk) -> bool {
        let is_of_the_warp = |wait| matches!(wait, Wait::Warp | Wait::Block | Wait::Count);
        if !self.inside(barrier).any(is_of_the_warp) {
            return false;
        }
        walk.start(barrier.meet);
        while let Some(b) = walk.work.pop() {
            let own = self.place[b.index()].map(|place| &self.blocks[place as usize].1);
            if own.is_some_and(|own| own.contains(&Wait::Warp)) {
                continue;
            }
            if walk.budget == 0 || func.block(b).term == Term::Exit {
                return true;
            }
            walk.budget -= 1;
            for_each_successor(func, b, |to| walk.reach(to));
        }
        false
    }

    fn is_unsafe(&self, func: &Function, barriers: &[Barrier], barrier: Barrier, walk: &mut Walk) -> bool {
        if self.may_be_ended_for(func, barrier, walk) {
            return true;
        }
        let pairs = self.inside(barrier).any(Wait::pairs_elsewhere);
        // If the meeting point is in no cycle, no thread returns from it to the region.
        let in_cycle =
            self.loops.innermost(barrier.meet).is_some() || self.loops.is_irreducible(barrier.meet);
        if !self.any_inside(barrier) || !(in_cycle || pairs || self.any_counts) {
            return false;
        }
        walk.start(barrier.meet);
        while let Some(b) = walk.work.pop() {
            if walk.budget == 0 {
                return true;
            }
            walk.budget -= 1;
            let mut passes = true;
            if let Some(place) = self.place[b.index()] {
                walk.budget = walk.budget.saturating_sub(barriers.len());
                if barrier.is_around(self.dom, b) {
                    return true;
                }
                for &wait in &self.blocks[place as usize].1 {
                    match wait {
                        Wait::Block | Wait::Count | Wait::Call | Wait::Arrives if pairs => return true,
                        // No thread passes this operation before the threads in the region have passed theirs.
                        Wait::Warp | Wait::Block if !self.any_counts => {
                            passes = false;
                            break;
                        }
                        Wait::Warp | Wait::Some => {}
                        // Threads that wait at any barrier of the block may continue.
                        Wait::Block | Wait::Count | Wait::Call | Wait::Arrives => {
                            self.barriers_of_the_block().for_each(|b| walk.reach(b));
                        }
                    }
                    // Threads that wait here may continue, and reach the meeting point of each barrier around this
                    // block.
                    for other in barriers.iter().filter(|other| other.is_around(self.dom, b)) {
                        walk.reach(other.meet);
                    }
                }
            }
            if passes {
                for_each_successor(func, b, |to| walk.reach(to));
            }
        }
        false
    }
}

struct Walk {
    /// Indexed by block: the number of the last walk that reached it.
    seen: Vec<u32>,
    number: u32,
    work: Vec<BlockId>,
    /// The number of steps that are left for all walks. Without any, every barrier around an operation that waits
    /// counts as unsafe. This keeps the time almost linear.
    budget: usize,
}

impl Walk {
    fn start(&mut self, b: BlockId) {
        self.number += 1;
        self.work.clear();
        self.reach(b);
    }

    fn reach(&mut self, b: BlockId) {
        if std::mem::replace(&mut self.seen[b.index()], self.number) != self.number {
            self.work.push(b);
        }
    }
}

/// Whether some instruction waits for other threads, or they wait for it.
pub(super) fn any_waits(func: &Function, b: BlockId) -> bool {
    !waits_of(&func.block(b).insts, func.facts.pointees_never_wait).is_empty()
}

/// The operations of a block that wait. A call through an address counts unless `pointees_never_wait`.
fn waits_of(insts: &[Inst], pointees_never_wait: bool) -> Vec<Wait> {
    let mut waits = Vec::new();
    for inst in insts {
        match inst.op {
            Op::Warpsync { .. } if is_full(inst) => waits.push(Wait::Warp),
            Op::Warpsync { .. } => waits.push(Wait::Some),
            // A `WARPSYNC` before the barrier has brought the warp together, so all its threads are here.
            Op::Bar { .. } if waits.contains(&Wait::Warp) => {}
            // A callee may wait for threads that wait elsewhere.
            Op::Call { callee: Callee { waits: true, .. } } => waits.push(Wait::Call),
            Op::CallTo { absolute: false, .. } if !pointees_never_wait => waits.push(Wait::Call),
            Op::Bar { mode: BarMode::Arv } | Op::ClusterArrive => waits.push(Wait::Arrives),
            // It waits for more threads than those of the block.
            Op::ClusterWait if waits.contains(&Wait::Warp) => {}
            Op::ClusterWait => waits.push(Wait::Count),
            Op::Bar { mode } => {
                let reduces = matches!(mode, BarMode::RedPopc | BarMode::RedAnd | BarMode::RedOr);
                let counted = inst.srcs.get(1).is_some_and(|count| !reduces || *count != Src::ZERO);
                let all = !counted && inst.guard == Src::TRUE;
                waits.push(if all { Wait::Block } else { Wait::Count });
            }
            _ => {}
        }
    }
    waits
}

/// Whether the instruction is a `WARPSYNC` with a constant mask, without a guard.
pub(super) fn has_known_mask(inst: &Inst) -> bool {
    matches!(inst.op, Op::Warpsync { .. })
        && inst.guard == Src::TRUE
        && inst.srcs.first().is_some_and(|mask| mask.known().is_some())
}

/// Whether the instruction is a `WARPSYNC` for all threads of the warp, without a guard.
pub(super) fn is_full(inst: &Inst) -> bool {
    matches!(inst.op, Op::Warpsync { .. })
        && inst.guard == Src::TRUE
        && inst.srcs[..] == [Src::new(SrcKind::Imm(u32::MAX))]
}
