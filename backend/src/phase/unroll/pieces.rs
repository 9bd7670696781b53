//! The pieces that replace a loop, and the guards before them.

use super::copy::{Iterations, number, substituted};
use super::counted::{Counted, Induction};
use super::like;
use crate::copies::{Piece, Unrolled};
use crate::ori::ir::{BlockId, Dst, File, Function, Inst, Phi, Src, Term, Value};
use crate::ori::op::{Bool, ICmp, Op, Sign};
use crate::phase::branches::arguments_from;
use crate::phase::edit::normalize_predicate;

impl Counted {
    /// Replaces the loop by pieces. Control enters from `entry` with `values` and leaves to `after`. A last piece of
    /// one iteration that repeats is the loop itself.
    pub(super) fn unroll(
        &self,
        func: &mut Function,
        pieces: &[Piece],
        entry: BlockId,
        after: BlockId,
        round: u32,
    ) {
        let (header, last) = (self.header(), self.last());
        let copies = self.copies(func);
        func.facts.unrolled.push(Unrolled {
            branch: func.block(last).term_src,
            copies,
            pieces: pieces.to_vec(),
            known: self.iterations.is_some(),
            round,
            never: func.facts.never.len(),
        });
        let values = arguments_from(func, header, entry);
        let mut stage = Some(Stage { block: entry, values });
        let mut made = Vec::new();
        let mut iteration = 0;
        for (i, piece) in pieces.iter().enumerate() {
            let next = match pieces.get(i + 1) {
                None => None,
                Some(Piece { iterations: 1, repeats: true }) if i + 2 == pieces.len() => {
                    for phi in &mut func.block_mut(header).phis {
                        phi.args.retain(|(from, _)| *from == last);
                    }
                    Some(header)
                }
                Some(_) => Some(self.stage(func)),
            };
            let Some(from) = stage.take() else { break };
            made.extend((i > 0).then_some(from.block));
            let place = PieceContext { piece, first: iteration, copies, from, next, after };
            self.piece(func, &place, &mut made);
            iteration += piece.iterations;
            if next == Some(header) {
                break;
            }
            stage = next.map(|block| {
                let values = func.block(block).phis.iter().map(|phi| phi.dst.into()).collect();
                Stage { block, values }
            });
        }
        let place = func.layout.iter().position(|&b| b == header).unwrap_or(0);
        if iteration < pieces.iter().map(|piece| piece.iterations).sum() {
            let statements = func.facts.statements;
            for &b in &self.body {
                number(func.block_mut(b), statements, iteration, copies);
            }
            func.block_mut(header).may_unroll = false;
        } else {
            func.layout.retain(|b| !self.body.contains(b));
            for phi in &mut func.block_mut(after).phis {
                phi.args.retain(|(from, _)| *from != last);
            }
        }
        func.layout.splice(place..place, made);
    }

    /// A block for a guard, with phis for those of the header.
    fn stage(&self, func: &mut Function) -> BlockId {
        let block = func.new_block();
        func.block_mut(block).term_src = func.block(self.last()).term_src;
        let phis = carried_phis(func, self.header());
        func.block_mut(block).phis = phis.into_iter().map(|dst| Phi { dst, args: Vec::new() }).collect();
        block
    }

    /// Creates the iterations of a piece, connects them with the code before and after them, and adds their blocks to
    /// `made`.
    fn piece(&self, func: &mut Function, place: &PieceContext<'_>, made: &mut Vec<BlockId>) {
        let PieceContext { piece, from, next, after, .. } = place;
        let last = self.last();
        let term_src = func.block(last).term_src;
        let Some(exit) = self.exit(func) else { return };
        let starts = if piece.repeats { carried_phis(func, self.header()) } else { Vec::new() };
        let values = match piece.repeats {
            true => starts.iter().map(|&v| v.into()).collect(),
            false => from.values.clone(),
        };
        let Some(Iterations { top, bottom, values, map }) = self.iterations_of(func, place, values, made)
        else {
            return;
        };
        // Whether the loop may go on at `next` without this piece, and may end with it.
        let is_optional = self.iterations.is_none();
        match next.filter(|_| is_optional) {
            None => func.block_mut(from.block).term = Term::Jump(top),
            Some(next) => {
                let enough = self.guard(func, place, from.block, &from.values, Src::TRUE);
                func.block_mut(from.block).term =
                    Term::Branch { cond: enough, then: top, els: next, uniform: exit.uniform };
                lead(func, from.block, &from.values, next);
            }
        }
        let exit = Exit { cond: substituted(&map, exit.cond), ..exit };
        let mut left = bottom;
        func.block_mut(bottom).term = match (piece.repeats, next) {
            (false, None) => Term::Jump(*after),
            (false, Some(next)) if !is_optional => Term::Jump(*next),
            (false, Some(next)) => exit.branch(*next, *after),
            (true, None) => exit.branch(top, *after),
            (true, Some(next)) => {
                let enough = self.guard(func, place, bottom, &values, exit.stays());
                left = func.new_block();
                func.block_mut(left).term = exit.branch(*next, *after);
                func.block_mut(left).term_src = term_src;
                made.push(left);
                Term::Branch { cond: enough, then: top, els: left, uniform: exit.uniform }
            }
        };
        let ways = from.values.iter().zip(&values);
        func.block_mut(top).phis = starts
            .iter()
            .zip(ways)
            .map(|(&dst, (&start, &end))| Phi { dst, args: vec![(from.block, start), (bottom, end)] })
            .collect();
        if let Some(next) = next {
            lead(func, left, &values, *next);
        }
        if !is_optional && next.is_some() {
            return;
        }
        for phi in &mut func.block_mut(*after).phis {
            if let Some((_, src)) = phi.args.iter().find(|(from, _)| *from == last) {
                phi.args.push((left, substituted(&map, *src)));
            }
        }
    }

    fn exit(&self, func: &Function) -> Option<Exit> {
        match func.block(self.last()).term {
            Term::Branch { cond, then, uniform, .. } => {
                Some(Exit { cond, goes_on: then == self.header(), uniform })
            }
            _ => None,
        }
    }

    /// Whether all iterations of a piece, which has at least two, remain: all their tests except the last are true. The
    /// header's phis have `values` in the first iteration, which is executed if `begins` is true.
    fn guard(
        &self,
        func: &mut Function,
        place: &PieceContext<'_>,
        b: BlockId,
        values: &[Src],
        begins: Src,
    ) -> Src {
        let Some((Induction { phi, offset, step, cmp, sign, .. }, limit)) =
            self.induction.zip(self.limit(func))
        else {
            return Src::FALSE;
        };
        let (value, at) = (values[phi], func.block(self.last()).term_src);
        let add = |func: &mut Function, srcs: [Src; 3]| -> Src {
            let dst = func.new_value(File::R, 1);
            let dsts = [Dst::Value(dst), Dst::Sink, Dst::Sink];
            func.block_mut(b).insts.push(Inst::new(Op::Iadd3 { x: false }, &dsts, &srcs, at));
            dst.into()
        };
        let tested = match offset {
            0 => value,
            offset => add(func, [value, Src::imm(offset), Src::ZERO]),
        };
        // The distance to the limit, in the direction of the steps.
        let (from, to) = if step > 0 { (tested, limit) } else { (limit, tested) };
        let distance = add(func, [to, from.neg(), Src::ZERO]);
        let test = |func: &mut Function, cmp, sign, a, b_, with| -> Src {
            let dst = func.new_value(File::P, 1);
            let op = Op::Isetp { cmp, sign, bool_: Bool::And, ex: false };
            func.block_mut(b).insts.push(Inst::new(op, &[Dst::Value(dst), Dst::Sink], &[a, b_, with], at));
            dst.into()
        };
        let holds = match cmp {
            ICmp::Ne => begins,
            cmp => test(func, cmp, sign, tested, limit, begins),
        };
        let steps = (place.piece.iterations - 2) * step.unsigned_abs();
        let at_least = if matches!(cmp, ICmp::Le | ICmp::Ge) { ICmp::Ge } else { ICmp::Gt };
        test(func, at_least, Sign::U32, distance, Src::imm(steps), holds)
    }
}

/// The position of a piece.
pub(super) struct PieceContext<'a> {
    pub(super) piece: &'a Piece,
    /// The number of its first iteration among those of all pieces.
    pub(super) first: u32,
    /// The number of copies that the loop's statements already have.
    pub(super) copies: u32,
    pub(super) from: Stage,
    /// The target if too few iterations remain.
    pub(super) next: Option<BlockId>,
    pub(super) after: BlockId,
}

/// The branch that leaves or repeats a loop.
#[derive(Clone, Copy)]
struct Exit {
    cond: Src,
    /// The loop continues if the condition is true.
    goes_on: bool,
    uniform: bool,
}

impl Exit {
    fn branch(self, again: BlockId, after: BlockId) -> Term {
        let Exit { cond, goes_on, uniform } = self;
        let (then, els) = if goes_on { (again, after) } else { (after, again) };
        Term::Branch { cond, then, els, uniform }
    }

    /// The condition under which the loop continues.
    fn stays(self) -> Src {
        let mut cond = if self.goes_on { self.cond } else { self.cond.not() };
        normalize_predicate(&mut cond);
        cond
    }
}

/// A block without a terminator, and the values of the header's phis there.
pub(super) struct Stage {
    block: BlockId,
    values: Vec<Src>,
}

/// New values for the header's phis.
fn carried_phis(func: &mut Function, header: BlockId) -> Vec<Value> {
    let phis: Vec<Value> = func.block(header).phis.iter().map(|phi| phi.dst).collect();
    phis.into_iter().map(|v| like(func, v)).collect()
}

/// Adds `values` to the phis of `to` as the arguments from `from`.
fn lead(func: &mut Function, from: BlockId, values: &[Src], to: BlockId) {
    for (phi, value) in func.block_mut(to).phis.iter_mut().zip(values) {
        phi.args.push((from, *value));
    }
}
