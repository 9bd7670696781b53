//! `textDocument/completion` and `completionItem/resolve`.

use crate::owner::Snapshot;
use ptx_analysis::ide::{self, CompletionKind};
use serde_json::json;
use tower_lsp::lsp_types::{
    CompletionItem, CompletionItemKind, CompletionResponse, CompletionTextEdit, Documentation,
    InsertTextFormat, MarkupContent, MarkupKind, Position,
};

/// The analysis gives the order, which clients learn from the sort texts. Documentation follows on request.
pub fn handle(s: &Snapshot, position: Position, takes_snippets: bool) -> Option<CompletionResponse> {
    let lines = s.lines();
    let all = ide::completions(&s.db, s.file, lines.offset(position));
    let items = all
        .into_iter()
        .filter(|c| takes_snippets || c.kind != CompletionKind::Snippet)
        .enumerate()
        .map(|(place, c)| CompletionItem {
            kind: Some(kind(c.kind)),
            detail: (!c.detail.is_empty()).then_some(c.detail),
            sort_text: Some(format!("{place:05}")),
            // A client that guesses would take the words of a name apart.
            filter_text: Some(c.label.clone()),
            insert_text_format: (c.kind == CompletionKind::Snippet).then_some(InsertTextFormat::SNIPPET),
            text_edit: Some(CompletionTextEdit::Edit(lines.edit(&c.edit))),
            data: Some(json!(CompletionKind::ALL.iter().position(|&kind| kind == c.kind))),
            label: c.label,
            ..Default::default()
        })
        .collect();
    Some(CompletionResponse::Array(items))
}

/// Adds the documentation of an item.
pub fn resolve(mut item: CompletionItem) -> CompletionItem {
    let index = item.data.as_ref().and_then(serde_json::Value::as_u64);
    let kind = index.and_then(|index| CompletionKind::ALL.get(index as usize));
    let text = kind.and_then(|&kind| ide::completion_documentation(kind, &item.label));
    item.documentation =
        text.map(|value| Documentation::MarkupContent(MarkupContent { kind: MarkupKind::Markdown, value }));
    item
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
