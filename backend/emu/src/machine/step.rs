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
    /// The guard and the predicates are the warp's, and one value serves all lanes.
    pub(super) uniform: bool,
    pub(super) uniform_guard: bool,
    /// The lanes in which it may act.
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

/// What executes an instruction.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum What {
    /// Registers of one lane, or the warp's.
    Compute(Compute),
    Memory(&'static str),
    /// Control flow and what lanes do together.
    Sync(&'static str),
    /// What a warp does with matrices.
    Matrix(&'static str),
    /// Barrier objects, and what goes on beside the threads.
    Barrier(&'static str),
    Bulk(&'static str),
    Texture(&'static str),
    Warpgroup,
    Tensor(&'static str),
    Unknown,
}

impl Step {
    /// Of a product, whether it adds to its result.
    pub(super) fn accumulates(&self) -> Predicate {
        self.predicates[0]
    }
}
