//! `atom` and `red`: hardware operations, and compare-and-swap loops for what shared memory has not.

use super::memory::{Target, scope};
use super::{Lowering, Result, Statement};
use crate::input::Operand;
use crate::ori::ir::{Dst, File, Src, Term};
use crate::ori::memory::{Order, Scope};
use crate::ori::op::{AtomOp, AtomType, ICmp, MemSize, Op, Round};
use ptx_isa::{FormId, Mod, ScalarType, TypeKind};

const OPERATIONS: [(Mod, AtomOp); 9] = [
    (Mod::Add, AtomOp::Add),
    (Mod::Min, AtomOp::Min),
    (Mod::Max, AtomOp::Max),
    (Mod::Inc, AtomOp::Inc),
    (Mod::Dec, AtomOp::Dec),
    (Mod::And, AtomOp::And),
    (Mod::Or, AtomOp::Or),
    (Mod::Xor, AtomOp::Xor),
    (Mod::Exch, AtomOp::Exch),
];

/// What an atomic operation does with the old value and its operand.
#[derive(Clone, Copy)]
struct Atomic {
    op: AtomOp,
    ty: ScalarType,
}

impl Atomic {
    fn wide(self) -> bool {
        self.ty.bits() == 64
    }

    /// The hardware's type for the operation in global memory.
    fn global(self) -> Option<AtomType> {
        use AtomOp::{Add, And, Dec, Exch, Inc, Max, Min, Or, Xor};
        match (self.op, self.ty) {
            (Add, ScalarType::F32) => Some(AtomType::F32),
            (Add, ScalarType::F64) => Some(AtomType::F64),
            (Add, ScalarType::F16x2) => Some(AtomType::F16x2),
            (Add, ScalarType::Bf16x2) => Some(AtomType::Bf16x2),
            (_, ty) if matches!(ty.kind(), TypeKind::Float | TypeKind::Packed) => None,
            (Min | Max, ScalarType::S32) => Some(AtomType::S32),
            (Min | Max, ScalarType::S64) => Some(AtomType::S64),
            (Inc | Dec, ScalarType::U32) => Some(AtomType::U32),
            (Inc | Dec, _) => None,
            (Add | Min | Max | And | Or | Xor | Exch, ty) => match ty.bits() {
                32 => Some(AtomType::U32),
                64 => Some(AtomType::U64),
                _ => None,
            },
        }
    }

    /// The hardware's type for the operation in shared memory.
    fn shared(self) -> Option<AtomType> {
        match self.global()? {
            AtomType::U64 if self.op == AtomOp::Exch => Some(AtomType::U64),
            ty @ (AtomType::U32 | AtomType::S32) => Some(ty),
            _ => None,
        }
    }
}

/// What an atomic operation promises other threads.
fn order(instr: &Statement<'_>) -> Order {
    let scope = scope(instr).unwrap_or(Scope::Gpu);
    let orders = [
        (Mod::Relaxed, Order::Relaxed(scope)),
        (Mod::Acquire, Order::Acquire(scope)),
        (Mod::Release, Order::Release(scope)),
        (Mod::AcqRel, Order::AcqRel(scope)),
    ];
    instr.take(&orders).unwrap_or(Order::Relaxed(scope))
}

impl<'a> Lowering<'a> {
    /// `atom` and `red`.
    pub(super) fn atomic(&mut self, instr: &Statement<'a>) -> Result<()> {
        let ty = self.type_of(instr, 0)?;
        if !matches!(ty.bits(), 32 | 64) {
            return self.unsupported(instr, &format!("the type .{}", ty.text()));
        }
        if ty != ScalarType::F32 {
            // Additions of single floats flush, those of halves do not.
            instr.ignore(&[Mod::Noftz]);
        }
        let first = usize::from(instr.form() == FormId::Atom);
        let target = self.target(instr, first)?;
        let order = order(instr);
        self.release_before(instr);
        if instr.has(Mod::Cas) {
            let (compare, swap) = (self.source(instr, 2, ty)?, self.source(instr, 3, ty)?);
            let dst = self.operand(instr, 0)?;
            self.swap_once(instr, target, order, dst, ty, compare, swap)?;
        } else {
            let Some(op) = instr.take(&OPERATIONS) else {
                return self.malformed("an atomic operation without its name");
            };
            self.operate(instr, target, order, Atomic { op, ty }, first)?;
        }
        self.acquire_after(instr);
        Ok(())
    }

    fn operate(
        &mut self,
        instr: &Statement<'a>,
        target: Target,
        order: Order,
        atomic: Atomic,
        first: usize,
    ) -> Result<()> {
        let value = self.source(instr, first + 1, atomic.ty)?;
        let dst = if first == 1 { self.operand(instr, 0)? } else { &Operand::Sink };
        let op = atomic.op;
        match target {
            Target::Wide { address, offset, generic } => {
                let Some(ty) = atomic.global() else {
                    return self.unsupported(instr, "this operation and type");
                };
                let descriptor = self.descriptor();
                let srcs = [address, descriptor, value];
                if matches!(dst, Operand::Sink) && !generic && op != AtomOp::Exch && !order.acquires() {
                    self.effect(Op::Red { op, ty, order, offset }, &srcs);
                    return Ok(());
                }
                self.returning(dst, atomic.wide(), Op::Atom { op, ty, order, offset, generic }, &srcs)
            }
            Target::Shared { address, base, offset } => match atomic.shared() {
                Some(ty) => self.returning(
                    dst,
                    atomic.wide(),
                    Op::Atoms { op, ty, order, offset },
                    &[address, base, value],
                ),
                None => self.branch_around(|this| this.swap_until(instr, target, order, dst, atomic, value)),
            },
            _ => self.unsupported(instr, "an atomic operation in this state space"),
        }
    }

    /// An operation whose result goes to `dst`, under the statement's guard.
    fn returning(&mut self, dst: &Operand, wide: bool, op: Op, srcs: &[Src]) -> Result<()> {
        if matches!(dst, Operand::Sink) {
            self.guarded(op, &[Dst::Sink], srcs, &[Src::UNDEF]);
            return Ok(());
        }
        let old = match dst {
            Operand::Reg(reg) if !self.guard.is_true() => self.read_register(*reg)?,
            _ => Src::UNDEF,
        };
        let value = self.new_value(File::R, if wide { 2 } else { 1 });
        self.guarded(op, &[Dst::Value(value)], srcs, &[old]);
        let guard = std::mem::replace(&mut self.guard, Src::TRUE);
        let written = self.write(dst, value.into());
        self.guard = guard;
        written
    }

    /// A shared address with its base added: compare-and-swap takes no uniform base.
    pub(super) fn based(&mut self, address: Src, base: Src) -> Src {
        if base == Src::ZERO {
            return address;
        }
        let base = self.reg(Op::Mov, &[base]);
        self.add(base, address)
    }

    #[expect(clippy::too_many_arguments, reason = "the operands of one operation")]
    fn swap_once(
        &mut self,
        instr: &Statement<'_>,
        target: Target,
        order: Order,
        dst: &Operand,
        ty: ScalarType,
        compare: Src,
        swap: Src,
    ) -> Result<()> {
        let wide = ty.bits() == 64;
        match target {
            Target::Wide { address, offset, generic } => {
                let descriptor = self.descriptor();
                let op = Op::AtomCas { wide, order, offset, generic };
                self.returning(dst, wide, op, &[address, descriptor, compare, swap])
            }
            Target::Shared { address, base, offset } => {
                let address = self.based(address, base);
                let srcs = [address, Src::ZERO, compare, swap];
                self.returning(dst, wide, Op::AtomsCas { wide, order, offset }, &srcs)
            }
            _ => self.unsupported(instr, "an atomic operation in this state space"),
        }
    }

    /// Computes the new value from a read one and swaps until nothing came between.
    fn swap_until(
        &mut self,
        instr: &Statement<'a>,
        target: Target,
        order: Order,
        dst: &Operand,
        atomic: Atomic,
        value: Src,
    ) -> Result<()> {
        let Target::Shared { address, base, offset } = target else {
            return self.unsupported(instr, "a loop outside shared memory");
        };
        let (address, base) = (self.based(address, base), Src::ZERO);
        let (wide, width) = if atomic.wide() { (true, 2) } else { (false, 1) };
        let size = if wide { MemSize::B64 } else { MemSize::B32 };
        let seen = self.temporary(File::R, width);
        // A guess: the swap decides.
        let guess = Op::Lds { size, order: Order::Relaxed(Scope::Cta), offset };
        let first = self.wide(width, guess, &[address, base]);
        self.write_variable(seen, first);
        let (again, done) = (self.new_block(2), self.new_block(1));
        self.end(Term::Jump(again));
        self.start(again);
        let old = self.read_variable(seen);
        let new = self.combine(instr, atomic, old, value)?;
        let found = self.wide(width, Op::AtomsCas { wide, order, offset }, &[address, base, old, new]);
        let changed = if wide {
            let (found, old) = (self.pair(found), self.pair(old));
            self.compare_pair(ICmp::Ne, false, found, old)
        } else {
            self.compare(ICmp::Ne, false, found, old)
        };
        self.write_variable(seen, found);
        self.end(Term::Branch { cond: changed, then: again, els: done, uniform: false });
        self.start(done);
        self.write(dst, found)
    }

    /// The new value of an operation that shared memory has not.
    fn combine(&mut self, instr: &Statement<'_>, atomic: Atomic, old: Src, value: Src) -> Result<Src> {
        use super::integer::lut;
        let Atomic { op, ty } = atomic;
        let signed = ty.is_signed();
        Ok(match (op, ty) {
            (AtomOp::Add, ScalarType::F32) => self.fadd(false, old, value),
            (AtomOp::Add, ScalarType::F64) => self.wide(2, Op::Dadd { round: Round::Rn }, &[old, value]),
            (AtomOp::Add, ScalarType::F16x2 | ScalarType::Bf16x2) => {
                let bf16 = ty == ScalarType::Bf16x2;
                let add = Op::Hadd2 { bf16, ftz: false, sat: false, f32: false };
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
