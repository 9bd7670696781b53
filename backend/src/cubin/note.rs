//! Notes that say which tool made the file and for what, and the frames that a debugger unwinds by.

use super::info::API_VERSION;
use ptx_isa::Sm;

const OWNER: &[u8; 12] = b"NVIDIA Corp\0";
const TOOL_NOTE: u32 = 0x7d0;
const CUDA_NOTE: u32 = 0x3e8;

fn note(kind: u32, description: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend((OWNER.len() as u32).to_le_bytes());
    out.extend((description.len() as u32).to_le_bytes());
    out.extend(kind.to_le_bytes());
    out.extend(OWNER);
    out.extend(description);
    out
}

/// `.note.nv.tkinfo`: the tool's name, version, branch and arguments.
pub(super) fn tool(arguments: &str) -> Vec<u8> {
    let version = concat!("ptx-analyzer ", env!("CARGO_PKG_VERSION"));
    let mut strings = vec![0u8];
    let mut offsets = vec![2u32, 0];
    for text in ["ptxc", version, "", arguments] {
        offsets.push(strings.len() as u32);
        strings.extend(text.as_bytes());
        strings.push(0);
    }
    let mut description: Vec<u8> = offsets.iter().flat_map(|o| o.to_le_bytes()).collect();
    description.extend(strings);
    description.resize(description.len().next_multiple_of(4), 0);
    note(TOOL_NOTE, &description)
}

/// `.note.nv.cuinfo`: the PTX's own target and the toolkit version.
pub(super) fn cuda(virtual_sm: Sm) -> Vec<u8> {
    let mut description = Vec::new();
    for half in [2, virtual_sm.number, API_VERSION, 0] {
        description.extend(half.to_le_bytes());
    }
    note(CUDA_NOTE, &description)
}

/// A common information entry: code alignment 4, data alignment -4, frame address R1.
const FRAME_COMMON: [u8; 40] = [
    0xff, 0xff, 0xff, 0xff, 0x24, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff,
    0xff, // length, id (64-bit DWARF)
    0xff, 0xff, 0xff, 0xff, 3, 0, 4, 0x7c, // id, version 3, no augmentation, alignments
    0xff, 0xff, 0xff, 0xff, 0x0f, // return address register: none
    0x0c, 0x81, 0x80, 0x80, 0x28, 0x00, // def_cfa R1, 0
    0x08, 0xff, 0x81, 0x80, 0x28, // same_value R255
];
const FRAME_COMMON_TAIL: [u8; 8] = [0x08, 0x81, 0x80, 0x80, 0x28, 0, 0, 0]; // same_value R1

/// The code of a function, as unwinding needs it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Unwound {
    pub(super) code_bytes: u64,
    /// The offset from which its frame exists, and the size of the frame.
    pub(super) frame: Option<(u32, u32)>,
}

/// `.debug_frame` for functions, and the offset of the address field of each.
pub(super) fn debug_frame(functions: &[Unwound]) -> (Vec<u8>, Vec<u64>) {
    let (mut out, mut addresses) = (Vec::new(), Vec::new());
    for function in functions {
        let common = out.len() as u64;
        out.extend(FRAME_COMMON);
        out.extend(FRAME_COMMON_TAIL);
        let rules = rules(function.frame);
        out.extend(0xffff_ffff_u32.to_le_bytes());
        out.extend((24 + rules.len() as u64).to_le_bytes());
        out.extend(common.to_le_bytes());
        addresses.push(out.len() as u64);
        out.extend(0u64.to_le_bytes());
        out.extend(function.code_bytes.to_le_bytes());
        out.extend(rules);
    }
    (out, addresses)
}

/// The CFA rules: R1, and after the function has allocated its frame R1 plus the frame's size.
fn rules(frame: Option<(u32, u32)>) -> Vec<u8> {
    // advance_loc4 4 twice, def_cfa R1 0.
    const NONE: [u8; 20] = [4, 4, 0, 0, 0, 4, 4, 0, 0, 0, 0x0c, 0x81, 0x80, 0x80, 0x28, 0, 0, 0, 0, 0];
    let Some((at, bytes)) = frame else { return NONE.to_vec() };
    // def_cfa R1 0, advance_loc4 by units of four bytes, def_cfa R1 size.
    let mut out = vec![0x0c, 0x81, 0x80, 0x80, 0x28, 0, 4];
    out.extend((at / 4).to_le_bytes());
    out.extend([0x0c, 0x81, 0x80, 0x80, 0x28]);
    super::lines::unsigned(&mut out, bytes.into());
    // Padded to a multiple of four with `DW_CFA_nop`.
    out.resize(out.len().next_multiple_of(4), 0);
    out
}
