//! `textDocument/diagnostic`: the checks of the current text, and what its compilation found if that is done.

use crate::handlers::embedded;
use crate::owner::Snapshot;
use crate::report::report;
use ptx_analysis::ide;
use tower_lsp::lsp_types::Diagnostic;

pub fn handle(s: &Snapshot) -> Vec<Diagnostic> {
    if let Some(embedded) = &s.embedded {
        return embedded::publishable(&s.db, embedded, &s.uri);
    }
    let checked = ide::diagnostics(&s.db, s.file);
    report(s.lines(), &s.uri, &[&checked, s.compiled.as_deref().unwrap_or_default()])
}
