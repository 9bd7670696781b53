//! The options of `ptxc` in its help, and as a clap command for manual pages and completions. The command line itself is
//! parsed in `options`: clap does not support short names of several letters.

use clap::builder::{PossibleValue, PossibleValuesParser, Str};
use clap::{Arg, ArgAction, Command};

use super::options::{Effect, OPTIONS, Row, Value, targets};

const INTRODUCTION: &str = "\
Usage  : ptxc [options] <ptx file>,...

ptxc takes the options of ptxas 13.0: long names with two dashes, short names with one, values after `=` or as the next
argument.
";

const END: &str = "\
The phases in the environment variable PTX_PHASE are disabled, too.

Exit status: 0 on success, 255 on errors. On errors, no output is written and an existing output file is unchanged.
";

/// The column at which the descriptions of options begin.
const COLUMN: usize = 46;

/// The output of `--help`.
pub(super) fn usage() -> String {
    let mut text = format!("{INTRODUCTION}\n");
    for row in OPTIONS {
        let mut names = format!("  --{}", row.long);
        if row.short != row.long {
            names += &format!(" (-{})", row.short);
        }
        names += value_name(row);
        let gap = match names.len() < COLUMN {
            true => " ".repeat(COLUMN - names.len()),
            false => format!("\n{}", " ".repeat(COLUMN)),
        };
        text += &format!("{names}{gap}{}\n", about(row));
    }
    format!("{text}\n{END}")
}

/// The value of an option in the help, after a blank.
fn value_name(row: &Row) -> &'static str {
    match row.value {
        _ if row.long == "gpu-name" => " sm_NN",
        Value::Nothing => "",
        Value::Text => " TEXT",
        Value::List => " TEXT,...",
        Value::Number => " N",
        Value::Truth => " true|false",
        Value::Word(_) => " WORD",
    }
}

/// The command as clap sees it.
pub fn definition() -> Command {
    Command::new("ptxc")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Compiles PTX to a cubin; takes the arguments of ptxas")
        .after_help(END)
        .disable_help_flag(true)
        .disable_version_flag(true)
        .args(OPTIONS.iter().map(argument))
        .arg(Arg::new("FILE").num_args(1..).value_hint(clap::ValueHint::FilePath).help("PTX files"))
}

fn argument(row: &Row) -> Arg {
    let mut argument = Arg::new(row.long).long(row.long).help(names_and_about(row));
    let mut letters = row.short.chars();
    if let (Some(letter), None) = (letters.next(), letters.next()) {
        argument = argument.short(letter);
    }
    match row.value {
        _ if row.long == "gpu-name" => {
            let names = targets().map(|sm| PossibleValue::new(Str::from(sm.to_string())));
            argument.value_name("SM").value_parser(PossibleValuesParser::new(names))
        }
        Value::Nothing => argument.action(ArgAction::SetTrue),
        Value::Text => argument.value_name("TEXT"),
        Value::List => argument.value_name("TEXT,..."),
        Value::Number => argument.value_name("NUMBER"),
        Value::Truth => argument.value_parser(["true", "false"]),
        Value::Word(words) => argument.value_parser(PossibleValuesParser::new(words)),
    }
}

/// What an option does, and whether it is ignored or refused.
fn about(row: &Row) -> String {
    match row.effect {
        Effect::Honoured | Effect::Holds => row.about.to_owned(),
        Effect::Missing(what) => format!("{} (ignored with a warning: {what})", row.about),
        Effect::Refused(_) => format!("{} (refused)", row.about),
    }
}

/// The same after the short name, for which clap has no place if it has several letters.
fn names_and_about(row: &Row) -> String {
    match row.short.len() {
        _ if row.short == row.long => about(row),
        1 => about(row),
        _ => format!("-{}: {}", row.short, about(row)),
    }
}
