//! Bundles: values that share one run of registers at fixed offsets.
//!
//! Every value starts as its own bundle. Two bundles are merged if a copy would join them (a phi and its argument, a
//! pack and its parts, a guarded result and its old value), and no lane of one is live at the same time as a lane of
//! the other in the same register. A guarded result and its old value *must* share a register; values tied in this way
//! are a *piece*. All other merging is optional, and a bundle that gets no registers is split into its pieces again.

use crate::ori::facts::Facts;
use crate::ori::ir::{File, Function, Src, SrcKind, SrcMods, Value};
use crate::ori::op::Op;
use crate::ori::operations::facts;
use crate::regalloc::draft::{others, tied};
use crate::regalloc::live::{Liveness, Point, Ranges};
use rustc_hash::FxHashSet;
use smallvec::{SmallVec, smallvec};

#[derive(Clone, Debug)]
pub(crate) struct Bundle {
    pub(crate) file: File,
    /// The first register is `residue` modulo `align`, a power of two.
    pub(crate) align: u8,
    pub(crate) residue: u8,
    /// The live range of each register of the run.
    pub(crate) slots: SmallVec<[Ranges; 1]>,
    /// Values and their offsets in the run.
    pub(crate) members: SmallVec<[(Value, u8); 2]>,
    /// The expected number of executions of its loads and stores if it were spilled.
    pub(crate) weight: f32,
    /// Spilling cannot shorten the live range of any member.
    pub(crate) fixed: bool,
    /// The first register of the run, if the calling convention fixes a member's register.
    pub(crate) pin: Option<u8>,
}

impl Bundle {
    pub(crate) fn start(&self) -> Point {
        self.slots.iter().filter(|s| !s.is_empty()).map(Ranges::start).min().unwrap_or(0)
    }

    /// The last point plus one.
    pub(crate) fn end(&self) -> Point {
        self.slots.iter().filter_map(|s| s.0.last()).map(|i| i.end).max().unwrap_or(0)
    }

    pub(crate) fn length(&self) -> u64 {
        self.slots.iter().map(Ranges::length).sum()
    }

    pub(crate) fn width(&self) -> usize {
        self.slots.len()
    }

    fn congruent(&self, other: &Bundle, shift: i32) -> bool {
        let align = i32::from(self.align.min(other.align));
        (i32::from(self.residue) + shift - i32::from(other.residue)).rem_euclid(align) == 0
    }
}

#[derive(Debug)]
pub(crate) struct Bundles {
    /// Merged bundles remain as empty ones without members.
    pub(crate) bundles: Vec<Bundle>,
    /// For each value, its bundle and offset.
    pub(crate) of: Vec<(u32, u8)>,
    /// For each value, the number of its piece.
    piece: Vec<u32>,
    /// For each bundle, during merging: its final number, whichever of two bundles took the other's members.
    places: Vec<u32>,
    /// Values that threads elsewhere in the function overwrite.
    of_others: FxHashSet<Value>,
    /// For each general register: where a call overwrites it, or a bundle must have it. Empty without calls.
    taken: Vec<Ranges>,
}

/// The alignment of the first register of a value.
pub(crate) fn alignment(file: File, width: u8) -> u8 {
    match file {
        // ptxas aligns 16 registers, a factor of an `.f64` product, to 16.
        File::R if width == 16 => 16,
        File::R => width.next_power_of_two().min(if width > 4 { 8 } else { 4 }),
        File::UR => width.next_power_of_two().min(8),
        File::P | File::UP | File::B => 1,
    }
}

/// A copy that disappears if both ends share registers: `width` lanes from lane `dst.1` of `dst.0` on are those from lane
/// `src.1` of `src.0` on.
struct Affinity {
    dst: (Value, u8),
    src: (Value, u8),
    width: u8,
    weight: f32,
}

/// The number of instructions that load a spilled value of a given width, and that store it: see [`super::spill`].
fn loads_of(width: u8) -> u8 {
    if width > 4 { width.div_ceil(4) } else { 1 }
}

fn stores_of(width: u8) -> u8 {
    if width > 4 { width } else { 1 }
}

/// `frequency` is per block, `fixed` per value, `taken` per general register. `coalesces`: merge not only tied values.
pub(crate) fn build(
    func: &Function,
    live: &Liveness,
    frequency: &[f32],
    fixed: &[bool],
    taken: Vec<Ranges>,
    coalesces: bool,
) -> Bundles {
    let mut weight = vec![0f32; func.values.len()];
    let mut add = |v: Value, often: f32, instructions: u8| {
        weight[v.index()] += often * f32::from(instructions);
    };
    let loads = |src: &Src| match src.kind {
        SrcKind::Value(v) => Some((v, loads_of(func.value(v).width))),
        SrcKind::Part(v, _) => Some((v, 1)),
        _ => None,
    };
    let stores = |v: Value| stores_of(func.value(v).width);
    for &b in &func.layout {
        let block = func.block(b);
        let often = frequency[b.index()];
        for phi in &block.phis {
            add(phi.dst, often, stores(phi.dst));
            for (pred, arg) in &phi.args {
                if let Some((v, loads)) = loads(arg) {
                    add(v, frequency[pred.index()], loads);
                }
            }
        }
        for inst in &block.insts {
            inst.defs().for_each(|v| add(v, often, stores(v)));
            inst.uses().filter_map(loads).for_each(|(v, loads)| add(v, often, loads));
        }
        if let Some((v, loads)) = block.term.operand().and_then(loads) {
            add(v, often, loads);
        }
    }
    let bundles = (0..func.values.len() as u32)
        .map(|v| {
            let data = func.value(Value(v));
            Bundle {
                file: data.file,
                align: alignment(data.file, data.width),
                residue: 0,
                slots: live.of(Value(v)).iter().cloned().collect(),
                members: smallvec![(Value(v), 0)],
                weight: weight[v as usize],
                fixed: fixed[v as usize],
                pin: data.pin,
            }
        })
        .collect();
    let of = (0..func.values.len() as u32).map(|v| (v, 0)).collect();
    let places = (0..func.values.len() as u32).collect();
    let mut result =
        Bundles { bundles, of, piece: Vec::new(), places, of_others: FxHashSet::default(), taken };

    for &b in &func.layout {
        for inst in &func.block(b).insts {
            for (dst, old) in tied(inst) {
                let joined = result.join((dst, 0), (old, 0), func.value(dst).width);
                debug_assert!(joined, "a kept value dies in the instruction that keeps it");
            }
        }
    }
    // No operation relies on their contents, so all of them can share registers.
    let mut firsts: Vec<Value> = Vec::new();
    for inst in func.layout.iter().flat_map(|&b| &func.block(b).insts) {
        for v in others(inst) {
            let like = |&&first: &&Value| {
                (func.value(first).file, func.value(first).width) == (func.value(v).file, func.value(v).width)
            };
            match firsts.iter().find(like) {
                Some(&first) => {
                    let joined = result.join((first, 0), (v, 0), func.value(v).width);
                    debug_assert!(joined, "no instruction reads a value that other threads overwrite");
                }
                None => firsts.push(v),
            }
            result.of_others.insert(v);
        }
    }
    result.piece = result.of.iter().map(|&(bundle, _)| result.places[bundle as usize]).collect();
    let wishes = if coalesces { wishes(func, frequency) } else { Vec::new() };
    for wish in wishes {
        result.join(wish.dst, wish.src, wish.width);
    }
    result.settle();
    result.keep_apart(0, live);
    result
}

fn wishes(func: &Function, frequency: &[f32]) -> Vec<Affinity> {
    let mut wishes = Vec::new();
    for &b in &func.layout {
        let block = func.block(b);
        for inst in &block.insts {
            if let (Op::Pack | Op::Copy, Some(wide)) = (inst.op, inst.defs().next()) {
                let mut part = 0;
                for src in &inst.srcs {
                    let width = source_width(func, src);
                    add(func, &mut wishes, (wide, part), src, frequency[b.index()]);
                    part += width;
                }
            }
        }
        // A `wgmma` product overwrites its accumulator in place.
        for inst in &block.insts {
            let old = match inst.op {
                Op::Settle { .. } => inst.srcs.first(),
                _ if facts(&inst.op) == Facts::GROUP => inst.srcs.iter().rev().nth(1),
                _ => continue,
            };
            if let (Some(sum), Some(old)) = (inst.defs().next(), old) {
                add(func, &mut wishes, (sum, 0), old, 2.0 * frequency[b.index()]);
            }
        }
        for phi in &block.phis {
            for (pred, arg) in &phi.args {
                add(func, &mut wishes, (phi.dst, 0), arg, frequency[pred.index()]);
            }
        }
    }
    // The most frequent first; equally frequent ones in the order of appearance.
    wishes.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    wishes
}

/// The number of registers that one source of a pack or copy contributes.
pub(crate) fn source_width(func: &Function, src: &Src) -> u8 {
    match src.kind {
        SrcKind::Value(v) => func.value(v).width,
        _ => 1,
    }
}

fn add(func: &Function, wishes: &mut Vec<Affinity>, dst: (Value, u8), src: &Src, often: f32) {
    let (value, part, width) = match src.kind {
        SrcKind::Value(v) => (v, 0, func.value(v).width),
        SrcKind::Part(v, part) => (v, part, 1),
        _ => return,
    };
    if src.mods == SrcMods::NONE && func.value(value).file == func.value(dst.0).file {
        wishes.push(Affinity { dst, src: (value, part), width, weight: often * f32::from(width) });
    }
}

impl Bundles {
    /// Moves every bundle to its final number.
    fn settle(&mut self) {
        for i in 0..self.bundles.len() {
            let place = self.places[i];
            self.bundles[i].members.iter().for_each(|(v, _)| self.of[v.index()].0 = place);
        }
        for i in 0..self.bundles.len() {
            while self.places[i] != i as u32 {
                let place = self.places[i] as usize;
                self.bundles.swap(i, place);
                self.places.swap(i, place);
            }
        }
    }

    /// Uniform registers belong to the warp, and live ranges to a thread: while some threads wait in one arm of a
    /// divergent branch, others run the other arm. So a uniform value that lives across blocks, or across an
    /// instruction that waits, keeps its register for the whole function. The same holds for registers that threads
    /// anywhere overwrite.
    fn keep_apart(&mut self, from: usize, live: &Liveness) {
        for bundle in &mut self.bundles[from..] {
            let crosses = bundle.file.is_uniform() && bundle.slots.iter().any(|s| live.crosses_switch(s));
            if crosses || bundle.members.iter().any(|(v, _)| self.of_others.contains(v)) {
                bundle.slots.fill(live.everywhere());
            }
        }
    }

    /// Puts lane `a.1` of `a.0` and lane `b.1` of `b.0` into the same register. The values agree in `same` lanes from
    /// these on. Returns false if that is impossible.
    fn join(&mut self, a: (Value, u8), b: (Value, u8), same: u8) -> bool {
        let (mut into, at) = self.of[a.0.index()];
        let (mut from, from_at) = self.of[b.0.index()];
        // The offset of `from`'s first register in `into`'s run.
        let (mut lane, other) = (at + a.1, from_at + b.1);
        let mut shift = i32::from(lane) - i32::from(other);
        if into == from {
            return shift == 0;
        }
        let width = |i: u32| self.bundles[i as usize].width();
        let leader = if width(from) > width(into) { from } else { into };
        // The bundle with fewer members is moved, so that long chains of ties take little time.
        let size = |i: u32| (width(i), self.bundles[i as usize].members.len());
        if size(from) > size(into) {
            std::mem::swap(&mut into, &mut from);
            (shift, lane) = (-shift, other);
        }
        let (large, small) = (&self.bundles[into as usize], &self.bundles[from as usize]);
        // Longer runs would fragment the file.
        if shift < 0 || shift as usize + small.width() > large.width() || !large.congruent(small, shift) {
            return false;
        }
        let shift = shift as usize;
        // Other threads may need what a uniform register holds (see `keep_apart`), so it may hold only one thing.
        let is_shared = |slot: usize| {
            !large.file.is_uniform() || (usize::from(lane)..usize::from(lane + same)).contains(&slot)
        };
        let fits = |(i, s): (usize, &Ranges)| {
            let l = &large.slots[shift + i];
            if is_shared(shift + i) { !s.intersects(l) } else { s.is_empty() || l.is_empty() }
        };
        if !small.slots.iter().enumerate().all(fits) {
            return false;
        }
        let Some(pin) = self.common_pin(into, from, shift) else { return false };
        let (large, small) = (&self.bundles[into as usize], &self.bundles[from as usize]);
        if let Some(base) = pin {
            // A bundle without a fixed register may have one now.
            let newly: Vec<(usize, Ranges)> = match (large.pin, small.pin) {
                (None, _) => (usize::from(base)..).zip(large.slots.iter().cloned()).collect(),
                (_, None) => (usize::from(base) + shift..).zip(small.slots.iter().cloned()).collect(),
                _ => Vec::new(),
            };
            newly.iter().for_each(|(register, ranges)| self.taken[*register].absorb(ranges));
        }
        let (large, small) = (&mut self.bundles[into as usize], from as usize);
        large.pin = pin;
        let small = &self.bundles[small];
        let empty = Bundle { slots: SmallVec::new(), members: SmallVec::new(), weight: 0.0, ..*small };
        let small = std::mem::replace(&mut self.bundles[from as usize], empty);
        if into != leader {
            self.places.swap(into as usize, from as usize);
        }
        let large = &mut self.bundles[into as usize];
        for (l, s) in large.slots[shift..].iter_mut().zip(&small.slots) {
            l.absorb(s);
        }
        if small.align > large.align {
            large.residue =
                (i32::from(small.residue) - shift as i32).rem_euclid(i32::from(small.align)) as u8;
            large.align = small.align;
        }
        large.weight += small.weight;
        large.fixed &= small.fixed;
        for &(v, offset) in &small.members {
            let offset = offset + shift as u8;
            self.of[v.index()] = (into, offset);
            large.members.push((v, offset));
        }
        true
    }

    /// The fixed first register of two bundles as one, if any. `None` if they cannot be merged.
    fn common_pin(&self, into: u32, from: u32, shift: usize) -> Option<Option<u8>> {
        let (large, small) = (&self.bundles[into as usize], &self.bundles[from as usize]);
        let base_of_small = match small.pin {
            Some(pin) => Some(pin.checked_sub(shift as u8)?),
            None => None,
        };
        let base = match (large.pin, base_of_small) {
            (None, None) => return Some(None),
            (Some(a), Some(b)) => return (a == b).then_some(Some(a)),
            (Some(base), None) | (None, Some(base)) => base,
        };
        let (unplaced, first) =
            if large.pin.is_some() { (small, usize::from(base) + shift) } else { (large, base.into()) };
        let align = large.align.max(small.align);
        let aligned =
            |bundle: &Bundle, at: usize| at % usize::from(bundle.align) == usize::from(bundle.residue);
        let fits = align == 1 || (aligned(large, base.into()) && aligned(small, usize::from(base) + shift));
        let stack = usize::from(crate::regalloc::STACK_POINTER.index);
        let free = |(register, slot): (usize, &Ranges)| {
            register != stack && self.taken.get(register).is_some_and(|taken| !taken.intersects(slot))
        };
        (fits && (first..).zip(&unplaced.slots).all(free)).then_some(Some(base))
    }

    /// Splits a bundle into its pieces, which are new bundles; the bundle itself becomes empty.
    pub(crate) fn break_up(
        &mut self,
        index: u32,
        func: &Function,
        live: &Liveness,
        fixed: &[bool],
    ) -> Vec<u32> {
        let bundle = &mut self.bundles[index as usize];
        let weight = bundle.weight / bundle.members.len().max(1) as f32;
        let mut members = std::mem::take(&mut bundle.members);
        bundle.slots.clear();
        members.sort_by_key(|&(v, _)| (self.piece[v.index()], v));
        let first = self.bundles.len();
        let mut pieces = Vec::new();
        for group in members.chunk_by(|a, b| self.piece[a.0.index()] == self.piece[b.0.index()]) {
            // Tied values have the same width, and therefore the same offset.
            let data = func.value(group[0].0);
            let mut slots: SmallVec<[Ranges; 1]> = smallvec![Ranges::default(); usize::from(data.width)];
            for &(v, _) in group {
                for (slot, ranges) in slots.iter_mut().zip(live.of(v)) {
                    slot.absorb(ranges);
                }
                self.of[v.index()] = (self.bundles.len() as u32, 0);
            }
            pieces.push(self.bundles.len() as u32);
            self.bundles.push(Bundle {
                file: data.file,
                align: alignment(data.file, data.width),
                residue: 0,
                slots,
                members: group.iter().map(|&(v, _)| (v, 0)).collect(),
                weight: weight * group.len() as f32,
                fixed: group.iter().all(|(v, _)| fixed[v.index()]),
                pin: group.iter().find_map(|(v, _)| func.value(*v).pin),
            });
        }
        self.keep_apart(first, live);
        pieces
    }
}
