//! File tests: textual input, a command, and the output that was blessed.
//!
//! ```text
//! // What the test shows.
//! test phase OriFold
//! target sm_90
//!
//! func "f" {
//! …
//! }
//! // expect: func "f" {
//! // expect: …
//! ```
//!
//! `test cat` prints what was parsed; `test verify` lists what the verifier finds, or `ok`; `test phase A B` runs
//! the named phases in order, verifies the result and prints it. With `PTX_BLESS=1` the expectations are
//! rewritten.

use ptx_backend::ori::ir::Function;
use ptx_backend::ori::text;
use ptx_backend::ori::verify::{Stage, verify};
use ptx_backend::{Options, Session, phases};
use ptx_isa::Sm;
use std::path::{Path, PathBuf};

const EXPECT: &str = "// expect:";

/// A file taken apart.
struct Test<'a> {
    command: &'a str,
    sm: Sm,
    body: String,
    /// The lines before the expectations.
    source: Vec<&'a str>,
    expected: Vec<&'a str>,
}

fn parse(content: &str) -> Result<Test<'_>, String> {
    let lines: Vec<&str> = content.lines().collect();
    let end = lines.iter().position(|line| line.starts_with(EXPECT)).unwrap_or(lines.len());
    let (source, expected) = lines.split_at(end);
    let expected = expected
        .iter()
        .map(|line| {
            let text = line.strip_prefix(EXPECT).ok_or_else(|| format!("`{line}` after expectations"))?;
            Ok(text.strip_prefix(' ').unwrap_or(text))
        })
        .collect::<Result<_, String>>()?;
    let mut test =
        Test { command: "", sm: Sm::new(80), body: String::new(), source: source.to_vec(), expected };
    for line in source {
        if let Some(command) = line.strip_prefix("test ") {
            test.command = command.trim();
        } else if let Some(target) = line.strip_prefix("target sm_") {
            let number = target.trim().parse().map_err(|_| format!("`{line}` names no target"))?;
            test.sm = Sm::new(number);
        } else {
            test.body.push_str(line);
            test.body.push('\n');
        }
    }
    Ok(test)
}

fn run(test: &Test<'_>) -> Result<String, String> {
    let mut func = text::parse(&test.body).map_err(|error| format!("does not parse: {error}"))?;
    let (command, arguments) = test.command.split_once(' ').unwrap_or((test.command, ""));
    match command {
        "cat" => {
            let printed = text::print(&func);
            let again =
                text::parse(&printed).map_err(|error| format!("its print does not parse: {error}"))?;
            if text::print(&again) != printed {
                return Err("printing and parsing again changes it".to_owned());
            }
            Ok(printed)
        }
        "verify" => Ok(match verify(&func, Stage::Built) {
            Ok(()) => "ok\n".to_owned(),
            Err(errors) => errors.iter().map(|error| format!("{error}\n")).collect(),
        }),
        "phase" => {
            verified(&func, Stage::Built)?;
            let options = Options { sm: test.sm, opt_level: 3, max_registers: None };
            for name in arguments.split_whitespace() {
                let phase = phases::find(name).ok_or_else(|| format!("there is no phase `{name}`"))?;
                phases::run_phase(&mut func, phase, &options, &Session::default())
                    .map_err(|error| error.to_string())?;
                verified(&func, phase.result)?;
            }
            Ok(text::print(&func))
        }
        _ => Err(format!("unknown command `{command}`")),
    }
}

fn verified(func: &Function, stage: Stage) -> Result<(), String> {
    verify(func, stage).map_err(|errors| {
        let list: Vec<String> = errors.iter().map(ToString::to_string).collect();
        format!("{}\n{}", list.join("\n"), text::print(func))
    })
}

/// Runs the test in `path`; the difference, or what kept it from running.
fn check(path: &Path) -> Result<(), String> {
    let content = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let test = parse(&content)?;
    let output = run(&test)?;
    let lines: Vec<&str> = output.lines().collect();
    if lines == test.expected {
        return Ok(());
    }
    if std::env::var_os("PTX_BLESS").is_some() {
        let mut blessed = test.source.join("\n");
        blessed.push('\n');
        for line in lines {
            blessed.push_str(format!("{EXPECT} {line}").trim_end());
            blessed.push('\n');
        }
        return std::fs::write(path, blessed).map_err(|error| error.to_string());
    }
    Err(format!("expected:\n{}\nfound:\n{output}", test.expected.join("\n")))
}

/// The test files under `folder`, sorted.
fn files(folder: &Path, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    let mut entries = std::fs::read_dir(folder)?.collect::<Result<Vec<_>, _>>()?;
    entries.sort_by_key(std::fs::DirEntry::path);
    for entry in entries {
        let path = entry.path();
        if path.is_dir() {
            files(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "ori") {
            found.push(path);
        }
    }
    Ok(())
}

/// Runs every file under `folder`; one text per failure.
///
/// # Errors
/// The folder cannot be read.
pub fn check_all(folder: &Path) -> std::io::Result<Vec<String>> {
    let mut found = Vec::new();
    files(folder, &mut found)?;
    let failures = found.iter().filter_map(|path| {
        let name = path.strip_prefix(folder).unwrap_or(path).display();
        check(path).err().map(|reason| format!("{name}: {reason}"))
    });
    Ok(failures.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_gives_what_it_expects() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("filetests");
        let failures = check_all(&folder).expect("the folder of file tests can be read");
        assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    }

    #[test]
    fn malformed_tests_say_why() {
        let reason = |content: &str| parse(content).and_then(|test| run(&test)).err().unwrap_or_default();
        assert_eq!(reason("test fly\nfunc \"f\" {\nb0:\nEXIT\n}"), "unknown command `fly`");
        assert_eq!(reason("test phase Magic\nfunc \"f\" {\nb0:\nEXIT\n}"), "there is no phase `Magic`");
        assert_eq!(reason("test cat\n"), "does not parse: 0: found no function");
    }
}
