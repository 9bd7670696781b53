//! The properties that hold for every input.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use lsp_types::{Position, Range, TextDocumentContentChangeEvent};
use ptx_analysis::items::items;
use ptx_analysis::lower::{lower, walk_without_shapes};
use ptx_analysis::{Code, Database, LinkOptions, SourceFile, dump, ide};
use ptx_analyzer::document::{Document, Encoding};
use text_size::{TextRange, TextSize};

use super::Case;
use fastrand::Rng as Random;

/// A named property. `check` panics if it does not hold.
pub struct Property {
    pub name: &'static str,
    pub check: fn(&Case),
    /// The number of cases that `cargo test` replays.
    pub replays: usize,
}

pub const PROPERTIES: &[Property] = &[
    Property { name: "syntax", check: syntax, replays: 60 },
    Property { name: "shapes", check: shapes, replays: 40 },
    Property { name: "document", check: document, replays: 40 },
    Property { name: "edits", check: edits, replays: 15 },
    Property { name: "features", check: features, replays: 10 },
    Property { name: "compile", check: compile, replays: 10 },
];

/// Tokens, items and trees cover the text, and each item on its own parses as it does in the file.
fn syntax(case: &Case) {
    for text in &case.texts {
        let bytes = text.as_bytes();
        ptx_syntax::fuzz::check_lex(bytes);
        ptx_syntax::fuzz::check_split(bytes);
        ptx_syntax::fuzz::check_split_again(bytes);
        ptx_syntax::fuzz::check_parse(bytes);
        ptx_syntax::fuzz::check_parse_item(bytes);
    }
}

/// The results for items do not depend on whether instructions that passed the checks are checked again. Uses all texts
/// together, so that shapes repeat.
fn shapes(case: &Case) {
    let text = case.texts.concat() + &case.texts[0];
    let (db, file) = database(case, &text);
    for &item in items(&db, file) {
        let anew = walk_without_shapes(&db, item);
        assert!(*lower(&db, item) == anew, "another way, another end: {}", item.name(&db));
    }
    // One walk over all items gives the same as one walk for each item.
    let frozen = db.add_frozen_file(text);
    assert!(ide::diagnostics(&db, frozen) == ide::diagnostics(&db, file), "together, another end");
}

/// Incremental changes give the same text as in the editor, in either encoding. Invalid positions give some text.
fn document(case: &Case) {
    for encoding in [Encoding::Utf8, Encoding::Utf16] {
        let mut document = Document::new(&case.texts[0], 0, encoding);
        for (version, pair) in case.texts.windows(2).enumerate() {
            let change = difference(&pair[0], &pair[1], encoding);
            document.apply(version as i32 + 1, vec![change]);
            assert_eq!(document.text(), pair[1]);
        }
        let mut random = random_of(&case.texts[0]);
        for version in 0..8 {
            let mut wild = || Position::new(random.usize(..300) as u32, random.usize(..100) as u32);
            let range = Some(Range::new(wild(), wild()));
            let change =
                TextDocumentContentChangeEvent { range, range_length: None, text: "x𝄞\r\n".into() };
            document.apply(100 + version, vec![change]);
        }
    }
}

fn random_of(text: &str) -> Random {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    Random::with_seed(hasher.finish())
}

/// The smallest change from one text to another.
fn difference(old: &str, new: &str, encoding: Encoding) -> TextDocumentContentChangeEvent {
    let prefix = old.bytes().zip(new.bytes()).take_while(|(a, b)| a == b).count();
    let prefix = floor(old, prefix);
    let rest = old.len().min(new.len()) - prefix;
    let suffix = old.bytes().rev().zip(new.bytes().rev()).take(rest).take_while(|(a, b)| a == b).count();
    // No change splits a line break, because the protocol has no position between `\r` and `\n`.
    let mut end = old.len() - suffix;
    while !old.is_char_boundary(end) || inside_break(old, end) {
        end += 1;
    }
    let suffix = old.len() - end;
    let mut start = prefix;
    while !old.is_char_boundary(start) || inside_break(old, start) {
        start -= 1;
    }
    let range = Range::new(position(old, start, encoding), position(old, end, encoding));
    let text = new[start..new.len() - suffix].to_owned();
    TextDocumentContentChangeEvent { range: Some(range), range_length: None, text }
}

fn floor(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn inside_break(text: &str, at: usize) -> bool {
    at > 0 && text[..at].ends_with('\r') && text[at..].starts_with('\n')
}

fn position(text: &str, at: usize, encoding: Encoding) -> Position {
    // Lines end at `\n`, `\r\n` or `\r`.
    let ends = |&(i, c): &(usize, char)| c == '\n' || c == '\r' && !inside_break(text, i + 1);
    let lines = text.char_indices().take_while(|(i, _)| *i < at).filter(ends);
    let (line, line_start) = lines.fold((0, 0), |(line, _), (i, _)| (line + 1, i + 1));
    let before = &text[line_start..at];
    let column = match encoding {
        Encoding::Utf8 => before.len(),
        Encoding::Utf16 => before.encode_utf16().count(),
    };
    Position::new(line as u32, column as u32)
}

fn database(case: &Case, text: &str) -> (Database, SourceFile) {
    let mut db = Database::default();
    db.set_target_override(case.target);
    let file = db.add_file(text);
    (db, file)
}

/// After each edit, all results are equal to those of a database that has never seen another text.
fn edits(case: &Case) {
    let (mut db, file) = database(case, "");
    for text in &case.texts {
        db.set_text(file, text.as_str());
        let (fresh, fresh_file) = database(case, text);
        let found = ide::diagnostics(&db, file);
        assert_eq!(found, ide::diagnostics(&fresh, fresh_file));
        assert!(found.iter().all(|d| usize::from(d.range.end()) <= text.len()), "a range outside the text");
        for stage in ["tree", "items", "lowered"] {
            assert_eq!(dump::dump(&db, file, stage, None), dump::dump(&fresh, fresh_file, stage, None));
        }
        assert_eq!(ide::compile_diagnostics(&db, file), ide::compile_diagnostics(&fresh, fresh_file));
        assert_eq!(ide::function_resources(&db, file), ide::function_resources(&fresh, fresh_file));
    }
}

/// Every editor feature answers at every position, with ranges inside the text.
fn features(case: &Case) {
    for text in &case.texts {
        let (db, file) = database(case, text);
        let whole = TextRange::up_to(TextSize::of(text.as_str()));
        let inside = |range: TextRange| {
            assert!(whole.contains_range(range) && text.get(std::ops::Range::<usize>::from(range)).is_some());
        };
        ide::semantic_tokens(&db, file, None).iter().for_each(|token| inside(token.range));
        ide::document_symbols(&db, file).iter().for_each(|symbol| inside(symbol.full));
        ide::folding_ranges(&db, file);
        ide::inlay_hints(&db, file, whole, Code::Awaited);
        ide::code_lenses(&db, file, Code::Awaited).iter().for_each(|lens| inside(lens.range));
        let mut random = random_of(text);
        for _ in 0..12 {
            let offset = TextSize::new(floor(text, random.usize(..text.len() + 1)) as u32);
            ide::hover(&db, file, offset, Code::Awaited);
            ide::completions(&db, file, offset);
            ide::signature_help(&db, file, offset);
            ide::definition(&db, file, offset);
            ide::highlights(&db, file, offset);
            ide::code_actions(&db, file, TextRange::new(offset, whole.end()));
            ide::sass_view_at(&db, file, offset, ide::SassStyle::default());
            for reference in ide::references(&db, file, offset).unwrap_or_default() {
                inside(reference.range);
            }
            if ide::prepare_rename(&db, file, offset).is_some() {
                let _ = ide::rename(&db, file, offset, "renamed");
            }
        }
    }
}

/// A text without errors compiles and links, or is rejected with a reason. The compiler never fails internally.
fn compile(case: &Case) {
    let text = &case.texts[0];
    let (db, file) = database(case, text);
    let mut found = ide::diagnostics(&db, file);
    found.extend(ide::compile_diagnostics(&db, file));
    if let Some(defect) = found.iter().find(|d| d.lint.name == "internal") {
        panic!("{}", defect.message);
    }
    let _ = ptx_analysis::link(&db, file, &LinkOptions::default());
}
