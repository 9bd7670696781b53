//! Expanding selections step by step.

use text_size::{TextRange, TextSize};

use crate::db::{Database, SourceFile};
use crate::items::parse;
use crate::locate::{spot, trimmed};

/// The ranges around an offset, from the word to the whole file; each is larger than the previous one.
pub fn selection_ranges(db: &Database, file: SourceFile, offset: TextSize) -> Vec<TextRange> {
    let mut ranges: Vec<TextRange> = Vec::new();
    let mut add = |range: TextRange| {
        let is_larger = ranges.last().is_none_or(|last| range.contains_range(*last) && range != *last);
        if is_larger && !range.is_empty() {
            ranges.push(range);
        }
    };
    if let Some(spot) = spot(db, file, offset) {
        let start = spot.item.offset(db);
        let root = parse(db, spot.item).syntax();
        // At the end of a word, the word is selected, not the following token.
        let is_word =
            |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '%'));
        let after = is_word(spot.item.text(db)[usize::from(spot.offset)..].chars().next());
        let found = root.token_at_offset(spot.offset);
        let token = if after { found.right_biased() } else { found.left_biased() };
        if let Some(token) = token {
            add(token.text_range() + start);
            // The whole item includes the blanks before it.
            let nodes = token.parent_ancestors().filter(|node| node.parent().is_some());
            nodes.for_each(|node| add(node.text_range() + start));
        }
        add(trimmed(db, spot.item));
    }
    add(TextRange::up_to(TextSize::of(&**file.text(db))));
    ranges
}
