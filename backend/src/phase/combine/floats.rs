//! Replaces operations that change the sign of a float by modifiers of the operands that read it.

use super::{Combiner, single_result};
use crate::ori::ir::{BlockId, Inst, Src, SrcKind, SrcMods};
use crate::ori::op::{Op, Round};
use crate::ori::signature::{Interpretation, facts, fold_modifiers, signature};

impl Combiner<'_> {
    pub(super) fn float_signs(&mut self, b: BlockId, i: usize) {
        let inst = self.inst(b, i);
        // A selection has no modifiers, but its form for floats has.
        let op = if inst.op == Op::Sel { Op::Fsel { ftz: false } } else { inst.op };
        let wide = match op {
            Op::Fsel { .. } => false,
            Op::Fadd { .. } | Op::Fmul { .. } | Op::Ffma { .. } | Op::Fmnmx { .. } | Op::Fsetp { .. } => {
                false
            }
            Op::Mufu { .. } => false,
            Op::Dadd { .. } | Op::Dmul { .. } | Op::Dfma { .. } | Op::Dsetp { .. } => true,
            _ => return,
        };
        debug_assert_eq!(facts(&op).modifiers, Interpretation::Float);
        if wide {
            self.double_immediate(b, i);
        }
        let inst = self.inst(b, i);
        // The operation is itself a sign change.
        if self.sign_change(&inst.srcs, inst.op, wide).is_some() {
            return;
        }
        let sig = signature(&op);
        let mut new = None;
        for (k, slot) in sig.srcs.iter().enumerate() {
            let Some(src) = inst.srcs.get(k).copied() else { break };
            let Some(def) = self.def(&Src::new(src.kind), false) else { continue };
            if !single_result(def) {
                continue;
            }
            let Some(inner) = self.sign_change(&def.srcs, def.op, wide) else { continue };
            let mods = compose(src.mods, inner.mods);
            if (mods.abs && !slot.mods.abs) || (mods.neg && !slot.mods.neg) || !in_register(&inner) {
                continue;
            }
            // An operation that flushes denormals can only be removed if the reader flushes them.
            if flushes(def.op) && !flushes(op) {
                continue;
            }
            new.get_or_insert_with(|| Inst { op, ..inst.clone() }).srcs[k] = Src { kind: inner.kind, mods };
        }
        if let Some(mut new) = new {
            fold_modifiers(&mut new);
            self.rewrite(b, i, new);
        }
    }

    /// Replaces a double whose low word is zero by an immediate, its high word. At most one other operand may not be a
    /// register.
    fn double_immediate(&mut self, b: BlockId, i: usize) {
        let inst = self.inst(b, i);
        if inst.srcs.iter().any(|src| matches!(src.kind, SrcKind::Imm(_) | SrcKind::Const(_))) {
            return;
        }
        for k in [1, 2, 0] {
            let Some(src) = inst.srcs.get(k).copied() else { continue };
            let Some(pack) = self.def(&Src::new(src.kind), false) else { continue };
            let [low, Src { kind: SrcKind::Imm(high), mods: SrcMods::NONE }] = pack.srcs[..] else {
                continue;
            };
            if pack.op != Op::Pack || low != Src::ZERO {
                continue;
            }
            let mut new = inst.clone();
            new.srcs[k].kind = SrcKind::Imm(high);
            fold_modifiers(&mut new);
            self.rewrite(b, i, new);
            return;
        }
    }

    /// The operand whose sign the operation changes by adding negative zero, if that is its only effect.
    fn sign_change(&self, srcs: &[Src], op: Op, wide: bool) -> Option<Src> {
        let adds = match op {
            Op::Fadd { round: Round::Rn, sat: false, .. } => !wide,
            Op::Dadd { round: Round::Rn } => wide,
            _ => false,
        };
        let [x, y] = srcs else { return None };
        let minus_zero = |src: &Src| *src == Src::ZERO.neg() || *src == Src::imm(0x8000_0000);
        let a = if minus_zero(y) { x } else { y };
        (adds && (minus_zero(x) || minus_zero(y)) && (a.mods.neg || a.mods.abs)).then_some(*a)
    }
}

/// Applies the outer modifiers to the inner ones: magnitude first, then sign.
fn compose(outer: SrcMods, inner: SrcMods) -> SrcMods {
    if outer.abs {
        SrcMods { neg: outer.neg, abs: true, not: false }
    } else {
        SrcMods { neg: outer.neg != inner.neg, abs: inner.abs, not: false }
    }
}

fn in_register(src: &Src) -> bool {
    matches!(src.kind, SrcKind::Value(_) | SrcKind::Part(..) | SrcKind::Const(_))
}

fn flushes(op: Op) -> bool {
    match op {
        Op::Fadd { ftz, .. } | Op::Fmul { ftz, .. } | Op::Ffma { ftz, .. } => ftz,
        Op::Fmnmx { ftz, .. } | Op::Fsetp { ftz, .. } => ftz,
        // `MUFU` flushes by itself.
        Op::Mufu { .. } => true,
        _ => false,
    }
}
