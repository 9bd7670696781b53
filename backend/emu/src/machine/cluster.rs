//! The blocks of a cluster: which of them runs, their common barrier, and the driver's data about clusters.

use super::record::Meeting;
use super::{Block, Result, State, Warp, each, sync};
use crate::launch::{FaultKind, Launch};
use ptx_backend::target::Target;
use std::mem::swap;

/// The state of a block while it does not run.
struct Parked {
    ctaid: [u32; 3],
    warps: Vec<Warp>,
    barriers: [sync::Barrier; 16],
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
}

/// Writes the driver's data about clusters. Code divides an index in the grid by the extent with a floating-point
/// multiplication, so the factor is rounded up.
pub(super) fn constants(target: &Target, launch: &Launch, bank: &mut [u8]) {
    let Some(words) = target.driver.launch.clusters else { return };
    let mut put = |offset: u16, word: u32| {
        bank[usize::from(offset)..usize::from(offset) + 4].copy_from_slice(&word.to_le_bytes());
    };
    let extent = launch.cluster_extent();
    for (i, &blocks) in extent.iter().enumerate() {
        let at = 4 * i as u16;
        let reciprocal = 1.0 / blocks as f32;
        let low = f64::from(reciprocal) * f64::from(blocks) < 1.0;
        put(words.blocks_x + at, blocks);
        put(words.reciprocal_x + at, if low { reciprocal.next_up() } else { reciprocal }.to_bits());
        put(words.clusters_x + at, launch.grid[i] / blocks);
    }
    put(words.blocks, extent.iter().product());
    if let Some(slot) = target.driver.explicit_cluster {
        put(slot, launch.cluster.is_some().into());
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
            if let Some(recorder) = &mut self.recorder {
                recorder.end_phase(Meeting::Cluster);
            }
        }
        let passed = self.cluster.passed;
        for w in 0..self.warps.len() {
            let warp = &self.warps[w];
            let waiting = warp.lanes(State::Cluster);
            if waiting != 0 && each(waiting).all(|lane| warp.arrivals[lane] <= passed) {
                self.unite(w, State::Cluster, u32::MAX);
            }
        }
    }

    pub(super) fn arrive_at_cluster(&mut self, w: usize, active: u32) -> Result<()> {
        self.cluster.arrived = true;
        let arrivals = self.cluster.passed + 1;
        for lane in each(active) {
            if self.warps[w].arrivals[lane] == arrivals {
                return Err(FaultKind::Malformed("a thread arrives twice at the cluster's barrier".into()));
            }
            self.warps[w].arrivals[lane] = arrivals;
        }
        Ok(())
    }

    /// Of the threads that wait for the cluster, those whose phase has not ended.
    pub(super) fn waits_for_cluster(&self, w: usize, active: u32) -> Result<u32> {
        let arrivals = &self.warps[w].arrivals;
        if each(active).any(|lane| arrivals[lane] == 0) {
            return Err(FaultKind::Malformed("a thread waits where it never arrived".into()));
        }
        let waits = each(active).filter(|&lane| arrivals[lane] > self.cluster.passed);
        Ok(waits.fold(0, |mask, lane| mask | 1 << lane))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The floating-point division of indices gives the same results as integer division.
    #[test]
    fn reciprocals_divide() {
        let target = Target::of(ptx_isa::Sm::new(90)).unwrap();
        for blocks in 1..=16 {
            let launch = Launch { cluster: Some([blocks, 1, 1]), ..Launch::new(blocks, 1, Vec::new()) };
            let mut bank = vec![0; usize::from(target.driver.params)];
            constants(target, &launch, &mut bank);
            let reciprocal = f32::from_le_bytes(bank[0x150..0x154].try_into().unwrap());
            assert!((0..4096).all(|index| (index as f32 * reciprocal) as u32 == index / blocks));
        }
    }
}
