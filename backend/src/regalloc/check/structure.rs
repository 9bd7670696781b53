//! Blocks, edges and instructions of the allocated code against those it came from.

use super::Checker;
use super::content::{Content, Place, offset, spill_words, words};
use crate::ori::ir::{BlockId, Dst, Inst, SrcKind, Term};
use crate::ori::op::Op;
use crate::regalloc::STACK_POINTER;
use smallvec::SmallVec;

impl Checker<'_> {
    /// Blocks, edges and instructions correspond. Numbers the places.
    pub(super) fn structure(&mut self) -> Result<(), String> {
        for &b in &self.after.layout {
            let block = self.after.block(b);
            let origins = &self.origin[b.index()];
            if !block.phis.is_empty() || origins.len() != block.insts.len() {
                return Err(format!("{b:?} has phis or lacks origins"));
            }
            if b.index() >= self.before.blocks.len() && origins.iter().any(Option::is_some) {
                return Err(format!("{b:?} was added but has original instructions"));
            }
            for (inst, origin) in block.insts.iter().zip(origins) {
                let original = origin.map(|o| &self.before.block(b).insts[o as usize]);
                self.number_places(inst, original)?;
            }
            if let Some(SrcKind::Reg(r)) = block.term.operand().map(|src| src.kind) {
                self.number(Place::Reg(r));
            }
        }
        let originals: Vec<BlockId> =
            self.after.layout.iter().copied().filter(|b| b.index() < self.before.blocks.len()).collect();
        if originals != self.before.layout {
            return Err("blocks are missing or in another order".to_owned());
        }
        for &b in &self.before.layout {
            self.terminator(b)?;
            self.same_instructions(b)?;
        }
        Ok(())
    }

    fn number(&mut self, place: Place) {
        let next = self.places.len();
        if *self.places.entry(place).or_insert(next) == next {
            self.place_list.push(place);
        }
    }

    fn number_places(&mut self, inst: &Inst, original: Option<&Inst>) -> Result<(), String> {
        for (i, dst) in inst.dsts.iter().enumerate() {
            let width = match original.and_then(|o| o.dsts.get(i)) {
                Some(Dst::Value(v)) => self.before.value(*v).width,
                _ => match inst.op {
                    Op::Ldl { size, .. } => words(size),
                    Op::Cs2r { wide: true, .. } => 2,
                    _ => 1,
                },
            };
            match dst {
                Dst::Reg(r) => {
                    if *r == STACK_POINTER && original.is_none_or(|o| o.dsts[i] != *dst) {
                        return Err(format!("{inst:?} writes the stack pointer"));
                    }
                    for lane in 0..width {
                        self.number(Place::Reg(offset(*r, lane)?));
                    }
                }
                Dst::Value(v) => return Err(format!("{v:?} is still written")),
                Dst::Sink => {}
            }
        }
        if let (Op::Stl { size, offset } | Op::Ldl { size, offset }, None) = (inst.op, original) {
            for word in spill_words(&self.after.frame, size, offset)? {
                self.number(Place::Word(word));
            }
        }
        // What is read without ever being written holds undefined values.
        for (i, is) in inst.uses().enumerate() {
            let width = match (original.and_then(|o| o.uses().nth(i)).map(|s| s.kind), inst.op) {
                (Some(SrcKind::Value(v)), _) => self.before.value(v).width,
                (None, Op::Stl { size, .. }) => words(size),
                _ => 1,
            };
            if let SrcKind::Reg(r) = is.kind {
                for lane in 0..width {
                    self.number(Place::Reg(offset(r, lane)?));
                }
            }
        }
        Ok(())
    }

    fn terminator(&self, b: BlockId) -> Result<(), String> {
        let (was, is) = (&self.before.block(b).term, &self.after.block(b).term);
        let same_kind = match (was, is) {
            (Term::Branch { uniform: x, .. }, Term::Branch { uniform: y, .. })
            | (Term::Switch { uniform: x, .. }, Term::Switch { uniform: y, .. }) => x == y,
            _ => std::mem::discriminant(was) == std::mem::discriminant(is),
        };
        let (from, to) = (was.successors(), is.successors());
        let mut targets = SmallVec::<[BlockId; 2]>::new();
        for &t in &to {
            targets.push(self.target(t)?.0);
        }
        if !same_kind || from != targets {
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
