//! `fns`: the position of the n-th set bit, counted upwards or downwards from a position.

use super::{Lowering, Result, Statement};
use crate::ori::ir::Src;
use crate::ori::op::{ICmp, Op, lut};
use ptx_isa::ScalarType;

impl<'a> Lowering<'a> {
    pub(super) fn nth_bit(&mut self, instr: &Statement<'a>) -> Result<()> {
        let ty = ScalarType::B32;
        let mask = self.source(instr, 1, ty)?;
        let (base, offset) = (self.source(instr, 2, ty)?, self.source(instr, 3, ty)?);
        let (mask, base, offset) = (self.in_register(mask), self.in_register(base), self.in_register(offset));
        // Searching downwards is searching upwards in the reversed word.
        let downwards = self.compare(ICmp::Lt, true, offset, Src::ZERO);
        let mirrored = self.reg(Op::Brev, &[mask]);
        let mask = self.select(downwards, mirrored, mask, 1);
        let place = self.subtract(Src::imm(31), base);
        let first = self.select(downwards, place, base, 1);
        // For n = 0, the result is the base position if its bit is set.
        let zero = self.compare(ICmp::Eq, true, offset, Src::ZERO);
        let count = self.reg(Op::Iabs, &[offset]);
        let count = self.select(zero, Src::imm(1), count, 1);
        let one = self.in_register(Src::imm(1));
        let here = self.shift_left(one, first);
        let all = self.in_register(Src::imm(!0));
        let onwards = self.shift_left(all, first);
        let window = self.select(zero, here, onwards, 1);
        let bits = self.lop3(lut::A & lut::B, mask, window, Src::ZERO);
        let total = self.reg(Op::Popc, &[bits]);
        let missing = self.compare(ICmp::Lt, false, total, count);
        // Binary search by the population count of halves.
        let (mut rest, mut count, mut place) = (bits, count, Src::ZERO);
        for half in [16, 8, 4, 2, 1] {
            let low = self.lop3(lut::A & lut::B, rest, Src::imm((1 << half) - 1), Src::ZERO);
            let below = self.reg(Op::Popc, &[low]);
            let above = self.compare(ICmp::Lt, false, below, count);
            let upper = self.shift_right(rest, half, false);
            rest = self.select(above, upper, rest, 1);
            let left = self.subtract(count, below);
            count = self.select(above, left, count, 1);
            let step = self.select(above, Src::imm(half), Src::ZERO, 1);
            place = self.add(place, step);
        }
        let mirrored = self.subtract(Src::imm(31), place);
        let place = self.select(downwards, mirrored, place, 1);
        let result = self.select(missing, Src::imm(!0), place, 1);
        self.result(instr, result)
    }
}
