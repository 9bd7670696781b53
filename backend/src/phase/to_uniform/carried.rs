//! Which values that change from iteration to iteration are computed in uniform registers: counters, addresses, numbers of
//! stages.
//!
//! Such a value is made where all threads of a warp are together ([`Together`]), of constants, of what is the same for the
//! whole block ([`Common`]), and of other values of this kind. Phis make cycles of them, and what a cycle is made of goes
//! there together or not at all. It goes where everything that reads it takes it from there.

use super::{counterpart, is_only, takes_as};
use crate::emit::encodes;
use crate::ori::cfg::Cfg;
use crate::ori::divergence::Common;
use crate::ori::ir::{BlockId, Dst, File, Function, Inst, Src, SrcKind, SrcMods, Value};
use crate::ori::op::{Bool, Op, ShfType};
use crate::ori::signature::facts;
use crate::ori::together::Together;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

/// Values that phis and operations join at most.
const LARGEST: usize = 24;
/// Uniform registers that all of them may take.
const MOST: u32 = 20;
/// Comparisons, and as many carries: each may have a uniform predicate for the whole function.
const PREDICATES: usize = 2;

#[derive(Default)]
pub(super) struct Carried {
    /// Values of general registers that are to be in uniform ones instead, phis included.
    pub values: FxHashSet<Value>,
    /// Carries that only operations of the uniform datapath read.
    pub carries: Vec<Value>,
    /// Comparisons for branches of their blocks, by their results.
    pub compares: FxHashSet<Value>,
    /// What is the same for the whole block, and is read in uniform registers as well.
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
    /// Indexed by value: readers.
    pub uses: Vec<u32>,
    /// Branches read uniform predicates.
    pub uniform_branches: bool,
    /// Predicates that may be uniform ones, if branches read them.
    pub conditions: FxHashSet<Value>,
}

/// What is known so far.
struct State {
    /// Indexed by value.
    defs: Vec<Option<Def>>,
    readers: FxHashMap<Value, SmallVec<[Reader; 4]>>,
    /// Indexed by value: goes to a uniform register, for all that is known.
    chosen: Vec<bool>,
    /// The candidates, in the order of control flow.
    candidates: Vec<Value>,
    /// Indexed by value: the next in a chain that ends where it leads to itself; values of one chain go together.
    group: Vec<u32>,
}

impl Search<'_> {
    pub(super) fn run(&mut self) -> Carried {
        self.find_conditions();
        let mut state = self.candidates();
        if state.candidates.is_empty() {
            return Carried::default();
        }
        // What it is computed of must be there.
        loop {
            let before = state.candidates.len();
            let made: Vec<Value> =
                state.candidates.iter().copied().filter(|v| self.can_be_made(&state, *v)).collect();
            state.keep(made);
            if state.candidates.len() == before {
                break;
            }
        }
        let encoded = state.candidates.iter().copied().filter(|v| self.is_encoded(&state, *v)).collect();
        state.keep(encoded);
        self.group(&mut state);
        self.find_readers(&mut state);
        loop {
            let before = state.candidates.len();
            let mut fails: FxHashMap<u32, bool> = FxHashMap::default();
            let mut sizes: FxHashMap<u32, usize> = FxHashMap::default();
            for &v in &state.candidates {
                let group = state.group_of(v);
                *sizes.entry(group).or_default() += 1;
                let fits = self.can_be_made(&state, v)
                    && self.keeps_carry(&state, v)
                    && state
                        .readers
                        .get(&v)
                        .into_iter()
                        .flatten()
                        .all(|reader| self.takes(&state, v, *reader));
                *fails.entry(group).or_default() |= !fits;
            }
            let kept = state.candidates.iter().copied().filter(|v| {
                let group = state.group_of(*v);
                !fails[&group] && sizes[&group] <= LARGEST
            });
            let kept = kept.collect();
            state.keep(kept);
            if state.candidates.len() == before {
                break;
            }
        }
        self.bound(&mut state);
        self.result(&state)
    }

    /// Leaves out groups for which there are not enough registers.
    fn bound(&self, state: &mut State) {
        let mut taken: FxHashMap<u32, bool> = FxHashMap::default();
        let (mut left, mut carries) = (MOST, PREDICATES);
        for &v in &state.candidates {
            let group = state.group_of(v);
            if taken.contains_key(&group) {
                continue;
            }
            let members = || state.candidates.iter().copied().filter(|v| state.group_of(*v) == group);
            let lanes: u32 = members().map(|v| u32::from(self.func.value(v).width)).sum();
            let made = members().filter(|v| self.carry(state, *v).is_some()).count();
            let fits = lanes <= left && made <= carries;
            taken.insert(group, fits);
            if fits {
                (left, carries) = (left - lanes, carries - made);
            }
        }
        loop {
            let before = state.candidates.len();
            let kept = state.candidates.iter().copied().filter(|v| {
                taken[&state.group_of(*v)]
                    && self.can_be_made(state, *v)
                    && state.readers.get(v).into_iter().flatten().all(|reader| self.takes(state, *v, *reader))
            });
            let kept: Vec<Value> = kept.collect();
            for v in &state.candidates {
                if !kept.contains(v) {
                    taken.insert(state.group_of(*v), false);
                }
            }
            state.keep(kept);
            if state.candidates.len() == before {
                break;
            }
        }
    }

    /// The carry that a sum makes.
    fn carry(&self, state: &State, v: Value) -> Option<Value> {
        let Some(Def::Inst(b, i)) = state.defs[v.index()] else { return None };
        self.func.block(b).insts[i as usize].defs().nth(1)
    }

    /// Predicates that a block makes for its branch alone.
    fn find_conditions(&mut self) {
        // A predicate for which others of the warp wait has its register for the whole function.
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

    /// Phis and operations where all threads are together, whatever they are made of.
    fn candidates(&self) -> State {
        let count = self.func.values.len();
        let mut state = State {
            defs: vec![None; count],
            readers: FxHashMap::default(),
            chosen: vec![false; count],
            candidates: Vec::new(),
            group: (0..count as u32).collect(),
        };
        let has_phi = |b: &BlockId| !self.func.block(*b).phis.is_empty() && self.together.at_start(*b);
        if !self.cfg.order.iter().any(has_phi) {
            return state;
        }
        for &b in &self.cfg.order {
            let block = self.func.block(b);
            let is_together = self.together.at_start(b);
            let from = self.together.from(b);
            let all_come = || self.cfg.preds(b).iter().all(|pred| self.together.at_end(*pred));
            for (i, phi) in block.phis.iter().enumerate() {
                state.defs[phi.dst.index()] = Some(Def::Phi(b, i as u32));
                if is_together && self.could(phi.dst) && all_come() {
                    state.choose(phi.dst);
                }
            }
            for (i, inst) in block.insts.iter().enumerate() {
                inst.defs().for_each(|v| state.defs[v.index()] = Some(Def::Inst(b, i as u32)));
                if let Some(&Dst::Value(v)) = inst.dsts.first()
                    && from.is_some_and(|from| i >= from)
                    && self.could(v)
                    && !matches!(inst.op, Op::Shf { ty: ShfType::U64 | ShfType::S64, .. })
                    && counterpart(self.func, inst).is_some()
                {
                    state.choose(v);
                }
            }
        }
        state
    }

    /// The target has the operation of the uniform datapath.
    fn is_encoded(&self, state: &State, v: Value) -> bool {
        let Some(Def::Inst(b, i)) = state.defs[v.index()] else { return true };
        let uniform = counterpart(self.func, &self.func.block(b).insts[i as usize]);
        uniform.is_some_and(|uniform| uniform.op == Op::Pack || encodes(self.sm, &uniform.op))
    }

    /// It is made of constants, of what is the same for the block, and of what is chosen.
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
                    // Only what changes belongs here.
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

    /// The sum that makes a carry, and its block.
    fn carry_of(&self, state: &State, carry: &Src) -> Option<(Value, BlockId)> {
        let v = carry.value().filter(|_| carry.mods == SrcMods::NONE)?;
        let Some(Def::Inst(b, i)) = state.defs[v.index()] else { return None };
        let sum = &self.func.block(b).insts[i as usize];
        match (sum.dsts.first(), sum.dsts.get(1)) {
            (Some(&Dst::Value(low)), Some(&Dst::Value(second))) if second == v => Some((low, b)),
            _ => None,
        }
    }

    /// Only chosen operations read the carry of a sum.
    fn keeps_carry(&self, state: &State, v: Value) -> bool {
        let Some(Def::Inst(b, i)) = state.defs[v.index()] else { return true };
        let Some(&Dst::Value(carry)) = self.func.block(b).insts[i as usize].dsts.get(1) else { return true };
        let readers = self.func.block(b).insts.iter().filter(|inst| {
            let is_chosen = |dst: Option<&Dst>| matches!(dst, Some(Dst::Value(v)) if state.chosen[v.index()]);
            is_chosen(inst.dsts.first()) && inst.uses().any(|src| src.value() == Some(carry))
        });
        readers.count() as u32 == self.uses[carry.index()]
    }

    /// Phis go together with their arguments, and operations with what they are made of and with carries.
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
        let mut readers: FxHashMap<Value, SmallVec<[Reader; 4]>> = FxHashMap::default();
        let chosen = &state.chosen;
        // Carries count as read through their sums.
        let mut note = |src: &Src, reader: Reader| {
            if let Some(v) = src.value().filter(|v| chosen[v.index()]) {
                readers.entry(v).or_default().push(reader);
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
        state.readers = readers;
    }

    /// The reader takes the value from a uniform register.
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
                // The branch would wait for what can only be made after the barrier.
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
                (reads_there(&inst.op)
                    && is_only(inst, v, is_special)
                    && takes_as(self.func, self.sm, inst, v))
                    || self.is_compare(state, (b, i as usize), inst)
            }
        }
    }

    /// The comparison is one of uniform registers, for the branch of its block alone.
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

/// ptxas's code has this operation with an operand in a uniform register.
fn reads_there(op: &Op) -> bool {
    matches!(
        op,
        Op::Iadd3 { .. }
            | Op::Imad { .. }
            | Op::Isetp { .. }
            | Op::Lop3 { .. }
            | Op::Lea { .. }
            | Op::Shf { .. }
            | Op::Sel
            | Op::R2ur
    )
}

impl State {
    fn choose(&mut self, v: Value) {
        self.chosen[v.index()] = true;
        self.candidates.push(v);
    }

    /// These alone stay candidates.
    fn keep(&mut self, kept: Vec<Value>) {
        self.candidates.iter().for_each(|v| self.chosen[v.index()] = false);
        kept.iter().for_each(|v| self.chosen[v.index()] = true);
        self.candidates = kept;
    }

    fn group_of(&self, v: Value) -> u32 {
        let mut at = v.0;
        while self.group[at as usize] != at {
            at = self.group[at as usize];
        }
        at
    }

    fn join(&mut self, a: Value, b: Value) {
        let (a, b) = (self.group_of(a), self.group_of(b));
        self.group[a as usize] = b;
    }
}
