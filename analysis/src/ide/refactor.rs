//! Refactorings: code actions that change the text and keep its meaning.
//!
//! Each is offered only where the change certainly keeps the meaning. None looks at more than the function.

mod branch;
mod constant;
mod notation;
mod register;

use ptx_backend::input::SrcId;
use ptx_isa::{Expected, Opcode};
use ptx_syntax::{NodeOrToken, StatementParser, SyntaxKind, SyntaxNode};
use text_size::{TextRange, TextSize};

use crate::db::{Database, Db, SourceFile};
use crate::diagnostic::TextEdit;
use crate::ide::{ActionKind, CodeAction};
use crate::items::Item;
use crate::locate::{Spot, spot};
use crate::lower::lower;
use crate::source_map::SourceMap;

/// The refactorings at a selection, which must be inside one statement.
pub(super) fn actions(db: &Database, file: SourceFile, range: TextRange) -> Vec<CodeAction> {
    let Some(here) = spot(db, file, range.start()) else { return Vec::new() };
    if !here.item.range(db).contains_range(range) || !lower(db, here.item).has_body {
        return Vec::new();
    }
    let selected = range - here.item.offset(db);
    let cursor = Cursor { db, file, item: here.item, offset: here.offset };
    let all = match cursor.map().statement_at(here.offset) {
        Some(src) => {
            let Some(statement) = cursor.statement(src) else { return Vec::new() };
            if !statement.range.contains_range(selected) {
                return Vec::new();
            }
            let found = [
                branch::invert(&cursor, src, &statement),
                constant::inline(&cursor, src, &statement),
                constant::extract(&cursor, &statement),
                notation::change(&cursor, &statement),
            ];
            found.into_iter().flatten().collect()
        }
        None => register::actions(&cursor, selected),
    };
    all.into_iter().map(|change| change.action(here, db)).collect()
}

/// A position in a function.
struct Cursor<'db> {
    db: &'db Database,
    file: SourceFile,
    item: Item<'db>,
    /// Relative to the item.
    offset: TextSize,
}

impl<'db> Cursor<'db> {
    fn map(&self) -> &'db SourceMap {
        &lower(self.db, self.item).map
    }

    fn text(&self) -> &'db str {
        self.item.text(self.db)
    }

    fn statement(&self, src: SrcId) -> Option<Statement> {
        let range = self.map().statement(src)?;
        let root = StatementParser::default().parse(&self.text()[range], range.start()).syntax();
        let node = root.descendants().find(|node| node.kind() == SyntaxKind::INSTRUCTION)?;
        Some(Statement { range, node })
    }
}

/// An instruction with its guard, operands and semicolon. Ranges are relative to the item.
struct Statement {
    range: TextRange,
    node: SyntaxNode,
}

impl Statement {
    fn guard(&self) -> Option<SyntaxNode> {
        self.node.children().find(|child| child.kind() == SyntaxKind::GUARD)
    }

    fn operands(&self) -> impl Iterator<Item = SyntaxNode> {
        self.node.children().filter(|child| child.kind() != SyntaxKind::GUARD)
    }

    /// The mnemonic, and the modifiers and types without dots.
    fn name<'t>(&self, text: &'t str) -> Option<(&'t str, Vec<&'t str>)> {
        let tokens = self.node.children_with_tokens().filter_map(NodeOrToken::into_token);
        let mut words = tokens
            .filter(|token| matches!(token.kind(), SyntaxKind::IDENT | SyntaxKind::DOT_WORD))
            .map(|token| text[token.text_range()].trim_start_matches('.'));
        Some((words.next()?, words.collect()))
    }

    fn mnemonic<'t>(&self, text: &'t str) -> &'t str {
        self.name(text).map_or("", |(mnemonic, _)| mnemonic)
    }

    /// The row of the operand in a range.
    fn row(&self, text: &str, operand: TextRange) -> Option<(Opcode, Expected)> {
        let (mnemonic, words) = self.name(text)?;
        let opcode = ptx_isa::resolve(mnemonic, &words).ok()?;
        let index = self.operands().position(|node| node.text_range() == operand)?;
        let row = ptx_isa::signature(&opcode).operands.get(index).cloned()?;
        Some((opcode, row))
    }
}

/// A refactoring, with ranges relative to the item.
struct Change {
    title: String,
    kind: ActionKind,
    edits: Vec<TextEdit>,
}

impl Change {
    fn action(self, here: Spot<'_>, db: &dyn Db) -> CodeAction {
        let offset = here.item.offset(db);
        let edits = self.edits.into_iter();
        CodeAction {
            title: self.title,
            kind: self.kind,
            edits: edits.map(|edit| TextEdit { range: edit.range + offset, text: edit.text }).collect(),
            command: None,
            fixes: None,
            preferred: false,
        }
    }
}
