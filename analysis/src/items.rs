//! A file as a list of items, and each item as a tree.
//!
//! An item's identity is its kind and name, with equal ones numbered in their order. Its text and its place are
//! fields of their own, so an edit changes the text of one item and the places of those behind it, and only
//! what reads those runs again. Items carry their own text because a slice of the file would tie every query
//! about an item to the whole file, and every unchanged item would keep the version of the file that it came with;
//! those of a file that never changes are slices.

use ::line_index::LineIndex;
use ptx_syntax::{ItemKind, Parse};
use rustc_hash::FxHashMap;
use smol_str::SmolStr;
use text_size::{TextRange, TextSize};

use crate::db::{Db, SourceFile};
use crate::text::Text;

/// A top-level item with the blanks and comments before it.
#[salsa::tracked(debug)]
pub struct Item<'db> {
    #[returns(copy)]
    pub file: SourceFile,
    #[returns(copy)]
    pub kind: ItemKind,
    /// Empty for directives.
    pub name: SmolStr,
    /// How many items of this kind and name are before it. The database could tell them apart itself, but in time
    /// that grows with the square of their number.
    #[returns(copy)]
    pub ordinal: u32,
    #[tracked]
    #[returns(deref)]
    pub text: Text,
    /// Where the item starts in the file.
    #[tracked]
    #[returns(copy)]
    pub offset: TextSize,
}

impl<'db> Item<'db> {
    /// The item's range in the file.
    pub fn range(self, db: &'db dyn Db) -> TextRange {
        TextRange::at(self.offset(db), TextSize::of(self.text(db)))
    }
}

/// Cuts a file into items, in text order. Their ranges cover the file.
#[salsa::tracked(returns(deref))]
pub fn items<'db>(db: &'db dyn Db, file: SourceFile) -> Box<[Item<'db>]> {
    let (text, is_frozen) = (file.text(db), file.is_frozen(db));
    let raw = ptx_syntax::split(text);
    let mut equals: FxHashMap<(ItemKind, SmolStr), u32> = FxHashMap::default();
    equals.reserve(raw.len());
    raw.into_iter()
        .map(|raw| {
            let name = raw.name.map_or_else(SmolStr::default, |name| SmolStr::new(&text[name]));
            let equal = equals.entry((raw.kind, name.clone())).or_default();
            let ordinal = *equal;
            *equal += 1;
            let part = if is_frozen { text.part(raw.range) } else { Text::from(&text[raw.range]) };
            Item::new(db, file, raw.kind, name, ordinal, part, raw.range.start())
        })
        .collect()
}

/// The tree of an item and its syntax errors. Large, so only recently used ones are kept.
#[salsa::tracked(no_eq, lru = 128)]
pub fn parse<'db>(db: &'db dyn Db, item: Item<'db>) -> Parse {
    ptx_syntax::parse_item(item.text(db))
}

/// The item at an offset; at a boundary the later one.
pub fn item_at<'db>(db: &'db dyn Db, file: SourceFile, offset: TextSize) -> Option<Item<'db>> {
    let items = items(db, file);
    let after = items.partition_point(|item| item.offset(db) <= offset);
    items[..after].last().copied()
}

#[salsa::tracked]
pub fn line_index(db: &dyn Db, file: SourceFile) -> LineIndex {
    LineIndex::new(file.text(db))
}
