//! The values of a loop that are known in every iteration, because they depend only on constants and on phis that start
//! with constants.

use crate::ori::defs::Defs;
use crate::ori::eval::{self, Word};
use crate::ori::ir::{BlockId, Dst, Function, Inst, Src, SrcKind, Value};
use rustc_hash::{FxHashMap, FxHashSet};

/// The maximum number of instructions that are evaluated to find a constant before the loop.
const DEPTH: u32 = 3;

/// The known values of a loop.
pub(super) struct Known {
    values: FxHashSet<Value>,
    /// The phis of the header that are known, with their values in the first iteration.
    starts: Vec<(Value, Word)>,
}

impl Known {
    /// The known values of the loop that consists of these blocks, which are in the order of control flow.
    pub(super) fn of(func: &Function, defs: &Defs, body: &[BlockId]) -> Known {
        let mut known = Known { values: FxHashSet::default(), starts: Vec::new() };
        let (Some(&header), Some(&last)) = (body.first(), body.last()) else { return known };
        let phis = &func.block(header).phis;
        for phi in phis {
            let mut before = phi.args.iter().filter(|(from, _)| *from != last);
            let constants = || before.clone().map(|(_, src)| constant(func, defs, *src, DEPTH));
            if let Some(first) = constants().next().flatten()
                && constants().all(|other| other == Some(first))
                && before.next().is_some()
            {
                known.starts.push((phi.dst, first));
            }
        }
        // Optimistic: a phi is known until its value at the end of an iteration is not.
        loop {
            known.values = known.starts.iter().map(|(v, _)| *v).collect();
            for inst in body.iter().flat_map(|&b| &func.block(b).insts) {
                if eval::is_exact(inst) && inst.uses().all(|src| known.has(src)) {
                    known.values.extend(inst.defs());
                }
            }
            let before = known.starts.len();
            let starts = std::mem::take(&mut known.starts);
            known.starts = starts.into_iter().filter(|(v, _)| known.has(&again(func, body, *v))).collect();
            if known.starts.len() == before {
                return known;
            }
        }
    }

    /// Whether the operand is known, or known relative to the stack pointer.
    pub(super) fn has(&self, src: &Src) -> bool {
        match src.kind {
            SrcKind::Value(v) | SrcKind::Part(v, _) => self.values.contains(&v),
            SrcKind::Imm(_) | SrcKind::Zero | SrcKind::Pred(_) | SrcKind::Reg(_) => true,
            SrcKind::Const(_) | SrcKind::Undef => false,
        }
    }

    /// Whether all results of the instruction are known.
    pub(super) fn computes(&self, inst: &Inst) -> bool {
        inst.defs().next().is_some() && inst.defs().all(|v| self.values.contains(&v))
    }

    /// The number of iterations until the loop is left, if it is at most `most`. The loop goes on while the condition is
    /// `goes_on`. `None` if the condition is not known.
    pub(super) fn iterations(
        &self,
        func: &Function,
        body: &[BlockId],
        cond: Src,
        goes_on: bool,
        most: u32,
    ) -> Option<u32> {
        if !self.has(&cond) {
            return None;
        }
        let needed = self.needed(func, body, cond);
        let mut phis: Vec<(Value, Word)> =
            self.starts.iter().copied().filter(|(v, _)| needed.all.contains(v)).collect();
        let ends: Vec<Src> = phis.iter().map(|(v, _)| again(func, body, *v)).collect();
        for iteration in 1..=most {
            let mut values: FxHashMap<Value, Word> = phis.iter().copied().collect();
            for inst in &needed.insts {
                let results = eval::known_results(func, inst, |v| values.get(&v).copied())?;
                for (dst, word) in inst.dsts.iter().zip(results) {
                    if let Dst::Value(v) = dst {
                        values.insert(*v, word);
                    }
                }
            }
            let word = |src: Src| eval::known_word(func, src, 1, |v| values.get(&v).copied());
            if (word(cond)?[0] & 1 != 0) != goes_on {
                return Some(iteration);
            }
            let next: Option<Vec<Word>> = ends.iter().map(|src| word(*src)).collect();
            phis.iter_mut().zip(next?).for_each(|(phi, word)| phi.1 = word);
        }
        None
    }

    /// What determines a condition.
    fn needed<'f>(&self, func: &'f Function, body: &[BlockId], cond: Src) -> Needed<'f> {
        let mut all: FxHashSet<Value> = cond.value().into_iter().collect();
        let insts = || body.iter().rev().flat_map(|&b| func.block(b).insts.iter().rev());
        loop {
            let before = all.len();
            for inst in insts() {
                if inst.defs().any(|v| all.contains(&v)) {
                    all.extend(inst.uses().filter_map(Src::value));
                }
            }
            for (v, _) in &self.starts {
                if all.contains(v) {
                    all.extend(again(func, body, *v).value());
                }
            }
            if all.len() == before {
                break;
            }
        }
        let mut insts: Vec<&Inst> = insts().filter(|inst| inst.defs().any(|v| all.contains(&v))).collect();
        insts.reverse();
        Needed { all, insts }
    }
}

/// The values and instructions that determine a condition.
struct Needed<'f> {
    all: FxHashSet<Value>,
    insts: Vec<&'f Inst>,
}

/// The value of a phi of the header after an iteration; the phi itself if there is none.
fn again(func: &Function, body: &[BlockId], v: Value) -> Src {
    let phi = body.first().and_then(|&header| func.block(header).phis.iter().find(|phi| phi.dst == v));
    let arg = phi.and_then(|phi| phi.args.iter().find(|(from, _)| Some(from) == body.last()));
    arg.map_or(v.into(), |(_, src)| *src)
}

/// The contents of an operand that is computed from constants alone.
fn constant(func: &Function, defs: &Defs, src: Src, depth: u32) -> Option<Word> {
    let below = |v: Value| {
        let inst = defs.inst(func, v).filter(|_| depth > 0)?;
        let results = eval::known_results(func, inst, |v| constant(func, defs, v.into(), depth - 1))?;
        let place = inst.dsts.iter().position(|dst| *dst == Dst::Value(v))?;
        results.get(place).copied()
    };
    eval::known_word(func, src, 1, below)
}
