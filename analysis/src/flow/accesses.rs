//! Which registers a statement reads and writes, and where each register gets its value.

use ptx_backend::input::{RegId, SrcId};

use crate::ide::Access;
use crate::lower::{Occurrence, SourceMap};
use crate::scope::Entity;

/// The names in each statement.
#[derive(Clone, Debug)]
pub struct Accesses<'a> {
    occurrences: &'a [Occurrence],
    /// Parallel to `occurrences`, and a fifth of their size: nearly all time of the analyses is in walking it.
    words: Box<[Word]>,
    /// By [`SrcId`] and one more: its first occurrence.
    starts: Box<[u32]>,
}

/// A register, times four, and how it is accessed; or one of the constants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Word(u32);

impl Word {
    const READS: u32 = 1;
    const WRITES: u32 = 2;
    const OTHER: Self = Self(0);
    /// A variable or a function.
    const SYMBOL: Self = Self(4);

    #[inline]
    fn new(occurrence: &Occurrence) -> Self {
        let access = match occurrence.access {
            // Declarations may stand between statements.
            Access::Declaration => return Self::OTHER,
            Access::Read => Self::READS,
            Access::Write => Self::WRITES,
            Access::ReadWrite => Self::READS | Self::WRITES,
        };
        match occurrence.entity {
            Entity::Register(register) => Self(register.0 << 2 | access),
            Entity::Symbol(_) => Self::SYMBOL,
            _ => Self::OTHER,
        }
    }

    fn is_register(self) -> bool {
        self.0 & (Self::READS | Self::WRITES) != 0
    }
}

/// A register at a place.
#[derive(Clone, Copy, Debug)]
pub struct RegisterAccess<'a> {
    pub register: RegId,
    pub occurrence: &'a Occurrence,
    word: Word,
}

impl RegisterAccess<'_> {
    pub fn reads(&self) -> bool {
        self.word.0 & Word::READS != 0
    }

    pub fn writes(&self) -> bool {
        self.word.0 & Word::WRITES != 0
    }
}

impl<'a> Accesses<'a> {
    pub(super) fn new(map: &'a SourceMap) -> Self {
        let occurrences = &map.occurrences;
        let mut starts = Vec::with_capacity(map.statements.len() + 1);
        let mut next = 0;
        for statement in &map.statements {
            while occurrences.get(next).is_some_and(|o| o.range.start() < statement.start()) {
                next += 1;
            }
            starts.push(next as u32);
        }
        starts.push(occurrences.len() as u32);
        let words = occurrences.iter().map(Word::new).collect();
        Self { occurrences, words, starts: starts.into() }
    }

    /// Every statement, in text order.
    pub fn statements(&self) -> impl Iterator<Item = SrcId> + use<> {
        (0..self.starts.len() as u32 - 1).map(SrcId)
    }

    #[inline]
    fn range(&self, src: SrcId) -> std::ops::Range<usize> {
        self.starts[src.0 as usize] as usize..self.starts[src.0 as usize + 1] as usize
    }

    /// The names in a statement, in text order.
    pub fn names(&self, src: SrcId) -> &'a [Occurrence] {
        &self.occurrences[self.range(src)]
    }

    /// The registers in a statement, its guard first, in text order.
    #[inline]
    pub fn registers(&self, src: SrcId) -> Registers<'_, 'a> {
        let range = self.range(src);
        Registers { words: self.words[range.clone()].iter(), occurrences: self.occurrences[range].iter() }
    }

    /// The statements that name variables or functions, in text order; perhaps some others.
    pub fn naming(&self) -> Vec<SrcId> {
        let mut naming = Vec::new();
        for (at, _) in self.words.iter().enumerate().filter(|&(_, &word)| word == Word::SYMBOL) {
            let statement = self.starts.partition_point(|&start| start as usize <= at);
            naming.push(SrcId(statement.saturating_sub(1) as u32));
        }
        naming.dedup();
        naming
    }
}

/// Iterates over the registers in a statement.
#[derive(Clone, Debug)]
pub struct Registers<'w, 'a> {
    words: std::slice::Iter<'w, Word>,
    occurrences: std::slice::Iter<'a, Occurrence>,
}

impl<'a> Iterator for Registers<'_, 'a> {
    type Item = RegisterAccess<'a>;

    #[inline]
    fn next(&mut self) -> Option<RegisterAccess<'a>> {
        loop {
            let (&word, occurrence) = (self.words.next()?, self.occurrences.next()?);
            if word.is_register() {
                return Some(RegisterAccess { register: RegId(word.0 >> 2), occurrence, word });
            }
        }
    }
}
