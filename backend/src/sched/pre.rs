//! Scheduling before allocation: the order of instructions in SSA form determines which values are live together.
//!
//! A list scheduler for each block, from the bottom up, so that the exact number of live lanes is known at every step:
//! the values that placed instructions read, and that are defined above, are live. While there are enough registers, it
//! places the deepest instruction whose result is not needed too soon, including by later blocks. This moves
//! long-latency loads up and together. When registers become scarce, it places the instruction that ends the most live
//! ranges. The registers that a call of known code overwrites count as live during the call. The limit is determined
//! for the whole function: the number that does not reduce the occupancy, or the smallest whole unit of registers for
//! which orders of all blocks were found.
//!
//! Before and after: SSA form. Only the order within blocks changes.

mod graph;
mod lanes;
mod ties;

use crate::ori::cfg::Cfg;
use crate::ori::ir::{BlockId, Function, Inst};
use crate::ori::op::Op;
use crate::regalloc::counts::Counts;
use crate::regalloc::live::Liveness;
use crate::target::{REGISTER_UNIT, Target};
use graph::{Graph, Latencies};
use lanes::{Change, Count, Lanes};
use smallvec::SmallVec;
use std::collections::VecDeque;
use ties::Tie;

/// Registers that are counted but hold no value: the stack pointer, and those that the hardware takes.
const NOT_LIVE: u32 = 3;
/// The number of registers below the limit of a function that an order leaves to allocation.
pub(crate) const SPARE: u32 = 3;
/// The number of predicates that may be live together: one is left for the allocator's moves.
const PREDICATES: u32 = 6;
/// The number of predicates for a block in which more than the others are live throughout.
const PREDICATES_OF_BLOCK: u32 = 2;
/// The number of live registers below which none is saved: an instruction that could wait runs while a load is in
/// progress instead.
const PLENTY: u32 = 8;
/// The number of candidates that one step examines, those nearest to the end of the original order first.
const WINDOW: usize = 48;
/// Where registers are scarce, a step also examines this number of the most recent candidates, so that one expression
/// follows another even if there are more expressions than that.
const LATEST: usize = 48;

/// Data about a function whose instructions are ordered, for any number of orders.
pub(crate) struct Plans {
    plans: Vec<Plan>,
    lanes: Lanes,
    latencies: Latencies,
    /// The number of registers that do not reduce the occupancy.
    free: u32,
    /// The number of registers of each block if blocks differ, and the maximum.
    counts: Option<Counts>,
    most: u32,
}

/// Orders of the instructions of some blocks.
pub(crate) struct Order {
    /// The instructions of each block from the last to the first, by their index in the original function.
    blocks: Vec<(BlockId, Vec<u32>)>,
    /// The number of registers that the order was made for.
    meant: u32,
    /// The maximum number of general registers that are live together.
    most_live: u32,
}

impl Plans {
    pub(crate) fn new(func: &Function, target: &Target) -> Plans {
        let cfg = Cfg::new(func);
        let live = Liveness::compute(func, &cfg);
        let mut lanes = Lanes::new(func, &live, target);
        let counts = Counts::of(func, &cfg);
        Plans {
            plans: cfg.order.iter().map(|&b| Plan::new(func, &cfg, b, &mut lanes)).collect(),
            lanes,
            latencies: Latencies::new(target.generation()),
            free: func.free_registers(target),
            most: counts.as_ref().map_or(1, |counts| counts.most(func)),
            counts,
        }
    }

    /// Orders the instructions of every block of `func`, for which the plans were made. `max_registers` is the limit
    /// for general registers as ptxas counts them; zero requests as few as possible. If the function changes its number
    /// of registers, the limit applies to blocks with the largest number, and to other blocks in proportion.
    pub(crate) fn order(&mut self, func: &Function, max_registers: u32, checkpoint: &dyn Fn()) -> Order {
        let Plans { plans, lanes, latencies, free, counts, most } = self;
        let held = |b: BlockId| {
            counts.as_ref().map(|counts| counts.usual_in(func, b) * max_registers.min(*most) / *most)
        };
        let mut need = 0;
        for plan in &mut *plans {
            checkpoint();
            let enough = held(plan.block).unwrap_or((*free).min(max_registers));
            need = need.max(plan.need(func, lanes, latencies, enough));
        }
        let live = |registers: u32| registers.saturating_sub(NOT_LIVE + SPARE);
        let mut limit = affordable(need, *free).min(live(max_registers));
        let mut orders: Vec<Found> = plans
            .iter_mut()
            .map(|plan| {
                checkpoint();
                let limit = held(plan.block).map_or(limit, live);
                plan.order(func, lanes, latencies, limit)
            })
            .collect();
        // The search for the narrowest order finds a narrow one. More warps may fit with another.
        while counts.is_none() && limit + NOT_LIVE > (*free).max(REGISTER_UNIT) {
            let fewer = (limit + NOT_LIVE - 1) / REGISTER_UNIT * REGISTER_UNIT - NOT_LIVE;
            let narrower = plans.iter_mut().zip(&orders).map(|(plan, found)| {
                if found.peak.excess(fewer, plan.predicates) == 0 {
                    return Some(found.clone());
                }
                checkpoint();
                let found = plan.order(func, lanes, latencies, fewer);
                (found.peak.excess(fewer, plan.predicates) == 0).then_some(found)
            });
            let Some(narrower) = narrower.collect() else { break };
            (orders, limit) = (narrower, fewer);
        }
        let most_live = orders.iter().map(|found| found.peak.general).max().unwrap_or(0);
        let blocks = plans.iter().zip(orders).filter_map(|(plan, found)| Some((plan.block, found.order?)));
        let blocks = blocks.collect();
        Order { blocks, meant: limit + NOT_LIVE, most_live }
    }
}

impl Order {
    pub(crate) fn meant(&self) -> u32 {
        self.meant
    }

    /// The maximum number of general registers that are live together.
    pub(crate) fn most_live(&self) -> u32 {
        self.most_live
    }

    pub(crate) fn is_as(&self, other: &Order) -> bool {
        self.blocks == other.blocks
    }

    pub(crate) fn is_narrower_than(&self, other: &Order) -> bool {
        self.most_live < other.most_live
    }

    /// Whether the values that are live together may fit in `registers` as ptxas counts them.
    pub(crate) fn may_fit(&self, registers: u32) -> bool {
        self.most_live + NOT_LIVE <= registers
    }

    /// Applies the order to the function for which it was made.
    pub(crate) fn apply(&self, func: &mut Function) {
        for (b, order) in &self.blocks {
            let block = func.block_mut(*b);
            let mut insts: Vec<Option<Inst>> =
                std::mem::take(&mut block.insts).into_iter().map(Some).collect();
            block.insts = order.iter().rev().filter_map(|&i| insts[i as usize].take()).collect();
        }
    }
}

/// The number of live registers that does not reduce the occupancy below that of `need`. `free` registers never reduce
/// it.
fn affordable(need: u32, free: u32) -> u32 {
    (need + NOT_LIVE).max(free).next_multiple_of(REGISTER_UNIT) - NOT_LIVE
}

/// An order of a block, from the last instruction to the first, and the maximum that is live in it.
type Ordered = (Vec<u32>, Count);

/// The order of a block for a limit. `order` is `None` if the block keeps its original order.
#[derive(Clone)]
struct Found {
    order: Option<Vec<u32>>,
    peak: Count,
}

impl Count {
    /// The number of values that exceed the limits. A predicate without a register takes a general one.
    fn excess(self, limit: u32, predicates: u32) -> u32 {
        let general = self.general + self.predicates.saturating_sub(PREDICATES);
        general.saturating_sub(limit) + self.predicates.saturating_sub(predicates)
    }
}

/// Data about a block that does not depend on its limit.
struct Plan {
    block: BlockId,
    /// The values that are live at the end.
    end: Vec<u32>,
    ties: Vec<Tie>,
    original: Count,
    /// The number of predicates that may be live together. If many are live throughout the block, some of them are in
    /// general registers in any order, and there are still predicates for what the block computes.
    predicates: u32,
    /// Computed on first use.
    graph: Option<Graph>,
    /// Computed on first use: the order with the fewest live values, if it is better than the original one.
    narrow: Option<Option<Ordered>>,
    /// Whether that order counts.
    is_tight: bool,
}

impl Plan {
    fn new(func: &Function, cfg: &Cfg, b: BlockId, lanes: &mut Lanes) -> Plan {
        let block = func.block(b);
        let end = lanes.enter(b.index(), block.term.operand().map(|s| s.kind));
        let throughout = lanes.predicates_throughout(&block.insts);
        let original = lanes.peak(block.insts.iter().rev());
        let predicates = PREDICATES.max(throughout + PREDICATES_OF_BLOCK);
        let ties = ties::ties(func, cfg, b, lanes, &end);
        Plan { block: b, end, ties, original, predicates, graph: None, narrow: None, is_tight: false }
    }

    fn graph(&mut self, func: &Function, lanes: &Lanes, latencies: &mut Latencies) -> &Graph {
        let block = func.block(self.block);
        self.graph.get_or_insert_with(|| {
            let mut graph = Graph::new(block, lanes, latencies);
            ties::keep(&mut graph, &self.ties, &block.insts, lanes);
            graph
        })
    }

    fn has_fence(&mut self, func: &Function, lanes: &Lanes, latencies: &mut Latencies) -> bool {
        self.graph(func, lanes, latencies).fences.iter().any(|fences| *fences > 0)
    }

    fn attempt(
        &mut self,
        func: &Function,
        lanes: &mut Lanes,
        latencies: &mut Latencies,
        limits: Limits,
    ) -> Ordered {
        self.graph(func, lanes, latencies);
        let Some(graph) = &self.graph else { return Ordered::default() };
        let insts = &func.block(self.block).insts;
        lanes.reset(&self.end);
        let order = Scheduler::new(graph, insts, lanes, limits).run();
        lanes.reset(&self.end);
        let peak = lanes.peak(order.iter().map(|&i| &insts[i as usize]));
        (order, peak)
    }

    /// The number of registers that the narrowest order needs. Up to `enough`, the original order is as good.
    fn need(&mut self, func: &Function, lanes: &mut Lanes, latencies: &mut Latencies, enough: u32) -> u32 {
        let original = self.original;
        self.is_tight = original.general + NOT_LIVE > enough;
        if self.is_tight && self.narrow.is_none() {
            let mut fewest = self.attempt(func, lanes, latencies, Limits::FEWEST);
            // A search is not worthwhile if it hardly helps, unless fences separate most values from their readers.
            let is_stuck =
                fewest.1.general + NOT_LIVE > enough && fewest.1.general > original.general * 7 / 8;
            if is_stuck && self.has_fence(func, lanes, latencies) {
                let limits = Limits { fences_last: true, ..Limits::FEWEST };
                let other = self.attempt(func, lanes, latencies, limits);
                if other.1.general < fewest.1.general {
                    fewest = other;
                }
            }
            let (order, peak) = fewest;
            let is_better =
                peak.general < original.general && peak.predicates <= original.predicates.max(PREDICATES);
            self.narrow = Some(is_better.then_some((order, peak)));
        }
        self.narrow().map_or(original, |(_, peak)| *peak).general
    }

    fn narrow(&self) -> Option<&Ordered> {
        self.narrow.as_ref().filter(|_| self.is_tight)?.as_ref()
    }

    /// The best of some orders for a limit, or the original one if that is better.
    fn order(&mut self, func: &Function, lanes: &mut Lanes, latencies: &mut Latencies, limit: u32) -> Found {
        let original = Found { order: None, peak: self.original };
        if func.block(self.block).insts.len() < 3 {
            return original;
        }
        // If nothing fits, steps exceed the limits, so later attempts get smaller limits at once.
        let within = |general: u32, predicates: u32, depth_first: bool| Limits {
            general,
            predicates,
            depth_first,
            fences_last: false,
        };
        let most = self.predicates;
        let tries = [
            within(limit, most, false),
            within(limit * 7 / 8, most - 1, false),
            within(limit, most, true),
            within(limit * 3 / 4, most - 2, true),
            within(limit * 5 / 8, most - 2, true),
            within(limit / 2, most - 3, true),
            Limits { fences_last: true, ..within(limit * 7 / 8, most - 1, false) },
            Limits { fences_last: true, ..within(limit * 3 / 4, most - 2, true) },
        ];
        // The first order that fits, otherwise the one with the smallest excess.
        let mut best: Option<Ordered> = None;
        for limits in tries {
            if limits.fences_last && !self.has_fence(func, lanes, latencies) {
                break;
            }
            let found = self.attempt(func, lanes, latencies, limits);
            let excess = found.1.excess(limit, most);
            if best.as_ref().is_none_or(|(_, peak)| excess < peak.excess(limit, most)) {
                best = Some(found);
            }
            if excess == 0 {
                break;
            }
        }
        let least = best.as_ref().map_or(u32::MAX, |(_, peak)| peak.excess(limit, most));
        if let Some(narrow) = self.narrow().filter(|(_, peak)| peak.excess(limit, most) < least) {
            best = Some(narrow.clone());
        }
        match best {
            Some((order, peak)) if peak.excess(limit, most) <= self.original.excess(limit, most) => {
                Found { order: Some(order), peak }
            }
            _ => original,
        }
    }
}

/// The limits of an order. If nothing fits, the order exceeds them.
#[derive(Clone, Copy)]
struct Limits {
    general: u32,
    predicates: u32,
    /// Where registers are scarce, finish one expression before the next, rather than placing the candidate that has
    /// waited longest.
    depth_first: bool,
    /// Among loads that must precede a fence, place those last that depend on the fewest fences.
    fences_last: bool,
}

impl Limits {
    const FEWEST: Limits =
        Limits { general: 0, predicates: PREDICATES, depth_first: true, fences_last: false };
}

struct Scheduler<'a> {
    graph: &'a Graph,
    insts: &'a [Inst],
    lanes: &'a mut Lanes,
    limits: Limits,
    /// For each instruction.
    candidates: Vec<Candidate>,
    /// For each instruction: the number of later instructions that depend on it and are not placed.
    waiting: Vec<u32>,
    /// Instructions whose users are all placed, by ascending original index. They change near both ends.
    ready: VecDeque<u32>,
    /// Instructions in the order in which they became ready, including placed ones.
    latest: Vec<u32>,
}

/// What the choice of the next instruction depends on. It is kept together, since most of the time goes to this choice.
struct Candidate {
    /// The change in live values if the instruction is placed now.
    change: Change,
    /// The number of general registers that it overwrites: the values that are live across it must be in others.
    overwritten: i32,
    /// The cycle, counted from the end of the block, at which its users have waited long enough.
    earliest: u32,
    /// The number of placed instructions when it became ready.
    since: u32,
    depth: u32,
    fences: u32,
    is_placed: bool,
}

impl<'a> Scheduler<'a> {
    fn new(graph: &'a Graph, insts: &'a [Inst], lanes: &'a mut Lanes, limits: Limits) -> Scheduler<'a> {
        let waiting = graph.after.clone();
        let candidate = |i: usize| Candidate {
            change: lanes.change(&graph.touches[i]),
            overwritten: lanes.overwritten(&insts[i]) as i32,
            earliest: graph.later[i],
            since: 0,
            depth: graph.depth[i],
            fences: if limits.fences_last { graph.fences[i] } else { 0 },
            is_placed: false,
        };
        let candidates = (0..insts.len()).map(candidate).collect();
        let ready = (0..insts.len() as u32).filter(|&i| waiting[i as usize] == 0).collect();
        Scheduler { graph, insts, lanes, limits, candidates, waiting, ready, latest: Vec::new() }
    }

    /// Returns the instructions from the last to the first.
    fn run(mut self) -> Vec<u32> {
        let mut order = Vec::with_capacity(self.insts.len());
        let mut cycle = 0;
        while let Some(i) = self.choose(cycle, (self.insts.len() - order.len()) as u32) {
            let place = self.ready.partition_point(|&r| r < i);
            self.ready.remove(place);
            self.candidates[i as usize].is_placed = true;
            cycle = cycle.max(self.candidates[i as usize].earliest);
            self.place(i);
            order.push(i);
            for &(before, wait) in &self.graph.before[i as usize] {
                let candidate = &mut self.candidates[before as usize];
                candidate.earliest = candidate.earliest.max(cycle + wait);
                self.waiting[before as usize] -= 1;
                if self.waiting[before as usize] == 0 {
                    let at = self.ready.partition_point(|&r| r < before);
                    self.ready.insert(at, before);
                    candidate.since = order.len() as u32;
                    self.latest.push(before);
                }
            }
            // Operations that emit no instruction take no time.
            cycle += u32::from(!matches!(self.insts[i as usize].op, Op::Pack | Op::Copy));
        }
        order
    }

    fn place(&mut self, i: u32) {
        let graph = self.graph;
        let touches = &graph.touches[i as usize];
        let were_live: SmallVec<[bool; 8]> = touches.iter().map(|touch| self.lanes.is_live(touch)).collect();
        self.lanes.place(&self.insts[i as usize]);
        for (k, (touch, was_live)) in touches.iter().zip(were_live).enumerate() {
            // A lane that is touched twice changes once.
            let is_live = self.lanes.is_live(touch);
            if is_live != was_live && !touches[..k].iter().any(|earlier| earlier.lane == touch.lane) {
                let by = i32::from(was_live) - i32::from(is_live);
                for &sharer in graph.sharers(touch) {
                    self.candidates[sharer as usize].change.add(touch, by);
                }
            }
        }
    }

    /// Chooses the next instruction. `left`: the number of instructions that are not placed.
    fn choose(&self, cycle: u32, left: u32) -> Option<u32> {
        let outside = self.ready.len().saturating_sub(WINDOW);
        let window = || self.ready.range(outside..).rev();
        let live = self.lanes.count;
        // No order makes the block shorter than the time to its first candidate and one cycle for each instruction. What
        // is not deeper than that can wait, so it comes when it takes fewer registers.
        let first = window().map(|&i| self.candidates[i as usize].depth).min().unwrap_or(0);
        let tight = live.general >= self.limits.general || live.predicates >= self.limits.predicates;
        let depth_first = tight && self.limits.depth_first;
        let fits = |now: u32, by: i32, limit: u32| by <= 0 || now as i32 + by <= limit as i32;
        // Smaller is better: first forbidden choices, then relief where registers are scarce, otherwise no waiting, free
        // relief, and depth. Depth first prefers the operands of the last instruction, so that expressions stay together.
        // The key is one number because every step compares it for every candidate. No instruction has 2^15 lanes.
        let key = |i: u32| {
            let Candidate { change, overwritten, earliest, since, depth, fences, .. } =
                self.candidates[i as usize];
            let fits = fits(live.general, change.general, self.limits.general)
                && fits(live.general, overwritten, self.limits.general)
                && fits(live.predicates, change.predicates, self.limits.predicates);
            let relief = change.general + change.predicates;
            let pressed = if tight { relief } else { 0 };
            let (stall, free, most) = match depth_first {
                true => (0, 0, since),
                false => {
                    let can_wait = depth.saturating_sub(first) < left;
                    let free = match () {
                        () if live.general < PLENTY => 0,
                        () if can_wait => relief,
                        () => relief.min(0),
                    };
                    (earliest.saturating_sub(cycle), free, depth)
                }
            };
            let signed = |n: i32| u128::from((n + (1 << 15)) as u16);
            u128::from(!fences << 1 | u32::from(!fits)) << 96
                | signed(pressed) << 80
                | u128::from(stall) << 48
                | signed(free) << 32
                | u128::from(!most)
        };
        let examined = if tight && outside > 0 { LATEST } else { 0 };
        let latest = self.latest.iter().rev().take(examined).filter(|&&i| {
            !self.candidates[i as usize].is_placed && self.ready.get(outside).is_some_and(|&first| i < first)
        });
        window().chain(latest).copied().min_by_key(|&i| key(i))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ori::memory::memory;
    use crate::ori::text;
    use crate::ori::verify::{Stage, verify};
    use crate::regalloc::allocate;
    use crate::regalloc::random::{Shape, function};
    use expect_test::{Expect, expect};

    fn schedule(func: &mut Function, target: &Target, max_registers: u32, checkpoint: &dyn Fn()) {
        Plans::new(func, target).order(func, max_registers, checkpoint).apply(func);
    }

    fn target() -> &'static Target {
        Target::of(ptx_isa::Sm::new(80)).expect("a target")
    }

    fn check(body: &str, expect: Expect) {
        let mut func = text::parse(body).expect("parses");
        verify(&func, Stage::Built).expect("is valid");
        schedule(&mut func, target(), 255, &|| ());
        verify(&func, Stage::Built).expect("stays valid");
        expect.assert_eq(&text::print(&func));
    }

    #[test]
    fn random_functions_stay_right() {
        for seed in 0..30 {
            let before = function(seed, Shape { straight: 30, depth: 2, guarded: 10, far: 10 });
            let mut after = before.clone();
            schedule(&mut after, target(), 64, &|| ());
            assert_eq!(verify(&after, Stage::Built), Ok(()), "seed {seed}");
            for (a, b) in before.blocks.iter().zip(&after.blocks) {
                let stores = |insts: &[Inst]| -> Vec<Inst> {
                    insts.iter().filter(|i| memory(&i.op).is_some_and(|m| m.writes())).cloned().collect()
                };
                assert_eq!(stores(&a.insts), stores(&b.insts), "seed {seed}");
                assert_eq!(a.insts.len(), b.insts.len(), "seed {seed}");
            }
            let target = Target::of(ptx_isa::Sm::new(90)).expect("a target");
            allocate(&mut after, target, 64).expect("allocates");
        }
    }

    #[test]
    fn loads_go_first_together() {
        check(
            "entry \"f\" {
             b0:
               %v0:r2 = PACK c[0x0][0x160], c[0x0][0x164]
               %v1:r = LDG.E %v0, RZ
               %v2:r = FADD %v1, 0x3f800000
               STG.E{offset=0x40} %v0, RZ, %v2
               %v3:r = LDG.E{offset=4} %v0, RZ
               %v4:r = FADD %v3, 0x3f800000
               STG.E{offset=0x44} %v0, RZ, %v4
               EXIT
             }",
            expect![[r#"
                entry "f" {
                b0:
                  %v0:r2 = PACK c[0x0][0x160], c[0x0][0x164]
                  %v1:r = LDG.E %v0, RZ
                  %v3:r = LDG.E{offset=4} %v0, RZ
                  %v2:r = FADD %v1, 0x3f800000
                  %v4:r = FADD %v3, 0x3f800000
                  STG.E{offset=0x40} %v0, RZ, %v2
                  STG.E{offset=0x44} %v0, RZ, %v4
                  EXIT
                }
            "#]],
        );
    }

    /// The sum takes longer than its parts, but there is more work than it takes, so no part is made before its turn.
    #[test]
    fn parts_of_a_long_sum_come_in_turn() {
        let mut body =
            String::from("entry \"f\" {\nb0:\n%v0:r = LDS RZ, RZ\n%v1:r = LOP3{lut=0xc0} %v0, 1, RZ\n");
        let mut sum = 1;
        for i in 0..15 {
            let [first, second, one, two, next] = [2, 3, 4, 5, 6].map(|n| 5 * i + n);
            for (bit, part, shift) in [(first, one, 2 * i + 1), (second, two, 2 * i + 2)] {
                body += &format!("%v{bit}:r = SHF.R.U32.HI RZ, {shift}, %v0\n");
                body += &format!("%v{part}:r = LOP3{{lut=0xc0}} %v{bit}, 1, RZ\n");
            }
            body += &format!("%v{next}:r, _, _ = IADD3 %v{sum}, %v{one}, %v{two}\n");
            sum = next;
        }
        body += &format!("STS RZ, RZ, %v{sum}\nEXIT\n}}");
        let mut func = text::parse(&body).unwrap();
        schedule(&mut func, target(), 255, &|| ());
        let allocated = allocate(&mut func, target(), 255).unwrap();
        assert!(allocated.used[0] <= 12, "{}", allocated.used[0]);
    }

    /// More values are live through the block than there are registers, and each predicate could be read at once.
    #[test]
    fn predicates_are_few_where_general_registers_cannot_be() {
        let lines = |count: usize, line: &dyn Fn(usize) -> String| (0..count).map(line).collect::<String>();
        let text = [
            "entry \"f\" {\nb0:\n".to_owned(),
            lines(60, &|i| format!("%v{i}:r = S2R{{sr={i}}}\n")),
            "JUMP b1\nb1:\n".to_owned(),
            lines(60, &|i| format!("%v{}:p = ISETP.LT.AND %v{i}, {i}, PT\n", 100 + i)),
            lines(60, &|i| format!("%v{}:r = SEL %v{i}, 0x7, %v{}\n", 200 + i, 100 + i)),
            lines(60, &|i| format!("STG.E RZ, RZ, %v{}\nSTG.E{{offset=4}} RZ, RZ, %v{i}\n", 200 + i)),
            "EXIT\n}\n".to_owned(),
        ]
        .concat();
        let mut func = text::parse(&text).expect("parses");
        schedule(&mut func, target(), 40, &|| ());
        assert_eq!(verify(&func, Stage::Built), Ok(()));
        let live = Liveness::compute(&func, &Cfg::new(&func));
        let predicates = live.pressure(&func, crate::ori::ir::File::P).into_iter().max();
        assert!(predicates.is_some_and(|most| u32::from(most) <= PREDICATES), "{predicates:?}");
    }

    /// A store after the barrier adds more live registers than a product does, but loads can move between the products
    /// only after the barrier has been placed.
    #[test]
    fn what_follows_a_barrier_does_not_keep_loads_from_their_readers() {
        let lines = |count: u32, line: &dyn Fn(u32) -> String| (0..count).map(line).collect::<String>();
        let sum = |step: u32, i: u32| 200 + 8 * step + i;
        let text = [
            "entry \"f\" {\nb0:\n%v0:r = S2R{sr=0x21}\nJUMP b1\nb1:\n".to_owned(),
            lines(8, &|i| format!("%v{}:r = phi b0 RZ, b1 %v{}\n", sum(0, i), sum(40, i))),
            "BAR.SYNC.ALIGNED RZ\n".to_owned(),
            lines(40, &|step| format!("%v{}:r = LDS{{offset={}}} %v0, RZ\n", 10 + step, 4 * step)),
            lines(40, &|step| {
                lines(8, &|i| {
                    let (load, old, new) = (10 + step, sum(step, i), sum(step + 1, i));
                    format!("%v{new}:r = FFMA %v{load}, %v0, %v{old}\n")
                })
            }),
            "BAR.SYNC.ALIGNED RZ\n".to_owned(),
            lines(4, &|i| {
                let (pair, at) = (100 + i, 0x160 + 8 * i);
                format!("%v{pair}:r2 = PACK c[0x0][{at:#x}], RZ\nSTG.E.64 %v{pair}, RZ, %v{pair}\n")
            }),
            "%v110:p, _ = ISETP.LT.AND %v0, 0x40, PT\nBRA %v110, b1, b2\nb2:\nEXIT\n}\n".to_owned(),
        ]
        .concat();
        let mut func = text::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        schedule(&mut func, target(), 24, &|| ());
        assert_eq!(verify(&func, Stage::Built), Ok(()));
        let live = Liveness::compute(&func, &Cfg::new(&func));
        let most = live.pressure(&func, crate::ori::ir::File::R).into_iter().max();
        assert!(most.is_some_and(|most| most <= 24), "{most:?}");
    }

    /// Each exponential is slow and not read before the call returns, but there are not enough registers that the routine
    /// leaves alone.
    #[test]
    fn what_can_follow_a_call_does_not_stay_live_across_it() {
        let lines = |line: &dyn Fn(u32) -> String| (0..20).map(line).collect::<String>();
        let text = [
            "entry \"f\" frame(stack) {\nb0:\n%v0:r = S2R{sr=0x21}\n%v1:r = LDS %v0, RZ\n".to_owned(),
            lines(&|i| {
                format!(
                    "%v{}:r = MUFU.EX2 {}\n",
                    10 + i,
                    if i == 0 { "%v1".to_owned() } else { format!("%v{}", 9 + i) }
                )
            }),
            "%v2:r@4 = FIX %v1\n%v3:r@5 = FIX %v0\n%v4:r@6 = FIX RZ\n%v5:r@7 = FIX RZ\n".to_owned(),
            "%v6:r@4, %v7:r@5 = CALL.ROUTINE.QUOTIENT_F64 %v2, %v3, %v4, %v5\n".to_owned(),
            "%v8:r = FIX %v6\n".to_owned(),
            lines(&|i| {
                format!("%v{}:r = FADD %v{}, %v{}\n", 30 + i, 10 + i, if i == 0 { 8 } else { 29 + i })
            }),
            "STS{offset=0x100} %v0, RZ, %v49\nEXIT\n}\n".to_owned(),
        ]
        .concat();
        let mut func = text::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        schedule(&mut func, target(), 255, &|| ());
        assert_eq!(verify(&func, Stage::Built), Ok(()));
        let allocated = allocate(&mut func, target(), 255).expect("allocates");
        assert!(allocated.registers <= 32, "{}", allocated.registers);
    }

    #[test]
    fn loads_stay_behind_stores_and_barriers() {
        check(
            "entry \"f\" {
             b0:
               %v0:r2 = PACK c[0x0][0x160], c[0x0][0x164]
               %v1:r2 = PACK c[0x0][0x168], c[0x0][0x16c]
               STG.E %v1, RZ, 0x7
               %v2:r = LDG.E %v0, RZ
               BAR.SYNC.ALIGNED 0x1
               %v3:r = LDG.E{offset=8} %v0, RZ
               STG.E %v1, RZ, %v2
               STG.E{offset=4} %v1, RZ, %v3
               EXIT
             }",
            expect![[r#"
                entry "f" {
                b0:
                  %v0:r2 = PACK c[0x0][0x160], c[0x0][0x164]
                  %v1:r2 = PACK c[0x0][0x168], c[0x0][0x16c]
                  STG.E %v1, RZ, 0x7
                  %v2:r = LDG.E %v0, RZ
                  BAR.SYNC.ALIGNED 0x1
                  %v3:r = LDG.E{offset=8} %v0, RZ
                  STG.E %v1, RZ, %v2
                  STG.E{offset=4} %v1, RZ, %v3
                  EXIT
                }
            "#]],
        );
    }

    #[test]
    fn a_load_stays_behind_its_store_and_many_of_other_spaces() {
        let other: String = (0..40).map(|i| format!("STS{{offset={}}} %v0, RZ, %v0\n", 4 * i)).collect();
        let body = format!(
            "entry \"f\" frame(local=16,stack) {{\nb0:\n%v0:r = S2R{{sr=0x21}}\nSTL R1, %v0\n{other}%v1:r = LDL R1\n
             STS{{offset=0x400}} %v0, RZ, %v1\nEXIT\n}}"
        );
        let mut func = text::parse(&body).expect("parses");
        schedule(&mut func, target(), 255, &|| ());
        let place = |wanted: fn(&Op) -> bool| func.blocks[0].insts.iter().position(|inst| wanted(&inst.op));
        assert!(place(|op| matches!(op, Op::Stl { .. })) < place(|op| matches!(op, Op::Ldl { .. })));
    }

    #[test]
    fn a_generic_load_stays_before_the_stores_of_every_space() {
        let text = "entry \"f\" frame(local=16,stack) {
        b0:
          %v0:r2 = PACK c[0x0][0x160], c[0x0][0x164]
          %v1:r2 = LDG.E.64 %v0, RZ
          %v2:r2 = LDG.E.64 %v1, RZ
          %v3:r = LD.E %v2, RZ
          STG.E %v0, RZ, 0x7
          STL R1, 0x8
          %v4:r = LDL R1
          %v5:r, _, _ = IADD3 %v3, %v4, RZ
          STG.E{offset=4} %v0, RZ, %v5
          EXIT
        }";
        let mut func = text::parse(text).expect("parses");
        schedule(&mut func, target(), 255, &|| ());
        let place = |wanted: fn(&Op) -> bool| func.blocks[0].insts.iter().position(|inst| wanted(&inst.op));
        assert!(place(|op| matches!(op, Op::Ld { .. })) < place(|op| matches!(op, Op::Stl { .. })));
    }

    /// The positions of the memory operations of one block after scheduling, in their original order.
    fn order_of(accesses: &[&str]) -> Vec<usize> {
        // Loads are at the start of long chains and stores at the end of short ones, so the scheduler prefers to place
        // loads first.
        let lines: String = accesses
            .iter()
            .enumerate()
            .map(|(i, access)| match access.split_once("= ") {
                Some((_, load)) => format!(
                    "%v{n}:r = {load} #{id}\n%v{m}:r = FADD %v{n}, %v{n}\nSTL{{offset={at}}} R1, %v{m}\n",
                    n = 10 + 2 * i,
                    m = 11 + 2 * i,
                    id = i + 1,
                    at = 4 * i,
                ),
                None => format!(
                    "%v{n}:r = IADD3 %v1, {n}, RZ\n{access}, %v{n} #{id}\n",
                    n = 10 + 2 * i,
                    id = i + 1
                ),
            })
            .collect();
        let text = format!(
            "entry \"f\" frame(local=256,stack) {{\nb0:\n%v0:r2 = PACK c[0x0][0x160], c[0x0][0x164]\n\
             %v1:r = S2R{{sr=0x21}}\n{lines}EXIT\n}}"
        );
        let mut func = text::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        verify(&func, Stage::Built).expect("is valid");
        schedule(&mut func, target(), 255, &|| ());
        func.blocks[0].insts.iter().filter(|i| i.src.0 > 0).map(|i| i.src.0 as usize - 1).collect()
    }

    /// Checks that these pairs of accesses keep their order.
    fn keeps(accesses: &[&str], pairs: &[(usize, usize)]) {
        let order = order_of(accesses);
        let place = |i| order.iter().position(|o| *o == i);
        for &(first, second) in pairs {
            assert!(place(first) < place(second), "{accesses:?} become {order:?}");
        }
    }

    #[test]
    fn an_acquiring_access_stays_before_what_follows() {
        for first in [
            "= LDS.ACQUIRE.CTA %v1, RZ",
            "= LDG.E.ACQUIRE.GPU %v0, RZ",
            "= ATOMS.ADD.ACQ_REL.CTA %v1, RZ, %v1",
        ] {
            keeps(&[first, "= LDG.E{offset=4} %v0, RZ"], &[(0, 1)]);
            keeps(&[first, "= LDL{offset=128} R1", "STS{offset=64} %v1, RZ"], &[(0, 1), (0, 2)]);
            keeps(&["STS{offset=64} %v1, RZ", first, "= LDS{offset=64} %v1, RZ"], &[(0, 2), (1, 2)]);
        }
    }

    #[test]
    fn a_releasing_access_stays_behind_what_precedes() {
        for last in ["STS.RELEASE.CTA %v1, RZ", "STG.E.RELEASE.GPU %v0, RZ"] {
            keeps(&["STS{offset=16} %v1, RZ", last], &[(0, 1)]);
            keeps(&["= LDG.E{offset=64} %v0, RZ", "STL{offset=128} R1", last], &[(0, 2), (1, 2)]);
        }
    }

    #[test]
    fn volatile_accesses_keep_their_order() {
        let volatile = [
            "STS.VOLATILE %v1, RZ",
            "= LDG.E.VOLATILE %v0, RZ",
            "STG.E.MMIO{offset=8} %v0, RZ",
            "= LDS.VOLATILE{offset=8} %v1, RZ",
        ];
        assert_eq!(order_of(&volatile), [0, 1, 2, 3]);
    }

    #[test]
    fn weak_loads_pass_relaxed_stores_of_other_spaces() {
        assert_eq!(order_of(&["STS.RELAXED.CTA %v1, RZ", "= LDG.E %v0, RZ"]), [1, 0]);
    }
}
