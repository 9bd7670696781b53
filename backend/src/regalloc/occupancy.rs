//! Where each register is taken.

use crate::regalloc::live::{Point, Ranges};
use smallvec::SmallVec;

/// Per register, a bit for each point: set where the register is taken. Above these are levels with a bit for each word
/// of the level below, set where that word is not zero, so that long ranges are asked about in a few steps.
#[derive(Clone, Debug)]
pub(crate) struct Occupancy {
    /// Where each level starts among the words of a register.
    levels: SmallVec<[usize; 4]>,
    words_per_register: usize,
    words: Vec<u64>,
}

impl Occupancy {
    pub(crate) fn new(registers: u16, points: Point) -> Occupancy {
        let mut levels = SmallVec::new();
        let (mut words, mut count) = (0, points as usize);
        loop {
            levels.push(words);
            count = count.div_ceil(64);
            words += count;
            if count <= 1 {
                break;
            }
        }
        Occupancy { levels, words_per_register: words, words: vec![0; words * usize::from(registers)] }
    }

    fn row(&self, register: usize) -> &[u64] {
        &self.words[register * self.words_per_register..][..self.words_per_register]
    }

    fn row_mut(&mut self, register: usize) -> &mut [u64] {
        &mut self.words[register * self.words_per_register..][..self.words_per_register]
    }

    pub(crate) fn is_free(&self, register: usize, ranges: &Ranges) -> bool {
        let row = self.row(register);
        ranges.0.iter().all(|i| self.has_none(row, i.start as usize, i.end as usize))
    }

    fn has_none(&self, row: &[u64], mut start: usize, mut end: usize) -> bool {
        for level in &self.levels {
            let words = &row[*level..];
            let (first, last) = (start / 64, (end - 1) / 64);
            if words[first] & mask(start, end, first) != 0 || words[last] & mask(start, end, last) != 0 {
                return false;
            }
            // The words between are bits of the next level.
            (start, end) = (first + 1, last);
            if start >= end {
                return true;
            }
        }
        true
    }

    pub(crate) fn is_free_at(&self, register: usize, point: Point) -> bool {
        self.row(register)[point as usize / 64] >> (point % 64) & 1 == 0
    }

    pub(crate) fn take(&mut self, register: usize, ranges: &Ranges) {
        let levels = self.levels.clone();
        let row = self.row_mut(register);
        for i in &ranges.0 {
            let (mut start, mut end) = (i.start as usize, i.end as usize);
            for level in &levels {
                let (first, last) = (start / 64, (end - 1) / 64);
                for w in first..=last {
                    row[level + w] |= mask(start, end, w);
                }
                (start, end) = (first, last + 1);
            }
        }
    }

    /// Undoes [`Occupancy::take`].
    pub(crate) fn release(&mut self, register: usize, ranges: &Ranges) {
        let levels = self.levels.clone();
        let row = self.row_mut(register);
        for i in &ranges.0 {
            let (mut start, mut end) = (i.start as usize, i.end as usize);
            for level in &levels {
                let (first, last) = (start / 64, (end - 1) / 64);
                for w in first..=last {
                    row[level + w] &= !mask(start, end, w);
                }
                // Words at the ends may still have other bits.
                start = first + usize::from(row[level + first] != 0);
                end = last + usize::from(row[level + last] == 0);
                if start >= end {
                    break;
                }
            }
        }
    }
}

/// The bits of word `w` that are in a range which reaches into it.
fn mask(start: usize, end: usize, w: usize) -> u64 {
    let low = start.saturating_sub(64 * w);
    let high = (end - 64 * w).min(64);
    (u64::MAX >> (64 - (high - low))) << low
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::regalloc::live::Interval;

    #[test]
    fn ranges_of_all_lengths_are_taken_and_released() {
        let points = 40_000;
        let mut random = fastrand::Rng::with_seed(1);
        let mut occupancy = Occupancy::new(2, points);
        let mut taken: Vec<bool> = vec![false; points as usize];
        let mut held: Vec<Ranges> = Vec::new();
        let (mut free, mut busy) = (0, 0);
        for _ in 0..2000 {
            let most = 1 << random.u32(1..15);
            let length = 1 + random.u32(0..most);
            let start = random.u32(0..points - length);
            let ranges = Ranges([Interval { start, end: start + length }].into_iter().collect());
            let is_free = !taken[start as usize..][..length as usize].contains(&true);
            assert_eq!(occupancy.is_free(1, &ranges), is_free, "{start}, {length}");
            assert!(occupancy.is_free(0, &ranges));
            if is_free {
                free += 1;
                taken[start as usize..][..length as usize].fill(true);
                occupancy.take(1, &ranges);
                held.push(ranges);
            } else {
                busy += 1;
                let old = held.swap_remove(random.usize(..held.len()));
                let Interval { start, end } = old.0[0];
                taken[start as usize..end as usize].fill(false);
                occupancy.release(1, &old);
            }
        }
        assert!(free > 100 && busy > 100);
    }

    #[test]
    fn a_function_may_have_no_points() {
        let occupancy = Occupancy::new(1, 0);
        assert!(occupancy.is_free(0, &Ranges::default()));
    }
}
