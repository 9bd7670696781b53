//! A product and the sum that reads it become one multiply-add, which rounds once, where neither names a rounding.
//!
//! As ptxas does: both are in one block, they agree about denormals, only the sum saturates, and whatever reads the
//! product is such a sum, so that the product itself goes. Of two products the first one goes. Bodies that took the place of
//! calls have blocks of their own ([`crate::inline`]).
//!
//! Which values are results of such statements is noted where the function is built
//! ([`crate::ori::ir::Facts::unrounded`]); nothing may have given other statements their values before.

use crate::CodegenError;
use crate::ori::ir::{BlockId, Function, Inst, SrcKind, Value};
use crate::ori::op::Op;
use crate::ori::signature::fold_modifiers;
use crate::phase::edit::{Defs, count_uses};
use crate::phases::Context;

pub fn run(func: &mut Function, context: &Context<'_>) -> Result<(), CodegenError> {
    let unrounded = std::mem::take(&mut func.facts.unrounded);
    if unrounded.is_empty() {
        return Ok(());
    }
    let cfg = context.analyses.cfg(func);
    let uses = count_uses(func, cfg);
    let contraction = Contraction { defs: Defs::new(func, cfg), unrounded };
    // Readers of each product that it could be part of.
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
    for &b in &cfg.order {
        for i in 0..func.block(b).insts.len() {
            let inst = &func.block(b).insts[i];
            let found = (0..2)
                .filter_map(|k| contraction.contracted(func, b, inst, k))
                .find(|(product, _)| parts[product.index()] == uses[product.index()]);
            if let Some((_, new)) = found {
                func.block_mut(b).insts[i] = new;
            }
        }
    }
    Ok(())
}

struct Contraction {
    defs: Defs,
    /// In their order.
    unrounded: Vec<Value>,
}

impl Contraction {
    /// The product that operand `k` of a sum in `b` is, and the multiply-add of the two.
    fn contracted(&self, func: &Function, b: BlockId, sum: &Inst, k: usize) -> Option<(Value, Inst)> {
        let [x, y] = sum.srcs[..] else { return None };
        let (term, other) = if k == 0 { (x, y) } else { (y, x) };
        let SrcKind::Value(v) = term.kind else { return None };
        let is_unrounded = |v: Value| self.unrounded.binary_search(&v).is_ok();
        let product = self.defs.inst(func, v)?;
        let op = multiply_add(product.op, sum.op)?;
        // Where a guarded product does not happen, its value is another one.
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
            // The signs of both halves of a constant are not one bit.
            let at = factors.iter().position(|src| src.value().is_some())?;
            factors[at] = factors[at].neg();
        }
        let mut new = Inst { op, srcs: [factors[0], factors[1], other].into_iter().collect(), ..sum.clone() };
        fold_modifiers(&mut new);
        Some((v, new))
    }
}

/// The operation for a product and a sum that reads it.
fn multiply_add(product: Op, sum: Op) -> Option<Op> {
    match (product, sum) {
        (Op::Fmul { ftz: one, sat: false, round }, Op::Fadd { ftz, sat, .. }) if one == ftz => {
            Some(Op::Ffma { round, ftz, sat })
        }
        (Op::Dmul { round }, Op::Dadd { .. }) => Some(Op::Dfma { round }),
        (Op::Hmul2 { bf16: one, ftz: flushes, sat: false }, Op::Hadd2 { bf16, ftz, sat, f32: false })
            if (one, flushes) == (bf16, ftz) =>
        {
            Some(Op::Hfma2 { bf16, ftz, sat, relu: false })
        }
        _ => None,
    }
}
