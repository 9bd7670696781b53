//! `textDocument/references`.

use crate::owner::Snapshot;
use ptx_analysis::ide::{self, Usage};
use tower_lsp::lsp_types::{Location, Position};

pub fn handle(s: &Snapshot, position: Position, include_declaration: bool) -> Option<Vec<Location>> {
    let lines = s.lines();
    let found = ide::references(&s.db, s.file, lines.offset(position))?;
    Some(
        found
            .iter()
            .filter(|r| include_declaration || r.access != Usage::Declaration)
            .map(|r| Location::new(s.uri.clone(), lines.range(r.range)))
            .collect(),
    )
}
