//! Accesses to variables: alignment, bounds, and indices that keep a variable in local memory.

use std::cell::OnceCell;

use ptx_backend::input::{Address, AddressBase, Operand, RegId, Symbol};
use ptx_isa::{FormId, Mod, Space};
use rustc_hash::{FxHashMap, FxHashSet};
use text_size::TextRange;

use super::{Body, VariableFacts};
use crate::declare_lint;
use crate::diagnostic::{Diagnostic, Findings};
use crate::flow::{Flow, Instr};
use crate::scope::Entity;
use crate::source_map::Usage;

declare_lint! {
    /// An access is misaligned.
    pub(super) MISALIGNED = "W0510" "misaligned-access", Warning, since "0.1.0"
}

declare_lint! {
    /// An access is out of bounds of the variable.
    pub(super) OUT_OF_BOUNDS = "W0518" "out-of-bounds", Warning, since "0.1.0"
}

declare_lint! {
    /// A `.local` variable is indexed by a register, so it cannot be kept in registers.
    pub(super) INDEXED_LOCAL = "W0511" "indexed-local", Allow, since "0.1.0"
}

pub(super) fn check(body: &Body<'_>, out: &mut Findings) {
    let Some(flow) = body.flow() else { return };
    let naming = || flow.accesses().naming().iter().filter_map(|&src| flow.instruction(src));
    // If no instruction takes the address of a variable, registers need not be examined.
    let takes_addresses = naming().any(takes_address);
    let all = takes_addresses.then(|| flow.code().instructions(0..flow.code().len()));
    let some = (!takes_addresses).then(naming);
    let mut indexed = FxHashSet::default();
    let names = Names { body, ranges: OnceCell::new(), read: OnceCell::new() };
    for instr in all.into_iter().flatten().chain(some.into_iter().flatten()) {
        let Some(bytes) = accesses(instr) else { continue };
        for (operand, bytes) in instr.operands.iter().zip(bytes) {
            let Operand::Address(address) = operand else { continue };
            if matches!(address.base, AddressBase::Reg(_)) && !takes_addresses {
                continue;
            }
            match flow.address(address) {
                Some((symbol, Some(offset))) => {
                    let Some(place) = body.variables.get(&symbol) else { continue };
                    let mut access = MemoryAccess { place, offset, bytes, used: bytes };
                    if access.is_outside() {
                        access.used = used(&names, instr, bytes);
                    }
                    if access.is_misaligned() || access.is_outside() {
                        let range = base(body, flow, instr, address);
                        access.report(names.of(symbol), range, out);
                    }
                }
                Some((symbol, None)) => {
                    let is_local =
                        body.variables.get(&symbol).is_some_and(|place| place.space == Space::Local);
                    if is_local && indexed.insert(symbol) {
                        let range = base(body, flow, instr, address);
                        let name = names.of(symbol);
                        let message =
                            format!("`{name}` is indexed by this register, so it stays in local memory");
                        out.push(Diagnostic::new(&INDEXED_LOCAL, range, message).rule());
                    }
                }
                None => {}
            }
        }
    }
}

/// Whether the instruction writes the address of a variable to a register.
fn takes_address(instr: Instr<'_>) -> bool {
    use FormId as F;
    let is_variable = |operand: &Operand| matches!(operand, Operand::Symbol(symbol, _) if !matches!(symbol, Symbol::Function(_)));
    matches!(instr.opcode.form, F::Mov | F::Cvta | F::AddInt | F::MadInt)
        && instr.operands.iter().skip(1).any(is_variable)
}

/// The alignment in bytes that an instruction requires of each of its address operands.
fn accesses(instr: Instr<'_>) -> Option<[u32; 4]> {
    use FormId as F;
    let opcode = instr.opcode;
    let whole = || {
        let element = opcode.ty(0).map_or(1, |ty| ty.bytes());
        element * opcode.mods().find_map(Mod::count).unwrap_or(1)
    };
    Some(match opcode.form {
        F::Ld | F::Ldu | F::St | F::Atom | F::AtomVector | F::Red | F::RedVector => [whole(); 4],
        F::CpAsync => match instr.operands.get(2) {
            Some(Operand::Int(size @ (4 | 8 | 16))) => [*size as u32; 4],
            _ => return None,
        },
        // Source and destination, then the mbarrier object.
        F::CpAsyncBulkLoad | F::CpAsyncBulkCluster => [16, 16, 1, 8],
        F::CpAsyncBulkStore | F::CpReduceAsyncBulkStore => [16, 16, 1, 1],
        F::MbarrierInit | F::MbarrierInval | F::MbarrierExpectTx | F::MbarrierCompleteTx => [8; 4],
        F::MbarrierArrive | F::MbarrierArriveDrop | F::MbarrierTestWait | F::MbarrierTryWait => [8; 4],
        F::Ldmatrix | F::Stmatrix => [16; 4],
        _ => return None,
    })
}

/// The number of loaded bytes that are used. Compilers load four elements of a three-element variable that is aligned
/// to four elements: they discard the last element, or never read its register. If none of the elements is read, the
/// whole load counts.
fn used(names: &Names<'_, '_>, instr: Instr<'_>, bytes: u32) -> u32 {
    let is_load = matches!(instr.opcode.form, FormId::Ld | FormId::Ldu);
    let Some(Operand::Vector(elements)) = instr.operands.first().filter(|_| is_load) else { return bytes };
    let is_read = |element: &Operand| match element {
        Operand::Sink => false,
        Operand::Reg(register) => names.is_read(*register),
        _ => true,
    };
    match elements.iter().rposition(is_read) {
        Some(last) => bytes / elements.len() as u32 * (last as u32 + 1),
        None => bytes,
    }
}

/// An access of a number of bytes at an offset in a variable.
struct MemoryAccess<'a> {
    place: &'a VariableFacts,
    offset: i64,
    bytes: u32,
    /// The number of bytes up to the last one that is used.
    used: u32,
}

impl MemoryAccess<'_> {
    fn is_misaligned(&self) -> bool {
        // The address of the variable is only known to be a multiple of its alignment.
        let known = self.bytes.min(self.place.align);
        known != 0 && self.offset.rem_euclid(i64::from(known)) != 0
    }

    fn is_outside(&self) -> bool {
        let (size, end) = (self.place.size, self.offset.saturating_add(i64::from(self.used)));
        size != 0 && (self.offset < 0 || end as u64 > size)
    }

    /// Reports errors of the access to variable `name`, which is accessed at `range`.
    fn report(&self, name: &str, range: TextRange, out: &mut Findings) {
        let Self { place, offset, bytes, .. } = *self;
        if self.is_misaligned() {
            let message = format!("{bytes}-byte access at offset {offset} of `{name}` is misaligned");
            let note = format!("`{name}` is aligned to {} bytes", place.align);
            out.push(Diagnostic::new(&MISALIGNED, range, message).note(note));
        }
        if self.is_outside() {
            let size = place.size;
            let message = match offset {
                0 => format!("{bytes}-byte access is out of bounds: the size of `{name}` is {size} bytes"),
                _ => format!(
                    "{bytes}-byte access at offset {offset} is out of bounds: the size of `{name}` is {size} bytes"
                ),
            };
            out.push(Diagnostic::new(&OUT_OF_BOUNDS, range, message).rule());
        }
    }
}

/// The names of variables and the registers that are read, collected on first use.
struct Names<'b, 'a> {
    body: &'b Body<'a>,
    ranges: OnceCell<FxHashMap<Symbol, TextRange>>,
    read: OnceCell<FxHashSet<RegId>>,
}

impl<'a> Names<'_, 'a> {
    fn of(&self, symbol: Symbol) -> &'a str {
        let ranges = self.ranges.get_or_init(|| {
            let names = self.body.map.occurrences.iter().filter_map(|occurrence| match occurrence.entity {
                Entity::Symbol(symbol) => Some((symbol, occurrence.range)),
                _ => None,
            });
            names.collect()
        });
        ranges.get(&symbol).map_or("the variable", |&range| &self.body.text[range])
    }

    fn is_read(&self, register: RegId) -> bool {
        let read = self.read.get_or_init(|| {
            let names = self.body.map.occurrences.iter().filter_map(|occurrence| match occurrence.entity {
                Entity::Register(register) => {
                    matches!(occurrence.access, Usage::Read | Usage::ReadWrite).then_some(register)
                }
                _ => None,
            });
            names.collect()
        });
        read.contains(&register)
    }
}

/// The part of an address in brackets before the offset.
fn base(body: &Body<'_>, flow: &Flow<'_>, instr: Instr<'_>, address: &Address) -> TextRange {
    let entity = match address.base {
        AddressBase::Reg(register) => Some(Entity::Register(register)),
        AddressBase::Symbol(symbol) => Some(Entity::Symbol(symbol)),
        AddressBase::Absolute => None,
    };
    // The same register may also appear in the guard and the destinations.
    let names = flow.names(instr.src);
    let found = names.iter().rfind(|occurrence| Some(occurrence.entity) == entity);
    found.map(|occurrence| occurrence.range).or_else(|| body.name(instr)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::marks;

    const HEAD: &str = ".shared .align 8 .b8 s[64]; .local .align 4 .b8 l[64];\n\
                        .reg .b32 %r<8>; .reg .b64 %rd<4>; mov.u32 %r1, s; mov.u32 %r2, %tid.x;\n";

    fn found(body: &str) -> Vec<String> {
        marks(&MISALIGNED, &format!("{HEAD}{body} ret;"))
    }

    #[test]
    fn offsets_are_followed_through_registers() {
        let body = "add.u32 %r3, %r1, 4; ld.shared.u32 %r4, [%r3]; ld.shared.v2.u32 {%r4, %r5}, [%r3+8];";
        assert_eq!(found(body), ["%r3: 8-byte access at offset 12 of `s` is misaligned"]);
        assert_eq!(found("add.u32 %r3, %r1, %r2; ld.shared.u32 %r4, [%r3+2];"), Vec::<String>::new());
    }

    #[test]
    fn more_than_the_alignment_is_not_known() {
        assert_eq!(found("ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [s+8];"), Vec::<String>::new());
        assert_eq!(found("ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [s+4];").len(), 1);
    }

    #[test]
    fn nothing_lies_behind_a_variable() {
        let found = |body: &str| marks(&OUT_OF_BOUNDS, &format!("{HEAD}{body} ret;"));
        assert_eq!(found("ld.shared.u32 %r4, [s+60]; ld.shared.u32 %r4, [s+64];").len(), 1);
        assert_eq!(found("add.u32 %r3, %r1, 64; st.shared.u32 [%r3], 1;").len(), 1);
        assert_eq!(found("add.u32 %r3, %r1, %r2; st.shared.u32 [%r3+64], 1;").len(), 0);
        assert_eq!(found("ld.shared.u32 %r4, [s+-4];").len(), 1);
    }

    #[test]
    fn elements_that_nothing_reads_may_be_padding() {
        let found = |body: &str| marks(&OUT_OF_BOUNDS, &format!("{HEAD}{body} ret;")).len();
        let reads = "add.u32 %r6, %r4, 1;";
        assert_eq!(found(&format!("ld.shared.v2.u32 {{%r4, _}}, [s+60]; {reads}")), 0);
        assert_eq!(found(&format!("ld.shared.v2.u32 {{%r4, %r5}}, [s+60]; {reads}")), 0);
        assert_eq!(found(&format!("ld.shared.v2.u32 {{_, %r4}}, [s+60]; {reads}")), 1);
        assert_eq!(found(&format!("ld.shared.v2.u32 {{%r5, %r4}}, [s+60]; {reads}")), 1);
        assert_eq!(found("ld.shared.v2.u32 {%r4, %r5}, [s+60];"), 1);
        assert_eq!(found(&format!("ld.shared.v2.u32 {{%r4, %r5}}, [s+64]; {reads}")), 1);
        assert_eq!(found(&format!("st.shared.v2.u32 [s+60], {{%r4, %r5}}; {reads}")), 1);
    }

    #[test]
    fn both_ends_of_a_copy() {
        let body = "mov.b64 %rd1, 0; cp.async.ca.shared.global [s+4], [%rd1], 8; cp.async.wait_all;";
        assert_eq!(found(body).len(), 1);
    }
}
