//! An independent check that the control fields of machine code make it right.
//!
//! For every path through the code: what reads or overwrites a register comes late enough after a
//! fixed-latency instruction that writes it, and waits for the scoreboard of a variable-latency one; what
//! overwrites a register that is read after issue waits for the scoreboard of that read; and every control
//! word is one that the hardware accepts.
//!
//! It works on decoded instructions in address order, ours or anybody's, and shares the latency tables with
//! the scheduler but none of its code.
//!
//! The state at a point is the set of accesses still in progress, each with the fewest cycles since it issued
//! and the scoreboards any of which tells that it is done. Where paths join, the states unite: cycles by
//! minimum, scoreboards by intersection. Accesses expire by time or by a wait, so states stay small.

use sass::{Class, Field, Inst, RegFile, RegUse, Role, Sm, latency};
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// A finding: the instruction, by its index in the code, that issues too early or is malformed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hazard {
    pub at: usize,
    pub kind: Kind,
    /// The register in danger and the instruction that is still busy with it; for dependences.
    pub register: Option<(RegFile, u8)>,
    pub earlier: Option<usize>,
    /// Cycles needed since the earlier instruction issued, or [`SCOREBOARD`] where only a wait will do.
    pub needed: u8,
    /// Cycles that pass on the fastest path.
    pub found: u8,
}

/// [`Hazard::needed`] where no number of cycles is enough.
pub const SCOREBOARD: u8 = u8::MAX;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    /// Read before written.
    ReadAfterWrite,
    /// Overwritten before written.
    WriteAfterWrite,
    /// Overwritten before read.
    WriteAfterRead,
    /// A wait right behind the instruction that sets the scoreboard does not see it yet.
    WaitTooEarly,
    /// A stall count and yield bit that do not go together.
    IllegalStall,
    /// A scoreboard that does not exist, or on an instruction that takes none.
    IllegalScoreboard,
    /// A reuse flag without what it needs.
    IllegalReuse,
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

/// The predicate that always holds.
const PT: u64 = 7;

/// Cycles from setting a scoreboard until a wait sees it.
pub const SCOREBOARD_DELAY: u8 = 2;

// What is read at issue is out of danger when the next instruction issues, so it is not kept.
const _: () = assert!(latency::WAR == 1);

/// What is still going on with a register.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Access {
    /// Will be written after a known time.
    FixedWrite,
    /// Will be written at some time.
    VariableWrite,
    /// Will be read at some time.
    LateRead,
}

/// The predicate that an instruction asks for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Guard {
    file: RegFile,
    index: u8,
    not: bool,
}

impl Guard {
    /// `None` for instructions that always act.
    fn of(inst: &Inst) -> Option<Guard> {
        let index = inst.get(Field::Guard)?;
        let not = inst.get(Field::GuardNot) == Some(1);
        let file = inst.form().guard;
        (index != PT || not).then_some(Guard { file, index: index as u8, not })
    }

    /// Whether one of the registers is its predicate.
    fn changes(self, writes: &[RegUse]) -> bool {
        writes.iter().any(|w| w.file == self.file && w.index <= self.index && self.index - w.index < w.count)
    }

    /// Whether only one of the two can hold.
    fn excludes(self, other: Guard) -> bool {
        other == Guard { not: !self.not, ..self }
    }
}

/// One register in use by an earlier instruction.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct InProgress {
    file: RegFile,
    index: u8,
    access: Access,
    /// The instruction, and which of its operands.
    at: u32,
    operand: u8,
    /// Scoreboards any of which, found at zero, tells that the access is over.
    told_by: u8,
    /// Instructions of its queue that have set one of these scoreboards since the one that tells.
    behind: u8,
    /// The condition under which it happens, as long as its predicate keeps its value; `None` where it cannot be
    /// told from others by that.
    guard: Option<Guard>,
    /// Cycles since it issued, and how many of them are enough for everybody. Of fixed-latency writes only.
    elapsed: u8,
    enough: u8,
}

impl InProgress {
    fn key(&self) -> (RegFile, u8, Access, u32, u8) {
        (self.file, self.index, self.access, self.at, self.operand)
    }

    fn mark(&self) -> u64 {
        mark(self.file, self.index)
    }
}

/// One bit for a register; other registers may have the same, so it only tells what is not there.
fn mark(file: RegFile, index: u8) -> u64 {
    1 << ((u32::from(index) + 11 * file as u32) % 64)
}

fn marks(registers: &[RegUse]) -> u64 {
    let each = registers.iter().flat_map(|r| (0..r.count).map(|i| mark(r.file, r.index.saturating_add(i))));
    each.fold(0, |all, mark| all | mark)
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct State {
    /// What time ends, and what only scoreboards do. Sorted by [`InProgress::key`] between blocks.
    fixed: Vec<InProgress>,
    pending: Vec<InProgress>,
    /// Cycles since each scoreboard was last set.
    since_set: [u8; 6],
}

impl State {
    fn start() -> State {
        State { fixed: Vec::new(), pending: Vec::new(), since_set: [SCOREBOARD_DELAY; 6] }
    }

    fn sort(&mut self) {
        self.fixed.sort_unstable_by_key(InProgress::key);
        self.pending.sort_unstable_by_key(InProgress::key);
    }

    /// Whether the state got worse.
    fn unite(&mut self, other: &State) -> bool {
        let mut changed = false;
        for (mine, theirs) in self.since_set.iter_mut().zip(other.since_set) {
            changed |= theirs < *mine;
            *mine = theirs.min(*mine);
        }
        changed |= unite(&mut self.fixed, &other.fixed);
        changed | unite(&mut self.pending, &other.pending)
    }
}

/// Adds accesses to others, both sorted: the fewest cycles, the scoreboards that tell on both paths.
fn unite(into: &mut Vec<InProgress>, from: &[InProgress]) -> bool {
    let mut changed = false;
    for new in from {
        match into.binary_search_by_key(&new.key(), InProgress::key) {
            Ok(i) => {
                let old = &mut into[i];
                let worse = InProgress {
                    told_by: old.told_by & new.told_by,
                    behind: old.behind.min(new.behind),
                    elapsed: old.elapsed.min(new.elapsed),
                    guard: old.guard.filter(|_| old.guard == new.guard),
                    ..*old
                };
                changed |= worse != *old;
                *old = worse;
            }
            Err(i) => {
                into.insert(i, *new);
                changed = true;
            }
        }
    }
    changed
}

/// What the check needs of one instruction.
struct Facts {
    reads: SmallVec<[RegUse; 6]>,
    writes: SmallVec<[RegUse; 2]>,
    /// The [`mark`]s of both.
    read_marks: u64,
    write_marks: u64,
    guard: Option<Guard>,
    variable: bool,
    late: bool,
    read_queue: Option<Queue>,
    write_queue: Option<Queue>,
}

impl Facts {
    fn of(sm: Sm, inst: &Inst) -> Facts {
        let (mut reads, mut writes) = (SmallVec::new(), SmallVec::new());
        inst.uses(sm).for_each(|used| match used.role {
            Role::Dst => writes.push(used),
            _ => reads.push(used),
        });
        Facts {
            read_marks: marks(&reads),
            write_marks: marks(&writes),
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

/// Units that take their sources, or finish, in the order of issue: the scoreboard of a later instruction
/// tells of the earlier ones too, and a later one cannot overtake them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Queue {
    /// Everything that goes through the memory input-output unit.
    Memory,
    /// Special functions and conversions.
    Special,
    /// Double precision where it is slow.
    Double,
    Texture,
    /// Products of groups of warps.
    WarpGroup,
    /// One kind of instruction, among itself.
    Same(&'static str),
}

/// The queue in which an instruction reads its sources.
pub fn read_queue(sm: Sm, inst: &Inst) -> Option<Queue> {
    match inst.class(sm) {
        Class::Async if is_group_product(inst) => Some(Queue::WarpGroup),
        Class::Load | Class::Store | Class::Atomic | Class::Async => Some(Queue::Memory),
        Class::Xu => Some(Queue::Special),
        Class::Fp64 | Class::Fp64Compare => Some(Queue::Double),
        Class::Dmma => Some(Queue::Same("DMMA")),
        Class::Texture => Some(Queue::Texture),
        Class::Sync if name(inst) == "CCTL" => Some(Queue::Memory),
        Class::UniformLoad => Some(Queue::Same(name(inst))).filter(|_| name(inst) != "LDCU"),
        _ => None,
    }
}

/// The queue in which an instruction writes its results; loads from global memory overtake one another.
pub fn write_queue(sm: Sm, inst: &Inst) -> Option<Queue> {
    match name(inst) {
        "LDS" | "LDSM" | "SHFL" | "ATOMS" | "MOVM" | "QSPC" => Some(Queue::Memory),
        "B2R" => Some(Queue::Same("B2R")),
        "LDTM" => Some(Queue::Same("LDTM")),
        _ => read_queue(sm, inst).filter(|q| *q != Queue::Memory),
    }
}

/// A product of a group of warps, which goes on beside the code: `WARPGROUP.DEPBAR` tells of it.
fn is_group_product(inst: &Inst) -> bool {
    matches!(name(inst), "HGMMA" | "IGMMA" | "QGMMA" | "BGMMA")
}

/// The most that a counted wait can leave.
const MOST_BEHIND: u8 = 63;

/// A wait until a scoreboard counts no more than so many; textures come back in the order of issue.
fn counted_wait(inst: &Inst) -> Option<(u8, u8)> {
    let but = inst.get(Field::Imm2).filter(|_| name(inst) == "DEPBAR")?;
    Some((inst.get(Field::Scoreboard)? as u8, but.min(MOST_BEHIND.into()) as u8))
}

/// Whether an instruction waits for products of groups of warps. For how many of the latest it does not wait is not
/// considered.
pub fn ends_group_products(inst: &Inst) -> bool {
    inst.form().name == "WARPGROUP.DEPBAR"
}

/// Whether the unit hands a result to a later instruction of its own before it is anywhere else: sums of products.
pub fn forwards(sm: Sm, producer: &Inst, consumer: &Inst, read: &RegUse) -> bool {
    let both = |is: &dyn Fn(&Inst) -> bool| is(producer) && is(consumer);
    both(&is_group_product) || (both(&|inst| inst.class(sm) == Class::Dmma) && read.role == Role::C)
}

fn same(a: Option<Queue>, b: Option<Queue>) -> bool {
    a.is_some() && a == b
}

/// Checks a function's code. `tables` gives the targets of each indirect branch, by its index; one that is
/// not listed ends its path.
pub fn check(sm: Sm, code: &[Inst], tables: &[(usize, Vec<usize>)]) -> Vec<Hazard> {
    let mut checker =
        Checker { sm, code, facts: code.iter().map(|inst| Facts::of(sm, inst)).collect(), found: Vec::new() };
    checker.legality();
    checker.dependences(&Flow::of(code, tables));
    checker.found.sort_by_key(|h| (h.at, h.kind, h.register, h.earlier));
    // An instruction may read a register by several operands.
    checker.found.dedup();
    checker.found
}

/// Control flow between basic blocks of instruction indices.
struct Flow {
    /// First instruction of each block, ascending; the first is 0.
    starts: Vec<usize>,
    successors: Vec<Vec<usize>>,
    /// Instructions that control reaches from a call and before a return.
    in_subroutine: Vec<bool>,
    /// Blocks that end with a return.
    returns: Vec<usize>,
}

impl Flow {
    fn of(code: &[Inst], tables: &[(usize, Vec<usize>)]) -> Flow {
        let target = |at: usize| -> Option<usize> {
            // A function by its address may be any.
            let by_address = code[at].has(Field::Ra) || code[at].has(Field::URa);
            if by_address && name(&code[at]) == "CALL" {
                return None;
            }
            let offset = code[at].get(Field::Target)? as i64;
            let index = (at as i64 + 1) + offset / 16;
            (0..code.len() as i64).contains(&index).then_some(index as usize)
        };
        let mnemonic = |at: usize| name(&code[at]);
        let next = |at: usize| if at + 1 < code.len() { vec![at + 1] } else { Vec::new() };
        let meetings = meetings(code, &target);
        let returns = returns(code, &target);
        // Where control goes from instructions that may leave; others fall through.
        let leave = |at: usize| -> Option<Vec<usize>> {
            let mut to = match mnemonic(at) {
                "BRA" | "JMP" => target(at).into_iter().collect(),
                "CALL" => {
                    let mut to: Vec<usize> = target(at).into_iter().collect();
                    if to.is_empty() {
                        to = next(at);
                    }
                    to
                }
                "BRX" | "BRXU" | "JMX" => {
                    tables.iter().filter(|t| t.0 == at).flat_map(|t| t.1.clone()).collect()
                }
                "RET" => returns[at].clone(),
                "EXIT" => Vec::new(),
                "BSYNC" => match &meetings[at] {
                    // The meeting point may be named by the `BSYNC` itself or by what is behind it.
                    to if to.is_empty() || to.contains(&at) => next(at),
                    to => to.clone(),
                },
                _ => return None,
            };
            if !is_unguarded(&code[at]) {
                to.extend(next(at));
            }
            Some(to)
        };
        let mut starts = BTreeSet::from([0]);
        for at in 0..code.len() {
            if let Some(to) = leave(at) {
                starts.extend(to);
                starts.extend(next(at));
            }
        }
        let starts: Vec<usize> = starts.into_iter().collect();
        let block_of = |at: usize| starts.partition_point(|&s| s <= at) - 1;
        let successors: Vec<Vec<usize>> = (0..starts.len())
            .map(|b| {
                let end = starts.get(b + 1).copied().unwrap_or(code.len());
                let to = end
                    .checked_sub(1)
                    .and_then(leave)
                    .unwrap_or_else(|| if end < code.len() { vec![end] } else { Vec::new() });
                to.into_iter().map(block_of).collect()
            })
            .collect();
        let last = |b: usize| starts.get(b + 1).copied().unwrap_or(code.len()) - 1;
        let mut in_subroutine = vec![false; code.len()];
        let mut work: Vec<usize> =
            (0..code.len()).filter(|&at| mnemonic(at) == "CALL").filter_map(target).map(block_of).collect();
        while let Some(b) = work.pop() {
            if !std::mem::replace(&mut in_subroutine[starts[b]], true) {
                in_subroutine[starts[b]..=last(b)].fill(true);
                if mnemonic(last(b)) != "RET" {
                    work.extend(&successors[b]);
                }
            }
        }
        let returns = (0..starts.len()).filter(|&b| mnemonic(last(b)) == "RET").collect();
        Flow { starts, successors, in_subroutine, returns }
    }

    fn range(&self, block: usize, len: usize) -> std::ops::Range<usize> {
        self.starts[block]..self.starts.get(block + 1).copied().unwrap_or(len)
    }
}

/// For each `BSYNC`, where the threads that meet there go on: the targets of the `BSSY`s whose barrier it may
/// be, those from which control reaches it with the barrier not set anew.
fn meetings(code: &[Inst], target: &dyn Fn(usize) -> Option<usize>) -> Vec<Vec<usize>> {
    let barrier = |at: usize| code[at].get(Field::Barrier);
    let mut meetings: Vec<Vec<usize>> = vec![Vec::new(); code.len()];
    // The setter that last visited an instruction.
    let mut visited = vec![usize::MAX; code.len()];
    for setter in (0..code.len()).filter(|&at| name(&code[at]) == "BSSY") {
        let Some(meeting) = target(setter) else { continue };
        let mut work = vec![setter + 1];
        while let Some(at) = work.pop() {
            if at >= code.len() || std::mem::replace(&mut visited[at], setter) == setter {
                continue;
            }
            match name(&code[at]) {
                "BSSY" if barrier(at) == barrier(setter) => {}
                "BSYNC" if barrier(at) == barrier(setter) => {
                    if !meetings[at].contains(&meeting) {
                        meetings[at].push(meeting);
                    }
                }
                "EXIT" | "RET" | "BRX" | "BRXU" | "JMX" if is_unguarded(&code[at]) => {}
                "BRA" | "JMP" => {
                    work.extend(target(at));
                    if !is_unguarded(&code[at]) {
                        work.push(at + 1);
                    }
                }
                _ => work.push(at + 1),
            }
        }
    }
    meetings
}

/// For each `RET`, where it may lead: behind the calls from whose target control reaches it. What is called
/// elsewhere may return to all of them.
fn returns(code: &[Inst], target: &dyn Fn(usize) -> Option<usize>) -> Vec<Vec<usize>> {
    let mut returns: Vec<Vec<usize>> = vec![Vec::new(); code.len()];
    let calls = (0..code.len()).filter(|&at| name(&code[at]) == "CALL" && at + 1 < code.len());
    let mut callers: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for call in calls.clone() {
        if let Some(entry) = target(call) {
            callers.entry(entry).or_default().push(call + 1);
        }
    }
    for (&entry, behind) in &callers {
        let mut visited = vec![false; code.len()];
        let mut work = vec![entry];
        while let Some(at) = work.pop() {
            if at >= code.len() || std::mem::replace(&mut visited[at], true) {
                continue;
            }
            let ends = is_unguarded(&code[at]);
            match name(&code[at]) {
                "RET" => returns[at].extend(behind),
                "BRA" | "JMP" => work.extend(target(at)),
                "EXIT" | "BRX" | "BRXU" | "JMX" => {}
                _ => {
                    work.push(at + 1);
                    continue;
                }
            }
            if !ends {
                work.push(at + 1);
            }
        }
    }
    for (at, to) in returns.iter_mut().enumerate() {
        if name(&code[at]) == "RET" && to.is_empty() {
            *to = calls.clone().map(|call| call + 1).collect();
        }
    }
    returns
}

/// Acts in every thread that comes to it.
fn is_unguarded(inst: &Inst) -> bool {
    let always = |field, not| {
        inst.get(field).is_none_or(|p| p == PT) && inst.get(not).is_none_or(|negated| negated == 0)
    };
    always(Field::Guard, Field::GuardNot) && always(Field::Pp, Field::PpNot)
}

struct Checker<'a> {
    sm: Sm,
    code: &'a [Inst],
    facts: Vec<Facts>,
    found: Vec<Hazard>,
}

impl Checker<'_> {
    /// Control words that the hardware does not accept.
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
            if control.reuse != 0 && control.yield_ && inst.class(self.sm) != Class::Texture {
                report(Kind::IllegalReuse);
            }
        }
    }

    fn dependences(&mut self, flow: &Flow) {
        let mut entry: Vec<Option<State>> = vec![None; flow.starts.len()];
        // What holds where a block calls a subroutine.
        let mut calling: Vec<Option<State>> = vec![None; flow.starts.len()];
        let mut work = BTreeSet::new();
        if !self.code.is_empty() {
            entry[0] = Some(State::start());
            work.insert(0);
        }
        while let Some(block) = work.pop_first() {
            let Some(mut state) = entry[block].clone() else { continue };
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
                    // Only what the caller had in progress, and what the subroutine began, comes back.
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
                let worse = match &mut entry[next] {
                    Some(old) => old.unite(&state),
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
            // What no path is known to reach is checked by itself.
            let mut state = state.unwrap_or_else(State::start);
            for at in flow.range(block, self.code.len()) {
                self.step(at, &mut state, Some(&mut found));
            }
        }
        self.found = found;
    }

    /// Passes one instruction: what it endangers, what its wait ends, what it starts.
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
        if ends_group_products(inst) {
            state.pending.retain(|p| self.facts[p.at as usize].write_queue != Some(Queue::WarpGroup));
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
            let facts = &self.facts[at];
            let (writes, named) = (facts.write_marks, facts.read_marks | facts.write_marks);
            for p in &state.fixed {
                if p.mark() & named != 0 {
                    self.endangered(at, p, found);
                }
            }
            for p in &state.pending {
                if p.mark() & if p.access == Access::LateRead { writes } else { named } != 0 {
                    self.endangered(at, p, found);
                }
            }
        }
        self.start(at, state);
        // A zero lets the hardware pause for longer than this.
        let cycles = inst.control.stall.max(1);
        state.fixed.retain_mut(|p| {
            p.elapsed = p.elapsed.saturating_add(cycles);
            p.elapsed < p.enough
        });
        // Longer than a scoreboard takes to be seen.
        let seen = if inst.control.stall == 0 { SCOREBOARD_DELAY } else { cycles };
        for since in &mut state.since_set {
            // Beyond the delay time does not matter, and must not keep states apart.
            *since = since.saturating_add(seen).min(SCOREBOARD_DELAY);
        }
    }

    /// Reports what an instruction does to an access in progress.
    fn endangered(&self, at: usize, p: &InProgress, found: &mut Vec<Hazard>) {
        let (inst, facts) = (&self.code[at], &self.facts[at]);
        let (earlier, earlier_facts) = (&self.code[p.at as usize], &self.facts[p.at as usize]);
        let names = |r: &&RegUse| {
            r.file == p.file
                && (u16::from(r.index)..u16::from(r.index) + u16::from(r.count)).contains(&u16::from(p.index))
        };
        let mut report = |kind, needed: u8| {
            let in_time = needed != SCOREBOARD && p.elapsed >= needed;
            // Never both act in a thread where one is guarded by what the other's guard denies.
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
        let over = facts.writes.iter().find(names);
        if p.access == Access::LateRead {
            // What is written in the same queue is written later.
            if over.is_some() && !same(earlier_facts.read_queue, facts.read_queue) {
                report(Kind::WriteAfterRead, SCOREBOARD);
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

    /// Guards whose predicates are among the written registers tell nothing from now on.
    fn forget_guards(&self, state: &mut State, writes: &[RegUse]) {
        if !writes.iter().any(|w| matches!(w.file, RegFile::P | RegFile::UP)) {
            return;
        }
        let forgotten = |p: &InProgress| p.guard.is_some_and(|guard| guard.changes(writes));
        state.fixed.iter_mut().filter(|p| forgotten(p)).for_each(|p| p.guard = None);
        if state.pending.iter().any(forgotten) {
            // Of late reads that differed by their guards alone one is enough.
            let key = |p: &InProgress| (p.file, p.index, p.told_by, self.facts[p.at as usize].read_queue);
            let is_bare = |p: &&InProgress| p.guard.is_none() && p.access == Access::LateRead;
            let mut known: BTreeSet<_> = state.pending.iter().filter(is_bare).map(key).collect();
            state.pending.retain_mut(|p| {
                if !forgotten(p) {
                    return true;
                }
                p.guard = None;
                p.access != Access::LateRead || known.insert(key(p))
            });
        }
    }

    /// Adds what an instruction leaves in progress.
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
        // A barrier that holds the warp back at once goes through the queue of the memory accesses before it.
        if name(inst) == "BAR" && inst.get(Field::Flag) == Some(0) {
            state.pending.retain(|p| {
                let queue = self.facts[p.at as usize].read_queue;
                p.access != Access::LateRead || queue != Some(Queue::Memory)
            });
        }
        if write_sb | read_sb != 0 {
            for p in &mut state.pending {
                let earlier = &self.facts[p.at as usize];
                let tells = match p.access {
                    Access::VariableWrite if same(facts.write_queue, earlier.write_queue) => write_sb,
                    Access::LateRead if same(facts.read_queue, earlier.read_queue) => write_sb | read_sb,
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
        // The same instruction again, by a loop.
        state.fixed.retain(|p| p.at as usize != at);
        if !facts.variable {
            let writes = facts.writes.iter().enumerate();
            add(&mut state.fixed, at, guard, writes, Access::FixedWrite, |r| {
                (write_sb, latency::longest(self.sm, inst, r))
            });
        }
        if !facts.variable && !facts.late {
            return;
        }
        let told_by = write_sb | read_sb;
        // What was read before in the same queue ends no later by the same sign.
        state.pending.retain(|p| {
            let again = facts.late
                && p.access == Access::LateRead
                && p.told_by == told_by
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
            // An atomic tells of its predicate when it has read its sources, too.
            let atomic = inst.class(self.sm) == Class::Atomic;
            let writes = facts.writes.iter().enumerate();
            add(&mut state.pending, at, guard, writes, Access::VariableWrite, |r| match r.file {
                RegFile::P if atomic => (told_by, SCOREBOARD),
                _ => (write_sb, SCOREBOARD),
            });
        }
        if facts.late {
            // A result comes after its sources are read. Uniform registers are read at issue by everybody.
            let late = facts.reads.iter().enumerate().filter(|(_, r)| r.file == RegFile::R);
            add(&mut state.pending, at, guard, late, Access::LateRead, |_| (told_by, SCOREBOARD));
        }
    }
}

/// Adds the accesses of an instruction's numbered operands; `told` gives each one's scoreboards and cycles.
fn add<'r>(
    into: &mut Vec<InProgress>,
    at: usize,
    guard: Option<Guard>,
    operands: impl Iterator<Item = (usize, &'r RegUse)>,
    access: Access,
    told: impl Fn(&RegUse) -> (u8, u8),
) {
    for (operand, register) in operands {
        let (told_by, enough) = told(register);
        into.extend((0..register.count).map(|i| InProgress {
            file: register.file,
            index: register.index.saturating_add(i),
            access,
            at: at as u32,
            operand: operand as u8,
            told_by,
            behind: 0,
            guard,
            elapsed: 0,
            enough,
        }));
    }
}

fn name(inst: &Inst) -> &'static str {
    inst.form().mnemonic
}

/// The scoreboards that are at zero when an instruction issues, or, for a `DEPBAR`, when it is over.
pub fn waits(inst: &Inst) -> u8 {
    let mut mask = inst.control.wait;
    if name(inst) == "DEPBAR" {
        mask |= inst.get(Field::Imm3).unwrap_or(0) as u8;
        if let Some(s) = inst.get(Field::Scoreboard)
            && inst.get(Field::Imm2) == Some(0)
        {
            mask |= 1 << s;
        }
    }
    mask
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assemble::assemble;
    use crate::input::SrcId;
    use crate::mach::{Block, BlockId, Code, Effect, MachInst};
    use crate::sched::{Options, schedule};
    use proptest::prelude::*;
    use proptest::strategy::ValueTree;
    use proptest::test_runner::{Config, TestRunner};

    const SM: Sm = Sm(80);

    /// Instructions with stall count, yield, scoreboards and waits: `13Y w0 r1 w:01 TEXT`, in any order.
    fn code(lines: &[&str]) -> Vec<Inst> {
        lines
            .iter()
            .enumerate()
            .map(|(at, line)| {
                let (control, text) = line.split_once(": ").expect("control: text");
                let mut inst = parse(text, at as u64 * 16);
                inst.control.stall = 1;
                for field in control.split_ascii_whitespace() {
                    let number = |text: &str| text.parse::<u8>().expect("a number");
                    match field.split_at(1) {
                        ("s", n) => inst.control.stall = number(n),
                        ("y", n) => (inst.control.stall, inst.control.yield_) = (number(n), true),
                        ("w", n) => inst.control.write_sb = Some(number(n)),
                        ("r", n) => inst.control.read_sb = Some(number(n)),
                        ("?", n) => inst.control.wait = n.bytes().map(|b| 1 << (b - b'0')).sum(),
                        _ => panic!("{field}"),
                    }
                }
                inst
            })
            .collect()
    }

    fn parse(text: &str, address: u64) -> Inst {
        sass::parse(SM, text, address).unwrap_or_else(|e| panic!("{text}: {}", e.message))
    }

    fn findings(lines: &[&str]) -> Vec<String> {
        check(SM, &code(lines), &[]).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn fixed_latencies_need_their_cycles() {
        assert_eq!(
            findings(&["s4: MOV R0, 0x1", "s5: IADD3 R1, R0, R0, RZ", "s1: FADD R2, R1, R1"]),
            [""; 0]
        );
        assert_eq!(
            findings(&["s3: MOV R0, 0x1", "s4: IADD3 R1, R0, R0, RZ", "s1: FADD R2, R1, R1"]),
            [
                "0x0010: ReadAfterWrite of R0 after 0x0000, 3 of 4 cycles",
                "0x0020: ReadAfterWrite of R1 after 0x0010, 4 of 5 cycles"
            ]
        );
    }

    #[test]
    fn variable_latencies_need_their_scoreboard() {
        let load = "s2 w3: LDG.E R0, [R2.64]";
        assert_eq!(findings(&[load, "s1 ?3: FADD R1, R0, R0"]), [""; 0]);
        assert_eq!(
            findings(&[load, "s1 ?2: FADD R1, R0, R0"]),
            ["0x0010: ReadAfterWrite of R0 after 0x0000, no wait"]
        );
        assert_eq!(
            findings(&[load, "s1: MOV R0, 0x1"]),
            ["0x0010: WriteAfterWrite of R0 after 0x0000, no wait"]
        );
        assert_eq!(
            findings(&[load, "s1: MOV R2, 0x1"]),
            ["0x0010: WriteAfterRead of R2 after 0x0000, no wait"]
        );
        assert_eq!(findings(&["s2 w3 r1: LDG.E R0, [R2.64]", "s1 ?1: MOV R2, 0x1"]), [""; 0]);
        assert_eq!(
            findings(&["s1 w3: LDG.E R0, [R2.64]", "s1 ?3: FADD R1, R0, R0"]),
            ["0x0010: WaitTooEarly, 1 of 2 cycles"]
        );
        assert_eq!(findings(&["y0 w3: LDG.E R0, [R2.64]", "s1 ?3: FADD R1, R0, R0"]), [""; 0]);
    }

    #[test]
    fn every_path_counts() {
        // The short path skips the load's wait.
        let body = |wait: &str| {
            findings(&[
                "s2 w0: LDG.E R0, [R2.64]",
                "s5: @P0 BRA 0x30",
                wait,
                "s5: FADD R1, R1, R1",
                "s1: FADD R4, R0, R0",
            ])
        };
        assert_eq!(body("s5 ?0: FADD R1, R0, R0"), ["0x0040: ReadAfterWrite of R0 after 0x0000, no wait"]);
        // Around a loop.
        let looped = |stall: &str| findings(&[stall, "s5: @P0 BRA 0x0", "s5: EXIT"]);
        assert_eq!(looped("s4: IADD3 R0, R0, 0x1, RZ"), [""; 0]);
        assert_eq!(
            findings(&["s1: IMAD.WIDE.U32 R0, R0, R0, RZ", "s2: @P0 BRA 0x0", "s5: EXIT"]),
            ["0x0000: ReadAfterWrite of R0 after 0x0000, 3 of 6 cycles"]
        );
    }

    #[test]
    fn control_words_must_be_legal() {
        let kinds = |lines: &[&str]| check(SM, &code(lines), &[]).iter().map(|h| h.kind).collect::<Vec<_>>();
        assert_eq!(kinds(&["s12: NOP", "s0: NOP", "y0: NOP", "y12: NOP"]), [Kind::IllegalStall; 2]);
        assert_eq!(kinds(&["s5 w0: EXIT"]), [Kind::IllegalScoreboard]);
        let mut reuse = code(&["y5: FADD R0, R1, R2"]);
        reuse[0].control.reuse = 1;
        assert_eq!(check(SM, &reuse, &[])[0].kind, Kind::IllegalReuse);
    }

    /// Templates of instructions; letters stand for registers.
    const TEMPLATES: &[&str] = &[
        "IADD3 a, b, c, RZ",
        "@P0 IADD3 a, b, c, RZ",
        "FFMA a, b, c, a",
        "IMAD.WIDE.U32 A, b, c, B",
        "ISETP.LT.AND P0, PT, a, b, PT",
        "FADD a, b, c",
        "MUFU.RCP a, b",
        "LDG.E a, [B.64]",
        "LDG.E.64 A, [B.64]",
        "STG.E [A.64], b",
        "DADD A, B, C",
        "HADD2 a, b, c",
        "S2R a, SR_TID.X",
        "CS2R A, SRZ",
    ];

    fn instantiate(template: &str, registers: [u8; 3]) -> MachInst {
        let mut text = String::new();
        for (i, word) in template.split_inclusive([' ', ',', '[', '.', ']']).enumerate() {
            let (name, rest) =
                word.split_at(word.len() - usize::from(!word.ends_with(|c: char| c.is_alphanumeric())));
            let register = |i: usize| registers[i] % 12;
            match name {
                "a" | "b" | "c" if i > 0 => {
                    text += &format!("R{}", register(usize::from(name.as_bytes()[0] - b'a')))
                }
                "A" | "B" | "C" if i > 0 => {
                    text += &format!("R{}", register(usize::from(name.as_bytes()[0] - b'A')) & !1)
                }
                _ => text += name,
            }
            text += rest;
        }
        MachInst { inst: parse(&text, 0), src: Some(SrcId(0)), target: None, effect: Effect::None }
    }

    /// A program of up to six blocks with random branches between them, not scheduled.
    fn program() -> impl Strategy<Value = Code> {
        let inst = (0..TEMPLATES.len(), any::<[u8; 3]>()).prop_map(|(t, r)| instantiate(TEMPLATES[t], r));
        let block = (prop::collection::vec(inst, 0..12), prop::option::of((0u32..6, any::<bool>())));
        prop::collection::vec(block, 1..6).prop_map(|blocks| {
            let count = blocks.len() as u32;
            let branch = |text: &str, target: Option<BlockId>| MachInst {
                inst: parse(text, 0),
                src: Some(SrcId(0)),
                target,
                effect: Effect::Control,
            };
            let blocks = blocks
                .into_iter()
                .enumerate()
                .map(|(b, (mut insts, leave))| {
                    let next = BlockId(b as u32 + 1);
                    let mut successors = smallvec::SmallVec::new();
                    if next.0 == count {
                        insts.push(branch("EXIT", None));
                    } else if let Some((to, always)) = leave {
                        let to = BlockId(to % count);
                        insts.push(branch(if always { "BRA 0x0" } else { "@P0 BRA 0x0" }, Some(to)));
                        successors.push(to);
                        if !always {
                            successors.push(next);
                        }
                    } else {
                        successors.push(next);
                    }
                    Block { insts, successors }
                })
                .collect();
            Code { sm: SM, blocks, facts: Default::default(), frame: Default::default() }
        })
    }

    fn scheduled(mut code: Code) -> Vec<Inst> {
        schedule(&mut code, Options { reorder: true }, &|| ());
        let assembled = assemble(&code).expect("assembles");
        assembled.code.iter().map(|&word| sass::decode(SM, word).expect("decodes")).collect()
    }

    proptest! {
        #[test]
        fn what_the_scheduler_makes_has_no_hazards(code in program()) {
            prop_assert_eq!(check(SM, &scheduled(code), &[]), []);
        }
    }

    /// Takes away one thing at a time from scheduled programs. Not everything is needed (a branch stalls for
    /// itself), so some changes are harmless; the share that is found must not fall.
    #[test]
    fn what_is_taken_away_is_found() {
        let mut runner = TestRunner::new_with_rng(
            Config::default(),
            proptest::test_runner::TestRng::deterministic_rng(proptest::test_runner::RngAlgorithm::ChaCha),
        );
        let (mut stalls, mut waits, mut scoreboards) = ((0, 0), (0, 0), (0, 0));
        for _ in 0..60 {
            let insts = scheduled(program().new_tree(&mut runner).expect("a program").current());
            let caught = |change: &dyn Fn(&mut Inst), at: usize, tally: &mut (u32, u32)| {
                let mut changed = insts.clone();
                change(&mut changed[at]);
                tally.1 += 1;
                tally.0 += u32::from(!check(SM, &changed, &[]).is_empty());
            };
            for (at, inst) in insts.iter().enumerate() {
                let control = inst.control;
                if control.stall > 2 && inst.form().mnemonic != "BRA" && inst.form().mnemonic != "EXIT" {
                    let shorter = |inst: &mut Inst| {
                        inst.control.stall -= 1;
                        inst.control.yield_ = inst.control.stall >= 12;
                    };
                    caught(&shorter, at, &mut stalls);
                }
                for s in (0..6).filter(|s| control.wait >> s & 1 == 1) {
                    caught(&|inst| inst.control.wait &= !(1 << s), at, &mut waits);
                }
                if let Some(s) = control.write_sb {
                    caught(&|inst| inst.control.write_sb = Some((s + 1) % 6), at, &mut scoreboards);
                }
            }
        }
        let percent = |(caught, all): (u32, u32)| caught * 100 / all.max(1);
        let found = format!(
            "stalls {}, waits {}, scoreboards {}",
            percent(stalls),
            percent(waits),
            percent(scoreboards)
        );
        expect_test::expect!["stalls 99, waits 82, scoreboards 61"].assert_eq(&found);
    }
}
