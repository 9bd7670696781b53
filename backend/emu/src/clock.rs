//! The clock estimates how many cycles a launch takes on one multiprocessor.
//!
//! The emulator runs a kernel and records a trace of each warp. The clock replays the trace on a model of a
//! multiprocessor:
//!
//! - Each of four partitions issues one instruction per cycle, as stall counts, yields and scoreboards allow.
//! - Pipes are busy for the cycles in `latency/rates.csv` of `sass`.
//! - Each register bank reads one register per cycle, unless an operand cache holds it.
//! - Memory instructions go through queues, address units, and the first-level cache or shared memory. Beyond these,
//!   the latencies and bandwidths of `latency/sm.csv` apply.
//!
//! The grid is assumed to be the share of one multiprocessor, which holds as many blocks at once as their registers and
//! shared memory allow. The blocks of a cluster run together. Data is in the second-level cache before its first use,
//! unless [`Setting::cold`] says otherwise. The model leaves out instruction caches, contention with other
//! multiprocessors, and events that wake a diverged warp early.
//!
//! The clock is meant for comparing two versions of a kernel. The sources report errors of about 15 % for the absolute
//! figures of similar models.

mod cost;
mod memory;
mod multiprocessor;
mod ports;
#[cfg(test)]
mod tests;

use crate::device::Device;
use crate::launch::{Fault, FaultKind, Launch};
use crate::machine::{self, Kernel};
use memory::Memory;
use multiprocessor::Multiprocessor;
use ptx_backend::occupancy::{BlockUse, occupancy};

/// The conditions of a launch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Setting {
    /// The second-level cache is empty at the start.
    pub cold: bool,
}

/// The reason why a warp did not issue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// Its stall count, or a result with a fixed latency.
    Stall,
    /// A scoreboard: a result of memory or of a slow pipe, or sources that have not been read yet.
    Scoreboard,
    /// The pipe or the read ports of the registers are busy.
    Pipe,
    /// The queue for memory instructions is full.
    Queue,
    /// The warp waits for other warps at a barrier or barrier object, or for a fence.
    Barrier,
    /// An operand missed the constant cache.
    Constant,
    /// Another warp of the partition issued.
    NotChosen,
    /// No warp is left in the partition.
    Empty,
}

impl Reason {
    pub const ALL: [Reason; 8] = [
        Reason::Stall,
        Reason::Scoreboard,
        Reason::Pipe,
        Reason::Queue,
        Reason::Barrier,
        Reason::Constant,
        Reason::NotChosen,
        Reason::Empty,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Reason::Stall => "stall",
            Reason::Scoreboard => "scoreboard",
            Reason::Pipe => "pipe",
            Reason::Queue => "queue",
            Reason::Barrier => "barrier",
            Reason::Constant => "constant",
            Reason::NotChosen => "not chosen",
            Reason::Empty => "empty",
        }
    }
}

/// Cycles by reason, in the order of [`Reason::ALL`].
pub type Lost = [u64; Reason::ALL.len()];

/// The time that warps spent at one instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Spent {
    pub issued: u64,
    /// Cycles in which the instruction was a warp's next one and did not issue.
    pub waited: Lost,
}

/// The cycles of a launch, and their causes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// Cycles until the last warp ended.
    pub cycles: u64,
    /// Warp instructions issued.
    pub issued: u64,
    /// Cycles in which a partition issued nothing, summed over the four.
    pub lost: Lost,
    /// One entry for each instruction of the code.
    pub instructions: Vec<Spent>,
}

/// Runs a kernel and estimates its time.
///
/// # Errors
/// As for [`machine::run`].
pub fn time(
    kernel: &Kernel,
    launch: &Launch,
    device: &mut Device,
    setting: Setting,
) -> Result<Report, Fault> {
    let trace = machine::trace(kernel, launch, device)?;
    let code: Vec<sass::Inst> = kernel
        .code
        .iter()
        .map(|&word| {
            sass::decode_tolerant(kernel.sm, word).unwrap_or_else(|| sass::Inst::new(sass::FormId(0)))
        })
        .collect();
    let block = BlockUse {
        threads: launch.threads(),
        registers: kernel.registers,
        shared: kernel.shared_bytes + launch.dynamic_shared,
    };
    let blocks = occupancy(ptx_isa::Sm::new(kernel.sm.0.into()), block).map_or(1, |o| o.blocks.max(1));
    let memory = Memory::new(kernel.sm, u64::from(block.shared) * u64::from(blocks), setting.cold);
    let stuck =
        |at| FaultKind::Deadlock("the clock waits for an event that never comes".into()).at(at as usize);
    Multiprocessor::new(kernel.sm, &code, &trace, blocks as usize, memory).run().map_err(stuck)
}
