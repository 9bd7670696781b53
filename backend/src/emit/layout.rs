//! How blocks follow each other: which are emitted, and by what branches each is left.
//!
//! Empty blocks that only jump are skipped over, a jump to a block that only exits becomes an `EXIT`, and a
//! branch to the next block becomes a fall-through.

use crate::input::SrcId;
use crate::mach;
use crate::ori::ir::{BlockId, File, Function, Src, SrcKind, Term};
use crate::ori::op::Op;
use smallvec::{SmallVec, smallvec};

/// One branch at the end of a block. The last of a block always leaves, or control falls through after it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Leave {
    /// [`Src::TRUE`] for always.
    pub(super) guard: Src,
    pub(super) to: BranchTarget,
    /// The statement that it belongs to: the branch, or for an exit that control falls into, the one that exits.
    pub(super) src: SrcId,
}

/// Where a branch leads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum BranchTarget {
    Block(BlockId),
    /// The thread ends.
    Exit,
    /// Back to the caller.
    Return,
    /// One of the targets of a [`Term::Switch`].
    Switch,
}

pub(super) struct Plan {
    /// The Ori blocks to emit.
    pub(super) order: Vec<BlockId>,
    /// The branches at the end of each; none: control falls through. Each ends a machine block.
    pub(super) leaves: Vec<SmallVec<[Leave; 2]>>,
    /// The first machine block of each Ori block that is emitted.
    first: Vec<Option<mach::BlockId>>,
    /// For each block, the one that stands for it; itself unless it is skipped.
    resolved: Vec<BlockId>,
    /// Where each block is in the layout.
    position: Vec<usize>,
    /// How many machine blocks there are.
    pub(super) machine_blocks: u32,
}

impl Plan {
    pub(super) fn of(func: &Function) -> Plan {
        let resolved: Vec<BlockId> =
            (0..func.blocks.len()).map(|b| resolve(func, BlockId(b as u32))).collect();
        let order = reachable(func, &resolved);
        let mut position = vec![usize::MAX; func.blocks.len()];
        func.layout.iter().enumerate().for_each(|(at, block)| position[block.index()] = at);
        let mut plan = Plan {
            order,
            leaves: Vec::new(),
            first: vec![None; func.blocks.len()],
            resolved,
            position,
            machine_blocks: 0,
        };
        let mut next = 0;
        for (i, &block) in plan.order.iter().enumerate() {
            let leaves = plan.leaves_of(func, block, plan.order.get(i + 1).copied());
            plan.first[block.index()] = Some(mach::BlockId(next));
            // A call ends a machine block.
            let calls = func.block(block).insts.iter().filter(|inst| inst.op.is_call()).count();
            next += (calls + leaves.len().max(1)) as u32;
            plan.leaves.push(leaves);
        }
        plan.machine_blocks = next;
        plan
    }

    /// The machine block that a branch to an Ori block leads to.
    pub(super) fn machine_block(&self, block: BlockId) -> Option<mach::BlockId> {
        self.first[self.resolved[block.index()].index()]
    }

    fn leaves_of(&self, func: &Function, block: BlockId, next: Option<BlockId>) -> SmallVec<[Leave; 2]> {
        let place = |to: BlockId| {
            let to = self.resolved[to.index()];
            if only_exits(func, to) { BranchTarget::Exit } else { BranchTarget::Block(to) }
        };
        let (src, here) = (func.block(block).term_src, self.position[block.index()]);
        // Control that falls into an exit leaves at its statement, control that jumps there at the jump.
        let falling = |to: BlockId| {
            let to = self.resolved[to.index()];
            let (exit, after) = (self.position[to.index()], next.map(|next| self.position[next.index()]));
            let falls = here < exit && after.is_none_or(|after| exit < after);
            if only_exits(func, to) && falls { func.block(to).term_src } else { src }
        };
        let always = |block: BlockId| -> SmallVec<[Leave; 2]> {
            let to = place(block);
            if next.is_some_and(|next| to == BranchTarget::Block(next)) {
                return SmallVec::new();
            }
            smallvec![Leave { guard: Src::TRUE, to, src: falling(block) }]
        };
        let only = |to: BranchTarget| smallvec![Leave { guard: Src::TRUE, to, src }];
        match &func.block(block).term {
            Term::Jump(to) => always(*to),
            Term::Branch { cond, then: if_true, els: if_false, .. } => {
                let (then, els) = (place(*if_true), place(*if_false));
                if cond.is_true() || then == els {
                    return always(*if_true);
                }
                if cond.not().is_true() {
                    return always(*if_false);
                }
                // Exits have no uniform predicates.
                let block = |to: BlockId| BranchTarget::Block(self.resolved[to.index()]);
                let (then, els) =
                    if is_uniform(cond) { (block(*if_true), block(*if_false)) } else { (then, els) };
                let falls = |to: BranchTarget| next.is_some_and(|next| to == BranchTarget::Block(next));
                // Backwards first, so that an iteration of a loop ends with one branch.
                let claim = |to: BranchTarget| match to {
                    to if falls(to) => 0,
                    BranchTarget::Block(to) if self.position[to.index()] <= here => 3,
                    BranchTarget::Exit => 2,
                    _ => 1,
                };
                let (leave, rest) = if claim(els) > claim(then) {
                    (Leave { guard: cond.not(), to: els, src }, *if_true)
                } else {
                    (Leave { guard: *cond, to: then, src }, *if_false)
                };
                let mut leaves: SmallVec<[Leave; 2]> = smallvec![leave];
                leaves.extend(always(rest));
                leaves
            }
            Term::Switch { .. } => only(BranchTarget::Switch),
            // What is not reached must still not fall into the next block.
            Term::Exit | Term::Unreachable => only(BranchTarget::Exit),
            Term::Ret => only(BranchTarget::Return),
        }
    }
}

/// Of the uniform datapath.
pub(super) fn is_uniform(cond: &Src) -> bool {
    matches!(cond.kind, SrcKind::Reg(reg) if reg.file == File::UP)
}

fn only_exits(func: &Function, block: BlockId) -> bool {
    let block = func.block(block);
    block.insts.is_empty() && block.term == Term::Exit
}

/// The block that a jump to `block` reaches first with something to do.
fn resolve(func: &Function, block: BlockId) -> BlockId {
    let mut at = block;
    for _ in 0..func.blocks.len() {
        match func.block(at) {
            b if !b.insts.is_empty() => return at,
            b => match b.term {
                Term::Jump(to) => at = to,
                _ => return at,
            },
        }
    }
    // An endless loop of empty blocks.
    block
}

/// The blocks that control can reach, in layout order.
fn reachable(func: &Function, resolved: &[BlockId]) -> Vec<BlockId> {
    let mut seen = vec![false; func.blocks.len()];
    let mut work: Vec<BlockId> = func.layout.first().copied().into_iter().collect();
    while let Some(block) = work.pop() {
        if std::mem::replace(&mut seen[block.index()], true) {
            continue;
        }
        let block = func.block(block);
        let meeting = block.insts.iter().filter_map(|inst| match inst.op {
            Op::Bssy { target, .. } => Some(target),
            _ => None,
        });
        // Who goes to a block that only exits, exits itself, unless a list of targets or a branch of the uniform datapath names it.
        let is_listed = match &block.term {
            Term::Branch { cond, .. } => is_uniform(cond),
            term => matches!(term, Term::Switch { .. }),
        };
        let is_needed = |b: &BlockId| is_listed || !only_exits(func, resolved[b.index()]);
        let next = block.term.successors().into_iter().filter(is_needed);
        work.extend(next.chain(meeting).map(|b| resolved[b.index()]));
    }
    func.layout.iter().copied().filter(|b| seen[b.index()]).collect()
}
