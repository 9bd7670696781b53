//! The items of a text under edit. Unchanged items are kept from one version of the text to the next.

use memchr::{memchr_iter, memmem};
use ptx_syntax::RawItem;
use smol_str::SmolStr;
use text_size::TextRange;

use crate::text::Text;

/// The word at the start of a comment that suppresses findings.
pub(crate) const IGNORE: &str = "ptx-ignore";

/// An item of a text under edit.
#[derive(Clone, PartialEq, Debug)]
pub struct Piece {
    pub(crate) raw: RawItem,
    pub(crate) name: SmolStr,
    pub(crate) contents: Text,
    /// The item contains [`IGNORE`].
    pub(crate) ignores: bool,
    /// The number of line breaks in the item.
    pub(crate) breaks: u32,
    /// The item is new because of an edit of few items. The next requests will probably be about it, so it is compiled
    /// first.
    pub(crate) is_edited: bool,
}

/// An edit that changes at most this many items counts as typing.
const FEW: usize = 4;

/// The items of a text, in order. `old` holds the items before an edit. Items outside of the edited text are taken from
/// it, so an edit costs no time for the rest of the file.
pub(crate) fn pieces(text: &str, old: &[Piece]) -> Box<[Piece]> {
    let front = old.iter().take_while(|piece| {
        let rest = &text.as_bytes()[text.len().min(piece.raw.range.start().into())..];
        rest.starts_with(piece.contents.as_bytes())
    });
    let front = front.count();
    let same_before = old[..front].last().map_or(0, |piece| piece.raw.range.end().into());
    let mut rest = &text.as_bytes()[same_before..];
    let changed = rest.len();
    for piece in old[front..].iter().rev() {
        let Some(before) = rest.strip_suffix(piece.contents.as_bytes()) else { break };
        rest = before;
    }
    let same_after = changed - rest.len();
    let raw: Vec<RawItem> = old.iter().map(|piece| piece.raw).collect();
    let again = ptx_syntax::split_again(text, &raw, same_before, same_after);
    let is_edited = again.items.len() <= FEW && again.kept_before + again.kept_after > 0;
    let new = again.items.into_iter().map(|raw| {
        let contents = &text[raw.range];
        Piece {
            raw,
            name: raw.name.map_or_else(SmolStr::default, |name| SmolStr::new(&text[name])),
            contents: Text::from(contents),
            ignores: memmem::find(contents.as_bytes(), IGNORE.as_bytes()).is_some(),
            breaks: memchr_iter(b'\n', contents.as_bytes()).count() as u32,
            is_edited,
        }
    });
    let end = |pieces: &[Piece]| pieces.last().map_or(0, |piece| u32::from(piece.raw.range.end()));
    let (old_length, length) = (end(old), text.len() as u32);
    let moved = |range: TextRange| {
        TextRange::at((u32::from(range.start()) + length - old_length).into(), range.len())
    };
    let after = old[old.len() - again.kept_after..].iter().cloned().map(|piece| {
        let RawItem { range, name, .. } = piece.raw;
        Piece { raw: RawItem { range: moved(range), name: name.map(moved), ..piece.raw }, ..piece }
    });
    old[..again.kept_before].iter().cloned().chain(new).chain(after).collect()
}
