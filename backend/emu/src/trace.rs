//! What the warps of a launch did, in their order: the instructions that they issued, the memory that these touched, and
//! which waits ended by which arrivals. The [clock](crate::clock) replays it.

/// A launch. All memory that a trace takes is in proportion to the instructions issued.
#[derive(Debug, Default)]
pub struct Trace {
    /// By cluster, block and warp.
    pub(crate) clusters: Vec<Vec<Vec<Vec<Issued>>>>,
    pub(crate) details: Vec<Detail>,
    /// The lines of global memory that accesses touched.
    pub(crate) lines: Vec<Line>,
    /// By event: how many arrivals it takes.
    pub(crate) events: Vec<u32>,
}

/// An instruction that a warp issued.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Issued {
    pub(crate) at: u32,
    /// A range of the details.
    pub(crate) first: u32,
    pub(crate) count: u16,
    /// The guard held in some thread.
    pub(crate) acts: bool,
}

/// The number of an event, such as the end of a phase of a barrier.
pub(crate) type EventId = u32;

/// 128 bytes of global memory and which 32-byte sectors of them were touched.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line {
    pub(crate) number: u64,
    pub(crate) sectors: u8,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Detail {
    /// Passes over shared memory.
    Shared { passes: u16 },
    /// A range of the lines.
    Global { first: u32, count: u16 },
    /// A bulk copy of so many bytes out of shared memory.
    Moves { bytes: u32 },
    /// An arrival.
    Arrives(EventId, Arrival),
    /// The warp goes on after the event.
    Waits(EventId, Wait),
}

/// When an arrival counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Arrival {
    AtOnce,
    /// When the copies that the warp has begun are over.
    AfterCopies,
    /// When a bulk copy of so many bytes is over.
    Transfer(u32),
}

/// What a warp waits at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wait {
    Block,
    Cluster,
    Object,
}
