//! Warp-wide operations, and barriers of the block.
//!
//! `.sync` operations begin with a `WARPSYNC` of their mask, `.aligned` barriers with a `WARPSYNC` of all threads. A
//! later phase removes it where the threads are known to run together. A guard becomes a branch: threads for which the
//! guard is false continue, and are then apart from the threads that wait.

use super::operand::known;
use super::{Lowering, Result, Statement};
use crate::emit;
use crate::input::Operand;
use crate::ori::ir::{Dst, File, Inst, Src};
use crate::ori::op::{
    BARRIER_BITS, BarMode, ExtremeType, FloatRedux, ICmp, MatchMode, Op, ReduxOp, ShflMode, VoteMode, lut,
};
use ptx_isa::{FormId, Mod, ScalarType};

impl<'a> Lowering<'a> {
    /// Converges the threads of a member mask. Returns the mask.
    ///
    /// `asks`: the result of the following operation depends on which threads execute it together, so threads with
    /// another mask must not execute it with them. If the target cannot separate them, the caller must mask the result
    /// with the [`Self::members`].
    fn join_warp(&mut self, instr: &Statement<'a>, mask: usize, asks: bool) -> Result<Src> {
        let mask = self.source(instr, mask, ScalarType::B32)?;
        // With an empty member mask no thread waits, and the result is undefined.
        if known(mask) == Some(0) {
            return Ok(mask);
        }
        // Every target accepts an immediate only for the mask of the whole warp.
        let mask = if known(mask) == Some(!0) { mask } else { self.in_register(mask) };
        let exclusive = asks && known(mask) != Some(!0) && self.parts_warps();
        self.effect(Op::Warpsync { exclusive }, &[mask]);
        Ok(mask)
    }

    /// Whether the target can separate threads whose masks differ.
    fn parts_warps(&self) -> bool {
        emit::parts_warps(sass::Sm(self.sm as u8))
    }

    /// The mask, if threads outside the mask may execute the operation together with its members.
    fn members(&self, mask: Src) -> Option<Src> {
        (known(mask).is_none_or(|mask| mask != 0 && mask != !0) && !self.parts_warps()).then_some(mask)
    }

    /// The results of a warp operation, one in a register and one in a predicate, under the statement's guard.
    fn warp_results(
        &mut self,
        op: Op,
        srcs: &[Src],
        reg: Option<&Operand>,
        pred: Option<&Operand>,
    ) -> Result<()> {
        let mut dsts = [Dst::Sink; 2];
        let mut old = [Src::UNDEF; 2];
        let mut results = Vec::new();
        for (i, (dst, file)) in [(reg, File::R), (pred, File::P)].into_iter().enumerate() {
            let Some(dst) = dst.filter(|d| !matches!(d, Operand::Sink)) else { continue };
            if let (Operand::Reg(r), false) = (dst, self.guard.is_true()) {
                old[i] = self.kept_value(*r, file)?;
            }
            let value = self.new_value(file, 1);
            dsts[i] = Dst::Value(value);
            results.push((dst, value));
        }
        self.guarded(op, &dsts, srcs, &old);
        let guard = std::mem::replace(&mut self.guard, Src::TRUE);
        let written = results.into_iter().try_for_each(|(dst, value)| self.write(dst, value.into()));
        self.guard = guard;
        written
    }

    /// The old value of a register, without modifiers.
    fn kept_value(&mut self, reg: crate::input::RegId, file: File) -> Result<Src> {
        let old = self.read_register(reg)?;
        if file == File::P && old.mods.not {
            return Ok(self.plop3(0xf0, old, Src::TRUE, Src::TRUE));
        }
        Ok(old)
    }

    /// The two destinations of `d|p`, or the single destination.
    fn destinations(&self, instr: &Statement<'a>) -> Result<(&'a Operand, Option<&'a Operand>)> {
        Ok(match self.operand(instr, 0)? {
            Operand::Pair(pair) => (&pair.0, Some(&pair.1)),
            single => (single, None),
        })
    }

    /// `shfl.sync`, and `shfl` of the threads that execute it together.
    pub(super) fn shuffle(&mut self, instr: &Statement<'a>) -> Result<()> {
        let modes = [
            (Mod::Up, ShflMode::Up),
            (Mod::Down, ShflMode::Down),
            (Mod::Bfly, ShflMode::Bfly),
            (Mod::Idx, ShflMode::Idx),
        ];
        let Some(mode) = instr.take(&modes) else { return self.malformed("a shuffle without its direction") };
        let ty = ScalarType::B32;
        let (a, b, c) = (self.source(instr, 1, ty)?, self.source(instr, 2, ty)?, self.source(instr, 3, ty)?);
        if instr.form() == FormId::ShflSync {
            self.join_warp(instr, 4, false)?;
        }
        let (reg, pred) = self.destinations(instr)?;
        self.warp_results(Op::Shfl { mode }, &[a, b, c], Some(reg), pred)
    }

    /// `vote.sync`, and `vote` of the threads that execute it together.
    pub(super) fn vote(&mut self, instr: &Statement<'a>) -> Result<()> {
        let modes = [(Mod::All, VoteMode::All), (Mod::Uni, VoteMode::Eq), (Mod::Any, VoteMode::Any)];
        let mode = instr.take(&modes);
        let ballot = self.type_of(instr, 0)? == ScalarType::B32;
        if mode.is_some() == ballot || (ballot && !instr.has(Mod::Ballot)) {
            return self.malformed("a vote whose type differs from the type of its result");
        }
        let cond = self.source(instr, 1, ScalarType::Pred)?;
        let members = match instr.form() {
            FormId::VoteSync => self.join_warp(instr, 2, true).map(|mask| self.members(mask))?,
            _ => None,
        };
        let dst = self.operand(instr, 0)?;
        match (members, mode) {
            (Some(members), _) => {
                let result = self.vote_of(members, mode, cond);
                self.write(dst, result)
            }
            (None, Some(mode)) => self.warp_results(Op::Vote { mode }, &[cond], None, Some(dst)),
            (None, None) => self.warp_results(Op::Vote { mode: VoteMode::Any }, &[cond], Some(dst), None),
        }
    }

    /// The vote of a mask's members, if other threads may execute the operation with them. Without a mode it is the
    /// ballot.
    fn vote_of(&mut self, members: Src, mode: Option<VoteMode>, cond: Src) -> Src {
        let cond = if mode == Some(VoteMode::All) { cond.not() } else { cond };
        let ballot = self.among(members, Op::Vote { mode: VoteMode::Any }, cond);
        match mode {
            None => ballot,
            Some(VoteMode::Any) => self.compare(ICmp::Ne, false, ballot, Src::ZERO),
            Some(VoteMode::All) => self.compare(ICmp::Eq, false, ballot, Src::ZERO),
            Some(VoteMode::Eq) => {
                let none = self.compare(ICmp::Eq, false, ballot, Src::ZERO);
                let present = self.present(members);
                let all = self.compare(ICmp::Eq, false, ballot, present);
                self.plop3(lut::A | lut::B, none, all, Src::TRUE)
            }
        }
    }

    /// The members of a mask that have not ended.
    fn present(&mut self, members: Src) -> Src {
        self.among(members, Op::Vote { mode: VoteMode::Any }, Src::TRUE)
    }

    /// Runs a warp operation whose result is a mask, and keeps only the members of `members`.
    fn among(&mut self, members: Src, op: Op, src: Src) -> Src {
        let threads = self.new_value(File::R, 1);
        self.guarded(op, &[Dst::Value(threads)], &[src], &[]);
        self.lop3(lut::A & lut::B, threads.into(), members, Src::ZERO)
    }

    /// `pmevent`: one event given by its number, or the events of a mask.
    pub(super) fn count_event(&mut self, instr: &Statement<'a>) -> Result<()> {
        const EVENTS: u32 = 16;
        let number = self.immediate(instr, 0)?;
        let mask = if instr.has(Mod::Mask) { number } else { 1 << (number % EVENTS) };
        self.effect(Op::Pmtrig { mask: mask as i32 }, &[]);
        Ok(())
    }

    /// `match.sync`.
    pub(super) fn matching(&mut self, instr: &Statement<'a>) -> Result<()> {
        let ty = self.type_of(instr, 0)?;
        let modes = [(Mod::All, MatchMode::All), (Mod::Any, MatchMode::Any)];
        let Some(mode) = instr.take(&modes) else { return self.malformed("a match without its mode") };
        let a = self.source(instr, 1, ty)?;
        let mask = self.join_warp(instr, 2, true)?;
        let (reg, pred) = self.destinations(instr)?;
        if let Some(members) = self.members(mask) {
            let op = Op::Match { mode: MatchMode::Any, wide: ty.bits() == 64 };
            let equal = self.among(members, op, a);
            if mode == MatchMode::Any {
                return self.write(reg, equal);
            }
            let present = self.present(members);
            let all = self.compare(ICmp::Eq, false, equal, present);
            let whole = self.reg(Op::Sel, &[present, Src::ZERO, all]);
            self.write(reg, whole)?;
            return pred.map_or(Ok(()), |pred| self.write(pred, all));
        }
        self.warp_results(Op::Match { mode, wide: ty.bits() == 64 }, &[a], Some(reg), pred)
    }

    /// `activemask`.
    pub(super) fn active_mask(&mut self, instr: &Statement<'a>) -> Result<()> {
        let dst = self.operand(instr, 0)?;
        self.warp_results(Op::Vote { mode: VoteMode::Any }, &[Src::TRUE], Some(dst), None)
    }

    /// `redux.sync`: the result is uniform.
    pub(super) fn reduce(&mut self, instr: &Statement<'a>) -> Result<()> {
        let ty = self.type_of(instr, 0)?;
        if ty == ScalarType::F32 {
            let abs = instr.has(Mod::Abs);
            let operations = [
                (Mod::Min, if abs { FloatRedux::MinAbs } else { FloatRedux::Min }),
                (Mod::Max, if abs { FloatRedux::MaxAbs } else { FloatRedux::Max }),
            ];
            let Some(op) = instr.take(&operations) else {
                return self.malformed("a reduction of floats without `.min` or `.max`");
            };
            let redux = Op::Credux { op, ty: ExtremeType::F32, nan: instr.has(Mod::Nan) };
            return self.reduce_by(instr, redux, ty);
        }
        let operations = [
            (Mod::Add, ReduxOp::Sum),
            (Mod::Min, ReduxOp::Min),
            (Mod::Max, ReduxOp::Max),
            (Mod::And, ReduxOp::And),
            (Mod::Or, ReduxOp::Or),
            (Mod::Xor, ReduxOp::Xor),
        ];
        let Some(op) = instr.take(&operations) else {
            return self.malformed("a reduction without an operation such as `.add`");
        };
        let extreme = match op {
            ReduxOp::Min => Some(FloatRedux::Min),
            ReduxOp::Max => Some(FloatRedux::Max),
            _ => None,
        };
        let signed = ty.is_signed() && extreme.is_some();
        // Targets with one operation for all minima and maxima do not have the other operation.
        let extreme_type = if signed { ExtremeType::S32 } else { ExtremeType::U32 };
        let extreme = extreme.map(|op| Op::Credux { op, ty: extreme_type, nan: false });
        let redux = extreme.filter(|op| self.encodes(op)).unwrap_or(Op::Redux { op, signed });
        self.reduce_by(instr, redux, ty)
    }

    fn reduce_by(&mut self, instr: &Statement<'a>, redux: Op, ty: ScalarType) -> Result<()> {
        if !self.encodes(&redux) {
            return self.unsupported(instr, "this instruction on this target");
        }
        let a = self.source(instr, 1, ty)?;
        self.join_warp(instr, 2, true)?;
        let value = self.new_value(File::UR, 1);
        self.guarded(redux, &[Dst::Value(value)], &[a], &[]);
        let result = self.reg(Op::Mov, &[value.into()]);
        self.result(instr, result)
    }

    /// `elect.sync`.
    pub(super) fn elect(&mut self, instr: &Statement<'a>) -> Result<()> {
        if !self.encodes(&Op::Elect) {
            return self.unsupported(instr, "this instruction on this target");
        }
        self.join_warp(instr, 1, true)?;
        let (lane, chosen) = self.destinations(instr)?;
        let is_chosen = self.new_value(File::P, 1);
        let uniform = (!matches!(lane, Operand::Sink)).then(|| self.new_value(File::UR, 1));
        let second = uniform.map_or(Dst::Sink, Dst::Value);
        self.guarded(Op::Elect, &[Dst::Value(is_chosen), second], &[], &[]);
        if let Some(uniform) = uniform {
            let copy = self.reg(Op::Mov, &[uniform.into()]);
            self.write(lane, copy)?;
        }
        chosen.map_or(Ok(()), |chosen| self.write(chosen, is_chosen.into()))
    }

    /// `bar.warp.sync`.
    pub(super) fn warp_barrier(&mut self, instr: &Statement<'a>) -> Result<()> {
        let mask = self.join_warp(instr, 0, false)?;
        if known(mask) == Some(0) {
            // The mask names no thread.
            self.out.facts.never.push(self.src);
        }
        Ok(())
    }

    /// `bar` and `barrier`: `sync`, `arrive` and `red`.
    pub(super) fn barrier(&mut self, instr: &Statement<'a>) -> Result<()> {
        // There are only barriers of the block, and waiting is the default.
        instr.ignore(&[Mod::Cta, Mod::Sync]);
        let aligned = instr.form() == FormId::Bar || instr.has(Mod::Aligned);
        if instr.has(Mod::Red) {
            return self.reducing_barrier(instr, aligned);
        }
        let mode = match (instr.has(Mod::Arrive), aligned) {
            (true, _) => BarMode::Arv,
            (false, true) => BarMode::SyncAligned,
            (false, false) => BarMode::Sync,
        };
        let srcs = self.barrier_operands(instr, 0, instr.operand_count())?;
        if aligned && (mode != BarMode::Arv || self.target.joins_arrivals) {
            self.join_all();
        }
        self.effect(Op::Bar { mode }, &srcs);
        Ok(())
    }

    /// Converges all threads of a warp before an `.aligned` operation of the block.
    pub(super) fn join_all(&mut self) {
        // Threads do not diverge within a block.
        let all = [Src::imm(u32::MAX)];
        let meet = |inst: &Inst| {
            matches!(inst.op, Op::Warpsync { .. }) && inst.guard.is_true() && inst.srcs[..] == all
        };
        if !self.out.block(self.block).insts.iter().any(meet) {
            self.effect(Op::Warpsync { exclusive: false }, &all);
        }
    }

    /// The barrier's number and, if present, the number of participating threads.
    fn barrier_operands(&mut self, instr: &Statement<'a>, from: usize, to: usize) -> Result<Vec<Src>> {
        let ty = ScalarType::U32;
        let srcs = (from..to).map(|i| self.source(instr, i, ty)).collect::<Result<Vec<Src>>>()?;
        let Some(&number) = srcs.first() else { return self.malformed("a barrier without a number") };
        // Only the low bits of the number are used, so an unknown number may mean any barrier.
        let highest = (known(number).unwrap_or(BARRIER_BITS) & BARRIER_BITS) as u8 + 1;
        let barriers = &mut self.out.facts.barriers;
        *barriers = highest.max(*barriers);
        Ok(srcs)
    }

    fn reducing_barrier(&mut self, instr: &Statement<'a>, aligned: bool) -> Result<()> {
        let modes = [(Mod::Popc, BarMode::RedPopc), (Mod::And, BarMode::RedAnd), (Mod::Or, BarMode::RedOr)];
        let Some(mode) = instr.take(&modes) else {
            return self.malformed("a barrier reduction without an operation");
        };
        if instr.ty(0).is_some_and(|ty| (ty == ScalarType::U32) != (mode == BarMode::RedPopc)) {
            return self.malformed("a barrier reduction whose type differs from the type of its result");
        }
        let last = instr.operand_count().saturating_sub(1);
        let mut srcs = self.barrier_operands(instr, 1, last)?;
        if srcs.len() == 1 {
            srcs.push(Src::ZERO);
        }
        let cond = self.source(instr, last, ScalarType::Pred)?;
        srcs.push(cond);
        if aligned {
            self.join_all();
        }
        self.effect(Op::Bar { mode }, &srcs);
        let result = mode != BarMode::RedPopc;
        let value =
            if result { self.pred(Op::B2r { result }, &[]) } else { self.reg(Op::B2r { result }, &[]) };
        self.result(instr, value)
    }
}
