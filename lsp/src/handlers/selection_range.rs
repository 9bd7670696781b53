//! `textDocument/selectionRange`.

use crate::owner::Snapshot;
use ptx_analysis::ide;
use tower_lsp::lsp_types::{Position, Range, SelectionRange};

pub fn handle(s: &Snapshot, positions: &[Position]) -> Option<Vec<SelectionRange>> {
    let lines = s.lines();
    let around = |&position: &Position| {
        let ranges = ide::selection_ranges(&s.db, s.file, lines.offset(position));
        let outwards = ranges.into_iter().rev().fold(None, |parent, range| {
            Some(SelectionRange { range: lines.range(range), parent: parent.map(Box::new) })
        });
        outwards.unwrap_or(SelectionRange { range: Range::new(position, position), parent: None })
    };
    Some(positions.iter().map(around).collect())
}
