//! Finds phis that always have the same value, in loops as well: pointers or counters that advance together.

use super::takes_part;
use crate::ori::cfg::Cfg;
use crate::ori::defs::Defs;
use crate::ori::ir::{BlockId, Dst, Function, Inst, Phi, Src, SrcKind, Value};
use crate::phase::edit::Replacements;
use rustc_hash::FxHashMap;

/// The number of values that may be compared for one pair of phis.
const STEPS: u32 = 64;

/// The number of phis of a block with which another phi of the block is compared.
const CANDIDATES: usize = 16;

/// For each phi that always has the same value as an earlier phi of its block: that phi.
pub(super) fn equal_phis(func: &Function, cfg: &Cfg, defs: &Defs) -> Replacements {
    let mut replaced = Replacements::new(func);
    let several = |b: &&BlockId| func.block(**b).phis.len() > 1;
    if !cfg.order.iter().any(|b| several(&b)) {
        return replaced;
    }
    let mut equality = Equality::new(func, cfg, defs);
    for &b in cfg.order.iter().filter(several) {
        let mut kept: Vec<&Phi> = Vec::new();
        for phi in &func.block(b).phis {
            let like = |earlier: &&&Phi| func.value(earlier.dst) == func.value(phi.dst);
            let first =
                kept.iter().filter(like).take(CANDIDATES).find(|first| equality.holds(first.dst, phi.dst));
            match first {
                Some(first) => replaced.insert(phi.dst, first.dst.into()),
                None => kept.push(phi),
            }
        }
    }
    replaced
}

/// Two values are equal if equal operations compute them from equal values, or if they are phis of one block with equal
/// arguments. Around a loop, the question leads back to itself; then the answer is yes, unless a difference is found
/// elsewhere. Wherever both values are available, they are from the same iteration.
struct Equality<'f> {
    func: &'f Function,
    defs: &'f Defs,
    /// The block of each phi, and its position there.
    phis: FxHashMap<Value, (BlockId, usize)>,
    /// The pairs that are taken to be equal.
    assumed: Vec<(Value, Value)>,
    steps: u32,
}

impl<'f> Equality<'f> {
    fn new(func: &'f Function, cfg: &Cfg, defs: &'f Defs) -> Self {
        let phis = cfg
            .order
            .iter()
            .flat_map(|&b| func.block(b).phis.iter().enumerate().map(move |(i, phi)| (phi.dst, (b, i))));
        Equality { func, defs, phis: phis.collect(), assumed: Vec::new(), steps: 0 }
    }

    fn holds(&mut self, x: Value, y: Value) -> bool {
        self.assumed.clear();
        self.steps = STEPS;
        let mut work = vec![(x, y)];
        while let Some((x, y)) = work.pop() {
            if x == y || self.assumed.contains(&(x, y)) {
                continue;
            }
            if self.steps == 0 {
                return false;
            }
            self.steps -= 1;
            self.assumed.push((x, y));
            let equal = match (self.phis.get(&x), self.phis.get(&y)) {
                (Some(&(b, i)), Some(&(c, j))) => b == c && self.same_phi(b, i, j, &mut work),
                (None, None) => self.same_operation(x, y, &mut work),
                _ => false,
            };
            if !equal {
                return false;
            }
        }
        true
    }

    fn same_phi(&self, b: BlockId, i: usize, j: usize, work: &mut Vec<(Value, Value)>) -> bool {
        let phis = &self.func.block(b).phis;
        let arg = |(from, x): &(BlockId, Src)| {
            let (_, y) = phis[j].args.iter().find(|(block, _)| block == from)?;
            Some((*x, *y))
        };
        phis[i].args.iter().all(|entry| arg(entry).is_some_and(|(x, y)| same_operand(x, y, work)))
    }

    fn same_operation(&self, x: Value, y: Value, work: &mut Vec<(Value, Value)>) -> bool {
        let (Some(a), Some(b)) = (self.defs.inst(self.func, x), self.defs.inst(self.func, y)) else {
            return false;
        };
        let index = |inst: &Inst, v: Value| inst.dsts.iter().position(|dst| *dst == Dst::Value(v));
        a.op == b.op
            && takes_part(a)
            && takes_part(b)
            && a.srcs.len() == b.srcs.len()
            && index(a, x) == index(b, y)
            && self.func.value(x) == self.func.value(y)
            && a.srcs.iter().zip(&b.srcs).all(|(x, y)| same_operand(*x, *y, work))
    }
}

/// Whether two operands are equal if the values in `work` are.
fn same_operand(x: Src, y: Src, work: &mut Vec<(Value, Value)>) -> bool {
    match (x.kind, y.kind) {
        _ if x == y => true,
        (SrcKind::Value(v), SrcKind::Value(w)) if x.mods == y.mods => {
            work.push((v, w));
            true
        }
        (SrcKind::Part(v, part), SrcKind::Part(w, other)) if x.mods == y.mods && part == other => {
            work.push((v, w));
            true
        }
        _ => false,
    }
}
