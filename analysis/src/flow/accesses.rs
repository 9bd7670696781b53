//! The registers that each statement reads and writes.

use ptx_backend::input::{RegId, SrcId};

use crate::scope::Entity;
use crate::source_map::Usage;

/// The names in each statement, in a compact form: a fifth of the size of the statements, because the analyses spend
/// nearly all their time in walking them.
#[derive(Clone, Debug, Default)]
pub struct Accesses {
    names: Vec<Name>,
    /// For each [`SrcId`], the index of its first name.
    starts: Vec<u32>,
    naming: Vec<SrcId>,
}

/// The number of a register times four, plus the kind of access; or [`Name::OTHER`].
#[derive(Clone, Copy, Debug)]
struct Name(u32);

impl Name {
    const READS: u32 = 1;
    const WRITES: u32 = 2;
    const OTHER: Self = Self(0);

    #[inline]
    fn new(entity: Entity, access: Usage) -> Self {
        let Entity::Register(register) = entity else { return Self::OTHER };
        let access = match access {
            Usage::Declaration => 0,
            Usage::Read => Self::READS,
            Usage::Write => Self::WRITES,
            Usage::ReadWrite => Self::READS | Self::WRITES,
        };
        Self(register.0 << 2 | access)
    }
}

/// A register at a place.
#[derive(Clone, Copy, Debug)]
pub struct RegisterAccess {
    pub register: RegId,
    /// The index among the names of the statement.
    pub index: usize,
    name: Name,
}

impl RegisterAccess {
    pub fn reads(&self) -> bool {
        self.name.0 & Name::READS != 0
    }

    pub fn writes(&self) -> bool {
        self.name.0 & Name::WRITES != 0
    }
}

impl Accesses {
    pub(super) fn clear(&mut self) {
        self.names.clear();
        self.starts.clear();
        self.naming.clear();
    }

    pub(super) fn reserve(&mut self, statements: usize, names: usize) {
        self.starts.reserve(statements);
        self.names.reserve(names);
    }

    /// Records the names of the next statement.
    #[inline]
    pub(super) fn note(&mut self, names: impl Iterator<Item = (Entity, Usage)>) {
        self.starts.push(self.names.len() as u32);
        self.names.extend(names.map(|(entity, access)| Name::new(entity, access)));
    }

    /// Records that the last statement names variables or functions.
    pub(super) fn note_symbols(&mut self) {
        self.naming.push(SrcId(self.starts.len() as u32 - 1));
    }

    /// Every statement, in text order.
    pub fn statements(&self) -> impl Iterator<Item = SrcId> + use<> {
        (0..self.starts.len() as u32).map(SrcId)
    }

    /// The registers in a statement, its guard first, in text order.
    #[inline]
    pub fn registers(&self, src: SrcId) -> Registers<'_> {
        let start = self.starts[src.0 as usize] as usize;
        let end = self.starts.get(src.0 as usize + 1).map_or(self.names.len(), |&end| end as usize);
        Registers { names: &self.names[start..end], index: 0 }
    }

    /// The statements that name variables or functions, in text order.
    pub fn naming(&self) -> &[SrcId] {
        &self.naming
    }
}

/// Iterates over the registers in a statement.
#[derive(Clone, Debug)]
pub struct Registers<'a> {
    names: &'a [Name],
    index: usize,
}

impl Iterator for Registers<'_> {
    type Item = RegisterAccess;

    #[inline]
    fn next(&mut self) -> Option<RegisterAccess> {
        loop {
            let name = *self.names.get(self.index)?;
            let index = self.index;
            self.index += 1;
            if name.0 & (Name::READS | Name::WRITES) != 0 {
                return Some(RegisterAccess { register: RegId(name.0 >> 2), index, name });
            }
        }
    }
}
