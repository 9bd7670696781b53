//! `textDocument/diagnostic`: the checks of the current text, and what its compilation found if that is done.

use crate::handlers::embedded;
use crate::owner::Snapshot;
use ptx_analysis::ide;
use tower_lsp::lsp_types::Diagnostic;

pub fn handle(s: &Snapshot) -> Vec<Diagnostic> {
    if let Some(embedded) = &s.embedded {
        return embedded::publishable(&s.db, embedded, &s.uri);
    }
    let lines = s.lines();
    let mut all = lines.diagnostics(&s.uri, &ide::diagnostics(&s.db, s.file));
    if let Some(compiled) = &s.compiled {
        all.extend(lines.diagnostics(&s.uri, compiled));
    }
    all
}
