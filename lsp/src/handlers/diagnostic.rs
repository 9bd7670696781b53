//! `textDocument/diagnostic`: the findings of the checks in the current text, and those of its compilation if it has
//! finished.

use crate::handlers::embedded;
use crate::owner::Snapshot;
use crate::report::report;
use std::hash::{DefaultHasher, Hasher};

use ptx_analysis::ide;
use tower_lsp::lsp_types::{
    Diagnostic, DocumentDiagnosticReport, FullDocumentDiagnosticReport, RelatedFullDocumentDiagnosticReport,
    RelatedUnchangedDocumentDiagnosticReport, UnchangedDocumentDiagnosticReport,
};

/// The findings; or "unchanged" if they are those of the answer with the identifier `known`.
pub fn handle(s: &Snapshot, known: Option<&str>) -> DocumentDiagnosticReport {
    let items = findings(s);
    let result_id = identifier(&items);
    match result_id {
        Some(result_id) if known == Some(&result_id) => RelatedUnchangedDocumentDiagnosticReport {
            related_documents: None,
            unchanged_document_diagnostic_report: UnchangedDocumentDiagnosticReport { result_id },
        }
        .into(),
        result_id => RelatedFullDocumentDiagnosticReport {
            related_documents: None,
            full_document_diagnostic_report: FullDocumentDiagnosticReport { result_id, items },
        }
        .into(),
    }
}

fn findings(s: &Snapshot) -> Vec<Diagnostic> {
    if let Some(embedded) = &s.embedded {
        return embedded::publishable(&s.db, embedded, &s.uri);
    }
    let checked = ide::diagnostics(&s.db, s.file);
    report(s.lines(), &s.uri, &[&checked, s.compiled.as_deref().unwrap_or_default()])
}

/// An identifier of the findings. Equal findings have equal identifiers, so the server does not need to keep old
/// answers.
fn identifier(items: &[Diagnostic]) -> Option<String> {
    let json = serde_json::to_vec(items).ok()?;
    let mut hasher = DefaultHasher::new();
    hasher.write(&json);
    Some(format!("{:016x}", hasher.finish()))
}
