//! Blocks, edges and instructions of the allocated code against those it came from.

use super::Checker;
use super::content::Content;
use crate::ori::ir::{BlockId, Term};
use crate::ori::op::Op;
use smallvec::SmallVec;

impl Checker<'_> {
    /// Blocks, edges and instructions correspond.
    pub(super) fn structure(&self) -> Result<(), String> {
        let mut placed = vec![false; self.after.blocks.len()];
        for &b in &self.after.layout {
            if std::mem::replace(&mut placed[b.index()], true) {
                return Err(format!("{b:?} is placed twice"));
            }
            let block = self.after.block(b);
            let origins = self.origin.get(b.index()).map_or(&[][..], |o| o);
            if !block.phis.is_empty() || origins.len() != block.insts.len() {
                return Err(format!("{b:?} has phis or lacks origins"));
            }
            let originals = self.before.blocks.get(b.index()).map_or(0, |b| b.insts.len());
            if origins.iter().flatten().any(|&o| o as usize >= originals) {
                return Err(format!("{b:?} has instructions that the input lacks"));
            }
        }
        let originals: Vec<BlockId> =
            self.after.layout.iter().copied().filter(|b| b.index() < self.before.blocks.len()).collect();
        if originals != self.before.layout {
            return Err("blocks are missing or in another order".to_owned());
        }
        for &b in &self.before.layout {
            self.terminator(b, &placed)?;
            self.same_instructions(b)?;
        }
        Ok(())
    }

    fn terminator(&self, b: BlockId, placed: &[bool]) -> Result<(), String> {
        let (was, is) = (&self.before.block(b).term, &self.after.block(b).term);
        let same_kind = match (was, is) {
            (Term::Branch { uniform: x, .. }, Term::Branch { uniform: y, .. }) => x == y,
            (Term::Switch { uniform: x, table: p, .. }, Term::Switch { uniform: y, table: q, .. }) => {
                (x, p) == (y, q)
            }
            _ => std::mem::discriminant(was) == std::mem::discriminant(is),
        };
        let (from, to) = (was.successors(), is.successors());
        let mut targets = SmallVec::<[BlockId; 2]>::new();
        for &t in &to {
            targets.push(self.target(t)?.0);
        }
        if !same_kind || from != targets || !to.iter().all(|t| placed[t.index()]) {
            return Err(format!("{b:?} ended with {was:?} and now ends with {is:?}"));
        }
        Ok(())
    }

    fn same_instructions(&self, b: BlockId) -> Result<(), String> {
        let originals = &self.before.block(b).insts;
        let mut next = 0;
        let mut skip = |upto: usize| -> Result<(), String> {
            for (i, inst) in originals.iter().enumerate().take(upto).skip(next) {
                let replaced = inst.defs().next().is_some()
                    && matches!(inst.op, Op::Mov | Op::Umov | Op::Uldc { .. })
                    && inst.defs().all(|v| !matches!(self.expected(v, 0), Content::Lane { .. }));
                if !matches!(inst.op, Op::Pack | Op::Copy) && !replaced {
                    return Err(format!("{b:?} lost instruction {i}, {:?}", inst.op));
                }
            }
            next = upto + 1;
            Ok(())
        };
        let mut last = None;
        for origin in self.origin[b.index()].iter().flatten().map(|&o| o as usize) {
            if last.is_some_and(|l| l >= origin) {
                return Err(format!("{b:?} has instruction {origin} out of order"));
            }
            last = Some(origin);
            skip(origin)?;
        }
        skip(originals.len())
    }
}
