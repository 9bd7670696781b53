//! `multimem.ld_reduce`: reduces the values that several devices have at a multimem address.

use super::memory::{Target, elements};
use super::{Lowering, Result, Statement};
use crate::ori::ir::Src;
use crate::ori::memory::{Order, Scope};
use crate::ori::op::{AtomOp, CctlOp, ManyFloat, ManyInt, ManyOp, Op};
use crate::ori::operations::signature;
use crate::ori::signature::Width;
use ptx_isa::{FormId, Mod, ScalarType};

/// Whether a form takes multimem addresses, which are global addresses.
pub(super) fn is_of_devices(form: FormId) -> bool {
    matches!(form, FormId::MultimemLdReduce | FormId::MultimemSt | FormId::MultimemRed)
}

/// The hardware type for a vector of floats.
fn floats(ty: ScalarType, elements: usize) -> Option<ManyFloat> {
    use ManyFloat as M;
    use ScalarType as S;
    let bits = ty.bits() as usize * elements;
    Some(match (ty, bits) {
        (S::F32, 32) => M::F32,
        (S::F32, 64) => M::F32x2,
        (S::F32, 128) => M::F32x4,
        (S::F64, 64) => M::F64,
        (S::F16 | S::F16x2, 32) => M::F16x2,
        (S::F16 | S::F16x2, 64) => M::F16x4,
        (S::F16 | S::F16x2, 128) => M::F16x8,
        (S::Bf16 | S::Bf16x2, 32) => M::Bf16x2,
        (S::Bf16 | S::Bf16x2, 64) => M::Bf16x4,
        (S::Bf16 | S::Bf16x2, 128) => M::Bf16x8,
        (S::E5m2 | S::E5m2x2 | S::E5m2x4, 32) => M::E5m2x4,
        (S::E5m2 | S::E5m2x2 | S::E5m2x4, 64) => M::E5m2x8,
        (S::E5m2 | S::E5m2x2 | S::E5m2x4, 128) => M::E5m2x16,
        (S::E4m3 | S::E4m3x2 | S::E4m3x4, 32) => M::E4m3x4,
        (S::E4m3 | S::E4m3x2 | S::E4m3x4, 64) => M::E4m3x8,
        (S::E4m3 | S::E4m3x2 | S::E4m3x4, 128) => M::E4m3x16,
        _ => return None,
    })
}

impl<'a> Lowering<'a> {
    /// Whether the statement is on a vector of elements.
    pub(super) fn has_vector(&self, instr: &Statement<'a>) -> bool {
        instr.any_of(&[Mod::V2, Mod::V4, Mod::V8]).is_some()
    }

    /// `multimem.ld_reduce`. It always has the strongest order and scope.
    pub(super) fn load_of_devices(&mut self, instr: &Statement<'a>) -> Result<()> {
        let ty = self.type_of(instr, 0)?;
        let dsts = elements(instr, self.operand(instr, 0)?);
        let Target::Wide { address, offset, .. } = self.target(instr, 1)? else {
            return self.malformed("a global address whose space is not `.global`");
        };
        instr.ignore(&[Mod::Weak, Mod::Relaxed, Mod::Cta, Mod::Cluster, Mod::Gpu, Mod::Sys]);
        let order = Order::Relaxed(Scope::Sys);
        let op = match floats(ty, dsts.len()) {
            Some(ty) => self.float_of_devices(instr, ty, order, offset)?,
            None => {
                let Some(op) = instr.take(&super::atomic::OPERATIONS) else {
                    return self.malformed("a reduction without an operation such as `.add`");
                };
                let signed = matches!(op, AtomOp::Min | AtomOp::Max);
                let ty = match ty {
                    ScalarType::S32 if signed => ManyInt::S32,
                    ScalarType::S64 if signed => ManyInt::S64,
                    ScalarType::U32 | ScalarType::S32 | ScalarType::B32 => ManyInt::B32,
                    ScalarType::U64 | ScalarType::S64 | ScalarType::B64 => ManyInt::B64,
                    _ => return self.unsupported(instr, &format!("the type `.{}`", ty.text())),
                };
                Op::Ldgmc { op, ty, order, offset }
            }
        };
        if !self.encodes(&op) {
            return self.unsupported(instr, "this reduction on this target");
        }
        let Width::Exactly(width) = signature(&op).dsts[0].width else {
            return self.malformed("a reduction without a size");
        };
        let whole = self.wide(width, op, &[address, Src::ZERO]);
        if instr.has(Mod::Acquire) {
            self.effect(Op::Cctl { op: CctlOp::Ivall }, &[]);
        }
        let words: Vec<Src> = match width {
            1 => vec![whole],
            _ => (0..width).map(|i| self.part(whole, i)).collect(),
        };
        self.write_elements(dsts, &words, ty)
    }

    fn float_of_devices(
        &mut self,
        instr: &Statement<'a>,
        ty: ManyFloat,
        order: Order,
        offset: i32,
    ) -> Result<Op> {
        let ops = [(Mod::Add, ManyOp::Add), (Mod::Min, ManyOp::Min), (Mod::Max, ManyOp::Max)];
        let Some(op) = instr.take(&ops) else {
            return self.malformed("a reduction without an operation such as `.add`");
        };
        if !instr.has(Mod::AccF32) && !instr.has(Mod::AccF16) {
            return Ok(Op::LdgmcFloat { op, ty, order, offset });
        }
        let wider = [ManyOp::AddF32, ManyOp::AddWide].map(|op| Op::LdgmcFloat { op, ty, order, offset });
        match wider.into_iter().find(|op| self.encodes(op)) {
            Some(op) => Ok(op),
            None => self.unsupported(instr, "this accumulation precision on this target"),
        }
    }
}
