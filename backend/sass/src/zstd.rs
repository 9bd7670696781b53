//! Unpacks frames of Zstandard (RFC 8878), without dictionaries and without a look at checksums.

mod bits;
mod fse;
mod huffman;

use bits::Backward;
use fse::{States, Table};
use huffman::Huffman;

const MAGIC: u32 = 0xfd2f_b528;
/// Frames that hold no data have magic numbers from this one on.
const SKIPPED_MAGIC: u32 = 0x184d_2a50;
const BLOCK_LIMIT: usize = 128 << 10;

/// The unpacked bytes, of which there are `size`; `None` where the frames are damaged.
pub(crate) fn unpack(mut bytes: &[u8], size: usize) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    while !bytes.is_empty() {
        match number(&mut bytes, 4)? as u32 {
            MAGIC => frame(&mut bytes, &mut out, size)?,
            magic if magic & !0xf == SKIPPED_MAGIC => {
                let skipped = number(&mut bytes, 4)? as usize;
                take(&mut bytes, skipped)?;
            }
            _ => return None,
        }
    }
    (out.len() == size).then_some(out)
}

fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(count)?;
    *bytes = rest;
    Some(taken)
}

/// A little-endian number.
fn number(bytes: &mut &[u8], count: usize) -> Option<u64> {
    Some(take(bytes, count)?.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte)))
}

/// What later blocks of a frame take from earlier ones.
struct Frame {
    /// Where the frame begins in the output: copies do not reach before it.
    start: usize,
    huffman: Option<Huffman>,
    tables: [Option<Table>; 3],
    /// The last offsets of copies.
    offsets: [usize; 3],
}

fn frame(bytes: &mut &[u8], out: &mut Vec<u8>, limit: usize) -> Option<()> {
    let descriptor = number(bytes, 1)? as usize;
    let single = descriptor >> 5 & 1 != 0;
    let has_checksum = descriptor >> 2 & 1 != 0;
    let window = usize::from(!single);
    let dictionary = [0, 1, 2, 4][descriptor & 3];
    let content = [usize::from(single), 2, 4, 8][descriptor >> 6];
    take(bytes, window + dictionary + content)?;
    let mut frame =
        Frame { start: out.len(), huffman: None, tables: [const { None }; 3], offsets: [1, 4, 8] };
    loop {
        let header = number(bytes, 3)? as usize;
        let size = header >> 3;
        let room = limit.checked_sub(out.len())?;
        match header >> 1 & 3 {
            0 if size <= room => out.extend_from_slice(take(bytes, size)?),
            1 if size <= room.min(BLOCK_LIMIT) => {
                let byte = number(bytes, 1)? as u8;
                out.resize(out.len() + size, byte);
            }
            2 => frame.block(take(bytes, size)?, out, out.len() + room.min(BLOCK_LIMIT))?,
            _ => return None,
        }
        if header & 1 != 0 {
            break;
        }
    }
    take(bytes, if has_checksum { 4 } else { 0 })?;
    Some(())
}

/// The least length of each code, and the bits that follow and are added. Codes go on where others end.
const fn lengths<const N: usize>(least: u32, plain: usize, following: &[u8]) -> [(u32, u8); N] {
    let mut lengths = [(least, 0); N];
    let mut code = 1;
    while code < N {
        let (base, bits) = lengths[code - 1];
        let more = if code < plain { 0 } else { following[code - plain] };
        lengths[code] = (base + (1 << bits), more);
        code += 1;
    }
    lengths
}

const LITERAL_LENGTHS: [(u32, u8); 36] =
    lengths(0, 16, &[1, 1, 1, 1, 2, 2, 3, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]);
const COPY_LENGTHS: [(u32, u8); 53] =
    lengths(3, 32, &[1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]);
/// The highest code of an offset that this takes; it stands for more than any window.
const MOST_OFFSET_CODE: u8 = 31;

/// The tables of literal lengths, offsets and copy lengths: those that a block need not describe, as an accuracy and
/// shares of symbols, and the highest accuracy of others.
const DEFAULTS: [(u8, &[i16], u8); 3] = [
    (
        6,
        &[
            4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 2, 1, 1, 1, 1, 1,
            -1, -1, -1, -1,
        ],
        9,
    ),
    (5, &[1, 1, 1, 1, 1, 1, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1], 8),
    (
        6,
        &[
            1, 4, 3, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
            1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1,
        ],
        9,
    ),
];

impl Frame {
    /// Unpacks a block; the output may get as long as `limit`.
    fn block(&mut self, mut block: &[u8], out: &mut Vec<u8>, limit: usize) -> Option<()> {
        let literals = self.literals(&mut block)?;
        let mut literals = literals.as_slice();
        let count = match number(&mut block, 1)? as usize {
            few @ 0..128 => few,
            high @ 128..255 => (high - 128) << 8 | number(&mut block, 1)? as usize,
            _ => 0x7f00 + number(&mut block, 2)? as usize,
        };
        if count > 0 {
            let modes = number(&mut block, 1)?;
            for index in 0..3 {
                self.describe(index, modes >> (6 - 2 * index) & 3, &mut block)?;
            }
            self.sequences(count, block, &mut literals, out, limit)?;
        }
        append(literals, out, limit)
    }

    fn literals(&mut self, block: &mut &[u8]) -> Option<Vec<u8>> {
        let first = usize::from(*block.first()?);
        let (kind, format) = (first & 3, first >> 2 & 3);
        if kind < 2 {
            let (header, shift) = [(1, 3), (2, 4), (1, 3), (3, 4)][format];
            let size = number(block, header)? as usize >> shift;
            if size > BLOCK_LIMIT {
                return None;
            }
            return Some(match kind {
                0 => take(block, size)?.to_vec(),
                _ => vec![number(block, 1)? as u8; size],
            });
        }
        let (header, width) = [(3, 10), (3, 10), (4, 14), (5, 18)][format];
        let sizes = number(block, header)? as usize >> 4;
        let (size, packed) = (sizes & ((1 << width) - 1), sizes >> width);
        let mut packed = take(block, packed)?;
        if kind == 2 {
            self.huffman = Some(Huffman::read(&mut packed)?);
        }
        let huffman = self.huffman.as_ref()?;
        let mut literals = Vec::with_capacity(size.min(BLOCK_LIMIT));
        if format == 0 {
            huffman.unpack(packed, size, &mut literals)?;
        } else {
            // Four streams, the sizes of three in front.
            let mut sizes = take(&mut packed, 6)?;
            let each = size.div_ceil(4);
            for _ in 0..3 {
                let stream = number(&mut sizes, 2)? as usize;
                huffman.unpack(take(&mut packed, stream)?, each, &mut literals)?;
            }
            huffman.unpack(packed, size.checked_sub(literals.len())?, &mut literals)?;
        }
        Some(literals)
    }

    /// Sets one of the three tables as the block says.
    fn describe(&mut self, index: usize, mode: u64, block: &mut &[u8]) -> Option<()> {
        let (accuracy, shares, most) = DEFAULTS[index];
        self.tables[index] = match mode {
            0 => Some(Table::new(accuracy, shares)?),
            1 => Some(Table::single(number(block, 1)? as u8)),
            2 => Some(Table::read(block, most)?),
            _ => return self.tables[index].as_ref().map(|_| ()),
        };
        Some(())
    }

    /// Runs of literals with a copy behind each.
    fn sequences(
        &mut self,
        count: usize,
        stream: &[u8],
        literals: &mut &[u8],
        out: &mut Vec<u8>,
        limit: usize,
    ) -> Option<()> {
        let [Some(lengths), Some(offsets), Some(copies)] = &self.tables else { return None };
        let mut bits = Backward::new(stream)?;
        let mut lengths = States::new(lengths, &mut bits)?;
        let mut codes = States::new(offsets, &mut bits)?;
        let mut copies = States::new(copies, &mut bits)?;
        for left in (0..count).rev() {
            let code = codes.symbol();
            if code > MOST_OFFSET_CODE {
                return None;
            }
            let offset = (1 << code) + bits.read(code)? as usize;
            let mut length = |table: &[(u32, u8)], code: u8| {
                let &(base, more) = table.get(usize::from(code))?;
                Some(base as usize + bits.read(more)? as usize)
            };
            let copied = length(&COPY_LENGTHS, copies.symbol())?;
            let run = length(&LITERAL_LENGTHS, lengths.symbol())?;
            append(take(literals, run)?, out, limit)?;
            let distance = next_offset(&mut self.offsets, offset, run)?;
            let reach = out.len() - self.start;
            if distance > reach || copied > limit - out.len() {
                return None;
            }
            // A copy may reach into itself.
            let start = out.len() - distance;
            (start..start + copied).for_each(|at| out.push(out[at]));
            if left > 0 {
                lengths.step(&mut bits)?;
                copies.step(&mut bits)?;
                codes.step(&mut bits)?;
            }
        }
        bits.is_empty().then_some(())
    }
}

fn append(literals: &[u8], out: &mut Vec<u8>, limit: usize) -> Option<()> {
    if literals.len() > limit - out.len() {
        return None;
    }
    out.extend_from_slice(literals);
    Some(())
}

/// The distance that a value of an offset stands for: the lowest three name the last distances.
fn next_offset(offsets: &mut [usize; 3], value: usize, run: usize) -> Option<usize> {
    let index = match value {
        1..=3 => value - 1 + usize::from(run == 0),
        _ => 3,
    };
    let offset = match index {
        _ if value > 3 => value - 3,
        3 => offsets[0] - 1,
        _ => offsets[index],
    };
    offsets.copy_within(..index.min(2), 1);
    offsets[0] = offset;
    (offset > 0).then_some(offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `zstd -19` makes of the squares below 150², a line each.
    const PACKED: &str = "
        28b52ffd00688d0a00266f5309b0eb24a188715298754d005100500013194f404c72fc6abc549c461c803863785b7e249c2e
        f844701af233e00de0a41be066ed5a7d5153d11334d57c31d73adb013a496ec867314d3c11d3f123de720607e0b44b5f2779
        62e277e71034509f19dd289a3434406936e81ad0173753d53c413355e70b996b9c599801ae93aa37a89fb5d3489f884e07fd
        e8e4d66446c90024d32a9744be864c42790264e2c50716172a26500c3031a17141e283888d137e46c2692a7c2284d35df0a3
        0ade4e7086040760709a919788fc5a7292209f0072a2013f20e0850227047000004eb0bb40f7416f62dc137093987d25bb54
        9b1636006dc6d56dd54753d3493d11751322e2c2313e20c644613c018c490ae26b212e11629a1d07a0e30c39dec2f1a3324e
        57e313619ce68a9f51f1468b93581ce088b344bc26c42f489cca864fd0702a197ec1e1352b67a91ca0e524960700
    ";

    fn packed() -> Vec<u8> {
        let digits: Vec<u32> = PACKED.chars().filter_map(|digit| digit.to_digit(16)).collect();
        digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
    }

    #[test]
    fn unpacks_what_was_packed() {
        let squares: String = (0..150).map(|root| format!("{}\n", root * root)).collect();
        assert_eq!(unpack(&packed(), squares.len()).as_deref(), Some(squares.as_bytes()));
    }

    #[test]
    fn unpacks_blocks_of_one_byte_and_of_plain_ones() {
        // A single segment of five bytes: two plain, three times the same.
        let frame = b"\x28\xb5\x2f\xfd\x20\x05\x10\x00\x00ab\x1b\x00\x00c";
        assert_eq!(unpack(frame, 5).as_deref(), Some(b"abccc".as_slice()));
        let skipped = [b"\x50\x2a\x4d\x18\x01\x00\x00\x00x".as_slice(), frame].concat();
        assert_eq!(unpack(&skipped, 5).as_deref(), Some(b"abccc".as_slice()));
        assert_eq!(unpack(frame, 4), None);
        assert_eq!(unpack(frame, 6), None);
    }

    #[test]
    fn damage_is_found_or_harmless() {
        let packed = packed();
        for at in 0..packed.len() {
            assert_eq!(unpack(&packed[..at], 754), None);
            for bit in 0..8 {
                let mut damaged = packed.clone();
                damaged[at] ^= 1 << bit;
                unpack(&damaged, 754);
            }
        }
    }
}
