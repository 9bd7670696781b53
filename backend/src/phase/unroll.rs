//! Loop unrolling of short innermost loops.
//!
//! A loop is unrolled if its only exit test is at its end and compares an induction variable with constant step against
//! a loop-invariant limit. If the trip count is known and small, the loop becomes straight-line code. Otherwise an
//! unrolled loop is placed before the original one. A guard ensures that it runs only while enough iterations are left;
//! the original loop runs the remainder:
//!
//! ```text
//!             ┌────────────── guard: are enough iterations left?
//!             │ yes               │ no
//!             ▼                   │
//!   ┌──► several iterations       │
//!   └─yes─ guard                  │
//!             │ no                │
//!           test ────────────► the loop ──► after
//!             └──────────────────────────────┘
//! ```
//!
//! Before and after: SSA. Loops with `.pragma "nounroll"` are left alone, and so are those with convergent operations.

use crate::CodegenError;
use crate::input::SrcId;
use crate::ori::cfg::Cfg;
use crate::ori::ir::{Block, BlockId, Dst, File, Function, Inst, Phi, Src, SrcKind, SrcMods, Term, Value};
use crate::ori::loops::{LoopId, Loops};
use crate::ori::op::{Bool, ICmp, Op, Sign};
use crate::ori::signature::{self, facts};
use crate::phase::edit::{Defs, for_each_use_mut, known, normalize_predicate, part_of};
use crate::phases::Context;
use rustc_hash::FxHashMap;

/// Iterations in one iteration of the unrolled loop.
const TURNS: u32 = 4;
/// The most operations of a loop that is unrolled.
const LONGEST: usize = 40;
/// The most operations of all iterations of a loop that becomes straight-line code, and the most iterations.
const LONGEST_STRAIGHT: usize = 256;
const MOST_TURNS: u32 = 32;
/// The most operations that unrolling adds to a function.
const MOST_ADDED: usize = 4000;

pub fn run(func: &mut Function, context: &Context<'_>) -> Result<(), CodegenError> {
    let loops = context.analyses.loops(func);
    let cfg = context.analyses.cfg(func);
    let mut inner = vec![true; loops.loops.len()];
    for one in &loops.loops {
        if let Some(parent) = one.parent {
            inner[parent.0 as usize] = false;
        }
    }
    // The conditions concern a loop and the blocks that enter it. Unrolling other loops only renames values there.
    let mut added = 0;
    let headers: Vec<BlockId> =
        loops.loops.iter().zip(&inner).filter(|(_, inner)| **inner).map(|(l, _)| l.header).collect();
    let bodies: Vec<Vec<BlockId>> =
        (0..loops.loops.len()).filter(|&i| inner[i]).map(|i| body(&loops, cfg, LoopId(i as u32))).collect();
    for (header, body) in headers.into_iter().zip(bodies) {
        (context.checkpoint)();
        let cfg = Cfg::new(func);
        let defs = Defs::new(func, &cfg);
        let Some(count) = Counted::of(func, &cfg, &defs, header, &body) else { continue };
        let size = count.size(func);
        let turns = count.turns(func, &cfg);
        match turns {
            Some(turns) if turns <= MOST_TURNS && size * turns as usize <= LONGEST_STRAIGHT => {
                added += size * turns as usize;
                if added <= MOST_ADDED {
                    count.straighten(func, &cfg, turns);
                }
            }
            _ if size <= LONGEST => {
                added += size * TURNS as usize;
                if added <= MOST_ADDED {
                    count.unroll(func, &cfg);
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// The blocks of a loop in the order of control flow, the header first.
fn body(loops: &Loops, cfg: &Cfg, id: LoopId) -> Vec<BlockId> {
    cfg.order.iter().copied().filter(|&b| loops.contains(id, b)).collect()
}

/// A loop with one test, at its end.
struct Counted {
    /// The blocks in the order of control flow: the header first, the block with the test last.
    body: Vec<BlockId>,
    exit: BlockId,
    /// The loop continues while `cmp` holds between the header's phi of this index plus `offset` and `limit`.
    phi: usize,
    offset: u32,
    step: i32,
    cmp: ICmp,
    sign: Sign,
    limit: Src,
}

/// Maps the values of a loop to those of a copy.
type Map = FxHashMap<Value, Src>;

impl Counted {
    fn of(func: &Function, cfg: &Cfg, defs: &Defs, header: BlockId, body: &[BlockId]) -> Option<Counted> {
        let last = *body.last()?;
        let Term::Branch { cond, then, els, .. } = func.block(last).term else { return None };
        if func.block(header).keeps_turns || *body.first()? != header || !cfg.preds(header).contains(&last) {
            return None;
        }
        let goes_on = then == header;
        let exit = if goes_on { els } else { then };
        let inside = |b: BlockId| body.contains(&b);
        // The test is the only way out, and the only way back.
        let closed = |&b: &BlockId| {
            let next = func.block(b).term.successors();
            let plain = matches!(func.block(b).term, Term::Jump(_) | Term::Branch { .. });
            plain && next.iter().all(|&to| inside(to) && to != header)
        };
        if inside(exit) || !body[..body.len() - 1].iter().all(closed) || cfg.preds(header).len() < 2 {
            return None;
        }
        let can_copy = |inst: &Inst| {
            let pinned = |v: Value| func.value(v).pin.is_some();
            !facts(&inst.op).convergent && !inst.op.calls_function() && !inst.defs().any(pinned)
        };
        if !body.iter().all(|&b| func.block(b).insts.iter().all(can_copy)) {
            return None;
        }
        let is_inside = |src: &Src| match src.value() {
            Some(v) => {
                defs.site(v).is_some_and(|(b, _)| inside(b))
                    || body.iter().any(|&b| func.block(b).phis.iter().any(|phi| phi.dst == v))
            }
            None => false,
        };
        let test = defs.inst(func, cond.value()?).filter(|inst| inst.guard.is_true())?;
        let Op::Isetp { cmp, sign, bool_: Bool::And, ex: false } = test.op else { return None };
        let [a, b, with] = test.srcs[..] else { return None };
        if !with.is_true() || !is_inside(&cond) || test.dsts.first() != Some(&Dst::Value(cond.value()?)) {
            return None;
        }
        let cmp = if goes_on == cond.mods.not { inverted(cmp)? } else { cmp };
        let (sum, limit, cmp) = match (is_inside(&a), is_inside(&b)) {
            (true, false) => (a, b, cmp),
            (false, true) => (b, a, mirrored(cmp)?),
            _ => return None,
        };
        if limit.mods != SrcMods::NONE {
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
        // Steps towards the limit, short ones, so that no multiple of one wraps around.
        let towards = match cmp {
            ICmp::Lt | ICmp::Le => step > 0,
            ICmp::Gt | ICmp::Ge => step < 0,
            ICmp::Ne => step != 0,
            _ => false,
        };
        if !towards || step.unsigned_abs() > 1 << 24 {
            return None;
        }
        Some(Counted { body: body.to_vec(), exit, phi, offset, step, cmp, sign, limit })
    }

    fn header(&self) -> BlockId {
        self.body[0]
    }

    fn last(&self) -> BlockId {
        self.body[self.body.len() - 1]
    }

    fn size(&self, func: &Function) -> usize {
        self.body.iter().map(|&b| func.block(b).insts.len()).sum()
    }

    /// The trip count, if it is known and small.
    fn turns(&self, func: &Function, cfg: &Cfg) -> Option<u32> {
        let header = self.header();
        let phi = &func.block(header).phis[self.phi];
        let mut start = None;
        for (from, src) in &phi.args {
            if *from != self.last() {
                let value = known(src)?;
                if start.is_some_and(|start| start != value) {
                    return None;
                }
                start = Some(value);
            }
        }
        debug_assert!(cfg.is_reached(header), "an analysed loop");
        let limit = known(&self.limit)?;
        let mut tested = start?.wrapping_add(self.offset);
        let mut turns = 1;
        while self.compares(tested, limit) {
            turns += 1;
            tested = tested.wrapping_add(self.step as u32);
            if turns > MOST_TURNS {
                return None;
            }
        }
        Some(turns)
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
        crate::phase::branches::arguments_from(func, self.header(), self.last())
    }

    /// Adds a preheader. Returns it, and the values that the header's phis take from there.
    fn enter(&self, func: &mut Function, cfg: &Cfg) -> (BlockId, Vec<Src>) {
        let (header, last) = (self.header(), self.last());
        let entries: Vec<BlockId> = cfg.preds(header).iter().copied().filter(|&b| b != last).collect();
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
                    let data = func.value(phi.dst);
                    let dst = func.new_value(data.file, data.width);
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
        (entry, values)
    }

    /// Adds a dedicated exit block, whose phis hold the values that are read after the loop.
    fn leave(&self, func: &mut Function) -> BlockId {
        let (last, exit) = (self.last(), self.exit);
        let mut inside = vec![false; func.blocks.len()];
        self.body.iter().for_each(|b| inside[b.index()] = true);
        let mut made: Vec<Value> = Vec::new();
        for &b in &self.body {
            made.extend(func.block(b).phis.iter().map(|phi| phi.dst));
            made.extend(func.block(b).insts.iter().flat_map(Inst::defs));
        }
        let mut is_made = vec![false; func.values.len()];
        made.iter().for_each(|v| is_made[v.index()] = true);
        let after = func.new_block();
        let mut held: FxHashMap<Value, Value> = FxHashMap::default();
        let mut phis = Vec::new();
        let mut fresh = func.values.clone();
        for i in 0..func.layout.len() {
            let b = func.layout[i];
            if inside[b.index()] {
                continue;
            }
            for_each_use_mut(func, b, |src| {
                let Some(v) = src.value().filter(|v| is_made.get(v.index()) == Some(&true)) else { return };
                let by = *held.entry(v).or_insert_with(|| {
                    fresh.push(fresh[v.index()]);
                    let dst = Value(fresh.len() as u32 - 1);
                    phis.push(Phi { dst, args: vec![(last, v.into())] });
                    dst
                });
                src.kind = match src.kind {
                    SrcKind::Part(_, part) => SrcKind::Part(by, part),
                    _ => SrcKind::Value(by),
                };
            });
        }
        func.values = fresh;
        for phi in &mut func.block_mut(exit).phis {
            phi.args.iter_mut().filter(|(from, _)| *from == last).for_each(|(from, _)| *from = after);
        }
        redirect(&mut func.block_mut(last).term, exit, after);
        let block = func.block_mut(after);
        (block.phis, block.term) = (phis, Term::Jump(exit));
        func.block_mut(after).term_src = func.block(last).term_src;
        let place = func.layout.iter().position(|&b| b == last).map_or(func.layout.len(), |place| place + 1);
        func.layout.insert(place, after);
        after
    }

    /// Copies the body, with `values` for the header's phis. Returns the new blocks, in the order of the body, and the
    /// map of values. The blocks are not in the layout yet.
    fn copy(&self, func: &mut Function, values: &[Src]) -> (Vec<BlockId>, Map) {
        let mut map = Map::default();
        for (phi, value) in func.block(self.header()).phis.iter().zip(values) {
            map.insert(phi.dst, *value);
        }
        let blocks: Vec<BlockId> = self.body.iter().map(|_| func.new_block()).collect();
        let block_of = |b: BlockId| self.body.iter().position(|&own| own == b).map_or(b, |i| blocks[i]);
        for &b in &self.body {
            let phis: Vec<Value> = match b == self.header() {
                true => Vec::new(),
                false => func.block(b).phis.iter().map(|phi| phi.dst).collect(),
            };
            let defs: Vec<Value> = func.block(b).insts.iter().flat_map(Inst::defs).collect();
            for v in phis.into_iter().chain(defs) {
                let data = func.value(v);
                map.insert(v, func.new_value(data.file, data.width).into());
            }
        }
        for (&b, &copy) in self.body.iter().zip(&blocks) {
            let mut block: Block = func.block(b).clone();
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
                signature::fold_modifiers(inst);
            }
            if let Some(src) = block.term.operand_mut() {
                *src = substituted(&map, *src);
            }
            for to in &self.body {
                redirect(&mut block.term, *to, block_of(*to));
            }
            *func.block_mut(copy) = block;
        }
        (blocks, map)
    }

    /// Replaces the loop by all its iterations in sequence.
    fn straighten(&self, func: &mut Function, cfg: &Cfg, turns: u32) {
        let (entry, mut values) = self.enter(func, cfg);
        let after = self.leave(func);
        let carried = self.carried(func);
        let mut from = entry;
        let mut all = Vec::new();
        let mut map = Map::default();
        for _ in 0..turns {
            let (blocks, own) = self.copy(func, &values);
            map = own;
            func.block_mut(from).term = Term::Jump(blocks[0]);
            from = blocks[blocks.len() - 1];
            values = carried.iter().map(|src| substituted(&map, *src)).collect();
            all.extend(blocks);
        }
        func.block_mut(from).term = Term::Jump(after);
        let last = self.last();
        for phi in &mut func.block_mut(after).phis {
            for (pred, src) in phi.args.iter_mut().filter(|(pred, _)| *pred == last) {
                (*pred, *src) = (from, substituted(&map, *src));
            }
        }
        let place = func.layout.iter().position(|&b| b == self.header()).unwrap_or(0);
        func.layout.retain(|b| !self.body.contains(b));
        func.layout.splice(place..place, all);
    }

    /// Adds an unrolled loop before the loop.
    fn unroll(&self, func: &mut Function, cfg: &Cfg) {
        let (header, last) = (self.header(), self.last());
        let term_src = func.block(last).term_src;
        let carried = self.carried(func);
        let (entry, start) = self.enter(func, cfg);
        let after = self.leave(func);

        // The phis of the unrolled loop, and its iterations.
        let turn: Vec<Value> = (0..start.len())
            .map(|i| {
                let data = func.value(func.block(header).phis[i].dst);
                func.new_value(data.file, data.width)
            })
            .collect();
        let mut values: Vec<Src> = turn.iter().map(|&v| v.into()).collect();
        let mut all = Vec::new();
        let mut map = Map::default();
        let mut first = header;
        let mut before: Option<BlockId> = None;
        for _ in 0..TURNS {
            let (blocks, own) = self.copy(func, &values);
            map = own;
            match before {
                Some(before) => func.block_mut(before).term = Term::Jump(blocks[0]),
                None => first = blocks[0],
            }
            before = blocks.last().copied();
            values = carried.iter().map(|src| substituted(&map, *src)).collect();
            all.extend(blocks);
        }
        let Some(bottom) = before else { return };
        let Term::Branch { cond, then, uniform, .. } = func.block(last).term.clone() else { return };
        let goes_on = then == header;
        let cond = substituted(&map, cond);

        let enough = self.guard(func, entry, start[self.phi], Src::TRUE, term_src);
        func.block_mut(entry).term = Term::Branch { cond: enough, then: first, els: header, uniform: false };
        let rest = func.new_block();
        let mut again = if goes_on { cond } else { cond.not() };
        normalize_predicate(&mut again);
        let enough = self.guard(func, bottom, values[self.phi], again, term_src);
        func.block_mut(bottom).term = Term::Branch { cond: enough, then: first, els: rest, uniform: false };
        let (then, els) = if goes_on { (header, after) } else { (after, header) };
        func.block_mut(rest).term = Term::Branch { cond, then, els, uniform };
        func.block_mut(rest).term_src = term_src;

        func.block_mut(first).phis = turn
            .iter()
            .zip(start.iter().zip(&values))
            .map(|(&dst, (&start, &end))| Phi { dst, args: vec![(entry, start), (bottom, end)] })
            .collect();
        for (phi, src) in func.block_mut(header).phis.iter_mut().zip(&values) {
            phi.args.push((rest, *src));
        }
        for phi in &mut func.block_mut(after).phis {
            if let Some((_, src)) = phi.args.iter().find(|(from, _)| *from == last) {
                phi.args.push((rest, substituted(&map, *src)));
            }
        }
        let place = func.layout.iter().position(|&b| b == header).unwrap_or(0);
        all.push(rest);
        func.layout.splice(place..place, all);
    }

    /// Whether enough iterations are left for one of the unrolled loop, counting the one that begins with `value`: all
    /// its tests but the last hold. `begins` says whether that first iteration is executed.
    fn guard(&self, func: &mut Function, b: BlockId, value: Src, begins: Src, at: SrcId) -> Src {
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
        let (from, to) = if self.step > 0 { (tested, self.limit) } else { (self.limit, tested) };
        let distance = add(func, [to, from.neg(), Src::ZERO]);
        let test = |func: &mut Function, cmp, sign, a, b_, with| -> Src {
            let dst = func.new_value(File::P, 1);
            let op = Op::Isetp { cmp, sign, bool_: Bool::And, ex: false };
            func.block_mut(b).insts.push(Inst::new(op, &[Dst::Value(dst), Dst::Sink], &[a, b_, with], at));
            dst.into()
        };
        let holds = match self.cmp {
            ICmp::Ne => begins,
            cmp => test(func, cmp, self.sign, tested, self.limit, begins),
        };
        let steps = (TURNS - 2) * self.step.unsigned_abs();
        let at_least = if matches!(self.cmp, ICmp::Le | ICmp::Ge) { ICmp::Ge } else { ICmp::Gt };
        test(func, at_least, Sign::U32, distance, Src::imm(steps), holds)
    }
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
