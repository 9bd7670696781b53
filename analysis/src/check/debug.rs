//! Debug data: `.loc`, and the numbers and labels of `.section`.
//!
//! Sections are most of the text of programs compiled for a debugger, so they are read by a scan of the text
//! and not through the tree.

use ptx_isa::Gate;
use ptx_syntax::SyntaxKind;
use ptx_syntax::ast::literal;
use ptx_syntax::flat::Node;
use rustc_hash::{FxHashMap, FxHashSet};
use smol_str::SmolStr;
use text_size::{TextRange, TextSize};

use super::Gates;
use crate::constant;
use crate::db::{Db, SourceFile};
use crate::declaration::{BAD_DECLARATION, BAD_SIZE};
use crate::declare_lint;
use crate::diagnostic::{Diagnostic, Findings};
use crate::items::parts;
use crate::module::REDEFINITION;

declare_lint! {
    /// A source location or other debug data is invalid.
    pub(crate) BAD_DEBUG_DATA = "E0114" "bad-debug-data", Error, since "0.1.0"
}

/// Labels in sections came with this version.
const LABELS: Gate = Gate::since(7, 0, 10);
/// Differences of labels came with this one.
const DIFFERENCES: Gate = Gate::since(7, 5, 10);

/// Labels with an offset came with this version.
const OFFSETS: Gate = Gate::since(3, 2, 10);
/// Times and sizes of files came with this version.
const FILE_TIMES: Gate = Gate::since(3, 2, 10);

/// Checks a `FILE_DIRECTIVE`.
pub(crate) fn file(node: Node<'_>, gates: &Gates, text: &str, out: &mut Findings) {
    for (index, range) in node.tokens(SyntaxKind::INT).enumerate() {
        match index {
            0 if literal::integer(&text[range]).is_ok_and(|i| constant::narrow(i.value as i64).is_none()) => {
                out.push(Diagnostic::new(&BAD_SIZE, range, "file index does not fit in 32 bits"));
            }
            1 => out.extend(gates.check(&FILE_TIMES, "`.file` with a timestamp", range, "")),
            3 => {
                let message = "too many arguments: `.file` takes an index, a name, a timestamp and a size";
                out.push(Diagnostic::new(&BAD_DECLARATION, range, message));
            }
            _ => {}
        }
    }
}

/// The positions that the `.loc` directives of a body have named so far.
#[derive(Default)]
pub(crate) struct Positions(FxHashSet<[u64; 3]>);

impl Positions {
    /// Checks a `LOC_DIRECTIVE`. Gives the label of its `function_name`, which may be in any section, if that is not the
    /// name of a section itself. `is_known` tells
    /// whether something before the body names a position.
    pub(crate) fn check(
        &mut self,
        node: Node<'_>,
        text: &str,
        is_known: impl Fn([u64; 3]) -> bool,
        out: &mut Findings,
    ) -> Option<TextRange> {
        let own = position(node, text, out)?;
        let is_new = self.0.insert(own);
        let count = node.children().count();
        let mut label = None;
        for (index, clause) in node.children().enumerate() {
            let is_function = clause.kind() == SyntaxKind::LOC_FUNCTION;
            if is_function == (index == 1) || count == 1 {
                let message = "an inlined location needs `function_name` followed by `inlined_at`";
                let range = clause.text_range();
                let diagnostic = Diagnostic::new(&BAD_DECLARATION, range, message);
                // Only what follows tells that the second clause is missing.
                let is_all = is_function && count == 1;
                out.push(if is_all { diagnostic.reported_at(range.end()) } else { diagnostic });
                return None;
            }
            if is_function {
                // Alone, or with bytes after it.
                let sum = clause.child(SyntaxKind::BINARY_EXPR).unwrap_or(clause);
                let name = sum.child(SyntaxKind::NAME_REF).map(Node::text_range);
                label = name.filter(|&name| !text[name].starts_with('.'));
            } else if let Some(caller) = position(clause, text, out)
                && (!self.0.contains(&caller) || is_new && caller == own)
                && !is_known(caller)
            {
                let [file, line, column] = caller;
                let message = format!(
                    "`inlined_at` refers to location {file} {line} {column}, which no earlier `.loc` defines"
                );
                out.push(Diagnostic::new(&BAD_DEBUG_DATA, clause.text_range(), message));
            }
        }
        label
    }
}

/// The three numbers directly in a node.
fn position(node: Node<'_>, text: &str, out: &mut Findings) -> Option<[u64; 3]> {
    let mut numbers = [0; 3];
    for (i, range) in node.tokens(SyntaxKind::INT).take(3).enumerate() {
        numbers[i] = literal::integer(&text[range]).ok()?.value;
        if constant::narrow(numbers[i] as i64).is_none() {
            out.push(Diagnostic::new(&BAD_SIZE, range, "source location number does not fit in 32 bits"));
        }
    }
    Some(numbers)
}

/// The labels of all sections of a file.
#[salsa::tracked]
pub(crate) fn section_labels(db: &dyn Db, file: SourceFile) -> FxHashSet<SmolStr> {
    let mut labels = FxHashSet::default();
    for part in parts(db, file).filter(|part| part.kind(db) == ptx_syntax::ItemKind::Section) {
        let text = part.text(db);
        for (end, _) in text.match_indices(':') {
            let name = word_before(text, end);
            if !name.is_empty() {
                labels.insert(SmolStr::new(name));
            }
        }
    }
    labels
}

/// The items that first name positions in `.loc` directives, by their numbers in the file.
#[salsa::tracked]
pub(crate) fn first_positions(db: &dyn Db, file: SourceFile) -> FxHashMap<[u64; 3], u32> {
    let mut first = FxHashMap::default();
    for (part, index) in parts(db, file).zip(0..) {
        let text = part.text(db);
        for (start, directive) in text.match_indices(".loc") {
            let rest = &text[start + directive.len()..];
            let mut numbers = rest.split_ascii_whitespace().map_while(|word| {
                let digits = word.trim_end_matches([',', ';']);
                literal::integer(digits).ok().map(|integer| integer.value)
            });
            if let (Some(file), Some(line), Some(column)) = (numbers.next(), numbers.next(), numbers.next()) {
                first.entry([file, line, column]).or_insert(index);
            }
        }
    }
    first
}

fn word_before(text: &str, end: usize) -> &str {
    let text = text[..end].trim_end();
    let start = text.bytes().rev().take_while(|&byte| is_word(byte)).count();
    &text[text.len() - start..]
}

const fn is_word(byte: u8) -> bool {
    ptx_syntax::is_word(byte) || byte == b'%'
}

/// Checks the contents of a `SECTION` without syntax errors.
pub(crate) fn section(node: Node<'_>, gates: &Gates, text: &str, out: &mut Findings) {
    let mut labels: FxHashMap<&str, TextRange> = FxHashMap::default();
    for child in node.children() {
        if child.kind() == SyntaxKind::SECTION_DATA {
            data(child.text_range(), gates, text, out);
        } else if child.kind() == SyntaxKind::LABEL
            && let Some(name) = child.first_child().map(Node::text_range)
        {
            out.extend(gates.check(&LABELS, &text[name], name, ""));
            if let Some(first) = labels.insert(&text[name], name) {
                let message = format!("label `{}` is defined more than once", &text[name]);
                out.push(Diagnostic::new(&REDEFINITION, name, message).related(first, "first defined here"));
            }
        }
    }
}

/// `.b8 1, 2`: one line of data.
fn data(range: TextRange, gates: &Gates, text: &str, out: &mut Findings) {
    let all = text[range].trim_end();
    let end = all.bytes().skip(1).position(|byte| !is_word(byte)).map_or(all.len(), |at| at + 1);
    let (word, values) = all.split_at(end);
    // Values of 64 bits wrap, and those of 32 may be written signed or unsigned and longer than they are.
    let limits = match word {
        ".b8" => Some((i128::from(i8::MIN), i128::from(u8::MAX))),
        ".b16" => Some((i128::from(i16::MIN), i128::from(u16::MAX))),
        ".b32" => Some((i128::from(i32::MIN), i128::MAX)),
        ".b64" => Some((i128::MIN, i128::MAX)),
        _ => None,
    };
    let Some((least, most)) = limits else {
        let range = TextRange::at(range.start(), TextSize::of(word));
        let message = format!("expected `.b8`, `.b16`, `.b32` or `.b64` in section data, found `{word}`");
        out.push(Diagnostic::new(&BAD_DEBUG_DATA, range, message));
        return;
    };
    let mut start = end;
    for piece in values.split(',') {
        let value = piece.trim();
        let offset = start + (piece.len() - piece.trim_start().len());
        start += piece.len() + 1;
        let place = || TextRange::at(range.start() + TextSize::new(offset as u32), TextSize::of(value));
        match Value::read(value) {
            Some(Value::Number(number)) if number < least || number > most => {
                let message = format!("{number} does not fit in `{word}`");
                out.push(Diagnostic::new(&BAD_DEBUG_DATA, place(), message));
            }
            // Alone in its line, a zero has no sign.
            Some(Value::Number(0)) if value.starts_with('-') && values.trim() == value && word != ".b64" => {
                out.push(Diagnostic::new(&BAD_DEBUG_DATA, place(), format!("-0 does not fit in `{word}`")));
            }
            Some(Value::Number(_)) => {}
            Some(_) if matches!(word, ".b8" | ".b16") => {
                let message = format!("an address does not fit in `{word}`");
                out.push(Diagnostic::new(&BAD_DEBUG_DATA, place(), message));
            }
            Some(Value::Label) => {}
            Some(Value::Offset) => out.extend(gates.check(&OFFSETS, value, place(), "")),
            Some(Value::Difference) => out.extend(gates.check(&DIFFERENCES, value, place(), "")),
            // Comments stand between values in hand-written text only; the tree has accepted them.
            None if value.contains("/*") || value.contains("//") => {}
            None => {
                let message = "expected a number, a label, a section name, a label plus a number, or a difference of labels";
                out.push(Diagnostic::new(&BAD_DEBUG_DATA, place(), message));
            }
        }
    }
}

/// A value of section data.
enum Value {
    Number(i128),
    /// A label or a section.
    Label,
    /// One of them plus a number.
    Offset,
    Difference,
}

impl Value {
    fn read(text: &str) -> Option<Self> {
        let digits = text.strip_prefix('-').map(str::trim_start);
        if digits.is_some_and(|digits| digits.ends_with('U')) {
            return None;
        }
        // Numbers have no names here.
        let number = |text: &str| literal::integer(text).ok().filter(|_| text != literal::WARP_SIZE);
        if let Some(integer) = number(digits.unwrap_or(text)) {
            let magnitude = i128::from(integer.value);
            return Some(Self::Number(if digits.is_some() { -magnitude } else { magnitude }));
        }
        let is_name = |text: &str| {
            let section = text.strip_prefix('.');
            let text = section.unwrap_or(text);
            text.bytes().all(|byte| is_word(byte) || byte == b':' && section.is_some())
                && !text.starts_with(|c: char| c.is_ascii_digit())
                && !matches!(text, "" | literal::WARP_SIZE)
        };
        if is_name(text) {
            return Some(Self::Label);
        }
        if let Some((left, right)) = text.split_once('+') {
            return (is_name(left.trim()) && number(right.trim()).is_some()).then_some(Self::Offset);
        }
        let (left, right) = text.split_once('-')?;
        (is_name(left.trim()) && is_name(right.trim())).then_some(Self::Difference)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::Database;
    use crate::ide;

    #[test]
    fn callers_are_named_anywhere_before() {
        let errors = |first: &str, second: &str| {
            let text = format!(
                ".version 9.0\n.target sm_90\n.address_size 64\n.file 1 \"a.cu\"\n.entry j() {{\n{first}\nret; }}\n\
                 .entry k() {{\n{second}\nret; }}\n.section .debug_str {{ L: .b8 1 }}\n"
            );
            let db = Database::default();
            let file = db.add_file(text.as_str());
            let found = ide::diagnostics(&db, file);
            found.iter().filter(|diagnostic| diagnostic.lint == &BAD_DEBUG_DATA).count()
        };
        let inlined = ".loc 1 2 1, function_name L, inlined_at 1 7 3";
        assert_eq!(errors(".loc 1 7 3", inlined), 0);
        assert_eq!(errors(inlined, ".loc 1 7 3"), 1);
        assert_eq!(errors(".loc 1 7 4", inlined), 1);
    }
}
