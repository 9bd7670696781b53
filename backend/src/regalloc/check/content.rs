//! What registers and words of the frame are known to hold.

use crate::ori::ir::{Dst, File, Frame, Reg, Src, SrcKind};
use crate::ori::op::MemSize;
use smallvec::SmallVec;

/// What a register or spill word is known to hold.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) enum Content {
    /// A lane, or its complement for predicates.
    Lane {
        lane: u32,
        not: bool,
    },
    /// One where the predicate lane (or its complement) holds, else zero.
    Bool {
        lane: u32,
        not: bool,
    },
    Bits(u32),
    Const {
        bank: u8,
        offset: u16,
    },
    Pred(bool),
    /// What the input itself keeps in a named register.
    Fixed(Reg),
    /// Nobody may depend on it.
    Undef,
}

/// Sorted.
pub(super) type Contents = SmallVec<[Content; 2]>;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Place {
    Reg(Reg),
    /// A word of the frame, by byte offset from R1.
    Word(u32),
}

/// Per place that the allocated code writes.
pub(super) type State = Vec<Contents>;

pub(super) fn complement(content: Content, not: bool) -> Content {
    match content {
        Content::Lane { lane, not: n } => Content::Lane { lane, not: n != not },
        Content::Bool { lane, not: n } => Content::Bool { lane, not: n != not },
        Content::Pred(p) => Content::Pred(p != not),
        other => other,
    }
}

/// A predicate's integer.
pub(super) fn as_bool(content: Content) -> Option<Content> {
    match content {
        Content::Lane { lane, not } => Some(Content::Bool { lane, not }),
        Content::Pred(p) => Some(Content::Bits(u32::from(p))),
        _ => None,
    }
}

pub(super) fn lane_of(content: Content) -> Option<u32> {
    match content {
        Content::Lane { lane, .. } | Content::Bool { lane, .. } => Some(lane),
        _ => None,
    }
}

pub(super) fn is_reg(src: &Src, reg: Reg) -> bool {
    src.kind == SrcKind::Reg(reg)
}

pub(super) fn dst_of(src: &Src) -> Dst {
    match src.kind {
        SrcKind::Reg(r) => Dst::Reg(r),
        _ => Dst::Sink,
    }
}

/// Registers of a file.
fn file_size(file: File) -> u16 {
    match file {
        File::R => 255,
        File::P | File::UP => 7,
        File::UR => 255,
        File::B => 16,
    }
}

pub(super) fn offset(reg: Reg, by: u8) -> Result<Reg, String> {
    let index = u16::from(reg.index) + u16::from(by);
    if index >= file_size(reg.file) {
        return Err(format!("{reg:?} + {by} is outside its file"));
    }
    Ok(Reg { index: index as u8, ..reg })
}

/// A run's first register is a multiple of its width rounded up to a power of two, at most 4.
pub(super) fn aligned(reg: Reg, file: File, width: u8) -> Result<(), String> {
    let align = match width {
        0 | 1 => 1,
        2 => 2,
        _ => 4,
    };
    if reg.file != file || !reg.index.is_multiple_of(align) {
        return Err(format!("{reg:?} cannot hold {width} registers of {file:?}"));
    }
    Ok(())
}

pub(super) fn words(size: MemSize) -> u8 {
    match size {
        MemSize::B64 => 2,
        MemSize::B128 => 4,
        _ => 1,
    }
}

/// The frame words of an access to spilled values, which must be in their part of the frame and aligned.
pub(super) fn spill_words(
    frame: &Frame,
    size: MemSize,
    offset: i32,
) -> Result<impl Iterator<Item = u32> + use<>, String> {
    let bytes = 4 * u32::from(words(size));
    let start = u32::try_from(offset).map_err(|_| "is below the frame".to_owned())?;
    let whole = matches!(size, MemSize::B32 | MemSize::B64 | MemSize::B128);
    if !whole
        || start % bytes != 0
        || start < frame.local_bytes
        || start + bytes > frame.local_bytes + frame.spill_bytes
    {
        return Err(format!("accesses {bytes} bytes at {start}, outside the spill area"));
    }
    Ok((start..start + bytes).step_by(4))
}

/// Intersects; true if the entry changed.
pub(super) fn meet(entry: &mut Option<State>, state: State) -> bool {
    let Some(entry) = entry else {
        *entry = Some(state);
        return true;
    };
    let mut changed = false;
    for (into, from) in entry.iter_mut().zip(&state) {
        let size = into.len();
        into.retain(|c| from.binary_search(c).is_ok());
        changed |= into.len() != size;
    }
    changed
}
