//! Why a function needs its registers and its time, as data for editors: where most registers are live and which values
//! those are, which values were spilled, what limits each loop, and why loops were not unrolled.

mod loops;
mod pressure;

use crate::copies::Unrolled;
use crate::input::SrcId;
use sass::rate::Pipe;
use std::fmt;

pub(crate) use loops::loops;
pub(crate) use pressure::pressure;

/// Explains the registers, spills and loops of a function. Statements are those of the input.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Explanation {
    /// `None` if no general register is ever live.
    pub peak: Option<Peak>,
    /// In the order of their statements.
    pub spilled: Vec<Spilled>,
    /// The innermost loops of the machine code, in its order.
    pub loops: Vec<Loop>,
    /// The loops of which several iterations became one, with the branch that ends or repeats an iteration.
    pub unrolled: Vec<Unrolled>,
    /// The loops that were not unrolled, with the branch that ends or repeats an iteration, and the reason.
    pub kept: Vec<(SrcId, Kept)>,
}

/// The point at which most general registers are live.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Peak {
    /// The statement of the instruction before which they are live.
    pub at: SrcId,
    /// The values that are live there, the largest first.
    pub live: Vec<Live>,
}

/// Live values of one statement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Live {
    /// The statement that computes them. Several copies of an unrolled loop may.
    pub of: SrcId,
    /// Their number of registers.
    pub registers: u32,
}

/// Values of one statement that are in memory for a part of their life.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Spilled {
    /// The statement that computes them.
    pub of: SrcId,
    /// Their number of registers.
    pub registers: u32,
    /// The statement during their life before which most registers would be live without spills.
    pub at: SrcId,
    /// The number of registers that would be live there.
    pub needed: u32,
    /// The number of registers that values may have.
    pub available: u32,
}

/// An innermost loop of the machine code.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Loop {
    /// The statement of the branch back to its start.
    pub branch: SrcId,
    /// The number of its machine instructions.
    pub instructions: u32,
    /// The cycles that an iteration takes if a single warp runs, executes all instructions, and finds data in the
    /// second-level cache.
    pub cycles: u32,
    /// For what it waits in these cycles, the longest waits first.
    pub waits: Vec<Wait>,
    /// What limits the iterations of many warps: the most used unit, and for how many cycles an iteration uses it.
    pub busiest: (Unit, u32),
    /// The loop calls functions, whose time is not counted.
    pub calls: bool,
}

/// A wait for an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wait {
    /// The statement whose result, operands or unit are waited for.
    pub of: SrcId,
    /// The statement that waits longest.
    pub at: SrcId,
    pub cycles: u32,
}

/// What instructions of several warps compete for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// A partition issues one instruction per cycle.
    Issue,
    Pipe(Pipe),
    /// Shared memory and the first-level cache.
    Memory,
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unit::Issue => "issue slots",
            Unit::Memory => "shared memory and the first-level cache",
            Unit::Pipe(Pipe::Fma | Pipe::Heavy) => "the multiply-add pipe",
            Unit::Pipe(Pipe::Alu) => "the integer and logic pipe",
            Unit::Pipe(Pipe::Shift) => "the shift pipe",
            Unit::Pipe(Pipe::Half) => "the half-precision pipe",
            Unit::Pipe(Pipe::Fp64 | Pipe::SharedFp64) => "the double-precision pipe",
            Unit::Pipe(Pipe::Xu) => "the pipe of special functions and conversions",
            Unit::Pipe(Pipe::Uniform) => "the uniform datapath",
            Unit::Pipe(Pipe::Constant) => "the constant cache",
            Unit::Pipe(Pipe::Tensor) => "the tensor cores",
            Unit::Pipe(Pipe::System) => "the pipe of system registers",
        })
    }
}

/// Why a loop was not unrolled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kept {
    /// `.pragma "nounroll"` forbids it.
    Pragma,
    /// It contains a loop that was not replaced by straight-line code.
    Outer,
    /// It has exits besides a test at its end.
    Exits,
    /// The statement contains a call, a fence or a wait, and is not copied.
    NotCopied(SrcId),
    /// Threads execute the statement together, but not in every iteration.
    Together(SrcId),
    /// The number of iterations is unknown before the loop: its test does not compare a variable with constant step
    /// with a limit that stays the same.
    Uncounted,
    /// The test compares the variable before its step. The compiler unrolls such a loop only if the number of
    /// iterations is a constant.
    TestsBeforeStep,
    /// An iteration has a higher cost than the maximum for a loop with an unknown number of iterations: unrolling
    /// would save only a small part of it.
    Cost { cost: u32, most: u32 },
    /// The number of iterations is unknown, and the loop has a branch that depends on another one.
    Nested,
    /// Threads of a warp may leave it in different iterations, but execute operations together or update memory.
    Apart,
    /// The number of iterations is known, but straight-line code of all of them would be too long for what it saves, and
    /// an iteration has several blocks or is too long for doing several at a time.
    Long { iterations: u32 },
    /// The function would become too long.
    Growth,
}

impl fmt::Display for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kept::Pragma => f.write_str("`.pragma \"nounroll\"` forbids it"),
            Kept::Outer => f.write_str("it contains a loop"),
            Kept::Exits => f.write_str("it has exits besides a test at its end"),
            Kept::NotCopied(_) => f.write_str("a statement with a call, a fence or a wait is not copied"),
            Kept::Together(_) => {
                f.write_str("threads execute a statement together, but not in every iteration")
            }
            Kept::Uncounted => f.write_str(
                "its test does not compare a variable with constant step with a limit that stays the same",
            ),
            Kept::TestsBeforeStep => f.write_str(
                "the number of iterations is not constant, and the test compares the variable before its step",
            ),
            Kept::Cost { cost, most } => {
                write!(f, "an iteration costs {cost} operations; at most {most} are unrolled")
            }
            Kept::Nested => {
                f.write_str("the number of iterations is not constant, and it contains nested branches")
            }
            Kept::Apart => f.write_str(
                "threads may leave it in different iterations, but execute operations together or update memory",
            ),
            Kept::Long { iterations } => {
                write!(f, "its {iterations} iterations would be too long for what is saved")
            }
            Kept::Growth => f.write_str("the function would become too long"),
        }
    }
}

impl Kept {
    /// The statement that is the reason.
    pub fn statement(self) -> Option<SrcId> {
        match self {
            Kept::NotCopied(at) | Kept::Together(at) => Some(at),
            _ => None,
        }
    }
}

impl Explanation {
    /// Replaces every statement.
    pub(crate) fn map(&mut self, to: &dyn Fn(SrcId) -> SrcId) {
        let each = |of: &mut SrcId| *of = to(*of);
        if let Some(peak) = &mut self.peak {
            each(&mut peak.at);
            peak.live.iter_mut().for_each(|live| each(&mut live.of));
            peak.live = united(std::mem::take(&mut peak.live));
        }
        for spilled in &mut self.spilled {
            each(&mut spilled.of);
            each(&mut spilled.at);
        }
        for one in &mut self.loops {
            each(&mut one.branch);
            for wait in &mut one.waits {
                each(&mut wait.of);
                each(&mut wait.at);
            }
        }
        self.unrolled.iter_mut().for_each(|one| each(&mut one.branch));
        for (branch, why) in &mut self.kept {
            each(branch);
            if let Kept::NotCopied(at) | Kept::Together(at) = why {
                each(at);
            }
        }
    }
}

/// One entry for each statement, the largest first.
fn united(mut all: Vec<Live>) -> Vec<Live> {
    all.sort_unstable_by_key(|live| live.of);
    all.dedup_by(|next, first| {
        let same = next.of == first.of;
        first.registers += if same { next.registers } else { 0 };
        same
    });
    all.sort_by_key(|live| std::cmp::Reverse(live.registers));
    all
}
