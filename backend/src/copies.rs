//! Numbers for the copies of statements that loop unrolling creates.
//!
//! In a function with `n` statements, copy `c` of statement `s` has the [`SrcId`] `c * n + s`; copy 0 is the statement
//! itself. So phases that only pass on a statement's number also pass on its copy number. [`Unrolled`] describes the
//! order of the copied iterations of a loop.

use crate::input::{Function, SrcId};

/// The numbering of statement copies in a function: the number of its statements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Statements(u32);

impl Default for Statements {
    /// A function without copies.
    fn default() -> Statements {
        Statements(u32::MAX)
    }
}

impl Statements {
    /// The numbering for a function with `count` statements. An empty function counts as one statement, because numbers
    /// are divided by the count.
    pub fn new(count: u32) -> Statements {
        Statements(count.max(1))
    }

    pub fn of(function: &Function) -> Statements {
        let numbers = function.instrs().map(|instr| instr.src.0);
        Statements::new(numbers.max().map_or(0, |last| last.saturating_add(1)))
    }

    /// The statement of the input.
    pub fn original(self, src: SrcId) -> SrcId {
        SrcId(src.0 % self.0)
    }

    /// The copy number.
    pub fn copy_number(self, src: SrcId) -> u32 {
        src.0 / self.0
    }

    /// The number of `src` in an iteration of a loop, in which each statement had at most `copies` copies before.
    pub fn in_iteration(self, src: SrcId, iteration: u32, copies: u32) -> SrcId {
        SrcId(src.0.wrapping_add(iteration.wrapping_mul(copies).wrapping_mul(self.0)))
    }

    /// Whether this number of copies can be represented.
    pub fn allow(self, copies: u32) -> bool {
        self.0.checked_mul(copies).is_some()
    }
}

/// A loop whose iterations were copied. The copies are numbered in the order of `pieces`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unrolled {
    /// The branch that leaves or repeats the loop. In the result, only the last copy in each piece is such a
    /// branch, and only in the last piece if the trip count is known.
    pub branch: SrcId,
    /// The maximum number of copies of a statement before the loop was copied.
    pub copies: u32,
    /// The pieces in the order of control flow.
    pub pieces: Vec<Piece>,
    /// The trip count is known, so every piece is executed. Otherwise, if there are several, each may be skipped.
    pub known: bool,
    /// The round in which the loop was found. All loops of a round are found in the control flow that results from the
    /// rounds before.
    pub round: u32,
    /// The number of statements that were known to be never executed before the loop was copied.
    pub never: usize,
}

/// Some consecutive iterations of a loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    pub iterations: u32,
    /// The last iteration may branch back to the first.
    pub repeats: bool,
}

impl Unrolled {
    /// The iterations in all pieces.
    pub fn iterations(&self) -> u32 {
        self.pieces.iter().map(|piece| piece.iterations).sum()
    }
}
