//! Conversion between the analysis and the protocol: offsets and positions, diagnostics, symbols.
//!
//! Apart from [`document`](crate::document), this is the only module that deals with UTF-16.

use crate::document::Document;
use ptx_analysis::ide;
use text_size::TextRange;
use tower_lsp::lsp_types as lsp;
use tower_lsp::lsp_types::Url;

/// The address of the folder with the pages of the lints.
const PAGES: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/analysis/docs/lints");

/// The page of a lint, for clients that open links.
fn page(code: &str) -> Option<lsp::CodeDescription> {
    Some(lsp::CodeDescription { href: Url::parse(&format!("{PAGES}/{code}.md")).ok()? })
}

/// Converts results of the analysis to positions of the document.
impl Document {
    pub fn text_range(&self, range: lsp::Range) -> TextRange {
        let (start, end) = (self.offset(range.start), self.offset(range.end));
        TextRange::new(start.min(end), start.max(end))
    }

    pub fn diagnostics<'d>(
        &self,
        uri: &Url,
        all: impl Iterator<Item = &'d ide::Diagnostic>,
    ) -> Vec<lsp::Diagnostic> {
        all.filter_map(|d| diagnostic(uri, d, |range| self.range(range))).collect()
    }

    pub fn edit(&self, edit: &ide::TextEdit) -> lsp::TextEdit {
        lsp::TextEdit::new(self.range(edit.range), edit.text.clone())
    }
}

/// A diagnostic in the protocol's form. `range` converts ranges to positions; for a document it is [`Document::range`].
pub fn diagnostic(
    uri: &Url,
    d: &ide::Diagnostic,
    range: impl Fn(TextRange) -> lsp::Range,
) -> Option<lsp::Diagnostic> {
    let severity = match d.severity {
        ide::Severity::Error => lsp::DiagnosticSeverity::ERROR,
        ide::Severity::Warning => lsp::DiagnosticSeverity::WARNING,
        ide::Severity::Information => lsp::DiagnosticSeverity::INFORMATION,
        ide::Severity::Allow => return None,
    };
    let related = d
        .related
        .iter()
        .map(|r| lsp::DiagnosticRelatedInformation {
            location: lsp::Location::new(uri.clone(), range(r.range)),
            message: r.message.clone(),
        })
        .collect::<Vec<_>>();
    let mut message = d.message.clone();
    for note in &d.notes {
        message.push('\n');
        message.push_str(note);
    }
    Some(lsp::Diagnostic {
        range: range(d.range),
        severity: Some(severity),
        code: Some(lsp::NumberOrString::String(d.code().into())),
        code_description: page(d.code()),
        source: Some("ptx".into()),
        message,
        related_information: (!related.is_empty()).then_some(related),
        tags: d.unnecessary.then(|| vec![lsp::DiagnosticTag::UNNECESSARY]),
        ..Default::default()
    })
}
