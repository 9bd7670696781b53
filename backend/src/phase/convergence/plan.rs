//! Chooses the barriers, and the blocks that must be added before they can be placed.

use super::apart::{Apart, mark_diverged};
use super::groups::{Groups, pairs_elsewhere, unites};
use super::spins::{Spin, spins};
use super::waits::{Waits, any_waits};
use super::{depths, region};
use crate::ori::analyses::Analyses;
use crate::ori::cfg::{Cfg, for_each_successor};
use crate::ori::divergence::Divergence;
use crate::ori::dominators::{Tree, post_dominators};
use crate::ori::ir::{Block, BlockId, File, Function, Inst, Reg, Src, Term};
use crate::ori::loops::{LoopId, Loops};
use crate::ori::op::{Meeting, Op};
use crate::phase::dead_code::is_root;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;
use std::ops::Range;

/// The maximum number of meeting points that are tried for one branch, from the nearest outwards.
const TRIES: u32 = 8;

/// The number of rounds of choosing and checking barriers. After these, barriers around operations that wait are given
/// up.
const ROUNDS: usize = 8;

#[derive(Clone, Copy, Debug)]
pub(super) struct Barrier {
    /// The barrier is set at the end of this block.
    pub place: BlockId,
    /// Threads wait for the barrier at the start of this block.
    pub meet: BlockId,
}

impl Barrier {
    /// Whether `b` is in the barrier's region: threads reach it after they set the barrier and before they wait for it.
    pub(super) fn is_around(self, dom: &Tree, b: BlockId) -> bool {
        b != self.place && dom.dominates(self.place, b) && !dom.dominates(self.meet, b)
    }
}

#[derive(Default)]
pub(super) struct Plan {
    pub barriers: Vec<Barrier>,
    /// Headers that need a single entering edge. Each list contains the blocks of the loop that have an edge to the
    /// header.
    pub preheaders: Vec<(BlockId, Vec<BlockId>)>,
    /// Headers that need a single back edge, each with the blocks from which back edges lead to it.
    pub latches: Vec<(BlockId, Vec<BlockId>)>,
    /// Indexed by block: threads of a warp may be apart here.
    pub diverged: Vec<bool>,
    /// Operations whose masks separate the warp into groups, and calls whose threads call different functions. A
    /// barrier around each of them brings the threads together again. In the order of control flow.
    pub brackets: Vec<(BlockId, Range<usize>)>,
    /// Whether each barrier is loose; the indices are those of `barriers`.
    pub meetings: Vec<Meeting>,
    /// The places that need a `YIELD` but do not have one yet.
    pub spins: Vec<Spin>,
    /// Operations that threads may execute together with threads at another place.
    pub elsewhere: FxHashSet<(BlockId, Op)>,
    /// The headers that have been requested so far; `true` means a latch.
    asked: FxHashSet<(BlockId, bool)>,
}

impl Plan {
    /// `is_last`: no more blocks may be requested. A branch does not use a meeting point that needs a new block.
    pub(super) fn new(func: &Function, analyses: &Analyses, is_last: bool) -> Plan {
        let (cfg, dom, loops) = (analyses.cfg(func), analyses.dominators(func), analyses.loops(func));
        let divergence = analyses.divergence(func);
        let mut plan = Plan { diverged: vec![false; func.blocks.len()], ..Plan::default() };
        plan.elsewhere = pairs_elsewhere(func, dom);
        let parting = parting(func, cfg);
        if !cfg.order.iter().any(|b| divergence.branch_diverges(*b)) {
            plan.diverged = all_after(func, &parting, |_, _| false);
            plan.spins = spins(func, cfg, dom, loops, divergence, &plan);
            plan.brackets = Groups::new(func, cfg, loops, divergence, &plan.diverged).brackets;
            plan.add_calls(func, cfg, divergence);
            return plan;
        }
        let reduced = without_leaving_edges(func, cfg, loops);
        let reduced = reduced.as_ref().unwrap_or(func);
        let flow = Cfg::new(reduced);
        let parts = |&b: &BlockId| {
            let mut ways = 0;
            for_each_successor(reduced, b, |_| ways += 1);
            ways > 1 && divergence.branch_diverges(b)
        };
        let branches: Vec<BlockId> = flow.order.iter().copied().filter(parts).collect();
        if !is_last {
            plan.latches = endless_loops(reduced, &flow, loops, &branches);
            if !plan.latches.is_empty() {
                return plan;
            }
        }
        let post = post_dominators(&flow, reduced, loops);
        let blocks = || (0..func.blocks.len() as u32).map(BlockId);
        let yields: Vec<bool> = blocks().map(|b| any_in(func, b, |inst| func.yields(inst))).collect();
        let mut choice = Choice {
            func,
            flow: &flow,
            dom,
            post: &post,
            loops,
            is_last,
            meets: branches.iter().map(|b| (post.parent(*b), 1)).collect(),
            places: vec![None; branches.len()],
            branches,
            parting,
            saves: if yields.contains(&true) {
                blocks().filter(|b| any_in(func, *b, |inst| func.saves_barriers(inst))).collect()
            } else {
                Vec::new()
            },
            yields,
            calls: calls_under_barriers(func, cfg),
            left_for: ends_left_for(func, reduced, cfg, divergence),
            unites: blocks().map(|b| unites(func, b, &plan.elsewhere)).collect(),
            barrier_at: vec![None; func.blocks.len()],
            climbed: FxHashMap::default(),
            cycles: FxHashMap::default(),
        };
        choice.choose(&mut plan, reduced, divergence);
        plan.meetings = choice.meetings(&plan.barriers);
        plan.diverged = choice.diverged(&plan.barriers, &plan.meetings, reduced);
        if plan.preheaders.is_empty() && plan.latches.is_empty() {
            plan.spins = spins(func, cfg, dom, loops, divergence, &plan);
        }
        plan.brackets = Groups::new(func, cfg, loops, divergence, &plan.diverged).brackets;
        plan.add_calls(func, cfg, divergence);
        plan
    }

    /// Adds the calls whose threads may call different functions to the brackets, with the copies of arguments and
    /// results. No callee may wait for threads that have returned and wait at the barrier, and as many barriers as a
    /// function may set at the same time must suffice.
    fn add_calls(&mut self, func: &Function, cfg: &Cfg, divergence: &Divergence) {
        let calls_apart = |inst: &Inst| {
            let target = inst.srcs.first().and_then(Src::value);
            matches!(inst.op, Op::CallTo { absolute: false, .. })
                && target.is_some_and(|v| divergence.is_divergent(v))
        };
        let is_safe = func.facts.pointees_never_wait && !func.may_yield();
        if !is_safe || !cfg.order.iter().any(|b| any_in(func, *b, calls_apart)) {
            return;
        }
        let (depths, most) = (depths(func, &self.barriers), func.barriers());
        let mut brackets = std::mem::take(&mut self.brackets).into_iter().peekable();
        for &b in &cfg.order {
            let mut here: Vec<Range<usize>> = Vec::new();
            while let Some((_, range)) = brackets.next_if(|(at, _)| *at == b) {
                here.push(range);
            }
            if depths[b.index()] < room(func, b, most) {
                let insts = &func.block(b).insts;
                let calls = insts.iter().enumerate().filter(|(_, inst)| calls_apart(inst));
                for range in calls.filter_map(|(i, _)| with_copies(insts, i)).collect::<Vec<_>>() {
                    if here.iter().all(|other| other.end <= range.start || range.end <= other.start) {
                        here.push(range);
                    }
                }
                here.sort_by_key(|range| range.start);
            }
            self.brackets.extend(here.into_iter().map(|range| (b, range)));
        }
    }
}

/// The call at `i` with the copies of its arguments right before it and those of its results right after it. `None` if
/// other instructions are between them.
fn with_copies(insts: &[Inst], i: usize) -> Option<Range<usize>> {
    let call = &insts[i];
    let makes = |inst: &&Inst| {
        inst.op == Op::Fix && inst.defs().all(|v| call.srcs[1..].iter().any(|src| src.value() == Some(v)))
    };
    let reads = |inst: &&Inst| {
        inst.op == Op::Fix && call.defs().any(|v| inst.srcs.iter().any(|src| src.value() == Some(v)))
    };
    let before = insts[..i].iter().rev().take_while(makes).count();
    let after = insts[i + 1..].iter().take_while(reads).count();
    let all = before == call.srcs.len() - 1 && after == call.defs().count();
    all.then_some(i - before..i + 1 + after)
}

/// The choice of a meeting point for each divergent branch, and the analyses it needs.
struct Choice<'a> {
    func: &'a Function,
    /// The control flow graph without edges that leave ([`leaves`]). `post` belongs to this graph, `dom` and `loops` to
    /// the whole graph.
    flow: &'a Cfg,
    dom: &'a Tree,
    post: &'a Tree,
    loops: &'a Loops,
    is_last: bool,
    branches: Vec<BlockId>,
    /// Blocks in which threads may be apart without a branch of this function; see [`parting`].
    parting: Vec<BlockId>,
    /// Indexed by block: threads may yield there.
    yields: Vec<bool>,
    /// Blocks with calls around which no barrier may be set; see [`calls_under_barriers`].
    calls: Vec<BlockId>,
    /// Blocks with calls of functions that may save barriers, if threads yield anywhere in the function. No loose
    /// barrier may be set around them.
    saves: Vec<BlockId>,
    /// Blocks that some threads of a divergent branch enter in order to end, while the other threads continue.
    left_for: Vec<BlockId>,
    /// Indexed by block: all threads of the warp meet there.
    unites: Vec<bool>,
    /// For each branch: the meeting point of its threads, if any, and the number of meeting points that were tried.
    meets: Vec<(Option<BlockId>, u32)>,
    /// For each branch: the place of its barrier if no other branch shared the barrier.
    places: Vec<Option<BlockId>>,
    /// Indexed by block: the index of the barrier that threads wait for at its start.
    barrier_at: Vec<Option<u32>>,
    /// Results of [`Choice::climb`], by block and meeting point.
    climbed: FxHashMap<(BlockId, BlockId), Climbed>,
    /// Results of [`Choice::cycle_without`], by place and meeting point.
    cycles: FxHashMap<(BlockId, BlockId), Vec<BlockId>>,
}

#[derive(Clone, Copy)]
enum Climbed {
    To(BlockId),
    /// This loop needs a preheader first.
    Needs(LoopId),
    Nowhere,
}

impl Choice<'_> {
    /// Finds barriers at which no thread waits forever, or requests the blocks that these barriers need first.
    fn choose(&mut self, plan: &mut Plan, reduced: &Function, divergence: &Divergence) {
        let waits = Waits::new(self.func, self.dom, self.loops);
        for round in 0.. {
            loop {
                self.place_all(plan);
                if !plan.preheaders.is_empty() || !plan.latches.is_empty() {
                    return;
                }
                if !self.give_up_innermost(&plan.barriers) {
                    break;
                }
            }
            if waits.is_empty() && self.calls.is_empty() && self.saves.is_empty() {
                return;
            }
            let mut taken_back = waits.unsafe_barriers(self.func, &plan.barriers);
            let meetings = self.meetings(&plan.barriers);
            for ((barrier, meeting), back) in plan.barriers.iter().zip(&meetings).zip(&mut taken_back) {
                let saves = if *meeting == Meeting::Loose { &self.saves[..] } else { &[] };
                *back |= self.calls.iter().chain(saves).any(|b| barrier.is_around(self.dom, *b));
            }
            if round < ROUNDS && !waits.is_empty() {
                let diverged = self.diverged(&plan.barriers, &meetings, reduced);
                let mut groups = Groups::new(self.func, self.flow, self.loops, divergence, &diverged);
                groups.parting.extend_from_slice(&self.parting);
                // Routines execute these operations. Threads return from the routines in groups, one after the other.
                let apart = plan.elsewhere.iter().map(|(b, _)| *b).filter(|b| diverged[b.index()]);
                groups.parting.extend(apart.collect::<BTreeSet<_>>());
                let is_end = |b, to| self.is_end(&plan.barriers, &meetings, b, to);
                let meet_in = |b, to| self.meet_in(b, to);
                let apart = Apart::new(reduced, &self.pairs(&meetings), &groups.parting, is_end, meet_in);
                for (barrier, back) in plan.barriers.iter().zip(&mut taken_back) {
                    *back |= apart.comes_apart(barrier.place) && waits.any_inside(*barrier);
                }
            } else {
                for (barrier, back) in plan.barriers.iter().zip(&mut taken_back) {
                    *back |= waits.any_inside(*barrier);
                }
            }
            if !taken_back.contains(&true) {
                return;
            }
            for i in 0..self.branches.len() {
                let at = self.meets[i].0.and_then(|meet| self.barrier_at[meet.index()]);
                let Some(at) = at.map(|at| at as usize).filter(|at| taken_back[*at]) else { continue };
                // Branches further inside may keep this meeting point, with a smaller region.
                if self.places[i] != Some(plan.barriers[at].place) {
                    continue;
                }
                if round < ROUNDS { self.go_outwards(i) } else { self.meets[i].0 = None }
            }
        }
    }

    /// Gives up the innermost barriers around blocks that are in more regions than there are registers for. Their
    /// branches meet at the nearest barrier further out. Returns whether there are such blocks.
    fn give_up_innermost(&mut self, barriers: &[Barrier]) -> bool {
        let most = self.func.barriers();
        let room = |b: BlockId| room(self.func, b, most);
        if self.flow.order.iter().all(|&b| barriers.len() <= room(b).into()) {
            return false;
        }
        let depths = depths(self.func, barriers);
        // Indexed by block: the number of barriers that may stay around it, if there are more.
        let limits =
            depths.iter().zip(0..).map(|(&depth, i)| Some(room(BlockId(i))).filter(|room| depth > *room));
        let limits: Vec<Option<u16>> = limits.collect();
        let mut seen = vec![u32::MAX; self.func.blocks.len()];
        let inside = |(barrier, walk): (&Barrier, u32)| {
            let limits =
                region(self.func, barrier, &mut seen, walk).into_iter().filter_map(|b| limits[b.index()]);
            limits.min().is_some_and(|limit| depths[barrier.place.index()] >= limit)
        };
        let given_up: Vec<bool> = barriers.iter().zip(0..).map(inside).collect();
        for (i, &branch) in self.branches.iter().enumerate() {
            let at = |meet: &BlockId| self.barrier_at[meet.index()].map(|at| at as usize);
            if self.meets[i].0.as_ref().and_then(at).is_none_or(|at| !given_up[at]) {
                continue;
            }
            // The region of the other barrier must not grow, or it might be too much in turn.
            let stays = |meet: &BlockId| {
                at(meet).is_some_and(|at| !given_up[at] && barriers[at].is_around(self.dom, branch))
            };
            let mut meet = self.meets[i].0;
            while meet.as_ref().is_some_and(|meet| !stays(meet)) {
                meet = meet.and_then(|meet| self.post.parent(meet));
            }
            self.meets[i].0 = meet;
        }
        given_up.contains(&true)
    }

    /// Whether a region around `b` ends at `to`: threads that were together before they reached `b` are together again
    /// at `to`.
    fn is_end(&self, barriers: &[Barrier], meetings: &[Meeting], b: BlockId, to: BlockId) -> bool {
        let at = self.barrier_at[to.index()].map(|at| at as usize);
        at.is_some_and(|at| meetings[at] == Meeting::Firm && barriers[at].is_around(self.dom, b))
    }

    /// Whether the threads that leave `b` together meet in `to`, where all threads of the warp do, before any of them
    /// returns to `b`. In a loop, threads might otherwise meet there in different iterations.
    fn meet_in(&self, b: BlockId, to: BlockId) -> bool {
        let once = || match self.loops.innermost(to) {
            None => true,
            Some(id) => {
                self.loops.contains(id, b)
                    && edges_inside(self.flow, self.loops, id)
                        .iter()
                        .all(|latch| self.dom.dominates(to, *latch))
            }
        };
        self.unites[to.index()]
            && !self.loops.is_irreducible(to)
            && !self.loops.is_irreducible(b)
            && self.post.dominates(to, b)
            && once()
    }

    /// For each barrier: loose if threads may yield in its region.
    fn meetings(&self, barriers: &[Barrier]) -> Vec<Meeting> {
        if !self.yields.contains(&true) {
            return vec![Meeting::Firm; barriers.len()];
        }
        let mut seen = vec![u32::MAX; self.func.blocks.len()];
        // The number of block visits that are left. This limit keeps the time of the walks almost linear.
        let mut budget = 1_000_000 + 64 * seen.len();
        let meeting = |(barrier, walk): (&Barrier, u32)| {
            let mut work = vec![barrier.place];
            let mut meeting = Meeting::Firm;
            while let Some(at) = work.pop().filter(|_| meeting == Meeting::Firm) {
                if budget == 0 {
                    return Meeting::Loose;
                }
                budget -= 1;
                for_each_successor(self.func, at, |to| {
                    if to != barrier.meet && std::mem::replace(&mut seen[to.index()], walk) != walk {
                        if self.yields[to.index()] {
                            meeting = Meeting::Loose;
                        }
                        work.push(to);
                    }
                });
            }
            meeting
        };
        barriers.iter().zip(0..).map(meeting).collect()
    }

    /// Indexed by block: threads of a warp may be apart there.
    fn diverged(&self, barriers: &[Barrier], meetings: &[Meeting], reduced: &Function) -> Vec<bool> {
        let mut diverged =
            all_after(self.func, &self.parting, |b, to| self.is_end(barriers, meetings, b, to));
        mark_diverged(reduced, &self.pairs(meetings), &self.unites, &mut diverged);
        self.left_for.iter().for_each(|b| diverged[b.index()] = true);
        diverged
    }

    /// Each branch with the block in which its threads are together again, if there is one.
    fn pairs(&self, meetings: &[Meeting]) -> Vec<(BlockId, Option<BlockId>)> {
        let is_firm = |meet: &BlockId| {
            self.barrier_at[meet.index()].is_none_or(|at| meetings[at as usize] == Meeting::Firm)
        };
        let meets = self.meets.iter().map(|(meet, _)| meet.filter(is_firm));
        self.branches.iter().copied().zip(meets).collect()
    }

    /// Moves a branch to its next meeting point, or to none if there is no other or too many were tried.
    fn go_outwards(&mut self, i: usize) {
        let (meet, tries) = &mut self.meets[i];
        *meet = meet.filter(|_| *tries < TRIES).and_then(|meet| self.post.parent(meet));
        *tries += 1;
    }

    fn place_all(&mut self, plan: &mut Plan) {
        plan.barriers.clear();
        self.barrier_at.fill(None);
        for i in 0..self.branches.len() {
            while let Some(meet) = self.meets[i].0 {
                match self.find(self.branches[i], meet) {
                    BarrierPlace::At(place) => {
                        self.places[i] = Some(place);
                        self.add(plan, Barrier { place, meet });
                        break;
                    }
                    BarrierPlace::Needs(request) if !self.is_last => {
                        request.add_to(plan);
                        break;
                    }
                    _ => self.go_outwards(i),
                }
            }
        }
    }

    fn add(&mut self, plan: &mut Plan, barrier: Barrier) {
        match self.barrier_at[barrier.meet.index()] {
            // Branches with the same meeting point share the outermost place.
            Some(known) => {
                let known = &mut plan.barriers[known as usize];
                if self.dom.dominates(barrier.place, known.place) {
                    known.place = barrier.place;
                }
            }
            None => {
                self.barrier_at[barrier.meet.index()] = Some(plan.barriers.len() as u32);
                plan.barriers.push(barrier);
            }
        }
    }

    /// Finds the place of the barrier for a branch and a meeting point, or the block that it needs first.
    fn find(&mut self, b: BlockId, meet: BlockId) -> BarrierPlace {
        // Threads that leave an inner region to end go to such a block directly. If they waited there, they and the
        // threads at the inner meeting point would wait for each other.
        if only_ends(self.func.block(meet)) || self.loops.is_irreducible(b) || self.loops.is_irreducible(meet)
        {
            return BarrierPlace::None;
        }
        match self.loops.innermost(meet).filter(|_| self.loops.is_header(meet)) {
            Some(id) if self.loops.contains(id, b) => {
                let latches = edges_inside(self.flow, self.loops, id);
                match latches.len() {
                    0 | 1 => BarrierPlace::None,
                    _ => BarrierPlace::Needs(Request::Latch(meet, latches)),
                }
            }
            // In the header, threads would wait in every iteration. They wait in the preheader instead.
            Some(id) => match self.loops.preheader(self.func, self.flow, id) {
                Some(_) => BarrierPlace::None,
                None => BarrierPlace::Needs(Request::preheader(self.flow, self.loops, id)),
            },
            None => self.find_place(b, meet),
        }
    }

    /// Climbs the dominator tree from `b`, past loops that do not contain `meet`, to a block that dominates `meet`.
    fn climb(&mut self, b: BlockId, meet: BlockId) -> Climbed {
        let mut passed = Vec::new();
        let mut place = b;
        let end = loop {
            if let Some(known) = self.climbed.get(&(place, meet)) {
                break *known;
            }
            passed.push(place);
            if let Some(id) = self.loops.outermost_without(place, meet) {
                match self.loops.preheader(self.func, self.flow, id) {
                    Some(preheader) => place = preheader,
                    None => break Climbed::Needs(id),
                }
            }
            if self.dom.dominates(place, meet) {
                break Climbed::To(place);
            }
            match self.dom.parent(place) {
                Some(up) => place = up,
                None => break Climbed::Nowhere,
            }
        };
        self.climbed.extend(passed.into_iter().map(|place| ((place, meet), end)));
        end
    }

    fn find_place(&mut self, b: BlockId, meet: BlockId) -> BarrierPlace {
        let place = match self.climb(b, meet) {
            Climbed::To(place) => place,
            Climbed::Needs(id) => return BarrierPlace::Needs(Request::preheader(self.flow, self.loops, id)),
            Climbed::Nowhere => return BarrierPlace::None,
        };
        let same_loops = self.loops.innermost(meet).is_none_or(|id| self.loops.contains(id, place));
        let all_come = place == b || self.post.dominates(meet, place);
        if !same_loops || !all_come || place == meet || self.loops.is_irreducible(place) {
            return BarrierPlace::None;
        }
        let cycle = match self.cycles.get(&(place, meet)) {
            Some(known) => known.clone(),
            None => {
                let found = self.cycle_without(place, meet);
                self.cycles.insert((place, meet), found.clone());
                found
            }
        };
        if cycle.is_empty() {
            return BarrierPlace::At(place);
        }
        // Two loops share a header. The inner loop, which does not contain the meeting point, gets its own header.
        match self.loops.innermost(place).map(|id| self.loops.get(id).header) {
            Some(header) if cycle.contains(&header) => BarrierPlace::Needs(Request::Preheader(header, cycle)),
            _ => BarrierPlace::None,
        }
    }

    /// The blocks on the paths from `place` back to `place` that do not pass `meet`; empty if there is no such path.
    fn cycle_without(&self, place: BlockId, meet: BlockId) -> Vec<BlockId> {
        if self.loops.innermost(place).is_none() && !self.loops.is_irreducible(place) {
            return Vec::new();
        }
        let mut ahead: FxHashSet<BlockId> = FxHashSet::default();
        let mut work = vec![place];
        while let Some(at) = work.pop() {
            for_each_successor(self.func, at, |to| {
                if to != meet && ahead.insert(to) {
                    work.push(to);
                }
            });
        }
        let mut cycle = Vec::new();
        if ahead.remove(&place) {
            work.push(place);
            while let Some(at) = work.pop() {
                cycle.push(at);
                work.extend(self.flow.preds(at).iter().copied().filter(|from| ahead.remove(from)));
            }
        }
        cycle
    }
}

enum BarrierPlace {
    At(BlockId),
    Needs(Request),
    None,
}

/// A block that must be added before a barrier can be placed.
enum Request {
    /// A single entering edge for a header. The list contains the blocks of the loop that have an edge to the header.
    Preheader(BlockId, Vec<BlockId>),
    /// A single back edge for a header. The list has the blocks from which back edges lead to the header.
    Latch(BlockId, Vec<BlockId>),
}

impl Request {
    fn preheader(cfg: &Cfg, loops: &Loops, id: LoopId) -> Request {
        Request::Preheader(loops.get(id).header, edges_inside(cfg, loops, id))
    }

    fn add_to(self, plan: &mut Plan) {
        let (list, request, is_latch) = match self {
            Request::Preheader(header, inside) => (&mut plan.preheaders, (header, inside), false),
            Request::Latch(header, inside) => (&mut plan.latches, (header, inside), true),
        };
        if plan.asked.insert((request.0, is_latch)) {
            list.push(request);
        }
    }
}

/// Blocks of the loop with an edge to its header.
pub(super) fn edges_inside(cfg: &Cfg, loops: &Loops, id: LoopId) -> Vec<BlockId> {
    cfg.preds(loops.get(id).header).iter().copied().filter(|p| loops.contains(id, *p)).collect()
}

/// Loops that control never leaves, with a divergent branch and several back edges. They need a single back edge, so
/// that threads meet before the next iteration.
fn endless_loops(
    func: &Function,
    cfg: &Cfg,
    loops: &Loops,
    branches: &[BlockId],
) -> Vec<(BlockId, Vec<BlockId>)> {
    let ends = cfg.reach_an_end(func);
    let outermost = |b: &BlockId| loops.around(*b).last().filter(|_| !ends[b.index()]);
    let mut found: Vec<LoopId> = branches.iter().filter_map(outermost).collect();
    found.sort();
    found.dedup();
    found.retain(|id| !loops.is_irreducible(loops.get(*id).header));
    let latches = found.into_iter().map(|id| (loops.get(id).header, edges_inside(cfg, loops, id)));
    latches.filter(|(_, latches)| latches.len() > 1).collect()
}

/// Whether the edge leads to an end of the program where threads need not meet others: to a block that only ends, or to
/// an `EXIT` block without operations that wait, which is reached only by this edge, from outside any loop. Threads that
/// leave a loop one by one should meet in the code after the loop.
fn leaves(func: &Function, cfg: &Cfg, loops: &Loops, from: BlockId, to: BlockId) -> bool {
    let block = func.block(to);
    let in_cycle = || loops.innermost(from).is_some() || loops.is_irreducible(from);
    let is_last = matches!(block.term, Term::Exit) && cfg.preds(to).len() == 1;
    only_ends(block) || is_last && !in_cycle() && !any_waits(func, to)
}

/// Whether threads that reach the block end there, and execute no code before that for which they should meet others.
/// Instructions whose results nothing reads do not count.
fn only_ends(block: &Block) -> bool {
    match block.term {
        Term::Unreachable => true,
        Term::Exit => !block.insts.iter().any(is_root),
        // Threads that return do not end, and stay in every mask.
        Term::Ret | Term::Jump(_) | Term::Branch { .. } | Term::Switch { .. } => false,
    }
}

/// The function's control flow without edges that leave ([`leaves`]). If both edges of a branch leave, they stay.
/// `None` if all edges stay.
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

/// The targets of those edges of divergent branches that `reduced` does not have.
fn ends_left_for(func: &Function, reduced: &Function, cfg: &Cfg, divergence: &Divergence) -> Vec<BlockId> {
    let mut ends = Vec::new();
    for &b in cfg.order.iter().filter(|b| divergence.branch_diverges(**b)) {
        if let (Term::Branch { then, els, .. }, Term::Jump(stays)) =
            (&func.block(b).term, &reduced.block(b).term)
        {
            ends.push(if then == stays { *els } else { *then });
        }
    }
    ends
}

/// A function with the same control flow, but without instructions.
fn skeleton(func: &Function) -> Function {
    Function {
        name: String::new(),
        entry: func.entry,
        routine: None,
        blocks: func
            .blocks
            .iter()
            .map(|block| Block { term: block.term.clone(), ..Default::default() })
            .collect(),
        layout: func.layout.clone(),
        values: Vec::new(),
        literals: Vec::new(),
        frame: func.frame,
        facts: Default::default(),
    }
}

/// The number of barriers that may be set around a block: those that its calls preserve, and as many registers as its
/// operations do not take themselves. `most` is the number for the whole function.
fn room(func: &Function, b: BlockId, most: u16) -> u16 {
    let left = |inst: &Inst| {
        if inst.op.calls_function() {
            let is_kept = |index: &u16| inst.op.preserved().has(Reg { file: File::B, index: *index as u8 });
            (0..most).filter(is_kept).count() as u16
        } else {
            let taken = inst.defs().filter(|v| func.value(*v).file == File::B).count() as u16;
            most.saturating_sub(taken)
        }
    };
    func.block(b).insts.iter().map(left).min().unwrap_or(most)
}

/// Blocks with calls around which a function that may yield must not set a barrier. If it did, it would save a barrier
/// of its caller in its frame. When its threads yield, they release the threads that wait for them, but the saved mask
/// would still contain the released threads.
fn calls_under_barriers(func: &Function, cfg: &Cfg) -> Vec<BlockId> {
    if func.entry || !func.may_yield() {
        return Vec::new();
    }
    cfg.order.iter().copied().filter(|b| any_in(func, *b, |inst| inst.op.calls_function())).collect()
}

/// Whether something holds for an instruction of a block.
fn any_in(func: &Function, b: BlockId, holds: impl Fn(&Inst) -> bool) -> bool {
    func.block(b).insts.iter().any(holds)
}

/// Blocks in which threads may be apart without a branch of this function: its first block, if the function is called,
/// and blocks with calls, because threads may return from a call in groups.
fn parting(func: &Function, cfg: &Cfg) -> Vec<BlockId> {
    let calls = |b: &BlockId| any_in(func, *b, |inst| inst.op.is_call());
    let starts = func.layout.first().filter(|_| !func.entry);
    starts.into_iter().copied().chain(cfg.order.iter().copied().filter(calls)).collect()
}

/// Indexed by block: whether it is one of `blocks`, or control reaches it from one of them. The walk from a block `b`
/// ends before each block `to` for which `is_end(b, to)` is true.
fn all_after(func: &Function, blocks: &[BlockId], is_end: impl Fn(BlockId, BlockId) -> bool) -> Vec<bool> {
    let mut reached = vec![false; func.blocks.len()];
    // Indexed by block: the last of `blocks` whose walk reached it.
    let mut seen = vec![None; func.blocks.len()];
    // The number of block visits that are left. This limit keeps the time of the walks almost linear.
    let mut budget = 1_000_000 + 64 * func.blocks.len();
    for &first in blocks {
        let mut work = vec![first];
        while let Some(at) = work.pop() {
            reached[at.index()] = true;
            if budget == 0 {
                return vec![true; func.blocks.len()];
            }
            budget -= 1;
            for_each_successor(func, at, |to| {
                if !is_end(first, to) && seen[to.index()].replace(first) != Some(first) {
                    work.push(to);
                }
            });
        }
    }
    reached
}
