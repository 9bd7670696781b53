//! Dynamic stack allocation: `alloca`, `stacksave`, `stackrestore`.
//!
//! R1 holds the start of the frame, so that variables, spilled values and parameters have fixed offsets from it. The
//! end of the stack is a separate variable, like any register of the input. Only calls need it in R1: they pass it in
//! [`abi::STACK_END`], and save the old R1 in [`abi::FRAME`], which functions preserve.

use super::operand::known;
use super::ssa::Variable;
use super::symbol::STACK;
use super::{Lowering, Result, Statement};
use crate::abi;
use crate::input::{Function, Operand};
use crate::ori::ir::{BlockId, Dst, File, Inst, Src};
use crate::ori::op::{Op, lut};
use ptx_isa::{FormId, ScalarType};

/// The alignment of `alloca` without an alignment operand.
const DEFAULT_ALIGN: u32 = 8;

/// The largest alignment of dynamic stack allocations in a function; `None` if there are none.
pub(super) fn taken_align(func: &Function) -> Option<u32> {
    let taken = func.instrs().filter_map(|instr| match instr.opcode.form {
        FormId::Alloca => Some(alignment(instr.operands.get(2))),
        FormId::Stacksave | FormId::Stackrestore => Some(DEFAULT_ALIGN),
        _ => None,
    });
    taken.max()
}

fn alignment(operand: Option<&Operand>) -> u32 {
    let align = match operand {
        Some(Operand::Int(align)) => u32::try_from(*align).unwrap_or(DEFAULT_ALIGN),
        _ => DEFAULT_ALIGN,
    };
    align.clamp(abi::ENTRY_ALIGN, 1 << 30).next_power_of_two()
}

impl<'a> Lowering<'a> {
    /// Initializes the stack end of a function: its stack ends at the start of its frame.
    pub(super) fn begin_stack(&mut self, entry: BlockId) {
        if !self.out.frame.moving {
            return;
        }
        let value = self.new_value(File::R, 1);
        let dsts = [Dst::Value(value), Dst::Sink, Dst::Sink];
        let begin = Inst::new(Op::Iadd3 { x: false }, &dsts, &[STACK, Src::ZERO, Src::ZERO], self.src);
        self.prologue.push(begin);
        let variable = self.stack_variable();
        self.ssa.write(entry, variable, value.into());
    }

    fn stack_variable(&mut self) -> Variable {
        if let Some(variable) = self.stack_end {
            return variable;
        }
        let variable = self.temporary(File::R, 1);
        self.stack_end = Some(variable);
        variable
    }

    /// The end of the stack.
    pub(super) fn stack_end(&mut self) -> Src {
        if !self.out.frame.moving {
            return STACK;
        }
        let variable = self.stack_variable();
        self.read_variable(variable)
    }

    fn move_stack(&mut self, to: Src) {
        let variable = self.stack_variable();
        let old = self.read_variable(variable);
        let to = self.select(self.guard, to, old, 1);
        self.write_variable(variable, to);
    }

    /// `alloca`. The arguments that calls pass on the stack are below the allocated memory.
    pub(super) fn take_stack(&mut self, instr: &Statement<'a>) -> Result<()> {
        let ty = self.type_of(instr, 0)?;
        let size = self.source(instr, 1, ty)?;
        let size = self.part(size, 0);
        let align = match instr.operand_count() {
            3 => alignment(Some(self.operand(instr, 2)?)),
            _ => alignment(None),
        };
        let end = self.stack_end();
        let lower = match known(size) {
            Some(bytes) => self.add(end, Src::imm(bytes.wrapping_neg())),
            None => self.add(end, size.neg()),
        };
        let align = align.max(self.passed_align);
        let end = self.lop3(lut::A & lut::B, lower, Src::imm(align.wrapping_neg()), Src::ZERO);
        self.move_stack(end);
        let start = self.add(end, Src::imm(self.passed_bytes));
        let address = if ty == ScalarType::U64 { self.pack(&[start, Src::ZERO]) } else { start };
        self.result(instr, address)
    }

    /// `stacksave`.
    pub(super) fn save_stack(&mut self, instr: &Statement<'a>) -> Result<()> {
        let ty = self.type_of(instr, 0)?;
        let end = self.stack_end();
        let saved = if ty == ScalarType::U64 { self.pack(&[end, Src::ZERO]) } else { end };
        self.result(instr, saved)
    }

    /// `stackrestore`.
    pub(super) fn restore_stack(&mut self, instr: &Statement<'a>) -> Result<()> {
        let ty = self.type_of(instr, 0)?;
        let saved = self.source(instr, 0, ty)?;
        let end = self.part(saved, 0);
        self.move_stack(end);
        Ok(())
    }
}
