//! Global value numbering: replaces an operation by the result of an equal operation that dominates it.
//!
//! Only operations that may be repeated take part ([`alias::is_repeatable`]). Phis of one block with the same value
//! become one ([`phis`]).

mod phis;

use crate::CodegenError;
use crate::ori::alias;
use crate::ori::defs::Defs;
use crate::ori::ir::{BlockId, Dst, Function, Inst, Src, Value};
use crate::ori::memory::effect;
use crate::ori::op::Op;
use crate::ori::signature::{facts, fold_modifiers};
use crate::phases::{Change, Context};
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::{Hash, Hasher};

pub fn run(func: &mut Function, context: &Context<'_>) -> Result<Change, CodegenError> {
    Ok(merge(func, context, context.analyses.defs(func)))
}

/// Merges equal operations. `defs` is valid for the function, which may have changed since `context.analyses` were made.
pub(super) fn merge(func: &mut Function, context: &Context<'_>, defs: &Defs) -> Change {
    let cfg = context.analyses.cfg(func);
    let mut replaced = phis::equal_phis(func, cfg, defs);
    let tree = context.analyses.dominators(func);
    // The last instruction with each hash; it is valid if its block dominates the current one.
    let mut seen: FxHashMap<u64, (BlockId, u32)> = FxHashMap::default();
    let mut change = Change::of(!replaced.is_empty());
    for &b in &tree.preorder {
        for i in 0..func.block(b).insts.len() {
            let inst = &mut func.block_mut(b).insts[i];
            if !replaced.is_empty() {
                inst.uses_mut().for_each(|src| *src = replaced.resolve(*src));
                fold_modifiers(inst);
            }
            if !takes_part(inst) {
                continue;
            }
            let inst = &func.block(b).insts[i];
            let hash = hash(inst);
            let here = (b, i as u32);
            let (at, index) = *seen.entry(hash).or_insert(here);
            if (at, index) == here {
                continue;
            }
            if !tree.dominates(at, b) {
                seen.insert(hash, here);
                continue;
            }
            let earlier = &func.block(at).insts[index as usize];
            if !same(func, earlier, inst) {
                continue;
            }
            let pairs: Vec<(Dst, Dst)> =
                earlier.dsts.iter().copied().zip(inst.dsts.iter().copied()).collect();
            for (k, (to, from)) in pairs.into_iter().enumerate() {
                match (to, from) {
                    (Dst::Value(to), Dst::Value(from)) => replaced.insert(from, to.into()),
                    // The earlier instruction did not need this result; now it computes it.
                    (_, Dst::Value(from)) => {
                        func.block_mut(at).insts[index as usize].dsts[k] = Dst::Value(from);
                        func.block_mut(b).insts[i].dsts[k] = Dst::Sink;
                    }
                    _ => {}
                }
            }
            let inst = &mut func.block_mut(b).insts[i];
            *inst = Inst::new(Op::Nop, &[], &[], inst.src);
            change = Change::Something;
        }
    }
    replaced.apply(func, cfg);
    change
}

fn takes_part(inst: &Inst) -> bool {
    inst.guard == Src::TRUE && !inst.dsts.is_empty() && alias::is_repeatable(&effect(&inst.op))
}

fn hash(inst: &Inst) -> u64 {
    let mut hasher = FxHasher::default();
    inst.op.hash(&mut hasher);
    inst.dsts.len().hash(&mut hasher);
    match facts(&inst.op).commutes {
        Some((a, b)) if b < inst.srcs.len() => {
            // The hash is the same for both orders.
            let one = |src: &Src| {
                let mut hasher = FxHasher::default();
                src.hash(&mut hasher);
                hasher.finish()
            };
            one(&inst.srcs[a]).wrapping_add(one(&inst.srcs[b])).hash(&mut hasher);
            for (i, src) in inst.srcs.iter().enumerate() {
                if i != a && i != b {
                    src.hash(&mut hasher);
                }
            }
        }
        _ => inst.srcs.hash(&mut hasher),
    }
    hasher.finish()
}

fn same(func: &Function, a: &Inst, b: &Inst) -> bool {
    if a.op != b.op || a.srcs.len() != b.srcs.len() || a.dsts.len() != b.dsts.len() {
        return false;
    }
    // `PACK` and `COPY` are of any width and file.
    let shape = |v: Value| func.value(v);
    let same_shapes = a.dsts.iter().zip(&b.dsts).all(|pair| match pair {
        (Dst::Value(x), Dst::Value(y)) => shape(*x) == shape(*y),
        _ => true,
    });
    if !same_shapes {
        return false;
    }
    if a.srcs == b.srcs {
        return true;
    }
    let Some((i, j)) = facts(&a.op).commutes else { return false };
    j < a.srcs.len()
        && a.srcs[i] == b.srcs[j]
        && a.srcs[j] == b.srcs[i]
        && (0..a.srcs.len()).all(|k| k == i || k == j || a.srcs[k] == b.srcs[k])
}
