//! Unpacks the block format of LZ4: literals and copies from what is already there.

/// The unpacked bytes, of which there are `size`; `None` where the block is damaged.
pub(crate) fn unpack(mut block: &[u8], size: usize) -> Option<Vec<u8>> {
    // One byte of a block stands for 255 bytes at most.
    let mut out = Vec::with_capacity(size.min(block.len().saturating_mul(255)));
    while let Some((&token, rest)) = block.split_first() {
        block = rest;
        let literals = length(token >> 4, &mut block)?;
        out.extend_from_slice(block.get(..literals)?);
        block = &block[literals..];
        if block.is_empty() {
            break;
        }
        let (distance, rest) = block.split_first_chunk()?;
        block = rest;
        let distance = usize::from(u16::from_le_bytes(*distance));
        let start = out.len().checked_sub(distance).filter(|_| distance > 0)?;
        let copied = length(token & 15, &mut block)? + LEAST_COPY;
        if out.len() + copied > size {
            return None;
        }
        // A copy may reach into itself.
        for at in start..start + copied {
            out.push(out[at]);
        }
    }
    (out.len() == size).then_some(out)
}

const LEAST_COPY: usize = 4;

/// A length of four bits that continues in bytes as long as they are full.
fn length(start: u8, block: &mut &[u8]) -> Option<usize> {
    let mut length = usize::from(start);
    if start == 15 {
        loop {
            let (&more, rest) = block.split_first()?;
            *block = rest;
            length += usize::from(more);
            if more != u8::MAX {
                break;
            }
        }
    }
    Some(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unpacks_literals_and_copies() {
        assert_eq!(unpack(b"\x30abc", 3).as_deref(), Some(b"abc".as_slice()));
        assert_eq!(unpack(b"\x12a\x01\x00\x10b", 8).as_deref(), Some(b"aaaaaaab".as_slice()));
        assert_eq!(unpack(b"\x12a\x02\x00\x10b", 8), None);
        assert_eq!(unpack(b"\x30ab", 3), None);
        assert_eq!(unpack(b"\x30abc", 4), None);
    }
}
