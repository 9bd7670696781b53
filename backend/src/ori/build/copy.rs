//! `cp.async`: asynchronous copies from global to shared memory, and the waits for them.

use super::memory::Target;
use super::operand::{halves, known};
use super::{Lowering, Result, Statement};
use crate::input::Operand;
use crate::ori::ir::Src;
use crate::ori::op::{ICmp, LineOp, MemSize, Op, Prefetch};
use ptx_isa::{Mod, ScalarType};

/// The maximum number of groups that a wait can leave: scoreboards do not count further.
const MOST_GROUPS: u32 = 63;
/// The offsets that a copy can add to its addresses: signed 20 bits and signed 12 bits.
const TO_OFFSETS: std::ops::Range<i32> = -(1 << 19)..1 << 19;
const FROM_OFFSETS: std::ops::Range<i32> = -(1 << 11)..1 << 11;

/// The part that is copied, if the copy is not complete.
struct Part {
    /// A value that is added to the source's address; its low bits state how many bytes are cleared.
    skip: Src,
    /// If this predicate is false, all bytes are cleared.
    any: Src,
}

impl<'a> Lowering<'a> {
    /// `cp.async`.
    pub(super) fn copy_asynchronously(&mut self, instr: &Statement<'a>) -> Result<()> {
        // The positions of the operands determine the spaces.
        instr.ignore(&[Mod::Shared, Mod::SharedCta, Mod::Global]);
        let bypass = instr.any_of(&[Mod::Ca, Mod::Cg]) == Some(Mod::Cg);
        let prefetch = instr.take(&[
            (Mod::L264B, Prefetch::B64),
            (Mod::L2128B, Prefetch::B128),
            (Mod::L2256B, Prefetch::B256),
        ]);
        let bytes = self.immediate(instr, 2)?;
        let size = match bytes {
            4 => MemSize::B32,
            8 => MemSize::B64,
            16 => MemSize::B128,
            _ => return self.unsupported(instr, &format!("a copy of {bytes} bytes")),
        };
        let (to, to_offset) = self.copy_destination(instr)?;
        let (from, from_offset) = self.copy_source(instr)?;
        // The cache policy follows them.
        let hinted = usize::from(instr.has(Mod::L2CacheHint));
        let part = match instr.operand_count() - hinted > 3 {
            true => self.copied_part(self.operand(instr, 3)?, bytes)?,
            false => Part { skip: Src::ZERO, any: Src::TRUE },
        };
        let fill = part.skip != Src::ZERO;
        let (from, from_offset) = match known(part.skip) {
            Some(skip) => (from, from_offset + skip as i32),
            None => {
                let from = self.pair(from);
                let from = self.add_pair(from, [part.skip, Src::ZERO]);
                (self.pack(&from), from_offset)
            }
        };
        let (from, from_offset) = match FROM_OFFSETS.contains(&from_offset) {
            true => (from, from_offset),
            false => {
                let from = self.pair(from);
                let from = self.add_pair(from, halves(i64::from(from_offset) as u64));
                (self.pack(&from), 0)
            }
        };
        let prefetch = prefetch.unwrap_or(Prefetch::None);
        let op = Op::Ldgsts { bypass, prefetch, size, fill, to: to_offset, from: from_offset };
        let descriptor = self.descriptor_of(instr)?;
        self.effect(op, &[to, from, descriptor, part.any]);
        Ok(())
    }

    fn copy_destination(&mut self, instr: &Statement<'a>) -> Result<(Src, i32)> {
        let address = self.address(instr, 0)?;
        let Target::Shared { address, base, offset } = self.shared_target(instr, address)? else {
            return self.malformed("a `.shared` address used in another state space");
        };
        // With a uniform base there would be no room for the descriptor of the source.
        let address = self.based(address, base);
        if TO_OFFSETS.contains(&offset) {
            return Ok((address, offset));
        }
        Ok((self.add(address, Src::imm(offset as u32)), 0))
    }

    fn copy_source(&mut self, instr: &Statement<'a>) -> Result<(Src, i32)> {
        let address = self.address(instr, 1)?;
        self.wide_address(address, false)
    }

    /// The part for a number of copied bytes, or for a predicate that suppresses the copy.
    fn copied_part(&mut self, operand: &Operand, bytes: u32) -> Result<Part> {
        let is_predicate = match operand {
            Operand::Reg(reg) => self.register_type(*reg)? == ScalarType::Pred,
            Operand::NotPred(_) => true,
            _ => false,
        };
        if is_predicate {
            let ignored = self.read(operand, ScalarType::Pred)?;
            return Ok(Part { skip: Src::ZERO, any: ignored.not() });
        }
        let copied = self.read(operand, ScalarType::U32)?;
        if let Some(copied) = known(copied) {
            let any = if copied == 0 { Src::FALSE } else { Src::TRUE };
            return Ok(Part { skip: Src::imm(bytes.wrapping_sub(copied) & (bytes - 1)), any });
        }
        let any = self.compare(ICmp::Ne, false, copied, Src::ZERO);
        // If all bytes or none are copied, the predicate is sufficient.
        if self.bits_of(copied) & (bytes - 1) == 0 {
            return Ok(Part { skip: Src::ZERO, any });
        }
        let left = self.subtract(Src::imm(bytes), copied);
        let skip = self.lop3(0xc0, left, Src::imm(bytes - 1), Src::ZERO);
        Ok(Part { skip, any })
    }

    /// `cp.async.wait_group`.
    pub(super) fn wait_for_copies(&mut self, instr: &Statement<'a>) -> Result<()> {
        let but = self.immediate(instr, 0)?.min(MOST_GROUPS) as u8;
        self.effect(Op::Depbar { but }, &[]);
        Ok(())
    }

    /// `cp.async.wait_all`: also waits for copies that are not in a group yet.
    pub(super) fn wait_for_all_copies(&mut self, _: &Statement<'a>) -> Result<()> {
        self.effect(Op::Ldgdepbar, &[]);
        self.effect(Op::Depbar { but: 0 }, &[]);
        Ok(())
    }

    /// `discard`.
    pub(super) fn discard(&mut self, instr: &Statement<'a>) -> Result<()> {
        // There is only one size and one cache; a generic address must be a global one.
        instr.ignore(&[Mod::L2, Mod::Global]);
        instr.operand(1);
        let op = |offset| Op::Line { op: LineOp::Discard, offset };
        if !self.encodes(&op(0)) {
            return self.unsupported(instr, "this instruction on this target");
        }
        let address = self.address(instr, 0)?;
        let (address, offset) = self.wide_address(address, false)?;
        self.effect(op(offset), &[address]);
        Ok(())
    }
}
