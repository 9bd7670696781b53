//! Dominator and post-dominator trees, by the algorithm of Lengauer and Tarjan with path compression only: O(m log n)
//! for every graph, without recursion.

use super::graph::{BlockId, Edges, End, Graph};

const NONE: u32 = u32::MAX;

/// A tree over blocks: each block's parent is its nearest strict (post-)dominator.
#[derive(Clone, Debug)]
pub struct Tree {
    /// For each block, its parent; [`NONE`] for the root, for blocks below the virtual end, and for blocks outside the
    /// tree.
    parent: Box<[u32]>,
    /// For each block, its preorder number and that of the last block below it; zero outside the tree.
    enter: Box<[u32]>,
    last: Box<[u32]>,
}

impl Tree {
    /// The dominator tree of the blocks that the entry reaches.
    pub fn dominators(graph: &Graph) -> Self {
        let (successors, predecessors) = graph.forward();
        Self::new(graph.blocks().len(), 0, successors, predecessors)
    }

    /// The post-dominator tree of the blocks from which the thread can end without a trap. Its root is the end, which
    /// is not a block.
    pub fn post_dominators(graph: &Graph) -> Self {
        let blocks = graph.blocks().len();
        let end = blocks as u32;
        let mut edges = Vec::with_capacity(2 * blocks);
        for block in graph.reached_blocks() {
            edges.extend(graph.successors(block).iter().map(|&to| (to, block)));
            if graph.end(block) == End::Leaves {
                edges.push((end, block));
            }
        }
        let backward = Edges::new(blocks + 1, &edges);
        for (from, to) in &mut edges {
            std::mem::swap(from, to);
        }
        let forward = Edges::new(blocks + 1, &edges);
        Self::new(blocks, end, &backward, &forward)
    }

    /// The nearest strict (post-)dominator, if it is a block.
    pub fn parent(&self, block: BlockId) -> Option<BlockId> {
        Some(self.parent[block as usize]).filter(|&parent| (parent as usize) < self.parent.len())
    }

    pub fn contains(&self, block: BlockId) -> bool {
        self.enter[block as usize] != 0
    }

    /// Whether `above` is `block` or one of its ancestors.
    pub fn dominates(&self, above: BlockId, block: BlockId) -> bool {
        let at = self.enter[block as usize];
        self.contains(above) && self.enter[above as usize] <= at && at <= self.last[above as usize]
    }

    /// `root` may be a node after the blocks.
    fn new(blocks: usize, root: u32, successors: &Edges, predecessors: &Edges) -> Self {
        let search = Search::new(root, successors);
        let immediate = search.immediate_dominators(predecessors);
        // The preorder of a depth-first search visits dominators first, so subtree sizes are computed backwards and
        // numbers assigned forwards.
        let count = search.order.len();
        let mut size = vec![1u32; count];
        for number in (1..count).rev() {
            size[immediate[number] as usize] += size[number];
        }
        let mut tree = Self {
            parent: vec![NONE; blocks].into(),
            enter: vec![0; blocks].into(),
            last: vec![0; blocks].into(),
        };
        let mut free = vec![0u32; count];
        for number in 0..count {
            let enter = match number {
                0 => 1,
                _ => {
                    let above = immediate[number] as usize;
                    let enter = free[above];
                    free[above] += size[number];
                    enter
                }
            };
            free[number] = enter + 1;
            let node = search.order[number] as usize;
            if node < blocks {
                tree.enter[node] = enter;
                tree.last[node] = enter + size[number] - 1;
                if number > 0 {
                    tree.parent[node] = search.order[immediate[number] as usize];
                }
            }
        }
        tree
    }
}

/// A depth-first search. Nodes are identified by their preorder numbers.
struct Search {
    /// Nodes by number.
    order: Vec<u32>,
    /// Numbers by node; [`NONE`] for nodes that the root does not reach.
    number: Vec<u32>,
    /// By number: the number of the node from which it was found.
    parent: Vec<u32>,
}

impl Search {
    fn new(root: u32, successors: &Edges) -> Self {
        let nodes = successors.nodes();
        let mut search = Self { order: Vec::new(), number: vec![NONE; nodes], parent: Vec::new() };
        if nodes == 0 {
            return search;
        }
        let mut stack = vec![(root, 0u32)];
        while let Some((node, from)) = stack.pop() {
            if search.number[node as usize] != NONE {
                continue;
            }
            let number = search.order.len() as u32;
            search.number[node as usize] = number;
            search.order.push(node);
            search.parent.push(from);
            let unseen = |to: &&u32| search.number[**to as usize] == NONE;
            stack.extend(successors.of(node).iter().rev().filter(unseen).map(|&to| (to, number)));
        }
        search
    }

    /// For each number, the number of the immediate dominator.
    fn immediate_dominators(&self, predecessors: &Edges) -> Vec<u32> {
        let count = self.order.len();
        let mut semi: Vec<u32> = (0..count as u32).collect();
        let mut immediate = vec![0u32; count];
        let mut forest = Forest { ancestor: vec![NONE; count], label: semi.clone(), path: Vec::new() };
        // Nodes by semidominator, as linked lists.
        let (mut first, mut next) = (vec![NONE; count], vec![NONE; count]);
        for w in (1..count).rev() {
            for &node in predecessors.of(self.order[w]) {
                let v = self.number[node as usize];
                if v != NONE {
                    semi[w] = semi[w].min(semi[forest.best(v, &semi) as usize]);
                }
            }
            next[w] = std::mem::replace(&mut first[semi[w] as usize], w as u32);
            let parent = self.parent[w];
            forest.ancestor[w] = parent;
            let mut v = std::mem::replace(&mut first[parent as usize], NONE);
            while v != NONE {
                let best = forest.best(v, &semi);
                immediate[v as usize] = if semi[best as usize] < semi[v as usize] { best } else { parent };
                v = next[v as usize];
            }
        }
        for w in 1..count {
            if immediate[w] != semi[w] {
                immediate[w] = immediate[immediate[w] as usize];
            }
        }
        immediate
    }
}

/// The part of the search tree that has been linked.
struct Forest {
    ancestor: Vec<u32>,
    /// For each node, the node with the least semidominator between it and its ancestor.
    label: Vec<u32>,
    path: Vec<u32>,
}

impl Forest {
    /// The node with the least semidominator on the path above `v`, except the root.
    fn best(&mut self, v: u32, semi: &[u32]) -> u32 {
        let mut at = v;
        while self.ancestor[at as usize] != NONE && self.ancestor[self.ancestor[at as usize] as usize] != NONE
        {
            self.path.push(at);
            at = self.ancestor[at as usize];
        }
        while let Some(node) = self.path.pop() {
            let above = self.ancestor[node as usize] as usize;
            if semi[self.label[above] as usize] < semi[self.label[node as usize] as usize] {
                self.label[node as usize] = self.label[above];
            }
            self.ancestor[node as usize] = self.ancestor[above];
        }
        self.label[v as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edges(list: &[(u32, u32)]) -> (Edges, Edges) {
        let nodes = list.iter().map(|&(a, b)| a.max(b) + 1).max().unwrap_or(1) as usize;
        let back: Vec<_> = list.iter().map(|&(a, b)| (b, a)).collect();
        (Edges::new(nodes, list), Edges::new(nodes, &back))
    }

    fn parents(list: &[(u32, u32)]) -> Vec<Option<u32>> {
        let (successors, predecessors) = edges(list);
        let tree = Tree::new(successors.nodes(), 0, &successors, &predecessors);
        (0..successors.nodes() as u32).map(|block| tree.parent(block)).collect()
    }

    #[test]
    fn diamonds_and_irreducible_cycles() {
        assert_eq!(parents(&[(0, 1), (0, 2), (1, 3), (2, 3)]), [None, Some(0), Some(0), Some(0)]);
        assert_eq!(parents(&[(0, 1), (0, 2), (1, 2), (2, 1), (2, 3)]), [None, Some(0), Some(0), Some(2)]);
    }

    /// The graph from the paper of Lengauer and Tarjan, with 0 1 2 … for R A B … L.
    #[test]
    fn graph_of_the_paper() {
        let list = [
            (0, 1),
            (0, 2),
            (0, 3),
            (1, 4),
            (2, 1),
            (2, 4),
            (2, 5),
            (3, 6),
            (3, 7),
            (4, 12),
            (5, 8),
            (6, 9),
            (7, 9),
            (7, 10),
            (8, 5),
            (8, 11),
            (9, 11),
            (10, 9),
            (11, 9),
            (11, 0),
            (12, 8),
        ];
        let expected = [0, 0, 0, 0, 0, 0, 3, 3, 0, 0, 7, 0, 4];
        let found = parents(&list);
        assert_eq!(found[0], None);
        for block in 1..13 {
            assert_eq!(found[block], Some(expected[block]), "block {block}");
        }
    }

    /// Compares with the definition: `a` dominates `b` if `b` cannot be reached without `a`.
    #[test]
    fn agrees_with_the_definition_on_random_graphs() {
        let mut state = 1u32;
        let mut random = move |below: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) % below
        };
        for _ in 0..200 {
            let nodes = 2 + random(9);
            let list: Vec<_> =
                (0..2 * nodes).map(|_| (random(nodes), random(nodes))).chain([(nodes - 1, 0)]).collect();
            let (successors, predecessors) = edges(&list);
            let tree = Tree::new(successors.nodes(), 0, &successors, &predecessors);
            let reached = |without: Option<u32>| {
                let mut seen = vec![false; nodes as usize];
                let mut work = if without == Some(0) { vec![] } else { vec![0u32] };
                while let Some(node) = work.pop() {
                    if !std::mem::replace(&mut seen[node as usize], true) {
                        work.extend(successors.of(node).iter().copied().filter(|&to| Some(to) != without));
                    }
                }
                seen
            };
            let all = reached(None);
            for above in (0..nodes).filter(|&node| all[node as usize]) {
                let rest = reached(Some(above));
                for below in (0..nodes).filter(|&node| all[node as usize]) {
                    assert_eq!(
                        tree.dominates(above, below),
                        !rest[below as usize],
                        "{list:?} {above} {below}"
                    );
                }
            }
        }
    }
}
