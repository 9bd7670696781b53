//! Derives the settings of a compilation from all options together, with the messages about options that exclude each
//! other.

use std::path::PathBuf;

use ptx_analysis::{CacheModifier, LineTables};
use ptx_backend::phases::{CONTRACTION, LITERALS};
use ptx_backend::target::Target;
use ptx_isa::{Mod, Sm};

use super::super::log::Kind;
use super::reader::Reader;
use super::spelling::number;
use super::table::{Effect, OPTIONS};
use super::{OPTIMIZED_DEBUGGING, Options, REGISTERS, Source, targets};
use crate::input;

impl Reader {
    /// Derives the settings from all options together.
    pub(super) fn finish(mut self) -> Result<Options, String> {
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
