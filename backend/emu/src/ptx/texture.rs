//! Textures and surfaces.

use super::arithmetic::{ty, unsupported};
use super::{Block, Step, each};
use crate::memory::Space;
use crate::memory::number;
use crate::texture::{self, Attribute, Channel, Extras, Outside, Texture, TexturePoint};
use ptx_backend::input::{Instr, Operand};
use ptx_isa::{FormId, Mod, ScalarType};

/// The number of coordinates of a geometry, whether a layer index comes first, and its kind.
#[derive(Clone, Copy)]
struct Geometry {
    count: usize,
    has_layer: bool,
    is_cube: bool,
}

fn geometry(instr: &Instr) -> Option<Geometry> {
    let has = |modifier| instr.opcode.has(modifier);
    let (count, has_layer, is_cube) = match () {
        () if has(Mod::D1d) => (1, false, false),
        () if has(Mod::D2d) => (2, false, false),
        () if has(Mod::D3d) => (3, false, false),
        () if has(Mod::A1d) => (1, true, false),
        () if has(Mod::A2d) => (2, true, false),
        () if has(Mod::Cube) => (3, false, true),
        () if has(Mod::Acube) => (3, true, true),
        () => return None,
    };
    Some(Geometry { count, has_layer, is_cube })
}

const ATTRIBUTES: [(Mod, Attribute); 12] = [
    (Mod::AddrMode0, Attribute::Addressing),
    (Mod::AddrMode1, Attribute::Addressing),
    (Mod::AddrMode2, Attribute::Addressing),
    (Mod::FilterMode, Attribute::Filter),
    (Mod::NormalizedCoords, Attribute::Normalized),
    (Mod::ForceUnnormalizedCoords, Attribute::Unnormalized),
    (Mod::ChannelDataType, Attribute::DataType),
    (Mod::ChannelOrder, Attribute::Order),
    (Mod::ArraySize, Attribute::Layers),
    (Mod::NumMipmapLevels, Attribute::Levels),
    (Mod::NumSamples, Attribute::Samples),
    (Mod::MemoryLayout, Attribute::Layout),
];

/// The words of a vector.
fn elements(operand: &Operand) -> &[Operand] {
    match operand {
        Operand::Vector(parts) => parts,
        one => std::slice::from_ref(one),
    }
}

impl Block<'_> {
    pub(super) fn texture(&mut self, w: usize, mask: u32, instr: &Instr) -> Step<()> {
        match instr.opcode.form {
            FormId::Tex | FormId::Tld4 => self.sample(w, mask, instr),
            FormId::Suld | FormId::Sust => self.surface(w, mask, instr),
            FormId::SustFormatted | FormId::Sured => self.elements_of_surface(w, mask, instr),
            _ => self.query(w, mask, instr),
        }
    }

    /// The handle in an operand of a lane.
    fn handle(&self, w: usize, lane: usize, handle: &Operand) -> Step<u64> {
        match handle {
            Operand::Address(_) => self.address(w, lane, handle),
            _ => self.get(w, lane, self.value(handle, ScalarType::B64)?),
        }
    }

    fn texture_object(&self, w: usize, lane: usize, handle: &Operand) -> Step<Texture> {
        texture::find(&self.device.textures, self.handle(w, lane, handle)?).cloned()
    }

    /// The texture of one handle with the sampler of another.
    fn sampled_object(&self, w: usize, lane: usize, handles: &[Operand]) -> Step<Option<Texture>> {
        let (texture, sampler) = match handles {
            [texture] => (texture, None),
            [texture, sampler] if self.program.env.independent_samplers => {
                (texture, Some(self.handle(w, lane, sampler)?))
            }
            _ => return Ok(None),
        };
        let handle = self.handle(w, lane, texture)?;
        texture::find_sampled(&self.device.textures, handle, sampler).map(Some)
    }

    /// The layer and the coordinates of a lane. Floating-point coordinates are returned as bits.
    fn coordinates(
        &self,
        w: usize,
        lane: usize,
        vector: &Operand,
        geometry: Geometry,
    ) -> Step<(u32, [u32; 3])> {
        let mut words = [0; 4];
        let count = geometry.count + usize::from(geometry.has_layer);
        for (word, part) in words.iter_mut().zip(elements(vector)).take(count) {
            *word = self.get(w, lane, self.value(part, ScalarType::B32)?)? as u32;
        }
        let [first, rest @ ..] = words;
        Ok(if geometry.has_layer { (first, rest) } else { (0, [words[0], words[1], words[2]]) })
    }

    /// The operands after the level or the derivatives: offsets, and a reference value for depth comparison.
    fn extras(&self, w: usize, lane: usize, operands: &[Operand], gathers: bool) -> Step<Extras> {
        let mut extras = Extras::default();
        let mut rest = operands;
        if let [vector @ Operand::Vector(_), more @ ..] = rest {
            let bits = if gathers { 6 } else { 4 };
            for (offset, part) in extras.offsets.iter_mut().zip(elements(vector)) {
                let word = self.get(w, lane, self.value(part, ScalarType::B32)?)? as i32;
                *offset = word << (32 - bits) >> (32 - bits);
            }
            rest = more;
        }
        if let [compared, ..] = rest {
            extras.compared = Some(self.get(w, lane, self.value(compared, ScalarType::F32)?)? as u32);
        }
        Ok(extras)
    }

    fn sample(&mut self, w: usize, mask: u32, instr: &Instr) -> Step<()> {
        let op = &instr.opcode;
        let (d, coordinate) = (ty(op, 0)?, ty(op, 1)?);
        let Some(geometry) = geometry(instr) else { return unsupported(instr) };
        let Operand::List(parts) = &instr.operands[1] else { return unsupported(instr) };
        let Some((vector, handles)) = parts.split_last() else { return unsupported(instr) };
        // Textures have one level, whichever one is requested.
        let before = 2 + usize::from(op.has(Mod::Level)) + 2 * usize::from(op.has(Mod::Grad));
        let behind = instr.operands.get(before..).unwrap_or_default();
        let (results, resident) = super::arithmetic::split(&instr.operands[0]);
        let Operand::Vector(results) = results else { return unsupported(instr) };
        let gathers = [Mod::R, Mod::G, Mod::B, Mod::A].iter().position(|&channel| op.has(channel));
        for lane in each(mask) {
            let Some(object) = self.sampled_object(w, lane, handles)? else { return unsupported(instr) };
            let (layer, words) = self.coordinates(w, lane, vector, geometry)?;
            let extras = self.extras(w, lane, behind, gathers.is_some())?;
            let integers = words.map(|word| i64::from(word as i32));
            let place = match coordinate {
                ScalarType::F32 if geometry.is_cube => TexturePoint::Direction(words.map(f32::from_bits)),
                ScalarType::F32 => TexturePoint::Sample(words.map(f32::from_bits)),
                // As in the code of ptxas, derivatives go with the bits of the coordinates.
                _ if op.has(Mod::Grad) => TexturePoint::Sample(words.map(f32::from_bits)),
                // A separate sampler makes this a sampled read too, unless the level is given.
                _ if handles.len() > 1 && !op.has(Mod::Level) => {
                    TexturePoint::Sample(integers.map(|word| word as f32))
                }
                _ => TexturePoint::Element(integers),
            };
            let mut view = self.view(w, lane);
            let values = match gathers {
                Some(channel) => object.gather(&mut view, layer, place, channel, &extras)?,
                None => object.fetch(&mut view, layer, place, &extras)?,
            };
            self.put_texels(w, lane, results, d, values)?;
            if let Some(resident) = resident {
                self.put(w, lane, resident, ScalarType::Pred, 1)?;
            }
        }
        Ok(())
    }

    fn put_texels(
        &mut self,
        w: usize,
        lane: usize,
        results: &[Operand],
        d: ScalarType,
        values: [u32; 4],
    ) -> Step<()> {
        let half = |word: u32| crate::float::F16.from_f64(f64::from(f32::from_bits(word)));
        for (i, result) in results.iter().enumerate() {
            let value = match d {
                ScalarType::F16 => half(values[i]),
                ScalarType::F16x2 => half(values[2 * i]) | half(values[2 * i + 1]) << 16,
                _ => values[i].into(),
            };
            self.put(w, lane, result, d, value)?;
        }
        Ok(())
    }

    fn outside(instr: &Instr) -> Outside {
        match () {
            () if instr.opcode.has(Mod::Zero) => Outside::Nothing,
            () if instr.opcode.has(Mod::Clamp) => Outside::Nearest,
            () => Outside::Fault,
        }
    }

    fn surface(&mut self, w: usize, mask: u32, instr: &Instr) -> Step<()> {
        let op = &instr.opcode;
        let t = ty(op, 0)?;
        let stores = op.form == FormId::Sust;
        let (place, data) = if stores { (0, 1) } else { (1, 0) };
        let Some(geometry) = geometry(instr) else { return unsupported(instr) };
        let Operand::List(parts) = &instr.operands[place] else { return unsupported(instr) };
        let [handle, vector] = &parts[..] else { return unsupported(instr) };
        let data = elements(&instr.operands[data]);
        let size = t.bytes() as usize;
        // Without `.v2` or `.v4`, one element is moved: it is stored from the first register or loaded to all.
        let count = if op.has(Mod::V2) || op.has(Mod::V4) { data.len() } else { 1 };
        let total = (size * count) as u32;
        for lane in each(mask) {
            let object = self.texture_object(w, lane, handle)?;
            let (layer, words) = self.coordinates(w, lane, vector, geometry)?;
            let at = words.map(|word| i64::from(word as i32));
            let address = object.surface(layer, at, total, Self::outside(instr))?;
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
            for (bytes, part) in bytes.chunks(size).cycle().zip(data) {
                self.put(w, lane, part, t, number(bytes))?;
            }
        }
        Ok(())
    }

    /// Stores in the format of the surface, and reductions.
    fn elements_of_surface(&mut self, w: usize, mask: u32, instr: &Instr) -> Step<()> {
        let op = &instr.opcode;
        let t = ty(op, 0)?;
        let Some(geometry) = geometry(instr) else { return unsupported(instr) };
        let Operand::List(parts) = &instr.operands[0] else { return unsupported(instr) };
        let [handle, vector] = &parts[..] else { return unsupported(instr) };
        let (reduces, counts) = (op.form == FormId::Sured, op.has(Mod::P));
        for lane in each(mask) {
            let object = self.texture_object(w, lane, handle)?;
            let (layer, words) = self.coordinates(w, lane, vector, geometry)?;
            let at = words.map(|word| i64::from(word as i32));
            let size = if reduces { t.bytes() } else { 4 * object.channels };
            let address = match counts {
                true => object.surface_element(layer, at, Self::outside(instr))?,
                false => object.surface(layer, at, size, Self::outside(instr))?,
            };
            let Some(address) = address else { continue };
            if !reduces {
                let mut words = Vec::new();
                for part in elements(&instr.operands[1]) {
                    words.push(self.get(w, lane, self.value(part, t)?)? as u32);
                }
                let bytes = object.encoded(&words)?;
                let size = bytes.len() as u32;
                self.view(w, lane).slice(Space::Global, address, size)?.copy_from_slice(&bytes);
                continue;
            }
            let element = match (counts, object.channel) {
                (true, Channel::Signed) if t.bits() == 64 => ScalarType::S64,
                (true, Channel::Signed) => ScalarType::S32,
                (true, _) if object.bytes * object.channels != t.bytes() => return unsupported(instr),
                _ => t,
            };
            let value = self.get(w, lane, self.value(&instr.operands[1], t)?)?;
            let old = number(self.view(w, lane).read(Space::Global, address, t.bytes())?);
            let new = super::memory::update(instr, element, true, old, value)?;
            let bytes = &new.to_le_bytes()[..t.bytes() as usize];
            self.view(w, lane).slice(Space::Global, address, t.bytes())?.copy_from_slice(bytes);
        }
        Ok(())
    }

    fn query(&mut self, w: usize, mask: u32, instr: &Instr) -> Step<()> {
        let op = &instr.opcode;
        let dimension = [Mod::Width, Mod::Height, Mod::Depth].iter().position(|&what| op.has(what));
        let attribute = ATTRIBUTES.iter().find(|(name, _)| op.has(*name)).map(|(_, attribute)| *attribute);
        for lane in each(mask) {
            let object = self.texture_object(w, lane, &instr.operands[1])?;
            let value = match (dimension, attribute) {
                (Some(dimension), _) => object.extent[dimension],
                (None, Some(attribute)) => object.attribute(attribute),
                (None, None) => return unsupported(instr),
            };
            self.put(w, lane, &instr.operands[0], ScalarType::B32, value.into())?;
        }
        Ok(())
    }

    pub(super) fn test_handle(&mut self, w: usize, mask: u32, instr: &Instr) -> Step<()> {
        let kind = texture::kind(ty(&instr.opcode, 0)?);
        for lane in each(mask) {
            let handle = self.get(w, lane, self.value(&instr.operands[1], ScalarType::B64)?)?;
            self.put(w, lane, &instr.operands[0], ScalarType::Pred, (handle & kind == kind).into())?;
        }
        Ok(())
    }
}
