//! The command `sass`: the disassembler and assembler.

pub(crate) mod tool;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use sass::Sm;

use crate::terminal;
use tool::lines::{assemble, disassemble_words};
use tool::{Failure, Style, disassemble, disassemble_raw};

/// Disassemble machine code (SASS) of NVIDIA GPUs, and assemble it again.
#[derive(Parser, Debug)]
#[command(name = "sass", version, after_help = LINES)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

const LINES: &str = "Examples:
  sass dis kernel.cubin                          print the same listing as cuobjdump -sass
  sass dis --control kernel.cubin > kernel.sass  print an editable listing; then: sass asm < kernel.sass
  sass dis --raw --arch sm_90 code.bin           disassemble instructions without a cubin

`dis --control` prints lines OFFSET<TAB>TEXT with all fields that `asm` needs to assemble the same words:
  B--2---:R-:W0:Y:S04  LDG.E R5, [R2.64] {UrDesc=0x6}
waits for scoreboard 2; releases no scoreboard when it has read its operands, and scoreboard 0 when it has written its
result; the warp may yield; the next instruction issues after 4 cycles. Fields that the text does not show are in braces.

`asm` and `words` read standard input and print one line for each line. Empty lines and comments (`# …`) are copied. For an
invalid line they print an empty line and a message, and the exit status is 1. A comment `# sm_90 NAME`, which --control
prints before each function, gives the generation of the lines after it.

Exit status: 0 on success, 1 on any error.";

#[derive(Subcommand, Debug)]
enum Command {
    /// Disassemble a cubin, or the cubins in a fatbin or a host program.
    Dis {
        #[command(flatten)]
        style: Styles,
        /// The file consists of instructions only.
        #[arg(long, requires = "arch")]
        raw: bool,
        /// The GPU generation of raw code, such as sm_90.
        #[arg(long, value_name = "SM", value_parser = generation, requires = "raw")]
        arch: Option<Sm>,
        /// Maximum total size of all unpacked images.
        #[arg(long, value_name = "MIB", value_parser = mebibytes, default_value = "256")]
        unpack_limit: u64,
        /// A cubin, a fatbin, or a program that contains them.
        file: PathBuf,
    },
    /// Disassemble lines OFFSET<TAB>WORD, where WORD is 128 bits in hexadecimal.
    Words {
        /// The GPU generation, such as sm_90.
        #[arg(long, value_name = "SM", value_parser = generation)]
        arch: Sm,
    },
    /// Assemble lines OFFSET<TAB>TEXT into lines 0xLOW 0xHIGH.
    Asm {
        /// The GPU generation, such as sm_90, of lines before the first comment that names one.
        #[arg(long, value_name = "SM", value_parser = generation)]
        arch: Option<Sm>,
    },
}

/// The output formats. Without any of these options, the format of `cuobjdump -sass`.
#[derive(Args, Debug)]
#[group(multiple = false)]
struct Styles {
    /// Print labels and sections, as `nvdisasm -c` does.
    #[arg(long)]
    nv: bool,
    /// Print one JSON object per instruction.
    #[arg(long)]
    json: bool,
    /// Print lines that `sass asm` takes, with control fields.
    #[arg(long)]
    control: bool,
}

impl Styles {
    fn style(&self) -> Style {
        match (self.nv, self.json, self.control) {
            (true, ..) => Style::Labels,
            (_, true, _) => Style::Json,
            (.., true) => Style::Control,
            _ => Style::Listing,
        }
    }
}

const FAILED: u8 = 1;

/// Runs the command with the process's arguments.
pub fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return terminal::stop("sass", &error, FAILED),
    };
    let ended = match arguments.command {
        Command::Dis { style, arch: Some(sm), file, .. } => disassemble_raw(style.style(), sm, &file),
        Command::Dis { style, file, unpack_limit, .. } => disassemble(style.style(), &file, unpack_limit),
        Command::Words { arch } => disassemble_words(arch),
        Command::Asm { arch } => assemble(arch),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        // A reader of the output that stops early (`| head`) is not an error.
        Err(Failure::Closed) => ExitCode::SUCCESS,
        Err(Failure::Message(message)) => {
            message.lines().for_each(|line| terminal::say(format!("sass: {line}")));
            ExitCode::from(FAILED)
        }
    }
}

fn generation(arch: &str) -> Result<Sm, String> {
    Sm::parse(arch).ok_or_else(|| format!("unknown architecture '{arch}'"))
}

/// Parses a number of MiB. Returns bytes.
fn mebibytes(number: &str) -> Result<u64, String> {
    let bytes = number.parse::<u64>().ok().and_then(|number| number.checked_mul(1 << 20));
    bytes.ok_or_else(|| format!("'{number}' is not a number of MiB"))
}
