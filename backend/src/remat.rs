//! Rematerialization: recomputes cheap values where they are read, so that they need no register in between.
//!
//! Before and after: SSA form, before allocation. A recomputed value reads constants, special registers that never
//! change, other such values, and values that are in registers anyway.

use crate::ori::cfg::Cfg;
use crate::ori::defs::{Defs, for_each_use};
use crate::ori::dominators;
use crate::ori::ir::{BlockId, Dst, File, Function, Inst, Src, SrcKind, Value};
use crate::ori::loops::Loops;
use crate::ori::op::Op;
use crate::ori::operations::facts;
use crate::phase::dead_code;
use crate::phase::edit::may_run_elsewhere;
use crate::regalloc::live::{Liveness, Point};
use rustc_hash::{FxHashMap, FxHashSet};

/// The maximum number of instructions that recompute one value.
const MOST: usize = 4;
/// The number of instructions for which a value stays in a register after it was computed or read.
const REACH: usize = 32;

/// Recomputes each of `values`, which got no registers, in every block that reads it, if it is cheap, and again if the
/// block reads it much later. Returns whether anything changed.
pub(crate) fn remake(func: &mut Function, values: &[Value]) -> bool {
    let cfg = Cfg::new(func);
    let defs = Defs::new(func, &cfg);
    let without: FxHashSet<Value> = values.iter().copied().collect();
    let mut cookbook = Cookbook { func, defs: &defs, without: &without, recipes: FxHashMap::default() };
    let recipes: FxHashMap<Value, Recipe> =
        values.iter().filter_map(|&v| Some((v, cookbook.recipe(v)?))).collect();
    if recipes.is_empty() {
        return false;
    }
    let live = Liveness::compute(func, &cfg);
    let mut remaker =
        Remaker { func, live: &live, recipes: &recipes, near: FxHashMap::default(), changed: false };
    for &b in &cfg.order {
        remaker.block(b, &cfg);
    }
    let changed = remaker.changed;
    if changed {
        dead_code::remove_dead(func, &cfg);
    }
    changed
}

fn registers(func: &Function, values: &[Value]) -> u32 {
    values.iter().map(|v| u32::from(func.value(*v).width)).sum()
}

/// Cheap values that are live through a block that does not read them, in which more than `most` general registers are
/// live.
pub(crate) fn crowding(func: &Function, most: u32) -> Vec<Value> {
    relieving(func, most, u32::MAX)
}

/// [`crowding`] values, without which at most `limit` general registers are live. Empty if there are no such values.
pub(crate) fn relieving(func: &Function, most: u32, limit: u32) -> Vec<Value> {
    let cfg = Cfg::new(func);
    let live = Liveness::compute(func, &cfg);
    let pressure = live.pressure(func, File::R);
    let peak = |b: BlockId| {
        let span = live.spans[b.index()];
        let points = (0..func.block(b).insts.len()).map(|i| span.write(i));
        points.max_by_key(|&point| pressure[point as usize])
    };
    let peaks = cfg.order.iter().filter_map(|&b| Some((b, peak(b)?)));
    let mut peaks: Vec<(BlockId, Point)> =
        peaks.filter(|(_, peak)| u32::from(pressure[*peak as usize]) > most).collect();
    if peaks.is_empty() {
        return Vec::new();
    }
    peaks.sort_unstable_by_key(|(_, peak)| *peak);
    let mut present: Vec<Vec<Value>> = vec![Vec::new(); peaks.len()];
    for v in (0..func.values.len() as u32).map(Value).filter(|v| func.value(*v).file == File::R) {
        for interval in live.of(v).iter().flat_map(|ranges| &ranges.0) {
            let first = peaks.partition_point(|(_, peak)| *peak < interval.start);
            let within = peaks[first..].iter().take_while(|(_, peak)| *peak < interval.end);
            for (_, present) in within.zip(&mut present[first..]) {
                // Lanes of a value are often live at the same points.
                if present.last() != Some(&v) {
                    present.push(v);
                }
            }
        }
    }
    let defs = Defs::new(func, &cfg);
    let nothing = FxHashSet::default();
    let mut cookbook = Cookbook { func, defs: &defs, without: &nothing, recipes: FxHashMap::default() };
    let mut values = Vec::new();
    for ((b, peak), present) in peaks.into_iter().zip(present) {
        let mut read: FxHashSet<Value> = FxHashSet::default();
        for_each_use(func, b, |src| read.extend(src.value()));
        let idle = present.into_iter().filter(|v| !read.contains(v) && cookbook.is_cheap(*v));
        let idle: Vec<Value> = idle.collect();
        if u32::from(pressure[peak as usize]) > limit.saturating_add(registers(func, &idle)) {
            return Vec::new();
        }
        values.extend(idle);
    }
    values.sort_unstable();
    values.dedup();
    values
}

/// Those of [`crowding`] that no loop reads unless it also computes them: to recompute them adds nothing to any loop. Empty
/// if they have fewer than `enough` registers.
pub(crate) fn idle(func: &Function, most: u32, enough: u32) -> Vec<Value> {
    let mut values = crowding(func, most);
    let is_enough = |values: &[Value]| registers(func, values) >= enough.max(1);
    if !is_enough(&values) {
        return Vec::new();
    }
    let cfg = Cfg::new(func);
    let loops = Loops::new(func, &cfg, &dominators::dominators(&cfg, func));
    let defs = Defs::new(func, &cfg);
    let mut read_in_loops: FxHashSet<Value> = FxHashSet::default();
    for &b in &cfg.order {
        let is_deeper = |v: &Value| defs.site(*v).is_some_and(|(home, _)| loops.depth(b) > loops.depth(home));
        for_each_use(func, b, |src| read_in_loops.extend(src.value().filter(is_deeper)));
    }
    values.retain(|v| !read_in_loops.contains(v));
    if is_enough(&values) { values } else { Vec::new() }
}

/// How a value is computed.
#[derive(Clone, Default)]
struct Recipe {
    /// The instructions in order; the last one defines the value.
    steps: Vec<Inst>,
    /// The values that the steps read but do not define.
    reads: Vec<Value>,
}

struct Cookbook<'a> {
    func: &'a Function,
    defs: &'a Defs,
    /// Values that may not be read.
    without: &'a FxHashSet<Value>,
    /// `None` for values that are not cheap.
    recipes: FxHashMap<Value, Option<Recipe>>,
}

impl Cookbook<'_> {
    fn recipe(&mut self, v: Value) -> Option<Recipe> {
        if let Some(known) = self.recipes.get(&v) {
            return known.clone();
        }
        let recipe = self.find(v);
        self.recipes.insert(v, recipe.clone());
        recipe
    }

    fn is_cheap(&mut self, v: Value) -> bool {
        match self.recipes.get(&v) {
            Some(known) => known.is_some(),
            None => self.recipe(v).is_some(),
        }
    }

    fn find(&mut self, v: Value) -> Option<Recipe> {
        let inst = self.defs.inst(self.func, v)?;
        let facts = facts(&inst.op);
        let is_cheap = facts.is_pure() && !facts.waits && may_run_elsewhere(self.func, inst);
        if !is_cheap {
            return None;
        }
        let mut recipe = Recipe::default();
        for source in inst.srcs.iter().filter_map(Src::value) {
            match self.recipe(source) {
                Some(of_source) if of_source.reads.is_empty() => {
                    for step in of_source.steps {
                        if !recipe.steps.contains(&step) {
                            recipe.steps.push(step);
                        }
                    }
                }
                _ if self.without.contains(&source) || self.func.value(source).pin.is_some() => return None,
                _ => recipe.reads.push(source),
            }
        }
        recipe.steps.push(inst.clone());
        let length = recipe.steps.iter().filter(|step| !matches!(step.op, Op::Pack | Op::Copy)).count();
        (length <= MOST).then_some(recipe)
    }
}

struct Remaker<'a> {
    func: &'a mut Function,
    /// The liveness before the change.
    live: &'a Liveness,
    recipes: &'a FxHashMap<Value, Recipe>,
    /// Values that the block has recomputed: the new value, and the instruction that last read it.
    near: FxHashMap<Value, (Value, usize)>,
    changed: bool,
}

impl Remaker<'_> {
    fn block(&mut self, b: BlockId, cfg: &Cfg) {
        self.near.clear();
        let span = self.live.spans[b.index()];
        let insts = std::mem::take(&mut self.func.block_mut(b).insts);
        let mut code = Vec::with_capacity(insts.len());
        for (i, mut inst) in insts.into_iter().enumerate() {
            for src in inst.uses_mut() {
                self.replace(src, span.write(i), &mut code);
            }
            for v in inst.defs().filter(|v| self.recipes.contains_key(v)) {
                self.near.insert(v, (v, code.len()));
            }
            code.push(inst);
        }
        let mut term = self.func.block(b).term.clone();
        let end = span.end() - 1;
        if let Some(src) = term.operand_mut() {
            self.replace(src, end, &mut code);
        }
        for to in term.successors().into_iter().filter(|to| cfg.is_reached(*to)) {
            let mut phis = std::mem::take(&mut self.func.block_mut(to).phis);
            for (_, src) in phis.iter_mut().flat_map(|phi| &mut phi.args).filter(|(from, _)| *from == b) {
                self.replace(src, end, &mut code);
            }
            self.func.block_mut(to).phis = phis;
        }
        let block = self.func.block_mut(b);
        (block.insts, block.term) = (code, term);
    }

    /// Lets an operand read a value that was recomputed nearby. All other values that the recomputation reads must be
    /// live after a given point.
    fn replace(&mut self, src: &mut Src, after: Point, code: &mut Vec<Inst>) {
        let Some((v, recipe)) = src.value().and_then(|v| Some((v, self.recipes.get(&v)?))) else { return };
        let copy = match self.find(v, code.len()) {
            Some(copy) => copy,
            None if recipe.reads.iter().all(|&read| self.live.live_at(read, after)) => {
                self.make(v, recipe, code)
            }
            None => return,
        };
        read(src, copy);
    }

    /// The recomputed value, if it was read recently.
    fn find(&mut self, v: Value, place: usize) -> Option<Value> {
        let (copy, used) = self.near.get_mut(&v)?;
        if place - *used > REACH {
            return None;
        }
        *used = place;
        Some(*copy)
    }

    fn make(&mut self, v: Value, recipe: &Recipe, code: &mut Vec<Inst>) -> Value {
        self.changed = true;
        for step in &recipe.steps {
            if step.defs().all(|v| self.find(v, code.len()).is_some()) {
                continue;
            }
            let mut inst = step.clone();
            for src in &mut inst.srcs {
                if let Some(copy) = src.value().and_then(|v| self.find(v, code.len())) {
                    read(src, copy);
                }
            }
            for dst in &mut inst.dsts {
                if let Dst::Value(v) = dst {
                    let data = self.func.value(*v);
                    let copy = self.func.new_value(data.file, data.width);
                    self.near.insert(*v, (copy, code.len()));
                    *v = copy;
                }
            }
            code.push(inst);
        }
        self.near.get(&v).map_or(v, |&(copy, _)| copy)
    }
}

/// Replaces the value of an operand.
fn read(src: &mut Src, value: Value) {
    if let SrcKind::Value(v) | SrcKind::Part(v, _) = &mut src.kind {
        *v = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ori::text;

    /// `b1` needs three registers for what it computes. The loop `b2` reads `%v1`, and `b3` reads `%v2`.
    const CROWDED: &str = "entry \"f\" {
        b0:
          %v0:r = S2R{sr=0x21}
          %v1:r, _, _ = IADD3 R1, 0x10, RZ
          %v2:r, _, _ = IADD3 R1, 0x20, RZ
          %v3:p, _ = ISETP.LT.U32.AND %v0, 0x5, PT
          BRA %v3, b1, b2
        b1:
          %v4:r, _, _ = IADD3 %v0, 0x1, RZ
          %v5:r, _, _ = IADD3 %v0, 0x2, RZ
          %v6:r, _, _ = IADD3 %v4, %v5, %v0
          STS{offset=0x0} RZ, RZ, %v6
          JUMP b2
        b2:
          STL{offset=0x0} %v1, %v0
          %v7:p, _ = ISETP.LT.U32.AND %v0, 0x6, PT
          BRA %v7, b2, b3
        b3:
          STL{offset=0x0} %v2, %v0
          EXIT
        }";

    #[test]
    fn values_that_loops_read_are_not_idle() {
        let func = text::parse(CROWDED).expect("the text parses");
        assert_eq!(crowding(&func, 4), [Value(1), Value(2)]);
        assert_eq!(idle(&func, 4, 1), [Value(2)]);
        assert_eq!(idle(&func, 4, 2), []);
        assert_eq!(idle(&func, 5, 1), []);
    }

    #[test]
    fn values_relieve_a_block_if_the_others_fit() {
        let func = text::parse(CROWDED).expect("the text parses");
        // Five registers are live in `b1`, two of them with cheap values.
        assert_eq!(crowding(&func, 5), []);
        assert_eq!(relieving(&func, 4, 3), [Value(1), Value(2)]);
        assert_eq!(relieving(&func, 4, 2), []);
    }

    #[test]
    fn stack_pointers_that_change_are_not_read_again() {
        let mut func = text::parse(CROWDED).expect("the text parses");
        func.frame.moving = true;
        assert_eq!(crowding(&func, 4), []);
    }
}
