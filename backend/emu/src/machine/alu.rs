//! Instructions on registers of a lane or of the warp.

#[cfg(test)]
mod carries;
mod float;
mod half;
mod integer;
mod pack;

use super::compute::{Compute, Mode};
use super::operand::{Kind, Source};
use super::step::Step;
use super::{Block, Result, each};
use crate::launch::FaultKind;
use sass::Field;

/// The results of a computation: up to two registers and two predicates.
#[derive(Clone, Copy, Default)]
pub(super) struct Results {
    pub(super) low: u32,
    pub(super) high: Option<u32>,
    pub(super) p: bool,
    pub(super) q: bool,
}

impl From<u32> for Results {
    fn from(low: u32) -> Results {
        Results { low, ..Results::default() }
    }
}

impl From<u64> for Results {
    fn from(value: u64) -> Results {
        Results { low: value as u32, high: Some((value >> 32) as u32), ..Results::default() }
    }
}

/// An instruction, as one lane executes it.
pub(super) struct Lane<'a, 'b> {
    pub(super) block: &'a Block<'b>,
    pub(super) step: &'a Step,
    pub(super) w: usize,
    pub(super) lane: usize,
}

impl Lane<'_, '_> {
    pub(super) fn source(&self, i: usize) -> Source {
        self.step.sources[i]
    }

    /// The bits of a source, without modifiers.
    pub(super) fn bits(&self, i: usize) -> Result<u32> {
        self.block.bits(self.w, self.lane, self.step.sources[i])
    }

    pub(super) fn pair(&self, i: usize, high: bool) -> Result<u64> {
        self.block.pair(self.w, self.lane, self.step.sources[i], high)
    }

    pub(super) fn p(&self, i: usize) -> bool {
        self.block.holds(self.w, self.lane, self.step.uniform, self.step.predicates[i])
    }
}

impl Block<'_> {
    /// Executes a computation for the lanes of a mask.
    pub(super) fn compute(&mut self, w: usize, mask: u32, at: u32, compute: Compute) -> Result<()> {
        let machine = self.machine;
        let step = &machine.code[at as usize];
        let lanes = if step.uniform { mask & mask.wrapping_neg() } else { mask };
        if let Compute::R2p { byte } = compute {
            for lane in each(lanes) {
                let value = self.bits(w, lane, step.sources[0])? >> (8 * byte);
                let which = match step.sources[1].kind {
                    Kind::None => step.inst.get(Field::Imm32).unwrap_or(0xff) as u32,
                    _ => self.bits(w, lane, step.sources[1])?,
                };
                for p in (0..7).filter(|p| which >> p & 1 == 1) {
                    self.set_predicate(w, lane, step.uniform, p, value >> p & 1 == 1);
                }
            }
            return Ok(());
        }
        for lane in each(lanes) {
            let view = Lane { block: self, step, w, lane };
            let results = view.compute(compute)?;
            if step.uniform {
                self.set_uniform(w, step.rd, results.low);
                if let Some(high) = results.high.filter(|_| step.rd != machine.sm.urz()) {
                    self.set_uniform(w, step.rd + 1, high);
                }
            } else {
                self.set_register(w, lane, step.rd, results.low);
                if let Some(high) = results.high.filter(|_| step.rd != 255) {
                    self.set_register(w, lane, step.rd + 1, high);
                }
            }
            self.set_predicate(w, lane, step.uniform, step.pd, results.p);
            self.set_predicate(w, lane, step.uniform, step.pq, results.q);
        }
        Ok(())
    }
}

impl Lane<'_, '_> {
    fn compute(&self, compute: Compute) -> Result<Results> {
        let computed = match self.integer(compute)? {
            None => match self.float(compute)? {
                None => self.half(compute)?,
                some => some,
            },
            some => some,
        };
        computed.ok_or_else(|| FaultKind::Unsupported(format!("{compute:?}")))
    }
}
