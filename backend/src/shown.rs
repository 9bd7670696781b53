//! The locations of PTX registers for debuggers: which machine register holds which word of a PTX register, and where.
//!
//! Construction adds an [`Op::Shown`](crate::ori::op::Op::Shown) where a PTX register is written. Emission replaces it
//! by a [`Mark`]. After the mark, the machine register holds the word until either register is overwritten. A forward
//! dataflow over the machine code computes this for all paths.

use crate::input::RegId;
use crate::mach::{BlockId, Code, MachInst};
use crate::ori::ir::{File, Reg};
use crate::sched::facts::name;
use sass::{Field, Inst, RegFile};

/// A word of a PTX register.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Word {
    pub register: RegId,
    /// The index of the word in the register, the lowest first.
    pub index: u8,
}

/// A point at which a word of a PTX register gets a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mark {
    pub block: BlockId,
    /// The number of instructions of statements before it in its block. Instructions that the backend adds later are
    /// not counted.
    pub after: u32,
    pub word: Word,
    /// The general register; `None` if no register holds the value.
    pub at: Option<u8>,
}

/// A range of the code, in bytes, in which a general register holds a word of a PTX register.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Location {
    pub start: u32,
    pub end: u32,
    pub word: Word,
    pub at: u8,
}

/// The contents of general registers: sorted pairs of a register and a word.
type Contents = Vec<(u8, Word)>;

/// Bytes of an instruction.
const WORD: u32 = 16;
/// RZ.
const ZERO: u8 = 255;
/// PT.
const ALWAYS: u64 = 7;

/// All locations, sorted by their start.
pub fn locations(code: &Code) -> Vec<Location> {
    if code.shown.is_empty() {
        return Vec::new();
    }
    let marks = marks_by_place(code);
    let mut entries: Vec<Option<Contents>> = vec![None; code.blocks.len()];
    if let Some(first) = entries.first_mut() {
        *first = Some(Contents::new());
    }
    let mut pending = vec![0];
    while let Some(block) = pending.pop() {
        let mut contents = entries[block].clone().unwrap_or_default();
        walk(code, block, &marks[block], &mut contents, |_| ());
        for next in code.blocks[block].successors.iter().map(|next| next.index()) {
            let joined = match &entries[next] {
                Some(known) => {
                    known.iter().filter(|pair| contents.binary_search(pair).is_ok()).copied().collect()
                }
                None => contents.clone(),
            };
            if entries[next].as_ref() != Some(&joined) {
                entries[next] = Some(joined);
                pending.push(next);
            }
        }
    }
    let mut found = Found::default();
    for (block, entry) in entries.into_iter().enumerate() {
        let mut contents = entry.unwrap_or_default();
        walk(code, block, &marks[block], &mut contents, |contents| found.step(contents));
    }
    found.step(&Contents::new());
    found.locations.sort_unstable();
    found.locations
}

/// For each block its marks, with the index of the instruction before which each takes effect.
fn marks_by_place(code: &Code) -> Vec<Vec<(usize, Mark)>> {
    let mut places: Vec<Vec<(usize, Mark)>> = vec![Vec::new(); code.blocks.len()];
    for mark in &code.shown {
        places[mark.block.index()].push((0, *mark));
    }
    for (block, marks) in code.blocks.iter().zip(&mut places).filter(|(_, marks)| !marks.is_empty()) {
        let after_statements = (1..).zip(&block.insts).filter(|(_, made)| made.src.is_some());
        let after_statements: Vec<usize> = after_statements.map(|(next, _)| next).collect();
        for (place, mark) in &mut *marks {
            *place = match mark.after {
                0 => 0,
                n => after_statements.get(n as usize - 1).copied().unwrap_or(block.insts.len()),
            };
        }
        // Stable: the last of several marks of a word counts.
        marks.sort_by_key(|(place, _)| *place);
    }
    places
}

/// Calls `see` with the contents of registers before each instruction of a block; `contents` becomes the contents after
/// it.
fn walk(
    code: &Code,
    block: usize,
    marks: &[(usize, Mark)],
    contents: &mut Contents,
    mut see: impl FnMut(&Contents),
) {
    let mut marks = marks;
    for (i, made) in code.blocks[block].insts.iter().enumerate() {
        let (here, later) = marks.split_at(marks.partition_point(|(place, _)| *place <= i));
        apply(here, contents);
        marks = later;
        see(contents);
        execute(code, made, contents);
    }
    apply(marks, contents);
}

fn apply(marks: &[(usize, Mark)], contents: &mut Contents) {
    for (_, mark) in marks {
        contents.retain(|(_, word)| *word != mark.word);
        if let Some(at) = mark.at {
            add(contents, (at, mark.word));
        }
    }
}

fn add(contents: &mut Contents, pair: (u8, Word)) {
    if let Err(place) = contents.binary_search(&pair) {
        contents.insert(place, pair);
    }
}

/// Updates the contents: overwritten registers lose their word, and a copy adds a location.
fn execute(code: &Code, made: &MachInst, contents: &mut Contents) {
    if contents.is_empty() {
        return;
    }
    let inst = &made.inst;
    if name(inst) == "CALL" {
        // Routines of the runtime library preserve registers by their own convention.
        let keeps = |at: u8| {
            let reg = Reg { file: File::R, index: at };
            made.target.is_none() && code.called.iter().all(|called| called.has(reg))
        };
        contents.retain(|(at, _)| keeps(*at));
        return;
    }
    let copied = copy(inst).map_or_else(Vec::new, |(to, from)| {
        let words = contents.iter().filter(|(at, _)| *at == from);
        words.map(|(_, word)| (to, *word)).collect()
    });
    for written in inst.writes(code.sm).filter(|used| used.file == RegFile::R) {
        let end = u16::from(written.index) + u16::from(written.count);
        contents.retain(|(at, _)| !(u16::from(written.index)..end).contains(&u16::from(*at)));
    }
    copied.into_iter().for_each(|pair| add(contents, pair));
}

/// The destination and source of an unguarded move between registers.
fn copy(inst: &Inst) -> Option<(u8, u8)> {
    let is_move = inst.form().mnemonic == "MOV" && inst.get(Field::Guard) == Some(ALWAYS);
    let register = |field| inst.get(field).and_then(|index| u8::try_from(index).ok());
    let pair = (register(Field::Rd)?, register(Field::Rb)?);
    (is_move && pair.1 != ZERO && pair.0 != pair.1).then_some(pair)
}

/// Open and completed locations.
#[derive(Default)]
struct Found {
    offset: u32,
    /// Sorted pairs of a register and a word, and where their locations start.
    open: Vec<((u8, Word), u32)>,
    locations: Vec<Location>,
}

impl Found {
    /// Advances to the next instruction, given the contents of registers before it.
    fn step(&mut self, contents: &Contents) {
        let offset = self.offset;
        self.offset += WORD;
        if self.open.iter().map(|(pair, _)| pair).eq(contents) {
            return;
        }
        let mut before = std::mem::take(&mut self.open).into_iter().peekable();
        for pair in contents {
            while let Some(((at, word), start)) = before.next_if(|(open, _)| open < pair) {
                self.locations.push(Location { start, end: offset, word, at });
            }
            let start = before.next_if(|(open, _)| open == pair).map_or(offset, |(_, start)| start);
            self.open.push((*pair, start));
        }
        self.locations.extend(before.map(|((at, word), start)| Location { start, end: offset, word, at }));
    }
}
