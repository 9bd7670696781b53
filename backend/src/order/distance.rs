//! Whether the code shows that two of its accesses touch different bytes: they access different memories, or their
//! address registers hold the same values and their offsets do not overlap.

use super::code::Event;
use super::program::Region;
use crate::hazard::is_unconditional;
use rustc_hash::FxHashMap;
use sass::{Field, Inst, RegFile, RegUse, Role, Sm};
use smallvec::SmallVec;

/// The memories and addresses of the accesses of one block, one for each of its events; the address is `None` if there
/// is none or if it is unknown.
pub(super) struct Addresses(Vec<(Region, Option<Address>)>);

struct Address {
    /// The contents of each register of the address.
    registers: SmallVec<[(RegFile, Role, Held); 2]>,
    start: i64,
    bytes: i64,
}

impl Addresses {
    /// Computes the addresses. `spills` says for each instruction whether it loads or stores a spilled value; `start`
    /// is the block's first instruction.
    pub(super) fn of(sm: Sm, insts: &[Inst], spills: &[bool], start: usize, events: &[Event]) -> Addresses {
        let Some(last) = events.last() else { return Addresses(Vec::new()) };
        let mut contents = Contents::new();
        let mut addresses = Vec::with_capacity(events.len());
        for (at, inst) in insts.iter().enumerate().take(last.at + 1).skip(start) {
            // One instruction may implement loads of several statements.
            while events.get(addresses.len()).is_some_and(|event| event.at == at) {
                addresses.push((region(inst), Address::of(sm, inst, &contents)));
            }
            contents.step(sm, inst, spills[at]);
        }
        Addresses(addresses)
    }

    /// Whether two events, given by their indices in the block, access different bytes.
    pub(super) fn are_apart(&self, a: usize, b: usize) -> bool {
        let ((a_region, a), (b_region, b)) = (&self.0[a], &self.0[b]);
        if !a_region.overlaps(*b_region) {
            return true;
        }
        let (Some(a), Some(b)) = (a, b) else { return false };
        let meet = a.start < b.start + b.bytes && b.start < a.start + a.bytes;
        !meet && a.registers == b.registers
    }
}

/// The contents of an operand's registers, as numbers.
type Held = SmallVec<[u32; 2]>;

/// The contents of registers and of slots of spilled values at a point of the block: equal numbers mean equal contents.
/// Only R and UR registers can hold addresses, so other files are not tracked.
struct Contents {
    registers: [[u32; 256]; 2],
    /// The slots, by byte offset in the stack frame.
    slots: FxHashMap<i64, u32>,
    next: u32,
}

impl Contents {
    fn new() -> Contents {
        let file = |start: u32| std::array::from_fn(|i| start + i as u32);
        Contents { registers: [file(0), file(256)], slots: FxHashMap::default(), next: 512 }
    }

    fn fresh(&mut self) -> u32 {
        self.next += 1;
        self.next
    }

    /// The file and the indices of an operand.
    fn indices(register: &RegUse) -> Option<(usize, std::ops::Range<usize>)> {
        let file = match register.file {
            RegFile::R => 0,
            RegFile::UR => 1,
            _ => return None,
        };
        let start = usize::from(register.index);
        Some((file, start..(start + usize::from(register.count)).min(256)))
    }

    fn held(&self, register: &RegUse) -> Held {
        Contents::indices(register).map_or_else(Held::new, |(file, range)| self.registers[file][range].into())
    }

    fn step(&mut self, sm: Sm, inst: &Inst, is_spill: bool) {
        let slot = inst.get(Field::Offset).filter(|_| is_spill).map(|offset| offset as i64);
        let known = is_unconditional(inst);
        if let Some(slot) = slot {
            let data = inst.reads(sm).find(|used| !matches!(used.role, Role::Address | Role::Base));
            for (word, content) in
                (slot..).step_by(4).zip(data.map_or_else(Held::new, |data| self.held(&data)))
            {
                let content = if known { content } else { self.fresh() };
                self.slots.insert(word, content);
            }
        }
        for register in inst.writes(sm) {
            let Some((file, range)) = Contents::indices(&register) else { continue };
            for (i, index) in range.enumerate() {
                let fresh = self.fresh();
                self.registers[file][index] = match slot {
                    Some(slot) if known => *self.slots.entry(slot + 4 * i as i64).or_insert(fresh),
                    _ => fresh,
                };
            }
        }
    }
}

/// The memory that an instruction accesses. Copies between memories, and instructions that are not listed, access any
/// memory.
fn region(inst: &Inst) -> Region {
    match inst.form().mnemonic {
        "LDG" | "STG" | "ATOMG" => Region::Global,
        "LDS" | "STS" | "ATOMS" | "LDSM" | "STSM" => Region::Shared,
        "LDL" | "STL" => Region::Local,
        _ => Region::Generic,
    }
}

impl Address {
    fn of(sm: Sm, inst: &Inst, contents: &Contents) -> Option<Address> {
        // For a copy, this is the destination. The address of a matrix access comes from other threads of the warp.
        let copies = inst.form().mnemonic == "LDGSTS";
        if matches!(inst.form().mnemonic, "LDSM" | "STSM") {
            return None;
        }
        // Offsets are signed.
        let start = inst.get(if copies { Field::Imm2 } else { Field::Offset })? as i64;
        let bytes = match (inst.text(Field::Size), inst.text(Field::Type)) {
            (Some(".U8" | ".S8"), _) => 1,
            (Some(".U16" | ".S16"), _) => 2,
            (Some(""), _) => 4,
            (Some(".64"), _) => 8,
            (None, Some(ty)) if !ty.contains("64") => 4,
            (None, Some(_)) => 8,
            _ => 16,
        };
        let narrow = |used: &RegUse| used.file == RegFile::R && used.count == 1;
        let of_address =
            |used: &RegUse| matches!(used.role, Role::Address | Role::Base) && (!copies || narrow(used));
        let held = |used: RegUse| (used.file, used.role, contents.held(&used));
        let registers = inst.reads(sm).filter(of_address).map(held).collect();
        Some(Address { registers, start, bytes })
    }
}
