//! Loads neighboring words of a constant bank into a pair of uniform registers by one instruction.
//!
//! Legalization loads each word where an operation cannot read it from the bank. Words of an aligned pair that are loaded
//! in one block become the halves of a pair.

use crate::CodegenError;
use crate::ori::cfg::Cfg;
use crate::ori::ir::{BlockId, Dst, File, Function, Inst, Src, SrcKind, Value};
use crate::ori::op::Op;
use crate::phase::edit::Replacements;
use crate::phases::{Change, Context};
use rustc_hash::{FxHashMap, FxHashSet};

pub fn run(func: &mut Function, context: &Context<'_>) -> Result<Change, CodegenError> {
    let cfg = context.analyses.cfg(func);
    let fixed = gathered(func, cfg);
    let mut halves = Replacements::new(func);
    for &b in &cfg.order {
        join(func, b, &fixed, &mut halves);
    }
    halves.apply(func, cfg);
    Ok(Change::of(!halves.is_empty()))
}

/// Values that phis read, which take no halves, and words of groups of registers, which are loaded into the group.
fn gathered(func: &Function, cfg: &Cfg) -> FxHashSet<Value> {
    let blocks = || cfg.order.iter().map(|b| func.block(*b));
    let phis = blocks().flat_map(|block| &block.phis).flat_map(|phi| &phi.args).map(|(_, src)| src);
    let groups = blocks().flat_map(|block| &block.insts);
    let groups = groups.filter(|inst| inst.op == Op::Pack && inst.srcs.len() > 2).flat_map(Inst::uses);
    phis.chain(groups).filter_map(|src| src.value()).collect()
}

/// The bank and offset of a word that the instruction loads, and the value.
fn loaded_word(inst: &Inst) -> Option<((u8, u16), Value)> {
    match (inst.op, &inst.srcs[..], &inst.dsts[..]) {
        (Op::Uldc { wide: false }, [Src { kind: SrcKind::Const(word), .. }], [Dst::Value(v)])
            if inst.guard.is_true() =>
        {
            Some(((word.bank, word.offset), *v))
        }
        _ => None,
    }
}

/// Joins the loads of a block. The pair is loaded where the first of the two words was.
fn join(func: &mut Function, b: BlockId, fixed: &FxHashSet<Value>, halves: &mut Replacements) {
    let mut seen: FxHashMap<(u8, u16), (usize, Value)> = FxHashMap::default();
    let mut pairs: Vec<(usize, usize, Src, [Value; 2])> = Vec::new();
    for (i, inst) in func.block(b).insts.iter().enumerate() {
        let Some(((bank, offset), v)) = loaded_word(inst) else { continue };
        if !offset.is_multiple_of(4) || fixed.contains(&v) || func.value(v).pin.is_some() {
            continue;
        }
        match seen.remove(&(bank, offset ^ 4)) {
            Some((first, other)) => {
                let words = if offset.is_multiple_of(8) { [v, other] } else { [other, v] };
                pairs.push((first, i, Src::constant(bank, offset & !4), words));
            }
            None => {
                seen.insert((bank, offset), (i, v));
            }
        }
    }
    let mut joined: FxHashSet<usize> = FxHashSet::default();
    for (first, second, constant, words) in pairs {
        let pair = func.new_value(File::UR, 2);
        for (word, part) in words.into_iter().zip(0..) {
            halves.insert(word, Src::part(pair, part));
        }
        let insts = &mut func.block_mut(b).insts;
        let at = insts[first].src;
        insts[first] = Inst::new(Op::Uldc { wide: true }, &[Dst::Value(pair)], &[constant], at);
        joined.insert(second);
    }
    let mut at = 0..;
    func.block_mut(b).insts.retain(|_| at.next().is_some_and(|i| !joined.contains(&i)));
}
