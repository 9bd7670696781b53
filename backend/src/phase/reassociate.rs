//! Moves constants out of sums that are addresses: `(x + 80) + y` becomes `x + y`, and the accesses at that address add
//! 80 to their offsets.
//!
//! Elements of several arrays with the same index, for example arrays in a function's frame, then have one address and
//! differ only in their offsets, and so have elements at constant distances whose addresses the compiler of the PTX moved
//! out of a loop, and elements whose indices differ by constants after unrolling. They need one register, and scheduling
//! knows that the accesses do not overlap.
//!
//! A 64-bit address that is one value plus a constant, `x + 80`, becomes `x` in the same way. If a product is added to
//! such a sum, as in `(x + 80) + row * stride`, or a sum is shifted or multiplied by a constant, as in
//! `base + ((i + 3) << 2)`, the accesses at the new address add the 80 or the 12.
//!
//! Before and after: SSA. Sums, shifts and products are changed in place, and equal ones are merged; dead code
//! elimination removes unused ones.

use crate::CodegenError;
use crate::ori::cfg::Cfg;
use crate::ori::defs::Defs;
use crate::ori::ir::{BlockId, Dst, Function, Inst, Src, SrcKind, SrcMods, Value};
use crate::ori::memory::memory;
use crate::ori::op::{Op, ShfType};
use crate::phase::addresses::offset_mut;
use crate::phase::edit::{added, added_to_pair, known, shifted_pair};
use crate::phase::value_numbering;
use crate::phases::{Change, Context};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::hash::Hash;

/// The maximum number of nested sums that are followed for an address that is a value plus constants.
const DEEPEST: usize = 8;
/// Each term of a sum may take this fraction of the range of an access's offsets: one of three terms and a constant.
const SHARE: i64 = 4;

pub fn run(func: &mut Function, context: &Context<'_>) -> Result<Change, CodegenError> {
    let cfg = context.analyses.cfg(func);
    let (defs, uses) = (context.analyses.defs(func), context.analyses.uses(func));
    let rooms = Rooms::of(func, cfg, defs, uses);
    let mut bases = Bases::default();
    let mut moved = vec![0; func.values.len()];
    for &b in &cfg.order {
        for i in 0..func.block(b).insts.len() {
            let Some(Dst::Value(v)) = func.block(b).insts[i].dsts.first().copied() else { continue };
            if let Some(room) = rooms.address(v, uses) {
                moved[v.index()] = match func.value(v).width {
                    1 => word(func, defs, &mut bases, &moved, room, (b, i)),
                    _ => pair(func, defs, uses, &mut bases, &rooms, room, (b, i)),
                };
            }
        }
    }
    if moved.iter().all(|constant| *constant == 0) {
        return Ok(Change::Nothing);
    }
    for &b in &cfg.order {
        for inst in &mut func.block_mut(b).insts {
            for n in 0..2 {
                if let Some(v) = address(inst, n)
                    && let Some((offset, _)) = offset_mut(&mut inst.op, n)
                {
                    *offset += moved[v.index()];
                }
            }
        }
    }
    value_numbering::merge(func, context, defs);
    Ok(Change::Something)
}

/// Moves constants out of a 32-bit address. Returns their sum, with those that have been moved out of its terms.
fn word(
    func: &mut Function,
    defs: &Defs,
    bases: &mut Bases,
    moved: &[i32],
    room: &Room,
    (b, i): (BlockId, usize),
) -> i32 {
    let inst = &func.block(b).insts[i];
    let (srcs, constant, total) = if let Some((n, factor)) = constant_factor(inst) {
        let (base, constant) = bases.word(func, defs, inst.srcs[n]);
        let mut srcs = inst.srcs.clone();
        srcs[n] = base;
        let addend = addend_of_product(inst).map_or(0, |addend| moved[addend.index()]);
        (srcs, constant.wrapping_mul(factor), addend)
    } else if let Some(addend) = addend_of_product(inst) {
        return moved[addend.index()];
    } else if is_sum(inst) {
        let (terms, constant) = bases.without_constants(func, defs, &inst.srcs);
        (terms, constant, inst.srcs.iter().filter_map(Src::value).map(|term| moved[term.index()]).sum())
    } else {
        return 0;
    };
    let constant = constant as i32;
    if constant == 0 || !room.takes(i64::from(total) + i64::from(constant)) {
        return total;
    }
    func.block_mut(b).insts[i].srcs = srcs;
    total + constant
}

/// As [`word`], for a 64-bit address.
fn pair(
    func: &mut Function,
    defs: &Defs,
    uses: &[u32],
    bases: &mut Bases,
    rooms: &Rooms,
    room: &Room,
    (b, i): (BlockId, usize),
) -> i32 {
    let mut total = 0;
    if let Some((halves, constant)) = base_of_pair(func, defs, uses, &func.block(b).insts[i])
        && room.takes(constant)
    {
        func.block_mut(b).insts[i].srcs = SmallVec::from_slice(&halves);
        total = constant;
    }
    if let Some(sum) = PairSum::of(func, defs, uses, &func.block(b).insts[i]) {
        for term in sum.terms(func) {
            total += bases.moved_from_shift(func, defs, rooms.shift(&term, uses), &term);
        }
        let (terms, constant) = sum.without_constants(func, defs, bases);
        if constant != 0 && room.takes(total + constant) {
            sum.set_terms(func, &terms);
            total += constant;
        }
    }
    total as i32
}

/// The range of constants that all accesses through an address can add to their offsets.
#[derive(Clone)]
struct Room {
    /// How often the value is used as an address, or in the computation of a value that is only an address.
    uses: u32,
    least: i64,
    most: i64,
}

impl Default for Room {
    fn default() -> Room {
        Room { uses: 0, least: i64::MIN, most: i64::MAX }
    }
}

impl Room {
    fn add(&mut self, least: i64, most: i64) {
        self.uses += 1;
        self.least = self.least.max(least);
        self.most = self.most.min(most);
    }

    fn takes(&self, constant: i64) -> bool {
        (self.least..=self.most).contains(&constant)
    }
}

struct Rooms {
    /// Indexed by value.
    values: Vec<Room>,
    /// The halves of 64-bit shifts.
    shifts: FxHashMap<[Value; 2], Room>,
}

impl Rooms {
    fn of(func: &Function, cfg: &Cfg, defs: &Defs, uses: &[u32]) -> Rooms {
        let values = vec![Room::default(); func.values.len()];
        let mut rooms = Rooms { values, shifts: FxHashMap::default() };
        // The computation of an address comes before the accesses.
        for inst in cfg.order.iter().rev().flat_map(|&b| func.block(b).insts.iter().rev()) {
            for n in 0..2 {
                let mut op = inst.op;
                if let Some(v) = address(inst, n)
                    && let Some((offset, offsets)) = offset_mut(&mut op, n)
                {
                    let offset = i64::from(*offset);
                    rooms.values[v.index()].add(offsets.start() - offset, offsets.end() - offset);
                }
            }
            if let Some(Dst::Value(v)) = inst.dsts.first()
                && let Some(own) = rooms.address(*v, uses).cloned()
            {
                rooms.add_terms(func, defs, uses, inst, &own);
            }
        }
        rooms
    }

    /// `inst` computes a value that is only an address.
    fn add_terms(&mut self, func: &Function, defs: &Defs, uses: &[u32], inst: &Inst, own: &Room) {
        let (least, most) = (own.least / SHARE, own.most / SHARE);
        if let Some(addend) = addend_of_product(inst) {
            self.values[addend.index()].add(own.least, own.most);
        } else if is_sum(inst) {
            for src in &inst.srcs {
                if let Some(v) = src.value()
                    && defs.of_src(func, src).is_some_and(|term| constant_factor(term).is_some())
                {
                    self.values[v.index()].add(least, most);
                }
            }
        } else if let Some(sum) = PairSum::of(func, defs, uses, inst) {
            let terms = sum.terms(func);
            // Otherwise the address is a value plus constants.
            if terms.iter().filter(|term| known(&term[0]).is_none()).count() < 2 {
                return;
            }
            for term in &terms {
                if let [Some(low), Some(high)] = term.map(|half| half.value())
                    && shifted_pair(func, defs, term).is_some()
                {
                    self.shifts.entry([low, high]).or_default().add(least, most);
                }
            }
        }
    }

    /// The room of a value that is only an address.
    fn address(&self, v: Value, uses: &[u32]) -> Option<&Room> {
        let room = &self.values[v.index()];
        (room.uses > 0 && room.uses == uses[v.index()]).then_some(room)
    }

    /// The room of a 64-bit shift whose result is only added to addresses.
    fn shift(&self, [low, high]: &[Src; 2], uses: &[u32]) -> Option<&Room> {
        let halves = [low.value()?, high.value()?];
        self.shifts.get(&halves).filter(|room| halves.iter().all(|half| uses[half.index()] == room.uses))
    }
}

/// For each operand that has been examined, the value to which it adds a constant.
#[derive(Default)]
struct Bases {
    words: FxHashMap<Src, (Src, i64)>,
    pairs: FxHashMap<[Src; 2], ([Src; 2], i64)>,
    /// The constants that have been moved out of 64-bit shifts.
    shifts: FxHashMap<[Src; 2], i64>,
}

impl Bases {
    fn word(&mut self, func: &Function, defs: &Defs, of: Src) -> (Src, u32) {
        let sum = |src| added(func, defs, src).map(|(base, add)| (base, i64::from(add)));
        let (base, constant) = base_of(&mut self.words, of, sum);
        (base, constant as u32)
    }

    fn pair(&mut self, func: &Function, defs: &Defs, of: [Src; 2]) -> ([Src; 2], i64) {
        base_of(&mut self.pairs, of, |halves| added_to_pair(func, defs, &halves))
    }

    /// The terms of a sum, and the sum of the constants among them and in nested sums with one term.
    fn without_constants(&mut self, func: &Function, defs: &Defs, srcs: &[Src]) -> (SmallVec<[Src; 4]>, u32) {
        let mut terms: SmallVec<[Src; 4]> = srcs.iter().copied().collect();
        let mut constant = 0u32;
        for term in &mut terms {
            let (base, add) = self.word(func, defs, *term);
            (*term, constant) = (base, constant.wrapping_add(add));
            if let Some(bits) = known(term) {
                (*term, constant) = (Src::ZERO, constant.wrapping_add(bits));
            }
        }
        (terms, constant)
    }

    /// Moves the constant out of a 64-bit value that is shifted, if that has not been done, and returns it.
    fn moved_from_shift(
        &mut self,
        func: &mut Function,
        defs: &Defs,
        room: Option<&Room>,
        shift: &[Src; 2],
    ) -> i64 {
        let Some(room) = room else { return 0 };
        if let Some(moved) = self.shifts.get(shift) {
            return *moved;
        }
        let Some((source, by)) = shifted_pair(func, defs, shift) else { return 0 };
        let (base, constant) = self.pair(func, defs, source);
        let constant = constant.checked_mul(1 << by).filter(|constant| room.takes(*constant)).unwrap_or(0);
        if constant != 0 {
            for (half, places) in shift.iter().zip([&[(0, 0)][..], &[(0, 0), (2, 1)]]) {
                let Some((b, i)) = half.value().and_then(|v| defs.site(v)) else { continue };
                for &(operand, part) in places {
                    func.block_mut(b).insts[i].srcs[operand] = base[part];
                }
            }
        }
        self.shifts.insert(*shift, constant);
        constant
    }
}

/// The value to which nested sums add constants, and the sum of these. `sum`: the value and the constant of one sum.
fn base_of<T: Copy + Eq + Hash>(
    known: &mut FxHashMap<T, (T, i64)>,
    of: T,
    sum: impl Fn(T) -> Option<(T, i64)>,
) -> (T, i64) {
    let (mut base, mut constant) = (of, 0i64);
    while let Some((next, add)) = known.get(&base).copied().or_else(|| sum(base)) {
        (base, constant) = (next, constant.wrapping_add(add));
    }
    if base != of {
        known.insert(of, (base, constant));
    }
    (base, constant)
}

/// The operand that an instruction multiplies by a constant, and the constant, if it does nothing else but an addition.
fn constant_factor(inst: &Inst) -> Option<(usize, u32)> {
    let plain = |n: usize| inst.srcs[n].mods == SrcMods::NONE && known(&inst.srcs[n]).is_none();
    let found = match inst.op {
        Op::Shf { right: false, wrap: false, hi: false, ty: ShfType::U32 } if inst.srcs[2] == Src::ZERO => {
            (0, 1u32.checked_shl(known(&inst.srcs[1])?)?)
        }
        Op::Imad { .. } => match (known(&inst.srcs[0]), known(&inst.srcs[1])) {
            (None, Some(by)) => (0, by),
            (Some(by), None) => (1, by),
            _ => return None,
        },
        _ => return None,
    };
    (is_alone(inst) && plain(found.0)).then_some(found)
}

/// Whether the first result is the only effect of an instruction.
fn is_alone(inst: &Inst) -> bool {
    inst.guard.is_true() && inst.dsts[1..].iter().all(|dst| *dst == Dst::Sink)
}

/// The value that an instruction adds to a product, if it does nothing else.
fn addend_of_product(inst: &Inst) -> Option<Value> {
    let is_product = match inst.op {
        Op::Imad { .. } => true,
        Op::ImadWide { x, .. } => !x,
        _ => false,
    };
    let alone = is_product && is_alone(inst);
    match inst.srcs.get(2)? {
        Src { kind: SrcKind::Value(v), mods: SrcMods::NONE } => Some(*v).filter(|_| alone),
        _ => None,
    }
}

/// The value that is source `n` of a memory operation.
fn address(inst: &Inst, n: usize) -> Option<Value> {
    memory(&inst.op)?;
    match inst.srcs.get(n)? {
        Src { kind: SrcKind::Value(v), mods: SrcMods::NONE } => Some(*v),
        _ => None,
    }
}

/// Whether an instruction only computes a 32-bit sum.
fn is_sum(inst: &Inst) -> bool {
    inst.op == (Op::Iadd3 { x: false }) && is_alone(inst)
}

/// For a pair that is a value plus constants and whose sums nothing else reads: the halves of the value, and the sum of
/// the constants.
fn base_of_pair(func: &Function, defs: &Defs, uses: &[u32], pack: &Inst) -> Option<([Src; 2], i64)> {
    let (Op::Pack, true, [low, high]) = (pack.op, pack.guard.is_true(), &pack.srcs[..]) else { return None };
    let is_read_once =
        |halves: &[Src; 2]| halves.iter().all(|half| half.value().is_some_and(|v| uses[v.index()] == 1));
    let (mut halves, mut constant) = ([*low, *high], 0);
    for _ in 0..DEEPEST {
        let Some((base, add)) = added_to_pair(func, defs, &halves).filter(|_| is_read_once(&halves)) else {
            break;
        };
        (halves, constant) = (base, constant + add);
    }
    (constant != 0).then_some((halves, constant))
}

/// The two additions of a 64-bit sum whose results only one `PACK` reads: block and position of each.
struct PairSum {
    low: (BlockId, usize),
    high: (BlockId, usize),
}

impl PairSum {
    fn of(func: &Function, defs: &Defs, uses: &[u32], pack: &Inst) -> Option<PairSum> {
        let (Op::Pack, [low, high]) = (pack.op, &pack.srcs[..]) else { return None };
        let only = |src: &Src| match src {
            Src { kind: SrcKind::Value(v), mods: SrcMods::NONE } => Some(*v).filter(|v| uses[v.index()] == 1),
            _ => None,
        };
        let sum = PairSum { low: defs.site(only(low)?)?, high: defs.site(only(high)?)? };
        let (low, high) = (sum.at(func, sum.low), sum.at(func, sum.high));
        let Some(Dst::Value(carry)) = low.dsts.get(1).copied() else { return None };
        let is_sum = [pack, low, high].iter().all(|inst| inst.guard.is_true())
            && (low.op, high.op) == (Op::Iadd3 { x: false }, Op::Iadd3 { x: true })
            && low.dsts[2..].iter().chain(&high.dsts[1..]).all(|dst| *dst == Dst::Sink)
            && high.srcs[3..] == [carry.into(), Src::FALSE]
            && uses[carry.index()] == 1;
        is_sum.then_some(sum)
    }

    fn at<'f>(&self, func: &'f Function, (b, i): (BlockId, usize)) -> &'f Inst {
        &func.block(b).insts[i]
    }

    /// The halves of each term.
    fn terms(&self, func: &Function) -> [[Src; 2]; 3] {
        let (low, high) = (self.at(func, self.low), self.at(func, self.high));
        [0, 1, 2].map(|k| [low.srcs[k], high.srcs[k]])
    }

    /// The terms without the constants in nested sums, and the sum of these.
    fn without_constants(&self, func: &Function, defs: &Defs, bases: &mut Bases) -> ([[Src; 2]; 3], i64) {
        let mut constant = 0;
        let terms = self.terms(func).map(|term| {
            let (base, add) = bases.pair(func, defs, term);
            constant += add;
            base
        });
        (terms, constant)
    }

    fn set_terms(&self, func: &mut Function, terms: &[[Src; 2]; 3]) {
        for (half, (b, i)) in [self.low, self.high].into_iter().enumerate() {
            let inst = &mut func.block_mut(b).insts[i];
            inst.srcs.iter_mut().zip(terms).for_each(|(src, term)| *src = term[half]);
        }
    }
}
