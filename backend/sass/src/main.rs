//! The disassembler and assembler as a command.

mod tool;

use sass::{Assembler, Sm};
use std::io::{self, BufRead, Write};
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
    let args: Vec<String> = std::env::args().skip(1).collect();
    match run(&args) {
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
        (["words"], Some(sm)) => lines(|offset, text| word_line(sm, offset, text)),
        (["asm"], Some(sm)) => {
            let mut assembler = Assembler::new(sm);
            lines(|offset, text| asm_line(&mut assembler, sm, offset, text))
        }
        _ => Err(USAGE.to_owned()),
    }
}

fn generation(arch: &str) -> Result<Sm, String> {
    Sm::parse(arch).ok_or_else(|| format!("unknown architecture '{arch}'"))
}

/// Answers each line of the standard input with a line.
fn lines(mut answer: impl FnMut(u64, &str) -> String) -> Result<(), String> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    let mut answers = || -> io::Result<()> {
        for line in io::stdin().lock().lines() {
            let line = line?;
            let (offset, rest) = line.split_once('\t').unwrap_or(("0", &line));
            let answer = match u64::from_str_radix(offset.trim_start_matches("0x"), 16) {
                Ok(offset) => answer(offset, rest),
                Err(_) => format!("error: '{offset}' is no offset"),
            };
            writeln!(out, "{answer}")?;
        }
        out.flush()
    };
    written(answers())
}

fn word_line(sm: Sm, offset: u64, text: &str) -> String {
    match u128::from_str_radix(text.trim().trim_start_matches("0x"), 16) {
        Ok(word) => {
            let mut out = String::new();
            tool::push_text(&mut out, sm, word, offset);
            out
        }
        Err(error) => format!("error: {error}"),
    }
}

fn asm_line(assembler: &mut Assembler, sm: Sm, offset: u64, text: &str) -> String {
    let as_is = text.trim().strip_prefix(".word 0x").and_then(|digits| u128::from_str_radix(digits, 16).ok());
    let word = as_is.map(Ok).unwrap_or_else(|| assemble(assembler, sm, offset, text));
    match word {
        Ok(word) => format!("{:#018x} {:#018x}", word as u64, (word >> 64) as u64),
        Err(error) => format!("error: {error}"),
    }
}

fn assemble(assembler: &mut Assembler, sm: Sm, offset: u64, text: &str) -> Result<u128, String> {
    assembler
        .line(offset, text)
        .map_err(|error| error.to_string())
        .and_then(|inst| sass::encode(sm, &inst).map_err(|error| error.to_string()))
}
