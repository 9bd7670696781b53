//! `textDocument/inlayHint`: resources at the end of a function's first line.

use crate::owner::Snapshot;
use ptx_analysis::ide;
use tower_lsp::lsp_types::{InlayHint, InlayHintLabel, InlayHintTooltip, Range};

pub fn handle(s: &Snapshot, range: Range) -> Option<Vec<InlayHint>> {
    if !s.config.inlay_hints {
        return None;
    }
    let lines = s.lines();
    let hints = ide::inlay_hints(&s.db, s.file, lines.text_range(range))
        .into_iter()
        .map(|hint| InlayHint {
            position: lines.position(hint.offset),
            label: InlayHintLabel::String(s.last_hints.shown(&hint.function, hint.label, hint.standing)),
            kind: None,
            text_edits: None,
            tooltip: (!hint.tooltip.is_empty()).then_some(InlayHintTooltip::String(hint.tooltip)),
            padding_left: Some(true),
            padding_right: None,
            data: None,
        })
        .collect();
    Some(hints)
}
