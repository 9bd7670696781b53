//! Barrier objects in the hardware's layout, and the operations on them.
//!
//! Counts are stored negated, so that an arrival adds one and the last arrival produces a carry. As observed in code of
//! ptxas: on sm_80, the expected arrivals are in the low 30 bits of the first word, the pending ones in the low 31 bits
//! of the second word, and the parity of the phase above them. From sm_90 on, the expected arrivals are 20 bits from
//! bit 1 on, the pending ones 20 bits from bit 43 on, and the parity is the last bit. The 22 bits between are assumed
//! to be the number of bytes that are still to be transferred, because no code reads them.

use super::record::Meeting;
use super::step::Step;
use super::{Block, Result, WARP, each};
use crate::launch::FaultKind;
use crate::memory::Space;
use crate::transfers::{Done, Transfer};
use ptx_backend::target::Target;
use sass::Field;

/// The mnemonics of operations on barrier objects.
pub(super) const MNEMONICS: &[&str] = &["SYNCS", "ARRIVES"];

/// The fields of a barrier object on one generation.
#[derive(Clone, Copy)]
struct Layout {
    /// First bit and number of bits.
    expected: (u32, u32),
    pending: (u32, u32),
    bytes: Option<(u32, u32)>,
}

const PHASE: u64 = 1 << 63;
const SM80: Layout = Layout { expected: (0, 30), pending: (32, 31), bytes: None };
const SM90: Layout = Layout { expected: (1, 20), pending: (43, 20), bytes: Some((21, 22)) };

/// The effect of an arrival.
#[derive(Clone, Copy, Default)]
struct Arrival {
    count: u32,
    /// Added to the number of bytes that are still to arrive.
    bytes: i64,
    /// The arrivals are not expected in later phases.
    leaves: bool,
}

impl Layout {
    /// On targets with clusters, barrier objects also count bytes.
    fn of(target: &Target) -> Layout {
        if target.clusters { SM90 } else { SM80 }
    }

    fn get(word: u64, (low, bits): (u32, u32)) -> u64 {
        word >> low & ((1 << bits) - 1)
    }

    fn put(word: u64, (low, bits): (u32, u32), value: u64) -> u64 {
        let mask = (1 << bits) - 1;
        word & !(mask << low) | (value & mask) << low
    }

    fn signed(word: u64, field: (u32, u32)) -> i64 {
        let unused = 64 - field.1;
        (Layout::get(word, field) << unused) as i64 >> unused
    }

    /// The word of an object after an arrival.
    fn arrive(self, word: u64, arrival: Arrival) -> Result<u64> {
        let mut word = word;
        let bytes = match self.bytes {
            Some(field) => {
                let bytes = Layout::signed(word, field) + arrival.bytes;
                word = Layout::put(word, field, bytes as u64);
                bytes
            }
            None => 0,
        };
        // The pending count is negated, so it is zero if nothing is pending.
        let pending = Layout::get(word, self.pending).wrapping_neg() & ((1 << self.pending.1) - 1);
        let left = pending.checked_sub(arrival.count.into());
        let left = left.ok_or(FaultKind::Malformed("more arrivals than a barrier object expects".into()))?;
        if arrival.leaves {
            let expected = Layout::get(word, self.expected) + u64::from(arrival.count);
            word = Layout::put(word, self.expected, expected);
        }
        if left > 0 || bytes != 0 {
            return Ok(Layout::put(word, self.pending, left.wrapping_neg()));
        }
        let next = Layout::signed(word, self.expected);
        Ok(Layout::put(word, self.pending, next as u64) ^ PHASE)
    }
}

impl Block<'_> {
    pub(super) fn barrier_object(&mut self, w: usize, mask: u32, at: u32, name: &str) -> Result<()> {
        let machine = self.machine;
        let step = &machine.code[at as usize];
        let unsupported = || Err(FaultKind::Unsupported(sass::print(machine.sm, &step.inst, 0)));
        match (name, step.inst.form().name) {
            ("ARRIVES", _) => self.arrive_behind_copies(w, mask, at),
            ("ATOMS.ARRIVE", _) => {
                for lane in each(mask) {
                    let address = self.address(w, lane, at, true)?;
                    let arrival = Arrival { count: 1, ..Arrival::default() };
                    let before = self.arrive(address, arrival)?;
                    self.put_pair(w, lane, step, before);
                }
                Ok(())
            }
            (_, "SYNCS.EXCH") => {
                let address = self.address(w, 0, at, true)?;
                let source = step.inst.get(Field::URb).unwrap_or(0) as usize;
                let [low, high] = [0, 1].map(|i| u64::from(self.warps[w].uniform[source + i]));
                let old = self.view(w, 0).load(Space::Cluster, address, 8)?;
                self.view(w, 0).store(Space::Cluster, address, 8, high << 32 | low)?;
                if u64::from(step.rd) != u64::from(machine.sm.urz()) {
                    self.set_uniform(w, step.rd, old as u32);
                    self.set_uniform(w, step.rd + 1, (old >> 32) as u32);
                }
                Ok(())
            }
            (_, "SYNCS.PHASECHK") => {
                // All threads test at the same time: if the phase ends, it has ended for all of them or for none.
                let mut waited = None;
                for lane in each(mask) {
                    let address = self.address(w, lane, at, true)?;
                    let word = self.view(w, lane).load(Space::Cluster, address, 8)?;
                    let state = self.data(w, lane, step)?;
                    let over = (word >> 32) as u32 >> 31 != state >> 31;
                    self.set_predicate(w, lane, false, step.pd, over);
                    waited = if over { waited } else { Some((lane, address)) };
                }
                match waited {
                    Some((lane, address)) => self.looked(w, lane, Space::Cluster, address, 8),
                    None => Ok(()),
                }
            }
            (_, "SYNCS.ARRIVE") => self.arrive_all(w, mask, at),
            // Effects of the cache of objects are not visible.
            (_, "SYNCS.CCTL" | "SYNCS.CCTL.IVALL") => Ok(()),
            _ => unsupported(),
        }
    }

    /// The 32 bits in a lane's data register.
    fn data(&self, w: usize, lane: usize, step: &Step) -> Result<u32> {
        let register = step.inst.get(Field::Rb).or(step.inst.get(Field::Rc)).unwrap_or(255);
        Ok(self.warps[w].registers[register as usize * WARP + lane])
    }

    fn put_pair(&mut self, w: usize, lane: usize, step: &Step, value: u64) {
        self.set_register(w, lane, step.rd, value as u32);
        if step.rd != 255 {
            self.set_register(w, lane, step.rd + 1, (value >> 32) as u32);
        }
    }

    /// Adds an arrival. Returns the word before it.
    fn arrive(&mut self, address: u64, arrival: Arrival) -> Result<u64> {
        let layout = Layout::of(self.machine.target);
        let mut view = self.view(0, 0);
        let before = view.load(Space::Cluster, address, 8)?;
        let after = layout.arrive(before, arrival)?;
        view.store(Space::Cluster, address, 8, after)?;
        if (before ^ after) & PHASE != 0
            && let Some(recorder) = &mut self.recorder
        {
            recorder.end_phase(Meeting::Object(address));
        }
        Ok(before)
    }

    fn arrive_all(&mut self, w: usize, mask: u32, at: u32) -> Result<()> {
        let step = &self.machine.code[at as usize];
        let inst = &step.inst;
        let leaves = inst.get(Field::Flag3) == Some(1);
        let together = inst.text(Field::Flag) == Some(".TMASK");
        let mut results = [(0, 0); WARP];
        for lane in each(mask) {
            let address = self.address(w, lane, at, true)?;
            let data = self.data(w, lane, step)?;
            let (count, bytes) = match inst.text(Field::Mode) {
                Some("") => (1, i64::from(data)),
                Some(".A1T0") => (1, 0),
                Some(".A0T1") => (0, 1),
                Some(".A0TR") => (0, i64::from(data)),
                Some(".A0TX") => (0, -i64::from(data)),
                Some(".ART0") => (data, 0),
                _ => return Err(FaultKind::Unsupported(sass::print(self.machine.sm, inst, 0))),
            };
            results[lane] = (address, self.arrive(address, Arrival { count, bytes, leaves })?);
        }
        for lane in each(mask) {
            let (address, own) = results[lane];
            if !together {
                self.put_pair(w, lane, step, own);
                continue;
            }
            // Lanes that arrive at the same time get their rank, and the state before the first arrival.
            let with = each(mask).filter(|&other| results[other].0 == address);
            let with = with.fold(0u64, |lanes, other| lanes | 1 << other);
            let first = results[with.trailing_zeros() as usize].1;
            self.put_pair(w, lane, step, first & !0xffff_ffff | with);
        }
        Ok(())
    }

    /// Adds arrivals that take effect after the copies that each thread has begun.
    fn arrive_behind_copies(&mut self, w: usize, mask: u32, at: u32) -> Result<()> {
        let inst = &self.machine.code[at as usize].inst;
        let counts_bytes = inst.text(Field::Flag) == Some(".TRANSCNT");
        for lane in each(mask) {
            let barrier = self.address(w, lane, at, true)?;
            let thread = (self.cluster.rank(), w, lane);
            let done = Done::Arrival { barrier, thread, copies: self.warps[w].copies.begun(), counts_bytes };
            self.transfers.begin(Transfer { pieces: Vec::new(), reduces: None, done });
        }
        Ok(())
    }

    /// Called when a thread reads memory that may be a barrier object. If a transfer will signal this object, the
    /// transfer completes now.
    pub(super) fn looked(
        &mut self,
        w: usize,
        lane: usize,
        space: Space,
        address: u64,
        size: u32,
    ) -> Result<()> {
        if self.transfers.is_empty() {
            return Ok(());
        }
        let Ok(address) = self.view(w, lane).in_cluster(space, address) else { return Ok(()) };
        match self.transfers.next(address & !7..address + u64::from(size)) {
            Some(transfer) => self.land_transfer(transfer),
            None => Ok(()),
        }
    }

    /// Signals a barrier object that a transfer is complete.
    pub(super) fn complete(&mut self, done: Done) -> Result<()> {
        let (barrier, arrival) = match done {
            Done::Group { .. } => return Ok(()),
            Done::Bytes { barrier, count } => {
                (barrier, Arrival { bytes: -i64::from(count), ..Arrival::default() })
            }
            Done::Arrival { barrier, thread: (rank, w, lane), copies, counts_bytes } => {
                let back = self.cluster.rank();
                self.switch_to(rank);
                let copies = self.warps[w].copies.finish_first(lane, copies);
                self.put_copies(w, lane, copies)?;
                self.switch_to(back);
                let arrival = match counts_bytes {
                    true => Arrival { bytes: -1, ..Arrival::default() },
                    false => Arrival { count: 1, ..Arrival::default() },
                };
                (barrier, arrival)
            }
        };
        self.arrive(barrier, arrival).map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_carry() {
        // As the code of ptxas makes them for two arrivals.
        let sm80 = 0x7fff_fffe_3fff_fffe;
        let sm90 = ((0x10_0000 - 2) << 11) << 32 | (0x10_0000 - 2) << 1;
        let one = Arrival { count: 1, ..Arrival::default() };
        for (layout, start) in [(SM80, sm80), (SM90, sm90)] {
            let half = layout.arrive(start, one).unwrap();
            assert_eq!(half & PHASE, 0);
            assert_eq!(layout.arrive(half, one).unwrap(), start | PHASE);
            let fewer = layout.arrive(half, Arrival { leaves: true, ..one }).unwrap();
            assert_eq!(layout.arrive(fewer, one).unwrap() & PHASE, 0);
        }
        let bytes = |bytes| Arrival { bytes, ..Arrival::default() };
        let waits = SM90.arrive(sm90, Arrival { count: 2, bytes: 16, leaves: false }).unwrap();
        assert!(waits & PHASE == 0 && SM90.arrive(waits, one).is_err());
        assert_eq!(SM90.arrive(waits, bytes(-16)).unwrap(), sm90 | PHASE);
    }
}
