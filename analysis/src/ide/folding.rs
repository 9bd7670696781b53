//! Folding of blocks, parameters, initializers, sections, instructions and comments with more than one line.

use std::sync::Arc;

use ptx_syntax::{NodeOrToken, SyntaxKind, SyntaxNode, parse_item};
use text_size::{TextRange, TextSize};

use crate::db::{Database, Db, SourceFile};
use crate::ide::{Fold, FoldKind, InItem};
use crate::items::{Item, items};

/// Folds in text order, outer ones first.
pub fn folding_ranges(db: &Database, file: SourceFile) -> Vec<Fold> {
    let mut folds = Vec::new();
    for item in folds_of_items(db, file) {
        folds.extend(item.values.iter().map(|fold| Fold { range: fold.range + item.start, ..*fold }));
    }
    folds
}

/// The same in the stored form, item by item.
pub fn folds_of_items(db: &Database, file: SourceFile) -> Vec<InItem<Fold>> {
    items(db, file).iter().map(|&item| InItem::new(db, item, item_folds(db, item))).collect()
}

/// The folds of an item, relative to it. They are stored, but the tree is not.
#[salsa::tracked(returns(ref))]
fn item_folds<'db>(db: &'db dyn Db, item: Item<'db>) -> Arc<[Fold]> {
    let (text, mut folds) = (item.text(db), Vec::new());
    if text.contains('\n') {
        node_folds(&parse_item(text).syntax(), text, &mut folds);
        folds.sort_by_key(|fold| (fold.range.start(), std::cmp::Reverse(fold.range.end())));
    }
    folds.into()
}

fn node_folds(node: &SyntaxNode, text: &str, out: &mut Vec<Fold>) {
    let lines = |range: TextRange| text[range].contains('\n');
    // Line comments on consecutive lines are folded together.
    let mut comments: Option<(TextRange, usize)> = None;
    let flush = |comments: &mut Option<(TextRange, usize)>, out: &mut Vec<Fold>| {
        if let Some((range, count)) = comments.take()
            && count > 1
        {
            out.push(Fold { range, kind: FoldKind::Comment });
        }
    };
    for element in node.children_with_tokens() {
        let range = element.text_range();
        match element {
            NodeOrToken::Token(token) => match token.kind() {
                SyntaxKind::WHITESPACE if text[range].matches('\n').count() <= 1 => {}
                SyntaxKind::LINE_COMMENT => {
                    comments = Some(match comments {
                        Some((all, count)) => (all.cover(range), count + 1),
                        None => (range, 1),
                    });
                }
                SyntaxKind::BLOCK_COMMENT if lines(range) => {
                    flush(&mut comments, out);
                    out.push(Fold { range, kind: FoldKind::Comment });
                }
                SyntaxKind::L_BRACE if node.kind() == SyntaxKind::SECTION => {
                    flush(&mut comments, out);
                    out.push(Fold {
                        range: TextRange::new(range.start(), end(node)),
                        kind: FoldKind::Region,
                    });
                }
                _ => flush(&mut comments, out),
            },
            NodeOrToken::Node(child) => {
                flush(&mut comments, out);
                match child.kind() {
                    SyntaxKind::BLOCK => {
                        if lines(range) {
                            out.push(Fold { range, kind: FoldKind::Region });
                        }
                        node_folds(&child, text, out);
                    }
                    SyntaxKind::INITIALIZER_LIST | SyntaxKind::PARAM_LIST | SyntaxKind::INSTRUCTION
                        if lines(range) =>
                    {
                        out.push(Fold { range, kind: FoldKind::Region });
                    }
                    SyntaxKind::DECLARATOR | SyntaxKind::INITIALIZER => node_folds(&child, text, out),
                    _ => {}
                }
            }
        }
    }
    flush(&mut comments, out);
}

fn end(node: &SyntaxNode) -> TextSize {
    node.text_range().end()
}
