//! As `cuobjdump -sass` prints: text and both halves of the word, in columns.

use super::{Out, addressed, end, push_blanks, push_hex, push_text};
use sass::Sm;
use sass::cubin::Cubin;
use sass::image::Container;
use std::io::{self, Write};

/// Where mnemonics begin; guards stand before them.
const MNEMONIC_COLUMN: usize = 35;
/// From the end of the longest text to the word.
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
    let width = width(cubin.sm, cubin.functions.iter().map(|function| function.code));
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
        code(out, cubin.sm, function.code, width)?;
        out.text += "\t\t..........\n\n\n";
    }
    Ok(())
}

/// The longest text of a file's code.
pub(super) fn width<'a>(sm: Sm, codes: impl IntoIterator<Item = &'a [u8]>) -> usize {
    let mut text = String::new();
    let mut width = 0;
    for (address, word) in codes.into_iter().flat_map(addressed) {
        text.clear();
        push_text(&mut text, sm, word, address);
        width = width.max(text.len() + end(word).len());
    }
    width
}

/// Bytes of the guard and the blank after it.
fn guard(text: &str) -> usize {
    if text.starts_with('@') { text.find(' ').map_or(0, |at| at + 1) } else { 0 }
}

pub(super) fn code(out: &mut Out<impl Write>, sm: Sm, code: &[u8], width: usize) -> io::Result<()> {
    let mut text = String::new();
    for (address, word) in addressed(code) {
        text.clear();
        push_text(&mut text, sm, word, address);
        let guard = guard(&text);
        text.push_str(end(word));
        let line = &mut out.text;
        let start = line.len();
        line.push_str("        /*");
        push_hex(line, address, 4);
        line.push_str("*/");
        let blanks = (MNEMONIC_COLUMN - guard).saturating_sub(line.len() - start);
        push_blanks(line, blanks.max(1));
        line.push_str(&text);
        let column = MNEMONIC_COLUMN + width + GAP;
        let blanks = column.saturating_sub(line.len() - start);
        push_blanks(line, blanks.max(1));
        push_half(line, word as u64);
        // No form gives these bits a meaning: a modifier may be missing in the text.
        if let Some(stray) =
            sass::decode_tolerant(sm, word).map(|inst| inst.stray()).filter(|&bits| bits != 0)
        {
            line.push_str(&format!(" // unknown bits {stray:#x}"));
        }
        line.push('\n');
        push_blanks(line, column);
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
