//! Properties of a function's matrix instructions for the attributes of its kernels.

use crate::input::{Function, Operand};
use crate::ori::ir::{self, TensorUse};
use crate::ori::op::Op;
use ptx_isa::SpecialReg;

/// The units for which the function has sparse products, as a mask, and whether its text has `wmma` instructions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MatrixUse {
    pub sparse: u16,
    pub wmma: bool,
}

impl MatrixUse {
    pub(crate) fn of(func: &Function, code: &ir::Function) -> MatrixUse {
        let insts = code.blocks.iter().flat_map(|block| &block.insts);
        let tensor = if code.facts.tensor.has(TensorUse::SPARSE) { SPARSE_IN_TENSOR_MEMORY } else { 0 };
        MatrixUse {
            sparse: insts.fold(tensor, |all, inst| all | sparse(&inst.op)),
            wmma: func.instrs().any(|instr| instr.opcode.form.mnemonic() == "wmma"),
        }
    }

    pub(crate) fn add(&mut self, more: MatrixUse) {
        self.sparse |= more.sparse;
        self.wmma |= more.wmma;
    }
}

const SPARSE_IN_TENSOR_MEMORY: u16 = 0x40;

/// The bit of a sparse product.
fn sparse(op: &Op) -> u16 {
    match op {
        Op::QgmmaSparse { .. } | Op::QgmmaSparseRegisters { .. } => 0x1,
        Op::HgmmaSparse { .. } | Op::HgmmaSparseRegisters { .. } => 0x2,
        Op::IgmmaSparse { .. } | Op::IgmmaSparseRegisters { .. } => 0x4,
        Op::QmmaSp { .. } | Op::QmmaSpScaled { .. } => 0x8,
        Op::HmmaSp { .. } | Op::HmmaSpTf32 { .. } => 0x10,
        Op::ImmaSp { .. } | Op::ImmaSpNibbles { .. } => 0x20,
        Op::OmmaSpScaled { .. } => 0x80,
        _ => 0,
    }
}

/// Whether the function reads the address of the shared memory that the system reserves.
pub(crate) fn reads_reserved_shared(func: &Function) -> bool {
    let is_read = |operand: &Operand| {
        matches!(
            operand,
            Operand::Special(
                SpecialReg::ReservedSmemOffsetBegin
                    | SpecialReg::ReservedSmemOffsetEnd
                    | SpecialReg::ReservedSmemOffsetCap
                    | SpecialReg::ReservedSmemOffset0
                    | SpecialReg::ReservedSmemOffset1,
            )
        )
    };
    func.instrs().any(|instr| instr.operands.iter().any(is_read))
}
