//! The disassembler and assembler as a command.

mod tool;

use sass::Sm;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use tool::lines::{assemble, disassemble_words};
use tool::{Failure, Style, disassemble, disassemble_raw, written};

const USAGE: &str = "usage:
  sass dis [STYLE] [--unpack-limit MIB] FILE
                               disassemble a cubin, or those of a fatbin or a host program; of compressed ones so
                               many MiB in all (256)
  sass dis [STYLE] --raw --arch sm_90 FILE
                               disassemble a file of nothing but instructions
  sass words --arch sm_90      disassemble lines OFFSET<TAB>WORD, a word being 128 bits in hexadecimal
  sass asm [--arch sm_90]      assemble lines OFFSET<TAB>TEXT into lines 0xLOW 0xHIGH
  sass --help, sass --version

Styles: as `cuobjdump -sass` prints; --nv, with labels as `nvdisasm -c` prints; --json, an object per instruction;
--control, lines OFFSET<TAB>TEXT with all that `sass asm` needs to make the same words:
  B--2---:R-:W0:Y:S04  LDG.E R5, [R2.64] {UrDesc=0x6}
waits for scoreboard 2; reading releases none, writing scoreboard 0; the warp may yield; stalls for 4 cycles. In braces
stand fields that the text does not show.

`asm` and `words` read the standard input and answer each line with a line: empty lines and comments (`# …`) with
themselves, wrong ones with an empty line, a message and exit status 1. A comment `# sm_90 NAME`, which --control prints
before each function, tells the generation of the lines after it.";

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Closed) => ExitCode::FAILURE,
        Err(Failure::Message(message)) => {
            let _ = writeln!(io::stderr(), "{message}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &[OsString]) -> Result<(), Failure> {
    let mut style = Style::Listing;
    let mut arch = None;
    let mut raw = false;
    let mut unpacked = sass::image::UNPACK_LIMIT;
    let mut words = Vec::new();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        // What is no Unicode can be the name of a file only.
        match arg.to_str().unwrap_or_default() {
            "--json" => style = Style::Json,
            "--nv" => style = Style::Labels,
            "--control" => style = Style::Control,
            "--raw" => raw = true,
            "--arch" => arch = Some(generation(args.next())?),
            "--unpack-limit" => unpacked = mebibytes(args.next())?,
            "--help" | "-h" => return print(USAGE),
            "--version" | "-V" => return print(concat!("sass ", env!("CARGO_PKG_VERSION"))),
            option if option.starts_with("--") => {
                return Err(format!("unknown option '{option}'\n{USAGE}").into());
            }
            _ => words.push(arg),
        }
    }
    let (command, file) = match words.as_slice() {
        [command] => (command.to_str(), None),
        [command, file] => (command.to_str(), Some(Path::new(file))),
        _ => (None, None),
    };
    match (command, file, arch) {
        (Some("dis"), Some(path), Some(sm)) if raw => disassemble_raw(style, sm, path),
        (Some("dis"), Some(path), None) if !raw => disassemble(style, path, unpacked),
        (Some("words"), None, Some(sm)) => disassemble_words(sm),
        (Some("asm"), None, sm) => assemble(sm),
        _ => Err(USAGE.to_owned().into()),
    }
}

fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    written(writeln!(out, "{text}").and_then(|()| out.flush()))
}

fn generation(arch: Option<&OsString>) -> Result<Sm, String> {
    let arch = arch.map(|arch| arch.to_string_lossy()).unwrap_or_default();
    Sm::parse(&arch).ok_or_else(|| format!("unknown architecture '{arch}'"))
}

fn mebibytes(number: Option<&OsString>) -> Result<u64, String> {
    let number = number.map(|number| number.to_string_lossy()).unwrap_or_default();
    let bytes = number.parse::<u64>().ok().and_then(|number| number.checked_mul(1 << 20));
    bytes.ok_or_else(|| format!("'{number}' is not a number of MiB"))
}
