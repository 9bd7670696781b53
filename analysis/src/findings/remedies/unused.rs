//! Fixes that remove unused names.

use ptx_syntax::{NodeOrToken, SyntaxKind, SyntaxNode};
use text_size::{TextRange, TextSize};

use super::{item_of, node_at};
use crate::check::unused::{UNUSED_LABEL, UNUSED_REGISTER};
use crate::db::{Db, SourceFile};
use crate::diagnostic::{Applicability, Diagnostic, TextEdit};

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

/// The range with the blanks after it, and with its line if the line has no other content.
fn with_line(text: &str, range: TextRange) -> TextRange {
    let (before, behind) = (&text[..usize::from(range.start())], &text[usize::from(range.end())..]);
    let indent = before.len() - before.trim_end_matches([' ', '\t']).len();
    let blanks = behind.len() - behind.trim_start_matches([' ', '\t', '\r']).len();
    let is_line = before[..before.len() - indent].ends_with('\n') && behind[blanks..].starts_with('\n');
    let size = |count: usize| TextSize::new(count as u32);
    if is_line {
        // Removes the line break before it and keeps the one after it.
        TextRange::new(range.start() - size(indent + 1), range.end() + size(blanks))
    } else {
        TextRange::new(range.start(), range.end() + size(blanks))
    }
}
