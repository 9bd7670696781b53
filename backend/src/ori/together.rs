//! Finds the points at which all threads of a warp that have not ended are together, or that only one group of them
//! reaches.
//!
//! A warp starts together. Threads may separate at divergent branches, by masks, by calls and where they yield. They
//! are together again after a barrier of the block, and at a convergence barrier that was set while they were together.
//! Threads that a branch sends to their end do not count: the others continue together while those threads execute
//! their last block.
//!
//! One side of a divergent branch is executed by one group of threads if the threads were together at the branch: the
//! others are elsewhere until all of them meet, and no thread comes to the branch again before that. For the blocks that
//! only this side reaches, the group counts as together.
//!
//! A uniform register belongs to the warp. A value that is written to it while threads are together is the same for all
//! of them until it is written again, which also happens together. So a value in a uniform register may change from
//! iteration to iteration, if it is computed where threads are together, and not read in the last blocks of threads
//! that left earlier.

use crate::ori::cfg::{Cfg, for_each_successor};
use crate::ori::divergence::Divergence;
use crate::ori::dominators::Tree;
use crate::ori::ir::{BlockId, Function, Inst, Src, SrcKind, Term};
use crate::ori::op::{Meeting, Op};
use smallvec::SmallVec;

pub struct Together {
    /// For each block, whether threads may be apart at its start.
    apart: Vec<bool>,
    /// For each block, the index after the instruction that brings all threads together, if they stay together to the
    /// end.
    united: Vec<Option<usize>>,
    /// For each block, whether threads may end there while others continue.
    last: Vec<bool>,
    /// For each block, whether groups of threads that a branch has separated meet at its start.
    meets: Vec<bool>,
}

impl Together {
    /// Analyzes a function with its convergence barriers. `barriers_hold`: all threads that set a barrier are together
    /// after it.
    pub fn new(
        func: &Function,
        cfg: &Cfg,
        dom: &Tree,
        divergence: &Divergence,
        barriers_hold: bool,
    ) -> Together {
        let count = func.blocks.len();
        let mut result = Together { apart: vec![!func.entry; count], ..Together::everywhere(func) };
        if !func.entry {
            return result;
        }
        let barriers = Barriers::new(func, cfg, barriers_hold);
        // The blocks whose instructions part threads, with the first such instruction, and those where only the branch does.
        let (mut parting, mut branching) = (Vec::new(), Vec::new());
        for &b in &cfg.order {
            let insts = &func.block(b).insts;
            let parts = insts.iter().position(|inst| parts_threads(func, inst));
            result.apart[b.index()] |= parts.is_some();
            let bar =
                insts.iter().rposition(|inst| matches!(inst.op, Op::Bar { .. }) && inst.guard.is_true());
            result.united[b.index()] = bar.filter(|_| parts.is_none()).map(|bar| bar + 1);
            if divergence.branch_diverges(b) {
                let mut ways = Vec::new();
                for_each_successor(func, b, |to| {
                    if matches!(func.block(to).term, Term::Exit | Term::Unreachable) {
                        result.last[to.index()] = true;
                    } else if !ways.contains(&to) {
                        ways.push(to);
                    }
                });
                if parts.is_none() && ways.len() > 1 {
                    branching.push(b);
                }
            }
            parting.extend(parts.map(|at| (b, at)));
        }
        let budget = 1_000_000 + 64 * func.blocks.len();
        let mut walk = Walk { func, cfg, dom, barriers: &barriers, number: 0, seen: vec![0; count], budget };
        for (first, at) in parting {
            result.walk(&mut walk, first, Some(at), false);
        }
        for &first in &branching {
            result.walk(&mut walk, first, None, true);
        }
        // If threads reach a branch in several groups, they also reach its sides in several groups.
        loop {
            let (together, apart): (Vec<_>, Vec<_>) = branching.into_iter().partition(|b| result.at_end(*b));
            if apart.is_empty() {
                return result;
            }
            branching = together;
            for first in apart {
                result.walk(&mut walk, first, None, false);
            }
        }
    }

    /// The result as if threads never separated.
    pub fn everywhere(func: &Function) -> Together {
        let count = func.blocks.len();
        Together {
            apart: vec![false; count],
            united: vec![None; count],
            last: vec![false; count],
            meets: vec![false; count],
        }
    }

    /// The index of the first instruction of the block at which all threads that have not ended are together, at most
    /// the number of instructions. `None` if they may be apart at the end of the block.
    pub fn from(&self, b: BlockId) -> Option<usize> {
        if self.apart[b.index()] { self.united[b.index()] } else { Some(0) }
    }

    /// Whether all threads that have not ended reach the block together.
    pub fn at_start(&self, b: BlockId) -> bool {
        self.from(b) == Some(0)
    }

    /// Whether all threads that have not ended come to the block together and from the same block, so that a phi there
    /// has the same argument for all of them.
    pub fn come_one_way(&self, cfg: &Cfg, b: BlockId) -> bool {
        self.at_start(b) && !self.meets[b.index()] && cfg.preds(b).iter().all(|pred| self.at_end(*pred))
    }

    /// Whether they reach the end of the block together; its branch may separate them.
    pub fn at_end(&self, b: BlockId) -> bool {
        self.from(b).is_some()
    }

    /// Whether threads may end in the block while others continue.
    pub fn is_last(&self, b: BlockId) -> bool {
        self.last[b.index()]
    }

    /// Marks the blocks that control reaches from a block before the threads meet again. `parts` is the index of the first
    /// instruction that separates them; `None` if only the branch does. With `has_groups`, it leaves out the blocks that
    /// only one of the groups that separate there reaches.
    fn walk(&mut self, walk: &mut Walk<'_>, first: BlockId, parts: Option<usize>, has_groups: bool) {
        walk.number += 1;
        let number = walk.number;
        let mut sides: SmallVec<[BlockId; 2]> = SmallVec::new();
        if has_groups {
            for_each_successor(walk.func, first, |to| sides.push(to));
            sides.retain(|side| walk.cfg.preds(*side).len() == 1);
        }
        let mut work = vec![first];
        while let Some(at) = work.pop() {
            let Some(left) = walk.budget.checked_sub(1) else {
                self.apart.fill(true);
                return;
            };
            walk.budget = left;
            if at != first && self.united[at.index()].is_some() {
                continue;
            }
            for_each_successor(walk.func, at, |to| {
                let ends = walk.barriers.end(walk.dom, first, parts, to);
                self.meets[to.index()] |= ends;
                if !ends && std::mem::replace(&mut walk.seen[to.index()], number) != number {
                    let of_group = sides.iter().any(|side| walk.dom.dominates(*side, to));
                    self.apart[to.index()] |= !of_group;
                    work.push(to);
                }
            });
        }
    }
}

/// The state of walks over a function.
struct Walk<'a> {
    func: &'a Function,
    cfg: &'a Cfg,
    dom: &'a Tree,
    barriers: &'a Barriers,
    /// The number of the current walk.
    number: u32,
    /// For each block, the number of the last walk that visited it.
    seen: Vec<u32>,
    /// How many blocks may still be visited, so that the walks together are almost linear.
    budget: usize,
}

/// Whether threads that execute the instruction together may continue apart.
fn parts_threads(func: &Function, inst: &Inst) -> bool {
    let is_partial = || {
        inst.guard != Src::TRUE
            || inst.op != Op::Warpsync { exclusive: false }
            || inst.srcs[..] != [Src::new(SrcKind::Imm(u32::MAX))]
    };
    inst.op.is_call()
        || func.yields(inst)
        || inst.op.results_of_others() > 0
        || (matches!(inst.op, Op::Warpsync { .. }) && is_partial())
}

/// The convergence barriers of a function.
struct Barriers {
    /// For each block, the block and the index of the instruction that sets the barrier for which threads wait at its
    /// start.
    set: Vec<Option<(BlockId, usize)>>,
}

impl Barriers {
    fn new(func: &Function, cfg: &Cfg, hold: bool) -> Barriers {
        let mut set = vec![None; func.blocks.len()];
        for &b in cfg.order.iter().filter(|_| hold) {
            for (i, inst) in func.block(b).insts.iter().enumerate() {
                if let Op::Bssy { target, meeting: Meeting::Firm } = inst.op {
                    let waits = |first: &Inst| {
                        matches!(first.op, Op::Bsync { .. })
                            && first.guard.is_true()
                            && first.srcs.first().and_then(Src::value) == inst.defs().next()
                    };
                    if func.block(target).insts.first().is_some_and(waits) {
                        set[target.index()] = Some((b, i));
                    }
                }
            }
        }
        Barriers { set }
    }

    /// Whether threads that separate in `b`, at the instruction `parts` or at the branch, are together again at `to`.
    /// Threads that are apart already when they set the barrier stay apart.
    fn end(&self, dom: &Tree, b: BlockId, parts: Option<usize>, to: BlockId) -> bool {
        self.set[to.index()].is_some_and(|(place, sets)| match place == b {
            true => parts.is_none_or(|parts| sets < parts),
            false => dom.dominates(place, b) && !dom.dominates(to, b),
        })
    }
}
