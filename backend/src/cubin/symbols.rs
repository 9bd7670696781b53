//! The symbol table: sections, variables, kernels.

use super::elf::{Binding, Image, SectionId, Symbol, SymbolId, SymbolKind};
use super::numbers::{STO_CUDA_ENTRY, STO_CUDA_MANAGED, STO_CUDA_RESERVED_SHARED};
use super::sections::{About, Loaded};
use super::{Kernel, Linker};
use crate::input::{Env, Symbol as Name};
use crate::layout::{self, Slot};
use crate::ori::op::Descriptors;
use ptx_isa::Space;

/// Where a shared variable is, if debuggers need to know.
pub(super) struct SharedPlace {
    /// The first function that names it.
    pub(super) function: usize,
    pub(super) symbol: Name,
    pub(super) start: u64,
    pub(super) end: u64,
    /// A function or several kernels name it.
    pub(super) is_common: bool,
}

/// The shared variables that debuggers need to know.
pub(super) fn shared_places(env: &Env, kernels: &[Kernel<'_>]) -> Vec<SharedPlace> {
    let mut places: Vec<SharedPlace> = Vec::new();
    for (function, kernel) in kernels.iter().enumerate() {
        for &(symbol, start) in &kernel.joined.shared {
            let Some(v) = layout::variable(env, kernel.input, symbol) else { continue };
            let is_same = |place: &&mut SharedPlace| {
                place.symbol == symbol && (place.function == function || matches!(symbol, Name::Global(_)))
            };
            match places.iter_mut().find(is_same) {
                Some(place) => place.is_common = true,
                None => places.push(SharedPlace {
                    function,
                    symbol,
                    start: start.into(),
                    end: u64::from(start).saturating_add(v.size),
                    is_common: !kernel.input.entry,
                }),
            }
        }
    }
    places
}

/// Symbols that other sections refer to.
pub(super) struct Names {
    /// The symbol of each kernel's constant bank 0.
    pub(super) parameters: Vec<SymbolId>,
    /// The symbol of each variable of the module; 0 for variables without memory in the file.
    pub(super) variables: Vec<SymbolId>,
    pub(super) kernels: Vec<SymbolId>,
    /// Per kernel, the symbols of the functions in its code.
    pub(super) parts: Vec<Vec<SymbolId>>,
    /// The driver functions that the code calls, and the kernels whose addresses are taken.
    pub(super) externs: Vec<(Slot, SymbolId)>,
    /// The symbols of handle parameters, by kernel and parameter.
    pub(super) handles: Vec<(usize, u32, SymbolId)>,
    /// The symbols of the entry sizes that the code uses.
    pub(super) entry_sizes: Vec<(Descriptors, SymbolId)>,
}

impl Names {
    /// The symbol of a kernel's handle parameter.
    pub(super) fn handle(&self, kernel: usize, param: u32) -> SymbolId {
        let found = self.handles.iter().find(|(of, i, _)| (*of, *i) == (kernel, param));
        found.map_or(SymbolId(0), |(.., id)| *id)
    }
}

/// nvlink rejects a kernel whose symbol is marked as a kernel in one object but not in another, even if the other only
/// refers to it.
pub(super) fn other_of_function(entry: bool) -> u8 {
    if entry { STO_CUDA_ENTRY } else { 0 }
}

/// The symbol of the size of an entry of a driver table.
pub(super) fn entry_size(table: Descriptors) -> Symbol {
    Symbol {
        name: table.entry_size().into(),
        section: None,
        binding: Binding::Weak,
        kind: SymbolKind::Object,
        other: 0,
        value: 0,
        size: 4,
    }
}

impl Linker<'_> {
    /// The symbol for the end of the shared memory that the system may reserve.
    pub(super) fn reserved_limit(&self) -> Symbol {
        Symbol {
            name: ".nv.reservedSmem.cap".into(),
            section: None,
            binding: Binding::Weak,
            kind: SymbolKind::Object,
            other: 0,
            value: self.target.shared_base.into(),
            size: 4,
        }
    }

    /// Builds the symbol table: local symbols, then the others.
    pub(super) fn name_all(&mut self, about: &About, loaded: &Loaded, code_bytes: &[u64]) -> Names {
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
        symbols.extend(about.lines.iter().map(|(name, section)| section_symbol(*section, name)));
        symbols.push(section_symbol(about.callgraph, ".nv.callgraph"));
        symbols.extend(about.action.map(|section| section_symbol(section, ".nv.rel.action")));
        for (name, section) in [
            (".nv.constant4", loaded.constant4),
            (".nv.constant3", loaded.constant3),
            (".nv.global.init", loaded.init),
            (".nv.global", loaded.zeroed),
            (".nv_debug.shared", loaded.debug_shared),
        ] {
            symbols.extend(section.map(|s| section_symbol(s, name)));
        }
        let (mut parameters, mut handles) = (Vec::new(), Vec::new());
        for (i, f) in self.functions.iter().enumerate() {
            symbols.push(section_symbol(loaded.text[i], &format!(".text.{}", f.code.name)));
            self.parameter_symbols(i, loaded.text[i], &mut symbols, &mut handles);
            parameters.push(Image::symbol_id(symbols.len()));
            let bank = loaded.parameters[i];
            symbols.extend(bank.map(|id| section_symbol(id, &format!(".nv.constant0.{}", f.code.name))));
        }
        for &(i, section) in &loaded.function_banks {
            symbols.push(section_symbol(section, &format!(".nv.constant2.{}", self.functions[i].code.name)));
        }
        let has_static = |&&(i, _): &&(usize, SectionId)| self.functions[i].code.resources.shared_bytes > 0;
        for &(i, section) in loaded.shared.iter().filter(has_static) {
            symbols.push(section_symbol(section, &format!(".nv.shared.{}", self.functions[i].code.name)));
        }
        self.resolve_places(loaded.init, loaded.zeroed, loaded.constant3, None);
        let mut parts = vec![Vec::new(); self.kernels.len()];
        self.part_symbols(&mut symbols, loaded, Binding::Local, &mut parts);
        let mut kernels = vec![SymbolId(0); self.functions.len()];
        self.kernel_symbols(&mut symbols, loaded, code_bytes, true, &mut kernels);
        self.shared_symbols(&mut symbols, loaded);
        let mut variables = self.variable_symbols(&mut symbols);
        for binding in [Binding::Global, Binding::Weak] {
            self.part_symbols(&mut symbols, loaded, binding, &mut parts);
        }
        symbols.extend(loaded.reserved.into_iter().flat_map(|section| self.reserved_symbols(section)));
        if let Some(section) = loaded.reserved {
            let mut value = self.reserved_shared_bytes();
            for variable in self.reserved_variables() {
                symbols.push(Symbol {
                    name: variable.name.into(),
                    section: Some(section),
                    binding: Binding::Weak,
                    kind: SymbolKind::Object,
                    other: 0,
                    value,
                    size: variable.bytes,
                });
                value += variable.bytes;
            }
        }
        if (!loaded.shared.is_empty() || self.uses_tensor_words()) && self.reserved_shared_bytes() > 0 {
            symbols.push(self.reserved_limit());
        }
        let mut entry_sizes = Vec::new();
        for table in self.described() {
            entry_sizes.push((table, Image::symbol_id(symbols.len())));
            symbols.push(entry_size(table));
        }
        self.kernel_symbols(&mut symbols, loaded, code_bytes, false, &mut kernels);
        let mut externs = Vec::new();
        for called in self.called_externs() {
            let name = match called {
                Slot::Driver(function) => function.name(),
                Slot::Function(i) => match self.kernel(i) {
                    Some(kernel) => {
                        externs.push((called, kernels[kernel]));
                        continue;
                    }
                    None => self.env.functions[i as usize].name.clone(),
                },
                Slot::Global(_) => continue,
            };
            externs.push((called, Image::symbol_id(symbols.len())));
            symbols.push(Symbol {
                name,
                section: None,
                binding: Binding::Global,
                kind: SymbolKind::Function,
                other: 0,
                value: 0,
                size: 0,
            });
        }
        for (variable, symbol) in self.handle_variables() {
            variables[variable as usize] = Image::symbol_id(symbols.len());
            symbols.push(symbol);
        }
        self.image.set_symbols(symbols);
        Names { parameters, variables, kernels, parts, externs, handles, entry_sizes }
    }

    /// The driver functions whose addresses code reads, and the kernels whose addresses code or data contains.
    pub(super) fn called_externs(&self) -> Vec<Slot> {
        let in_code = self.functions.iter().flat_map(|f| f.code.attributes.symbols.iter().copied());
        let in_data = self.initial_symbols().filter_map(|symbol| match symbol {
            Name::Function(i) => self.kernel(i).map(|_| Slot::Function(i)),
            _ => None,
        });
        let is_called = |symbol: &Slot| match symbol {
            Slot::Function(i) => (*i as usize) < self.env.functions.len(),
            Slot::Driver(_) => true,
            _ => false,
        };
        let mut all: Vec<Slot> = in_code.chain(in_data).filter(is_called).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Adds the symbols of the kernels and functions with sections that other files do not see, or those of the others.
    fn kernel_symbols(
        &self,
        symbols: &mut Vec<Symbol>,
        loaded: &Loaded,
        code_bytes: &[u64],
        local: bool,
        ids: &mut [SymbolId],
    ) {
        for (i, f) in self.functions.iter().enumerate() {
            let binding = Binding::from(f.input.linkage);
            if (binding == Binding::Local) != local {
                continue;
            }
            ids[i] = Image::symbol_id(symbols.len());
            symbols.push(Symbol {
                name: f.code.name.clone(),
                section: Some(loaded.text[i]),
                binding,
                kind: SymbolKind::Function,
                other: other_of_function(f.input.entry),
                value: 0,
                size: code_bytes[i],
            });
        }
    }

    /// Adds the symbols of functions in kernels' code that have the given binding.
    fn part_symbols(
        &self,
        symbols: &mut Vec<Symbol>,
        loaded: &Loaded,
        binding: Binding,
        ids: &mut [Vec<SymbolId>],
    ) {
        for (i, kernel) in self.kernels.iter().enumerate() {
            let parts = &kernel.joined.parts;
            ids[i].resize(parts.len(), SymbolId(0));
            for (part, id) in parts.iter().zip(&mut ids[i]) {
                if Binding::from(part.linkage) != binding {
                    continue;
                }
                *id = Image::symbol_id(symbols.len());
                symbols.push(Symbol {
                    name: format!("${}${}", kernel.joined.kernel.name, part.name),
                    section: Some(loaded.text[i]),
                    binding,
                    kind: SymbolKind::Function,
                    other: 0,
                    value: part.start,
                    size: part.bytes,
                });
            }
        }
    }

    /// Adds the symbols of shared variables.
    fn shared_symbols(&self, symbols: &mut Vec<Symbol>, loaded: &Loaded) {
        for place in &self.shared_places {
            let own = loaded.shared.iter().find(|(function, _)| *function == place.function);
            let own = own.map(|(_, section)| *section).filter(|_| !place.is_common);
            let input = self.kernels[place.function].input;
            let Some(v) = layout::variable(self.env, input, place.symbol) else { continue };
            symbols.push(Symbol {
                name: v.name.clone(),
                section: own.or(loaded.debug_shared),
                binding: Binding::Local,
                kind: SymbolKind::Object,
                other: 0,
                value: place.start,
                size: v.size,
            });
        }
    }

    /// Fills in the sections of `places`, whose symbols are known only now.
    pub(super) fn resolve_places(
        &mut self,
        init: Option<SectionId>,
        zeroed: Option<SectionId>,
        constant3: Option<SectionId>,
        unified: Option<SectionId>,
    ) {
        for (v, place) in self.env.variables.iter().zip(&mut self.places) {
            let section = match v.space {
                Space::Const => constant3,
                _ if self.options.linking.is_object() && v.unified.is_some() => unified,
                _ if v.init.is_some() => init,
                _ => zeroed,
            };
            *place = match (*place, section) {
                (Some((_, at)), Some(section)) => Some((section, at)),
                _ => None,
            };
        }
    }

    /// Adds the symbols of the module's variables, local ones first. Returns the index of each, 0 for variables without
    /// a symbol.
    fn variable_symbols(&self, symbols: &mut Vec<Symbol>) -> Vec<SymbolId> {
        let mut ids = vec![SymbolId(0); self.env.variables.len()];
        for local in [true, false] {
            for (i, v) in self.env.variables.iter().enumerate() {
                let Some((section, value)) = self.places[i] else { continue };
                let binding = Binding::from(v.linkage);
                if (binding == Binding::Local) != local {
                    continue;
                }
                ids[i] = Image::symbol_id(symbols.len());
                symbols.push(Symbol {
                    name: v.name.clone(),
                    section: Some(section),
                    binding,
                    kind: SymbolKind::Object,
                    other: if v.managed { STO_CUDA_MANAGED } else { 0 },
                    value,
                    size: v.size,
                });
            }
        }
        ids
    }

    /// The two symbols of the system's part of shared memory.
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
}
