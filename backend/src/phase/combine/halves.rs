//! Converts the high half of a word where it is, without shifting it down.

use super::{Combiner, single_result};
use crate::ori::ir::{BlockId, File, Src, SrcKind, SrcMods};
use crate::ori::op::{HalfRead, Op, ShfType};
use crate::phase::edit::known;

impl Combiner<'_> {
    /// The conversion of a half to a float.
    pub(super) fn widened_half(&mut self, b: BlockId, i: usize) {
        let inst = self.inst(b, i);
        let half = inst.srcs[1];
        let Some(shift) = self.def(&Src::new(half.kind), false).filter(|shift| single_result(shift)) else {
            return;
        };
        let Op::Shf { right: true, hi: true, ty: ShfType::U32 | ShfType::S32, .. } = shift.op else { return };
        let [_, amount, word] = shift.srcs[..] else { return };
        let in_register = match word.kind {
            SrcKind::Value(v) | SrcKind::Part(v, _) => self.func.value(v).file == File::R,
            _ => false,
        };
        if known(&amount) != Some(16) || !in_register || word.mods != SrcMods::NONE {
            return;
        }
        let mut new = inst.clone();
        if let Op::Hadd2 { half, .. } = &mut new.op {
            *half = HalfRead::High;
        }
        new.srcs[1].kind = word.kind;
        self.rewrite(b, i, new);
    }
}
