//! Machine code between emission and encoding: blocks of [`sass::Inst`] whose branch targets are still block names.
//!
//! Emission creates it from allocated Ori, the scheduler orders it and sets the control fields, and assembly lays it
//! out and encodes it.
//!
//! Invariants: blocks are in layout order. An instruction that may leave its block is the last one. Control falls
//! through from a block to the next one, unless the last instruction always branches.

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
    /// The blocks in layout order; the first is the entry.
    pub blocks: Vec<Block>,
    /// Target lists, in the order of the branches that use them.
    pub tables: Vec<Table>,
    pub facts: Facts,
    pub frame: Frame,
    /// The registers that the called functions preserve.
    pub called: Vec<Preserved>,
    /// The points where PTX registers get their values, if debug information is requested.
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
    /// The blocks to which control may go next, including the following block if control falls through.
    pub successors: SmallVec<[BlockId; 2]>,
}

#[derive(Clone, Debug)]
pub struct MachInst {
    pub inst: sass::Inst,
    /// The statement of the instruction; `None` for instructions that the backend adds.
    pub src: Option<SrcId>,
    /// The block that the instruction's target field will point to.
    pub target: Option<BlockId>,
    /// A field that is filled in when the kernel is linked.
    pub link: Option<Link>,
    pub effect: Effect,
}

/// A field of an instruction that depends on the code that it is linked with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Link {
    /// A branch or call whose target is the start of a function.
    Function(u32),
    /// A call of a driver function.
    Driver(DriverFunction),
    /// A branch whose target is an offset from the start of the section.
    Start,
    /// A call of a function of the program through its address.
    Pointee,
    /// A move of the offset of a block from the start of the section.
    Block(BlockId),
    /// A move of one word of the address of a block.
    Return { block: BlockId, high: bool },
    /// A move of the distance from the preceding instruction to a block.
    Distance(BlockId),
    /// A load from a target list.
    Table(op::JumpTable),
    /// A move of the address of a symbol, or of the number that represents a function's address.
    Symbol(op::Link),
    /// A move of the size of an entry of a driver table.
    EntrySize(op::Descriptors),
    /// A move of the size of the `.const` variables of all objects.
    ConstBytes,
    /// A move of the address of the words in which a block records its columns of tensor memory.
    TensorWords,
}

/// The effect of an instruction besides reading and writing registers. It determines which instructions may be
/// reordered.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Effect {
    /// Reads and writes registers only.
    #[default]
    None,
    Memory(MemoryAccess),
    /// Involves other threads of the warp. Keeps its order relative to other such instructions and to fences.
    Convergent,
    /// Orders memory, waits for other threads or reads a clock. Only pure computation may move across it, and no
    /// instruction at all if it is `pinned`.
    Fence {
        pinned: bool,
    },
    /// Ends its block.
    Control,
}

/// For reading: blocks with their successors. An instruction is printed with its statement, its text and, once set, its
/// control fields, as by `sass dis --control`. A target is printed as the name of its block.
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
    /// The first address register; `None` if the address is the offset alone.
    pub base: Option<u8>,
    /// A warp-uniform register added to the address.
    pub uniform: Option<u8>,
    /// A slot of the stack frame for a spilled value: memory that is not visible in PTX.
    pub slot: bool,
}

impl MemoryAccess {
    /// Whether exchanging this access with a later one could be observed. `same_values`: the address registers of both
    /// hold the same values.
    pub fn conflicts(&self, later: &MemoryAccess, same_values: bool) -> bool {
        let same_base = same_values && self.base == later.base && self.uniform == later.uniform;
        !alias::may_exchange(
            &memory::Effect::Memory(self.memory),
            &memory::Effect::Memory(later.memory),
            same_base,
        )
    }
}

/// The number of registers of all files, for sets with one common numbering.
pub const REGISTERS: usize = 256 + 8 + 256 + 8 + 16;

/// The first number of a file in the common numbering.
pub const fn file_base(file: RegFile) -> usize {
    match file {
        RegFile::R => 0,
        RegFile::P => 256,
        RegFile::UR => 264,
        RegFile::UP => 520,
        RegFile::B => 528,
    }
}

/// The numbers of an operand's registers in the common numbering.
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

    /// Whether the set contains any register of the operand.
    pub fn touches(&self, register: &RegUse) -> bool {
        flat(register).any(|r| self.0[r / 64] >> (r % 64) & 1 == 1)
    }

    pub fn full() -> RegisterSet {
        RegisterSet([u64::MAX; REGISTERS.div_ceil(64)])
    }

    pub fn clear(&mut self) {
        self.0 = Default::default();
    }

    /// Adds the registers of the other set. Returns whether this set changed.
    pub fn unite(&mut self, other: &RegisterSet) -> bool {
        let mut changed = false;
        for (word, more) in self.0.iter_mut().zip(other.0) {
            changed |= *word | more != *word;
            *word |= more;
        }
        changed
    }

    /// Keeps the registers that are in both sets.
    pub fn intersect(&mut self, other: &RegisterSet) {
        for (word, kept) in self.0.iter_mut().zip(other.0) {
            *word &= kept;
        }
    }

    /// The numbers of the registers in the common numbering.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        let of_word = |(at, &word): (usize, &u64)| {
            let rest = |word: &u64| Some(word & (word - 1)).filter(|&word| word != 0);
            let words = std::iter::successors(Some(word).filter(|&word| word != 0), rest);
            words.map(move |word| at * 64 + word.trailing_zeros() as usize)
        };
        self.0.iter().enumerate().flat_map(of_word)
    }

    /// The number of registers of a file in the set.
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
    /// The predecessors of each block.
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
