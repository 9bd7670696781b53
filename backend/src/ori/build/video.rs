//! Video instructions: scalar ones on parts of registers, and SIMD ones on two or four lanes.
//!
//! Each lane is computed in a separate register, whose 32 bits can hold every sum and difference of lanes. Scalar
//! operands may be words of different signedness, so they are computed in 64 bits; later phases remove the unused
//! parts.

use super::{Lowering, Result, Statement};
use crate::input::{Part, Selector};
use crate::ori::ir::Src;
use crate::ori::op::{ICmp, Op};
use ptx_isa::{FormId, Mod, ScalarType};

/// The bytes of a register in the numbering of `PRMT`: its own bytes, those of the other register, and copies of the
/// sign.
const OWN_BYTES: u32 = 0x3210;
const OTHER: u32 = 4;
const SIGN: u32 = 8;

/// The function of a lane of both sources.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Function {
    Add,
    Sub,
    Average,
    Difference,
    Min,
    Max,
    Set(ICmp),
}

impl<'a> Lowering<'a> {
    /// The part of its register that an operand selects.
    fn video_part(&self, operand: u8) -> Option<Part> {
        let of_statement = self.func.parts.partition_point(|part| part.src < self.src);
        let parts = self.func.parts[of_statement..].iter().take_while(|part| part.src == self.src);
        parts.copied().find(|part| part.operand == operand)
    }

    fn selector(&self, operand: u8) -> Option<Selector> {
        self.video_part(operand)?.selector
    }

    fn video_function(&self, instr: &Statement<'a>) -> Result<Function> {
        use FormId as F;
        let comparisons = [
            (Mod::Eq, ICmp::Eq),
            (Mod::Ne, ICmp::Ne),
            (Mod::Lt, ICmp::Lt),
            (Mod::Le, ICmp::Le),
            (Mod::Gt, ICmp::Gt),
            (Mod::Ge, ICmp::Ge),
        ];
        Ok(match instr.form() {
            F::Vadd | F::Vadd2 | F::Vadd4 => Function::Add,
            F::Vsub | F::Vsub2 | F::Vsub4 => Function::Sub,
            F::Vavrg2 | F::Vavrg4 => Function::Average,
            F::Vabsdiff | F::Vabsdiff2 | F::Vabsdiff4 => Function::Difference,
            F::Vmin | F::Vmin2 | F::Vmin4 => Function::Min,
            F::Vmax | F::Vmax2 | F::Vmax4 => Function::Max,
            _ => match instr.take(&comparisons) {
                Some(comparison) => Function::Set(comparison),
                None => return self.malformed("a comparison without its name"),
            },
        })
    }

    /// The type of the result, and whether the sources are signed. The result of a comparison has the signedness of its
    /// first source.
    fn video_types(&self, instr: &Statement<'a>) -> Result<(ScalarType, [bool; 2])> {
        let first = usize::from(!matches!(instr.form(), FormId::Vset | FormId::Vset2 | FormId::Vset4));
        let signs = [self.type_of(instr, first)?.is_signed(), self.type_of(instr, first + 1)?.is_signed()];
        Ok((self.type_of(instr, 0)?, signs))
    }

    /// `vadd2`, `vadd4` and similar instructions.
    pub(super) fn compute_lanes(&mut self, instr: &Statement<'a>) -> Result<()> {
        let usual = match instr.form() {
            FormId::Vadd2
            | FormId::Vsub2
            | FormId::Vavrg2
            | FormId::Vabsdiff2
            | FormId::Vmin2
            | FormId::Vmax2
            | FormId::Vset2 => Selector::PAIRS,
            _ => Selector::QUARTETS,
        };
        let function = self.video_function(instr)?;
        let (to, signs) = self.video_types(instr)?;
        let (sat, adds) = (instr.has(Mod::Sat), instr.has(Mod::Add));
        let bits = usual[0].bits;
        let picks = [self.selector(1).unwrap_or(usual[0]), self.selector(2).unwrap_or(usual[1])];
        let written = self.selector(0).unwrap_or(usual[0]);
        let word = ScalarType::B32;
        let (a, b) = (self.source(instr, 1, word)?, self.source(instr, 2, word)?);
        let mut result = self.source(instr, 3, word)?;
        let count = usual[0].count;
        for place in 0..count {
            if !written.lanes[..usize::from(written.count)].contains(&place) {
                continue;
            }
            let lanes = [0, 1].map(|i| {
                let lane = picks[i].lanes[usize::from(count - 1 - place)];
                let register = if lane < count { a } else { b };
                self.lane(register, lane % count, bits, signs[i])
            });
            let value = self.of_lanes(function, lanes[0], lanes[1]);
            let value = if sat { self.clamp_lane(value, bits, to.is_signed()) } else { value };
            result = if adds { self.add(result, value) } else { self.put_lane(result, value, place, bits) };
        }
        self.result(instr, result)
    }

    /// A lane of a register, extended.
    fn lane(&mut self, register: Src, index: u8, bits: u8, signed: bool) -> Src {
        let bytes = u32::from(bits / 8);
        let first = u32::from(index) * bytes;
        let fill = if signed { SIGN | (first + bytes - 1) } else { OTHER };
        let own = (0..bytes).map(|i| (first + i) << (4 * i));
        let order = own.chain((bytes..4).map(|i| fill << (4 * i))).sum();
        let register = self.in_register(register);
        self.reg(Op::Prmt, &[register, Src::imm(order), Src::ZERO])
    }

    /// A register with one lane replaced by the low bits of another.
    fn put_lane(&mut self, register: Src, value: Src, index: u8, bits: u8) -> Src {
        let bytes = u32::from(bits / 8);
        let first = u32::from(index) * bytes;
        let mut order = OWN_BYTES;
        for i in 0..bytes {
            let place = 4 * (first + i);
            order = order & !(0xf << place) | (OTHER + i) << place;
        }
        let (register, value) = (self.in_register(register), self.in_register(value));
        self.reg(Op::Prmt, &[register, Src::imm(order), value])
    }

    fn of_lanes(&mut self, function: Function, x: Src, y: Src) -> Src {
        match function {
            Function::Add => self.add(x, y),
            Function::Sub => self.subtract(x, y),
            Function::Average => {
                // An average is rounded up, or toward zero if it is negative.
                let sum = self.add(x, y);
                let more = self.add(sum, Src::imm(1));
                let positive = self.compare(ICmp::Ge, true, sum, Src::ZERO);
                let rounded = self.select(positive, more, sum, 1);
                self.shift_right(rounded, 1, true)
            }
            Function::Difference => {
                let difference = self.subtract(x, y);
                self.reg(Op::Iabs, &[difference])
            }
            Function::Min => self.minimum(true, true, x, y),
            Function::Max => self.minimum(true, false, x, y),
            Function::Set(comparison) => {
                let holds = self.compare(comparison, true, x, y);
                self.select(holds, Src::imm(1), Src::ZERO, 1)
            }
        }
    }

    fn clamp_lane(&mut self, value: Src, bits: u8, signed: bool) -> Src {
        let (least, most) = match signed {
            true => (-1i32 << (bits - 1), (1i32 << (bits - 1)) - 1),
            false => (0, (1i32 << bits) - 1),
        };
        let value = self.minimum(true, false, value, Src::imm(least as u32));
        self.minimum(true, true, value, Src::imm(most as u32))
    }

    /// `vadd`, `vset` and similar instructions, `vshl` and `vshr`.
    pub(super) fn compute_part(&mut self, instr: &Statement<'a>) -> Result<()> {
        let (to, signs) = self.video_types(instr)?;
        let word = ScalarType::B32;
        let (a, b) = (self.source(instr, 1, word)?, self.source(instr, 2, word)?);
        let (x, y) = (self.operand_part(1, a, signs[0]), self.operand_part(2, b, signs[1]));
        let sat = instr.has(Mod::Sat);
        let value = match instr.form() {
            FormId::Vshl | FormId::Vshr => {
                let count = match instr.any_of(&[Mod::Wrap, Mod::Clamp]) {
                    Some(Mod::Wrap) => self.lop3(
                        super::integer::lut::A & super::integer::lut::B,
                        y[0],
                        Src::imm(31),
                        Src::ZERO,
                    ),
                    _ => self.minimum(false, true, y[0], Src::imm(32)),
                };
                if instr.form() == FormId::Vshl {
                    self.shift_left_pair(x, count)
                } else {
                    self.shift_right_pair(x, count, true)
                }
            }
            _ => {
                let function = self.video_function(instr)?;
                self.of_words(function, x, y)
            }
        };
        let place = self.selector(0);
        let bits = place.map_or(32, |place| place.bits);
        let value = if sat { self.clamp_wide(value, bits, to.is_signed()) } else { value };
        // The third operand is present even if it is not used.
        let third = match instr.operand_count() {
            4 => self.source(instr, 3, word)?,
            _ => Src::ZERO,
        };
        let second = instr.any_of(&[Mod::Add, Mod::Min, Mod::Max]);
        let result = match (second, place) {
            (Some(Mod::Add), _) => self.add(value[0], third),
            (Some(second), _) => self.minimum(to.is_signed(), second == Mod::Min, value[0], third),
            (None, Some(place)) => self.put_lane(third, value[0], place.lanes[0], place.bits),
            (None, None) => value[0],
        };
        self.result(instr, result)
    }

    /// The part of its register that an operand selects, extended to 64 bits.
    fn operand_part(&mut self, operand: u8, register: Src, signed: bool) -> [Src; 2] {
        let low = match self.selector(operand) {
            Some(part) => self.lane(register, part.lanes[0], part.bits, signed),
            None => register,
        };
        let high = if signed { self.shift_right(low, 31, true) } else { Src::ZERO };
        [low, high]
    }

    fn of_words(&mut self, function: Function, x: [Src; 2], y: [Src; 2]) -> [Src; 2] {
        match function {
            Function::Add | Function::Average => self.add_pair(x, y),
            Function::Sub => self.subtract_pair(x, y),
            Function::Difference => {
                let less = self.compare_pair(ICmp::Lt, true, x, y);
                let (large, small) = (self.select_pair(less, y, x), self.select_pair(less, x, y));
                self.subtract_pair(large, small)
            }
            Function::Min | Function::Max => {
                let comparison = if function == Function::Min { ICmp::Lt } else { ICmp::Gt };
                let first = self.compare_pair(comparison, true, x, y);
                self.select_pair(first, x, y)
            }
            Function::Set(comparison) => {
                let holds = self.compare_pair(comparison, true, x, y);
                [self.select(holds, Src::imm(1), Src::ZERO, 1), Src::ZERO]
            }
        }
    }

    fn clamp_wide(&mut self, value: [Src; 2], bits: u8, signed: bool) -> [Src; 2] {
        let (least, most) = match signed {
            true => (-1i64 << (bits - 1), (1i64 << (bits - 1)) - 1),
            false => (0, (1i64 << bits) - 1),
        };
        let mut value = value;
        for (outside, bound) in [(ICmp::Lt, least), (ICmp::Gt, most)] {
            let bound = super::operand::halves(bound as u64);
            let outside = self.compare_pair(outside, true, value, bound);
            value = self.select_pair(outside, bound, value);
        }
        value
    }

    /// `vmad`: the product plus an addend, shifted right and saturated. A negation is a complement plus one; `.po` only
    /// adds one.
    pub(super) fn multiply_parts(&mut self, instr: &Statement<'a>) -> Result<()> {
        let (_, signs) = self.video_types(instr)?;
        let word = ScalarType::B32;
        let (a, b) = (self.source(instr, 1, word)?, self.source(instr, 2, word)?);
        let (x, y) = (self.operand_part(1, a, signs[0])[0], self.operand_part(2, b, signs[1])[0]);
        let third = self.source(instr, 3, word)?;
        let negated = |operand| self.video_part(operand).is_some_and(|part| part.negated);
        let (minus, less) = (negated(1) != negated(2), negated(3));
        let signed = signs[0] || signs[1] || minus || less;
        let (one_more, sat) = (instr.has(Mod::Po), instr.has(Mod::Sat));
        let shift = instr.take(&[(Mod::Shr7, 7), (Mod::Shr15, 15)]);
        let words = !signs[0] && !signs[1] && self.selector(1).is_none() && self.selector(2).is_none();
        if words && (minus || less) && (sat || shift.is_some()) {
            return self.unsupported(instr, "a negated unsigned 32-bit product, which needs 65 bits");
        }
        let product = self.product_of_parts([x, y], signs);
        let high = if signed { self.shift_right(third, 31, true) } else { Src::ZERO };
        let third = [third, high];
        let mut sum = match (one_more, minus, less) {
            (false, true, _) => self.subtract_pair(third, product),
            (false, false, true) => self.subtract_pair(product, third),
            _ => self.add_pair(product, third),
        };
        if one_more {
            sum = self.add_pair(sum, [Src::imm(1), Src::ZERO]);
        }
        if let Some(shift) = shift {
            sum = self.shift_right_pair(sum, Src::imm(shift), signed);
        }
        if sat && signed {
            sum = self.clamp_wide(sum, 32, true);
        } else if sat {
            let beyond = self.compare(ICmp::Ne, false, sum[1], Src::ZERO);
            sum[0] = self.select(beyond, Src::imm(u32::MAX), sum[0], 1);
        }
        self.result(instr, sum[0])
    }

    /// The 64-bit product of words. One may be signed and the other unsigned.
    fn product_of_parts(&mut self, [x, y]: [Src; 2], signs: [bool; 2]) -> [Src; 2] {
        let product = self.multiply_wide(signs[0] && signs[1], x, y, Src::ZERO);
        let [low, high] = self.pair(product);
        if signs[0] == signs[1] {
            return [low, high];
        }
        // A negative word, read as unsigned, is too large by 2^32, so the product is too large by 2^32 times the other
        // word.
        let (signed, other) = if signs[0] { (x, y) } else { (y, x) };
        let sign = self.shift_right(signed, 31, true);
        let too_many = self.lop3(super::integer::lut::A & super::integer::lut::B, sign, other, Src::ZERO);
        [low, self.subtract(high, too_many)]
    }
}
