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
    naming: Box<[SrcId]>,
}

/// A register, times four, and how it is accessed; or [`Word::NONE`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Word(u32);

impl Word {
    const READS: u32 = 1;
    const WRITES: u32 = 2;
    const NONE: Self = Self(0);

    fn new(occurrence: &Occurrence) -> Self {
        let Entity::Register(register) = occurrence.entity else { return Self::NONE };
        Self(match occurrence.access {
            // Declarations may stand between statements.
            Access::Declaration => return Self::NONE,
            Access::Read => register.0 << 2 | Self::READS,
            Access::Write => register.0 << 2 | Self::WRITES,
            Access::ReadWrite => register.0 << 2 | Self::READS | Self::WRITES,
        })
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
        let mut words = Vec::with_capacity(occurrences.len());
        let mut naming = Vec::new();
        for occurrence in occurrences {
            while map
                .statements
                .get(starts.len())
                .is_some_and(|next| next.start() <= occurrence.range.start())
            {
                starts.push(words.len() as u32);
            }
            words.push(Word::new(occurrence));
            if matches!(occurrence.entity, Entity::Symbol(_)) && occurrence.access != Access::Declaration {
                let src = SrcId(starts.len().saturating_sub(1) as u32);
                if naming.last() != Some(&src) {
                    naming.push(src);
                }
            }
        }
        starts.resize(map.statements.len() + 1, words.len() as u32);
        Self { occurrences, words: words.into(), starts: starts.into(), naming: naming.into() }
    }

    /// Every statement, in text order.
    pub fn statements(&self) -> impl Iterator<Item = SrcId> + use<> {
        (0..self.starts.len() as u32 - 1).map(SrcId)
    }

    fn range(&self, src: SrcId) -> std::ops::Range<usize> {
        self.starts[src.0 as usize] as usize..self.starts[src.0 as usize + 1] as usize
    }

    /// The names in a statement, in text order.
    pub fn names(&self, src: SrcId) -> &'a [Occurrence] {
        &self.occurrences[self.range(src)]
    }

    /// The registers in a statement, its guard first, in text order.
    pub fn registers(&self, src: SrcId) -> Registers<'_, 'a> {
        let range = self.range(src);
        Registers { words: self.words[range.clone()].iter(), occurrences: self.occurrences[range].iter() }
    }

    /// The statements that name variables or functions, in text order; perhaps some others.
    pub fn naming(&self) -> &[SrcId] {
        &self.naming
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
            if word != Word::NONE {
                return Some(RegisterAccess { register: RegId(word.0 >> 2), occurrence, word });
            }
        }
    }
}
