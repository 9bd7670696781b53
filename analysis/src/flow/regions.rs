//! The blocks between a branch and the point where its sides meet, and the lanes of a warp that reach them.

use rustc_hash::FxHashMap;

use ptx_backend::input::Launch;
use ptx_isa::FormId;

use super::{BlockId, Flow};

/// The blocks on the two sides of a branch.
pub(super) struct Sides<'s> {
    /// The blocks that are reached if the branch is taken, and if it is not taken, up to the point where the sides meet
    /// or the branch itself.
    pub(super) blocks: [&'s [BlockId]; 2],
    seen: &'s [Vec<u32>; 2],
    walk: u32,
}

impl Sides<'_> {
    /// The blocks of one side that are only reached through the branch and this side.
    pub(super) fn alone(
        &self,
        flow: &Flow<'_>,
        branch: BlockId,
        side: usize,
    ) -> impl Iterator<Item = BlockId> {
        let other = &self.seen[1 - side];
        let is_alone = move |block: &BlockId| {
            other[*block as usize] != self.walk && flow.dominators().dominates(branch, *block)
        };
        self.blocks[side].iter().copied().filter(is_alone)
    }
}

/// Finds the sides of branches, within a budget of steps.
pub(super) struct Regions<'f, 'a> {
    flow: &'f Flow<'a>,
    /// For each side and block: the number of the last walk that reached it.
    seen: [Vec<u32>; 2],
    walk: u32,
    blocks: [Vec<BlockId>; 2],
    work: Vec<BlockId>,
    budget: usize,
}

impl<'f, 'a> Regions<'f, 'a> {
    pub(super) fn new(flow: &'f Flow<'a>) -> Self {
        let count = flow.graph().blocks().len();
        Self {
            flow,
            seen: [vec![0; count], vec![0; count]],
            walk: 0,
            blocks: [Vec::new(), Vec::new()],
            work: Vec::new(),
            budget: 100_000 + 16 * count,
        }
    }

    /// `None` if the sides only meet at the end of the function, because no thread waits for threads that have ended;
    /// also `None` if the budget is used up.
    pub(super) fn sides(&mut self, branch: BlockId) -> Option<Sides<'_>> {
        let graph = self.flow.graph();
        let &[taken, passed] = graph.successors(branch) else { return None };
        let meet = self.flow.post_dominators().parent(branch)?;
        if matches!(self.flow.instructions(meet).next()?.opcode.form, FormId::Ret | FormId::Exit) {
            return None;
        }
        self.walk += 1;
        for (side, start) in [taken, passed].into_iter().enumerate() {
            self.blocks[side].clear();
            self.work.push(start);
            while let Some(block) = self.work.pop() {
                let seen = &mut self.seen[side][block as usize];
                if block == meet || block == branch || *seen == self.walk {
                    continue;
                }
                *seen = self.walk;
                self.budget = self.budget.checked_sub(1)?;
                self.blocks[side].push(block);
                self.work.extend(graph.successors(block));
            }
        }
        let [taken, passed] = &self.blocks;
        Some(Sides { blocks: [taken, passed], seen: &self.seen, walk: self.walk })
    }
}

/// The lanes that reach a block.
#[derive(Clone, Copy, Debug)]
pub struct Split {
    /// The block whose branch splits the warp; if there are several, the last one in text order.
    pub branch: BlockId,
    /// The lanes that do not reach the block.
    pub absent: u32,
}

/// The blocks that only some lanes reach because of a branch that certainly splits warps.
pub(super) fn splits(flow: &Flow<'_>, launch: &Launch) -> FxHashMap<BlockId, Split> {
    let mut splits: FxHashMap<BlockId, Split> = FxHashMap::default();
    let mut regions = Regions::new(flow);
    for branch in flow.graph().reached_blocks() {
        let Some(guard) = flow.branch_guard(branch) else { continue };
        let value = flow.register(guard.reg);
        if !value.splits_warps(launch) {
            continue;
        }
        let taken = if guard.negated { value.opposite() } else { value };
        let Some(sides) = regions.sides(branch) else { continue };
        for (side, holds) in [taken.clone(), taken.opposite()].into_iter().enumerate() {
            let absent = holds.lanes().map_or(0, |lanes| !lanes);
            for block in sides.alone(flow, branch, side) {
                let split = splits.entry(block).or_insert(Split { branch, absent: 0 });
                *split = Split { branch, absent: split.absent | absent };
            }
        }
    }
    splits
}
