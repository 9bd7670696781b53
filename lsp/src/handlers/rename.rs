//! `textDocument/prepareRename` and `textDocument/rename`.

use std::collections::HashMap;

use crate::owner::Snapshot;
use ptx_analysis::ide;
use tower_lsp::lsp_types::{Position, PrepareRenameResponse, WorkspaceEdit};

pub fn prepare(s: &Snapshot, position: Position) -> Option<PrepareRenameResponse> {
    let lines = s.lines();
    let range = ide::prepare_rename(&s.db, s.file, lines.offset(position))?;
    Some(PrepareRenameResponse::Range(lines.range(range)))
}

/// The edits, or the reason why the new name is not allowed.
pub fn handle(s: &Snapshot, position: Position, new_name: &str) -> Result<WorkspaceEdit, String> {
    let lines = s.lines();
    let edits = ide::rename(&s.db, s.file, lines.offset(position), new_name)?;
    let edits = edits.iter().map(|e| lines.edit(e)).collect();
    Ok(WorkspaceEdit { changes: Some(HashMap::from([(s.uri.clone(), edits)])), ..Default::default() })
}
