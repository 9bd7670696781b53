//! Generates files for tests.

const SECTION_BYTES: usize = 64;
const NAMES: [&str; 7] =
    ["", ".names", ".symtab", ".text.k", ".rela.text.k", ".nv.compat", ".note.nv.cuinfo"];

/// The code of the cubin.
#[allow(dead_code)] // Not all tests use all files.
pub(crate) const CODE: [u128; 3] = [
    0x000fe20000000f000000000800028202,
    0x000fea0003800000000000000000794d,
    0x000fc0000383fffffffffffc00fc7947,
];

/// A cubin for sm_90a with one function of three instructions. The linker changes one of them.
pub(crate) fn cubin() -> Vec<u8> {
    let mut names = Vec::new();
    let mut name_at = Vec::new();
    for name in NAMES.into_iter().chain(["k", "callee"]) {
        name_at.push(names.len() as u32);
        names.extend(name.as_bytes());
        names.push(0);
    }
    let symbol = |name: u32, info: u8, other: u8, section: u16| {
        let mut symbol = name.to_le_bytes().to_vec();
        symbol.extend([info, other]);
        symbol.extend(section.to_le_bytes());
        symbol.extend([0u64.to_le_bytes(), 48u64.to_le_bytes()].concat());
        symbol
    };
    let symbols = [symbol(0, 0, 0, 0), symbol(name_at[7], 0x12, 0x10, 3), symbol(name_at[8], 0x12, 0, 0)];
    let relocation = [0u64.to_le_bytes(), (2u64 << 32 | 0x38).to_le_bytes(), 4u64.to_le_bytes()].concat();
    let note = [8u32, 8, 1000].map(u32::to_le_bytes).concat();
    let note = [note.as_slice(), b"NVIDIA\0\0", &[2, 0, 90, 0, 0x82, 0, 0, 0]].concat();
    // Type, link, info and content.
    let contents: [(u32, u32, u32, Vec<u8>); 7] = [
        (0, 0, 0, Vec::new()),
        (3, 0, 0, names),
        (2, 1, 1, symbols.concat()),
        (1, 2, 1, CODE.map(u128::to_le_bytes).concat()),
        (4, 2, 3, relocation),
        (0x7000_0086, 0, 0, vec![4, 3, 2, 0, 7, 7, 2, 9, 1, 0]),
        (7, 0, 0, note),
    ];
    let mut out = vec![0; 64];
    out[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    out[16] = 2;
    out[18] = 190;
    out[48..52].copy_from_slice(&0x0600_5a04u32.to_le_bytes());
    out[58] = SECTION_BYTES as u8;
    out[60] = contents.len() as u8;
    out[62] = 1;
    let mut headers = Vec::new();
    for ((kind, link, info, content), name) in contents.iter().zip(name_at) {
        headers.extend([name, *kind].map(u32::to_le_bytes).concat());
        headers.extend([0u64; 2].map(u64::to_le_bytes).concat());
        headers.extend([out.len() as u64, content.len() as u64].map(u64::to_le_bytes).concat());
        headers.extend([*link, *info].map(u32::to_le_bytes).concat());
        headers.extend([0u64; 2].map(u64::to_le_bytes).concat());
        out.extend(content);
    }
    assert_eq!(headers.len(), contents.len() * SECTION_BYTES);
    let at = out.len() as u64;
    out[40..48].copy_from_slice(&at.to_le_bytes());
    out.extend(headers);
    out
}

/// A container with the cubin.
pub(crate) fn container() -> Vec<u8> {
    contained(0, 0, &cubin())
}

/// A container with a cubin of zeros, compressed with LZ4.
#[allow(dead_code)]
pub(crate) fn zeros(count: usize) -> Vec<u8> {
    const LZ4: u16 = 1 << 13;
    /// Bytes besides the repeated ones: a literal, the last literals, and the shortest copy.
    const BESIDES: usize = 1 + 5 + 4 + 15;
    let mut packed = vec![0x1f, 0, 1, 0];
    let length = count - BESIDES;
    packed.resize(packed.len() + length / 255, 0xff);
    packed.extend([(length % 255) as u8, 0x50, 0, 0, 0, 0, 0]);
    contained(LZ4, count as u64, &packed)
}

/// A container with a cubin, and the unpacked size if it is compressed.
fn contained(flags: u16, unpacked: u64, content: &[u8]) -> Vec<u8> {
    let mut image = vec![0; 64];
    image[0] = 2;
    image[4] = 64;
    image[8..16].copy_from_slice(&(content.len() as u64).to_le_bytes());
    image[16..20].copy_from_slice(&(content.len() as u32).to_le_bytes());
    image[28] = 90;
    image[40..42].copy_from_slice(&flags.to_le_bytes());
    image[56..].copy_from_slice(&unpacked.to_le_bytes());
    image.extend(content);
    let mut out = b"\x50\xed\x55\xba\x01\x00\x10\x00".to_vec();
    out.extend((image.len() as u64).to_le_bytes());
    out.extend(image);
    out
}
