//! The effects of an operation besides its results, which determine how phases may transform an instruction.

use super::ir::{Dst, Inst, Src, SrcKind, SrcMods};
use super::memory::{Effect, Kind, Memory, Order, Space};
use super::op::{AddressScale, HalfRead, Op, Routine, Sr};
use super::operations::facts;
use super::signature::special;

/// How an operation reads the modifiers of its operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Interpretation {
    Integer,
    /// `neg` is a complement: additions with carry.
    Complement,
    Float,
    /// A 16-bit float.
    Narrow,
    /// Two floats in 32 bits.
    Half,
}

/// The facts of a row. [`Facts::WORST`] allows no transformation; a row states what it allows in addition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Facts {
    /// The effect on memory and other threads; [`super::alias`] derives whether the operation may be moved or removed.
    pub effect: Effect,
    /// The result depends on which threads execute the operation together. So it must be neither moved into or out of
    /// other control flow nor repeated. A uniform result belongs to those threads; threads that execute the operation
    /// later overwrite it.
    pub convergent: bool,
    /// No instruction at all may move across it.
    pub pinned: bool,
    /// Threads wait in the operation, or return from it, so other threads of the warp may run elsewhere meanwhile.
    pub waits: bool,
    /// A guard may be added to the instruction.
    pub guardable: bool,
    /// Executes on the uniform datapath, for the whole warp at once.
    pub uniform: bool,
    /// Two source slots that may be exchanged without changing the result.
    pub commutes: Option<(usize, usize)>,
    pub modifiers: Interpretation,
}

impl Facts {
    pub const WORST: Facts = Facts {
        effect: Effect::Everything,
        convergent: true,
        pinned: true,
        waits: true,
        guardable: false,
        uniform: false,
        commutes: None,
        modifiers: Interpretation::Integer,
    };
    /// The results depend on the operands alone.
    pub const PURE: Facts = Facts {
        effect: Effect::None,
        convergent: false,
        pinned: false,
        waits: false,
        guardable: true,
        ..Facts::WORST
    };
    pub const FLOAT: Facts = Facts { modifiers: Interpretation::Float, ..Facts::PURE };
    pub const HALF: Facts = Facts { modifiers: Interpretation::Half, ..Facts::PURE };
    /// The results depend on the threads of the warp that execute the operation together.
    pub const WARP: Facts =
        Facts { effect: Effect::Warp { removable: true }, convergent: true, guardable: false, ..Facts::PURE };
    /// Orders memory.
    pub const FENCE: Facts = Facts { effect: Effect::Everything, ..Facts::PURE };
    /// Orders memory. The uniform datapath executes it once for all threads that execute it together, whatever their
    /// guards.
    pub const UNIFORM_FENCE: Facts = Facts::FENCE.uniform().convergent();
    /// Executed by four warps, which read shared memory. All threads of a warp execute it together, so none of them
    /// runs other code while it waits.
    pub const GROUP: Facts = Facts { pinned: true, ..Facts::FENCE.convergent() };
    /// Waits for other threads.
    pub const SYNC: Facts = Facts { waits: true, ..Facts::FENCE };

    /// An access of memory.
    pub(super) const fn access(space: Space, kind: Kind, order: Order, offset: i32, bytes: u8) -> Facts {
        Facts {
            effect: Effect::Memory(Memory { space, kind, order, offset, scale: 0, bytes }),
            ..Facts::PURE
        }
    }

    /// The register of the address is multiplied.
    pub(super) fn scaled(self, scale: AddressScale) -> Facts {
        match self.effect {
            Effect::Memory(memory) => {
                Facts { effect: Effect::Memory(Memory { scale: scale.shift(), ..memory }), ..self }
            }
            _ => self,
        }
    }

    /// The warp moves a matrix between registers and shared memory; each thread supplies addresses for other threads.
    pub(super) const fn matrix(kind: Kind, offset: i32) -> Facts {
        Facts::access(Space::Shared, kind, Order::Weak, offset, Memory::ANYWHERE).convergent()
    }

    /// A call of code that may overwrite registers, and may be a barrier.
    pub(super) fn routine(routine: Routine) -> Facts {
        let facts = if routine.waits() { Facts::SYNC.convergent().pinned() } else { Facts::SYNC };
        Facts { guardable: false, ..facts }
    }

    /// A read of a special register.
    pub(super) fn special(sr: Sr) -> Facts {
        let effect = if special::is_stable(sr) { Effect::None } else { Effect::Observes };
        Facts { effect, ..Facts::PURE }
    }

    pub(super) const fn convergent(self) -> Facts {
        Facts { convergent: true, guardable: false, ..self }
    }

    pub(super) const fn uniform(self) -> Facts {
        Facts { uniform: true, ..self }
    }

    pub(super) const fn pinned(self) -> Facts {
        Facts { pinned: true, ..self }
    }

    pub(super) const fn pinned_unless(self, free: bool) -> Facts {
        Facts { pinned: !free, ..self }
    }

    pub(super) const fn commutes(self, a: usize, b: usize) -> Facts {
        Facts { commutes: Some((a, b)), ..self }
    }

    pub(super) const fn narrow_if(self, narrow: bool) -> Facts {
        if narrow { Facts { modifiers: Interpretation::Narrow, ..self } } else { self }
    }

    /// Equal operands give equal results anywhere: the operation may be merged with an equal one and moved freely.
    pub const fn is_pure(&self) -> bool {
        matches!(self.effect, Effect::None | Effect::Memory(Memory { space: Space::Constant, .. }))
    }
}

/// Replaces the high half of an immediate, which cannot be selected in the encoding, by the low half of another one.
fn read_low_half(inst: &mut Inst) {
    let (src, is_high) = match inst.op {
        Op::Hadd2 { half, .. } => (1, half == HalfRead::High),
        Op::MufuHalf { high, .. } => (0, high),
        _ => return,
    };
    let bits = match inst.srcs[src].kind {
        SrcKind::Imm(bits) => bits,
        SrcKind::Zero => 0,
        _ => return,
    };
    if is_high {
        inst.srcs[src].kind = Src::imm(bits >> 16).kind;
        match &mut inst.op {
            Op::Hadd2 { half, .. } => *half = HalfRead::Own,
            Op::MufuHalf { high, .. } => *high = false,
            _ => {}
        }
    }
}

/// Applies the modifiers of immediates, which cannot have modifiers in the encoding. 16-bit float sources of
/// conversions and halves of packed operations are not changed.
pub fn fold_modifiers(inst: &mut Inst) {
    read_low_half(inst);
    let how = facts(&inst.op).modifiers;
    // A carry distinguishes `-0` from `0`.
    let carries = inst.dsts.iter().skip(1).any(|dst| matches!(dst, Dst::Value(_)));
    for src in &mut inst.srcs {
        if src.mods == SrcMods::NONE {
            continue;
        }
        let bits = match src.kind {
            SrcKind::Imm(0) if carries && src.mods.neg => {
                src.kind = SrcKind::Zero;
                continue;
            }
            SrcKind::Imm(bits) => bits,
            SrcKind::Zero if matches!(how, Interpretation::Integer) && !carries => {
                src.mods.neg = false;
                continue;
            }
            _ => continue,
        };
        let SrcMods { neg, abs, not } = src.mods;
        let mut bits = bits;
        match how {
            Interpretation::Half | Interpretation::Narrow => continue,
            Interpretation::Float => {
                if abs {
                    bits &= 0x7fff_ffff;
                }
                if neg {
                    bits ^= 0x8000_0000;
                }
            }
            Interpretation::Complement => {
                if neg || not {
                    bits = !bits;
                }
            }
            Interpretation::Integer => {
                if not {
                    bits = !bits;
                }
                if neg {
                    bits = bits.wrapping_neg();
                }
            }
        }
        *src = Src::imm(bits);
    }
}
