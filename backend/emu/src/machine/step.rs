//! A machine instruction as the emulator executes it.

use super::address::Address;
use super::compute::Compute;
use super::facts::Facts;
use super::operand::{Predicate, Source};
use sass::Inst;

/// An instruction with its operands resolved.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) inst: Inst,
    pub(super) what: What,
    pub(super) guard: Predicate,
    /// The guard and the predicates are uniform: all lanes have the same value.
    pub(super) uniform: bool,
    pub(super) uniform_guard: bool,
    /// The lanes in which the instruction may act.
    pub(super) lanes: u32,
    pub(super) sources: [Source; 3],
    pub(super) address: Address,
    /// Pp, Pr, Ps.
    pub(super) predicates: [Predicate; 3],
    pub(super) rd: u8,
    pub(super) pd: u8,
    pub(super) pq: u8,
    pub(super) facts: Facts,
}

/// The kind of an instruction, which decides what executes it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum What {
    /// Operates on registers of a lane or of the warp.
    Compute(Compute),
    Memory(&'static str),
    /// Control flow, and operations on several lanes.
    Sync(&'static str),
    /// Matrix operations of a warp.
    Matrix(&'static str),
    /// Operations on barrier objects, and asynchronous operations.
    Barrier(&'static str),
    Bulk(&'static str),
    Texture(&'static str),
    Warpgroup,
    Tensor(&'static str),
    Unknown,
}

impl Step {
    /// The predicate that says whether a product is added to the accumulator.
    pub(super) fn accumulates(&self) -> Predicate {
        self.predicates[0]
    }
}
