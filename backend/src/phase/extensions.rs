//! Adds the high word of a sign-extended 32-bit value without computing this word: `LEA.HI.X.SX32` in place of a shift
//! and `IADD3.X`.
//!
//! Before and after: SSA. It runs after the choice of uniform registers, because the uniform datapath computes the
//! extension of a uniform value for all threads at once.

use crate::CodegenError;
use crate::ori::defs::Defs;
use crate::ori::ir::{BlockId, Dst, File, Function, Inst, Src, SrcMods, Value};
use crate::ori::op::Op;
use crate::phase::dead_code::remove_dead;
use crate::phase::edit::extended;
use crate::phases::{Change, Context};
use smallvec::SmallVec;
use std::collections::BTreeMap;

/// A sum of high words that can extend one of its terms by itself.
struct Sum {
    block: BlockId,
    index: usize,
    /// The extended value, the other term and the carry.
    srcs: [Src; 3],
}

pub fn run(func: &mut Function, context: &Context<'_>) -> Result<Change, CodegenError> {
    let cfg = context.analyses.cfg(func);
    let defs = context.analyses.defs(func);
    // By the high word of the extension. If both terms are extensions, the sum is in the lists of both.
    let mut sums: BTreeMap<Value, Vec<Sum>> = BTreeMap::new();
    for &block in &cfg.order {
        for (index, inst) in func.block(block).insts.iter().enumerate() {
            for (high, srcs) in extensions(func, defs, inst) {
                sums.entry(high).or_default().push(Sum { block, index, srcs });
            }
        }
    }
    if sums.is_empty() {
        return Ok(Change::Nothing);
    }
    let uses = context.analyses.uses(func);
    // If something else reads the high word, the shift stays and nothing is gained.
    let mut lists: Vec<Vec<Sum>> = sums
        .into_iter()
        .filter(|(high, sums)| uses[high.index()] as usize == sums.len())
        .map(|(_, sums)| sums)
        .collect();
    // More shifts are saved where each has few readers.
    lists.sort_by_key(Vec::len);
    for sums in lists {
        let is_sum = |sum: &Sum| matches!(func.block(sum.block).insts[sum.index].op, Op::Iadd3 { .. });
        if !sums.iter().all(is_sum) {
            continue;
        }
        for Sum { block, index, srcs } in sums {
            let inst = &mut func.block_mut(block).insts[index];
            inst.op = Op::LeaHiSx { x: true, shift: 1 };
            inst.srcs = srcs.into_iter().collect();
            inst.dsts.truncate(1);
        }
    }
    remove_dead(func, cfg);
    Ok(Change::Something)
}

/// If an instruction adds a carry and two words: each term that is the high word of a sign extension, with the sources of
/// the operation that can replace the instruction.
fn extensions(func: &Function, defs: &Defs, inst: &Inst) -> SmallVec<[(Value, [Src; 3]); 2]> {
    let mut found = SmallVec::new();
    let (Op::Iadd3 { x: true }, &[a, b, c, carry, Src::FALSE]) = (inst.op, &inst.srcs[..]) else {
        return found;
    };
    let Some(low) = defs.of_src(func, &carry) else { return found };
    if inst.dsts[1..].iter().any(|dst| *dst != Dst::Sink) {
        return found;
    }
    for [high, other, zero] in [[a, b, c], [a, c, b], [b, a, c], [b, c, a], [c, a, b], [c, b, a]] {
        if zero == Src::ZERO
            && let (Some(high), Some(word)) = (high.value(), extended_register(func, defs, &high))
            // The sum of the low words reads the extended value here anyway.
            && low.srcs.contains(&word)
        {
            found.push((high, [word, other, carry]));
        }
    }
    found
}

/// The value in a register whose sign fills `high`.
fn extended_register(func: &Function, defs: &Defs, high: &Src) -> Option<Src> {
    let is_register = |word: &Src| word.value().is_some_and(|v| func.value(v).file == File::R);
    extended(func, defs, high).filter(|word| is_register(word) && word.mods == SrcMods::NONE)
}
