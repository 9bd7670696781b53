//! `textDocument/definition`, `declaration` and `typeDefinition`. The definition of an instruction is the source line
//! that it was compiled from.

use crate::handlers::{embedded, source};
use crate::owner::Snapshot;
use ptx_analysis::ide;
use tower_lsp::lsp_types::{GotoDefinitionResponse, Location, Position};

pub fn handle(s: &Snapshot, position: Position) -> Option<GotoDefinitionResponse> {
    if let Some(embedded) = &s.embedded {
        return embedded::definition(s, embedded, position);
    }
    let lines = s.lines();
    let own = ide::definition(&s.db, s.file, lines.offset(position))
        .map(|target| Location::new(s.uri.clone(), lines.range(target.focus)));
    own.or_else(|| source::place(s, position)).map(GotoDefinitionResponse::Scalar)
}

pub fn declaration(s: &Snapshot, position: Position) -> Option<GotoDefinitionResponse> {
    let lines = s.lines();
    let target = ide::declaration(&s.db, s.file, lines.offset(position))?;
    Some(GotoDefinitionResponse::Scalar(Location::new(s.uri.clone(), lines.range(target.focus))))
}

pub fn of_type(s: &Snapshot, position: Position) -> Option<GotoDefinitionResponse> {
    let lines = s.lines();
    let target = ide::type_definition(&s.db, s.file, lines.offset(position))?;
    Some(GotoDefinitionResponse::Scalar(Location::new(s.uri.clone(), lines.range(target.focus))))
}
