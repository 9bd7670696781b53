//! The source locations of a compiled text, as stated by `.file` and `.loc` directives.

use ptx_syntax::ast::{AstNode, FileDirective, LocDirective};
use ptx_syntax::{ItemKind, SyntaxKind, SyntaxNode};
use text_size::{TextRange, TextSize};

use crate::db::{Database, Db, SourceFile};
use crate::items::{items, parse};
use crate::locate::spot;

/// A position in a file that the text names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SourcePlace {
    /// The directive or the instruction to which it belongs.
    pub origin: TextRange,
    pub path: String,
    /// Starting at 1; zero if unknown.
    pub line: u32,
    pub column: u32,
}

/// The names of files in `.file` directives, without their quotes.
pub fn file_links(db: &Database, file: SourceFile) -> Vec<(TextRange, String)> {
    let link = |(directive, offset): (FileDirective, TextSize)| {
        let token = directive.path_token()?;
        let range = token.text_range() + offset;
        let inner =
            TextRange::new(range.start() + TextSize::new(1), range.end().checked_sub(TextSize::new(1))?);
        Some((inner, directive.path()?))
    };
    file_directives(db, file).into_iter().filter_map(link).collect()
}

fn file_directives(db: &dyn Db, file: SourceFile) -> Vec<(FileDirective, TextSize)> {
    let of_module = items(db, file).iter().filter(|item| item.kind(db) == ItemKind::File);
    let of_module = of_module.filter_map(|&item| {
        let root = parse(db, item).syntax();
        Some((FileDirective::cast(root)?, item.offset(db)))
    });
    of_module.collect()
}

/// The source location of the instruction at an offset, or of the `.loc` there.
pub fn source_place(db: &Database, file: SourceFile, offset: TextSize) -> Option<SourcePlace> {
    let spot = spot(db, file, offset)?;
    let root = parse(db, spot.item).syntax();
    let statement = statement_at(&root, spot.offset)?;
    let location = match statement.kind() {
        SyntaxKind::LOC_DIRECTIVE => LocDirective::cast(statement.clone()),
        // The last `.loc` before it in the text applies.
        SyntaxKind::INSTRUCTION => {
            let before = |node: &SyntaxNode| node.text_range().end() <= statement.text_range().start();
            root.descendants().filter_map(LocDirective::cast).filter(|loc| before(loc.syntax())).last()
        }
        _ => None,
    }?;
    let position = location.position()?;
    let path = file_directives(db, file).into_iter().find_map(|(directive, _)| {
        (directive.number() == Some(position.file)).then(|| directive.path()).flatten()
    })?;
    let origin = statement.text_range() + spot.item.offset(db);
    Some(SourcePlace { origin, path, line: position.line as u32, column: position.column as u32 })
}

fn statement_at(root: &SyntaxNode, offset: TextSize) -> Option<SyntaxNode> {
    let is_statement =
        |node: &SyntaxNode| matches!(node.kind(), SyntaxKind::INSTRUCTION | SyntaxKind::LOC_DIRECTIVE);
    let mut tokens = root.token_at_offset(offset);
    tokens.find_map(|token| token.parent_ancestors().find(is_statement))
}
