//! Emits an operation as its row in the operation table describes: family, form, operands, modifiers.

use super::Emitter;
use super::builder::{Builder, PHASE};
use super::memory::accessed;
use crate::CodegenError;
use crate::input::SrcId;
use crate::mach::{Effect, Link};
use crate::ori::ir::{File, Inst, Reg, Src, SrcKind, SrcMods};
use crate::ori::memory as ori;
use crate::ori::op::Op;
use crate::ori::operations::{facts, families, for_each_setting, signature};
use crate::ori::signature::{Accept, At, SrcSlot};
use crate::target::Target;
use smallvec::SmallVec;

impl Emitter<'_> {
    /// Emits an operation by its row, or by special code if the row is not enough.
    pub(super) fn select(&mut self, inst: &Inst) -> Result<(), CodegenError> {
        match inst.op {
            // The allocator has replaced them by moves.
            Op::Pack | Op::Copy | Op::Fix => {
                Err(CodegenError::internal(inst.src, PHASE, format!("no selection for {:?}", inst.op)))
            }
            // The values are already in the registers of the convention.
            Op::Params | Op::Results => Ok(()),
            Op::Hold { .. } | Op::HaveRegisters { .. } => Ok(()),
            Op::Shown { register, word } => {
                self.shown(inst, register, word);
                Ok(())
            }
            Op::Settle { registers } => self.settled(inst, registers),
            Op::EndGroup => self.end_product_group(inst),
            Op::Call { .. } | Op::CallTo { .. } | Op::CallDriver { .. } | Op::CallRoutine { .. } => {
                self.call(inst)
            }
            Op::Target { table } => self.target_entry(inst, table),
            Op::Locate { link } => self.locate(inst, Link::Symbol(link)),
            Op::LoadHandle { link } => self.load_handle(inst, Link::Symbol(link)),
            Op::EntrySize { table } => self.locate(inst, Link::EntrySize(table)),
            Op::ConstBytes => self.locate(inst, Link::ConstBytes),
            Op::TensorWords => self.locate(inst, Link::TensorWords),
            Op::FrameTop => self.frame_top(inst),
            Op::Bssy { .. } => self.set_barrier(inst),
            Op::Bar { .. } => self.barrier(inst),
            Op::Warpsync { exclusive } => self.warpsync(inst, exclusive),
            Op::Tex { .. } | Op::Txq { .. } => self.texture(inst),
            Op::TexDerive { .. } => self.derive(inst),
            Op::Suld { .. } | Op::Sust { .. } | Op::SustElements { .. } | Op::Sured { .. } => {
                self.surface(inst)
            }
            Op::Bpt { .. } => self.stop(inst),
            Op::Hgmma { .. }
            | Op::HgmmaRegisters { .. }
            | Op::Igmma { .. }
            | Op::IgmmaRegisters { .. }
            | Op::Qgmma { .. }
            | Op::QgmmaRegisters { .. }
            | Op::HgmmaSparse { .. }
            | Op::HgmmaSparseRegisters { .. }
            | Op::IgmmaSparse { .. }
            | Op::IgmmaSparseRegisters { .. }
            | Op::QgmmaSparse { .. }
            | Op::QgmmaSparseRegisters { .. }
            | Op::Bgmma { .. }
            | Op::BgmmaRegisters { .. } => self.group_product(inst),
            Op::TmemLoadHalves { .. } | Op::TmemLoadStatHalves { .. } | Op::TmemStoreHalves { .. } => {
                self.tensor_halves(inst)
            }
            Op::TmemProduct { scale, .. } => self.tensor_product(inst, scale),
            Op::R2ur => self.uniform_copy(inst),
            Op::Membar { .. } | Op::Errbar | Op::Cctl { .. } => self.fence(inst),
            _ => {
                let builder = self.by_row(inst)?;
                self.push(builder, Some(inst.src), machine_effect(inst))
            }
        }
    }

    /// Builds the instruction that the operation's row describes.
    pub(super) fn by_row(&self, inst: &Inst) -> Result<Builder, CodegenError> {
        let signature = signature(&inst.op);
        if !signature.admits_counts(inst) {
            return Err(CodegenError::internal(inst.src, PHASE, format!("{:?} lacks operands", inst.op)));
        }
        let mut builder = Builder::of_row(self.sm, inst.src, families(&inst.op), &signature, &inst.srcs)?;
        for (slot, dst) in signature.dsts.iter().zip(&inst.dsts) {
            builder.dst(slot.at, Some(dst));
        }
        for (slot, src) in signature.srcs.iter().zip(&inst.srcs) {
            builder.operand(slot, src);
        }
        for_each_setting(&inst.op, |fields, setting| {
            builder.setting(fields, setting);
        });
        Ok(builder)
    }
}

/// Whether the target has a legal machine instruction for the operation, with registers in all its slots.
pub(crate) fn encodes(sm: sass::Sm, op: &Op) -> bool {
    let signature = signature(op);
    let register = |slot: &SrcSlot| match slot.accept.has(Accept::REG) {
        true => Src::new(SrcKind::Reg(Reg { file: slot.file, index: 0 })),
        false => Src::constant(0, 0),
    };
    let sources: SmallVec<[Src; 5]> = signature.srcs.iter().map(register).collect();
    let Ok(mut builder) = Builder::of_row(sm, SrcId::default(), families(op), &signature, &sources) else {
        return false;
    };
    for_each_setting(op, |fields, setting| {
        builder.setting(fields, setting);
    });
    builder.finish().is_ok_and(|inst| inst.illegal(sm).is_none())
}

/// Whether the target has a form of the operation that reads source `index` from a uniform register, and the others
/// from registers.
pub(crate) fn takes_uniform(sm: sass::Sm, op: &Op, index: usize, mods: SrcMods) -> bool {
    let signature = signature(op);
    let uniform_addresses = Target::of_generation(sm).is_some_and(Target::uniform_addresses);
    if !uniform_addresses && signature.srcs.get(index).is_some_and(|slot| slot.at == At::Address) {
        return false;
    }
    let register = |(i, slot): (usize, &SrcSlot)| {
        let file = if i == index { File::UR } else { slot.file };
        let src = match slot.accept.has(Accept::REG) {
            true if slot.at == At::Descriptor && uniform_addresses => Src::ZERO,
            true => Src::new(SrcKind::Reg(Reg { file, index: 0 })),
            false => Src::constant(0, 0),
        };
        if i == index { Src { mods, ..src } } else { src }
    };
    let sources: SmallVec<[Src; 5]> = signature.srcs.iter().enumerate().map(register).collect();
    let Ok(mut builder) = Builder::of_row(sm, SrcId::default(), families(op), &signature, &sources) else {
        return false;
    };
    for (slot, src) in signature.srcs.iter().zip(&sources) {
        builder.operand(slot, src);
    }
    for_each_setting(op, |fields, setting| {
        builder.setting(fields, setting);
    });
    builder.finish().is_ok()
}

/// One of the forms that the operation can have on the target, for questions whose answer is the same for all of them.
/// `None` if the operation emits no instruction.
pub(crate) fn any_form(sm: sass::Sm, op: &Op) -> Option<sass::FormId> {
    families(op).iter().find_map(|family| sass::speed::any_form(sm, family))
}

/// The effect of the operation for the scheduler.
fn machine_effect(inst: &Inst) -> Effect {
    let facts = facts(&inst.op);
    match facts.effect {
        ori::Effect::Memory(memory) => Effect::Memory(accessed(inst, memory)),
        ori::Effect::Everything | ori::Effect::Warp { removable: false } => {
            Effect::Fence { pinned: facts.pinned }
        }
        _ if facts.pinned => Effect::Fence { pinned: true },
        ori::Effect::Warp { removable: true } => Effect::Convergent,
        ori::Effect::None | ori::Effect::Observes => Effect::None,
    }
}

/// The n-th source.
pub(super) fn operand(inst: &Inst, n: usize) -> Result<&Src, CodegenError> {
    inst.srcs
        .get(n)
        .ok_or_else(|| CodegenError::internal(inst.src, PHASE, format!("{:?} lacks source {n}", inst.op)))
}
