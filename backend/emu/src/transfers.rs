//! Asynchronous transfers of a cluster's threads: bulk copies and reductions, stores into other blocks, arrivals after
//! copies. When a transfer completes, it signals a barrier object, or counts for a group of the thread that began it.
//!
//! As for [copies](crate::copies), every transfer completes as late as the rules allow: when a thread waits for the
//! group, or tests a barrier object whose phase is not complete. Sources are read late too, so a program that reuses a
//! source too early is detected. One test completes one transfer.

use crate::launch::FaultKind;
use crate::memory::{Space, View};
use std::collections::BTreeMap;

/// A thread of a cluster: the rank of its block, its warp and its lane.
pub(crate) type Thread = (usize, usize, usize);

/// The source of a piece's bytes.
#[derive(Clone, Debug)]
pub(crate) enum From {
    Memory(Space, u64),
    Bytes(Vec<u8>),
}

/// Consecutive bytes in a transfer.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    pub(crate) from: From,
    pub(crate) to: (Space, u64),
    pub(crate) size: u32,
}

/// What a completed transfer signals. Barrier objects are given by their address in the cluster.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Done {
    /// A number of bytes.
    Bytes {
        barrier: u64,
        count: u32,
    },
    /// An arrival after the copies that a thread had begun before it.
    Arrival {
        barrier: u64,
        thread: Thread,
        copies: u32,
        counts_bytes: bool,
    },
    Group {
        thread: Thread,
        group: u32,
    },
}

/// `R` says how elements are combined with those in memory.
#[derive(Clone, Debug)]
pub(crate) struct Transfer<R> {
    pub(crate) pieces: Vec<Piece>,
    /// How elements are combined, and the size of an element in bytes.
    pub(crate) reduces: Option<(R, u32)>,
    pub(crate) done: Done,
}

impl<R: Copy> Transfer<R> {
    /// A transfer of a single piece.
    pub(crate) fn copy(from: From, to: (Space, u64), size: u32, done: Done) -> Transfer<R> {
        Transfer { pieces: vec![Piece { from, to, size }], reduces: None, done }
    }

    /// Copies only the bytes of each 16 whose bits are set in the mask.
    pub(crate) fn masked(mut self, mask: u16) -> Transfer<R> {
        let byte = |piece: &Piece, i: u32| Piece {
            from: match &piece.from {
                From::Memory(space, address) => From::Memory(*space, address + u64::from(i)),
                From::Bytes(bytes) => From::Bytes(vec![bytes[i as usize]]),
            },
            to: (piece.to.0, piece.to.1 + u64::from(i)),
            size: 1,
        };
        let bytes = |piece: &Piece| {
            let kept = (0..piece.size).filter(|i| mask >> (i % 16) & 1 == 1);
            kept.map(|i| byte(piece, i)).collect::<Vec<Piece>>()
        };
        self.pieces = self.pieces.iter().flat_map(bytes).collect();
        self
    }

    /// Reads the sources that have not been read yet.
    pub(crate) fn fetch(&mut self, view: &mut View<'_>) -> Result<(), FaultKind> {
        for piece in &mut self.pieces {
            if let From::Memory(space, address) = piece.from {
                piece.from = From::Bytes(view.read_bytes(space, address, piece.size)?.to_vec());
            }
        }
        Ok(())
    }

    /// Writes the bytes, or combines them with the old contents by `combine`.
    pub(crate) fn perform(
        mut self,
        view: &mut View<'_>,
        combine: impl Fn(R, u64, u64) -> Result<u64, FaultKind>,
    ) -> Result<(), FaultKind> {
        self.fetch(view)?;
        for piece in &self.pieces {
            let From::Bytes(bytes) = &piece.from else { continue };
            let (space, address) = piece.to;
            let place = view.bytes(space, address, piece.size)?;
            let Some((how, element)) = self.reduces else {
                place.copy_from_slice(bytes);
                continue;
            };
            let element = element as usize;
            for (old, new) in place.chunks_exact_mut(element).zip(bytes.chunks_exact(element)) {
                let result = combine(how, crate::memory::number(old), crate::memory::number(new))?;
                old.copy_from_slice(&result.to_le_bytes()[..element]);
            }
        }
        Ok(())
    }
}

/// The transfers of a cluster.
#[derive(Debug)]
pub(crate) struct Transfers<R> {
    under_way: Vec<Transfer<R>>,
    /// The number of groups that each thread has closed.
    closed: BTreeMap<Thread, u32>,
}

impl<R> Default for Transfers<R> {
    fn default() -> Self {
        Transfers { under_way: Vec::new(), closed: BTreeMap::new() }
    }
}

impl<R: Copy> Transfers<R> {
    pub(crate) fn begin(&mut self, transfer: Transfer<R>) {
        self.under_way.push(transfer);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.under_way.is_empty()
    }

    /// The open group of a thread.
    pub(crate) fn group(&self, thread: Thread) -> Done {
        Done::Group { thread, group: self.closed.get(&thread).copied().unwrap_or(0) }
    }

    pub(crate) fn close(&mut self, thread: Thread) {
        *self.closed.entry(thread).or_default() += 1;
    }

    /// Removes the oldest transfer that signals a barrier object among `barriers`.
    pub(crate) fn next(&mut self, barriers: std::ops::Range<u64>) -> Option<Transfer<R>> {
        let tells = |transfer: &Transfer<R>| match transfer.done {
            Done::Bytes { barrier, .. } | Done::Arrival { barrier, .. } => barriers.contains(&barrier),
            Done::Group { .. } => false,
        };
        let first = self.under_way.iter().position(tells)?;
        Some(self.under_way.remove(first))
    }

    /// The transfers in a thread's closed groups, except the last `but` groups.
    pub(crate) fn closed(&mut self, of: Thread, but: u32) -> impl Iterator<Item = &mut Transfer<R>> {
        let limit = self.limit(of, but);
        self.under_way.iter_mut().filter(move |transfer| limit.covers(transfer.done))
    }

    /// Removes the transfers that [`closed`](Transfers::closed) returns.
    pub(crate) fn finish(&mut self, of: Thread, but: u32) -> Vec<Transfer<R>> {
        let limit = self.limit(of, but);
        let (over, rest) =
            std::mem::take(&mut self.under_way).into_iter().partition(|transfer| limit.covers(transfer.done));
        self.under_way = rest;
        over
    }

    pub(crate) fn count(&self) -> usize {
        self.under_way.len()
    }

    /// What each transfer from number `first` on signals, and its size in bytes.
    pub(crate) fn since(&self, first: usize) -> Vec<(Done, u32)> {
        let new = self.under_way.get(first..).unwrap_or_default();
        new.iter().map(|t| (t.done, t.pieces.iter().map(|piece| piece.size).sum())).collect()
    }

    /// Removes all transfers, in the order in which they began.
    pub(crate) fn finish_all(&mut self) -> Vec<Transfer<R>> {
        std::mem::take(&mut self.under_way)
    }

    fn limit(&self, of: Thread, but: u32) -> Limit {
        Limit { of, below: self.closed.get(&of).copied().unwrap_or(0).saturating_sub(but) }
    }
}

/// The groups of a thread with numbers below a limit.
#[derive(Clone, Copy)]
struct Limit {
    of: Thread,
    below: u32,
}

impl Limit {
    fn covers(self, done: Done) -> bool {
        matches!(done, Done::Group { thread, group } if thread == self.of && group < self.below)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transfer(done: Done) -> Transfer<()> {
        Transfer::copy(From::Bytes(vec![1]), (Space::Global, 0), 1, done)
    }

    #[test]
    fn groups_and_barriers() {
        let mut transfers = Transfers::default();
        let thread = (0, 1, 2);
        transfers.begin(transfer(transfers.group(thread)));
        transfers.close(thread);
        transfers.begin(transfer(transfers.group(thread)));
        transfers.begin(transfer(Done::Bytes { barrier: 8, count: 1 }));
        transfers.close(thread);
        assert_eq!(transfers.closed(thread, 0).count(), 2);
        assert_eq!(transfers.finish(thread, 1).len(), 1);
        assert!(transfers.next(0..8).is_none());
        assert!(transfers.next(8..16).is_some());
        assert_eq!(transfers.finish((0, 1, 3), 0).len(), 0);
        assert_eq!(transfers.finish_all().len(), 1);
    }
}
