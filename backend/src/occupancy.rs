//! The number of blocks of a kernel that fit on a multiprocessor, and the resource that limits it.
//!
//! The limits are those of [`crate::target`]; the granularities come from the occupancy chapter of the Best
//! Practices Guide.

pub use crate::target::{MAX_THREADS_PER_BLOCK, WARP};

use crate::target::{Limits, SM_REGISTERS, Target};
use ptx_isa::Sm;
use std::fmt;

/// Registers are allocated to a warp in multiples of this number.
const REGISTER_UNIT: u32 = 256;
/// Each partition has its own register file and its own warps.
const PARTITIONS: u32 = 4;

/// The limits of a target, or those of the nearest older target.
pub fn limits(sm: Sm) -> Option<&'static Limits> {
    Target::nearest(sm).map(|target| &target.limits)
}

/// The resources of a block of a kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockUse {
    pub threads: u32,
    /// Registers per thread.
    pub registers: u32,
    /// Bytes of shared memory, static and dynamic.
    pub shared: u32,
}

/// The resource that prevents another block from fitting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limiter {
    Warps,
    Blocks,
    Registers,
    SharedMemory,
}

impl fmt::Display for Limiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Warps => "warps",
            Self::Blocks => "blocks",
            Self::Registers => "registers",
            Self::SharedMemory => "shared memory",
        })
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Occupancy {
    /// The number of blocks that are resident on one multiprocessor; 0 if the kernel cannot be launched.
    pub blocks: u32,
    pub warps: u32,
    pub max_warps: u32,
    /// The limiting resource; of several equally limiting ones, the first in the order of [`Limiter`].
    pub limiter: Limiter,
}

impl Occupancy {
    /// The share of the warps that are resident, rounded to the nearest percent.
    pub fn percent(&self) -> u32 {
        (self.warps * 100 + self.max_warps / 2) / self.max_warps
    }
}

/// The number of warps that a multiprocessor has registers for, with this number per thread.
pub fn warps_with(registers: u32) -> u32 {
    match (registers * WARP).next_multiple_of(REGISTER_UNIT) {
        0 => u32::MAX,
        per_warp => SM_REGISTERS / PARTITIONS / per_warp * PARTITIONS,
    }
}

/// Computes the occupancy of a kernel. `None` if the limits of the target are unknown, or if the block is empty or too
/// large.
pub fn occupancy(sm: Sm, block: BlockUse) -> Option<Occupancy> {
    let limits = limits(sm)?;
    if block.threads == 0 || block.threads > MAX_THREADS_PER_BLOCK {
        return None;
    }
    let warps_per_block = block.threads.div_ceil(WARP);

    let by_warps = limits.warps / warps_per_block;
    // A block's warps are distributed over the partitions, so an incomplete round takes a complete one.
    let by_registers = match warps_with(block.registers) {
        warps if warps_per_block.next_multiple_of(PARTITIONS) > warps => 0,
        warps => warps / warps_per_block,
    };
    let by_shared = if block.shared > limits.shared_per_block {
        0
    } else {
        match (block.shared + limits.shared_reserved).next_multiple_of(limits.shared_unit) {
            0 => u32::MAX,
            per_block => limits.shared / per_block,
        }
    };

    let candidates = [
        (by_warps, Limiter::Warps),
        (limits.blocks, Limiter::Blocks),
        (by_registers, Limiter::Registers),
        (by_shared, Limiter::SharedMemory),
    ];
    let (blocks, limiter) = candidates.into_iter().min_by_key(|&(blocks, _)| blocks)?;
    Some(Occupancy { blocks, warps: blocks * warps_per_block, max_warps: limits.warps, limiter })
}

#[cfg(test)]
mod tests {
    use super::*;

    const KB: u32 = 1024;

    fn check(sm: u16, threads: u32, registers: u32, shared: u32) -> (u32, u32, Limiter) {
        let result = occupancy(Sm::new(sm), BlockUse { threads, registers, shared }).unwrap();
        (result.blocks, result.percent(), result.limiter)
    }

    #[test]
    fn full_occupancy() {
        assert_eq!(check(80, 256, 32, 0), (8, 100, Limiter::Warps));
        assert_eq!(check(75, 1024, 64, 0), (1, 100, Limiter::Warps));
        assert_eq!(check(120, 128, 40, 0), (12, 100, Limiter::Warps));
    }

    /// 20 of 64 warps are 31.25 %.
    #[test]
    fn percentages_are_rounded_to_the_nearest() {
        let found = Occupancy { blocks: 20, warps: 20, max_warps: 64, limiter: Limiter::Registers };
        assert_eq!(found.percent(), 31);
    }

    #[test]
    fn small_blocks_meet_the_block_limit() {
        assert_eq!(check(90, 32, 16, 0), (32, 50, Limiter::Blocks));
        assert_eq!(check(86, 32, 16, 0), (16, 33, Limiter::Blocks));
    }

    #[test]
    fn registers_round_up_per_warp() {
        // 33 registers take 40: 1280 per warp, 12 warps per partition.
        assert_eq!(check(80, 256, 33, 0), (6, 75, Limiter::Registers));
        assert_eq!(check(90, 256, 255, 0), (1, 13, Limiter::Registers));
        assert_eq!(check(90, 1024, 65, 0), (0, 0, Limiter::Registers));
    }

    #[test]
    fn the_system_takes_shared_memory_of_each_block() {
        assert_eq!(check(90, 128, 32, 227 * KB), (1, 6, Limiter::SharedMemory));
        assert_eq!(check(80, 128, 32, 16 * KB), (9, 56, Limiter::SharedMemory));
        assert_eq!(check(75, 128, 32, 16 * KB), (4, 50, Limiter::SharedMemory));
        assert_eq!(check(75, 128, 32, 65 * KB).0, 0);
    }

    #[test]
    fn unknown_targets_take_the_nearest_older_row() {
        assert_eq!(limits(Sm::new(101)), limits(Sm::new(100)));
        assert!(limits(Sm::new(70)).is_none());
        assert!(occupancy(Sm::new(90), BlockUse { threads: 2048, registers: 32, shared: 0 }).is_none());
    }
}
