//! `textDocument/definition`.

use crate::owner::Snapshot;
use ptx_analysis::ide;
use tower_lsp::lsp_types::{GotoDefinitionResponse, Location, Position};

pub fn handle(s: &Snapshot, position: Position) -> Option<GotoDefinitionResponse> {
    let lines = s.lines();
    let target = ide::definition(&s.db, s.file, lines.offset(position))?;
    Some(GotoDefinitionResponse::Scalar(Location::new(s.uri.clone(), lines.range(target.focus))))
}
