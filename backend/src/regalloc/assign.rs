//! Assigns each bundle the lowest run of registers that is free throughout its live range.
//!
//! The best order of bundles depends on the function. Trying one is cheap, so several are tried, and the one that needs
//! the fewest registers is taken. If none fits the limit, bundles are placed in the order of their spill cost. Bundles
//! that cannot be placed are split; pieces that still cannot be placed are returned to be spilled.

use crate::abi::{self, Preserved};
use crate::ori::ir::{File, Function, Reg};
use crate::regalloc::banks::ReadTogether;
use crate::regalloc::bundle::{Bundle, Bundles};
use crate::regalloc::convention::Lost;
use crate::regalloc::late::LateReads;
use crate::regalloc::live::{Liveness, Point, Ranges};
use crate::regalloc::occupancy::{Occupancy, Registers};
use crate::target::HIDDEN_REGISTERS;
use sass::Sm;
use std::collections::BTreeMap;

/// The registers that may be allocated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pool {
    pub(crate) file: File,
    /// The number of registers: indices 0 to `count - 1`, …
    pub(crate) count: u16,
    /// … except this one.
    pub(crate) reserved: Option<u8>,
    /// Registers that a function has to save are allocated after the others.
    pub(crate) saves: Option<Preserved>,
    /// The number of registers of a thread that do not reduce the occupancy, as ptxas counts them.
    pub(crate) free: u16,
    /// Registers are allocated to a thread in units of this size; one if fewer registers are better.
    pub(crate) unit: u16,
    /// The machine, which determines which instructions read their operands late.
    pub(crate) sm: Sm,
}

#[derive(Debug, Default)]
pub(crate) struct Assignment {
    /// For each bundle, its first register; `None` if it has no register or no live range.
    pub(crate) base: Vec<Option<u8>>,
    /// Bundles without registers.
    pub(crate) failed: Vec<u32>,
    /// The highest allocated register plus one.
    pub(crate) used: u16,
}

/// The number of bundles that [`repaired`] places at most. Large functions do not gain enough for their time.
const MOST_REPLACED: usize = 4000;
/// The number of orders that [`repaired`] begins with. Others seldom lead to better results.
const REPAIRED_ORDERS: usize = 2;
/// The divisor of the number of bundles that [`relieving`] returns if there are enough registers.
const RELIEVED_SHARE: usize = 8;
/// The number of points at which [`relieving`] counts registers at most, for all bundles together.
const MOST_POINTS: u64 = 4_000_000;
/// The number of attempts with bundles of one order. Later ones seldom succeed.
const MOST_RESTARTS: usize = 32;

/// How long to search for an assignment that fits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Effort {
    /// If none fits, values are spilled or the function is refused.
    Full,
    /// If none fits, the caller has another allocation. Only the orders that fit most often are tried.
    Brief,
}

/// Bundles of one file in some order.
type Order = Vec<u32>;

fn members_of(bundles: &Bundles, file: File) -> Order {
    let all = bundles.bundles.iter().enumerate();
    all.filter(|(_, b)| b.file == file && b.slots.iter().any(|s| !s.is_empty()))
        .map(|(i, _)| i as u32)
        .collect()
}

/// The least number of registers that any order needs: the maximum number that are live together, including the
/// reserved one.
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

/// Assigns registers in the best of a few orders, without regard to spill costs. `None` if no order fits.
pub(crate) fn assign(
    bundles: &Bundles,
    func: &Function,
    live: &Liveness,
    pool: Pool,
    lost: &[Lost],
    effort: Effort,
    checkpoint: &dyn Fn(),
) -> Option<(Assignment, Occupancy)> {
    let all = members_of(bundles, pool.file);
    let at = |i: u32| &bundles.bundles[i as usize];
    let wide_first = |i: u32| u64::MAX - at(i).width() as u64;
    let long_first = |i: u32| u64::MAX - at(i).length();
    let start = |i: u32| u64::from(at(i).start());
    let mut keys: &[&dyn Fn(u32) -> (u64, u64)] = &[
        &|i| (wide_first(i), start(i)),
        &|i| (start(i), wide_first(i)),
        &|i| (wide_first(i), long_first(i)),
        &|i| (long_first(i), start(i)),
    ];
    // Only runs leave gaps that a snug fit could avoid.
    let mut fits =
        if all.iter().any(|&i| at(i).width() > 1) { &[Fit::Lowest, Fit::Snug][..] } else { &[Fit::Lowest] };
    if effort == Effort::Brief {
        (keys, fits) = (&keys[..REPAIRED_ORDERS], &[Fit::Lowest]);
    }
    let fewest = fewest(bundles, &all, live.points, pool);
    if pool.count < fewest {
        return None;
    }
    // Registers up to the next unit are free of charge, and so are those that do not reduce the occupancy, and the
    // least number that functions count. An order that needs fewer registers would take some that have to be saved.
    let hidden = HIDDEN_REGISTERS as u16;
    let least = if pool.saves.is_some() { abi::FEWEST_REGISTERS as u16 } else { pool.free };
    let whole = |used: u16| ((used + hidden).next_multiple_of(pool.unit).max(least) - hidden).min(pool.count);
    let readers = (pool.unit > 1).then(|| Readers {
        func,
        together: ReadTogether::new(bundles, func),
        late: LateReads::new(func, live, pool.sm),
    });
    let settled = |count: u16| {
        let mut order = all.clone();
        order.sort_by_cached_key(|&i| (at(i).pin.is_none(), start(i), wide_first(i), i));
        let mut run = Run::new(bundles, live, Pool { count, ..pool }, lost);
        run.readers = readers.as_ref();
        let fits = order.iter().all(|&i| run.place(bundles, i, Fit::Settled));
        fits.then_some((run.assignment, run.occupancy))
    };
    if pool.unit > 1
        && let Some(found) = settled(whole(fewest))
    {
        return Some(found);
    }
    // The result, or the position of the first bundle that does not fit.
    let place = |order: &Order, count: u16, fit: Fit| {
        let mut run = Run::new(bundles, live, Pool { count, ..pool }, lost);
        let failed = order.iter().position(|&i| !run.place(bundles, i, fit));
        failed.map_or(Ok((run.assignment, run.occupancy)), Err)
    };
    let mut orders: Vec<Order> = Vec::new();
    let mut best: Option<(Assignment, Occupancy)> = None;
    for (&fit, attempt) in fits.iter().flat_map(|fit| (0..keys.len()).map(move |attempt| (fit, attempt))) {
        checkpoint();
        // A later attempt must do better.
        let count = best.as_ref().map_or(pool.count, |(a, _)| a.used.saturating_sub(1));
        if best.as_ref().is_some_and(|(a, _)| whole(a.used) <= whole(fewest)) {
            break;
        }
        if attempt == orders.len() {
            let mut order = all.clone();
            order.sort_by_cached_key(|&i| (at(i).pin.is_none(), keys[attempt](i), i));
            orders.push(order);
        }
        if orders[..attempt].contains(&orders[attempt]) {
            continue;
        }
        if let Ok(found) = place(&orders[attempt], count, fit) {
            best = Some(found);
        }
    }
    let pinned = all.iter().filter(|&&i| at(i).pin.is_some()).count();
    let first = &orders[..orders.len().min(REPAIRED_ORDERS)];
    if best.is_none() {
        checkpoint();
        let counts = std::iter::once(pool.count);
        best = repaired(first, pinned, counts, |order, count| place(order, count, Fit::Lowest));
    }
    if let Some((found, _)) = &best
        && pool.unit > 1
    {
        checkpoint();
        let counts = (whole(fewest)..whole(found.used)).step_by(pool.unit.into());
        best = repaired(first, pinned, counts, |order, count| place(order, count, Fit::Lowest)).or(best);
    }
    match &best {
        Some((a, _)) if pool.unit > 1 && whole(a.used) > whole(fewest) => settled(whole(a.used)).or(best),
        _ => best,
    }
}

/// Places bundles within the smallest of `counts` registers that suffices, beginning with each of the orders. A bundle
/// that does not fit goes to the front, after the pinned ones, and all are placed again, until [`MOST_REPLACED`] bundles
/// have been placed. `place` returns the result, or the position of the first bundle that does not fit.
fn repaired<T>(
    orders: &[Order],
    pinned: usize,
    counts: impl Iterator<Item = u16>,
    place: impl Fn(&Order, u16) -> Result<T, usize>,
) -> Option<T> {
    let mut left = MOST_REPLACED;
    for count in counts {
        for order in orders {
            let mut order = order.clone();
            for _ in 0..MOST_RESTARTS {
                match place(&order, count) {
                    Ok(found) => return Some(found),
                    Err(failed) => {
                        left = left.checked_sub(failed + 1)?;
                        order.get_mut(pinned..=failed)?.rotate_right(1);
                    }
                }
            }
        }
    }
    None
}

/// Assigns in the order of spill cost. Bundles without registers are in [`Assignment::failed`]. `None` if values that
/// cannot be spilled get no register.
pub(crate) fn assign_or_spill(
    bundles: &mut Bundles,
    func: &Function,
    live: &Liveness,
    fixed: &[bool],
    pool: Pool,
    lost: &[Lost],
) -> Option<(Assignment, Occupancy)> {
    let mut order = members_of(bundles, pool.file);
    order.sort_by(|&a, &b| {
        let [x, y] = [a, b].map(|i| cost(&bundles.bundles[i as usize]));
        let [placed, other] = [a, b].map(|i| bundles.bundles[i as usize].pin.is_none());
        placed.cmp(&other).then(y.total_cmp(&x)).then(a.cmp(&b))
    });
    let mut run = Run::new(bundles, live, pool, lost);
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

/// The bundles without registers that a careful round spills. They are the cheapest ones that bring the number of live
/// registers, `pressure` for each point, down to those of the pool. If there are enough registers and only the gaps
/// between them are too small, they are a share of all: the other orders of [`assign`] may then fit. In large functions,
/// where the choice would take too long, they are all.
pub(crate) fn relieving(
    bundles: &Bundles,
    mut failed: Vec<u32>,
    mut pressure: Vec<u16>,
    pool: &Pool,
) -> Vec<u32> {
    let at = |i: u32| &bundles.bundles[i as usize];
    if failed.iter().map(|&i| at(i).length()).sum::<u64>() > MOST_POINTS {
        return failed;
    }
    failed.sort_by(|&a, &b| cost(at(a)).total_cmp(&cost(at(b))).then(a.cmp(&b)));
    let count = pool.count - u16::from(pool.reserved.is_some());
    if pressure.iter().all(|live| *live <= count) {
        failed.truncate(failed.len().div_ceil(RELIEVED_SHARE));
        return failed;
    }
    failed.retain(|&i| {
        let points = || at(i).slots.iter().flat_map(|slot| &slot.0).flat_map(|i| i.start..i.end);
        let relieves = points().any(|point| pressure[point as usize] > count);
        if relieves {
            points().for_each(|point| pressure[point as usize] = pressure[point as usize].saturating_sub(1));
        }
        relieves
    });
    failed
}

/// The cost of spilling a bundle for each point of its live range.
fn cost(bundle: &Bundle) -> f32 {
    if bundle.fixed { f32::INFINITY } else { bundle.weight / bundle.length() as f32 }
}

/// How to choose among several free runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fit {
    Lowest,
    /// In the aligned group with the most allocated registers, so that whole groups stay free for runs.
    Snug,
    /// Where no operand may still be read, because a new value would have to wait for that read. Among these, in
    /// another bank than the operands that are read together with the value.
    Settled,
}

/// The widest alignment of a run.
const WIDEST_ALIGNMENT: usize = 4;

/// What [`Fit::Settled`] asks of the function.
struct Readers<'a> {
    func: &'a Function,
    together: ReadTogether,
    late: LateReads,
}

struct Run<'a> {
    live: &'a Liveness,
    pool: Pool,
    occupancy: Occupancy,
    assignment: Assignment,
    /// Where the last operand in a register may still be read.
    unsettled: Occupancy,
    readers: Option<&'a Readers<'a>>,
    /// Registers that have to be saved if they are allocated.
    preserved: Registers,
    lost: &'a [Lost],
    /// After the first eviction: for each register, the start and end of each interval, and the bundle that has it.
    holders: Option<Vec<BTreeMap<Point, (Point, u32)>>>,
}

impl<'a> Run<'a> {
    fn new(bundles: &Bundles, live: &'a Liveness, pool: Pool, lost: &'a [Lost]) -> Run<'a> {
        let mut occupancy = Occupancy::new(pool.count, live.points);
        let is_given = |register: &u8| u16::from(*register) < pool.count;
        if let Some(reserved) = pool.reserved.filter(|r| is_given(r) && live.points > 0) {
            occupancy.take(usize::from(reserved), &live.everywhere());
        }
        let given = Registers::every(1, 0, usize::from(pool.count));
        for Lost { registers, ranges, .. } in lost.iter().filter(|lost| lost.file == pool.file) {
            occupancy.take_all(registers.intersection(given), ranges);
        }
        let unsettled = Occupancy::new(pool.count, if pool.unit > 1 { live.points } else { 0 });
        let mut preserved = Registers::default();
        let is_preserved =
            |r: &u16| pool.saves.is_some_and(|saves| saves.has(Reg { file: pool.file, index: *r as u8 }));
        for register in (0..pool.count).filter(is_preserved) {
            preserved.insert(usize::from(register));
        }
        let base = vec![None; bundles.bundles.len()];
        let assignment = Assignment { base, ..Assignment::default() };
        Run { live, pool, occupancy, assignment, unsettled, readers: None, preserved, lost, holders: None }
    }

    /// The registers at which the bundle may begin.
    fn bases(&self, bundle: &Bundle) -> Registers {
        let end = (usize::from(self.pool.count) + 1).saturating_sub(bundle.width());
        let bases = Registers::every(bundle.align, bundle.residue, end);
        let mut only = Registers::default();
        match bundle.pin {
            // A register that is fixed by a call is not a free choice.
            Some(pin) => {
                only.insert(usize::from(pin));
                bases.intersection(only)
            }
            None => bases,
        }
    }

    /// The registers at which a bundle may begin. Those for which no register has to be saved come first; otherwise in
    /// ascending order.
    fn in_order(&self, bundle: &Bundle, bases: Registers) -> impl Iterator<Item = usize> + use<> {
        let none = Registers::default();
        let width = if self.preserved == none { 0 } else { bundle.width() };
        let saved = (0..width).map(|i| self.preserved.lowered(i)).fold(none, Registers::union);
        bases.without(saved).iter().chain(bases.intersection(saved).iter())
    }

    fn place(&mut self, bundles: &Bundles, index: u32, fit: Fit) -> bool {
        let bundle = &bundles.bundles[index as usize];
        let slots = || bundle.slots.iter().enumerate();
        let mut bases = self.bases(bundle);
        let mut offset = 0;
        for alike in alike(bundle) {
            if bases == Registers::default() {
                break;
            }
            let taken = self.occupancy.taken(&alike[0]);
            for i in offset..offset + alike.len() {
                bases = bases.without(taken.lowered(i));
            }
            offset += alike.len();
        }
        let Some(mut base) = self.in_order(bundle, bases).next() else { return false };
        let used = usize::from(self.assignment.used);
        match fit {
            _ if bundle.pin.is_some() => {}
            Fit::Snug if bundle.width() < WIDEST_ALIGNMENT && base + bundle.width() <= used => {
                let taken = self.occupancy.taken_at(bundle.start());
                let below = self.in_order(bundle, bases).take_while(|base| base + bundle.width() <= used);
                let neighbours = |base: usize| {
                    let group = base - base % WIDEST_ALIGNMENT;
                    (group..group + WIDEST_ALIGNMENT).filter(|&r| taken.contains(r)).count()
                };
                // The first of the fullest groups.
                base = below.fold(base, |best, b| if neighbours(b) > neighbours(best) { b } else { best });
            }
            Fit::Settled => {
                let starts = slots().flat_map(|(i, s)| s.0.iter().map(move |interval| (i, interval.start)));
                let settled = starts.fold(bases, |bases, (i, start)| {
                    bases.without(self.unsettled.taken_at(start).lowered(i))
                });
                let crowded = self.readers.map_or([0; 2], |readers| {
                    readers.together.banks(index, |other| self.assignment.base[other as usize])
                });
                let uncrowded = match crowded {
                    [even, odd] if even > odd => bases.intersection(Registers::every(2, 1, usize::MAX)),
                    [even, odd] if odd > even => bases.intersection(Registers::every(2, 0, usize::MAX)),
                    _ => bases,
                };
                // The first of the best registers.
                let best = [settled.intersection(uncrowded), settled, uncrowded];
                let best = best.into_iter().find_map(|bases| self.in_order(bundle, bases).next());
                base = best.unwrap_or(base);
            }
            Fit::Lowest | Fit::Snug => {}
        }
        let mut first = base;
        for alike in alike(bundle) {
            let registers = Registers::run(first, alike.len());
            self.occupancy.take_all(registers, &alike[0]);
            first += alike.len();
        }
        if let Some(readers) = self.readers.filter(|_| fit == Fit::Settled) {
            for (offset, points) in readers.late.unsettled(bundle, readers.func, self.live) {
                self.unsettled.take(base + offset, &points);
            }
        }
        if let Some(holders) = &mut self.holders {
            hold(holders, bundle, index, base);
        }
        self.assignment.base[index as usize] = Some(base as u8);
        self.assignment.used = self.assignment.used.max((base + bundle.width()) as u16);
        true
    }

    /// Evicts other bundles, the cheapest ones to spill, to place the bundle. The evicted bundles have then failed.
    fn evict_for(&mut self, bundles: &Bundles, index: u32) -> bool {
        let bundle = &bundles.bundles[index as usize];
        let holders = self.holders.take().unwrap_or_else(|| self.all_holders(bundles, bundle.file));
        let in_the_way = |base: usize| {
            let mut found: Vec<u32> = Vec::new();
            for (slot, held) in bundle.slots.iter().zip(&holders[base..]) {
                for interval in &slot.0 {
                    let before_end = held.range(..interval.end).rev();
                    let overlapping = before_end.take_while(|(_, (end, _))| *end > interval.start);
                    found.extend(overlapping.map(|(_, (_, holder))| *holder));
                }
            }
            found.sort_unstable();
            found.dedup();
            found
        };
        let price = |base: usize| {
            let blocked = (base..).zip(&bundle.slots).any(|(register, slot)| self.is_lost(register, slot));
            let others = || in_the_way(base).into_iter().map(|i| cost(&bundles.bundles[i as usize]));
            if blocked { f32::INFINITY } else { others().sum::<f32>() }
        };
        let bases = self.in_order(bundle, self.bases(bundle));
        let cheapest = bases.map(|base| (price(base), base)).min_by(|a, b| a.0.total_cmp(&b.0));
        let evicted = cheapest.filter(|(price, _)| price.is_finite()).map(|(_, base)| in_the_way(base));
        let holders = self.holders.insert(holders);
        let Some(evicted) = evicted else { return false };
        for i in evicted {
            let Some(at) = self.assignment.base[i as usize].take() else { continue };
            for (offset, slot) in bundles.bundles[i as usize].slots.iter().enumerate() {
                let register = usize::from(at) + offset;
                self.occupancy.release(register, slot);
                for interval in &slot.0 {
                    holders[register].remove(&interval.start);
                }
            }
            self.assignment.failed.push(i);
        }
        self.place(bundles, index, Fit::Lowest)
    }

    /// Whether the register is unavailable at some point of the ranges.
    fn is_lost(&self, register: usize, ranges: &Ranges) -> bool {
        self.pool.reserved.is_some_and(|reserved| register == usize::from(reserved) && !ranges.is_empty())
            || self.lost.iter().any(|lost| {
                lost.file == self.pool.file
                    && lost.registers.contains(register)
                    && lost.ranges.intersects(ranges)
            })
    }

    /// The bundles that hold the registers of a file.
    fn all_holders(&self, bundles: &Bundles, file: File) -> Vec<BTreeMap<Point, (Point, u32)>> {
        let mut holders = vec![BTreeMap::new(); usize::from(self.pool.count)];
        for (i, base) in self.assignment.base.iter().enumerate() {
            let bundle = &bundles.bundles[i];
            if let Some(base) = base.filter(|_| bundle.file == file) {
                hold(&mut holders, bundle, i as u32, usize::from(base));
            }
        }
        holders
    }
}

/// The slots of a bundle, grouped into consecutive ones that are live at the same points.
fn alike(bundle: &Bundle) -> impl Iterator<Item = &[Ranges]> {
    bundle.slots.chunk_by(|a, b| a == b)
}

fn hold(holders: &mut [BTreeMap<Point, (Point, u32)>], bundle: &Bundle, index: u32, base: usize) {
    for (slot, held) in bundle.slots.iter().zip(&mut holders[base..]) {
        held.extend(slot.0.iter().map(|i| (i.start, (i.end, index))));
    }
}
