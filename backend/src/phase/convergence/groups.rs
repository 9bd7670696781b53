//! Operations of the warp whose mask is not the same for all threads: each group of threads with the same mask
//! continues by itself.

use super::waits::{has_known_mask, is_full};
use crate::ori::cfg::Cfg;
use crate::ori::divergence::Divergence;
use crate::ori::dominators::Tree;
use crate::ori::ir::{BlockId, Dst, File, Function, Inst, Src, SrcKind, Value};
use crate::ori::loops::Loops;
use crate::ori::memory::{Effect, effect};
use crate::ori::op::{BarMode, Bool, ICmp, MatchMode, Op, Routine, ShflMode, Sign, VoteMode};
use crate::ori::operations::facts;
use crate::phase::edit::known;
use crate::phase::routines;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::ops::Range;

/// The places where a warp may be separated into groups by masks.
pub(super) struct Groups {
    /// Blocks that wait with a mask that is not the same for all threads, and in which threads may already be apart.
    pub parting: Vec<BlockId>,
    /// Operations whose mask is not the same for all threads, and before which the warp is together. Each is a range of
    /// instructions of a block, which begins with its `WARPSYNC`. They are in the order of control flow.
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
            // Whether the mask of the next operation is the same for all threads that execute it.
            let mut one_mask = true;
            for (i, inst) in insts.iter().enumerate() {
                match inst.op {
                    Op::Warpsync { .. } => {
                        let mask = inst.srcs.first().copied().unwrap_or(Src::UNDEF);
                        one_mask = same.holds(mask);
                        // Other threads that wait here have the same mask, but may have other values of everything
                        // else.
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

/// Whether the result depends on which threads execute the operation together. The result of a shuffle does not: each
/// thread states whose value it reads.
fn asks_threads(op: &Op) -> bool {
    let facts = facts(op);
    facts.convergent
        && !matches!(op, Op::Shfl { .. })
        && matches!(facts.effect, Effect::Warp { .. } | Effect::Memory(_))
}

/// The whole warp changes its number of registers.
fn changes_registers(op: &Op) -> bool {
    matches!(op, Op::GiveRegisters { .. } | Op::TakeRegisters { .. })
}

/// Whether threads that wait for each other at the operation continue together. At `bar.warp.sync` they need not: some
/// may wait at another `bar.warp.sync`.
fn unites_threads(op: &Op) -> bool {
    matches!(op, Op::Shfl { .. } | Op::Bar { .. }) || asks_threads(op) || changes_registers(op)
}

/// Whether all threads of the warp execute an operation of the block together, and nothing in the block separates them
/// after it.
pub(super) fn unites(func: &Function, b: BlockId, elsewhere: &FxHashSet<(BlockId, Op)>) -> bool {
    let insts = &func.block(b).insts;
    let mut are_together = false;
    for (i, inst) in insts.iter().enumerate() {
        let next = insts.get(i + 1).filter(|next| next.src == inst.src).map(|next| next.op);
        match inst.op {
            Op::Warpsync { .. } if is_full(inst) => {
                are_together |= next.is_some_and(|op| unites_threads(&op) && !elsewhere.contains(&(b, op)));
            }
            // A shuffle of threads that are already together does not wait.
            Op::Warpsync { .. } => are_together &= matches!(next, Some(Op::Shfl { .. })),
            op => are_together &= !op.is_call(),
        }
    }
    are_together
}

/// The position after an operation. If it has a result in a uniform register, which all groups share: the position
/// after the last instruction of the block that reads this result.
fn end_of(insts: &[Inst], at: usize, last_reads: &mut Option<FxHashMap<Value, usize>>) -> usize {
    if !insts[at].op.reduces_group() {
        return at + 1;
    }
    let last_reads = last_reads.get_or_insert_with(|| {
        let values =
            |inst: &Inst| inst.uses().filter_map(|src| src.value()).collect::<SmallVec<[Value; 4]>>();
        // The last position of a value replaces the earlier ones.
        insts.iter().enumerate().flat_map(|(i, inst)| values(inst).into_iter().map(move |v| (v, i))).collect()
    });
    let last = insts[at].defs().filter_map(|v| last_reads.get(&v)).max();
    last.map_or(at, |last| at.max(*last)) + 1
}

/// The values that are the same for all threads that read them together.
struct Same<'a> {
    divergence: &'a Divergence,
    /// Indexed by value: it is the same for all threads of the warp.
    whole: Vec<bool>,
    /// Indexed by value: it may change in each iteration of a loop. Threads that are apart may meet in different
    /// iterations.
    changes: Vec<bool>,
    /// Values that are the same for the threads that have reached this point of the block together.
    here: Vec<Value>,
    /// Whether all threads of the warp are together in this block.
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

    /// If the operands of an instruction are the same for all threads of the warp, so are its results.
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

/// Whether [`settle_waits`] may change the instruction.
pub(super) fn waits(inst: &Inst) -> bool {
    matches!(inst.op, Op::Warpsync { .. } | Op::Bar { .. })
}

/// Removes the `WARPSYNC` before operations where the warp is together, unless a mask may separate it. Replaces
/// barriers of the block by calls of a routine where threads of the warp may be apart. `comes_together`: the warp is
/// together at the start of the block. `elsewhere`: operations that threads may execute together with threads at
/// another place. Returns the positions in the block of the `WARPSYNC`s before such operations, where threads may be
/// apart.
pub(super) fn settle_waits(
    func: &mut Function,
    b: BlockId,
    comes_together: bool,
    elsewhere: &FxHashSet<(BlockId, Op)>,
) -> Vec<usize> {
    let mut apart = Vec::new();
    if !func.block(b).insts.iter().any(waits) {
        return apart;
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
        let pairs = |next: &&Inst| !is_together && elsewhere.contains(&(b, next.op));
        if inst.guard.is_true() && next.filter(pairs).is_some_and(|next| next.guard.is_true()) {
            apart.push(settled.len());
            settled.push(inst);
            settled.extend(insts.next());
            continue;
        }
        let is_needless = match next.map(|next| next.op) {
            _ if inst.guard != Src::TRUE => {
                is_together = comes_together;
                false
            }
            // Each thread states whose value it reads, and no thread is missing.
            Some(Op::Shfl { .. }) if is_together => true,
            // This `WARPSYNC` stays, as in ptxas's code.
            Some(op) if changes_registers(&op) => {
                is_together = true;
                false
            }
            Some(op) if unites_threads(&op) => {
                // A constant mask forms no groups.
                let is_needless = is_together && has_known_mask(&inst);
                // With the full mask, all threads execute the operation here and continue together. Another mask may
                // leave threads apart.
                is_together = comes_together || is_needless || is_full(&inst);
                is_needless
            }
            // This `WARPSYNC` is a `bar.warp.sync`. It stays, because it also orders memory accesses.
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
    apart
}

/// Replaces a barrier of the block, at which some threads of the warp may wait while others wait at another barrier, by
/// a call of a routine. In the routine, all of them are at the same instruction.
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

/// Finds operations that threads at different places may have to execute together: an equal operation exists elsewhere,
/// and neither always precedes the other. The hardware executes an operation only for threads at the same instruction.
pub(super) fn pairs_elsewhere(func: &Function, dom: &Tree) -> FxHashSet<(BlockId, Op)> {
    let mut places: Vec<(BlockId, Op, Option<u32>)> = Vec::new();
    let mut numbers: FxHashMap<Op, usize> = FxHashMap::default();
    // An unknown mask may be equal to any other mask.
    let mut has_unknown: FxHashSet<Op> = FxHashSet::default();
    for &b in &dom.preorder {
        for pair in func.block(b).insts.windows(2) {
            let is_one = matches!(pair[0].op, Op::Warpsync { .. }) && pair[0].src == pair[1].src;
            if is_one && has_routine(&pair[1].op) {
                let mask = pair[0].srcs.first().and_then(known);
                let next = numbers.len();
                numbers.entry(pair[1].op).or_insert(next);
                if mask.is_none() {
                    has_unknown.insert(pair[1].op);
                }
                places.push((b, pair[1].op, mask));
            }
        }
    }
    // For each operation and mask: its blocks, in preorder of the dominator tree.
    let mut alike: BTreeMap<(usize, Option<u32>), (Op, Vec<BlockId>)> = BTreeMap::new();
    for (b, op, mask) in places {
        let key = (numbers[&op], mask.filter(|_| !has_unknown.contains(&op)));
        let (_, blocks) = alike.entry(key).or_insert((op, Vec::new()));
        if blocks.last() != Some(&b) {
            blocks.push(b);
        }
    }
    let mut found = FxHashSet::default();
    for (op, blocks) in alike.into_values() {
        let mut before: Vec<BlockId> = Vec::new();
        for (i, &b) in blocks.iter().enumerate() {
            while before.pop_if(|other| !dom.dominates(*other, b)).is_some() {}
            let after = blocks[i + 1..].partition_point(|other| dom.dominates(b, *other));
            if before.len() + 1 + after < blocks.len() {
                found.insert((b, op));
            }
            before.push(b);
        }
    }
    found
}

/// Whether a routine can execute the operation for threads at different places.
fn has_routine(op: &Op) -> bool {
    matches!(op, Op::Vote { .. } | Op::Shfl { .. } | Op::Match { .. }) || op.reduces_group()
}

/// The instructions that execute an operation in a routine, in which threads are at the same instruction wherever they
/// call it. `meet` is the `WARPSYNC` with the mask of the operation. `None` if there is no routine for it.
pub(super) fn meet_elsewhere(func: &mut Function, meet: &Inst, inst: &Inst) -> Option<Vec<Inst>> {
    let mask = *meet.srcs.first()?;
    let at = inst.src;
    let mut insts = Vec::new();
    let (routine, srcs): (Routine, SmallVec<[Src; 4]>) = match inst.op {
        Op::Vote { .. } => {
            let bit = func.new_value(File::R, 1);
            insts.push(Inst::new(
                Op::Sel,
                &[Dst::Value(bit)],
                &[Src::imm(1), Src::ZERO, *inst.srcs.first()?],
                at,
            ));
            (Routine::WarpBallots, smallvec::smallvec![bit.into(), mask])
        }
        Op::Shfl { mode } => {
            let routine = match mode {
                ShflMode::Idx => Routine::ShuffleIdx,
                ShflMode::Up => Routine::ShuffleUp,
                ShflMode::Down => Routine::ShuffleDown,
                ShflMode::Bfly => Routine::ShuffleBfly,
            };
            let [word, lane, clamp] = inst.srcs[..] else { return None };
            (routine, smallvec::smallvec![word, lane, clamp, mask])
        }
        Op::Match { wide: false, .. } => (Routine::MatchWord, smallvec::smallvec![*inst.srcs.first()?, mask]),
        Op::Match { wide: true, .. } => {
            let pair = inst.srcs.first()?.value()?;
            let [low, high] = [0, 1].map(|part| Src::new(SrcKind::Part(pair, part)));
            (Routine::MatchPair, smallvec::smallvec![low, high, mask])
        }
        Op::Elect => (Routine::Elect, smallvec::smallvec![mask]),
        reduction => (Routine::of_reduction(reduction)?, smallvec::smallvec![*inst.srcs.first()?, mask]),
    };
    let asked = |i: usize| inst.dsts.get(i).copied().filter(|dst| matches!(dst, Dst::Value(_)));
    let [first, second] = [(); 2].map(|()| func.new_value(File::R, 1));
    let call = Inst::new(Op::CallRoutine { routine }, &[Dst::Value(first), Dst::Value(second)], &srcs, at);
    insts.extend(routines::called(func, &call, routine));
    let compare = |cmp, a: Value, b: Src, bool_, last: Src, dst: Dst| {
        let op = Op::Isetp { cmp, sign: Sign::U32, bool_, ex: false };
        Inst::new(op, &[dst, Dst::Sink], &[a.into(), b, last], at)
    };
    let is_equal = |a: Value, b: Src, dst: Dst| compare(ICmp::Eq, a, b, Bool::And, Src::TRUE, dst);
    let is_set = |a: Value, dst: Dst| compare(ICmp::Ne, a, Src::ZERO, Bool::And, Src::TRUE, dst);
    let copy = |from: Value, dst: Dst| Inst::new(Op::Copy, &[dst], &[from.into()], at);
    match inst.op {
        Op::Elect => {
            insts.extend(asked(0).map(|chosen| is_set(first, chosen)));
            insts.extend(asked(1).map(|lane| copy(second, lane)));
        }
        Op::Match { mode: MatchMode::All, .. } => {
            let all = func.new_value(File::P, 1);
            insts.push(is_equal(first, second.into(), Dst::Value(all)));
            let mask = |dst| Inst::new(Op::Sel, &[dst], &[first.into(), Src::ZERO, all.into()], at);
            insts.extend(asked(0).map(mask));
            insts.extend(asked(1).map(|dst| Inst::new(Op::Copy, &[dst], &[all.into()], at)));
        }
        _ => {
            insts.extend(asked(0).map(|word| copy(first, word)));
            insts.extend(asked(1).into_iter().flat_map(|dst| match inst.op {
                // `first` is the mask of the threads for which the predicate is true, `second` the mask of the others.
                Op::Vote { mode: VoteMode::Any } => vec![is_set(first, dst)],
                Op::Vote { mode: VoteMode::All } => vec![is_equal(second, Src::ZERO, dst)],
                Op::Vote { mode: VoteMode::Eq } => {
                    let none = func.new_value(File::P, 1);
                    let is_one = compare(ICmp::Eq, second, Src::ZERO, Bool::Or, none.into(), dst);
                    vec![is_equal(first, Src::ZERO, Dst::Value(none)), is_one]
                }
                Op::Shfl { .. } => vec![is_set(second, dst)],
                _ => Vec::new(),
            }));
        }
    }
    Some(insts)
}
