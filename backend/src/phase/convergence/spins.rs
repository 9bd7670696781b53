//! Loops in which a thread may wait for another thread of its warp: they yield before each further turn.
//!
//! A lock that each thread takes for itself is such a loop. The thread that has the lock may wait at a barrier for those
//! that try to take it. `YIELD` releases the threads that wait for the one that yields, and lets others of the warp run.
//!
//! A loop counts as one where what ends it depends on an atomic operation, on a load that other threads' stores may
//! change, on a test of a barrier object, or on what a call does. One whose threads come to it together and all read the
//! same place waits for other warps.

use super::groups::unites;
use super::plan::{Plan, edges_inside};
use crate::ori::cfg::{Cfg, for_each_successor};
use crate::ori::divergence::Divergence;
use crate::ori::dominators::Tree;
use crate::ori::ir::{BlockId, Function, Inst, Src, Value};
use crate::ori::loops::{LoopId, Loops};
use crate::ori::memory::{Effect, Kind, Space, effect};
use crate::ori::op::Op;

/// Where a `YIELD` is to be.
#[derive(Debug)]
pub(super) enum Spin {
    /// Before each further turn of a loop: its header, and the blocks in it that have edges to that.
    Loop(BlockId, Vec<BlockId>),
    /// At the start of a block in a cycle with several entries.
    Block(BlockId),
}

/// What of other threads a value depends on; the later the more.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Depends {
    Nothing,
    /// What all threads that execute the operation together read at one place.
    OnOnePlace,
    OnEachOwn,
}

/// The loops that lack a `YIELD`. `plan`: where threads may be apart.
pub(super) fn spins(
    func: &Function,
    cfg: &Cfg,
    dom: &Tree,
    loops: &Loops,
    divergence: &Divergence,
    plan: &Plan,
) -> Vec<Spin> {
    let diverged = &plan.diverged;
    let mut spins = Vec::new();
    let mut candidates: Vec<LoopId> = Vec::new();
    for &b in &cfg.order {
        let insts = &func.block(b).insts;
        let depends = insts.iter().map(|inst| depends(func, inst, divergence)).max();
        let depends = depends.unwrap_or(Depends::Nothing);
        if depends == Depends::Nothing {
            continue;
        }
        candidates.extend(loops.around(b));
        let is_apart = depends == Depends::OnEachOwn || diverged[b.index()];
        if loops.is_irreducible(b) && is_apart && insts.first().is_none_or(|inst| inst.op != Op::Yield) {
            spins.push(Spin::Block(b));
        }
    }
    candidates.sort_unstable();
    candidates.dedup();
    candidates.retain(|id| !loops.is_irreducible(loops.get(*id).header));
    if candidates.is_empty() {
        return spins;
    }
    let mut slices = Slices {
        func,
        cfg,
        dom,
        loops,
        divergence,
        definitions: definitions(func, cfg),
        seen: vec![u32::MAX; func.values.len()],
        decided: vec![u32::MAX; func.blocks.len()],
        walked: vec![0; func.blocks.len()],
        walks: 0,
        budget: 1_000_000 + 64 * func.blocks.len(),
    };
    for id in candidates {
        let header = loops.get(id).header;
        let latches = edges_inside(cfg, loops, id);
        let yields = |b: &BlockId| func.block(*b).insts.iter().any(|inst| inst.op == Op::Yield);
        // Whoever sleeps lets others run. Where all threads of the warp meet in each turn, none is elsewhere.
        let lets_run = |b: &BlockId| {
            let insts = &func.block(*b).insts;
            let sleeps = |inst: &Inst| matches!(inst.op, Op::Nanosleep { .. }) && inst.guard == Src::TRUE;
            (unites(func, *b, &plan.elsewhere) || insts.iter().any(sleeps))
                && latches.iter().all(|latch| dom.dominates(*b, *latch))
        };
        if latches.iter().all(yields) || loops.blocks_outside(id, |inner| inner != id).iter().any(lets_run) {
            continue;
        }
        // Whether threads come to the loop apart. Branches in it that all take the same way at a time do not part them.
        let mut outside = cfg.preds(header).iter().filter(|p| !loops.contains(id, **p));
        let is_apart = outside.any(|p| diverged[p.index()] || divergence.branch_diverges(*p));
        let least = if is_apart { Depends::OnOnePlace } else { Depends::OnEachOwn };
        if slices.depends(id) >= least {
            spins.push(Spin::Loop(header, latches));
        }
    }
    spins
}

/// What of other threads the instruction's results depend on besides its operands.
fn depends(func: &Function, inst: &Inst, divergence: &Divergence) -> Depends {
    let by_place = || match inst.uses().filter_map(|src| src.value()).any(|v| divergence.is_divergent(v)) {
        true => Depends::OnEachOwn,
        false => Depends::OnOnePlace,
    };
    match effect(&inst.op) {
        _ if inst.op.calls_function() && func.facts.callees_never_watch => Depends::Nothing,
        _ if inst.op.calls_function() => Depends::OnEachOwn,
        _ if matches!(inst.op, Op::SyncsPhasechk { .. }) => by_place(),
        Effect::Memory(access) if inst.defs().next().is_some() => match access.kind {
            Kind::Update => Depends::OnEachOwn,
            Kind::Load if access.order.is_strong() => by_place(),
            Kind::Load | Kind::Store | Kind::Copy => Depends::Nothing,
        },
        _ => Depends::Nothing,
    }
}

/// Where a value is defined.
#[derive(Clone, Copy)]
enum Definition {
    Elsewhere,
    Phi(BlockId, u32),
    Inst(BlockId, u32),
}

/// Indexed by value.
fn definitions(func: &Function, cfg: &Cfg) -> Vec<Definition> {
    let mut definitions = vec![Definition::Elsewhere; func.values.len()];
    for &b in &cfg.order {
        let block = func.block(b);
        for (phi, i) in block.phis.iter().zip(0..) {
            definitions[phi.dst.index()] = Definition::Phi(b, i);
        }
        for (inst, i) in block.insts.iter().zip(0..) {
            inst.defs().for_each(|v| definitions[v.index()] = Definition::Inst(b, i));
        }
    }
    definitions
}

/// Backward slices of what ends loops.
struct Slices<'a> {
    func: &'a Function,
    cfg: &'a Cfg,
    dom: &'a Tree,
    loops: &'a Loops,
    divergence: &'a Divergence,
    definitions: Vec<Definition>,
    /// Scratch, indexed by value: the last loop whose slice has it.
    seen: Vec<u32>,
    /// Scratch, indexed by block: the last loop for which [`Slices::deciding`] was asked.
    decided: Vec<u32>,
    /// Scratch, indexed by block: the last walk of [`Slices::deciding`] that came to it, and how many there were.
    walked: Vec<u32>,
    walks: u32,
    /// Steps left before every loop counts as depending; keeps the analysis near linear.
    budget: usize,
}

impl Slices<'_> {
    /// What of other threads the branches out of a loop depend on.
    fn depends(&mut self, id: LoopId) -> Depends {
        let mut work = Vec::new();
        let mut statements = Vec::new();
        for b in self.loops.blocks_outside(id, |_| false) {
            self.budget = self.budget.saturating_sub(1);
            let mut leaves = false;
            for_each_successor(self.func, b, |to| leaves |= !self.loops.contains(id, to));
            if leaves {
                self.branch(b, &mut work);
                statements.push(self.func.block(b).term_src);
            }
        }
        // One atomic operation of the input that is several here. It fails where that of another thread succeeded, and
        // waits for nobody.
        let is_part = |inst: &Inst| {
            matches!(effect(&inst.op), Effect::Memory(access) if access.kind == Kind::Update)
                && statements.iter().all(|statement| *statement == inst.src)
        };
        let mut found = Depends::Nothing;
        while let Some(v) = work.pop() {
            if self.budget == 0 {
                return Depends::OnEachOwn;
            }
            self.budget -= 1;
            if std::mem::replace(&mut self.seen[v.index()], id.0) == id.0 {
                continue;
            }
            match self.definitions[v.index()] {
                Definition::Inst(b, i) if self.loops.contains(id, b) => {
                    let inst = &self.func.block(b).insts[i as usize];
                    // What another operation of the loop found may come by way of the thread's own memory.
                    let is_own =
                        matches!(effect(&inst.op), Effect::Memory(access) if access.space == Space::Local);
                    if !is_part(inst) {
                        found = found.max(if is_own {
                            Depends::OnEachOwn
                        } else {
                            depends(self.func, inst, self.divergence)
                        });
                    }
                    work.extend(inst.uses().filter_map(|src| src.value()));
                }
                Definition::Phi(b, i) if self.loops.contains(id, b) => {
                    let args = &self.func.block(b).phis[i as usize].args;
                    let inside = |from: BlockId| self.loops.contains(id, from);
                    work.extend(
                        args.iter().filter(|(from, _)| inside(*from)).filter_map(|(_, src)| src.value()),
                    );
                    self.deciding(id, b, &mut work);
                }
                _ => {}
            }
            if found == Depends::OnEachOwn {
                break;
            }
        }
        found
    }

    /// The branches of a loop that decide from where control comes to a block of it.
    fn deciding(&mut self, id: LoopId, to: BlockId, work: &mut Vec<Value>) {
        let inside = |from: &BlockId| self.loops.contains(id, *from);
        let mut before: Vec<BlockId> = self.cfg.preds(to).iter().copied().filter(inside).collect();
        if before.len() < 2 || std::mem::replace(&mut self.decided[to.index()], id.0) == id.0 {
            return;
        }
        let all = before.clone();
        self.walks += 1;
        while let Some(at) = before.pop() {
            if self.budget == 0 {
                return;
            }
            self.budget -= 1;
            if std::mem::replace(&mut self.walked[at.index()], self.walks) == self.walks {
                continue;
            }
            self.branch(at, work);
            // All paths come through it.
            if at != to && !all.iter().all(|from| self.dom.dominates(at, *from)) {
                before.extend(self.cfg.preds(at).iter().copied().filter(inside));
            }
        }
    }

    fn branch(&self, b: BlockId, work: &mut Vec<Value>) {
        work.extend(self.func.block(b).term.operand().and_then(Src::value));
    }
}
