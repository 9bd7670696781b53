//! Moves loop invariants out of loops if they are worth a register.
//!
//! The producers of PTX have already hoisted all that PTX can express. The remaining invariants are parts of operations
//! that become several instructions, such as the reciprocal in a division by a loop-invariant number. If an expression
//! is computed in every iteration, it is moved as a whole before the outermost loop that changes none of its operands.
//!
//! Before and after: SSA. No block is added: an expression moves to the only block that enters the loop, if there is
//! one.

use crate::CodegenError;
use crate::emit::any_form;
use crate::ori::cfg::Cfg;
use crate::ori::dominators::Tree;
use crate::ori::ir::{BlockId, Function, Inst, Src, Value};
use crate::ori::loops::{LoopId, Loops};
use crate::ori::op::Op;
use crate::ori::signature::facts;
use crate::phase::edit::may_run_elsewhere;
use crate::phases::{Change, Context};
use rustc_hash::{FxHashMap, FxHashSet};
use sass::{Class, Sm};

/// The number of issue slots that an expression must take to be worth the registers of its result.
const WORTH: u32 = 8;
/// The number of registers that the results of a loop's expressions may take.
const MOST: u32 = 8;
/// The number of instructions of an expression that are examined.
const FAR: usize = 32;

pub fn run(func: &mut Function, context: &Context<'_>) -> Result<Change, CodegenError> {
    let loops = context.analyses.loops(func);
    if loops.loops.is_empty() {
        return Ok(Change::Nothing);
    }
    let (cfg, dom) = (context.analyses.cfg(func), context.analyses.dominators(func));
    let sm = Sm(context.sm.number as u8);
    // Inner loops come first: an invariant that leaves one loop may leave the next one too.
    let mut ids: Vec<LoopId> = (0..loops.loops.len() as u32).map(LoopId).collect();
    ids.sort_by_key(|id| std::cmp::Reverse(loops.get(*id).depth));
    let mut change = false;
    for id in ids {
        (context.checkpoint)();
        if let Some(before) = entry(cfg, loops, id) {
            change |= hoist(func, (cfg, dom, loops), sm, id, before);
        }
    }
    Ok(Change::of(change))
}

/// The only block outside that enters the loop, if it is in no loop that does not contain this one.
fn entry(cfg: &Cfg, loops: &Loops, id: LoopId) -> Option<BlockId> {
    let header = loops.get(id).header;
    let mut outside = cfg.preds(header).iter().copied().filter(|pred| !loops.contains(id, *pred));
    let (first, second) = (outside.next()?, outside.next());
    let fits = second.is_none()
        && loops.innermost(first) == loops.get(id).parent
        && !loops.is_irreducible(first)
        && !loops.is_irreducible(header);
    fits.then_some(first)
}

/// An instruction whose operands the loop does not change.
struct Invariant {
    at: (BlockId, usize),
    /// It has a use other than another invariant.
    is_root: bool,
    goes: bool,
}

/// The invariants of a loop, operands before their users.
struct Invariants {
    found: Vec<Invariant>,
    /// For each value, the index of the invariant that defines it.
    makers: FxHashMap<Value, usize>,
}

fn hoist(
    func: &mut Function,
    (cfg, dom, loops): (&Cfg, &Tree, &Loops),
    sm: Sm,
    id: LoopId,
    before: BlockId,
) -> bool {
    let header = loops.get(id).header;
    let mut inside: Vec<BlockId> = loops.blocks_outside(id, |_| false);
    inside.sort_unstable_by_key(|b| cfg.place(*b));
    let latches: Vec<BlockId> =
        cfg.preds(header).iter().copied().filter(|pred| loops.contains(id, *pred)).collect();
    let in_every_turn = |b: BlockId| latches.iter().all(|latch| dom.dominates(b, *latch));
    let mut invariants = Invariants::new(func, &inside, in_every_turn);
    if invariants.found.is_empty() {
        return false;
    }
    invariants.mark_roots(func, cfg);
    invariants.choose(func, sm);
    let mut moved = Vec::new();
    let mut going = invariants.found.iter().filter(|inv| inv.goes).map(|inv| inv.at).peekable();
    for &b in &inside {
        if going.peek().is_none_or(|(at, _)| *at != b) {
            continue;
        }
        let insts = std::mem::take(&mut func.block_mut(b).insts);
        for (i, inst) in insts.into_iter().enumerate() {
            if going.next_if_eq(&(b, i)).is_some() {
                moved.push(inst);
            } else {
                func.block_mut(b).insts.push(inst);
            }
        }
    }
    let change = !moved.is_empty();
    func.block_mut(before).insts.extend(moved);
    change
}

impl Invariants {
    /// The invariants in the blocks `inside` a loop, which are in the order of control flow.
    fn new(func: &Function, inside: &[BlockId], in_every_turn: impl Fn(BlockId) -> bool) -> Invariants {
        let mut made: FxHashSet<Value> = FxHashSet::default();
        for &b in inside {
            let block = func.block(b);
            made.extend(block.phis.iter().map(|phi| phi.dst));
            made.extend(block.insts.iter().flat_map(Inst::defs));
        }
        let mut found: Vec<Invariant> = Vec::new();
        let mut makers: FxHashMap<Value, usize> = FxHashMap::default();
        for &b in inside.iter().filter(|b| in_every_turn(**b)) {
            for (i, inst) in func.block(b).insts.iter().enumerate() {
                let is_known =
                    |src: &Src| src.value().is_none_or(|v| !made.contains(&v) || makers.contains_key(&v));
                let is_movable = facts(&inst.op).is_pure()
                    && may_run_elsewhere(func, inst)
                    && inst.defs().next().is_some()
                    && inst.uses().all(is_known);
                if is_movable {
                    inst.defs().for_each(|v| {
                        makers.insert(v, found.len());
                    });
                    found.push(Invariant { at: (b, i), is_root: false, goes: false });
                }
            }
        }
        Invariants { found, makers }
    }

    fn inst<'f>(&self, func: &'f Function, i: usize) -> &'f Inst {
        let (b, at) = self.found[i].at;
        &func.block(b).insts[at]
    }

    /// The invariants that invariant `i` reads.
    fn operands(&self, func: &Function, i: usize) -> impl Iterator<Item = usize> {
        self.inst(func, i).uses().filter_map(Src::value).filter_map(|v| self.makers.get(&v).copied())
    }

    /// Chooses the expressions that are worth the registers of their results, as long as there are registers.
    fn choose(&mut self, func: &Function, sm: Sm) {
        let mut left = MOST;
        for root in 0..self.found.len() {
            let lanes: u32 = self.inst(func, root).defs().map(|v| u32::from(func.value(v).width)).sum();
            let can_go = self.found[root].is_root && !self.found[root].goes && lanes <= left;
            if can_go && self.is_worth(func, sm, root) {
                left -= lanes;
                self.take(func, root);
            }
        }
    }

    /// Whether the instructions that would leave the loop with an expression take enough issue slots. Only the nearest
    /// operands are counted.
    fn is_worth(&self, func: &Function, sm: Sm, root: usize) -> bool {
        let mut tree = vec![root];
        let (mut next, mut slots) = (0, 0);
        while let Some(&i) = tree.get(next) {
            next += 1;
            slots += cost(sm, self.inst(func, i));
            if slots >= WORTH || tree.len() > FAR {
                break;
            }
            for operand in self.operands(func, i) {
                if !self.found[operand].goes && !tree.contains(&operand) {
                    tree.push(operand);
                }
            }
        }
        slots >= WORTH
    }

    /// Moves the whole expression.
    fn take(&mut self, func: &Function, root: usize) {
        let mut next = vec![root];
        while let Some(i) = next.pop() {
            if !std::mem::replace(&mut self.found[i].goes, true) {
                next.extend(self.operands(func, i));
            }
        }
    }

    /// Marks the invariants that have a use other than an invariant of the loop.
    fn mark_roots(&mut self, func: &Function, cfg: &Cfg) {
        let places: FxHashSet<(BlockId, usize)> = self.found.iter().map(|inv| inv.at).collect();
        for &b in &cfg.order {
            let block = func.block(b);
            let args = block.phis.iter().flat_map(|phi| phi.args.iter().map(|(_, src)| src));
            let others = block.insts.iter().enumerate().filter(|(i, _)| !places.contains(&(b, *i)));
            let read = args.chain(others.flat_map(|(_, inst)| inst.uses())).chain(block.term.operand());
            for v in read.filter_map(Src::value) {
                if let Some(&maker) = self.makers.get(&v) {
                    self.found[maker].is_root = true;
                }
            }
        }
    }
}

/// The cost in issue slots. An instruction of a unit that takes many cycles per warp, or that reads a special register,
/// is worth a register by itself.
fn cost(sm: Sm, inst: &Inst) -> u32 {
    if let Op::Compute { routine } = inst.op {
        return crate::runtime::body(routine).insts.len() as u32;
    }
    if let Op::S2r { .. } = inst.op {
        return 8;
    }
    match any_form(sm, &inst.op).map(|id| sass::form(id).class) {
        None => 0,
        Some(Class::Xu | Class::Fp64 | Class::Fp64Compare) => 8,
        Some(_) => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ori::analyses::Analyses;
    use crate::ori::text;
    use crate::ori::verify::{Stage, verify};

    /// The blocks that contain reciprocals after hoisting.
    fn reciprocals(blocks: &str) -> Vec<u32> {
        let text = format!("entry \"f\" {{\nb0:\n%v0:r = S2R{{sr=0x21}}\n{blocks}\n}}");
        let mut func = text::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        verify(&func, Stage::Built).expect("is valid");
        run(&mut func, &Context::of(80, &Analyses::default())).unwrap();
        verify(&func, Stage::Built).expect("stays valid");
        let is_there =
            |b: &BlockId| func.block(*b).insts.iter().any(|inst| matches!(inst.op, Op::Mufu { .. }));
        func.layout.iter().copied().filter(is_there).map(|b| b.0).collect()
    }

    #[test]
    fn a_reciprocal_of_what_no_loop_changes_leaves_all_loops() {
        let inside = |source: &str| {
            reciprocals(&format!(
                "JUMP b1
                b1:\n%v1:r = phi b0 RZ, b3 %v4\nJUMP b2
                b2:\n%v2:r = phi b1 RZ, b2 %v3\n%v5:r = MUFU.RCP {source}\nSTS %v2, RZ, %v5
                %v3:r, _, _ = IADD3 %v2, 0x4, RZ\n%v6:p, _ = ISETP.LT.AND %v3, 0x40, PT\nBRA %v6, b2, b3
                b3:\n%v4:r, _, _ = IADD3 %v1, 0x4, RZ\n%v7:p, _ = ISETP.LT.AND %v4, 0x40, PT\nBRA %v7, b1, b4
                b4:\nEXIT"
            ))
        };
        assert_eq!(inside("%v0"), [0]);
        assert_eq!(inside("%v1"), [1]);
        assert_eq!(inside("%v2"), [2]);
    }

    #[test]
    fn what_some_iterations_make_stays() {
        let blocks = "JUMP b1
            b1:\n%v1:r = phi b0 RZ, b3 %v4\n%v8:p, _ = ISETP.LT.AND %v1, %v0, PT\nBRA %v8, b2, b3
            b2:\n%v5:r = MUFU.RCP %v0\nSTS %v1, RZ, %v5\nJUMP b3
            b3:\n%v4:r, _, _ = IADD3 %v1, 0x4, RZ\n%v7:p, _ = ISETP.LT.AND %v4, 0x40, PT\nBRA %v7, b1, b4
            b4:\nEXIT";
        assert_eq!(reciprocals(blocks), [2]);
    }

    /// The block before the loop belongs to another loop.
    #[test]
    fn nothing_goes_into_the_loop_before() {
        let blocks = "JUMP b1
            b1:\n%v1:r = phi b0 RZ, b1 %v2\n%v2:r, _, _ = IADD3 %v1, 0x4, RZ\n%v3:p, _ = ISETP.LT.AND %v2, 0x40, PT\nBRA %v3, b1, b2
            b2:\n%v4:r = phi b1 RZ, b2 %v5\n%v6:r = MUFU.RCP %v0\nSTS %v4, RZ, %v6
            %v5:r, _, _ = IADD3 %v4, 0x4, RZ\n%v7:p, _ = ISETP.LT.AND %v5, 0x40, PT\nBRA %v7, b2, b3
            b3:\nEXIT";
        assert_eq!(reciprocals(blocks), [2]);
    }
}
