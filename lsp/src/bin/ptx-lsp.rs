//! The language server, over standard input and output; and `ptx-lsp dump`, which prints what a stage makes of
//! a file.

fn main() -> std::process::ExitCode {
    ptx_analyzer::command::main()
}
