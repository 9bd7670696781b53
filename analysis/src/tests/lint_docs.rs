//! The pages in `docs/lints` are tests. Each example of a page has findings exactly where the carets are; the first one
//! has a finding of the page's lint, and the last one has no findings.
//!
//! A block marked `ptx` is a module, and one marked `ptx body` is the body of a kernel. `ptx arch=sm_90` is assembled
//! for this architecture, and `ptx compile` is compiled too. The line after a line with a finding is
//! `// ^^^ error[CODE]: start of the message`, with the carets below the marked text. `UPDATE_EXPECT=1 cargo test`
//! rewrites the messages, but not the carets.

use ptx_isa::Sm;

use crate::check::LINTS;
use crate::db::Database;
use crate::diagnostic::{Diagnostic, Levels, Lint, Severity};
use crate::ide;

/// Lints that no example can trigger: for bytes that are not text, and for defects of the compiler.
const WITHOUT_EXAMPLE: &[&str] = &["E0008", "W0604"];

const HEADER: &str = ".version 9.0\n.target sm_90\n.address_size 64\n";

struct Example {
    is_body: bool,
    /// `arch=sm_90`: the architecture for which the module is assembled.
    architecture: Option<Sm>,
    /// `compile`: the function is compiled too.
    is_compiled: bool,
    text: String,
}

fn examples(page: &str) -> Vec<Example> {
    let mut examples = Vec::new();
    let mut open: Option<Example> = None;
    for line in page.lines() {
        match (&mut open, line.trim_end()) {
            (None, line) if line == "```ptx" || line.starts_with("```ptx ") => {
                let mut words = line.split(' ').skip(1);
                let architecture = line.split(' ').find_map(|word| Sm::parse(word.strip_prefix("arch=")?));
                let is_compiled = line.ends_with(" compile");
                open = Some(Example {
                    is_body: words.any(|word| word == "body"),
                    architecture,
                    is_compiled,
                    text: String::new(),
                });
            }
            (Some(_), "```") => examples.extend(open.take()),
            (Some(example), line) => {
                example.text.push_str(line);
                example.text.push('\n');
            }
            _ => {}
        }
    }
    examples
}

/// The module of an example, and its findings.
fn findings(lint: &'static Lint, example: &Example) -> (String, Vec<Diagnostic>) {
    let text = if example.is_body {
        format!("{HEADER}.visible .entry kernel(.param .u64 p)\n{{\n{}ret;\n}}\n", example.text)
    } else {
        example.text.clone()
    };
    let mut db = Database::default();
    let mut levels = Levels::default();
    // Examples are short, so registers that do not matter in them have no value.
    levels.set(crate::check::lint("unassigned-read").unwrap(), Severity::Allow);
    levels.set(lint, lint.default.max(Severity::Information));
    db.set_levels(levels);
    db.set_architecture(example.architecture);
    let file = db.add_file(text.as_str());
    let mut found = ide::diagnostics(&db, file);
    if example.is_compiled {
        found.extend(ide::compile_diagnostics(&db, file));
    }
    (text, found)
}

/// The markers in a text: line, columns, and the text after the carets.
fn markers(text: &str) -> Vec<(u32, u32, u32, String)> {
    let mut markers = Vec::new();
    let mut code_line = 0;
    for (number, line) in text.lines().enumerate() {
        let Some(start) = line.find("^").filter(|_| line.trim_start().starts_with("//")) else {
            code_line = number as u32;
            continue;
        };
        let count = line[start..].bytes().take_while(|&byte| byte == b'^').count();
        let rest = line[start + count..].trim().to_owned();
        markers.push((code_line, start as u32, (start + count) as u32, rest));
    }
    markers
}

fn check(lint: &'static Lint) -> Result<(), String> {
    let examples = examples(lint.page);
    let [first, .., last] = examples.as_slice() else {
        let is_excused = WITHOUT_EXAMPLE.contains(&lint.code) && examples.is_empty();
        return if is_excused {
            Ok(())
        } else {
            Err("an example that fires and one that does not".to_owned())
        };
    };
    if !first.text.contains(&format!("[{}]", lint.code)) {
        return Err("the first example does not mark the lint".to_owned());
    }
    for example in &examples[..examples.len() - 1] {
        check_markers(lint, example)?;
    }
    let (_, found) = findings(lint, last);
    match found.first() {
        Some(finding) => Err(format!("the last example still gives {finding}")),
        None => Ok(()),
    }
}

/// Checks that an example has the findings that it marks, and no others.
fn check_markers(lint: &'static Lint, example: &Example) -> Result<(), String> {
    let (text, found) = findings(lint, example);
    let lines = ::line_index::LineIndex::new(&text);
    let markers = markers(&text);
    for (line, start, end, rest) in &markers {
        let here = |d: &&Diagnostic| {
            let (from, to) = (lines.line_col(d.range.start()), lines.line_col(d.range.end()));
            from.line == *line
                && from.col == *start
                && (to.col.max(from.col + 1) == *end || to.line > from.line)
        };
        if !found.iter().filter(here).any(|d| d.to_string().starts_with(rest.as_str())) {
            let code = rest.split(']').next().unwrap_or_default();
            let new = found.iter().filter(here).map(Diagnostic::to_string).find(|d| d.starts_with(code));
            if let (Some(new), Some(_)) = (new, std::env::var_os("UPDATE_EXPECT")) {
                let page = format!("{}/docs/lints/{}.md", env!("CARGO_MANIFEST_DIR"), lint.code);
                let text = std::fs::read_to_string(&page).expect("the page of a lint");
                std::fs::write(&page, text.replace(rest.as_str(), &new)).expect("the page of a lint");
                continue;
            }
            let all: Vec<String> =
                found.iter().map(|d| format!("{:?} {d}", lines.line_col(d.range.start()))).collect();
            return Err(format!("line {line}, column {start}: expected `{rest}`, found {all:#?}"));
        }
    }
    if found.len() != markers.len() {
        let all: Vec<String> = found.iter().map(Diagnostic::to_string).collect();
        return Err(format!("{} markers for {all:#?}", markers.len()));
    }
    Ok(())
}

#[test]
fn pages_are_true() {
    let failures: Vec<String> = LINTS
        .iter()
        .filter_map(|lint| check(lint).err().map(|error| format!("{}: {error}", lint.code)))
        .collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// The text of a finding whose check adds no details.
#[test]
fn pages_have_a_short_rule() {
    for lint in LINTS {
        let rule = lint.rule();
        assert!(!rule.contains("```") && (15..260).contains(&rule.len()), "{}: {rule}", lint.code);
    }
}

/// The committed index of all diagnostics. `UPDATE_EXPECT=1 cargo test -p ptx-analysis` rewrites it.
#[test]
fn index_of_diagnostics() {
    let mut index =
        String::from("# Diagnostics\n\n`ptx-check --explain CODE` prints the page of a code.\n\n");
    index += "| code | name | level | meaning |\n|---|---|---|---|\n";
    let mut all: Vec<&Lint> = LINTS.to_vec();
    all.sort_by_key(|lint| lint.code);
    for lint in all {
        let (code, name, level) = (lint.code, lint.name, lint.default.text());
        let page = format!("../analysis/docs/lints/{code}.md");
        index += &format!("| [{code}]({page}) | {name} | {level} | {} |\n", lint.summary.trim());
    }
    expect_test::expect_file!["../../../docs/diagnostics.md"].assert_eq(&index);
}
