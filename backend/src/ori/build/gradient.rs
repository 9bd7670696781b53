//! Texture reads with derivatives that a driver function executes.

use super::memory::elements;
use super::{Lowering, Result, Statement};
use crate::driver::{DriverFunction, Gradient};
use crate::input::Operand;
use crate::ori::ir::Src;
use crate::ori::op::ICmp;
use ptx_isa::{Mod, ScalarType};

/// The number of elements of a vector argument.
const MOST: usize = 4;

impl<'a> Lowering<'a> {
    /// `tex.grad` as a call of a driver function, which takes the handles and vectors of the statement.
    pub(super) fn read_by_driver(&mut self, instr: &Statement<'a>, gradient: Gradient) -> Result<()> {
        let geometry = [Mod::D1d, Mod::D2d, Mod::D3d, Mod::A1d, Mod::A2d, Mod::Cube, Mod::Acube];
        instr.ignore(&geometry);
        instr.ignore(&[Mod::V2, Mod::V4, Mod::Uni, Mod::Grad]);
        let to = self.type_of(instr, 0)?;
        // The function reads the bits of the coordinates as floats, whatever their type, as the hardware does.
        self.type_of(instr, 1)?;
        let (handles, place) = self.sampled(instr, 1)?;
        let mut arguments = self.gradient_handles(instr, gradient, handles)?;
        arguments.push(place);
        for i in 2..4 + usize::from(gradient.offsets) {
            let vector = self.operand(instr, i)?;
            arguments.push(self.words_of(vector)?);
        }
        arguments.iter_mut().for_each(|words| words.truncate(MOST));
        let behind = 4 + usize::from(gradient.offsets);
        if gradient.compares {
            arguments.push(vec![self.source(instr, behind, ScalarType::F32)?]);
        }
        // ptxas ignores further operands.
        for i in behind..instr.operand_count() {
            instr.operand(i);
        }
        let results = self.call_driver(DriverFunction::Gradient(gradient), arguments)?;
        let (resident, words) = match &results[..] {
            [resident, texels @ ..] => (resident[0], texels.concat()),
            [] => return self.malformed("a gradient without results"),
        };
        let dsts = match self.operand(instr, 0)? {
            Operand::Pair(pair) => {
                let resident = self.compare(ICmp::Ne, false, resident, Src::ZERO);
                self.write(&pair.1, resident)?;
                &pair.0
            }
            dsts => dsts,
        };
        // The driver returns halves in pairs.
        let ty = if to == ScalarType::F16 { ScalarType::B16 } else { ScalarType::B32 };
        self.write_elements(elements(instr, dsts), &words, ty)
    }

    /// The texture and, in independent mode, the sampler, as 64 bits each.
    fn gradient_handles(
        &mut self,
        instr: &Statement<'a>,
        gradient: Gradient,
        handles: &[Operand],
    ) -> Result<Vec<Vec<Src>>> {
        if handles.len() != 1 + usize::from(gradient.independent) {
            return self.unsupported(instr, "a number of handles that does not match the texture mode");
        }
        let kinds = [ScalarType::TexRef, ScalarType::SamplerRef];
        let mut words = Vec::new();
        for (handle, kind) in handles.iter().zip(kinds) {
            let pair = match (self.opaque_symbol(handle), handle) {
                (Some(symbol), _) => self.variable_handle(symbol, kind)?,
                (None, handle) => self.handle_value(instr, handle)?,
            };
            words.push(vec![self.part(pair, 0), self.part(pair, 1)]);
        }
        Ok(words)
    }
}
