//! Scheduling after allocation: the order of instructions within blocks, then the control fields.
//!
//! Before: blocks of instructions with neutral control words, in an order that is right.
//! After: control words that make the code right on hardware without interlocks.
//! See `docs/scheduling.md`.

mod dag;
mod deps;
pub(crate) mod facts;
mod list;
pub mod pre;
mod scoreboards;
mod stalls;
mod timing;

use crate::mach::Code;
use facts::InstFacts;
use sass::{FormId, Sm};

/// What to do, by optimisation level.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Reorder; otherwise keep the order of emission.
    pub reorder: bool,
}

/// Orders the instructions and sets their control fields.
pub fn schedule(code: &mut Code, options: Options, checkpoint: &dyn Fn()) {
    let sm = code.sm;
    let mut facts: Vec<_> = code.blocks.iter().map(|b| InstFacts::of(sm, &b.insts)).collect();
    if options.reorder {
        for (block, facts) in code.blocks.iter_mut().zip(&mut facts) {
            list::reorder(sm, &mut block.insts, facts, checkpoint);
        }
    }
    deps::assign(code, &facts, checkpoint);
}

fn nop(sm: Sm) -> FormId {
    sass::lookup(sm, "NOP", "").expect("every generation has NOP")
}
