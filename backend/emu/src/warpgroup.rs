//! Products of a warpgroup: the place of a factor in shared memory, from its descriptor, and one warp's quarter of the
//! result.
//!
//! A factor consists of rows of 16 bytes. Eight of them, one for each row (or for each k, if the factor is transposed),
//! make a core matrix. Source: the strides and canonical layouts of `wgmma` in the PTX manual.

use crate::launch::{FaultKind, WARP};
use crate::matrix::{Element, Fragment, Product as Tile, Sum, total};
use crate::sparse::Metadata;

/// The number of rows that a warp computes.
const ROWS: usize = 16;
/// The size of a row of a core matrix in bytes.
const UNIT: u64 = 16;

/// The layout of a factor, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Layout {
    start: u64,
    leading: u64,
    stride: u64,
    /// The size of a swizzled row in bytes: 32, 64 or 128; 16 without swizzling.
    width: u64,
}

impl Layout {
    fn of(descriptor: u64) -> Result<Layout, FaultKind> {
        let field = |low: u32| (descriptor >> low & 0x3fff) * UNIT;
        if descriptor >> 49 & 7 != 0 {
            return Err(FaultKind::Unsupported("a descriptor with a base offset".into()));
        }
        let width = [16, 128, 64, 32][(descriptor >> 62) as usize];
        Ok(Layout { start: field(0), leading: field(16), stride: field(32), width })
    }

    /// The layout in the descriptor of a product in tensor memory. Such a descriptor has more swizzle modes, with other
    /// numbers.
    pub(crate) fn of_tensor(descriptor: u64) -> Result<Layout, FaultKind> {
        let mode = match descriptor >> 61 {
            0 => 0,
            2 => 1,
            4 => 2,
            6 => 3,
            mode => return Err(FaultKind::Unsupported(format!("a descriptor with swizzle {mode}"))),
        };
        if descriptor >> 52 & 1 == 1 {
            return Err(FaultKind::Unsupported("a descriptor with an absolute distance".into()));
        }
        // The other bits are the same as in descriptors of warpgroup products.
        const SAME: u64 = 0x000e_3fff_3fff_3fff;
        Layout::of(descriptor & SAME | mode << 62)
    }

    /// The address of an element: the row of the first factor or the column of the second, and k.
    pub(crate) fn address(self, transposed: bool, mn: usize, k: usize, bytes: u64) -> u64 {
        let Layout { start, leading, stride, width } = self;
        let (mn, k) = (mn as u64, k as u64);
        let per = UNIT / bytes;
        // The index along the row, and the index of the row.
        let (along, across) = if transposed { (mn, k) } else { (k, mn) };
        let (unit, within) = (along / per, along % per * bytes);
        let place = match (width, transposed) {
            (UNIT, false) => unit * leading + across / 8 * stride + across % 8 * UNIT,
            (UNIT, true) => unit * stride + across / 8 * leading + across % 8 * UNIT,
            // Rows are as wide as the swizzle pattern. Transposed factors have many patterns side by side.
            _ => {
                let units = width / UNIT;
                let (inside, beside) = (unit % units * UNIT, unit / units * leading);
                inside + beside + across / 8 * stride + across % 8 * width
            }
        };
        swizzle(start + place, width) + within
    }
}

/// The address in shared memory of a byte, given its address without swizzling, for rows of `width` bytes. Each row of
/// a pattern has its 16-byte units in a different order, which depends on the address bits from seven on.
pub(crate) fn swizzle(address: u64, width: u64) -> u64 {
    address ^ (address >> 3 & ((width / UNIT - 1) << 4))
}

/// The place of the first factor.
pub(crate) enum Factor {
    Shared(u64),
    /// The rows of this warp, in registers.
    Registers(Fragment),
}

/// A product D = A·B + D of a matrix with 64 rows.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Product {
    pub(crate) columns: usize,
    pub(crate) depth: usize,
    pub(crate) a: Element,
    pub(crate) b: Element,
    pub(crate) sum: Sum,
    pub(crate) negated: [bool; 2],
    /// Whether the columns of A, or the rows of B, are contiguous in memory.
    pub(crate) transposed: [bool; 2],
}

impl Product {
    /// The number of registers of the result in each thread.
    pub(crate) fn result_registers(&self) -> usize {
        self.columns / if self.sum == Sum::F16 { 4 } else { 2 }
    }

    /// Computes the rows of one of the four warps. `metadata` belongs to a sparse first factor, `start` is the
    /// accumulator, and `read` reads shared memory at an address, with a size.
    pub(crate) fn quarter(
        &self,
        warp: usize,
        (first, metadata): (&Factor, Option<Metadata<'_>>),
        second: u64,
        start: Option<&Fragment>,
        mut read: impl FnMut(u64, u32) -> Result<u64, FaultKind>,
    ) -> Result<Fragment, FaultKind> {
        let mut load = |layout: Layout, side: usize, mn: usize, k: usize| {
            let element = if side == 0 { self.a } else { self.b };
            if element.bits() == 1 {
                // The elements in a byte, from the lowest bits on.
                return Ok(read(layout.address(false, mn, k / 8, 1), 1)? >> (k % 8) & 1);
            }
            let bytes = element.bits() / 8;
            read(layout.address(self.transposed[side], mn, k, bytes.into()), bytes)
        };
        let sign = |side: usize, element: Element| match self.negated[side] {
            true => 1 << (element.bits() - 1),
            false => 0,
        };
        let (flip_a, flip_b) = (sign(0, self.a), sign(1, self.b));
        let tile = Tile { rows: ROWS, depth: self.depth, a: self.a, b: self.b, sum: self.sum };
        // The number of stored elements in each row.
        let kept = if metadata.is_some() { self.depth / 2 } else { self.depth };
        let mut a = Vec::new();
        for (row, k) in (0..ROWS).flat_map(|row| (0..kept).map(move |k| (row, k))) {
            let bits = match first {
                Factor::Registers(fragment) => tile.a(fragment, row, k),
                Factor::Shared(descriptor) => load(Layout::of(*descriptor)?, 0, warp % 4 * ROWS + row, k)?,
            };
            a.push(bits ^ flip_a);
        }
        let layout = Layout::of(second)?;
        let mut b = Vec::new();
        for (column, k) in (0..self.columns).flat_map(|column| (0..self.depth).map(move |k| (column, k))) {
            b.push(load(layout, 1, column, k)? ^ flip_b);
        }
        // For each of them, the element of a column that it is multiplied with.
        let meets: Vec<Vec<(usize, usize)>> = (0..ROWS)
            .map(|row| match &metadata {
                Some(metadata) => metadata.places(&tile, row).collect(),
                None => (0..self.depth).map(|k| (k, k)).collect(),
            })
            .collect();
        let half = self.sum == Sum::F16;
        let mut result = vec![[0; WARP]; self.result_registers()];
        for (row, column) in (0..ROWS).flat_map(|row| (0..self.columns).map(move |column| (row, column))) {
            let lane = row % 8 * 4 + column % 8 / 2;
            let position = column / 8 * 4 + row / 8 * 2 + column % 2;
            let (register, shift) = if half { (position / 2, position % 2 * 16) } else { (position, 0) };
            let bits = if half { 0xffff } else { u32::MAX };
            let old = start.map_or(0, |start| start[register][lane] >> shift & bits);
            let (a, b) = (&a[row * kept..], &b[column * self.depth..]);
            let factors = meets[row].iter().map(|&(place, k)| (a[place], b[k]));
            let sum = total(self.a, self.b, self.sum, factors, old.into()) as u32;
            result[register][lane] |= (sum & bits) << shift;
        }
        Ok(result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In every layout, the elements of a factor have different places, and rows of 16 bytes are contiguous.
    #[test]
    fn layouts_hold_every_element_once() {
        let (rows, depth) = (64, 16);
        for (mode, transposed) in (0..4).flat_map(|mode| [(mode, false), (mode, true)]) {
            let width = [16, 128, 64, 32][mode];
            let (leading, stride) = match (width, transposed) {
                (16, false) => (128, 256),
                (16, true) => (1024, 128),
                (_, false) => (0, 8 * width),
                (_, true) => (16 * width, 8 * width),
            };
            let descriptor = (mode as u64) << 62 | (stride / UNIT) << 32 | (leading / UNIT) << 16 | 64;
            let layout = Layout::of(descriptor).unwrap();
            let mut places: Vec<u64> = (0..rows)
                .flat_map(|mn| (0..depth).map(move |k| layout.address(transposed, mn, k, 2)))
                .collect();
            let next =
                if transposed { layout.address(true, 1, 3, 2) } else { layout.address(false, 3, 1, 2) };
            let first =
                if transposed { layout.address(true, 0, 3, 2) } else { layout.address(false, 3, 0, 2) };
            assert_eq!(next, first + 2);
            places.sort_unstable();
            places.dedup();
            assert_eq!(places.len(), rows * depth, "{mode} {transposed}");
            assert!(places[0] >= 1024);
        }
    }

    /// Eight rows of 128 bytes: the 16-byte units are permuted by the row number.
    #[test]
    fn rows_are_swizzled() {
        let layout = Layout { start: 0x400, leading: 0, stride: 1024, width: 128 };
        assert_eq!(layout.address(false, 0, 8, 2), 0x410);
        assert_eq!(layout.address(false, 3, 8, 2), 0x400 + 3 * 128 + 0x20);
        let inside = Layout { start: 0x420, ..layout };
        assert_eq!(inside.address(false, 3, 0, 2), 0x400 + 3 * 128 + 0x10);
    }
}
