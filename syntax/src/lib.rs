//! Lossless syntax trees for PTX.
//!
//! `text -> lex -> parse -> green tree`, with typed views (`ast`) on top. No step fails: every byte of the input is in
//! the tree, and errors are in a separate list. A file is first split into top-level items (`split`). Each item is
//! parsed on its own, so an edit requires parsing only one item again.
//!
//! The grammar accepts instructions by their shape (`name.suffix… operand, operand;`) whether or not the name exists.
//! The instruction table decides which suffixes and operands are legal.

pub mod ast;
mod error;
pub mod flat;
#[doc(hidden)]
pub mod fuzz;
mod grammar;
mod kind;
mod lexer;
mod parser;
pub mod ptr;
mod scan;
pub mod split;
mod tree;
mod validate;

#[cfg(test)]
mod tests;

pub use error::{ErrorCode, Remedy, SyntaxError};
pub use grammar::type_of_c;
pub use kind::SyntaxKind;
pub use lexer::{Token, lex, next_token, tokens};
pub use rowan::{Direction, GreenNode, NodeOrToken, TextRange, TextSize, TokenAtOffset, WalkEvent};
pub use scan::{Next, is_word, word_end};
pub use split::{Again, ItemKind, RawItem, split, split_again};
pub use tree::{
    Parse, PtxLanguage, StatementParser, SyntaxElement, SyntaxNode, SyntaxToken, dump, parse_file, parse_item,
};
