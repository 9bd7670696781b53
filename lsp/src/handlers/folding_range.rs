//! `textDocument/foldingRange`.

use crate::by_item::Writer;
use crate::owner::Snapshot;
use crate::written::Written;
use ptx_analysis::ide::{self, FoldKind};

pub fn handle(s: &Snapshot) -> Option<Written> {
    Some(s.answers.folds.answer(ide::folds_of_items(&s.db, s.file), s.encoding, fold))
}

/// Writes a `FoldingRange` of the protocol, if it has more than one line.
fn fold(writer: &mut Writer<'_>, fold: &ide::Fold) {
    let (start, end) = (writer.position(fold.range.start()), writer.position(fold.range.end()));
    if start.line == end.line {
        return;
    }
    writer.text("{\"startLine\":");
    writer.line(start);
    writer.text(",\"endLine\":");
    writer.line(end);
    if fold.kind == FoldKind::Comment {
        writer.text(",\"kind\":\"comment\"");
    }
    writer.text("}");
}
