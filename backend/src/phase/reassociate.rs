//! Moves constants out of sums that are addresses: `(x + 80) + y` becomes `x + y`, and the accesses at that address add
//! 80 to their offsets.
//!
//! Elements of several arrays with the same index, for example arrays in a function's frame, then have one address and
//! differ only in their offsets. They need one register, and scheduling knows that the accesses do not overlap.
//!
//! Before and after: SSA. Sums are changed in place, and equal ones are merged; dead code elimination removes unused
//! sums.

use crate::CodegenError;
use crate::ori::cfg::Cfg;
use crate::ori::defs::Defs;
use crate::ori::ir::{Dst, Function, Inst, Src, SrcKind, SrcMods, Value};
use crate::ori::memory::memory;
use crate::ori::op::Op;
use crate::phase::addresses::offset_mut;
use crate::phase::edit::{added, known};
use crate::phase::value_numbering;
use crate::phases::{Change, Context};
use smallvec::SmallVec;

/// The maximum number of nested sums that are followed for one address.
const DEEPEST: usize = 8;

pub fn run(func: &mut Function, context: &Context<'_>) -> Result<Change, CodegenError> {
    let cfg = context.analyses.cfg(func);
    let rooms = rooms(func, cfg);
    let (defs, uses) = (context.analyses.defs(func), context.analyses.uses(func));
    let mut moved = vec![0; func.values.len()];
    for &b in &cfg.order {
        for i in 0..func.block(b).insts.len() {
            let inst = &func.block(b).insts[i];
            let Some(v) = sum(func, inst) else { continue };
            let room = &rooms[v.index()];
            if room.uses == 0 || room.uses != uses[v.index()] {
                continue;
            }
            let (terms, constant) = without_constants(func, defs, &inst.srcs);
            if constant != 0 && room.takes(constant) {
                func.block_mut(b).insts[i].srcs = terms;
                moved[v.index()] = constant;
            }
        }
    }
    if moved.iter().all(|constant| *constant == 0) {
        return Ok(Change::Nothing);
    }
    for &b in &cfg.order {
        for inst in &mut func.block_mut(b).insts {
            for n in 0..2 {
                if let Some(v) = address(inst, n)
                    && let Some((offset, _)) = offset_mut(&mut inst.op, n)
                {
                    *offset += moved[v.index()];
                }
            }
        }
    }
    value_numbering::run(func, context)?;
    Ok(Change::Something)
}

/// The range of constants that all accesses through an address can add to their offsets.
#[derive(Clone)]
struct Room {
    /// How often the value is used as an address.
    uses: u32,
    least: i64,
    most: i64,
}

impl Room {
    fn takes(&self, constant: i32) -> bool {
        (self.least..=self.most).contains(&i64::from(constant))
    }
}

/// Indexed by value.
fn rooms(func: &Function, cfg: &Cfg) -> Vec<Room> {
    let mut rooms = vec![Room { uses: 0, least: i64::MIN, most: i64::MAX }; func.values.len()];
    for inst in cfg.order.iter().flat_map(|&b| &func.block(b).insts) {
        for n in 0..2 {
            let mut op = inst.op;
            if let Some(v) = address(inst, n)
                && let Some((offset, offsets)) = offset_mut(&mut op, n)
            {
                let room = &mut rooms[v.index()];
                room.uses += 1;
                room.least = room.least.max(offsets.start() - i64::from(*offset));
                room.most = room.most.min(offsets.end() - i64::from(*offset));
            }
        }
    }
    rooms
}

/// The value that is source `n` of a memory operation.
fn address(inst: &Inst, n: usize) -> Option<Value> {
    memory(&inst.op)?;
    match inst.srcs.get(n)? {
        Src { kind: SrcKind::Value(v), mods: SrcMods::NONE } => Some(*v),
        _ => None,
    }
}

/// The result of an instruction that only computes a 32-bit sum.
fn sum(func: &Function, inst: &Inst) -> Option<Value> {
    let Some(Dst::Value(v)) = inst.dsts.first() else { return None };
    let plain = inst.op == (Op::Iadd3 { x: false })
        && inst.guard.is_true()
        && inst.dsts[1..].iter().all(|dst| *dst == Dst::Sink)
        && func.value(*v).width == 1;
    plain.then_some(*v)
}

/// The terms of a sum, and the sum of the constants among them and in nested sums with one term.
fn without_constants(func: &Function, defs: &Defs, srcs: &[Src]) -> (SmallVec<[Src; 4]>, i32) {
    let mut terms: SmallVec<[Src; 4]> = srcs.iter().copied().collect();
    let mut constant = 0u32;
    for term in &mut terms {
        for _ in 0..DEEPEST {
            if let Some(bits) = known(term) {
                constant = constant.wrapping_add(bits);
                *term = Src::ZERO;
                break;
            }
            let Some((base, bits)) = added(func, defs, *term) else { break };
            (*term, constant) = (base, constant.wrapping_add(bits));
        }
    }
    (terms, constant as i32)
}
