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
}

const fn row(long: &'static str, short: &'static str, value: Value, effect: Effect) -> Row {
    Row { long, short, value, effect }
}

/// What ptxas adds to code with the option `sanitize`.
const INSTRUMENTATION: &str = "instrumentation, which is a call of a check before each memory access (memcheck) or a random delay before each store and atomic (threadsteer)";

use Effect::{Holds, Honoured, Missing, Refused};
use Value::{List, Nothing, Number, Text, Truth, Word};

#[rustfmt::skip]
pub(in crate::compile) const OPTIONS: &[Row] = &[
    row("Ofast-compile", "Ofc", Text, Honoured),
    row("allow-expensive-optimizations", "allow-expensive-optimizations", Truth, Holds),
    // Refused after the check of the module, which must not have kernels.
    row("compile-as-tools-patch", "astoolspatch", Nothing, Honoured),
    row("compile-only", "c", Nothing, Honoured),
    row("compiler-annotations", "annotate", Nothing, Missing("no annotations are written")),
    row("def-load-cache", "dlcm", Text, Honoured),
    row("def-store-cache", "dscm", Text, Honoured),
    row("device-debug", "g", Nothing, Honoured),
    row("device-function-maxrregcount", "func-maxrregcount", Text, Honoured),
    row("device-stack-protector", "device-stack-protector", Truth, Missing("stacks have no canaries")),
    // The compiler does not use this constant bank.
    row("disable-optimizer-constants", "disable-optimizer-consts", Nothing, Holds),
    row("disable-warnings", "w", Nothing, Honoured),
    // This option and `return-at-end` decide at which instructions a debugger can stop. nvcc passes both with `-G`.
    row("dont-merge-basicblocks", "no-bb-merge", Nothing, Holds),
    row("entry", "e", List, Honoured),
    row("extensible-whole-program", "ewp", Nothing, Honoured),
    row("fmad", "fmad", Truth, Honoured),
    row("force-load-cache", "flcm", Text, Honoured),
    row("force-store-cache", "fscm", Text, Honoured),
    row("g-tensor-memory-access-check", "g-tmem-access-check", Nothing, Honoured),
    row("generate-line-info", "lineinfo", Nothing, Honoured),
    row("gno-tensor-memory-access-check", "gno-tmem-access-check", Nothing, Honoured),
    row("gpu-name", "arch", Text, Honoured),
    row("help", "h", Nothing, Honoured),
    row("input-as-string", "ias", Text, Honoured),
    row("legacy-bar-warp-wide-behavior", "legacy-bar-warp-wide-behavior", Nothing, Honoured),
    row("list-version", "version-ls", Nothing, Honoured),
    row("machine", "m", Number, Honoured),
    row("make-errors-visible-at-exit", "make-errors-visible-at-exit", Nothing, Honoured),
    row("maxntid", "maxntid", List, Honoured),
    row("maxrregcount", "maxrregcount", Text, Honoured),
    row("minnctapersm", "minnctapersm", Number, Honoured),
    row("opt-level", "O", Number, Honoured),
    // The option permits an optimization that the compiler does not do.
    row("optimize-float-atomics", "opt-fp-atomics", Nothing, Holds),
    row("options-file", "optf", List, Honoured),
    row("output-file", "o", Text, Honoured),
    row("override-directive-values", "override-directive-values", Nothing, Honoured),
    // The code of whole programs is always position independent.
    row("position-independent-code", "pic", Truth, Holds),
    row("preserve-relocs", "preserve-relocs", Nothing, Honoured),
    row("register-usage-level", "regUsageLevel", Number, Honoured),
    row("return-at-end", "ret-end", Nothing, Holds),
    row("sanitize", "sanitize", Word(&["memcheck", "threadsteer"]), Refused(INSTRUMENTATION)),
    row("sp-bounds-check", "sp-bounds-check", Nothing, Missing("the stack is not checked")),
    row("split-compile", "split-compile", Number, Honoured),
    row("suppress-async-bulk-multicast-advisory-warning", "suppress-async-bulk-multicast-advisory-warning", Nothing, Honoured),
    row("suppress-debug-info", "suppress-debug-info", Nothing, Honoured),
    row("suppress-double-demote-warning", "suppress-double-demote-warning", Nothing, Holds),
    row("suppress-sparse-mma-advisory-info", "suppress-sparse-mma-advisory-info", Nothing, Honoured),
    row("suppress-stack-size-warning", "suppress-stack-size-warning", Nothing, Holds),
    row("verbose", "v", Nothing, Honoured),
    row("version", "V", Nothing, Honoured),
    row("warn-on-double-precision-use", "warn-double-usage", Nothing, Honoured),
    row("warn-on-local-memory-usage", "warn-lmem-usage", Nothing, Honoured),
    row("warn-on-spills", "warn-spills", Nothing, Honoured),
    row("warning-as-error", "Werror", Nothing, Honoured),
    // These options are not in the list of `ptxas --help`.
    row("compiler-stats", "compiler-stats", List, Honoured),
    row("fdevice-time-trace", "fdevice-time-trace", Text, Honoured),
    row("fast-compile", "fast-compile", Nothing, Holds),
    // A make job may use one thread without asking for more, and the compiler then uses only one.
    row("jobserver", "jobserver", Nothing, Honoured),
    // Permits treating pointers as 32-bit numbers, which the compiler does not do.
    row("opt-pointers", "opt-pointers", Nothing, Holds),
    row("regAllocOptLevel", "regAllocOptLevel", Number, Holds),
    row("tool-name", "tool-name", Text, Honoured),
    row("uumn", "uumn", Nothing, Holds),
    row("print-potentially-overlapping-membermasks", "print-potentially-overlapping-membermasks", Nothing, Missing("masks are not printed")),
    // Permissions that the compiler does not use.
    row("no-membermask-overlap", "no-membermask-overlap", Truth, Holds),
    row("assume-extern-functions-do-not-sync", "assume-extern-functions-do-not-sync", Truth, Holds),
    // Options of our own.
    row("knob", "knob", Text, Honoured),
    row("max-input-size", "max-input-size", Number, Honoured),
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
