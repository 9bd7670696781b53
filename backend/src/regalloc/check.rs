//! Symbolic check of an allocation, in the manner of regalloc2's checker.
//!
//! Walks the allocated code beside the SSA function it came from. For every register and spill word it tracks
//! the *contents* it is known to hold: lanes of SSA values, constants, predicates turned into integers. Moves,
//! spills and reloads carry contents along; the original instructions read and define them; joins intersect.
//! When nothing changes any more, every operand of every original instruction must find its value's contents
//! in the registers it names. Ties, alignment, the order and the operations of the instructions and the edges
//! of the graph are checked on the way.
//!
//! The checker shares no code with the allocator. It takes from [`Allocation`] only which instruction stands
//! for which, and believes none of it: an original instruction must be there, be the same, and come in order.

use crate::ori::ir::{
    Block, BlockId, Dst, File, Frame, Function, Inst, Reg, Src, SrcKind, SrcMods, Term, Value,
};
use crate::ori::op::{ICmp, MemSize, Op};
use crate::ori::signature::special;
use crate::regalloc::{Allocation, STACK_POINTER};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// What a register or spill word is known to hold.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
enum Content {
    /// A lane, or its complement for predicates.
    Lane {
        lane: u32,
        not: bool,
    },
    /// One where the predicate lane (or its complement) holds, else zero.
    Bool {
        lane: u32,
        not: bool,
    },
    Bits(u32),
    Const {
        bank: u8,
        offset: u16,
    },
    Pred(bool),
    /// What the input itself keeps in a named register.
    Fixed(Reg),
    /// Nobody may depend on it.
    Undef,
}

/// Sorted.
type Contents = SmallVec<[Content; 2]>;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Place {
    Reg(Reg),
    /// A word of the frame, by byte offset from R1.
    Word(u32),
}

/// Per place that the allocated code writes.
type State = Vec<Contents>;

/// The most contents of places to keep, over the entries of all blocks: 256 MB. Only long functions that spill
/// thousands of words have more, and are not checked.
const MOST_ENTRIES: usize = 1 << 23;

/// Verifies that `after` computes what `before` does. `checkpoint` is called often; it cancels by unwinding.
pub fn check(
    before: &Function,
    after: &Function,
    allocation: &Allocation,
    checkpoint: &dyn Fn(),
) -> Result<(), String> {
    let mut checker = Checker::new(before, after, allocation);
    checker.structure()?;
    if checker.place_list.len() * before.layout.len() > MOST_ENTRIES {
        return Ok(());
    }
    let mut entries = checker.fixpoint(checkpoint)?;
    for &b in &before.layout {
        // Blocks that control never reaches have no state.
        if let Some(mut state) = entries[b.index()].take() {
            checker.verify_block(b, &mut state)?;
        }
    }
    Ok(())
}

struct Checker<'a> {
    before: &'a Function,
    after: &'a Function,
    origin: &'a [Vec<Option<u32>>],
    lane_base: Vec<u32>,
    /// Per lane: what it always holds. Packs, copies and constants are seen through.
    canonical: Vec<Content>,
    /// Number of each place that the code writes.
    places: FxHashMap<Place, usize>,
    place_list: Vec<Place>,
}

impl<'a> Checker<'a> {
    fn new(before: &'a Function, after: &'a Function, allocation: &'a Allocation) -> Checker<'a> {
        let mut lane_base = Vec::with_capacity(before.values.len());
        let mut lanes = 0;
        for data in &before.values {
            lane_base.push(lanes);
            lanes += u32::from(data.width);
        }
        let canonical = (0..lanes).map(|lane| Content::Lane { lane, not: false }).collect();
        let mut checker = Checker {
            before,
            after,
            origin: &allocation.origin,
            lane_base,
            canonical,
            places: FxHashMap::default(),
            place_list: Vec::new(),
        };
        checker.see_through();
        checker
    }

    fn lane(&self, value: Value, part: u8) -> u32 {
        self.lane_base[value.index()] + u32::from(part)
    }

    /// What a value's lane must be found as.
    fn expected(&self, value: Value, part: u8) -> Content {
        self.canonical[self.lane(value, part) as usize]
    }

    /// Resolves lanes that are other lanes or constants. Definitions dominate uses, but the layout need not
    /// follow dominance, so this repeats until nothing changes.
    fn see_through(&mut self) {
        let mut aliases: Vec<(u32, Src, u8)> = Vec::new();
        for &b in &self.before.layout {
            // Where one way leads in, the moves may come behind its end, when a constant has no place to be renamed in.
            for phi in &self.before.block(b).phis {
                if let [(_, arg)] = phi.args[..] {
                    let lanes = 0..self.before.value(phi.dst).width;
                    aliases.extend(lanes.map(|i| (self.lane(phi.dst, i), arg, i)));
                }
            }
            for inst in &self.before.block(b).insts {
                let alias = match inst.op {
                    Op::Pack | Op::Copy => true,
                    Op::Mov | Op::Umov | Op::Uldc { .. } => {
                        matches!(inst.srcs[0].kind, SrcKind::Imm(_) | SrcKind::Zero | SrcKind::Const(_))
                            && inst.srcs[0].mods == SrcMods::NONE
                    }
                    _ => false,
                };
                let (true, true, Some(dst)) = (alias, inst.guard.is_true(), inst.defs().next()) else {
                    continue;
                };
                let width = self.before.value(dst).width;
                let mut part = 0;
                for src in &inst.srcs {
                    let lanes = match src.kind {
                        SrcKind::Value(v) => self.before.value(v).width,
                        SrcKind::Part(..) => 1,
                        _ if inst.srcs.len() == 1 => width,
                        _ => 1,
                    };
                    for i in 0..lanes.min(width - part) {
                        aliases.push((self.lane(dst, part), *src, i));
                        part += 1;
                    }
                }
            }
        }
        // Each round resolves at least one more step of every chain of aliases.
        for _ in 0..=aliases.len() {
            let mut changed = false;
            for &(lane, src, i) in &aliases {
                let content = self.source_content(&src, i);
                changed |= std::mem::replace(&mut self.canonical[lane as usize], content) != content;
            }
            if !changed {
                return;
            }
        }
    }

    /// What lane `i` of a source operand of the input holds.
    fn source_content(&self, src: &Src, i: u8) -> Content {
        match src.kind {
            SrcKind::Value(v) => complement(self.expected(v, i), src.mods.not),
            SrcKind::Part(v, part) => complement(self.expected(v, part), src.mods.not),
            SrcKind::Zero => Content::Bits(0),
            SrcKind::Imm(bits) => Content::Bits(if i == 0 { bits } else { 0 }),
            SrcKind::Const(c) => Content::Const { bank: c.bank, offset: c.offset + 4 * u16::from(i) },
            SrcKind::Pred(p) => Content::Pred(p != src.mods.not),
            SrcKind::Reg(r) => Content::Fixed(Reg { index: r.index + i, ..r }),
            SrcKind::Undef => Content::Undef,
        }
    }

    /// The block of the input that an edge of the output leads to, and the block on the edge.
    fn target(&self, b: BlockId) -> Result<(BlockId, Option<BlockId>), String> {
        if b.index() < self.before.blocks.len() {
            return Ok((b, None));
        }
        match self.after.block(b).term {
            Term::Jump(to) if to.index() < self.before.blocks.len() => Ok((to, Some(b))),
            _ => Err(format!("{b:?} was added but is not on an edge")),
        }
    }

    /// Blocks, edges and instructions correspond. Numbers the places.
    fn structure(&mut self) -> Result<(), String> {
        for &b in &self.after.layout {
            let block = self.after.block(b);
            let origins = &self.origin[b.index()];
            if !block.phis.is_empty() || origins.len() != block.insts.len() {
                return Err(format!("{b:?} has phis or lacks origins"));
            }
            if b.index() >= self.before.blocks.len() && origins.iter().any(Option::is_some) {
                return Err(format!("{b:?} was added but has original instructions"));
            }
            for (inst, origin) in block.insts.iter().zip(origins) {
                let original = origin.map(|o| &self.before.block(b).insts[o as usize]);
                self.number_places(inst, original)?;
            }
        }
        let originals: Vec<BlockId> =
            self.after.layout.iter().copied().filter(|b| b.index() < self.before.blocks.len()).collect();
        if originals != self.before.layout {
            return Err("blocks are missing or in another order".to_owned());
        }
        for &b in &self.before.layout {
            self.terminator(b)?;
            self.same_instructions(b)?;
        }
        Ok(())
    }

    fn number(&mut self, place: Place) {
        let next = self.places.len();
        if *self.places.entry(place).or_insert(next) == next {
            self.place_list.push(place);
        }
    }

    fn number_places(&mut self, inst: &Inst, original: Option<&Inst>) -> Result<(), String> {
        for (i, dst) in inst.dsts.iter().enumerate() {
            let width = match original.and_then(|o| o.dsts.get(i)) {
                Some(Dst::Value(v)) => self.before.value(*v).width,
                _ => match inst.op {
                    Op::Ldl { size, .. } => words(size),
                    Op::Cs2r { wide: true, .. } => 2,
                    _ => 1,
                },
            };
            match dst {
                Dst::Reg(r) => {
                    if *r == STACK_POINTER && original.is_none_or(|o| o.dsts[i] != *dst) {
                        return Err(format!("{inst:?} writes the stack pointer"));
                    }
                    for lane in 0..width {
                        self.number(Place::Reg(offset(*r, lane)?));
                    }
                }
                Dst::Value(v) => return Err(format!("{v:?} is still written")),
                Dst::Sink => {}
            }
        }
        if let (Op::Stl { size, offset } | Op::Ldl { size, offset }, None) = (inst.op, original) {
            for word in spill_words(&self.after.frame, size, offset)? {
                self.number(Place::Word(word));
            }
        }
        // What is read without ever being written holds undefined values.
        for (i, is) in inst.uses().enumerate() {
            let width = match (original.and_then(|o| o.uses().nth(i)).map(|s| s.kind), inst.op) {
                (Some(SrcKind::Value(v)), _) => self.before.value(v).width,
                (None, Op::Stl { size, .. }) => words(size),
                _ => 1,
            };
            if let SrcKind::Reg(r) = is.kind {
                for lane in 0..width {
                    self.number(Place::Reg(offset(r, lane)?));
                }
            }
        }
        Ok(())
    }

    fn terminator(&self, b: BlockId) -> Result<(), String> {
        let (was, is) = (&self.before.block(b).term, &self.after.block(b).term);
        let same_kind = match (was, is) {
            (Term::Branch { uniform: x, .. }, Term::Branch { uniform: y, .. })
            | (Term::Switch { uniform: x, .. }, Term::Switch { uniform: y, .. }) => x == y,
            _ => std::mem::discriminant(was) == std::mem::discriminant(is),
        };
        let (from, to) = (was.successors(), is.successors());
        let mut targets = SmallVec::<[BlockId; 2]>::new();
        for &t in &to {
            targets.push(self.target(t)?.0);
        }
        if !same_kind || from != targets {
            return Err(format!("{b:?} ended with {was:?} and now ends with {is:?}"));
        }
        Ok(())
    }

    fn same_instructions(&self, b: BlockId) -> Result<(), String> {
        let originals = &self.before.block(b).insts;
        let mut next = 0;
        let mut skip = |upto: usize| -> Result<(), String> {
            for (i, inst) in originals.iter().enumerate().take(upto).skip(next) {
                let replaced = inst.defs().next().is_some()
                    && matches!(inst.op, Op::Mov | Op::Umov | Op::Uldc { .. })
                    && inst.defs().all(|v| !matches!(self.expected(v, 0), Content::Lane { .. }));
                if !matches!(inst.op, Op::Pack | Op::Copy) && !replaced {
                    return Err(format!("{b:?} lost instruction {i}, {:?}", inst.op));
                }
            }
            next = upto + 1;
            Ok(())
        };
        let mut last = None;
        for origin in self.origin[b.index()].iter().flatten().map(|&o| o as usize) {
            if last.is_some_and(|l| l >= origin) {
                return Err(format!("{b:?} has instruction {origin} out of order"));
            }
            last = Some(origin);
            skip(origin)?;
        }
        skip(originals.len())
    }

    fn entry_state(&self) -> State {
        let fixed = |place: &Place| match place {
            Place::Reg(r) => SmallVec::from_slice(&[Content::Fixed(*r)]),
            Place::Word(_) => Contents::new(),
        };
        self.place_list.iter().map(fixed).collect()
    }

    /// States at block entries, from above: the entry's is known, the others shrink as edges arrive.
    fn fixpoint(&self, checkpoint: &dyn Fn()) -> Result<Vec<Option<State>>, String> {
        let mut entries: Vec<Option<State>> = vec![None; self.before.blocks.len()];
        let Some(&entry) = self.before.layout.first() else { return Ok(entries) };
        entries[entry.index()] = Some(self.entry_state());
        let mut dirty = vec![false; self.before.blocks.len()];
        dirty[entry.index()] = true;
        while dirty.contains(&true) {
            for &b in &self.before.layout {
                if !std::mem::take(&mut dirty[b.index()]) {
                    continue;
                }
                checkpoint();
                let Some(mut state) = entries[b.index()].clone() else { continue };
                self.run(b, &mut state, false)?;
                let mut successors: SmallVec<[BlockId; 2]> = SmallVec::new();
                for succ in self.after.block(b).term.successors() {
                    if !successors.contains(&succ) {
                        successors.push(succ);
                    }
                }
                while let Some(succ) = successors.pop() {
                    let mut state =
                        if successors.is_empty() { std::mem::take(&mut state) } else { state.clone() };
                    let (to, edge) = self.target(succ)?;
                    if let Some(edge) = edge {
                        self.run(edge, &mut state, false)?;
                    }
                    self.enter(b, to, &mut state);
                    dirty[to.index()] |= meet(&mut entries[to.index()], state);
                }
            }
        }
        Ok(entries)
    }

    /// The phis of `to`, for control that comes from `from`.
    fn enter(&self, from: BlockId, to: BlockId, state: &mut State) {
        let phis = &self.before.block(to).phis;
        if phis.is_empty() {
            return;
        }
        // Which content becomes which lane.
        let mut renames: FxHashMap<Content, SmallVec<[Content; 1]>> = FxHashMap::default();
        let mut defined: SmallVec<[u32; 8]> = SmallVec::new();
        let mut undefined: SmallVec<[(File, Content); 2]> = SmallVec::new();
        for phi in phis {
            let data = self.before.value(phi.dst);
            let Some((_, arg)) = phi.args.iter().find(|(pred, _)| *pred == from) else { continue };
            for i in 0..data.width {
                let lane = self.lane(phi.dst, i);
                defined.push(lane);
                let content = self.source_content(arg, i);
                let result = Content::Lane { lane, not: false };
                if content == Content::Undef {
                    undefined.push((data.file, result));
                    continue;
                }
                renames.entry(content).or_default().push(result);
                if data.file == File::P {
                    renames.entry(complement(content, true)).or_default().push(complement(result, true));
                    for not in [false, true] {
                        if let Some(from) = as_bool(complement(content, not)) {
                            renames.entry(from).or_default().push(Content::Bool { lane, not });
                        }
                    }
                }
            }
        }
        defined.sort_unstable();
        for (contents, place) in state.iter_mut().zip(&self.place_list) {
            let mut now: Contents = SmallVec::new();
            for &content in contents.iter() {
                if lane_of(content).is_none_or(|lane| defined.binary_search(&lane).is_err()) {
                    now.push(content);
                }
                now.extend(renames.get(&content).into_iter().flatten().copied());
            }
            for &(file, result) in &undefined {
                if matches!(place, Place::Word(_)) || matches!(place, Place::Reg(r) if r.file == file) {
                    now.push(result);
                }
                // A spilled predicate is an integer.
                if let Some(spilled) = as_bool(result).filter(|_| matches!(file, File::P | File::UP)) {
                    now.push(spilled);
                }
            }
            now.sort_unstable();
            now.dedup();
            *contents = now;
        }
    }

    fn verify_block(&self, b: BlockId, state: &mut State) -> Result<(), String> {
        self.run(b, state, true)?;
        let (was, is) = (self.before.block(b).term.operand(), self.after.block(b).term.operand());
        if let (Some(was), Some(is)) = (was, is) {
            self.read(was, is, state).map_err(|e| format!("{b:?}, terminator: {e}"))?;
        }
        Ok(())
    }

    /// Runs a block of the output. `verify` also checks what the original instructions read.
    fn run(&self, b: BlockId, state: &mut State, verify: bool) -> Result<(), String> {
        let block: &Block = self.after.block(b);
        let mut i = 0;
        while i < block.insts.len() {
            let inst = &block.insts[i];
            match self.origin[b.index()][i] {
                Some(origin) => {
                    let original = &self.before.block(b).insts[origin as usize];
                    let result = if verify { self.verify_inst(original, inst, state) } else { Ok(()) };
                    result
                        .and_then(|()| self.define(original, inst, state))
                        .map_err(|e| format!("{b:?}, instruction {i}, {:?}: {e}", inst.op))?;
                    i += 1;
                }
                None => {
                    i += self
                        .run_added(&block.insts[i..], state)
                        .map_err(|e| format!("{b:?}, instruction {i}, {inst:?}: {e}"))?;
                }
            }
        }
        Ok(())
    }

    fn contents<'s>(&self, place: Place, state: &'s State) -> &'s [Content] {
        self.places.get(&place).map_or(&[], |&p| &state[p])
    }

    fn write(&self, place: Place, contents: Contents, state: &mut State) {
        if let Some(&p) = self.places.get(&place) {
            state[p] = contents;
        }
    }

    fn holds(&self, reg: Reg, content: Content, state: &State) -> Result<(), String> {
        let contents = self.contents(Place::Reg(reg), state);
        if content == Content::Undef || contents.contains(&content) {
            return Ok(());
        }
        Err(format!("{reg:?} should hold {content:?} but holds {contents:?}"))
    }

    /// An operand of an original instruction finds its contents.
    fn read(&self, was: &Src, is: &Src, state: &State) -> Result<(), String> {
        if was.mods != is.mods {
            return Err(format!("modifiers of {was:?} became those of {is:?}"));
        }
        let (value, first, width) = match was.kind {
            SrcKind::Value(v) => (v, 0, self.before.value(v).width),
            SrcKind::Part(v, part) => (v, part, 1),
            SrcKind::Reg(r) if was == is => return self.holds(r, Content::Fixed(r), state),
            SrcKind::Undef => return Ok(()),
            _ if was == is => return Ok(()),
            _ => return Err(format!("{was:?} became {is:?}")),
        };
        let SrcKind::Reg(reg) = is.kind else {
            return Err(format!("{was:?} became {is:?}"));
        };
        let file = self.before.value(value).file;
        aligned(reg, file, if matches!(was.kind, SrcKind::Part(..)) { 1 } else { width })?;
        for i in 0..width {
            self.holds(offset(reg, i)?, self.expected(value, first + i), state)?;
        }
        Ok(())
    }

    fn verify_inst(&self, was: &Inst, is: &Inst, state: &State) -> Result<(), String> {
        if was.op != is.op || was.dsts.len() != is.dsts.len() || was.srcs.len() != is.srcs.len() {
            return Err(format!("was {was:?}"));
        }
        self.read(&was.guard, &is.guard, state)?;
        for (was, is) in was.srcs.iter().zip(&is.srcs) {
            self.read(was, is, state)?;
        }
        for (i, (was_dst, is_dst)) in was.dsts.iter().zip(&is.dsts).enumerate() {
            match (was_dst, is_dst) {
                (Dst::Value(v), Dst::Reg(r)) => {
                    let data = self.before.value(*v);
                    aligned(*r, data.file, data.width)?;
                    if let Some(old) = was.old.get(i) {
                        for lane in 0..data.width {
                            self.holds(offset(*r, lane)?, self.source_content(old, lane), state)?;
                        }
                    }
                }
                _ if was_dst == is_dst => {}
                _ => return Err(format!("{was_dst:?} became {is_dst:?}")),
            }
        }
        Ok(())
    }

    /// Writes the results. No place still holds what they were when the block last ran: a first way into the block
    /// has not, and what holds at its start holds on every way.
    fn define(&self, was: &Inst, is: &Inst, state: &mut State) -> Result<(), String> {
        let mut written: SmallVec<[Reg; 8]> = SmallVec::new();
        for (was, is) in was.dsts.iter().zip(&is.dsts) {
            let (width, Dst::Reg(r)) = (
                match was {
                    Dst::Value(v) => self.before.value(*v).width,
                    _ => 1,
                },
                is,
            ) else {
                continue;
            };
            for part in 0..width {
                let reg = offset(*r, part)?;
                if written.contains(&reg) {
                    return Err(format!("two results are in {reg:?}"));
                }
                written.push(reg);
                let content = match was {
                    Dst::Value(v) => self.expected(*v, part),
                    _ => Content::Fixed(reg),
                };
                self.write(Place::Reg(reg), SmallVec::from_slice(&[content]), state);
            }
        }
        Ok(())
    }

    /// Runs an instruction that allocation added; returns how many it took.
    fn run_added(&self, code: &[Inst], state: &mut State) -> Result<usize, String> {
        let inst = &code[0];
        if !inst.guard.is_true() {
            return Err("is guarded".to_owned());
        }
        let dst = match inst.dsts.first() {
            Some(Dst::Reg(r)) => Some(*r),
            _ => None,
        };
        let simple = |src: &Src| -> Contents {
            match src.kind {
                SrcKind::Reg(r) => {
                    let flip = |c: &Content| complement(*c, src.mods.not);
                    let mut all: Contents = self.contents(Place::Reg(r), state).iter().map(flip).collect();
                    all.sort_unstable();
                    all
                }
                _ => SmallVec::from_slice(&[self.source_content(src, 0)]),
            }
        };
        let plain = inst.srcs.iter().all(|s| s.mods == SrcMods::NONE);
        match (inst.op, dst, &inst.srcs[..]) {
            (Op::Mov | Op::Umov | Op::R2ur | Op::Uldc { wide: false }, Some(dst), [src]) if plain => {
                self.write(Place::Reg(dst), simple(src), state);
            }
            (Op::Cs2r { sr: special::ZERO, wide: true }, Some(dst), []) => {
                aligned(dst, File::R, 2)?;
                for i in 0..2 {
                    let zero = SmallVec::from_slice(&[Content::Bits(0)]);
                    self.write(Place::Reg(offset(dst, i)?), zero, state);
                }
            }
            (Op::Uldc { wide: true }, Some(dst), [src]) if plain => {
                for i in 0..2 {
                    let contents = SmallVec::from_slice(&[self.source_content(src, i)]);
                    self.write(Place::Reg(offset(dst, i)?), contents, state);
                }
            }
            (Op::Plop3 { lut: 0x80, .. }, Some(dst), [src, b, c]) if b.is_true() && c.is_true() => {
                self.write(Place::Reg(dst), simple(src), state);
            }
            (Op::Plop3 { lut: 0xcc, lut2: 0xf0 }, Some(a), [x, y, _])
                if plain && inst.dsts.len() == 2 && is_reg(x, a) && inst.dsts[1] == dst_of(y) =>
            {
                let (first, second) = (simple(x), simple(y));
                self.write(Place::Reg(a), second, state);
                if let Dst::Reg(b) = inst.dsts[1] {
                    self.write(Place::Reg(b), first, state);
                }
            }
            (Op::Sel, Some(dst), [zero, one, p])
                if zero.kind == SrcKind::Zero && *one == Src::imm(1) && matches!(p.kind, SrcKind::Reg(_)) =>
            {
                // Zero where `p` holds, so the integer is that of the complement.
                let integers = simple(&p.not()).into_iter().filter_map(as_bool).collect();
                self.write(Place::Reg(dst), integers, state);
            }
            (Op::Isetp { cmp: ICmp::Ne, ex: false, .. }, Some(dst), [src, zero, all])
                if plain && zero.kind == SrcKind::Zero && all.is_true() =>
            {
                let predicates = simple(src).into_iter().filter_map(|c| match c {
                    Content::Bool { lane, not } => Some(Content::Lane { lane, not }),
                    Content::Bits(bits) => Some(Content::Pred(bits != 0)),
                    _ => None,
                });
                let predicates = predicates.collect();
                self.write(Place::Reg(dst), predicates, state);
            }
            (Op::Lop3 { lut: 0x3c }, Some(a), [x, y, _]) if plain && is_reg(x, a) => {
                let swap = code.get(..3).filter(|c| {
                    let b = dst_of(y);
                    c.iter().all(|i| i.op == inst.op && i.srcs == inst.srcs && i.guard.is_true())
                        && c[1].dsts[..] == [b]
                        && c[2].dsts == c[0].dsts
                        && b != Dst::Reg(a)
                });
                let (Some(_), SrcKind::Reg(b)) = (swap, y.kind) else {
                    return Err("is no exchange".to_owned());
                };
                let (first, second) = (simple(x), simple(y));
                self.write(Place::Reg(a), second, state);
                self.write(Place::Reg(b), first, state);
                return Ok(3);
            }
            (Op::Stl { size, offset: at }, None, [base, data]) if plain && is_reg(base, STACK_POINTER) => {
                let SrcKind::Reg(first) = data.kind else {
                    return Err("stores no register".to_owned());
                };
                aligned(first, File::R, words(size))?;
                for (i, word) in spill_words(&self.after.frame, size, at)?.enumerate() {
                    let contents = self.contents(Place::Reg(offset(first, i as u8)?), state).into();
                    self.write(Place::Word(word), contents, state);
                }
            }
            (Op::Ldl { size, offset: at }, Some(dst), [base]) if plain && is_reg(base, STACK_POINTER) => {
                aligned(dst, File::R, words(size))?;
                for (i, word) in spill_words(&self.after.frame, size, at)?.enumerate() {
                    let contents = self.contents(Place::Word(word), state).into();
                    self.write(Place::Reg(offset(dst, i as u8)?), contents, state);
                }
            }
            _ => return Err("is no move, spill or reload".to_owned()),
        }
        Ok(1)
    }
}

fn complement(content: Content, not: bool) -> Content {
    match content {
        Content::Lane { lane, not: n } => Content::Lane { lane, not: n != not },
        Content::Bool { lane, not: n } => Content::Bool { lane, not: n != not },
        Content::Pred(p) => Content::Pred(p != not),
        other => other,
    }
}

/// A predicate's integer.
fn as_bool(content: Content) -> Option<Content> {
    match content {
        Content::Lane { lane, not } => Some(Content::Bool { lane, not }),
        Content::Pred(p) => Some(Content::Bits(u32::from(p))),
        _ => None,
    }
}

fn lane_of(content: Content) -> Option<u32> {
    match content {
        Content::Lane { lane, .. } | Content::Bool { lane, .. } => Some(lane),
        _ => None,
    }
}

fn is_reg(src: &Src, reg: Reg) -> bool {
    src.kind == SrcKind::Reg(reg)
}

fn dst_of(src: &Src) -> Dst {
    match src.kind {
        SrcKind::Reg(r) => Dst::Reg(r),
        _ => Dst::Sink,
    }
}

/// Registers of a file.
fn file_size(file: File) -> u16 {
    match file {
        File::R => 255,
        File::P | File::UP => 7,
        File::UR => 255,
        File::B => 16,
    }
}

fn offset(reg: Reg, by: u8) -> Result<Reg, String> {
    let index = u16::from(reg.index) + u16::from(by);
    if index >= file_size(reg.file) {
        return Err(format!("{reg:?} + {by} is outside its file"));
    }
    Ok(Reg { index: index as u8, ..reg })
}

/// A run's first register is a multiple of its width rounded up to a power of two, at most 4.
fn aligned(reg: Reg, file: File, width: u8) -> Result<(), String> {
    let align = match width {
        0 | 1 => 1,
        2 => 2,
        _ => 4,
    };
    if reg.file != file || !reg.index.is_multiple_of(align) {
        return Err(format!("{reg:?} cannot hold {width} registers of {file:?}"));
    }
    Ok(())
}

fn words(size: MemSize) -> u8 {
    match size {
        MemSize::B64 => 2,
        MemSize::B128 => 4,
        _ => 1,
    }
}

/// The frame words of an access to spilled values, which must be in their part of the frame and aligned.
fn spill_words(
    frame: &Frame,
    size: MemSize,
    offset: i32,
) -> Result<impl Iterator<Item = u32> + use<>, String> {
    let bytes = 4 * u32::from(words(size));
    let start = u32::try_from(offset).map_err(|_| "is below the frame".to_owned())?;
    let whole = matches!(size, MemSize::B32 | MemSize::B64 | MemSize::B128);
    if !whole
        || start % bytes != 0
        || start < frame.local_bytes
        || start + bytes > frame.local_bytes + frame.spill_bytes
    {
        return Err(format!("accesses {bytes} bytes at {start}, outside the spill area"));
    }
    Ok((start..start + bytes).step_by(4))
}

/// Intersects; true if the entry changed.
fn meet(entry: &mut Option<State>, state: State) -> bool {
    let Some(entry) = entry else {
        *entry = Some(state);
        return true;
    };
    let mut changed = false;
    for (into, from) in entry.iter_mut().zip(&state) {
        let size = into.len();
        into.retain(|c| from.binary_search(c).is_ok());
        changed |= into.len() != size;
    }
    changed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ori::text;
    use crate::regalloc::allocate;
    use crate::target::Target;
    use expect_test::{Expect, expect};

    const LOOP: &str = "entry \"f\" {
        b0:
          %v0:r = S2R{sr=0x21}
          %v1:r2 = PACK c[0x0][0x160], c[0x0][0x164]
          JUMP b1
        b1:
          %v2:r = phi b0 %v0, b1 %v3
          %v3:r = phi b0 0x5, b1 %v2
          %v4:r = LDG.E %v1, RZ
          %v5:p, _ = ISETP.LT.AND %v2, %v4, PT
          @%v5 %v6:r, _, _ = IADD3 %v2, %v3, RZ old(%v4, PF, PF)
          STG.E %v1, RZ, %v6
          BRA %v5, b1, b2
        b2:
          STG.E{offset=4} %v1, RZ, %v3
          EXIT
        }";

    /// Allocates `LOOP`, breaks the result, and expects the checker to say so.
    fn check_broken(damage: impl FnOnce(&mut Function, &mut Allocation), expect: Expect) {
        let before = text::parse(LOOP).expect("parses");
        let mut after = before.clone();
        let target = Target::of(ptx_isa::Sm::new(80)).expect("a target");
        let mut allocation = allocate(&mut after, target, 255).expect("allocates");
        assert_eq!(check(&before, &after, &allocation, &|| ()), Ok(()));
        damage(&mut after, &mut allocation);
        expect.assert_eq(&check(&before, &after, &allocation, &|| ()).expect_err("is broken"));
    }

    fn remove(func: &mut Function, allocation: &mut Allocation, b: usize, i: usize) {
        func.blocks[b].insts.remove(i);
        allocation.origin[b].remove(i);
    }

    fn find(func: &Function, b: usize, op: impl Fn(&Op) -> bool) -> usize {
        func.blocks[b].insts.iter().position(|i| op(&i.op)).expect("is there")
    }

    #[test]
    fn a_lost_move_is_found() {
        check_broken(
            |func, allocation| {
                // The copies of the back edge are in a block of their own.
                let edge = func.blocks.len() - 1;
                remove(func, allocation, edge, 0);
            },
            expect![
                "BlockId(1), instruction 1, Isetp { cmp: Lt, sign: S32, bool_: And, ex: false }: Reg { file: R, index: 0 } should hold Lane { lane: 3, not: false } but holds []"
            ],
        );
    }

    #[test]
    fn another_register_is_found() {
        check_broken(
            |func, _| {
                let load = find(func, 1, |op| matches!(op, Op::Ldg { .. }));
                func.blocks[1].insts[load].srcs[0].kind = SrcKind::Reg(Reg { file: File::R, index: 8 });
            },
            expect![
                "BlockId(1), instruction 0, Ldg { access: Access { size: B32, order: Weak, evict: Normal, prefetch: None, offset: 0 }, nc: false }: Reg { file: R, index: 8 } should hold Const { bank: 0, offset: 352 } but holds [Fixed(Reg { file: R, index: 8 })]"
            ],
        );
    }

    #[test]
    fn a_clobbered_register_is_found() {
        check_broken(
            |func, _| {
                let load = find(func, 1, |op| matches!(op, Op::Ldg { .. }));
                let SrcKind::Reg(address) = func.blocks[1].insts[load].srcs[0].kind else {
                    panic!("a register")
                };
                func.blocks[1].insts[load].dsts[0] = Dst::Reg(address);
            },
            expect![
                "BlockId(1), instruction 0, Ldg { access: Access { size: B32, order: Weak, evict: Normal, prefetch: None, offset: 0 }, nc: false }: Reg { file: R, index: 2 } should hold Const { bank: 0, offset: 352 } but holds []"
            ],
        );
    }

    #[test]
    fn a_result_apart_from_what_it_keeps_is_found() {
        check_broken(
            |func, _| {
                let add = find(func, 1, |op| matches!(op, Op::Iadd3 { .. }));
                func.blocks[1].insts[add].dsts[0] = Dst::Reg(Reg { file: File::R, index: 9 });
            },
            expect![
                "BlockId(1), instruction 2, Iadd3 { x: false }: Reg { file: R, index: 9 } should hold Lane { lane: 5, not: false } but holds []"
            ],
        );
    }

    #[test]
    fn a_lost_instruction_is_found() {
        check_broken(
            |func, allocation| {
                let store = find(func, 2, |op| matches!(op, Op::Stg { .. }));
                remove(func, allocation, 2, store);
            },
            expect![
                "BlockId(2) lost instruction 0, Stg { access: Access { size: B32, order: Weak, evict: Normal, prefetch: None, offset: 4 } }"
            ],
        );
    }

    #[test]
    fn another_target_is_found() {
        check_broken(
            |func, _| func.blocks[0].term = Term::Jump(BlockId(2)),
            expect!["BlockId(0) ended with Jump(BlockId(1)) and now ends with Jump(BlockId(2))"],
        );
    }

    #[test]
    fn a_constant_may_be_moved_behind_the_only_way_to_its_phi() {
        let mut func = text::parse(
            "entry \"f\" {
        b0:
          %v0:p, _ = ISETP.EQ.U32.AND RZ, RZ, PT
          BRA %v0, b3, b1
        b1:
          %v1:r = phi b0 c[0x0][0x210]
          JUMP b2
        b2:
          %v2:r = phi b1 %v1, b2 %v3
          %v3:r, _, _ = IADD3 %v2, 0x6, RZ
          JUMP b2
        b3:
          EXIT
        }",
        )
        .expect("parses");
        allocate(&mut func, Target::of(ptx_isa::Sm::new(80)).expect("a target"), 255).expect("is right");
    }
}
