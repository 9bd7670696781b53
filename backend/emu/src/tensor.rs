//! Tensor memory: its allocation, the layouts of warps' registers in it, and the products that accumulate in it.
//!
//! It has 128 lanes of 512 columns of 32 bits, which blocks allocate by columns. An address has the lane in its upper
//! half and the column in its lower half. The source is the PTX manual's chapter on `tcgen05`. Where the manual has
//! only figures (the layout of 64 rows, scale factors), both executions share our reading of them.

use crate::float::{F16, F32};
use crate::launch::{FaultKind, WARP};
use crate::matrix::{Element, Fragment};
use crate::memory::{RANK_SHIFT, Space, UNWRITTEN, View};
use crate::narrow::{E2M1, E2M3, E3M2, E4M3, E5M2, Narrow, scale};
use crate::warpgroup::Layout;
use std::ops::Range;

const LANES: usize = 128;
const COLUMNS: usize = 512;
/// The number of lanes that a warp can access.
const QUARTER: usize = 32;
/// The columns of an allocation unit, and the number of units.
pub(crate) const UNIT: u32 = 32;
const UNITS: u32 = COLUMNS as u32 / UNIT;
/// The bytes of each row that a product reads.
const DEPTH_BYTES: usize = 32;

type Result<T> = std::result::Result<T, FaultKind>;

/// The blocks of a cluster of `count` that an operation affects: its own or, for a pair, both.
pub(crate) fn blocks(rank: usize, pair: bool, count: usize) -> Result<Range<usize>> {
    let blocks = if pair { rank & !1..(rank | 1) + 1 } else { rank..rank + 1 };
    if blocks.end > count {
        return malformed("a pair of blocks in a cluster of one");
    }
    Ok(blocks)
}

/// Reads shared memory by block, counted from the first one of an operation, address and size.
pub(crate) fn reader<'a>(
    mut view: View<'a>,
    first: usize,
) -> impl FnMut(usize, u64, u32) -> Result<u64> + use<'a> {
    move |block, address, size| {
        let base = ((first + block) as u64) << RANK_SHIFT;
        view.load(Space::Cluster, base | address, size)
    }
}

fn unsupported<T>(what: &str) -> Result<T> {
    Err(FaultKind::Unsupported(format!("tensor memory: {what}")))
}

fn malformed<T>(what: impl Into<String>) -> Result<T> {
    Err(FaultKind::Malformed(what.into()))
}

/// The tensor memory of a block.
#[derive(Clone, Debug)]
pub(crate) struct TensorMemory {
    /// Indexed by lane, then by column.
    words: Vec<u32>,
    /// A bit for each allocated unit.
    taken: u32,
}

impl Default for TensorMemory {
    fn default() -> Self {
        TensorMemory { words: vec![u32::from_le_bytes([UNWRITTEN; 4]); LANES * COLUMNS], taken: 0 }
    }
}

/// The mask of a number of units from the first one on.
fn units(first: u32, count: u32) -> u32 {
    (((1u64 << count.min(UNITS)) - 1) << first) as u32
}

impl TensorMemory {
    /// Allocates a number of units, a power of two, in one block or at the same place in several. Returns the first
    /// unit, or `None` if too few are free.
    pub(crate) fn take(blocks: &mut [TensorMemory], count: u32) -> Result<Option<u32>> {
        if !count.is_power_of_two() || count > UNITS {
            return malformed(format!("{count} units of tensor memory"));
        }
        let taken = blocks.iter().fold(0, |taken, block| taken | block.taken);
        let first = (0..UNITS).step_by(count as usize).find(|first| taken & units(*first, count) == 0);
        let own = first.map_or(0, |first| units(first, count));
        blocks.iter_mut().for_each(|block| block.taken |= own);
        Ok(first)
    }

    /// Frees units.
    pub(crate) fn give(&mut self, first: u32, count: u32) -> Result<()> {
        let given = units(first, count);
        if first + count > UNITS || self.taken & given != given {
            return malformed("columns are given back that the block has not");
        }
        self.taken &= !given;
        Ok(())
    }

    /// Frees the units outside a mask.
    pub(crate) fn keep(&mut self, mask: u32) {
        self.taken &= mask;
    }

    fn index(&self, lane: usize, column: usize) -> Result<usize> {
        if lane >= LANES || column >= COLUMNS || self.taken >> (column as u32 / UNIT) & 1 == 0 {
            let address = (lane << 16 | column) as u64;
            return Err(FaultKind::OutOfBounds { space: "tensor", address, size: 4 });
        }
        Ok(lane * COLUMNS + column)
    }

    fn get(&self, lane: usize, column: usize) -> Result<u32> {
        Ok(self.words[self.index(lane, column)?])
    }

    fn set(&mut self, lane: usize, column: usize, word: u32) -> Result<()> {
        let index = self.index(lane, column)?;
        self.words[index] = word;
        Ok(())
    }
}

fn split(address: u32) -> (usize, usize) {
    ((address >> 16) as usize, (address & 0xffff) as usize)
}

/// The lanes and bits that a warp moves at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Shape {
    L32B32,
    L16B64,
    L16B128,
    L16B256,
    /// The two halves of the warp access different columns.
    L16B32,
}

/// The shape of a warp's load or store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TensorAccess {
    pub(crate) shape: Shape,
    pub(crate) registers: usize,
    /// Registers hold the lower halves of two columns.
    pub(crate) packed: bool,
}

impl TensorAccess {
    /// The lane and the column of a thread's register, relative to the address. A packed register holds two columns, of
    /// which this is the first.
    fn place(self, thread: usize, register: usize) -> (usize, usize) {
        let (lane, column) = match self.shape {
            Shape::L32B32 => (thread, register),
            Shape::L16B64 => (thread / 4 + thread % 2 * 8, register * 2 + thread / 2 % 2),
            Shape::L16B128 => (thread / 4 + register % 2 * 8, register / 2 * 4 + thread % 4),
            Shape::L16B256 => {
                (thread / 4 + register / 2 % 2 * 8, register / 4 * 8 + thread % 4 * 2 + register % 2)
            }
            Shape::L16B32 => (thread % 16, register),
        };
        (lane, if self.packed { 2 * column } else { column })
    }

    /// The address at which the access of a warp starts.
    fn start(self, warp: usize, address: u32) -> Result<(usize, usize)> {
        let (lane, column) = split(address);
        let own = warp % 4 * QUARTER;
        if lane == own || lane == own + 16 && self.shape != Shape::L32B32 {
            return Ok((lane, column));
        }
        malformed(format!("warp {warp} accesses lane {lane} of tensor memory"))
    }

    /// The words that the threads of a mask load; zero in other threads.
    pub(crate) fn load(
        self,
        memory: &TensorMemory,
        warp: usize,
        mask: u32,
        address: u32,
    ) -> Result<Fragment> {
        let (lane, column) = self.start(warp, address)?;
        let mut result = vec![[0; WARP]; self.registers];
        for thread in (0..WARP).filter(|thread| mask >> thread & 1 == 1) {
            for (register, values) in result.iter_mut().enumerate() {
                let (down, right) = self.place(thread, register);
                let (lane, column) = (lane + down, column + right);
                let word = memory.get(lane, column)?;
                values[thread] = match self.packed {
                    true => word & 0xffff | memory.get(lane, column + 1)? << 16,
                    false => word,
                };
            }
        }
        Ok(result)
    }

    pub(crate) fn store(
        self,
        memory: &mut TensorMemory,
        warp: usize,
        mask: u32,
        address: u32,
        values: &Fragment,
    ) -> Result<()> {
        let (lane, column) = self.start(warp, address)?;
        for thread in (0..WARP).filter(|thread| mask >> thread & 1 == 1) {
            for (register, values) in values.iter().enumerate() {
                let (down, right) = self.place(thread, register);
                let (lane, column) = (lane + down, column + right);
                match self.packed {
                    true => {
                        memory.set(lane, column, values[thread] & 0xffff)?;
                        memory.set(lane, column + 1, values[thread] >> 16)?;
                    }
                    false => memory.set(lane, column, values[thread])?,
                }
            }
        }
        Ok(())
    }
}

/// The type of the values that a statistic compares.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Compared {
    Unsigned,
    Signed,
    /// Floats, or their magnitudes; a NaN may win over numbers.
    Floats {
        magnitudes: bool,
        nan: bool,
    },
}

/// The minimum or maximum of the words of each thread.
pub(crate) fn extremum(loaded: &Fragment, compared: Compared, greatest: bool) -> [u32; WARP] {
    std::array::from_fn(|thread| {
        let words = loaded.iter().map(|values| values[thread]);
        let pick = |a: u32, b: u32| match compared {
            Compared::Unsigned => {
                if greatest {
                    a.max(b)
                } else {
                    a.min(b)
                }
            }
            Compared::Signed => {
                let (a, b) = (a as i32, b as i32);
                (if greatest { a.max(b) } else { a.min(b) }) as u32
            }
            Compared::Floats { nan, .. } => F32.extremum(a.into(), b.into(), greatest, nan) as u32,
        };
        let magnitudes = matches!(compared, Compared::Floats { magnitudes: true, .. });
        let words = words.map(|word| if magnitudes { word & !(1 << 31) } else { word });
        words.reduce(pick).unwrap_or(0)
    })
}

/// The rows that a copy moves from shared memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Rows {
    /// Rows of 32 bytes, one for each lane.
    Wide,
    /// Rows of 16 bytes, one for each lane.
    All,
    /// Rows for 64 lanes. The first 32 are also copied to the third quarter of the lanes, or to the second.
    Pairs02,
    Pairs01,
    /// The same rows for each quarter of the lanes.
    Quarter,
}

impl Rows {
    fn row(self, lane: usize) -> usize {
        match self {
            Rows::Wide | Rows::All => lane,
            Rows::Pairs02 => lane % 64,
            Rows::Pairs01 => lane / 64 * QUARTER + lane % QUARTER,
            Rows::Quarter => lane % QUARTER,
        }
    }

    /// Copies rows. `read` reads shared memory at an address, with a size.
    pub(crate) fn copy(
        self,
        memory: &mut TensorMemory,
        address: u32,
        descriptor: u64,
        mut read: impl FnMut(u64, u32) -> Result<u64>,
    ) -> Result<()> {
        let (first, column) = split(address);
        if first != 0 {
            return malformed("a copy to another lane than the first");
        }
        let layout = Layout::of_tensor(descriptor)?;
        let words = if self == Rows::Wide { 8 } else { 4 };
        for (lane, i) in (0..LANES).flat_map(|lane| (0..words).map(move |i| (lane, i))) {
            let from = layout.address(false, self.row(lane), i, 4);
            memory.set(lane, column + i, read(from, 4)? as u32)?;
        }
        Ok(())
    }
}

/// The kind of a product, from its instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// Floating-point formats of 16 bits or more.
    Half,
    Integer,
    /// Floating-point formats of at most eight bits.
    Quarter,
    /// The same with scale factors.
    QuarterScaled,
    /// Four-bit floating-point formats with scale factors: two in each row, or four with `fine`.
    NibbleScaled {
        fine: bool,
    },
}

/// Where the first factor is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Factor {
    Shared(u64),
    Tensor(u32),
}

/// A product D = A·B + D.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Product {
    pub(crate) kind: Kind,
    /// The address of the accumulator.
    pub(crate) sum: u32,
    pub(crate) a: Factor,
    pub(crate) b: u64,
    /// The instruction descriptor: types, shape and layouts.
    pub(crate) description: u32,
    /// The lanes that are not written.
    pub(crate) without: [u32; 8],
    pub(crate) adds: bool,
    /// The accumulator is divided by two to this power before the addition.
    pub(crate) scale: u32,
    /// The addresses of the scale factors.
    pub(crate) factors: [u32; 2],
    /// The second factor is kept in the collector buffer instead of the first.
    pub(crate) weights: bool,
    /// Each of the two blocks has half of the rows, and half of the columns of the second factor.
    pub(crate) pair: bool,
}

/// The type of a factor's elements, and their size in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Stored {
    element: Element,
    bits: usize,
    /// Sixteen elements take 16 bytes, however narrow they are.
    padded: bool,
}

impl Stored {
    fn plain(element: Element) -> Stored {
        Stored { element, bits: element.bits() as usize, padded: false }
    }

    fn narrow(format: Narrow, bits: usize, padded: bool) -> Stored {
        Stored { element: Element::Nibble(format), bits, padded }
    }

    /// Decodes an element of shared memory.
    fn read(
        self,
        layout: Layout,
        transposed: bool,
        mn: usize,
        k: usize,
        read: &mut impl FnMut(u64, u32) -> Result<u64>,
    ) -> Result<u64> {
        if self.bits >= 8 {
            let bytes = self.bits as u64 / 8;
            return read(layout.address(transposed, mn, k, bytes), bytes as u32);
        }
        if transposed {
            return unsupported("transposed factors of less than eight bits");
        }
        let per = if self.padded { 16 } else { 128 / self.bits };
        let unit = layout.address(false, mn, k / per * 16, 1);
        let bit = k % per * self.bits;
        let byte = |at: usize, read: &mut dyn FnMut(u64, u32) -> Result<u64>| read(unit + at as u64, 1);
        let low = byte(bit / 8, read)?;
        let high = if bit % 8 + self.bits > 8 { byte(bit / 8 + 1, read)? } else { 0 };
        Ok((high << 8 | low) >> (bit % 8) & ((1 << self.bits) - 1))
    }

    /// Decodes an element of a lane of tensor memory.
    fn load(self, memory: &TensorMemory, lane: usize, column: usize, k: usize) -> Result<u64> {
        if self.padded {
            return unsupported("factors of less than eight bits that are not in shared memory");
        }
        let per = 32 / self.bits;
        let word = u64::from(memory.get(lane, column + k / per)?);
        Ok(word >> (k % per * self.bits) & ((1 << self.bits) - 1))
    }
}

/// A decoded instruction descriptor.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Described {
    /// The number of rows in each block.
    rows: usize,
    columns: usize,
    depth: usize,
    factors: [Stored; 2],
    negated: [bool; 2],
    transposed: [bool; 2],
    /// The accumulator is `.f16`.
    half: bool,
    saturates: bool,
    /// Scale factors: the number in a row, the first byte of each side, and whether they are powers of two.
    blocks: usize,
    bytes: [usize; 2],
    powers: bool,
}

/// The layout of a block's accumulator.
struct Sum<'a> {
    what: &'a Described,
    without: &'a [u32],
    top: usize,
    left: usize,
    pair: bool,
}

impl Sum<'_> {
    /// The lane and the column of an element. `None` for elements that are not written. With 64 rows, each quarter of
    /// the lanes has 16 rows. With 64 rows in each block of a pair, each half of the lanes has half of the columns.
    fn place(&self, row: usize, column: usize) -> Option<(usize, usize)> {
        let half = self.what.columns / 2;
        let (lane, column) = match (self.what.rows, self.pair) {
            (64, false) => (row / 16 * QUARTER + row % 16, column),
            (64, true) => (row + column / half * 64, column % half),
            _ => (row, column),
        };
        let lane = self.top + lane;
        let out = self.without[lane / QUARTER] >> (lane % QUARTER) & 1 == 1;
        (!out).then_some((lane, self.left + column))
    }
}

impl Product {
    fn described(&self) -> Result<Described> {
        let field = |at: u32, bits: u32| self.description >> at & ((1 << bits) - 1);
        if field(2, 1) != 0 {
            return unsupported("sparse factors");
        }
        let scaled = matches!(self.kind, Kind::QuarterScaled | Kind::NibbleScaled { .. });
        let stored = |format: u32| -> Result<Stored> {
            Ok(match (self.kind, format) {
                (Kind::Half, 0) => Stored::plain(Element::F16),
                (Kind::Half, 1) => Stored::plain(Element::Bf16),
                (Kind::Half, 2) => Stored::plain(Element::Tf32),
                (Kind::Integer, 0 | 1) => Stored::plain(Element::Integer { bits: 8, signed: format == 1 }),
                (Kind::Quarter | Kind::QuarterScaled, 0) => Stored::plain(Element::Narrow(E4M3)),
                (Kind::Quarter | Kind::QuarterScaled, 1) => Stored::plain(Element::Narrow(E5M2)),
                (Kind::Quarter | Kind::QuarterScaled, 3) => Stored::narrow(E2M3, 6, true),
                (Kind::Quarter | Kind::QuarterScaled, 4) => Stored::narrow(E3M2, 6, true),
                (Kind::Quarter | Kind::QuarterScaled, 5) => Stored::narrow(E2M1, 4, true),
                (Kind::NibbleScaled { .. }, 1) => Stored::narrow(E2M1, 4, false),
                _ => return malformed(format!("a product of elements of type {format}")),
            })
        };
        let factors = [stored(field(7, 3))?, stored(field(10, 3))?];
        if self.kind == Kind::Half && (factors[0].bits != factors[1].bits) {
            return malformed("a product of elements of several sizes");
        }
        let half = match (scaled, self.kind, field(4, 2)) {
            (true, ..) => false,
            (_, Kind::Integer, 2) | (_, Kind::Half | Kind::Quarter, 1) => false,
            (_, Kind::Half | Kind::Quarter, 0) => true,
            (.., ty) => return malformed(format!("a sum of type {ty}")),
        };
        let depth = match self.kind {
            Kind::Half => DEPTH_BYTES * 8 / factors[0].bits,
            Kind::NibbleScaled { .. } => 64,
            _ => DEPTH_BYTES,
        };
        let (rows, columns) = (field(24, 5) as usize * 16, field(17, 6) as usize * 8);
        let rows = if self.pair { rows / 2 } else { rows };
        let few = rows == 64 && !self.weights && !scaled;
        if (rows != 128 && !few) || columns == 0 || columns > 256 {
            return unsupported(&format!("a product of {rows} rows and {columns} columns"));
        }
        let blocks = match self.kind {
            Kind::NibbleScaled { fine: true } => 4,
            Kind::NibbleScaled { fine: false } => 2,
            _ => 1,
        };
        Ok(Described {
            rows,
            columns,
            depth,
            factors,
            negated: [field(13, 1) == 1, field(14, 1) == 1],
            transposed: [field(15, 1) == 1, field(16, 1) == 1],
            half,
            saturates: field(3, 1) == 1,
            blocks,
            bytes: [field(29, 2) as usize, field(4, 2) as usize],
            powers: field(23, 1) == 1,
        })
    }

    /// Computes the product in the memory of one block or of a pair. `read` reads a block's shared memory at an
    /// address, with a size.
    pub(crate) fn compute(
        &self,
        memories: &mut [TensorMemory],
        mut read: impl FnMut(usize, u64, u32) -> Result<u64>,
    ) -> Result<()> {
        let what = self.described()?;
        let (top, left) = split(self.sum);
        if !(top == 0 || (top == 16 && what.rows == 64 && !self.pair)) {
            return malformed("a sum that starts in another lane");
        }
        let each = what.columns / memories.len();
        let layout = Layout::of_tensor(self.b)?;
        let mut b = Vec::with_capacity(what.columns * what.depth);
        for (column, k) in (0..what.columns).flat_map(|column| (0..what.depth).map(move |k| (column, k))) {
            let mut read = |address, size| read(column / each, address, size);
            b.push(what.factors[1].read(layout, what.transposed[1], column % each, k, &mut read)?);
        }
        for (block, memory) in memories.iter_mut().enumerate() {
            let a = self.first_factor(&what, memory, |address, size| read(block, address, size))?;
            let sum = Sum { without: &self.without[4 * block..], top, left, what: &what, pair: self.pair };
            match self.kind {
                Kind::Integer => self.add_integers(memory, &sum, [&a, &b])?,
                _ => self.add_floats(memory, &sum, [&a, &b])?,
            }
        }
        Ok(())
    }

    /// The row numbers of a block.
    fn first_factor(
        &self,
        what: &Described,
        memory: &TensorMemory,
        mut read: impl FnMut(u64, u32) -> Result<u64>,
    ) -> Result<Vec<u64>> {
        let stored = what.factors[0];
        let mut a = Vec::with_capacity(what.rows * what.depth);
        for (row, k) in (0..what.rows).flat_map(|row| (0..what.depth).map(move |k| (row, k))) {
            a.push(match self.a {
                Factor::Shared(descriptor) => {
                    stored.read(Layout::of_tensor(descriptor)?, what.transposed[0], row, k, &mut read)?
                }
                Factor::Tensor(_) if self.pair && what.rows == 64 => {
                    return unsupported("few rows of a pair of blocks that are not in shared memory");
                }
                Factor::Tensor(address) => {
                    let (start, column) = split(address);
                    let lane = if what.rows == 64 { row / 16 * QUARTER + row % 16 } else { row };
                    stored.load(memory, start + lane, column, k)?
                }
            });
        }
        Ok(a)
    }

    fn add_floats(&self, memory: &mut TensorMemory, sum: &Sum<'_>, bits: [&[u64]; 2]) -> Result<()> {
        let what = sum.what;
        let mut factors = [0, 1].map(|side| -> Vec<f64> {
            let sign = if what.negated[side] { -1.0 } else { 1.0 };
            bits[side].iter().map(|&bits| sign * what.factors[side].element.float(bits)).collect()
        });
        if matches!(self.kind, Kind::QuarterScaled | Kind::NibbleScaled { .. }) {
            for (side, numbers) in factors.iter_mut().enumerate() {
                for (i, number) in numbers.iter_mut().enumerate() {
                    let (mn, k) = (i / what.depth, i % what.depth);
                    *number *= self.block_factor(memory, what, side, mn, k * what.blocks / what.depth)?;
                }
            }
        }
        let [a, b] = factors;
        let format = if what.half { F16 } else { F32 };
        for (row, column) in (0..what.rows).flat_map(|row| (0..what.columns).map(move |n| (row, n))) {
            let Some((lane, place)) = sum.place(row, column) else { continue };
            let start = match self.adds {
                true => {
                    let word = memory.get(lane, place)?;
                    let bits = if what.half { word & 0xffff } else { word };
                    format.to_f64(bits.into()) / f64::from(1u32 << self.scale)
                }
                false => 0.0,
            };
            let pairs = a[row * what.depth..].iter().zip(&b[column * what.depth..]).take(what.depth);
            let total = pairs.fold(start, |total, (x, y)| total + x * y);
            memory.set(lane, place, format.from_f64(total) as u32)?;
        }
        Ok(())
    }

    fn add_integers(&self, memory: &mut TensorMemory, sum: &Sum<'_>, [a, b]: [&[u64]; 2]) -> Result<()> {
        let what = sum.what;
        let [x, y] = what.factors.map(|stored| stored.element);
        for (row, column) in (0..what.rows).flat_map(|row| (0..what.columns).map(move |n| (row, n))) {
            let Some((lane, place)) = sum.place(row, column) else { continue };
            let start = if self.adds { memory.get(lane, place)? as i32 } else { 0 };
            let pairs = a[row * what.depth..].iter().zip(&b[column * what.depth..]).take(what.depth);
            let total = pairs.fold(i64::from(start), |total, (&a, &b)| total + x.integer(a) * y.integer(b));
            let total = if what.saturates { total.clamp(i32::MIN.into(), i32::MAX.into()) } else { total };
            memory.set(lane, place, total as u32)?;
        }
        Ok(())
    }

    /// The scale factor of a block in a row or a column. A column of tensor memory holds the factors of 32 rows in its
    /// lanes, and of four blocks in its bytes. All quarters of the lanes hold the same factors.
    fn block_factor(
        &self,
        memory: &TensorMemory,
        what: &Described,
        side: usize,
        mn: usize,
        block: usize,
    ) -> Result<f64> {
        let (_, column) = split(self.factors[side]);
        let word = memory.get(mn % QUARTER, column + mn / QUARTER)?;
        let code = (word >> (8 * ((what.bytes[side] + block) % 4))) as u8;
        Ok(match what.powers {
            true => scale::to_f64(code),
            false => Element::Narrow(E4M3).float(u64::from(code & 0x7f)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_taken_and_given_back() {
        let mut blocks = [TensorMemory::default(), TensorMemory::default()];
        assert_eq!(TensorMemory::take(&mut blocks[..1], 8), Ok(Some(0)));
        assert_eq!(TensorMemory::take(&mut blocks, 4), Ok(Some(8)));
        assert_eq!(TensorMemory::take(&mut blocks[..1], 8), Ok(None));
        blocks[0].give(0, 8).unwrap();
        assert!(blocks[0].give(0, 8).is_err() && TensorMemory::take(&mut blocks, 3).is_err());
        assert_eq!(TensorMemory::take(&mut blocks, 8), Ok(Some(0)));
    }

    /// Every shape covers each word of its lanes exactly once.
    #[test]
    fn registers_lie_apart() {
        let shapes = [(Shape::L32B32, 4), (Shape::L16B64, 4), (Shape::L16B128, 4), (Shape::L16B256, 8)];
        for (shape, registers) in shapes {
            let access = TensorAccess { shape, registers, packed: false };
            let mut places: Vec<(usize, usize)> = (0..WARP)
                .flat_map(|thread| (0..registers).map(move |register| access.place(thread, register)))
                .collect();
            places.sort_unstable();
            places.dedup();
            assert_eq!(places.len(), WARP * registers, "{shape:?}");
            let lanes = if shape == Shape::L32B32 { 32 } else { 16 };
            assert!(places.iter().all(|place| place.0 < lanes && place.1 < WARP * registers / lanes));
        }
    }

    #[test]
    fn what_is_stored_is_loaded() {
        let mut memory = TensorMemory::default();
        TensorMemory::take(std::slice::from_mut(&mut memory), 2).unwrap();
        let access = TensorAccess { shape: Shape::L16B128, registers: 2, packed: true };
        let values = vec![std::array::from_fn(|i| i as u32 * 0x1_0003), std::array::from_fn(|i| !(i as u32))];
        let address = 48 << 16 | 8;
        access.store(&mut memory, 5, u32::MAX, address, &values).unwrap();
        assert_eq!(access.load(&memory, 1, u32::MAX, address), Ok(values));
        assert!(access.load(&memory, 0, u32::MAX, address).is_err());
        assert!(access.load(&memory, 1, u32::MAX, 48 << 16 | 60).is_err());
    }
}
