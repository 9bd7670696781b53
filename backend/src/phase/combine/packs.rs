//! Converts two singles to the halves of one word with one operation.

use super::Combiner;
use crate::ori::ir::{BlockId, Inst, Src, SrcKind, SrcMods};
use crate::ori::op::Op;

/// The `PRMT` selector that places the lower half of the third source above that of the first.
const LOWER_HALVES: u32 = 0x5410;

impl Combiner<'_> {
    /// Halves that are rounded separately and then packed.
    pub(super) fn packed_halves(&mut self, b: BlockId, i: usize) {
        let inst = self.inst(b, i);
        let [low, selector, high] = inst.srcs[..] else { return };
        if selector.kind != SrcKind::Imm(LOWER_HALVES) {
            return;
        }
        let (Some((op, low)), Some((other, high))) = (self.rounded_half(&low), self.rounded_half(&high))
        else {
            return;
        };
        // The upper half is in a register.
        if op == other && high.value().is_some() {
            let new = Inst::new(op, &[inst.dsts[0]], &[high, low], inst.src);
            self.rewrite(b, i, new);
        }
    }

    /// The single that is rounded to the lower half of a word, if the upper half is zero and the word has no other use.
    fn rounded_half(&self, src: &Src) -> Option<(Op, Src)> {
        let inner = self.def(src, true).filter(|_| src.mods == SrcMods::NONE)?;
        match inner.srcs[..] {
            [Src { kind: SrcKind::Zero, mods: SrcMods::NONE }, single]
                if matches!(inner.op, Op::F2fp { .. }) =>
            {
                Some((inner.op, single))
            }
            _ => None,
        }
    }
}
