//! An ELF image as a list of sections and symbols, and its bytes.
//!
//! Sections are in the same order as in files of ptxas: header, `.shstrtab`, `.strtab`, `.symtab`, the other sections
//! in index order, section headers, program headers. This module does not know the meaning of the sections.

use crate::input::Linkage;
use object::Endianness;
use object::elf;
use object::write::elf::{FileHeader, ProgramHeader, SectionHeader, Sym, Writer};

/// Header index of the first section after the three tables.
const FIRST_SECTION: u32 = 4;
const SYMTAB_INDEX: u32 = 3;
/// Marks a word that is replaced by the offset of a string. No symbol has such a number, and markers of lists have all
/// upper bits set.
const STRING: u32 = 0x4000_0000;

/// The index of a section's header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct SectionId(pub(super) u32);

impl SectionId {
    /// The section of a symbol for which the linker allocates memory. It merges such symbols of one name.
    pub(super) const COMMON: SectionId = SectionId(u32::MAX);
}

/// The index of a symbol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct SymbolId(pub(super) u32);

#[derive(Debug)]
pub(super) enum Body {
    Bytes(Vec<u8>),
    /// Zeros that take memory but no space in the file.
    Zeros(u64),
    /// Words, some of which are the result of [`Image::string`].
    Words(Vec<u32>),
}

impl Body {
    pub(super) fn len(&self) -> u64 {
        match self {
            Body::Bytes(bytes) => bytes.len() as u64,
            Body::Zeros(len) => *len,
            Body::Words(words) => 4 * words.len() as u64,
        }
    }
}

#[derive(Debug)]
pub(super) struct Section {
    pub(super) name: String,
    pub(super) kind: u32,
    pub(super) flags: u64,
    pub(super) link: u32,
    pub(super) info: u32,
    pub(super) align: u64,
    pub(super) entry_size: u64,
    pub(super) body: Body,
    /// The loadable segment that contains the section.
    pub(super) segment: Option<Segment>,
}

/// Loadable segments, in file order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Segment {
    Constants,
    Code,
    Data,
    Parameters,
}

impl Segment {
    const ALL: [Segment; 4] = [Segment::Constants, Segment::Code, Segment::Data, Segment::Parameters];

    fn flags(self) -> elf::ProgramFlags {
        match self {
            Segment::Constants | Segment::Parameters => elf::PF_R,
            Segment::Code => elf::PF_R | elf::PF_X,
            Segment::Data => elf::PF_R | elf::PF_W,
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Symbol {
    pub(super) name: String,
    pub(super) section: Option<SectionId>,
    pub(super) binding: Binding,
    pub(super) kind: SymbolKind,
    pub(super) other: u8,
    pub(super) value: u64,
    pub(super) size: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Binding {
    Local,
    Global,
    Weak,
}

impl From<Linkage> for Binding {
    fn from(linkage: Linkage) -> Binding {
        match linkage {
            Linkage::Internal => Binding::Local,
            Linkage::Weak => Binding::Weak,
            Linkage::Common | Linkage::Visible | Linkage::Extern => Binding::Global,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SymbolKind {
    None,
    Object,
    Function,
    Section,
    /// A variable in an object.
    Variable,
    Texture,
    Sampler,
    Surface,
}

impl Symbol {
    fn is_common(&self) -> bool {
        self.section == Some(SectionId::COMMON)
    }

    /// The section in this file.
    fn own_section(&self) -> Option<SectionId> {
        self.section.filter(|_| !self.is_common())
    }

    fn info(&self) -> elf::SymbolInfo {
        let binding = match self.binding {
            Binding::Local => elf::STB_LOCAL,
            Binding::Global => elf::STB_GLOBAL,
            Binding::Weak => elf::STB_WEAK,
        };
        let kind = match self.kind {
            SymbolKind::None => elf::STT_NOTYPE,
            SymbolKind::Object => elf::STT_OBJECT,
            SymbolKind::Function => elf::STT_FUNC,
            SymbolKind::Section => elf::STT_SECTION,
            SymbolKind::Variable => elf::SymbolType(13),
            SymbolKind::Texture => elf::SymbolType(10),
            SymbolKind::Sampler => elf::SymbolType(11),
            SymbolKind::Surface => elf::SymbolType(12),
        };
        elf::SymbolInfo(binding.0 << 4 | kind.0)
    }
}

/// Properties of a target's cubins as ELF files.
#[derive(Clone, Copy, Debug)]
pub(super) struct Format {
    pub(super) e_flags: u32,
    /// The program header table is in a read-only segment (from sm_90), otherwise in an executable one.
    pub(super) plain_header_segment: bool,
    /// An object for a linker; it has no segments.
    pub(super) relocatable: bool,
}

#[derive(Debug, Default)]
pub(super) struct Image {
    sections: Vec<Section>,
    /// The symbols, local ones first.
    symbols: Vec<Symbol>,
    /// Strings that are not names of sections or symbols.
    strings: Vec<String>,
}

impl Image {
    pub(super) fn add_section(&mut self, section: Section) -> SectionId {
        self.sections.push(section);
        SectionId(FIRST_SECTION + self.sections.len() as u32 - 1)
    }

    pub(super) fn section_mut(&mut self, id: SectionId) -> &mut Section {
        &mut self.sections[(id.0 - FIRST_SECTION) as usize]
    }

    pub(super) fn set_symbols(&mut self, symbols: Vec<Symbol>) {
        debug_assert!(symbols.is_sorted_by_key(|s| s.binding != Binding::Local));
        self.symbols = symbols;
    }

    /// A word that will contain the offset of `text` in the string table.
    pub(super) fn string(&mut self, text: &str) -> u32 {
        let known = self.strings.iter().position(|other| other == text);
        let index = known.unwrap_or_else(|| {
            self.strings.push(text.to_owned());
            self.strings.len() - 1
        });
        STRING | index as u32
    }

    /// The index of the `i`-th symbol of `set_symbols`; index 0 is the null symbol.
    pub(super) fn symbol_id(i: usize) -> SymbolId {
        SymbolId(i as u32 + 1)
    }

    pub(super) const SYMTAB: u32 = SYMTAB_INDEX;

    /// The offset and size in the file, and the size in memory, of the sections of a segment.
    fn extent(&self, segment: Segment, offsets: &[u64]) -> Option<(u64, u64, u64)> {
        let members = || self.sections.iter().zip(offsets).filter(|(s, _)| s.segment == Some(segment));
        let start = members().map(|(_, &o)| o).min()?;
        let file_end = members()
            .filter(|(s, _)| matches!(s.body, Body::Bytes(_)))
            .map(|(s, &o)| o + s.body.len())
            .max()
            .unwrap_or(start);
        let mut memory_end = file_end;
        for (section, _) in members().filter(|(s, _)| matches!(s.body, Body::Zeros(_))) {
            memory_end = memory_end.next_multiple_of(section.align.max(1)) + section.body.len();
        }
        Some((start, file_end - start, memory_end - start))
    }

    pub(super) fn write(&self, format: Format) -> Result<Vec<u8>, object::write::Error> {
        let mut out = Vec::new();
        let mut writer = Writer::new(Endianness::Little, true, &mut out);

        // First reserve space for all parts, in file order.
        writer.reserve_file_header();
        writer.reserve_shstrtab_section_index();
        writer.reserve_strtab_section_index();
        let symtab = writer.reserve_symtab_section_index();
        debug_assert_eq!(symtab.0, SYMTAB_INDEX);
        let names: Vec<_> =
            self.sections.iter().map(|s| writer.add_section_name(s.name.as_bytes())).collect();
        for _ in &self.sections {
            writer.reserve_section_index();
        }
        writer.reserve_null_symbol_index();
        let strings: Vec<_> = self
            .symbols
            .iter()
            .map(|s| (!s.name.is_empty()).then(|| writer.add_string(s.name.as_bytes())))
            .collect();
        let texts: Vec<_> = self.strings.iter().map(|text| writer.add_string(text.as_bytes())).collect();
        for symbol in &self.symbols {
            writer.reserve_symbol_index(symbol.own_section().map(|s| object::write::elf::SectionIndex(s.0)));
        }
        writer.reserve_shstrtab()?;
        writer.reserve_strtab()?;
        writer.reserve_symtab();
        let offsets: Vec<u64> = self
            .sections
            .iter()
            .map(|s| match &s.body {
                Body::Bytes(_) | Body::Words(_) => writer.reserve(s.body.len(), s.align),
                Body::Zeros(_) => writer.reserve(0, 1),
            })
            .collect();
        writer.reserve_section_headers();
        let segments: Vec<_> =
            Segment::ALL.iter().filter_map(|&s| Some((s, self.extent(s, &offsets)?))).collect();
        let header_count = if format.relocatable { 0 } else { segments.len() as u32 + 2 };
        writer.reserve_program_headers(header_count);
        let table_size = u64::from(header_count) * 56;
        let table_offset = writer.reserved_len() - table_size;

        // Then write the parts in the same order.
        writer.write_file_header(&FileHeader {
            os_abi: elf::OsAbi(0x41),
            abi_version: 8,
            e_type: if format.relocatable { elf::ET_REL } else { elf::ET_EXEC },
            e_machine: elf::EM_CUDA,
            e_entry: 0,
            e_flags: elf::FileFlags(format.e_flags),
        })?;
        writer.write_shstrtab();
        writer.write_strtab();
        writer.write_null_symbol();
        for (symbol, name) in self.symbols.iter().zip(&strings) {
            let st_name = writer.string_offset(*name);
            writer.write_symbol(&Sym {
                section: symbol.own_section().map(|s| s.0),
                st_name,
                st_info: symbol.info(),
                st_other: elf::SymbolOther(symbol.other),
                st_shndx: if symbol.is_common() { elf::SHN_COMMON } else { elf::SHN_UNDEF },
                st_value: symbol.value,
                st_size: symbol.size,
            });
        }
        for (section, &offset) in self.sections.iter().zip(&offsets) {
            if let Body::Bytes(bytes) = &section.body {
                writer.pad_until(offset);
                writer.write(bytes);
            }
            if let Body::Words(words) = &section.body {
                writer.pad_until(offset);
                for &word in words {
                    let text =
                        (word >> 30 == STRING >> 30).then(|| texts.get((word & !STRING) as usize)).flatten();
                    let word = text.map_or(word, |text| writer.string_offset(Some(*text)));
                    writer.write(&word.to_le_bytes());
                }
            }
        }
        writer.write_null_section_header();
        writer.write_shstrtab_section_header();
        writer.write_strtab_section_header();
        let locals = self.symbols.iter().filter(|s| s.binding == Binding::Local).count() as u32;
        writer.write_symtab_section_header(locals + 1);
        for ((section, &offset), &name) in self.sections.iter().zip(&offsets).zip(&names) {
            let sh_name = writer.section_name_offset(Some(name));
            writer.write_section_header(&SectionHeader {
                sh_name,
                sh_type: elf::SectionType(section.kind),
                sh_flags: elf::SectionFlags(section.flags),
                sh_addr: 0,
                sh_offset: offset,
                sh_size: section.body.len(),
                sh_link: section.link,
                sh_info: section.info,
                sh_addralign: section.align,
                sh_entsize: section.entry_size,
            });
        }
        if format.relocatable {
            return Ok(out);
        }
        writer.write_align_program_headers();
        let header = |p_type, p_flags, (offset, file, memory): (u64, u64, u64)| ProgramHeader {
            p_type,
            p_flags,
            p_offset: offset,
            p_vaddr: 0,
            p_paddr: 0,
            p_filesz: file,
            p_memsz: memory,
            p_align: 8,
        };
        let table = (table_offset, table_size, table_size);
        let table_flags = if format.plain_header_segment { elf::PF_R } else { elf::PF_R | elf::PF_X };
        writer.write_program_header(&header(elf::PT_PHDR, table_flags, table));
        if format.plain_header_segment {
            writer.write_program_header(&header(elf::PT_LOAD, table_flags, table));
        }
        for (segment, extent) in segments {
            writer.write_program_header(&header(elf::PT_LOAD, segment.flags(), extent));
        }
        if !format.plain_header_segment {
            writer.write_program_header(&header(elf::PT_LOAD, table_flags, table));
        }
        Ok(out)
    }
}
