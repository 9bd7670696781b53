//! Branches to one target of a list: the load of the target's address, and the jump.

use super::Emitter;
use super::builder::{Builder, PHASE};
use super::generic::operand;
use crate::CodegenError;
use crate::layout;
use crate::mach::{Block, Effect, Link, MachInst, Table};
use crate::ori::ir::{self, File, Inst, Src, Term};
use crate::ori::op::JumpTable;
use sass::Field;

impl Emitter<'_> {
    /// Loads the address of a target. The offset of the list in its bank is filled in when the code is laid out and
    /// linked.
    pub(super) fn target_entry(&mut self, inst: &Inst, table: JumpTable) -> Result<(), CodegenError> {
        let at = inst.src;
        let Some(dst) = inst.dsts.first() else {
            return Err(CodegenError::internal(at, PHASE, "a branch target without a destination"));
        };
        if !self.listed.contains(&table) {
            // The branch has only one target left, and no instruction reads this value.
            return self.mov(dst, &Src::ZERO, Some(at));
        }
        let mut load = Builder::new(self.sm, at, "LDC", "")?;
        load.dst(Field::Rd, Some(dst)).reg(Field::Ra, File::R, operand(inst, 0)?);
        load.value(Field::CBank, layout::FUNCTION_BANK.into());
        let (inst, link) = (load.finish()?, Some(Link::Table(table)));
        self.out.push(MachInst { inst, src: Some(at), target: None, link, effect: Effect::None });
        Ok(())
    }

    /// Jumps to the loaded address, which ends the block.
    pub(super) fn switch(&mut self, block: &ir::Block) -> Result<(), CodegenError> {
        let src = block.term_src;
        let Term::Switch { address, table, targets, .. } = &block.term else {
            return Err(CodegenError::internal(src, PHASE, "a list of targets without a branch"));
        };
        let mut branch = Builder::new(self.sm, src, "BRX", "")?;
        branch.reg(Field::Ra, File::R, address).pred(Field::Guard, &Src::TRUE);
        let (inst, link) = (branch.finish()?, Some(Link::Start));
        self.out.push(MachInst { inst, src: Some(src), target: None, link, effect: Effect::Control });
        let place = |to: &ir::BlockId| {
            self.plan
                .machine_block(*to)
                .ok_or_else(|| CodegenError::internal(src, PHASE, format!("branch to {to:?}, which is dead")))
        };
        let targets = targets.iter().map(place).collect::<Result<Vec<_>, _>>()?;
        let mut successors = targets.clone();
        successors.sort_unstable();
        successors.dedup();
        if self.tables.iter().any(|other| other.id == *table) {
            return Err(CodegenError::internal(src, PHASE, "two branches with one list of targets"));
        }
        self.tables.push(Table { id: *table, targets });
        let insts = std::mem::take(&mut self.out);
        self.blocks.push(Block { insts, successors: successors.into() });
        Ok(())
    }
}
