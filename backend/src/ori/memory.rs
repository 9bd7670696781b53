//! What operations do to memory and to other threads.
//!
//! An access is described once, by what PTX says of it: state space, size, order and scope. The description is
//! part of the operation, printed with it, and handed on to the machine code. [`super::alias`] answers what may
//! be exchanged, removed or merged by it. An operation that [`effect`] does not list has the worst effect.

use crate::ori::op::{AtomType, Op};
use crate::ori::signature::{size_bytes, special};

/// The threads that a strong access synchronises with. A cluster's are served by the device's.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Scope {
    Cta,
    Gpu,
    Sys,
}

/// What an access promises other threads, by PTX's memory model.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Order {
    /// Ordered by data dependences of the thread alone.
    Weak,
    /// Reads what nothing writes while the kernel runs: `.nc`.
    Constant,
    /// As relaxed for the whole system, and in its place among its like.
    Volatile,
    /// As volatile, of memory with side effects.
    Mmio,
    Relaxed(Scope),
    /// No later access comes before it.
    Acquire(Scope),
    /// No earlier access comes after it.
    Release(Scope),
    AcqRel(Scope),
}

impl Order {
    pub const ALL: &'static [Order] = &[
        Order::Weak,
        Order::Constant,
        Order::Volatile,
        Order::Mmio,
        Order::Relaxed(Scope::Cta),
        Order::Relaxed(Scope::Gpu),
        Order::Relaxed(Scope::Sys),
        Order::Acquire(Scope::Cta),
        Order::Acquire(Scope::Gpu),
        Order::Acquire(Scope::Sys),
        Order::Release(Scope::Cta),
        Order::Release(Scope::Gpu),
        Order::Release(Scope::Sys),
        Order::AcqRel(Scope::Cta),
        Order::AcqRel(Scope::Gpu),
        Order::AcqRel(Scope::Sys),
    ];

    /// As printed in an operation's name: PTX's words.
    pub const fn text(self) -> &'static str {
        match self {
            Order::Weak => "",
            Order::Constant => ".CONSTANT",
            Order::Volatile => ".VOLATILE",
            Order::Mmio => ".MMIO",
            Order::Relaxed(Scope::Cta) => ".RELAXED.CTA",
            Order::Relaxed(Scope::Gpu) => ".RELAXED.GPU",
            Order::Relaxed(Scope::Sys) => ".RELAXED.SYS",
            Order::Acquire(Scope::Cta) => ".ACQUIRE.CTA",
            Order::Acquire(Scope::Gpu) => ".ACQUIRE.GPU",
            Order::Acquire(Scope::Sys) => ".ACQUIRE.SYS",
            Order::Release(Scope::Cta) => ".RELEASE.CTA",
            Order::Release(Scope::Gpu) => ".RELEASE.GPU",
            Order::Release(Scope::Sys) => ".RELEASE.SYS",
            Order::AcqRel(Scope::Cta) => ".ACQ_REL.CTA",
            Order::AcqRel(Scope::Gpu) => ".ACQ_REL.GPU",
            Order::AcqRel(Scope::Sys) => ".ACQ_REL.SYS",
        }
    }

    /// Other threads may watch or cause it: it is neither removed nor merged.
    pub const fn is_strong(self) -> bool {
        !matches!(self, Order::Weak | Order::Constant)
    }

    /// In its place among its like, wherever they go.
    pub const fn is_volatile(self) -> bool {
        matches!(self, Order::Volatile | Order::Mmio)
    }

    pub const fn acquires(self) -> bool {
        matches!(self, Order::Acquire(_) | Order::AcqRel(_))
    }

    pub const fn releases(self) -> bool {
        matches!(self, Order::Release(_) | Order::AcqRel(_))
    }
}

/// The memory that an address points into.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Space {
    Global,
    /// Any of the others.
    Generic,
    Shared,
    /// The thread's own.
    Local,
    /// Constant banks, parameters among them: nothing writes them while the kernel runs.
    Constant,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Kind {
    Load,
    Store,
    /// Atomic: reads and writes.
    Update,
}

/// One access of memory, its address apart.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Memory {
    pub space: Space,
    pub kind: Kind,
    pub order: Order,
    /// Bytes added to the address.
    pub offset: i32,
    /// Bytes accessed.
    pub bytes: u8,
}

impl Memory {
    pub const fn writes(&self) -> bool {
        !matches!(self.kind, Kind::Load)
    }

    /// Nothing writes what it reads.
    pub const fn is_constant(&self) -> bool {
        matches!(self.space, Space::Constant) || matches!(self.order, Order::Constant)
    }
}

/// What an operation does besides reading and writing registers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Effect {
    None,
    /// Reads what changes by itself, such as a clock: keeps its place, but may be removed.
    Observes,
    /// Involves the other threads of the warp: keeps its place among its like.
    Warp {
        removable: bool,
    },
    Memory(Memory),
    /// Reads and writes all memory, or waits for other threads: nothing with an effect passes it.
    Everything,
}

/// What `op` does besides reading and writing registers.
pub fn effect(op: &Op) -> Effect {
    if let Some(memory) = memory(op) {
        return Effect::Memory(memory);
    }
    match op {
        Op::S2r { sr } | Op::S2ur { sr } | Op::Cs2r { sr, .. } => {
            if special::is_stable(*sr) {
                Effect::None
            } else {
                Effect::Observes
            }
        }
        Op::Shfl { .. } | Op::Vote { .. } | Op::Match { .. } | Op::Redux { .. } | Op::R2ur => {
            Effect::Warp { removable: true }
        }
        Op::B2r { .. } => Effect::Warp { removable: false },
        Op::Pack
        | Op::Copy
        | Op::Mov
        | Op::Sel
        | Op::Fsel { .. }
        | Op::Prmt
        | Op::Iadd3 { .. }
        | Op::Imad { .. }
        | Op::ImadWide { .. }
        | Op::ImadHi { .. }
        | Op::ImadX { .. }
        | Op::Lea { .. }
        | Op::LeaHi { .. }
        | Op::LeaHiSx32 { .. }
        | Op::Lop3 { .. }
        | Op::Lop3P { .. }
        | Op::Plop3 { .. }
        | Op::Shf { .. }
        | Op::Isetp { .. }
        | Op::Imnmx { .. }
        | Op::Iabs
        | Op::Popc
        | Op::Flo { .. }
        | Op::Brev
        | Op::Sgxt { .. }
        | Op::Bmsk { .. }
        | Op::Idp { .. }
        | Op::Vabsdiff { .. }
        | Op::Fadd { .. }
        | Op::Fmul { .. }
        | Op::Ffma { .. }
        | Op::Fmnmx { .. }
        | Op::Fsetp { .. }
        | Op::Mufu { .. }
        | Op::Fchk
        | Op::Dadd { .. }
        | Op::Dmul { .. }
        | Op::Dfma { .. }
        | Op::Dsetp { .. }
        | Op::Hadd2 { .. }
        | Op::Hmul2 { .. }
        | Op::Hfma2 { .. }
        | Op::Hsetp2 { .. }
        | Op::Hmnmx2 { .. }
        | Op::I2f { .. }
        | Op::I2fp { .. }
        | Op::F2i { .. }
        | Op::F2f { .. }
        | Op::Frnd { .. }
        | Op::F2fp { .. }
        | Op::Uldc { .. }
        | Op::Umov
        | Op::Ulea { .. } => Effect::None,
        // Barriers, fences, traps, waits, and what is not listed.
        _ => Effect::Everything,
    }
}

/// The access that `op` makes.
pub fn memory(op: &Op) -> Option<Memory> {
    let of = |space, kind, order, offset, bytes| Some(Memory { space, kind, order, offset, bytes });
    let wide = |generic| if generic { Space::Generic } else { Space::Global };
    match *op {
        Op::Ldg { access } => {
            of(Space::Global, Kind::Load, access.order, access.offset, size_bytes(access.size))
        }
        Op::Stg { access } => {
            of(Space::Global, Kind::Store, access.order, access.offset, size_bytes(access.size))
        }
        Op::Ld { access } => {
            of(Space::Generic, Kind::Load, access.order, access.offset, size_bytes(access.size))
        }
        Op::St { access } => {
            of(Space::Generic, Kind::Store, access.order, access.offset, size_bytes(access.size))
        }
        Op::Lds { size, order, offset } => of(Space::Shared, Kind::Load, order, offset, size_bytes(size)),
        Op::Sts { size, order, offset } => of(Space::Shared, Kind::Store, order, offset, size_bytes(size)),
        // Local memory is the thread's own: PTX has no orders for it.
        Op::Ldl { size, offset } => of(Space::Local, Kind::Load, Order::Weak, offset, size_bytes(size)),
        Op::Stl { size, offset } => of(Space::Local, Kind::Store, Order::Weak, offset, size_bytes(size)),
        Op::Ldc { size, offset, .. } => {
            of(Space::Constant, Kind::Load, Order::Constant, offset, size_bytes(size))
        }
        Op::Atom { ty, order, offset, generic, .. } => {
            of(wide(generic), Kind::Update, order, offset, atom_bytes(ty))
        }
        Op::AtomCas { wide: double, order, offset, generic } => {
            of(wide(generic), Kind::Update, order, offset, if double { 8 } else { 4 })
        }
        Op::Red { ty, order, offset, .. } => of(Space::Global, Kind::Update, order, offset, atom_bytes(ty)),
        Op::Atoms { ty, order, offset, .. } => of(Space::Shared, Kind::Update, order, offset, atom_bytes(ty)),
        Op::AtomsCas { wide: double, order, offset } => {
            of(Space::Shared, Kind::Update, order, offset, if double { 8 } else { 4 })
        }
        _ => None,
    }
}

/// Bytes that an atomic operation of a type accesses.
pub const fn atom_bytes(ty: AtomType) -> u8 {
    match ty {
        AtomType::U64 | AtomType::S64 | AtomType::F64 => 8,
        AtomType::U32 | AtomType::S32 | AtomType::F32 | AtomType::F16x2 | AtomType::Bf16x2 => 4,
    }
}
