//! What operations do to memory and to other threads.
//!
//! An access is described once, by what PTX says of it: state space, size, order and scope. The description is
//! part of the operation, printed with it, and handed on to the machine code. [`super::alias`] answers what may
//! be exchanged, removed or merged by it. A row of the operation table that states no effect has the worst one.

use crate::ori::op::Op;
use crate::ori::operations::facts;

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

    /// What machine instructions call it, the first that a form has: before sm_80 every access has a scope. What
    /// acquires and releases beyond the access itself is done by fences around it.
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
    /// Writes the space what it reads from global memory, at any time until the thread waits for it.
    Copy,
}

/// One access of memory, its address apart.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Memory {
    pub space: Space,
    pub kind: Kind,
    pub order: Order,
    /// Bytes added to the address.
    pub offset: i32,
    /// Bytes accessed, or [`Memory::ANYWHERE`].
    pub bytes: u8,
}

impl Memory {
    /// The thread's address does not tell which bytes are accessed: other threads of the warp give theirs.
    pub const ANYWHERE: u8 = u8::MAX;

    /// What a copy writes, and what it reads at an address of its own; of anything else, that alone.
    pub const fn parts(&self) -> [Option<Memory>; 2] {
        if !matches!(self.kind, Kind::Copy) {
            return [Some(*self), None];
        }
        let read = Memory {
            space: Space::Global,
            kind: Kind::Load,
            order: self.order,
            offset: 0,
            bytes: Memory::ANYWHERE,
        };
        [Some(Memory { kind: Kind::Store, ..*self }), Some(read)]
    }

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
    facts(op).effect
}

/// The access that `op` makes.
pub fn memory(op: &Op) -> Option<Memory> {
    match effect(op) {
        Effect::Memory(memory) => Some(memory),
        _ => None,
    }
}
