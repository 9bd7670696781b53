//! Texture, sampler and surface variables. They are symbols without an address; the driver writes their indices into
//! the constant bank of each kernel.

use super::data::{Referent, Reloc};
use super::elf::{Binding, Image, SectionId, Symbol, SymbolId, SymbolKind};
use super::info::{Attribute, Records};
use super::numbers::{
    R_CUDA_SAMP_HEADER_INDEX, R_CUDA_SAMP_HEADER_INDEX_0, R_CUDA_SURF_HEADER_INDEX, R_CUDA_TEX_HEADER_INDEX,
};
use super::relocations::PARAMETERS;
use super::{LinkFunction, Linker};
use crate::assemble::LinkTo;
use crate::input::{Sampling, Symbol as Name};
use crate::layout;
use crate::ori::op::Descriptors;
use ptx_isa::ScalarType;

/// Bytes of an instruction.
const WORD: u64 = 16;

/// The symbol of a texture, a sampler or a surface.
pub(super) fn handle_symbol(
    name: String,
    kind: ScalarType,
    section: Option<SectionId>,
    binding: Binding,
) -> Symbol {
    let kind = match kind {
        ScalarType::SamplerRef => SymbolKind::Sampler,
        ScalarType::SurfRef => SymbolKind::Surface,
        _ => SymbolKind::Texture,
    };
    Symbol { name, section, binding, kind, other: 0, value: 0, size: 0 }
}

/// The instructions of the code that contain the size of a driver table's entry.
fn entry_sizes<'f>(f: &LinkFunction<'f>) -> impl Iterator<Item = (u64, Descriptors)> + 'f {
    f.code.links.iter().filter_map(|link| match link.to {
        LinkTo::EntrySize(table) => Some((u64::from(link.at) * WORD, table)),
        _ => None,
    })
}

impl Linker<'_> {
    /// The handle words of a kernel: the offset in the constant bank, the variable or parameter, and its kind.
    fn handles(&self, f: &LinkFunction<'_>) -> Vec<(u32, Name, ScalarType)> {
        let named = |(at, symbol)| Some((at, symbol, layout::opaque(self.env, f.input, symbol)?));
        f.code.attributes.handles.places().filter_map(named).collect()
    }

    /// The kinds of handles that a kernel, or a function of an object, uses.
    pub(super) fn handle_kinds(&self, f: &LinkFunction<'_>) -> Vec<ScalarType> {
        let linked = f.code.links.iter().filter_map(|link| match link.to {
            LinkTo::Symbol(link) => layout::opaque(self.env, f.input, link.symbol),
            _ => None,
        });
        self.handles(f).into_iter().map(|(.., kind)| kind).chain(linked).collect()
    }

    /// The relocations of each kernel's constant bank 0, with the name of the bank's section.
    pub(super) fn handle_relocations(&self) -> Vec<(String, Vec<Reloc>)> {
        let sampler = match self.target.uniform_handles {
            true => R_CUDA_SAMP_HEADER_INDEX_0,
            false => R_CUDA_SAMP_HEADER_INDEX,
        };
        let of_kernel = |(kernel, f): (usize, &LinkFunction<'_>)| {
            let relocs = self.handles(f).into_iter().rev().filter_map(|(at, named, kind)| {
                let kind = match kind {
                    ScalarType::SamplerRef => sampler,
                    ScalarType::SurfRef => R_CUDA_SURF_HEADER_INDEX,
                    _ => R_CUDA_TEX_HEADER_INDEX,
                };
                let symbol = match named {
                    Name::Global(variable) => Referent::Variable(variable),
                    Name::Param(param) => Referent::Handle(kernel, param),
                    _ => return None,
                };
                Some(Reloc { at: at.into(), symbol, kind, addend: 0 })
            });
            (format!("{PARAMETERS}{}", f.code.name), relocs.collect())
        };
        self.functions
            .iter()
            .enumerate()
            .map(of_kernel)
            .filter(|(_, relocs): &(_, Vec<_>)| !relocs.is_empty())
            .collect()
    }

    /// The driver tables whose entry sizes the code uses.
    pub(super) fn described(&self) -> Vec<Descriptors> {
        let mut all: Vec<Descriptors> =
            self.functions.iter().flat_map(|f| entry_sizes(f)).map(|(_, table)| table).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The variables that are handles, by their indices. Each has a symbol, by which the program that launches the
    /// kernels finds it, even if no kernel uses it.
    pub(super) fn handle_variables(&self) -> impl Iterator<Item = (u32, Symbol)> {
        let handles = (0..).zip(&self.env.variables).filter(|(_, v)| v.is_opaque());
        handles.map(|(i, v)| (i, handle_symbol(v.name.clone(), v.ty, None, Binding::Global)))
    }

    /// Adds the records of the module's texture mode and of its samplers.
    pub(super) fn sampler_records(&self, records: &mut Records, id: impl Fn(u32) -> SymbolId) {
        const UNSTATED: u8 = 0xff;
        for (i, v) in (0..).zip(&self.env.variables).filter(|(_, v)| v.ty == ScalarType::SamplerRef) {
            let Sampling { modes, unnormalized } =
                v.init.as_ref().map_or(Sampling::default(), |init| init.sampling);
            if let Some(value) = unnormalized {
                records.words(Attribute::SamplerForceUnnormalized, &[id(i).0, value as u32]);
            }
            let modes = modes.map(|mode| mode.unwrap_or(UNSTATED));
            records.words(Attribute::SamplerInit, &[id(i).0, u32::from_le_bytes(modes)]);
        }
        if self.env.independent_samplers {
            records.flag(Attribute::TexmodeIndependent);
        }
    }

    /// Adds the symbols of a kernel's handle parameters. They belong to the section of its code.
    pub(super) fn parameter_symbols(
        &self,
        kernel: usize,
        section: SectionId,
        symbols: &mut Vec<Symbol>,
        ids: &mut Vec<(usize, u32, SymbolId)>,
    ) {
        let params = (0..).zip(&self.functions[kernel].input.params);
        for (i, param) in params.filter(|(_, param)| param.is_opaque()) {
            ids.push((kernel, i, Image::symbol_id(symbols.len())));
            symbols.push(handle_symbol(param.name.clone(), param.ty, Some(section), Binding::Local));
        }
    }
}
