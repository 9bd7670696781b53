//! The control fields of finished code: scoreboards and waits, stall counts, and the yield bit.
//!
//! Correctness of dependences rests on this file's two passes alone. They need no particular order of the
//! instructions and make any order right; [`super::list`] only makes it fast.

use super::facts::InstFacts;
use super::{scoreboards, stalls};
use crate::mach::Code;
use sass::{Class, Inst, Sm};

/// Fills in the control words of the whole function; adds `NOP`s where a stall count does not reach.
pub(super) fn assign(code: &mut Code, facts: &[Vec<InstFacts>], checkpoint: &dyn Fn()) {
    let sm = code.sm;
    scoreboards::assign(code, facts, checkpoint);
    stalls::assign(code, facts, checkpoint);
    for inst in code.blocks.iter_mut().flat_map(|b| &mut b.insts) {
        inst.inst.control.yield_ = yields(sm, &inst.inst);
    }
}

/// Whether the scheduler may switch to another warp after the instruction.
///
/// With a stall count of zero or above eleven the bit must say so, with one it must not; in between it is a
/// hint, and ptxas yields after computations that are waited for.
fn yields(sm: Sm, inst: &Inst) -> bool {
    match inst.control.stall {
        0 | 12.. => true,
        1 | 2 => false,
        _ => {
            !inst.is_variable(sm)
                && !inst.reads_late(sm)
                && inst.issue_cycles(sm) == 1
                && inst.class(sm) != Class::Branch
        }
    }
}
