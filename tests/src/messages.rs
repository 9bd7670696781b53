//! The table of ptxas's messages and ours, docs/ptxas-messages.md.
//!
//! tests/messages/inputs.txt gives the messages of ptxas, most with an input that causes the message. The test checks
//! these inputs, so the table shows what the checker reports. `PTX_BLESS=1` rewrites the table.
//! `tests/oracle/messages.py check` shows that ptxas has these messages for the inputs.

use std::fmt::Write;
use std::path::Path;

use ptx_analysis::diagnostic::{Diagnostic, Severity};
use ptx_analysis::{Database, ide};
use ptx_isa::Sm;

/// The target of inputs that do not name one.
const TARGET: &str = "sm_90a";

const HEAD: &str = "# Messages of ptxas 13.0.88, and ours

The left columns give a message of ptxas, in which `*` stands for a name and `N` for a number. The right columns give the \
code of the same finding in `ptx-check`, and an example of our message. `ptx-check --explain CODE` prints the page of a \
code.

A test checks the inputs of these examples (`tests/messages/inputs.txt`) and writes this table. No input is known yet for \
rows without an example.

| | ptxas | code | ours, for example |
|---|---|---|---|
";

const TAIL: &str = "
## Without a counterpart

- Unresolved extern variable '*' in whole program compilation, ignoring extern qualifier: a warning about what works
- Memory allocation failure, Internal error, TIMEOUT: failures of the assembler
- Advice of the code generator (stack sizes, register bounds, `wgmma` products that ptxas serializes, C7509 to C7511 and C7520):
  no counterpart
";

/// A message of ptxas.
#[derive(Default)]
struct Row<'a> {
    severity: &'a str,
    message: &'a str,
    /// The codes of our messages, one of which is reported for the input.
    codes: &'a str,
    target: &'a str,
    arch: Option<&'a str>,
    input: String,
}

fn rows(text: &str) -> Result<Vec<Row<'_>>, String> {
    let mut rows: Vec<Row<'_>> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (name, value) = line.split_once(": ").unwrap_or((line, ""));
        match (name, rows.last_mut()) {
            ("fatal" | "error" | "warning" | "info", _) => {
                rows.push(Row { severity: name, message: value, target: TARGET, ..Row::default() });
            }
            (_, Some(row)) if line.starts_with("    ") => row.input += &format!("{}\n", &line[4..]),
            ("code", Some(row)) => row.codes = value,
            ("target", Some(row)) => row.target = value,
            ("arch", Some(row)) => row.arch = Some(value),
            _ => return Err(format!("`{line}` is neither a message nor a part of one")),
        }
    }
    Ok(rows)
}

impl Row<'_> {
    /// The module of the input.
    fn module(&self, template: &str) -> Option<String> {
        if self.input.starts_with(".version") || self.input.starts_with("//") {
            return Some(self.input.clone());
        }
        let (head, rest) = template.split_once("// MODULE\n")?;
        let (before, after) = rest.split_once("// BODY\n")?;
        let head = head.replace("TARGET", self.target);
        Some(match self.input.starts_with('.') {
            true => head + &self.input,
            false => [&head, before, &self.input, after].concat(),
        })
    }

    /// What we report for the input.
    fn finding(&self, template: &str) -> Result<Diagnostic, String> {
        let module = self.module(template).ok_or("module.ptx has no place for the input")?;
        let mut db = Database::default();
        db.set_architecture(self.arch.map(Sm::known).transpose()?);
        let file = db.add_file(module.as_str());
        let is_error = matches!(self.severity, "fatal" | "error");
        let is_meant = |d: &&Diagnostic| match self.codes {
            "" => (d.severity == Severity::Error) == is_error,
            codes => codes.split(", ").any(|code| code == d.code()),
        };
        let found = ide::diagnostics(&db, file);
        let of_no_use =
            || format!("no such finding for `{}: {}`\n{module}{found:?}", self.severity, self.message);
        found.iter().find(is_meant).cloned().ok_or_else(of_no_use)
    }
}

/// The table, as it must be.
fn table(inputs: &str, template: &str) -> Result<String, String> {
    let mut out = HEAD.to_owned();
    let cell = |text: &str| text.replace('|', "\\|");
    for row in rows(inputs)? {
        let (code, example) = match row.input.is_empty() {
            true => (row.codes.to_owned(), String::new()),
            false => {
                let found = row.finding(template)?;
                let condition = if row.arch.is_some() { "with `--arch`: " } else { "" };
                (found.code().to_owned(), format!("{condition}{} ", cell(&found.message)))
            }
        };
        let _ = writeln!(out, "| {} | {} | {code} | {example}|", row.severity, cell(row.message));
    }
    Ok(out + TAIL)
}

#[test]
fn the_table_shows_our_messages() {
    let read = |path: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    let table =
        table(&read("messages/inputs.txt"), &read("messages/module.ptx")).unwrap_or_else(|e| panic!("{e}"));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/ptxas-messages.md");
    if std::env::var_os("PTX_BLESS").is_some() {
        return std::fs::write(path, table).expect("the table is written");
    }
    let old = std::fs::read_to_string(path).expect("the table");
    let changed: Vec<_> = table.lines().zip(old.lines()).filter(|(new, old)| new != old).take(5).collect();
    assert!(old == table, "the table is not true any more (PTX_BLESS=1 rewrites it): {changed:#?}");
}
