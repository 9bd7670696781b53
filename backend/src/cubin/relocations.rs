//! Relocations of data and of the frame description.

use super::data::{Referent, Reloc};
use super::elf::{Body, Image, SectionId, SymbolId};
use super::numbers::{ADDRESS, R_CUDA_ABS32_32, SHF_INFO, SHT_REL, SHT_RELA};
use super::sections::{About, Loaded};
use super::symbols::Names;
use super::{LinkFunction, Linker};
use crate::assemble::LinkTo;
use crate::input::Symbol;
use crate::ori::op::Link;

/// The name of a kernel's constant bank 0, without the name of the kernel.
pub(super) const PARAMETERS: &str = ".nv.constant0.";

/// The name of a kernel's code section, without the name of the kernel.
const CODE: &str = ".text.";

/// A relocation section whose entries are written when the symbols are known.
pub(super) struct PendingRelocs<'n> {
    section: SectionId,
    with_addends: bool,
    relocs: Vec<Reloc>,
    /// The name of the section that the entries apply to.
    of: &'n str,
}

/// Bytes of an instruction.
const WORD: u64 = 16;

impl Linker<'_> {
    /// The relocations of each section of code, with the name of the section: sizes of entries of driver tables, and the
    /// addresses of functions with sections of their own.
    pub(super) fn code_relocations(&self) -> Vec<(String, Vec<Reloc>)> {
        let of_function = |(own, f): (usize, &LinkFunction<'_>)| {
            let relocs = f.code.links.iter().filter_map(|link| {
                let (symbol, kind, addend) = match link.to {
                    LinkTo::EntrySize(table) => (Referent::EntrySize(table), R_CUDA_ABS32_32, 0),
                    LinkTo::Function(i) => {
                        (Referent::Kernel(self.function(i)?), self.target.cubin.call_relocation, 0)
                    }
                    LinkTo::Return { place, high } => {
                        (Referent::Kernel(own), ADDRESS.half(high), i64::from(place) * WORD as i64)
                    }
                    LinkTo::Symbol(Link { symbol: Symbol::Function(i), offset, high }) => {
                        (Referent::Kernel(self.function(i)?), ADDRESS.half(high), offset.into())
                    }
                    _ => return None,
                };
                Some(Reloc { at: u64::from(link.at) * WORD, symbol, kind, addend })
            });
            (format!("{CODE}{}", f.code.name), relocs.collect())
        };
        let all = self.functions.iter().enumerate().map(of_function);
        all.filter(|(_, relocs): &(_, Vec<_>)| !relocs.is_empty()).collect()
    }

    /// The function with a section of its own that an index in the module names, by its name or an alias.
    pub(super) fn function(&self, index: u32) -> Option<usize> {
        self.by_name.get(self.program.stands_for(index)?).copied()
    }

    /// Adds placeholders for the relocations of a section. Relocations with and without addends are in separate
    /// sections if the target requires it.
    pub(super) fn relocation_sections<'n>(
        &mut self,
        name: &'n str,
        relocs: &[Reloc],
    ) -> Vec<PendingRelocs<'n>> {
        let mut out = Vec::new();
        for with_addends in [true, false] {
            let mine: Vec<Reloc> = relocs
                .iter()
                .filter(|r| (self.target.cubin.rela || r.addend != 0) == with_addends)
                .copied()
                .collect();
            if mine.is_empty() {
                continue;
            }
            let (prefix, kind, entry_size) =
                if with_addends { (".rela", SHT_RELA, 24) } else { (".rel", SHT_REL, 16) };
            let mut section = Self::plain(format!("{prefix}{name}"), kind, SHF_INFO, 8, Vec::new());
            // The size is known now, so later sections can be placed.
            section.body = Body::Bytes(vec![0; mine.len() * entry_size as usize]);
            section.link = Image::SYMTAB;
            section.entry_size = entry_size;
            let section = self.image.add_section(section);
            out.push(PendingRelocs { section, with_addends, relocs: mine, of: name });
        }
        out
    }

    pub(super) fn fill_relocations(
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
                    Referent::Extern(function) => {
                        let found = names.externs.iter().find(|(name, _)| *name == function);
                        found.map_or(SymbolId(0), |(_, id)| *id)
                    }
                    Referent::Handle(kernel, param) => names.handle(kernel, param),
                    Referent::EntrySize(table) => names
                        .entry_sizes
                        .iter()
                        .find(|(named, _)| *named == table)
                        .map_or(SymbolId(0), |(_, id)| *id),
                    // In executables, references to sections and to shared variables are resolved.
                    Referent::Section(_) | Referent::Local(..) => SymbolId(0),
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
                ".debug_frame" => Some(about.frame),
                _ if of.starts_with(PARAMETERS) => {
                    let own = |f: &LinkFunction<'_>| of.strip_prefix(PARAMETERS) == Some(&*f.code.name);
                    self.functions.iter().position(own).and_then(|i| loaded.parameters[i])
                }
                _ if of.starts_with(CODE) => {
                    let own = |f: &LinkFunction<'_>| of.strip_prefix(CODE) == Some(&*f.code.name);
                    self.functions.iter().position(own).map(|i| loaded.text[i])
                }
                _ => about.lines.iter().find(|(name, _)| *name == of).map(|&(_, section)| section),
            };
            let section = self.image.section_mut(section);
            section.info = applies_to.map_or(0, |s| s.0);
            section.body = Body::Bytes(bytes);
        }
    }
}
