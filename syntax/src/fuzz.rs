//! Properties that hold for every input, as plain functions for a fuzzer.

use crate::{SyntaxNode, lex, parse_file, parse_item, split};

fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The tokens cover the text, each with at least one byte.
pub fn check_lex(bytes: &[u8]) {
    let text = text_of(bytes);
    let mut end = 0;
    for token in lex(&text) {
        assert!(token.len > 0);
        end += token.len as usize;
        assert!(text.is_char_boundary(end));
    }
    assert_eq!(end, text.len());
}

/// The items cover the text, in order, with their names inside.
pub fn check_split(bytes: &[u8]) {
    let text = text_of(bytes);
    let mut end = 0;
    for item in split(&text) {
        let range = std::ops::Range::<usize>::from(item.range);
        assert_eq!(range.start, end);
        assert!(range.end > range.start);
        end = range.end;
        assert!(text.is_char_boundary(end));
        if let Some(name) = item.name {
            assert!(item.range.contains_range(name) && !text[name].is_empty());
        }
    }
    assert_eq!(end, text.len());
}

/// The tree of a file has the text of the file, its errors lie in it in order, and each item parses alone to the
/// same tree.
pub fn check_parse(bytes: &[u8]) {
    let text = text_of(bytes);
    let file = parse_file(&text);
    assert!(file.syntax().text() == text.as_str());
    check_errors(&file, text.len());
    let nodes: Vec<SyntaxNode> = file.syntax().children().collect();
    let items = split(&text);
    assert_eq!(nodes.len(), items.len());
    for (item, node) in items.iter().zip(nodes) {
        assert_eq!(item.range, node.text_range());
        let alone = parse_item(&text[item.range]);
        assert!(*alone.green == *node.green());
        check_errors(&alone, item.range.len().into());
    }
}

/// Any text, whole items or not, can be given to the parser of items.
pub fn check_parse_item(bytes: &[u8]) {
    let text = text_of(bytes);
    let item = parse_item(&text);
    assert!(item.syntax().text() == text.as_str());
    check_errors(&item, text.len());
}

fn check_errors(parse: &crate::Parse, len: usize) {
    for error in &parse.errors {
        assert!(usize::from(error.range.end()) <= len, "{error:?} is outside the text");
        assert!(!error.message.is_empty());
    }
    assert!(parse.errors.is_sorted_by_key(|error| error.range.start()));
}
