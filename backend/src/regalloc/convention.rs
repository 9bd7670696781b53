//! Constraints of the calling convention on an allocation: registers that calls overwrite, registers that values must
//! be in, and registers that a function saves for its caller.

use crate::CodegenError;
use crate::abi::{self, Preserved};
use crate::input::SrcId;
use crate::ori::cfg::returning_blocks;
use crate::ori::ir::{Block, Dst, File, Function, Inst, Reg, Src, SrcKind, Term, Value};
use crate::ori::op::{MemSize, Op};
use crate::regalloc::STACK_POINTER;
use crate::regalloc::counts::{self, Counts};
use crate::regalloc::draft::Draft;
use crate::regalloc::live::{Interval, Liveness, Ranges};
use crate::regalloc::occupancy::Registers;
use crate::runtime;
use crate::target::{HIDDEN_REGISTERS, Target};
use std::sync::Arc;

/// Replaces operations that copy into and out of registers of the convention by ordinary copies; until now they had to
/// keep their order.
pub(super) fn lower_fixes(func: &mut Function) {
    for inst in func.blocks.iter_mut().flat_map(|block| &mut block.insts) {
        if inst.op == Op::Fix {
            inst.op = Op::Copy;
        }
    }
}

/// Where registers are not free, by file and register.
#[derive(Debug, Default)]
pub(crate) struct Blocked {
    /// Registers that calls overwrite, that other threads of the warp may overwrite meanwhile, or that a thread does
    /// not have.
    pub(crate) lost: Vec<Lost>,
    /// The same for general registers by index, including the ranges in which values of the convention are in them.
    pub(crate) general: Vec<Ranges>,
}

/// Registers of a file and where they are not free.
#[derive(Debug)]
pub(crate) struct Lost {
    pub(crate) file: File,
    pub(crate) registers: Registers,
    pub(crate) ranges: Ranges,
}

/// The registers that a call overwrites besides its results.
pub(crate) struct Overwritten {
    /// The first register of the return address, which is written before the call reads its operands.
    pub(crate) return_address: u8,
    by: By,
}

/// What determines the registers that a call overwrites.
enum By {
    Routine(Arc<runtime::Compiled>),
    Known(abi::Known),
    /// The convention: all registers except those that the function preserves.
    Convention(Preserved),
}

impl Overwritten {
    /// `func` is the caller.
    pub(crate) fn by(call: &Op, func: &Function, target: &Target) -> Result<Overwritten, CodegenError> {
        Ok(match (*call, func.known(call)) {
            (Op::CallRoutine { routine }, _) => Overwritten {
                return_address: runtime::return_address(routine),
                by: By::Routine(runtime::compiled(target, routine)?),
            },
            (_, Some(known)) => Overwritten { return_address: known.return_address, by: By::Known(*known) },
            (op, None) => {
                let preserved = op.preserved();
                Overwritten { return_address: preserved.return_address(), by: By::Convention(preserved) }
            }
        })
    }

    pub(crate) fn is_return_address(&self, reg: Reg) -> bool {
        abi::is_pair(self.return_address, reg)
    }

    pub(crate) fn has(&self, reg: Reg) -> bool {
        self.is_return_address(reg)
            || match &self.by {
                By::Routine(routine) => routine.overwrites.binary_search(&reg).is_ok(),
                By::Known(known) => known.has(reg),
                By::Convention(preserved) => !preserved.has(reg),
            }
    }

    /// The number of general registers that the call overwrites. Zero for a call by the convention, whose callers keep
    /// values in registers that it preserves.
    pub(crate) fn general(&self) -> u32 {
        if matches!(self.by, By::Convention(_)) {
            return 0;
        }
        (0..count(File::R)).filter(|&index| self.has(Reg { file: File::R, index })).count() as u32
    }

    /// The number of general registers up to the last one that the called code uses, as far as it is known. The set of
    /// registers that a known function overwrites is not enough: the function may call a driver function, which may
    /// overwrite any register that the convention allows.
    fn most(&self) -> u16 {
        match &self.by {
            By::Routine(_) => {
                let all = (0..=254u8).rev().find(|&index| self.has(Reg { file: File::R, index }));
                all.map_or(0, |last| u16::from(last) + 1)
            }
            By::Known(known) => {
                let used = known.registers.saturating_sub(HIDDEN_REGISTERS) as u16;
                used.max(u16::from(self.return_address) + 2)
            }
            By::Convention(_) => u16::from(self.return_address) + 2,
        }
    }
}

/// The number of registers of a file that code may name.
fn count(file: File) -> u8 {
    match file {
        File::R => 254,
        File::P | File::UP => 7,
        File::UR => 254,
        File::B => 16,
    }
}

/// Uniform registers that lose their contents where threads of a warp wait, because another part of the warp may
/// meanwhile be in a called function, or in another function than this one.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Lent {
    /// No called function overwrites any.
    None,
    /// The register of routines of the runtime library.
    ToRoutines,
    /// The registers that functions may overwrite.
    ToCallees,
    All,
}

impl Lent {
    pub(crate) fn of(func: &Function) -> Lent {
        match func.entry {
            false if func.routine.is_some() => Lent::None,
            false => Lent::All,
            true if func.has_calls() => Lent::ToCallees,
            true if func.calls_waiting_routines() => Lent::ToRoutines,
            true => Lent::None,
        }
    }

    pub(crate) fn has(self, reg: Reg) -> bool {
        reg.file.is_uniform()
            && match self {
                Lent::None => false,
                Lent::ToRoutines => reg == abi::ROUTINES_UNIFORM,
                Lent::ToCallees => !abi::is_preserved(reg),
                Lent::All => true,
            }
    }
}

impl Blocked {
    pub(crate) fn new(
        func: &Function,
        live: &Liveness,
        counts: Option<&Counts>,
        target: &Target,
    ) -> Result<Blocked, CodegenError> {
        let mut lost = Blocked::by_convention(func, live, target)?;
        for (index, ranges) in counts.into_iter().flat_map(|counts| counts.lacking(func, live)) {
            let reg = Reg { file: File::R, index };
            match lost.iter_mut().find(|(lost, _)| *lost == reg) {
                Some((_, lost)) => *lost = lost.united(&ranges),
                None => lost.push((reg, ranges)),
            }
        }
        if lost.is_empty() && func.values.iter().all(|data| data.pin.is_none()) {
            return Ok(Blocked::default());
        }
        let mut general = vec![Ranges::default(); 256];
        for (reg, ranges) in lost.iter().filter(|(reg, _)| reg.file == File::R) {
            general[usize::from(reg.index)] = ranges.clone();
        }
        for (v, data) in func.values.iter().enumerate() {
            if let Some(register) = data.pin {
                general[usize::from(register)].absorb(live.ranges(Value(v as u32), 0));
            }
        }
        // A call overwrites many registers at once.
        let alike = lost.chunk_by(|a, b| a.0.file == b.0.file && a.1 == b.1).map(|alike| {
            let mut registers = Registers::default();
            alike.iter().for_each(|(reg, _)| registers.insert(usize::from(reg.index)));
            let (reg, ranges) = &alike[0];
            Lost { file: reg.file, registers, ranges: ranges.clone() }
        });
        Ok(Blocked { lost: alike.collect(), general })
    }

    fn by_convention(
        func: &Function,
        live: &Liveness,
        target: &Target,
    ) -> Result<Vec<(Reg, Ranges)>, CodegenError> {
        let lent = Lent::of(func);
        // For each call: where it reads and writes, the registers that it overwrites, and the registers of its results.
        let mut calls: Vec<(Interval, Overwritten, u128)> = Vec::new();
        for &b in &func.layout {
            let span = live.spans[b.index()];
            for (i, inst) in func.block(b).insts.iter().enumerate().filter(|(_, inst)| inst.op.is_call()) {
                let results =
                    inst.defs().filter_map(|v| func.value(v).pin).fold(0, |all, pin| all | 1 << pin);
                let during = Interval { start: span.read(i), end: span.write(i) + 1 };
                calls.push((during, Overwritten::by(&inst.op, func, target)?, results));
            }
        }
        let is_private = func.facts.private;
        if matches!(lent, Lent::None) && calls.is_empty() && func.routine.is_none() && !is_private {
            return Ok(Vec::new());
        }
        let mut all_lost = Vec::new();
        let everywhere = Interval { start: 0, end: live.points };
        let own_address = func.routine.map(runtime::return_address);
        for file in [File::R, File::P, File::B] {
            for index in 0..count(file) {
                let reg = Reg { file, index };
                let gives = |results: u128| file == File::R && index < 128 && results >> index & 1 == 1;
                let lost = calls.iter().filter(|(_, by, results)| by.has(reg) && !gives(*results));
                // The return address is written before the call reads its operands.
                let interval =
                    |(during, by, _): &(Interval, Overwritten, u128)| match by.is_return_address(reg) {
                        true => *during,
                        false => Interval { start: during.end - 1, end: during.end },
                    };
                let mut ranges = Ranges(lost.map(interval).collect());
                let is_own = own_address.is_some_and(|first| (first..first + 2).contains(&index));
                if file == File::R && (is_own || is_private && index == abi::FRAME) {
                    ranges = Ranges([everywhere].into_iter().collect());
                }
                if !ranges.is_empty() {
                    all_lost.push((reg, ranges));
                }
            }
        }
        let switches = live.switches();
        for file in [File::UR, File::UP] {
            for index in 0..count(file) {
                let reg = Reg { file, index };
                if func.routine.is_some() && reg != abi::ROUTINES_UNIFORM {
                    all_lost.push((reg, Ranges([everywhere].into_iter().collect())));
                } else if lent.has(reg) {
                    all_lost.push((reg, switches.clone()));
                }
            }
        }
        Ok(all_lost)
    }
}

/// The number of general registers up to the last one that calls use, as far as it is known.
pub(super) fn most_overwritten(func: &Function, target: &Target) -> Result<u16, CodegenError> {
    let mut most = 0;
    for inst in func.layout.iter().flat_map(|&b| &func.block(b).insts).filter(|inst| inst.op.is_call()) {
        most = most.max(Overwritten::by(&inst.op, func, target)?.most());
    }
    Ok(most)
}

/// Whether no call overwrites the frame register, which a private function preserves without saving it.
pub(crate) fn keeps_frame(func: &Function, target: &Target) -> Result<bool, CodegenError> {
    let frame = Reg { file: File::R, index: abi::FRAME };
    for inst in func.layout.iter().flat_map(|&b| &func.block(b).insts).filter(|inst| inst.op.is_call()) {
        if Overwritten::by(&inst.op, func, target)?.has(frame) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Chooses a register pair for the return address of a private function. Neither the function nor a call on the way to
/// a return writes the pair, and callers do not pass arguments in it, not even unused ones.
pub(super) fn place_return_address(func: &mut Function, target: &Target) -> Result<Option<u8>, CodegenError> {
    if !func.facts.private {
        return Ok(None);
    }
    let mut written = written(func, target)?;
    written[..usize::from(func.facts.arguments_end)].fill(true);
    let returning = returning_blocks(func);
    let blocks = func.layout.iter().filter(|block| returning[block.index()]);
    for inst in blocks.flat_map(|&b| &func.block(b).insts).filter(|inst| inst.op.is_call()) {
        let by = Overwritten::by(&inst.op, func, target)?;
        for index in 0..=254 {
            written[usize::from(index)] |= by.has(Reg { file: File::R, index });
        }
    }
    let is_free = |first: &u8| !written[usize::from(*first)] && !written[usize::from(*first) + 1];
    let Some(first) = (abi::FIRST..250).step_by(2).find(is_free) else {
        let what = "a function without a register for the address that it returns to".to_owned();
        return Err(CodegenError::Limit { at: SrcId::default(), what });
    };
    func.facts.return_address = Some(first);
    Ok(Some(first))
}

/// The preserved registers before `end` that allocated code writes.
fn to_save(func: &Function, target: &Target, end: u8) -> Result<Vec<u8>, CodegenError> {
    let written = written(func, target)?;
    let kept = |index: &u8| {
        let reg = Reg { file: File::R, index: *index };
        reg != STACK_POINTER && must_keep(func, reg) && written[usize::from(*index)]
    };
    Ok((0..end).filter(kept).collect())
}

/// Whether a function must preserve the register: it is not private, or the register holds its return address.
pub(crate) fn must_keep(func: &Function, reg: Reg) -> bool {
    let preserved = func.facts.preserved;
    let address = preserved.return_address();
    preserved.has(reg) || reg.file == File::R && (address..address + 2).contains(&reg.index)
}

/// The general registers that allocated code writes, or that its calls overwrite although its callers require them
/// to be preserved.
fn written(func: &Function, target: &Target) -> Result<[bool; 256], CodegenError> {
    let mut written = [false; 256];
    for inst in func.layout.iter().flat_map(|&b| &func.block(b).insts) {
        for dst in &inst.dsts {
            if let Dst::Reg(Reg { file: File::R, index }) = *dst {
                for i in 0..width(inst) {
                    written[usize::from(index.saturating_add(i))] = true;
                }
            }
        }
        if inst.op.is_call() {
            let by = Overwritten::by(&inst.op, func, target)?;
            written[usize::from(by.return_address)..][..2].fill(true);
            // The callers of this function and its callees preserve the same registers.
            if let By::Convention(preserved) = by.by
                && preserved == func.facts.preserved
            {
                continue;
            }
            for index in 0..=254 {
                written[usize::from(index)] |= by.has(Reg { file: File::R, index });
            }
        }
    }
    Ok(written)
}

/// The number of general registers of an operation's result.
fn width(inst: &Inst) -> u8 {
    use crate::ori::signature::{Width, signature};
    let signature = signature(&inst.op);
    match signature.dsts.first() {
        Some(slot) if slot.file == File::R => match slot.width {
            Width::Exactly(width) => width,
            Width::OneOrTwo => 2,
            Width::Any => 1,
        },
        _ => 1,
    }
}

/// Saves in the frame, at the start, the registers that must be preserved for the caller, and restores them before each
/// return.
/// A thread has `most` registers at most, as ptxas counts them. Returns the end of the saved registers.
pub(super) fn save(
    draft: &mut Draft<'_>,
    counts: &mut [Vec<u16>],
    target: &Target,
    most: u32,
) -> Result<u16, CodegenError> {
    let func = &*draft.func;
    if func.entry || func.routine.is_some() {
        return Ok(0);
    }
    let registers = if func.facts.private { Vec::new() } else { to_save(func, target, counts::end(most))? };
    let barriers = barriers_to_save(func, target)?;
    let end = registers.last().map_or(0, |last| u16::from(*last) + 1);
    if registers.is_empty() && barriers.is_empty() {
        return Ok(end);
    }
    let frame = &mut draft.func.frame;
    let start = (frame.local_bytes + frame.spill_bytes).next_multiple_of(4);
    frame.spill_bytes = start + 4 * (registers.len() + barriers.len()) as u32 - frame.local_bytes;
    frame.uses_stack = true;
    let saved = Saved { start, registers, barriers, twice: target.clears_barriers_twice };
    let entry = draft.func.layout[0];
    insert(draft, counts, entry.index(), |_| 0, &saved.stores());
    let behind = |block: &Block| {
        block.insts.iter().rposition(|inst| inst.op == Op::Params).map_or(saved.registers.len(), |at| at + 1)
    };
    insert(draft, counts, entry.index(), behind, &saved.takes());
    for b in draft.func.layout.clone() {
        if draft.func.block(b).term == Term::Ret {
            // At that point the results are in their registers.
            let before = |block: &Block| block.insts.len();
            insert(draft, counts, b.index(), before, &saved.back());
        }
    }
    Ok(end)
}

/// The caller's barriers that allocated code or its callees set.
fn barriers_to_save(func: &Function, target: &Target) -> Result<Vec<Reg>, CodegenError> {
    let mut set = [false; 16];
    for inst in func.layout.iter().flat_map(|&b| &func.block(b).insts) {
        for dst in &inst.dsts {
            if let Dst::Reg(Reg { file: File::B, index }) = *dst {
                set[usize::from(index)] = true;
            }
        }
        if inst.op.is_call() {
            let by = Overwritten::by(&inst.op, func, target)?;
            for (index, set) in (0..).zip(&mut set) {
                *set |= by.has(Reg { file: File::B, index });
            }
        }
    }
    let barriers = (0..).zip(set).filter(|(_, set)| *set).map(|(index, _)| Reg { file: File::B, index });
    Ok(barriers.filter(|reg| func.facts.preserved.has(*reg)).collect())
}

/// The caller's registers that a function saves in its frame: general registers, and barriers above them.
struct Saved {
    /// The offset above the stack pointer.
    start: u32,
    registers: Vec<u8>,
    barriers: Vec<Reg>,
    /// [`Target::clears_barriers_twice`].
    twice: bool,
}

impl Saved {
    fn place(&self, i: usize) -> i32 {
        (self.start + 4 * i as u32) as i32
    }

    fn spill(&self, i: usize, reg: Reg) -> Inst {
        let op = Op::Spill { size: MemSize::B32, offset: self.place(i) };
        Inst::new(op, &[], &[Src::new(SrcKind::Reg(STACK_POINTER)), register(reg)], SrcId::default())
    }

    fn fill(&self, i: usize, reg: Reg) -> Inst {
        let op = Op::Fill { size: MemSize::B32, offset: self.place(i) };
        Inst::new(op, &[Dst::Reg(reg)], &[Src::new(SrcKind::Reg(STACK_POINTER))], SrcId::default())
    }

    fn general(&self) -> impl Iterator<Item = (usize, Reg)> + '_ {
        self.registers.iter().map(|&index| Reg { file: File::R, index }).enumerate()
    }

    fn stores(&self) -> Vec<Inst> {
        self.general().map(|(i, reg)| self.spill(i, reg)).collect()
    }

    fn takes(&self) -> Vec<Inst> {
        let mut takes = Vec::new();
        for (i, &barrier) in (self.registers.len()..).zip(&self.barriers) {
            let take = |dst| {
                Inst::new(Op::BarrierTake { clear: true }, &[dst], &[register(barrier)], SrcId::default())
            };
            takes.extend([take(Dst::Reg(PASSING)), self.spill(i, PASSING)]);
            if self.twice {
                takes.push(take(Dst::Sink));
            }
        }
        takes
    }

    fn back(&self) -> Vec<Inst> {
        let mut back = Vec::new();
        for (i, &barrier) in (self.registers.len()..).zip(&self.barriers) {
            let give =
                Inst::new(Op::BarrierGive, &[Dst::Reg(barrier)], &[register(PASSING)], SrcId::default());
            back.extend([self.fill(i, PASSING), give]);
        }
        back.extend(self.general().map(|(i, reg)| self.fill(i, reg)));
        back
    }
}

fn register(reg: Reg) -> Src {
    Src::new(SrcKind::Reg(reg))
}

/// The register through which barriers are moved to the frame and back: it holds no parameter or result, and callers do
/// not rely on it.
const PASSING: Reg = Reg { file: File::R, index: 0 };

fn insert(
    draft: &mut Draft<'_>,
    counts: &mut [Vec<u16>],
    b: usize,
    at: impl Fn(&Block) -> usize,
    insts: &[Inst],
) {
    let block = &mut draft.func.blocks[b];
    let at = at(block);
    block.insts.splice(at..at, insts.iter().cloned());
    draft.origin[b].splice(at..at, std::iter::repeat_n(None, insts.len()));
    let live = counts[b].get(at).copied().unwrap_or(0);
    counts[b].splice(at..at, std::iter::repeat_n(live, insts.len()));
}
