//! `textDocument/hover`.

use crate::handlers::embedded;
use crate::owner::Snapshot;
use crate::patience;
use ptx_analysis::{Code, SourceFile, ide};
use text_size::TextSize;
use tower_lsp::lsp_types::{Hover, HoverContents, MarkupContent, MarkupKind, Position, Range};

pub fn handle(s: &Snapshot, position: Position) -> Option<Hover> {
    if let Some(embedded) = &s.embedded {
        return embedded::hover(s, embedded, position);
    }
    let lines = s.lines();
    let hover = about(s, s.file, lines.offset(position))?;
    Some(answer(hover.markdown, lines.range(hover.range)))
}

/// The hover text that is available without waiting for the compiler.
pub(super) fn about(s: &Snapshot, file: SourceFile, offset: TextSize) -> Option<ide::Hover> {
    let compiled = |wanted: &[usize]| s.compiled(file, wanted, patience::HOVER);
    ide::hover(&s.db, file, offset, Code::IfReady(&compiled))
}

pub(super) fn answer(markdown: String, range: Range) -> Hover {
    Hover {
        contents: HoverContents::Markup(MarkupContent { kind: MarkupKind::Markdown, value: markdown }),
        range: Some(range),
    }
}
