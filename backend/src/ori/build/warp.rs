//! Operations of a warp's threads together, and barriers of the block.
//!
//! `.sync` operations begin with a `WARPSYNC` of their mask, `.aligned` barriers with one of all threads; a later phase
//! drops it where the threads are known to run together.

use super::operand::known;
use super::{Lowering, Result};
use crate::input::{Instr, Operand};
use crate::ori::ir::{Dst, File, Src};
use crate::ori::op::{BARRIER_BITS, BarMode, MatchMode, Op, ReduxOp, ShflMode, VoteMode};
use ptx_isa::{FormId, Mod, ScalarType};

impl<'a> Lowering<'a> {
    fn join_warp(&mut self, instr: &'a Instr, mask: usize) -> Result<()> {
        let mask = self.source(instr, mask, ScalarType::B32)?;
        // Only the whole warp is an immediate on every target.
        let mask = if known(mask) == Some(!0) { mask } else { self.in_register(mask) };
        self.effect(Op::Warpsync, &[mask]);
        Ok(())
    }

    /// A warp operation's results, one in a register and one a predicate, under the statement's guard.
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

    /// What a register holds, without modifiers.
    fn kept_value(&mut self, reg: crate::input::RegId, file: File) -> Result<Src> {
        let old = self.read_register(reg)?;
        if file == File::P && old.mods.not {
            return Ok(self.plop3(0xf0, old, Src::TRUE, Src::TRUE));
        }
        Ok(old)
    }

    /// The two destinations of `d|p`, or the one.
    fn destinations(&self, instr: &'a Instr) -> Result<(&'a Operand, Option<&'a Operand>)> {
        Ok(match self.operand(instr, 0)? {
            Operand::Pair(pair) => (&pair.0, Some(&pair.1)),
            single => (single, None),
        })
    }

    /// `shfl.sync`.
    pub(super) fn shuffle(&mut self, instr: &'a Instr) -> Result<()> {
        self.accept(instr, &[Mod::Sync, Mod::Up, Mod::Down, Mod::Bfly, Mod::Idx])?;
        let opcode = &instr.opcode;
        let mode = match () {
            () if opcode.has(Mod::Up) => ShflMode::Up,
            () if opcode.has(Mod::Down) => ShflMode::Down,
            () if opcode.has(Mod::Bfly) => ShflMode::Bfly,
            () => ShflMode::Idx,
        };
        let ty = ScalarType::B32;
        let (a, b, c) = (self.source(instr, 1, ty)?, self.source(instr, 2, ty)?, self.source(instr, 3, ty)?);
        self.join_warp(instr, 4)?;
        let (reg, pred) = self.destinations(instr)?;
        self.warp_results(Op::Shfl { mode }, &[a, b, c], Some(reg), pred)
    }

    /// `vote.sync`.
    pub(super) fn vote(&mut self, instr: &'a Instr) -> Result<()> {
        self.accept(instr, &[Mod::Sync, Mod::All, Mod::Any, Mod::Uni, Mod::Ballot])?;
        let opcode = &instr.opcode;
        let cond = self.source(instr, 1, ScalarType::Pred)?;
        self.join_warp(instr, 2)?;
        let dst = self.operand(instr, 0)?;
        let mode = match () {
            () if opcode.has(Mod::Ballot) => {
                return self.warp_results(Op::Vote { mode: VoteMode::Any }, &[cond], Some(dst), None);
            }
            () if opcode.has(Mod::All) => VoteMode::All,
            () if opcode.has(Mod::Uni) => VoteMode::Eq,
            () => VoteMode::Any,
        };
        self.warp_results(Op::Vote { mode }, &[cond], None, Some(dst))
    }

    /// `match.sync`.
    pub(super) fn matching(&mut self, instr: &'a Instr) -> Result<()> {
        self.accept(instr, &[Mod::Sync, Mod::Any, Mod::All])?;
        let ty = self.type_of(instr, 0)?;
        let mode = if instr.opcode.has(Mod::All) { MatchMode::All } else { MatchMode::Any };
        let a = self.source(instr, 1, ty)?;
        self.join_warp(instr, 2)?;
        let (reg, pred) = self.destinations(instr)?;
        self.warp_results(Op::Match { mode, wide: ty.bits() == 64 }, &[a], Some(reg), pred)
    }

    /// `activemask`.
    pub(super) fn active_mask(&mut self, instr: &'a Instr) -> Result<()> {
        self.accept(instr, &[])?;
        let dst = self.operand(instr, 0)?;
        self.warp_results(Op::Vote { mode: VoteMode::Any }, &[Src::TRUE], Some(dst), None)
    }

    /// `redux.sync`: the result is uniform.
    pub(super) fn reduce(&mut self, instr: &'a Instr) -> Result<()> {
        self.accept(instr, &[Mod::Sync, Mod::Add, Mod::Min, Mod::Max, Mod::And, Mod::Or, Mod::Xor])?;
        if self.sm < 80 {
            return self.unsupported(instr, "before sm_80");
        }
        let ty = self.type_of(instr, 0)?;
        if ty == ScalarType::F32 {
            return self.unsupported(instr, "the type .f32");
        }
        let opcode = instr.opcode;
        let op = match () {
            () if opcode.has(Mod::Add) => ReduxOp::Sum,
            () if opcode.has(Mod::Min) => ReduxOp::Min,
            () if opcode.has(Mod::Max) => ReduxOp::Max,
            () if opcode.has(Mod::And) => ReduxOp::And,
            () if opcode.has(Mod::Or) => ReduxOp::Or,
            () => ReduxOp::Xor,
        };
        self.branch_around(|this| {
            let a = this.source(instr, 1, ty)?;
            this.join_warp(instr, 2)?;
            let signed = ty.is_signed() && matches!(op, ReduxOp::Min | ReduxOp::Max);
            let value = this.new_value(File::UR, 1);
            this.guarded(Op::Redux { op, signed }, &[Dst::Value(value)], &[a], &[]);
            let result = this.reg(Op::Mov, &[value.into()]);
            this.result(instr, result)
        })
    }

    /// `elect.sync`.
    pub(super) fn elect(&mut self, instr: &'a Instr) -> Result<()> {
        self.unsupported(instr, "needs the uniform predicate ELECT")
    }

    /// `bar.warp.sync`.
    pub(super) fn warp_barrier(&mut self, instr: &'a Instr) -> Result<()> {
        self.accept(instr, &[Mod::Warp, Mod::Sync])?;
        self.join_warp(instr, 0)
    }

    /// `bar` and `barrier`: `sync`, `arrive` and `red`.
    pub(super) fn barrier(&mut self, instr: &'a Instr) -> Result<()> {
        const MODIFIERS: [Mod; 8] =
            [Mod::Cta, Mod::Sync, Mod::Arrive, Mod::Red, Mod::Aligned, Mod::Popc, Mod::And, Mod::Or];
        self.accept(instr, &MODIFIERS)?;
        let opcode = &instr.opcode;
        let aligned = opcode.form == FormId::Bar || opcode.has(Mod::Aligned);
        if opcode.has(Mod::Red) {
            return self.reducing_barrier(instr, aligned);
        }
        let mode = match (opcode.has(Mod::Arrive), aligned) {
            (true, _) => BarMode::Arv,
            (false, true) => BarMode::SyncDefer,
            (false, false) => BarMode::Sync,
        };
        let srcs = self.barrier_operands(instr, 0, instr.operands.len())?;
        if aligned && mode != BarMode::Arv {
            self.join_all();
        }
        self.effect(Op::Bar { mode }, &srcs);
        Ok(())
    }

    /// All threads of a warp come to an `.aligned` operation of the block together.
    fn join_all(&mut self) {
        self.effect(Op::Warpsync, &[Src::imm(u32::MAX)]);
    }

    /// The barrier's number and, where given, how many threads meet.
    fn barrier_operands(&mut self, instr: &'a Instr, from: usize, to: usize) -> Result<Vec<Src>> {
        let ty = ScalarType::U32;
        let srcs = (from..to).map(|i| self.source(instr, i, ty)).collect::<Result<Vec<Src>>>()?;
        let Some(&number) = srcs.first() else { return self.malformed("a barrier without a number") };
        // Of a number only the low bits count, so that any may be meant where it is not known.
        let highest = (known(number).unwrap_or(BARRIER_BITS) & BARRIER_BITS) as u8 + 1;
        let barriers = &mut self.out.facts.barriers;
        *barriers = highest.max(*barriers);
        Ok(srcs)
    }

    fn reducing_barrier(&mut self, instr: &'a Instr, aligned: bool) -> Result<()> {
        let opcode = instr.opcode;
        let mode = match () {
            () if opcode.has(Mod::Popc) => BarMode::RedPopc,
            () if opcode.has(Mod::And) => BarMode::RedAnd,
            () => BarMode::RedOr,
        };
        let last = instr.operands.len().saturating_sub(1);
        let mut srcs = self.barrier_operands(instr, 1, last)?;
        if srcs.len() == 1 {
            srcs.push(Src::ZERO);
        }
        let cond = self.source(instr, last, ScalarType::Pred)?;
        srcs.push(cond);
        self.branch_around(|this| {
            if aligned {
                this.join_all();
            }
            this.effect(Op::Bar { mode }, &srcs);
            let result = mode != BarMode::RedPopc;
            let value =
                if result { this.pred(Op::B2r { result }, &[]) } else { this.reg(Op::B2r { result }, &[]) };
            this.result(instr, value)
        })
    }
}
