//! Semantic tokens: the meaning of each word, from the tree and the resolved names.

use std::sync::Arc;

use ptx_backend::input::Symbol;
use ptx_isa::{ScalarType, SpecialReg};
use ptx_syntax::ast::literal::WARP_SIZE;
use ptx_syntax::{SyntaxKind, lex};
use text_size::{TextRange, TextSize};

use crate::db::{Database, Db, SourceFile};
use crate::ide::{SemanticToken, TokenKind, Usage};
use crate::items::Item;
use crate::locate::items_in;
use crate::lower::{Resolved, resolved};
use crate::scope::Entity;
use crate::source_map::SourceMap;
use crate::text::Text;

/// The tokens of the file, or of the items that a range touches.
pub fn semantic_tokens(db: &Database, file: SourceFile, range: Option<TextRange>) -> Vec<SemanticToken> {
    let mut tokens = Vec::new();
    for item in item_tokens(db, file, range) {
        let shift = |token: SemanticToken| SemanticToken { range: token.range + item.start, ..token };
        tokens.extend(item.iter().map(shift));
    }
    if let Some(range) = range {
        tokens.retain(|token| range.intersect(token.range).is_some());
    }
    tokens
}

/// The tokens of each item of the file, or of the items that a range touches.
pub fn item_tokens(db: &Database, file: SourceFile, range: Option<TextRange>) -> Vec<ItemTokens> {
    let tokens = |item: Item<'_>| ItemTokens {
        text: item.contents(db).clone(),
        start: item.offset(db),
        packed: packed_tokens(db, item).clone(),
    };
    items_in(db, file, range).map(tokens).collect()
}

/// The tokens of an item.
#[derive(Clone, Debug)]
pub struct ItemTokens {
    pub text: Text,
    /// Where the item starts in the file.
    pub start: TextSize,
    packed: Packed,
}

impl ItemTokens {
    /// The tokens in text order, relative to the item.
    pub fn iter(&self) -> impl Iterator<Item = SemanticToken> {
        self.packed.iter()
    }

    /// Whether texts and tokens are equal, at any position of the items.
    pub fn is_same(&self, other: &Self) -> bool {
        self.packed == other.packed && self.text == other.text
    }
}

/// Tokens in a compact form of about three bytes each, so that those of all items can be stored: the number of blanks
/// before a token, its length, and its kind, with the lowest bit set for a declaration.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Packed(Arc<[u8]>);

impl Packed {
    fn of(tokens: impl Iterator<Item = SemanticToken>) -> Self {
        let (mut bytes, mut end) = (Vec::new(), TextSize::new(0));
        for token in tokens {
            write_number(&mut bytes, (token.range.start() - end).into());
            write_number(&mut bytes, token.range.len().into());
            bytes.push((token.kind as u8) << 1 | u8::from(token.declaration));
            end = token.range.end();
        }
        Self(bytes.into())
    }

    fn iter(&self) -> impl Iterator<Item = SemanticToken> {
        let (mut bytes, mut end) = (&*self.0, TextSize::new(0));
        std::iter::from_fn(move || {
            let start = end + TextSize::new(read_number(&mut bytes)?);
            let range = TextRange::at(start, read_number(&mut bytes)?.into());
            let (&kind, rest) = bytes.split_first()?;
            (bytes, end) = (rest, range.end());
            let declaration = kind & 1 == 1;
            Some(SemanticToken { range, kind: *TokenKind::ALL.get(usize::from(kind >> 1))?, declaration })
        })
    }
}

/// Writes seven bits per byte, the lowest first; the last byte has no high bit.
fn write_number(bytes: &mut Vec<u8>, mut number: u32) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn read_number(bytes: &mut &[u8]) -> Option<u32> {
    let mut number = 0;
    for shift in (0..u32::BITS).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u32::from(byte & 0x7F) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

#[salsa::tracked]
fn packed_tokens<'db>(db: &'db dyn Db, item: Item<'db>) -> Packed {
    let text = item.text(db);
    resolved(db, item, |resolved| {
        let mut tokens = Vec::new();
        each_token(resolved, text, &mut |token| tokens.push(token));
        Packed::of(tokens.into_iter())
    })
}

/// Calls `found` with the tokens in text order.
fn each_token(resolved: &Resolved<'_>, text: &str, found: &mut dyn FnMut(SemanticToken)) {
    let map = resolved.map;
    let mut end = TextSize::new(0);
    // Both lists are in text order, so one pass over each is enough.
    let mut next = 0;
    for (token, parent) in resolved.tree.tokens() {
        let range = token.range;
        comments(text, TextRange::new(end, range.start()), found);
        end = range.end();
        while map.occurrences.get(next).is_some_and(|o| o.range.start() < range.start()) {
            next += 1;
        }
        let occurrence = map.occurrences.get(next).filter(|o| o.range == range);
        let kind = match occurrence {
            Some(occurrence) => Some(entity_kind(map, occurrence.entity)),
            None => token_kind(token.kind, parent, &text[range]),
        };
        if let Some(kind) = kind {
            let declaration = occurrence.is_some_and(|o| o.access == Usage::Declaration);
            found(SemanticToken { range, kind, declaration });
        }
    }
    comments(text, TextRange::new(end, TextSize::of(text)), found);
}

/// The comments before the next token.
fn comments(text: &str, gap: TextRange, found: &mut dyn FnMut(SemanticToken)) {
    if !text[gap].contains('/') {
        return;
    }
    let mut at = gap.start();
    for token in lex(&text[gap]).into_iter().take_while(|token| token.kind.is_trivia()) {
        let range = TextRange::at(at, token.len.into());
        at = range.end();
        if matches!(token.kind, SyntaxKind::LINE_COMMENT | SyntaxKind::BLOCK_COMMENT) {
            found(SemanticToken { range, kind: TokenKind::Comment, declaration: false });
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

fn token_kind(kind: SyntaxKind, parent: SyntaxKind, text: &str) -> Option<TokenKind> {
    Some(match kind {
        SyntaxKind::STRING => TokenKind::String,
        SyntaxKind::INT if text == WARP_SIZE => TokenKind::SpecialRegister,
        SyntaxKind::INT | SyntaxKind::FLOAT => TokenKind::Number,
        SyntaxKind::DOT_WORD => match parent {
            // `.b1` of a register is not the type of that name.
            SyntaxKind::COMPONENT => TokenKind::SpecialRegister,
            _ if text.get(1..).is_some_and(|name| ScalarType::parse(name).is_some()) => TokenKind::Type,
            SyntaxKind::INSTRUCTION => TokenKind::Modifier,
            _ => TokenKind::Directive,
        },
        SyntaxKind::IDENT => match parent {
            SyntaxKind::INSTRUCTION => TokenKind::Mnemonic,
            // Declared registers that are not mentioned individually.
            SyntaxKind::NAME if text.starts_with('%') => TokenKind::Register,
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
