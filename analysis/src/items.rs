//! A file as a list of items, and each item as a tree.
//!
//! An item's identity is its kind and name, with equal ones numbered in their order. Its text and its place are
//! fields of their own, so an edit changes the text of one item and the places of those after it, and only
//! what reads those runs again. Items carry their own text because a slice of the file would tie every query
//! about an item to the whole file, and every unchanged item would keep the version of the file that it came with.
//!
//! In a file that never changes items are slices, and each is known to the database only once a query asks about it
//! alone. Who looks at all of them takes [`parts`], which are cheap.

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
    /// How many items of this kind and name are before it. The database could tell them apart itself, but in time
    /// that grows with the square of their number.
    #[returns(copy)]
    pub ordinal: u32,
    #[tracked]
    #[returns(ref)]
    pub contents: Text,
    /// Where the item starts in the file.
    #[tracked]
    #[returns(copy)]
    pub offset: TextSize,
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

    /// Where its name is in the file, in an item that is cut as it should be.
    pub(crate) fn name_range(self, db: &'db dyn Db) -> Option<TextRange> {
        match Part::new(db, self) {
            Part::Frozen { raw, .. } => raw.name,
            Part::Edited(_) => {
                let (pieces, offset) = (self.file(db).pieces(db), self.offset(db));
                let index = pieces.binary_search_by_key(&offset, |piece| piece.raw.range.start()).ok()?;
                pieces[index].raw.name
            }
        }
    }
}

/// Whether a comment of the file may be to the checks.
pub(crate) fn has_ignores(db: &dyn Db, file: SourceFile) -> bool {
    match file.is_frozen(db) {
        true => memmem::find(file.text(db).as_bytes(), IGNORE.as_bytes()).is_some(),
        false => file.pieces(db).iter().any(|piece| piece.ignores),
    }
}

/// Cuts a file into items, in text order. Their ranges cover the file.
#[salsa::tracked(returns(deref))]
pub fn items<'db>(db: &'db dyn Db, file: SourceFile) -> Box<[Item<'db>]> {
    if file.is_frozen(db) {
        return (0..outline(db, file).len() as u32).map(|index| frozen_item(db, file, index)).collect();
    }
    let pieces = file.pieces(db);
    let mut equals: FxHashMap<(ItemKind, &str), u32> = FxHashMap::default();
    equals.reserve(pieces.len());
    let items = pieces.iter().map(|Piece { raw, name, contents, is_edited, .. }| {
        let equal = equals.entry((raw.kind, name)).or_default();
        let ordinal = *equal;
        *equal += 1;
        Item::new(db, file, raw.kind, name.clone(), ordinal, contents.clone(), raw.range.start(), *is_edited)
    });
    items.collect()
}

/// Where the items of a file are that never changes.
#[salsa::tracked(returns(deref))]
fn outline(db: &dyn Db, file: SourceFile) -> Box<[RawItem]> {
    ptx_syntax::split(file.text(db)).into()
}

/// An item of a file that never changes. No other one comes from the same query.
#[salsa::tracked(returns(copy))]
fn frozen_item<'db>(db: &'db dyn Db, file: SourceFile, index: u32) -> Item<'db> {
    let RawItem { range, kind, name, .. } = outline(db, file)[index as usize];
    let text = file.text(db);
    let name = name.map_or_else(SmolStr::default, |name| SmolStr::new(&text[name]));
    Item::new(db, file, kind, name, 0, text.part(range), range.start(), false)
}

/// An item as it lies in its file.
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
        let (all, offset) = (outline(db, file), item.offset(db));
        let index = all.partition_point(|raw| raw.range.start() < offset);
        Self::Frozen { file, index: index as u32, raw: all[index] }
    }

    pub(crate) fn item(self, db: &'db dyn Db) -> Item<'db> {
        match self {
            Self::Edited(item) => item,
            Self::Frozen { file, index, .. } => frozen_item(db, file, index),
        }
    }

    /// Its number in the file.
    pub(crate) fn index(self, db: &'db dyn Db) -> Option<u32> {
        match self {
            Self::Edited(item) => items(db, item.file(db))
                .iter()
                .zip(0..)
                .find(|&(&other, _)| other == item)
                .map(|found| found.1),
            Self::Frozen { index, .. } => Some(index),
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

/// The tree of an item and its syntax errors. Large, so only recently used ones are kept.
#[salsa::tracked(no_eq, lru = 128)]
pub fn parse<'db>(db: &'db dyn Db, item: Item<'db>) -> Parse {
    ptx_syntax::parse_item(item.text(db))
}

/// The item at an offset; at a boundary the later one.
pub fn item_at<'db>(db: &'db dyn Db, file: SourceFile, offset: TextSize) -> Option<Item<'db>> {
    let after = match file.is_frozen(db) {
        true => outline(db, file).partition_point(|raw| raw.range.start() <= offset),
        false => items(db, file).partition_point(|item| item.offset(db) <= offset),
    };
    item(db, file, after.checked_sub(1)? as u32)
}

/// The first item that a range lies in.
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

/// The number of the line of an offset, from 1. In a file that is edited this needs no index, which each edit would
/// make anew.
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
