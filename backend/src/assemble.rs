//! Assembly: encodes scheduled machine code as words, with the facts about the words that the object file contains.
//!
//! Places the blocks one after the other, resolves branch targets, and ends the section as the hardware requires: a
//! branch to itself, then `NOP`s up to a multiple of 128 bytes.

use crate::CodegenError;
use crate::driver::DriverFunction;
use crate::input::SrcId;
use crate::layout;
use crate::mach::{Block, BlockId, Code, Effect, Link, MachInst, RegisterSet};
use crate::sched::sweep::Sweep;
use sass::{Field, Inst, RegFile, RegUse, Role, Sm};
use smallvec::SmallVec;

/// Bytes of an instruction.
const WORD: u32 = 16;

/// The section's size is a multiple of this many instructions (128 bytes).
const PADDING: usize = 8;

/// The mask register of a warp-synchronous instruction whose mask is a constant.
const CONSTANT_MASK: u32 = u32::MAX;

/// The words of a function and facts about them. Slices have one element per word.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Assembled {
    pub code: Box<[u128]>,
    /// The statement of each word; `None` for instructions that belong to no statement.
    pub lines: Box<[Option<SrcId>]>,
    /// Whether each word is a load or store of a spilled value.
    pub spills: Box<[bool]>,
    /// The number of general registers that are live before each instruction.
    pub live_registers: Box<[u16]>,
    /// Byte offsets of every `EXIT`.
    pub exits: Vec<u32>,
    /// Warp-synchronous instructions: byte offset and mask register.
    pub coop_groups: Vec<(u32, u32)>,
    pub uses_convergence_barriers: bool,
    /// Byte offsets of calls through addresses.
    pub system_calls: Vec<u32>,
    /// Instructions that are completed when the function is linked.
    pub links: Vec<CodeLink>,
    /// The target lists of indirect branches, in the order of the branches.
    pub tables: Vec<JumpTable>,
}

/// The target list of an indirect branch. The lists of a function follow one another in its constants.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JumpTable {
    /// The index of the branch instruction.
    pub branch: u32,
    /// The indices of the target instructions.
    pub targets: Vec<u32>,
}

impl JumpTable {
    /// The indices of the branch instruction and of the targets.
    pub fn indices(&self) -> (usize, Vec<usize>) {
        (self.branch as usize, self.targets.iter().map(|target| *target as usize).collect())
    }

    /// The size of the list in bytes.
    pub fn bytes(&self) -> u32 {
        self.targets.len() as u32 * TARGET_BYTES
    }
}

/// Bytes per target in a list.
const TARGET_BYTES: u32 = 4;

/// An instruction with a field that depends on the code that it is linked with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CodeLink {
    /// The index of the instruction in the function's code.
    pub at: u32,
    pub to: LinkTo,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LinkTo {
    /// A branch or call whose target is the start of a function.
    Function(u32),
    /// A call of a driver function. It occurs only in objects.
    Driver(DriverFunction),
    /// A branch whose target is an offset from the start of the section.
    Start,
    /// A call of a function of the program through its address. Nothing is filled in.
    Pointee,
    /// A move of the offset of this instruction from the start of the section.
    Place(u32),
    /// A move of one word of the address of this instruction.
    Return { place: u32, high: bool },
    /// A load from the function's target lists, at this offset from their start.
    Table(u32),
    /// An operand in the function's literals, at this offset from their start.
    Literal(u32),
    /// A move of the address of a symbol, or of the number that represents a function's address.
    Symbol(crate::ori::op::Link),
    /// A move of the size of an entry of a driver table, which the driver fills in.
    EntrySize(crate::ori::op::Descriptors),
    /// A move of the size of the `.const` variables of all objects. It occurs only in objects.
    ConstBytes,
    /// A move of the address of the words in which a block records its columns of tensor memory. It occurs only in
    /// objects.
    TensorWords,
}

/// Encodes scheduled code.
pub fn assemble(code: &Code) -> Result<Assembled, CodegenError> {
    let sm = code.sm;
    let starts = block_starts(code);
    let mut insts: Vec<(Inst, Option<SrcId>)> = Vec::with_capacity(starts.len() * 4);
    let mut links = Vec::new();
    let mut counter = 0;
    for made in code.blocks.iter().flat_map(|b| &b.insts) {
        let next = insts.len() as i64 + 1;
        let mut inst = made.inst;
        if matches!(crate::sched::facts::name(&inst), "LEPC") {
            counter = next as u32 - 1;
        }
        let to = match made.link {
            None => None,
            Some(Link::Function(function)) => Some(LinkTo::Function(function)),
            Some(Link::Driver(function)) => Some(LinkTo::Driver(function)),
            // True only if the function begins its section.
            Some(Link::Start) => {
                inst.set(Field::Target, (-next * i64::from(WORD)) as u64);
                Some(LinkTo::Start)
            }
            Some(Link::Pointee) => Some(LinkTo::Pointee),
            Some(Link::Block(block)) => {
                let place = starts[block.index()];
                inst.set(Field::Imm32, u64::from(place * WORD));
                Some(LinkTo::Place(place))
            }
            Some(Link::Return { block, high }) => Some(LinkTo::Return { place: starts[block.index()], high }),
            Some(Link::Table(id)) => Some(LinkTo::Table(table_start(code, id))),
            Some(Link::Symbol(symbol)) => Some(LinkTo::Symbol(symbol)),
            Some(Link::EntrySize(table)) => Some(LinkTo::EntrySize(table)),
            Some(Link::ConstBytes) => Some(LinkTo::ConstBytes),
            Some(Link::TensorWords) => Some(LinkTo::TensorWords),
            Some(Link::Distance(block)) => {
                let distance = starts[block.index()].wrapping_sub(counter).wrapping_mul(WORD);
                inst.set(Field::Imm32, distance.into());
                None
            }
        };
        let to = to.or_else(|| literal(&mut inst));
        links.extend(to.map(|to| CodeLink { at: next as u32 - 1, to }));
        if matches!(to, Some(LinkTo::Function(_))) && inst.form().name == "CALL.REL" {
            // The target is in no block of this function.
            inst.set(Field::Target, (-(next + 1) * i64::from(WORD)) as u64);
        }
        if let Some(target) = made.target {
            let behind = meeting_place(&code.blocks[target.index()], &inst);
            let distance = (i64::from(starts[target.index()] + behind) - next) * i64::from(WORD);
            inst.set(Field::Target, distance as u64);
        }
        insts.push((inst, made.src));
    }
    let mut live = live_registers(code);
    close(sm, &mut insts);
    live.resize(insts.len(), 0);
    let mut assembled = Assembled {
        code: Box::default(),
        lines: insts.iter().map(|(_, src)| *src).collect(),
        spills: spills(code, insts.len()),
        live_registers: live.into_boxed_slice(),
        exits: Vec::new(),
        coop_groups: Vec::new(),
        uses_convergence_barriers: false,
        system_calls: Vec::new(),
        links,
        tables: Vec::new(),
    };
    let mut words = Vec::with_capacity(insts.len());
    for (at, (inst, src)) in insts.iter().enumerate() {
        let offset = at as u32 * WORD;
        match crate::sched::facts::name(inst) {
            "EXIT" => assembled.exits.push(offset),
            "SHFL" | "VOTE" | "VOTEU" | "MATCH" | "REDUX" => {
                assembled.coop_groups.push((offset, CONSTANT_MASK))
            }
            "CALL" => {
                assembled.uses_convergence_barriers = true;
                let is_linked = assembled.links.binary_search_by_key(&(at as u32), |link| link.at).is_ok();
                if inst.form().name == "CALL.ABS" && !is_linked {
                    assembled.system_calls.push(offset);
                }
            }
            "BRX" => {
                assembled.uses_convergence_barriers = true;
                if let Some(table) = code.tables.get(assembled.tables.len()) {
                    let targets = table.targets.iter().map(|target| starts[target.index()]).collect();
                    assembled.tables.push(JumpTable { branch: at as u32, targets });
                }
            }
            "BSSY" => assembled.uses_convergence_barriers = true,
            _ => {}
        }
        words.push(sass::encode(sm, inst).map_err(|error| {
            let form = inst.form();
            CodegenError::internal(
                src.unwrap_or_default(),
                "assemble",
                format!("{} {:?}: {error}", form.mnemonic, form.shape),
            )
        })?);
    }
    assembled.code = words.into_boxed_slice();
    Ok(assembled)
}

/// The link of an operand in [`layout::LITERALS`], which becomes an operand in the bank that contains the literals.
fn literal(inst: &mut Inst) -> Option<LinkTo> {
    if inst.get(Field::CBank) != Some(layout::LITERALS.into()) {
        return None;
    }
    inst.set(Field::CBank, layout::FUNCTION_BANK.into());
    Some(LinkTo::Literal(inst.get(Field::COffset)? as u32))
}

/// The offset of a target list among those of the function, in bytes.
fn table_start(code: &Code, id: crate::ori::op::JumpTable) -> u32 {
    let before = code.tables.iter().take_while(|table| table.id != id);
    before.map(|table| table.targets.len() as u32 * TARGET_BYTES).sum()
}

/// The number of instructions of a block up to and including the `BSYNC` that belongs to a `BSSY`. The `BSSY` targets
/// the instruction after it; other branches target the first instruction of the block.
fn meeting_place(block: &Block, inst: &Inst) -> u32 {
    let name = crate::sched::facts::name;
    if name(inst) != "BSSY" {
        return 0;
    }
    let barrier = inst.get(Field::Barrier);
    let meets = |made: &MachInst| name(&made.inst) == "BSYNC" && made.inst.get(Field::Barrier) == barrier;
    block.insts.iter().position(meets).map_or(0, |at| at as u32 + 1)
}

/// For each instruction, whether it loads or stores a spilled value.
fn spills(code: &Code, count: usize) -> Box<[bool]> {
    let is_spill = |made: &MachInst| matches!(made.effect, Effect::Memory(access) if access.slot);
    let mut spills: Vec<bool> = code.blocks.iter().flat_map(|b| &b.insts).map(is_spill).collect();
    spills.resize(count, false);
    spills.into_boxed_slice()
}

/// The index of each block's first instruction.
fn block_starts(code: &Code) -> Vec<u32> {
    let mut next = 0;
    code.blocks
        .iter()
        .map(|block| {
            let start = next;
            next += block.insts.len() as u32;
            start
        })
        .collect()
}

/// The number of instructions before the end of the section.
pub fn used(sm: Sm, code: &[u128]) -> usize {
    let is_nop =
        |word: &u128| sass::decode(sm, *word).is_some_and(|inst| crate::sched::facts::name(&inst) == "NOP");
    // The last instruction that is not a `NOP` is the branch to itself.
    code.iter().rposition(|word| !is_nop(word)).unwrap_or(0)
}

/// Appends the end of the section.
pub(crate) fn close(sm: Sm, insts: &mut Vec<(Inst, Option<SrcId>)>) {
    let add = |mnemonic: &str, insts: &mut Vec<(Inst, Option<SrcId>)>| {
        let form = sass::lookup(sm, mnemonic, "").expect("every generation has the form");
        let mut inst = Inst::new(form);
        inst.control.stall = 0;
        inst.control.yield_ = true;
        if mnemonic == "BRA" {
            inst.set(Field::Target, i64::from(WORD).wrapping_neg() as u64);
        }
        insts.push((inst, None));
    };
    add("BRA", insts);
    while !insts.len().is_multiple_of(PADDING) {
        add("NOP", insts);
    }
}

/// The registers of an instruction, as liveness sees them.
struct Uses {
    reads: SmallVec<[RegUse; 6]>,
    /// The registers that are certainly overwritten. A guarded write may keep the old value, so it does not count.
    overwrites: SmallVec<[RegUse; 2]>,
}

impl Uses {
    fn of(sm: Sm, inst: &Inst) -> Uses {
        const PT: u64 = 7;
        let always = inst.get(Field::Guard) == Some(PT);
        let mut uses = Uses { reads: SmallVec::new(), overwrites: SmallVec::new() };
        inst.uses(sm).for_each(|used| match used.role {
            Role::Dst if always => uses.overwrites.push(used),
            Role::Dst => {}
            _ => uses.reads.push(used),
        });
        uses
    }

    fn pass_backwards(&self, live: &mut RegisterSet) {
        self.overwrites.iter().for_each(|w| live.remove(w));
        self.reads.iter().for_each(|r| live.insert(r));
    }
}

/// For each instruction in layout order, the number of general registers that hold a value which is read later.
fn live_registers(code: &Code) -> Vec<u16> {
    let uses: Vec<Vec<Uses>> =
        code.blocks.iter().map(|b| b.insts.iter().map(|i| Uses::of(code.sm, &i.inst)).collect()).collect();
    // Per block: the registers that are live at its start if none is live at its end, and the registers that it does
    // not overwrite.
    let summaries: Vec<(RegisterSet, RegisterSet)> = uses
        .iter()
        .map(|block| {
            let (mut needed, mut kept) = (RegisterSet::default(), RegisterSet::full());
            for uses in block.iter().rev() {
                uses.pass_backwards(&mut needed);
                uses.overwrites.iter().for_each(|w| kept.remove(w));
            }
            (needed, kept)
        })
        .collect();
    let mut entry: Vec<RegisterSet> = summaries.iter().map(|(needed, _)| *needed).collect();
    let exit = |entry: &[RegisterSet], b: usize| {
        let mut live = RegisterSet::default();
        for &BlockId(s) in &code.blocks[b].successors {
            if let Some(next) = entry.get(s as usize) {
                live.unite(next);
            }
        }
        live
    };
    let predecessors = code.predecessors();
    // From the last block to the first.
    let last = code.blocks.len().saturating_sub(1);
    let mut sweep = Sweep::over(0..code.blocks.len());
    while let Some(place) = sweep.pop() {
        let b = last - place;
        let mut live = exit(&entry, b);
        live.intersect(&summaries[b].1);
        if entry[b].unite(&live) {
            predecessors[b].iter().for_each(|p| sweep.mark(last - p.index()));
        }
    }
    let mut counts = Vec::new();
    for (b, block) in uses.iter().enumerate() {
        let mut live = exit(&entry, b);
        let start = counts.len();
        for uses in block.iter().rev() {
            uses.pass_backwards(&mut live);
            counts.push(live.count(RegFile::R) as u16);
        }
        counts[start..].reverse();
    }
    counts
}
