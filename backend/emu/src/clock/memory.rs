//! The path of memory instructions. Each partition has a queue and an address unit. The multiprocessor accepts one
//! request at a time, which goes to shared memory or the first-level cache, and after a miss to the second-level cache
//! and memory. Weak stores put their data in the first-level cache and also go to the second-level cache: NVIDIA's
//! paper on Volta and its tuning guide for Turing say that the first-level cache holds stores too and writes through.

use super::cost::{AccessKind, MemoryInstruction};
use crate::trace::Line;
use sass::Sm;
use sass::rate::{Figure, figure};
use std::collections::{BTreeMap, HashMap, HashSet};

/// The sizes of a line of the first-level cache and of a sector, in bytes.
const LINE_BYTES: u64 = 128;
const SECTOR_BYTES: u64 = 32;
/// The number of fractions of a cycle in which bandwidth is counted.
const PARTS: u64 = 256;

/// The cycles at which the steps of a memory instruction complete.
#[derive(Clone, Copy, Debug)]
pub(super) struct Done {
    /// The instruction has left the queue, and its sources have been read.
    pub(super) sources: u64,
    pub(super) result: u64,
}

/// The destination of an access.
pub(super) enum Destination<'a> {
    /// Shared memory, in this many passes.
    Shared(u64),
    Lines(&'a [Line]),
    /// No memory, for example an exchange between lanes.
    Nowhere,
}

pub(super) struct Memory {
    sm: Sm,
    /// The cycle from which each partition's address unit is free.
    address_free: [u64; 4],
    request_free: u64,
    /// The cycle from which the data path of shared memory and the first-level cache is free.
    data_free: u64,
    l1: Cache,
    /// In fractions of a cycle.
    l2_free: u64,
    dram_free: u64,
    /// The sectors accessed so far, if the second-level cache starts cold.
    touched: Option<HashSet<(u64, u8)>>,
}

impl Memory {
    /// The memory of a multiprocessor. `shared` is the total size of its resident blocks' shared memory in bytes.
    pub(super) fn new(sm: Sm, shared: u64, cold: bool) -> Memory {
        let unified = u64::from(figure(sm, Figure::L1Kilobytes)) * 1024;
        let lines = unified.saturating_sub(shared).max(16 * 1024) / LINE_BYTES;
        Memory {
            sm,
            address_free: [0; 4],
            request_free: 0,
            data_free: 0,
            l1: Cache { capacity: lines as usize, ..Cache::default() },
            l2_free: 0,
            dram_free: 0,
            touched: cold.then(HashSet::new),
        }
    }

    fn of(&self, name: Figure) -> u64 {
        figure(self.sm, name).into()
    }

    /// Processes a memory instruction that a partition issues now.
    pub(super) fn access(
        &mut self,
        partition: usize,
        now: u64,
        access: MemoryInstruction,
        place: &Destination<'_>,
    ) -> Done {
        let words = u64::from(access.words);
        let start = now.max(self.address_free[partition]);
        let address = self
            .of(Figure::Address)
            .max(self.of(Figure::AddressRegister) * u64::from(access.address_registers));
        // Passes that the width of the access does not explain are bank conflicts. They delay the next access of the
        // partition.
        let conflicts = match *place {
            Destination::Shared(passes) => passes.saturating_sub(words),
            _ => 0,
        };
        self.address_free[partition] = start + address.max(1) + self.of(Figure::Conflict) * conflicts;
        let grant = start.max(self.request_free);
        self.request_free = grant + self.of(Figure::Request);
        let passed = self.pass(grant, words, place);
        let release = match access.kind {
            AccessKind::Store => self.of(Figure::StoreRelease) + self.of(Figure::ReleaseWord) * (words - 1),
            AccessKind::Copy => self.of(Figure::CopyRelease),
            _ => self.of(Figure::LoadRelease),
        };
        let waited = passed - grant;
        let shared = self.of(Figure::Shared) + self.of(Figure::Conflict) * conflicts;
        let result = match (access.kind, place) {
            (AccessKind::Exchange(cycles), _) => grant + u64::from(cycles),
            (_, Destination::Nowhere) => grant + self.of(Figure::L1),
            (_, Destination::Shared(_)) => grant + waited.min(words) + shared,
            (AccessKind::Store, Destination::Lines(lines)) => {
                if !access.strong {
                    lines.iter().for_each(|line| _ = self.l1.take(line));
                }
                let bytes = lines.iter().map(|line| sectors(line.sectors)).sum::<u64>() * SECTOR_BYTES;
                self.beyond(grant, bytes, self.of(Figure::L2Bytes))
            }
            (kind, Destination::Lines(lines)) => {
                let by_l1 = kind != AccessKind::Atomic && !access.strong;
                // Wide loads complete a little later: by 2 cycles for two words, by 6 for four.
                let wide = 2 * (words - 1).min(3);
                waited + wide + self.load(grant, lines, by_l1)
            }
        };
        Done { sources: grant + release, result }
    }

    /// Invalidates the first-level cache for later loads.
    pub(super) fn invalidate(&mut self) {
        self.l1 = Cache { capacity: self.l1.capacity, ..Cache::default() };
    }

    /// The cycle at which data of shared memory or the first-level cache has been transferred.
    fn pass(&mut self, grant: u64, words: u64, place: &Destination<'_>) -> u64 {
        let cycles = match *place {
            Destination::Nowhere => return grant,
            Destination::Shared(passes) => passes * LINE_BYTES / self.of(Figure::SharedBytes),
            Destination::Lines(lines) => {
                let bytes = words.min(lines.len() as u64) * LINE_BYTES;
                (lines.len() as u64).max(bytes / self.of(Figure::L1Bytes).max(1))
            }
        };
        let begins = grant.max(self.data_free);
        self.data_free = begins + cycles;
        begins
    }

    /// The cycle at which the last byte of a load arrives.
    fn load(&mut self, grant: u64, lines: &[Line], by_l1: bool) -> u64 {
        let (mut missing, mut untouched) = (0, 0);
        for line in lines {
            let absent = if by_l1 { self.l1.take(line) } else { line.sectors };
            missing += sectors(absent);
            for sector in (0..4).filter(|sector| absent >> sector & 1 == 1) {
                let first =
                    self.touched.as_mut().is_some_and(|touched| touched.insert((line.number, sector)));
                untouched += u64::from(first);
            }
        }
        if missing == 0 {
            return grant + self.of(Figure::L1);
        }
        let l2 = self.beyond(grant, missing * SECTOR_BYTES, self.of(Figure::L2Bytes)) + self.of(Figure::L2);
        if untouched == 0 {
            return l2;
        }
        let bytes = untouched * SECTOR_BYTES;
        let begins = (grant * PARTS).max(self.dram_free);
        self.dram_free = begins + bytes * PARTS / self.of(Figure::DramBytes).max(1);
        l2.max(begins / PARTS + self.of(Figure::Dram))
    }

    /// The cycle at which the transfer of bytes to or from the second-level cache begins.
    fn beyond(&mut self, now: u64, bytes: u64, bandwidth: u64) -> u64 {
        let begins = (now * PARTS).max(self.l2_free);
        self.l2_free = begins + bytes * PARTS / bandwidth.max(1);
        begins / PARTS
    }

    /// The cycle at which a bulk copy that begins now is complete.
    pub(super) fn transfer(&mut self, now: u64, bytes: u64) -> u64 {
        let bandwidth = self.of(Figure::L2Bytes);
        let begins = self.beyond(now, bytes, bandwidth);
        begins + self.of(Figure::Transfer) + bytes / bandwidth.max(1)
    }
}

fn sectors(mask: u8) -> u64 {
    mask.count_ones().into()
}

/// The first-level cache: its lines in order of age, each with the sectors that are present.
#[derive(Default)]
struct Cache {
    capacity: usize,
    lines: HashMap<u64, (u8, u64)>,
    by_age: BTreeMap<u64, u64>,
    time: u64,
}

impl Cache {
    /// Accesses a line and adds its sectors. Returns the sectors that missed.
    fn take(&mut self, line: &Line) -> u8 {
        self.time += 1;
        let (present, used) = self.lines.get(&line.number).copied().unwrap_or((0, 0));
        self.by_age.remove(&used);
        self.by_age.insert(self.time, line.number);
        self.lines.insert(line.number, (present | line.sectors, self.time));
        if self.lines.len() > self.capacity
            && let Some((_, oldest)) = self.by_age.pop_first()
        {
            self.lines.remove(&oldest);
        }
        line.sectors & !present
    }
}
