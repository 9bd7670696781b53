//! Relocatable objects (`--compile-only`): each function is in its own section, with relocations that nvlink applies.
//!
//! Observed on ptxas 13.0.88: section types are NVIDIA's own. The space of a variable is in `st_other` of its symbol.
//! Shared variables have an alignment but no address. The call graph lists callers, callees and their prototypes, from
//! which nvlink computes registers and stack sizes. All our relocations have addends; ptxas omits zero addends before
//! sm_90.

use super::Sizes;
use super::data::{Data, Referent, Reloc};
use super::debug::{Debug, frame, saved};
use super::elf::{Binding, Body, Format, Image, Section, SectionId, Symbol, SymbolId, SymbolKind};
use super::handles::handle_symbol;
use super::info::{Attribute, Records, compat};
use super::lines::Lines;
use super::note::{Caller, Unwound};
use super::numbers::*;
use super::symbols::{Names, entry_size, other_of_function};
use super::unified::{self, UDT_ENTRY, UFT_ENTRY};
use super::{LinkFunction, Linker, note};
use crate::assemble::{CodeLink, LinkTo};
use crate::driver::DriverFunction;
use crate::input::{Function, Linkage, SrcId, Symbol as Name, Variable};
use crate::join::Program;
use crate::layout::{LITERAL_BYTES, Slot, variable};
use crate::ori::op::{Descriptors, Link};
use crate::target::{ReservedVariable, Target};
use crate::{CodegenError, Options};
use ptx_isa::Space;
use rustc_hash::FxHashMap;

/// Bytes of an instruction.
const WORD: u64 = 16;
/// The number that code adds to indices of target lists.
const TABLE_BIAS: i64 = 0x8000;

/// Writes an object with all functions of a module. `arguments` is recorded as the tool's command line; `lines` has
/// rows for each function.
///
/// # Errors
/// `Unsupported` for what objects of ours do not have yet.
pub fn object(
    program: &Program<'_>,
    functions: &[LinkFunction<'_>],
    options: &Options,
    arguments: &str,
    lines: Option<&Lines>,
    debug: Option<&Debug>,
) -> Result<(Vec<u8>, Sizes), CodegenError> {
    let target = Target::of(options.sm)
        .ok_or_else(|| CodegenError::unsupported(SrcId(0), format!("code for {}", options.sm)))?;
    if let Some(function) = functions.iter().find(|function| function.input.returns.len() > 1) {
        let what = format!(
            "'{}' has several results, which the calling convention of objects does not support",
            function.input.name
        );
        return Err(CodegenError::Limit { at: SrcId(0), what });
    }
    Linker::new(program, &[], functions, options, target).object(arguments, lines, debug)
}

/// The target of a relocation of code or data.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) enum Named {
    /// A function with code, by its index among those linked.
    Own(usize),
    /// A function without code, by its index in the module.
    Foreign(u32),
    /// Another name of a function with code, by its index in the module.
    Alias(u32),
    /// A driver function that no module declares.
    Driver(DriverFunction),
    Variable(u32),
    /// A variable in the body of a function.
    Local(usize, u32),
    /// A texture, a sampler or a surface that is a parameter of a kernel.
    Handle(usize, u32),
    /// The target lists of a function.
    Tables(usize),
    /// A literal of a function, by its index.
    Literal(usize, u32),
    /// The entry of a unified function with code in the table of such functions.
    Stub(usize),
    /// The size of an entry of a driver table.
    EntrySize(Descriptors),
    /// The size of the `.const` variables of all objects.
    ConstBytes,
    /// The words in which a block records its columns of tensor memory.
    TensorWords,
}

/// A relocation whose symbol has no number yet.
pub(super) struct Open {
    pub(super) at: u64,
    pub(super) kind: u32,
    pub(super) named: Named,
    pub(super) addend: i64,
    /// The alias by which the code names a function of this object. The symbol is that of the function, but the call
    /// graph contains the alias: nvlink deletes aliases that nothing reaches, and then rejects their pairs.
    pub(super) alias: Option<Named>,
}

impl Open {
    /// Whether the relocation takes the address of a function. The relocation of a return address also names the
    /// function, but has an addend.
    pub(super) fn takes_function(&self, target: &Target) -> bool {
        let is_function = matches!(self.named, Named::Own(_) | Named::Foreign(_));
        let is_address = [target.cubin.function_address.low, KERNEL_ADDRESS.low].contains(&self.kind);
        is_address && is_function && self.addend == 0
    }
}

impl Linker<'_> {
    fn object(
        mut self,
        arguments: &str,
        lines: Option<&Lines>,
        debug: Option<&Debug>,
    ) -> Result<(Vec<u8>, Sizes), CodegenError> {
        let (globals, constants) = (self.global_data()?, self.constant_data()?);
        let bytes = |data: &Option<Data>| data.as_ref().map_or(0, |data| data.bytes.len() as u64);
        let module_bytes = Sizes {
            global: bytes(&globals.initialised) + globals.zeroed_bytes,
            constant_3: bytes(&constants),
            constant_4: 0,
        };
        let named: Vec<Named> = (0..self.env.functions.len() as u32).map(|i| self.named(i)).collect();
        let by_index = |i: u32| named.get(i as usize).copied();
        let mut code = Vec::new();
        let mut open: Vec<Vec<Open>> = Vec::new();
        for i in 0..self.functions.len() {
            let (words, relocs) = self.resolve(i, &by_index)?;
            code.push(words);
            open.push(relocs);
        }

        // Other objects may refer to a function by its alias.
        let aliases: Vec<(u32, usize)> = (0..)
            .zip(&self.env.functions)
            .filter(|(_, signature)| !self.by_name.contains_key(signature.name.as_str()))
            .filter_map(|(i, _)| Some((i, self.function(i)?)))
            .collect();
        let unified_foreign = (0..).zip(&self.env.functions).filter(|(_, f)| f.unified.is_some());
        let unified_foreign = unified_foreign.filter_map(|(i, _)| by_index(i));
        let mut foreign: Vec<Named> = open
            .iter()
            .flatten()
            .map(|reloc| reloc.named)
            .chain(self.foreign_in_initialisers())
            .chain(unified_foreign)
            .filter(|named| matches!(named, Named::Foreign(_) | Named::Driver(_)))
            .collect();
        foreign.sort_unstable();
        foreign.dedup();
        let taken = self.taken_functions(&open, &by_index);
        let called = self.described_functions(&foreign, &aliases, &taken);

        // Sections that describe the code. Tools expect the notes after the frames.
        let sizes: Vec<u64> = code.iter().map(|words| words.len() as u64 * WORD).collect();
        let sm = sass::Sm(self.options.sm.number as u8);
        let stubs = self.unified_functions();
        let mut unwound: Vec<Unwound> = code
            .iter()
            .zip(&sizes)
            .zip(self.functions)
            .map(|((words, &code_bytes), f)| {
                let frame = frame(sm, words);
                let return_address = f.input.preserved.return_address();
                let saved = || saved(sm, words, frame, |reg| f.input.preserved.has(reg));
                let caller = (!f.input.entry).then(|| Caller { return_address, saved: saved() });
                Unwound { code_bytes, frame, caller }
            })
            .collect();
        unwound.extend(stubs.iter().map(|&i| {
            let return_address = self.functions[i].input.preserved.return_address();
            let caller = Some(Caller { return_address, saved: Vec::new() });
            Unwound { code_bytes: unified::STUB_BYTES, frame: None, caller }
        }));
        let (frame_bytes, frame_addresses) = note::debug_frame(&unwound);
        let frames = self.image.add_section(Self::plain(".debug_frame", SHT_PROGBITS, 0, 1, frame_bytes));
        let mut line_tables = Vec::new();
        if let Some(lines) = lines {
            let text_name = lines.text_name(true);
            for (name, table) in
                [(".debug_line", lines.source(&sizes)), (".nv_debug_line_sass", lines.machine(&sizes, true))]
            {
                let id = self.image.add_section(Self::plain(name, SHT_PROGBITS, 0, 1, table.bytes));
                line_tables.push((name, id, table.relocs));
            }
            // If all debug data is written, `.debug_str` is part of it.
            let strings: &[u8] = if debug.is_some() { &[] } else { &lines.strings };
            for (name, bytes) in [(".debug_str", strings), (&*text_name, &lines.text)] {
                if !bytes.is_empty() {
                    self.image.add_section(Self::plain(name, SHT_PROGBITS, 0, 1, bytes.to_vec()));
                }
            }
        }
        // Sections that debug data refers to, and the relocations in debug sections.
        let mut named_sections: Vec<(&str, SectionId)> = Vec::new();
        let own = debug.map_or(&[][..], |debug| &debug.sections);
        for section in own {
            let bytes = section.bytes.clone();
            let id = self.image.add_section(Self::plain(section.name.as_str(), SHT_PROGBITS, 0, 1, bytes));
            named_sections.push((&section.name, id));
        }
        named_sections.extend(line_tables.iter().map(|&(name, id, _)| (name, id)));
        for section in own {
            let find = |name: &str| named_sections.iter().position(|(known, _)| *known == name);
            let relocs = section.relocs(&self.env.variables, &find);
            let id = find(&section.name).map(|at| named_sections[at].1);
            line_tables
                .extend(id.filter(|_| !relocs.is_empty()).map(|id| (section.name.as_str(), id, relocs)));
        }
        let tool_note = self.image.add_section(Self::plain(
            ".note.nv.tkinfo",
            SHT_NOTE,
            0x200_0000,
            4,
            note::tool(arguments),
        ));
        let mut cuda_note =
            Self::plain(".note.nv.cuinfo", SHT_NOTE, 0x100_0000, 4, note::cuda(self.env.target));
        cuda_note.link = tool_note.0;
        let cuda_note = self.image.add_section(cuda_note);
        let module_info = self.section(".nv.info", SHT_CUDA_INFO, 0, 4, 0);
        if self.target.cubin.rela {
            let bytes = compat(self.options.sm);
            let compat = self.image.add_section(Self::plain(".nv.compat", SHT_CUDA_COMPAT, 0, 4, bytes));
            let note = self.image.section_mut(cuda_note);
            note.flags |= SHF_INFO;
            note.info = compat.0;
        }
        let names: Vec<String> = self.functions.iter().map(|f| f.code.name.clone()).collect();
        let info: Vec<SectionId> = names
            .iter()
            .map(|name| self.section(&format!(".nv.info.{name}"), SHT_CUDA_INFO, SHF_INFO, 4, 0))
            .collect();
        let stub_info: Vec<SectionId> = stubs
            .iter()
            .map(|&i| {
                let name = format!(".nv.info.{}", unified::stub_name(&names[i]));
                self.section(&name, SHT_CUDA_INFO, SHF_INFO, 4, 0)
            })
            .collect();
        let unified_entries = self.entry_sections();
        let call_graph = self.section(".nv.callgraph", SHT_CUDA_CALLGRAPH, 0, 4, 8);
        let prototypes =
            (!called.is_empty()).then(|| self.section(".nv.prototype", SHT_CUDA_PROTOTYPE, 0, 4, 8));
        let code_relocs: Vec<Option<SectionId>> = (0..names.len())
            .map(|i| {
                (!open[i].is_empty())
                    .then(|| self.section(&format!(".rela.text.{}", names[i]), SHT_RELA, SHF_INFO, 8, 24))
            })
            .collect();
        let stub_relocs: Vec<SectionId> = stubs
            .iter()
            .map(|&i| {
                let name = format!(".rela{}", unified::stub_section(&names[i]));
                self.section(&name, SHT_RELA, SHF_INFO, 8, 24)
            })
            .collect();
        let data_relocs = |linker: &mut Self, name: &str, data: Option<&Data>| {
            let any = data.is_some_and(|data| !data.relocs.is_empty());
            any.then(|| linker.section(&format!(".rela{name}"), SHT_RELA, SHF_INFO, 8, 24))
        };
        let initial_relocs = data_relocs(&mut self, ".nv.global.init", globals.initialised.as_ref());
        let constant_relocs = data_relocs(&mut self, ".nv.constant3", constants.as_ref());
        let unified_relocs = data_relocs(&mut self, ".nv.udt", globals.unified.as_ref());

        let line_tables: Vec<(SectionId, SectionId, Vec<Reloc>)> = line_tables
            .into_iter()
            .map(|(name, id, relocs)| {
                (self.section(&format!(".rela{name}"), SHT_RELA, SHF_INFO, 8, 24), id, relocs)
            })
            .collect();
        let frame_relocs = self.section(".rela.debug_frame", SHT_RELA, SHF_INFO, 8, 24);

        // Sections that are loaded.
        let constant3 = constants.as_ref().map(|data| {
            let (align, bytes) = (self.constant_align(), data.bytes.clone());
            let kind = SHT_CUDA_CONSTANT + 3;
            self.image.add_section(Self::plain(".nv.constant3", kind, SHF_ALLOC, align, bytes))
        });
        let tables: Vec<Option<SectionId>> =
            (0..names.len()).map(|i| self.table_section(i, &names[i])).collect();
        let parameters: Vec<Option<SectionId>> = (0..names.len())
            .map(|i| {
                let f = self.functions[i];
                f.input.entry.then(|| {
                    let bytes = vec![0; f.code.resources.const0_bytes as usize];
                    let name = format!(".nv.constant0.{}", names[i]);
                    self.image.add_section(Self::plain(
                        name,
                        SHT_CUDA_CONSTANT,
                        SHF_ALLOC | SHF_INFO,
                        4,
                        bytes,
                    ))
                })
            })
            .collect();
        let text: Vec<SectionId> = (0..names.len())
            .map(|i| {
                let bytes = code[i].iter().flat_map(|word| word.to_le_bytes()).collect();
                let mut section = Self::plain(
                    format!(".text.{}", names[i]),
                    SHT_PROGBITS,
                    SHF_ALLOC | SHF_EXEC,
                    128,
                    bytes,
                );
                section.link = Image::SYMTAB;
                self.image.add_section(section)
            })
            .collect();
        let stub_text: Vec<SectionId> = stubs.iter().map(|&i| self.stub(&names[i])).collect();
        let unified_data = globals.unified.as_ref().map(|data| {
            let (align, bytes) = (globals.unified_align, data.bytes.clone());
            let flags = SHF_WRITE | SHF_ALLOC;
            self.image.add_section(Self::plain(".nv.udt", SHT_CUDA_UDT, flags, align, bytes))
        });
        let init = globals.initialised.as_ref().map(|data| {
            let flags = SHF_WRITE | SHF_ALLOC;
            self.image.add_section(Self::plain(
                ".nv.global.init",
                SHT_CUDA_GLOBAL_INIT,
                flags,
                globals.init_align,
                data.bytes.clone(),
            ))
        });
        let zeroed = (globals.zeroed_bytes > 0)
            .then(|| self.zeros(".nv.global", SHT_CUDA_GLOBAL, globals.zeroed_align, globals.zeroed_bytes));
        let system_variables: Vec<ReservedVariable> = self.reserved_variables().collect();
        let reserved_section = system_variables.iter().map(|variable| variable.align).max().map(|align| {
            let bytes = system_variables.iter().map(|variable| variable.bytes).sum();
            self.zeros(RESERVED_SHARED, SHT_CUDA_RESERVED_SHARED, align, bytes)
        });
        let shared_align = self.shared_variables().map(|(_, v)| u64::from(v.align)).max().unwrap_or(1);
        let shared_bytes: u64 = self.shared_variables().map(|(_, v)| v.size).fold(0, u64::saturating_add);
        let shared = (shared_bytes > 0)
            .then(|| self.zeros(".nv_debug.shared", SHT_CUDA_SHARED, shared_align, shared_bytes));
        self.resolve_places(init, zeroed, constant3, unified_data);

        // Symbols.
        let mut table = Table::default();
        let section =
            |name: &str, id: SectionId| symbol(name, Some(id), Binding::Local, SymbolKind::Section, 0);
        // The linker finds the notes, and the tool version in them, through these symbols.
        for (name, id) in
            [(".note.nv.tkinfo", tool_note), (".note.nv.cuinfo", cuda_note), (".nv.callgraph", call_graph)]
        {
            table.add(section(name, id), None);
        }
        let optional = [
            (".nv.prototype", prototypes),
            (UFT_ENTRY, unified_entries[0]),
            (UDT_ENTRY, unified_entries[1]),
            (".nv.udt", unified_data),
            (".nv.global", zeroed),
            (".nv.global.init", init),
            (".nv.constant3", constant3),
            (RESERVED_SHARED, reserved_section),
            (".nv_debug.shared", shared),
        ];
        for (name, id) in optional {
            if let Some(id) = id {
                table.add(section(name, id), None);
            }
        }
        table.add(section(".debug_frame", frames), Some(Key::Frames));
        for (&i, &text) in stubs.iter().zip(&stub_text) {
            table.add(section(&unified::stub_section(&names[i]), text), None);
            let name = unified::stub_name(&names[i]);
            let stub = symbol(&name, Some(text), Binding::Local, SymbolKind::Function, 0);
            let stub = Symbol { size: unified::STUB_BYTES, ..stub };
            table.add(stub, Some(Key::Named(Named::Stub(i))));
        }
        for (i, &(name, id)) in named_sections.iter().enumerate() {
            table.add(section(name, id), Some(Key::Debug(i)));
        }
        for i in 0..names.len() {
            table.add(section(&format!(".text.{}", names[i]), text[i]), None);
            let own = self.functions[i].input;
            for (p, param) in (0..).zip(&own.params).filter(|(_, param)| own.entry && param.is_opaque()) {
                let handle = handle_symbol(param.name.clone(), param.ty, Some(text[i]), Binding::Local);
                table.add(handle, Some(Key::Named(Named::Handle(i, p))));
            }
            if let Some(id) = parameters[i] {
                table.add(section(&format!(".nv.constant0.{}", names[i]), id), Some(Key::Parameters(i)));
                table.0.extend(self.parameter_symbol(own, id).map(|symbol| (symbol, None)));
            }
            if let Some(id) = tables[i] {
                table.add(section(&format!(".nv.constant2.{}", names[i]), id), None);
                for (named, start, end) in self.constant_parts(i) {
                    let name = format!("{}.const_opt.{start}.{end}", names[i]);
                    let other = STO_CUDA_CONSTANT | STV_INTERNAL;
                    let part = symbol(&name, Some(id), Binding::Local, SymbolKind::Variable, other);
                    let part = Symbol { value: start, size: end - start, ..part };
                    table.add(part, Some(Key::Named(named)));
                }
            }
        }
        for (key, v) in self.named_variables() {
            // Used or not: the linker searches libraries for it.
            let undefined = v.linkage == Linkage::Extern;
            let (other, place) = match v.space {
                Space::Shared => (STO_CUDA_SHARED, shared.map(|id| (id, u64::from(v.align)))),
                Space::Const => (STO_CUDA_CONSTANT, self.place_of(key)),
                _ if v.managed => (STO_CUDA_GLOBAL | STO_CUDA_MANAGED, self.place_of(key)),
                _ => (STO_CUDA_GLOBAL, self.place_of(key)),
            };
            let other = if v.unified.is_some() { other | STO_CUDA_UNIFIED } else { other };
            let merged = self.is_merged(&v).then_some((SectionId::COMMON, u64::from(v.align)));
            let place = merged.or(place).filter(|_| !undefined);
            let name = match key {
                Named::Local(f, _) => format!("${}${}", names[f], v.name),
                _ => v.name.clone(),
            };
            let own = Symbol {
                value: place.map_or(0, |p| p.1),
                size: v.size,
                ..symbol(&name, place.map(|p| p.0), v.linkage.into(), SymbolKind::Variable, other)
            };
            table.add(own, Some(Key::Named(key)));
        }
        if self.functions.iter().any(|f| f.code.links.iter().any(|link| link.to == LinkTo::ConstBytes)) {
            let bytes = symbol(CONST_BYTES, None, Binding::Local, SymbolKind::Object, STV_INTERNAL);
            table.add(Symbol { size: 4, ..bytes }, Some(Key::Named(Named::ConstBytes)));
        }
        for (i, f) in self.functions.iter().enumerate() {
            let own = Symbol {
                size: code[i].len() as u64 * WORD,
                ..symbol(
                    &names[i],
                    Some(text[i]),
                    f.input.linkage.into(),
                    SymbolKind::Function,
                    if stubs.contains(&i) {
                        STO_CUDA_UNIFIED_FUNCTION
                    } else {
                        other_of_function(f.input.entry)
                    },
                )
            };
            table.add(own, Some(Key::Named(Named::Own(i))));
        }
        for &(i, of) in &aliases {
            let alias = &self.env.functions[i as usize];
            let (place, binding) = (Some(text[of]), alias.linkage.into());
            let own = symbol(&alias.name, place, binding, SymbolKind::Function, other_of_function(false));
            table.add(own, Some(Key::Named(Named::Alias(i))));
        }
        for &named in &foreign {
            let (name, entry) = match named {
                Named::Foreign(i) => {
                    let declared = &self.env.functions[i as usize];
                    (declared.name.clone(), declared.entry)
                }
                Named::Driver(function) => (function.name(), false),
                _ => continue,
            };
            let own = symbol(&name, None, Binding::Global, SymbolKind::Function, other_of_function(entry));
            table.add(own, Some(Key::Named(named)));
        }
        for (variable, symbol) in self.handle_variables() {
            table.add(symbol, Some(Key::Named(Named::Variable(variable))));
        }
        for described in self.described() {
            table.add(entry_size(described), Some(Key::Named(Named::EntrySize(described))));
        }
        if self.target.cubin.rela {
            // From sm_90 on, the linker rejects objects without a symbol for the system's part of shared memory. Every
            // object of ptxas also names the tables of unified functions and variables.
            let tables = unified::TABLES.map(|name| (name, 8, 0));
            let reserved = (".nv.reservedSmem.offset0", 4, self.target.cubin.reserved_shared);
            for (name, size, value) in tables.into_iter().chain([reserved]) {
                let named = symbol(name, None, Binding::Weak, SymbolKind::Object, 0);
                table.add(Symbol { size, value, ..named }, None);
            }
            // The linker assigns addresses to these variables, and merges those of all objects.
            for variable in &system_variables {
                let (kind, other) = (SymbolKind::Variable, STO_CUDA_RESERVED_SHARED);
                let named = symbol(variable.name, reserved_section, Binding::Weak, kind, other);
                let words = *variable == ReservedVariable::TENSOR_WORDS;
                let key = words.then_some(Key::Named(Named::TensorWords));
                table.add(Symbol { value: variable.align, size: variable.bytes, ..named }, key);
            }
            let uses_shared = self.uses_tensor_words() || self.functions.iter().any(|f| self.uses_shared(f));
            if self.reserved_shared_bytes() > 0 && uses_shared {
                table.add(self.reserved_limit(), None);
            }
        }
        let ids = table.finish(&mut self.image);
        let id = |named: Named| ids.get(&Key::Named(named)).copied().unwrap_or(SymbolId(0));

        let entries = |relocs: &[Reloc]| -> Vec<u8> {
            let bytes = relocs.iter().flat_map(|reloc| {
                let named = match reloc.symbol {
                    Referent::Variable(i) => Some(Named::Variable(i)),
                    Referent::Extern(Slot::Function(i)) => by_index(i),
                    // Rejected before.
                    Referent::Extern(_) => None,
                    Referent::Kernel(i) => Some(Named::Own(i)),
                    Referent::Local(f, i) => Some(Named::Local(f, i)),
                    // Rejected before.
                    Referent::Handle(..) => None,
                    Referent::EntrySize(table) => Some(Named::EntrySize(table)),
                    Referent::Section(i) => {
                        let symbol = ids.get(&Key::Debug(i)).copied().unwrap_or(SymbolId(0));
                        return entry(reloc.at, symbol, reloc.kind, reloc.addend);
                    }
                };
                entry(reloc.at, named.map_or(SymbolId(0), id), reloc.kind, reloc.addend)
            });
            bytes.collect()
        };

        // Replace names by symbols.
        for i in 0..names.len() {
            let f = self.functions[i];
            let own = id(Named::Own(i));
            let registers = if self.target.cubin.rela { 0 } else { f.code.resources.registers };
            self.image.section_mut(text[i]).info = registers << 24 | own.0;
            for section in [parameters[i], tables[i]].into_iter().flatten() {
                self.image.section_mut(section).info = text[i].0;
            }
            if let Some(section) = code_relocs[i] {
                let bytes = open[i].iter().flat_map(|r| entry(r.at, id(r.named), r.kind, r.addend)).collect();
                self.fill(section, text[i], bytes);
            }
            let externs = open[i].iter().filter_map(|reloc| match reloc.named {
                Named::Foreign(foreign) => Some((Slot::Function(foreign), id(reloc.named))),
                Named::Driver(function) => Some((Slot::Driver(function), id(reloc.named))),
                Named::Own(kernel)
                    if reloc.takes_function(self.target) && self.functions[kernel].input.entry =>
                {
                    let name = &names[kernel];
                    let index = self.env.functions.iter().position(|declared| declared.name == *name)?;
                    Some((Slot::Function(index as u32), id(reloc.named)))
                }
                _ => None,
            });
            let mut externs: Vec<(Slot, SymbolId)> = externs.collect();
            externs.sort_unstable_by_key(|extern_| extern_.0);
            externs.dedup();
            let bank = ids.get(&Key::Parameters(i)).copied().unwrap_or(SymbolId(0));
            let known = Names {
                parameters: Vec::new(),
                variables: Vec::new(),
                kernels: Vec::new(),
                parts: Vec::new(),
                externs,
                handles: (0..f.input.params.len() as u32).map(|p| (i, p, id(Named::Handle(i, p)))).collect(),
                entry_sizes: Vec::new(),
            };
            let records = self.kernel_records(&f, bank, &known);
            self.fill(info[i], text[i], records);
        }
        let stub_bytes = self.stub_records();
        for (at, &i) in stubs.iter().enumerate() {
            self.image.section_mut(stub_text[at]).info = id(Named::Stub(i)).0;
            self.fill(stub_info[at], stub_text[at], stub_bytes.clone());
            let call = entry(0, id(Named::Own(i)), self.target.cubin.call_relocation, 0);
            self.fill(stub_relocs[at], stub_text[at], call);
        }
        self.fill_entries(unified_entries, &id);
        for (section, of, data) in [
            (unified_relocs, unified_data, globals.unified.as_ref()),
            (initial_relocs, init, globals.initialised.as_ref()),
            (constant_relocs, constant3, constants.as_ref()),
        ] {
            let (Some(section), Some(of), Some(data)) = (section, of, data) else { continue };
            let bytes = entries(&data.relocs);
            self.fill(section, of, bytes);
        }
        for (section, of, relocs) in &line_tables {
            let bytes = entries(relocs);
            self.fill(*section, *of, bytes);
        }
        let frames_id = ids.get(&Key::Frames).copied().unwrap_or(SymbolId(0));
        let pieces = (0..names.len()).map(Named::Own).chain(stubs.iter().map(|&i| Named::Stub(i)));
        let described = frame_addresses.iter().zip(pieces).flat_map(|(&(common, at), piece)| {
            // The word before the address refers to the common entry.
            let common = i64::try_from(common).unwrap_or(0);
            let address = entry(at, id(piece), R_CUDA_64, 0);
            // The linker clears the size of a function that it leaves out.
            let size = entry(at + 8, id(piece), R_CUDA_UNUSED_CLEAR64, 0);
            [entry(at - 8, frames_id, R_CUDA_64, common), address, size].concat()
        });
        let described = described.collect();
        self.fill(frame_relocs, frames, described);
        self.image.section_mut(module_info).body = Body::Bytes(self.object_records(&id));
        self.describe_calls(call_graph, &open, &aliases, taken, &by_index, &id);
        if let Some(prototypes) = prototypes {
            self.describe_prototypes(prototypes, &called, &id);
        }
        let format = Format {
            e_flags: cuda_note.0 << 24 | u32::from(self.options.sm.number) << 8 | EF_CUDA_SASS,
            plain_header_segment: self.target.cubin.rela,
            relocatable: true,
        };
        self.image
            .write(format)
            .map(|file| (file, module_bytes))
            .map_err(|e| CodegenError::internal(SrcId(0), "cubin", format!("writing the object: {e}")))
    }

    pub(super) fn section(
        &mut self,
        name: &str,
        kind: u32,
        flags: u64,
        align: u64,
        entry_size: u64,
    ) -> SectionId {
        let mut section = Self::plain(name, kind, flags, align, Vec::new());
        section.link = Image::SYMTAB;
        section.entry_size = entry_size;
        self.image.add_section(section)
    }

    fn fill(&mut self, section: SectionId, of: SectionId, bytes: Vec<u8>) {
        let section = self.image.section_mut(section);
        section.info = of.0;
        section.body = Body::Bytes(bytes);
    }

    fn zeros(&mut self, name: &str, kind: u32, align: u64, bytes: u64) -> SectionId {
        let flags = SHF_WRITE | SHF_ALLOC;
        let section =
            Section { body: Body::Zeros(bytes), ..Self::plain(name, kind, flags, align, Vec::new()) };
        self.image.add_section(section)
    }

    /// A function's constant bank 2: the target lists of its indirect branches, then its literals.
    fn table_section(&mut self, i: usize, name: &str) -> Option<SectionId> {
        let code = self.functions[i].code;
        let targets = code.tables.iter().flat_map(|table| &table.targets);
        let mut bytes: Vec<u8> = targets.flat_map(|target| (target * WORD as u32).to_le_bytes()).collect();
        let align = if code.literals.is_empty() { 4 } else { LITERAL_BYTES.into() };
        bytes.resize(bytes.len().next_multiple_of(align as usize), 0);
        bytes.extend(code.literals.iter().flat_map(|literal| literal.to_le_bytes()));
        let name = format!(".nv.constant2.{name}");
        let flags = SHF_ALLOC | SHF_INFO;
        (!bytes.is_empty())
            .then(|| self.image.add_section(Self::plain(name, SHT_CUDA_CONSTANT + 2, flags, align, bytes)))
    }

    /// The parts of a function's constant bank 2 that its code refers to, each with its start and its end.
    fn constant_parts(&self, i: usize) -> Vec<(Named, u64, u64)> {
        let code = self.functions[i].code;
        let lists: u64 = code.tables.iter().map(|table| u64::from(table.bytes())).sum();
        let mut parts = Vec::new();
        if lists > 0 {
            parts.push((Named::Tables(i), 0, lists));
        }
        let mut start = lists.next_multiple_of(LITERAL_BYTES.into());
        for index in 0..code.literals.len() as u32 {
            let end = start + u64::from(LITERAL_BYTES);
            parts.push((Named::Literal(i, index), start, end));
            start = end;
        }
        parts
    }

    /// The symbol that ptxas writes before sm_90 for the contents of a kernel's constant bank 0. It covers the parameters
    /// or, in a kernel without parameters, the driver's words.
    fn parameter_symbol(&self, kernel: &Function, bank: SectionId) -> Option<Symbol> {
        let block = self.target.place_params(&kernel.params);
        let (name, value, size) = match block.bytes {
            0 => ("_SREG", 0, u64::from(block.first)),
            bytes => ("_param", u64::from(block.first), u64::from(bytes)),
        };
        let other = STO_CUDA_CONSTANT | STV_INTERNAL;
        let named = symbol(name, Some(bank), Binding::Local, SymbolKind::Variable, other);
        (!self.target.cubin.rela).then_some(Symbol { value, size, ..named })
    }

    /// All variables whose addresses the linker assigns.
    fn named_variables(&self) -> Vec<(Named, Variable)> {
        let placed =
            |v: &Variable| matches!(v.space, Space::Global | Space::Const | Space::Shared) && !v.is_opaque();
        let of_module = (0..).zip(&self.env.variables).map(|(i, v)| (Named::Variable(i), v));
        let of_bodies = self.functions.iter().enumerate().flat_map(|(f, function)| {
            (0..).zip(&function.input.locals).map(move |(i, v)| (Named::Local(f, i), v))
        });
        of_module.chain(of_bodies).filter(|(_, v)| placed(v)).map(|(named, v)| (named, v.clone())).collect()
    }

    fn shared_variables(&self) -> impl Iterator<Item = (Named, Variable)> {
        self.named_variables()
            .into_iter()
            .filter(|(_, v)| v.space == Space::Shared && v.linkage != Linkage::Extern)
    }

    /// Whether a function declares shared variables or uses those of the module.
    fn uses_shared(&self, f: &LinkFunction<'_>) -> bool {
        let is_shared = |symbol| {
            variable(self.env, f.input, symbol).is_some_and(|variable| variable.space == Space::Shared)
        };
        let names_shared =
            |link: &CodeLink| matches!(link.to, LinkTo::Symbol(link) if is_shared(link.symbol));
        f.code.resources.shared_bytes > 0 || f.code.links.iter().any(names_shared)
    }

    fn place_of(&self, named: Named) -> Option<(SectionId, u64)> {
        match named {
            Named::Variable(i) => self.places[i as usize],
            _ => None,
        }
    }

    pub(super) fn initial_symbols(&self) -> impl Iterator<Item = Name> + '_ {
        let inits = self.env.variables.iter().filter_map(|v| v.init.as_ref());
        inits.flat_map(|init| &init.relocs).map(|reloc| reloc.symbol)
    }

    fn foreign_in_initialisers(&self) -> Vec<Named> {
        let foreign = |symbol: Name| match symbol {
            Name::Function(i) => Some(self.named(i)).filter(|named| matches!(named, Named::Foreign(_))),
            _ => None,
        };
        self.initial_symbols().filter_map(foreign).collect()
    }

    /// What a function of the module is in the object.
    fn named(&self, function: u32) -> Named {
        let signature = self.env.functions.get(function as usize);
        let own = signature.and_then(|signature| self.by_name.get(signature.name.as_str()).copied());
        own.or_else(|| self.function(function)).map_or(Named::Foreign(function), Named::Own)
    }

    /// The alias by which the module names a function with code; `None` if it has that name itself.
    pub(super) fn alias(&self, function: u32, named: Named) -> Option<Named> {
        let Named::Own(of) = named else { return None };
        let name = &self.env.functions.get(function as usize)?.name;
        (self.functions[of].code.name != *name).then_some(Named::Alias(function))
    }

    /// Fills in the fields of a function's code that depend only on the function, and returns the code with the
    /// relocations for the linker.
    fn resolve(
        &self,
        i: usize,
        by_index: &dyn Fn(u32) -> Option<Named>,
    ) -> Result<(Vec<u128>, Vec<Open>), CodegenError> {
        let f = self.functions[i];
        let wrong = |what: &str| CodegenError::internal(SrcId(0), "object", what);
        let mut open = Vec::new();
        for link in &f.code.links {
            let at = u64::from(link.at) * WORD;
            let mut alias = None;
            let (kind, named, addend) = match link.to {
                // Already filled in, because the function begins its section.
                LinkTo::Start | LinkTo::Place(_) | LinkTo::Pointee => continue,
                LinkTo::Function(function) => {
                    let named = by_index(function).ok_or_else(|| wrong("a function is missing"))?;
                    alias = self.alias(function, named);
                    (self.target.cubin.call_relocation, named, 0)
                }
                LinkTo::Driver(function) => (self.target.cubin.call_relocation, Named::Driver(function), 0),
                LinkTo::Return { place, high } => {
                    (ADDRESS.half(high), Named::Own(i), i64::from(place) * WORD as i64)
                }
                LinkTo::Table(start) => {
                    (R_CUDA_CONST_FIELD21_38, Named::Tables(i), i64::from(start) - TABLE_BIAS)
                }
                LinkTo::Literal(offset) => {
                    let (index, word) = (offset / LITERAL_BYTES, offset % LITERAL_BYTES);
                    (R_CUDA_CONST_FIELD19_40, Named::Literal(i, index), word.into())
                }
                LinkTo::EntrySize(table) => (R_CUDA_ABS32_32, Named::EntrySize(table), 0),
                LinkTo::ConstBytes => (R_CUDA_ABS32_32, Named::ConstBytes, 0),
                LinkTo::TensorWords => (R_CUDA_ABS32_32, Named::TensorWords, 0),
                LinkTo::Symbol(Link { symbol: Name::Function(function), offset, high }) => {
                    let named = by_index(function).ok_or_else(|| wrong("a function is missing"))?;
                    alias = self.alias(function, named);
                    let kinds = self.function_address(function);
                    (kinds.half(high), named, i64::from(offset))
                }
                LinkTo::Symbol(Link { symbol, offset, high }) => {
                    let (named, space) = match symbol {
                        Name::Global(g) => {
                            (Named::Variable(g), self.env.variables.get(g as usize).map(|v| v.space))
                        }
                        Name::Local(l) => {
                            (Named::Local(i, l), f.input.locals.get(l as usize).map(|v| v.space))
                        }
                        Name::Param(p) if crate::layout::opaque(self.env, f.input, symbol).is_some() => {
                            (Named::Handle(i, p), None)
                        }
                        Name::Function(_) | Name::Param(_) | Name::Return(_) => {
                            return Err(wrong("a symbol has no place"));
                        }
                    };
                    let is_unified = match symbol {
                        Name::Global(g) => {
                            self.env.variables.get(g as usize).is_some_and(|v| v.unified.is_some())
                        }
                        _ => false,
                    };
                    let kind = match space {
                        _ if crate::layout::opaque(self.env, f.input, symbol).is_some() => {
                            self.target.cubin.uniform_relocation
                        }
                        Some(Space::Shared) => R_CUDA_ABS32_32,
                        Some(Space::Const) => R_CUDA_ABS16_32,
                        _ if is_unified => self.target.cubin.function_address.half(high),
                        _ => ADDRESS.half(high),
                    };
                    (kind, named, i64::from(offset))
                }
            };
            open.push(Open { at, kind, named, addend, alias });
        }
        Ok((f.code.code.to_vec(), open))
    }

    /// The records from which a linker computes the resources of kernels.
    fn object_records(&self, id: &dyn Fn(Named) -> SymbolId) -> Vec<u8> {
        let mut records = Records::default();
        for (i, f) in self.functions.iter().enumerate().rev() {
            let (symbol, resources) = (id(Named::Own(i)).0, &f.code.resources);
            records.words(Attribute::Regcount, &[symbol, resources.registers]);
            records.words(Attribute::MaxStackSize, &[symbol, 0]);
            records.words(Attribute::FrameSize, &[symbol, resources.stack_bytes]);
            if self.options.errors_at_exit {
                records.flag(Attribute::GenErrbarAtExit);
            }
        }
        for i in self.unified_functions() {
            let symbol = id(Named::Stub(i)).0;
            let registers = self.functions[i].input.preserved.fewest_registers();
            records.words(Attribute::Regcount, &[symbol, registers]);
            records.words(Attribute::MaxStackSize, &[symbol, 0]);
            records.words(Attribute::FrameSize, &[symbol, 0]);
        }
        self.sampler_records(&mut records, |variable| id(Named::Variable(variable)));
        if !self.functions.iter().any(|f| f.input.entry) {
            self.version_record(&mut records);
        }
        records.into_bytes()
    }
}

fn symbol(name: &str, section: Option<SectionId>, binding: Binding, kind: SymbolKind, other: u8) -> Symbol {
    Symbol { name: name.to_owned(), section, binding, kind, other, value: 0, size: 0 }
}

fn entry(at: u64, symbol: SymbolId, kind: u32, addend: i64) -> Vec<u8> {
    let words = [at, u64::from(symbol.0) << 32 | u64::from(kind), addend as u64];
    words.into_iter().flat_map(u64::to_le_bytes).collect()
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Key {
    Named(Named),
    /// Constant bank 0 of a kernel.
    Parameters(usize),
    /// The frame description.
    Frames,
    /// A section that debug data refers to.
    Debug(usize),
}

/// Symbols under construction; local ones come first.
#[derive(Default)]
struct Table(Vec<(Symbol, Option<Key>)>);

impl Table {
    fn add(&mut self, symbol: Symbol, key: Option<Key>) {
        self.0.push((symbol, key));
    }

    fn finish(mut self, image: &mut Image) -> FxHashMap<Key, SymbolId> {
        self.0.sort_by_key(|(symbol, _)| symbol.binding != Binding::Local);
        let ids = self.0.iter().enumerate().filter_map(|(i, (_, key))| Some(((*key)?, Image::symbol_id(i))));
        let ids = ids.collect();
        image.set_symbols(self.0.into_iter().map(|(symbol, _)| symbol).collect());
        ids
    }
}
