//! Diagnostics for people: source excerpts with the range underlined.

use std::ops::Range;

use codespan_reporting::diagnostic::{Diagnostic as Report, Label, Severity as Level};
use codespan_reporting::files::Files;
use codespan_reporting::term::{self, Config};
use ptx_analysis::ide::{Diagnostic, Severity};
use text_size::TextRange;

use super::excerpt::Excerpts;

fn bytes(range: TextRange) -> Range<usize> {
    range.start().into()..range.end().into()
}

/// Lines longer than this are not shown: a generated file may have a single line of megabytes, with thousands of
/// findings.
const LONGEST_LINE: usize = 2000;

/// Of a range with more lines than this, only the first is shown.
const MOST_LINES: usize = 100;

/// A text for which any number of diagnostics can be rendered.
pub struct Renderer<'a> {
    name: &'a str,
    text: &'a str,
    file: Excerpts<'a>,
}

impl<'a> Renderer<'a> {
    pub fn new(name: &'a str, text: &'a str) -> Self {
        Self { name, text, file: Excerpts::new(name, text) }
    }

    /// A diagnostic as plain text.
    pub fn render(&self, d: &Diagnostic) -> String {
        if !self.can_show(d.range) || d.related.iter().any(|r| !self.can_show(r.range)) {
            return self.without_excerpt(d);
        }
        let level = match d.severity {
            Severity::Error => Level::Error,
            Severity::Warning => Level::Warning,
            Severity::Information | Severity::Allow => Level::Note,
        };
        let mut labels = vec![Label::primary((), self.shown(d.range))];
        labels.extend(
            d.related.iter().map(|r| Label::secondary((), self.shown(r.range)).with_message(&r.message)),
        );
        let mut notes = d.notes.clone();
        notes.extend(d.fixes.iter().map(|fix| format!("help: {}", fix.title)));
        let report = Report::new(level)
            .with_code(d.code())
            .with_message(&d.message)
            .with_labels(labels)
            .with_notes(notes);
        let config = Config { tab_width: 4, ..Config::default() };
        // Rendering fails only if a range lies outside the text. The message is still worth printing without the
        // excerpt.
        term::emit_into_string(&config, &self.file, &report).unwrap_or_else(|_| self.without_excerpt(d))
    }

    /// Whether the lines of both ends are short, and no control character in them reaches the terminal.
    fn can_show(&self, range: TextRange) -> bool {
        let is_hidden = |c: char| c.is_control() && !matches!(c, '\t' | '\r' | '\n');
        [range.start(), range.end()].into_iter().all(|offset| {
            let line = self.file.line_index((), offset.into());
            let line = line.and_then(|line| self.file.line_range((), line));
            line.is_ok_and(|line| line.len() <= LONGEST_LINE && !self.text[line].contains(is_hidden))
        })
    }

    /// The range, or its first line if the range has so many lines that an excerpt would take long.
    fn shown(&self, range: TextRange) -> Range<usize> {
        let Range { start, end } = bytes(range);
        let line = |offset: usize| self.file.line_index((), offset);
        match (line(start), line(end)) {
            (Ok(first), Ok(last)) if last - first > MOST_LINES => {
                let line_end = self.file.line_range((), first).map_or(end, |line| line.end);
                start..line_end
            }
            _ => start..end,
        }
    }

    fn without_excerpt(&self, d: &Diagnostic) -> String {
        let start = usize::from(d.range.start());
        let place = self.file.line_index((), start).and_then(|line| {
            let column = start - self.file.line_range((), line)?.start + 1;
            Ok(format!(":{}:{column}", line + 1))
        });
        let place = place.unwrap_or_default();
        format!("{}[{}]: {}\n   at {}{place}\n", d.severity.text(), d.code(), d.message, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ptx_analysis::INVALID_UTF8;

    #[test]
    fn long_lines_are_named_and_not_shown() {
        let text = format!("short\n{}", "x".repeat(10_000));
        let d = Diagnostic::new(&INVALID_UTF8, TextRange::new(9.into(), 10.into()), "bad");
        assert_eq!(Renderer::new("f", &text).render(&d), "error[E0008]: bad\n   at f:2:4\n");
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        let d = Diagnostic::new(&INVALID_UTF8, TextRange::new(1.into(), 2.into()), "bad");
        let shown = Renderer::new("f", "a\u{1b}[31m\n").render(&d);
        assert_eq!(shown, "error[E0008]: bad\n   at f:1:2\n");
    }

    #[test]
    fn only_the_first_of_many_lines_is_shown() {
        let text = "ab\n".repeat(2 * MOST_LINES);
        let d =
            Diagnostic::new(&INVALID_UTF8, TextRange::new(0.into(), (text.len() as u32 - 1).into()), "bad");
        let shown = Renderer::new("f", &text).render(&d);
        assert!(shown.contains("ab") && shown.lines().count() < 8, "{shown}");
    }
}
