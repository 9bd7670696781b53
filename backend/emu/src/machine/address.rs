//! The addresses of machine instructions.

use super::operand::{Kind, Source};
use sass::{Field, Inst};

/// How an instruction computes its address.
#[derive(Clone, Copy, Debug)]
pub(super) struct Address {
    /// A scaled index, or an address of 32 or 64 bits.
    pub(super) register: Source,
    pub(super) base: Source,
    pub(super) offset: u64,
    pub(super) scale: u32,
    pub(super) wide: bool,
}

impl Address {
    pub(super) fn of(inst: &Inst, mut register: Source) -> Address {
        if register.kind == Kind::None {
            register.kind = Kind::Immediate(0);
        }
        let base = inst.get(Field::UrBase).map_or(Kind::Immediate(0), |index| Kind::Uniform(index as u8));
        Address {
            register,
            base: Source { kind: base, ..register },
            offset: inst.get(Field::Offset).unwrap_or(0),
            scale: inst.get(Field::Scale).map_or(0, |scale| [0, 2, 3, 4][scale as usize & 3]),
            wide: inst.get(Field::AddressWidth) != Some(0),
        }
    }
}
