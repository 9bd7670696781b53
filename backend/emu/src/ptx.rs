//! The PTX interpreter.
//!
//! Every thread has its own position in the program. Among the threads of a warp that can continue, those at the lowest
//! position run first, together; so diverged threads meet again where their paths join. An operation of several threads
//! (`.sync`) waits until all threads that it names have arrived. Clusters run one after the other, and the blocks of a
//! cluster take turns.

mod arithmetic;
mod bulk;
mod call;
mod cluster;
mod compare;
mod convert;
mod copy;
mod decode;
mod float;
mod link;
mod matrix;
mod mbarrier;
mod memory;
mod race;
mod sync;
mod tensor;
mod texture;
mod video;
mod warpgroup;
mod wide;

use crate::copies::Copies;
use crate::device::Device;
use crate::launch::{Fault, FaultKind, Launch, WARP, Work};
use crate::memory::UNWRITTEN;
use crate::tensor::TensorMemory;
use crate::transfers::Transfers;
use decode::Program;
use ptx_backend::input::{Env, Function};
use std::collections::BTreeMap;

/// The number of warp instructions before the next warp gets its turn.
const TURN: u32 = 64;
/// The number of instructions of some threads of a warp after which other threads, at higher positions, get a turn.
const PATIENCE: u32 = 1 << 13;

type Step<T> = Result<T, FaultKind>;

/// The functions of a module that have bodies.
#[derive(Clone, Debug)]
pub struct Module<'a> {
    pub env: &'a Env,
    pub functions: Vec<&'a Function>,
    /// Aliases of functions, each with the aliased function.
    pub aliases: &'a [(String, String)],
}

/// Runs a kernel of a module.
///
/// # Errors
/// The mistake of the program, or the unsupported instruction, with its statement.
pub fn run(
    module: &Module<'_>,
    kernel: &Function,
    launch: &Launch,
    device: &mut Device,
) -> Result<Work, Fault> {
    let program = Program::load(module, kernel, device, launch)?;
    let mut work = Work::default();
    let mut races = race::Races::new();
    device.global.set_params(&launch.params);
    for ctaids in launch.clusters().map_err(|kind| kind.at(0))? {
        races.begin();
        let mut block = Block::new(&program, launch, device, &mut races, &ctaids);
        let result = block.run(&mut work);
        result.map_err(|(pc, kind)| program.fault(pc, kind))?;
    }
    Ok(work)
}

/// The state of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Runs,
    /// Waits at an operation of several threads.
    Meets,
    /// Waits at a barrier of the block.
    Barrier(u32),
    /// Waits at the barrier of the cluster.
    Cluster,
    Exited,
}

struct Warp {
    /// The number of the warp's first thread in the block.
    first: u32,
    pc: [u32; WARP],
    state: [State; WARP],
    /// The number of instructions for which some threads have waited for their turn.
    waited: u32,
    /// The lane whose turn it is, or was last.
    favored: u32,
    /// Indexed by register, then by lane.
    registers: Vec<u64>,
    /// The upper words of 128-bit registers.
    upper: BTreeMap<usize, [u64; WARP]>,
    /// For each register, the lanes that have written it.
    written: Vec<u32>,
    /// The carry of each lane, if one was computed.
    carry: [Option<bool>; WARP],
    copies: Copies,
    /// The number of each lane's arrivals at the barrier of the cluster.
    arrivals: [u32; WARP],
    products: warpgroup::Products,
    /// The lanes' stacks, and which of their bytes have been written, if this is tracked.
    local: [Vec<u8>; WARP],
    local_written: [Vec<bool>; WARP],
    tracks: bool,
    /// The start of each lane's frame in its stack.
    frame: [u64; WARP],
    /// The active calls of each lane.
    frames: [Vec<call::Frame>; WARP],
}

impl Warp {
    fn new(program: &Program<'_>, first: u32, threads: u32, tracks: bool) -> Warp {
        let kernel = program.kernel();
        let mut warp = Warp {
            first,
            pc: [kernel.entry; WARP],
            state: [State::Exited; WARP],
            waited: 0,
            favored: 0,
            registers: vec![u64::from_le_bytes([UNWRITTEN; 8]); program.registers() * WARP],
            upper: BTreeMap::new(),
            written: vec![0; program.registers()],
            carry: [None; WARP],
            copies: Copies::default(),
            arrivals: [0; WARP],
            products: warpgroup::Products::default(),
            local: std::array::from_fn(|_| vec![UNWRITTEN; kernel.frame_bytes as usize]),
            local_written: Default::default(),
            tracks,
            frame: [0; WARP],
            frames: Default::default(),
        };
        if tracks {
            warp.local_written
                .iter_mut()
                .for_each(|written| written.resize(kernel.frame_bytes as usize, false));
        }
        for (register, ty) in program.register_types().enumerate() {
            let mask = decode::ones(ty.bits());
            warp.registers[register * WARP..][..WARP].iter_mut().for_each(|value| *value &= mask);
        }
        warp.state[..(threads - first).min(WARP as u32) as usize].fill(State::Runs);
        warp
    }

    fn lanes(&self, which: impl Fn(State) -> bool) -> u32 {
        (0..WARP).filter(|&lane| which(self.state[lane])).fold(0, |mask, lane| mask | 1 << lane)
    }

    fn live(&self) -> u32 {
        self.lanes(|state| state != State::Exited)
    }

    /// The lanes that run next, and their position: those at the lowest position, so that diverged threads meet again.
    /// After a long time, others get a turn, because these may wait for them.
    fn next(&mut self) -> Option<(u32, u32)> {
        let mut lowest = u32::MAX;
        let mut mask = 0;
        let mut running = 0u32;
        for lane in 0..WARP {
            if self.state[lane] != State::Runs {
                continue;
            }
            running |= 1 << lane;
            match self.pc[lane].cmp(&lowest) {
                std::cmp::Ordering::Less => (lowest, mask) = (self.pc[lane], 1 << lane),
                std::cmp::Ordering::Equal => mask |= 1 << lane,
                std::cmp::Ordering::Greater => {}
            }
        }
        if running == mask {
            self.waited = 0;
        } else {
            self.waited += 1;
            if self.waited == PATIENCE {
                let others = running & !mask;
                let next = others & (u32::MAX << self.favored).wrapping_shl(1);
                self.favored = if next != 0 { next } else { others }.trailing_zeros();
            }
            if self.waited >= PATIENCE && running >> self.favored & 1 == 1 {
                lowest = self.pc[self.favored as usize];
                mask = each(running).filter(|lane| self.pc[*lane] == lowest).fold(0, |m, lane| m | 1 << lane);
            }
            if self.waited == PATIENCE + TURN {
                self.waited = 0;
            }
        }
        (mask != 0).then_some((lowest, mask))
    }
}

/// The lanes of a mask.
fn each(mask: u32) -> impl Iterator<Item = usize> {
    (0..WARP).filter(move |lane| mask >> lane & 1 == 1)
}

/// A cluster, and the block of it that runs now.
struct Block<'a> {
    program: &'a Program<'a>,
    launch: &'a Launch,
    device: &'a mut Device,
    ctaid: [u32; 3],
    /// The shared memory of every block of the cluster.
    shared: Vec<Vec<u8>>,
    /// Which bytes of `shared` have been written, if this is tracked.
    shared_written: Vec<Vec<bool>>,
    warps: Vec<Warp>,
    barriers: [sync::Barrier; sync::BARRIERS],
    races: &'a mut race::Races,
    cluster: cluster::Cluster,
    transfers: Transfers<bulk::Reduction<'a>>,
    /// The tensor memory of every block, once a block has allocated some.
    tensor: Vec<TensorMemory>,
    /// For each rank, the units that the other block of the pair has allocated for it, oldest first.
    tensor_given: Vec<(usize, u32)>,
    /// The number of instructions so far, which serves as the time.
    clock: u64,
}

impl<'a> Block<'a> {
    fn new(
        program: &'a Program<'a>,
        launch: &'a Launch,
        device: &'a mut Device,
        races: &'a mut race::Races,
        ctaids: &[[u32; 3]],
    ) -> Block<'a> {
        let threads = launch.threads();
        let warps = || {
            let firsts = (0..threads).step_by(WARP);
            firsts.map(|first| Warp::new(program, first, threads, launch.strict)).collect()
        };
        let bytes = (program.shared_bytes + launch.dynamic_shared) as usize;
        let tracked = if launch.strict { bytes } else { 0 };
        Block {
            program,
            launch,
            device,
            ctaid: ctaids[0],
            shared: vec![vec![UNWRITTEN; bytes]; ctaids.len()],
            shared_written: vec![vec![false; tracked]; ctaids.len()],
            warps: warps(),
            barriers: Default::default(),
            races,
            cluster: cluster::Cluster::new(ctaids, warps),
            transfers: Transfers::default(),
            tensor: Vec::new(),
            tensor_given: Vec::new(),
            clock: 0,
        }
    }

    fn run(&mut self, work: &mut Work) -> Result<(), (u32, FaultKind)> {
        loop {
            let mut went = false;
            for rank in 0..self.shared.len() {
                self.switch_to(rank);
                self.pass_cluster_barrier();
                went |= self.turn(work)?;
            }
            if !went {
                return self.end();
            }
        }
    }

    /// Runs every warp of the block for some time. Returns whether any of them made progress.
    fn turn(&mut self, work: &mut Work) -> Result<bool, (u32, FaultKind)> {
        let mut went = false;
        for w in 0..self.warps.len() {
            for _ in 0..TURN {
                let Some((pc, mask)) = self.warps[w].next() else { break };
                went = true;
                work.warp_instructions += 1;
                self.clock = work.warp_instructions;
                work.thread_instructions += u64::from(mask.count_ones());
                if work.warp_instructions > self.launch.steps {
                    return Err((pc, FaultKind::Steps));
                }
                self.step(w, pc, mask).map_err(|kind| (pc, kind))?;
            }
        }
        Ok(went)
    }

    /// Ends a cluster in which all threads have exited.
    fn end(&mut self) -> Result<(), (u32, FaultKind)> {
        for rank in 0..self.shared.len() {
            self.switch_to(rank);
            if let Some(deadlock) = self.deadlock() {
                return Err(deadlock);
            }
        }
        self.land_all().map_err(|kind| (0, kind))
    }
}
