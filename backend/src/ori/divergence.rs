//! Which values and branches are the same for all threads of a warp that execute them together.
//!
//! A value is divergent in these cases: it is computed from a divergent value; its operation has a different result in
//! each thread; it joins paths that a divergent branch opened (control dependence); or it leaves a loop that threads
//! leave at different times (temporal divergence). A value that is not proved uniform counts as divergent.

use crate::ori::cfg::{Cfg, for_each_successor};
use crate::ori::dominators::Tree;
use crate::ori::ir::{BlockId, File, Function, Inst, Src, SrcKind, Term, Value};
use crate::ori::loops::{LoopId, Loops};
use crate::ori::memory::{Effect, Kind, Space};
use crate::ori::op::{Op, ShflMode};
use crate::ori::operations::facts;
use crate::ori::signature::special;
use crate::ori::varying::{self, ALL, PLACE};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The result of the analysis for one state of a function.
#[derive(Clone, Debug)]
pub struct Divergence {
    /// For each value, the bits that may differ.
    values: Vec<u32>,
    /// For each block, whether its branch is divergent.
    branches: Vec<bool>,
}

impl Divergence {
    pub fn is_divergent(&self, v: Value) -> bool {
        self.values[v.index()] != 0
    }

    /// Whether threads of a warp may leave the block's branch in different directions.
    pub fn branch_diverges(&self, b: BlockId) -> bool {
        self.branches[b.index()]
    }

    pub fn new(func: &Function, cfg: &Cfg, post: &Tree, loops: &Loops) -> Divergence {
        let mut analysis = Analysis {
            func,
            cfg,
            post,
            loops,
            uses: Uses::new(func, cfg),
            left: vec![false; loops.loops.len()],
            left_irreducible: false,
            result: Divergence {
                values: vec![0; func.values.len()],
                branches: vec![false; func.blocks.len()],
            },
            work: Vec::new(),
            labels: vec![NO_LABEL; func.blocks.len()],
            budget: 200_000 + 32 * func.blocks.len(),
            open_joins: 0,
        };
        let phis = cfg.order.iter().flat_map(|b| &func.block(*b).phis);
        analysis.open_joins = phis.count();
        for &b in &cfg.order {
            for inst in &func.block(b).insts {
                let is_place = func.facts.warps_along_x && inst.op == Op::S2r { sr: special::TID[0] };
                if is_source(inst) {
                    let bits = if is_place && inst.guard.is_true() { PLACE } else { ALL };
                    inst.defs().for_each(|v| analysis.mark(v, bits));
                }
            }
        }
        while let Some(v) = analysis.work.pop() {
            for i in analysis.uses.start[v.index()]..analysis.uses.start[v.index() + 1] {
                analysis.visit(analysis.uses.users[i as usize], false);
            }
        }
        analysis.result
    }
}

/// The values that are the same for all threads of a block, wherever they compute them. They are computed only from
/// constants, parameters and the block's position in the grid. Unlike a uniform value, such a value does not depend on
/// which threads are together.
#[derive(Clone, Debug)]
pub struct Common {
    /// Indexed by value.
    values: Vec<bool>,
}

impl Common {
    pub fn is(&self, v: Value) -> bool {
        self.values[v.index()]
    }

    pub fn new(func: &Function, cfg: &Cfg) -> Common {
        let mut common = Common { values: vec![false; func.values.len()] };
        for inst in cfg.order.iter().flat_map(|&b| &func.block(b).insts) {
            let is_known = |src: &Src| match src.kind {
                SrcKind::Value(v) | SrcKind::Part(v, _) => common.is(v),
                SrcKind::Reg(_) | SrcKind::Undef => false,
                SrcKind::Zero | SrcKind::Pred(_) | SrcKind::Imm(_) | SrcKind::Const(_) => true,
            };
            if depends_on_sources_alone(&inst.op) && inst.guard.is_true() && inst.srcs.iter().all(is_known) {
                inst.defs().for_each(|v| common.values[v.index()] = true);
            }
        }
        common
    }
}

fn depends_on_sources_alone(op: &Op) -> bool {
    match *op {
        Op::S2r { sr } | Op::S2ur { sr } | Op::Cs2r { sr, .. } => special::is_uniform(sr),
        // The value of one thread, which all threads have.
        Op::R2ur => true,
        // These depend on the thread's own stack, or become calls.
        Op::FrameTop | Op::Compute { .. } => false,
        _ => {
            let facts = facts(op);
            facts.is_pure() && !facts.convergent
        }
    }
}

/// Whether the operation gives threads different results, for any operands.
fn is_source(inst: &Inst) -> bool {
    let facts = facts(&inst.op);
    match (inst.op, facts.effect) {
        (Op::S2r { sr } | Op::Cs2r { sr, .. }, _) => !special::is_uniform(sr),
        // All threads that waited at the barrier read the same value.
        (Op::B2r { .. }, _) => false,
        _ if reads_one_lane(inst) => false,
        // All threads that execute it together get the same value.
        (_, Effect::None | Effect::Warp { .. }) if facts.uniform => false,
        (_, Effect::Warp { .. } | Effect::Everything) => true,
        // Threads may observe different values at one address, each thread has its own local memory, and each thread
        // holds different elements of a matrix.
        (_, Effect::Memory(access)) => {
            access.kind == Kind::Update
                || access.order.is_strong()
                || access.space == Space::Local
                || facts.convergent
        }
        // An address in the thread's own stack.
        (Op::FrameTop, _) => true,
        // Registers of a calling convention and of the frame.
        (_, Effect::None | Effect::Observes) => {
            inst.uses().any(|src| matches!(src.kind, SrcKind::Reg(reg) if reg.file == File::R))
        }
    }
}

/// Whether every thread that executes the instruction reads the value of the same thread of the warp. This is how
/// programs make the number of the warp uniform.
fn reads_one_lane(inst: &Inst) -> bool {
    const WHOLE_WARP: u32 = 0x1f;
    let known = |i: usize| match inst.srcs.get(i).map(|src| src.kind) {
        Some(SrcKind::Imm(bits)) => Some(bits),
        Some(SrcKind::Zero) => Some(0),
        _ => None,
    };
    let is_whole = known(1).is_some() && known(2) == Some(WHOLE_WARP);
    inst.op == Op::Shfl { mode: ShflMode::Idx } && inst.guard.is_true() && is_whole
}

/// A reader of a value.
#[derive(Clone, Copy)]
enum User {
    Inst(BlockId, u32),
    Phi(BlockId, u32),
    Term(BlockId),
}

/// For each value, its readers, in one array.
struct Uses {
    start: Vec<u32>,
    users: Vec<User>,
}

impl Uses {
    fn new(func: &Function, cfg: &Cfg) -> Uses {
        let mut start = vec![0u32; func.values.len() + 1];
        each_use(func, cfg, |v, _| start[v.index() + 1] += 1);
        for i in 1..start.len() {
            start[i] += start[i - 1];
        }
        let mut next = start.clone();
        let mut users = vec![User::Term(BlockId(0)); start.last().copied().unwrap_or(0) as usize];
        each_use(func, cfg, |v, user| {
            users[next[v.index()] as usize] = user;
            next[v.index()] += 1;
        });
        Uses { start, users }
    }
}

fn each_use(func: &Function, cfg: &Cfg, mut visit: impl FnMut(Value, User)) {
    for &b in &cfg.order {
        let block = func.block(b);
        for (i, phi) in block.phis.iter().enumerate() {
            phi.args.iter().filter_map(|(_, a)| a.value()).for_each(|v| visit(v, User::Phi(b, i as u32)));
        }
        for (i, inst) in block.insts.iter().enumerate() {
            inst.uses().filter_map(|s| s.value()).for_each(|v| visit(v, User::Inst(b, i as u32)));
        }
        if let Some(v) = block.term.operand().and_then(Src::value) {
            visit(v, User::Term(b));
        }
    }
}

const NO_LABEL: u32 = u32::MAX;
const JOIN: u32 = 1 << 31;

struct Analysis<'a> {
    func: &'a Function,
    cfg: &'a Cfg,
    post: &'a Tree,
    loops: &'a Loops,
    uses: Uses,
    /// For each loop, whether the values that leave it are marked.
    left: Vec<bool>,
    /// Whether the values of irreducible cycles are marked.
    left_irreducible: bool,
    result: Divergence,
    work: Vec<Value>,
    /// For each block: the direction of the branch from which it is reached. Temporary.
    labels: Vec<u32>,
    /// The remaining number of block visits; after that, every join counts as divergent. It keeps the analysis almost
    /// linear.
    budget: usize,
    /// The number of phis that do not count as divergent yet.
    open_joins: usize,
}

impl Analysis<'_> {
    fn mark(&mut self, v: Value, bits: u32) {
        let old = self.result.values[v.index()];
        if old | bits != old {
            self.result.values[v.index()] = old | bits;
            self.work.push(v);
        }
    }

    fn mark_phi(&mut self, v: Value, bits: u32) {
        let was_open = self.result.values[v.index()] != ALL;
        self.mark(v, bits);
        self.open_joins -= usize::from(was_open && self.result.values[v.index()] == ALL);
    }

    /// Processes a reader of a value. `apart`: threads read the values of different iterations, so all bits may differ.
    fn visit(&mut self, user: User, apart: bool) {
        let func = self.func;
        let values = &self.result.values;
        match user {
            User::Phi(b, i) => {
                let phi = &func.block(b).phis[i as usize];
                let args = phi.args.iter().filter_map(|(_, src)| src.value());
                let bits = if apart { ALL } else { args.fold(0, |bits, v| bits | values[v.index()]) };
                self.mark_phi(phi.dst, bits);
            }
            User::Inst(b, i) => {
                let inst = &func.block(b).insts[i as usize];
                if !reads_one_lane(inst) {
                    let bits = if apart { ALL } else { varying::results(inst, values) };
                    inst.defs().for_each(|v| self.mark(v, bits));
                }
            }
            User::Term(b) => self.branch(b),
        }
    }

    fn branch(&mut self, b: BlockId) {
        let uniform = matches!(
            self.func.block(b).term,
            Term::Branch { uniform: true, .. } | Term::Switch { uniform: true, .. }
        );
        if uniform || self.result.branches[b.index()] {
            return;
        }
        self.result.branches[b.index()] = true;
        self.joins(b);
        self.leaves_loops(b);
    }

    /// Marks the phis where paths from different successors of `b` meet, up to its post-dominator.
    fn joins(&mut self, b: BlockId) {
        if self.open_joins == 0 {
            return;
        }
        let func = self.func;
        let end = self.post.parent(b);
        // By position in reverse postorder. A block may be visited again when it turns out to be a join.
        let mut pending = BinaryHeap::new();
        let mut touched = Vec::new();
        let mut ways = 0;
        for_each_successor(func, b, |to| {
            self.reach(to, ways, b, end, &mut pending, &mut touched);
            ways += 1;
        });
        while let Some(Reverse(place)) = pending.pop() {
            if self.budget == 0 {
                self.every_join();
                break;
            }
            self.budget -= 1;
            let at = self.cfg.order[place];
            let label = self.labels[at.index()];
            for_each_successor(func, at, |to| self.reach(to, label, b, end, &mut pending, &mut touched));
        }
        for b in touched {
            self.labels[b.index()] = NO_LABEL;
        }
    }

    /// Processes control that left branch `b` with `label` and arrives at `to`.
    fn reach(
        &mut self,
        to: BlockId,
        label: u32,
        b: BlockId,
        end: Option<BlockId>,
        pending: &mut BinaryHeap<Reverse<usize>>,
        touched: &mut Vec<BlockId>,
    ) {
        // The labels of joins have their top bit set, unlike those of directions.
        let own = JOIN | to.0;
        let old = self.labels[to.index()];
        if old == label || old == own {
            return;
        }
        if old == NO_LABEL {
            touched.push(to);
            self.labels[to.index()] = label;
        } else {
            let func = self.func;
            func.block(to).phis.iter().for_each(|phi| self.mark_phi(phi.dst, ALL));
            self.labels[to.index()] = own;
        }
        if Some(to) != end && to != b {
            pending.push(Reverse(self.cfg.place(to)));
        }
    }

    fn every_join(&mut self) {
        let func = self.func;
        for &b in &self.cfg.order {
            func.block(b).phis.iter().for_each(|phi| self.mark_phi(phi.dst, ALL));
        }
    }

    /// Marks values that are live after a loop that threads leave one by one because of `b`.
    fn leaves_loops(&mut self, b: BlockId) {
        let func = self.func;
        if self.loops.is_irreducible(b) && !std::mem::replace(&mut self.left_irreducible, true) {
            // There is no loop that separates inside from outside, so every value of such a cycle counts.
            for &at in self.cfg.order.iter().filter(|at| self.loops.is_irreducible(**at)) {
                func.block(at).phis.iter().for_each(|phi| self.mark_phi(phi.dst, ALL));
                func.block(at).insts.iter().flat_map(Inst::defs).for_each(|v| self.mark(v, ALL));
            }
        }
        let mut left = None;
        for_each_successor(func, b, |to| {
            left = left.max(self.loops.outermost_without(b, to));
        });
        if let Some(end) = self.post.parent(b) {
            left = left.max(self.loops.outermost_without(b, end));
        }
        let Some(left) = left else { return };
        for id in self.loops.around(b).take_while(|id| *id <= left) {
            if std::mem::replace(&mut self.left[id.0 as usize], true) {
                continue;
            }
            // The contents of an inner loop that has been left have already been visited.
            let was_left = |inner: LoopId| inner != id && self.left[inner.0 as usize];
            for at in self.loops.blocks_outside(id, was_left) {
                func.block(at).phis.iter().for_each(|phi| self.escapes(phi.dst, id));
                func.block(at).insts.iter().flat_map(Inst::defs).for_each(|v| self.escapes(v, id));
            }
        }
    }

    /// Marks readers of `v` outside the loop, which read the values of different iterations.
    fn escapes(&mut self, v: Value, id: LoopId) {
        for i in self.uses.start[v.index()]..self.uses.start[v.index() + 1] {
            let user = self.uses.users[i as usize];
            let (User::Inst(b, _) | User::Phi(b, _) | User::Term(b)) = user;
            if !self.loops.contains(id, b) {
                self.visit(user, true);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ori::dominators::{dominators, post_dominators};
    use crate::ori::text;

    fn divergent(body: &str) -> (Vec<u32>, Vec<u32>) {
        let func = text::parse(&format!("func \"f\" {{\n{body}\n}}")).unwrap();
        let cfg = Cfg::new(&func);
        let loops = Loops::new(&func, &cfg, &dominators(&cfg, &func));
        let result = Divergence::new(&func, &cfg, &post_dominators(&cfg, &func, &loops), &loops);
        let values = (0..func.values.len() as u32).filter(|v| result.is_divergent(Value(*v))).collect();
        let branches =
            (0..func.blocks.len() as u32).filter(|b| result.branch_diverges(BlockId(*b))).collect();
        (values, branches)
    }

    #[test]
    fn all_threads_read_the_value_of_one_lane() {
        let body = "b0:
            %v0:r = S2R{sr=0x21}
            %v1:r, _ = SHFL.IDX %v0, RZ, 0x1f
            %v2:r, _ = SHFL.IDX %v0, 0x3, 0x181f
            %v3:r, _ = SHFL.IDX %v0, %v0, 0x1f
            %v4:r, _ = SHFL.BFLY %v0, 0x1, 0x1f
            EXIT";
        assert_eq!(divergent(body), (vec![0, 2, 3, 4], vec![]));
    }

    #[test]
    fn warps_along_x_share_the_high_bits_of_the_thread_index() {
        let body = "b0:
            %v0:r = S2R{sr=0x21}
            %v1:r = SHF.R.U32.HI RZ, 0x5, %v0
            %v2:r = SHF.R.U32.HI RZ, 0x4, %v0
            %v3:r = LOP3{lut=0xc0} %v0, 0xffffffe0, RZ
            %v4:r = LOP3{lut=0xc0} %v0, 0x30, RZ
            %v5:p = ISETP.LT.U32.AND %v0, 0x40, PT
            %v6:p = ISETP.GT.AND %v0, 0x3f, PT
            %v7:p = ISETP.LT.U32.AND %v0, 0x41, PT
            %v8:p = ISETP.EQ.U32.AND %v0, 0x40, PT
            %v9:r = SHF.L.U32 %v0, 0x2, RZ
            %v10:p = ISETP.LT.U32.AND %v9, 0x80, PT
            %v11:p = ISETP.LT.U32.AND %v9, 0x40, PT
            %v12:r, _, _ = IADD3 %v0, 0x1, RZ
            %v13:r = SHF.R.U32.HI RZ, 0x5, %v12
            %v14:r = SEL %v0, 0x20, %v5
            %v15:p = ISETP.LT.U32.AND %v14, 0x20, PT
            %v16:r = S2R{sr=0x22}
            %v17:r = SHF.R.U32.HI RZ, 0x5, %v16
            BRA %v5, b1, b2
            b1:
            JUMP b2
            b2:
            %v18:r = phi b0 %v0, b1 0x7
            %v19:r = SHF.R.U32.HI RZ, 0x5, %v18
            EXIT";
        let all = |facts: &str| {
            let func = text::parse(&format!("entry \"f\" {facts} {{\n{body}\n}}")).unwrap();
            let cfg = Cfg::new(&func);
            let loops = Loops::new(&func, &cfg, &dominators(&cfg, &func));
            let result = Divergence::new(&func, &cfg, &post_dominators(&cfg, &func, &loops), &loops);
            (0..20).filter(|v| result.is_divergent(Value(*v))).collect::<Vec<u32>>()
        };
        assert_eq!(all("facts(warps_along_x)"), [0, 2, 4, 7, 8, 9, 11, 12, 13, 14, 16, 17, 18]);
        assert_eq!(all("").len(), 20);
    }

    #[test]
    fn thread_index_is_divergent_and_block_index_is_not() {
        let body = "b0:
            %v0:r = S2R{sr=0x21}
            %v1:r = S2R{sr=0x25}
            %v2:p = ISETP.LT.AND %v1, c[0x0][0x160], PT
            %v3:p = ISETP.LT.AND %v0, c[0x0][0x160], PT
            BRA %v2, b1, b2
            b1:
            BRA %v3, b2, b2
            b2:
            EXIT";
        assert_eq!(divergent(body), (vec![0, 3], vec![1]));
    }

    #[test]
    fn a_join_of_divergent_paths_is_divergent() {
        let body = "b0:
            %v0:r = S2R{sr=0x21}
            %v1:p = ISETP.LT.AND %v0, 0x5, PT
            BRA %v1, b1, b2
            b1:
            JUMP b2
            b2:
            %v2:r = phi b0 0x1, b1 0x2
            EXIT";
        assert_eq!(divergent(body), (vec![0, 1, 2], vec![0]));
    }

    #[test]
    fn a_uniform_loop_in_a_divergent_region_stays_uniform() {
        let body = "b0:
            %v0:r = S2R{sr=0x21}
            %v1:p = ISETP.LT.AND %v0, 0x5, PT
            BRA %v1, b1, b3
            b1:
            JUMP b2
            b2:
            %v2:r = phi b1 RZ, b2 %v3
            %v3:r = IADD3 %v2, 0x1, RZ
            %v4:p = ISETP.LT.AND %v3, c[0x0][0x160], PT
            BRA %v4, b2, b3
            b3:
            EXIT";
        assert_eq!(divergent(body), (vec![0, 1], vec![0]));
    }

    #[test]
    fn a_value_that_leaves_a_divergent_loop_is_divergent_outside() {
        let body = "b0:
            %v0:r = S2R{sr=0x21}
            JUMP b1
            b1:
            %v1:r = phi b0 RZ, b1 %v2
            %v2:r = IADD3 %v1, 0x1, RZ
            %v3:p = ISETP.LT.AND %v2, %v0, PT
            BRA %v3, b1, b2
            b2:
            %v4:r = IADD3 %v2, 0x1, RZ
            EXIT";
        assert_eq!(divergent(body), (vec![0, 3, 4], vec![1]));
    }
}
