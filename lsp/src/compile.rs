//! `ptxc`: compiles PTX to a cubin as ptxas does, with its arguments, its messages and its exit status.

pub mod options;

use std::fmt::Write as _;
use std::fs;
use std::mem::ManuallyDrop;
use std::path::Path;
use std::process::ExitCode;

use crate::check::files;
use options::Options;
use ptx_analysis::ide::{self, Diagnostic, Severity};
use ptx_analysis::{Database, LinkOptions, Linked, SourceFile};

/// The exit status of ptxas for every failure.
const FAILED: u8 = 255;

/// Runs the compiler on the process's arguments.
pub fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut log = String::new();
    let status = run(&arguments, &mut log);
    eprint!("{log}");
    ExitCode::from(status)
}

/// Compiles; what is to be printed goes to `log`.
fn run(arguments: &[String], log: &mut String) -> u8 {
    let options = match options::parse(arguments.iter().cloned()) {
        Ok(options) => options,
        Err(message) => return fatal(log, &message),
    };
    if options.help || options.version {
        log.push_str(if options.help { USAGE } else { concat!("ptxc ", env!("CARGO_PKG_VERSION"), "\n") });
        return 0;
    }
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
        [input] => compile(&options, input, &arguments.join(" "), log),
        _ => fatal(log, "more than one input file is not supported yet"),
    }
}

const USAGE: &str = "\
usage: ptxc [options] FILE.ptx
  -arch sm_NN            target (default sm_75); compute_NN checks only
  -o FILE                output (default elf.o)
  -O 0..3                optimisation level (default 3)
  -maxrregcount N        most registers per thread
  -e NAME,...            only these entries
  -split-compile N       with N other than 1, compile functions on all cores
  -v                     print resources of each function
  -w, -Werror            no warnings; warnings are errors
The other options of ptxas are accepted where they cannot change the output, else refused by name.
";

fn fatal(log: &mut String, message: &str) -> u8 {
    let _ = writeln!(log, "ptxc fatal   : {message}");
    FAILED
}

fn compile(options: &Options, input: &Path, command_line: &str, log: &mut String) -> u8 {
    let Ok(read) = files::read(input) else {
        return fatal(log, &format!("Input file '{}' could not be opened", input.display()));
    };
    let (text, replaced) = files::decode(read.bytes);
    if let Some(at) = replaced {
        let line = 1 + text.as_bytes()[..at].iter().filter(|&&b| b == b'\n').count();
        let _ = writeln!(log, "ptxc {}, line {line}; fatal   : byte that is not UTF-8 text", read.name);
        return FAILED;
    }
    // The process ends with this compilation: taking everything apart again would only cost time.
    let mut db = ManuallyDrop::new(Database::default());
    db.set_architecture(Some(options.sm));
    db.set_opt_level(options.opt_level);
    db.set_max_registers(options.max_registers);
    let file = db.add_frozen_file(text);

    let found = ide::diagnostics(&db, file);
    let mut failed = report(options, &read.name, &db, file, &found, log);
    if !failed && !options.check_only {
        if options.split {
            ptx_analysis::compile_all(&db, file, &|_, _| ());
        }
        let link = LinkOptions { entries: options.entries.clone(), arguments: command_line.to_owned() };
        match ptx_analysis::link(&db, file, &link) {
            Ok(linked) => {
                describe(options, &linked, log);
                if fs::write(&options.output, &linked.cubin).is_err() {
                    let name = options.output.display();
                    return fatal(log, &format!("Output file '{name}' could not be written"));
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
            if options.sm.number < 90 {
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
