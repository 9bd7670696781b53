//! Constant expressions. Most operands are expressions too.

use super::literal::{self, Float, Integer, LiteralError};
use super::{AstNode, ast_enum, ast_node, child, children, first_significant, tokens, words};
use crate::{SyntaxKind, SyntaxNode, SyntaxToken};

ast_node! {
    Literal = LITERAL;
    /// A register, variable, function, label or special register.
    NameRef = NAME_REF;
    ParenExpr = PAREN_EXPR;
    PrefixExpr = PREFIX_EXPR;
    BinaryExpr = BINARY_EXPR;
    ConditionalExpr = CONDITIONAL_EXPR;
    /// `(.s64) x`
    CastExpr = CAST_EXPR;
    /// `generic(x)`
    CallExpr = CALL_EXPR;
    /// `0xFF(x)`
    MaskExpr = MASK_EXPR;
    /// `x[3]`
    IndexExpr = INDEX_EXPR;
    /// `%r1.x`
    Component = COMPONENT;
}

ast_enum! {
    Expr {
        Literal,
        NameRef,
        ParenExpr,
        PrefixExpr,
        BinaryExpr,
        ConditionalExpr,
        CastExpr,
        CallExpr,
        MaskExpr,
        IndexExpr,
        Component,
        Sink,
    }
}

fn operator(node: &SyntaxNode) -> Option<SyntaxToken> {
    first_significant(node)
}

impl Literal {
    pub fn token(&self) -> Option<SyntaxToken> {
        first_significant(self.syntax())
    }

    /// The value, if this is an integer.
    pub fn integer(&self) -> Option<Result<Integer, LiteralError>> {
        self.token()
            .filter(|token| token.kind() == SyntaxKind::INT)
            .map(|token| literal::integer(token.text()))
    }

    /// The value, if this is a floating-point number.
    pub fn float(&self) -> Option<Result<Float, LiteralError>> {
        self.token()
            .filter(|token| token.kind() == SyntaxKind::FLOAT)
            .map(|token| literal::float(token.text()))
    }

    /// The text, if this is a string.
    pub fn string(&self) -> Option<String> {
        self.token()
            .filter(|token| token.kind() == SyntaxKind::STRING)
            .map(|token| literal::string(token.text()))
    }
}

impl NameRef {
    pub fn token(&self) -> Option<SyntaxToken> {
        first_significant(self.syntax())
    }

    /// The name as written. For a section name, all of its parts.
    pub fn text(&self) -> String {
        tokens(self.syntax())
            .filter(|token| !token.kind().is_trivia())
            .map(|token| token.text().to_owned())
            .collect()
    }
}

impl ParenExpr {
    pub fn inner(&self) -> Option<Expr> {
        child(self.syntax())
    }
}

impl PrefixExpr {
    /// `-`, `+`, `!` or `~`.
    pub fn operator(&self) -> Option<SyntaxToken> {
        operator(self.syntax())
    }

    pub fn operand(&self) -> Option<Expr> {
        child(self.syntax())
    }
}

impl BinaryExpr {
    pub fn left(&self) -> Option<Expr> {
        child(self.syntax())
    }

    pub fn operator(&self) -> Option<SyntaxToken> {
        operator(self.syntax())
    }

    pub fn right(&self) -> Option<Expr> {
        children(self.syntax()).nth(1)
    }
}

impl ConditionalExpr {
    pub fn condition(&self) -> Option<Expr> {
        child(self.syntax())
    }

    pub fn then_value(&self) -> Option<Expr> {
        children(self.syntax()).nth(1)
    }

    pub fn else_value(&self) -> Option<Expr> {
        children(self.syntax()).nth(2)
    }
}

impl CastExpr {
    /// `.s64` or `.u64`.
    pub fn ty(&self) -> Option<SyntaxToken> {
        words(self.syntax()).next()
    }

    pub fn operand(&self) -> Option<Expr> {
        child(self.syntax())
    }
}

impl CallExpr {
    pub fn function(&self) -> Option<NameRef> {
        child(self.syntax())
    }

    pub fn argument(&self) -> Option<Expr> {
        children(self.syntax()).nth(1)
    }
}

impl MaskExpr {
    pub fn mask(&self) -> Option<Literal> {
        child(self.syntax())
    }

    pub fn argument(&self) -> Option<Expr> {
        children(self.syntax()).nth(1)
    }
}

impl IndexExpr {
    pub fn base(&self) -> Option<NameRef> {
        child(self.syntax())
    }

    pub fn index(&self) -> Option<Expr> {
        children(self.syntax()).nth(1)
    }
}

impl Component {
    pub fn base(&self) -> Option<NameRef> {
        child(self.syntax())
    }

    /// `.x`, `.b0`, …
    pub fn selector(&self) -> Option<SyntaxToken> {
        words(self.syntax()).next()
    }
}
