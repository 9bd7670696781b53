//! The options of `ptxc` as a clap command, for manual pages and completions. The command line itself is parsed in
//! `options`: clap does not support short names of several letters.

use clap::builder::{PossibleValue, PossibleValuesParser, Str};
use clap::{Arg, ArgAction, Command};

use super::USAGE;
use super::options::{Effect, OPTIONS, Row, Value, targets};

/// The command as clap sees it.
pub fn definition() -> Command {
    Command::new("ptxc")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Compiles PTX to a cubin; takes the arguments of ptxas")
        .after_help(USAGE)
        .disable_help_flag(true)
        .disable_version_flag(true)
        .args(OPTIONS.iter().map(argument))
        .arg(Arg::new("FILE").num_args(1..).value_hint(clap::ValueHint::FilePath).help("PTX files"))
}

fn argument(row: &Row) -> Arg {
    let mut argument = Arg::new(row.long).long(row.long).help(about(row));
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

fn about(row: &Row) -> String {
    let short = if row.short == row.long { String::new() } else { format!("-{}", row.short) };
    let effect = match row.effect {
        Effect::Honoured | Effect::Holds => String::new(),
        Effect::Missing(what) => format!("ignored with a warning: {what}"),
        Effect::Refused(what) => format!("refused: {what}"),
    };
    let separator = if short.is_empty() || effect.is_empty() { "" } else { "; " };
    format!("{short}{separator}{effect}")
}
