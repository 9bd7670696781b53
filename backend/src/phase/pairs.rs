//! Reads the halves of a pair as its parts, from the point where the pair is built, if the halves are defined there
//! too.
//!
//! Before and after: SSA. Copy propagation reads the halves directly, which is best while operations are still being
//! chosen. But then the halves stay live beside the pair, in registers of their own. This phase runs only on targets
//! with operations on pairs.

use crate::CodegenError;
use crate::emit::encodes;
use crate::ori::cfg::Cfg;
use crate::ori::defs::{Defs, for_each_use};
use crate::ori::ir::{BlockId, Function, Inst, Src, SrcKind, SrcMods, Value};
use crate::ori::op::Op;
use crate::phases::{Change, Context};
use rustc_hash::FxHashMap;

/// The pair, and the part of it that replaces a value.
struct Whole {
    value: Value,
    part: u8,
    block: BlockId,
    at: usize,
}

type Wholes = FxHashMap<SrcKind, Whole>;

pub fn run(func: &mut Function, context: &Context<'_>) -> Result<Change, CodegenError> {
    if !encodes(sass::Sm(context.sm.number as u8), &Op::Iadd64) {
        return Ok(Change::Nothing);
    }
    let cfg = context.analyses.cfg(func);
    let mut wholes = made(func, cfg);
    if wholes.is_empty() {
        return Ok(Change::Nothing);
    }
    // A value that is read as a whole stays in its registers.
    for &b in &cfg.order {
        for_each_use(func, b, |src| {
            if let SrcKind::Value(v) = src.kind
                && func.value(v).width > 1
            {
                for part in 0..func.value(v).width {
                    wholes.remove(&SrcKind::Part(v, part));
                }
            }
        });
    }
    for &b in &cfg.order {
        let read = |src: &mut Src, i: usize| {
            if let Some(whole) = wholes.get(&src.kind)
                && (whole.block != b || i > whole.at)
            {
                src.kind = SrcKind::Part(whole.value, whole.part);
            }
        };
        let block = func.block_mut(b);
        for (i, inst) in block.insts.iter_mut().enumerate() {
            inst.uses_mut().for_each(|src| read(src, i));
        }
        if let Some(src) = block.term.operand_mut() {
            read(src, usize::MAX);
        }
        // At the ends of other blocks, or of the pair's block.
        block.phis.iter_mut().flat_map(|phi| &mut phi.args).for_each(|(_, src)| read(src, usize::MAX));
    }
    Ok(Change::Something)
}

/// For each half, the first pair that is built from it at its definition.
fn made(func: &Function, cfg: &Cfg) -> Wholes {
    let defs = Defs::new(func, cfg);
    let mut wholes = Wholes::default();
    let is_pair = |inst: &Inst| inst.op == Op::Pack && inst.srcs.len() == 2 && inst.guard.is_true();
    for &block in &cfg.order {
        for (at, inst) in func.block(block).insts.iter().enumerate().filter(|(_, inst)| is_pair(inst)) {
            let Some(value) = inst.defs().next() else { continue };
            for (part, src) in (0..).zip(&inst.srcs) {
                let is_made_here = |half: Value| {
                    let file = func.value(half).file;
                    file == func.value(value).file && defs.site(half).is_some_and(|(b, _)| b == block)
                };
                if src.mods == SrcMods::NONE && src.value().is_some_and(is_made_here) {
                    wholes.entry(src.kind).or_insert(Whole { value, part, block, at });
                }
            }
        }
    }
    wholes
}
