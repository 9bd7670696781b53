//! Joins weak loads of neighboring words of shared memory into one wide load, if the address is known to be aligned for
//! it.
//!
//! The wide load replaces the first of the loads. [`alias`] decides whether a load of all the bytes may move across
//! each instruction in between.
//!
//! Before and after: SSA. The old results become parts of the wide one; copy propagation runs later.

use crate::CodegenError;
use crate::ori::alias;
use crate::ori::analyses::Analyses;
use crate::ori::defs::Defs;
use crate::ori::ir::{BlockId, Dst, File, Function, Inst, Src, SrcKind, Value};
use crate::ori::memory::{Order, effect};
use crate::ori::op::{AddressScale, MemSize, Op, ShfType, lut};
use crate::phase::edit::{Replacements, known};
use crate::phases::{Change, Context};
use rustc_hash::FxHashMap;
use std::mem;

/// The maximum number of instructions across which a load moves. A load that moves far occupies its register for a long
/// time.
const FAR: usize = 128;

pub fn run(func: &mut Function, context: &Context<'_>) -> Result<Change, CodegenError> {
    let cfg = context.analyses.cfg(func);
    let mut found: Vec<(BlockId, Vec<Group>)> = Vec::new();
    let mut alignments = Alignments::new(func, context.analyses);
    for (n, &b) in cfg.order.iter().enumerate() {
        if n % 64 == 0 {
            (context.checkpoint)();
        }
        let groups = groups(func, b, &mut alignments);
        if !groups.is_empty() {
            found.push((b, groups));
        }
    }
    let change = Change::of(!found.is_empty());
    let mut replaced = Replacements::new(func);
    for (b, groups) in found {
        join(func, b, groups, &mut replaced);
    }
    replaced.apply(func, cfg);
    Ok(change)
}

/// A load that may be part of a wider one.
struct Load {
    /// The two addends of the address.
    base: [Src; 2],
    offset: i32,
    bytes: i32,
    value: Value,
}

impl Load {
    fn of(inst: &Inst) -> Option<Load> {
        let Op::Lds { size, order: Order::Weak, scale: AddressScale::One, offset } = inst.op else {
            return None;
        };
        let bytes = match size {
            MemSize::B32 => 4,
            MemSize::B64 => 8,
            _ => return None,
        };
        match (&inst.dsts[..], &inst.srcs[..], inst.guard.is_true()) {
            ([Dst::Value(value)], &[base, addend], true) => {
                Some(Load { base: [base, addend], offset, bytes, value: *value })
            }
            _ => None,
        }
    }

    fn end(&self) -> i32 {
        self.offset.saturating_add(self.bytes)
    }
}

/// Loads that are joined.
struct Group {
    size: MemSize,
    /// The offset of the first byte.
    start: i32,
    /// Their indices in the block, in ascending order.
    places: Vec<usize>,
}

/// The groups of loads of a block to join; no load is in two groups.
fn groups(func: &Function, b: BlockId, alignments: &mut Alignments<'_>) -> Vec<Group> {
    let insts = &func.block(b).insts;
    let mut taken = vec![false; insts.len()];
    let mut groups = Vec::new();
    for at in 0..insts.len() {
        let Some(first) = Load::of(&insts[at]).filter(|_| !taken[at]) else { continue };
        let aligned = first.base.iter().map(|src| alignments.of(src)).min().unwrap_or(0);
        let sizes = [(16, MemSize::B128), (8, MemSize::B64)];
        let fitting = sizes.into_iter().filter(|(bytes, _)| 1 << aligned >= *bytes && *bytes > first.bytes);
        let mut found = fitting.filter_map(|(bytes, size)| group(insts, at, &first, bytes, size, &taken));
        if let Some(group) = found.next() {
            group.places.iter().for_each(|place| taken[*place] = true);
            groups.push(group);
        }
    }
    groups
}

/// The loads, from the one at `at` on, that together load the given number of bytes.
fn group(
    insts: &[Inst],
    at: usize,
    first: &Load,
    bytes: i32,
    size: MemSize,
    taken: &[bool],
) -> Option<Group> {
    let start = first.offset - first.offset.rem_euclid(bytes);
    let wide = effect(&Op::Lds { size, order: Order::Weak, scale: AddressScale::One, offset: start });
    let (mut places, mut missing) = (vec![at], bytes - first.bytes);
    for (place, inst) in insts.iter().enumerate().skip(at + 1).take(FAR) {
        let same_base = inst.srcs.get(..2) == Some(&first.base);
        let fits = |load: &Load| {
            let mut others = places.iter().filter_map(|place| Load::of(&insts[*place]));
            let new = others.all(|other| load.end() <= other.offset || other.end() <= load.offset);
            new && start <= load.offset && load.end() <= start + bytes
        };
        match Load::of(inst).filter(|load| same_base && !taken[place] && fits(load)) {
            Some(load) => {
                places.push(place);
                missing -= load.bytes;
                if missing == 0 {
                    return Some(Group { size, start, places });
                }
            }
            // A `NOP` that represents a removed operation.
            None if inst.op == Op::Nop => {}
            None if alias::may_exchange(&effect(&inst.op), &wide, same_base) => {}
            None => break,
        }
    }
    None
}

fn join(func: &mut Function, b: BlockId, groups: Vec<Group>, replaced: &mut Replacements) {
    let mut insts: Vec<Vec<Inst>> =
        mem::take(&mut func.block_mut(b).insts).into_iter().map(|inst| vec![inst]).collect();
    for Group { size, start, places } in groups {
        let result = func.new_value(File::R, if size == MemSize::B128 { 4 } else { 2 });
        let mut wide: Option<Inst> = None;
        let mut made = Vec::new();
        for &place in &places {
            for inst in mem::take(&mut insts[place]) {
                let Some(load) = Load::of(&inst) else { continue };
                let word = ((load.offset - start) / 4) as u8;
                if load.bytes == 4 {
                    replaced.insert(load.value, Src::part(result, word));
                } else {
                    let parts = [word, word + 1].map(|word| Src::part(result, word));
                    made.push(Inst::new(Op::Pack, &[Dst::Value(load.value)], &parts, inst.src));
                }
                let first = wide.get_or_insert_with(|| {
                    let op = Op::Lds { size, order: Order::Weak, scale: AddressScale::One, offset: start };
                    Inst::new(op, &[Dst::Value(result)], &load.base, inst.src)
                });
                if first.src != inst.src {
                    func.facts.joined.push((first.src, inst.src));
                }
            }
        }
        insts[places[0]] = wide.into_iter().chain(made).collect();
    }
    func.block_mut(b).insts = insts.into_iter().flatten().collect();
}

/// Computes how many low bits of values are known to be zero.
struct Alignments<'f> {
    func: &'f Function,
    defs: &'f Defs,
    /// Phis by their values.
    phis: FxHashMap<Value, (BlockId, usize)>,
    known: FxHashMap<Value, u32>,
}

impl<'f> Alignments<'f> {
    /// The result for zero.
    const ALL: u32 = 16;
    /// The number of definitions that are examined for one value.
    const STEPS: u32 = 64;

    fn new(func: &'f Function, analyses: &'f Analyses) -> Alignments<'f> {
        let of_block = |b: BlockId| {
            let phis = func.block(b).phis.iter().enumerate();
            phis.map(move |(i, phi)| (phi.dst, (b, i)))
        };
        let phis = analyses.cfg(func).order.iter().copied().flat_map(of_block).collect();
        Alignments { func, defs: analyses.defs(func), phis, known: FxHashMap::default() }
    }

    fn of(&mut self, src: &Src) -> u32 {
        let Some(v) = src.value() else { return self.find(src, &mut Vec::new(), &mut 0) };
        if let (Some(known), SrcKind::Value(_)) = (self.known.get(&v), src.kind) {
            return *known;
        }
        let found = self.find(src, &mut Vec::new(), &mut Self::STEPS.clone());
        if let SrcKind::Value(v) = src.kind {
            self.known.insert(v, found);
        }
        found
    }

    /// `above`: phis whose arguments are being examined. An argument that depends on the phi itself does not reduce the
    /// number: the operations below never have fewer zeros than the smaller of the number for their operand and the
    /// number for a zero operand.
    fn find(&self, src: &Src, above: &mut Vec<Value>, steps: &mut u32) -> u32 {
        if let Some(bits) = known(src) {
            return bits.trailing_zeros().min(Self::ALL);
        }
        // A negated number has as many low zeros as the number.
        if src.mods.not || src.mods.abs || *steps == 0 {
            return 0;
        }
        *steps -= 1;
        match src.kind {
            SrcKind::Value(v) => match self.phis.get(&v) {
                Some(_) if above.contains(&v) => Self::ALL,
                Some(&(b, i)) => {
                    above.push(v);
                    let args = self.func.block(b).phis[i].args.iter();
                    let least = args.map(|(_, arg)| self.find(arg, above, steps)).min();
                    above.pop();
                    least.unwrap_or(0)
                }
                None => match self.defs.inst(self.func, v) {
                    Some(inst) if inst.guard.is_true() && inst.dsts[0] == Dst::Value(v) => {
                        self.result(inst, above, steps)
                    }
                    _ => 0,
                },
            },
            SrcKind::Part(v, part) => match self.defs.inst(self.func, v) {
                Some(inst) if inst.op == Op::Pack => {
                    inst.srcs.get(usize::from(part)).map_or(0, |src| self.find(src, above, steps))
                }
                _ => 0,
            },
            _ => 0,
        }
    }

    fn result(&self, inst: &Inst, above: &mut Vec<Value>, steps: &mut u32) -> u32 {
        let mut of = |i: usize| inst.srcs.get(i).map_or(0, |src| self.find(src, above, steps));
        let zeros = match inst.op {
            Op::Copy | Op::Mov => of(0),
            Op::Sel => of(0).min(of(1)),
            Op::Iadd3 { x: false } => of(0).min(of(1)).min(of(2)),
            Op::Imad { .. } => (of(0) + of(1)).min(of(2)),
            Op::Lea { shift } | Op::Ulea { shift } => (of(0) + u32::from(shift)).min(of(1)),
            Op::Shf { right: false, hi: false, ty: ShfType::U32, .. } => match known(&inst.srcs[1]) {
                Some(amount @ 0..32) => of(0) + amount,
                _ => of(0),
            },
            Op::Lop3 { lut } if lut == lut::A & lut::B => of(0).max(of(1)),
            // Zeros in all operands give a zero.
            Op::Lop3 { lut } if lut & 1 == 0 => of(0).min(of(1)).min(of(2)),
            _ => 0,
        };
        zeros.min(Self::ALL)
    }
}
