//! The heading of a function: everything before its body.
//!
//! Headings as compilers write them are read from the text, all others from a tree. Both readings give the same, and
//! what a heading declares and what is wrong with it is found out from that alone.

use std::rc::Rc;

use ptx_backend::input::Linkage;
use ptx_isa::{Directive, Site};
use ptx_syntax::{NodeOrToken, SyntaxKind, SyntaxNode, parse_function_header};
use smallvec::SmallVec;
use text_size::{TextRange, TextSize};

use super::cursor::Cursor;
use super::parameter::{Kind, Kinds, Parameter};
use crate::check::directives::{self, Found};
use crate::declaration::{self, Declaration, Declarator, Head, HeadReader};
use crate::diagnostic::Findings;
use crate::elements::elements;

/// Headings read one after the other.
#[derive(Debug, Default)]
pub(crate) struct Headings<'t> {
    /// The one that was read last.
    heading: Heading<'t>,
    kinds: Kinds<'t>,
}

impl<'t> Headings<'t> {
    /// The heading of the function in `text`, if there is nothing wrong with it in itself: from the text where it is
    /// plain, else from a tree without the body.
    pub(crate) fn read(&mut self, text: &'t str) -> Option<&Heading<'t>> {
        if !self.read_plain(text) {
            let parsed = parse_function_header(text)?;
            let mut found = Findings::default();
            self.heading = Heading::read_tree(&parsed.syntax(), text, &mut found);
            if !found.is_empty() {
                return None;
            }
        }
        Some(&self.heading)
    }

    /// A declaration of module scope that has nothing unusual in it.
    pub(crate) fn read_variable(&mut self, text: &'t str) -> Option<Declaration> {
        let mut found = Findings::default();
        let reader = Reader { cursor: Cursor::new(text), kinds: &mut self.kinds, out: &mut found };
        reader.variable().filter(|_| found.is_empty())
    }

    /// Reads a heading that has nothing unusual in it.
    fn read_plain(&mut self, text: &'t str) -> bool {
        self.heading.clear();
        let mut found = Findings::default();
        let reader = Reader { cursor: Cursor::new(text), kinds: &mut self.kinds, out: &mut found };
        reader.heading(&mut self.heading).is_some() && found.is_empty()
    }
}

/// Everything before the body of a function, or all of a prototype.
#[derive(PartialEq, Debug, Default)]
pub(crate) struct Heading<'t> {
    /// Linkage, `.entry` or `.func`.
    pub(crate) words: SmallVec<[TextRange; 2]>,
    pub(crate) name: Option<TextRange>,
    /// The list before the name.
    pub(crate) results: List,
    pub(crate) parameters: List,
    pub(crate) directives: SmallVec<[Found<'t>; 2]>,
    pub(crate) attributes: Vec<SyntaxNode>,
    pub(crate) pragmas: Vec<SyntaxNode>,
    /// Where the brace of the body is.
    pub(crate) body: Option<TextSize>,
}

/// A list of parameters in parentheses. One that is not written is empty.
#[derive(PartialEq, Debug, Default)]
pub(crate) struct List {
    pub(crate) range: TextRange,
    /// Those that could be read.
    pub(crate) parameters: Vec<Parameter>,
    /// Something is in it, read or not.
    has_some: bool,
}

impl<'t> Heading<'t> {
    fn clear(&mut self) {
        self.words.clear();
        self.name = None;
        self.results.clear();
        self.parameters.clear();
        self.directives.clear();
        self.attributes.clear();
        self.pragmas.clear();
        self.body = None;
    }

    /// Reads a `FUNCTION` or a `CALL_PROTOTYPE`.
    pub(crate) fn read_tree(node: &SyntaxNode, text: &'t str, out: &mut Findings) -> Self {
        let mut heading = Self::default();
        // The name of a prototype is its label and stands first; a name like that of a function may be left out.
        let is_function = node.kind() == SyntaxKind::FUNCTION;
        let mut is_named = false;
        for element in elements(node) {
            match element {
                NodeOrToken::Token(token) if token.is(SyntaxKind::DOT_WORD) => {
                    heading.words.push(token.range)
                }
                NodeOrToken::Token(token) => {
                    is_named |= token.is(SyntaxKind::UNDERSCORE) || token.is(SyntaxKind::IDENT);
                }
                NodeOrToken::Node(child) => match child.kind() {
                    SyntaxKind::NAME if is_function => {
                        is_named = true;
                        heading.name = Some(child.text_range());
                    }
                    SyntaxKind::PARAM_LIST => {
                        let is_first = !is_named && !heading.results.has_some;
                        let list = if is_first { &mut heading.results } else { &mut heading.parameters };
                        list.read(&child, text, out);
                    }
                    SyntaxKind::FUNCTION_DIRECTIVE => {
                        heading.directives.push(directives::read(&child, text, out));
                    }
                    SyntaxKind::ATTRIBUTE_LIST => heading.attributes.push(child),
                    SyntaxKind::PRAGMA => heading.pragmas.push(child),
                    SyntaxKind::BLOCK => heading.body = Some(child.text_range().start()),
                    _ => {}
                },
            }
        }
        heading
    }

    pub(crate) fn is_entry(&self, text: &str) -> bool {
        self.words.iter().any(|&word| &text[word] == ".entry")
    }

    pub(crate) fn linkage(&self, text: &str) -> Linkage {
        let mut words = self.words.iter().rev();
        words.find_map(|&word| declaration::linkage(&text[word])).unwrap_or(Linkage::Internal)
    }

    pub(crate) fn has_results(&self) -> bool {
        self.results.has_some
    }

    pub(crate) fn is_noreturn(&self) -> bool {
        self.directives.iter().any(|directive| directive.word == ".noreturn")
    }
}

impl List {
    fn clear(&mut self) {
        self.range = TextRange::default();
        self.parameters.clear();
        self.has_some = false;
    }

    fn read(&mut self, node: &SyntaxNode, text: &str, out: &mut Findings) {
        let params = node.children().filter(|child| child.kind() == SyntaxKind::PARAM);
        self.range = node.text_range();
        let declarations = params.filter_map(|param| declaration::read(&param, text, out));
        self.parameters.extend(declarations.flat_map(Parameter::all_of));
        self.has_some = node.first_child().is_some();
    }
}

/// Reads a plain heading. Methods give `None` when they give up.
pub(super) struct Reader<'t, 'o> {
    pub(super) cursor: Cursor<'t>,
    kinds: &'o mut Kinds<'t>,
    pub(super) out: &'o mut Findings,
}

impl<'t> Reader<'t, '_> {
    fn heading(mut self, heading: &mut Heading<'t>) -> Option<()> {
        self.cursor.skip_trivia()?;
        let mut word = self.cursor.dot_word()?;
        if matches!(self.cursor.bytes(word), b".visible" | b".extern" | b".weak") {
            heading.words.push(word);
            self.cursor.skip_trivia()?;
            word = self.cursor.dot_word()?;
        }
        heading.words.push(word);
        let is_entry = match self.cursor.bytes(word) {
            b".entry" => true,
            b".func" => false,
            _ => return None,
        };
        self.cursor.skip_trivia()?;
        if !is_entry && self.cursor.byte() == b'(' {
            self.list(&mut heading.results)?;
            self.cursor.skip_trivia()?;
        }
        heading.name = Some(self.cursor.name()?);
        self.cursor.skip_trivia()?;
        if self.cursor.byte() == b'(' {
            self.list(&mut heading.parameters)?;
        }
        loop {
            self.cursor.skip_trivia()?;
            match self.cursor.byte() {
                b'.' => {
                    let directive = self.directive()?;
                    heading.directives.push(directive);
                }
                b'{' => {
                    heading.body = Some(TextSize::new(self.cursor.pos as u32));
                    return Some(());
                }
                b';' if self.cursor.pos + 1 == self.cursor.text.len() => return Some(()),
                _ => return None,
            }
        }
    }

    /// The list of parameters at the cursor.
    fn list(&mut self, list: &mut List) -> Option<()> {
        let start = self.cursor.pos;
        self.cursor.pos += 1;
        self.cursor.skip_trivia()?;
        if self.cursor.byte() != b')' {
            loop {
                list.parameters.push(self.parameter()?);
                self.cursor.skip_trivia()?;
                match self.cursor.byte() {
                    b',' => self.cursor.pos += 1,
                    b')' => break,
                    _ => return None,
                }
                self.cursor.skip_trivia()?;
            }
        }
        self.cursor.pos += 1;
        list.range = self.cursor.range_from(start);
        list.has_some = !list.parameters.is_empty();
        Some(())
    }

    /// `.param .align 8 .b8 x[16]`
    fn parameter(&mut self) -> Option<Parameter> {
        let start = self.cursor.pos;
        let offset = TextSize::new(start as u32);
        if let Some((index, length)) = self.kinds.find(&self.cursor.text[start..]) {
            self.cursor.pos += length;
            let (name, declarator) = self.sized_declarator()?;
            return Some(Parameter::new(self.kinds.get(index, declarator), offset, name));
        }
        // The words of linkage end the list for the parser, the others have parts of their own.
        let is_unusual =
            |word: &[u8]| matches!(word, b".attribute" | b".const" | b".visible" | b".extern" | b".weak");
        let head = self.head(is_unusual)?.moved_back(offset);
        let written = &self.cursor.text[start..self.cursor.pos];
        let (name, declarator) = self.sized_declarator()?;
        let kind = Rc::new(Kind::new(head, declarator));
        if self.out.is_empty() {
            self.kinds.add(written, &kind);
        }
        Some(Parameter::new(kind, offset, name))
    }

    fn sized_declarator(&mut self) -> Option<(TextRange, Declarator)> {
        self.declarator().filter(|(_, declarator)| !declarator.dimensions.contains(&None))
    }

    /// `x[16]`: the name, and what else is declared.
    pub(super) fn declarator(&mut self) -> Option<(TextRange, Declarator)> {
        let name = self.cursor.name()?;
        let mut declarator = Declarator::new(None);
        self.cursor.skip_trivia()?;
        while self.cursor.byte() == b'[' {
            self.cursor.pos += 1;
            self.cursor.skip_trivia()?;
            let count = if self.cursor.byte() == b']' { None } else { Some(self.cursor.number()?.into()) };
            declarator.dimensions.push(count);
            self.cursor.skip_trivia()?;
            self.cursor.eat(b']')?;
            self.cursor.skip_trivia()?;
        }
        Some((name, declarator))
    }

    /// What stands before the name of a declaration. Words that `is_unusual` are left to the tree.
    pub(super) fn head(&mut self, is_unusual: impl Fn(&[u8]) -> bool) -> Option<Head> {
        let mut head = HeadReader::new(self.cursor.text);
        while self.cursor.byte() == b'.' {
            let word = self.cursor.dot_word()?;
            match self.cursor.bytes(word) {
                text if is_unusual(text) => return None,
                b".align" if !head.has_type() => {
                    let align = self.cursor.number()?;
                    head.align(self.cursor.range_from(word.start().into()), Some(align.into()), self.out);
                }
                b".ptr" => self.pointer(word.start().into(), &mut head)?,
                // The parser wants the type behind everything else.
                _ if head.has_type() => return None,
                _ => head.word(word, self.out)?,
            }
            self.cursor.skip_trivia()?;
        }
        head.finish().ok()
    }

    /// What follows `.ptr`: `.global .align 8`.
    fn pointer(&mut self, start: usize, head: &mut HeadReader<'_>) -> Option<()> {
        let mut end = self.cursor.pos;
        let (mut space, mut align) = (None, None);
        self.cursor.skip_trivia()?;
        if self.cursor.byte() == b'.' {
            let mut before = self.cursor.pos;
            let mut word = self.cursor.dot_word()?;
            if matches!(self.cursor.bytes(word), b".const" | b".global" | b".local" | b".shared") {
                space = Some(&self.cursor.text[word]);
                end = self.cursor.pos;
                self.cursor.skip_trivia()?;
                before = self.cursor.pos;
                word = self.cursor.dot_word().unwrap_or_default();
            }
            if self.cursor.bytes(word) == b".align" {
                let value = self.cursor.number()?;
                align = Some((self.cursor.range_from(word.start().into()), value.into()));
                end = self.cursor.pos;
            } else {
                self.cursor.pos = before;
            }
        }
        let range = TextRange::new(TextSize::new(start as u32), TextSize::new(end as u32));
        head.pointer(range, space, align, self.out);
        Some(())
    }

    /// `.maxntid 128, 1, 1`
    fn directive(&mut self) -> Option<Found<'t>> {
        let range = self.cursor.dot_word()?;
        let word = &self.cursor.text[range];
        let known = Directive::parse(&word[1..]).filter(|known| known.site.intersects(Site::FUNCTION))?;
        let mut arguments = SmallVec::new();
        match word {
            // These have parts of their own.
            ".pragma" | ".attribute" => return None,
            _ if !known.takes_arguments() => {}
            _ => loop {
                self.cursor.skip_trivia()?;
                let start = self.cursor.pos;
                let value = self.cursor.number()?;
                arguments.push((self.cursor.range_from(start), Some(value.into())));
                self.cursor.skip_trivia()?;
                match self.cursor.byte() {
                    b',' => self.cursor.pos += 1,
                    b'.' | b'{' | b';' => break,
                    _ => return None,
                }
            },
        }
        Some(Found::new(word, range, arguments, self.out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a heading is plain. What is plain gives what its tree gives, and its text is right.
    fn is_plain(text: &str) -> bool {
        let mut headings = Headings::default();
        // The second time what stands before the names is known.
        let is_plain = headings.read_plain(text) && headings.read_plain(text);
        let parsed = ptx_syntax::parse_item(text);
        let mut found = Findings::default();
        let by_tree = Heading::read_tree(&parsed.syntax(), text, &mut found);
        if is_plain {
            assert_eq!(headings.heading, by_tree, "{text}");
            assert!(found.is_empty() && parsed.errors.is_empty(), "{text}");
        }
        is_plain
    }

    #[test]
    fn what_compilers_write_is_plain() {
        for text in [
            "\n\t// .globl\tk\n.visible .entry k(\n\t.param .u64 a,\n\t.param .u64 .ptr .global .align 16 b,\n\
             .param .u64 .ptr .align 1 c,\n.param .align 8 .b8 d[16]\n)\n.maxntid 128, 1, 1\n.minnctapersm 2\n{ }",
            ".entry k { }",
            ".weak .entry k() .explicitcluster .reqnctapercluster 2 { }",
            ".extern .func (.param .b32 r) printf /* text */ (\n.param .b64 a, .param .b64 b) ;",
            ".func (.reg .b32 %r) f(.reg .v2 .b32 %a, .param .b8 b[2][3]) .noreturn { }",
            ".visible .func $f (.param.b64 _a, .param.b64%b, .param.b64%b) { }",
        ] {
            assert!(is_plain(text), "{text}");
        }
    }

    /// Each of these is wrong or unusual.
    #[test]
    fn everything_else_is_left_to_the_tree() {
        for text in [
            ".entry k(.param .u64 a,) { }",
            ".entry k(.param .u64 a .param .u64 b) { }",
            ".entry k(.param .u64) { }",
            ".entry k(.param a) { }",
            ".entry k(.param .u64%a, .param .u64b c) { }",
            ".entry k(.u64 a) { }",
            ".entry k(.param .u64 .u64 a) { }",
            ".entry k(.param .u64 .align 8 a) { }",
            ".entry k(.param .align 3 .b8 a[4]) { }",
            ".entry k(.param .align 8.b8 a[4]) { }",
            ".entry k(.param .u64 .ptr .align 3 a) { }",
            ".entry k(.visible .param .u64 a) { }",
            ".entry k(.u64 .param a) { }",
            ".entry k(.param .b8 a[]) { }",
            ".entry k(.param .b8 a[010]) { }",
            ".entry k(.param .b8 a[4U]) { }",
            ".entry k(.param .b8 _) { }",
            ".entry k(.param .b8 a<4>) { }",
            ".entry k(.param .b8::x a) { }",
            ".entry (.param .b8 a) k { }",
            ".entry k() .maxntid { }",
            ".entry k() .maxntid 1, { }",
            ".entry k() .maxntid 1, 1, 1, 1 { }",
            ".entry k() .noreturn 1 { }",
            ".entry k() .whatever { }",
            ".entry k() .pragma \"nounroll\"; { }",
            ".entry k() x { }",
            ".visible .weak .entry k() { }",
            ".common .entry k() { }",
            ".func () f(); x",
            "# 1 \"file\"\n.entry k() { }",
            "/* open .entry k() { }",
            ".entry k // \u{e9}\n() { }",
            ".entry",
        ] {
            assert!(!is_plain(text), "{text}");
        }
    }
}
