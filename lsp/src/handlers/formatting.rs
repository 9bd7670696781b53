//! `textDocument/formatting`, `rangeFormatting` and `onTypeFormatting`. The format is the same for all clients: their
//! tab and column settings have no effect.

use crate::owner::Snapshot;
use ptx_analysis::ide;
use tower_lsp::lsp_types::{Position, Range, TextEdit};

/// The characters after which clients request formatting.
pub const TRIGGERS: [&str; 3] = [";", "}", "\n"];

pub fn handle(s: &Snapshot, range: Option<Range>) -> Option<Vec<TextEdit>> {
    let lines = s.lines();
    let edits = ide::format(&s.db, s.file, range.map(|range| lines.text_range(range)));
    Some(edits.iter().map(|edit| lines.edit(edit)).collect())
}

pub fn on_type(s: &Snapshot, position: Position, typed: &str) -> Option<Vec<TextEdit>> {
    let lines = s.lines();
    let typed = typed.chars().next()?;
    let edits = ide::format_on_type(&s.db, s.file, lines.offset(position), typed);
    Some(edits.iter().map(|edit| lines.edit(edit)).collect())
}
