//! Instructions that the assembler replaces by others before it checks their operands, by target.
//!
//! The operands of such an instruction have to fit the instructions that replace it.

use crate::{FormId, Mod, Opcode, ScalarType, TargetSet, TypeKind};

const NONE: TargetSet = TargetSet::ALL.without(TargetSet::ALL);
const BEFORE_90: TargetSet = TargetSet::ALL.without(TargetSet::since(90));

/// The targets whose generic and global addresses may be registers of less than 32 bits.
pub const SHORT_ADDRESSES: TargetSet = TargetSet::ALL.without(TargetSet::since(100));

/// The targets on which the instruction is replaced by others in which operands are only plain names, not sums of a
/// name and a constant.
pub fn expanded_on(opcode: &Opcode) -> TargetSet {
    use FormId as F;
    let ty = opcode.ty(0);
    let is_rounded = opcode.has(Mod::Rz) || opcode.has(Mod::Rm) || opcode.has(Mod::Rp);
    let everywhere = match (opcode.form, opcode.form.mnemonic()) {
        (_, "div" | "rcp" | "sqrt") if is_rounded => {
            opcode.form.mnemonic() == "div" || ty == Some(ScalarType::F64)
        }
        (_, "div" | "rem") => ty.is_some_and(|ty| {
            matches!(ty.kind(), TypeKind::Bits | TypeKind::Unsigned | TypeKind::Signed) && ty.bits() == 64
        }),
        (F::StAsyncRelease | F::RedAsyncRelease, _) => ty.is_some_and(|ty| ty.bits() != 16),
        (F::CreatepolicyRange | F::CreatepolicyFractional | F::Stackrestore, _) => true,
        _ => false,
    };
    match (opcode.form, opcode.form.mnemonic()) {
        _ if everywhere => TargetSet::ALL,
        (_, "bar") if opcode.has(Mod::Warp) => BEFORE_90,
        (_, "barrier") if !opcode.has(Mod::Aligned) => BEFORE_90,
        (_, "vote" | "match" | "activemask" | "elect" | "redux") | (F::ShflSync, _) => BEFORE_90,
        (F::MmaSpInt4, _) => TargetSet::since(90),
        (F::MmaSpInt8, _) if opcode.has(Mod::Sp) => TargetSet::since(100),
        _ => NONE,
    }
}

/// The targets on which the addresses of the instruction are first copied to registers of their size: copies to
/// clusters on targets without clusters.
pub fn moved_on(opcode: &Opcode) -> TargetSet {
    match opcode.form {
        FormId::CpAsyncBulkLoad | FormId::CpAsyncBulkTensorLoad if opcode.has(Mod::SharedCluster) => {
            TargetSet::since(120)
        }
        FormId::MultimemRed => TargetSet::ALL,
        _ => NONE,
    }
}
