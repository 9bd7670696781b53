//! Whether the code shows that two of its accesses touch different bytes: they use the same registers for their
//! addresses, nothing between them writes these, and their offsets differ.

use super::code::Event;
use sass::{Field, Inst, RegFile, RegUse, Role, Sm};
use smallvec::SmallVec;

/// The addresses of one block's accesses, parallel to its events; `None` where there is none or is not known.
pub(super) struct Addresses(Vec<Option<Address>>);

struct Address {
    /// With how often each was written before in the block.
    registers: SmallVec<[(RegUse, u32); 2]>,
    start: i64,
    bytes: i64,
}

impl Addresses {
    pub(super) fn of(sm: Sm, insts: &[Inst], events: &[Event]) -> Addresses {
        let (Some(first), Some(last)) = (events.first(), events.last()) else { return Addresses(Vec::new()) };
        let mut written = Written::default();
        let mut addresses = Vec::with_capacity(events.len());
        for (at, inst) in insts.iter().enumerate().take(last.at + 1).skip(first.at) {
            if events[addresses.len()].at == at {
                addresses.push(Address::of(sm, inst, &written));
            }
            inst.writes(sm).for_each(|register| written.add(&register));
        }
        Addresses(addresses)
    }

    /// Whether two events, by their places among the block's, access different bytes.
    pub(super) fn are_apart(&self, a: usize, b: usize) -> bool {
        let (Some(a), Some(b)) = (&self.0[a], &self.0[b]) else { return false };
        let meet = a.start < b.start + b.bytes && b.start < a.start + a.bytes;
        !meet && a.registers == b.registers
    }
}

/// How often each register was written; those of other files than R and UR hold no address.
struct Written([[u32; 256]; 2]);

impl Default for Written {
    fn default() -> Written {
        Written([[0; 256]; 2])
    }
}

impl Written {
    fn indices(register: &RegUse) -> Option<(usize, std::ops::Range<usize>)> {
        let file = match register.file {
            RegFile::R => 0,
            RegFile::UR => 1,
            _ => return None,
        };
        let start = usize::from(register.index);
        Some((file, start..(start + usize::from(register.count)).min(256)))
    }

    fn add(&mut self, register: &RegUse) {
        if let Some((file, range)) = Written::indices(register) {
            self.0[file][range].iter_mut().for_each(|count| *count += 1);
        }
    }

    /// Grows whenever one of an operand's registers is written.
    fn count(&self, register: &RegUse) -> u32 {
        Written::indices(register).map_or(0, |(file, range)| self.0[file][range].iter().sum())
    }
}

impl Address {
    fn of(sm: Sm, inst: &Inst, written: &Written) -> Option<Address> {
        // Of a copy, what it writes; other threads of the warp say where a matrix lies.
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
        let registers = inst.reads(sm).filter(of_address).map(|used| (used, written.count(&used))).collect();
        Some(Address { registers, start, bytes })
    }
}
