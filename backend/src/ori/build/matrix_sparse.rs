//! `mma.sp`: A stores two of each group of four elements of a row, and metadata gives their positions.
//!
//! A register of A holds two 16-bit elements, of one group, or four 8-bit elements, of two groups. A pair of 4-bit
//! elements counts as one 8-bit element. The metadata of a group is four bits: the positions of its first and its
//! second element. It is in registers of the threads that the selector chooses.

use super::integer::lut;
use super::matrix::quarter;
use super::memory::elements;
use super::special::sr;
use super::{Lowering, Result, Statement};
use crate::ori::ir::Src;
use crate::ori::op::{ByteShape, HalfShape, Op, QuarterShape, SparseNibbleShape};
use crate::ori::signature::{Width, signature};
use ptx_isa::{FormId, Mod, ScalarType};

/// A mask of lane numbers. It gives the first thread of the group of four.
const FOUR: u32 = 0x1c;
/// The `PRMT` selector that keeps the order of the bytes.
const IN_ORDER: u32 = 0x3210;

/// The registers of a product's operands.
struct Factors {
    a: Vec<Src>,
    b: Vec<Src>,
    c: Vec<Src>,
    metadata: Src,
    /// Selects the threads of each group of four that supply the metadata.
    selector: u8,
}

impl<'a> Lowering<'a> {
    pub(super) fn multiply_sparse(&mut self, instr: &Statement<'a>) -> Result<()> {
        instr.ignore(&[Mod::Row, Mod::Col]);
        let ordered = instr.any_of(&[Mod::Sp, Mod::SpOrderedMetadata]) == Some(Mod::SpOrderedMetadata);
        let selector = self.immediate(instr, 5)? as u8;
        let Some(op) = self.sparse_operation(instr, selector)? else {
            return self.unsupported(instr, "this shape and type");
        };
        let mut words = Vec::new();
        for i in 1..=3 {
            words.push(self.fragment_words(elements(instr, self.operand(instr, i)?), 32)?);
        }
        let metadata = self.source(instr, 4, ScalarType::B32)?;
        let metadata = self.in_register(metadata);
        let [a, b, c] = words.try_into().unwrap_or_default();
        let mut factors = Factors { a, b, c, metadata, selector };
        self.join_all();
        // `.tf32` keeps one of every two elements, so the metadata has only one possible order.
        if !ordered && self.target.ordered_metadata && !matches!(op, Op::HmmaSpTf32 { .. }) {
            self.put_in_order(&op, &mut factors);
        }
        let sums = self.multiply_sparse_words(instr, op, &factors)?;
        self.write_product(instr, &sums, false)
    }

    fn sparse_operation(&self, instr: &Statement<'a>, selector: u8) -> Result<Option<Op>> {
        let (to, a, b) = (self.type_of(instr, 0)?, self.type_of(instr, 1)?, self.type_of(instr, 2)?);
        let f32 = to == ScalarType::F32;
        if self.type_of(instr, 3)? != to {
            return self.unsupported(instr, "an accumulator whose type differs from the type of the result");
        }
        let (a_signed, b_signed) = (a.is_signed(), b.is_signed());
        let half = |this: &Statement<'_>| {
            this.take(&[
                (Mod::M16n8k8, HalfShape::M16n8k8),
                (Mod::M16n8k16, HalfShape::M16n8k16),
                (Mod::M16n8k32, HalfShape::M16n8k32),
            ])
        };
        Ok(match instr.form() {
            FormId::MmaSpF16 | FormId::MmaSpBf16 => {
                half(instr).map(|shape| Op::HmmaSp { shape, f32, bf16: a == ScalarType::Bf16, selector })
            }
            FormId::MmaSpTf32 => half(instr).map(|shape| Op::HmmaSpTf32 { shape, f32, selector }),
            FormId::MmaSpInt8 => {
                let sat = instr.has(Mod::Satfinite);
                instr
                    .take(&[(Mod::M16n8k32, ByteShape::M16n8k32), (Mod::M16n8k64, ByteShape::M16n8k64)])
                    .map(|shape| Op::ImmaSp { shape, a_signed, b_signed, sat, selector })
            }
            FormId::MmaSpInt4 => {
                let sat = instr.has(Mod::Satfinite);
                let shapes = [
                    (Mod::M16n8k64, SparseNibbleShape::M16n8k64),
                    (Mod::M16n8k128, SparseNibbleShape::M16n8k128),
                ];
                instr.take(&shapes).map(|shape| Op::ImmaSpNibbles {
                    shape,
                    a_signed,
                    b_signed,
                    sat,
                    selector,
                })
            }
            FormId::MmaSpFp8 | FormId::MmaSpKind => {
                instr.ignore(&[Mod::KindF8f6f4, Mod::KindMxf8f6f4, Mod::KindMxf4, Mod::KindMxf4nvf4]);
                let (Some(a), Some(b)) = (quarter(a), quarter(b)) else { return Ok(None) };
                instr.take(&[(Mod::M16n8k64, QuarterShape::M16n8k64)]).map(|shape| Op::QmmaSp {
                    shape,
                    f32,
                    a,
                    b,
                    selector,
                })
            }
            _ => None,
        })
    }

    fn multiply_sparse_words(
        &mut self,
        instr: &Statement<'a>,
        op: Op,
        factors: &Factors,
    ) -> Result<Vec<Src>> {
        let Factors { a, b, c, metadata, selector } = factors;
        if self.encodes(&op) {
            let Some(Width::Exactly(width)) = signature(&op).dsts.first().map(|dst| dst.width) else {
                return self.malformed("a product without a result");
            };
            let [a, b, c] = [a, b, c].map(|words| self.pack(words));
            let result = self.wide(width, op, &[a, b, c, *metadata]);
            return Ok((0..width).map(|i| self.part(result, i)).collect());
        }
        match op {
            Op::ImmaSpNibbles { shape, a_signed, b_signed, sat, .. } => {
                let shape = match shape {
                    SparseNibbleShape::M16n8k64 => ByteShape::M16n8k32,
                    SparseNibbleShape::M16n8k128 => ByteShape::M16n8k64,
                };
                let op = Op::ImmaSp { shape, a_signed, b_signed, sat: false, selector: *selector };
                self.multiply_by_nibble(c, sat, |this, odd, sums| {
                    let bytes = |this: &mut Self, words: &[Src], signed| {
                        words
                            .iter()
                            .map(|word| this.nibbles_as_bytes(*word, odd, signed))
                            .collect::<Vec<Src>>()
                    };
                    let (a, b) = (bytes(this, a, a_signed), bytes(this, b, b_signed));
                    let factors = Factors { a, b, c: sums, metadata: *metadata, selector: *selector };
                    this.multiply_sparse_words(instr, op, &factors)
                })
            }
            Op::QmmaSp { f32, a: of_a, b: of_b, .. } => {
                let op = Op::Qmma { shape: QuarterShape::M16n8k32, f32, a: of_a, b: of_b };
                let dense = self.dense_bytes(factors);
                let mut sums = c.clone();
                for (a, b) in dense.chunks(4).zip(b.chunks(2)) {
                    sums = self.multiply_words(instr, op, [a, b, &sums])?;
                }
                Ok(sums)
            }
            _ => self.unsupported(instr, "this shape and type on this target"),
        }
    }

    /// Expands A with zeros to the registers of dense products of half the depth.
    fn dense_bytes(&mut self, factors: &Factors) -> Vec<Src> {
        let lane = self.s2r(sr::LANE_ID);
        let four = self.masked(lane, FOUR);
        let quarter = self.masked(lane, 3);
        // A register of the result holds one group. Its two bytes are in half a register of every second thread.
        let pair = self.shift_right(quarter, 1, false);
        let holder = self.add(four, pair);
        let odd = self.masked(lane, 1);
        let double = self.shift_left(odd, Src::imm(1));
        // Byte 4 of the two registers that `PRMT` takes is zero.
        let first = self.subtract(Src::imm(4), double);
        let second = self.subtract(Src::imm(3), double);
        let nibble = self.shift_left(quarter, Src::imm(2));
        let mut dense = Vec::new();
        for (block, rows) in factors.a.chunks(2).enumerate() {
            let held: Vec<Src> = (0..rows.len() as u32)
                .map(|upper| {
                    let from = self.add(four, Src::imm(2 * block as u32 + upper));
                    self.shuffle_word(factors.metadata, from)
                })
                .collect();
            for half in 0..2 {
                let from = self.add(holder, Src::imm(2 * half));
                let shift = self.add(nibble, Src::imm(16 * half));
                for (word, metadata) in rows.iter().zip(&held) {
                    let word = self.in_register(*word);
                    let word = self.shuffle_word(word, from);
                    let places = self.shift_right_by(*metadata, shift, false);
                    let places = [self.masked(places, 3), self.masked(places, 0xc)];
                    let places = [self.shift_left(places[0], Src::imm(2)), places[1]];
                    let first = self.shift_left(first, places[0]);
                    let second = self.shift_left(second, places[1]);
                    let taken = self.add(first, second);
                    let choice = self.subtract(Src::imm(0x4444), taken);
                    dense.push(self.reg(Op::Prmt, &[word, choice, Src::ZERO]));
                }
            }
        }
        dense
    }

    /// Sorts the two positions of each group in the metadata, and their elements accordingly.
    fn put_in_order(&mut self, op: &Op, factors: &mut Factors) {
        let wide = matches!(op, Op::HmmaSp { .. });
        let metadata = factors.metadata;
        // For each group, whether the first position (two bits) is greater than the second.
        let second = self.shift_right(metadata, 2, false);
        let above = self.lop3(lut::A & !lut::B, metadata, second, Src::ZERO);
        let not_below = self.lop3(lut::A | !lut::B, metadata, second, Src::ZERO);
        let above_high = self.shift_right(above, 1, false);
        let not_below_high = self.shift_right(not_below, 1, false);
        let swaps = self.lop3(lut::A | (lut::B & lut::C), above_high, not_below_high, above);
        let swaps = self.masked(swaps, 0x1111_1111);
        let mask = self.multiply_add(swaps, Src::imm(3), Src::ZERO);
        let differ = self.lop3((lut::A ^ lut::B) & lut::C, metadata, second, mask);
        let upper = self.shift_left(differ, Src::imm(2));
        factors.metadata = self.lop3(lut::A ^ lut::B ^ lut::C, metadata, differ, upper);

        let lane = self.s2r(sr::LANE_ID);
        let four = self.masked(lane, FOUR);
        let quarter = self.masked(lane, 3);
        let blocks = factors.a.len() as u32 / 2;
        let shift = self.shift_left(quarter, Src::imm(if wide { 2 } else { 3 }));
        // The number of threads that hold the metadata of one block of 8 groups, or of 4.
        let holders = if wide { 1 } else { 2 };
        let first = u32::from(factors.selector) * blocks * holders;
        for block in 0..blocks {
            let mut held = [Src::ZERO; 2];
            for (i, held) in held.iter_mut().enumerate().take(holders as usize) {
                let from = self.add(four, Src::imm((first + block * holders + i as u32) & 3));
                let word = self.shuffle_word(swaps, from);
                *held = self.shift_right_by(word, shift, false);
            }
            for upper in 0..2 {
                let choice = if wide {
                    let group = if upper == 0 { held[0] } else { self.shift_right(held[0], 16, false) };
                    let swap = self.masked(group, 1);
                    self.multiply_add(swap, Src::imm(0x1032_u32.wrapping_sub(IN_ORDER)), Src::imm(IN_ORDER))
                } else {
                    // Subtracting 15 from a digit swaps two digits; the bit of the second group is the fourth bit.
                    let [low, high] = [1, 0x10].map(|bit| self.masked(held[upper], bit));
                    let low = self.multiply_add(low, Src::imm(0xf_u32.wrapping_neg()), Src::imm(IN_ORDER));
                    self.multiply_add(high, Src::imm(0xf0_u32.wrapping_neg()), low)
                };
                let word = &mut factors.a[2 * block as usize + upper];
                let source = self.in_register(*word);
                *word = self.reg(Op::Prmt, &[source, choice, Src::ZERO]);
            }
        }
    }
}
