//! Emission: translates allocated Ori to machine code.
//!
//! Before: every operand is a register, or an immediate or constant that the encoding accepts (legalized). After:
//! blocks of [`sass::Inst`] in layout order with neutral control words. Blocks end in branches where control does not
//! fall through. The first instruction loads R1.
//!
//! Almost every operation becomes one instruction, chosen by mnemonic and operand shape. An operation without a
//! matching form is an internal error, because legalization must not leave it.

mod builder;
mod call;
mod generic;
mod layout;
#[cfg(test)]
pub(crate) mod listing;
mod memory;
mod products;
mod switch;
mod tensor;
mod texture;
mod warp;

use crate::CodegenError;
use crate::Linking;
use crate::abi::{self, Preserved};
use crate::hazard::is_unconditional;
use crate::input::{RegId, SrcId};
use crate::mach::{Block, BlockId, Code, Effect, MachInst, Table};
use crate::ori::ir::{self, Dst, File, Function, Reg, Src, SrcKind};
use crate::ori::op::{JumpTable, MemSize, Op, Routine, lut};
use crate::runtime;
use crate::shown::{Mark, Word};
use crate::target::Target;
pub(crate) use generic::{any_form, encodes, takes_uniform};
pub(crate) use warp::parts_warps;

use builder::{Builder, PHASE, Slot, predicate};
use layout::{BranchTarget, Leave, Plan, is_uniform};
use rustc_hash::FxHashSet;
use sass::{Field, Sm};
use smallvec::SmallVec;

/// The stack pointer.
const STACK_POINTER: u8 = 1;

/// Translates an allocated function.
pub fn emit(func: &Function, sm: Sm, target: &Target) -> Result<Code, CodegenError> {
    let plan = Plan::of(func);
    let mut emitter = Emitter {
        sm,
        target,
        plan: &plan,
        frame: func.frame,
        frame_bytes: size_of_frame(&func.frame),
        return_address: match (func.routine, func.facts.return_address) {
            (Some(routine), _) => runtime::return_address(routine),
            (None, own) => own.unwrap_or(func.facts.preserved.return_address()),
        },
        known: &func.facts.known,
        moving: func.frame.moving,
        linking: func.facts.linking,
        out: Vec::new(),
        blocks: Vec::new(),
        routines: Vec::new(),
        never: Vec::new(),
        tables: Vec::new(),
        shown: Vec::new(),
        called: Vec::new(),
        listed: plan.order.iter().filter_map(|&block| func.block(block).term.table()).collect(),
    };
    emitter.prologue(func)?;
    for (&id, leaves) in plan.order.iter().zip(&plan.leaves) {
        let block = func.block(id);
        for inst in &block.insts {
            emitter.inst(inst)?;
        }
        for leave in leaves {
            emitter.leave(leave, block)?;
        }
        if leaves.is_empty() {
            emitter.end_block(None);
        }
    }
    products::settle(sm, &mut emitter.blocks);
    emitter.routines()?;
    let mut facts = func.facts.clone();
    facts.never.append(&mut emitter.never);
    let Emitter { blocks, tables, shown, called, .. } = emitter;
    Ok(Code { sm, blocks, tables, facts, frame: func.frame, called, shown })
}

/// The size of a function's stack frame in bytes. The frame lies below an aligned address, so its lowest byte has the
/// alignment of this number. If the address is not aligned enough, the size includes room to move the frame down.
pub fn frame_bytes(frame: &ir::Frame) -> u32 {
    let room = if is_realigned(frame) { frame_align(frame) - frame.entry_align } else { 0 };
    size_of_frame(frame) + room
}

/// The size without the room to move down.
fn size_of_frame(frame: &ir::Frame) -> u32 {
    let own = if is_realigned(frame) { SAVED_POINTER } else { 0 };
    (frame.local_bytes + frame.spill_bytes + own).next_multiple_of(frame_align(frame))
}

/// The bytes at the top of a frame that hold the caller's stack pointer.
const SAVED_POINTER: u32 = 4;

/// The alignment of the frame's lowest byte. The widest access to a spilled value has four words.
fn frame_align(frame: &ir::Frame) -> u32 {
    let spill_align = if frame.spill_bytes > 0 { frame.entry_align.min(16) } else { 1 };
    frame.local_align.max(spill_align)
}

/// Whether variables need a larger alignment than the stack pointer has at the start of the function.
pub(crate) fn is_realigned(frame: &ir::Frame) -> bool {
    frame.local_align > frame.entry_align
}

struct Emitter<'a> {
    sm: Sm,
    target: &'a Target,
    plan: &'a Plan,
    frame: ir::Frame,
    frame_bytes: u32,
    /// The first register of the address where the function returns to.
    return_address: u8,
    known: &'a [(u32, abi::Known)],
    /// Calls pass the end of the stack.
    moving: bool,
    /// A linker fills in the addresses.
    linking: Linking,
    /// The instructions of the block being emitted.
    out: Vec<MachInst>,
    /// The finished blocks.
    blocks: Vec<Block>,
    /// The runtime routines that are called. Their blocks come last, in this order.
    routines: Vec<Routine>,
    /// Statements of instructions whose guard never holds.
    never: Vec<SrcId>,
    /// The target lists of indirect branches.
    tables: Vec<Table>,
    /// The target lists that a branch uses.
    listed: FxHashSet<JumpTable>,
    /// See [`Code::called`].
    called: Vec<Preserved>,
    shown: Vec<Mark>,
}

impl Emitter<'_> {
    /// Ends the block being emitted; control continues after it or at `target`.
    fn end_block(&mut self, target: Option<BlockId>) {
        let insts = std::mem::take(&mut self.out);
        let always = insts.last().is_some_and(|i| i.effect == Effect::Control && is_unconditional(&i.inst));
        let next = (!always).then_some(BlockId(self.blocks.len() as u32 + 1));
        let mut successors: SmallVec<[BlockId; 2]> = next.into_iter().chain(target).collect();
        successors.dedup();
        self.blocks.push(Block { insts, successors });
    }

    fn push(&mut self, builder: Builder, src: Option<SrcId>, effect: Effect) -> Result<(), CodegenError> {
        self.out.push(MachInst { inst: builder.finish()?, src, target: None, link: None, effect });
        Ok(())
    }

    /// Loads R1 and allocates the frame.
    fn prologue(&mut self, func: &Function) -> Result<(), CodegenError> {
        let src = SrcId::default();
        let stack = Dst::Reg(Reg { file: File::R, index: STACK_POINTER });
        if func.entry {
            let slot = Src::constant(0, self.target.driver.stack);
            let first = Effect::Fence { pinned: true };
            if self.target.loads_stack_pointer {
                let mut load = Builder::new(self.sm, src, "LDC", "")?;
                load.dst(Field::Rd, Some(&stack)).constant(&slot);
                self.push(load, None, first)?;
            } else {
                self.mov(&stack, &slot, None)?;
                self.out.iter_mut().for_each(|i| i.effect = first);
            }
        }
        if !is_realigned(&self.frame) {
            return self.add_to_stack_pointer(&stack, self.frame_bytes.wrapping_neg(), None);
        }
        // This register never holds a parameter.
        let old = Reg { file: File::R, index: abi::STACK_END };
        let pointer = Src::new(SrcKind::Reg(Reg { file: File::R, index: STACK_POINTER }));
        if !func.entry {
            self.mov(&Dst::Reg(old), &pointer, None)?;
        }
        self.add_to_stack_pointer(&stack, self.frame_bytes.wrapping_neg(), None)?;
        let mask = Src::imm(frame_align(&self.frame).wrapping_neg());
        let and = Op::Lop3 { lut: lut::A & lut::B };
        self.select(&ir::Inst::new(and, &[stack], &[pointer, mask, Src::ZERO], src))?;
        if func.entry {
            return Ok(());
        }
        let save = Op::Spill { size: MemSize::B32, offset: self.saved_pointer() };
        self.select(&ir::Inst::new(save, &[], &[pointer, Src::new(SrcKind::Reg(old))], src))
    }

    /// The offset in the frame of the caller's stack pointer.
    fn saved_pointer(&self) -> i32 {
        (self.frame_bytes - SAVED_POINTER) as i32
    }

    /// The stack pointer of the caller.
    fn caller_stack(&mut self, dst: &Dst, at: SrcId) -> Result<(), CodegenError> {
        if !is_realigned(&self.frame) {
            return self.add_to_stack_pointer(dst, self.frame_bytes, Some(at));
        }
        let pointer = Src::new(SrcKind::Reg(Reg { file: File::R, index: STACK_POINTER }));
        let load = Op::Fill { size: MemSize::B32, offset: self.saved_pointer() };
        self.select(&ir::Inst::new(load, &[*dst], &[pointer], at))
    }

    /// The block of a routine. These blocks follow all planned ones.
    fn routine_block(&mut self, routine: Routine) -> BlockId {
        let known = self.routines.iter().position(|called| *called == routine);
        let at = known.unwrap_or_else(|| {
            self.routines.push(routine);
            self.routines.len() - 1
        });
        BlockId(self.plan.machine_blocks + at as u32)
    }

    /// The code of the routines that are called.
    fn routines(&mut self) -> Result<(), CodegenError> {
        for routine in self.routines.clone() {
            let code = runtime::compiled(self.target, routine)?;
            let mut code = emit(&code.func, self.sm, self.target)?;
            for made in code.blocks.iter_mut().flat_map(|block| &mut block.insts) {
                made.src = None;
            }
            self.blocks.append(&mut code.blocks);
        }
        Ok(())
    }

    /// Emits a branch, which ends the block.
    fn leave(&mut self, leave: &Leave, block: &ir::Block) -> Result<(), CodegenError> {
        let src = leave.src;
        let (mnemonic, target) = match leave.to {
            BranchTarget::Exit => ("EXIT", None),
            BranchTarget::Block(to) => match self.plan.machine_block(to) {
                Some(target) => ("BRA", Some(target)),
                None => {
                    return Err(CodegenError::internal(
                        src,
                        PHASE,
                        format!("branch to {to:?}, which is dead"),
                    ));
                }
            },
            BranchTarget::Return => return self.return_to_caller(src),
            BranchTarget::Switch => return self.switch(block),
        };
        let (mnemonic, place) = match is_uniform(&leave.guard) && target.is_some() {
            true => ("BRA.U", Field::Pr),
            false => (mnemonic, Field::Guard),
        };
        let mut builder = Builder::new(self.sm, src, mnemonic, "")?;
        builder.pred(place, &leave.guard);
        self.out.push(MachInst {
            inst: builder.finish()?,
            src: Some(src),
            target,
            link: None,
            effect: Effect::Control,
        });
        self.end_block(target);
        Ok(())
    }

    /// Emits one Ori instruction.
    fn inst(&mut self, inst: &ir::Inst) -> Result<(), CodegenError> {
        if inst.guard.kind == SrcKind::Pred(inst.guard.mods.not) {
            self.never.push(inst.src);
            return Ok(());
        }
        let from = self.out.len();
        self.select(inst)?;
        if inst.op.is_call() {
            // The instruction has ended the block, and has no guard.
            return Ok(());
        }
        let Some((index, negated)) = predicate(&inst.guard) else {
            return Err(CodegenError::internal(inst.src, PHASE, format!("guard {:?}", inst.guard)));
        };
        // An operation without a guard may consist of instructions with guards.
        for made in self.out[from..].iter_mut().filter(|_| !inst.guard.is_true()) {
            made.inst.set(Field::Guard, u64::from(index)).set(Field::GuardNot, u64::from(negated));
        }
        Ok(())
    }

    /// Records that a register holds a word of a PTX register from here on.
    fn shown(&mut self, inst: &ir::Inst, register: u32, index: u8) {
        let at = match inst.srcs[..] {
            [Src { kind: SrcKind::Reg(Reg { file: File::R, index: at }), .. }] => Some(at),
            _ => None,
        };
        let after = self.out.iter().filter(|made| made.src.is_some()).count() as u32;
        let block = BlockId(self.blocks.len() as u32);
        self.shown.push(Mark { block, after, word: Word { register: RegId(register), index }, at });
    }

    /// Moves a register, an immediate or a constant to one general register.
    fn mov(&mut self, dst: &Dst, src: &Src, at: Option<SrcId>) -> Result<(), CodegenError> {
        let mut mov = Builder::shaped(self.sm, at.unwrap_or_default(), "MOV", &[(Slot::B, src)])?;
        mov.dst(Field::Rd, Some(dst));
        self.push(mov, at, Effect::None)
    }
}

#[cfg(test)]
mod tests {
    use super::listing::listing;
    use crate::sched::Options;
    use expect_test::{Expect, expect};

    fn check(sm: u8, body: &str, expected: Expect) {
        expected.assert_eq(&listing(sm, body, Options { reorder: false }));
    }

    #[test]
    fn a_kernel() {
        let body = "
  R0 = S2R{sr=0x21}
  P0, _ = ISETP.GE.U32.AND R0, c[0x0][0x168], PT
  BRA P0, b1, b2
b2:
  R3 = MOV 0x4
  UR4 = ULDC.64 c[0x0][0x118]
  R2 = IMAD.WIDE.U32 R0, R3, c[0x0][0x160]
  R5 = LDG.E R2, UR4
  R5 = FADD.FTZ R5, -|R0|
  STG.E R2, UR4, R5
  JUMP b1
b1:
  EXIT";
        check(
            80,
            body,
            expect![[r#"
              0 -    -- --  1  MOV R1, c[0x0][0x28]
             16 -    w0 --  2  S2R R0, SR_TID.X
             32 0    -- -- Y13 ISETP.GE.U32.AND P0, PT, R0, c[0x0][0x168], PT
             48 -    -- --  5  @P0 EXIT
             64 -    -- --  1  MOV R3, 0x4
             80 -    -- -- Y4  ULDC.64 UR4, c[0x0][0x118]
             96 -    -- -- Y5  IMAD.WIDE.U32 R2, R0, R3, c[0x0][0x160]
            112 -    w0 --  2  LDG.E R5, [R2.64]
            128 0    -- -- Y5  FADD.FTZ R5, R5, -|R0|
            144 -    -- --  1  STG.E [R2.64], R5
            160 -    -- --  5  EXIT
        "#]],
        );
    }

    /// Tests every operation with registers in all slots of its signature. For some modifiers it must have a form,
    /// except operations that only other targets or shapes have.
    #[test]
    fn every_operation_has_a_form() {
        use super::*;
        use crate::ori::signature::{Accept, Width, signature};
        use crate::ori::{ir::Block, op::Op, operations};
        use std::collections::BTreeMap;
        let mut emitted: BTreeMap<String, bool> = BTreeMap::new();
        for target in
            [75, 80, 90, 100, 103, 120].map(|sm| Target::of(ptx_isa::Sm::new(sm)).expect("a target"))
        {
            for op in operations::samples().into_iter().filter(|op| !matches!(op, Op::Bssy { .. })) {
                let signature = signature(&op);
                let register = |file: File, width: Width, n: usize| {
                    let wide = width != Width::Exactly(1) && width != Width::OneOrTwo;
                    let index = (n as u8 + 1) * if wide { 4 } else { 1 };
                    Reg { file, index: if file == File::R { index } else { index % 6 } }
                };
                let dsts: Vec<Dst> = signature
                    .dsts
                    .iter()
                    .enumerate()
                    .map(|(i, d)| Dst::Reg(register(d.file, d.width, i)))
                    .collect();
                let source = |(i, slot): (usize, &crate::ori::signature::SrcSlot)| {
                    Src::new(if slot.accept.has(Accept::REG) {
                        SrcKind::Reg(register(slot.file, slot.width, i + 2))
                    } else {
                        SrcKind::Const(ir::Const { bank: 0, offset: 0x160 })
                    })
                };
                let srcs: Vec<Src> = signature.srcs.iter().enumerate().map(source).collect();
                let func = Function {
                    name: String::new(),
                    entry: true,
                    routine: None,
                    blocks: vec![Block {
                        insts: vec![ir::Inst::new(op, &dsts, &srcs, SrcId(0))],
                        ..Block::default()
                    }],
                    layout: vec![ir::BlockId(0)],
                    values: Vec::new(),
                    literals: Vec::new(),
                    frame: ir::Frame::default(),
                    facts: Default::default(),
                };
                let made = emit(&func, target.generation(), target).and_then(|mut code| {
                    crate::sched::schedule(&mut code, Options { reorder: true }, &|| ());
                    crate::assemble::assemble(&code)
                });
                let name = format!("{op:?}").split([' ', '{']).next().unwrap_or("").to_owned();
                *emitted.entry(name).or_default() |= made.is_ok();
            }
        }
        let missing: Vec<&str> =
            emitted.iter().filter(|(_, ok)| !**ok).map(|(name, _)| name.as_str()).collect();
        expect!["AtomsCas Bar Compute Copy F2f Fix Pack"].assert_eq(&missing.join(" "));
    }
}
