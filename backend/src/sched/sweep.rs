//! The order in which blocks are visited until nothing changes: repeated sweeps over the block numbers, without blocks
//! for which nothing has changed.

use std::collections::BTreeSet;

pub(crate) struct Sweep {
    /// The remaining blocks of this sweep.
    now: BTreeSet<usize>,
    next: BTreeSet<usize>,
    at: Option<usize>,
}

impl Sweep {
    /// Blocks to visit in the first sweep.
    pub(crate) fn over(blocks: impl IntoIterator<Item = usize>) -> Sweep {
        Sweep { now: blocks.into_iter().collect(), next: BTreeSet::new(), at: None }
    }

    /// The next block to visit.
    pub(crate) fn pop(&mut self) -> Option<usize> {
        if self.now.is_empty() {
            std::mem::swap(&mut self.now, &mut self.next);
        }
        self.at = self.now.pop_first();
        self.at
    }

    /// Marks a block to be visited again: in this sweep if the sweep has not reached it yet, otherwise in the next one.
    pub(crate) fn mark(&mut self, b: usize) {
        if self.at.is_none_or(|at| b > at) {
            self.now.insert(b)
        } else {
            self.next.insert(b)
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_behind_comes_in_the_next_sweep() {
        let mut sweep = Sweep::over([0, 1, 3]);
        let mut order = Vec::new();
        while let Some(b) = sweep.pop() {
            order.push(b);
            match order.len() {
                2 => [1, 2, 0].into_iter().for_each(|b| sweep.mark(b)),
                4 => sweep.mark(3),
                _ => {}
            }
        }
        assert_eq!(order, [0, 1, 2, 3, 0, 1, 3]);
    }
}
