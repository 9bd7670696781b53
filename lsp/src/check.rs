//! `ptx-check`: the server's checks without an editor.
//!
//! Exit status: 0 nothing found, 1 findings, 2 wrong usage or a file that cannot be read, 3 a defect of ours.

pub mod files;
pub mod human;
pub mod json;

use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use ptx_analysis::INVALID_UTF8;
use ptx_analysis::diagnostic::Levels;
use ptx_analysis::ide::{self, Diagnostic, Severity};
use ptx_analysis::{Database, SourceFile};
use ptx_isa::Sm;
use rayon::prelude::*;
use text_size::{TextRange, TextSize};

const CLEAN: u8 = 0;
const FINDINGS: u8 = 1;
const USAGE: u8 = 2;
const INTERNAL: u8 = 3;

/// Files in flight at once: bounds memory when a folder holds thousands.
const BATCH: usize = 64;

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Format {
    Human,
    Json,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Emit {
    /// The lowered machine code of every function.
    Sass,
    /// Registers, spills, memory and occupancy of every function.
    Resources,
}

/// Checks PTX files as ptxas would, with exact ranges and fixes.
#[derive(Parser, Debug)]
#[command(name = "ptx-check", version)]
struct Arguments {
    /// Files, folders (searched for .ptx), or - for standard input.
    #[arg(required_unless_present = "explain")]
    paths: Vec<PathBuf>,
    #[arg(long, value_enum, default_value = "human")]
    format: Format,
    /// Check and compile for this target instead of each file's own.
    #[arg(long, value_parser = parse_target)]
    target: Option<Sm>,
    /// The files are parts of programs, which other modules complete.
    #[arg(short = 'c', long)]
    compile_only: bool,
    /// Also print what the code compiles to.
    #[arg(long, value_enum)]
    emit: Option<Emit>,
    /// Set the level of a lint: CODE=allow|info|warning|error.
    #[arg(short = 'W', long = "lint", value_parser = parse_level)]
    levels: Vec<(String, Severity)>,
    /// The least severity that counts as a finding.
    #[arg(long, default_value = "warning", value_parser = parse_severity)]
    fail_on: Severity,
    /// Print the documentation of a diagnostic code and stop.
    #[arg(long, value_name = "CODE")]
    explain: Option<String>,
}

fn parse_target(text: &str) -> Result<Sm, String> {
    Sm::parse(text).ok_or_else(|| "expected a target such as sm_90 or sm_100a".into())
}

fn parse_severity(text: &str) -> Result<Severity, String> {
    Severity::parse(text).ok_or_else(|| "expected allow, info, warning or error".into())
}

fn parse_level(text: &str) -> Result<(String, Severity), String> {
    let (lint, level) = text.split_once('=').ok_or("expected CODE=LEVEL")?;
    Ok((lint.to_owned(), parse_severity(level)?))
}

/// What one file gave.
struct Report {
    output: String,
    worst: Option<Severity>,
    status: u8,
}

/// Runs the checker on the process's arguments.
pub fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { USAGE } else { CLEAN });
        }
    };
    if let Some(code) = &arguments.explain {
        return explain(code);
    }
    ExitCode::from(run(&arguments).unwrap_or_else(|error| {
        eprintln!("ptx-check: {error}");
        USAGE
    }))
}

fn explain(code: &str) -> ExitCode {
    match ptx_analysis::lints().iter().find(|l| l.code.eq_ignore_ascii_case(code) || l.name == code) {
        Some(lint) => {
            let _ = writeln!(io::stdout(), "{}", lint.page);
            ExitCode::from(CLEAN)
        }
        None => {
            eprintln!("ptx-check: there is no diagnostic '{code}'");
            ExitCode::from(USAGE)
        }
    }
}

fn run(arguments: &Arguments) -> io::Result<u8> {
    let paths = files::find(&arguments.paths)?;
    let mut status = CLEAN;
    let mut out = io::BufWriter::new(io::stdout().lock());
    for batch in paths.chunks(BATCH) {
        let reports: Vec<Report> = batch.par_iter().map(|path| report(arguments, path)).collect();
        for report in reports {
            match out.write_all(report.output.as_bytes()) {
                // A reader that has seen enough (`| head`) is no failure.
                Err(e) if e.kind() == io::ErrorKind::BrokenPipe => return Ok(status),
                written => written?,
            }
            let found = report.worst.is_some_and(|s| s >= arguments.fail_on);
            status = status.max(report.status).max(if found { FINDINGS } else { CLEAN });
        }
    }
    match out.flush() {
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(status),
        flushed => flushed.map(|()| status),
    }
}

fn report(arguments: &Arguments, path: &Path) -> Report {
    let failed = |status, output| Report { output, worst: None, status };
    let input = match files::read(path) {
        Ok(input) => input,
        Err(error) => {
            eprintln!("ptx-check: {error}");
            return failed(USAGE, String::new());
        }
    };
    let name = input.name.clone();
    catch_unwind(AssertUnwindSafe(|| check(arguments, input))).unwrap_or_else(|_| {
        eprintln!("ptx-check: internal error while checking {name}; please report it");
        failed(INTERNAL, String::new())
    })
}

fn check(arguments: &Arguments, input: files::Input) -> Report {
    let (text, replaced) = files::decode(input.bytes);
    if files::looks_like_markup(&text) {
        return Report { output: String::new(), worst: None, status: CLEAN };
    }
    let mut db = Database::default();
    db.set_target_override(arguments.target);
    let mut levels = Levels::default();
    if arguments.compile_only || is_part(&text) {
        levels.set("separate-compilation", Severity::Allow);
    }
    for (lint, level) in &arguments.levels {
        levels.set(lint, *level);
    }
    db.set_levels(levels);
    let file = db.add_frozen_file(text.as_str());
    let mut found: Vec<Diagnostic> = ide::diagnostics(&db, file);
    if let Some(at) = replaced {
        let at = TextSize::new(at as u32);
        let range = TextRange::at(at, TextSize::of('\u{fffd}'));
        found.insert(0, Diagnostic::new(&INVALID_UTF8, range, "this byte is not UTF-8 text"));
    }
    if arguments.emit.is_some() {
        found.extend(ide::compile_diagnostics(&db, file));
    }
    let mut output = String::new();
    let mut renderer = None;
    for d in found.iter().filter(|d| d.severity != Severity::Allow) {
        match arguments.format {
            Format::Human => {
                let renderer = renderer.get_or_insert_with(|| human::Renderer::new(&input.name, &text));
                output += &renderer.render(d);
            }
            Format::Json => {
                output += &json::object(&input.name, ide::line_index(&db, file), d).to_string();
                output.push('\n');
            }
        }
    }
    if let Some(emit) = arguments.emit {
        output += &emitted(arguments, emit, &db, file);
    }
    Report { output, worst: found.iter().map(|d| d.severity).max(), status: CLEAN }
}

/// Whether the first line, `// ptxas-opts: -c`, says that the file is part of a program.
fn is_part(text: &str) -> bool {
    let options = text.lines().next().and_then(|line| line.strip_prefix("// ptxas-opts:"));
    options
        .unwrap_or_default()
        .split_whitespace()
        .any(|option| matches!(option, "-c" | "--compile-only" | "-rdc" | "-rdc=true"))
}

/// Resources, and machine code where asked for, of every compiled function.
fn emitted(arguments: &Arguments, emit: Emit, db: &Database, file: SourceFile) -> String {
    let mut output = String::new();
    for function in ide::function_resources(db, file) {
        match arguments.format {
            Format::Human => output += &format!("{}: {}\n", function.name, function.summary()),
            Format::Json => {
                output += &json::resources(&function).to_string();
                output.push('\n');
            }
        }
        if emit == Emit::Sass
            && let Some(view) = ide::sass_view(db, file, &function.name)
        {
            match arguments.format {
                Format::Human => output += &view.text,
                Format::Json => {
                    let object = serde_json::json!({ "function": view.function, "sass": &*view.text });
                    output += &object.to_string();
                }
            }
            output.push('\n');
        }
    }
    output
}
