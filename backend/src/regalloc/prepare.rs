//! Brings a function into the shape that allocation wants; it stays in SSA form.
//!
//! - A register that was packed into a wide value is read there from then on, so that the two are not live
//!   side by side and the pack costs nothing.
//! - A value that a guarded instruction keeps dies in it: where it lives on, the instruction keeps a copy.

use crate::ori::cfg::Cfg;
use crate::ori::ir::{Dst, Inst, Src, SrcKind, SrcMods, Value};
use crate::ori::op::Op;
use crate::regalloc::draft::{Code, Draft};
use crate::regalloc::live::Liveness;

pub(crate) fn prepare(draft: &mut Draft<'_>) {
    read_packed(draft);
    copy_kept(draft);
}

/// After `w = Pack(a, b)`, reads of `a` that the pack dominates become reads of part 0 of `w`.
fn read_packed(draft: &mut Draft<'_>) {
    // Where each value was packed in the current block; later packs of it read the first one.
    let mut packed: Vec<Option<(Value, u8)>> = vec![None; draft.func.values.len()];
    let mut touched: Vec<Value> = Vec::new();
    let values = draft.func.values.clone();
    for b in draft.func.layout.clone() {
        for inst in &mut draft.func.block_mut(b).insts {
            let replace = |src: &mut Src| {
                if let SrcKind::Value(v) = src.kind
                    && let Some((wide, part)) = packed[v.index()]
                {
                    src.kind = SrcKind::Part(wide, part);
                }
            };
            std::iter::once(&mut inst.guard).chain(&mut inst.srcs).for_each(replace);
            if let (Op::Pack, [Dst::Value(wide)], true) = (inst.op, &inst.dsts[..], inst.guard.is_true()) {
                let mut part = 0;
                for src in &inst.srcs {
                    let Some(v) = src.value() else {
                        part += 1;
                        continue;
                    };
                    let width =
                        if matches!(src.kind, SrcKind::Value(_)) { values[v.index()].width } else { 1 };
                    if src.kind == SrcKind::Value(v)
                        && width == 1
                        && values[v.index()].file == values[wide.index()].file
                        && src.mods == SrcMods::NONE
                        && packed[v.index()].is_none()
                    {
                        packed[v.index()] = Some((*wide, part));
                        touched.push(v);
                    }
                    part += width;
                }
            }
        }
        for v in touched.drain(..) {
            packed[v.index()] = None;
        }
    }
}

fn copy_kept(draft: &mut Draft<'_>) {
    let live = Liveness::compute(draft.func, &Cfg::new(draft.func));
    for b in draft.func.layout.clone() {
        if !draft.func.block(b).insts.iter().any(|i| !i.old.is_empty()) {
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
                        let copy = draft.func.new_value(data.file, data.width);
                        draft.fixed.push(false);
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
