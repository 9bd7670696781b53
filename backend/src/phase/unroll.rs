//! Loop unrolling.
//!
//! A loop is unrolled if its only exit test is at its end and compares an induction variable with constant step against
//! a loop-invariant limit. If the trip count is known and small, the loop becomes straight-line code. If it is known and
//! larger, the new loop does several iterations at a time, a divisor of the trip count. Otherwise shorter and shorter
//! pieces precede the loop. A guard before each checks that enough iterations are left:
//!
//! ```text
//!        guard: are four iterations left? ──── no ─┐
//!             │ yes                                │
//!             ▼                                    │
//!   ┌──► four iterations                           │
//!   └─yes─ guard                                   │
//!             │ no                                 │
//!           test ── yes ──► guard: are two left? ◄─┘
//!             │ no            │ yes         │ no
//!             │               ▼             │
//!             │         two iterations      │
//!             │               │             │
//!             ├────── no ── test ── yes ──► the loop
//!             ▼                             │
//!           after ◄─────────────────────────┘
//! ```
//!
//! ptxas makes the same pieces. Inner loops are unrolled first. Where all of them became straight-line code, the loop around
//! them may be unrolled too.
//!
//! Before and after: SSA. Loops with `.pragma "nounroll"` and loops that call functions stay as they are. A loop with
//! convergent operations is unrolled only if the threads that act together execute the same copy of an iteration: the
//! operations execute in every iteration, and either the trip count is known or the threads of a warp leave together.
//! A copy of an instruction belongs to a copy of its statement ([`crate::copies`]).

use crate::CodegenError;
use crate::copies::{Piece, Statements, Unrolled};
use crate::input::SrcId;
use crate::ori::cfg::Cfg;
use crate::ori::divergence::Divergence;
use crate::ori::dominators::{Tree, dominators, post_dominators};
use crate::ori::ir::{Block, BlockId, Dst, File, Function, Inst, Phi, Src, SrcKind, SrcMods, Term, Value};
use crate::ori::loops::{LoopId, Loops};
use crate::ori::op::{Bool, ICmp, Op, Sign};
use crate::ori::signature::{self, facts};
use crate::phase::branches::arguments_from;
use crate::phase::edit::{Defs, for_each_use, for_each_use_mut, known, normalize_predicate, part_of};
use crate::phases::Context;
use rustc_hash::FxHashMap;
use std::cell::LazyCell;

/// Iterations of each piece where the trip count is not known. The last is the loop as it was.
const PIECES: [Piece; 3] = [
    Piece { iterations: 4, repeats: true },
    Piece { iterations: 2, repeats: false },
    Piece { iterations: 1, repeats: true },
];
/// The most operations of a loop whose trip count is not known.
const LONGEST: usize = 40;
/// The most operations, in all iterations, of a loop that becomes straight-line code.
const LONGEST_STRAIGHT: usize = 768;
/// The most iterations of such a loop.
const MOST_ITERATIONS: u32 = 128;
/// The most operations of an iteration of the new loop, if the trip count is known and larger.
const LONGEST_DIVIDED: usize = 288;
/// The most operations that unrolling adds to a function.
const MOST_ADDED: usize = 4000;
/// How many loops inside one another are unrolled.
const ROUNDS: u32 = 3;

pub fn run(func: &mut Function, context: &Context<'_>) -> Result<(), CodegenError> {
    let mut added = 0;
    for round in 0..ROUNDS {
        let chosen = choose(func, &mut added);
        if chosen.is_empty() {
            break;
        }
        // Preheaders come first: the block that leaves one loop may enter another.
        let entries: Vec<BlockId> = chosen.iter().map(|(counted, _)| counted.enter(func)).collect();
        let mut readers = readers(func, &chosen);
        let afters: Vec<BlockId> = chosen
            .iter()
            .zip(&mut readers)
            .map(|((counted, _), readers)| counted.leave(func, std::mem::take(readers)))
            .collect();
        for (((counted, pieces), entry), after) in chosen.iter().zip(entries).zip(afters) {
            (context.checkpoint)();
            counted.unroll(func, pieces, entry, after, round);
        }
    }
    Ok(())
}

/// The innermost loops that are unrolled, and the pieces of each.
fn choose(func: &Function, added: &mut usize) -> Vec<(Counted, Vec<Piece>)> {
    let cfg = Cfg::new(func);
    let tree = dominators(&cfg, func);
    let loops = Loops::new(func, &cfg, &tree);
    let mut inner = vec![true; loops.loops.len()];
    for one in &loops.loops {
        if let Some(parent) = one.parent {
            inner[parent.0 as usize] = false;
        }
    }
    let mut chosen = Vec::new();
    if !loops.loops.iter().zip(&inner).any(|(one, inner)| *inner && func.block(one.header).may_unroll) {
        return chosen;
    }
    let defs = Defs::new(func, &cfg);
    let divergence =
        LazyCell::new(|| Divergence::new(func, &cfg, &post_dominators(&cfg, func, &loops), &loops));
    for (i, one) in loops.loops.iter().enumerate().filter(|(i, _)| inner[*i]) {
        if !func.block(one.header).may_unroll {
            continue;
        }
        let mut body = loops.blocks_outside(LoopId(i as u32), |_| false);
        body.sort_unstable_by_key(|b| cfg.place(*b));
        let Some(counted) = Counted::of(func, &cfg, &tree, &defs, body) else { continue };
        let agree = || !divergence.branch_diverges(counted.last());
        let Some(pieces) = counted.pieces(func, agree) else { continue };
        let iterations: u32 = pieces.iter().map(|piece| piece.iterations).sum();
        let more = counted.size(func) * iterations as usize;
        if *added + more <= MOST_ADDED {
            *added += more;
            chosen.push((counted, pieces));
        }
    }
    chosen
}

/// For each loop: the blocks outside of it that read its values.
fn readers(func: &Function, chosen: &[(Counted, Vec<Piece>)]) -> Vec<Vec<BlockId>> {
    const NONE: u32 = u32::MAX;
    let mut maker = vec![NONE; func.values.len()];
    let mut home = vec![NONE; func.blocks.len()];
    for ((counted, _), i) in chosen.iter().zip(0..) {
        for &b in &counted.body {
            home[b.index()] = i;
            made(func, b).for_each(|v| maker[v.index()] = i);
        }
    }
    let mut readers = vec![Vec::new(); chosen.len()];
    for &b in &func.layout {
        for_each_use(func, b, |src| {
            let Some(&of) = src.value().and_then(|v| maker.get(v.index())) else { return };
            if of != NONE && of != home[b.index()] && readers[of as usize].last() != Some(&b) {
                readers[of as usize].push(b);
            }
        });
    }
    readers
}

/// The values that a block makes.
fn made(func: &Function, b: BlockId) -> impl Iterator<Item = Value> + '_ {
    let block = func.block(b);
    block.phis.iter().map(|phi| phi.dst).chain(block.insts.iter().flat_map(Inst::defs))
}

/// A loop with one test, at its end.
struct Counted {
    /// The blocks in the order of control flow: the header first, the block with the test last.
    body: Vec<BlockId>,
    /// The loop continues while `cmp` holds between the header's phi of this index plus `offset` and `limit`.
    phi: usize,
    offset: u32,
    step: i32,
    cmp: ICmp,
    sign: Sign,
    /// The index of the limit among the operands of the instruction that makes the test, in the last block.
    limit: usize,
    test: Value,
    /// Threads act together in it: it has convergent operations.
    convergent: bool,
}

/// Maps the values of a loop to those of a copy.
type Map = FxHashMap<Value, Src>;

impl Counted {
    /// The loop of these blocks, which are in the order of control flow.
    fn of(func: &Function, cfg: &Cfg, tree: &Tree, defs: &Defs, body: Vec<BlockId>) -> Option<Counted> {
        let (&header, &last) = (body.first()?, body.last()?);
        let (cond, goes_on) = only_test(func, cfg, &body)?;
        if !body.iter().flat_map(|&b| &func.block(b).insts).all(|inst| can_copy(func, inst)) {
            return None;
        }
        let convergent = acts_together(func, tree, &body)?;
        let v = cond.value()?;
        let test = defs.inst(func, v).filter(|inst| inst.guard.is_true())?;
        let Op::Isetp { cmp, sign, bool_: Bool::And, ex: false } = test.op else { return None };
        let [a, b, with] = test.srcs[..] else { return None };
        let inside = |src: &Src| src.value().is_some_and(|v| is_made_in(func, defs, &body, v));
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
        goes_towards(step, cmp).then_some(Counted {
            body,
            phi,
            offset,
            step,
            cmp,
            sign,
            limit,
            test: v,
            convergent,
        })
    }

    fn header(&self) -> BlockId {
        self.body[0]
    }

    fn last(&self) -> BlockId {
        self.body[self.body.len() - 1]
    }

    /// What the tested sum is compared with.
    fn limit(&self, func: &Function) -> Option<Src> {
        let mut insts = self.body.iter().rev().flat_map(|&b| &func.block(b).insts);
        let test = insts.find(|inst| inst.defs().any(|v| v == self.test))?;
        test.srcs.get(self.limit).copied()
    }

    /// Operations of an iteration.
    fn size(&self, func: &Function) -> usize {
        self.body.iter().map(|&b| func.block(b).insts.len()).sum()
    }

    /// What it is unrolled into; `None` if that does not pay. `agree` tells whether the threads of a warp leave together.
    fn pieces(&self, func: &Function, agree: impl Fn() -> bool) -> Option<Vec<Piece>> {
        let size = self.size(func);
        let pieces = match self.iterations(func) {
            Some(all) if all <= MOST_ITERATIONS && size * all as usize <= LONGEST_STRAIGHT => {
                vec![Piece { iterations: all, repeats: false }]
            }
            Some(all) if let Some(iterations) = divisor(all, (LONGEST_DIVIDED / size.max(1)) as u32) => {
                vec![Piece { iterations, repeats: true }]
            }
            _ if size <= LONGEST && (!self.convergent || agree()) => PIECES.to_vec(),
            _ => return None,
        };
        let most = pieces.iter().map(|piece| piece.iterations).sum::<u32>().checked_mul(self.copies(func))?;
        func.facts.statements.allow(most).then_some(pieces)
    }

    /// How many copies its statements have, at most.
    fn copies(&self, func: &Function) -> u32 {
        let number = |src: SrcId| func.facts.statements.copy_number(src);
        let of = |b: &BlockId| {
            let block = func.block(*b);
            block.insts.iter().map(|inst| number(inst.src)).max().unwrap_or(0).max(number(block.term_src))
        };
        self.body.iter().map(of).max().unwrap_or(0) + 1
    }

    /// The trip count, if it is known and not too large to count.
    fn iterations(&self, func: &Function) -> Option<u32> {
        const MOST: u32 = 1 << 12;
        let phi = &func.block(self.header()).phis[self.phi];
        let mut starts = phi.args.iter().filter(|(from, _)| *from != self.last()).map(|(_, src)| known(src));
        let start = starts.next()??;
        if starts.any(|other| other != Some(start)) {
            return None;
        }
        let limit = known(&self.limit(func)?)?;
        let mut tested = start.wrapping_add(self.offset);
        let mut iterations = 1;
        while self.compares(tested, limit) {
            iterations += 1;
            tested = tested.wrapping_add(self.step as u32);
            if iterations > MOST {
                return None;
            }
        }
        Some(iterations)
    }

    fn compares(&self, a: u32, b: u32) -> bool {
        let order = match self.sign {
            Sign::S32 => (a as i32).cmp(&(b as i32)),
            Sign::U32 => a.cmp(&b),
        };
        match self.cmp {
            ICmp::Lt => order.is_lt(),
            ICmp::Le => order.is_le(),
            ICmp::Gt => order.is_gt(),
            ICmp::Ge => order.is_ge(),
            ICmp::Eq => order.is_eq(),
            _ => order.is_ne(),
        }
    }

    /// The values that the header's phis take from the end of an iteration.
    fn carried(&self, func: &Function) -> Vec<Src> {
        arguments_from(func, self.header(), self.last())
    }

    /// Adds a preheader.
    fn enter(&self, func: &mut Function) -> BlockId {
        let (header, last) = (self.header(), self.last());
        let args = &func.block(header).phis[self.phi].args;
        let entries: Vec<BlockId> = args.iter().map(|(from, _)| *from).filter(|&b| b != last).collect();
        let entry = func.new_block();
        let mut values = Vec::new();
        let mut phis = Vec::new();
        for i in 0..func.block(header).phis.len() {
            let phi = &func.block(header).phis[i];
            let args: Vec<(BlockId, Src)> =
                phi.args.iter().filter(|(from, _)| *from != last).copied().collect();
            match args[..] {
                [(_, src)] => values.push(src),
                _ => {
                    let dst = like(func, phi.dst);
                    phis.push(Phi { dst, args });
                    values.push(dst.into());
                }
            }
        }
        func.block_mut(entry).phis = phis;
        func.block_mut(entry).term = Term::Jump(header);
        func.block_mut(entry).term_src = func.block(last).term_src;
        for from in entries {
            redirect(&mut func.block_mut(from).term, header, entry);
        }
        for (phi, src) in func.block_mut(header).phis.iter_mut().zip(&values) {
            phi.args.retain(|(from, _)| *from == last);
            phi.args.push((entry, *src));
        }
        let place = func.layout.iter().position(|&b| b == header).unwrap_or(0);
        func.layout.insert(place, entry);
        entry
    }

    /// Adds a dedicated exit block, whose phis hold the values that `readers`, blocks after the loop, read.
    fn leave(&self, func: &mut Function, readers: Vec<BlockId>) -> BlockId {
        let last = self.last();
        let mut held: FxHashMap<Value, Option<Value>> =
            self.body.iter().flat_map(|&b| made(func, b)).map(|v| (v, None)).collect();
        let after = func.new_block();
        let mut phis = Vec::new();
        let mut values = std::mem::take(&mut func.values);
        for b in readers {
            for_each_use_mut(func, b, |src| {
                let Some(v) = src.value() else { return };
                let Some(held) = held.get_mut(&v) else { return };
                let by = *held.get_or_insert_with(|| {
                    values.push(values[v.index()]);
                    let dst = Value(values.len() as u32 - 1);
                    phis.push(Phi { dst, args: vec![(last, v.into())] });
                    dst
                });
                src.kind = match src.kind {
                    SrcKind::Part(_, part) => SrcKind::Part(by, part),
                    _ => SrcKind::Value(by),
                };
            });
        }
        func.values = values;
        let header = self.header();
        let exits = func.block(last).term.successors();
        let Some(exit) = exits.into_iter().find(|&to| to != header) else { return after };
        for phi in &mut func.block_mut(exit).phis {
            phi.args.iter_mut().filter(|(from, _)| *from == last).for_each(|(from, _)| *from = after);
        }
        redirect(&mut func.block_mut(last).term, exit, after);
        let term_src = func.block(last).term_src;
        let block = func.block_mut(after);
        (block.phis, block.term, block.term_src) = (phis, Term::Jump(exit), term_src);
        let place = func.layout.iter().position(|&b| b == last).map_or(func.layout.len(), |place| place + 1);
        func.layout.insert(place, after);
        after
    }

    /// Copies the body, with `values` for the header's phis. Returns the new blocks, in the order of the body, and the
    /// map of values. The blocks are not in the layout yet.
    fn copy(&self, func: &mut Function, values: &[Src], iteration: u32, copies: u32) -> (Vec<BlockId>, Map) {
        let mut map = Map::default();
        for (phi, value) in func.block(self.header()).phis.iter().zip(values) {
            map.insert(phi.dst, *value);
        }
        let blocks: Vec<BlockId> = self.body.iter().map(|_| func.new_block()).collect();
        let block_of = |b: BlockId| self.body.iter().position(|&own| own == b).map_or(b, |i| blocks[i]);
        for &b in &self.body {
            let all: Vec<Value> = made(func, b).collect();
            for v in all {
                map.entry(v).or_insert_with(|| like(func, v).into());
            }
        }
        for (&b, &copy) in self.body.iter().zip(&blocks) {
            let mut block: Block = func.block(b).clone();
            block.may_unroll = false;
            if b == self.header() {
                block.phis.clear();
            }
            for phi in &mut block.phis {
                rename(&map, &mut phi.dst);
                for (from, src) in &mut phi.args {
                    *from = block_of(*from);
                    *src = substituted(&map, *src);
                }
            }
            for inst in &mut block.insts {
                inst.uses_mut().for_each(|src| *src = substituted(&map, *src));
                for dst in &mut inst.dsts {
                    if let Dst::Value(v) = dst {
                        rename(&map, v);
                    }
                }
                if inst.guard.is_true() {
                    inst.old.clear();
                }
                signature::fold_modifiers(inst);
            }
            if let Some(src) = block.term.operand_mut() {
                *src = substituted(&map, *src);
            }
            for to in &self.body {
                redirect(&mut block.term, *to, block_of(*to));
            }
            number(&mut block, func.facts.statements, iteration, copies);
            *func.block_mut(copy) = block;
        }
        (blocks, map)
    }

    /// Puts pieces in the place of the loop, which is entered from `entry` with `values` and left to `after`. A last piece of
    /// one iteration that repeats is the loop itself.
    fn unroll(&self, func: &mut Function, pieces: &[Piece], entry: BlockId, after: BlockId, round: u32) {
        let (header, last) = (self.header(), self.last());
        let copies = self.copies(func);
        func.facts.unrolled.push(Unrolled {
            branch: func.block(last).term_src,
            copies,
            pieces: pieces.to_vec(),
            round,
            never: func.facts.never.len(),
        });
        let Some(limit) = self.limit(func) else { return };
        let values = arguments_from(func, header, entry);
        let mut stage = Some(Stage { block: entry, values });
        let mut made = Vec::new();
        let mut iteration = 0;
        for (i, piece) in pieces.iter().enumerate() {
            let next = match pieces.get(i + 1) {
                None => None,
                Some(Piece { iterations: 1, repeats: true }) if i + 2 == pieces.len() => {
                    for phi in &mut func.block_mut(header).phis {
                        phi.args.retain(|(from, _)| *from == last);
                    }
                    Some(header)
                }
                Some(_) => Some(self.stage(func)),
            };
            let Some(from) = stage.take() else { break };
            made.extend((i > 0).then_some(from.block));
            let place = Place { piece, first: iteration, copies, limit, from, next, after };
            self.piece(func, &place, &mut made);
            iteration += piece.iterations;
            if next == Some(header) {
                break;
            }
            stage = next.map(|block| {
                let values = func.block(block).phis.iter().map(|phi| phi.dst.into()).collect();
                Stage { block, values }
            });
        }
        let place = func.layout.iter().position(|&b| b == header).unwrap_or(0);
        if iteration < pieces.iter().map(|piece| piece.iterations).sum() {
            let statements = func.facts.statements;
            for &b in &self.body {
                number(func.block_mut(b), statements, iteration, copies);
            }
            func.block_mut(header).may_unroll = false;
        } else {
            func.layout.retain(|b| !self.body.contains(b));
            for phi in &mut func.block_mut(after).phis {
                phi.args.retain(|(from, _)| *from != last);
            }
        }
        func.layout.splice(place..place, made);
    }

    /// A block for a guard, with phis for those of the header.
    fn stage(&self, func: &mut Function) -> BlockId {
        let block = func.new_block();
        func.block_mut(block).term_src = func.block(self.last()).term_src;
        let phis = carried_phis(func, self.header());
        func.block_mut(block).phis = phis.into_iter().map(|dst| Phi { dst, args: Vec::new() }).collect();
        block
    }

    /// Makes the iterations of a piece, connects them with what is before and after them, and adds their blocks to `made`.
    fn piece(&self, func: &mut Function, place: &Place<'_>, made: &mut Vec<BlockId>) {
        let Place { piece, from, next, after, .. } = place;
        let last = self.last();
        let term_src = func.block(last).term_src;
        let Some(exit) = self.exit(func) else { return };
        let starts = if piece.repeats { carried_phis(func, self.header()) } else { Vec::new() };
        let values = match piece.repeats {
            true => starts.iter().map(|&v| v.into()).collect(),
            false => from.values.clone(),
        };
        let Some(Iterations { top, bottom, values, map }) = self.iterations_of(func, place, values, made)
        else {
            return;
        };
        match next {
            None => func.block_mut(from.block).term = Term::Jump(top),
            Some(next) => {
                let start = from.values[self.phi];
                let enough = self.guard(func, place, from.block, start, Src::TRUE);
                func.block_mut(from.block).term =
                    Term::Branch { cond: enough, then: top, els: *next, uniform: exit.uniform };
                lead(func, from.block, &from.values, *next);
            }
        }
        let exit = Exit { cond: substituted(&map, exit.cond), ..exit };
        let mut left = bottom;
        func.block_mut(bottom).term = match (piece.repeats, next) {
            (false, None) => Term::Jump(*after),
            (false, Some(next)) => exit.branch(*next, *after),
            (true, None) => exit.branch(top, *after),
            (true, Some(next)) => {
                let enough = self.guard(func, place, bottom, values[self.phi], exit.stays());
                left = func.new_block();
                func.block_mut(left).term = exit.branch(*next, *after);
                func.block_mut(left).term_src = term_src;
                made.push(left);
                Term::Branch { cond: enough, then: top, els: left, uniform: exit.uniform }
            }
        };
        let ways = from.values.iter().zip(&values);
        func.block_mut(top).phis = starts
            .iter()
            .zip(ways)
            .map(|(&dst, (&start, &end))| Phi { dst, args: vec![(from.block, start), (bottom, end)] })
            .collect();
        if let Some(next) = next {
            lead(func, left, &values, *next);
        }
        for phi in &mut func.block_mut(*after).phis {
            if let Some((_, src)) = phi.args.iter().find(|(from, _)| *from == last) {
                phi.args.push((left, substituted(&map, *src)));
            }
        }
    }

    /// Copies the loop as often as the piece has iterations, one after the other. The header's phis have `values` in the
    /// first.
    fn iterations_of(
        &self,
        func: &mut Function,
        place: &Place<'_>,
        mut values: Vec<Src>,
        made: &mut Vec<BlockId>,
    ) -> Option<Iterations> {
        let carried = self.carried(func);
        let mut ends: Option<(BlockId, BlockId)> = None;
        let mut map = Map::default();
        for iteration in 0..place.piece.iterations {
            let (blocks, own) = self.copy(func, &values, place.first + iteration, place.copies);
            map = own;
            let (start, end) = (*blocks.first()?, *blocks.last()?);
            let top = match ends {
                None => start,
                Some((top, before)) => {
                    func.block_mut(before).term = Term::Jump(start);
                    top
                }
            };
            ends = Some((top, end));
            values = carried.iter().map(|src| substituted(&map, *src)).collect();
            made.extend(blocks);
        }
        let (top, bottom) = ends?;
        Some(Iterations { top, bottom, values, map })
    }

    fn exit(&self, func: &Function) -> Option<Exit> {
        match func.block(self.last()).term {
            Term::Branch { cond, then, uniform, .. } => {
                Some(Exit { cond, goes_on: then == self.header(), uniform })
            }
            _ => None,
        }
    }

    /// Whether all iterations of a piece, of which it has two at least, are left: all their tests but the last hold. The first
    /// of them begins with `value`, if `begins` holds.
    fn guard(&self, func: &mut Function, place: &Place<'_>, b: BlockId, value: Src, begins: Src) -> Src {
        let (limit, at) = (place.limit, func.block(self.last()).term_src);
        let add = |func: &mut Function, srcs: [Src; 3]| -> Src {
            let dst = func.new_value(File::R, 1);
            let dsts = [Dst::Value(dst), Dst::Sink, Dst::Sink];
            func.block_mut(b).insts.push(Inst::new(Op::Iadd3 { x: false }, &dsts, &srcs, at));
            dst.into()
        };
        let tested = match self.offset {
            0 => value,
            offset => add(func, [value, Src::imm(offset), Src::ZERO]),
        };
        // The distance to the limit, in the direction of the steps.
        let (from, to) = if self.step > 0 { (tested, limit) } else { (limit, tested) };
        let distance = add(func, [to, from.neg(), Src::ZERO]);
        let test = |func: &mut Function, cmp, sign, a, b_, with| -> Src {
            let dst = func.new_value(File::P, 1);
            let op = Op::Isetp { cmp, sign, bool_: Bool::And, ex: false };
            func.block_mut(b).insts.push(Inst::new(op, &[Dst::Value(dst), Dst::Sink], &[a, b_, with], at));
            dst.into()
        };
        let holds = match self.cmp {
            ICmp::Ne => begins,
            cmp => test(func, cmp, self.sign, tested, limit, begins),
        };
        let steps = (place.piece.iterations - 2) * self.step.unsigned_abs();
        let at_least = if matches!(self.cmp, ICmp::Le | ICmp::Ge) { ICmp::Ge } else { ICmp::Gt };
        test(func, at_least, Sign::U32, distance, Src::imm(steps), holds)
    }
}

/// The condition of the only branch that leaves or repeats a loop, and whether the loop goes on where it holds. The branch
/// ends the loop's last block.
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

/// Whether there may be two of the instruction.
fn can_copy(func: &Function, inst: &Inst) -> bool {
    let is_plain = |v: Value| {
        let data = func.value(v);
        data.pin.is_none() && matches!(data.file, File::R | File::P)
    };
    !inst.op.calls_function() && inst.defs().all(is_plain)
}

/// Whether threads act together in the loop; `None` where a copy could part them. Threads may do together in one iteration
/// what others do in another, unless each does it in every iteration.
fn acts_together(func: &Function, tree: &Tree, body: &[BlockId]) -> Option<bool> {
    let last = *body.last()?;
    let mut any = false;
    for &b in body {
        for inst in func.block(b).insts.iter().filter(|inst| facts(&inst.op).convergent) {
            if !inst.guard.is_true() || !(b == last || tree.dominates(b, last)) {
                return None;
            }
            any = true;
        }
    }
    Some(any)
}

fn is_made_in(func: &Function, defs: &Defs, body: &[BlockId], v: Value) -> bool {
    match defs.site(v) {
        Some((b, _)) => body.contains(&b),
        None => body.iter().any(|&b| func.block(b).phis.iter().any(|phi| phi.dst == v)),
    }
}

/// Whether the steps lead to where the comparison fails, and are so short that no multiple of one wraps around.
fn goes_towards(step: i32, cmp: ICmp) -> bool {
    let towards = match cmp {
        ICmp::Lt | ICmp::Le => step > 0,
        ICmp::Gt | ICmp::Ge => step < 0,
        ICmp::Ne => step != 0,
        _ => false,
    };
    towards && step.unsigned_abs() <= 1 << 24
}

/// The place of a piece.
struct Place<'a> {
    piece: &'a Piece,
    /// The number of its first iteration among those of all pieces.
    first: u32,
    /// How many copies the loop's statements have already.
    copies: u32,
    limit: Src,
    from: Stage,
    /// Where control goes if too few iterations are left.
    next: Option<BlockId>,
    after: BlockId,
}

/// The iterations of a piece, which are one after the other.
struct Iterations {
    top: BlockId,
    bottom: BlockId,
    /// What the header's phis take after them.
    values: Vec<Src>,
    /// The values of the last one.
    map: Map,
}

/// The branch that leaves or repeats a loop.
#[derive(Clone, Copy)]
struct Exit {
    cond: Src,
    /// The loop goes on where the condition holds.
    goes_on: bool,
    uniform: bool,
}

impl Exit {
    fn branch(self, again: BlockId, after: BlockId) -> Term {
        let Exit { cond, goes_on, uniform } = self;
        let (then, els) = if goes_on { (again, after) } else { (after, again) };
        Term::Branch { cond, then, els, uniform }
    }

    /// Whether the loop goes on.
    fn stays(self) -> Src {
        let mut cond = if self.goes_on { self.cond } else { self.cond.not() };
        normalize_predicate(&mut cond);
        cond
    }
}

/// A block without a terminator yet, and the values of the header's phis there.
struct Stage {
    block: BlockId,
    values: Vec<Src>,
}

/// A value of the same kind.
fn like(func: &mut Function, v: Value) -> Value {
    let data = func.value(v);
    func.new_value(data.file, data.width)
}

/// New values for the header's phis.
fn carried_phis(func: &mut Function, header: BlockId) -> Vec<Value> {
    let phis: Vec<Value> = func.block(header).phis.iter().map(|phi| phi.dst).collect();
    phis.into_iter().map(|v| like(func, v)).collect()
}

/// The phis of `to` take `values` from `from`.
fn lead(func: &mut Function, from: BlockId, values: &[Src], to: BlockId) {
    for (phi, value) in func.block_mut(to).phis.iter_mut().zip(values) {
        phi.args.push((from, *value));
    }
}

/// Gives the instructions of a block to copies of their statements.
fn number(block: &mut Block, statements: Statements, iteration: u32, copies: u32) {
    for inst in &mut block.insts {
        inst.src = statements.in_iteration(inst.src, iteration, copies);
    }
    block.term_src = statements.in_iteration(block.term_src, iteration, copies);
}

/// The largest divisor of `all` that is at most `most`, if there is one of four or more.
fn divisor(all: u32, most: u32) -> Option<u32> {
    (4..=most.min(MOST_ITERATIONS)).rev().find(|divisor| all.is_multiple_of(*divisor))
}

/// Splits an operand into a value and a constant that is added to it.
fn added(func: &Function, defs: &Defs, src: Src) -> Option<(Src, u32)> {
    let inst = defs.of_src(func, &src)?;
    if inst.op != (Op::Iadd3 { x: false }) || inst.dsts.first() != src.value().map(Dst::Value).as_ref() {
        return None;
    }
    let (constants, values): (Vec<&Src>, Vec<&Src>) =
        inst.srcs[..3].iter().partition(|src| known(src).is_some());
    match values[..] {
        [&value] if value.mods == SrcMods::NONE => {
            let sum = constants.into_iter().filter_map(known).fold(0u32, u32::wrapping_add);
            Some((value, sum))
        }
        _ => None,
    }
}

fn substituted(map: &Map, src: Src) -> Src {
    let Some(by) = src.value().and_then(|v| map.get(&v)) else { return src };
    let kind = match src.kind {
        SrcKind::Part(_, part) => part_of(by.kind, part),
        _ => by.kind,
    };
    let mut src = Src { kind, mods: src.mods };
    src.mods.not ^= by.mods.not;
    normalize_predicate(&mut src);
    src
}

fn rename(map: &Map, v: &mut Value) {
    if let Some(by) = map.get(v).and_then(Src::value) {
        *v = by;
    }
}

fn redirect(term: &mut Term, from: BlockId, to: BlockId) {
    let change = |b: &mut BlockId| {
        if *b == from {
            *b = to;
        }
    };
    match term {
        Term::Jump(b) => change(b),
        Term::Branch { then, els, .. } => [then, els].into_iter().for_each(change),
        Term::Switch { targets, .. } => targets.iter_mut().for_each(change),
        Term::Exit | Term::Ret | Term::Unreachable => {}
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ori::analyses::Analyses;
    use crate::ori::text;
    use expect_test::{Expect, expect};

    fn unrolled(body: &str) -> Function {
        let mut func = text::parse(&format!("func \"f\" {{\n{body}\n}}")).unwrap();
        let analyses = Analyses::default();
        func.facts.statements = Statements::new(100);
        func.layout.clone().into_iter().for_each(|b| func.block_mut(b).may_unroll = true);
        let context = Context { sm: ptx_isa::Sm::new(90), checkpoint: &|| (), analyses: &analyses };
        run(&mut func, &context).unwrap();
        crate::ori::verify::verify(&func, crate::ori::verify::Stage::Built).unwrap();
        func
    }

    fn check(body: &str, expected: Expect) {
        expected.assert_eq(&text::print(&unrolled(body)));
    }

    /// A loop that stores its counter, which goes from `start` by `step` while it compares so with `limit`.
    fn counting(start: &str, step: &str, compare: &str, limit: &str) -> String {
        format!(
            "b0:\n%v0:r = S2R{{sr=0x21}}\nJUMP b1\n\
             b1:\n%v1:r = phi b0 {start}, b1 %v2\nSTS %v1, RZ, %v1\n%v2:r, _, _ = IADD3 %v1, {step}, RZ\n\
             %v3:p, _ = ISETP.{compare}.AND %v2, {limit}, PT\nBRA %v3, b1, b2\n\
             b2:\nSTS %v0, RZ, %v2\nEXIT"
        )
    }

    fn is_unrolled(body: &str) -> bool {
        let func = unrolled(body);
        let stores =
            |b: &BlockId| func.block(*b).insts.iter().filter(|i| matches!(i.op, Op::Sts { .. })).count();
        func.layout.iter().map(stores).sum::<usize>() > 2
    }

    #[test]
    fn loops_of_known_turns_become_straight() {
        check(
            &counting("RZ", "0x1", "LT", "0x3"),
            expect![[r#"
                func "f" {
                b0:
                  %v0:r = S2R{sr=0x21}
                  JUMP b3
                b3:
                  JUMP b5
                b5:
                  STS RZ, RZ, RZ
                  %v5:r, _, _ = IADD3 RZ, 0x1, RZ
                  %v6:p, _ = ISETP.LT.AND %v5, 0x3, PT
                  JUMP b6
                b6:
                  STS %v5, RZ, %v5 #100
                  %v7:r, _, _ = IADD3 %v5, 0x1, RZ #100
                  %v8:p, _ = ISETP.LT.AND %v7, 0x3, PT #100
                  JUMP b7 #100
                b7:
                  STS %v7, RZ, %v7 #200
                  %v9:r, _, _ = IADD3 %v7, 0x1, RZ #200
                  %v10:p, _ = ISETP.LT.AND %v9, 0x3, PT #200
                  JUMP b4 #200
                b4:
                  %v4:r = phi b7 %v9
                  JUMP b2
                b2:
                  STS %v0, RZ, %v4
                  EXIT
                }
            "#]],
        );
    }

    #[test]
    fn other_loops_take_four_turns_while_so_many_are_left() {
        check(
            &counting("%v0", "0x4", "NE", "c[0x0][0x210]"),
            expect![[r#"
                func "f" {
                b0:
                  %v0:r = S2R{sr=0x21}
                  JUMP b3
                b3:
                  %v15:r, _, _ = IADD3 %v0, 0x4, RZ
                  %v16:r, _, _ = IADD3 c[0x0][0x210], -%v15, RZ
                  %v17:p, _ = ISETP.GT.U32.AND %v16, 0x8, PT
                  BRA %v17, b6, b5
                b6:
                  %v6:r = phi b3 %v0, b9 %v13
                  STS %v6, RZ, %v6
                  %v7:r, _, _ = IADD3 %v6, 0x4, RZ
                  %v8:p, _ = ISETP.NE.AND %v7, c[0x0][0x210], PT
                  JUMP b7
                b7:
                  STS %v7, RZ, %v7 #100
                  %v9:r, _, _ = IADD3 %v7, 0x4, RZ #100
                  %v10:p, _ = ISETP.NE.AND %v9, c[0x0][0x210], PT #100
                  JUMP b8 #100
                b8:
                  STS %v9, RZ, %v9 #200
                  %v11:r, _, _ = IADD3 %v9, 0x4, RZ #200
                  %v12:p, _ = ISETP.NE.AND %v11, c[0x0][0x210], PT #200
                  JUMP b9 #200
                b9:
                  STS %v11, RZ, %v11 #300
                  %v13:r, _, _ = IADD3 %v11, 0x4, RZ #300
                  %v14:p, _ = ISETP.NE.AND %v13, c[0x0][0x210], PT #300
                  %v18:r, _, _ = IADD3 %v13, 0x4, RZ
                  %v19:r, _, _ = IADD3 c[0x0][0x210], -%v18, RZ
                  %v20:p, _ = ISETP.GT.U32.AND %v19, 0x8, %v14
                  BRA %v20, b6, b10 #300
                b10:
                  BRA %v14, b5, b4
                b5:
                  %v5:r = phi b3 %v0, b10 %v13
                  %v25:r, _, _ = IADD3 %v5, 0x4, RZ
                  %v26:r, _, _ = IADD3 c[0x0][0x210], -%v25, RZ
                  %v27:p, _ = ISETP.GT.U32.AND %v26, RZ, PT
                  BRA %v27, b11, b1
                b11:
                  STS %v5, RZ, %v5 #400
                  %v21:r, _, _ = IADD3 %v5, 0x4, RZ #400
                  %v22:p, _ = ISETP.NE.AND %v21, c[0x0][0x210], PT #400
                  JUMP b12 #400
                b12:
                  STS %v21, RZ, %v21 #500
                  %v23:r, _, _ = IADD3 %v21, 0x4, RZ #500
                  %v24:p, _ = ISETP.NE.AND %v23, c[0x0][0x210], PT #500
                  BRA %v24, b1, b4 #500
                b1:
                  %v1:r = phi b1 %v2, b5 %v5, b12 %v23
                  STS %v1, RZ, %v1 #600
                  %v2:r, _, _ = IADD3 %v1, 0x4, RZ #600
                  %v3:p, _ = ISETP.NE.AND %v2, c[0x0][0x210], PT #600
                  BRA %v3, b1, b4 #600
                b4:
                  %v4:r = phi b1 %v2, b10 %v13, b12 %v23
                  JUMP b2
                b2:
                  STS %v0, RZ, %v4
                  EXIT
                }
            "#]],
        );
    }

    #[test]
    fn steps_go_towards_the_limit() {
        let unrolls = |step, compare| is_unrolled(&counting("%v0", step, compare, "c[0x0][0x210]"));
        assert!(unrolls("0x1", "LT") && unrolls("0x2", "LE.U32") && unrolls("0xffffffff", "GT"));
        assert!(!unrolls("0xffffffff", "LT") && !unrolls("0x1", "GE") && !unrolls("0x1", "EQ"));
    }

    #[test]
    fn loops_in_which_threads_act_together_stay() {
        let body =
            counting("%v0", "0x1", "LT", "c[0x0][0x210]").replace("STS %v1, RZ, %v1\n", "BAR.SYNC RZ\n");
        assert!(!is_unrolled(&body));
    }

    #[test]
    fn loops_with_another_way_out_stay() {
        let body = "b0:\n%v0:r = S2R{sr=0x21}\n%v9:p, _ = ISETP.LT.AND %v0, 0x5, PT\nJUMP b1\n\
             b1:\n%v1:r = phi b0 RZ, b3 %v2\nSTS %v1, RZ, %v1\nBRA %v9, b2, b3\n\
             b3:\n%v2:r, _, _ = IADD3 %v1, 0x1, RZ\n%v3:p, _ = ISETP.LT.AND %v2, 0x64, PT\nBRA %v3, b1, b2\n\
             b2:\nSTS %v0, RZ, %v0\nEXIT";
        assert!(!is_unrolled(body));
    }
}
