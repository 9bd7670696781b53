//! Where threads of a warp may be apart, and where they come one after the other.

use crate::ori::cfg::for_each_successor;
use crate::ori::ir::{BlockId, Function};

/// Blocks to which the threads that set out together may come in several groups, one after the other.
pub(super) struct Apart {
    /// Indexed by block.
    comes: Vec<bool>,
    /// Threads may come apart in every block: the function was too large to examine.
    everywhere: bool,
}

const NO_WAY: u32 = u32::MAX;
/// Reached by several ways out of a branch.
const SEVERAL: u32 = u32::MAX - 1;

impl Apart {
    /// `branches`: those that part threads, with their meeting points. `parting`: blocks in which they part by masks, until
    /// the end of any region around.
    pub(super) fn new(
        func: &Function,
        branches: &[(BlockId, Option<BlockId>)],
        parting: &[BlockId],
        is_end: impl Fn(BlockId, BlockId) -> bool,
    ) -> Apart {
        let mut apart = Apart { comes: vec![false; func.blocks.len()], everywhere: false };
        let mut ways = vec![NO_WAY; func.blocks.len()];
        let mut touched = Vec::new();
        // Block visits; keeps the walks near linear.
        let mut budget = 1_000_000 + 64 * func.blocks.len();
        for &(b, meet) in branches {
            // With each block, what `ways` has for it.
            let mut work = Vec::new();
            let mut reach = |to: BlockId, way: u32, work: &mut Vec<(BlockId, u32)>| {
                let old = ways[to.index()];
                if Some(to) == meet || old == way || old == SEVERAL {
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
                    if !is_end(b, to) && std::mem::replace(&mut seen[to.index()], number) != number {
                        apart.comes[to.index()] = true;
                        work.push(to);
                    }
                });
            }
        }
        apart
    }

    /// Threads of one group before a branch may come to the block in several.
    pub(super) fn comes_apart(&self, b: BlockId) -> bool {
        self.everywhere || self.comes[b.index()]
    }
}

/// Marks what each branch reaches before its meeting point, or all that it reaches; of that, nothing past a block in which
/// all threads of the warp meet. `branches` in the order of control flow; `unites` indexed by block.
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
    // Indexed by block: what of the paths from it is marked.
    let mut marked: Vec<Option<Marked>> = vec![None; func.blocks.len()];
    let mut seen = vec![0u32; func.blocks.len()];
    // Inner regions first: walks of outer ones pass over them.
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
                // Whoever branches here was together before.
                _ if unites[at.index()] && at != b => {}
                Some(Marked::All) => {}
                // What follows the inner region's end is not.
                Some(Marked::UpTo(inner)) if at != b => reach(inner),
                _ => for_each_successor(func, at, reach),
            }
        }
        marked[b.index()] = Some(meet.map_or(Marked::All, Marked::UpTo));
    }
}
