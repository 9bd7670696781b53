//! `ptxc`: compiles PTX to a cubin as ptxas does, with the same arguments, messages and exit status.
//!
//! The output is written only if it contains the code of the whole input.

mod clock;
mod definition;
mod jobserver;
mod log;
pub(crate) mod options;
mod resources;
mod several;
mod source;

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::io::ErrorKind;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::ExitCode;

use crate::{output, switches, terminal, threads};
use clock::{Clock, Stage};
pub use definition::definition;
use jobserver::{Failure, Tokens};
use log::{FAILED, Kind, Log};
use options::{OPTIMIZED_DEBUGGING, Options, Source};
use ptx_analysis::check::SEPARATE_COMPILATION;
use ptx_analysis::convention::{Unconventional, unconventional};
use ptx_analysis::diagnostic::Levels;
use ptx_analysis::ide::{self, Diagnostic, Severity};
use ptx_analysis::lower::lower;
use ptx_analysis::module::{effective_target, header, is_for_debuggers, module};
use ptx_analysis::{Database, LaunchBounds, LinkOptions, Linked, SourceFile, compile};
use ptx_backend::Switches;
use ptx_isa::{FormId, PtxVersion};
use source::Text;

/// Runs the compiler on the process's arguments.
pub fn main() -> ExitCode {
    let mut arguments = std::env::args_os();
    let mut log = Log::new(arguments.next().as_deref());
    let arguments: Vec<OsString> = arguments.collect();
    let options = options::parse(arguments.iter().cloned());
    if let Ok(options) = &options
        && let Some(text) = told(options)
    {
        return terminal::print_and_exit(log.program(), &text, FAILED);
    }
    if let Ok(Options { tool_name: Some(name), .. }) = &options {
        log.rename(name);
    }
    let ran = catch_unwind(AssertUnwindSafe(|| match &options {
        Ok(options) => run(options, &arguments, &mut log),
        Err(message) => log.fatal(message),
    }));
    let status = ran.unwrap_or_else(|_| log.fatal("internal error; please report it"));
    if !log.text.is_empty() {
        terminal::say(log.text.trim_end());
    }
    ExitCode::from(status)
}

/// The text for options that only print something, such as `--help`. `None` if there is something to compile.
fn told(options: &Options) -> Option<String> {
    if options.help || options.sources.is_empty() && !options.version && !options.list_versions {
        return Some(definition::usage());
    }
    if options.version {
        return Some(VERSION.to_owned());
    }
    let mut text = String::new();
    for major in 1..=PtxVersion::NEWEST.major {
        let minors = (0..10).map(|minor| PtxVersion::new(major, minor));
        for version in minors.filter(|version| version.is_published() && *version <= NEWEST_OF_PTXAS) {
            let _ = writeln!(text, "{version}");
        }
    }
    options.list_versions.then_some(text)
}

/// The lints for which ptxas prints a warning too.
const WARNINGS_OF_PTXAS: [&str; 3] = ["ignored-directive", "ignored-extern", "unknown-pragma"];

/// The oldest PTX version that can be compiled to an object.
const OLDEST_OF_OBJECTS: PtxVersion = PtxVersion::new(3, 1);

/// The newest PTX version that ptxas 13.0 accepts.
const NEWEST_OF_PTXAS: PtxVersion = PtxVersion::new(9, 0);

/// The output of `--version`. Build tools search it for the release.
const VERSION: &str = concat!(
    "ptxc: PTX compiler of ptx-analyzer, an independent replacement for NVIDIA's ptxas\n",
    "Has the options and output formats of ptxas from\n",
    "Cuda compilation tools, release 13.0, V13.0.88\n",
    "ptxc ",
    env!("CARGO_PKG_VERSION"),
    "\n"
);

/// Compiles. Messages go to the log.
fn run(options: &Options, arguments: &[OsString], log: &mut Log) -> u8 {
    let mut clock = Clock::new(options.stats);
    for (kind, remark) in &options.remarks {
        log.say(*kind, remark);
    }
    let read = source::read(options, log);
    let failed = options.remarks.iter().any(|(kind, _)| *kind == Kind::Error);
    let Some(read) = read.filter(|_| !failed) else { return log.aborted() };
    let inputs = options.sources.iter().filter_map(|source| match source {
        Source::File(path) => Some(path),
        Source::Text(_) => None,
    });
    for input in inputs {
        if is_same(input, &options.output) {
            return log.fatal(format_args!("Output file '{}' is the input file", options.output.display()));
        }
    }
    let words: Vec<_> = arguments.iter().map(|argument| argument.to_string_lossy()).collect();
    let switches = match switches::chosen(&options.phases) {
        Ok(switches) => switches,
        Err(message) => return log.fatal(message),
    };
    let text = match several::joined(options, read, log) {
        Ok(text) => text,
        Err(status) => return status,
    };
    let status = compile(options, switches, text, &words.join(" "), &mut clock, log);
    if status == 0 {
        clock.report(options.stats, log);
    }
    status
}

fn compile(
    options: &Options,
    switches: Switches,
    text: Text,
    command_line: &str,
    clock: &mut Clock,
    log: &mut Log,
) -> u8 {
    let mut db = database(options, switches);
    let file = match options.check_only {
        true => db.add_frozen_file(text.text.clone()),
        false => db.add_frozen_file_to_compile(text.text.clone()),
    };
    if is_for_debuggers(&*db, file) {
        db.set_errors_at_exit(true);
    }
    // Without the calling convention, a linker cannot add to the program.
    let alone = (options.extensible && unconventional(&*db, file).is_some()).then(|| {
        db.set_relocatable(false);
        db.set_levels(Levels::default());
        Options { relocatable: false, ..options.clone() }
    });
    let task = Task { options: alone.as_ref().unwrap_or(options), text, db: &db, file };
    task.run(command_line, clock, log)
}

/// A database with the settings of the options.
fn database(options: &Options, switches: Switches) -> ManuallyDrop<Database> {
    // The process ends with this compilation, so dropping the database would only cost time.
    let mut db = ManuallyDrop::new(Database::default());
    db.set_architecture(Some(options.sm));
    db.set_opt_level(options.opt_level);
    db.set_switches(switches);
    db.set_max_registers(options.max_registers);
    db.set_max_function_registers(options.max_function_registers);
    if options.relocatable {
        db.set_relocatable(true);
        let mut levels = Levels::default();
        levels.set(&SEPARATE_COMPILATION, Severity::Allow);
        db.set_levels(levels);
    }
    db.set_shows_registers(options.debug);
    db.set_errors_at_exit(options.errors_at_exit);
    let [checks, never] = options.checks_tensor_memory;
    db.set_checks_tensor_memory((checks || options.debug) && !never);
    db.set_launch(LaunchBounds {
        max_threads: options.max_threads,
        min_blocks: options.min_blocks,
        max_registers: options.max_registers.filter(|_| options.overrides_directives),
        overrides: options.overrides_directives,
    });
    db.set_caches(options.caches);
    db
}

/// The pragma for which kernels spill registers to shared memory.
const SPILLING: &str = "enable_smem_spilling";

/// The message about a program whose functions do not follow the calling convention.
const NOT_EXTENSIBLE: &str = "Command line option '--extensible-whole-program' not supported for 'compilation without ABI', will be ignored";

const NO_JOBSERVER: &str =
    "GNU Jobserver support requested, but no compatible jobserver found. Ignoring '--jobserver'";
const SLOW: &str = "is expected to have substantially reduced performance on some future architectures";
/// The targets on which `.multicast::cluster` is fast, as ptxas lists them.
const MULTICAST_TARGETS: &str = "sm_90a/sm_100a/sm_100f/sm_103a/sm_103f/sm_110a/sm_110f";

/// One compilation.
struct Task<'a> {
    options: &'a Options,
    text: Text,
    db: &'a Database,
    file: SourceFile,
}

impl Task<'_> {
    fn run(&self, command_line: &str, clock: &mut Clock, log: &mut Log) -> u8 {
        let (options, db, file) = (self.options, self.db, self.file);
        clock.end(Stage::Parse);
        module(db, file);
        clock.end(Stage::Setup);
        if options.optimizes_explicitly && is_for_debuggers(db, file) {
            return log.fatal(OPTIMIZED_DEBUGGING);
        }
        self.checks_of_tensor_memory(log);
        let mut found = ide::diagnostics_for(db, file, &options.entries);
        if self.text.is_joined() {
            found.retain(several::is_of_all);
        }
        let failed = self.report(&found, log);
        clock.end(Stage::Parse);
        if failed {
            return log.aborted();
        }
        if options.patch {
            return self.patch(log);
        }
        if let Some(status) = self.without_convention(log) {
            return status;
        }
        if let Some((kind, message)) = self.missing_entry() {
            log.say(kind, message);
            return if kind == Kind::Fatal { FAILED } else { log.aborted() };
        }
        if let Err(message) = self.show() {
            return log.fatal(message);
        }
        clock.end(Stage::Shown);
        if self.lacks_debug_data(log) {
            return log.aborted();
        }
        if options.per_function && source::has_pragma(&self.text.text, SPILLING) {
            let message =
                format_args!("Pragma '{SPILLING}' is not allowed for per-function compilation modes");
            return log.fatal(message);
        }
        if options.check_only {
            return 0;
        }
        if options.extensible
            && options.relocatable
            && let Some(name) = ptx_analysis::first_address_of_another_module(db, file)
        {
            return log.fatal(format_args!(
                "Cannot take address of function '{name}' in extensible whole program compilation."
            ));
        }
        if resources::ranges(options, db, file, log) {
            return log.aborted();
        }
        resources::limits(options, db, file, log);
        let tokens = match self.tokens(log) {
            Ok(tokens) => tokens,
            Err(message) => return log.fatal(message),
        };
        match self.link(command_line, tokens, clock) {
            Ok(linked) => self.finish(&linked, clock, log),
            Err(refused) => {
                for d in &refused {
                    let function = ptx_analysis::compile::function_at(db, file, d.range.start());
                    let (name, line) = self.text.place(d.range.start().into());
                    let place =
                        function.map_or(String::new(), |function| format!(" (in function '{function}')"));
                    log.say_at(name, line, Kind::Error, format_args!("{}{place}", d.message));
                }
                log.aborted()
            }
        }
    }

    /// Reports why code for tools that patch programs is not compiled. Returns the exit status.
    fn patch(&self, log: &mut Log) -> u8 {
        let db = self.db;
        let mut functions = compile::functions(db, self.file).map(|item| lower(db, item));
        let has_kernel = functions.any(|lowered| lowered.function.as_ref().is_some_and(|f| f.entry));
        if has_kernel {
            log.say(Kind::Error, "Entry function is not allowed when command line option '--compile-as-tools-patch' is specified");
            return log.aborted();
        }
        log.fatal("Option 'compile-as-tools-patch' is not supported yet: programs without kernels")
    }

    /// Reports which sections that debuggers need are missing. Returns true if this forbids output.
    fn lacks_debug_data(&self, log: &mut Log) -> bool {
        let options = self.options;
        if !options.debug || options.quiet && !options.warnings_are_errors {
            return false;
        }
        let missing = |name: &&str| !ptx_analysis::has_section(self.db, self.file, name);
        let missing: Vec<&str> = [".debug_abbrev", ".debug_info"].into_iter().filter(missing).collect();
        let kind = if options.warnings_are_errors { Kind::Error } else { Kind::Warning };
        for name in &missing {
            log.say(kind, format_args!(" {name} section not found"));
        }
        options.warnings_are_errors && !missing.is_empty()
    }

    /// Reports how the options for checks of tensor memory accesses are handled.
    fn checks_of_tensor_memory(&self, log: &mut Log) {
        let [on, off] = self.options.checks_tensor_memory;
        let Some(target) = effective_target(self.db, self.file).filter(|_| on || off) else { return };
        if !ptx_isa::form(FormId::Tcgen05Alloc).gate.targets.contains(target) {
            log.say(Kind::Info, format_args!("Command line option '--g-tensor-memory-access-check / --gno-tensor-memory-access-check' not supported for '.target {target}', will be ignored"));
        }
    }

    /// Reports why functions do not follow the calling convention. Returns the exit status if the compilation must end.
    fn without_convention(&self, log: &mut Log) -> Option<u8> {
        let options = self.options;
        let reason = unconventional(self.db, self.file).map(|reason| match reason {
            Unconventional::Variable(name) => {
                format!("Use of module scoped .local or .reg variable '{name}' found, disabling ABI")
            }
            Unconventional::Results(name) => {
                format!("Function '{name}' with multiple return values found, disabling ABI")
            }
        });
        let ignored = options.extensible && !options.relocatable;
        let messages = ignored.then(|| NOT_EXTENSIBLE.to_owned()).into_iter().chain(reason.clone());
        let kind = if options.warnings_are_errors { Kind::Error } else { Kind::Warning };
        let mut any = false;
        for message in messages.filter(|_| !options.quiet || kind == Kind::Error) {
            log.say(kind, message);
            any = true;
        }
        if any && kind == Kind::Error {
            return Some(log.aborted());
        }
        too_old(options, header(self.db, self.file).version, log).or_else(|| {
            (reason.is_some() && options.relocatable).then(|| log.fatal("'Compile only(-c)' requires ABI"))
        })
    }

    /// Asks make for the further threads, if the options say so.
    fn tokens(&self, log: &mut Log) -> Result<Option<Tokens>, &'static str> {
        let Some(threads) = self.options.threads.filter(|threads| self.options.jobserver && *threads != 1)
        else {
            return Ok(None);
        };
        let wanted = if threads == 0 { threads::cores() } else { threads };
        match Tokens::take(wanted.min(threads::cores()) - 1) {
            Ok(tokens) => Ok(Some(tokens)),
            Err(Failure::Absent) => {
                log.say(Kind::Warning, NO_JOBSERVER);
                Ok(None)
            }
            Err(Failure::Broken) => Err("Jobserver requested, but an error occurred"),
        }
    }

    fn link(
        &self,
        command_line: &str,
        tokens: Option<Tokens>,
        clock: &mut Clock,
    ) -> Result<Linked, Vec<Diagnostic>> {
        let (options, db, file) = (self.options, self.db, self.file);
        let threads = tokens.as_ref().map(|tokens| 1 + tokens.count()).or(options.threads);
        if threads.is_some_and(|threads| threads != 1)
            && threads::prepare_for(threads.filter(|&threads| threads > 0))
        {
            ptx_analysis::compile_all(db, file, &|_, _| ());
            clock.end(Stage::Code);
        }
        drop(tokens);
        let link = LinkOptions {
            entries: options.entries.clone(),
            arguments: command_line.to_owned(),
            lines: options.lines,
            debug: options.debug,
            extensible: options.extensible,
        };
        ptx_analysis::link_watched(db, file, &link, &mut |name| clock.compiled(name))
    }

    /// Prints the messages about the finished code and writes it.
    fn finish(&self, linked: &Linked, clock: &mut Clock, log: &mut Log) -> u8 {
        let options = self.options;
        let has_convention = unconventional(self.db, self.file).is_none();
        resources::waits(options, self.db, &self.text, self.file, log);
        resources::kept_registers(options, self.db, self.file, log);
        let failed =
            resources::report((options, has_convention), linked, &|name| clock.of_function(name), log);
        if failed {
            return FAILED;
        }
        let name = options.output.display();
        if let Err(error) = output::write(&options.output, &linked.cubin) {
            return match error.kind() {
                ErrorKind::NotFound | ErrorKind::IsADirectory => {
                    log.fatal(format_args!("Output file '{name}' could not be opened"))
                }
                _ => log.fatal(format_args!("Output file '{name}' could not be written: {error}")),
            };
        }
        clock.end(Stage::Elf);
        match options.trace.as_ref().map(|path| clock.trace(path, self.text.first_name())) {
            Some(Err(message)) => log.fatal(message),
            _ => 0,
        }
    }

    /// Prints the requested compiler stages of each function on standard output.
    fn show(&self) -> Result<(), String> {
        for stage in &self.options.shown {
            let shown = ptx_analysis::dump::of_compiler(self.db, self.file, stage)?;
            terminal::print(&shown).map_err(|error| format!("Standard output: {error}"))?;
        }
        Ok(())
    }

    /// The message if `--entry` names a kernel that does not exist.
    fn missing_entry(&self) -> Option<(Kind, String)> {
        let functions = &module(self.db, self.file).env.functions;
        let wrong = |name: &String| match functions.iter().find(|function| function.name == *name) {
            None => Some((Kind::Fatal, format!("Unknown function {name}"))),
            Some(function) if !function.entry || function.external => {
                Some((Kind::Error, format!("Entry function '{name}' not found")))
            }
            Some(_) => None,
        };
        self.options.entries.iter().find_map(wrong)
    }

    fn say(&self, kind: Kind, d: &Diagnostic, log: &mut Log) {
        let (name, line) = self.text.place(d.range.start().into());
        log.say_at(name, line, kind, &d.message);
    }

    /// The message that ptxas prints for an instruction form that is expected to be slow.
    fn advice(&self, d: &Diagnostic) -> Option<(Kind, String)> {
        if d.lint.name != "slow-form" {
            return None;
        }
        let word = &self.text.text[d.range];
        if word == ".sp" {
            let advice = "Modifier '.sp::ordered_metadata' should be used on instruction 'mma' instead of modifier '.sp' as it";
            return (!self.options.allows_sparse).then(|| (Kind::Info, advice.to_owned()));
        }
        let target = effective_target(self.db, self.file)?;
        let advice = format!(
            "'{word}' modifier on instruction 'cp.async.bulk{{.tensor}}' should be used on .target '{MULTICAST_TARGETS}' instead of .target '{target}'"
        );
        (!self.options.allows_multicast).then(|| (Kind::Warning, format!("{advice} as this feature")))
    }

    /// Prints errors and warnings. Returns true if one of them forbids output.
    fn report(&self, found: &[Diagnostic], log: &mut Log) -> bool {
        let options = self.options;
        let warning = match (options.warnings_are_errors, options.quiet) {
            (true, _) => Some(Kind::Error),
            (false, quiet) => (!quiet).then_some(Kind::Warning),
        };
        let mut failed = false;
        for d in found.iter().filter(|d| !is_said_of_kernels(d)) {
            if let Some((kind, advice)) = self.advice(d) {
                let kind = if kind == Kind::Warning { warning } else { Some(kind) };
                if let Some(kind) = kind {
                    failed |= kind == Kind::Error;
                    let (name, line) = self.text.place(d.range.start().into());
                    log.say_at(name, line, kind, format_args!("Advisory: {advice} {SLOW}"));
                }
                continue;
            }
            let kind = match d.severity {
                Severity::Error => Kind::Error,
                // ptxas does not report the other warnings, so they never prevent output.
                Severity::Warning if !WARNINGS_OF_PTXAS.contains(&d.lint.name) && !options.quiet => {
                    Kind::Warning
                }
                Severity::Warning => match warning {
                    Some(kind) => kind,
                    None => continue,
                },
                _ => continue,
            };
            failed |= kind == Kind::Error;
            self.say(kind, d, log);
        }
        // The statements of several inputs have been reported for each input.
        if options.warn_on_doubles && !options.quiet && !self.text.is_joined() {
            let kind = warning.unwrap_or(Kind::Warning);
            for at in ptx_analysis::doubles(self.db, self.file) {
                let (name, line) = self.text.place(at.into());
                log.say_at(name, line, kind, "Program is doing double precision computations.");
                failed |= kind == Kind::Error;
            }
        }
        failed
    }
}

/// Reports a version that is too old for objects. Returns the exit status.
fn too_old(options: &Options, version: Option<PtxVersion>, log: &mut Log) -> Option<u8> {
    (options.relocatable && !options.extensible && version.is_some_and(|version| version < OLDEST_OF_OBJECTS))
        .then(|| {
            let message =
                format_args!("'Compile only(-c)' requires PTX ISA .version {OLDEST_OF_OBJECTS} or later");
            log.fatal(message)
        })
}

/// Whether a finding is about launch bounds, which [`resources::ranges`] reports together with those of the options.
fn is_said_of_kernels(d: &Diagnostic) -> bool {
    d.lint.name == "ignored-directive" && d.message.contains("is ignored: at most")
}

/// Whether both paths name the same file. `-` is compared as the file that standard input reads.
fn is_same(input: &Path, output: &Path) -> bool {
    #[cfg(target_os = "linux")]
    let input = if input.as_os_str() == "-" { Path::new("/proc/self/fd/0") } else { input };
    let (input, output) = (fs::canonicalize(input), fs::canonicalize(output));
    matches!((input, output), (Ok(input), Ok(output)) if input == output && input.is_file())
}
