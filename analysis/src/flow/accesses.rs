//! Which registers a statement reads and writes, and where each register gets its value.

use ptx_backend::input::{Instr, RegId};

use crate::ide::Access;
use crate::lower::{Occurrence, SourceMap};
use crate::scope::Entity;

/// The names in each statement.
#[derive(Clone, Debug)]
pub struct Accesses<'a> {
    occurrences: &'a [Occurrence],
    /// By [`SrcId`](ptx_backend::input::SrcId) and one more: its first occurrence.
    starts: Box<[u32]>,
}

/// A register at a place.
#[derive(Clone, Copy, Debug)]
pub struct RegisterAccess<'a> {
    pub register: RegId,
    pub occurrence: &'a Occurrence,
}

impl RegisterAccess<'_> {
    pub fn reads(&self) -> bool {
        matches!(self.occurrence.access, Access::Read | Access::ReadWrite)
    }

    pub fn writes(&self) -> bool {
        matches!(self.occurrence.access, Access::Write | Access::ReadWrite)
    }
}

impl<'a> Accesses<'a> {
    pub fn new(map: &'a SourceMap) -> Self {
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
        Self { occurrences, starts: starts.into() }
    }

    /// The names in a statement, in text order.
    pub fn names(&self, instr: &Instr) -> &'a [Occurrence] {
        let at = instr.src.0 as usize;
        &self.occurrences[self.starts[at] as usize..self.starts[at + 1] as usize]
    }

    /// The registers in a statement, its guard first, in text order.
    pub fn registers(&self, instr: &Instr) -> Registers<'a> {
        Registers(self.names(instr).iter())
    }
}

/// Iterates over the registers in a statement. A type of its own because nearly all time of the analyses is in it,
/// and chains of closures are not always inlined.
#[derive(Clone, Debug)]
pub struct Registers<'a>(std::slice::Iter<'a, Occurrence>);

impl<'a> Iterator for Registers<'a> {
    type Item = RegisterAccess<'a>;

    #[inline]
    fn next(&mut self) -> Option<RegisterAccess<'a>> {
        loop {
            let occurrence = self.0.next()?;
            // Declarations may stand between this statement and the next one.
            if let Entity::Register(register) = occurrence.entity
                && occurrence.access != Access::Declaration
            {
                return Some(RegisterAccess { register, occurrence });
            }
        }
    }
}
