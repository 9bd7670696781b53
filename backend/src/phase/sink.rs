//! Moves operations down to where their results are read, if not all paths lead there.
//!
//! The producers of PTX load and compute values before branches on which only one side reads them. Sunk into that side,
//! an operation runs less often, and its result occupies no register before. An operation sinks to the nearest common
//! dominator of its uses, but neither into a loop nor out of one, and not if its operands would then occupy more
//! registers than its result did.
//!
//! Before and after: SSA.

use crate::CodegenError;
use crate::ori::alias;
use crate::ori::analyses::Analyses;
use crate::ori::cfg::{Cfg, for_each_successor};
use crate::ori::divergence::Common;
use crate::ori::dominators::Tree;
use crate::ori::ir::{BlockId, File, Function, Inst, Src, Term, Value, ValueData};
use crate::ori::loops::Loops;
use crate::ori::memory::{Effect, effect};
use crate::ori::signature::facts;
use crate::phase::edit::may_run_elsewhere;
use crate::phases::{Change, Context};
use smallvec::SmallVec;
use std::mem;

/// The number of operations with effects in a block across which a load moves.
const EFFECTS: usize = 64;
/// The number of blocks across which an operation moves.
const BLOCKS: usize = 64;

pub fn run(func: &mut Function, context: &Context<'_>) -> Result<Change, CodegenError> {
    let cfg = context.analyses.cfg(func);
    if cfg.order.len() < 2 {
        return Ok(Change::Nothing);
    }
    let mut sinking = Sinking::new(func, context.analyses);
    // Users before operands: a block precedes the blocks that it dominates.
    for (n, &b) in cfg.order.iter().rev().enumerate() {
        if n % 64 == 0 {
            (context.checkpoint)();
        }
        sinking.sink_from(func, b);
    }
    let change = Change::of(sinking.sunk.iter().any(|sunk| !sunk.is_empty()));
    for (block, mut sunk) in func.blocks.iter_mut().zip(sinking.sunk) {
        if !sunk.is_empty() {
            sunk.reverse();
            sunk.append(&mut block.insts);
            block.insts = sunk;
        }
    }
    Ok(change)
}

/// The operations across which another one would move.
#[derive(Default)]
struct Crossed {
    /// Nothing may move across one of them.
    pinned: bool,
    /// Their effects, except those of weak loads, which do not matter.
    effects: Vec<Effect>,
}

impl Crossed {
    fn add(&mut self, inst: &Inst) {
        let facts = facts(&inst.op);
        self.pinned |= facts.pinned;
        let is_weak_load = matches!(facts.effect, Effect::Memory(access) if access.is_weak_load());
        if facts.effect != Effect::None && !is_weak_load {
            self.effects.push(facts.effect);
        }
    }

    fn lets(&self, moving: &Effect) -> bool {
        let passes = |effect| alias::may_exchange(moving, effect, false);
        let moves =
            *moving == Effect::None || self.effects.len() <= EFFECTS && self.effects.iter().all(passes);
        !self.pinned && moves
    }
}

/// The uses of a value that have their final places.
#[derive(Clone, Copy, Default)]
struct Uses {
    /// Their nearest common dominator. A phi reads its arguments at the ends of the predecessors.
    block: Option<BlockId>,
    /// They are in different blocks.
    apart: bool,
}

struct Sinking<'a> {
    cfg: &'a Cfg,
    dom: &'a Tree,
    post: &'a Tree,
    loops: &'a Loops,
    /// Other uniform values belong to the threads that computed them together.
    common: &'a Common,
    /// Indexed by block: whether control may lead from it to an `EXIT` or a `RET`.
    returns: Vec<bool>,
    /// Indexed by value: the block that defines it.
    home: Vec<BlockId>,
    /// Indexed by value.
    uses: Vec<Uses>,
    /// Indexed by block.
    crossed: Vec<Crossed>,
    /// Indexed by block: the operations that move there, the last one first.
    sunk: Vec<Vec<Inst>>,
}

impl<'a> Sinking<'a> {
    fn new(func: &Function, analyses: &'a Analyses) -> Sinking<'a> {
        let cfg = analyses.cfg(func);
        let mut sinking = Sinking {
            cfg,
            dom: analyses.dominators(func),
            post: analyses.post_dominators(func),
            loops: analyses.loops(func),
            common: analyses.common(func),
            returns: cfg.reach(func, |term| matches!(term, Term::Exit | Term::Ret)),
            home: vec![BlockId(0); func.values.len()],
            uses: vec![Uses::default(); func.values.len()],
            crossed: func.blocks.iter().map(|_| Crossed::default()).collect(),
            sunk: vec![Vec::new(); func.blocks.len()],
        };
        for &b in &cfg.order {
            let block = func.block(b);
            for v in block.phis.iter().map(|phi| phi.dst).chain(block.insts.iter().flat_map(Inst::defs)) {
                sinking.home[v.index()] = b;
            }
            block.insts.iter().for_each(|inst| sinking.crossed[b.index()].add(inst));
            for (from, v) in
                block.phis.iter().flat_map(|phi| &phi.args).filter_map(|(b, src)| Some((*b, src.value()?)))
            {
                if cfg.is_reached(from) {
                    sinking.add_use(v, from);
                }
            }
            if let Some(v) = block.term.operand().and_then(Src::value) {
                sinking.add_use(v, b);
            }
        }
        sinking
    }

    fn add_use(&mut self, v: Value, b: BlockId) {
        let uses = &mut self.uses[v.index()];
        let common = uses.block.map_or(b, |block| common_dominator(self.dom, block, b));
        uses.apart |= uses.block.is_some_and(|block| block != b);
        uses.block = Some(common);
    }

    /// Decides where the operations of a block go. The users of their results have their places.
    fn sink_from(&mut self, func: &mut Function, b: BlockId) {
        let mut kept = Vec::new();
        let mut below = Crossed::default();
        for inst in mem::take(&mut func.block_mut(b).insts).into_iter().rev() {
            let to = self.target(func, b, &inst, &below).unwrap_or(b);
            for v in inst.uses().filter_map(Src::value) {
                self.add_use(v, to);
            }
            if to == b {
                below.add(&inst);
                kept.push(inst);
            } else {
                self.sunk[to.index()].push(inst);
            }
        }
        kept.reverse();
        func.block_mut(b).insts = kept;
    }

    /// The block to which an operation of `b` should move.
    fn target(&self, func: &Function, b: BlockId, inst: &Inst, below: &Crossed) -> Option<BlockId> {
        let is_kept = |v: Value| {
            let in_general = matches!(func.value(v).file, File::R | File::P | File::B);
            in_general || self.common.is(v)
        };
        if self.loops.is_irreducible(b)
            || !is_movable(func, inst)
            || !inst.uses().filter_map(Src::value).all(is_kept)
        {
            return None;
        }
        let blocks = || inst.defs().filter_map(|v| self.uses[v.index()].block);
        let common = |a, b| common_dominator(self.dom, a, b);
        let mut to = blocks().reduce(common)?;
        while self.loops.innermost(to) != self.loops.innermost(b) || self.loops.is_irreducible(to) {
            to = self.dom.parent(to)?;
        }
        let is_on_one_side = self.dom.dominates(b, to) && self.runs_less_often(func, b, to);
        (is_on_one_side && self.frees_registers(func, b, inst) && self.may_cross(inst, b, to, below))
            .then_some(to)
    }

    /// Whether threads that execute `b` may return without executing `to`.
    fn runs_less_often(&self, func: &Function, b: BlockId, to: BlockId) -> bool {
        let mut at = b;
        while at != to {
            if self.post.dominates(to, at) {
                return false;
            }
            // A check has only one side that returns.
            let mut returning = Vec::new();
            for_each_successor(func, at, |next| returning.extend(self.returns[next.index()].then_some(next)));
            match returning[..] {
                [next] if self.cfg.preds(next).len() == 1 => at = next,
                _ => return true,
            }
        }
        false
    }

    /// Whether the results occupy at least as many registers as the operands that nothing else reads later.
    fn frees_registers(&self, func: &Function, b: BlockId, inst: &Inst) -> bool {
        let width = |v: Value| match func.value(v) {
            ValueData { file: File::R, width, .. } => u32::from(width),
            data => u32::from(data.file == File::P),
        };
        let results: u32 = inst.defs().map(width).sum();
        let mut ending: SmallVec<[Value; 4]> =
            inst.uses().filter_map(Src::value).filter(|v| self.ends_in(*v, b)).collect();
        ending.sort_unstable();
        ending.dedup();
        ending.into_iter().map(width).sum::<u32>() <= results
    }

    /// Whether no later operation outside of `b` reads the value.
    fn ends_in(&self, v: Value, b: BlockId) -> bool {
        let uses = self.uses[v.index()];
        let lives_in_loop =
            self.loops.innermost(b).is_some_and(|id| !self.loops.contains(id, self.home[v.index()]));
        !uses.apart && uses.block.is_none_or(|block| block == b) && !lives_in_loop
    }

    /// Whether the operation may move across the operations `below` it in its block and those on all paths to `to`.
    fn may_cross(&self, inst: &Inst, b: BlockId, to: BlockId, below: &Crossed) -> bool {
        let moving = effect(&inst.op);
        if !below.lets(&moving) {
            return false;
        }
        let mut between: Vec<BlockId> = Vec::new();
        let mut next = 0;
        let mut at = to;
        loop {
            for &pred in self.cfg.preds(at) {
                if pred != b && pred != to && !between.contains(&pred) {
                    if between.len() == BLOCKS || !self.crossed[pred.index()].lets(&moving) {
                        return false;
                    }
                    between.push(pred);
                }
            }
            let Some(&block) = between.get(next) else { return true };
            (at, next) = (block, next + 1);
        }
    }
}

/// Whether an operation may run for fewer threads, and later.
fn is_movable(func: &Function, inst: &Inst) -> bool {
    let facts = facts(&inst.op);
    let is_general = |v: Value| matches!(func.value(v).file, File::R | File::P);
    let has_no_effect = match facts.effect {
        Effect::None => true,
        Effect::Memory(access) => access.is_weak_load(),
        _ => false,
    };
    has_no_effect && !facts.uniform && may_run_elsewhere(func, inst) && inst.defs().all(is_general)
}

fn common_dominator(dom: &Tree, mut a: BlockId, b: BlockId) -> BlockId {
    while !dom.dominates(a, b) {
        let Some(up) = dom.parent(a) else { return a };
        a = up;
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ori::text;
    use crate::ori::verify::{Stage, verify};

    /// The blocks that contain the instruction after sinking, which is unique by its text.
    fn blocks_of(part: &str, blocks: &str) -> Vec<String> {
        let start = "%v0:r = S2R{sr=0x21}\n%v1:r = S2R{sr=0x22}\n%v2:p, _ = ISETP.LT.AND %v0, 0x5, PT";
        let text = format!("entry \"f\" {{\nb0:\n{start}\n{blocks}\n}}");
        let mut func = text::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        verify(&func, Stage::Built).expect("is valid");
        run(&mut func, &Context::of(80, &Analyses::default())).unwrap();
        verify(&func, Stage::Built).expect("stays valid");
        let (mut block, mut found) = (String::new(), Vec::new());
        for line in text::print(&func).lines() {
            match line.strip_suffix(':') {
                Some(label) => block = label.trim().to_owned(),
                None if line.contains(part) => found.push(block.clone()),
                None => {}
            }
        }
        found
    }

    /// `b1` is one side of a branch in `b0`; `b2` follows both.
    fn side(before: &str, in_side: &str, after: &str) -> String {
        format!("{before}\nBRA %v2, b1, b2\nb1:\n{in_side}\nJUMP b2\nb2:\n{after}\nEXIT")
    }

    #[test]
    fn what_one_side_reads_sinks_into_it() {
        let load = "%v3:r = LDS{offset=0x8} %v0, RZ\n";
        let read = "STS %v0, RZ, %v3";
        assert_eq!(blocks_of("LDS", &side(load, read, "STS{offset=0x4} %v0, RZ, %v1")), ["b1"]);
        assert_eq!(blocks_of("LDS", &side(load, "STS %v1, RZ, %v1", read)), ["b0"]);
        assert_eq!(blocks_of("LDS", &side(load, read, read)), ["b0"]);
    }

    #[test]
    fn a_whole_expression_sinks() {
        let sum = "%v3:r, _, _ = IADD3 %v0, %v1, RZ\n%v4:r = POPC %v3";
        let blocks = side(sum, "STS %v0, RZ, %v4", "STS{offset=0x4} %v0, RZ, %v1");
        assert_eq!(
            (blocks_of("IADD3", &blocks), blocks_of("POPC", &blocks)),
            (vec!["b1".into()], vec!["b1".into()])
        );
    }

    #[test]
    fn loads_do_not_cross_stores_and_fences() {
        let read = "STS %v0, RZ, %v3";
        for between in ["STS %v1, RZ, %v1", "BAR.SYNC 0x0"] {
            let load = format!("%v3:r = LDS{{offset=0x8}} %v0, RZ\n{between}");
            assert_eq!(blocks_of("LDS", &side(&load, read, "STS %v1, RZ, RZ")), ["b0"], "{between}");
        }
        let crossed = "%v3:r = LDS{offset=0x8} %v0, RZ
            BRA %v2, b1, b2\nb1:\nSTS %v1, RZ, %v1\nJUMP b2
            b2:\nBRA %v2, b3, b4\nb3:\nSTS %v0, RZ, %v3\nJUMP b4\nb4:\nSTS %v0, RZ, %v1\nEXIT";
        assert_eq!(blocks_of("LDS", crossed), ["b0"]);
        assert_eq!(blocks_of("LDS", &crossed.replace("STS %v1, RZ, %v1", "STL %v1, %v1")), ["b3"]);
    }

    #[test]
    fn volatile_loads_stay() {
        let load = "%v3:r = LDS.VOLATILE{offset=0x8} %v0, RZ\n";
        assert_eq!(blocks_of("LDS", &side(load, "STS %v0, RZ, %v3", "STS %v0, RZ, %v1")), ["b0"]);
    }

    /// Two values would stay in registers instead of their sum.
    #[test]
    fn a_sum_of_two_values_that_end_stays() {
        let sum =
            "%v3:r = LDS.VOLATILE %v0, RZ\n%v4:r = LDS.VOLATILE %v1, RZ\n%v5:r, _, _ = IADD3 %v3, %v4, RZ";
        assert_eq!(blocks_of("IADD3", &side(sum, "STS %v0, RZ, %v5", "STS %v0, RZ, %v1")), ["b0"]);
        assert_eq!(blocks_of("IADD3", &side(sum, "STS %v0, RZ, %v5", "STS %v0, RZ, %v3")), ["b1"]);
    }

    #[test]
    fn nothing_sinks_into_a_loop_or_out_of_one() {
        let into = "%v3:r = POPC %v0\nBRA %v2, b1, b3\nb1:\nJUMP b2
            b2:\nSTS %v0, RZ, %v3\nBRA %v2, b2, b3\nb3:\nSTS %v0, RZ, %v1\nEXIT";
        assert_eq!(blocks_of("POPC", into), ["b1"]);
        let out = "JUMP b1\nb1:\n%v3:r = POPC %v0\nSTS %v0, RZ, %v1\nBRA %v2, b1, b2\nb2:\nBRA %v2, b3, b4
            b3:\nSTS %v0, RZ, %v3\nJUMP b4\nb4:\nSTS %v0, RZ, %v1\nEXIT";
        assert_eq!(blocks_of("POPC", out), ["b1"]);
    }

    /// A phi reads its argument at the end of the block that leads to it.
    #[test]
    fn an_argument_of_a_phi_sinks_to_the_edge() {
        let blocks = "%v3:r = POPC %v0\nBRA %v2, b1, b2\nb1:\nSTS %v0, RZ, %v1\nJUMP b2
            b2:\n%v4:r = phi b0 RZ, b1 %v3\nSTS %v0, RZ, %v4\nEXIT";
        assert_eq!(blocks_of("POPC", blocks), ["b1"]);
    }

    /// Other threads of the warp may overwrite the register, so it is read where it is written.
    #[test]
    fn copies_of_what_threads_share_stay() {
        let moved = "%v3:ur = R2UR %v0\n%v4:r = MOV %v3";
        assert_eq!(blocks_of("MOV", &side(moved, "STS %v0, RZ, %v4", "STS %v0, RZ, %v1")), ["b0"]);
        let constant = "%v3:ur = ULDC c[0x0][0x160]\n%v4:r = MOV %v3";
        assert_eq!(blocks_of("MOV", &side(constant, "STS %v0, RZ, %v4", "STS %v0, RZ, %v1")), ["b1"]);
    }

    /// The side of a check that fails does not return.
    #[test]
    fn what_follows_a_check_does_not_sink_below_it() {
        let blocks = |end: &str| {
            format!(
                "%v3:r = POPC %v0\nBRA %v2, b1, b2\nb1:\nSTS %v1, RZ, %v1\n{end}\nb2:\nSTS %v0, RZ, %v3\nEXIT"
            )
        };
        assert_eq!(blocks_of("POPC", &blocks("UNREACHABLE")), ["b0"]);
        assert_eq!(blocks_of("POPC", &blocks("EXIT")), ["b2"]);
    }

    #[test]
    fn votes_stay() {
        let vote = "%v3:r = VOTE.ANY %v2";
        assert_eq!(blocks_of("VOTE", &side(vote, "STS %v0, RZ, %v3", "STS %v0, RZ, %v1")), ["b0"]);
    }
}
