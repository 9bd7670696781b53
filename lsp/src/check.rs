//! `ptx-check`: the server's checks without an editor.
//!
//! `--help` names the exit statuses.

mod excerpt;
pub mod files;
pub mod github;
mod host;
pub mod human;
pub mod json;
pub mod reference;
pub mod sarif;

use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::{Parser, ValueEnum};
use ptx_analysis::INVALID_UTF8;
use ptx_analysis::check::{IGNORED_EXTERN, SEPARATE_COMPILATION, setting};
use ptx_analysis::diagnostic::{Levels, Lint};
use ptx_analysis::ide::{self, Diagnostic, Severity};
use ptx_analysis::{Database, SourceFile};
use ptx_embed::Language;
use ptx_isa::Sm;
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use serde_json::Value;
use text_size::{TextRange, TextSize};

use crate::check::files::Found;
use crate::input::{self, Input};
use crate::project::Project;
use crate::{output, pictures, terminal, threads};
use ptx_analysis::counted;
use terminal::say;

const CLEAN: u8 = 0;
const FINDINGS: u8 = 1;
const USAGE: u8 = 2;
const INTERNAL: u8 = 3;

const AFTER: &str = "Examples:
  ptx-check kernel.ptx                          report what ptxas would reject, and warnings
  ptx-check --emit resources kernel.ptx         also print registers, spills and occupancy of each function
  ptx-check --emit sass --target sm_90 kernel.ptx
  ptx-check --fix kernels/                      apply all safe fixes
  ptx-check kernel.cu layers.py                 check inline assembly in CUDA, C++, Rust and Python
  ptx-check -W unused-register=error --format github kernels/
  ptx-check --explain E0303                     explain a diagnostic, or an instruction of PTX (ld) or SASS (IMAD)

Exit status: 0 without findings, 1 with findings, 2 for usage errors and files that cannot be read or written, 3 for \
internal errors of ptx-check.";

/// Files that are checked at once. This bounds memory when a folder holds thousands of files.
const BATCH: usize = 64;

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Format {
    /// Source excerpts with underlined ranges.
    Human,
    /// One JSON object per finding, each on a line of its own.
    Json,
    /// One SARIF document.
    Sarif,
    /// GitHub workflow annotations.
    Github,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Emit {
    /// Machine code of every function.
    Sass,
    /// Registers, spills, memory and occupancy of every function.
    Resources,
    /// The same, and why: the values that are live at the peak, the reasons for spills, what limits each loop.
    Reasons,
    /// Only a web page with pictures of every function: registers along the code, occupancy, control flow, fragments.
    Html,
    /// Only the same pictures as one SVG.
    Svg,
}

/// Whether `--format-code` writes the files or only checks them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum FormatCode {
    /// Format the files.
    Write,
    /// List the files that are not formatted, and do not change them.
    Check,
}

/// Check PTX files as ptxas does, with exact source ranges and fixes.
#[derive(Parser, Debug)]
#[command(name = "ptx-check", version, after_help = AFTER)]
pub struct Arguments {
    /// Files, folders (searched for .ptx files), or `-` for standard input. In CUDA, C++, Rust and Python files, inline
    /// assembly and strings of PTX are checked.
    #[arg(required_unless_present_any = ["explain", "docs"])]
    paths: Vec<PathBuf>,
    /// Also search folders for files of CUDA, C++, Rust and Python with PTX in them. Hidden folders are skipped.
    #[arg(long, conflicts_with_all = ["fix", "format_code", "emit"])]
    embedded: bool,
    /// Output format.
    #[arg(long, value_enum, default_value = "human")]
    format: Format,
    /// Check and compile for this target instead of the target of each file.
    #[arg(long, value_parser = Sm::known)]
    target: Option<Sm>,
    /// Report modules that cannot be assembled for this architecture, like `ptxas -arch`.
    #[arg(long, value_parser = Sm::known)]
    arch: Option<Sm>,
    /// Apply all safe fixes to the files and report the remaining findings. Fixed standard input is written to standard
    /// output.
    #[arg(long)]
    fix: bool,
    /// Format the code of the files in place instead of checking them: indentation, line breaks and spaces. With
    /// `=check`, name the files that would change and exit with 1 if there are any. Standard input is written to standard
    /// output.
    #[arg(long, value_name = "MODE", value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "write", conflicts_with_all = ["fix", "emit"])]
    format_code: Option<FormatCode>,
    /// Allow references to symbols that other modules define (separate compilation).
    #[arg(short = 'c', long)]
    compile_only: bool,
    /// Reject larger files (maximum: 4095).
    #[arg(long, value_name = "MIB", default_value_t = input::LARGEST, value_parser = clap::value_parser!(u64).range(1..=input::MOST))]
    max_input_size: u64,
    /// Also print the result of compilation.
    #[arg(long, value_enum)]
    emit: Option<Emit>,
    /// Use this settings file instead of the nearest `ptx-check.toml` above each file.
    #[arg(long, value_name = "FILE", conflicts_with = "no_config")]
    config: Option<PathBuf>,
    /// Ignore `ptx-check.toml` files.
    #[arg(long)]
    no_config: bool,
    /// Set the level of a lint: CODE=allow|info|warning|error. The level of errors (E…) cannot be lowered.
    #[arg(short = 'W', long = "lint", value_parser = parse_level)]
    levels: Vec<(&'static Lint, Severity)>,
    /// Print no summary after the findings.
    #[arg(short, long)]
    quiet: bool,
    /// Lowest severity that counts as a finding: allow, info, warning (the default) or error.
    #[arg(long, value_parser = parse_severity)]
    fail_on: Option<Severity>,
    /// Print the documentation of a diagnostic or instruction and exit.
    #[arg(long, value_name = "CODE|MNEMONIC")]
    explain: Option<String>,
    /// Write the documentation of all instructions and diagnostics to a folder as Markdown and exit.
    #[arg(long, value_name = "FOLDER")]
    docs: Option<PathBuf>,
}

fn parse_severity(text: &str) -> Result<Severity, String> {
    Severity::parse(text).ok_or_else(|| "expected allow, info, warning or error".into())
}

fn parse_level(text: &str) -> Result<(&'static Lint, Severity), String> {
    let (lint, level) = text.split_once('=').ok_or("expected CODE=LEVEL")?;
    setting(lint, level)
}

/// The output and the findings of one file.
#[derive(Default)]
struct Report {
    output: String,
    /// The results for SARIF, which is one document for all files.
    results: Vec<Value>,
    worst: Option<Severity>,
    counts: Counts,
    status: u8,
}

/// Numbers of the checked files and of their findings by severity.
#[derive(Clone, Copy, Default)]
struct Counts {
    files: usize,
    errors: usize,
    warnings: usize,
    notes: usize,
}

impl Counts {
    fn of(found: &[Diagnostic]) -> Self {
        let count = |severity| found.iter().filter(|one| one.severity == severity).count();
        Self {
            files: 1,
            errors: count(Severity::Error),
            warnings: count(Severity::Warning),
            notes: count(Severity::Information),
        }
    }

    fn add(&mut self, other: Self) {
        self.files += other.files;
        self.errors += other.errors;
        self.warnings += other.warnings;
        self.notes += other.notes;
    }

    /// "2 errors and 1 warning in 14 files, 0.12 s"
    fn summary(self, time: Duration) -> String {
        let all = [(self.errors, "error"), (self.warnings, "warning"), (self.notes, "note")];
        let mut some: Vec<String> = all
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| counted(count, what))
            .collect();
        let last = some.pop().unwrap_or_else(|| "no findings".to_owned());
        let found = if some.is_empty() { last } else { format!("{} and {last}", some.join(", ")) };
        format!("{found} in {}, {:.2} s", counted(self.files, "file"), time.as_secs_f64())
    }
}

/// Runs the checker on the process's arguments.
pub fn main() -> ExitCode {
    // ptxas accepts `-arch` with one dash, with or without `=`.
    let words = std::env::args_os().map(|word| match word.to_str() {
        Some(text) if text == "-arch" || text.starts_with("-arch=") => format!("-{text}").into(),
        _ => word,
    });
    let arguments = match Arguments::try_parse_from(words) {
        Ok(arguments) => arguments,
        Err(error) => return terminal::stop("ptx-check", &error, USAGE),
    };
    if let Some(word) = &arguments.explain {
        return explain(word);
    }
    if let Some(folder) = &arguments.docs {
        return ExitCode::from(match reference::write(folder) {
            Ok(_) => CLEAN,
            Err(error) => {
                say(format_args!("ptx-check: {}: {error}", folder.display()));
                USAGE
            }
        });
    }
    ExitCode::from(run(&arguments).unwrap_or_else(|error| {
        say(format_args!("ptx-check: {error}"));
        USAGE
    }))
}

fn explain(word: &str) -> ExitCode {
    match reference::page(word) {
        Some(page) => terminal::print_and_exit("ptx-check", &format!("{page}\n"), USAGE),
        None => {
            say(format_args!("ptx-check: unknown diagnostic or instruction '{word}'"));
            if let Some(near) = reference::nearest(word) {
                say(format_args!("did you mean '{near}'?"));
            }
            ExitCode::from(USAGE)
        }
    }
}

fn run(arguments: &Arguments) -> io::Result<u8> {
    let Found { paths, errors } = files::find(&arguments.paths, arguments.embedded)?;
    for error in &errors {
        say(format_args!("ptx-check: {error}"));
    }
    if matches!(arguments.emit, Some(Emit::Html | Emit::Svg)) && paths.len() > 1 {
        return Err(io::Error::other("`--emit html` and `--emit svg` take one file"));
    }
    let mut projects = Projects::new(arguments).map_err(io::Error::other)?;
    let mut status = if errors.is_empty() { CLEAN } else { USAGE };
    let mut results = Vec::new();
    let (mut counts, start) = (Counts::default(), Instant::now());
    let mut out = io::BufWriter::new(io::stdout().lock());
    for batch in paths.chunks(BATCH) {
        let batch: Vec<(&PathBuf, Arc<Project>)> = batch
            .iter()
            .map(|path| Ok((path, projects.of(path)?)))
            .collect::<Result<_, String>>()
            .map_err(io::Error::other)?;
        // For one file, starting threads would take longer than it saves.
        let reports: Vec<Report> = match batch.as_slice() {
            [(only, project)] if paths.len() == 1 => vec![report(arguments, project, only, true)],
            _ if threads::prepare() => {
                batch.par_iter().map(|(path, project)| report(arguments, project, path, false)).collect()
            }
            _ => batch.iter().map(|(path, project)| report(arguments, project, path, false)).collect(),
        };
        for (mut report, (_, project)) in reports.into_iter().zip(&batch) {
            results.append(&mut report.results);
            counts.add(report.counts);
            match out.write_all(report.output.as_bytes()) {
                // A reader of the output that stops early (`| head`) is not an error.
                Err(e) if e.kind() == io::ErrorKind::BrokenPipe => return Ok(status),
                written => written.map_err(to_standard_output)?,
            }
            let least = arguments.fail_on.or(project.fail_on).unwrap_or(Severity::Warning);
            let found = report.worst.is_some_and(|s| s >= least);
            status = status.max(report.status).max(if found { FINDINGS } else { CLEAN });
        }
    }
    if arguments.format == Format::Sarif {
        let written = writeln!(out, "{:#}", sarif::document(results));
        if written.as_ref().is_err_and(|e| e.kind() == io::ErrorKind::BrokenPipe) {
            return Ok(status);
        }
        written.map_err(to_standard_output)?;
    }
    terminal::unless_closed(out.flush()).map_err(to_standard_output)?;
    if !arguments.quiet && arguments.format == Format::Human && counts.files > 0 {
        say(format_args!("ptx-check: {}", counts.summary(start.elapsed())));
    }
    Ok(status)
}

fn to_standard_output(error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("standard output: {error}"))
}

/// The settings for each file; each folder's settings are read once.
struct Projects {
    /// The settings for all files, if the command line names a settings file.
    only: Option<Arc<Project>>,
    by_folder: FxHashMap<PathBuf, Arc<Project>>,
}

impl Projects {
    fn new(arguments: &Arguments) -> Result<Self, String> {
        let only = match &arguments.config {
            Some(file) => Some(Project::read(file)?),
            None => arguments.no_config.then(Project::default),
        };
        Ok(Self { only: only.map(Arc::new), by_folder: FxHashMap::default() })
    }

    fn of(&mut self, path: &Path) -> Result<Arc<Project>, String> {
        if let Some(only) = &self.only {
            return Ok(Arc::clone(only));
        }
        // Standard input and a bare file name have no folder: they belong to the working directory.
        let folder = path.parent().unwrap_or(Path::new(""));
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        if let Some(known) = self.by_folder.get(folder) {
            return Ok(Arc::clone(known));
        }
        let project = Arc::new(Project::of(folder)?);
        self.by_folder.insert(folder.to_owned(), Arc::clone(&project));
        Ok(project)
    }
}

fn report(arguments: &Arguments, project: &Project, path: &Path, is_only: bool) -> Report {
    let failed = |status, output| Report { output, status, ..Report::default() };
    let input = match input::read(path, arguments.max_input_size) {
        Ok(input) => input,
        Err(error) => {
            say(format_args!("ptx-check: {}", files::named(&error, path)));
            return failed(USAGE, String::new());
        }
    };
    let name = input.name.clone();
    catch_unwind(AssertUnwindSafe(|| check(arguments, project, path, input, is_only))).unwrap_or_else(|_| {
        say(format_args!("ptx-check: internal error while checking {name}; please report it"));
        failed(INTERNAL, String::new())
    })
}

fn check(arguments: &Arguments, project: &Project, path: &Path, input: Input, is_only: bool) -> Report {
    let Input { name, mut text, replaced } = input;
    let mut report = Report::default();
    if files::looks_like_markup(&text) {
        return report;
    }
    let language = Language::of_path(path);
    if language.is_some() && (arguments.format_code.is_some() || arguments.fix || arguments.emit.is_some()) {
        say(format_args!("ptx-check: {name}: `--format-code`, `--fix` and `--emit` work only on PTX files"));
        return Report { status: USAGE, ..report };
    }
    if let Some(mode) = arguments.format_code {
        return match format_code(mode, path, &name, &text, replaced.is_some()) {
            Ok((status, output)) => Report { output, status, ..report },
            Err(error) => {
                say(format_args!("ptx-check: {name}: {error}"));
                Report { status: USAGE, ..report }
            }
        };
    }
    let mut db = Database::default();
    db.set_target_override(arguments.target.or(project.target));
    db.set_architecture(arguments.arch.or(project.arch));
    let mut levels = Levels::default();
    if arguments.compile_only || project.compile_only || is_part(&text) {
        levels.set(&SEPARATE_COMPILATION, Severity::Allow);
        levels.set(&IGNORED_EXTERN, Severity::Allow);
    }
    for &(lint, level) in project.levels.iter().chain(&arguments.levels) {
        levels.set(lint, level);
    }
    db.set_levels(levels);
    // Bytes that are not UTF-8 were replaced, so the file must not be written back.
    if arguments.fix && replaced.is_none() {
        match fix(&db, path, &name, text) {
            Ok(fixed) => text = fixed,
            Err(error) => {
                say(format_args!("ptx-check: {name}: {error}"));
                return Report { status: USAGE, ..report };
            }
        }
    }
    let file = match arguments.emit {
        // Frozen files are compiled without reasons.
        Some(Emit::Reasons) => db.add_file(text),
        _ => db.add_frozen_file(text),
    };
    let text = file.text(&db);
    let has_target = arguments.target.or(project.target).is_some();
    let mut found: Vec<Diagnostic> = match language {
        Some(language) => host::findings(&db, language, text, has_target),
        None => ide::diagnostics(&db, file),
    };
    if let Some(at) = replaced.filter(|_| language.is_none()) {
        let at = TextSize::new(at as u32);
        let range = TextRange::at(at, TextSize::of('\u{fffd}'));
        found.insert(0, Diagnostic::new(&INVALID_UTF8, range, "this byte is not UTF-8 text"));
    }
    if arguments.emit.is_some() {
        found.extend(ide::compile_diagnostics(&db, file));
    }
    let mut renderer = None;
    for d in found.iter().filter(|d| d.severity != Severity::Allow) {
        let index = || ide::line_index(&db, file);
        match arguments.format {
            Format::Human => {
                let renderer = renderer.get_or_insert_with(|| human::Renderer::new(&name, text));
                report.output += &renderer.render(d);
            }
            Format::Json => {
                report.output += &json::object(&name, index(), d).to_string();
                report.output.push('\n');
            }
            Format::Sarif => report.results.push(sarif::result(&name, index(), d)),
            Format::Github => report.output += &github::command(&name, index(), d),
        }
    }
    if let Some(emit) = arguments.emit
        && arguments.format != Format::Sarif
    {
        let emitted = emitted(arguments, emit, &name, &db, file);
        if matches!(emit, Emit::Html | Emit::Svg) && !report.output.is_empty() {
            // Standard output holds only the picture.
            say(std::mem::take(&mut report.output).trim_end());
        }
        report.output += &emitted;
    }
    // With `--fix` on standard input, standard output holds only the fixed text.
    if arguments.fix && path.as_os_str() == "-" {
        if !report.output.is_empty() {
            say(report.output.trim_end());
        }
        report.output = text.to_string();
    }
    report.counts = Counts::of(&found);
    report.worst = found.iter().map(|d| d.severity).max();
    if is_only {
        // The process is about to end: the system frees its memory at once, while dropping the database would free it
        // piece by piece.
        std::mem::forget(db);
    }
    report
}

/// Formats a text and writes it to its file or to standard output. Returns the exit status and what to print.
fn format_code(
    mode: FormatCode,
    path: &Path,
    name: &str,
    text: &str,
    is_binary: bool,
) -> io::Result<(u8, String)> {
    if is_binary {
        return Err(io::Error::other("the file is not UTF-8 text"));
    }
    let db = Database::default();
    let laid_out = ide::formatted(&db, db.add_file(text));
    match mode {
        FormatCode::Check if laid_out == text => Ok((CLEAN, String::new())),
        FormatCode::Check => Ok((FINDINGS, format!("{name}\n"))),
        FormatCode::Write if path.as_os_str() == "-" => Ok((CLEAN, laid_out)),
        FormatCode::Write => {
            if laid_out != text {
                output::rewrite(path, laid_out.as_bytes())?;
            }
            Ok((CLEAN, String::new()))
        }
    }
}

/// Applies the safe fixes to a text, and writes the text back to its file.
fn fix(db: &Database, path: &Path, name: &str, text: String) -> io::Result<String> {
    let fixed = ide::fix_all(db, &text);
    if fixed.text == text {
        return Ok(text);
    }
    if path.as_os_str() != "-" {
        output::rewrite(path, fixed.text.as_bytes())?;
    }
    for (code, title) in &fixed.made {
        say(format_args!("{name}: {code}: {title}"));
    }
    Ok(fixed.text)
}

/// Whether the first line, `// ptxas-opts: -c`, says that the file is one module of a separately compiled program.
fn is_part(text: &str) -> bool {
    let options = text.lines().next().and_then(|line| line.strip_prefix("// ptxas-opts:"));
    options
        .unwrap_or_default()
        .split_whitespace()
        .any(|option| matches!(option, "-c" | "--compile-only" | "-rdc" | "-rdc=true"))
}

/// The resources of every compiled function, and its machine code if `emit` asks for it.
fn emitted(arguments: &Arguments, emit: Emit, name: &str, db: &Database, file: SourceFile) -> String {
    let mut output = String::new();
    match emit {
        Emit::Html => return pictures::page(name, &ide::portraits(db, file), None),
        Emit::Svg => return pictures::svg(&ide::portraits(db, file)),
        Emit::Sass | Emit::Resources | Emit::Reasons => {}
    }
    for function in ide::function_resources(db, file) {
        match arguments.format {
            Format::Human | Format::Github => {
                output += &format!("{}: {}\n", function.name, function.summary());
            }
            Format::Json | Format::Sarif => {
                output += &json::resources(&function).to_string();
                output.push('\n');
            }
        }
        if emit == Emit::Reasons
            && let Some(reasons) = ide::reasons(db, file, &function.name)
        {
            match arguments.format {
                Format::Human | Format::Github => output += &format!("\n{}", reasons.markdown),
                Format::Json | Format::Sarif => {
                    let object =
                        serde_json::json!({ "function": reasons.function, "reasons": reasons.markdown });
                    output += &object.to_string();
                }
            }
            output.push('\n');
        }
        if emit == Emit::Sass
            && function.resources.is_ok()
            && let Some(view) = ide::sass_view(db, file, &function.name, ide::SassStyle::default())
        {
            match arguments.format {
                Format::Human | Format::Github => output += &view.text,
                Format::Json | Format::Sarif => {
                    let object = serde_json::json!({ "function": view.function, "sass": &*view.text });
                    output += &object.to_string();
                }
            }
            output.push('\n');
        }
    }
    output
}
