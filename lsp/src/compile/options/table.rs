//! The table of ptxas's options: their names, their values, and how they are handled here.
//!
//! The table has a row for every option that `ptxas --help` of 13.0 lists, then rows for unlisted options that NVIDIA's
//! other tools pass to ptxas, and at the end two options of our own.

/// The value of an option.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::compile) enum Value {
    Nothing,
    Text,
    /// A comma-separated list. Only options with lists may be repeated.
    List,
    /// An integer in C's notation: decimal, octal or hexadecimal.
    Number,
    /// `true` or `false`.
    Truth,
    /// One of these words.
    Word(&'static [&'static str]),
}

/// How an option is handled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::compile) enum Effect {
    Honoured,
    /// Accepted silently: the compiler always does what the option asks for, or the option only permits something that
    /// the compiler does not do.
    Holds,
    /// Accepted with a message: the code is correct, but a part of what the option asks for is missing.
    Missing(&'static str),
    /// Rejected: the output would not be what the option asks for. The text states what the compiler cannot do.
    Refused(&'static str),
}

/// An option.
#[derive(Clone, Copy, Debug)]
pub(in crate::compile) struct Row {
    /// The name with two dashes.
    pub(in crate::compile) long: &'static str,
    /// The name with one dash.
    pub(in crate::compile) short: &'static str,
    pub(in crate::compile) value: Value,
    pub(in crate::compile) effect: Effect,
    /// What the option asks for, in a few words.
    pub(in crate::compile) about: &'static str,
}

const fn row(
    long: &'static str,
    short: &'static str,
    value: Value,
    effect: Effect,
    about: &'static str,
) -> Row {
    Row { long, short, value, effect, about }
}

/// What ptxas adds to code with the option `sanitize`.
const INSTRUMENTATION: &str = "instrumentation, which is a call of a check before each memory access (memcheck) or a random delay before each store and atomic (threadsteer)";

use Effect::{Holds, Honoured, Missing, Refused};
use Value::{List, Nothing, Number, Text, Truth, Word};

#[rustfmt::skip]
pub(in crate::compile) const OPTIONS: &[Row] = &[
    row("Ofast-compile", "Ofc", Text, Honoured, "compile faster at the price of slower code: 0, min, mid or max (default 0)"),
    row("allow-expensive-optimizations", "allow-expensive-optimizations", Truth, Holds, "allow optimizations that take much time and memory"),
    // Refused after the check of the module, which must not have kernels.
    row("compile-as-tools-patch", "astoolspatch", Nothing, Honoured, "compile code that tools insert into kernels; the module has no kernels"),
    row("compile-only", "c", Nothing, Honoured, "write an object for nvlink"),
    row("compiler-annotations", "annotate", Nothing, Missing("no annotations are written"), "write annotations for tools"),
    row("def-load-cache", "dlcm", Text, Honoured, "cache operator of global loads without one: ca, cg, cs, lu or cv (default ca)"),
    row("def-store-cache", "dscm", Text, Honoured, "cache operator of global stores without one: wb, cg, cs or wt (default wb)"),
    row("device-debug", "g", Nothing, Honoured, "write debug information, without optimization"),
    row("device-function-maxrregcount", "func-maxrregcount", Text, Honoured, "maximum number of registers of device functions, with --compile-only"),
    row("device-stack-protector", "device-stack-protector", Truth, Missing("stacks have no canaries"), "protect stacks with canaries"),
    row("disable-optimizer-constants", "disable-optimizer-consts", Nothing, Honoured, "do not put doubles into a constant bank"),
    row("disable-warnings", "w", Nothing, Honoured, "print no warnings"),
    // This option and `return-at-end` decide at which instructions a debugger can stop. nvcc passes both with `-G`.
    row("dont-merge-basicblocks", "no-bb-merge", Nothing, Holds, "do not merge basic blocks, for debuggers"),
    row("entry", "e", List, Honoured, "compile only these kernels and the functions that they call"),
    row("extensible-whole-program", "ewp", Nothing, Honoured, "whole program that calls functions of other modules"),
    row("fmad", "fmad", Truth, Honoured, "fuse products and sums of floats (default true)"),
    row("force-load-cache", "flcm", Text, Honoured, "cache operator of all global loads"),
    row("force-store-cache", "fscm", Text, Honoured, "cache operator of all global stores"),
    row("g-tensor-memory-access-check", "g-tmem-access-check", Nothing, Honoured, "check accesses of tensor memory; --device-debug does so, too"),
    row("generate-line-info", "lineinfo", Nothing, Honoured, "write line tables"),
    row("gno-tensor-memory-access-check", "gno-tmem-access-check", Nothing, Honoured, "do not check accesses of tensor memory with --device-debug"),
    row("gpu-name", "arch", Text, Honoured, "target (default sm_75); with compute_NN or lto_NN, only check"),
    row("help", "h", Nothing, Honoured, "print this help"),
    row("input-as-string", "ias", Text, Honoured, "PTX text instead of an input file"),
    row("legacy-bar-warp-wide-behavior", "legacy-bar-warp-wide-behavior", Nothing, Honoured, "barriers of whole warps, for targets before sm_70"),
    row("list-version", "version-ls", Nothing, Honoured, "print the supported PTX ISA versions"),
    row("machine", "m", Number, Honoured, "bits of an address: 64"),
    row("make-errors-visible-at-exit", "make-errors-visible-at-exit", Nothing, Honoured, "wait for memory errors before threads end"),
    row("maxntid", "maxntid", List, Honoured, "maximum block size of kernels without one: X,Y,Z"),
    row("maxrregcount", "maxrregcount", Text, Honoured, "maximum number of registers per thread; or archmax, archmin"),
    row("minnctapersm", "minnctapersm", Number, Honoured, "minimum number of blocks per multiprocessor, for kernels without one"),
    row("opt-level", "O", Number, Honoured, "optimization level, 0 to 4 (default 3)"),
    // The option permits an optimization that the compiler does not do.
    row("optimize-float-atomics", "opt-fp-atomics", Nothing, Holds, "allow optimizations of float atomics that change their precision"),
    row("options-file", "optf", List, Honoured, "file with more options"),
    row("output-file", "o", Text, Honoured, "output file (default elf.o)"),
    row("override-directive-values", "override-directive-values", Nothing, Honoured, "prefer --maxrregcount, --maxntid and --minnctapersm to directives"),
    // The code of whole programs is always position independent.
    row("position-independent-code", "pic", Truth, Holds, "write position-independent code"),
    row("preserve-relocs", "preserve-relocs", Nothing, Honoured, "keep relocations in executables"),
    row("register-usage-level", "regUsageLevel", Number, Honoured, "how much registers may be used for faster code, 0 to 10 (default 5)"),
    row("return-at-end", "ret-end", Nothing, Holds, "keep the return at the end of each function, for debuggers"),
    row("sanitize", "sanitize", Word(&["memcheck", "threadsteer"]), Refused(INSTRUMENTATION), "add checks of memory accesses (memcheck) or delays (threadsteer)"),
    row("sp-bounds-check", "sp-bounds-check", Nothing, Missing("the stack is not checked"), "check the bounds of the stack"),
    row("split-compile", "split-compile", Number, Honoured, "compile with this number of threads; 0: one per core"),
    row("suppress-async-bulk-multicast-advisory-warning", "suppress-async-bulk-multicast-advisory-warning", Nothing, Honoured, "do not warn of `.multicast::cluster`"),
    row("suppress-debug-info", "suppress-debug-info", Nothing, Honoured, "copy no debug sections of the input"),
    row("suppress-double-demote-warning", "suppress-double-demote-warning", Nothing, Holds, "do not warn of doubles on targets without them"),
    row("suppress-sparse-mma-advisory-info", "suppress-sparse-mma-advisory-info", Nothing, Honoured, "print no advice about `mma.sp`"),
    row("suppress-stack-size-warning", "suppress-stack-size-warning", Nothing, Holds, "do not warn of stacks of unknown size"),
    row("verbose", "v", Nothing, Honoured, "print the resources of each function"),
    row("version", "V", Nothing, Honoured, "print the version"),
    row("warn-on-double-precision-use", "warn-double-usage", Nothing, Honoured, "warn of doubles"),
    row("warn-on-local-memory-usage", "warn-lmem-usage", Nothing, Honoured, "warn of local memory"),
    row("warn-on-spills", "warn-spills", Nothing, Honoured, "warn of spilled registers"),
    row("warning-as-error", "Werror", Nothing, Honoured, "treat warnings as errors"),
    // These options are not in the list of `ptxas --help`.
    row("compiler-stats", "compiler-stats", List, Honoured, "print times and peak memory: time, memory, phase-wise"),
    row("fdevice-time-trace", "fdevice-time-trace", Text, Honoured, "append times to a trace event file"),
    row("fast-compile", "fast-compile", Nothing, Holds, "accepted for nvcc"),
    // A make job may use one thread without asking for more, and the compiler then uses only one.
    row("jobserver", "jobserver", Nothing, Honoured, "take threads for --split-compile from the jobserver of make"),
    // Permits treating pointers as 32-bit numbers, which the compiler does not do.
    row("opt-pointers", "opt-pointers", Nothing, Holds, "allow pointers as 32-bit numbers"),
    row("regAllocOptLevel", "regAllocOptLevel", Number, Holds, "effort of register allocation"),
    row("tool-name", "tool-name", Text, Honoured, "name of the calling program in the file"),
    row("uumn", "uumn", Nothing, Holds, "accepted for nvcc"),
    row("print-potentially-overlapping-membermasks", "print-potentially-overlapping-membermasks", Nothing, Missing("masks are not printed"), "print masks of warp operations that may overlap"),
    // Permissions that the compiler does not use.
    row("no-membermask-overlap", "no-membermask-overlap", Truth, Holds, "assume that masks of warp operations do not overlap"),
    row("assume-extern-functions-do-not-sync", "assume-extern-functions-do-not-sync", Truth, Holds, "assume that external functions contain no barriers"),
    // Options of our own.
    row("knob", "knob", Text, Honoured, "DUMPIR=STAGE prints the code after a stage; PHASE=-NAME,... disables phases; an unknown name lists all"),
    row("max-input-size", "max-input-size", Number, Honoured, "reject larger files, in MiB (default 256, maximum 4095)"),
];

/// The options that ptxas accepts with two dashes only.
const LONG_ONLY: &[&str] = &["compiler-stats", "fdevice-time-trace", "fast-compile", "opt-pointers"];

impl Row {
    /// Whether this option has the name `name`, which is given without its first dash.
    pub(super) fn is_called(&self, name: &str) -> bool {
        match name.strip_prefix('-') {
            Some(long) => long == self.long,
            None => name == self.short && !LONG_ONLY.contains(&self.long),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        for (i, a) in OPTIONS.iter().enumerate() {
            for b in &OPTIONS[i + 1..] {
                assert!(a.long != b.long && a.short != b.short, "{a:?} {b:?}");
            }
        }
    }
}
