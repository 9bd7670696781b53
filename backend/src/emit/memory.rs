//! Descriptions of memory accesses for the scheduler, and fences.

use super::Emitter;
use super::builder::Builder;
use crate::CodegenError;
use crate::mach::{self, Effect};
use crate::ori::ir::{File, Inst, Reg, SrcKind};
use crate::ori::memory::{Memory, Space};
use crate::ori::op::{MembarScope, Op};
use sass::Field;

impl Emitter<'_> {
    pub(super) fn fence(&mut self, inst: &Inst) -> Result<(), CodegenError> {
        let fence = Effect::Fence { pinned: false };
        let mut builder = self.by_row(inst)?;
        if let Op::Membar { scope } = inst.op {
            let (mode, scope) = match scope {
                MembarScope::Cta => (".SC", ".CTA"),
                MembarScope::Gpu => (".SC", ".GPU"),
                MembarScope::Sys => (".SC", ".SYS"),
                MembarScope::AllCta => (".ALL", ".CTA"),
                MembarScope::AllGpu => (".ALL", ".GPU"),
                MembarScope::AllSys => (".ALL", ".SYS"),
            };
            builder.text(Field::Mode, mode).text(Field::Scope, scope);
        }
        self.push(builder, Some(inst.src), fence)?;
        // On targets with clusters, the errors of clusters are also waited for.
        if inst.op == Op::Errbar && self.target.clusters {
            let cluster = Builder::new(self.sm, inst.src, "CGAERRBAR", "")?;
            self.push(cluster, Some(inst.src), fence)?;
        }
        Ok(())
    }
}

/// The access with the registers of its address.
pub(super) fn accessed(inst: &Inst, memory: Memory) -> mach::MemoryAccess {
    let register = |n: usize, file: File| match inst.srcs.get(n).map(|s| s.kind) {
        Some(SrcKind::Reg(Reg { file: found, index })) if found == file => Some(index),
        _ => None,
    };
    let uniform = register(usize::from(memory.space == Space::Shared), File::UR);
    let slot = matches!(inst.op, Op::Spill { .. } | Op::Fill { .. });
    mach::MemoryAccess { memory, base: register(0, File::R), uniform, slot }
}
