//! `ptx-lsp dump`: prints the output of one stage of the analysis or compiler for a file.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::check::files;
use crate::{input, switches, terminal};
use clap::Args;
use ptx_analysis::Database;
use ptx_isa::Sm;

#[derive(Args, Debug)]
pub struct Arguments {
    /// Stage of the analysis (tokens, tree, items, lowered, names) or of the compiler (ori, phase:NAME, alloc, mach, sched,
    /// times, sass).
    #[arg(long)]
    stage: String,
    /// Print only this function.
    #[arg(long)]
    function: Option<String>,
    /// Use this target instead of the target of the file.
    #[arg(long, value_parser = Sm::known)]
    target: Option<Sm>,
    /// Disable compiler phases (-NAME, -NAME#2 for the second run, -all for all optional ones) or enable them again
    /// (+NAME); applied after the environment variable PTX_PHASE.
    #[arg(
        long,
        value_name = "LIST",
        default_value = "",
        hide_default_value = true,
        allow_hyphen_values = true
    )]
    phases: String,
    /// PTX file, or `-` for standard input.
    file: PathBuf,
}

/// Prints the stage. `failed` is the exit status if the stage has no output.
pub fn main(arguments: &Arguments, failed: u8) -> ExitCode {
    match run(arguments) {
        Ok(text) => terminal::print_and_exit("ptx-lsp dump", &text, failed),
        Err(message) => {
            terminal::say(format_args!("ptx-lsp dump: {message}"));
            ExitCode::from(failed)
        }
    }
}

fn run(arguments: &Arguments) -> Result<String, String> {
    let path = &arguments.file;
    let input = input::read(path, input::LARGEST).map_err(|error| files::named(&error, path).to_string())?;
    let mut db = Database::default();
    db.set_switches(switches::chosen(&arguments.phases)?);
    db.set_target_override(arguments.target);
    let file = db.add_frozen_file(input.text);
    ptx_analysis::dump::dump(&db, file, &arguments.stage, arguments.function.as_deref())
}
