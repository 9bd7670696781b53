//! Guards the operation whose result a selection takes, so that it overwrites the other value: one operation in place of
//! two.
//!
//! Before and after: SSA. The other value must not be read after the selection, else a copy of it would replace the
//! selection. The operation must be quick, because a guarded operation starts only when its guard is known.

use crate::CodegenError;
use crate::emit::any_form;
use crate::ori::cfg::Cfg;
use crate::ori::defs::Defs;
use crate::ori::ir::{BlockId, Dst, File, Function, Inst, Src, SrcKind, SrcMods, Value};
use crate::ori::loops::{LoopId, Loops};
use crate::ori::op::Op;
use crate::ori::signature::facts;
use crate::phase::dead_code::remove_dead;
use crate::phases::{Change, Context};
use rustc_hash::FxHashMap;
use sass::{Class, Sm};

pub fn run(func: &mut Function, context: &Context<'_>) -> Result<Change, CodegenError> {
    let cfg = context.analyses.cfg(func);
    let has_selection = |b: &&BlockId| func.block(**b).insts.iter().any(|inst| inst.op == Op::Sel);
    let blocks: Vec<BlockId> = cfg.order.iter().filter(has_selection).copied().collect();
    if blocks.is_empty() {
        return Ok(Change::Nothing);
    }
    let loops = context.analyses.loops(func);
    let (defs, uses) = (context.analyses.defs(func), context.analyses.uses(func));
    let homes = homes(func, cfg, loops);
    let sm = Sm(context.sm.number as u8);
    for b in blocks {
        (context.checkpoint)();
        let last = last_uses(func, b, uses);
        for i in 0..func.block(b).insts.len() {
            let ends = |v: Value| last.get(&v) == Some(&i) && homes.get(&v) == Some(&loops.innermost(b));
            let Some((guarded, at)) = guarded(func, b, i, uses, defs, sm, ends) else { continue };
            let block = func.block_mut(b);
            block.insts[i] = guarded;
            block.insts[at] = Inst::new(Op::Nop, &[], &[], block.insts[at].src);
        }
    }
    remove_dead(func, cfg);
    Ok(Change::Something)
}

/// The innermost loop around the definition of each general register.
fn homes(func: &Function, cfg: &Cfg, loops: &Loops) -> FxHashMap<Value, Option<LoopId>> {
    let mut homes = FxHashMap::default();
    for &b in &cfg.order {
        let block = func.block(b);
        let defs = block.phis.iter().map(|phi| phi.dst).chain(block.insts.iter().flat_map(Inst::defs));
        homes.extend(defs.filter(|v| func.value(*v).file == File::R).map(|v| (v, loops.innermost(b))));
    }
    homes
}

/// For each value that only instructions of this block read: the last of them.
fn last_uses(func: &Function, b: BlockId, uses: &[u32]) -> FxHashMap<Value, usize> {
    let mut reads: FxHashMap<Value, (u32, usize)> = FxHashMap::default();
    for (i, inst) in func.block(b).insts.iter().enumerate() {
        for v in inst.uses().filter_map(Src::value) {
            let (count, last) = reads.entry(v).or_default();
            (*count, *last) = (*count + 1, i);
        }
    }
    let only_here = reads.into_iter().filter(|(v, (count, _))| uses[v.index()] == *count);
    only_here.map(|(v, (_, last))| (v, last)).collect()
}

/// The guarded operation that replaces the selection at `i`, and its position before. `ends`: the value is not needed
/// after the selection.
fn guarded(
    func: &Function,
    b: BlockId,
    i: usize,
    uses: &[u32],
    defs: &Defs,
    sm: Sm,
    ends: impl Fn(Value) -> bool,
) -> Option<(Inst, usize)> {
    let insts = &func.block(b).insts;
    let select = &insts[i];
    let (Op::Sel, &[yes, no, cond]) = (select.op, &select.srcs[..]) else { return None };
    if !select.guard.is_true() || cond.value().is_none() {
        return None;
    }
    [(yes, no, cond), (no, yes, cond.not())].into_iter().find_map(|(taken, kept, guard)| {
        let whole = |src: Src| match src {
            Src { kind: SrcKind::Value(v), mods: SrcMods::NONE } => Some(v),
            _ => None,
        };
        let (taken, kept_value) = (whole(taken)?, whole(kept)?);
        let (block, at) = defs.site(taken)?;
        let inst = &insts.get(at).filter(|_| block == b && at < i)?;
        let fits = uses[taken.index()] == 1
            && inst.guard.is_true()
            && inst.defs().eq([taken])
            && is_quick(sm, &inst.op)
            && func.value(kept_value) == func.value(taken)
            && ends(kept_value);
        fits.then(|| {
            let mut new = (*inst).clone();
            let place = |dst: &Dst| if *dst == Dst::Sink { Dst::Sink } else { select.dsts[0] };
            new.dsts = inst.dsts.iter().map(place).collect();
            new.old = inst.dsts.iter().map(|dst| if *dst == Dst::Sink { Src::UNDEF } else { kept }).collect();
            new.guard = guard;
            (new, at)
        })
    })
}

/// Whether a guard can be added, and the result follows in a few cycles. Moves are not: a selection can read what they
/// read.
fn is_quick(sm: Sm, op: &Op) -> bool {
    let facts = facts(op);
    let is_move = matches!(op, Op::Mov | Op::Copy | Op::Pack | Op::Sel);
    let class = any_form(sm, op).map(|id| sass::form(id).class);
    facts.guardable
        && facts.is_pure()
        && !facts.convergent
        && !is_move
        && matches!(class, Some(Class::Alu | Class::Fma | Class::Half))
}
