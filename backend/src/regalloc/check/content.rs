//! Known contents of registers and words of the frame.

use crate::ori::ir::{Dst, File, Frame, Reg, Src, SrcKind};
use crate::ori::op::MemSize;

/// The known content of a register or spill word.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Content {
    /// A lane; for predicates, possibly its complement.
    Lane {
        lane: u32,
        not: bool,
    },
    /// One if the predicate lane (or its complement) is true, otherwise zero.
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
    /// What the input itself keeps in a physical register.
    Fixed(Reg),
    /// No instruction may depend on it.
    Undef,
}

impl Content {
    /// The lane that the content depends on.
    pub(super) fn lane(self) -> Option<u32> {
        match self {
            Content::Lane { lane, .. } | Content::Bool { lane, .. } => Some(lane),
            _ => None,
        }
    }

    /// The complement, if it has a representation.
    pub(super) fn complement(self) -> Option<Content> {
        match self {
            Content::Lane { lane, not } => Some(Content::Lane { lane, not: !not }),
            Content::Bool { lane, not } => Some(Content::Bool { lane, not: !not }),
            Content::Pred(p) => Some(Content::Pred(!p)),
            Content::Undef => Some(Content::Undef),
            Content::Bits(_) | Content::Const { .. } | Content::Fixed(_) => None,
        }
    }

    /// The integer that represents a predicate.
    pub(super) fn integer(self) -> Option<Content> {
        match self {
            Content::Lane { lane, not } => Some(Content::Bool { lane, not }),
            Content::Pred(p) => Some(Content::Bits(u32::from(p))),
            _ => None,
        }
    }

    /// The predicate that an integer represents.
    pub(super) fn predicate(self) -> Option<Content> {
        match self {
            Content::Bool { lane, not } => Some(Content::Lane { lane, not }),
            Content::Bits(bits @ 0..=1) => Some(Content::Pred(bits == 1)),
            _ => None,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) enum Storage {
    Reg(Reg),
    /// A word of the frame, by byte offset from R1.
    Word(u32),
}

/// Conversions on the way from one place to another, in the order of the fields. A predicate may be complemented and
/// converted to an integer; an integer is first converted to a predicate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Steps {
    to_predicate: bool,
    not: bool,
    to_integer: bool,
}

impl Steps {
    /// The content of a place before the steps, if it is `content` after them.
    pub(super) fn before(self, mut content: Content) -> Option<Content> {
        if self.to_integer {
            content = content.predicate()?;
        }
        if self.not {
            content = content.complement()?;
        }
        if self.to_predicate {
            content = content.integer()?;
        }
        Some(content)
    }
}

/// The content of a place at a point of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Held {
    Known(Content),
    /// The content of this place at the start of the block, after some steps.
    Start(Storage, Steps),
    /// Unknown contents.
    Nothing,
}

impl Held {
    fn steps(
        self,
        content: impl Fn(Content) -> Option<Content>,
        steps: impl Fn(Steps) -> Option<Steps>,
    ) -> Held {
        match self {
            Held::Known(c) => content(c).map_or(Held::Nothing, Held::Known),
            Held::Start(place, s) => steps(s).map_or(Held::Nothing, |s| Held::Start(place, s)),
            Held::Nothing => Held::Nothing,
        }
    }

    /// The complement, of a predicate.
    pub(super) fn complement(self) -> Held {
        self.steps(Content::complement, |s| (!s.to_integer).then_some(Steps { not: !s.not, ..s }))
    }

    /// The integer of a predicate.
    pub(super) fn integer(self) -> Held {
        self.steps(Content::integer, |s| (!s.to_integer).then_some(Steps { to_integer: true, ..s }))
    }

    /// The predicate of an integer.
    pub(super) fn predicate(self) -> Held {
        self.steps(Content::predicate, |s| match s {
            // The integer of a predicate is converted back.
            Steps { to_integer: true, .. } => Some(Steps { to_integer: false, ..s }),
            Steps { to_predicate: false, .. } => Some(Steps { to_predicate: true, ..s }),
            _ => None,
        })
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

/// Checks that a run's first register is a multiple of its width rounded up to a power of two, at most 4.
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

/// The frame words of an access to spilled values. They must be in the spill area of the frame, and aligned.
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
