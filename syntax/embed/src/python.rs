//! Python: finds Triton's `inline_asm_elementwise("…", "=r,r", …)`, the inline assembly of llvmlite and MLIR, and
//! strings that hold a whole module or a CUDA program (CuPy's `RawKernel`).

use crate::cursor::{Cursor, is_word};
use crate::document::Document;
use crate::literal::{Decoded, Escapes, range};
use crate::module;
use crate::operand;
use crate::scan::Sink;
use crate::template::Style;

/// How many bytes of an argument are examined, not counting its strings.
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
            b'#' => skip_comment(&mut cursor),
            b'"' | b'\'' => sink.string(&mut cursor, literal, literals, stands_alone),
            byte if is_word(byte) => {
                let start = cursor.at;
                let word = cursor.word();
                if matches!(cursor.byte(), b'"' | b'\'') && prefix(word).is_some() {
                    cursor.at = start;
                    sink.string(&mut cursor, literal, literals, stands_alone);
                } else if matches!(word, "inline_asm_elementwise" | "InlineAsm" | "inline_asm" | "asm") {
                    assembly(&mut cursor, word, sink);
                }
            }
            _ => cursor.at += 1,
        }
    }
}

/// The kind of string that the letters before a quote select.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Prefix {
    Text,
    Raw,
    /// A byte string, or a string with embedded expressions.
    Other,
}

fn prefix(word: &str) -> Option<Prefix> {
    Some(match word.to_ascii_lowercase().as_str() {
        "" | "u" => Prefix::Text,
        "r" => Prefix::Raw,
        "b" | "rb" | "br" | "f" | "rf" | "fr" | "t" | "rt" | "tr" => Prefix::Other,
        _ => return None,
    })
}

fn skip_comment(cursor: &mut Cursor<'_>) {
    while !cursor.is_end() && cursor.byte() != b'\n' {
        cursor.at += 1;
    }
}

fn skip_blanks(cursor: &mut Cursor<'_>) {
    loop {
        match cursor.byte() {
            b' ' | b'\t' | b'\n' | b'\r' | 0x0c => cursor.at += 1,
            b'\\' if matches!(cursor.peek(1), b'\n' | b'\r') => cursor.at += 1,
            b'#' => skip_comment(cursor),
            _ => return,
        }
    }
}

/// Whether a string is used as it is. A word on another line begins the next statement. (Within brackets it could also be
/// `if` or `for`, which is rare.)
fn stands_alone(blanks: &str, next: u8) -> bool {
    is_word(next) && blanks.contains('\n') || module::stands_alone(blanks, next)
}

/// Reads consecutive literals. Returns their contents and the end of the last one.
fn literals(cursor: &mut Cursor<'_>) -> Option<(Decoded, usize)> {
    let mut decoded = Decoded::default();
    let mut end = None;
    loop {
        let mut ahead = *cursor;
        let is_string = prefix(ahead.word()).is_some() && matches!(ahead.byte(), b'"' | b'\'');
        if !is_string {
            return end.map(|end| (decoded, end));
        }
        literal(cursor, &mut decoded)?;
        end = Some(cursor.at);
        skip_blanks(cursor);
    }
}

/// Reads a literal with its prefix. `None` if its contents are unknown. The cursor moves past it in either case.
fn literal(cursor: &mut Cursor<'_>, decoded: &mut Decoded) -> Option<()> {
    let kind = prefix(cursor.word())?;
    let quote = if cursor.byte() == b'"' { "\"\"\"" } else { "'''" };
    let is_long = cursor.starts_with(quote);
    let close = if is_long { quote } else { &quote[..1] };
    cursor.skip(close.len());
    let start = cursor.at;
    while !cursor.is_end() {
        match cursor.byte() {
            b'\\' => cursor.skip(2),
            b'\n' if !is_long => return None,
            _ if cursor.starts_with(close) => {
                let end = cursor.at;
                cursor.skip(close.len());
                return match kind {
                    Prefix::Text => decoded.add(cursor.text, start, end, Escapes::Python),
                    Prefix::Raw => decoded.add(cursor.text, start, end, Escapes::Raw),
                    Prefix::Other => None,
                };
            }
            _ => cursor.at += 1,
        }
    }
    None
}

/// An argument that consists of string literals only.
struct Text {
    decoded: Decoded,
    start: usize,
    end: usize,
}

struct Argument<'a> {
    name: &'a str,
    text: Option<Text>,
}

fn assembly(cursor: &mut Cursor<'_>, function: &str, sink: &mut Sink<'_>) {
    let mut ahead = *cursor;
    let arguments = arguments(&mut ahead);
    sink.looked(ahead.at + 1);
    let Some((text, constraints)) = arguments.and_then(|all| texts(all, function)) else { return };
    // Other string arguments may hold a module, so the scanner continues after the text.
    cursor.at = ahead.at;
    let Some(operands) = operand::of_list(&constraints.decoded.text) else { return };
    let likely = !operands.is_empty();
    if let Some(document) = Document::inline(&text.decoded, Style::Llvm, &operands, likely, false) {
        sink.snippet(range(text.start, text.end), document);
    }
}

/// The assembly text and the constraints among the arguments of a call.
fn texts(mut all: Vec<Argument<'_>>, function: &str) -> Option<(Text, Text)> {
    let named = |all: &[Argument<'_>], names: &[&str]| all.iter().position(|a| names.contains(&a.name));
    let text = named(&all, &["asm", "asm_string", "asm_str"]);
    let constraints = named(&all, &["constraints", "constraint"]);
    let first = || match function {
        "inline_asm_elementwise" => Some(0),
        _ => all.iter().position(|argument| argument.name.is_empty() && argument.text.is_some()),
    };
    let text = text.or_else(first)?;
    let constraints = constraints.unwrap_or(text + 1);
    let take = |all: &mut Vec<Argument<'_>>, index: usize| all.get_mut(index)?.text.take();
    Some((take(&mut all, text)?, take(&mut all, constraints)?))
}

/// The arguments of a call. `None` if this is not a call or it does not end.
fn arguments<'a>(cursor: &mut Cursor<'a>) -> Option<Vec<Argument<'a>>> {
    skip_blanks(cursor);
    cursor.eat("(").then_some(())?;
    let mut all = Vec::new();
    loop {
        skip_blanks(cursor);
        if cursor.eat(")") {
            return Some(all);
        }
        let mut ahead = *cursor;
        let mut name = ahead.word();
        skip_blanks(&mut ahead);
        if !name.is_empty() && ahead.byte() == b'=' && ahead.peek(1) != b'=' {
            cursor.at = ahead.at + 1;
            skip_blanks(cursor);
        } else {
            name = "";
        }
        let mut ahead = *cursor;
        let text = pure(&mut ahead);
        if text.is_some() {
            *cursor = ahead;
        } else {
            skip_argument(cursor)?;
        }
        all.push(Argument { name, text });
        skip_blanks(cursor);
        if !cursor.eat(",") && cursor.byte() != b')' {
            return None;
        }
    }
}

/// An argument that consists of string literals, in parentheses or not.
fn pure(cursor: &mut Cursor<'_>) -> Option<Text> {
    let is_inside = cursor.eat("(");
    skip_blanks(cursor);
    let start = cursor.at;
    let (decoded, end) = literals(cursor)?;
    if is_inside {
        cursor.eat(")").then_some(())?;
        skip_blanks(cursor);
    }
    matches!(cursor.byte(), b',' | b')').then_some(Text { decoded, start, end })
}

fn skip_argument(cursor: &mut Cursor<'_>) -> Option<()> {
    let mut depth = 0;
    let mut left = LONGEST;
    while !cursor.is_end() && left > 0 {
        left -= 1;
        match cursor.byte() {
            b',' if depth == 0 => return Some(()),
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' if depth == 0 => return Some(()),
            b')' | b']' | b'}' => depth -= 1,
            b'#' => {
                skip_comment(cursor);
                continue;
            }
            b'"' | b'\'' => {
                literal(cursor, &mut Decoded::default());
                continue;
            }
            byte if is_word(byte) => {
                let start = cursor.at;
                let word = cursor.word();
                if matches!(cursor.byte(), b'"' | b'\'') && prefix(word).is_some() {
                    cursor.at = start;
                    literal(cursor, &mut Decoded::default());
                }
                continue;
            }
            _ => {}
        }
        cursor.at += 1;
    }
    None
}
