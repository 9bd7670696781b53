//! Syntax errors.

use std::borrow::Cow;

use text_size::TextRange;

/// Stable identity of a class of syntax errors.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ErrorCode {
    /// A character that PTX does not use.
    BadCharacter,
    /// A comment or string that is not closed.
    Unterminated,
    /// A number that is not one: bad digits, or too many of them.
    BadNumber,
    /// The grammar wants another token here.
    Unexpected,
    /// A `;` is missing.
    MissingSemicolon,
    /// A bracket without its partner.
    Unbalanced,
    /// Nesting, errors or parser steps beyond the limit.
    Limit,
}

impl ErrorCode {
    /// The code as shown to users.
    pub const fn as_str(self) -> &'static str {
        match self {
            ErrorCode::BadCharacter => "E0001",
            ErrorCode::Unterminated => "E0002",
            ErrorCode::BadNumber => "E0003",
            ErrorCode::Unexpected => "E0004",
            ErrorCode::MissingSemicolon => "E0005",
            ErrorCode::Unbalanced => "E0006",
            ErrorCode::Limit => "E0007",
        }
    }
}

/// Something wrong with the text. The range is relative to the text that was parsed.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct SyntaxError {
    pub code: ErrorCode,
    pub range: TextRange,
    pub message: Cow<'static, str>,
    pub remedy: Option<Remedy>,
}

/// What would mend the text, told by the range of its error.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Remedy {
    /// This is missing after what precedes the range.
    Insert(&'static str),
    /// This belongs in place of the range; nothing, where the range is too much.
    Replace(Cow<'static, str>),
}
