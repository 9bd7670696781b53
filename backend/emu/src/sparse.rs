//! The additional operands of products: which elements of a sparse factor are present, and scale factors of blocks.

use crate::launch::WARP;
use crate::matrix::{Element, Product};
use crate::narrow::{E4M3, scale};

/// Of each group of four elements (or pairs of nibbles) in a row of the first factor, two are present. Four bits say
/// which: two positions of two bits, the first one in the lower bits. Of two `tf32` elements, each of which takes two
/// positions, one is present.
#[derive(Clone, Copy, Debug)]
pub struct Metadata<'a> {
    pub register: &'a [u32; WARP],
    /// Which threads of each four provide the metadata, if not all do.
    pub selector: usize,
}

impl Metadata<'_> {
    /// The four bits of a group in a row. Each row has `groups` groups.
    ///
    /// For 16-bit elements, rows with a distance of eight share a register, each with half of it. For smaller elements,
    /// they are in registers of adjacent threads.
    fn group(&self, wide: bool, groups: usize, row: usize, group: usize) -> u32 {
        let (held, upper) = (row % 8 * 4, row / 8);
        let (lane, shift) = if wide {
            (self.selector * (groups / 4) + group / 4, 16 * upper + group % 4 * 4)
        } else {
            (self.selector * (groups / 4) + group / 8 * 2 + upper, group % 8 * 4)
        };
        self.register[(held + lane) % WARP] >> shift & 0xf
    }

    /// Whether the metadata of each group is in ascending order.
    pub fn is_ordered(&self, product: &Product) -> bool {
        (0..product.rows).all(|row| self.places(product, row).is_sorted_by_key(|(_, column)| column))
    }

    /// The elements of a row that are present: the index among them, and the column.
    pub fn places(&self, product: &Product, row: usize) -> impl Iterator<Item = (usize, usize)> {
        let bits = product.a.bits();
        // The number of elements in a group, and the number of elements for one position.
        let (size, run) = match bits {
            32 => (2, 1),
            4 => (8, 2),
            _ => (4, 1),
        };
        let groups = product.depth / size;
        let fields: Vec<u32> = (0..groups).map(|group| self.group(bits >= 16, groups, row, group)).collect();
        fields.into_iter().enumerate().flat_map(move |(group, field)| {
            let place = move |kept: usize| {
                let position = match bits {
                    32 => (field as usize & 3) / 2,
                    _ => (field as usize >> (kept / run * 2) & 3) * run + kept % run,
                };
                (group * size / 2 + kept, group * size + position)
            };
            (0..size / 2).map(place)
        })
    }
}

/// Scale factors for blocks of columns of the first factor and of rows of the second. A thread's register holds four.
#[derive(Clone, Copy, Debug)]
pub struct Scales<'a> {
    /// The number of blocks along the depth.
    pub count: usize,
    /// The format of the scale factors: powers of two, or `e4m3` without a sign.
    pub powers: bool,
    pub a: Selected<'a>,
    pub b: Selected<'a>,
}

/// The registers with scale factors, the first byte that holds one, and the threads of each four.
#[derive(Clone, Copy, Debug)]
pub struct Selected<'a> {
    pub register: &'a [u32; WARP],
    pub byte: usize,
    /// For the first matrix a pair of threads, for the second one thread.
    pub thread: usize,
}

impl Scales<'_> {
    fn factor(&self, selected: &Selected<'_>, lane: usize, block: usize) -> f64 {
        let code = (selected.register[lane % WARP] >> (8 * ((selected.byte + block) % 4))) as u8;
        if self.powers { scale::to_f64(code) } else { Element::Narrow(E4M3).float(u64::from(code & 0x7f)) }
    }

    pub fn of_row(&self, row: usize, block: usize) -> f64 {
        self.factor(&self.a, row % 8 * 4 + self.a.thread * 2 + row / 8, block)
    }

    pub fn of_column(&self, column: usize, block: usize) -> f64 {
        self.factor(&self.b, column * 4 + self.b.thread, block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::Sum;

    fn places(a: Element, depth: usize, nibbles: u32, row: usize) -> Vec<usize> {
        let product = Product { rows: 16, depth, a, b: a, sum: Sum::F32 };
        let register = std::array::from_fn(|lane| if lane / 4 == row % 8 { nibbles } else { 0x4444_4444 });
        let metadata = Metadata { register: &register, selector: 0 };
        metadata.places(&product, row).map(|(_, k)| k).collect()
    }

    #[test]
    fn elements_that_are_there() {
        // The second and fourth elements; the first two; the last two; the first and third.
        assert_eq!(places(Element::F16, 16, 0x84ed, 3), [1, 3, 6, 7, 8, 9, 12, 14]);
        assert_eq!(places(Element::F16, 16, 0x84ed_0000, 11), [1, 3, 6, 7, 8, 9, 12, 14]);
        assert_eq!(places(Element::Tf32, 8, 0x4e4e, 0), [1, 2, 5, 6]);
        let nibble = Element::Integer { bits: 4, signed: false };
        assert_eq!(places(nibble, 64, 0xd, 0)[..6], [2, 3, 6, 7, 8, 9]);
    }
}
