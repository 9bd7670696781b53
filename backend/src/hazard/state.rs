//! The accesses in progress at a point of the code, and how they are united where paths join.

use super::SCOREBOARD_DELAY;
use sass::latency::Spaced;
use sass::{Field, Inst, RegFile, RegUse};
use smallvec::SmallVec;

/// The predicate that always holds.
pub(super) const PT: u64 = 7;

/// A pending access to a register.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum PendingAccess {
    /// A write after a fixed latency.
    FixedWrite,
    /// A write after a variable latency.
    VariableWrite,
    /// A read after a fixed latency.
    FixedRead,
    /// A read after a variable latency.
    LateRead,
}

impl PendingAccess {
    /// Whether the access is a read, so that only writers must wait for it.
    pub(super) fn reads(self) -> bool {
        matches!(self, PendingAccess::FixedRead | PendingAccess::LateRead)
    }
}

/// The guard predicate of an instruction.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Guard {
    pub(super) file: RegFile,
    pub(super) index: u8,
    not: bool,
}

impl Guard {
    /// `None` for instructions without a guard.
    pub(super) fn of(inst: &Inst) -> Option<Guard> {
        let index = inst.get(Field::Guard)?;
        let not = inst.get(Field::GuardNot) == Some(1);
        let file = inst.form().guard;
        (index != PT || not).then_some(Guard { file, index: index as u8, not })
    }

    /// Whether one of the registers is the guard's predicate.
    pub(super) fn changes(self, writes: &[RegUse]) -> bool {
        writes.iter().any(|w| w.file == self.file && w.index <= self.index && self.index - w.index < w.count)
    }

    /// Whether the two guards are never both true.
    pub(super) fn excludes(self, other: Guard) -> bool {
        other == Guard { not: !self.not, ..self }
    }
}

/// One register that an earlier instruction still accesses.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct InProgress {
    pub(super) file: RegFile,
    pub(super) index: u8,
    pub(super) access: PendingAccess,
    /// The instruction, and the number of its operand.
    pub(super) at: u32,
    pub(super) operand: u8,
    /// The scoreboards that signal the completion of the access: if any of them is zero, the access is complete.
    pub(super) told_by: u8,
    /// The number of instructions of its queue that have set one of these scoreboards since the instruction that
    /// signals.
    pub(super) behind: u8,
    /// The guard of the access, as long as its predicate keeps its value; `None` if it cannot distinguish the access
    /// from others.
    pub(super) guard: Option<Guard>,
    /// A late read of the memory unit, which reads its sources in the order of issue.
    pub(super) is_of_memory: bool,
    /// For accesses of fixed latency: the cycles since issue, and the number of cycles that is enough for every reader
    /// and writer.
    pub(super) elapsed: u8,
    pub(super) enough: u8,
}

impl InProgress {
    pub(super) fn key(&self) -> (RegFile, u8, PendingAccess, u32, u8) {
        (self.file, self.index, self.access, self.at, self.operand)
    }

    pub(super) fn mark(&self) -> u64 {
        mark(self.file, self.index)
    }

    /// Whether this access is always complete when the other one is: every present and later event that completes the
    /// other one also completes this one.
    fn ends_with(&self, other: &InProgress) -> bool {
        (self.file, self.index, self.access) == (other.file, other.index, other.access)
            && self.is_of_memory
            && other.is_of_memory
            && self.told_by & other.told_by == other.told_by
            && (other.guard.is_none() || self.guard == other.guard)
    }
}

/// One bit for a register. Several registers may share a bit, so it can only prove that a register is absent.
fn mark(file: RegFile, index: u8) -> u64 {
    1 << ((u32::from(index) + 11 * file as u32) % 64)
}

pub(super) fn marks(registers: &[RegUse]) -> u64 {
    let each = registers.iter().flat_map(|r| (0..r.count).map(|i| mark(r.file, r.index.saturating_add(i))));
    each.fold(0, |all, mark| all | mark)
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct State {
    /// Accesses that end by time, and accesses that only scoreboards end. Sorted by [`InProgress::key`] between blocks.
    pub(super) fixed: Vec<InProgress>,
    pub(super) pending: Vec<InProgress>,
    /// The number of cycles since each scoreboard was last set.
    pub(super) since_set: [u8; 6],
    /// The number of cycles that must pass before the next instruction of each [`Spaced`] kind.
    pub(super) before: [u8; Spaced::ALL.len()],
}

impl State {
    pub(super) fn start() -> State {
        State {
            fixed: Vec::new(),
            pending: Vec::new(),
            since_set: [SCOREBOARD_DELAY; 6],
            before: [0; Spaced::ALL.len()],
        }
    }

    pub(super) fn sort(&mut self) {
        self.fixed.sort_unstable_by_key(InProgress::key);
        self.pending.sort_unstable_by_key(InProgress::key);
    }

    /// Unites with another state. Returns whether this state became stricter. `shortens`: drop accesses that are
    /// complete whenever another one is.
    pub(super) fn unite(&mut self, other: &State, shortens: bool) -> bool {
        let mut changed = false;
        for (mine, theirs) in self.before.iter_mut().zip(other.before) {
            changed |= theirs > *mine;
            *mine = theirs.max(*mine);
        }
        for (mine, theirs) in self.since_set.iter_mut().zip(other.since_set) {
            changed |= theirs < *mine;
            *mine = theirs.min(*mine);
        }
        changed |= unite(&mut self.fixed, &other.fixed, false);
        changed | unite(&mut self.pending, &other.pending, shortens)
    }
}

/// Unites two sorted lists of accesses: the minimum of the cycles, and the scoreboards that signal on both paths.
fn unite(into: &mut Vec<InProgress>, from: &[InProgress], shortens: bool) -> bool {
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
            Err(i) if shortens && new.is_of_memory => {
                let alike = |p: &InProgress| (p.file, p.index, p.access) == (new.file, new.index, new.access);
                let first = into[..i].iter().rposition(|p| !alike(p)).map_or(0, |before| before + 1);
                let end = i + into[i..].iter().take_while(|p| alike(p)).count();
                if into[first..end].iter().any(|old| new.ends_with(old)) {
                    continue;
                }
                let mut kept: SmallVec<[InProgress; 4]> =
                    into[first..end].iter().copied().filter(|old| !old.ends_with(new)).collect();
                kept.insert(kept.partition_point(|old| old.key() < new.key()), *new);
                into.splice(first..end, kept);
                changed = true;
            }
            Err(i) => {
                into.insert(i, *new);
                changed = true;
            }
        }
    }
    changed
}

/// Adds the accesses of an instruction's numbered operands; `told` gives the scoreboards and cycles of each.
pub(super) fn add<'r>(
    into: &mut Vec<InProgress>,
    at: usize,
    guard: Option<Guard>,
    operands: impl Iterator<Item = (usize, &'r RegUse)>,
    access: PendingAccess,
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
            is_of_memory: false,
            elapsed: 0,
            enough,
        }));
    }
}
