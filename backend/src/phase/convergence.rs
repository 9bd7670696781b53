//! Brings diverged threads of a warp together again: `BSSY` before they part, `BSYNC` where they meet.
//!
//! A divergent branch at `b` parts threads; they meet at its post-dominator `d`. One barrier per `d`, set at a
//! place that
//!
//! - dominates `d`, so that every thread that waits has set the barrier, and is post-dominated by `d`, so that
//!   every thread that set it comes (threads that end take themselves out);
//! - is in the same loops as `d`, so that setting and waiting alternate.
//!
//! That is the end of `b`, or of the preheader of the outermost loop around `b` that `d` is not in, or, where
//! `d` is reached past `b` too, of a dominator. Where there is no such place threads stay apart until an outer
//! barrier: slower, never wrong. See `docs/convergence.md`.
//!
//! A warp-synchronous operation outside divergent regions needs no `WARPSYNC` of the full mask: it is removed.

use crate::CodegenError;
use crate::input::SrcId;
use crate::ori::cfg::{Cfg, for_each_successor};
use crate::ori::divergence::Divergence;
use crate::ori::dominators::{Tree, dominators, post_dominators};
use crate::ori::ir::{BlockId, Dst, File, Function, Inst, Phi, Src, SrcKind, Term};
use crate::ori::loops::{LoopId, Loops};
use crate::ori::op::Op;
use crate::phases::Context;
use rustc_hash::FxHashMap;

/// Convergence barrier registers.
const BARRIERS: u32 = 16;

/// Each round may ask for blocks that the next round's barriers need, one level of loops after the other.
const ROUNDS: usize = 16;

pub fn run(func: &mut Function, context: &Context<'_>) -> Result<(), CodegenError> {
    for round in 1..=ROUNDS {
        (context.checkpoint)();
        let plan = Plan::new(func, round == ROUNDS);
        if !plan.preheaders.is_empty() || !plan.latches.is_empty() {
            let cfg = Cfg::new(func);
            // What leads to a header after its edges are joined: the new block is the only change.
            let mut joined: FxHashMap<BlockId, Vec<BlockId>> = FxHashMap::default();
            let mut join = |header: BlockId, takes: &dyn Fn(BlockId) -> bool| {
                let preds = joined.entry(header).or_insert_with(|| cfg.preds(header).to_vec());
                let sources: Vec<BlockId> = preds.iter().copied().filter(|p| takes(*p)).collect();
                preds.retain(|p| !takes(*p));
                preds.push(join_edges(func, header, &sources, takes));
            };
            for (header, inside) in plan.preheaders {
                join(header, &|from| !inside.contains(&from));
            }
            for (header, inside) in plan.latches {
                join(header, &|from| inside.contains(&from));
            }
            continue;
        }
        place_barriers(func, &plan.barriers)?;
        remove_warp_syncs(func, &plan.diverged);
        break;
    }
    Ok(())
}

struct Barrier {
    /// Set at the end of this block.
    place: BlockId,
    /// Waited for at the start of this one.
    meet: BlockId,
}

struct Plan {
    /// Branches that need further blocks do without barriers.
    is_last: bool,
    barriers: Vec<Barrier>,
    /// Indexed by block: the barrier that is waited for there.
    barrier_at: Vec<Option<u32>>,
    /// Headers that need one entering edge, with the blocks of their loop that have edges to them.
    preheaders: Vec<(BlockId, Vec<BlockId>)>,
    /// Headers that need one back edge.
    latches: Vec<(BlockId, Vec<BlockId>)>,
    /// Indexed by block: threads of a warp may be apart here.
    diverged: Vec<bool>,
    /// Indexed by block: threads that no barrier brings together may be apart here.
    unjoined: Vec<bool>,
    /// Indexed by block: what the block reaches before its post-dominator, or all that it reaches, is marked.
    marked: Vec<Option<Marked>>,
    /// Scratch, indexed by block: the last walk that came to it.
    seen: Vec<u32>,
    walks: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Marked {
    UpTo(BlockId),
    All,
}

/// Control does not come back from this edge's end: threads that take it never wait for the others. The code
/// after a loop is not such an end: threads that leave the loop one by one had better meet there.
fn leaves(func: &Function, cfg: &Cfg, loops: &Loops, from: BlockId, to: BlockId) -> bool {
    let block = func.block(to);
    match block.term {
        Term::Unreachable => true,
        Term::Exit | Term::Ret => {
            block.insts.is_empty() || (cfg.preds(to).len() == 1 && loops.innermost(from).is_none())
        }
        Term::Jump(_) | Term::Branch { .. } | Term::Switch { .. } => false,
    }
}

/// The function's graph without edges that leave, as far as another edge of the same branch stays.
fn without_leaving_edges(func: &Function, cfg: &Cfg, loops: &Loops) -> Option<Function> {
    let mut reduced: Option<Function> = None;
    for &b in &cfg.order {
        let Term::Branch { then, els, .. } = func.block(b).term else { continue };
        let stays = match (leaves(func, cfg, loops, b, then), leaves(func, cfg, loops, b, els)) {
            (true, false) => els,
            (false, true) => then,
            _ => continue,
        };
        let reduced = reduced.get_or_insert_with(|| skeleton(func));
        reduced.block_mut(b).term = Term::Jump(stays);
    }
    reduced
}

/// The function's control flow alone.
fn skeleton(func: &Function) -> Function {
    Function {
        name: String::new(),
        entry: func.entry,
        blocks: func
            .blocks
            .iter()
            .map(|block| crate::ori::ir::Block { term: block.term.clone(), ..Default::default() })
            .collect(),
        layout: func.layout.clone(),
        values: Vec::new(),
        frame: func.frame,
        facts: Default::default(),
    }
}

impl Plan {
    fn new(func: &Function, is_last: bool) -> Plan {
        let cfg = Cfg::new(func);
        let dom = dominators(&cfg, func);
        let loops = Loops::new(func, &cfg, &dom);
        let post = post_dominators(&cfg, func);
        let divergence = Divergence::new(func, &cfg, &post, &loops);
        let mut plan = Plan {
            is_last,
            barriers: Vec::new(),
            barrier_at: vec![None; func.blocks.len()],
            preheaders: Vec::new(),
            latches: Vec::new(),
            diverged: vec![false; func.blocks.len()],
            unjoined: vec![false; func.blocks.len()],
            marked: vec![None; func.blocks.len()],
            seen: vec![0; func.blocks.len()],
            walks: 0,
        };
        if !cfg.order.iter().any(|b| divergence.branch_diverges(*b)) {
            return plan;
        }
        let reduced = without_leaving_edges(func, &cfg, &loops);
        let reduced = reduced.as_ref().unwrap_or(func);
        let flow = Cfg::new(reduced);
        let post = post_dominators(&flow, reduced);
        let parts = |&b: &BlockId| {
            let mut ways = 0;
            for_each_successor(reduced, b, |_| ways += 1);
            ways > 1 && divergence.branch_diverges(b)
        };
        let branches: Vec<BlockId> = flow.order.iter().copied().filter(parts).collect();
        // Inner regions first: walks of outer ones pass over them.
        for &b in branches.iter().rev() {
            plan.mark_diverged(reduced, b, post.parent(b));
        }
        for b in branches {
            plan.branch(func, reduced, &flow, &dom, &post, &loops, b);
        }
        plan.drop_mixing(func);
        plan
    }

    /// Takes back the barriers that threads with different masks would wait for together: threads that are apart
    /// for good set each their own mask, and an operation of the whole warp before the meeting point unites them.
    fn drop_mixing(&mut self, func: &Function) {
        let unites = |b: BlockId| {
            func.block(b).insts.iter().any(|inst| matches!(inst.op, Op::Warpsync | Op::Bar { .. }))
        };
        let (unjoined, seen, walks) = (&self.unjoined, &mut self.seen, &mut self.walks);
        self.barriers.retain(|barrier| {
            *walks += 1;
            !unjoined[barrier.place.index()] || !region(func, barrier, seen, *walks).into_iter().any(unites)
        });
    }

    #[expect(clippy::too_many_arguments, reason = "the analyses of one function")]
    fn branch(
        &mut self,
        func: &Function,
        reduced: &Function,
        flow: &Cfg,
        dom: &Tree,
        post: &Tree,
        loops: &Loops,
        b: BlockId,
    ) {
        let Some(meet) = post.parent(b) else { return self.leave_apart(reduced, b) };
        if loops.is_irreducible(b) || loops.is_irreducible(meet) {
            return self.leave_apart(reduced, b);
        }
        let place = match loops.innermost(meet).filter(|_| loops.is_header(meet)) {
            Some(id) if loops.contains(id, b) => Place::NeedsLatch(edges_inside(flow, loops, id, meet)),
            // Waiting in the header would be waiting in every iteration.
            Some(id) => Place::NeedsPreheader(id),
            None => self.find_place(func, flow, dom, post, loops, b, meet),
        };
        let mut ask = |header: BlockId, inside: Vec<BlockId>| {
            if !self.preheaders.iter().any(|(h, _)| *h == header) {
                self.preheaders.push((header, inside));
            }
        };
        match place {
            Place::At(place) => match self.barrier_at[meet.index()] {
                // The outermost setting covers the inner ones.
                Some(known) => {
                    let barrier = &mut self.barriers[known as usize];
                    if dom.dominates(place, barrier.place) {
                        barrier.place = place;
                    }
                }
                None => {
                    self.barrier_at[meet.index()] = Some(self.barriers.len() as u32);
                    self.barriers.push(Barrier { place, meet });
                }
            },
            _ if self.is_last => self.leave_apart(reduced, b),
            Place::NeedsPreheader(id) => {
                let header = loops.get(id).header;
                ask(header, edges_inside(flow, loops, id, header));
            }
            Place::NeedsOwnHeader(header, cycle) => ask(header, cycle),
            Place::NeedsLatch(latches) => {
                if latches.len() > 1 && !self.latches.iter().any(|(header, _)| *header == meet) {
                    self.latches.push((meet, latches));
                }
            }
            Place::None => self.leave_apart(reduced, b),
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the analyses of one function")]
    fn find_place(
        &self,
        func: &Function,
        flow: &Cfg,
        dom: &Tree,
        post: &Tree,
        loops: &Loops,
        b: BlockId,
        meet: BlockId,
    ) -> Place {
        let mut place = b;
        loop {
            if let Some(id) = loops.outermost_without(place, meet) {
                match loops.preheader(func, flow, id) {
                    Some(preheader) => place = preheader,
                    None => return Place::NeedsPreheader(id),
                }
            }
            if dom.dominates(place, meet) {
                break;
            }
            match dom.parent(place) {
                Some(up) => place = up,
                None => return Place::None,
            }
        }
        let same_loops = loops.innermost(meet).is_none_or(|id| loops.contains(id, place));
        let all_come = place == b || post.dominates(meet, place);
        if !same_loops || !all_come || place == meet || loops.is_irreducible(place) {
            return Place::None;
        }
        let cycle = cycle_without(func, flow, loops, place, meet);
        if cycle.is_empty() {
            return Place::At(place);
        }
        // Two loops share a header: the inner one, without the meeting point, gets its own.
        match loops.innermost(place).map(|id| loops.get(id).header) {
            Some(header) if cycle.contains(&header) => Place::NeedsOwnHeader(header, cycle),
            _ => Place::None,
        }
    }

    /// No barrier brings the threads together again that `b` parts.
    fn leave_apart(&mut self, func: &Function, b: BlockId) {
        self.mark_diverged(func, b, None);
        let mut work = vec![b];
        while let Some(at) = work.pop() {
            for_each_successor(func, at, |to| {
                if !std::mem::replace(&mut self.unjoined[to.index()], true) {
                    work.push(to);
                }
            });
        }
    }

    /// Marks what `b` reaches before `meet`, its post-dominator, or all that it reaches.
    fn mark_diverged(&mut self, func: &Function, b: BlockId, meet: Option<BlockId>) {
        self.walks += 1;
        let mut work = vec![b];
        while let Some(at) = work.pop() {
            let mut reach = |to: BlockId| {
                if Some(to) != meet && std::mem::replace(&mut self.seen[to.index()], self.walks) != self.walks
                {
                    self.diverged[to.index()] = true;
                    work.push(to);
                }
            };
            match self.marked[at.index()] {
                Some(Marked::All) => {}
                // What is behind the inner region's end is not.
                Some(Marked::UpTo(inner)) if at != b => reach(inner),
                _ => for_each_successor(func, at, reach),
            }
        }
        self.marked[b.index()] = Some(meet.map_or(Marked::All, Marked::UpTo));
    }
}

enum Place {
    At(BlockId),
    NeedsPreheader(LoopId),
    /// The header, and the blocks of the inner loop.
    NeedsOwnHeader(BlockId, Vec<BlockId>),
    /// One block for all of these edges back to the meeting point.
    NeedsLatch(Vec<BlockId>),
    None,
}

/// Blocks through which control can come back to `place` without passing `meet`; empty if it cannot.
fn cycle_without(func: &Function, cfg: &Cfg, loops: &Loops, place: BlockId, meet: BlockId) -> Vec<BlockId> {
    if loops.innermost(place).is_none() && !loops.is_irreducible(place) {
        return Vec::new();
    }
    let mut ahead = vec![false; func.blocks.len()];
    let mut work = vec![place];
    while let Some(at) = work.pop() {
        for_each_successor(func, at, |to| {
            if to != meet && !std::mem::replace(&mut ahead[to.index()], true) {
                work.push(to);
            }
        });
    }
    let mut cycle = Vec::new();
    if ahead[place.index()] {
        work.push(place);
        ahead[place.index()] = false;
        while let Some(at) = work.pop() {
            cycle.push(at);
            for &from in cfg.preds(at) {
                if std::mem::replace(&mut ahead[from.index()], false) {
                    work.push(from);
                }
            }
        }
    }
    cycle
}

/// Blocks of the loop with an edge to its header.
fn edges_inside(cfg: &Cfg, loops: &Loops, id: LoopId, header: BlockId) -> Vec<BlockId> {
    cfg.preds(header).iter().copied().filter(|p| loops.contains(id, *p)).collect()
}

/// Leads the edges into `to` from `sources`, the reached blocks that `takes`, through one new block before it,
/// which it returns.
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
    // Before its target where control falls in from above, else after the last source.
    let at = func.layout.iter().position(|b| *b == to).unwrap_or(0);
    let above = at > 0 && sources.contains(&func.layout[at - 1]);
    let last = func.layout.iter().rposition(|b| sources.contains(b)).map_or(at, |i| i + 1);
    func.layout.insert(if above { at } else { last.max(1) }, new);
    new
}

/// Makes edges to `old` go to `new`.
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

fn place_barriers(func: &mut Function, barriers: &[Barrier]) -> Result<(), CodegenError> {
    check_registers(func, barriers)?;
    for barrier in barriers {
        let value = func.new_value(File::B, 1);
        let place = func.block_mut(barrier.place);
        let src = place.term_src;
        place.insts.push(Inst::new(Op::Bssy { target: barrier.meet }, &[Dst::Value(value)], &[], src));
        let meet = func.block_mut(barrier.meet);
        let src = meet.insts.first().map_or(meet.term_src, |inst| inst.src);
        meet.insts.insert(0, Inst::new(Op::Bsync, &[], &[value.into()], src));
    }
    Ok(())
}

/// Refuses functions in which more barriers are set at once than there are registers.
fn check_registers(func: &Function, barriers: &[Barrier]) -> Result<(), CodegenError> {
    if barriers.len() <= BARRIERS as usize {
        return Ok(());
    }
    let mut set = vec![0u32; func.blocks.len()];
    let mut seen = vec![u32::MAX; func.blocks.len()];
    for (i, barrier) in barriers.iter().enumerate() {
        for b in region(func, barrier, &mut seen, i as u32) {
            set[b.index()] += 1;
            if set[b.index()] >= BARRIERS {
                let at = func.block(b).insts.first().map_or(SrcId::default(), |inst| inst.src);
                return Err(CodegenError::unsupported(at, "divergent regions nested more than 16 deep"));
            }
        }
    }
    Ok(())
}

/// Blocks in which the barrier is set: behind its place and before its meeting point. `seen` is scratch, indexed by
/// block, in which no element is `walk` yet.
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

/// Removes `WARPSYNC` of all threads where they are together anyway.
fn remove_warp_syncs(func: &mut Function, diverged: &[bool]) {
    for i in 0..func.layout.len() {
        let b = func.layout[i];
        if diverged.get(b.index()).copied().unwrap_or(false) {
            continue;
        }
        let insts = &mut func.block_mut(b).insts;
        let all = |inst: &Inst| {
            inst.op == Op::Warpsync
                && inst.guard == Src::TRUE
                && inst.srcs[..] == [Src::new(SrcKind::Imm(u32::MAX))]
        };
        // One that stands for `bar.warp.sync` also orders memory, and stays: it is of another statement.
        let synchronizes_next = |insts: &[Inst], i: usize| {
            insts.get(i + 1).is_some_and(|next| {
                next.src == insts[i].src
                    && matches!(
                        next.op,
                        Op::Shfl { .. } | Op::Vote { .. } | Op::Match { .. } | Op::Redux { .. }
                    )
            })
        };
        let keep: Vec<bool> =
            (0..insts.len()).map(|i| !(all(&insts[i]) && synchronizes_next(insts, i))).collect();
        if keep.iter().all(|k| *k) {
            continue;
        }
        let mut keep = keep.into_iter();
        insts.retain(|_| keep.next().unwrap_or(true));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ori::text;
    use expect_test::{Expect, expect};

    fn check(body: &str, expected: Expect) {
        let mut func = text::parse(&format!("func \"f\" {{\n{body}\n}}")).unwrap();
        let context = Context { sm: ptx_isa::Sm::new(90), checkpoint: &|| () };
        run(&mut func, &context).unwrap();
        crate::ori::verify::verify(&func, crate::ori::verify::Stage::Built).unwrap();
        let text = text::print(&func);
        let lines: Vec<&str> =
            text.lines().filter(|l| l.ends_with(':') || l.contains("BS") || l.contains("JUMP")).collect();
        expected.assert_eq(&lines.join("\n"));
    }

    const DIVERGENT: &str = "b0:\n%v0:r = S2R{sr=0x21}\n%v1:p = ISETP.LT.AND %v0, 0x5, PT\n";

    #[test]
    fn a_triangle_has_one_barrier() {
        check(
            &format!("{DIVERGENT} BRA %v1, b1, b2\nb1:\nBAR.SYNC RZ\nJUMP b2\nb2:\nBAR.SYNC RZ\nEXIT"),
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
            &format!("{DIVERGENT} BRA %v1, b2, b1\nb1:\nBAR.SYNC RZ\nJUMP b2\nb2:\nEXIT"),
            expect![[r#"
            b0:
            b1:
              JUMP b2
            b2:"#]],
        );
    }

    #[test]
    fn a_loop_left_at_different_times_is_set_before_it() {
        check(
            &format!("{DIVERGENT} JUMP b1\nb1:\nBAR.SYNC RZ\nBRA %v1, b1, b2\nb2:\nBAR.SYNC RZ\nEXIT"),
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
                "{DIVERGENT} BRA %v1, b1, b3\nb1:\nBRA %v1, b2, b3\nb2:\nBAR.SYNC RZ\nJUMP b3\nb3:\nBAR.SYNC RZ\nEXIT"
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
                b2:\nBAR.SYNC RZ\nJUMP b1\nb3:\nJUMP b1\nb4:\nBAR.SYNC RZ\nEXIT"
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
                "{DIVERGENT} JUMP b1\nb1:\nBRA %v1, b2, b3\nb2:\nBAR.SYNC RZ\nJUMP b1\n
                b3:\nBRA.U %v1, b1, b4\nb4:\nBAR.SYNC RZ\nEXIT"
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
                "{DIVERGENT} JUMP b1\nb1:\nBAR.SYNC RZ\nBRA %v1, b1, b2\nb2:\nBAR.SYNC RZ\nBRA %v1, b2, b3\nb3:\nBAR.SYNC RZ\nEXIT"
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
    fn threads_apart_for_good_wait_together_for_no_barrier() {
        let cycle = format!(
            "{DIVERGENT} BRA %v1, b1, b2\nb1:\nJUMP b2\nb2:\nBRA.U %v1, b1, b3\nb3:\nBRA %v1, b4, b5\nb4:\n"
        );
        check(
            &format!("{cycle}STS %v0, RZ, %v0\nJUMP b5\nb5:\nSTS %v0, RZ, %v0\nEXIT"),
            expect![[r#"
            b0:
            b1:
              JUMP b2
            b2:
            b3:
              %v2:b = BSSY{target=b5}
            b4:
              JUMP b5
            b5:
              BSYNC %v2"#]],
        );
        check(
            &format!("{cycle}WARPSYNC 0xffffffff\nJUMP b5\nb5:\nSTS %v0, RZ, %v0\nEXIT"),
            expect![[r#"
            b0:
            b1:
              JUMP b2
            b2:
            b3:
            b4:
              JUMP b5
            b5:"#]],
        );
    }

    #[test]
    fn full_warp_syncs_stay_in_divergent_regions_only() {
        let shuffle = "WARPSYNC 0xffffffff\n%v9:r = SHFL.IDX %v0, RZ, 0x1f\n";
        let body = format!(
            "{DIVERGENT}{shuffle} BRA %v1, b1, b2\nb1:\n{}STG.E RZ, RZ, %v8\nJUMP b2\nb2:\nBAR.SYNC RZ\nSTG.E RZ, RZ, %v9\nEXIT",
            shuffle.replace("%v9", "%v8")
        );
        let mut func = text::parse(&format!("func \"f\" {{\n{body}\n}}")).unwrap();
        run(&mut func, &Context { sm: ptx_isa::Sm::new(90), checkpoint: &|| () }).unwrap();
        let count = |b: u32| func.block(BlockId(b)).insts.iter().filter(|i| i.op == Op::Warpsync).count();
        assert_eq!((count(0), count(1)), (0, 1));
    }
}
