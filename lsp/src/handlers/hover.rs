//! `textDocument/hover`.

use crate::handlers::embedded;
use crate::owner::Snapshot;
use ptx_analysis::ide;
use tower_lsp::lsp_types::{Hover, HoverContents, MarkupContent, MarkupKind, Position, Range};

pub fn handle(s: &Snapshot, position: Position) -> Option<Hover> {
    if let Some(embedded) = &s.embedded {
        return embedded::hover(s, embedded, position);
    }
    let lines = s.lines();
    let hover = ide::hover(&s.db, s.file, lines.offset(position))?;
    Some(answer(hover.markdown, lines.range(hover.range)))
}

pub(super) fn answer(markdown: String, range: Range) -> Hover {
    Hover {
        contents: HoverContents::Markup(MarkupContent { kind: MarkupKind::Markdown, value: markdown }),
        range: Some(range),
    }
}
