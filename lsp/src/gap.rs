//! The size of a piece of text in lines and columns. The sizes of adjacent pieces add up to the position of the next one.

use memchr::memchr2_iter;

use crate::document::Encoding;

/// The size of a piece of text.
#[derive(Clone, Copy, Default, Debug)]
pub struct Gap {
    /// The number of line breaks.
    pub lines: u32,
    /// The columns since the last line break.
    pub columns: u32,
    /// The text starts with a line feed. It forms one line break together with a carriage return before it.
    pub starts_with_feed: bool,
    pub ends_with_return: bool,
}

impl Gap {
    pub fn of(text: &str, encoding: Encoding) -> Self {
        let bytes = text.as_bytes();
        let (mut lines, mut line_start) = (0, 0);
        for end in memchr2_iter(b'\n', b'\r', bytes) {
            lines += u32::from(bytes[end] == b'\r' || !bytes[..end].ends_with(b"\r"));
            line_start = end + 1;
        }
        Self {
            lines,
            columns: width(&text[line_start..], encoding),
            starts_with_feed: bytes.starts_with(b"\n"),
            ends_with_return: bytes.ends_with(b"\r"),
        }
    }

    pub fn is_empty(self) -> bool {
        self.lines == 0 && self.columns == 0
    }

    /// The size of both texts joined.
    pub fn then(self, next: Self) -> Self {
        if self.is_empty() || next.is_empty() {
            return if next.is_empty() { self } else { next };
        }
        let is_one_break = self.ends_with_return && next.starts_with_feed;
        Self {
            lines: self.lines + next.lines - u32::from(is_one_break),
            columns: next.columns + if next.lines == 0 { self.columns } else { 0 },
            starts_with_feed: self.starts_with_feed,
            ends_with_return: next.ends_with_return,
        }
    }
}

pub fn width(text: &str, encoding: Encoding) -> u32 {
    match encoding {
        Encoding::Utf16 if !text.is_ascii() => text.encode_utf16().count() as u32,
        Encoding::Utf8 | Encoding::Utf16 => text.len() as u32,
    }
}
