//! Prints the format of `nvdisasm -c`: assembler directives, and labels at branch targets.

use super::{Out, addressed, end, push_position, push_text};
use gpu_files::cubin::{Cubin, Function, Symbol};
use sass::Sm;
use std::collections::BTreeMap;
use std::io::{self, Write};

pub(super) fn cubin(out: &mut Out<impl Write>, cubin: &Cubin<'_>) -> io::Result<()> {
    let kind = if cubin.relocatable { "ET_REL" } else { "ET_EXEC" };
    out.text += &format!("\t.target\t{}\n\n\t.elftype\t@\"{kind}\"\n", cubin.target());
    // Labels are numbered through the whole file.
    let mut labels = 0;
    for function in &cubin.functions {
        let section = format!(".text.{}", function.name);
        let rule = "-".repeat(26);
        out.text += &format!("\n\n//{:-<21} {section:<26}{rule}\n", "");
        out.text += &format!("\t.section\t{section},\"ax\",@progbits\n\t.align\t128\n");
        code(out, cubin.sm, function, &mut labels)?;
    }
    Ok(())
}

/// Prints the code of a section. `labels` is the number of labels so far.
pub(super) fn code(
    out: &mut Out<impl Write>,
    sm: Sm,
    function: &Function<'_>,
    labels: &mut usize,
) -> io::Result<()> {
    let size = function.code.len() as u64;
    let mut symbols: BTreeMap<u64, Vec<&Symbol<'_>>> = BTreeMap::new();
    for symbol in &function.symbols {
        symbols.entry(symbol.offset).or_default().push(symbol);
    }
    let named = |offset: u64| symbols.get(&offset).into_iter().flatten();
    // A target outside the section, or in the middle of an instruction, is printed as a number.
    let targets = addressed(function.code)
        .filter_map(|(address, word)| sass::decode_tolerant(sm, word)?.target(address))
        .filter(|target| *target < size && target % sass::INST_BYTES == 0);
    let mut label_of: BTreeMap<u64, String> = targets.map(|target| (target, String::new())).collect();
    for (&target, label) in &mut label_of {
        *label = match named(target).next() {
            Some(symbol) => symbol.name.to_owned(),
            None => {
                *labels += 1;
                format!(".L_x_{}", *labels - 1)
            }
        };
    }
    let mut relocations = function.relocations.iter().peekable();
    for (address, word) in addressed(function.code) {
        for symbol in named(address) {
            directives(&mut out.text, symbol);
        }
        if address == 0 && !function.name.is_empty() {
            out.text += &format!(".text.{}:\n", function.name);
        }
        if let Some(label) = label_of.get(&address).filter(|_| named(address).next().is_none()) {
            out.text += label;
            out.text += ":\n";
        }
        while let Some(place) = relocations.next_if(|place| place.offset < address + sass::INST_BYTES) {
            let addend = if place.addend == 0 { String::new() } else { format!("{:+#x}", place.addend) };
            out.text +=
                &format!("\t// filled in by the linker, kind {:#x}: {}{addend}\n", place.kind, place.symbol);
        }
        line(&mut out.text, sm, word, address, &label_of);
        out.pause()?;
    }
    Ok(())
}

fn directives(out: &mut String, symbol: &Symbol<'_>) {
    let name = symbol.name;
    if symbol.global {
        *out += &format!("        .global         {name}\n");
    }
    *out += &format!(
        "        .type           {name},@function\n        .size           {name},{:#x}\n",
        symbol.size
    );
    if symbol.entry {
        *out += &format!("        .other          {name},@\"STO_CUDA_ENTRY STV_DEFAULT\"\n");
    }
    *out += &format!("{name}:\n");
}

fn line(out: &mut String, sm: Sm, word: u128, address: u64, label_of: &BTreeMap<u64, String>) {
    let mut text = String::new();
    push_text(&mut text, sm, word, address);
    push_position(out, address, &text);
    out.push_str(&text);
    let label = sass::decode_tolerant(sm, word).and_then(|inst| label_of.get(&inst.target(address)?));
    if let Some(label) = label {
        // The target is the last operand.
        let kept = out.rfind(' ').map_or(out.len(), |at| at + 1);
        out.truncate(kept);
        *out += &format!("`({label})");
    }
    out.push_str(end(word));
    out.push('\n');
}
