//! Minimum or maximum of three values, and of a sum and a value.

use super::{Combiner, nonzero, single_result};
use crate::emit::encodes;
use crate::ori::ir::{BlockId, Inst, Src, SrcKind, SrcMods};
use crate::ori::op::Op;

impl Combiner<'_> {
    pub(super) fn extreme(&mut self, b: BlockId, i: usize) {
        let inst = self.inst(b, i);
        let [x, y, least] = inst.srcs[..] else { return };
        for (term, other) in [(x, y), (y, x)] {
            let Some((op, [first, second])) = self.taken_in(inst, &term, least) else { continue };
            let third_takes_any = matches!(op, Op::Iaddmnmx { .. });
            let mut srcs = [first, second, other];
            // At most one operand may be a constant, preferably the second.
            let constants: Vec<usize> = (0..3).filter(|&k| is_constant(&srcs[k])).collect();
            match constants[..] {
                [] | [1] => {}
                [2] if third_takes_any => {}
                [k] if !srcs[1].mods.neg => srcs.swap(1, k),
                _ => continue,
            }
            if encodes(self.sm, &op) {
                let new = Inst::new(op, &[inst.dsts[0]], &[srcs[0], srcs[1], srcs[2], least], inst.src);
                self.rewrite(b, i, new);
                return;
            }
        }
    }

    /// The operation that results from fusing an operation with the one that defines an operand, and the operands of
    /// the latter.
    fn taken_in(&self, inst: &Inst, term: &Src, least: Src) -> Option<(Op, [Src; 2])> {
        let inner = self.def(term, true).filter(|_| term.mods == SrcMods::NONE)?;
        match (inst.op, inner.op) {
            (Op::Imnmx { sign }, Op::Iadd3 { x: false }) if single_result(inner) => {
                let terms: Vec<Src> = nonzero(&inner.srcs).collect();
                let [p, q] = terms[..] else { return None };
                let ordered = if p.mods.neg { [q, p] } else { [p, q] };
                (!ordered[0].mods.neg).then_some((Op::Iaddmnmx { sign }, ordered))
            }
            (outer, inside) if outer == inside => {
                let [p, q, inner_least] = inner.srcs[..] else { return None };
                let op = match outer {
                    Op::Imnmx { sign } => Op::Imnmx3 { sign },
                    Op::Fmnmx { ftz, nan, xor: false } => Op::Fmnmx3 { ftz, nan },
                    _ => return None,
                };
                (inner_least == least).then_some((op, [p, q]))
            }
            _ => None,
        }
    }
}

fn is_constant(src: &Src) -> bool {
    matches!(src.kind, SrcKind::Imm(_) | SrcKind::Const(_))
}
