//! Replaces several machine operations by one: multiply-add, shift-add, three-input sums and logic, 64-bit address
//! arithmetic, comparisons with the logic of their results, float signs as operand modifiers, two roundings to halves.
//!
//! Before and after: SSA. One pass in reverse postorder over definitions. An operation is fused with the operations
//! that compute its operands if these have no other uses (or if that costs nothing); operations that are then unused
//! are removed. The rules are grouped by file: [`sums`], [`pairs`], [`logic`], [`floats`], [`extremes`], [`mod@packs`].

mod extremes;
mod floats;
mod halves;
mod logic;
mod packs;
mod pairs;
mod sums;

pub(super) use logic::with_predicate;

use crate::CodegenError;
use crate::ori::alias;
use crate::ori::cfg::Cfg;
use crate::ori::defs::Defs;
use crate::ori::dominators::Tree;
use crate::ori::ir::{BlockId, Dst, Function, Inst, Src, SrcKind, SrcMods, Value};
use crate::ori::loops::Loops;
use crate::ori::memory::effect;
use crate::ori::op::{HalfRead, Op};
use crate::ori::signature::fold_modifiers;
use crate::phase::edit::Replacements;
use crate::phases::{Change, Context};

pub fn run(func: &mut Function, context: &Context<'_>) -> Result<Change, CodegenError> {
    let cfg = context.analyses.cfg(func);
    let tree = context.analyses.dominators(func);
    let mut combiner = Combiner {
        defs: context.analyses.defs(func).clone(),
        uses: context.analyses.uses(func).to_vec(),
        replaced: Replacements::new(func),
        packs: packs(func, cfg),
        tree,
        loops: context.analyses.loops(func),
        sm: sass::Sm(context.sm.number as u8),
        func,
    };
    for (n, &b) in cfg.order.iter().enumerate() {
        if n % 64 == 0 {
            (context.checkpoint)();
        }
        for i in 0..combiner.func.block(b).insts.len() {
            combiner.resolve(b, i);
            combiner.visit(b, i);
        }
        if let Some(src) = combiner.func.block_mut(b).term.operand_mut() {
            *src = combiner.replaced.resolve(*src);
        }
    }
    let Combiner { replaced, func, .. } = combiner;
    replaced.apply(func, cfg);
    Ok(Change::Something)
}

/// For each value that is the first part of a pair, the pair.
fn packs(func: &Function, cfg: &Cfg) -> Vec<Option<Value>> {
    let mut packs = vec![None; func.values.len()];
    for &b in &cfg.order {
        for inst in &func.block(b).insts {
            if inst.op == Op::Pack
                && let ([Dst::Value(pair)], [Src { kind: SrcKind::Value(low), mods: SrcMods::NONE }, _]) =
                    (&inst.dsts[..], &inst.srcs[..])
            {
                packs[low.index()].get_or_insert(*pair);
            }
        }
    }
    packs
}

struct Combiner<'a> {
    func: &'a mut Function,
    defs: Defs,
    /// For each value, the number of its uses.
    uses: Vec<u32>,
    replaced: Replacements,
    packs: Vec<Option<Value>>,
    tree: &'a Tree,
    loops: &'a Loops,
    sm: sass::Sm,
}

impl Combiner<'_> {
    fn inst(&self, b: BlockId, i: usize) -> &Inst {
        &self.func.block(b).insts[i]
    }

    fn resolve(&mut self, b: BlockId, i: usize) {
        if self.replaced.is_empty() {
            return;
        }
        let inst = &mut self.func.block_mut(b).insts[i];
        inst.uses_mut().for_each(|src| *src = self.replaced.resolve(*src));
        fold_modifiers(inst);
    }

    fn visit(&mut self, b: BlockId, i: usize) {
        let inst = self.inst(b, i);
        if !inst.guard.is_true() {
            return;
        }
        match inst.op {
            Op::Pack if inst.srcs.len() == 2 => self.pair(b, i),
            Op::Prmt => self.packed_halves(b, i),
            Op::Iadd3 { x: false } => self.sum(b, i),
            Op::Iadd3 { x: true } => {
                if !self.carried_product(b, i) {
                    self.constants_of_pairs(b, i);
                    self.sum_of_three(b, i);
                }
            }
            Op::Lop3 { .. } | Op::Lop3P { .. } => self.logic(b, i),
            Op::Plop3 { .. } => self.predicate_logic(b, i),
            Op::Isetp { .. } => self.test(b, i),
            Op::Imnmx { .. } => self.extreme(b, i),
            Op::Hadd2 { f32: true, half: HalfRead::Own, .. } => self.widened_half(b, i),
            Op::Fmnmx { .. } => {
                self.float_signs(b, i);
                self.extreme(b, i);
            }
            _ => self.float_signs(b, i),
        }
    }

    fn uses(&self, v: Value) -> u32 {
        self.uses.get(v.index()).copied().unwrap_or(0)
    }

    /// The unguarded operation that defines the operand; with `only`, only if none of its results has another use.
    fn def(&self, src: &Src, only: bool) -> Option<&Inst> {
        let inst = self.defs.of_src(self.func, src)?;
        let lone = !only || (inst.defs().count() == 1 && src.value().is_some_and(|v| self.uses(v) == 1));
        lone.then_some(inst)
    }

    /// Replaces an instruction by `new` and updates the use counts. Removes instructions that become unused,
    /// recursively.
    fn rewrite(&mut self, b: BlockId, i: usize, new: Inst) {
        for src in new.uses() {
            self.count(src, 1);
        }
        for v in new.defs() {
            self.defs.set(v, b, i);
        }
        let old = std::mem::replace(&mut self.func.block_mut(b).insts[i], new);
        self.release(&old);
    }

    fn count(&mut self, src: &Src, change: i32) {
        if let Some(v) = src.value() {
            if self.uses.len() <= v.index() {
                self.uses.resize(v.index() + 1, 0);
            }
            self.uses[v.index()] = self.uses[v.index()].saturating_add_signed(change);
        }
    }

    fn release(&mut self, old: &Inst) {
        let mut work: Vec<Value> = Vec::new();
        for src in old.uses() {
            self.count(src, -1);
            work.extend(src.value());
        }
        while let Some(v) = work.pop() {
            if self.uses(v) > 0 {
                continue;
            }
            let Some((b, i)) = self.defs.site(v) else { continue };
            let inst = self.inst(b, i);
            if !alias::is_removable(&effect(&inst.op))
                || inst.op == Op::Nop
                || inst.defs().any(|d| self.uses(d) > 0)
            {
                continue;
            }
            let dead = Inst::new(Op::Nop, &[], &[], inst.src);
            let dead = std::mem::replace(&mut self.func.block_mut(b).insts[i], dead);
            for src in dead.uses() {
                self.count(src, -1);
                work.extend(src.value());
            }
        }
    }

    /// Replaces `v` by `by` in later instructions.
    fn replace(&mut self, v: Value, by: Src) {
        let moved = self.uses(v);
        self.count(&by, moved as i32);
        self.uses[v.index()] = 0;
        self.replaced.insert(v, by);
    }

    fn new_value(&mut self, file: crate::ori::ir::File, width: u8) -> Value {
        let v = self.func.new_value(file, width);
        self.uses.resize(self.func.values.len(), 0);
        v
    }

    /// The pair that consists of these halves, if it is defined before the end of instruction `i` of `b`.
    fn whole(&self, parts: [Src; 2], b: BlockId, i: usize) -> Option<Src> {
        if let Some(whole) = crate::phase::copy_propagation::whole_of(self.func, &parts) {
            return Some(whole);
        }
        let SrcKind::Value(low) = parts[0].kind else { return None };
        let pair = self.packs.get(low.index()).copied().flatten()?;
        let (at, index) = self.defs.site(pair)?;
        let inst = self.inst(at, index);
        let before = if at == b { index < i } else { self.tree.dominates(at, b) };
        (before && inst.op == Op::Pack && inst.srcs[..] == parts).then(|| pair.into())
    }
}

/// The operands that are not zero.
fn nonzero(srcs: &[Src]) -> impl Iterator<Item = Src> + '_ {
    srcs.iter().copied().filter(|src| src.kind != SrcKind::Zero)
}

/// Whether only the first result is used.
fn single_result(inst: &Inst) -> bool {
    inst.dsts[1..].iter().all(|dst| *dst == Dst::Sink)
}
