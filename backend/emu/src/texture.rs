//! Textures and surfaces: views of an array of elements in a buffer.
//!
//! How a driver encodes an object is not known. Here, a handle is a number that selects the same object in both
//! executions. Elements are in rows without gaps, layer after layer. Textures have one level of detail and no cube
//! geometry. Linear filtering uses weights with eight bits of fraction, as the hardware does.

use crate::float::{F16, F32};
use crate::launch::FaultKind;
use crate::memory::{Space, View, number};
use ptx_isa::ScalarType;

/// The value for a coordinate out of bounds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Border {
    /// The nearest element.
    #[default]
    Clamp,
    Wrap,
    Mirror,
    /// Zero.
    Zero,
}

/// The type of a channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Channel {
    Unsigned,
    Signed,
    Float,
}

/// A texture or surface. Without layers, `layers` is zero. The extents of missing dimensions are one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Texture {
    pub address: u64,
    pub channel: Channel,
    /// The size of a channel in bytes: 1, 2 or 4.
    pub bytes: u32,
    /// The number of channels: 1, 2 or 4.
    pub channels: u32,
    pub extent: [u32; 3],
    pub layers: u32,
    pub linear: bool,
    /// Coordinates are in units of the extents instead of elements.
    pub normalized: bool,
    /// Integers are read as numbers from zero or from minus one to one.
    pub as_float: bool,
    pub border: Border,
}

/// The first handle, and the bits that select an object.
const FIRST: u64 = 0x10;
const INDEX: u64 = 0xf_ffff;

/// The handle of the object with an index.
pub fn handle(index: usize) -> u64 {
    FIRST + index as u64
}

/// The position of a sampler's index in a word that also has a texture's index, and its bits.
pub(crate) const SAMPLER_SHIFT: u32 = 20;
pub(crate) const SAMPLER: u64 = 0x7ff;

/// The bits of a handle that distinguish textures, samplers and surfaces.
pub(crate) fn kind(ty: ScalarType) -> u64 {
    match ty {
        ScalarType::TexRef => 1 << 61,
        ScalarType::SamplerRef => 1 << 62,
        ScalarType::SurfRef => 1 << 63,
        _ => 0,
    }
}

/// The object that a handle selects.
pub(crate) fn find(textures: &[Texture], handle: u64) -> Result<&Texture, FaultKind> {
    let index = (handle & INDEX).checked_sub(FIRST);
    let found = index.and_then(|index| textures.get(index as usize));
    found.ok_or_else(|| FaultKind::Malformed(format!("{handle:#x} is no handle of a texture or a surface")))
}

/// The texture of a handle, with the sampler of another handle or with the sampler whose index is in the upper bits of
/// the handle.
pub(crate) fn find_sampled(
    textures: &[Texture],
    handle: u64,
    sampler: Option<u64>,
) -> Result<Texture, FaultKind> {
    let own = Some(handle >> SAMPLER_SHIFT & SAMPLER).filter(|number| *number != 0);
    let object = find(textures, handle)?.clone();
    let Some(sampler) = sampler.or(own) else { return Ok(object) };
    let sampler = find(textures, sampler)?;
    let (linear, normalized, border) = (sampler.linear, sampler.normalized, sampler.border);
    Ok(Texture { linear, normalized, border, ..object })
}

/// Options of a texture read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Extras {
    /// An offset in elements.
    pub(crate) offsets: [i32; 3],
    /// The bits of a reference value for comparison. An element becomes one if the reference value is less than or
    /// equal to it, otherwise zero.
    pub(crate) compared: Option<u32>,
}

/// The face of a cube in a direction, and the coordinates on the face, from minus one to one.
fn face([x, y, z]: [f64; 3]) -> (u32, f64, f64) {
    let (ax, ay, az) = (x.abs(), y.abs(), z.abs());
    let (face, s, t, m) = match () {
        () if ax >= ay && ax >= az => {
            if x >= 0.0 {
                (0, -z, -y, ax)
            } else {
                (1, z, -y, ax)
            }
        }
        () if ay >= az => {
            if y >= 0.0 {
                (2, x, z, ay)
            } else {
                (3, x, -z, ay)
            }
        }
        () => {
            if z >= 0.0 {
                (4, x, -y, az)
            } else {
                (5, -x, -y, az)
            }
        }
    };
    (face, s / m, t / m)
}

/// The place at which a texture is read.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum TexturePoint {
    Sample([f32; 3]),
    /// In a cube, whose faces are layers.
    Direction([f32; 3]),
    /// An element, by its indices.
    Element([i64; 3]),
}

/// The size of an entry in each of the driver's tables. It is inserted into the code when the code is loaded.
pub(crate) const ENTRY_BYTES: u64 = 64;

/// The driver's tables of textures, samplers and surfaces, indexed by the numbers in handles. If a texture includes its
/// sampler, the first table also contains the data of the second.
pub(crate) fn tables(textures: &[Texture], independent: bool) -> [Vec<u8>; 3] {
    let table = |places: &[(u64, Attribute)]| {
        let mut bytes = vec![0; (FIRST * ENTRY_BYTES) as usize];
        for texture in textures {
            let mut entry = [0; ENTRY_BYTES as usize];
            for &(at, attribute) in places {
                let at = at as usize;
                entry[at..at + 4].copy_from_slice(&texture.attribute(attribute).to_le_bytes());
            }
            bytes.extend(entry);
        }
        bytes
    };
    let of_textures = if independent { TEXTURES } else { UNIFIED };
    [table(of_textures), table(SAMPLERS), table(SURFACES)]
}

const UNIFIED: &[(u64, Attribute)] = &[
    (0xc, Attribute::Addressing),
    (0x10, Attribute::Addressing),
    (0x14, Attribute::Addressing),
    (0x18, Attribute::Filter),
    (0x1c, Attribute::Normalized),
    (0x20, Attribute::DataType),
    (0x24, Attribute::Order),
    (0x28, Attribute::Layers),
    (0x2c, Attribute::Levels),
    (0x30, Attribute::Samples),
];
const TEXTURES: &[(u64, Attribute)] = &[
    (0xc, Attribute::Normalized),
    (0x10, Attribute::DataType),
    (0x14, Attribute::Order),
    (0x18, Attribute::Layers),
    (0x1c, Attribute::Levels),
    (0x20, Attribute::Samples),
];
const SAMPLERS: &[(u64, Attribute)] = &[
    (0x0, Attribute::Addressing),
    (0x4, Attribute::Addressing),
    (0x8, Attribute::Addressing),
    (0xc, Attribute::Filter),
    (0x10, Attribute::Unnormalized),
];
const SURFACES: &[(u64, Attribute)] = &[
    (0xc, Attribute::DataType),
    (0x10, Attribute::Order),
    (0x14, Attribute::Layout),
    (0x1c, Attribute::Layers),
];

/// An attribute of an object that can be queried, other than its extents.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Attribute {
    Addressing,
    Filter,
    Normalized,
    Unnormalized,
    DataType,
    Order,
    Layers,
    Levels,
    Samples,
    Layout,
}

impl Texture {
    /// An attribute as a number. For attributes of channels, PTX ISA refers to the numbers of OpenCL; it does not
    /// define others.
    pub(crate) fn attribute(&self, attribute: Attribute) -> u32 {
        match attribute {
            Attribute::Addressing => match self.border {
                Border::Wrap => 0,
                Border::Mirror => 1,
                Border::Clamp => 3,
                Border::Zero => 4,
            },
            Attribute::Filter => self.linear.into(),
            Attribute::Normalized => self.normalized.into(),
            Attribute::Unnormalized => (!self.normalized).into(),
            Attribute::DataType => match (self.channel, self.bytes) {
                (Channel::Signed, bytes) => 0x10d7 + bytes / 2,
                (Channel::Unsigned, bytes) => 0x10da + bytes / 2,
                (Channel::Float, 2) => 0x10dd,
                (Channel::Float, _) => 0x10de,
            },
            Attribute::Order => match self.channels {
                1 => 0x10b0,
                2 => 0x10b2,
                _ => 0x10b5,
            },
            Attribute::Layers => self.layers,
            Attribute::Levels | Attribute::Samples | Attribute::Layout => 1,
        }
    }

    fn element_bytes(&self) -> u32 {
        self.bytes * self.channels
    }

    /// The index of an element along a dimension. `None` if it is out of bounds and reads as zero.
    fn wrap(&self, at: i64, dimension: usize) -> Option<i64> {
        let extent = i64::from(self.extent[dimension].max(1));
        Some(match self.border {
            Border::Clamp => at.clamp(0, extent - 1),
            Border::Wrap => at.rem_euclid(extent),
            Border::Mirror => {
                let folded = at.rem_euclid(2 * extent);
                if folded < extent { folded } else { 2 * extent - 1 - folded }
            }
            Border::Zero => return (0..extent).contains(&at).then_some(at),
        })
    }

    /// The channels of an element as stored in memory, extended.
    fn raw(&self, view: &mut View<'_>, layer: u32, at: [i64; 3]) -> Result<[u64; 4], FaultKind> {
        let mut values = [0; 4];
        let places = [0, 1, 2].map(|i| self.wrap(at[i], i));
        let [Some(x), Some(y), Some(z)] = places else { return Ok(values) };
        let [width, height, depth] = self.extent.map(|extent| i64::from(extent.max(1)));
        let layer = i64::from(layer.min(self.layers.saturating_sub(1)));
        let index = ((layer * depth + z) * height + y) * width + x;
        let address = self.address + index as u64 * u64::from(self.element_bytes());
        let bytes = view.read(Space::Global, address, self.element_bytes())?;
        for (value, bytes) in values.iter_mut().zip(bytes.chunks(self.bytes as usize)) {
            let unused = 64 - 8 * self.bytes;
            *value = match self.channel {
                Channel::Signed => ((number(bytes) << unused) as i64 >> unused) as u64,
                _ => number(bytes),
            };
        }
        Ok(values)
    }

    /// A channel as a number.
    fn to_f64(&self, raw: u64) -> f64 {
        let bits = 8 * self.bytes;
        match self.channel {
            Channel::Float if self.bytes == 2 => F16.to_f64(raw),
            Channel::Float => F32.to_f64(raw),
            Channel::Unsigned => raw as f64 / ((1u64 << bits) - 1) as f64,
            Channel::Signed => (raw as i64 as f64 / ((1u64 << (bits - 1)) - 1) as f64).max(-1.0),
        }
    }

    fn is_float(&self) -> bool {
        self.as_float || self.channel == Channel::Float
    }

    /// The register values of a number or an integer. Missing channels are zero, but the fourth is one.
    fn result(&self, values: [f64; 4], raw: [u64; 4]) -> [u32; 4] {
        let mut result = [0, 0, 0, if self.is_float() { F32.one() as u32 } else { 1 }];
        for i in 0..self.channels as usize {
            result[i] = if self.is_float() { F32.from_f64(values[i]) as u32 } else { raw[i] as u32 };
        }
        result
    }

    /// The four result registers of a read.
    pub(crate) fn fetch(
        &self,
        view: &mut View<'_>,
        layer: u32,
        place: TexturePoint,
        extras: &Extras,
    ) -> Result<[u32; 4], FaultKind> {
        let moved = |at: [i64; 3]| [0, 1, 2].map(|d| at[d] + i64::from(extras.offsets[d]));
        let (layer, coordinates) = match place {
            TexturePoint::Element(at) => {
                let raw = self.raw(view, layer, moved(at))?;
                return Ok(self.result(raw.map(|raw| self.compared(raw, extras)), raw));
            }
            TexturePoint::Sample(coordinates) => (layer, self.scaled(coordinates)),
            TexturePoint::Direction(direction) => self.on_face(layer, direction),
        };
        if !self.linear || !self.is_float() {
            let raw = self.raw(view, layer, moved(coordinates.map(|x| x.floor() as i64)))?;
            return Ok(self.result(raw.map(|raw| self.compared(raw, extras)), raw));
        }
        let (corner, weights) = linear(coordinates, self.dimensions());
        let corner = moved(corner);
        let mut sums = [0.0; 4];
        for i in 0..1 << self.dimensions() {
            let offset = [0, 1, 2].map(|d| i64::from(i >> d & 1));
            let weight: f64 = (0..self.dimensions())
                .map(|d| if offset[d] == 1 { weights[d] } else { 1.0 - weights[d] })
                .product();
            let raw = self.raw(view, layer, [0, 1, 2].map(|d| corner[d] + offset[d]))?;
            sums.iter_mut().zip(raw).for_each(|(sum, raw)| *sum += weight * self.compared(raw, extras));
        }
        Ok(self.result(sums, [0; 4]))
    }

    /// One channel of the four elements that filtering would use, counter-clockwise from the lower left one.
    pub(crate) fn gather(
        &self,
        view: &mut View<'_>,
        layer: u32,
        place: TexturePoint,
        channel: usize,
        extras: &Extras,
    ) -> Result<[u32; 4], FaultKind> {
        let (layer, coordinates) = match place {
            TexturePoint::Sample(coordinates) => (layer, self.scaled(coordinates)),
            TexturePoint::Direction(direction) => self.on_face(layer, direction),
            TexturePoint::Element(_) => return Err(FaultKind::Malformed("a gather at an element".into())),
        };
        let ([x, y, z], _) = linear(coordinates, 2);
        let mut result = [0; 4];
        for (value, (dx, dy)) in result.iter_mut().zip([(0, 1), (1, 1), (1, 0), (0, 0)]) {
            *value = self.fetch(view, layer, TexturePoint::Element([x + dx, y + dy, z]), extras)?[channel];
        }
        Ok(result)
    }

    /// A channel as a number, or the result of its depth comparison.
    fn compared(&self, raw: u64, extras: &Extras) -> f64 {
        let number = self.to_f64(raw);
        match extras.compared {
            Some(bits) => f64::from(u8::from(f64::from(f32::from_bits(bits)) <= number)),
            None => number,
        }
    }

    /// The layer and the coordinates of a face. Each cube has six layers; the first two are the faces across the first
    /// axis.
    fn on_face(&self, cube: u32, direction: [f32; 3]) -> (u32, [f64; 3]) {
        let (face, s, t) = face(direction.map(f64::from));
        let along = |x: f64, d: usize| (x + 1.0) / 2.0 * f64::from(self.extent[d].max(1));
        (6 * cube + face, [along(s, 0), along(t, 1), 0.0])
    }

    fn scaled(&self, coordinates: [f32; 3]) -> [f64; 3] {
        [0, 1, 2].map(|i| {
            let scale = if self.normalized { f64::from(self.extent[i].max(1)) } else { 1.0 };
            f64::from(coordinates[i]) * scale
        })
    }

    fn dimensions(&self) -> usize {
        1 + self.extent.iter().rposition(|&extent| extent > 1).unwrap_or(0)
    }

    /// As [`surface`](Self::surface), but the first coordinate counts elements: the address of an element, and its size
    /// in bytes.
    pub(crate) fn surface_element(
        &self,
        layer: u32,
        [x, y, z]: [i64; 3],
        outside: Outside,
    ) -> Result<Option<u64>, FaultKind> {
        let bytes = self.element_bytes();
        self.surface(layer, [x * i64::from(bytes), y, z], bytes, outside)
    }

    /// An element in the stored format, from 32-bit words.
    pub(crate) fn encoded(&self, words: &[u32]) -> Result<Vec<u8>, FaultKind> {
        if self.bytes != 4 {
            return Err(FaultKind::Unsupported("narrow elements of surfaces".into()));
        }
        Ok(words.iter().take(self.channels as usize).flat_map(|word| word.to_le_bytes()).collect())
    }

    /// The bytes of a surface access whose first coordinate counts bytes. `None` if there is nothing at the place and
    /// the access has no effect.
    pub(crate) fn surface(
        &self,
        layer: u32,
        [x, y, z]: [i64; 3],
        bytes: u32,
        outside: Outside,
    ) -> Result<Option<u64>, FaultKind> {
        let [width, height, depth] = self.extent.map(|extent| i64::from(extent.max(1)));
        let (row, layers) = (width * i64::from(self.element_bytes()), i64::from(self.layers.max(1)));
        let bounds =
            [(x, row - i64::from(bytes)), (y, height - 1), (z, depth - 1), (layer.into(), layers - 1)];
        let is_inside = bounds.iter().all(|&(at, last)| (0..=last).contains(&at));
        let [x, y, z, layer] = match outside {
            _ if is_inside => bounds.map(|(at, _)| at),
            Outside::Nearest => bounds.map(|(at, last)| at.clamp(0, last.max(0))),
            Outside::Nothing => return Ok(None),
            Outside::Fault => {
                return Err(FaultKind::OutOfBounds { space: "surface", address: x as u64, size: bytes });
            }
        };
        let at = ((layer * depth + z) * height + y) * row + x;
        Ok(Some(self.address + at as u64))
    }
}

/// The effect of a surface access out of bounds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outside {
    Nothing,
    Nearest,
    Fault,
}

/// The lowest of the elements around a place, and the weights of the next ones.
fn linear(coordinates: [f64; 3], dimensions: usize) -> ([i64; 3], [f64; 3]) {
    const STEPS: f64 = 256.0;
    let mut corner = coordinates.map(|x| x.floor() as i64);
    let mut weights = [0.0; 3];
    for d in 0..dimensions {
        let from_centre = ((coordinates[d] - 0.5) * STEPS).round() / STEPS;
        corner[d] = from_centre.floor() as i64;
        weights[d] = from_centre - from_centre.floor();
    }
    (corner, weights)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Global;

    fn two_by_two() -> (Global, Texture) {
        let mut global = Global::default();
        let bytes = [1f32, 2.0, 3.0, 4.0].iter().flat_map(|x| x.to_le_bytes()).collect();
        let texture = Texture {
            address: global.add(bytes),
            channel: Channel::Float,
            bytes: 4,
            channels: 1,
            extent: [2, 2, 1],
            layers: 0,
            linear: true,
            normalized: false,
            as_float: false,
            border: Border::Clamp,
        };
        (global, texture)
    }

    fn sample(texture: &Texture, global: &mut Global, x: f32, y: f32) -> f32 {
        let mut view = View::of_global(global);
        f32::from_bits(
            texture
                .fetch(&mut view, 0, TexturePoint::Sample([x, y, 0.0]), &Extras::default())
                .expect("it is read")[0],
        )
    }

    #[test]
    fn neighbours_are_weighed() {
        let (mut global, texture) = two_by_two();
        assert_eq!(sample(&texture, &mut global, 1.0, 1.0), 2.5);
        assert_eq!(sample(&texture, &mut global, 0.5, 0.5), 1.0);
        assert_eq!(sample(&texture, &mut global, -3.0, 9.0), 3.0);
        let nearest = Texture { linear: false, normalized: true, border: Border::Wrap, ..texture };
        assert_eq!(sample(&nearest, &mut global, 1.25, 0.75), 3.0);
        let zero = Texture { border: Border::Zero, ..nearest };
        assert_eq!(sample(&zero, &mut global, 1.25, 0.75), 0.0);
    }

    #[test]
    fn surfaces_have_borders() {
        let (_, texture) = two_by_two();
        let at = |x, outside| texture.surface(0, [x, 1, 0], 4, outside);
        assert_eq!(at(4, Outside::Fault), Ok(Some(texture.address + 12)));
        assert_eq!(at(8, Outside::Nearest), Ok(Some(texture.address + 12)));
        assert_eq!(at(8, Outside::Nothing), Ok(None));
        assert!(at(-4, Outside::Fault).is_err());
    }
}
