//! Removes loops over threads where only one thread executes the code.
//!
//! Operations of the uniform datapath whose operands may differ between threads are built as a loop: `ELECT` chooses
//! one of the remaining threads, and its values are moved into uniform registers. Programs let only the thread that
//! `elect.sync` chose start copies, so the loop has only one iteration.
//!
//! A predicate is true for at most one thread of the warp if it is the result of `ELECT` for the full mask, or a
//! conjunction with such a result. Then at most one thread executes the code to which a branch on the predicate leads,
//! as long as the code is in the same loops as the branch: threads chosen in different iterations might meet outside of
//! the loop.
//!
//! Several threads that initialize the same barrier with the same count, or invalidate or prefetch the same tensor map, do
//! what one of them does. So if these operands are uniform, the loop has only one iteration, too.
//!
//! Before and after: SSA. The loops become straight-line code when branches are folded.

use crate::CodegenError;
use crate::ori::cfg::Cfg;
use crate::ori::defs::Defs;
use crate::ori::divergence::Divergence;
use crate::ori::ir::{Block, BlockId, Dst, File, Function, Inst, Src, SrcMods, Term, Value};
use crate::ori::op::{Op, lut};
use crate::phase::edit::Replacements;
use crate::phases::{Change, Context};

pub fn run(func: &mut Function, context: &Context<'_>) -> Result<Change, CodegenError> {
    let cfg = context.analyses.cfg(func);
    let elects = |inst: &Inst| inst.op == Op::Elect;
    if !cfg.order.iter().any(|b| func.block(*b).insts.iter().any(elects)) {
        return Ok(Change::Nothing);
    }
    let tree = context.analyses.dominators(func);
    let loops = context.analyses.loops(func);
    let defs = context.analyses.defs(func);
    // Threads chosen in different iterations of a loop might meet after it.
    let same_turn = |at: BlockId, b: BlockId| loops.innermost(at).is_none_or(|id| loops.contains(id, b));
    let mut replaced = Replacements::new(func);
    for (from, begin) in begins(func, cfg, defs, &same_turn) {
        for &b in tree.preorder.iter().filter(|b| tree.dominates(begin, **b) && same_turn(from, **b)) {
            for inst in func.block(b).insts.iter().filter(|inst| inst.op == Op::Elect && inst.guard.is_true())
            {
                if let [Dst::Value(chosen), Dst::Sink] = inst.dsts[..] {
                    replaced.insert(chosen, Src::TRUE);
                }
            }
        }
    }
    for block in cfg.order.iter().map(|b| func.block(*b)) {
        if let Some(chosen) = chosen_to_repeat(block)
            && takes_uniform_values(block, context.analyses.divergence(func))
        {
            replaced.insert(chosen, Src::TRUE);
        }
    }
    replaced.apply(func, cfg);
    Ok(Change::Something)
}

/// The result of `ELECT` in a block whose effects are the same if it is executed again with the same values: it only
/// initializes barriers, or invalidates or prefetches tensor maps.
fn chosen_to_repeat(block: &Block) -> Option<Value> {
    let (elect, others) = block.insts.split_first()?;
    let [Dst::Value(chosen), Dst::Sink] = elect.dsts[..] else { return None };
    let repeats = |inst: &Inst| {
        matches!(inst.op, Op::R2ur | Op::Uldc { .. } | Op::Pack | Op::TensorMap { .. } | Op::SyncsExch { .. })
    };
    (elect.op == Op::Elect && elect.guard.is_true() && others.iter().all(repeats)).then_some(chosen)
}

/// Whether the values that the block moves into uniform registers are the same in all threads.
fn takes_uniform_values(block: &Block, divergence: &Divergence) -> bool {
    let same = |src: &Src| src.value().is_none_or(|v| !divergence.is_divergent(v));
    block.insts.iter().filter(|inst| inst.op == Op::R2ur).flat_map(|inst| &inst.srcs).all(same)
}

/// Branches on such a predicate, and the blocks that only threads with a true predicate reach.
fn begins(
    func: &Function,
    cfg: &Cfg,
    defs: &Defs,
    same_turn: &dyn Fn(BlockId, BlockId) -> bool,
) -> Vec<(BlockId, BlockId)> {
    let chosen = chosen(func, cfg);
    let begin = |&b: &BlockId| {
        let Term::Branch { cond, then, els, .. } = func.block(b).term else { return None };
        let to = if cond.mods.not { els } else { then };
        let cond = Src { mods: SrcMods::NONE, ..cond };
        let here = |at: BlockId| same_turn(at, b);
        let has_one_edge = then != els && cfg.preds(to).len() == 1;
        (has_one_edge && is_of_one(func, defs, &chosen, &here, &cond, DEEPEST)).then_some((b, to))
    };
    cfg.order.iter().filter_map(begin).collect()
}

/// The maximum depth of nested conjunctions that are examined.
const DEEPEST: u32 = 4;

/// The results of `ELECT` for all threads of the warp, and the blocks that define them.
fn chosen(func: &Function, cfg: &Cfg) -> Vec<(Value, BlockId)> {
    let mut found = Vec::new();
    for &b in &cfg.order {
        for pair in func.block(b).insts.windows(2) {
            let [meet, elect] = pair else { continue };
            let is_full = matches!(meet.op, Op::Warpsync { .. })
                && meet.guard.is_true()
                && meet.srcs[..] == [Src::imm(u32::MAX)];
            if is_full && meet.src == elect.src && elect.op == Op::Elect && elect.guard.is_true() {
                found.extend(elect.defs().next().filter(|v| func.value(*v).file == File::P).map(|v| (v, b)));
            }
        }
    }
    found
}

/// Whether the predicate is true for at most one thread. `here`: a value defined in a block belongs to the same
/// iteration of its loops.
fn is_of_one(
    func: &Function,
    defs: &Defs,
    chosen: &[(Value, BlockId)],
    here: &dyn Fn(BlockId) -> bool,
    src: &Src,
    depth: u32,
) -> bool {
    let Some(v) = src.value().filter(|_| src.mods == SrcMods::NONE) else { return false };
    if let Some((_, at)) = chosen.iter().find(|(of, _)| *of == v) {
        return here(*at);
    }
    let Some(inst) = defs.inst(func, v).filter(|inst| depth > 0 && inst.guard.is_true()) else {
        return false;
    };
    let Op::Plop3 { lut, .. } = inst.op else { return false };
    // The first result is true only if this operand is true.
    let implies = |table: u8| lut & !table == 0;
    inst.dsts.first() == Some(&Dst::Value(v))
        && inst
            .srcs
            .iter()
            .zip([lut::A, lut::B, lut::C])
            .any(|(operand, table)| implies(table) && is_of_one(func, defs, chosen, here, operand, depth - 1))
}
