//! `textDocument/inlayHint`: the resources of each function, at the end of its first line.

use crate::last_good::marked;
use crate::owner::Snapshot;
use crate::patience;
use ptx_analysis::{Code, ide};
use tower_lsp::lsp_types::{InlayHint, InlayHintLabel, InlayHintTooltip, Range};

pub fn handle(s: &Snapshot, range: Range) -> Option<Vec<InlayHint>> {
    if !s.config.inlay_hints {
        return None;
    }
    let lines = s.lines();
    let range = lines.text_range(range);
    let compiled = |wanted: &[usize]| s.compiled(s.file, wanted, patience::HINTS);
    let code = if s.patience.refreshes_hints { Code::IfReady(&compiled) } else { Code::Awaited };
    let mut hints = ide::inlay_hints(&s.db, s.file, range, code);
    for hint in &mut hints {
        let label = std::mem::take(&mut hint.label);
        hint.label = s.last_hints.shown(&hint.function, label, hint.standing, marked);
    }
    if s.config.live_registers {
        for live in ide::live_registers(&s.db, s.file, range, code) {
            let (function, standing) = (live.function.clone(), live.standing);
            let live = s.last_live.shown(&function, live, standing, ide::LiveRegisters::with_old);
            hints.extend(live.hints(range));
        }
    }
    let hints = hints.into_iter().map(|hint| InlayHint {
        position: lines.position(hint.offset),
        label: InlayHintLabel::String(hint.label),
        kind: None,
        text_edits: None,
        tooltip: (!hint.tooltip.is_empty()).then_some(InlayHintTooltip::String(hint.tooltip)),
        padding_left: Some(true),
        padding_right: None,
        data: None,
    });
    Some(hints.collect())
}
