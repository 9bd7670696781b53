//! Textures and surfaces.

use super::arithmetic::{ty, unsupported};
use super::{Block, Step, each};
use crate::memory::Space;
use crate::memory::number;
use crate::texture::{self, Outside, Place, Texture};
use ptx_backend::input::{AddressBase, Instr, Operand};
use ptx_isa::{FormId, Mod, ScalarType};

/// How many coordinates a geometry has, and whether a layer's number comes first.
fn geometry(instr: &Instr) -> Option<(usize, bool)> {
    let has = |modifier| instr.opcode.has(modifier);
    Some(match () {
        () if has(Mod::D1d) => (1, false),
        () if has(Mod::D2d) => (2, false),
        () if has(Mod::D3d) => (3, false),
        () if has(Mod::A1d) => (1, true),
        () if has(Mod::A2d) => (2, true),
        () => return None,
    })
}

impl Block<'_> {
    pub(super) fn texture(&mut self, w: usize, mask: u32, instr: &Instr) -> Step<()> {
        match instr.opcode.form {
            FormId::Tex | FormId::Tld4 => self.sample(w, mask, instr),
            FormId::Suld | FormId::Sust => self.surface(w, mask, instr),
            _ => self.query(w, mask, instr),
        }
    }

    /// The object that a lane's handle tells, by a register.
    fn texture_object(&self, w: usize, lane: usize, handle: &Operand) -> Step<Texture> {
        let handle = self.value(handle, ScalarType::B64)?;
        texture::find(&self.device.textures, self.get(w, lane, handle)?).cloned()
    }

    /// The layer and the coordinates of a lane; floats as their bits.
    fn coordinates(
        &self,
        w: usize,
        lane: usize,
        vector: &Operand,
        (count, has_layer): (usize, bool),
    ) -> Step<(u32, [u32; 3])> {
        let parts = match vector {
            Operand::Vector(parts) => &parts[..],
            one => std::slice::from_ref(one),
        };
        let mut words = [0; 4];
        for (word, part) in words.iter_mut().zip(parts).take(count + usize::from(has_layer)) {
            *word = self.get(w, lane, self.value(part, ScalarType::B32)?)? as u32;
        }
        let [first, rest @ ..] = words;
        Ok(if has_layer { (first, rest) } else { (0, [words[0], words[1], words[2]]) })
    }

    fn sample(&mut self, w: usize, mask: u32, instr: &Instr) -> Step<()> {
        let op = &instr.opcode;
        let (d, coordinate) = (ty(op, 0)?, ty(op, 1)?);
        let levels = usize::from(op.has(Mod::Level));
        let Some(geometry) = geometry(instr) else { return unsupported(instr) };
        let Operand::List(parts) = &instr.operands[1] else { return unsupported(instr) };
        // Offsets, derivatives, values to compare with, samplers apart, and halves are not executed.
        let [handle, vector] = &parts[..] else { return unsupported(instr) };
        if op.has(Mod::Grad) || instr.operands.len() != 2 + levels || d.bits() != 32 || !op.has(Mod::V4) {
            return unsupported(instr);
        }
        let (results, resident) = super::arithmetic::split(&instr.operands[0]);
        let Operand::Vector(results) = results else { return unsupported(instr) };
        let gathers = [Mod::R, Mod::G, Mod::B, Mod::A].iter().position(|&channel| op.has(channel));
        for lane in each(mask) {
            let object = self.texture_object(w, lane, handle)?;
            let (layer, words) = self.coordinates(w, lane, vector, geometry)?;
            let mut view = self.view(w, lane);
            let values = match gathers {
                Some(channel) => object.gather(&mut view, layer, words.map(f32::from_bits), channel)?,
                None => {
                    let place = match coordinate {
                        ScalarType::F32 => Place::Sample(words.map(f32::from_bits)),
                        _ => Place::Element(words.map(|word| i64::from(word as i32))),
                    };
                    object.fetch(&mut view, layer, place)?
                }
            };
            for (result, value) in results.iter().zip(values) {
                self.put(w, lane, result, d, value.into())?;
            }
            if let Some(resident) = resident {
                self.put(w, lane, resident, ScalarType::Pred, 1)?;
            }
        }
        Ok(())
    }

    fn surface(&mut self, w: usize, mask: u32, instr: &Instr) -> Step<()> {
        let op = &instr.opcode;
        let t = ty(op, 0)?;
        let stores = op.form == FormId::Sust;
        let (place, data) = if stores { (0, 1) } else { (1, 0) };
        let Some(geometry) = geometry(instr) else { return unsupported(instr) };
        let Operand::List(parts) = &instr.operands[place] else { return unsupported(instr) };
        let [handle, vector] = &parts[..] else { return unsupported(instr) };
        let data = match &instr.operands[data] {
            Operand::Vector(parts) => &parts[..],
            one => std::slice::from_ref(one),
        };
        let outside = match () {
            () if op.has(Mod::Zero) => Outside::Nothing,
            () if op.has(Mod::Clamp) => Outside::Nearest,
            () => Outside::Fault,
        };
        let size = t.bytes() as usize;
        let total = (size * data.len()) as u32;
        for lane in each(mask) {
            let object = self.texture_object(w, lane, handle)?;
            let (layer, words) = self.coordinates(w, lane, vector, geometry)?;
            let at = words.map(|word| i64::from(word as i32));
            let address = object.surface(layer, at, total, outside)?;
            let mut bytes = vec![0; total as usize];
            if stores {
                for (bytes, part) in bytes.chunks_mut(size).zip(data) {
                    let value = self.get(w, lane, self.value(part, t)?)?;
                    bytes.copy_from_slice(&value.to_le_bytes()[..size]);
                }
                if let Some(address) = address {
                    self.view(w, lane).slice(Space::Global, address, total)?.copy_from_slice(&bytes);
                }
                continue;
            }
            if let Some(address) = address {
                bytes.copy_from_slice(self.view(w, lane).read(Space::Global, address, total)?);
            }
            for (bytes, part) in bytes.chunks(size).zip(data) {
                self.put(w, lane, part, t, number(bytes))?;
            }
        }
        Ok(())
    }

    fn query(&mut self, w: usize, mask: u32, instr: &Instr) -> Step<()> {
        let op = &instr.opcode;
        let dimension = [Mod::Width, Mod::Height, Mod::Depth].iter().position(|&what| op.has(what));
        let Some(dimension) = dimension.filter(|_| !op.has(Mod::Level)) else { return unsupported(instr) };
        let Operand::Address(address) = &instr.operands[1] else { return unsupported(instr) };
        let AddressBase::Reg(register) = address.base else { return unsupported(instr) };
        for lane in each(mask) {
            let object = self.texture_object(w, lane, &Operand::Reg(register))?;
            self.put(w, lane, &instr.operands[0], ScalarType::B32, object.extent[dimension].into())?;
        }
        Ok(())
    }
}
