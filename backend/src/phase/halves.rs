//! Replaces operations on the halves of 64-bit integers by one operation, on targets that have it: sums, comparisons,
//! selections.
//!
//! Before and after: SSA. Targets with these operations have no `ISETP.EX`, so none remains. If the operands of a
//! comparison are not pairs, the comparison becomes comparisons of words whose results are combined. Sums and
//! selections of such operands stay on halves, which costs no more than building pairs.

use crate::CodegenError;
use crate::emit::encodes;
use crate::legalize::reversed;
use crate::ori::alias;
use crate::ori::cfg::Cfg;
use crate::ori::defs::{Defs, count_uses, for_each_use};
use crate::ori::dominators::Tree;
use crate::ori::ir::{BlockId, Dst, File, Function, Inst, Phi, Src, SrcKind, SrcMods, Value};
use crate::ori::memory::effect;
use crate::ori::op::{Bool, ICmp, Op, Sign, WideSign, lut};
use crate::phase::copy_propagation::whole_of;
use crate::phase::dead_code::remove_dead;
use crate::phase::edit::{Replacements, known, normalize_predicate};
use crate::phase::fold::decided_by_high;
use crate::phases::{Change, Context};
use rustc_hash::{FxHashMap, FxHashSet};

pub fn run(func: &mut Function, context: &Context<'_>) -> Result<Change, CodegenError> {
    let compare = Op::Isetp64 { cmp: ICmp::Lt, sign: WideSign::S64, bool_: Bool::And };
    if !encodes(sass::Sm(context.sm.number as u8), &compare) {
        return Ok(Change::Nothing);
    }
    let cfg = context.analyses.cfg(func);
    // Dead instructions do not count as readers.
    remove_dead(func, cfg);
    let mut halves = Halves {
        defs: Defs::new(func, cfg),
        uses: count_uses(func, cfg),
        whole: read_whole(func, cfg),
        needed: needed_halves(func, cfg),
        replaced: Replacements::new(func),
        pairs: FxHashMap::default(),
        dead: FxHashSet::default(),
        added: Vec::new(),
        tree: context.analyses.dominators(func),
        func,
    };
    for (n, &b) in cfg.order.iter().enumerate() {
        if n % 64 == 0 {
            (context.checkpoint)();
        }
        for i in 0..halves.func.block(b).insts.len() {
            halves.visit(b, i);
        }
    }
    halves.finish();
    let Halves { replaced, func, .. } = halves;
    replaced.apply(func, cfg);
    Ok(Change::Something)
}

/// For each value, whether some instruction reads all its registers at once.
fn read_whole(func: &Function, cfg: &Cfg) -> Vec<bool> {
    let mut whole = vec![false; func.values.len()];
    for &b in &cfg.order {
        for_each_use(func, b, |src| {
            if let SrcKind::Value(v) = src.kind {
                whole[v.index()] = true;
            }
        });
    }
    whole
}

/// For each value, two bits for its lower and its upper half: set if the half is used for more than computing the same
/// half in the next iteration of a loop. A value that is not two registers wide has both bits or none.
fn needed_halves(func: &Function, cfg: &Cfg) -> Vec<u8> {
    const BOTH: u8 = 3;
    let mut phis: FxHashMap<Value, &Phi> = FxHashMap::default();
    let mut work: Vec<(Value, u8)> = Vec::new();
    let read = |src: &Src, work: &mut Vec<(Value, u8)>| match src.kind {
        SrcKind::Part(v, part) if func.value(v).width == 2 => work.push((v, 1 << part)),
        _ => work.extend(src.value().map(|v| (v, BOTH))),
    };
    for &b in &cfg.order {
        let block = func.block(b);
        phis.extend(block.phis.iter().map(|phi| (phi.dst, phi)));
        let roots = block.insts.iter().filter(|inst| !alias::is_removable(&effect(&inst.op)));
        roots.flat_map(Inst::uses).for_each(|src| read(src, &mut work));
        if let Some(src) = block.term.operand() {
            read(src, &mut work);
        }
    }
    let defs = Defs::new(func, cfg);
    let mut needed = vec![0; func.values.len()];
    while let Some((v, halves)) = work.pop() {
        let more = halves & !needed[v.index()];
        needed[v.index()] |= halves;
        if more == 0 {
            continue;
        }
        let is_pair = func.value(v).width == 2;
        if let Some(phi) = phis.get(&v) {
            for (_, src) in &phi.args {
                match src.kind {
                    SrcKind::Value(v) if is_pair => work.push((v, more)),
                    _ => read(src, &mut work),
                }
            }
        } else if let Some(inst) = defs.inst(func, v) {
            let part = |k: usize| !is_pair || inst.op != Op::Pack || more & (1 << k) != 0;
            let srcs = inst.srcs.iter().enumerate().filter(|(k, _)| part(*k)).map(|(_, src)| src);
            srcs.chain([&inst.guard]).chain(&inst.old).for_each(|src| read(src, &mut work));
        }
    }
    needed
}

fn is_there(tree: &Tree, place: &Place, b: BlockId, i: usize) -> bool {
    if place.block == b { place.from <= i } else { tree.dominates(place.block, b) }
}

/// Two halves, low first.
type Pair = [Src; 2];

const NEGATED: SrcMods = SrcMods { neg: true, ..SrcMods::NONE };

/// The position where a value becomes available: an instruction of a block. The value is also available in the blocks
/// that this block dominates.
#[derive(Clone, Copy)]
struct Place {
    value: Value,
    block: BlockId,
    from: usize,
}

struct Halves<'a> {
    func: &'a mut Function,
    /// The definitions before this phase.
    defs: Defs,
    /// For each value, the number of its uses before this phase.
    uses: Vec<u32>,
    /// See [`read_whole`].
    whole: Vec<bool>,
    /// See [`needed_halves`].
    needed: Vec<u8>,
    replaced: Replacements,
    /// The pairs by their halves.
    pairs: FxHashMap<[SrcKind; 2], Place>,
    /// Instructions that are no longer used.
    dead: FxHashSet<(BlockId, usize)>,
    /// Instructions to insert before others. Pairs come first, then the order of insertion.
    added: Vec<(BlockId, usize, Inst)>,
    tree: &'a Tree,
}

impl Halves<'_> {
    fn visit(&mut self, b: BlockId, i: usize) {
        if !self.replaced.is_empty() {
            let inst = &mut self.func.block_mut(b).insts[i];
            inst.uses_mut().for_each(|src| *src = self.replaced.resolve(*src));
        }
        let inst = self.inst(b, i);
        match inst.op {
            Op::Isetp { ex: true, .. } => self.compare(b, i),
            Op::Iadd3 { x: true } => self.add(b, i),
            Op::Pack if inst.srcs.len() == 2 && inst.guard.is_true() => self.pack(b, i),
            _ => {}
        }
    }

    fn inst(&self, b: BlockId, i: usize) -> &Inst {
        &self.func.block(b).insts[i]
    }

    fn is_read_once(&self, v: Value) -> bool {
        self.uses.get(v.index()) == Some(&1)
    }

    /// Removes the dead instructions and inserts the new ones.
    fn finish(&mut self) {
        let mut touched: Vec<BlockId> =
            self.dead.iter().map(|(b, _)| *b).chain(self.added.iter().map(|(b, ..)| *b)).collect();
        touched.sort_unstable();
        touched.dedup();
        let mut added = std::mem::take(&mut self.added);
        added.sort_by_key(|(b, i, inst)| (*b, *i, inst.op != Op::Pack));
        let mut added = added.into_iter().peekable();
        for b in touched {
            let old = std::mem::take(&mut self.func.block_mut(b).insts);
            let mut new = Vec::with_capacity(old.len());
            for (i, inst) in old.into_iter().enumerate() {
                while let Some((.., inst)) = added.next_if(|(at, before, _)| (*at, *before) == (b, i)) {
                    new.push(inst);
                }
                if !self.dead.contains(&(b, i)) {
                    new.push(inst);
                }
            }
            // Instructions after the last one.
            while let Some((.., inst)) = added.next_if(|(at, ..)| *at == b) {
                new.push(inst);
            }
            self.func.block_mut(b).insts = new;
        }
    }

    /// The operand with these halves, if it exists.
    fn pair(&self, parts: Pair, b: BlockId, i: usize) -> Option<Src> {
        if let Some(whole) = whole_of(self.func, &parts) {
            return Some(whole);
        }
        if let [Some(low), Some(high)] = [known(&parts[0]), known(&parts[1])] {
            return Src::extended(low, high);
        }
        if parts.iter().any(|part| part.mods != SrcMods::NONE) {
            return None;
        }
        let place = self.pairs.get(&parts.map(|part| part.kind))?;
        is_there(self.tree, place, b, i).then(|| place.value.into())
    }

    /// The position where a pair of these halves can be built without copying a register, except for a known half:
    /// after the instructions of one block that define them.
    fn place(&self, parts: Pair) -> Option<(BlockId, usize)> {
        let mut place: Option<(BlockId, usize)> = None;
        for (k, part) in parts.iter().enumerate() {
            if known(part).is_some() {
                continue;
            }
            let value = match part.kind {
                SrcKind::Value(v) => v,
                SrcKind::Part(v, i)
                    if usize::from(i % 2) == k && self.whole.get(v.index()) == Some(&false) =>
                {
                    v
                }
                _ => return None,
            };
            let is_free = part.mods == SrcMods::NONE && self.func.value(value).file == File::R;
            let (b, i) = self.defs.site(value).filter(|_| is_free)?;
            place = match place {
                Some((block, from)) if block == b => Some((b, from.max(i + 1))),
                None => Some((b, i + 1)),
                Some(_) => return None,
            };
        }
        place
    }

    fn make_pair(&mut self, parts: Pair, (block, from): (BlockId, usize)) -> Src {
        let value = self.func.new_value(File::R, 2);
        let src = self.inst(block, from - 1).src;
        self.added.push((block, from, Inst::new(Op::Pack, &[Dst::Value(value)], &parts, src)));
        let place = Place { value, block, from };
        self.pairs.insert(parts.map(|part| part.kind), place);
        value.into()
    }

    /// [`Self::pair`] for an addend, which may be two registers of a wider load.
    fn addend(&mut self, parts: Pair, b: BlockId, i: usize) -> Option<Src> {
        if let Some(pair) = self.pair(parts, b, i) {
            return Some(pair);
        }
        match parts.map(|part| part.kind) {
            [SrcKind::Part(v, low), SrcKind::Part(w, high)] if v == w && low + 1 == high => {
                let place = self.place(parts)?;
                Some(self.make_pair(parts, place))
            }
            _ => None,
        }
    }

    /// Two pairs, of which the second may be an immediate or zero, and whether they were exchanged for this.
    fn two(&mut self, [x, y]: [Pair; 2], b: BlockId, i: usize) -> Option<([Src; 2], bool)> {
        // Both halves are checked before a pair is built.
        let is_apart =
            |this: &Self, parts: Pair| this.pair(parts, b, i).is_none() && this.place(parts).is_none();
        if is_apart(self, x) || is_apart(self, y) {
            return None;
        }
        let (x, y) = (self.addend(x, b, i)?, self.addend(y, b, i)?);
        match [x, y].map(|src| known(&src).is_some()).into() {
            (true, true) => None,
            (true, false) => Some(([y, x], true)),
            (false, _) => Some(([x, y], false)),
        }
    }

    fn pack(&mut self, b: BlockId, i: usize) {
        let inst = self.inst(b, i);
        let [Dst::Value(pair)] = inst.dsts[..] else { return };
        if self.func.value(pair).file != File::R {
            return;
        }
        let parts = [inst.srcs[0], inst.srcs[1]];
        // The halves have become those of a pair.
        if let Some(whole @ Src { kind: SrcKind::Value(v), .. }) = whole_of(self.func, &parts)
            && self.func.value(v).file == File::R
        {
            self.replaced.insert(pair, whole);
            self.dead.insert((b, i));
            return;
        }
        if self.select(b, i, parts) {
            return;
        }
        if parts.iter().all(|part| part.mods == SrcMods::NONE) {
            let place = Place { value: pair, block: b, from: i + 1 };
            self.pairs.entry(parts.map(|part| part.kind)).or_insert(place);
        }
    }

    /// Selects the pair if one predicate selects both halves, and the halves have no other use.
    fn select(&mut self, b: BlockId, i: usize, parts: Pair) -> bool {
        let sites = parts.map(|part| match part {
            Src { kind: SrcKind::Value(v), mods: SrcMods::NONE } if self.is_read_once(v) => self.defs.site(v),
            _ => None,
        });
        let [Some(low_site), Some(high_site)] = sites else { return false };
        let [low, high] = [low_site, high_site].map(|(at, index)| self.inst(at, index));
        let select = |inst: &Inst| inst.op == Op::Sel && inst.guard.is_true();
        if !select(low) || !select(high) || low.srcs[2] != high.srcs[2] {
            return false;
        }
        let condition = low.srcs[2];
        let arms = [[low.srcs[0], high.srcs[0]], [low.srcs[1], high.srcs[1]]];
        let Some(([yes, no], exchanged)) = self.two(arms, b, i) else { return false };
        let mut condition = if exchanged { condition.not() } else { condition };
        normalize_predicate(&mut condition);
        let inst = &mut self.func.block_mut(b).insts[i];
        *inst = Inst::new(Op::Sel64, &[inst.dsts[0]], &[yes, no, condition], inst.src);
        self.dead.extend([low_site, high_site]);
        true
    }

    /// Replaces a sum of the upper halves that takes the carry of the sum of the lower halves.
    fn add(&mut self, b: BlockId, i: usize) {
        let Some((low_index, [x, y])) = self.terms(b, i) else { return };
        let negated = |pair: &Pair| pair.iter().all(|half| half.mods == NEGATED);
        let plain = |pair: &Pair| pair.iter().all(|half| half.mods == SrcMods::NONE);
        let signs = [negated(&x), negated(&y)];
        if signs == [true, true] || ![x, y].iter().all(|pair| plain(pair) || negated(pair)) {
            return;
        }
        // The negation of a known lower half is already folded in a way that keeps the carry.
        if [x, y].iter().any(|pair| negated(pair) && known(&Src::new(pair[0].kind)).is_some()) {
            return;
        }
        let bare = |pair: Pair| pair.map(|half| Src::new(half.kind));
        // ptxas also computes negations on halves.
        if [x, y].iter().any(|pair| bare(*pair) == [Src::ZERO; 2]) {
            return;
        }
        let Some((mut terms, exchanged)) = self.two([bare(x), bare(y)], b, i) else { return };
        let signs = if exchanged { [signs[1], signs[0]] } else { signs };
        for (term, negated) in terms.iter_mut().zip(signs) {
            if negated {
                *term = term.neg();
            }
        }
        let pair = self.func.new_value(File::R, 2);
        let [low, high] = [low_index, i].map(|at| self.inst(b, at).dsts[0]);
        let inst = &mut self.func.block_mut(b).insts[i];
        *inst = Inst::new(Op::Iadd64, &[Dst::Value(pair)], &terms, inst.src);
        for (half, part) in [low, high].into_iter().zip(0..) {
            if let Dst::Value(half) = half {
                self.replaced.insert(half, Src::part(pair, part));
            }
        }
        self.dead.insert((b, low_index));
    }

    /// The two terms of a sum whose upper halves the instruction adds, and the index of the sum of the lower halves.
    fn terms(&self, b: BlockId, i: usize) -> Option<(usize, [Pair; 2])> {
        let high = self.inst(b, i);
        let [Dst::Value(_), ref outs @ ..] = high.dsts[..] else { return None };
        let carry = high.srcs.get(3).filter(|carry| carry.mods == SrcMods::NONE)?.value()?;
        let (at, index) = self.defs.site(carry)?;
        let low = self.inst(b, if at == b { index } else { return None });
        let [Dst::Value(low_sum), Dst::Value(carry_out), ref rest @ ..] = low.dsts[..] else { return None };
        // Otherwise the halves are used separately, and one of them is removed.
        let is_needed = |dst: &Dst| matches!(dst, Dst::Value(v) if self.needed[v.index()] != 0);
        let is_one = is_needed(&low.dsts[0])
            && is_needed(&high.dsts[0])
            && low.op == (Op::Iadd3 { x: false })
            && carry_out == carry
            && self.is_read_once(carry)
            && high.srcs.get(4).is_none_or(|second| *second == Src::FALSE)
            && outs.iter().chain(rest).all(|dst| *dst == Dst::Sink)
            && low.guard.is_true()
            && high.guard.is_true();
        let is_read =
            || (index + 1..=i).any(|at| self.inst(b, at).uses().any(|src| src.value() == Some(low_sum)));
        if !is_one || is_read() {
            return None;
        }
        let zero = (0..3).find(|k| low.srcs[*k] == Src::ZERO && high.srcs[*k] == Src::ZERO)?;
        // The complement of a known word.
        let upper = |src: Src| match known(&Src::new(src.kind)) {
            Some(bits) if src.mods == NEGATED => Src::imm(!bits),
            _ => src,
        };
        let pair = |k: usize| match low.srcs[k].mods {
            SrcMods::NONE => [low.srcs[k], upper(high.srcs[k])],
            _ => [low.srcs[k], high.srcs[k]],
        };
        Some((
            index,
            match zero {
                0 => [pair(1), pair(2)],
                1 => [pair(0), pair(2)],
                _ => [pair(0), pair(1)],
            },
        ))
    }

    /// Replaces a comparison of the upper halves that takes the result for the lower ones.
    fn compare(&mut self, b: BlockId, i: usize) {
        let inst = self.inst(b, i).clone();
        let Op::Isetp { cmp, sign, bool_, .. } = inst.op else { return };
        let source = |i: usize| inst.srcs.get(i).copied().unwrap_or(Src::TRUE);
        let (high, with, low) = ([source(0), source(1)], source(2), source(3));
        let replace = |this: &mut Self, op: Op, srcs: &[Src]| {
            let inst = &mut this.func.block_mut(b).insts[i];
            (inst.op, inst.srcs) = (op, srcs.iter().copied().collect());
        };
        if let SrcKind::Pred(holds) = low.kind {
            let cmp = decided_by_high(cmp, holds != low.mods.not);
            return replace(self, Op::Isetp { cmp, sign, bool_, ex: false }, &[high[0], high[1], with]);
        }
        if let Some((cmp, pairs)) = self.compared(b, i, cmp, high, low) {
            let sign = match sign {
                Sign::S32 => WideSign::S64,
                Sign::U32 => WideSign::U64,
            };
            return replace(self, Op::Isetp64 { cmp, sign, bool_ }, &[pairs[0], pairs[1], with]);
        }
        // If the upper halves are equal, the lower halves decide.
        let plain = |cmp: ICmp, bool_: Bool| Op::Isetp { cmp, sign, bool_, ex: false };
        let (op, low) = match cmp {
            ICmp::F | ICmp::T => (plain(cmp, Bool::And), Src::TRUE),
            ICmp::Eq => (plain(ICmp::Eq, Bool::And), low),
            ICmp::Ne => (plain(ICmp::Ne, Bool::Or), low),
            ICmp::Lt | ICmp::Le | ICmp::Gt | ICmp::Ge => {
                let equal = self.func.new_value(File::P, 1);
                let dsts = [Dst::Value(equal), Dst::Sink];
                let srcs = [high[0], high[1], low];
                self.added.push((b, i, Inst::new(plain(ICmp::Eq, Bool::And), &dsts, &srcs, inst.src)));
                (plain(decided_by_high(cmp, false), Bool::Or), equal.into())
            }
        };
        let neutral = bool_ == Bool::And && with.is_true();
        if neutral && inst.dsts[1..].iter().all(|dst| *dst == Dst::Sink) {
            return replace(self, op, &[high[0], high[1], low]);
        }
        let holds = self.func.new_value(File::P, 1);
        let dsts = [Dst::Value(holds), Dst::Sink];
        self.added.push((b, i, Inst::new(op, &dsts, &[high[0], high[1], low], inst.src)));
        let combined = |holds: u8| match bool_ {
            Bool::And => holds & lut::B,
            Bool::Or => holds | lut::B,
            Bool::Xor => holds ^ lut::B,
        };
        let op = Op::Plop3 { lut: combined(lut::A), lut2: combined(!lut::A) };
        replace(self, op, &[holds.into(), with, Src::TRUE]);
    }

    /// The operands and the comparison, if the lower halves are compared in the same way.
    fn compared(
        &mut self,
        b: BlockId,
        i: usize,
        cmp: ICmp,
        high: [Src; 2],
        low: Src,
    ) -> Option<(ICmp, Pair)> {
        let result = low.value().filter(|_| low.mods == SrcMods::NONE)?;
        let (at, index) = self.defs.site(result)?;
        let test = self.inst(at, index);
        let Op::Isetp { cmp: low_cmp, sign, bool_: Bool::And, ex: false } = test.op else { return None };
        let is_plain = test.dsts.first() == Some(&Dst::Value(result))
            && test.guard.is_true()
            && test.srcs.get(2).is_none_or(Src::is_true);
        let is_equality = matches!(cmp, ICmp::Eq | ICmp::Ne);
        if !is_plain || (sign != Sign::U32 && !is_equality) {
            return None;
        }
        let low = match (low_cmp == cmp, low_cmp == reversed(cmp)) {
            (true, _) => [test.srcs[0], test.srcs[1]],
            (_, true) => [test.srcs[1], test.srcs[0]],
            _ => return None,
        };
        let lone = self.is_read_once(result) && test.defs().count() == 1;
        let pairs = [0, 1].map(|k| [low[k], high[k]]);
        // A later phase folds it.
        if pairs.as_flattened().iter().all(|half| known(half).is_some()) {
            return None;
        }
        // The alternatives are two more comparisons of words, or two pairs for each of which half must be filled.
        let found = pairs.map(|parts| self.pair(parts, b, i));
        let places = pairs.map(|parts| self.place(parts));
        if (0..2).any(|k| found[k].is_none() && places[k].is_none()) {
            return None;
        }
        let [x, y] = [0, 1].map(|k| match (self.pair(pairs[k], b, i), places[k]) {
            (Some(pair), _) => pair,
            (None, Some(place)) => self.make_pair(pairs[k], place),
            (None, None) => Src::ZERO,
        });
        if lone {
            self.dead.insert((at, index));
        }
        match x.kind {
            SrcKind::Imm(_) => Some((reversed(cmp), [y, x])),
            _ => Some((cmp, [x, y])),
        }
    }
}
