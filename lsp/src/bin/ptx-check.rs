//! Checks PTX files without an editor.

fn main() -> std::process::ExitCode {
    ptx_analyzer::check::main()
}
