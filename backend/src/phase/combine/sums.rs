//! 32-bit sums: three terms in one operation, and a product or a shifted term with an addend.

use super::{Combiner, nonzero, single_result};
use crate::ori::ir::{BlockId, Inst, Src, SrcKind, SrcMods};
use crate::ori::op::{Op, ShfType, Sign};
use crate::phase::edit::known;
use smallvec::SmallVec;

type Terms = SmallVec<[Src; 6]>;

impl Combiner<'_> {
    pub(super) fn sum(&mut self, b: BlockId, i: usize) {
        let inst = self.inst(b, i);
        if !single_result(inst) {
            return;
        }
        let (mut terms, mut constant) = (Terms::new(), 0u32);
        split(&inst.srcs, false, &mut terms, &mut constant);
        let mut changed = false;
        // Fuse the sums that define the terms.
        let mut at = 0;
        while at < terms.len() {
            let term = terms[at];
            if let Some((inner, inner_constant)) = self.inner_sum(&term, terms.len(), constant) {
                terms.remove(at);
                terms.extend(inner);
                constant = constant.wrapping_add(inner_constant);
                changed = true;
            } else {
                at += 1;
            }
        }
        if changed {
            let mut srcs = terms.clone();
            if constant != 0 || srcs.is_empty() {
                srcs.insert(srcs.len().min(1), Src::imm(constant));
            }
            srcs.resize(3, Src::ZERO);
            let mut new = self.inst(b, i).clone();
            new.srcs = srcs.iter().copied().collect();
            self.rewrite(b, i, new);
        }
        self.product_or_shift(b, i);
    }

    /// The terms of the sum that defines the term, if they fit together with `others` and the result is still one
    /// operation.
    fn inner_sum(&self, term: &Src, others: usize, constant: u32) -> Option<(Terms, u32)> {
        if term.mods.not || term.mods.abs {
            return None;
        }
        let plain = Src::new(term.kind);
        let inst = self.def(&plain, false)?;
        if inst.op != (Op::Iadd3 { x: false }) || !single_result(inst) {
            return None;
        }
        let (mut inner, mut inner_constant) = (Terms::new(), 0u32);
        split(&inst.srcs, term.mods.neg, &mut inner, &mut inner_constant);
        let has_constant = constant.wrapping_add(inner_constant) != 0;
        let total = others - 1 + inner.len() + usize::from(has_constant);
        let only = term.value().is_some_and(|v| self.uses(v) == 1);
        // A term plus a constant is fused even if it has other uses, because that adds no operation.
        let offset = inner.len() == 1 && inner_constant != 0 && constant != 0;
        let negated = inner.iter().filter(|src| src.mods.neg).count() + usize::from(others > 1);
        (total <= 3 && negated <= 2 && (only || offset)).then_some((inner, inner_constant))
    }

    /// `x * y + z`, `(x << k) + z` and `(x >> k) + z` from a sum of two terms.
    fn product_or_shift(&mut self, b: BlockId, i: usize) {
        let inst = self.inst(b, i);
        let terms: SmallVec<[Src; 3]> = nonzero(&inst.srcs).collect();
        let [first, second] = terms[..] else { return };
        for (term, other) in [(first, second), (second, first)] {
            let inst = self.inst(b, i);
            let dst = [inst.dsts[0]];
            if let Some((sign, [x, y])) = self.low_product(&term) {
                let new = Inst::new(Op::Imad { sign }, &dst, &[x, y, other], inst.src);
                self.rewrite(b, i, new);
                return;
            }
            let Some(inner) = self.def(&term, true) else { continue };
            let new = match inner.op {
                Op::Imad { sign } if inner.srcs[2] == Src::ZERO => {
                    Inst::new(Op::Imad { sign }, &dst, &[inner.srcs[0], inner.srcs[1], other], inst.src)
                }
                Op::Shf { right: false, hi: false, ty: ShfType::U32, .. }
                    if other.mods == SrcMods::NONE && inner.srcs[2] == Src::ZERO =>
                {
                    match known(&inner.srcs[1]) {
                        Some(shift @ 1..32) => {
                            let op = Op::Lea { shift: shift as u8 };
                            Inst::new(op, &dst, &[inner.srcs[0], other], inst.src)
                        }
                        _ => continue,
                    }
                }
                _ => continue,
            };
            self.rewrite(b, i, new);
            return;
        }
        for (term, other) in [(first, second), (second, first)] {
            let inst = self.inst(b, i);
            if let Some(new) = self.shift_right_add(inst, &term, other) {
                self.rewrite(b, i, new);
                return;
            }
        }
    }

    /// `(x >> k) + z`: the high word of a shift to the left, and `z`.
    fn shift_right_add(&self, sum: &Inst, term: &Src, other: Src) -> Option<Inst> {
        let shifted = self.def(term, true)?;
        let Op::Shf { right: true, wrap: false, hi: true, ty } = shifted.op else { return None };
        let x = shifted.srcs[2];
        let by @ 1..32 = known(&shifted.srcs[1])? else { return None };
        let shift = 32 - by as u8;
        let dst = [sum.dsts[0]];
        match ty {
            ShfType::U32 => {
                Some(Inst::new(Op::LeaHi { shift, x: false }, &dst, &[x, other, Src::ZERO], sum.src))
            }
            ShfType::S32 => Some(Inst::new(Op::LeaHiSx { shift, x: false }, &dst, &[x, other], sum.src)),
            _ => None,
        }
    }

    /// The factors of a wide product of which only the low word is used, and only here.
    fn low_product(&self, term: &Src) -> Option<(Sign, [Src; 2])> {
        let Src { kind: SrcKind::Part(v, 0), mods: SrcMods::NONE } = *term else { return None };
        let inst =
            self.defs.inst(self.func, v).filter(|inst| inst.guard.is_true() && inst.defs().count() == 1)?;
        match (inst.op, self.uses(v), &inst.srcs[..]) {
            (Op::ImadWide { sign, x: false }, 1, &[x, y, Src::ZERO]) => Some((sign, [x, y])),
            _ => None,
        }
    }
}

/// The terms and the constant of a sum, all negated if `negate`.
fn split(srcs: &[Src], negate: bool, terms: &mut Terms, constant: &mut u32) {
    for src in srcs {
        match known(src) {
            Some(bits) => {
                *constant = constant.wrapping_add(if negate { bits.wrapping_neg() } else { bits });
            }
            None if src.kind == SrcKind::Zero => {}
            None => terms.push(if negate { src.neg() } else { *src }),
        }
    }
}
