//! Where all threads of a warp are together that have not ended.
//!
//! A warp starts together. Threads part at divergent branches, by masks, by calls and where they yield; they are together
//! again after a barrier of the block, and where they meet at a convergence barrier that was set while they were. Threads that
//! a branch sends to an end do not count: the others go on together, while those execute their last block.
//!
//! A uniform register belongs to the warp. What is written to it while threads are together is the same for all of them
//! until it is written again, which happens together too. So a value may change from iteration to iteration there, if it is
//! made where threads are together and not read in the last blocks of those that left earlier.

use crate::ori::cfg::{Cfg, for_each_successor};
use crate::ori::divergence::Divergence;
use crate::ori::dominators::Tree;
use crate::ori::ir::{BlockId, Function, Inst, Src, SrcKind, Term};
use crate::ori::op::{Meeting, Op};

pub struct Together {
    /// Indexed by block: threads may be apart at its start.
    apart: Vec<bool>,
    /// Indexed by block: the first instruction after one that brings all threads together, if they stay so.
    united: Vec<Option<usize>>,
    /// Indexed by block: threads may end there while others have gone on.
    last: Vec<bool>,
}

impl Together {
    /// For a function with its convergence barriers. `barriers_hold`: all threads that set one are together after it.
    pub fn new(
        func: &Function,
        cfg: &Cfg,
        dom: &Tree,
        divergence: &Divergence,
        barriers_hold: bool,
    ) -> Together {
        let count = func.blocks.len();
        let mut result =
            Together { apart: vec![!func.entry; count], united: vec![None; count], last: vec![false; count] };
        if !func.entry {
            return result;
        }
        let barriers = Barriers::new(func, cfg, barriers_hold);
        let mut parting = Vec::new();
        for &b in &cfg.order {
            let insts = &func.block(b).insts;
            let mut parts = insts.iter().any(|inst| parts_threads(func, inst));
            result.apart[b.index()] |= parts;
            let bar =
                insts.iter().rposition(|inst| matches!(inst.op, Op::Bar { .. }) && inst.guard.is_true());
            result.united[b.index()] = bar.filter(|_| !parts).map(|bar| bar + 1);
            if divergence.branch_diverges(b) {
                let mut ways = Vec::new();
                for_each_successor(func, b, |to| {
                    if matches!(func.block(to).term, Term::Exit | Term::Unreachable) {
                        result.last[to.index()] = true;
                    } else if !ways.contains(&to) {
                        ways.push(to);
                    }
                });
                parts |= ways.len() > 1;
            }
            if parts {
                parting.push(b);
            }
        }
        result.walk(func, dom, &barriers, &parting);
        result
    }

    /// As if threads never parted: nothing is possible that is not so.
    pub fn everywhere(func: &Function) -> Together {
        let count = func.blocks.len();
        Together { apart: vec![false; count], united: vec![None; count], last: vec![false; count] }
    }

    /// The first instruction of the block from which on all threads are together that have not ended; at most one more than
    /// there are. `None`: they may be apart up to its end.
    pub fn from(&self, b: BlockId) -> Option<usize> {
        if self.apart[b.index()] { self.united[b.index()] } else { Some(0) }
    }

    /// All threads that have not ended come to the block together.
    pub fn at_start(&self, b: BlockId) -> bool {
        self.from(b) == Some(0)
    }

    /// They leave it together, or part by its branch.
    pub fn at_end(&self, b: BlockId) -> bool {
        self.from(b).is_some()
    }

    /// Threads may end in the block while others have gone on.
    pub fn is_last(&self, b: BlockId) -> bool {
        self.last[b.index()]
    }

    /// Marks what control reaches from each of these blocks before the threads meet again.
    fn walk(&mut self, func: &Function, dom: &Tree, barriers: &Barriers, parting: &[BlockId]) {
        let mut seen = vec![None; func.blocks.len()];
        // Block visits; keeps the walks near linear.
        let mut budget = 1_000_000 + 64 * func.blocks.len();
        for &first in parting {
            let mut work = vec![first];
            while let Some(at) = work.pop() {
                if budget == 0 {
                    self.apart.fill(true);
                    return;
                }
                budget -= 1;
                if at != first && self.united[at.index()].is_some() {
                    continue;
                }
                for_each_successor(func, at, |to| {
                    if !barriers.end(dom, first, to) && seen[to.index()].replace(first) != Some(first) {
                        self.apart[to.index()] = true;
                        work.push(to);
                    }
                });
            }
        }
    }
}

/// Threads that execute it together may go on apart.
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
    /// Indexed by block: where the barrier is set for which threads wait at its start.
    set: Vec<Option<BlockId>>,
}

impl Barriers {
    fn new(func: &Function, cfg: &Cfg, hold: bool) -> Barriers {
        let mut set = vec![None; func.blocks.len()];
        for &b in cfg.order.iter().filter(|_| hold) {
            for inst in &func.block(b).insts {
                if let Op::Bssy { target, meeting: Meeting::Firm } = inst.op {
                    let waits = |first: &Inst| {
                        matches!(first.op, Op::Bsync { .. })
                            && first.guard.is_true()
                            && first.srcs.first().and_then(Src::value) == inst.defs().next()
                    };
                    if func.block(target).insts.first().is_some_and(waits) {
                        set[target.index()] = Some(b);
                    }
                }
            }
        }
        Barriers { set }
    }

    /// Threads that part in `b` are together again at `to`.
    fn end(&self, dom: &Tree, b: BlockId, to: BlockId) -> bool {
        self.set[to.index()]
            .is_some_and(|place| place == b || (dom.dominates(place, b) && !dom.dominates(to, b)))
    }
}
