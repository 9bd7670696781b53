//! Memory: buffers of the device, shared memory of a block, stacks of threads, and generic addresses.
//!
//! Both executions use the same addresses, so that pointers in buffers compare equal. Memory is little-endian.

use crate::launch::FaultKind;

/// The generic addresses of the windows of shared and local memory. Their low words are zero.
pub const SHARED_WINDOW: u64 = 0x7000_0000_0000;
pub const LOCAL_WINDOW: u64 = 0x7001_0000_0000;
/// The generic address of the grid's parameters. Machine code uses offsets from the start of their constant bank.
pub const PARAM_WINDOW: u64 = 0x7002_0000_0000;
/// The size of a window in bytes.
const WINDOW_BYTES: u64 = 1 << 32;
/// The position of the block's rank in a shared memory address.
pub const RANK_SHIFT: u32 = 24;
/// The address of the first buffer, and the distance between buffers, which makes accesses beyond the end of a buffer
/// detectable.
const FIRST_BUFFER: u64 = 0x10_0000_0000;
const BUFFER_UNIT: u64 = 0x1_0000;
/// The contents of memory that was never written.
pub const UNWRITTEN: u8 = 0xa5;

/// A kind of memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Space {
    Generic,
    Global,
    /// The shared memory of the thread's own block.
    Shared,
    /// The shared memory of all blocks of the cluster.
    Cluster,
    Local,
}

impl Space {
    /// The state space of an address, and the address in it.
    pub(crate) fn resolve(self, address: u64) -> (Space, u64) {
        let within = |window: u64| (window..window + WINDOW_BYTES).contains(&address);
        match self {
            Space::Generic if within(SHARED_WINDOW) => (Space::Cluster, address - SHARED_WINDOW),
            Space::Generic if within(LOCAL_WINDOW) => (Space::Local, address - LOCAL_WINDOW),
            Space::Generic | Space::Global => (Space::Global, address),
            window => (window, in_window(address)),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Space::Shared | Space::Cluster => "shared",
            Space::Local => "local",
            _ => "global",
        }
    }
}

/// The buffers of the device.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Global {
    /// In ascending order of addresses.
    buffers: Vec<Buffer>,
    next: u64,
    /// The parameters of the running grid.
    params: Vec<u8>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Buffer {
    address: u64,
    bytes: Vec<u8>,
    /// Which bytes have been written. Empty if all have been.
    written: Vec<bool>,
    /// The buffer was allocated from the device's heap.
    heap: bool,
}

/// The size of the device's heap in bytes.
const HEAP_BYTES: u64 = 8 << 20;

impl Global {
    /// Adds a buffer and returns its address, which is at least 64 KiB away from other buffers.
    pub fn add(&mut self, bytes: Vec<u8>) -> u64 {
        let address = self.next.max(FIRST_BUFFER);
        self.next = (address + bytes.len() as u64 + BUFFER_UNIT).next_multiple_of(BUFFER_UNIT);
        self.buffers.push(Buffer { address, bytes, written: Vec::new(), heap: false });
        address
    }

    pub(crate) fn set_params(&mut self, bytes: &[u8]) {
        self.params = bytes.to_vec();
    }

    /// Adds a buffer whose bytes count as not written.
    pub fn add_unwritten(&mut self, bytes: usize) -> u64 {
        let address = self.add(vec![UNWRITTEN; bytes]);
        if let Some(buffer) = self.buffers.last_mut() {
            buffer.written = vec![false; bytes];
        }
        address
    }

    /// Allocates memory from the device's heap. Returns zero if too little is left.
    pub(crate) fn allocate(&mut self, bytes: u64) -> u64 {
        let used: usize = self.buffers.iter().filter(|b| b.heap).map(|b| b.bytes.len()).sum();
        if (used as u64).saturating_add(bytes) > HEAP_BYTES {
            return 0;
        }
        let address = self.add_unwritten(bytes as usize);
        if let Some(buffer) = self.buffers.last_mut() {
            buffer.heap = true;
        }
        address
    }

    /// Frees memory of the heap. Returns whether it was allocated from the heap.
    pub(crate) fn free(&mut self, address: u64) -> bool {
        let before = self.buffers.len();
        self.buffers.retain(|buffer| buffer.address != address || !buffer.heap);
        self.buffers.len() < before
    }

    /// A buffer's bytes, by its address.
    pub fn buffer(&self, address: u64) -> Option<&[u8]> {
        self.buffers.iter().find(|b| b.address == address).map(|b| &b.bytes[..])
    }

    pub fn buffer_mut(&mut self, address: u64) -> Option<&mut Vec<u8>> {
        self.buffers.iter_mut().find(|b| b.address == address).map(|b| &mut b.bytes)
    }

    pub(crate) fn word(&mut self, address: u64) -> Option<u64> {
        self.find(address, 8).map(|(bytes, _)| number(bytes))
    }

    /// Writes a word. Returns its old value.
    pub(crate) fn set_word(&mut self, address: u64, value: u64) -> Option<u64> {
        let old = self.word(address)?;
        self.find(address, 8)?.0.copy_from_slice(&value.to_le_bytes());
        Some(old)
    }

    /// The bytes at an address, and the flags that say whether they have been written.
    fn find(&mut self, address: u64, size: usize) -> Option<(&mut [u8], &mut [bool])> {
        if let Some(start) = address.checked_sub(PARAM_WINDOW) {
            let start = usize::try_from(start).ok()?;
            return Some((self.params.get_mut(start..start.checked_add(size)?)?, Default::default()));
        }
        let i = self.buffers.partition_point(|b| b.address <= address).checked_sub(1)?;
        let buffer = &mut self.buffers[i];
        let start = usize::try_from(address - buffer.address).ok()?;
        let bytes = buffer.bytes.get_mut(start..start.checked_add(size)?)?;
        Some((bytes, buffer.written.get_mut(start..start + size).unwrap_or_default()))
    }
}

/// Bytes, the flags that say whether they have been written, and the name of their state space.
type Found<'a> = (&'a mut [u8], &'a mut [bool], &'static str);

/// All memory that a thread can address.
pub struct View<'a> {
    pub global: &'a mut Global,
    /// The shared memory of every block of the cluster, by rank.
    pub shared: &'a mut [Vec<u8>],
    /// Which bytes of `shared` have been written. Empty if all have been.
    pub shared_written: &'a mut [Vec<bool>],
    /// The reserved words of every block's shared memory, and their address. Empty if they are not used.
    pub reserved: &'a mut [Vec<u8>],
    pub reserved_base: u64,
    /// The rank of the thread's own block.
    pub rank: usize,
    /// The offset between positions in `shared` and addresses.
    pub shared_base: u64,
    /// The thread's memory: `local_low` bytes from address 0 on, then its stack, which ends at the address `local_end`.
    pub local: &'a mut [u8],
    pub local_written: &'a mut [bool],
    pub local_end: u64,
    pub local_low: u64,
}

impl<'a> View<'a> {
    /// A view of global memory alone.
    #[cfg(test)]
    pub(crate) fn of_global(global: &'a mut Global) -> View<'a> {
        View {
            global,
            shared: &mut [],
            shared_written: &mut [],
            reserved: &mut [],
            reserved_base: 0,
            rank: 0,
            shared_base: 0,
            local: &mut [],
            local_written: &mut [],
            local_end: 0,
            local_low: 0,
        }
    }
}

impl View<'_> {
    /// The bytes at an address, for reading or writing. From now on, they count as written.
    pub fn slice(&mut self, space: Space, address: u64, size: u32) -> Result<&mut [u8], FaultKind> {
        self.is_aligned(space, address, size)?;
        self.bytes(space, address, size)
    }

    /// As [`slice`](View::slice), without the requirement that the address is a multiple of the size.
    pub fn bytes(&mut self, space: Space, address: u64, size: u32) -> Result<&mut [u8], FaultKind> {
        let (bytes, written, _) = self.find(space, address, size)?;
        written.fill(true);
        Ok(bytes)
    }

    /// The bytes at an address. They must have been written.
    pub fn read(&mut self, space: Space, address: u64, size: u32) -> Result<&[u8], FaultKind> {
        self.is_aligned(space, address, size)?;
        self.read_bytes(space, address, size)
    }

    /// As [`read`](View::read), without the requirement that the address is a multiple of the size.
    pub fn read_bytes(&mut self, space: Space, address: u64, size: u32) -> Result<&[u8], FaultKind> {
        let (bytes, written, space) = self.find(space, address, size)?;
        if written.contains(&false) {
            return Err(FaultKind::Uninitialised { space, address, size });
        }
        Ok(bytes)
    }

    /// Returns a fault if these bytes do not exist.
    pub fn reaches(&mut self, space: Space, address: u64, size: u32) -> Result<(), FaultKind> {
        self.find(space, address, size).map(|_| ())
    }

    /// Returns a fault if an address is not a multiple of the size.
    pub fn is_aligned(&self, space: Space, address: u64, size: u32) -> Result<(), FaultKind> {
        if address.is_multiple_of(size.into()) {
            return Ok(());
        }
        let space = space.resolve(address).0.name();
        Err(FaultKind::Misaligned { space, address, size })
    }

    /// Bytes, their flags, and the name of their space.
    fn find(&mut self, space: Space, address: u64, size: u32) -> Result<Found<'_>, FaultKind> {
        let (space, address) = space.resolve(address);
        let bytes = size as usize;
        let within = |memory: &[u8], start: Option<u64>| {
            let start = usize::try_from(start?).ok()?;
            (start.checked_add(bytes)? <= memory.len()).then_some(start..start + bytes)
        };
        let found = match space {
            Space::Shared | Space::Cluster => {
                let rank = (address >> RANK_SHIFT) as usize;
                let start = (address & ((1 << RANK_SHIFT) - 1)).checked_sub(self.shared_base);
                let reaches = rank == self.rank || space == Space::Cluster;
                let offset = address & ((1 << RANK_SHIFT) - 1);
                if let Some(words) = self.reserved.get_mut(rank).filter(|_| reaches)
                    && let Some(range) = within(words, offset.checked_sub(self.reserved_base))
                {
                    return Ok((&mut words[range], Default::default(), "shared"));
                }
                let shared = self.shared.get_mut(rank).filter(|_| reaches);
                let written = self.shared_written.get_mut(rank).map(|written| &mut written[..]);
                shared.and_then(|shared| {
                    let range = within(shared, start)?;
                    let written = written.and_then(|written| written.get_mut(range.clone()));
                    Some((&mut shared[range], written.unwrap_or_default()))
                })
            }
            Space::Local => {
                let low = self.local_low;
                let stack = (self.local_end + low).wrapping_sub(self.local.len() as u64);
                let start = match address {
                    _ if address.saturating_add(u64::from(size)) <= low => Some(address),
                    _ => address.checked_sub(stack).map(|offset| offset + low),
                };
                within(self.local, start).map(|range| {
                    let written = self.local_written.get_mut(range.clone()).unwrap_or_default();
                    (&mut self.local[range], written)
                })
            }
            _ => self.global.find(address, bytes),
        };
        let (bytes, written) = found.ok_or(FaultKind::OutOfBounds { space: space.name(), address, size })?;
        Ok((bytes, written, space.name()))
    }

    /// The cluster address of an address in shared memory.
    pub fn in_cluster(&self, space: Space, address: u64) -> Result<u64, FaultKind> {
        match space.resolve(address) {
            (Space::Shared | Space::Cluster, address) => Ok(address),
            _ => Err(FaultKind::Malformed("a barrier object outside shared memory".into())),
        }
    }

    /// Reads a little-endian number of 1, 2, 4 or 8 bytes.
    pub fn load(&mut self, space: Space, address: u64, size: u32) -> Result<u64, FaultKind> {
        Ok(number(self.read(space, address, size)?))
    }

    pub fn store(&mut self, space: Space, address: u64, size: u32, value: u64) -> Result<(), FaultKind> {
        let bytes = value.to_le_bytes();
        self.slice(space, address, size)?.copy_from_slice(&bytes[..size as usize]);
        Ok(())
    }
}

/// An address in a state space that is a window of generic addresses. It has 32 bits: sums wrap around, and wider
/// addresses are truncated (PTX ISA, "Operands", "Addresses as Operands").
pub(crate) fn in_window(address: u64) -> u64 {
    address & (WINDOW_BYTES - 1)
}

/// The space of a generic address.
pub fn space_of(address: u64) -> Space {
    match address {
        SHARED_WINDOW.. if address < SHARED_WINDOW + WINDOW_BYTES => Space::Shared,
        LOCAL_WINDOW.. if address < LOCAL_WINDOW + WINDOW_BYTES => Space::Local,
        _ => Space::Global,
    }
}

/// Reads a little-endian number of at most eight bytes.
pub fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accesses_are_checked() {
        let mut global = Global::default();
        let buffer = global.add(vec![1, 2, 3, 4]);
        global.add(vec![0; 8]);
        let (mut shared, mut local) = ([vec![0; 16], vec![0; 16]], vec![0; 8]);
        let mut view = View {
            global: &mut global,
            shared: &mut shared,
            shared_written: &mut [],
            reserved: &mut [],
            reserved_base: 0,
            rank: 0,
            shared_base: 0x400,
            local: &mut local,
            local_written: &mut [],
            local_end: 0x1000,
            local_low: 0,
        };
        assert_eq!(view.load(Space::Generic, buffer, 4), Ok(0x0403_0201));
        assert!(view.load(Space::Global, buffer + 4, 4).is_err());
        assert!(view.load(Space::Global, buffer + 1, 2).is_err());
        view.store(Space::Shared, 0x404, 4, 7).unwrap();
        assert_eq!(view.load(Space::Generic, SHARED_WINDOW + 0x404, 4), Ok(7));
        assert!(view.load(Space::Shared, 0x3fc, 4).is_err());
        assert!(view.store(Space::Shared, 0x100_0404, 4, 8).is_err());
        view.store(Space::Cluster, 0x100_0404, 4, 8).unwrap();
        assert_eq!(view.load(Space::Generic, SHARED_WINDOW + 0x404, 4), Ok(7));
        assert_eq!(view.load(Space::Generic, SHARED_WINDOW + 0x100_0404, 4), Ok(8));
        assert_eq!(view.load(Space::Shared, 0xffff_0000_0000_0404, 4), Ok(7));
        assert_eq!(view.load(Space::Shared, 0x1_0000_0404, 4), Ok(7));
        assert!(view.load(Space::Generic, SHARED_WINDOW + 0x1_0000_0404, 4).is_err());
        view.store(Space::Local, 0xff8, 8, 9).unwrap();
        assert_eq!(view.load(Space::Local, 0x1_0000_0ff8, 8), Ok(9));
        assert!(view.store(Space::Local, 0x1000, 4, 9).is_err());
    }

    #[test]
    fn what_was_not_written_is_not_read() {
        let mut global = Global::default();
        let buffer = global.add_unwritten(8);
        let mut view = View::of_global(&mut global);
        let unwritten = FaultKind::Uninitialised { space: "global", address: buffer, size: 8 };
        view.store(Space::Global, buffer, 4, 1).unwrap();
        assert_eq!(view.load(Space::Global, buffer, 8), Err(unwritten));
        assert_eq!(view.load(Space::Global, buffer, 4), Ok(1));
    }

    #[test]
    fn freed_memory_is_gone() {
        let mut global = Global::default();
        let buffer = global.allocate(8);
        assert!(global.free(buffer) && !global.free(buffer));
        assert_eq!(global.allocate(HEAP_BYTES + 1), 0);
    }
}
