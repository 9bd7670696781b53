//! Scheduling before allocation: the order of instructions in SSA form decides what is live together.
//!
//! A list scheduler per block, from the bottom up, so that the exact number of live lanes is known at every
//! step: what is below is placed, what it reads and is defined above is live. While registers last it places
//! what has waited long enough for its users' sake and lies deepest, which floats long-latency loads up and
//! together; when they run short it places what ends the most ranges. How many registers are short is a matter
//! of the whole function: the most that any block needs in its original order, or what occupancy does not notice.
//!
//! Before and after: SSA form. Only the order within blocks changes.

use crate::ori::cfg::Cfg;
use crate::ori::ir::{BlockId, Dst, File, Function, Inst, SrcKind, Value};
use crate::ori::op::{MemOrder, MemSize, MufuFunc, Op};
use crate::ori::signature::{
    has_side_effects, is_barrier, is_convergent, is_memory_access, is_pure, reads_memory, size_bytes,
    writes_memory,
};
use crate::regalloc::live::Liveness;
use smallvec::SmallVec;
use std::cmp::Reverse;

/// General registers, as ptxas counts them, below which fewer gain nothing: with them the register file holds as
/// many warps as an SM can run.
const FREE_REGISTERS: u32 = 32;
/// Registers are given out in units of this.
const REGISTER_UNIT: u32 = 8;
/// Registers that are counted but hold no value: the stack pointer, and what the hardware takes.
const NOT_LIVE: u32 = 3;
/// Predicates that may be live together: one is left for allocation to move.
const PREDICATES: u32 = 6;
/// Candidates that one step looks at, nearest to the end of the original order first.
const WINDOW: usize = 48;
/// Memory accesses that are told apart by their addresses; earlier ones conflict.
const DISTINCT: usize = 16;

/// Orders the instructions of every block. `max_registers` bounds the general registers as ptxas counts them; zero
/// asks for as few as can be.
pub fn schedule(func: &mut Function, max_registers: u32, checkpoint: &dyn Fn()) {
    let cfg = Cfg::new(func);
    let live = Liveness::compute(func, &cfg);
    let mut lanes = Lanes::new(func, &live);
    let mut plans: Vec<Plan> = Vec::new();
    for &b in &cfg.order {
        checkpoint();
        plans.extend(Plan::new(func, b, &mut lanes, max_registers));
    }
    let need = plans.iter().map(Plan::need).max().unwrap_or(0);
    let limit = affordable(need).min(max_registers.saturating_sub(NOT_LIVE + 3));
    for plan in plans {
        checkpoint();
        plan.carry_out(func, &mut lanes, limit);
    }
}

/// Live registers that cost no more occupancy than `need` does.
fn affordable(need: u32) -> u32 {
    let counted = (need + NOT_LIVE).max(FREE_REGISTERS);
    counted.next_multiple_of(REGISTER_UNIT) - NOT_LIVE
}

/// What is known of a block before its limit is.
struct Plan {
    block: BlockId,
    /// Values live at the end.
    end: Vec<u32>,
    original: Count,
    /// The order that keeps the fewest values live, from the last instruction to the first, where it beats the
    /// original one.
    narrow: Option<(Vec<u32>, Count)>,
}

impl Plan {
    fn new(func: &Function, b: BlockId, lanes: &mut Lanes, max_registers: u32) -> Option<Plan> {
        let block = func.block(b);
        let end = lanes.enter(b.index(), block.term.operand().map(|s| s.kind));
        let original = lanes.peak(block.insts.iter().rev());
        let mut plan = Plan { block: b, end, original, narrow: None };
        if original.general + NOT_LIVE > FREE_REGISTERS.min(max_registers) {
            let graph = Graph::new(&block.insts, lanes);
            let (order, peak) = plan.attempt(&graph, &block.insts, lanes, 0);
            if peak.general < original.general && peak.predicates <= original.predicates.max(PREDICATES) {
                plan.narrow = Some((order, peak));
            }
        }
        Some(plan)
    }

    fn attempt(&self, graph: &Graph, insts: &[Inst], lanes: &mut Lanes, limit: u32) -> (Vec<u32>, Count) {
        lanes.reset(&self.end);
        let order = Scheduler::new(graph, insts, lanes, limit).run();
        lanes.reset(&self.end);
        let peak = lanes.peak(order.iter().map(|&i| &insts[i as usize]));
        (order, peak)
    }

    /// Registers that some order does with.
    fn need(&self) -> u32 {
        self.narrow.as_ref().map_or(self.original, |(_, peak)| *peak).general
    }

    fn carry_out(self, func: &mut Function, lanes: &mut Lanes, limit: u32) {
        let insts = &func.block(self.block).insts;
        if insts.len() < 3 {
            return;
        }
        let graph = Graph::new(insts, lanes);
        let predicates = self.original.predicates.max(PREDICATES);
        // Steps overshoot the limit they are given where nothing fits, so a second try gets less.
        let tries = [limit, limit * 7 / 8];
        let fitting = tries.into_iter().find_map(|limit_given| {
            let (order, peak) = self.attempt(&graph, insts, lanes, limit_given);
            (peak.general <= limit && peak.predicates <= predicates).then_some(order)
        });
        let order = match fitting {
            Some(order) => order,
            None if self.original.general <= limit => return,
            None => match self.narrow {
                Some((order, _)) => order,
                None => return,
            },
        };
        let block = func.block_mut(self.block);
        let mut insts: Vec<Option<Inst>> = std::mem::take(&mut block.insts).into_iter().map(Some).collect();
        block.insts = order.iter().rev().filter_map(|&i| insts[i as usize].take()).collect();
    }
}

/// Live lanes of the two files that run short.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Count {
    general: u32,
    predicates: u32,
}

/// What is live between the placed instructions of a block and the others.
struct Lanes {
    /// Per value: its first lane, and its file.
    base: Vec<u32>,
    file: Vec<File>,
    width: Vec<u8>,
    /// Per block: lanes live at its end.
    live_out: Vec<Vec<u32>>,
    is_live: Vec<bool>,
    /// Lanes that may be live.
    touched: Vec<u32>,
    file_of_lane: Vec<File>,
    count: Count,
}

impl Lanes {
    fn new(func: &Function, live: &Liveness) -> Lanes {
        let mut lanes = Lanes {
            base: Vec::with_capacity(func.values.len()),
            file: func.values.iter().map(|d| d.file).collect(),
            width: func.values.iter().map(|d| d.width).collect(),
            live_out: vec![Vec::new(); func.blocks.len()],
            is_live: Vec::new(),
            touched: Vec::new(),
            file_of_lane: Vec::new(),
            count: Count::default(),
        };
        for data in &func.values {
            lanes.base.push(lanes.file_of_lane.len() as u32);
            lanes.file_of_lane.extend(std::iter::repeat_n(data.file, usize::from(data.width)));
        }
        lanes.is_live = vec![false; lanes.file_of_lane.len()];
        // Blocks in layout order have ascending ends.
        let exits: Vec<u32> = func.layout.iter().map(|b| live.spans[b.index()].exit()).collect();
        for v in (0..func.values.len() as u32).map(Value) {
            for (part, ranges) in live.of(v).iter().enumerate() {
                for interval in &ranges.0 {
                    let first = exits.partition_point(|&e| e < interval.start);
                    let covered = exits[first..].iter().take_while(|&&e| e < interval.end).count();
                    for b in &func.layout[first..first + covered] {
                        lanes.live_out[b.index()].push(lanes.base[v.index()] + part as u32);
                    }
                }
            }
        }
        lanes
    }

    /// Starts at the end of a block; returns what is live there.
    fn enter(&mut self, block: usize, term: Option<SrcKind>) -> Vec<u32> {
        let mut end = std::mem::take(&mut self.live_out[block]);
        end.extend(term.and_then(|kind| self.lanes(kind)).into_iter().flatten());
        self.reset(&end);
        end
    }

    /// Back to the end of a block.
    fn reset(&mut self, end: &[u32]) {
        for lane in self.touched.drain(..) {
            self.is_live[lane as usize] = false;
        }
        self.count = Count::default();
        for &lane in end {
            self.start(lane);
        }
    }

    fn lanes(&self, kind: SrcKind) -> Option<std::ops::Range<u32>> {
        match kind {
            SrcKind::Value(v) => {
                let base = self.base[v.index()];
                Some(base..base + u32::from(self.width[v.index()]))
            }
            SrcKind::Part(v, part) => {
                let lane = self.base[v.index()] + u32::from(part);
                Some(lane..lane + 1)
            }
            _ => None,
        }
    }

    fn counter(&mut self, lane: u32) -> Option<&mut u32> {
        match self.file_of_lane[lane as usize] {
            File::R => Some(&mut self.count.general),
            File::P => Some(&mut self.count.predicates),
            File::UR | File::UP | File::B => None,
        }
    }

    fn start(&mut self, lane: u32) {
        if !std::mem::replace(&mut self.is_live[lane as usize], true) {
            self.touched.push(lane);
            if let Some(count) = self.counter(lane) {
                *count += 1;
            }
        }
    }

    /// Places an instruction above all placed before; returns the most that is live around it.
    fn place(&mut self, inst: &Inst) -> Count {
        let mut peak = self.count;
        for v in inst.defs() {
            for lane in self.lanes(SrcKind::Value(v)).into_iter().flatten() {
                if std::mem::replace(&mut self.is_live[lane as usize], false) {
                    if let Some(count) = self.counter(lane) {
                        *count -= 1;
                    }
                } else {
                    // A result that nothing reads takes a register all the same.
                    match self.file[v.index()] {
                        File::R => peak.general += 1,
                        File::P => peak.predicates += 1,
                        _ => {}
                    }
                }
            }
        }
        for src in inst.uses() {
            for lane in self.lanes(src.kind).into_iter().flatten() {
                self.start(lane);
            }
        }
        Count {
            general: peak.general.max(self.count.general),
            predicates: peak.predicates.max(self.count.predicates),
        }
    }

    /// The lanes that decide what placing an instruction adds to what is live.
    fn touches(&self, inst: &Inst) -> Touches {
        let mut touches = Touches::new();
        let mut add = |v: Value, kind: SrcKind, defined: bool| {
            let file = self.file[v.index()];
            if matches!(file, File::R | File::P) {
                let lanes = self.lanes(kind).into_iter().flatten();
                touches.extend(lanes.map(|lane| Touch { lane, general: file == File::R, defined }));
            }
        };
        for v in inst.defs() {
            add(v, SrcKind::Value(v), true);
        }
        for (i, src) in inst.uses().enumerate() {
            // Repeated operands count once.
            if let Some(v) = src.value()
                && !inst.uses().take(i).any(|earlier| earlier.kind == src.kind)
            {
                add(v, src.kind, false);
            }
        }
        touches
    }

    /// What placing the instruction would add to what is live: general registers and predicates.
    fn change(&self, touches: &Touches) -> (i32, i32) {
        let mut change = (0, 0);
        for touch in touches {
            let is_live = self.is_live[touch.lane as usize];
            let by = i32::from(!touch.defined) - i32::from(is_live);
            if touch.general {
                change.0 += by;
            } else {
                change.1 += by;
            }
        }
        change
    }

    /// The most that is live in this order, from the bottom up.
    fn peak<'i>(&mut self, insts: impl Iterator<Item = &'i Inst>) -> Count {
        let mut peak = self.count;
        for inst in insts {
            let here = self.place(inst);
            peak.general = peak.general.max(here.general);
            peak.predicates = peak.predicates.max(here.predicates);
        }
        peak
    }
}

/// A lane that an instruction defines or reads.
#[derive(Clone, Copy)]
struct Touch {
    lane: u32,
    /// Of a general register; else of a predicate.
    general: bool,
    defined: bool,
}

type Touches = SmallVec<[Touch; 6]>;

/// Which instructions must come before which.
struct Graph {
    /// Per instruction.
    touches: Vec<Touches>,
    /// Per instruction: earlier ones it depends on, with the cycles to wait between.
    before: Vec<Vec<(u32, u32)>>,
    /// Per instruction: how many later ones depend on it.
    after: Vec<u32>,
    /// Per instruction: cycles from the start of the block until it can issue.
    depth: Vec<u32>,
}

/// The address space of an access.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Space {
    Global,
    Shared,
    Local,
    Generic,
}

const SPACES: [Space; 4] = [Space::Global, Space::Shared, Space::Local, Space::Generic];

/// A memory access as far as it may conflict with others.
struct Access {
    inst: u32,
    space: Space,
    /// Base, and bytes from it.
    base: SrcKind,
    start: i32,
    end: i32,
}

impl Access {
    fn conflicts(&self, other: &Access) -> bool {
        let spaces =
            self.space == other.space || self.space == Space::Generic || other.space == Space::Generic;
        let apart = self.base == other.base && (self.end <= other.start || other.end <= self.start);
        spaces && !apart
    }
}

impl Graph {
    fn new(insts: &[Inst], lanes: &Lanes) -> Graph {
        let mut graph = Graph {
            touches: insts.iter().map(|inst| lanes.touches(inst)).collect(),
            before: vec![Vec::new(); insts.len()],
            after: vec![0; insts.len()],
            depth: vec![0; insts.len()],
        };
        let mut defs: rustc_hash::FxHashMap<Value, u32> = rustc_hash::FxHashMap::default();
        let mut order = Order::default();
        for (i, inst) in insts.iter().enumerate() {
            let i = i as u32;
            for v in inst.uses().filter_map(|s| s.value()) {
                if let Some(&def) = defs.get(&v) {
                    let guard = inst.guard.value() == Some(v);
                    graph.edge(def, i, latency(&insts[def as usize].op).max(if guard { 12 } else { 0 }));
                }
            }
            order.add(&mut graph, i, inst);
            defs.extend(inst.defs().map(|v| (v, i)));
            let ready = |&(p, wait): &(u32, u32)| graph.depth[p as usize] + wait;
            graph.depth[i as usize] = graph.before[i as usize].iter().map(ready).max().unwrap_or(0);
        }
        graph
    }

    fn edge(&mut self, from: u32, to: u32, wait: u32) {
        self.before[to as usize].push((from, wait));
        self.after[from as usize] += 1;
    }
}

/// Orders that are not by values: memory, barriers, named registers.
#[derive(Default)]
struct Order {
    fence: Option<u32>,
    /// What the next fence must wait for.
    since_fence: Vec<u32>,
    convergent: Option<u32>,
    /// The last instruction that names a register.
    named: Option<u32>,
    /// By space.
    stores: [Vec<Access>; SPACES.len()],
    loads: Vec<Access>,
    /// Uniform registers of reductions, which other threads may overwrite while these wait at a fence.
    reductions: Vec<Value>,
}

impl Order {
    fn add(&mut self, graph: &mut Graph, i: u32, inst: &Inst) {
        let fixed =
            inst.uses().any(|s| matches!(s.kind, SrcKind::Reg(r) if r != crate::regalloc::STACK_POINTER))
                || inst.dsts.iter().any(|d| matches!(d, Dst::Reg(_)));
        if fixed && let Some(named) = self.named.replace(i) {
            graph.edge(named, i, 1);
        }
        let access = is_memory_access(&inst.op);
        let free = match inst.op {
            Op::Ldc { .. } => true,
            Op::Ldg { .. } => !reads_memory(&inst.op),
            _ => !access && (is_pure(&inst.op) || matches!(inst.op, Op::Pack | Op::Copy)),
        };
        if matches!(inst.op, Op::Redux { .. }) {
            self.reductions.extend(inst.defs());
        }
        let copies_reduction = inst.op == Op::Mov
            && inst.uses().any(|src| src.value().is_some_and(|v| self.reductions.contains(&v)));
        let fixed = fixed || copies_reduction;
        if free && !fixed {
            return;
        }
        if let Some(fence) = self.fence {
            graph.edge(fence, i, 1);
        }
        let strong = access && !writes_memory(&inst.op) && has_side_effects(&inst.op);
        if is_barrier(&inst.op)
            || strong
            || is_ordered_store(&inst.op)
            || !(access || is_convergent(&inst.op) || fixed)
        {
            for earlier in self.since_fence.drain(..) {
                graph.edge(earlier, i, 1);
            }
            *self = Order { fence: Some(i), named: self.named, ..Order::default() };
            return;
        }
        self.since_fence.push(i);
        if is_convergent(&inst.op)
            && let Some(earlier) = self.convergent.replace(i)
        {
            graph.edge(earlier, i, 1);
        }
        if access {
            self.access(graph, Access::new(i, inst), &inst.op);
        }
    }

    fn access(&mut self, graph: &mut Graph, access: Access, op: &Op) {
        // Stores of one space come in their order, so waiting for one is waiting for all before it.
        let writes = writes_memory(op);
        for (space, stores) in SPACES.iter().zip(&self.stores) {
            let chained = writes && (*space == access.space || access.space == Space::Generic);
            let near = stores.iter().rev().take(DISTINCT).find(|store| chained || access.conflicts(store));
            // Those further back are not told apart.
            let far = || stores.iter().rev().nth(DISTINCT);
            if let Some(store) = near.or_else(far) {
                graph.edge(store.inst, access.inst, 1);
            }
        }
        if !writes {
            self.loads.push(access);
            return;
        }
        let excess = self.loads.len().saturating_sub(4 * DISTINCT);
        let mut place = 0;
        self.loads.retain(|load| {
            place += 1;
            let waits = place <= excess || access.conflicts(load);
            if waits {
                graph.edge(load.inst, access.inst, 1);
            }
            !waits
        });
        let stores = &mut self.stores[access.space as usize];
        stores.push(access);
        if stores.len() > 4 * DISTINCT {
            stores.drain(..2 * DISTINCT);
        }
    }
}

/// A store that other threads may wait for: nothing moves across it.
fn is_ordered_store(op: &Op) -> bool {
    match op {
        Op::Stg { access } | Op::St { access } => !matches!(access.order, MemOrder::Weak),
        _ => false,
    }
}

impl Access {
    fn new(inst: u32, of: &Inst) -> Access {
        let known = match of.op {
            Op::Ldg { access, .. } | Op::Stg { access } => Some((Space::Global, access.offset, access.size)),
            Op::Ld { access } | Op::St { access } => Some((Space::Generic, access.offset, access.size)),
            Op::Lds { size, offset } | Op::Sts { size, offset } => Some((Space::Shared, offset, size)),
            Op::Ldl { size, offset } | Op::Stl { size, offset } => Some((Space::Local, offset, size)),
            Op::Atoms { offset, .. } | Op::AtomsCas { offset, .. } => {
                Some((Space::Shared, offset, MemSize::B128))
            }
            _ => None,
        };
        // A shared address has a second, uniform base.
        let second_base = known.is_some_and(|(space, ..)| space == Space::Shared)
            && of.srcs.get(1).is_some_and(|s| s.kind != SrcKind::Zero);
        let base = of.srcs.first().map_or(SrcKind::Undef, |s| s.kind);
        match known.filter(|_| !second_base) {
            Some((space, start, size)) => {
                let end = start.saturating_add(i32::from(size_bytes(size)));
                Access { inst, space, base, start, end }
            }
            None => {
                let space = known.map_or(Space::Generic, |(space, ..)| space);
                Access { inst, space, base, start: i32::MIN, end: i32::MAX }
            }
        }
    }
}

/// Cycles until a result can be read; for memory, what is worth hiding.
fn latency(op: &Op) -> u32 {
    match op {
        Op::Pack | Op::Copy => 0,
        Op::Ldg { .. } | Op::Ld { .. } | Op::Ldl { .. } | Op::Atom { .. } | Op::AtomCas { .. } => 300,
        Op::Lds { .. } | Op::Ldc { .. } | Op::Atoms { .. } | Op::AtomsCas { .. } | Op::Shfl { .. } => 28,
        Op::S2r { .. }
        | Op::S2ur { .. }
        | Op::B2r { .. }
        | Op::Match { .. }
        | Op::Redux { .. }
        | Op::R2ur => 24,
        Op::Mufu { func: MufuFunc::Rcp64h | MufuFunc::Rsq64h } => 30,
        Op::Mufu { .. } | Op::I2f { .. } | Op::F2i { .. } | Op::F2f { .. } | Op::Frnd { .. } => 18,
        Op::Popc | Op::Flo { .. } | Op::Brev | Op::Vote { .. } => 14,
        Op::Dadd { .. } | Op::Dmul { .. } | Op::Dfma { .. } | Op::Dsetp { .. } => 10,
        Op::Isetp { .. } | Op::Fsetp { .. } | Op::Hsetp2 { .. } | Op::Plop3 { .. } | Op::Lop3P { .. } => 10,
        _ => 5,
    }
}

struct Scheduler<'a> {
    graph: &'a Graph,
    insts: &'a [Inst],
    lanes: &'a mut Lanes,
    /// General registers; zero to use as few as can be.
    limit: u32,
    /// Per instruction: later ones that depend on it and are not placed.
    waiting: Vec<u32>,
    /// Per instruction: the cycle, counted from the end of the block, at which its users have waited enough.
    earliest: Vec<u32>,
    /// Instructions all of whose users are placed, by descending place in the original order.
    ready: Vec<u32>,
    /// Per instruction: how many were placed when it became ready.
    since: Vec<u32>,
}

impl<'a> Scheduler<'a> {
    fn new(graph: &'a Graph, insts: &'a [Inst], lanes: &'a mut Lanes, limit: u32) -> Scheduler<'a> {
        let waiting = graph.after.clone();
        let ready = (0..insts.len() as u32).rev().filter(|&i| waiting[i as usize] == 0).collect();
        Scheduler {
            graph,
            insts,
            lanes,
            limit,
            waiting,
            earliest: vec![0; insts.len()],
            ready,
            since: vec![0; insts.len()],
        }
    }

    /// The instructions from the last to the first.
    fn run(mut self) -> Vec<u32> {
        let mut order = Vec::with_capacity(self.insts.len());
        let mut cycle = 0;
        while let Some(choice) = self.choose(cycle) {
            let i = self.ready.remove(choice);
            cycle = cycle.max(self.earliest[i as usize]);
            self.lanes.place(&self.insts[i as usize]);
            order.push(i);
            for &(before, wait) in &self.graph.before[i as usize] {
                let earliest = &mut self.earliest[before as usize];
                *earliest = (*earliest).max(cycle + wait);
                self.waiting[before as usize] -= 1;
                if self.waiting[before as usize] == 0 {
                    let at = self.ready.partition_point(|&r| r > before);
                    self.ready.insert(at, before);
                    self.since[before as usize] = order.len() as u32;
                }
            }
            // What becomes no instruction takes no time.
            cycle += u32::from(!matches!(self.insts[i as usize].op, Op::Pack | Op::Copy));
        }
        order
    }

    /// The place in `ready` of the next instruction.
    fn choose(&self, cycle: u32) -> Option<usize> {
        let window = &self.ready[..self.ready.len().min(WINDOW)];
        let live = self.lanes.count;
        let key = |i: u32| {
            let (general, predicates) = self.lanes.change(&self.graph.touches[i as usize]);
            let fits = |now: u32, by: i32, limit: u32| by <= 0 || now as i32 + by <= limit as i32;
            let fits =
                fits(live.general, general, self.limit) && fits(live.predicates, predicates, PREDICATES);
            let stall = self.earliest[i as usize].saturating_sub(cycle);
            let tight = live.general >= self.limit || live.predicates >= PREDICATES;
            let relief = general + predicates;
            // Smaller is better: what must not be done, then relief where registers are short, else no waiting,
            // free relief, and depth.
            let pressed = if tight { relief } else { 0 };
            if self.limit == 0 {
                // For the fewest registers: what the last one read, so that expressions stay together.
                return (!fits, pressed, 0, 0, Reverse(self.since[i as usize]));
            }
            (!fits, pressed, stall, relief.min(0), Reverse(self.graph.depth[i as usize]))
        };
        (0..window.len()).min_by_key(|&place| (key(window[place]), place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ori::text;
    use crate::ori::verify::{Stage, verify};
    use crate::regalloc::allocate;
    use crate::regalloc::random::{Shape, function};
    use crate::target::Target;
    use expect_test::{Expect, expect};

    fn check(body: &str, expect: Expect) {
        let mut func = text::parse(body).expect("parses");
        verify(&func, Stage::Built).expect("is valid");
        schedule(&mut func, 255, &|| ());
        verify(&func, Stage::Built).expect("stays valid");
        expect.assert_eq(&text::print(&func));
    }

    #[test]
    fn random_functions_stay_right() {
        for seed in 0..30 {
            let before = function(seed, Shape { straight: 30, depth: 2, guarded: 10, far: 10 });
            let mut after = before.clone();
            schedule(&mut after, 64, &|| ());
            assert_eq!(verify(&after, Stage::Built), Ok(()), "seed {seed}");
            for (a, b) in before.blocks.iter().zip(&after.blocks) {
                let stores = |insts: &[Inst]| -> Vec<Inst> {
                    insts.iter().filter(|i| writes_memory(&i.op)).cloned().collect()
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

    #[test]
    fn loads_stay_behind_stores_and_barriers() {
        check(
            "entry \"f\" {
             b0:
               %v0:r2 = PACK c[0x0][0x160], c[0x0][0x164]
               %v1:r2 = PACK c[0x0][0x168], c[0x0][0x16c]
               STG.E %v1, RZ, 0x7
               %v2:r = LDG.E %v0, RZ
               BAR.SYNC.DEFER_BLOCKING 0x1
               %v3:r = LDG.E{offset=8} %v0, RZ
               STG.E %v1, RZ, %v2
               STG.E{offset=4} %v1, RZ, %v3
               EXIT
             }",
            expect![[r#"
                entry "f" {
                b0:
                  %v1:r2 = PACK c[0x0][0x168], c[0x0][0x16c]
                  STG.E %v1, RZ, 0x7
                  %v0:r2 = PACK c[0x0][0x160], c[0x0][0x164]
                  %v2:r = LDG.E %v0, RZ
                  BAR.SYNC.DEFER_BLOCKING 0x1
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
        schedule(&mut func, 255, &|| ());
        let place = |wanted: fn(&Op) -> bool| func.blocks[0].insts.iter().position(|inst| wanted(&inst.op));
        assert!(place(|op| matches!(op, Op::Stl { .. })) < place(|op| matches!(op, Op::Ldl { .. })));
    }
}
