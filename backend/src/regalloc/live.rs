//! Program points and the live ranges of lanes.
//!
//! A *lane* is one 32-bit register of a value: a value of width `w` has `w` lanes. Each lane has its own live range, so
//! reading one half of a pair does not keep the other half.
//!
//! Blocks are numbered in layout order. Every block has a slot for its entry (where phis are defined), one for each
//! instruction and one for its terminator. Slot `s` has two points: `2s`, where operands are read, and `2s + 1`, where
//! results are written. Intervals are half-open. So a value that is last read by the instruction that defines another
//! value does not interfere with it: `[.., 2s + 1)` and `[2s + 1, ..)`.
//!
//! A phi reads its arguments on the edge, so they live to the end of the predecessor. Its result starts at the write
//! point of the entry slot, after all values that are live into the block.

use crate::ori::cfg::Cfg;
use crate::ori::ir::{BlockId, File, Function, SrcKind, Value};
use crate::ori::signature::facts;
use smallvec::SmallVec;

pub(crate) type Point = u32;

/// A half-open interval.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Interval {
    pub(crate) start: Point,
    pub(crate) end: Point,
}

/// Sorted and disjoint; adjacent intervals are merged.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Ranges(pub(crate) SmallVec<[Interval; 2]>);

impl Ranges {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn start(&self) -> Point {
        self.0.first().map_or(0, |i| i.start)
    }

    /// The number of points covered.
    pub(crate) fn length(&self) -> u64 {
        self.0.iter().map(|i| u64::from(i.end - i.start)).sum()
    }

    pub(crate) fn contains(&self, point: Point) -> bool {
        let after = self.0.partition_point(|i| i.end <= point);
        self.0.get(after).is_some_and(|i| i.start <= point)
    }

    pub(crate) fn intersects(&self, other: &Ranges) -> bool {
        let (small, large) = if self.0.len() <= other.0.len() { (self, other) } else { (other, self) };
        // Each interval of the shorter list is searched in the rest of the longer one.
        let mut rest = &large.0[..];
        for interval in &small.0 {
            let skip = rest.partition_point(|i| i.end <= interval.start);
            rest = &rest[skip..];
            match rest.first() {
                Some(i) if i.start < interval.end => return true,
                Some(_) => {}
                None => return false,
            }
        }
        false
    }

    /// The union of two disjoint sets.
    pub(crate) fn absorb(&mut self, other: &Ranges) {
        if other.is_empty() {
            return;
        }
        let (small, mut large) = match std::mem::take(&mut self.0) {
            own if own.len() < other.0.len() => (own, other.0.clone()),
            own => (other.0.clone(), own),
        };
        // Many small sets may be merged into a large one, one after the other.
        if small.len() <= large.len() / 8 {
            small.into_iter().for_each(|interval| insert(&mut large, interval));
            self.0 = large;
        } else {
            large.extend_from_slice(&small);
            *self = Ranges::from_unsorted(large);
        }
    }

    /// The union of two sets that may overlap.
    pub(crate) fn united(&self, other: &Ranges) -> Ranges {
        Ranges::from_unsorted(self.0.iter().chain(&other.0).copied().collect())
    }

    pub(crate) fn from_unsorted(mut all: SmallVec<[Interval; 2]>) -> Ranges {
        if all.len() > 1 {
            all.sort_unstable();
            all.dedup_by(|next, last| {
                let touches = next.start <= last.end;
                if touches {
                    last.end = last.end.max(next.end);
                }
                touches
            });
        }
        Ranges(all)
    }
}

/// Adds an interval that is disjoint from the others.
fn insert(into: &mut SmallVec<[Interval; 2]>, new: Interval) {
    let at = into.partition_point(|i| i.start < new.start);
    debug_assert!(at == 0 || into[at - 1].end <= new.start);
    debug_assert!(into.get(at).is_none_or(|i| new.end <= i.start));
    let after = into.get(at).is_some_and(|i| i.start == new.end);
    match at.checked_sub(1).filter(|&before| into[before].end == new.start) {
        Some(before) if after => into[before].end = into.remove(at).end,
        Some(before) => into[before].end = new.end,
        None if after => into[at].start = new.start,
        None => into.insert(at, new),
    }
}

/// The slots of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Span {
    /// The slot of the entry.
    pub(crate) first: u32,
    /// The slot of the terminator.
    pub(crate) last: u32,
}

impl Span {
    pub(crate) fn start(self) -> Point {
        2 * self.first
    }

    pub(crate) fn phi(self) -> Point {
        2 * self.first + 1
    }

    /// The write point of the terminator, where copies on edges would write.
    pub(crate) fn exit(self) -> Point {
        2 * self.last + 1
    }

    pub(crate) fn end(self) -> Point {
        2 * self.last + 2
    }

    /// Read point of an instruction.
    pub(crate) fn read(self, inst: usize) -> Point {
        2 * (self.first + 1 + inst as u32)
    }

    /// Write point of an instruction.
    pub(crate) fn write(self, inst: usize) -> Point {
        self.read(inst) + 1
    }
}

#[derive(Debug)]
pub(crate) struct Liveness {
    /// For each block; blocks outside the layout have no slots.
    pub(crate) spans: Vec<Span>,
    /// The last point plus one.
    pub(crate) points: Point,
    /// The ends of blocks, ascending.
    block_ends: Vec<Point>,
    /// The write points of instructions that wait, ascending.
    waits: Vec<Point>,
    /// The first lane of each value; there is one entry more than values.
    lane_base: Vec<u32>,
    /// Per lane.
    ranges: Vec<Ranges>,
}

impl Liveness {
    pub(crate) fn lane(&self, value: Value, part: u8) -> usize {
        self.lane_base[value.index()] as usize + usize::from(part)
    }

    pub(crate) fn ranges(&self, value: Value, part: u8) -> &Ranges {
        &self.ranges[self.lane(value, part)]
    }

    /// The ranges of all lanes of a value.
    pub(crate) fn of(&self, value: Value) -> &[Ranges] {
        &self.ranges[self.lane_base[value.index()] as usize..self.lane_base[value.index() + 1] as usize]
    }

    pub(crate) fn live_at(&self, value: Value, point: Point) -> bool {
        self.of(value).iter().any(|r| r.contains(point))
    }

    /// The ranges of the whole function.
    pub(crate) fn everywhere(&self) -> Ranges {
        Ranges([Interval { start: 0, end: self.points }].into_iter().collect())
    }

    /// The points at which other threads of the warp may run: between blocks, including phis and their arguments, and
    /// where instructions wait.
    pub(crate) fn switches(&self) -> Ranges {
        let ends =
            self.block_ends.iter().map(|&end| Interval { start: end - 1, end: self.points.min(end + 2) });
        let waits = self.waits.iter().map(|&at| Interval { start: at, end: at + 1 });
        Ranges::from_unsorted(ends.chain(waits).collect())
    }

    /// Whether other threads of the warp may run while a value is live.
    pub(crate) fn crosses_switch(&self, ranges: &Ranges) -> bool {
        ranges.0.iter().any(|i| {
            let block = self.block_ends.partition_point(|&end| end <= i.start);
            let start = block.checked_sub(1).map_or(0, |before| self.block_ends[before]);
            // Phis write at the second point.
            let comes_in = block > 0 && i.start <= start + 1;
            let goes_out = self.block_ends.get(block).is_some_and(|&end| end <= i.end);
            let wait = self.waits.partition_point(|&wait| wait <= i.start);
            comes_in || goes_out || self.waits.get(wait).is_some_and(|&wait| wait < i.end)
        })
    }

    /// The number of live lanes of a file at each point.
    pub(crate) fn pressure(&self, func: &Function, file: File) -> Vec<u16> {
        let mut delta = vec![0i32; self.points as usize + 1];
        for (v, data) in func.values.iter().enumerate() {
            if data.file == file {
                for i in self.of(Value(v as u32)).iter().flat_map(|r| &r.0) {
                    delta[i.start as usize] += 1;
                    delta[i.end as usize] -= 1;
                }
            }
        }
        let mut live = 0;
        let sum = |d: i32| {
            live += d;
            live.clamp(0, i32::from(u16::MAX)) as u16
        };
        delta.into_iter().map(sum).collect()
    }

    pub(crate) fn compute(func: &Function, cfg: &Cfg) -> Liveness {
        Liveness::compute_of(func, cfg, |_| true)
    }

    /// Computes ranges only for some values; others have none.
    pub(crate) fn compute_of(func: &Function, cfg: &Cfg, is_wanted: impl Fn(Value) -> bool) -> Liveness {
        let (spans, points) = number(func);
        let mut lane_base = Vec::with_capacity(func.values.len() + 1);
        let mut lanes = 0u32;
        for data in &func.values {
            lane_base.push(lanes);
            lanes += u32::from(data.width);
        }
        lane_base.push(lanes);

        let mut build = Build {
            func,
            cfg,
            spans: &spans,
            lane_base: &lane_base,
            defs: vec![None; func.values.len()],
            uses: Vec::new(),
            is_wanted,
        };
        build.collect();
        let ranges = build.ranges(lanes as usize);
        let (mut block_ends, mut waits) = (Vec::new(), Vec::new());
        for &b in &func.layout {
            let span = spans[b.index()];
            let insts = func.block(b).insts.iter().enumerate();
            waits.extend(insts.filter(|(_, inst)| facts(&inst.op).waits).map(|(i, _)| span.write(i)));
            block_ends.push(span.end());
        }
        Liveness { spans, points, block_ends, waits, lane_base, ranges }
    }
}

fn number(func: &Function) -> (Vec<Span>, Point) {
    let mut spans = vec![Span::default(); func.blocks.len()];
    let mut slot = 0;
    for &b in &func.layout {
        let first = slot;
        slot += func.block(b).insts.len() as u32 + 1;
        spans[b.index()] = Span { first, last: slot };
        slot += 1;
    }
    (spans, 2 * slot)
}

struct Build<'a, W> {
    func: &'a Function,
    cfg: &'a Cfg,
    spans: &'a [Span],
    lane_base: &'a [u32],
    /// The block and point of each value's definition.
    defs: Vec<Option<(BlockId, Point)>>,
    /// The lane, the block, and the end of the interval of the use.
    uses: Vec<(u32, BlockId, Point)>,
    is_wanted: W,
}

/// The uses grouped by lane.
struct UsesByLane {
    /// For each lane, the end of its uses; they start at the end of the previous lane's uses.
    ends: Vec<u32>,
    uses: Vec<(BlockId, Point)>,
}

impl UsesByLane {
    fn new(unsorted: &[(u32, BlockId, Point)], lanes: usize) -> UsesByLane {
        let mut ends = vec![0; lanes];
        unsorted.iter().for_each(|(lane, ..)| ends[*lane as usize] += 1);
        let mut start = 0;
        for end in &mut ends {
            start += std::mem::replace(end, start);
        }
        let mut uses = vec![(BlockId(0), 0); unsorted.len()];
        for &(lane, b, end) in unsorted {
            let place = &mut ends[lane as usize];
            uses[*place as usize] = (b, end);
            *place += 1;
        }
        UsesByLane { ends, uses }
    }

    fn of(&self, lane: u32) -> &[(BlockId, Point)] {
        let start = lane.checked_sub(1).map_or(0, |before| self.ends[before as usize]);
        &self.uses[start as usize..self.ends[lane as usize] as usize]
    }
}

impl<W: Fn(Value) -> bool> Build<'_, W> {
    fn collect(&mut self) {
        let func = self.func;
        for &b in &func.layout {
            let span = self.spans[b.index()];
            let block = func.block(b);
            for phi in &block.phis {
                self.define(phi.dst, b, span.phi());
                for &(pred, arg) in &phi.args {
                    self.read(arg.kind, pred, self.spans[pred.index()].end());
                }
            }
            for (i, inst) in block.insts.iter().enumerate() {
                for src in inst.uses() {
                    self.read(src.kind, b, span.write(i));
                }
                for v in inst.defs() {
                    self.define(v, b, span.write(i));
                }
            }
            if let Some(src) = block.term.operand() {
                self.read(src.kind, b, span.exit());
            }
        }
    }

    fn define(&mut self, v: Value, b: BlockId, at: Point) {
        if (self.is_wanted)(v) {
            self.defs[v.index()] = Some((b, at));
        }
    }

    fn read(&mut self, kind: SrcKind, b: BlockId, end: Point) {
        match kind {
            SrcKind::Value(v) | SrcKind::Part(v, _) if !(self.is_wanted)(v) => {}
            SrcKind::Value(v) => {
                let lanes = self.lane_base[v.index()]..self.lane_base[v.index() + 1];
                self.uses.extend(lanes.map(|lane| (lane, b, end)));
            }
            SrcKind::Part(v, part) => {
                self.uses.push((self.lane_base[v.index()] + u32::from(part), b, end));
            }
            _ => {}
        }
    }

    /// Walks from every use up to the definition; each block is visited once per lane.
    fn ranges(self, lanes: usize) -> Vec<Ranges> {
        let uses = UsesByLane::new(&self.uses, lanes);
        let mut result = Vec::with_capacity(lanes);
        // The lane for which each block was last found live-out.
        let mut live_out = vec![u32::MAX; self.func.blocks.len()];
        let mut pending: Vec<BlockId> = Vec::new();
        for (v, def) in self.defs.iter().enumerate() {
            for lane in self.lane_base[v]..self.lane_base[v + 1] {
                let mut intervals: SmallVec<[Interval; 2]> = SmallVec::new();
                if let &Some((_, point)) = def {
                    intervals.push(Interval { start: point, end: point + 1 });
                }
                for &(b, end) in uses.of(lane) {
                    let mut live_in = |b: BlockId, end: Point, pending: &mut Vec<BlockId>| {
                        let start = match def {
                            Some((at, point)) if *at == b => *point,
                            _ => {
                                pending.push(b);
                                self.spans[b.index()].start()
                            }
                        };
                        // Most uses are in the same block as the previous one.
                        match intervals.last_mut() {
                            Some(last) if last.start == start => last.end = last.end.max(end),
                            _ => intervals.push(Interval { start, end }),
                        }
                    };
                    live_in(b, end, &mut pending);
                    while let Some(b) = pending.pop() {
                        for &pred in self.cfg.preds(b) {
                            if std::mem::replace(&mut live_out[pred.index()], lane) != lane {
                                live_in(pred, self.spans[pred.index()].end(), &mut pending);
                            }
                        }
                    }
                }
                result.push(Ranges::from_unsorted(intervals));
            }
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ori::text;

    #[test]
    fn other_threads_run_between_blocks() {
        let func = text::parse(
            "entry \"f\" {\nb0:\n%v0:ur = ULDC c[0x0][0x160]\n%v1:r = S2R\n%v2:p = ISETP.LT.AND %v1, 0x5, PT
             BRA %v2, b2, b1\nb1:\n%v3:ur = ULDC c[0x0][0x164]\n%v4:r = MOV %v3\nEXIT
             b2:\n%v5:r = MOV %v0\nEXIT\n}",
        )
        .unwrap();
        let live = Liveness::compute(&func, &Cfg::new(&func));
        let crosses = |v: u32| live.crosses_switch(live.ranges(Value(v), 0));
        // The value is not live in the block between.
        assert!(crosses(0));
        assert!(!crosses(3));
        assert!(live.switches().intersects(live.ranges(Value(0), 0)));
        assert!(!live.switches().intersects(live.ranges(Value(3), 0)));
    }

    #[test]
    fn other_threads_run_between_iterations() {
        let func = text::parse(
            "entry \"f\" {\nb0:\n%v0:ur = ULDC c[0x0][0x160]\nJUMP b1
             b1:\n%v1:ur = phi b0 %v0, b1 %v2\n%v2:ur = UIADD3 %v1, 0xffffffff, RZ
             %v3:r = MOV %v2\n%v4:p = ISETP.NE.AND %v3, 0x0, PT\nBRA %v4, b1, b2\nb2:\nEXIT\n}",
        )
        .unwrap();
        let live = Liveness::compute(&func, &Cfg::new(&func));
        for v in [1, 2] {
            assert!(live.crosses_switch(live.ranges(Value(v), 0)), "{v}");
            assert!(live.switches().intersects(live.ranges(Value(v), 0)), "{v}");
        }
    }
}
