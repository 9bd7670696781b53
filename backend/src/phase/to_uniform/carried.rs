//! Finds the values that change from iteration to iteration and can be computed in uniform registers: counters,
//! addresses, stage numbers.
//!
//! Such a value is computed where all threads of a warp are together ([`Together`]), from constants, values that are
//! the same for the whole block ([`Common`]), and other values of this kind. Phis form cycles of them; all values of a
//! cycle move together or not at all. They move if all their users can read them from uniform registers, or, on targets
//! with branches on uniform predicates, if general registers are scarce where they are live: other users then get copies.

use super::{Crowd, address, counterpart, is_only, takes_as};
use crate::emit::encodes;
use crate::ori::cfg::Cfg;
use crate::ori::divergence::Common;
use crate::ori::ir::{BlockId, Dst, File, Function, Inst, Src, SrcKind, SrcMods, Value};
use crate::ori::op::{Bool, Op, ShfType, Sign};
use crate::ori::signature::facts;
use crate::ori::together::Together;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::{SmallVec, smallvec};
use std::cell::OnceCell;

/// The maximum number of values that phis and operations connect.
const LARGEST: usize = 24;
/// The number of uniform registers that all of them may take.
const MOST: u32 = 20;
/// The maximum number of comparisons, and of carries. Each may take a uniform predicate for the whole function.
const PREDICATES: usize = 2;

#[derive(Default)]
pub(super) struct Carried {
    /// Values in general registers that move to uniform ones, including phis.
    pub values: FxHashSet<Value>,
    /// Carries that only operations of the uniform datapath read.
    pub carries: Vec<Value>,
    /// The results of comparisons for the branches of their blocks.
    pub compares: FxHashSet<Value>,
    /// Values that are the same for the whole block, and are read from uniform registers as well.
    pub inputs: FxHashSet<Value>,
}

#[derive(Clone, Copy)]
enum Def {
    Phi(BlockId, u32),
    Inst(BlockId, u32),
}

#[derive(Clone, Copy)]
enum Reader {
    Inst(BlockId, u32),
    Phi(Value),
    Term,
}

pub(super) struct Search<'a> {
    pub func: &'a Function,
    pub cfg: &'a Cfg,
    pub sm: sass::Sm,
    pub common: &'a Common,
    pub together: Together,
    /// For each value, the number of its uses.
    pub uses: &'a [u32],
    /// Branches can read uniform predicates.
    pub uniform_branches: bool,
    /// Values also move if some users need copies, where more general registers than these are live.
    pub spare: Option<u32>,
    /// Those points. Computed on first use.
    pub crowd: OnceCell<Crowd>,
    /// Predicates that may become uniform, if branches can read them.
    pub conditions: FxHashSet<Value>,
}

/// The current state of the analysis.
struct State {
    /// Indexed by value.
    defs: Vec<Option<Def>>,
    /// For each candidate and carry, its users.
    readers: Vec<SmallVec<[Reader; 2]>>,
    /// For each value, whether it moves to a uniform register as far as is known.
    chosen: Vec<bool>,
    /// The candidates in the order of control flow.
    candidates: Vec<Value>,
    /// For each value, the number of its group, which is the number of one of its members.
    group: Vec<u32>,
    /// The members of each group with several members.
    groups: FxHashMap<u32, Vec<Value>>,
}

/// A condition that a candidate must meet. It is checked again whenever a related candidate is dropped.
#[derive(Clone, Copy)]
enum Question {
    /// Are all its operands chosen or known?
    IsMade(Value),
    /// Do only chosen operations read the carry that it defines?
    KeepsCarry(Value),
    /// Can the user read it from a uniform register?
    IsTaken(Value, Reader),
}

impl Question {
    fn of(self) -> Value {
        match self {
            Self::IsMade(v) | Self::KeepsCarry(v) | Self::IsTaken(v, _) => v,
        }
    }
}

impl Search<'_> {
    pub(super) fn run(&mut self) -> Carried {
        self.find_conditions();
        let mut state = self.candidates();
        if state.candidates.is_empty() {
            return Carried::default();
        }
        self.find_readers(&mut state);
        let made = state.candidates.iter().map(|v| Question::IsMade(*v)).collect();
        self.settle(&mut state, made, |question| matches!(question, Question::IsMade(_)));
        let encoded = |v: &Value| self.is_encoded(&state, *v);
        let missing: Vec<Value> = state.candidates.iter().copied().filter(|v| !encoded(v)).collect();
        missing.into_iter().for_each(|v| state.chosen[v.index()] = false);
        self.group(&mut state);
        let of_small = |v: &Value| state.members(*v).len() <= LARGEST;
        let large: Vec<Value> = state.candidates.iter().copied().filter(|v| !of_small(v)).collect();
        large.into_iter().for_each(|v| state.chosen[v.index()] = false);
        let mut questions = Vec::new();
        for &v in state.candidates.iter().filter(|v| state.chosen[v.index()]) {
            questions.extend([Question::IsMade(v), Question::KeepsCarry(v)]);
            questions.extend(state.readers(v).iter().map(|reader| Question::IsTaken(v, *reader)));
        }
        self.settle(&mut state, questions, |_| true);
        self.bound(&mut state);
        self.result(&state)
    }

    /// Drops candidates that fail a condition, until all remaining ones meet their conditions. A round only checks the
    /// conditions that the previous round's drops affect, among those that `matters` selects, so the time is
    /// proportional to the size of the function.
    fn settle(&self, state: &mut State, mut questions: Vec<Question>, matters: impl Fn(&Question) -> bool) {
        while !questions.is_empty() {
            let fails = questions.iter().filter_map(|question| {
                let v = question.of();
                (state.chosen[v.index()] && !self.holds(state, *question)).then_some(v)
            });
            let fails: Vec<Value> = fails.collect();
            questions = self.drop_groups(state, fails);
            questions.retain(&matters);
        }
        let State { candidates, chosen, .. } = state;
        candidates.retain(|v| chosen[v.index()]);
    }

    fn holds(&self, state: &State, question: Question) -> bool {
        match question {
            Question::IsMade(v) => self.can_be_made(state, v),
            Question::KeepsCarry(v) => self.keeps_carry(state, v),
            Question::IsTaken(v, reader) => self.takes(state, v, reader),
        }
    }

    /// Drops these candidates and their groups. Returns the conditions to check again.
    fn drop_groups(&self, state: &mut State, values: Vec<Value>) -> Vec<Question> {
        let mut dropped = Vec::new();
        for v in values {
            for member in state.members(v) {
                if std::mem::take(&mut state.chosen[member.index()]) {
                    dropped.push(member);
                }
            }
        }
        let mut questions = Vec::new();
        for v in dropped {
            let carry = self.carry(state, v);
            let readers = state.readers(v).iter().chain(carry.iter().flat_map(|v| state.readers(*v)));
            for &reader in readers {
                match reader {
                    Reader::Inst(b, i) => {
                        let inst = &self.func.block(b).insts[i as usize];
                        questions.extend(inst.defs().next().map(Question::IsMade));
                        let others = inst.uses().filter_map(Src::value);
                        questions.extend(others.map(|other| Question::IsTaken(other, reader)));
                    }
                    Reader::Phi(phi) => questions.push(Question::IsMade(phi)),
                    Reader::Term => {}
                }
            }
            match state.defs[v.index()] {
                Some(Def::Phi(b, i)) => {
                    let args = self.func.block(b).phis[i as usize].args.iter();
                    let args = args.filter_map(|(_, src)| src.value());
                    questions.extend(args.map(|arg| Question::IsTaken(arg, Reader::Phi(v))));
                }
                Some(Def::Inst(b, i)) => {
                    for src in self.func.block(b).insts[i as usize].uses() {
                        questions.extend(src.value().map(|of| Question::IsTaken(of, Reader::Inst(b, i))));
                        questions.extend(self.carry_of(state, src).map(|(sum, _)| Question::KeepsCarry(sum)));
                    }
                }
                None => {}
            }
        }
        questions
    }

    /// Drops groups for which there are not enough registers.
    fn bound(&self, state: &mut State) {
        let mut seen: FxHashSet<u32> = FxHashSet::default();
        let (mut left, mut carries) = (MOST, PREDICATES);
        let mut without = Vec::new();
        for &v in &state.candidates {
            if !seen.insert(state.group[v.index()]) {
                continue;
            }
            let members = state.members(v);
            let lanes: u32 = members.iter().map(|v| u32::from(self.func.value(*v).width)).sum();
            let made = members.iter().filter(|v| self.carry(state, **v).is_some()).count();
            if lanes <= left && made <= carries {
                (left, carries) = (left - lanes, carries - made);
            } else {
                without.push(v);
            }
        }
        let questions = self.drop_groups(state, without);
        self.settle(state, questions, |_| true);
    }

    /// The carry that a sum defines.
    fn carry(&self, state: &State, v: Value) -> Option<Value> {
        let Some(Def::Inst(b, i)) = state.defs[v.index()] else { return None };
        self.func.block(b).insts[i as usize].defs().nth(1)
    }

    /// Finds predicates that a block computes only for its branch.
    fn find_conditions(&mut self) {
        // A predicate for which other threads of the warp wait keeps its register for the whole function.
        let mut lasting = PREDICATES;
        self.conditions.clear();
        for &b in self.cfg.order.iter().filter(|_| self.uniform_branches) {
            let block = self.func.block(b);
            let Some(cond) = block.term.operand().and_then(Src::value) else { continue };
            let made = |inst: &Inst| inst.dsts.first() == Some(&Dst::Value(cond));
            if self.uses[cond.index()] != 1 || !block.insts.iter().any(made) {
                continue;
            }
            if block.insts.iter().any(|inst| facts(&inst.op).waits) {
                let Some(left) = lasting.checked_sub(1) else { continue };
                lasting = left;
            }
            self.conditions.insert(cond);
        }
    }

    fn could(&self, v: Value) -> bool {
        let data = self.func.value(v);
        data.file == File::R && data.width <= 2 && data.pin.is_none() && !self.common.is(v)
    }

    /// Phis and operations at points where all threads are together, whatever their operands.
    fn candidates(&self) -> State {
        let count = self.func.values.len();
        let mut state = State {
            defs: vec![None; count],
            readers: vec![SmallVec::new(); count],
            chosen: vec![false; count],
            candidates: Vec::new(),
            group: (0..count as u32).collect(),
            groups: FxHashMap::default(),
        };
        let has_phi = |b: &BlockId| !self.func.block(*b).phis.is_empty() && self.together.at_start(*b);
        if !self.cfg.order.iter().any(has_phi) {
            return state;
        }
        for &b in &self.cfg.order {
            let block = self.func.block(b);
            let from = self.together.from(b);
            let one_way = !block.phis.is_empty() && self.together.come_one_way(self.cfg, b);
            for (i, phi) in block.phis.iter().enumerate() {
                state.defs[phi.dst.index()] = Some(Def::Phi(b, i as u32));
                if one_way && self.could(phi.dst) {
                    state.choose(phi.dst);
                }
            }
            for (i, inst) in block.insts.iter().enumerate() {
                inst.defs().for_each(|v| state.defs[v.index()] = Some(Def::Inst(b, i as u32)));
                if let Some(&Dst::Value(v)) = inst.dsts.first()
                    && from.is_some_and(|from| i >= from)
                    && self.could(v)
                    // The code of ptxas does not have these operations.
                    && !matches!(
                        inst.op,
                        Op::Shf { ty: ShfType::U64 | ShfType::S64, .. } | Op::Sgxt { sign: Sign::U32, .. }
                    )
                    && counterpart(self.func, inst).is_some()
                {
                    state.choose(v);
                }
            }
        }
        state
    }

    /// Whether the target has the operation of the uniform datapath.
    fn is_encoded(&self, state: &State, v: Value) -> bool {
        let Some(Def::Inst(b, i)) = state.defs[v.index()] else { return true };
        let uniform = counterpart(self.func, &self.func.block(b).insts[i as usize]);
        uniform.is_some_and(|uniform| uniform.op == Op::Pack || encodes(self.sm, &uniform.op))
    }

    /// Whether its operands are constants, values that are the same for the block, and chosen values.
    fn can_be_made(&self, state: &State, v: Value) -> bool {
        let is_known = |src: &Src| match src.kind {
            SrcKind::Zero | SrcKind::Imm(_) => true,
            SrcKind::Const(_) => true,
            SrcKind::Value(of) | SrcKind::Part(of, _) => {
                let data = self.func.value(of);
                match data.file {
                    File::R => state.chosen[of.index()] || (self.common.is(of) && data.width <= 2),
                    File::UR => self.common.is(of),
                    _ => false,
                }
            }
            _ => false,
        };
        match state.defs[v.index()] {
            Some(Def::Phi(b, i)) => {
                let phi = &self.func.block(b).phis[i as usize];
                let args = phi.args.iter();
                args.clone().all(|(_, src)| src.mods == SrcMods::NONE && is_known(src))
                    // Only values that change are candidates here.
                    && args.clone().any(|(_, src)| src.value().is_some_and(|of| state.chosen[of.index()]))
            }
            Some(Def::Inst(b, i)) => {
                let inst = &self.func.block(b).insts[i as usize];
                let Some(uniform) = counterpart(self.func, inst) else { return false };
                let sources = uniform.srcs.iter().all(|src| match src.kind {
                    SrcKind::Value(of) if self.func.value(of).file == File::P => self
                        .carry_of(state, src)
                        .is_some_and(|(sum, at)| at == b && state.chosen[sum.index()]),
                    SrcKind::Pred(_) => true,
                    _ => is_known(src),
                });
                sources
                    && uniform.srcs.iter().any(|src| src.value().is_some_and(|of| state.chosen[of.index()]))
            }
            None => false,
        }
    }

    /// The sum that defines a carry, and its block.
    fn carry_of(&self, state: &State, carry: &Src) -> Option<(Value, BlockId)> {
        let v = carry.value().filter(|_| carry.mods == SrcMods::NONE)?;
        let Some(Def::Inst(b, i)) = state.defs[v.index()] else { return None };
        let sum = &self.func.block(b).insts[i as usize];
        match (sum.dsts.first(), sum.dsts.get(1)) {
            (Some(&Dst::Value(low)), Some(&Dst::Value(second))) if second == v => Some((low, b)),
            _ => None,
        }
    }

    /// Whether only chosen operations of its block read the carry of a sum.
    fn keeps_carry(&self, state: &State, v: Value) -> bool {
        let Some(carry) = self.carry(state, v) else { return true };
        state.readers(carry).iter().all(|reader| match *reader {
            Reader::Inst(b, i) => {
                let first = self.func.block(b).insts[i as usize].dsts.first();
                let is_there = matches!(state.defs[v.index()], Some(Def::Inst(at, _)) if at == b);
                is_there && matches!(first, Some(Dst::Value(v)) if state.chosen[v.index()])
            }
            Reader::Phi(_) | Reader::Term => false,
        })
    }

    /// Puts phis into groups with their arguments, and operations into groups with their operands and carries.
    fn group(&self, state: &mut State) {
        let mut pairs = Vec::new();
        for &v in &state.candidates {
            match state.defs[v.index()] {
                Some(Def::Phi(b, i)) => {
                    let args = &self.func.block(b).phis[i as usize].args;
                    pairs.extend(args.iter().filter_map(|(_, src)| Some((v, src.value()?))));
                }
                Some(Def::Inst(b, i)) => {
                    let srcs = self.func.block(b).insts[i as usize].srcs.iter();
                    pairs.extend(srcs.filter_map(|src| Some((v, self.carry_of(state, src)?.0))));
                }
                None => {}
            }
        }
        for (a, b) in pairs {
            if state.chosen[a.index()] && state.chosen[b.index()] {
                state.join(a, b);
            }
        }
    }

    fn find_readers(&self, state: &mut State) {
        let mut wanted = state.chosen.clone();
        for carry in state.candidates.iter().filter_map(|v| self.carry(state, *v)) {
            wanted[carry.index()] = true;
        }
        let mut note = |src: &Src, reader: Reader| {
            if let Some(v) = src.value().filter(|v| wanted[v.index()]) {
                state.readers[v.index()].push(reader);
            }
        };
        for &b in &self.cfg.order {
            let block = self.func.block(b);
            for phi in &block.phis {
                phi.args.iter().for_each(|(_, src)| note(src, Reader::Phi(phi.dst)));
            }
            for (i, inst) in block.insts.iter().enumerate() {
                inst.uses().for_each(|src| note(src, Reader::Inst(b, i as u32)));
            }
            block.term.operand().into_iter().for_each(|src| note(src, Reader::Term));
        }
    }

    /// Whether the user can read the value from a uniform register.
    fn takes(&self, state: &State, v: Value, reader: Reader) -> bool {
        match reader {
            Reader::Term => false,
            Reader::Phi(phi) => state.chosen[phi.index()],
            Reader::Inst(b, _) if self.together.is_last(b) => false,
            Reader::Inst(b, i) => {
                let inst = &self.func.block(b).insts[i as usize];
                if inst.old.iter().any(|old| old.value() == Some(v))
                    || !inst.guard.is_true() && inst.guard.value() == Some(v)
                {
                    return false;
                }
                if let Some(&Dst::Value(dst)) = inst.dsts.first()
                    && state.chosen[dst.index()]
                {
                    return true;
                }
                // The branch would wait for a value that can only be computed after the barrier.
                let cond = self.func.block(b).term.operand().and_then(Src::value);
                if self.together.from(b) != Some(0) && inst.defs().any(|def| Some(def) == cond) {
                    return false;
                }
                let is_special = |src: &Src| match src.kind {
                    SrcKind::Imm(_) | SrcKind::Const(_) => true,
                    SrcKind::Value(other) | SrcKind::Part(other, _) => {
                        other == v || self.func.value(other).file == File::UR || state.chosen[other.index()]
                    }
                    _ => false,
                };
                (reads_there(inst) && is_only(inst, v, is_special) && takes_as(self.func, self.sm, inst, v))
                    || self.is_compare(state, (b, i as usize), inst)
                    || self.is_in_crowd(v)
            }
        }
    }

    fn is_in_crowd(&self, v: Value) -> bool {
        let crowd = |free| self.crowd.get_or_init(|| Crowd::new(self.func, self.cfg, free));
        self.spare.is_some_and(|free| crowd(free).has(v))
    }

    /// Whether the comparison is one of uniform registers, only for the branch of its block.
    fn is_compare(&self, state: &State, (b, i): (BlockId, usize), inst: &Inst) -> bool {
        let Op::Isetp { bool_: Bool::And, ex: false, .. } = inst.op else { return false };
        let [Dst::Value(holds), Dst::Sink] = inst.dsts[..] else { return false };
        let is_known = |src: &Src| match src.kind {
            SrcKind::Zero | SrcKind::Imm(_) | SrcKind::Const(_) => true,
            SrcKind::Value(of) => {
                let data = self.func.value(of);
                state.chosen[of.index()] || (data.file == File::R && self.common.is(of))
            }
            _ => false,
        };
        self.conditions.contains(&holds)
            && self.together.from(b).is_some_and(|from| i >= from)
            && inst.guard.is_true()
            && inst.srcs.get(2).is_none_or(Src::is_true)
            && inst.srcs.iter().take(2).all(|src| src.mods == SrcMods::NONE && is_known(src))
    }

    fn result(&self, state: &State) -> Carried {
        let mut carried = Carried::default();
        for &v in &state.candidates {
            carried.values.insert(v);
            let mut input = |src: &Src| {
                if let Some(of) = src.value()
                    && self.func.value(of).file == File::R
                    && !state.chosen[of.index()]
                {
                    carried.inputs.insert(of);
                }
            };
            match state.defs[v.index()] {
                Some(Def::Phi(b, i)) => {
                    self.func.block(b).phis[i as usize].args.iter().for_each(|(_, src)| input(src));
                }
                Some(Def::Inst(b, i)) => {
                    let inst = &self.func.block(b).insts[i as usize];
                    inst.srcs.iter().for_each(&mut input);
                    carried.carries.extend(inst.defs().skip(1));
                }
                None => {}
            }
        }
        for &b in &self.cfg.order {
            for (i, inst) in self.func.block(b).insts.iter().enumerate() {
                let reads = inst.srcs.iter().any(|src| src.value().is_some_and(|v| state.chosen[v.index()]));
                if reads && self.is_compare(state, (b, i), inst) {
                    carried.compares.extend(inst.defs());
                    for of in inst.srcs.iter().filter_map(Src::value) {
                        if self.func.value(of).file == File::R && !state.chosen[of.index()] {
                            carried.inputs.insert(of);
                        }
                    }
                }
            }
        }
        carried
    }
}

/// Whether the code of ptxas contains this operation with an operand in a uniform register.
fn reads_there(inst: &Inst) -> bool {
    matches!(
        inst.op,
        Op::Iadd3 { .. }
            | Op::Imad { .. }
            | Op::Isetp { .. }
            | Op::Lop3 { .. }
            | Op::Lea { .. }
            | Op::Shf { .. }
            | Op::Sel
            | Op::R2ur
    ) || address(inst).is_some()
}

impl State {
    fn choose(&mut self, v: Value) {
        self.chosen[v.index()] = true;
        self.candidates.push(v);
    }

    fn readers(&self, v: Value) -> &[Reader] {
        &self.readers[v.index()]
    }

    /// The values that move together with `v`, including `v`.
    fn members(&self, v: Value) -> SmallVec<[Value; 4]> {
        let group = self.groups.get(&self.group[v.index()]);
        group.map_or_else(|| smallvec![v], |members| SmallVec::from_slice(members))
    }

    /// Merges the groups of two values; the smaller group joins the larger one.
    fn join(&mut self, a: Value, b: Value) {
        let (mut into, mut from) = (self.group[a.index()], self.group[b.index()]);
        if into == from {
            return;
        }
        let size = |group: u32| self.groups.get(&group).map_or(1, Vec::len);
        if size(from) > size(into) {
            std::mem::swap(&mut into, &mut from);
        }
        let moved = self.groups.remove(&from).unwrap_or_else(|| vec![Value(from)]);
        moved.iter().for_each(|v| self.group[v.index()] = into);
        self.groups.entry(into).or_insert_with(|| vec![Value(into)]).extend(moved);
    }
}
