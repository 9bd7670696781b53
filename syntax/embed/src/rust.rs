//! Rust: finds `asm!("…", out(reg32) x, in(reg64) y)` for NVPTX, and strings that hold a whole module.

use crate::cursor::{Cursor, is_word};
use crate::document::Document;
use crate::literal::{Decoded, Escapes, range};
use crate::module;
use crate::operand::{self, Kind, Operand};
use crate::scan::Sink;
use crate::template::Style;

/// How many bytes of an operand are examined.
const LONGEST: usize = 8192;

pub(crate) fn scan(text: &str, sink: &mut Sink<'_>) {
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
            b'\'' => skip_quote(&mut cursor),
            b'"' => string(&mut cursor, sink),
            byte if is_word(byte) => {
                let start = cursor.at;
                let word = cursor.word();
                if is_string(start, &cursor) {
                    cursor.at = start;
                    string(&mut cursor, sink);
                } else if word == "asm" && cursor.byte() == b'!' {
                    assembly(&mut cursor, sink);
                }
            }
            _ => cursor.at += 1,
        }
    }
}

/// Whether the word before the cursor is the prefix of a string.
fn is_string(start: usize, cursor: &Cursor<'_>) -> bool {
    match &cursor.text[start..cursor.at] {
        "b" | "c" => cursor.byte() == b'"',
        "r" | "br" | "cr" => {
            let hashes = cursor.text[cursor.at..].bytes().take_while(|&b| b == b'#').count();
            cursor.peek(hashes) == b'"'
        }
        _ => false,
    }
}

fn skip_comment(cursor: &mut Cursor<'_>) {
    if cursor.starts_with("//") {
        while !cursor.is_end() && cursor.byte() != b'\n' {
            cursor.at += 1;
        }
        return;
    }
    let mut depth = 0;
    while !cursor.is_end() {
        if cursor.eat("/*") {
            depth += 1;
        } else if cursor.eat("*/") {
            depth -= 1;
            if depth == 0 {
                return;
            }
        } else {
            cursor.at += 1;
        }
    }
}

/// Moves past a character literal or a lifetime.
fn skip_quote(cursor: &mut Cursor<'_>) {
    cursor.at += 1;
    let rest = &cursor.text[cursor.at..];
    let mut characters = rest.char_indices();
    match characters.next() {
        Some((_, '\\')) => {
            cursor.skip(2);
            while !cursor.is_end() && !matches!(cursor.byte(), b'\'' | b'\n') {
                cursor.at += 1;
            }
            cursor.eat("'");
        }
        Some(_) => {
            if let Some((after, '\'')) = characters.next() {
                cursor.at += after + 1;
            }
        }
        None => {}
    }
    while !cursor.text.is_char_boundary(cursor.at) {
        cursor.at += 1;
    }
}

fn string(cursor: &mut Cursor<'_>, sink: &mut Sink<'_>) {
    let start = cursor.at;
    let mut decoded = Decoded::default();
    if literal(cursor, &mut decoded).is_some() && module::begins(&decoded.text) {
        sink.snippet(range(start, cursor.at), Document::module(&decoded));
    }
}

fn literal(cursor: &mut Cursor<'_>, decoded: &mut Decoded) -> Option<()> {
    let prefix = cursor.word();
    let text = cursor.text;
    if prefix.contains('r') {
        let hashes = text[cursor.at..].bytes().take_while(|&b| b == b'#').count();
        cursor.skip(hashes + 1);
        let start = cursor.at;
        let close = format!("\"{}", "#".repeat(hashes));
        return match cursor.past(&close) {
            true => decoded.add(text, start, cursor.at - close.len(), Escapes::Raw),
            false => None,
        };
    }
    cursor.at += 1;
    let start = cursor.at;
    while !cursor.is_end() {
        match cursor.byte() {
            b'\\' => cursor.skip(2),
            b'"' => {
                cursor.at += 1;
                return decoded.add(text, start, cursor.at - 1, Escapes::Rust);
            }
            _ => cursor.at += 1,
        }
    }
    None
}

fn skip_blanks(cursor: &mut Cursor<'_>) {
    loop {
        match cursor.byte() {
            b' ' | b'\t' | b'\n' | b'\r' => cursor.at += 1,
            b'/' if matches!(cursor.peek(1), b'/' | b'*') => skip_comment(cursor),
            _ => return,
        }
    }
}

fn assembly(cursor: &mut Cursor<'_>, sink: &mut Sink<'_>) {
    let mut ahead = *cursor;
    let found = call(&mut ahead);
    sink.looked(ahead.at + 1);
    let Some(Call { start, end, decoded, operands, is_raw }) = found else { return };
    cursor.at = ahead.at;
    let Some(operands) = operands else { return };
    let style = if is_raw { Style::Plain } else { Style::Rust };
    // Only NVPTX has these register classes.
    let likely = operands.iter().any(|operand| matches!(operand.kind, Kind::Register(_)));
    if let Some(document) = Document::inline(&decoded, style, &operands, likely, false) {
        sink.snippet(range(start, end), document);
    }
}

struct Call {
    start: usize,
    end: usize,
    decoded: Decoded,
    /// `None` if an operand has a register class that NVPTX does not have.
    operands: Option<Vec<Operand>>,
    is_raw: bool,
}

fn call(cursor: &mut Cursor<'_>) -> Option<Call> {
    cursor.eat("!").then_some(())?;
    skip_blanks(cursor);
    matches!(cursor.byte(), b'(' | b'[' | b'{').then_some(())?;
    cursor.at += 1;
    skip_blanks(cursor);
    let start = cursor.at;
    let mut end = start;
    let mut decoded = Decoded::default();
    let mut operands = Some(Vec::new());
    let mut is_raw = false;
    let mut is_text = true;
    loop {
        skip_blanks(cursor);
        if matches!(cursor.byte(), b')' | b']' | b'}') {
            cursor.at += 1;
            break;
        }
        let before = cursor.at;
        cursor.word();
        let string = cursor.byte() == b'"' || is_string(before, cursor);
        cursor.at = before;
        if string && is_text {
            if end > start {
                decoded.push_own("\n");
            }
            literal(cursor, &mut decoded)?;
            end = cursor.at;
            skip_blanks(cursor);
        } else {
            is_text = false;
            let written = argument(cursor)?;
            if let Some(options) = written.trim().strip_prefix("options") {
                is_raw |= options.contains("raw");
                if options.contains("att_syntax") {
                    operands = None;
                }
            } else if !written.trim_start().starts_with("clobber_abi") {
                operands = operands.and_then(|mut all: Vec<Operand>| {
                    all.push(operand(written)?);
                    Some(all)
                });
            }
        }
        if !cursor.eat(",") && !matches!(cursor.byte(), b')' | b']' | b'}') {
            return None;
        }
    }
    (end > start).then_some(Call { start, end, decoded, operands, is_raw })
}

/// An argument, up to its comma or to the end of the call.
fn argument<'a>(cursor: &mut Cursor<'a>) -> Option<&'a str> {
    let start = cursor.at;
    let mut depth = 0;
    while !cursor.is_end() && cursor.at - start < LONGEST {
        match cursor.byte() {
            b',' if depth == 0 => return Some(&cursor.text[start..cursor.at]),
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' if depth == 0 => return Some(&cursor.text[start..cursor.at]),
            b')' | b']' | b'}' => depth -= 1,
            b'"' => {
                literal(cursor, &mut Decoded::default());
                continue;
            }
            b'\'' => {
                skip_quote(cursor);
                continue;
            }
            b'/' if matches!(cursor.peek(1), b'/' | b'*') => {
                skip_comment(cursor);
                continue;
            }
            _ => {}
        }
        cursor.at += 1;
    }
    None
}

/// `name = out(reg32) expression`, `const expression`.
fn operand(text: &str) -> Option<Operand> {
    let mut rest = text.trim();
    let source = rest.to_owned();
    let mut name = None;
    if let Some((before, after)) = rest.split_once('=')
        && !after.starts_with(['=', '>'])
        && before.trim().bytes().all(is_word)
    {
        name = Some(before.trim().to_owned());
        rest = after.trim_start();
    }
    if let Some(value) = rest.strip_prefix("const ") {
        let kind = Kind::Constant(operand::literal(value));
        return Some(Operand { name, kind, source, is_read: true, is_written: false });
    }
    let (direction, rest) = rest.split_once('(')?;
    let class = rest.split_once(')')?.0.trim();
    let (is_read, is_written) = match direction.trim() {
        "in" => (true, false),
        "out" | "lateout" => (false, true),
        "inout" | "inlateout" => (true, true),
        _ => return None,
    };
    let kind = Kind::Register(match class {
        "reg16" => ".b16",
        "reg32" => ".b32",
        "reg64" => ".b64",
        _ => return None,
    });
    Some(Operand { name, kind, source, is_read, is_written })
}
