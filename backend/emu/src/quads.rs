//! Products of 8×8×4 matrices of halves. A warp computes four of them, each with four adjacent lanes of its lower half
//! and four of its upper half. [`ptx_isa::fragment`] says which registers hold which elements.

use crate::float::{F16, F32, Rounding};
use crate::launch::WARP;
use crate::matrix::{Element, Fragment, Sum, total};
use ptx_isa::fragment::{Place, quad_factor, quad_lane, quad_sum};

const SIZE: usize = 8;
const DEPTH: usize = 4;
const PRODUCTS: usize = 4;

/// D = A·B + C. The results can be halves only if the elements of C are halves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Product {
    /// Each lane holds a whole row of the first factor.
    pub(crate) by_row: bool,
    /// Each lane holds a whole column of the second factor.
    pub(crate) by_column: bool,
    pub(crate) half_result: bool,
    pub(crate) half_start: bool,
}

impl Product {
    /// The number of registers of the result in each thread.
    pub(crate) fn result_registers(&self) -> usize {
        if self.half_result { 4 } else { 8 }
    }

    pub(crate) fn start_registers(&self) -> usize {
        if self.half_start { 4 } else { 8 }
    }

    pub(crate) fn compute(&self, a: &Fragment, b: &Fragment, c: &Fragment) -> Fragment {
        let mut d = vec![[0; WARP]; self.result_registers()];
        let sum = if self.half_result { Sum::F16 } else { Sum::F32 };
        for product in 0..PRODUCTS {
            let lane = |lane: usize| quad_lane(product, lane);
            let half = |fragment: &Fragment, Place { lane: of, index: i }: Place| {
                u64::from(fragment[i / 2][lane(of)] >> (16 * (i % 2)) & 0xffff)
            };
            for (row, column) in (0..SIZE).flat_map(|row| (0..SIZE).map(move |column| (row, column))) {
                let factors = (0..DEPTH).map(|k| {
                    let place = quad_factor(self.by_column, column, k);
                    (half(a, quad_factor(self.by_row, row, k)), half(b, place))
                });
                let place = quad_sum(self.half_start, row, column);
                let start = match self.half_start {
                    true if self.half_result => half(c, place),
                    true => F16.convert(half(c, place), F32, Rounding::Nearest),
                    false => c[place.index][lane(place.lane)].into(),
                };
                let value = total(Element::F16, Element::F16, sum, factors, start) as u32;
                let Place { lane: of, index: i } = quad_sum(self.half_result, row, column);
                match self.half_result {
                    true => d[i / 2][lane(of)] |= value << (16 * (i % 2)),
                    false => d[i][lane(of)] = value,
                }
            }
        }
        d
    }

    /// Executes one of the machine's steps, which computes two registers of the result from two registers of C.
    pub(crate) fn step(&self, step: usize, a: &Fragment, b: &Fragment, c: &Fragment) -> Fragment {
        let mut start = vec![[0; WARP]; self.start_registers()];
        // Two steps share registers of C if C has halves and the result has single precision.
        let first = if self.half_start && !self.half_result { step & !1 } else { 2 * step };
        for (to, from) in start.iter_mut().skip(first).zip(c) {
            *to = *from;
        }
        self.compute(a, b, &start).into_iter().skip(2 * step).take(2).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_make_the_whole() {
        let halves = |seed: u32| -> Fragment {
            (0..2).map(|i| std::array::from_fn(|lane| 0x3c00_3c00 + (lane as u32 * seed + i) % 512)).collect()
        };
        for half_result in [false, true] {
            let product = Product { by_row: true, by_column: false, half_result, half_start: true };
            let (a, b) = (halves(3), halves(5));
            let c = [halves(7), halves(11)].concat();
            let steps = product.result_registers() / 2;
            let from = |step: usize| if half_result { 2 * step } else { step & !1 };
            let made = (0..steps).flat_map(|s| product.step(s, &a, &b, &c[from(s)..][..2].to_vec()));
            assert_eq!(made.collect::<Fragment>(), product.compute(&a, &b, &c));
        }
    }
}
