//! Variables, registers and parameters.
//!
//! The words of a declaration are distinguished by what they are, not by their order: state space, vector, type.

use super::AstNode;
use super::function::linkage;
use super::literal::{self, Integer, LiteralError};
use super::{Expr, Linkage, Name, ast_enum, ast_node, child, children, token, words};
use crate::{SyntaxKind, SyntaxNode, SyntaxToken};

ast_node! {
    /// `.global .align 16 .v4 .f32 x[4] = { … }, y;`
    Variable = VARIABLE;
    /// One parameter of a function or prototype.
    Param = PARAM;
    /// One declared name.
    Declarator = DECLARATOR;
    /// `<10>`
    RegisterRange = REGISTER_RANGE;
    ArrayDimension = ARRAY_DIMENSION;
    Initializer = INITIALIZER;
    InitializerList = INITIALIZER_LIST;
    FieldInitializer = FIELD_INITIALIZER;
    Align = ALIGN;
    /// `.ptr .global .align 8`
    Pointer = POINTER;
    AttributeList = ATTRIBUTE_LIST;
    Attribute = ATTRIBUTE;
    Bank = BANK;
}

ast_enum! {
    /// A value after `=` or in a list.
    InitializerValue {
        InitializerList,
        FieldInitializer,
        Expr,
    }
}

fn is_space(word: &str) -> bool {
    matches!(
        word,
        ".reg"
            | ".sreg"
            | ".const"
            | ".global"
            | ".local"
            | ".param"
            | ".shared"
            | ".tex"
            | ".surf"
            | ".sampler"
    ) || word.starts_with(".shared::")
        || word.starts_with(".param::")
}

fn is_vector(word: &str) -> bool {
    matches!(word, ".v2" | ".v4" | ".v8")
}

fn space_token(node: &SyntaxNode) -> Option<SyntaxToken> {
    words(node).find(|token| is_space(token.text()))
}

fn vector_token(node: &SyntaxNode) -> Option<SyntaxToken> {
    words(node).find(|token| is_vector(token.text()))
}

fn type_token(node: &SyntaxNode) -> Option<SyntaxToken> {
    words(node).find(|token| is_type_word(token.text()))
}

/// Whether a word in a declaration is its type: it is neither linkage, space nor vector.
pub(crate) fn is_type_word(word: &str) -> bool {
    !is_space(word) && !is_vector(word) && Linkage::from_word(word).is_none()
}

impl Variable {
    pub fn linkage(&self) -> Option<(Linkage, SyntaxToken)> {
        linkage(words(self.syntax()))
    }

    /// `.global`, `.reg`, …
    pub fn space(&self) -> Option<SyntaxToken> {
        space_token(self.syntax())
    }

    /// `.v2`, `.v4`, `.v8`.
    pub fn vector(&self) -> Option<SyntaxToken> {
        vector_token(self.syntax())
    }

    /// The type: the first word that is neither linkage, space nor vector, such as `.f32`, `.pred`, `.texref`.
    pub fn ty(&self) -> Option<SyntaxToken> {
        type_token(self.syntax())
    }

    /// All words of the declaration, in order.
    pub fn words(&self) -> impl Iterator<Item = SyntaxToken> + use<> {
        words(self.syntax())
    }

    pub fn align(&self) -> Option<Align> {
        child(self.syntax())
    }

    pub fn bank(&self) -> Option<Bank> {
        child(self.syntax())
    }

    pub fn attributes(&self) -> impl Iterator<Item = Attribute> + use<> {
        children::<AttributeList>(self.syntax()).flat_map(|list| list.attributes())
    }

    pub fn declarators(&self) -> impl Iterator<Item = Declarator> + use<> {
        children(self.syntax())
    }
}

impl Param {
    /// `.param` or `.reg`.
    pub fn space(&self) -> Option<SyntaxToken> {
        space_token(self.syntax())
    }

    pub fn vector(&self) -> Option<SyntaxToken> {
        vector_token(self.syntax())
    }

    pub fn ty(&self) -> Option<SyntaxToken> {
        type_token(self.syntax())
    }

    pub fn words(&self) -> impl Iterator<Item = SyntaxToken> + use<> {
        words(self.syntax())
    }

    /// The alignment of the parameter itself, not of the memory that it points to.
    pub fn align(&self) -> Option<Align> {
        child(self.syntax())
    }

    pub fn pointer(&self) -> Option<Pointer> {
        child(self.syntax())
    }

    pub fn attributes(&self) -> impl Iterator<Item = Attribute> + use<> {
        children::<AttributeList>(self.syntax()).flat_map(|list| list.attributes())
    }

    pub fn declarator(&self) -> Option<Declarator> {
        child(self.syntax())
    }
}

impl Declarator {
    /// The name, which is `_` in a prototype.
    pub fn name(&self) -> Option<Name> {
        child(self.syntax())
    }

    pub fn register_range(&self) -> Option<RegisterRange> {
        child(self.syntax())
    }

    /// The outermost dimension first.
    pub fn dimensions(&self) -> impl Iterator<Item = ArrayDimension> + use<> {
        children(self.syntax())
    }

    pub fn initializer(&self) -> Option<Initializer> {
        child(self.syntax())
    }
}

/// The integer that is a direct token of `node`.
fn integer(node: &SyntaxNode) -> Option<Result<Integer, LiteralError>> {
    token(node, SyntaxKind::INT).map(|token| literal::integer(token.text()))
}

impl RegisterRange {
    /// The number of registers or labels, which are numbered from zero.
    pub fn count(&self) -> Option<Result<Integer, LiteralError>> {
        integer(self.syntax())
    }
}

impl ArrayDimension {
    /// `None` for `[]`.
    pub fn size(&self) -> Option<Expr> {
        child(self.syntax())
    }
}

impl Initializer {
    pub fn value(&self) -> Option<InitializerValue> {
        child(self.syntax())
    }
}

impl InitializerList {
    pub fn values(&self) -> impl Iterator<Item = InitializerValue> + use<> {
        children(self.syntax())
    }
}

impl FieldInitializer {
    pub fn field(&self) -> Option<SyntaxToken> {
        token(self.syntax(), SyntaxKind::IDENT)
    }

    pub fn value(&self) -> Option<InitializerValue> {
        child(self.syntax())
    }
}

impl Align {
    /// In bytes.
    pub fn value(&self) -> Option<Result<Integer, LiteralError>> {
        integer(self.syntax())
    }
}

impl Pointer {
    /// The space that the pointer points to. Without one, it is a generic pointer.
    pub fn space(&self) -> Option<SyntaxToken> {
        words(self.syntax()).nth(1)
    }

    /// The alignment of the memory that the pointer points to.
    pub fn align(&self) -> Option<Align> {
        child(self.syntax())
    }
}

impl AttributeList {
    pub fn attributes(&self) -> impl Iterator<Item = Attribute> + use<> {
        children(self.syntax())
    }
}

impl Attribute {
    /// `.managed`, `.unified`.
    pub fn word(&self) -> Option<SyntaxToken> {
        words(self.syntax()).next()
    }

    pub fn arguments(&self) -> impl Iterator<Item = Expr> + use<> {
        children(self.syntax())
    }
}

impl Bank {
    pub fn number(&self) -> Option<Result<Integer, LiteralError>> {
        integer(self.syntax())
    }
}
