//! Children of a node, without cursors for tokens.
//!
//! Half of the children of a declaration are blanks and punctuation. A cursor for each, as rowan makes them, costs
//! more than looking at it.

use ptx_syntax::{NodeOrToken, SyntaxKind, SyntaxNode};
use smallvec::SmallVec;
use text_size::{TextRange, TextSize};

/// A token at its place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    kind: u16,
    pub(crate) range: TextRange,
}

impl Token {
    pub(crate) fn is(self, kind: SyntaxKind) -> bool {
        self.kind == kind as u16
    }
}

/// The children of a node in text order.
pub(crate) fn elements(node: &SyntaxNode) -> impl Iterator<Item = NodeOrToken<SyntaxNode, Token>> {
    let mut nodes = node.children();
    let mut end = node.text_range().start();
    let green: SmallVec<[(Option<u16>, TextSize); 16]> = node
        .green()
        .children()
        .map(|child| match child {
            NodeOrToken::Node(node) => (None, node.text_len()),
            NodeOrToken::Token(token) => (Some(token.kind().0), token.text_len()),
        })
        .collect();
    green.into_iter().filter_map(move |(token, length)| {
        let range = TextRange::at(end, length);
        end = range.end();
        match token {
            Some(kind) => Some(NodeOrToken::Token(Token { kind, range })),
            None => nodes.next().map(NodeOrToken::Node),
        }
    })
}

/// The word that a directive begins with; its node may begin with blanks.
pub(crate) fn first_word(node: &SyntaxNode) -> TextRange {
    tokens(node, SyntaxKind::DOT_WORD).first().copied().unwrap_or_else(|| node.text_range())
}

/// The tokens of a kind directly in a node.
pub(crate) fn tokens(node: &SyntaxNode, kind: SyntaxKind) -> SmallVec<[TextRange; 8]> {
    let mut end = node.text_range().start();
    let mut found = SmallVec::new();
    for child in node.green().children() {
        let range = TextRange::at(end, child.text_len());
        end = range.end();
        if child.into_token().is_some_and(|token| token.kind().0 == kind as u16) {
            found.push(range);
        }
    }
    found
}
