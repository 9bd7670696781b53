//! The language server, over standard input and output; and `ptx-lsp dump`, which prints what a stage makes of
//! a file.

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    match arguments.next().as_deref() {
        None | Some("--stdio") => ptx_analyzer::serve_stdio(),
        Some("dump") => ptx_analyzer::dump::main(arguments),
        Some("--version") => {
            println!("ptx-lsp {}", env!("CARGO_PKG_VERSION"));
            ExitCode::SUCCESS
        }
        Some(other) => {
            eprintln!(
                "ptx-lsp: unexpected argument '{other}'\nusage: ptx-lsp [--stdio] | ptx-lsp dump --stage STAGE FILE"
            );
            ExitCode::from(2)
        }
    }
}
