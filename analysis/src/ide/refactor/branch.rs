//! Inverts the guard of a branch that is followed by another branch.

use ptx_backend::input::SrcId;
use ptx_syntax::{NodeOrToken, SyntaxKind};
use text_size::{TextRange, TextSize};

use super::{Change, Cursor, Statement};
use crate::diagnostic::TextEdit;
use crate::ide::ActionKind;
use crate::scope::DeclKind;
use crate::text::with_line;

/// `@%p bra A; bra B;` becomes `@!%p bra B; bra A;`. The second branch is removed if `A` is the next label.
pub(super) fn invert(cursor: &Cursor<'_>, src: SrcId, first: &Statement) -> Option<Change> {
    let text = cursor.text();
    let second = cursor.statement(SrcId(src.0 + 1))?;
    let is_adjacent = is_blank(&text[TextRange::new(first.range.end(), second.range.start())]);
    if !is_adjacent || second.guard().is_some() {
        return None;
    }
    let negation = toggle(first)?;
    let (one, other) = (target(first, text)?, target(&second, text)?);
    let mut edits = vec![negation, TextEdit::new(one, &text[other])];
    if is_next(cursor, &text[one], second.range.end()) {
        edits.push(TextEdit::new(with_line(text, second.range), ""));
    } else {
        edits.push(TextEdit::new(other, &text[one]));
    }
    let title = format!("Invert the guard: branch to `{}` first", &text[other]);
    Some(Change { title, kind: ActionKind::Rewrite, edits })
}

/// The edit that negates a guard.
fn toggle(statement: &Statement) -> Option<TextEdit> {
    let guard = statement.guard()?;
    let mut tokens = guard.children_with_tokens().filter_map(NodeOrToken::into_token);
    let at = tokens.find(|token| token.kind() == SyntaxKind::AT)?;
    Some(match tokens.find(|token| token.kind() == SyntaxKind::BANG) {
        Some(bang) => TextEdit::new(bang.text_range(), ""),
        None => TextEdit::new(TextRange::empty(at.text_range().end()), "!"),
    })
}

/// The label of a direct branch.
fn target(statement: &Statement, text: &str) -> Option<TextRange> {
    let mut operands = statement.operands();
    let (Some(label), None) = (operands.next(), operands.next()) else { return None };
    let is_direct = statement.mnemonic(text) == "bra" && label.kind() == SyntaxKind::NAME_REF;
    is_direct.then(|| label.text_range())
}

/// Whether a text has only blanks and comments.
fn is_blank(text: &str) -> bool {
    ptx_syntax::next_token(text, TextSize::new(0)) == TextSize::of(text)
}

/// Whether only labels are between an offset and a label.
fn is_next(cursor: &Cursor<'_>, label: &str, mut offset: TextSize) -> bool {
    let (map, text) = (cursor.map(), cursor.text());
    let labels = || map.declarations.iter().filter(|known| matches!(known.kind, DeclKind::Label(_)));
    loop {
        let start = ptx_syntax::next_token(text, offset);
        let Some(next) = labels().find(|known| known.range.start() == start && !known.range.is_empty())
        else {
            return false;
        };
        if &text[next.range] == label {
            return true;
        }
        let colon = ptx_syntax::next_token(text, next.range.end());
        if !text[colon.into()..].starts_with(':') {
            return false;
        }
        offset = colon + TextSize::new(1);
    }
}
