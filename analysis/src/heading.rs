//! The heading of a function: everything before its body.
//!
//! The declarations in a heading, and their errors, depend only on the heading.

use ptx_backend::abi::Preserved;
use ptx_backend::input::{Linkage, Param, UnifiedId};
use ptx_syntax::flat::{FlatTree, Node};
use ptx_syntax::{NodeOrToken, SyntaxKind};
use smallvec::SmallVec;
use text_size::{TextRange, TextSize};

use crate::constant::{self, Value};
use crate::declaration::{self, BAD_CONSTANT, Declaration, Declarator, Head, Shape, Words};
use crate::diagnostic::{Diagnostic, Findings};

/// Everything before the body of a function, or all of a prototype.
#[derive(Debug, Default)]
pub(crate) struct Heading<'t> {
    /// Linkage, `.entry` or `.func`.
    pub(crate) words: SmallVec<[TextRange; 2]>,
    pub(crate) name: Option<TextRange>,
    /// The parameter list before the name.
    pub(crate) results: List<'t>,
    pub(crate) parameters: List<'t>,
    pub(crate) directives: SmallVec<[FunctionDirective<'t>; 2]>,
    pub(crate) attributes: Vec<Node<'t>>,
    pub(crate) pragmas: Vec<Node<'t>>,
    pub(crate) body: Option<Node<'t>>,
}

/// A parameter list in parentheses. A missing list is empty.
#[derive(Debug, Default)]
pub(crate) struct List<'t> {
    pub(crate) range: TextRange,
    /// The parameters that could be read.
    pub(crate) parameters: Vec<Parameter<'t>>,
    /// Whether the list is not empty, even if its contents could not be read.
    has_some: bool,
}

/// A parameter or a result.
#[derive(Debug)]
pub(crate) struct Parameter<'t> {
    pub(crate) head: Head,
    pub(crate) declarator: Declarator<'t>,
    pub(crate) shape: Shape,
    /// The size in bytes; zero if it is open.
    pub(crate) bytes: u64,
}

/// A directive with its arguments.
#[derive(Debug)]
pub(crate) struct FunctionDirective<'t> {
    pub(crate) word: &'t str,
    /// The range of the word.
    pub(crate) range: TextRange,
    /// The range of the word and the arguments.
    pub(crate) whole: TextRange,
    /// `None` for an argument that is not an integer, which is an error.
    pub(crate) arguments: SmallVec<[(TextRange, Option<i64>); 3]>,
}

impl<'t> Heading<'t> {
    /// Reads a `FUNCTION` or a `CALL_PROTOTYPE`.
    pub(crate) fn read(node: Node<'t>, text: &'t str, out: &mut Findings) -> Self {
        let mut heading = Self::default();
        // The label of a prototype is its name and comes first; a name in the position of a function name is optional.
        let is_function = node.kind() == SyntaxKind::FUNCTION;
        let mut is_named = false;
        for element in node.elements() {
            match element {
                NodeOrToken::Token(token) => match token.kind {
                    SyntaxKind::DOT_WORD => heading.words.push(token.range),
                    kind => is_named |= matches!(kind, SyntaxKind::UNDERSCORE | SyntaxKind::IDENT),
                },
                NodeOrToken::Node(child) => match child.kind() {
                    SyntaxKind::NAME if is_function => {
                        is_named = true;
                        heading.name = Some(child.text_range());
                    }
                    SyntaxKind::PARAM_LIST => {
                        let is_first = !is_named && !heading.results.has_some;
                        let list = if is_first { &mut heading.results } else { &mut heading.parameters };
                        list.read(child, text, out);
                    }
                    SyntaxKind::FUNCTION_DIRECTIVE => {
                        heading.directives.push(FunctionDirective::read(child, text, out));
                    }
                    SyntaxKind::ATTRIBUTE_LIST => heading.attributes.push(child),
                    SyntaxKind::PRAGMA => heading.pragmas.push(child),
                    SyntaxKind::BLOCK => heading.body = Some(child),
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

    /// The contents of `.abi_preserve` and `.abi_preserve_control`.
    pub(crate) fn preserved(&self) -> Preserved {
        let count = |word| {
            let found = self.directives.iter().find(|directive| directive.word == word)?;
            u8::try_from(found.value(0)?).ok()
        };
        let (general, control) = (count(".abi_preserve"), count(".abi_preserve_control"));
        Preserved { general, control, return_address: None }
    }

    pub(crate) fn is_noreturn(&self) -> bool {
        self.directives.iter().any(|directive| directive.word == ".noreturn")
    }

    /// The numbers of `.attribute(.unified(1, 2))`.
    pub(crate) fn unified(&self, text: &str) -> Option<UnifiedId> {
        let read = |&list: &Node<'_>| {
            declaration::attributes(list, text, &mut Words::default(), &mut Findings::default())
        };
        self.attributes.iter().rev().find_map(read)
    }
}

impl<'t> List<'t> {
    fn read(&mut self, node: Node<'t>, text: &str, out: &mut Findings) {
        self.range = node.text_range();
        for child in node.children() {
            self.has_some = true;
            if child.kind() == SyntaxKind::PARAM
                && let Some(Declaration { head, declarators }) = declaration::read(child, text, out)
            {
                let parameters = declarators.into_iter();
                self.parameters.extend(parameters.map(|declarator| Parameter::new(head.clone(), declarator)));
            }
        }
    }
}

impl<'t> Parameter<'t> {
    fn new(head: Head, declarator: Declarator<'t>) -> Self {
        let shape = Shape::new(&head, &declarator);
        let bytes = declarator.elements().unwrap_or(0).saturating_mul(head.element_bytes());
        Self { head, declarator, shape, bytes }
    }

    /// `None` if the name is missing, which the parser has reported.
    pub(crate) fn name(&self) -> Option<TextRange> {
        self.declarator.name
    }
}

impl<'t> FunctionDirective<'t> {
    /// Reads a `FUNCTION_DIRECTIVE`.
    fn read(node: Node<'t>, text: &'t str, out: &mut Findings) -> Self {
        let range = node.tokens(SyntaxKind::DOT_WORD).next().unwrap_or_default();
        let all = &text[range];
        let is_other = |c: char| !(c == '_' || c.is_ascii_alphanumeric());
        let word = &all[..all[1..].find(is_other).map_or(all.len(), |at| at + 1)];
        let arguments = node.children().map(|child| {
            let range = child.text_range();
            let value = match constant::evaluate(child, text) {
                Ok(Value::Int { value, .. }) if child.kind() == SyntaxKind::LITERAL => Some(value),
                Ok(_) => {
                    let message = "expected an integer literal";
                    out.push(Diagnostic::new(&BAD_CONSTANT, range, message));
                    None
                }
                Err(error) => {
                    out.push(Diagnostic::new(&BAD_CONSTANT, error.range, error.message));
                    None
                }
            };
            (range, value)
        });
        let arguments = arguments.collect();
        let range = TextRange::at(range.start(), TextSize::of(word));
        Self { word, range, whole: node.text_range(), arguments }
    }

    /// An argument that is an integer of 32 bits.
    pub(crate) fn value(&self, argument: usize) -> Option<u32> {
        self.arguments.get(argument)?.1.and_then(constant::narrow)
    }
}

/// The offset after the brace that opens the function's body, if the text before it has no errors.
pub(crate) fn start_of_body(text: &str) -> Option<TextSize> {
    let mut tree = FlatTree::default();
    let is_right = tree.parse_heading(text);
    let body = tree.root().child(SyntaxKind::BLOCK).filter(|_| is_right)?;
    Some(body.text_range().start() + TextSize::of('{'))
}

/// Places parameters one after the other.
#[derive(Default)]
pub(crate) struct Layout {
    /// Bytes so far.
    end: u32,
}

impl Layout {
    /// The next parameter, with this name.
    pub(crate) fn add(&mut self, parameter: &Parameter<'_>, name: &str) -> Param {
        let size = u32::try_from(parameter.bytes).unwrap_or(u32::MAX);
        let Shape { ty, align, .. } = parameter.shape;
        let offset = self.end.checked_next_multiple_of(align).unwrap_or(u32::MAX);
        self.end = offset.saturating_add(size);
        Param {
            name: name.to_owned(),
            ty,
            size,
            is_array: parameter.shape.is_array(),
            align,
            offset,
            reg: None,
            pointer: parameter.head.pointer,
        }
    }
}
