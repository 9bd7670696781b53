//! The layout of matrix fragments: which lane of a warp holds which elements, as in the manual's figures of `mma`,
//! `ldmatrix` and `wgmma`.
//!
//! Elements smaller than 32 bits share registers in the order of their indices, the first in the low bits. A 64-bit
//! element has a 64-bit register of its own.

use crate::{FormId, Mod, Opcode, ScalarType};

/// The number of warps in a warpgroup.
const WARPS: usize = 4;

/// A lane, and the index of an element among those that the lane holds of one operand.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Place {
    pub lane: usize,
    pub index: usize,
}

/// An element of the first factor, which has 8 or 16 rows. A lane holds adjacent elements of a row, as many as fit into
/// 32 bits.
pub fn first_factor(rows: usize, bits: u32, row: usize, k: usize) -> Place {
    let run = (32 / bits.min(32)) as usize;
    let (lane, block) = (row % 8 * 4 + k / run % 4, k / (4 * run));
    let register = block * (rows / 8) + row / 8;
    Place { lane, index: register * run + k % run }
}

/// An element of the second factor. A lane holds adjacent elements of a column.
pub fn second_factor(bits: u32, k: usize, column: usize) -> Place {
    first_factor(8, bits, column, k)
}

/// An element of an accumulator of up to 16 rows, or of the 16 rows that one warp of a warpgroup holds. A lane holds
/// two adjacent elements of a row. The layout repeats every 8 columns.
pub fn sum(row: usize, column: usize) -> Place {
    let index = column / 8 * 4 + row / 8 * 2 + column % 2;
    Place { lane: row % 8 * 4 + column % 8 / 2, index }
}

/// An element of a factor in one of the four products of `mma.m8n8k4` with halves. The lane is from zero to seven. If
/// `whole` is set, each lane holds a whole row (in the second factor, a column), which has four elements. Otherwise
/// each of four lanes holds one element of each of the first four rows; the other four lanes hold the last four rows.
pub fn quad_factor(whole: bool, across: usize, along: usize) -> Place {
    match whole {
        true => Place { lane: across, index: along },
        false => Place { lane: across / 4 * 4 + along, index: across % 4 },
    }
}

/// An element of an accumulator of these products. With halves, each lane holds a row.
pub fn quad_sum(half: bool, row: usize, column: usize) -> Place {
    if half {
        return Place { lane: row, index: column };
    }
    let lane = row / 4 * 4 + row % 2 + (column & 2);
    Place { lane, index: (row & 2) + (column & 4) + column % 2 }
}

/// The lane of the warp that has the number `lane` in one of the four products.
pub fn quad_lane(product: usize, lane: usize) -> usize {
    product * 4 + lane % 4 + lane / 4 * 16
}

/// The size of a factor's element in its register. Elements of six and four bits take a whole byte, except four-bit
/// elements in products that have no others.
pub fn factor_bits(opcode: &Opcode, ty: ScalarType) -> u32 {
    let is_dense = opcode.has(Mod::KindMxf4) || opcode.has(Mod::KindMxf4nvf4);
    match ty {
        ScalarType::Tf32 => 32,
        ScalarType::E2m1 if is_dense => 4,
        ScalarType::E2m1 | ScalarType::E2m3 | ScalarType::E3m2 => 8,
        ty => ty.bits(),
    }
}

/// How the elements are distributed over the lanes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Layout {
    First,
    Second,
    Sum,
    /// The layout of a matrix that is transposed.
    TransposedSum,
    QuadFactor {
        whole: bool,
        /// This is the second factor, whose row index is k.
        second: bool,
    },
    QuadSum,
}

/// An operand that holds a matrix in the registers of a warp.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fragment {
    /// The operand's name in the table.
    pub operand: &'static str,
    /// The size of one of `count` equal matrices that a warp holds.
    pub rows: usize,
    pub columns: usize,
    /// The size of an element in a register.
    pub bits: u32,
    pub ty: ScalarType,
    /// The number of consecutive matrices: those of `ldmatrix`, and for accumulators of `wgmma` the groups of 8
    /// columns.
    pub count: usize,
    /// The number of warps that hold the matrix, each the next `rows` of its rows: four for `wgmma`.
    pub warps: usize,
    layout: Layout,
}

impl Fragment {
    /// The place of an element. If a warp computes four products, lanes are those of one product.
    pub fn place(&self, row: usize, column: usize) -> Place {
        match self.layout {
            Layout::First => first_factor(self.rows, self.bits, row, column),
            Layout::Second => second_factor(self.bits, row, column),
            Layout::Sum => sum(row, column),
            Layout::TransposedSum => sum(column, row),
            Layout::QuadFactor { whole, second: false } => quad_factor(whole, row, column),
            Layout::QuadFactor { whole, second: true } => quad_factor(whole, column, row),
            Layout::QuadSum => quad_sum(self.bits == 16, row, column),
        }
    }

    /// Whether a warp computes four such products, each with eight lanes.
    pub fn is_quad(&self) -> bool {
        matches!(self.layout, Layout::QuadFactor { .. } | Layout::QuadSum)
    }

    /// Whether the other operand has the same layout and type.
    pub fn is_like(&self, other: &Fragment) -> bool {
        Fragment { operand: other.operand, ..*self } == *other
    }

    /// The number of elements in a register.
    pub fn per_register(&self) -> usize {
        (32 / self.bits.min(32)) as usize
    }
}

/// The operands of an instruction whose fragment layout the manual specifies. `registers` says whether an operand of
/// `wgmma` is in registers if it could also be in shared memory.
pub fn fragments(opcode: &Opcode, registers: impl Fn(&str) -> bool) -> Vec<Fragment> {
    use FormId as F;
    let shape = opcode.mods().find_map(Mod::shape).map(|(m, n, k)| (m as usize, n as usize, k as usize));
    let is_sparse = opcode.has(Mod::Sp) || opcode.has(Mod::SpOrderedMetadata);
    let fragment = |operand, rows, columns, bits, ty, layout| Fragment {
        operand,
        rows,
        columns,
        bits,
        ty,
        count: 1,
        warps: 1,
        layout,
    };
    let ty = |i| opcode.ty(i).unwrap_or(ScalarType::B32);
    match opcode.form {
        F::MmaF16M8 => {
            let mut layouts = opcode.mods().filter(|m| matches!(m, Mod::Row | Mod::Col));
            let first = Layout::QuadFactor { whole: layouts.next() == Some(Mod::Row), second: false };
            let second = Layout::QuadFactor { whole: layouts.next() == Some(Mod::Col), second: true };
            vec![
                fragment("d", 8, 8, ty(0).bits(), ty(0), Layout::QuadSum),
                fragment("a", 8, 4, 16, ty(1), first),
                fragment("b", 4, 8, 16, ty(2), second),
                fragment("c", 8, 8, ty(3).bits(), ty(3), Layout::QuadSum),
            ]
        }
        // No hardware has this instruction.
        F::MmaBf16M8 => Vec::new(),
        form if form.mnemonic() == "mma" => {
            let Some((rows, columns, depth)) = shape else { return Vec::new() };
            let stored = if is_sparse { depth / 2 } else { depth };
            let bits = |i| factor_bits(opcode, ty(i));
            vec![
                fragment("d", rows, columns, ty(0).bits(), ty(0), Layout::Sum),
                fragment("a", rows, stored, bits(1), ty(1), Layout::First),
                fragment("b", depth, columns, bits(2), ty(2), Layout::Second),
                fragment("c", rows, columns, ty(3).bits(), ty(3), Layout::Sum),
            ]
        }
        F::Ldmatrix | F::Stmatrix => {
            let layout = if opcode.has(Mod::Trans) { Layout::TransposedSum } else { Layout::Sum };
            let count = opcode.mods().find_map(Mod::count).unwrap_or(1) as usize;
            vec![Fragment { count, ..fragment("r", 8, 8, 16, ty(0), layout) }]
        }
        F::Movmatrix => vec![
            fragment("d", 8, 8, 16, ty(0), Layout::TransposedSum),
            fragment("a", 8, 8, 16, ty(0), Layout::Sum),
        ],
        F::WgmmaMma | F::WgmmaMmaSp | F::WgmmaMmaBits => {
            let Some((_, columns, depth)) = shape else { return Vec::new() };
            let stored = if is_sparse { depth / 2 } else { depth };
            let result = fragment("d", 16, 8, ty(0).bits(), ty(0), Layout::Sum);
            let mut all = vec![Fragment { count: columns / 8, warps: WARPS, ..result }];
            if registers("a") {
                let first = fragment("a", 16, stored, factor_bits(opcode, ty(1)), ty(1), Layout::First);
                all.push(Fragment { warps: WARPS, ..first });
            }
            all
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str) -> Vec<Fragment> {
        let mut words = name.split('.');
        let mnemonic = words.next().expect("a mnemonic");
        let opcode = crate::resolve(mnemonic, &words.collect::<Vec<_>>()).expect("it is in the table");
        fragments(&opcode, |_| true)
    }

    /// Each element has one place, and the lanes hold as many elements as there are.
    #[test]
    fn every_element_has_a_place() {
        let names = [
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
            "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32",
            "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64",
            "mma.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32",
            "mma.sync.aligned.m8n8k4.row.row.f32.f16.f16.f32",
            "mma.sync.aligned.m8n8k4.col.col.f16.f16.f16.f16",
            "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32",
            "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16",
            "movmatrix.sync.aligned.m8n8.trans.b16",
            "wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16",
        ];
        for fragment in names.iter().flat_map(|name| of(name)) {
            let (rows, columns) = (fragment.rows, fragment.columns);
            let all = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
            let mut places: Vec<Place> = all.map(|(row, column)| fragment.place(row, column)).collect();
            places.sort_unstable();
            places.dedup();
            let lanes = if fragment.is_quad() { 8 } else { 32 };
            let last = Place { lane: lanes - 1, index: rows * columns / lanes - 1 };
            assert_eq!((places.len(), places.last()), (rows * columns, Some(&last)), "{fragment:?}");
        }
    }

    #[test]
    fn places_are_those_of_the_manual() {
        let [d, a, b, _] = of("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")[..] else { panic!() };
        // Figures of mma.m16n8k16 with halves: row and column of a5, b2 and c3 in lane 6.
        assert_eq!(a.place(1, 13), Place { lane: 6, index: 5 });
        assert_eq!(b.place(12, 1), Place { lane: 6, index: 2 });
        assert_eq!(d.place(9, 5), Place { lane: 6, index: 3 });
        assert_eq!((a.per_register(), d.per_register()), (2, 1));
    }
}
