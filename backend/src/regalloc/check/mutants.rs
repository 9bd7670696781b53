//! Tests the checker with randomly damaged allocations: if an execution of some path shows that one is wrong, the
//! checker must reject it.
//!
//! An execution follows a random path through the input and the output side by side. Results are made-up numbers, the
//! same for both, so that a comparison finds every operand that reads a wrong value.

use super::check;
use crate::input::SrcId;
use crate::ori::ir::{BlockId, Dst, File, Function, Inst, Reg, Src, SrcKind, Term, Value};
use crate::ori::op::{Access, MemSize, Op, Sr};
use crate::ori::signature::size_registers;
use crate::regalloc::random::{Shape, function};
use crate::regalloc::{Allocation, STACK_POINTER, allocate};
use crate::target::Target;
use rustc_hash::FxHashMap;
use std::hash::{BuildHasher, BuildHasherDefault};

/// `None` for contents that no instruction may depend on.
type Bits = Option<u32>;

/// A number that depends only on `what`.
fn made_up(what: impl std::hash::Hash) -> u32 {
    (BuildHasherDefault::<rustc_hash::FxHasher>::default().hash_one(what) >> 16) as u32
}

#[derive(Default)]
struct Run {
    lanes: FxHashMap<(Value, u8), Bits>,
    registers: FxHashMap<Reg, Bits>,
    frame: FxHashMap<i32, Bits>,
}

fn modified(src: &Src, bits: Bits, file: File) -> Bits {
    match (src.mods.not, file) {
        (true, File::P | File::UP) => bits.map(|b| b ^ 1),
        _ => bits,
    }
}

/// The lane of a constant operand.
fn constant(src: &Src, i: u8) -> Bits {
    match src.kind {
        SrcKind::Zero => Some(0),
        SrcKind::Imm(bits) => Some(if i == 0 { bits } else { 0 }),
        SrcKind::Const(c) => Some(made_up((c.bank, c.offset + 4 * u16::from(i)))),
        SrcKind::Pred(p) => Some(u32::from(p != src.mods.not)),
        _ => None,
    }
}

impl Run {
    fn register(&self, reg: Reg, by: u8) -> Bits {
        let reg = Reg { index: reg.index.wrapping_add(by), ..reg };
        let mask = if matches!(reg.file, File::P | File::UP) { 1 } else { u32::MAX };
        self.registers.get(&reg).copied().unwrap_or(Some(made_up((reg.file as u8, reg.index)) & mask))
    }

    /// The lanes of an operand of the input.
    fn value(&self, func: &Function, src: &Src, width: u8) -> Vec<Bits> {
        let lane =
            |v: Value, i| modified(src, self.lanes.get(&(v, i)).copied().flatten(), func.value(v).file);
        match src.kind {
            SrcKind::Value(v) => (0..func.value(v).width).map(|i| lane(v, i)).collect(),
            SrcKind::Part(v, part) => vec![lane(v, part)],
            SrcKind::Reg(r) => vec![self.register(r, 0)],
            _ => (0..width).map(|i| constant(src, i)).collect(),
        }
    }

    /// Whether an operand of the output has the value of the operand of the input.
    fn agrees(&self, func: &Function, was: &Src, is: &Src) -> bool {
        let SrcKind::Reg(r) = is.kind else { return true };
        let file = was.value().map_or(r.file, |v| func.value(v).file);
        self.value(func, was, 1)
            .into_iter()
            .enumerate()
            .all(|(i, bits)| bits.is_none() || bits == modified(is, self.register(r, i as u8), file))
    }

    /// Executes an instruction of the input; returns false if its operands in the output have other values.
    fn original(&mut self, func: &Function, at: (BlockId, u32), was: &Inst, is: Option<&Inst>) -> bool {
        if let Some(is) = is
            && !was.uses().take(1 + was.srcs.len()).zip(is.uses()).all(|(was, is)| self.agrees(func, was, is))
        {
            return false;
        }
        let acts = self.value(func, &was.guard, 1)[0];
        let read: Vec<Bits> = was.srcs.iter().flat_map(|src| self.value(func, src, 1)).collect();
        let copies = matches!(was.op, Op::Pack | Op::Copy | Op::Mov | Op::Umov | Op::Uldc { .. });
        for (i, dst) in was.dsts.iter().enumerate() {
            let Dst::Value(v) = *dst else { continue };
            let data = func.value(v);
            let mask = if matches!(data.file, File::P | File::UP) { 1 } else { u32::MAX };
            let mut results: Vec<Bits> = if copies {
                let fill = if was.srcs.len() == 1 { data.width } else { 1 };
                was.srcs.iter().flat_map(|src| self.value(func, src, fill)).collect()
            } else {
                let known: Option<Vec<u32>> = read.iter().copied().collect();
                (0..data.width)
                    .map(|lane| Some(made_up((at.0.0, at.1, i, lane, known.as_ref()?)) & mask))
                    .collect()
            };
            results.resize(usize::from(data.width), None);
            let old = was.old.get(i).map(|old| self.value(func, old, data.width));
            for (lane, bits) in results.into_iter().enumerate() {
                let kept = old.as_ref().map_or(bits, |old| old[lane]);
                let bits = match acts {
                    Some(1) => bits,
                    Some(_) => kept,
                    None => None,
                };
                self.lanes.insert((v, lane as u8), bits);
                if let Some(Dst::Reg(r)) = is.map(|is| is.dsts[i]) {
                    let reg = Reg { index: r.index.wrapping_add(lane as u8), ..r };
                    if acts == Some(0) && bits.is_some() && self.register(reg, 0) != bits {
                        return false;
                    }
                    self.registers.insert(reg, bits);
                }
            }
        }
        true
    }

    /// Executes an instruction that allocation added.
    fn added(&mut self, inst: &Inst) {
        let read = |src: &Src, i: u8| match src.kind {
            SrcKind::Reg(r) => modified(src, self.register(r, i), r.file),
            _ => constant(src, i),
        };
        let one: Vec<Bits> = inst.srcs.iter().map(|src| read(src, 0)).collect();
        let results: Vec<Bits> = match inst.op {
            Op::Mov | Op::Umov | Op::R2ur | Op::Uldc { wide: false } | Op::Plop3 { lut: 0x80, .. } => {
                vec![one[0]]
            }
            Op::Uldc { wide: true } => vec![read(&inst.srcs[0], 0), read(&inst.srcs[0], 1)],
            Op::Cs2r { .. } => vec![Some(0), Some(0)],
            Op::Plop3 { .. } => vec![one[1], one[0]],
            Op::Sel => vec![one[2].map(|p| 1 - p)],
            Op::Isetp { .. } => vec![one[0].map(|bits| u32::from(bits != 0))],
            Op::Lop3 { .. } => vec![one[0].zip(one[1]).map(|(a, b)| a ^ b)],
            Op::Spill { size, offset } => {
                let stored: Vec<Bits> = (0..size_registers(size)).map(|i| read(&inst.srcs[1], i)).collect();
                let words = (offset..).step_by(4);
                self.frame.extend(words.zip(stored));
                return;
            }
            Op::Fill { size, offset } => {
                let word = |i: u8| self.frame.get(&(offset + 4 * i32::from(i))).copied();
                (0..size_registers(size)).map(|i| word(i).unwrap_or(Some(made_up((offset, i))))).collect()
            }
            op => unreachable!("{op:?} is no move"),
        };
        let registers = inst.dsts.iter().filter_map(|dst| match dst {
            Dst::Reg(r) => Some(*r),
            _ => None,
        });
        match registers.collect::<Vec<_>>()[..] {
            [first] => {
                for (i, bits) in results.into_iter().enumerate() {
                    self.registers.insert(Reg { index: first.index.wrapping_add(i as u8), ..first }, bits);
                }
            }
            [a, b] => {
                self.registers.insert(a, results[0]);
                self.registers.insert(b, results[1]);
            }
            _ => {}
        }
    }

    /// Executes a block of the output; returns false if an operand reads a wrong value.
    fn block(&mut self, before: &Function, after: &Function, allocation: &Allocation, b: BlockId) -> bool {
        let originals = before.blocks.get(b.index()).map_or(&[][..], |block| &block.insts);
        let mut next = 0;
        for (inst, origin) in after.block(b).insts.iter().zip(&allocation.origin[b.index()]) {
            let Some(origin) = *origin else {
                self.added(inst);
                continue;
            };
            while next < origin {
                self.original(before, (b, next), &originals[next as usize], None);
                next += 1;
            }
            if !self.original(before, (b, origin), &originals[origin as usize], Some(inst)) {
                return false;
            }
            next = origin + 1;
        }
        for (i, inst) in originals.iter().enumerate().skip(next as usize) {
            self.original(before, (b, i as u32), inst, None);
        }
        true
    }
}

/// Whether all operands on a random path of the given number of blocks read the right values.
fn path_agrees(
    before: &Function,
    after: &Function,
    allocation: &Allocation,
    random: &mut fastrand::Rng,
    blocks: usize,
) -> bool {
    let mut run = Run::default();
    let mut b = before.layout[0];
    for _ in 0..blocks {
        if !run.block(before, after, allocation, b) {
            return false;
        }
        let (was, is) = (&before.block(b).term, &after.block(b).term);
        if let (Some(was), Some(is)) = (was.operand(), is.operand())
            && !run.agrees(before, was, is)
        {
            return false;
        }
        let successors = is.successors();
        if successors.is_empty() {
            return true;
        }
        let mut to = successors[random.usize(..successors.len())];
        while let (true, Term::Jump(next)) = (to.index() >= before.blocks.len(), &after.block(to).term) {
            run.block(before, after, allocation, to);
            to = *next;
        }
        let phis = before.block(to).phis.iter();
        let made: Vec<_> = phis
            .map(|phi| {
                let (_, src) = phi.args.iter().find(|(from, _)| *from == b).expect("an argument");
                (phi.dst, run.value(before, src, before.value(phi.dst).width))
            })
            .collect();
        for (v, lanes) in made {
            run.lanes.extend(lanes.into_iter().enumerate().map(|(i, bits)| ((v, i as u8), bits)));
        }
        b = to;
    }
    true
}

/// Damages an instruction; returns false if that is impossible.
fn mutate(func: &mut Function, allocation: &mut Allocation, random: &mut fastrand::Rng) -> bool {
    let b = func.layout[random.usize(..func.layout.len())];
    if func.block(b).insts.is_empty() {
        return false;
    }
    let i = random.usize(..func.block(b).insts.len());
    let is_added = allocation.origin[b.index()][i].is_none();
    let insts = &mut func.block_mut(b).insts;
    let other = |reg: Reg, random: &mut fastrand::Rng| {
        let index = match reg.file {
            File::P | File::UP => random.u8(..7),
            _ => reg.index.saturating_add_signed([-4, -2, -1, 1, 2, 4][random.usize(..6)]),
        };
        Reg { index, ..reg }
    };
    match random.usize(..6) {
        0 if is_added => {
            insts.remove(i);
            allocation.origin[b.index()].remove(i);
        }
        1 if is_added && i + 1 < insts.len() && allocation.origin[b.index()][i + 1].is_none() => {
            insts.swap(i, i + 1);
        }
        2 => match &mut insts[i].op {
            Op::Spill { offset, .. } | Op::Fill { offset, .. } if is_added => {
                *offset += [-8, -4, 4, 8][random.usize(..4)];
            }
            _ => return false,
        },
        3 => {
            let Some(Dst::Reg(r)) = insts[i].dsts.first_mut() else { return false };
            *r = other(*r, random);
        }
        _ => {
            let mut registers: Vec<&mut Src> = insts[i].uses_mut().collect();
            let place = random.usize(..registers.len());
            let SrcKind::Reg(r) = &mut registers[place].kind else { return false };
            if *r == STACK_POINTER {
                return false;
            }
            *r = other(*r, random);
        }
    }
    true
}

/// Damages the allocation of a random function repeatedly. Returns the number of mutants that an execution showed to be
/// wrong.
fn break_at_random(seed: u64, shape: Shape, limit: u32, mutants: usize) -> usize {
    let before = function(seed, shape);
    let mut after = before.clone();
    let target = Target::of(ptx_isa::Sm::new(90)).expect("a target");
    let allocation = allocate(&mut after, target, limit).expect("allocates");
    let mut random = fastrand::Rng::with_seed(seed);
    let blocks = before.layout.len().clamp(50, 100);
    assert!(path_agrees(&before, &after, &allocation, &mut random, blocks), "seed {seed}: the run is wrong");
    let mut wrong = 0;
    for mutant in 0..mutants {
        let (mut broken, mut its_allocation) = (after.clone(), allocation.clone());
        if !mutate(&mut broken, &mut its_allocation, &mut random) {
            continue;
        }
        if check(&before, &broken, target, &its_allocation, 255, &|| ()).is_err() {
            wrong += 1;
            continue;
        }
        for _ in 0..2 {
            assert!(
                path_agrees(&before, &broken, &its_allocation, &mut random, blocks),
                "seed {seed}, limit {limit}, mutant {mutant} is wrong and passes"
            );
        }
    }
    wrong
}

#[test]
fn mutants_that_compute_something_else_are_refused() {
    let mut refused = 0;
    for seed in 0..40 {
        let shape = Shape {
            straight: 4 + seed as usize % 20,
            depth: 1 + seed as usize % 3,
            guarded: 15,
            far: seed as usize % 40,
        };
        refused += break_at_random(seed, shape, [255, 24, 19][seed as usize % 3], 25);
    }
    assert!(refused > 300, "only {refused} are refused");
}

#[test]
fn mutants_of_long_functions_are_refused() {
    let shape = Shape { straight: 150, depth: 6, guarded: 10, far: 20 };
    let size = |seed: u64| function(seed, shape).blocks.iter().map(|b| b.insts.len()).sum::<usize>();
    let long = (0..).filter(|seed| (3_500..6_000).contains(&size(*seed)));
    for (seed, limit) in long.zip([255, 24]) {
        assert!(break_at_random(seed, shape, limit, 12) > 3, "seed {seed}");
    }
}

/// `count` consecutive blocks that store values of the first one, and their allocation.
fn chain(count: u32) -> (Function, Function, Allocation) {
    let mut before = function(0, Shape { straight: 0, depth: 0, guarded: 0, far: 0 });
    (before.blocks, before.layout, before.values) = (Vec::new(), Vec::new(), Vec::new());
    let made = 100;
    let values: Vec<Value> = (0..made).map(|_| before.new_value(File::R, 1)).collect();
    for i in 0..count {
        let b = before.new_block();
        before.layout.push(b);
        let block = before.block_mut(b);
        let access = Access::weak(MemSize::B32, 0);
        let srcs = [Src::ZERO, Src::ZERO, values[if i < made { i as usize } else { 0 }].into()];
        if i == 0 {
            let define = |v: &Value| Inst::new(Op::S2r { sr: Sr(0x21) }, &[Dst::Value(*v)], &[], SrcId(0));
            block.insts.extend(values.iter().map(define));
        }
        block.insts.push(Inst::new(Op::Stg { access }, &[], &srcs, SrcId(0)));
        block.term = if i + 1 < count { Term::Jump(BlockId(i + 1)) } else { Term::Exit };
    }
    let mut after = before.clone();
    let register = |v: Value| Reg { file: File::R, index: v.0 as u8 + 2 };
    let mut origin = Vec::new();
    for block in &mut after.blocks {
        for inst in &mut block.insts {
            for dst in &mut inst.dsts {
                if let Dst::Value(v) = *dst {
                    *dst = Dst::Reg(register(v));
                }
            }
            for src in inst.uses_mut() {
                if let SrcKind::Value(v) = src.kind {
                    src.kind = SrcKind::Reg(register(v));
                }
            }
        }
        origin.push((0..block.insts.len() as u32).map(Some).collect());
    }
    (before, after, Allocation { origin, ..Allocation::default() })
}

#[test]
fn no_function_is_too_long_to_be_checked() {
    let (before, mut after, allocation) = chain(90_000);
    let target = Target::of(ptx_isa::Sm::new(90)).expect("a target");
    let steps = std::cell::Cell::new(0);
    let counted = || steps.set(steps.get() + 1);
    assert_eq!(check(&before, &after, target, &allocation, 255, &counted), Ok(()));
    assert!(steps.get() > 20, "only {} checkpoints", steps.get());
    let last = after.blocks.last_mut().expect("a block");
    last.insts[0].srcs[2].kind = SrcKind::Reg(Reg { file: File::R, index: 3 });
    assert!(check(&before, &after, target, &allocation, 255, &|| ()).is_err());
}
