//! Records the trace of a launch for the [clock](crate::clock).

use super::step::What;
use super::{Block, Result, each};
use crate::memory::{Space, in_window, space_of};
use crate::trace::{Arrival, Detail, EventId, Issued, Line, Trace, Wait};
use crate::transfers::Done;
use sass::Field;
use std::collections::HashMap;

const LINE_BYTES: u64 = 128;
const SECTOR_BYTES: u64 = 32;
const BANKS: u64 = 32;

/// A barrier that threads can arrive at and wait for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Meeting {
    /// A barrier of the block with a rank.
    Block(usize, u32),
    Cluster,
    /// A barrier object, by its address in the cluster.
    Object(u64),
}

/// The trace so far, and the current phases of the barriers.
#[derive(Debug, Default)]
pub(super) struct Recorder {
    pub(super) trace: Trace,
    /// The executing warp: the rank of its block, and its number.
    turn: (usize, usize),
    /// The event that ends the current phase.
    open: HashMap<Meeting, EventId>,
    /// The event that ended the previous phase.
    over: HashMap<Meeting, EventId>,
    /// The barrier phase at which a warp arrived last.
    arrived: HashMap<((usize, usize), Meeting), EventId>,
    /// Where a warp tested a barrier object without success, and how many instructions it had issued before.
    looked: HashMap<(usize, usize), (u32, usize)>,
}

impl Recorder {
    /// Begins a cluster. Each block has the given number of warps.
    pub(super) fn begin(&mut self, blocks: usize, warps: usize) {
        self.open.clear();
        self.over.clear();
        self.arrived.clear();
        self.looked.clear();
        self.trace.clusters.push(vec![vec![Vec::new(); warps]; blocks]);
    }

    fn issued(&mut self) -> Option<&mut Vec<Issued>> {
        let (rank, w) = self.turn;
        self.trace.clusters.last_mut()?.get_mut(rank)?.get_mut(w)
    }

    fn issue(&mut self, turn: (usize, usize), at: u32, acts: bool) {
        self.turn = turn;
        let first = self.trace.details.len() as u32;
        if let Some(issued) = self.issued() {
            issued.push(Issued { at, first, count: 0, acts });
        }
    }

    /// Adds a detail to the instruction that was issued last.
    fn add(&mut self, detail: Detail) {
        self.trace.details.push(detail);
        if let Some(last) = self.issued().and_then(|issued| issued.last_mut()) {
            last.count += 1;
        }
    }

    /// Records that the warp arrives at the current phase.
    pub(super) fn arrive(&mut self, meeting: Meeting, when: Arrival) {
        let events = &mut self.trace.events;
        let event = *self.open.entry(meeting).or_insert_with(|| {
            events.push(0);
            events.len() as EventId - 1
        });
        events[event as usize] += 1;
        let again = self.arrived.insert((self.turn, meeting), event) == Some(event);
        if again {
            self.drop_waits(event);
        }
        self.add(Detail::Arrives(event, when));
    }

    /// Removes the warp's waits for an event to which some of its threads have yet to contribute: the warp as a whole
    /// continues.
    fn drop_waits(&mut self, event: EventId) {
        let (rank, w) = self.turn;
        let Some(blocks) = self.trace.clusters.last_mut() else { return };
        // The warp's last arrival removed the waits before it.
        for inst in blocks[rank][w].iter_mut().rev() {
            let details = &self.trace.details[inst.first as usize..][..usize::from(inst.count)];
            if matches!(details.last(), Some(Detail::Waits(of, _)) if *of == event) {
                inst.count -= 1;
            }
            if details.iter().any(|detail| matches!(detail, Detail::Arrives(of, _) if *of == event)) {
                break;
            }
        }
    }

    /// Records that the warp arrives at a barrier of its block, and whether it waits there.
    pub(super) fn meet_block(&mut self, rank: usize, id: u32, waits: bool) {
        let meeting = Meeting::Block(rank, id);
        self.arrive(meeting, Arrival::AtOnce);
        if let Some(&event) = self.open.get(&meeting).filter(|_| waits) {
            self.add(Detail::Waits(event, Wait::Block));
        }
    }

    /// Records the end of a phase.
    pub(super) fn end_phase(&mut self, meeting: Meeting) {
        if let Some(event) = self.open.remove(&meeting) {
            self.over.insert(meeting, event);
        }
    }

    /// Whether the warp has arrived at a barrier since it had issued `issued` instructions. While some of its threads
    /// poll, others may continue.
    fn has_arrived_since(&self, issued: usize) -> bool {
        let (rank, w) = self.turn;
        let all = self.trace.clusters.last().map_or(&[][..], |blocks| &blocks[rank][w]);
        all[issued..].iter().any(|inst| {
            let details = &self.trace.details[inst.first as usize..][..usize::from(inst.count)];
            details.iter().any(|detail| matches!(detail, Detail::Arrives(..)))
        })
    }

    /// Records a test of a barrier object. Failed iterations of a polling loop are left out, because a waiting warp
    /// issues nothing.
    fn look(&mut self, object: Option<u64>, at: u32) {
        let turn = self.turn;
        let now = self.issued().map_or(0, |issued| issued.len());
        match self.looked.get(&turn).copied() {
            Some((same, before)) if same == at && before < now && !self.has_arrived_since(before) => {
                if let Some(issued) = self.issued() {
                    let last = issued.pop();
                    issued.truncate(before - 1);
                    issued.extend(last);
                }
            }
            _ => {}
        }
        match object {
            None => {
                let now = self.issued().map_or(0, |issued| issued.len());
                self.looked.insert(turn, (at, now));
            }
            Some(object) => {
                self.looked.remove(&turn);
                if let Some(&event) = self.over.get(&Meeting::Object(object)) {
                    self.add(Detail::Waits(event, Wait::Object));
                }
            }
        }
    }
}

impl Block<'_> {
    /// Called before an instruction executes. Records its issue, the memory that it accesses and its arrivals.
    pub(super) fn record(&mut self, w: usize, at: u32, active: u32) -> Result<()> {
        let Some(mut recorder) = self.recorder.take() else { return Ok(()) };
        recorder.issue((self.cluster.rank(), w), at, active != 0);
        let result = if active == 0 { Ok(()) } else { self.record_details(&mut recorder, w, at, active) };
        self.recorder = Some(recorder);
        result
    }

    fn record_details(&self, recorder: &mut Recorder, w: usize, at: u32, active: u32) -> Result<()> {
        let step = &self.machine.code[at as usize];
        let inst = &step.inst;
        match step.what {
            What::Memory("LDC" | "ULDC" | "LDCU" | "QSPC") => {}
            What::Memory(name) => {
                let narrow = matches!(name, "LDS" | "STS" | "ATOMS" | "LDL" | "STL");
                let mut addresses = Vec::new();
                for lane in each(active) {
                    addresses.push(self.address(w, lane, at, narrow)?);
                }
                let bytes = access_bytes(inst);
                let first = addresses.first().copied().unwrap_or(0);
                match name {
                    "LDS" | "STS" => recorder.add(Detail::Shared { passes: passes(&addresses, bytes) }),
                    // Shared memory counts the threads with one address together.
                    "ATOMS" if inst.form().name == "ATOMS.POPC.INC" => {
                        recorder.add(Detail::Shared { passes: passes(&addresses, bytes) });
                    }
                    "ATOMS" => recorder.add(Detail::Shared { passes: serial_passes(&addresses) }),
                    "LDL" | "STL" => recorder.lines(&local(&addresses, w, self.cluster.rank()), bytes),
                    "LD" | "ST" | "ATOM" if space_of(first) == Space::Shared => {
                        let addresses: Vec<u64> = addresses.into_iter().map(in_window).collect();
                        recorder.add(Detail::Shared { passes: passes(&addresses, bytes) });
                    }
                    _ => recorder.lines(&addresses, bytes),
                }
            }
            What::Matrix("LDSM" | "STSM") => {
                let count = 1usize << inst.get(Field::Size).unwrap_or(0).min(2);
                let mut sum = 0;
                for rows in (0..8 * count).collect::<Vec<_>>().chunks(8) {
                    let mut addresses = Vec::new();
                    for &row in rows {
                        addresses.push(self.address(w, row, at, true)?);
                    }
                    sum += passes_of(&addresses, 16);
                }
                recorder.add(Detail::Shared { passes: sum });
            }
            What::Barrier(_) if matches!(inst.form().name, "SYNCS.ARRIVE" | "ATOMS.ARRIVE") => {
                let mut objects = Vec::new();
                for lane in each(active) {
                    let object = self.address(w, lane, at, true)?;
                    if !objects.contains(&object) {
                        objects.push(object);
                        recorder.arrive(Meeting::Object(object), Arrival::AtOnce);
                    }
                }
            }
            What::Sync("UCGABAR_ARV") => recorder.arrive(Meeting::Cluster, Arrival::AtOnce),
            What::Sync("UCGABAR_WAIT") => {
                if let Some(&event) = recorder.arrived.get(&(recorder.turn, Meeting::Cluster)) {
                    recorder.add(Detail::Waits(event, Wait::Cluster));
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Called after an instruction has executed. Records the transfers that it has begun, and whether it observed the
    /// end of a phase.
    pub(super) fn record_effects(&mut self, w: usize, at: u32, active: u32, transfers: usize) -> Result<()> {
        let Some(mut recorder) = self.recorder.take() else { return Ok(()) };
        for (done, bytes) in self.transfers.since(transfers) {
            match done {
                Done::Bytes { barrier, count } => {
                    recorder.arrive(Meeting::Object(barrier), Arrival::Transfer(count));
                }
                Done::Arrival { barrier, .. } => {
                    recorder.arrive(Meeting::Object(barrier), Arrival::AfterCopies);
                }
                // Only the warp itself waits for the group, with a scoreboard.
                Done::Group { .. } => recorder.add(Detail::Moves { bytes }),
            }
        }
        let step = &self.machine.code[at as usize];
        if step.inst.form().name == "SYNCS.PHASECHK" && active != 0 {
            let lane = active.trailing_zeros() as usize;
            let over =
                self.holds(w, lane, false, super::operand::Predicate { index: step.pd, negated: false });
            let object = self.address(w, lane, at, true);
            recorder.look(over.then_some(object?), at);
        }
        self.recorder = Some(recorder);
        Ok(())
    }

    /// Removes the instruction issued last, because it will be issued again.
    pub(super) fn unrecord(&mut self) {
        if let Some(recorder) = &mut self.recorder
            && let Some(issued) = recorder.issued()
        {
            issued.pop();
        }
    }
}

impl Recorder {
    fn lines(&mut self, addresses: &[u64], bytes: u64) {
        let first = self.trace.lines.len();
        for &address in addresses {
            let end = address + bytes.max(1);
            let mut sector = address / SECTOR_BYTES;
            while sector * SECTOR_BYTES < end {
                let number = sector * SECTOR_BYTES / LINE_BYTES;
                let bit = 1u8 << (sector % (LINE_BYTES / SECTOR_BYTES));
                match self.trace.lines[first..].iter_mut().find(|line| line.number == number) {
                    Some(line) => line.sectors |= bit,
                    None => self.trace.lines.push(Line { number, sectors: bit }),
                }
                sector += 1;
            }
        }
        let count = (self.trace.lines.len() - first) as u16;
        self.add(Detail::Global { first: first as u32, count });
    }
}

/// The number of bytes that a lane's access moves.
fn access_bytes(inst: &sass::Inst) -> u64 {
    match (inst.form().name, inst.text(Field::Size)) {
        ("LDG.256" | "STG.256", _) => 32,
        ("LDGSTS", Some(".128")) => 16,
        ("LDGSTS", Some(".64")) => 8,
        ("LDGSTS", _) => 4,
        (_, Some(".128" | ".U.128")) => 16,
        (_, Some(".64")) => 8,
        (_, Some(".U8" | ".S8")) => 1,
        (_, Some(".U16" | ".S16")) => 2,
        _ => match inst.text(Field::Type) {
            Some(".64" | ".U64" | ".S64" | ".F64.RN") => 8,
            _ => 4,
        },
    }
}

/// Local memory is interleaved: words at the same address of all lanes of a warp are adjacent.
fn local(addresses: &[u64], w: usize, rank: usize) -> Vec<u64> {
    let stack = ((rank << 16 | w) as u64 + 1) << 40;
    addresses.iter().enumerate().map(|(i, address)| stack + address / 4 * LINE_BYTES + 4 * i as u64).collect()
}

/// The number of passes over shared memory. Accesses of 8 and 16 bytes per lane use half-warps and quarter-warps.
fn passes(addresses: &[u64], bytes: u64) -> u16 {
    let group = (BANKS * 4 / bytes.max(4)).max(1) as usize;
    addresses.chunks(group).map(|part| passes_of(part, bytes)).sum()
}

/// The largest number of different words in the same bank.
fn passes_of(addresses: &[u64], bytes: u64) -> u16 {
    let mut words: Vec<u64> =
        addresses.iter().flat_map(|&address| address / 4..(address + bytes.max(1)).div_ceil(4)).collect();
    words.sort_unstable();
    words.dedup();
    let mut banks = [0; BANKS as usize];
    words.iter().for_each(|word| banks[(word % BANKS) as usize] += 1);
    banks.into_iter().max().unwrap_or(1).max(1)
}

/// Atomics on the same word are serialized.
fn serial_passes(addresses: &[u64]) -> u16 {
    let same = |address: &u64| addresses.iter().filter(|other| *other == address).count() as u16;
    addresses.iter().map(same).max().unwrap_or(1).max(passes_of(addresses, 4))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_over_shared_memory() {
        let strided = |stride: u64| -> Vec<u64> { (0..32).map(|lane| 0x400 + lane * stride).collect() };
        assert_eq!(passes(&strided(4), 4), 1);
        assert_eq!(passes(&strided(0), 4), 1);
        assert_eq!(passes(&strided(8), 4), 2);
        assert_eq!(passes(&strided(128), 4), 32);
        assert_eq!(passes(&strided(132), 4), 1);
        assert_eq!(passes(&strided(8), 8), 2);
        assert_eq!(passes(&strided(16), 16), 4);
        assert_eq!(serial_passes(&strided(0)), 32);
    }

    #[test]
    fn arrivals_stay_while_other_threads_of_the_warp_poll() {
        let mut recorder = Recorder::default();
        recorder.begin(1, 1);
        let poll = |recorder: &mut Recorder| {
            recorder.issue((0, 0), 7, true);
            recorder.look(None, 7);
        };
        poll(&mut recorder);
        recorder.issue((0, 0), 8, true);
        poll(&mut recorder);
        recorder.issue((0, 0), 3, true);
        recorder.arrive(Meeting::Object(64), Arrival::AtOnce);
        poll(&mut recorder);
        let issued: Vec<u32> = recorder.trace.clusters[0][0][0].iter().map(|inst| inst.at).collect();
        assert_eq!(issued, [7, 3, 7]);
    }

    #[test]
    fn a_warp_that_arrives_in_parts_waits_after_the_last_one() {
        let mut recorder = Recorder::default();
        recorder.begin(1, 1);
        for _part in 0..2 {
            recorder.issue((0, 0), 5, true);
            recorder.meet_block(0, 1, true);
        }
        recorder.end_phase(Meeting::Block(0, 1));
        let [first, second] = recorder.trace.clusters[0][0][0][..] else { panic!("two instructions") };
        assert_eq!((first.count, second.count), (1, 2));
    }

    #[test]
    fn lines_have_the_sectors_that_were_touched() {
        let mut recorder = Recorder::default();
        recorder.begin(1, 1);
        recorder.issue((0, 0), 0, true);
        let addresses: Vec<u64> = (0..32).map(|lane| 0x1000 + 8 * lane).collect();
        recorder.lines(&addresses, 4);
        let lines: Vec<(u64, u8)> = recorder.trace.lines.iter().map(|l| (l.number, l.sectors)).collect();
        assert_eq!(lines, [(0x20, 15), (0x21, 15)]);
    }
}
