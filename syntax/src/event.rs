//! What the grammar says about the tokens, as a flat list.

use crate::SyntaxKind;

/// One step of building a tree. Trivia are not mentioned; the tree builder puts them in.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    /// A node opens. If a later node turned out to be its parent, `parent` is the distance to that node's event.
    Start { kind: SyntaxKind, parent: u32 },
    /// The innermost open node closes.
    Finish,
    /// The next token that is not trivia.
    Token,
    /// So many of them as one token, for text of which no more is known than that it is wrong.
    Skipped { tokens: u32 },
    /// A node that was given up, or one that is already open through a child's `parent`.
    Nothing,
}
