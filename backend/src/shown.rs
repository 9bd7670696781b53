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
use std::collections::BTreeSet;

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

/// A change of the contents before the instruction with the index `place` in its block.
#[derive(Clone, Copy)]
struct Event {
    place: usize,
    change: Change,
}

#[derive(Clone, Copy)]
enum Change {
    Marked(Mark),
    /// The register `to` gets what `from` holds.
    Copied {
        to: u8,
        from: u8,
    },
    /// The registers from `first` to before `end` get other values.
    Overwritten {
        first: u16,
        end: u16,
    },
    /// Functions preserve the registers that the code states. Routines of the runtime library preserve registers by
    /// their own convention.
    Called {
        routine: bool,
    },
}

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
    let events = events(code);
    let mut entries: Vec<Option<Contents>> = vec![None; code.blocks.len()];
    if let Some(first) = entries.first_mut() {
        *first = Some(Contents::new());
    }
    let mut pending = BTreeSet::from([0]);
    while let Some(block) = pending.pop_first() {
        let mut contents = entries[block].clone().unwrap_or_default();
        for event in &events[block] {
            event.change.apply(code, &mut contents);
        }
        for next in code.blocks[block].successors.iter().map(|next| next.index()) {
            let is_new = match &mut entries[next] {
                Some(known) => {
                    let before = known.len();
                    known.retain(|pair| contents.binary_search(pair).is_ok());
                    known.len() < before
                }
                entry => {
                    *entry = Some(contents.clone());
                    true
                }
            };
            if is_new {
                pending.insert(next);
            }
        }
    }
    let mut found = Found::default();
    let mut start = 0;
    for (block, entry) in entries.into_iter().enumerate() {
        let length = code.blocks[block].insts.len();
        let mut contents = entry.unwrap_or_default();
        let mut place = 0;
        for event in events[block].iter().filter(|event| event.place < length) {
            if place < event.place {
                found.step(start + place, &contents);
                place = event.place;
            }
            event.change.apply(code, &mut contents);
        }
        if place < length {
            found.step(start + place, &contents);
        }
        start += length;
    }
    found.step(start, &Contents::new());
    found.locations.sort_unstable();
    found.locations
}

/// The events of each block in the order of their places.
fn events(code: &Code) -> Vec<Vec<Event>> {
    let marks = marks_by_place(code);
    code.blocks
        .iter()
        .zip(marks)
        .map(|(block, marks)| {
            let mut marks = marks.into_iter().peekable();
            let mut events = Vec::new();
            for place in 0..=block.insts.len() {
                if let Some(made) = place.checked_sub(1).and_then(|before| block.insts.get(before)) {
                    execute(code, made, |change| events.push(Event { place, change }));
                }
                while let Some((_, mark)) = marks.next_if(|(at, _)| *at <= place) {
                    events.push(Event { place, change: Change::Marked(mark) });
                }
            }
            events
        })
        .collect()
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

/// Passes the changes by an instruction to `change`.
fn execute(code: &Code, made: &MachInst, mut change: impl FnMut(Change)) {
    let inst = &made.inst;
    if name(inst) == "CALL" {
        return change(Change::Called { routine: made.target.is_some() });
    }
    if let Some((to, from)) = copy(inst) {
        return change(Change::Copied { to, from });
    }
    for written in inst.writes(code.sm).filter(|used| used.file == RegFile::R) {
        let first = u16::from(written.index);
        change(Change::Overwritten { first, end: first + u16::from(written.count) });
    }
}

impl Change {
    fn apply(self, code: &Code, contents: &mut Contents) {
        match self {
            Change::Marked(mark) => {
                contents.retain(|(_, word)| *word != mark.word);
                if let Some(at) = mark.at {
                    add(contents, (at, mark.word));
                }
            }
            Change::Copied { to, from } => {
                let words: Vec<Word> =
                    contents.iter().filter(|(at, _)| *at == from).map(|(_, word)| *word).collect();
                contents.retain(|(at, _)| *at != to);
                words.into_iter().for_each(|word| add(contents, (to, word)));
            }
            Change::Overwritten { first, end } => {
                contents.retain(|(at, _)| !(first..end).contains(&u16::from(*at)));
            }
            Change::Called { routine } => {
                let keeps = |at: u8| {
                    let reg = Reg { file: File::R, index: at };
                    !routine && code.called.iter().all(|called| called.has(reg))
                };
                contents.retain(|(at, _)| keeps(*at));
            }
        }
    }
}

fn add(contents: &mut Contents, pair: (u8, Word)) {
    if let Err(place) = contents.binary_search(&pair) {
        contents.insert(place, pair);
    }
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
    /// Sorted pairs of a register and a word, and where their locations start.
    open: Vec<((u8, Word), u32)>,
    locations: Vec<Location>,
}

impl Found {
    /// Advances to the instruction with the index `index`, given the contents of registers before it.
    fn step(&mut self, index: usize, contents: &Contents) {
        if self.open.iter().map(|(pair, _)| pair).eq(contents) {
            return;
        }
        let offset = u32::try_from(index).unwrap_or(u32::MAX).saturating_mul(WORD);
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
