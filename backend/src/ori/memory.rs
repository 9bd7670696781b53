//! The effects of operations on memory and on other threads.
//!
//! An access is described once, by its properties in PTX: state space, size, order and scope. The description is part
//! of the operation, is printed with it, and is attached to the machine instruction. [`super::alias`] uses it to decide
//! which accesses may be reordered, removed or merged. A row of the operation table that states no effect has the
//! strongest one.

use crate::ori::op::Op;
use crate::ori::operations::facts;

/// The threads that a strong access synchronizes with. Cluster scope is implemented by device scope.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Scope {
    Cta,
    Gpu,
    Sys,
}

/// The order of an access in PTX's memory model.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Order {
    /// Ordered only by data dependences of the thread.
    Weak,
    /// Reads memory that is never written while the kernel runs: `.nc`.
    Constant,
    /// Like relaxed for the whole system, and in order with other volatile accesses.
    Volatile,
    /// Like volatile, for memory with side effects.
    Mmio,
    Relaxed(Scope),
    /// No later access moves before it.
    Acquire(Scope),
    /// No earlier access moves after it.
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

    /// The text in an operation's name, in the words of PTX.
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

    /// Other threads may observe or cause the access, so it is neither removed nor merged.
    pub const fn is_strong(self) -> bool {
        !matches!(self, Order::Weak | Order::Constant)
    }

    /// The names in machine instructions; the first that a form has is used. Before sm_80 every access has a scope.
    /// Fences around the access implement the rest of acquire and release.
    pub const fn machine_texts(self) -> &'static [&'static str] {
        match self {
            Order::Weak => &[".SYS", ""],
            Order::Constant => &[".CONSTANT.SYS", ".CONSTANT"],
            Order::Mmio => &[".MMIO.SYS"],
            Order::Volatile => &[".STRONG.SYS"],
            Order::Relaxed(scope) | Order::Acquire(scope) | Order::Release(scope) | Order::AcqRel(scope) => {
                match scope {
                    Scope::Cta => &[".STRONG.CTA", ".STRONG.SM"],
                    Scope::Gpu => &[".STRONG.GPU"],
                    Scope::Sys => &[".STRONG.SYS"],
                }
            }
        }
    }

    /// Whether the access keeps its order relative to other volatile accesses, for any addresses.
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
    /// Any of the other spaces.
    Generic,
    Shared,
    /// The memory of the thread.
    Local,
    /// Constant banks, including parameters: they are not written while the kernel runs.
    Constant,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Kind {
    Load,
    Store,
    /// Atomic: reads and writes.
    Update,
    /// Writes to the space values that it reads from global memory, at any time until the thread waits for the copy.
    Copy,
}

/// A memory access, without its address.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Memory {
    pub space: Space,
    pub kind: Kind,
    pub order: Order,
    /// The number of bytes added to the address.
    pub offset: i32,
    /// The number of bits by which the register of the address is shifted.
    pub scale: u8,
    /// The number of bytes accessed, or [`Memory::ANYWHERE`].
    pub bytes: u8,
}

impl Memory {
    /// The thread's address does not determine the accessed bytes, because other threads of the warp supply addresses.
    pub const ANYWHERE: u8 = u8::MAX;

    /// For a copy, the access that it writes, and the one that it reads at another address; for other accesses, the
    /// access itself.
    pub const fn parts(&self) -> [Option<Memory>; 2] {
        if !matches!(self.kind, Kind::Copy) {
            return [Some(*self), None];
        }
        let read = Memory {
            space: Space::Global,
            kind: Kind::Load,
            order: self.order,
            offset: 0,
            scale: 0,
            bytes: Memory::ANYWHERE,
        };
        [Some(Memory { kind: Kind::Store, ..*self }), Some(read)]
    }

    pub const fn writes(&self) -> bool {
        !matches!(self.kind, Kind::Load)
    }

    /// Whether it only reads, and other threads cannot observe when.
    pub const fn is_weak_load(&self) -> bool {
        matches!(self.kind, Kind::Load) && !self.order.is_strong()
    }

    /// Whether the memory that it reads is never written.
    pub const fn is_constant(&self) -> bool {
        matches!(self.space, Space::Constant) || matches!(self.order, Order::Constant)
    }
}

/// The effect of an operation besides reading and writing registers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Effect {
    None,
    /// Reads a value that changes by itself, such as a clock. Keeps its order, but may be removed.
    Observes,
    /// Involves other threads of the warp. Keeps its order relative to other such operations.
    Warp {
        removable: bool,
    },
    Memory(Memory),
    /// Reads and writes all memory, or waits for other threads: no operation with an effect moves across it.
    Everything,
}

/// The effect of `op` besides reading and writing registers.
pub fn effect(op: &Op) -> Effect {
    facts(op).effect
}

/// The access that `op` makes.
pub fn memory(op: &Op) -> Option<Memory> {
    match effect(op) {
        Effect::Memory(memory) => Some(memory),
        _ => None,
    }
}
