//! `textDocument/diagnostic`: the findings of the checks in the current text, and those of its compilation if it has
//! finished.

use crate::handlers::embedded;
use crate::owner::Snapshot;
use crate::report::report;
use std::hash::{DefaultHasher, Hasher};
use std::sync::{Mutex, PoisonError};

use ptx_analysis::ide;
use tower_lsp::lsp_types::{
    Diagnostic, DocumentDiagnosticReport, FullDocumentDiagnosticReport, RelatedFullDocumentDiagnosticReport,
    RelatedUnchangedDocumentDiagnosticReport, UnchangedDocumentDiagnosticReport, Url,
};

/// The findings.
pub fn handle(s: &Snapshot) -> FullDocumentDiagnosticReport {
    let items = findings(s);
    FullDocumentDiagnosticReport { result_id: identifier(&items), items }
}

/// The last answer of the server: its document, and the identifier of its findings.
#[derive(Default)]
pub struct LastAnswer(Mutex<Option<(Url, String)>>);

impl LastAnswer {
    /// The answer with these findings, or "unchanged" if they are those of the answer `known` and no other answer followed
    /// it. A client may ask again before it has received an answer. It then names an older one, but shows the newer one.
    pub fn answer(
        &self,
        uri: Url,
        report: FullDocumentDiagnosticReport,
        known: Option<String>,
    ) -> DocumentDiagnosticReport {
        let answer = report.result_id.clone().map(|id| (uri, id));
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(result_id) = known
            && report.result_id.as_ref() == Some(&result_id)
            && *last == answer
        {
            return RelatedUnchangedDocumentDiagnosticReport {
                related_documents: None,
                unchanged_document_diagnostic_report: UnchangedDocumentDiagnosticReport { result_id },
            }
            .into();
        }
        *last = answer;
        RelatedFullDocumentDiagnosticReport {
            related_documents: None,
            full_document_diagnostic_report: report,
        }
        .into()
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
