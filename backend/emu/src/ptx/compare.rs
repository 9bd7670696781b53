//! Comparisons: `set` and `setp` of all types.

use super::arithmetic::{operand, split, ty, unsupported};
use super::decode::extend;
use super::float::format;
use super::{Block, Step, WARP, each};
use crate::float::{F32, Format};
use ptx_backend::input::Instr;
use ptx_isa::{Mod, Opcode, ScalarType, TypeKind};
use std::cmp::Ordering;

/// The position of the predicate with which `and`, `or` and `xor` in the name combine the result.
const COMBINED: usize = 3;

fn combines(op: &Opcode) -> bool {
    op.has(Mod::And) || op.has(Mod::Or) || op.has(Mod::Xor)
}

fn boolean(op: &Opcode, holds: bool, c: bool) -> bool {
    match () {
        () if op.has(Mod::And) => holds & c,
        () if op.has(Mod::Or) => holds | c,
        () if op.has(Mod::Xor) => holds ^ c,
        () => holds,
    }
}

/// The element type of a packed type with two elements.
const fn half(ty: ScalarType) -> Option<ScalarType> {
    match ty {
        ScalarType::F16x2 => Some(ScalarType::F16),
        ScalarType::Bf16x2 => Some(ScalarType::Bf16),
        _ => None,
    }
}

impl Block<'_> {
    /// The result of a comparison in each lane, and in the upper half of packed operands; and the predicate that is
    /// combined with it.
    fn outcomes(
        &self,
        w: usize,
        mask: u32,
        instr: &Instr,
        t: ScalarType,
    ) -> Step<[(bool, bool, bool); WARP]> {
        let a = self.gather(w, mask, operand(instr, 1)?, t)?;
        let b = self.gather(w, mask, operand(instr, 2)?, t)?;
        let c = match combines(&instr.opcode) {
            true => self.gather(w, mask, operand(instr, COMBINED)?, ScalarType::Pred)?,
            false => [0; WARP],
        };
        let mut outcomes = [(false, false, false); WARP];
        for lane in each(mask) {
            let (a, b) = (a[lane], b[lane]);
            let (low, high) = match half(t) {
                Some(half) => {
                    (compares(instr, half, a & 0xffff, b & 0xffff)?, compares(instr, half, a >> 16, b >> 16)?)
                }
                None => (compares(instr, t, extend(a, t), extend(b, t))?, false),
            };
            outcomes[lane] = (low, high, c[lane] != 0);
        }
        Ok(outcomes)
    }

    /// Writes one predicate or two: for packed operands those of the two halves, otherwise the result and its
    /// complement.
    pub(super) fn set_predicate(&mut self, w: usize, mask: u32, instr: &Instr) -> Step<()> {
        let op = &instr.opcode;
        let t = ty(op, 0)?;
        let outcomes = self.outcomes(w, mask, instr, t)?;
        let (p, q) = split(operand(instr, 0)?);
        for lane in each(mask) {
            let (low, high, c) = outcomes[lane];
            let other = if half(t).is_some() { high } else { !low };
            self.put(w, lane, p, ScalarType::Pred, boolean(op, low, c).into())?;
            if let Some(q) = q {
                self.put(w, lane, q, ScalarType::Pred, boolean(op, other, c).into())?;
            }
        }
        Ok(())
    }

    /// Writes 1.0 or an integer of all ones for true, in each half of a packed comparison.
    pub(super) fn set(&mut self, w: usize, mask: u32, instr: &Instr) -> Step<()> {
        let op = &instr.opcode;
        let (d, t) = (ty(op, 0)?, ty(op, 1)?);
        let outcomes = self.outcomes(w, mask, instr, t)?;
        let one = |holds: bool| match format(d) {
            _ if !holds => 0,
            Some(format) => format.one(),
            None => u64::MAX,
        };
        for lane in each(mask) {
            let (low, high, c) = outcomes[lane];
            let (low, high) = (one(boolean(op, low, c)), one(boolean(op, high, c)));
            let value = if half(t).is_some() { low & 0xffff | high << 16 } else { low };
            self.put(w, lane, operand(instr, 0)?, d, value & super::decode::ones(d.bits()))?;
        }
        Ok(())
    }
}

/// Whether the comparison that the instruction names is true.
fn compares(instr: &Instr, t: ScalarType, a: u64, b: u64) -> Step<bool> {
    let op = &instr.opcode;
    let order = match format(t) {
        Some(format) => {
            // Double-precision numbers are never flushed.
            let flushes = op.has(Mod::Ftz) && (format == F32 || t.bits() == 16);
            let flush = |format: Format, x: u64| if flushes { format.flush(x) } else { x };
            format.compare(flush(format, a), flush(format, b))
        }
        None if t.kind() == TypeKind::Float || t.kind() == TypeKind::Packed => return unsupported(instr),
        None if t.is_signed() => Some((a as i64).cmp(&(b as i64))),
        None => Some(a.cmp(&b)),
    };
    let (lt, eq, gt) =
        (order == Some(Ordering::Less), order == Some(Ordering::Equal), order == Some(Ordering::Greater));
    let open = order.is_none();
    for comparison in op.mods() {
        return Ok(match comparison {
            Mod::Eq => eq,
            Mod::Ne => lt || gt,
            Mod::Lt | Mod::Lo => lt,
            Mod::Le | Mod::Ls => lt || eq,
            Mod::Gt | Mod::Hi => gt,
            Mod::Ge | Mod::Hs => gt || eq,
            Mod::Equ => eq || open,
            Mod::Neu => !eq,
            Mod::Ltu => lt || open,
            Mod::Leu => !gt,
            Mod::Gtu => gt || open,
            Mod::Geu => !lt,
            Mod::Num => !open,
            Mod::IsNan => open,
            _ => continue,
        });
    }
    unsupported(instr)
}
