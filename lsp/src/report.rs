//! The findings of a document that are sent to the editor. Their number is limited.
//!
//! Every edit sends all of them again, and a large file can have an error on every line. Users fix the first findings
//! first, and VS Code itself shows at most a thousand per file. `ptx-check` lists all findings.

use crate::document::Document;
use ptx_analysis::ide::{self, Severity};
use tower_lsp::lsp_types::{self as lsp, Url};

/// The largest number of findings that are sent for a document. A note at the end gives the number of the others.
pub const MOST: usize = 500;

/// The findings of several lists, each in text order, as diagnostics of the document. If there are too many, the most
/// severe are sent, and of equal severity the first in the text.
pub fn report(lines: &Document, uri: &Url, lists: &[&[ide::Diagnostic]]) -> Vec<lsp::Diagnostic> {
    let all = || lists.iter().copied().flatten().filter(|finding| finding.severity != Severity::Allow);
    if all().count() <= MOST {
        return lines.diagnostics(uri, all());
    }
    let mut room = MOST;
    let mut left_out = Vec::new();
    let mut sent = Vec::with_capacity(MOST + 1);
    for (severity, one, many) in [
        (Severity::Error, "error", "errors"),
        (Severity::Warning, "warning", "warnings"),
        (Severity::Information, "note", "notes"),
    ] {
        let of_it = || all().filter(|finding| finding.severity == severity);
        let (count, taken) = (of_it().count(), of_it().take(room));
        sent.extend(lines.diagnostics(uri, taken));
        match count.saturating_sub(room) {
            0 => {}
            1 => left_out.push(format!("1 {one}")),
            more => left_out.push(format!("{more} {many}")),
        }
        room = room.saturating_sub(count);
    }
    let end = sent.iter().map(|finding| finding.range.end).max().unwrap_or_default();
    sent.push(lsp::Diagnostic {
        range: lsp::Range::new(end, end),
        severity: Some(lsp::DiagnosticSeverity::INFORMATION),
        source: Some("ptx".into()),
        message: format!("not shown: {}; run `ptx-check` to list all of them", left_out.join(", ")),
        ..Default::default()
    });
    sent
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Encoding;
    use ptx_analysis::check::lint;
    use text_size::TextRange;

    /// The codes and messages of a report on a text with an error at each place. The codes of the errors are those in
    /// `codes`, repeated.
    fn reported(codes: &[&str], places: u32) -> Vec<(Option<String>, String)> {
        let finding = |place: u32| {
            let lint = lint(codes[place as usize % codes.len()]).unwrap();
            ide::Diagnostic::new(lint, TextRange::at(place.into(), 1.into()), place.to_string())
        };
        let found: Vec<_> = (0..places).map(finding).collect();
        let lines = Document::new(&"x".repeat(places as usize), 1, Encoding::Utf8);
        let code = |finding: &lsp::Diagnostic| match &finding.code {
            Some(lsp::NumberOrString::String(code)) => Some(code.clone()),
            _ => None,
        };
        let uri = Url::parse("file:///a.ptx").unwrap();
        let all = report(&lines, &uri, &[&found[..3], &found[3..]]);
        all.into_iter().map(|finding| (code(&finding), finding.message)).collect()
    }

    #[test]
    fn few_findings_are_all_sent() {
        let all = reported(&["E0202", "W0507"], MOST as u32);
        assert_eq!(all.len(), MOST);
        assert!(all.iter().all(|(code, _)| code.is_some()));
    }

    #[test]
    fn of_many_the_most_severe_are_sent() {
        let all = reported(&["E0202", "W0507"], 2 * MOST as u32 - 2);
        assert_eq!(all.len(), MOST + 1);
        let errors = all.iter().filter(|(code, _)| code.as_deref() == Some("E0202")).count();
        assert_eq!((errors, all[MOST - 1].1.as_str()), (MOST - 1, "1"));
        let note = (None, "not shown: 498 warnings; run `ptx-check` to list all of them".to_owned());
        assert_eq!(all.last(), Some(&note));
        let all = reported(&["E0202"], MOST as u32 + 1);
        assert_eq!(all[MOST].1, "not shown: 1 error; run `ptx-check` to list all of them");
    }
}
