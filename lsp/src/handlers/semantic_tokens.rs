//! `textDocument/semanticTokens`.

use crate::owner::Snapshot;
use ptx_analysis::ide::{self, TokenKind};
use tower_lsp::lsp_types::{
    Range, SemanticToken, SemanticTokenModifier, SemanticTokenType, SemanticTokens, SemanticTokensLegend,
};

/// Token types in the order of [`TokenKind::ALL`]; one modifier, "declaration".
pub fn legend() -> SemanticTokensLegend {
    let token_types = TokenKind::ALL
        .iter()
        .map(|kind| match kind {
            TokenKind::Comment => SemanticTokenType::COMMENT,
            TokenKind::Directive => SemanticTokenType::KEYWORD,
            TokenKind::Mnemonic => SemanticTokenType::FUNCTION,
            TokenKind::Modifier => SemanticTokenType::MODIFIER,
            TokenKind::Type => SemanticTokenType::TYPE,
            TokenKind::Register | TokenKind::Variable => SemanticTokenType::VARIABLE,
            TokenKind::Predicate => SemanticTokenType::new("predicate"),
            TokenKind::SpecialRegister => SemanticTokenType::ENUM_MEMBER,
            TokenKind::Parameter => SemanticTokenType::PARAMETER,
            TokenKind::Function => SemanticTokenType::METHOD,
            TokenKind::Label => SemanticTokenType::new("label"),
            TokenKind::Number => SemanticTokenType::NUMBER,
            TokenKind::String => SemanticTokenType::STRING,
        })
        .collect();
    SemanticTokensLegend { token_types, token_modifiers: vec![SemanticTokenModifier::DECLARATION] }
}

pub fn handle(s: &Snapshot, range: Option<Range>) -> Option<SemanticTokens> {
    let lines = s.lines();
    let tokens = ide::semantic_tokens(&s.db, s.file, range.map(|r| lines.text_range(r)));
    let mut data = Vec::with_capacity(tokens.len());
    let (mut line, mut column) = (0, 0);
    for token in tokens {
        let range = lines.range(token.range);
        // The protocol's tokens lie on one line; the rest of a block comment is left to the grammar.
        if range.start.line != range.end.line {
            continue;
        }
        let delta_line = range.start.line - line;
        let delta_start =
            if delta_line == 0 { range.start.character - column } else { range.start.character };
        (line, column) = (range.start.line, range.start.character);
        data.push(SemanticToken {
            delta_line,
            delta_start,
            length: range.end.character - range.start.character,
            token_type: TokenKind::ALL.iter().position(|&k| k == token.kind)? as u32,
            token_modifiers_bitset: u32::from(token.declaration),
        });
    }
    Some(SemanticTokens { result_id: None, data })
}
