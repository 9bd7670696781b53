//! Completes findings with information beyond their statement: the declaration that disagrees, and fixes that
//! change other parts of the file.
//!
//! Checks examine one item, so that their findings stay valid when other items change. This module examines the whole
//! file, and its results are not stored. Ranges are file offsets.

mod header;
mod registers;
mod statement;
mod unused;

use ptx_backend::input::Symbol;
use ptx_syntax::{ItemKind, NodeOrToken, SyntaxKind, SyntaxNode, SyntaxToken};
use text_size::{TextRange, TextSize};

use crate::db::{Db, SourceFile};
use crate::diagnostic::{Applicability, Diagnostic, TextEdit};
use crate::items::{Item, item_around};
use crate::locate::{module_target, trimmed};
use crate::lower::source_map;
use crate::scope::{DeclKind, Entity};
use crate::source_map::Occurrence;
use crate::source_map::Usage;
use crate::syntax_errors::UNEXPECTED;

/// The number of findings of a file that are completed: people fix the first ones first, and a file of many megabytes
/// can have an error at every second byte.
const COMPLETED: usize = 500;

/// Completes the findings of a file, which are in text order.
pub(super) fn complete(db: &dyn Db, file: SourceFile, findings: &mut [Diagnostic]) {
    let shown = findings.len().min(COMPLETED);
    let mut registers = registers::Registers::default();
    for diagnostic in &findings[..shown] {
        registers.collect(db, file, diagnostic);
    }
    for diagnostic in &mut findings[..shown] {
        declarations(db, file, diagnostic);
        header::complete(db, file, diagnostic);
        registers.complete(db, file, diagnostic);
        unused::complete(db, file, diagnostic);
        closed_too_early(db, file, diagnostic);
    }
}

/// Points to the brace that ends a function too early, before text that belongs to it.
fn closed_too_early(db: &dyn Db, file: SourceFile, diagnostic: &mut Diagnostic) {
    if diagnostic.lint != &UNEXPECTED {
        return;
    }
    let Some(item) = item_around(db, file, diagnostic.range) else { return };
    if item.kind(db) != ItemKind::Stray
        || trimmed(db, item).start() != diagnostic.range.start()
        || !item.text(db).contains('}')
    {
        return;
    }
    let text = file.text(db);
    let before = text[..item.offset(db).into()].trim_ascii_end();
    let Some(end) = before.strip_suffix('}').map(TextSize::of) else { return };
    let brace = TextRange::at(end, TextSize::of('}'));
    if item_around(db, file, brace).is_some_and(|item| item.kind(db).is_function()) {
        diagnostic.relate(brace, "the function ends at this `}`");
        let edits = vec![TextEdit::new(brace, "")];
        diagnostic.offer("remove the `}` that ends the function", edits, Applicability::MaybeIncorrect);
    }
}

/// Lints about the kind of a name, rather than about an undeclared name.
const ABOUT_NAMES: &[&str] = &["E0208", "E0302", "E0303", "E0305", "E0306", "E0308", "E0309"];
/// Lints of calls whose arguments do not agree with the function.
const ABOUT_CALLS: &[&str] = &["E0301", "E0303", "E0304"];
/// The maximum number of declarations to which a finding points.
const DECLARATIONS: usize = 4;

/// Points to the declarations of the names in a finding.
fn declarations(db: &dyn Db, file: SourceFile, diagnostic: &mut Diagnostic) {
    let code = diagnostic.lint.code;
    if !diagnostic.related.is_empty() || !ABOUT_NAMES.iter().chain(ABOUT_CALLS).any(|&about| about == code) {
        return;
    }
    let Some((item, range)) = item_of(db, file, diagnostic.range) else { return };
    if ABOUT_NAMES.contains(&code) {
        let mut seen = Vec::new();
        for occurrence in occurrences(db, item, range) {
            // The coordinates are irrelevant for the texture mode.
            let is_beside = code == "E0309" && matches!(occurrence.entity, Entity::Register(_));
            if !is_beside
                && let Some((place, message)) = declared(db, file, item, occurrence)
                && !seen.contains(&place)
                && seen.len() < DECLARATIONS
            {
                seen.push(place);
                diagnostic.relate(place, message);
            }
        }
    }
    let map = source_map(db, item);
    if ABOUT_CALLS.contains(&code)
        && let Some(statement) = map.statement_at(range.start()).and_then(|src| map.statement(src))
        && is_call(db, item, statement)
    {
        let callee = occurrences(db, item, statement)
            .find(|occurrence| matches!(occurrence.entity, Entity::Symbol(Symbol::Function(_))));
        if let Some((place, message)) = callee.and_then(|callee| declared(db, file, item, callee)) {
            diagnostic.relate(place, message);
        }
    }
}

/// The item that contains a range of the file, and the range in it.
fn item_of(db: &dyn Db, file: SourceFile, range: TextRange) -> Option<(Item<'_>, TextRange)> {
    let item = item_around(db, file, range)?;
    Some((item, range - item.offset(db)))
}

/// The names that are used in a range of an item.
fn occurrences<'db>(
    db: &'db dyn Db,
    item: Item<'db>,
    range: TextRange,
) -> impl Iterator<Item = &'db Occurrence> {
    let all = &source_map(db, item).occurrences;
    let first = all.partition_point(|occurrence| occurrence.range.start() < range.start());
    all[first..]
        .iter()
        .take_while(move |occurrence| occurrence.range.end() <= range.end())
        .filter(|occurrence| occurrence.access != Usage::Declaration)
}

/// The position in the file where a name is declared, and the kind of the declaration.
fn declared(
    db: &dyn Db,
    file: SourceFile,
    item: Item<'_>,
    occurrence: &Occurrence,
) -> Option<(TextRange, String)> {
    let name = &item.text(db)[occurrence.range];
    if let Entity::Symbol(symbol @ (Symbol::Global(_) | Symbol::Function(_))) = occurrence.entity {
        let target = module_target(db, file, symbol)?;
        return Some((target.focus, format!("`{name}` is declared here")));
    }
    let map = source_map(db, item);
    let declaration = &map.declarations[map.declaration_of(occurrence.entity)?.0 as usize];
    let message = match declaration.kind {
        DeclKind::Register { ty, .. } => format!("`{name}` is declared `.{}` here", ty.text()),
        DeclKind::Label(_) => format!("`{name}` is a label"),
        _ => format!("`{name}` is declared here"),
    };
    // Registers of module scope are not declared in the item.
    (!declaration.range.is_empty()).then(|| (declaration.range + item.offset(db), message))
}

fn is_call(db: &dyn Db, item: Item<'_>, statement: TextRange) -> bool {
    let node = node_at(db, item, statement.start(), SyntaxKind::INSTRUCTION);
    node.is_some_and(|node| name_words(&node, item.text(db)).first() == Some(&"call"))
}

/// The words of an instruction's name, without dots.
fn name_words<'t>(instruction: &SyntaxNode, text: &'t str) -> Vec<&'t str> {
    let tokens = instruction.children_with_tokens().filter_map(NodeOrToken::into_token);
    tokens
        .filter(|token| matches!(token.kind(), SyntaxKind::IDENT | SyntaxKind::DOT_WORD))
        .map(|token| text[token.text_range()].trim_start_matches('.'))
        .collect()
}

/// The token that starts at an offset of an item or covers it.
fn token_at(db: &dyn Db, item: Item<'_>, offset: TextSize) -> Option<SyntaxToken> {
    // The search for the token at an offset would examine all statements of a body.
    let place = TextRange::at(offset, TextSize::new(1));
    let root = statement::around(db, item, offset);
    root.text_range().contains_range(place).then(|| root.covering_element(place).into_token())?
}

/// The innermost node of a kind around an offset of an item: a statement or a part of one.
fn node_at(db: &dyn Db, item: Item<'_>, offset: TextSize, kind: SyntaxKind) -> Option<SyntaxNode> {
    token_at(db, item, offset)?.parent_ancestors().find(|node| node.kind() == kind)
}
