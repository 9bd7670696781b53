//! The tree of a single statement: a function of many megabytes need not be parsed for one finding.

use ptx_syntax::{StatementParser, SyntaxKind, SyntaxNode, lex};
use text_size::{TextRange, TextSize};

use crate::db::Db;
use crate::heading::start_of_body;
use crate::items::{Item, parse};
use crate::lower::source_map;

/// A tree with the statement at an offset of an item, with ranges of the item. If the statement cannot be parsed alone,
/// it is the tree of the whole item.
pub(super) fn around(db: &dyn Db, item: Item<'_>, offset: TextSize) -> SyntaxNode {
    let alone = place(db, item, offset).map(|place| {
        let text = &item.text(db)[place];
        StatementParser::default().parse(text, place.start())
    });
    alone
        .filter(|parsed| parsed.errors.is_empty())
        .map_or_else(|| parse(db, item).syntax(), |parsed| parsed.syntax())
}

/// The range of the statement at an offset. Declarations, labels and blocks are between instructions, whose ranges are
/// known.
fn place(db: &dyn Db, item: Item<'_>, offset: TextSize) -> Option<TextRange> {
    let instructions = &source_map(db, item).statements;
    let behind = instructions.partition_point(|range| range.start() <= offset);
    let before = behind.checked_sub(1).map(|index| instructions[index]);
    if let Some(range) = before.filter(|range| range.contains(offset)) {
        return Some(range);
    }
    let text = item.text(db);
    let mut start = before
        .map_or_else(|| start_of_body(text), |range| Some(range.end()))
        .filter(|&start| start <= offset)?;
    let end = instructions.get(behind).map_or(TextSize::of(text), |range| range.start());
    let mut at = start;
    for token in lex(&text[TextRange::new(start, end)]) {
        let token_end = at + TextSize::new(token.len);
        match token.kind {
            SyntaxKind::SEMICOLON | SyntaxKind::L_BRACE | SyntaxKind::R_BRACE if token_end <= offset => {
                start = token_end;
            }
            SyntaxKind::SEMICOLON => return Some(TextRange::new(start, token_end)),
            SyntaxKind::L_BRACE | SyntaxKind::R_BRACE => return Some(TextRange::new(start, at)),
            _ => {}
        }
        at = token_end;
    }
    Some(TextRange::new(start, end))
}
