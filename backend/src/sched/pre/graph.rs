//! The dependence graph of a block: which instructions must precede which, because of values, memory or barriers.

use super::lanes::{Lanes, Touch, Touches};
use crate::emit::any_form;
use crate::ori::alias;
use crate::ori::ir::{Block, Dst, File, Inst, Src, SrcKind, Value};
use crate::ori::memory::{Effect, Memory, Space, effect, memory};
use crate::ori::op::Op;
use crate::ori::operations::{facts, families};
use rustc_hash::FxHashMap;
use sass::Sm;

/// The number of memory accesses that are distinguished by their addresses; earlier ones count as conflicting. A store
/// after sixteen times as many loads counts as a fence.
const DISTINCT: usize = 16;

/// The dependences between instructions.
pub(super) struct Graph {
    /// For each instruction, the lanes that it touches.
    pub(super) touches: Vec<Touches>,
    /// The instructions that touch each lane, with the start of each lane's instructions.
    sharers: Vec<u32>,
    starts: Vec<u32>,
    /// For each instruction: the earlier instructions that it depends on, with the distance in cycles.
    pub(super) before: Vec<Vec<(u32, u32)>>,
    /// For each instruction: the number of later instructions that depend on it.
    pub(super) after: Vec<u32>,
    /// For each instruction: the number of cycles from the start of the block until it can issue.
    pub(super) depth: Vec<u32>,
    /// For each instruction: the maximum number of consecutive fences up to it.
    pub(super) fences: Vec<u32>,
    /// For each instruction: the number of cycles until its results are available, if the branch reads them; for
    /// results from memory, also if only later blocks read them.
    pub(super) later: Vec<u32>,
}

impl Graph {
    pub(super) fn new(block: &Block, lanes: &Lanes, latencies: &mut Latencies) -> Graph {
        let insts = &block.insts;
        let mut graph = Graph {
            touches: insts.iter().map(|inst| lanes.touches(inst)).collect(),
            sharers: Vec::new(),
            starts: Vec::new(),
            before: vec![Vec::new(); insts.len()],
            after: vec![0; insts.len()],
            depth: vec![0; insts.len()],
            later: vec![0; insts.len()],
            fences: vec![0; insts.len()],
        };
        graph.share();
        let mut defs: FxHashMap<Value, u32> = FxHashMap::default();
        let mut order = Order::default();
        // Other threads of the warp may run at a wait, and may overwrite uniform predicates.
        let (mut wait, mut uniform): (Option<u32>, Vec<u32>) = (None, Vec::new());
        for (i, inst) in insts.iter().enumerate() {
            let i = i as u32;
            let mut values = inst.defs().chain(inst.uses().filter_map(|src| src.value()));
            if values.any(|v| lanes.file(v) == File::UP) {
                wait.into_iter().for_each(|wait| graph.edge(wait, i, 0));
                uniform.push(i);
            }
            if facts(&inst.op).waits {
                uniform.drain(..).filter(|from| *from != i).for_each(|from| graph.edge(from, i, 0));
                wait = Some(i);
            }
            for v in inst.uses().filter_map(|s| s.value()) {
                if let Some(&def) = defs.get(&v) {
                    graph.later[def as usize] = 0;
                    let guard = inst.guard.value() == Some(v);
                    graph.edge(def, i, latencies.of(&insts[def as usize].op, guard));
                }
            }
            order.add(&mut graph, i, inst);
            defs.extend(inst.defs().map(|v| (v, i)));
            if inst.defs().next().is_some() && memory(&inst.op).is_some() {
                graph.later[i as usize] = latencies.of(&inst.op, false);
            }
            let before =
                graph.before[i as usize].iter().map(|(before, _)| graph.fences[*before as usize]).max();
            graph.fences[i as usize] = before.unwrap_or(0) + u32::from(order.opens == Some(i));
            let ready = |&(p, wait): &(u32, u32)| graph.depth[p as usize] + wait;
            graph.depth[i as usize] = graph.before[i as usize].iter().map(ready).max().unwrap_or(0);
        }
        if let Some(&def) = block.term.operand().and_then(Src::value).and_then(|cond| defs.get(&cond)) {
            graph.later[def as usize] = latencies.of(&insts[def as usize].op, true);
        }
        graph
    }

    /// Finds the instructions that touch each lane.
    fn share(&mut self) {
        let touches = (0..).zip(&mut self.touches);
        let mut by_lane: Vec<(u32, &mut Touch, u32)> =
            touches.flat_map(|(i, of)| of.iter_mut().map(move |touch| (touch.lane, touch, i))).collect();
        by_lane.sort_unstable_by_key(|(lane, _, i)| (*lane, *i));
        for of_lane in by_lane.chunk_by_mut(|a, b| a.0 == b.0) {
            let group = self.starts.len() as u32;
            self.starts.push(self.sharers.len() as u32);
            for (_, touch, i) in of_lane {
                touch.group = group;
                self.sharers.push(*i);
            }
        }
        self.starts.push(self.sharers.len() as u32);
    }

    /// The instructions that touch the same lane, each as often as it touches it.
    pub(super) fn sharers(&self, touch: &Touch) -> &[u32] {
        let group = touch.group as usize;
        &self.sharers[self.starts[group] as usize..self.starts[group + 1] as usize]
    }

    pub(super) fn edge(&mut self, from: u32, to: u32, wait: u32) {
        self.before[to as usize].push((from, wait));
        self.after[from as usize] += 1;
    }
}

/// The number of cycles until arithmetic and guards can read results, looked up in the machine table once per family.
pub(super) struct Latencies {
    sm: Sm,
    known: FxHashMap<&'static str, [u32; 2]>,
}

impl Latencies {
    pub(super) fn new(sm: Sm) -> Latencies {
        Latencies { sm, known: FxHashMap::default() }
    }

    /// Zero for operations that emit no instruction.
    fn of(&mut self, op: &Op, guard: bool) -> u32 {
        let sm = self.sm;
        let cycles = self.known.entry(families(op)[0]).or_insert_with(|| {
            let form = any_form(sm, op);
            [false, true].map(|guard| form.map_or(0, |form| sass::speed::result(sm, form, guard)))
        });
        cycles[usize::from(guard)]
    }
}

/// Orders that do not follow from values: effects and physical registers.
#[derive(Default)]
struct Order {
    /// The convergence point. All threads execute the instructions after it once; each part of the warp executes those
    /// before it.
    meet: Option<u32>,
    /// The last barrier of the block.
    bar: Option<u32>,
    /// The fence or acquiring access that all later effects must follow.
    opens: Option<u32>,
    /// The instructions that the next fence or releasing access must follow.
    since: Vec<u32>,
    convergent: Option<u32>,
    volatile: Option<u32>,
    /// The last instruction with a physical register.
    named: Option<u32>,
    /// Stores and strong loads, by space; each follows the ones before it.
    stores: [Vec<AddressedAccess>; SPACES.len()],
    loads: Vec<AddressedAccess>,
    /// The uniform registers of reductions, which other threads may overwrite while these threads wait at a fence.
    reductions: Vec<Value>,
}

impl Order {
    fn add(&mut self, graph: &mut Graph, i: u32, inst: &Inst) {
        if let Some(meet) = self.meet {
            graph.edge(meet, i, 1);
        }
        // The arguments from the caller are in registers that any instruction may write.
        if matches!(inst.op, Op::Bsync { .. } | Op::Params) {
            self.meet = Some(i);
        }
        // The results for the caller are too; a result that nothing reads depends on nothing.
        if inst.op == Op::Results {
            (0..i).for_each(|earlier| graph.edge(earlier, i, 0));
        }
        let names =
            inst.uses().any(|s| matches!(s.kind, SrcKind::Reg(r) if r != crate::regalloc::STACK_POINTER))
                || inst.dsts.iter().any(|d| matches!(d, Dst::Reg(_)));
        if names && let Some(named) = self.named.replace(i) {
            graph.edge(named, i, 1);
        }
        if inst.op.reduces_group() {
            self.reductions.extend(inst.defs());
        }
        let copies_reduction = inst.op == Op::Mov
            && inst.uses().any(|src| src.value().is_some_and(|v| self.reductions.contains(&v)));
        let fixed = names || copies_reduction;
        let effect = effect(&inst.op);
        // The effect may move even across the worst effect.
        let free = alias::may_exchange(&effect, &Effect::Everything, false);
        // Threads may be apart before a barrier of the block, and share the uniform registers.
        if let Some(bar) = self.bar
            && facts(&inst.op).uniform
            && inst.uses().any(|src| src.value().is_some())
        {
            graph.edge(bar, i, 1);
        }
        if matches!(inst.op, Op::Bar { .. }) {
            self.bar = Some(i);
        }
        if free && !fixed {
            return;
        }
        if let Some(opens) = self.opens {
            graph.edge(opens, i, 1);
        }
        match effect {
            _ if free => self.since.push(i),
            Effect::Memory(access) => self.access(graph, AddressedAccess::new(i, inst, access)),
            Effect::Warp { .. } => {
                self.since.push(i);
                if let Some(earlier) = self.convergent.replace(i) {
                    graph.edge(earlier, i, 1);
                }
            }
            Effect::None | Effect::Observes | Effect::Everything => self.fence(graph, i),
        }
    }

    fn fence(&mut self, graph: &mut Graph, i: u32) {
        self.wait_for_all(graph, i);
        *self =
            Order { opens: Some(i), named: self.named, meet: self.meet, bar: self.bar, ..Order::default() };
    }

    fn wait_for_all(&mut self, graph: &mut Graph, i: u32) {
        for earlier in self.since.drain(..) {
            graph.edge(earlier, i, 1);
        }
    }

    fn access(&mut self, graph: &mut Graph, access: AddressedAccess) {
        let (i, order) = (access.inst, access.memory.order);
        let crowded = self.loads.len() > 16 * DISTINCT && access.memory.writes();
        if crowded || (order.acquires() && order.releases()) {
            return self.fence(graph, i);
        }
        if order.releases() {
            self.wait_for_all(graph, i);
        }
        if order.acquires() {
            self.opens = Some(i);
        }
        if order.is_volatile()
            && let Some(earlier) = self.volatile.replace(i)
        {
            graph.edge(earlier, i, 1);
        }
        self.since.push(i);
        self.overlap(graph, access);
    }

    /// Orders accesses that may overlap.
    fn overlap(&mut self, graph: &mut Graph, access: AddressedAccess) {
        // Stores to one space keep their order, so waiting for one implies waiting for all before it.
        let stays = access.memory.writes() || access.memory.order.is_strong();
        for (space, stores) in SPACES.iter().zip(&self.stores) {
            let chained = stays && (*space == access.memory.space || access.memory.space == Space::Generic);
            let near = stores.iter().rev().take(DISTINCT).find(|store| chained || access.waits_for(store));
            // Earlier ones are not distinguished.
            let far = || stores.iter().rev().nth(DISTINCT);
            if let Some(store) = near.or_else(far) {
                graph.edge(store.inst, access.inst, 1);
            }
        }
        if !stays {
            self.loads.push(access);
            return;
        }
        self.loads.retain(|load| {
            let waits = access.waits_for(load);
            if waits {
                graph.edge(load.inst, access.inst, 1);
            }
            // Later stores to this space, and generic ones, follow this store; stores to other spaces may not.
            !(waits && load.memory.space == access.memory.space && access.memory.space != Space::Generic)
        });
        let stores = &mut self.stores[access.memory.space as usize];
        stores.push(access);
        if stores.len() > 4 * DISTINCT {
            stores.drain(..2 * DISTINCT);
        }
    }
}

/// The spaces that stores write, in the order of their indices.
const SPACES: [Space; 4] = [Space::Global, Space::Generic, Space::Shared, Space::Local];

/// An access and the base of its address.
struct AddressedAccess {
    inst: u32,
    memory: Memory,
    /// The address and, for shared memory, a uniform addend.
    base: [SrcKind; 2],
}

impl AddressedAccess {
    fn new(inst: u32, of: &Inst, memory: Memory) -> AddressedAccess {
        let operand = |i: usize| of.srcs.get(i).map_or(SrcKind::Undef, |s| s.kind);
        let addend = if memory.space == Space::Shared { operand(1) } else { SrcKind::Zero };
        AddressedAccess { inst, memory, base: [operand(0), addend] }
    }

    /// Whether it must stay after `earlier`.
    fn waits_for(&self, earlier: &AddressedAccess) -> bool {
        // Other physical registers may change in between.
        let lasting = |kind: &SrcKind| match kind {
            SrcKind::Reg(reg) => *reg == crate::regalloc::STACK_POINTER,
            kind => *kind != SrcKind::Undef,
        };
        let same_base = self.base == earlier.base && self.base.iter().all(lasting);
        !alias::may_exchange(&Effect::Memory(earlier.memory), &Effect::Memory(self.memory), same_base)
    }
}
