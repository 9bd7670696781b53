//! String literals: their decoded contents, and where each part of them comes from.

use text_size::{TextRange, TextSize};

/// The escape syntax of a literal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Escapes {
    /// No escapes.
    Raw,
    /// Escapes of C and C++.
    C,
    Rust,
    Python,
}

/// A part of a decoded text. If it is written in the host text without escapes, it has the same length as its host
/// range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Piece {
    pub(crate) start: u32,
    pub(crate) len: u32,
    pub(crate) host: TextRange,
}

impl Piece {
    pub(crate) fn end(&self) -> u32 {
        self.start + self.len
    }

    pub(crate) fn is_verbatim(&self) -> bool {
        self.len == u32::from(self.host.len())
    }

    /// The host range of a part of this piece. `start` and `end` are positions in the decoded text.
    pub(crate) fn host_of(&self, start: u32, end: u32) -> TextRange {
        match self.is_verbatim() {
            true => range(0, (end - start) as usize) + self.host.start() + TextSize::new(start - self.start),
            false => self.host,
        }
    }
}

/// The contents of one literal, or of several consecutive ones.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Decoded {
    pub(crate) text: String,
    pub(crate) pieces: Vec<Piece>,
    /// The last literal is a raw string.
    pub(crate) is_raw: bool,
}

pub(crate) fn range(start: usize, end: usize) -> TextRange {
    TextRange::new(TextSize::new(start as u32), TextSize::new(end as u32))
}

impl Decoded {
    fn push(&mut self, text: &str, host: TextRange) {
        if text.is_empty() {
            return;
        }
        let piece = Piece { start: self.text.len() as u32, len: text.len() as u32, host };
        self.text.push_str(text);
        match self.pieces.last_mut() {
            // Two adjacent pieces without escapes are joined.
            Some(last) if last.is_verbatim() && piece.is_verbatim() && last.host.end() == host.start() => {
                last.len += piece.len;
                last.host = last.host.cover(host);
            }
            _ => self.pieces.push(piece),
        }
    }

    /// The host range of a part of the text.
    pub(crate) fn host_of(&self, part: TextRange) -> Option<TextRange> {
        let parts = self.parts(part);
        let (first, last) = (parts.first()?, parts.last()?);
        (first.host.start() <= last.host.end()).then(|| TextRange::new(first.host.start(), last.host.end()))
    }

    /// The pieces of a part of the text. The first and the last are cut to the part.
    pub(crate) fn parts(&self, part: TextRange) -> Vec<Piece> {
        let (start, end) = (u32::from(part.start()), u32::from(part.end()));
        let first = self.pieces.partition_point(|piece| piece.end() <= start);
        let own = self.pieces[first..].iter().take_while(|piece| piece.start < end);
        own.map(|piece| {
            let (start, end) = (piece.start.max(start), piece.end().min(end));
            Piece { start, len: end - start, host: piece.host_of(start, end) }
        })
        .collect()
    }

    /// Adds text that is not in the host text.
    pub(crate) fn push_own(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Adds the contents of a literal at `start..end` of the host text. `None` if it has an unknown escape.
    pub(crate) fn add(&mut self, host: &str, start: usize, end: usize, escapes: Escapes) -> Option<()> {
        self.is_raw = escapes == Escapes::Raw;
        let contents = &host[start..end];
        if escapes == Escapes::Raw || !contents.contains('\\') {
            self.push(contents, range(start, end));
            return Some(());
        }
        let mut at = start;
        while at < end {
            let length = host[at..end].find('\\').unwrap_or(end - at);
            self.push(&host[at..at + length], range(at, at + length));
            at += length;
            if at < end {
                let (text, length) = escape(&host[at..end], escapes)?;
                self.push(&text, range(at, at + length));
                at += length;
            }
        }
        Some(())
    }
}

/// The meaning of the escape at the start of a text, and its length.
fn escape(text: &str, escapes: Escapes) -> Option<(String, usize)> {
    let kind = text[1..].chars().next()?;
    let one = |c: char| Some((c.to_string(), 1 + kind.len_utf8()));
    match kind {
        'n' => one('\n'),
        't' => one('\t'),
        'r' => one('\r'),
        '\\' | '\'' | '"' => one(kind),
        '\n' if escapes == Escapes::Rust => {
            let rest = &text[2..];
            Some((String::new(), 2 + rest.len() - rest.trim_start_matches([' ', '\t', '\n', '\r']).len()))
        }
        '\n' => Some((String::new(), 2)),
        '\r' if text[2..].starts_with('\n') => Some((String::new(), 3)),
        'a' if escapes != Escapes::Rust => one('\x07'),
        'b' if escapes != Escapes::Rust => one('\x08'),
        'f' if escapes != Escapes::Rust => one('\x0c'),
        'v' if escapes != Escapes::Rust => one('\x0b'),
        '?' if escapes == Escapes::C => one('?'),
        'x' => number(text, 2, 2, 16),
        '0' if escapes == Escapes::Rust => one('\0'),
        '0'..='7' if escapes != Escapes::Rust => number(text, 1, 3, 8),
        // Python would keep the backslash, but no program intends that.
        _ => None,
    }
}

/// A character given by its number, with at most `most` digits from `start` on. Only ASCII characters: the meaning of
/// others depends on the encoding.
fn number(text: &str, start: usize, most: usize, radix: u32) -> Option<(String, usize)> {
    let digits = text[start..].bytes().take(most).take_while(|&b| char::from(b).is_digit(radix)).count();
    let code = u8::from_str_radix(&text[start..start + digits], radix).ok()?;
    code.is_ascii().then(|| (char::from(code).to_string(), start + digits))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(text: &str, escapes: Escapes) -> Option<String> {
        let mut decoded = Decoded::default();
        decoded.add(text, 0, text.len(), escapes)?;
        Some(decoded.text)
    }

    #[test]
    fn escapes_of_each_language() {
        assert_eq!(decode(r"a\n\tb\x41\101\\", Escapes::C).as_deref(), Some("a\n\tbAA\\"));
        assert_eq!(decode("a\\\n   b", Escapes::Rust).as_deref(), Some("ab"));
        assert_eq!(decode("a\\\n   b", Escapes::Python).as_deref(), Some("a   b"));
        assert_eq!(decode(r"a\n", Escapes::Raw).as_deref(), Some(r"a\n"));
        assert_eq!(decode(r"a\q", Escapes::C), None);
        assert_eq!(decode("a\\", Escapes::C), None);
    }

    #[test]
    fn pieces_cover_the_text() {
        let mut decoded = Decoded::default();
        decoded.add("ab\\ncd", 0, 6, Escapes::C).expect("known escapes");
        let pieces: Vec<_> = decoded.pieces.iter().map(|p| (p.start, p.len, p.host)).collect();
        assert_eq!(pieces, [(0, 2, range(0, 2)), (2, 1, range(2, 4)), (3, 2, range(4, 6))]);
    }
}
