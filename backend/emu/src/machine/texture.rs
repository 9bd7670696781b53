//! Textures and surfaces. The coordinates are in consecutive registers, after the layer index if there is one. Further
//! operands are in the registers of the second source. `.SCR` splits all of them evenly between the two sources. The
//! first two channels that are written go to one destination, the others to another.

use super::operand::{Kind, Source};
use super::step::Step;
use super::{Block, Result, WARP, each};
use crate::float::F16;
use crate::launch::FaultKind;
use crate::memory::{Space, number};
use crate::texture::{self, Channel, Extras, Outside, Texture, TexturePoint};
use sass::Field;

pub(super) const MNEMONICS: &[&str] = &["TEX", "TLD", "TLD4", "TXD", "TXQ", "SULD", "SUST", "SURED"];

/// The number of coordinates, whether a layer index comes first, and the geometry.
#[derive(Clone, Copy)]
struct Geometry {
    count: usize,
    has_layer: bool,
    is_cube: bool,
}

fn geometry(text: &str) -> Option<Geometry> {
    let (count, has_layer, is_cube) = match text.trim_start_matches('.') {
        "1D" => (1, false, false),
        "2D" => (2, false, false),
        "3D" => (3, false, false),
        "ARRAY_1D" | "1D_ARRAY" => (1, true, false),
        "ARRAY_2D" | "2D_ARRAY" => (2, true, false),
        "CUBE" => (3, false, true),
        "ARRAY_CUBE" => (3, true, true),
        _ => return None,
    };
    Some(Geometry { count, has_layer, is_cube })
}

/// Whether the handle is in a register of each thread.
fn is_bindless(step: &Step) -> bool {
    step.inst.form().shape == "r"
}

/// The register operands of a texture instruction.
struct Words {
    layer: u32,
    place: [u32; 3],
    handle: Option<u32>,
    offsets: u32,
    compared: u32,
}

impl Block<'_> {
    pub(super) fn texture(&mut self, w: usize, mask: u32, at: u32, name: &str) -> Result<()> {
        let machine = self.machine;
        let step = &machine.code[at as usize];
        let unsupported = || {
            let text = sass::print(machine.sm, &step.inst, u64::from(at * super::INSTRUCTION));
            Err(FaultKind::Unsupported(text))
        };
        let get = |field| step.inst.get(field).unwrap_or(0);
        let strange = get(Field::Index) != 0
            || get(Field::Round) > 1
            || get(Field::Offsets) > 1
            // A texture with one level does not depend on differences between the coordinates in a quad.
            || name == "TEX" && (!matches!(step.inst.text(Field::Mode2), None | Some("" | ".NDV")) || get(Field::Lod) > 3)
            || name == "TXD" && get(Field::Lod) != 0
            || step.inst.text(Field::Lod) == Some(".UMS");
        if strange {
            return unsupported();
        }
        let dims = geometry(step.inst.text(Field::Dims).unwrap_or(""));
        match (name, dims) {
            ("SULD" | "SUST" | "SURED", Some(geometry)) => {
                each(mask).try_for_each(|lane| self.surface(w, lane, step, geometry, name))
            }
            ("TXQ", _) => {
                if step.inst.text(Field::Op) != Some("TEX_HEADER_DIMENSION") || get(Field::Mask) & 8 != 0 {
                    return unsupported();
                }
                for lane in each(mask) {
                    let handle = is_bindless(step).then(|| self.behind(w, lane, step.sources[0], 0));
                    let [width, height, depth] = self.texture_object(w, step, handle)?.extent;
                    self.channels(w, lane, step, [width, height, depth, 0]);
                }
                Ok(())
            }
            (_, Some(geometry)) => each(mask).try_for_each(|lane| self.sample(w, lane, step, geometry, name)),
            _ => unsupported(),
        }
    }

    /// The object of the handle. The handle is in a general register, a constant or uniform registers. If there is a
    /// separate sampler, the second uniform register holds it.
    fn texture_object(&self, w: usize, step: &Step, handle: Option<u32>) -> Result<Texture> {
        const NONE: u64 = 255;
        let uniform = |register: u64| self.warps[w].uniform[register as usize];
        let is_surface = step.inst.form().mnemonic.starts_with('S');
        let (handle, sampler) = match (handle, step.inst.get(Field::COffset), step.inst.get(Field::Ur)) {
            (Some(handle), ..) => (u64::from(handle), None),
            (_, Some(word), _) => {
                (self.constant(step.inst.get(Field::CBank).unwrap_or(0) as u8, 4 * word, 4)?, None)
            }
            (_, None, Some(register)) if is_surface => (uniform(register).into(), None),
            (_, None, Some(register)) => {
                let sampler = step.inst.get(Field::UrBase).filter(|&r| r != NONE).unwrap_or(register + 1);
                // Up to sm_89, the word of a variable has a marker above the bits of the sampler.
                let sampler = u64::from(uniform(sampler)) & texture::SAMPLER;
                (uniform(register).into(), Some(sampler).filter(|&sampler| sampler != 0))
            }
            _ => return Err(FaultKind::Unsupported("a texture without a handle".into())),
        };
        texture::find_sampled(&self.device.textures, handle, sampler)
    }

    /// The register `by` places after that of a source.
    fn behind(&self, w: usize, lane: usize, source: Source, by: usize) -> u32 {
        match source.kind {
            Kind::Register(index) if index != 255 => {
                self.warps[w].registers[(usize::from(index) + by).min(255) * WARP + lane]
            }
            _ => 0,
        }
    }

    /// Reads the register operands of a texture instruction.
    fn texture_words(&self, w: usize, lane: usize, step: &Step, geometry: Geometry, name: &str) -> Words {
        let is = |field| step.inst.get(field) == Some(1);
        let bindless = usize::from(is_bindless(step));
        let place = geometry.count + usize::from(geometry.has_layer);
        let offsets = step.inst.get(Field::Offsets).unwrap_or(0) != 0;
        if name == "TXD" {
            // The handle, the coordinates, and a word with the layer and, above it, the offsets. Derivatives have no
            // effect on a texture with one level.
            let word = |i: usize| self.behind(w, lane, step.sources[0], i);
            let last = if geometry.has_layer || offsets { word(bindless + geometry.count) } else { 0 };
            let at = |i: usize| if i < geometry.count { word(bindless + i) } else { 0 };
            return Words {
                layer: if geometry.has_layer { last & 0xffff } else { 0 },
                place: [at(0), at(1), at(2)],
                handle: (bindless > 0).then(|| word(0)),
                offsets: if offsets { last >> 16 } else { 0 },
                compared: 0,
            };
        }
        let levels = usize::from(matches!(step.inst.text(Field::Lod), Some(".LL" | ".LB")));
        let more = usize::from(offsets) + usize::from(is(Field::Compare));
        let all = place + bindless + levels + more;
        let first = if is(Field::Flag) { all.div_ceil(2).min(2) } else { place };
        let word = |i: usize| match i < first {
            true => self.behind(w, lane, step.sources[0], i),
            false => self.behind(w, lane, step.sources[1], i - first),
        };
        let start = usize::from(geometry.has_layer);
        let at = |i: usize| if i < geometry.count { word(start + i) } else { 0 };
        let behind = place + bindless + levels;
        Words {
            layer: if geometry.has_layer { word(0) } else { 0 },
            place: [at(0), at(1), at(2)],
            handle: (bindless > 0).then(|| word(place)),
            offsets: if offsets { word(behind) } else { 0 },
            compared: if is(Field::Compare) { word(behind + usize::from(offsets)) } else { 0 },
        }
    }

    fn sample(&mut self, w: usize, lane: usize, step: &Step, geometry: Geometry, name: &str) -> Result<()> {
        let words = self.texture_words(w, lane, step, geometry, name);
        let object = self.texture_object(w, step, words.handle)?;
        let (distance, bits) = if name == "TLD4" { (8, 6) } else { (4, 4) };
        let offset = |i: i32| ((words.offsets >> (i * distance)) as i32) << (32 - bits) >> (32 - bits);
        let extras = Extras {
            offsets: [offset(0), offset(1), if name == "TLD4" { 0 } else { offset(2) }],
            // In fetches, this bit means that the texture is multisampled.
            compared: (name != "TLD" && step.inst.get(Field::Compare) == Some(1)).then_some(words.compared),
        };
        let place = match name {
            "TLD" => TexturePoint::Element(words.place.map(|word| i64::from(word as i32))),
            _ if geometry.is_cube => TexturePoint::Direction(words.place.map(f32::from_bits)),
            _ => TexturePoint::Sample(words.place.map(f32::from_bits)),
        };
        let mut view = self.view(w, lane);
        let values = match name {
            "TLD4" => {
                let channel = step.inst.get(Field::Op).unwrap_or(0) as usize;
                object.gather(&mut view, words.layer, place, channel, &extras)?
            }
            _ => object.fetch(&mut view, words.layer, place, &extras)?,
        };
        self.channels(w, lane, step, values);
        // All texels are resident, so the predicate is false.
        self.set_predicate(w, lane, false, step.pd, false);
        Ok(())
    }

    /// Writes the channels selected by the mask.
    fn channels(&mut self, w: usize, lane: usize, step: &Step, values: [u32; 4]) {
        let mask = step.inst.get(Field::Mask).unwrap_or(15);
        let high = step.inst.get(Field::Rd2).unwrap_or(255) as u8;
        let written = (0..4).filter(|channel| mask >> channel & 1 == 1);
        if step.inst.get(Field::Round) == Some(1) {
            let halves: Vec<u32> =
                written.map(|i| F16.from_f64(f64::from(f32::from_bits(values[i]))) as u32).collect();
            for (register, pair) in [step.rd, high].into_iter().zip(halves.chunks(2)) {
                if register != 255 {
                    self.set_register(w, lane, register, pair[0] | pair.get(1).map_or(0, |half| half << 16));
                }
            }
            return;
        }
        for (i, channel) in written.enumerate() {
            let register = if i < 2 { step.rd } else { high };
            if register != 255 {
                self.set_register(w, lane, register + i as u8 % 2, values[channel]);
            }
        }
    }

    fn surface(&mut self, w: usize, lane: usize, step: &Step, geometry: Geometry, name: &str) -> Result<()> {
        let handle = step.inst.get(Field::Rc).filter(|_| is_bindless(step));
        let handle = handle.map(|register| self.warps[w].registers[register as usize * WARP + lane]);
        let object = self.texture_object(w, step, handle)?;
        let coordinate = |i: usize| i64::from(self.behind(w, lane, step.sources[0], i) as i32);
        // Here the layer index comes last.
        let layer = if geometry.has_layer { coordinate(geometry.count) as u32 } else { 0 };
        let at = [0, 1, 2].map(|i| if i < geometry.count { coordinate(i) } else { 0 });
        let outside = match step.inst.text(Field::Clamp) {
            Some(".IGN") => Outside::Nothing,
            Some(".TRAP") => Outside::Fault,
            _ => Outside::Nearest,
        };
        let data = |this: &Self, i: usize| this.behind(w, lane, step.sources[1], i);
        if step.inst.form().name == "SUST.P" {
            let Some(address) = object.surface_element(layer, at, outside)? else { return Ok(()) };
            let words: Vec<u32> = (0..object.channels as usize).map(|i| data(self, i)).collect();
            let bytes = object.encoded(&words)?;
            let size = bytes.len() as u32;
            self.view(w, lane).slice(Space::Global, address, size)?.copy_from_slice(&bytes);
            return Ok(());
        }
        if name == "SURED" {
            return self.reduce_surface(w, lane, step, &object, (layer, at, outside));
        }
        let size = [1, 1, 2, 2, 4, 8, 16, 16][step.inst.get(Field::Size).unwrap_or(4) as usize & 7];
        if step.inst.get(Field::Flag) != Some(1) {
            return Err(FaultKind::Unsupported("elements of surfaces".into()));
        }
        let address = object.surface(layer, at, size, outside)?;
        let mut bytes = [0; 16];
        let bytes = &mut bytes[..size as usize];
        if name == "SUST" {
            for (i, chunk) in bytes.chunks_mut(4).enumerate() {
                let word = data(self, i).to_le_bytes();
                chunk.copy_from_slice(&word[..chunk.len()]);
            }
            if let Some(address) = address {
                self.view(w, lane).slice(Space::Global, address, size)?.copy_from_slice(bytes);
            }
            return Ok(());
        }
        if let Some(address) = address {
            bytes.copy_from_slice(self.view(w, lane).slice(Space::Global, address, size)?);
        }
        let bytes = bytes.to_vec();
        self.loaded(w, lane, step.rd, step.inst.get(Field::Size).unwrap_or(4) as usize, &bytes);
        self.set_predicate(w, lane, false, step.pd, false);
        Ok(())
    }

    fn reduce_surface(
        &mut self,
        w: usize,
        lane: usize,
        step: &Step,
        object: &Texture,
        (layer, at, outside): (u32, [i64; 3], Outside),
    ) -> Result<()> {
        let is_signed = object.channel == Channel::Signed;
        let (ty, size) = match step.inst.text(Field::Type).unwrap_or("") {
            ".U64" => (".64", 8),
            ".S64" => (".S64", 8),
            ".SD64" => (if is_signed { ".S64" } else { ".64" }, 8),
            ".SD32" => (if is_signed { ".S32" } else { "" }, 4),
            ty @ ("" | ".S32") => (ty, 4),
            ty => return Err(FaultKind::Unsupported(format!("a surface's reduction of {ty}"))),
        };
        let address = match step.inst.get(Field::Flag) {
            Some(1) => object.surface(layer, at, size, outside)?,
            _ => object.surface_element(layer, at, outside)?,
        };
        let Some(address) = address else { return Ok(()) };
        let words = [0, 1].map(|i| u64::from(self.behind(w, lane, step.sources[1], i)));
        let value = if size == 8 { words[0] | words[1] << 32 } else { words[0] };
        let op = step.inst.text(Field::Op).unwrap_or("");
        let field = self.view(w, lane).slice(Space::Global, address, size)?.to_vec();
        let new = super::memory::update(op, ty, false, number(&field), value)
            .ok_or_else(|| FaultKind::Unsupported(format!("a surface's reduction by {op}")))?;
        let bytes = &new.to_le_bytes()[..size as usize];
        self.view(w, lane).slice(Space::Global, address, size)?.copy_from_slice(bytes);
        Ok(())
    }
}
