//! Symbols that a module leaves to other modules, which only separate compilation allows.

use ptx_backend::input::driver_provides;
use ptx_isa::Sm;
use text_size::TextRange;

use crate::declare_lint;
use crate::diagnostic::Diagnostic;

declare_lint! {
    /// The module uses a symbol of another module but is compiled as a whole program.
    pub SEPARATE_COMPILATION = "E0115" "separate-compilation", Error, since "0.1.0"
}

declare_lint! {
    /// An `.extern` variable is declared in a module that is compiled as a whole program.
    pub IGNORED_EXTERN = "W0525" "ignored-extern", Warning, since "0.1.0"
}

declare_lint! {
    /// The instruction is not available on the target of the module.
    pub(crate) TARGET_GATE = "E0402" "target-gate", Error, since "0.1.0"
}

/// The only removed function of the device runtime library, and the first target that lacks it.
const REMOVED: (&str, Sm) = ("cudaDeviceSynchronize", Sm::new(90));

/// Checks an `.extern` function that is called or whose address is taken.
pub(crate) fn function(name: &str, range: TextRange, architecture: Sm) -> Option<Diagnostic> {
    let (removed, since) = REMOVED;
    if name == removed && architecture.number >= since.number {
        let message = format!("`{removed}` is not available on {since} or higher");
        return Some(Diagnostic::new(&TARGET_GATE, range, message));
    }
    (!driver_provides(name))
        .then(|| report(range, format!("`.extern` function `{name}` is not defined in this module")))
}

pub(crate) const WAY_OUT: &str = "if the module is linked with others, compile it with `--compile-only`";

/// A finding with a note on the solution.
pub(crate) fn report(range: TextRange, message: String) -> Diagnostic {
    Diagnostic::new(&SEPARATE_COMPILATION, range, message).note(WAY_OUT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::Database;
    use crate::ide::diagnostics;

    fn found(text: &str) -> usize {
        let db = Database::default();
        let file = db.add_file(format!(".version 9.0\n.target sm_90\n{text}"));
        diagnostics(&db, file).into_iter().filter(|d| d.lint == &SEPARATE_COMPILATION).count()
    }

    #[test]
    fn functions_of_the_driver_need_no_linking() {
        let called = |name: &str| found(&format!(".extern .func {name}; .entry k {{ call {name}; ret; }}"));
        for name in
            ["vprintf", "cudaGraphLaunch", "cudaGraphSetConditional", "__cuda_syscall_any", "cnpLaunchDevice"]
        {
            assert_eq!(called(name), 0, "{name}");
        }
        for name in ["printf", "cudaGraph", "cudaGraphExecUpdate", "xcudaGraphLaunch"] {
            assert_eq!(called(name), 1, "{name}");
        }
    }

    #[test]
    fn kernels_whose_addresses_are_taken_are_defined() {
        let taken = |name: &str| {
            let kernels = ".extern .entry other(); .entry own() { ret; }";
            found(&format!("{kernels} .entry k() {{ .reg .b64 d; mov.b64 d, {name}; ret; }}"))
        };
        assert_eq!((taken("other"), taken("own")), (1, 0));
        assert_eq!(found(".extern .entry other(); .global .u64 table[1] = { other };"), 1);
    }

    #[test]
    fn waiting_for_kernels_that_kernels_launch_is_gone() {
        let found = |target: u16| {
            let db = Database::default();
            let text = ".extern .func cudaDeviceSynchronize; .entry k { call cudaDeviceSynchronize; ret; }";
            let file = db.add_file(format!(".version 9.0\n.target sm_{target}\n{text}"));
            diagnostics(&db, file).into_iter().map(|d| d.message).next().unwrap()
        };
        assert_eq!(found(90), "`cudaDeviceSynchronize` is not available on sm_90 or higher");
        assert_eq!(found(89), "`.extern` function `cudaDeviceSynchronize` is not defined in this module");
    }

    #[test]
    fn a_whole_program_has_its_external_variables() {
        let text = ".extern .const .b32 factor; .extern .global .b32 sums[4]; .extern .shared .b8 open[];
            .entry k() { .reg .b32 r; ld.const.b32 r, [factor]; st.global.b32 [sums+4], r; ret; }";
        let found = |relocatable: bool| {
            let mut db = Database::default();
            db.set_relocatable(relocatable);
            let file = db.add_file(format!(".version 9.0\n.target sm_90\n{text}"));
            let errors = crate::compile::compile_diagnostics(&db, file);
            let ignored = diagnostics(&db, file).into_iter().filter(|d| d.lint == &IGNORED_EXTERN).count();
            (errors.len(), ignored)
        };
        assert_eq!((found(false), found(true)), ((0, 2), (0, 0)));
    }

    #[test]
    fn arrays_that_the_module_defines_have_a_size() {
        assert_eq!(found(".extern .global .b8 t[];"), 1);
        assert_eq!(found(".extern .const .b8 t[]; .extern .const .b8 t[];"), 1);
        assert_eq!(found(".extern .global .b8 t[]; .visible .global .b8 t[4];"), 0);
        assert_eq!(found(".visible .global .b8 t[4]; .extern .global .b8 t[];"), 0);
        assert_eq!(found(".extern .shared .b8 t[]; .extern .global .b8 u[4];"), 0);
    }
}
