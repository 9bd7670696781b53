//! Reads 64-bit ELF files with NVIDIA's section and relocation types.

use object::LittleEndian as LE;
use object::elf::{FileHeader64, SHT_REL, SHT_RELA, SHT_SYMTAB};
use object::read::elf::{FileHeader, Rel, Rela, SectionHeader, SectionTable, Sym};
use std::fmt;

/// The reason why a file cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ElfError {
    /// Not a 64-bit little-endian ELF file.
    NotElf,
    /// The offset of a table or section lies outside the file.
    Truncated,
}

impl fmt::Display for ElfError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ElfError::NotElf => "not a 64-bit little-endian ELF file",
            ElfError::Truncated => "the file is truncated",
        })
    }
}

impl std::error::Error for ElfError {}

impl From<object::Error> for ElfError {
    fn from(_: object::Error) -> Self {
        ElfError::Truncated
    }
}

/// The machine number of NVIDIA GPUs.
pub const MACHINE_CUDA: u16 = 190;

/// Section types that only reserve memory: the general one, and NVIDIA's for global memory, for shared memory and for the
/// part of it that the system reserves.
const WITHOUT_CONTENT: [u32; 4] = [8, 0x7000_0007, SHARED, 0x7000_0015];
/// The type of a section for shared memory whose variables have no addresses yet.
pub const SHARED: u32 = 0x7000_000a;

/// A 64-bit little-endian ELF file.
pub struct Elf<'a> {
    bytes: &'a [u8],
    table: SectionTable<'a, FileHeader64<LE>>,
    pub kind: u16,
    pub machine: u16,
    pub flags: u32,
    /// In the order of the file.
    pub sections: Vec<Section<'a>>,
}

pub struct Section<'a> {
    /// Empty if it is not UTF-8. The same applies to the other names.
    pub name: &'a str,
    pub kind: u32,
    pub info: usize,
    pub size: u64,
    header: &'a object::elf::SectionHeader64<LE>,
}

pub struct Symbol<'a> {
    pub name: &'a str,
    pub info: u8,
    pub other: u8,
    /// Zero if the symbol is defined in another file.
    pub section: usize,
    pub value: u64,
    pub size: u64,
}

pub struct Relocation {
    /// The section that the relocation changes.
    pub section: usize,
    pub offset: u64,
    /// NVIDIA's number for the kind of relocation.
    pub kind: u32,
    /// Index of the symbol.
    pub symbol: usize,
    pub addend: i64,
}

fn text(bytes: &[u8]) -> &str {
    str::from_utf8(bytes).unwrap_or_default()
}

impl<'a> Elf<'a> {
    /// Reads the file header and the section headers.
    ///
    /// # Errors
    /// The file is not a 64-bit little-endian ELF file, or a table lies outside of it.
    pub fn new(bytes: &'a [u8]) -> Result<Self, ElfError> {
        // Magic number, 64 bits, little endian.
        if !bytes.starts_with(b"\x7fELF\x02\x01") {
            return Err(ElfError::NotElf);
        }
        let header = FileHeader64::<LE>::parse(bytes)?;
        let table = header.sections(LE, bytes)?;
        let section = |header: &'a object::elf::SectionHeader64<LE>| {
            Ok(Section {
                name: text(table.section_name(LE, header)?),
                kind: header.sh_type(LE).0,
                info: header.sh_info(LE) as usize,
                size: header.sh_size(LE),
                header,
            })
        };
        Ok(Self {
            bytes,
            kind: header.e_type(LE).0,
            machine: header.e_machine(LE).0,
            flags: header.e_flags(LE).0,
            sections: table.iter().map(section).collect::<Result<_, ElfError>>()?,
            table,
        })
    }

    /// The bytes of a section. Empty if the section only reserves memory.
    ///
    /// # Errors
    /// The bytes lie outside the file.
    pub fn content(&self, section: &Section<'_>) -> Result<&'a [u8], ElfError> {
        match WITHOUT_CONTENT.contains(&section.kind) {
            true => Ok(&[]),
            false => Ok(section.header.data(LE, self.bytes)?),
        }
    }

    /// The symbols, in the order of the symbol table.
    ///
    /// # Errors
    /// The table lies outside the file.
    pub fn symbols(&self) -> Result<Vec<Symbol<'a>>, ElfError> {
        let table = self.table.symbols(LE, self.bytes, SHT_SYMTAB)?;
        let symbol = |symbol: &'a object::elf::Sym64<LE>| {
            Ok(Symbol {
                name: text(symbol.name(LE, table.strings())?),
                info: symbol.st_info().0,
                other: symbol.st_other().0,
                section: symbol.st_shndx(LE).0.into(),
                value: symbol.st_value(LE),
                size: symbol.st_size(LE),
            })
        };
        table.iter().map(symbol).collect()
    }

    /// The relocations of all sections, in the order of the file.
    ///
    /// # Errors
    /// The tables lie outside the file.
    pub fn relocations(&self) -> Result<Vec<Relocation>, ElfError> {
        let mut relocations = Vec::new();
        for section in &self.sections {
            let target = section.info;
            if section.kind == SHT_REL.0 {
                let entries = section.header.rel(LE, self.bytes)?.map_or(&[][..], |found| found.0);
                relocations.extend(entries.iter().map(|entry| Relocation {
                    section: target,
                    offset: entry.r_offset(LE),
                    kind: entry.r_type(LE).0,
                    symbol: entry.r_sym(LE) as usize,
                    addend: 0,
                }));
            } else if section.kind == SHT_RELA.0 {
                let entries = section.header.rela(LE, self.bytes)?.map_or(&[][..], |found| found.0);
                relocations.extend(entries.iter().map(|entry| Relocation {
                    section: target,
                    offset: entry.r_offset(LE),
                    kind: entry.r_type(LE, false).0,
                    symbol: entry.r_sym(LE, false) as usize,
                    addend: entry.r_addend(LE),
                }));
            }
        }
        Ok(relocations)
    }
}
