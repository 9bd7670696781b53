//! What a module leaves to other modules, which only separate compilation joins to it.

use text_size::TextRange;

use crate::declare_lint;
use crate::diagnostic::Diagnostic;

declare_lint! {
    /// A part of a program is compiled as if it were all of it.
    pub(crate) SEPARATE_COMPILATION = "E0115" "separate-compilation", Error, since "0.1.0"
}

/// Functions that the vendor's runtime defines for every program.
fn is_provided(name: &str) -> bool {
    matches!(name, "vprintf" | "vfprintf" | "malloc" | "free" | "__assertfail")
        || name.starts_with("__cuda_syscall")
}

/// An `.extern` function is called or its address taken.
pub(crate) fn function(name: &str, range: TextRange) -> Option<Diagnostic> {
    (!is_provided(name)).then(|| report(range, format!("nothing defines the `.extern` function `{name}`")))
}

/// A finding with the way out of it.
pub(crate) fn report(range: TextRange, message: String) -> Diagnostic {
    Diagnostic::new(&SEPARATE_COMPILATION, range, message)
        .note("a module that is linked with others is compiled with `--compile-only`")
}
