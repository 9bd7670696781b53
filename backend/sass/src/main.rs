//! The disassembler and assembler as a command.

mod tool;

use sass::{Inst, ParseError, Sm};
use std::fmt::Write as _;
use std::io::{self, Write};
use std::process::ExitCode;
use tool::{Style, disassemble, disassemble_raw, written};

const USAGE: &str = "usage:
  sass dis [STYLE] FILE        disassemble a cubin, or those of a fatbin or a host program
  sass dis [STYLE] --raw --arch sm_90 FILE
                               disassemble a file of nothing but instructions
  sass words --arch sm_90      disassemble lines OFFSET<TAB>WORD, a word being 128 bits in hexadecimal
  sass asm --arch sm_90        assemble lines OFFSET<TAB>TEXT into lines 0xLOW 0xHIGH

Styles: as `cuobjdump -sass` prints; --nv, with labels as `nvdisasm -c` prints; --json, an object per instruction;
--control, lines OFFSET<TAB>TEXT with all that `sass asm` needs to make the same words:
  B--2---:R-:W0:Y:S04  LDG.E R5, [R2.64] {UrDesc=0x6}
waits for scoreboard 2; reading releases none, writing scoreboard 0; the warp may yield; stalls for 4 cycles. In braces
stand fields that the text does not show.";

fn main() -> ExitCode {
    let text = |arg: std::ffi::OsString| {
        arg.into_string().map_err(|arg| format!("the argument '{}' is not UTF-8 text", arg.display()))
    };
    let args: Result<Vec<String>, String> = std::env::args_os().skip(1).map(text).collect();
    match args.and_then(|args| run(&args)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            let _ = writeln!(io::stderr(), "{message}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &[String]) -> Result<(), String> {
    let mut style = Style::Listing;
    let mut arch = None;
    let mut raw = false;
    let mut words = Vec::new();
    let mut args = args.iter().map(String::as_str);
    while let Some(arg) = args.next() {
        match arg {
            "--json" => style = Style::Json,
            "--nv" => style = Style::Labels,
            "--control" => style = Style::Control,
            "--raw" => raw = true,
            "--arch" => arch = Some(generation(args.next().unwrap_or_default())?),
            "--help" | "-h" => words = vec!["help"],
            option if option.starts_with("--") => return Err(format!("unknown option '{option}'\n{USAGE}")),
            word => words.push(word),
        }
    }
    match (words.as_slice(), arch) {
        (["help"], _) => written(writeln!(io::stdout(), "{USAGE}")),
        (["dis", path], Some(sm)) if raw => disassemble_raw(style, sm, path),
        (["dis", path], None) if !raw => disassemble(style, path),
        (["words"], Some(sm)) => disassemble_words(sm),
        (["asm"], Some(sm)) => assemble(sm),
        _ => Err(USAGE.to_owned()),
    }
}

fn generation(arch: &str) -> Result<Sm, String> {
    Sm::parse(arch).ok_or_else(|| format!("unknown architecture '{arch}'"))
}

/// Answers each line of the standard input with a line.
fn disassemble_words(sm: Sm) -> Result<(), String> {
    let input = input()?;
    let mut out = String::new();
    for line in input.lines() {
        let (offset, word) = split_line(line);
        match (offset, u128::from_str_radix(word.trim().trim_start_matches("0x"), 16)) {
            (Ok(offset), Ok(word)) => _ = tool::push_text(&mut out, sm, word, offset),
            (Err(error), _) => out += &error,
            (_, Err(error)) => _ = write!(out, "error: {error}"),
        }
        out.push('\n');
    }
    written(io::stdout().lock().write_all(out.as_bytes()))
}

/// Answers each line of the standard input with a line, which other lines may bear upon.
fn assemble(sm: Sm) -> Result<(), String> {
    let input = input()?;
    let addressed = |line| {
        let (offset, text) = split_line(line);
        (offset.unwrap_or_default(), text)
    };
    let made = sass::assemble(sm, input.lines().map(addressed));
    let mut out = String::with_capacity(38 * made.len());
    for (line, made) in input.lines().zip(made) {
        match (split_line(line), made) {
            ((Err(error), _), _) => out += &error,
            ((_, text), made) => match as_is(text).map_or_else(|| encoded(sm, made), Ok) {
                Ok(word) => push_words(&mut out, word),
                Err(error) => _ = write!(out, "error: {error}"),
            },
        }
        out.push('\n');
    }
    written(io::stdout().lock().write_all(out.as_bytes()))
}

fn input() -> Result<String, String> {
    io::read_to_string(io::stdin().lock()).map_err(|error| error.to_string())
}

/// Offset and rest of a line.
fn split_line(line: &str) -> (Result<u64, String>, &str) {
    let (offset, rest) = line.split_once('\t').unwrap_or(("0", line));
    let number = u64::from_str_radix(offset.trim_start_matches("0x"), 16);
    (number.map_err(|_| format!("error: '{offset}' is no offset")), rest)
}

/// The word that a line names instead of an instruction.
fn as_is(text: &str) -> Option<u128> {
    u128::from_str_radix(text.trim().strip_prefix(".word 0x")?, 16).ok()
}

fn encoded(sm: Sm, made: Result<Inst, ParseError>) -> Result<u128, String> {
    made.map_err(|error| error.to_string())
        .and_then(|inst| sass::encode(sm, &inst).map_err(|error| error.to_string()))
}

fn push_words(out: &mut String, word: u128) {
    out.push_str("0x");
    tool::push_hex(out, word as u64, 16);
    out.push_str(" 0x");
    tool::push_hex(out, (word >> 64) as u64, 16);
}
