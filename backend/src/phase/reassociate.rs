//! Moves constants out of sums that are addresses: `(x + 80) + y` becomes `x + y`, and the accesses at that address add
//! 80 to their offsets.
//!
//! Elements of several arrays with the same index, for example arrays in a function's frame, then have one address and
//! differ only in their offsets, and so have elements at constant distances whose addresses the compiler of the PTX moved
//! out of a loop. They need one register, and scheduling knows that the accesses do not overlap.
//!
//! A 64-bit address that is one value plus a constant, `x + 80`, becomes `x` in the same way. If a product is added to
//! such a sum, as in `(x + 80) + row * stride`, the accesses at the new address add the 80.
//!
//! Before and after: SSA. Sums are changed in place, and equal ones are merged; dead code elimination removes unused
//! sums.

use crate::CodegenError;
use crate::ori::cfg::Cfg;
use crate::ori::defs::Defs;
use crate::ori::ir::{BlockId, Dst, Function, Inst, Src, SrcKind, SrcMods, Value};
use crate::ori::memory::memory;
use crate::ori::op::Op;
use crate::phase::addresses::offset_mut;
use crate::phase::edit::{added, added_to_pair, known};
use crate::phase::value_numbering;
use crate::phases::{Change, Context};
use smallvec::SmallVec;

/// The maximum number of nested sums that are followed for one address.
const DEEPEST: usize = 8;

pub fn run(func: &mut Function, context: &Context<'_>) -> Result<Change, CodegenError> {
    let cfg = context.analyses.cfg(func);
    let (defs, uses) = (context.analyses.defs(func), context.analyses.uses(func));
    let rooms = rooms(func, cfg, uses);
    let mut moved = vec![0; func.values.len()];
    for &b in &cfg.order {
        for i in 0..func.block(b).insts.len() {
            let inst = &func.block(b).insts[i];
            let Some(Dst::Value(v)) = inst.dsts.first().copied() else { continue };
            let room = &rooms[v.index()];
            if room.uses == 0 || room.uses != uses[v.index()] {
                continue;
            }
            if let Some(addend) = addend_of_product(inst) {
                moved[v.index()] = moved[addend.index()];
            } else if is_sum(func, v, inst) {
                let (terms, constant) = without_constants(func, defs, &inst.srcs);
                if constant != 0 && room.takes(i64::from(constant)) {
                    func.block_mut(b).insts[i].srcs = terms;
                    moved[v.index()] = constant;
                }
            } else {
                let mut total = 0;
                if let Some((halves, constant)) = base_of_pair(func, defs, uses, inst)
                    && constant != 0
                    && room.takes(constant)
                {
                    func.block_mut(b).insts[i].srcs = SmallVec::from_slice(&halves);
                    total = constant;
                }
                if let Some(sum) = PairSum::of(func, defs, uses, &func.block(b).insts[i]) {
                    let (terms, constant) = sum.without_constants(func, defs);
                    if constant != 0 && room.takes(total + constant) {
                        sum.set_terms(func, &terms);
                        total += constant;
                    }
                }
                moved[v.index()] = total as i32;
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

/// The range of constants that all accesses through an address can add to their offsets.
#[derive(Clone)]
struct Room {
    /// How often the value is used as an address, or is added to a product that is only an address.
    uses: u32,
    least: i64,
    most: i64,
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

/// Indexed by value.
fn rooms(func: &Function, cfg: &Cfg, uses: &[u32]) -> Vec<Room> {
    let mut rooms = vec![Room { uses: 0, least: i64::MIN, most: i64::MAX }; func.values.len()];
    // A product comes after its addend, and after it the accesses at its address.
    for inst in cfg.order.iter().rev().flat_map(|&b| func.block(b).insts.iter().rev()) {
        for n in 0..2 {
            let mut op = inst.op;
            if let Some(v) = address(inst, n)
                && let Some((offset, offsets)) = offset_mut(&mut op, n)
            {
                let offset = i64::from(*offset);
                rooms[v.index()].add(offsets.start() - offset, offsets.end() - offset);
            }
        }
        if let Some(addend) = addend_of_product(inst)
            && let Some(Dst::Value(v)) = inst.dsts.first()
        {
            let own = rooms[v.index()].clone();
            if own.uses == uses[v.index()] {
                rooms[addend.index()].add(own.least, own.most);
            }
        }
    }
    rooms
}

/// The value that an instruction adds to a product, if it does nothing else.
fn addend_of_product(inst: &Inst) -> Option<Value> {
    let is_product = match inst.op {
        Op::Imad { .. } => true,
        Op::ImadWide { x, .. } => !x,
        _ => false,
    };
    let alone = is_product && inst.guard.is_true() && inst.dsts[1..].iter().all(|dst| *dst == Dst::Sink);
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

/// Whether an instruction only computes `v` as a 32-bit sum.
fn is_sum(func: &Function, v: Value, inst: &Inst) -> bool {
    inst.op == (Op::Iadd3 { x: false })
        && inst.guard.is_true()
        && inst.dsts[1..].iter().all(|dst| *dst == Dst::Sink)
        && func.value(v).width == 1
}

/// For a pair that is a value plus constants and whose sums nothing else reads: the halves of the value, and the sum of
/// the constants.
fn base_of_pair(func: &Function, defs: &Defs, uses: &[u32], pack: &Inst) -> Option<([Src; 2], i64)> {
    let (Op::Pack, true, [low, high]) = (pack.op, pack.guard.is_true(), &pack.srcs[..]) else { return None };
    let is_read_once =
        |halves: &[Src; 2]| halves.iter().all(|half| half.value().is_some_and(|v| uses[v.index()] == 1));
    Some(base_of(func, defs, [*low, *high], is_read_once))
}

/// The halves of a term without the constants in nested sums that `may` be left out, and the sum of these.
fn base_of(
    func: &Function,
    defs: &Defs,
    mut halves: [Src; 2],
    may: impl Fn(&[Src; 2]) -> bool,
) -> ([Src; 2], i64) {
    let mut constant = 0;
    for _ in 0..DEEPEST {
        let Some((base, add)) = added_to_pair(func, defs, &halves).filter(|_| may(&halves)) else { break };
        (halves, constant) = (base, constant + add);
    }
    (halves, constant)
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

    /// The halves of each term, and the sum of the constants in nested sums.
    fn without_constants(&self, func: &Function, defs: &Defs) -> ([[Src; 2]; 3], i64) {
        let (low, high) = (self.at(func, self.low), self.at(func, self.high));
        let mut terms = [0, 1, 2].map(|k| [low.srcs[k], high.srcs[k]]);
        let mut constant = 0;
        for term in &mut terms {
            let (base, add) = base_of(func, defs, *term, |_| true);
            (*term, constant) = (base, constant + add);
        }
        (terms, constant)
    }

    fn set_terms(&self, func: &mut Function, terms: &[[Src; 2]; 3]) {
        for (half, (b, i)) in [self.low, self.high].into_iter().enumerate() {
            let inst = &mut func.block_mut(b).insts[i];
            inst.srcs.iter_mut().zip(terms).for_each(|(src, term)| *src = term[half]);
        }
    }
}

/// The terms of a sum, and the sum of the constants among them and in nested sums with one term.
fn without_constants(func: &Function, defs: &Defs, srcs: &[Src]) -> (SmallVec<[Src; 4]>, i32) {
    let mut terms: SmallVec<[Src; 4]> = srcs.iter().copied().collect();
    let mut constant = 0u32;
    for term in &mut terms {
        for _ in 0..DEEPEST {
            if let Some(bits) = known(term) {
                constant = constant.wrapping_add(bits);
                *term = Src::ZERO;
                break;
            }
            let Some((base, bits)) = added(func, defs, *term) else { break };
            (*term, constant) = (base, constant.wrapping_add(bits));
        }
    }
    (terms, constant as i32)
}
