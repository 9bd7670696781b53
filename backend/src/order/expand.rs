//! Unrolls loops in the control flow of the input, as the compiler claims to have done.
//!
//! The claims name the branch of each loop, and the pieces to which its iterations were copied. The loops themselves
//! are found here. Each copy of an iteration has all statements of the loop and the same control flow, except that the
//! claimed branch repeats or leaves the loop only at the end of a piece. So each copy of a statement has its own
//! position in program order, and must have its own instructions.

use super::program::switch;
use crate::copies::{Piece, Statements, Unrolled};
use crate::input::SrcId;
use crate::ori::cfg::Cfg;
use crate::ori::dominators::dominators;
use crate::ori::ir::{self, Block, BlockId};
use crate::ori::loops::Loops;
use rustc_hash::{FxHashMap, FxHashSet};

/// A run of statements without a jump into or out of its middle, or a copy of such a run.
#[derive(Clone, Debug)]
pub(super) struct Node {
    /// The index of the run.
    pub(super) run: usize,
    /// The number of the copy.
    pub(super) copy: u32,
}

/// The control flow of the input and its copies.
pub(super) struct Expansion<'a> {
    pub(super) graph: ir::Function,
    /// Indexed by block.
    pub(super) nodes: Vec<Node>,
    /// Statements and copies that are claimed to be never executed.
    pub(super) gone: FxHashSet<SrcId>,
    statements: Statements,
    /// The statements of each run.
    sources: &'a [Vec<SrcId>],
}

/// A claim that the control flow contradicts: the branch in the claim, and the contradiction.
pub(super) type Wrong = (SrcId, &'static str);

impl<'a> Expansion<'a> {
    pub(super) fn new(graph: ir::Function, statements: Statements, sources: &'a [Vec<SrcId>]) -> Self {
        let nodes = (0..graph.blocks.len()).map(|run| Node { run, copy: 0 }).collect();
        Expansion { graph, nodes, gone: FxHashSet::default(), statements, sources }
    }

    /// Unrolls the claimed loops. `never`: the statements that are claimed to be never executed.
    pub(super) fn expand(&mut self, unrolled: &[Unrolled], never: &[SrcId]) -> Result<(), Wrong> {
        let mut known = 0;
        let all = self.sources.iter().enumerate();
        let runs: FxHashMap<SrcId, usize> =
            all.flat_map(|(run, sources)| sources.iter().map(move |src| (*src, run))).collect();
        for round in unrolled.chunk_by(|a, b| a.round == b.round) {
            let cfg = Cfg::new(&self.graph);
            let tree = dominators(&cfg, &self.graph);
            let loops = Loops::new(&self.graph, &cfg, &tree);
            let places: FxHashMap<(usize, u32), BlockId> = self
                .nodes
                .iter()
                .enumerate()
                .map(|(i, node)| ((node.run, node.copy), BlockId(i as u32)))
                .collect();
            let mut taken = FxHashSet::default();
            for one in round {
                let known_now = one.never.clamp(known, never.len());
                self.gone.extend(&never[known..known_now]);
                known = known_now;
                let wrong = |what: &'static str| (one.branch, what);
                let run = runs.get(&self.statements.original(one.branch)).copied();
                let copy = self.statements.copy_number(one.branch);
                let branch = run.and_then(|run| places.get(&(run, copy)).copied());
                let around = branch.and_then(|branch| Some((branch, loops.innermost(branch)?)));
                let (branch, id) = around.ok_or_else(|| wrong("is unrolled, but is in no loop"))?;
                let body = loops.blocks_outside(id, |_| false);
                if !body.iter().all(|b| taken.insert(*b)) {
                    return Err(wrong("is unrolled twice"));
                }
                let fits = body.iter().all(|b| self.nodes[b.index()].copy < one.copies.max(1));
                if one.pieces.iter().any(|piece| piece.iterations == 0) || one.pieces.is_empty() || !fits {
                    return Err(wrong("is unrolled, but not into pieces"));
                }
                self.copy(one, branch, loops.get(id).header, &body, &cfg);
            }
        }
        self.gone.extend(&never[known..]);
        Ok(())
    }

    /// Copies a loop.
    fn copy(&mut self, one: &Unrolled, branch: BlockId, header: BlockId, body: &[BlockId], cfg: &Cfg) {
        let index: FxHashMap<BlockId, usize> = body.iter().enumerate().map(|(i, b)| (*b, i)).collect();
        let base = self.nodes.len();
        // The first iteration keeps its blocks.
        let block_of = |iteration: usize, b: BlockId| match (iteration, index.get(&b)) {
            (0, _) | (_, None) => b,
            (_, Some(i)) => BlockId((base + (iteration - 1) * body.len() + i) as u32),
        };
        let mut starts = Vec::new();
        let mut next = 0;
        for piece in &one.pieces {
            starts.push(next);
            next += piece.iterations as usize;
        }
        let heads: Vec<BlockId> = starts.iter().map(|&start| block_of(start, header)).collect();
        let ways: Vec<Vec<BlockId>> =
            body.iter().map(|b| self.graph.block(*b).term.successors().to_vec()).collect();
        let outside = |way: &&BlockId| !index.contains_key(*way);
        let exits: Vec<BlockId> = ways[index[&branch]].iter().filter(outside).copied().collect();
        let sources: Vec<Node> = body.iter().map(|b| self.nodes[b.index()].clone()).collect();
        for (p, (piece, &start)) in one.pieces.iter().zip(&starts).enumerate() {
            for within in 0..piece.iterations as usize {
                let iteration = start + within;
                let last = within + 1 == piece.iterations as usize;
                // Whether the loop may end with this iteration.
                let ends = last && (!one.known || p + 1 == heads.len());
                let again = repetition(piece, p, last, &heads, || block_of(iteration + 1, header));
                for ((&b, ways), node) in body.iter().zip(&ways).zip(&sources) {
                    let mut to = Vec::new();
                    for &way in ways {
                        match index.contains_key(&way) {
                            _ if way == header => {
                                to.extend(&again);
                                // A loop with its test at the start ends with the test after its last iteration.
                                to.extend(exits.iter().filter(|_| ends && b != branch));
                            }
                            true => to.push(block_of(iteration, way)),
                            // The branch does not leave the loop here.
                            false if b == branch && !ends => {}
                            false => to.push(way),
                        }
                    }
                    let copy = node.copy + iteration as u32 * one.copies.max(1);
                    self.set(block_of(iteration, b), Node { run: node.run, copy }, switch(to));
                    self.copy_gone(node, copy);
                }
            }
        }
        if heads.len() > 1 && !one.known {
            for &b in cfg.preds(header).iter().filter(|b| !index.contains_key(b)) {
                let mut ways = self.graph.block(b).term.successors().to_vec();
                ways.extend(&heads[1..]);
                self.graph.block_mut(b).term = switch(ways);
            }
        }
    }

    fn set(&mut self, b: BlockId, node: Node, term: ir::Term) {
        if b.index() == self.nodes.len() {
            self.nodes.push(node);
            self.graph.blocks.push(Block::default());
            self.graph.layout.push(b);
        } else {
            self.nodes[b.index()] = node;
        }
        self.graph.block_mut(b).term = term;
    }

    /// Marks copies of statements that are never executed in the loop.
    fn copy_gone(&mut self, node: &Node, copy: u32) {
        if self.gone.is_empty() || copy == node.copy {
            return;
        }
        for src in &self.sources[node.run] {
            let of = |copy| self.statements.in_iteration(*src, copy, 1);
            if self.gone.contains(&of(node.copy)) {
                self.gone.insert(of(copy));
            }
        }
    }
}

/// The target of an iteration that replaces the back edge to the header.
fn repetition(
    piece: &Piece,
    index: usize,
    last: bool,
    heads: &[BlockId],
    next: impl Fn() -> BlockId,
) -> Vec<BlockId> {
    if !last {
        return vec![next()];
    }
    let again = piece.repeats.then_some(heads[index]);
    again.into_iter().chain(heads[index + 1..].iter().copied()).collect()
}
