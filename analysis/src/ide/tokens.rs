//! Semantic tokens: what each word means, from the tree and the names resolved in it.

use ptx_backend::input::Symbol;
use ptx_isa::{ScalarType, SpecialReg};
use ptx_syntax::ast::literal::WARP_SIZE;
use ptx_syntax::{NodeOrToken, SyntaxKind, SyntaxToken};
use text_size::TextRange;

use crate::db::{Database, Db, SourceFile};
use crate::ide::{SemanticToken, TokenKind, Usage};
use crate::items::{Item, parse};
use crate::locate::items_in;
use crate::lower::lower;
use crate::scope::Entity;
use crate::source_map::SourceMap;

/// The tokens of the file, or of the items that a range touches.
pub fn semantic_tokens(db: &Database, file: SourceFile, range: Option<TextRange>) -> Vec<SemanticToken> {
    let mut tokens = Vec::new();
    for item in items_in(db, file, range) {
        item_tokens(db, item, &mut tokens);
    }
    if let Some(range) = range {
        tokens.retain(|token| range.intersect(token.range).is_some());
    }
    tokens
}

fn item_tokens(db: &dyn Db, item: Item<'_>, out: &mut Vec<SemanticToken>) {
    let (map, text, offset) = (&lower(db, item).map, item.text(db), item.offset(db));
    // Both lists are in text order: one pass over each.
    let mut next = 0;
    let root = parse(db, item).syntax();
    for token in root.descendants_with_tokens().filter_map(NodeOrToken::into_token) {
        if token.kind() == SyntaxKind::WHITESPACE {
            continue;
        }
        let range = token.text_range();
        while map.occurrences.get(next).is_some_and(|o| o.range.start() < range.start()) {
            next += 1;
        }
        let occurrence = map.occurrences.get(next).filter(|o| o.range == range);
        let kind = match occurrence {
            Some(occurrence) => Some(entity_kind(map, occurrence.entity)),
            None => token_kind(&token, &text[range]),
        };
        if let Some(kind) = kind {
            let declaration = occurrence.is_some_and(|o| o.access == Usage::Declaration);
            out.push(SemanticToken { range: range + offset, kind, declaration });
        }
    }
}

fn entity_kind(map: &SourceMap, entity: Entity) -> TokenKind {
    match entity {
        Entity::Register(register) => match map.registers.get(register.0 as usize) {
            Some(name) if name.ty == ScalarType::Pred => TokenKind::Predicate,
            _ => TokenKind::Register,
        },
        Entity::Label(_) | Entity::Targets(_) => TokenKind::Label,
        Entity::Symbol(Symbol::Function(_)) | Entity::Prototype(_) => TokenKind::Function,
        Entity::Symbol(Symbol::Param(_) | Symbol::Return(_)) => TokenKind::Parameter,
        Entity::Symbol(Symbol::Global(_) | Symbol::Local(_)) => TokenKind::Variable,
    }
}

fn token_kind(token: &SyntaxToken, text: &str) -> Option<TokenKind> {
    let parent = || token.parent().map(|node| node.kind());
    Some(match token.kind() {
        SyntaxKind::LINE_COMMENT | SyntaxKind::BLOCK_COMMENT => TokenKind::Comment,
        SyntaxKind::STRING => TokenKind::String,
        SyntaxKind::INT if text == WARP_SIZE => TokenKind::SpecialRegister,
        SyntaxKind::INT | SyntaxKind::FLOAT => TokenKind::Number,
        SyntaxKind::DOT_WORD => match parent() {
            // `.b1` of a register is not the type of that name.
            Some(SyntaxKind::COMPONENT) => TokenKind::SpecialRegister,
            _ if text.get(1..).is_some_and(|name| ScalarType::parse(name).is_some()) => TokenKind::Type,
            Some(SyntaxKind::INSTRUCTION) => TokenKind::Modifier,
            _ => TokenKind::Directive,
        },
        SyntaxKind::IDENT => match parent() {
            Some(SyntaxKind::INSTRUCTION) => TokenKind::Mnemonic,
            // Declared registers that are not mentioned one by one.
            Some(SyntaxKind::NAME) if text.starts_with('%') => TokenKind::Register,
            _ if is_special(text) => TokenKind::SpecialRegister,
            _ => return None,
        },
        _ => return None,
    })
}

fn is_special(text: &str) -> bool {
    text.starts_with('%')
        && (SpecialReg::parse(text).is_some() || SpecialReg::parse(&format!("{text}.x")).is_some())
}
