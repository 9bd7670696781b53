//! Stall counts: enough cycles between a fixed-latency instruction and its dependent instructions.
//!
//! The hardware does not check this: a consumer that issues too early reads the old value. So for every pair of
//! dependent instructions, and on every path, the stall counts of the first instruction and of all instructions in
//! between must add up to the latency. Scoreboards guard the results of variable-latency instructions.
//!
//! A forward pass tracks the instructions that may still matter, with the minimum number of cycles since each issued.
//! If a consumer comes too early, the stall of the instruction right before it is increased. Stalls only grow, and the
//! pass is repeated until nothing changes.

use super::facts::InstFacts;
use super::sweep::Sweep;
use crate::input::SrcId;
use crate::mach::{Code, Effect, MachInst};
use sass::latency::Spaced;
use sass::{Inst, Sm, latency};

/// The maximum stall count of one instruction.
const MAX_STALL: u16 = 15;

/// The number of cycles from setting a scoreboard until a wait observes it.
const SCOREBOARD_DELAY: u16 = 2;

/// An instruction in flight: its block and index, the minimum number of cycles since it issued, and the number of
/// cycles after which it no longer matters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct InFlight {
    block: u32,
    at: u32,
    elapsed: u16,
    enough: u16,
}

/// Sets the stall count of every instruction, and adds `NOP`s where one count is not enough.
pub(super) fn assign(code: &mut Code, facts: &[Vec<InstFacts>], checkpoint: &dyn Fn()) {
    let count = code.blocks.len();
    let sources = sources(code);
    let mut consumers: Vec<Vec<usize>> = vec![Vec::new(); count];
    for (b, sources) in sources.iter().enumerate() {
        if !facts[b].is_empty() {
            sources.iter().for_each(|&p| consumers[p].push(b));
        }
    }
    let mut stalls: Vec<Vec<u16>> =
        facts.iter().map(|block| block.iter().map(|f| u16::from(f.issue)).collect()).collect();
    // The instructions in flight at the end of each block; unknown before the first visit.
    let mut exit: Vec<Option<Vec<InFlight>>> = vec![None; count];
    let mut sweep = Sweep::over((0..count).filter(|&b| !facts[b].is_empty()));
    while let Some(b) = sweep.pop() {
        checkpoint();
        let mut entry = Vec::new();
        for &p in &sources[b] {
            let Some(in_flight) = exit[p].take() else { continue };
            let mut window = Window { code, facts, in_flight };
            let missing = window.missing(b, 0);
            if missing > 0 {
                *stalls[p].last_mut().expect("sources are not empty") += missing;
                window.pass(missing);
                consumers[p].iter().filter(|&&c| c != b).for_each(|&c| sweep.mark(c));
            }
            entry.extend(window.in_flight.iter().copied());
            exit[p] = Some(window.in_flight);
        }
        entry.sort();
        // The smallest `elapsed` comes first.
        entry.dedup_by_key(|e| (e.block, e.at));
        let mut window = Window { code, facts, in_flight: entry };
        for at in 0..facts[b].len() {
            let missing = window.missing(b, at);
            if missing > 0 && at > 0 {
                stalls[b][at - 1] += missing;
                window.pass(missing);
            }
            window.push(b, at, stalls[b][at]);
        }
        window.in_flight.sort();
        if exit[b].as_ref() != Some(&window.in_flight) {
            exit[b] = Some(window.in_flight);
            consumers[b].iter().for_each(|&c| sweep.mark(c));
        }
    }
    for ((block, facts), stalls) in code.blocks.iter_mut().zip(facts).zip(&stalls) {
        write(code.sm, &mut block.insts, facts, stalls);
    }
}

/// For each block, the blocks whose last instruction may issue right before its first one: its predecessors or, for
/// empty predecessors, theirs.
fn sources(code: &Code) -> Vec<Vec<usize>> {
    let predecessors = code.predecessors();
    let is_empty = |b: usize| code.blocks[b].insts.is_empty();
    // The block for which each block was last visited.
    let mut seen = vec![usize::MAX; code.blocks.len()];
    (0..code.blocks.len())
        .map(|b| {
            let mut sources = Vec::new();
            // No instruction issues in an empty block.
            let mut work: Vec<usize> = if is_empty(b) { Vec::new() } else { vec![b] };
            while let Some(at) = work.pop() {
                for p in predecessors[at].iter().map(|p| p.index()) {
                    if std::mem::replace(&mut seen[p], b) != b {
                        if is_empty(p) { work.push(p) } else { sources.push(p) }
                    }
                }
            }
            sources.sort_unstable();
            sources
        })
        .collect()
}

struct Window<'a> {
    code: &'a Code,
    facts: &'a [Vec<InstFacts>],
    in_flight: Vec<InFlight>,
}

impl Window<'_> {
    fn inst(&self, block: usize, at: usize) -> (&Inst, &InstFacts) {
        (&self.code.blocks[block].insts[at].inst, &self.facts[block][at])
    }

    /// The number of cycles by which an instruction would issue too early.
    fn missing(&self, block: usize, at: usize) -> u16 {
        let consumer = self.inst(block, at);
        self.in_flight
            .iter()
            .map(|earlier| {
                let producer = self.inst(earlier.block as usize, earlier.at as usize);
                distance(self.code.sm, producer, consumer).saturating_sub(earlier.elapsed)
            })
            .max()
            .unwrap_or(0)
    }

    fn pass(&mut self, cycles: u16) {
        self.in_flight.retain_mut(|e| {
            e.elapsed += cycles;
            e.elapsed < e.enough
        });
    }

    fn push(&mut self, block: usize, at: usize, stall: u16) {
        let (inst, facts) = self.inst(block, at);
        let enough = enough(self.code.sm, inst, facts);
        let (block, at) = (block as u32, at as u32);
        // Control has returned to it through a loop; only the most recent time matters.
        self.in_flight.retain(|e| (e.block, e.at) != (block, at));
        self.in_flight.push(InFlight { block, at, elapsed: 0, enough });
        self.pass(stall);
    }
}

/// The maximum of [`distance`] from an instruction.
fn enough(sm: Sm, inst: &Inst, facts: &InstFacts) -> u16 {
    let control = &inst.control;
    let sets = control.write_sb.is_some() || control.read_sb.is_some();
    let results = facts.writes.iter().filter(|_| !facts.variable);
    let longest = results.map(|def| u16::from(latency::longest(sm, inst, def))).max();
    let late = if latency::reads_late(sm, inst) { latency::LATE_READ } else { 0 };
    let late = Spaced::ALL.iter().fold(late, |most, kind| most.max(kind.after(sm, inst)));
    longest.unwrap_or(0).max(if sets { SCOREBOARD_DELAY } else { 0 }).max(late.into())
}

/// The minimum number of cycles between the issue of two instructions, in program order.
pub(super) fn distance(sm: Sm, producer: (&Inst, &InstFacts), consumer: (&Inst, &InstFacts)) -> u16 {
    let (first, first_facts) = producer;
    let (second, second_facts) = consumer;
    let mut cycles = Spaced::of(second).map_or(0, |kind| u16::from(kind.after(sm, first)));
    let control = &first.control;
    let sets = [control.write_sb, control.read_sb].into_iter().flatten();
    // After a stall count of zero, the hardware may pause for longer than the delay until a scoreboard is observed.
    if first_facts.issue != 0 && sets.fold(0, |mask, s| mask | 1 << s) & second.control.wait != 0 {
        cycles = cycles.max(SCOREBOARD_DELAY);
    }
    for def in &first_facts.writes {
        if first_facts.variable {
            break;
        }
        for read in second_facts.reads.iter().filter(|r| r.overlaps(def)) {
            cycles = cycles.max(u16::from(latency::raw(sm, first, def, second, read)));
        }
        for over in second_facts.writes.iter().filter(|w| w.overlaps(def)) {
            cycles = cycles.max(u16::from(latency::waw(sm, first, def, second, over)));
        }
    }
    if latency::reads_late(sm, first) {
        for read in first_facts.reads.iter().filter(|r| second_facts.writes.iter().any(|w| w.overlaps(r))) {
            cycles = cycles.max(u16::from(latency::war(sm, first, read, second)));
        }
    }
    cycles
}

/// Writes stall counts into the control words.
fn write(sm: Sm, insts: &mut Vec<MachInst>, facts: &[InstFacts], stalls: &[u16]) {
    let mut out = Vec::with_capacity(insts.len());
    for ((mut inst, facts), &stall) in insts.drain(..).zip(facts).zip(stalls) {
        // A stall count of zero has a special meaning and stays.
        let own = if facts.issue == 0 { 0 } else { stall.min(MAX_STALL) };
        inst.inst.control.stall = own as u8;
        let src = inst.src;
        let at = out.len();
        // Control would skip a pause after a branch.
        let before = inst.effect == Effect::Control;
        out.push(inst);
        let pauses = pauses(sm, src, stall - own);
        if before {
            out.splice(at..at, pauses);
        } else {
            out.extend(pauses);
        }
    }
    *insts = out;
}

/// `NOP`s that take so many cycles.
fn pauses(sm: Sm, src: Option<SrcId>, cycles: u16) -> impl Iterator<Item = MachInst> {
    (0..cycles.div_ceil(MAX_STALL)).map(move |i| {
        let mut inst = Inst::new(super::nop(sm));
        inst.control.stall = (cycles - i * MAX_STALL).min(MAX_STALL) as u8;
        MachInst { inst, src, target: None, link: None, effect: Effect::None }
    })
}
