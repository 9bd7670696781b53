//! The command line of `ptx-lsp`.

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::{dump, images, manual, terminal};

const USAGE: u8 = 2;

/// Language server for PTX on standard input and output. Editors start it without arguments.
#[derive(Parser, Debug)]
#[command(name = "ptx-lsp", version, after_help = STATUSES)]
pub struct Arguments {
    /// Use standard input and output (the default).
    #[arg(long)]
    stdio: bool,
    #[command(subcommand)]
    command: Option<Command>,
}

const STATUSES: &str = "The README explains how to set up Visual Studio Code, Neovim and others. To check \
files from a shell, use `ptx-check`.

Exit status: 0 after `shutdown` and `exit`, 1 after `exit` without `shutdown`, 2 for usage \
errors and files that cannot be read.";

#[derive(Subcommand, Debug)]
enum Command {
    /// Print the output of a stage of the analysis or compiler (for developers).
    Dump(dump::Arguments),
    /// Print the PTX and the machine code in a cubin, a fatbin or a program as JSON (for editors).
    Images(images::Arguments),
    /// Write manual pages and shell completions of all programs below a folder.
    Manual(manual::Arguments),
}

/// Runs the server, or the subcommand that the process's arguments name.
pub fn main() -> ExitCode {
    match Arguments::try_parse() {
        Ok(Arguments { command: Some(Command::Dump(arguments)), .. }) => dump::main(&arguments, USAGE),
        Ok(Arguments { command: Some(Command::Images(arguments)), .. }) => images::main(&arguments, USAGE),
        Ok(Arguments { command: Some(Command::Manual(arguments)), .. }) => manual::main(&arguments, USAGE),
        Ok(Arguments { command: None, .. }) => {
            if std::io::stdin().is_terminal() {
                terminal::say("ptx-lsp: waiting for an editor on standard input; see `ptx-lsp --help`");
            }
            crate::serve_stdio()
        }
        Err(error) => terminal::stop("ptx-lsp", &error, USAGE),
    }
}
