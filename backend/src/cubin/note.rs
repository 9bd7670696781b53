//! Notes that name the tool and the target of the file, and the frame descriptions with which a debugger unwinds the
//! stack.

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

/// The facts about a function's code that unwinding needs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Unwound {
    pub(super) code_bytes: u64,
    /// The offset at which the frame starts to exist, and the size of the frame.
    pub(super) frame: Option<(u32, u32)>,
    /// How the function returns, and what it saves. `None` for kernels, and for functions that follow a kernel's code.
    pub(super) caller: Option<Caller>,
}

/// The return address and the saved registers of a function.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Caller {
    /// The first register of the pair that holds the return address.
    pub(super) return_address: u8,
    pub(super) saved: Vec<Saved>,
}

/// A register of the caller that is saved in the frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Saved {
    /// The offset of the byte after the store.
    pub(super) at: u32,
    pub(super) register: u8,
    /// The offset of the register above the lowered stack pointer.
    pub(super) place: u32,
}

/// The unit of code offsets and stack offsets in bytes.
const UNIT: u32 = 4;
const SAME_VALUE: u8 = 0x08;
const DEFINE_FRAME: u8 = 0x0c;
const ADVANCE: u8 = 0x04;
const OFFSET_EXTENDED: u8 = 0x05;
const STACK_POINTER: u8 = 1;

/// Writes the debugger's number of a register.
fn register(out: &mut Vec<u8>, index: u8) {
    super::lines::unsigned(out, 0x0500_0000 + u64::from(index));
}

/// States that the frame begins this number of bytes above R1.
fn define_frame(out: &mut Vec<u8>, bytes: u32) {
    out.push(DEFINE_FRAME);
    register(out, STACK_POINTER);
    super::lines::unsigned(out, bytes.into());
}

fn advance(out: &mut Vec<u8>, bytes: u32) {
    out.push(ADVANCE);
    out.extend((bytes / UNIT).to_le_bytes());
}

/// Writes an entry in the 64-bit form, padded with `DW_CFA_nop` to a multiple of four bytes.
fn entry(out: &mut Vec<u8>, mut content: Vec<u8>) {
    content.resize(content.len().next_multiple_of(4), 0);
    out.extend(u32::MAX.to_le_bytes());
    out.extend((content.len() as u64).to_le_bytes());
    out.extend(content);
}

/// The common part of the entries of functions: code alignment 4, data alignment -4, frame address R1.
fn common(return_address: Option<u8>) -> Vec<u8> {
    let mut out = u64::MAX.to_le_bytes().to_vec();
    // Version 3, no augmentation, the alignments.
    out.extend([3, 0, 4, 0x7c]);
    match return_address {
        Some(index) => register(&mut out, index),
        None => super::lines::unsigned(&mut out, u32::MAX.into()),
    }
    define_frame(&mut out, 0);
    let pair = return_address.into_iter().flat_map(|first| [first, first + 1]);
    for index in [255, STACK_POINTER].into_iter().chain(pair) {
        out.push(SAME_VALUE);
        register(&mut out, index);
    }
    out
}

/// `.debug_frame` for functions. Also returns, for each function, the offsets of its common entry and of its address
/// field.
pub(super) fn debug_frame(functions: &[Unwound]) -> (Vec<u8>, Vec<(u64, u64)>) {
    let (mut out, mut addresses) = (Vec::new(), Vec::new());
    for function in functions {
        let start = out.len() as u64;
        entry(&mut out, common(function.caller.as_ref().map(|caller| caller.return_address)));
        let mut own = start.to_le_bytes().to_vec();
        addresses.push((start, out.len() as u64 + 20));
        own.extend(0u64.to_le_bytes());
        own.extend(function.code_bytes.to_le_bytes());
        own.extend(rules(function));
        entry(&mut out, own);
    }
    (out, addresses)
}

/// The rules of a function: the frame begins at R1, and, after the function has allocated it, at R1 plus its size. Then
/// registers are saved.
fn rules(function: &Unwound) -> Vec<u8> {
    let mut out = Vec::new();
    let Some((at, bytes)) = function.frame else {
        advance(&mut out, 16);
        advance(&mut out, 16);
        define_frame(&mut out, 0);
        out.resize(20, 0);
        return out;
    };
    define_frame(&mut out, 0);
    advance(&mut out, at);
    define_frame(&mut out, bytes);
    let mut now = at;
    for saved in function.caller.iter().flat_map(|caller| &caller.saved) {
        advance(&mut out, saved.at - now);
        now = saved.at;
        out.push(OFFSET_EXTENDED);
        register(&mut out, saved.register);
        super::lines::unsigned(&mut out, u64::from((bytes - saved.place) / UNIT));
    }
    out
}
