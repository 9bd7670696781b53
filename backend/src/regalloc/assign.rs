//! Gives every bundle the lowest run of registers that is free wherever the bundle is live.
//!
//! Which order serves best depends on the function, and trying one is cheap, so several are tried and the one
//! that needs the fewest registers wins. Where none fits below the limit, bundles come in the order of what
//! spilling them would cost; those that find no place are broken up, and what finds no place then is returned
//! to be spilled.

use crate::ori::ir::{File, Function};
use crate::regalloc::bundle::Bundles;
use crate::regalloc::live::{Interval, Liveness, Point, Ranges};

/// The registers that may be given out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pool {
    pub(crate) file: File,
    /// Registers 0 to `count - 1` …
    pub(crate) count: u16,
    /// … but for this one.
    pub(crate) reserved: Option<u8>,
}

#[derive(Debug, Default)]
pub(crate) struct Assignment {
    /// Per bundle: its first register, `None` where it has no place or no life.
    pub(crate) base: Vec<Option<u8>>,
    /// Bundles without a place.
    pub(crate) failed: Vec<u32>,
    /// One more than the highest register given out.
    pub(crate) used: u16,
}

/// Per register, the points where it is taken: one bit each.
#[derive(Clone, Debug)]
pub(crate) struct Occupancy {
    words_per_register: usize,
    words: Vec<u64>,
}

impl Occupancy {
    pub(crate) fn new(registers: u16, points: Point) -> Occupancy {
        let words_per_register = points.div_ceil(64) as usize;
        Occupancy { words_per_register, words: vec![0; words_per_register * usize::from(registers)] }
    }

    fn row(&self, register: usize) -> &[u64] {
        &self.words[register * self.words_per_register..][..self.words_per_register]
    }

    pub(crate) fn is_free(&self, register: usize, ranges: &Ranges) -> bool {
        let row = self.row(register);
        ranges.0.iter().all(|&i| {
            let (first, last) = (i.start as usize / 64, (i.end as usize - 1) / 64);
            (first..=last).all(|w| row[w] & mask(i, w) == 0)
        })
    }

    pub(crate) fn is_free_at(&self, register: usize, point: Point) -> bool {
        self.row(register)[point as usize / 64] >> (point % 64) & 1 == 0
    }

    pub(crate) fn take(&mut self, register: usize, ranges: &Ranges) {
        let row = &mut self.words[register * self.words_per_register..][..self.words_per_register];
        for &i in &ranges.0 {
            for w in i.start as usize / 64..=(i.end as usize - 1) / 64 {
                row[w] |= mask(i, w);
            }
        }
    }
}

/// The bits of word `w` that an interval covers.
fn mask(interval: Interval, w: usize) -> u64 {
    let low = (interval.start as usize).saturating_sub(64 * w);
    let high = (interval.end as usize - 64 * w).min(64);
    (u64::MAX >> (64 - (high - low))) << low
}

/// Bundles of one file in some order.
type Order = Vec<u32>;

fn members_of(bundles: &Bundles, file: File) -> Order {
    let all = bundles.bundles.iter().enumerate();
    all.filter(|(_, b)| b.file == file && b.slots.iter().any(|s| !s.is_empty()))
        .map(|(i, _)| i as u32)
        .collect()
}

/// Assigns without regard for costs, in the best of a few orders. `None` if none fits.
pub(crate) fn assign(bundles: &Bundles, live: &Liveness, pool: Pool) -> Option<(Assignment, Occupancy)> {
    let all = members_of(bundles, pool.file);
    let at = |i: u32| &bundles.bundles[i as usize];
    let mut orders: Vec<Order> = Vec::new();
    let mut by = |key: &dyn Fn(u32) -> (u64, u64)| {
        let mut order = all.clone();
        order.sort_by_key(|&i| (key(i), i));
        if !orders.contains(&order) {
            orders.push(order);
        }
    };
    let wide_first = |i: u32| u64::MAX - at(i).width() as u64;
    by(&|i| (wide_first(i), u64::from(at(i).start())));
    by(&|i| (u64::from(at(i).start()), wide_first(i)));
    by(&|i| (wide_first(i), u64::MAX - at(i).length()));
    by(&|i| (u64::MAX - at(i).length(), u64::from(at(i).start())));

    let mut best: Option<(Assignment, Occupancy)> = None;
    for order in orders {
        // A later order must do better.
        let count = best.as_ref().map_or(pool.count, |(a, _)| a.used.saturating_sub(1));
        let mut run = Run::new(bundles, live, Pool { count, ..pool });
        if order.iter().all(|&i| run.place(bundles, i)) {
            best = Some((run.assignment, run.occupancy));
        }
    }
    best
}

/// Assigns in the order of cost; what has no place is in [`Assignment::failed`].
pub(crate) fn assign_or_spill(
    bundles: &mut Bundles,
    func: &Function,
    live: &Liveness,
    fixed: &[bool],
    pool: Pool,
) -> (Assignment, Occupancy) {
    let mut order = members_of(bundles, pool.file);
    let cost = |b: &Bundles, i: u32| {
        let bundle = &b.bundles[i as usize];
        if bundle.fixed { f32::INFINITY } else { bundle.weight / bundle.length() as f32 }
    };
    order.sort_by(|&a, &b| cost(bundles, b).total_cmp(&cost(bundles, a)).then(a.cmp(&b)));
    let mut run = Run::new(bundles, live, pool);
    for i in order {
        if run.place(bundles, i) {
            continue;
        }
        for piece in bundles.break_up(i, func, live, fixed) {
            run.assignment.base.resize(bundles.bundles.len(), None);
            let alive = bundles.bundles[piece as usize].slots.iter().any(|s| !s.is_empty());
            if alive && !run.place(bundles, piece) {
                run.assignment.failed.push(piece);
            }
        }
    }
    (run.assignment, run.occupancy)
}

struct Run {
    pool: Pool,
    occupancy: Occupancy,
    assignment: Assignment,
}

impl Run {
    fn new(bundles: &Bundles, live: &Liveness, pool: Pool) -> Run {
        let mut occupancy = Occupancy::new(pool.count, live.points);
        if let Some(r) = pool.reserved.filter(|&r| u16::from(r) < pool.count && live.points > 0) {
            let everywhere = [Interval { start: 0, end: live.points }];
            occupancy.take(usize::from(r), &Ranges(everywhere.into_iter().collect()));
        }
        let base = vec![None; bundles.bundles.len()];
        Run { pool, occupancy, assignment: Assignment { base, ..Assignment::default() } }
    }

    fn place(&mut self, bundles: &Bundles, index: u32) -> bool {
        let bundle = &bundles.bundles[index as usize];
        let (width, count) = (bundle.width(), usize::from(self.pool.count));
        let mut base = usize::from(bundle.residue);
        while base + width <= count {
            if bundle.slots.iter().enumerate().all(|(i, s)| self.occupancy.is_free(base + i, s)) {
                for (i, s) in bundle.slots.iter().enumerate() {
                    self.occupancy.take(base + i, s);
                }
                self.assignment.base[index as usize] = Some(base as u8);
                self.assignment.used = self.assignment.used.max((base + width) as u16);
                return true;
            }
            base += usize::from(bundle.align);
        }
        false
    }
}
