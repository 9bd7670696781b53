//! `setmaxnreg`: a warp releases registers to its block, or takes registers that other warps have released.

use super::{Lowering, Result, Statement};
use crate::ori::ir::{Dst, File, Inst, Term};
use crate::ori::op::Op;
use ptx_isa::Mod;

impl<'a> Lowering<'a> {
    /// `setmaxnreg`. If it is ignored, it generates no code.
    pub(super) fn change_registers(&mut self, instr: &Statement<'a>) -> Result<()> {
        instr.ignore(&[Mod::Sync, Mod::Aligned]);
        let Some(gives) = instr.take(&[(Mod::Dec, true), (Mod::Inc, false)]) else {
            return self.malformed("setmaxnreg without a direction");
        };
        // ptxas also accepts signed types.
        if self.type_of(instr, 0)?.bits() != 32 {
            return self.malformed("setmaxnreg of a type that is not 32 bits wide");
        }
        let count = self.immediate(instr, 0)?;
        if self.out.facts.starts_with.is_none() {
            return Ok(());
        }
        let op = if gives { Op::GiveRegisters { count } } else { Op::TakeRegisters { count } };
        if !self.encodes(&op) {
            return self.unsupported(instr, "a changing number of registers on this target");
        }
        self.branch_around(|this| {
            if gives {
                this.join_all();
                this.effect(op, &[]);
            } else {
                this.take_registers(op, count);
            }
            Ok(())
        })
    }

    /// Repeats until other warps have released enough registers.
    fn take_registers(&mut self, take: Op, count: u32) {
        let (again, done) = (self.new_block(2), self.new_block(1));
        self.end(Term::Jump(again));
        self.start(again);
        self.join_all();
        let taken = self.new_value(File::UP, 1);
        self.push(Inst::new(take, &[Dst::Value(taken)], &[], self.src));
        let taken = self.in_each_thread(taken.into());
        self.end(Term::Branch { cond: taken, then: done, els: again, uniform: true });
        self.start(done);
        self.effect(Op::HaveRegisters { count }, &[]);
    }
}
