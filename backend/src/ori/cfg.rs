//! The control flow graph: predecessors and block orders.

use crate::ori::ir::{BlockId, Function, Term};

/// Successor and predecessor lists, and reverse postorder, of the blocks that the entry reaches.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cfg {
    /// For each block, the start of its predecessors in `preds`; there is one entry more than blocks.
    pred_start: Vec<u32>,
    preds: Vec<BlockId>,
    /// The reached blocks. A block precedes its successors, except along back edges.
    pub order: Vec<BlockId>,
    /// The position of each block in `order`.
    place: Vec<u32>,
}

const UNREACHED: u32 = u32::MAX;

impl Cfg {
    pub fn new(func: &Function) -> Cfg {
        let order = reverse_postorder(func);
        let mut place = vec![UNREACHED; func.blocks.len()];
        for (i, b) in order.iter().enumerate() {
            place[b.index()] = i as u32;
        }
        let mut pred_start = vec![0u32; func.blocks.len() + 1];
        let each_edge = |visit: &mut dyn FnMut(BlockId, BlockId)| {
            for &from in &order {
                for_each_successor(func, from, |to| visit(from, to));
            }
        };
        each_edge(&mut |_, to| pred_start[to.index() + 1] += 1);
        for i in 1..pred_start.len() {
            pred_start[i] += pred_start[i - 1];
        }
        let mut next = pred_start.clone();
        let mut preds = vec![BlockId(0); *pred_start.last().unwrap_or(&0) as usize];
        each_edge(&mut |from, to| {
            preds[next[to.index()] as usize] = from;
            next[to.index()] += 1;
        });
        Cfg { pred_start, preds, order, place }
    }

    /// The reached predecessors of `b`. A block that branches twice to `b` appears once.
    pub fn preds(&self, b: BlockId) -> &[BlockId] {
        &self.preds[self.pred_start[b.index()] as usize..self.pred_start[b.index() + 1] as usize]
    }

    pub fn is_reached(&self, b: BlockId) -> bool {
        self.place[b.index()] != UNREACHED
    }

    /// For each block, whether control may lead from it to the end of the thread.
    pub fn reach_an_end(&self, func: &Function) -> Vec<bool> {
        self.reach(func, |term| term.successors().is_empty())
    }

    /// For each block, whether control may lead from it to such a terminator.
    pub fn reach(&self, func: &Function, is_end: impl Fn(&Term) -> bool) -> Vec<bool> {
        let mut reaches = vec![false; func.blocks.len()];
        let mut work: Vec<BlockId> =
            self.order.iter().copied().filter(|b| is_end(&func.block(*b).term)).collect();
        work.iter().for_each(|b| reaches[b.index()] = true);
        while let Some(b) = work.pop() {
            for &from in self.preds(b) {
                if !std::mem::replace(&mut reaches[from.index()], true) {
                    work.push(from);
                }
            }
        }
        reaches
    }

    /// The position of a reached block in reverse postorder.
    pub fn place(&self, b: BlockId) -> usize {
        self.place[b.index()] as usize
    }
}

/// Calls `visit` for each different successor of `b`.
pub fn for_each_successor(func: &Function, b: BlockId, mut visit: impl FnMut(BlockId)) {
    let successors = func.block(b).term.successors();
    if successors.len() <= 8 {
        for (i, &to) in successors.iter().enumerate() {
            if !successors[..i].contains(&to) {
                visit(to);
            }
        }
    } else {
        let mut sorted = successors.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        sorted.into_iter().for_each(visit);
    }
}

/// The blocks that the entry reaches, in reverse postorder. Not recursive, because the depth of a graph can grow with
/// the length of the program.
pub fn reverse_postorder(func: &Function) -> Vec<BlockId> {
    let Some(&entry) = func.layout.first() else { return Vec::new() };
    let mut seen = vec![false; func.blocks.len()];
    let mut order = Vec::with_capacity(func.layout.len());
    let mut stack = vec![(entry, func.block(entry).term.successors())];
    seen[entry.index()] = true;
    while let Some((b, successors)) = stack.last_mut() {
        // The last successor comes first, so that the first one comes first in the result.
        match successors.pop() {
            Some(to) if !seen[to.index()] => {
                seen[to.index()] = true;
                stack.push((to, func.block(to).term.successors()));
            }
            Some(_) => {}
            None => {
                order.push(*b);
                stack.pop();
            }
        }
    }
    order.reverse();
    order
}

/// For each block, whether control can lead from it to a return of the function.
pub fn returning_blocks(func: &Function) -> Vec<bool> {
    Cfg::new(func).reach(func, |term| *term == Term::Ret)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::ori::text;

    /// A function of empty blocks: `edges[i]` are the successors of block `i`.
    pub(crate) fn graph(edges: &[&[u32]]) -> Function {
        let mut text = String::from("func \"g\" {\n");
        for (i, successors) in edges.iter().enumerate() {
            text += &format!("b{i}:\n  ");
            text += &match successors {
                [] => "EXIT\n".to_owned(),
                [a] => format!("JUMP b{a}\n"),
                [a, b] => format!("BRA %v0, b{a}, b{b}\n"),
                more => {
                    format!("BRX %v1, t0{}\n", more.iter().map(|b| format!(", b{b}")).collect::<String>())
                }
            };
        }
        text::parse(&(text + "}\n")).unwrap()
    }

    #[test]
    fn order_and_predecessors_leave_unreached_blocks_out() {
        let cfg = Cfg::new(&graph(&[&[1, 2], &[3], &[3], &[], &[3]]));
        assert_eq!(cfg.order, [0, 1, 2, 3].map(BlockId));
        assert_eq!(cfg.preds(BlockId(3)), [1, 2].map(BlockId));
        assert!(!cfg.is_reached(BlockId(4)));
    }

    #[test]
    fn a_branch_with_equal_targets_is_one_edge() {
        let cfg = Cfg::new(&graph(&[&[1, 1], &[]]));
        assert_eq!(cfg.preds(BlockId(1)), [BlockId(0)]);
    }

    #[test]
    fn deep_graphs_need_no_stack() {
        let edges: Vec<Vec<u32>> = (0..100_000u32).map(|i| vec![i + 1]).chain([vec![]]).collect();
        let edges: Vec<&[u32]> = edges.iter().map(Vec::as_slice).collect();
        let mut func = graph(&[&[]]);
        func.blocks.clear();
        func.layout.clear();
        for (i, to) in edges.iter().enumerate() {
            let mut block = crate::ori::ir::Block::default();
            if let [to] = to {
                block.term = crate::ori::ir::Term::Jump(BlockId(*to));
            }
            func.blocks.push(block);
            func.layout.push(BlockId(i as u32));
        }
        assert_eq!(Cfg::new(&func).order.len(), 100_001);
    }
}
