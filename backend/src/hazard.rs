//! An independent check of the control fields of machine code.
//!
//! It checks four rules on every path through the code. An instruction that reads or overwrites the result of a
//! fixed-latency instruction issues late enough. One that reads or overwrites the result of a variable-latency
//! instruction waits for its scoreboard. One that overwrites a register which an earlier instruction reads after issue
//! waits for the scoreboard of that read. The hardware accepts every control word and every operand.
//!
//! The check works on decoded instructions in address order, ours or those of another compiler. It shares the latency
//! tables with the scheduler, but none of its code.
//!
//! The state at a point is the set of accesses in progress. For each access it has the minimum number of cycles since
//! its issue, and the scoreboards that signal its completion (any one of them is enough). Where paths join, states are
//! united: cycles by minimum, scoreboards by intersection. Accesses expire by time or by a wait, so states stay small.

mod flow;
mod queue;
mod state;

pub use queue::{Queue, ends_product_group, forwards, group_wait, read_queue, waits, write_queue};

use crate::target::HIDDEN_REGISTERS;
use flow::Flow;
pub(crate) use flow::is_unconditional;
use queue::{MOST_BEHIND, counted_wait, name, same};
use sass::latency::Spaced;
use sass::{Class, Field, Inst, RegFile, RegUse, Role, Sm, Told, latency};
use smallvec::SmallVec;
use state::{Guard, InProgress, PendingAccess, State, add, marks};
use std::collections::BTreeSet;
use std::fmt;

/// A finding: an instruction, by its index in the code, that issues too early or is malformed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hazard {
    pub at: usize,
    pub kind: Kind,
    /// For a dependence: the register, and the earlier instruction that still accesses it.
    pub register: Option<(RegFile, u8)>,
    pub earlier: Option<usize>,
    /// The required number of cycles since the earlier instruction issued, or [`SCOREBOARD`] if only a wait is enough.
    pub needed: u8,
    /// The number of cycles on the fastest path.
    pub found: u8,
}

/// The value of [`Hazard::needed`] if no number of cycles is enough.
pub const SCOREBOARD: u8 = u8::MAX;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    /// A register is read before it is written.
    ReadAfterWrite,
    /// A register is overwritten before an earlier write.
    WriteAfterWrite,
    /// A register is overwritten before it is read.
    WriteAfterRead,
    /// A wait right after the instruction that sets the scoreboard does not observe it yet.
    WaitTooEarly,
    /// An instruction of a [`Spaced`] kind issues too soon after the instruction that it must keep a distance from.
    TooClose,
    /// A stall count and a yield bit that exclude each other.
    IllegalStall,
    /// A scoreboard that does not exist, or on an instruction that cannot set one.
    IllegalScoreboard,
    /// A reuse flag that is not allowed here.
    IllegalReuse,
    /// Operands that have an encoding but that hardware does not execute.
    IllegalOperands,
}

impl fmt::Display for Hazard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#06x}: {:?}", self.at * 16, self.kind)?;
        if let Some((file, index)) = self.register {
            write!(f, " of {file:?}{index}")?;
        }
        if let Some(earlier) = self.earlier {
            write!(f, " after {:#06x}", earlier * 16)?;
        }
        match self.needed {
            SCOREBOARD => write!(f, ", no wait"),
            needed => write!(f, ", {} of {needed} cycles", self.found),
        }
    }
}

/// The number of cycles from setting a scoreboard until a wait observes it.
pub const SCOREBOARD_DELAY: u8 = 2;

/// The facts about one instruction that the check needs.
struct Facts {
    reads: SmallVec<[RegUse; 6]>,
    writes: SmallVec<[RegUse; 2]>,
    /// The marks of the registers that the instruction reads, and of those that it writes.
    read_marks: u64,
    write_marks: u64,
    guard: Option<Guard>,
    variable: bool,
    late: bool,
    read_queue: Option<Queue>,
    write_queue: Option<Queue>,
    /// Control goes to code outside: no access may be in progress.
    leaves: bool,
    /// The first general register that the instruction releases to other threads: no access to it or later ones may be
    /// in progress.
    gives: Option<u8>,
}

/// The first of the general registers that an instruction releases to other threads.
pub fn first_given(inst: &Inst) -> Option<u8> {
    let kept = inst.get(Field::Imm32).unwrap_or(0).saturating_sub(u64::from(HIDDEN_REGISTERS));
    inst.gives_registers().then(|| u8::try_from(kept).unwrap_or(u8::MAX))
}

impl Facts {
    fn of(sm: Sm, inst: &Inst, is_alone: bool) -> Facts {
        let (mut reads, mut writes) = (SmallVec::new(), SmallVec::new());
        inst.uses(sm).for_each(|used| match used.role {
            Role::Dst => writes.push(used),
            _ => reads.push(used),
        });
        let gives = first_given(inst);
        if gives.is_some() {
            writes.push(RegUse { file: RegFile::R, index: 0, count: u8::MAX, role: Role::Dst });
        }
        let leaves = is_alone && matches!(name(inst), "CALL" | "RET");
        Facts {
            leaves,
            gives,
            read_marks: if leaves { u64::MAX } else { marks(&reads) },
            write_marks: if leaves { u64::MAX } else { marks(&writes) },
            reads,
            writes,
            guard: Guard::of(inst),
            variable: inst.is_variable(sm),
            late: inst.reads_late(sm),
            read_queue: read_queue(sm, inst),
            write_queue: write_queue(sm, inst),
        }
    }
}

/// Basic blocks of machine code.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Blocks {
    /// The first instruction of each block, ascending; the first is 0.
    pub starts: Vec<usize>,
    /// The successors of each block.
    pub successors: Vec<Vec<usize>>,
}

/// The control flow of a function's code; `tables` has the meaning that it has in [`check`].
pub fn blocks(code: &[Inst], tables: &[(usize, Vec<usize>)]) -> Blocks {
    let Flow { starts, successors, .. } = Flow::of(code, tables);
    Blocks { starts, successors }
}

/// Checks a function's code. `tables` has the targets of each indirect branch, by the index of its instruction; a
/// branch that is not listed ends its path.
pub fn check(sm: Sm, code: &[Inst], tables: &[(usize, Vec<usize>)]) -> Vec<Hazard> {
    check_with(sm, code, tables, false, &|| ())
}

/// As [`check`], for one function alone: its callees and callers may read and write any register at once. `checkpoint`
/// is called often and cancels by unwinding.
pub fn check_alone(
    sm: Sm,
    code: &[Inst],
    tables: &[(usize, Vec<usize>)],
    checkpoint: &dyn Fn(),
) -> Vec<Hazard> {
    check_with(sm, code, tables, true, checkpoint)
}

fn check_with(
    sm: Sm,
    code: &[Inst],
    tables: &[(usize, Vec<usize>)],
    is_alone: bool,
    checkpoint: &dyn Fn(),
) -> Vec<Hazard> {
    let mut facts: Vec<Facts> = code.iter().map(|inst| Facts::of(sm, inst, is_alone)).collect();
    arrivals_read(code, &mut facts);
    let mut checker = Checker { sm, code, facts, found: Vec::new() };
    checker.legality();
    checkpoint();
    checker.dependences(&Flow::of(code, tables), checkpoint);
    checker.found.sort_by_key(|h| (h.at, h.kind, h.register, h.earlier));
    // An instruction may read a register through several operands.
    checker.found.dedup();
    checker.found
}

/// Makes each arrival of a warp group a reader of the registers that the following products read, up to the next
/// arrival.
fn arrivals_read(code: &[Inst], facts: &mut [Facts]) {
    let mut operands: Vec<RegUse> = Vec::new();
    for (inst, facts) in code.iter().zip(facts).rev() {
        if inst.is_group_product() {
            operands.extend(facts.reads.iter().filter(|read| read.file == RegFile::R));
        } else if inst.is_group_arrival() {
            facts.late = false;
            facts.reads.extend(operands.drain(..));
            facts.read_marks = marks(&facts.reads);
        }
    }
}

/// Whether the instruction keeps a register in an operand cache, overwrites it, and the next instruction reads it from
/// the cache.
fn keeps_old_value(sm: Sm, inst: &Inst, next: &Inst) -> bool {
    let kept = inst.cached_reads(sm).filter(|(bit, _)| inst.control.reuse >> bit & 1 == 1);
    kept.into_iter().any(|(bit, read)| {
        inst.writes(sm).any(|def| def.overlaps(&read))
            && next.cached_reads(sm).any(|(slot, other)| slot == bit && other.overlaps(&read))
    })
}

struct Checker<'a> {
    sm: Sm,
    code: &'a [Inst],
    facts: Vec<Facts>,
    found: Vec<Hazard>,
}

impl Checker<'_> {
    /// Control words and operands that the hardware does not accept.
    fn legality(&mut self) {
        for (at, inst) in self.code.iter().enumerate() {
            let control = &inst.control;
            let mut report = |kind| {
                self.found.push(Hazard { at, kind, register: None, earlier: None, needed: 0, found: 0 });
            };
            if control.stall > 15 || (!control.yield_ && !(1..=11).contains(&control.stall)) {
                report(Kind::IllegalStall);
            }
            let scoreboards = [control.write_sb, control.read_sb];
            if scoreboards.iter().flatten().any(|&s| s > 5)
                || control.wait > 0x3f
                || (matches!(name(inst), "BRA" | "EXIT") && scoreboards.iter().any(Option::is_some))
            {
                report(Kind::IllegalScoreboard);
            }
            let cached = || inst.cached_reads(self.sm).fold(0, |bits, (bit, _)| bits | 1 << bit);
            if control.reuse != 0
                && inst.class(self.sm) != Class::Texture
                && (control.yield_ || control.reuse & !cached() != 0)
            {
                report(Kind::IllegalReuse);
            }
            if control.reuse != 0
                && !control.yield_
                && self.code.get(at + 1).is_some_and(|next| keeps_old_value(self.sm, inst, next))
            {
                report(Kind::IllegalReuse);
            }
            if inst.illegal(self.sm).is_some() {
                report(Kind::IllegalOperands);
            }
        }
    }

    fn dependences(&mut self, flow: &Flow, checkpoint: &dyn Fn()) {
        let mut entry: Vec<Option<State>> = vec![None; flow.starts.len()];
        // The state at each call of a subroutine.
        let mut calling: Vec<Option<State>> = vec![None; flow.starts.len()];
        let mut work = BTreeSet::new();
        // Entry points besides the first block: blocks without predecessors, which are functions that are called
        // through their address.
        let mut led_to = vec![false; flow.starts.len()];
        flow.successors.iter().flatten().for_each(|&next| led_to[next] = true);
        for block in (0..flow.starts.len()).filter(|&block| block == 0 || !led_to[block]) {
            entry[block] = Some(State::start());
            work.insert(block);
        }
        while let Some(block) = work.pop_first() {
            let Some(mut state) = entry[block].clone() else { continue };
            checkpoint();
            let range = flow.range(block, self.code.len());
            let last = name(&self.code[range.end - 1]);
            for at in range {
                self.step(at, &mut state, None);
            }
            state.sort();
            if last == "CALL" {
                calling[block] = Some(state.clone());
                work.extend(flow.returns.iter().filter(|&&b| entry[b].is_some()));
            }
            for &next in &flow.successors[block] {
                let mut state = state.clone();
                if last == "RET" {
                    // Only the caller's accesses in progress, and those that the subroutine began, reach the return
                    // point.
                    let Some(call) = next.checked_sub(1).and_then(|caller| calling[caller].as_ref()) else {
                        continue;
                    };
                    let comes_back = |p: &InProgress, callers: &[InProgress]| {
                        flow.in_subroutine[p.at as usize]
                            || callers.binary_search_by_key(&p.key(), InProgress::key).is_ok()
                    };
                    state.fixed.retain(|p| comes_back(p, &call.fixed));
                    state.pending.retain(|p| comes_back(p, &call.pending));
                }
                // A return keeps only accesses that its own caller had in progress. So subroutines must not drop an
                // access because it ends with an access of another caller.
                let shortens = !flow.in_subroutine[flow.starts[next]];
                let worse = match &mut entry[next] {
                    Some(old) => old.unite(&state, shortens),
                    none => {
                        *none = Some(state);
                        true
                    }
                };
                if worse {
                    work.insert(next);
                }
            }
        }
        let mut found = std::mem::take(&mut self.found);
        for (block, state) in entry.into_iter().enumerate() {
            // Code that no known path reaches is checked by itself.
            let mut state = state.unwrap_or_else(State::start);
            for at in flow.range(block, self.code.len()) {
                self.step(at, &mut state, Some(&mut found));
            }
        }
        self.found = found;
    }

    /// Processes one instruction: the accesses that it conflicts with, those that its wait ends, and those that it
    /// starts.
    fn step(&self, at: usize, state: &mut State, found: Option<&mut Vec<Hazard>>) {
        let inst = &self.code[at];
        let waits = waits(inst);
        if waits != 0 {
            state.fixed.retain(|p| p.told_by & waits == 0);
            state.pending.retain(|p| p.told_by & waits == 0);
        }
        if let Some((scoreboard, but)) = counted_wait(inst) {
            let texture = |p: &InProgress| self.facts[p.at as usize].write_queue == Some(Queue::Texture);
            state.pending.retain(|p| !(texture(p) && p.told_by >> scoreboard & 1 == 1 && p.behind >= but));
        }
        if let Some(left) = group_wait(inst) {
            state.pending.retain(|p| !self.is_of_product(p) || p.behind <= left);
        }
        if let Some(found) = found {
            // A `DEPBAR` looks at its own operands later.
            for s in (0..6).filter(|s| inst.control.wait >> s & 1 == 1) {
                let since = state.since_set[s];
                if since < SCOREBOARD_DELAY {
                    found.push(Hazard {
                        at,
                        kind: Kind::WaitTooEarly,
                        register: None,
                        earlier: None,
                        needed: SCOREBOARD_DELAY,
                        found: since,
                    });
                }
            }
            let needed = Spaced::of(inst).map_or(0, |kind| state.before[kind as usize]);
            if needed > 0 {
                found.push(Hazard {
                    at,
                    kind: Kind::TooClose,
                    register: None,
                    earlier: None,
                    needed,
                    found: 0,
                });
            }
            let facts = &self.facts[at];
            let (writes, named) = (facts.write_marks, facts.read_marks | facts.write_marks);
            for p in &state.fixed {
                if p.mark() & named != 0 {
                    self.endangered(at, p, found);
                }
            }
            for p in &state.pending {
                if p.mark() & if p.access.reads() { writes } else { named } != 0 {
                    self.endangered(at, p, found);
                }
            }
        }
        self.start(at, state);
        // After a stall count of zero, the hardware may pause for longer.
        let cycles = inst.control.stall.max(1);
        state.fixed.retain_mut(|p| {
            p.elapsed = p.elapsed.saturating_add(cycles);
            p.elapsed < p.enough
        });
        state.before.iter_mut().for_each(|left| *left = left.saturating_sub(cycles));
        // Longer than the delay until a scoreboard is observed.
        let seen = if inst.control.stall == 0 { SCOREBOARD_DELAY } else { cycles };
        for since in &mut state.since_set {
            // Beyond the delay, time does not matter, and must not distinguish states.
            *since = since.saturating_add(seen).min(SCOREBOARD_DELAY);
        }
    }

    /// Reports the conflicts of an instruction with an access in progress.
    fn endangered(&self, at: usize, p: &InProgress, found: &mut Vec<Hazard>) {
        let (inst, facts) = (&self.code[at], &self.facts[at]);
        let (earlier, earlier_facts) = (&self.code[p.at as usize], &self.facts[p.at as usize]);
        let names = |r: &&RegUse| {
            r.file == p.file
                && (u16::from(r.index)..u16::from(r.index) + u16::from(r.count)).contains(&u16::from(p.index))
        };
        let mut report = |kind, needed: u8| {
            let in_time = needed != SCOREBOARD && p.elapsed >= needed;
            // If the guard of one instruction is the negation of the other's, no thread executes both.
            let exclude = p.guard.zip(facts.guard).is_some_and(|(a, b)| a.excludes(b));
            if !in_time && !exclude {
                found.push(Hazard {
                    at,
                    kind,
                    register: Some((p.file, p.index)),
                    earlier: Some(p.at as usize),
                    needed,
                    found: p.elapsed,
                });
            }
        };
        let given = facts.gives.is_some_and(|first| p.file == RegFile::R && p.index >= first);
        if facts.leaves || given {
            let (kind, needed) = match p.access {
                PendingAccess::LateRead => (Kind::WriteAfterRead, SCOREBOARD),
                PendingAccess::VariableWrite => (Kind::ReadAfterWrite, SCOREBOARD),
                // Control takes longer to leave the function.
                PendingAccess::FixedRead => return,
                PendingAccess::FixedWrite => {
                    let def = &earlier_facts.writes[usize::from(p.operand)];
                    let needed = match given {
                        true => latency::longest(self.sm, earlier, def),
                        // The latency is that of an operand of a branch address.
                        false => latency::raw(self.sm, earlier, def, inst, &RegUse { role: Role::A, ..*def }),
                    };
                    (Kind::ReadAfterWrite, needed)
                }
            };
            return report(kind, needed);
        }
        if facts.gives.is_some() {
            return;
        }
        let over = facts.writes.iter().find(names);
        if p.access == PendingAccess::LateRead {
            // Writes in the same queue happen later.
            if over.is_some() && !same(earlier_facts.read_queue, facts.read_queue) {
                report(Kind::WriteAfterRead, SCOREBOARD);
            }
            return;
        }
        if p.access == PendingAccess::FixedRead {
            if over.is_some() {
                let read = &earlier_facts.reads[usize::from(p.operand)];
                report(Kind::WriteAfterRead, latency::war(self.sm, earlier, read, inst));
            }
            return;
        }
        let def = &earlier_facts.writes[usize::from(p.operand)];
        if let Some(read) = facts.reads.iter().find(names)
            && !forwards(self.sm, earlier, inst, read)
        {
            report(Kind::ReadAfterWrite, latency::raw(self.sm, earlier, def, inst, read));
        }
        if let Some(over) = over
            && !same(earlier_facts.write_queue, facts.write_queue)
        {
            report(Kind::WriteAfterWrite, latency::waw(self.sm, earlier, def, inst, over));
        }
    }

    /// Whether an access belongs to a `wgmma` product. Products complete by groups and set no scoreboards.
    fn is_of_product(&self, p: &InProgress) -> bool {
        self.facts[p.at as usize].write_queue == Some(Queue::WarpGroup)
    }

    /// Drops the guards whose predicates are among the written registers.
    fn forget_guards(&self, state: &mut State, writes: &[RegUse]) {
        if !writes.iter().any(|w| matches!(w.file, RegFile::P | RegFile::UP)) {
            return;
        }
        let forgotten = |p: &InProgress| p.guard.is_some_and(|guard| guard.changes(writes));
        state.fixed.iter_mut().filter(|p| forgotten(p)).for_each(|p| p.guard = None);
        if state.pending.iter().any(forgotten) {
            // Of late reads that differ only in their guards, one is enough.
            let key = |p: &InProgress| (p.file, p.index, p.told_by, self.facts[p.at as usize].read_queue);
            let is_bare = |p: &&InProgress| p.guard.is_none() && p.access == PendingAccess::LateRead;
            let mut known: BTreeSet<_> = state.pending.iter().filter(is_bare).map(key).collect();
            state.pending.retain_mut(|p| {
                if !forgotten(p) {
                    return true;
                }
                p.guard = None;
                p.access != PendingAccess::LateRead || known.insert(key(p))
            });
        }
    }

    /// Adds the accesses that an instruction starts.
    fn start(&self, at: usize, state: &mut State) {
        let inst = &self.code[at];
        let facts = &self.facts[at];
        let write_sb = inst.control.write_sb.map_or(0, |s| 1 << s);
        let read_sb = inst.control.read_sb.map_or(0, |s| 1 << s);
        for s in (0..6).filter(|s| (write_sb | read_sb) >> s & 1 == 1) {
            state.since_set[s] = 0;
        }
        self.forget_guards(state, &facts.writes);
        let guard = facts.guard.filter(|guard| !guard.changes(&facts.writes));
        // A barrier that stops the warp at once goes through the queue of the memory accesses before it.
        if name(inst) == "BAR" && inst.get(Field::Flag) == Some(0) {
            state.pending.retain(|p| {
                let queue = self.facts[p.at as usize].read_queue;
                p.access != PendingAccess::LateRead || queue != Some(Queue::Memory)
            });
        }
        if write_sb | read_sb != 0 {
            for p in &mut state.pending {
                let earlier = &self.facts[p.at as usize];
                let tells = match p.access {
                    PendingAccess::VariableWrite if same(facts.write_queue, earlier.write_queue) => write_sb,
                    PendingAccess::LateRead if same(facts.read_queue, earlier.read_queue) => {
                        write_sb | read_sb
                    }
                    _ => 0,
                };
                p.behind = match p.told_by & tells {
                    0 if tells != 0 => 0,
                    0 => p.behind,
                    _ => p.behind.saturating_add(1).min(MOST_BEHIND),
                };
                p.told_by |= tells;
            }
        }
        for kind in Spaced::ALL {
            let left = &mut state.before[kind as usize];
            *left = kind.after(self.sm, inst).max(*left);
        }
        // Drop earlier executions of the same instruction in a loop.
        state.fixed.retain(|p| p.at as usize != at);
        if !facts.variable {
            let writes = facts.writes.iter().enumerate();
            add(&mut state.fixed, at, guard, writes, PendingAccess::FixedWrite, |r| {
                (write_sb, latency::longest(self.sm, inst, r))
            });
        }
        if latency::reads_late(self.sm, inst) {
            let uniform =
                facts.reads.iter().enumerate().filter(|(_, r)| matches!(r.file, RegFile::UR | RegFile::UP));
            add(&mut state.fixed, at, guard, uniform, PendingAccess::FixedRead, |_| (0, latency::LATE_READ));
        }
        if !facts.variable && !facts.late {
            return;
        }
        let told_by = write_sb | read_sb;
        // An earlier read in the same queue ends no later, and a scoreboard that signals this read also signals the
        // earlier one.
        state.pending.retain(|p| {
            let again = facts.late
                && p.access == PendingAccess::LateRead
                && p.told_by & told_by == told_by
                && (guard.is_none() || p.guard == guard)
                && self.facts[p.at as usize].read_queue == facts.read_queue
                && p.mark() & facts.read_marks != 0
                && facts
                    .reads
                    .iter()
                    .any(|r| r.file == p.file && r.index <= p.index && p.index - r.index < r.count);
            p.at as usize != at && !again
        });
        if facts.variable {
            let early = inst.predicate_told(self.sm) == Told::Read;
            let writes = facts.writes.iter().enumerate();
            add(&mut state.pending, at, guard, writes, PendingAccess::VariableWrite, |r| match r.file {
                RegFile::P if early => (told_by, SCOREBOARD),
                _ => (write_sb, SCOREBOARD),
            });
        }
        if facts.late {
            // A result is written after the sources have been read. All instructions read uniform registers at issue.
            let late = facts.reads.iter().enumerate().filter(|(_, r)| r.file == RegFile::R);
            let first = state.pending.len();
            add(&mut state.pending, at, guard, late, PendingAccess::LateRead, |_| (told_by, SCOREBOARD));
            let is_of_memory = facts.read_queue == Some(Queue::Memory);
            state.pending[first..].iter_mut().for_each(|read| read.is_of_memory = is_of_memory);
        }
        if ends_product_group(inst) {
            for p in state.pending.iter_mut().filter(|p| self.is_of_product(p)) {
                p.behind = p.behind.saturating_add(1).min(MOST_BEHIND);
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
