//! Objects: functions and variables with `.attribute(.unified(…))`, which have the same address in all programs.
//!
//! Addresses of unified functions are those of entries in a table. Each entry is a stub that jumps to the function; nvlink
//! collects the stubs of all objects in `.nv.uft` and orders them as an index file states. Unified variables are in
//! `.nv.udt` instead of `.nv.global`. The sections `.nv.uft.entry` and `.nv.udt.entry` state the numbers of both.

use super::elf::{Body, Image, SectionId, SymbolId};
use super::info::{Attribute, Records};
use super::linkable::Named;
use super::numbers::{SHF_ALLOC, SHF_EXEC, SHT_CUDA_UDT_ENTRY, SHT_CUDA_UFT, SHT_CUDA_UFT_ENTRY};
use super::{LinkFunction, Linker};
use crate::assemble;
use crate::input::{UnifiedId, Variable};
use rustc_hash::FxHashMap;
use sass::{Field, Inst};

/// Symbols that the linker defines for the tables of unified functions and variables.
pub(super) const TABLES: [&str; 8] = [
    "__UDT_OFFSET",
    "__UFT_OFFSET",
    "__UFT_CANONICAL",
    "__UDT_CANONICAL",
    "__UFT",
    "__UDT",
    "__UFT_END",
    "__UDT_END",
];
/// The size of a stub, and so that of an entry of the table.
pub(super) const STUB_BYTES: u64 = 128;
/// The size of an entry of `.nv.uft.entry` and `.nv.udt.entry`.
const ENTRY_BYTES: u64 = 32;
/// The sections of the entries.
pub(super) const UFT_ENTRY: &str = ".nv.uft.entry";
pub(super) const UDT_ENTRY: &str = ".nv.udt.entry";
/// Cycles until the instruction after a jump could issue.
const JUMP_STALL: u8 = 5;
/// The number in an entry that states that the symbol is defined in this object.
const DEFINED: u32 = 1;

/// The section of a function's stub.
pub(super) fn stub_section(function: &str) -> String {
    format!(".nv.uft.rel.{function}")
}

pub(super) fn stub_name(function: &str) -> String {
    format!("__cuda_uf_stub_{function}")
}

/// An entry of `.nv.uft.entry` or `.nv.udt.entry`: the symbol, whether it is defined, its offset in `.nv.udt`, and the
/// numbers of the attribute.
fn entry(symbol: SymbolId, offset: u64, id: UnifiedId) -> Vec<u8> {
    let words = [u64::from(DEFINED) << 32 | u64::from(symbol.0), offset, id[0], id[1]];
    words.into_iter().flat_map(u64::to_le_bytes).collect()
}

impl Linker<'_> {
    /// The functions with code that are unified, by their indices among those linked, with the numbers of the attribute. The
    /// first declaration of a name states them.
    fn unified(&self) -> Vec<(usize, UnifiedId)> {
        let declared = self.env.functions.iter().rev();
        let ids: FxHashMap<&str, _> = declared.map(|f| (f.name.as_str(), f.unified)).collect();
        let id = |f: &LinkFunction<'_>| ids.get(f.code.name.as_str()).copied().flatten();
        self.functions.iter().enumerate().filter_map(|(i, f)| Some((i, id(f)?))).collect()
    }

    /// The functions with code that are unified, by their indices among those linked.
    pub(super) fn unified_functions(&self) -> Vec<usize> {
        self.unified().into_iter().map(|(i, _)| i).collect()
    }

    /// A section with the code of a stub. It jumps to the function with a call that keeps the return address; the linker
    /// fills in the target.
    pub(super) fn stub(&mut self, function: &str) -> SectionId {
        let sm = sass::Sm(self.options.sm.number as u8);
        let form = sass::lookup(sm, "CALL.ABS", "").expect("every generation has the form");
        let mut call = Inst::new(form);
        call.set(Field::Flag, 1);
        call.control.stall = JUMP_STALL;
        let mut insts = vec![(call, None)];
        assemble::close(sm, &mut insts);
        let words = insts.iter().map(|(inst, _)| sass::encode(sm, inst));
        let bytes = words.flat_map(|word| word.expect("the fields are in range").to_le_bytes()).collect();
        let flags = SHF_ALLOC | SHF_EXEC;
        let mut section = Self::plain(stub_section(function), SHT_CUDA_UFT, flags, STUB_BYTES, bytes);
        section.entry_size = STUB_BYTES;
        section.link = Image::SYMTAB;
        self.image.add_section(section)
    }

    /// The properties of a stub.
    pub(super) fn stub_records(&self) -> Vec<u8> {
        let mut records = Records::default();
        records.half(Attribute::UftStub, 1);
        self.version_record(&mut records);
        if self.target.cubin.counts_initial_blocks {
            records.byte(Attribute::VrcCtaInitCount, 0);
        }
        records.words(Attribute::SwWar, &[self.target.cubin.workaround.unwrap_or(0)]);
        records.into_bytes()
    }

    /// The sections for the entries of functions and of variables, if there are any.
    pub(super) fn entry_sections(&mut self) -> [Option<SectionId>; 2] {
        let any = [!self.unified_functions().is_empty(), self.unified_variables().next().is_some()];
        let kinds = [(UFT_ENTRY, SHT_CUDA_UFT_ENTRY), (UDT_ENTRY, SHT_CUDA_UDT_ENTRY)];
        let mut add = |at: usize| {
            let (name, kind) = kinds[at];
            any[at].then(|| self.section(name, kind, 0, 8, ENTRY_BYTES))
        };
        [add(0), add(1)]
    }

    /// The unified variables of this object, by their indices in the module.
    pub(super) fn unified_variables(&self) -> impl Iterator<Item = (u32, &Variable)> {
        (0..).zip(&self.env.variables).filter(|(_, v)| v.unified.is_some() && self.has_place(v))
    }

    /// Writes the entries of functions and of variables.
    pub(super) fn fill_entries(&mut self, sections: [Option<SectionId>; 2], id: &dyn Fn(Named) -> SymbolId) {
        let of_functions = self.unified().into_iter();
        let of_functions = of_functions.map(|(i, numbers)| entry(id(Named::Own(i)), 0, numbers)).collect();
        let of_variables = self.unified_variables().filter_map(|(i, v)| {
            let (_, offset) = self.places[i as usize]?;
            Some(entry(id(Named::Variable(i)), offset, v.unified?))
        });
        let entries: [Vec<Vec<u8>>; 2] = [of_functions, of_variables.collect()];
        for (section, entries) in sections.into_iter().zip(entries) {
            if let Some(section) = section {
                self.image.section_mut(section).body = Body::Bytes(entries.concat());
            }
        }
    }
}
