//! Finds the ends of comments, strings and preprocessor lines.
//!
//! The lexer and the splitter share these functions, so both find the same braces.

/// The position of the first line break at or after `pos`, or the end of the text. The break may be `\r\n`, of which the
/// text of an item may contain only the first half.
pub(crate) fn line_end(bytes: &[u8], pos: usize) -> usize {
    let end = memchr::memchr(b'\n', &bytes[pos..]).map_or(bytes.len(), |at| pos + at);
    end - usize::from(bytes[pos..end].ends_with(b"\r"))
}

/// The next occurrence of certain bytes, for a reader that only moves forward. Each byte is searched only once, however
/// often the reader asks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Next {
    /// The result of the last search.
    at: Option<usize>,
}

impl Next {
    /// The first position at or after `pos` that `find` returns for the rest of the text, or the end of the text.
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

/// The first `.` or `#` that may begin an item at the start of a line. It skips words from `.g` to `.s`, because no
/// item inside braces begins with one, but most directives there do. The result may also follow several blanks in the
/// middle of a line.
///
/// Such bytes are rare and lines are many, so the function examines blocks of bytes with vector instructions.
pub(crate) fn find_start(bytes: &[u8]) -> Option<usize> {
    const BLOCK: usize = 32;
    if let [b'\n', b'.' | b'#', ..] = bytes {
        return Some(1);
    }
    let is_start = |two_before: u8, before: u8, byte: u8, after: u8| {
        let begins_line = (before == b'\n') | (two_before.max(before) <= b' ');
        let begins_item = (byte == b'.') & (after.wrapping_sub(b'g') > b's' - b'g');
        begins_line & (begins_item | (byte == b'#'))
    };
    let mut at = 0;
    while let Some(block) = bytes[at..].first_chunk::<{ BLOCK + 3 }>() {
        if (0..BLOCK).fold(false, |any, i| any | is_start(block[i], block[i + 1], block[i + 2], block[i + 3]))
        {
            break;
        }
        at += BLOCK;
    }
    let found = bytes[at..].windows(4).position(|b| is_start(b[0], b[1], b[2], b[3]))?;
    Some(at + found + 2)
}

/// The end of the block comment that begins at `pos`, and whether it is closed.
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

/// The end of the string whose quote is at `pos`, and whether it is closed. A string ends on its line and contains no
/// quote.
pub(crate) fn string_end(bytes: &[u8], pos: usize) -> (usize, bool) {
    let mut at = pos + 1;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => return (at + 1, true),
            b'\n' => return (line_end(bytes, pos), false),
            _ => at += 1,
        }
    }
    (line_end(bytes, pos), false)
}

/// The end of the preprocessor line at `pos`, including continuation lines after a trailing `\`.
pub(crate) fn hash_line_end(bytes: &[u8], pos: usize) -> usize {
    let mut at = pos;
    loop {
        let end = line_end(bytes, at);
        let next = end + if bytes[end..].starts_with(b"\r\n") { 2 } else { 1 };
        if next > bytes.len() || bytes[at..end].last() != Some(&b'\\') {
            return end;
        }
        at = next;
    }
}

/// Whether a byte can continue a name or suffix.
pub const fn is_word(byte: u8) -> bool {
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

/// The number of bytes that are examined together.
const BLOCK: usize = 16;

/// The first position at or after `pos` that does not continue a word.
#[inline]
pub fn word_end(bytes: &[u8], pos: usize) -> usize {
    let first = &bytes[pos..bytes.len().min(pos + BLOCK)];
    match first.iter().position(|&byte| !is_word(byte)) {
        Some(length) => pos + length,
        None => long_word_end(bytes, pos + first.len()),
    }
}

/// The same for long words: the mangled names of templates can be thousands of bytes long.
#[inline(never)]
fn long_word_end(bytes: &[u8], mut pos: usize) -> usize {
    // Without a table, so that the compiler can use vector instructions.
    let is_word_here = |byte: u8| {
        let is_letter = (byte | 0x20).wrapping_sub(b'a') < 26;
        is_letter | (byte.wrapping_sub(b'0') < 10) | (byte == b'_') | (byte == b'$')
    };
    while let Some(block) = bytes.get(pos..pos + BLOCK)
        && block.iter().fold(true, |all, &byte| all & is_word_here(byte))
    {
        pos += BLOCK;
    }
    let rest = &bytes[pos..];
    pos + rest.iter().position(|&byte| !is_word(byte)).unwrap_or(rest.len())
}

/// The end of the parameters' names, numbers and directives that are on the same line as `pos`, without trailing
/// blanks.
pub(crate) fn parameters_end(bytes: &[u8], pos: usize) -> usize {
    let is_mark = |&byte: &u8| matches!(byte, b'\n' | b'/' | b'"' | b'(' | b')' | b'{' | b'}' | b';');
    let rest = &bytes[pos..];
    let here = &rest[..rest.iter().position(is_mark).unwrap_or(rest.len())];
    pos + here.iter().rposition(|&byte| !is_blank(byte)).map_or(0, |last| last + 1)
}

pub(crate) const fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0B | 0x0C)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_any_length_end_where_their_bytes_do() {
        for length in [0, 1, 15, 16, 17, 31, 32, 33, 48, 100] {
            for end in [" ", ".", "%", "@", "[", "`", "{", "/", ":", "\u{e9}", "\0", "#", "-", "^", ""] {
                let text = "_Z$9azAZ".repeat(13)[..length].to_owned() + end + "abcdefghijklmnopqrstuvwxyz";
                let expected = if end.is_empty() { text.len() } else { length };
                assert_eq!(word_end(text.as_bytes(), 0), expected, "{text}");
            }
        }
        assert_eq!(word_end(b"", 0), 0);
    }

    #[test]
    fn lines_end_before_their_whole_break() {
        for (text, end) in [("// a\r\nb", 4), ("// a\nb", 4), ("// a\rb", 6), ("// a\r", 4), ("//\r\r\n", 3)]
        {
            assert_eq!(line_end(text.as_bytes(), 0), end, "{text:?}");
        }
        assert_eq!(line_end(b"\r\n", 1), 1);
        assert_eq!(string_end(b"\"a\r\n\"", 0), (2, false));
        assert_eq!(hash_line_end(b"# a \\\r\n b\r\nc", 0), 9);
    }
}
