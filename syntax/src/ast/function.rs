//! Functions.

use super::{AstNode, Expr};
use super::{Attribute, AttributeList, Block, Name, Param, Pragma, ast_node, child, children, words};
use crate::{SyntaxKind, SyntaxToken};

ast_node! {
    /// `.visible .entry name (params) directives { … }`, with or without a body.
    Function = FUNCTION;
    ParamList = PARAM_LIST;
    /// `.maxntid 32, 1, 1` and the like.
    FunctionDirective = FUNCTION_DIRECTIVE;
}

/// The visibility of a symbol.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Linkage {
    Extern,
    Visible,
    Weak,
    Common,
}

impl Linkage {
    pub fn from_word(word: &str) -> Option<Linkage> {
        match word {
            ".extern" => Some(Linkage::Extern),
            ".visible" => Some(Linkage::Visible),
            ".weak" => Some(Linkage::Weak),
            ".common" => Some(Linkage::Common),
            _ => None,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Linkage::Extern => ".extern",
            Linkage::Visible => ".visible",
            Linkage::Weak => ".weak",
            Linkage::Common => ".common",
        }
    }
}

/// The linkage among the words of a declaration, with its token.
pub(super) fn linkage(words: impl Iterator<Item = SyntaxToken>) -> Option<(Linkage, SyntaxToken)> {
    let mut words = words;
    words.find_map(|token| Some((Linkage::from_word(token.text())?, token)))
}

impl Function {
    pub fn linkage(&self) -> Option<(Linkage, SyntaxToken)> {
        linkage(words(self.syntax()))
    }

    /// `.entry` or `.func`.
    pub fn kind_token(&self) -> Option<SyntaxToken> {
        words(self.syntax()).find(|token| matches!(token.text(), ".entry" | ".func"))
    }

    pub fn is_entry(&self) -> bool {
        self.kind_token().is_some_and(|token| token.text() == ".entry")
    }

    pub fn name(&self) -> Option<Name> {
        child(self.syntax())
    }

    /// The list before the name.
    pub fn return_params(&self) -> Option<ParamList> {
        self.param_list(true)
    }

    /// The list after the name.
    pub fn params(&self) -> Option<ParamList> {
        self.param_list(false)
    }

    fn param_list(&self, before_name: bool) -> Option<ParamList> {
        let mut seen_name = false;
        for node in self.syntax().children() {
            seen_name |= node.kind() == SyntaxKind::NAME;
            if node.kind() == SyntaxKind::PARAM_LIST && seen_name != before_name {
                return ParamList::cast(node);
            }
        }
        None
    }

    /// The performance and ABI directives of the header.
    pub fn directives(&self) -> impl Iterator<Item = FunctionDirective> + use<> {
        children(self.syntax())
    }

    pub fn attributes(&self) -> impl Iterator<Item = Attribute> + use<> {
        children::<AttributeList>(self.syntax()).flat_map(|list| list.attributes())
    }

    pub fn pragmas(&self) -> impl Iterator<Item = Pragma> + use<> {
        children(self.syntax())
    }

    /// `None` for a declaration.
    pub fn body(&self) -> Option<Block> {
        child(self.syntax())
    }
}

impl ParamList {
    pub fn params(&self) -> impl Iterator<Item = Param> + use<> {
        children(self.syntax())
    }
}

impl FunctionDirective {
    /// The directive with its dot.
    pub fn word(&self) -> Option<SyntaxToken> {
        words(self.syntax()).next()
    }

    pub fn arguments(&self) -> impl Iterator<Item = Expr> + use<> {
        children(self.syntax())
    }
}
