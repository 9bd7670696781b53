//! `textDocument/documentHighlight`: the uses of the name under the cursor, reads and writes apart.

use crate::owner::Snapshot;
use ptx_analysis::ide::{self, Usage};
use tower_lsp::lsp_types::{DocumentHighlight, DocumentHighlightKind, Position};

pub fn handle(s: &Snapshot, position: Position) -> Option<Vec<DocumentHighlight>> {
    let lines = s.lines();
    let found = ide::highlights(&s.db, s.file, lines.offset(position))?;
    Some(
        found
            .iter()
            .map(|r| DocumentHighlight {
                range: lines.range(r.range),
                kind: Some(match r.access {
                    Usage::Declaration => DocumentHighlightKind::TEXT,
                    Usage::Read => DocumentHighlightKind::READ,
                    Usage::Write | Usage::ReadWrite => DocumentHighlightKind::WRITE,
                }),
            })
            .collect(),
    )
}
