//! What objects state about calls: `.nv.callgraph` and `.nv.prototype`. From them, nvlink computes the registers and the
//! stack sizes of kernels, and finds the functions that calls through addresses may reach.

use super::elf::{Body, SectionId, SymbolId};
use super::linkable::{Named, Open};
use super::{LinkFunction, Linker};
use crate::abi::{self, Preserved};
use crate::driver::OVERWRITES;
use crate::input::{Linkage, Operand, Param, Stmt, Symbol as Name};
use crate::ori::ir::{File, Reg};
use ptx_isa::{FormId, ScalarType};
use std::iter;

impl Linker<'_> {
    /// The functions whose addresses are in code or in data, and unified functions, which may be called from anywhere.
    pub(super) fn taken_functions(&self, open: &[Vec<Open>], by_index: &ByIndex<'_>) -> Vec<Named> {
        let in_code = open.iter().flatten().filter(|reloc| reloc.takes_function(self.target));
        let in_code = in_code.flat_map(|reloc| iter::once(reloc.named).chain(reloc.alias));
        let in_data = self.initial_symbols().filter_map(|symbol| match symbol {
            Name::Function(i) => Some((i, by_index(i)?)),
            _ => None,
        });
        let in_data = in_data.flat_map(|(i, named)| iter::once(named).chain(self.alias(i, named)));
        let unified = (0..).zip(&self.env.functions).filter(|(_, f)| f.unified.is_some());
        let unified = unified.filter_map(|(i, _)| by_index(i));
        let mut taken: Vec<Named> = in_code.chain(in_data).chain(unified).collect();
        taken.sort_unstable();
        taken.dedup();
        taken
    }

    /// The functions with entries in `.nv.prototype`: those that other objects may call or define, except `taken`, whose
    /// prototypes are in the call graph.
    pub(super) fn described_functions(
        &self,
        foreign: &[Named],
        aliases: &[(u32, usize)],
        taken: &[Named],
    ) -> Vec<Named> {
        let own = (0..self.functions.len()).filter(|&i| {
            let f = self.functions[i].input;
            !f.entry && f.linkage != Linkage::Internal
        });
        let visible = aliases
            .iter()
            .map(|&(i, _)| i)
            .filter(|&i| self.env.functions[i as usize].linkage != Linkage::Internal);
        let all = own.map(Named::Own).chain(foreign.iter().copied()).chain(visible.map(Named::Alias));
        all.filter(|named| !taken.contains(named)).collect()
    }

    pub(super) fn describe_prototypes(
        &mut self,
        section: SectionId,
        described: &[Named],
        id: &dyn Fn(Named) -> SymbolId,
    ) {
        let words: Vec<u32> =
            described.iter().flat_map(|&named| [id(named).0, self.prototype_of(named)]).collect();
        self.image.section_mut(section).body = Body::Words(words);
    }

    /// Adds callers and callees, aliases and the functions that they name, functions whose addresses are taken and the
    /// functions that take them, and functions that call through addresses.
    pub(super) fn describe_calls(
        &mut self,
        call_graph: SectionId,
        open: &[Vec<Open>],
        aliases: &[(u32, usize)],
        mut taken: Vec<Named>,
        by_index: &ByIndex<'_>,
        id: &dyn Fn(Named) -> SymbolId,
    ) {
        let mut words: Vec<[u32; 2]> = vec![[0, 1u32.wrapping_neg()]];
        let pairs = |found: Vec<(Named, Named)>, words: &mut Vec<[u32; 2]>| {
            let mut found: Vec<[u32; 2]> = found.into_iter().map(|(a, b)| [id(a).0, id(b).0]).collect();
            found.sort_unstable();
            found.dedup();
            words.extend(found);
        };
        let each =
            || open.iter().enumerate().flat_map(|(i, relocs)| relocs.iter().map(move |reloc| (i, reloc)));
        let call = self.target.cubin.call_relocation;
        let calls = each().filter(|(_, r)| r.kind == call).flat_map(|(i, r)| {
            let callees = iter::once(r.named).chain(r.alias);
            callees.map(move |callee| (Named::Own(i), callee))
        });
        // As in files of ptxas, an alias counts as a caller of its function.
        let of_aliases = aliases.iter().map(|&(i, of)| (Named::Alias(i), Named::Own(of)));
        let stubs = self.unified_functions().into_iter().map(|i| (Named::Stub(i), Named::Own(i)));
        pairs(calls.chain(of_aliases).chain(stubs).collect(), &mut words);
        taken.sort_unstable_by_key(|named| id(*named).0);
        words.push([0, 2u32.wrapping_neg()]);
        for &named in &taken {
            words.push([id(named).0, self.prototype_of(named)]);
        }
        words.push([0, 3u32.wrapping_neg()]);
        for (i, f) in self.functions.iter().enumerate() {
            for text in indirect_calls(f) {
                words.push([id(Named::Own(i)).0, self.image.string(&text)]);
            }
        }
        words.push([0, 4u32.wrapping_neg()]);
        let in_code = each().filter(|(_, r)| r.takes_function(self.target));
        let in_code = in_code.map(|(i, r)| (i, r.alias.unwrap_or(r.named)));
        let linker = &*self;
        let in_data = open.iter().enumerate().flat_map(|(i, relocs)| {
            let reached = linker.reached_through_data(i, relocs).into_iter();
            reached.filter_map(move |function| {
                let named = by_index(function)?;
                Some((i, linker.alias(function, named).unwrap_or(named)))
            })
        });
        let takes = in_code.chain(in_data).map(|(i, named)| (Named::Own(i), named));
        pairs(takes.collect(), &mut words);
        self.image.section_mut(call_graph).body = Body::Words(words.concat());
    }

    /// The functions that a function may call because it takes the address of a variable that contains theirs: those in
    /// the variable, or, if it contains only addresses of variables, those in these.
    fn reached_through_data(&self, i: usize, open: &[Open]) -> Vec<u32> {
        let is_used = |v: &u32| open.iter().any(|reloc| reloc.named == Named::Variable(*v));
        let body = &self.functions[i].input.body;
        let mut pending: Vec<u32> = body.iter().filter_map(moved_variable).filter(is_used).collect();
        let (mut seen, mut found) = (Vec::new(), Vec::new());
        while let Some(v) = pending.pop() {
            if seen.contains(&v) {
                continue;
            }
            seen.push(v);
            let init = self.env.variables.get(v as usize).and_then(|v| v.init.as_ref());
            let relocs = init.map_or(&[][..], |init| &init.relocs);
            let functions = relocs.iter().filter_map(|reloc| match reloc.symbol {
                Name::Function(function) => Some(function),
                _ => None,
            });
            let known = found.len();
            found.extend(functions);
            if found.len() == known {
                pending.extend(relocs.iter().filter_map(|reloc| match reloc.symbol {
                    Name::Global(variable) => Some(variable),
                    _ => None,
                }));
            }
        }
        found
    }

    /// The offset of the prototype among the strings. Kernels have no prototype, because their addresses are for
    /// launches, not for calls.
    fn prototype_of(&mut self, named: Named) -> u32 {
        let text = match named {
            Named::Own(i) => {
                let f = self.functions[i].input;
                (!f.entry).then(|| prototype(&f.params, &f.returns, f.preserved))
            }
            Named::Foreign(i) | Named::Alias(i) => {
                let declared = self.env.functions.get(i as usize).filter(|f| !f.entry);
                declared.map(|f| {
                    let text = prototype(&f.params, &f.returns, f.preserved);
                    let states = f.is_of_driver() && self.target.driver_preserves == Preserved::BY_DRIVER;
                    if states { text + OVERWRITES } else { text }
                })
            }
            Named::Driver(function) => Some(function.prototype()),
            _ => None,
        };
        text.map_or(0, |text| self.image.string(&text))
    }
}

/// Finds the function with an index in the module.
pub(super) type ByIndex<'f> = dyn Fn(u32) -> Option<Named> + 'f;

/// The variable whose address a statement writes to a register.
fn moved_variable(stmt: &Stmt) -> Option<u32> {
    let Stmt::Instr(instr) = stmt else { return None };
    instr.operands.iter().filter(|_| instr.opcode.form == FormId::Mov).find_map(|operand| match operand {
        Operand::Symbol(Name::Global(variable), _) => Some(*variable),
        _ => None,
    })
}

/// The prototypes of a function's calls through addresses.
fn indirect_calls(f: &LinkFunction<'_>) -> Vec<String> {
    let mut found: Vec<String> = f
        .input
        .body
        .iter()
        .filter_map(|stmt| match stmt {
            Stmt::Instr(instr) => instr.operands.iter().find_map(|operand| match operand {
                Operand::Prototype(prototype) => Some(prototype),
                _ => None,
            }),
            Stmt::Label(_) => None,
        })
        .map(|signature| prototype(&signature.params, &signature.returns, signature.preserved))
        .collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// The prototype of a function as text. It must be the same in every object, because the linker loses functions if two
/// objects differ. It has a letter for each result, then one for each parameter. If the function states what it
/// preserves, these follow: the number of words of parameters or results and the first register, the return address,
/// and masks of the registers that the function overwrites.
fn prototype(params: &[Param], returns: &[Param], preserved: Preserved) -> String {
    // A vector of registers has the letter of a scalar of its size. An array has the letter of its elements and their
    // number.
    let letter = |param: &Param| {
        let bytes = param.ty.bytes().max(1);
        let letter = match (param.ty, if param.is_array { bytes } else { param.size }) {
            (ScalarType::F32, 4) => "f",
            (ScalarType::F64, 8) => "d",
            (_, 1) => "b",
            (_, 2) => "h",
            (_, 4) => "i",
            (_, 8) => "l",
            _ => "x",
        };
        let count = param.is_array.then(|| (param.size / bytes).to_string());
        letter.to_owned() + &count.unwrap_or_default()
    };
    let mut text = String::from("#");
    if returns.is_empty() {
        text.push('v');
    }
    text.extend(returns.iter().chain(params).map(letter));
    if preserved == Preserved::default() {
        return text;
    }
    text.push('|');
    let overwrites = |file, index| u128::from(!preserved.has(Reg { file, index }));
    if preserved.general.is_some() {
        let words = abi::words_in_sequence(params, returns);
        text += &format!("{words}p{}r{}", abi::FIRST, preserved.return_address());
    }
    if preserved.control.is_some() {
        let mask = (0..16).fold(0, |mask, i| mask | overwrites(File::B, i) << i);
        text += &format!("sBx{mask:08x}");
    }
    if preserved.general.is_some() {
        let half =
            |first: u8, end: u8| (first..end).fold(0, |mask, i| mask | overwrites(File::R, i) << (i - first));
        text += &format!("sRx{:032x}{:032x}", half(128, 255), half(0, 128));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn param(ty: ScalarType, size: u32, is_array: bool) -> Param {
        Param {
            name: String::new(),
            ty,
            size,
            is_array,
            align: ty.bytes(),
            offset: 0,
            reg: None,
            pointer: None,
        }
    }

    #[test]
    fn prototypes_are_those_of_the_assembler() {
        use ScalarType::{B8, B16, B32, B64, B128, F32, F64, U16};
        let plain = |params: &[Param], returns: &[Param]| prototype(params, returns, Preserved::default());
        assert_eq!(plain(&[], &[]), "#v");
        let scalars = [B8, B16, B32, B64, B128, F32, F64].map(|ty| param(ty, ty.bytes(), false));
        assert_eq!(plain(&scalars, &scalars[2..3]), "#ibhilxfd");
        let arrays = [
            param(B8, 1, true),
            param(B8, 0, true),
            param(B8, 24, true),
            param(U16, 4, true),
            param(B32, 4, true),
            param(F64, 16, true),
        ];
        assert_eq!(plain(&arrays, &[]), "#vb1b0b24h2i1d2");
        assert_eq!(plain(&[param(B32, 8, false)], &[]), "#vl");
    }

    #[test]
    fn prototypes_name_registers_that_are_overwritten() {
        let word = param(ScalarType::B32, 4, false);
        let double = param(ScalarType::B64, 8, false);
        let of = |general, control, params: &[Param]| {
            prototype(
                params,
                std::slice::from_ref(&word),
                Preserved { general, control, return_address: None },
            )
        };
        let some = std::slice::from_ref(&word);
        assert_eq!(
            of(Some(5), Some(2), some),
            "#ii|1p4r18sBx00000003sRx7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffe0fff9"
        );
        let three = [word.clone(), double, word.clone()];
        assert_eq!(
            of(Some(230), None, &three),
            "#iili|5p4r244sRx7fc000000000000000000000000000000000000000000000000000000000fff9"
        );
        assert_eq!(of(None, Some(0), some), "#ii|sBx00000000");
    }
}
