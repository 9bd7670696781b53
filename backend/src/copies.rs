//! Names for the copies of statements that loop unrolling makes.
//!
//! In a function with `n` statements, copy `c` of statement `s` is the [`SrcId`] `c * n + s`; copy 0 is the statement itself.
//! So phases that pass statements on pass copies on as well. [`Unrolled`] says how the copied iterations of a loop follow one
//! another.

use crate::input::{Function, SrcId, Stmt};

/// How the copies of a function's statements are numbered: how many statements it has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Statements(u32);

impl Default for Statements {
    /// A function without copies.
    fn default() -> Statements {
        Statements(u32::MAX)
    }
}

impl Statements {
    /// Of a function with `count` statements. An empty function counts as one, since numbers are divided by it.
    pub fn new(count: u32) -> Statements {
        Statements(count.max(1))
    }

    pub fn of(function: &Function) -> Statements {
        let numbers = function.body.iter().filter_map(|stmt| match stmt {
            Stmt::Instr(instr) => Some(instr.src.0),
            Stmt::Label(_) => None,
        });
        Statements::new(numbers.max().map_or(0, |last| last.saturating_add(1)))
    }

    /// The statement of the input.
    pub fn original(self, src: SrcId) -> SrcId {
        SrcId(src.0 % self.0)
    }

    /// Which copy of its statement it is.
    pub fn copy_number(self, src: SrcId) -> u32 {
        src.0 / self.0
    }

    /// The copy of `src` in an iteration of a loop that had at most `copies` of each statement before.
    pub fn in_iteration(self, src: SrcId, iteration: u32, copies: u32) -> SrcId {
        SrcId(src.0.wrapping_add(iteration.wrapping_mul(copies).wrapping_mul(self.0)))
    }

    /// Whether this many copies can be numbered.
    pub fn allow(self, copies: u32) -> bool {
        self.0.checked_mul(copies).is_some()
    }
}

/// A loop whose iterations were copied. The copies are numbered in the order of `pieces`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unrolled {
    /// The branch that leaves the loop or repeats it. Only the last copy in each piece still does.
    pub branch: SrcId,
    /// The most copies of a statement that the loop had before.
    pub copies: u32,
    /// In the order of control flow. Where there are several, each may be skipped.
    pub pieces: Vec<Piece>,
    /// Loops of one round were found in the same control flow: that after the rounds before.
    pub round: u32,
    /// How many statements were known never to execute before the loop was copied.
    pub never: usize,
}

/// Some iterations of a loop, one after the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    pub iterations: u32,
    /// The last one may go back to the first.
    pub repeats: bool,
}

impl Unrolled {
    /// The iterations in all pieces.
    pub fn iterations(&self) -> u32 {
        self.pieces.iter().map(|piece| piece.iterations).sum()
    }
}
