//! Asynchronous copies to shared memory.
//!
//! The emulator completes each copy as late as the rules allow: when a thread waits for its group, or exits. A program
//! that reads the data earlier finds the old content.

/// A copy in flight.
#[derive(Clone, Debug)]
struct Copy {
    lane: usize,
    group: u32,
    number: u32,
    to: u64,
    bytes: Vec<u8>,
}

/// The copies of the threads of a warp.
#[derive(Clone, Debug, Default)]
pub(crate) struct Copies {
    under_way: Vec<Copy>,
    /// The number of groups that each thread has closed.
    closed: [u32; crate::WARP],
    /// The number of copies that the warp has begun.
    begun: u32,
}

impl Copies {
    pub(crate) fn begin(&mut self, lane: usize, to: u64, bytes: Vec<u8>) {
        self.under_way.push(Copy { lane, group: self.closed[lane], number: self.begun, to, bytes });
        self.begun += 1;
    }

    /// The number of copies that the warp has begun so far.
    pub(crate) fn begun(&self) -> u32 {
        self.begun
    }

    /// Removes and returns the copies of a thread that are among the first `first` copies of its warp.
    pub(crate) fn finish_first(&mut self, lane: usize, first: u32) -> Vec<(u64, Vec<u8>)> {
        self.take(|copy| copy.lane == lane && copy.number < first)
    }

    /// Closes the current group of a thread's copies.
    pub(crate) fn close(&mut self, lane: usize) {
        self.closed[lane] += 1;
    }

    /// Removes and returns the copies of a thread in all closed groups except the last `but`, in order.
    pub(crate) fn finish(&mut self, lane: usize, but: u32) -> Vec<(u64, Vec<u8>)> {
        let limit = self.closed[lane].saturating_sub(but);
        self.take(|copy| copy.lane == lane && copy.group < limit)
    }

    /// Removes and returns all copies of a thread.
    pub(crate) fn finish_all(&mut self, lane: usize) -> Vec<(u64, Vec<u8>)> {
        self.take(|copy| copy.lane == lane)
    }

    fn take(&mut self, which: impl Fn(&Copy) -> bool) -> Vec<(u64, Vec<u8>)> {
        let (over, rest) = std::mem::take(&mut self.under_way).into_iter().partition(which);
        self.under_way = rest;
        over.into_iter().map(|copy| (copy.to, copy.bytes)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_end_in_order() {
        let mut copies = Copies::default();
        copies.begin(0, 1, vec![1]);
        copies.close(0);
        copies.begin(0, 2, vec![2]);
        copies.begin(1, 3, vec![3]);
        copies.close(0);
        assert_eq!(copies.finish(0, 1), [(1, vec![1])]);
        assert_eq!(copies.finish(0, 0), [(2, vec![2])]);
        assert_eq!(copies.finish(1, 0), []);
        assert_eq!(copies.finish_all(1), [(3, vec![3])]);
    }
}
