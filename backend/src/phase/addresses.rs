//! Moves constant offsets of addresses into the offset fields of loads and stores, and uniform addends into the uniform
//! operand.

use crate::CodegenError;
use crate::ori::cfg::Cfg;
use crate::ori::defs::Defs;
use crate::ori::dominators::Tree;
use crate::ori::ir::{BlockId, Dst, File, Function, Src, SrcKind, SrcMods, Value};
use crate::ori::memory::memory;
use crate::ori::op::{AddressScale, Op};
use crate::ori::signature::{At, signature};
use crate::phase::copy_propagation::whole_of;
use crate::phase::edit::{added_to_pair, known};
use crate::phases::{Change, Context};
use std::ops::RangeInclusive;

/// Offsets are signed 24-bit numbers.
const OFFSETS: RangeInclusive<i64> = -(1 << 23)..=(1 << 23) - 1;

pub fn run(func: &mut Function, context: &Context<'_>) -> Result<Change, CodegenError> {
    let cfg = context.analyses.cfg(func);
    let defs = context.analyses.defs(func);
    let tree = context.analyses.dominators(func);
    let mut folder = Addresses { func, defs, tree, packs: Vec::new() };
    folder.packs = folder.pairs_by_low_half(cfg);
    for &b in &cfg.order {
        for i in 0..folder.func.block(b).insts.len() {
            if memory(&folder.func.block(b).insts[i].op).is_some() {
                folder.fold(b, i);
            }
        }
    }
    Ok(Change::Something)
}

struct Addresses<'a> {
    func: &'a mut Function,
    defs: &'a Defs,
    tree: &'a Tree,
    /// For each value, the pairs of which it is the low half.
    packs: Vec<Option<Value>>,
}

/// The offset that a memory operation adds to its source `n`, and the range of possible offsets.
pub(super) fn offset_mut(op: &mut Op, n: usize) -> Option<(&mut i32, RangeInclusive<i64>)> {
    let signed = |bits: u32| -(1 << (bits - 1))..=(1 << (bits - 1)) - 1;
    match (op, n) {
        (Op::Ldgsts { to, .. }, 0) => Some((to, signed(20))),
        (Op::Ldgsts { from, .. }, 1) => Some((from, signed(12))),
        (Op::Ldc { offset, .. }, 0) => Some((offset, signed(16))),
        (op, 0) => Some((only_offset(op)?, OFFSETS)),
        _ => None,
    }
}

fn only_offset(op: &mut Op) -> Option<&mut i32> {
    match op {
        Op::Ldg { access } | Op::Ld { access } | Op::Stg { access } | Op::St { access } => {
            Some(&mut access.offset)
        }
        // A constant that is added to a multiplied register is multiplied too.
        Op::Lds { scale, .. } | Op::Sts { scale, .. } if *scale != AddressScale::One => None,
        Op::Lds { offset, .. }
        | Op::Sts { offset, .. }
        | Op::Ldl { offset, .. }
        | Op::Stl { offset, .. }
        | Op::Atom { offset, .. }
        | Op::AtomCas { offset, .. }
        | Op::Red { offset, .. }
        | Op::Atoms { offset, .. }
        | Op::AtomsCas { offset, .. }
        | Op::Ldsm { offset, .. }
        | Op::Stsm { offset, .. }
        | Op::Line { offset, .. } => Some(offset),
        _ => None,
    }
}

impl Addresses<'_> {
    fn pairs_by_low_half(&self, cfg: &Cfg) -> Vec<Option<Value>> {
        let mut packs = vec![None; self.func.values.len()];
        for &b in &cfg.order {
            for inst in &self.func.block(b).insts {
                if let (Op::Pack, [Dst::Value(pair)], [low, _]) = (inst.op, &inst.dsts[..], &inst.srcs[..])
                    && let SrcKind::Value(low) = low.kind
                {
                    packs[low.index()].get_or_insert(*pair);
                }
            }
        }
        packs
    }

    fn fold(&mut self, b: BlockId, i: usize) {
        (0..2).for_each(|n| self.fold_source(b, i, n));
        self.fold_uniform(b, i);
    }

    /// Moves constants that are added to source `n` into the operation.
    fn fold_source(&mut self, b: BlockId, i: usize, n: usize) {
        let inst = &self.func.block(b).insts[i];
        let mut op = inst.op;
        let Some((offset, room)) = offset_mut(&mut op, n) else { return };
        let mut address = inst.srcs[n];
        let mut total = i64::from(*offset);
        // Each step goes to an earlier definition.
        for _ in 0..16 {
            let Some((base, add)) = self.step(&address, b, i) else { break };
            if !room.contains(&(total + add)) {
                break;
            }
            address = base;
            total += add;
        }
        *offset = total as i32;
        let inst = &mut self.func.block_mut(b).insts[i];
        inst.op = op;
        inst.srcs[n] = address;
    }

    /// Moves a uniform register that is added to the address into the uniform operand of the operation.
    fn fold_uniform(&mut self, b: BlockId, i: usize) {
        let inst = &self.func.block(b).insts[i];
        let has_place = signature(&inst.op).srcs.get(1).is_some_and(|slot| slot.at == At::Base);
        let is_scaled = memory(&inst.op).is_some_and(|memory| memory.scale > 0);
        if has_place
            && !is_scaled
            && inst.srcs[1] == Src::ZERO
            && let Some((base, addend)) = self.uniform_addend(&inst.srcs[0])
        {
            let inst = &mut self.func.block_mut(b).insts[i];
            (inst.srcs[0], inst.srcs[1]) = (base, addend);
        }
    }

    /// The address without one constant addend, and the addend.
    fn step(&self, address: &Src, b: BlockId, i: usize) -> Option<(Src, i64)> {
        if address.mods != SrcMods::NONE {
            return None;
        }
        let v = match address.kind {
            SrcKind::Imm(bits) => return Some((Src::ZERO, i64::from(bits as i32))),
            SrcKind::Value(v) => v,
            _ => return None,
        };
        let inst = self.defs.inst(self.func, v).filter(|inst| inst.guard.is_true())?;
        match inst.op {
            Op::Iadd3 { x: false } if self.func.value(v).width == 1 => {
                let zero = (0..3).find(|k| inst.srcs[*k] == Src::ZERO)?;
                let [x, y] = [[1, 2], [0, 2], [0, 1]][zero].map(|k| inst.srcs[k]);
                let (base, add) = match (known(&x), known(&y)) {
                    (None, Some(add)) => (x, add),
                    (Some(add), None) => (y, add),
                    _ => return None,
                };
                let base_in_register = base.mods == SrcMods::NONE && self.is_general(&base);
                base_in_register.then_some((base, i64::from(add as i32)))
            }
            Op::Pack if inst.srcs.len() == 2 => self.step_of_pair([inst.srcs[0], inst.srcs[1]], b, i),
            _ => None,
        }
    }

    fn is_general(&self, src: &Src) -> bool {
        match src.kind {
            SrcKind::Value(v) | SrcKind::Part(v, _) => self.func.value(v).file == File::R,
            SrcKind::Reg(reg) => reg.file == File::R,
            _ => false,
        }
    }

    fn step_of_pair(&self, parts: [Src; 2], b: BlockId, i: usize) -> Option<(Src, i64)> {
        if let (Some(low), Some(high)) = (known(&parts[0]), known(&parts[1])) {
            // An absolute address.
            let bits = (u64::from(high) << 32 | u64::from(low)) as i64;
            return OFFSETS.contains(&bits).then_some((Src::ZERO, bits));
        }
        let (base, add) = added_to_pair(self.func, self.defs, &parts)?;
        Some((self.whole(base, b, i)?, add))
    }

    /// The pair that consists of these halves, if instruction `i` of `b` can read it.
    fn whole(&self, parts: [Src; 2], b: BlockId, i: usize) -> Option<Src> {
        if let Some(whole) = whole_of(self.func, &parts) {
            return Some(whole);
        }
        let SrcKind::Value(low) = parts[0].kind else { return None };
        let pair = self.packs.get(low.index()).copied().flatten()?;
        let (at, index) = self.defs.site(pair)?;
        let inst = &self.func.block(at).insts[index];
        let before = if at == b { index < i } else { self.tree.dominates(at, b) };
        (before && inst.op == Op::Pack && inst.srcs[..] == parts).then(|| pair.into())
    }

    /// A 32-bit address that is a register plus a uniform register.
    fn uniform_addend(&self, address: &Src) -> Option<(Src, Src)> {
        let inst = self.defs.of_src(self.func, address)?;
        if inst.op != (Op::Iadd3 { x: false }) {
            return None;
        }
        let zero = (0..3).find(|k| inst.srcs[*k] == Src::ZERO)?;
        let [x, y] = [[1, 2], [0, 2], [0, 1]][zero].map(|k| inst.srcs[k]);
        let uniform = |src: &Src| {
            src.mods == SrcMods::NONE && src.value().is_some_and(|v| self.func.value(v).file == File::UR)
        };
        let general = |src: &Src| src.mods == SrcMods::NONE && self.is_general(src);
        match (x, y) {
            (x, y) if general(&x) && uniform(&y) => Some((x, y)),
            (x, y) if general(&y) && uniform(&x) => Some((y, x)),
            _ => None,
        }
    }
}
