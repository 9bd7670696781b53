//! Dominator and post-dominator trees, by the iterative algorithm of Cooper, Harvey and Kennedy ("A Simple,
//! Fast Dominance Algorithm").

use crate::ori::cfg::{Cfg, for_each_successor};
use crate::ori::ir::{BlockId, Function};
use crate::ori::loops::Loops;

/// A tree over blocks: each block's parent is its nearest strict (post-)dominator.
#[derive(Clone, Debug)]
pub struct Tree {
    /// Indexed by block.
    parent: Vec<Option<BlockId>>,
    /// Indexed by block: visiting times on entering and leaving its subtree; zero for blocks outside.
    enter: Vec<u32>,
    leave: Vec<u32>,
    /// Blocks of the tree, parents before children.
    pub preorder: Vec<BlockId>,
}

const NONE: u32 = u32::MAX;

impl Tree {
    pub fn parent(&self, b: BlockId) -> Option<BlockId> {
        self.parent[b.index()]
    }

    pub fn contains(&self, b: BlockId) -> bool {
        self.enter[b.index()] != 0
    }

    /// Grows from parents to children; the blocks below one have consecutive numbers among those of the tree.
    pub fn number(&self, b: BlockId) -> u32 {
        self.enter[b.index()]
    }

    /// `a` is `b` or above it.
    pub fn dominates(&self, a: BlockId, b: BlockId) -> bool {
        self.contains(a)
            && self.enter[a.index()] <= self.enter[b.index()]
            && self.leave[b.index()] <= self.leave[a.index()]
    }

    /// From immediate dominators by place; `blocks[place]` is the block. Place 0 is the root; `root` tells the
    /// block it stands for, if any.
    fn from_places(count: usize, idom: &[u32], blocks: &[Option<BlockId>]) -> Tree {
        let mut child_start = vec![0u32; blocks.len() + 1];
        for (place, &up) in idom.iter().enumerate().skip(1) {
            if up != NONE && place != 0 {
                child_start[up as usize + 1] += 1;
            }
        }
        for i in 1..child_start.len() {
            child_start[i] += child_start[i - 1];
        }
        let mut next = child_start.clone();
        let mut children = vec![0u32; *child_start.last().unwrap_or(&0) as usize];
        for (place, &up) in idom.iter().enumerate().skip(1) {
            if up != NONE {
                children[next[up as usize] as usize] = place as u32;
                next[up as usize] += 1;
            }
        }
        let mut tree = Tree {
            parent: vec![None; count],
            enter: vec![0; count],
            leave: vec![0; count],
            preorder: Vec::with_capacity(blocks.len()),
        };
        if blocks.is_empty() {
            return tree;
        }
        let mut time = 0;
        let mut stack = vec![(0u32, child_start[0])];
        let enter = |place: u32, time: &mut u32, tree: &mut Tree| {
            *time += 1;
            if let Some(b) = blocks[place as usize] {
                tree.enter[b.index()] = *time;
                tree.parent[b.index()] =
                    if place == 0 { None } else { blocks[idom[place as usize] as usize] };
                tree.preorder.push(b);
            }
        };
        enter(0, &mut time, &mut tree);
        while let Some((place, next_child)) = stack.last_mut() {
            if *next_child < child_start[*place as usize + 1] {
                let child = children[*next_child as usize];
                *next_child += 1;
                enter(child, &mut time, &mut tree);
                stack.push((child, child_start[child as usize]));
            } else {
                time += 1;
                if let Some(b) = blocks[*place as usize] {
                    tree.leave[b.index()] = time;
                }
                stack.pop();
            }
        }
        tree
    }
}

/// Immediate dominators of a graph whose nodes are numbered in reverse postorder from the root, 0.
fn immediate_dominators(nodes: usize, preds: impl Fn(usize, &mut dyn FnMut(usize))) -> Vec<u32> {
    let mut idom = vec![NONE; nodes];
    if nodes == 0 {
        return idom;
    }
    idom[0] = 0;
    let mut changed = true;
    while changed {
        changed = false;
        for node in 1..nodes {
            let mut best = NONE;
            preds(node, &mut |pred| {
                let pred = pred as u32;
                if idom[pred as usize] == NONE {
                    return;
                }
                if best == NONE {
                    best = pred;
                    return;
                }
                let (mut a, mut b) = (best, pred);
                while a != b {
                    if a > b {
                        a = idom[a as usize];
                    } else {
                        b = idom[b as usize];
                    }
                }
                best = a;
            });
            if idom[node] != best {
                idom[node] = best;
                changed = true;
            }
        }
    }
    idom
}

/// The dominator tree of the reached blocks.
pub fn dominators(cfg: &Cfg, func: &Function) -> Tree {
    let idom = immediate_dominators(cfg.order.len(), |node, visit| {
        for &p in cfg.preds(cfg.order[node]) {
            visit(cfg.place(p));
        }
    });
    let blocks: Vec<_> = cfg.order.iter().map(|b| Some(*b)).collect();
    Tree::from_places(func.blocks.len(), &idom, &blocks)
}

/// The post-dominator tree. Its root is the end of the thread, which is no block: the parent of a block from
/// which control may leave in different ways is `None`. Endless loops are given an edge to the root, as if the outermost
/// could end with each iteration: at the last block that leads back to its header.
pub fn post_dominators(cfg: &Cfg, func: &Function, loops: &Loops) -> Tree {
    // Postorder of the reversed graph from the virtual end, without recursion.
    let ends: Vec<BlockId> =
        cfg.order.iter().copied().filter(|b| func.block(*b).term.successors().is_empty()).collect();
    let mut seen = vec![false; func.blocks.len()];
    let mut roots = Vec::new();
    let mut postorder = Vec::with_capacity(cfg.order.len());
    let mut walk = |root: BlockId, seen: &mut Vec<bool>, postorder: &mut Vec<BlockId>| {
        if seen[root.index()] {
            return;
        }
        seen[root.index()] = true;
        roots.push(root);
        let mut stack = vec![(root, 0usize)];
        while let Some((b, next)) = stack.last_mut() {
            match cfg.preds(*b).get(*next) {
                Some(&pred) => {
                    *next += 1;
                    if !seen[pred.index()] {
                        seen[pred.index()] = true;
                        stack.push((pred, 0));
                    }
                }
                None => {
                    postorder.push(*b);
                    stack.pop();
                }
            }
        }
    };
    for &end in &ends {
        walk(end, &mut seen, &mut postorder);
    }
    for &b in cfg.order.iter().rev() {
        if seen[b.index()] {
            continue;
        }
        let latch = loops.around(b).last().and_then(|id| {
            let latches = cfg.preds(loops.get(id).header).iter().filter(|p| loops.contains(id, **p));
            latches.copied().max_by_key(|p| cfg.place(*p))
        });
        walk(latch.unwrap_or(b), &mut seen, &mut postorder);
        walk(b, &mut seen, &mut postorder);
    }
    postorder.reverse();

    // Place 0 is the virtual end.
    let mut place = vec![NONE; func.blocks.len()];
    for (i, b) in postorder.iter().enumerate() {
        place[b.index()] = i as u32 + 1;
    }
    let mut is_root = vec![false; func.blocks.len()];
    for root in roots {
        is_root[root.index()] = true;
    }
    let idom = immediate_dominators(postorder.len() + 1, |node, visit| {
        let b = postorder[node - 1];
        if is_root[b.index()] {
            visit(0);
        }
        for_each_successor(func, b, |to| visit(place[to.index()] as usize));
    });
    let blocks: Vec<_> = std::iter::once(None).chain(postorder.iter().map(|b| Some(*b))).collect();
    Tree::from_places(func.blocks.len(), &idom, &blocks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ori::cfg::tests::graph;

    fn post_dominators(cfg: &Cfg, func: &Function) -> Tree {
        super::post_dominators(cfg, func, &Loops::new(func, cfg, &dominators(cfg, func)))
    }

    fn parents(edges: &[&[u32]], of: impl Fn(&Cfg, &Function) -> Tree) -> Vec<Option<u32>> {
        let func = graph(edges);
        let tree = of(&Cfg::new(&func), &func);
        (0..edges.len()).map(|i| tree.parent(BlockId(i as u32)).map(|b| b.0)).collect()
    }

    #[test]
    fn diamond() {
        let edges: &[&[u32]] = &[&[1, 2], &[3], &[3], &[]];
        assert_eq!(parents(edges, dominators), [None, Some(0), Some(0), Some(0)]);
        assert_eq!(parents(edges, post_dominators), [Some(3), Some(3), Some(3), None]);
    }

    #[test]
    fn early_exit_leaves_no_post_dominator() {
        let edges: &[&[u32]] = &[&[1, 2], &[], &[]];
        assert_eq!(parents(edges, post_dominators), [None, None, None]);
    }

    #[test]
    fn loops_and_irreducible_graphs() {
        // 0 -> 1 | 2; 1 <-> 2; 2 -> 3: two entries into the cycle.
        let edges: &[&[u32]] = &[&[1, 2], &[2], &[1, 3], &[]];
        assert_eq!(parents(edges, dominators), [None, Some(0), Some(0), Some(2)]);
        assert_eq!(parents(edges, post_dominators), [Some(2), Some(2), Some(3), None]);
    }

    #[test]
    fn endless_loops_have_post_dominators_too() {
        let edges: &[&[u32]] = &[&[1], &[2], &[1]];
        assert_eq!(parents(edges, post_dominators), [Some(1), Some(2), None]);
    }

    #[test]
    fn endless_loops_could_end_with_each_iteration_of_the_outermost() {
        // 2 is a loop of its own inside 1, 2, 3.
        let edges: &[&[u32]] = &[&[1], &[2], &[3, 2], &[1]];
        assert_eq!(parents(edges, post_dominators), [Some(1), Some(2), Some(3), None]);
    }

    #[test]
    fn dominance_is_reflexive_and_follows_the_tree() {
        let func = graph(&[&[1, 2], &[3], &[3], &[]]);
        let tree = dominators(&Cfg::new(&func), &func);
        let [a, b, _, d] = [0, 1, 2, 3].map(BlockId);
        assert!(tree.dominates(a, d) && tree.dominates(d, d));
        assert!(!tree.dominates(b, d) && !tree.dominates(d, a));
    }
}
