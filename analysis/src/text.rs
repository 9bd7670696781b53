//! The texts of files and items.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use text_size::{TextRange, TextSize};

/// `1 register`, `2 registers`.
pub fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// A text that is cheap to clone. It may be a part of a larger text, which it then keeps in memory.
#[derive(Clone)]
pub struct Text {
    whole: Arc<String>,
    range: TextRange,
}

impl Text {
    /// A part that shares memory with the whole text. It is meant for parts that live as long as the whole.
    pub(crate) fn part(&self, range: TextRange) -> Self {
        let range = range + self.range.start();
        assert!(self.range.contains_range(range), "a part is inside the whole");
        Self { whole: Arc::clone(&self.whole), range }
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.whole[self.range]
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        // A text that is too long for 32-bit positions has no items, as in `ptx_syntax::split`.
        let length = u32::try_from(text.len()).unwrap_or(0);
        Self { whole: Arc::new(text), range: TextRange::up_to(length.into()) }
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self::from(text.to_owned())
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.whole, &other.whole) && self.range == other.range || **self == **other
    }
}

impl Eq for Text {}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

/// The blanks at the start of the line at an offset.
pub(crate) fn indentation(text: &str, at: TextSize) -> &str {
    let before = &text[..at.into()];
    let line = &before[before.rfind('\n').map_or(0, |at| at + 1)..];
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

/// A range to remove with the blanks after it, and with its line if the line has no other content.
pub(crate) fn with_line(text: &str, range: TextRange) -> TextRange {
    let (before, after) = (&text[..usize::from(range.start())], &text[usize::from(range.end())..]);
    let indent = before.len() - before.trim_end_matches([' ', '\t']).len();
    let blanks = after.len() - after.trim_start_matches([' ', '\t', '\r']).len();
    let is_line = before[..before.len() - indent].ends_with('\n') && after[blanks..].starts_with('\n');
    let size = |count: usize| TextSize::new(count as u32);
    if is_line {
        // Removes the line break before it and keeps the one after it.
        TextRange::new(range.start() - size(indent + 1), range.end() + size(blanks))
    } else {
        TextRange::new(range.start(), range.end() + size(blanks))
    }
}
