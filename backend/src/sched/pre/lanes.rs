//! Counts the values that are live between the placed instructions of a block and the remaining ones.

use crate::ori::ir::{File, Function, Inst, SrcKind, Value};
use crate::ori::op::Op;
use crate::regalloc::convention::Overwritten;
use crate::regalloc::live::Liveness;
use crate::target::Target;
use smallvec::SmallVec;

/// Live lanes of the two files whose registers may be scarce.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Count {
    pub(super) general: u32,
    pub(super) predicates: u32,
}

/// The lanes that are live between the placed instructions of a block and the remaining ones.
pub(super) struct Lanes {
    /// For each value: its first lane and its file.
    base: Vec<u32>,
    file: Vec<File>,
    width: Vec<u8>,
    /// For each block: the lanes that are live at its end.
    live_out: Vec<Vec<u32>>,
    is_live: Vec<bool>,
    /// Lanes that may be live.
    touched: Vec<u32>,
    file_of_lane: Vec<File>,
    /// The calls of the function, and the number of general registers that each overwrites.
    calls: Vec<(Op, u32)>,
    pub(super) count: Count,
}

impl Lanes {
    pub(super) fn new(func: &Function, live: &Liveness, target: &Target) -> Lanes {
        let mut lanes = Lanes {
            base: Vec::with_capacity(func.values.len()),
            file: func.values.iter().map(|d| d.file).collect(),
            width: func.values.iter().map(|d| d.width).collect(),
            live_out: vec![Vec::new(); func.blocks.len()],
            is_live: Vec::new(),
            touched: Vec::new(),
            file_of_lane: Vec::new(),
            calls: Vec::new(),
            count: Count::default(),
        };
        for data in &func.values {
            lanes.base.push(lanes.file_of_lane.len() as u32);
            lanes.file_of_lane.extend(std::iter::repeat_n(data.file, usize::from(data.width)));
        }
        for inst in func.layout.iter().flat_map(|&b| &func.block(b).insts).filter(|inst| inst.op.is_call()) {
            if lanes.calls.iter().all(|(call, _)| *call != inst.op) {
                // Allocation reports the error.
                let overwritten = Overwritten::by(&inst.op, func, target).map_or(0, |by| by.general());
                lanes.calls.push((inst.op, overwritten));
            }
        }
        lanes.is_live = vec![false; lanes.file_of_lane.len()];
        // Blocks in layout order have ascending ends.
        let exits: Vec<u32> = func.layout.iter().map(|b| live.spans[b.index()].exit()).collect();
        for v in (0..func.values.len() as u32).map(Value) {
            for (part, ranges) in live.of(v).iter().enumerate() {
                for interval in &ranges.0 {
                    let first = exits.partition_point(|&e| e < interval.start);
                    let covered = exits[first..].iter().take_while(|&&e| e < interval.end).count();
                    for b in &func.layout[first..first + covered] {
                        lanes.live_out[b.index()].push(lanes.base[v.index()] + part as u32);
                    }
                }
            }
        }
        lanes
    }

    /// Starts at the end of a block; returns the number of live lanes there.
    pub(super) fn enter(&mut self, block: usize, term: Option<SrcKind>) -> Vec<u32> {
        let mut end = std::mem::take(&mut self.live_out[block]);
        end.extend(term.and_then(|kind| self.lanes(kind)).into_iter().flatten());
        self.reset(&end);
        end
    }

    /// The number of predicates that are live at the end of a block, where this starts, and that it does not define.
    pub(super) fn predicates_throughout(&self, insts: &[Inst]) -> u32 {
        let is_own =
            |v: &Value| self.file[v.index()] == File::P && self.is_live[self.base[v.index()] as usize];
        self.count.predicates - insts.iter().flat_map(Inst::defs).filter(is_own).count() as u32
    }

    /// Returns to the end of a block.
    pub(super) fn reset(&mut self, end: &[u32]) {
        for lane in self.touched.drain(..) {
            self.is_live[lane as usize] = false;
        }
        self.count = Count::default();
        for &lane in end {
            self.start(lane);
        }
    }

    fn lanes(&self, kind: SrcKind) -> Option<std::ops::Range<u32>> {
        match kind {
            SrcKind::Value(v) => {
                let base = self.base[v.index()];
                Some(base..base + u32::from(self.width[v.index()]))
            }
            SrcKind::Part(v, part) => {
                let lane = self.base[v.index()] + u32::from(part);
                Some(lane..lane + 1)
            }
            _ => None,
        }
    }

    pub(super) fn file(&self, v: Value) -> File {
        self.file[v.index()]
    }

    /// The lane of a part of a value.
    pub(super) fn lane(&self, v: Value, part: u8) -> Option<u32> {
        (part < self.width[v.index()]).then(|| self.base[v.index()] + u32::from(part))
    }

    /// Visits the lanes that the instruction defines (`true`) and reads.
    pub(super) fn for_each(&self, inst: &Inst, mut visit: impl FnMut(u32, bool)) {
        for v in inst.defs() {
            self.lanes(SrcKind::Value(v)).into_iter().flatten().for_each(|lane| visit(lane, true));
        }
        for src in inst.uses() {
            self.lanes(src.kind).into_iter().flatten().for_each(|lane| visit(lane, false));
        }
    }

    fn counter(&mut self, lane: u32) -> Option<&mut u32> {
        match self.file_of_lane[lane as usize] {
            File::R => Some(&mut self.count.general),
            File::P => Some(&mut self.count.predicates),
            File::UR | File::UP | File::B => None,
        }
    }

    fn start(&mut self, lane: u32) {
        if !std::mem::replace(&mut self.is_live[lane as usize], true) {
            self.touched.push(lane);
            if let Some(count) = self.counter(lane) {
                *count += 1;
            }
        }
    }

    /// The number of general registers that a call overwrites; zero for other instructions.
    pub(super) fn overwritten(&self, inst: &Inst) -> u32 {
        if !inst.op.is_call() {
            return 0;
        }
        self.calls.iter().find(|(call, _)| *call == inst.op).map_or(0, |(_, overwritten)| *overwritten)
    }

    /// Places an instruction above all placed ones; returns the maximum number of live lanes around it.
    pub(super) fn place(&mut self, inst: &Inst) -> Count {
        let mut peak = self.count;
        for v in inst.defs() {
            for lane in self.lanes(SrcKind::Value(v)).into_iter().flatten() {
                if std::mem::replace(&mut self.is_live[lane as usize], false) {
                    if let Some(count) = self.counter(lane) {
                        *count -= 1;
                    }
                } else {
                    // A result that is never read also takes a register.
                    match self.file[v.index()] {
                        File::R => peak.general += 1,
                        File::P => peak.predicates += 1,
                        _ => {}
                    }
                }
            }
        }
        // No value that is live across a call is in a register that the call overwrites.
        let during = self.count.general + self.overwritten(inst);
        for src in inst.uses() {
            for lane in self.lanes(src.kind).into_iter().flatten() {
                self.start(lane);
            }
        }
        Count {
            general: peak.general.max(during).max(self.count.general),
            predicates: peak.predicates.max(self.count.predicates),
        }
    }

    /// The lanes that determine how placing an instruction changes the number of live lanes.
    pub(super) fn touches(&self, inst: &Inst) -> Touches {
        let mut touches = Touches::new();
        let mut add = |v: Value, kind: SrcKind, defined: bool| {
            let file = self.file[v.index()];
            if matches!(file, File::R | File::P) {
                let lanes = self.lanes(kind).into_iter().flatten();
                touches.extend(lanes.map(|lane| Touch { lane, group: 0, general: file == File::R, defined }));
            }
        };
        for v in inst.defs() {
            add(v, SrcKind::Value(v), true);
        }
        for (i, src) in inst.uses().enumerate() {
            // Repeated operands count once.
            if let Some(v) = src.value()
                && !inst.uses().take(i).any(|earlier| earlier.kind == src.kind)
            {
                add(v, src.kind, false);
            }
        }
        touches
    }

    /// The change in live lanes if the instruction is placed.
    pub(super) fn change(&self, touches: &Touches) -> Change {
        let mut change = Change::default();
        for touch in touches {
            let by = i32::from(!touch.defined) - i32::from(self.is_live(touch));
            change.add(touch, by);
        }
        change
    }

    pub(super) fn is_live(&self, touch: &Touch) -> bool {
        self.is_live[touch.lane as usize]
    }

    /// The maximum number of live lanes in this order, from the bottom up.
    pub(super) fn peak<'i>(&mut self, insts: impl Iterator<Item = &'i Inst>) -> Count {
        let mut peak = self.count;
        for inst in insts {
            let here = self.place(inst);
            peak.general = peak.general.max(here.general);
            peak.predicates = peak.predicates.max(here.predicates);
        }
        peak
    }
}

/// A change in the number of live lanes.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Change {
    pub(super) general: i32,
    pub(super) predicates: i32,
}

impl Change {
    pub(super) fn add(&mut self, touch: &Touch, by: i32) {
        if touch.general {
            self.general += by;
        } else {
            self.predicates += by;
        }
    }
}

/// A lane that an instruction defines or reads.
#[derive(Clone, Copy)]
pub(super) struct Touch {
    pub(super) lane: u32,
    /// The number of the lane among the lanes that the block touches.
    pub(super) group: u32,
    /// Whether it is a lane of a general register; otherwise of a predicate.
    general: bool,
    defined: bool,
}

pub(super) type Touches = SmallVec<[Touch; 4]>;
