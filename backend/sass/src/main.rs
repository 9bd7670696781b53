//! The disassembler and assembler as a command.

use sass::{Sm, cubin};
use std::io::{self, BufRead, Write};
use std::process::ExitCode;

const USAGE: &str = "usage:
  sass dis FILE.cubin          disassemble every function
  sass dis --raw --arch sm_90 FILE
                               disassemble a file of nothing but instructions
  sass words --arch sm_90      disassemble lines OFFSET<TAB>WORD, a word being 128 bits in hexadecimal
  sass asm --arch sm_90        assemble lines OFFSET<TAB>TEXT into lines 0xLOW 0xHIGH";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let result = match args[..] {
        ["dis", path] => disassemble(path),
        ["dis", "--raw", "--arch", arch, path] => disassemble_raw(arch, path),
        ["words", "--arch", arch] => lines(arch, word_line),
        ["asm", "--arch", arch] => lines(arch, asm_line),
        _ => Err(USAGE.to_owned()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            let _ = writeln!(io::stderr(), "{message}");
            ExitCode::FAILURE
        }
    }
}

fn disassemble(path: &str) -> Result<(), String> {
    let bytes = std::fs::read(path).map_err(|error| format!("{path}: {error}"))?;
    let cubin = cubin::read(&bytes).map_err(|error| format!("{path}: {error}"))?;
    let mut out = io::BufWriter::new(io::stdout().lock());
    let mut print = || -> io::Result<()> {
        writeln!(out, "\tcode for sm_{}", cubin.sm.0)?;
        for function in &cubin.functions {
            writeln!(out, "\t\tFunction : {}", function.name)?;
            print_code(&mut out, cubin.sm, function.code)?;
        }
        out.flush()
    };
    print().map_err(|error| error.to_string())
}

fn disassemble_raw(arch: &str, path: &str) -> Result<(), String> {
    let sm = generation(arch)?;
    let bytes = std::fs::read(path).map_err(|error| format!("{path}: {error}"))?;
    let mut out = io::BufWriter::new(io::stdout().lock());
    print_code(&mut out, sm, &bytes).and_then(|()| out.flush()).map_err(|error| error.to_string())
}

fn print_code(out: &mut impl Write, sm: Sm, code: &[u8]) -> io::Result<()> {
    for (i, word) in cubin::words(code).enumerate() {
        let address = i as u64 * sass::INST_BYTES;
        let text = word_text(sm, word, address);
        write!(out, "        /*{address:04x}*/  {text} ;  /* {:#018x} */", word as u64)?;
        match sass::decode_tolerant(sm, word).map_or(0, |inst| inst.stray()) {
            0 => writeln!(out)?,
            stray => writeln!(out, " // unknown bits {stray:#x}")?,
        }
        writeln!(out, "        /* {:#018x} */", (word >> 64) as u64)?;
    }
    Ok(())
}

fn generation(arch: &str) -> Result<Sm, String> {
    Sm::parse(arch).ok_or_else(|| format!("unknown architecture '{arch}'"))
}

fn word_text(sm: Sm, word: u128, address: u64) -> String {
    match sass::decode_tolerant(sm, word) {
        Some(inst) => sass::print(sm, &inst, address),
        None => format!(".word {word:#034x}"),
    }
}

/// Answers each line of the standard input with a line.
fn lines(arch: &str, answer: fn(Sm, u64, &str) -> String) -> Result<(), String> {
    let sm = generation(arch)?;
    let mut out = io::BufWriter::new(io::stdout().lock());
    for line in io::stdin().lock().lines() {
        let line = line.map_err(|error| error.to_string())?;
        let (offset, rest) = line.split_once('\t').unwrap_or(("0", &line));
        let offset = u64::from_str_radix(offset.trim_start_matches("0x"), 16).unwrap_or(0);
        writeln!(out, "{}", answer(sm, offset, rest)).map_err(|error| error.to_string())?;
    }
    out.flush().map_err(|error| error.to_string())
}

fn word_line(sm: Sm, offset: u64, text: &str) -> String {
    match u128::from_str_radix(text.trim().trim_start_matches("0x"), 16) {
        Ok(word) => word_text(sm, word, offset),
        Err(error) => format!("error: {error}"),
    }
}

fn asm_line(sm: Sm, offset: u64, text: &str) -> String {
    let word = sass::parse(sm, text, offset)
        .map_err(|error| error.to_string())
        .and_then(|inst| sass::encode(sm, &inst).map_err(|error| error.to_string()));
    match word {
        Ok(word) => format!("{:#018x} {:#018x}", word as u64, (word >> 64) as u64),
        Err(error) => format!("error: {error}"),
    }
}
