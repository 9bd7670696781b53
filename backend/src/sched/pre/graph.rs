//! Which instructions of a block must come before which: by values, by memory, by barriers.

use super::lanes::{Lanes, Touches};
use crate::ori::ir::{Dst, Inst, SrcKind, Value};
use crate::ori::op::{MemOrder, MemSize, MufuFunc, Op};
use crate::ori::signature::{
    has_side_effects, is_barrier, is_convergent, is_memory_access, is_pure, reads_memory, size_bytes,
    writes_memory,
};

/// Memory accesses that are told apart by their addresses; earlier ones conflict. A store behind
/// sixteen times as many loads is a fence.
const DISTINCT: usize = 16;

/// Which instructions must come before which.
pub(super) struct Graph {
    /// Per instruction.
    pub(super) touches: Vec<Touches>,
    /// Per instruction: earlier ones it depends on, with the cycles to wait between.
    pub(super) before: Vec<Vec<(u32, u32)>>,
    /// Per instruction: how many later ones depend on it.
    pub(super) after: Vec<u32>,
    /// Per instruction: cycles from the start of the block until it can issue.
    pub(super) depth: Vec<u32>,
}

impl Graph {
    pub(super) fn new(insts: &[Inst], lanes: &Lanes) -> Graph {
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
        let crowded = self.loads.len() > 16 * DISTINCT && writes_memory(&inst.op);
        if is_barrier(&inst.op)
            || strong
            || crowded
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
        self.loads.retain(|load| {
            let waits = access.conflicts(load);
            if waits {
                graph.edge(load.inst, access.inst, 1);
            }
            // Stores of this space come behind this one, and generic ones too; those of others may not.
            !(waits && load.space == access.space && access.space != Space::Generic)
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
