//! C, C++ and CUDA: `asm("…" : outputs : inputs : clobbers)`, and strings that hold a whole module.

use crate::cursor::{Cursor, is_word};
use crate::document::Document;
use crate::literal::{Decoded, Escapes, range};
use crate::operand::{self, Kind, Operand};
use crate::scan::Sink;
use crate::template::Style;

/// Bytes of an operand's expression that are looked at.
const LONGEST: usize = 8192;

/// Scans a text. `likely` its assembly is PTX.
pub(crate) fn scan(text: &str, likely: bool, sink: &mut Sink<'_>) {
    let mut cursor = Cursor { text, at: 0 };
    while !cursor.is_end() {
        match cursor.byte() {
            b'\n' => {
                cursor.at += 1;
                if !sink.line(cursor.at) {
                    return;
                }
            }
            b'/' if matches!(cursor.peek(1), b'/' | b'*') => skip_comment(&mut cursor),
            b'"' => sink.string(&mut cursor, literal, literals),
            b'\'' => skip_quoted(&mut cursor, b'\''),
            b'0'..=b'9' => skip_number(&mut cursor),
            byte if is_word(byte) => {
                let start = cursor.at;
                match cursor.word() {
                    "asm" | "__asm__" | "__asm" => assembly(&mut cursor, likely, sink),
                    prefix if cursor.byte() == b'"' && is_prefix(prefix) => {
                        cursor.at = start;
                        sink.string(&mut cursor, literal, literals);
                    }
                    _ => {}
                }
            }
            _ => cursor.at += 1,
        }
    }
}

fn is_prefix(word: &str) -> bool {
    matches!(word, "R" | "u8R" | "uR" | "UR" | "LR" | "u8" | "u" | "U" | "L")
}

/// One literal after another, with blanks between them: their contents, and where the last one ends.
fn literals(cursor: &mut Cursor<'_>) -> Option<(Decoded, usize)> {
    let mut decoded = Decoded::default();
    let mut end = None;
    loop {
        let is_string = cursor.byte() == b'"' || {
            let mut ahead = *cursor;
            let word = ahead.word();
            ahead.byte() == b'"' && is_prefix(word)
        };
        if !is_string {
            return end.map(|end| (decoded, end));
        }
        literal(cursor, &mut decoded)?;
        end = Some(cursor.at);
        // A suffix makes something else of it.
        if is_word(cursor.byte()) {
            return None;
        }
        skip_blanks(cursor);
    }
}

/// A literal with its prefix. `None` if it doesn't end on its line or has an unknown escape; the cursor is
/// after it in either case.
fn literal(cursor: &mut Cursor<'_>, decoded: &mut Decoded) -> Option<()> {
    let prefix = cursor.word();
    let text = cursor.text;
    if prefix.ends_with('R') {
        cursor.at += 1;
        let start = cursor.at;
        let length = text[start..].bytes().take(17).position(|b| b == b'(')?;
        let close = format!("){}\"", &text[start..start + length]);
        cursor.at = start + length + 1;
        let contents = cursor.at;
        if !cursor.past(&close) {
            return None;
        }
        return decoded.add(text, contents, cursor.at - close.len(), Escapes::Raw);
    }
    let start = cursor.at + 1;
    skip_quoted(cursor, b'"');
    let is_closed = cursor.at > start && text.as_bytes()[cursor.at - 1] == b'"';
    if is_closed { decoded.add(text, start, cursor.at - 1, Escapes::C) } else { None }
}

/// Goes past a quoted text, or to the end of its line.
fn skip_quoted(cursor: &mut Cursor<'_>, quote: u8) {
    cursor.at += 1;
    while !cursor.is_end() {
        match cursor.byte() {
            b'\\' if cursor.peek(1) == b'\r' && cursor.peek(2) == b'\n' => cursor.skip(3),
            b'\\' => cursor.skip(2),
            b'\n' => return,
            byte => {
                cursor.at += 1;
                if byte == quote {
                    return;
                }
            }
        }
    }
    // A backslash may have gone into a character.
    while !cursor.text.is_char_boundary(cursor.at) {
        cursor.at += 1;
    }
}

fn skip_number(cursor: &mut Cursor<'_>) {
    while is_word(cursor.byte()) || cursor.byte() == b'\'' && is_word(cursor.peek(1)) {
        cursor.at += 1;
    }
}

fn skip_comment(cursor: &mut Cursor<'_>) {
    if cursor.eat("/*") {
        cursor.past("*/");
        return;
    }
    while !cursor.is_end() && cursor.byte() != b'\n' {
        match (cursor.byte(), cursor.peek(1), cursor.peek(2)) {
            (b'\\', b'\n', _) => cursor.skip(2),
            (b'\\', b'\r', b'\n') => cursor.skip(3),
            _ => cursor.at += 1,
        }
    }
}

/// Blanks, comments, and the ends of lines that go on, as in macros.
fn skip_blanks(cursor: &mut Cursor<'_>) {
    loop {
        match cursor.byte() {
            b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c => cursor.at += 1,
            b'\\' if matches!(cursor.peek(1), b'\n' | b'\r') => cursor.at += 1,
            b'/' if matches!(cursor.peek(1), b'/' | b'*') => skip_comment(cursor),
            _ => return,
        }
    }
}

/// A statement after the word `asm`. What is not one is left for the scanner.
fn assembly(cursor: &mut Cursor<'_>, likely: bool, sink: &mut Sink<'_>) {
    let mut ahead = *cursor;
    let statement = statement(&mut ahead);
    sink.looked(ahead.at + 1);
    let Some(Statement { start, end, decoded, operands, is_extended }) = statement else { return };
    cursor.at = ahead.at;
    // Operands that aren't PTX's: another machine.
    let Some(operands) = operands else { return };
    let style = if is_extended { Style::Gcc } else { Style::Plain };
    if let Some(document) = Document::inline(&decoded, style, &operands, likely, false) {
        sink.snippet(range(start, end), document);
    }
}

struct Statement {
    /// Of the text, with its quotes.
    start: usize,
    end: usize,
    decoded: Decoded,
    /// `None` if one isn't of PTX.
    operands: Option<Vec<Operand>>,
    is_extended: bool,
}

fn statement(cursor: &mut Cursor<'_>) -> Option<Statement> {
    skip_blanks(cursor);
    while is_word(cursor.byte()) {
        if !matches!(cursor.word(), "volatile" | "__volatile__" | "__volatile" | "inline" | "__inline__") {
            return None;
        }
        skip_blanks(cursor);
    }
    if !cursor.eat("(") {
        return None;
    }
    skip_blanks(cursor);
    let start = cursor.at;
    let (decoded, end) = literals(cursor)?;
    let mut operands = Some(Vec::new());
    let mut section = 0;
    while cursor.eat(":") {
        section += 1;
        skip_blanks(cursor);
        while !matches!(cursor.byte(), b':' | b')') {
            if section == 3 {
                literals(cursor)?;
            } else {
                let operand = operand(cursor)?;
                operands = operands.and_then(|mut all| {
                    let mut new = Operand::of_constraint(&operand.constraint, &mut all)?;
                    new.name = operand.name;
                    new.source = format!("\"{}\"({})", operand.constraint, operand.expression);
                    if let Kind::Constant(value) = &mut new.kind {
                        *value = operand::literal(operand.expression);
                    }
                    all.push(new);
                    Some(all)
                });
            }
            skip_blanks(cursor);
            if cursor.eat(",") {
                skip_blanks(cursor);
            } else if !matches!(cursor.byte(), b':' | b')') {
                return None;
            }
        }
    }
    (section <= 3 && cursor.eat(")")).then_some(())?;
    Some(Statement { start, end, decoded, operands, is_extended: section > 0 })
}

struct Written<'a> {
    name: Option<String>,
    constraint: String,
    expression: &'a str,
}

/// `[name] "constraint"(expression)`.
fn operand<'a>(cursor: &mut Cursor<'a>) -> Option<Written<'a>> {
    let mut name = None;
    if cursor.eat("[") {
        skip_blanks(cursor);
        name = Some(cursor.word().to_owned());
        skip_blanks(cursor);
        cursor.eat("]").then_some(())?;
        skip_blanks(cursor);
    }
    let (constraint, _) = literals(cursor)?;
    cursor.eat("(").then_some(())?;
    let start = cursor.at;
    let mut depth = 1;
    while depth > 0 {
        if cursor.is_end() || cursor.at - start > LONGEST {
            return None;
        }
        match cursor.byte() {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth -= 1,
            b'"' | b'\'' => {
                skip_quoted(cursor, cursor.byte());
                continue;
            }
            b'0'..=b'9' => {
                skip_number(cursor);
                continue;
            }
            b'/' if matches!(cursor.peek(1), b'/' | b'*') => {
                skip_comment(cursor);
                continue;
            }
            byte if is_word(byte) => {
                cursor.word();
                continue;
            }
            _ => {}
        }
        cursor.at += 1;
    }
    Some(Written { name, constraint: constraint.text, expression: &cursor.text[start..cursor.at - 1] })
}
