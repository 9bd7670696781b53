//! Linking: writes compiled functions and the module's variables to a cubin.
//!
//! The sections, their order and their attributes are those of executable cubins of ptxas 13.0.88, so that the driver,
//! nvdisasm and cuobjdump can read ours. The sections `.nv.capmerc.*` and `.nv.merc.*`, from which newer hardware
//! generates its own code, are deliberately absent. See `docs/cubin.md`.

mod calls;
mod data;
mod debug;
mod elf;
mod handles;
mod info;
mod lines;
mod linkable;
mod note;
mod numbers;
mod records;
mod relocations;
mod sections;
mod symbols;
mod unified;

pub use debug::{Debug, DebugSection, Reference, Referred};
pub use lines::{File, Inlined, Lines, Row, SourcePlace};
pub use linkable::object;

use crate::abi::Preserved;
use crate::input::{Env, Function, SrcId};
use crate::join::{Joined, Program};
use crate::target::Target;
use crate::{CodegenError, CompiledFunction, Options};
use data::{Data, Referent, Reloc};
use elf::{Body, Format, Image, SectionId};
use note::{Caller, Unwound};
use numbers::R_CUDA_64;
use rustc_hash::FxHashMap;
use sections::{About, Loaded, Tables};
use symbols::{Names, SharedPlace, shared_places};

/// A function to link: its input (for parameters and launch bounds) and its code.
#[derive(Clone, Copy, Debug)]
pub struct LinkFunction<'a> {
    pub input: &'a Function,
    pub code: &'a CompiledFunction,
}

/// Writes an executable cubin with the kernels of a module, in their order, and with line tables if there are lines.
/// Functions with sections of their own are among the kernels.
/// `arguments` is recorded as the tool's command line.
///
/// # Errors
/// `Unsupported` for constructs that need the relocatable format, `Limit` for a bank that overflows.
pub fn link(
    program: &Program<'_>,
    kernels: &[Kernel<'_>],
    options: &Options,
    arguments: &str,
    lines: Option<&Lines>,
    debug: Option<&Debug>,
) -> Result<(Vec<u8>, Sizes), CodegenError> {
    let target = Target::of(options.sm)
        .ok_or_else(|| CodegenError::unsupported(SrcId(0), format!("code for {}", options.sm)))?;
    let functions: Vec<LinkFunction<'_>> = kernels
        .iter()
        .map(|kernel| LinkFunction { input: kernel.input, code: &kernel.joined.kernel })
        .collect();
    Linker::new(program, kernels, &functions, options, target).run(arguments, lines, debug)
}

/// Bytes of a module's variables and of the constant banks that its kernels share.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sizes {
    pub global: u64,
    pub constant_3: u64,
    pub constant_4: u64,
}

/// A kernel and the functions that are linked with it, or a function with a section of its own.
#[derive(Clone, Copy, Debug)]
pub struct Kernel<'a> {
    pub input: &'a Function,
    pub joined: &'a Joined,
}

struct Linker<'a> {
    env: &'a Env,
    program: &'a Program<'a>,
    kernels: &'a [Kernel<'a>],
    functions: &'a [LinkFunction<'a>],
    /// The place of each function in `functions`.
    by_name: FxHashMap<&'a str, usize>,
    options: &'a Options,
    target: &'static Target,
    image: Image,
    /// The shared variables of executables for debuggers.
    shared_places: Vec<SharedPlace>,
    /// The section and offset of each variable in `env.variables`, if it has memory.
    places: Vec<Option<(SectionId, u64)>>,
}

impl<'a> Linker<'a> {
    fn new(
        program: &'a Program<'a>,
        kernels: &'a [Kernel<'a>],
        functions: &'a [LinkFunction<'a>],
        options: &'a Options,
        target: &'static Target,
    ) -> Self {
        let env = program.env();
        Linker {
            env,
            program,
            kernels,
            functions,
            by_name: functions.iter().enumerate().map(|(i, f)| (f.code.name.as_str(), i)).collect(),
            options,
            target,
            image: Image::default(),
            shared_places: shared_places(env, kernels),
            places: vec![None; env.variables.len()],
        }
    }

    /// The code of kernels and of the functions in their sections: its owner, its start, and its unwinding data.
    fn unwound(&self) -> Vec<(usize, u64, Unwound)> {
        let sm = sass::Sm(self.options.sm.number as u8);
        let mut all = Vec::new();
        for (i, kernel) in self.kernels.iter().enumerate() {
            let code = &kernel.joined.kernel.code;
            let parts = &kernel.joined.parts;
            let own = parts.first().map_or(code.len() as u64 * 16, |part| part.start);
            let pieces = std::iter::once((0, own)).chain(parts.iter().map(|part| (part.start, part.bytes)));
            for (start, code_bytes) in pieces {
                let words = code.get((start / 16) as usize..((start + code_bytes) / 16) as usize);
                let words = words.unwrap_or_default();
                let frame = debug::frame(sm, words);
                let preserved = Preserved::default();
                let caller = (!kernel.input.entry).then(|| Caller {
                    return_address: preserved.return_address(),
                    saved: debug::saved(sm, words, frame, |reg| preserved.has(reg)),
                });
                all.push((i, start, Unwound { code_bytes, frame, caller }));
            }
        }
        all
    }

    fn run(
        mut self,
        arguments: &str,
        lines: Option<&Lines>,
        debug: Option<&Debug>,
    ) -> Result<(Vec<u8>, Sizes), CodegenError> {
        let code_bytes: Vec<u64> = self.functions.iter().map(|f| f.code.code.len() as u64 * 16).collect();
        let unwound = self.unwound();
        let (frames, frame_addresses) =
            note::debug_frame(&unwound.iter().map(|(.., unwound)| unwound.clone()).collect::<Vec<_>>());
        let frame_relocs: Vec<Reloc> = frame_addresses
            .iter()
            .zip(&unwound)
            .map(|(&(_, at), &(kernel, start, _))| Reloc {
                at,
                symbol: Referent::Kernel(kernel),
                kind: R_CUDA_64,
                addend: start as i64,
            })
            .rev()
            .collect();
        let sections = debug.map_or(&[][..], |debug| &debug.sections);
        let (mut debug_bytes, mut debug_relocs) = (Vec::new(), Vec::new());
        let address = |function: Option<usize>, symbol| {
            let is_meant = |place: &&SharedPlace| {
                place.symbol == symbol && function.is_none_or(|function| function == place.function)
            };
            self.shared_places.iter().find(is_meant).map(|place| place.start)
        };
        for section in sections {
            let (bytes, relocs) = section.resolved(&self.env.variables, &address);
            debug_bytes.push((section.name.as_str(), bytes));
            debug_relocs.push((section.name.as_str(), relocs));
        }

        let tables = lines.map(|lines| Tables {
            source: lines.source(&code_bytes),
            machine: lines.machine(&code_bytes, false),
            // If all debug data is written, `.debug_str` is part of it.
            strings: if debug.is_some() { Vec::new() } else { lines.strings.clone() },
            text: lines.text.clone(),
        });
        let line_relocs = tables.as_ref().map(|t| [t.source.relocs.clone(), t.machine.relocs.clone()]);
        let about = self.about_sections(arguments, frames, tables, debug_bytes);
        let (slots, constants, globals) = (self.address_slots()?, self.constant_data()?, self.global_data()?);
        let bytes = |data: &Option<Data>| data.as_ref().map_or(0, |data| data.bytes.len() as u64);
        let sizes = Sizes {
            global: bytes(&globals.initialised) + globals.zeroed_bytes,
            constant_3: bytes(&constants),
            constant_4: bytes(&slots),
        };
        let mut pending = Vec::new();
        if let Some([source, machine]) = &line_relocs {
            pending.extend(self.relocation_sections(".debug_line", source));
            pending.extend(self.relocation_sections(".nv_debug_line_sass", machine));
        }
        for (name, relocs) in &debug_relocs {
            pending.extend(self.relocation_sections(name, relocs));
        }
        for (name, data) in [
            (".nv.constant4", &slots),
            (".nv.constant3", &constants),
            (".nv.global.init", &globals.initialised),
        ] {
            pending.extend(self.relocation_sections(name, data.as_ref().map_or(&[], |d| &d.relocs)));
        }
        let handles = self.handle_relocations();
        for (name, relocs) in &handles {
            pending.extend(self.relocation_sections(name, relocs));
        }
        let code = self.code_relocations();
        for (name, relocs) in &code {
            pending.extend(self.relocation_sections(name, relocs));
        }
        pending.extend(self.relocation_sections(".debug_frame", &frame_relocs));
        let loaded = self.loaded_sections(slots, constants, globals);
        let names = self.name_all(&about, &loaded, &code_bytes);
        self.describe_functions(&about, &loaded, &names);
        self.fill_relocations(pending, &about, &loaded, &names);

        let sm = self.options.sm;
        let format = Format {
            relocatable: false,
            e_flags: about.cuda_note.0 << 24 | u32::from(sm.number) << 8 | self.target.cubin.executable_flags,
            plain_header_segment: self.target.cubin.rela,
        };
        let written = self.image.write(format);
        let bytes = written
            .map_err(|e| CodegenError::internal(SrcId(0), "cubin", format!("writing the object: {e}")))?;
        Ok((bytes, sizes))
    }

    /// Writes the records that refer to sections and symbols of functions by index.
    fn describe_functions(&mut self, about: &About, loaded: &Loaded, names: &Names) {
        for (i, f) in self.functions.iter().enumerate() {
            let (text, symbol) = (loaded.text[i], names.kernels[i].0);
            if let Some(parameters) = loaded.parameters[i] {
                self.image.section_mut(parameters).info = text.0;
            }
            for &(_, bank) in loaded.function_banks.iter().filter(|(kernel, _)| *kernel == i) {
                self.image.section_mut(bank).info = text.0;
            }
            // Before sm_90 the register count is in the top byte too.
            let registers = if self.target.cubin.rela { 0 } else { f.code.resources.registers };
            self.image.section_mut(text).info = registers << 24 | symbol;
            let records = self.kernel_records(f, names.parameters[i], names);
            let info = self.image.section_mut(about.kernel_info[i]);
            info.info = text.0;
            info.body = Body::Bytes(records);
        }
        self.image.section_mut(about.callgraph).body = Body::Bytes(self.call_graph(names));
        let records = self.module_records(names);
        self.image.section_mut(about.module_info).body = Body::Bytes(records);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::{Init, Linkage, Symbol as Name, Variable};
    use crate::{Attributes, Linking, Resources, input::Param};
    use object::read::elf::{ElfFile64, FileHeader as _, SectionHeader as _};
    use object::{Endianness, Object as _, ObjectSection as _, ObjectSymbol as _};
    use ptx_isa::Space;
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
            unified: None,
        }
    }

    /// A module with one kernel that exits, a constant, a zeroed and an initialized global.
    fn sample(sm: u16) -> Vec<u8> {
        let reference = crate::input::InitReloc {
            at: 0,
            symbol: Name::Global(0),
            addend: 4,
            generic: true,
            size: 8,
            byte: 0,
        };
        let variables = vec![
            variable("zeroed", Space::Global, None),
            variable(
                "pointer",
                Space::Global,
                Some(Init { bytes: vec![0; 8], relocs: vec![reference], ..Init::default() }),
            ),
            variable("table", Space::Const, Some(Init { bytes: vec![1, 2], ..Init::default() })),
        ];
        module(sm, variables).unwrap()
    }

    /// A module with one kernel that exits, and variables.
    fn module(sm: u16, variables: Vec<Variable>) -> Result<Vec<u8>, CodegenError> {
        made(sm, variables, Linking::Joined)
    }

    /// The same, linked in one of the ways.
    fn made(sm: u16, variables: Vec<Variable>, linking: Linking) -> Result<Vec<u8>, CodegenError> {
        let env = Env {
            version: PtxVersion::new(8, 0),
            target: Sm::new(75),
            address_size: 64,
            independent_samplers: false,
            variables,
            functions: vec![],
            pointees_wait: true,
            pointees_watch: true,
            nounroll: false,
        };
        let input = Function {
            name: "kernel".into(),
            entry: true,
            linkage: Linkage::Visible,
            params: vec![Param {
                name: "p".into(),
                ty: ScalarType::U64,
                size: 8,
                is_array: false,
                align: 8,
                offset: 0,
                reg: None,
                pointer: None,
            }],
            returns: vec![],
            regs: vec![],
            locals: vec![],
            labels: 0,
            targets: vec![],
            nounroll: Default::default(),
            body: vec![],
            parts: vec![],
            launch: Default::default(),
            preserved: Default::default(),
        };
        let options = Options { linking, ..Options::new(Sm::new(sm)) };
        let base = u32::from(Target::of(options.sm).unwrap().driver.params);
        let exit = 0x000f_ea00_0380_0000_0000_0000_0000_794d_u128;
        let code = CompiledFunction {
            name: "kernel".into(),
            entry: true,
            links: Vec::new(),
            tables: Vec::new(),
            literals: Vec::new(),
            code: vec![exit; 8].into(),
            lines: vec![None; 8].into(),
            copies: Default::default(),
            inlined: None,
            known: None,
            spills: vec![false; 8].into(),
            live_registers: vec![0; 8].into(),
            shown: Vec::new(),
            explanation: None,
            resources: Resources { registers: 10, const0_bytes: base + 8, ..Default::default() },
            attributes: Attributes {
                exits: vec![0],
                symbols: vec![crate::layout::Slot::Global(0)],
                ..Default::default()
            },
        };
        let function = LinkFunction { input: &input, code: &code };
        let program = Program::new(&env, &[function], &[]);
        if linking.is_object() {
            return object(&program, &[function], &options, "-arch test", None, None).map(|(file, _)| file);
        }
        let joined = program.join(function, Target::of(options.sm).unwrap())?;
        link(&program, &[Kernel { input: &input, joined: &joined }], &options, "-arch test", None, None)
            .map(|(bytes, _)| bytes)
    }

    #[test]
    fn sections_are_aligned_as_their_variables() {
        let initialised = |name: &str, align: u32, size: u64| {
            let init = Some(Init { bytes: vec![1], ..Init::default() });
            Variable { align, size, ..variable(name, Space::Global, init) }
        };
        let bytes = module(90, vec![initialised("a", 1, 3), initialised("b", 64, 3)]).unwrap();
        let file = ElfFile64::<Endianness>::parse(&*bytes).unwrap();
        assert_eq!(file.section_by_name(".nv.global.init").unwrap().align(), 64);
        let at = |name: &str| file.symbols().find(|s| s.name() == Ok(name)).unwrap().address();
        assert_eq!((at("a"), at("b")), (3, 0));
        // Neither creates a file of gigabytes.
        assert!(module(90, vec![initialised("a", 1 << 31, 3)]).is_err());
        assert!(module(90, vec![initialised("a", 1, 1 << 40)]).is_err());
        assert!(module(90, vec![initialised("a", 1, 3), initialised("b", 1, u64::MAX)]).is_err());
    }

    #[test]
    fn objects_leave_places_to_the_linker() {
        let foreign =
            Variable { linkage: Linkage::Extern, size: 4, ..variable("foreign", Space::Global, None) };
        let reference = crate::input::InitReloc {
            at: 0,
            symbol: Name::Global(0),
            addend: 0,
            generic: true,
            size: 8,
            byte: 0,
        };
        let pointer = variable(
            "pointer",
            Space::Global,
            Some(Init { bytes: vec![0; 8], relocs: vec![reference], ..Init::default() }),
        );
        let unused = Variable { name: "unused".into(), ..foreign.clone() };
        let shared = variable("words", Space::Shared, None);
        for sm in [75, 80, 90, 100] {
            let variables = vec![foreign.clone(), pointer.clone(), shared.clone(), unused.clone()];
            let bytes = made(sm, variables, Linking::Object).unwrap();
            let file = ElfFile64::<Endianness>::parse(&*bytes).unwrap();
            assert_eq!(file.kind(), ::object::ObjectKind::Relocatable);
            let symbol = |name: &str| file.symbols().find(|s| s.name() == Ok(name));
            assert!(symbol("foreign").unwrap().is_undefined());
            assert!(symbol("unused").unwrap().is_undefined());
            // The symbol has no place yet; its value is its alignment.
            assert_eq!(symbol("words").unwrap().address(), 8);
            assert!(symbol("kernel").is_some());
            let initial = file.section_by_name(".rela.nv.global.init").unwrap();
            assert_eq!(initial.size(), 24);
            assert_eq!(file.section_by_name(".nv.callgraph").unwrap().size(), 32);
        }
    }

    /// The linker needs the size and the alignment of a variable that it merges with others of its name.
    #[test]
    fn objects_leave_common_variables_to_the_linker() {
        let common =
            |name: &str| Variable { linkage: Linkage::Common, ..variable(name, Space::Global, None) };
        let init = Some(Init { bytes: vec![1], ..Init::default() });
        let variables = vec![common("merged"), Variable { init, ..common("defined") }];
        for sm in [75, 90] {
            let bytes = made(sm, variables.clone(), Linking::Object).unwrap();
            let file = ElfFile64::<Endianness>::parse(&*bytes).unwrap();
            let symbol = |name: &str| file.symbols().find(|s| s.name() == Ok(name)).unwrap();
            assert!(symbol("merged").is_common() && symbol("merged").is_global());
            let alignment = symbol("merged").elf_symbol().st_value.get(Endianness::Little);
            assert_eq!((alignment, symbol("merged").size()), (8, 8));
            assert!(symbol("defined").section_index().is_some() && !symbol("defined").is_weak());
            // In an executable, the variable has memory.
            let bytes = module(sm, variables.clone()).unwrap();
            let file = ElfFile64::<Endianness>::parse(&*bytes).unwrap();
            assert!(file.symbols().any(|s| s.name() == Ok("merged") && s.section_index().is_some()));
        }
    }

    #[test]
    fn reads_back() {
        for &sm in &Sm::COMPILED {
            let bytes = sample(sm);
            let file = ElfFile64::<Endianness>::parse(&*bytes).unwrap();
            let header = file.elf_header();
            assert_eq!(header.e_flags(Endianness::Little).0 >> 8 & 0xff, u32::from(sm));
            assert_eq!(header.e_flags(Endianness::Little).0 & 0xff, if sm < 100 { 4 } else { 2 });
            let text = file.section_by_name(".text.kernel").unwrap();
            assert_eq!(text.size(), 128);
            assert_eq!(text.align(), 128);
            let info = text.elf_section_header().sh_info(Endianness::Little);
            let kernel = file.symbols().find(|s| s.name() == Ok("kernel")).unwrap();
            assert_eq!(info & 0xff_ffff, kernel.index().0 as u32);
            assert_eq!(info >> 24, if sm < 90 { 10 } else { 0 }, "sm_{sm}");
            let zeroed = file.symbols().find(|s| s.name() == Ok("zeroed")).unwrap();
            assert_eq!(zeroed.size(), 8);
            let constants = file.section_by_name(".nv.constant3").unwrap();
            assert_eq!(constants.data().unwrap(), [1, 2, 0, 0, 0, 0, 0, 0]);
            assert_eq!(constants.align(), 8, "that of the variable");
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
