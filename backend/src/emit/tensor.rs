//! Emission of tensor memory operations that a row of the operation table does not describe completely.

use super::Emitter;
use crate::CodegenError;
use crate::mach::Effect;
use crate::ori::ir::Inst;
use crate::ori::op::Op;
use sass::Field;

const FENCE: Effect = Effect::Fence { pinned: false };

impl Emitter<'_> {
    /// An access in which the halves of the warp use different columns takes two instructions.
    pub(super) fn tensor_halves(&mut self, inst: &Inst) -> Result<(), CodegenError> {
        let (Op::TmemLoadHalves { offset, behind, .. }
        | Op::TmemLoadStatHalves { offset, behind, .. }
        | Op::TmemStoreHalves { offset, behind, .. }) = inst.op
        else {
            return Ok(());
        };
        let halves = [(".16dp32bit_t0_t15", offset), (".16dp32bit_t16_t31", offset.wrapping_add(behind))];
        for (lanes, offset) in halves {
            let mut half = self.by_row(inst)?;
            half.text(Field::Type, lanes).value(Field::Offset, i64::from(offset) as u64);
            self.push(half, Some(inst.src), FENCE)?;
        }
        Ok(())
    }

    /// A product that can scale its accumulator. Not all products can.
    pub(super) fn tensor_product(&mut self, inst: &Inst, scale: u8) -> Result<(), CodegenError> {
        let mut product = self.by_row(inst)?;
        if scale != 0 {
            product.value(Field::Imm2, scale.into());
        }
        self.push(product, Some(inst.src), FENCE)
    }
}
