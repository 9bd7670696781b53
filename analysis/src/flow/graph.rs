//! The control flow graph of a body.

use std::ops::Range;

use ptx_backend::input::{Function, LabelId, Operand};
use ptx_isa::{Facts, FormId};

use super::{Code, Instr, Survey};

/// Index of a basic block, in text order. Block 0 is the entry.
pub type BlockId = u32;

/// The edges of a graph, sorted by their source.
#[derive(Clone, Debug)]
pub(super) struct Edges {
    /// For each node, the start of its edges in `to`; there is one entry more than nodes.
    start: Box<[u32]>,
    to: Box<[u32]>,
}

impl Edges {
    /// `edges` may be in any order; the edges of one node keep their order.
    pub(super) fn new(nodes: usize, edges: &[(u32, u32)]) -> Self {
        let mut start = vec![0u32; nodes + 1];
        for &(from, _) in edges {
            start[from as usize + 1] += 1;
        }
        for node in 0..nodes {
            start[node + 1] += start[node];
        }
        let mut next = start.clone();
        let mut to = vec![0; edges.len()];
        for &(from, target) in edges {
            let slot = &mut next[from as usize];
            to[*slot as usize] = target;
            *slot += 1;
        }
        Self { start: start.into(), to: to.into() }
    }

    pub(super) fn nodes(&self) -> usize {
        self.start.len() - 1
    }

    pub(super) fn of(&self, node: u32) -> &[u32] {
        &self.to[self.start[node as usize] as usize..self.start[node as usize + 1] as usize]
    }
}

/// How a block ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// Control continues at the successors, possibly by falling through.
    Continues,
    /// The thread or the function ends here: `ret`, `exit`, or the end of the body. If this depends on a guard, the
    /// block also has successors.
    Leaves,
    /// The program stops here.
    Traps,
}

/// Basic blocks and the edges between them.
#[derive(Clone, Debug)]
pub struct Graph {
    /// For each block, the index of its first statement in the [`Code`]; there is one entry more than blocks.
    starts: Vec<u32>,
    ends: Box<[End]>,
    successors: Edges,
    predecessors: Edges,
    reached: Box<[bool]>,
}

impl Graph {
    pub(super) fn new(function: &Function, code: &Code, survey: &Survey) -> Self {
        let starts = leaders(function, code, survey);
        let blocks = starts.len() - 1;
        let mut block_of_label = vec![u32::MAX; function.labels as usize];
        for block in 0..blocks {
            for statement in starts[block]..starts[block + 1] {
                let Some(label) = code.label_at(statement as usize) else { break };
                block_of_label[label.0 as usize] = block as u32;
            }
        }
        let mut edges = Vec::with_capacity(2 * blocks);
        let mut ends = vec![End::Continues; blocks];
        for block in 0..blocks {
            let from = block as u32;
            let next = (block + 1 < blocks).then_some(from + 1);
            let last = (starts[block]..starts[block + 1]).next_back();
            let last = match last.and_then(|last| code.instruction_at(last as usize)) {
                Some(instr) if is_jump(instr) => instr,
                _ => {
                    match next {
                        Some(next) => edges.push((from, next)),
                        None => ends[block] = End::Leaves,
                    }
                    continue;
                }
            };
            let mut go = |label: &LabelId| {
                let to = block_of_label[label.0 as usize];
                if to != u32::MAX {
                    edges.push((from, to));
                }
            };
            match (last.opcode.form, last.operands) {
                (FormId::Bra, [Operand::Label(label), ..]) => go(label),
                (FormId::BrxIdx, [_, Operand::Targets(list), ..]) => {
                    function.targets[*list as usize].iter().for_each(go);
                }
                (FormId::Trap, _) => ends[block] = End::Traps,
                _ => ends[block] = End::Leaves,
            }
            if last.guard.is_some() {
                match next {
                    Some(next) => edges.push((from, next)),
                    None => ends[block] = End::Leaves,
                }
                if next.is_some() && ends[block] == End::Traps {
                    ends[block] = End::Continues;
                }
            }
        }
        let successors = Edges::new(blocks, &edges);
        for (from, to) in &mut edges {
            std::mem::swap(from, to);
        }
        let predecessors = Edges::new(blocks, &edges);
        let reached = reach(&successors, &[0]);
        Self { starts, ends: ends.into(), successors, predecessors, reached }
    }

    /// Every block, in text order.
    pub fn blocks(&self) -> Range<BlockId> {
        0..self.ends.len() as BlockId
    }

    /// The blocks that are reachable from the entry.
    pub fn reached_blocks(&self) -> impl Iterator<Item = BlockId> {
        self.blocks().filter(|&block| self.is_reached(block))
    }

    /// The statements of a block, as indices into the [`Code`].
    pub fn statements(&self, block: BlockId) -> Range<usize> {
        self.starts[block as usize] as usize..self.starts[block as usize + 1] as usize
    }

    /// The block of a statement, an index into the [`Code`].
    pub fn block_of(&self, statement: usize) -> BlockId {
        (self.starts.partition_point(|&start| start as usize <= statement) - 1) as BlockId
    }

    /// The successors of a block. For a guarded branch, the target is first.
    pub fn successors(&self, block: BlockId) -> &[BlockId] {
        self.successors.of(block)
    }

    pub fn predecessors(&self, block: BlockId) -> &[BlockId] {
        self.predecessors.of(block)
    }

    pub fn end(&self, block: BlockId) -> End {
        self.ends[block as usize]
    }

    /// Whether a block is reachable from the entry.
    pub fn is_reached(&self, block: BlockId) -> bool {
        self.reached[block as usize]
    }

    /// The blocks that are reachable from `roots`, including these.
    pub fn reached_from(&self, roots: &[BlockId]) -> Box<[bool]> {
        reach(&self.successors, roots)
    }

    /// The blocks from which one of `roots` is reachable, including these.
    pub fn reaching(&self, roots: &[BlockId]) -> Box<[bool]> {
        reach(&self.predecessors, roots)
    }

    pub(super) fn forward(&self) -> (&Edges, &Edges) {
        (&self.successors, &self.predecessors)
    }
}

/// Whether the instruction ends its block.
fn is_jump(instr: Instr<'_>) -> bool {
    ptx_isa::form(instr.opcode.form).facts.has(Facts::TERMINATES)
}

/// The first statements of blocks, and the number of statements. A label without branches to it starts no block, unless
/// control cannot reach it from above.
fn leaders(function: &Function, code: &Code, survey: &Survey) -> Vec<u32> {
    let mut is_target = vec![false; function.labels as usize];
    for label in function.targets.iter().flatten() {
        is_target[label.0 as usize] = true;
    }
    for &index in survey.landmarks() {
        if let Some(instr) = code.instruction_at(index as usize)
            && instr.opcode.form == FormId::Bra
            && let Some(Operand::Label(label)) = instr.operands.first()
        {
            is_target[label.0 as usize] = true;
        }
    }
    let statements = code.len() as u32;
    let mut starts = vec![0];
    let mut start = 0;
    // For the last block, the number of labels at its start.
    let mut labels = 0;
    for &index in survey.landmarks() {
        let next = match code.label_at(index as usize) {
            Some(label) => {
                let has_only_labels = index == start + labels;
                if has_only_labels {
                    labels += 1;
                }
                if !has_only_labels && is_target[label.0 as usize] { index } else { continue }
            }
            None if code.instruction_at(index as usize).is_some_and(is_jump) => index + 1,
            None => continue,
        };
        if next < statements {
            start = next;
            labels = u32::from(next == index);
            starts.push(next);
        }
    }
    starts.push(statements);
    starts
}

fn reach(edges: &Edges, roots: &[u32]) -> Box<[bool]> {
    let mut seen = vec![false; edges.nodes()];
    let mut work = Vec::new();
    for &root in roots {
        if !std::mem::replace(&mut seen[root as usize], true) {
            work.push(root);
        }
    }
    while let Some(node) = work.pop() {
        for &to in edges.of(node) {
            if !std::mem::replace(&mut seen[to as usize], true) {
                work.push(to);
            }
        }
    }
    seen.into()
}
