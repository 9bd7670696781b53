//! What a kernel is launched with, and how a run can fail.

use std::fmt;

/// Threads of a warp.
pub const WARP: usize = 32;

/// A launch of one kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Launch {
    /// Blocks of the grid.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Blocks of a cluster, where the kernel is launched with clusters.
    pub cluster: Option<[u32; 3]>,
    /// All blocks run at once, as in a cooperative launch. Otherwise clusters run one after the other.
    pub together: bool,
    /// The parameter block.
    pub params: Vec<u8>,
    /// Where each parameter starts in the block, and its bytes; for kernels that want them elsewhere.
    pub places: Vec<(u32, u32)>,
    /// Bytes of dynamic shared memory.
    pub dynamic_shared: u32,
    /// Instructions of warps after which the run is given up.
    pub steps: u64,
    /// Reading what was never written is a fault of PTX, and so are races for memory.
    pub strict: bool,
}

impl Launch {
    /// A launch of a line of blocks.
    pub fn new(grid: u32, block: u32, params: Vec<u8>) -> Launch {
        Launch {
            grid: [grid, 1, 1],
            block: [block, 1, 1],
            cluster: None,
            together: false,
            params,
            places: Vec::new(),
            dynamic_shared: 0,
            steps: 20_000_000,
            strict: false,
        }
    }

    pub fn threads(&self) -> u32 {
        self.block.iter().product()
    }

    /// Blocks of a cluster; without clusters each block is one.
    pub fn cluster_extent(&self) -> [u32; 3] {
        self.cluster.unwrap_or([1; 3])
    }

    /// The indices of the blocks of every cluster, in the order of their ranks; of the whole grid where its blocks run at once.
    ///
    /// # Errors
    /// A grid that is not made of whole clusters.
    pub fn clusters(&self) -> Result<Vec<Vec<[u32; 3]>>, FaultKind> {
        let extent = self.cluster_extent();
        if (0..3).any(|i| extent[i] == 0 || !self.grid[i].is_multiple_of(extent[i])) {
            return Err(FaultKind::Malformed("the grid is not made of whole clusters".into()));
        }
        if self.together {
            return match extent {
                [1, 1, 1] => Ok(vec![places(self.grid).collect()]),
                _ => Err(FaultKind::Unsupported("a cooperative launch of clusters".into())),
            };
        }
        let [x, y, z] = extent;
        let first = places([self.grid[0] / x, self.grid[1] / y, self.grid[2] / z]);
        let own = |cluster: [u32; 3]| {
            let blocks = places(extent);
            blocks.map(|place| [0, 1, 2].map(|i| cluster[i] * extent[i] + place[i])).collect()
        };
        Ok(first.map(own).collect())
    }

    /// The index in the block of a thread by its number.
    pub fn thread(&self, number: u32) -> [u32; 3] {
        let [x, y, _] = self.block;
        [number % x, number / x % y, number / x / y]
    }
}

/// All places in an extent, the first dimension changing fastest.
fn places([x, y, z]: [u32; 3]) -> impl Iterator<Item = [u32; 3]> {
    (0..z).flat_map(move |k| (0..y).flat_map(move |j| (0..x).map(move |i| [i, j, k])))
}

/// What a run did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Work {
    /// Instructions issued for warps.
    pub warp_instructions: u64,
    /// Instructions executed by threads.
    pub thread_instructions: u64,
}

/// The answer to a cluster that asks for another one to be canceled: there is none left, since all run as soon as they
/// may. The manual leaves an answer's bits open.
pub(crate) const NOTHING_CANCELLED: [u8; 16] = [0; 16];
/// The bit of an answer that tells whether a cluster was cancelled, which code of ptxas looks at.
pub(crate) const IS_CANCELLED: u128 = 1 << 64;

/// Why a run ended early.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// The device function; `None`: the kernel.
    pub function: Option<String>,
    /// The statement or the instruction, by its number.
    pub at: usize,
    pub kind: FaultKind,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FaultKind {
    /// A form that is not executed.
    Unsupported(String),
    OutOfBounds {
        space: &'static str,
        address: u64,
        size: u32,
    },
    Misaligned {
        space: &'static str,
        address: u64,
        size: u32,
    },
    /// Memory was read that was never written.
    Uninitialised {
        space: &'static str,
        address: u64,
        size: u32,
    },
    /// A register was read before its producer's result was there.
    Hazard(String),
    /// A register was read that was never written.
    Unwritten(String),
    /// Warps use shared memory with nothing between them.
    Race(String),
    /// Threads wait for others that never come.
    Deadlock(String),
    /// The launch's limit of steps.
    Steps,
    Trap,
    /// The program contradicts itself.
    Malformed(String),
}

impl FaultKind {
    pub fn at(self, at: usize) -> Fault {
        Fault { function: None, at, kind: self }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.function {
            Some(function) => write!(f, "at {} of {function}: ", self.at)?,
            None => write!(f, "at {}: ", self.at)?,
        }
        match &self.kind {
            FaultKind::Unsupported(what) => write!(f, "not executed: {what}"),
            FaultKind::OutOfBounds { space, address, size } => {
                write!(f, "{size} bytes at {address:#x} are outside {space} memory")
            }
            FaultKind::Misaligned { space, address, size } => {
                write!(f, "{size} bytes at {address:#x} of {space} memory are misaligned")
            }
            FaultKind::Uninitialised { space, address, size } => {
                write!(f, "{size} bytes at {address:#x} of {space} memory are read and were never written")
            }
            FaultKind::Hazard(what) => write!(f, "too early: {what}"),
            FaultKind::Unwritten(name) => write!(f, "{name} is read and was never written"),
            FaultKind::Race(what) => write!(f, "race: {what}"),
            FaultKind::Deadlock(what) => write!(f, "deadlock: {what}"),
            FaultKind::Steps => write!(f, "too many steps"),
            FaultKind::Trap => write!(f, "trap"),
            FaultKind::Malformed(what) => write!(f, "malformed: {what}"),
        }
    }
}

impl std::error::Error for Fault {}
