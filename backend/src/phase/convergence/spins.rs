//! Finds loops in which a thread may wait for another thread of its warp. They get a `YIELD` before each further
//! iteration.
//!
//! An example is a loop in which each thread takes a lock for itself. The thread that has the lock may wait at a
//! convergence barrier for the threads that still try to take it. `YIELD` releases the threads that wait for the
//! yielding thread, and lets other threads of the warp run.
//!
//! A loop is found if its exit condition depends on an atomic operation, on a load that other threads' stores may
//! change, on a test of an mbarrier object, or on a call. A load or test does not count if all threads reach the loop
//! together and read the same address, because they then wait only for other warps.

use super::groups::unites;
use super::plan::{Plan, edges_inside};
use crate::ori::cfg::{Cfg, for_each_successor};
use crate::ori::divergence::Divergence;
use crate::ori::dominators::Tree;
use crate::ori::ir::{BlockId, Function, Inst, Src, Value};
use crate::ori::loops::{LoopId, Loops};
use crate::ori::memory::{Effect, Kind, Space, effect};
use crate::ori::op::Op;

/// A place that needs a `YIELD`.
#[derive(Debug)]
pub(super) enum Spin {
    /// Before each further iteration of a loop: its header, and the blocks of the loop that have an edge to the header.
    Loop(BlockId, Vec<BlockId>),
    /// At the start of a block in a cycle with several entries.
    Block(BlockId),
}

/// How a value depends on other threads, from the weakest dependence to the strongest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Depends {
    Nothing,
    /// On memory that all threads which execute the operation together read at the same address.
    OnOnePlace,
    /// On an operation whose result may differ between threads that execute it together.
    OnEachOwn,
}

/// Finds the places that lack a `YIELD`. `plan` tells where threads may be apart.
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
        // Threads that sleep let others run. If all threads of the warp meet in each iteration, all of them are here.
        let lets_run = |b: &BlockId| {
            let insts = &func.block(*b).insts;
            let sleeps = |inst: &Inst| matches!(inst.op, Op::Nanosleep { .. }) && inst.guard == Src::TRUE;
            (unites(func, *b, &plan.elsewhere) || insts.iter().any(sleeps))
                && latches.iter().all(|latch| dom.dominates(*b, *latch))
        };
        if latches.iter().all(yields) || loops.blocks_outside(id, |inner| inner != id).iter().any(lets_run) {
            continue;
        }
        // Whether threads reach the loop apart. Branches in the loop do not separate threads that all take the same
        // side each time, so only the blocks before the loop count.
        let mut outside = cfg.preds(header).iter().filter(|p| !loops.contains(id, **p));
        let is_apart = outside.any(|p| diverged[p.index()] || divergence.branch_diverges(*p));
        let least = if is_apart { Depends::OnOnePlace } else { Depends::OnEachOwn };
        if slices.depends(id) >= least {
            spins.push(Spin::Loop(header, latches));
        }
    }
    spins
}

/// How the instruction's results depend on other threads, apart from the dependence of its operands.
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

/// The definition of each value, indexed by value.
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

/// Backward slices of the exit conditions of loops.
struct Slices<'a> {
    func: &'a Function,
    cfg: &'a Cfg,
    dom: &'a Tree,
    loops: &'a Loops,
    divergence: &'a Divergence,
    definitions: Vec<Definition>,
    /// Scratch space, indexed by value: the last loop whose slice contains the value.
    seen: Vec<u32>,
    /// Scratch space, indexed by block: the last loop for which [`Slices::deciding`] has examined the block.
    decided: Vec<u32>,
    /// Scratch space, indexed by block: the number of the last walk of [`Slices::deciding`] that reached the block.
    walked: Vec<u32>,
    /// The number of walks of [`Slices::deciding`] so far.
    walks: u32,
    /// The number of steps that are left. Without any, every loop counts as depending on other threads. This keeps the
    /// time of the analysis almost linear.
    budget: usize,
}

impl Slices<'_> {
    /// How the exit conditions of a loop depend on other threads.
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
        // The loop implements a single atomic operation of the input. It repeats only if the operation of another
        // thread succeeded, so it waits for no thread.
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
                    // The thread's local memory may hold the result of another operation of the loop.
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

    /// Adds the conditions of the branches in a loop that decide from which predecessor control reaches a block of the
    /// loop.
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
            // The walk stops at a block that all paths pass.
            if at != to && !all.iter().all(|from| self.dom.dominates(at, *from)) {
                before.extend(self.cfg.preds(at).iter().copied().filter(inside));
            }
        }
    }

    fn branch(&self, b: BlockId, work: &mut Vec<Value>) {
        work.extend(self.func.block(b).term.operand().and_then(Src::value));
    }
}
