//! Formatting of whole programs.

use std::path::Path;

use crate::db::Database;
use crate::ide;
use ptx_syntax::{NodeOrToken, SyntaxKind, parse_file};

/// The nodes and tokens of a text, without blanks.
fn shape(text: &str) -> Vec<(SyntaxKind, String)> {
    let elements = parse_file(text).syntax().descendants_with_tokens().filter_map(|element| match element {
        NodeOrToken::Node(node) => Some((node.kind(), String::new())),
        NodeOrToken::Token(token) if token.kind() == SyntaxKind::WHITESPACE => None,
        NodeOrToken::Token(token) => Some((token.kind(), token.text().to_owned())),
    });
    // Blanks and comments after the last item are in a separate node.
    elements.filter(|(kind, _)| *kind != SyntaxKind::TRIVIA).collect()
}

/// Formatting changes only blanks, and formatting twice changes nothing more.
#[test]
fn programs_keep_their_tokens() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the package lies in the workspace");
    let mut count = 0;
    for folder in ["examples", "tests/kernels"] {
        for entry in std::fs::read_dir(root.join(folder)).expect("a readable folder").flatten() {
            let path = entry.path();
            if path.extension().is_none_or(|extension| extension != "ptx") {
                continue;
            }
            let text = std::fs::read_to_string(&path).expect("a text file");
            let db = Database::default();
            let once = ide::formatted(&db, db.add_file(text.as_str()));
            assert!(shape(&text) == shape(&once), "{}: {once}", path.display());
            assert!(ide::formatted(&db, db.add_file(once.as_str())) == once, "{}", path.display());
            let is_laid_out =
                once.lines().all(|line| line.len() == line.trim_end().len() && !line.contains('\t'));
            assert!(is_laid_out || text.contains("/*"), "{}: {once}", path.display());
            count += 1;
        }
    }
    assert!(count > 10);
}

/// In texts with errors, too, formatting twice changes nothing more: programs with tokens removed, doubled, exchanged
/// and joined to one line.
#[test]
fn texts_with_errors_are_stable() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the package lies in the workspace");
    let mut seed: u64 = 1;
    let mut random = move |below: usize| {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (seed >> 33) as usize % below
    };
    let mut changed = 0;
    for entry in std::fs::read_dir(root.join("tests/kernels")).expect("a readable folder").flatten() {
        let path = entry.path();
        if path.extension().is_none_or(|extension| extension != "ptx") {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("a text file");
        let mut start = random(text.len().min(4000));
        while !text.is_char_boundary(start) {
            start -= 1;
        }
        let part: String = text[start..].chars().take(600).collect();
        let tokens: Vec<&str> = {
            let mut at = 0;
            let cut = |token: ptx_syntax::Token| {
                let start = at;
                at += token.len as usize;
                &part[start..at]
            };
            ptx_syntax::lex(&part).into_iter().map(cut).collect()
        };
        let mut tokens: Vec<&str> = tokens;
        for _ in 0..random(8) {
            let (at, other) = (random(tokens.len()), random(tokens.len()));
            match random(5) {
                0 => drop(tokens.remove(at)),
                1 => tokens.insert(other, tokens[at]),
                2 => tokens.swap(at, other),
                3 => tokens
                    .insert(at, ["{", "}", ";", ".entry", ".global", ".reg", ")", "\n", "//"][random(9)]),
                _ => tokens[at] = " ",
            }
            if tokens.is_empty() {
                break;
            }
        }
        let text = tokens.concat();
        let db = Database::default();
        let once = ide::formatted(&db, db.add_file(text.as_str()));
        let twice = ide::formatted(&db, db.add_file(once.as_str()));
        assert!(once == twice, "{}: {text:?}\n{once}\n{twice}", path.display());
        changed += usize::from(once != text);
    }
    assert!(changed > 10);
}
