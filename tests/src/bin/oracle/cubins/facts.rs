//! The metadata of a cubin: pairs of a key and a text for each subject.

use object::elf;
use object::read::elf::{
    ElfFile64, FileHeader as _, ProgramHeader as _, Rel as _, Rela as _, SectionHeader as _, Sym as _,
};
use object::{Endianness, SymbolIndex};
use std::collections::BTreeMap;

/// Indexed by subject: `header`, `section NAME`, `symbol NAME`, `relocations NAME`, `info NAME`.
#[derive(Default)]
pub(super) struct Facts {
    pub(super) all: BTreeMap<String, BTreeMap<String, String>>,
    /// Lists of names in order: of sections, of symbols, of a section's attributes.
    pub(super) orders: BTreeMap<String, Vec<String>>,
}

const E: Endianness = Endianness::Little;

type File<'a> = ElfFile64<'a, Endianness>;

pub(super) fn of(bytes: &[u8]) -> Result<Facts, String> {
    let file = File::parse(bytes).map_err(|error| error.to_string())?;
    let mut facts = Facts::default();
    facts.header(&file);
    facts.symbols(&file).map_err(|error| error.to_string())?;
    facts.sections(&file).map_err(|error| error.to_string())?;
    Ok(facts)
}

impl Facts {
    fn add(&mut self, subject: &str, key: &str, value: impl ToString) {
        self.all.entry(subject.to_owned()).or_default().insert(key.to_owned(), value.to_string());
    }

    fn ordered(&mut self, list: &str, name: String) {
        self.orders.entry(list.to_owned()).or_default().push(name);
    }

    fn header(&mut self, file: &File<'_>) {
        let header = file.elf_header();
        self.add("header", "type", header.e_type(E).0);
        self.add("header", "flags", format!("{:#x}", header.e_flags(E).0));
        self.add("header", "abi", header.e_ident().abi_version);
        let segments = file.elf_program_headers().iter();
        let segments = segments.map(|s| format!("{}:{}", s.p_type(E).0, s.p_flags(E).0));
        self.add("header", "segments", segments.collect::<Vec<_>>().join(" "));
    }

    fn symbols(&mut self, file: &File<'_>) -> object::Result<()> {
        let table = file.elf_symbol_table();
        for (index, symbol) in table.enumerate() {
            let name = name_of(file, index);
            let subject = format!("symbol {name}");
            self.add(&subject, "binding", symbol.st_bind().0);
            self.add(&subject, "kind", symbol.st_type().0);
            self.add(&subject, "other", format!("{:#x}", symbol.st_other().0));
            self.add(&subject, "section", section_name(file, usize::from(symbol.st_shndx(E).0)));
            if symbol.st_type() != elf::STT_FUNC {
                self.add(&subject, "size", symbol.st_size(E));
                self.add(&subject, "value", symbol.st_value(E));
            }
            self.ordered("symbols", name);
        }
        Ok(())
    }

    fn sections(&mut self, file: &File<'_>) -> object::Result<()> {
        let table = file.elf_section_table();
        for (index, header) in table.enumerate() {
            let name = section_name(file, index.0);
            let subject = format!("section {name}");
            let kind = header.sh_type(E).0;
            self.add(&subject, "type", format!("{kind:#x}"));
            self.add(&subject, "flags", format!("{:#x}", header.sh_flags(E).0));
            self.add(&subject, "align", header.sh_addralign(E));
            self.add(&subject, "entry size", header.sh_entsize(E));
            self.add(&subject, "link", section_name(file, header.sh_link(E) as usize));
            let info = header.sh_info(E);
            let info = if name.starts_with(".text") {
                name_of(file, SymbolIndex((info & 0xff_ffff) as usize))
            } else if name == ".symtab" {
                String::new()
            } else {
                section_name(file, info as usize)
            };
            self.add(&subject, "info", info);
            self.ordered("sections", name.clone());
            let data = header.data(E, file.data())?;
            let of_code = [".text", ".debug_", ".nv.capmerc", ".nv.merc", ".note.nv.tkinfo", ".nv_debug"];
            if matches!(kind, SHT_SYMTAB | SHT_STRTAB) || of_code.iter().any(|of| name.starts_with(of)) {
                continue;
            }
            match kind {
                SHT_INFO => self.records(file, &name, data),
                SHT_CALLGRAPH => self.pairs(file, &name, data),
                SHT_REL | SHT_RELA => self.relocations(file, &name, header)?,
                _ => {
                    self.add(&subject, "size", header.sh_size(E));
                    let hex: String = data.iter().take(512).map(|byte| format!("{byte:02x}")).collect();
                    self.add(&subject, "content", hex);
                }
            }
        }
        Ok(())
    }

    /// Attributes with their values, except values that depend only on the code.
    fn records(&mut self, file: &File<'_>, name: &str, data: &[u8]) {
        let subject = format!("info {name}");
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        let mut rest = data;
        while let [format, attribute, low, high, tail @ ..] = rest {
            let size = if *format == 4 { usize::from(u16::from_le_bytes([*low, *high])) } else { 0 };
            let Some(value) = tail.get(..size) else { return };
            rest = &tail[size..];
            let words: Vec<u32> =
                value.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
            let called = attribute_name(*attribute);
            let key = match OF_SYMBOLS.contains(attribute) {
                true => format!("{called} {}", words.first().map_or(String::new(), |&s| symbol(file, s))),
                false => called.clone(),
            };
            let count = counts.entry(key.clone()).or_default();
            let key = if *count == 0 { key.clone() } else { format!("{key} {count}") };
            *counts.entry(called.clone()).or_default() += usize::from(OF_SYMBOLS.contains(attribute));
            *counts.entry(key.split_once(' ').map_or(key.clone(), |(key, _)| key.to_owned())).or_default() +=
                1;
            let text = match *format {
                1 => String::new(),
                2 => low.to_string(),
                3 => u16::from_le_bytes([*low, *high]).to_string(),
                _ if OF_SYMBOLS.contains(attribute) => format!("{:x?}", &words[1..]),
                _ if *attribute == EXTERNS => {
                    words.iter().map(|&word| symbol(file, word)).collect::<Vec<_>>().join(" ")
                }
                _ => format!("{words:x?}"),
            };
            let of_code = OF_CODE.contains(attribute);
            let key = if OF_SYMBOLS.contains(attribute) { called.clone() } else { key };
            self.add(&subject, &key, if of_code { String::new() } else { format!("{format}:{text}") });
            self.ordered(&subject, called);
        }
    }

    fn pairs(&mut self, file: &File<'_>, name: &str, data: &[u8]) {
        let words: Vec<u32> = data.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
        let pairs = words.as_chunks::<2>().0.iter();
        let text = pairs.map(|[from, to]| format!("{}>{}", symbol(file, *from), symbol(file, *to)));
        self.add(&format!("section {name}"), "content", text.collect::<Vec<_>>().join(" "));
    }

    fn relocations(
        &mut self,
        file: &File<'_>,
        name: &str,
        header: &elf::SectionHeader64<Endianness>,
    ) -> object::Result<()> {
        let data = header.data(E, file.data())?;
        let subject = format!("relocations {name}");
        let mut add = |at: u64, kind: u32, of: usize, addend: i64| {
            let of_code = name.contains("debug") || name.contains("merc");
            let value = format!("{kind} {} {addend}", name_of(file, SymbolIndex(of)));
            let at = format!("{at:#x} {value}");
            self.ordered(&subject, if of_code { String::new() } else { at });
        };
        if header.sh_type(E).0 == SHT_RELA {
            let (entries, _) =
                object::pod::slice_from_bytes::<elf::Rela64<Endianness>>(data, data.len() / 24)
                    .unwrap_or_default();
            for entry in entries {
                let symbol = entry.symbol(E, false).map_or(0, |symbol| symbol.0);
                add(entry.r_offset(E), entry.r_type(E, false).0, symbol, entry.r_addend(E));
            }
        } else {
            let (entries, _) = object::pod::slice_from_bytes::<elf::Rel64<Endianness>>(data, data.len() / 16)
                .unwrap_or_default();
            for entry in entries {
                let symbol = entry.symbol(E).map_or(0, |symbol| symbol.0);
                add(entry.r_offset(E), entry.r_type(E).0, symbol, 0);
            }
        }
        let list = self.orders.get(&subject).cloned().unwrap_or_default();
        self.add(&subject, "entries", list.join(", "));
        Ok(())
    }
}

const SHT_SYMTAB: u32 = 2;
const SHT_STRTAB: u32 = 3;
const SHT_RELA: u32 = 4;
const SHT_REL: u32 = 9;
const SHT_INFO: u32 = 0x7000_0000;
const SHT_CALLGRAPH: u32 = 0x7000_0001;
const EXTERNS: u8 = 0x0f;

/// Attributes whose first word is a symbol.
const OF_SYMBOLS: &[u8] = &[0x0a, 0x11, 0x12, 0x23, 0x2f];

/// Attributes whose values depend on the code.
const OF_CODE: &[u8] = &[0x11, 0x12, 0x1c, 0x28, 0x29, 0x2f, 0x31, 0x34, 0x46, 0x4b, 0x57];

/// The name that `cuobjdump -elf` prints, if the attribute is known.
fn attribute_name(attribute: u8) -> String {
    let name = match attribute {
        0x04 => "CTAIDZ_USED",
        0x05 => "MAX_THREADS",
        0x0a => "PARAM_CBANK",
        0x0f => "EXTERNS",
        0x10 => "REQNTID",
        0x11 => "FRAME_SIZE",
        0x12 => "MIN_STACK_SIZE",
        0x17 => "KPARAM_INFO",
        0x19 => "CBANK_PARAM_SIZE",
        0x1b => "MAXREG_COUNT",
        0x1c => "EXIT_INSTR_OFFSETS",
        0x1d => "S2RCTAID_INSTR_OFFSETS",
        0x1e => "CRS_STACK_SIZE",
        0x28 => "COOP_GROUP_INSTR_OFFSETS",
        0x29 => "COOP_GROUP_MASK_REGIDS",
        0x2f => "REGCOUNT",
        0x31 => "INT_WARP_WIDE_INSTR_OFFSETS",
        0x34 => "INDIRECT_BRANCH_TARGETS",
        0x36 => "SW_WAR",
        0x37 => "CUDA_API_VERSION",
        0x39 => "MBARRIER_INSTR_OFFSETS",
        0x4a => "VRC_CTA_INIT_COUNT",
        0x4c => "NUM_BARRIERS",
        0x50 => "SPARSE_MMA_MASK",
        0x5f => "MERCURY_ISA_VERSION",
        other => return format!("attribute {other:#04x}"),
    };
    name.to_owned()
}

fn symbol(file: &File<'_>, index: u32) -> String {
    if index >= 1 << 31 {
        index.wrapping_neg().to_string() + "-"
    } else {
        name_of(file, SymbolIndex(index as usize))
    }
}

/// The name of a symbol. ptxas omits the names of some section symbols.
fn name_of(file: &File<'_>, index: SymbolIndex) -> String {
    let table = file.elf_symbol_table();
    let Ok(symbol) = table.symbol(index) else { return format!("?{}", index.0) };
    let name = symbol.name(E, table.strings()).unwrap_or_default();
    let name = String::from_utf8_lossy(name).into_owned();
    if name.is_empty() { section_name(file, usize::from(symbol.st_shndx(E).0)) } else { name }
}

fn section_name(file: &File<'_>, index: usize) -> String {
    let table = file.elf_section_table();
    let Ok(header) = table.section(object::SectionIndex(index)) else { return String::new() };
    String::from_utf8_lossy(table.section_name(E, header).unwrap_or_default()).into_owned()
}
