//! `textDocument/completion`.

use crate::owner::Snapshot;
use ptx_analysis::ide::{self, CompletionKind};
use tower_lsp::lsp_types::{
    CompletionItem, CompletionItemKind, CompletionResponse, CompletionTextEdit, Documentation, MarkupContent,
    MarkupKind, Position,
};

pub fn handle(s: &Snapshot, position: Position) -> Option<CompletionResponse> {
    let lines = s.lines();
    let items = ide::completions(&s.db, s.file, lines.offset(position))
        .into_iter()
        .map(|c| CompletionItem {
            kind: Some(kind(c.kind)),
            detail: (!c.detail.is_empty()).then_some(c.detail),
            documentation: (!c.documentation.is_empty()).then_some({
                Documentation::MarkupContent(MarkupContent {
                    kind: MarkupKind::Markdown,
                    value: c.documentation,
                })
            }),
            text_edit: Some(CompletionTextEdit::Edit(lines.edit(&c.edit))),
            label: c.label,
            ..Default::default()
        })
        .collect();
    Some(CompletionResponse::Array(items))
}

fn kind(kind: CompletionKind) -> CompletionItemKind {
    match kind {
        CompletionKind::Mnemonic => CompletionItemKind::FUNCTION,
        CompletionKind::Modifier => CompletionItemKind::PROPERTY,
        CompletionKind::Type => CompletionItemKind::TYPE_PARAMETER,
        CompletionKind::Register | CompletionKind::Variable => CompletionItemKind::VARIABLE,
        CompletionKind::SpecialRegister => CompletionItemKind::CONSTANT,
        CompletionKind::Parameter => CompletionItemKind::FIELD,
        CompletionKind::Function => CompletionItemKind::METHOD,
        CompletionKind::Label => CompletionItemKind::REFERENCE,
        CompletionKind::Directive => CompletionItemKind::KEYWORD,
        CompletionKind::Target => CompletionItemKind::ENUM_MEMBER,
        CompletionKind::Snippet => CompletionItemKind::SNIPPET,
    }
}
