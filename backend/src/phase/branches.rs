//! Simplifies control flow: constant branches, jumps to jumps, chains of blocks.
//!
//! Before and after: SSA. Removing empty blocks may create critical edges.

use crate::CodegenError;
use crate::ori::cfg::Cfg;
use crate::ori::ir::{BlockId, Function, Src, SrcKind, Term};
use crate::phase::convergence::retarget;
use crate::phase::edit::{Replacements, remove_unreached};
use crate::phases::{Change, Context};
use rustc_hash::{FxHashMap, FxHashSet};

/// A block that loses all but one of its predecessors may make another branch constant. Each round takes time linear in
/// the length of the function.
const ROUNDS: usize = 4;

pub fn run(func: &mut Function, _: &Context<'_>) -> Result<Change, CodegenError> {
    let blocks = func.layout.len();
    let mut decided = decide_known(func);
    remove_unreached(func, &Cfg::new(func));
    for _ in 0..ROUNDS {
        remove_empty(func);
        decided |= decide_known(func);
        merge_chains(func);
        if !decide_known(func) {
            break;
        }
        decided = true;
    }
    Ok(Change::of(decided || func.layout.len() != blocks))
}

/// Replaces branches on known predicates, and branches with only one target, by jumps, and removes code that is then
/// unreachable. Returns whether anything changed.
pub fn decide_known(func: &mut Function) -> bool {
    let mut decided = false;
    // The removed edges: target and source.
    let mut gone: Vec<(BlockId, BlockId)> = Vec::new();
    for i in 0..func.layout.len() {
        let b = func.layout[i];
        let (to, not) = match &func.block(b).term {
            Term::Branch { cond, then, els, .. } => match (cond.kind, then == els) {
                (_, true) => (*then, None),
                (SrcKind::Pred(value), _) if value != cond.mods.not => (*then, Some(*els)),
                // An undefined predicate counts as false, as in a guard.
                (SrcKind::Pred(_) | SrcKind::Undef, _) => (*els, Some(*then)),
                _ => continue,
            },
            Term::Switch { targets, .. } if targets.iter().all(|t| *t == targets[0]) => (targets[0], None),
            _ => continue,
        };
        decided = true;
        gone.extend(not.map(|not| (not, b)));
        func.block_mut(b).term = Term::Jump(to);
    }
    gone.sort_unstable();
    for edges in gone.chunk_by(|a, b| a.0 == b.0) {
        for phi in &mut func.block_mut(edges[0].0).phis {
            phi.args.retain(|&(from, _)| edges.binary_search_by_key(&from, |edge| edge.1).is_err());
        }
    }
    if decided {
        remove_unreached(func, &Cfg::new(func));
    }
    decided
}

/// Redirects edges to blocks that only jump to the targets of these jumps.
fn remove_empty(func: &mut Function) {
    let entry = func.layout.first().copied();
    let cfg = Cfg::new(func);
    let mut edges = Edges::new(func, &cfg);
    let mut removed = vec![false; func.blocks.len()];
    // In reverse order, so that chains of empty blocks collapse in one pass.
    for &b in cfg.order.iter().rev() {
        let block = func.block(b);
        let Term::Jump(to) = block.term else { continue };
        let empty = block.phis.is_empty() && block.insts.is_empty();
        if !empty || to == b || Some(b) == entry {
            continue;
        }
        let sources = edges.sources(b);
        if !edges.phis_admit(func, to, b, &sources) {
            continue;
        }
        for from in &sources {
            retarget(&mut func.block_mut(*from).term, b, to);
        }
        edges.lead_past(func, b, to, sources);
        removed[b.index()] = true;
        *func.block_mut(b) = Default::default();
    }
    edges.finish(func);
    func.layout.retain(|b| !removed[b.index()]);
}

/// Edges that change, and the arguments of phis along them.
struct Edges {
    /// The predecessors of each block. Some edges may have been removed.
    preds: Vec<Vec<BlockId>>,
    /// All existing edges: target and source.
    all: FxHashSet<(BlockId, BlockId)>,
    /// For blocks with phis that were examined: for each predecessor, the argument of each phi.
    columns: FxHashMap<BlockId, Columns>,
}

#[derive(Default)]
struct Columns {
    /// In the order of the arguments; `None` for removed ones.
    all: Vec<Option<(BlockId, Vec<Src>)>>,
    of: FxHashMap<BlockId, usize>,
    /// Some phi lacks an argument.
    incomplete: bool,
}

impl Columns {
    fn new(func: &Function, b: BlockId) -> Columns {
        let mut columns = Columns::default();
        for phi in &func.block(b).phis {
            for &(from, src) in &phi.args {
                let next = columns.all.len();
                let at = *columns.of.entry(from).or_insert(next);
                if at == next {
                    columns.all.push(Some((from, Vec::new())));
                }
                if let Some((_, column)) = &mut columns.all[at] {
                    column.push(src);
                }
            }
        }
        let phis = func.block(b).phis.len();
        columns.incomplete = columns.all.iter().flatten().any(|(_, column)| column.len() != phis);
        columns
    }

    fn get(&self, from: BlockId) -> Option<&Vec<Src>> {
        self.all[*self.of.get(&from)?].as_ref().map(|(_, column)| column)
    }
}

impl Edges {
    fn new(func: &Function, cfg: &Cfg) -> Edges {
        let mut preds = vec![Vec::new(); func.blocks.len()];
        let mut all = FxHashSet::default();
        for &b in &cfg.order {
            preds[b.index()] = cfg.preds(b).to_vec();
            all.extend(cfg.preds(b).iter().map(|from| (b, *from)));
        }
        Edges { preds, all, columns: FxHashMap::default() }
    }

    fn sources(&self, b: BlockId) -> Vec<BlockId> {
        self.preds[b.index()].iter().copied().filter(|from| self.all.contains(&(b, *from))).collect()
    }

    fn columns(&mut self, func: &Function, b: BlockId) -> &mut Columns {
        self.columns.entry(b).or_insert_with(|| Columns::new(func, b))
    }

    /// Whether `sources` can branch to `to` instead of `through`, without a block that would need two values for one
    /// phi of `to`.
    fn phis_admit(&mut self, func: &Function, to: BlockId, through: BlockId, sources: &[BlockId]) -> bool {
        if func.block(to).phis.is_empty() {
            return true;
        }
        let both: Vec<BlockId> =
            sources.iter().copied().filter(|from| self.all.contains(&(to, *from))).collect();
        let columns = self.columns(func, to);
        !columns.incomplete && both.iter().all(|from| columns.get(*from) == columns.get(through))
    }

    /// Redirects `sources` from `through` to `to`.
    fn lead_past(&mut self, func: &Function, through: BlockId, to: BlockId, sources: Vec<BlockId>) {
        self.all.remove(&(to, through));
        if !func.block(to).phis.is_empty() {
            let columns = self.columns(func, to);
            if let Some((_, column)) = columns.of.remove(&through).and_then(|at| columns.all[at].take()) {
                for from in &sources {
                    if !columns.of.contains_key(from) {
                        columns.of.insert(*from, columns.all.len());
                        columns.all.push(Some((*from, column.clone())));
                    }
                }
            }
        }
        for from in sources {
            self.all.remove(&(through, from));
            if self.all.insert((to, from)) {
                self.preds[to.index()].push(from);
            }
        }
    }

    /// Writes the arguments of the phis.
    fn finish(self, func: &mut Function) {
        let mut columns: Vec<(BlockId, Columns)> = self.columns.into_iter().collect();
        columns.sort_unstable_by_key(|(b, _)| *b);
        for (b, columns) in columns.into_iter().filter(|(_, columns)| !columns.incomplete) {
            for (i, phi) in func.block_mut(b).phis.iter_mut().enumerate() {
                let of = |(from, column): &(BlockId, Vec<Src>)| (*from, column[i]);
                phi.args = columns.all.iter().flatten().map(of).collect();
            }
        }
    }
}

/// Merges blocks with their only successor, if it has no other predecessor.
pub fn merge_chains(func: &mut Function) {
    let cfg = Cfg::new(func);
    let mut merged = vec![false; func.blocks.len()];
    // For each merged block, the block that contains its instructions.
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

/// Replaces, in every phi of `b`, the argument from `from` by the arguments that `resolve` returns for it.
pub fn arguments_from(func: &Function, b: BlockId, from: BlockId) -> Vec<Src> {
    let of = |phi: &crate::ori::ir::Phi| {
        phi.args.iter().find(|(pred, _)| *pred == from).map_or(Src::UNDEF, |(_, src)| *src)
    };
    func.block(b).phis.iter().map(of).collect()
}
