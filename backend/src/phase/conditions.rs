//! Merges the conditions of two branches with a common target, as `||` and `&&` leave them:
//!
//! ```text
//!    b ── yes ──► to                 b and next ── yes ──► to
//!    │ no         ▲           ►           │ no
//!    ▼            │                       ▼
//!   next ── yes ──┘                      other
//!    │ no
//!    ▼
//!   other
//! ```
//!
//! Before: SSA, any control flow. After: SSA without the second blocks. ptxas merges under the same conditions, found by
//! compiling branches with operations between them.

use crate::emit::any_form;
use crate::ori::analyses::Analyses;
use crate::ori::cfg::Cfg;
use crate::ori::ir::{Block, BlockId, Dst, File, Function, Inst, Src, SrcKind, Term, Value};
use crate::ori::loops::Loops;
use crate::ori::op::{Op, lut};
use crate::ori::signature::facts;
use crate::phase::branches::arguments_from;
use crate::phase::combine::with_predicate;
use crate::phase::edit::{may_run_elsewhere, remove_unreached};
use sass::Sm;

/// The maximum number of operations of the second block, with its comparison.
const MOST: usize = 5;

/// Merges the branches of all pairs of blocks, the last ones first. Returns whether there were any.
pub(super) fn merge(func: &mut Function, analyses: &Analyses, sm: Sm) -> bool {
    let (cfg, loops, uses) = (analyses.cfg(func), analyses.loops(func), analyses.uses(func));
    let mut merged = false;
    for &b in cfg.order.iter().rev() {
        if let Some(pair) = Pair::of(func, cfg, loops, b, sm) {
            pair.merge(func, b, uses);
            merged = true;
        }
    }
    if merged {
        let cfg = Cfg::new(func);
        remove_unreached(func, &cfg);
    }
    merged
}

/// A branch and the block at one of its targets, which branches to the other target too.
struct Pair {
    next: BlockId,
    /// The common target.
    to: BlockId,
    other: BlockId,
    branches: [Branch; 2],
}

/// How a block branches to a target.
struct Branch {
    cond: Value,
    /// It goes there if the condition is false.
    negated: bool,
    other: BlockId,
    uniform: bool,
}

impl Branch {
    fn to(func: &Function, b: BlockId, to: BlockId) -> Option<Branch> {
        let Term::Branch { cond: Src { kind: SrcKind::Value(cond), mods }, then, els, uniform } =
            func.block(b).term
        else {
            return None;
        };
        let branch = |other, negated| Branch { cond, negated: negated != mods.not, other, uniform };
        match () {
            () if then == els => None,
            () if then == to => Some(branch(els, false)),
            () if els == to => Some(branch(then, true)),
            () => None,
        }
    }
}

impl Pair {
    fn of(func: &Function, cfg: &Cfg, loops: &Loops, b: BlockId, sm: Sm) -> Option<Pair> {
        let Term::Branch { then, els, .. } = func.block(b).term else { return None };
        [(then, els), (els, then)].into_iter().find_map(|(next, to)| {
            let (first, second) = (Branch::to(func, b, to)?, Branch::to(func, next, to)?);
            let pair = Pair { next, to, other: second.other, branches: [first, second] };
            let fits = next != b
                && cfg.preds(next).len() == 1
                && func.block(next).phis.is_empty()
                && arguments_from(func, to, b) == arguments_from(func, to, next)
                && pair.is_short(func, sm)
                && !pair.ends(func)
                && pair.stays_in_loop(loops, b);
            fits.then_some(pair)
        })
    }

    fn is_short(&self, func: &Function, sm: Sm) -> bool {
        let insts = &func.block(self.next).insts;
        let is_routine = |inst: &Inst| matches!(inst.op, Op::Compute { .. });
        let can_move =
            |inst: &Inst| may_run_elsewhere(func, inst) && facts(&inst.op).is_pure() && !is_routine(inst);
        let counts = |inst: &&Inst| any_form(sm, &inst.op).is_some();
        insts.iter().all(can_move) && insts.iter().filter(counts).count() <= MOST
    }

    /// Whether the common target only ends the thread: a guarded `EXIT` needs no branch.
    fn ends(&self, func: &Function) -> bool {
        let to = func.block(self.to);
        to.insts.is_empty() && matches!(to.term, Term::Exit | Term::Ret)
    }

    /// Whether the branches leave the innermost loop of `b` only at its end, if at all.
    fn stays_in_loop(&self, loops: &Loops, b: BlockId) -> bool {
        let Some(one) = loops.innermost(b) else { return true };
        let targets = [self.to, self.other];
        loops.contains(one, self.next)
            && (targets.iter().all(|to| loops.contains(one, *to))
                || targets.contains(&loops.loops[one.0 as usize].header))
    }

    fn merge(&self, func: &mut Function, b: BlockId, uses: &[u32]) {
        let [first, second] = &self.branches;
        let mut next = std::mem::take(func.block_mut(self.next));
        let cond = self.combine_test(&mut next, uses).unwrap_or_else(|| {
            let input = |input: u8, branch: &Branch| if branch.negated { !input } else { input };
            let goes = input(lut::A, first) | input(lut::B, second);
            let cond = func.new_value(File::P, 1);
            let srcs = [first.cond.into(), second.cond.into(), Src::TRUE];
            let op = Op::Plop3 { lut: goes, lut2: !goes };
            next.insts.push(Inst::new(op, &[Dst::Value(cond), Dst::Sink], &srcs, next.term_src));
            cond.into()
        });
        for phi in &mut func.block_mut(self.to).phis {
            phi.args.retain(|(from, _)| *from != self.next);
        }
        for phi in &mut func.block_mut(self.other).phis {
            let moved = phi.args.iter_mut().filter(|(from, _)| *from == self.next);
            moved.for_each(|(from, _)| *from = b);
        }
        let block = func.block_mut(b);
        block.insts.extend(next.insts);
        let uniform = first.uniform && second.uniform;
        block.term = Term::Branch { cond, then: self.to, els: self.other, uniform };
    }

    /// Lets the comparison of the second block combine its result with the first condition, if only the branch reads it.
    fn combine_test(&self, next: &mut Block, uses: &[u32]) -> Option<Src> {
        let [first, second] = &self.branches;
        if uses.get(second.cond.index()) != Some(&1) {
            return None;
        }
        let test = next.insts.iter_mut().find(|inst| inst.dsts.first() == Some(&Dst::Value(second.cond)))?;
        let goes = |at: &u8| (at >> 1 != 0) != second.negated || (at & 1 != 0) != first.negated;
        let table = (0..4).filter(goes).fold(0, |table, at| table | 1 << at);
        *test = with_predicate(test, table, first.cond.into())?;
        Some(second.cond.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ori::text;
    use crate::ori::verify::{Stage, verify};
    use expect_test::{Expect, expect};

    fn merged(body: &str) -> String {
        let head = "b0:\n%v0:r = S2R{sr=0x21}\n%v1:p, _ = ISETP.LT.AND %v0, 0x5, PT\n";
        let mut func = text::parse(&format!("func \"f\" {{\n{head}{body}\n}}")).unwrap();
        merge(&mut func, &Analyses::default(), Sm(90));
        verify(&func, Stage::Built).unwrap();
        text::print(&func)
    }

    fn check(body: &str, expected: Expect) {
        expected.assert_eq(&merged(body));
    }

    fn stays(body: &str) -> bool {
        let text = merged(body);
        text.contains("\nb1:") && text.matches("BRA").count() == body.matches("BRA").count()
    }

    /// The second block, with `extra` operations and a comparison, and both targets.
    fn second(extra: &str) -> String {
        format!(
            "BRA %v1, b2, b1\nb1:\n{extra}%v2:p, _ = ISETP.GT.AND %v0, 0x9, PT\nBRA %v2, b2, b3\n\
             b2:\nSTS %v0, RZ, RZ\nJUMP b3\nb3:\nSTS RZ, RZ, %v0\nEXIT"
        )
    }

    #[test]
    fn the_second_comparison_takes_the_first_condition() {
        check(
            &second(""),
            expect![[r#"
                func "f" {
                b0:
                  %v0:r = S2R{sr=0x21}
                  %v1:p, _ = ISETP.LT.AND %v0, 0x5, PT
                  %v2:p, _ = ISETP.GT.OR %v0, 0x9, %v1
                  BRA %v2, b2, b3
                b2:
                  STS %v0, RZ, RZ
                  JUMP b3
                b3:
                  STS RZ, RZ, %v0
                  EXIT
                }
            "#]],
        );
    }

    #[test]
    fn the_conditions_of_a_conjunction_are_inverted() {
        check(
            "BRA !%v1, b2, b1\nb1:\n%v2:p = LOP3.P{lut=0xc0} %v0, 0x8, RZ\nBRA %v2, b3, b2\n\
             b2:\nSTS %v0, RZ, RZ\nJUMP b3\nb3:\n%v3:r = phi b1 0x1, b2 0x2\nSTS RZ, RZ, %v3\nEXIT",
            expect![[r#"
                func "f" {
                b0:
                  %v0:r = S2R{sr=0x21}
                  %v1:p, _ = ISETP.LT.AND %v0, 0x5, PT
                  %v2:p = LOP3.P{lut=0xc0} %v0, 0x8, RZ
                  %v4:p, _ = PLOP3{lut=0x3f,lut2=0xc0} %v1, %v2, PT
                  BRA %v4, b2, b3
                b2:
                  STS %v0, RZ, RZ
                  JUMP b3
                b3:
                  %v3:r = phi b0 0x1, b2 0x2
                  STS RZ, RZ, %v3
                  EXIT
                }
            "#]],
        );
    }

    #[test]
    fn long_blocks_and_accesses_stay() {
        let sums = |count: usize| -> String {
            (0..count).map(|i| format!("%v{}:r, _, _ = IADD3 %v0, 0x7, RZ\n", 10 + i)).collect()
        };
        assert!(!stays(&second(&sums(4))));
        assert!(stays(&second(&sums(5))));
        assert!(stays(&second("%v10:r = LDS{offset=0x0} %v0, RZ\n")));
        assert!(stays(&second("%v10:r, _, _, _ = COMPUTE.QUOTIENT_F32 %v0, 0x7, RZ, RZ\n")));
    }

    #[test]
    fn targets_that_differ_or_only_end_the_thread_stay() {
        let phi = "BRA %v1, b2, b1\nb1:\n%v2:p, _ = ISETP.GT.AND %v0, 0x9, PT\nBRA %v2, b2, b3\n\
                   b2:\n%v3:r = phi b0 0x1, b1 ARG\nSTS %v3, RZ, RZ\nJUMP b3\nb3:\nSTS RZ, RZ, %v0\nEXIT";
        assert!(stays(&phi.replace("ARG", "0x2")));
        assert!(!stays(&phi.replace("ARG", "0x1")));
        let end = "BRA %v1, b2, b1\nb1:\n%v2:p, _ = ISETP.GT.AND %v0, 0x9, PT\nBRA %v2, b2, b3\n\
                   b2:\nEXIT\nb3:\nSTS RZ, RZ, %v0\nEXIT";
        assert!(stays(end));
    }

    /// The threads leave the loop in two places: before the store, or from the end.
    #[test]
    fn exits_from_the_middle_of_a_loop_stay() {
        let body = |last: &str| {
            format!(
                "JUMP b4\nb4:\n%v5:r = phi b0 RZ, {last} %v6\n%v6:r, _, _ = IADD3 %v5, 0x1, RZ\nBRA %v1, b2, b1\n\
                 b1:\n%v2:p, _ = ISETP.GT.AND %v6, 0x9, PT\nBRA %v2, b2, {}\n\
                 b5:\nSTS %v6, RZ, RZ\nJUMP b4\nb2:\nSTS RZ, RZ, %v0\nEXIT",
                if last == "b5" { "b5" } else { "b4" }
            )
        };
        assert!(stays(&body("b5")));
        assert!(!stays(&body("b1").replace("b5:\nSTS %v6, RZ, RZ\nJUMP b4\n", "")));
    }
}
