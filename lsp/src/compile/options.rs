//! Parses ptxas's command line, with ptxas's rules and error messages.
//!
//! Long names have two dashes and short names one. A value follows after `=` or as the next argument; only the value of
//! `-O` is attached. If an option is repeated, the last value wins, except for lists, which grow. Every option of ptxas
//! 13.0 is known: [`table`] says how each one is handled, [`spelling`] reads names and values, [`reader`] collects them, and
//! [`settings`] derives the settings from all of them together. Paths may contain any bytes that the system accepts.

mod reader;
mod settings;
mod spelling;
mod table;

use std::ffi::OsString;
use std::path::PathBuf;

use ptx_analysis::{CacheModifiers, LineTables};
use ptx_backend::Switches;
use ptx_backend::compile::stages;
use ptx_isa::Sm;

use super::log::Kind;
use crate::input;
use reader::Reader;
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
    use super::spelling::words;
    use super::*;
    use ptx_analysis::CacheModifier;
    use ptx_isa::Mod;
    use std::ffi::OsStr;

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
