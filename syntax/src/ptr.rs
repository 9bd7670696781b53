//! Pointers to nodes that do not keep the tree alive: a kind and a range, relative to the item.

use std::marker::PhantomData;

use text_size::TextRange;

use crate::ast::AstNode;
use crate::{SyntaxKind, SyntaxNode};

/// The place of a node in its item.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SyntaxNodePtr {
    pub kind: SyntaxKind,
    pub range: TextRange,
}

impl SyntaxNodePtr {
    pub fn new(node: &SyntaxNode) -> SyntaxNodePtr {
        SyntaxNodePtr { kind: node.kind(), range: node.text_range() }
    }

    /// The node in the tree under `root`. `None` if the tree is that of another text.
    pub fn to_node(&self, root: &SyntaxNode) -> Option<SyntaxNode> {
        let range = self.range;
        let mut node = root.clone();
        loop {
            if node.kind() == self.kind && node.text_range() == range {
                return Some(node);
            }
            node = node.child_or_token_at_range(range)?.into_node()?;
        }
    }
}

/// A pointer to a node with a typed view.
#[derive(Debug)]
pub struct AstPtr<N> {
    raw: SyntaxNodePtr,
    node: PhantomData<fn() -> N>,
}

impl<N> Clone for AstPtr<N> {
    fn clone(&self) -> AstPtr<N> {
        *self
    }
}

impl<N> Copy for AstPtr<N> {}

impl<N> PartialEq for AstPtr<N> {
    fn eq(&self, other: &AstPtr<N>) -> bool {
        self.raw == other.raw
    }
}

impl<N> Eq for AstPtr<N> {}

impl<N> std::hash::Hash for AstPtr<N> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.raw.hash(state);
    }
}

impl<N: AstNode> AstPtr<N> {
    pub fn new(node: &N) -> AstPtr<N> {
        AstPtr { raw: SyntaxNodePtr::new(node.syntax()), node: PhantomData }
    }

    pub fn text_range(&self) -> TextRange {
        self.raw.range
    }

    pub fn to_node(&self, root: &SyntaxNode) -> Option<N> {
        self.raw.to_node(root).and_then(N::cast)
    }

    pub fn syntax_ptr(&self) -> SyntaxNodePtr {
        self.raw
    }
}
