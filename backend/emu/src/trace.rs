//! The trace of a launch: for each warp the instructions that it issued in order, the memory that they accessed, and
//! the arrivals that ended each wait. The [clock](crate::clock) replays it.

/// The trace of a launch. Its size is proportional to the number of instructions issued.
#[derive(Debug, Default)]
pub struct Trace {
    /// Indexed by cluster, block and warp.
    pub(crate) clusters: Vec<Vec<Vec<Vec<Issued>>>>,
    pub(crate) details: Vec<Detail>,
    /// The lines of global memory that were accessed.
    pub(crate) lines: Vec<Line>,
    /// The number of arrivals that each event takes.
    pub(crate) events: Vec<u32>,
}

/// An instruction that a warp issued.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Issued {
    pub(crate) at: u32,
    /// The range of its details.
    pub(crate) first: u32,
    pub(crate) count: u16,
    /// Whether the guard was true in some thread.
    pub(crate) acts: bool,
}

/// The number of an event, such as the end of a phase of a barrier.
pub(crate) type EventId = u32;

/// A line of 128 bytes of global memory, and which of its 32-byte sectors were accessed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line {
    pub(crate) number: u64,
    pub(crate) sectors: u8,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Detail {
    /// An access to shared memory, and its passes.
    Shared { passes: u16 },
    /// A range of the lines.
    Global { first: u32, count: u16 },
    /// A bulk copy of `bytes` from shared memory.
    Moves { bytes: u32 },
    /// An arrival.
    Arrives(EventId, Arrival),
    /// The warp waits for the event.
    Waits(EventId, Wait),
}

/// When an arrival takes effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Arrival {
    AtOnce,
    /// After the copies that the warp has begun are complete.
    AfterCopies,
    /// After a bulk copy of this many bytes is complete.
    Transfer(u32),
}

/// What a warp waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wait {
    Block,
    Cluster,
    Object,
}
