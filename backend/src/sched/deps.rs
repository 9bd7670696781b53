//! The control fields of the finished code: scoreboards and waits, stall counts, and the yield bit.
//!
//! Only the two passes of this file make dependences correct. They accept any order of instructions and make it
//! correct; [`super::list`] only makes the code fast.

use super::facts::InstFacts;
use super::{scoreboards, stalls};
use crate::mach::Code;
use sass::{Class, Inst, Sm};

/// Sets the control words of the whole function; adds `NOP`s where a stall count is not enough.
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
/// A stall count of zero or above eleven requires the bit, and a stall count of one forbids it. In between it is a
/// hint, and ptxas yields after computations whose results are waited for.
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
