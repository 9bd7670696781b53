//! Assembly: scheduled machine code to words, with what the object file must know about them.
//!
//! Lays the blocks out one behind the other, resolves branch targets, and ends the section as the hardware
//! wants it: a branch to itself, then `NOP`s up to a multiple of 128 bytes.

use crate::CodegenError;
use crate::input::SrcId;
use crate::mach::{Block, BlockId, Code, MachInst, RegisterSet};
use sass::{Field, Inst, RegFile, Sm};

/// Bytes of an instruction.
const WORD: u32 = 16;

/// The section's size is a multiple of this many instructions (128 bytes).
const PADDING: usize = 8;

/// The mask of a warp-synchronous instruction whose participants are known when compiling.
const CONSTANT_MASK: u32 = u32::MAX;

/// A function's words and facts about them, parallel to one another where they are slices.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Assembled {
    pub code: Box<[u128]>,
    /// `None` for what no statement asked for.
    pub lines: Box<[Option<SrcId>]>,
    /// General registers live before each instruction.
    pub live_registers: Box<[u16]>,
    /// Highest general register named, plus one.
    pub registers: u32,
    /// Byte offsets of every `EXIT`.
    pub exits: Vec<u32>,
    /// Warp-synchronous instructions: byte offset and mask register.
    pub coop_groups: Vec<(u32, u32)>,
    pub uses_convergence_barriers: bool,
}

/// Encodes scheduled code.
pub fn assemble(code: &Code) -> Result<Assembled, CodegenError> {
    let sm = code.sm;
    let starts = block_starts(code);
    let mut insts: Vec<(Inst, Option<SrcId>)> = Vec::with_capacity(starts.len() * 4);
    for made in code.blocks.iter().flat_map(|b| &b.insts) {
        let next = insts.len() as i64 + 1;
        let mut inst = made.inst;
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
        live_registers: live.into_boxed_slice(),
        registers: 0,
        exits: Vec::new(),
        coop_groups: Vec::new(),
        uses_convergence_barriers: false,
    };
    let mut words = Vec::with_capacity(insts.len());
    for (at, (inst, src)) in insts.iter().enumerate() {
        let offset = at as u32 * WORD;
        match crate::sched::facts::name(inst) {
            "EXIT" => assembled.exits.push(offset),
            "SHFL" | "VOTE" | "VOTEU" | "MATCH" | "REDUX" => {
                assembled.coop_groups.push((offset, CONSTANT_MASK))
            }
            "BSSY" | "CALL" | "BRX" => assembled.uses_convergence_barriers = true,
            _ => {}
        }
        let named = inst.reads(sm).chain(inst.writes(sm)).filter(|r| r.file == RegFile::R);
        let highest = named.map(|r| u32::from(r.index) + u32::from(r.count)).max().unwrap_or(0);
        assembled.registers = assembled.registers.max(highest);
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

/// Instructions of a block up to and with the `BSYNC` at which the threads of a `BSSY` meet: it names what is
/// behind. Other branches lead to the block's first instruction.
fn meeting_place(block: &Block, inst: &Inst) -> u32 {
    let name = crate::sched::facts::name;
    if name(inst) != "BSSY" {
        return 0;
    }
    let barrier = inst.get(Field::Barrier);
    let meets = |made: &MachInst| name(&made.inst) == "BSYNC" && made.inst.get(Field::Barrier) == barrier;
    block.insts.iter().position(meets).map_or(0, |at| at as u32 + 1)
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

/// Ends the section.
fn close(sm: Sm, insts: &mut Vec<(Inst, Option<SrcId>)>) {
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

/// For each instruction in layout order, how many general registers hold a value before it that is read later.
fn live_registers(code: &Code) -> Vec<u16> {
    let sm = code.sm;
    let mut entry = vec![RegisterSet::default(); code.blocks.len()];
    let exit = |entry: &[RegisterSet], b: usize| {
        let mut live = RegisterSet::default();
        for &BlockId(s) in &code.blocks[b].successors {
            if let Some(next) = entry.get(s as usize) {
                live.unite(next);
            }
        }
        live
    };
    let mut again = true;
    while again {
        again = false;
        for b in (0..code.blocks.len()).rev() {
            let mut live = exit(&entry, b);
            code.blocks[b].insts.iter().rev().for_each(|inst| pass_backwards(sm, inst, &mut live));
            again |= entry[b].unite(&live);
        }
    }
    let mut counts = Vec::new();
    for b in 0..code.blocks.len() {
        let mut live = exit(&entry, b);
        let start = counts.len();
        for inst in code.blocks[b].insts.iter().rev() {
            pass_backwards(sm, inst, &mut live);
            counts.push(live.count(RegFile::R) as u16);
        }
        counts[start..].reverse();
    }
    counts
}

fn pass_backwards(sm: Sm, inst: &MachInst, live: &mut RegisterSet) {
    // A guarded write may leave the old value.
    const PT: u64 = 7;
    if inst.inst.get(Field::Guard) == Some(PT) {
        inst.inst.writes(sm).for_each(|w| live.remove(&w));
    }
    inst.inst.reads(sm).for_each(|r| live.insert(&r));
}
