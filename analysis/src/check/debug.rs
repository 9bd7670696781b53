//! Debug data: `.loc`, and the numbers and labels of `.section`.

use ptx_isa::Gate;
use ptx_syntax::SyntaxKind;
use ptx_syntax::ast::literal;
use ptx_syntax::flat::{FlatTree, Node};
use rustc_hash::{FxHashMap, FxHashSet};
use smol_str::SmolStr;
use text_size::TextRange;

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

/// The version that introduced labels in sections.
const LABELS: Gate = Gate::since(7, 0, 10);
/// The version that introduced differences of labels.
const DIFFERENCES: Gate = Gate::since(7, 5, 10);

/// The version that introduced labels with an offset.
const OFFSETS: Gate = Gate::since(3, 2, 10);
/// The version that introduced times and sizes of files.
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

/// The locations that the `.loc` directives of a body have named so far.
#[derive(Default)]
pub(crate) struct Positions(FxHashSet<[u64; 3]>);

impl Positions {
    /// Checks a `LOC_DIRECTIVE`. Returns the label of its `function_name`, which may be in any section, unless it is
    /// the name of a section. `is_known` tells whether an earlier part of the file names a location.
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
                let message = "an inlined location requires `function_name` followed by `inlined_at`";
                let range = clause.text_range();
                let diagnostic = Diagnostic::new(&BAD_DECLARATION, range, message);
                // The following token shows that the second clause is missing.
                let is_all = is_function && count == 1;
                out.push(if is_all { diagnostic.reported_at(range.end()) } else { diagnostic });
                return None;
            }
            if is_function {
                // A label alone, or with an offset.
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
    let (mut labels, mut tree) = (FxHashSet::default(), FlatTree::default());
    for part in parts(db, file).filter(|part| part.kind(db) == ptx_syntax::ItemKind::Section) {
        let text = part.text(db);
        tree.parse(text);
        let nodes = tree.root().children().filter(|child| child.kind() == SyntaxKind::LABEL);
        labels.extend(nodes.filter_map(Node::first_child).map(|name| SmolStr::new(&text[name.text_range()])));
    }
    labels
}

/// For each location in `.loc` directives of the file, the first item that names it, by its numbers.
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

/// Checks the contents of a `SECTION` without syntax errors.
pub(crate) fn section(node: Node<'_>, gates: &Gates, text: &str, out: &mut Findings) {
    let mut labels: FxHashMap<&str, TextRange> = FxHashMap::default();
    for child in node.children() {
        if child.kind() == SyntaxKind::SECTION_DATA {
            data(child, gates, text, out);
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

/// Checks a `SECTION_DATA`: `.b8 1, 2`.
fn data(node: Node<'_>, gates: &Gates, text: &str, out: &mut Findings) {
    let Some(place) = node.tokens(SyntaxKind::DOT_WORD).next() else { return };
    let word = &text[place];
    // 64-bit values wrap. 32-bit values may be written as signed or unsigned numbers, and longer than 32 bits.
    let limits = match word {
        ".b8" => Some((i128::from(i8::MIN), i128::from(u8::MAX))),
        ".b16" => Some((i128::from(i16::MIN), i128::from(u16::MAX))),
        ".b32" => Some((i128::from(i32::MIN), i128::MAX)),
        ".b64" => Some((i128::from(i64::MIN), i128::MAX)),
        _ => None,
    };
    let Some((least, most)) = limits else {
        let message = format!("expected `.b8`, `.b16`, `.b32` or `.b64` in section data, found `{word}`");
        out.push(Diagnostic::new(&BAD_DEBUG_DATA, place, message));
        return;
    };
    let is_alone = node.children().nth(1).is_none();
    for node in node.children() {
        let range = node.text_range();
        let value = &text[range];
        match Value::read(node, text) {
            Some(Value::Number(number)) if number < least || number > most => {
                let message = format!("{number} does not fit in `{word}`");
                out.push(Diagnostic::new(&BAD_DEBUG_DATA, range, message));
            }
            // A zero that is the only value of its directive has no sign.
            Some(Value::Number(0)) if value.starts_with('-') && is_alone && word != ".b64" => {
                out.push(Diagnostic::new(&BAD_DEBUG_DATA, range, format!("-0 does not fit in `{word}`")));
            }
            Some(Value::Number(_)) => {}
            Some(_) if !is_alone => {
                let message =
                    format!("`{value}` must be the only value of its directive; only numbers can be listed");
                out.push(Diagnostic::new(&BAD_DEBUG_DATA, range, message));
            }
            Some(_) if matches!(word, ".b8" | ".b16") => {
                let message = format!("an address does not fit in `{word}`");
                out.push(Diagnostic::new(&BAD_DEBUG_DATA, range, message));
            }
            Some(Value::Label) => {}
            Some(Value::Offset) => out.extend(gates.check(&OFFSETS, value, range, "")),
            Some(Value::Difference) => out.extend(gates.check(&DIFFERENCES, value, range, "")),
            None => {
                let message = "expected a number, a label, a section name, a label plus a number, or a difference of labels";
                out.push(Diagnostic::new(&BAD_DEBUG_DATA, range, message));
            }
        }
    }
}

/// A value of section data.
enum Value {
    Number(i128),
    /// A label or a section.
    Label,
    /// A label or a section plus a number.
    Offset,
    Difference,
}

impl Value {
    fn read(node: Node<'_>, text: &str) -> Option<Self> {
        let operator = || Some(node.own_tokens().next()?.kind);
        match node.kind() {
            SyntaxKind::LITERAL => number(node, text).map(Self::Number),
            SyntaxKind::PREFIX_EXPR if operator()? == SyntaxKind::MINUS => {
                let digits = node.first_child()?;
                let is_signed = !text[digits.text_range()].ends_with('U');
                number(digits, text).filter(|_| is_signed).map(|number| Self::Number(-number))
            }
            SyntaxKind::NAME_REF => Some(Self::Label),
            SyntaxKind::BINARY_EXPR => {
                let (left, right) = (node.first_child()?, node.last_child()?);
                (left.kind() == SyntaxKind::NAME_REF).then_some(())?;
                match operator()? {
                    SyntaxKind::PLUS => number(right, text).map(|_| Self::Offset),
                    SyntaxKind::MINUS if right.kind() == SyntaxKind::NAME_REF => Some(Self::Difference),
                    _ => None,
                }
            }
            _ => None,
        }
    }
}

/// An integer literal; numbers cannot have names here.
fn number(node: Node<'_>, text: &str) -> Option<i128> {
    let written = &text[node.text_range()];
    let is_literal = node.kind() == SyntaxKind::LITERAL && written != literal::WARP_SIZE;
    is_literal.then(|| literal::integer(written).ok())?.map(|integer| i128::from(integer.value))
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
