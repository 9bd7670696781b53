//! Unpacks compressed images: LZ4 blocks and Zstandard frames, without dictionaries.

use ruzstd::decoding::FrameDecoder;

/// Unpacks to exactly `size` bytes. `None` if the block is damaged.
pub(crate) fn lz4(block: &[u8], size: usize) -> Option<Vec<u8>> {
    // One byte of a block unpacks to at most 255 bytes. So a small file cannot make the program reserve much memory.
    if size > block.len().saturating_mul(255) {
        return None;
    }
    let mut out = vec![0; size];
    (lz4_flex::block::decompress_into(block, &mut out).ok()? == size).then_some(out)
}

/// Unpacks to exactly `size` bytes. `None` if the frames are damaged.
pub(crate) fn zstandard(frames: &[u8], size: usize) -> Option<Vec<u8>> {
    // Four bytes can stand for a run of 128 KiB.
    if size > frames.len().saturating_mul(BLOCK) {
        return None;
    }
    let mut out = vec![0; size];
    (FrameDecoder::new().decode_all(frames, &mut out).ok()? == size).then_some(out)
}

/// The largest size of a Zstandard block in bytes.
const BLOCK: usize = 128 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unpacks_literals_and_copies() {
        assert_eq!(lz4(b"\x30abc", 3).as_deref(), Some(b"abc".as_slice()));
        assert_eq!(lz4(b"\x12a\x01\x00\x10b", 8).as_deref(), Some(b"aaaaaaab".as_slice()));
        assert_eq!(lz4(b"\x12a\x02\x00\x10b", 8), None);
        assert_eq!(lz4(b"\x30ab", 3), None);
        assert_eq!(lz4(b"\x30abc", 4), None);
    }

    /// The output of `zstd -19` for the squares below 150², one per line.
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
        assert_eq!(zstandard(&packed(), squares.len()).as_deref(), Some(squares.as_bytes()));
    }

    #[test]
    fn unpacks_blocks_of_one_byte_and_of_plain_ones() {
        // A single segment of five bytes: two literal bytes, then the same byte three times.
        let frame = b"\x28\xb5\x2f\xfd\x20\x05\x10\x00\x00ab\x1b\x00\x00c";
        assert_eq!(zstandard(frame, 5).as_deref(), Some(b"abccc".as_slice()));
        let skipped = [b"\x50\x2a\x4d\x18\x01\x00\x00\x00x".as_slice(), frame].concat();
        assert_eq!(zstandard(&skipped, 5).as_deref(), Some(b"abccc".as_slice()));
        assert_eq!(zstandard(frame, 4), None);
        assert_eq!(zstandard(frame, 6), None);
    }

    #[test]
    fn damage_is_found_or_harmless() {
        let packed = packed();
        for at in 0..packed.len() {
            assert_eq!(zstandard(&packed[..at], 754), None);
            for bit in 0..8 {
                let mut damaged = packed.clone();
                damaged[at] ^= 1 << bit;
                zstandard(&damaged, 754);
            }
        }
    }
}
