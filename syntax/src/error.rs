//! Syntax errors.

use std::borrow::Cow;

use text_size::TextRange;

/// The stable code of a class of syntax errors.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ErrorCode {
    /// A character that PTX does not use.
    BadCharacter,
    /// A comment or string that is not closed.
    Unterminated,
    /// A malformed number: bad digits, or too many of them.
    BadNumber,
    /// The grammar expects another token here.
    Unexpected,
    /// A `;` is missing.
    MissingSemicolon,
    /// An unbalanced bracket.
    Unbalanced,
    /// A limit on nesting, errors or parser steps is exceeded.
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

/// An error in the text. The range is relative to the parsed text.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct SyntaxError {
    pub code: ErrorCode,
    pub range: TextRange,
    pub message: Cow<'static, str>,
    pub remedy: Option<Remedy>,
}

/// A change of the text that fixes an error. It refers to the range of the error.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Remedy {
    /// Insert this text after the token before the range.
    Insert(&'static str),
    /// Replace the range with this text. If the text is empty, delete the range.
    Replace(Cow<'static, str>),
}
