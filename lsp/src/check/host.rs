//! Checks files of other languages that PTX is embedded in.

use ptx_analysis::Database;
use ptx_analysis::ide::Diagnostic;
use ptx_embed::{Language, scan};

use crate::embedded;

/// The findings of all snippets of a text, at positions of this text.
pub(super) fn findings(db: &Database, language: Language, text: &str, has_target: bool) -> Vec<Diagnostic> {
    let scan = scan(language, text);
    let found: Vec<Vec<Diagnostic>> = scan
        .snippets()
        .iter()
        .map(|snippet| {
            let file = db.add_frozen_file(snippet.document.text());
            embedded::findings(db, file, &snippet.document, has_target)
        })
        .collect();
    embedded::all(scan.snippets(), found.iter().map(Vec::as_slice), |at| embedded::is_guarded(text, at))
}
