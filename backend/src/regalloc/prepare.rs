//! Prepares a function for allocation; it stays in SSA form.
//!
//! - If a register was packed into a wide value, later reads use the wide value, so that the two are not live at the
//!   same time and the pack costs nothing.
//! - The old value of a guarded instruction ends there: if it is read later, the instruction gets a copy.

use crate::ori::cfg::Cfg;
use crate::ori::dominators::{Tree, dominators};
use crate::ori::ir::{BlockId, Dst, Inst, Src, SrcKind, SrcMods, Value};
use crate::ori::op::Op;
use crate::regalloc::draft::{Code, Draft};
use crate::regalloc::live::Liveness;
use smallvec::SmallVec;

pub(crate) fn prepare(draft: &mut Draft<'_>) {
    read_packed(draft);
    copy_kept(draft);
}

/// After `w = Pack(a, b)`, reads of `a` that the pack dominates become reads of part 0 of `w`.
fn read_packed(draft: &mut Draft<'_>) {
    let cfg = Cfg::new(draft.func);
    let tree = dominators(&cfg, draft.func);
    let mut packs = Packs { seen: vec![SmallVec::new(); draft.func.values.len()], tree: &tree };
    let values = draft.func.values.clone();
    for &b in &cfg.order {
        for inst in &mut draft.func.block_mut(b).insts {
            // The old value of a guarded instruction must end there, which is possible for a value but not for a part
            // of one.
            std::iter::once(&mut inst.guard).chain(&mut inst.srcs).for_each(|src| packs.replace(src, b));
            if let (Op::Pack, [Dst::Value(wide)], true) = (inst.op, &inst.dsts[..], inst.guard.is_true()) {
                let mut part = 0;
                for src in &inst.srcs {
                    let width = match src.kind {
                        SrcKind::Value(v) => values[v.index()].width,
                        _ => 1,
                    };
                    if let SrcKind::Value(v) = src.kind
                        && width == 1
                        && values[v.index()].file == values[wide.index()].file
                        && src.mods == SrcMods::NONE
                    {
                        packs.add(v, Packed { block: b, wide: *wide, part });
                    }
                    part += width;
                }
            }
        }
    }
    for &b in &cfg.order {
        for phi in &mut draft.func.block_mut(b).phis {
            for (pred, arg) in phi.args.iter_mut().filter(|(pred, _)| cfg.is_reached(*pred)) {
                packs.replace(arg, *pred);
            }
        }
    }
}

/// The position of a pack.
#[derive(Clone, Copy)]
struct Packed {
    block: BlockId,
    wide: Value,
    part: u8,
}

struct Packs<'a> {
    /// For each value, a few packs in different blocks, none of which dominates another.
    seen: Vec<SmallVec<[Packed; 1]>>,
    tree: &'a Tree,
}

impl Packs<'_> {
    const KEPT: usize = 8;

    fn find(&self, v: Value, b: BlockId) -> Option<&Packed> {
        self.seen[v.index()].iter().find(|p| self.tree.dominates(p.block, b))
    }

    /// Adds a pack. Later packs of the value that an earlier one dominates read the earlier one, and are never added.
    fn add(&mut self, v: Value, packed: Packed) {
        if self.seen[v.index()].len() < Self::KEPT && self.find(v, packed.block).is_none() {
            self.seen[v.index()].push(packed);
        }
    }

    /// Replaces a read after all packs that have been seen in `b`.
    fn replace(&self, src: &mut Src, b: BlockId) {
        if let SrcKind::Value(v) = src.kind
            && let Some(packed) = self.find(v, b)
        {
            src.kind = SrcKind::Part(packed.wide, packed.part);
        }
    }
}

fn copy_kept(draft: &mut Draft<'_>) {
    let keeps = |inst: &Inst| !inst.old.is_empty();
    if !draft.func.layout.iter().any(|&b| draft.func.block(b).insts.iter().any(keeps)) {
        return;
    }
    let mut is_kept = vec![false; draft.func.values.len()];
    for inst in draft.func.layout.iter().flat_map(|&b| &draft.func.block(b).insts) {
        inst.old.iter().filter_map(|old| old.value()).for_each(|v| is_kept[v.index()] = true);
    }
    let live = Liveness::compute_of(draft.func, &Cfg::new(draft.func), |v| is_kept[v.index()]);
    for b in draft.func.layout.clone() {
        if !draft.func.block(b).insts.iter().any(keeps) {
            continue;
        }
        let span = live.spans[b.index()];
        let mut code = Code::default();
        for (i, (mut inst, origin)) in draft.take(b).enumerate() {
            let mut tied: Vec<Value> = Vec::new();
            for (dst, old) in inst.dsts.iter().zip(&mut inst.old) {
                let &Dst::Value(dst) = dst else {
                    *old = Src::UNDEF;
                    continue;
                };
                match old.kind {
                    SrcKind::Undef => {}
                    SrcKind::Value(v)
                        if old.mods == SrcMods::NONE
                            && !live.live_at(v, span.write(i))
                            && !tied.contains(&v) =>
                    {
                        tied.push(v);
                    }
                    _ => {
                        let data = draft.func.value(dst);
                        let copy = draft.new_value(data.file, data.width);
                        code.push(Inst::new(Op::Copy, &[Dst::Value(copy)], &[*old], inst.src), None);
                        *old = copy.into();
                    }
                }
            }
            code.push(inst, origin);
        }
        draft.put(b, code);
    }
}
