//! The command line of `ptx-lsp`.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::{dump, manual, terminal};

const USAGE: u8 = 2;

/// The language server for PTX, over standard input and output. Editors start it without arguments.
#[derive(Parser, Debug)]
#[command(name = "ptx-lsp", version, after_help = STATUSES)]
pub struct Arguments {
    /// Serve over standard input and output, as without arguments.
    #[arg(long)]
    stdio: bool,
    #[command(subcommand)]
    command: Option<Command>,
}

const STATUSES: &str = "Exit status: 0 after `shutdown` and `exit`, 1 after `exit` alone, 2 for wrong usage and for files \
that cannot be read.";

#[derive(Subcommand, Debug)]
enum Command {
    /// Print what a stage of the analysis or of the compiler makes of a file, for developers.
    Dump(dump::Arguments),
    /// Write manual pages and shell completions of all programs below a folder.
    Manual(manual::Arguments),
}

/// Runs the server, or what the process's arguments ask for.
pub fn main() -> ExitCode {
    match Arguments::try_parse() {
        Ok(Arguments { command: Some(Command::Dump(arguments)), .. }) => dump::main(&arguments, USAGE),
        Ok(Arguments { command: Some(Command::Manual(arguments)), .. }) => manual::main(&arguments, USAGE),
        Ok(Arguments { command: None, .. }) => crate::serve_stdio(),
        Err(error) => terminal::stop("ptx-lsp", &error, USAGE),
    }
}
