//! Why the functions of a module are not called by ptxas's calling convention.

use ptx_syntax::{ItemKind, SyntaxKind, lex};

use crate::db::{Db, SourceFile};
use crate::items::items;
use crate::module::module;

/// A construct that the calling convention does not support.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Unconventional {
    /// A register or a local variable of module scope, by its name.
    Variable(String),
    /// Several results of a function, by its name.
    Results(String),
}

/// The construct that prevents the module's functions from being called by the convention.
pub fn unconventional(db: &dyn Db, file: SourceFile) -> Option<Unconventional> {
    let mut variables = items(db, file).iter().filter(|item| item.kind(db) == ItemKind::Variable);
    if let Some(name) = variables.find_map(|item| per_thread(item.text(db))) {
        return Some(Unconventional::Variable(name));
    }
    let function = module(db, file).env.functions.iter().find(|function| function.returns.len() > 1)?;
    Some(Unconventional::Results(function.name.clone()))
}

/// The first name in a declaration of registers or of a local variable.
fn per_thread(text: &str) -> Option<String> {
    let mut at = 0;
    let mut is_wanted = false;
    let mut last = None;
    for token in lex(text) {
        let word = &text[at..at + token.len as usize];
        at += token.len as usize;
        match token.kind {
            SyntaxKind::DOT_WORD => is_wanted |= matches!(word, ".reg" | ".local"),
            _ if token.kind.is_trivia() => {}
            _ if last.is_none() && word.starts_with(|c: char| c.is_alphabetic() || "_$%".contains(c)) => {
                last = Some(word);
            }
            _ => {}
        }
    }
    last.filter(|_| is_wanted).map(str::to_owned)
}
