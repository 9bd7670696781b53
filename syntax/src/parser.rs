//! The parser that the grammar calls: look-ahead, markers, errors and limits.
//!
//! The parser sees tokens without blanks and comments, and writes a [`FlatTree`]. It always ends: nesting is limited by
//! `MAX_NESTING`, and if the grammar looks ahead too often without consuming a token, the parser reports the end of the
//! text.

use std::borrow::Cow;
use std::cell::Cell;

use text_size::{TextRange, TextSize};

use crate::flat::{Element, FlatTree};
use crate::{ErrorCode, Remedy, SyntaxError, SyntaxKind};

/// The nesting limit of brackets and blocks. Real code has fewer than twenty levels.
pub(crate) const MAX_NESTING: u32 = 200;

/// The largest number of errors reported for one item. More would not help the user.
const MAX_ERRORS: usize = 200;

/// An item with more faults than this, reported or not, is not PTX. The parser then reports the end of the text to the
/// grammar.
const MAX_FAULTS: usize = 10_000;

/// How many consecutive wrong tokens the tree keeps individually. Further ones are joined to one token, so that the
/// tree of a text that is not PTX stays small.
const MAX_ERROR_TOKENS: usize = 1_000;

/// How many times the grammar may look at a token without consuming one before the parser gives up.
const MAX_LOOKS: u32 = 10_000;

pub(crate) struct Parser<'t> {
    text: &'t str,
    tree: FlatTree,
    pos: usize,
    /// The number of errors found, reported or not.
    faults: usize,
    nesting: u32,
    /// The number of operators on the longest path of the current expression's tree. The tree of a chain such as
    /// `1+1+1` is as deep as the chain is long, although nothing is nested.
    height: u32,
    looks: Cell<u32>,
}

impl<'t> Parser<'t> {
    /// `tree` must hold the tokens of the text and nothing else.
    pub(crate) fn new(text: &'t str, tree: FlatTree) -> Parser<'t> {
        Parser { text, tree, pos: 0, faults: 0, nesting: 0, height: 0, looks: Cell::new(0) }
    }

    pub(crate) fn finish(self) -> FlatTree {
        self.tree
    }

    // Looking.

    pub(crate) fn current(&self) -> SyntaxKind {
        let looks = self.looks.get() + 1;
        self.looks.set(looks);
        if looks > MAX_LOOKS { SyntaxKind::EOF } else { self.nth(0) }
    }

    pub(crate) fn nth(&self, n: usize) -> SyntaxKind {
        self.tree.tokens.get(self.pos + n).map_or(SyntaxKind::EOF, |token| token.kind)
    }

    pub(crate) fn at(&self, kind: SyntaxKind) -> bool {
        self.current() == kind
    }

    /// The text of the current token; empty at the end.
    pub(crate) fn current_text(&self) -> &'t str {
        self.nth_text(0)
    }

    pub(crate) fn nth_text(&self, n: usize) -> &'t str {
        match self.tree.tokens.get(self.pos + n) {
            Some(token) => &self.text[token.start as usize..(token.start + token.len) as usize],
            None => "",
        }
    }

    /// Whether the current token is the suffix or directive `word`.
    pub(crate) fn at_word(&self, word: &str) -> bool {
        self.at(SyntaxKind::DOT_WORD) && self.current_text() == word
    }

    /// Whether the current token is the first of its line.
    pub(crate) fn at_line_start(&self) -> bool {
        self.nth_at_line_start(0)
    }

    pub(crate) fn nth_at_line_start(&self, n: usize) -> bool {
        self.tree.tokens.get(self.pos + n).is_some_and(|token| token.line_start)
    }

    /// Whether the current token follows the previous one directly, without a blank.
    pub(crate) fn is_joint(&self) -> bool {
        self.nth_is_joint(0)
    }

    pub(crate) fn nth_is_joint(&self, n: usize) -> bool {
        let at = self.pos + n;
        match (self.tree.tokens.get(at), at.checked_sub(1).and_then(|before| self.tree.tokens.get(before))) {
            (Some(token), Some(before)) => before.start + before.len == token.start,
            _ => false,
        }
    }

    /// The range of the current token. If there is none, the empty range at the end of the last token.
    pub(crate) fn current_range(&self) -> TextRange {
        match self.tree.tokens.get(self.pos) {
            Some(token) => token.range(),
            None => TextRange::empty(self.previous_end()),
        }
    }

    /// The kind of the token before the current one.
    pub(crate) fn previous(&self) -> SyntaxKind {
        let before = self.pos.checked_sub(1).and_then(|before| self.tree.tokens.get(before));
        before.map_or(SyntaxKind::EOF, |token| token.kind)
    }

    /// The end of the token before the current one.
    pub(crate) fn previous_end(&self) -> TextSize {
        let before = self.pos.checked_sub(1).and_then(|before| self.tree.tokens.get(before));
        TextSize::new(before.map_or(0, |token| token.start + token.len))
    }

    // Consuming.

    pub(crate) fn bump(&mut self) {
        if let Some(token) = self.tree.tokens.get(self.pos) {
            let kind = token.kind;
            self.push(kind);
            self.pos += 1;
            self.looks.set(0);
        }
    }

    pub(crate) fn eat(&mut self, kind: SyntaxKind) -> bool {
        let found = self.at(kind);
        if found {
            self.bump();
        }
        found
    }

    /// Consumes a token of this kind, or reports that it is missing.
    pub(crate) fn expect(&mut self, kind: SyntaxKind) -> bool {
        let found = self.eat(kind);
        if !found {
            self.error_expected(&format!("`{}`", kind.fixed_text().unwrap_or("a name")));
        }
        found
    }

    /// Puts the current token into an `ERROR` node.
    pub(crate) fn bump_as_error(&mut self) {
        let marker = self.start();
        self.bump();
        marker.complete(self, SyntaxKind::ERROR);
    }

    // Nesting.

    /// Enters a bracket, unless it is nested too deeply. Each call needs a call of `leave`.
    pub(crate) fn enter(&mut self) -> bool {
        if self.nesting >= MAX_NESTING {
            self.error_at(
                ErrorCode::Limit,
                self.current_range(),
                format!("nesting exceeds {MAX_NESTING} levels"),
            );
            return false;
        }
        self.nesting += 1;
        true
    }

    pub(crate) fn leave(&mut self) {
        self.nesting -= 1;
    }

    /// Parses an expression that is the root of its own tree.
    pub(crate) fn with_own_height<T>(&mut self, parse: impl FnOnce(&mut Self) -> T) -> T {
        let outer = std::mem::take(&mut self.height);
        let result = parse(self);
        self.height = self.height.max(outer);
        result
    }

    /// Parses the right side of an operator. The operator is one level above both sides.
    pub(crate) fn grow<T>(&mut self, parse: impl FnOnce(&mut Self) -> T) -> T {
        let result = self.with_own_height(parse);
        self.height += 1;
        result
    }

    /// Whether the current expression may have another operator above it. Reports an error if not.
    pub(crate) fn may_grow(&mut self) -> bool {
        let fits = self.height < MAX_NESTING;
        if !fits {
            let message = format!("expression has more than {MAX_NESTING} operators");
            self.error_at(ErrorCode::Limit, self.current_range(), message);
        }
        fits
    }

    // Errors.

    /// Reports that `what` was expected in place of the current token.
    pub(crate) fn error_expected(&mut self, what: &str) {
        let found = self.found();
        self.error_at(ErrorCode::Unexpected, self.place(), format!("expected {what}, found {found}"));
    }

    /// The place of an error at the current token. If a token is missing at the end of a line or of the text, the place
    /// is after the last token.
    fn place(&self) -> TextRange {
        if self.at_line_start() || self.nth(0) == SyntaxKind::EOF {
            TextRange::empty(self.previous_end())
        } else {
            self.current_range()
        }
    }

    /// Reports `message` at the current token.
    pub(crate) fn error_here(&mut self, message: impl Into<Cow<'static, str>>) {
        self.error_at(ErrorCode::Unexpected, self.current_range(), message);
    }

    /// Reports `message` at the token `n` after the current one.
    pub(crate) fn nth_error(&mut self, n: usize, message: &'static str) {
        if let Some(token) = self.tree.tokens.get(self.pos + n) {
            self.error_at(ErrorCode::Unexpected, token.range(), message);
        }
    }

    pub(crate) fn error_at(
        &mut self,
        code: ErrorCode,
        range: TextRange,
        message: impl Into<Cow<'static, str>>,
    ) {
        self.faults += 1;
        if self.faults > MAX_FAULTS {
            self.tree.tokens.truncate(self.pos);
        }
        // A second error at the same place usually follows from the first.
        if self.tree.errors.last().is_some_and(|last| last.range == range)
            || self.tree.errors.len() > MAX_ERRORS
        {
            return;
        }
        if self.tree.errors.len() == MAX_ERRORS {
            let message = "too many syntax errors; further errors in this item are not reported".into();
            self.tree.errors.push(SyntaxError { code: ErrorCode::Limit, range, message, remedy: None });
            return;
        }
        self.tree.errors.push(SyntaxError { code, range, message: message.into(), remedy: None });
    }

    /// Sets the fix of the error at `range`, which was reported last.
    pub(crate) fn mend(&mut self, range: TextRange, remedy: Remedy) {
        if let Some(error) = self.tree.errors.last_mut().filter(|error| error.range == range) {
            error.remedy.get_or_insert(remedy);
        }
    }

    /// Reports that `what` was expected instead of the current token. `missing` is an example of the missing text.
    pub(crate) fn error_missing(&mut self, what: &str, missing: &'static str) {
        let range = self.place();
        self.error_expected(what);
        self.mend(range, Remedy::Insert(missing));
    }

    /// Reports `message` at the current token, which `text` should replace.
    pub(crate) fn error_instead(&mut self, message: impl Into<Cow<'static, str>>, text: &'static str) {
        let range = self.current_range();
        self.error_here(message);
        self.mend(range, Remedy::Replace(text.into()));
    }

    /// The current token as messages show it.
    pub(crate) fn found(&self) -> String {
        const MAX_SHOWN: usize = 32;
        let text = self.current_text();
        match self.nth(0) {
            SyntaxKind::EOF => "the end of the declaration".to_owned(),
            SyntaxKind::BAD_CHAR => "an invalid character".to_owned(),
            SyntaxKind::STRING => "a string".to_owned(),
            _ if text.chars().count() > MAX_SHOWN => {
                format!("`{}…`", text.chars().take(MAX_SHOWN).collect::<String>())
            }
            _ => format!("`{text}`"),
        }
    }

    // Nodes.

    pub(crate) fn start(&mut self) -> Marker {
        self.push(SyntaxKind::EOF);
        Marker { element: self.tree.elements.len() - 1 }
    }

    /// Adds an element without contents.
    #[inline]
    fn push(&mut self, kind: SyntaxKind) {
        let next = self.tree.elements.len() as u32 + 1;
        self.tree.elements.push(Element { kind, token: self.pos as u32, next });
    }
}

/// An open node. If it is abandoned, its contents become part of its parent.
pub(crate) struct Marker {
    element: usize,
}

impl Marker {
    pub(crate) fn complete(self, p: &mut Parser<'_>, kind: SyntaxKind) -> CompletedMarker {
        let elements = &mut p.tree.elements;
        let first = self.element + 1;
        let inside = &elements[first..];
        if kind == SyntaxKind::ERROR
            && inside.len() > MAX_ERROR_TOKENS
            && inside.iter().all(|element| !element.kind.is_node())
        {
            elements.truncate(first + 1);
            elements[first].kind = SyntaxKind::SKIPPED;
        }
        let next = elements.len() as u32;
        let element = &mut elements[self.element];
        (element.kind, element.next) = (kind, next);
        CompletedMarker { element: self.element, kind }
    }
}

/// A completed node.
#[derive(Clone, Copy)]
pub(crate) struct CompletedMarker {
    element: usize,
    kind: SyntaxKind,
}

impl CompletedMarker {
    pub(crate) fn kind(self) -> SyntaxKind {
        self.kind
    }

    /// Opens a node that becomes the parent of this one. This one must be the last completed node.
    pub(crate) fn precede(self, p: &mut Parser<'_>) -> Marker {
        let elements = &mut p.tree.elements;
        // This moves the node's elements. Operands are small, and `MAX_NESTING` limits how often one is moved.
        let first = elements[self.element];
        elements[self.element..].iter_mut().for_each(|element| element.next += 1);
        elements.insert(self.element, Element { kind: SyntaxKind::EOF, ..first });
        elements[self.element].next = self.element as u32 + 1;
        Marker { element: self.element }
    }
}
