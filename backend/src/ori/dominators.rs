//! Dominator and post-dominator trees, by the simple variant of Lengauer and Tarjan's algorithm ("A Fast Algorithm for
//! Finding Dominators in a Flowgraph"). It takes `m log n` time for any graph; the iterative algorithm takes quadratic
//! time for joins below long chains.

use crate::ori::cfg::{Cfg, for_each_successor};
use crate::ori::ir::{BlockId, Function};
use crate::ori::loops::Loops;

/// A tree over blocks: each block's parent is its nearest strict (post-)dominator.
#[derive(Clone, Debug)]
pub struct Tree {
    /// Indexed by block.
    parent: Vec<Option<BlockId>>,
    /// For each block, the times of entering and leaving its subtree; zero for blocks outside the tree.
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

    /// The number of a block. It grows from parents to children, and the blocks below a block have consecutive numbers.
    pub fn number(&self, b: BlockId) -> u32 {
        self.enter[b.index()]
    }

    /// Whether `a` is `b` or one of its ancestors.
    pub fn dominates(&self, a: BlockId, b: BlockId) -> bool {
        self.contains(a)
            && self.enter[a.index()] <= self.enter[b.index()]
            && self.leave[b.index()] <= self.leave[a.index()]
    }

    /// Builds the tree from immediate dominators by position; `blocks[place]` is the block. Position 0 is the root;
    /// `root` is its block, if any.
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

/// The immediate dominators of a graph whose nodes are reached from the root, node 0. The root is its own dominator.
fn immediate_dominators(nodes: usize, preds: impl Fn(usize, &mut dyn FnMut(usize))) -> Vec<u32> {
    let mut idom = vec![NONE; nodes];
    if nodes == 0 {
        return idom;
    }
    let walk = Walk::new(nodes, &preds);
    let count = walk.order.len();
    // All arrays below are indexed by position in the walk.
    let mut forest = Forest {
        semi: (0..count as u32).collect(),
        best: (0..count as u32).collect(),
        up: vec![NONE; count],
    };
    let mut dominator = vec![0u32; count];
    // Lists of the nodes with each semidominator.
    let (mut first, mut next) = (vec![NONE; count], vec![NONE; count]);
    for w in (1..count).rev() {
        preds(walk.order[w] as usize, &mut |pred| {
            let v = walk.place[pred];
            if v != NONE {
                let u = forest.best(v);
                forest.semi[w] = forest.semi[w].min(forest.semi[u as usize]);
            }
        });
        let semi = forest.semi[w] as usize;
        next[w] = std::mem::replace(&mut first[semi], w as u32);
        let parent = walk.parent[w];
        forest.up[w] = parent;
        let mut v = std::mem::replace(&mut first[parent as usize], NONE);
        while v != NONE {
            let u = forest.best(v);
            let lower = forest.semi[u as usize] < forest.semi[v as usize];
            dominator[v as usize] = if lower { u } else { parent };
            v = next[v as usize];
        }
    }
    idom[0] = 0;
    for w in 1..count {
        if dominator[w] != forest.semi[w] {
            dominator[w] = dominator[dominator[w] as usize];
        }
        idom[walk.order[w] as usize] = walk.order[dominator[w] as usize];
    }
    idom
}

/// Nodes in the order in which a depth-first walk from the root first meets them.
struct Walk {
    order: Vec<u32>,
    /// For each node, its position in `order`.
    place: Vec<u32>,
    /// For each position: the position of the node from which it was first reached.
    parent: Vec<u32>,
}

impl Walk {
    fn new(nodes: usize, preds: &impl Fn(usize, &mut dyn FnMut(usize))) -> Walk {
        let mut start = vec![0u32; nodes + 1];
        // Edges to the root do not matter.
        (1..nodes).for_each(|node| preds(node, &mut |pred| start[pred + 1] += 1));
        for i in 1..start.len() {
            start[i] += start[i - 1];
        }
        let mut next = start.clone();
        let mut successors = vec![0u32; start[nodes] as usize];
        for node in 1..nodes {
            preds(node, &mut |pred| {
                successors[next[pred] as usize] = node as u32;
                next[pred] += 1;
            });
        }
        let mut walk = Walk { order: vec![0], place: vec![NONE; nodes], parent: vec![0] };
        walk.place[0] = 0;
        let mut next = start.clone();
        let mut stack = vec![0u32];
        while let Some(&node) = stack.last() {
            let edge = &mut next[node as usize];
            if *edge == start[node as usize + 1] {
                stack.pop();
                continue;
            }
            let to = successors[*edge as usize];
            *edge += 1;
            if walk.place[to as usize] == NONE {
                walk.place[to as usize] = walk.order.len() as u32;
                walk.parent.push(walk.place[node as usize]);
                walk.order.push(to);
                stack.push(to);
            }
        }
        walk
    }
}

/// The part of the walk's tree that has been linked, with compressed paths.
struct Forest {
    semi: Vec<u32>,
    /// The node with the lowest semidominator on the compressed path from it.
    best: Vec<u32>,
    up: Vec<u32>,
}

impl Forest {
    /// The node with the lowest semidominator on the path from `v` to below its root.
    fn best(&mut self, v: u32) -> u32 {
        if self.up[v as usize] == NONE {
            return v;
        }
        let mut path = vec![v];
        let mut at = self.up[v as usize];
        while self.up[at as usize] != NONE {
            path.push(at);
            at = self.up[at as usize];
        }
        // From the top, because the path above each node must already be compressed.
        path.pop();
        while let Some(v) = path.pop() {
            let up = self.up[v as usize] as usize;
            if self.semi[self.best[up] as usize] < self.semi[self.best[v as usize] as usize] {
                self.best[v as usize] = self.best[up];
            }
            self.up[v as usize] = self.up[up];
        }
        self.best[v as usize]
    }
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

/// The post-dominator tree. Its root is the end of the thread, which is not a block: if control may leave a block in
/// different directions that only meet at the end, the block's parent is `None`. The outermost endless loops get an
/// edge to the root from the last block that leads back to the header, as if they could end with each iteration.
pub fn post_dominators(cfg: &Cfg, func: &Function, loops: &Loops) -> Tree {
    // Postorder of the reversed graph from the virtual end, computed without recursion.
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

    // Position 0 is the virtual end.
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
    use crate::ori::ir::Term;

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
        // 0 -> 1 | 2; 1 <-> 2; 2 -> 3: a cycle with two entries.
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
        // 2 is a separate loop inside the loop of 1, 2 and 3.
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

    /// Every block of a long chain has an edge to the same block. Without path compression, each edge would require a
    /// walk over the whole chain.
    #[test]
    fn a_join_of_a_long_chain_takes_little_time() {
        let count = 200_000;
        let end = BlockId(count);
        let mut func = graph(&[&[]]);
        let cond = crate::ori::ir::Src::TRUE;
        func.blocks = (1..=count)
            .map(|next| {
                let term = Term::Branch { cond, then: end, els: BlockId(next), uniform: false };
                crate::ori::ir::Block { term, ..Default::default() }
            })
            .collect();
        func.blocks.push(Default::default());
        func.layout = (0..=count).map(BlockId).collect();
        let cfg = Cfg::new(&func);
        let tree = dominators(&cfg, &func);
        assert_eq!(tree.parent(end), Some(BlockId(0)));
        let post = post_dominators(&cfg, &func);
        assert!((0..count).all(|b| post.parent(BlockId(b)) == Some(end)));
    }

    /// A block dominates another one if the latter cannot be reached without it.
    #[test]
    fn random_graphs_have_the_dominators_of_their_definition() {
        for seed in 0..200 {
            let mut random = fastrand::Rng::with_seed(seed);
            let count = 2 + random.u32(..14);
            let edges: Vec<Vec<u32>> = (0..count)
                .map(|_| (0..random.usize(..3)).map(|_| 1 + random.u32(..count - 1)).collect())
                .collect();
            let edges: Vec<&[u32]> = edges.iter().map(Vec::as_slice).collect();
            let func = graph(&edges);
            let cfg = Cfg::new(&func);
            let tree = dominators(&cfg, &func);
            let reached_without = |gone: u32| {
                let mut seen = vec![false; count as usize];
                let mut work = vec![0u32];
                while let Some(b) = work.pop() {
                    if b != gone && !std::mem::replace(&mut seen[b as usize], true) {
                        work.extend(edges[b as usize]);
                    }
                }
                seen
            };
            let reached = reached_without(u32::MAX);
            for a in 0..count {
                let without = reached_without(a);
                for b in 0..count {
                    let dominates = reached[a as usize] && reached[b as usize] && !without[b as usize];
                    assert_eq!(tree.dominates(BlockId(a), BlockId(b)), dominates, "seed {seed}: {a}, {b}");
                }
            }
        }
    }
}
