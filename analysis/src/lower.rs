//! From an item's tree to the backend's input, with everything wrong on the way.
//!
//! One walk over the tree resolves names and instructions, builds the position-free [`Function`], records where
//! each statement and name stands, and runs the checks. It never fails: a function with errors has no
//! [`Function`], and all diagnostics are kept with their default levels; [`crate::ide::diagnostics`] applies settings
//! and suppressions later, so that changing a setting repeats no walk, unless it turns on [`crate::check::Extras`].

mod body;
pub mod call;
pub(crate) mod heading;
mod instruction;
mod operand;
mod plain;
mod shape;
mod variable;

use std::sync::Arc;

use heading::Heading;
use ptx_backend::input::{Function, SrcId, Symbol};
use ptx_isa::Space;
use ptx_syntax::{ItemKind, SyntaxKind};
use text_size::{TextRange, TextSize};

use crate::db::Db;
use crate::diagnostic::Diagnostic;
use crate::ide::Access;
use crate::items::{Item, parse};
use crate::scope::{DeclId, Declaration, Entity, RegisterName};

/// Where things stand in an item. Ranges are relative to the item.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SourceMap {
    /// Instructions, by [`SrcId`].
    pub statements: Box<[TextRange]>,
    pub declarations: Box<[Declaration]>,
    /// By [`RegId`](ptx_backend::input::RegId).
    pub registers: Box<[RegisterName]>,
    /// By [`LabelId`](ptx_backend::input::LabelId).
    pub labels: Box<[DeclId]>,
    pub locals: Box<[DeclId]>,
    pub params: Box<[DeclId]>,
    pub returns: Box<[DeclId]>,
    pub targets: Box<[DeclId]>,
    pub prototypes: Box<[DeclId]>,
    /// Every name that means something, in text order.
    pub occurrences: Box<[Occurrence]>,
}

/// A name at a place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Occurrence {
    pub range: TextRange,
    pub entity: Entity,
    pub access: Access,
}

impl SourceMap {
    /// The declaration of a name of this item; `None` for names of module scope.
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

    /// The name at an offset, its end included.
    pub fn occurrence_at(&self, offset: TextSize) -> Option<&Occurrence> {
        let after = self.occurrences.partition_point(|occurrence| occurrence.range.start() <= offset);
        self.occurrences[..after].last().filter(|occurrence| occurrence.range.contains_inclusive(offset))
    }

    /// The instruction at an offset: the last one that starts at or before it, if it reaches there.
    pub fn statement_at(&self, offset: TextSize) -> Option<SrcId> {
        let after = self.statements.partition_point(|range| range.start() <= offset);
        let index = after.checked_sub(1)?;
        self.statements[index].contains_inclusive(offset).then_some(SrcId(index as u32))
    }

    /// The name of the function or variable that the item declares.
    pub fn name_range(&self) -> Option<TextRange> {
        let is_name = |o: &&Occurrence| {
            o.access == Access::Declaration
                && matches!(o.entity, Entity::Symbol(Symbol::Global(_) | Symbol::Function(_)))
        };
        self.occurrences.iter().find(is_name).map(|occurrence| occurrence.range)
    }

    pub fn statement(&self, src: SrcId) -> Option<TextRange> {
        self.statements.get(src.0 as usize).copied()
    }
}

/// What the walk over an item gives.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Lowered {
    /// For functions with a body and without errors.
    pub function: Option<Arc<Function>>,
    pub has_body: bool,
    /// What the body declares in `.shared` and `.const`.
    pub storage: Box<[(Space, crate::check::limits::Block)]>,
    /// The first statement that keeps it from having a [`Function`]: wrong, or not understood.
    pub not_understood: Option<TextRange>,
    pub map: SourceMap,
    /// In text order, all levels.
    pub diagnostics: Box<[Diagnostic]>,
}

/// Walks an item.
#[salsa::tracked]
pub fn lower<'db>(db: &'db dyn Db, item: Item<'db>) -> Lowered {
    walk(db, item)
}

/// What [`lower`] finds, for those who need no more: the rest is dropped at once.
#[salsa::tracked]
pub(crate) fn findings<'db>(db: &'db dyn Db, item: Item<'db>) -> ItemFindings {
    let Lowered { diagnostics, storage, map, .. } = walk(db, item);
    let map = (!diagnostics.is_empty()).then_some(map);
    ItemFindings { diagnostics, storage, map }
}

/// Where things stand in an item with findings.
pub(crate) fn source_map<'db>(db: &'db dyn Db, item: Item<'db>) -> &'db SourceMap {
    findings(db, item).map.as_ref().unwrap_or_else(|| &lower(db, item).map)
}

/// A part of [`Lowered`].
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct ItemFindings {
    pub diagnostics: Box<[Diagnostic]>,
    pub storage: Box<[(Space, crate::check::limits::Block)]>,
    /// If there are findings, which are completed with it.
    map: Option<SourceMap>,
}

fn walk<'db>(db: &'db dyn Db, item: Item<'db>) -> Lowered {
    plain::walk(db, item).unwrap_or_else(|| walk_tree(db, item))
}

/// Walks the tree of an item. [`lower`] gives the same, by a shorter way where there is one.
pub fn walk_tree<'db>(db: &'db dyn Db, item: Item<'db>) -> Lowered {
    let parsed = parse(db, item);
    let mut walker = body::Walker::new(db, item);
    walker.syntax_errors(&parsed.errors);
    if item.kind(db) == ItemKind::Dwarf {
        walker.dwarf();
    } else if item.kind(db) != ItemKind::Trivia {
        let node = parsed.syntax();
        match node.kind() {
            SyntaxKind::FUNCTION => {
                let heading = Heading::read_tree(&node, walker.text, &mut walker.diagnostics);
                let block = node.children().find(|child| child.kind() == SyntaxKind::BLOCK);
                walker.function(&heading, |walker| block.iter().for_each(|block| walker.statements(block)));
            }
            SyntaxKind::VARIABLE => walker.module_variable(&node),
            SyntaxKind::SECTION => walker.section(&node),
            SyntaxKind::FILE_DIRECTIVE => walker.file_directive(&node),
            SyntaxKind::LOC_DIRECTIVE => walker.misplaced_loc(&node),
            SyntaxKind::ALIAS => walker.alias(&node),
            SyntaxKind::PRAGMA => walker.pragma(&node, crate::check::pragmas::Site::Module),
            _ => {}
        }
    }
    walker.finish()
}

/// The function alone: equal after an edit that changes only comments, blanks and places.
#[salsa::tracked]
pub fn function<'db>(db: &'db dyn Db, item: Item<'db>) -> Option<Arc<Function>> {
    lower(db, item).function.clone()
}
