//! Diagnostics for people: source excerpts with the range underlined.

use codespan_reporting::diagnostic::{Diagnostic as Report, Label, Severity as Level};
use codespan_reporting::files::SimpleFile;
use codespan_reporting::term::{self, Config};
use ptx_analysis::ide::{Diagnostic, Severity};
use text_size::TextRange;

fn bytes(range: TextRange) -> std::ops::Range<usize> {
    range.start().into()..range.end().into()
}

/// A text with its line starts found, to render any number of diagnostics of.
pub struct Renderer<'a> {
    name: &'a str,
    file: SimpleFile<&'a str, &'a str>,
}

impl<'a> Renderer<'a> {
    pub fn new(name: &'a str, text: &'a str) -> Self {
        Self { name, file: SimpleFile::new(name, text) }
    }

    /// The report of a diagnostic as plain text.
    pub fn render(&self, d: &Diagnostic) -> String {
        let level = match d.severity {
            Severity::Error => Level::Error,
            Severity::Warning => Level::Warning,
            Severity::Information | Severity::Allow => Level::Note,
        };
        let mut labels = vec![Label::primary((), bytes(d.range))];
        labels
            .extend(d.related.iter().map(|r| Label::secondary((), bytes(r.range)).with_message(&r.message)));
        let mut notes = d.notes.clone();
        notes.extend(d.fixes.iter().map(|fix| format!("help: {}", fix.title)));
        let report = Report::new(level)
            .with_code(d.code())
            .with_message(&d.message)
            .with_labels(labels)
            .with_notes(notes);
        let config = Config { tab_width: 4, ..Config::default() };
        // Rendering fails only for ranges outside the text; the message is worth more than the excerpt.
        term::emit_into_string(&config, &self.file, &report).unwrap_or_else(|_| {
            format!("{}: {}[{}]: {}\n", self.name, d.severity.text(), d.code(), d.message)
        })
    }
}
