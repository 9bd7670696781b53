//! The data sections: contents of variables and addresses of variables.

use super::Linker;
use super::elf::SectionId;
use super::numbers::{ADDRESS, KERNEL_ADDRESS, R_CUDA_64, R_CUDA_G8_0, R_CUDA_G64};
use crate::CodegenError;
use crate::input::{Init, InitReloc, Linkage, SrcId, Symbol as Name, Variable};
use crate::layout::{self, Slot};
use crate::ori::op::Descriptors;
use crate::target::AddressRelocations;
use ptx_isa::Space;
use std::cmp::Reverse;

/// The largest alignment. A section starts at a multiple of its alignment in the file, so a larger alignment would make
/// the file too long.
const MOST_ALIGN: u64 = 1 << 20;
/// The maximum size of the initialized data of a module.
const MOST_BYTES: u64 = 1 << 30;

/// The relocations for the address of a variable, and for its lowest byte.
const GENERIC: [u32; 2] = [R_CUDA_G64, R_CUDA_G8_0];

/// The contents of a data section.
#[derive(Default)]
pub(super) struct Data {
    pub(super) bytes: Vec<u8>,
    pub(super) relocs: Vec<Reloc>,
}

impl Data {
    /// The section, unless it is empty.
    fn if_any(self) -> Option<Data> {
        (!self.bytes.is_empty()).then_some(self)
    }
}

/// A relocation of a section under construction.
#[derive(Clone, Copy)]
pub(super) struct Reloc {
    pub(super) at: u64,
    pub(super) symbol: Referent,
    pub(super) kind: u32,
    pub(super) addend: i64,
}

#[derive(Clone, Copy)]
pub(super) enum Referent {
    Variable(u32),
    Kernel(usize),
    /// A variable in the body of a function, by the function's index among those linked.
    Local(usize, u32),
    /// A driver function, or a function of another module.
    Extern(Slot),
    /// A kernel parameter that is a texture, a sampler or a surface.
    Handle(usize, u32),
    /// The size of an entry of a driver table.
    EntrySize(Descriptors),
    /// A section of an object, by its index among the sections that other sections refer to.
    Section(usize),
}

pub(super) struct Globals {
    pub(super) initialised: Option<Data>,
    pub(super) init_align: u64,
    pub(super) zeroed_bytes: u64,
    pub(super) zeroed_align: u64,
    /// Unified variables of an object, with and without initial values.
    pub(super) unified: Option<Data>,
    pub(super) unified_align: u64,
}

/// The relocation type for a whole address or for one of its bytes. The types for the bytes are consecutive, lowest
/// byte first.
fn kind_of(v: &Variable, reloc: &InitReloc, [whole, lowest]: [u32; 2]) -> Result<u32, CodegenError> {
    match (reloc.size, reloc.byte) {
        (8, 0) => Ok(whole),
        (1, byte @ 0..8) => Ok(lowest + u32::from(byte)),
        (size, _) => {
            let what = format!("a {size}-byte address in the initializer of '{}'", v.name);
            Err(CodegenError::unsupported(SrcId(0), what))
        }
    }
}

/// The alignment of a variable, unless it would make the file too long.
fn alignment(v: &Variable) -> Result<u64, CodegenError> {
    let align = u64::from(v.align.max(1));
    if align > MOST_ALIGN {
        return Err(CodegenError::unsupported(
            SrcId(0),
            format!("the alignment of '{}' to {align} bytes", v.name),
        ));
    }
    Ok(align)
}

/// Checks that the file has room for the initial value of a variable at offset `at` of its section.
fn check_size(at: u64, v: &Variable) -> Result<(), CodegenError> {
    if at > MOST_BYTES || v.size > MOST_BYTES - at {
        return Err(CodegenError::Limit {
            at: SrcId(0),
            what: format!("initialized variables exceed {MOST_BYTES} bytes at '{}'", v.name),
        });
    }
    Ok(())
}

impl Linker<'_> {
    /// Whether the linker allocates a variable, and merges those of all objects that have its name. An initialized
    /// `.common` variable is a definition like any other.
    pub(super) fn is_merged(&self, v: &Variable) -> bool {
        self.options.linking.is_object() && v.linkage == Linkage::Common && v.init.is_none()
    }

    /// Whether a variable is a global variable with memory in this file.
    pub(super) fn has_place(&self, v: &Variable) -> bool {
        let is_elsewhere = v.linkage == Linkage::Extern || self.is_merged(v);
        v.space == Space::Global && !is_elsewhere && !v.is_opaque()
    }

    /// The number of a kernel of this file, which is given by its index in [`Env::functions`](crate::input::Env).
    pub(super) fn kernel(&self, function: u32) -> Option<usize> {
        let declared = self.env.functions.get(function as usize).filter(|declared| declared.entry)?;
        self.functions.iter().position(|f| f.input.entry && f.code.name == declared.name)
    }

    /// The relocations of the address of a function with a section of its own.
    pub(super) fn function_address(&self, function: u32) -> AddressRelocations {
        match self.env.functions.get(function as usize) {
            Some(signature) if signature.entry => KERNEL_ADDRESS,
            _ if !self.options.linking.is_object() => ADDRESS,
            _ => self.target.cubin.function_address,
        }
    }

    /// Appends a variable's bytes at offset `at` of a section, and its relocations. `kinds`: the relocations for the
    /// address of a variable and for its lowest byte.
    fn append_variable(
        &self,
        data: &mut Data,
        at: u64,
        v: &Variable,
        kinds: [u32; 2],
    ) -> Result<(), CodegenError> {
        data.bytes.resize(at as usize, 0);
        let empty = Init::default();
        let init = v.init.as_ref().unwrap_or(&empty);
        data.bytes.extend(&init.bytes);
        data.bytes.resize((at + v.size) as usize, 0);
        for reloc in &init.relocs {
            let symbol = match reloc.symbol {
                Name::Global(symbol) => symbol,
                Name::Function(function)
                    if !self.options.linking.is_joined() || self.kernel(function).is_some() =>
                {
                    let kinds = self.function_address(function);
                    let kind = kind_of(v, reloc, [kinds.whole, kinds.lowest_byte])?;
                    let own = self.function(function).filter(|_| !self.options.linking.is_object());
                    let symbol = own.map_or(Referent::Extern(Slot::Function(function)), Referent::Kernel);
                    data.relocs.push(Reloc { at: at + reloc.at, symbol, kind, addend: reloc.addend });
                    continue;
                }
                Name::Function(function) => {
                    let number = self.program.address(function).ok_or_else(|| {
                        let what = format!("a function in the initializer of '{}' has no number", v.name);
                        CodegenError::internal(SrcId(0), "cubin", what)
                    })?;
                    let bytes = u64::from(number).wrapping_add_signed(reloc.addend).to_le_bytes();
                    let start = (at + reloc.at) as usize;
                    let (size, first) = (usize::from(reloc.size), usize::from(reloc.byte));
                    let field = data.bytes.get_mut(start..start + size);
                    let (Some(field), Some(bytes)) = (field, bytes.get(first..first + size)) else {
                        let what = format!("an address outside of '{}'", v.name);
                        return Err(CodegenError::internal(SrcId(0), "cubin", what));
                    };
                    field.copy_from_slice(bytes);
                    continue;
                }
                _ => {
                    let what = format!("the address of a parameter in the initializer of '{}'", v.name);
                    return Err(CodegenError::unsupported(SrcId(0), what));
                }
            };
            let kind = kind_of(v, reloc, kinds)?;
            let symbol = Referent::Variable(symbol);
            data.relocs.push(Reloc { at: at + reloc.at, symbol, kind, addend: reloc.addend });
        }
        Ok(())
    }

    /// Bank 4: the addresses of all global variables, and of the functions whose addresses kernels read.
    pub(super) fn address_slots(&self) -> Result<Option<Data>, CodegenError> {
        let mut symbols: Vec<Slot> =
            self.functions.iter().flat_map(|f| f.code.attributes.symbols.iter().copied()).collect();
        let globals = (0..).zip(&self.env.variables).filter(|(_, v)| self.has_place(v));
        // A variable that is neither defined nor read needs no slot.
        symbols.extend(globals.map(|(i, _)| Slot::Global(i)).take(layout::BANK_BYTES as usize / 8));
        symbols.sort_unstable();
        symbols.dedup();
        let mut relocs = Vec::new();
        for symbol in symbols {
            let referent = match symbol {
                Slot::Global(i) => Referent::Variable(i),
                Slot::Function(_) | Slot::Driver(_) => Referent::Extern(symbol),
            };
            let at = layout::address_slot(self.env, symbol).ok_or_else(|| CodegenError::Limit {
                at: SrcId(0),
                what: "more global variables than constant bank 4 has room for".into(),
            })?;
            let kind = match symbol {
                Slot::Function(i) if self.kernel(i).is_some() => KERNEL_ADDRESS.whole,
                _ => R_CUDA_64,
            };
            relocs.push(Reloc { at: u64::from(at), symbol: referent, kind, addend: 0 });
        }
        let Some(last) = relocs.iter().map(|r| r.at).max() else { return Ok(None) };
        relocs.reverse();
        Ok(Some(Data { bytes: vec![0; last as usize + 8], relocs }))
    }

    pub(super) fn constant_data(&mut self) -> Result<Option<Data>, CodegenError> {
        let mut data = Data::default();
        let env = self.env;
        for (at, i) in layout::const_layout(env) {
            let v = &env.variables[i as usize];
            if at.saturating_add(v.size) > layout::BANK_BYTES {
                return Err(CodegenError::Limit {
                    at: SrcId(0),
                    what: format!("constant variables exceed {} bytes at '{}'", layout::BANK_BYTES, v.name),
                });
            }
            alignment(v)?;
            self.places[i as usize] = Some((SectionId(0), at));
            self.append_variable(&mut data, at, v, GENERIC)?;
        }
        Ok(data.if_any())
    }

    /// The alignment of bank 3: the largest alignment of its variables.
    pub(super) fn constant_align(&self) -> u64 {
        let constants = self.env.variables.iter().filter(|v| v.space == Space::Const);
        constants.map(|v| u64::from(v.align)).fold(1, u64::max)
    }

    /// The global data sections. Variables with larger alignment come first, as in files of ptxas, so that there is
    /// little padding.
    pub(super) fn global_data(&mut self) -> Result<Globals, CodegenError> {
        let env = self.env;
        let mut data = Data::default();
        let (mut init_align, mut zeroed_bytes, mut zeroed_align) = (1u64, 0u64, 1u64);
        let mut globals: Vec<(usize, &Variable)> =
            env.variables.iter().enumerate().filter(|(_, v)| self.has_place(v)).collect();
        globals.sort_by_key(|(_, v)| Reverse(v.align));
        let is_unified = |v: &Variable| self.options.linking.is_object() && v.unified.is_some();
        let (mut unified, globals): (Vec<_>, Vec<_>) = globals.into_iter().partition(|(_, v)| is_unified(v));
        unified.sort_by_key(|(i, v)| (v.linkage == Linkage::Internal, *i));
        let mut unified_data = Data::default();
        let unified_align = unified.iter().map(|(_, v)| u64::from(v.align)).fold(1, u64::max);
        let kinds = self.target.cubin.function_address;
        for (i, v) in unified {
            let at = (unified_data.bytes.len() as u64).next_multiple_of(alignment(v)?);
            check_size(at, v)?;
            self.append_variable(&mut unified_data, at, v, [kinds.whole, kinds.lowest_byte])?;
            self.places[i] = Some((SectionId(0), at));
        }
        for (i, v) in globals {
            let align = alignment(v)?;
            let at = if v.init.is_some() {
                let at = (data.bytes.len() as u64).next_multiple_of(align);
                check_size(at, v)?;
                self.append_variable(&mut data, at, v, GENERIC)?;
                init_align = init_align.max(align);
                at
            } else {
                let at = zeroed_bytes.next_multiple_of(align);
                zeroed_bytes = at.saturating_add(v.size);
                zeroed_align = zeroed_align.max(align);
                at
            };
            self.places[i] = Some((SectionId(0), at));
        }
        Ok(Globals {
            initialised: data.if_any(),
            init_align,
            zeroed_bytes,
            zeroed_align,
            unified: unified_data.if_any(),
            unified_align,
        })
    }
}
