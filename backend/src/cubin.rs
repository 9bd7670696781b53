//! Linking: compiled functions and the module's variables become a cubin.
//!
//! The sections, their order and their attributes are those of ptxas 13.0.88's executable cubins, so that the
//! driver, nvdisasm and cuobjdump read ours as they read its. Deliberately absent: the sections from which
//! newer hardware re-finalises the code (`.nv.capmerc.*`, `.nv.merc.*`), and relocatable output. See
//! `docs/cubin.md`.

mod elf;
mod info;
mod note;

use crate::input::{Env, Function, Init, Linkage, SrcId, Symbol as Name, Variable};
use crate::layout;
use crate::target::Target;
use crate::{CodegenError, CompiledFunction, Options};
use elf::{Binding, Body, Format, Image, Section, SectionId, Segment, Symbol, SymbolId, SymbolKind};
use info::{Attribute, Records};
use ptx_isa::Space;

// Section types and flags beyond the ELF standard's.
const SHT_PROGBITS: u32 = 1;
const SHT_RELA: u32 = 4;
const SHT_NOTE: u32 = 7;
const SHT_NOBITS: u32 = 8;
const SHT_REL: u32 = 9;
const SHT_CUDA_INFO: u32 = 0x7000_0000;
const SHT_CUDA_CALLGRAPH: u32 = 0x7000_0001;
const SHT_CUDA_RELOCINFO: u32 = 0x7000_000b;
const SHT_CUDA_COMPAT: u32 = 0x7000_0086;
const SHF_WRITE: u64 = 1;
const SHF_ALLOC: u64 = 2;
const SHF_EXEC: u64 = 4;
const SHF_INFO: u64 = 0x40;

/// `st_other` of an entry point.
const STO_CUDA_ENTRY: u8 = 0x10;
/// `st_other` of the reserved shared memory's alias.
const STO_CUDA_RESERVED_SHARED: u8 = 0xa0;

/// Relocations: a 64-bit address, and a 64-bit generic address.
const R_CUDA_64: u32 = 2;
const R_CUDA_G64: u32 = 4;

/// What `.nv.rel.action` holds: how the one relocation of its kind is applied.
const REL_ACTION: [u8; 16] = [0x73, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x11, 0x25, 0, 5, 0x36];

/// A function to link: its input for parameters and launch bounds, and its code.
#[derive(Clone, Copy, Debug)]
pub struct LinkFunction<'a> {
    pub input: &'a Function,
    pub code: &'a CompiledFunction,
}

/// Makes an executable cubin of a module's kernels. `arguments` is recorded as the tool's command line.
///
/// # Errors
/// `Unsupported` for constructs that need the relocatable format, `Limit` for a bank that overflows.
pub fn link(
    env: &Env,
    functions: &[LinkFunction<'_>],
    options: &Options,
    arguments: &str,
) -> Result<Vec<u8>, CodegenError> {
    let target = Target::of(options.sm)
        .ok_or_else(|| CodegenError::unsupported(SrcId(0), format!("code for {}", options.sm)))?;
    Linker::new(env, functions, options, target)?.run(arguments)
}

/// A relocation of a section under construction.
#[derive(Clone, Copy)]
struct Reloc {
    at: u64,
    symbol: Referent,
    kind: u32,
    addend: i64,
}

#[derive(Clone, Copy)]
enum Referent {
    Variable(u32),
    Kernel(usize),
}

/// The contents of a data section.
#[derive(Default)]
struct Data {
    bytes: Vec<u8>,
    relocs: Vec<Reloc>,
}

impl Data {
    /// Nothing to write is no section.
    fn if_any(self) -> Option<Data> {
        (!self.bytes.is_empty()).then_some(self)
    }
}

/// Sections that describe the file.
struct About {
    frame: SectionId,
    tool_note: SectionId,
    cuda_note: SectionId,
    module_info: SectionId,
    /// Parallel to the functions.
    kernel_info: Vec<SectionId>,
    callgraph: SectionId,
}

/// Sections that are loaded.
struct Loaded {
    constant4: Option<SectionId>,
    constant3: Option<SectionId>,
    /// Constant bank 0 of each function, and its code.
    parameters: Vec<SectionId>,
    text: Vec<SectionId>,
    init: Option<SectionId>,
    /// Index of the function, and its shared memory.
    shared: Vec<(usize, SectionId)>,
    reserved: Option<SectionId>,
    zeroed: Option<SectionId>,
}

/// Symbols that other sections refer to.
struct Names {
    /// Of each function's constant bank 0.
    parameters: Vec<SymbolId>,
    /// Parallel to the module's variables; 0 for those without a place in the file.
    variables: Vec<SymbolId>,
    kernels: Vec<SymbolId>,
}

/// A relocation section whose entries wait for the symbols.
struct PendingRelocs<'n> {
    section: SectionId,
    with_addends: bool,
    relocs: Vec<Reloc>,
    /// The name of the section that the entries apply to.
    of: &'n str,
}

struct Linker<'a> {
    env: &'a Env,
    functions: &'a [LinkFunction<'a>],
    options: &'a Options,
    target: &'static Target,
    image: Image,
    /// Section and offset of each variable that has one, parallel to `env.variables`.
    places: Vec<Option<(SectionId, u64)>>,
}

impl<'a> Linker<'a> {
    fn new(
        env: &'a Env,
        functions: &'a [LinkFunction<'a>],
        options: &'a Options,
        target: &'static Target,
    ) -> Result<Self, CodegenError> {
        if let Some(v) = env.variables.iter().find(|v| v.managed) {
            return Err(CodegenError::unsupported(SrcId(0), format!("managed variable '{}'", v.name)));
        }
        Ok(Linker {
            env,
            functions,
            options,
            target,
            image: Image::default(),
            places: vec![None; env.variables.len()],
        })
    }

    fn plain(name: impl Into<String>, kind: u32, flags: u64, align: u64, body: Vec<u8>) -> Section {
        Section {
            name: name.into(),
            kind,
            flags,
            link: 0,
            info: 0,
            align,
            entry_size: 0,
            body: Body::Bytes(body),
            segment: None,
        }
    }

    fn run(mut self, arguments: &str) -> Result<Vec<u8>, CodegenError> {
        let code_bytes: Vec<u64> = self.functions.iter().map(|f| f.code.code.len() as u64 * 16).collect();
        let (frames, frame_addresses) = note::debug_frame(&code_bytes);
        let frame_relocs: Vec<Reloc> = frame_addresses
            .iter()
            .enumerate()
            .map(|(i, &at)| Reloc { at, symbol: Referent::Kernel(i), kind: R_CUDA_64, addend: 0 })
            .collect();

        let about = self.about_sections(arguments, frames);
        let (slots, constants, globals) = (self.address_slots()?, self.constant_data()?, self.global_data()?);
        let mut pending = Vec::new();
        for (name, data) in [
            (".nv.constant4", &slots),
            (".nv.constant3", &constants),
            (".nv.global.init", &globals.initialised),
        ] {
            pending.extend(self.relocation_sections(name, data.as_ref().map_or(&[], |d| &d.relocs)));
        }
        pending.extend(self.relocation_sections(".debug_frame", &frame_relocs));
        let loaded = self.loaded_sections(slots, constants, globals);
        let names = self.name_all(&about, &loaded, &code_bytes);
        self.describe_functions(&about, &loaded, &names);
        self.fill_relocations(pending, &about, &loaded, &names);

        let sm = self.options.sm;
        let low = if sm.number >= 100 { 2 } else { 4 };
        let format = Format {
            e_flags: 0x0600_0000 | u32::from(sm.number) << 8 | low,
            plain_header_segment: self.target.rela,
        };
        self.image
            .write(format)
            .map_err(|e| CodegenError::internal(SrcId(0), "cubin", format!("writing the object: {e}")))
    }

    /// Sections that describe the file and are not loaded.
    fn about_sections(&mut self, arguments: &str, frames: Vec<u8>) -> About {
        let frame = self.image.add_section(Self::plain(".debug_frame", SHT_PROGBITS, 0, 1, frames));
        let tool_note = Self::plain(".note.nv.tkinfo", SHT_NOTE, 0x200_0000, 4, note::tool(arguments));
        let tool_note = self.image.add_section(tool_note);
        let cuda_note = note::cuda(self.env.target);
        let mut cuda_note = Self::plain(".note.nv.cuinfo", SHT_NOTE, 0x100_0000, 4, cuda_note);
        cuda_note.link = tool_note.0;
        let cuda_note = self.image.add_section(cuda_note);
        let module_info = self.linked(Self::plain(".nv.info", SHT_CUDA_INFO, 0, 4, Vec::new()));
        if self.target.rela {
            let compat = Self::plain(".nv.compat", SHT_CUDA_COMPAT, 0, 4, info::compat(self.options.sm));
            let compat = self.image.add_section(compat);
            let note = self.image.section_mut(cuda_note);
            note.flags |= SHF_INFO;
            note.info = compat.0;
        }
        let mut kernel_info = Vec::new();
        for f in self.functions {
            let name = format!(".nv.info.{}", f.code.name);
            kernel_info.push(self.linked(Self::plain(name, SHT_CUDA_INFO, SHF_INFO, 4, Vec::new())));
        }
        // No kernel calls another function: only the four pairs that stand in every file.
        let pairs = (1..=4).flat_map(|i: u32| [0, i.wrapping_neg()]).flat_map(u32::to_le_bytes).collect();
        let mut callgraph = Self::plain(".nv.callgraph", SHT_CUDA_CALLGRAPH, 0, 4, pairs);
        callgraph.entry_size = 8;
        let callgraph = self.linked(callgraph);
        if !self.target.rela {
            let mut action = Self::plain(".nv.rel.action", SHT_CUDA_RELOCINFO, 0, 8, REL_ACTION.to_vec());
            action.entry_size = 8;
            self.image.add_section(action);
        }
        About { frame, tool_note, cuda_note, module_info, kernel_info, callgraph }
    }

    /// Adds a section that refers to the symbol table.
    fn linked(&mut self, mut section: Section) -> SectionId {
        section.link = Image::SYMTAB;
        self.image.add_section(section)
    }

    /// Code and data, in the file order of the target.
    fn loaded_sections(&mut self, slots: Option<Data>, constants: Option<Data>, globals: Globals) -> Loaded {
        let rela = self.target.rela;
        let constant_segment = if rela { Segment::Constants } else { Segment::Code };
        let mut constant = |name, align, data: Option<Data>| {
            data.map(|d| self.constant_section(name, align, d.bytes, constant_segment))
        };
        let constant4 = constant(".nv.constant4", 8, slots);
        let constant3 = constant(".nv.constant3", 4, constants);
        let mut parameters = Vec::new();
        if !rela {
            parameters = self.parameter_sections(Segment::Code);
        }
        let text: Vec<SectionId> = self.functions.iter().map(|f| self.text_section(f)).collect();
        let init = globals.initialised.map(|Data { bytes, .. }| {
            let mut section = Self::plain(".nv.global.init", SHT_PROGBITS, SHF_WRITE | SHF_ALLOC, 8, bytes);
            section.segment = Some(Segment::Data);
            self.image.add_section(section)
        });
        let shared: Vec<(usize, SectionId)> =
            (0..self.functions.len()).filter_map(|i| Some((i, self.shared_section(i, text[i])?))).collect();
        let reserved = (rela && !shared.is_empty()).then(|| {
            let size = self.reserved_shared_bytes();
            self.zero_section(".nv.shared.reserved.0".into(), SHF_WRITE | SHF_ALLOC, 1, size)
        });
        let zeroed = (globals.zeroed_bytes > 0).then(|| {
            let (align, bytes) = (globals.zeroed_align, globals.zeroed_bytes);
            self.zero_section(".nv.global".into(), SHF_WRITE | SHF_ALLOC, align, bytes)
        });
        if rela {
            parameters = self.parameter_sections(Segment::Parameters);
        }
        Loaded { constant4, constant3, parameters, text, init, shared, reserved, zeroed }
    }

    /// Shared memory that the system keeps for itself in every block.
    fn reserved_shared_bytes(&self) -> u64 {
        if self.options.sm.number >= 100 { 0x40 } else { 0 }
    }

    /// Makes the symbol table: locals, then the others.
    fn name_all(&mut self, about: &About, loaded: &Loaded, code_bytes: &[u64]) -> Names {
        let mut symbols = Vec::new();
        let section_symbol = |section: SectionId, name: &str| Symbol {
            name: name.into(),
            section: Some(section),
            binding: Binding::Local,
            kind: SymbolKind::Section,
            other: 0,
            value: 0,
            size: 0,
        };
        symbols.push(section_symbol(about.tool_note, ".note.nv.tkinfo"));
        symbols.push(section_symbol(about.cuda_note, ".note.nv.cuinfo"));
        symbols.push(section_symbol(about.frame, ".debug_frame"));
        symbols.push(section_symbol(about.callgraph, ".nv.callgraph"));
        for (name, section) in [
            (".nv.constant4", loaded.constant4),
            (".nv.constant3", loaded.constant3),
            (".nv.global.init", loaded.init),
            (".nv.global", loaded.zeroed),
        ] {
            symbols.extend(section.map(|s| section_symbol(s, name)));
        }
        let mut parameters = Vec::new();
        for (i, f) in self.functions.iter().enumerate() {
            symbols.push(section_symbol(loaded.text[i], &format!(".text.{}", f.code.name)));
            parameters.push(Image::symbol_id(symbols.len()));
            symbols.push(section_symbol(loaded.parameters[i], &format!(".nv.constant0.{}", f.code.name)));
        }
        for &(i, section) in &loaded.shared {
            symbols.push(section_symbol(section, &format!(".nv.shared.{}", self.functions[i].code.name)));
        }
        self.resolve_places(loaded.init, loaded.zeroed, loaded.constant3);
        let variables = self.variable_symbols(&mut symbols);
        symbols.extend(loaded.reserved.into_iter().flat_map(|section| self.reserved_symbols(section)));
        let mut kernels = Vec::new();
        for (i, f) in self.functions.iter().enumerate() {
            kernels.push(Image::symbol_id(symbols.len()));
            symbols.push(Symbol {
                name: f.code.name.clone(),
                section: Some(loaded.text[i]),
                binding: if f.input.linkage == Linkage::Weak { Binding::Weak } else { Binding::Global },
                kind: SymbolKind::Function,
                other: STO_CUDA_ENTRY,
                value: 0,
                size: code_bytes[i],
            });
        }
        self.image.set_symbols(symbols);
        Names { parameters, variables, kernels }
    }

    /// The two names of the system's part of shared memory.
    fn reserved_symbols(&self, section: SectionId) -> [Symbol; 2] {
        let value = self.reserved_shared_bytes();
        let name = |name: &str, section, kind, other, size| Symbol {
            name: name.into(),
            section,
            binding: Binding::Weak,
            kind,
            other,
            value,
            size,
        };
        let alias = "__nv_reservedSMEM_offset_0_alias";
        [
            name(".nv.reservedSmem.offset0", None, SymbolKind::Object, 0, 4),
            name(alias, Some(section), SymbolKind::None, STO_CUDA_RESERVED_SHARED, 0),
        ]
    }

    /// Fills in what refers to the sections and symbols of functions by index.
    fn describe_functions(&mut self, about: &About, loaded: &Loaded, names: &Names) {
        for (i, f) in self.functions.iter().enumerate() {
            let (text, symbol) = (loaded.text[i], names.kernels[i].0);
            self.image.section_mut(loaded.parameters[i]).info = text.0;
            // Before sm_90 the register count stands in the top byte too.
            let registers = if self.target.rela { 0 } else { f.code.resources.registers };
            self.image.section_mut(text).info = registers << 24 | symbol;
            let records = self.kernel_records(f, names.parameters[i]);
            let info = self.image.section_mut(about.kernel_info[i]);
            info.info = text.0;
            info.body = Body::Bytes(records);
        }
        let records = self.module_records(&names.kernels);
        self.image.section_mut(about.module_info).body = Body::Bytes(records);
    }

    fn fill_relocations(
        &mut self,
        pending: Vec<PendingRelocs<'_>>,
        about: &About,
        loaded: &Loaded,
        names: &Names,
    ) {
        for PendingRelocs { section, with_addends, relocs, of } in pending {
            let mut bytes = Vec::new();
            for r in &relocs {
                let symbol = match r.symbol {
                    Referent::Variable(i) => names.variables[i as usize],
                    Referent::Kernel(i) => names.kernels[i],
                };
                bytes.extend(r.at.to_le_bytes());
                bytes.extend((u64::from(symbol.0) << 32 | u64::from(r.kind)).to_le_bytes());
                if with_addends {
                    bytes.extend(r.addend.to_le_bytes());
                }
            }
            let applies_to = match of {
                ".nv.constant4" => loaded.constant4,
                ".nv.constant3" => loaded.constant3,
                ".nv.global.init" => loaded.init,
                _ => Some(about.frame),
            };
            let section = self.image.section_mut(section);
            section.info = applies_to.map_or(0, |s| s.0);
            section.body = Body::Bytes(bytes);
        }
    }

    /// Placeholders for the relocations of a section: with and without addends apart where the target wants it.
    fn relocation_sections<'n>(&mut self, name: &'n str, relocs: &[Reloc]) -> Vec<PendingRelocs<'n>> {
        let mut out = Vec::new();
        for with_addends in [true, false] {
            let mine: Vec<Reloc> = relocs
                .iter()
                .filter(|r| (self.target.rela || r.addend != 0) == with_addends)
                .copied()
                .collect();
            if mine.is_empty() {
                continue;
            }
            let (prefix, kind, entry_size) =
                if with_addends { (".rela", SHT_RELA, 24) } else { (".rel", SHT_REL, 16) };
            let mut section = Self::plain(format!("{prefix}{name}"), kind, SHF_INFO, 8, Vec::new());
            // The size is known now, so that later sections get their place.
            section.body = Body::Bytes(vec![0; mine.len() * entry_size as usize]);
            section.link = Image::SYMTAB;
            section.entry_size = entry_size;
            let section = self.image.add_section(section);
            out.push(PendingRelocs { section, with_addends, relocs: mine, of: name });
        }
        out
    }

    fn constant_section(&mut self, name: &str, align: u64, bytes: Vec<u8>, segment: Segment) -> SectionId {
        let mut section = Self::plain(name, SHT_PROGBITS, SHF_ALLOC, align, bytes);
        section.segment = Some(segment);
        self.image.add_section(section)
    }

    fn zero_section(&mut self, name: String, flags: u64, align: u64, size: u64) -> SectionId {
        self.image.add_section(Section {
            name,
            kind: SHT_NOBITS,
            flags,
            link: 0,
            info: 0,
            align,
            entry_size: 0,
            body: Body::Zeros(size),
            segment: Some(Segment::Data),
        })
    }

    fn parameter_sections(&mut self, segment: Segment) -> Vec<SectionId> {
        self.functions
            .iter()
            .map(|f| {
                let bytes = vec![0; f.code.resources.const0_bytes as usize];
                let name = format!(".nv.constant0.{}", f.code.name);
                let mut section = Self::plain(name, SHT_PROGBITS, SHF_ALLOC | SHF_INFO, 4, bytes);
                section.segment = Some(segment);
                self.image.add_section(section)
            })
            .collect()
    }

    fn text_section(&mut self, f: &LinkFunction<'_>) -> SectionId {
        let bytes = f.code.code.iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut section =
            Self::plain(format!(".text.{}", f.code.name), SHT_PROGBITS, SHF_ALLOC | SHF_EXEC, 128, bytes);
        section.link = Image::SYMTAB;
        section.segment = Some(Segment::Code);
        self.image.add_section(section)
    }

    /// `.nv.shared.KERNEL`, where the kernel has static shared memory or the module dynamic.
    fn shared_section(&mut self, i: usize, text: SectionId) -> Option<SectionId> {
        let f = self.functions[i];
        let dynamic =
            self.env.variables.iter().chain(&f.input.locals).any(|v| v.space == Space::Shared && v.size == 0);
        let bytes = u64::from(f.code.resources.shared_bytes);
        if bytes == 0 && !dynamic {
            return None;
        }
        let align = self
            .env
            .variables
            .iter()
            .chain(&f.input.locals)
            .filter(|v| v.space == Space::Shared)
            .map(|v| u64::from(v.align))
            .max()
            .unwrap_or(1)
            .max(16);
        let size = bytes + u64::from(self.target.shared_base);
        let flags = SHF_WRITE | SHF_ALLOC | SHF_INFO;
        let id = self.zero_section(format!(".nv.shared.{}", f.code.name), flags, align, size);
        self.image.section_mut(id).info = text.0;
        Some(id)
    }

    /// Bank 4: the addresses that any kernel reads.
    fn address_slots(&self) -> Result<Option<Data>, CodegenError> {
        let mut symbols: Vec<Name> =
            self.functions.iter().flat_map(|f| f.code.attributes.symbols.iter().copied()).collect();
        symbols.sort_unstable();
        symbols.dedup();
        let mut relocs = Vec::new();
        for symbol in symbols {
            let Name::Global(i) = symbol else {
                return Err(CodegenError::unsupported(SrcId(0), "the address of a function"));
            };
            let at = layout::address_slot(self.env, symbol).ok_or_else(|| CodegenError::Limit {
                at: SrcId(0),
                what: "more global variables than constant bank 4 has room for".into(),
            })?;
            relocs.push(Reloc {
                at: u64::from(at),
                symbol: Referent::Variable(i),
                kind: R_CUDA_64,
                addend: 0,
            });
        }
        let Some(last) = relocs.iter().map(|r| r.at).max() else { return Ok(None) };
        relocs.reverse();
        Ok(Some(Data { bytes: vec![0; last as usize + 8], relocs }))
    }

    fn constant_data(&mut self) -> Result<Option<Data>, CodegenError> {
        let mut data = Data::default();
        for (at, i) in layout::const_layout(self.env) {
            let v = &self.env.variables[i as usize];
            if at + v.size > layout::BANK_BYTES {
                return Err(CodegenError::Limit {
                    at: SrcId(0),
                    what: format!("constant variables exceed {} bytes at '{}'", layout::BANK_BYTES, v.name),
                });
            }
            self.places[i as usize] = Some((SectionId(0), at));
            append_variable(&mut data, at, v)?;
        }
        Ok(data.if_any())
    }

    fn global_data(&mut self) -> Result<Globals, CodegenError> {
        let mut data = Data::default();
        let (mut zeroed_bytes, mut zeroed_align) = (0u64, 1u64);
        for (i, v) in self.env.variables.iter().enumerate() {
            if v.space != Space::Global || v.linkage == Linkage::Extern {
                continue;
            }
            let align = u64::from(v.align.max(1));
            let at = if v.init.is_some() {
                let at = (data.bytes.len() as u64).next_multiple_of(align);
                append_variable(&mut data, at, v)?;
                at
            } else {
                let at = zeroed_bytes.next_multiple_of(align);
                zeroed_bytes = at + v.size;
                zeroed_align = zeroed_align.max(align);
                at
            };
            self.places[i] = Some((SectionId(0), at));
        }
        Ok(Globals { initialised: data.if_any(), zeroed_bytes, zeroed_align })
    }

    /// Fills in the sections of `places`, which are known only now.
    fn resolve_places(
        &mut self,
        init: Option<SectionId>,
        zeroed: Option<SectionId>,
        constant3: Option<SectionId>,
    ) {
        for (v, place) in self.env.variables.iter().zip(&mut self.places) {
            let section = match v.space {
                Space::Const => constant3,
                _ if v.init.is_some() => init,
                _ => zeroed,
            };
            *place = match (*place, section) {
                (Some((_, at)), Some(section)) => Some((section, at)),
                _ => None,
            };
        }
    }

    /// Adds the symbols of module variables, locals first; index of each, 0 for those without one.
    fn variable_symbols(&self, symbols: &mut Vec<Symbol>) -> Vec<SymbolId> {
        let mut ids = vec![SymbolId(0); self.env.variables.len()];
        for local in [true, false] {
            for (i, v) in self.env.variables.iter().enumerate() {
                let Some((section, value)) = self.places[i] else { continue };
                let binding = match v.linkage {
                    Linkage::Internal => Binding::Local,
                    Linkage::Weak | Linkage::Common => Binding::Weak,
                    Linkage::Visible | Linkage::Extern => Binding::Global,
                };
                if (binding == Binding::Local) != local {
                    continue;
                }
                ids[i] = Image::symbol_id(symbols.len());
                symbols.push(Symbol {
                    name: v.name.clone(),
                    section: Some(section),
                    binding,
                    kind: SymbolKind::Object,
                    other: 0,
                    value,
                    size: v.size,
                });
            }
        }
        ids
    }

    fn module_records(&self, kernels: &[SymbolId]) -> Vec<u8> {
        let mut records = Records::default();
        for (f, symbol) in self.functions.iter().zip(kernels) {
            let resources = &f.code.resources;
            records.words(Attribute::Regcount, &[symbol.0, resources.registers]);
            records.words(Attribute::FrameSize, &[symbol.0, resources.stack_bytes]);
        }
        for (f, symbol) in self.functions.iter().zip(kernels) {
            records.words(Attribute::MinStackSize, &[symbol.0, f.code.resources.stack_bytes]);
        }
        records.into_bytes()
    }

    fn kernel_records(&self, f: &LinkFunction<'_>, parameter_bank: SymbolId) -> Vec<u8> {
        let sm = self.options.sm.number;
        let (attributes, launch) = (&f.code.attributes, &f.input.launch);
        let mut r = Records::default();
        r.words(Attribute::CudaApiVersion, &[u32::from(info::API_VERSION)]);
        let parameter_bytes = f.code.resources.const0_bytes - u32::from(self.target.param_base);
        let parameters = |r: &mut Records| {
            let place = u32::from(self.target.param_base) | parameter_bytes << 16;
            r.words(Attribute::ParamCbank, &[parameter_bank.0, place]);
            r.half(Attribute::CbankParamSize, parameter_bytes as u16);
        };
        if (80..=88).contains(&sm) {
            r.flag(Attribute::Workaround35);
        }
        if !self.target.rela {
            parameters(&mut r);
        }
        for (ordinal, p) in f.input.params.iter().enumerate().rev() {
            let place = ordinal as u32 | p.offset << 16;
            r.words(Attribute::KparamInfo, &[0, place, p.size << 18 | 0x1f << 12]);
        }
        if self.target.rela {
            r.half(Attribute::SparseMmaMask, 0);
        }
        r.half(Attribute::MaxregCount, attributes.max_registers.map_or(0xff, |m| m.min(0xff) as u16));
        if f.code.resources.barriers > 0 {
            r.byte(Attribute::NumBarriers, f.code.resources.barriers as u8);
        }
        r.half(Attribute::MercuryIsaVersion, if self.target.rela { 0x0101 } else { 0 });
        if !attributes.coop_groups.is_empty() {
            let masks: Vec<u32> = attributes.coop_groups.iter().map(|g| g.1).collect();
            let offsets: Vec<u32> = attributes.coop_groups.iter().map(|g| g.0).collect();
            r.words(Attribute::CoopGroupMaskRegids, &masks);
            r.words(Attribute::CoopGroupInstrOffsets, &offsets);
        }
        if sm >= 100 {
            r.byte(Attribute::VrcCtaInitCount, 0);
        }
        r.words(Attribute::ExitInstrOffsets, &attributes.exits);
        if attributes.reads_ctaid_z && !self.target.rela {
            r.flag(Attribute::CtaidzUsed);
        }
        if let Some(size) = launch.reqntid {
            r.words(Attribute::ReqNtid, &size);
        }
        if let Some(size) = launch.maxntid.or(launch.reqntid) {
            r.words(Attribute::MaxThreads, &size);
        }
        if let Some(size) = launch.reqnctapercluster {
            r.words(Attribute::CtaPerCluster, &size);
        }
        if launch.explicitcluster {
            r.flag(Attribute::ExplicitCluster);
        }
        if attributes.uses_convergence_barriers {
            r.words(Attribute::CrsStackSize, &[0]);
        }
        if self.target.rela {
            parameters(&mut r);
        }
        let workaround = match sm {
            75 => Some(1),
            87 => Some(2),
            90..=110 => Some(8),
            120.. => Some(0),
            _ => None,
        };
        if let Some(value) = workaround {
            r.words(Attribute::SwWar, &[value]);
        }
        r.into_bytes()
    }
}

struct Globals {
    initialised: Option<Data>,
    zeroed_bytes: u64,
    zeroed_align: u64,
}

/// Appends a variable's bytes at offset `at` of a section, and its relocations.
fn append_variable(data: &mut Data, at: u64, v: &Variable) -> Result<(), CodegenError> {
    data.bytes.resize(at as usize, 0);
    let empty = Init::default();
    let init = v.init.as_ref().unwrap_or(&empty);
    data.bytes.extend(&init.bytes);
    data.bytes.resize((at + v.size) as usize, 0);
    for reloc in &init.relocs {
        let Name::Global(symbol) = reloc.symbol else {
            return Err(CodegenError::unsupported(
                SrcId(0),
                format!("the address of a function in the initialiser of '{}'", v.name),
            ));
        };
        if reloc.size != 8 {
            return Err(CodegenError::unsupported(
                SrcId(0),
                format!("a {}-byte address in the initialiser of '{}'", reloc.size, v.name),
            ));
        }
        data.relocs.push(Reloc {
            at: at + reloc.at,
            symbol: Referent::Variable(symbol),
            kind: R_CUDA_G64,
            addend: reloc.addend,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Attributes, Resources, input::Param};
    use object::read::elf::{ElfFile64, FileHeader as _, SectionHeader as _};
    use object::{Endianness, Object as _, ObjectSection as _, ObjectSymbol as _};
    use ptx_isa::{PtxVersion, ScalarType, Sm};

    fn variable(name: &str, space: Space, init: Option<Init>) -> Variable {
        Variable {
            name: name.into(),
            space,
            linkage: Linkage::Internal,
            ty: ScalarType::U64,
            size: 8,
            align: 8,
            init,
            managed: false,
        }
    }

    /// A module with one kernel that exits, a constant, a zeroed and an initialised global.
    fn sample(sm: u16) -> Vec<u8> {
        let reference =
            crate::input::InitReloc { at: 0, symbol: Name::Global(0), addend: 4, generic: true, size: 8 };
        let env = Env {
            version: PtxVersion::new(8, 0),
            target: Sm::new(75),
            address_size: 64,
            variables: vec![
                variable("zeroed", Space::Global, None),
                variable("pointer", Space::Global, Some(Init { bytes: vec![0; 8], relocs: vec![reference] })),
                variable("table", Space::Const, Some(Init { bytes: vec![1, 2], relocs: vec![] })),
            ],
            functions: vec![],
        };
        let input = Function {
            name: "kernel".into(),
            entry: true,
            linkage: Linkage::Visible,
            params: vec![Param {
                name: "p".into(),
                ty: ScalarType::U64,
                size: 8,
                align: 8,
                offset: 0,
                reg: None,
            }],
            returns: vec![],
            regs: vec![],
            locals: vec![],
            labels: 0,
            targets: vec![],
            body: vec![],
            launch: Default::default(),
        };
        let options = Options { sm: Sm::new(sm), opt_level: 3, max_registers: None };
        let base = u32::from(Target::of(options.sm).unwrap().param_base);
        let exit = 0x000f_ea00_0380_0000_0000_0000_0000_794d_u128;
        let code = CompiledFunction {
            name: "kernel".into(),
            entry: true,
            code: vec![exit; 8].into(),
            lines: vec![None; 8].into(),
            live_registers: vec![0; 8].into(),
            resources: Resources { registers: 10, const0_bytes: base + 8, ..Default::default() },
            attributes: Attributes { exits: vec![0], symbols: vec![Name::Global(0)], ..Default::default() },
        };
        link(&env, &[LinkFunction { input: &input, code: &code }], &options, "-arch test").unwrap()
    }

    #[test]
    fn reads_back() {
        for &sm in &Sm::COMPILED {
            let bytes = sample(sm);
            let file = ElfFile64::<Endianness>::parse(&*bytes).unwrap();
            let header = file.elf_header();
            assert_eq!(header.e_flags(Endianness::Little).0 >> 8 & 0xff, u32::from(sm));
            let text = file.section_by_name(".text.kernel").unwrap();
            assert_eq!(text.size(), 128);
            assert_eq!(text.align(), 128);
            let info = text.elf_section_header().sh_info(Endianness::Little);
            let kernel = file.symbols().find(|s| s.name() == Ok("kernel")).unwrap();
            assert_eq!(info & 0xff_ffff, kernel.index().0 as u32);
            assert_eq!(info >> 24, if sm < 90 { 10 } else { 0 }, "sm_{sm}");
            let zeroed = file.symbols().find(|s| s.name() == Ok("zeroed")).unwrap();
            assert_eq!(zeroed.size(), 8);
            assert_eq!(
                file.section_by_name(".nv.constant3").unwrap().data().unwrap(),
                [1, 2, 0, 0, 0, 0, 0, 0]
            );
            assert_eq!(file.section_by_name(".rela.debug_frame").is_some(), sm >= 90);
            // A non-zero addend needs a relocation with addends on every target.
            let addends = file.section_by_name(".rela.nv.global.init").unwrap();
            assert_eq!(addends.data().unwrap()[16..24], 4u64.to_le_bytes());
        }
    }

    #[test]
    fn same_input_same_bytes() {
        assert_eq!(sample(90), sample(90));
    }
}
