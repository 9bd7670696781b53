//! Logic: three-input functions of words and of predicates, tests of words, comparisons with the logic of their
//! results.

use super::{Combiner, single_result};
use crate::ori::ir::{BlockId, Dst, File, Inst, Src, SrcKind};
use crate::ori::op::{Bool, ICmp, Op};
use crate::phase::edit::known;
use smallvec::SmallVec;

/// For each source, its bit in the index of a truth table.
const INPUT: [u8; 3] = [4, 2, 1];

impl Combiner<'_> {
    /// Fuses the function with the functions that compute its inputs, as long as there are at most three inputs.
    pub(super) fn logic(&mut self, b: BlockId, i: usize) {
        // Each round fuses one function; there are never more than three inputs.
        for _ in 0..4 {
            let inst = self.inst(b, i);
            let Some(new) = (0..3).find_map(|k| self.merged_logic(inst, k)) else { return };
            self.rewrite(b, i, new);
        }
    }

    fn merged_logic(&self, inst: &Inst, k: usize) -> Option<Inst> {
        let (Op::Lop3 { lut } | Op::Lop3P { lut }) = inst.op else { return None };
        let inner = self.def(&inst.srcs[k], false)?;
        let Op::Lop3 { lut: inner_lut } = inner.op else { return None };
        let inner_inputs = inner.srcs.iter().filter(|src| src.kind != SrcKind::Zero).count();
        let only = inst.srcs[k].value().is_some_and(|v| self.uses(v) == 1);
        if !only && inner_inputs > 1 {
            return None;
        }
        // The new inputs: the outer ones except `k`, and the inner ones.
        let mut inputs: SmallVec<[Src; 6]> = SmallVec::new();
        let all =
            inst.srcs.iter().enumerate().filter(|(j, _)| *j != k).map(|(_, src)| src).chain(&inner.srcs);
        for src in all {
            if src.kind != SrcKind::Zero && !inputs.contains(src) {
                inputs.push(*src);
            }
        }
        let numbers =
            inputs.iter().filter(|src| !matches!(src.kind, SrcKind::Value(_) | SrcKind::Part(..))).count();
        if inputs.len() > 3 || numbers > 1 {
            return None;
        }
        let bit = |src: &Src, index: u8| match inputs.iter().position(|input| input == src) {
            Some(at) => index & INPUT[at] != 0,
            None => false,
        };
        let evaluate = |lut: u8, bits: [bool; 3]| {
            let index =
                bits.iter().zip(INPUT).fold(0, |index, (set, bit)| index | if *set { bit } else { 0 });
            lut >> index & 1 != 0
        };
        let table = (0..8u8).fold(0, |table, index| {
            let inner_bit = evaluate(inner_lut, [0, 1, 2].map(|j| bit(&inner.srcs[j], index)));
            let outer = [0, 1, 2].map(|j| if j == k { inner_bit } else { bit(&inst.srcs[j], index) });
            table | (u8::from(evaluate(lut, outer)) << index)
        });
        inputs.resize(3, Src::ZERO);
        let mut new = inst.clone();
        new.op = if matches!(inst.op, Op::Lop3 { .. }) {
            Op::Lop3 { lut: table }
        } else {
            Op::Lop3P { lut: table }
        };
        new.srcs = inputs.iter().copied().collect();
        Some(new)
    }

    /// `PLOP3` of a comparison's result: the comparison can combine the result itself.
    pub(super) fn predicate_logic(&mut self, b: BlockId, i: usize) {
        let inst = self.inst(b, i);
        let Op::Plop3 { lut, .. } = inst.op else { return };
        if !single_result(inst) || inst.srcs.len() != 3 || inst.srcs[2] != Src::TRUE {
            return;
        }
        // The table of two inputs, from the rows in which the third input is true: bit `2p + q`.
        let table = (0..4u8).fold(0u8, |table, index| table | ((lut >> (2 * index + 1) & 1) << index));
        let (p, q) = (inst.srcs[0], inst.srcs[1]);
        // The same with exchanged inputs.
        let exchanged = (table & 0b1001) | ((table & 0b0010) << 1) | ((table & 0b0100) >> 1);
        for (compared, with, table) in [(p, q, table), (q, p, exchanged)] {
            if compared.kind == with.kind || matches!(with.kind, SrcKind::Pred(_)) {
                continue;
            }
            let positive = Src::new(compared.kind);
            let Some(test) = self.def(&positive, true) else { continue };
            // The table of the result itself, if its complement is read.
            let table = if compared.mods.not { table << 2 & 0b1100 | table >> 2 } else { table };
            let Some(test) = with_predicate(test, table, with) else { continue };
            let inst = self.inst(b, i);
            let new = Inst::new(test.op, &[inst.dsts[0]], &test.srcs, inst.src);
            self.rewrite(b, i, new);
            return;
        }
    }

    /// A test whether the result of a logic function is zero: the function can test it itself.
    pub(super) fn test(&mut self, b: BlockId, i: usize) {
        let inst = self.inst(b, i);
        let Op::Isetp { cmp: cmp @ (ICmp::Ne | ICmp::Eq), bool_: Bool::And, ex: false, .. } = inst.op else {
            return;
        };
        let plain = single_result(inst) && inst.srcs.get(2).is_none_or(Src::is_true);
        if !plain || known(&inst.srcs[1]) != Some(0) {
            return;
        }
        let Some(logic) = self.def(&inst.srcs[0], true) else { return };
        let Op::Lop3 { lut } = logic.op else { return };
        let Dst::Value(result) = inst.dsts[0] else { return };
        let (srcs, src) = (logic.srcs.clone(), inst.src);
        if cmp == ICmp::Ne {
            let new = Inst::new(Op::Lop3P { lut }, &[Dst::Value(result)], &srcs, src);
            self.rewrite(b, i, new);
            return;
        }
        let not_zero = self.new_value(File::P, 1);
        let new = Inst::new(Op::Lop3P { lut }, &[Dst::Value(not_zero)], &srcs, src);
        self.rewrite(b, i, new);
        self.replace(result, Src::from(not_zero).not());
    }
}

/// The comparison with a result that it combines with another predicate. Bit `2p + q` of `table` is the new result if the
/// old one is `p` and the predicate `q`.
pub(in crate::phase) fn with_predicate(test: &Inst, table: u8, with: Src) -> Option<Inst> {
    if !single_result(test) || !combines_nothing(test) {
        return None;
    }
    let (bool_, negate, negate_with) = two_inputs(table)?;
    let mut new = test.clone();
    new.op = combined(test.op, bool_, negate)?;
    new.srcs.resize(new.srcs.len().max(3), Src::TRUE);
    new.srcs[2] = if negate_with { with.not() } else { with };
    Some(new)
}

/// Whether the comparison does not combine its result with another predicate.
fn combines_nothing(inst: &Inst) -> bool {
    let with = inst.srcs.get(2).copied().unwrap_or(Src::TRUE);
    let and = matches!(
        inst.op,
        Op::Isetp { bool_: Bool::And, .. }
            | Op::Fsetp { bool_: Bool::And, .. }
            | Op::Dsetp { bool_: Bool::And, .. }
            | Op::Hsetp2 { bool_: Bool::And, .. }
    );
    and && with == Src::TRUE
}

/// A table of two inputs (bit `2p + q`) as one operation on the inputs, each of which may be negated.
fn two_inputs(table: u8) -> Option<(Bool, bool, bool)> {
    Some(match table {
        0b1000 => (Bool::And, false, false),
        0b0100 => (Bool::And, false, true),
        0b0010 => (Bool::And, true, false),
        0b0001 => (Bool::And, true, true),
        0b1110 => (Bool::Or, false, false),
        0b1101 => (Bool::Or, false, true),
        0b1011 => (Bool::Or, true, false),
        0b0111 => (Bool::Or, true, true),
        0b0110 => (Bool::Xor, false, false),
        0b1001 => (Bool::Xor, false, true),
        _ => return None,
    })
}

/// The comparison, or its negation, combined by `with`.
fn combined(op: Op, with: Bool, negate: bool) -> Option<Op> {
    Some(match op {
        // An extended comparison can be negated only together with the comparison of the low words.
        Op::Isetp { ex: true, .. } if negate => return None,
        Op::Isetp { cmp, sign, ex, .. } => {
            Op::Isetp { cmp: if negate { cmp.inverse() } else { cmp }, sign, bool_: with, ex }
        }
        Op::Fsetp { cmp, ftz, .. } => {
            Op::Fsetp { cmp: if negate { cmp.inverse() } else { cmp }, ftz, bool_: with }
        }
        Op::Dsetp { cmp, .. } => Op::Dsetp { cmp: if negate { cmp.inverse() } else { cmp }, bool_: with },
        _ => return None,
    })
}
