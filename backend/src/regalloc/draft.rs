//! A function during allocation: its code and, for every instruction, the corresponding instruction of the input.

use crate::ori::ir::{BlockId, Dst, File, Function, Inst, SrcKind, Term, Value};

pub(crate) struct Draft<'a> {
    pub(crate) func: &'a mut Function,
    /// For each instruction of each block: the index in the same block of the input, or `None` if the allocator added
    /// it.
    pub(crate) origin: Vec<Vec<Option<u32>>>,
    /// For each value: the allocator created it with the shortest possible live range, so spilling it gains nothing.
    pub(crate) fixed: Vec<bool>,
    /// Blocks on edges that are not in the layout yet: the block that each should follow, and the block itself.
    on_edges: Vec<(BlockId, BlockId)>,
}

/// The code of a block while it is rebuilt.
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

    /// Takes the code of a block, with its origins; [`Draft::put`] stores the new code.
    pub(crate) fn take(&mut self, b: BlockId) -> impl Iterator<Item = (Inst, Option<u32>)> + use<> {
        let insts = std::mem::take(&mut self.func.block_mut(b).insts);
        insts.into_iter().zip(std::mem::take(&mut self.origin[b.index()]))
    }

    pub(crate) fn put(&mut self, b: BlockId, code: Code) {
        self.func.block_mut(b).insts = code.insts;
        self.origin[b.index()] = code.origin;
    }

    /// Adds a block on the edge from `from` to `to`. The caller must change the phis of `to`, whose arguments then come
    /// from that block. [`Draft::place_edges`] puts the block into the layout.
    pub(crate) fn split_edge(&mut self, from: BlockId, to: BlockId) -> BlockId {
        let middle = self.func.new_block();
        self.origin.push(Vec::new());
        let term_src = self.func.block(from).term_src;
        let block = self.func.block_mut(middle);
        block.term = Term::Jump(to);
        block.term_src = term_src;
        self.lead_through(middle, from, to);
        middle
    }

    /// Lets the edge from `from` to `to` lead through `middle`, a block that [`Draft::split_edge`] added on another edge
    /// to `to`.
    pub(crate) fn lead_through(&mut self, middle: BlockId, from: BlockId, to: BlockId) {
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
    }

    /// Puts blocks on edges after the last of the blocks that the edges leave, the most recent first.
    pub(crate) fn place_edges(&mut self) {
        let mut on_edges = std::mem::take(&mut self.on_edges);
        let mut place = vec![0; self.func.blocks.len()];
        for (i, b) in self.func.layout.iter().enumerate() {
            place[b.index()] = i;
        }
        on_edges.sort_unstable_by_key(|&(from, middle)| (middle, std::cmp::Reverse(place[from.index()])));
        on_edges.dedup_by_key(|edge| edge.1);
        on_edges.sort_unstable_by_key(|&(from, middle)| (from, std::cmp::Reverse(middle)));
        let of = |from: BlockId| {
            let first = on_edges.partition_point(|edge| edge.0 < from);
            on_edges[first..].iter().take_while(move |edge| edge.0 == from).map(|edge| edge.1)
        };
        let layout = std::mem::take(&mut self.func.layout);
        self.func.layout = layout.into_iter().flat_map(|b| std::iter::once(b).chain(of(b))).collect();
    }
}

/// For each value, whether the calling convention has a register for it, or threads elsewhere overwrite it.
pub(crate) fn pinned(func: &Function) -> Vec<bool> {
    let mut pinned: Vec<bool> = func.values.iter().map(|data| data.pin.is_some()).collect();
    for inst in func.layout.iter().flat_map(|&b| &func.block(b).insts) {
        others(inst).for_each(|v| pinned[v.index()] = true);
    }
    pinned
}

/// The results that the instruction overwrites in threads that do not execute it.
pub(crate) fn others(inst: &Inst) -> impl Iterator<Item = Value> + '_ {
    inst.dsts.iter().take(inst.op.results_of_others()).filter_map(|dst| match dst {
        Dst::Value(v) => Some(*v),
        _ => None,
    })
}

/// The results of a guarded instruction, with the old values that they replace.
pub(crate) fn tied(inst: &Inst) -> impl Iterator<Item = (Value, Value)> + '_ {
    inst.dsts.iter().zip(&inst.old).filter_map(|(dst, old)| match (dst, old.kind) {
        (Dst::Value(dst), SrcKind::Value(old)) => Some((*dst, old)),
        _ => None,
    })
}
