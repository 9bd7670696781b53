//! Scoreboards: assigns one of the six scoreboards to each variable-latency instruction, and adds the waits.
//!
//! A scoreboard is a counter. Instructions increment it when they issue, and decrement it when their results are
//! written (or their sources read). A wait for it waits for all of these instructions. So one scoreboard may guard
//! several instructions, at the price of waiting for the last one.
//!
//! Invariants of the result, on every path: if a variable-latency instruction has not yet written a register, every
//! instruction that reads or overwrites it waits for the scoreboard; if it has not yet read a register, every
//! instruction that overwrites it waits. Pending scoreboards are kept across blocks.

use super::facts::InstFacts;
use super::sweep::Sweep;
use crate::mach::{BlockId, Code, REGISTERS, RegisterSet, flat};
use sass::{RegUse, Told, speed};
use smallvec::SmallVec;

/// The number of scoreboards of a warp.
const SCOREBOARDS: usize = 6;

/// Counts groups of copies: `DEPBAR` waits until it is at most a given count. If a function has such groups, nothing
/// else uses this scoreboard, so that only instructions that need a copy wait for it.
const COPIES: u8 = 0;

/// A position after every instruction of a block.
const BEYOND: u32 = u32::MAX;

/// At a point of the program, for each scoreboard: the registers that are still to be written, and still to be read.
#[derive(Clone, Default, PartialEq, Eq)]
struct Pending {
    writes: [RegisterSet; SCOREBOARDS],
    reads: [RegisterSet; SCOREBOARDS],
    /// The scoreboards with pending registers, one bit each.
    taken: u8,
    /// Scoreboards set by a load whose value orders later accesses; see [`InstFacts`].
    loads: u8,
    /// Scoreboards set by a fence that is not complete.
    fences: u8,
    /// Scoreboards set by a load from tensor memory.
    tensor: u8,
}

impl Pending {
    fn unite(&mut self, other: &Pending) -> bool {
        let mut changed = self.loads | other.loads != self.loads || self.fences | other.fences != self.fences;
        changed |= self.tensor | other.tensor != self.tensor;
        self.tensor |= other.tensor;
        self.loads |= other.loads;
        self.fences |= other.fences;
        self.taken |= other.taken;
        for s in bits(other.taken) {
            changed |= self.writes[s].unite(&other.writes[s]);
            changed |= self.reads[s].unite(&other.reads[s]);
        }
        changed
    }

    fn is_free(&self, s: usize) -> bool {
        self.taken >> s & 1 == 0
    }

    /// The scoreboards that an instruction must wait for.
    fn conflicts(&self, facts: &InstFacts) -> u8 {
        let mut mask = 0;
        for s in bits(self.taken) {
            let raw = facts.reads.iter().any(|r| self.writes[s].touches(r));
            let overwrite =
                facts.writes.iter().any(|w| self.writes[s].touches(w) || self.reads[s].touches(w));
            if raw || overwrite {
                mask |= 1 << s;
            }
        }
        mask
    }

    fn release(&mut self, mask: u8) {
        for s in bits(mask & self.taken) {
            self.writes[s].clear();
            self.reads[s].clear();
        }
        self.taken &= !mask;
        self.loads &= !mask;
        self.fences &= !mask;
        self.tensor &= !mask;
    }

    fn add_writes<'r>(&mut self, scoreboard: u8, registers: impl Iterator<Item = &'r RegUse>) {
        for register in registers.filter(|r| r.count > 0) {
            self.taken |= 1 << scoreboard;
            self.writes[usize::from(scoreboard)].insert(register);
        }
    }

    fn add_reads<'r>(&mut self, scoreboard: u8, registers: impl Iterator<Item = &'r RegUse>) {
        for register in registers.filter(|r| r.count > 0) {
            self.taken |= 1 << scoreboard;
            self.reads[usize::from(scoreboard)].insert(register);
        }
    }
}

fn bits(mask: u8) -> impl Iterator<Item = usize> {
    (0..SCOREBOARDS).filter(move |s| mask >> s & 1 == 1)
}

/// Sets the scoreboard and wait fields of the whole function.
pub(super) fn assign(code: &mut Code, facts: &[Vec<InstFacts>], checkpoint: &dyn Fn()) {
    let copies = facts.iter().flatten().any(|facts| facts.ends_copies.is_some());
    let free: u8 = if copies { !(1 << COPIES) } else { !0 };
    let predecessors = code.predecessors();
    let later = later_accesses(code, facts, &predecessors);
    let mut entry: Vec<Pending> = vec![Pending::default(); code.blocks.len()];
    let mut exit: Vec<Pending> = entry.clone();
    let mut visited = vec![false; code.blocks.len()];
    // Entry states and waits only grow, so this ends. Scoreboards are chosen at the first visit and kept.
    let mut sweep = Sweep::over(0..code.blocks.len());
    while let Some(b) = sweep.pop() {
        checkpoint();
        let mut grown = false;
        for p in &predecessors[b] {
            if visited[p.index()] {
                grown |= entry[b].unite(&exit[p.index()]);
            }
        }
        if visited[b] && !grown {
            continue;
        }
        let mut state = entry[b].clone();
        if !visited[b] {
            choose(code, b, &facts[b], &later[b], &state, free);
            visited[b] = true;
        }
        walk(code, b, &facts[b], &mut state);
        if state != exit[b] {
            exit[b] = state;
            code.blocks[b].successors.iter().for_each(|s| sweep.mark(s.index()));
        }
    }
}

/// Processes a block's instructions and adds the waits that they need.
fn walk(code: &mut Code, b: usize, facts: &[InstFacts], state: &mut Pending) {
    for (inst, facts) in code.blocks[b].insts.iter_mut().zip(facts) {
        let control = &mut inst.inst.control;
        control.wait |= state.conflicts(facts) | ordering_waits(facts, state);
        state.release(control.wait);
        record(state, facts, control.write_sb, control.read_sb);
    }
}

/// Adds the registers that an instruction leaves pending.
fn record(state: &mut Pending, facts: &InstFacts, write_sb: Option<u8>, read_sb: Option<u8>) {
    if let Some(s) = read_sb.or(write_sb) {
        state.add_writes(s, facts.early_writes());
    }
    if let Some(s) = write_sb {
        state.add_writes(s, facts.late_writes());
        // Results are written after the sources have been read, so this scoreboard covers both.
        if facts.late && read_sb.is_none() {
            state.add_reads(s, facts.late_reads());
        }
        if facts.loads {
            state.loads |= 1 << s;
        }
        if facts.loads_tensor {
            state.tensor |= 1 << s;
        }
    }
    if let Some(s) = read_sb {
        state.add_reads(s, facts.late_reads());
    }
    let told = match facts.fences_late {
        Some(Told::Written) => write_sb,
        Some(Told::Read) => read_sb,
        None => None,
    };
    if let Some(s) = told {
        state.taken |= 1 << s;
        state.fences |= 1 << s;
    }
}

/// The scoreboards that an invalidation of the first-level cache must wait for because of earlier loads, or an
/// instruction because of earlier fences.
fn ordering_waits(facts: &InstFacts, state: &Pending) -> u8 {
    if facts.settles {
        return state.taken;
    }
    let loads = if facts.invalidates { state.loads } else { 0 };
    let fences = if facts.fenced { state.fences } else { 0 };
    let tensor = if facts.awaits_tensor { state.tensor } else { 0 };
    loads | fences | tensor
}

/// The next write and the next access of each register in its block, during a backward scan.
struct NextAccess {
    any: Box<[u32]>,
    write: Box<[u32]>,
}

impl NextAccess {
    /// The first instruction that must wait for a scoreboard.
    fn waiter(&self, state: &Pending, s: usize) -> u32 {
        let first =
            |registers: &RegisterSet, next: &[u32]| registers.iter().map(|r| next[r]).min().unwrap_or(BEYOND);
        first(&state.writes[s], &self.any).min(first(&state.reads[s], &self.write))
    }
}

/// The scoreboards that an instruction needs.
#[derive(Clone, Copy, Default)]
struct Request {
    /// The first instruction that must wait for the results.
    result: Option<u32>,
    /// The first instruction that must wait until the sources have been read, if no earlier wait implies this.
    source: Option<u32>,
}

/// The requests of the instructions of a block, and the first access of each register in the block.
fn requests(facts: &[InstFacts], later: &LaterAccesses) -> (Vec<Request>, NextAccess) {
    let mut next = NextAccess {
        any: vec![BEYOND; REGISTERS].into_boxed_slice(),
        write: vec![BEYOND; REGISTERS].into_boxed_slice(),
    };
    let mut requests = vec![Request::default(); facts.len()];
    for (at, facts) in facts.iter().enumerate().rev() {
        let request = &mut requests[at];
        if facts.variable && !facts.product && !facts.writes.is_empty() {
            let waiter = facts.late_writes().flat_map(flat).map(|r| next.any[r]).min().unwrap_or(BEYOND);
            let early = facts.early_writes().flat_map(flat).map(|r| next.any[r]).min().unwrap_or(BEYOND);
            let wanted = waiter.min(early) != BEYOND || facts.writes.iter().any(|w| later.any.touches(w));
            request.result = wanted.then_some(waiter);
            if early != BEYOND || facts.early_writes().any(|w| later.any.touches(w)) {
                request.source = Some(early);
            }
        }
        if facts.late {
            let own = |r: usize| facts.writes.iter().any(|w| flat(w).contains(&r));
            let sources = facts.late_reads().flat_map(flat).filter(|&r| !own(r));
            let overwriter = sources.map(|r| next.write[r]).min().unwrap_or(BEYOND);
            let may_be_overwritten = overwriter != BEYOND
                || facts.late_reads().any(|r| later.write.touches(r) && flat(r).any(|r| !own(r)));
            // An instruction that waits for the result also waits for the sources.
            let told = request.result.is_some_and(|result| result != BEYOND && result <= overwriter);
            if may_be_overwritten && !told {
                request.source = Some(request.source.map_or(overwriter, |early| early.min(overwriter)));
            }
        }
        let at = at as u32;
        for r in facts.writes.iter().flat_map(flat) {
            next.any[r] = at;
            next.write[r] = at;
        }
        for r in facts.reads.iter().flat_map(flat) {
            next.any[r] = at;
        }
    }
    (requests, next)
}

/// A scoreboard while scoreboards are assigned in a block.
#[derive(Clone, Copy)]
struct Scoreboard {
    /// The first instruction that will wait for it.
    waiter: u32,
    /// The expected cycle at which all instructions that it guards are complete.
    over: u32,
}

/// Assigns scoreboards to the instructions of a block in order. Cycles are rough: it only matters that memory takes
/// much longer than anything else.
struct Chooser {
    scoreboards: [Scoreboard; SCOREBOARDS],
    /// The current instruction, and its issue cycle.
    at: u32,
    cycle: u32,
    /// The number of instructions of the block.
    count: u32,
}

/// The number of cycles between two instructions without waits.
const ISSUE: u32 = 2;

impl Chooser {
    /// The issue cycle of a later instruction, without waits.
    fn time(&self, later: u32) -> u32 {
        self.cycle + ISSUE * (later.min(self.count).saturating_sub(self.at))
    }

    /// The number of cycles that some instruction waits longer if a scoreboard in use also guards this instruction.
    fn cost(&self, s: usize, wanted: u32, over: u32) -> u32 {
        let other = self.scoreboards[s];
        // The first instruction that waits waits for both, and no later one has to.
        if other.waiter <= wanted {
            over.saturating_sub(other.over.max(self.time(other.waiter)))
        } else {
            other.over.saturating_sub(over.max(self.time(wanted)))
        }
    }

    /// Chooses a scoreboard. Two instructions with the same first waiter share one at no cost. Otherwise a free one is
    /// taken; if none is free, the one where sharing costs the fewest cycles.
    fn pick(&self, state: &Pending, wanted: u32, over: u32, from: u8) -> usize {
        let others = || bits(from);
        if wanted != BEYOND
            && let Some(s) = others().find(|&s| !state.is_free(s) && self.scoreboards[s].waiter == wanted)
        {
            return s;
        }
        if let Some(s) = others().find(|&s| state.is_free(s)) {
            return s;
        }
        let distance = |s: usize| self.scoreboards[s].waiter.abs_diff(wanted);
        others().min_by_key(|&s| (self.cost(s, wanted, over), distance(s))).unwrap_or(0)
    }

    /// Takes a scoreboard for an access of the given number of cycles.
    fn take(&mut self, state: &Pending, wanted: u32, cycles: u32, from: u8) -> u8 {
        let over = self.cycle + cycles;
        let s = self.pick(state, wanted, over, from);
        let shared = &mut self.scoreboards[s];
        *shared = match state.is_free(s) {
            true => Scoreboard { waiter: wanted, over },
            false => Scoreboard { waiter: shared.waiter.min(wanted), over: shared.over.max(over) },
        };
        s as u8
    }
}

/// Assigns scoreboards to the instructions of a block, from those that are free for it.
fn choose(code: &mut Code, b: usize, facts: &[InstFacts], later: &LaterAccesses, entry: &Pending, free: u8) {
    let (requests, next) = requests(facts, later);
    let mut state = entry.clone();
    let first = |s| match state.is_free(s) {
        true => Scoreboard { waiter: BEYOND, over: 0 },
        false => Scoreboard { waiter: next.waiter(&state, s), over: BEFORE },
    };
    let scoreboards = std::array::from_fn(first);
    let mut chooser = Chooser { scoreboards, at: 0, cycle: 0, count: facts.len() as u32 };
    for (at, (inst, facts)) in code.blocks[b].insts.iter_mut().zip(facts).enumerate() {
        let waits = state.conflicts(facts) | ordering_waits(facts, &state);
        state.release(waits);
        let over = bits(waits).map(|s| chooser.scoreboards[s].over).max().unwrap_or(0);
        (chooser.at, chooser.cycle) = (at as u32, over.max(chooser.cycle));
        let speed = speed::speed(inst.inst.form);
        let control = &mut inst.inst.control;
        let request = requests[at];
        let next = at as u32 + 1;
        let fence = |told| (facts.fences_late == Some(told)).then_some(next);
        let result = request.result.or(fence(Told::Written));
        control.write_sb = result.map(|wanted| chooser.take(&state, wanted, speed.result, free));
        let source = request.source.or(fence(Told::Read));
        let others = free & control.write_sb.map_or(!0, |s| !(1 << s));
        control.read_sb = source.map(|wanted| chooser.take(&state, wanted, speed.release, others));
        match facts.ends_copies {
            Some(Told::Written) => control.write_sb = Some(COPIES),
            Some(Told::Read) => control.read_sb = Some(COPIES),
            None => {}
        }
        record(&mut state, facts, control.write_sb, control.read_sb);
        chooser.cycle += ISSUE.max(facts.issue.into());
    }
}

/// The expected cycle at which accesses of earlier blocks are complete.
const BEFORE: u32 = 100;

/// The registers that may be accessed after a block.
#[derive(Clone, Default)]
struct LaterAccesses {
    any: RegisterSet,
    write: RegisterSet,
}

fn later_accesses(
    code: &Code,
    facts: &[Vec<InstFacts>],
    predecessors: &[SmallVec<[BlockId; 2]>],
) -> Vec<LaterAccesses> {
    // First the accesses of each block itself, then those of later blocks.
    let mut from: Vec<LaterAccesses> = facts
        .iter()
        .map(|block| {
            let mut own = LaterAccesses::default();
            for facts in block {
                facts.writes.iter().for_each(|w| {
                    own.write.insert(w);
                    own.any.insert(w);
                });
                facts.reads.iter().for_each(|r| own.any.insert(r));
            }
            own
        })
        .collect();
    let mut after = vec![LaterAccesses::default(); code.blocks.len()];
    // From the last block to the first.
    let last = code.blocks.len().saturating_sub(1);
    let mut sweep = Sweep::over(0..code.blocks.len());
    while let Some(place) = sweep.pop() {
        let b = last - place;
        let mut grown = false;
        for &BlockId(s) in &code.blocks[b].successors {
            let next = from[s as usize].clone();
            let any = after[b].any.unite(&next.any);
            let write = after[b].write.unite(&next.write);
            if any || write {
                from[b].any.unite(&next.any);
                from[b].write.unite(&next.write);
                grown = true;
            }
        }
        if grown {
            predecessors[b].iter().for_each(|p| sweep.mark(last - p.index()));
        }
    }
    after
}
