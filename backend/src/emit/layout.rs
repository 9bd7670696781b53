//! The order of blocks: which blocks are emitted, and which branches end each.
//!
//! Blocks stay in the order of the function, except that threads meet at a higher address than where they set the barrier.
//! Empty blocks that only jump are skipped. A jump to a block that only exits becomes an `EXIT`. A branch to the next
//! block becomes a fall-through.

use crate::input::SrcId;
use crate::mach;
use crate::ori::ir::{BlockId, File, Function, Src, SrcKind, Term};
use crate::ori::op::Op;
use smallvec::{SmallVec, smallvec};

/// One branch at the end of a block. Control falls through after the last one, unless it is unconditional.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Leave {
    /// [`Src::TRUE`] for an unconditional branch.
    pub(super) guard: Src,
    pub(super) to: BranchTarget,
    /// The statement of the branch. For an `EXIT` that replaces a fall-through, the statement that exits.
    pub(super) src: SrcId,
}

/// The target of a branch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum BranchTarget {
    Block(BlockId),
    /// The thread ends.
    Exit,
    /// Return to the caller.
    Return,
    /// One of the targets of a [`Term::Switch`].
    Switch,
}

pub(super) struct Plan {
    /// The Ori blocks to emit.
    pub(super) order: Vec<BlockId>,
    /// The branches at the end of each block; if there are none, control falls through. Each branch ends a machine
    /// block.
    pub(super) leaves: Vec<SmallVec<[Leave; 2]>>,
    /// The first machine block of each emitted Ori block.
    first: Vec<Option<mach::BlockId>>,
    /// For each block, the block that is emitted in its place: the block itself, unless it is skipped.
    resolved: Vec<BlockId>,
    /// The position of each block in the layout.
    position: Vec<usize>,
    /// The number of blocks with a barrier of all threads before each position of the layout.
    waits: Vec<u32>,
    /// The number of machine blocks.
    pub(super) machine_blocks: u32,
}

impl Plan {
    pub(super) fn of(func: &Function) -> Plan {
        let resolved: Vec<BlockId> =
            (0..func.blocks.len()).map(|b| resolve(func, BlockId(b as u32))).collect();
        let layout = with_meetings_after_barriers(func);
        let order = reachable(func, &layout, &resolved);
        let mut position = vec![usize::MAX; func.blocks.len()];
        layout.iter().enumerate().for_each(|(at, block)| position[block.index()] = at);
        let waits_in =
            |b: &BlockId| func.block(*b).insts.iter().any(|inst| matches!(inst.op, Op::Bar { .. }));
        let sum = |sum: &mut u32, b: &BlockId| {
            *sum += u32::from(waits_in(b));
            Some(*sum)
        };
        let waits = std::iter::once(0).chain(layout.iter().scan(0, sum)).collect();
        let mut plan = Plan {
            order,
            leaves: Vec::new(),
            first: vec![None; func.blocks.len()],
            resolved,
            position,
            waits,
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

    /// The machine block for a branch to an Ori block.
    pub(super) fn machine_block(&self, block: BlockId) -> Option<mach::BlockId> {
        self.first[self.resolved[block.index()].index()]
    }

    fn leaves_of(&self, func: &Function, block: BlockId, next: Option<BlockId>) -> SmallVec<[Leave; 2]> {
        let place = |to: BlockId| {
            let to = self.resolved[to.index()];
            if only_exits(func, to) { BranchTarget::Exit } else { BranchTarget::Block(to) }
        };
        let (src, here) = (func.block(block).term_src, self.position[block.index()]);
        // If control falls into an exit, it leaves at the statement of the exit. If control jumps there, it leaves at
        // the jump.
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
            Term::Branch { cond, then: if_true, els: if_false, uniform } => {
                let (then, els) = (place(*if_true), place(*if_false));
                if cond.is_true() || then == els {
                    return always(*if_true);
                }
                if cond.not().is_true() {
                    return always(*if_false);
                }
                // `EXIT` cannot have a uniform predicate.
                let block = |to: BlockId| BranchTarget::Block(self.resolved[to.index()]);
                let (then, els) =
                    if is_uniform(cond) { (block(*if_true), block(*if_false)) } else { (then, els) };
                let falls = |to: BranchTarget| next.is_some_and(|next| to == BranchTarget::Block(next));
                // Backward branches come first, so that an iteration of a loop ends with one branch. But threads that
                // exit must have done so when others arrive at a barrier in the loop, which counts warps.
                let waits = |to: BlockId| self.waits[here + 1] > self.waits[self.position[to.index()]];
                let is_back = |to: BlockId| self.position[to.index()] <= here && (*uniform || !waits(to));
                let claim = |to: BranchTarget| match to {
                    to if falls(to) => 0,
                    BranchTarget::Block(to) if is_back(to) => 3,
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
            // A block that is never reached must still not fall into the next block.
            Term::Exit | Term::Unreachable => only(BranchTarget::Exit),
            Term::Ret => only(BranchTarget::Return),
        }
    }
}

/// Whether the condition is a uniform predicate.
pub(super) fn is_uniform(cond: &Src) -> bool {
    matches!(cond.kind, SrcKind::Reg(reg) if reg.file == File::UP)
}

fn only_exits(func: &Function, block: BlockId) -> bool {
    let block = func.block(block);
    block.insts.is_empty() && block.term == Term::Exit
}

/// The first block with instructions that a jump to `block` reaches.
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

/// The layout, in which each block where threads meet comes after the block that sets its barrier. In code of ptxas, the
/// target of `BSSY` is always at a higher address; hardware has not been seen with another one.
fn with_meetings_after_barriers(func: &Function) -> Vec<BlockId> {
    let mut order = Order { func, before: vec![0; func.blocks.len()], placed: Vec::new(), held: Vec::new() };
    let all = func.layout.iter().flat_map(|b| meetings(func, *b));
    all.for_each(|meet| order.before[meet.index()] += 1);
    for (i, &b) in func.layout.iter().enumerate() {
        order.add(b);
        let next = func.layout.get(i + 1);
        if !next.is_some_and(|next| func.block(b).term.successors().contains(next)) {
            std::mem::take(&mut order.held).into_iter().for_each(|b| order.add(b));
        }
    }
    order.placed.extend(order.held);
    order.placed
}

/// The blocks where threads meet after they set barriers in a block.
fn meetings(func: &Function, b: BlockId) -> impl Iterator<Item = BlockId> {
    func.block(b).insts.iter().filter_map(|inst| match inst.op {
        Op::Bssy { target, .. } => Some(target),
        _ => None,
    })
}

struct Order<'a> {
    func: &'a Function,
    /// Indexed by block: the number of blocks that set a barrier for it and are not placed yet.
    before: Vec<u32>,
    placed: Vec<BlockId>,
    /// Blocks that have to wait.
    held: Vec<BlockId>,
}

impl Order<'_> {
    fn add(&mut self, b: BlockId) {
        if self.before[b.index()] > 0 {
            self.held.push(b);
            return;
        }
        self.placed.push(b);
        meetings(self.func, b).for_each(|meet| self.before[meet.index()] -= 1);
    }
}

/// The blocks that control can reach, in layout order.
fn reachable(func: &Function, layout: &[BlockId], resolved: &[BlockId]) -> Vec<BlockId> {
    let mut seen = vec![false; func.blocks.len()];
    let mut work: Vec<BlockId> = layout.first().copied().into_iter().collect();
    while let Some(block) = work.pop() {
        if std::mem::replace(&mut seen[block.index()], true) {
            continue;
        }
        let meeting = meetings(func, block);
        let block = func.block(block);
        // A branch to a block that only exits becomes an exit itself, except in target lists and branches of the
        // uniform datapath.
        let is_listed = match &block.term {
            Term::Branch { cond, .. } => is_uniform(cond),
            term => matches!(term, Term::Switch { .. }),
        };
        let is_needed = |b: &BlockId| is_listed || !only_exits(func, resolved[b.index()]);
        let next = block.term.successors().into_iter().filter(is_needed);
        work.extend(next.chain(meeting).map(|b| resolved[b.index()]));
    }
    layout.iter().copied().filter(|b| seen[b.index()]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ori::text;

    #[test]
    fn threads_meet_after_the_block_that_sets_their_barrier() {
        let text = "entry \"f\" {
b0:
%v0:r = S2R{sr=0x21}\n%v1:p, _ = ISETP.NE.U32.AND %v0, RZ, PT\nJUMP b3
b1:
STS RZ, RZ, RZ\nJUMP b2
b2:
BSYNC %v2\nSTS RZ, RZ, RZ\nJUMP b3
b3:
%v2:b = BSSY{target=b2}\nBRA %v1, b1, b4
b4:
STS RZ, RZ, %v0\nJUMP b2
b5:
EXIT\n}";
        let func = text::parse(text).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(with_meetings_after_barriers(&func), [0, 1, 3, 4, 2, 5].map(BlockId));
    }

    /// Threads that exit at the end of a loop leave before the others arrive at its barrier, unless all leave together.
    #[test]
    fn threads_exit_before_others_wait_for_the_block() {
        let first = |inside: &str, branch: &str| {
            let text = format!(
                "entry \"f\" {{\nb0:\n%v0:r = S2R{{sr=0x21}}\n%v1:p, _ = ISETP.NE.U32.AND %v0, RZ, PT\nJUMP b1\n\
                 b1:\n{inside}\nSTS RZ, RZ, RZ\n{branch} %v1, b1, b2\nb2:\nEXIT\n}}"
            );
            let func = text::parse(&text).unwrap_or_else(|e| panic!("{e}"));
            let plan = Plan::of(&func);
            plan.leaves[1][0].to
        };
        assert_eq!(first("BAR.SYNC RZ", "BRA"), BranchTarget::Exit);
        assert_eq!(first("BAR.SYNC RZ", "BRA.U"), BranchTarget::Block(BlockId(1)));
        assert_eq!(first("", "BRA"), BranchTarget::Block(BlockId(1)));
    }
}
