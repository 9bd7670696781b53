//! A function under allocation: its code, and for every instruction the one of the input that it stands for.

use crate::ori::ir::{BlockId, Dst, File, Function, Inst, SrcKind, Term, Value};

pub(crate) struct Draft<'a> {
    pub(crate) func: &'a mut Function,
    /// Parallel to the instructions of each block: index in the same block of the input, or `None` where the
    /// allocator added one.
    pub(crate) origin: Vec<Vec<Option<u32>>>,
    /// Per value: made by the allocator with a live range as short as can be, so spilling it gains nothing.
    pub(crate) fixed: Vec<bool>,
    /// Blocks on edges that are not in the layout yet: the block that each is to follow, and itself.
    on_edges: Vec<(BlockId, BlockId)>,
}

/// A block's code being rebuilt.
#[derive(Default)]
pub(crate) struct Code {
    pub(crate) insts: Vec<Inst>,
    pub(crate) origin: Vec<Option<u32>>,
}

impl Code {
    pub(crate) fn push(&mut self, inst: Inst, origin: Option<u32>) {
        self.insts.push(inst);
        self.origin.push(origin);
    }

    pub(crate) fn added(&mut self, insts: impl IntoIterator<Item = Inst>) {
        for inst in insts {
            self.push(inst, None);
        }
    }
}

impl<'a> Draft<'a> {
    pub(crate) fn new(func: &'a mut Function) -> Draft<'a> {
        let origin = func.blocks.iter().map(|b| (0..b.insts.len() as u32).map(Some).collect()).collect();
        let fixed = pinned(func);
        Draft { func, origin, fixed, on_edges: Vec::new() }
    }

    pub(crate) fn new_value(&mut self, file: File, width: u8) -> Value {
        self.fixed.push(false);
        self.func.new_value(file, width)
    }

    /// Takes a block's code out, with its origins; [`Draft::put`] gives the new code back.
    pub(crate) fn take(&mut self, b: BlockId) -> impl Iterator<Item = (Inst, Option<u32>)> + use<> {
        let insts = std::mem::take(&mut self.func.block_mut(b).insts);
        insts.into_iter().zip(std::mem::take(&mut self.origin[b.index()]))
    }

    pub(crate) fn put(&mut self, b: BlockId, code: Code) {
        self.func.block_mut(b).insts = code.insts;
        self.origin[b.index()] = code.origin;
    }

    /// A block on the edge from `from` to `to`, from which `to`'s phis come then: that is the caller's to change.
    /// [`Draft::place_edges`] puts it in the layout.
    pub(crate) fn split_edge(&mut self, from: BlockId, to: BlockId) -> BlockId {
        let middle = self.func.new_block();
        self.origin.push(Vec::new());
        let term_src = self.func.block(from).term_src;
        let block = self.func.block_mut(middle);
        block.term = Term::Jump(to);
        block.term_src = term_src;
        let retarget = |b: &mut BlockId| {
            if *b == to {
                *b = middle;
            }
        };
        match &mut self.func.block_mut(from).term {
            Term::Jump(b) => retarget(b),
            Term::Branch { then, els, .. } => {
                retarget(then);
                retarget(els);
            }
            Term::Switch { targets, .. } => targets.iter_mut().for_each(retarget),
            Term::Exit | Term::Ret | Term::Unreachable => {}
        }
        self.on_edges.push((from, middle));
        middle
    }

    /// Puts blocks on edges after those that the edges leave, the last made first.
    pub(crate) fn place_edges(&mut self) {
        let mut on_edges = std::mem::take(&mut self.on_edges);
        on_edges.sort_by_key(|&(from, middle)| (from, std::cmp::Reverse(middle)));
        let of = |from: BlockId| {
            let first = on_edges.partition_point(|edge| edge.0 < from);
            on_edges[first..].iter().take_while(move |edge| edge.0 == from).map(|edge| edge.1)
        };
        let layout = std::mem::take(&mut self.func.layout);
        self.func.layout = layout.into_iter().flat_map(|b| std::iter::once(b).chain(of(b))).collect();
    }
}

/// Per value: the calling convention has a register for it, or threads elsewhere overwrite it.
pub(crate) fn pinned(func: &Function) -> Vec<bool> {
    let mut pinned: Vec<bool> = func.values.iter().map(|data| data.pin.is_some()).collect();
    for inst in func.layout.iter().flat_map(|&b| &func.block(b).insts) {
        others(inst).for_each(|v| pinned[v.index()] = true);
    }
    pinned
}

/// The results that threads overwrite which do not execute the instruction.
pub(crate) fn others(inst: &Inst) -> impl Iterator<Item = Value> + '_ {
    inst.dsts.iter().take(inst.op.results_of_others()).filter_map(|dst| match dst {
        Dst::Value(v) => Some(*v),
        _ => None,
    })
}

/// Results of a guarded instruction with the values they replace.
pub(crate) fn tied(inst: &Inst) -> impl Iterator<Item = (Value, Value)> + '_ {
    inst.dsts.iter().zip(&inst.old).filter_map(|(dst, old)| match (dst, old.kind) {
        (Dst::Value(dst), SrcKind::Value(old)) => Some((*dst, old)),
        _ => None,
    })
}
