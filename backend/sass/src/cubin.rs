//! Just enough of a cubin to disassemble it: the target, and the code of each function with what names it.

use crate::model::Sm;
use std::fmt;

/// A cubin's code.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cubin<'a> {
    pub sm: Sm,
    /// Made for the accelerated variant of the generation, as `sm_90a`.
    pub accelerated: bool,
    /// The target that the PTX was for, where the file tells it.
    pub virtual_sm: Option<u16>,
    /// To be linked: addresses are not final.
    pub relocatable: bool,
    /// In the order of the file's sections.
    pub functions: Vec<Function<'a>>,
}

/// A section of code.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Function<'a> {
    pub name: &'a str,
    pub code: &'a [u8],
    /// In the order of the symbol table: the function's own, and those of functions inside it.
    pub symbols: Vec<Symbol<'a>>,
    /// Places that the linker fills in, in the order of the file.
    pub relocations: Vec<Relocation<'a>>,
}

/// A function that begins in a section of code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Symbol<'a> {
    pub name: &'a str,
    pub offset: u64,
    pub size: u64,
    pub global: bool,
    pub entry: bool,
}

/// A place of the code that is filled in with a symbol's address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Relocation<'a> {
    pub offset: u64,
    /// NVIDIA's number for how the address is put in.
    pub kind: u32,
    pub symbol: &'a str,
    pub addend: i64,
}

impl Cubin<'_> {
    /// `sm_90a`.
    pub fn target(&self) -> String {
        format!("sm_{}{}", self.sm.0, if self.accelerated { "a" } else { "" })
    }
}

/// Why a file is no cubin that can be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CubinError {
    NotElf,
    /// The header names a generation that the table lacks.
    Generation(u32),
    /// A table or section leads outside the file.
    Truncated,
}

impl fmt::Display for CubinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CubinError::NotElf => f.write_str("not a 64-bit little-endian ELF file for the GPU"),
            CubinError::Generation(sm) => write!(f, "unknown generation sm_{sm}"),
            CubinError::Truncated => f.write_str("the file is truncated"),
        }
    }
}

impl std::error::Error for CubinError {}

const MACHINE_CUDA: u64 = 190;
const TYPE_RELOCATABLE: u64 = 1;
const SECTION_HEADER_BYTES: usize = 64;
const SYMBOL_BYTES: usize = 24;
const SECTION_SYMBOLS: u64 = 2;
const SECTION_RELA: u64 = 4;
const SECTION_REL: u64 = 9;
const SYMBOL_FUNCTION: u8 = 2;
const OTHER_ENTRY: u8 = 0x10;
const TEXT_PREFIX: &str = ".text.";

/// Finds the target and the text sections.
pub fn read(bytes: &[u8]) -> Result<Cubin<'_>, CubinError> {
    let elf = Elf::new(bytes)?;
    if elf.machine != MACHINE_CUDA {
        return Err(CubinError::NotElf);
    }
    let sm = generation(elf.flags).ok_or(CubinError::Generation(elf.flags >> 8 & 0xff))?;
    let mut cubin = Cubin {
        sm,
        accelerated: false,
        virtual_sm: None,
        relocatable: elf.kind == TYPE_RELOCATABLE,
        functions: Vec::new(),
    };
    // The function of each section.
    let mut function_of = vec![None; elf.sections.len()];
    for (section, function) in elf.sections.iter().zip(&mut function_of) {
        match section.name {
            ".nv.compat" => cubin.accelerated = is_accelerated(elf.content(section)?),
            ".note.nv.cuinfo" => cubin.virtual_sm = virtual_sm(elf.content(section)?),
            _ => {}
        }
        if let Some(name) = section.name.strip_prefix(TEXT_PREFIX) {
            *function = Some(cubin.functions.len());
            let code = elf.content(section)?;
            cubin.functions.push(Function { name, code, symbols: Vec::new(), relocations: Vec::new() });
        }
    }
    let Some(table) = elf.sections.iter().find(|section| section.kind == SECTION_SYMBOLS) else {
        return Ok(cubin);
    };
    let symbols = elf.symbols(table)?;
    for symbol in symbols.iter().filter(|symbol| symbol.info & 0xf == SYMBOL_FUNCTION) {
        let function = function_of.get(usize::from(symbol.section)).copied().flatten();
        if let Some(function) = function {
            cubin.functions[function].symbols.push(Symbol {
                name: symbol.name,
                offset: symbol.value,
                size: symbol.size,
                global: symbol.info >> 4 != 0,
                entry: symbol.other & OTHER_ENTRY != 0,
            });
        }
    }
    for section in elf.sections.iter().filter(|section| [SECTION_REL, SECTION_RELA].contains(&section.kind)) {
        if let Some(function) = function_of.get(section.info).copied().flatten() {
            let relocations = &mut cubin.functions[function].relocations;
            elf.relocations(section, &symbols, relocations)?;
        }
    }
    Ok(cubin)
}

/// The generation in the header's flags: in bits 8 to 15, or in files of older toolkits in the low byte.
fn generation(flags: u32) -> Option<Sm> {
    [flags >> 8 & 0xff, flags & 0xff].into_iter().map(|sm| Sm(sm as u8)).find(|sm| Sm::ALL.contains(sm))
}

/// The attribute of an accelerated target is set. Attributes have a format, a number and two bytes of value, or of
/// size before as many bytes.
fn is_accelerated(mut attributes: &[u8]) -> bool {
    const SIZED: u8 = 4;
    const ACCELERATOR_TARGET: u8 = 9;
    while let Some((&[format, attribute, low, high], rest)) = attributes.split_first_chunk() {
        if attribute == ACCELERATOR_TARGET {
            return low != 0;
        }
        let size = if format == SIZED { usize::from(u16::from_le_bytes([low, high])) } else { 0 };
        attributes = rest.get(size..).unwrap_or_default();
    }
    false
}

/// The second half-word of the note's content, which follows a header of three words and a name.
fn virtual_sm(note: &[u8]) -> Option<u16> {
    let file = Bytes(note);
    let name = (file.number(0, 4).ok()? as usize).next_multiple_of(4);
    file.number(name.checked_add(14)?, 2).ok().map(|sm| sm as u16)
}

/// The instruction words of a function; a rest of less than a word is left out.
pub fn words(code: &[u8]) -> impl Iterator<Item = u128> {
    code.as_chunks::<16>().0.iter().map(|word| u128::from_le_bytes(*word))
}

/// The sections of a 64-bit little-endian ELF file of any machine.
pub(crate) struct Elf<'a> {
    bytes: Bytes<'a>,
    kind: u64,
    machine: u64,
    flags: u32,
    pub(crate) sections: Vec<Section<'a>>,
}

pub(crate) struct Section<'a> {
    pub(crate) name: &'a str,
    kind: u64,
    offset: usize,
    size: usize,
    link: usize,
    info: usize,
}

struct ElfSymbol<'a> {
    name: &'a str,
    info: u8,
    other: u8,
    section: u16,
    value: u64,
    size: u64,
}

impl<'a> Elf<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Result<Elf<'a>, CubinError> {
        // Magic number, 64 bits, little endian.
        if bytes.get(..6) != Some(b"\x7fELF\x02\x01") {
            return Err(CubinError::NotElf);
        }
        let bytes = Bytes(bytes);
        let headers = bytes.number(40, 8)? as usize;
        let mut count = bytes.number(60, 2)? as usize;
        let mut names = bytes.number(62, 2)? as usize;
        // Where there are too many for the header, the first section has the numbers.
        const ELSEWHERE: usize = 0xffff;
        if headers != 0 && count == 0 {
            count = bytes.number(at(headers, 32)?, 8)? as usize;
        }
        if names == ELSEWHERE {
            names = bytes.number(at(headers, 40)?, 4)? as usize;
        }
        let table =
            bytes.slice(headers, count.checked_mul(SECTION_HEADER_BYTES).ok_or(CubinError::Truncated)?)?;
        let header = |index: usize| -> Result<(usize, Section<'a>), CubinError> {
            let header = Bytes(table.chunks(SECTION_HEADER_BYTES).nth(index).ok_or(CubinError::Truncated)?);
            let section = Section {
                name: "",
                kind: header.number(4, 4)?,
                offset: header.number(24, 8)? as usize,
                size: header.number(32, 8)? as usize,
                link: header.number(40, 4)? as usize,
                info: header.number(44, 4)? as usize,
            };
            Ok((header.number(0, 4)? as usize, section))
        };
        let mut elf = Elf {
            bytes,
            kind: bytes.number(16, 2)?,
            machine: bytes.number(18, 2)?,
            flags: bytes.number(48, 4)? as u32,
            sections: Vec::new(),
        };
        if count > 0 {
            let names = elf.content(&header(names)?.1)?;
            for index in 0..count {
                let (name, section) = header(index)?;
                elf.sections.push(Section { name: string(names, name)?, ..section });
            }
        }
        Ok(elf)
    }

    pub(crate) fn content(&self, section: &Section<'_>) -> Result<&'a [u8], CubinError> {
        const NO_BITS: u64 = 8;
        if section.kind == NO_BITS { Ok(&[]) } else { self.bytes.slice(section.offset, section.size) }
    }

    fn symbols(&self, table: &Section<'_>) -> Result<Vec<ElfSymbol<'a>>, CubinError> {
        let names = self.content(self.sections.get(table.link).ok_or(CubinError::Truncated)?)?;
        let entries = self.content(table)?.chunks_exact(SYMBOL_BYTES).map(Bytes);
        let symbol = |entry: Bytes<'_>| {
            Ok(ElfSymbol {
                name: string(names, entry.number(0, 4)? as usize)?,
                info: entry.number(4, 1)? as u8,
                other: entry.number(5, 1)? as u8,
                section: entry.number(6, 2)? as u16,
                value: entry.number(8, 8)?,
                size: entry.number(16, 8)?,
            })
        };
        entries.map(symbol).collect()
    }

    fn relocations(
        &self,
        section: &Section<'_>,
        symbols: &[ElfSymbol<'a>],
        out: &mut Vec<Relocation<'a>>,
    ) -> Result<(), CubinError> {
        let has_addend = section.kind == SECTION_RELA;
        for entry in self.content(section)?.chunks_exact(if has_addend { 24 } else { 16 }).map(Bytes) {
            out.push(Relocation {
                offset: entry.number(0, 8)?,
                kind: entry.number(8, 4)? as u32,
                symbol: symbols.get(entry.number(12, 4)? as usize).map_or("", |symbol| symbol.name),
                addend: if has_addend { entry.number(16, 8)? as i64 } else { 0 },
            });
        }
        Ok(())
    }
}

fn at(base: usize, offset: usize) -> Result<usize, CubinError> {
    base.checked_add(offset).ok_or(CubinError::Truncated)
}

/// A text that ends with a zero; one that is not UTF-8 reads as empty.
fn string(table: &[u8], offset: usize) -> Result<&str, CubinError> {
    let text = table.get(offset..).ok_or(CubinError::Truncated)?;
    let end = text.iter().position(|&byte| byte == 0).unwrap_or(text.len());
    Ok(str::from_utf8(&text[..end]).unwrap_or_default())
}

#[derive(Clone, Copy)]
pub(crate) struct Bytes<'a>(pub(crate) &'a [u8]);

impl<'a> Bytes<'a> {
    pub(crate) fn slice(&self, offset: usize, size: usize) -> Result<&'a [u8], CubinError> {
        self.0.get(offset..at(offset, size)?).ok_or(CubinError::Truncated)
    }

    /// A little-endian number of at most eight bytes.
    pub(crate) fn number(&self, offset: usize, size: usize) -> Result<u64, CubinError> {
        let bytes = self.slice(offset, size)?;
        Ok(bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_what_is_no_cubin() {
        assert_eq!(read(b""), Err(CubinError::NotElf));
        assert_eq!(read(b"\x7fELF\x02\x01"), Err(CubinError::Truncated));
        let mut header = vec![0; 64];
        header[..6].copy_from_slice(b"\x7fELF\x02\x01");
        header[18] = 190;
        assert_eq!(read(&header), Err(CubinError::Generation(0)));
        header[49] = 80;
        header[40..48].fill(0xff);
        header[60] = 1;
        assert_eq!(read(&header), Err(CubinError::Truncated));
    }
}
