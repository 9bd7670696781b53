//! Replaces products of matrices that a target does not support by products that it supports.
//!
//! The order of the elements along the depth of a product does not matter if it is the same in both factors. So a
//! register may be split into several, each with every second element or every eighth bit.

use super::integer::lut;
use super::{Lowering, Result, Statement};
use crate::ori::ir::Src;
use crate::ori::op::{
    BitOp, BitShape, ByteShape, DoubleShape, HalfShape, NibbleShape, Op, QuarterShape, QuarterType,
};
use crate::ori::signature::{Width, signature};

impl<'a> Lowering<'a> {
    /// The registers of a product of fragments plus a third fragment.
    pub(super) fn multiply_words(
        &mut self,
        instr: &Statement<'a>,
        op: Op,
        [a, b, c]: [&[Src]; 3],
    ) -> Result<Vec<Src>> {
        let tall = matches!(op, Op::Dmma { shape, .. } if shape != DoubleShape::M8n8k4);
        if self.encodes(&op) && (!tall || self.target.tall_double_products) {
            let srcs = [a, b, c].map(|words| if words.len() == 1 { words[0] } else { self.pack(words) });
            let Some(Width::Exactly(width)) = signature(&op).dsts.first().map(|dst| dst.width) else {
                return self.malformed("a product without a result");
            };
            let result = self.wide(width, op, &srcs);
            return Ok(match width {
                1 => vec![result],
                _ => (0..width).map(|i| self.part(result, i)).collect(),
            });
        }
        match op {
            Op::Hmma { shape: HalfShape::M16n8k16, f32, bf16 } => {
                let half = Op::Hmma { shape: HalfShape::M16n8k8, f32, bf16 };
                self.multiply_in_turn(instr, half, [a, b, c], 2)
            }
            Op::Imma { shape: ByteShape::M16n8k16, a_signed, b_signed, sat } => {
                let rows = Op::Imma { shape: ByteShape::M8n8k16, a_signed, b_signed, sat };
                if !self.encodes(&rows) {
                    return self.unsupported(instr, "this shape and type on this target");
                }
                let mut upper = self.multiply_words(instr, rows, [&a[..1], b, &c[..2]])?;
                upper.extend(self.multiply_words(instr, rows, [&a[1..], b, &c[2..]])?);
                Ok(upper)
            }
            Op::Imma { shape: ByteShape::M8n8k16, a_signed, b_signed, sat } => {
                let tall = Op::Imma { shape: ByteShape::M16n8k16, a_signed, b_signed, sat };
                if !self.encodes(&tall) {
                    return self.unsupported(instr, "this shape and type on this target");
                }
                let (a, c) = ([a[0], Src::ZERO], [c[0], c[1], Src::ZERO, Src::ZERO]);
                let mut sums = self.multiply_words(instr, tall, [&a, b, &c])?;
                sums.truncate(2);
                Ok(sums)
            }
            Op::ImmaNibbles { shape, a_signed, b_signed, sat } => {
                self.multiply_nibbles(instr, shape, (a_signed, b_signed), sat, [a, b, c])
            }
            Op::Dmma { shape: DoubleShape::M8n8k4, .. } => {
                self.unsupported(instr, "this shape and type on this target")
            }
            // The registers of the first factor alternate between a row of the upper half of the matrix and a row of
            // the lower half.
            Op::Dmma { round, .. } => {
                let eight = Op::Dmma { shape: DoubleShape::M8n8k4, round };
                let mut sums = [c[..4].to_vec(), c[4..].to_vec()];
                for (a, b) in a.chunks(4).zip(b.chunks(2)) {
                    for (sums, a) in sums.iter_mut().zip(a.chunks(2)) {
                        *sums = self.multiply_words(instr, eight, [a, b, sums])?;
                    }
                }
                Ok(sums.concat())
            }
            Op::Bmma { shape, op } => self.multiply_bits(instr, shape, op, [a, b, c]),
            Op::Qmma { shape, f32, a: of_a, b: of_b } => {
                self.multiply_quarters(instr, shape, f32, (of_a, of_b), [a, b, c])
            }
            _ => self.unsupported(instr, "this shape and type on this target"),
        }
    }

    /// Products of equal parts of the depth, each added to the one before.
    fn multiply_in_turn(
        &mut self,
        instr: &Statement<'a>,
        op: Op,
        [a, b, c]: [&[Src]; 3],
        parts: usize,
    ) -> Result<Vec<Src>> {
        let mut sums = c.to_vec();
        for (a, b) in a.chunks(a.len() / parts).zip(b.chunks(b.len() / parts)) {
            sums = self.multiply_words(instr, op, [a, b, &sums])?;
        }
        Ok(sums)
    }

    /// Products of 4-bit elements: a product of the even elements, as bytes, and one of the odd elements.
    fn multiply_nibbles(
        &mut self,
        instr: &Statement<'a>,
        shape: NibbleShape,
        (a_signed, b_signed): (bool, bool),
        sat: bool,
        [a, b, c]: [&[Src]; 3],
    ) -> Result<Vec<Src>> {
        let shape = match shape {
            NibbleShape::M8n8k32 => ByteShape::M8n8k16,
            NibbleShape::M16n8k32 => ByteShape::M16n8k16,
            NibbleShape::M16n8k64 => ByteShape::M16n8k32,
        };
        let op = Op::Imma { shape, a_signed, b_signed, sat: false };
        self.multiply_by_nibble(c, sat, |this, odd, sums| {
            let a: Vec<Src> = a.iter().map(|word| this.nibbles_as_bytes(*word, odd, a_signed)).collect();
            let b: Vec<Src> = b.iter().map(|word| this.nibbles_as_bytes(*word, odd, b_signed)).collect();
            this.multiply_words(instr, op, [&a, &b, &sums])
        })
    }

    /// The product of the even nibbles, then that of the odd ones. `product` adds to the sums that it is given.
    pub(super) fn multiply_by_nibble(
        &mut self,
        c: &[Src],
        sat: bool,
        mut product: impl FnMut(&mut Self, bool, Vec<Src>) -> Result<Vec<Src>>,
    ) -> Result<Vec<Src>> {
        // These products are far from overflow.
        let mut sums = if sat { vec![Src::ZERO; c.len()] } else { c.to_vec() };
        for odd in [false, true] {
            sums = product(self, odd, sums)?;
        }
        if !sat {
            return Ok(sums);
        }
        Ok(sums
            .iter()
            .zip(c)
            .map(|(product, start)| {
                let sum = self.add(*product, *start);
                self.saturated(*product, *start, sum, false)
            })
            .collect())
    }

    /// Every second nibble of a register as a byte.
    pub(super) fn nibbles_as_bytes(&mut self, word: Src, odd: bool, signed: bool) -> Src {
        let word = if odd { self.shift_right(word, 4, false) } else { word };
        let bytes = self.lop3(lut::A & lut::B, word, Src::imm(0x0f0f_0f0f), Src::ZERO);
        if !signed {
            return bytes;
        }
        // The sign fills the upper half: eight times 0x1e is 0xf0.
        let signs = self.lop3(lut::A & lut::B, word, Src::imm(0x0808_0808), Src::ZERO);
        let upper = self.multiply_add(signs, Src::imm(0x1e), Src::ZERO);
        self.lop3(lut::A | lut::B, bytes, upper, Src::ZERO)
    }

    /// Products of single bits. Bits that differ are ones of one factor and zeros of the other. Products of bytes count
    /// common ones.
    fn multiply_bits(
        &mut self,
        instr: &Statement<'a>,
        shape: BitShape,
        op: BitOp,
        [a, b, c]: [&[Src]; 3],
    ) -> Result<Vec<Src>> {
        if op == BitOp::Xor {
            let both = Op::Bmma { shape, op: BitOp::And };
            let inverse = |this: &mut Self, words: &[Src]| -> Vec<Src> {
                words.iter().map(|word| this.lop3(!lut::A, *word, Src::ZERO, Src::ZERO)).collect()
            };
            let (not_a, not_b) = (inverse(self, a), inverse(self, b));
            let sums = self.multiply_words(instr, both, [a, &not_b, c])?;
            return self.multiply_words(instr, both, [&not_a, b, &sums]);
        }
        let shape = match shape {
            BitShape::M8n8k128 => ByteShape::M8n8k16,
            BitShape::M16n8k128 => ByteShape::M16n8k16,
            BitShape::M16n8k256 => ByteShape::M16n8k32,
        };
        let op = Op::Imma { shape, a_signed: false, b_signed: false, sat: false };
        let mut sums = c.to_vec();
        for bit in 0..8 {
            let plane = |this: &mut Self, words: &[Src]| -> Vec<Src> {
                let mut planes = Vec::new();
                for word in words {
                    let low = if bit == 0 { *word } else { this.shift_right(*word, bit, false) };
                    planes.push(this.lop3(lut::A & lut::B, low, Src::imm(0x0101_0101), Src::ZERO));
                }
                planes
            };
            let (a, b) = (plane(self, a), plane(self, b));
            sums = self.multiply_words(instr, op, [&a, &b, &sums])?;
        }
        Ok(sums)
    }

    /// Products of 8-bit floats, as halves: first the first two of each register, then the other two.
    fn multiply_quarters(
        &mut self,
        instr: &Statement<'a>,
        shape: QuarterShape,
        f32: bool,
        (of_a, of_b): (QuarterType, QuarterType),
        [a, b, c]: [&[Src]; 3],
    ) -> Result<Vec<Src>> {
        let parts = match shape {
            QuarterShape::M16n8k16 => 1,
            QuarterShape::M16n8k32 => 2,
            QuarterShape::M16n8k64 => return self.unsupported(instr, "this shape and type on this target"),
        };
        // Narrower floats are in the middle of their byte.
        let bytes = |of: QuarterType| matches!(of, QuarterType::E4m3 | QuarterType::E5m2);
        if !bytes(of_a) || !bytes(of_b) {
            return self.unsupported(instr, "floating-point types of less than a byte on this target");
        }
        let product = Op::Hmma { shape: HalfShape::M16n8k16, f32, bf16: false };
        if !self.encodes(&product) || ![of_a, of_b].iter().all(|from| self.encodes(&unpack(*from))) {
            return self.unsupported(instr, "this shape and type on this target");
        }
        let mut sums = c.to_vec();
        for (a, b) in a.chunks(a.len() / parts).zip(b.chunks(b.len() / parts)) {
            let mut spread = |words: &[Src], from| -> Vec<Src> {
                let low = words.iter().map(|word| self.reg(unpack(from), &[*word])).collect::<Vec<Src>>();
                let high = words.iter().map(|word| {
                    let upper = self.shift_right(*word, 16, false);
                    self.reg(unpack(from), &[upper])
                });
                low.into_iter().chain(high.collect::<Vec<Src>>()).collect()
            };
            let (a, b) = (spread(a, of_a), spread(b, of_b));
            sums = self.multiply_words(instr, product, [&a, &b, &sums])?;
        }
        Ok(sums)
    }
}

/// The two floats in the low half of a register, as halves.
fn unpack(from: QuarterType) -> Op {
    Op::F2fpUnpack { relu: false, from }
}
