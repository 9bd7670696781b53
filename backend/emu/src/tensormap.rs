//! Tensor maps: the tensor, and the box that a tensor copy moves.
//!
//! Tensor maps are opaque, but `tensormap.replace` changes fields of them in memory, and ptxas's code for it shows
//! their places: the address, the rank, the type, extents, strides, the box and the swizzle. The emulator uses the same
//! places. A marker of its own in the last word distinguishes a map from other bytes. Maps of images have their box of
//! pixels at places that are the emulator's own, which no instruction changes. Interleaving and element strides are not
//! implemented.

use crate::launch::FaultKind;
use crate::memory::{Space, View, number};
use crate::transfers::{From, Piece};
use crate::warpgroup::swizzle;

/// The size of a map in bytes.
pub const BYTES: usize = 128;
/// The marker at the end of a map.
const MARK: u32 = 0x7e50_0a1b;
const DIMENSIONS: usize = 5;
/// Strides and rows of boxes must be multiples of this, in bytes.
const UNIT: u64 = 16;
/// The number of rows that are copied together from arbitrary places of a matrix.
const ROWS: u32 = 4;
/// The place of the number of pixels in a column, which is zero except in maps of images, and of the corners of the
/// box.
const PIXELS_AT: usize = 0x40;
const CORNERS_AT: usize = 0x44;
/// The largest number of pixels in a column.
const PIXELS: u64 = 1024;
/// The alignment of a box in shared memory.
const BOX_ALIGN: u64 = 128;

/// The element types by number, with the size of each in bytes.
const ELEMENTS: &[(&str, u64)] = &[
    ("u8", 1),
    ("u16", 2),
    ("u32", 4),
    ("s32", 4),
    ("u64", 8),
    ("s64", 8),
    ("f16", 2),
    ("f32", 4),
    ("f32.ftz", 4),
    ("f64", 8),
    ("bf16", 2),
    ("tf32", 4),
    ("tf32.ftz", 4),
];
/// The size of a swizzled row in bytes, by the number of the mode; 16 without swizzling.
const SWIZZLES: [u64; 4] = [UNIT, 32, 64, 128];

/// A field of a map that `tensormap.replace` changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    Address,
    /// The rank minus one.
    Rank,
    Element,
    Swizzle,
    /// The extent in a dimension. The following fields also have a dimension.
    Extent(usize),
    /// The distance in bytes between neighbors in the next dimension.
    Stride(usize),
    Box(usize),
}

/// Changes a field of a map. `None` if the map cannot represent the value.
pub fn replace(map: &mut [u8], part: Part, value: u64) -> Option<()> {
    let mut set = |at: usize, low: u32, bits: u32, value: u64| {
        let place = map.get_mut(at..at + 4)?;
        let mask = (u32::MAX >> (32 - bits)) << low;
        let word = number(place) as u32 & !mask | (value as u32) << low & mask;
        place.copy_from_slice(&word.to_le_bytes());
        Some(())
    };
    let dimension = |i: usize| (i < DIMENSIONS).then_some(i);
    match part {
        Part::Address => {
            set(0, 0, 32, value)?;
            set(4, 0, 32, value >> 32)
        }
        Part::Rank => set(8, 4, 3, value),
        Part::Element => set(8, 7, 4, value),
        Part::Swizzle => set(8, 13, 2, value),
        Part::Extent(i) => set(0x20 + 4 * dimension(i)?, 0, 32, value.wrapping_sub(1)),
        Part::Stride(i) => {
            let i = dimension(i + 1)? - 1;
            set(0xc + 4 * i, 0, 32, value / UNIT)?;
            set(0x1c, 4 * i as u32, 4, (value / UNIT) >> 32)
        }
        Part::Box(0) => set(0x34, 24, 8, value.wrapping_sub(1)),
        Part::Box(i) => set(0x38, 8 * (dimension(i)? as u32 - 1), 8, value.wrapping_sub(1)),
    }
}

/// A tensor, and the box that copies move.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TensorMap {
    pub address: u64,
    /// The number of the element type.
    pub kind: u64,
    /// The size of a swizzled row in bytes: 32, 64 or 128; 16 without swizzling.
    pub swizzle: u64,
    pub dimensions: Vec<Dimension>,
    /// Copies move a column of pixels instead of a box.
    pub image: Option<Image>,
}

/// The tensor is an array of images: the first dimension is the channels, the last one the images, and the others are
/// the pixels. A copy moves the first channels of a run of pixels.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Image {
    /// The first and the last pixel in each dimension, relative to those of the image.
    pub corners: Vec<[i16; 2]>,
    pub pixels: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dimension {
    pub extent: u64,
    /// The distance in bytes between neighbors.
    pub stride: u64,
    pub box_extent: u64,
}

impl TensorMap {
    /// A tensor without gaps between its rows. `None` if a map cannot represent it.
    pub fn packed(ty: &str, extents: &[u64], boxes: &[u64], swizzle: u64) -> Option<TensorMap> {
        let ty = match ty {
            "s8" => "u8",
            "s16" => "u16",
            ty => ty,
        };
        let kind = ELEMENTS.iter().position(|(name, _)| *name == ty)?;
        let element = ELEMENTS[kind].1;
        let mut stride = element;
        let mut dimensions = Vec::new();
        for (&extent, &box_extent) in extents.iter().zip(boxes) {
            dimensions.push(Dimension { extent, stride, box_extent });
            stride = stride.checked_mul(extent)?;
        }
        let row = element * boxes.first()?;
        let fits = (1..=DIMENSIONS).contains(&extents.len())
            && extents.len() == boxes.len()
            && dimensions[1..].iter().all(|d| d.stride.is_multiple_of(UNIT))
            && dimensions.iter().all(|d| (1..=256).contains(&d.box_extent) && d.extent > 0)
            && SWIZZLES.contains(&swizzle)
            && row.is_multiple_of(UNIT)
            && (swizzle == UNIT || row <= swizzle);
        fits.then_some(TensorMap { address: 0, kind: kind as u64, swizzle, dimensions, image: None })
    }

    /// Images without gaps between their rows. Copies move `channels` channels of a number of pixels. `None` if a map
    /// cannot represent them.
    pub fn images(ty: &str, extents: &[u64], channels: u64, image: Image, swizzle: u64) -> Option<TensorMap> {
        let mut boxes = vec![1; extents.len()];
        *boxes.first_mut()? = channels;
        let map = TensorMap::packed(ty, extents, &boxes, swizzle)?;
        let within = map.pixel_extents(&image).all(|extent| extent > 0);
        let fits = (3..=DIMENSIONS).contains(&extents.len())
            && image.corners.len() + 2 == extents.len()
            && (1..=PIXELS).contains(&image.pixels)
            && within;
        fits.then_some(TensorMap { image: Some(image), ..map })
    }

    /// The number of pixels in each dimension.
    fn pixel_extents(&self, image: &Image) -> impl Iterator<Item = i64> {
        let extents = self.dimensions[1..].iter().map(|d| d.extent as i64);
        extents
            .zip(&image.corners)
            .map(|(extent, &[first, last])| extent + i64::from(last) - i64::from(first))
    }

    /// The name of the element type.
    pub fn ty(&self) -> &'static str {
        ELEMENTS[self.kind as usize].0
    }

    /// The size of an element in bytes.
    pub fn element(&self) -> u64 {
        ELEMENTS[self.kind as usize].1
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0; BYTES];
        bytes[BYTES - 4..].copy_from_slice(&MARK.to_le_bytes());
        let mode = SWIZZLES.iter().position(|&swizzle| swizzle == self.swizzle);
        let mut put = |part, value| replace(&mut bytes, part, value).expect("a map has few dimensions");
        put(Part::Address, self.address);
        put(Part::Rank, self.dimensions.len() as u64 - 1);
        put(Part::Element, self.kind);
        put(Part::Swizzle, mode.unwrap_or(0) as u64);
        for (i, d) in self.dimensions.iter().enumerate() {
            put(Part::Extent(i), d.extent);
            put(Part::Box(i), d.box_extent);
            if i > 0 {
                put(Part::Stride(i - 1), d.stride);
            }
        }
        if let Some(image) = &self.image {
            bytes[PIXELS_AT..PIXELS_AT + 4].copy_from_slice(&(image.pixels as u32).to_le_bytes());
            for (place, corner) in bytes[CORNERS_AT..].chunks_mut(2).zip(image.corners.iter().flatten()) {
                place.copy_from_slice(&corner.to_le_bytes());
            }
        }
        bytes
    }

    /// Reads the map at a generic address.
    pub(crate) fn read(view: &mut View<'_>, address: u64) -> Result<TensorMap, FaultKind> {
        if !address.is_multiple_of(64) {
            return Err(FaultKind::Misaligned { space: "global", address, size: 64 });
        }
        let bytes = view.read_bytes(Space::Generic, address, BYTES as u32)?;
        let word = |at: usize| number(&bytes[at..at + 4]);
        let bits = |at: usize, low: u32, bits: u32| word(at) >> low & (u64::MAX >> (64 - bits));
        let (rank, kind) = (bits(8, 4, 3) as usize + 1, bits(8, 7, 4));
        if word(BYTES - 4) != u64::from(MARK) || rank > DIMENSIONS || kind as usize >= ELEMENTS.len() {
            return Err(FaultKind::Malformed("no tensor map is there".into()));
        }
        let element = ELEMENTS[kind as usize].1;
        let dimensions = (0..rank).map(|i| Dimension {
            extent: word(0x20 + 4 * i) + 1,
            stride: match i.checked_sub(1) {
                None => element,
                Some(i) => (bits(0x1c, 4 * i as u32, 4) << 32 | word(0xc + 4 * i)) * UNIT,
            },
            box_extent: 1 + match i {
                0 => bits(0x34, 24, 8),
                i => bits(0x38, 8 * (i as u32 - 1), 8),
            },
        });
        let corner = |at: usize| number(&bytes[at..at + 2]) as i16;
        let corners = (0..rank.saturating_sub(2)).map(|i| [0, 2].map(|end| corner(CORNERS_AT + 4 * i + end)));
        let image = match word(PIXELS_AT) {
            0 => None,
            pixels => Some(Image { corners: corners.collect(), pixels }),
        };
        Ok(TensorMap {
            image,
            kind,
            swizzle: SWIZZLES[bits(8, 13, 2) as usize],
            address: word(4) << 32 | word(0),
            dimensions: dimensions.collect(),
        })
    }

    /// The number of bytes that a copy at these coordinates moves.
    pub(crate) fn bytes(&self, coordinates: &[i32]) -> u32 {
        let boxes = if self.gathers(coordinates) { ROWS } else { 1 };
        self.box_bytes() * boxes
    }

    /// The size of a box or of a column of pixels in bytes.
    fn box_bytes(&self) -> u32 {
        let pixels = self.image.as_ref().map_or(1, |image| image.pixels);
        self.dimensions.iter().fold(self.element() * pixels, |bytes, d| bytes * d.box_extent) as u32
    }

    /// Whether a copy moves arbitrary rows of a matrix. The coordinates are then a column and the number of each row.
    fn gathers(&self, coordinates: &[i32]) -> bool {
        self.dimensions.len() == 2 && coordinates.len() == 1 + ROWS as usize
    }

    /// The elements of the box at some coordinates; or of the column of pixels that begins there, as pixels at offsets
    /// from it. `shared` is the address in the cluster. Elements outside of the tensor are zero when loaded, and not
    /// written when stored.
    pub(crate) fn pieces(
        &self,
        coordinates: &[i32],
        offsets: Option<&[u64]>,
        shared: u64,
        loads: bool,
    ) -> Result<Vec<Piece>, FaultKind> {
        let malformed = |text: &str| Err(FaultKind::Malformed(text.into()));
        let gathers = self.gathers(coordinates);
        if gathers && self.dimensions[1].box_extent != 1 {
            return malformed("rows of a box that has several");
        }
        if !gathers && coordinates.len() != self.dimensions.len() {
            return malformed("a tensor of another rank");
        }
        if offsets.is_some() != self.image.is_some() {
            return malformed("a copy of pixels with a map of boxes, or of a box with a map of pixels");
        }
        if !shared.is_multiple_of(BOX_ALIGN) {
            return Err(FaultKind::Misaligned { space: "shared", address: shared, size: BOX_ALIGN as u32 });
        }
        let size = self.element() as u32;
        let count = u64::from(self.box_bytes()) / self.element();
        let mut pieces = Vec::new();
        for index in 0..u64::from(self.bytes(coordinates)) / self.element() {
            let row = [coordinates[0], coordinates[(1 + index / count) as usize % coordinates.len()]];
            let starts = if gathers { &row[..] } else { coordinates };
            let place = match (&self.image, offsets) {
                (Some(image), Some(offsets)) => self.in_column(image, starts, offsets, index),
                _ => self.in_box(starts, index % count),
            };
            let (mut address, mut inside) = (self.address, true);
            for (d, at) in self.dimensions.iter().zip(place) {
                inside &= (0..d.extent as i64).contains(&at);
                address = address.wrapping_add(d.stride.wrapping_mul(at as u64));
            }
            let place = swizzle(shared + index * self.element(), self.swizzle);
            let (place, element) = ((Space::Cluster, place), (Space::Global, address));
            let piece = match (loads, inside) {
                (true, true) => Piece { from: From::Memory(element.0, element.1), to: place, size },
                (true, false) => Piece { from: From::Bytes(vec![0; size as usize]), to: place, size },
                (false, true) => Piece { from: From::Memory(place.0, place.1), to: element, size },
                (false, false) => continue,
            };
            pieces.push(piece);
        }
        Ok(pieces)
    }

    /// The coordinates of an element of a box.
    fn in_box(&self, starts: &[i32], index: u64) -> Vec<i64> {
        let mut left = index;
        let along = |(d, &start): (&Dimension, &i32)| {
            let at = i64::from(start) + (left % d.box_extent) as i64;
            left /= d.box_extent;
            at
        };
        self.dimensions.iter().zip(starts).map(along).collect()
    }

    /// The coordinates of an element of a column of pixels. Pixels are ordered by rows, and rows by images.
    fn in_column(&self, image: &Image, starts: &[i32], offsets: &[u64], index: u64) -> Vec<i64> {
        let channels = self.dimensions[0].box_extent;
        let mut place = vec![i64::from(starts[0]) + (index % channels) as i64];
        let mut pixels = (index / channels) as i64;
        for (i, extent) in self.pixel_extents(image).enumerate() {
            let first = i64::from(image.corners[i][0]);
            let at = i64::from(starts[i + 1]) - first + pixels;
            place.push(first + at.rem_euclid(extent) + offsets.get(i).map_or(0, |&offset| offset as i64));
            pixels = at.div_euclid(extent);
        }
        place.push(i64::from(starts[starts.len() - 1]) + pixels);
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Global;

    #[test]
    fn maps_are_read_as_written() {
        let mut global = Global::default();
        let mut map = TensorMap::packed("f16", &[64, 32, 5], &[16, 8, 1], 32).unwrap();
        map.address = 0x12_3456_7890;
        let address = global.add(map.encode());
        assert_eq!(TensorMap::read(&mut View::of_global(&mut global), address), Ok(map));
        assert!(TensorMap::packed("u16", &[64], &[4], 16).is_none());
        assert!(TensorMap::packed("f32", &[64, 2], &[16, 2], 32).is_none());
    }

    #[test]
    fn fields_are_replaced() {
        let map = |extent, element| TensorMap::packed(element, &[64, extent], &[16, 8], 32).unwrap();
        let mut bytes = map(32, "f16").encode();
        replace(&mut bytes, Part::Extent(1), 5).unwrap();
        replace(&mut bytes, Part::Element, 1).unwrap();
        assert_eq!(bytes, map(5, "u16").encode());
        assert_eq!(replace(&mut bytes, Part::Stride(4), 16), None);
    }

    #[test]
    fn a_box_over_the_edge() {
        let map = TensorMap::packed("f32", &[8, 2], &[4, 2], 16).unwrap();
        let inside = |pieces: &[Piece]| pieces.iter().filter(|p| matches!(p.from, From::Memory(..))).count();
        let loaded = map.pieces(&[-1, 1], None, 0x400, true).unwrap();
        assert_eq!((loaded.len(), inside(&loaded)), (8, 3));
        let stored = map.pieces(&[6, 0], None, 0x400, false).unwrap();
        assert_eq!(stored.len(), 4);
        assert_eq!(stored[2].to, (Space::Global, 32 + 6 * 4));
    }

    #[test]
    fn pixels_over_the_edges_of_rows_and_images() {
        // Two images of 4×3 pixels, with a window of 3×3 around each pixel.
        let image = Image { corners: vec![[-1, -1]; 2], pixels: 6 };
        let mut map = TensorMap::images("f32", &[8, 4, 3, 2], 4, image, 16).unwrap();
        map.address = 0x1000;
        let mut global = Global::default();
        let address = global.add(map.encode());
        assert_eq!(TensorMap::read(&mut View::of_global(&mut global), address), Ok(map.clone()));
        let columns = |starts: &[i32], offsets: &[u64]| -> Vec<Option<u64>> {
            let pieces = map.pieces(starts, Some(offsets), 0x400, true).unwrap();
            let address = |piece: &Piece| match piece.from {
                From::Memory(_, address) => Some((address - 0x1000) / 32),
                From::Bytes(_) => None,
            };
            pieces.iter().step_by(4).map(address).collect()
        };
        let all = |pixels: [u64; 6]| pixels.map(Some).to_vec();
        // The pixel in the middle of the window: those in the last row of the first image, then the second image.
        assert_eq!(columns(&[0, 1, 1, 0], &[1, 1]), all([10, 11, 12, 13, 14, 15]));
        let above = columns(&[0, 1, 1, 0], &[1, 0]);
        assert_eq!(above, [Some(6), Some(7), None, None, None, None]);
        let left = columns(&[4, -1, 0, 1], &[0, 1]);
        assert_eq!(left, [None, Some(16), Some(17), Some(18), None, Some(20)]);
    }
}
