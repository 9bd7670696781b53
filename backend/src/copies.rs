//! Names for the copies of statements that loop unrolling makes.
//!
//! A copy of a statement is a [`SrcId`] beyond those of the function, so that whatever carries statements along carries
//! copies too: copy `c` of statement `s` of a function with `n` statements has the number `c * n + s`; copy 0 is the
//! statement. [`Unrolled`] says how the copies of a loop's iterations follow one another.

use crate::input::{Function, SrcId, Stmt};

/// The numbers of a function's statements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Statements(u32);

impl Default for Statements {
    /// A function without copies.
    fn default() -> Statements {
        Statements(u32::MAX)
    }
}

impl Statements {
    /// So many statements, one at least.
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

    /// The copy of a statement's copy in the iteration of that index, in a loop that had `copies` of each statement at most.
    pub fn in_iteration(self, src: SrcId, iteration: u32, copies: u32) -> SrcId {
        SrcId(src.0.wrapping_add(iteration.wrapping_mul(copies).wrapping_mul(self.0)))
    }

    /// Whether there are numbers for so many copies.
    pub fn allow(self, copies: u32) -> bool {
        self.0.checked_mul(copies).is_some()
    }
}

/// A loop whose iterations were copied. The copies are numbered in the order of `pieces`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unrolled {
    /// The branch that leaves the loop or repeats it. The copies but the last of each piece go on without it.
    pub branch: SrcId,
    /// How many copies of its statements the loop had before, at most.
    pub copies: u32,
    /// In the order of control flow: each may be passed over if there are several.
    pub pieces: Vec<Piece>,
    /// Loops of one round were found in the same control flow, that which the rounds before left.
    pub round: u32,
    /// How many statements were known before never to execute.
    pub never: usize,
}

/// Some iterations of a loop, one after the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    pub iterations: u32,
    /// Control may go back from the last one to the first.
    pub repeats: bool,
}

impl Unrolled {
    /// The iterations in all pieces.
    pub fn iterations(&self) -> u32 {
        self.pieces.iter().map(|piece| piece.iterations).sum()
    }
}
