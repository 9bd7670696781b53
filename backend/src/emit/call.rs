//! Calls and returns, and the fields of instructions that are filled in when a function is linked.

use super::builder::{Builder, PHASE, Slot};
use super::generic::operand;
use super::{Emitter, STACK_POINTER};
use crate::CodegenError;
use crate::abi;
use crate::input::SrcId;
use crate::mach::{Block, BlockId, Effect, Link, MachInst};
use crate::ori::ir::{Dst, File, Inst, Reg, Src, SrcKind};
use crate::ori::op::Op;
use crate::runtime;
use sass::Field;

/// The carry of an address sum.
const CARRY: Reg = Reg { file: File::P, index: 0 };

const fn general(index: u8) -> Reg {
    Reg { file: File::R, index }
}

impl Emitter<'_> {
    /// Sets the return address and calls. This ends the block.
    pub(super) fn call(&mut self, inst: &Inst) -> Result<(), CodegenError> {
        let at = inst.src;
        let back = BlockId(self.blocks.len() as u32 + 1);
        let address = match inst.op {
            Op::CallRoutine { routine } => runtime::return_address(routine),
            Op::Call { callee } => {
                let known = self.known.iter().find(|(function, _)| *function == callee.function);
                known.map_or(callee.preserved.return_address(), |(_, known)| known.return_address)
            }
            _ => inst.op.preserved().return_address(),
        };
        if inst.op.calls_function() && !self.called.contains(&inst.op.preserved()) {
            self.called.push(inst.op.preserved());
        }
        let (low, high) = (Dst::Reg(general(address)), Dst::Reg(general(address + 1)));
        let mut target = None;
        let (call, link) = match inst.op {
            Op::CallTo { absolute: true, .. } => {
                self.return_address(&low, &high, back, at)?;
                let mut call = Builder::new(self.sm, at, "CALL.ABS", "r")?;
                call.reg(Field::Ra, File::R, operand(inst, 0)?);
                (call, None)
            }
            // Routines of the runtime library are in the same code; driver functions are in no code of the file.
            _ if matches!(inst.op, Op::CallDriver { .. })
                || !self.linking.is_joined() && inst.op.calls_function() =>
            {
                for (dst, high) in [(&low, false), (&high, true)] {
                    self.linked_mov(dst, Link::Return { block: back, high }, Some(at))?;
                }
                match inst.op {
                    Op::Call { callee } => {
                        (Builder::new(self.sm, at, "CALL.ABS", "")?, Some(Link::Function(callee.function)))
                    }
                    Op::CallDriver { function } => {
                        (Builder::new(self.sm, at, "CALL.ABS", "")?, Some(Link::Driver(function)))
                    }
                    _ => {
                        let mut call = Builder::new(self.sm, at, "CALL.ABS", "r")?;
                        call.reg(Field::Ra, File::R, operand(inst, 0)?);
                        (call, Some(Link::Pointee))
                    }
                }
            }
            _ => {
                self.linked_mov(&low, Link::Block(back), Some(at))?;
                self.mov(&high, &Src::ZERO, Some(at))?;
                match inst.op {
                    Op::Call { callee } => {
                        (Builder::new(self.sm, at, "CALL.REL", "")?, Some(Link::Function(callee.function)))
                    }
                    Op::CallRoutine { routine } => {
                        target = Some(self.routine_block(routine));
                        (Builder::new(self.sm, at, "CALL.REL", "")?, None)
                    }
                    _ => {
                        let mut call = Builder::new(self.sm, at, "CALL.REL", "r")?;
                        call.reg(Field::Ra, File::R, operand(inst, 0)?);
                        (call, Some(Link::Start))
                    }
                }
            }
        };
        // Routines of the runtime library have no stack.
        if self.moving && inst.op.calls_function() {
            let register = |index| Src::new(SrcKind::Reg(general(index)));
            self.mov(&Dst::Reg(general(abi::FRAME)), &register(STACK_POINTER), Some(at))?;
            self.mov(&Dst::Reg(general(STACK_POINTER)), &register(abi::STACK_END), Some(at))?;
        }
        let mut call = call;
        call.value(Field::Flag, 1);
        let made = MachInst { inst: call.finish()?, src: Some(at), target, link, effect: Effect::Control };
        self.out.push(made);
        let insts = std::mem::take(&mut self.out);
        self.blocks.push(Block { insts, successors: smallvec::smallvec![back] });
        if self.moving && inst.op.calls_function() {
            let frame = Src::new(SrcKind::Reg(general(abi::FRAME)));
            self.mov(&Dst::Reg(general(STACK_POINTER)), &frame, Some(at))?;
        }
        Ok(())
    }

    /// Computes the address of a block, wherever the code is placed. Before sm_90, the program counter is that of the
    /// instruction that reads it.
    fn return_address(
        &mut self,
        low: &Dst,
        high: &Dst,
        back: BlockId,
        at: SrcId,
    ) -> Result<(), CodegenError> {
        let mut counter = Builder::new(self.sm, at, "LEPC", "")?;
        counter.dst(Field::Rd, Some(low));
        let names_target = counter.has(Field::Target);
        let target = names_target.then_some(back);
        let inst = counter.finish()?;
        self.out.push(MachInst { inst, src: Some(at), target, link: None, effect: Effect::None });
        if names_target {
            return Ok(());
        }
        let [first, second] = [abi::RETURN_ADDRESS, abi::RETURN_ADDRESS + 1]
            .map(|index| Src::new(SrcKind::Reg(general(index))));
        let carry = Src::new(SrcKind::Reg(CARRY));
        // The distance is filled in when the code is laid out.
        let distance = Src::new(SrcKind::Imm(0));
        let slots = [(Slot::A, &first), (Slot::B, &distance), (Slot::C, &Src::ZERO)];
        let mut add = Builder::shaped(self.sm, at, "IADD3", &slots)?;
        add.dst(Field::Rd, Some(low)).dst(Field::Pd, Some(&Dst::Reg(CARRY)));
        let inst = add.finish()?;
        let link = Some(Link::Distance(back));
        self.out.push(MachInst { inst, src: Some(at), target: None, link, effect: Effect::None });
        let op = Op::Iadd3 { x: true };
        let srcs = [Src::ZERO, second, Src::ZERO, carry, Src::FALSE];
        self.select(&Inst::new(op, &[*high, Dst::Sink, Dst::Sink], &srcs, at))
    }

    /// Frees the frame and returns.
    pub(super) fn return_to_caller(&mut self, src: SrcId) -> Result<(), CodegenError> {
        let stack = Dst::Reg(general(STACK_POINTER));
        self.caller_stack(&stack, src)?;
        let (name, link) =
            if self.linking.is_joined() { ("RET.REL", Some(Link::Start)) } else { ("RET.ABS", None) };
        let mut back = Builder::new(self.sm, src, name, "")?;
        back.reg(Field::Ra, File::R, &Src::new(SrcKind::Reg(general(self.return_address))));
        back.value(Field::Flag, 1);
        let inst = back.finish()?;
        self.out.push(MachInst { inst, src: Some(src), target: None, link, effect: Effect::Control });
        self.end_block(None);
        Ok(())
    }

    /// `dst` = the stack pointer plus `bytes`. Emits no instruction if that changes nothing.
    pub(super) fn add_to_stack_pointer(
        &mut self,
        dst: &Dst,
        bytes: u32,
        at: Option<SrcId>,
    ) -> Result<(), CodegenError> {
        let pointer = general(STACK_POINTER);
        if bytes == 0 && *dst == Dst::Reg(pointer) {
            return Ok(());
        }
        let (pointer, size) = (Src::new(SrcKind::Reg(pointer)), Src::imm(bytes));
        let slots = [(Slot::A, &pointer), (Slot::B, &size), (Slot::C, &Src::ZERO)];
        let mut add = Builder::shaped(self.sm, at.unwrap_or_default(), "IADD3", &slots)?;
        add.dst(Field::Rd, Some(dst));
        self.push(add, at, Effect::None)
    }

    pub(super) fn frame_top(&mut self, inst: &Inst) -> Result<(), CodegenError> {
        let Some(dst) = inst.dsts.first() else {
            return Err(CodegenError::internal(inst.src, PHASE, "an address without a destination"));
        };
        self.caller_stack(dst, inst.src)
    }

    pub(super) fn locate(&mut self, inst: &Inst, link: Link) -> Result<(), CodegenError> {
        let Some(dst) = inst.dsts.first() else {
            return Err(CodegenError::internal(inst.src, PHASE, "an address without a destination"));
        };
        self.linked_mov(dst, link, Some(inst.src))
    }

    pub(super) fn load_handle(&mut self, inst: &Inst, link: Link) -> Result<(), CodegenError> {
        let word = Src::constant(0, 0);
        self.select(&Inst::new(Op::Uldc { wide: false }, &inst.dsts, &[word], inst.src))?;
        if let Some(made) = self.out.last_mut() {
            made.link = Some(link);
        }
        Ok(())
    }

    /// Moves a number that is filled in when the function is linked.
    fn linked_mov(&mut self, dst: &Dst, link: Link, at: Option<SrcId>) -> Result<(), CodegenError> {
        let number = Src::new(SrcKind::Imm(0));
        let mut mov = Builder::shaped(self.sm, at.unwrap_or_default(), "MOV", &[(Slot::B, &number)])?;
        mov.dst(Field::Rd, Some(dst));
        let inst = mov.finish()?;
        self.out.push(MachInst { inst, src: at, target: None, link: Some(link), effect: Effect::None });
        Ok(())
    }
}
