//! Operands of machine instructions, decoded once, and their values in a lane.

use super::{Block, Result, WARP};
use crate::launch::FaultKind;
use crate::memory::number;
use sass::{Field, Inst, Sm};

/// A source and its modifiers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Source {
    pub(super) kind: Kind,
    pub(super) negated: bool,
    pub(super) absolute: bool,
    /// The lanes of packed halves, by their number in the form's text.
    pub(super) swizzle: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Register(u8),
    Uniform(u8),
    Immediate(u32),
    Constant { bank: u8, offset: u16 },
    None,
}

/// A predicate, possibly complemented.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Predicate {
    pub(super) index: u8,
    pub(super) negated: bool,
}

/// The fields of each source.
const FIELDS: [[Field; 5]; 3] = [
    [Field::Ra, Field::URa, Field::NegA, Field::AbsA, Field::SwizzleA],
    [Field::Rb, Field::URb, Field::NegB, Field::AbsB, Field::SwizzleB],
    [Field::Rc, Field::URc, Field::NegC, Field::AbsC, Field::SwizzleC],
];

/// The sources A, B and C of an instruction.
pub(super) fn sources(sm: Sm, inst: &Inst) -> Result<[Source; 3]> {
    let mut wide = wide(inst);
    let mut sources = FIELDS.map(|[register, uniform, negated, absolute, swizzle]| {
        let flag = |field| inst.get(field).unwrap_or(0) == 1;
        let kind = match (inst.get(register), inst.get(uniform)) {
            (Some(index), _) => Kind::Register(index as u8),
            (None, Some(index)) => Kind::Uniform(index as u8),
            (None, None) => Kind::None,
        };
        Source {
            kind,
            negated: flag(negated),
            absolute: flag(absolute),
            swizzle: inst.get(swizzle).unwrap_or(0) as u8,
        }
    });
    // An operand that is not a general register is in the wide slot. The shape says which operand this is.
    let shape = inst.form().shape;
    let place = shape.bytes().position(|letter| matches!(letter, b'i' | b'c' | b'x'));
    let place = place.or_else(|| (inst.has(Field::Ur)).then(|| shape.rfind('u')).flatten());
    if shape.contains('x') {
        return Err(FaultKind::Unsupported("constants through a handle".into()));
    }
    if let Some(place) = place {
        // Forms with one source use it in the role of the second.
        let place = if shape.len() == 1 { 1 } else { place };
        if let Some(slot) = sources.get_mut(place)
            && slot.kind == Kind::None
        {
            slot.kind = std::mem::replace(&mut wide, Kind::None);
        }
    }
    let _ = sm;
    Ok(sources)
}

fn wide(inst: &Inst) -> Kind {
    if let Some(offset) = inst.get(Field::COffset) {
        return Kind::Constant { bank: inst.get(Field::CBank).unwrap_or(0) as u8, offset: offset as u16 };
    }
    if let Some(bits) = inst.get(Field::Imm32) {
        return Kind::Immediate(bits as u32);
    }
    inst.get(Field::Ur).map_or(Kind::None, |index| Kind::Uniform(index as u8))
}

pub(super) fn predicate(inst: &Inst, field: Field, not: Field) -> Predicate {
    let index = inst.get(field).unwrap_or(7) as u8;
    Predicate { index: index & 7, negated: inst.get(not).unwrap_or(0) == 1 }
}

impl Block<'_> {
    /// A number in a constant bank.
    pub(super) fn constant(&self, bank: u8, offset: u64, size: u32) -> Result<u64> {
        let bytes = match bank {
            0 => &self.machine.bank0,
            2 => &self.machine.kernel.bank2,
            3 => &self.machine.kernel.bank3,
            4 => &self.machine.kernel.bank4,
            _ => return Err(FaultKind::Unsupported(format!("constant bank {bank}"))),
        };
        let start = offset as usize;
        let found = bytes.get(start..start.saturating_add(size as usize));
        found.map(number).ok_or(FaultKind::OutOfBounds { space: "constant", address: offset, size })
    }

    /// The 32 bits of a source, without modifiers.
    #[inline]
    pub(super) fn bits(&self, w: usize, lane: usize, source: Source) -> Result<u32> {
        let warp = &self.warps[w];
        Ok(match source.kind {
            Kind::Register(index) => warp.registers[usize::from(index) * WARP + lane],
            Kind::Uniform(index) => warp.uniform[usize::from(index)],
            Kind::Immediate(bits) => bits,
            Kind::Constant { bank, offset } => self.constant(bank, offset.into(), 4)? as u32,
            Kind::None => 0,
        })
    }

    /// The 64 bits of a pair. An immediate is the high word of a double (`high`), or an integer that is sign-extended.
    #[inline]
    pub(super) fn pair(&self, w: usize, lane: usize, source: Source, high: bool) -> Result<u64> {
        let warp = &self.warps[w];
        let both = |low: u32, high: u32| u64::from(high) << 32 | u64::from(low);
        Ok(match source.kind {
            Kind::Register(255) => 0,
            Kind::Register(index) => {
                let at = usize::from(index) * WARP + lane;
                both(warp.registers[at], warp.registers[at + WARP])
            }
            Kind::Uniform(index) if index == self.machine.sm.urz() => 0,
            Kind::Uniform(index) => {
                both(warp.uniform[usize::from(index)], warp.uniform[usize::from(index) + 1])
            }
            Kind::Immediate(bits) if high => both(0, bits),
            Kind::Immediate(bits) => i64::from(bits as i32) as u64,
            Kind::Constant { bank, offset } => self.constant(bank, offset.into(), 8)?,
            Kind::None => 0,
        })
    }

    #[inline]
    pub(super) fn holds(&self, w: usize, lane: usize, uniform: bool, p: Predicate) -> bool {
        let warp = &self.warps[w];
        let value = if uniform {
            warp.uniform_predicates[usize::from(p.index)]
        } else {
            warp.predicates[usize::from(p.index)] >> lane & 1 == 1
        };
        value != p.negated
    }

    #[inline]
    pub(super) fn set_register(&mut self, w: usize, lane: usize, index: u8, value: u32) {
        if index != 255 {
            self.warps[w].registers[usize::from(index) * WARP + lane] = value;
        }
    }

    pub(super) fn set_uniform(&mut self, w: usize, index: u8, value: u32) {
        if index != self.machine.sm.urz() {
            self.warps[w].uniform[usize::from(index)] = value;
        }
    }

    pub(super) fn set_predicate(&mut self, w: usize, lane: usize, uniform: bool, index: u8, value: bool) {
        let warp = &mut self.warps[w];
        if index == 7 {
        } else if uniform {
            warp.uniform_predicates[usize::from(index)] = value;
        } else {
            let bit = 1 << lane;
            let word = &mut warp.predicates[usize::from(index)];
            *word = if value { *word | bit } else { *word & !bit };
        }
    }
}
