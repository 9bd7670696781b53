//! The sections of the file, in the order of ptxas.

use super::data::{Data, Globals};
use super::elf::{Body, Image, Section, SectionId, Segment};
use super::numbers::{
    RESERVED_SHARED, SHF_ALLOC, SHF_EXEC, SHF_INFO, SHF_WRITE, SHT_CUDA_CALLGRAPH, SHT_CUDA_COMPAT,
    SHT_CUDA_INFO, SHT_CUDA_RELOCINFO, SHT_NOBITS, SHT_NOTE, SHT_PROGBITS,
};
use super::{LinkFunction, Linker, info, lines, note};
use crate::input::Linkage;
use crate::layout::Slot;
use crate::ori::ir::TensorUse;
use crate::target::ReservedVariable;
use ptx_isa::Space;

/// The contents of `.nv.rel.action`: how to apply the only relocation of its type.
const REL_ACTION: [u8; 16] = [0x73, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x11, 0x25, 0, 5, 0x36];

/// Sections that describe the file.
pub(super) struct About {
    pub(super) frame: SectionId,
    /// Line tables and debug data, by name.
    pub(super) lines: Vec<(String, SectionId)>,
    pub(super) tool_note: SectionId,
    pub(super) cuda_note: SectionId,
    pub(super) module_info: SectionId,
    /// In the order of the functions.
    pub(super) kernel_info: Vec<SectionId>,
    pub(super) callgraph: SectionId,
    /// `.nv.rel.action`, before sm_90.
    pub(super) action: Option<SectionId>,
}

/// The sections of line tables.
pub(super) struct Tables {
    pub(super) source: lines::Section,
    pub(super) machine: lines::Section,
    pub(super) strings: Vec<u8>,
    pub(super) text: Vec<u8>,
}

/// Sections that are loaded.
pub(super) struct Loaded {
    pub(super) constant4: Option<SectionId>,
    pub(super) constant3: Option<SectionId>,
    /// Constant bank 0 of each function that is a kernel.
    pub(super) parameters: Vec<Option<SectionId>>,
    /// Index of the kernel, and its constant bank 2.
    pub(super) function_banks: Vec<(usize, SectionId)>,
    pub(super) text: Vec<SectionId>,
    pub(super) init: Option<SectionId>,
    /// Index of the function, and its shared memory.
    pub(super) shared: Vec<(usize, SectionId)>,
    /// The section of the shared variables that several kernels name, for debuggers.
    pub(super) debug_shared: Option<SectionId>,
    pub(super) reserved: Option<SectionId>,
    pub(super) zeroed: Option<SectionId>,
}

impl Linker<'_> {
    /// Sections that describe the file and are not loaded.
    pub(super) fn about_sections(
        &mut self,
        arguments: &str,
        frames: Vec<u8>,
        tables: Option<Tables>,
        debug: Vec<(&str, Vec<u8>)>,
    ) -> About {
        let frame = self.image.add_section(Self::plain(".debug_frame", SHT_PROGBITS, 0, 1, frames));
        let mut lines = Vec::new();
        if let Some(tables) = tables {
            for (name, bytes, always) in [
                (".debug_line", tables.source.bytes, true),
                (".debug_str", tables.strings, false),
                (".nv_debug_line_sass", tables.machine.bytes, true),
                (".nv_debug_ptx_txt", tables.text, true),
            ] {
                if always || !bytes.is_empty() {
                    let id = self.image.add_section(Self::plain(name, SHT_PROGBITS, 0, 1, bytes));
                    lines.push((name.to_owned(), id));
                }
            }
        }
        for (name, bytes) in debug {
            let id = self.image.add_section(Self::plain(name, SHT_PROGBITS, 0, 1, bytes));
            lines.push((name.to_owned(), id));
        }
        let tool_note = Self::plain(".note.nv.tkinfo", SHT_NOTE, 0x200_0000, 4, note::tool(arguments));
        let tool_note = self.image.add_section(tool_note);
        let cuda_note = note::cuda(self.env.target);
        let mut cuda_note = Self::plain(".note.nv.cuinfo", SHT_NOTE, 0x100_0000, 4, cuda_note);
        cuda_note.link = tool_note.0;
        let cuda_note = self.image.add_section(cuda_note);
        let module_info = self.linked(Self::plain(".nv.info", SHT_CUDA_INFO, 0, 4, Vec::new()));
        if self.target.cubin.rela {
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
        // The size is known now, so later sections can be placed.
        let calls = |f: &LinkFunction<'_>| {
            let functions = |slot: &&Slot| !matches!(slot, Slot::Global(_));
            f.code.attributes.symbols.iter().filter(functions).count()
        };
        let taken = self.called_externs().into_iter();
        let taken = taken.filter(|slot| matches!(slot, Slot::Function(i) if self.kernel(*i).is_some()));
        let between = self.calls_between_sections();
        let pairs = 4 + self.functions.iter().map(calls).sum::<usize>() + taken.count() + between.len();
        let mut callgraph = Self::plain(".nv.callgraph", SHT_CUDA_CALLGRAPH, 0, 4, vec![0; 8 * pairs]);
        callgraph.entry_size = 8;
        let callgraph = self.linked(callgraph);
        let action = (!self.target.cubin.rela).then(|| {
            let mut action = Self::plain(".nv.rel.action", SHT_CUDA_RELOCINFO, 0, 8, REL_ACTION.to_vec());
            action.entry_size = 8;
            self.image.add_section(action)
        });
        About { frame, lines, tool_note, cuda_note, module_info, kernel_info, callgraph, action }
    }

    /// Whether bank 3 precedes bank 4: a `.const` variable precedes all `.global` ones, where variables of other modules and
    /// visible ones count as the first, and bank 4 has no addresses of functions.
    fn constants_first(&self) -> bool {
        let mut slots = self.functions.iter().flat_map(|f| f.code.attributes.symbols.iter());
        let first = |space| {
            let found = self.env.variables.iter().enumerate().filter(|(_, v)| v.space == space);
            found.map(|(i, v)| (v.linkage == Linkage::Internal, i)).min()
        };
        let constant = first(Space::Const);
        constant.is_some_and(|constant| first(Space::Global).is_none_or(|global| constant < global))
            && slots.all(|slot| matches!(slot, Slot::Global(_)))
    }

    /// Code and data, in the file order of the target.
    pub(super) fn loaded_sections(
        &mut self,
        slots: Option<Data>,
        constants: Option<Data>,
        globals: Globals,
    ) -> Loaded {
        let rela = self.target.cubin.rela;
        let constant_segment = if rela { Segment::Constants } else { Segment::Code };
        let (constant_align, constants_first) = (self.constant_align(), self.constants_first());
        let mut constant = |name, align, data: Option<Data>| {
            data.map(|d| self.constant_section(name, align, d.bytes, constant_segment))
        };
        let (constant4, constant3);
        if constants_first {
            constant3 = constant(".nv.constant3", constant_align, constants);
            constant4 = constant(".nv.constant4", 8, slots);
        } else {
            constant4 = constant(".nv.constant4", 8, slots);
            constant3 = constant(".nv.constant3", constant_align, constants);
        }
        let mut function_banks = Vec::new();
        for (i, kernel) in self.kernels.iter().enumerate() {
            let bytes = kernel.joined.constants.clone();
            if bytes.is_empty() {
                continue;
            }
            let name = format!(".nv.constant2.{}", kernel.joined.kernel.name);
            let mut section = Self::plain(name, SHT_PROGBITS, SHF_ALLOC | SHF_INFO, 4, bytes);
            section.segment = Some(constant_segment);
            function_banks.push((i, self.image.add_section(section)));
        }
        let mut parameters = Vec::new();
        if !rela {
            parameters = self.parameter_sections(Segment::Code);
        }
        let text: Vec<SectionId> = self.functions.iter().map(|f| self.text_section(f)).collect();
        let init = globals.initialised.map(|Data { bytes, .. }| {
            let mut section = Self::plain(
                ".nv.global.init",
                SHT_PROGBITS,
                SHF_WRITE | SHF_ALLOC,
                globals.init_align,
                bytes,
            );
            section.segment = Some(Segment::Data);
            self.image.add_section(section)
        });
        // The first kernel's section precedes the sections that belong to all kernels.
        let mut shared = Vec::new();
        if let Some(&text) = text.first() {
            shared.extend(self.shared_section(0, text).map(|section| (0, section)));
        }
        let reserved = rela.then(|| {
            let variables: u64 = self.reserved_variables().map(|variable| variable.bytes).sum();
            let size = self.reserved_shared_bytes() + variables;
            self.zero_section(RESERVED_SHARED.into(), SHF_WRITE | SHF_ALLOC, 1, size)
        });
        let zeroed = (globals.zeroed_bytes > 0).then(|| {
            let (align, bytes) = (globals.zeroed_align, globals.zeroed_bytes);
            self.zero_section(".nv.global".into(), SHF_WRITE | SHF_ALLOC, align, bytes)
        });
        let debug_shared = (!self.shared_places.is_empty()).then(|| {
            let common = self.shared_places.iter().filter(|place| place.is_common);
            let end = common.map(|place| place.end).max().unwrap_or(0);
            self.zero_section(".nv_debug.shared".into(), SHF_WRITE | SHF_ALLOC, 16, end)
        });
        for (i, &text) in text.iter().enumerate().skip(1) {
            shared.extend(self.shared_section(i, text).map(|section| (i, section)));
        }
        if rela {
            parameters = self.parameter_sections(Segment::Parameters);
        }
        Loaded {
            constant4,
            constant3,
            parameters,
            function_banks,
            text,
            init,
            shared,
            debug_shared,
            reserved,
            zeroed,
        }
    }

    fn parameter_sections(&mut self, segment: Segment) -> Vec<Option<SectionId>> {
        self.functions
            .iter()
            .map(|f| {
                if !f.input.entry {
                    return None;
                }
                let bytes = vec![0; f.code.resources.const0_bytes as usize];
                let name = format!(".nv.constant0.{}", f.code.name);
                let mut section = Self::plain(name, SHT_PROGBITS, SHF_ALLOC | SHF_INFO, 4, bytes);
                section.segment = Some(segment);
                Some(self.image.add_section(section))
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

    /// `.nv.shared.KERNEL`, if the kernel has static shared memory or the module has dynamic shared memory.
    fn shared_section(&mut self, i: usize, text: SectionId) -> Option<SectionId> {
        let f = self.functions[i];
        let dynamic =
            self.env.variables.iter().chain(&f.input.locals).any(|v| v.space == Space::Shared && v.size == 0);
        let bytes = u64::from(f.code.resources.shared_bytes);
        if bytes == 0 && !dynamic || !f.input.entry {
            return None;
        }
        let variables = self.env.variables.iter().chain(&f.input.locals);
        let aligns = variables.filter(|v| v.space == Space::Shared).map(|v| u64::from(v.align));
        let align = aligns.max().unwrap_or(1).max(if dynamic { 16 } else { 1 });
        let size = bytes + u64::from(self.target.shared_base);
        let flags = SHF_WRITE | SHF_ALLOC | SHF_INFO;
        let id = self.zero_section(format!(".nv.shared.{}", f.code.name), flags, align, size);
        self.image.section_mut(id).info = text.0;
        Some(id)
    }

    /// The number of bytes of shared memory that the system reserves in every block.
    pub(super) fn reserved_shared_bytes(&self) -> u64 {
        self.target.cubin.reserved_shared
    }

    /// Whether code uses the words in which a block records its columns of tensor memory.
    pub(super) fn uses_tensor_words(&self) -> bool {
        let takes = |f: &LinkFunction<'_>| {
            let uses = f.code.attributes.tensor;
            [TensorUse::COLUMNS, TensorUse::COLUMNS_OF_PAIR, TensorUse::CHECKED].iter().any(|u| uses.has(*u))
        };
        self.functions.iter().any(takes)
    }

    /// The variables after the bytes that the system reserves, in the order of their addresses.
    pub(super) fn reserved_variables(&self) -> impl Iterator<Item = ReservedVariable> + use<> {
        let words = self.uses_tensor_words().then_some(ReservedVariable::TENSOR_WORDS);
        [self.target.cubin.reserved_variable, words].into_iter().flatten()
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

    /// Adds a section that refers to the symbol table.
    fn linked(&mut self, mut section: Section) -> SectionId {
        section.link = Image::SYMTAB;
        self.image.add_section(section)
    }

    pub(super) fn plain(
        name: impl Into<String>,
        kind: u32,
        flags: u64,
        align: u64,
        body: Vec<u8>,
    ) -> Section {
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
}
