//! `textDocument/documentHighlight`: the uses of the name under the cursor, marked as reads or writes.

use crate::handlers::embedded;
use crate::owner::Snapshot;
use ptx_analysis::ide::{self, Usage};
use tower_lsp::lsp_types::{DocumentHighlight, DocumentHighlightKind, Position, Range};

pub fn handle(s: &Snapshot, position: Position) -> Option<Vec<DocumentHighlight>> {
    if let Some(embedded) = &s.embedded {
        return embedded::highlights(s, embedded, position);
    }
    let lines = s.lines();
    let found = ide::highlights(&s.db, s.file, lines.offset(position))?;
    Some(found.iter().map(|r| answer(lines.range(r.range), r.access)).collect())
}

pub(super) fn answer(range: Range, access: Usage) -> DocumentHighlight {
    let kind = match access {
        Usage::Declaration => DocumentHighlightKind::TEXT,
        Usage::Read => DocumentHighlightKind::READ,
        Usage::Write | Usage::ReadWrite => DocumentHighlightKind::WRITE,
    };
    DocumentHighlight { range, kind: Some(kind) }
}
