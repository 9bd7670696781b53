//! Reads what disassembly needs from a cubin: the target, and the code of each function with its symbols and
//! relocations.

use crate::elf::{Elf, ElfError, MACHINE_CUDA};
use sass::Sm;
use std::fmt;

/// The code of a cubin.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cubin<'a> {
    pub sm: Sm,
    /// The cubin is for an architecture-specific target such as `sm_90a`.
    pub accelerated: bool,
    /// The target of the PTX, if the file records it.
    pub virtual_sm: Option<u16>,
    /// The cubin still has to be linked, so its addresses are not final.
    pub relocatable: bool,
    /// In the order of the file's sections.
    pub functions: Vec<Function<'a>>,
}

/// A section of code.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Function<'a> {
    pub name: &'a str,
    pub code: &'a [u8],
    /// In the order of the symbol table: the symbol of the function, and those of functions inside it.
    pub symbols: Vec<Symbol<'a>>,
    /// The places that the linker changes, in the order of the file.
    pub relocations: Vec<Relocation<'a>>,
}

/// A symbol of a function that begins in a code section.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Symbol<'a> {
    pub name: &'a str,
    pub offset: u64,
    pub size: u64,
    pub global: bool,
    pub entry: bool,
}

/// A place in the code at which the linker inserts the address of a symbol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Relocation<'a> {
    pub offset: u64,
    /// NVIDIA's number for the kind of relocation.
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

/// The reason why a file cannot be read as a cubin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CubinError {
    NotElf,
    /// The header names a generation that the table lacks.
    Generation(u32),
    /// The offset of a table or section lies outside the file.
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

impl From<ElfError> for CubinError {
    fn from(error: ElfError) -> Self {
        match error {
            ElfError::NotElf => CubinError::NotElf,
            ElfError::Truncated => CubinError::Truncated,
        }
    }
}

const TYPE_RELOCATABLE: u16 = 1;
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
    // The function in each section.
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
    let symbols = elf.symbols()?;
    for symbol in symbols.iter().filter(|symbol| symbol.info & 0xf == SYMBOL_FUNCTION) {
        let function = function_of.get(symbol.section).copied().flatten();
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
    for relocation in elf.relocations()? {
        if let Some(function) = function_of.get(relocation.section).copied().flatten() {
            cubin.functions[function].relocations.push(Relocation {
                offset: relocation.offset,
                kind: relocation.kind,
                symbol: symbols.get(relocation.symbol).map_or("", |symbol| symbol.name),
                addend: relocation.addend,
            });
        }
    }
    Ok(cubin)
}

/// The generation from the flags in the header: in bits 8 to 15, or in the low byte in files from older toolkits.
fn generation(flags: u32) -> Option<Sm> {
    [flags >> 8 & 0xff, flags & 0xff].into_iter().map(|sm| Sm(sm as u8)).find(|sm| Sm::ALL.contains(sm))
}

/// Whether the attribute for an architecture-specific target is set. An attribute has a format, a number, and either a
/// value of two bytes or a size of two bytes followed by the data.
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

/// The second half-word of the note's content. Before the content there are a header of three words and a name.
fn virtual_sm(note: &[u8]) -> Option<u16> {
    let name = u32::from_le_bytes(*note.first_chunk()?) as usize;
    let at = name.checked_next_multiple_of(4)?.checked_add(14)?;
    Some(u16::from_le_bytes(*note.get(at..)?.first_chunk()?))
}

/// The instruction words of a function. An incomplete word at the end is left out.
pub fn words(code: &[u8]) -> impl Iterator<Item = u128> {
    code.as_chunks::<16>().0.iter().map(|word| u128::from_le_bytes(*word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_what_is_no_cubin() {
        assert_eq!(read(b""), Err(CubinError::NotElf));
        assert_eq!(read(b"\x7fELF\x02\x01"), Err(CubinError::Truncated));
        let mut header = vec![0; 64];
        header[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
        header[18] = 190;
        assert_eq!(read(&header), Err(CubinError::Generation(0)));
        header[49] = 80;
        header[40..48].fill(0xff);
        (header[58], header[60]) = (64, 1);
        assert_eq!(read(&header), Err(CubinError::Truncated));
    }
}
