//! Fuses a product and the sum that reads it to a multiply-add, which rounds once, if neither has a rounding modifier.
//!
//! As in ptxas, there are four conditions: both are in one block; they agree about denormals; only the sum saturates;
//! and every use of the product is such a sum, so that the product itself is removed. Of two products, the first one is
//! fused. Bodies of inlined calls have blocks of their own ([`crate::inline`]).
//!
//! Construction records the values that are results of such statements ([`crate::ori::ir::Facts::unrounded`]). No
//! earlier phase may have merged the values of different statements.

use crate::CodegenError;
use crate::ori::defs::Defs;
use crate::ori::ir::{BlockId, Function, Inst, Src, SrcKind, Value};
use crate::ori::op::{HalfRead, HalfZeros, Op};
use crate::ori::signature::fold_modifiers;
use crate::phases::{Change, Context};
use rustc_hash::FxHashSet;

pub fn run(func: &mut Function, context: &Context<'_>) -> Result<Change, CodegenError> {
    let unrounded = std::mem::take(&mut func.facts.unrounded);
    if unrounded.is_empty() {
        return Ok(Change::Nothing);
    }
    let cfg = context.analyses.cfg(func);
    let mut uses = context.analyses.uses(func).to_vec();
    // The readers of one float of a pair read its product, not the pair. An unused pair is not a use of it.
    for inst in cfg.order.iter().flat_map(|&b| &func.block(b).insts) {
        if inst.op == Op::Pack && inst.defs().all(|pair| uses[pair.index()] == 0) {
            for product in inst.srcs.iter().filter_map(Src::value) {
                uses[product.index()] -= 1;
            }
        }
    }
    let contraction = Contraction { defs: context.analyses.defs(func), unrounded };
    // For each product, the number of uses with which it could be fused.
    let mut parts = vec![0u32; func.values.len()];
    for &b in &cfg.order {
        for inst in &func.block(b).insts {
            for k in 0..2 {
                if let Some((product, _)) = contraction.contracted(func, b, inst, k) {
                    parts[product.index()] += 1;
                }
            }
        }
    }
    let mut products = FxHashSet::default();
    for &b in &cfg.order {
        for i in 0..func.block(b).insts.len() {
            let inst = &func.block(b).insts[i];
            let found = (0..2)
                .filter_map(|k| contraction.contracted(func, b, inst, k))
                .find(|(product, _)| parts[product.index()] == uses[product.index()]);
            if let Some((product, new)) = found {
                if products.insert(product) {
                    func.facts.fused.push(new.src);
                }
                func.block_mut(b).insts[i] = new;
            }
        }
    }
    func.facts.fused.sort_unstable();
    Ok(Change::Something)
}

struct Contraction<'a> {
    defs: &'a Defs,
    /// In statement order.
    unrounded: Vec<Value>,
}

impl Contraction<'_> {
    /// The product that defines operand `k` of a sum in `b`, and the multiply-add of the two.
    fn contracted(&self, func: &Function, b: BlockId, sum: &Inst, k: usize) -> Option<(Value, Inst)> {
        let [x, y] = sum.srcs[..] else { return None };
        let (term, other) = if k == 0 { (x, y) } else { (y, x) };
        let SrcKind::Value(v) = term.kind else { return None };
        let is_unrounded = |v: Value| self.unrounded.binary_search(&v).is_ok();
        let product = self.defs.inst(func, v)?;
        let op = multiply_add(product.op, sum.op)?;
        // If the guard of a product is false, its value is another one.
        if self.defs.site(v)?.0 != b
            || !product.guard.is_true()
            || !sum.defs().all(is_unrounded)
            || !is_unrounded(v)
            || other.kind == term.kind
            || [term, other].iter().chain(&product.srcs).any(|src| src.mods.abs)
        {
            return None;
        }
        let mut factors = [product.srcs[0], product.srcs[1]];
        if term.mods.neg {
            // The two halves of a constant have separate sign bits.
            let at = factors.iter().position(|src| src.value().is_some())?;
            factors[at] = factors[at].neg();
        }
        let mut new = Inst { op, srcs: [factors[0], factors[1], other].into_iter().collect(), ..sum.clone() };
        fold_modifiers(&mut new);
        Some((v, new))
    }
}

/// The operation that replaces a product and the sum that reads it.
fn multiply_add(product: Op, sum: Op) -> Option<Op> {
    match (product, sum) {
        (Op::Fmul { ftz: one, sat: false, round }, Op::Fadd { ftz, sat, .. }) if one == ftz => {
            Some(Op::Ffma { round, ftz, sat })
        }
        (Op::Fmul2 { ftz: one, round }, Op::Fadd2 { ftz, .. }) if one == ftz => {
            Some(Op::Ffma2 { ftz, round })
        }
        (Op::Dmul { round }, Op::Dadd { .. }) => Some(Op::Dfma { round }),
        (
            Op::Hmul2 { bf16: one, ftz: flushes, sat: false },
            Op::Hadd2 { bf16, ftz, sat, f32: false, half: HalfRead::Own },
        ) if (one, flushes) == (bf16, ftz) => {
            let zeros = if ftz { HalfZeros::Ftz } else { HalfZeros::Zero };
            Some(Op::Hfma2 { bf16, zeros, sat, relu: false })
        }
        _ => None,
    }
}
