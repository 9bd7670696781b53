//! Decides branches by an earlier branch on the same predicate.
//!
//! Guarded statements that become control flow leave such branches: `@p mbarrier.init` twice is two branches on `p`.
//!
//! - A branch on a side of the earlier one always goes the same way.
//! - Where the sides of the earlier branch meet, each side continues at its own target of the second branch, so that the
//!   sides of both become one. Operations in between that may run anywhere move before the earlier branch.
//!
//! Before and after: SSA. Blocks may lose all their predecessors, or form chains.

use crate::CodegenError;
use crate::ori::cfg::Cfg;
use crate::ori::dominators::Tree;
use crate::ori::ir::{BlockId, File, Function, Inst, Src, SrcKind, Term, Value};
use crate::ori::signature::facts;
use crate::phase::convergence::retarget;
use crate::phase::edit::{may_run_elsewhere, remove_unreached};
use crate::phases::{Change, Context};
use rustc_hash::FxHashSet;

/// Each round threads every second branch of a sequence, because the others begin where a threaded one ended.
const ROUNDS: usize = 6;
/// The number of operations that move before the earlier branch.
const MOST: usize = 8;
/// The number of dominators that are examined for an earlier branch.
const FAR: usize = 16;

pub fn run(func: &mut Function, context: &Context<'_>) -> Result<Change, CodegenError> {
    let mut change = false;
    for _ in 0..ROUNDS {
        if !has_equal_conditions(func) {
            break;
        }
        (context.checkpoint)();
        let round = Threading::new(func).round(func);
        if !round {
            break;
        }
        change = true;
        super::branches::decide_known(func);
        remove_unreached(func, &Cfg::new(func));
        super::branches::merge_chains(func);
    }
    Ok(Change::of(change))
}

fn has_equal_conditions(func: &Function) -> bool {
    let mut seen = FxHashSet::default();
    func.layout.iter().filter_map(|b| condition(func, *b)).any(|(v, _)| !seen.insert(v))
}

/// The predicate of a branch with two targets, and whether the branch negates it.
fn condition(func: &Function, b: BlockId) -> Option<(Value, bool)> {
    match &func.block(b).term {
        Term::Branch { cond: Src { kind: SrcKind::Value(v), mods }, then, els, .. } if then != els => {
            Some((*v, mods.not))
        }
        _ => None,
    }
}

struct Threading {
    cfg: Cfg,
    dom: Tree,
    /// Blocks whose edges this round has changed.
    touched: FxHashSet<BlockId>,
}

impl Threading {
    fn new(func: &Function) -> Threading {
        let cfg = Cfg::new(func);
        let dom = crate::ori::dominators::dominators(&cfg, func);
        Threading { cfg, dom, touched: FxHashSet::default() }
    }

    fn round(mut self, func: &mut Function) -> bool {
        let mut change = false;
        for i in 0..self.cfg.order.len() {
            let b = self.cfg.order[i];
            let Some((on, _)) = condition(func, b) else { continue };
            if let Some(truth) = self.side(func, b, on, None) {
                if let Term::Branch { cond, .. } = &mut func.block_mut(b).term {
                    *cond = if truth != cond.mods.not { Src::TRUE } else { Src::FALSE };
                }
                change = true;
            } else {
                change |= self.thread(func, b, on);
            }
        }
        change
    }

    /// The value of the predicate in `b`, if an edge that every path to `b` takes last decides it. `until`: a dominator of
    /// `b` whose own sides are the last ones examined.
    fn side(&self, func: &Function, b: BlockId, on: Value, until: Option<BlockId>) -> Option<bool> {
        let mut at = b;
        for _ in 0..FAR {
            if self.touched.contains(&at) {
                return None;
            }
            let from = self.dom.parent(at)?;
            if self.cfg.preds(at) == [from]
                && !self.touched.contains(&from)
                && let Some((v, not)) = condition(func, from)
                && v == on
                && let Term::Branch { then, .. } = func.block(from).term
            {
                return Some((then == at) != not);
            }
            if Some(from) == until {
                return None;
            }
            at = from;
        }
        None
    }

    /// Lets each predecessor of `b` continue at the target of `b` that the branch at the dominator of `b` decides.
    fn thread(&mut self, func: &mut Function, b: BlockId, on: Value) -> bool {
        let Some(first) = self.dom.parent(b) else { return false };
        let Some((decided, _)) = condition(func, first) else { return false };
        let block = func.block(b);
        if decided != on || !block.phis.is_empty() || block.insts.len() > MOST || block.may_unroll {
            return false;
        }
        if !block.insts.iter().all(|inst| moves(func, inst)) {
            return false;
        }
        let Some(ways) = self.ways(func, b, first, on) else { return false };
        if self.touched.contains(&b) || self.touched.contains(&first) {
            return false;
        }
        for &(from, to) in &ways {
            retarget(&mut func.block_mut(from).term, b, to);
            for phi in &mut func.block_mut(to).phis {
                let of_b = phi.args.iter().find(|(at, _)| *at == b).map(|(_, src)| *src);
                phi.args.extend(of_b.map(|src| (from, src)));
            }
            self.touched.extend([from, to]);
        }
        let insts = std::mem::take(&mut func.block_mut(b).insts);
        func.block_mut(first).insts.extend(insts);
        self.touched.extend([b, first]);
        true
    }

    /// For each predecessor of `b`, the target to which it continues.
    fn ways(
        &self,
        func: &Function,
        b: BlockId,
        first: BlockId,
        on: Value,
    ) -> Option<Vec<(BlockId, BlockId)>> {
        let Term::Branch { cond, then, els, .. } = func.block(b).term else { return None };
        let way = |&from: &BlockId| {
            let truth = if from == first {
                let (_, not) = condition(func, first)?;
                let Term::Branch { then, .. } = func.block(first).term else { return None };
                (then == b) != not
            } else if self.dom.dominates(b, from) {
                return None;
            } else {
                self.side(func, from, on, Some(first))?
            };
            let to = if truth != cond.mods.not { then } else { els };
            let is_new = !self.cfg.preds(to).contains(&from) && to != b;
            (is_new && !self.touched.contains(&from) && !self.touched.contains(&to)).then_some((from, to))
        };
        self.cfg.preds(b).iter().map(way).collect()
    }
}

/// Whether the operation may be computed earlier for more threads.
fn moves(func: &Function, inst: &Inst) -> bool {
    let in_general_registers = inst.defs().all(|v| matches!(func.value(v).file, File::R | File::P));
    in_general_registers && facts(&inst.op).is_pure() && may_run_elsewhere(func, inst)
}
