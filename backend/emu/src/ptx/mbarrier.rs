//! Barrier objects in shared memory.
//!
//! The manual does not specify the contents of barrier objects. Here, a word consists of the following fields, from the
//! lowest bit on: the expected arrivals and the pending arrivals in 20 bits each, the number of bytes that are still to
//! arrive in 21 bits, the parity of the phase, and a marker. An operation on a word without the marker is a fault. So
//! is anything that the manual leaves undefined, such as more arrivals than are pending, or a `.noComplete` that
//! completes the phase.

use super::arithmetic::unsupported;
use super::{Block, Step, WARP, each};
use crate::launch::FaultKind;
use crate::memory::{Space, UNWRITTEN};
use crate::transfers::{Done, Transfer};
use ptx_backend::input::{Instr, Operand};
use ptx_isa::{FormId, Mod, ScalarType};

/// The largest number of arrivals of an object, and the largest number of bytes.
const MOST: u32 = (1 << 20) - 1;
const COUNT_BITS: u32 = 20;
const BYTES_BITS: u32 = 21;
const PHASE: u32 = 2 * COUNT_BITS + BYTES_BITS;
const MARK: u64 = 0b01 << 62;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Object {
    expected: u32,
    pending: u32,
    bytes: i32,
    odd: bool,
}

impl Object {
    fn of(word: u64) -> Step<Object> {
        if word >> 62 != MARK >> 62 {
            return Err(FaultKind::Malformed("no barrier object is there".into()));
        }
        let unused = 64 - BYTES_BITS;
        let bytes = (word << (unused - 2 * COUNT_BITS)) as i64 >> unused;
        Ok(Object {
            expected: word as u32 & MOST,
            pending: (word >> COUNT_BITS) as u32 & MOST,
            bytes: bytes as i32,
            odd: word >> PHASE & 1 == 1,
        })
    }

    fn word(self) -> u64 {
        let bytes = self.bytes as u64 & ((1 << BYTES_BITS) - 1);
        MARK | u64::from(self.odd) << PHASE
            | bytes << (2 * COUNT_BITS)
            | u64::from(self.pending) << COUNT_BITS
            | u64::from(self.expected)
    }

    fn expect(&mut self, bytes: i64) -> Step<()> {
        let sum = i64::from(self.bytes) + bytes;
        if sum.unsigned_abs() > MOST.into() {
            return Err(FaultKind::Malformed("a barrier object expects too many bytes".into()));
        }
        self.bytes = sum as i32;
        Ok(())
    }

    fn arrive(&mut self, count: u32) -> Step<()> {
        let left = self.pending.checked_sub(count);
        self.pending =
            left.ok_or(FaultKind::Malformed("more arrivals than a barrier object expects".into()))?;
        Ok(())
    }

    fn leave(&mut self, count: u32) -> Step<()> {
        let left = self.expected.checked_sub(count);
        self.expected = left.ok_or(FaultKind::Malformed("more threads leave than a phase expects".into()))?;
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.pending == 0 && self.bytes == 0
    }

    /// Begins the next phase if this one is complete.
    fn settle(&mut self) {
        if self.is_over() {
            self.odd ^= true;
            self.pending = self.expected;
        }
    }
}

impl<'a> Block<'a> {
    fn object(&mut self, address: u64) -> Step<Object> {
        Object::of(self.view(0, 0).load(Space::Cluster, address, 8)?)
    }

    fn put_object(&mut self, address: u64, object: Object) -> Step<()> {
        self.view(0, 0).store(Space::Cluster, address, 8, object.word())
    }

    /// Changes an object, and begins the next phase if the change completes one.
    fn change(&mut self, address: u64, change: impl FnOnce(&mut Object) -> Step<()>) -> Step<()> {
        let mut object = self.object(address)?;
        change(&mut object)?;
        object.settle();
        self.put_object(address, object)
    }

    pub(super) fn mbarrier(&mut self, w: usize, mask: u32, instr: &'a Instr) -> Step<()> {
        use FormId as F;
        let op = &instr.opcode;
        self.races.cut();
        if op.form == F::MbarrierPendingCount {
            return self.map1(w, mask, instr, ScalarType::U32, ScalarType::U64, |state| {
                Ok(Object::of(state)?.pending.into())
            });
        }
        let at = instr.operands.iter().position(|operand| matches!(operand, Operand::Address(_)));
        let Some(at) = at else { return unsupported(instr) };
        let waits = matches!(op.form, F::MbarrierTestWait | F::MbarrierTryWait);
        let source = match instr.operands.get(at + 1) {
            Some(operand) => {
                let state = waits && !op.has(Mod::Parity);
                let ty = if state { ScalarType::U64 } else { ScalarType::U32 };
                Some(self.gather(w, mask, operand, ty)?)
            }
            None => None,
        };
        let space = super::memory::space(instr);
        let mut waited = None;
        for lane in each(mask) {
            let address = self.address(w, lane, &instr.operands[at])?;
            let address = self.view(w, lane).in_cluster(space, address)?;
            let value = source.map(|values: [u64; WARP]| values[lane]);
            let count = value.unwrap_or(1) as u32;
            let thread = (self.cluster.rank(), w, lane);
            match op.form {
                F::MbarrierInit => {
                    if !(1..=MOST).contains(&count) {
                        return Err(FaultKind::Malformed(format!("a barrier object for {count} arrivals")));
                    }
                    let object = Object { expected: count, pending: count, bytes: 0, odd: false };
                    self.put_object(address, object)?;
                }
                F::MbarrierInval => {
                    self.object(address)?;
                    let nothing = u64::from_le_bytes([UNWRITTEN; 8]);
                    self.view(w, lane).store(Space::Cluster, address, 8, nothing)?;
                }
                F::MbarrierExpectTx => self.change(address, |object| object.expect(count.into()))?,
                F::MbarrierCompleteTx => self.complete_bytes(address, count)?,
                F::MbarrierArrive | F::MbarrierArriveDrop => {
                    let before = self.arrive(instr, address, value.map(|value| value as u32))?;
                    // An arrival at a `.shared::cluster` address returns no state.
                    if at > 0 {
                        self.put(w, lane, &instr.operands[0], ScalarType::U64, before)?;
                    }
                }
                F::CpAsyncMbarrierArrive => {
                    let counts = !op.has(Mod::Noinc);
                    if counts {
                        let mut object = self.object(address)?;
                        object.pending += 1;
                        self.put_object(address, object)?;
                    }
                    let copies = self.warps[w].copies.begun();
                    let done = Done::Arrival { barrier: address, thread, copies, counts_bytes: false };
                    self.transfers.begin(Transfer { pieces: Vec::new(), reduces: None, done });
                }
                _ => {
                    let odd = match value {
                        Some(parity) if op.has(Mod::Parity) => parity & 1 == 1,
                        Some(state) => Object::of(state)?.odd,
                        None => return unsupported(instr),
                    };
                    let over = self.object(address)?.odd != odd;
                    self.put(w, lane, &instr.operands[0], ScalarType::Pred, over.into())?;
                    waited = if over { waited } else { Some(address) };
                }
            }
        }
        match waited.and_then(|address| self.transfers.next(address..address + 1)) {
            Some(transfer) => self.land_transfer(transfer),
            None => Ok(()),
        }
    }

    /// Adds an arrival. Returns the word before it.
    fn arrive(&mut self, instr: &Instr, address: u64, value: Option<u32>) -> Step<u64> {
        let op = &instr.opcode;
        let mut object = self.object(address)?;
        let (count, bytes) = match value {
            Some(bytes) if op.has(Mod::ExpectTx) => (1, bytes),
            count => (count.unwrap_or(1), 0),
        };
        object.expect(bytes.into())?;
        let before = object.word();
        object.arrive(count)?;
        if op.form == FormId::MbarrierArriveDrop {
            object.leave(count)?;
        }
        if op.has(Mod::NoComplete) && object.is_over() {
            return Err(FaultKind::Malformed("a .noComplete arrival completes the phase".into()));
        }
        object.settle();
        self.put_object(address, object)?;
        Ok(before)
    }

    /// Signals an object that bytes have arrived.
    pub(super) fn complete_bytes(&mut self, address: u64, bytes: u32) -> Step<()> {
        self.change(address, |object| object.expect(-i64::from(bytes)))
    }

    /// Adds the arrival for a thread's completed copies.
    pub(super) fn complete_arrival(&mut self, address: u64) -> Step<()> {
        self.change(address, |object| object.arrive(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_hold_objects() {
        let object = Object { expected: MOST, pending: 3, bytes: -5, odd: true };
        assert_eq!(Object::of(object.word()), Ok(object));
        assert!(Object::of(u64::from_le_bytes([UNWRITTEN; 8])).is_err());
        assert!(Object::of(0).is_err());
    }

    #[test]
    fn a_phase_ends_with_its_last_arrival_and_byte() {
        let mut object = Object { expected: 2, pending: 2, bytes: 0, odd: false };
        object.arrive(2).unwrap();
        object.expect(16).unwrap();
        object.settle();
        assert!(!object.odd && object.arrive(1).is_err());
        object.expect(-16).unwrap();
        object.settle();
        assert_eq!(object, Object { expected: 2, pending: 2, bytes: 0, odd: true });
    }
}
