//! Prints disassembly, with a module for each format. Lines are collected in one buffer and written in large pieces.

mod json;
mod labels;
pub(crate) mod lines;
mod listing;

use gpu_files::cubin::{self, Cubin, Function};
use gpu_files::image::{self, Container, ImageKind};
use sass::{INST_BYTES, Sm};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

/// The output format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Style {
    Listing,
    Labels,
    Json,
    Control,
}

/// The output, and the text that is not written yet.
struct Out<W: Write> {
    text: String,
    to: W,
}

/// The number of bytes that are written at once.
const PIECE: usize = 1 << 16;

impl<W: Write> Out<W> {
    /// Writes the collected text if it has reached the size of a piece.
    fn pause(&mut self) -> io::Result<()> {
        if self.text.len() >= PIECE { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.write_all(self.text.as_bytes())?;
        self.text.clear();
        self.to.flush()
    }
}

/// The reason why the command fails.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The reader of the output has closed it.
    Closed,
    Message(String),
}

impl From<String> for Failure {
    fn from(message: String) -> Failure {
        Failure::Message(message)
    }
}

/// The result of a write.
pub(crate) fn written(result: io::Result<()>) -> Result<(), Failure> {
    result.map_err(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::Closed,
        _ => Failure::Message(format!("standard output: {error}")),
    })
}

/// The largest size of a file with cubins, and of any other input, in bytes. The whole input is kept in memory.
const FILE_LIMIT: u64 = 4 << 30;
const TEXT_LIMIT: u64 = 256 << 20;

/// Reads to the end. Fails if there are more bytes than `limit`.
fn input(from: impl Read, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(io::Error::other(format!("more than {} MiB", limit >> 20)));
    }
    Ok(bytes)
}

fn open(path: &Path) -> io::Result<File> {
    let file = File::open(path)?;
    match file.metadata()?.is_dir() {
        true => Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a folder, not a file")),
        false => Ok(file),
    }
}

/// Reads a file that may hold cubins. The first bytes tell whether it cannot.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, String> {
    let file = open(path).map_err(|error| error.to_string())?;
    let mut start = Vec::new();
    (&file).take(image::MAGIC_BYTES).read_to_end(&mut start).map_err(|error| error.to_string())?;
    if !image::may_hold_images(&start) {
        return Err(image::ImageError::Unknown.to_string());
    }
    input(start.chain(file), FILE_LIMIT).map_err(|error| error.to_string())
}

/// Disassembles every cubin of a file. Unpacks at most the given number of bytes in total. The error names images that
/// cannot be read.
pub(crate) fn disassemble(style: Style, path: &Path, mut unpacked: u64) -> Result<(), Failure> {
    let path_text = path.display();
    let named = |error: &dyn std::fmt::Display| format!("{path_text}: {error}");
    let bytes = read(path).map_err(|error| named(&error))?;
    let images = image::images(&bytes).map_err(|error| named(&error))?;
    let mut out = Out { text: String::new(), to: io::stdout().lock() };
    let mut failures = Vec::new();
    for (index, image) in images.iter().enumerate().filter(|(_, image)| image.kind == ImageKind::Cubin) {
        let content = image.content(&mut unpacked);
        let mut failed = |error: &dyn std::fmt::Display| {
            failures.push(format!("{path_text}: image {index} for sm_{}: {error}", image.sm));
        };
        let content = match &content {
            Ok(content) => content,
            Err(error) => {
                failed(error);
                continue;
            }
        };
        match cubin::read(content) {
            Ok(cubin) => written(print_cubin(&mut out, style, &cubin, image.container.as_ref()))?,
            Err(error) if image.container.is_some() => failed(&error),
            Err(error) => return Err(named(&error).into()),
        }
    }
    written(out.flush())?;
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n").into()) }
}

/// The listing of a cubin, and the number of its GPU generation.
pub(crate) fn listing_of(cubin: &[u8]) -> Result<(u32, String), String> {
    let cubin = cubin::read(cubin).map_err(|error| error.to_string())?;
    let mut out = Out { text: String::new(), to: Vec::new() };
    let written = labels::cubin(&mut out, &cubin).and_then(|()| out.flush());
    written.map_err(|error| error.to_string())?;
    Ok((cubin.sm.0.into(), String::from_utf8_lossy(&out.to).into_owned()))
}

/// Disassembles a file that consists of instructions only.
pub(crate) fn disassemble_raw(style: Style, sm: Sm, path: &Path) -> Result<(), Failure> {
    let bytes = open(path).and_then(|file| input(file, TEXT_LIMIT));
    let bytes = bytes.map_err(|error| format!("{}: {error}", path.display()))?;
    let function = Function { name: "", code: &bytes, symbols: Vec::new(), relocations: Vec::new() };
    let mut out = Out { text: String::new(), to: io::stdout().lock() };
    let printed = match style {
        Style::Listing => listing::raw(&mut out, sm, &bytes),
        Style::Labels => labels::code(&mut out, sm, &function, &mut 0),
        Style::Json => json::function(&mut out, sm, &function),
        Style::Control => control_lines(&mut out, sm, &bytes),
    };
    written(printed.and_then(|()| out.flush()))
}

fn print_cubin(
    out: &mut Out<impl Write>,
    style: Style,
    cubin: &Cubin<'_>,
    container: Option<&Container>,
) -> io::Result<()> {
    match style {
        Style::Listing => listing::cubin(out, cubin, container),
        Style::Labels => labels::cubin(out, cubin),
        Style::Json => {
            cubin.functions.iter().try_for_each(|function| json::function(out, cubin.sm, function))
        }
        Style::Control => cubin.functions.iter().try_for_each(|function| {
            out.text += &format!("# {} {}\n", cubin.target(), function.name.escape_debug());
            control_lines(out, cubin.sm, function.code)
        }),
    }
}

/// Prints lines that `sass asm` accepts.
fn control_lines(out: &mut Out<impl Write>, sm: Sm, code: &[u8]) -> io::Result<()> {
    for (address, word) in addressed(code) {
        push_hex(&mut out.text, address, 4);
        out.text.push('\t');
        match sass::decode_tolerant(sm, word) {
            Some(inst) => sass::print_exact(&mut out.text, sm, &inst, address),
            None => push_unknown(&mut out.text, word),
        }
        out.text.push('\n');
        out.pause()?;
    }
    Ok(())
}

/// The words of a section, with their addresses.
fn addressed(code: &[u8]) -> impl Iterator<Item = (u64, u128)> {
    (0..).step_by(INST_BYTES as usize).zip(cubin::words(code))
}

/// Appends the text of a word. Returns the bits that have no meaning in it.
pub(crate) fn push_text(out: &mut String, sm: Sm, word: u128, address: u64) -> u128 {
    match sass::decode_tolerant(sm, word) {
        Some(inst) => {
            sass::print_to(out, sm, &inst, address);
            inst.stray()
        }
        None => {
            push_unknown(out, word);
            0
        }
    }
}

/// A word that is not an instruction.
fn push_unknown(out: &mut String, word: u128) {
    out.push_str(".word 0x");
    push_hex(out, (word >> 64) as u64, 16);
    push_hex(out, word as u64, 16);
}

/// Appends a hexadecimal number with at least the given number of digits.
pub(crate) fn push_hex(out: &mut String, value: u64, least: u32) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = (u64::BITS - value.leading_zeros()).div_ceil(4).max(least) as usize;
    let mut text = [0; 16];
    for (i, digit) in text[..digits].iter_mut().enumerate() {
        *digit = DIGITS[(value >> (4 * (digits - 1 - i)) & 15) as usize];
    }
    out.push_str(str::from_utf8(&text[..digits]).unwrap_or_default());
}

fn push_blanks(out: &mut String, mut count: usize) {
    const BLANKS: &str = "                                                                ";
    while count > 0 {
        let some = count.min(BLANKS.len());
        out.push_str(&BLANKS[..some]);
        count -= some;
    }
}

/// The text between an instruction and its semicolon. As in NVIDIA's tools, it is empty if the word has no stall count,
/// waits for no scoreboard and may yield.
fn end(word: u128) -> &'static str {
    const ISSUE_AND_WAIT: u128 = (0x3f << 11 | 0x1f) << 105;
    if word & ISSUE_AND_WAIT == 0 { ";" } else { " ;" }
}

/// The columns between position and mnemonic. Guards are printed there, except those in uniform predicates.
const TO_MNEMONIC: usize = 19;

/// The length of a position such as `        /*0040*/`.
fn position_len(address: u64) -> usize {
    let digits = (u64::BITS - address.leading_zeros()).div_ceil(4).max(4) as usize;
    8 + 4 + digits
}

/// Appends the position of a line, and the blanks before its text.
fn push_position(line: &mut String, address: u64, text: &str) {
    let hangs = text.starts_with("@P") || text.starts_with("@!P");
    let guard = if hangs { text.find(' ').map_or(0, |at| at + 1) } else { 0 };
    push_blanks(line, 8);
    line.push_str("/*");
    push_hex(line, address, 4);
    line.push_str("*/");
    push_blanks(line, TO_MNEMONIC.saturating_sub(guard).max(1));
}
