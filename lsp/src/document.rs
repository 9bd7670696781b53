//! An open document: a copy of the editor's text, which edits change in place.
//!
//! Only this module uses the rope; the analysis receives whole texts. Columns are counted in the encoding agreed with
//! the client, and lines end at `\n`, `\r\n` or `\r`. A column past the end of a line means the end of the line, as the
//! protocol says.

use std::cell::Cell;
use std::ops;

use ropey::Rope;
use text_size::{TextRange, TextSize};
use tower_lsp::lsp_types::{Position, Range, TextDocumentContentChangeEvent};

/// The unit in which columns are counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Encoding {
    Utf8,
    #[default]
    Utf16,
}

#[derive(Clone, Debug)]
pub struct Document {
    rope: Rope,
    version: i32,
    encoding: Encoding,
    /// The line of the last position that was asked for. Most requests are about the same line as the one before.
    last: Cell<Option<Line>>,
}

/// A line with its line break. The last line includes the end of the text.
#[derive(Clone, Copy, Debug)]
struct Line {
    number: u32,
    start: usize,
    end: usize,
    is_ascii: bool,
}

impl Document {
    pub fn new(text: &str, version: i32, encoding: Encoding) -> Self {
        Self { rope: Rope::from_str(text), version, encoding, last: Cell::default() }
    }

    pub fn version(&self) -> i32 {
        self.version
    }

    pub fn text(&self) -> String {
        // `to_string` would not reserve memory, and would copy the text as it grows.
        String::from(&self.rope)
    }

    /// Applies the changes of one notification, in order. Ranges are clamped to the text.
    pub fn apply(&mut self, version: i32, changes: Vec<TextDocumentContentChangeEvent>) {
        self.apply_watched(version, changes, |_, _, _| ());
    }

    /// As [`apply`](Self::apply), but calls `watch` after each change with the bytes that the change removed and the
    /// number of bytes that it inserted.
    pub fn apply_watched(
        &mut self,
        version: i32,
        changes: Vec<TextDocumentContentChangeEvent>,
        mut watch: impl FnMut(&Document, ops::Range<usize>, usize),
    ) {
        for change in changes {
            let removed = match change.range {
                Some(range) => self.replace(range, &change.text),
                None => {
                    let all = 0..self.rope.len_bytes();
                    self.rope = Rope::from_str(&change.text);
                    all
                }
            };
            self.last.set(None);
            watch(self, removed, change.text.len());
        }
        self.version = version;
    }

    /// Returns the range of the replaced bytes.
    fn replace(&mut self, range: Range, text: &str) -> ops::Range<usize> {
        let (start, end) = (self.char_index(range.start), self.char_index(range.end));
        let (start, end) = (start.min(end), start.max(end));
        let bytes = self.rope.char_to_byte(start)..self.rope.char_to_byte(end);
        self.rope.remove(start..end);
        self.rope.insert(start, text);
        bytes
    }

    pub fn len(&self) -> usize {
        self.rope.len_bytes()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The text between two bytes. A character that extends beyond the range is left out.
    pub fn part(&self, range: ops::Range<usize>) -> String {
        let (start, end) = (self.rope.byte_to_char(range.start), self.rope.byte_to_char(range.end));
        self.rope.slice(start..end).to_string()
    }

    pub fn offset(&self, position: Position) -> TextSize {
        TextSize::new(self.rope.char_to_byte(self.char_index(position)) as u32)
    }

    /// The position of a byte. Reads only the line of the byte.
    pub fn position(&self, offset: TextSize) -> Position {
        let byte = usize::from(offset).min(self.rope.len_bytes());
        let known = self.last.get().filter(|line| (line.start..line.end).contains(&byte));
        let line = known.unwrap_or_else(|| self.line_at(byte));
        self.last.set(Some(line));
        if line.is_ascii {
            return Position::new(line.number, (byte - line.start) as u32);
        }
        let (start, char) = (self.rope.byte_to_char(line.start), self.rope.byte_to_char(byte));
        let column = match self.encoding {
            Encoding::Utf8 => self.rope.char_to_byte(char) - line.start,
            Encoding::Utf16 => self.rope.char_to_utf16_cu(char) - self.rope.char_to_utf16_cu(start),
        };
        Position::new(line.number, column as u32)
    }

    fn line_at(&self, byte: usize) -> Line {
        let rope = &self.rope;
        let number = rope.byte_to_line(byte);
        let start = rope.line_to_byte(number);
        let is_last = number + 1 >= rope.len_lines();
        let end = if is_last { rope.len_bytes() } else { rope.line_to_byte(number + 1) };
        let is_ascii = rope.byte_slice(start..end).chunks().all(str::is_ascii);
        Line { number: number as u32, start, end: end + usize::from(is_last), is_ascii }
    }

    pub fn range(&self, range: TextRange) -> Range {
        Range::new(self.position(range.start()), self.position(range.end()))
    }

    fn char_index(&self, position: Position) -> usize {
        let line = position.line as usize;
        if line >= self.rope.len_lines() {
            return self.rope.len_chars();
        }
        let start = self.rope.line_to_char(line);
        let slice = self.rope.line(line);
        let mut length = slice.len_chars();
        for end in ['\n', '\r'] {
            if length > 0 && slice.char(length - 1) == end {
                length -= 1;
            }
        }
        let column = position.character as usize;
        let within = match self.encoding {
            Encoding::Utf8 => {
                let column = column.min(slice.char_to_byte(length));
                slice.byte_to_char(column)
            }
            Encoding::Utf16 => {
                let column = column.min(slice.char_to_utf16_cu(length));
                slice.utf16_cu_to_char(column)
            }
        };
        start + within
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(encoding: Encoding, text: &str, edit: (u32, u32, u32, u32, &str), expected: &str) {
        let mut document = Document::new(text, 1, encoding);
        let range = Range::new(Position::new(edit.0, edit.1), Position::new(edit.2, edit.3));
        let change =
            TextDocumentContentChangeEvent { range: Some(range), range_length: None, text: edit.4.into() };
        document.apply(2, vec![change]);
        assert_eq!(document.text(), expected);
        assert_eq!(document.version(), 2);
    }

    #[test]
    fn columns_count_code_units() {
        check(Encoding::Utf16, "// 𝄞 x\n", (0, 5, 0, 6, ""), "// 𝄞x\n");
        check(Encoding::Utf8, "// 𝄞 x\n", (0, 7, 0, 8, ""), "// 𝄞x\n");
    }

    #[test]
    fn positions_outside_are_clamped() {
        check(Encoding::Utf16, "ab\r\ncd", (0, 9, 0, 9, "!"), "ab!\r\ncd");
        check(Encoding::Utf16, "ab", (7, 0, 9, 0, "!"), "ab!");
        check(Encoding::Utf8, "ab\ncd", (0, 1, 1, 99, ""), "a");
    }

    #[test]
    fn a_carriage_return_ends_a_line() {
        check(Encoding::Utf16, "\r", (0, 0, 0, 1, ".rn"), ".rn\r");
        check(Encoding::Utf8, "ab\r", (0, 3, 0, 3, "!"), "ab!\r");
        check(Encoding::Utf16, "ab\rcd\r\nef", (1, 1, 2, 1, "-"), "ab\rc-f");
        check(Encoding::Utf8, "ab\r\rcd", (2, 0, 2, 1, ""), "ab\r\rd");
    }

    /// The position of a byte, found by scanning the text.
    fn position(text: &str, offset: usize, encoding: Encoding) -> Position {
        let before = &text[..offset];
        let is_break = |&(at, c): &(usize, char)| c == '\n' || c == '\r' && !text[at + 1..].starts_with('\n');
        let breaks: Vec<usize> = before.char_indices().filter(is_break).map(|(at, _)| at + 1).collect();
        let line = &before[breaks.last().copied().unwrap_or(0)..];
        let column = match encoding {
            Encoding::Utf8 => line.len(),
            Encoding::Utf16 => line.encode_utf16().count(),
        };
        Position::new(breaks.len() as u32, column as u32)
    }

    /// Edits and answers must use the same positions for the same places.
    #[test]
    fn positions_and_offsets_are_inverse() {
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..2000 {
            let pieces = ["\r", "\n", "\r\n", "a", "π", "𝄞", " "];
            let text: String = (0..random.usize(..12)).map(|_| random.choice(pieces).unwrap()).collect();
            for encoding in [Encoding::Utf8, Encoding::Utf16] {
                let document = Document::new(&text, 1, encoding);
                let ends = (0..=text.len()).filter(|&at| text.is_char_boundary(at));
                let places = ends.map(|at| (at, position(&text, at, encoding))).collect::<Vec<_>>();
                for &(at, place) in &places {
                    let offset = TextSize::new(at as u32);
                    assert_eq!(document.position(offset), place, "{text:?} {at} {encoding:?}");
                    // Between the two bytes of a line break.
                    if !(text[..at].ends_with('\r') && text[at..].starts_with('\n')) {
                        assert_eq!(document.offset(place), offset, "{text:?} {place:?} {encoding:?}");
                    }
                }
                // A column past the end of its line is the end of the line. A column inside a character is the start of
                // the character.
                for (line, column) in (0..9).flat_map(|line| (0..9).map(move |column| (line, column))) {
                    let is_before = |&&(at, place): &&(usize, Position)| {
                        let is_inside = text[..at].ends_with('\r') && text[at..].starts_with('\n');
                        place.line == line && place.character <= column && !is_inside
                    };
                    let known = places.iter().rfind(is_before).map(|&(at, _)| at);
                    let expected = known.unwrap_or(text.len());
                    let found = document.offset(Position::new(line, column));
                    assert_eq!(usize::from(found), expected, "{text:?} {line}:{column} {encoding:?}");
                }
            }
        }
    }

    #[test]
    fn reversed_ranges_are_put_in_order() {
        check(Encoding::Utf16, "abcd", (0, 3, 0, 1, "-"), "a-d");
    }

    #[test]
    fn a_change_without_range_replaces_everything() {
        let mut document = Document::new("old", 1, Encoding::Utf16);
        let change = TextDocumentContentChangeEvent { range: None, range_length: None, text: "new".into() };
        document.apply(5, vec![change]);
        assert_eq!((document.text().as_str(), document.version()), ("new", 5));
    }
}
