//! Converts syntax errors to findings.

mod braces;

use braces::Unclosed;
use ptx_syntax::{ErrorCode, Remedy, SyntaxError};
use text_size::{TextRange, TextSize};

use crate::declare_lint;
use crate::diagnostic::{Applicability, Diagnostic, Lint, TextEdit};

declare_lint! {
    /// The file contains a character that is not allowed in PTX.
    pub(crate) BAD_CHARACTER = "E0001" "bad-character", Error, since "0.1.0"
}
declare_lint! {
    /// A comment or string is not terminated.
    pub(crate) UNTERMINATED = "E0002" "unterminated", Error, since "0.1.0"
}
declare_lint! {
    /// A number is malformed.
    pub(crate) BAD_NUMBER = "E0003" "bad-number", Error, since "0.1.0"
}
declare_lint! {
    /// A token is not allowed at this position.
    pub(crate) UNEXPECTED = "E0004" "unexpected", Error, since "0.1.0"
}
declare_lint! {
    /// A statement does not end with `;`.
    pub(crate) MISSING_SEMICOLON = "E0005" "missing-semicolon", Error, since "0.1.0"
}
declare_lint! {
    /// A brace, bracket or parenthesis is unmatched.
    pub(crate) UNBALANCED = "E0006" "unbalanced", Error, since "0.1.0"
}
declare_lint! {
    /// The nesting depth or the number of errors exceeds a limit.
    pub(crate) LIMIT = "E0007" "limit", Error, since "0.1.0"
}

/// The findings for the syntax errors of an item.
pub(crate) fn findings(errors: &[SyntaxError], text: &str) -> Vec<Diagnostic> {
    let mut findings: Vec<_> = errors.iter().map(|error| finding(error, text)).collect();
    let is_open = |error: &SyntaxError| error.code == ErrorCode::Unbalanced && text[error.range] == *"{";
    if errors.iter().any(is_open) {
        let unclosed = braces::unclosed(text);
        for finding in findings.iter_mut().filter(|finding| finding.lint == &UNBALANCED) {
            if let Some(unclosed) = unclosed.iter().find(|unclosed| unclosed.counted == finding.range) {
                explain(finding, unclosed, text);
            }
        }
    }
    findings
}

/// Moves the finding about an unclosed `{` to the brace that is unclosed according to the indentation, and offers to
/// insert the closing brace.
fn explain(finding: &mut Diagnostic, unclosed: &Unclosed, text: &str) {
    let indentation = &text[unclosed.indentation];
    let (at, closing) = match unclosed.passed {
        Some(passed) => {
            let line = text[..passed.start().into()].trim_end_matches([' ', '\t']);
            finding.relate(passed, "this `}` is indented like an outer `{`");
            (TextSize::of(line), format!("{indentation}}}\n"))
        }
        None => (TextSize::of(text.trim_end()), format!("\n{indentation}}}")),
    };
    finding.range = unclosed.open;
    let edit = TextEdit::new(TextRange::empty(at), closing);
    finding.offer("insert the closing `}`", vec![edit], Applicability::MaybeIncorrect);
}

/// The finding for a syntax error.
fn finding(error: &SyntaxError, text: &str) -> Diagnostic {
    let mut diagnostic = Diagnostic::new(lint_of(error.code), error.range, error.message.clone());
    diagnostic.reported = place(error, text);
    match &error.remedy {
        _ if error.code == ErrorCode::Unterminated && text[error.range].starts_with("/*") => {
            let line = text[error.range].lines().next().unwrap_or_default().trim_end();
            let end = TextRange::empty(error.range.start() + TextSize::of(line));
            diagnostic
                .note("the comment extends to the end of the file, so the text after it is not checked")
                .fix("insert `*/` at the end of the line", end, " */")
        }
        _ if error.code == ErrorCode::MissingSemicolon => {
            diagnostic.sure_fix("insert `;`", TextRange::empty(error.range.start()), ";")
        }
        Some(Remedy::Insert(missing)) => {
            let before = text[..error.range.start().into()].trim_end_matches([' ', '\t']);
            let at = TextRange::empty(TextSize::of(before));
            diagnostic.sure_fix(format!("insert `{missing}`"), at, *missing)
        }
        Some(Remedy::Replace(new)) if new.is_empty() => {
            let title = match &text[error.range] {
                "\u{feff}" => "remove the byte order mark".to_owned(),
                found => format!("remove `{found}`"),
            };
            diagnostic.sure_fix(title, error.range, "")
        }
        Some(Remedy::Replace(new)) => {
            diagnostic.sure_fix(format!("change to `{new}`"), error.range, new.clone())
        }
        None if error.code == ErrorCode::Unbalanced && text[error.range] == *"(" => diagnostic
            .note("an unclosed `(` extends to the end of the declaration; checking resumes at the next one"),
        None if error.code == ErrorCode::Unbalanced && text[error.range] == *"{" => diagnostic.rule(),
        None => match error.code {
            ErrorCode::BadCharacter | ErrorCode::Limit => diagnostic.rule(),
            _ => diagnostic,
        },
    }
}

/// The lint of a class of syntax errors.
fn lint_of(code: ErrorCode) -> &'static Lint {
    match code {
        ErrorCode::BadCharacter => &BAD_CHARACTER,
        ErrorCode::Unterminated => &UNTERMINATED,
        ErrorCode::BadNumber => &BAD_NUMBER,
        ErrorCode::Unexpected => &UNEXPECTED,
        ErrorCode::MissingSemicolon => &MISSING_SEMICOLON,
        ErrorCode::Unbalanced => &UNBALANCED,
        ErrorCode::Limit => &LIMIT,
    }
}

/// The place at which ptxas reports a syntax error, if it is after the error: at the next token.
fn place(error: &SyntaxError, text: &str) -> Option<TextSize> {
    match error.code {
        ErrorCode::Unbalanced if text[error.range] == *"{" => Some(TextSize::of(text)),
        // A token is missing after the last one.
        _ if error.range.is_empty() => Some(error.range.end()),
        _ => None,
    }
}
