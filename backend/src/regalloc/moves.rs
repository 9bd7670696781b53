//! Converts parallel copies to sequences of machine moves.
//!
//! All sources of a parallel copy are read before any destination is written. A move whose destination is not read by a
//! remaining move can be emitted first. If only cycles remain, one of them is opened by saving a register in a free
//! one, or resolved by swaps if no register is free.

use crate::CodegenError;
use crate::input::SrcId;
use crate::ori::ir::{Dst, File, Inst, Reg, Src, SrcKind, SrcMods};
use crate::ori::op::{Bool, ICmp, Op, Sign};
use crate::ori::signature::special;
use rustc_hash::FxHashSet;

/// A 32-bit register or predicate to write. The source is a register or a constant of any kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Move {
    pub(crate) dst: Reg,
    pub(crate) src: Src,
}

impl Move {
    fn reads(&self) -> Option<Reg> {
        match self.src.kind {
            SrcKind::Reg(r) => Some(r),
            _ => None,
        }
    }
}

/// Orders the moves correctly. `free` returns a register of a file that may be overwritten.
pub(crate) fn sequence(
    mut pending: Vec<Move>,
    at: SrcId,
    mut free: impl FnMut(File) -> Option<Reg>,
) -> Result<Vec<Inst>, CodegenError> {
    let mut code = Vec::new();
    pending.retain(|m| m.src != Src::new(SrcKind::Reg(m.dst)) && m.src.kind != SrcKind::Undef);
    while !pending.is_empty() {
        let read: FxHashSet<Reg> = pending.iter().filter_map(|m| m.reads()).collect();
        let ready = pending.iter().position(|m| !read.contains(&m.dst));
        if let Some(i) = ready {
            let m = pending.remove(i);
            match zeroed_pair(&m, &pending) {
                Some((other, pair)) => {
                    pending.remove(other);
                    code.push(Inst::new(ZERO_PAIR, &[Dst::Reg(pair)], &[], at));
                }
                None => code.push(move_inst(m, at)?),
            }
            continue;
        }
        // Another move reads every destination, so only cycles remain, and every source is a register.
        let Move { dst, src } = pending[0];
        let Some(from) = pending[0].reads() else {
            return Err(CodegenError::internal(
                at,
                "regalloc",
                "a cycle of moves has a source that is not a register",
            ));
        };
        if dst == from {
            // The move complements a register.
            pending.remove(0);
            code.push(move_inst(Move { dst, src }, at)?);
        } else if let Some(saved) = free(dst.file).filter(|r| pending.iter().all(|m| m.dst != *r)) {
            code.push(move_inst(Move { dst: saved, src: Src::new(SrcKind::Reg(dst)) }, at)?);
            redirect(&mut pending, dst, saved);
        } else {
            code.extend(swap(dst, from, at)?);
            redirect(&mut pending, dst, Reg { index: u8::MAX, ..dst });
            redirect(&mut pending, from, dst);
            redirect(&mut pending, Reg { index: u8::MAX, ..dst }, from);
            pending.retain(|m| m.src != Src::new(SrcKind::Reg(m.dst)));
        }
    }
    Ok(code)
}

/// Zeroes an aligned pair of general registers.
pub(crate) const ZERO_PAIR: Op = Op::Cs2r { sr: special::ZERO, wide: true };

/// The pending move that clears the other register of the same pair, and the pair.
fn zeroed_pair(m: &Move, pending: &[Move]) -> Option<(usize, Reg)> {
    let mate = Reg { index: m.dst.index ^ 1, ..m.dst };
    let clears = |m: &Move| m.dst.file == File::R && m.src == Src::ZERO;
    let unread = pending.iter().all(|other| other.src.kind != SrcKind::Reg(mate));
    let other = pending.iter().position(|other| other.dst == mate && clears(other))?;
    (clears(m) && unread).then_some((other, Reg { index: m.dst.index & !1, ..m.dst }))
}

/// Replaces reads of `old` by reads of `new`.
fn redirect(pending: &mut [Move], old: Reg, new: Reg) {
    for m in pending {
        if m.src.kind == SrcKind::Reg(old) {
            m.src.kind = SrcKind::Reg(new);
        }
    }
}

/// The machine operation that writes one register.
pub(crate) fn move_inst(m: Move, at: SrcId) -> Result<Inst, CodegenError> {
    let dst = Dst::Reg(m.dst);
    let from = m.reads().map(|r| r.file);
    let plain = m.src.mods == SrcMods::NONE;
    let inst = match (m.dst.file, from) {
        // Predicates without a register of their own are stored as integers.
        (File::R, None) if let SrcKind::Pred(holds) = m.src.kind => {
            Inst::new(Op::Mov, &[dst], &[Src::imm(u32::from(holds != m.src.mods.not))], at)
        }
        (File::R, None | Some(File::R | File::UR)) if plain => Inst::new(Op::Mov, &[dst], &[m.src], at),
        (File::R, Some(File::P)) => Inst::new(Op::Sel, &[dst], &[Src::ZERO, Src::imm(1), m.src.not()], at),
        (File::P, None | Some(File::P)) => {
            let srcs = [m.src, Src::TRUE, Src::TRUE];
            Inst::new(Op::Plop3 { lut: 0x80, lut2: 0x08 }, &[dst, Dst::Sink], &srcs, at)
        }
        (File::P, Some(File::R)) if plain => {
            let op = Op::Isetp { cmp: ICmp::Ne, sign: Sign::U32, bool_: Bool::And, ex: false };
            Inst::new(op, &[dst, Dst::Sink], &[m.src, Src::ZERO, Src::TRUE], at)
        }
        (File::UR, Some(File::R)) if plain => Inst::new(Op::R2ur, &[dst], &[m.src], at),
        (File::UR, None) if plain && matches!(m.src.kind, SrcKind::Const(_)) => {
            Inst::new(Op::Uldc { wide: false }, &[dst], &[m.src], at)
        }
        (File::UR, None | Some(File::UR)) if plain => Inst::new(Op::Umov, &[dst], &[m.src], at),
        _ => {
            let what = format!("no move from {:?} to {:?}", m.src, m.dst);
            return Err(CodegenError::internal(at, "regalloc", what));
        }
    };
    Ok(inst)
}

/// Exchanges two registers without a third one.
fn swap(a: Reg, b: Reg, at: SrcId) -> Result<Vec<Inst>, CodegenError> {
    let [ra, rb] = [a, b].map(|r| Src::new(SrcKind::Reg(r)));
    match a.file {
        File::R => {
            // The truth table of `x ^ y` for the first two operands.
            let xor =
                |dst: Reg| Inst::new(Op::Lop3 { lut: 0x3c }, &[Dst::Reg(dst)], &[ra, rb, Src::ZERO], at);
            Ok(vec![xor(a), xor(b), xor(a)])
        }
        // One operation with both results: the first operand and the second.
        File::P => {
            let op = Op::Plop3 { lut: 0xcc, lut2: 0xf0 };
            Ok(vec![Inst::new(op, &[Dst::Reg(a), Dst::Reg(b)], &[ra, rb, Src::TRUE], at)])
        }
        file => Err(CodegenError::Limit {
            at,
            what: format!("no {file:?} register is free for a cycle of copies"),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn reg(file: File, index: u8) -> Reg {
        Reg { file, index }
    }

    /// Executes moves and swaps symbolically.
    fn run(code: &[Inst]) -> BTreeMap<Reg, u32> {
        let mut contents: BTreeMap<Reg, u32> = BTreeMap::new();
        for inst in code {
            let read = |s: &Src, contents: &BTreeMap<Reg, u32>| match s.kind {
                SrcKind::Reg(r) => contents.get(&r).copied().unwrap_or(1 << r.index),
                SrcKind::Imm(i) => i,
                _ => 0,
            };
            let srcs: Vec<u32> = inst.srcs.iter().map(|s| read(s, &contents)).collect();
            let results = match inst.op {
                Op::Mov => vec![srcs[0]],
                Op::Lop3 { lut: 0x3c } => vec![srcs[0] ^ srcs[1]],
                Op::Plop3 { lut: 0x80, .. } => vec![srcs[0]],
                Op::Plop3 { lut: 0xcc, lut2: 0xf0 } => vec![srcs[1], srcs[0]],
                op => panic!("not a move: {op:?}"),
            };
            for (dst, value) in inst.dsts.iter().zip(results) {
                if let Dst::Reg(r) = dst {
                    contents.insert(*r, value);
                }
            }
        }
        contents
    }

    fn check(file: File, pairs: &[(u8, u8)], free: Option<u8>) {
        let moves =
            pairs.iter().map(|&(d, s)| Move { dst: reg(file, d), src: Src::new(SrcKind::Reg(reg(file, s))) });
        let code = sequence(moves.collect(), SrcId(0), |f| free.map(|i| reg(f, i))).expect("sequence");
        let after = run(&code);
        for &(d, s) in pairs {
            let got = after.get(&reg(file, d)).copied().unwrap_or(1 << d);
            assert_eq!(got, 1 << s, "{pairs:?}: {code:?}");
        }
    }

    #[test]
    fn chains_forks_and_cycles() {
        for file in [File::R, File::P] {
            for free in [None, Some(6)] {
                check(file, &[(0, 1), (1, 2), (2, 3)], free);
                check(file, &[(2, 1), (1, 0), (3, 1)], free);
                check(file, &[(0, 1), (1, 0)], free);
                check(file, &[(0, 1), (1, 2), (2, 0), (3, 1)], free);
                check(file, &[(0, 1), (1, 2), (2, 3), (3, 0), (4, 5), (5, 4)], free);
                check(file, &[(0, 0)], free);
            }
        }
    }

    #[test]
    fn constants_come_after_the_reads_of_their_register() {
        let moves = vec![
            Move { dst: reg(File::R, 0), src: Src::imm(7) },
            Move { dst: reg(File::R, 1), src: Src::new(SrcKind::Reg(reg(File::R, 0))) },
        ];
        let after = run(&sequence(moves, SrcId(0), |_| None).expect("sequence"));
        assert_eq!(after, BTreeMap::from([(reg(File::R, 0), 7), (reg(File::R, 1), 1)]));
    }

    #[test]
    fn a_constant_predicate_in_a_general_register_is_an_integer() {
        let to = reg(File::R, 3);
        for (src, expected) in [(Src::TRUE, 1), (Src::TRUE.not(), 0)] {
            let inst = move_inst(Move { dst: to, src }, SrcId::default()).unwrap();
            assert_eq!(run(&[inst]), BTreeMap::from([(to, expected)]));
        }
    }
}
