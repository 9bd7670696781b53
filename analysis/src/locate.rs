//! Converts file offsets to items and back.

use text_size::{TextRange, TextSize};

use crate::db::{Db, SourceFile};
use crate::items::{Item, item, item_at, items};
use crate::lower::lower;
use crate::module::{DeclaredName, module};
use crate::scope::{DeclId, Entity};
use crate::source_map::{Occurrence, Usage};
use ptx_backend::input::Symbol;

/// A position in the file.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Target {
    /// The whole declaration or function.
    pub full: TextRange,
    /// Its name.
    pub focus: TextRange,
}

/// An item and an offset inside it.
#[derive(Clone, Copy)]
pub(crate) struct Spot<'db> {
    pub(crate) item: Item<'db>,
    /// Relative to the item.
    pub(crate) offset: TextSize,
}

pub(crate) fn spot<'db>(db: &'db dyn Db, file: SourceFile, offset: TextSize) -> Option<Spot<'db>> {
    let item = item_at(db, file, offset)?;
    let text = item.text(db);
    // Offsets after the end, or inside a character, count as the position before.
    let inside = text.floor_char_boundary(usize::from(offset - item.offset(db)));
    Some(Spot { item, offset: TextSize::new(inside as u32) })
}

/// The name at an offset.
#[derive(Clone, Copy)]
pub(crate) enum Found {
    Name(Occurrence),
    /// A declaration whose registers are not mentioned individually here.
    Declaration(DeclId, TextRange),
}

/// The name at an offset; the offset may be at the end of the name.
pub(crate) fn name_at<'db>(
    db: &'db dyn Db,
    file: SourceFile,
    offset: TextSize,
) -> Option<(Item<'db>, Found)> {
    let before = (offset > TextSize::new(0)).then(|| offset - TextSize::new(1));
    [Some(offset), before].into_iter().flatten().find_map(|offset| {
        let Spot { item, offset } = spot(db, file, offset)?;
        let map = &lower(db, item).map;
        if let Some(occurrence) = map.occurrence_at(offset) {
            return Some((item, Found::Name(*occurrence)));
        }
        let index = map
            .declarations
            .iter()
            .position(|d| !d.range.is_empty() && d.range.contains_inclusive(offset))?;
        Some((item, Found::Declaration(DeclId(index as u32), map.declarations[index].range)))
    })
}

/// Items that overlap a range of the file.
pub(crate) fn items_in<'db>(
    db: &'db dyn Db,
    file: SourceFile,
    range: Option<TextRange>,
) -> impl Iterator<Item = Item<'db>> {
    let overlaps =
        move |item: &Item<'db>| range.is_none_or(|range| range.intersect(item.range(db)).is_some());
    items(db, file).iter().copied().filter(overlaps)
}

/// The declaration of a name of module scope in the file.
pub(crate) fn module_target(db: &dyn Db, file: SourceFile, symbol: Symbol) -> Option<Target> {
    let module = module(db, file);
    let place: DeclaredName = match symbol {
        Symbol::Global(index) => *module.variable_items.get(index as usize)?,
        Symbol::Function(index) => *module.function_items.get(index as usize)?,
        Symbol::Local(_) | Symbol::Param(_) | Symbol::Return(_) => return None,
    };
    let item = item(db, file, place.item)?;
    let focus = declared_name(db, item, symbol)?;
    Some(Target { full: trimmed(db, item), focus: focus + item.offset(db) })
}

/// The range in the file in which an item declares a name.
pub(crate) fn place_range(db: &dyn Db, file: SourceFile, place: DeclaredName) -> Option<TextRange> {
    let item = item(db, file, place.item)?;
    let declared = lower(db, item).map.occurrences.iter().filter(|o| {
        o.access == Usage::Declaration
            && matches!(o.entity, Entity::Symbol(Symbol::Global(_) | Symbol::Function(_)))
    });
    let name = declared.map(|occurrence| occurrence.range + item.offset(db)).nth(place.declarator as usize);
    name.or_else(|| Some(trimmed(db, item)))
}

fn declared_name(db: &dyn Db, item: Item<'_>, symbol: Symbol) -> Option<TextRange> {
    let mut all = lower(db, item).map.occurrences.iter();
    let declared = |o: &&Occurrence| o.access == Usage::Declaration && o.entity == Entity::Symbol(symbol);
    all.find(declared).map(|occurrence| occurrence.range)
}

/// The item in the file without the blanks and comments before it.
pub(crate) fn trimmed(db: &dyn Db, item: Item<'_>) -> TextRange {
    trimmed_text(item.text(db)) + item.offset(db)
}

/// The text of an item without the blanks and comments before it.
pub(crate) fn trimmed_text(text: &str) -> TextRange {
    let first = ptx_syntax::next_token(text, TextSize::new(0));
    let start = if first == TextSize::of(text) { TextSize::new(0) } else { first };
    TextRange::new(start, TextSize::of(text.trim_end()).max(start))
}
