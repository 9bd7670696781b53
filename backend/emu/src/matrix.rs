//! Products of matrices that the threads of a warp hold in fragments. [`ptx_isa::fragment`] specifies the layout of
//! fragments.
//!
//! Machine registers hold the same values as PTX's fragments. Floating-point sums are computed exactly and rounded
//! once. Neither the manual nor the hardware guarantees more than at least this accuracy, so tests use numbers whose
//! sums need no rounding.
//!
//! For metadata and scale factors, both executions follow our interpretation of the manual's figures. Where ptxas has
//! no instruction for such a product and expands it into other instructions, its code confirms the interpretation. The
//! rest can be confirmed only on a GPU.

use crate::float::{BF16, F16, F32, F64, Format, Rounding};
use crate::launch::WARP;
use crate::narrow::{E2M1, Narrow};
use crate::sparse::{Metadata, Scales};
use ptx_isa::fragment::{self, Place};

/// The element type of a factor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Element {
    F16,
    Bf16,
    Tf32,
    F64,
    Integer {
        bits: u32,
        signed: bool,
    },
    /// In one byte: six bits in the low bits, four bits in the middle.
    Narrow(Narrow),
    /// In half a byte.
    Nibble(Narrow),
}

/// The element type of the accumulator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sum {
    F16,
    F32,
    F64(Rounding),
    /// A 32-bit integer; `true` if it saturates.
    S32(bool),
    /// The number of ones in the exclusive or, or in the conjunction, of bits.
    Bits {
        and: bool,
    },
}

/// A product D = A·B + C of matrices with 8 columns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Product {
    pub rows: usize,
    /// The number of columns of A.
    pub depth: usize,
    pub a: Element,
    pub b: Element,
    pub sum: Sum,
}

/// The 32-bit registers of a fragment, each with its value in every lane.
pub type Fragment = Vec<[u32; WARP]>;

const COLUMNS: usize = 8;

impl Element {
    pub fn bits(self) -> u32 {
        match self {
            Element::F16 | Element::Bf16 => 16,
            Element::Tf32 => 32,
            Element::F64 => 64,
            Element::Integer { bits, .. } => bits,
            Element::Narrow(_) => 8,
            Element::Nibble(_) => 4,
        }
    }

    fn format(self) -> Format {
        match self {
            Element::F16 => F16,
            Element::Bf16 => BF16,
            Element::F64 => F64,
            _ => F32,
        }
    }

    /// The number that the bits encode.
    pub fn float(self, bits: u64) -> f64 {
        match self {
            Element::Narrow(E2M1) => return E2M1.to_f64(bits as u8 >> 2),
            Element::Narrow(format) | Element::Nibble(format) => return format.to_f64(bits as u8),
            _ => {}
        }
        // The tensor pipe reads only 10 bits of the fraction of single-precision numbers.
        let bits = if self == Element::Tf32 { bits & !0x1fff } else { bits };
        f64::from_bits(self.format().convert(bits, F64, Rounding::Nearest))
    }

    pub fn integer(self, bits: u64) -> i64 {
        let unused = 64 - self.bits();
        match self {
            Element::Integer { signed: true, .. } => (bits << unused) as i64 >> unused,
            _ => bits as i64,
        }
    }
}

/// An element of a fragment: `bits` bits at a place in a lane's registers.
fn extract(fragment: &Fragment, Place { lane, index: position }: Place, bits: u32) -> u64 {
    if bits == 64 {
        let half = |i: usize| u64::from(fragment[2 * position + i][lane]);
        return half(1) << 32 | half(0);
    }
    let each = (32 / bits) as usize;
    let word = u64::from(fragment[position / each][lane]);
    word >> (position % each * bits as usize) & (u64::MAX >> (64 - bits))
}

impl Product {
    /// An element of the first factor.
    pub(crate) fn a(&self, fragment: &Fragment, row: usize, k: usize) -> u64 {
        let place = fragment::first_factor(self.rows, self.a.bits(), row, k);
        extract(fragment, place, self.a.bits())
    }

    fn b(&self, fragment: &Fragment, k: usize, column: usize) -> u64 {
        extract(fragment, fragment::second_factor(self.b.bits(), k, column), self.b.bits())
    }

    fn sum_bits(&self) -> u32 {
        match self.sum {
            Sum::F16 => 16,
            Sum::F64(_) => 64,
            _ => 32,
        }
    }

    /// The number of registers of the result in each thread.
    pub fn result_registers(&self) -> usize {
        self.rows * COLUMNS * self.sum_bits() as usize / 32 / WARP
    }

    /// The registers of the result.
    pub fn compute(&self, a: &Fragment, b: &Fragment, c: &Fragment) -> Fragment {
        self.map(c, |row, column, start| {
            let factors = (0..self.depth).map(|k| (self.a(a, row, k), self.b(b, k, column)));
            total(self.a, self.b, self.sum, factors, start)
        })
    }

    /// The same for a sparse first factor, which has only the elements that the metadata selects.
    pub fn compute_sparse(&self, [a, b, c]: [&Fragment; 3], metadata: &Metadata<'_>) -> Fragment {
        self.map(c, |row, column, start| {
            let factors =
                metadata.places(self, row).map(|(kept, k)| (self.a(a, row, kept), self.b(b, k, column)));
            total(self.a, self.b, self.sum, factors, start)
        })
    }

    /// The same with scale factors for blocks of rows and columns. With metadata, the first factor is sparse.
    pub fn compute_scaled(
        &self,
        [a, b, c]: [&Fragment; 3],
        metadata: Option<&Metadata<'_>>,
        scales: &Scales<'_>,
    ) -> Fragment {
        self.map(c, |row, column, start| {
            let places: Vec<(usize, usize)> = match metadata {
                Some(metadata) => metadata.places(self, row).collect(),
                None => (0..self.depth).map(|k| (k, k)).collect(),
            };
            let start = F32.to_f64(start);
            let sum = places.into_iter().fold(start, |sum, (kept, k)| {
                let product = self.a.float(self.a(a, row, kept)) * self.b.float(self.b(b, k, column));
                let block = k * scales.count / self.depth;
                sum + product * scales.of_row(row, block) * scales.of_column(column, block)
            });
            F32.from_f64(sum)
        })
    }

    /// Computes every element of the result from the corresponding element of the accumulator.
    fn map(&self, c: &Fragment, element: impl Fn(usize, usize, u64) -> u64) -> Fragment {
        let mut result = vec![[0; WARP]; self.result_registers()];
        let bits = self.sum_bits();
        for row in 0..self.rows {
            for column in 0..COLUMNS {
                let place = fragment::sum(row, column);
                let value = element(row, column, extract(c, place, bits));
                let Place { lane, index: position } = place;
                match bits {
                    64 => {
                        result[2 * position][lane] = value as u32;
                        result[2 * position + 1][lane] = (value >> 32) as u32;
                    }
                    32 => result[position][lane] = value as u32,
                    _ => result[position / 2][lane] |= (value as u32) << (position % 2 * 16),
                }
            }
        }
        result
    }
}

/// The sum of products and the accumulator.
pub fn total(a: Element, b: Element, sum: Sum, factors: impl Iterator<Item = (u64, u64)>, start: u64) -> u64 {
    match sum {
        Sum::Bits { and } => {
            let ones = factors.map(|(x, y)| if and { x & y } else { x ^ y }).sum::<u64>();
            u64::from((start as u32).wrapping_add(ones as u32))
        }
        Sum::S32(saturates) => {
            let products = factors.map(|(x, y)| a.integer(x) * b.integer(y)).sum::<i64>();
            let sum = i64::from(start as i32) + products;
            let sum = if saturates { sum.clamp(i32::MIN.into(), i32::MAX.into()) } else { sum };
            u64::from(sum as u32)
        }
        Sum::F64(mode) => factors.fold(start, |sum, (x, y)| F64.fma(x, y, sum, mode)),
        Sum::F16 | Sum::F32 => {
            let format = if sum == Sum::F16 { F16 } else { F32 };
            let start = f64::from_bits(format.convert(start, F64, Rounding::Nearest));
            let sum = factors.fold(start, |sum, (x, y)| sum + a.float(x) * b.float(y));
            F64.convert(sum.to_bits(), format, Rounding::Nearest)
        }
    }
}

/// The place of an element of an 8×8 matrix of halves: its lane, and the half of the register.
pub fn half_place(row: usize, column: usize) -> (usize, usize) {
    let place = fragment::sum(row, column);
    (place.lane, place.index)
}

/// An 8×8 matrix of halves, transposed.
pub fn transpose(register: &[u32; WARP]) -> [u32; WARP] {
    let mut result = [0; WARP];
    for row in 0..8 {
        for column in 0..8 {
            let (from, half) = half_place(row, column);
            let (to, other) = half_place(column, row);
            result[to] |= (register[from] >> (16 * half) & 0xffff) << (16 * other);
        }
    }
    result
}

/// The elements in a row of 16 in memory, each expanded to a byte. In memory, elements of four or six bits are packed.
pub fn spread(row: [u8; 16], bits: u32) -> [u8; 16] {
    let all = u128::from_le_bytes(row);
    std::array::from_fn(|i| (all >> (i as u32 * bits)) as u8 & (u8::MAX >> (8 - bits)))
}

/// Eight rows of 16 bytes. Each lane holds four adjacent bytes.
pub fn bytes(rows: &[[u8; 16]]) -> [u32; WARP] {
    std::array::from_fn(|lane| u32::from_le_bytes(std::array::from_fn(|i| rows[lane / 4][lane % 4 * 4 + i])))
}

/// Sixteen rows of 16 bytes, transposed: the upper and the lower eight rows of the result.
pub fn transposed_bytes(rows: &[[u8; 16]]) -> Fragment {
    let half = |upper: usize| {
        std::array::from_fn(|lane: usize| {
            u32::from_le_bytes(std::array::from_fn(|i| rows[lane % 4 * 4 + i][lane / 4 + 8 * upper]))
        })
    };
    vec![half(0), half(1)]
}

/// Eight rows of 16 bytes to store. They come from a matrix of 16 rows of 8 bytes, in which each lane holds two
/// adjacent bytes in each of two rows, as in the result of a product.
pub fn stored_bytes(register: &[u32; WARP]) -> [[u8; 16]; 8] {
    let mut rows = [[0; 16]; 8];
    for (lane, word) in register.iter().enumerate() {
        for (i, byte) in word.to_le_bytes().into_iter().enumerate() {
            rows[lane % 4 * 2 + i % 2][lane / 4 + i / 2 * 8] = byte;
        }
    }
    rows
}

/// An 8×32 matrix of nibbles as two 8×16 matrices of bytes, for the left and the right half of the columns.
///
/// The order of the columns is unknown: the only observed use is a product of two matrices that were both widened,
/// which does not depend on it.
pub fn widen(register: &[u32; WARP]) -> Fragment {
    let mut result = vec![[0; WARP]; 2];
    for row in 0..8 {
        for column in 0..32 {
            let nibble = register[row * 4 + column / 8] >> (column % 8 * 4) & 0xf;
            result[column / 16][row * 4 + column % 16 / 4] |= nibble << (column % 4 * 8);
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::narrow::{E4M3, E5M2};

    /// A product with the unit matrix equals the other factor.
    #[test]
    fn one_times_a_matrix() {
        let element = Element::Integer { bits: 8, signed: true };
        let product = Product { rows: 16, depth: 32, a: element, b: element, sum: Sum::S32(false) };
        let (mut a, mut b) = (vec![[0; WARP]; 4], vec![[0; WARP]; 2]);
        for row in 0..16 {
            // Row `row`, column `row`: register row / 16 * 2 + row / 8, byte row % 4.
            a[row / 8][row % 8 * 4 + row / 4] |= 1 << (row % 4 * 8);
        }
        for k in 0..32 {
            for column in 0..8 {
                b[k / 16][column * 4 + k / 4 % 4] |= ((k * 8 + column) as u32 & 0x7f) << (k % 4 * 8);
            }
        }
        let c = product.compute(&a, &b, &vec![[1; WARP]; 4]);
        for row in 0..16 {
            for column in 0..8 {
                let found = c[row / 8 * 2 + column % 2][row % 8 * 4 + column / 2];
                assert_eq!(found, ((row * 8 + column) as u32 & 0x7f) + 1, "{row} {column}");
            }
        }
    }

    #[test]
    fn widened_nibbles_are_the_same_numbers() {
        let register = std::array::from_fn(|lane| 0x1234_5678_u32.rotate_left(lane as u32 % 7 * 4));
        let element = |bits| Element::Integer { bits, signed: false };
        let [narrow, wide] =
            [element(4), element(8)].map(|a| Product { rows: 8, depth: 32, a, b: a, sum: Sum::S32(false) });
        let widened = widen(&register);
        for (row, column) in (0..8).flat_map(|row| (0..32).map(move |column| (row, column))) {
            assert_eq!(wide.a(&widened, row, column), narrow.a(&vec![register], row, column));
        }
    }

    #[test]
    fn quarters() {
        let [small, large] = [E4M3, E5M2].map(Element::Narrow);
        assert_eq!([0x38, 0xbc, 0x01, 0x7e].map(|bits| small.float(bits)), [1.0, -1.5, 0.001953125, 448.0]);
        assert!(small.float(0x7f).is_nan());
        assert_eq!([0x3c, 0xbe, 0x7c].map(|bits| large.float(bits)), [1.0, -1.5, f64::INFINITY]);
    }

    #[test]
    fn transposed_twice() {
        let register = std::array::from_fn(|lane| (lane * 65537 + 7) as u32);
        assert_ne!(transpose(&register), register);
        assert_eq!(transpose(&transpose(&register)), register);
    }
}
