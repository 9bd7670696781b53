//! Replays the warps of a trace, cycle by cycle, on the four partitions of a multiprocessor.

use super::cost::{AccessKind, Constant, Cost, What};
use super::memory::{Destination, Memory};
use super::ports::Ports;
use super::{Reason, Report, Spent};
use crate::trace::{Arrival, Detail, EventId, Issued, Trace, Wait};
use sass::rate::{Figure, Pipe, figure};
use sass::{Inst, Sm};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};

const PARTITIONS: usize = 4;
const SCOREBOARDS: usize = 6;
/// Cycles from the last multiplication of a warpgroup's product until the product completes.
const DRAIN: u64 = 32;

/// A future event.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Later {
    /// A scoreboard of a warp is decremented.
    Scoreboard(usize, u8),
    /// A partition's memory queue has one entry fewer.
    Place(usize),
    Arrives(EventId),
}

struct Warp<'a> {
    issued: &'a [Issued],
    next: usize,
    /// The cluster that the block belongs to.
    cluster: usize,
    /// The first cycle at which the warp may issue again: `stalled` because of its own instructions, `held` because of
    /// other warps.
    stalled: u64,
    held: u64,
    /// The event that the warp waits for.
    waits: Option<(EventId, Wait)>,
    scoreboards: [u32; SCOREBOARDS],
    /// The cycles at which its copies complete: the copies of threads, and the bulk copies from shared memory.
    copies: u64,
    bulk_copies: u64,
    /// The cycles at which its products in flight complete, and those of its closed groups.
    products: u64,
    groups: Vec<u64>,
}

impl Warp<'_> {
    fn is_done(&self) -> bool {
        self.next >= self.issued.len()
    }
}

#[derive(Clone, Copy, Default)]
struct Event {
    arrived: u32,
    over: Option<u64>,
}

#[derive(Default)]
struct Partition {
    /// The warps of the partition, oldest first.
    warps: Vec<usize>,
    last: usize,
    ports: Ports,
    /// Operands are being read until this cycle, and nothing issues before it.
    reading: u64,
    busy: [u64; Pipe::COUNT],
    /// The number of memory instructions in the queue.
    queued: u64,
}

pub(super) struct Multiprocessor<'a> {
    sm: Sm,
    costs: Vec<Cost>,
    trace: &'a Trace,
    /// The number of blocks that are resident at once.
    blocks: usize,
    now: u64,
    warps: Vec<Warp<'a>>,
    partitions: [Partition; PARTITIONS],
    shared_busy: [u64; Pipe::COUNT],
    memory: Memory,
    /// The lines of constant banks accessed so far. Operands and loads have separate caches.
    constants: HashSet<(bool, Constant)>,
    events: Vec<Event>,
    later: BinaryHeap<Reverse<(u64, Later)>>,
    /// For each cluster that has begun, the number of warps that have not ended.
    live: Vec<usize>,
    resident: usize,
    report: Report,
}

impl<'a> Multiprocessor<'a> {
    /// A multiprocessor that replays a trace of `code`, with at most `blocks` resident blocks.
    pub(super) fn new(
        sm: Sm,
        code: &[Inst],
        trace: &'a Trace,
        blocks: usize,
        memory: Memory,
    ) -> Multiprocessor<'a> {
        Multiprocessor {
            sm,
            costs: code.iter().map(|inst| Cost::of(sm, inst)).collect(),
            trace,
            blocks,
            now: 0,
            warps: Vec::new(),
            partitions: Default::default(),
            shared_busy: [0; Pipe::COUNT],
            memory,
            constants: HashSet::new(),
            events: vec![Event::default(); trace.events.len()],
            later: BinaryHeap::new(),
            live: Vec::new(),
            resident: 0,
            report: Report { instructions: vec![Spent::default(); code.len()], ..Report::default() },
        }
    }

    /// Replays the trace.
    ///
    /// # Errors
    /// The instruction of a warp that waits for an event that never comes. This cannot happen with a trace that the
    /// emulator recorded.
    pub(super) fn run(mut self) -> Result<Report, u32> {
        loop {
            self.begin_clusters();
            if self.resident == 0 {
                break;
            }
            while let Some(&Reverse((time, what))) = self.later.peek()
                && time <= self.now
            {
                self.later.pop();
                self.happens(what);
            }
            self.cycle()?;
        }
        self.report.cycles = self.now;
        Ok(self.report)
    }

    fn figure(&self, name: Figure) -> u64 {
        figure(self.sm, name).into()
    }

    /// Starts clusters while there is room.
    fn begin_clusters(&mut self) {
        while let Some(cluster) = self.trace.clusters.get(self.live.len()) {
            let blocks = cluster.len();
            if self.resident > 0 && self.resident + blocks > self.blocks {
                return;
            }
            let number = self.live.len();
            self.live.push(cluster.iter().map(Vec::len).sum());
            self.resident += blocks;
            for issued in cluster.iter().flatten() {
                let index = self.warps.len();
                let partition = index % PARTITIONS;
                self.partitions[partition].warps.push(index);
                self.warps.push(Warp {
                    issued,
                    next: 0,
                    cluster: number,
                    stalled: self.now,
                    held: 0,
                    waits: None,
                    scoreboards: [0; SCOREBOARDS],
                    copies: 0,
                    bulk_copies: 0,
                    products: 0,
                    groups: Vec::new(),
                });
            }
        }
    }

    fn happens(&mut self, what: Later) {
        match what {
            Later::Scoreboard(warp, scoreboard) => {
                let count = &mut self.warps[warp].scoreboards[usize::from(scoreboard)];
                *count = count.saturating_sub(1);
            }
            Later::Place(partition) => self.partitions[partition].queued -= 1,
            Later::Arrives(id) => {
                let event = &mut self.events[id as usize];
                event.arrived += 1;
                if event.arrived == self.trace.events[id as usize] {
                    event.over = Some(self.now);
                }
            }
        }
    }

    /// Lets every partition issue, then advances to the next time at which anything can change.
    fn cycle(&mut self) -> Result<(), u32> {
        let mut next = self.later.peek().map_or(u64::MAX, |Reverse((time, _))| *time);
        let mut idle = [None; PARTITIONS];
        let mut waiting: Vec<(u32, Reason)> = Vec::new();
        for (partition, idle) in idle.iter_mut().enumerate() {
            match self.choose(partition, &mut next, &mut waiting) {
                Ok(warp) => {
                    self.issue(partition, warp);
                    next = self.now + 1;
                }
                Err(reason) => *idle = Some(reason),
            }
        }
        if next == u64::MAX
            && let Some(&(at, _)) = waiting.first()
        {
            return Err(at);
        }
        let passed = if next == u64::MAX { 1 } else { next.saturating_sub(self.now).max(1) };
        for reason in idle.into_iter().flatten() {
            self.report.lost[reason as usize] += passed;
        }
        for (at, reason) in waiting {
            self.report.instructions[at as usize].waited[reason as usize] += passed;
        }
        self.now += passed;
        self.retire();
        Ok(())
    }

    /// Removes warps that have issued all their instructions.
    fn retire(&mut self) {
        let (warps, live) = (&self.warps, &mut self.live);
        let mut freed = 0;
        for partition in &mut self.partitions {
            partition.warps.retain(|&warp| {
                let done = warps[warp].is_done() && warps[warp].stalled <= self.now;
                if done {
                    let cluster = warps[warp].cluster;
                    live[cluster] -= 1;
                    if live[cluster] == 0 {
                        freed += self.trace.clusters[cluster].len();
                    }
                }
                !done
            });
        }
        self.resident -= freed;
    }

    /// Selects the warp that issues: the last one again, or the youngest warp that can issue. Records why the other
    /// warps cannot issue, and when that may change.
    fn choose(
        &self,
        index: usize,
        next: &mut u64,
        waiting: &mut Vec<(u32, Reason)>,
    ) -> Result<usize, Reason> {
        let partition = &self.partitions[index];
        if partition.warps.is_empty() {
            return Err(Reason::Empty);
        }
        let mut ready: Option<usize> = None;
        let mut why = Reason::Empty;
        for &warp in &partition.warps {
            let Some(issued) = self.warps[warp].issued.get(self.warps[warp].next) else {
                *next = (*next).min(self.warps[warp].stalled.max(self.now + 1));
                continue;
            };
            match self.obstacle(index, warp, issued) {
                None => {
                    // A ready warp that is not selected loses the cycle.
                    let (chosen, other) = match ready {
                        Some(before) if before == partition.last => (before, Some(warp)),
                        before => (warp, before),
                    };
                    ready = Some(chosen);
                    if let Some(other) = other {
                        let at = self.warps[other].issued[self.warps[other].next].at;
                        waiting.push((at, Reason::NotChosen));
                    }
                }
                Some((reason, until)) => {
                    waiting.push((issued.at, reason));
                    if why == Reason::Empty || warp == partition.last {
                        why = reason;
                    }
                    if let Some(until) = until {
                        *next = (*next).min(until.max(self.now + 1));
                    }
                }
            }
        }
        ready.ok_or(why)
    }

    /// The reason why a warp cannot issue now, and until when if that is known.
    fn obstacle(&self, index: usize, warp: usize, issued: &Issued) -> Option<(Reason, Option<u64>)> {
        let partition = &self.partitions[index];
        let warp = &self.warps[warp];
        if let Some((event, what)) = warp.waits {
            match self.events[event as usize].over {
                None => return Some((Reason::Barrier, None)),
                Some(over) => {
                    let until = over + self.after_wait(event, what);
                    if until > self.now {
                        return Some((Reason::Barrier, Some(until)));
                    }
                }
            }
        }
        if warp.stalled > self.now {
            return Some((Reason::Stall, Some(warp.stalled)));
        }
        if warp.held > self.now {
            return Some((Reason::Barrier, Some(warp.held)));
        }
        let cost = &self.costs[issued.at as usize];
        let counts = |waits: u8| {
            warp.scoreboards.iter().enumerate().any(|(i, &count)| waits >> i & 1 == 1 && count > 0)
        };
        let counted = cost.counted.is_some_and(|(scoreboard, left)| {
            warp.scoreboards.get(usize::from(scoreboard)).is_some_and(|&count| count > left)
        });
        if counts(cost.waits) || counted {
            return Some((Reason::Scoreboard, None));
        }
        if let What::WaitsForProducts(left) = cost.what
            && let Some(last) = warp.groups.len().checked_sub(left + 1)
            && warp.groups[last] > self.now
        {
            return Some((Reason::Scoreboard, Some(warp.groups[last])));
        }
        if partition.reading > self.now {
            return Some((Reason::Pipe, Some(partition.reading)));
        }
        for &(pipe, _) in cost.busy.iter().flatten() {
            let busy = if pipe.is_shared() { &self.shared_busy } else { &partition.busy };
            let until = busy[pipe as usize];
            if until > self.now {
                return Some((Reason::Pipe, Some(until)));
            }
        }
        if matches!(cost.what, What::Memory(_)) && partition.queued >= self.figure(Figure::Queue) {
            return Some((Reason::Queue, None));
        }
        None
    }

    /// Cycles from an event until the warps that wait for it continue.
    fn after_wait(&self, event: EventId, what: Wait) -> u64 {
        let arrivals = u64::from(self.trace.events[event as usize]);
        match what {
            Wait::Block => self.figure(Figure::Barrier) + self.figure(Figure::BarrierWarp) * arrivals,
            Wait::Cluster => self.figure(Figure::ClusterBarrier),
            Wait::Object => self.figure(Figure::Object),
        }
    }

    fn issue(&mut self, index: usize, warp: usize) {
        let issued = self.warps[warp].issued[self.warps[warp].next];
        let at = issued.at as usize;
        self.warps[warp].next += 1;
        self.warps[warp].waits = None;
        self.partitions[index].last = warp;
        self.report.issued += 1;
        self.report.instructions[at].issued += 1;

        // A constant cache miss of an operand delays the warp before it issues the instruction.
        let loads_constant = self.costs[at].loads_constant;
        let missed =
            self.costs[at].constant.is_some_and(|line| self.constants.insert((loads_constant, line)));
        let miss = if missed { self.figure(Figure::ConstantMiss) } else { 0 };
        let start = self.now + if loads_constant { 0 } else { miss };
        let missed = missed && !loads_constant;
        let cost = &self.costs[at];
        let yields = if cost.yields { 2 } else { 0 };
        self.warps[warp].stalled = start + cost.stall.max(yields);
        if missed {
            self.report.instructions[at].waited[Reason::Constant as usize] += start - self.now;
        }
        let ports = self.partitions[index].ports.read(warp, cost);
        if ports > 1 {
            self.partitions[index].reading = self.now + ports;
        }
        let mut begins = start;
        for &(pipe, cycles) in cost.busy.iter().flatten() {
            let busy =
                if pipe.is_shared() { &mut self.shared_busy } else { &mut self.partitions[index].busy };
            begins = begins.max(busy[pipe as usize]);
            busy[pipe as usize] = begins + u64::from(cycles);
        }
        let what = cost.what;
        let (sources, mut result) = if issued.acts || !matches!(what, What::Memory(_)) {
            self.effects(index, warp, begins, &issued, what)
        } else {
            (start + 1, start + 1)
        };
        if loads_constant {
            result += miss;
        }
        let cost = &self.costs[at];
        for (scoreboard, time) in [(cost.read_sb, sources), (cost.write_sb, result)] {
            if let Some(scoreboard) = scoreboard.filter(|&sb| usize::from(sb) < SCOREBOARDS) {
                self.warps[warp].scoreboards[usize::from(scoreboard)] += 1;
                self.later.push(Reverse((time.max(start + 1), Later::Scoreboard(warp, scoreboard))));
            }
        }
    }

    /// Schedules the consequences of issuing an instruction: the reading of its sources, and its result.
    fn effects(&mut self, index: usize, warp: usize, now: u64, issued: &Issued, what: What) -> (u64, u64) {
        let first = issued.first as usize;
        let details = &self.trace.details[first..first + usize::from(issued.count)];
        let mut times = (now + 1, now + 1);
        match what {
            What::Computes(cycles) => times = (now + cycles.min(4), now + cycles),
            What::Holds(cycles) => {
                self.warps[warp].held = now + cycles;
                times = (now + cycles, now + cycles);
            }
            What::Invalidates => self.memory.invalidate(),
            What::ClosesCopies => times.1 = self.warps[warp].copies.max(now + 1),
            What::ClosesBulkCopies => {
                times = (self.warps[warp].bulk_copies, self.warps[warp].bulk_copies);
            }
            What::GroupProduct(closes) => {
                let busy = self.costs[issued.at as usize].busy[0].map_or(0, |(_, cycles)| u64::from(cycles));
                let warp = &mut self.warps[warp];
                warp.products = warp.products.max(now + busy + DRAIN);
                if closes {
                    warp.groups.push(warp.products);
                }
                times.1 = warp.products;
            }
            What::WaitsForProducts(_) => {}
            What::Memory(access) => {
                let place = details.iter().find_map(|detail| match *detail {
                    Detail::Shared { passes } => Some(Destination::Shared(passes.into())),
                    Detail::Global { first, count } => {
                        let first = first as usize;
                        Some(Destination::Lines(&self.trace.lines[first..first + usize::from(count)]))
                    }
                    _ => None,
                });
                let place = place.unwrap_or(Destination::Nowhere);
                let done = self.memory.access(index, now, access, &place);
                self.partitions[index].queued += 1;
                self.later.push(Reverse((done.sources, Later::Place(index))));
                if access.kind == AccessKind::Copy {
                    let copies = &mut self.warps[warp].copies;
                    *copies = (*copies).max(done.result);
                }
                times = (done.sources, done.result);
            }
        }
        for detail in details {
            match *detail {
                Detail::Arrives(event, when) => {
                    let time = match when {
                        Arrival::AtOnce => now,
                        Arrival::AfterCopies => self.warps[warp].copies.max(now + 1),
                        Arrival::Transfer(bytes) => self.memory.transfer(now, bytes.into()),
                    };
                    if time <= self.now {
                        self.happens(Later::Arrives(event));
                    } else {
                        self.later.push(Reverse((time, Later::Arrives(event))));
                    }
                }
                Detail::Waits(event, wait) => self.warps[warp].waits = Some((event, wait)),
                Detail::Moves { bytes } => {
                    let over = self.memory.transfer(now, bytes.into());
                    let copies = &mut self.warps[warp].bulk_copies;
                    *copies = (*copies).max(over);
                }
                Detail::Shared { .. } | Detail::Global { .. } => {}
            }
        }
        times
    }
}
