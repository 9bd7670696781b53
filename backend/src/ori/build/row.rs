//! Instructions that become one operation: the operands of its source slots.

use super::float::{magnitude, negated};
use super::operand::known;
use super::{Lowering, Result, Statement};
use crate::ori::ir::{Src, SrcKind, SrcMods};
use crate::ori::op::Op;
use crate::ori::signature::{Width, facts, signature};
use ptx_isa::{FormId, Mod, ScalarType, TypeKind};
use smallvec::SmallVec;

/// The contents of a source slot of the operation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Slot {
    /// The operand of the instruction at this position.
    In(usize),
    /// The operand, negated as a float.
    Minus(usize),
    /// The magnitude of the operand as a float.
    Magnitude(usize),
    Is(Src),
}

use Slot::{In, Is};

/// Negative zero. Adding it to a float gives that float, even if it is a zero.
pub(super) const MINUS_ZERO: Slot =
    Is(Src { kind: SrcKind::Zero, mods: SrcMods { neg: true, ..SrcMods::NONE } });
pub(super) const A: &[Slot] = &[In(1)];
pub(super) const AB: &[Slot] = &[In(1), In(2)];
pub(super) const ABC: &[Slot] = &[In(1), In(2), In(3)];
/// The sources of an operation that selects the smaller operand if a predicate is true, otherwise the larger.
pub(super) const SMALLER: &[Slot] = &[In(1), In(2), Is(Src::TRUE)];
pub(super) const LARGER: &[Slot] = &[In(1), In(2), Is(Src::FALSE)];

impl<'a> Lowering<'a> {
    /// An instruction that becomes one operation on operands of its first type.
    pub(super) fn one(&mut self, instr: &Statement<'a>, op: Op, slots: &[Slot]) -> Result<()> {
        self.one_of(instr, instr.ty(0).unwrap_or(ScalarType::B32), op, slots)
    }

    /// An instruction that becomes one operation on operands of a given type.
    pub(super) fn one_of(
        &mut self,
        instr: &Statement<'a>,
        ty: ScalarType,
        op: Op,
        slots: &[Slot],
    ) -> Result<()> {
        let mut srcs = SmallVec::<[Src; 4]>::new();
        for slot in slots {
            let src = self.slot(instr, ty, *slot)?;
            srcs.push(src);
        }
        if let Some((a, b)) = facts(&op).commutes
            && let (In(_), In(_)) = (slots[a], slots[b])
            && known(srcs[a]).is_some()
        {
            srcs.swap(a, b);
        }
        match signature(&op).dsts.first().map(|dst| dst.width) {
            Some(Width::Exactly(width)) => {
                let result = self.wide(width, op, &srcs);
                self.note_unrounded(instr, &[result]);
                self.result(instr, result)
            }
            Some(_) => self.malformed("an operation whose result can have any width"),
            None => {
                self.effect(op, &srcs);
                Ok(())
            }
        }
    }

    /// Records results that may be fused with a sum or product, if the statement allows it.
    pub(super) fn note_unrounded(&mut self, instr: &Statement<'a>, results: &[Src]) {
        if may_be_fused(instr) {
            self.out.facts.unrounded.extend(results.iter().filter_map(Src::value));
        }
    }

    fn slot(&mut self, instr: &Statement<'a>, ty: ScalarType, slot: Slot) -> Result<Src> {
        match slot {
            In(i) => self.typed_source(instr, i, ty),
            Slot::Minus(i) => {
                let src = self.typed_source(instr, i, ty)?;
                Ok(match known(src) {
                    Some(bits) if is_half(ty) => Src::imm(bits ^ 0x8000_8000),
                    _ => negated(src),
                })
            }
            Slot::Magnitude(i) => Ok(magnitude(self.typed_source(instr, i, ty)?)),
            Is(src) => Ok(src),
        }
    }

    /// An operand in the form that operations on its type take.
    fn typed_source(&mut self, instr: &Statement<'a>, i: usize, ty: ScalarType) -> Result<Src> {
        match ty {
            ScalarType::F64 => self.source_double(instr, i),
            _ if is_half(ty) => self.source_half(instr, i),
            _ => self.source_extended(instr, i, ty),
        }
    }
}

/// Whether sums and products of the result may be fused with it: it is a sum or product of floats without a rounding
/// modifier, or an approximate quotient, which is the product with a reciprocal.
fn may_be_fused(instr: &Statement<'_>) -> bool {
    use FormId as F;
    let contractible = [
        F::AddF32,
        F::SubF32,
        F::MulF32,
        F::AddF32x2,
        F::SubF32x2,
        F::MulF32x2,
        F::AddF64,
        F::SubF64,
        F::MulF64,
        F::AddHalf,
        F::SubHalf,
        F::MulHalf,
        F::DivFull,
    ];
    let is_approximate = matches!(instr.form(), F::DivF32 | F::RcpF32) && instr.has(Mod::Approx);
    let rounds = |m| matches!(m, Mod::Rn | Mod::Rz | Mod::Rm | Mod::Rp);
    is_approximate || contractible.contains(&instr.form()) && !instr.input().opcode.mods().any(rounds)
}

/// One 16-bit float or two.
fn is_half(ty: ScalarType) -> bool {
    match ty.kind() {
        TypeKind::Float => ty.bits() == 16,
        TypeKind::Packed => true,
        _ => false,
    }
}
