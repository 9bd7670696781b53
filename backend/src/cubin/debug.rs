//! Debug sections of the PTX text, such as `.section .debug_info`, copied to the cubin.
//!
//! The front end supplies the bytes and the names in them. Names of code and variables become relocations, as in the
//! files of ptxas. In objects, names of sections also become relocations, because the linker concatenates sections with
//! the same name.

use super::data::{Referent, Reloc};
use super::note::Saved;
use super::numbers::{R_CUDA_32, R_CUDA_64, R_CUDA_G64};
use crate::input::{Symbol, Variable};
use crate::ori::ir::{File, Reg};
use ptx_isa::Space;
use sass::{Field, RegFile, Sm};

/// The debug data of a module.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Debug {
    pub sections: Vec<DebugSection>,
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DebugSection {
    /// The name of the section, with its dot.
    pub name: String,
    pub bytes: Vec<u8>,
    pub references: Vec<Reference>,
}

/// A field whose value is known only when the file is linked or loaded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reference {
    pub at: u64,
    pub to: Referred,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Referred {
    /// Eight bytes: an offset in the code of a kernel (in objects, of a function). The kernel is an index among the
    /// linked functions.
    Code { function: usize, offset: u64 },
    /// Eight bytes: a variable of the module.
    Variable(u32),
    /// Eight bytes: a shared variable in the body of a function.
    Local { function: usize, variable: u32 },
    /// Four bytes: an offset from the start of the section of this name.
    Section { name: String, offset: u32 },
}

impl DebugSection {
    /// The bytes and relocations in an executable, where references between sections and to shared variables are
    /// resolved. `shared`: the address of the shared variable that a function names.
    pub(super) fn resolved(
        &self,
        variables: &[Variable],
        shared: &dyn Fn(Option<usize>, Symbol) -> Option<u64>,
    ) -> (Vec<u8>, Vec<Reloc>) {
        let mut bytes = self.bytes.clone();
        let mut set = |at: u64, value: &[u8]| {
            let at = at as usize;
            if let Some(field) = bytes.get_mut(at..at + value.len()) {
                field.copy_from_slice(value);
            }
        };
        let mut rest = DebugSection::default();
        for reference in &self.references {
            let address = match reference.to {
                Referred::Section { offset, .. } => {
                    set(reference.at, &offset.to_le_bytes());
                    continue;
                }
                Referred::Variable(i) => shared(None, Symbol::Global(i)),
                Referred::Local { function, variable } => shared(Some(function), Symbol::Local(variable)),
                Referred::Code { .. } => None,
            };
            match address {
                Some(address) => set(reference.at, &address.to_le_bytes()),
                None => rest.references.push(reference.clone()),
            }
        }
        (bytes, rest.relocs(variables, &|_| None))
    }

    /// The relocations; `section` numbers the sections that have symbols.
    pub(super) fn relocs(
        &self,
        variables: &[Variable],
        section: &dyn Fn(&str) -> Option<usize>,
    ) -> Vec<Reloc> {
        let reloc = |reference: &Reference| {
            let (symbol, kind, addend) = match &reference.to {
                Referred::Code { function, offset } => {
                    (Referent::Kernel(*function), R_CUDA_64, i64::try_from(*offset).ok()?)
                }
                Referred::Variable(i) => {
                    let is_constant = variables.get(*i as usize)?.space == Space::Const;
                    (Referent::Variable(*i), if is_constant { R_CUDA_G64 } else { R_CUDA_64 }, 0)
                }
                Referred::Local { function, variable } => {
                    (Referent::Local(*function, *variable), R_CUDA_64, 0)
                }
                Referred::Section { name, offset } => {
                    (Referent::Section(section(name)?), R_CUDA_32, i64::from(*offset))
                }
            };
            Some(Reloc { at: reference.at, symbol, kind, addend })
        };
        self.references.iter().rev().filter_map(reloc).collect()
    }
}

/// The number of instructions at the start that may allocate the function's frame.
const PROLOGUE: usize = 64;
/// The stack pointer.
const R1: u64 = 1;

/// The offset of the byte after the instruction that lowers the stack pointer, and the frame's size. `None` if there is
/// no such instruction, or if the code lowers the stack pointer a second time.
pub(super) fn frame(sm: Sm, code: &[u128]) -> Option<(u32, u32)> {
    let changes = |word: &u128| {
        let inst = sass::decode(sm, *word)?;
        (inst.get(Field::Rd) == Some(R1)).then_some(inst)
    };
    let lowered = |inst: &sass::Inst| {
        let is_sum = matches!(inst.form().mnemonic, "IADD3" | "VIADD") && inst.get(Field::Ra) == Some(R1);
        is_sum.then(|| inst.get(Field::Imm32)).flatten().map(|imm| (imm as u32).wrapping_neg())
    };
    let mut found = None;
    for (place, word) in (1u32..).zip(code.iter().take(PROLOGUE)) {
        let Some(inst) = changes(word) else { continue };
        match lowered(&inst) {
            Some(bytes) if found.is_none() && bytes < 1 << 31 => found = Some((place * 16, bytes)),
            // The epilogue raises the stack pointer.
            Some(_) => break,
            None if found.is_some() => return None,
            None => {}
        }
    }
    found
}

/// The places in the frame where a function saves registers of its caller: the stores of registers that the code has
/// not written before.
pub(super) fn saved(
    sm: Sm,
    code: &[u128],
    frame: Option<(u32, u32)>,
    is_preserved: impl Fn(Reg) -> bool,
) -> Vec<Saved> {
    let Some((start, bytes)) = frame else { return Vec::new() };
    let mut found: Vec<Saved> = Vec::new();
    let mut written = [false; 256];
    for (place, word) in (1u32..).zip(code.iter().take(PROLOGUE)) {
        let Some(inst) = sass::decode(sm, *word) else { break };
        if matches!(inst.form().mnemonic, "BRA" | "BRX" | "CALL" | "RET" | "EXIT") {
            break;
        }
        if inst.form().mnemonic == "STL"
            && place * 16 > start
            && inst.get(Field::Ra) == Some(R1)
            && let (Some(offset), Some(register)) = (inst.get(Field::Offset), inst.get(Field::Rb))
            && let (Ok(offset), Ok(register)) = (u32::try_from(offset), u8::try_from(register))
            && offset < bytes
            && inst.reads(sm).any(|used| (used.file, used.index, used.count) == (RegFile::R, register, 1))
            && !written[usize::from(register)]
            && is_preserved(Reg { file: File::R, index: register })
        {
            found.push(Saved { at: place * 16, register, place: offset });
        }
        for used in inst.writes(sm).filter(|used| used.file == RegFile::R) {
            (0..used.count).for_each(|i| written[usize::from(used.index.saturating_add(i))] = true);
        }
    }
    found
}
