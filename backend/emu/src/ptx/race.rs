//! Warps that use the same shared memory with nothing between them that orders it.
//!
//! Time is cut at whatever may order accesses of different warps: barriers of the block, fences, atomics, waits for copies.
//! Between two cuts no warp may write what another one reads or writes. Writing what is there already is no race.
//! What this misses, and it does where only some warps are ordered, stays unfound; what it finds is wrong.

use super::{Block, Step};
use crate::launch::FaultKind;
use crate::memory::{SHARED_WINDOW, Space, space_of};
use ptx_backend::input::Instr;
use ptx_isa::Mod;

/// Who used a byte last, and between which cuts.
#[derive(Clone, Copy, Default)]
struct Use {
    cut: u32,
    warp: u32,
}

/// More than one warp.
const SEVERAL: u32 = u32::MAX;

#[derive(Clone, Copy, Default)]
struct Byte {
    written: Use,
    read: Use,
}

/// The uses of a block's shared memory.
#[derive(Default)]
pub(super) struct Races {
    bytes: Vec<Byte>,
    /// Counts from one, so that no byte has been used at first.
    cut: u32,
}

impl Races {
    /// Everything from here on comes after everything before.
    pub(super) fn cut(&mut self) {
        self.cut += 1;
    }

    /// The other warp with which an access competes.
    fn access(&mut self, warp: u32, start: usize, before: &[u8], after: Option<&[u8]>) -> Option<u32> {
        let end = start + before.len();
        if self.bytes.len() < end {
            self.bytes.resize(end, Byte::default());
        }
        let now = self.cut + 1;
        let other = |used: Use| (used.cut == now && used.warp != warp).then_some(used.warp);
        for (i, byte) in self.bytes[start..end].iter_mut().enumerate() {
            if after.is_some_and(|after| after[i] == before[i]) {
                continue;
            }
            if let Some(other) = other(byte.written).or(other(byte.read).filter(|_| after.is_some())) {
                return Some(other);
            }
            let used = Use { cut: now, warp };
            if after.is_some() {
                byte.written = used;
            } else if byte.read.cut == now && byte.read.warp != warp {
                byte.read.warp = SEVERAL;
            } else {
                byte.read = used;
            }
        }
        None
    }
}

impl Block<'_> {
    /// A fault if a weak access to shared memory competes with another warp's; `after` is what a store writes.
    pub(super) fn race(
        &mut self,
        w: usize,
        instr: &Instr,
        (space, address): (Space, u64),
        before: &[u8],
        after: Option<&[u8]>,
    ) -> Step<()> {
        let strong =
            [Mod::Volatile, Mod::Relaxed, Mod::Acquire, Mod::Release].iter().any(|&m| instr.opcode.has(m));
        if !self.launch.strict || self.warps.len() == 1 || strong {
            return Ok(());
        }
        let start = match space {
            Space::Shared => address,
            Space::Generic if space_of(address) == Space::Shared => address - SHARED_WINDOW,
            _ => return Ok(()),
        };
        match self.races.access(w as u32, start as usize, before, after) {
            None => Ok(()),
            Some(other) => {
                let does = if after.is_some() { "writes" } else { "reads" };
                let whom = if other == SEVERAL { "others use".into() } else { format!("warp {other} uses") };
                let text = format!("warp {w} {does} shared memory at {start:#x} that {whom}");
                Err(FaultKind::Race(text))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warps_compete_between_cuts() {
        let mut races = Races::default();
        assert_eq!(races.access(0, 4, &[0, 0], Some(&[1, 1])), None);
        assert_eq!(races.access(0, 4, &[1], None), None);
        assert_eq!(races.access(1, 5, &[1], None), Some(0));
        // The same value again.
        assert_eq!(races.access(1, 4, &[1], Some(&[1])), None);
        races.cut();
        assert_eq!(races.access(1, 5, &[1], None), None);
        assert_eq!(races.access(2, 5, &[1], None), None);
        assert_eq!(races.access(1, 5, &[1], Some(&[2])), Some(SEVERAL));
    }
}
