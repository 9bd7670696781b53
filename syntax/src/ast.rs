//! Typed views of the syntax tree.
//!
//! A view is a node of a certain kind, without further data. Accessors look at the tree, and each returns an option
//! because the text may be wrong.

mod declaration;
mod directive;
mod expression;
mod function;
mod instruction;
pub mod literal;
#[cfg(test)]
mod tests;

pub(crate) use declaration::is_type_word;
pub use declaration::{
    Align, ArrayDimension, Attribute, AttributeList, Bank, Declarator, FieldInitializer, Initializer,
    InitializerList, InitializerValue, Param, Pointer, RegisterRange, Variable,
};
pub use directive::{
    AddressSizeDirective, Alias, DwarfLine, FileDirective, LocDirective, LocFunction, LocInlinedAt, Position,
    Pragma, Section, SectionData, SectionEntry, TargetDirective, VersionDirective,
};
pub use expression::{
    BinaryExpr, CallExpr, CastExpr, Component, ConditionalExpr, Expr, IndexExpr, Literal, MaskExpr, NameRef,
    ParenExpr, PrefixExpr,
};
pub use function::{Function, FunctionDirective, Linkage, ParamList};
pub use instruction::{
    Address, ArgumentList, Block, BranchTargets, Call, CallPrototype, CallTargets, EmptyStatement, Guard,
    Instruction, Label, Operand, Pair, Sink, Statement, Vector,
};

use text_size::TextRange;

use crate::{SyntaxKind, SyntaxNode, SyntaxToken};

/// A view of a node.
pub trait AstNode: Sized {
    fn can_cast(kind: SyntaxKind) -> bool;
    fn cast(node: SyntaxNode) -> Option<Self>;
    fn syntax(&self) -> &SyntaxNode;

    /// The range of the node without preceding blanks.
    fn range(&self) -> TextRange {
        significant_range(self.syntax())
    }
}

/// The range from the first token of `node` that is not trivia to the last.
pub fn significant_range(node: &SyntaxNode) -> TextRange {
    let range = node.text_range();
    let start = node
        .descendants_with_tokens()
        .filter_map(|element| element.into_token())
        .find(|token| !token.kind().is_trivia())
        .map_or(range.start(), |token| token.text_range().start());
    let mut last = node.last_token();
    while let Some(token) = last.as_ref().filter(|token| token.kind().is_trivia()) {
        last = token.prev_token();
    }
    let end = last.map_or(range.end(), |token| token.text_range().end());
    TextRange::new(start, end.max(start))
}

/// Declares views of node kinds, and enums of views.
macro_rules! ast_node {
    ($($(#[$meta:meta])* $name:ident = $kind:ident;)*) => {$(
        $(#[$meta])*
        #[derive(Clone, PartialEq, Eq, Hash, Debug)]
        pub struct $name(crate::SyntaxNode);

        impl crate::ast::AstNode for $name {
            fn can_cast(kind: crate::SyntaxKind) -> bool {
                kind == crate::SyntaxKind::$kind
            }

            fn cast(node: crate::SyntaxNode) -> Option<$name> {
                (node.kind() == crate::SyntaxKind::$kind).then_some($name(node))
            }

            fn syntax(&self) -> &crate::SyntaxNode {
                &self.0
            }
        }
    )*};
}

macro_rules! ast_enum {
    ($(#[$meta:meta])* $name:ident { $($(#[$variant_meta:meta])* $variant:ident,)* }) => {
        $(#[$meta])*
        #[derive(Clone, PartialEq, Eq, Hash, Debug)]
        pub enum $name { $($(#[$variant_meta])* $variant(crate::ast::$variant),)* }

        impl crate::ast::AstNode for $name {
            fn can_cast(kind: crate::SyntaxKind) -> bool {
                $(<crate::ast::$variant as crate::ast::AstNode>::can_cast(kind))||*
            }

            fn cast(node: crate::SyntaxNode) -> Option<$name> {
                $(if <crate::ast::$variant as crate::ast::AstNode>::can_cast(node.kind()) {
                    return crate::ast::AstNode::cast(node).map($name::$variant);
                })*
                None
            }

            fn syntax(&self) -> &crate::SyntaxNode {
                match self { $($name::$variant(it) => crate::ast::AstNode::syntax(it),)* }
            }
        }
    };
}

pub(crate) use {ast_enum, ast_node};

ast_node! {
    SourceFile = SOURCE_FILE;
    Name = NAME;
    /// Tokens that the grammar does not allow at their place.
    Error = ERROR;
}

ast_enum! {
    /// A top-level item.
    Item {
        VersionDirective,
        TargetDirective,
        AddressSizeDirective,
        Function,
        Variable,
        FileDirective,
        LocDirective,
        Section,
        Pragma,
        Alias,
        DwarfLine,
        Error,
    }
}

impl SourceFile {
    pub fn items(&self) -> impl Iterator<Item = Item> + use<> {
        self.0.children().filter_map(Item::cast)
    }
}

impl Name {
    pub fn token(&self) -> Option<SyntaxToken> {
        first_significant(&self.0)
    }

    /// The name as written. For a section name, all of its parts.
    pub fn text(&self) -> String {
        tokens(&self.0)
            .filter(|token| !token.kind().is_trivia())
            .map(|token| token.text().to_owned())
            .collect()
    }
}

// How views read nodes.

pub(crate) fn child<N: AstNode>(node: &SyntaxNode) -> Option<N> {
    node.children().find_map(N::cast)
}

pub(crate) fn children<N: AstNode>(node: &SyntaxNode) -> impl Iterator<Item = N> + use<N> {
    node.children().filter_map(N::cast)
}

pub(crate) fn tokens(node: &SyntaxNode) -> impl Iterator<Item = SyntaxToken> + use<> {
    node.children_with_tokens().filter_map(|element| element.into_token())
}

pub(crate) fn token(node: &SyntaxNode, kind: SyntaxKind) -> Option<SyntaxToken> {
    tokens(node).find(|token| token.kind() == kind)
}

pub(crate) fn first_significant(node: &SyntaxNode) -> Option<SyntaxToken> {
    tokens(node).find(|token| !token.kind().is_trivia())
}

/// The suffixes and directives that are direct tokens of `node`.
pub(crate) fn words(node: &SyntaxNode) -> impl Iterator<Item = SyntaxToken> + use<> {
    tokens(node).filter(|token| token.kind() == SyntaxKind::DOT_WORD)
}
