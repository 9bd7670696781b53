//! Directives of the module header and of debug information.

use super::literal;
use super::{AstNode, Expr, Name, NameRef, ast_enum, ast_node, child, children, token, tokens, words};
use crate::{SyntaxKind, SyntaxNode, SyntaxToken};

ast_node! {
    VersionDirective = VERSION_DIRECTIVE;
    TargetDirective = TARGET_DIRECTIVE;
    AddressSizeDirective = ADDRESS_SIZE_DIRECTIVE;
    FileDirective = FILE_DIRECTIVE;
    LocDirective = LOC_DIRECTIVE;
    LocFunction = LOC_FUNCTION;
    LocInlinedAt = LOC_INLINED_AT;
    Section = SECTION;
    /// `.b8 1, 2`
    SectionData = SECTION_DATA;
    Pragma = PRAGMA;
    Alias = ALIAS;
    /// `@@DWARF …`
    DwarfLine = DWARF_LINE;
}

ast_enum! {
    /// An entry of a section.
    SectionEntry {
        Label,
        SectionData,
    }
}

/// A file, line and column. Missing parts are allowed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Position {
    /// The number of a `.file` directive.
    pub file: u64,
    pub line: u64,
    pub column: u64,
}

fn integers(node: &SyntaxNode) -> impl Iterator<Item = u64> + use<> {
    tokens(node)
        .filter(|token| token.kind() == SyntaxKind::INT)
        .filter_map(|token| literal::integer(token.text()).ok())
        .map(|integer| integer.value)
}

fn position(node: &SyntaxNode) -> Option<Position> {
    let mut numbers = integers(node);
    Some(Position { file: numbers.next()?, line: numbers.next()?, column: numbers.next()? })
}

fn strings(node: &SyntaxNode) -> impl Iterator<Item = SyntaxToken> + use<> {
    tokens(node).filter(|token| token.kind() == SyntaxKind::STRING)
}

impl VersionDirective {
    /// The number as written: `9.0`.
    pub fn number(&self) -> Option<SyntaxToken> {
        tokens(self.syntax()).find(|token| matches!(token.kind(), SyntaxKind::FLOAT | SyntaxKind::INT))
    }

    /// Major and minor version.
    pub fn version(&self) -> Option<(u32, u32)> {
        let token = self.number()?;
        let (major, minor) = token.text().split_once('.').unwrap_or((token.text(), "0"));
        Some((major.parse().ok()?, minor.parse().ok()?))
    }
}

impl TargetDirective {
    /// The architecture and options, in order: `sm_90`, `texmode_independent`, `debug`.
    pub fn names(&self) -> impl Iterator<Item = SyntaxToken> + use<> {
        tokens(self.syntax()).filter(|token| token.kind() == SyntaxKind::IDENT)
    }
}

impl AddressSizeDirective {
    pub fn number(&self) -> Option<SyntaxToken> {
        token(self.syntax(), SyntaxKind::INT)
    }

    pub fn bits(&self) -> Option<u64> {
        integers(self.syntax()).next()
    }
}

impl FileDirective {
    pub fn number(&self) -> Option<u64> {
        integers(self.syntax()).next()
    }

    pub fn path_token(&self) -> Option<SyntaxToken> {
        strings(self.syntax()).next()
    }

    pub fn path(&self) -> Option<String> {
        self.path_token().map(|token| literal::string(token.text()))
    }
}

impl LocDirective {
    pub fn position(&self) -> Option<Position> {
        position(self.syntax())
    }

    pub fn function(&self) -> Option<LocFunction> {
        child(self.syntax())
    }

    pub fn inlined_at(&self) -> Option<LocInlinedAt> {
        child(self.syntax())
    }
}

impl LocFunction {
    /// The label of the function's name in the string section, with an optional offset.
    pub fn name(&self) -> Option<Expr> {
        child(self.syntax())
    }
}

impl LocInlinedAt {
    pub fn position(&self) -> Option<Position> {
        position(self.syntax())
    }
}

impl Section {
    pub fn name(&self) -> Option<Name> {
        child(self.syntax())
    }

    pub fn entries(&self) -> impl Iterator<Item = SectionEntry> + use<> {
        children(self.syntax())
    }
}

impl SectionData {
    /// `.b8`, `.b16`, `.b32`, `.b64`.
    pub fn width(&self) -> Option<SyntaxToken> {
        words(self.syntax()).next()
    }

    pub fn values(&self) -> impl Iterator<Item = Expr> + use<> {
        children(self.syntax())
    }
}

impl Pragma {
    pub fn strings(&self) -> impl Iterator<Item = SyntaxToken> + use<> {
        strings(self.syntax())
    }
}

impl Alias {
    pub fn name(&self) -> Option<Name> {
        child(self.syntax())
    }

    pub fn aliasee(&self) -> Option<NameRef> {
        child(self.syntax())
    }
}
