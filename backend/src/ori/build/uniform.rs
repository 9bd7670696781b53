//! Operands in uniform registers. The uniform datapath acts once for all threads that execute an instruction together.

use super::operand::known;
use super::{Lowering, Result};
use crate::ori::ir::{Dst, File, Inst, Src, SrcKind, SrcMods, Term};
use crate::ori::op::{Op, VoteMode, lut};

/// The threads whose values go into uniform registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Chosen(Src);

impl Chosen {
    /// Threads for which the predicate is true. All of them have the same value, or any of their values is correct.
    pub(super) fn all(guard: Src) -> Chosen {
        Chosen(guard)
    }
}

impl Lowering<'_> {
    /// Lets each thread act in turn: a loop that chooses one of the remaining threads. `effects` stays in one block,
    /// and its operands in uniform registers are those of the chosen thread.
    pub(super) fn one_by_one(&mut self, effects: impl FnOnce(&mut Self, Chosen) -> Result<()>) -> Result<()> {
        self.branch_around(|this| {
            let (again, done) = (this.new_block(2), this.new_block(1));
            this.end(Term::Jump(again));
            this.start(again);
            let chosen = this.new_value(File::P, 1);
            this.guarded(Op::Elect, &[Dst::Value(chosen), Dst::Sink], &[], &[]);
            effects(this, Chosen(chosen.into()))?;
            let left = Src::from(chosen).not();
            this.end(Term::Branch { cond: left, then: again, els: done, uniform: false });
            this.start(done);
            Ok(())
        })
    }

    /// A 32-bit source of the chosen thread in a uniform register, or a number.
    pub(super) fn uniform(&mut self, src: Src, Chosen(chosen): Chosen) -> Src {
        let is_uniform = |this: &Self| src.value().is_some_and(|v| this.out.value(v).file == File::UR);
        if known(src).is_some() || (src.mods == SrcMods::NONE && is_uniform(self)) {
            return src;
        }
        if matches!(src.kind, SrcKind::Const(_)) && src.mods == SrcMods::NONE {
            return self.uniform_result(1, Op::Uldc { wide: false }, src);
        }
        let value = self.new_value(File::UR, 1);
        let mut inst = Inst::new(Op::R2ur, &[Dst::Value(value)], &[src], self.src);
        if !chosen.is_true() {
            inst.guard = chosen;
            inst.old.push(Src::UNDEF);
        }
        self.push(inst);
        value.into()
    }

    /// A predicate of the chosen thread in the uniform datapath.
    pub(super) fn uniform_predicate(&mut self, src: Src, Chosen(chosen): Chosen) -> Src {
        if matches!(src.kind, SrcKind::Pred(_)) {
            return src;
        }
        let held = if chosen.is_true() { src } else { self.plop3(lut::A & lut::B, src, chosen, Src::TRUE) };
        let value = self.new_value(File::UP, 1);
        self.push(Inst::new(Op::Voteu { mode: VoteMode::Any }, &[Dst::Value(value)], &[held], self.src));
        value.into()
    }

    /// A predicate of the uniform datapath, copied to each thread.
    pub(super) fn in_each_thread(&mut self, holds: Src) -> Src {
        let flag = self.new_value(File::UR, 1);
        let srcs = [Src::ZERO, Src::imm(1), holds.not()];
        self.push(Inst::new(Op::Usel, &[Dst::Value(flag)], &srcs, self.src));
        self.is_other(Src::ZERO, flag.into())
    }

    /// A 32-bit source of the chosen thread in a uniform register. It is never a number other than zero.
    pub(super) fn uniform_register(&mut self, src: Src, chosen: Chosen) -> Src {
        let src = self.uniform(src, chosen);
        let op = match src.kind {
            SrcKind::Imm(_) => Op::Umov,
            _ => return src,
        };
        self.uniform_result(1, op, src)
    }

    fn uniform_result(&mut self, width: u8, op: Op, src: Src) -> Src {
        let value = self.new_value(File::UR, width);
        self.push(Inst::new(op, &[Dst::Value(value)], &[src], self.src));
        value.into()
    }

    /// The same for several sources, in consecutive registers.
    pub(super) fn uniform_pack(&mut self, parts: &[Src], chosen: Chosen) -> Src {
        if let [SrcKind::Const(low), SrcKind::Const(high)] =
            parts.iter().map(|p| p.kind).collect::<Vec<_>>()[..]
            && low.offset.is_multiple_of(8)
            && (high.bank, high.offset) == (low.bank, low.offset + 4)
        {
            return self.uniform_result(2, Op::Uldc { wide: true }, parts[0]);
        }
        let parts: Vec<Src> = parts.iter().map(|part| self.uniform(*part, chosen)).collect();
        let value = self.new_value(File::UR, parts.len() as u8);
        self.push(Inst::new(Op::Pack, &[Dst::Value(value)], &parts, self.src));
        value.into()
    }
}
