//! Operations on mbarrier objects.
//!
//! The high word of an object, and of the state that an arrival returns, has the phase in its top bit. From sm_90 on, a
//! separate hardware unit handles mbarrier objects. Before, they are words of shared memory whose counts increase. The
//! layout, and the code for scopes, were observed on ptxas 13.0.88.

use super::memory::Target;
use super::operand::known;
use super::{Lowering, Result, Statement};
use crate::input::{AddressBase, Operand};
use crate::ori::ir::{Dst, File, Inst, Src};
use crate::ori::memory::{Order, Scope};
use crate::ori::op::{
    AddressScale, Arrival, ArriveMode, AtomOp, AtomType, CctlOp, CopiesArrive, MemSize, Op, Sign, ViewOf, lut,
};
use crate::ori::signature::special;
use ptx_isa::{FormId, Mod, ScalarType};

/// Counts are stored as differences from this number: pending arrivals count up to it.
const MOST: u32 = 1 << 20;
/// The bit in the high word of a state where the count of pending arrivals begins.
const PENDING_AT: u32 = 11;
/// The bit in the low word of an object where the initial count of each phase begins.
const EXPECTED_AT: u32 = 1;
/// For objects that are words of shared memory: the limits of the initial count of each phase, and of the pending
/// count.
const OLD_EXPECTED: u32 = 1 << 30;
const OLD_PENDING: u32 = 1 << 31;
/// The offset of the high word from the low word.
const HIGH: i32 = 4;
/// The bit of a high word that is the phase.
const PHASE_AT: u32 = 31;

/// The address of an object, as the operations take it: a register, a uniform register and an offset.
#[derive(Clone, Copy)]
pub(super) struct At {
    address: Src,
    base: Src,
    offset: i32,
}

impl<'a> Lowering<'a> {
    /// Whether the target has a unit for mbarrier objects.
    fn has_unit(&self) -> bool {
        self.encodes(&Op::SyncsInvalidate { offset: 0 })
    }

    /// The address operand. If there is a unit, the low word of a generic address is an address in the shared memory of
    /// the cluster.
    pub(super) fn object(&mut self, instr: &Statement<'a>, i: usize) -> Result<At> {
        let named = instr.any_of(&[Mod::Shared, Mod::SharedCta]).is_some();
        if !self.has_unit() && !self.encodes(&Op::AtomsArrive { offset: 0 }) {
            return self.unsupported(instr, "barrier objects on this target");
        }
        let address = self.address(instr, i)?;
        let generic = !named && matches!(address.base, AddressBase::Reg(_));
        let Target::Shared { address, base, offset } = self.shared_target(instr, address)? else {
            return self.malformed("a barrier object in another space");
        };
        match self.target.driver.shared_window {
            Some(window) if generic => {
                let address = self.subtract(address, Src::constant(0, window));
                Ok(At { address, base, offset })
            }
            _ => Ok(At { address, base, offset }),
        }
    }

    /// The complete address in one register.
    pub(super) fn object_address(&mut self, at: At) -> Src {
        let At { address, base, offset } = at;
        let address = if address == Src::ZERO { base } else { self.based(address, base) };
        if offset == 0 { address } else { self.add(address, Src::imm(offset as u32)) }
    }

    /// `mbarrier.init`.
    pub(super) fn start_object(&mut self, instr: &Statement<'a>) -> Result<()> {
        let At { address, base, offset } = self.object(instr, 0)?;
        let count = self.source(instr, 1, ScalarType::U32)?;
        if !self.has_unit() {
            let words =
                [self.subtract(Src::imm(OLD_EXPECTED), count), self.subtract(Src::imm(OLD_PENDING), count)];
            let words = self.pack(&words);
            let op = Op::Sts {
                size: MemSize::B64,
                order: Order::Relaxed(Scope::Cta),
                scale: AddressScale::One,
                offset,
            };
            self.effect(op, &[address, base, words]);
            return Ok(());
        }
        let words = match known(count) {
            Some(count) => {
                let left = MOST.wrapping_sub(count);
                [Src::imm(left << EXPECTED_AT), Src::imm(left << PENDING_AT)]
            }
            None => {
                let left = self.subtract(Src::imm(MOST), count);
                [EXPECTED_AT, PENDING_AT].map(|at| self.shift_left(left, Src::imm(at)))
            }
        };
        let address = if address == Src::ZERO { base } else { self.based(address, base) };
        // Threads may have written the words before.
        self.effect(Op::FenceView { of: ViewOf::Shared }, &[]);
        self.one_by_one(|this, chosen| {
            let address = this.uniform_register(address, chosen);
            let words = this.uniform_pack(&words, chosen);
            this.effect(Op::SyncsExch { offset }, &[address, words]);
            Ok(())
        })
    }

    /// `mbarrier.inval`.
    pub(super) fn end_object(&mut self, instr: &Statement<'a>) -> Result<()> {
        let At { address, base, offset } = self.object(instr, 0)?;
        if !self.has_unit() {
            // The object is only words of memory.
            return Ok(());
        }
        self.effect(Op::SyncsInvalidate { offset }, &[address, base]);
        Ok(())
    }

    /// `mbarrier.expect_tx` and `complete_tx`, which do not order memory.
    pub(super) fn count_bytes(&mut self, instr: &Statement<'a>) -> Result<()> {
        instr.ignore(&[Mod::Relaxed, Mod::Cta, Mod::Cluster, Mod::SharedCluster]);
        let At { address, base, offset } = self.object(instr, 0)?;
        let bytes = self.source(instr, 1, ScalarType::U32)?;
        let expects = instr.form() == FormId::MbarrierExpectTx;
        let what = if expects { Arrival::Announced } else { Arrival::Bytes };
        let op = Op::SyncsArrive { mode: ArriveMode::Remote, drop: false, what, offset };
        self.guarded(op, &[Dst::Sink], &[address, base, bytes], &[Src::UNDEF]);
        Ok(())
    }

    /// `mbarrier.arrive` and `arrive_drop`.
    pub(super) fn arrive(&mut self, instr: &Statement<'a>) -> Result<()> {
        // These are the defaults.
        instr.ignore(&[Mod::Release, Mod::Cta]);
        let relaxed = instr.has(Mod::Relaxed);
        let cluster = instr.has(Mod::Cluster);
        let local = instr.any_of(&[Mod::Shared, Mod::SharedCta]).is_some();
        instr.ignore(&[Mod::SharedCluster]);
        let drop = instr.form() == FormId::MbarrierArriveDrop;
        let At { address, base, offset } = self.object(instr, 1)?;
        let state = self.operand(instr, 0)?;
        let wanted = !matches!(state, Operand::Sink);
        let what = match (instr.has(Mod::ExpectTx), instr.operand_count()) {
            (true, _) => Arrival::OneAndBytes,
            (false, 2) => Arrival::One,
            (false, _) => Arrival::Count,
        };
        let value = match what {
            Arrival::One => Src::ZERO,
            _ => self.source(instr, 2, ScalarType::U32)?,
        };
        if !self.has_unit() {
            return self.arrive_at_words(
                instr,
                At { address, base, offset },
                (what == Arrival::Count).then_some(value),
            );
        }
        if cluster && !relaxed {
            self.release(Scope::Gpu);
        }
        let alone = instr.has(Mod::NoComplete);
        let mode = match (wanted, local) {
            _ if alone => ArriveMode::Mask,
            (false, false) => ArriveMode::Remote,
            _ => ArriveMode::State,
        };
        let op = Op::SyncsArrive { mode, drop, what, offset };
        let srcs = [address, base, value];
        if !wanted {
            self.guarded(op, &[Dst::Sink], &srcs, &[Src::UNDEF]);
            return Ok(());
        }
        let before = self.wide(2, op, &srcs);
        if !alone {
            return self.write(state, before);
        }
        // The threads of one instruction arrive one after the other. Each earlier one adds its count.
        let [threads, high] = self.pair(before);
        let lower = self.s2r(special::LOWER_LANES);
        let earlier = self.lop3(lut::A & lut::B, threads, lower, Src::ZERO);
        let earlier = self.reg(Op::Popc, &[earlier]);
        let earlier = self.shift_left(earlier, Src::imm(PENDING_AT));
        let high = self.reg(Op::Imad { sign: Sign::U32 }, &[earlier, value, high]);
        let before = self.pack(&[threads, high]);
        self.write(state, before)
    }

    /// The same for objects that are words: an arriving thread increments both counts.
    fn arrive_at_words(&mut self, instr: &Statement<'a>, at: At, count: Option<Src>) -> Result<()> {
        let At { address, base, offset } = at;
        let drop = instr.form() == FormId::MbarrierArriveDrop;
        let alone = instr.has(Mod::NoComplete);
        if !alone && (count.is_some() || instr.has(Mod::ExpectTx)) {
            return self.unsupported(instr, "an arrival count or `.expect_tx` on this target");
        }
        let state = self.operand(instr, 0)?;
        // Later accesses stay after it, as after arrivals that are separate operations.
        let order = Order::AcqRel(Scope::Cta);
        let add = |offset| Op::Atoms { op: AtomOp::Add, ty: AtomType::U32, order, offset };
        let count = count.unwrap_or(Src::imm(1));
        self.release(Scope::Cta);
        if drop {
            self.guarded(add(offset), &[Dst::Sink], &[address, base, count], &[Src::UNDEF]);
        }
        let before = match alone {
            true => {
                let high = self.reg(add(offset + HIGH), &[address, base, count]);
                self.pack(&[high, high])
            }
            false => self.wide(2, Op::AtomsArrive { offset }, &[address, base]),
        };
        if matches!(state, Operand::Sink) { Ok(()) } else { self.write(state, before) }
    }

    /// `cp.async.mbarrier.arrive`: the thread arrives when its copies are complete. Without `.noinc`, the pending count
    /// of the object is first incremented.
    pub(super) fn arrive_behind_copies(&mut self, instr: &Statement<'a>) -> Result<()> {
        let expected = instr.has(Mod::Noinc);
        let At { address, base, offset } = self.object(instr, 0)?;
        let count = match (self.has_unit(), expected) {
            (false, _) => CopiesArrive::Word,
            (true, true) => CopiesArrive::Expected,
            (true, false) => CopiesArrive::Announced,
        };
        if !expected && self.has_unit() {
            let (mode, what) = (ArriveMode::Remote, Arrival::OneByte);
            let op = Op::SyncsArrive { mode, drop: false, what, offset };
            self.guarded(op, &[Dst::Sink], &[address, base, Src::ZERO], &[Src::UNDEF]);
        } else if !expected {
            let order = Order::Relaxed(Scope::Cta);
            let op = Op::Atoms { op: AtomOp::Add, ty: AtomType::U32, order, offset: offset + HIGH };
            self.guarded(op, &[Dst::Sink], &[address, base, Src::imm(u32::MAX)], &[Src::UNDEF]);
        }
        self.effect(Op::ArrivesCopies { count, offset }, &[address, base]);
        Ok(())
    }

    /// `mbarrier.test_wait` and `try_wait`.
    pub(super) fn ask_object(&mut self, instr: &Statement<'a>) -> Result<()> {
        instr.ignore(&[Mod::Acquire, Mod::Cta]);
        let relaxed = instr.has(Mod::Relaxed);
        let acquires = instr.has(Mod::Cluster) && !relaxed;
        let At { address, base, offset } = self.object(instr, 1)?;
        let phase = if instr.has(Mod::Parity) {
            let parity = self.source(instr, 2, ScalarType::U32)?;
            match known(parity) {
                Some(parity) => Src::imm(parity << PHASE_AT),
                None => self.shift_left(parity, Src::imm(PHASE_AT)),
            }
        } else {
            let state = self.source(instr, 2, ScalarType::U64)?;
            self.part(state, 1)
        };
        if !self.has_unit() {
            let order = Order::Acquire(Scope::Cta);
            let load = Op::Lds { size: MemSize::B32, order, scale: AddressScale::One, offset: offset + HIGH };
            let now = self.reg(load, &[address, base]);
            let differ = Op::Lop3P { lut: (lut::A ^ lut::C) & lut::B };
            let over = self.pred(differ, &[now, Src::imm(1 << PHASE_AT), phase]);
            return self.result(instr, over);
        }
        let time = match instr.operand(3) {
            Some(time) => Some(self.read(time, ScalarType::U32)?),
            None => None,
        };
        let wait = instr.form() == FormId::MbarrierTryWait;
        let srcs = [address, base, phase];
        let mut over = self.pred(Op::SyncsPhasechk { wait, offset }, &srcs);
        if let Some(time) = time {
            self.push_guarded(over.not(), Op::Nanosleep { object: true }, None, &[time]);
            let again = self.new_value(File::P, 1);
            let op = Op::SyncsPhasechk { wait: false, offset };
            self.push_guarded(over.not(), op, Some((again.into(), over)), &srcs);
            over = again.into();
        }
        if acquires {
            self.push_guarded(over, Op::Cctl { op: CctlOp::Ivall }, None, &[]);
        }
        self.result(instr, over)
    }

    /// An operation under its own guard; its result, and the value if the guard is false.
    fn push_guarded(&mut self, guard: Src, op: Op, result: Option<(Src, Src)>, srcs: &[Src]) {
        let mut inst = Inst::new(op, &[], srcs, self.src);
        inst.guard = guard;
        if let Some((value, old)) = result {
            inst.dsts.extend(value.value().map(Dst::Value));
            inst.old.push(old);
        }
        self.push(inst);
    }

    /// `mbarrier.pending_count`.
    pub(super) fn pending_count(&mut self, instr: &Statement<'a>) -> Result<()> {
        let state = self.source(instr, 1, ScalarType::U64)?;
        let high = self.part(state, 1);
        if !self.has_unit() {
            let count = self.lop3(lut::A & lut::B, high, Src::imm(OLD_PENDING - 1), Src::ZERO);
            let pending = self.subtract(Src::imm(OLD_PENDING), count);
            return self.result(instr, pending);
        }
        let count = self.shift_right(high, PENDING_AT, false);
        let count = self.lop3(lut::A & lut::B, count, Src::imm(MOST - 1), Src::ZERO);
        let pending = self.subtract(Src::imm(MOST), count);
        self.result(instr, pending)
    }
}
