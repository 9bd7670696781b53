//! `textDocument/completion` and `completionItem/resolve`.

use crate::handlers::embedded;
use crate::owner::Snapshot;
use ptx_analysis::ide::{self, Completion, CompletionKind};
use serde_json::json;
use tower_lsp::lsp_types::{
    CompletionItem, CompletionItemKind, CompletionResponse, CompletionTextEdit, Documentation,
    InsertTextFormat, MarkupContent, MarkupKind, Position, TextEdit,
};

/// The analysis determines the order, and sort texts pass it to the client. The client requests documentation
/// separately.
pub fn handle(s: &Snapshot, position: Position, takes_snippets: bool) -> Option<CompletionResponse> {
    if let Some(embedded) = &s.embedded {
        return embedded::completions(s, embedded, position, takes_snippets);
    }
    let lines = s.lines();
    let all = ide::completions(&s.db, s.file, lines.offset(position)).into_iter().map(|c| {
        let edit = lines.edit(&c.edit);
        (c, edit)
    });
    Some(answer(all, takes_snippets))
}

pub(super) fn answer(
    all: impl Iterator<Item = (Completion, TextEdit)>,
    takes_snippets: bool,
) -> CompletionResponse {
    let items = all
        .filter(|(c, _)| takes_snippets || c.kind != CompletionKind::Snippet)
        .enumerate()
        .map(|(place, (c, edit))| CompletionItem {
            kind: Some(kind(c.kind)),
            detail: (!c.detail.is_empty()).then_some(c.detail),
            sort_text: Some(format!("{place:05}")),
            // Without a filter text, some clients would match only a part of a name with dots.
            filter_text: Some(match c.kind {
                CompletionKind::Snippet => c.label.clone(),
                // In another language, the inserted text may differ from the label.
                _ => edit.new_text.trim_matches(['[', ']']).to_owned(),
            }),
            insert_text_format: (c.kind == CompletionKind::Snippet).then_some(InsertTextFormat::SNIPPET),
            text_edit: Some(CompletionTextEdit::Edit(edit)),
            data: Some(json!(CompletionKind::ALL.iter().position(|&kind| kind == c.kind))),
            label: c.label,
            ..Default::default()
        })
        .collect();
    CompletionResponse::Array(items)
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
