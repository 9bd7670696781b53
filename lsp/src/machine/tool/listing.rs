//! Prints the format of `cuobjdump -sass`: columns with the text and both halves of the word.

use super::{
    Out, TO_MNEMONIC, addressed, end, position_len, push_blanks, push_hex, push_position, push_text,
};
use gpu_files::cubin::Cubin;
use gpu_files::image::Container;
use sass::Sm;
use std::io::{self, Write};

/// The number of blanks between the longest text and the word.
const GAP: usize = 2;

pub(super) fn cubin(
    out: &mut Out<impl Write>,
    cubin: &Cubin<'_>,
    container: Option<&Container>,
) -> io::Result<()> {
    let target = cubin.target();
    if let Some(container) = container {
        let (major, minor) = container.version;
        out.text += &format!("\nFatbin elf code:\n================\narch = {target}\n");
        out.text += &format!("code version = [{major},{minor}]\nhost = linux\ncompile_size = 64bit\n");
        out.text += if container.compressed { "compressed\n" } else { "" };
    }
    out.text += &format!("\n\tcode for {target}\n\t.target\t{target}\n\n");
    let texts = Texts::new(cubin.sm, cubin.functions.iter().map(|function| function.code));
    let mut lines = texts.lines();
    for function in &cubin.functions {
        out.text += &format!("\t\tFunction : {}\n\t.headerflags\t@\"", function.name);
        if cubin.accelerated {
            out.text += "EF_CUDA_ACCELERATORS ";
        }
        out.text += &format!("EF_CUDA_SM{}", cubin.sm.0);
        if let Some(sm) = cubin.virtual_sm {
            out.text += &format!(" EF_CUDA_VIRTUAL_SM(EF_CUDA_SM{sm})");
        }
        out.text += "\"\n";
        code(out, function.code, texts.width, &mut lines)?;
        out.text += "\t\t..........\n\n\n";
    }
    Ok(())
}

/// The texts of all instructions of a file. They are collected first, because the longest text determines the columns.
struct Texts {
    text: String,
    /// The end of each text, and the bits of the word that have no meaning.
    ends: Vec<(usize, u128)>,
    /// The largest number of bytes before the word, over all lines whose guard extends beyond the column of the
    /// mnemonics.
    width: usize,
}

impl Texts {
    fn new<'a>(sm: Sm, codes: impl IntoIterator<Item = &'a [u8]>) -> Texts {
        let mut texts = Texts { text: String::new(), ends: Vec::new(), width: 0 };
        for (address, word) in codes.into_iter().flat_map(addressed) {
            let start = texts.text.len();
            let stray = push_text(&mut texts.text, sm, word, address);
            texts.text.push_str(end(word));
            let line = position_len(address) + TO_MNEMONIC + texts.text.len() - start;
            texts.width = texts.width.max(line + GAP);
            texts.ends.push((texts.text.len(), stray));
        }
        texts
    }

    /// The texts, and the bits of each word that have no meaning.
    fn lines(&self) -> impl Iterator<Item = (&str, u128)> {
        let mut start = 0;
        self.ends.iter().map(move |&(end, stray)| {
            let text = &self.text[start..end];
            start = end;
            (text, stray)
        })
    }
}

/// Prints a file that consists of instructions only.
pub(super) fn raw(out: &mut Out<impl Write>, sm: Sm, bytes: &[u8]) -> io::Result<()> {
    let texts = Texts::new(sm, [bytes]);
    code(out, bytes, texts.width, &mut texts.lines())
}

/// Prints the code of a section. Its texts are the next ones of the iterator.
fn code<'a>(
    out: &mut Out<impl Write>,
    code: &[u8],
    width: usize,
    lines: &mut impl Iterator<Item = (&'a str, u128)>,
) -> io::Result<()> {
    for ((address, word), (text, stray)) in addressed(code).zip(lines) {
        let line = &mut out.text;
        let start = line.len();
        push_position(line, address, text);
        line.push_str(text);
        let blanks = width.saturating_sub(line.len() - start);
        push_blanks(line, blanks.max(1));
        push_half(line, word as u64);
        // The text may lack a modifier.
        if stray != 0 {
            line.push_str(&format!(" // unknown bits {stray:#x}"));
        }
        line.push('\n');
        push_blanks(line, width);
        push_half(line, (word >> 64) as u64);
        line.push('\n');
        out.pause()?;
    }
    Ok(())
}

fn push_half(line: &mut String, half: u64) {
    line.push_str("/* 0x");
    push_hex(line, half, 16);
    line.push_str(" */");
}
