//! The loop forest: natural loops, found by their back edges, and the blocks of cycles that are not natural loops.

use crate::ori::cfg::{Cfg, for_each_successor};
use crate::ori::dominators::Tree;
use crate::ori::ir::{BlockId, Function};
use std::ops::Range;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LoopId(pub u32);

#[derive(Clone, Debug)]
pub struct Loop {
    /// The header, which dominates the loop's blocks.
    pub header: BlockId,
    pub parent: Option<LoopId>,
    /// The nesting depth; one for outermost loops.
    pub depth: u32,
}

/// The loops by header; an inner loop precedes the loops around it.
#[derive(Clone, Debug)]
pub struct Loops {
    pub loops: Vec<Loop>,
    /// Indexed by block: the innermost loop.
    innermost: Vec<Option<LoopId>>,
    /// For each block, whether it is part of a cycle with several entries. Empty if there are no such cycles.
    irreducible: Vec<bool>,
    /// For each loop, the numbers of the loop and of the loops in it, in an order that keeps them together.
    numbers: Vec<Range<u32>>,
    /// The blocks in loops, by the number of the innermost one.
    blocks: Vec<(u32, BlockId)>,
}

impl Loops {
    pub fn new(func: &Function, cfg: &Cfg, dominators: &Tree) -> Loops {
        let mut forest = Loops {
            loops: Vec::new(),
            innermost: vec![None; func.blocks.len()],
            irreducible: Vec::new(),
            numbers: Vec::new(),
            blocks: Vec::new(),
        };
        let mut is_irreducible = false;
        // For each loop: a loop around it, the outermost one found so far.
        let mut out: Vec<u32> = Vec::new();
        // Inner headers come first: an inner header is below the outer one in the dominator tree.
        for &header in dominators.preorder.iter().rev() {
            let mut work = Vec::new();
            for &pred in cfg.preds(header) {
                if dominators.dominates(header, pred) {
                    work.push(pred);
                } else if cfg.place(pred) >= cfg.place(header) {
                    is_irreducible = true;
                }
            }
            if work.is_empty() {
                continue;
            }
            let id = LoopId(forest.loops.len() as u32);
            forest.loops.push(Loop { header, parent: None, depth: 0 });
            out.push(id.0);
            while let Some(b) = work.pop() {
                match forest.innermost[b.index()] {
                    None => {
                        forest.innermost[b.index()] = Some(id);
                        if b != header {
                            work.extend(cfg.preds(b).iter().filter(|p| dominators.dominates(header, **p)));
                        }
                    }
                    Some(inner) => {
                        // The loop has been found before: put it into this one, and continue before the header of the
                        // outermost loop around it.
                        let outer = outermost_so_far(&mut out, inner);
                        if outer != id {
                            out[outer.0 as usize] = id.0;
                            forest.loops[outer.0 as usize].parent = Some(id);
                            let inner_header = forest.loops[outer.0 as usize].header;
                            work.extend(
                                cfg.preds(inner_header).iter().filter(|p| dominators.dominates(header, **p)),
                            );
                        }
                    }
                }
            }
        }
        // Parents come after their children.
        for i in (0..forest.loops.len()).rev() {
            forest.loops[i].depth = match forest.loops[i].parent {
                Some(parent) => forest.loops[parent.0 as usize].depth + 1,
                None => 1,
            };
        }
        forest.number(cfg);
        if is_irreducible {
            forest.irreducible = irreducible_blocks(func, cfg, dominators);
        }
        forest
    }

    fn number(&mut self, cfg: &Cfg) {
        let mut sizes = vec![1u32; self.loops.len()];
        for (i, one) in self.loops.iter().enumerate() {
            if let Some(parent) = one.parent {
                sizes[parent.0 as usize] += sizes[i];
            }
        }
        // Parents come after their children, so in reverse order each loop finds the place that its parent left for it.
        self.numbers = vec![0..0; self.loops.len()];
        let mut next_root = 0;
        let mut next = vec![0u32; self.loops.len()];
        for (i, one) in self.loops.iter().enumerate().rev() {
            let place = one.parent.map_or(&mut next_root, |parent| &mut next[parent.0 as usize]);
            let start = *place;
            *place += sizes[i];
            self.numbers[i] = start..start + sizes[i];
            next[i] = start + 1;
        }
        let numbered = cfg.order.iter().filter_map(|&b| Some((self.number_of(b)?, b)));
        let mut blocks: Vec<_> = numbered.collect();
        blocks.sort_by_key(|&(number, _)| number);
        self.blocks = blocks;
    }

    /// The number of the innermost loop around a block.
    fn number_of(&self, b: BlockId) -> Option<u32> {
        self.innermost(b).map(|id| self.numbers[id.0 as usize].start)
    }

    pub fn get(&self, id: LoopId) -> &Loop {
        &self.loops[id.0 as usize]
    }

    /// The innermost loop that contains `b`.
    pub fn innermost(&self, b: BlockId) -> Option<LoopId> {
        self.innermost[b.index()]
    }

    pub fn depth(&self, b: BlockId) -> u32 {
        self.innermost(b).map_or(0, |id| self.get(id).depth)
    }

    /// The loops around `b`, innermost first.
    pub fn around(&self, b: BlockId) -> impl Iterator<Item = LoopId> + '_ {
        std::iter::successors(self.innermost(b), |id| self.get(*id).parent)
    }

    pub fn contains(&self, id: LoopId, b: BlockId) -> bool {
        self.number_of(b).is_some_and(|number| self.numbers[id.0 as usize].contains(&number))
    }

    /// The blocks of a loop, except those of inner loops for which `leave_out` is true.
    pub fn blocks_outside(&self, id: LoopId, leave_out: impl Fn(LoopId) -> bool) -> Vec<BlockId> {
        let after = |number: u32| self.blocks.partition_point(|block| block.0 < number);
        let Range { start, end } = self.numbers[id.0 as usize];
        let mut found = Vec::new();
        let mut at = after(start);
        while let Some(&(_, b)) = self.blocks.get(at).filter(|block| block.0 < end) {
            // The loop's own blocks precede those of the loops in it.
            match self.innermost(b).filter(|inner| leave_out(*inner)) {
                Some(inner) => at = after(self.numbers[inner.0 as usize].end),
                None => {
                    found.push(b);
                    at += 1;
                }
            }
        }
        found
    }

    pub fn is_header(&self, b: BlockId) -> bool {
        self.innermost(b).is_some_and(|id| self.get(id).header == b)
    }

    /// The outermost loop that contains `inside` but not `outside`.
    pub fn outermost_without(&self, inside: BlockId, outside: BlockId) -> Option<LoopId> {
        self.around(inside).take_while(|id| !self.contains(*id, outside)).last()
    }

    /// Whether the function has a cycle with several entries.
    pub fn any_irreducible(&self) -> bool {
        !self.irreducible.is_empty()
    }

    /// Whether the block is in a cycle with several entries, which is not a loop of this forest.
    pub fn is_irreducible(&self, b: BlockId) -> bool {
        self.irreducible.get(b.index()).copied().unwrap_or(false)
    }

    /// For each block: the last block that dominates the outermost loop around it and precedes that loop. A value
    /// without operands can be computed there once for all iterations. If the loop is not entered, the computation is
    /// unnecessary.
    pub fn homes(&self, func: &Function, dom: &Tree) -> Vec<Option<BlockId>> {
        let home = |b: BlockId| self.around(b).last().and_then(|id| dom.parent(self.get(id).header));
        (0..func.blocks.len() as u32).map(|b| home(BlockId(b))).collect()
    }

    /// The only block outside the loop that enters it, if the loop is that block's only successor.
    pub fn preheader(&self, func: &Function, cfg: &Cfg, id: LoopId) -> Option<BlockId> {
        let header = self.get(id).header;
        let mut outside = cfg.preds(header).iter().copied().filter(|p| !self.contains(id, *p));
        let (first, second) = (outside.next()?, outside.next());
        let mut successors = 0;
        for_each_successor(func, first, |_| successors += 1);
        (second.is_none() && successors == 1).then_some(first)
    }
}

/// The outermost loop around `id` in `out`; halves the path on the way.
fn outermost_so_far(out: &mut [u32], id: LoopId) -> LoopId {
    let mut at = id.0;
    while out[at as usize] != at {
        let further = out[out[at as usize] as usize];
        out[at as usize] = further;
        at = further;
    }
    LoopId(at)
}

/// The blocks of strongly connected components that a retreating edge enters other than through the dominating header.
/// Uses Tarjan's algorithm, without recursion.
fn irreducible_blocks(func: &Function, cfg: &Cfg, dominators: &Tree) -> Vec<bool> {
    let component = components(func, cfg);
    let mut bad = vec![false; func.blocks.len()];
    for &b in &cfg.order {
        for &pred in cfg.preds(b) {
            let retreats = cfg.place(pred) >= cfg.place(b) && !dominators.dominates(b, pred);
            if retreats && component[pred.index()] == component[b.index()] {
                bad[component[b.index()] as usize] = true;
            }
        }
    }
    let mut flags = vec![false; func.blocks.len()];
    for &b in &cfg.order {
        flags[b.index()] = bad[component[b.index()] as usize];
    }
    flags
}

/// Indexed by block: the number of its strongly connected component.
fn components(func: &Function, cfg: &Cfg) -> Vec<u32> {
    const NEW: u32 = u32::MAX;
    let count = func.blocks.len();
    let (mut number, mut low) = (vec![NEW; count], vec![0u32; count]);
    let mut component = vec![NEW; count];
    let (mut next_number, mut next_component) = (0, 0);
    let mut open: Vec<BlockId> = Vec::new();
    let mut stack = Vec::new();
    for &root in &cfg.order {
        if number[root.index()] != NEW {
            continue;
        }
        stack.push((root, func.block(root).term.successors()));
        number[root.index()] = next_number;
        low[root.index()] = next_number;
        next_number += 1;
        open.push(root);
        while let Some((b, successors)) = stack.last_mut() {
            let b = *b;
            if let Some(to) = successors.pop() {
                if number[to.index()] == NEW {
                    number[to.index()] = next_number;
                    low[to.index()] = next_number;
                    next_number += 1;
                    open.push(to);
                    stack.push((to, func.block(to).term.successors()));
                } else if component[to.index()] == NEW {
                    low[b.index()] = low[b.index()].min(number[to.index()]);
                }
                continue;
            }
            stack.pop();
            if let Some((up, _)) = stack.last() {
                low[up.index()] = low[up.index()].min(low[b.index()]);
            }
            if low[b.index()] == number[b.index()] {
                while let Some(member) = open.pop() {
                    component[member.index()] = next_component;
                    if member == b {
                        break;
                    }
                }
                next_component += 1;
            }
        }
    }
    component
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ori::cfg::tests::graph;
    use crate::ori::dominators::dominators;

    fn loops(edges: &[&[u32]]) -> (Function, Cfg, Loops) {
        let func = graph(edges);
        let cfg = Cfg::new(&func);
        let tree = dominators(&cfg, &func);
        let loops = Loops::new(&func, &cfg, &tree);
        (func, cfg, loops)
    }

    #[test]
    fn nested_loops() {
        // 0 -> 1 -> 2 <-> 2', 3 closes the outer loop.
        let (func, cfg, loops) = loops(&[&[1], &[2], &[3, 2], &[1, 4], &[]]);
        let headers: Vec<_> = loops.loops.iter().map(|l| (l.header.0, l.depth)).collect();
        assert_eq!(headers, [(2, 2), (1, 1)]);
        assert_eq!([0, 1, 2, 3, 4].map(|b| loops.depth(BlockId(b))), [0, 1, 2, 1, 0]);
        assert_eq!(loops.outermost_without(BlockId(2), BlockId(4)), Some(LoopId(1)));
        assert_eq!(loops.outermost_without(BlockId(2), BlockId(3)), Some(LoopId(0)));
        assert_eq!(loops.outermost_without(BlockId(0), BlockId(3)), None);
        assert_eq!(loops.preheader(&func, &cfg, LoopId(1)), Some(BlockId(0)));
        assert_eq!(loops.preheader(&func, &cfg, LoopId(0)), Some(BlockId(1)));
    }

    #[test]
    fn two_latches_are_one_loop() {
        let (_, _, loops) = loops(&[&[1], &[2, 3], &[1], &[1, 4], &[]]);
        assert_eq!(loops.loops.len(), 1);
        assert!(loops.contains(LoopId(0), BlockId(2)) && loops.contains(LoopId(0), BlockId(3)));
    }

    #[test]
    fn a_cycle_with_two_entries_is_marked() {
        let (_, _, loops) = loops(&[&[1, 2], &[2], &[1, 3], &[]]);
        assert!(loops.loops.is_empty());
        assert_eq!([0, 1, 2, 3].map(|b| loops.is_irreducible(BlockId(b))), [false, true, true, false]);
    }
}
