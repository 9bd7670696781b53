//! The blocks that only some lanes of a warp come to.

use rustc_hash::FxHashMap;

use ptx_backend::input::Launch;
use ptx_isa::FormId;

use super::{BlockId, Flow};

/// What is known of the lanes that come to a block.
#[derive(Clone, Copy, Debug)]
pub struct Split {
    /// The block whose branch parts the warp, the last one in text order.
    pub branch: BlockId,
    /// Lanes that do not come here and do not end before those that do.
    pub absent: u32,
}

/// The blocks on one side of a branch by lane, between the branch and the place where its sides meet.
pub(super) fn splits(flow: &Flow<'_>, launch: &Launch) -> FxHashMap<BlockId, Split> {
    let graph = flow.graph();
    let mut splits: FxHashMap<BlockId, Split> = FxHashMap::default();
    let mut seen = [vec![0u32; graph.blocks().len()], vec![0u32; graph.blocks().len()]];
    let mut walk = 0;
    // Steps; what lies behind is not split as far as anyone knows.
    let mut budget = 100_000 + 16 * graph.blocks().len();
    for branch in graph.reached_blocks() {
        let &[taken, passed] = graph.successors(branch) else { continue };
        let Some(guard) = flow.instructions(branch).next_back().and_then(|jump| jump.guard) else { continue };
        let value = flow.register(guard.reg);
        if taken == passed || !value.splits_warps(launch) {
            continue;
        }
        let value = if guard.negated { value.opposite() } else { value };
        let Some(meet) = flow.post_dominators().parent(branch) else { continue };
        walk += 1;
        let mut sides = [Vec::new(), Vec::new()];
        for (side, start) in [taken, passed].into_iter().enumerate() {
            let mut work = vec![start];
            while let Some(block) = work.pop() {
                if block == meet || block == branch || seen[side][block as usize] == walk {
                    continue;
                }
                if budget == 0 {
                    return splits;
                }
                budget -= 1;
                seen[side][block as usize] = walk;
                sides[side].push(block);
                work.extend(graph.successors(block));
            }
        }
        let rejoins = flow
            .instructions(meet)
            .next()
            .is_some_and(|first| !matches!(first.opcode.form, FormId::Ret | FormId::Exit));
        for side in 0..2 {
            let holds = if side == 0 { value.clone() } else { value.clone().opposite() };
            let absent = holds.lanes().filter(|_| rejoins).map_or(0, |lanes| !lanes);
            let alone = |block: &&BlockId| {
                seen[1 - side][**block as usize] != walk && flow.dominators().dominates(branch, **block)
            };
            for &block in sides[side].iter().filter(alone) {
                let split = splits.entry(block).or_insert(Split { branch, absent: 0 });
                *split = Split { branch, absent: split.absent | absent };
            }
        }
    }
    splits
}
