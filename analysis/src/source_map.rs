//! The ranges of an item's statements, declarations and names.

use ptx_backend::input::{SrcId, Symbol};
use text_size::{TextRange, TextSize};

use crate::scope::{DeclId, Declaration, Entity, RegisterName};

/// How a statement uses a name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Usage {
    Declaration,
    Read,
    Write,
    /// Reads and writes the name, as some instructions do with their data operand.
    ReadWrite,
}

/// The ranges of an item's parts, relative to the item.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SourceMap {
    /// Instructions, by [`SrcId`].
    pub statements: Vec<TextRange>,
    pub declarations: Vec<Declaration>,
    /// By [`RegId`](ptx_backend::input::RegId).
    pub registers: Vec<RegisterName>,
    /// By [`LabelId`](ptx_backend::input::LabelId).
    pub labels: Vec<DeclId>,
    pub locals: Vec<DeclId>,
    pub params: Vec<DeclId>,
    pub returns: Vec<DeclId>,
    pub targets: Vec<DeclId>,
    pub prototypes: Vec<DeclId>,
    /// All names with a meaning, in text order.
    pub occurrences: Vec<Occurrence>,
}

/// One use of a name in the text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Occurrence {
    pub range: TextRange,
    pub entity: Entity,
    pub access: Usage,
}

impl SourceMap {
    /// Empties the map but keeps its memory.
    pub(crate) fn clear(&mut self) {
        let Self { statements, declarations, registers, labels, occurrences, .. } = self;
        statements.clear();
        declarations.clear();
        registers.clear();
        labels.clear();
        occurrences.clear();
        let Self { locals, params, returns, targets, prototypes, .. } = self;
        [locals, params, returns, targets, prototypes].into_iter().for_each(Vec::clear);
    }

    pub(crate) fn shrink_to_fit(&mut self) {
        let Self { statements, declarations, registers, labels, occurrences, .. } = self;
        statements.shrink_to_fit();
        declarations.shrink_to_fit();
        registers.shrink_to_fit();
        labels.shrink_to_fit();
        occurrences.shrink_to_fit();
        let Self { locals, params, returns, targets, prototypes, .. } = self;
        [locals, params, returns, targets, prototypes].into_iter().for_each(Vec::shrink_to_fit);
    }

    /// The declaration of a name in this item. `None` for names at module scope.
    pub fn declaration_of(&self, entity: Entity) -> Option<DeclId> {
        match entity {
            Entity::Register(register) => Some(self.registers.get(register.0 as usize)?.declaration),
            Entity::Label(label) => self.labels.get(label.0 as usize).copied(),
            Entity::Symbol(Symbol::Local(i)) => self.locals.get(i as usize).copied(),
            Entity::Symbol(Symbol::Param(i)) => self.params.get(i as usize).copied(),
            Entity::Symbol(Symbol::Return(i)) => self.returns.get(i as usize).copied(),
            Entity::Symbol(Symbol::Global(_) | Symbol::Function(_)) => None,
            Entity::Targets(i) => self.targets.get(i as usize).copied(),
            Entity::Prototype(i) => self.prototypes.get(i as usize).copied(),
        }
    }

    /// The name at an offset. The end of the name counts as inside.
    pub fn occurrence_at(&self, offset: TextSize) -> Option<&Occurrence> {
        let after = self.occurrences.partition_point(|occurrence| occurrence.range.start() <= offset);
        self.occurrences[..after].last().filter(|occurrence| occurrence.range.contains_inclusive(offset))
    }

    /// The instruction at an offset. Among the instructions that start at or before the offset, this is the last one,
    /// if it extends to the offset.
    pub fn statement_at(&self, offset: TextSize) -> Option<SrcId> {
        let after = self.statements.partition_point(|range| range.start() <= offset);
        let index = after.checked_sub(1)?;
        self.statements[index].contains_inclusive(offset).then_some(SrcId(index as u32))
    }

    /// The name of the function or variable that the item declares.
    pub fn name_range(&self) -> Option<TextRange> {
        let is_name = |o: &&Occurrence| {
            o.access == Usage::Declaration
                && matches!(o.entity, Entity::Symbol(Symbol::Global(_) | Symbol::Function(_)))
        };
        self.occurrences.iter().find(is_name).map(|occurrence| occurrence.range)
    }

    pub fn statement(&self, src: SrcId) -> Option<TextRange> {
        self.statements.get(src.0 as usize).copied()
    }
}
