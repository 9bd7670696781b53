//! ptxas's command line.
//!
//! Every option of ptxas 13.0 is known: those that change the code as implied here are honoured, those that
//! cannot change what we produce are accepted, and the rest are refused by name; one is our own, the last of
//! the list. Of ptxas's undocumented knobs there is one, `DUMPIR=STAGE`. An option may be written `-name value`, `-name=value` or `--long-name=value`; of several, the last
//! wins. Paths may be any bytes that the system takes.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use ptx_backend::compile::stages;
use ptx_isa::Sm;

use crate::input;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    pub inputs: Vec<PathBuf>,
    pub output: PathBuf,
    pub sm: Sm,
    /// `compute_NN`: check only.
    pub check_only: bool,
    pub opt_level: u8,
    pub max_registers: Option<u32>,
    pub entries: Vec<String>,
    /// Compile functions on all cores instead of one after another.
    pub split: bool,
    pub verbose: bool,
    pub quiet: bool,
    pub warnings_are_errors: bool,
    pub warn_on_spills: bool,
    pub warn_on_local_memory: bool,
    /// The compiler's stages to show, as [`ptx_backend::compile::stages`] names them.
    pub shown: Vec<String>,
    /// MiB.
    pub max_input_size: u64,
    pub help: bool,
    pub version: bool,
    /// What to tell the user about the options themselves.
    pub warnings: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            inputs: Vec::new(),
            output: "elf.o".into(),
            sm: Sm::new(75),
            check_only: false,
            opt_level: 3,
            max_registers: None,
            entries: Vec::new(),
            split: false,
            verbose: false,
            quiet: false,
            warnings_are_errors: false,
            warn_on_spills: false,
            warn_on_local_memory: false,
            shown: Vec::new(),
            max_input_size: input::LARGEST,
            help: false,
            version: false,
            warnings: Vec::new(),
        }
    }
}

/// How an option is treated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// Honoured; takes no value.
    Flag,
    /// Honoured; takes a value.
    Value,
    /// Accepted: it cannot change what is produced here.
    Ignored,
    IgnoredValue,
    /// Accepted with a warning: the code is right, but what it asks for is not added to the file yet.
    Missing,
    /// Refused: the output would not be what it asks for.
    Refused,
    RefusedValue,
}

/// Long and short names. The short one stands alone: `-arch`, `-O`.
#[rustfmt::skip]
const OPTIONS: &[(&str, &str, Kind)] = &[
    ("gpu-name", "arch", Kind::Value),
    ("opt-level", "O", Kind::Value),
    ("output-file", "o", Kind::Value),
    ("maxrregcount", "maxrregcount", Kind::Value),
    ("entry", "e", Kind::Value),
    ("machine", "m", Kind::Value),
    ("verbose", "v", Kind::Flag),
    ("disable-warnings", "w", Kind::Flag),
    ("warning-as-error", "Werror", Kind::Flag),
    ("warn-on-spills", "warn-spills", Kind::Flag),
    ("warn-on-local-memory-usage", "warn-lmem-usage", Kind::Flag),
    ("help", "h", Kind::Flag),
    ("version", "V", Kind::Flag),
    ("allow-expensive-optimizations", "allow-expensive-optimizations", Kind::IgnoredValue),
    ("Ofast-compile", "Ofc", Kind::IgnoredValue),
    ("register-usage-level", "regUsageLevel", Kind::IgnoredValue),
    ("split-compile", "split-compile", Kind::Value),
    ("fmad", "fmad", Kind::IgnoredValue),
    ("compiler-annotations", "annotate", Kind::Ignored),
    ("disable-optimizer-constants", "disable-optimizer-consts", Kind::Ignored),
    ("dont-merge-basicblocks", "no-bb-merge", Kind::Ignored),
    ("return-at-end", "ret-end", Kind::Ignored),
    ("optimize-float-atomics", "opt-fp-atomics", Kind::Ignored),
    ("suppress-debug-info", "suppress-debug-info", Kind::Ignored),
    ("suppress-double-demote-warning", "suppress-double-demote-warning", Kind::Ignored),
    ("suppress-sparse-mma-advisory-info", "suppress-sparse-mma-advisory-info", Kind::Ignored),
    ("suppress-async-bulk-multicast-advisory-warning", "suppress-async-bulk-multicast-advisory-warning", Kind::Ignored),
    ("suppress-stack-size-warning", "suppress-stack-size-warning", Kind::Ignored),
    ("warn-on-double-precision-use", "warn-double-usage", Kind::Ignored),
    ("legacy-bar-warp-wide-behavior", "legacy-bar-warp-wide-behavior", Kind::Ignored),
    ("device-function-maxrregcount", "func-maxrregcount", Kind::IgnoredValue),
    ("generate-line-info", "lineinfo", Kind::Missing),
    ("device-debug", "g", Kind::Missing),
    ("sp-bounds-check", "sp-bounds-check", Kind::Missing),
    ("compile-only", "c", Kind::Refused),
    ("compile-as-tools-patch", "astoolspatch", Kind::Refused),
    ("extensible-whole-program", "ewp", Kind::Refused),
    ("preserve-relocs", "preserve-relocs", Kind::Refused),
    ("make-errors-visible-at-exit", "make-errors-visible-at-exit", Kind::Refused),
    ("g-tensor-memory-access-check", "g-tmem-access-check", Kind::Refused),
    ("gno-tensor-memory-access-check", "gno-tmem-access-check", Kind::Ignored),
    ("override-directive-values", "override-directive-values", Kind::Refused),
    ("device-stack-protector", "device-stack-protector", Kind::RefusedValue),
    ("position-independent-code", "pic", Kind::RefusedValue),
    ("def-load-cache", "dlcm", Kind::RefusedValue),
    ("def-store-cache", "dscm", Kind::RefusedValue),
    ("force-load-cache", "flcm", Kind::RefusedValue),
    ("force-store-cache", "fscm", Kind::RefusedValue),
    ("input-as-string", "ias", Kind::RefusedValue),
    ("options-file", "optf", Kind::RefusedValue),
    ("maxntid", "maxntid", Kind::RefusedValue),
    ("minnctapersm", "minnctapersm", Kind::RefusedValue),
    ("sanitize", "sanitize", Kind::RefusedValue),
    ("knob", "knob", Kind::Value),
    ("max-input-size", "max-input-size", Kind::Value),
];

/// Reads the arguments after the program's name. The error is ptxas's wording of what is wrong.
pub fn parse(arguments: impl Iterator<Item = OsString>) -> Result<Options, String> {
    let mut options = Options::default();
    let mut seen: Vec<&str> = Vec::new();
    let mut arguments = arguments;
    while let Some(argument) = arguments.next() {
        if !argument.as_encoded_bytes().starts_with(b"-") || argument == "-" {
            options.inputs.push(argument.into());
            continue;
        }
        let unknown = || format!("Unknown option '{}'", argument.to_string_lossy().trim_start_matches('-'));
        let (name, mut value) = split(&argument).ok_or_else(unknown)?;
        let &(long, _, kind) = find(name, &mut value).ok_or_else(unknown)?;
        let takes_value = matches!(kind, Kind::Value | Kind::IgnoredValue | Kind::RefusedValue);
        let value = match (takes_value, value) {
            (true, Some(value)) => value,
            (true, None) => arguments.next().ok_or_else(|| format!("Option '{long}' expects a value"))?,
            (false, Some(value)) if value != "true" => {
                let value = value.to_string_lossy();
                return Err(format!("Option '{long}' takes no value, but '{value}' was given"));
            }
            (false, _) => OsString::new(),
        };
        match kind {
            Kind::Flag => set_flag(&mut options, long),
            Kind::Value => {
                if seen.contains(&long) && !matches!(long, "entry" | "knob") {
                    options.warnings.push(format!(
                        "incompatible redefinition for option '{long}', the last value of this option was used"
                    ));
                }
                seen.push(long);
                set_value(&mut options, long, value)?;
            }
            Kind::Ignored | Kind::IgnoredValue => {}
            Kind::Missing => {
                options.warnings.push(format!("option '{long}' is not supported yet and has no effect"))
            }
            Kind::Refused => return Err(format!("Option '{long}' is not supported yet")),
            Kind::RefusedValue if value == "false" => {}
            Kind::RefusedValue => return Err(format!("Option '{long}' is not supported yet")),
        }
    }
    Ok(options)
}

/// Name and `=` value of `-name=value`. `None` for names that are no text.
fn split(argument: &OsStr) -> Option<(&str, Option<OsString>)> {
    let bytes = argument.as_encoded_bytes();
    let start = if bytes.starts_with(b"--") { 2 } else { 1 };
    let end = bytes.iter().position(|&byte| byte == b'=').unwrap_or(bytes.len());
    let name = str::from_utf8(bytes.get(start..end)?).ok()?;
    let value = if end < bytes.len() { Some(rest(argument, end + 1)?) } else { None };
    Some((name, value))
}

/// What follows after so many bytes, the last of which is ASCII.
#[cfg(unix)]
fn rest(argument: &OsStr, start: usize) -> Option<OsString> {
    use std::os::unix::ffi::OsStrExt;
    Some(OsStr::from_bytes(argument.as_bytes().get(start..)?).to_owned())
}

#[cfg(not(unix))]
fn rest(argument: &OsStr, start: usize) -> Option<OsString> {
    Some(argument.to_str()?.get(start..)?.into())
}

/// The option of a name; `-O3` has its value attached.
fn find(name: &str, value: &mut Option<OsString>) -> Option<&'static (&'static str, &'static str, Kind)> {
    let exact = OPTIONS.iter().find(|(long, short, _)| *long == name || *short == name);
    if exact.is_some() {
        return exact;
    }
    let level = name.strip_prefix('O').filter(|l| l.len() == 1 && l.as_bytes()[0].is_ascii_digit())?;
    *value = Some(level.into());
    OPTIONS.iter().find(|(_, short, _)| *short == "O")
}

fn set_flag(options: &mut Options, long: &str) {
    match long {
        "verbose" => options.verbose = true,
        "disable-warnings" => options.quiet = true,
        "warning-as-error" => options.warnings_are_errors = true,
        "warn-on-spills" => options.warn_on_spills = true,
        "warn-on-local-memory-usage" => options.warn_on_local_memory = true,
        "help" => options.help = true,
        "version" => options.version = true,
        _ => {}
    }
}

/// The values of `-arch`.
fn targets() -> impl Iterator<Item = Sm> {
    Sm::KNOWN.into_iter().filter(|sm| Sm::COMPILED.contains(&sm.number))
}

fn set_value(options: &mut Options, long: &str, value: OsString) -> Result<(), String> {
    if long == "output-file" {
        options.output = value.into();
        return Ok(());
    }
    let value = &*value.to_string_lossy();
    let undefined = || format!("Value '{value}' is not defined for option '{long}'");
    match long {
        "gpu-name" => {
            let known: Vec<Sm> = targets().collect();
            options.sm = Sm::parse(value).filter(|sm| known.contains(sm)).ok_or_else(|| {
                let names: Vec<String> = known.iter().map(Sm::to_string).collect();
                format!("{}; defined are {}", undefined(), names.join(", "))
            })?;
            options.check_only = value.starts_with("compute_");
        }
        "opt-level" => {
            options.opt_level = value.parse().ok().filter(|l: &u8| *l <= 4).ok_or_else(undefined)?.min(3);
        }
        "maxrregcount" => {
            options.max_registers = match value {
                "archmax" => None,
                "archmin" => Some(16),
                number => {
                    let number: u32 = number.parse().map_err(|_| undefined())?;
                    // Zero means no limit; below the minimum that calls need, the minimum.
                    (number != 0).then_some(number.clamp(16, 255))
                }
            };
        }
        "entry" => {
            options.entries.extend(value.split(',').filter(|name| !name.is_empty()).map(str::to_owned))
        }
        "knob" => {
            let known = |stage: &str| stages().any(|known| known == stage);
            match value.strip_prefix("DUMPIR=") {
                Some(stage) if known(stage) => options.shown.push(stage.to_owned()),
                Some(stage) => {
                    let stages: Vec<&str> = stages().collect();
                    return Err(format!(
                        "Unknown stage '{stage}' in DUMPIR; the stages are {}",
                        stages.join(", ")
                    ));
                }
                None => return Err(format!("Unknown knob '{value}'; the only knob is DUMPIR=STAGE")),
            }
        }
        "max-input-size" => {
            let size = value.parse().ok().filter(|size| (1..=input::MOST).contains(size));
            options.max_input_size = size.ok_or_else(undefined)?;
        }
        // One thread is the default; zero stands for as many as there are cores.
        "split-compile" => options.split = value.parse::<u32>().map_err(|_| undefined())? != 1,
        "machine" if value == "64" => {}
        _ => return Err(undefined()),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Options, String> {
        parse(line.split_whitespace().map(OsString::from))
    }

    #[test]
    fn every_spelling_of_a_value() {
        for line in
            ["-arch=sm_90 -O3 -o a -v in.ptx", "--gpu-name sm_90 -O 3 --output-file=a --verbose in.ptx"]
        {
            let o = parsed(line).unwrap();
            assert_eq!((o.sm, o.opt_level, o.verbose), (Sm::new(90), 3, true), "{line}");
            assert_eq!(o.output, PathBuf::from("a"));
            assert_eq!(o.inputs, [PathBuf::from("in.ptx")]);
            assert!(o.warnings.is_empty());
        }
    }

    #[test]
    fn the_last_value_wins_with_a_warning() {
        let o = parsed("-O3 in.ptx -O0").unwrap();
        assert_eq!(o.opt_level, 0);
        assert_eq!(o.warnings.len(), 1);
    }

    #[test]
    fn bad_options_are_named() {
        assert_eq!(parsed("--foo x").unwrap_err(), "Unknown option 'foo'");
        for arch in ["sm_20", "sm_80a", "sm_999", "sm_107", "", "90"] {
            let error = parsed(&format!("-arch={arch}")).unwrap_err();
            let start =
                format!("Value '{arch}' is not defined for option 'gpu-name'; defined are sm_75, sm_80");
            assert!(error.starts_with(&start) && error.ends_with("sm_121f"), "{error}");
        }
        assert_eq!(parsed("-").unwrap().inputs, [PathBuf::from("-")]);
        for option in ["--", "-=", "--=x", "-\u{e4}", "---v"] {
            assert!(parsed(option).unwrap_err().starts_with("Unknown option"), "{option}");
        }
        assert!(parsed("--max-input-size=5000 a.ptx").unwrap_err().contains("is not defined"));
        assert!(parsed("-c a.ptx").unwrap_err().contains("not supported yet"));
        assert!(parsed("-o").unwrap_err().contains("expects a value"));
    }

    #[test]
    fn entries_are_listed_and_empty_names_ignored() {
        assert_eq!(parsed("-e a,b, -entry= --entry c a.ptx").unwrap().entries, ["a", "b", "c"]);
    }

    /// Names of files are bytes.
    #[cfg(unix)]
    #[test]
    fn arguments_need_not_be_text() {
        use std::os::unix::ffi::OsStrExt;
        let bytes = |bytes: &[u8]| OsStr::from_bytes(bytes).to_owned();
        let line = [bytes(b"-o"), bytes(b"a\xff"), bytes(b"b\xfe")];
        let o = parse(line.into_iter()).unwrap();
        assert_eq!((o.output, o.inputs), (bytes(b"a\xff").into(), vec![bytes(b"b\xfe").into()]));
        let o = parse([bytes(b"--output-file=a\xff=b")].into_iter()).unwrap();
        assert_eq!(o.output, PathBuf::from(bytes(b"a\xff=b")));
        for wrong in [&b"-\xff"[..], b"-arch=\xff", b"-v=\xff", b"-\xff=1", b"-O=\xff", b"-e\xff"] {
            assert!(parse([bytes(wrong)].into_iter()).is_err(), "{}", wrong.escape_ascii());
        }
    }

    #[test]
    fn compute_targets_check_only() {
        assert!(parsed("-arch=compute_80 a.ptx").unwrap().check_only);
    }

    #[test]
    fn names_are_unique() {
        for (i, a) in OPTIONS.iter().enumerate() {
            for b in &OPTIONS[i + 1..] {
                assert!(a.0 != b.0 && a.1 != b.1, "{a:?} {b:?}");
            }
        }
    }
}
