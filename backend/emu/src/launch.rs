//! The arguments of a kernel launch, and the ways in which a run can fail.

use std::fmt;

/// The number of threads in a warp.
pub const WARP: usize = 32;

/// A launch of one kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Launch {
    /// The size of the grid in blocks.
    pub grid: [u32; 3],
    /// The size of a block in threads.
    pub block: [u32; 3],
    /// The size of a cluster in blocks, if the kernel is launched with clusters.
    pub cluster: Option<[u32; 3]>,
    /// All blocks run at once, as in a cooperative launch. Otherwise the clusters run one after the other.
    pub together: bool,
    /// The parameter block.
    pub params: Vec<u8>,
    /// The offset and size of each parameter in the parameter block, for kernels that expect the parameters at other
    /// offsets.
    pub places: Vec<(u32, u32)>,
    /// The size of dynamic shared memory in bytes.
    pub dynamic_shared: u32,
    /// The largest number of warp instructions. The run stops with a fault if it needs more.
    pub steps: u64,
    /// Reading uninitialized memory is a fault in PTX, and so are data races in memory.
    pub strict: bool,
}

impl Launch {
    /// A launch with a one-dimensional grid.
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

    /// The size of a cluster in blocks. Without clusters, each block is a cluster.
    pub fn cluster_extent(&self) -> [u32; 3] {
        self.cluster.unwrap_or([1; 3])
    }

    /// The indices of each cluster's blocks, in the order of their ranks. If all blocks run at once, they count as one
    /// cluster.
    ///
    /// # Errors
    /// The grid does not consist of whole clusters.
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

    /// The thread's index in its block, from its number.
    pub fn thread(&self, number: u32) -> [u32; 3] {
        let [x, y, _] = self.block;
        [number % x, number / x % y, number / x / y]
    }
}

/// All indices in an extent. The first dimension varies fastest.
fn places([x, y, z]: [u32; 3]) -> impl Iterator<Item = [u32; 3]> {
    (0..z).flat_map(move |k| (0..y).flat_map(move |j| (0..x).map(move |i| [i, j, k])))
}

/// The work done by a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Work {
    /// The number of instructions issued by warps.
    pub warp_instructions: u64,
    /// The number of instructions executed by threads.
    pub thread_instructions: u64,
}

/// The response to a request to cancel another cluster. No cluster is left to be cancelled, because each starts as soon
/// as it can. The manual does not specify the bits of a response.
pub(crate) const NOTHING_CANCELLED: [u8; 16] = [0; 16];
/// The bit of a response that says whether a cluster was cancelled. Code of ptxas tests this bit.
pub(crate) const IS_CANCELLED: u128 = 1 << 64;

/// The reason why a run ended early.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// The device function; `None` for the kernel.
    pub function: Option<String>,
    /// The index of the statement or instruction.
    pub at: usize,
    pub kind: FaultKind,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FaultKind {
    /// The emulator does not execute this form.
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
    /// A register was read before the result of its producer was ready.
    Hazard(String),
    /// A register was read that was never written.
    Unwritten(String),
    /// Several warps access shared memory without synchronization.
    Race(String),
    /// Threads wait for other threads that never arrive.
    Deadlock(String),
    /// The run exceeded the limit of steps.
    Steps,
    Trap,
    /// The program is inconsistent.
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
