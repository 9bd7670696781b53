//! Parses ptxas's command line, with ptxas's rules and error messages.
//!
//! Long names have two dashes and short names one. A value follows after `=` or as the next argument; only the value of
//! `-O` is attached. If an option is repeated, the last value wins, except for lists, which grow. Every option of ptxas
//! 13.0 is known: [`table`] says how each one is handled. Paths may contain any bytes that the system accepts.

mod table;

use std::ffi::{OsStr, OsString};
use std::num::IntErrorKind;
use std::path::{Path, PathBuf};

use ptx_analysis::{CacheModifier, CacheModifiers, LineTables};
use ptx_backend::Switches;
use ptx_backend::compile::stages;
use ptx_backend::phases::{CONTRACTION, LITERALS};
use ptx_backend::target::Target;
use ptx_isa::{Mod, Sm};

use super::log::Kind;
use crate::input;
pub(super) use table::{Effect, OPTIONS, Row, Value};

/// An input.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Source {
    File(PathBuf),
    /// PTX text given on the command line.
    Text(String),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Options {
    pub(super) sources: Vec<Source>,
    pub(super) output: PathBuf,
    pub(super) sm: Sm,
    /// Check without compiling, for the targets `compute_NN` and `lto_NN`.
    pub(super) check_only: bool,
    /// Write an object for a linker instead of an executable file.
    pub(super) relocatable: bool,
    /// The object is a whole program that a linker adds to.
    pub(super) extensible: bool,
    /// Each function is compiled by itself: for a linker or for a debugger.
    pub(super) per_function: bool,
    /// The code is for tools that patch programs.
    pub(super) patch: bool,
    /// Before they exit, threads wait for the errors of their memory accesses.
    pub(super) errors_at_exit: bool,
    pub(super) opt_level: u8,
    /// The command line states a level above 0.
    pub(super) optimizes_explicitly: bool,
    pub(super) max_registers: Option<u32>,
    /// The register limit of functions in objects, whatever limit their kernels have.
    pub(super) max_function_registers: Option<u32>,
    /// The largest number of threads in a block and the smallest number of blocks on a multiprocessor, for kernels
    /// without such directives.
    pub(super) max_threads: Option<[u32; 3]>,
    pub(super) min_blocks: Option<u32>,
    /// The limits above override the directives of the kernels.
    pub(super) overrides_directives: bool,
    pub(super) lines: LineTables,
    /// Pass debug data through.
    pub(super) debug: bool,
    pub(super) caches: CacheModifiers,
    pub(super) entries: Vec<String>,
    /// The number of threads that compile functions.
    pub(super) threads: Option<usize>,
    /// Ask make for these threads.
    pub(super) jobserver: bool,
    pub(super) verbose: bool,
    pub(super) quiet: bool,
    pub(super) warnings_are_errors: bool,
    pub(super) warn_on_spills: bool,
    pub(super) warn_on_local_memory: bool,
    pub(super) warn_on_doubles: bool,
    /// Do not report forms of `.multicast::cluster` that are expected to be slow.
    pub(super) allows_multicast: bool,
    pub(super) allows_sparse: bool,
    /// Whether the options request checks of tensor memory accesses, and whether they forbid them.
    pub(super) checks_tensor_memory: [bool; 2],
    /// The program name to print in messages.
    pub(super) tool_name: Option<String>,
    pub(super) stats: Stats,
    /// The trace file to append to.
    pub(super) trace: Option<PathBuf>,
    /// The compiler stages to print, by their names in [`ptx_backend::compile::stages`].
    pub(super) shown: Vec<String>,
    /// The phases to disable, in the syntax of [`Switches::parse`].
    pub(super) phases: String,
    /// The largest input, in MiB.
    pub(super) max_input_size: u64,
    pub(super) help: bool,
    pub(super) version: bool,
    pub(super) list_versions: bool,
    /// Messages about the options themselves.
    pub(super) remarks: Vec<(Kind, String)>,
}

/// The parts of the output of `--compiler-stats`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Stats {
    pub(super) time: bool,
    pub(super) memory: bool,
    /// Print both figures for each stage.
    pub(super) stages: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            sources: Vec::new(),
            output: "elf.o".into(),
            sm: Sm::new(75),
            check_only: false,
            relocatable: false,
            extensible: false,
            per_function: false,
            patch: false,
            errors_at_exit: false,
            opt_level: 3,
            optimizes_explicitly: false,
            max_registers: None,
            max_function_registers: None,
            max_threads: None,
            min_blocks: None,
            overrides_directives: false,
            lines: LineTables::Given,
            debug: false,
            caches: CacheModifiers::default(),
            entries: Vec::new(),
            threads: None,
            jobserver: false,
            verbose: false,
            quiet: false,
            warnings_are_errors: false,
            warn_on_spills: false,
            warn_on_local_memory: false,
            warn_on_doubles: false,
            allows_multicast: false,
            allows_sparse: false,
            checks_tensor_memory: [false; 2],
            tool_name: None,
            stats: Stats::default(),
            trace: None,
            shown: Vec::new(),
            phases: String::new(),
            max_input_size: input::LARGEST,
            help: false,
            version: false,
            list_versions: false,
            remarks: Vec::new(),
        }
    }
}

/// The largest nesting depth of option files.
const MOST_DEPTH: usize = 16;

/// ptxas's message about a level above 0 for debuggers.
pub(super) const OPTIMIZED_DEBUGGING: &str = "Optimized debugging not supported";

/// The smallest and the largest register limit.
pub(crate) const REGISTERS: std::ops::RangeInclusive<i64> = 24..=255;

/// Parses the arguments after the program name. The error is in ptxas's words.
pub(super) fn parse(arguments: impl Iterator<Item = OsString>) -> Result<Options, String> {
    let mut reader = Reader::default();
    reader.read(arguments, 0)?;
    reader.finish()
}

/// The state of the parser.
#[derive(Default)]
struct Reader {
    options: Options,
    /// The values by long name.
    given: Vec<(&'static str, OsString)>,
    flags: Vec<&'static str>,
    files: Vec<Source>,
}

impl Reader {
    fn read(&mut self, arguments: impl Iterator<Item = OsString>, depth: usize) -> Result<(), String> {
        let mut arguments = arguments;
        while let Some(argument) = arguments.next() {
            if !argument.as_encoded_bytes().starts_with(b"-") || argument == "-" {
                self.files.push(Source::File(argument.into()));
                continue;
            }
            let unknown = || {
                let name = argument.to_string_lossy();
                format!("Unknown option '{}'", name[1..].split('=').next().unwrap_or_default())
            };
            let (name, mut value) = split(&argument).ok_or_else(unknown)?;
            let row = find(name, &mut value).ok_or_else(unknown)?;
            if row.value == Value::Nothing {
                if value.is_some() {
                    return Err(format!("no argument expected after '-{name}'"));
                }
                self.flags.push(row.long);
                self.judge(row);
                continue;
            }
            let value = match value {
                Some(value) => value,
                None => arguments.next().ok_or_else(|| format!("argument expected after '-{name}'"))?,
            };
            self.take(row, value, depth)?;
        }
        Ok(())
    }

    /// Records an option and its value.
    fn take(&mut self, row: &'static Row, value: OsString, depth: usize) -> Result<(), String> {
        match row.long {
            "input-as-string" => {
                let text = value.into_string().map_err(|_| "the input is not UTF-8 text".to_owned())?;
                self.files.push(Source::Text(text));
                return Ok(());
            }
            "options-file" => {
                if depth == MOST_DEPTH {
                    return Err("options files include each other".to_owned());
                }
                for name in value.to_string_lossy().split(',') {
                    let read = input::read(Path::new(name), 1);
                    let read = read.map_err(|_| format!("Could not open options file '{name}'"))?;
                    self.read(words(&read.text).into_iter().map(OsString::from), depth + 1)?;
                }
                return Ok(());
            }
            _ => {}
        }
        check(row, &value.to_string_lossy())?;
        if row.value != Value::List {
            let before = self.given.iter().rposition(|(long, _)| *long == row.long);
            if let Some(before) = before.filter(|_| row.long != "knob")
                && self.given.remove(before).1 != value
            {
                let long = row.long;
                let remark = format!(
                    "incompatible redefinition for option '{long}', the last value of this option was used"
                );
                self.options.remarks.push((Kind::Warning, remark));
            }
        }
        if row.value != Value::Truth || value == "true" {
            self.judge(row);
        }
        self.given.push((row.long, value));
        Ok(())
    }

    /// Records the message about an option that is only partly supported.
    fn judge(&mut self, row: &Row) {
        if let Effect::Missing(what) = row.effect {
            let remark = format!("option '{}' is not supported yet: {what}", row.long);
            self.options.remarks.push((Kind::Info, remark));
        }
    }

    fn has(&self, flag: &str) -> bool {
        self.flags.contains(&flag)
    }

    fn value(&self, long: &str) -> Option<&OsStr> {
        self.given.iter().rfind(|(name, _)| *name == long).map(|(_, value)| value.as_os_str())
    }

    fn text(&self, long: &str) -> Option<String> {
        self.value(long).map(|value| value.to_string_lossy().into_owned())
    }

    fn number(&self, long: &str) -> Option<i64> {
        number(&self.text(long)?)
    }

    fn warn(&mut self, warning: impl Into<String>) {
        self.options.remarks.push((Kind::Warning, warning.into()));
    }

    /// Derives the settings from all options together.
    fn finish(mut self) -> Result<Options, String> {
        // With `--compile-as-tools-patch`, ptxas ignores `--sanitize`.
        let patch = self.has("compile-as-tools-patch");
        if patch && self.value("sanitize").is_some() {
            self.given.retain(|(long, _)| *long != "sanitize");
            self.warn("Conflicting options '--sanitize' and '--compile-as-tools-patch' specified, ignoring '--sanitize' option");
        }
        for row in OPTIONS {
            if let Effect::Refused(what) = row.effect
                && (self.has(row.long) || self.value(row.long).is_some_and(|value| value != "false"))
            {
                return Err(format!("Option '{}' is not supported yet: {what}", row.long));
            }
        }
        let object = ["extensible-whole-program", "compile-only"].into_iter().find(|option| self.has(option));
        if let Some(object) = object.filter(|_| patch) {
            return Err(format!("Conflicting options '--{object}' and --compile-as-tools-patch specified"));
        }
        // Messages recorded so far are printed in any case.
        let said = self.options.remarks.len();
        let flags = std::mem::take(&mut self.flags);
        let has = |flag: &str| flags.contains(&flag);
        let o = &mut self.options;
        o.verbose = has("verbose");
        // With `--extensible-whole-program`, a linker adds to the program, so it is an object.
        o.relocatable = has("compile-only") || has("extensible-whole-program");
        o.extensible = has("extensible-whole-program") && !has("compile-only");
        o.per_function = has("compile-only") || has("device-debug");
        o.patch = patch;
        // A debugger shows the errors of a kernel's accesses while the kernel runs.
        o.errors_at_exit = has("make-errors-visible-at-exit") || has("device-debug");
        o.quiet = has("disable-warnings");
        o.warnings_are_errors = has("warning-as-error");
        o.warn_on_spills = has("warn-on-spills");
        o.warn_on_local_memory = has("warn-on-local-memory-usage");
        o.warn_on_doubles = has("warn-on-double-precision-use");
        o.allows_multicast = has("suppress-async-bulk-multicast-advisory-warning");
        o.allows_sparse = has("suppress-sparse-mma-advisory-info");
        o.checks_tensor_memory = ["g-tensor-memory-access-check", "gno-tensor-memory-access-check"].map(has);
        o.debug = has("device-debug");
        let asked = has("generate-line-info") || has("device-debug");
        o.lines = match has("suppress-debug-info") {
            true => LineTables::Never,
            false if asked => LineTables::Always,
            false => LineTables::Given,
        };
        o.overrides_directives = has("override-directive-values");
        (o.help, o.version, o.list_versions) = (has("help"), has("version"), has("list-version"));
        o.sources = std::mem::take(&mut self.files);
        // As with ptxas, texts follow the files.
        o.sources.sort_by_key(|source| matches!(source, Source::Text(_)));
        if o.sources.len() > 1 {
            o.lines = LineTables::Never;
        }
        if asked && o.sources.len() > 1 {
            self.warn("line tables of several inputs are not supported yet; none are written");
        }
        if let Some(path) = self.value("output-file") {
            self.options.output = path.into();
        }
        self.options.tool_name = self.text("tool-name");
        self.options.trace = self.value("fdevice-time-trace").map(PathBuf::from);
        if let Some(machine) = self.text("machine").filter(|machine| number(machine) != Some(64)) {
            return Err(format!("Value '{machine}' is not defined for option 'machine'"));
        }
        self.target()?;
        self.conflicts(&flags);
        self.levels(has("device-debug"))?;
        self.caches();
        self.options.max_registers = self.registers("maxrregcount")?;
        if has("compile-only") {
            self.options.max_function_registers = self.registers("device-function-maxrregcount")?;
        }
        self.launch();
        self.lists()?;
        if self.text("fmad").as_deref() == Some("false") {
            self.options.turn(&format!("PHASE=-{CONTRACTION}"))?;
        }
        if has("disable-optimizer-constants") {
            self.options.turn(&format!("PHASE=-{LITERALS}"))?;
        }
        self.told_only(&flags);
        if let Some(threads) = self.number("split-compile") {
            let threads = usize::try_from(threads)
                .map_err(|_| format!("Invalid value '{threads}' for option '--split-compile'"))?;
            self.options.threads = Some(threads);
            self.options.jobserver = has("jobserver");
        }
        if let Some(size) = self.text("max-input-size") {
            let known = number(&size).and_then(|size| u64::try_from(size).ok());
            let undefined = || format!("Value '{size}' is not defined for option 'max-input-size'");
            let known = known.filter(|size| (1..=input::MOST).contains(size));
            self.options.max_input_size = known.ok_or_else(undefined)?;
        }
        let mut remarks = self.options.remarks.split_off(said);
        if has("warning-as-error") {
            for (kind, _) in remarks.iter_mut().filter(|(kind, _)| *kind == Kind::Warning) {
                *kind = Kind::Error;
            }
        } else if has("disable-warnings") {
            remarks.retain(|(kind, _)| *kind != Kind::Warning);
        }
        self.options.remarks.extend(remarks);
        Ok(self.options)
    }

    fn target(&mut self) -> Result<(), String> {
        let Some(name) = self.text("gpu-name") else { return Ok(()) };
        let known: Vec<Sm> = targets().collect();
        // There are no names such as `lto_90a`.
        let is_plain = |number: &&str| number.bytes().all(|byte| byte.is_ascii_digit());
        let virtual_name =
            name.strip_prefix("compute_").or_else(|| name.strip_prefix("lto_").filter(is_plain));
        let real = virtual_name.map_or(name.clone(), |number| format!("sm_{number}"));
        // Target names have exactly one spelling.
        let sm = known.iter().find(|sm| sm.to_string() == real).ok_or_else(|| {
            let names: Vec<String> = known.iter().map(Sm::to_string).collect();
            format!("Value '{name}' is not defined for option 'gpu-name'; defined are {}", names.join(", "))
        })?;
        (self.options.sm, self.options.check_only) = (*sm, virtual_name.is_some());
        Ok(())
    }

    /// Reads the optimization level, and the settings that follow from level 0.
    fn levels(&mut self, debug: bool) -> Result<(), String> {
        let level = self.number("opt-level").map(|level| if level < 0 { 3 } else { level.min(3) as u8 });
        if debug && level.is_some_and(|level| level > 0) {
            return Err(OPTIMIZED_DEBUGGING.to_owned());
        }
        let fast = self.text("Ofast-compile").unwrap_or("0".to_owned());
        if !matches!(&*fast, "max" | "mid" | "min" | "0") {
            return Err(format!(
                "Invalid value for --Ofast-compile/-Ofc ({fast}), is not 'max', 'mid', 'min', or '0'"
            ));
        }
        if fast != "0" && debug {
            self.warn("Conflicting options '--device-debug' and '--Ofast-compile=<min,mid,max>' specified, ignoring '--Ofast-compile=<min,mid,max>' option");
        } else if fast != "0" && level.is_some_and(|level| level > 0) {
            return Err(format!(
                "Conflicting options -opt-level=<1,2,3> and --Ofast-compile={fast} specified"
            ));
        }
        let least = match &*fast {
            _ if debug => 0,
            "max" => 0,
            "mid" => 1,
            _ => 3,
        };
        self.options.opt_level = level.unwrap_or(least);
        self.options.optimizes_explicitly = level.is_some_and(|level| level > 0);
        Ok(())
    }

    /// The register limit that an option sets.
    fn registers(&mut self, option: &str) -> Result<Option<u32>, String> {
        let Some(text) = self.text(option) else { return Ok(None) };
        let limit = match &*text {
            "archmax" => *REGISTERS.end(),
            "archmin" => 32,
            text => {
                let limit = number(text);
                let limit = limit.ok_or_else(|| format!("Invalid value '{text}' for option '{option}'"))?;
                // ptxas keeps the lower 32 bits too.
                i64::from(limit as i32)
            }
        };
        Ok(if limit < 0 || limit > *REGISTERS.end() {
            self.warn(format!("Too big maxrregcount value specified {limit}, will be ignored"));
            Some(*REGISTERS.end() as u32)
        } else {
            let least = *REGISTERS.start();
            if limit < least {
                let sm = self.options.sm;
                self.warn(format!(
                    "For profile {sm} adjusting per thread register count of {limit} to lower bound of {least}"
                ));
            }
            Some(limit.max(least) as u32)
        })
    }

    /// Reads the options for launch bounds.
    fn launch(&mut self) {
        let limited = self.value("maxrregcount").is_some();
        let lists = self.given.iter().filter(|(long, _)| *long == "maxntid");
        let words: Vec<String> = lists.map(|(_, value)| value.to_string_lossy().into_owned()).collect();
        let sizes: Vec<u32> = words
            .iter()
            .flat_map(|list| list.split(','))
            .map(|word| number(word).map_or(0, |size| size as u32))
            .collect();
        let blocks = self.number("minnctapersm").and_then(|blocks| u32::try_from(blocks).ok());
        for (given, name) in [(!sizes.is_empty(), "maxntid"), (blocks.is_some(), "minnctapersm")] {
            if given && limited {
                self.warn(format!(
                    "Conflicting options -maxrregcount and -{name} specified, ignoring -{name} option"
                ));
            }
        }
        if limited {
            return;
        }
        if sizes.len() > 3 {
            self.warn("Too many values specified for option '-maxntid', option will be ignored");
        } else if sizes.first().is_some_and(|&size| size > 0) {
            let size = |axis: usize| sizes.get(axis).copied().unwrap_or(1).max(1);
            self.options.max_threads = Some([size(0), size(1), size(2)]);
        }
        self.options.min_blocks = blocks.filter(|&blocks| blocks > 0);
    }

    /// Reads the options for the cache operators of accesses that have none.
    fn caches(&mut self) {
        const LOADS: [Mod; 5] = [Mod::Ca, Mod::Cg, Mod::Cs, Mod::Lu, Mod::Cv];
        const STORES: [Mod; 4] = [Mod::Wb, Mod::Cg, Mod::Cs, Mod::Wt];
        for (default, forced, access, modifiers) in [
            ("def-load-cache", "force-load-cache", "load", &LOADS[..]),
            ("def-store-cache", "force-store-cache", "store", &STORES),
        ] {
            if self.value(default).is_some() && self.value(forced).is_some() {
                self.warn(format!(
                    "Conflicting options {forced} and {default} specified, ignoring {default} option"
                ));
            }
            // The last option wins.
            for (option, forced) in [(default, false), (forced, true)] {
                let Some(text) = self.text(option) else { continue };
                let Some(modifier) = modifiers.iter().copied().find(|modifier| modifier.text() == text)
                else {
                    let wrong = format!("Invalid default cache modifier on {access} specified: {text}");
                    self.options.remarks.push((Kind::Error, wrong));
                    continue;
                };
                let modifier = Some(CacheModifier { modifier, forced });
                match access {
                    "load" => self.options.caches.loads = modifier,
                    _ => self.options.caches.stores = modifier,
                }
            }
        }
    }

    fn lists(&mut self) -> Result<(), String> {
        for (long, value) in std::mem::take(&mut self.given) {
            let value = value.to_string_lossy();
            let words = value.split(',').filter(|word| !word.is_empty());
            match long {
                "entry" => self.options.entries.extend(words.map(str::to_owned)),
                "compiler-stats" => {
                    for word in words {
                        let stats = &mut self.options.stats;
                        match word {
                            "time" | "t" => stats.time = true,
                            "memory" | "m" => stats.memory = true,
                            "phase-wise" | "p" => stats.stages = true,
                            _ => return Err(format!("Value '{word}' is not defined for option '{long}'")),
                        }
                    }
                }
                "knob" => self.options.turn(&value)?,
                _ => {}
            }
            self.given.push((long, value.into_owned().into()));
        }
        Ok(())
    }

    /// Records the message about preserved relocations: ptxas lists resolved relocations before sm_90, and this
    /// compiler lists none.
    fn preserved_relocations(&mut self) {
        let sm = self.options.sm;
        if Target::of(sm).is_some_and(|target| target.cubin.rela) {
            self.warn(format!(
                "'--preserve-relocs' option is not fully implemented for '{sm}' and may not work as expected"
            ));
        } else {
            let remark = "option 'preserve-relocs' is not supported yet: resolved relocations are not listed";
            self.options.remarks.push((Kind::Info, remark.to_owned()));
        }
    }

    /// Reports options that other options make void. ptxas does so before it reads their values.
    fn conflicts(&mut self, flags: &[&str]) {
        let has = |flag: &str| flags.contains(&flag);
        let (object, debug) = (has("compile-only"), has("device-debug"));
        if let Some(level) = self.number("register-usage-level").filter(|level| !(0..=10).contains(level)) {
            self.warn(format!(
                "Value of RegUsageLevel ({level}) is out of valid range {{0..10}}, option will be ignored"
            ));
        }
        if has("fast-compile") {
            let stronger = [("compile-only", object), ("device-debug", debug)].into_iter().find(|row| row.1);
            let splits = self.value("split-compile").is_some();
            match stronger {
                Some((stronger, _)) => self.ignored(stronger, "fast-compile"),
                None if splits => self.ignored("fast-compile", "split-compile"),
                None => {}
            }
        }
        if object && has("extensible-whole-program") {
            self.ignored("compile-only", "extensible-whole-program");
        }
        if debug && has("generate-line-info") {
            self.warn("Conflicting options --device-debug and --generate-line-info specified, ignoring --generate-line-info option");
        }
        if debug && self.value("register-usage-level").is_some() {
            self.ignored("device-debug", "register-usage-level");
        }
    }

    fn ignored(&mut self, stronger: &str, ignored: &str) {
        self.warn(format!(
            "Conflicting options '--{stronger}' and '--{ignored}' specified, ignoring '--{ignored}' option"
        ));
    }

    /// Reports options that have no effect in ptxas either.
    fn told_only(&mut self, flags: &[&str]) {
        let has = |flag: &str| flags.contains(&flag);
        let object = has("compile-only");
        if self.value("device-function-maxrregcount").is_some() && !object {
            self.warn("Command line option 'device-function-maxrregcount' not supported for 'whole program compilation', will be ignored");
        }
        if has("preserve-relocs") {
            self.preserved_relocations();
        }
        if has("suppress-debug-info") && !has("device-debug") && !has("generate-line-info") {
            self.warn("Option suppress-debug-info requires option device-debug or lineinfo; ignoring since latter is not specified");
        }
        if has("legacy-bar-warp-wide-behavior") {
            self.warn("'--legacy-bar-warp-wide-behavior' is a deprecated option, It will be removed in future release and is not recommended");
            self.warn("Command line option '--legacy-bar-warp-wide-behavior' not supported for '.target sm_70', will be ignored");
        }
        if object && has("legacy-bar-warp-wide-behavior") {
            self.warn("Option '--legacy-bar-warp-wide-behavior' may not work as expected in separate compilation unless all modules participating in linking have this option specified.");
        }
    }
}

/// Checks that a value has the type of its option.
fn check(row: &Row, value: &str) -> Result<(), String> {
    match row.value {
        Value::Number => match number(value) {
            None => Err(format!("'{value}': expected a number")),
            Some(number) if i32::try_from(number).is_err() => {
                Err(format!("32-bit integer value ({value}) out of range"))
            }
            Some(_) => Ok(()),
        },
        Value::Truth if !matches!(value, "true" | "false") => {
            Err(format!("'{value}': expected true or false"))
        }
        Value::Word(words) if !words.contains(&value) => {
            Err(format!("Value '{value}' is not defined for option '{}'", row.long))
        }
        _ => Ok(()),
    }
}

/// The words of an option file. Double quotes keep blanks in a word, and a backslash escapes the next character.
fn words(text: &str) -> Vec<String> {
    let (mut words, mut word) = (Vec::new(), None);
    let (mut quoted, mut characters) = (false, text.chars());
    while let Some(c) = characters.next() {
        match c {
            '"' => {
                quoted = !quoted;
                word.get_or_insert_with(String::new);
            }
            '\\' => word.get_or_insert_with(String::new).extend(characters.next()),
            c if c.is_whitespace() && !quoted => words.extend(word.take()),
            c => word.get_or_insert_with(String::new).push(c),
        }
    }
    words.extend(word);
    words
}

/// Parses a number as C's `strtol` does. An empty text is zero, and a number that is too large becomes the largest one.
fn number(text: &str) -> Option<i64> {
    let signed = text.trim_start();
    let (negative, digits) = match signed.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, signed.strip_prefix('+').unwrap_or(signed)),
    };
    let (radix, digits) = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(digits) => (16, digits),
        None if digits.len() > 1 && digits.starts_with('0') => (8, &digits[1..]),
        None => (10, digits),
    };
    if digits.is_empty() {
        return (text.is_empty()).then_some(0);
    }
    let number = digits.bytes().all(|b| b.is_ascii_alphanumeric()).then_some(digits)?;
    match i64::from_str_radix(number, radix) {
        Ok(number) => Some(if negative { -number } else { number }),
        Err(error) if *error.kind() == IntErrorKind::PosOverflow => {
            Some(if negative { i64::MIN } else { i64::MAX })
        }
        Err(_) => None,
    }
}

/// Splits `-name=value` into the name without its first dash and the value. `None` if the name is not UTF-8.
fn split(argument: &OsStr) -> Option<(&str, Option<OsString>)> {
    let bytes = argument.as_encoded_bytes();
    let end = bytes.iter().position(|&byte| byte == b'=').unwrap_or(bytes.len());
    let name = str::from_utf8(bytes.get(1..end)?).ok()?;
    let value = if end < bytes.len() { Some(rest(argument, end + 1)?) } else { None };
    Some((name, value))
}

/// The rest of an argument from a byte offset. The byte before the offset is ASCII.
#[cfg(unix)]
fn rest(argument: &OsStr, start: usize) -> Option<OsString> {
    use std::os::unix::ffi::OsStrExt;
    Some(OsStr::from_bytes(argument.as_bytes().get(start..)?).to_owned())
}

#[cfg(not(unix))]
fn rest(argument: &OsStr, start: usize) -> Option<OsString> {
    Some(argument.to_str()?.get(start..)?.into())
}

/// The option with a name. The values in `-O3` and `-m64` are attached to the name; `-O` accepts its value in no other
/// place.
fn find(name: &str, value: &mut Option<OsString>) -> Option<&'static Row> {
    let attached = OPTIONS.iter().find(|row| row.is_called(name));
    if name == "O" && value.is_none() {
        *value = Some("3".into());
    }
    if attached.is_some() {
        return attached;
    }
    let short = ["O", "m"].into_iter().find(|short| name.starts_with(short) && !name.starts_with("max"))?;
    let level = &name[1..];
    let whole = value.take().map_or(level.to_owned(), |rest| format!("{level}={}", rest.to_string_lossy()));
    *value = Some(whole.into());
    OPTIONS.iter().find(|row| row.short == short)
}

/// The accepted values of `-arch`.
pub(super) fn targets() -> impl Iterator<Item = Sm> {
    Sm::KNOWN.into_iter().filter(|sm| Sm::COMPILED.contains(&sm.number))
}

impl Options {
    /// Applies a `-knob` option.
    fn turn(&mut self, knob: &str) -> Result<(), String> {
        match knob.split_once('=') {
            Some(("DUMPIR", stage)) if stages().any(|known| known == stage) => {
                self.shown.push(stage.to_owned())
            }
            Some(("DUMPIR", stage)) => {
                let stages: Vec<&str> = stages().collect();
                return Err(format!(
                    "Unknown stage '{stage}' in DUMPIR; the stages are {}",
                    stages.join(", ")
                ));
            }
            Some(("PHASE", list)) => {
                Switches::parse(list)?;
                self.phases.push_str(list);
                self.phases.push(',');
            }
            _ => {
                return Err(format!("Unknown knob '{knob}'; the knobs are DUMPIR=STAGE and PHASE=-NAME,..."));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Options, String> {
        parse(line.split_whitespace().map(OsString::from))
    }

    fn wrong(line: &str) -> String {
        parsed(line).unwrap_err()
    }

    fn told(line: &str) -> Vec<String> {
        parsed(line).unwrap().remarks.into_iter().map(|(_, remark)| remark).collect()
    }

    #[test]
    fn every_spelling_of_a_value() {
        for line in [
            "-arch=sm_90 -O3 -o a -v in.ptx",
            "--gpu-name sm_90 --opt-level 3 --output-file=a --verbose in.ptx",
            "-O=3 -arch sm_90 -m64 -o=a in.ptx -v",
        ] {
            let o = parsed(line).unwrap();
            assert_eq!((o.sm, o.opt_level, o.verbose), (Sm::new(90), 3, true), "{line}");
            assert_eq!(o.output, PathBuf::from("a"));
            assert_eq!(o.sources, [Source::File("in.ptx".into())]);
            assert!(o.remarks.is_empty(), "{:?}", o.remarks);
        }
    }

    #[test]
    fn long_names_have_two_dashes_and_short_names_one() {
        for (line, message) in [
            ("-gpu-name=sm_80 a", "Unknown option 'gpu-name'"),
            ("--arch=sm_80 a", "Unknown option '-arch'"),
            ("-foo a", "Unknown option 'foo'"),
            ("--foo=1 a", "Unknown option '-foo'"),
            ("-entry k a", "Unknown option 'entry'"),
            ("-va.ptx", "Unknown option 'va.ptx'"),
            ("-compiler-stats=time a", "Unknown option 'compiler-stats'"),
            ("-v=true a", "no argument expected after '-v'"),
            ("a -o", "argument expected after '-o'"),
            ("a --fmad", "argument expected after '--fmad'"),
        ] {
            assert_eq!(wrong(line), message, "{line}");
        }
        for option in ["--", "-=", "--=x", "-\u{e4}", "---v"] {
            assert!(wrong(option).starts_with("Unknown option"), "{option}");
        }
    }

    #[test]
    fn values_of_the_wrong_kind() {
        for (line, message) in [
            ("-Ox a", "'x': expected a number"),
            ("-split-compile=x a", "'x': expected a number"),
            ("-split-compile=-1 a", "Invalid value '-1' for option '--split-compile'"),
            ("-fmad=0 a", "'0': expected true or false"),
            ("-m32 a", "Value '32' is not defined for option 'machine'"),
            ("-maxrregcount 32.5 a", "Invalid value '32.5' for option 'maxrregcount'"),
            ("-sanitize foo a", "Value 'foo' is not defined for option 'sanitize'"),
            ("--compiler-stats=x a", "Value 'x' is not defined for option 'compiler-stats'"),
            ("--opt-level 4294967296 a", "32-bit integer value (4294967296) out of range"),
            (
                "-split-compile 99999999999999999999 a",
                "32-bit integer value (99999999999999999999) out of range",
            ),
            ("-g -O2 a", "Optimized debugging not supported"),
            ("-Ofc=max -O1 a", "Conflicting options -opt-level=<1,2,3> and --Ofast-compile=max specified"),
            ("-optf none.txt", "Could not open options file 'none.txt'"),
            (
                "-astoolspatch -c -sanitize memcheck a",
                "Conflicting options '--compile-only' and --compile-as-tools-patch specified",
            ),
        ] {
            assert_eq!(wrong(line), message, "{line}");
        }
        for arch in ["sm_20", "sm_80a", "sm_999", "sm_107", "SM_80", "sm_080", "", "90", "sm_80,sm_90"] {
            let error = wrong(&format!("-arch={arch}"));
            let start =
                format!("Value '{arch}' is not defined for option 'gpu-name'; defined are sm_75, sm_80");
            assert!(error.starts_with(&start) && error.ends_with("sm_121f"), "{error}");
        }
        assert!(wrong("--max-input-size=5000 a.ptx").contains("is not defined"));
    }

    #[test]
    fn the_last_value_wins_with_a_warning() {
        let o = parsed("-O3 in.ptx -O0").unwrap();
        assert_eq!(o.opt_level, 0);
        assert_eq!(
            told("-O3 a -O0"),
            ["incompatible redefinition for option 'opt-level', the last value of this option was used"]
        );
        assert!(told("-O3 a -O3").is_empty());
    }

    #[test]
    fn levels_of_optimization() {
        let level = |line: &str| parsed(line).unwrap().opt_level;
        assert_eq!(["a", "-O a", "-O7 a", "-g a", "-Ofc max a", "-g -O0 a"].map(level), [3, 3, 3, 0, 0, 0]);
    }

    #[test]
    fn limits_of_registers() {
        let limit = |text: &str| parsed(&format!("-maxrregcount {text} a")).unwrap().max_registers;
        assert_eq!(
            ["32", "0x20", "040", "5", "archmax", "archmin", "300", "-1", "+32", "4294967295"].map(limit),
            [32, 32, 32, 24, 255, 32, 255, 255, 32, 255].map(Some)
        );
        assert_eq!(
            told("-maxrregcount 5 a"),
            ["For profile sm_75 adjusting per thread register count of 5 to lower bound of 24"]
        );
        assert_eq!(
            told("-maxrregcount 300 a"),
            ["Too big maxrregcount value specified 300, will be ignored"]
        );
    }

    #[test]
    fn launch_bounds() {
        let o = parsed("-maxntid 128,2 -minnctapersm 3 a").unwrap();
        assert_eq!((o.max_threads, o.min_blocks), (Some([128, 2, 1]), Some(3)));
        let o = parsed("-maxntid 128 -maxrregcount 32 a").unwrap();
        assert_eq!((o.max_threads, o.remarks.len()), (None, 1));
        assert_eq!(
            told("-maxntid 1,2,3,4 a"),
            ["Too many values specified for option '-maxntid', option will be ignored"]
        );
    }

    #[test]
    fn caches() {
        let caches = |line: &str| parsed(line).unwrap().caches;
        let of = |modifier, forced| Some(CacheModifier { modifier, forced });
        let (loads, stores) = (of(Mod::Cg, false), of(Mod::Wt, true));
        assert_eq!(caches("-dlcm=cg -fscm wt -dscm cs a"), CacheModifiers { loads, stores });
        let wrong = (Kind::Error, "Invalid default cache modifier on store specified: ca".to_owned());
        assert_eq!(parsed("-dscm ca a").unwrap().remarks, [wrong]);
        assert_eq!(
            told("-flcm=cg -dlcm=ca a"),
            [
                "Conflicting options force-load-cache and def-load-cache specified, ignoring def-load-cache option"
            ]
        );
    }

    #[test]
    fn threads() {
        let threads = |line: &str| {
            let options = parsed(line).unwrap();
            (options.threads, options.jobserver)
        };
        let lines =
            ["--jobserver a", "-split-compile 4 a", "-split-compile 0 a", "-split-compile 4 --jobserver a"];
        let expected = [(None, false), (Some(4), false), (Some(0), false), (Some(4), true)];
        assert_eq!(lines.map(threads), expected);
    }

    #[test]
    fn entries_are_listed_and_empty_names_ignored() {
        assert_eq!(parsed("-e a,b, -e= --entry c a.ptx").unwrap().entries, ["a", "b", "c"]);
    }

    #[test]
    fn texts_follow_files() {
        let words = ["a", "-ias", ".version 8.0 // b", "-"].map(OsString::from);
        let o = parse(words.into_iter()).unwrap();
        let text = Source::Text(".version 8.0 // b".into());
        assert_eq!(o.sources, [Source::File("a".into()), Source::File("-".into()), text]);
    }

    #[test]
    fn options_come_from_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("o.txt");
        std::fs::write(&path, "-v -arch=sm_80\n  -e k\tb.ptx").unwrap();
        let o = parsed(&format!("-optf {} a.ptx", path.display())).unwrap();
        assert_eq!((o.sm, o.verbose, &*o.entries), (Sm::new(80), true, &["k".to_owned()][..]));
        assert_eq!(o.sources, [Source::File("b.ptx".into()), Source::File("a.ptx".into())]);
        std::fs::write(&path, format!("-optf {}", path.display())).unwrap();
        assert!(wrong(&format!("-optf {}", path.display())).contains("include each other"));
    }

    #[test]
    fn warnings_may_be_errors_or_nothing() {
        let kinds = |line: &str| -> Vec<Kind> {
            parsed(line).unwrap().remarks.into_iter().map(|(kind, _)| kind).collect()
        };
        assert_eq!(kinds("-maxrregcount 5 a"), [Kind::Warning]);
        assert_eq!(kinds("-maxrregcount 5 -Werror a"), [Kind::Error]);
        assert_eq!(kinds("-maxrregcount 5 -w a"), []);
        // As in ptxas, independent of the options.
        assert_eq!(kinds("-O2 -w -O3 -Werror a"), [Kind::Warning]);
    }

    #[test]
    fn remarks_come_in_the_order_of_ptxas() {
        let line = "-func-maxrregcount 2 -preserve-relocs -legacy-bar-warp-wide-behavior -arch sm_90 -maxrregcount 3 \
                    -regUsageLevel 20 -dlcm=cg -flcm=cg -lineinfo -g a";
        let starts = [
            "Value of RegUsageLevel (20)",
            "Conflicting options --device-debug and --generate",
            "Conflicting options '--device-debug' and '--register",
            "Conflicting options force-load-cache",
            "For profile sm_90 adjusting",
            "Command line option 'device-function-maxrregcount'",
            "'--preserve-relocs' option",
            "'--legacy-bar-warp-wide-behavior' is",
            "Command line option '--legacy",
        ];
        let told = told(line);
        assert_eq!(told.len(), starts.len(), "{told:?}");
        for (remark, start) in told.iter().zip(starts) {
            assert!(remark.starts_with(start), "{remark}");
        }
        let o = parsed("-c -func-maxrregcount 40 -maxrregcount 48 a").unwrap();
        assert_eq!((o.max_registers, o.max_function_registers), (Some(48), Some(40)));
    }

    #[test]
    fn words_of_files_of_options() {
        assert_eq!(words("-o \"a b\"  c\\ d x\"y z\"w\n\"\" 'q"), ["-o", "a b", "c d", "xy zw", "", "'q"]);
    }

    #[test]
    fn what_is_missing_is_said() {
        assert!(told("-fmad=false -pic true -ret-end -no-bb-merge --opt-pointers a").is_empty());
        assert!(told("-device-stack-protector false a").is_empty());
        assert!(told("-device-stack-protector true a")[0].contains("no canaries"));
        assert!(told("-preserve-relocs -arch sm_80 a")[0].contains("not listed"));
        assert!(told("-preserve-relocs -arch sm_90 a")[0].contains("not fully implemented for 'sm_90'"));
        assert!(wrong("-sanitize memcheck a").contains("not supported yet: instrumentation"));
        assert!(told("-sanitize memcheck -astoolspatch a")[0].contains("ignoring '--sanitize' option"));
    }

    /// File names may contain arbitrary bytes.
    #[cfg(unix)]
    #[test]
    fn arguments_need_not_be_text() {
        use std::os::unix::ffi::OsStrExt;
        let bytes = |bytes: &[u8]| OsStr::from_bytes(bytes).to_owned();
        let line = [bytes(b"-o"), bytes(b"a\xff"), bytes(b"b\xfe")];
        let o = parse(line.into_iter()).unwrap();
        assert_eq!(
            (o.output, o.sources),
            (bytes(b"a\xff").into(), vec![Source::File(bytes(b"b\xfe").into())])
        );
        let o = parse([bytes(b"--output-file=a\xff=b")].into_iter()).unwrap();
        assert_eq!(o.output, PathBuf::from(bytes(b"a\xff=b")));
        for wrong in [&b"-\xff"[..], b"-arch=\xff", b"-v=\xff", b"-\xff=1", b"-O=\xff", b"-e\xff"] {
            assert!(parse([bytes(wrong)].into_iter()).is_err(), "{}", wrong.escape_ascii());
        }
    }

    #[test]
    fn virtual_targets_check_only() {
        for arch in ["compute_80", "compute_90a", "lto_90"] {
            assert!(parsed(&format!("-arch={arch} a.ptx")).unwrap().check_only);
        }
        assert!(parsed("-arch=lto_90a a.ptx").is_err());
    }
}
