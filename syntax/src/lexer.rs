//! Splits text into tokens. The lexer accepts any text and loses nothing: the lengths of the tokens add up to the
//! length of the text.
//!
//! A suffix or directive is a single token with its dot and its `::` parts (`.global`, `.L2::128B`). A mnemonic is an
//! ordinary name. A number token contains everything that follows its first digit without a break, so `12ab` is one
//! malformed number and not two tokens. `WARP_SZ` is a number too.

use text_size::TextSize;

use crate::SyntaxKind::{self, *};
use crate::ast::literal;
use crate::flat::Significant;
use crate::scan;
use crate::validate::Faults;

/// A token. It starts at the sum of the lengths before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Token {
    pub kind: SyntaxKind,
    /// In bytes, never zero.
    pub len: u32,
}

/// Splits `text` into tokens. A text of 4 GiB or more exceeds the range of positions and yields no tokens.
pub fn lex(text: &str) -> Vec<Token> {
    let mut all = Vec::with_capacity(text.len() / 3 + 1);
    all.extend(tokens(text));
    all
}

/// As [`lex`], but as an iterator.
pub fn tokens(text: &str) -> impl Iterator<Item = Token> {
    let bytes = text.as_bytes();
    let end = if u32::try_from(bytes.len()).is_ok() { bytes.len() } else { 0 };
    let mut pos = 0;
    // True if there are only blanks since the last line break. A `#` here begins a preprocessor line.
    let mut line_start = true;
    std::iter::from_fn(move || {
        if pos >= end {
            return None;
        }
        let start = pos;
        let (kind, end) = token(bytes, start, line_start);
        line_start = match kind {
            WHITESPACE => line_start || bytes[start..end].contains(&b'\n'),
            _ => false,
        };
        pos = end;
        Some(Token { kind, len: (end - start) as u32 })
    })
}

/// Adds the tokens of `text` except blanks and comments. With `is_heading`, the tokens end with the first brace and a
/// closing brace.
pub(crate) fn significant(text: &str, is_heading: bool, tokens: &mut Vec<Significant>) -> Faults {
    let bytes = text.as_bytes();
    let mut faults = Faults::default();
    if u32::try_from(bytes.len()).is_err() {
        return faults;
    }
    let mut pos = 0;
    // Whether `#` may begin a preprocessor line here, and whether the next token is the first of its line.
    let (mut opens_hash_line, mut line_start) = (true, true);
    while let Some(&byte) = bytes.get(pos) {
        if scan::is_blank(byte) {
            let has_break = byte == b'\n';
            opens_hash_line |= has_break;
            line_start |= has_break;
            pos += 1;
            continue;
        }
        let (kind, end) = token(bytes, pos, opens_hash_line);
        opens_hash_line = false;
        faults.check(kind, text, pos, end);
        if kind.is_trivia() {
            // A line comment ends before its line break, which belongs to the following blanks.
            line_start |= kind != LINE_COMMENT && bytes[pos..end].contains(&b'\n');
            pos = end;
            continue;
        }
        tokens.push(Significant { kind, line_start, start: pos as u32, len: (end - pos) as u32 });
        line_start = false;
        pos = end;
        if is_heading && kind == L_BRACE {
            tokens.push(Significant { kind: R_BRACE, line_start, start: pos as u32, len: 0 });
            break;
        }
    }
    faults
}

/// The start of the first token at or after `at` that is neither blank nor comment, or the end of the text. `at` must
/// be the start of a token.
pub fn next_token(text: &str, at: TextSize) -> TextSize {
    let bytes = text.as_bytes();
    let mut pos = usize::from(at);
    let mut line_start = bytes[..pos]
        .iter()
        .rev()
        .find(|&&byte| byte == b'\n' || !scan::is_blank(byte))
        .is_none_or(|&byte| byte == b'\n');
    while pos < bytes.len() {
        let (kind, end) = token(bytes, pos, line_start);
        if !kind.is_trivia() {
            break;
        }
        line_start = kind == WHITESPACE && (line_start || bytes[pos..end].contains(&b'\n'));
        pos = end;
    }
    TextSize::new(pos as u32)
}

/// The kind and the end of the token at `pos`.
pub(crate) fn token(bytes: &[u8], pos: usize, line_start: bool) -> (SyntaxKind, usize) {
    let next = bytes.get(pos + 1).copied().unwrap_or(0);
    let one = |kind| (kind, pos + 1);
    let two = |kind| (kind, pos + 2);
    match bytes[pos] {
        byte if scan::is_blank(byte) => {
            let mut end = pos + 1;
            while end < bytes.len() && scan::is_blank(bytes[end]) {
                end += 1;
            }
            (WHITESPACE, end)
        }
        b'a'..=b'z' | b'A'..=b'Z' => {
            let end = scan::word_end(bytes, pos + 1);
            (if &bytes[pos..end] == literal::WARP_SIZE.as_bytes() { INT } else { IDENT }, end)
        }
        b'_' | b'$' | b'%' if scan::is_word(next) => (IDENT, scan::word_end(bytes, pos + 1)),
        b'0'..=b'9' => number(bytes, pos),
        b'.' => dot(bytes, pos),
        b',' => one(COMMA),
        b';' => one(SEMICOLON),
        b'{' => one(L_BRACE),
        b'}' => one(R_BRACE),
        b'[' => one(L_BRACK),
        b']' => one(R_BRACK),
        b'(' => one(L_PAREN),
        b')' => one(R_PAREN),
        b'/' if next == b'/' => (LINE_COMMENT, scan::line_end(bytes, pos)),
        b'/' if next == b'*' => (BLOCK_COMMENT, scan::block_comment_end(bytes, pos).0),
        b'"' => (STRING, string_token_end(bytes, pos)),
        b'#' if line_start => (HASH_LINE, scan::hash_line_end(bytes, pos)),
        b'_' => one(UNDERSCORE),
        b':' => one(COLON),
        b'@' => one(AT),
        b'?' => one(QUESTION),
        b'=' if next == b'=' => two(EQ2),
        b'=' => one(EQ),
        b'!' if next == b'=' => two(NEQ),
        b'!' => one(BANG),
        b'<' if next == b'<' => two(SHL),
        b'<' if next == b'=' => two(LE),
        b'<' => one(LT),
        b'>' if next == b'>' => two(SHR),
        b'>' if next == b'=' => two(GE),
        b'>' => one(GT),
        b'&' if next == b'&' => two(AMP2),
        b'&' => one(AMP),
        b'|' if next == b'|' => two(PIPE2),
        b'|' => one(PIPE),
        b'^' => one(CARET),
        b'~' => one(TILDE),
        b'+' => one(PLUS),
        b'-' => one(MINUS),
        b'*' => one(STAR),
        b'/' => one(SLASH),
        b'%' => one(PERCENT),
        byte if byte >= 0x80 => {
            // Ends at a character boundary: in UTF-8, all bytes of these characters are outside of ASCII.
            let end = bytes[pos..].iter().position(|byte| *byte < 0x80).map_or(bytes.len(), |at| pos + at);
            (BAD_CHAR, end)
        }
        // Binary data may contain millions.
        0 => (BAD_CHAR, bytes[pos..].iter().position(|byte| *byte != 0).map_or(bytes.len(), |at| pos + at)),
        _ => one(BAD_CHAR),
    }
}

/// The end of a string token. An unclosed string ends before the carriage return of its line.
fn string_token_end(bytes: &[u8], pos: usize) -> usize {
    let (end, closed) = scan::string_end(bytes, pos);
    if !closed && end > pos + 1 && bytes[end - 1] == b'\r' { end - 1 } else { end }
}

/// Reads a number that starts with a digit. Its digits are checked later, with its value.
fn number(bytes: &[u8], pos: usize) -> (SyntaxKind, usize) {
    if bytes[pos] == b'0' {
        match bytes.get(pos + 1) {
            Some(b'x' | b'X' | b'b' | b'B') => return (INT, scan::word_end(bytes, pos + 2)),
            Some(b'f' | b'F' | b'd' | b'D') => return (FLOAT, scan::word_end(bytes, pos + 2)),
            _ => {}
        }
    }
    let digits = digits_end(bytes, pos);
    if bytes.get(digits) == Some(&b'.') {
        // `1.5` and `1.` are numbers, but in `1..` and `1.x` the dot belongs to a register range or a label.
        let fraction = digits_end(bytes, digits + 1);
        let end = exponent_end(bytes, fraction);
        return (FLOAT, scan::word_end(bytes, end));
    }
    let end = exponent_end(bytes, digits);
    if end > digits {
        return (FLOAT, scan::word_end(bytes, end));
    }
    (INT, scan::word_end(bytes, digits))
}

/// Reads `.word` with its `::word` parts and the second number of a ratio; `.5` if no word precedes it; otherwise a
/// single dot.
fn dot(bytes: &[u8], pos: usize) -> (SyntaxKind, usize) {
    let mut end = scan::word_end(bytes, pos + 1);
    if end == pos + 1 {
        return (DOT, end);
    }
    let after_word = pos > 0 && scan::is_word(bytes[pos - 1]);
    if bytes[pos + 1].is_ascii_digit() && !after_word {
        let number = exponent_end(bytes, digits_end(bytes, pos + 1));
        if number >= end {
            return (FLOAT, number);
        }
    }
    while bytes.get(end..end + 2) == Some(b"::")
        && bytes.get(end + 2).is_some_and(|&byte| scan::is_word(byte))
    {
        let part = end + 2;
        end = scan::word_end(bytes, part);
        // `.sp::2:4`
        let is_number = bytes[part..end].iter().all(u8::is_ascii_digit);
        if is_number && bytes.get(end) == Some(&b':') && bytes.get(end + 1).is_some_and(u8::is_ascii_digit) {
            end = scan::word_end(bytes, end + 1);
        }
    }
    (DOT_WORD, end)
}

fn digits_end(bytes: &[u8], mut pos: usize) -> usize {
    while bytes.get(pos).is_some_and(u8::is_ascii_digit) {
        pos += 1;
    }
    pos
}

/// The end of an exponent such as `e-5` at `pos`, or `pos` if there is none.
fn exponent_end(bytes: &[u8], pos: usize) -> usize {
    if !matches!(bytes.get(pos), Some(b'e' | b'E')) {
        return pos;
    }
    let sign = usize::from(matches!(bytes.get(pos + 1), Some(b'+' | b'-')));
    let end = digits_end(bytes, pos + 1 + sign);
    if end > pos + 1 + sign { end } else { pos }
}
