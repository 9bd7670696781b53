//! Moves the tests of loops from the beginning to the end.
//!
//! ```text
//!   ┌──► test ── no ──► after             test ── no ──────┐
//!   │     │ yes                            │ yes           │
//!   │    body                   ┌─► body ◄─┘               │
//!   └─────┘                     └─yes─ test ── no ──► after ◄┘
//! ```
//!
//! An iteration then has one branch less, and unrolling finds the test at the end, where it expects it.
//!
//! Before and after: SSA. The header contains little more than the test and only computes values. No block of the loop
//! branches both to the header and out of the loop. Afterwards the header's values have two definitions, which phis
//! join. The statements of the test are in the code twice; they have no effect, so their number does not matter.

use super::copy::{Map, rename, substituted};
use super::ends::redirect;
use super::{like, made};
use crate::CodegenError;
use crate::ori::analyses::Analyses;
use crate::ori::cfg::Cfg;
use crate::ori::defs::for_each_use;
use crate::ori::ir::{BlockId, Dst, File, Function, Inst, Phi, Src, Term, Value};
use crate::ori::loops::{LoopId, Loops};
use crate::ori::operations::facts;
use crate::ori::signature;
use crate::phase::copy_propagation;
use crate::phases::{Change, Context};
use rustc_hash::{FxHashMap, FxHashSet};

/// The maximum number of operations of a header that is copied.
const MOST_COPIED: usize = 12;
/// Loops whose headers follow each other, or read each other's values, are rotated in different rounds.
const ROUNDS: usize = 6;

pub fn run(func: &mut Function, context: &Context<'_>) -> Result<Change, CodegenError> {
    let mut chosen = choose(func, context.analyses.cfg(func), context.analyses.loops(func));
    if chosen.is_empty() {
        return Ok(Change::Nothing);
    }
    for _ in 0..ROUNDS {
        (context.checkpoint)();
        rotate(func, &chosen);
        let analyses = Analyses::default();
        chosen = choose(func, analyses.cfg(func), analyses.loops(func));
        if chosen.is_empty() {
            break;
        }
    }
    // Headers with a single predecessor have phis with one argument.
    copy_propagation::run(func, &Context { analyses: &Analyses::default(), ..*context })
}

/// A loop that is left only from its header.
struct Rotated {
    header: BlockId,
    /// The successors of the header: into the loop, and out of it.
    body: BlockId,
    after: BlockId,
    /// The blocks that enter the loop.
    entries: Vec<BlockId>,
}

fn choose(func: &Function, cfg: &Cfg, loops: &Loops) -> Vec<Rotated> {
    let mut chosen: Vec<Rotated> = Vec::new();
    let mut touched: FxHashSet<BlockId> = FxHashSet::default();
    let (mut makes, mut reads) = (FxHashSet::<Value>::default(), FxHashSet::<Value>::default());
    for (i, one) in loops.loops.iter().enumerate() {
        let Some(rotated) = rotated(func, cfg, loops, LoopId(i as u32), one.header) else { continue };
        let near = [rotated.header, rotated.body, rotated.after];
        let mut near = near.iter().chain(&rotated.entries).chain(cfg.preds(rotated.header));
        // In one round, no header reads the values of another one.
        let own: Vec<Value> = made(func, rotated.header).collect();
        let mut uses: Vec<Value> = Vec::new();
        for_each_use(func, rotated.header, |src| uses.extend(src.value()));
        let depends = uses.iter().any(|v| makes.contains(v)) || own.iter().any(|v| reads.contains(v));
        if depends || near.clone().any(|b| touched.contains(b)) {
            continue;
        }
        near.by_ref().for_each(|b| _ = touched.insert(*b));
        makes.extend(own);
        reads.extend(uses);
        chosen.push(rotated);
    }
    chosen
}

fn rotated(func: &Function, cfg: &Cfg, loops: &Loops, id: LoopId, header: BlockId) -> Option<Rotated> {
    let block = func.block(header);
    let Term::Branch { then, els, .. } = block.term else { return None };
    let inside = |b: BlockId| loops.contains(id, b);
    let (body, after) = match (inside(then), inside(els)) {
        (true, false) => (then, els),
        (false, true) => (els, then),
        _ => return None,
    };
    let (back, entries): (Vec<BlockId>, Vec<BlockId>) = cfg.preds(header).iter().partition(|b| inside(**b));
    let stays = |b: &BlockId| func.block(*b).term.successors().iter().all(|to| inside(*to));
    let copies = block.insts.len() <= MOST_COPIED && block.insts.iter().all(|inst| only_computes(func, inst));
    let plain = block.phis.iter().all(|phi| is_plain(func, phi.dst));
    let is_rotated = body != header
        && !loops.is_irreducible(header)
        && func.layout.first() != Some(&header)
        && copies
        && plain
        && back.iter().all(stays);
    is_rotated.then_some(Rotated { header, body, after, entries })
}

fn only_computes(func: &Function, inst: &Inst) -> bool {
    let facts = facts(&inst.op);
    facts.is_pure() && !facts.convergent && !facts.uniform && inst.defs().all(|v| is_plain(func, v))
}

fn is_plain(func: &Function, v: Value) -> bool {
    let data = func.value(v);
    data.pin.is_none() && matches!(data.file, File::R | File::P)
}

fn rotate(func: &mut Function, chosen: &[Rotated]) {
    let readers = readers(func, chosen);
    let made: Vec<Joined> = chosen.iter().map(|one| one.rotate(func)).collect();
    let cfg = Cfg::new(func);
    for (joined, readers) in made.iter().zip(readers) {
        joined.unite(func, &cfg, readers);
    }
}

/// For each loop, the blocks that read the values of its header. The header's own phis read them at the ends of
/// iterations.
fn readers(func: &Function, chosen: &[Rotated]) -> Vec<Vec<BlockId>> {
    let mut maker: Vec<Option<usize>> = vec![None; func.values.len()];
    for (i, one) in chosen.iter().enumerate() {
        made(func, one.header).for_each(|v| maker[v.index()] = Some(i));
    }
    let mut readers = vec![Vec::new(); chosen.len()];
    for &b in &func.layout {
        for_each_use(func, b, |src| {
            let maker = src.value().and_then(|v| maker.get(v.index()).copied().flatten());
            if let Some(i) = maker
                && readers[i].last() != Some(&b)
            {
                readers[i].push(b);
            }
        });
    }
    readers
}

/// A loop whose test was copied. The copy and the test branch to the same two blocks.
struct Joined {
    header: BlockId,
    guard: BlockId,
    /// Maps the values of the header to those of the copy.
    map: Map,
}

impl Rotated {
    /// Redirects the entries to a copy of the test.
    fn rotate(&self, func: &mut Function) -> Joined {
        let Rotated { header, body, after, ref entries } = *self;
        let guard = func.new_block();
        let meets = [body, after].map(|to| {
            let new = func.new_block();
            for phi in &mut func.block_mut(to).phis {
                phi.args.iter_mut().filter(|(from, _)| *from == header).for_each(|(from, _)| *from = new);
            }
            redirect(&mut func.block_mut(header).term, to, new);
            let src = func.block(header).term_src;
            let block = func.block_mut(new);
            (block.term, block.term_src) = (Term::Jump(to), src);
            new
        });
        func.block_mut(meets[0]).may_unroll = std::mem::take(&mut func.block_mut(header).may_unroll);
        for &from in entries {
            redirect(&mut func.block_mut(from).term, header, guard);
        }
        let map = self.copy_test(func, guard);
        let place = func.layout.iter().position(|&b| b == header).unwrap_or(0);
        func.layout.splice(place..place, [guard, meets[0]]);
        let end = func.layout.iter().position(|&b| b == after).unwrap_or(func.layout.len());
        func.layout.insert(end, meets[1]);
        Joined { header, guard, map }
    }

    fn copy_test(&self, func: &mut Function, guard: BlockId) -> Map {
        let mut map = Map::default();
        let mut phis = std::mem::take(&mut func.block_mut(self.header).phis);
        for phi in &mut phis {
            let (enter, back): (Vec<_>, Vec<_>) =
                phi.args.drain(..).partition(|(from, _)| self.entries.contains(from));
            phi.args = back;
            let begins = match enter[..] {
                [(_, src)] => src,
                _ => {
                    let dst = like(func, phi.dst);
                    func.block_mut(guard).phis.push(Phi { dst, args: enter });
                    dst.into()
                }
            };
            map.insert(phi.dst, begins);
        }
        func.block_mut(self.header).phis = phis;
        let mut insts = func.block(self.header).insts.clone();
        for inst in &mut insts {
            inst.uses_mut().for_each(|src| *src = substituted(&map, *src));
            for v in inst.defs().collect::<Vec<Value>>() {
                map.insert(v, like(func, v).into());
            }
            inst.dsts.iter_mut().for_each(|dst| {
                if let Dst::Value(v) = dst {
                    rename(&map, v);
                }
            });
            if inst.guard.is_true() {
                inst.old.clear();
            }
            signature::fold_modifiers(inst);
        }
        let (mut term, term_src) = (func.block(self.header).term.clone(), func.block(self.header).term_src);
        if let Some(src) = term.operand_mut() {
            *src = substituted(&map, *src);
        }
        let block = func.block_mut(guard);
        (block.insts, block.term, block.term_src) = (insts, term, term_src);
        map
    }
}

impl Joined {
    /// Adds phis where the two definitions of a value meet; `readers` read them.
    fn unite(&self, func: &mut Function, cfg: &Cfg, readers: Vec<BlockId>) {
        let mut united: FxHashMap<Value, FxHashMap<BlockId, Src>> = FxHashMap::default();
        for b in readers {
            // Phis read their arguments at the ends of the predecessors.
            let mut phis = std::mem::take(&mut func.block_mut(b).phis);
            for (from, src) in phis.iter_mut().flat_map(|phi| &mut phi.args) {
                if let Some(by) = self.reaching(func, cfg, &mut united, src, *from) {
                    *src = by;
                }
            }
            let block = func.block(b);
            let read = block.insts.iter().flat_map(Inst::uses).chain(block.term.operand());
            let read: Vec<Src> =
                read.filter_map(Src::value).filter(|v| self.map.contains_key(v)).map(Src::from).collect();
            let mut by = Map::default();
            for src in read {
                if let (Some(v), Some(reaching)) =
                    (src.value(), self.reaching(func, cfg, &mut united, &src, b))
                {
                    by.insert(v, reaching);
                }
            }
            let block = func.block_mut(b);
            let uses = block.insts.iter_mut().flat_map(Inst::uses_mut).chain(block.term.operand_mut());
            uses.for_each(|src| *src = substituted(&by, *src));
            // Phis may have been added.
            phis.append(&mut func.block_mut(b).phis);
            func.block_mut(b).phis = phis;
        }
    }

    /// The value that replaces `src` in `b`, or at its end. `None` if it does not change.
    fn reaching(
        &self,
        func: &mut Function,
        cfg: &Cfg,
        united: &mut FxHashMap<Value, FxHashMap<BlockId, Src>>,
        src: &Src,
        b: BlockId,
    ) -> Option<Src> {
        let v = src.value().filter(|v| self.map.contains_key(v))?;
        if b == self.header {
            return None;
        }
        let known = united.entry(v).or_default();
        let mut work = Vec::new();
        let value = self.find(func, cfg, known, &mut work, v, b);
        while let Some((at, phi)) = work.pop() {
            let mut args = Vec::new();
            for &from in cfg.preds(at) {
                args.push((from, self.find(func, cfg, known, &mut work, v, from)));
            }
            let phi: Phi = Phi { dst: phi, args };
            func.block_mut(at).phis.push(phi);
        }
        let by: Map = std::iter::once((v, value)).collect();
        Some(substituted(&by, *src))
    }

    /// The value at the end of a block. Adds a phi to `work` if several values may reach it.
    fn find(
        &self,
        func: &mut Function,
        cfg: &Cfg,
        known: &mut FxHashMap<BlockId, Src>,
        work: &mut Vec<(BlockId, Value)>,
        v: Value,
        mut b: BlockId,
    ) -> Src {
        loop {
            if b == self.header {
                return v.into();
            }
            if b == self.guard {
                return self.map[&v];
            }
            if let Some(src) = known.get(&b) {
                return *src;
            }
            match *cfg.preds(b) {
                [from] => b = from,
                _ => break,
            }
        }
        let phi = like(func, v);
        known.insert(b, phi.into());
        work.push((b, phi));
        phi.into()
    }
}
