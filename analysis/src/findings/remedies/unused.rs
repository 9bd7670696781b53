//! Fixes that remove unused names.

use ptx_syntax::{NodeOrToken, SyntaxKind, SyntaxNode};
use text_size::TextRange;

use super::{item_of, node_at};
use crate::check::unused::{UNUSED_LABEL, UNUSED_REGISTER};
use crate::db::{Db, SourceFile};
use crate::diagnostic::{Applicability, Diagnostic, TextEdit};
use crate::text::with_line;

pub(super) fn complete(db: &dyn Db, file: SourceFile, diagnostic: &mut Diagnostic) {
    let kind = match diagnostic.lint {
        lint if lint == &UNUSED_LABEL => SyntaxKind::LABEL,
        lint if lint == &UNUSED_REGISTER => SyntaxKind::DECLARATOR,
        _ => return,
    };
    let Some((item, range)) = item_of(db, file, diagnostic.range) else { return };
    let Some(node) = node_at(db, item, range.start(), kind) else { return };
    let range = match kind {
        SyntaxKind::DECLARATOR => declarator(&node),
        _ => Some(node.text_range()),
    };
    let text = item.text(db);
    let Some(range) = range else { return };
    let name = &text[diagnostic.range - item.offset(db)];
    let title = format!("remove `{name}`");
    let range = with_line(text, range) + item.offset(db);
    diagnostic.offer(title, vec![TextEdit::new(range, "")], Applicability::MachineApplicable);
}

/// The range to remove with a declared name: the whole statement if it is the only name, otherwise the name and a
/// comma.
fn declarator(node: &SyntaxNode) -> Option<TextRange> {
    let statement = node.parent().filter(|parent| parent.kind() == SyntaxKind::VARIABLE)?;
    let others = statement.children().filter(|child| child.kind() == SyntaxKind::DECLARATOR && child != node);
    if others.count() == 0 {
        return Some(statement.text_range());
    }
    let is_comma =
        |element: &NodeOrToken<SyntaxNode, ptx_syntax::SyntaxToken>| element.kind() == SyntaxKind::COMMA;
    let next = node.siblings_with_tokens(ptx_syntax::Direction::Next).find(is_comma);
    if let Some(next) = next {
        // Up to the next name.
        let behind = next.next_sibling_or_token().filter(|element| element.kind() == SyntaxKind::WHITESPACE);
        let end = behind.map_or(next.text_range().end(), |blank| blank.text_range().end());
        return Some(TextRange::new(node.text_range().start(), end));
    }
    let before = node.siblings_with_tokens(ptx_syntax::Direction::Prev).find(is_comma)?;
    Some(TextRange::new(before.text_range().start(), node.text_range().end()))
}
