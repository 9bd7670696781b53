//! Literals in codes of Huffman's.

use super::bits::Backward;
use super::fse::{States, Table};
use super::take;

/// The symbol and the length of the code that each window of bits begins with.
pub(super) struct Huffman {
    width: u8,
    codes: Vec<(u8, u8)>,
}

const MOST_BITS: u8 = 11;
/// The accuracy of weights.
const MOST_ACCURACY: u8 = 6;
const MOST_WEIGHTS: usize = 255;

impl Huffman {
    /// Reads a description and leaves what is behind it.
    pub(super) fn read(bytes: &mut &[u8]) -> Option<Huffman> {
        let header = usize::from(take(bytes, 1)?[0]);
        let weights = if header < 128 {
            packed_weights(take(bytes, header)?)?
        } else {
            let count = header - 127;
            let halves = take(bytes, count.div_ceil(2))?.iter().flat_map(|&byte| [byte >> 4, byte & 15]);
            halves.take(count).collect()
        };
        Huffman::new(weights)
    }

    /// The weight of a symbol is the number of bits by which its code is shorter than the width, and one; 0 where the
    /// symbol does not occur. The last weight is what makes the codes complete.
    fn new(mut weights: Vec<u8>) -> Option<Huffman> {
        let share = |weight: u8| if weight == 0 { 0 } else { 1u32 << (weight - 1) };
        if weights.iter().any(|&weight| weight > MOST_BITS) {
            return None;
        }
        let sum: u32 = weights.iter().map(|&weight| share(weight)).sum();
        let width = sum.checked_ilog2()? as u8 + 1;
        let left = (1 << width) - sum;
        if width > MOST_BITS || !left.is_power_of_two() {
            return None;
        }
        weights.push(left.ilog2() as u8 + 1);
        let mut codes = Vec::with_capacity(1 << width);
        for weight in 1..=width {
            for (symbol, _) in (0..=u8::MAX).zip(&weights).filter(|&(_, &of)| of == weight) {
                codes.resize(codes.len() + share(weight) as usize, (symbol, width + 1 - weight));
            }
        }
        (codes.len() == 1 << width).then_some(Huffman { width, codes })
    }

    /// Appends the symbols of a stream, which must be as many as are told.
    pub(super) fn unpack(&self, stream: &[u8], count: usize, out: &mut Vec<u8>) -> Option<()> {
        let mut bits = Backward::new(stream)?;
        for _ in 0..count {
            let (symbol, length) = self.codes[bits.peek(self.width) as usize];
            bits.skip(length)?;
            out.push(symbol);
        }
        bits.is_empty().then_some(())
    }
}

/// Two states take turns until the stream ends.
fn packed_weights(mut bytes: &[u8]) -> Option<Vec<u8>> {
    let table = Table::read(&mut bytes, MOST_ACCURACY)?;
    let mut bits = Backward::new(bytes)?;
    let mut states = [States::new(&table, &mut bits)?, States::new(&table, &mut bits)?];
    let mut weights = Vec::new();
    for turn in 0.. {
        weights.push(states[turn & 1].symbol());
        if states[turn & 1].step(&mut bits).is_none() {
            weights.push(states[turn & 1 ^ 1].symbol());
            break;
        }
        if weights.len() > MOST_WEIGHTS {
            return None;
        }
    }
    (weights.len() <= MOST_WEIGHTS).then_some(weights)
}
