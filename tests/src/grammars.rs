//! Syntax highlighting without a server: generates the grammars of PTX and of machine code for VS Code and Neovim from
//! the tables.
//!
//! The tests compare the files in `editors` with the generated ones. `PTX_BLESS=1` writes them.

mod ptx;
mod sass_code;

use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

/// A regular expression that matches any of the words. The longest words come first, so that no word hides another.
fn any<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let words: BTreeSet<&str> = words.into_iter().collect();
    let mut words: Vec<&str> = words.into_iter().collect();
    words.sort_by_key(|word| std::cmp::Reverse(word.len()));
    words.join("|")
}

/// The same as a Vim regular expression.
fn any_in_vim<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    any(words).replace('|', "\\|")
}

fn check(path: &str, text: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../editors").join(path);
    if std::env::var_os("PTX_BLESS").is_some() {
        if let Some(folder) = file.parent() {
            std::fs::create_dir_all(folder).expect("a folder");
        }
        std::fs::write(&file, text).expect("the grammar is written");
        return;
    }
    let current = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(current == text, "editors/{path} is not what the tables say (PTX_BLESS=1 rewrites it)");
}

fn json(grammar: &Value) -> String {
    let text = serde_json::to_string_pretty(grammar).expect("JSON");
    text + "\n"
}

#[test]
fn the_grammars_are_made_from_the_tables() {
    check("vscode/syntaxes/ptx.tmLanguage.json", &json(&ptx::textmate()));
    check("vscode/syntaxes/ptx-sass.tmLanguage.json", &json(&sass_code::textmate()));
    check("neovim/syntax/ptx.vim", &ptx::vim());
    check("neovim/syntax/ptx-sass.vim", &sass_code::vim());
}
