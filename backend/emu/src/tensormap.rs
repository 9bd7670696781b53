//! Tensor maps: what a tensor copy is told about the tensor and the box that it moves.
//!
//! How the driver encodes a map is not known, and no program may look. Here the 128 bytes are words of this crate's own:
//! a mark, the rank, the bytes of an element, the width of the swizzle, the address, and by dimension, the fastest
//! first, the extent, the stride in bytes and the extent of the box. Of a tiled map without interleaving, whose elements
//! follow each other, nothing else is asked.

use crate::launch::FaultKind;
use crate::memory::{Space, View, number};
use crate::transfers::{From, Piece};
use crate::warpgroup::swizzle;

/// Bytes of a map.
pub const BYTES: usize = 128;
/// What a map begins with.
const MARK: u32 = 0x7e50_0a1b;
const DIMENSIONS: usize = 5;
/// What strides and rows of boxes are multiples of, in bytes.
const UNIT: u64 = 16;
/// What a box in shared memory is aligned to.
const BOX_ALIGN: u64 = 128;

/// A tensor and the box that copies move.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TensorMap {
    pub address: u64,
    /// Bytes of an element.
    pub element: u64,
    /// Bytes of a swizzled row: 32, 64 or 128; 16 without.
    pub swizzle: u64,
    pub dimensions: Vec<Dimension>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dimension {
    pub extent: u64,
    /// Bytes between neighbours.
    pub stride: u64,
    pub box_extent: u64,
}

impl TensorMap {
    /// A tensor whose rows follow each other; `None` for what no map describes.
    pub fn packed(element: u64, extents: &[u64], boxes: &[u64], swizzle: u64) -> Option<TensorMap> {
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
            && matches!(swizzle, 16 | 32 | 64 | 128)
            && row.is_multiple_of(UNIT)
            && (swizzle == UNIT || row <= swizzle);
        fits.then_some(TensorMap { address: 0, element, swizzle, dimensions })
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut words = vec![
            MARK,
            self.dimensions.len() as u32,
            self.element as u32,
            self.swizzle as u32,
            self.address as u32,
            (self.address >> 32) as u32,
        ];
        for d in &self.dimensions {
            words.extend([d.extent as u32, d.stride as u32, (d.stride >> 32) as u32, d.box_extent as u32]);
        }
        let mut bytes: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
        bytes.resize(BYTES, 0);
        bytes
    }

    /// The map at a generic address.
    pub(crate) fn read(view: &mut View<'_>, address: u64) -> Result<TensorMap, FaultKind> {
        if !address.is_multiple_of(64) {
            return Err(FaultKind::Misaligned { space: "global", address, size: 64 });
        }
        let bytes = view.read_bytes(Space::Generic, address, BYTES as u32)?;
        let word = |at: usize| number(&bytes[4 * at..4 * at + 4]);
        if word(0) != u64::from(MARK) || word(1) as usize > DIMENSIONS {
            return Err(FaultKind::Malformed("no tensor map is there".into()));
        }
        let dimensions = (0..word(1) as usize).map(|i| {
            let at = 6 + 4 * i;
            Dimension {
                extent: word(at),
                stride: word(at + 2) << 32 | word(at + 1),
                box_extent: word(at + 3),
            }
        });
        Ok(TensorMap {
            element: word(2),
            swizzle: word(3),
            address: word(5) << 32 | word(4),
            dimensions: dimensions.collect(),
        })
    }

    /// Bytes of a box.
    pub(crate) fn box_bytes(&self) -> u32 {
        self.dimensions.iter().fold(self.element, |bytes, d| bytes * d.box_extent) as u32
    }

    /// The elements of the box at some coordinates, `shared` being its address in the cluster. What lies outside of the
    /// tensor is zero when loaded and stays when stored.
    pub(crate) fn pieces(
        &self,
        coordinates: &[i32],
        shared: u64,
        loads: bool,
    ) -> Result<Vec<Piece>, FaultKind> {
        if coordinates.len() != self.dimensions.len() {
            return Err(FaultKind::Malformed("a tensor of another rank".into()));
        }
        if !shared.is_multiple_of(BOX_ALIGN) {
            return Err(FaultKind::Misaligned { space: "shared", address: shared, size: BOX_ALIGN as u32 });
        }
        let size = self.element as u32;
        let count = u64::from(self.box_bytes()) / self.element;
        let mut pieces = Vec::new();
        for index in 0..count {
            let (mut left, mut address, mut inside) = (index, self.address, true);
            for (d, &start) in self.dimensions.iter().zip(coordinates) {
                let at = i64::from(start) + (left % d.box_extent) as i64;
                left /= d.box_extent;
                inside &= (0..d.extent as i64).contains(&at);
                address = address.wrapping_add(d.stride.wrapping_mul(at as u64));
            }
            let place = swizzle(shared + index * self.element, self.swizzle);
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Global;

    #[test]
    fn maps_are_read_as_written() {
        let mut global = Global::default();
        let mut map = TensorMap::packed(2, &[64, 32, 5], &[16, 8, 1], 32).unwrap();
        map.address = 0x12_3456_7890;
        let address = global.add(map.encode());
        assert_eq!(TensorMap::read(&mut View::of_global(&mut global), address), Ok(map));
        assert!(TensorMap::packed(2, &[64], &[4], 16).is_none());
        assert!(TensorMap::packed(4, &[64, 2], &[16, 2], 32).is_none());
    }

    #[test]
    fn a_box_over_the_edge() {
        let map = TensorMap::packed(4, &[8, 2], &[4, 2], 16).unwrap();
        let inside = |pieces: &[Piece]| pieces.iter().filter(|p| matches!(p.from, From::Memory(..))).count();
        let loaded = map.pieces(&[-1, 1], 0x400, true).unwrap();
        assert_eq!((loaded.len(), inside(&loaded)), (8, 3));
        let stored = map.pieces(&[6, 0], 0x400, false).unwrap();
        assert_eq!(stored.len(), 4);
        assert_eq!(stored[2].to, (Space::Global, 32 + 6 * 4));
    }
}
