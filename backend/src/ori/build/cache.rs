//! Hints to the caches: policies, prefetches, priorities.

use super::memory::Target;
use super::uniform::Chosen;
use super::{Lowering, Result, Statement};
use crate::ori::ir::Src;
use crate::ori::op::{LineOp, MapOp, Op};
use ptx_isa::{Mod, ScalarType};

/// A policy's high word has its kind, both priorities and the fraction from this bit on.
const KIND_AT: u32 = 20;
/// A fraction of accesses has the first priority, the others the second.
const FRACTIONAL: u32 = 0x100;

impl<'a> Lowering<'a> {
    /// `createpolicy.fractional`, of a fraction that is known: sixteenths, rounded up.
    pub(super) fn create_policy(&mut self, instr: &Statement<'a>) -> Result<()> {
        let priorities = instr.take_each(&[
            (Mod::L2EvictUnchanged, 0x0),
            (Mod::L2EvictFirst, 0x1),
            (Mod::L2EvictLast, 0x2),
            (Mod::L2EvictNormal, 0x3),
        ]);
        let (first, second) = match priorities[..] {
            [first] => (first, 0),
            [first, second] => (first, second),
            _ => return self.malformed("a policy without a priority"),
        };
        let sixteenths = match instr.operand(1) {
            None => 16,
            Some(fraction) => match super::operand::literal(fraction, ScalarType::F32) {
                Some(bits) => (f32::from_bits(bits as u32) * 16.0).ceil().clamp(1.0, 16.0) as u32,
                None => return self.unsupported(instr, "a fraction in a register"),
            },
        };
        let kind = FRACTIONAL | first << 5 | second << 4 | (sixteenths - 1);
        let policy = self.pack(&[Src::ZERO, Src::imm(kind << KIND_AT)]);
        self.result(instr, policy)
    }

    /// The descriptor of an access: its cache policy, if it has one as its last operand, else that of the window. Threads
    /// that execute it together use the policy of one of them.
    pub(super) fn descriptor_of(&mut self, instr: &Statement<'a>) -> Result<Src> {
        let last = instr.operand_count().saturating_sub(1);
        match self.cache_policy(instr, last)? {
            Some(policy) => Ok(self.uniform_pack(&policy, Chosen::all(self.guard))),
            None => Ok(self.descriptor()),
        }
    }

    /// The words of the cache policy in operand `i`, where the instruction has one.
    pub(super) fn cache_policy(&mut self, instr: &Statement<'a>, i: usize) -> Result<Option<[Src; 2]>> {
        if !instr.has(Mod::L2CacheHint) {
            return Ok(None);
        }
        let policy = self.source(instr, i, ScalarType::U64)?;
        Ok(Some(self.pair(policy)))
    }

    pub(super) fn uniform_policy(&mut self, policy: Option<[Src; 2]>, chosen: Chosen) -> Src {
        policy.map_or(Src::ZERO, |policy| self.uniform_pack(&policy, chosen))
    }

    /// `prefetch` and `prefetchu`.
    pub(super) fn prefetch(&mut self, instr: &Statement<'a>) -> Result<()> {
        if instr.has(Mod::Tensormap) {
            return self.prefetch_map(instr);
        }
        let op = instr.take(&[
            (Mod::L1, LineOp::Prefetch1),
            (Mod::L2, LineOp::Prefetch2),
            (Mod::L2EvictNormal, LineOp::Prefetch2),
            (Mod::L2EvictLast, LineOp::PrefetchLast),
        ]);
        let Some(op) = op else { return self.malformed("a prefetch without a cache") };
        self.line(instr, op)
    }

    /// `applypriority`.
    pub(super) fn apply_priority(&mut self, instr: &Statement<'a>) -> Result<()> {
        // The one priority and the one size that there are.
        instr.ignore(&[Mod::L2EvictNormal]);
        instr.operand(1);
        self.line(instr, LineOp::Demote)
    }

    /// Of the line at the address of the first operand.
    fn line(&mut self, instr: &Statement<'a>, op: LineOp) -> Result<()> {
        match self.target(instr, 0)? {
            Target::Wide { address, offset, .. } => self.effect(Op::Line { op, offset }, &[address]),
            // The thread's own memory: nothing that a thread can observe.
            Target::Local { .. } => {}
            _ => return self.unsupported(instr, "this state space"),
        }
        Ok(())
    }

    /// The descriptor of a tensor into the cache for those.
    fn prefetch_map(&mut self, instr: &Statement<'a>) -> Result<()> {
        if super::memory::space(instr).is_some_and(|space| space != Mod::Global) {
            return self.unsupported(instr, "this state space");
        }
        let address = self.address(instr, 0)?;
        let Target::Wide { address, offset, .. } = self.wide_target(address, true)? else {
            return self.malformed("a generic address in another space");
        };
        let mut words = self.pair(address);
        if offset != 0 {
            words = self.add_pair(words, super::operand::halves(offset as u64));
        }
        if !self.encodes(&Op::TensorMap { op: MapOp::Prefetch }) {
            return self.unsupported(instr, "on this target");
        }
        self.one_by_one(|this, chosen| {
            let map = this.uniform_pack(&words, chosen);
            this.effect(Op::TensorMap { op: MapOp::Prefetch }, &[map]);
            Ok(())
        })
    }
}
