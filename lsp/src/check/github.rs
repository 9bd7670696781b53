//! Annotations for GitHub workflows: one workflow command per finding, which GitHub shows next to the line.

use line_index::LineIndex;
use ptx_analysis::ide::{Diagnostic, Severity};
use text_size::TextRange;

use super::json::span;

/// The workflow command of a finding: `::error file=…,line=…::message`.
pub fn command(file: &str, index: &LineIndex, d: &Diagnostic) -> String {
    let word = match d.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Information | Severity::Allow => "notice",
    };
    let [line, column, end_line, end_column] = span(index, d.reported.map_or(d.range, TextRange::empty));
    let mut message = d.message.clone();
    for note in &d.notes {
        message.push('\n');
        message.push_str(note);
    }
    // Only findings within one line have columns.
    let columns = if line == end_line && end_column > column {
        format!(",col={column},endColumn={}", end_column - 1)
    } else {
        String::new()
    };
    let (file, message) = (escaped(file, true), escaped(&message, false));
    let title = escaped(&format!("{} {}", d.code(), d.lint.name), true);
    format!("::{word} file={file},line={line},endLine={end_line}{columns},title={title}::{message}\n")
}

/// A text escaped for a workflow command. In properties, commas and colons are escaped too.
fn escaped(text: &str, is_property: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '%' => out += "%25",
            '\r' => out += "%0D",
            '\n' => out += "%0A",
            ':' if is_property => out += "%3A",
            ',' if is_property => out += "%2C",
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use ptx_analysis::{INVALID_UTF8, ide};

    #[test]
    fn properties_and_messages_are_escaped() {
        let text = "short\nxyz";
        let d = ide::Diagnostic::new(&INVALID_UTF8, TextRange::new(7.into(), 8.into()), "100%: bad, so")
            .note("why");
        expect_test::expect![[r"
            ::error file=a%2Cb,line=2,endLine=2,col=2,endColumn=2,title=E0008 invalid-utf8::100%25: bad, so%0Awhy
        "]]
        .assert_eq(&command("a,b", &LineIndex::new(text), &d));
    }
}
