//! Which bits of a value may differ between the threads of a warp.
//!
//! In a kernel whose warps consist of 32 threads with consecutive `%tid.x` ([`Facts::warps_along_x`]), only the low five
//! bits of `%tid.x` differ. So `%tid.x / 32` is uniform, and so is the result of `%tid.x < 64`.
//!
//! [`Facts::warps_along_x`]: crate::ori::ir::Facts::warps_along_x

use crate::ori::ir::{Inst, Src, SrcMods};
use crate::ori::op::{ICmp, Op, ShfType, Sign};

/// All bits may differ. Predicates and values of several words have this mask or zero.
pub(super) const ALL: u32 = u32::MAX;
/// The bits of a thread's place in its warp.
pub(super) const PLACE: u32 = 31;

/// The bits of the instruction's results that may differ if those of its operands may, where `varying` is indexed by
/// value. The operation itself gives threads with equal operands equal results.
pub(super) fn results(inst: &Inst, varying: &[u32]) -> u32 {
    let of = |src: &Src| src.value().map_or(0, |v| varying[v.index()]);
    if inst.uses().all(|src| of(src) == 0 || of(src) == ALL) || of(&inst.guard) != 0 || !inst.guard.is_true()
    {
        return ALL;
    }
    let srcs = &inst.srcs;
    if srcs.iter().any(|src| of(src) != 0 && src.mods != SrcMods::NONE && !is_logic(inst.op)) {
        return ALL;
    }
    match inst.op {
        Op::Mov | Op::Copy => of(&srcs[0]),
        Op::Lop3 { lut } => logic(lut, srcs, &of),
        Op::Lop3P { lut } if logic(lut, srcs, &of) == 0 => 0,
        Op::Shf { right, hi, ty, .. } => shift(right, hi, ty, srcs, &of),
        Op::Sgxt { sign: Sign::U32, .. } => match srcs[1].known() {
            Some(width @ 0..=31) => of(&srcs[0]) & ((1 << width) - 1),
            _ => ALL,
        },
        // A carry goes up.
        Op::Iadd3 { x: false } if inst.defs().count() == 1 => {
            let all = srcs.iter().fold(0, |all, src| all | of(src));
            ALL << all.trailing_zeros().min(31)
        }
        Op::Sel if of(&srcs[2]) == 0 => of(&srcs[0]) | of(&srcs[1]),
        Op::Isetp { cmp, ex: false, .. } if of(&srcs[1]) == 0 && srcs[2..].iter().all(|src| of(src) == 0) => {
            srcs[1].known().map_or(ALL, |bound| comparison(cmp, of(&srcs[0]), bound))
        }
        _ => ALL,
    }
}

const fn is_logic(op: Op) -> bool {
    matches!(op, Op::Lop3 { .. } | Op::Lop3P { .. })
}

/// A bit of the result depends on an operand if the table does for the known bits of the other operands.
fn logic(lut: u8, srcs: &[Src], of: &impl Fn(&Src) -> u32) -> u32 {
    let depends = |bit: u32| {
        let varies = |k: usize| of(&srcs[k]) >> bit & 1 != 0;
        let possible = |index: u8| {
            (0..3).all(|k| srcs[k].known().is_none_or(|word| (word >> bit & 1) as u8 == index >> (2 - k) & 1))
        };
        (0..3).filter(|k| varies(*k)).any(|k| {
            let other = 4u8 >> k;
            (0..8).any(|i| possible(i) && (lut >> i & 1) != (lut >> (i ^ other) & 1))
        })
    };
    (0..32).filter(|bit| depends(*bit)).fold(0, |mask, bit| mask | 1 << bit)
}

fn shift(right: bool, hi: bool, ty: ShfType, srcs: &[Src], of: &impl Fn(&Src) -> u32) -> u32 {
    let Some(by @ 0..=31) = srcs[1].known() else { return ALL };
    let (low, high) = (&srcs[0], &srcs[2]);
    match (right, hi, ty) {
        (false, false, ShfType::U32) if high.known() == Some(0) => of(low) << by,
        (true, true, ShfType::U32) if low.known() == Some(0) => of(high) >> by,
        (true, true, ShfType::S32) if low.known() == Some(0) && of(high) >> 31 == 0 => of(high) >> by,
        _ => ALL,
    }
}

/// Whether words that differ only in the low bits of `mask` compare alike with `bound`: zero if they do. The words are
/// `[n, n + 2^k)` for a multiple `n` of `2^k`, so all of them are below a bound or none is if the bound is such a multiple.
fn comparison(cmp: ICmp, mask: u32, bound: u32) -> u32 {
    let bits = 32 - mask.leading_zeros();
    if bits == 32 {
        return ALL;
    }
    let is_multiple = |bound: u32| bound & ((1 << bits) - 1) == 0;
    let alike = match cmp {
        ICmp::Lt | ICmp::Ge => is_multiple(bound),
        ICmp::Le | ICmp::Gt => is_multiple(bound.wrapping_add(1)),
        ICmp::F | ICmp::T => true,
        ICmp::Eq | ICmp::Ne => false,
    };
    if alike { 0 } else { ALL }
}
