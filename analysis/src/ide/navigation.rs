//! Declarations, uses and renaming.

use ptx_backend::input::Symbol;
use text_size::{TextRange, TextSize};

use crate::db::{Database, Db, SourceFile};
use crate::diagnostic::TextEdit;
use crate::ide::{Reference, Target, Usage};
use crate::items::{Item, items};
use crate::locate::{Found, module_target, name_at};
use crate::lower::lower;
use crate::scope::{DeclId, DeclKind, Entity};

/// What a name is, across the file.
#[derive(Clone, Copy)]
enum Subject<'db> {
    /// One register, label, variable or list of a body.
    Local(Item<'db>, Entity),
    /// A declaration with all its registers.
    Declared(Item<'db>, DeclId),
    Module(Symbol),
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
    // Registers of module scope have no place in the item.
    (!focus.is_empty()).then(|| Target { full: focus + item.offset(db), focus: focus + item.offset(db) })
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

/// The name that a rename at this offset would change.
pub fn prepare_rename(db: &Database, file: SourceFile, offset: TextSize) -> Option<TextRange> {
    let (subject, range) = subject(db, file, offset)?;
    one_of_range(db, subject).is_none().then_some(range)
}

/// The declaration `%r<10>` to which a register belongs, if it has no declaration of its own.
fn one_of_range(db: &dyn Db, subject: Subject<'_>) -> Option<DeclId> {
    let Subject::Local(item, entity) = subject else { return None };
    let map = &lower(db, item).map;
    let id = map.declaration_of(entity)?;
    matches!(map.declarations[id.0 as usize].kind, DeclKind::Register { count: Some(_), .. }).then_some(id)
}

/// The edits that rename the name at an offset.
///
/// # Errors
/// Says why the name cannot be changed, or not to this.
pub fn rename(
    db: &Database,
    file: SourceFile,
    offset: TextSize,
    new_name: &str,
) -> Result<Vec<TextEdit>, String> {
    let (subject, range) = subject(db, file, offset).ok_or("no name at this position")?;
    if one_of_range(db, subject).is_some() {
        return Err("this register belongs to a range; rename the declaration of the range".to_owned());
    }
    if !is_identifier(new_name) {
        return Err(format!("`{new_name}` is not a valid PTX name"));
    }
    let text = file.text(db);
    let old_name = &text[range];
    let taken = match subject {
        Subject::Local(item, _) | Subject::Declared(item, _) => {
            let (map, text) = (&lower(db, item).map, item.text(db));
            map.declarations.iter().any(|declaration| &text[declaration.range] == new_name)
        }
        Subject::Module(_) => crate::module::module(db, file).names.contains_key(new_name),
    };
    if taken {
        return Err(format!("`{new_name}` is already declared"));
    }
    let edits = uses(db, file, subject).into_iter().map(|reference| {
        // A member of a range keeps its number.
        let number = text[reference.range].strip_prefix(old_name).unwrap_or_default();
        TextEdit { range: reference.range, text: format!("{new_name}{number}") }
    });
    Ok(edits.collect())
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
