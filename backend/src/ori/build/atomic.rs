//! `atom` and `red`: hardware operations, and the loops of [`super::atomic_loop`] for operations that a memory does not
//! support.

use super::atomic_loop::{Word, WordPlace};
use super::memory::{Target, elements, scope};
use super::multimem;
use super::operand::registers;
use super::{Lowering, Result, Statement};
use crate::input::Operand;
use crate::ori::ir::{Dst, File, Inst, Src, Term};
use crate::ori::memory::{Order, Scope};
use crate::ori::op::{AtomOp, AtomType, CasSize, Op};
use crate::ori::signature::atom_registers;
use ptx_isa::{FormId, Mod, ScalarType, TypeKind};

pub(super) const OPERATIONS: [(Mod, AtomOp); 9] = [
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

/// The operation of an atomic on the old value and its operand.
#[derive(Clone, Copy)]
pub(super) struct Atomic {
    pub(super) op: AtomOp,
    pub(super) ty: ScalarType,
}

impl Atomic {
    /// The size of the compare-and-swap if the operation is a loop.
    pub(super) fn size(self) -> CasSize {
        cas_size(self.ty)
    }

    /// The hardware type of the operation in global memory.
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
            (Exch, ScalarType::B128) => Some(AtomType::B128),
            (Add | Min | Max | And | Or | Xor | Exch, ty) => match ty.bits() {
                32 => Some(AtomType::U32),
                64 => Some(AtomType::U64),
                _ => None,
            },
        }
    }

    /// The hardware type of the operation in shared memory.
    fn shared(self) -> Option<AtomType> {
        match self.global()? {
            ty @ (AtomType::U64 | AtomType::B128) if self.op == AtomOp::Exch => Some(ty),
            ty @ (AtomType::U32 | AtomType::S32) => Some(ty),
            _ => None,
        }
    }
}

fn cas_size(ty: ScalarType) -> CasSize {
    match ty.bits() {
        128 => CasSize::B128,
        64 => CasSize::B64,
        _ => CasSize::B32,
    }
}

/// The hardware type of an operation on all elements of a vector.
fn vector(ty: ScalarType, elements: usize) -> Option<AtomType> {
    match (ty, elements as u32 * ty.bits()) {
        (ScalarType::F32, 64) => Some(AtomType::F32x2),
        (ScalarType::F32, 128) => Some(AtomType::F32x4),
        (ScalarType::F16 | ScalarType::F16x2, 32) => Some(AtomType::F16x2),
        (ScalarType::F16 | ScalarType::F16x2, 64) => Some(AtomType::F16x4),
        (ScalarType::F16 | ScalarType::F16x2, 128) => Some(AtomType::F16x8),
        (ScalarType::Bf16 | ScalarType::Bf16x2, 32) => Some(AtomType::Bf16x2),
        (ScalarType::Bf16 | ScalarType::Bf16x2, 64) => Some(AtomType::Bf16x4),
        (ScalarType::Bf16 | ScalarType::Bf16x2, 128) => Some(AtomType::Bf16x8),
        _ => None,
    }
}

/// The memory order of an atomic operation.
fn order(instr: &Statement<'_>) -> Order {
    let widest = if multimem::is_of_devices(instr.form()) { Scope::Sys } else { Scope::Gpu };
    let scope = scope(instr).unwrap_or(widest);
    let orders = [
        (Mod::Relaxed, Order::Relaxed(scope)),
        (Mod::Acquire, Order::Acquire(scope)),
        (Mod::Release, Order::Release(scope)),
        (Mod::AcqRel, Order::AcqRel(scope)),
    ];
    instr.take(&orders).unwrap_or(Order::Relaxed(scope))
}

impl<'a> Lowering<'a> {
    /// `atom` and `red`. The cache invalidation of an acquire is under the same branch as the operation.
    pub(super) fn atomic(&mut self, instr: &Statement<'a>) -> Result<()> {
        match instr.any_of(&[Mod::Acquire, Mod::AcqRel]) {
            Some(_) => self.branch_around(|this| this.ordered_atomic(instr)),
            None => self.ordered_atomic(instr),
        }
    }

    fn ordered_atomic(&mut self, instr: &Statement<'a>) -> Result<()> {
        let ty = self.type_of(instr, 0)?;
        if !matches!(ty.bits(), 16 | 32 | 64 | 128) {
            return self.unsupported(instr, &format!("the type `.{}`", ty.text()));
        }
        if ty != ScalarType::F32 {
            // Hardware additions of single floats always flush denormals, those of halves never do.
            instr.ignore(&[Mod::Noftz]);
        }
        let first = usize::from(instr.form() == FormId::Atom);
        if multimem::is_of_devices(instr.form()) {
            // Each device adds in the same way with or without it.
            instr.ignore(&[Mod::AccF32, Mod::AccF16]);
        }
        let target = self.target(instr, first)?;
        let order = order(instr);
        self.release_before(instr);
        if ty.bits() == 16 && instr.has(Mod::L2CacheHint) {
            // A compare-and-swap of the containing word has no cache policy.
            instr.operand(instr.operand_count() - 1);
        }
        if instr.has(Mod::Cas) {
            let (compare, swap) = (self.source(instr, 2, ty)?, self.source(instr, 3, ty)?);
            let dst = self.operand(instr, 0)?;
            if ty.bits() == 16 {
                self.branch_around(|this| this.swap_half(instr, target, order, dst, compare, swap))?;
            } else {
                self.swap_once(instr, target, order, dst, ty, compare, swap)?;
            }
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
        if atomic.ty.bits() == 16 {
            return self.branch_around(|this| this.update_half(instr, target, order, dst, atomic, value));
        }
        match target {
            Target::Wide { address, offset, generic } => {
                let Some(ty) = atomic.global().filter(|ty| self.has_atomic(op, *ty)) else {
                    return self.unsupported(instr, "this operation and type on this target");
                };
                let atom = Op::Atom { op, ty, order, offset, generic };
                if generic && atomic.shared().is_none() {
                    return self.branch_around(|this| {
                        let srcs = [address, this.descriptor_of(instr)?, value];
                        this.update_generic(instr, atom, &srcs, dst, atomic)
                    });
                }
                let srcs = [address, self.descriptor_of(instr)?, value];
                self.update(dst, op, ty, atom, &srcs)
            }
            Target::Shared { address, base, offset } => match atomic.shared() {
                Some(ty) => self.returning(
                    dst,
                    atom_registers(ty),
                    Op::Atoms { op, ty, order, offset },
                    &[address, base, value],
                ),
                None => self.branch_around(|this| {
                    let address = this.based(address, base);
                    let word = Word { address, offset, order, place: WordPlace::Shared };
                    this.update_until(instr, word, dst, atomic, value)
                }),
            },
            _ => self.unsupported(instr, "an atomic operation in this state space"),
        }
    }

    /// Emits a hardware operation on global or generic memory; a reduction if the result is not needed.
    fn update(&mut self, dst: &Operand, op: AtomOp, ty: AtomType, atom: Op, srcs: &[Src]) -> Result<()> {
        match atom {
            Op::Atom { order, offset, generic: false, .. }
                if matches!(dst, Operand::Sink) && op != AtomOp::Exch && !order.acquires() =>
            {
                self.effect(Op::Red { op, ty, order, offset }, srcs);
                Ok(())
            }
            _ => self.returning(dst, atom_registers(ty), atom, srcs),
        }
    }

    /// Whether the target has the operation in global memory.
    fn has_atomic(&self, op: AtomOp, ty: AtomType) -> bool {
        let order = Order::Relaxed(Scope::Gpu);
        self.encodes(&Op::Atom { op, ty, order, offset: 0, generic: false })
    }

    /// `atom` and `red` of vectors. Each element is a separate atomic operation.
    pub(super) fn update_vector(&mut self, instr: &Statement<'a>) -> Result<()> {
        let ty = self.type_of(instr, 0)?;
        if ty != ScalarType::F32 {
            instr.ignore(&[Mod::Noftz]);
        }
        let first = usize::from(instr.form() == FormId::AtomVector);
        if multimem::is_of_devices(instr.form()) {
            // Each device adds in the same way with or without it.
            instr.ignore(&[Mod::AccF32, Mod::AccF16]);
        }
        let target = self.target(instr, first)?;
        let order = order(instr);
        let values = elements(instr, self.operand(instr, first + 1)?);
        let Some(op) = instr.take(&OPERATIONS) else {
            return self.malformed("an atomic operation without its name");
        };
        let Some(kind) = vector(ty, values.len()).filter(|kind| self.has_atomic(op, *kind)) else {
            return self.unsupported(instr, "vectors on this target");
        };
        let Target::Wide { address, offset, generic } = target else {
            return self.unsupported(instr, "a vector in this state space");
        };
        self.release_before(instr);
        let value = self.stored(values, ty)?;
        let atom = Op::Atom { op, ty: kind, order, offset, generic };
        if first == 0 {
            let srcs = [address, self.descriptor_of(instr)?, value];
            self.update(&Operand::Sink, op, kind, atom, &srcs)?;
        } else {
            let dsts = elements(instr, self.operand(instr, 0)?);
            self.branch_around(|this| {
                let width = atom_registers(kind);
                let srcs = [address, this.descriptor_of(instr)?, value];
                let old = this.wide(width, atom, &srcs);
                let words: Vec<Src> =
                    if width == 1 { vec![old] } else { (0..width).map(|i| this.part(old, i)).collect() };
                this.write_elements(dsts, &words, ty)?;
                this.acquire_after(instr);
                Ok(())
            })?;
        }
        Ok(())
    }

    /// A generic operation that exists only for global memory. For other addresses the hardware does nothing and
    /// reports this; then a loop with compare-and-swap, which also exists for shared memory, executes the operation.
    fn update_generic(
        &mut self,
        instr: &Statement<'a>,
        atom: Op,
        srcs: &[Src; 3],
        dst: &Operand,
        atomic: Atomic,
    ) -> Result<()> {
        let Op::Atom { ty, order, offset, .. } = atom else {
            return self.malformed("an operation that is not atomic");
        };
        let result = self.temporary(File::R, atom_registers(ty));
        let (value, done) = (self.new_value(File::R, atom_registers(ty)), self.new_value(File::P, 1));
        self.push(Inst::new(atom, &[Dst::Value(value), Dst::Value(done)], srcs, self.src));
        self.write_variable(result, value.into());
        let (elsewhere, end) = (self.new_block(1), self.new_block(2));
        self.end(Term::Branch { cond: done.into(), then: end, els: elsewhere, uniform: false });
        self.start(elsewhere);
        let word = Word { address: srcs[0], offset, order, place: WordPlace::Generic };
        let old = self.swap_until(instr, word, atomic, srcs[2])?;
        self.write_variable(result, old);
        self.end(Term::Jump(end));
        self.start(end);
        let old = self.read_variable(result);
        self.write(dst, old)
    }

    /// Emits an operation with a result of `width` registers that goes to `dst`, under the statement's guard.
    fn returning(&mut self, dst: &Operand, width: u8, op: Op, srcs: &[Src]) -> Result<()> {
        if matches!(dst, Operand::Sink) {
            self.guarded(op, &[Dst::Sink], srcs, &[Src::UNDEF]);
            return Ok(());
        }
        let old = match dst {
            Operand::Reg(reg) if !self.guard.is_true() => self.read_register(*reg)?,
            _ => Src::UNDEF,
        };
        let value = self.new_value(File::R, width);
        self.guarded(op, &[Dst::Value(value)], srcs, &[old]);
        let guard = std::mem::replace(&mut self.guard, Src::TRUE);
        let written = self.write(dst, value.into());
        self.guard = guard;
        written
    }

    /// Adds the base to a shared address, because compare-and-swap has no uniform base.
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
        instr: &Statement<'a>,
        target: Target,
        order: Order,
        dst: &Operand,
        ty: ScalarType,
        compare: Src,
        swap: Src,
    ) -> Result<()> {
        let (size, width) = (cas_size(ty), registers(ty));
        match target {
            Target::Wide { address, offset, generic } => {
                let descriptor = self.descriptor_of(instr)?;
                let op = Op::AtomCas { size, order, offset, generic };
                if !self.encodes(&op) {
                    return self.unsupported(instr, "this type on this target");
                }
                self.returning(dst, width, op, &[address, descriptor, compare, swap])
            }
            Target::Shared { address, base, offset } => {
                let address = self.based(address, base);
                let srcs = [address, Src::ZERO, compare, swap];
                self.returning(dst, width, Op::AtomsCas { size, order, offset }, &srcs)
            }
            _ => self.unsupported(instr, "an atomic operation in this state space"),
        }
    }
}
