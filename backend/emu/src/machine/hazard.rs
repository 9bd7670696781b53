//! When results become visible: fixed latencies by the tables, others by scoreboards.

use super::{Block, Result};
use crate::launch::FaultKind;
use ptx_backend::mach::{REGISTERS, flat};
use sass::{Field, RegUse, latency};

/// A result on its way.
#[derive(Clone, Copy, Debug)]
struct Writer {
    /// The instruction, and the operand that it writes.
    at: u32,
    operand: RegUse,
    issued: u64,
    lanes: u32,
}

/// A warp's clock and the results on their way.
#[derive(Clone, Debug)]
pub(super) struct Timing {
    now: u64,
    writers: Vec<Option<Writer>>,
}

impl Default for Timing {
    fn default() -> Timing {
        Timing { now: 0, writers: vec![None; REGISTERS] }
    }
}

/// Cycles after which any fixed latency has passed.
const LONGEST: u64 = 40;

impl Block<'_> {
    /// Issues an instruction: its sources must be there.
    pub(super) fn issue(&mut self, w: usize, at: u32, lanes: u32) -> Result<()> {
        let machine = self.machine;
        let step = &machine.code[at as usize];
        let sm = machine.sm;
        let timing = &mut self.warps[w].timing;
        let control = step.inst.control;
        let mut waits = control.wait;
        let mnemonic = step.inst.form().mnemonic;
        if mnemonic == "DEPBAR" {
            waits |= step.inst.get(Field::Imm3).unwrap_or(0) as u8;
            waits |= step.inst.get(Field::Scoreboard).map_or(0, |scoreboard| 1 << scoreboard);
        }
        if waits != 0 {
            for writer in &mut timing.writers {
                let scoreboard =
                    writer.and_then(|writer| machine.code[writer.at as usize].inst.control.write_sb);
                if scoreboard.is_some_and(|scoreboard| waits >> scoreboard & 1 == 1) {
                    *writer = None;
                }
            }
        }
        for read in &step.reads {
            for register in flat(read) {
                let Some(writer) = timing.writers[register].filter(|writer| writer.lanes & lanes != 0) else {
                    continue;
                };
                let producer = &machine.code[writer.at as usize].inst;
                let needs = latency::raw(sm, producer, &writer.operand, &step.inst, read);
                let early = if needs == latency::UNKNOWN {
                    true
                } else {
                    timing.now < writer.issued + u64::from(needs)
                };
                if early {
                    let what = producer.form().mnemonic;
                    let passed = timing.now - writer.issued;
                    return Err(FaultKind::Hazard(format!(
                        "{mnemonic} reads {:?}{} of {what} at {} after {passed} cycles",
                        read.file, read.index, writer.at
                    )));
                }
                if needs != latency::UNKNOWN && timing.now > writer.issued + LONGEST {
                    timing.writers[register] = None;
                }
            }
        }
        for &operand in &step.writes {
            for register in flat(&operand) {
                timing.writers[register] = Some(Writer { at, operand, issued: timing.now, lanes });
            }
        }
        timing.now += u64::from(control.stall.max(1));
        Ok(())
    }
}
