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
