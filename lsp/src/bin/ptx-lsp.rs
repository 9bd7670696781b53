//! The language server, over standard input and output; and `ptx-lsp dump`, which prints the output of one stage of the
//! analysis or compiler for a file.

fn main() -> std::process::ExitCode {
    ptx_analyzer::command::main()
}
