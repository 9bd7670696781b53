//! Compares whole trees with files, and checks the properties of `fuzz` on small inputs.
//!
//! Each `test_data/{lexer,parser}/{ok,err}/*.ptx` has its dump next to it. `UPDATE_EXPECT=1` writes the dumps.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use expect_test::expect_file;

use crate::{dump, fuzz, lex, parse_file, parse_item};

fn inputs(folder: &str) -> Vec<(PathBuf, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("test_data").join(folder);
    let mut paths: Vec<PathBuf> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "ptx"))
        .collect();
    paths.sort();
    assert!(!paths.is_empty(), "no inputs in {}", folder.display());
    paths.into_iter().map(|path| (path.clone(), fs::read_to_string(path).unwrap())).collect()
}

fn check_all(text: &str) {
    fuzz::check_lex(text.as_bytes());
    fuzz::check_split(text.as_bytes());
    fuzz::check_split_again(text.as_bytes());
    fuzz::check_parse(text.as_bytes());
    fuzz::check_parse_item(text.as_bytes());
}

#[test]
fn lexer() {
    for folder in ["lexer/ok", "lexer/err"] {
        for (path, text) in inputs(folder) {
            let mut out = String::new();
            let mut start = 0;
            for token in lex(&text) {
                let end = start + token.len as usize;
                let _ = writeln!(out, "{:?} {:?}", token.kind, &text[start..end]);
                start = end;
            }
            let errors = parse_file(&text).errors;
            let is_lexical = |code: &str| code <= "E0003";
            for error in errors.iter().filter(|error| is_lexical(error.code.as_str())) {
                let _ = writeln!(out, "error[{}] {:?}: {}", error.code.as_str(), error.range, error.message);
            }
            expect_file![path.with_extension("txt")].assert_eq(&out);
            check_all(&text);
        }
    }
}

#[test]
fn parser() {
    for (folder, has_errors) in [("parser/ok", false), ("parser/err", true)] {
        for (path, text) in inputs(folder) {
            let parse = parse_file(&text);
            expect_file![path.with_extension("txt")].assert_eq(&dump(&parse));
            assert_eq!(!parse.errors.is_empty(), has_errors, "{}", path.display());
            check_all(&text);
        }
    }
}

/// Every prefix and every suffix of a file satisfies the properties.
#[test]
fn truncation() {
    for (_, text) in inputs("parser/ok").into_iter().chain(inputs("parser/err")) {
        for at in (0..text.len()).step_by(3).filter(|at| text.is_char_boundary(*at)) {
            check_all(&text[..at]);
            fuzz::check_parse_item(&text.as_bytes()[at..]);
        }
    }
}

/// Deletes, duplicates or replaces any one token.
#[test]
fn token_edits() {
    for (_, text) in inputs("parser/ok") {
        let mut start = 0;
        for token in lex(&text) {
            let end = start + token.len as usize;
            let (before, token, after) = (&text[..start], &text[start..end], &text[end..]);
            start = end;
            if token.trim().is_empty() {
                continue;
            }
            for replacement in ["", "}", "{", ";", "\n.visible .func f\n", &token.repeat(2)] {
                fuzz::check_parse(format!("{before}{replacement}{after}").as_bytes());
            }
        }
    }
}

/// Words of the language in random order, which are much closer to programs than random bytes.
const WORDS: &[&str] = &[
    ".visible",
    ".extern",
    ".entry",
    ".func",
    "\n.func",
    "\n.entry",
    ".global",
    "\n.global",
    ".reg",
    ".param",
    ".align",
    ".u32",
    ".pragma",
    ".section",
    ".file",
    "\n.loc",
    ".callprototype",
    ".attribute",
    "f",
    "%r1",
    "$L",
    "_",
    "call",
    "add.u32",
    "\nret",
    "generic",
    "0xFF",
    "12",
    "0f3F800000",
    "1.5",
    "\"a\"",
    "\"",
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    ";",
    ",",
    ":",
    "@",
    "@@",
    "!",
    "-",
    "+",
    "|",
    "||",
    "?",
    "=",
    "<",
    "<<",
    ">",
    "%",
    "/*",
    "*/",
    "//",
    "\n",
    "\n#",
    " ",
    " ",
    ".",
    "::",
    "é",
    "\0",
    "\\",
];

proptest::proptest! {
    #[test]
    fn word_soup(words in proptest::collection::vec(proptest::sample::select(WORDS), 0..60)) {
        check_all(&words.concat());
        check_all(&words.join(" "));
    }
}

/// Deep nesting causes an error, not a stack overflow.
#[test]
fn nesting() {
    for open in ["{", "[", "(", "-", "!", "(.s64)", "{[", "1(", "a[", "a(", "a?", "{\n.reg .u32 x;", "1+("] {
        for place in
            [".func f() { mov.u32 %r1, ", ".func f() { ", ".global .u32 x = { ", ".section .s { .b8 "]
        {
            let text = format!("{place}{}", open.repeat(5_000));
            check_all(&text);
        }
    }
    let text = format!(".func f() {}{}", "{".repeat(5_000), "}".repeat(5_000));
    let parse = parse_item(&text);
    assert_eq!(parse.errors.len(), 1, "{:?}", parse.errors);
    assert_eq!(parse.errors[0].message, "nesting exceeds 200 levels");
}

/// An edit outside an item leaves the item's tree unchanged, and an error in one item does not affect the others.
#[test]
fn items_are_independent() {
    let good = ".func g() {\n\tret;\n}\n";
    for bad in [
        ".func f() {\n\tret;\n",
        ".func f(\n",
        ".global .u32 x\n",
        "} }\n",
        ".func f() {\n\t{\n\t\tret;\n}\n",
    ] {
        let text = format!("{bad}.visible {good}");
        let file = parse_file(&text);
        let last = file.syntax().last_child().unwrap();
        let last = last.prev_sibling().filter(|_| last.kind() == crate::SyntaxKind::TRIVIA).unwrap_or(last);
        assert_eq!(last.text().to_string().trim(), format!(".visible {good}").trim(), "after {bad:?}");
        assert!(
            file.errors.iter().all(|error| usize::from(error.range.start()) <= bad.len()),
            "{:?}",
            file.errors
        );
        assert!(!file.errors.is_empty());
    }
}

/// A text that is not PTX gives a small tree, however long it is.
#[test]
fn soup_is_kept_in_one_piece() {
    let nodes = |text: &str| {
        fuzz::check_parse_item(text.as_bytes());
        parse_item(text).syntax().descendants_with_tokens().count()
    };
    // More faults than the parser handles; and a single fault before very many tokens.
    for (open, piece, close) in [
        (".func f() {", "; ", "}"),
        (".func f() {", ")(,+ ", "}"),
        (".global .u32 a = 1", "+1", ";"),
        ("", "+ ", ""),
    ] {
        let [short, long] =
            [20_000, 40_000].map(|count| nodes(&(open.to_owned() + &piece.repeat(count) + close)));
        assert_eq!(short, long, "{open}{piece}{close}");
    }
}
