//! Finds data races: accesses of different warps to the same memory without synchronization.
//!
//! Within a block, time is divided at every operation that may order accesses of different warps: barriers of the
//! block, fences, atomics, waits for copies. Between two such cuts, no warp may write memory that another warp reads or
//! writes. Blocks run one after the other. So an access of a later block is ordered after one of an earlier block only
//! if the earlier block has since published its writes (with a fence, an atomic or a release) and the later block has
//! executed one of these operations too. The blocks of a cluster count as one block. Writing the value that the memory
//! already holds is not a race. Some races are missed, because a cut may order only some warps, but every reported race
//! is real.

use super::{Block, Step};
use crate::launch::FaultKind;
use crate::memory::Space;
use ptx_backend::input::Instr;
use ptx_isa::Mod;
use std::collections::BTreeMap;

/// The last thread that accessed a byte, and the cut in which it did. All zero if there was none.
#[derive(Clone, Copy, Default)]
struct Use {
    cut: u32,
    who: Agent,
}

/// A warp of a block or of a cluster.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Agent {
    block: u32,
    warp: u32,
}

/// Stands for more than one warp.
const SEVERAL: u32 = u32::MAX;

#[derive(Clone, Copy, Default)]
struct Byte {
    written: Use,
    read: Use,
}

/// The size of the units in which accesses are recorded. Buffers and the shared memory of blocks start at multiples of
/// it.
const UNIT: u64 = 0x1_0000;

/// The accesses to memory in a launch.
pub(super) struct Races {
    /// By unit.
    shared: BTreeMap<u64, Vec<Byte>>,
    global: BTreeMap<u64, Vec<Byte>>,
    /// Counts from one, so that at first no byte counts as accessed.
    cut: u32,
    block: u32,
    /// For each block, the cut at which it last published its writes.
    published: Vec<u32>,
}

impl Races {
    pub(super) fn new() -> Races {
        Races { shared: BTreeMap::new(), global: BTreeMap::new(), cut: 0, block: 0, published: Vec::new() }
    }

    /// Begins the next block.
    pub(super) fn begin(&mut self) {
        self.cut();
        self.shared.clear();
        self.block = self.published.len() as u32;
        self.published.push(0);
    }

    /// Orders all later accesses of the block after all earlier ones.
    pub(super) fn cut(&mut self) {
        self.cut += 1;
    }

    /// As [`cut`](Self::cut), and makes the block's writes visible to other blocks.
    pub(super) fn publish(&mut self) {
        self.cut();
        if let Some(published) = self.published.last_mut() {
            *published = self.cut;
        }
    }

    /// The bytes of a state space from an address on.
    fn bytes(&mut self, space: Space, address: u64, count: usize) -> &mut [Byte] {
        let units = if space == Space::Shared { &mut self.shared } else { &mut self.global };
        let (bytes, start) = (units.entry(address / UNIT).or_default(), (address % UNIT) as usize);
        let end = start + count;
        if bytes.len() < end {
            bytes.resize(end, Byte::default());
        }
        &mut bytes[start..end]
    }

    /// The other warp that races with an access. `after` is the data that a store writes.
    fn access(
        &mut self,
        warp: u32,
        (space, address): (Space, u64),
        before: &[u8],
        after: Option<&[u8]>,
    ) -> Option<Agent> {
        let now = self.cut + 1;
        let me = Agent { block: self.block, warp };
        let looked = self.published.last().is_some_and(|&cut| cut > 0);
        let published = std::mem::take(&mut self.published);
        let competes = |used: Use| {
            let found = match used.cut {
                0 => false,
                _ if used.who.block != me.block => {
                    let since = published.get(used.who.block as usize).is_some_and(|&cut| cut >= used.cut);
                    !(since && looked)
                }
                cut => cut == now && used.who != me,
            };
            found.then_some(used.who)
        };
        let mut other = None;
        for (i, byte) in self.bytes(space, address, before.len()).iter_mut().enumerate() {
            if after.is_some_and(|after| after[i] == before[i]) {
                continue;
            }
            other = competes(byte.written).or_else(|| after.and_then(|_| competes(byte.read))).or(other);
            let used = Use { cut: now, who: me };
            if after.is_some() {
                byte.written = used;
            } else if byte.read.cut == now && byte.read.who != me && byte.read.who.block == me.block {
                byte.read.who.warp = SEVERAL;
            } else {
                byte.read = used;
            }
        }
        self.published = published;
        other
    }
}

impl Block<'_> {
    /// Returns a fault if a weak access races with an access of another warp. `after` is the data that a store writes.
    pub(super) fn race(
        &mut self,
        w: usize,
        instr: &Instr,
        (space, address): (Space, u64),
        before: &[u8],
        after: Option<&[u8]>,
    ) -> Step<()> {
        let has = |mods: &[Mod]| mods.iter().any(|&m| instr.opcode.has(m));
        if !self.launch.strict {
            return Ok(());
        }
        if has(&[Mod::Acquire, Mod::Release]) {
            self.races.publish();
        }
        let place = match space.resolve(address) {
            (Space::Cluster, address) => (Space::Shared, address),
            place => place,
        };
        let alone = self.warps.len() * self.shared.len() == 1
            && (place.0 == Space::Shared || self.launch.grid.iter().all(|&blocks| blocks == 1));
        let strong = has(&[Mod::Volatile, Mod::Relaxed, Mod::Acquire, Mod::Release, Mod::Mmio]);
        if alone || strong || place.0 == Space::Local {
            return Ok(());
        }
        let w = self.cluster.rank() * self.warps.len() + w;
        let Some(other) = self.races.access(w as u32, place, before, after) else { return Ok(()) };
        let does = if after.is_some() { "writes" } else { "reads" };
        let block = self.races.block;
        let elsewhere =
            if other.block == block { String::new() } else { format!(" of block {}", other.block) };
        let whom = match other.warp {
            SEVERAL => format!("other warps{elsewhere} use"),
            warp => format!("warp {warp}{elsewhere} uses"),
        };
        let memory = if place.0 == Space::Shared { "shared" } else { "global" };
        let text = format!("warp {w} of block {block} {does} {memory} memory at {:#x} that {whom}", place.1);
        Err(FaultKind::Race(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHARED: (Space, u64) = (Space::Shared, 4);
    const GLOBAL: (Space, u64) = (Space::Global, 0x10_0000);

    fn warp(block: u32, warp: u32) -> Option<Agent> {
        Some(Agent { block, warp })
    }

    #[test]
    fn warps_compete_between_cuts() {
        let mut races = Races::new();
        races.begin();
        assert_eq!(races.access(0, SHARED, &[0, 0], Some(&[1, 1])), None);
        assert_eq!(races.access(0, SHARED, &[1], None), None);
        assert_eq!(races.access(1, (Space::Shared, 5), &[1], None), warp(0, 0));
        // A store of the same value.
        assert_eq!(races.access(1, SHARED, &[1], Some(&[1])), None);
        races.cut();
        assert_eq!(races.access(1, SHARED, &[1], None), None);
        assert_eq!(races.access(2, SHARED, &[1], None), None);
        assert_eq!(races.access(1, SHARED, &[1], Some(&[2])), warp(0, SEVERAL));
    }

    #[test]
    fn blocks_compete_unless_they_publish_and_look() {
        let mut races = Races::new();
        races.begin();
        races.access(0, GLOBAL, &[0], Some(&[1]));
        races.cut();
        races.begin();
        assert_eq!(races.access(0, GLOBAL, &[1], None), warp(0, 0));
        let mut races = Races::new();
        races.begin();
        races.access(0, GLOBAL, &[0], Some(&[1]));
        races.publish();
        races.begin();
        assert_eq!(races.access(0, GLOBAL, &[1], None), warp(0, 0));
        races.publish();
        assert_eq!(races.access(0, GLOBAL, &[1], None), None);
    }
}
