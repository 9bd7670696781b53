//! The clock: how many cycles a launch takes on one multiprocessor.
//!
//! The emulator runs a kernel and writes down what each warp did; the clock replays that on a model of a multiprocessor.
//! Four partitions issue one instruction per cycle each, as the control words allow: stall counts, yields, scoreboards.
//! Pipes are busy for as long as `latency/rates.csv` of `sass` says, register banks give one register per cycle unless an
//! operand cache holds it, and memory instructions go through queues, address units, the first-level cache or shared memory,
//! and beyond that through latencies and bandwidths of `latency/sm.csv`.
//!
//! The grid is taken as the share of one multiprocessor, which holds as many blocks at once as their registers and shared
//! memory allow; the blocks of a cluster run together. Data is in the second-level cache before it is touched, unless
//! [`Setting::cold`] says otherwise. Not modelled: caches of
//! instructions, contention with other multiprocessors, what wakes a warp of several groups early. Ratios of two versions of a
//! kernel are what it is for; the sources claim errors of about 15 % for absolute figures of a model like this one.

mod cost;
mod memory;
mod multiprocessor;
mod ports;
#[cfg(test)]
mod tests;

use crate::device::Device;
use crate::launch::{Fault, Launch};
use crate::machine::{self, Kernel};
use memory::Memory;
use multiprocessor::Multiprocessor;
use ptx_backend::occupancy::{BlockUse, occupancy};

/// The circumstances of a launch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Setting {
    /// Memory is not in the second-level cache when it is first touched.
    pub cold: bool,
}

/// Why a warp did not issue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// Its stall count, or a result of known latency.
    Stall,
    /// A scoreboard: a result of memory or of a slow pipe, or sources that are still to be read.
    Scoreboard,
    /// The pipe, or the ports of the registers, are busy.
    Pipe,
    /// The queue of memory instructions is full.
    Queue,
    /// Other warps, at a barrier or for a barrier object; or a fence.
    Barrier,
    /// An operand in a constant bank that is not in its cache yet.
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

/// What warps spent at an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Spent {
    pub issued: u64,
    /// Cycles for which warps were about to issue it and did not.
    pub waited: Lost,
}

/// Where the time went.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// Until the last warp was done.
    pub cycles: u64,
    /// Instructions of warps.
    pub issued: u64,
    /// Cycles in which a partition issued nothing, all four together.
    pub lost: Lost,
    /// By instruction of the code.
    pub instructions: Vec<Spent>,
}

/// Runs a kernel and measures its time.
///
/// # Errors
/// As [`machine::run`].
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
    Ok(Multiprocessor::new(kernel.sm, &code, &trace, blocks as usize, memory).run())
}
