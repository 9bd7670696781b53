//! Statements, instructions and their operands.

use super::{
    AstNode, Bank, FunctionDirective, Name, NameRef, ParamList, ast_enum, ast_node, child, children, token,
    words,
};
use crate::{SyntaxKind, SyntaxToken};

ast_node! {
    Block = BLOCK;
    EmptyStatement = EMPTY_STATEMENT;
    /// `name:`
    Label = LABEL;
    Instruction = INSTRUCTION;
    CallPrototype = CALL_PROTOTYPE;
    BranchTargets = BRANCH_TARGETS;
    CallTargets = CALL_TARGETS;
    Guard = GUARD;
    ArgumentList = ARGUMENT_LIST;
    /// `[…]`
    Address = ADDRESS;
    /// `{…}`
    Vector = VECTOR;
    /// `p|q`, `{a, b}|p`
    Pair = PAIR;
    /// `_`
    Sink = SINK;
}

ast_enum! {
    Statement {
        Block,
        EmptyStatement,
        Label,
        Instruction,
        Variable,
        CallPrototype,
        BranchTargets,
        CallTargets,
        LocDirective,
        FileDirective,
        Pragma,
        Section,
        /// A function declared in a block.
        Function,
        DwarfLine,
        Error,
    }
}

ast_enum! {
    Operand {
        NameRef,
        Literal,
        Address,
        Vector,
        Pair,
        Sink,
        Component,
        PrefixExpr,
        BinaryExpr,
        ParenExpr,
        CastExpr,
        ConditionalExpr,
        CallExpr,
        MaskExpr,
        IndexExpr,
        ArgumentList,
    }
}

impl Block {
    pub fn statements(&self) -> impl Iterator<Item = Statement> + use<> {
        children(self.syntax())
    }

    pub fn l_brace(&self) -> Option<SyntaxToken> {
        token(self.syntax(), SyntaxKind::L_BRACE)
    }

    pub fn r_brace(&self) -> Option<SyntaxToken> {
        token(self.syntax(), SyntaxKind::R_BRACE)
    }
}

impl Label {
    pub fn name(&self) -> Option<Name> {
        child(self.syntax())
    }
}

impl Guard {
    pub fn is_negated(&self) -> bool {
        token(self.syntax(), SyntaxKind::BANG).is_some()
    }

    pub fn predicate(&self) -> Option<NameRef> {
        child(self.syntax())
    }
}

impl Instruction {
    pub fn guard(&self) -> Option<Guard> {
        child(self.syntax())
    }

    /// The name up to the first dot: `ld`.
    pub fn mnemonic(&self) -> Option<SyntaxToken> {
        token(self.syntax(), SyntaxKind::IDENT)
    }

    /// The suffixes after the mnemonic, each with its dot: `.global`, `.shared::cta`, `.f32`.
    pub fn suffixes(&self) -> impl Iterator<Item = SyntaxToken> + use<> {
        words(self.syntax())
    }

    /// `[2]` of `ld.const[2].f32`.
    pub fn bank(&self) -> Option<Bank> {
        child(self.syntax())
    }

    pub fn operands(&self) -> impl Iterator<Item = Operand> + use<> {
        children(self.syntax())
    }

    pub fn semicolon(&self) -> Option<SyntaxToken> {
        token(self.syntax(), SyntaxKind::SEMICOLON)
    }

    /// The parts of a `call`.
    pub fn call(&self) -> Option<Call> {
        if self.mnemonic()?.text() != "call" {
            return None;
        }
        let mut call = Call { results: None, callee: None, arguments: None, targets: None };
        for operand in self.operands() {
            match operand {
                Operand::ArgumentList(list) if call.callee.is_none() => call.results = Some(list),
                Operand::ArgumentList(list) => call.arguments = Some(list),
                _ if call.callee.is_none() => call.callee = Some(operand),
                Operand::NameRef(name) => call.targets = Some(name),
                _ => {}
            }
        }
        Some(call)
    }
}

/// `call (results), callee, (arguments), targets;`
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Call {
    pub results: Option<ArgumentList>,
    /// A function, or a register in an indirect call.
    pub callee: Option<Operand>,
    pub arguments: Option<ArgumentList>,
    /// The prototype, target list or function table of an indirect call.
    pub targets: Option<NameRef>,
}

impl ArgumentList {
    pub fn arguments(&self) -> impl Iterator<Item = Operand> + use<> {
        children(self.syntax())
    }
}

impl Address {
    /// The address and the parts after it: coordinates, a sampler, an offset vector.
    pub fn parts(&self) -> impl Iterator<Item = Operand> + use<> {
        children(self.syntax())
    }
}

impl Address {
    /// `.unified` after the bracket.
    pub fn suffix(&self) -> Option<SyntaxToken> {
        words(self.syntax()).next()
    }
}

impl Vector {
    pub fn elements(&self) -> impl Iterator<Item = Operand> + use<> {
        children(self.syntax())
    }
}

impl Pair {
    pub fn first(&self) -> Option<Operand> {
        child(self.syntax())
    }

    pub fn second(&self) -> Option<Operand> {
        children(self.syntax()).nth(1)
    }
}

impl CallPrototype {
    /// The name by which calls refer to the prototype.
    pub fn name(&self) -> Option<Name> {
        child(self.syntax())
    }

    /// The list before the placeholder.
    pub fn return_params(&self) -> Option<ParamList> {
        self.param_list(true)
    }

    /// The list after the placeholder.
    pub fn params(&self) -> Option<ParamList> {
        self.param_list(false)
    }

    fn param_list(&self, before_placeholder: bool) -> Option<ParamList> {
        let mut seen = false;
        for element in self.syntax().children_with_tokens() {
            match element {
                rowan::NodeOrToken::Token(token) => {
                    seen |= matches!(token.kind(), SyntaxKind::UNDERSCORE | SyntaxKind::IDENT);
                }
                rowan::NodeOrToken::Node(node) => {
                    if node.kind() == SyntaxKind::PARAM_LIST && seen != before_placeholder {
                        return ParamList::cast(node);
                    }
                }
            }
        }
        None
    }

    /// `.noreturn`, `.abi_preserve 4`.
    pub fn directives(&self) -> impl Iterator<Item = FunctionDirective> + use<> {
        children(self.syntax())
    }
}

impl BranchTargets {
    pub fn name(&self) -> Option<Name> {
        child(self.syntax())
    }

    pub fn targets(&self) -> impl Iterator<Item = NameRef> + use<> {
        children(self.syntax())
    }
}

impl CallTargets {
    pub fn name(&self) -> Option<Name> {
        child(self.syntax())
    }

    pub fn targets(&self) -> impl Iterator<Item = NameRef> + use<> {
        children(self.syntax())
    }
}
