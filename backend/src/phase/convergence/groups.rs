//! Operations of the warp that name different threads for different threads: each group goes on by itself.

use super::waits::is_full;
use crate::ori::cfg::Cfg;
use crate::ori::divergence::Divergence;
use crate::ori::ir::{BlockId, Dst, File, Function, Inst, Src, SrcKind, Value};
use crate::ori::loops::Loops;
use crate::ori::memory::{Effect, effect};
use crate::ori::op::{BarMode, Op, Routine};
use crate::ori::operations::facts;
use crate::phase::routines;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::ops::Range;

/// Where a warp may part into groups that masks name.
pub(super) struct Groups {
    /// Blocks in which threads that may be apart before wait by such masks.
    pub parting: Vec<BlockId>,
    /// Where the warp is together: from a wait to the operation it is for. In the order of control flow.
    pub brackets: Vec<(BlockId, Range<usize>)>,
}

impl Groups {
    pub(super) fn new(
        func: &Function,
        cfg: &Cfg,
        loops: &Loops,
        divergence: &Divergence,
        diverged: &[bool],
    ) -> Groups {
        let mut groups = Groups { parting: Vec::new(), brackets: Vec::new() };
        let mut same = Same {
            divergence,
            whole: vec![false; func.values.len()],
            changes: vec![false; func.values.len()],
            here: Vec::new(),
            is_together: true,
        };
        for &b in &cfg.order {
            same.here.clear();
            let is_together = !diverged[b.index()];
            same.is_together = is_together;
            let insts = &func.block(b).insts;
            if loops.innermost(b).is_some() || loops.is_irreducible(b) {
                let phis = func.block(b).phis.iter().map(|phi| phi.dst);
                phis.chain(insts.iter().flat_map(Inst::defs)).for_each(|v| same.changes[v.index()] = true);
            }
            let mut last_reads = None;
            // The mask of the operation that follows is the same for all that do it.
            let mut one_mask = true;
            for (i, inst) in insts.iter().enumerate() {
                match inst.op {
                    Op::Warpsync { .. } => {
                        let mask = inst.srcs.first().copied().unwrap_or(Src::UNDEF);
                        one_mask = same.holds(mask);
                        // Whoever else waits here has another value of everything but the mask.
                        same.here.retain(|v| Some(*v) == mask.value());
                        if one_mask {
                            continue;
                        }
                        if !is_together {
                            groups.parting.push(b);
                        } else if let Some(next) = insts.get(i + 1)
                            && asks_threads(&next.op)
                        {
                            groups.brackets.push((b, i..end_of(insts, i + 1, &mut last_reads)));
                        }
                    }
                    Op::Vote { .. } if !one_mask => one_mask = true,
                    Op::Vote { .. } if is_together => inst.defs().for_each(|v| same.whole[v.index()] = true),
                    Op::Vote { .. } => same.here.extend(inst.defs()),
                    _ => same.pass(inst),
                }
            }
        }
        groups.parting.dedup();
        groups
    }
}

/// Its result depends on which threads execute it together. In a shuffle each says whose value it reads.
fn asks_threads(op: &Op) -> bool {
    let facts = facts(op);
    facts.convergent
        && !matches!(op, Op::Shfl { .. })
        && matches!(facts.effect, Effect::Warp { .. } | Effect::Memory(_))
}

/// The operation makes threads that wait for each other go on together. `bar.warp.sync` does not: some may wait at another one.
fn unites_threads(op: &Op) -> bool {
    matches!(op, Op::Shfl { .. } | Op::Bar { .. }) || asks_threads(op)
}

/// All threads of the warp execute an operation of the block together.
pub(super) fn unites(insts: &[Inst]) -> bool {
    insts
        .windows(2)
        .any(|pair| is_full(&pair[0]) && pair[0].src == pair[1].src && unites_threads(&pair[1].op))
}

/// The instructions after an operation, and the reads of its result in a uniform register, which all groups share.
fn end_of(insts: &[Inst], at: usize, last_reads: &mut Option<FxHashMap<Value, usize>>) -> usize {
    if !insts[at].op.reduces_group() {
        return at + 1;
    }
    let last_reads = last_reads.get_or_insert_with(|| {
        let values =
            |inst: &Inst| inst.uses().filter_map(|src| src.value()).collect::<SmallVec<[Value; 4]>>();
        // The last place of each value replaces those before.
        insts.iter().enumerate().flat_map(|(i, inst)| values(inst).into_iter().map(move |v| (v, i))).collect()
    });
    let last = insts[at].defs().filter_map(|v| last_reads.get(&v)).max();
    last.map_or(at, |last| at.max(*last)) + 1
}

/// Which values are the same for threads that read them together.
struct Same<'a> {
    divergence: &'a Divergence,
    /// Indexed by value: the same for all threads of the warp.
    whole: Vec<bool>,
    /// Indexed by value: may be another one in each turn of a loop. Threads that are apart may meet in different turns.
    changes: Vec<bool>,
    /// The same for those that came to this place of the block together.
    here: Vec<Value>,
    is_together: bool,
}

impl Same<'_> {
    fn holds(&self, src: Src) -> bool {
        match (src.kind, src.value()) {
            (SrcKind::Imm(_), _) => true,
            (_, Some(v)) => {
                let same = !self.divergence.is_divergent(v) || self.whole[v.index()];
                same && (self.is_together || !self.changes[v.index()]) || self.here.contains(&v)
            }
            _ => false,
        }
    }

    /// Results computed from equal values are equal.
    fn pass(&mut self, inst: &Inst) {
        let equal = effect(&inst.op) == Effect::None
            && inst.uses().any(|src| src.value().is_some_and(|v| self.whole[v.index()]))
            && inst
                .uses()
                .filter_map(|src| src.value())
                .all(|v| !self.divergence.is_divergent(v) || self.whole[v.index()]);
        if equal {
            inst.defs().for_each(|v| self.whole[v.index()] = true);
        }
    }
}

/// Lets operations of a warp that is together begin without waiting, as far as their masks do not part it, and brings
/// the threads of others together at barriers of the block. `comes_together`: at the start of the block.
pub(super) fn settle_waits(func: &mut Function, b: BlockId, comes_together: bool) {
    let waits = |inst: &Inst| matches!(inst.op, Op::Warpsync { .. } | Op::Bar { .. });
    if !func.block(b).insts.iter().any(waits) {
        return;
    }
    let mut insts = std::mem::take(&mut func.block_mut(b).insts).into_iter().peekable();
    let mut settled = Vec::with_capacity(insts.len());
    let mut is_together = comes_together;
    while let Some(mut inst) = insts.next() {
        is_together &= comes_together || !inst.op.is_call();
        match inst.op {
            Op::Warpsync { .. } => {}
            Op::Bar { mode } if !is_together => {
                settled.extend(meet_anywhere(func, &inst, mode));
                continue;
            }
            _ => {
                settled.push(inst);
                continue;
            }
        }
        let next = insts.peek().filter(|next| next.src == inst.src);
        let is_needless = match next.map(|next| next.op) {
            _ if inst.guard != Src::TRUE => {
                is_together = comes_together;
                false
            }
            // Each thread says whose value it reads, and those are here.
            Some(Op::Shfl { .. }) if is_together => true,
            Some(op) if unites_threads(&op) => {
                let is_needless = is_together && is_full(&inst);
                // All threads execute it here, and go on together; groups that a mask names part.
                is_together = comes_together || is_full(&inst);
                is_needless
            }
            // It stands for `bar.warp.sync`, orders memory, and stays.
            _ if comes_together => {
                inst.op = Op::Warpsync { exclusive: false };
                inst.srcs[0] = Src::imm(u32::MAX);
                false
            }
            _ => {
                is_together &= is_full(&inst);
                false
            }
        };
        if !is_needless {
            settled.push(inst);
        }
    }
    func.block_mut(b).insts = settled;
}

/// A barrier of the block to which other threads of the warp may come at another place: a routine is one place for all.
fn meet_anywhere(func: &mut Function, bar: &Inst, mode: BarMode) -> Vec<Inst> {
    let routine = match mode {
        BarMode::Sync | BarMode::SyncAligned => Routine::BarrierSync,
        BarMode::Arv => Routine::BarrierArrive,
        BarMode::RedPopc => Routine::BarrierCount,
        BarMode::RedAnd => Routine::BarrierAll,
        BarMode::RedOr => Routine::BarrierAny,
    };
    let mut insts = Vec::new();
    let word = |i: usize| bar.srcs.get(i).copied().unwrap_or(Src::ZERO);
    let mut call = Inst::new(Op::CallRoutine { routine }, &[], &[word(0), word(1)], bar.src);
    if let Some(&holds) = bar.srcs.get(2) {
        let bit = func.new_value(File::R, 1);
        insts.push(Inst::new(Op::Sel, &[Dst::Value(bit)], &[Src::imm(1), Src::ZERO, holds], bar.src));
        call.srcs.push(bit.into());
    }
    insts.extend(routines::called(func, &call, routine));
    insts
}
