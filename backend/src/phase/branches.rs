//! Tidies control flow: known branches, jumps to jumps, chains of blocks.
//!
//! Before and after: SSA. Critical edges may appear where empty blocks go.

use crate::CodegenError;
use crate::ori::cfg::Cfg;
use crate::ori::ir::{BlockId, Function, Src, SrcKind, Term};
use crate::phase::convergence::retarget;
use crate::phase::edit::{Replacements, remove_unreached};
use crate::phases::Context;

pub fn run(func: &mut Function, _: &Context<'_>) -> Result<(), CodegenError> {
    decide_known(func);
    let cfg = Cfg::new(func);
    remove_unreached(func, &cfg);
    remove_empty(func);
    decide_known(func);
    merge_chains(func);
    Ok(())
}

/// A branch on a known predicate, or to one place, is a jump.
pub fn decide_known(func: &mut Function) {
    for i in 0..func.layout.len() {
        let b = func.layout[i];
        let (to, not) = match &func.block(b).term {
            Term::Branch { cond, then, els, .. } => match (cond.kind, then == els) {
                (_, true) => (*then, None),
                (SrcKind::Pred(value), _) if value != cond.mods.not => (*then, Some(*els)),
                (SrcKind::Pred(_), _) => (*els, Some(*then)),
                _ => continue,
            },
            Term::Switch { targets, .. } if targets.iter().all(|t| *t == targets[0]) => (targets[0], None),
            _ => continue,
        };
        if let Some(not) = not {
            remove_edge(func, b, not);
        }
        func.block_mut(b).term = Term::Jump(to);
    }
}

/// Control does not come from `from` to `to` any more.
fn remove_edge(func: &mut Function, from: BlockId, to: BlockId) {
    for phi in &mut func.block_mut(to).phis {
        phi.args.retain(|(pred, _)| *pred != from);
    }
}

/// Leads edges into blocks that only jump to where these jump.
fn remove_empty(func: &mut Function) {
    let entry = func.layout.first().copied();
    let cfg = Cfg::new(func);
    // Predecessors change along the way; what is not rewritten keeps the lists of the start.
    let mut preds: Vec<Vec<BlockId>> = vec![Vec::new(); func.blocks.len()];
    for &b in &cfg.order {
        preds[b.index()] = cfg.preds(b).to_vec();
    }
    // Last first, so that chains of empty blocks collapse in one pass.
    for &b in cfg.order.iter().rev() {
        let block = func.block(b);
        let Term::Jump(to) = block.term else { continue };
        let empty = block.phis.is_empty() && block.insts.is_empty();
        if !empty || to == b || Some(b) == entry {
            continue;
        }
        let sources = std::mem::take(&mut preds[b.index()]);
        if !phis_admit(func, to, b, &sources, &preds[to.index()]) {
            preds[b.index()] = sources;
            continue;
        }
        for from in &sources {
            retarget(&mut func.block_mut(*from).term, b, to);
        }
        for phi in &mut func.block_mut(to).phis {
            let Some(at) = phi.args.iter().position(|(pred, _)| *pred == b) else { continue };
            let (_, src) = phi.args.remove(at);
            for from in &sources {
                if !phi.args.iter().any(|(pred, _)| pred == from) {
                    phi.args.push((*from, src));
                }
            }
        }
        let into = &mut preds[to.index()];
        into.retain(|pred| *pred != b);
        for from in sources {
            if !into.contains(&from) {
                into.push(from);
            }
        }
        func.layout.retain(|other| *other != b);
        *func.block_mut(b) = Default::default();
    }
}

/// No block would need two values for one phi of `to` when `sources` go there instead of to `through`.
fn phis_admit(
    func: &Function,
    to: BlockId,
    through: BlockId,
    sources: &[BlockId],
    preds: &[BlockId],
) -> bool {
    let phis = &func.block(to).phis;
    if phis.is_empty() {
        return true;
    }
    sources.iter().filter(|from| preds.contains(from)).all(|from| {
        phis.iter().all(|phi| {
            let of = |b: BlockId| phi.args.iter().find(|(pred, _)| *pred == b).map(|(_, src)| *src);
            of(*from) == of(through)
        })
    })
}

/// Joins blocks with their only successors that have no other predecessor.
pub fn merge_chains(func: &mut Function) {
    let cfg = Cfg::new(func);
    let mut merged = vec![false; func.blocks.len()];
    // A block that was joined: where its contents are.
    let mut home: Vec<BlockId> = (0..func.blocks.len() as u32).map(BlockId).collect();
    let mut replaced = Replacements::new(func);
    for &b in &cfg.order {
        if merged[b.index()] {
            continue;
        }
        while let Term::Jump(to) = func.block(b).term {
            if to == b || cfg.preds(to).len() != 1 || Some(&to) == func.layout.first() {
                break;
            }
            let next = std::mem::take(func.block_mut(to));
            for phi in &next.phis {
                if let [(_, src)] = phi.args[..] {
                    replaced.insert(phi.dst, src);
                }
            }
            let block = func.block_mut(b);
            block.insts.extend(next.insts);
            block.term = next.term;
            block.term_src = next.term_src;
            merged[to.index()] = true;
            home[to.index()] = b;
        }
    }
    if !merged.contains(&true) {
        return;
    }
    func.layout.retain(|b| !merged[b.index()]);
    for i in 0..func.layout.len() {
        let b = func.layout[i];
        for phi in &mut func.block_mut(b).phis {
            for (from, _) in &mut phi.args {
                *from = home[from.index()];
            }
        }
    }
    let cfg = Cfg::new(func);
    replaced.apply(func, &cfg);
}

/// Puts what `resolve` gives for the argument that comes from `from` into every phi of `b`.
pub fn arguments_from(func: &Function, b: BlockId, from: BlockId) -> Vec<Src> {
    let of = |phi: &crate::ori::ir::Phi| {
        phi.args.iter().find(|(pred, _)| *pred == from).map_or(Src::UNDEF, |(_, src)| *src)
    };
    func.block(b).phis.iter().map(of).collect()
}
