//! Constant folding: operations on constants, algebraic identities, and bits that are known to be zero.
//!
//! Before and after: SSA. One pass in reverse postorder. A result that is known, or equal to an operand, is read
//! instead of the operation's result; dead code elimination then removes the operation.

use crate::CodegenError;
use crate::ori::defs::Defs;
use crate::ori::eval;
use crate::ori::ir::{Dst, File, Function, Inst, Src, SrcKind, SrcMods, Value};
use crate::ori::op::{Bool, ICmp, MemSize, Op, ShfType, Sign, VoteMode};
use crate::ori::signature::{fold_modifiers, special};
use crate::phase::edit::{Replacements, known};
use crate::phases::{Change, Context};
use smallvec::SmallVec;

pub fn run(func: &mut Function, context: &Context<'_>) -> Result<Change, CodegenError> {
    let cfg = context.analyses.cfg(func);
    let defs = context.analyses.defs(func);
    let mut replaced = Replacements::new(func);
    for &b in &cfg.order {
        for i in 0..func.block(b).insts.len() {
            let inst = &mut func.block_mut(b).insts[i];
            if !replaced.is_empty() {
                inst.uses_mut().for_each(|src| *src = replaced.resolve(*src));
                fold_modifiers(inst);
            }
            fold_guard(inst);
            simplify(inst);
            if never_carries(func, defs, &func.block(b).insts[i]) {
                for dst in &mut func.block_mut(b).insts[i].dsts[1..] {
                    if let Dst::Value(carry) = std::mem::replace(dst, Dst::Sink) {
                        replaced.insert(carry, Src::FALSE);
                    }
                }
            }
            let inst = &func.block(b).insts[i];
            if let Some(results) = of_constants(func, inst) {
                results.into_iter().for_each(|(v, by)| replaced.insert(v, by));
                continue;
            }
            let Some(Dst::Value(v)) = inst.dsts.first().copied() else { continue };
            let others_unread = inst.dsts[1..].iter().all(|dst| *dst == Dst::Sink);
            if !inst.guard.is_true() || !others_unread {
                continue;
            }
            let inst = &func.block(b).insts[i];
            let result = value_of(inst).or_else(|| value_with_defs(func, defs, inst));
            if let Some(src) = result {
                replaced.insert(v, src);
            }
        }
        if let Some(src) = func.block_mut(b).term.operand_mut() {
            *src = replaced.resolve(*src);
        }
    }
    replaced.apply(func, cfg);
    Ok(Change::Something)
}

/// Drops a guard that is always true. An instruction whose guard is always false is left to dead code elimination,
/// which records the removed effects.
fn fold_guard(inst: &mut Inst) {
    if inst.guard.is_true() && !inst.old.is_empty() {
        inst.guard = Src::TRUE;
        inst.old.clear();
    }
}

/// Rewrites the operation itself.
fn simplify(inst: &mut Inst) {
    match inst.op {
        Op::Lop3 { lut } => {
            let lut = reduce_lut(lut, &mut inst.srcs);
            inst.op = Op::Lop3 { lut };
        }
        Op::Lop3P { lut } => {
            let lut = reduce_lut(lut, &mut inst.srcs);
            inst.op = Op::Lop3P { lut };
        }
        Op::Plop3 { lut, lut2 } if inst.srcs.len() == 3 && inst.dsts[1..].iter().all(|d| *d == Dst::Sink) => {
            let lut = reduce_predicates(lut, &mut inst.srcs);
            inst.op = Op::Plop3 { lut, lut2 };
        }
        Op::Iadd3 { x: false } if inst.dsts[1..].iter().all(|d| *d == Dst::Sink) => {
            // At most one constant, in the middle.
            let sum = inst.srcs.iter().filter_map(known).fold(0u32, u32::wrapping_add);
            let mut rest: SmallVec<[Src; 3]> =
                inst.srcs.iter().copied().filter(|src| known(src).is_none()).collect();
            if rest.len() < 3 {
                if sum != 0 {
                    rest.insert(rest.len().min(1), Src::imm(sum));
                }
                rest.resize(3, Src::ZERO);
                inst.srcs.copy_from_slice(&rest);
            }
        }
        // If there is no carry in: a complement is not a negation.
        Op::Iadd3 { x: true }
            if inst.srcs[3..].iter().all(|carry| *carry == Src::FALSE)
                && inst.srcs[..3].iter().all(|src| src.mods == SrcMods::NONE) =>
        {
            inst.op = Op::Iadd3 { x: false };
            inst.srcs.truncate(3);
        }
        Op::Isetp { cmp, sign, bool_, ex: true } => {
            // If the result for the low words is known, the high words alone decide.
            let Some(Src { kind: SrcKind::Pred(low), mods }) = inst.srcs.get(3).copied() else { return };
            inst.op = Op::Isetp { cmp: decided_by_high(cmp, low != mods.not), sign, bool_, ex: false };
            inst.srcs.truncate(3);
        }
        Op::Imad { .. } => {
            if known(&inst.srcs[0]).is_some() {
                inst.srcs.swap(0, 1);
            }
            let factor = known(&inst.srcs[1]);
            if factor == Some(1) || (factor == Some(0) && known(&inst.srcs[2]).is_none()) {
                let a = if factor == Some(1) { inst.srcs[0] } else { Src::ZERO };
                inst.op = Op::Iadd3 { x: false };
                inst.srcs[0] = a;
                inst.srcs[1] = inst.srcs[2];
                inst.srcs[2] = Src::ZERO;
            }
        }
        _ => {}
    }
}

/// The comparison of the high words that is equivalent to the whole comparison, if the result for the low words is
/// known.
pub(super) fn decided_by_high(cmp: ICmp, low: bool) -> ICmp {
    match (cmp, low) {
        (ICmp::Lt | ICmp::Le, false) => ICmp::Lt,
        (ICmp::Lt | ICmp::Le, true) => ICmp::Le,
        (ICmp::Gt | ICmp::Ge, false) => ICmp::Gt,
        (ICmp::Gt | ICmp::Ge, true) => ICmp::Ge,
        (ICmp::Eq, true) => ICmp::Eq,
        (ICmp::Eq, false) => ICmp::F,
        (ICmp::Ne, false) => ICmp::Ne,
        (ICmp::Ne, true) => ICmp::T,
        (ICmp::F | ICmp::T, _) => cmp,
    }
}

/// Whether a sum is always less than 2^32 and has a carry that is read.
fn never_carries(func: &Function, defs: &Defs, inst: &Inst) -> bool {
    let reads = |dst: &Dst| matches!(dst, Dst::Value(_));
    inst.op == (Op::Iadd3 { x: false })
        && inst.guard.is_true()
        && inst.dsts[1..].iter().any(reads)
        && inst.srcs.iter().all(|src| src.mods == SrcMods::NONE)
        && inst.srcs.iter().map(|src| u64::from(!zero_bits(func, defs, src, 4))).sum::<u64>()
            <= u64::from(u32::MAX)
}

/// The results of an operation on constants, if they are constants that instructions can read.
fn of_constants(func: &Function, inst: &Inst) -> Option<SmallVec<[(Value, Src); 2]>> {
    let is_constant = |src: &Src| matches!(src.kind, SrcKind::Imm(_) | SrcKind::Zero | SrcKind::Pred(_));
    if !inst.srcs.iter().all(is_constant) {
        return None;
    }
    let words = eval::known_results(func, inst, |_| None)?;
    let results = inst.dsts.iter().zip(words).filter_map(|(dst, word)| match dst {
        Dst::Value(v) => Some((*v, word[0])),
        _ => None,
    });
    let constant = |(v, bits): (Value, u32)| match func.value(v) {
        data if data.pin.is_some() || data.width != 1 => None,
        data if data.file == File::P => Some((v, Src::new(SrcKind::Pred(bits != 0)))),
        data => (data.file == File::R).then_some((v, Src::imm(bits))),
    };
    results.map(constant).collect()
}

/// The result, if it is an operand, or is known for all values of the operands that are not constants.
fn value_of(inst: &Inst) -> Option<Src> {
    let plain = |src: &Src| (src.mods == SrcMods::NONE).then_some(*src);
    let srcs = &inst.srcs;
    match inst.op {
        Op::Iadd3 { x: false } => match (known(&srcs[0]), known(&srcs[1]), known(&srcs[2])) {
            (None, Some(0), Some(0)) => plain(&srcs[0]),
            (Some(0), None, Some(0)) => plain(&srcs[1]),
            (Some(0), Some(0), None) => plain(&srcs[2]),
            _ => None,
        },
        Op::Lop3 { lut } => match lut {
            0x00 => Some(Src::ZERO),
            0xff => Some(Src::imm(u32::MAX)),
            0xf0 => plain(&srcs[0]),
            0xcc => plain(&srcs[1]),
            0xaa => plain(&srcs[2]),
            _ => None,
        },
        Op::Plop3 { lut, .. } if srcs.len() == 3 => match lut {
            0x00 => Some(Src::FALSE),
            0xff => Some(Src::TRUE),
            0xf0 => Some(srcs[0]),
            0x0f => Some(srcs[0].not()),
            _ => None,
        },
        // At least one thread votes.
        Op::Voteu { mode: VoteMode::All | VoteMode::Any } => matches!(srcs[0].kind, SrcKind::Pred(_))
            .then(|| if srcs[0].is_true() { Src::TRUE } else { Src::FALSE }),
        Op::Sel | Op::Fsel { .. } => {
            let (yes, no) = (plain(&srcs[0])?, plain(&srcs[1])?);
            match srcs[2] {
                cond if cond.is_true() || yes == no => Some(yes),
                cond if cond == Src::FALSE => Some(no),
                _ => None,
            }
        }
        Op::Prmt => match known(&srcs[1])? {
            0x3210 => plain(&srcs[0]),
            0x7654 => plain(&srcs[2]),
            _ => None,
        },
        Op::Shf { wrap: false, hi, .. } if known(&srcs[1])? == 0 => plain(&srcs[if hi { 2 } else { 0 }]),
        Op::Isetp { cmp, sign, bool_, ex: false } => {
            let holds = compare(cmp, sign, &srcs[0], &srcs[1])?;
            combine(bool_, holds, srcs.get(2).copied().unwrap_or(Src::TRUE))
        }
        Op::Isetp { cmp, sign, bool_, ex: true } if !matches!(cmp, ICmp::F | ICmp::T) => {
            let (with, low) = (*srcs.get(2)?, *srcs.get(3)?);
            if compare(ICmp::Eq, sign, &srcs[0], &srcs[1])? {
                // The low words decide.
                let is_neutral = [true, false].into_iter().all(|holds| {
                    combine(bool_, holds, with) == Some(if holds { Src::TRUE } else { Src::FALSE })
                });
                return is_neutral.then_some(low);
            }
            combine(bool_, compare(cmp, sign, &srcs[0], &srcs[1])?, with)
        }
        _ => None,
    }
}

/// The result, if it follows from the definitions of the operands.
fn value_with_defs(func: &Function, defs: &Defs, inst: &Inst) -> Option<Src> {
    let srcs = &inst.srcs;
    match inst.op {
        // A mask that clears no bit that may be set.
        Op::Lop3 { lut: 0xc0 } => {
            let mask = known(&srcs[1])?;
            (srcs[0].mods == SrcMods::NONE && !mask & !zero_bits(func, defs, &srcs[0], 4) == 0)
                .then_some(srcs[0])
        }
        // A sign bit that is known to be zero, or a sign extension that is already there.
        Op::Prmt if known(&srcs[2]) == Some(0) => {
            let bits = match known(&srcs[1])? {
                0x8880 => 8,
                0x9910 => 16,
                _ => return None,
            };
            let positive = zero_bits(func, defs, &srcs[0], 4) >> (bits - 1) == u32::MAX >> (bits - 1);
            let extended = defs.of_src(func, &srcs[0]).is_some_and(|def| match def.op {
                Op::Ldg { access } | Op::Ld { access } => sign_bits(access.size) >= 33 - bits,
                Op::Lds { size, .. } | Op::Ldl { size, .. } | Op::Ldc { size, .. } => {
                    sign_bits(size) >= 33 - bits
                }
                // The value has already been extended.
                Op::Prmt => def.srcs[1..] == srcs[1..],
                _ => false,
            });
            (positive || extended).then_some(srcs[0])
        }
        // Whether the number that was made from a predicate is zero.
        Op::Isetp { cmp: cmp @ (ICmp::Ne | ICmp::Eq), bool_: Bool::And, ex: false, .. }
            if known(&srcs[1]) == Some(0) && srcs.get(2).is_none_or(Src::is_true) =>
        {
            let select = defs.of_src(func, &srcs[0])?;
            if select.op != Op::Sel {
                return None;
            }
            let (yes, no) = (known(&select.srcs[0])?, known(&select.srcs[1])?);
            let cond = select.srcs[2];
            match (yes != 0, no != 0, cmp) {
                (true, false, ICmp::Ne) | (false, true, ICmp::Eq) => Some(cond),
                (true, false, _) | (false, true, _) => Some(cond.not()),
                (nonzero, _, _) => Some(Src::new(SrcKind::Pred(nonzero == (cmp == ICmp::Ne)))),
            }
        }
        _ => None,
    }
}

/// The bits at the top of a loaded element that are copies of the sign bit.
fn sign_bits(size: MemSize) -> u32 {
    match size {
        MemSize::S8 => 25,
        MemSize::S16 => 17,
        MemSize::U8 | MemSize::U16 | MemSize::B32 | MemSize::B64 | MemSize::B128 => 1,
    }
}

/// The bits that are always zero. `depth` limits the chain of definitions that is examined.
fn zero_bits(func: &Function, defs: &Defs, src: &Src, depth: u32) -> u32 {
    if let Some(bits) = known(src) {
        return !bits;
    }
    let Some(inst) = defs.of_src(func, src) else { return 0 };
    let size_bits = |size| match size {
        MemSize::U8 => !0xff,
        MemSize::U16 => !0xffff,
        _ => 0,
    };
    let below = |src: &Src| if depth == 0 { 0 } else { zero_bits(func, defs, src, depth - 1) };
    match inst.op {
        Op::Ldg { access } | Op::Ld { access } => size_bits(access.size),
        Op::Lds { size, .. } | Op::Ldl { size, .. } | Op::Ldc { size, .. } => size_bits(size),
        // A block has at most 1024 threads, 64 in its third dimension.
        Op::S2r { sr } if sr == special::TID[2] => !0x3f,
        Op::S2r { sr } if special::is_tid(sr) => !0x3ff,
        Op::S2r { sr } if sr == special::LANE_ID => !0x1f,
        Op::Lop3 { lut: 0xc0 } => below(&inst.srcs[0]) | below(&inst.srcs[1]),
        Op::Lop3 { lut: 0xfc | 0x3c } => below(&inst.srcs[0]) & below(&inst.srcs[1]),
        Op::Sel => below(&inst.srcs[0]) & below(&inst.srcs[1]),
        Op::Shf { right: true, hi: true, ty: ShfType::U32, wrap: false } => match known(&inst.srcs[1]) {
            Some(by @ 0..32) => {
                if by == 0 {
                    0
                } else {
                    (below(&inst.srcs[2]) >> by) | (u32::MAX << (32 - by))
                }
            }
            _ => 0,
        },
        Op::Sgxt { wrap: false, sign: Sign::U32 } => match known(&inst.srcs[1]) {
            Some(bits @ 0..32) => u32::MAX << bits,
            _ => 0,
        },
        // At most as long as the largest possible value.
        Op::Iadd3 { x: false } if inst.srcs.iter().all(|src| src.mods == SrcMods::NONE) => {
            let largest: u64 = inst.srcs.iter().map(|src| u64::from(!below(src))).sum();
            u32::try_from(largest)
                .map_or(0, |largest| u32::MAX.checked_shl(32 - largest.leading_zeros()).unwrap_or(0))
        }
        Op::Popc => !0x3f,
        _ => 0,
    }
}

/// The table for a fixed value `to` of source `i` (bit 4, 2 or 1 of the index), which no longer depends on that source.
pub fn fix_input(lut: u8, i: usize, to: bool) -> u8 {
    let bit = 4u8 >> i;
    (0..8u8).fold(0, |table, index| {
        let from = if to { index | bit } else { index & !bit };
        table | ((lut >> from & 1) << index)
    })
}

/// Whether `lut` does not depend on source `i`.
fn ignores(lut: u8, i: usize) -> bool {
    fix_input(lut, i, false) == fix_input(lut, i, true)
}

/// Removes sources that are all zeros, all ones, repeated or unused.
fn reduce_lut(mut lut: u8, srcs: &mut [Src]) -> u8 {
    for i in 0..srcs.len().min(3) {
        match known(&srcs[i]) {
            Some(0) => lut = fix_input(lut, i, false),
            Some(u32::MAX) => lut = fix_input(lut, i, true),
            _ => {}
        }
        for j in 0..i {
            if srcs[i] == srcs[j] && known(&srcs[i]).is_none() {
                lut = equal_inputs(lut, i, j);
            }
        }
        if ignores(lut, i) {
            srcs[i] = Src::ZERO;
        }
    }
    for i in 0..srcs.len().min(3) {
        if ignores(lut, i) {
            srcs[i] = Src::ZERO;
        }
    }
    lut
}

/// The table if source `i` is always equal to source `j`; it no longer depends on `i`.
fn equal_inputs(lut: u8, i: usize, j: usize) -> u8 {
    let (bit_i, bit_j) = (4u8 >> i, 4u8 >> j);
    (0..8u8).fold(0, |table, index| {
        let from = if index & bit_j != 0 { index | bit_i } else { index & !bit_i };
        table | ((lut >> from & 1) << index)
    })
}

/// As [`reduce_lut`], for predicates. An unused source becomes PT; a single input moves to the front.
fn reduce_predicates(mut lut: u8, srcs: &mut [Src]) -> u8 {
    for i in 0..3 {
        if srcs[i].mods.not {
            // A negation is moved into the table.
            let bit = 4u8 >> i;
            lut = (0..8u8).fold(0, |table, index| table | ((lut >> (index ^ bit) & 1) << index));
            srcs[i].mods.not = false;
        }
        if let SrcKind::Pred(value) = srcs[i].kind {
            lut = fix_input(lut, i, value);
        }
        for j in 0..i {
            if srcs[i] == srcs[j] {
                lut = equal_inputs(lut, i, j);
            }
        }
    }
    for (i, src) in srcs.iter_mut().enumerate() {
        if ignores(lut, i) {
            *src = Src::TRUE;
        }
    }
    for i in [1, 2] {
        if srcs[0] == Src::TRUE && srcs[i] != Src::TRUE {
            srcs.swap(0, i);
            lut = exchange_inputs(lut, 0, i);
        }
    }
    lut
}

/// The table after exchanging sources `i` and `j`.
pub fn exchange_inputs(lut: u8, i: usize, j: usize) -> u8 {
    let (x, y) = (4u8 >> i, 4u8 >> j);
    (0..8u8).fold(0, |table, index| {
        let from =
            (index & !(x | y)) | (if index & x != 0 { y } else { 0 }) | (if index & y != 0 { x } else { 0 });
        table | ((lut >> from & 1) << index)
    })
}

fn compare(cmp: ICmp, sign: Sign, a: &Src, b: &Src) -> Option<bool> {
    match cmp {
        ICmp::F => return Some(false),
        ICmp::T => return Some(true),
        _ => {}
    }
    if a == b && a.mods == SrcMods::NONE && a.kind != SrcKind::Undef {
        return Some(matches!(cmp, ICmp::Eq | ICmp::Le | ICmp::Ge));
    }
    let below_zero = known(b) == Some(0) && sign == Sign::U32;
    match cmp {
        ICmp::Lt if below_zero => return Some(false),
        ICmp::Ge if below_zero => return Some(true),
        _ => {}
    }
    let (a, b) = (known(a)?, known(b)?);
    let order = match sign {
        Sign::U32 => a.cmp(&b),
        Sign::S32 => (a as i32).cmp(&(b as i32)),
    };
    Some(match cmp {
        ICmp::Lt => order.is_lt(),
        ICmp::Le => order.is_le(),
        ICmp::Eq => order.is_eq(),
        ICmp::Ne => order.is_ne(),
        ICmp::Ge => order.is_ge(),
        ICmp::Gt => order.is_gt(),
        ICmp::F | ICmp::T => return None,
    })
}

fn combine(bool_: Bool, holds: bool, with: Src) -> Option<Src> {
    Some(match (bool_, holds) {
        (Bool::And, true) | (Bool::Or, false) | (Bool::Xor, false) => with,
        (Bool::And, false) => Src::FALSE,
        (Bool::Or, true) => Src::TRUE,
        (Bool::Xor, true) => with.not(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_bits() {
        assert_eq!(fix_input(0xc0, 1, true), 0xf0);
        assert_eq!(exchange_inputs(0xd0, 0, 1), 0xc4);
        assert_eq!(equal_inputs(0xc0, 1, 0), 0xf0);
    }
}
