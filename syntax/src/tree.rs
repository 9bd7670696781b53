//! Events and tokens to green trees. The only file that names rowan's builders.

use std::fmt::Write as _;

use rowan::{GreenNode, GreenNodeBuilder, GreenToken, NodeCache, NodeOrToken};
use text_size::TextSize;

use crate::event::Event;
use crate::lexer::{Token, lex};
use crate::parser::Parser;
use crate::{ErrorCode, SyntaxError, SyntaxKind, grammar, split, validate};

/// The language of our trees, for rowan.
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

/// A tree and what is wrong with its text, in text order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Parse {
    pub green: GreenNode,
    pub errors: Vec<SyntaxError>,
}

impl Parse {
    /// A cursor at the root.
    pub fn syntax(&self) -> SyntaxNode {
        SyntaxNode::new_root(self.green.clone())
    }
}

/// Parses the text of one item. The root is the node of the item; text behind the item is an `ERROR` in it.
pub fn parse_item(text: &str) -> Parse {
    parse_with(text, grammar::item, &mut NodeCache::default())
}

/// Parses statements of a text one by one. Their trees share equal parts.
#[derive(Default, Debug)]
pub struct StatementParser {
    cache: NodeCache,
    /// Blanks, one at first and twice as many each time.
    blanks: Vec<NodeOrToken<GreenNode, GreenToken>>,
}

impl StatementParser {
    /// Parses statements that stand at `offset` of a text. The root is a `BLOCK` without braces that has blanks for
    /// what is before them, so ranges are those of the whole text.
    pub fn parse(&mut self, statements: &str, offset: TextSize) -> Parse {
        let Parse { green, mut errors } = parse_with(statements, grammar::statements, &mut self.cache);
        errors.iter_mut().for_each(|error| error.range += offset);
        Parse { green: green.splice_children(0..0, self.blanks(offset.into())), errors }
    }

    /// Whether the first so many bytes of some statements parse as they would with nothing behind them.
    pub fn stand_alone(&mut self, statements: &str, length: usize) -> bool {
        let alone = parse_with(&statements[..length], grammar::statements, &mut self.cache);
        let all = parse_with(statements, grammar::statements, &mut self.cache);
        let mut children = all.green.children();
        let mut errors = all.errors.iter().filter(|error| usize::from(error.range.start()) < length);
        alone.green.children().all(|child| children.next() == Some(child))
            && alone.errors.iter().all(|error| errors.next() == Some(error))
            && errors.next().is_none()
    }

    /// So many blanks, in as many pieces as the number has ones.
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

/// Parses the item of a function as if its body were empty. None if it has no body, or its header is wrong.
///
/// Up to the brace that opens the body, the tree is that of [`parse_item`].
pub fn parse_function_header(text: &str) -> Option<Parse> {
    let open = split::body_start(text)?;
    let mut header = String::with_capacity(open + 2);
    header += &text[..=open];
    header.push('}');
    Some(parse_item(&header)).filter(|parse| parse.errors.is_empty())
}

fn parse_with(text: &str, entry: fn(&mut Parser<'_>), cache: &mut NodeCache) -> Parse {
    let mut builder = GreenNodeBuilder::with_cache(cache);
    let errors = build_tree(text, entry, &mut builder);
    Parse { green: builder.finish(), errors }
}

/// Parses a whole file: a `SOURCE_FILE` of the items that `split` finds, each as `parse_item` gives it.
pub fn parse_file(text: &str) -> Parse {
    let mut cache = NodeCache::default();
    let mut builder = GreenNodeBuilder::with_cache(&mut cache);
    let mut errors = Vec::new();
    builder.start_node(raw(SyntaxKind::SOURCE_FILE));
    for item in split::split(text) {
        let start = item.range.start();
        errors.extend(build_tree(&text[item.range], grammar::item, &mut builder).into_iter().map(
            |mut error| {
                error.range += start;
                error
            },
        ));
    }
    builder.finish_node();
    Parse { green: builder.finish(), errors }
}

/// Adds the node that `entry` reads from the text to `builder`.
fn build_tree(
    text: &str,
    entry: fn(&mut Parser<'_>),
    builder: &mut GreenNodeBuilder<'_>,
) -> Vec<SyntaxError> {
    let tokens = lex(text);
    let mut parser = Parser::new(text, &tokens);
    entry(&mut parser);
    let (events, mut errors) = parser.finish();
    build(text, &tokens, events, builder);
    if validate::ends_in_open_comment(text, &tokens) {
        // What is missing behind it is in it.
        errors.retain(|error| error.code != ErrorCode::Unbalanced);
    }
    validate::tokens(text, &tokens, &mut errors);
    errors.sort_by_key(|error| (error.range.start(), error.range.end()));
    errors
}

fn build(text: &str, tokens: &[Token], mut events: Vec<Event>, builder: &mut GreenNodeBuilder<'_>) {
    let mut sink = Sink { text, tokens, next: 0, start: 0, builder };
    let mut depth = 0usize;
    let mut parents = Vec::new();
    for index in 0..events.len() {
        match events[index] {
            Event::Start { kind, parent: 0 } => {
                if depth > 0 {
                    sink.trivia();
                }
                sink.builder.start_node(raw(kind));
                depth += 1;
            }
            Event::Start { .. } => {
                if depth > 0 {
                    sink.trivia();
                }
                // The chain of parents opens outermost first, here; their own events have nothing left to do.
                let mut at = index;
                while let Event::Start { kind, parent } = events[at] {
                    parents.push(kind);
                    events[at] = Event::Nothing;
                    if parent == 0 {
                        break;
                    }
                    at += parent as usize;
                }
                depth += parents.len();
                while let Some(kind) = parents.pop() {
                    sink.builder.start_node(raw(kind));
                }
            }
            Event::Finish => {
                depth -= 1;
                if depth == 0 {
                    sink.rest();
                }
                sink.builder.finish_node();
            }
            Event::Token => {
                sink.trivia();
                sink.token();
            }
            Event::Skipped { tokens } => {
                sink.trivia();
                sink.skipped(tokens);
            }
            Event::Nothing => {}
        }
    }
    debug_assert_eq!(sink.next, tokens.len());
}

/// Hands tokens to the builder in order.
struct Sink<'a, 'cache> {
    text: &'a str,
    tokens: &'a [Token],
    next: usize,
    start: usize,
    builder: &'a mut GreenNodeBuilder<'cache>,
}

impl Sink<'_, '_> {
    fn trivia(&mut self) {
        while self.tokens.get(self.next).is_some_and(|token| token.kind.is_trivia()) {
            self.token();
        }
    }

    /// What a parser that gave up has left, as an error.
    fn rest(&mut self) {
        self.trivia();
        if self.next < self.tokens.len() {
            self.builder.start_node(raw(SyntaxKind::ERROR));
            self.builder.token(raw(SyntaxKind::SKIPPED), &self.text[self.start..]);
            self.builder.finish_node();
            self.next = self.tokens.len();
        }
    }

    /// The next `count` tokens that are not trivia, with the trivia between them, as one token.
    fn skipped(&mut self, count: u32) {
        let mut left = count;
        let mut end = self.start;
        while left > 0
            && let Some(token) = self.tokens.get(self.next)
        {
            end += token.len as usize;
            self.next += 1;
            left -= u32::from(!token.kind.is_trivia());
        }
        self.builder.token(raw(SyntaxKind::SKIPPED), &self.text[self.start..end]);
        self.start = end;
    }

    fn token(&mut self) {
        let Some(token) = self.tokens.get(self.next) else { return };
        let end = self.start + token.len as usize;
        self.builder.token(raw(token.kind), &self.text[self.start..end]);
        self.start = end;
        self.next += 1;
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
