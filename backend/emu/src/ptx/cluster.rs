//! The blocks of a cluster: which of them runs, their common barrier, and the addresses of their shared memory.
//!
//! An address in shared memory has the rank of its block in the top byte. So a block's own addresses are cluster
//! addresses too.

use super::arithmetic::{ty, unsupported};
use super::{Block, State, Step, Warp, each, sync};
use crate::launch::FaultKind;
use crate::memory::{RANK_SHIFT, SHARED_WINDOW, Space, space_of};
use ptx_backend::input::Instr;
use ptx_isa::{FormId, Mod, ScalarType};
use std::mem::swap;

/// The state of a block while it does not run.
struct Parked {
    ctaid: [u32; 3],
    warps: Vec<Warp>,
    barriers: [sync::Barrier; sync::BARRIERS],
}

pub(super) struct Cluster {
    /// The block that runs now.
    rank: usize,
    /// Indexed by rank. The entry of the running block is not used.
    parked: Vec<Parked>,
    /// How many times the barrier of the cluster has been passed.
    passed: u32,
    /// Some threads may wait for the barrier.
    arrived: bool,
}

impl Cluster {
    pub(super) fn new(ctaids: &[[u32; 3]], warps: impl Fn() -> Vec<Warp>) -> Cluster {
        let parked = ctaids.iter().enumerate().map(|(rank, &ctaid)| Parked {
            ctaid,
            warps: if rank == 0 { Vec::new() } else { warps() },
            barriers: Default::default(),
        });
        Cluster { rank: 0, parked: parked.collect(), passed: 0, arrived: false }
    }

    pub(super) fn rank(&self) -> usize {
        self.rank
    }

    /// The base address of the running block's shared memory.
    pub(super) fn base(&self) -> u64 {
        (self.rank as u64) << RANK_SHIFT
    }
}

impl Block<'_> {
    /// Switches to another block of the cluster.
    pub(super) fn switch_to(&mut self, rank: usize) {
        if rank == self.cluster.rank {
            return;
        }
        self.exchange();
        self.cluster.rank = rank;
        self.exchange();
    }

    fn exchange(&mut self) {
        let parked = &mut self.cluster.parked[self.cluster.rank];
        swap(&mut self.ctaid, &mut parked.ctaid);
        swap(&mut self.warps, &mut parked.warps);
        swap(&mut self.barriers, &mut parked.barriers);
    }

    /// Ends the phase of the cluster's barrier if all threads have arrived, and releases those threads of this block
    /// whose phase has ended.
    pub(super) fn pass_cluster_barrier(&mut self) {
        if !self.cluster.arrived {
            return;
        }
        let passed = self.cluster.passed;
        let parked = self.cluster.parked.iter().enumerate().filter(|&(rank, _)| rank != self.cluster.rank);
        let mut warps = self.warps.iter().chain(parked.flat_map(|(_, block)| &block.warps));
        if warps.all(|warp| each(warp.live()).all(|lane| warp.arrivals[lane] > passed)) {
            self.cluster.passed += 1;
        }
        let passed = self.cluster.passed;
        for warp in &mut self.warps {
            for lane in each(warp.lanes(|state| state == State::Cluster)) {
                if warp.arrivals[lane] <= passed {
                    warp.state[lane] = State::Runs;
                    self.races.cut();
                }
            }
        }
    }

    pub(super) fn cluster(&mut self, w: usize, mask: u32, instr: &Instr) -> Step<()> {
        match instr.opcode.form {
            FormId::BarrierCluster => self.cluster_barrier(w, mask, instr),
            FormId::Mapa => {
                let t = ty(&instr.opcode, 0)?;
                let blocks = self.shared.len() as u64;
                self.map2(w, mask, instr, t, [t, ScalarType::U32], |a, rank| {
                    if rank >= blocks {
                        return Err(FaultKind::Malformed(format!("block {rank} of a cluster of {blocks}")));
                    }
                    shared(instr, a)?;
                    Ok(a & !(0xff << RANK_SHIFT) | rank << RANK_SHIFT)
                })
            }
            _ => {
                let t = ty(&instr.opcode, 0)?;
                self.map1(w, mask, instr, ScalarType::U32, t, |a| {
                    shared(instr, a)?;
                    Ok(a >> RANK_SHIFT & 0xff)
                })
            }
        }
    }

    fn cluster_barrier(&mut self, w: usize, mask: u32, instr: &Instr) -> Step<()> {
        let arrives = instr.opcode.has(Mod::Arrive);
        if !arrives && !instr.opcode.has(Mod::Wait) {
            return unsupported(instr);
        }
        let passed = self.cluster.passed;
        self.cluster.arrived = true;
        self.races.cut();
        for lane in each(mask) {
            let arrivals = &mut self.warps[w].arrivals[lane];
            match (arrives, *arrivals) {
                (true, earlier) if earlier > passed => {
                    return Err(FaultKind::Malformed(
                        "a thread arrives twice at the cluster's barrier".into(),
                    ));
                }
                (true, _) => *arrivals = passed + 1,
                (false, 0) => {
                    return Err(FaultKind::Malformed("a thread waits where it never arrived".into()));
                }
                (false, earlier) if earlier > passed => self.warps[w].state[lane] = State::Cluster,
                _ => {}
            }
        }
        Ok(())
    }
}

/// Returns a fault if a generic address is not in shared memory.
fn shared(instr: &Instr, address: u64) -> Step<()> {
    let generic = !instr.opcode.has(Mod::SharedCluster);
    if generic && (address < SHARED_WINDOW || space_of(address) != Space::Shared) {
        return Err(FaultKind::Malformed(format!("{address:#x} is no address of shared memory")));
    }
    Ok(())
}
