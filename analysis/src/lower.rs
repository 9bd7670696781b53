//! From an item's tree to the backend's input, with everything wrong on the way.
//!
//! One walk over the tree resolves names and instructions, builds the position-free [`Function`], records where
//! each statement and name stands, and runs the checks. It never fails: a function with errors has no
//! [`Function`], and all diagnostics are kept with their default levels; [`crate::ide::diagnostics`] applies settings
//! and suppressions later, so that changing a setting repeats no walk, unless it turns on [`crate::check::Extras`].

mod body;
pub mod call;
pub(crate) mod cursor;
mod global;
pub(crate) mod heading;
mod instruction;
mod memory;
mod operand;
pub(crate) mod parameter;
mod parameters;
mod plain;
mod position;
mod rename;
mod section;
mod shape;
pub(crate) mod statics;
mod variable;
mod walker;

use std::iter;
use std::sync::Arc;

use heading::Headings;
use ptx_backend::input::{Function, SrcId, Stmt, Symbol};
use ptx_isa::Space;
use ptx_syntax::ItemKind;
use text_size::{TextRange, TextSize};
use walker::Walker;

use crate::db::{CacheModifiers, Db, Options, SourceFile};
use crate::diagnostic::Diagnostic;
use crate::ide::Access;
use crate::items::{Item, Part, items, parts};
use crate::scope::{DeclId, Declaration, Entity, RegisterName};

/// Where things stand in an item. Ranges are relative to the item.
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
    /// Every name that means something, in text order.
    pub occurrences: Vec<Occurrence>,
}

/// A name at a place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Occurrence {
    pub range: TextRange,
    pub entity: Entity,
    pub access: Access,
}

impl Occurrence {
    /// Whether it names a variable or a function.
    fn is_symbol(&self) -> bool {
        matches!(self.entity, Entity::Symbol(_))
    }
}

impl SourceMap {
    /// Makes it empty, with its memory.
    fn clear(&mut self) {
        let Self { statements, declarations, registers, labels, occurrences, .. } = self;
        statements.clear();
        declarations.clear();
        registers.clear();
        labels.clear();
        occurrences.clear();
        let Self { locals, params, returns, targets, prototypes, .. } = self;
        [locals, params, returns, targets, prototypes].into_iter().for_each(Vec::clear);
    }

    fn shrink_to_fit(&mut self) {
        let Self { statements, declarations, registers, labels, occurrences, .. } = self;
        statements.shrink_to_fit();
        declarations.shrink_to_fit();
        registers.shrink_to_fit();
        labels.shrink_to_fit();
        occurrences.shrink_to_fit();
        let Self { locals, params, returns, targets, prototypes, .. } = self;
        [locals, params, returns, targets, prototypes].into_iter().for_each(Vec::shrink_to_fit);
    }

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
    /// What the body declares in `.shared`, `.const` and `.global`.
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
    let part = Part::new(db, item);
    Session::run(db, item.file(db), iter::once(part), |session| {
        session.walk(part);
        session.walker.lowered()
    })
}

/// What [`lower`] finds, for those who need no more: the rest is dropped at once.
pub(crate) fn findings<'db>(db: &'db dyn Db, item: Item<'db>) -> &'db ItemFindings {
    let file = item.file(db);
    match file.is_frozen(db) {
        true => findings_in_file(db, file).of(db, item),
        false => findings_in_item(db, item),
    }
}

#[salsa::tracked]
fn findings_in_item<'db>(db: &'db dyn Db, item: Item<'db>) -> ItemFindings {
    let part = Part::new(db, item);
    Session::run(db, item.file(db), iter::once(part), |session| {
        session.walk(part);
        session.walker.findings()
    })
}

/// The findings of all items of a file that never changes, so that nothing needs to be kept item by item.
#[salsa::tracked]
fn findings_in_file(db: &dyn Db, file: SourceFile) -> FileFindings {
    let mut all = FileFindings::default();
    Session::run(db, file, parts(db, file), |session| {
        for part in parts(db, file) {
            session.walk(part);
            let found = session.walker.findings();
            if !found.is_empty() {
                all.items.push((part.offset(db), found));
            }
        }
    });
    all
}

/// What is found in the items of a file where something is, with their offsets, in text order.
pub(crate) fn all_findings(db: &dyn Db, file: SourceFile) -> Vec<(TextSize, &ItemFindings)> {
    if file.is_frozen(db) {
        return findings_in_file(db, file).items.iter().map(|(offset, found)| (*offset, found)).collect();
    }
    let all = items(db, file).iter().map(|&item| (item, findings_in_item(db, item)));
    all.filter(|(_, found)| !found.is_empty()).map(|(item, found)| (item.offset(db), found)).collect()
}

/// The findings of the items that have any, by their offset.
#[derive(Clone, PartialEq, Debug, Default)]
struct FileFindings {
    items: Vec<(TextSize, ItemFindings)>,
    nothing: ItemFindings,
}

impl FileFindings {
    fn of(&self, db: &dyn Db, item: Item<'_>) -> &ItemFindings {
        if self.items.is_empty() {
            return &self.nothing;
        }
        let found = self.items.binary_search_by_key(&item.offset(db), |&(offset, _)| offset);
        found.map_or(&self.nothing, |index| &self.items[index].1)
    }
}

/// Where things stand in an item with findings.
pub(crate) fn source_map<'db>(db: &'db dyn Db, item: Item<'db>) -> &'db SourceMap {
    findings(db, item).map.as_ref().unwrap_or_else(|| &lower(db, item).map)
}

/// A part of [`Lowered`].
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct ItemFindings {
    pub diagnostics: Box<[Diagnostic]>,
    pub storage: Box<[(Space, crate::check::limits::Block)]>,
    /// If there are findings, which are completed with it.
    map: Option<SourceMap>,
}

impl ItemFindings {
    fn is_empty(&self) -> bool {
        self.diagnostics.is_empty() && self.storage.is_empty()
    }
}

/// Walks items of a file one after the other.
struct Session<'db> {
    walker: Walker<'db>,
    memory: memory::Memory,
    headings: Headings<'db>,
}

impl<'db> Session<'db> {
    /// `parts` are those that `work` walks.
    fn run<T>(
        db: &'db dyn Db,
        file: SourceFile,
        parts: impl Iterator<Item = Part<'db>>,
        work: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let passed = memory::passed(db, file);
        let mut session =
            Self { walker: Walker::new(db, file), memory: passed.take(), headings: Headings::default() };
        let functions = parts.filter(|part| part.kind(db).is_function());
        if let Some(longest) = functions.map(|part| part.text(db)).max_by_key(|text| text.len()) {
            session.walker.reserve(longest);
        }
        let result = work(&mut session);
        passed.give_back(session.memory);
        result
    }

    /// Walks an item, by its tree only where that must be.
    fn walk(&mut self, part: Part<'db>) {
        self.walker.begin(part);
        if !self.walk_text(part.kind(self.walker.db)) {
            self.walker.begin(part);
            self.walker.tree(part.item(self.walker.db));
        }
    }

    /// Walks an item by its text. False where that has to be done by its tree.
    fn walk_text(&mut self, kind: ItemKind) -> bool {
        let text = self.walker.text;
        match kind {
            ItemKind::Entry | ItemKind::Func => {
                plain::walk(&mut self.walker, &mut self.memory, &mut self.headings)
            }
            ItemKind::Variable => {
                let declaration = self.headings.read_variable(text);
                declaration.map(|declaration| self.walker.module_variable(declaration)).is_some()
            }
            ItemKind::Section => section::is_plain(text, &self.walker.gates),
            _ => false,
        }
    }
}

/// Walks the tree of an item. [`lower`] gives the same, by a shorter way where there is one.
pub fn walk_tree<'db>(db: &'db dyn Db, item: Item<'db>) -> Lowered {
    let mut walker = Walker::new(db, item.file(db));
    walker.begin(Part::new(db, item));
    walker.tree(item);
    walker.lowered()
}

/// The function alone, launched and with its memory cached as the options say: equal after an edit that changes only comments, blanks and places.
#[salsa::tracked]
pub fn function<'db>(db: &'db dyn Db, item: Item<'db>) -> Option<Arc<Function>> {
    let function = lower(db, item).function.clone()?;
    let launch = Options::get(db).launch(db).of(function.launch);
    let caches = Options::get(db).caches(db);
    let same_launch = !function.entry || launch == function.launch;
    let has_old_parameters =
        parameters::are_in_body(&function, crate::module::header(db, item.file(db)).version);
    let has_statics = statics::any_in(&function);
    if same_launch && caches == CacheModifiers::default() && !has_old_parameters && !has_statics {
        return Some(function);
    }
    let mut function = Function::clone(&function);
    if has_old_parameters {
        parameters::leave_body(&mut function);
    }
    if has_statics {
        statics::leave_body(db, item, &mut function);
    }
    if function.entry {
        function.launch = launch;
    }
    for statement in &mut function.body {
        if let Stmt::Instr(instr) = statement
            && let Some(opcode) = caches.of(&instr.opcode)
        {
            instr.opcode = opcode;
        }
    }
    Some(Arc::new(function))
}
