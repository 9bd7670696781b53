//! Operand caches: an instruction keeps registers that the next one reads in the same places.
//!
//! A register that is kept costs the next instruction no read port. What an instruction overwrites itself is not kept: the
//! cache would still have the old value.

use super::facts::InstFacts;
use crate::mach::{Effect, MachInst};
use sass::{Control, RegFile};

/// Longer stalls let other warps issue, which takes the cache away.
const MOST_STALL: u8 = 2;

/// Sets the flags of a block whose control words are complete but for them.
pub(super) fn assign(insts: &mut [MachInst], facts: &[InstFacts]) {
    for at in 1..insts.len().min(facts.len()) {
        let (before, after) = insts.split_at_mut(at);
        let (Some(first), Some(second)) = (before.last_mut(), after.first()) else { continue };
        if !may_keep(first, &facts[at - 1]) || facts[at].variable || facts[at].late {
            continue;
        }
        let (own, next) = (first.inst.cached(), second.inst.cached());
        for (slot, (own, next)) in own.into_iter().zip(next).enumerate() {
            let is_same = own.is_some() && own == next;
            if is_same && !own.is_some_and(|register| overwrites(&facts[at - 1], register)) {
                first.inst.control.reuse |= 1 << slot;
            }
        }
    }
}

/// Whether the hardware takes the flag, and the next instruction comes from the same warp as a rule.
fn may_keep(inst: &MachInst, facts: &InstFacts) -> bool {
    let Control { stall, yield_, .. } = inst.inst.control;
    let is_guarded = inst.inst.is_guarded();
    !(facts.variable || facts.late || yield_ || is_guarded)
        && (1..=MOST_STALL).contains(&stall)
        && matches!(inst.effect, Effect::None)
}

/// Whether an instruction writes some of the registers from one on: operands have four at most.
fn overwrites(facts: &InstFacts, register: u8) -> bool {
    let end = |first: u8, count: u8| u16::from(first) + u16::from(count);
    facts.writes.iter().any(|written| {
        written.file == RegFile::R
            && u16::from(written.index) < end(register, 4)
            && u16::from(register) < end(written.index, written.count)
    })
}
