//! The tree as the parser writes it: a flat list of nodes and tokens, in which each node is followed by its contents.
//!
//! All readers of PTX use this list, so there is only one grammar. [`crate::tree`] makes a lossless tree from it for
//! editors. The walk over an item reads the list directly: an element takes three words, blanks and comments are not in
//! the list, and its memory is reused for one text after the other.

use rowan::NodeOrToken;
use text_size::{TextRange, TextSize};

use crate::parser::Parser;
use crate::{SyntaxError, SyntaxKind, grammar, lexer, validate};

/// A token that is neither blank nor comment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Significant {
    pub(crate) kind: SyntaxKind,
    /// There is a line break between the previous token and this one.
    pub(crate) line_start: bool,
    pub(crate) start: u32,
    pub(crate) len: u32,
}

impl Significant {
    pub(crate) fn range(self) -> TextRange {
        TextRange::at(TextSize::new(self.start), TextSize::new(self.len))
    }
}

/// A node or a token.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Element {
    /// [`SyntaxKind::EOF`] for an abandoned node, whose contents belong to its parent.
    pub(crate) kind: SyntaxKind,
    /// The index of its first token. If the node is empty, the index of the next token.
    pub(crate) token: u32,
    /// The index of the element after this one and its contents.
    pub(crate) next: u32,
}

/// The tree of an item or of statements, and the errors in the text.
#[derive(Debug, Default)]
pub struct FlatTree {
    pub(crate) tokens: Vec<Significant>,
    pub(crate) elements: Vec<Element>,
    /// In text order.
    pub errors: Vec<SyntaxError>,
    /// The length of the text.
    pub(crate) length: u32,
}

impl FlatTree {
    /// Parses the text of an item. The root is the item's node. Any text after the item becomes an `ERROR` node in it.
    pub fn parse(&mut self, text: &str) {
        self.read(text, false, grammar::item);
    }

    /// Parses the text of a function as if its body were empty. Returns false if the heading has errors, because its
    /// meaning may then depend on the rest of the text.
    pub fn parse_heading(&mut self, text: &str) -> bool {
        self.read(text, true, grammar::item);
        self.errors.is_empty()
    }

    pub(crate) fn parse_statements(&mut self, text: &str) {
        self.read(text, false, grammar::statements);
    }

    /// The number of nodes and tokens for which memory is allocated.
    pub fn capacity(&self) -> usize {
        self.elements.capacity()
    }

    fn read(&mut self, text: &str, is_heading: bool, entry: fn(&mut Parser<'_>)) {
        self.tokens.clear();
        self.elements.clear();
        self.errors.clear();
        let lexed = lexer::significant(text, is_heading, &mut self.tokens);
        self.length = text.len() as u32;
        let mut parser = Parser::new(text, std::mem::take(self));
        entry(&mut parser);
        *self = parser.finish();
        validate::merge(lexed, &mut self.errors);
    }

    /// The root node. It exists once something has been parsed.
    pub fn root(&self) -> Node<'_> {
        Node { tree: self, index: 0 }
    }

    /// All tokens in text order, each with the kind of its parent node.
    pub fn tokens(&self) -> impl Iterator<Item = (Token, SyntaxKind)> {
        // The nodes that contain the element, and the end of each.
        let mut open: Vec<(SyntaxKind, u32)> = Vec::new();
        (0..).zip(&self.elements).filter_map(move |(index, element)| {
            while open.last().is_some_and(|&(_, end)| end == index) {
                open.pop();
            }
            if element.kind.is_node() {
                open.push((element.kind, element.next));
                return None;
            }
            let parent = open.last().filter(|_| element.kind != SyntaxKind::EOF)?.0;
            Some((Token { kind: element.kind, range: self.range(index) }, parent))
        })
    }

    pub(crate) fn range(&self, index: u32) -> TextRange {
        let element = self.elements[index as usize];
        let first = element.token as usize;
        let end =
            self.elements.get(element.next as usize).map_or(self.tokens.len(), |next| next.token as usize);
        let start = self.tokens.get(first).map_or(self.length, |token| token.start).into();
        let end = if first < end { self.tokens[end - 1].range().end() } else { start };
        TextRange::new(start, end)
    }
}

/// A node of a [`FlatTree`].
#[derive(Clone, Copy)]
pub struct Node<'t> {
    tree: &'t FlatTree,
    index: u32,
}

impl<'t> Node<'t> {
    fn element(self) -> Element {
        self.tree.elements[self.index as usize]
    }

    #[inline]
    pub fn kind(self) -> SyntaxKind {
        self.element().kind
    }

    /// The range from the node's first token to its last one. The range of the root is the whole text.
    pub fn text_range(self) -> TextRange {
        match self.index {
            0 => TextRange::up_to(TextSize::new(self.tree.length)),
            index => self.tree.range(index),
        }
    }

    /// The nodes and tokens that are direct children.
    #[inline]
    pub fn elements(self) -> Elements<'t> {
        Elements { tree: self.tree, at: self.index + 1, end: self.element().next }
    }

    /// The nodes that are direct children.
    #[inline]
    pub fn children(self) -> impl Iterator<Item = Node<'t>> + Clone {
        self.elements().filter_map(NodeOrToken::into_node)
    }

    pub fn first_child(self) -> Option<Node<'t>> {
        self.children().next()
    }

    pub fn last_child(self) -> Option<Node<'t>> {
        self.children().last()
    }

    /// The first direct child that is a node of this kind.
    pub fn child(self, kind: SyntaxKind) -> Option<Node<'t>> {
        self.children().find(|child| child.kind() == kind)
    }

    /// The tokens that are direct children.
    pub fn own_tokens(self) -> impl Iterator<Item = Token> {
        self.elements().filter_map(NodeOrToken::into_token)
    }

    /// The tokens of this kind that are direct children.
    pub fn tokens(self, kind: SyntaxKind) -> impl Iterator<Item = TextRange> {
        self.own_tokens().filter(move |token| token.kind == kind).map(|token| token.range)
    }
}

impl std::fmt::Debug for Node<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}@{:?}", self.kind(), self.text_range())
    }
}

/// A token and its range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Token {
    pub kind: SyntaxKind,
    pub range: TextRange,
}

/// The nodes and tokens that are direct children of a node, in text order.
#[derive(Clone)]
pub struct Elements<'t> {
    tree: &'t FlatTree,
    at: u32,
    end: u32,
}

impl<'t> Iterator for Elements<'t> {
    type Item = NodeOrToken<Node<'t>, Token>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        while self.at < self.end {
            let (index, element) = (self.at, self.tree.elements[self.at as usize]);
            self.at = element.next;
            if element.kind.is_node() {
                return Some(NodeOrToken::Node(Node { tree: self.tree, index }));
            }
            if element.kind != SyntaxKind::EOF {
                let range = match element.kind {
                    SyntaxKind::SKIPPED => self.tree.range(index),
                    _ => self.tree.tokens[element.token as usize].range(),
                };
                return Some(NodeOrToken::Token(Token { kind: element.kind, range }));
            }
        }
        None
    }
}
