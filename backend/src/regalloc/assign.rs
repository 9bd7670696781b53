//! Gives every bundle the lowest run of registers that is free wherever the bundle is live.
//!
//! Which order serves best depends on the function, and trying one is cheap, so several are tried and the one
//! that needs the fewest registers wins. Where none fits below the limit, bundles come in the order of what
//! spilling them would cost; those that find no place are broken up, and what finds no place then is returned
//! to be spilled.

use crate::ori::ir::{File, Function};
use crate::regalloc::bundle::{Bundle, Bundles};
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

    /// Undoes [`Occupancy::take`].
    fn release(&mut self, register: usize, ranges: &Ranges) {
        let row = &mut self.words[register * self.words_per_register..][..self.words_per_register];
        for &i in &ranges.0 {
            let first = i.start as usize / 64;
            for (w, word) in row[first..=(i.end as usize - 1) / 64].iter_mut().enumerate() {
                *word &= !mask(i, first + w);
            }
        }
    }

    pub(crate) fn take(&mut self, register: usize, ranges: &Ranges) {
        let row = &mut self.words[register * self.words_per_register..][..self.words_per_register];
        for &i in &ranges.0 {
            let first = i.start as usize / 64;
            for (w, word) in row[first..=(i.end as usize - 1) / 64].iter_mut().enumerate() {
                *word |= mask(i, first + w);
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

/// Registers that no order does without: the most that are live together, and the reserved one among them.
fn fewest(bundles: &Bundles, all: &Order, points: Point, pool: Pool) -> u16 {
    let mut delta = vec![0i32; points as usize + 1];
    let slots = all.iter().flat_map(|&i| &bundles.bundles[i as usize].slots);
    for interval in slots.flat_map(|s| &s.0) {
        delta[interval.start as usize] += 1;
        delta[interval.end as usize] -= 1;
    }
    let mut live = 0;
    let most = delta.into_iter().map(|change| {
        live += change;
        live
    });
    let most = most.max().unwrap_or(0).clamp(0, i32::from(u16::MAX) - 1) as u16;
    most + u16::from(pool.reserved.is_some_and(|r| most > u16::from(r)))
}

/// Assigns without regard for costs, in the best of a few orders. `None` if none fits.
pub(crate) fn assign(
    bundles: &Bundles,
    live: &Liveness,
    pool: Pool,
    checkpoint: &dyn Fn(),
) -> Option<(Assignment, Occupancy)> {
    let all = members_of(bundles, pool.file);
    let at = |i: u32| &bundles.bundles[i as usize];
    let wide_first = |i: u32| u64::MAX - at(i).width() as u64;
    let long_first = |i: u32| u64::MAX - at(i).length();
    let start = |i: u32| u64::from(at(i).start());
    let keys: [&dyn Fn(u32) -> (u64, u64); 4] = [
        &|i| (wide_first(i), start(i)),
        &|i| (start(i), wide_first(i)),
        &|i| (wide_first(i), long_first(i)),
        &|i| (long_first(i), start(i)),
    ];
    // Only runs leave gaps that a snug fit could avoid.
    let fits =
        if all.iter().any(|&i| at(i).width() > 1) { &[Fit::Lowest, Fit::Snug][..] } else { &[Fit::Lowest] };
    let fewest = fewest(bundles, &all, live.points, pool);
    let mut orders: Vec<Order> = Vec::new();
    let mut best: Option<(Assignment, Occupancy)> = None;
    for (&fit, attempt) in fits.iter().flat_map(|fit| (0..keys.len()).map(move |attempt| (fit, attempt))) {
        checkpoint();
        // A later attempt must do better.
        let count = best.as_ref().map_or(pool.count, |(a, _)| a.used.saturating_sub(1));
        if count < fewest {
            break;
        }
        if attempt == orders.len() {
            let mut order = all.clone();
            order.sort_by_cached_key(|&i| (keys[attempt](i), i));
            orders.push(order);
        }
        if orders[..attempt].contains(&orders[attempt]) {
            continue;
        }
        let mut run = Run::new(bundles, live, Pool { count, ..pool });
        if orders[attempt].iter().all(|&i| run.place(bundles, i, fit)) {
            best = Some((run.assignment, run.occupancy));
        }
    }
    best
}

/// Assigns in the order of cost; what has no place is in [`Assignment::failed`]. `None` if values that cannot be
/// spilled have no place.
pub(crate) fn assign_or_spill(
    bundles: &mut Bundles,
    func: &Function,
    live: &Liveness,
    fixed: &[bool],
    pool: Pool,
) -> Option<(Assignment, Occupancy)> {
    let mut order = members_of(bundles, pool.file);
    order.sort_by(|&a, &b| {
        let [x, y] = [a, b].map(|i| cost(&bundles.bundles[i as usize]));
        y.total_cmp(&x).then(a.cmp(&b))
    });
    let mut run = Run::new(bundles, live, pool);
    for i in order {
        if run.place(bundles, i, Fit::Lowest) {
            continue;
        }
        for piece in bundles.break_up(i, func, live, fixed) {
            run.assignment.base.resize(bundles.bundles.len(), None);
            let bundle = &bundles.bundles[piece as usize];
            if !bundle.slots.iter().any(|s| !s.is_empty()) || run.place(bundles, piece, Fit::Lowest) {
                continue;
            }
            if !bundle.fixed {
                run.assignment.failed.push(piece);
            } else if !run.evict_for(bundles, piece) {
                return None;
            }
        }
    }
    Some((run.assignment, run.occupancy))
}

/// What spilling a bundle costs for each point that it frees.
fn cost(bundle: &Bundle) -> f32 {
    if bundle.fixed { f32::INFINITY } else { bundle.weight / bundle.length() as f32 }
}

/// Which of several free places to take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fit {
    Lowest,
    /// Where the aligned group of registers is fullest already, so that whole groups stay free for runs.
    Snug,
}

/// The widest alignment of a run.
const WIDEST_ALIGNMENT: usize = 4;

struct Run {
    pool: Pool,
    occupancy: Occupancy,
    assignment: Assignment,
    /// Points of registers that are never given out.
    reserved: Option<(usize, Ranges)>,
}

impl Run {
    fn new(bundles: &Bundles, live: &Liveness, pool: Pool) -> Run {
        let mut occupancy = Occupancy::new(pool.count, live.points);
        let everywhere = live.everywhere();
        let reserved = pool
            .reserved
            .filter(|&r| u16::from(r) < pool.count && live.points > 0)
            .map(|r| (usize::from(r), everywhere));
        if let Some((register, ranges)) = &reserved {
            occupancy.take(*register, ranges);
        }
        let base = vec![None; bundles.bundles.len()];
        Run { pool, occupancy, assignment: Assignment { base, ..Assignment::default() }, reserved }
    }

    fn bases(&self, bundle: &Bundle) -> impl Iterator<Item = usize> + use<> {
        let end = (usize::from(self.pool.count) + 1).saturating_sub(bundle.width());
        (usize::from(bundle.residue)..end).step_by(usize::from(bundle.align))
    }

    fn place(&mut self, bundles: &Bundles, index: u32, fit: Fit) -> bool {
        let bundle = &bundles.bundles[index as usize];
        let free =
            |base: &usize| bundle.slots.iter().enumerate().all(|(i, s)| self.occupancy.is_free(base + i, s));
        let mut bases = self.bases(bundle).filter(free);
        let Some(mut base) = bases.next() else { return false };
        let used = usize::from(self.assignment.used);
        if fit == Fit::Snug && bundle.width() < WIDEST_ALIGNMENT && base + bundle.width() <= used {
            let start = bundle.start();
            let below = bases.take_while(|base| base + bundle.width() <= used);
            let neighbours = |base: usize| {
                let group = base - base % WIDEST_ALIGNMENT;
                let rows = (group..group + WIDEST_ALIGNMENT).filter(|&r| r < usize::from(self.pool.count));
                rows.filter(|&r| !self.occupancy.is_free_at(r, start)).count()
            };
            // The first of the fullest.
            base = below.fold(base, |best, b| if neighbours(b) > neighbours(best) { b } else { best });
        }
        for (i, s) in bundle.slots.iter().enumerate() {
            self.occupancy.take(base + i, s);
        }
        self.assignment.base[index as usize] = Some(base as u8);
        self.assignment.used = self.assignment.used.max((base + bundle.width()) as u16);
        true
    }

    /// Gives the bundle the place of others, the cheapest to spill, which then have failed.
    fn evict_for(&mut self, bundles: &Bundles, index: u32) -> bool {
        let bundle = &bundles.bundles[index as usize];
        let placed: Vec<(u32, usize)> = (self.assignment.base.iter().enumerate())
            .filter_map(|(i, base)| {
                let same_file = bundles.bundles[i].file == bundle.file;
                base.filter(|_| same_file).map(|b| (i as u32, usize::from(b)))
            })
            .collect();
        let in_the_way = |base: usize| {
            placed.iter().copied().filter(move |&(i, at)| {
                let other = &bundles.bundles[i as usize];
                let shared = at.max(base)..(at + other.width()).min(base + bundle.width());
                shared.into_iter().any(|r| other.slots[r - at].intersects(&bundle.slots[r - base]))
            })
        };
        let price = |base: usize| {
            let reserved =
                self.reserved.as_ref().is_some_and(|(r, _)| (base..base + bundle.width()).contains(r));
            let sum: f32 = in_the_way(base).map(|(i, _)| cost(&bundles.bundles[i as usize])).sum();
            if reserved { f32::INFINITY } else { sum }
        };
        let cheapest = self.bases(bundle).map(|base| (price(base), base)).min_by(|a, b| a.0.total_cmp(&b.0));
        let Some((_, base)) = cheapest.filter(|(price, _)| price.is_finite()) else { return false };
        let evicted: Vec<(u32, usize)> = in_the_way(base).collect();
        for &(i, at) in &evicted {
            for (offset, slot) in bundles.bundles[i as usize].slots.iter().enumerate() {
                self.occupancy.release(at + offset, slot);
            }
            self.assignment.base[i as usize] = None;
            self.assignment.failed.push(i);
        }
        self.place(bundles, index, Fit::Lowest)
    }
}
