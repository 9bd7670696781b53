//! Predication: short sides of a branch become guarded or speculated operations of the block with the branch.
//!
//! Operations without effects are executed for all threads. Operations that access memory get the branch's predicate as
//! guard. If a value differs between the sides, the guarded operation of one side overwrites the value of the other
//! side; if its operation cannot be guarded, the value is selected.
//!
//! Before: SSA, any control flow. After: SSA with fewer blocks; inner branches are processed first.

use crate::CodegenError;
use crate::emit::{any_form, encodes};
use crate::input::SrcId;
use crate::ori::alias;
use crate::ori::analyses::Analyses;
use crate::ori::cfg::Cfg;
use crate::ori::ir::{BlockId, Dst, File, Function, Inst, Src, SrcKind, SrcMods, Term, ValueData};
use crate::ori::loops::Loops;
use crate::ori::memory::{Kind, Space, effect, memory};
use crate::ori::op::Op;
use crate::ori::signature::facts;
use crate::phase::branches::{arguments_from, merge_chains};
use crate::phase::conditions;
use crate::phase::edit::normalize_predicate;
use crate::phases::{Change, Context};
use sass::{Class, Sm};

/// The maximum number of operations that move out of a side: as many as a barrier, a branch and the lost cycles cost.
const SIDE: usize = 8;
/// The same for both sides together.
const BOTH: usize = 12;
/// The same for a single side that loads from global memory: with a guard, later code can run while the load is in
/// progress.
const LOADING: usize = 16;

pub fn run(func: &mut Function, context: &Context<'_>) -> Result<Change, CodegenError> {
    let sm = Sm(context.sm.number as u8);
    // Each round joins blocks that the previous round made straight. Deeper nesting is not short.
    let mut change = Change::Nothing;
    for round in 0..4 {
        (context.checkpoint)();
        let (own, merged) = (Analyses::default(), Analyses::default());
        let mut analyses = if round == 0 { context.analyses } else { &own };
        let mut changed = conditions::merge(func, analyses, sm);
        if changed {
            analyses = &merged;
        }
        let cfg = analyses.cfg(func);
        let (loops, uses) = (analyses.loops(func), analyses.uses(func));
        let mut touched = vec![false; func.blocks.len()];
        for &b in cfg.order.iter().rev() {
            let Some(shape) = Shape::of(func, cfg, loops, b) else { continue };
            if shape.blocks().chain([b]).any(|at| touched[at.index()]) || !shape.is_short(func, sm) {
                continue;
            }
            shape.blocks().chain([b]).for_each(|at| touched[at.index()] = true);
            shape.convert(func, b, uses, sm);
            changed = true;
        }
        if !changed {
            break;
        }
        change = Change::Something;
        let cfg = Cfg::new(func);
        crate::phase::edit::remove_unreached(func, &cfg);
        merge_chains(func);
    }
    Ok(change)
}

/// The sides of a branch that can be moved into its block.
struct Shape {
    cond: Src,
    /// The side where `cond` is true.
    yes: Option<BlockId>,
    no: Option<BlockId>,
    /// The block where the sides join; `None` if a side ends the thread.
    join: Option<BlockId>,
}

impl Shape {
    fn of(func: &Function, cfg: &Cfg, loops: &Loops, b: BlockId) -> Option<Shape> {
        let Term::Branch { cond, then, els, .. } = func.block(b).term else { return None };
        // Another phase removes constant branches.
        if then == els || then == b || els == b || matches!(cond.kind, SrcKind::Pred(_)) {
            return None;
        }
        // A side has no other predecessor.
        let own = |side: BlockId| cfg.preds(side).len() == 1 && func.block(side).phis.is_empty();
        let next = |side: BlockId| match func.block(side).term {
            Term::Jump(to) if own(side) => Some(to),
            _ => None,
        };
        let (yes_to, no_to) = (next(then), next(els));
        let shape = |yes, no, join| Some(Shape { cond, yes, no, join });
        match (yes_to, no_to) {
            (Some(x), Some(y)) if x == y && x != b => shape(Some(then), Some(els), Some(x)),
            (Some(x), _) if x == els => shape(Some(then), None, Some(els)),
            (_, Some(y)) if y == then => shape(None, Some(els), Some(then)),
            _ => {
                // A side that ends the thread keeps its end, as a guarded `EXIT`. In a loop, each iteration would have
                // to execute it.
                let ends = |side: BlockId| {
                    own(side) && func.block(side).term == Term::Exit && !func.block(side).insts.is_empty()
                };
                let in_loop = loops.innermost(b).is_some() || loops.is_irreducible(b);
                match (ends(then), ends(els)) {
                    (true, false) if !in_loop => shape(Some(then), None, None),
                    (false, true) if !in_loop => shape(None, Some(els), None),
                    _ => None,
                }
            }
        }
    }

    fn blocks(&self) -> impl Iterator<Item = BlockId> + use<> {
        self.yes.into_iter().chain(self.no).chain(self.join)
    }

    fn is_short(&self, func: &Function, sm: Sm) -> bool {
        let sides = || self.yes.into_iter().chain(self.no).map(|side| &func.block(side).insts);
        if !sides().flatten().all(can_move) {
            return false;
        }
        let (most, most_in_all) = if self.overlaps(func) { (LOADING, LOADING) } else { (SIDE, BOTH) };
        let phis = self.join.map_or(0, |join| func.block(join).phis.len());
        let mut total = phis / 2;
        sides().all(|insts| {
            let length: usize = insts.iter().map(|inst| cost(sm, inst)).sum();
            total += length;
            length <= most
        }) && total <= most_in_all
    }

    /// Whether there is only one side, which loads from global memory, and the code after it need not wait for the
    /// load.
    fn overlaps(&self, func: &Function) -> bool {
        let loads = |inst: &Inst| {
            memory(&inst.op).is_some_and(|of| of.space == Space::Global && of.kind == Kind::Load)
        };
        match (self.yes, self.no, self.join) {
            (Some(side), None, Some(_)) | (None, Some(side), Some(_)) => {
                func.block(side).insts.iter().any(loads)
            }
            _ => false,
        }
    }

    fn convert(&self, func: &mut Function, b: BlockId, uses: &[u32], sm: Sm) {
        let selects_pairs = encodes(sm, &Op::Sel64);
        let at = func.block(b).term_src;
        let args = |func: &Function, side: Option<BlockId>| match self.join {
            Some(join) => arguments_from(func, join, side.unwrap_or(b)),
            None => Vec::new(),
        };
        let (yes_args, no_args) = (args(func, self.yes), args(func, self.no));
        let mut negated = self.cond.not();
        normalize_predicate(&mut negated);
        let mut moved = Vec::new();
        for (side, guard) in [(self.no, negated), (self.yes, self.cond)] {
            let Some(side) = side else { continue };
            let mut insts = std::mem::take(&mut func.block_mut(side).insts);
            for inst in &mut insts {
                if !facts(&inst.op).is_pure() {
                    inst.guard = guard;
                    inst.old = inst.dsts.iter().map(|_| Src::UNDEF).collect();
                }
            }
            moved.append(&mut insts);
        }
        let block = func.block_mut(b);
        let start = block.insts.len();
        block.insts.append(&mut moved);
        let Some(join) = self.join else { return };
        let mut joined = Vec::with_capacity(yes_args.len());
        for (i, (yes, no)) in yes_args.into_iter().zip(no_args).enumerate() {
            let shape = func.value(func.block(join).phis[i].dst);
            joined.push(self.select(func, b, start, shape, [yes, no], uses, selects_pairs, at));
        }
        let sides: Vec<BlockId> = self.yes.into_iter().chain(self.no).collect();
        for (phi, src) in func.block_mut(join).phis.iter_mut().zip(joined) {
            phi.args.retain(|(from, _)| *from != b && !sides.contains(from));
            phi.args.push((b, src));
        }
        func.block_mut(b).term = Term::Jump(join);
    }

    /// A value of the given shape: `yes` if the branch's predicate is true, otherwise `no`. Operations from `start` on
    /// come from the sides.
    #[expect(clippy::too_many_arguments, reason = "one value of one conversion")]
    fn select(
        &self,
        func: &mut Function,
        b: BlockId,
        start: usize,
        shape: ValueData,
        [yes, no]: [Src; 2],
        uses: &[u32],
        selects_pairs: bool,
        at: SrcId,
    ) -> Src {
        if yes == no || no.kind == SrcKind::Undef {
            return yes;
        }
        if yes.kind == SrcKind::Undef {
            return no;
        }
        let mut negated = self.cond.not();
        normalize_predicate(&mut negated);
        for (value, kept, guard) in [(yes, no, self.cond), (no, yes, negated)] {
            if let Some(src) = overwrite(func, b, start, value, kept, guard, uses) {
                return src;
            }
        }
        let ValueData { file, width, .. } = shape;
        let dst = func.new_value(file, width);
        let insts = if file == File::P {
            // cond ? yes : no.
            let op = Op::Plop3 { lut: 0xca, lut2: 0 };
            vec![Inst::new(op, &[Dst::Value(dst), Dst::Sink], &[self.cond, yes, no], at)]
        } else if width == 1 {
            vec![Inst::new(Op::Sel, &[Dst::Value(dst)], &[yes, no, self.cond], at)]
        } else if width == 2
            && selects_pairs
            && ![yes, no].iter().any(|src| matches!(src.kind, SrcKind::Imm(_)))
        {
            vec![Inst::new(Op::Sel64, &[Dst::Value(dst)], &[yes, no, self.cond], at)]
        } else {
            let mut insts = Vec::new();
            let mut parts = Vec::new();
            for i in 0..width {
                let part = func.new_value(File::R, 1);
                let of = |src: Src| Src::new(crate::phase::edit::part_of(src.kind, i));
                insts.push(Inst::new(Op::Sel, &[Dst::Value(part)], &[of(yes), of(no), self.cond], at));
                parts.push(Src::from(part));
            }
            insts.push(Inst::new(Op::Pack, &[Dst::Value(dst)], &parts, at));
            insts
        };
        func.block_mut(b).insts.extend(insts);
        dst.into()
    }
}

/// Guards the operation that defines `value`, so that it keeps `kept` if the guard is false. Returns its result.
fn overwrite(
    func: &mut Function,
    b: BlockId,
    start: usize,
    value: Src,
    kept: Src,
    guard: Src,
    uses: &[u32],
) -> Option<Src> {
    let SrcKind::Value(v) = value.kind else { return None };
    let same_shape = matches!(kept.kind, SrcKind::Value(k) if func.value(k) == func.value(v));
    let read_once = uses.get(v.index()) == Some(&1);
    if value.mods != SrcMods::NONE || kept.mods != SrcMods::NONE || !same_shape || !read_once {
        return None;
    }
    let insts = &mut func.block_mut(b).insts;
    let index = start + insts[start..].iter().position(|inst| inst.dsts.first() == Some(&Dst::Value(v)))?;
    // The kept value must be defined before; operations of the other side may come later.
    let kept_value = kept.value()?;
    let kept_index = insts[start..].iter().position(|inst| inst.defs().any(|d| d == kept_value));
    if kept_index.is_some_and(|k| start + k >= index) {
        return None;
    }
    let inst = &mut insts[index];
    let guarded = inst.guard == guard && inst.old.iter().all(|old| *old == Src::UNDEF);
    let free = inst.guard == Src::TRUE && facts(&inst.op).guardable;
    if inst.defs().count() != 1
        || !(guarded || free)
        || inst.guard == Src::TRUE && !alias::is_removable(&effect(&inst.op))
    {
        return None;
    }
    inst.guard = guard;
    inst.old = inst.dsts.iter().map(|dst| if *dst == Dst::Value(v) { kept } else { Src::UNDEF }).collect();
    Some(value)
}

/// Whether the instruction may move to the block with the branch, either speculated or guarded by the branch's
/// predicate.
fn can_move(inst: &Inst) -> bool {
    let unguarded = inst.guard == Src::TRUE;
    let guardable = memory(&inst.op).is_some() && !facts(&inst.op).convergent && facts(&inst.op).guardable;
    (facts(&inst.op).is_pure() || guardable) && unguarded
}

/// The cost in issue slots; operations of slow units count more.
fn cost(sm: Sm, inst: &Inst) -> usize {
    if let Op::Compute { routine } = inst.op {
        return crate::runtime::body(routine).insts.len();
    }
    match any_form(sm, &inst.op).map(|id| sass::form(id).class) {
        None => 0,
        Some(Class::Xu) => 2,
        Some(Class::Fp64 | Class::Fp64Compare) => 3,
        Some(Class::Atomic) => 4,
        Some(_) => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ori::analyses::Analyses;
    use crate::ori::text;
    use expect_test::{Expect, expect};

    fn check(body: &str, expected: Expect) {
        let head = "b0:\n%v0:r = S2R{sr=0x21}\n%v1:p = ISETP.LT.AND %v0, 0x5, PT\nBRA %v1, b1, b2\n";
        let mut func = text::parse(&format!("func \"f\" {{\n{head}{body}\n}}")).unwrap();
        run(&mut func, &Context::of(90, &Analyses::default())).unwrap();
        crate::ori::verify::verify(&func, crate::ori::verify::Stage::Built).unwrap();
        expected.assert_eq(&text::print(&func));
    }

    #[test]
    fn a_store_is_guarded() {
        check(
            "b1:\nSTS %v0, RZ, %v0\nJUMP b2\nb2:\nEXIT",
            expect![[r#"
                func "f" {
                b0:
                  %v0:r = S2R{sr=0x21}
                  %v1:p = ISETP.LT.AND %v0, 0x5, PT
                  @%v1 STS %v0, RZ, %v0
                  EXIT
                }
            "#]],
        );
    }

    #[test]
    fn what_threads_do_after_a_loop_stays_there() {
        check(
            "b1:\nJUMP b3\nb2:\nEXIT\nb3:\n%v2:r = phi b1 %v0, b3 %v3\n%v3:r, _, _ = IADD3 %v2, 0x1, RZ
            %v4:p, _ = ISETP.LT.AND %v3, 0x40, PT\nBRA %v4, b3, b4\nb4:\nSTS %v0, RZ, %v3\nEXIT",
            expect![[r#"
                func "f" {
                b0:
                  %v0:r = S2R{sr=0x21}
                  %v1:p = ISETP.LT.AND %v0, 0x5, PT
                  BRA %v1, b1, b2
                b1:
                  JUMP b3
                b2:
                  EXIT
                b3:
                  %v2:r = phi b1 %v0, b3 %v3
                  %v3:r, _, _ = IADD3 %v2, 0x1, RZ
                  %v4:p, _ = ISETP.LT.AND %v3, 0x40, PT
                  BRA %v4, b3, b4
                b4:
                  STS %v0, RZ, %v3
                  EXIT
                }
            "#]],
        );
    }

    #[test]
    fn a_value_is_written_over_the_other() {
        check(
            "b1:\n%v2:r = IADD3 %v0, 0x1, RZ\nJUMP b2\nb2:\n%v3:r = phi b0 %v0, b1 %v2\nSTS %v0, RZ, %v3\nEXIT",
            expect![[r#"
                func "f" {
                b0:
                  %v0:r = S2R{sr=0x21}
                  %v1:p = ISETP.LT.AND %v0, 0x5, PT
                  @%v1 %v2:r = IADD3 %v0, 0x1, RZ old(%v0)
                  STS %v0, RZ, %v2
                  EXIT
                }
            "#]],
        );
    }

    #[test]
    fn constants_are_selected() {
        check(
            "b1:\nJUMP b3\nb2:\nJUMP b3\nb3:\n%v3:r = phi b1 0x1, b2 0x2\nSTS %v0, RZ, %v3\nEXIT",
            expect![[r#"
                func "f" {
                b0:
                  %v0:r = S2R{sr=0x21}
                  %v1:p = ISETP.LT.AND %v0, 0x5, PT
                  %v4:r = SEL 0x1, 0x2, %v1
                  STS %v0, RZ, %v4
                  EXIT
                }
            "#]],
        );
    }

    #[test]
    fn the_end_of_the_thread_stays_a_block() {
        check(
            "b1:\nSTS %v0, RZ, %v0\nEXIT\nb2:\nBAR.SYNC RZ\nEXIT",
            expect![[r#"
            func "f" {
            b0:
              %v0:r = S2R{sr=0x21}
              %v1:p = ISETP.LT.AND %v0, 0x5, PT
              BRA %v1, b1, b2
            b1:
              STS %v0, RZ, %v0
              EXIT
            b2:
              BAR.SYNC RZ
              EXIT
            }
        "#]],
        );
    }
}
