//! Lets accesses of shared memory multiply the register of their address, in place of a shift.
//!
//! `LDS [R.X4+0x10]` reads an element of four bytes by its index. A shift by 2, 3 or 4 bits goes if only addresses read
//! its result.
//!
//! Before and after: SSA.

use crate::CodegenError;
use crate::ori::ir::{File, Function, Inst, Src, SrcKind, SrcMods, Value};
use crate::ori::op::{AddressScale, Op};
use crate::phase::dead_code::remove_dead;
use crate::phase::edit::known;
use crate::phases::{Change, Context};
use crate::target::Target;

pub fn run(func: &mut Function, context: &Context<'_>) -> Result<Change, CodegenError> {
    if !Target::nearest(context.sm).is_some_and(|target| target.scales_addresses) {
        return Ok(Change::Nothing);
    }
    let cfg = context.analyses.cfg(func);
    let (defs, uses) = (context.analyses.defs(func), context.analyses.uses(func));
    let mut addresses = vec![0; func.values.len()];
    for inst in cfg.order.iter().flat_map(|&b| &func.block(b).insts) {
        if let Some(v) = address(inst) {
            addresses[v.index()] += 1;
        }
    }
    let mut changed = false;
    for &b in &cfg.order {
        for i in 0..func.block(b).insts.len() {
            let inst = &func.block(b).insts[i];
            let Some(v) = address(inst).filter(|v| addresses[v.index()] == uses[v.index()]) else { continue };
            let Some((index, factor)) = defs.inst(func, v).and_then(|shift| multiplied(func, shift)) else {
                continue;
            };
            let inst = &mut func.block_mut(b).insts[i];
            if let Op::Lds { scale, .. } | Op::Sts { scale, .. } = &mut inst.op {
                *scale = factor;
            }
            inst.srcs[0] = index;
            changed = true;
        }
    }
    if changed {
        remove_dead(func, cfg);
    }
    Ok(Change::of(changed))
}

/// The value that is the whole address of an access of shared memory, besides its offset and its uniform register.
fn address(inst: &Inst) -> Option<Value> {
    let (Op::Lds { scale: AddressScale::One, .. } | Op::Sts { scale: AddressScale::One, .. }) = inst.op
    else {
        return None;
    };
    match inst.srcs[0] {
        Src { kind: SrcKind::Value(v), mods: SrcMods::NONE } => Some(v),
        _ => None,
    }
}

/// The register that a shift multiplies by the size of an element, and the size.
fn multiplied(func: &Function, shift: &Inst) -> Option<(Src, AddressScale)> {
    let (Op::Shf { right: false, hi: false, .. }, [index, amount, _]) = (shift.op, &shift.srcs[..]) else {
        return None;
    };
    let factor = match known(amount)? {
        2 => AddressScale::Four,
        3 => AddressScale::Eight,
        4 => AddressScale::Sixteen,
        _ => return None,
    };
    let in_register = match index.kind {
        SrcKind::Value(v) => func.value(v).file == File::R && func.value(v).width == 1,
        _ => false,
    };
    (shift.guard.is_true() && in_register && index.mods == SrcMods::NONE).then_some((*index, factor))
}
