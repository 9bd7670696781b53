//! Between analysis and protocol: offsets and positions, diagnostics, symbols.
//!
//! The only place besides [`document`](crate::document) that knows UTF-16.

use crate::document::Encoding;
use line_index::{LineIndex, WideEncoding, WideLineCol};
use ptx_analysis::ide;
use text_size::{TextRange, TextSize};
use tower_lsp::lsp_types as lsp;
use tower_lsp::lsp_types::Url;

/// The lines of a text as the protocol counts them: a carriage return alone ends one too. For the analysis, as for
/// ptxas, it is a blank.
pub fn line_index(text: &str) -> LineIndex {
    let bytes = text.as_bytes();
    let is_lone = |&at: &usize| bytes.get(at + 1) != Some(&b'\n');
    let mut lone = memchr::memchr_iter(b'\r', bytes).filter(is_lone).peekable();
    if lone.peek().is_none() {
        return LineIndex::new(text);
    }
    let mut ends = bytes.to_vec();
    lone.for_each(|at| ends[at] = b'\n');
    LineIndex::new(str::from_utf8(&ends).expect("characters must be single ASCII characters"))
}

/// Where the pages of the lints are.
const PAGES: &str = "https://github.com/ptx-analyzer/ptx-analyzer/blob/main/analysis/docs/lints";

/// The page of a lint, for clients that open links.
fn page(code: &str) -> Option<lsp::CodeDescription> {
    Some(lsp::CodeDescription { href: Url::parse(&format!("{PAGES}/{code}.md")).ok()? })
}

/// The lines of one text and how the client counts columns.
#[derive(Clone, Copy)]
pub struct Lines<'a> {
    pub text: &'a str,
    pub index: &'a LineIndex,
    pub encoding: Encoding,
}

impl Lines<'_> {
    pub fn position(&self, offset: TextSize) -> lsp::Position {
        let offset = offset.min(self.index.len());
        // An offset inside a character (never produced by the analysis) is moved back to its start.
        let line_col = (0..4)
            .find_map(|back| self.index.try_line_col(offset.checked_sub(TextSize::new(back))?))
            .unwrap_or(line_index::LineCol { line: 0, col: 0 });
        match self.encoding {
            Encoding::Utf8 => lsp::Position::new(line_col.line, line_col.col),
            Encoding::Utf16 => {
                let wide = self.index.to_wide(WideEncoding::Utf16, line_col);
                let wide = wide.unwrap_or(WideLineCol { line: line_col.line, col: line_col.col });
                lsp::Position::new(wide.line, wide.col)
            }
        }
    }

    pub fn range(&self, range: TextRange) -> lsp::Range {
        lsp::Range::new(self.position(range.start()), self.position(range.end()))
    }

    /// The offset of a position; a column past the line's end is the end, a line past the last the text's end.
    pub fn offset(&self, position: lsp::Position) -> TextSize {
        let Some(line) = self.index.line(position.line) else { return self.index.len() };
        let end = line.start() + TextSize::of(self.text[line].trim_end_matches(['\r', '\n']));
        let line_col = match self.encoding {
            Encoding::Utf8 => line_index::LineCol { line: position.line, col: position.character },
            Encoding::Utf16 => {
                let wide = WideLineCol { line: position.line, col: position.character };
                match self.index.to_utf8(WideEncoding::Utf16, wide) {
                    Some(line_col) => line_col,
                    None => return end,
                }
            }
        };
        let offset = self.index.offset(line_col).map_or(end, |offset| offset.min(end));
        // A column inside a character is its start.
        TextSize::new(self.text.floor_char_boundary(offset.into()) as u32)
    }

    pub fn text_range(&self, range: lsp::Range) -> TextRange {
        let (start, end) = (self.offset(range.start), self.offset(range.end));
        TextRange::new(start.min(end), start.max(end))
    }

    pub fn diagnostic(&self, uri: &Url, d: &ide::Diagnostic) -> Option<lsp::Diagnostic> {
        diagnostic(uri, d, |range| self.range(range))
    }

    pub fn diagnostics(&self, uri: &Url, all: &[ide::Diagnostic]) -> Vec<lsp::Diagnostic> {
        all.iter().filter_map(|d| self.diagnostic(uri, d)).collect()
    }

    pub fn edit(&self, edit: &ide::TextEdit) -> lsp::TextEdit {
        lsp::TextEdit::new(self.range(edit.range), edit.text.clone())
    }
}

/// A finding as the protocol has it. `range` gives positions; those of texts with an index are [`Lines::range`].
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_and_offsets_are_inverse() {
        let text = "ab\nπ𝄞c\n\nd";
        let index = line_index(text);
        for encoding in [Encoding::Utf8, Encoding::Utf16] {
            let lines = Lines { text, index: &index, encoding };
            for (offset, _) in text.char_indices() {
                let offset = TextSize::new(offset as u32);
                assert_eq!(lines.offset(lines.position(offset)), offset, "{encoding:?} {offset:?}");
            }
        }
    }

    #[test]
    fn columns_past_the_end_are_the_end() {
        let index = line_index("ab\ncd");
        let lines = Lines { text: "ab\ncd", index: &index, encoding: Encoding::Utf16 };
        assert_eq!(lines.offset(lsp::Position::new(0, 9)), TextSize::new(2));
        assert_eq!(lines.offset(lsp::Position::new(9, 0)), TextSize::new(5));
        assert_eq!(lines.offset(lsp::Position::new(1, 9)), TextSize::new(5));
    }
}
