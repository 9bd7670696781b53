//! Errors in single tokens: bad characters, unclosed comments and strings, malformed numbers.

use text_size::{TextRange, TextSize};

use crate::ast::literal;
use crate::{ErrorCode, Remedy, SyntaxError, SyntaxKind, scan};

/// The end of the parser's message about a number in the place of a name.
pub(crate) const DIGIT_FIRST: &str = "a name cannot begin with a digit";

/// The largest number of bad tokens reported for one item. More would not help the user.
const MAX_ERRORS: usize = 200;

/// The errors in the tokens of a text.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    errors: Vec<SyntaxError>,
    /// The text ends in an unclosed comment.
    ends_in_open_comment: bool,
}

impl Faults {
    /// Checks the next token that is not blank.
    #[inline]
    pub(crate) fn check(&mut self, kind: SyntaxKind, text: &str, start: usize, end: usize) {
        let is_plain = match kind {
            // Most numbers are short and decimal.
            SyntaxKind::INT => {
                let digits = &text.as_bytes()[start..end];
                let is_decimal = digits.iter().all(u8::is_ascii_digit);
                digits.len() == 1 || digits.len() < 19 && digits[0] != b'0' && is_decimal
            }
            SyntaxKind::FLOAT
            | SyntaxKind::STRING
            | SyntaxKind::LINE_COMMENT
            | SyntaxKind::BLOCK_COMMENT
            | SyntaxKind::HASH_LINE
            | SyntaxKind::BAD_CHAR => false,
            _ => true,
        };
        if !is_plain && self.errors.len() < MAX_ERRORS {
            self.check_text(kind, text, start, end);
        }
    }

    #[inline(never)]
    fn check_text(&mut self, kind: SyntaxKind, text: &str, start: usize, end: usize) {
        let token = &text[start..end];
        if let Some((code, message)) = check(kind, token) {
            let range = TextRange::new(TextSize::new(start as u32), TextSize::new(end as u32));
            self.errors.push(SyntaxError { code, range, message, remedy: remedy(kind, token) });
            self.ends_in_open_comment |= kind == SyntaxKind::BLOCK_COMMENT && code == ErrorCode::Unterminated;
        }
    }
}

/// Merges the errors of the tokens into those of the parser.
pub(crate) fn merge(faults: Faults, errors: &mut Vec<SyntaxError>) {
    if faults.ends_in_open_comment {
        // The closing brackets that seem to be missing are inside the comment.
        errors.retain(|error| error.code != ErrorCode::Unbalanced);
    }
    for fault in faults.errors {
        // If the parser reported an error for the same token, this error gives the reason. If a string is unclosed, it
        // contains the text that the parser missed after it.
        let is_open = fault.code == ErrorCode::Unterminated;
        let is_echo = |range: TextRange| {
            range == fault.range || is_open && range == TextRange::empty(fault.range.end())
        };
        // If a number should have been a name, its digits do not matter.
        let is_name =
            |error: &SyntaxError| error.range == fault.range && error.message.ends_with(DIGIT_FIRST);
        if fault.code == ErrorCode::BadNumber && errors.iter().any(is_name) {
            continue;
        }
        errors.retain(|error| !is_echo(error.range));
        errors.push(fault);
    }
    errors.sort_by_key(|error| (error.range.start(), error.range.end()));
}

fn check(kind: SyntaxKind, text: &str) -> Option<(ErrorCode, std::borrow::Cow<'static, str>)> {
    match kind {
        SyntaxKind::INT => {
            let error = literal::integer(text).err()?;
            Some((ErrorCode::BadNumber, error.message(text).into()))
        }
        SyntaxKind::FLOAT => {
            let error = literal::float(text).err()?;
            Some((ErrorCode::BadNumber, error.message(text).into()))
        }
        SyntaxKind::STRING if !scan::string_end(text.as_bytes(), 0).1 => Some((
            ErrorCode::Unterminated,
            "unterminated string, expected `\"` before the end of the line".into(),
        )),
        SyntaxKind::BLOCK_COMMENT if !scan::block_comment_end(text.as_bytes(), 0).1 => {
            Some((ErrorCode::Unterminated, "unterminated comment, expected `*/`".into()))
        }
        SyntaxKind::HASH_LINE => hash_line(text),
        SyntaxKind::LINE_COMMENT | SyntaxKind::BLOCK_COMMENT | SyntaxKind::STRING if !text.is_ascii() => {
            Some((ErrorCode::BadCharacter, "non-ASCII character; ptxas rejects it even in comments".into()))
        }
        SyntaxKind::BAD_CHAR => Some((ErrorCode::BadCharacter, bad_character(text).into())),
        _ => None,
    }
}

/// The text that a bad token should have been.
fn remedy(kind: SyntaxKind, text: &str) -> Option<Remedy> {
    match kind {
        // The C literal `1.0f`.
        SyntaxKind::FLOAT => {
            let digits = text.strip_suffix(['f', 'F', 'l', 'L'])?;
            literal::float(digits).is_ok().then(|| Remedy::Replace(digits.to_owned().into()))
        }
        // A comment in Python or in the assembly of another machine.
        SyntaxKind::HASH_LINE if text.starts_with("# ") => {
            Some(Remedy::Replace(format!("//{}", &text[1..]).into()))
        }
        SyntaxKind::STRING if !scan::string_end(text.as_bytes(), 0).1 => {
            let name = text.trim_end();
            let new = match name.strip_suffix(';') {
                Some(name) => format!("{name}\";"),
                None => format!("{name}\""),
            };
            Some(Remedy::Replace(new.into()))
        }
        // Characters that editors and web pages substitute for a minus sign and for quotes.
        SyntaxKind::BAD_CHAR => match text {
            "\u{2010}" | "\u{2011}" | "\u{2012}" | "\u{2013}" | "\u{2014}" | "\u{2212}" => {
                Some(Remedy::Replace("-".into()))
            }
            "\u{a0}" | "\u{202f}" | "\u{200b}" => Some(Remedy::Replace(" ".into())),
            "\u{feff}" => Some(Remedy::Replace("".into())),
            _ => None,
        },
        _ => None,
    }
}

/// Checks a `#` line. Line markers say where the text comes from; any other directive was meant for a preprocessor that
/// has not run.
fn hash_line(text: &str) -> Option<(ErrorCode, std::borrow::Cow<'static, str>)> {
    if is_line_marker(&text[1..]) {
        return None;
    }
    let directive = text[1..].split_ascii_whitespace().next().unwrap_or("");
    let is_number = directive == "line" || directive.bytes().all(|byte| byte.is_ascii_digit());
    let message = match text.starts_with("# ") || is_number {
        true if is_number => "expected a line marker such as `# 1 \"a.cu\"`, found `#`".to_owned(),
        true => "unexpected `#`; comments start with `//`".to_owned(),
        false => format!("unexpected preprocessor directive `#{directive}`; PTX must be preprocessed"),
    };
    Some((ErrorCode::Unexpected, message.into()))
}

/// `1 "a.cu" 2 3`, `line 1 "a.cu"`
fn is_line_marker(text: &str) -> bool {
    let is_number = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
    let Some((number, name)) = text.split_once('"') else { return false };
    let Some((_, flags)) = name.split_once('"') else { return false };
    let mut words = number.split_ascii_whitespace();
    let first = words.next().filter(|&word| word != "line").or_else(|| words.next());
    first.is_some_and(is_number)
        && words.next().is_none()
        && number.ends_with([' ', '\t'])
        && (flags.is_empty() || flags.starts_with([' ', '\t', '\r']))
        && flags.split_ascii_whitespace().all(is_number)
}

fn bad_character(text: &str) -> String {
    let mut characters = text.chars();
    match (characters.next(), characters.next()) {
        (Some('\0'), None) => {
            "unexpected NUL byte; PTX extracted from a binary often ends with one that must be removed"
                .to_owned()
        }
        (Some('\0'), _) => "unexpected NUL bytes; PTX must be plain ASCII".to_owned(),
        (Some('\u{FEFF}'), _) => "unexpected byte order mark; PTX must be plain ASCII".to_owned(),
        (Some(first), None) if first.is_ascii_control() => {
            format!("unexpected control character {:#04x}; PTX allows only printable ASCII", first as u32)
        }
        (Some(first), None) if first.is_ascii() => format!("unexpected character `{first}`"),
        (Some(first), None) => format!("unexpected character `{first}`; PTX must be ASCII"),
        _ => "unexpected non-ASCII text; PTX must be ASCII".to_owned(),
    }
}
