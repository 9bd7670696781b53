//! Declarations, references and renaming.

use ptx_backend::input::Symbol;
use ptx_isa::{ScalarType, SpecialReg};
use ptx_syntax::{NodeOrToken, SyntaxKind, SyntaxNode, SyntaxToken};
use text_size::{TextRange, TextSize};

use crate::db::{Database, Db, SourceFile};
use crate::diagnostic::TextEdit;
use crate::ide::{Reference, Target, Usage};
use crate::items::{Item, items, parse};
use crate::locate::{Found, module_target, name_at, spot};
use crate::lower::lower;
use crate::scope::{DeclId, DeclKind, Entity};

/// The entity that a name refers to, across the file.
#[derive(Clone, Copy)]
enum Subject<'db> {
    /// One register, label, variable or list of a body.
    Local(Item<'db>, Entity),
    /// A declaration with all its registers.
    Declared(Item<'db>, DeclId),
    Module(Symbol),
}

impl<'db> Subject<'db> {
    /// The item that declares it; `None` for a name of the module.
    fn item(self) -> Option<Item<'db>> {
        match self {
            Subject::Local(item, _) | Subject::Declared(item, _) => Some(item),
            Subject::Module(_) => None,
        }
    }
}

fn subject<'db>(db: &'db dyn Db, file: SourceFile, offset: TextSize) -> Option<(Subject<'db>, TextRange)> {
    let (item, found) = name_at(db, file, offset)?;
    Some(match found {
        Found::Name(occurrence) => {
            let subject = match occurrence.entity {
                Entity::Symbol(symbol @ (Symbol::Global(_) | Symbol::Function(_))) => Subject::Module(symbol),
                entity => Subject::Local(item, entity),
            };
            (subject, occurrence.range + item.offset(db))
        }
        Found::Declaration(id, range) => (Subject::Declared(item, id), range + item.offset(db)),
    })
}

/// Where the name at an offset is declared.
pub fn definition(db: &Database, file: SourceFile, offset: TextSize) -> Option<Target> {
    let (subject, _) = subject(db, file, offset)?;
    let (item, id) = match subject {
        Subject::Module(symbol) => return module_target(db, file, symbol),
        Subject::Declared(item, id) => (item, id),
        Subject::Local(item, entity) => (item, lower(db, item).map.declaration_of(entity)?),
    };
    let focus = lower(db, item).map.declarations.get(id.0 as usize)?.range;
    // Registers of module scope are not declared in the item.
    (!focus.is_empty()).then(|| Target { full: focus + item.offset(db), focus: focus + item.offset(db) })
}

/// The first declaration of the name at an offset: for a function, its prototype if there is one.
pub fn declaration(db: &Database, file: SourceFile, offset: TextSize) -> Option<Target> {
    let (subject, _) = subject(db, file, offset)?;
    if !matches!(subject, Subject::Module(_)) {
        return definition(db, file, offset);
    }
    let first =
        uses(db, file, subject).into_iter().find(|reference| reference.access == Usage::Declaration)?;
    Some(Target { full: first.range, focus: first.range })
}

/// Every use of the name at an offset, its declaration included, in text order.
pub fn references(db: &Database, file: SourceFile, offset: TextSize) -> Option<Vec<Reference>> {
    let (subject, _) = subject(db, file, offset)?;
    Some(uses(db, file, subject))
}

/// The uses of the name at an offset in the same item.
pub fn highlights(db: &Database, file: SourceFile, offset: TextSize) -> Option<Vec<Reference>> {
    let (subject, range) = subject(db, file, offset)?;
    let mut all = uses(db, file, subject);
    if matches!(subject, Subject::Module(_)) {
        let item = crate::items::item_at(db, file, range.start())?;
        all.retain(|reference| item.range(db).contains_range(reference.range));
    }
    Some(all)
}

fn uses(db: &dyn Db, file: SourceFile, subject: Subject<'_>) -> Vec<Reference> {
    let in_item = |item: Item<'_>, wanted: &dyn Fn(Entity) -> bool| -> Vec<Reference> {
        let offset = item.offset(db);
        let all = lower(db, item).map.occurrences.iter().filter(|o| wanted(o.entity));
        all.map(|o| Reference { range: o.range + offset, access: o.access }).collect()
    };
    match subject {
        Subject::Module(symbol) => items(db, file)
            .iter()
            .flat_map(|&item| in_item(item, &|entity| entity == Entity::Symbol(symbol)))
            .collect(),
        Subject::Declared(item, id) => {
            let map = &lower(db, item).map;
            let mut all = in_item(item, &|entity| map.declaration_of(entity) == Some(id));
            add_declaration(db, item, id, &mut all);
            all
        }
        Subject::Local(item, entity) => {
            let mut all = in_item(item, &|other| other == entity);
            if let Some(id) = lower(db, item).map.declaration_of(entity) {
                add_declaration(db, item, id, &mut all);
            }
            all
        }
    }
}

fn add_declaration(db: &dyn Db, item: Item<'_>, id: DeclId, all: &mut Vec<Reference>) {
    let range = lower(db, item).map.declarations[id.0 as usize].range;
    if !range.is_empty() && !all.iter().any(|reference| reference.access == Usage::Declaration) {
        let reference = Reference { range: range + item.offset(db), access: Usage::Declaration };
        let at = all.partition_point(|other| other.range.start() < reference.range.start());
        all.insert(at, reference);
    }
}

/// The declaration of the type or the prototype of the name at an offset.
pub fn type_definition(db: &Database, file: SourceFile, offset: TextSize) -> Option<Target> {
    let name = definition(db, file, offset)?.focus;
    let spot = spot(db, file, name.start())?;
    let root = parse(db, spot.item).syntax();
    let token = root.token_at_offset(spot.offset).right_biased()?;
    let declares = |node: &SyntaxNode| matches!(node.kind(), SyntaxKind::VARIABLE | SyntaxKind::PARAM);
    let declaration = token.parent_ancestors().find(declares)?;
    let is_type = |token: &SyntaxToken| {
        let name = token.text().strip_prefix('.');
        token.kind() == SyntaxKind::DOT_WORD && name.is_some_and(|name| ScalarType::parse(name).is_some())
    };
    let tokens = declaration.children_with_tokens().filter_map(NodeOrToken::into_token);
    let focus = tokens.into_iter().find(is_type)?.text_range() + spot.item.offset(db);
    Some(Target { full: declaration.text_range() + spot.item.offset(db), focus })
}

/// The ranges of the label at an offset, which are edited together.
pub fn linked_ranges(db: &Database, file: SourceFile, offset: TextSize) -> Option<Vec<TextRange>> {
    let (subject, _) = subject(db, file, offset)?;
    matches!(subject, Subject::Local(_, Entity::Label(_))).then(|| {
        let all = uses(db, file, subject);
        all.into_iter().map(|reference| reference.range).collect()
    })
}

/// The name that a rename at this offset would change.
pub fn prepare_rename(db: &Database, file: SourceFile, offset: TextSize) -> Option<TextRange> {
    let (subject, range) = subject(db, file, offset)?;
    (!is_of_module_scope(db, subject)).then_some(range)
}

/// Whether the name is a register of module scope, whose declaration is in another item.
fn is_of_module_scope(db: &dyn Db, subject: Subject<'_>) -> bool {
    let Subject::Local(item, entity) = subject else { return false };
    let map = &lower(db, item).map;
    let declaration = map.declaration_of(entity).and_then(|id| map.declarations.get(id.0 as usize));
    declaration.is_some_and(|declaration| declaration.range.is_empty())
}

/// The declaration `%r<10>` to which a register belongs, if it has no declaration of its own.
fn one_of_range(db: &dyn Db, subject: Subject<'_>) -> Option<DeclId> {
    let Subject::Local(item, entity) = subject else { return None };
    let map = &lower(db, item).map;
    let id = map.declaration_of(entity)?;
    matches!(map.declarations[id.0 as usize].kind, DeclKind::Register { count: Some(_), .. }).then_some(id)
}

/// The edits that rename the name at an offset. A register of a range gets its own declaration.
///
/// # Errors
/// States why the name cannot be changed, or not to this.
pub fn rename(
    db: &Database,
    file: SourceFile,
    offset: TextSize,
    new_name: &str,
) -> Result<Vec<TextEdit>, String> {
    let (subject, range) = subject(db, file, offset).ok_or("no name at this position")?;
    if is_of_module_scope(db, subject) {
        return Err("a register of module scope cannot be renamed".to_owned());
    }
    if !is_identifier(new_name) {
        return Err(format!("`{new_name}` is not a valid PTX name"));
    }
    let text = file.text(db);
    let old_name = &text[range];
    if new_name == old_name {
        return Ok(Vec::new());
    }
    if let Some(conflict) = conflict(db, file, subject, new_name) {
        return Err(conflict);
    }
    let all = uses(db, file, subject).into_iter();
    if let Some((item, id)) = one_of_range(db, subject).and_then(|id| Some((subject.item()?, id))) {
        let mentions = all.filter(|reference| reference.access != Usage::Declaration);
        let mut edits: Vec<TextEdit> = mentions
            .map(|reference| TextEdit { range: reference.range, text: new_name.to_owned() })
            .collect();
        let end = end_of_range(db, item, id).ok_or("the declaration of the range is not complete")?;
        edits.insert(0, TextEdit { range: TextRange::empty(end), text: format!(", {new_name}") });
        return Ok(edits);
    }
    let edits = all.map(|reference| {
        // A register of a range keeps its number.
        let number = text[reference.range].strip_prefix(old_name).unwrap_or_default();
        TextEdit { range: reference.range, text: format!("{new_name}{number}") }
    });
    Ok(edits.collect())
}

/// The place in the file after `%r<10>`.
fn end_of_range(db: &dyn Db, item: Item<'_>, id: DeclId) -> Option<TextSize> {
    let name = lower(db, item).map.declarations.get(id.0 as usize)?.range;
    let behind = &item.text(db)[usize::from(name.end())..];
    // A declaration without its `>` has no members.
    let length = behind.find('>')? + 1;
    Some(name.end() + TextSize::new(length as u32) + item.offset(db))
}

/// Why a name cannot be used.
fn conflict(db: &dyn Db, file: SourceFile, subject: Subject<'_>, new_name: &str) -> Option<String> {
    if SpecialReg::parse(new_name).is_some() || SpecialReg::parse(&format!("{new_name}.x")).is_some() {
        return Some(format!("`{new_name}` is a special register"));
    }
    let declared_in = |item: Item<'_>, new: Names<'_>| declared_in(db, item, new, &[]);
    let Some(item) = subject.item() else {
        let new = Names { name: new_name, count: None };
        // A local name would hide the new one.
        let in_item =
            |&item: &Item<'_>| Some(declared_in(item, new)?.text(&format!(" in `{}`", item.name(db))));
        return in_module(db, file, new).or_else(|| items(db, file).iter().find_map(in_item));
    };
    let count = match subject {
        Subject::Declared(_, id) => range_count(&lower(db, item).map.declarations[id.0 as usize].kind),
        _ => None,
    };
    let new = Names { name: new_name, count };
    in_module(db, file, new).or_else(|| Some(declared_in(item, new)?.text("")))
}

/// Why names cannot be used beside those of an item, apart from some of its declarations.
pub(super) fn declared_in(db: &dyn Db, item: Item<'_>, new: Names<'_>, apart: &[DeclId]) -> Option<Clash> {
    let (map, text) = (&lower(db, item).map, item.text(db));
    let others = (0..).zip(&map.declarations).filter(|(id, _)| !apart.contains(&DeclId(*id)));
    others.into_iter().find_map(|(_, declaration)| {
        new.clash(Names { name: &text[declaration.range], count: range_count(&declaration.kind) })
    })
}

/// Why names cannot be used beside the names of the module.
pub(super) fn in_module(db: &dyn Db, file: SourceFile, new: Names<'_>) -> Option<String> {
    let names = crate::module::module(db, file).names.keys();
    let all = names.filter_map(|name| new.clash(Names { name, count: None }));
    // The first one in alphabetic order, so that the answer is always the same.
    let found = all.min_by(|one, other| one.name.cmp(&other.name));
    Some(found?.text(" in the module"))
}

/// The names of a declaration: one name, or `name0` to `name9` of `name<10>`.
#[derive(Clone, Copy)]
pub(super) struct Names<'t> {
    pub(super) name: &'t str,
    pub(super) count: Option<u32>,
}

/// Why two declarations exclude each other.
pub(super) struct Clash {
    name: String,
    /// The range to which the name belongs: ``by `%r<4>` ``.
    by: String,
    /// The range that would declare the name again.
    again: String,
}

impl Clash {
    fn text(self, place: &str) -> String {
        let Self { name, by, again } = self;
        format!("`{name}` is already declared{by}{place}{again}")
    }
}

impl<'t> Names<'t> {
    /// The name that these new names share with those of another declaration.
    fn clash(self, old: Names<'_>) -> Option<Clash> {
        let clash = |name: &str, by, again| Some(Clash { name: name.to_owned(), by, again });
        if self.name == old.name {
            return clash(self.name, String::new(), String::new());
        }
        if old.has(self.name) {
            return clash(self.name, format!(" by {old}"), String::new());
        }
        let again = || format!(", and {self} would declare it again");
        self.has(old.name).then(|| clash(old.name, String::new(), again()))?
    }

    /// Whether a name is one of a range. Its number may have leading zeros.
    fn has(self, name: &str) -> bool {
        let number = name.strip_prefix(self.name).and_then(|number| number.parse::<u32>().ok());
        self.count.zip(number).is_some_and(|(count, number)| number < count)
    }
}

impl std::fmt::Display for Names<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.count {
            Some(count) => write!(f, "`{}<{count}>`", self.name),
            None => write!(f, "`{}`", self.name),
        }
    }
}

fn range_count(kind: &DeclKind) -> Option<u32> {
    match kind {
        DeclKind::Register { count, .. } => *count,
        _ => None,
    }
}

/// `[a-zA-Z][a-zA-Z0-9_$]*` or `[_$%][a-zA-Z0-9_$]+`, as the manual has it.
fn is_identifier(name: &str) -> bool {
    let follows = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$');
    let mut rest = name.chars();
    match rest.next() {
        Some(c) if c.is_ascii_alphabetic() => rest.all(follows),
        Some('_' | '$' | '%') => name.len() > 1 && rest.all(follows),
        _ => false,
    }
}
