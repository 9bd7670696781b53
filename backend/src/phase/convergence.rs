//! Brings diverged threads of a warp together again: `BSSY` sets a barrier before they diverge, and they wait for it
//! with `BSYNC` where they meet.
//!
//! Threads that diverge at a branch `b` meet at its immediate post-dominator `d`. There is one barrier per `d`. It is
//! set at the end of a block `p` that
//!
//! - dominates `d`, so that every thread that waits has set the barrier;
//! - is post-dominated by `d`, so that every thread that has set the barrier reaches `d` (a thread that ends is removed
//!   from the mask);
//! - is in the same loops as `d`, so that setting and waiting alternate.
//!
//! `p` is `b` itself, or the preheader of the outermost loop that contains `b` but not `d`. If other paths lead to `d`
//! without passing `p`, a dominator of `p` is used instead. A thread must not wait at `d` if other threads need it
//! before they reach `d`. If no place meets these conditions, the threads meet further outwards or stay apart, which is
//! slower but correct. See `docs/convergence.md`.
//!
//! Outside divergent regions, an operation of the warp needs no `WARPSYNC` with a constant mask before it. This phase
//! removes it.

use crate::CodegenError;
use crate::input::SrcId;
use crate::ori::analyses::Analyses;
use crate::ori::cfg::{Cfg, for_each_successor};
use crate::ori::ir::{BlockId, Dst, File, Function, Inst, Phi, Src, SrcKind, Term, Value};
use crate::ori::op::{Bool, ICmp, Meeting, Op, Sign, VoteMode, lut};
use crate::ori::operations::facts;
use crate::ori::signature::signature;
use crate::phase::branches::decide_known;
use crate::phase::edit::split;
use crate::phases::{Change, Context};
use plan::{Barrier, Plan};
use rustc_hash::{FxHashMap, FxHashSet};
use spins::Spin;
use std::ops::Range;
use waits::{has_known_mask, is_full};

mod apart;
mod groups;
mod plan;
mod spins;
mod waits;

/// The round in which no more blocks may be requested. Each earlier round may request blocks that the barriers of the
/// next round need, for one level of loops at a time.
const ROUNDS: usize = 16;

pub fn run(func: &mut Function, context: &Context<'_>) -> Result<Change, CodegenError> {
    // Emission omits the side of a branch that is never taken. So the code that becomes unreachable must be known here.
    let mut changed = decide_known(func);
    let mut round = 1;
    loop {
        (context.checkpoint)();
        let own = Analyses::default();
        let analyses = if changed { &own } else { context.analyses };
        let plan = Plan::new(func, analyses, round >= ROUNDS);
        if !plan.preheaders.is_empty() || !plan.latches.is_empty() {
            let cfg = Cfg::new(func);
            let mut layout = NewLayout::new(func);
            // The current predecessors of each header. `cfg` does not have the new blocks; otherwise it stays valid.
            let mut joined: FxHashMap<BlockId, Vec<BlockId>> = FxHashMap::default();
            let mut join = |header: BlockId, takes: &dyn Fn(BlockId) -> bool| {
                let preds = joined.entry(header).or_insert_with(|| cfg.preds(header).to_vec());
                let sources: Vec<BlockId> = preds.iter().copied().filter(|p| takes(*p)).collect();
                preds.retain(|p| !takes(*p));
                let new = join_edges(func, header, &sources, takes);
                layout.add(new, header, &sources);
                preds.push(new);
            };
            for (header, inside) in plan.preheaders {
                let inside: FxHashSet<BlockId> = inside.into_iter().collect();
                join(header, &|from| !inside.contains(&from));
            }
            for (header, inside) in plan.latches {
                let inside: FxHashSet<BlockId> = inside.into_iter().collect();
                join(header, &|from| inside.contains(&from));
            }
            layout.finish(func);
            changed = true;
            round += 1;
            continue;
        }
        // Threads may be apart after a `YIELD`, so other loops may need one too. Each loop gets only one.
        if !plan.spins.is_empty() {
            plan.spins.into_iter().for_each(|spin| let_yield(func, spin));
            changed = true;
            continue;
        }
        let (mut barriers, mut meetings) = (plan.barriers, plan.meetings);
        let (mut diverged, mut elsewhere) = (plan.diverged, plan.elsewhere);
        let parts = bracket(func, &plan.brackets, &mut barriers);
        diverged.resize(func.blocks.len(), false);
        for (part, of) in parts {
            diverged[part.index()] = diverged[of.index()];
            let ops: Vec<Op> = elsewhere.iter().filter(|(b, _)| *b == of).map(|(_, op)| *op).collect();
            elsewhere.extend(ops.into_iter().map(|op| (part, op)));
        }
        meetings.resize(barriers.len(), Meeting::Firm);
        place_barriers(func, &barriers, &meetings)?;
        changed |= !barriers.is_empty();
        let mut apart = Vec::new();
        for b in func.layout.clone() {
            changed |= func.block(b).insts.iter().any(groups::waits);
            let places = groups::settle_waits(func, b, !diverged[b.index()], &elsewhere);
            if !places.is_empty() {
                apart.push((b, places));
            }
        }
        meet_elsewhere(func, &apart);
        return Ok(Change::of(changed));
    }
}

/// Inserts a `YIELD` before each further iteration of a loop, or at the start of a block.
fn let_yield(func: &mut Function, spin: Spin) {
    let (at, place) = match spin {
        Spin::Block(b) => (b, 0),
        Spin::Loop(header, latches) => match latches[..] {
            [latch] if matches!(func.block(latch).term, Term::Jump(_)) => {
                (latch, func.block(latch).insts.len())
            }
            _ => {
                let new = join_edges(func, header, &latches, &|from| latches.contains(&from));
                // The block goes to the end of the layout, because often no second iteration is needed.
                func.layout.push(new);
                (new, 0)
            }
        },
    };
    let src = func.block(at).term_src;
    func.block_mut(at).insts.insert(place, Inst::new(Op::Yield, &[], &[], src));
}

/// Redirects the edges from `sources` to `to` through one new block, and returns this block, which is not in the layout
/// yet. `sources` are the reachable predecessors of `to` for which `takes` is true.
fn join_edges(
    func: &mut Function,
    to: BlockId,
    sources: &[BlockId],
    takes: &dyn Fn(BlockId) -> bool,
) -> BlockId {
    let new = func.new_block();
    func.block_mut(new).term = Term::Jump(to);
    func.block_mut(new).term_src = func.block(to).term_src;
    let mut phis = std::mem::take(&mut func.block_mut(to).phis);
    for phi in &mut phis {
        let (moved, mut kept): (Vec<_>, Vec<_>) = phi.args.drain(..).partition(|(from, _)| takes(*from));
        let same =
            moved.first().map(|(_, src)| *src).filter(|first| moved.iter().all(|(_, src)| src == first));
        let joined = match same {
            Some(src) => src,
            None => {
                let data = func.value(phi.dst);
                let dst = func.new_value(data.file, data.width);
                func.block_mut(new).phis.push(Phi { dst, args: moved });
                dst.into()
            }
        };
        kept.push((new, joined));
        phi.args = kept;
    }
    func.block_mut(to).phis = phis;
    for from in sources {
        retarget(&mut func.block_mut(*from).term, to, new);
    }
    new
}

/// The layout of a function, with new blocks that are to be inserted.
struct NewLayout {
    /// Indexed by block: its position in the old layout.
    place: Vec<Option<usize>>,
    /// Indexed by position in the old layout: the new blocks before the old block, and after it.
    before: Vec<Vec<BlockId>>,
    after: Vec<Vec<BlockId>>,
}

impl NewLayout {
    fn new(func: &Function) -> NewLayout {
        let mut place = vec![None; func.blocks.len()];
        func.layout.iter().enumerate().for_each(|(i, b)| place[b.index()] = Some(i));
        let count = func.layout.len();
        NewLayout { place, before: vec![Vec::new(); count], after: vec![Vec::new(); count] }
    }

    /// Inserts a new block between `sources` and `to`. If one of the sources is right before `to`, the new block goes
    /// between them, else after the last source.
    fn add(&mut self, new: BlockId, to: BlockId, sources: &[BlockId]) {
        let place = |b: &BlockId| self.place.get(b.index()).copied().flatten();
        let at = place(&to).unwrap_or(0);
        let last = sources.iter().filter_map(place).max();
        let above = at > 0 && sources.iter().filter_map(place).any(|source| source == at - 1);
        match last {
            Some(last) if !above => self.after[last].push(new),
            // The entry block must stay first.
            _ if at == 0 => self.after[0].push(new),
            _ => self.before[at].push(new),
        }
    }

    /// Inserts a new block right after the block `b`, before new blocks that were inserted there earlier.
    fn add_after(&mut self, b: BlockId, new: BlockId) {
        if let Some(place) = self.place[b.index()] {
            self.after[place].push(new);
        }
    }

    fn finish(self, func: &mut Function) {
        let old = std::mem::take(&mut func.layout);
        for ((b, before), after) in old.into_iter().zip(self.before).zip(self.after) {
            func.layout.extend(before);
            func.layout.push(b);
            // The block that was inserted last comes first.
            func.layout.extend(after.into_iter().rev());
        }
    }
}

/// Replaces the target `old` of a terminator by `new`.
pub(super) fn retarget(term: &mut Term, old: BlockId, new: BlockId) {
    let change = |b: &mut BlockId| {
        if *b == old {
            *b = new;
        }
    };
    match term {
        Term::Jump(b) => change(b),
        Term::Branch { then, els, .. } => {
            change(then);
            change(els);
        }
        Term::Switch { targets, .. } => targets.iter_mut().for_each(change),
        Term::Exit | Term::Ret | Term::Unreachable => {}
    }
}

/// Inserts `BSSY` and `BSYNC` for each barrier. `meetings` has the same indices as `barriers`.
fn place_barriers(
    func: &mut Function,
    barriers: &[Barrier],
    meetings: &[Meeting],
) -> Result<(), CodegenError> {
    check_registers(func, barriers)?;
    for (barrier, &meeting) in barriers.iter().zip(meetings) {
        let value = func.new_value(File::B, 1);
        let place = func.block_mut(barrier.place);
        let src = place.term_src;
        place.insts.push(Inst::new(
            Op::Bssy { target: barrier.meet, meeting },
            &[Dst::Value(value)],
            &[],
            src,
        ));
        let meet = func.block_mut(barrier.meet);
        let src = meet.insts.first().map_or(meet.term_src, |inst| inst.src);
        meet.insts.insert(0, Inst::new(Op::Bsync { meeting }, &[], &[value.into()], src));
    }
    Ok(())
}

/// Refuses functions in which more barriers are set at the same time than there are barrier registers.
fn check_registers(func: &Function, barriers: &[Barrier]) -> Result<(), CodegenError> {
    let most = func.barriers();
    if barriers.len() <= usize::from(most) {
        return Ok(());
    }
    let depths = depths(func, barriers);
    match func.layout.iter().find(|b| depths[b.index()] > most) {
        Some(b) => {
            let at = func.block(*b).insts.first().map_or(SrcId::default(), |inst| inst.src);
            let reason = format!("divergent regions nested more than {most} deep here");
            Err(CodegenError::unsupported(at, reason))
        }
        None => Ok(()),
    }
}

/// Indexed by block: the number of barriers whose regions contain it.
fn depths(func: &Function, barriers: &[Barrier]) -> Vec<u16> {
    let mut depths = vec![0u16; func.blocks.len()];
    let mut seen = vec![u32::MAX; func.blocks.len()];
    for (i, barrier) in barriers.iter().enumerate() {
        for b in region(func, barrier, &mut seen, i as u32) {
            depths[b.index()] = depths[b.index()].saturating_add(1);
        }
    }
    depths
}

/// The blocks of a barrier's region: after the block that sets it, and before its meeting point. `seen` is scratch
/// space, indexed by block; no element may be equal to `walk`.
fn region(func: &Function, barrier: &Barrier, seen: &mut [u32], walk: u32) -> Vec<BlockId> {
    let mut region = Vec::new();
    let mut enter = |from: BlockId, region: &mut Vec<BlockId>| {
        for_each_successor(func, from, |to| {
            if to != barrier.meet && std::mem::replace(&mut seen[to.index()], walk) != walk {
                region.push(to);
            }
        });
    };
    enter(barrier.place, &mut region);
    let mut next = 0;
    while let Some(&at) = region.get(next) {
        enter(at, &mut region);
        next += 1;
    }
    region
}

/// Moves each of these ranges of instructions to a block of its own, and adds a barrier around it. Returns the new blocks,
/// each with the block that it was a part of.
fn bracket(
    func: &mut Function,
    brackets: &[(BlockId, Range<usize>)],
    barriers: &mut Vec<Barrier>,
) -> Vec<(BlockId, BlockId)> {
    let mut parts = Vec::new();
    let mut layout = NewLayout::new(func);
    let mut set_in: FxHashMap<BlockId, Vec<usize>> = FxHashMap::default();
    for (i, barrier) in barriers.iter().enumerate() {
        set_in.entry(barrier.place).or_default().push(i);
    }
    // In reverse order, so that earlier operations of a block keep their positions.
    for (b, range) in brackets.iter().rev() {
        let after = split(func, *b, range.end);
        let group = split(func, *b, range.start);
        layout.add_after(*b, after);
        layout.add_after(*b, group);
        // Barriers that were set at the end of the block are now set at the end of the part that was split off.
        for i in set_in.insert(*b, vec![barriers.len()]).unwrap_or_default() {
            barriers[i].place = after;
        }
        barriers.push(Barrier { place: *b, meet: after });
        parts.extend([(group, *b), (after, *b)]);
        debug_assert!(func.block(group).phis.is_empty());
    }
    layout.finish(func);
    parts
}

/// Lets threads execute operations of the warp together with threads at another place. `apart`: blocks, each with the
/// positions of the `WARPSYNC`s before these operations. If all threads of the mask are present, the operation is
/// executed in place, otherwise in a routine.
fn meet_elsewhere(func: &mut Function, apart: &[(BlockId, Vec<usize>)]) {
    let mut layout = NewLayout::new(func);
    let mut far = Vec::new();
    for (b, places) in apart {
        // For each operation: a predicate that is true if all threads of its mask are present, and whether the
        // predicate is computed right before the operation. Several operations share a predicate if nothing between
        // them may separate the threads.
        let mut asked: Vec<(Value, bool)> = Vec::new();
        // Whether threads that the mask does not name may take part.
        let admits_others =
            |insts: &[Inst], at: usize| has_known_mask(&insts[at]) || is_shuffle(&insts[at + 1]);
        for (i, &at) in places.iter().enumerate() {
            let insts = &func.block(*b).insts;
            let parts = |inst: &Inst| match inst.op {
                Op::Warpsync { .. } => inst.srcs[0] != insts[at].srcs[0],
                op => op.is_call() || facts(&op).waits,
            };
            let is_alike = |before: usize| admits_others(insts, before) == admits_others(insts, at);
            let holds = i > 0 && is_alike(places[i - 1]) && !insts[places[i - 1]..at].iter().any(parts);
            asked.push(match asked.last() {
                Some(&(known, _)) if holds => (known, false),
                _ => (func.new_value(File::P, 1), true),
            });
        }
        // In reverse order, so that earlier operations of the block keep their positions.
        for (i, &at) in places.iter().enumerate().rev() {
            let wait = func.block(*b).insts[at].clone();
            let inst = func.block(*b).insts[at + 1].clone();
            let (near_results, slow_results) = (own_results(func, &inst), own_results(func, &inst));
            let near_insts = done_here(func, &inst, &near_results);
            let there = Inst { dsts: slow_results.iter().copied().collect(), ..inst.clone() };
            let Some(called) = groups::meet_elsewhere(func, &wait, &there) else { continue };
            let after = split(func, *b, at + 2);
            let [near, slow] = [(); 2].map(|()| func.new_block());
            let mut phis = Vec::new();
            for (dst, (here, there)) in inst.dsts.iter().zip(near_results.into_iter().zip(slow_results)) {
                let (Dst::Value(dst), Dst::Value(here), Dst::Value(there)) = (*dst, here, there) else {
                    continue;
                };
                let dst =
                    if func.value(dst).file == File::UR { for_each_thread(func, after, dst) } else { dst };
                phis.push(Phi { dst, args: vec![(near, here.into()), (slow, there.into())] });
            }
            func.block_mut(after).phis = phis;
            for (block, insts) in [(near, near_insts), (slow, called)] {
                let block = func.block_mut(block);
                (block.insts, block.term, block.term_src) = (insts, Term::Jump(after), wait.src);
            }
            let (cond, is_first) = asked[i];
            let may_be_more = admits_others(&func.block(*b).insts, at) && !is_full(&wait);
            func.block_mut(*b).insts.truncate(at);
            if is_first {
                let insts = all_present(func, wait.srcs[0], may_be_more, cond, wait.src);
                func.block_mut(*b).insts.extend(insts);
            }
            let block = func.block_mut(*b);
            block.term = Term::Branch { cond: cond.into(), then: near, els: slow, uniform: false };
            block.term_src = wait.src;
            layout.add_after(*b, after);
            layout.add_after(*b, near);
            far.push(slow);
        }
    }
    layout.finish(func);
    func.layout.extend(far);
}

/// The instructions that compute `cond`: whether all threads that `mask` names are active, and no other thread unless
/// there `may_be_more`. Programs name fewer threads than execute the operation, which ptxas accepts. Only threads of
/// other groups with other masks must not take part.
fn all_present(func: &mut Function, mask: Src, may_be_more: bool, cond: Value, at: SrcId) -> Vec<Inst> {
    let active = func.new_value(File::R, 1);
    let mut insts =
        vec![Inst::new(Op::Vote { mode: VoteMode::Any }, &[Dst::Value(active)], &[Src::TRUE], at)];
    let mut equal = [active.into(), mask, Src::TRUE];
    if may_be_more {
        let missing = func.new_value(File::R, 1);
        let op = Op::Lop3 { lut: !lut::A & lut::B };
        insts.push(Inst::new(op, &[Dst::Value(missing)], &[active.into(), mask, Src::ZERO], at));
        equal = [missing.into(), Src::ZERO, Src::TRUE];
    }
    let op = Op::Isetp { cmp: ICmp::Eq, sign: Sign::U32, bool_: Bool::And, ex: false };
    insts.push(Inst::new(op, &[Dst::Value(cond), Dst::Sink], &equal, at));
    insts
}

fn is_shuffle(inst: &Inst) -> bool {
    matches!(inst.op, Op::Shfl { .. })
}

/// New results for a copy of an operation of the warp. General registers replace uniform registers.
fn own_results(func: &mut Function, inst: &Inst) -> Vec<Dst> {
    let own = |dst: &Dst| match *dst {
        Dst::Value(v) => {
            let data = func.value(v);
            let file = if data.file == File::UR { File::R } else { data.file };
            Dst::Value(func.new_value(file, data.width))
        }
        other => other,
    };
    inst.dsts.iter().map(own).collect()
}

/// The operation with these results. If the operation writes a uniform register, which the threads that execute it
/// together share, a copy to the result follows.
fn done_here(func: &mut Function, inst: &Inst, results: &[Dst]) -> Vec<Inst> {
    let mut insts = vec![inst.clone()];
    for (i, result) in results.iter().enumerate() {
        insts[0].dsts[i] = match inst.dsts[i] {
            Dst::Value(v) if func.value(v).file == File::UR => {
                let uniform = func.new_value(File::UR, func.value(v).width);
                insts.push(Inst::new(Op::Mov, &[*result], &[uniform.into()], inst.src));
                Dst::Value(uniform)
            }
            _ => *result,
        };
    }
    insts
}

/// Replaces a value that is the same only for threads that reach the block together: each thread gets its own value,
/// which is returned. Operands that must be in uniform registers read a copy of it.
fn for_each_thread(func: &mut Function, b: BlockId, uniform: Value) -> Value {
    let own = func.new_value(File::R, 1);
    let mut insts = std::mem::take(&mut func.block_mut(b).insts);
    let mut must_be_uniform = false;
    for inst in &mut insts {
        let signature = signature(&inst.op);
        let makes_uniform = inst.defs().any(|v| func.value(v).file == File::UR);
        for (i, src) in inst.srcs.iter_mut().enumerate().filter(|(_, src)| src.value() == Some(uniform)) {
            if makes_uniform || signature.srcs.get(i).is_some_and(|slot| slot.file == File::UR) {
                must_be_uniform = true;
            } else {
                src.kind = SrcKind::Value(own);
            }
        }
    }
    let block = func.block_mut(b);
    block.insts = insts;
    if must_be_uniform {
        let at = block.term_src;
        block.insts.insert(0, Inst::new(Op::R2ur, &[Dst::Value(uniform)], &[own.into()], at));
    }
    own
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::Known;
    use crate::ori::op::{ReduxOp, Routine};
    use crate::ori::text;
    use expect_test::{Expect, expect};

    fn check(body: &str, expected: Expect) {
        check_lines(body, |line| line.contains("BS") || line.contains("JUMP"), expected);
    }

    /// Checks the labels and the lines that `shows` chooses.
    fn check_lines(body: &str, shows: impl Fn(&str) -> bool, expected: Expect) {
        expected.assert_eq(&lines(body, shows));
    }

    fn lines(body: &str, shows: impl Fn(&str) -> bool) -> String {
        let mut func = text::parse(&format!("entry \"f\" {{\n{body}\n}}")).unwrap();
        run(&mut func, &Context::of(90, &Analyses::default())).unwrap();
        crate::ori::verify::verify(&func, crate::ori::verify::Stage::Built).unwrap();
        let text = text::print(&func);
        let lines: Vec<&str> = text.lines().filter(|line| line.ends_with(':') || shows(line)).collect();
        lines.join("\n")
    }

    const DIVERGENT: &str = "b0:\n%v0:r = S2R{sr=0x21}\n%v1:p = ISETP.LT.AND %v0, 0x5, PT\n";

    #[test]
    fn a_triangle_has_one_barrier() {
        check(
            &format!("{DIVERGENT} BRA %v1, b1, b2\nb1:\nSTS RZ, RZ, RZ\nJUMP b2\nb2:\nSTS RZ, RZ, RZ\nEXIT"),
            expect![[r#"
                b0:
                  %v2:b = BSSY{target=b2}
                b1:
                  JUMP b2
                b2:
                  BSYNC %v2"#]],
        );
    }

    #[test]
    fn an_early_exit_needs_none() {
        check(
            &format!("{DIVERGENT} BRA %v1, b2, b1\nb1:\nSTS RZ, RZ, RZ\nJUMP b2\nb2:\nEXIT"),
            expect![[r#"
            b0:
            b1:
              JUMP b2
            b2:"#]],
        );
    }

    /// Threads that leave the inner region to end would wait at the outer barrier for the threads at the inner barrier,
    /// which wait for them.
    #[test]
    fn threads_never_meet_where_they_only_end() {
        for end in ["EXIT", "UNREACHABLE"] {
            check(
                &format!(
                    "{DIVERGENT} BRA %v1, b1, b5\nb1:\nSTS RZ, RZ, RZ\nBRA %v1, b2, b4\nb2:\nSTS RZ, RZ, RZ\nBRA %v1, b6, b3
                    b3:\nSTS RZ, RZ, RZ\nJUMP b4\nb4:\nSTS RZ, RZ, RZ\nJUMP b6\nb5:\nSTS RZ, RZ, RZ\nJUMP b6\nb6:\n{end}"
                ),
                expect![[r#"
                    b0:
                    b1:
                      %v2:b = BSSY{target=b4}
                    b2:
                    b3:
                      JUMP b4
                    b4:
                      BSYNC %v2
                      JUMP b6
                    b5:
                      JUMP b6
                    b6:"#]],
            );
        }
    }

    #[test]
    fn a_loop_left_at_different_times_is_set_before_it() {
        check(
            &format!("{DIVERGENT} JUMP b1\nb1:\nSTS RZ, RZ, RZ\nBRA %v1, b1, b2\nb2:\nSTS RZ, RZ, RZ\nEXIT"),
            expect![[r#"
                b0:
                  %v2:b = BSSY{target=b2}
                  JUMP b1
                b1:
                b2:
                  BSYNC %v2"#]],
        );
    }

    #[test]
    fn short_circuits_share_the_outer_barrier() {
        check(
            &format!(
                "{DIVERGENT} BRA %v1, b1, b3\nb1:\nBRA %v1, b2, b3\nb2:\nSTS RZ, RZ, RZ\nJUMP b3\nb3:\nSTS RZ, RZ, RZ\nEXIT"
            ),
            expect![[r#"
                b0:
                  %v2:b = BSSY{target=b3}
                b1:
                b2:
                  JUMP b3
                b3:
                  BSYNC %v2"#]],
        );
    }

    #[test]
    fn branches_back_and_on_meet_in_a_common_latch() {
        check(
            &format!(
                "{DIVERGENT} JUMP b1\nb1:\n%v2:p = ISETP.LT.AND c[0x0][0x160], RZ, PT\nBRA.U %v2, b4, b5\nb5:\nBRA %v1, b2, b3
                b2:\nSTS RZ, RZ, RZ\nJUMP b1\nb3:\nJUMP b1\nb4:\nSTS RZ, RZ, RZ\nEXIT"
            ),
            expect![[r#"
                b0:
                  JUMP b1
                b1:
                b5:
                  %v3:b = BSSY{target=b6}
                b2:
                  JUMP b6
                b3:
                  JUMP b6
                b6:
                  BSYNC %v3
                  JUMP b1
                b4:"#]],
        );
    }

    #[test]
    fn a_loop_inside_a_loop_with_the_same_header_is_set_before_it() {
        check(
            &format!(
                "{DIVERGENT} JUMP b1\nb1:\nBRA %v1, b2, b3\nb2:\nSTS RZ, RZ, RZ\nJUMP b1\n
                b3:\nBRA.U %v1, b1, b4\nb4:\nSTS RZ, RZ, RZ\nEXIT"
            ),
            expect![[r#"
                b0:
                  JUMP b5
                b5:
                  %v2:b = BSSY{target=b3}
                  JUMP b1
                b1:
                b2:
                  JUMP b1
                b3:
                  BSYNC %v2
                b4:"#]],
        );
    }

    #[test]
    fn loops_one_after_the_other_have_a_barrier_each() {
        check(
            &format!(
                "{DIVERGENT} JUMP b1\nb1:\nSTS RZ, RZ, RZ\nBRA %v1, b1, b2\nb2:\nSTS RZ, RZ, RZ\nBRA %v1, b2, b3\nb3:\nSTS RZ, RZ, RZ\nEXIT"
            ),
            expect![[r#"
                b0:
                  %v2:b = BSSY{target=b4}
                  JUMP b1
                b1:
                b4:
                  BSYNC %v2
                  %v3:b = BSSY{target=b3}
                  JUMP b2
                b2:
                b3:
                  BSYNC %v3"#]],
        );
    }

    #[test]
    fn threads_meet_after_a_cycle_with_two_entries() {
        check(
            &format!(
                "{DIVERGENT} BRA %v1, b1, b2\nb1:\nJUMP b2\nb2:\nBRA.U %v1, b1, b3\nb3:\nBRA %v1, b4, b5
                b4:\nSTS RZ, RZ, RZ\nJUMP b5\nb5:\nSTS RZ, RZ, RZ\nEXIT"
            ),
            expect![[r#"
                b0:
                  %v2:b = BSSY{target=b3}
                b1:
                  JUMP b2
                b2:
                b3:
                  BSYNC %v2
                  %v3:b = BSSY{target=b5}
                b4:
                  JUMP b5
                b5:
                  BSYNC %v3"#]],
        );
    }

    /// A loop that ends when no thread votes for another iteration. Some threads skip the rest of an iteration.
    const WHILE_ANY: &str = "JUMP b1\nb1:\nWARPSYNC 0xffffffff\n%v2:r = VOTE.ANY %v1
        %v3:p = ISETP.EQ.AND %v2, RZ, PT\nBRA %v3, b5, b2\nb2:\nBRA %v1, b1, b3
        b3:\nSTS RZ, RZ, RZ\nJUMP b1\nb5:\nEXIT";

    #[test]
    fn threads_that_skip_the_rest_of_a_turn_meet_before_the_next() {
        check(
            &format!("{DIVERGENT} {WHILE_ANY}"),
            expect![[r#"
                b0:
                  JUMP b1
                b1:
                b2:
                  %v4:b = BSSY{target=b6}
                b3:
                  JUMP b6
                b6:
                  BSYNC %v4
                  JUMP b1
                b5:"#]],
        );
    }

    /// A loop: all threads execute `every` in each iteration, and only some of them execute `inside`.
    fn turns(inside: &str, every: &str) -> String {
        format!(
            "{DIVERGENT} JUMP b1\nb1:\n{every}\nBRA %v1, b2, b3\nb2:\n{inside}\nJUMP b3
            b3:\nSTS RZ, RZ, RZ\nBRA.U %v1, b1, b4\nb4:\nSTS RZ, RZ, RZ\nEXIT"
        )
    }

    #[test]
    fn those_needed_in_a_later_turn_do_not_wait_in_this_one() {
        check(
            &turns("WARPSYNC 0xffffffff", "STS RZ, RZ, RZ"),
            expect![[r#"
                b0:
                  JUMP b1
                b1:
                b2:
                  JUMP b3
                b3:
                b4:"#]],
        );
        check(
            &turns("WARPSYNC %v0", "STS RZ, RZ, RZ"),
            expect![[r#"
                b0:
                  %v2:b = BSSY.LOOSE{target=b4}
                  JUMP b1
                b1:
                b2:
                  JUMP b3
                b3:
                b4:
                  BSYNC.LOOSE %v2"#]],
        );
        check(
            &turns("BAR.SYNC RZ", "STS RZ, RZ, RZ"),
            expect![[r#"
                b0:
                  JUMP b1
                b1:
                b2:
                  JUMP b3
                b3:
                b4:"#]],
        );
    }

    #[test]
    fn a_branch_that_must_meet_further_outside_leaves_the_barriers_on_its_way() {
        check(
            &format!(
                "{DIVERGENT} JUMP b1\nb1:\nWARPSYNC %v0\nBRA %v1, b1, b2\nb2:\nSTS RZ, RZ, RZ\nBRA %v1, b3, b4\n\
                b3:\nSTS RZ, RZ, RZ\nJUMP b4\nb4:\nSTS RZ, RZ, RZ\nBRA.U %v1, b1, b5\nb5:\nSTS RZ, RZ, RZ\nEXIT"
            ),
            expect![[r#"
                b0:
                  %v2:b = BSSY.LOOSE{target=b5}
                  JUMP b6
                b6:
                  JUMP b1
                b1:
                b2:
                  %v3:b = BSSY{target=b4}
                b3:
                  JUMP b4
                b4:
                  BSYNC %v3
                b5:
                  BSYNC.LOOSE %v2"#]],
        );
    }

    #[test]
    fn nobody_is_needed_past_an_operation_of_the_whole_warp() {
        check(
            &turns("@%v1 WARPSYNC 0xffffffff", "WARPSYNC 0xffffffff"),
            expect![[r#"
                b0:
                  JUMP b1
                b1:
                  %v2:b = BSSY{target=b3}
                b2:
                  JUMP b3
                b3:
                  BSYNC %v2
                b4:"#]],
        );
        // A guarded `WARPSYNC` lets threads pass.
        check(
            &turns("@%v1 WARPSYNC 0xffffffff", "@%v1 WARPSYNC 0xffffffff"),
            expect![[r#"
                b0:
                  %v2:b = BSSY{target=b4}
                  JUMP b1
                b1:
                b2:
                  JUMP b3
                b3:
                b4:
                  BSYNC %v2"#]],
        );
    }

    #[test]
    fn barriers_of_the_block_pair_with_each_other() {
        let sides =
            |last: &str| format!("{DIVERGENT} BRA %v1, b1, b2\nb1:\nBAR.SYNC RZ\nJUMP b2\nb2:\n{last}\nEXIT");
        check(
            &sides("WARPSYNC 0xffffffff\n%v9:r, _ = VOTE.ANY PT\nSTS RZ, RZ, %v9"),
            expect![[r#"
                b0:
                  %v10:b = BSSY{target=b2}
                b1:
                  JUMP b2
                b2:
                  BSYNC %v10"#]],
        );
        check(
            &sides("BAR.SYNC RZ"),
            expect![[r#"
                b0:
                b1:
                  JUMP b2
                b2:"#]],
        );
        check(
            &sides("BAR.ARV RZ, 0x40"),
            expect![[r#"
                b0:
                b1:
                  JUMP b2
                b2:"#]],
        );
        // No thread passes a barrier for all threads of the block while another thread waits elsewhere. A barrier for a
        // number of threads may let some pass.
        let between = |barrier: &str| turns("@%v1 WARPSYNC 0xffffffff", barrier);
        check(
            &between("BAR.SYNC RZ"),
            expect![[r#"
                b0:
                  JUMP b1
                b1:
                  %v2:b = BSSY{target=b3}
                b2:
                  JUMP b3
                b3:
                  BSYNC %v2
                b4:"#]],
        );
        check(
            &between("BAR.SYNC RZ, 0x40"),
            expect![[r#"
                b0:
                  JUMP b1
                b1:
                b2:
                  JUMP b3
                b3:
                b4:"#]],
        );
        // At an `.aligned` barrier, the warp is together.
        check(
            &sides("BAR.SYNC RZ").replace("BAR", "WARPSYNC 0xffffffff\nBAR"),
            expect![[r#"
                b0:
                  %v2:b = BSSY{target=b2}
                b1:
                  JUMP b2
                b2:
                  BSYNC %v2"#]],
        );
    }

    #[test]
    fn groups_that_come_one_after_the_other_do_not_unite_within_a_region() {
        // Threads leave the loop for b3 in different iterations.
        let left = |inside: &str| {
            format!(
                "{DIVERGENT} JUMP b1\nb1:\nBRA %v1, b3, b2\nb2:\nSTS RZ, RZ, RZ\nBRA %v1, b1, b6
                b3:\nBRA %v1, b4, b5\nb4:\n{inside}\nJUMP b5\nb5:\nSTS RZ, RZ, RZ\nJUMP b6\nb6:\nSTS RZ, RZ, RZ\nEXIT"
            )
        };
        check(
            &left("STS RZ, RZ, RZ"),
            expect![[r#"
                b0:
                  %v2:b = BSSY{target=b6}
                  JUMP b1
                b1:
                b2:
                b3:
                  %v3:b = BSSY{target=b5}
                b4:
                  JUMP b5
                b5:
                  BSYNC %v3
                  JUMP b6
                b6:
                  BSYNC %v2"#]],
        );
        check(
            &left("WARPSYNC %v0"),
            expect![[r#"
                b0:
                  %v2:b = BSSY.LOOSE{target=b6}
                  JUMP b1
                b1:
                b2:
                b3:
                b4:
                  JUMP b5
                b5:
                  JUMP b6
                b6:
                  BSYNC.LOOSE %v2"#]],
        );
    }

    /// Threads with equal keys form a group.
    const GROUPS: &str = "b0:\n%v0:r = S2R{sr=0x21}\n%v1:r = MATCH.ANY %v0\n";

    #[test]
    fn groups_meet_after_what_each_does_by_itself() {
        let all = |line: &str| !line.starts_with(['e', '}']);
        check_lines(
            &format!("{GROUPS}WARPSYNC %v1\n%v2:r = VOTE.ANY %v0\nSTS RZ, RZ, %v2\nEXIT")
                .replace("%v0\nSTS", "PT\nSTS"),
            all,
            expect![[r#"
                b0:
                  %v0:r = S2R{sr=0x21}
                  %v1:r = MATCH.ANY %v0
                  %v3:b = BSSY{target=b1}
                  JUMP b2
                b2:
                  WARPSYNC %v1
                  %v2:r = VOTE.ANY PT
                  JUMP b1
                b1:
                  BSYNC %v3
                  STS RZ, RZ, %v2
                  EXIT"#]],
        );
        // The result is in a uniform register, which the groups share.
        check_lines(
            &format!("{GROUPS}WARPSYNC %v1\n%v2:ur = REDUX.SUM %v0\n%v3:r = MOV %v2\nSTS RZ, RZ, %v3\nEXIT"),
            all,
            expect![[r#"
                b0:
                  %v0:r = S2R{sr=0x21}
                  %v1:r = MATCH.ANY %v0
                  %v4:b = BSSY{target=b1}
                  JUMP b2
                b2:
                  WARPSYNC %v1
                  %v2:ur = REDUX.SUM %v0
                  %v3:r = MOV %v2
                  JUMP b1
                b1:
                  BSYNC %v4
                  STS RZ, RZ, %v3
                  EXIT"#]],
        );
        check_lines(
            &format!(
                "{GROUPS}WARPSYNC %v1\n%v2:r = SHFL.IDX %v0, RZ, 0x1f\nWARPSYNC %v1\nSTS RZ, RZ, %v2\nEXIT"
            ),
            all,
            expect![[r#"
                b0:
                  %v0:r = S2R{sr=0x21}
                  %v1:r = MATCH.ANY %v0
                  %v2:r = SHFL.IDX %v0, RZ, 0x1f
                  WARPSYNC 0xffffffff
                  STS RZ, RZ, %v2
                  EXIT"#]],
        );
    }

    #[test]
    fn a_mask_that_all_have_parts_nobody() {
        check(
            "b0:\n%v0:p = ISETP.LT.AND c[0x0][0x160], RZ, PT\nWARPSYNC 0xffffffff\n%v1:r = VOTE.ANY %v0
            %v2:r = LOP3{lut=0x0f} %v1, RZ, RZ\nWARPSYNC %v2\n%v3:r = VOTE.ANY PT\nSTS RZ, RZ, %v3\nEXIT",
            expect!["b0:"],
        );
    }

    #[test]
    fn groups_that_parted_in_a_region_do_not_unite_in_one_inside() {
        let body = |mask: &str| {
            format!(
                "{DIVERGENT}WARPSYNC 0xffffffff\n%v2:r = VOTE.ANY %v1\n%v3:r = MATCH.ANY %v0\nBRA %v1, b1, b4
                b1:\nWARPSYNC {mask}\n%v4:r = VOTE.ANY PT\nSTS RZ, RZ, %v4\nBRA %v1, b2, b3
                b2:\nWARPSYNC %v2\nJUMP b3\nb3:\nSTS RZ, RZ, RZ\nJUMP b4\nb4:\nSTS RZ, RZ, RZ\nEXIT"
            )
        };
        check(
            &body("%v2"),
            expect![[r#"
                b0:
                  %v5:b = BSSY.LOOSE{target=b4}
                b1:
                  %v6:b = BSSY.LOOSE{target=b3}
                b2:
                  JUMP b3
                b3:
                  BSYNC.LOOSE %v6
                  JUMP b4
                b4:
                  BSYNC.LOOSE %v5"#]],
        );
        check(
            &body("%v3"),
            expect![[r#"
                b0:
                  %v5:b = BSSY.LOOSE{target=b4}
                b1:
                b2:
                  JUMP b3
                b3:
                  JUMP b4
                b4:
                  BSYNC.LOOSE %v5"#]],
        );
    }

    #[test]
    fn full_warp_syncs_stay_in_divergent_regions_only() {
        let shuffle = "WARPSYNC 0xffffffff\n%v9:r = SHFL.IDX %v0, RZ, 0x1f\n";
        let body = format!(
            "{DIVERGENT}{shuffle} BRA %v1, b1, b2\nb1:\n{}STG.E RZ, RZ, %v8\nJUMP b2\nb2:\nSTS RZ, RZ, RZ\nSTG.E RZ, RZ, %v9\nEXIT",
            shuffle.replace("%v9", "%v8")
        );
        let mut func = text::parse(&format!("entry \"f\" {{\n{body}\n}}")).unwrap();
        run(&mut func, &Context::of(90, &Analyses::default())).unwrap();
        let count = |b: u32| {
            func.block(BlockId(b)).insts.iter().filter(|i| matches!(i.op, Op::Warpsync { .. })).count()
        };
        assert_eq!((count(0), count(1)), (0, 1));
    }

    #[test]
    fn shuffles_of_all_threads_keep_them_together_until_the_block_ends() {
        let shuffle = |mask: &str, v: u32| format!("WARPSYNC {mask}\n%v{v}:r = SHFL.IDX %v0, RZ, 0x1f\n");
        let kept = |middle: String| {
            let (first, last) = (shuffle("0xffffffff", 8), shuffle("0xffffffff", 9));
            let body = format!(
                "{DIVERGENT} BRA %v1, b1, b2\nb1:\n{first}{middle}{last}STG.E RZ, RZ, %v9\nJUMP b2\nb2:\nSTS RZ, RZ, RZ\nEXIT"
            );
            let mut func = text::parse(&format!("entry \"f\" {{\n{body}\n}}")).unwrap();
            run(&mut func, &Context::of(90, &Analyses::default())).unwrap();
            func.block(BlockId(1)).insts.iter().filter(|i| matches!(i.op, Op::Warpsync { .. })).count()
        };
        assert_eq!(kept(String::new()), 1);
        assert_eq!(kept("WARPSYNC %v0\n".to_owned()), 3);
    }

    #[test]
    fn threads_are_together_after_a_call_of_what_does_not_yield() {
        let waits = |known: Option<bool>| {
            let body = format!(
                "{DIVERGENT} BRA %v1, b1, b2\nb1:\nCALL{{callee=f0}}\nJUMP b2\nb2:\n\
                 WARPSYNC 0xffffffff\n%v9:r = SHFL.IDX %v0, RZ, 0x1f\nSTG.E RZ, RZ, %v9\nEXIT"
            );
            let mut func = text::parse(&format!("entry \"f\" {{\n{body}\n}}")).unwrap();
            let known = known.map(|yields| Known { yields, saves_barriers: false, ..Known::new(20, 24) });
            func.facts.known.extend(known.map(|known| (0, known)));
            run(&mut func, &Context::of(90, &Analyses::default())).unwrap();
            let insts = &func.block(BlockId(2)).insts;
            // An unknown function may also save barriers.
            assert_eq!(matches!(insts[0].op, Op::Bsync { .. }), known.is_some());
            insts.iter().any(|inst| matches!(inst.op, Op::Warpsync { .. }))
        };
        assert!(waits(None));
        assert!(waits(Some(true)));
        assert!(!waits(Some(false)));
    }

    /// Some threads yield while others are in a function that saves the barrier in its frame.
    #[test]
    fn barriers_are_not_saved_where_threads_yield() {
        let has_barrier = |pause: &str, saves_barriers: bool| {
            let body = format!(
                "{DIVERGENT} BRA %v1, b1, b4\nb1:\nBRA %v1, b2, b3\nb2:\n{pause}\nSTS RZ, RZ, RZ\nJUMP b4\n\
                 b3:\nCALL{{callee=f0}}\nJUMP b4\nb4:\nSTS RZ, RZ, RZ\nEXIT"
            );
            let mut func = text::parse(&format!("entry \"f\" {{\n{body}\n}}")).unwrap();
            let known = Known { yields: false, saves_barriers, ..Known::new(20, 24) };
            func.facts.known.push((0, known));
            run(&mut func, &Context::of(90, &Analyses::default())).unwrap();
            matches!(func.block(BlockId(4)).insts[0].op, Op::Bsync { .. })
        };
        assert!(has_barrier("", true));
        assert!(has_barrier("NANOSLEEP 0x20", false));
        assert!(!has_barrier("NANOSLEEP 0x20", true));
    }

    /// The threads of a warp call different functions through an address, and the same function through another.
    #[test]
    fn threads_meet_after_a_call_of_different_functions() {
        const TEXT: &str = "entry \"f\" frame(align=16,stack) {
            b0:
              %v0:r = S2R{sr=0x21}
              %v1:r2 = PACK 0x40, RZ
              JUMP b1
            b1:
              %v2:r = phi b0 RZ, b1 %v9
              %v3:r, _, _ = IADD3 %v0, %v2, RZ
              %v4:r2 = PACK %v3, RZ
              %v5:r@4 = FIX %v2
              %v6:r@4 = CALL.TO.REL %v4, %v5
              %v7:r = FIX %v6
              %v8:r@4 = FIX %v7
              %v10:r@4 = CALL.TO.REL %v1, %v8
              %v9:r = FIX %v10
              %v11:p, _ = ISETP.LE.U32.AND %v9, 0x7, PT
              BRA %v11, b1, b2
            b2:
              STG.E RZ, RZ, %v9
              EXIT
            }";
        let calls = |never_watch: bool| {
            let mut func = text::parse(TEXT).unwrap();
            func.facts.callees_never_watch = never_watch;
            func.facts.pointees_never_wait = true;
            run(&mut func, &Context::of(90, &Analyses::default())).unwrap();
            crate::ori::verify::verify(&func, crate::ori::verify::Stage::Built).unwrap();
            let shows = |line: &&str| ["BS", "CALL"].iter().any(|op| line.contains(op));
            text::print(&func).lines().filter(shows).map(|line| line.trim().to_owned()).collect::<Vec<_>>()
        };
        expect![[r#"
            %v12:b = BSSY{target=b2}
            %v13:b = BSSY{target=b3}
            %v6:r@4 = CALL.TO.REL %v4, %v5
            BSYNC %v13
            %v10:r@4 = CALL.TO.REL %v1, %v8
            BSYNC %v12"#]]
        .assert_eq(&calls(true).join("\n"));
        // Threads that return may hold a lock that the others wait for.
        assert!(!calls(false).iter().any(|line| line.contains("BS")));
    }

    #[test]
    fn threads_are_apart_where_some_end() {
        let kept = |ends: &str| {
            let vote = |v: u32| format!("WARPSYNC 0xffffffff\n%v{v}:r, _ = VOTE.ANY PT\nSTG.E RZ, RZ, %v{v}");
            let body = format!(
                "{DIVERGENT} BRA %v1, b1, b2\nb1:\n{}\n{ends}\nb2:\nWARPSYNC 0xffffffff\nEXIT",
                vote(8)
            );
            let mut func = text::parse(&format!("entry \"f\" {{\n{body}\n}}")).unwrap();
            run(&mut func, &Context::of(90, &Analyses::default())).unwrap();
            func.block(BlockId(1)).insts.iter().any(|i| matches!(i.op, Op::Warpsync { .. }))
        };
        assert!(kept("EXIT"));
        assert!(kept("JUMP b2"));
    }

    #[test]
    fn nobody_waits_for_threads_that_wait_for_them_to_end() {
        let has_barrier = |mask: &str, after: &str| {
            let body = format!(
                "{DIVERGENT} BRA %v1, b1, b2\nb1:\nWARPSYNC {mask}\n%v8:r, _ = VOTE.ANY PT\nSTG.E RZ, RZ, %v8\n\
                 JUMP b2\nb2:\nSTS RZ, RZ, RZ\n{after}\nEXIT"
            );
            lines(&body, |line| line.contains("BSSY")).contains("BSSY")
        };
        let all = "0xffffffff";
        assert!(!has_barrier(all, ""));
        assert!(has_barrier(all, "WARPSYNC 0xffffffff\n%v9:r, _ = VOTE.ANY PT\nSTG.E RZ, RZ, %v9"));
        assert!(has_barrier("0xffff", ""));
    }

    /// Divergent regions, each inside another, around `inner`. The number of barriers set.
    fn barriers_of_nested(depth: u32, inner: &str, kind: &str, end: &str) -> usize {
        let mut body = format!("{DIVERGENT} JUMP b1\n");
        for b in 1..=depth {
            body += &format!("b{b}:\nSTS RZ, RZ, RZ\nBRA %v1, b{}, b{}\n", b + 1, 2 * depth + 2 - b);
        }
        body += &format!("b{}:\n{inner}\nSTS RZ, RZ, RZ\nJUMP b{}\n", depth + 1, depth + 2);
        for b in depth + 2..=2 * depth {
            body += &format!("b{b}:\nSTS RZ, RZ, RZ\nJUMP b{}\n", b + 1);
        }
        body += &format!("b{}:\nSTS RZ, RZ, RZ\n{end}", 2 * depth + 1);
        let mut func = text::parse(&format!("{kind} \"f\" {{\n{body}\n}}")).unwrap();
        // Callees in other objects may yield, but are assumed not to save barriers.
        func.facts.linking = crate::Linking::Object;
        run(&mut func, &Context::of(90, &Analyses::default())).unwrap();
        text::print(&func).matches("BSSY").count()
    }

    #[test]
    fn a_function_that_yields_leaves_the_barriers_of_its_callers() {
        let nested = |depth: u32, pause: &str| barriers_of_nested(depth, pause, "func", "RET");
        assert_eq!(nested(7, ""), 7);
        assert_eq!(nested(6, "NANOSLEEP 0x20"), 6);
        assert_eq!(nested(9, "NANOSLEEP 0x20"), 6);
    }

    #[test]
    fn the_innermost_regions_have_no_barrier_if_there_are_too_few() {
        let nested = |depth: u32, inner: &str| barriers_of_nested(depth, inner, "entry", "EXIT");
        assert_eq!(nested(16, ""), 16);
        assert_eq!(nested(40, ""), 16);
        // A called function preserves ten of them.
        assert_eq!(nested(10, "CALL{callee=f0}"), 10);
        assert_eq!(nested(14, "CALL{callee=f0}"), 10);
    }

    /// Threads wait in a loop of one block. They execute the code after it together.
    fn spin(wait: &str, cond: &str) -> String {
        format!(
            "{DIVERGENT} JUMP b1\nb1:\n{wait}\nBRA {cond}, b1, b2 #2\nb2:\n\
             WARPSYNC 0xffffffff\n%v9:r = SHFL.IDX %v0, RZ, 0x1f\nSTG.E RZ, RZ, %v9\nEXIT"
        )
    }

    fn check_spin(wait: &str, expected: &Expect) {
        let shows = |line: &str| ["BS", "YIELD", "WARPSYNC", "BRA"].iter().any(|op| line.contains(op));
        expected.assert_eq(&lines(&spin(&format!("{wait}%v3:p = ISETP.NE.AND %v2, RZ, PT"), "%v3"), shows));
    }

    #[test]
    fn threads_that_wait_for_others_of_their_warp_yield() {
        let yielding = expect![[r#"
            b0:
              %v10:b = BSSY.LOOSE{target=b2}
            b1:
              BRA %v3, b3, b2 #2
            b2:
              BSYNC.LOOSE %v10
              WARPSYNC 0xffffffff
            b3:
              YIELD #2"#]];
        check_spin("%v2:r = ATOMS.ADD.RELAXED.GPU RZ, RZ, 0x1\n", &yielding);
        check_spin("%v2:r = LDG.E.VOLATILE %v0, RZ\n", &yielding);
        // The dependence passes through another value, and through the local memory of the thread.
        check_spin("%v4:r = LDG.E.VOLATILE %v0, RZ\n%v2:r = LDG.E %v4, RZ\n", &yielding);
        check_spin("%v4:r = ATOMS.ADD.RELAXED.GPU RZ, RZ, 0x1\nSTL RZ, %v4\n%v2:r = LDL RZ\n", &yielding);
    }

    #[test]
    fn threads_that_wait_for_nobody_or_all_for_the_same_do_not_yield() {
        let firm = expect![[r#"
            b0:
              %v10:b = BSSY{target=b2}
            b1:
              BRA %v3, b1, b2 #2
            b2:
              BSYNC %v10"#]];
        check_spin("%v2:r = LDG.E %v0, RZ\n", &firm);
        check_spin("%v4:r = ATOMS.ADD.RELAXED.GPU RZ, RZ, 0x1\n%v2:r = LDG.E %v0, RZ\n", &firm);
        check_spin("%v2:r = LDG.E.VOLATILE RZ, RZ\n", &firm);
        // The atomic operation and the branch belong to one statement: the loop implements an atomic operation.
        check_spin("%v2:r = ATOMS.ADD.RELAXED.GPU RZ, RZ, 0x1 #2\n", &firm);
    }

    #[test]
    fn threads_that_come_apart_yield_whatever_they_wait_for() {
        check_lines(
            &format!(
                "{DIVERGENT} BRA %v1, b1, b3\nb1:\nJUMP b2\nb2:\n%v2:r = LDG.E.VOLATILE RZ, RZ\n\
                 %v3:p = ISETP.NE.AND %v2, RZ, PT\nBRA %v3, b2, b3\nb3:\nSTG.E RZ, RZ, RZ\nEXIT"
            ),
            |line| line.contains("YIELD") || line.contains("BS"),
            expect![[r#"
                b0:
                  %v4:b = BSSY.LOOSE{target=b3}
                b1:
                b2:
                b3:
                  BSYNC.LOOSE %v4
                b4:
                  YIELD"#]],
        );
    }

    /// The lock decides on which path a thread reaches the branch that ends the loop.
    #[test]
    fn what_ends_a_loop_may_depend_on_a_branch() {
        check_lines(
            &format!(
                "{DIVERGENT} JUMP b1\nb1:\n%v2:r = ATOMS.ADD.RELAXED.GPU RZ, RZ, 0x1\n%v3:p = ISETP.NE.AND %v2, RZ, PT\n\
                 BRA %v3, b3, b2\nb2:\nSTG.E RZ, RZ, RZ\nJUMP b3\nb3:\n%v4:r = phi b1 RZ, b2 %v0\n\
                 %v5:p = ISETP.EQ.AND %v4, RZ, PT\nBRA %v5, b1, b4 #2\nb4:\nSTG.E RZ, RZ, RZ\nEXIT"
            ),
            |line| line.contains("YIELD") || line.contains("BS"),
            expect![[r#"
                b0:
                  %v7:b = BSSY.LOOSE{target=b4}
                b1:
                  %v6:b = BSSY{target=b3}
                b2:
                b3:
                  BSYNC %v6
                b4:
                  BSYNC.LOOSE %v7
                b5:
                  YIELD"#]],
        );
    }

    /// Threads shuffle in both arms of a branch.
    fn arms(first: &str, second: &str) -> Function {
        let body = format!(
            "{DIVERGENT} BRA %v1, b1, b2\nb1:\nWARPSYNC {first} #1\n%v8:r = SHFL.IDX %v0, RZ, 0x1f #1\nSTG.E RZ, RZ, %v8\n\
             JUMP b3\nb2:\nWARPSYNC {second} #2\n%v9:r = SHFL.IDX %v0, 0x1, 0x1f #2\nSTG.E RZ, RZ, %v9\nJUMP b3\n\
             b3:\nSTG.E RZ, RZ, RZ\nEXIT"
        );
        let mut func = text::parse(&format!("entry \"f\" {{\n{body}\n}}")).unwrap();
        run(&mut func, &Context::of(90, &Analyses::default())).unwrap();
        crate::ori::verify::verify(&func, crate::ori::verify::Stage::Built).unwrap();
        func
    }

    #[test]
    fn operations_of_equal_masks_in_two_arms_meet_in_a_routine() {
        let calls = |func: &Function| {
            let insts = func.layout.iter().flat_map(|b| &func.block(*b).insts);
            insts.filter(|inst| matches!(inst.op, Op::CallRoutine { .. })).count()
        };
        let func = arms("0xffffffff", "0xffffffff");
        assert_eq!(calls(&func), 2);
        // If all threads are present, the shuffle is executed in place, without a wait.
        let Term::Branch { then, els, .. } = func.block(BlockId(1)).term else { panic!("a branch") };
        assert!(matches!(func.block(then).insts[..], [Inst { op: Op::Shfl { .. }, .. }]));
        assert_eq!(func.layout.last_chunk::<2>().unwrap().iter().filter(|b| **b == els).count(), 1);
        assert_eq!(calls(&arms("%v0", "0xffffffff")), 2);
        assert_eq!(calls(&arms("0xff", "0xff00")), 0);
    }

    #[test]
    fn each_thread_has_its_own_copy_of_a_uniform_result() {
        let arm = |n: u32| {
            format!(
                "WARPSYNC 0xffffffff #{n}\n%v{n}2:ur = REDUX.SUM %v0 #{n}\n%v{n}3:r = MOV %v{n}2\n\
                 %v{n}4:ur2 = PACK %v{n}2, RZ\nSYNCS.EXCH.64 %v{n}2, %v{n}4\nSTG.E RZ, RZ, %v{n}3\nJUMP b3"
            )
        };
        let body = format!(
            "{DIVERGENT} BRA %v1, b1, b2\nb1:\n{}\nb2:\n{}\nb3:\nSTG.E RZ, RZ, RZ\nEXIT",
            arm(1),
            arm(2)
        );
        let mut func = text::parse(&format!("entry \"f\" {{\n{body}\n}}")).unwrap();
        run(&mut func, &Context::of(90, &Analyses::default())).unwrap();
        crate::ori::verify::verify(&func, crate::ori::verify::Stage::Built).unwrap();
        let Term::Branch { then, els, .. } = func.block(BlockId(1)).term else { panic!("a branch") };
        let ops = |b: BlockId| func.block(b).insts.iter().map(|inst| inst.op).collect::<Vec<_>>();
        assert_eq!(ops(then), [Op::Redux { op: ReduxOp::Sum, signed: false }, Op::Mov]);
        assert!(ops(els).contains(&Op::CallRoutine { routine: Routine::ReduxSum }));
        let Term::Jump(after) = func.block(then).term else { panic!("a jump") };
        assert!(matches!(ops(after)[..], [Op::R2ur, Op::Mov, ..]));
        assert_eq!(func.value(func.block(after).phis[0].dst).file, File::R);
    }

    /// Threads shuffle in both arms of an outer region, so they reach the inner region apart. They vote in the inner
    /// region.
    #[test]
    fn threads_come_apart_from_routines() {
        let body = format!(
            "{DIVERGENT} BRA %v1, b1, b4\nb1:\nWARPSYNC 0xffffffff #1\n%v8:r = SHFL.IDX %v0, RZ, 0x1f #1\nSTG.E RZ, RZ, %v8\n\
             BRA %v1, b2, b3\nb2:\nWARPSYNC 0xff #3\n%v7:r = VOTE.ANY PT #3\nSTG.E RZ, RZ, %v7\nJUMP b3\n\
             b3:\nSTG.E RZ, RZ, RZ\nJUMP b5\n\
             b4:\nWARPSYNC 0xffffffff #2\n%v9:r = SHFL.IDX %v0, 0x1, 0x1f #2\nSTG.E RZ, RZ, %v9\nJUMP b5\n\
             b5:\nWARPSYNC 0xffffffff\n%v10:r, _ = VOTE.ANY PT\nSTG.E RZ, RZ, %v10\nEXIT"
        );
        let mut func = text::parse(&format!("entry \"f\" {{\n{body}\n}}")).unwrap();
        run(&mut func, &Context::of(90, &Analyses::default())).unwrap();
        let waits = |b: u32| matches!(func.block(BlockId(b)).insts[0].op, Op::Bsync { .. });
        assert_eq!([3, 5].map(waits), [false, true]);
    }
}
