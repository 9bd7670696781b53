//! The values that are live where most registers are, and the values that were spilled.

use super::{Live, Peak, Spilled, united};
use crate::input::SrcId;
use crate::ori::cfg::Cfg;
use crate::ori::ir::{BlockId, File, Function, Src, Value};
use crate::regalloc::live::{Liveness, Point};
use crate::regalloc::{Allocated, Allocation, constants};
use crate::target::HIDDEN_REGISTERS;
use rustc_hash::FxHashSet;

/// The registers that are reserved for the stack pointer.
const STACK_POINTERS: u32 = 1;

/// The peak of an allocation, and its spilled values. `limit` is the maximum number of registers.
pub(crate) fn pressure(allocated: &Allocated, limit: u32) -> (Option<Peak>, Vec<Spilled>) {
    let Allocated { input, allocation } = allocated;
    let live = Liveness::compute(input, &Cfg::new(input));
    let origins = Origins::of(input);
    let spilled: FxHashSet<Value> = allocation.spilled.iter().copied().collect();
    let peak = highest(input, allocation).map(|(b, at)| {
        let block = input.block(BlockId(b as u32));
        let point = live.spans[b].read(at);
        let in_registers = values(input).filter(|v| !spilled.contains(v));
        let living = in_registers.filter_map(|v| {
            let registers = live.of(v).iter().filter(|lane| lane.contains(point)).count() as u32;
            (registers > 0).then(|| Live { of: origins.statement(input, v), registers })
        });
        Peak {
            at: block.insts.get(at).map_or(block.term_src, |inst| inst.src),
            live: united(living.collect()),
        }
    });
    (peak, spills(allocated, &live, &origins, limit))
}

/// The general registers of the input.
fn values(input: &Function) -> impl Iterator<Item = Value> {
    (0..).zip(&input.values).filter(|(_, data)| data.file == File::R).map(|(v, _)| Value(v))
}

/// The block and the index of the input's instruction before which most registers are live.
fn highest(input: &Function, allocation: &Allocation) -> Option<(usize, usize)> {
    let mut best: Option<(u16, usize, usize)> = None;
    for b in input.layout.iter().map(|b| b.index()) {
        let (origin, live) = (allocation.origin.get(b)?, allocation.live.get(b)?);
        for (at, &count) in origin.iter().zip(live) {
            if let &Some(at) = at
                && count > best.map_or(0, |(most, ..)| most)
            {
                best = Some((count, b, at as usize));
            }
        }
    }
    best.map(|(_, b, at)| (b, at))
}

fn spills(allocated: &Allocated, live: &Liveness, origins: &Origins, limit: u32) -> Vec<Spilled> {
    let Allocated { input, allocation } = allocated;
    let constants = constants(input);
    let is_stored = |v: &Value| {
        let data = input.values.get(v.index());
        data.is_some_and(|data| data.file == File::R) && constants[v.index()].is_none()
    };
    let stored: Vec<Value> = allocation.spilled.iter().copied().filter(is_stored).collect();
    if stored.is_empty() {
        return Vec::new();
    }
    let pressure = live.pressure(input, File::R);
    let statements = statements(input, live);
    let mut found: Vec<Spilled> = stored
        .into_iter()
        .filter_map(|v| {
            let points = live.of(v).iter().flat_map(|lane| &lane.0).flat_map(|i| i.start..i.end);
            let at: Point =
                points.max_by_key(|&point| (pressure[point as usize], std::cmp::Reverse(point)))?;
            Some(Spilled {
                of: origins.statement(input, v),
                registers: input.value(v).width.into(),
                at: statements.get(at as usize / 2).copied().unwrap_or_default(),
                needed: pressure[at as usize].into(),
                available: limit.saturating_sub(HIDDEN_REGISTERS + STACK_POINTERS),
            })
        })
        .collect();
    found.sort_unstable_by_key(|spilled| (spilled.of, std::cmp::Reverse(spilled.needed)));
    found.dedup_by(|next, first| {
        let same = next.of == first.of;
        first.registers += if same { next.registers } else { 0 };
        same
    });
    found
}

/// The statement of each slot; that of the first instruction for the entry of a block.
fn statements(input: &Function, live: &Liveness) -> Vec<SrcId> {
    let mut statements = vec![SrcId::default(); live.points as usize / 2 + 1];
    for &b in &input.layout {
        let (block, span) = (input.block(b), live.spans[b.index()]);
        let all = block.insts.iter().map(|inst| inst.src).chain([block.term_src]);
        let slots = statements[span.first as usize..=span.last as usize].iter_mut();
        let first = block.insts.first().map_or(block.term_src, |inst| inst.src);
        slots.zip([first].into_iter().chain(all)).for_each(|(slot, src)| *slot = src);
    }
    statements
}

/// Where values come from.
struct Origins {
    /// For each value, the statement of its instruction, or the arguments of its phi.
    of: Vec<Origin>,
}

#[derive(Clone)]
enum Origin {
    Statement(SrcId),
    Phi(Vec<Value>),
}

impl Origins {
    fn of(input: &Function) -> Origins {
        let mut of = vec![Origin::Phi(Vec::new()); input.values.len()];
        for &b in &input.layout {
            let block = input.block(b);
            for phi in &block.phis {
                // The last argument usually comes from the end of the loop, where the variable changes.
                let args = phi.args.iter().rev().map(|(_, src)| src);
                of[phi.dst.index()] = Origin::Phi(args.filter_map(Src::value).collect());
            }
            for inst in &block.insts {
                inst.defs().for_each(|v| of[v.index()] = Origin::Statement(inst.src));
            }
        }
        Origins { of }
    }

    /// The statement that computes a value; for a phi, one of those that compute its arguments.
    fn statement(&self, input: &Function, v: Value) -> SrcId {
        let mut seen = FxHashSet::default();
        let mut pending = vec![v];
        while let Some(v) = pending.pop() {
            match &self.of[v.index()] {
                Origin::Statement(src) => return input.facts.statements.original(*src),
                Origin::Phi(args) if seen.insert(v) => pending.extend(args.iter().rev()),
                Origin::Phi(_) => {}
            }
        }
        SrcId::default()
    }
}
