//! Streams of bits, from their end to their beginning and the other way.

/// A stream that is read from its last bit, which a one precedes that is none of it.
pub(super) struct Backward<'a> {
    bytes: &'a [u8],
    /// Bits that are left.
    left: usize,
}

impl<'a> Backward<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Option<Backward<'a>> {
        let padding = bytes.last().filter(|&&last| last != 0)?.leading_zeros() as usize + 1;
        Some(Backward { bytes, left: 8 * bytes.len() - padding })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.left == 0
    }

    /// The next bits, of which there are 32 at most.
    pub(super) fn read(&mut self, count: u8) -> Option<u64> {
        let left = self.left.checked_sub(usize::from(count))?;
        self.left = left;
        Some(window(self.bytes, left) & ((1 << count) - 1))
    }

    /// The next bits and zeros in the place of those that lack; they stay.
    pub(super) fn peek(&self, count: u8) -> u64 {
        let count = usize::from(count);
        match self.left.checked_sub(count) {
            Some(left) => window(self.bytes, left) & ((1 << count) - 1),
            None => (window(self.bytes, 0) & ((1 << self.left) - 1)) << (count - self.left),
        }
    }

    pub(super) fn skip(&mut self, count: u8) -> Option<()> {
        self.left = self.left.checked_sub(usize::from(count))?;
        Some(())
    }
}

/// A stream that is read from its first bit, the lowest of its first byte.
pub(super) struct Forward<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Forward<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Forward<'a> {
        Forward { bytes, at: 0 }
    }

    /// The next bits; behind the end are zeros.
    pub(super) fn peek(&self, count: u8) -> u64 {
        window(self.bytes, self.at) & ((1 << count) - 1)
    }

    pub(super) fn skip(&mut self, count: u8) {
        self.at += usize::from(count);
    }

    /// The bytes behind those that were read from.
    pub(super) fn rest(&self) -> Option<&'a [u8]> {
        self.bytes.get(self.at.div_ceil(8)..)
    }
}

/// At least 57 bits from a bit on.
fn window(bytes: &[u8], bit: usize) -> u64 {
    let rest = bytes.get(bit / 8..).unwrap_or_default();
    let bytes = match rest.first_chunk::<8>() {
        Some(bytes) => *bytes,
        None => std::array::from_fn(|at| rest.get(at).copied().unwrap_or_default()),
    };
    u64::from_le_bytes(bytes) >> (bit % 8)
}
