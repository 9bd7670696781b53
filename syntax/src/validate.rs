//! What is wrong with single tokens: bad characters, open comments and strings, bad numbers.

use text_size::{TextRange, TextSize};

use crate::ast::literal;
use crate::lexer::Token;
use crate::{ErrorCode, Remedy, SyntaxError, SyntaxKind, scan};

/// More bad tokens than this in one item help nobody.
const MAX_ERRORS: usize = 200;

/// Adds the errors of the tokens of `text` to `errors`.
pub(crate) fn tokens(text: &str, tokens: &[Token], errors: &mut Vec<SyntaxError>) {
    let mut start = 0;
    let mut budget = MAX_ERRORS;
    for token in tokens {
        let end = start + token.len as usize;
        if let Some((code, message)) = check(token.kind, &text[start..end]) {
            let remedy = remedy(token.kind, &text[start..end]);
            let range = TextRange::new(TextSize::new(start as u32), TextSize::new(end as u32));
            // The parser may have wondered about the same token; the reason is here.
            errors.retain(|error| error.range != range);
            errors.push(SyntaxError { code, range, message, remedy });
            budget -= 1;
            if budget == 0 {
                return;
            }
        }
        start = end;
    }
}

/// Whether the text ends inside a block comment.
pub(crate) fn ends_in_open_comment(text: &str, tokens: &[Token]) -> bool {
    tokens.last().is_some_and(|token| {
        let start = text.len() - token.len as usize;
        token.kind == SyntaxKind::BLOCK_COMMENT && !scan::block_comment_end(text.as_bytes(), start).1
    })
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

/// What a token should have been.
fn remedy(kind: SyntaxKind, text: &str) -> Option<Remedy> {
    match kind {
        // `1.0f` of C.
        SyntaxKind::FLOAT => {
            let digits = text.strip_suffix(['f', 'F', 'l', 'L'])?;
            literal::float(digits).is_ok().then(|| Remedy::Replace(digits.to_owned().into()))
        }
        // The assembly of other machines, or of Python.
        SyntaxKind::HASH_LINE if text.starts_with("# ") => {
            Some(Remedy::Replace(format!("//{}", &text[1..]).into()))
        }
        _ => None,
    }
}

/// Line markers say where text comes from; every other directive is for a preprocessor that has not run.
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
        (Some('\0'), _) => {
            "unexpected NUL byte; PTX extracted from a binary often ends with one that must be removed"
                .to_owned()
        }
        (Some('\u{FEFF}'), _) => "unexpected byte order mark; PTX must be plain ASCII".to_owned(),
        (Some(first), None) if first.is_ascii_control() => {
            format!("unexpected control character {:#04x}; PTX allows only printable ASCII", first as u32)
        }
        (Some(first), None) if first.is_ascii() => format!("unexpected character `{first}`"),
        (Some(first), None) => format!("unexpected character `{first}`; PTX must be ASCII"),
        _ => "unexpected non-ASCII text; PTX must be ASCII".to_owned(),
    }
}
