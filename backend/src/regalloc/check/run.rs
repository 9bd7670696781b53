//! Executes one block of the allocated code symbolically: the contents that its operands find, and those that it
//! leaves.

use super::Checker;
use super::content::{Content, Held, Steps, Storage, aligned, dst_of, is_reg, offset, spill_words, words};
use super::trace::Trace;
use crate::abi;
use crate::ori::ir::{BlockId, Dst, File, Inst, Reg, Src, SrcKind, SrcMods, Term, Value};
use crate::ori::op::{ICmp, Op};
use crate::ori::signature::{facts, special};
use crate::regalloc::STACK_POINTER;
use crate::regalloc::convention::{Overwritten, must_keep};
use crate::regalloc::counts;
use crate::runtime;
use smallvec::SmallVec;
use std::cell::Cell;

/// The number of instructions between checkpoints.
const STRIDE: usize = 1 << 12;

/// The contents of the places that each block writes, at the end of the block.
#[derive(Default)]
pub(super) struct Effects {
    /// For each block, the range of its places in `places`.
    of: Vec<(u32, u32)>,
    /// Ascending in each block.
    places: Vec<(Storage, Held)>,
}

impl Effects {
    pub(super) fn new(blocks: usize) -> Effects {
        Effects { of: vec![(0, 0); blocks], places: Vec::new() }
    }

    /// The content of a place at the end of a block that writes it.
    pub(super) fn find(&self, b: BlockId, place: Storage) -> Option<Held> {
        let (start, end) = self.of[b.index()];
        let places = &self.places[start as usize..end as usize];
        places.binary_search_by_key(&place, |entry| entry.0).ok().map(|i| places[i].1)
    }
}

/// The contents of places at a point of a block.
struct State {
    /// For each place; `None` for its content at the block's start.
    held: Vec<Option<Held>>,
    written: Vec<Storage>,
    /// The byte offset of the spilled words, whose places come after those of the registers.
    words: u32,
    /// The last general register that the thread has at this point, plus one.
    end: u8,
    /// A register beyond `end` that was read or written. Its content does not matter, because some warps may not have
    /// it.
    outside: Cell<Option<Reg>>,
    /// The instruction being executed.
    at: Reader,
    /// The contents that are written to uniform registers anywhere.
    uniform: Vec<(Reg, Content, Reader)>,
}

/// The number of places of one register file.
const FILE: usize = 256;

impl State {
    fn index(&self, place: Storage) -> usize {
        match place {
            Storage::Reg(r) => r.file as usize * FILE + usize::from(r.index),
            Storage::Word(offset) => File::B as usize * FILE + FILE + (offset - self.words) as usize / 4,
        }
    }

    fn note(&self, place: Storage) {
        if let Storage::Reg(reg) = place
            && reg.file == File::R
            && reg.index >= self.end
        {
            self.outside.set(Some(reg));
        }
    }

    fn get(&self, place: Storage) -> Held {
        self.note(place);
        self.held[self.index(place)].unwrap_or(Held::Start(place, Steps::default()))
    }

    fn write(&mut self, place: Storage, held: Held) {
        if held != Held::Nothing {
            self.note(place);
        }
        if let (Storage::Reg(reg), Held::Known(content)) = (place, held)
            && reg.file.is_uniform()
        {
            self.uniform.push((reg, content, self.at));
        }
        let index = self.index(place);
        if self.held[index].replace(held).is_none() {
            self.written.push(place);
        }
    }

    /// Appends the places that the block wrote to the effects.
    fn leave(&mut self, b: BlockId, effects: &mut Effects) {
        self.written.sort_unstable();
        let start = effects.places.len() as u32;
        for place in std::mem::take(&mut self.written) {
            let index = self.index(place);
            if let Some(held) = self.held[index].take() {
                effects.places.push((place, held));
            }
        }
        effects.of[b.index()] = (start, effects.places.len() as u32);
    }
}

fn reg_of(dst: Dst) -> Option<Reg> {
    match dst {
        Dst::Reg(reg) => Some(reg),
        Dst::Value(_) | Dst::Sink => None,
    }
}

/// The position of a reader, for messages: a block of the output, and the index of an instruction or, after the last
/// one, the terminator.
pub(super) type Reader = (BlockId, u32);

impl Checker<'_> {
    /// Executes every block, and creates demands for operands that the block does not compute itself.
    pub(super) fn run_blocks(&self, trace: &mut Trace<'_>, checkpoint: &dyn Fn()) -> Result<(), String> {
        let frame = &self.after.frame;
        let mut state = State {
            held: Vec::new(),
            written: Vec::new(),
            words: frame.local_bytes,
            end: u8::MAX,
            outside: Cell::new(None),
            at: (BlockId(0), 0),
            uniform: Vec::new(),
        };
        let end = frame.local_bytes.checked_add(frame.spill_bytes).ok_or("the frame is too large")?;
        state.held.resize(state.index(Storage::Word(end)) + 1, None);
        let mut steps = 0;
        for &b in &self.after.layout {
            let count = self.after.block(b).insts.len();
            let mut registers = self.counts.as_ref().map(|counts| counts.at_start(b));
            let mut i = 0;
            while i < count {
                steps += 1;
                if steps % STRIDE == 0 {
                    checkpoint();
                }
                let reader = (b, i as u32);
                state.at = reader;
                state.end = registers.map_or(u8::MAX, counts::end);
                registers = registers.map(|count| counts::after(count, &self.after.block(b).insts[i].op));
                i += self.run_one(b, i, &mut state, trace).map_err(|what| self.at(reader, &what))?;
                if let Some(reg) = state.outside.take() {
                    return Err(self.at(reader, &format!("{reg:?} is not among the thread's registers")));
                }
            }
            let reader = (b, count as u32);
            if self.is_run(b)
                && let (Some(was), Some(is)) =
                    (self.before.block(b).term.operand(), self.after.block(b).term.operand())
            {
                self.read(was, is, &state, trace, reader).map_err(|what| self.at(reader, &what))?;
            }
            if self.is_run(b) && self.after.block(b).term == Term::Ret {
                self.leave_function(b, &state, trace, reader).map_err(|what| self.at(reader, &what))?;
            }
            state.leave(b, &mut trace.effects);
        }
        trace.uniform = state.uniform;
        Ok(())
    }

    /// Whether control reaches the block. Operands of unreachable blocks may have any content.
    fn is_run(&self, b: BlockId) -> bool {
        b.index() < self.before.blocks.len() && self.cfg.is_reached(b)
    }

    /// A message, with its place.
    pub(super) fn at(&self, (b, i): Reader, what: &str) -> String {
        match self.after.block(b).insts.get(i as usize) {
            Some(inst) if self.origin[b.index()][i as usize].is_some() => {
                format!("{b:?}, instruction {i}, {:?}: {what}", inst.op)
            }
            Some(inst) => format!("{b:?}, instruction {i}, {inst:?}: {what}"),
            None => format!("{b:?}, terminator: {what}"),
        }
    }

    /// Executes an instruction, or several that correspond to one; returns their number.
    fn run_one(
        &self,
        b: BlockId,
        i: usize,
        state: &mut State,
        trace: &mut Trace<'_>,
    ) -> Result<usize, String> {
        let code = &self.after.block(b).insts[i..];
        let Some(origin) = self.origin[b.index()][i] else { return self.run_added(code, state) };
        let original = &self.before.block(b).insts[origin as usize];
        if self.is_run(b) {
            self.read_all(original, &code[0], state, trace, (b, i as u32))?;
        }
        if original.op == Op::Params {
            self.is_start(b, i)?;
        }
        self.define(original, &code[0], state)?;
        self.lose(&code[0], state)?;
        Ok(1)
    }

    /// Requires that a register holds a content, or held one at the start of the block.
    fn holds(
        &self,
        reg: Reg,
        content: Content,
        state: &State,
        trace: &mut Trace<'_>,
        reader: Reader,
    ) -> Result<(), String> {
        let held = state.get(Storage::Reg(reg));
        match held {
            _ if content == Content::Undef => Ok(()),
            Held::Known(known) if known == content => Ok(()),
            Held::Start(place, steps) if let Some(content) = steps.before(content) => {
                trace.demand(place, content, reader.0, reader);
                Ok(())
            }
            _ => Err(format!("{reg:?} should hold {content:?} but holds {held:?}")),
        }
    }

    /// Requires that an operand of an original instruction finds its contents.
    fn read(
        &self,
        was: &Src,
        is: &Src,
        state: &State,
        trace: &mut Trace<'_>,
        reader: Reader,
    ) -> Result<(), String> {
        if was.mods != is.mods {
            return Err(format!("modifiers of {was:?} became those of {is:?}"));
        }
        let (value, first, width) = match was.kind {
            SrcKind::Value(v) => (v, 0, self.before.value(v).width),
            SrcKind::Part(v, part) => (v, part, 1),
            SrcKind::Reg(r) if was == is => return self.holds(r, Content::Fixed(r), state, trace, reader),
            SrcKind::Undef => return Ok(()),
            _ if was == is => return Ok(()),
            _ => return Err(format!("{was:?} became {is:?}")),
        };
        let SrcKind::Reg(reg) = is.kind else {
            return Err(format!("{was:?} became {is:?}"));
        };
        let file = self.before.value(value).file;
        self.is_in_place(value, reg)?;
        aligned(reg, file, if matches!(was.kind, SrcKind::Part(..)) { 1 } else { width })?;
        for i in 0..width {
            self.holds(offset(reg, i)?, self.expected(value, first + i), state, trace, reader)?;
        }
        Ok(())
    }

    /// Checks all operands of an original instruction, and the old values that its results must overwrite.
    fn read_all(
        &self,
        was: &Inst,
        is: &Inst,
        state: &State,
        trace: &mut Trace<'_>,
        reader: Reader,
    ) -> Result<(), String> {
        let by = was.op.is_call().then(|| self.overwritten(&was.op)).transpose()?;
        self.read(&was.guard, &is.guard, state, trace, reader)?;
        for (was, is) in was.srcs.iter().zip(&is.srcs) {
            self.read(was, is, state, trace, reader)?;
            // The call itself writes the return address there.
            if let (Some(by), SrcKind::Reg(reg)) = (&by, is.kind) {
                let width = was.value().map_or(1, |v| self.before.value(v).width);
                if (0..width).any(|i| offset(reg, i).is_ok_and(|reg| by.is_return_address(reg))) {
                    return Err(format!("{is:?} is overwritten by the call"));
                }
            }
        }
        for ((was_dst, is_dst), old) in was.dsts.iter().zip(&is.dsts).zip(&was.old) {
            let (Dst::Value(v), Dst::Reg(r)) = (was_dst, is_dst) else { continue };
            for lane in 0..self.before.value(*v).width {
                let content = self.source_content(old, lane).ok_or_else(|| format!("keeps {old:?}"))?;
                self.holds(offset(*r, lane)?, content, state, trace, reader)?;
            }
        }
        Ok(())
    }

    /// Writes the results of an original instruction, which must be the same.
    fn define(&self, was: &Inst, is: &Inst, state: &mut State) -> Result<(), String> {
        if was.op != is.op || was.dsts.len() != is.dsts.len() || was.srcs.len() != is.srcs.len() {
            return Err(format!("was {was:?}"));
        }
        let mut written: SmallVec<[Reg; 8]> = SmallVec::new();
        for (was, is) in was.dsts.iter().zip(&is.dsts) {
            let (reg, value) = match (was, is) {
                (Dst::Value(v), Dst::Reg(r)) if *r != STACK_POINTER => (*r, Some(*v)),
                (Dst::Reg(x), Dst::Reg(y)) if x == y => (*y, None),
                (Dst::Sink, Dst::Sink) => continue,
                _ => return Err(format!("{was:?} became {is:?}")),
            };
            let data = value.map(|v| self.before.value(v));
            if let (Some(value), Some(data)) = (value, data) {
                self.is_in_place(value, reg)?;
                aligned(reg, data.file, data.width)?;
                let kept = reg.file == File::UR && abi::is_preserved(reg);
                if kept && !self.after.entry && self.after.routine.is_none() {
                    return Err(format!("{reg:?} is the caller's"));
                }
            }
            for part in 0..data.map_or(1, |data| data.width) {
                let reg = offset(reg, part)?;
                if written.contains(&reg) {
                    return Err(format!("two results are in {reg:?}"));
                }
                written.push(reg);
                let content = value.map_or(Content::Fixed(reg), |v| self.expected(v, part));
                state.write(Storage::Reg(reg), Held::Known(content));
            }
        }
        Ok(())
    }

    /// Checks that a value is in the register that the calling convention requires.
    fn is_in_place(&self, value: Value, reg: Reg) -> Result<(), String> {
        match self.before.value(value).pin {
            Some(pin) if pin != reg.index => Err(format!("{value:?} is in {reg:?}, not in R{pin}")),
            _ => Ok(()),
        }
    }

    /// Checks that the caller's values are still in their registers.
    fn is_start(&self, b: BlockId, i: usize) -> Result<(), String> {
        let before = &self.after.block(b).insts[..i];
        if self.after.layout.first() == Some(&b) && before.iter().all(|inst| inst.dsts.is_empty()) {
            Ok(())
        } else {
            Err("is not at the start".to_owned())
        }
    }

    /// Forgets the registers that an instruction, or a function that it calls, overwrites, and those that other threads
    /// may overwrite while these threads wait.
    fn lose(&self, inst: &Inst, state: &mut State) -> Result<(), String> {
        let forget = |file: File, count: u8, state: &mut State, lost: &dyn Fn(Reg) -> bool| {
            for reg in (0..count).map(|index| Reg { file, index }).filter(|reg| lost(*reg)) {
                state.write(Storage::Reg(reg), Held::Nothing);
            }
        };
        if inst.op.is_call() {
            let given: Vec<Reg> = inst.dsts.iter().filter_map(|dst| reg_of(*dst)).collect();
            let by = self.overwritten(&inst.op)?;
            let lost = |reg: Reg| by.has(reg) && !given.contains(&reg);
            forget(File::R, 255, state, &lost);
            forget(File::P, 7, state, &lost);
            forget(File::B, 16, state, &lost);
        }
        if let Op::GiveRegisters { count } = inst.op {
            forget(File::R, 255, state, &|reg| reg.index >= counts::end(count));
        }
        if facts(&inst.op).waits {
            let lost = |reg: Reg| self.lent.has(reg);
            forget(File::UR, 255, state, &lost);
            forget(File::UP, 7, state, &lost);
        }
        Ok(())
    }

    pub(super) fn overwritten(&self, call: &Op) -> Result<Overwritten, String> {
        Overwritten::by(call, self.after, self.target).map_err(|error| error.to_string())
    }

    /// Checks that at a return the results are in their registers, and that preserved registers have their old values.
    fn leave_function(
        &self,
        b: BlockId,
        state: &State,
        trace: &mut Trace<'_>,
        reader: Reader,
    ) -> Result<(), String> {
        let code = &self.after.block(b).insts;
        let origins = self.origin[b.index()].iter().zip(code).rev();
        let results = origins.into_iter().find(|(_, inst)| inst.op == Op::Results);
        if let Some((Some(origin), results)) = results {
            self.read_all(&self.before.block(b).insts[*origin as usize], results, state, trace, reader)?;
        }
        for index in 0..self.end {
            let reg = Reg { file: File::R, index };
            let own = self.after.routine.map(runtime::return_address).or(self.after.facts.return_address);
            let is_frame = self.after.facts.private && matches!(index, 1 | abi::FRAME);
            let kept = is_frame
                || match own {
                    Some(first) => (first..first + 2).contains(&index),
                    None => must_keep(self.after, reg),
                };
            if kept {
                self.holds(reg, Content::Fixed(reg), state, trace, reader)?;
            }
        }
        for reg in (0..16)
            .map(|index| Reg { file: File::B, index })
            .filter(|reg| self.after.facts.preserved.has(*reg))
        {
            self.holds(reg, Content::Fixed(reg), state, trace, reader)?;
        }
        Ok(())
    }

    /// Executes an instruction that allocation added; returns the number of instructions that belong to it.
    fn run_added(&self, code: &[Inst], state: &mut State) -> Result<usize, String> {
        let inst = &code[0];
        if !inst.guard.is_true() {
            return Err("is guarded".to_owned());
        }
        // Only exchanges have two results.
        let is_exchange = matches!(inst.op, Op::Plop3 { lut: 0xcc, lut2: 0xf0 });
        if !is_exchange && inst.dsts.iter().skip(1).any(|dst| *dst != Dst::Sink) {
            return Err("has a second result".to_owned());
        }
        let dst = match inst.dsts.first() {
            Some(Dst::Reg(r)) if *r == STACK_POINTER => return Err("writes the stack pointer".to_owned()),
            Some(Dst::Reg(r)) => Some(offset(*r, 0)?),
            _ => None,
        };
        let plain = inst.srcs.iter().all(|s| s.mods == SrcMods::NONE);
        let is_of = |src: &Src, files: &[File]| match src.kind {
            SrcKind::Reg(r) => files.contains(&r.file),
            _ => true,
        };
        match (inst.op, dst, &inst.srcs[..]) {
            (Op::Mov, Some(dst @ Reg { file: File::R, .. }), [src])
                if plain && is_of(src, &[File::R, File::UR]) =>
            {
                state.write(Storage::Reg(dst), self.moved(src, state)?);
            }
            (
                Op::Umov | Op::R2ur | Op::Uldc { wide: false },
                Some(dst @ Reg { file: File::UR, .. }),
                [src],
            ) if plain && is_of(src, if inst.op == Op::R2ur { &[File::R] } else { &[File::UR] }) => {
                state.write(Storage::Reg(dst), self.moved(src, state)?);
            }
            (Op::Cs2r { sr: special::ZERO, wide: true }, Some(dst), []) => {
                aligned(dst, File::R, 2)?;
                for i in 0..2 {
                    state.write(Storage::Reg(offset(dst, i)?), Held::Known(Content::Bits(0)));
                }
            }
            (Op::Plop3 { lut: 0x80, .. }, Some(dst @ Reg { file: File::P, .. }), [src, b, c])
                if b.is_true() && c.is_true() && is_of(src, &[File::P]) =>
            {
                state.write(Storage::Reg(dst), self.moved(src, state)?);
            }
            (Op::Plop3 { lut: 0xcc, lut2: 0xf0 }, Some(a @ Reg { file: File::P, .. }), [x, y, _])
                if plain && inst.dsts.len() == 2 && is_reg(x, a) && inst.dsts[1] == dst_of(y) =>
            {
                self.exchange(a, y, File::P, state)?;
            }
            (Op::Sel, Some(dst @ Reg { file: File::R, .. }), [zero, one, p])
                if zero.kind == SrcKind::Zero
                    && *one == Src::imm(1)
                    && matches!(p.kind, SrcKind::Reg(Reg { file: File::P, .. })) =>
            {
                // Zero if `p` is true, so the integer is that of the complement.
                let integer = self.moved(&p.not(), state)?.integer();
                state.write(Storage::Reg(dst), integer);
            }
            (
                Op::Isetp { cmp: ICmp::Ne, ex: false, .. },
                Some(dst @ Reg { file: File::P, .. }),
                [src, zero, all],
            ) if plain && zero.kind == SrcKind::Zero && all.is_true() && is_of(src, &[File::R]) => {
                let predicate = self.moved(src, state)?.predicate();
                state.write(Storage::Reg(dst), predicate);
            }
            (Op::Lop3 { lut: 0x3c }, Some(a @ Reg { file: File::R, .. }), [x, y, _])
                if plain && is_reg(x, a) =>
            {
                let b = dst_of(y);
                let is_swap = |c: &&[Inst]| {
                    c.iter().all(|i| i.op == inst.op && i.srcs == inst.srcs && i.guard.is_true())
                        && c[1].dsts[..] == [b]
                        && c[2].dsts == c[0].dsts
                        && b != Dst::Reg(a)
                };
                if code.get(..3).filter(is_swap).is_none() {
                    return Err("is not an exchange".to_owned());
                }
                self.exchange(a, y, File::R, state)?;
                return Ok(3);
            }
            (Op::Spill { size, offset: at }, None, [base, data]) if plain && is_reg(base, STACK_POINTER) => {
                let SrcKind::Reg(first) = data.kind else {
                    return Err("does not store a register".to_owned());
                };
                aligned(first, File::R, words(size))?;
                for (i, word) in spill_words(&self.after.frame, size, at)?.enumerate() {
                    let held = state.get(Storage::Reg(offset(first, i as u8)?));
                    state.write(Storage::Word(word), held);
                }
            }
            (Op::Fill { size, offset: at }, Some(dst), [base]) if plain && is_reg(base, STACK_POINTER) => {
                aligned(dst, File::R, words(size))?;
                for (i, word) in spill_words(&self.after.frame, size, at)?.enumerate() {
                    let held = state.get(Storage::Word(word));
                    state.write(Storage::Reg(offset(dst, i as u8)?), held);
                }
            }
            (Op::BarrierTake { clear: true }, dst, [Src { kind: SrcKind::Reg(barrier), .. }])
                if plain && barrier.file == File::B && dst.is_none_or(|dst| dst.file == File::R) =>
            {
                if let Some(dst) = dst {
                    state.write(Storage::Reg(dst), state.get(Storage::Reg(*barrier)));
                }
                state.write(Storage::Reg(*barrier), Held::Nothing);
            }
            (Op::BarrierGive, Some(barrier @ Reg { file: File::B, .. }), [src])
                if plain && is_of(src, &[File::R]) =>
            {
                state.write(Storage::Reg(barrier), self.moved(src, state)?);
            }
            _ => return Err("is not a move, spill or reload".to_owned()),
        }
        Ok(1)
    }

    /// The content that a move reads.
    fn moved(&self, src: &Src, state: &State) -> Result<Held, String> {
        match src.kind {
            SrcKind::Reg(r) => {
                let held = state.get(Storage::Reg(offset(r, 0)?));
                Ok(if src.mods.not { held.complement() } else { held })
            }
            SrcKind::Value(_) | SrcKind::Part(..) => Err(format!("reads {src:?}")),
            _ => Ok(self.source_content(src, 0).map_or(Held::Nothing, Held::Known)),
        }
    }

    /// Exchanges two registers of a file.
    fn exchange(&self, a: Reg, b: &Src, file: File, state: &mut State) -> Result<(), String> {
        match b.kind {
            SrcKind::Reg(b) if b.file == file && b != STACK_POINTER => {
                let b = offset(b, 0)?;
                let (first, second) = (state.get(Storage::Reg(a)), state.get(Storage::Reg(b)));
                state.write(Storage::Reg(a), second);
                state.write(Storage::Reg(b), first);
                Ok(())
            }
            _ => Err("is not an exchange".to_owned()),
        }
    }
}
