//! Checks the blocks, edges and instructions of the allocated code against the input.

use super::Checker;
use super::content::Content;
use crate::ori::ir::{BlockId, Dst, File, Inst, Reg, Term};
use crate::ori::op::Op;
use crate::ori::operations::signature;
use crate::ori::signature::Width;
use crate::regalloc::convention::Overwritten;
use smallvec::SmallVec;
use std::ops::Range;

impl Checker<'_> {
    /// Checks that blocks, edges and instructions correspond.
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
        self.others_keep_theirs()
    }

    /// Checks that registers which an instruction overwrites in other threads are used for nothing else anywhere.
    fn others_keep_theirs(&self) -> Result<(), String> {
        let everything = || self.after.layout.iter().flat_map(|&b| &self.after.block(b).insts);
        let written = |inst: &Inst| -> Vec<(bool, Range<u16>, File)> {
            let slots = signature(&inst.op).dsts;
            let of_others = inst.op.results_of_others();
            let range = |(i, dst): (usize, &Dst)| match *dst {
                Dst::Reg(Reg { file, index }) => {
                    let width = match slots.get(i).map(|slot| slot.width) {
                        Some(Width::Exactly(width)) => u16::from(width),
                        _ => 1,
                    };
                    Some((i < of_others, index.into()..u16::from(index) + width, file))
                }
                _ => None,
            };
            inst.dsts.iter().enumerate().filter_map(range).collect()
        };
        let shared: Vec<(Range<u16>, File)> = everything()
            .flat_map(written)
            .filter(|(is, ..)| *is)
            .map(|(_, range, file)| (range, file))
            .collect();
        if shared.is_empty() {
            return Ok(());
        }
        for inst in everything() {
            let meets = |range: &Range<u16>, file: File| {
                shared.iter().any(|(of, f)| *f == file && of.start < range.end && range.start < of.end)
            };
            let overwritten = if inst.op.is_call() { Some(self.overwritten(&inst.op)?) } else { None };
            let by_call = shared.iter().flat_map(|(range, file)| range.clone().map(|index| (index, *file)));
            let lost = |by: &Overwritten| {
                by_call.clone().any(|(index, file)| by.has(Reg { file, index: index as u8 }))
            };
            if written(inst).iter().any(|(is, range, file)| !is && meets(range, *file))
                || overwritten.as_ref().is_some_and(lost)
            {
                return Err(format!("{:?} writes a register that other threads overwrite", inst.op));
            }
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
