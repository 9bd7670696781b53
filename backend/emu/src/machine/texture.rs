//! Textures and surfaces. Coordinates lie in registers one behind the other, a layer's number first; `.SCR` splits them
//! between the first two sources. The first two channels that are written go to one destination, the others to another.

use super::decode::Step;
use super::operand::{Kind, Source};
use super::{Block, Result, WARP, each};
use crate::launch::FaultKind;
use crate::memory::Space;
use crate::texture::{self, Outside, Place, Texture};
use sass::Field;

pub(super) const MNEMONICS: &[&str] = &["TEX", "TLD", "TLD4", "TXQ", "SULD", "SUST"];

/// How many coordinates the instruction has, and whether a layer's number comes first.
fn geometry(text: &str) -> Option<(usize, bool)> {
    Some(match text.trim_start_matches('.') {
        "1D" => (1, false),
        "2D" => (2, false),
        "3D" => (3, false),
        "ARRAY_1D" | "1D_ARRAY" => (1, true),
        "ARRAY_2D" | "2D_ARRAY" => (2, true),
        _ => return None,
    })
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
        let extras = [Field::Offsets, Field::Compare, Field::Mode2, Field::Round, Field::Index];
        if extras.iter().any(|&field| get(field) != 0) {
            return unsupported();
        }
        match name {
            "SULD" | "SUST" => {
                let is_raw = step.inst.form().name != "SUST.P" && get(Field::Flag) == 1;
                let Some(geometry) = geometry(step.inst.text(Field::Dims).unwrap_or("")).filter(|_| is_raw)
                else {
                    return unsupported();
                };
                each(mask).try_for_each(|lane| self.surface(w, lane, step, geometry, name == "SUST"))
            }
            "TXQ" => {
                if step.inst.text(Field::Op) != Some("TEX_HEADER_DIMENSION") || get(Field::Mask) & 8 != 0 {
                    return unsupported();
                }
                for lane in each(mask) {
                    let [width, height, depth] = self.texture_object(w, lane, step)?.extent;
                    self.channels(w, lane, step, [width, height, depth, 0]);
                }
                Ok(())
            }
            _ => {
                let geometry = geometry(step.inst.text(Field::Dims).unwrap_or(""));
                let (Some(geometry), true) = (geometry, name != "TEX" || get(Field::Lod) <= 3) else {
                    return unsupported();
                };
                each(mask).try_for_each(|lane| self.sample(w, lane, step, geometry, name))
            }
        }
    }

    /// The object that the handle tells: a constant, or a uniform register.
    fn texture_object(&self, w: usize, lane: usize, step: &Step) -> Result<Texture> {
        let handle = match (step.inst.get(Field::COffset), step.inst.get(Field::Ur)) {
            _ if step.inst.form().shape == "r" => {
                return Err(FaultKind::Unsupported("a handle in a register".into()));
            }
            (Some(word), _) => self.constant(step.inst.get(Field::CBank).unwrap_or(0) as u8, 4 * word, 4)?,
            (None, Some(register)) => self.warps[w].uniform[register as usize].into(),
            (None, None) => return Err(FaultKind::Unsupported("a texture without a handle".into())),
        };
        let _ = lane;
        texture::find(&self.device.textures, handle).cloned()
    }

    /// A register behind that of a source.
    fn behind(&self, w: usize, lane: usize, source: Source, by: usize) -> u32 {
        match source.kind {
            Kind::Register(index) if index != 255 => {
                self.warps[w].registers[(usize::from(index) + by).min(255) * WARP + lane]
            }
            _ => 0,
        }
    }

    /// The layer and the coordinates; of floats the bits.
    fn coordinates(
        &self,
        w: usize,
        lane: usize,
        step: &Step,
        (count, has_layer): (usize, bool),
        follows: usize,
    ) -> (u32, [u32; 3]) {
        let words = count + usize::from(has_layer);
        let scattered = step.inst.form().mnemonic.starts_with('T') && step.inst.get(Field::Flag) == Some(1);
        // Half of all that there is, at most two, is in the first source.
        let first = if scattered { (words + follows).div_ceil(2).min(2) } else { words };
        let mut values = [0; 4];
        for (i, value) in values.iter_mut().take(words).enumerate() {
            let (source, by) = if i < first { (0, i) } else { (1, i - first) };
            *value = self.behind(w, lane, step.sources[source], by);
        }
        let [layer, rest @ ..] = values;
        if has_layer { (layer, rest) } else { (0, [values[0], values[1], values[2]]) }
    }

    fn sample(
        &mut self,
        w: usize,
        lane: usize,
        step: &Step,
        geometry: (usize, bool),
        name: &str,
    ) -> Result<()> {
        let object = self.texture_object(w, lane, step)?;
        let levels = matches!(step.inst.text(Field::Lod), Some(".LL" | ".LB"));
        let (layer, words) = self.coordinates(w, lane, step, geometry, usize::from(levels));
        let mut view = self.view(w, lane);
        let values = match name {
            "TLD4" => {
                let channel = step.inst.get(Field::Op).unwrap_or(0) as usize;
                object.gather(&mut view, layer, words.map(f32::from_bits), channel)?
            }
            "TLD" => {
                let at = words.map(|word| i64::from(word as i32));
                object.fetch(&mut view, layer, Place::Element(at))?
            }
            _ => object.fetch(&mut view, layer, Place::Sample(words.map(f32::from_bits)))?,
        };
        self.channels(w, lane, step, values);
        self.set_predicate(w, lane, false, step.pd, true);
        Ok(())
    }

    /// Writes the channels of the mask.
    fn channels(&mut self, w: usize, lane: usize, step: &Step, values: [u32; 4]) {
        let mask = step.inst.get(Field::Mask).unwrap_or(15);
        let high = step.inst.get(Field::Rd2).unwrap_or(255) as u8;
        let written = (0..4).filter(|channel| mask >> channel & 1 == 1);
        for (i, channel) in written.enumerate() {
            let register = if i < 2 { step.rd } else { high };
            if register != 255 {
                self.set_register(w, lane, register + i as u8 % 2, values[channel]);
            }
        }
    }

    fn surface(
        &mut self,
        w: usize,
        lane: usize,
        step: &Step,
        (count, has_layer): (usize, bool),
        stores: bool,
    ) -> Result<()> {
        let object = self.texture_object(w, lane, step)?;
        let coordinate = |i: usize| i64::from(self.behind(w, lane, step.sources[0], i) as i32);
        // Here a layer's number comes last.
        let layer = if has_layer { coordinate(count) as u32 } else { 0 };
        let at = [0, 1, 2].map(|i| if i < count { coordinate(i) } else { 0 });
        let size = [1, 1, 2, 2, 4, 8, 16, 16][step.inst.get(Field::Size).unwrap_or(4) as usize & 7];
        let outside = match step.inst.text(Field::Clamp) {
            Some(".IGN") => Outside::Nothing,
            Some(".TRAP") => Outside::Fault,
            _ => Outside::Nearest,
        };
        let address = object.surface(layer, at, size, outside)?;
        let mut bytes = [0; 16];
        let bytes = &mut bytes[..size as usize];
        if stores {
            let data = step.sources[1];
            for (i, chunk) in bytes.chunks_mut(4).enumerate() {
                let word = self.behind(w, lane, data, i).to_le_bytes();
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
        self.set_predicate(w, lane, false, step.pd, true);
        Ok(())
    }
}
