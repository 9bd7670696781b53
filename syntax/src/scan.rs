//! Extents of comments, strings and preprocessor lines.
//!
//! Shared by the lexer and the splitter, so that both see the same braces.

/// Where the first line break at or after `pos` is, or the end.
pub(crate) fn line_end(bytes: &[u8], pos: usize) -> usize {
    memchr::memchr(b'\n', &bytes[pos..]).map_or(bytes.len(), |at| pos + at)
}

/// The next of some bytes in a text, for a reader that only goes forward: each byte is searched once, however often
/// the reader asks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Next {
    /// The last answer.
    at: Option<usize>,
}

impl Next {
    /// The first position at or after `pos` that `find` gives for the rest of the text, or the end of the text.
    pub fn at_or_after(&mut self, bytes: &[u8], pos: usize, find: fn(&[u8]) -> Option<usize>) -> usize {
        match self.at {
            Some(at) if at >= pos => at,
            _ => {
                let at = find(&bytes[pos..]).map_or(bytes.len(), |at| pos + at);
                self.at = Some(at);
                at
            }
        }
    }
}

/// The first `.` or `#` behind a blank: all directives that begin a line are among these.
///
/// Bodies have few of them and many lines, so the bytes are looked at in blocks, as vectors.
pub(crate) fn find_start(bytes: &[u8]) -> Option<usize> {
    const BLOCK: usize = 32;
    let is_start = |before: u8, byte: u8| (before <= b' ') & ((byte == b'.') | (byte == b'#'));
    let mut at = 0;
    while let Some(block) = bytes.get(at..at + BLOCK + 1) {
        let starts = std::iter::zip(&block[..BLOCK], &block[1..]);
        if starts.fold(false, |any, (&before, &byte)| any | is_start(before, byte)) {
            break;
        }
        at += BLOCK;
    }
    let found = bytes[at..].windows(2).position(|pair| is_start(pair[0], pair[1]))?;
    Some(at + found + 1)
}

/// The end of the block comment that opens at `pos`, and whether it is closed.
pub(crate) fn block_comment_end(bytes: &[u8], pos: usize) -> (usize, bool) {
    let mut at = pos + 2;
    while let Some(star) = bytes.get(at..).and_then(|rest| rest.iter().position(|&byte| byte == b'*')) {
        at += star + 1;
        if bytes.get(at) == Some(&b'/') {
            return (at + 1, true);
        }
    }
    (bytes.len(), false)
}

/// The end of the string whose quote is at `pos`, and whether it is closed. A string does not cross a line, and
/// no quote stands in it.
pub(crate) fn string_end(bytes: &[u8], pos: usize) -> (usize, bool) {
    let mut at = pos + 1;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => return (at + 1, true),
            b'\n' => return (at, false),
            _ => at += 1,
        }
    }
    (bytes.len(), false)
}

/// The end of the preprocessor line at `pos`, with the lines a trailing `\` adds to it.
pub(crate) fn hash_line_end(bytes: &[u8], pos: usize) -> usize {
    let mut at = pos;
    loop {
        let end = line_end(bytes, at);
        let line = bytes[at..end].strip_suffix(b"\r").unwrap_or(&bytes[at..end]);
        if end == bytes.len() || line.last() != Some(&b'\\') {
            return end;
        }
        at = end + 1;
    }
}

/// A byte that continues a name or suffix.
pub(crate) const fn is_word(byte: u8) -> bool {
    WORD[byte as usize]
}

const WORD: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = (byte as u8).is_ascii_alphanumeric() || byte as u8 == b'_' || byte as u8 == b'$';
        byte += 1;
    }
    table
};

/// The first position at or after `pos` that does not continue a word.
pub(crate) fn word_end(bytes: &[u8], mut pos: usize) -> usize {
    while pos < bytes.len() && is_word(bytes[pos]) {
        pos += 1;
    }
    pos
}

pub(crate) const fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0B | 0x0C)
}
