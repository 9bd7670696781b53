//! Products of 8×8×4 matrices of halves, four in a warp: each by four neighbours of its lower half and as many of its
//! upper one. Which registers hold which elements is in the PTX manual's figures of `mma.m8n8k4`.

use crate::float::{F16, F32, Rounding};
use crate::launch::WARP;
use crate::matrix::{Element, Fragment, Sum, total};

const SIZE: usize = 8;
const DEPTH: usize = 4;
const PRODUCTS: usize = 4;

/// D = A·B + C. The results are halves only where what they are added to is halves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Product {
    /// Lanes hold whole rows of the first factor.
    pub(crate) by_row: bool,
    /// Lanes hold whole columns of the second one.
    pub(crate) by_column: bool,
    pub(crate) half_result: bool,
    pub(crate) half_start: bool,
}

/// A lane of a product, counted from zero to seven, and the number of an element of its fragment.
type Place = (usize, usize);

/// Each lane holds four, one behind the other, or one of each of four; those of the upper half have the last four.
fn factor(whole: bool, across: usize, along: usize) -> Place {
    if whole { (across, along) } else { (across / 4 * 4 + along, across % 4) }
}

/// An element of what is summed: of halves each lane holds a row.
fn summand(half: bool, row: usize, column: usize) -> Place {
    if half {
        return (row, column);
    }
    (row / 4 * 4 + row % 2 + (column & 2), (row & 2) + (column & 4) + column % 2)
}

impl Product {
    /// Registers of the result in each thread.
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
            let lane = |lane: usize| product * 4 + lane % 4 + lane / 4 * (WARP / 2);
            let half = |fragment: &Fragment, (of, i): Place| {
                u64::from(fragment[i / 2][lane(of)] >> (16 * (i % 2)) & 0xffff)
            };
            for (row, column) in (0..SIZE).flat_map(|row| (0..SIZE).map(move |column| (row, column))) {
                let factors = (0..DEPTH).map(|k| {
                    let place = factor(self.by_column, column, k);
                    (half(a, factor(self.by_row, row, k)), half(b, place))
                });
                let (of, i) = summand(self.half_start, row, column);
                let start = match self.half_start {
                    true if self.half_result => half(c, (of, i)),
                    true => F16.convert(half(c, (of, i)), F32, Rounding::Nearest),
                    false => c[i][lane(of)].into(),
                };
                let value = total(Element::F16, Element::F16, sum, factors, start) as u32;
                let (of, i) = summand(self.half_result, row, column);
                match self.half_result {
                    true => d[i / 2][lane(of)] |= value << (16 * (i % 2)),
                    false => d[i][lane(of)] = value,
                }
            }
        }
        d
    }

    /// One of the steps that the machine takes, each of which makes two registers of the result from two of what is
    /// added to.
    pub(crate) fn step(&self, step: usize, a: &Fragment, b: &Fragment, c: &Fragment) -> Fragment {
        let mut start = vec![[0; WARP]; self.start_registers()];
        // Two steps share registers of halves from which single results are made.
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
    fn every_element_has_a_place() {
        for (half, count) in [(true, SIZE), (false, SIZE)] {
            let mut places: Vec<Place> =
                (0..SIZE).flat_map(|row| (0..SIZE).map(move |column| summand(half, row, column))).collect();
            places.sort_unstable();
            places.dedup();
            assert_eq!((places.len(), places.last()), (SIZE * SIZE, Some(&(SIZE - 1, count - 1))));
        }
    }

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
