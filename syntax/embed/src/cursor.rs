//! A position in the bytes of a host text.

/// A cursor over the bytes of a text. Past the end, it reads zeros.
#[derive(Clone, Copy)]
pub(crate) struct Cursor<'a> {
    pub(crate) text: &'a str,
    pub(crate) at: usize,
}

pub(crate) fn is_word(byte: u8) -> bool {
    byte == b'_' || byte.is_ascii_alphanumeric() || byte >= 0x80
}

impl<'a> Cursor<'a> {
    pub(crate) fn byte(&self) -> u8 {
        self.peek(0)
    }

    pub(crate) fn peek(&self, ahead: usize) -> u8 {
        self.text.as_bytes().get(self.at + ahead).copied().unwrap_or(0)
    }

    pub(crate) fn is_end(&self) -> bool {
        self.at >= self.text.len()
    }

    pub(crate) fn starts_with(&self, what: &str) -> bool {
        self.text.as_bytes()[self.at.min(self.text.len())..].starts_with(what.as_bytes())
    }

    pub(crate) fn eat(&mut self, what: &str) -> bool {
        let is_there = self.starts_with(what);
        if is_there {
            self.at += what.len();
        }
        is_there
    }

    /// Moves forward by a number of bytes, but not past the end.
    pub(crate) fn skip(&mut self, bytes: usize) {
        self.at = (self.at + bytes).min(self.text.len());
    }

    pub(crate) fn word(&mut self) -> &'a str {
        let start = self.at;
        while is_word(self.byte()) {
            self.at += 1;
        }
        &self.text[start..self.at]
    }

    /// Moves past the next occurrence of `what`, or to the end.
    pub(crate) fn past(&mut self, what: &str) -> bool {
        let rest = &self.text.as_bytes()[self.at.min(self.text.len())..];
        let found = rest.windows(what.len()).position(|window| window == what.as_bytes());
        self.at = found.map_or(self.text.len(), |found| self.at + found + what.len());
        found.is_some()
    }
}
