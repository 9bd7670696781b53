//! Finds the blocks in which threads of a warp may be apart, and the blocks that they may reach in several groups, one
//! after the other.

use crate::ori::cfg::for_each_successor;
use crate::ori::ir::{BlockId, Function};

/// The blocks that threads which were together before may leave in several groups, one after the other.
pub(super) struct Apart {
    /// Indexed by block: threads may reach it in several groups.
    comes: Vec<bool>,
    /// Threads may reach every block in several groups: the function was too large to examine.
    everywhere: bool,
}

/// The branch does not reach the block.
const NO_WAY: u32 = u32::MAX;
/// The branch reaches the block through several of its successors.
const SEVERAL: u32 = u32::MAX - 1;

impl Apart {
    /// `branches`: the divergent branches, with their meeting points. `parting`: blocks in which threads are separated
    /// without a branch, such as by masks. `is_end`: whether a region around a block of `parting` ends at another
    /// block, so that the threads are together again. `meet_in`: whether the threads that leave a block together all meet
    /// in another one.
    pub(super) fn new(
        func: &Function,
        branches: &[(BlockId, Option<BlockId>)],
        parting: &[BlockId],
        is_end: impl Fn(BlockId, BlockId) -> bool,
        meet_in: impl Fn(BlockId, BlockId) -> bool,
    ) -> Apart {
        let mut apart = Apart { comes: vec![false; func.blocks.len()], everywhere: false };
        let mut ways = vec![NO_WAY; func.blocks.len()];
        let mut touched = Vec::new();
        // The number of block visits that are left. This limit keeps the time of the walks almost linear.
        let mut budget = 1_000_000 + 64 * func.blocks.len();
        for &(b, meet) in branches {
            // Blocks to visit, each with its entry in `ways`.
            let mut work = Vec::new();
            let mut reach = |to: BlockId, way: u32, work: &mut Vec<(BlockId, u32)>| {
                let old = ways[to.index()];
                if Some(to) == meet || old == way || old == SEVERAL || meet_in(b, to) {
                    return;
                }
                if old == NO_WAY {
                    touched.push(to);
                }
                let new = if old == NO_WAY { way } else { SEVERAL };
                ways[to.index()] = new;
                work.push((to, new));
            };
            let mut next = 0;
            for_each_successor(func, b, |to| {
                reach(to, next, &mut work);
                next += 1;
            });
            while let Some((at, way)) = work.pop() {
                if budget == 0 {
                    apart.everywhere = true;
                    return apart;
                }
                budget -= 1;
                for_each_successor(func, at, |to| reach(to, way, &mut work));
            }
            for at in touched.drain(..) {
                apart.comes[at.index()] |= ways[at.index()] == SEVERAL;
                ways[at.index()] = NO_WAY;
            }
        }
        let mut seen = vec![u32::MAX; func.blocks.len()];
        for (number, &b) in (0..).zip(parting) {
            apart.comes[b.index()] = true;
            let mut work = vec![b];
            while let Some(at) = work.pop() {
                if budget == 0 {
                    apart.everywhere = true;
                    return apart;
                }
                budget -= 1;
                for_each_successor(func, at, |to| {
                    let ends = is_end(b, to) || meet_in(b, to);
                    if !ends && std::mem::replace(&mut seen[to.index()], number) != number {
                        apart.comes[to.index()] = true;
                        work.push(to);
                    }
                });
            }
        }
        apart
    }

    /// Whether threads that form one group before a branch may reach the block in several groups.
    pub(super) fn comes_apart(&self, b: BlockId) -> bool {
        self.everywhere || self.comes[b.index()]
    }
}

/// For each branch, marks the blocks that it reaches before its meeting point, or all blocks that it reaches if it has
/// none. Walks end at blocks in which all threads of the warp meet. `branches` are in the order of control flow.
/// `unites` is indexed by block.
pub(super) fn mark_diverged(
    func: &Function,
    branches: &[(BlockId, Option<BlockId>)],
    unites: &[bool],
    diverged: &mut [bool],
) {
    #[derive(Clone, Copy)]
    enum Marked {
        UpTo(BlockId),
        All,
    }
    // Indexed by block: how far the blocks after it are marked, if the walk from it is finished.
    let mut marked: Vec<Option<Marked>> = vec![None; func.blocks.len()];
    let mut seen = vec![0u32; func.blocks.len()];
    // Inner regions first: the walks of outer regions skip them.
    for (number, &(b, meet)) in (1..).zip(branches.iter().rev()) {
        let mut work = vec![b];
        while let Some(at) = work.pop() {
            let mut reach = |to: BlockId| {
                if Some(to) != meet && std::mem::replace(&mut seen[to.index()], number) != number {
                    diverged[to.index()] = true;
                    work.push(to);
                }
            };
            match marked[at.index()] {
                // All threads meet in this block. At the branch itself, they diverge after they have met.
                _ if unites[at.index()] && at != b => {}
                Some(Marked::All) => {}
                // The blocks from the inner meeting point on are not marked yet.
                Some(Marked::UpTo(inner)) if at != b => reach(inner),
                _ => for_each_successor(func, at, reach),
            }
        }
        marked[b.index()] = Some(meet.map_or(Marked::All, Marked::UpTo));
    }
}
