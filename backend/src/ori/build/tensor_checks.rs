//! Checks of the operands of `tcgen05`, which `--g-tensor-memory-access-check` requests.
//!
//! A statement that would access columns that do not exist or that the block does not hold, lanes that its warp or its
//! product cannot access, or that disagrees with its instruction descriptor ends the kernel with a trap instead. The
//! conditions are those of ptxas 13.0.88; see `docs/tensor.md`. ptxas calls a function with a name for each kind of
//! violation, which only traps. We evaluate all conditions of a statement, and trap in place.

use super::operand::known;
use super::tensor::{COLUMN, Factor, TAKEN, UNIT};
use super::{Lowering, Result};
use crate::ori::ir::{Src, TensorUse};
use crate::ori::op::{Bool, ICmp, Op, Sign, TensorCopy, TensorCount, TensorLanes, lut};
use ptx_isa::SpecialReg;

/// The columns of tensor memory.
const COLUMNS: u32 = 512;
/// The lane of an address, and the part of it that selects a row of the quarter of a warp.
const LANE_AT: u32 = 16;
const ROW: u32 = 0x1f;
/// The quarter of the lanes that an address is in; a warp accesses the quarter with its number modulo 4.
const QUARTER_AT: u32 = 21;
const QUARTER: u32 = 3;
const THREADS_OF_WARP: u32 = 5;
/// The row at which an operand may start, besides the first.
const HALF: u32 = 16;
/// Fields of an instruction descriptor: whether the product is sparse, an eighth of its columns, a sixteenth of its rows.
const SPARSE_AT: u32 = 2;
const WIDTH_AT: u32 = 17;
const WIDTH: u32 = 0x3f;
const HEIGHT_AT: u32 = 24;
const HEIGHT: u32 = 0x1f;
/// The columns of a first factor in tensor memory, of the metadata of a sparse one, and of the scale factors of the
/// first factor.
const FACTOR_COLUMNS: Src = Src::imm(8);
const METADATA_COLUMNS: Src = Src::imm(2);
const SCALES: u32 = 4;
/// The columns of `tcgen05.shift`.
pub(super) const SHIFTED_COLUMNS: Src = Src::imm(8);
/// The columns of the second factor for which the scale factors take two columns.
const SCALED_BY_TWO: u32 = 64;

/// What is known about a product.
#[derive(Clone, Copy)]
pub(super) struct Product {
    pub(super) description: Src,
    pub(super) pair: bool,
    pub(super) weights: bool,
    /// The address of the metadata of a sparse product.
    pub(super) metadata: Option<Src>,
}

/// The number of columns of an access; those of the second half of the warp are not counted.
pub(super) fn columns_of_access(lanes: Option<TensorLanes>, count: TensorCount, pack: bool) -> Src {
    let width = match lanes {
        Some(TensorLanes::L16B64) => 2,
        Some(TensorLanes::L16B128) => 4,
        Some(TensorLanes::L16B256) => 8,
        _ => 1,
    };
    Src::imm(width << (count as u32 + u32::from(pack)))
}

/// The number of columns that a copy writes.
pub(super) fn columns_of_copy(shape: TensorCopy) -> Src {
    Src::imm(match shape {
        TensorCopy::L128B256 | TensorCopy::L4B256 => 8,
        TensorCopy::L128B128 | TensorCopy::L64Pairs02 | TensorCopy::L64Pairs01 | TensorCopy::L32 => 4,
    })
}

impl<'a> Lowering<'a> {
    /// If accesses are checked, traps if any of these predicates holds.
    pub(super) fn check_tensor(
        &mut self,
        violations: impl FnOnce(&mut Self) -> Result<Vec<Src>>,
    ) -> Result<()> {
        if !self.checks_tensor_memory {
            return Ok(());
        }
        self.branch_around(|this| {
            let violations = violations(this)?;
            let any = violations.into_iter().reduce(|a, b| this.plop3(lut::A | lut::B, a, b, Src::TRUE));
            let Some(any) = any else { return Ok(()) };
            this.only_where(any, |this| {
                this.effect(Op::Bpt { trap: true }, &[]);
                Ok(())
            })
        })
    }

    /// Checks columns that a statement of any warp accesses.
    pub(super) fn check_columns(&mut self, place: Src, offset: i32, count: Src) -> Result<()> {
        self.check_tensor(|this| {
            let address = this.add(place, Src::imm(offset as u32));
            Ok(this.are_not_held(address, count))
        })
    }

    /// Checks columns that the warp accesses in its quarter of the lanes.
    pub(super) fn check_access(&mut self, place: Src, offset: i32, count: Src) -> Result<()> {
        self.check_tensor(|this| {
            let address = this.add(place, Src::imm(offset as u32));
            let mut wrong = this.are_not_held(address, count);
            wrong.push(this.is_of_other_warp(address)?);
            Ok(wrong)
        })
    }

    fn is_at_least(&mut self, a: Src, b: u32) -> Src {
        let op = Op::Isetp { cmp: ICmp::Ge, sign: Sign::U32, bool_: Bool::And, ex: false };
        self.pred(op, &[a, Src::imm(b)])
    }

    /// Bits of a word, from the given one.
    fn field(&mut self, word: Src, at: u32, mask: u32) -> Src {
        let word = self.shift_right(word, at, false);
        self.lop3(lut::A & lut::B, word, Src::imm(mask), Src::ZERO)
    }

    /// The first and the last column of an operand.
    fn ends(&mut self, address: Src, count: Src) -> [Src; 2] {
        let first = self.lop3(lut::A & lut::B, address, Src::imm(COLUMN), Src::ZERO);
        [first, self.add3(first, count, Src::imm(u32::MAX))]
    }

    /// Whether columns do not exist.
    pub(super) fn are_outside(&mut self, address: Src, count: Src) -> Vec<Src> {
        let ends = self.ends(address, count);
        self.do_not_exist(ends, count)
    }

    fn do_not_exist(&mut self, [first, last]: [Src; 2], count: Src) -> Vec<Src> {
        let mut wrong = vec![self.is_at_least(last, COLUMNS)];
        // A known count is not zero, so the last column is not before the first.
        if known(count).is_none() {
            wrong.push(self.is_at_least(first, COLUMNS));
        }
        wrong
    }

    /// Whether columns do not exist, or the block does not hold the units that they are in.
    pub(super) fn are_not_held(&mut self, address: Src, count: Src) -> Vec<Src> {
        self.uses_tensor(TensorUse::CHECKED);
        let [first, last] = self.ends(address, count);
        let mut wrong = self.do_not_exist([first, last], count);
        let (first, last) = (self.shift_right(first, UNIT, false), self.shift_right(last, UNIT, false));
        let count = self.subtract(last, first);
        let count = self.add(count, Src::imm(1));
        let units = self.ones(count);
        let units = self.shift_left(units, first);
        let words = self.reserved_words();
        wrong.push(self.lacks(words, TAKEN, units));
        wrong
    }

    /// Whether an address is in a quarter of the lanes that the warp cannot access.
    pub(super) fn is_of_other_warp(&mut self, address: Src) -> Result<Src> {
        use SpecialReg as R;
        let [x, y, z, width, height] = [R::TidX, R::TidY, R::TidZ, R::NtidX, R::NtidY];
        let mut thread = self.special_register(z)?;
        for (extent, within) in [(height, y), (width, x)] {
            let (extent, within) = (self.special_register(extent)?, self.special_register(within)?);
            thread = self.multiply_add(thread, extent, within);
        }
        let own = self.field(thread, THREADS_OF_WARP, QUARTER);
        let accessed = self.field(address, QUARTER_AT, QUARTER);
        Ok(self.is_other(own, accessed))
    }

    /// Whether an operand of a product starts at a row at which it cannot start.
    fn is_misaligned(&mut self, address: Src, product: Product) -> Src {
        let row = self.field(address, LANE_AT, ROW);
        let is_moved = self.is_other(row, Src::ZERO);
        // The number of rows for which an operand may start in the middle.
        let rows = match (product.weights, product.pair, product.metadata.is_some()) {
            (false, false, _) => 64,
            (false, true, true) => 128,
            _ => return is_moved,
        };
        let height = self.field(product.description, HEIGHT_AT, HEIGHT);
        let is_odd = self.is_other(row, Src::imm(HALF));
        let is_other_height = self.is_other(height, Src::imm(rows / 16));
        let cannot = self.plop3(lut::A | lut::B, is_odd, is_other_height, Src::TRUE);
        self.plop3(lut::A & lut::B, is_moved, cannot, Src::TRUE)
    }

    /// The violations of an operand of a product.
    fn wrong_operand(&mut self, address: Src, columns: Src, product: Product) -> Vec<Src> {
        let mut wrong = self.are_not_held(address, columns);
        wrong.push(self.is_misaligned(address, product));
        wrong
    }

    /// The violations of a product, apart from its scale factors. On family targets, ptxas also checks that a product of
    /// elements of four bits is not sparse. It has no `.sp` there, so a sparse one already contradicts its descriptor.
    pub(super) fn wrong_product(&mut self, sum: Src, first: Factor, product: Product) -> Vec<Src> {
        let columns = self.width_of(product);
        let mut wrong = self.wrong_operand(sum, columns, product);
        let sparse = self.field(product.description, SPARSE_AT, 1);
        wrong.push(self.is_other(sparse, Src::imm(product.metadata.is_some().into())));
        if let Factor::Tensor(address) = first {
            wrong.extend(self.wrong_operand(address, FACTOR_COLUMNS, product));
        }
        if let Some(address) = product.metadata {
            wrong.extend(self.wrong_operand(address, METADATA_COLUMNS, product));
        }
        wrong
    }

    /// The columns of a sum.
    fn width_of(&mut self, product: Product) -> Src {
        let width = self.field(product.description, WIDTH_AT, WIDTH);
        self.shift_left(width, Src::imm(3))
    }

    /// The violations of the scale factors of both factors.
    pub(super) fn wrong_scales(&mut self, addresses: [Src; 2], product: Product) -> Vec<Src> {
        let mut first = Src::imm(SCALES);
        if product.pair {
            let height = self.field(product.description, HEIGHT_AT, HEIGHT);
            let is_other = self.is_other(height, Src::imm(128 / 16));
            first = self.select(is_other, first, Src::imm(SCALES / 2), 1);
        }
        let width = self.width_of(product);
        let rounded = self.add(width, Src::imm(SCALED_BY_TWO - 1));
        let parts = self.shift_right(rounded, SCALED_BY_TWO.ilog2(), false);
        let second = self.shift_left(parts, Src::imm(1));
        let mut wrong = self.wrong_operand(addresses[0], first, product);
        wrong.extend(self.wrong_operand(addresses[1], second, product));
        wrong
    }

    /// Whether an allocation of this many columns is impossible.
    pub(super) fn is_no_allocation(&mut self, count: Src) -> Vec<Src> {
        if known(count).is_some_and(|count| count.is_power_of_two() && count <= COLUMNS) {
            return Vec::new();
        }
        let mut wrong = self.are_outside(Src::ZERO, count);
        let ones = self.reg(Op::Popc, &[count]);
        wrong.push(self.is_other(ones, Src::imm(1)));
        wrong
    }
}
