//! `ptx/sassView`: a function's machine code as a document, each line with the PTX it comes from.
//!
//! Parameters: `{ textDocument, function }` or `{ textDocument, position }`. Result: `{ function, text, lines }`,
//! `lines[i]` being the PTX range of line `i` or null. Where a function has no machine code, the text says why. Null where
//! there is no function.

use crate::owner::Snapshot;
use ptx_analysis::ide;
use serde_json::Value;
use tower_lsp::lsp_types::{Position, Range, TextDocumentIdentifier};

/// Parameters of `ptx/sassView`.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SassViewParams {
    pub text_document: TextDocumentIdentifier,
    #[serde(default)]
    pub position: Option<Position>,
    #[serde(default)]
    pub function: Option<String>,
}

/// Result of `ptx/sassView`.
pub type SassViewResult = Value;

pub fn handle(s: &Snapshot, params: &SassViewParams) -> Option<SassViewResult> {
    let lines = s.lines();
    let view = match (&params.function, params.position) {
        (Some(name), _) => ide::sass_view(&s.db, s.file, name)?,
        (None, Some(position)) => ide::sass_view_at(&s.db, s.file, lines.offset(position))?,
        (None, None) => return None,
    };
    let map: Vec<Option<Range>> = view.lines.iter().map(|range| range.map(|r| lines.range(r))).collect();
    Some(serde_json::json!({ "function": view.function, "text": &*view.text, "lines": map }))
}
