//! Forwards what memory holds to the loads that read it, and removes stores to local memory that nothing reads.
//!
//! ptxas does the same for weak accesses of every state space. Local memory gains the most: the variables of unoptimized
//! code, and arrays whose indices unrolling made constant, become registers.
//!
//! - [`places`]: the words that accesses name by addresses that compare, and what each instruction does to them.
//! - [`flow`]: where control flow joins, which words are known on all ways and read later.
//! - [`contents`]: rewrites loads of known bytes, with phis for words that differ.
//! - [`stores`]: removes stores to local memory that are overwritten, or not read, on all ways.
//!
//! A function whose frame nothing reads or writes any more has none.
//!
//! [`crate::ori::alias`] decides which instructions leave a word as it was. Only local memory is known better: what a thread
//! keeps there changes by its own stores alone, unless the address of the frame is used for anything but loads and stores.

mod contents;
mod flow;
mod places;
mod stores;

use crate::CodegenError;
use crate::ori::cfg::Cfg;
use crate::ori::ir::{Function, Inst, Src, SrcKind};
use crate::ori::memory::{Space, memory};
use crate::ori::op::Op;
use crate::phases::Context;
use crate::regalloc::STACK_POINTER;
use places::Places;

pub fn run(func: &mut Function, context: &Context<'_>) -> Result<(), CodegenError> {
    let cfg = context.analyses.cfg(func);
    if let Some(places) = Places::new(func, cfg) {
        (context.checkpoint)();
        contents::forward(func, cfg, &places)?;
        (context.checkpoint)();
    }
    let is_store = |inst: &Inst| matches!(inst.op, Op::Stl { .. });
    let has_stores = cfg.order.iter().any(|b| func.block(*b).insts.iter().any(is_store));
    if has_stores && let Some(places) = Places::new(func, cfg) {
        stores::remove_dead(func, cfg, &places);
    }
    drop_frame(func, cfg);
    Ok(())
}

/// A function whose variables are all values has no frame.
fn drop_frame(func: &mut Function, cfg: &Cfg) {
    let is_frame = |src: &Src| src.kind == SrcKind::Reg(STACK_POINTER);
    let reads = |inst: &Inst| {
        let is_local = memory(&inst.op).is_some_and(|access| access.space == Space::Local);
        is_local || inst.op == Op::FrameTop || inst.op.calls_function() || inst.uses().any(is_frame)
    };
    let has_frame = func.frame.local_bytes > 0 && !func.frame.moving;
    if !has_frame || cfg.order.iter().any(|b| func.block(*b).insts.iter().any(reads)) {
        return;
    }
    (func.frame.local_bytes, func.frame.local_align) = (0, 0);
    // Functions have their caller's stack pointer.
    func.frame.uses_stack &= !func.entry;
    func.facts.locals.fill(None);
}
