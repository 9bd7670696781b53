//! C, C++ and CUDA: finds `asm("…" : outputs : inputs : clobbers)`, and strings that hold a whole module.

use crate::cursor::{Cursor, is_word};
use crate::document::Document;
use crate::literal::{Decoded, Escapes, range};
use crate::module;
use crate::operand::{self, Kind, Operand};
use crate::scan::Sink;
use crate::statements;
use crate::template::Style;

/// How many bytes of an operand's expression are examined.
const LONGEST: usize = 8192;

/// Scans a text. `likely` says whether its assembly is probably PTX.
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
            b'"' => sink.string(&mut cursor, literal, literals, module::stands_alone),
            b'\'' => skip_quoted(&mut cursor, b'\''),
            b'0'..=b'9' => skip_number(&mut cursor),
            byte if is_word(byte) => {
                let start = cursor.at;
                match cursor.word() {
                    "asm" | "__asm__" | "__asm" => assembly(&mut cursor, likely, sink),
                    prefix if cursor.byte() == b'"' && is_prefix(prefix) => {
                        cursor.at = start;
                        sink.string(&mut cursor, literal, literals, module::stands_alone);
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

/// Reads consecutive literals, separated by blanks. Returns their contents and the end of the last one.
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
        // A suffix makes a user-defined literal, which is not a string.
        if is_word(cursor.byte()) {
            return None;
        }
        skip_blanks(cursor);
    }
}

/// Reads a literal with its prefix. `None` if it does not end on its line or has an unknown escape. The cursor moves
/// past it in either case.
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

/// Moves past a quoted text, or to the end of its line.
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
    // The escaped character may have several bytes.
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

/// Skips blanks, comments, and escaped line ends as in macros.
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

/// Reads a statement after the word `asm`. If it is not a valid statement, the scanner continues in it.
fn assembly(cursor: &mut Cursor<'_>, likely: bool, sink: &mut Sink<'_>) {
    let mut ahead = *cursor;
    let statement = statement(&mut ahead);
    sink.looked(ahead.at + 1);
    let Some(Statement { start, end, decoded, operands, is_extended }) = statement else { return };
    cursor.at = ahead.at;
    if !is_extended && statements::is_symbol(&decoded.text) {
        return;
    }
    // The constraints are not PTX's, so the assembly is for another machine.
    let Some(operands) = operands else { return };
    let style = if is_extended { Style::Gcc } else { Style::Plain };
    if let Some(document) = Document::inline(&decoded, style, &operands, likely, false) {
        sink.snippet(range(start, end), document);
    }
}

struct Statement {
    /// The start of the text, including its quote.
    start: usize,
    end: usize,
    decoded: Decoded,
    /// `None` if an operand has a constraint that PTX does not have.
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
