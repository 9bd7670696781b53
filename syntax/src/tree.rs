//! Converts flat trees to green trees, adding blanks and comments. This is the only module that uses rowan's builders.

use std::fmt::Write as _;

use rowan::{GreenNode, GreenNodeBuilder, GreenToken, NodeCache, NodeOrToken};
use text_size::TextSize;

use crate::flat::FlatTree;
use crate::{ErrorCode, SyntaxError, SyntaxKind, lexer, split};

/// The language type for rowan.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum PtxLanguage {}

impl rowan::Language for PtxLanguage {
    type Kind = SyntaxKind;

    fn kind_from_raw(raw: rowan::SyntaxKind) -> SyntaxKind {
        SyntaxKind::from_raw(raw.0)
    }

    fn kind_to_raw(kind: SyntaxKind) -> rowan::SyntaxKind {
        rowan::SyntaxKind(kind as u16)
    }
}

pub type SyntaxNode = rowan::SyntaxNode<PtxLanguage>;
pub type SyntaxToken = rowan::SyntaxToken<PtxLanguage>;
pub type SyntaxElement = rowan::SyntaxElement<PtxLanguage>;

/// A tree, and the errors of its text in text order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Parse {
    pub green: GreenNode,
    pub errors: Vec<SyntaxError>,
}

impl Parse {
    /// The root of the tree.
    pub fn syntax(&self) -> SyntaxNode {
        SyntaxNode::new_root(self.green.clone())
    }
}

/// Parses the text of one item. The root is the item's node. Any text after the item becomes an `ERROR` node in it.
pub fn parse_item(text: &str) -> Parse {
    parse_with(text, FlatTree::parse, &mut NodeCache::default())
}

/// Parses statements one by one. Their trees share equal parts.
#[derive(Default, Debug)]
pub struct StatementParser {
    cache: NodeCache,
    /// Trees that consist of blanks. The first has one blank, and each of the others has twice as many as the one
    /// before.
    blanks: Vec<NodeOrToken<GreenNode, GreenToken>>,
}

impl StatementParser {
    /// Parses statements that are at `offset` of a text. The root is a `BLOCK` without braces. It starts with as many
    /// blanks as there are bytes before the statements, so that ranges are those of the whole text.
    pub fn parse(&mut self, statements: &str, offset: TextSize) -> Parse {
        let Parse { green, mut errors } = parse_with(statements, FlatTree::parse_statements, &mut self.cache);
        errors.iter_mut().for_each(|error| error.range += offset);
        Parse { green: green.splice_children(0..0, self.blanks(offset.into())), errors }
    }

    /// Exactly `count` blanks, as one tree for each bit that is set in `count`.
    fn blanks(&mut self, count: u32) -> Vec<NodeOrToken<GreenNode, GreenToken>> {
        let powers = 0..u32::BITS - count.leading_zeros();
        for _ in self.blanks.len()..powers.len() {
            self.blanks.push(match self.blanks.last() {
                None => GreenToken::new(raw(SyntaxKind::WHITESPACE), " ").into(),
                Some(half) => GreenNode::new(raw(SyntaxKind::TRIVIA), [half.clone(), half.clone()]).into(),
            });
        }
        powers
            .filter(|power| count & (1 << power) != 0)
            .map(|power| self.blanks[power as usize].clone())
            .collect()
    }
}

fn parse_with(text: &str, parse: fn(&mut FlatTree, &str), cache: &mut NodeCache) -> Parse {
    let mut tree = FlatTree::default();
    parse(&mut tree, text);
    let mut builder = GreenNodeBuilder::with_cache(cache);
    build(text, &tree, &mut builder);
    Parse { green: builder.finish(), errors: tree.errors }
}

/// Parses a whole file. The root is a `SOURCE_FILE` with the items that `split` finds, each parsed by `parse_item`.
pub fn parse_file(text: &str) -> Parse {
    let mut cache = NodeCache::default();
    let mut builder = GreenNodeBuilder::with_cache(&mut cache);
    let mut errors = Vec::new();
    builder.start_node(raw(SyntaxKind::SOURCE_FILE));
    let mut tree = FlatTree::default();
    for item in split::split(text) {
        let (start, text) = (item.range.start(), &text[item.range]);
        tree.parse(text);
        build(text, &tree, &mut builder);
        errors.extend(tree.errors.drain(..).map(|mut error| {
            error.range += start;
            error
        }));
    }
    builder.finish_node();
    Parse { green: builder.finish(), errors }
}

/// Adds the tree of a text to `builder`.
fn build(text: &str, tree: &FlatTree, builder: &mut GreenNodeBuilder<'_>) {
    let mut sink = Sink { text, pos: 0, line_start: true, builder };
    // The ends of the open nodes.
    let mut open: Vec<u32> = Vec::new();
    for (index, element) in (0..).zip(&tree.elements) {
        while open.last() == Some(&index) {
            open.pop();
            sink.builder.finish_node();
        }
        if element.kind.is_node() {
            if !open.is_empty() {
                sink.trivia();
            }
            sink.builder.start_node(raw(element.kind));
            open.push(element.next);
        } else if element.kind != SyntaxKind::EOF {
            sink.trivia();
            sink.token(element.kind, tree.range(index).end().into());
        }
    }
    for _ in 1..open.len() {
        sink.builder.finish_node();
    }
    sink.rest();
    sink.builder.finish_node();
}

/// Passes tokens to the builder in order.
struct Sink<'a, 'cache> {
    text: &'a str,
    pos: usize,
    /// There are only blanks since the last line break.
    line_start: bool,
    builder: &'a mut GreenNodeBuilder<'cache>,
}

impl Sink<'_, '_> {
    /// Adds the blanks and comments before the next token.
    fn trivia(&mut self) {
        while self.pos < self.text.len()
            && let (kind, end) = self.next()
            && kind.is_trivia()
        {
            let has_break = self.text.as_bytes()[self.pos..end].contains(&b'\n');
            let line_start = kind == SyntaxKind::WHITESPACE && (self.line_start || has_break);
            self.token(kind, end);
            self.line_start = line_start;
        }
    }

    /// Adds the text that the parser has left if it gave up, as an error.
    fn rest(&mut self) {
        self.trivia();
        if self.pos < self.text.len() {
            self.builder.start_node(raw(SyntaxKind::ERROR));
            self.token(SyntaxKind::SKIPPED, self.text.len());
            self.builder.finish_node();
        }
    }

    fn next(&self) -> (SyntaxKind, usize) {
        lexer::token(self.text.as_bytes(), self.pos, self.line_start)
    }

    fn token(&mut self, kind: SyntaxKind, end: usize) {
        self.builder.token(raw(kind), &self.text[self.pos..end]);
        (self.pos, self.line_start) = (end, false);
    }
}

fn raw(kind: SyntaxKind) -> rowan::SyntaxKind {
    rowan::SyntaxKind(kind as u16)
}

/// The tree and the errors as text, one node or token per line.
pub fn dump(parse: &Parse) -> String {
    let mut out = String::new();
    let mut depth = 0;
    for event in parse.syntax().preorder_with_tokens() {
        match event {
            rowan::WalkEvent::Enter(element) => {
                let _ = write!(
                    out,
                    "{:indent$}{:?}@{:?}",
                    "",
                    element.kind(),
                    element.text_range(),
                    indent = depth * 2
                );
                if let rowan::NodeOrToken::Token(token) = &element {
                    let _ = write!(out, " {:?}", token.text());
                }
                out.push('\n');
                depth += 1;
            }
            rowan::WalkEvent::Leave(_) => depth -= 1,
        }
    }
    for SyntaxError { code, range, message, .. } in &parse.errors {
        let _ = writeln!(out, "error[{}] {range:?}: {message}", ErrorCode::as_str(*code));
    }
    out
}
