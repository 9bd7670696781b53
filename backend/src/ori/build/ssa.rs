//! Construction of static single assignment form from PTX registers, after Braun et al., "Simple and Efficient
//! Construction of Static Single Assignment Form" (CC 2013), with a worklist in place of recursion.
//!
//! A block is *sealed* when all its predecessors are known. A read in an unsealed block creates a phi whose arguments
//! are filled in when the block is sealed. A variable may stand for any source operand, so a move costs nothing; a
//! predicate may stand for the negation of another. Phi arguments have no modifiers.

use super::rewrite;
use crate::input::{RegId, SrcId};
use crate::ori::ir::{BlockId, Dst, File, Function, Inst, Phi, Src, SrcKind, SrcMods, Value};
use crate::ori::op::Op;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// A walk records its result in every block at this distance on its way.
const STRIDE: u32 = 16;

/// The number of phis between checkpoints. Functions of thousands of blocks have hundreds of thousands of phis.
const PHIS: usize = 1 << 10;
/// The number of blocks between checkpoints when phis are removed.
const BLOCKS: usize = 1 << 8;

/// A variable that is assigned more than once in the source.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Variable {
    Reg(RegId),
    /// The carry of `add.cc` and similar instructions; PTX has one per thread.
    Carry,
    /// A value of an expansion that consists of several blocks.
    Temporary(u32),
}

#[derive(Default)]
struct BlockState {
    predecessors: Vec<BlockId>,
    /// The number of edges that have not been added yet.
    missing: u32,
    sealed: bool,
    /// Phis that get their arguments when the block is sealed: their variables and results.
    incomplete: Vec<(Variable, Value)>,
}

/// A phi of a sealed block whose arguments are being collected.
struct Pending {
    block: BlockId,
    variable: Variable,
    dst: Value,
    /// One for each of the first predecessors.
    args: Vec<(BlockId, Src)>,
}

pub(super) struct Ssa<'a> {
    checkpoint: &'a dyn Fn(),
    filled: usize,
    blocks: Vec<BlockState>,
    definitions: FxHashMap<(BlockId, Variable), Src>,
    /// The last phi is filled in first; the one before may wait for it.
    pending: Vec<Pending>,
    /// Results of phis that join one value with itself, and that value.
    replaced: FxHashMap<Value, Src>,
}

impl<'a> Ssa<'a> {
    pub(super) fn new(checkpoint: &'a dyn Fn()) -> Self {
        Self {
            checkpoint,
            filled: 0,
            blocks: Vec::new(),
            definitions: FxHashMap::default(),
            pending: Vec::new(),
            replaced: FxHashMap::default(),
        }
    }

    /// Declares a block with the number of edges that will enter it.
    pub(super) fn add_block(&mut self, block: BlockId, edges: u32) {
        if self.blocks.len() <= block.index() {
            self.blocks.resize_with(block.index() + 1, BlockState::default);
        }
        self.blocks[block.index()] =
            BlockState { missing: edges, sealed: edges == 0, ..BlockState::default() };
    }

    /// Adds an edge out of a finished block. The last expected edge seals `to`.
    pub(super) fn add_edge(
        &mut self,
        out: &mut Function,
        from: BlockId,
        to: BlockId,
        shape: &impl Fn(Variable) -> Shape,
    ) {
        let state = &mut self.blocks[to.index()];
        state.predecessors.push(from);
        state.missing = state.missing.saturating_sub(1);
        if state.missing == 0 {
            self.seal(to);
            self.fill(out, shape);
        }
    }

    fn seal(&mut self, block: BlockId) {
        let state = &mut self.blocks[block.index()];
        state.sealed = true;
        let incomplete = std::mem::take(&mut state.incomplete).into_iter();
        self.pending.extend(incomplete.map(|(variable, dst)| Pending {
            block,
            variable,
            dst,
            args: Vec::new(),
        }));
    }

    /// Declares that no further edge enters the block.
    pub(super) fn close(&mut self, out: &mut Function, shape: &impl Fn(Variable) -> Shape) {
        for i in 0..self.blocks.len() {
            if !self.blocks[i].sealed {
                self.seal(BlockId(i as u32));
            }
        }
        self.fill(out, shape);
    }

    pub(super) fn write(&mut self, block: BlockId, variable: Variable, src: Src) {
        self.definitions.insert((block, variable), src);
    }

    /// The current value of a variable at the end of `block`.
    pub(super) fn read(
        &mut self,
        out: &mut Function,
        block: BlockId,
        variable: Variable,
        shape: &impl Fn(Variable) -> Shape,
    ) -> Src {
        let src = self.find(out, block, variable, shape);
        self.fill(out, shape);
        rewrite::resolve_shortening(&mut self.replaced, src)
    }

    /// Walks up to the definition, or creates a phi at the first join on the way.
    fn find(
        &mut self,
        out: &mut Function,
        start: BlockId,
        variable: Variable,
        shape: &impl Fn(Variable) -> Shape,
    ) -> Src {
        let mut block = start;
        let mut steps = 0;
        // Some blocks on the way record the result, so that walks from many places to one definition share their work.
        let mut told: SmallVec<[BlockId; 8]> = SmallVec::new();
        let src = loop {
            if let Some(src) = self.definitions.get_mut(&(block, variable)) {
                *src = rewrite::resolve_shortening(&mut self.replaced, *src);
                break *src;
            }
            let state = &mut self.blocks[block.index()];
            match state.predecessors[..] {
                [] if state.sealed => break Src::UNDEF,
                [only] if state.sealed => {
                    block = only;
                    steps += 1;
                    if steps % STRIDE == 0 {
                        told.push(block);
                    }
                }
                _ => {
                    let shape = shape(variable);
                    let dst = out.new_value(shape.file, shape.width);
                    if state.sealed {
                        self.pending.push(Pending { block, variable, dst, args: Vec::new() });
                    } else {
                        state.incomplete.push((variable, dst));
                    }
                    break dst.into();
                }
            }
        };
        for at in told.into_iter().chain([block, start]) {
            self.definitions.insert((at, variable), src);
        }
        src
    }

    /// Fills in all pending phis. A phi waits for the phis that its arguments need, so that most phis which join one
    /// value with itself are recognized at once: a variable that no path to a join changes needs none there.
    fn fill(&mut self, out: &mut Function, shape: &impl Fn(Variable) -> Shape) {
        while let Some(phi) = self.pending.last() {
            let (block, variable, waiting) = (phi.block, phi.variable, self.pending.len());
            let Some(&from) = self.blocks[block.index()].predecessors.get(phi.args.len()) else {
                self.finish(out);
                continue;
            };
            let src = self.find(out, from, variable, shape);
            // Otherwise the value is a new phi, which comes first.
            if self.pending.len() == waiting {
                self.pending[waiting - 1].args.push((from, src));
            }
        }
    }

    /// Adds the last pending phi to its block, unless it joins one value with itself.
    fn finish(&mut self, out: &mut Function) {
        let Some(Pending { block, dst, mut args, .. }) = self.pending.pop() else { return };
        self.filled += 1;
        if self.filled.is_multiple_of(PHIS) {
            (self.checkpoint)();
        }
        match joined(dst, &args, &mut self.replaced) {
            Some(only) if only.mods == SrcMods::NONE => {
                self.replaced.insert(dst, only);
            }
            _ => {
                args.iter_mut().for_each(|(from, src)| *src = plain(out, *from, *src));
                out.block_mut(block).phis.push(Phi { dst, args });
            }
        }
    }

    /// Removes phis that join one value with itself, and phis that are never read.
    pub(super) fn simplify(self, out: &mut Function) {
        let checkpoint = self.checkpoint;
        let mut replaced = self.replaced;
        let phis = out.blocks.iter_mut().flat_map(|block| &mut block.phis);
        for (_, arg) in phis.flat_map(|phi| &mut phi.args) {
            *arg = rewrite::resolve_shortening(&mut replaced, *arg);
        }
        let replaced = replacements(out, replaced, checkpoint);
        for blocks in out.blocks.chunks_mut(BLOCKS) {
            checkpoint();
            for block in blocks {
                block.phis.retain(|phi| !replaced.contains_key(&phi.dst));
                block.phis.sort_unstable_by_key(|phi| phi.dst);
            }
        }
        checkpoint();
        rewrite::sources(out, &replaced);
        checkpoint();
        remove_unread(out);
    }
}

/// The value that a phi joins with itself, or with the phi's own result: `None` if the arguments differ.
fn joined(dst: Value, args: &[(BlockId, Src)], replaced: &mut FxHashMap<Value, Src>) -> Option<Src> {
    let mut only = None;
    let same = args.iter().all(|&(_, arg)| {
        let arg = rewrite::resolve_shortening(replaced, arg);
        arg.kind == SrcKind::Value(dst) && arg.mods == SrcMods::NONE || *only.get_or_insert(arg) == arg
    });
    same.then(|| only.unwrap_or(Src::UNDEF))
}

/// The register file and width of a variable's values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Shape {
    pub(super) file: File,
    pub(super) width: u8,
}

/// A source without modifiers at the end of a finished block. Only predicates can be negated variables.
fn plain(out: &mut Function, block: BlockId, src: Src) -> Src {
    if src.mods == SrcMods::NONE {
        return src;
    }
    let dst = out.new_value(File::P, 1);
    let block = out.block_mut(block);
    let at = block.insts.last().map_or(SrcId::default(), |i| i.src);
    let op = Op::Plop3 { lut: 0xf0, lut2: 0 };
    block.insts.push(Inst::new(op, &[Dst::Value(dst), Dst::Sink], &[src, Src::TRUE, Src::TRUE], at));
    dst.into()
}

/// The replacements of phis that join one value with itself, `replaced` and those that follow from it.
fn replacements(
    out: &Function,
    mut replaced: FxHashMap<Value, Src>,
    checkpoint: &dyn Fn(),
) -> FxHashMap<Value, Src> {
    let phis: Vec<&Phi> = out.layout.iter().flat_map(|b| &out.block(*b).phis).collect();
    let users = Users::new(out.values.len(), &phis);
    checkpoint();
    replace_groups(out.values.len(), &phis, &users, &mut replaced, checkpoint);
    visit_until_stable(&phis, &users, checkpoint, |phi, _| {
        if replaced.contains_key(&phi.dst) {
            return false;
        }
        let only = joined(phi.dst, &phi.args, &mut replaced);
        replaced.extend(only.map(|only| (phi.dst, only)));
        only.is_some()
    });
    let all: Vec<Value> = replaced.keys().copied().collect();
    for phi in all {
        rewrite::resolve_shortening(&mut replaced, phi.into());
    }
    replaced
}

/// Adds the replacements of phis that join one value with each other's results: irreducible loops have such groups. Every
/// phi counts as a member of a group until it is found to join two values.
fn replace_groups(
    values: usize,
    phis: &[&Phi],
    users: &Users,
    replaced: &mut FxHashMap<Value, Src>,
    checkpoint: &dyn Fn(),
) {
    let mut phi_of: Vec<Option<u32>> = vec![None; values];
    for (i, phi) in (0..).zip(phis) {
        phi_of[phi.dst.index()] = Some(i);
    }
    // The value that each phi joins, or its own result if it joins several; `None` if no argument is known.
    let mut joins: Vec<Option<Src>> = vec![None; phis.len()];
    visit_until_stable(phis, users, checkpoint, |phi, i| {
        let before = joins[i];
        let own = Src::from(phi.dst);
        if before == Some(own) {
            return false;
        }
        let known = |(_, arg): &(BlockId, Src)| match arg.kind {
            SrcKind::Value(v) if arg.mods == SrcMods::NONE => match phi_of[v.index()] {
                Some(other) => joins[other as usize],
                None => Some(*arg),
            },
            _ => Some(*arg),
        };
        let mut args = phi.args.iter().filter_map(known);
        let first = args.next();
        let differ = args.any(|arg| Some(arg) != first) || before.is_some() && before != first;
        joins[i] = if differ { Some(own) } else { first };
        joins[i] != before
    });
    for (phi, joined) in phis.iter().zip(joins) {
        if let Some(joined) = joined.filter(|joined| *joined != Src::from(phi.dst)) {
            replaced.insert(phi.dst, joined);
        }
    }
}

/// Visits every phi, then revisits the users of each phi whose visit returns true, until no visit does.
fn visit_until_stable(
    phis: &[&Phi],
    users: &Users,
    checkpoint: &dyn Fn(),
    mut visit: impl FnMut(&Phi, usize) -> bool,
) {
    let mut work: Vec<u32> = (0..phis.len() as u32).rev().collect();
    let mut steps = 0usize;
    while let Some(i) = work.pop() {
        steps += 1;
        if steps.is_multiple_of(PHIS) {
            checkpoint();
        }
        let phi = phis[i as usize];
        if visit(phi, i as usize) {
            work.extend(users.of(phi.dst));
        }
    }
}

/// For each value, the phis that have it as an argument.
struct Users {
    /// For each value, the end of its phis; they start at the end of the previous value's phis.
    ends: Vec<u32>,
    phis: Vec<u32>,
}

impl Users {
    fn new(values: usize, phis: &[&Phi]) -> Self {
        let arguments = || {
            let of = |(i, phi): (usize, &&Phi)| {
                let values = phi.args.iter().filter_map(|(_, src)| src.value());
                values.map(|value| (i as u32, value)).collect::<SmallVec<[_; 8]>>()
            };
            phis.iter().enumerate().flat_map(of)
        };
        let mut next = vec![0u32; values];
        arguments().for_each(|(_, value)| next[value.index()] += 1);
        let mut start = 0;
        for count in &mut next {
            start += std::mem::replace(count, start);
        }
        let mut users = vec![0; start as usize];
        for (phi, value) in arguments() {
            users[next[value.index()] as usize] = phi;
            next[value.index()] += 1;
        }
        Self { ends: next, phis: users }
    }

    fn of(&self, value: Value) -> &[u32] {
        let start = value.index().checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.phis[start as usize..self.ends[value.index()] as usize]
    }
}

fn remove_unread(out: &mut Function) {
    let mut read = vec![false; out.values.len()];
    let mut work: Vec<Value> = Vec::new();
    for block in &out.blocks {
        work.extend(block.insts.iter().flat_map(Inst::uses).filter_map(Src::value));
        work.extend(block.term.operand().and_then(Src::value));
    }
    let mut phi_of: Vec<Option<&Phi>> = vec![None; out.values.len()];
    for phi in out.blocks.iter().flat_map(|block| &block.phis) {
        phi_of[phi.dst.index()] = Some(phi);
    }
    while let Some(v) = work.pop() {
        if !std::mem::replace(&mut read[v.index()], true)
            && let Some(phi) = phi_of[v.index()]
        {
            work.extend(phi.args.iter().filter_map(|(_, src)| src.value()));
        }
    }
    for block in &mut out.blocks {
        block.phis.retain(|phi| read[phi.dst.index()]);
    }
}
