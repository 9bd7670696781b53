//! Decides which loops are unrolled, and into which pieces.

use super::known::Known;
use super::{
    COST_OF_SHARED_WAIT, LONGEST_DIVIDED, MOST_ADDED, MOST_COST, MOST_COST_DIVIDED, MOST_COST_GLOBAL,
    MOST_COST_SHARED, MOST_STRAIGHT, PIECES, STRAIGHT_GAIN,
};
use crate::copies::Piece;
use crate::explain::Kept;
use crate::input::SrcId;
use crate::ori::cfg::Cfg;
use crate::ori::defs::Defs;
use crate::ori::dominators::Tree;
use crate::ori::ir::{BlockId, Dst, File, Function, Inst, Src, SrcMods, Term, Value};
use crate::ori::memory::{Kind, Memory, Space, memory};
use crate::ori::op::{Bool, ICmp, Op, Sign};
use crate::ori::signature::facts;
use crate::phase::branches::arguments_from;
use crate::phase::edit::{added, known};
use crate::target::Target;
use rustc_hash::{FxHashMap, FxHashSet};

/// A loop with one test, at its end.
pub(super) struct Counted {
    /// The blocks in the order of control flow: the header is first, the block with the test is last.
    pub(super) body: Vec<BlockId>,
    /// `None` if the trip count is known, but no difference to a limit determines it.
    pub(super) induction: Option<Induction>,
    known: Known,
    /// The trip count, if it is known.
    pub(super) iterations: Option<u32>,
    /// The loop has convergent operations, which threads execute together.
    pub(super) convergent: bool,
}

/// The loop continues while `cmp` is true for `limit` and the header's phi with the index `phi` plus `offset`.
#[derive(Clone, Copy)]
pub(super) struct Induction {
    pub(super) phi: usize,
    pub(super) offset: u32,
    pub(super) step: i32,
    pub(super) cmp: ICmp,
    pub(super) sign: Sign,
    /// The index of the limit among the operands of the test instruction.
    limit: usize,
    test: Value,
}

impl Counted {
    /// The loop that consists of these blocks, which are in the order of control flow.
    pub(super) fn of(
        func: &Function,
        cfg: &Cfg,
        tree: &Tree,
        defs: &Defs,
        target: &Target,
        body: Vec<BlockId>,
    ) -> Result<Counted, Kept> {
        let (cond, goes_on) = only_test(func, cfg, &body).ok_or(Kept::Exits)?;
        let mut insts = body.iter().flat_map(|&b| &func.block(b).insts);
        if let Some(inst) = insts.find(|inst| !can_copy(func, inst, target)) {
            return Err(Kept::NotCopied(inst.src));
        }
        let convergent = acts_together(func, tree, &body)?;
        // The entries are those of the header's phis.
        if body.first().is_none_or(|&header| func.block(header).phis.is_empty()) {
            return Err(Kept::Uncounted);
        }
        let induction = Induction::of(func, defs, &body, cond, goes_on);
        let known = Known::of(func, defs, &body);
        let iterations = match &induction {
            Some(induction) => induction.iterations(func, &body),
            None => known.iterations(func, &body, cond, goes_on, MOST_STRAIGHT),
        };
        if induction.is_none() && iterations.is_none() {
            return Err(Kept::Uncounted);
        }
        Ok(Counted { body, induction, known, iterations, convergent })
    }

    pub(super) fn header(&self) -> BlockId {
        self.body[0]
    }

    pub(super) fn last(&self) -> BlockId {
        self.body[self.body.len() - 1]
    }

    /// The limit with which the test compares.
    pub(super) fn limit(&self, func: &Function) -> Option<Src> {
        self.induction?.limit(func, &self.body)
    }

    /// The number of operations of an iteration.
    pub(super) fn size(&self, func: &Function) -> usize {
        self.body.iter().map(|&b| func.block(b).insts.len()).sum()
    }

    fn insts<'a>(&'a self, func: &'a Function) -> impl Iterator<Item = &'a Inst> {
        self.body.iter().flat_map(|&b| &func.block(b).insts)
    }

    fn accesses<'a>(&'a self, func: &'a Function) -> impl Iterator<Item = Memory> + 'a {
        self.insts(func).filter_map(|inst| memory(&inst.op))
    }

    /// The cost of an iteration. A branch inside costs as much as an operation; the branch at the end costs nothing.
    fn cost(&self, func: &Function) -> u64 {
        let is_branch = |b: &&BlockId| matches!(func.block(**b).term, Term::Branch { .. });
        let branches = self.body.iter().filter(is_branch).count() as u64;
        let of_block = |b: &BlockId| {
            let insts = &func.block(*b).insts;
            let before = std::iter::once(None).chain(insts.iter().map(Some));
            let counted =
                before.zip(insts).filter(|(before, inst)| !before.is_some_and(|low| is_rest(low, inst)));
            counted.map(|(_, inst)| cost(func, inst, self.iterations.is_some())).sum::<u64>()
        };
        self.body.iter().map(of_block).sum::<u64>() + branches - 1
    }

    /// Whether straight-line code of all iterations is worth its length. ptxas weighs the cost of what becomes known in it
    /// against the rest of an iteration; found by compiling loops of all lengths.
    fn is_worth_straight(&self, func: &Function, iterations: u32) -> bool {
        let (mut saved, mut rest) = (0, 0);
        for inst in self.insts(func) {
            let is_saved = match memory(&inst.op) {
                None => self.known.computes(inst),
                Some(memory) if memory.kind == Kind::Load => inst.srcs.iter().all(|src| self.known.has(src)),
                // An element of an array that becomes a value.
                Some(memory) => {
                    memory.space == Space::Local && inst.srcs.first().is_some_and(|src| self.known.has(src))
                }
            };
            *(if is_saved { &mut saved } else { &mut rest }) += cost(func, inst, true);
        }
        let size = self.size(func) as u64 * u64::from(iterations);
        size <= MOST_ADDED as u64 && u64::from(iterations) * (2 * rest + 3).pow(2) <= STRAIGHT_GAIN * saved
    }

    /// The maximum cost of an iteration if the trip count is not known.
    fn most_cost(&self, func: &Function) -> u64 {
        let is_load = |memory: &Memory| memory.kind == Kind::Load;
        let (shared, others): (Vec<Memory>, Vec<Memory>) = self
            .accesses(func)
            .filter(is_load)
            .filter(|memory| memory.space != Space::Constant)
            .partition(|memory| memory.space == Space::Shared);
        let shared = (MOST_COST + COST_OF_SHARED_WAIT * shared.len() as u64).min(MOST_COST_SHARED);
        if others.is_empty() { shared } else { shared.max(MOST_COST_GLOBAL) }
    }

    /// Whether the threads of a warp must execute the same iteration, because they execute operations together or
    /// update memory.
    fn is_kept_together(&self, func: &Function) -> bool {
        self.convergent || self.accesses(func).any(|memory| memory.kind == Kind::Update)
    }

    /// Whether loaded values determine stores to the same memory. Two kinds of loops do not count: those of one block
    /// that also wait for loads of other memory, and those with a store in the last block whose address is a phi. ptxas
    /// does not unroll the other loops if the threads of a warp leave them at different times; found by compiling loops
    /// that load, compute, branch and store in many ways.
    fn returns_loads(&self, func: &Function) -> bool {
        let of_class = |memory: &Memory, shared: bool| match memory.space {
            Space::Shared => shared,
            Space::Global | Space::Generic => !shared,
            Space::Local | Space::Constant => false,
        };
        let loads = |shared: bool| {
            self.accesses(func).any(|memory| memory.kind == Kind::Load && of_class(&memory, shared))
        };
        [false, true].into_iter().any(|shared| {
            let is = |inst: &Inst, kind: Kind| {
                memory(&inst.op).is_some_and(|memory| memory.kind == kind && of_class(&memory, shared))
            };
            if !loads(shared) || (self.body.len() == 1 && loads(!shared)) {
                return false;
            }
            let loaded = self.derived(func, |inst| is(inst, Kind::Load));
            let phis = &func.block(self.header()).phis;
            let is_phi = |src: &Src| src.value().is_some_and(|v| phis.iter().any(|phi| phi.dst == v));
            let stores = |b: &BlockId| func.block(*b).insts.iter().filter(|inst| is(inst, Kind::Store));
            let mut last = self.body.last().into_iter().flat_map(stores);
            !last.any(|inst| inst.srcs.first().is_some_and(is_phi))
                && self
                    .body
                    .iter()
                    .flat_map(stores)
                    .any(|inst| inst.uses().filter_map(Src::value).any(|v| loaded.contains(&v)))
        })
    }

    /// The values of the loop that depend on the results of some instructions.
    fn derived(&self, func: &Function, of: impl Fn(&Inst) -> bool) -> FxHashSet<Value> {
        let mut found = FxHashSet::default();
        loop {
            let before = found.len();
            for &b in &self.body {
                let block = func.block(b);
                for phi in &block.phis {
                    if phi.args.iter().filter_map(|(_, src)| src.value()).any(|v| found.contains(&v)) {
                        found.insert(phi.dst);
                    }
                }
                for inst in &block.insts {
                    if of(inst) || inst.uses().filter_map(Src::value).any(|v| found.contains(&v)) {
                        found.extend(inst.defs());
                    }
                }
            }
            if found.len() == before {
                return found;
            }
        }
    }

    /// Whether a block of the loop depends on a branch in a block that itself depends on a branch in the loop.
    pub(super) fn nests_branches(&self, tree: &Tree, post: &Tree) -> bool {
        let mut depths = FxHashMap::default();
        self.body.iter().any(|&b| {
            let over = tree.parent(b).filter(|over| depths.contains_key(over));
            let depth = over.map_or(0, |over| depths[&over] + u32::from(!post.dominates(b, over)));
            depths.insert(b, depth);
            depth > 1
        })
    }

    /// The pieces of the unrolled loop, or why it stays. `agree` tells whether the threads of a warp leave together,
    /// `nests` the result of [`Counted::nests_branches`].
    pub(super) fn pieces(
        &self,
        func: &Function,
        agree: impl Fn() -> bool,
        nests: impl Fn() -> bool,
    ) -> Result<Vec<Piece>, Kept> {
        let pieces = match self.iterations {
            Some(all) if all <= MOST_STRAIGHT && self.is_worth_straight(func, all) => {
                vec![Piece { iterations: all, repeats: false }]
            }
            Some(all) => self.divided(func, all).ok_or(Kept::Long { iterations: all })?,
            None => {
                self.may_be_divided(func, agree, nests)?;
                PIECES.to_vec()
            }
        };
        let most = pieces.iter().map(|piece| piece.iterations).sum::<u32>().checked_mul(self.copies(func));
        let is_numbered = most.is_some_and(|most| func.facts.statements.allow(most));
        is_numbered.then_some(pieces).ok_or(Kept::Growth)
    }

    /// The pieces of a loop with `all` iterations: a loop that does as many of them at a time as possible, preceded by
    /// the remainder. The choice is that of ptxas, found by compiling loops of all lengths and many trip counts.
    fn divided(&self, func: &Function, all: u32) -> Option<Vec<Piece>> {
        let cost = u32::try_from(self.cost(func).saturating_sub(self.cost_of_steps(func))).ok()?.max(1);
        if self.induction.is_none() || self.body.len() > 1 || cost > MOST_COST_DIVIDED {
            return None;
        }
        let fits = |iterations: &u32| (iterations + all % iterations) * cost <= LONGEST_DIVIDED;
        let iterations = (2..=all.min(LONGEST_DIVIDED / cost)).rev().find(fits)?;
        let rest =
            Some(Piece { iterations: all % iterations, repeats: false }).filter(|rest| rest.iterations > 0);
        Some(rest.into_iter().chain([Piece { iterations, repeats: iterations < all }]).collect())
    }

    /// The cost of the test and of the sums of phis and constants for the next iteration, which one iteration of a
    /// divided loop computes for all.
    fn cost_of_steps(&self, func: &Function) -> u64 {
        let of = |v: Value| self.insts(func).find(|inst| inst.defs().any(|own| own == v));
        let phis = &func.block(self.header()).phis;
        let is_step = |phi: &Value, next: &Src| {
            let mut next = next.value().and_then(of);
            if let Some(pack) = next.filter(|inst| inst.op == Op::Pack) {
                next = pack.srcs[0].value().and_then(of);
            }
            next.filter(|inst| {
                let is_phi = |src: &Src| src.mods == SrcMods::NONE && src.value() == Some(*phi);
                let constants = inst.srcs.iter().filter(|src| known(src).is_some()).count();
                inst.op == (Op::Iadd3 { x: false }) && constants == 2 && inst.srcs.iter().any(is_phi)
            })
        };
        let carried = self.carried(func);
        let sums = phis.iter().zip(&carried).filter_map(|(phi, next)| is_step(&phi.dst, next));
        let test = self.induction.and_then(|induction| of(induction.test));
        sums.chain(test).map(|inst| cost(func, inst, true)).sum()
    }

    /// Why the loop is not divided into [`PIECES`].
    fn may_be_divided(
        &self,
        func: &Function,
        agree: impl Fn() -> bool,
        nests: impl Fn() -> bool,
    ) -> Result<(), Kept> {
        let (cost, most) = (self.cost(func), self.most_cost(func));
        match &self.induction {
            None => Err(Kept::Uncounted),
            // ptxas keeps such loops, and those with nested branches.
            Some(by) if by.offset != by.step as u32 => Err(Kept::TestsBeforeStep),
            _ if cost > most => Err(Kept::Cost { cost: cost as u32, most: most as u32 }),
            _ if nests() => Err(Kept::Nested),
            _ if (self.is_kept_together(func) || self.returns_loads(func)) && !agree() => Err(Kept::Apart),
            _ => Ok(()),
        }
    }

    /// The maximum number of copies of its statements.
    pub(super) fn copies(&self, func: &Function) -> u32 {
        let number = |src: SrcId| func.facts.statements.copy_number(src);
        let of = |b: &BlockId| {
            let block = func.block(*b);
            block.insts.iter().map(|inst| number(inst.src)).max().unwrap_or(0).max(number(block.term_src))
        };
        self.body.iter().map(of).max().unwrap_or(0) + 1
    }

    /// The values of the header's phis at the end of an iteration.
    pub(super) fn carried(&self, func: &Function) -> Vec<Src> {
        arguments_from(func, self.header(), self.last())
    }
}

impl Induction {
    /// The variable that the condition compares with a limit.
    fn of(func: &Function, defs: &Defs, body: &[BlockId], cond: Src, goes_on: bool) -> Option<Induction> {
        let (&header, &last) = (body.first()?, body.last()?);
        let v = cond.value()?;
        let test = defs.inst(func, v).filter(|inst| inst.guard.is_true())?;
        let Op::Isetp { cmp, sign, bool_: Bool::And, ex: false } = test.op else { return None };
        let [a, b, with] = test.srcs[..] else { return None };
        let inside = |src: &Src| src.value().is_some_and(|v| is_made_in(func, defs, body, v));
        if !with.is_true() || !inside(&cond) || test.dsts.first() != Some(&Dst::Value(v)) {
            return None;
        }
        let cmp = if goes_on == cond.mods.not { inverted(cmp)? } else { cmp };
        let (sum, limit, cmp) = match (inside(&a), inside(&b)) {
            (true, false) => (a, 1, cmp),
            (false, true) => (b, 0, mirrored(cmp)?),
            _ => return None,
        };
        if test.srcs[limit].mods != SrcMods::NONE {
            return None;
        }
        let phis = &func.block(header).phis;
        let phi_of = |src: Src| phis.iter().position(|phi| src == Src::from(phi.dst));
        let (base, offset) =
            added(func, defs, sum).filter(|(base, _)| phi_of(*base).is_some()).unwrap_or((sum, 0));
        let phi = phi_of(base)?;
        let next = phis[phi].args.iter().find(|(from, _)| *from == last)?.1;
        let (again, step) = added(func, defs, next)?;
        if again != base || func.value(phis[phi].dst).file != File::R {
            return None;
        }
        let step = step as i32;
        goes_towards(step, cmp).then_some(Induction { phi, offset, step, cmp, sign, limit, test: v })
    }

    fn limit(&self, func: &Function, body: &[BlockId]) -> Option<Src> {
        let mut insts = body.iter().rev().flat_map(|&b| &func.block(b).insts);
        let test = insts.find(|inst| inst.defs().any(|v| v == self.test))?;
        test.srcs.get(self.limit).copied()
    }

    /// The trip count, if it is known.
    fn iterations(&self, func: &Function, body: &[BlockId]) -> Option<u32> {
        let (header, last) = (body.first()?, body.last()?);
        let phi = &func.block(*header).phis[self.phi];
        let mut starts = phi.args.iter().filter(|(from, _)| from != last).map(|(_, src)| known(src));
        let start = starts.next()??;
        if starts.any(|other| other != Some(start)) {
            return None;
        }
        self.repetitions(start.wrapping_add(self.offset), known(&self.limit(func, body)?)?)?.checked_add(1)
    }

    /// How often the loop is repeated if the first test compares `tested`. `None` if the variable wraps around first.
    fn repetitions(&self, tested: u32, limit: u32) -> Option<u32> {
        let size = self.step.unsigned_abs();
        if self.cmp == ICmp::Ne {
            let distance =
                if self.step > 0 { limit.wrapping_sub(tested) } else { tested.wrapping_sub(limit) };
            return distance.is_multiple_of(size).then_some(distance / size);
        }
        let number = |word: u32| match self.sign {
            Sign::S32 => i64::from(word as i32),
            Sign::U32 => i64::from(word),
        };
        let (tested, limit) = (number(tested), number(limit));
        // The distance to the first value for which the comparison is false.
        let is_equal_too = matches!(self.cmp, ICmp::Le | ICmp::Ge);
        let distance =
            (if self.step > 0 { limit - tested } else { tested - limit }) + i64::from(is_equal_too);
        let repetitions = distance.max(0).unsigned_abs().div_ceil(u64::from(size));
        let end = tested + i64::from(self.step) * repetitions as i64;
        (number(end as u32) == end).then_some(repetitions as u32)
    }
}

/// Whether an instruction belongs to the same 64-bit operation as the instruction before it.
fn is_rest(before: &Inst, inst: &Inst) -> bool {
    let computes_word = |inst: &Inst| {
        matches!(
            inst.op,
            Op::Lop3 { .. }
                | Op::Sel
                | Op::Shf { .. }
                | Op::Isetp { .. }
                | Op::Imad { .. }
                | Op::ImadWide { .. }
        )
    };
    before.src == inst.src && computes_word(before) && computes_word(inst)
}

/// The cost of an instruction, as ptxas counts it; found by adding other operations to loops with the instruction until
/// ptxas stopped unrolling them. Both halves of a 64-bit sum count as one, but a product and a sum that were fused as two.
/// The offset of an access counts as another sum; if the trip count is known, so do the offsets that all copies get.
fn cost(func: &Function, inst: &Inst, is_known: bool) -> u64 {
    match &inst.op {
        Op::Iadd3 { x: true } | Op::Pack | Op::Copy | Op::Warpsync { .. } => 0,
        Op::ImadWide { .. } if inst.srcs[2] != Src::ZERO => 4,
        op => memory(op).map_or_else(
            || 1 + u64::from(is_fused(func, inst)),
            |memory| {
                let access = if memory.kind == Kind::Update { 10 } else { 1 };
                let has_offset = memory.space != Space::Constant && (is_known || memory.offset != 0);
                access + u64::from(has_offset)
            },
        ),
    }
}

/// Whether an instruction was a product and a sum, which ptxas fuses after unrolling.
fn is_fused(func: &Function, inst: &Inst) -> bool {
    let is_multiply_add =
        matches!(inst.op, Op::Ffma { .. } | Op::Ffma2 { .. } | Op::Dfma { .. } | Op::Hfma2 { .. });
    let statement = func.facts.statements.original(inst.src);
    is_multiply_add && func.facts.fused.binary_search(&statement).is_ok()
}

/// The condition of the only branch that leaves or repeats a loop, and whether the loop continues if it is true. The
/// branch ends the loop's last block.
fn only_test(func: &Function, cfg: &Cfg, body: &[BlockId]) -> Option<(Src, bool)> {
    let (&header, &last) = (body.first()?, body.last()?);
    let Term::Branch { cond, then, els, .. } = func.block(last).term else { return None };
    let goes_on = then == header;
    let exit = if goes_on { els } else { then };
    let preds = cfg.preds(header);
    if !preds.contains(&last) || preds.len() < 2 || body.contains(&exit) {
        return None;
    }
    let stays = |&b: &BlockId| {
        let term = &func.block(b).term;
        matches!(term, Term::Jump(_) | Term::Branch { .. })
            && term.successors().iter().all(|to| body.contains(to) && *to != header)
    };
    body[..body.len() - 1].iter().all(stays).then_some((cond, goes_on))
}

/// Whether the instruction may be duplicated, and ptxas does so. It keeps loops that call routines, that wait for memory
/// accesses, and on older targets those that wait for threads of the warp.
fn can_copy(func: &Function, inst: &Inst, target: &Target) -> bool {
    let is_plain = |v: Value| {
        let data = func.value(v);
        data.pin.is_none() && matches!(data.file, File::R | File::P)
    };
    let stays = match inst.op {
        Op::Compute { .. } | Op::Membar { .. } => true,
        Op::Warpsync { .. } => !target.unrolls_warp_waits,
        op => op.calls_function(),
    };
    !stays && inst.defs().all(is_plain)
}

/// Whether threads execute operations of the loop together. Fails if copying could separate them: threads may execute
/// an operation together in different iterations, unless each of them executes it in every iteration.
fn acts_together(func: &Function, tree: &Tree, body: &[BlockId]) -> Result<bool, Kept> {
    let Some(&last) = body.last() else { return Err(Kept::Exits) };
    let mut any = false;
    for &b in body {
        for inst in func.block(b).insts.iter().filter(|inst| facts(&inst.op).convergent) {
            if !inst.guard.is_true() || !(b == last || tree.dominates(b, last)) {
                return Err(Kept::Together(inst.src));
            }
            any = true;
        }
    }
    Ok(any)
}

fn is_made_in(func: &Function, defs: &Defs, body: &[BlockId], v: Value) -> bool {
    match defs.site(v) {
        Some((b, _)) => body.contains(&b),
        None => body.iter().any(|&b| func.block(b).phis.iter().any(|phi| phi.dst == v)),
    }
}

/// Whether the steps lead to a value for which the comparison is false, and are so small that no multiple of one wraps
/// around.
fn goes_towards(step: i32, cmp: ICmp) -> bool {
    let towards = match cmp {
        ICmp::Lt | ICmp::Le => step > 0,
        ICmp::Gt | ICmp::Ge => step < 0,
        ICmp::Ne => step != 0,
        _ => false,
    };
    towards && step.unsigned_abs() <= 1 << 24
}

/// The negated comparison.
fn inverted(cmp: ICmp) -> Option<ICmp> {
    Some(match cmp {
        ICmp::Lt => ICmp::Ge,
        ICmp::Le => ICmp::Gt,
        ICmp::Gt => ICmp::Le,
        ICmp::Ge => ICmp::Lt,
        ICmp::Eq => ICmp::Ne,
        ICmp::Ne => ICmp::Eq,
        ICmp::F | ICmp::T => return None,
    })
}

/// The comparison with its operands swapped.
fn mirrored(cmp: ICmp) -> Option<ICmp> {
    Some(match cmp {
        ICmp::Lt => ICmp::Gt,
        ICmp::Le => ICmp::Ge,
        ICmp::Gt => ICmp::Lt,
        ICmp::Ge => ICmp::Le,
        ICmp::Eq | ICmp::Ne => cmp,
        ICmp::F | ICmp::T => return None,
    })
}
