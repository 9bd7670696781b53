//! `textDocument/foldingRange`.

use crate::owner::Snapshot;
use crate::written::{self, Written};
use ptx_analysis::ide::{self, FoldKind};
use tower_lsp::lsp_types::{FoldingRange, FoldingRangeKind};

pub fn handle(s: &Snapshot) -> Option<Written> {
    let lines = s.lines();
    let convert = |fold: ide::Fold| {
        let range = lines.range(fold.range);
        (range.start.line < range.end.line).then(|| FoldingRange {
            start_line: range.start.line,
            end_line: range.end.line,
            kind: (fold.kind == FoldKind::Comment).then_some(FoldingRangeKind::Comment),
            ..Default::default()
        })
    };
    let folds: Vec<_> = ide::folding_ranges(&s.db, s.file).into_iter().filter_map(convert).collect();
    written::write(&folds)
}
