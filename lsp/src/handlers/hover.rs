//! `textDocument/hover`.

use crate::owner::Snapshot;
use ptx_analysis::ide;
use tower_lsp::lsp_types::{Hover, HoverContents, MarkupContent, MarkupKind, Position};

pub fn handle(s: &Snapshot, position: Position) -> Option<Hover> {
    let lines = s.lines();
    let hover = ide::hover(&s.db, s.file, lines.offset(position))?;
    Some(Hover {
        contents: HoverContents::Markup(MarkupContent { kind: MarkupKind::Markdown, value: hover.markdown }),
        range: Some(lines.range(hover.range)),
    })
}
