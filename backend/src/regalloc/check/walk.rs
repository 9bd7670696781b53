//! Contents through the allocated code, until nothing changes, and what each original instruction finds.

use super::Checker;
use super::content::{
    Content, Contents, Place, State, aligned, as_bool, complement, dst_of, is_reg, lane_of, meet, offset,
    spill_words, words,
};
use crate::ori::ir::{Block, BlockId, Dst, File, Inst, Reg, Src, SrcKind, SrcMods};
use crate::ori::op::{ICmp, Op};
use crate::ori::signature::special;
use crate::regalloc::STACK_POINTER;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

impl Checker<'_> {
    /// States at block entries, from above: the entry's is known, the others shrink as edges arrive.
    pub(super) fn fixpoint(&self, checkpoint: &dyn Fn()) -> Result<Vec<Option<State>>, String> {
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

    fn entry_state(&self) -> State {
        let fixed = |place: &Place| match place {
            Place::Reg(r) => SmallVec::from_slice(&[Content::Fixed(*r)]),
            Place::Word(_) => Contents::new(),
        };
        self.place_list.iter().map(fixed).collect()
    }

    pub(super) fn verify_block(&self, b: BlockId, state: &mut State) -> Result<(), String> {
        self.run(b, state, true)?;
        let (was, is) = (self.before.block(b).term.operand(), self.after.block(b).term.operand());
        if let (Some(was), Some(is)) = (was, is) {
            self.read(was, is, state).map_err(|e| format!("{b:?}, terminator: {e}"))?;
        }
        Ok(())
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
