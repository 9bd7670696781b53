//! Atomic operations that a memory does not support. A loop computes the new value from the value that it has read, and
//! repeats compare-and-swap until no other thread has changed the value in between.

use super::atomic::Atomic;
use super::integer::lut;
use super::memory::Target;
use super::{Lowering, Result, Statement};
use crate::input::Operand;
use crate::ori::ir::{Dst, File, Inst, Src, Term};
use crate::ori::memory::{Order, Scope};
use crate::ori::op::{Access, AddressScale, AtomOp, CasSize, HalfRead, ICmp, MemSize, Op, Round};
use ptx_isa::{ScalarType, TypeKind};

/// The place of a word for compare-and-swap.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum WordPlace {
    Global,
    /// In shared memory, or in local memory, where no other thread interferes.
    Generic,
    Shared,
}

/// A word for compare-and-swap, with its memory order.
#[derive(Clone, Copy)]
pub(super) struct Word {
    pub(super) address: Src,
    pub(super) offset: i32,
    pub(super) order: Order,
    pub(super) place: WordPlace,
}

/// The word that contains a 16-bit value, and the position of the value.
#[derive(Clone, Copy)]
struct Half {
    word: Word,
    is_low: Src,
    /// The number of bits below the value.
    shift: Src,
}

impl<'a> Lowering<'a> {
    /// Executes an operation on a word; the old value goes to `dst`.
    pub(super) fn update_until(
        &mut self,
        instr: &Statement<'a>,
        word: Word,
        dst: &Operand,
        atomic: Atomic,
        value: Src,
    ) -> Result<()> {
        let old = self.swap_until(instr, word, atomic, value)?;
        self.write(dst, old)
    }

    /// Executes an operation on a word and returns the old value.
    pub(super) fn swap_until(
        &mut self,
        instr: &Statement<'a>,
        word: Word,
        atomic: Atomic,
        value: Src,
    ) -> Result<Src> {
        self.swap_loop(
            word,
            atomic.size(),
            |this, old| {
                let new = this.combine(instr, atomic, old, value)?;
                Ok([old, new])
            },
            |this, found, old| this.differ(atomic.size(), found, old),
        )
    }

    /// Executes an operation on 16 bits as an operation on the containing word.
    pub(super) fn update_half(
        &mut self,
        instr: &Statement<'a>,
        target: Target,
        order: Order,
        dst: &Operand,
        atomic: Atomic,
        value: Src,
    ) -> Result<()> {
        let bf16 = match (atomic.op, atomic.ty) {
            (AtomOp::Add, ScalarType::F16) => false,
            (AtomOp::Add, ScalarType::Bf16) => true,
            _ => return self.unsupported(instr, "this operation and type"),
        };
        let add = Op::Hadd2 { bf16, ftz: false, sat: false, f32: false, half: HalfRead::Own };
        if !self.encodes(&add) {
            return self.unsupported(instr, "the type .bf16 on this target");
        }
        let value = self.halves_of(value, value);
        let half = self.half_word(instr, target, order)?;
        let found = self.swap_loop(
            half.word,
            CasSize::B32,
            |this, old| {
                let sum = this.reg(add, &[old, value]);
                let own = this.select(half.is_low, Src::imm(0x3254), Src::imm(0x7610), 1);
                Ok([old, this.reg(Op::Prmt, &[old, own, sum])])
            },
            |this, found, old| this.differ(CasSize::B32, found, old),
        )?;
        let old = self.shift_right_by(found, half.shift, false);
        self.write(dst, old)
    }

    /// Compares and swaps 16 bits. Repeats while only the other half of the word has changed.
    pub(super) fn swap_half(
        &mut self,
        instr: &Statement<'a>,
        target: Target,
        order: Order,
        dst: &Operand,
        compare: Src,
        swap: Src,
    ) -> Result<()> {
        let half = self.half_word(instr, target, order)?;
        let place = self.select(half.is_low, Src::imm(0x3254), Src::imm(0x5410), 1);
        let (compare, swap) = (self.in_register(compare), self.in_register(swap));
        let found = self.swap_loop(
            half.word,
            CasSize::B32,
            |this, old| {
                let old = this.in_register(old);
                Ok([compare, swap].map(|value| this.reg(Op::Prmt, &[old, place, value])))
            },
            |this, found, compared| {
                let [found, compared] =
                    [found, compared].map(|word| this.reg(Op::Prmt, &[word, place, Src::ZERO]));
                this.compare(ICmp::Ne, false, found, compared)
            },
        )?;
        let old = self.shift_right_by(found, half.shift, false);
        self.write(dst, old)
    }

    /// The word that contains the 16 bits at an address.
    fn half_word(&mut self, instr: &Statement<'a>, target: Target, order: Order) -> Result<Half> {
        let (low, high, place) = match target {
            Target::Wide { address, offset, generic } => {
                let pair = self.pair(address);
                let sum = self.add_pair(pair, super::operand::halves(i64::from(offset) as u64));
                (sum[0], Some(sum[1]), if generic { WordPlace::Generic } else { WordPlace::Global })
            }
            Target::Shared { address, base, offset } => {
                let address = self.based(address, base);
                (self.add(address, Src::imm(offset as u32)), None, WordPlace::Shared)
            }
            _ => return self.unsupported(instr, "an atomic operation in this state space"),
        };
        let byte = self.lop3(lut::A & lut::B, low, Src::imm(2), Src::ZERO);
        let aligned = self.lop3(lut::A & lut::B, low, Src::imm(!3), Src::ZERO);
        let address = match high {
            Some(high) => self.pack(&[aligned, high]),
            None => aligned,
        };
        let is_low = self.compare(ICmp::Eq, false, byte, Src::ZERO);
        let shift = self.shift_left(byte, Src::imm(3));
        Ok(Half { word: Word { address, offset: 0, order, place }, is_low, shift })
    }

    fn differ(&mut self, size: CasSize, a: Src, b: Src) -> Src {
        if size == CasSize::B64 {
            let (a, b) = (self.pair(a), self.pair(b));
            self.compare_pair(ICmp::Ne, false, a, b)
        } else {
            self.compare(ICmp::Ne, false, a, b)
        }
    }

    /// Repeats compare-and-swap until no other thread interferes, and returns the old value. `swapped` computes the
    /// expected and the new value from the value that was read; `again` decides from the value that was found whether
    /// to repeat.
    fn swap_loop(
        &mut self,
        word: Word,
        size: CasSize,
        swapped: impl FnOnce(&mut Self, Src) -> Result<[Src; 2]>,
        again: impl FnOnce(&mut Self, Src, Src) -> Src,
    ) -> Result<Src> {
        let (width, bytes) = if size == CasSize::B64 { (2, MemSize::B64) } else { (1, MemSize::B32) };
        let Word { address, offset, order, place } = word;
        let seen = self.temporary(File::R, width);
        let first = self.guess(word, bytes, width);
        self.write_variable(seen, first);
        let generic = place == WordPlace::Generic;
        let (repeat, done) = (self.new_block(2), self.new_block(if generic { 2 } else { 1 }));
        self.end(Term::Jump(repeat));
        self.start(repeat);
        let old = self.read_variable(seen);
        let [compared, new] = swapped(self, old)?;
        let found = match place {
            WordPlace::Shared => {
                self.wide(width, Op::AtomsCas { size, order, offset }, &[address, Src::ZERO, compared, new])
            }
            WordPlace::Global | WordPlace::Generic => {
                let (found, served) = (self.new_value(File::R, width), self.new_value(File::P, 1));
                let op = Op::AtomCas { size, order, offset, generic };
                let srcs = [address, self.descriptor(), compared, new];
                let second = if generic { Dst::Value(served) } else { Dst::Sink };
                self.push(Inst::new(op, &[Dst::Value(found), second], &srcs, self.src));
                if generic {
                    let (own, shared) = (self.new_block(1), self.new_block(1));
                    self.end(Term::Branch { cond: served.into(), then: shared, els: own, uniform: false });
                    self.start(own);
                    let store = Op::St { access: Access::weak(bytes, offset) };
                    self.effect(store, &[address, srcs[1], new]);
                    self.end(Term::Jump(done));
                    self.start(shared);
                }
                found.into()
            }
        };
        let changed = again(self, found, compared);
        self.write_variable(seen, found);
        self.end(Term::Branch { cond: changed, then: repeat, els: done, uniform: false });
        self.start(done);
        Ok(self.read_variable(seen))
    }

    /// Reads the probable value of a word; compare-and-swap decides whether it is right.
    fn guess(&mut self, word: Word, size: MemSize, width: u8) -> Src {
        let Word { address, offset, order, place } = word;
        let scope = match order {
            Order::Relaxed(scope) | Order::Acquire(scope) | Order::Release(scope) | Order::AcqRel(scope) => {
                scope
            }
            _ => Scope::Gpu,
        };
        let access = Access { order: Order::Relaxed(scope), ..Access::weak(size, offset) };
        let op = match place {
            WordPlace::Shared => {
                Op::Lds { size, order: Order::Relaxed(Scope::Cta), scale: AddressScale::One, offset }
            }
            WordPlace::Global => Op::Ldg { access },
            WordPlace::Generic => Op::Ld { access },
        };
        let base = if place == WordPlace::Shared { Src::ZERO } else { self.descriptor() };
        self.wide(width, op, &[address, base])
    }

    /// Computes the new value of an operation that shared memory does not support.
    fn combine(&mut self, instr: &Statement<'_>, atomic: Atomic, old: Src, value: Src) -> Result<Src> {
        let Atomic { op, ty } = atomic;
        let signed = ty.is_signed();
        Ok(match (op, ty) {
            (AtomOp::Add, ScalarType::F32) => self.fadd(false, old, value),
            (AtomOp::Add, ScalarType::F64) => self.wide(2, Op::Dadd { round: Round::Rn }, &[old, value]),
            (AtomOp::Add, ScalarType::F16x2 | ScalarType::Bf16x2) => {
                let bf16 = ty == ScalarType::Bf16x2;
                let add = Op::Hadd2 { bf16, ftz: false, sat: false, f32: false, half: HalfRead::Own };
                if !self.encodes(&add) {
                    return self.unsupported(instr, "the type .bf16x2 on this target");
                }
                self.reg(add, &[old, value])
            }
            (_, ty) if ty.bits() == 64 && ty.kind() != TypeKind::Float => {
                let (old, value) = (self.pair(old), self.pair(value));
                let new = match op {
                    AtomOp::Add => self.add_pair(old, value),
                    AtomOp::Min | AtomOp::Max => {
                        let cmp = if op == AtomOp::Min { ICmp::Lt } else { ICmp::Gt };
                        let keep = self.compare_pair(cmp, signed, old, value);
                        self.select_pair(keep, old, value)
                    }
                    AtomOp::And | AtomOp::Or | AtomOp::Xor => {
                        let lut = match op {
                            AtomOp::And => lut::A & lut::B,
                            AtomOp::Or => lut::A | lut::B,
                            _ => lut::A ^ lut::B,
                        };
                        [0, 1].map(|i| self.lop3(lut, old[i], value[i], Src::ZERO))
                    }
                    _ => return self.unsupported(instr, "this operation and type"),
                };
                self.pack(&new)
            }
            _ => return self.unsupported(instr, "this operation and type"),
        })
    }
}
