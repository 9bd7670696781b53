//! Splits a file into items, and parses each item to a tree.
//!
//! An item is identified by its kind and name, and by its index among items with the same kind and name. Its text and
//! its offset are separate fields. So an edit changes the text of one item and the offsets of later ones, and only
//! queries that read these fields run again. Items own their text: a slice of the file would make every query about an
//! item depend on the whole file, and every unchanged item would keep the file version from which it was cut.
//!
//! In a file that never changes, items are slices, and an item is added to the database only when a query asks for it
//! alone. Code that examines all items uses [`parts`], which are cheap.

use ::line_index::LineIndex;
use memchr::{memchr_iter, memmem};
use ptx_syntax::{ItemKind, Parse, RawItem};
use rustc_hash::FxHashMap;
use smol_str::SmolStr;
use text_size::{TextRange, TextSize};

use crate::db::{Db, SourceFile};
use crate::pieces::{IGNORE, Piece};
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
    /// The number of earlier items of this kind and name. The database could distinguish them itself, but in time
    /// quadratic in their number.
    #[returns(copy)]
    pub ordinal: u32,
    #[tracked]
    #[returns(ref)]
    pub contents: Text,
    /// The offset of the item in the file.
    #[tracked]
    #[returns(copy)]
    pub offset: TextSize,
    /// Its number in the file.
    #[tracked]
    #[returns(copy)]
    pub index: u32,
    /// See [`Piece::is_edited`].
    #[tracked]
    #[returns(copy)]
    pub(crate) is_edited: bool,
}

impl<'db> Item<'db> {
    pub fn text(self, db: &'db dyn Db) -> &'db str {
        self.contents(db)
    }

    /// The item's range in the file.
    pub fn range(self, db: &'db dyn Db) -> TextRange {
        TextRange::at(self.offset(db), TextSize::of(self.text(db)))
    }

    /// The range of its name in the file, if the item is split correctly.
    pub(crate) fn name_range(self, db: &'db dyn Db) -> Option<TextRange> {
        match Part::new(db, self) {
            Part::Frozen { raw, .. } => raw.name,
            Part::Edited(_) => self.file(db).pieces(db).get(self.index(db) as usize)?.raw.name,
        }
    }
}

/// Whether the file may contain a suppression comment.
pub(crate) fn has_ignores(db: &dyn Db, file: SourceFile) -> bool {
    match file.is_frozen(db) {
        true => memmem::find(file.text(db).as_bytes(), IGNORE.as_bytes()).is_some(),
        false => file.pieces(db).iter().any(|piece| piece.ignores),
    }
}

/// Splits a file into items, in text order. Their ranges cover the file.
#[salsa::tracked(returns(deref))]
pub fn items<'db>(db: &'db dyn Db, file: SourceFile) -> Box<[Item<'db>]> {
    if file.is_frozen(db) {
        return (0..outline(db, file).len() as u32).map(|index| frozen_item(db, file, index)).collect();
    }
    let pieces = file.pieces(db);
    let mut equals: FxHashMap<(ItemKind, &str), u32> = FxHashMap::default();
    equals.reserve(pieces.len());
    let items = pieces.iter().zip(0..).map(|(Piece { raw, name, contents, is_edited, .. }, index)| {
        let equal = equals.entry((raw.kind, name)).or_default();
        let ordinal = *equal;
        *equal += 1;
        let (name, contents, offset) = (name.clone(), contents.clone(), raw.range.start());
        Item::new(db, file, raw.kind, name, ordinal, contents, offset, index, *is_edited)
    });
    items.collect()
}

/// The ranges of the items of a file that never changes.
#[salsa::tracked(returns(deref))]
fn outline(db: &dyn Db, file: SourceFile) -> Box<[RawItem]> {
    ptx_syntax::split(file.text(db)).into()
}

/// An item of a file that never changes. Each query returns one item.
#[salsa::tracked(returns(copy))]
fn frozen_item<'db>(db: &'db dyn Db, file: SourceFile, index: u32) -> Item<'db> {
    let RawItem { range, kind, name, .. } = outline(db, file)[index as usize];
    let text = file.text(db);
    let name = name.map_or_else(SmolStr::default, |name| SmolStr::new(&text[name]));
    Item::new(db, file, kind, name, 0, text.part(range), range.start(), index, false)
}

/// An item and its position in its file.
#[derive(Clone, Copy)]
pub(crate) enum Part<'db> {
    Edited(Item<'db>),
    /// In a file that never changes.
    Frozen {
        file: SourceFile,
        index: u32,
        raw: RawItem,
    },
}

impl<'db> Part<'db> {
    pub(crate) fn new(db: &'db dyn Db, item: Item<'db>) -> Self {
        let file = item.file(db);
        if !file.is_frozen(db) {
            return Self::Edited(item);
        }
        let index = item.index(db);
        Self::Frozen { file, index, raw: outline(db, file)[index as usize] }
    }

    pub(crate) fn item(self, db: &'db dyn Db) -> Item<'db> {
        match self {
            Self::Edited(item) => item,
            Self::Frozen { file, index, .. } => frozen_item(db, file, index),
        }
    }

    /// Its number in the file.
    pub(crate) fn index(self, db: &'db dyn Db) -> u32 {
        match self {
            Self::Edited(item) => item.index(db),
            Self::Frozen { index, .. } => index,
        }
    }

    pub(crate) fn kind(self, db: &'db dyn Db) -> ItemKind {
        match self {
            Self::Edited(item) => item.kind(db),
            Self::Frozen { raw, .. } => raw.kind,
        }
    }

    pub(crate) fn text(self, db: &'db dyn Db) -> &'db str {
        match self {
            Self::Edited(item) => item.text(db),
            Self::Frozen { file, raw, .. } => &file.text(db)[raw.range],
        }
    }

    pub(crate) fn offset(self, db: &'db dyn Db) -> TextSize {
        match self {
            Self::Edited(item) => item.offset(db),
            Self::Frozen { raw, .. } => raw.range.start(),
        }
    }
}

/// The items of a file, in text order.
pub(crate) fn parts<'db>(db: &'db dyn Db, file: SourceFile) -> impl Iterator<Item = Part<'db>> + Clone {
    let (edited, frozen) = match file.is_frozen(db) {
        true => (&[][..], outline(db, file)),
        false => (items(db, file), &[][..]),
    };
    let frozen = (0..).zip(frozen).map(move |(index, &raw)| Part::Frozen { file, index, raw });
    edited.iter().map(|&item| Part::Edited(item)).chain(frozen)
}

/// An item by its number in the file.
pub(crate) fn item(db: &dyn Db, file: SourceFile, index: u32) -> Option<Item<'_>> {
    match file.is_frozen(db) {
        true => ((index as usize) < outline(db, file).len()).then(|| frozen_item(db, file, index)),
        false => items(db, file).get(index as usize).copied(),
    }
}

/// The tree of an item and its syntax errors. Trees are large, so only recently used ones are kept.
#[salsa::tracked(no_eq, lru = 128)]
pub fn parse<'db>(db: &'db dyn Db, item: Item<'db>) -> Parse {
    ptx_syntax::parse_item(item.text(db))
}

/// The item at an offset; at a boundary, the later one.
pub fn item_at<'db>(db: &'db dyn Db, file: SourceFile, offset: TextSize) -> Option<Item<'db>> {
    let after = match file.is_frozen(db) {
        true => outline(db, file).partition_point(|raw| raw.range.start() <= offset),
        false => items(db, file).partition_point(|item| item.offset(db) <= offset),
    };
    item(db, file, after.checked_sub(1)? as u32)
}

/// The item that contains a range.
pub(crate) fn item_around<'db>(db: &'db dyn Db, file: SourceFile, range: TextRange) -> Option<Item<'db>> {
    let before = match file.is_frozen(db) {
        true => outline(db, file).partition_point(|raw| raw.range.end() < range.end()),
        false => items(db, file).partition_point(|item| item.range(db).end() < range.end()),
    };
    item(db, file, before as u32).filter(|item| item.range(db).contains_range(range))
}

#[salsa::tracked]
pub fn line_index(db: &dyn Db, file: SourceFile) -> LineIndex {
    LineIndex::new(file.text(db))
}

/// The line number of an offset, starting at 1. In an edited file no line index is used, because each edit would have
/// to rebuild it.
pub(crate) fn line_number(db: &dyn Db, file: SourceFile, offset: TextSize) -> u32 {
    if file.is_frozen(db) {
        return line_index(db, file).line_col(offset).line + 1;
    }
    let pieces = file.pieces(db);
    let (before, after) = pieces.split_at(pieces.partition_point(|piece| piece.raw.range.end() <= offset));
    let within = after.first().map_or(0, |piece| {
        let end = usize::from(offset - piece.raw.range.start());
        memchr_iter(b'\n', &piece.contents.as_bytes()[..end]).count() as u32
    });
    before.iter().map(|piece| piece.breaks).sum::<u32>() + within + 1
}
