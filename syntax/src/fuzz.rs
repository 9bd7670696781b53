//! Properties that hold for every input, as functions for a fuzzer.

use crate::flat::{FlatTree, Node};
use text_size::TextRange;

use crate::{NodeOrToken, RawItem, SyntaxKind, SyntaxNode, lex, parse_file, parse_item, split, split_again};

fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The tokens cover the text, and none is empty.
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

/// The items cover the text in order, and contain their names.
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

/// After a change, splitting again gives the items of the new text, whether items are recomputed or kept.
pub fn check_split_again(bytes: &[u8]) {
    let text = text_of(bytes);
    let mut random =
        bytes.iter().fold(0x9E37_79B9_u32, |hash, &byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    let mut place = |text: &str| {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        text.floor_char_boundary(((u64::from(random) * (text.len() as u64 + 1)) >> 32) as usize)
    };
    for _ in 0..32 {
        let (a, b) = (place(&text), place(&text));
        let (start, end) = (a.min(b), a.max(b));
        let shorter = [&text[..start], &text[end..]].concat();
        check_change(&text, &shorter, start, text.len() - end);
        check_change(&shorter, &text, start, text.len() - end);
        let (c, d) = (place(&text), place(&text));
        let other = [&text[..start], &text[c.min(d)..c.max(d)], &text[end..]].concat();
        check_change(&text, &other, start, text.len() - end);
    }
}

fn check_change(before: &str, after: &str, same_before: usize, same_after: usize) {
    let (old, new) = (split(before), split(after));
    let again = split_again(after, &old, same_before, same_after);
    let moved = old[old.len() - again.kept_after..].iter().map(|item| {
        let shift = |range: TextRange| {
            let start = u32::from(range.start()) + after.len() as u32;
            let start = start - before.len() as u32;
            TextRange::at(start.into(), range.len())
        };
        RawItem { range: shift(item.range), name: item.name.map(shift), ..*item }
    });
    let all: Vec<RawItem> =
        old[..again.kept_before].iter().copied().chain(again.items).chain(moved).collect();
    assert_eq!(all, new, "{before:?} became {after:?}");
}

/// The tree of a file has the text of the file; the errors are sorted and lie within the text; and each item on its own
/// parses to the same tree.
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

/// The item parser accepts any text, whether or not it is one item.
pub fn check_parse_item(bytes: &[u8]) {
    let text = text_of(bytes);
    let item = parse_item(&text);
    assert!(item.syntax().text() == text.as_str());
    check_errors(&item, text.len());
    let mut tree = FlatTree::default();
    tree.parse(&text);
    assert_eq!(tree.errors, item.errors);
    check_flat(tree.root(), &item.syntax());
}

/// Checks that both trees have the same nodes and tokens in the same places, except blanks and comments.
fn check_flat(flat: Node<'_>, node: &SyntaxNode) {
    assert_eq!(flat.kind(), node.kind());
    let is_apart = |element: &crate::SyntaxElement| {
        let is_rest = |token: crate::SyntaxToken| {
            token.kind() == SyntaxKind::SKIPPED && token.text_range().end() == node.text_range().end()
        };
        // If the parser gave up, only the lossless tree contains the rest of the text.
        let first = element.as_node().and_then(SyntaxNode::first_token);
        element.kind().is_trivia() || node.parent().is_none() && first.is_some_and(is_rest)
    };
    let mut others = node.children_with_tokens().filter(|element| !is_apart(element));
    for element in flat.elements() {
        match (element, others.next()) {
            (NodeOrToken::Node(flat), Some(NodeOrToken::Node(node))) => check_flat(flat, &node),
            (NodeOrToken::Token(flat), Some(NodeOrToken::Token(token))) => {
                assert_eq!((flat.kind, flat.range), (token.kind(), token.text_range()));
            }
            (NodeOrToken::Node(flat), None) => assert_eq!(flat.kind(), SyntaxKind::ERROR),
            (flat, other) => panic!("{flat:?} is not {other:?}"),
        }
    }
    assert_eq!(others.next(), None);
}

fn check_errors(parse: &crate::Parse, len: usize) {
    for error in &parse.errors {
        assert!(usize::from(error.range.end()) <= len, "{error:?} is outside the text");
        assert!(!error.message.is_empty());
    }
    assert!(parse.errors.is_sorted_by_key(|error| error.range.start()));
}
