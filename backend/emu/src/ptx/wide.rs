//! 128-bit values, which registers hold in two words.

use super::decode::extend;
use super::{Block, Step, WARP, each};
use crate::launch::FaultKind;
use ptx_backend::input::Operand;
use ptx_isa::ScalarType;

impl Block<'_> {
    /// As [`gather`](Block::gather), for types of at most 128 bits.
    pub(super) fn gather_wide(
        &self,
        w: usize,
        mask: u32,
        operand: &Operand,
        ty: ScalarType,
    ) -> Step<[u128; WARP]> {
        let mut values = self.gather(w, mask, operand, ty)?.map(u128::from);
        match operand {
            Operand::Reg(register) if ty.bits() == 128 => {
                let upper = self.warps[w].upper.get(&(register.0 as usize)).unwrap_or(&[0; WARP]);
                each(mask).for_each(|lane| values[lane] |= u128::from(upper[lane]) << 64);
            }
            Operand::Int(value) if ty.bits() == 128 => {
                each(mask).for_each(|lane| values[lane] = *value as u128)
            }
            _ => {}
        }
        Ok(values)
    }

    /// As [`put`](Block::put), for types of at most 128 bits.
    pub(super) fn put_wide(
        &mut self,
        w: usize,
        lane: usize,
        operand: &Operand,
        ty: ScalarType,
        value: u128,
    ) -> Step<()> {
        if let Operand::Reg(register) = operand {
            let wide = self.program.bits(*register) == 128;
            if ty.bits() == 128 && !wide {
                return Err(FaultKind::Malformed("128 bits for a smaller register".into()));
            }
            if wide {
                let high = match ty.bits() {
                    128 => (value >> 64) as u64,
                    _ if ty.is_signed() => (extend(value as u64, ty) as i64 >> 63) as u64,
                    _ => 0,
                };
                let upper = self.warps[w].upper.entry(register.0 as usize).or_insert([0; WARP]);
                upper[lane] = high;
            }
        }
        self.put(w, lane, operand, ty, value as u64)
    }
}

/// A little-endian number of at most 16 bytes.
pub(super) fn wide_number(bytes: &[u8]) -> u128 {
    bytes.iter().rev().fold(0, |value, &byte| value << 8 | u128::from(byte))
}
