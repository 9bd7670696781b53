//! Asynchronous copies from global to shared memory.

use super::arithmetic::unsupported;
use super::{Block, Step, WARP, each};
use crate::launch::FaultKind;
use crate::memory::Space;
use ptx_backend::input::{Instr, Operand};
use ptx_isa::{FormId, Mod, ScalarType};

impl Block<'_> {
    pub(super) fn asynchronous(&mut self, w: usize, mask: u32, instr: &Instr) -> Step<()> {
        self.races.cut();
        match instr.opcode.form {
            FormId::CpAsync => self.copy(w, mask, instr),
            FormId::CpAsyncCommitGroup => {
                each(mask).for_each(|lane| self.warps[w].copies.close(lane));
                Ok(())
            }
            FormId::CpAsyncWaitAll => each(mask).try_for_each(|lane| {
                let copies = self.warps[w].copies.finish_all(lane);
                self.land(w, copies)
            }),
            _ => {
                let Some(Operand::Int(but)) = instr.operands.first() else { return unsupported(instr) };
                each(mask).try_for_each(|lane| {
                    let copies = self.warps[w].copies.finish(lane, *but as u32);
                    self.land(w, copies)
                })
            }
        }
    }

    /// Writes the data of completed copies.
    pub(super) fn land(&mut self, w: usize, copies: Vec<(u64, Vec<u8>)>) -> Step<()> {
        for (to, bytes) in copies {
            self.view(w, 0).slice(Space::Shared, to, bytes.len() as u32)?.copy_from_slice(&bytes);
        }
        Ok(())
    }

    fn copy(&mut self, w: usize, mask: u32, instr: &Instr) -> Step<()> {
        let Some(Operand::Int(size)) = instr.operands.get(2) else { return unsupported(instr) };
        let size = *size as u32;
        let end = instr.operands.len() - usize::from(instr.opcode.has(Mod::L2CacheHint));
        let optional = instr.operands.get(3..end).unwrap_or_default();
        let mut given = [u64::from(size); WARP];
        for operand in optional {
            if self.is_predicate(operand) {
                let ignored = self.gather(w, mask, operand, ScalarType::Pred)?;
                given = std::array::from_fn(|lane| if ignored[lane] == 0 { given[lane] } else { 0 });
            } else {
                given = self.gather(w, mask, operand, ScalarType::U32)?;
            }
        }
        for lane in each(mask) {
            let to = self.address(w, lane, &instr.operands[0])?;
            let from = self.address(w, lane, &instr.operands[1])?;
            if from % u64::from(size) != 0 {
                return Err(FaultKind::Misaligned { space: "global", address: from, size });
            }
            let mut bytes = vec![0; size as usize];
            let mut view = self.view(w, lane);
            // Bytes that are not copied are zero.
            for (i, byte) in bytes.iter_mut().enumerate().take(given[lane] as usize) {
                *byte = view.load(Space::Global, from + i as u64, 1)? as u8;
            }
            view.slice(Space::Shared, to, size)?;
            self.warps[w].copies.begin(lane, to, bytes);
        }
        Ok(())
    }

    fn is_predicate(&self, operand: &Operand) -> bool {
        match operand {
            Operand::NotPred(_) => true,
            Operand::Reg(register) => self.program.code.registers[register.0 as usize] == ScalarType::Pred,
            _ => false,
        }
    }
}
