//! Machine code between emission and encoding: blocks of [`sass::Inst`], targets still names of blocks.
//!
//! Emission makes it from allocated Ori, the scheduler orders it and fills in the control fields, assembly
//! lays it out and encodes it.
//!
//! Invariants: blocks are in layout order; an instruction that may leave its block is its last one; control
//! falls from a block into the next one unless that last instruction always leaves.

use crate::abi::Preserved;
use crate::driver::DriverFunction;
use crate::input::SrcId;
use crate::ori::alias;
use crate::ori::ir::{Facts, Frame};
use crate::ori::memory::{self, Memory};
use crate::ori::op;
use crate::shown::Mark;
use sass::{RegFile, RegUse, Sm};
use smallvec::SmallVec;
use std::fmt;

/// The index of a block in [`Code::blocks`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct BlockId(pub u32);

impl BlockId {
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A function's machine code.
#[derive(Clone, Debug)]
pub struct Code {
    pub sm: Sm,
    /// In layout order; the first is the entry.
    pub blocks: Vec<Block>,
    /// In the order of the branches that use them.
    pub tables: Vec<Table>,
    pub facts: Facts,
    pub frame: Frame,
    /// What the functions preserve that it calls.
    pub called: Vec<Preserved>,
    /// Where PTX registers get their values, if debuggers are to know.
    pub shown: Vec<Mark>,
}

/// The targets of an indirect branch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Table {
    pub id: op::JumpTable,
    pub targets: Vec<BlockId>,
}

#[derive(Clone, Debug, Default)]
pub struct Block {
    pub insts: Vec<MachInst>,
    /// Where control may go next, including the following block where control falls through.
    pub successors: SmallVec<[BlockId; 2]>,
}

#[derive(Clone, Debug)]
pub struct MachInst {
    pub inst: sass::Inst,
    /// The statement that it came from; `None` for what the backend adds by itself.
    pub src: Option<SrcId>,
    /// The block that the instruction's target field will point to.
    pub target: Option<BlockId>,
    /// What is known only when the kernel is linked.
    pub link: Option<Link>,
    pub effect: Effect,
}

/// What an instruction has of the code that it is linked with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Link {
    /// Its target is the start of a function.
    Function(u32),
    /// Its target is a function of the driver.
    Driver(DriverFunction),
    /// Its target counts from the start of the section.
    Start,
    /// It moves the address of a block, counted from the start of the section.
    Block(BlockId),
    /// It moves a word of the address of a block.
    Return { block: BlockId, high: bool },
    /// It moves the distance from the instruction before it to a block.
    Distance(BlockId),
    /// It loads from a list of targets.
    Table(op::JumpTable),
    /// It moves where a symbol lies, or what stands for a function's address.
    Symbol(op::Link),
    /// It moves the bytes of an entry of a table of the driver.
    EntrySize(op::Descriptors),
}

/// What an instruction does besides reading and writing registers: what may not be reordered with what.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Effect {
    /// Registers only.
    #[default]
    None,
    Memory(MemoryAccess),
    /// Involves other threads of the warp; keeps its order among its like and among fences.
    Convergent,
    /// Orders memory, waits for others or reads a clock: nothing but pure computation crosses it, and
    /// nothing at all where `pinned`.
    Fence {
        pinned: bool,
    },
    /// Ends its block.
    Control,
}

/// For reading: blocks with their successors; of an instruction its statement, its text, and the control fields once
/// they are set, as `sass dis --control` prints them. A target is the block that it will be.
impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (b, block) in self.blocks.iter().enumerate() {
            let next: Vec<String> = block.successors.iter().map(|next| format!("b{}", next.0)).collect();
            writeln!(f, "b{b}: -> {}", if next.is_empty() { "exit".to_owned() } else { next.join(", ") })?;
            for made in &block.insts {
                let src = made.src.map_or(String::from("-"), |src| format!("#{}", src.0));
                let text = sass::print(self.sm, &made.inst, 0);
                match made.target {
                    Some(target) => {
                        let name = text.rsplit_once(' ').map_or(&*text, |(name, _)| name);
                        writeln!(f, "  {src:<4} {} {name} b{}", made.inst.control, target.0)?;
                    }
                    None => writeln!(f, "  {src:<4} {} {text}", made.inst.control)?,
                }
            }
        }
        Ok(())
    }
}

/// One memory access and the registers of its address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemoryAccess {
    pub memory: Memory,
    /// The first address register; `None` where the address is the offset alone.
    pub base: Option<u8>,
    /// A warp-uniform register added to the address.
    pub uniform: Option<u8>,
    /// A slot of the stack frame for a value without a register: memory that PTX knows nothing of.
    pub slot: bool,
}

impl MemoryAccess {
    /// Whether exchanging the two could be seen, this one standing first. `same_values`: registers that both
    /// address by hold the same.
    pub fn conflicts(&self, later: &MemoryAccess, same_values: bool) -> bool {
        let same_base = same_values && self.base == later.base && self.uniform == later.uniform;
        !alias::may_exchange(
            &memory::Effect::Memory(self.memory),
            &memory::Effect::Memory(later.memory),
            same_base,
        )
    }
}

/// Registers of all files in one flat numbering, for sets of them.
pub const REGISTERS: usize = 256 + 8 + 256 + 8 + 16;

/// The first index of a file in the flat numbering.
pub const fn file_base(file: RegFile) -> usize {
    match file {
        RegFile::R => 0,
        RegFile::P => 256,
        RegFile::UR => 264,
        RegFile::UP => 520,
        RegFile::B => 528,
    }
}

/// The flat indices that an operand names.
pub fn flat(register: &RegUse) -> std::ops::Range<usize> {
    let start = file_base(register.file) + usize::from(register.index);
    start..start + usize::from(register.count)
}

/// A set of registers of any file.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct RegisterSet([u64; REGISTERS.div_ceil(64)]);

impl RegisterSet {
    pub fn insert(&mut self, register: &RegUse) {
        for r in flat(register) {
            self.0[r / 64] |= 1 << (r % 64);
        }
    }

    pub fn remove(&mut self, register: &RegUse) {
        for r in flat(register) {
            self.0[r / 64] &= !(1 << (r % 64));
        }
    }

    /// Whether any register of the operand is in the set.
    pub fn touches(&self, register: &RegUse) -> bool {
        flat(register).any(|r| self.0[r / 64] >> (r % 64) & 1 == 1)
    }

    pub fn full() -> RegisterSet {
        RegisterSet([u64::MAX; REGISTERS.div_ceil(64)])
    }

    pub fn clear(&mut self) {
        self.0 = Default::default();
    }

    /// Adds the other's registers; whether that changed anything.
    pub fn unite(&mut self, other: &RegisterSet) -> bool {
        let mut changed = false;
        for (word, more) in self.0.iter_mut().zip(other.0) {
            changed |= *word | more != *word;
            *word |= more;
        }
        changed
    }

    /// Keeps what is in both.
    pub fn intersect(&mut self, other: &RegisterSet) {
        for (word, kept) in self.0.iter_mut().zip(other.0) {
            *word &= kept;
        }
    }

    /// Their flat numbers.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        let of_word = |(at, &word): (usize, &u64)| {
            let rest = |word: &u64| Some(word & (word - 1)).filter(|&word| word != 0);
            let words = std::iter::successors(Some(word).filter(|&word| word != 0), rest);
            words.map(move |word| at * 64 + word.trailing_zeros() as usize)
        };
        self.0.iter().enumerate().flat_map(of_word)
    }

    /// How many registers of a file are in the set.
    pub fn count(&self, file: RegFile) -> u32 {
        let start = file_base(file);
        let end = match file {
            RegFile::R | RegFile::UR => start + 256,
            RegFile::P | RegFile::UP => start + 8,
            RegFile::B => start + 16,
        };
        let from = |r: usize| u64::MAX.checked_shl(r as u32).unwrap_or(0);
        let words = self.0[start / 64..end.div_ceil(64)].iter().enumerate();
        words
            .map(|(i, word)| {
                let first = start / 64 * 64 + i * 64;
                let mask = from(start.saturating_sub(first)) & !from(end - first);
                (word & mask).count_ones()
            })
            .sum()
    }
}

impl std::fmt::Debug for RegisterSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries((0..REGISTERS).filter(|r| self.0[r / 64] >> (r % 64) & 1 == 1)).finish()
    }
}

impl Code {
    /// For each block, the blocks that control may come from.
    pub fn predecessors(&self) -> Vec<SmallVec<[BlockId; 2]>> {
        let mut predecessors = vec![SmallVec::new(); self.blocks.len()];
        for (i, block) in self.blocks.iter().enumerate() {
            for s in &block.successors {
                predecessors[s.index()].push(BlockId(i as u32));
            }
        }
        predecessors
    }
}
