//! Answers about all items of a document, kept as JSON per item.
//!
//! A document of 10 MB has tens of thousands of symbols. Between two answers few items change, but the lines of all later
//! items do. So the JSON of an item has gaps for the numbers of lines, which each answer fills in.

use std::sync::{Arc, Mutex, PoisonError};

use ptx_analysis::ide::InItem;
use serde::Serialize;
use text_size::{TextRange, TextSize};
use tower_lsp::lsp_types::Position;

use crate::document::{Document, Encoding};
use crate::gap::Gap;
use crate::written::Written;

/// The items of the last answer.
pub struct ByItem<T>(Mutex<Arc<[Kept<T>]>>);

impl<T> Default for ByItem<T> {
    fn default() -> Self {
        Self(Mutex::new([].into()))
    }
}

struct Kept<T> {
    item: InItem<T>,
    json: Arc<Json>,
}

impl<T: Eq> ByItem<T> {
    /// The list of the values of all items. `write` writes a value that is not in the last answer.
    pub fn answer(
        &self,
        items: Vec<InItem<T>>,
        encoding: Encoding,
        write: impl Fn(&mut Writer<'_>, &T),
    ) -> Written {
        let old = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let unchanged = Unchanged::of(&old, &items, |old, new| old.item.is_same(new));
        let renewed = items.into_iter().enumerate().map(|(index, item)| {
            let json = match unchanged.old(index) {
                Some(kept) => old[kept].json.clone(),
                None => Arc::new(Json::of(&item, encoding, &write)),
            };
            Kept { item, json }
        });
        let renewed: Arc<[Kept<T>]> = renewed.collect();
        let size =
            renewed.iter().map(|kept| kept.json.text.len() + NUMBER * kept.json.numbers.len()).sum::<usize>();
        let mut out = String::with_capacity(size);
        out.push('[');
        let mut position = Gap::default();
        for Kept { json, .. } in &*renewed {
            if !json.text.is_empty() && out.len() > 1 {
                out.push(',');
            }
            json.place(position, &mut out);
            position = position.then(json.size);
        }
        out.push(']');
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = renewed;
        out.into()
    }
}

/// The items at the start and at the end of a document that an edit left as they were.
#[derive(Clone, Copy)]
pub struct Unchanged {
    /// The number of items at the start.
    pub before: usize,
    /// The number of items at the end.
    pub after: usize,
    /// The indices of the first items at the end.
    old_end: usize,
    new_end: usize,
}

impl Unchanged {
    pub fn of<A, B>(old: &[A], new: &[B], is_same: impl Fn(&A, &B) -> bool) -> Self {
        let is_same = |(old, new): &(&A, &B)| is_same(old, new);
        let before = old.iter().zip(new).take_while(&is_same).count();
        let after = old[before..].iter().rev().zip(new[before..].iter().rev()).take_while(&is_same).count();
        Self { before, after, old_end: old.len() - after, new_end: new.len() - after }
    }

    /// The old index of the item with a new index, if it is unchanged.
    pub fn old(self, new: usize) -> Option<usize> {
        match new {
            _ if new < self.before => Some(new),
            _ if new >= self.new_end => Some(new - self.new_end + self.old_end),
            _ => None,
        }
    }
}

/// The usual length of a number of a line.
const NUMBER: usize = 6;

/// The values of an item, separated by commas.
struct Json {
    /// Without the numbers that depend on the text before the item.
    text: Box<str>,
    numbers: Box<[Number]>,
    /// The size of the item.
    size: Gap,
}

/// A number that is missing in the text.
struct Number {
    /// Where it belongs in the text.
    at: u32,
    /// The number if the item is at the start of the document.
    value: u32,
    is_column: bool,
}

impl Json {
    fn of<T>(item: &InItem<T>, encoding: Encoding, write: impl Fn(&mut Writer<'_>, &T)) -> Self {
        let size = Gap::of(&item.text, encoding);
        if item.values.is_empty() {
            return Self { text: "".into(), numbers: [].into(), size };
        }
        let lines = Document::new(&item.text, 0, encoding);
        let mut writer = Writer { lines: &lines, json: Vec::new(), numbers: Vec::new() };
        for value in &*item.values {
            let length = writer.json.len();
            if length > 0 {
                writer.text(",");
            }
            let start = writer.json.len();
            write(&mut writer, value);
            if writer.json.len() == start {
                writer.json.truncate(length);
            }
        }
        let Writer { json, numbers, .. } = writer;
        let text = String::from_utf8(json).expect("only text is written").into();
        Self { text, numbers: numbers.into(), size }
    }

    /// Appends the values of the item at `start`.
    fn place(&self, start: Gap, out: &mut String) {
        let mut digits = itoa::Buffer::new();
        let mut copied = 0;
        // A carriage return before the item and a line feed at its start are one line break.
        let joined = u32::from(start.ends_with_return && self.size.starts_with_feed);
        for number in &*self.numbers {
            let at = number.at as usize;
            out.push_str(&self.text[copied..at]);
            copied = at;
            let number = match number.is_column {
                true => start.columns + number.value,
                false => (start.lines + number.value).saturating_sub(joined),
            };
            out.push_str(digits.format(number));
        }
        out.push_str(&self.text[copied..]);
    }
}

/// Writes the values of an item.
pub struct Writer<'a> {
    lines: &'a Document,
    json: Vec<u8>,
    numbers: Vec<Number>,
}

impl Writer<'_> {
    pub fn text(&mut self, json: &str) {
        self.json.extend_from_slice(json.as_bytes());
    }

    pub fn value(&mut self, value: &impl Serialize) {
        // Writing to memory does not fail, and the values have no maps with other keys than strings.
        let _ = serde_json::to_writer(&mut self.json, value);
    }

    /// Writes a range as the protocol does.
    pub fn range(&mut self, range: TextRange) {
        for (name, offset) in [("{\"start\":", range.start()), (",\"end\":", range.end())] {
            self.text(name);
            let position = self.position(offset);
            self.text("{\"line\":");
            self.line(position);
            self.text(",\"character\":");
            match position.line {
                0 => self.number(position.character, true),
                _ => self.value(&position.character),
            }
            self.text("}");
        }
        self.text("}");
    }

    /// The position in the item.
    pub fn position(&self, offset: TextSize) -> Position {
        self.lines.position(offset)
    }

    /// Writes the line of a position in the item.
    pub fn line(&mut self, position: Position) {
        self.number(position.line, false);
    }

    fn number(&mut self, value: u32, is_column: bool) {
        self.numbers.push(Number { at: self.json.len() as u32, value, is_column });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ptx_analysis::{Database, ide};

    const PIECES: [&str; 10] = [
        ".version 9.0\n.target sm_90\n",
        "// a \u{1d11e}\n",
        "/* \u{3c0} */",
        ".global .b32 a;",
        ".const .b32 c, d;\n",
        ".entry f(.param .b32 p)\n{ .reg .b32 %r<4>;\nL: mov.u32 %r1, %tid.x; ret; }",
        ".entry g()\r\n{\r\tret; }\r",
        "\n",
        "\r",
        "}",
    ];

    #[test]
    fn positions_are_those_in_the_document() {
        let mut random = fastrand::Rng::with_seed(3);
        for _ in 0..300 {
            let mut pieces: Vec<&str> = (0..10).map(|_| random.choice(PIECES).unwrap()).collect();
            let mut db = Database::default();
            let file = db.add_file(pieces.concat());
            let encoding = if random.bool() { Encoding::Utf8 } else { Encoding::Utf16 };
            let kept = ByItem::default();
            for _ in 0..4 {
                let text = pieces.concat();
                db.set_text(file, text.clone());
                let items = ide::outline(&db, file);
                let written = kept.answer(items, encoding, |writer, symbol| writer.range(symbol.full));
                let lines = Document::new(&text, 1, encoding);
                let symbols = ide::document_symbols(&db, file);
                let expected: Vec<_> = symbols.iter().map(|symbol| lines.range(symbol.full)).collect();
                assert_eq!(written.text(), serde_json::to_string(&expected).unwrap(), "{text:?}");
                let at = random.usize(..pieces.len());
                pieces[at] = random.choice(PIECES).unwrap();
            }
        }
    }
}
