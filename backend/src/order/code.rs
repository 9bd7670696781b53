//! The machine instructions that affect memory, by block and by statement.

use super::program::{Program, Reach, Statement, What, flow, switch};
use super::{Claims, Violation};
use crate::assemble;
use crate::hazard::is_unconditional;
use crate::input::SrcId;
use crate::ori::cfg::Cfg;
use crate::ori::dominators::{Tree, dominators};
use crate::ori::ir::{Block, BlockId};
use rustc_hash::FxHashMap;
use sass::{Class, Field, Inst, Sm};

/// The predicate that always holds.
const PT: u64 = 7;

/// Bytes of an instruction.
const WORD: u64 = 16;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Part {
    Load,
    Store,
    Update,
    Membar,
    ErrorBarrier,
    Invalidate,
    Copy,
    /// Ends a group of copies.
    Close,
    /// Waits for groups of copies.
    Await,
    /// A barrier of the block.
    Barrier,
    /// A barrier of the warp; one also precedes a barrier of the block.
    WarpBarrier,
    /// A call of a function.
    Call,
    /// An operation on an mbarrier object.
    Object,
    /// Affects memory in another way.
    Other,
}

impl Part {
    /// Whether it implements the statement, rather than being a fence for it.
    pub(super) fn does(self) -> bool {
        !matches!(self, Part::Membar | Part::ErrorBarrier | Part::Invalidate)
    }

    pub(super) fn is_access(self) -> bool {
        matches!(self, Part::Load | Part::Store | Part::Update | Part::Copy)
    }
}

/// A machine instruction that affects memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Event {
    /// The index of the instruction in the code.
    pub(super) at: usize,
    pub(super) block: BlockId,
    pub(super) rank: u32,
    pub(super) part: Part,
    /// The scope of the synchronization.
    pub(super) reach: Reach,
}

pub(super) struct Code {
    /// The events in code order.
    events: Vec<Event>,
    /// The events by rank and code order, and the start of each rank.
    by_rank: Vec<Event>,
    starts: Vec<u32>,
    /// The first instruction of each block.
    block_starts: Vec<usize>,
    pub(super) tree: Tree,
}

impl Code {
    pub(super) fn new(
        program: &Program,
        sm: Sm,
        insts: &[Inst],
        claims: &Claims<'_>,
        local_bytes: u64,
    ) -> Result<Code, Violation> {
        let starts = block_starts(insts, claims.tables);
        let mut joined: FxHashMap<SrcId, Vec<SrcId>> = FxHashMap::default();
        for (by, src) in claims.joined {
            joined.entry(*by).or_default().push(*src);
        }
        let mut events: Vec<Event> = Vec::new();
        let routines = insts.iter().enumerate().filter(|(_, inst)| name(inst) == "CALL");
        let routines = routines.filter_map(|(at, _)| target(insts, at)).min().unwrap_or(insts.len());
        let mut block = 0;
        for (at, (inst, line)) in insts.iter().zip(claims.lines).enumerate() {
            if starts.get(block + 1) == Some(&at) {
                block += 1;
            }
            let Some(mut part) = part(sm, inst) else { continue };
            // Calls inside the code go to the runtime library, which comes last in the code and does not access memory.
            if part == Part::Call
                && let Some(routine) = target(insts, at)
            {
                // A barrier in a routine belongs to the statement of the call.
                let code = insts[routine..].iter().take_while(|inst| name(inst) != "RET");
                match code.filter(|inst| name(inst) == "BAR").count() {
                    0 => continue,
                    _ => part = Part::Barrier,
                }
            }
            if at >= routines && line.is_none() && matches!(part, Part::Barrier | Part::WarpBarrier) {
                continue;
            }
            if claims.spills[at] {
                if !accesses_slot(inst, local_bytes) {
                    let src = line.unwrap_or_default();
                    return Err(Violation {
                        first: src,
                        second: src,
                        what: "a spill is not above the variables",
                    });
                }
                continue;
            }
            let Some(rank) = line.and_then(|src| program.rank(src)) else {
                if is_constant(inst) || awaits_registers(inst) {
                    continue;
                }
                let src = line.unwrap_or_default();
                return Err(Violation {
                    first: src,
                    second: src,
                    what: "an instruction that belongs to no statement",
                });
            };
            let statement = &program.statements[rank as usize];
            let belongs = has_part(statement, part);
            // A warp exchange waits for threads but does not order memory. Textures are also waited for with counted
            // waits.
            let exchanges = matches!(statement.what, What::Other | What::Load | What::Store | What::Update);
            let waits = (part == Part::WarpBarrier && exchanges)
                || (part == Part::Await && !matches!(statement.what, What::Wait | What::Beside | What::Make));
            // Only caller and callee know the parameters and results that a call passes in memory.
            let passes =
                (statement.may_call || matches!(statement.what, What::Call | What::Return)) && is_local(inst);
            // Threads may wait for errors before they end. Without a `ret`, the end belongs to the last statement, from
            // which control may not lead to it.
            let may_end = !belongs || statement.what == What::Other;
            let ends = may_end && part == Part::ErrorBarrier && precedes_exit(sm, &insts[at + 1..]);
            if waits || passes || ends {
                continue;
            }
            if !belongs {
                let src = statement.src;
                return Err(Violation {
                    first: src,
                    second: src,
                    what: "has an instruction of another kind",
                });
            }
            let event = Event { at, block: BlockId(block as u32), rank, part, reach: reach(inst) };
            events.push(event);
            if part == Part::Load {
                let more = joined.get(&statement.src).into_iter().flatten();
                let ranks = more.filter_map(|src| program.rank(*src));
                events.extend(ranks.map(|rank| Event { rank, ..event }));
            }
        }
        let mut by_rank = events.clone();
        by_rank.sort_by_key(|event| (event.rank, event.at));
        let count = program.statements.len() as u32;
        let first = |rank: u32| by_rank.partition_point(|event| event.rank < rank) as u32;
        let rank_starts = (0..=count).map(first).collect();
        let graph = flow(graph(insts, &starts, claims.tables));
        let tree = dominators(&Cfg::new(&graph), &graph);
        Ok(Code { events, by_rank, starts: rank_starts, block_starts: starts, tree })
    }

    /// The instructions of a statement in code order.
    pub(super) fn of(&self, rank: u32) -> &[Event] {
        &self.by_rank[self.starts[rank as usize] as usize..self.starts[rank as usize + 1] as usize]
    }

    /// The first instruction of an event's block.
    pub(super) fn block_start(&self, event: &Event) -> usize {
        self.block_starts[event.block.index()]
    }

    /// The instructions of each block.
    pub(super) fn blocks(&self) -> impl Iterator<Item = &[Event]> {
        self.events.chunk_by(|a, b| a.block == b.block)
    }
}

/// Whether an instruction accesses the thread's own memory.
fn is_local(inst: &Inst) -> bool {
    matches!(name(inst), "LDL" | "STL")
}

/// Whether an instruction accesses the stack frame from `bottom` on, where spilled values are.
fn accesses_slot(inst: &Inst, bottom: u64) -> bool {
    const STACK_POINTER: u64 = 1;
    is_local(inst)
        && inst.get(Field::Ra) == Some(STACK_POINTER)
        && inst.get(Field::Offset).is_some_and(|offset| (bottom..).contains(&offset) && offset < 1 << 23)
}

/// Whether the thread ends before it accesses memory again.
fn precedes_exit(sm: Sm, insts: &[Inst]) -> bool {
    let mut next = insts.iter().skip_while(|inst| {
        let part = part(sm, inst);
        part == Some(Part::ErrorBarrier)
            || (part.is_none() && !matches!(name(inst), "EXIT" | "BRA" | "RET" | "BRX"))
    });
    next.next().is_some_and(|inst| name(inst) == "EXIT")
}

/// Whether instructions of this kind belong to the statement.
fn has_part(statement: &Statement, part: Part) -> bool {
    let fence = matches!(part, Part::Membar | Part::ErrorBarrier);
    match statement.what {
        What::Load => part == Part::Load || (part == Part::Invalidate && statement.acquires),
        What::Store => part == Part::Store || (fence && statement.releases),
        // A compare-and-swap loop starts with a load.
        What::Update => {
            part.is_access()
                || (fence && statement.releases)
                || (part == Part::Invalidate && statement.acquires)
        }
        What::Copy => part == Part::Copy,
        What::Wait => matches!(part, Part::Close | Part::Await),
        What::Sync => matches!(part, Part::Barrier | Part::WarpBarrier),
        What::SyncWarp => part == Part::WarpBarrier,
        What::Fence | What::Alias => fence || part == Part::Invalidate,
        What::Image | What::Other => statement.addressed || !part.is_access(),
        What::Beside | What::Make => match part {
            Part::Copy | Part::Close => false,
            Part::Call => statement.may_call,
            _ => true,
        },
        What::Call | What::Return => true,
    }
}

fn name(inst: &Inst) -> &'static str {
    inst.form().mnemonic.split('.').next().unwrap_or("")
}

/// The effect of an instruction on memory.
fn part(sm: Sm, inst: &Inst) -> Option<Part> {
    if is_never(inst) {
        return None;
    }
    Some(match name(inst) {
        "LDSM" | "LDG" | "LD" | "LDS" | "LDL" => Part::Load,
        "STSM" | "STG" | "ST" | "STS" | "STL" => Part::Store,
        "LDGSTS" => Part::Copy,
        "LDGDEPBAR" => Part::Close,
        "DEPBAR" => Part::Await,
        "ATOM" | "ATOMG" | "RED" | "REDG" | "ATOMS" => Part::Update,
        "SYNCS" => Part::Object,
        "CALL" => Part::Call,
        "MEMBAR" => Part::Membar,
        "ERRBAR" | "CGAERRBAR" => Part::ErrorBarrier,
        "CCTL" if inst.text(Field::Op).is_none_or(|op| op == ".IVALL") => Part::Invalidate,
        "CCTL" => Part::Other,
        "BAR" => Part::Barrier,
        "WARPSYNC" => Part::WarpBarrier,
        "LDTM" => Part::Other,
        _ => match inst.class(sm) {
            Class::Store | Class::Atomic | Class::Async | Class::Sync => Part::Other,
            _ => return None,
        },
    })
}

/// Whether the guard is `@!PT`, so that the instruction has no effect.
fn is_never(inst: &Inst) -> bool {
    inst.get(Field::Guard) == Some(PT) && inst.get(Field::GuardNot) == Some(1)
}

/// A wait for `wgmma` products. Emission may place it before any instruction that needs their registers, so its
/// position does not depend on a statement.
fn awaits_registers(inst: &Inst) -> bool {
    inst.form().name == "WARPGROUP.DEPBAR"
}

fn is_constant(inst: &Inst) -> bool {
    inst.text(Field::Order).is_some_and(|order| order.starts_with(".CONSTANT"))
}

fn reach(inst: &Inst) -> Reach {
    let text = match name(inst) {
        "MEMBAR" => inst.text(Field::Scope),
        _ => inst.text(Field::Order).filter(|order| order.contains("STRONG") || order.contains("MMIO")),
    };
    match text {
        Some(text) if text.ends_with("SYS") => Reach::System,
        Some(text) if text.ends_with("GPU") => Reach::Device,
        Some(text) if text.ends_with("SM") || text.ends_with("CTA") => Reach::Block,
        _ => Reach::Thread,
    }
}

/// The target of a branch.
fn target(insts: &[Inst], at: usize) -> Option<usize> {
    // Functions are in other code; only routines of the runtime library are called with a relative address.
    if name(&insts[at]) == "RET" || insts[at].form().name == "CALL.ABS" {
        return None;
    }
    let address = insts[at].target(at as u64 * WORD)?;
    Some((address / WORD) as usize).filter(|to| *to < insts.len())
}

/// Whether control may leave the block after the instruction.
fn leaves(inst: &Inst) -> bool {
    matches!(name(inst), "BRA" | "BRX" | "BRXU" | "JMP" | "JMX" | "CALL" | "RET" | "EXIT")
}

fn block_starts(insts: &[Inst], tables: &[assemble::JumpTable]) -> Vec<usize> {
    let listed = tables.iter().flat_map(|table| &table.targets);
    let mut starts: Vec<usize> = std::iter::once(0).chain(listed.map(|to| *to as usize)).collect();
    for (at, inst) in insts.iter().enumerate() {
        starts.extend(target(insts, at));
        if leaves(inst) && at + 1 < insts.len() {
            starts.push(at + 1);
        }
    }
    starts.sort_unstable();
    starts.dedup();
    starts
}

fn graph(insts: &[Inst], starts: &[usize], tables: &[assemble::JumpTable]) -> Vec<Block> {
    let block_of = |at: usize| BlockId(starts.partition_point(|start| *start <= at) as u32 - 1);
    let term = |b: usize| {
        let end = starts.get(b + 1).copied().unwrap_or(insts.len());
        let last = &insts[end - 1];
        let mut targets: Vec<BlockId> = Vec::new();
        if leaves(last) {
            targets.extend(target(insts, end - 1).map(block_of));
            let table = tables.iter().find(|table| table.branch as usize == end - 1);
            targets
                .extend(table.into_iter().flat_map(|table| &table.targets).map(|to| block_of(*to as usize)));
        }
        if end < insts.len() && !(leaves(last) && is_unconditional(last) && name(last) != "CALL") {
            targets.push(block_of(end));
        }
        switch(targets)
    };
    (0..starts.len()).map(|b| Block { term: term(b), ..Block::default() }).collect()
}
