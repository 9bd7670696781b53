//! `mma` with `.block_scale`: each block of a row of A and of a column of B has a scale factor.

use super::matrix::quarter;
use super::memory::elements;
use super::uniform::Chosen;
use super::{Lowering, Result, Statement};
use crate::ori::ir::Src;
use crate::ori::op::{Op, ScaleBlocks, ScaleFormat};
use ptx_isa::{FormId, Mod, ScalarType};

impl<'a> Lowering<'a> {
    /// `mma` and `mma.sp` with scale factors.
    pub(super) fn multiply_scaled(&mut self, instr: &Statement<'a>) -> Result<()> {
        // Each form has one layout of each factor, one depth for each kind, and ordered metadata.
        let depths = [Mod::M16n8k32, Mod::M16n8k64, Mod::M16n8k128];
        instr.ignore(&[Mod::Row, Mod::Col, Mod::BlockScale, Mod::SpOrderedMetadata]);
        instr.ignore(&depths);
        let sparse = instr.form() == FormId::MmaSpBlockScale;
        let selector = if sparse { self.immediate(instr, 5)? as u8 } else { 0 };
        let Some(op) = self.scaled_operation(instr, sparse, selector)? else {
            return self.unsupported(instr, "this kind and type");
        };
        if !self.encodes(&op) {
            return self.unsupported(instr, "this instruction on this target");
        }
        let mut srcs = Vec::new();
        for i in 1..=3 {
            let words = self.fragment_words(elements(instr, self.operand(instr, i)?), 32)?;
            srcs.push(self.pack(&words));
        }
        let scales = if sparse { 6 } else { 4 };
        let scale_a = self.scale_word(instr, scales)?;
        srcs.push(if sparse {
            let metadata = self.scale_word(instr, 4)?;
            self.pack(&[metadata, scale_a])
        } else {
            scale_a
        });
        srcs.push(self.scale_word(instr, scales + 2)?);
        // The byte and thread selectors of the first factor, then those of the second.
        let mut selectors = Src::ZERO;
        for (operand, shifts) in [(scales + 1, [0, 2]), (scales + 3, [3, 5])] {
            let parts = elements(instr, self.operand(instr, operand)?);
            for ((part, shift), mask) in parts.iter().zip(shifts).zip([3, if shifts[0] == 0 { 1 } else { 3 }])
            {
                let part = self.read(part, ScalarType::U16)?;
                let part = self.masked(part, mask);
                let part = self.shift_left(part, Src::imm(shift));
                selectors = self.add(selectors, part);
            }
        }
        self.join_all();
        srcs.push(self.uniform_register(selectors, Chosen::all(Src::TRUE)));
        let sum = self.wide(4, op, &srcs);
        let words: Vec<Src> = (0..4).map(|i| self.part(sum, i)).collect();
        self.write_product(instr, &words, false)
    }

    fn scaled_operation(&self, instr: &Statement<'a>, sparse: bool, selector: u8) -> Result<Option<Op>> {
        // The accumulator is `.f32`.
        let (a, b) = (self.type_of(instr, 1)?, self.type_of(instr, 2)?);
        let powers = self.type_of(instr, 4)? == ScalarType::Ue8m0;
        let nibbles = instr.any_of(&[Mod::KindMxf4, Mod::KindMxf4nvf4]);
        let blocks = instr.any_of(&[Mod::ScaleVec1X, Mod::ScaleVec2X, Mod::ScaleVec4X]);
        if nibbles.is_some() {
            if [a, b] != [ScalarType::E2m1; 2] {
                return Ok(None);
            }
            let format = if powers { ScaleFormat::E8 } else { ScaleFormat::Ue4m3 };
            let blocks = match (blocks, nibbles) {
                (Some(Mod::ScaleVec4X), _) => ScaleBlocks::Four,
                (Some(Mod::ScaleVec2X), _) | (None, Some(Mod::KindMxf4)) => ScaleBlocks::Two,
                _ => return Ok(None),
            };
            return Ok(Some(match sparse {
                true => Op::OmmaSpScaled { format, blocks, selector },
                false => Op::OmmaScaled { format, blocks },
            }));
        }
        let one_block = matches!(blocks, None | Some(Mod::ScaleVec1X));
        if !(instr.has(Mod::KindMxf8f6f4) && powers && one_block) {
            return Ok(None);
        }
        let (Some(a), Some(b)) = (quarter(a), quarter(b)) else { return Ok(None) };
        Ok(Some(match sparse {
            true => Op::QmmaSpScaled { a, b, selector },
            false => Op::QmmaScaled { a, b },
        }))
    }

    /// A register with scale factors or metadata.
    fn scale_word(&mut self, instr: &Statement<'a>, i: usize) -> Result<Src> {
        let word = self.source(instr, i, ScalarType::B32)?;
        Ok(self.in_register(word))
    }
}
