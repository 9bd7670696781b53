//! Records where each register is taken.

use crate::regalloc::live::{Point, Ranges};
use smallvec::SmallVec;
use std::ops::Range;

/// A set of the registers of one file.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Registers([u64; Registers::WORDS]);

impl Registers {
    const WORDS: usize = 4;

    /// The registers `residue`, `residue + align`, … below `end`. `align` is a power of two.
    pub(crate) fn every(align: u8, residue: u8, end: usize) -> Registers {
        // One bit set in every `align` bits.
        let pattern = (u64::MAX / (u64::MAX >> (64 - u32::from(align)))) << residue;
        let mut registers = Registers::default();
        for (i, word) in registers.0.iter_mut().enumerate() {
            *word = pattern & low(end.saturating_sub(64 * i));
        }
        registers
    }

    /// `count` registers from `first` on.
    pub(crate) fn run(first: usize, count: usize) -> Registers {
        Registers::every(1, 0, first + count).without(Registers::every(1, 0, first))
    }

    pub(crate) fn contains(&self, register: usize) -> bool {
        self.0[register / 64] >> (register % 64) & 1 != 0
    }

    pub(crate) fn insert(&mut self, register: usize) {
        self.0[register / 64] |= 1 << (register % 64);
    }

    pub(crate) fn union(mut self, other: Registers) -> Registers {
        (0..Registers::WORDS).for_each(|i| self.0[i] |= other.0[i]);
        self
    }

    pub(crate) fn intersection(mut self, other: Registers) -> Registers {
        (0..Registers::WORDS).for_each(|i| self.0[i] &= other.0[i]);
        self
    }

    pub(crate) fn without(mut self, other: Registers) -> Registers {
        (0..Registers::WORDS).for_each(|i| self.0[i] &= !other.0[i]);
        self
    }

    /// The set with every index reduced by `by`; registers below zero are dropped.
    pub(crate) fn lowered(self, by: usize) -> Registers {
        let (words, bits) = (by / 64, by % 64);
        let at = |word: usize| self.0.get(word + words).map_or(0, |word| *word);
        let mut lowered = Registers::default();
        for (i, word) in lowered.0.iter_mut().enumerate() {
            // Shifted in two steps, because a shift by all bits of a word is not defined.
            *word = at(i) >> bits | at(i + 1) << 1 << (63 - bits);
        }
        lowered
    }

    pub(crate) fn first(&self) -> Option<usize> {
        let word = self.0.iter().position(|word| *word != 0)?;
        Some(64 * word + self.0[word].trailing_zeros() as usize)
    }

    /// In ascending order.
    pub(crate) fn iter(mut self) -> impl Iterator<Item = usize> {
        std::iter::from_fn(move || {
            let first = self.first()?;
            self.0[first / 64] &= self.0[first / 64] - 1;
            Some(first)
        })
    }
}

/// A word with its lowest `bits` bits set.
fn low(bits: usize) -> u64 {
    u64::MAX.checked_shr(64 - bits.min(64) as u32).unwrap_or(0)
}

/// For each point, the set of registers that are taken there, stored as a tree. A node stands for [`FAN`] neighboring
/// nodes of the level below; the lowest level has a node for each point. If a range covers a node completely, this is
/// recorded only in that node. So a query or update takes a few steps per level, and one query answers for all
/// registers.
#[derive(Clone, Debug)]
pub(crate) struct Occupancy {
    /// The number of words of a set.
    words: usize,
    /// The first node of each level.
    levels: SmallVec<[usize; 8]>,
    /// For each node, the registers taken at some of its points, except those taken for a whole node above it.
    some: Vec<u64>,
    /// For each node above the lowest level, the registers whose ranges cover it but not the node above it.
    all: Vec<u64>,
}

/// The number of children of a node.
const FAN: usize = 8;

impl Occupancy {
    pub(crate) fn new(registers: u16, points: Point) -> Occupancy {
        let mut levels = SmallVec::new();
        let (mut nodes, mut count) = (0, points as usize);
        loop {
            levels.push(nodes);
            nodes += count;
            if count <= FAN {
                break;
            }
            count = count.div_ceil(FAN);
        }
        let words = usize::from(registers).div_ceil(64).max(1);
        let inner = nodes - levels.get(1).unwrap_or(&nodes);
        Occupancy { words, levels, some: vec![0; words * nodes], all: vec![0; words * inner] }
    }

    /// The registers that are taken anywhere in the ranges.
    pub(crate) fn taken(&self, ranges: &Ranges) -> Registers {
        // Loops over a constant number of words are much faster.
        match self.words {
            1 => self.taken_in::<1>(ranges),
            2 => self.taken_in::<2>(ranges),
            3 => self.taken_in::<3>(ranges),
            _ => self.taken_in::<4>(ranges),
        }
    }

    fn taken_in<const WORDS: usize>(&self, ranges: &Ranges) -> Registers {
        let (some, _) = self.some.as_chunks::<WORDS>();
        let (all, _) = self.all.as_chunks::<WORDS>();
        let inner = self.inner();
        let mut taken = [0; WORDS];
        let mut add = |set: &[u64; WORDS]| (0..WORDS).for_each(|i| taken[i] |= set[i]);
        for interval in &ranges.0 {
            let steps = Steps::new(&self.levels, interval.start as usize, interval.end as usize);
            for step in steps {
                some[step.before.clone()].iter().for_each(&mut add);
                some[step.after.clone()].iter().for_each(&mut add);
                if let Some([first, last]) = step.around {
                    add(&all[first - inner]);
                    if last != first {
                        add(&all[last - inner]);
                    }
                }
            }
        }
        let mut registers = Registers::default();
        registers.0[..WORDS].copy_from_slice(&taken);
        registers
    }

    pub(crate) fn taken_at(&self, point: Point) -> Registers {
        let mut registers = Registers::default();
        let mut add = |words: &[u64]| registers.0.iter_mut().zip(words).for_each(|(all, word)| *all |= word);
        let inner = self.inner();
        let mut node = point as usize;
        add(&self.some[self.words * node..][..self.words]);
        for level in self.levels.iter().skip(1) {
            node /= FAN;
            add(&self.all[self.words * (level + node - inner)..][..self.words]);
        }
        registers
    }

    pub(crate) fn take(&mut self, register: usize, ranges: &Ranges) {
        self.take_all(Registers::run(register, 1), ranges);
    }

    /// Marks the ranges as taken in each of the registers.
    pub(crate) fn take_all(&mut self, registers: Registers, ranges: &Ranges) {
        for (word, bits) in registers.0.into_iter().enumerate().filter(|(_, bits)| *bits != 0) {
            self.take_in_word(word, bits, ranges);
        }
    }

    fn take_in_word(&mut self, word: usize, bits: u64, ranges: &Ranges) {
        let inner = self.inner();
        for interval in &ranges.0 {
            for step in Steps::new(&self.levels, interval.start as usize, interval.end as usize) {
                for node in step.covered() {
                    self.some[self.words * node + word] |= bits;
                    if step.around.is_some() {
                        self.all[self.words * (node - inner) + word] |= bits;
                    }
                }
                for node in step.around.into_iter().flatten() {
                    self.some[self.words * node + word] |= bits;
                }
            }
        }
    }

    /// Undoes [`Occupancy::take`].
    pub(crate) fn release(&mut self, register: usize, ranges: &Ranges) {
        let (word, bit) = (register / 64, 1 << (register % 64));
        let inner = self.inner();
        for interval in &ranges.0 {
            let steps = Steps::new(&self.levels, interval.start as usize, interval.end as usize);
            let mut below = 0;
            for (step, &level) in steps.zip(&self.levels) {
                for node in step.covered() {
                    self.some[self.words * node + word] &= !bit;
                    if step.around.is_some() {
                        self.all[self.words * (node - inner) + word] &= !bit;
                    }
                }
                // Nodes at the ends may still have the register for other ranges.
                for node in step.around.into_iter().flatten() {
                    let first = below + FAN * (node - level);
                    let mut nodes = first..(first + FAN).min(level);
                    let is_taken = self.all[self.words * (node - inner) + word] & bit != 0
                        || nodes.any(|below| self.some[self.words * below + word] & bit != 0);
                    if !is_taken {
                        self.some[self.words * node + word] &= !bit;
                    }
                }
                below = level;
            }
        }
    }

    /// The first node above the lowest level.
    fn inner(&self) -> usize {
        self.levels.get(1).map_or(self.some.len(), |first| *first)
    }
}

/// The nodes of one level that a range affects.
struct Step {
    /// The nodes that the range covers and whose parents it does not cover: those before the first covered parent, and
    /// those after the last one.
    before: Range<usize>,
    after: Range<usize>,
    /// Above the lowest level, the nodes that contain its first and its last point.
    around: Option<[usize; 2]>,
}

impl Step {
    fn covered(&self) -> impl Iterator<Item = usize> + use<> {
        self.before.clone().chain(self.after.clone())
    }
}

/// Iterates over the levels from the lowest one up.
struct Steps<'a> {
    levels: &'a [usize],
    level: usize,
    /// The nodes that contain its first and its last point.
    ends: [usize; 2],
    /// The nodes of the level that the range covers and that no lower node represents.
    start: usize,
    end: usize,
}

impl Steps<'_> {
    fn new(levels: &[usize], start: usize, end: usize) -> Steps<'_> {
        Steps { levels, level: 0, ends: [start, end - 1], start, end }
    }
}

impl Iterator for Steps<'_> {
    type Item = Step;

    #[inline]
    fn next(&mut self) -> Option<Step> {
        let first = *self.levels.get(self.level)?;
        let [low, high] = self.ends;
        let around = (self.level > 0).then_some([first + low, first + high]);
        let (start, end) = (self.start, self.end);
        let (up, down) = (start.next_multiple_of(FAN), end - end % FAN);
        let is_last = self.level + 1 == self.levels.len();
        let (before, after) = if is_last || up >= down {
            (self.start, self.end) = (0, 0);
            (start..end, end..end)
        } else {
            (self.start, self.end) = (up / FAN, down / FAN);
            (start..up, down..end)
        };
        let among = |nodes: Range<usize>| first + nodes.start..first + nodes.end;
        self.ends = [low / FAN, high / FAN];
        self.level += 1;
        Some(Step { before: among(before), after: among(after), around })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::regalloc::live::Interval;

    #[test]
    fn ranges_of_all_lengths_are_taken_and_released() {
        const REGISTER: usize = 130;
        let points = 40_000;
        let mut random = fastrand::Rng::with_seed(1);
        let mut occupancy = Occupancy::new(200, points);
        let mut taken: Vec<bool> = vec![false; points as usize];
        let mut held: Vec<Ranges> = Vec::new();
        let (mut free, mut busy) = (0, 0);
        for _ in 0..2000 {
            let most = 1 << random.u32(1..15);
            let length = 1 + random.u32(0..most);
            let start = random.u32(0..points - length);
            let ranges = Ranges([Interval { start, end: start + length }].into_iter().collect());
            let is_free = !taken[start as usize..][..length as usize].contains(&true);
            let expected = (!is_free).then_some(REGISTER);
            assert!(occupancy.taken(&ranges).iter().eq(expected), "{start}, {length}");
            let at_start = taken[start as usize].then_some(REGISTER);
            assert!(occupancy.taken_at(start).iter().eq(at_start), "{start}");
            if is_free {
                free += 1;
                taken[start as usize..][..length as usize].fill(true);
                occupancy.take(REGISTER, &ranges);
                held.push(ranges);
            } else {
                busy += 1;
                let old = held.swap_remove(random.usize(..held.len()));
                let Interval { start, end } = old.0[0];
                taken[start as usize..end as usize].fill(false);
                occupancy.release(REGISTER, &old);
            }
        }
        assert!(free > 100 && busy > 100);
    }

    #[test]
    fn a_function_may_have_no_points() {
        let occupancy = Occupancy::new(1, 0);
        assert_eq!(occupancy.taken(&Ranges::default()), Registers::default());
    }

    #[test]
    fn sets_of_registers() {
        let every = |align, residue, end| Registers::every(align, residue, end).iter().collect::<Vec<_>>();
        assert_eq!(every(4, 1, 14), [1, 5, 9, 13]);
        assert_eq!(every(1, 0, 256).len(), 256);
        assert_eq!(every(2, 0, 130).last(), Some(&128));
        assert_eq!(every(1, 0, 0), []);
        let set = Registers::every(1, 0, 140).without(Registers::every(1, 0, 62));
        assert!(set.lowered(3).iter().eq(59..137));
        assert!(set.lowered(0).iter().eq(62..140));
        assert!(set.lowered(64).iter().eq(0..76));
        assert!(set.lowered(130).iter().eq(0..10));
    }
}
