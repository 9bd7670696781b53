//! Expands requests for routines of the runtime library.
//!
//! [`place_single`] inlines a routine that a function requests once, so that known operands can be folded. [`call`]
//! replaces the other requests by calls. It runs late, because requests are pure: phases can merge and remove them.
//!
//! Before: SSA form. After: SSA form, the same blocks.

use crate::CodegenError;
use crate::ori::facts::fold_modifiers;
use crate::ori::ir::{Dst, Function, Inst, Src, SrcKind, Value};
use crate::ori::op::{Op, Routine};
use crate::phases::{Change, Context};
use crate::runtime::{self, Body};

/// Inlines routines that are requested once.
pub fn place_single(func: &mut Function, _: &Context<'_>) -> Result<Change, CodegenError> {
    let mut uses = [0; Routine::ALL.len()];
    for_each_compute(func, |_, inst, routine| {
        uses[routine as usize] += 1;
        vec![inst]
    });
    for_each_compute(func, |func, inst, routine| match uses[routine as usize] {
        1 => in_place(func, &inst, runtime::body(routine)),
        _ => vec![inst],
    });
    Ok(Change::of(uses.contains(&1)))
}

/// Replaces all remaining requests by calls.
pub fn call(func: &mut Function, _: &Context<'_>) -> Result<Change, CodegenError> {
    let mut change = Change::Nothing;
    for_each_compute(func, |func, inst, routine| {
        change = Change::Something;
        called(func, &inst, routine)
    });
    Ok(change)
}

/// Replaces every [`Op::Compute`].
fn for_each_compute(
    func: &mut Function,
    mut replacement: impl FnMut(&mut Function, Inst, Routine) -> Vec<Inst>,
) {
    for b in func.layout.clone() {
        let is_compute = |inst: &Inst| matches!(inst.op, Op::Compute { .. });
        if !func.block(b).insts.iter().any(is_compute) {
            continue;
        }
        let mut insts = Vec::new();
        for inst in std::mem::take(&mut func.block_mut(b).insts) {
            match inst.op {
                Op::Compute { routine } => insts.extend(replacement(func, inst, routine)),
                _ => insts.push(inst),
            }
        }
        func.block_mut(b).insts = insts;
    }
}

fn word(inst: &Inst, n: usize) -> Src {
    inst.srcs.get(n).copied().unwrap_or(Src::ZERO)
}

/// The routine's instructions, with the operands of `inst` in place of the parameters.
fn in_place(func: &mut Function, inst: &Inst, body: Body<'_>) -> Vec<Inst> {
    let mut now: Vec<Option<Src>> = vec![None; body.func.values.len()];
    for (i, param) in body.params.iter().enumerate() {
        if let Dst::Value(v) = param {
            now[v.index()] = Some(word(inst, i));
        }
    }
    let mut insts: Vec<Inst> = Vec::with_capacity(body.insts.len() + body.results.len());
    for was in body.insts {
        let mut new = was.clone();
        new.src = inst.src;
        new.uses_mut().for_each(|src| *src = renamed(src, &now));
        for dst in &mut new.dsts {
            if let Dst::Value(v) = dst {
                let data = body.func.value(*v);
                let value = func.new_value(data.file, data.width);
                now[v.index()] = Some(value.into());
                *v = value;
            }
        }
        fold_modifiers(&mut new);
        insts.push(new);
    }
    for (dst, result) in inst.dsts.iter().zip(body.results) {
        if let Dst::Value(_) = dst {
            insts.push(Inst::new(Op::Copy, &[*dst], &[renamed(result, &now)], inst.src));
        }
    }
    insts
}

/// An operand of a routine's text. Parameters are words: their parts are not read, and they have no modifiers.
fn renamed(src: &Src, now: &[Option<Src>]) -> Src {
    let of = |v: Value| now.get(v.index()).copied().flatten().unwrap_or(Src::UNDEF);
    let kind = match src.kind {
        SrcKind::Value(v) => of(v).kind,
        SrcKind::Part(v, part) => match of(v).kind {
            SrcKind::Value(v) => SrcKind::Part(v, part),
            other => other,
        },
        other => other,
    };
    Src { kind, mods: src.mods }
}

/// Moves the operands to their registers, calls the routine, and moves the results out of their registers.
pub(super) fn called(func: &mut Function, inst: &Inst, routine: Routine) -> Vec<Inst> {
    let body = runtime::body(routine);
    let mut insts = Vec::new();
    let mut call = Inst::new(Op::CallRoutine { routine }, &[], &[], inst.src);
    for i in 0..body.params.len() {
        let pinned = func.new_pinned(runtime::place(i));
        insts.push(Inst::new(Op::Fix, &[Dst::Value(pinned)], &[word(inst, i)], inst.src));
        call.srcs.push(pinned.into());
    }
    let mut out = Vec::new();
    for (i, dst) in inst.dsts.iter().enumerate() {
        let Dst::Value(_) = dst else { continue };
        let pinned = func.new_pinned(runtime::place(i));
        call.dsts.push(Dst::Value(pinned));
        out.push(Inst::new(Op::Fix, &[*dst], &[pinned.into()], inst.src));
    }
    insts.push(call);
    insts.extend(out);
    insts
}
