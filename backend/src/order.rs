//! An independent check that machine code keeps the memory order of its PTX.
//!
//! It reads the input's statements and the decoded words, connected by the line map, and shares no rule with
//! [`crate::ori::alias`] and the schedulers. It checks these rules:
//!
//! - Every access, fence and barrier that PTX requires has its instructions, with the fences that its order needs
//!   around it.
//! - If the memory model keeps the order of two statements, their instructions within a machine block are in the same
//!   order, unless the code shows that the two access different bytes.
//! - An instruction stays after each fence that control passes before it, and before each fence that follows it.
//!
//! Loops that the compiler unrolled are unrolled in the input too ([`expand`]), so that each copy of a statement is a
//! statement.
//!
//! Statements are numbered in reverse postorder. Within one machine block, which no loop enters in the middle, the
//! numbers give the program order. If two sides of a branch were joined into one block, a walk distinguishes them where
//! this matters. Statements of a loop with several entries may have either order, because control may enter at either.

mod code;
mod distance;
mod expand;
mod program;

use crate::assemble::JumpTable;
use crate::copies::{Statements, Unrolled};
use crate::input::{Env, Function, SrcId};
use crate::layout::local_layout;
use crate::target::Target;
use code::{Code, Event, Part};
use distance::Addresses;
use program::{Program, Reach, Region, Statement, What};
use sass::{Field, Inst, Sm};
use std::cell::LazyCell;
use std::fmt;

/// A rule of PTX that the code violates.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    pub first: SrcId,
    /// The later statement, if the rule is about two.
    pub second: SrcId,
    pub what: &'static str,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "statement {}", self.first.0)?;
        if self.second != self.first {
            write!(f, " and statement {}", self.second.0)?;
        }
        write!(f, ": {}", self.what)
    }
}

/// The number of pairs that are examined for each instruction; further pairs are trusted, so that the time stays
/// linear.
const PAIRS: usize = 256;

/// The compiler's claims about its code, from which the check starts.
#[derive(Clone, Copy)]
pub struct Claims<'a> {
    /// The statement of each instruction, or the copy that unrolling made of it.
    pub lines: &'a [Option<SrcId>],
    /// The loops that were unrolled, in the order of unrolling.
    pub unrolled: &'a [Unrolled],
    /// Statements whose load the instructions of another statement execute: the other statement, and this one.
    pub joined: &'a [(SrcId, SrcId)],
    /// Whether each instruction loads or stores a spilled value. The check verifies that it accesses the frame above
    /// the variables.
    pub spills: &'a [bool],
    /// Statements or copies that control does not reach, or whose guard is never true.
    pub never: &'a [SrcId],
    /// The targets of indirect branches.
    pub tables: &'a [JumpTable],
    /// All variables of the frame became values, so the frame has only spilled values. The check verifies that no
    /// statement accesses local memory.
    pub frame_is_gone: bool,
}

/// Checks one function.
///
/// # Errors
/// The first violation.
pub fn check(
    env: &Env,
    function: &Function,
    sm: Sm,
    insts: &[Inst],
    claims: Claims<'_>,
) -> Result<(), Violation> {
    let numbers = Statements::of(function);
    check_copies(env, function, numbers, sm, insts, claims).map_err(|violation| Violation {
        first: numbers.original(violation.first),
        second: numbers.original(violation.second),
        ..violation
    })
}

/// Like [`check`]; the violation may name copies.
fn check_copies(
    env: &Env,
    function: &Function,
    numbers: Statements,
    sm: Sm,
    insts: &[Inst],
    claims: Claims<'_>,
) -> Result<(), Violation> {
    let program = Program::new(env, function, numbers, claims.unrolled, claims.never)
        .map_err(|(src, what)| Violation { first: src, second: src, what })?;
    if program.statements.is_empty() {
        return Ok(());
    }
    let variables = if claims.frame_is_gone { 0 } else { local_layout(&function.locals).size };
    let code = Code::new(&program, sm, insts, &claims, variables)?;
    let mut checker = Checker {
        program: &program,
        code: &code,
        sm,
        clusters: Target::of_generation(sm).is_none_or(|target| target.clusters),
        insts,
        spills: claims.spills,
        frame_is_gone: claims.frame_is_gone,
        budget: PAIRS * insts.len(),
    };
    checker.presence()?;
    checker.blocks()?;
    checker.fences()
}

/// The instructions of one kind.
fn of(events: &[Event], part: Part) -> impl Iterator<Item = &Event> {
    events.iter().filter(move |event| event.part == part)
}

/// The `MEMBAR` of a fence, with at least the fence's scope.
fn has_membar<'a>(statement: &Statement, events: &'a [Event]) -> Result<&'a Event, &'static str> {
    of(events, Part::Membar).find(|event| event.reach >= statement.reach).ok_or("its MEMBAR is missing")
}

struct Checker<'a> {
    program: &'a Program,
    code: &'a Code,
    sm: Sm,
    /// The target has clusters, whose blocks access each other's shared memory and report errors to each other.
    clusters: bool,
    insts: &'a [Inst],
    spills: &'a [bool],
    frame_is_gone: bool,
    budget: usize,
}

/// The events that a machine block has emitted so far: ranks and indices among the block's events, sorted by rank.
#[derive(Default)]
struct Emitted(Vec<(u32, usize)>);

impl Emitted {
    /// Inserts an event. The place is near the end, because few instructions are exchanged.
    fn push(&mut self, place: usize, rank: u32) {
        let at = self.0.partition_point(|event| event.0 <= rank);
        self.0.insert(at, (rank, place));
    }

    /// The events of statements later than `rank`.
    fn later(&self, rank: u32) -> impl Iterator<Item = (u32, usize)> {
        self.0[self.0.partition_point(|event| event.0 <= rank)..].iter().copied()
    }
}

impl<'a> Checker<'a> {
    fn statement(&self, rank: u32) -> &'a Statement {
        &self.program.statements[rank as usize]
    }

    fn violation<T>(&self, first: u32, second: u32, what: &'static str) -> Result<T, Violation> {
        Err(Violation { first: self.statement(first).src, second: self.statement(second).src, what })
    }

    /// Checks that all required instructions exist, and that the fences of each statement are on the correct side of
    /// its access.
    fn presence(&self) -> Result<(), Violation> {
        for (rank, statement) in self.program.statements.iter().enumerate() {
            let rank = rank as u32;
            let events = self.code.of(rank);
            if self.program.gone.contains(&statement.src) || (events.is_empty() && !statement.must_stay()) {
                continue;
            }
            if self.frame_is_gone && statement.place == Region::Local && statement.is_access() {
                self.violation(rank, rank, "accesses a frame that the compiler reported as removed")?;
            }
            let present = match statement.what {
                What::Image | What::Other | What::Return => Ok(()),
                What::Call if of(events, Part::Call).next().is_none() => Err("its call is missing"),
                What::Call => Ok(()),
                // The fences of the statement alone do not implement it.
                What::Beside | What::Make if !events.iter().any(|e| e.part.does()) => {
                    Err("its operation is missing")
                }
                What::Beside | What::Make => Ok(()),
                What::Sync if of(events, Part::Barrier).next().is_none() => Err("its barrier is missing"),
                What::SyncWarp if events.is_empty() => Err("its barrier is missing"),
                What::Sync | What::SyncWarp => Ok(()),
                What::Alias => self.has_alias_fence(statement, events),
                What::Wait => self.has_wait(statement, events),
                What::Fence => self.has_fence(statement, events),
                What::Load | What::Store | What::Update | What::Copy => self.has_access(statement, events),
            };
            present.or_else(|what| self.violation(rank, rank, what))?;
        }
        Ok(())
    }

    fn has_wait(&self, statement: &Statement, events: &[Event]) -> Result<(), &'static str> {
        let Some(groups) = statement.groups else {
            return of(events, Part::Close).next().map(|_| ()).ok_or("its LDGDEPBAR is missing");
        };
        let leaves = |event: &Event| self.insts[event.at].get(Field::Imm2).unwrap_or(0) as i64;
        match of(events, Part::Await).any(|event| leaves(event) <= groups) {
            true => Ok(()),
            false => Err("its DEPBAR is missing or leaves too many groups"),
        }
    }

    fn has_fence(&self, statement: &Statement, events: &[Event]) -> Result<(), &'static str> {
        if !statement.releases && statement.reach > Reach::Block {
            return of(events, Part::Invalidate).next().map(|_| ()).ok_or("its CCTL is missing");
        }
        let fence = has_membar(statement, events)?;
        if statement.reach == Reach::Block {
            return Ok(());
        }
        if !self.has_error_barriers(events, |event| self.precedes(fence, event)) {
            return Err("no ERRBAR after its MEMBAR");
        }
        if statement.acquires { self.has_invalidation(fence, events) } else { Ok(()) }
    }

    fn has_alias_fence(&self, statement: &Statement, events: &[Event]) -> Result<(), &'static str> {
        let fence = has_membar(statement, events)?;
        self.has_invalidation(fence, events)
    }

    /// Whether an invalidation follows the fence, so that later loads do not read old contents of the first-level
    /// cache.
    fn has_invalidation(&self, fence: &Event, events: &[Event]) -> Result<(), &'static str> {
        match of(events, Part::Invalidate).any(|event| self.precedes(fence, event)) {
            true => Ok(()),
            false => Err("no CCTL after its MEMBAR"),
        }
    }

    fn has_access(&self, statement: &Statement, events: &[Event]) -> Result<(), &'static str> {
        // A compare-and-swap loop starts with a load.
        let own = match statement.what {
            What::Load => Part::Load,
            What::Copy => Part::Copy,
            _ => Part::Store,
        };
        let own_accesses =
            || events.iter().filter(move |event| event.part == own || event.part == Part::Update);
        let mut accesses = own_accesses();
        let Some(first) = accesses.next() else { return Err("its access is missing") };
        let last = accesses.next_back().unwrap_or(first);
        if statement.once && last.at != first.at {
            return Err("its access is repeated");
        }
        if statement.strong && statement.is_coherent() && first.reach < statement.reach {
            return Err("its access is weaker than the statement");
        }
        let beyond_block = statement.reach > Reach::Block;
        if statement.releases {
            let precedes = |event: &Event| self.precedes(event, first);
            if !of(events, Part::Membar).any(|event| event.reach >= statement.reach && precedes(event)) {
                return Err("no MEMBAR before its access");
            }
            if beyond_block && !self.has_error_barriers(events, precedes) {
                return Err("no ERRBAR before its access");
            }
        }
        // Without clusters, no other block can access shared memory.
        let invalidates =
            statement.acquires && beyond_block && (statement.place != Region::Shared || self.clusters);
        // A path with an access of its own, such as a loop for one kind of memory, reaches the same invalidation as the
        // others.
        let follows = |event: &Event| {
            self.precedes(first, event) && !own_accesses().any(|access| self.precedes(event, access))
        };
        if invalidates && !of(events, Part::Invalidate).any(follows) {
            return Err("no CCTL after its access");
        }
        Ok(())
    }

    /// Whether the number of error barriers is that of the target, and all are in the right place.
    fn has_error_barriers(&self, events: &[Event], is_in_place: impl Fn(&Event) -> bool) -> bool {
        let wanted = if self.clusters { 2 } else { 1 };
        of(events, Part::ErrorBarrier).count() >= wanted && of(events, Part::ErrorBarrier).all(is_in_place)
    }

    /// Whether control reaches the second event only through the first.
    fn precedes(&self, first: &Event, second: &Event) -> bool {
        if first.block == second.block {
            return first.at < second.at;
        }
        self.code.tree.dominates(first.block, second.block)
    }

    /// Checks the order within each machine block.
    fn blocks(&mut self) -> Result<(), Violation> {
        self.code.blocks().try_for_each(|events| self.block(events))
    }

    /// Whether the event only reads words of the system, which accesses of the program may overtake. It stays between
    /// fences.
    fn reads_system_words(&self, event: &Event) -> bool {
        event.part == Part::Load && self.statement(event.rank).what == What::Beside
    }

    /// Whether the event is a load of a weak statement. Two such loads may be exchanged, even if one statement also writes.
    fn loads_weakly(&self, event: &Event) -> bool {
        event.part == Part::Load && !self.statement(event.rank).strong
    }

    fn block(&mut self, events: &[Event]) -> Result<(), Violation> {
        let [mut all, mut hard, mut volatile]: [Emitted; 3] = Default::default();
        // By place: all events, and those that write or are strong.
        let mut places: [Emitted; 4] = Default::default();
        let mut orders: [Emitted; 4] = Default::default();
        let addresses = LazyCell::new(|| {
            let start = events.first().map_or(0, |first| self.code.block_start(first));
            Addresses::of(self.sm, self.insts, self.spills, start, events)
        });
        let mut budget = self.budget;
        for (place, event) in events.iter().enumerate() {
            let statement = self.statement(event.rank);
            let mut compare = |emitted: &Emitted| {
                emitted.later(event.rank).try_for_each(|(rank, later)| {
                    let Some(left) = budget.checked_sub(1) else { return Ok(()) };
                    budget = left;
                    let both_load = self.loads_weakly(event) && self.loads_weakly(&events[later]);
                    self.exchanged(event.rank, rank, || both_load || addresses.are_apart(later, place))
                })
            };
            let is_hard = statement.is_hard() && !self.reads_system_words(event);
            if is_hard || statement.acquires {
                compare(&all)?;
            } else {
                compare(&hard)?;
                if statement.volatile {
                    compare(&volatile)?;
                }
                let by_place = if statement.is_ordering() { &places } else { &orders };
                for (emitted, other) in by_place.iter().zip(Region::ALL) {
                    if statement.places().any(|place| other.overlaps(place)) {
                        compare(emitted)?;
                    }
                }
            }
            all.push(place, event.rank);
            if is_hard || statement.releases {
                hard.push(place, event.rank);
            }
            if statement.volatile {
                volatile.push(place, event.rank);
            }
            if statement.is_access() || statement.what == What::Image {
                for of in statement.places() {
                    places[of as usize].push(place, event.rank);
                    if statement.is_ordering() {
                        orders[of as usize].push(place, event.rank);
                    }
                }
            }
        }
        self.budget = budget;
        Ok(())
    }

    /// Checks an exchange: an instruction of the statement of rank `first` was emitted after one of the later statement
    /// `second`.
    fn exchanged(&self, first: u32, second: u32, are_apart: impl Fn() -> bool) -> Result<(), Violation> {
        let (a, b) = (self.statement(first), self.statement(second));
        let may = !a.keeps(b) && (!a.conflicts(b) || are_apart());
        if may || !self.program.orders(a, b) {
            return Ok(());
        }
        self.violation(first, second, "their instructions are in the wrong order")
    }

    /// Checks the order across machine blocks: control reaches each access through the fence before it, and each fence
    /// through the accesses before it. Only accesses in the same block of the input, or in blocks that lead only to it,
    /// are considered.
    fn fences(&self) -> Result<(), Violation> {
        // For each block of the input: the last fence on the way to its end, and the accesses since that fence.
        let mut ends: Vec<(Option<u32>, Vec<u32>)> = vec![(None, Vec::new()); self.program.blocks()];
        for block in self.program.preorder() {
            let (mut fence, mut since) =
                self.program.parent(block).map(|parent| ends[parent.index()].clone()).unwrap_or_default();
            for rank in self.program.ranks(block) {
                let statement = self.statement(rank);
                if statement.guarded || self.code.of(rank).is_empty() {
                    continue;
                }
                if let Some(fence) = fence {
                    self.comes_by(fence, rank, |_| true)?;
                }
                if statement.follows_all() {
                    let is_ordered = |event: &Event| !self.reads_system_words(event);
                    since.iter().try_for_each(|earlier| self.comes_by(*earlier, rank, is_ordered))?;
                    since.clear();
                }
                if statement.is_hard() || statement.acquires {
                    fence = Some(rank);
                }
                since.push(rank);
            }
            // If a block has many accesses, only some are compared.
            const KEPT: usize = 16;
            since.drain(..since.len().saturating_sub(KEPT));
            ends[block.index()] = (fence, since);
        }
        Ok(())
    }

    /// Checks that every ordered instruction of `second` is reached through one of `first`. If the instructions of
    /// `first` are in branches, or on some paths nothing reads what it loads, checks only that `second` does not come
    /// first.
    fn comes_by(
        &self,
        first: u32,
        second: u32,
        is_ordered: impl Fn(&Event) -> bool,
    ) -> Result<(), Violation> {
        let (earlier, later) = (self.code.of(first), self.code.of(second));
        let statement = self.statement(first);
        let called = of(earlier, Part::Call).next().is_some() && statement.what != What::Call;
        let is_optional = statement.what == What::Load && !statement.must_stay();
        let is_partial = called || statement.in_branches || is_optional;
        let reached = |event: &Event| match is_partial {
            true => !earlier.iter().any(|before| self.precedes(event, before)),
            false => earlier.iter().any(|before| self.precedes(before, event)),
        };
        if later.iter().filter(|event| is_ordered(event)).all(reached) {
            return Ok(());
        }
        self.violation(first, second, "the second's instruction can be reached without the first's")
    }
}
