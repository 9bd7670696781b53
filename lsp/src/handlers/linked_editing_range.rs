//! `textDocument/linkedEditingRange`: all occurrences of a label.

use crate::owner::Snapshot;
use ptx_analysis::ide;
use tower_lsp::lsp_types::{LinkedEditingRanges, Position};

/// A regular expression for valid names.
const NAME: &str = "[a-zA-Z_$%][a-zA-Z0-9_$]*";

pub fn handle(s: &Snapshot, position: Position) -> Option<LinkedEditingRanges> {
    let lines = s.lines();
    let ranges = ide::linked_ranges(&s.db, s.file, lines.offset(position))?;
    let ranges = ranges.into_iter().map(|range| lines.range(range)).collect();
    Some(LinkedEditingRanges { ranges, word_pattern: Some(NAME.to_owned()) })
}
