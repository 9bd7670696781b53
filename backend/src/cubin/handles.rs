//! Texture, sampler and surface variables. They are symbols without an address; the driver writes their indices into
//! the constant bank of each kernel.

use super::data::{Referent, Reloc};
use super::elf::{Binding, Image, Symbol, SymbolId, SymbolKind};
use super::numbers::{
    R_CUDA_SAMP_HEADER_INDEX, R_CUDA_SAMP_HEADER_INDEX_0, R_CUDA_SURF_HEADER_INDEX, R_CUDA_TEX_HEADER_INDEX,
};
use super::relocations::PARAMETERS;
use super::{LinkFunction, Linker};
use crate::input::Symbol as Name;
use crate::layout;
use ptx_isa::ScalarType;

impl Linker<'_> {
    /// A kernel's words for handles: the offset in the constant bank, the variable, and its kind.
    fn handles(&self, f: &LinkFunction<'_>) -> Vec<(u32, u32, ScalarType)> {
        let variable = |(at, symbol)| match symbol {
            Name::Global(i) => Some((at, i, layout::opaque(self.env, symbol)?)),
            _ => None,
        };
        f.code.attributes.handles.places().filter_map(variable).collect()
    }

    /// The kinds of the handles that a kernel uses.
    pub(super) fn handle_kinds(&self, f: &LinkFunction<'_>) -> Vec<ScalarType> {
        self.handles(f).into_iter().map(|(.., kind)| kind).collect()
    }

    /// The relocations of each kernel's constant bank 0, with the name of its section.
    pub(super) fn handle_relocations(&self) -> Vec<(String, Vec<Reloc>)> {
        let sampler = match self.target.uniform_handles {
            true => R_CUDA_SAMP_HEADER_INDEX_0,
            false => R_CUDA_SAMP_HEADER_INDEX,
        };
        let of_kernel = |f: &LinkFunction<'_>| {
            let relocs = self.handles(f).into_iter().rev().map(|(at, variable, kind)| {
                let kind = match kind {
                    ScalarType::SamplerRef => sampler,
                    ScalarType::SurfRef => R_CUDA_SURF_HEADER_INDEX,
                    _ => R_CUDA_TEX_HEADER_INDEX,
                };
                Reloc { at: at.into(), symbol: Referent::Variable(variable), kind, addend: 0 }
            });
            (format!("{PARAMETERS}{}", f.code.name), relocs.collect())
        };
        self.functions.iter().map(of_kernel).filter(|(_, relocs): &(_, Vec<_>)| !relocs.is_empty()).collect()
    }

    /// Adds the symbols of the variables that kernels use, and records their symbol indices.
    pub(super) fn handle_symbols(&self, symbols: &mut Vec<Symbol>, variables: &mut [SymbolId]) {
        for (_, variable, kind) in self.functions.iter().flat_map(|f| self.handles(f)) {
            let id = &mut variables[variable as usize];
            if id.0 != 0 {
                continue;
            }
            *id = Image::symbol_id(symbols.len());
            symbols.push(Symbol {
                name: self.env.variables[variable as usize].name.clone(),
                section: None,
                binding: Binding::Global,
                kind: match kind {
                    ScalarType::SamplerRef => SymbolKind::Sampler,
                    ScalarType::SurfRef => SymbolKind::Surface,
                    _ => SymbolKind::Texture,
                },
                other: 0,
                value: 0,
                size: 0,
            });
        }
    }
}
