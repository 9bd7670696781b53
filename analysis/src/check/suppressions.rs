//! `// ptx-ignore: W0501, unused-label -- the reason`: comments that suppress lints.
//!
//! A comment suppresses findings that begin on its line. If it is alone on its line, it also suppresses findings on the
//! next line that is not such a comment. It lists lints by code or name, separated by commas or blanks. Errors are
//! never suppressed, because code is generated only for programs without errors.

use memchr::memmem;
use ptx_syntax::SyntaxKind;
use text_size::{TextRange, TextSize};

use super::lints::{lint, near};
use crate::db::{Db, SourceFile};
use crate::declare_lint;
use crate::diagnostic::{Diagnostic, Findings, Lint};
use crate::items::{has_ignores, parts};
use crate::pieces::IGNORE;

declare_lint! {
    /// A suppression comment names no lint, an unknown lint, or an error.
    pub(crate) BAD_SUPPRESSION = "W0523" "bad-suppression", Warning, since "0.1.0"
}

/// A comment, in file offsets.
struct Comment {
    range: TextRange,
    /// The names in the comment, in order.
    names: Vec<TextRange>,
    lints: Vec<&'static Lint>,
    /// From the start of its line to the end of the last line to which it applies.
    reach: TextRange,
}

/// The comments of a file, in text order.
pub(crate) struct Suppressions(Vec<Comment>);

impl Suppressions {
    /// Finds the comments. For an open file it is recorded whether it has any, so that a text without comments is not
    /// searched.
    pub(crate) fn of(db: &dyn Db, file: SourceFile) -> Self {
        let text: &str = file.text(db);
        let mut found = Vec::new();
        if !has_ignores(db, file) {
            return Self(found);
        }
        for part in parts(db, file) {
            let (item, mut start) = (part.text(db), part.offset(db));
            if memmem::find(item.as_bytes(), IGNORE.as_bytes()).is_none() {
                continue;
            }
            for token in ptx_syntax::lex(item) {
                let range = TextRange::at(start, TextSize::new(token.len));
                start = range.end();
                if token.kind == SyntaxKind::LINE_COMMENT {
                    found.extend(read(text, range));
                }
            }
        }
        for index in (0..found.len()).rev() {
            let end = reach_end(text, &found[index], found.get(index + 1));
            let start = found[index].reach.start();
            found[index].reach = TextRange::new(start, end);
        }
        Self(found)
    }

    /// Whether a comment suppresses the finding.
    pub(crate) fn hide(&self, diagnostic: &Diagnostic) -> bool {
        if diagnostic.lint.is_error() {
            return false;
        }
        let at = diagnostic.range.start();
        let first = self.0.partition_point(|comment| comment.reach.end() < at);
        let here = self.0[first..].iter().take_while(|comment| comment.reach.start() <= at);
        here.flat_map(|comment| &comment.lints).any(|&lint| lint == diagnostic.lint)
    }

    /// Reports errors in the comments themselves.
    pub(crate) fn check(&self, text: &str) -> Box<[Diagnostic]> {
        let mut out = Findings::default();
        for comment in &self.0 {
            if comment.names.is_empty() {
                let message = format!("`{IGNORE}` comment names no lint");
                let found = Diagnostic::new(&BAD_SUPPRESSION, comment.range, message);
                out.push(found.note(format!("write `// {IGNORE}: CODE` with the code or name of a warning")));
            }
            out.extend(comment.names.iter().filter_map(|&range| judge(&text[range], range)));
        }
        out.into_sorted()
    }
}

/// Reads the comment, if it is a suppression comment. Its reach is its own line.
fn read(text: &str, range: TextRange) -> Option<Comment> {
    let comment = &text[range];
    let rest = comment.strip_prefix("//")?.trim_start().strip_prefix(IGNORE)?;
    let list = match rest.chars().next() {
        Some(':') => rest[1..].split(" --").next().unwrap_or_default(),
        // `ptx-ignored` is another word.
        Some(c) if !c.is_whitespace() => return None,
        _ => "",
    };
    let offset_of = |part: &str| {
        range.start() + TextSize::new((part.as_ptr() as usize - comment.as_ptr() as usize) as u32)
    };
    let words = list.split(|c: char| c == ',' || c.is_whitespace()).filter(|word| !word.is_empty());
    let names: Vec<TextRange> =
        words.map(|word| TextRange::at(offset_of(word), TextSize::of(word))).collect();
    let lints = names.iter().filter_map(|&name| lint(&text[name])).collect();
    let line_start = text[..range.start().into()].rfind('\n').map_or(0, |at| at + 1);
    let reach = TextRange::new(TextSize::new(line_start as u32), range.end());
    Some(Comment { range, names, lints, reach })
}

/// The end of the last line to which a comment applies, if the next comment determines it.
fn reach_end(text: &str, comment: &Comment, next: Option<&Comment>) -> TextSize {
    let line_end =
        |from: usize| memchr::memchr(b'\n', &text.as_bytes()[from..]).map_or(text.len(), |at| from + at);
    let own = line_end(comment.range.end().into());
    let following = TextSize::new((own + 1).min(text.len()) as u32);
    let end = match next {
        _ if !stands_alone(text, comment) => own,
        Some(next) if next.reach.start() == following && stands_alone(text, next) => return next.reach.end(),
        _ => line_end(following.into()),
    };
    TextSize::new(end as u32)
}

fn stands_alone(text: &str, comment: &Comment) -> bool {
    text[TextRange::new(comment.reach.start(), comment.range.start())].trim().is_empty()
}

/// The error of a name in a comment.
fn judge(name: &str, range: TextRange) -> Option<Diagnostic> {
    match lint(name) {
        Some(lint) if lint.is_error() => {
            let message = format!("`{name}` is an error and cannot be suppressed");
            let found = Diagnostic::new(&BAD_SUPPRESSION, range, message);
            Some(found.note("only warnings and hints (W…, I…) can be suppressed"))
        }
        Some(_) => None,
        None => {
            let found = Diagnostic::new(&BAD_SUPPRESSION, range, format!("unknown lint `{name}`"));
            Some(match near(name) {
                Some(near) => found.fix(format!("change to `{near}`"), range, near),
                None => found.note("if this is a reason, write ` -- ` before it"),
            })
        }
    }
}
