//! Converts an item's text to the backend's input, and reports all errors on the way.
//!
//! One walk over the item's [flat tree](ptx_syntax::flat) resolves names and instructions, builds the position-free
//! [`Function`], records the range of each statement and name, and runs the checks. It never fails: a function with
//! errors has no [`Function`]. All diagnostics are kept with their default levels. [`crate::ide::diagnostics`] applies
//! settings and suppressions later, so that a changed setting repeats no walk, unless it turns on
//! [`crate::check::Extras`].

mod body;
pub mod call;
mod instruction;
mod operand;
mod parameters;
mod passed;
mod rename;
pub(crate) mod statics;
mod variable;
mod walker;

use std::iter;
use std::sync::Arc;

use ptx_backend::input::{Function, Stmt, Variable};
use ptx_isa::Space;
use ptx_syntax::flat::FlatTree;
use text_size::{TextRange, TextSize};
use walker::Walker;

use crate::db::{CacheModifiers, Db, Options, SourceFile};
use crate::diagnostic::Diagnostic;
use crate::items::{Item, Part, items, parts};
use crate::signature::{ItemDecl, item_decl};
use crate::source_map::SourceMap;

/// The result of the walk over an item.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Lowered {
    /// Only for functions with a body and without errors.
    pub function: Option<Arc<Function>>,
    pub has_body: bool,
    /// The variables that the body declares in `.shared`, `.const` and `.global`.
    pub storage: Box<[(Space, crate::check::limits::Block)]>,
    pub(crate) uses: Uses,
    /// The first statement that prevents a [`Function`], because it is wrong or not understood.
    pub not_understood: Option<TextRange>,
    pub map: SourceMap,
    /// The diagnostics in text order, of all levels.
    pub diagnostics: Box<[Diagnostic]>,
}

impl Lowered {
    /// Without the map, which is here.
    fn findings(&self) -> ItemFindings {
        let (diagnostics, storage) = (self.diagnostics.clone(), self.storage.clone());
        ItemFindings { diagnostics, storage, uses: self.uses.clone(), map: None }
    }
}

/// What an item mentions of its module, as indices there, in ascending order.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Uses {
    pub variables: Box<[u32]>,
    /// The functions that the item calls or whose addresses it takes.
    pub functions: Box<[u32]>,
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

/// The findings of [`lower`], for callers that need nothing else: the rest is dropped at once.
pub(crate) fn findings<'db>(db: &'db dyn Db, item: Item<'db>) -> &'db ItemFindings {
    let file = item.file(db);
    match file.is_frozen(db) {
        true => findings_in_file(db, file).of(db, item),
        false => findings_in_item(db, item),
    }
}

#[salsa::tracked]
fn findings_in_item<'db>(db: &'db dyn Db, item: Item<'db>) -> ItemFindings {
    if item.is_edited(db) {
        // One walk for this query and all later ones.
        return lower(db, item).findings();
    }
    let part = Part::new(db, item);
    Session::run(db, item.file(db), iter::once(part), |session| {
        session.walk(part);
        session.walker.findings()
    })
}

/// The findings of all items of a file that never changes, so that nothing is stored for each item. If the functions
/// are compiled next, each walk is the one that the compiler will ask for.
#[salsa::tracked]
fn findings_in_file(db: &dyn Db, file: SourceFile) -> FileFindings {
    let is_kept = |part: &Part<'_>| file.is_compiled_next(db) && part.kind(db).is_function();
    let mut all = FileFindings::default();
    Session::run(db, file, parts(db, file).filter(|part| !is_kept(part)), |session| {
        for part in parts(db, file) {
            let found = if is_kept(&part) {
                lower(db, part.item(db)).findings()
            } else {
                session.walk(part);
                session.walker.findings()
            };
            if !found.is_empty() {
                all.items.push((part.offset(db), found));
            }
        }
    });
    all
}

/// The findings of the items that have any, with the offsets of the items, in text order.
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

/// The functions with a body in a file, in text order.
pub fn functions<'db>(db: &'db dyn Db, file: SourceFile) -> impl Iterator<Item = Item<'db>> {
    items(db, file).iter().copied().filter(move |&item| has_body(db, item))
}

/// Whether an item is a function with a body. Does not walk the item.
pub(crate) fn has_body<'db>(db: &'db dyn Db, item: Item<'db>) -> bool {
    item.kind(db).is_function()
        && matches!(item_decl(db, item), ItemDecl::Function(function) if function.has_body)
}

/// The source map of an item with findings.
pub(crate) fn source_map<'db>(db: &'db dyn Db, item: Item<'db>) -> &'db SourceMap {
    findings(db, item).map.as_ref().unwrap_or_else(|| &lower(db, item).map)
}

/// An item with resolved names. It is not stored.
pub(crate) struct Resolved<'w> {
    pub(crate) tree: &'w FlatTree,
    pub(crate) map: &'w SourceMap,
    /// The variables that the body declares.
    pub(crate) locals: &'w [Variable],
}

/// Resolves the names of an item for `read`. Features that examine all items of a file use this and store only their
/// own results: the data that [`lower`] stores is several times the size of the text.
pub(crate) fn resolved<'db, T>(db: &'db dyn Db, item: Item<'db>, read: impl FnOnce(&Resolved<'_>) -> T) -> T {
    let part = Part::new(db, item);
    Session::run(db, item.file(db), iter::once(part), |session| {
        session.walk(part);
        session.walker.finish_map();
        let Session { walker, tree } = session;
        read(&Resolved { tree, map: &walker.map, locals: &walker.function.locals })
    })
}

/// A part of [`Lowered`].
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct ItemFindings {
    pub diagnostics: Box<[Diagnostic]>,
    pub storage: Box<[(Space, crate::check::limits::Block)]>,
    pub uses: Uses,
    /// Only if there are findings, which are completed with it.
    map: Option<SourceMap>,
}

impl ItemFindings {
    fn is_empty(&self) -> bool {
        self.diagnostics.is_empty() && self.storage.is_empty() && self.uses == Uses::default()
    }
}

/// Walks items of a file one after the other.
struct Session<'db> {
    walker: Walker<'db>,
    /// The tree of the current item.
    tree: FlatTree,
}

impl<'db> Session<'db> {
    /// `parts` are the items that `work` walks.
    fn run<T>(
        db: &'db dyn Db,
        file: SourceFile,
        parts: impl Iterator<Item = Part<'db>>,
        work: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let mut walker = Walker::new(db, file);
        let tree = std::mem::take(&mut walker.known.room.tree);
        let mut session = Self { walker, tree };
        let functions = parts.filter(|part| part.kind(db).is_function());
        if let Some(longest) = functions.map(|part| part.text(db)).max_by_key(|text| text.len()) {
            session.walker.reserve(longest);
        }
        let result = work(&mut session);
        session.walker.end(session.tree);
        result
    }

    fn walk(&mut self, part: Part<'db>) {
        self.walker.begin(part);
        // The blanks at the end of a file may contain errors too: an open comment, or a preprocessor directive.
        self.tree.parse(self.walker.text);
        self.walker.item(part.kind(self.walker.db), &self.tree);
    }
}

/// Walks an item and checks every instruction, even those with a shape that has passed. The result is the same as that
/// of [`lower`].
pub fn walk_without_shapes<'db>(db: &'db dyn Db, item: Item<'db>) -> Lowered {
    let part = Part::new(db, item);
    Session::run(db, item.file(db), iter::once(part), |session| {
        session.walker.known.passed = passed::Passed::of_nothing();
        session.walk(part);
        session.walker.lowered()
    })
}

/// The function alone, with the launch bounds and cache operators of the options: it does not change with an edit of
/// comments, blanks and positions only.
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
