//! Removes unused instructions and phis, and unreachable blocks.
//!
//! An instruction is used if it has an effect, ends a block, or defines a value that a used instruction reads. Cycles
//! of phis that are read only by themselves are removed too.

use crate::CodegenError;
use crate::abi;
use crate::ori::alias;
use crate::ori::cfg::Cfg;
use crate::ori::ir::{BlockId, Dst, Function, Inst, Src, Value};
use crate::ori::memory::effect;
use crate::ori::op::Op;
use crate::phase::edit;
use crate::phases::{Change, Context};

pub fn run(func: &mut Function, context: &Context<'_>) -> Result<Change, CodegenError> {
    let cfg = context.analyses.cfg(func);
    edit::remove_unreached(func, cfg);
    remove_dead(func, cfg);
    Ok(Change::Something)
}

/// Whether the instruction stays even if its results are not read.
pub(super) fn is_root(inst: &Inst) -> bool {
    // An instruction whose guard is always false has no effect.
    has_effect(inst) && inst.guard != Src::FALSE
}

fn has_effect(inst: &Inst) -> bool {
    !alias::is_removable(&effect(&inst.op))
}

#[derive(Clone, Copy)]
enum Def {
    Nowhere,
    Phi(BlockId, u32),
    Inst(BlockId, u32),
}

pub fn remove_dead(func: &mut Function, cfg: &Cfg) {
    let mut defs = vec![Def::Nowhere; func.values.len()];
    let mut needed = vec![false; func.values.len()];
    // Emission of the call reads the value.
    for (needed, data) in needed.iter_mut().zip(&func.values) {
        *needed = data.pin == Some(abi::FRAME);
    }
    let mut work: Vec<Value> = Vec::new();
    let need = |src: &Src, needed: &mut Vec<bool>, work: &mut Vec<Value>| {
        if let Some(v) = src.value()
            && !needed[v.index()]
        {
            needed[v.index()] = true;
            work.push(v);
        }
    };
    for &b in &cfg.order {
        let block = func.block(b);
        for (i, phi) in block.phis.iter().enumerate() {
            defs[phi.dst.index()] = Def::Phi(b, i as u32);
        }
        for (i, inst) in block.insts.iter().enumerate() {
            for v in inst.defs() {
                defs[v.index()] = Def::Inst(b, i as u32);
            }
            if is_root(inst) {
                inst.uses().for_each(|src| need(src, &mut needed, &mut work));
            }
        }
        if let Some(src) = block.term.operand() {
            need(src, &mut needed, &mut work);
        }
    }
    while let Some(v) = work.pop() {
        match defs[v.index()] {
            Def::Nowhere => {}
            Def::Phi(b, i) => {
                for (_, src) in &func.block(b).phis[i as usize].args {
                    need(src, &mut needed, &mut work);
                }
            }
            Def::Inst(b, i) => {
                for src in func.block(b).insts[i as usize].uses() {
                    need(src, &mut needed, &mut work);
                }
            }
        }
    }
    for &b in &cfg.order {
        let block = &mut func.blocks[b.index()];
        let never = &mut func.facts.never;
        block.phis.retain(|phi| needed[phi.dst.index()]);
        block.insts.retain_mut(|inst| {
            let is_needed = is_root(inst) || inst.defs().any(|v| needed[v.index()]);
            if is_needed {
                sink_unread(inst, &needed);
            }
            if !is_needed && has_effect(inst) {
                never.push(inst.src);
            }
            is_needed && inst.op != Op::Nop
        });
    }
}

/// Discards unread results, so that they take no registers. An atomic with an unread result becomes a reduction, unless
/// it acquires: the hardware does not wait for the completion of a reduction.
fn sink_unread(inst: &mut Inst, needed: &[bool]) {
    let of_others = inst.op.results_of_others();
    for (i, dst) in inst.dsts.iter_mut().enumerate().skip(of_others) {
        if let Dst::Value(v) = dst
            && !needed[v.index()]
        {
            *dst = Dst::Sink;
            if let Some(old) = inst.old.get_mut(i) {
                *old = Src::UNDEF;
            }
        }
    }
    if let Op::Atom { op, ty, order, offset, generic: false } = inst.op
        && !order.acquires()
        && inst.dsts.iter().all(|dst| *dst == Dst::Sink)
        && op != crate::ori::op::AtomOp::Exch
    {
        inst.op = Op::Red { op, ty, order, offset };
        inst.dsts.clear();
        inst.old.clear();
    }
}
