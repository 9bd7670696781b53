//! Moves long-lived values that are the same for all threads of a block to uniform registers, where general registers
//! are scarce.
//!
//! Such a value is computed only from parameters, constants and the position of the block in the grid. So it is the
//! same wherever threads compute it, and in whatever groups (see [`Common`](crate::ori::divergence::Common)).
//! Instructions that can read it from a uniform register do so; other instructions get a copy in their block. If it
//! takes hardly more instructions, the uniform datapath computes the value; otherwise `R2UR` moves it there.
//!
//! Results of the uniform datapath have a longer latency, so values stay in general registers where these are not
//! scarce. Some values move in any case: descriptors and addresses, if operations can read them from uniform registers,
//! and 64-bit products and selections that a loop reads, such as its step and its bound. Phis stay too, because a uniform
//! register belongs to the whole warp.
//!
//! Before and after: SSA. Instructions whose results are no longer read are removed.

mod carried;

use crate::CodegenError;
use crate::emit::{encodes, takes_uniform};
use crate::input::SrcId;
use crate::legalize::{exchange, reads_constants, reversed};
use crate::ori::analyses::Analyses;
use crate::ori::cfg::Cfg;

use crate::ori::ir::{BlockId, Const, Dst, File, Function, Inst, Src, SrcKind, SrcMods, Value};
use crate::ori::loops::Loops;
use crate::ori::op::{Bool, ICmp, MemSize, Op, ShfType, Sign};
use crate::ori::operations::{facts, signature};
use crate::ori::signature::{Accept, At, SrcSlot, Width};
use crate::ori::together::Together;
use crate::phase::copy_propagation::whole_of;
use crate::phase::dead_code;
use crate::phases::{Change, Context};
use crate::regalloc::live::{Liveness, Point};
use crate::target::Target;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::{SmallVec, smallvec};
use std::cell::OnceCell;

/// The minimum length of a value's live range in points; an instruction has two.
const LONG: u64 = 64;
/// The number of uniform registers that such values may take. Each value keeps its register for the whole function.
const MOST: u32 = 20;
/// The number of general registers that scheduling adds to the live ones before there is an order. If these and the
/// live registers together do not reduce the occupancy, values stay in general registers.
const ADDED: u32 = 16;
/// The maximum number of nested operations for one value that the uniform datapath computes.
const DEEPEST: u32 = 4;
/// The maximum number of carries between uniform operations of one block; all may be live at once.
const CARRIES: usize = 6;

/// Moves values that change from iteration to iteration: see [`carried`].
pub fn run_on_carried(func: &mut Function, context: &Context<'_>) -> Result<Change, CodegenError> {
    if !func.entry {
        return Ok(Change::Nothing);
    }
    let (cfg, loops) = (context.analyses.cfg(func), context.analyses.loops(func));
    if loops.loops.is_empty() {
        return Ok(Change::Nothing);
    }
    let dom = context.analyses.dominators(func);
    let sm = sass::Sm(context.sm.number as u8);
    let certain = Target::nearest(context.sm).filter(|target| target.certain_meetings);
    let mut search = carried::Search {
        func,
        cfg,
        sm,
        common: context.analyses.common(func),
        together: Together::everywhere(func),
        uses: context.analyses.uses(func),
        uniform_branches: certain.is_some() && encodes(sm, &UISETP),
        spare: certain.map(|target| spare(func, target)),
        crowd: OnceCell::new(),
        conditions: FxHashSet::default(),
    };
    // Few functions have such values, and the analysis of where threads are together is expensive.
    if search.run().values.is_empty() {
        return Ok(Change::Nothing);
    }
    search.together = Together::new(func, cfg, dom, context.analyses.divergence(func), certain.is_some());
    let carried = search.run();
    if carried.values.is_empty() {
        return Ok(Change::Nothing);
    }
    (context.checkpoint)();
    let homes = loops.homes(func, dom);
    let ways = Ways {
        of: carried.values.iter().map(|v| (*v, Way::Computed)).collect(),
        carries: carried.carries.iter().map(|v| (*v, true)).collect(),
    };
    let order = cfg.order.clone();
    let mut rewriter = Rewriter::new(func, sm, ways);
    rewriter.homes = homes;
    rewriter.compares = carried.compares;
    rewriter.wanted = carried.inputs;
    for &b in &order {
        for i in 0..rewriter.func.block(b).phis.len() {
            let dst = rewriter.func.block(b).phis[i].dst;
            if carried.values.contains(&dst) {
                let width = rewriter.func.value(dst).width;
                let there = rewriter.func.new_value(File::UR, width);
                rewriter.uniform.insert(dst, there);
                rewriter.func.block_mut(b).phis[i].dst = there;
            }
        }
    }
    order.iter().for_each(|b| rewriter.block(*b));
    order.iter().for_each(|b| rewriter.phis(*b));
    dead_code::remove_dead(func, cfg);
    Ok(Change::Something)
}

/// Any comparison of the uniform datapath.
const UISETP: Op = Op::Uisetp { cmp: ICmp::Eq, sign: Sign::U32, bool_: Bool::And, ex: false };

pub fn run(func: &mut Function, context: &Context<'_>) -> Result<Change, CodegenError> {
    let Some(target) = Target::nearest(context.sm) else { return Ok(Change::Nothing) };
    Ok(Change::of(convert(func, context, spare(func, target), LONG)))
}

/// The number of registers that may be live before there is an order without reducing the occupancy.
fn spare(func: &Function, target: &Target) -> u32 {
    func.free_registers(target).saturating_sub(ADDED)
}

/// The same for all values, even if it does not pay.
#[cfg(test)]
pub(crate) fn run_on_all(func: &mut Function, context: &Context<'_>) -> Result<Change, CodegenError> {
    Ok(Change::of(convert(func, context, 0, 0)))
}

/// Returns whether any value is converted. Considers values that live for `long` points at which more than `free` general
/// registers are live, values that are [`needed`] in uniform registers, and 64-bit products and selections that are read
/// in loops.
fn convert(func: &mut Function, context: &Context<'_>, free: u32, long: u64) -> bool {
    // The callers of a function keep their values in uniform registers.
    if !func.entry {
        return false;
    }
    let cfg = context.analyses.cfg(func);
    let common = context.analyses.common(func);
    let could = |v: &Value| func.value(*v).file == File::R && func.value(*v).width <= 2 && common.is(*v);
    let mut candidates: Vec<(Value, BlockId)> = Vec::new();
    for &b in &cfg.order {
        let results = func.block(b).insts.iter().flat_map(Inst::defs);
        candidates.extend(results.filter(|v| could(v) && func.value(*v).pin.is_none()).map(|v| (v, b)));
    }
    if candidates.is_empty() {
        return false;
    }
    let sm = sass::Sm(context.sm.number as u8);
    let crowd = Crowd::new(func, cfg, free);
    let needed = match Target::nearest(context.sm) {
        Some(target) => needed(func, cfg, target, could),
        None => FxHashSet::default(),
    };
    let length = |v: Value| crowd.live.of(v).iter().map(|ranges| ranges.length()).max().unwrap_or(0);
    let loops = context.analyses.loops(func);
    let of_loops = steps_and_bounds(func, cfg, loops);
    let pays =
        |v: &Value| needed.contains(v) || of_loops.contains(v) || (length(*v) >= long && crowd.has(*v));
    candidates.retain(|(v, _)| pays(v));
    if candidates.is_empty() {
        return false;
    }
    let mut choice = Choice {
        func,
        cfg,
        loops,
        sm,
        readers: FxHashMap::default(),
        chosen: vec![false; func.values.len()],
    };
    choice.find_readers(&candidates);
    let mut left = MOST;
    // Users come first, so that values which only they read need not be kept.
    for &(v, home) in candidates.iter().rev() {
        let width = u32::from(func.value(v).width);
        if left >= width && choice.pays(v, home) {
            choice.chosen[v.index()] = true;
            left -= width;
        }
    }
    let chosen = choice.chosen;
    if !chosen.contains(&true) {
        return false;
    }
    (context.checkpoint)();
    let all = candidates.iter().map(|(v, _)| *v).filter(|v| chosen[v.index()]);
    let ways = Ways::new(func, context.analyses, sm, (&chosen, all));
    let order = cfg.order.clone();
    let mut rewriter = Rewriter::new(func, sm, ways);
    order.iter().for_each(|b| rewriter.block(*b));
    order.iter().for_each(|b| rewriter.phis(*b));
    // Comparisons that only the uniform datapath reads.
    dead_code::remove_dead(func, cfg);
    true
}

/// The 64-bit products and the selections that a loop reads in which they are not computed.
fn steps_and_bounds(func: &Function, cfg: &Cfg, loops: &Loops) -> FxHashSet<Value> {
    let mut depths: FxHashMap<Value, u32> = FxHashMap::default();
    for &b in &cfg.order {
        for inst in &func.block(b).insts {
            let is_product = matches!(inst.op, Op::ImadWide { .. }) && inst.srcs[2] == Src::ZERO;
            if is_product || inst.op == Op::Sel {
                depths.extend(inst.defs().map(|v| (v, loops.depth(b))));
            }
        }
    }
    let mut found = FxHashSet::default();
    for &b in cfg.order.iter().filter(|b| !depths.is_empty() && loops.depth(**b) > 0) {
        let read = func.block(b).insts.iter().flat_map(Inst::uses).filter_map(Src::value);
        found.extend(read.filter(|v| depths.get(v).is_some_and(|depth| *depth < loops.depth(b))));
    }
    found
}

/// The values among those that `could` move that are needed in uniform registers, and the values from which these are
/// computed: addresses that accesses can read from uniform registers, and operands of asynchronous copies and matrix
/// operations, such as descriptors.
fn needed(func: &Function, cfg: &Cfg, target: &Target, could: impl Fn(&Value) -> bool) -> FxHashSet<Value> {
    let (sm, addresses, descriptors) = (target.generation(), target.uniform_addresses(), target.clusters);
    let mut found: FxHashSet<Value> = FxHashSet::default();
    let moved = |inst: &Inst| inst.srcs.first().filter(|_| inst.op == Op::R2ur).and_then(Src::value);
    // Operands are defined before their users, except those of phis.
    for inst in cfg.order.iter().rev().flat_map(|b| func.block(*b).insts.iter().rev()) {
        let value = moved(inst).filter(|_| descriptors).or(address(inst).filter(|_| addresses));
        found.extend(value.filter(|v| could(v) && takes_as(func, sm, inst, *v)));
        if inst.defs().any(|v| found.contains(&v)) {
            found.extend(inst.srcs.iter().filter_map(Src::value).filter(&could));
        }
    }
    found
}

/// The value that is the address of an access of global or generic memory.
fn address(inst: &Inst) -> Option<Value> {
    let slot = signature(&inst.op).srcs.first().copied()?;
    inst.srcs.first().filter(|_| slot.at == At::Address)?.value()
}

/// The points where more general registers are live than are free of charge.
struct Crowd {
    live: Liveness,
    /// Ascending.
    points: Vec<Point>,
}

impl Crowd {
    fn new(func: &Function, cfg: &Cfg, free: u32) -> Crowd {
        let live = Liveness::compute(func, cfg);
        let pressure = live.pressure(func, File::R);
        let points = (0..).zip(&pressure).filter(|(_, lanes)| u32::from(**lanes) > free);
        Crowd { points: points.map(|(point, _)| point).collect(), live }
    }

    /// Whether the value is live at such a point.
    fn has(&self, v: Value) -> bool {
        let before = |at: Point| self.points.partition_point(|point| *point < at);
        self.live.of(v).iter().flat_map(|ranges| &ranges.0).any(|i| before(i.start) < before(i.end))
    }
}

/// A user of a value.
#[derive(Clone, Copy)]
enum Reader {
    Inst(BlockId, u32),
    /// A phi, at the end of a predecessor.
    Edge(BlockId),
    Term,
}

/// Decides which values move to uniform registers.
struct Choice<'a> {
    func: &'a Function,
    cfg: &'a Cfg,
    loops: &'a Loops,
    sm: sass::Sm,
    readers: FxHashMap<Value, SmallVec<[Reader; 4]>>,
    /// For each value, whether it has been chosen.
    chosen: Vec<bool>,
}

impl Choice<'_> {
    fn find_readers(&mut self, values: &[(Value, BlockId)]) {
        self.readers = values.iter().map(|(v, _)| (*v, SmallVec::new())).collect();
        for &b in &self.cfg.order {
            let block = self.func.block(b);
            let mut note = |src: &Src, reader: Reader| {
                if let Some(readers) = src.value().and_then(|v| self.readers.get_mut(&v)) {
                    readers.push(reader);
                }
            };
            for (from, src) in block.phis.iter().flat_map(|phi| &phi.args) {
                note(src, Reader::Edge(*from));
            }
            for (i, inst) in block.insts.iter().enumerate() {
                inst.uses().for_each(|src| note(src, Reader::Inst(b, i as u32)));
            }
            block.term.operand().into_iter().for_each(|src| note(src, Reader::Term));
        }
    }

    /// Whether most users can read the value from a uniform register, and the copies for the others are executed no
    /// more often than the value's definition.
    fn pays(&self, v: Value, home: BlockId) -> bool {
        let depth = |b: BlockId| self.loops.depth(b);
        let mut taken = 0usize;
        let mut copied: SmallVec<[BlockId; 4]> = SmallVec::new();
        for reader in &self.readers[&v] {
            match *reader {
                Reader::Term => return false,
                Reader::Edge(b) => copied.push(b),
                Reader::Inst(b, i) => {
                    let inst = &self.func.block(b).insts[i as usize];
                    if inst.old.iter().any(|old| old.value() == Some(v)) {
                        return false;
                    }
                    let is_chosen = |dst: Value| self.chosen[dst.index()];
                    if inst.defs().any(is_chosen) || self.takes(inst, v) {
                        taken += 1;
                    } else {
                        copied.push(b);
                    }
                }
            }
        }
        let often = copied.iter().any(|b| depth(*b) > depth(home));
        copied.sort_unstable();
        copied.dedup();
        !often && copied.len() <= taken
    }

    /// Whether the instruction can read `v` from a uniform register without changes.
    fn takes(&self, inst: &Inst, v: Value) -> bool {
        let is_special = |src: &Src| match src.kind {
            SrcKind::Imm(_) | SrcKind::Const(_) => true,
            SrcKind::Value(other) | SrcKind::Part(other, _) => {
                other == v || self.func.value(other).file == File::UR || self.chosen[other.index()]
            }
            _ => false,
        };
        is_only(inst, v, is_special) && takes_as(self.func, self.sm, inst, v)
    }
}

/// Whether `v` is the only operand that needs the position of a uniform register, or a number is loaded for a pair.
fn is_only(inst: &Inst, v: Value, is_special: impl Fn(&Src) -> bool) -> bool {
    let mut others = inst.srcs.iter().filter(|src| src.value() != Some(v) && is_special(src));
    let once = inst.srcs.iter().filter(|src| src.value() == Some(v)).count() == 1;
    once && match (others.next(), others.next()) {
        (None, _) => true,
        (Some(other), None) => {
            matches!(inst.op, Op::ImadWide { .. })
                && matches!(other.kind, SrcKind::Imm(_))
                && inst.srcs[2].kind == SrcKind::Value(v)
        }
        _ => false,
    }
}

/// Whether the instruction has a form that reads its only operand `v` from a uniform register.
fn takes_as(func: &Function, sm: sass::Sm, inst: &Inst, v: Value) -> bool {
    match inst.op {
        // It copies the value for the allocator, which decides about the source itself.
        Op::Fix => return false,
        // The code of ptxas for older targets does not have these forms.
        Op::I2f { .. } | Op::F2i { .. } | Op::ImadHi { .. } | Op::Shf { ty: ShfType::U64, .. } => {
            return false;
        }
        Op::R2ur => return inst.srcs[0].mods == SrcMods::NONE,
        _ => {}
    }
    let mut moved = inst.clone();
    let marker = |width: u8| if width == 2 { SrcKind::Const(MARKER) } else { SrcKind::Imm(u32::MAX) };
    let mut width = 1;
    for src in &mut moved.srcs {
        if src.value() == Some(v) {
            width = if matches!(src.kind, SrcKind::Part(..)) { 1 } else { func.value(v).width };
            src.kind = marker(width);
        }
    }
    exchange(func, &mut moved);
    let Some(i) = moved.srcs.iter().position(|src| src.kind == marker(width)) else { return false };
    let signature = signature(&moved.op);
    signature.srcs.get(i).is_some_and(|slot| {
        slot.file == File::R
            && (slot.width == Width::Exactly(width) || (slot.at == At::Address && width == 2))
            && slot.accept.has(Accept::UR)
            && takes_uniform(sm, &moved.op, i, moved.srcs[i].mods)
    })
}

/// Represents a pair of uniform registers while operands are exchanged.
const MARKER: Const = Const { bank: u8::MAX, offset: 0 };

/// How a value gets into a uniform register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    /// An operation of the uniform datapath replaces the operation.
    Computed,
    /// `R2UR` after the operation.
    Moved,
}

#[derive(Default)]
struct Ways {
    /// The way of each value that goes to a uniform register.
    of: FxHashMap<Value, Way>,
    /// The carries that operations of the uniform datapath read, and whether no other operation reads them.
    carries: FxHashMap<Value, bool>,
}

impl Ways {
    /// `chosen` are the values that should be in uniform registers, by value and in the order of their definitions.
    fn new(
        func: &Function,
        analyses: &Analyses,
        sm: sass::Sm,
        (chosen, all): (&[bool], impl Iterator<Item = Value>),
    ) -> Ways {
        let (cfg, uses, common) = (analyses.cfg(func), analyses.uses(func), analyses.common(func));
        let mut defs: FxHashMap<Value, (BlockId, &Inst)> = FxHashMap::default();
        for &b in &cfg.order {
            for inst in &func.block(b).insts {
                inst.defs().filter(|v| common.is(*v)).for_each(|v| {
                    defs.insert(v, (b, inst));
                });
            }
        }
        let mut in_block: FxHashMap<BlockId, usize> = FxHashMap::default();
        // Loop-carried values already have uniform predicates.
        let taken = func.values.iter().filter(|data| data.file == File::UP).count();
        let free = CARRIES.saturating_sub(taken);
        let loads_constants = !reads_constants(sm);
        let mut plan = Plan { func, sm, uses, defs, chosen, loads_constants, ways: Ways::default() };
        for v in all {
            let mut found = Found::default();
            // One instruction replaces one, while `R2UR` would be an additional instruction. For a selection, it would
            // also have to wait for the comparisons.
            let most = 2 + u32::from(plan.defs.get(&v).is_some_and(|(_, inst)| inst.op == Op::Sel));
            let computed = plan.cost(v, 0, &mut found).is_some_and(|cost| cost <= most);
            let home = plan.defs.get(&v).map_or(BlockId(0), |(b, _)| *b);
            let carries = in_block.entry(home).or_default();
            if computed && *carries + found.carries.len() <= free {
                *carries += found.carries.len();
                for v in found.values {
                    plan.ways.of.insert(v, Way::Computed);
                }
                for v in found.carries {
                    plan.ways.carries.insert(v, plan.uses[v.index()] == 1);
                }
            } else {
                plan.ways.of.insert(v, Way::Moved);
            }
        }
        let mut ways = plan.ways;
        ways.keep_carries_of_kept_sums(func, cfg);
        ways
    }

    /// If a sum is kept for its carry output, its carry input is also read outside the uniform datapath.
    fn keep_carries_of_kept_sums(&mut self, func: &Function, cfg: &Cfg) {
        if self.carries.is_empty() {
            return;
        }
        let blocks = cfg.order.iter().map(|b| func.block(*b));
        for inst in blocks.flat_map(|block| block.insts.iter().rev()) {
            if self.keeps_sum(inst) {
                for carry in inst.uses().filter_map(|src| src.value()) {
                    self.carries.entry(carry).and_modify(|only| *only = false);
                }
            }
        }
    }

    /// Operations outside the uniform datapath read the carry of a sum that is computed in it.
    fn keeps_sum(&self, inst: &Inst) -> bool {
        let [Dst::Value(v), Dst::Value(carry), ..] = inst.dsts[..] else { return false };
        self.of.get(&v) == Some(&Way::Computed) && self.carries.get(&carry) != Some(&true)
    }
}

struct Plan<'a> {
    func: &'a Function,
    sm: sass::Sm,
    /// For each value, the number of its uses.
    uses: &'a [u32],
    /// The definitions of the values that are the same for all threads.
    defs: FxHashMap<Value, (BlockId, &'a Inst)>,
    chosen: &'a [bool],
    /// No other operation reads constants from their bank, so they are loaded in any case.
    loads_constants: bool,
    /// The ways found so far.
    ways: Ways,
}

/// The values that the uniform datapath computes for the sake of one value.
#[derive(Default)]
struct Found {
    values: SmallVec<[Value; 4]>,
    /// Carries of sums, and results of comparisons.
    carries: SmallVec<[Value; 4]>,
    /// Constants and numbers that are loaded.
    loaded: SmallVec<[SrcKind; 4]>,
}

impl Found {
    /// The number of instructions that load a constant or number.
    fn load(&mut self, kind: SrcKind) -> u32 {
        let is_new = !self.loaded.contains(&kind);
        self.loaded.extend(Some(kind).filter(|_| is_new));
        u32::from(is_new)
    }
}

impl Plan<'_> {
    /// The number of instructions for computing `v` in the uniform datapath, minus the instructions that become
    /// unnecessary.
    fn cost(&self, v: Value, depth: u32, found: &mut Found) -> Option<u32> {
        let cost = u32::from(depth == 0) + self.cost_of_operands(v, depth, found)?;
        found.values.push(v);
        Some(cost)
    }

    /// The same without the operation itself.
    fn cost_of_operands(&self, v: Value, depth: u32, found: &mut Found) -> Option<u32> {
        let &(home, inst) = self.defs.get(&v)?;
        let uniform = counterpart(self.func, inst)?;
        if depth >= DEEPEST || !(uniform.op == Op::Pack || encodes(self.sm, &uniform.op)) {
            return None;
        }
        // A general operation reads one constant or number from where it is, and others after a move.
        let is_special = |src: &&Src| matches!(src.kind, SrcKind::Imm(_) | SrcKind::Const(_));
        let moves = (uniform.srcs.iter().filter(is_special).count() as u32).saturating_sub(1);
        let (mut cost, mut loads) = (0, 0);
        for (i, src) in uniform.srcs.iter().enumerate() {
            cost += match src.kind {
                SrcKind::Zero | SrcKind::Pred(_) => 0,
                SrcKind::Imm(_) if takes_number(&uniform.op, i) => 0,
                SrcKind::Const(_) if matches!(uniform.op, Op::Uldc { .. }) => 0,
                SrcKind::Const(_) if self.loads_constants => 0,
                SrcKind::Imm(_) | SrcKind::Const(_) => {
                    loads += found.load(src.kind);
                    0
                }
                SrcKind::Value(s) if self.func.value(s).file == File::P => match uniform.op {
                    Op::Usel | Op::Uisetp { .. } => self.condition(s, (home, inst), depth + 1, found)?,
                    _ => self.carry(s, (home, inst), found)?,
                },
                SrcKind::Value(s) | SrcKind::Part(s, _) if self.func.value(s).file == File::UR => 0,
                SrcKind::Value(s) | SrcKind::Part(s, _) if self.chosen[s.index()] => 0,
                SrcKind::Value(s) if self.uses[s.index()] == 1 => self.cost(s, depth + 1, found)?,
                _ => return None,
            };
        }
        Some(cost + loads.saturating_sub(moves))
    }

    /// The same for a comparison of the same block, by which a value is selected or with which another comparison is
    /// combined.
    fn condition(
        &self,
        holds: Value,
        reader: (BlockId, &Inst),
        depth: u32,
        found: &mut Found,
    ) -> Option<u32> {
        let inst = self.shortly_before(holds, reader)?;
        if !matches!(inst.op, Op::Isetp { .. }) {
            return None;
        }
        if found.carries.contains(&holds) || self.ways.carries.contains_key(&holds) {
            return Some(0);
        }
        let cost = self.cost_of_operands(holds, depth, found)?;
        found.carries.push(holds);
        Some(cost)
    }

    /// The definition of a predicate, if it is in the reader's block and no thread waits between the two. Otherwise other
    /// threads might compute the predicate meanwhile, so it would need a register of its own, of which there are few.
    fn shortly_before(&self, predicate: Value, (home, reader): (BlockId, &Inst)) -> Option<&Inst> {
        let &(b, def) = self.defs.get(&predicate).filter(|(b, _)| *b == home)?;
        let insts = self.func.block(b).insts.iter().skip_while(|inst| !std::ptr::eq(*inst, def));
        let mut between = insts.take_while(|inst| !std::ptr::eq(*inst, reader));
        (!between.any(|inst| facts(&inst.op).waits)).then_some(def)
    }

    /// The same for the carry of a sum that the uniform datapath computes.
    fn carry(&self, carry: Value, reader: (BlockId, &Inst), found: &mut Found) -> Option<u32> {
        let sum = self.shortly_before(carry, reader)?;
        let Some(&Dst::Value(low)) = sum.dsts.first() else { return None };
        let there = found.values.contains(&low) || self.ways.of.get(&low) == Some(&Way::Computed);
        if !there || sum.dsts.get(1) != Some(&Dst::Value(carry)) {
            return None;
        }
        found.carries.push(carry);
        // Other users of the carry still need the sum.
        Some(u32::from(self.uses[carry.index()] > 1))
    }
}

fn takes_number(op: &Op, index: usize) -> bool {
    *op == Op::Pack || signature(op).srcs.get(index).is_some_and(|slot| slot.accept.has(Accept::IMM))
}

/// The operation of the uniform datapath with the same result. It has the sources of the instruction.
fn counterpart(func: &Function, inst: &Inst) -> Option<Inst> {
    // At most one of the first two terms of a sum may be negated.
    let is_sum = matches!(inst.op, Op::Iadd3 { .. });
    let negated = inst.srcs.iter().take(2).filter(|src| src.mods.neg || src.mods.not).count();
    let is_predicate = |src: &Src| src.value().is_some_and(|v| func.value(v).file == File::P);
    let takes_modifiers = |src: &Src| is_sum || is_predicate(src) || src.mods == SrcMods::NONE;
    let plain = inst.guard.is_true()
        && inst.dsts.iter().skip(2).all(|dst| *dst == Dst::Sink)
        && inst.srcs.iter().all(|src| takes_modifiers(src) && src.kind != SrcKind::Undef)
        && negated <= 1;
    let (true, Some(&dst)) = (plain, inst.dsts.first()) else { return None };
    let mut srcs: SmallVec<[Src; 4]> = inst.srcs.iter().copied().collect();
    let number = srcs.iter().position(|src| matches!(src.kind, SrcKind::Imm(_)));
    let op = match inst.op {
        Op::S2r { sr } => Op::S2ur { sr },
        Op::Mov if matches!(srcs[0].kind, SrcKind::Const(_)) => Op::Uldc { wide: false },
        Op::Mov => Op::Umov,
        Op::Ldc { size: size @ (MemSize::B32 | MemSize::B64), bank, offset } if srcs[0] == Src::ZERO => {
            let offset = u16::try_from(offset).ok()?;
            srcs[0] = Src::constant(bank, offset);
            Op::Uldc { wide: size == MemSize::B64 }
        }
        Op::Pack => match whole_of(func, &srcs) {
            Some(constant @ Src { kind: SrcKind::Const(_), .. }) => {
                srcs = smallvec![constant];
                Op::Uldc { wide: true }
            }
            _ => Op::Pack,
        },
        Op::Iadd3 { x } => {
            // The third term may have become one of the first two.
            number.filter(|i| *i == 0 || negated == 0).into_iter().for_each(|i| srcs.swap(i, 1));
            Op::Uiadd3 { x }
        }
        Op::Imad { .. } => {
            number.filter(|i| *i == 0).into_iter().for_each(|i| srcs.swap(i, 1));
            // The low word is the same; ptxas only uses this operation.
            Op::Uimad { sign: Sign::S32 }
        }
        Op::ImadWide { sign, x: false } if inst.dsts[1..].iter().all(|dst| *dst == Dst::Sink) => {
            number.filter(|i| *i == 0).into_iter().for_each(|i| srcs.swap(i, 1));
            Op::UimadWide { sign }
        }
        Op::Lea { shift } => Op::Ulea { shift },
        Op::LeaHi { x, shift } => Op::UleaHi { x, shift },
        Op::LeaHiSx { x, shift } => Op::UleaHiSx { x, shift },
        Op::Lop3 { lut } => Op::Ulop3 { lut },
        Op::Shf { right, wrap, ty, hi } => Op::Ushf { right, wrap, ty, hi },
        Op::Prmt => Op::Uprmt,
        Op::Bmsk { wrap } => Op::Ubmsk { wrap },
        Op::Sel => Op::Usel,
        Op::Isetp { cmp, sign, bool_, ex } if inst.dsts[1..].iter().all(|dst| *dst == Dst::Sink) => {
            let swaps = number == Some(0);
            if swaps {
                srcs.swap(0, 1);
            }
            Op::Uisetp { cmp: if swaps { reversed(cmp) } else { cmp }, sign, bool_, ex }
        }
        Op::Sgxt { wrap, sign } => Op::Usgxt { wrap, sign },
        _ => return None,
    };
    // A pair can only be loaded from where a pair may be.
    let apart = |(slot, src): (&SrcSlot, &Src)| {
        slot.width == Width::Exactly(2)
            && match src.kind {
                SrcKind::Const(c) => !c.offset.is_multiple_of(8),
                SrcKind::Imm(_) => true,
                _ => false,
            }
    };
    if signature(&op).srcs.iter().zip(&srcs).any(apart) {
        return None;
    }
    Some(Inst { srcs, ..Inst::new(op, &[dst], &[], inst.src) })
}

struct Rewriter<'a> {
    func: &'a mut Function,
    sm: sass::Sm,
    ways: Ways,
    /// The uniform register of each value.
    uniform: FxHashMap<Value, Value>,
    /// The uniform predicate of each carry that operations of the uniform datapath read; other operations read the
    /// original predicate.
    carries: FxHashMap<Value, Value>,
    /// Constants and numbers that have been loaded in this block.
    loaded: FxHashMap<(SrcKind, u8), Value>,
    /// Values that have been copied to general registers in this block.
    copies: FxHashMap<Value, Value>,
    code: Vec<Inst>,
    at: BlockId,
    /// For each block, where its constants are loaded instead of in the block itself; may be empty.
    homes: Vec<Option<BlockId>>,
    /// Constants and numbers that have been loaded there.
    hoisted: FxHashMap<(BlockId, SrcKind, u8), Value>,
    /// Comparisons of uniform registers for a branch.
    compares: FxHashSet<Value>,
    /// Values that are needed in uniform registers as well, and those registers.
    wanted: FxHashSet<Value>,
    also: FxHashMap<Value, Value>,
}

impl<'a> Rewriter<'a> {
    fn new(func: &'a mut Function, sm: sass::Sm, ways: Ways) -> Rewriter<'a> {
        Rewriter {
            func,
            sm,
            ways,
            uniform: FxHashMap::default(),
            carries: FxHashMap::default(),
            loaded: FxHashMap::default(),
            copies: FxHashMap::default(),
            code: Vec::new(),
            at: BlockId(0),
            homes: Vec::new(),
            hoisted: FxHashMap::default(),
            compares: FxHashSet::default(),
            wanted: FxHashSet::default(),
            also: FxHashMap::default(),
        }
    }

    fn block(&mut self, b: BlockId) {
        self.at = b;
        self.loaded.clear();
        self.copies.clear();
        let insts = std::mem::take(&mut self.func.block_mut(b).insts);
        self.code = Vec::with_capacity(insts.len() + 8);
        for inst in insts {
            let way = inst.defs().find_map(|v| Some((v, *self.ways.of.get(&v)?)));
            match way {
                Some((v, Way::Computed)) => {
                    self.compute(v, &inst);
                    if self.ways.keeps_sum(&inst) {
                        let mut sum = inst;
                        sum.dsts[0] = Dst::Sink;
                        self.reader(sum);
                    }
                }
                Some((v, Way::Moved)) => {
                    self.reader(inst.clone());
                    self.move_there(v, inst.src);
                }
                None if inst.defs().any(|v| self.compares.contains(&v)) => self.compare(b, &inst),
                None if matches!(inst.op, Op::Isetp { .. })
                    && inst.defs().any(|v| self.ways.carries.contains_key(&v)) =>
                {
                    self.condition(&inst);
                    self.reader(inst);
                }
                None => {
                    let wanted = inst.defs().find(|v| self.wanted.contains(v));
                    self.reader(inst.clone());
                    if let Some(v) = wanted {
                        self.input(v, &inst);
                    }
                }
            }
        }
        self.func.block_mut(b).insts = std::mem::take(&mut self.code);
    }

    /// Adds a comparison of the uniform datapath whose result other operations of it read.
    fn condition(&mut self, inst: &Inst) {
        let (Some(mut uniform), Some(&Dst::Value(holds))) = (counterpart(self.func, inst), inst.dsts.first())
        else {
            return;
        };
        self.operands(&mut uniform);
        let there = self.func.new_value(File::UP, 1);
        uniform.dsts[0] = Dst::Value(there);
        self.code.push(uniform);
        self.carries.insert(holds, there);
    }

    /// Adds a comparison of the uniform datapath for the branch at the end of the block.
    fn compare(&mut self, b: BlockId, inst: &Inst) {
        let Op::Isetp { mut cmp, sign, bool_, .. } = inst.op else { return };
        let mut srcs: SmallVec<[Src; 4]> = inst.srcs.iter().take(2).copied().collect();
        if matches!(srcs[0].kind, SrcKind::Imm(_)) {
            srcs.swap(0, 1);
            cmp = reversed(cmp);
        }
        srcs.push(Src::TRUE);
        let op = Op::Uisetp { cmp, sign, bool_, ex: false };
        let holds = self.func.new_value(File::UP, 1);
        let mut uniform = Inst { srcs, ..Inst::new(op, &[Dst::Value(holds)], &[], inst.src) };
        self.operands(&mut uniform);
        self.code.push(uniform);
        if let Some(cond) = self.func.block_mut(b).term.operand_mut() {
            cond.kind = SrcKind::Value(holds);
        }
    }

    /// Copies a value that is the same for the whole block to uniform registers as well.
    fn input(&mut self, v: Value, inst: &Inst) {
        let is_number = |op: &Op, (i, src): (usize, &Src)| match src.kind {
            SrcKind::Zero | SrcKind::Pred(_) => true,
            SrcKind::Imm(_) => takes_number(op, i),
            SrcKind::Const(_) => matches!(op, Op::Uldc { .. }),
            _ => false,
        };
        let made = counterpart(self.func, inst).filter(|made| {
            made.dsts.first() == Some(&Dst::Value(v))
                && made.op != Op::Pack
                && encodes(self.sm, &made.op)
                && made.srcs.iter().enumerate().all(|src| is_number(&made.op, src))
        });
        match made {
            Some(mut made) => {
                let there = self.func.new_value(File::UR, self.func.value(v).width);
                made.dsts[0] = Dst::Value(there);
                self.code.push(made);
                self.also.insert(v, there);
            }
            None => {
                self.move_there(v, inst.src);
                if let Some(there) = self.uniform.remove(&v) {
                    self.also.insert(v, there);
                }
            }
        }
    }

    /// Copies arguments of phis on the edges.
    fn phis(&mut self, b: BlockId) {
        let mut phis = std::mem::take(&mut self.func.block_mut(b).phis);
        for phi in &mut phis {
            let is_uniform = self.func.value(phi.dst).file == File::UR;
            for (_, src) in &mut phi.args {
                replace(&self.uniform, src);
                if is_uniform {
                    replace(&self.also, src);
                }
            }
        }
        self.func.block_mut(b).phis = phis;
    }

    fn compute(&mut self, v: Value, inst: &Inst) {
        let Some(mut uniform) = counterpart(self.func, inst) else { return };
        self.operands(&mut uniform);
        let result = self.func.new_value(File::UR, self.func.value(v).width);
        uniform.dsts[0] = Dst::Value(result);
        if let Some(&Dst::Value(carry)) = inst.dsts.get(1)
            && self.ways.carries.contains_key(&carry)
        {
            let there = self.func.new_value(File::UP, 1);
            uniform.dsts.push(Dst::Value(there));
            self.carries.insert(carry, there);
        }
        self.code.push(uniform);
        self.uniform.insert(v, result);
    }

    /// Replaces the operands of an operation of the uniform datapath by uniform ones.
    fn operands(&mut self, uniform: &mut Inst) {
        let signature = signature(&uniform.op);
        for i in 0..uniform.srcs.len() {
            let src = &mut uniform.srcs[i];
            replace(&self.uniform, src);
            replace(&self.carries, src);
            replace(&self.also, src);
            let loads = match src.kind {
                SrcKind::Imm(_) => !takes_number(&uniform.op, i),
                SrcKind::Const(_) => !matches!(uniform.op, Op::Uldc { .. }),
                _ => false,
            };
            if loads {
                let wide = signature.srcs.get(i).is_some_and(|slot| slot.width == Width::Exactly(2));
                let mods = src.mods;
                let loaded = self.load(src.kind, if wide { 2 } else { 1 }, uniform.src);
                uniform.srcs[i] = Src { mods, ..loaded };
            }
        }
    }

    /// Loads a number or a constant into uniform registers.
    fn load(&mut self, kind: SrcKind, width: u8, at: SrcId) -> Src {
        let home = self.homes.get(self.at.index()).copied().flatten();
        let known = match home {
            Some(home) => self.hoisted.get(&(home, kind, width)),
            None => self.loaded.get(&(kind, width)),
        };
        if let Some(&v) = known {
            return v.into();
        }
        let v = self.func.new_value(File::UR, width);
        let inst = match kind {
            SrcKind::Const(_) => {
                Inst::new(Op::Uldc { wide: width == 2 }, &[Dst::Value(v)], &[Src::new(kind)], at)
            }
            _ => Inst::new(Op::Umov, &[Dst::Value(v)], &[Src::new(kind)], at),
        };
        match home {
            Some(home) => {
                self.func.block_mut(home).insts.push(inst);
                self.hoisted.insert((home, kind, width), v);
            }
            None => {
                self.code.push(inst);
                self.loaded.insert((kind, width), v);
            }
        }
        v.into()
    }

    fn move_there(&mut self, v: Value, at: SrcId) {
        let width = self.func.value(v).width;
        let parts: SmallVec<[Src; 2]> = (0..width)
            .map(|part| {
                let word = self.func.new_value(File::UR, 1);
                let from = if width == 1 { v.into() } else { Src::part(v, part) };
                self.code.push(Inst::new(Op::R2ur, &[Dst::Value(word)], &[from], at));
                Src::from(word)
            })
            .collect();
        let whole = match parts[..] {
            [Src { kind: SrcKind::Value(word), .. }] => word,
            _ => {
                let pair = self.func.new_value(File::UR, width);
                self.code.push(Inst::new(Op::Pack, &[Dst::Value(pair)], &parts, at));
                pair
            }
        };
        self.uniform.insert(v, whole);
    }

    /// Lets an instruction read values from uniform registers where it can, and from copies otherwise.
    fn reader(&mut self, mut inst: Inst) {
        let reads = |this: &Self, src: &Src| src.value().is_some_and(|v| this.uniform.contains_key(&v));
        if !inst.uses().any(|src| reads(self, src)) {
            self.code.push(inst);
            return;
        }
        if matches!(inst.op, Op::Pack | Op::Copy) {
            inst.srcs.iter_mut().for_each(|src| replace(&self.uniform, src));
            self.code.push(inst);
            return;
        }
        let is_special = |this: &Self, src: &Src| match src.kind {
            SrcKind::Imm(_) | SrcKind::Const(_) => true,
            SrcKind::Value(v) | SrcKind::Part(v, _) => {
                this.func.value(v).file == File::UR || this.uniform.contains_key(&v)
            }
            _ => false,
        };
        if let Some(v) = inst.srcs.iter().find(|src| reads(self, src)).and_then(Src::value)
            && is_only(&inst, v, |src| is_special(self, src))
            && takes_as(self.func, self.sm, &inst, v)
        {
            inst.srcs.iter_mut().for_each(|src| replace(&self.uniform, src));
            if inst.op == Op::R2ur {
                inst = Inst::new(Op::Copy, &inst.dsts, &inst.srcs, inst.src);
            }
        }
        for i in 0..inst.srcs.len() {
            if let Some(v) = inst.srcs[i].value().filter(|v| self.uniform.contains_key(v)) {
                let copy = self.copy(v, inst.src);
                inst.srcs[i].kind = match inst.srcs[i].kind {
                    SrcKind::Part(_, part) => SrcKind::Part(copy, part),
                    _ => SrcKind::Value(copy),
                };
            }
        }
        self.code.push(inst);
    }

    fn copy(&mut self, v: Value, at: SrcId) -> Value {
        if let Some(&copy) = self.copies.get(&v) {
            return copy;
        }
        let from = self.uniform[&v];
        let copy = self.func.new_value(File::R, self.func.value(v).width);
        self.code.push(Inst::new(Op::Copy, &[Dst::Value(copy)], &[from.into()], at));
        self.copies.insert(v, copy);
        copy
    }
}

fn replace(uniform: &FxHashMap<Value, Value>, src: &mut Src) {
    if let Some(&by) = src.value().and_then(|v| uniform.get(&v)) {
        src.kind = match src.kind {
            SrcKind::Part(_, part) => SrcKind::Part(by, part),
            _ => SrcKind::Value(by),
        };
    }
}
