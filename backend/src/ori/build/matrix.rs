//! Matrices whose elements are distributed over the threads of a warp: `ldmatrix`, `stmatrix`, `movmatrix` and `mma`.
//!
//! All of them are `.aligned`: the whole warp executes them together. A wait before each of them ensures this where
//! nothing else does.

use super::memory::{Target, elements};
use super::{Lowering, Result, Statement};
use crate::input::Address;
use crate::ori::ir::Src;
use crate::ori::op::{
    BitOp, BitShape, ByteFormat, ByteLayout, ByteShape, DoubleShape, HalfShape, MatrixCount, MatrixLayout,
    NibbleShape, Op, QuarterShape, QuarterType, Round, StoreFormat, StoreLayout, Tf32Shape,
};
use crate::ori::signature::{Width, signature};
use ptx_isa::{FormId, Mod, ScalarType};

impl<'a> Lowering<'a> {
    /// `ldmatrix`.
    pub(super) fn load_matrices(&mut self, instr: &Statement<'a>) -> Result<()> {
        let (layout, count) = self.matrices(instr)?;
        let (address, base, offset) = self.matrix_address(instr, 1)?;
        self.product(instr, Op::Ldsm { layout, count, offset }, &[address, base])
    }

    /// `ldmatrix` of bytes, and of narrower elements that are expanded to bytes.
    pub(super) fn load_byte_matrices(&mut self, instr: &Statement<'a>) -> Result<()> {
        let (_, count) = self.matrices(instr)?;
        let tall = instr.any_of(&[Mod::M8n16, Mod::M16n16]) == Some(Mod::M16n16);
        let layout = if tall { ByteLayout::Columns } else { ByteLayout::Rows };
        let format = match (instr.form(), self.type_of(instr, 0)?, instr.ty(1)) {
            (FormId::LdmatrixBytes, ..) => ByteFormat::Bytes,
            (_, _, Some(ScalarType::B4x16P64)) => ByteFormat::Nibbles,
            (_, _, Some(ScalarType::B6x16P32)) => ByteFormat::Sextets,
            _ => return self.unsupported(instr, "this format"),
        };
        let (address, base, offset) = self.matrix_address(instr, 1)?;
        let op = Op::LdsmBytes { format, layout, count, offset };
        if !self.encodes(&op) {
            return self.unsupported(instr, "matrices of bytes on this target");
        }
        self.product(instr, op, &[address, base])
    }

    /// `stmatrix` of bytes.
    pub(super) fn store_byte_matrices(&mut self, instr: &Statement<'a>) -> Result<()> {
        instr.ignore(&[Mod::M16n8]);
        let (_, count) = self.matrices(instr)?;
        let (address, base, offset) = self.matrix_address(instr, 0)?;
        let op = Op::StsmBytes { format: StoreFormat::Bytes, layout: StoreLayout::Columns, count, offset };
        if !self.encodes(&op) {
            return self.unsupported(instr, "matrices of bytes on this target");
        }
        let stored = self.operand(instr, 1)?;
        let data = self.stored(elements(instr, stored), ScalarType::B32)?;
        self.join_all();
        self.effect(op, &[address, base, data]);
        Ok(())
    }

    /// `stmatrix`.
    pub(super) fn store_matrices(&mut self, instr: &Statement<'a>) -> Result<()> {
        let (layout, count) = self.matrices(instr)?;
        let (address, base, offset) = self.matrix_address(instr, 0)?;
        let op = Op::Stsm { layout, count, offset };
        if !self.encodes(&op) {
            return self.unsupported(instr, "this instruction on this target");
        }
        let stored = self.operand(instr, 1)?;
        let data = self.stored(elements(instr, stored), ScalarType::B32)?;
        self.join_all();
        self.effect(op, &[address, base, data]);
        Ok(())
    }

    /// `movmatrix`.
    pub(super) fn transpose_matrix(&mut self, instr: &Statement<'a>) -> Result<()> {
        // There is only this shape and this operation.
        instr.ignore(&[Mod::M8n8, Mod::Trans]);
        let matrix = self.source(instr, 1, ScalarType::B32)?;
        self.product(instr, Op::Movm, &[matrix])
    }

    fn matrices(&self, instr: &Statement<'a>) -> Result<(MatrixLayout, MatrixCount)> {
        instr.ignore(&[Mod::M8n8]);
        let counts = [(Mod::X1, MatrixCount::One), (Mod::X2, MatrixCount::Two), (Mod::X4, MatrixCount::Four)];
        let Some(count) = instr.take(&counts) else {
            return self.unsupported(instr, "this number of matrices");
        };
        let layout = if instr.has(Mod::Trans) { MatrixLayout::Columns } else { MatrixLayout::Rows };
        Ok((layout, count))
    }

    fn matrix_address(&mut self, instr: &Statement<'a>, i: usize) -> Result<(Src, Src, i32)> {
        let address = self.address(instr, i)?;
        if instr.any_of(&[Mod::Shared, Mod::SharedCta]).is_none() {
            return self.generic_shared(address);
        }
        match self.shared_target(instr, address)? {
            Target::Shared { address, base, offset } => Ok((address, base, offset)),
            _ => self.malformed("a `.shared` address used in another state space"),
        }
    }

    /// Converts a generic address, which must be in shared memory, to a shared address.
    fn generic_shared(&mut self, address: Address) -> Result<(Src, Src, i32)> {
        let (address, offset) = self.wide_address(address, true)?;
        let low = self.part(address, 0);
        let low = match self.target.driver.shared_window {
            Some(window) => self.subtract(low, Src::constant(0, window)),
            // The window is aligned to 4 GiB.
            None => self.in_register(low),
        };
        Ok((low, Src::ZERO, offset))
    }

    /// `mma` with dense factors.
    pub(super) fn multiply_matrices(&mut self, instr: &Statement<'a>) -> Result<()> {
        // The form has only one layout of each factor.
        instr.ignore(&[Mod::Row, Mod::Col]);
        let Some(op) = self.product_operation(instr)? else {
            return self.unsupported(instr, "this shape and type");
        };
        let mut words = Vec::new();
        for i in 1..=3 {
            let bits = if self.type_of(instr, i)? == ScalarType::F64 { 64 } else { 32 };
            let operands = elements(instr, self.operand(instr, i)?);
            words.push(self.fragment_words(operands, bits)?);
        }
        if matches!(op, Op::Qmma { shape: QuarterShape::M16n8k16, .. }) {
            // Registers after those of the factor are allowed, but not read.
            words[1].truncate(1);
        }
        self.join_all();
        let sums = self.multiply_words(instr, op, [&words[0], &words[1], &words[2]])?;
        self.write_product(instr, &sums, matches!(op, Op::Dmma { .. }))
    }

    fn product_operation(&self, instr: &Statement<'a>) -> Result<Option<Op>> {
        let (to, a, b) = (self.type_of(instr, 0)?, self.type_of(instr, 1)?, self.type_of(instr, 2)?);
        let (f32, c) = (to == ScalarType::F32, self.type_of(instr, 3)?);
        if c != to {
            return self.unsupported(instr, "an accumulator whose type differs from the type of the result");
        }
        let (a_signed, b_signed) = (a.is_signed(), b.is_signed());
        let sat = instr.has(Mod::Satfinite);
        Ok(match instr.form() {
            FormId::MmaF16 | FormId::MmaBf16 => instr
                .take(&[(Mod::M16n8k8, HalfShape::M16n8k8), (Mod::M16n8k16, HalfShape::M16n8k16)])
                .map(|shape| Op::Hmma { shape, f32, bf16: a == ScalarType::Bf16 }),
            FormId::MmaTf32 => instr
                .take(&[(Mod::M16n8k4, Tf32Shape::M16n8k4), (Mod::M16n8k8, Tf32Shape::M16n8k8)])
                .map(|shape| Op::HmmaTf32 { shape, f32 }),
            FormId::MmaF64 => {
                let rounds =
                    [(Mod::Rn, Round::Rn), (Mod::Rz, Round::Rz), (Mod::Rm, Round::Rm), (Mod::Rp, Round::Rp)];
                let round = instr.take(&rounds).unwrap_or(Round::Rn);
                let shapes = [
                    (Mod::M8n8k4, DoubleShape::M8n8k4),
                    (Mod::M16n8k4, DoubleShape::M16n8k4),
                    (Mod::M16n8k8, DoubleShape::M16n8k8),
                    (Mod::M16n8k16, DoubleShape::M16n8k16),
                ];
                instr.take(&shapes).map(|shape| Op::Dmma { shape, round })
            }
            FormId::MmaInt8 => instr
                .take(&[
                    (Mod::M8n8k16, ByteShape::M8n8k16),
                    (Mod::M16n8k16, ByteShape::M16n8k16),
                    (Mod::M16n8k32, ByteShape::M16n8k32),
                ])
                .map(|shape| Op::Imma { shape, a_signed, b_signed, sat }),
            FormId::MmaInt4 => instr
                .take(&[
                    (Mod::M8n8k32, NibbleShape::M8n8k32),
                    (Mod::M16n8k32, NibbleShape::M16n8k32),
                    (Mod::M16n8k64, NibbleShape::M16n8k64),
                ])
                .map(|shape| Op::ImmaNibbles { shape, a_signed, b_signed, sat }),
            FormId::MmaBits => {
                instr.ignore(&[Mod::Popc]);
                let op = instr.take(&[(Mod::Xor, BitOp::Xor), (Mod::And, BitOp::And)]).unwrap_or(BitOp::Xor);
                instr
                    .take(&[
                        (Mod::M8n8k128, BitShape::M8n8k128),
                        (Mod::M16n8k128, BitShape::M16n8k128),
                        (Mod::M16n8k256, BitShape::M16n8k256),
                    ])
                    .map(|shape| Op::Bmma { shape, op })
            }
            FormId::MmaFp8 | FormId::MmaKind => {
                // Without scale factors, all kinds are the same product.
                instr.ignore(&[Mod::KindF8f6f4, Mod::KindMxf8f6f4, Mod::KindMxf4, Mod::KindMxf4nvf4]);
                let (Some(a), Some(b)) = (quarter(a), quarter(b)) else { return Ok(None) };
                instr
                    .take(&[(Mod::M16n8k16, QuarterShape::M16n8k16), (Mod::M16n8k32, QuarterShape::M16n8k32)])
                    .map(|shape| Op::Qmma { shape, f32, a, b })
            }
            _ => None,
        })
    }

    /// An operation of the whole warp whose result is a fragment.
    fn product(&mut self, instr: &Statement<'a>, op: Op, srcs: &[Src]) -> Result<()> {
        let Some(Width::Exactly(width)) = signature(&op).dsts.first().map(|dst| dst.width) else {
            return self.malformed("a product without a result");
        };
        self.join_all();
        let result = self.wide(width, op, srcs);
        let words: Vec<Src> = match width {
            1 => vec![result],
            _ => (0..width).map(|i| self.part(result, i)).collect(),
        };
        self.write_product(instr, &words, matches!(op, Op::Dmma { .. }))
    }

    pub(super) fn write_product(
        &mut self,
        instr: &Statement<'a>,
        words: &[Src],
        doubles: bool,
    ) -> Result<()> {
        let ty = if doubles { ScalarType::F64 } else { ScalarType::B32 };
        let dsts = elements(instr, self.operand(instr, 0)?);
        if dsts.len() * if doubles { 2 } else { 1 } != words.len() {
            return self.malformed("a fragment whose size differs from that of the product");
        }
        self.write_elements(dsts, words, ty)
    }
}

/// Floats of at most 8 bits.
pub(super) fn quarter(ty: ScalarType) -> Option<QuarterType> {
    match ty {
        ScalarType::E4m3 => Some(QuarterType::E4m3),
        ScalarType::E5m2 => Some(QuarterType::E5m2),
        ScalarType::E3m2 => Some(QuarterType::E3m2),
        ScalarType::E2m3 => Some(QuarterType::E2m3),
        ScalarType::E2m1 => Some(QuarterType::E2m1),
        _ => None,
    }
}
