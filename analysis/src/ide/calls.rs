//! The call hierarchy.

use ptx_backend::input::Symbol;
use text_size::{TextRange, TextSize};

use crate::db::{Database, Db, SourceFile};
use crate::ide::Usage;
use crate::items::{Item, items};
use crate::locate::{Found, name_at, spot, trimmed};
use crate::lower::lower;
use crate::module::module;
use crate::scope::Entity;

/// A function of a call hierarchy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CallNode {
    pub name: String,
    pub is_entry: bool,
    pub full: TextRange,
    pub focus: TextRange,
}

/// A caller or callee of a function, and the ranges of the callee's name in the caller.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Calls {
    pub function: CallNode,
    pub places: Vec<TextRange>,
}

/// The function whose name is at an offset, otherwise the function around the offset.
pub fn call_node(db: &Database, file: SourceFile, offset: TextSize) -> Option<CallNode> {
    if let Some((_, Found::Name(occurrence))) = name_at(db, file, offset)
        && let Entity::Symbol(Symbol::Function(index)) = occurrence.entity
    {
        return of_index(db, file, index);
    }
    let item = spot(db, file, offset)?.item;
    lower(db, item).has_body.then(|| of_item(db, file, item)).flatten()
}

/// The functions that mention the function with this name.
pub fn callers(db: &Database, file: SourceFile, name: &str) -> Vec<Calls> {
    let Some(wanted) = index_of(db, file, name) else { return Vec::new() };
    let bodies = items(db, file).iter().filter(|&&item| lower(db, item).has_body);
    let calls = bodies.filter_map(|&item| {
        let all = mentions(db, item).filter(|(index, _)| *index == wanted);
        let places: Vec<TextRange> = all.map(|(_, range)| range).collect();
        let function = (!places.is_empty()).then(|| of_item(db, file, item)).flatten()?;
        Some(Calls { function, places })
    });
    calls.collect()
}

/// The functions that the function with this name mentions, in the order of their first mentions.
pub fn callees(db: &Database, file: SourceFile, name: &str) -> Vec<Calls> {
    let is_body = |item: &&Item<'_>| item.name(db) == name && lower(db, **item).has_body;
    let Some(&item) = items(db, file).iter().find(is_body) else { return Vec::new() };
    let mut found: Vec<(u32, Vec<TextRange>)> = Vec::new();
    for (index, range) in mentions(db, item) {
        match found.iter_mut().find(|(other, _)| *other == index) {
            Some((_, places)) => places.push(range),
            None => found.push((index, vec![range])),
        }
    }
    let calls = found
        .into_iter()
        .filter_map(|(index, places)| Some(Calls { function: of_index(db, file, index)?, places }));
    calls.collect()
}

/// The functions that an item names, with the ranges in the file.
fn mentions<'db>(db: &'db dyn Db, item: Item<'db>) -> impl Iterator<Item = (u32, TextRange)> + 'db {
    let offset = item.offset(db);
    lower(db, item).map.occurrences.iter().filter_map(move |occurrence| match occurrence.entity {
        Entity::Symbol(Symbol::Function(index)) if occurrence.access != Usage::Declaration => {
            Some((index, occurrence.range + offset))
        }
        _ => None,
    })
}

fn index_of(db: &dyn Db, file: SourceFile, name: &str) -> Option<u32> {
    let functions = &module(db, file).env.functions;
    functions.iter().position(|function| function.name == name).map(|index| index as u32)
}

fn of_index(db: &dyn Db, file: SourceFile, index: u32) -> Option<CallNode> {
    let module = module(db, file);
    let place = module.function_items.get(index as usize)?;
    of_item(db, file, *items(db, file).get(place.item as usize)?)
}

fn of_item(db: &dyn Db, file: SourceFile, item: Item<'_>) -> Option<CallNode> {
    let name = item.name(db).to_string();
    let functions = &module(db, file).env.functions;
    let is_entry = functions.iter().any(|function| function.entry && function.name == name);
    let full = trimmed(db, item);
    let focus = lower(db, item).map.name_range().map_or(full, |range| range + item.offset(db));
    Some(CallNode { name, is_entry, full, focus })
}
