//! `ptxc`: compiles PTX to a cubin as ptxas does, with its arguments, its messages and its exit status.
//!
//! The output is written only if nothing of the input is missing from it.

pub mod options;

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, ErrorKind};
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::ExitCode;

use crate::{input, output, terminal, threads};
use options::Options;
use ptx_analysis::ide::{self, Diagnostic, Severity};
use ptx_analysis::module::module;
use ptx_analysis::{Database, LinkOptions, Linked, SourceFile};
use ptx_backend::target::Target;

/// The exit status of ptxas for every failure.
const FAILED: u8 = 255;

/// Runs the compiler on the process's arguments.
pub fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let options = options::parse(arguments.iter().cloned());
    if let Ok(options) = &options
        && (options.help || options.version)
    {
        let text = if options.help { USAGE } else { concat!("ptxc ", env!("CARGO_PKG_VERSION"), "\n") };
        return terminal::print_and_exit("ptxc", text, FAILED);
    }
    let mut log = String::new();
    let ran = catch_unwind(AssertUnwindSafe(|| match &options {
        Ok(options) => run(options, &arguments, &mut log),
        Err(message) => fatal(&mut log, message),
    }));
    let status = ran.unwrap_or_else(|_| fatal(&mut log, "internal error; please report it"));
    if !log.is_empty() {
        terminal::say(log.trim_end());
    }
    ExitCode::from(status)
}

/// Compiles; what is to be printed goes to `log`.
fn run(options: &Options, arguments: &[OsString], log: &mut String) -> u8 {
    if !options.quiet {
        for warning in &options.warnings {
            let _ = writeln!(log, "ptxc warning : {warning}");
        }
    }
    match &*options.inputs {
        [] => {
            log.push_str(USAGE);
            FAILED
        }
        [input] => {
            let words: Vec<_> = arguments.iter().map(|argument| argument.to_string_lossy()).collect();
            compile(options, input, &words.join(" "), log)
        }
        _ => fatal(log, "more than one input file is not supported yet"),
    }
}

const USAGE: &str = "\
usage: ptxc [options] FILE.ptx
  -arch sm_NN            target (default sm_75); compute_NN checks only
  -o FILE                output (default elf.o)
  -O 0..3                optimisation level (default 3)
  -maxrregcount N        most registers per thread
  -e NAME,...            only these entries and what they call
  -split-compile N       with N other than 1, compile functions on all cores
  -v                     print resources of each function
  -knob DUMPIR=STAGE     print the code after a stage of the compiler; a wrong name lists them
  -w, -Werror            no warnings; warnings are errors
  --max-input-size MIB   refuse larger files (default 256, at most 4095)
  -h, -V                 print this; print the version
Exit status: 0, or 255 if anything is wrong. The output is then not written, and an older one stays as it was.
The other options of ptxas are accepted where they cannot change the output, else refused by name.
";

fn fatal(log: &mut String, message: &str) -> u8 {
    let _ = writeln!(log, "ptxc fatal   : {message}");
    FAILED
}

fn compile(options: &Options, input: &Path, command_line: &str, log: &mut String) -> u8 {
    let read = match input::read(input, options.max_input_size) {
        Ok(read) => read,
        Err(error) => return fatal(log, &unreadable(input, &error)),
    };
    if let Some(at) = read.replaced {
        let line = 1 + read.text.as_bytes()[..at].iter().filter(|&&b| b == b'\n').count();
        let _ = writeln!(log, "ptxc {}, line {line}; fatal   : byte that is not UTF-8 text", read.name);
        return FAILED;
    }
    if is_same(input, &options.output) {
        return fatal(log, &format!("Output file '{}' is the input file", options.output.display()));
    }
    // The process ends with this compilation: taking everything apart again would only cost time.
    let mut db = ManuallyDrop::new(Database::default());
    db.set_architecture(Some(options.sm));
    db.set_opt_level(options.opt_level);
    db.set_max_registers(options.max_registers);
    let file = db.add_frozen_file(read.text);

    let found = ide::diagnostics_for(&db, file, &options.entries);
    let mut failed = report(options, &read.name, &db, file, &found, log);
    if !failed && let Some(message) = missing_entry(&db, file, &options.entries) {
        return fatal(log, &message);
    }
    if !failed && let Err(message) = show(options, &db, file) {
        return fatal(log, &message);
    }
    if !failed && !options.check_only {
        if options.split && threads::prepare() {
            ptx_analysis::compile_all(&db, file, &|_, _| ());
        }
        let link = LinkOptions { entries: options.entries.clone(), arguments: command_line.to_owned() };
        match ptx_analysis::link(&db, file, &link) {
            Ok(linked) => {
                describe(options, &linked, log);
                if let Err(error) = output::write(&options.output, &linked.cubin) {
                    let name = options.output.display();
                    return fatal(log, &format!("Output file '{name}' could not be written: {error}"));
                }
            }
            Err(refused) => {
                for d in &refused {
                    let _ = writeln!(
                        log,
                        "ptxc {}, line {}; error   : {}",
                        read.name,
                        line(&db, file, d),
                        d.message
                    );
                }
                failed = true;
            }
        }
    }
    if failed {
        return fatal(log, "Ptx assembly aborted due to errors");
    }
    0
}

/// Prints the stages of the compiler that are wanted, function by function, on standard output.
fn show(options: &Options, db: &Database, file: SourceFile) -> Result<(), String> {
    for stage in &options.shown {
        let shown = ptx_analysis::dump::of_compiler(db, file, stage)?;
        terminal::print(&shown).map_err(|error| format!("Standard output: {error}"))?;
    }
    Ok(())
}

fn unreadable(input: &Path, error: &io::Error) -> String {
    let verb = match error.kind() {
        ErrorKind::NotFound | ErrorKind::PermissionDenied => "opened",
        _ => "read",
    };
    format!("Input file '{}' could not be {verb}: {error}", input.display())
}

/// Whether both are one file.
fn is_same(input: &Path, output: &Path) -> bool {
    let (input, output) = (fs::canonicalize(input), fs::canonicalize(output));
    matches!((input, output), (Ok(input), Ok(output)) if input == output && input.is_file())
}

/// What is wrong with the names of kernels.
fn missing_entry(db: &Database, file: SourceFile, entries: &[String]) -> Option<String> {
    let functions = &module(db, file).env.functions;
    entries.iter().find_map(|name| match functions.iter().find(|function| function.name == *name) {
        None => Some(format!("Unknown function {name}")),
        Some(function) if !function.entry || function.external => {
            Some(format!("Entry function '{name}' not found"))
        }
        Some(_) => None,
    })
}

/// The line of a diagnostic, from 1.
fn line(db: &Database, file: SourceFile, d: &Diagnostic) -> u32 {
    let index = ide::line_index(db, file);
    index.line_col(d.range.start().min(index.len())).line + 1
}

/// Prints errors and warnings in ptxas's form. True if any forbids output.
fn report(
    options: &Options,
    name: &str,
    db: &Database,
    file: SourceFile,
    found: &[Diagnostic],
    log: &mut String,
) -> bool {
    let mut failed = false;
    for d in found {
        let word = match d.severity {
            Severity::Error => "error  ",
            Severity::Warning if options.warnings_are_errors => "error  ",
            Severity::Warning if !options.quiet => "warning",
            _ => continue,
        };
        failed |= word.starts_with("error");
        let _ = writeln!(log, "ptxc {name}, line {}; {word} : {}", line(db, file, d), d.message);
    }
    failed
}

/// What `-v` and the warning options print of the compiled functions.
fn describe(options: &Options, linked: &Linked, log: &mut String) {
    let counts_bank_0 = Target::of(options.sm).is_some_and(|target| target.cubin.counts_bank_0);
    if options.verbose {
        let _ = write!(log, "ptxc info    : {} bytes gmem", linked.global_bytes);
        if linked.constant_bytes > 0 {
            let _ = write!(log, ", {} bytes cmem[3]", linked.constant_bytes);
        }
        log.push('\n');
    }
    for f in &linked.functions {
        let r = &f.resources;
        if options.verbose {
            let kind = if f.entry { "entry function" } else { "function" };
            let _ = writeln!(log, "ptxc info    : Compiling {kind} '{}' for '{}'", f.name, options.sm);
            let _ = writeln!(log, "ptxc info    : Function properties for {}", f.name);
            let _ = writeln!(
                log,
                "    {} bytes stack frame, {} bytes spill stores, {} bytes spill loads",
                r.stack_bytes, r.spill_store_bytes, r.spill_load_bytes
            );
            let _ =
                write!(log, "ptxc info    : Used {} registers, used {} barriers", r.registers, r.barriers);
            if r.shared_bytes > 0 {
                let _ = write!(log, ", {} bytes smem", r.shared_bytes);
            }
            // ptxas counts the bank only where the driver's words lie in front of the parameters' own bank.
            if counts_bank_0 {
                let _ = write!(log, ", {} bytes cmem[0]", r.const0_bytes);
            }
            log.push('\n');
        }
        let spilled = r.spill_store_bytes + r.spill_load_bytes > 0;
        if !options.quiet && options.warn_on_spills && spilled {
            let _ = writeln!(
                log,
                "ptxc warning : Registers are spilled to local memory in function '{}'",
                f.name
            );
        }
        if !options.quiet && options.warn_on_local_memory && r.stack_bytes > 0 {
            let _ = writeln!(log, "ptxc warning : Local memory used for function '{}'", f.name);
        }
    }
}
