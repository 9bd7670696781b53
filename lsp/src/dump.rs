//! `ptx-lsp dump --stage STAGE [--function NAME] [--target SM] FILE`: what a stage makes of a file.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use crate::check::files;
use clap::Parser;
use ptx_analysis::Database;
use ptx_isa::Sm;

#[derive(Parser, Debug)]
#[command(name = "ptx-lsp dump")]
struct Arguments {
    /// tokens, tree, items, lowered, ori, phase:NAME, alloc, sched, sass.
    #[arg(long)]
    stage: String,
    /// Only this function.
    #[arg(long)]
    function: Option<String>,
    #[arg(long, value_parser = Sm::known)]
    target: Option<Sm>,
    file: PathBuf,
}

pub fn main(arguments: impl Iterator<Item = String>) -> ExitCode {
    let arguments = match Arguments::try_parse_from(std::iter::once("dump".to_owned()).chain(arguments)) {
        Ok(arguments) => arguments,
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(2);
        }
    };
    match run(&arguments) {
        Ok(text) => {
            // A reader that has seen enough is no failure.
            let _ = io::stdout().write_all(text.as_bytes());
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("ptx-lsp dump: {message}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: &Arguments) -> Result<String, String> {
    let input = files::read(&arguments.file).map_err(|e| e.to_string())?;
    let (text, _) = files::decode(input.bytes);
    let mut db = Database::default();
    db.set_target_override(arguments.target);
    let file = db.add_frozen_file(text);
    ptx_analysis::dump::dump(&db, file, &arguments.stage, arguments.function.as_deref())
}
