//! Replaces the placeholders of an assembly text.

use text_size::TextRange;

use crate::literal::{Decoded, Piece, range};
use crate::operand::{Kind, Operand};

/// The syntax of placeholders.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Style {
    /// No placeholders.
    Plain,
    /// `%0`, `%[name]`, `%%`.
    Gcc,
    /// `$0`, `${0}`, `$$`.
    Llvm,
    /// `{}`, `{0}`, `{name}`, `{{`.
    Rust,
}

impl Style {
    /// The characters that a placeholder can begin with.
    fn marks(self) -> &'static [u8] {
        match self {
            Style::Plain => b"",
            Style::Gcc => b"%",
            Style::Llvm => b"$",
            Style::Rust => b"{}",
        }
    }
}

/// A text under construction, with the host range of each of its parts.
#[derive(Default)]
pub(crate) struct Builder {
    pub(crate) text: String,
    pub(crate) pieces: Vec<Piece>,
    /// The ranges of constants with unknown values.
    pub(crate) holes: Vec<TextRange>,
}

impl Builder {
    pub(crate) fn own(&mut self, text: &str) {
        self.text.push_str(text);
    }

    fn copy(&mut self, from: &Decoded, start: usize, end: usize) {
        let base = self.text.len() as u32;
        self.text.push_str(&from.text[start..end]);
        let (start, end) = (start as u32, end as u32);
        for piece in overlapping(from, start, end) {
            let (first, last) = (piece.start.max(start), piece.end().min(end));
            let host = piece.host_of(first, last);
            self.pieces.push(Piece { start: base + first - start, len: last - first, host });
        }
    }

    fn replace(&mut self, from: &Decoded, start: usize, end: usize, text: &str) {
        let (start, end) = (start as u32, end as u32);
        let mut hosts = overlapping(from, start, end)
            .map(|piece| piece.host_of(piece.start.max(start), piece.end().min(end)));
        if let Some(first) = hosts.next() {
            let host = hosts.fold(first, TextRange::cover);
            self.pieces.push(Piece { start: self.text.len() as u32, len: text.len() as u32, host });
        }
        self.text.push_str(text);
    }
}

fn overlapping(from: &Decoded, start: u32, end: u32) -> impl Iterator<Item = &Piece> {
    let first = from.pieces.partition_point(|piece| piece.end() <= start);
    from.pieces[first..].iter().take_while(move |piece| piece.start < end)
}

/// The name of an operand's register in the module. `%0` and `$0` are valid names in PTX too.
pub(crate) fn name(style: Style, index: usize, operand: &Operand) -> String {
    match (style, &operand.name) {
        (Style::Rust, Some(name)) => format!("${name}"),
        (Style::Rust | Style::Llvm, _) => format!("${index}"),
        _ => format!("%{index}"),
    }
}

fn is_name(byte: u8) -> bool {
    byte == b'_' || byte == b'$' || byte.is_ascii_alphanumeric()
}

/// Adds a text with its placeholders replaced. Returns false if one of them is not understood, for instance because it
/// is a part of a name. The text is then complete, but findings in it may be wrong.
pub(crate) fn fill(builder: &mut Builder, from: &Decoded, style: Style, operands: &[Operand]) -> bool {
    let bytes = from.text.as_bytes();
    let byte = |at: usize| bytes.get(at).copied().unwrap_or(0);
    let mut is_understood = true;
    let (mut at, mut copied, mut next) = (0, 0, 0);
    while let Some(found) = bytes[at..].iter().position(|b| style.marks().contains(b)) {
        at += found;
        let Some((length, meaning)) = placeholder(&from.text[at..], style, operands, &mut next) else {
            at += 1;
            continue;
        };
        builder.copy(from, copied, at);
        let end = at + length;
        match meaning {
            Meaning::Text(text) => builder.replace(from, at, end, text),
            // It stays an undeclared name.
            Meaning::Missing => builder.copy(from, at, end),
            Meaning::Unknown => {
                is_understood = false;
                builder.copy(from, at, end);
            }
            Meaning::Operand(index) => {
                // A placeholder next to a name or a number would form a different name or number with it.
                let before = at.checked_sub(1).map_or(0, byte);
                is_understood &= !is_name(before) && !is_name(byte(end)) && !matches!(before, b'%' | b'.');
                let operand = &operands[index];
                match operand.kind {
                    Kind::Register(_) => builder.replace(from, at, end, &name(style, index, operand)),
                    Kind::Constant(value) => {
                        let text = value.unwrap_or(0).to_string();
                        let start = builder.text.len();
                        builder.replace(from, at, end, &text);
                        if value.is_none() {
                            builder.holes.push(range(start, builder.text.len()));
                        }
                    }
                }
            }
        }
        (at, copied) = (end, end);
    }
    builder.copy(from, copied, bytes.len());
    is_understood
}

enum Meaning {
    Text(&'static str),
    Operand(usize),
    /// The number of an operand that does not exist.
    Missing,
    Unknown,
}

/// The placeholder at the start of a text: its length and its meaning.
fn placeholder(text: &str, style: Style, operands: &[Operand], next: &mut usize) -> Option<(usize, Meaning)> {
    let bytes = text.as_bytes();
    let operand = |index: Option<usize>| match index {
        Some(index) if index < operands.len() => Meaning::Operand(index),
        Some(_) if style != Style::Rust => Meaning::Missing,
        _ => Meaning::Unknown,
    };
    let named = |name: &str| operands.iter().position(|operand| operand.name.as_deref() == Some(name));
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    match (style, bytes[0]) {
        (Style::Gcc, b'%') => match bytes.get(1)? {
            b'%' => Some((2, Meaning::Text("%"))),
            b'0'..=b'9' => {
                let length = 1 + digits(&text[1..]);
                Some((length, operand(text[1..length].parse().ok())))
            }
            b'[' => {
                let length = text.find(']')?;
                Some((length + 1, operand(named(&text[2..length]))))
            }
            // The compiler would insert a number that is unique in the program.
            b'=' => Some((2, Meaning::Text("0"))),
            // Not a placeholder: nvcc leaves names such as `%laneid` unchanged.
            _ => None,
        },
        (Style::Llvm, b'$') => match bytes.get(1)? {
            b'$' => Some((2, Meaning::Text("$"))),
            b'0'..=b'9' => {
                let length = 1 + digits(&text[1..]);
                Some((length, operand(text[1..length].parse().ok())))
            }
            b'{' => {
                let length = text.find('}')?;
                Some((length + 1, operand(text[2..length].parse().ok())))
            }
            b'(' | b'|' | b')' => Some((2, Meaning::Unknown)),
            _ => None,
        },
        (Style::Rust, b'{') if bytes.get(1) == Some(&b'{') => Some((2, Meaning::Text("{"))),
        (Style::Rust, b'}') if bytes.get(1) == Some(&b'}') => Some((2, Meaning::Text("}"))),
        (Style::Rust, b'{') => {
            let length = text.find('}')?;
            let inside = text[1..length].trim();
            let index = match inside {
                "" => {
                    *next += 1;
                    Some(*next - 1)
                }
                number if number.bytes().all(|b| b.is_ascii_digit()) => number.parse().ok(),
                name => named(name),
            };
            Some((length + 1, operand(index)))
        }
        (Style::Rust, b'}') => Some((1, Meaning::Unknown)),
        _ => None,
    }
}
