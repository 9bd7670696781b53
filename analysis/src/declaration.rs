//! Reads declarations of variables, registers and parameters from their nodes.
//!
//! The same code reads declarations at module scope, in bodies and in parameter lists. Errors of a declaration by
//! itself (an unknown type, two state spaces) are reported here; the callers report errors that depend on other
//! declarations.

use ptx_backend::input::{Linkage, Pointer, UnifiedId};
use ptx_isa::{ScalarType, Space};
use ptx_syntax::flat::Node;
use ptx_syntax::{NodeOrToken, SyntaxKind};
use smallvec::SmallVec;
use text_size::TextRange;

use crate::constant::{self, Value};
use crate::declare_lint;
use crate::diagnostic::{Diagnostic, Findings};

declare_lint! {
    /// A declaration is incomplete, has a duplicate part, or combines parts that exclude each other.
    pub BAD_DECLARATION = "E0101" "bad-declaration", Error, since "0.1.0"
}

declare_lint! {
    /// Two directives of a function cannot be combined.
    pub CONFLICTING_DIRECTIVES = "E0108" "conflicting-directives", Error, since "0.1.0"
}

declare_lint! {
    /// A size, alignment or dimension is not a valid constant.
    pub BAD_SIZE = "E0102" "bad-size", Error, since "0.1.0"
}

declare_lint! {
    /// A constant expression is invalid or has no value.
    pub BAD_CONSTANT = "E0103" "bad-constant", Error, since "0.1.0"
}

/// The maximum size of a variable: the address space of the largest device is much smaller.
const MAX_BYTES: u64 = 1 << 40;
/// The maximum number of registers in one declaration, so that a typing mistake takes no memory.
const MAX_RANGE: u32 = 1 << 31;

/// The part of a declaration before the names.
#[derive(Clone, PartialEq, Debug)]
pub struct Head {
    pub linkage: Linkage,
    pub space: Space,
    pub ty: ScalarType,
    /// 1 for a scalar, 2 or 4 for `.v2` and `.v4`.
    pub lanes: u8,
    /// Bytes, as written.
    pub align: Option<u32>,
    pub managed: bool,
    pub unified: Option<UnifiedId>,
    /// The contents of `.ptr`.
    pub pointer: Option<Pointer>,
    /// The ranges of words that only some declarations may have.
    pub words: Words,
}

/// The ranges of words that the rules of [`crate::check::declarations`] are about.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Words {
    pub linkage: Option<TextRange>,
    pub ty: Option<TextRange>,
    pub lanes: Option<TextRange>,
    pub align: Option<TextRange>,
    /// `.attribute(.managed)`
    pub managed: Option<TextRange>,
    /// `.attribute(.unified(1, 2))`
    pub unified: Option<TextRange>,
    /// `.ptr` and what belongs to it.
    pub pointer: Option<TextRange>,
    /// `[2]` after `.const`.
    pub bank: Option<TextRange>,
    /// `.tex`
    pub texture: Option<TextRange>,
}

impl Head {
    /// The size of one element in bytes, with all lanes.
    pub fn element_bytes(&self) -> u64 {
        u64::from(self.ty.bytes()) * u64::from(self.lanes)
    }

    /// The alignment in effect.
    pub fn alignment(&self) -> u32 {
        let natural = (self.element_bytes() as u32).next_power_of_two();
        self.align.unwrap_or(natural).max(1)
    }
}

/// One declared name.
#[derive(Clone, Debug)]
pub struct Declarator<'t> {
    /// `None` if the name is missing, which the parser has reported.
    pub name: Option<TextRange>,
    /// `%r<10>`: 10.
    pub count: Option<u32>,
    /// Outermost first; `None` for `[]`.
    pub dimensions: SmallVec<[Option<u64>; 2]>,
    pub initializer: Option<Node<'t>>,
}

/// Most declarations declare one name.
pub type Declarators<'t> = SmallVec<[Declarator<'t>; 1]>;

impl Declarator<'_> {
    /// A scalar.
    pub(crate) fn new(name: Option<TextRange>) -> Self {
        Self { name, count: None, dimensions: SmallVec::new(), initializer: None }
    }

    /// The total number of elements; `None` if the outermost dimension is open.
    pub fn elements(&self) -> Option<u64> {
        self.dimensions
            .iter()
            .try_fold(1u64, |product, dimension| Some(product.saturating_mul((*dimension)?)))
    }
}

/// The properties on which two declarations of one name must agree, and an argument and its parameter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shape {
    pub space: Space,
    pub ty: ScalarType,
    pub lanes: u8,
    /// Outermost first; an open or zero size is `None`.
    pub dimensions: Box<[Option<u64>]>,
    pub align: u32,
}

impl Shape {
    pub fn new(head: &Head, declarator: &Declarator<'_>) -> Self {
        Self {
            space: head.space,
            ty: head.ty,
            lanes: head.lanes,
            dimensions: declarator.dimensions.iter().map(|d| d.filter(|&count| count > 0)).collect(),
            align: head.alignment(),
        }
    }

    pub fn is_array(&self) -> bool {
        !self.dimensions.is_empty()
    }

    pub fn is_open(&self) -> bool {
        matches!(self.dimensions.first(), Some(None))
    }

    /// The size in bytes; an open dimension counts as one.
    pub fn bytes(&self) -> u64 {
        let elements = self.dimensions.iter().fold(1u64, |n, d| n.saturating_mul(d.unwrap_or(1)));
        elements.saturating_mul(u64::from(self.ty.bytes()) * u64::from(self.lanes))
    }

    /// Whether the types are the same; an array of open size agrees with one of any size.
    pub fn is_same_type(&self, other: &Self) -> bool {
        let open = self.is_open() || other.is_open();
        let skip = usize::from(open);
        (self.ty, self.lanes, self.dimensions.len()) == (other.ty, other.lanes, other.dimensions.len())
            && self.dimensions.get(skip..) == other.dimensions.get(skip..)
    }
}

impl std::fmt::Display for Shape {
    /// The text of the declaration: `.param .align 8 .b8 [16]`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, ".{}", self.space.text())?;
        if self.align != (self.ty.bytes() * u32::from(self.lanes)).next_power_of_two() {
            write!(f, " .align {}", self.align)?;
        }
        if self.lanes > 1 {
            write!(f, " .v{}", self.lanes)?;
        }
        write!(f, " .{}", self.ty.text())?;
        for dimension in &self.dimensions {
            match dimension {
                Some(count) => write!(f, "[{count}]")?,
                None => write!(f, "[]")?,
            }
        }
        Ok(())
    }
}

/// A declaration with everything it declares.
#[derive(Clone, Debug)]
pub struct Declaration<'t> {
    pub head: Head,
    pub declarators: Declarators<'t>,
}

/// The meaning of a word of a declaration.
#[derive(Clone, Copy)]
enum Word {
    Linkage(Linkage),
    Space(Space),
    Lanes(u8),
    Type(ScalarType),
    Unknown,
}

impl Word {
    fn parse(word: &str) -> Self {
        match word.as_bytes() {
            b".param" => Self::Space(Space::Param),
            b".reg" => Self::Space(Space::Reg),
            b".shared" => Self::Space(Space::Shared),
            b".global" | b".tex" => Self::Space(Space::Global),
            b".local" => Self::Space(Space::Local),
            b".const" => Self::Space(Space::Const),
            b".v2" => Self::Lanes(2),
            b".v4" => Self::Lanes(4),
            _ => match linkage(word) {
                Some(linkage) => Self::Linkage(linkage),
                None => word.get(1..).and_then(ScalarType::parse).map_or(Self::Unknown, Self::Type),
            },
        }
    }

    /// The rank never decreases from one word to the next.
    const fn rank(self) -> u8 {
        match self {
            Self::Linkage(_) => 1,
            Self::Space(_) => 2,
            Self::Lanes(_) => 3,
            Self::Type(_) | Self::Unknown => 4,
        }
    }
}

/// Reads the linkage directives.
pub fn linkage(word: &str) -> Option<Linkage> {
    Some(match word.as_bytes() {
        b".visible" => Linkage::Visible,
        b".extern" => Linkage::Extern,
        b".weak" => Linkage::Weak,
        b".common" => Linkage::Common,
        _ => return None,
    })
}

/// Reads the head of a declaration word by word.
pub(crate) struct HeadReader<'t> {
    text: &'t str,
    head: Head,
    space: Option<Space>,
    ty: Option<ScalarType>,
    /// The highest rank of a word so far.
    rank: u8,
}

impl<'t> HeadReader<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        let head = Head {
            linkage: Linkage::Internal,
            space: Space::Generic,
            ty: ScalarType::B8,
            lanes: 1,
            align: None,
            managed: false,
            unified: None,
            pointer: None,
            words: Words::default(),
        };
        Self { text, head, space: None, ty: None, rank: 0 }
    }

    /// Reads the word at `range`. `None` if it is not a word of a declaration, which is reported.
    pub(crate) fn word(&mut self, range: TextRange, out: &mut Findings) -> Option<()> {
        let text = &self.text[range];
        let word = Word::parse(text);
        let rank = word.rank();
        if rank < self.rank || (rank == self.rank && matches!(word, Word::Linkage(_) | Word::Lanes(_))) {
            let message =
                format!("`{text}` is out of order; the order is linkage, state space, vector size, type");
            out.push(Diagnostic::new(&BAD_DECLARATION, range, message));
        }
        self.rank = self.rank.max(rank);
        let words = &mut self.head.words;
        let is_second = match word {
            Word::Linkage(linkage) => {
                (self.head.linkage, words.linkage) = (linkage, Some(range));
                None
            }
            Word::Space(space) => {
                if text == ".tex" {
                    words.texture = Some(range);
                }
                self.space.replace(space).map(|_| "duplicate state space in declaration")
            }
            Word::Lanes(lanes) => {
                (self.head.lanes, words.lanes) = (lanes, Some(range));
                None
            }
            Word::Type(ty) => {
                words.ty = Some(range);
                self.ty.replace(ty).map(|_| "duplicate type in declaration")
            }
            Word::Unknown => {
                let message = format!("`{text}` is not a state space or type");
                let diagnostic = Diagnostic::new(&BAD_DECLARATION, range, message).rule();
                out.push(match ptx_syntax::type_of_c(&text[1..]) {
                    Some(ty) => diagnostic.sure_fix(format!("change to `{ty}`"), range, ty),
                    None => diagnostic,
                });
                return None;
            }
        };
        out.extend(is_second.map(|message| Diagnostic::new(&BAD_DECLARATION, range, message)));
        Some(())
    }

    /// Reads `.align`, with its value if that is a number.
    pub(crate) fn align(&mut self, range: TextRange, value: Option<i64>, out: &mut Findings) {
        self.precedes_vector(range, out);
        self.head.words.align = Some(range);
        self.head.align = value.and_then(|value| alignment(value, range, out));
    }

    /// Reports a word at `range` that must precede the vector size and the type.
    fn precedes_vector(&self, range: TextRange, out: &mut Findings) {
        if self.rank >= Word::Lanes(2).rank() {
            let message = "alignment and attributes must precede the vector size and the type";
            out.push(Diagnostic::new(&BAD_DECLARATION, range, message));
        }
    }

    /// Reads `.ptr`, with the word of its space and the value of its `.align` if that is a number.
    pub(crate) fn pointer(
        &mut self,
        range: TextRange,
        space: Option<&str>,
        align: Option<(TextRange, i64)>,
        out: &mut Findings,
    ) {
        if self.ty.is_none() || self.head.words.pointer.replace(range).is_some() {
            let message = "`.ptr` must appear once, after the type of a parameter";
            out.push(Diagnostic::new(&BAD_DECLARATION, range, message));
        }
        let align = align.and_then(|(range, value)| alignment(value, range, out));
        let space = space.and_then(|word| match word {
            ".const" => Some(Space::Const),
            ".global" => Some(Space::Global),
            ".local" => Some(Space::Local),
            ".shared" => Some(Space::Shared),
            _ => None,
        });
        self.head.pointer = Some(Pointer { space, align: align.unwrap_or(1) });
    }

    /// The head, or the name of its missing part.
    pub(crate) fn finish(self) -> Result<Head, &'static str> {
        let space = self.space.ok_or("state space")?;
        let ty = match self.ty.ok_or("type")? {
            // The old form of a texture declaration: the type is that of its number.
            ScalarType::U32 | ScalarType::U64 if self.head.words.texture.is_some() => ScalarType::TexRef,
            ty => ty,
        };
        let managed = self.head.words.managed.is_some();
        Ok(Head { space, ty, managed, ..self.head })
    }
}

/// Reads a `VARIABLE` or `PARAM` node. `None` if it has no type or no space, which is reported.
pub fn read<'t>(node: Node<'t>, text: &str, out: &mut Findings) -> Option<Declaration<'t>> {
    let mut reader = HeadReader::new(text);
    let mut declarators = Declarators::new();
    // A parameter node contains its name and dimensions directly.
    let mut own = Declarator::new(None);
    for element in node.elements() {
        match element {
            NodeOrToken::Token(token) if token.kind == SyntaxKind::DOT_WORD => {
                reader.word(token.range, out)?
            }
            NodeOrToken::Token(_) => {}
            NodeOrToken::Node(child) => match child.kind() {
                SyntaxKind::ALIGN => reader.align(child.text_range(), integer_in(child, text), out),
                SyntaxKind::ATTRIBUTE_LIST => {
                    reader.precedes_vector(child.text_range(), out);
                    let unified = attributes(child, text, &mut reader.head.words, out);
                    reader.head.unified = unified.or(reader.head.unified);
                }
                SyntaxKind::BANK => reader.head.words.bank = Some(child.text_range()),
                SyntaxKind::POINTER => {
                    let align = child.child(SyntaxKind::ALIGN);
                    let align = align.and_then(|node| Some((node.text_range(), integer_in(node, text)?)));
                    if node.kind() == SyntaxKind::VARIABLE {
                        let message = "`.ptr` applies only to parameters, not to variables";
                        out.push(Diagnostic::new(&BAD_DECLARATION, child.text_range(), message));
                    }
                    let space = child.tokens(SyntaxKind::DOT_WORD).nth(1).map(|word| &text[word]);
                    reader.pointer(child.text_range(), space, align, out);
                }
                SyntaxKind::DECLARATOR => declarators.push(declarator(child, text, out)),
                SyntaxKind::NAME => own.name = Some(child.text_range()),
                SyntaxKind::ARRAY_DIMENSION => own.dimensions.push(dimension(child, text, out)),
                _ => {}
            },
        }
    }
    if node.kind() == SyntaxKind::PARAM && declarators.is_empty() {
        declarators.push(own);
    }
    let ty = reader.ty.zip(reader.head.words.ty);
    match reader.finish() {
        Ok(head) => Some(Declaration { head, declarators }),
        Err(missing) => {
            if ty.is_some_and(|(ty, range)| is_unwritten(ty, range, out)) {
                return None;
            }
            // A declaration without names needs no state space.
            if !declarators.is_empty() {
                let range = declarators.iter().find_map(|d| d.name).unwrap_or(node.text_range());
                let message = format!("declaration has no {missing}");
                out.push(Diagnostic::new(&BAD_DECLARATION, range, message).rule());
            }
            None
        }
    }
}

/// Whether a declaration can use the type; other types are a syntax error in it.
const fn is_written(ty: ScalarType) -> bool {
    use ScalarType as T;
    !ty.is_free() && !matches!(ty, T::Bf16 | T::Bf16x2 | T::U4 | T::S4 | T::U2 | T::S2)
}

/// Reports a type that a declaration cannot use. Returns false if it can.
pub(crate) fn is_unwritten(ty: ScalarType, range: TextRange, out: &mut Findings) -> bool {
    let is_unwritten = !is_written(ty);
    if is_unwritten {
        let message = format!("`.{}` cannot be the type of a variable or register", ty.text());
        out.push(Diagnostic::new(&BAD_DECLARATION, range, message).note(storage_note(ty)));
    }
    is_unwritten
}

/// A note on where values of an instruction type are stored.
pub(crate) fn storage_note(ty: ScalarType) -> String {
    let bits = ty.bits().next_power_of_two().clamp(8, 128);
    format!("declare it as `.b{bits}` and name the type on the instructions that use it")
}

/// `.attribute(.managed, .unified(1, 2))`. Of several `.unified`, the last counts.
pub(crate) fn attributes(
    node: Node<'_>,
    text: &str,
    words: &mut Words,
    out: &mut Findings,
) -> Option<UnifiedId> {
    let mut unified = None;
    for attribute in node.children().filter(|child| child.kind() == SyntaxKind::ATTRIBUTE) {
        let range = attribute.text_range();
        let word =
            text[range].split(|c: char| !(c == '.' || c.is_ascii_alphanumeric())).next().unwrap_or_default();
        let arguments = attribute.children().count();
        match (word, arguments) {
            (".managed", 0) => words.managed = Some(range),
            (".unified", 2) => {
                let mut numbers = attribute.children().map(|number| integer_in(number, text));
                let [first, second] = std::array::from_fn(|_| numbers.next().flatten());
                unified =
                    first.zip(second).map(|(first, second)| [first.cast_unsigned(), second.cast_unsigned()]);
                words.unified = Some(range);
            }
            (".managed" | ".unified", _) => {
                let message = "`.managed` takes no arguments, `.unified` takes two integers";
                out.push(Diagnostic::new(&BAD_DECLARATION, range, message));
            }
            _ => {
                let message = format!("unknown attribute `{word}`, expected `.managed` or `.unified`");
                out.push(Diagnostic::new(&BAD_DECLARATION, range, message));
            }
        }
    }
    unified
}

/// The value of the first number directly in `node`.
pub fn integer_in(node: Node<'_>, text: &str) -> Option<i64> {
    let number = node.tokens(SyntaxKind::INT).next()?;
    constant::literal_value(&text[number])?.as_int()
}

fn alignment(value: i64, range: TextRange, out: &mut Findings) -> Option<u32> {
    match constant::narrow(value) {
        Some(bytes) if bytes.is_power_of_two() => Some(bytes),
        _ => {
            let message = format!("alignment must be a power of two, found {value}");
            out.push(Diagnostic::new(&BAD_SIZE, range, message));
            None
        }
    }
}

/// The number of elements. ptxas accepts sizes that no memory can hold.
fn dimension(node: Node<'_>, text: &str, out: &mut Findings) -> Option<u64> {
    let expression = node.first_child()?;
    let (range, message) = match constant::evaluate(expression, text) {
        Ok(Value::Int { value, .. }) => return Some((value as u64).min(MAX_BYTES)),
        Ok(_) => (expression.text_range(), "expected an integer constant"),
        Err(error) => (error.range, error.message),
    };
    out.push(Diagnostic::new(&BAD_CONSTANT, range, message));
    None
}

fn declarator<'t>(node: Node<'t>, text: &str, out: &mut Findings) -> Declarator<'t> {
    let mut result = Declarator::new(None);
    for child in node.children() {
        match child.kind() {
            SyntaxKind::NAME => result.name = Some(child.text_range()),
            SyntaxKind::REGISTER_RANGE => {
                if let Some(value) = integer_in(child, text) {
                    result.count = constant::narrow(value).filter(|&count| count <= MAX_RANGE);
                    if result.count.is_none() {
                        let message = format!("{value} is not a valid number of registers");
                        out.push(Diagnostic::new(&BAD_SIZE, child.text_range(), message));
                        result.count = Some(0);
                    }
                }
            }
            SyntaxKind::ARRAY_DIMENSION => result.dimensions.push(dimension(child, text, out)),
            SyntaxKind::INITIALIZER => result.initializer = Some(child),
            _ => {}
        }
    }
    result
}
