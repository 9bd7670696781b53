//! The properties of an instruction that the timing model needs, besides its operands.

use ptx_backend::hazard::{Queue, SCOREBOARD_DELAY, first_given, read_queue, waits, write_queue};
use ptx_backend::mach::flat;
use sass::{Class, Field, Inst, RegFile, RegUse, Role, Sm};
use std::ops::Range;

/// The properties of an instruction that the timing model needs, besides its operands.
#[derive(Clone, Debug)]
pub(super) struct Facts {
    /// The scoreboards that are zero when the instruction issues, one bit each; and those of them that its control word
    /// names.
    pub(super) waits: u8,
    pub(super) at_issue: u8,
    /// A scoreboard, and the largest count that it has when the instruction issues.
    pub(super) counted: Option<(u8, usize)>,
    pub(super) write_sb: u8,
    pub(super) read_sb: u8,
    pub(super) variable: bool,
    pub(super) late: bool,
    pub(super) atomic: bool,
    /// The instruction completes when the memory queue has read the sources of all earlier instructions.
    pub(super) drains: bool,
    pub(super) read_queue: Option<Queue>,
    pub(super) write_queue: Option<Queue>,
    pub(super) stall: u64,
    pub(super) reads: Vec<(RegUse, Range<u16>)>,
    pub(super) writes: Vec<(RegUse, Range<u16>)>,
    /// One more than the largest general register that the instruction names.
    pub(super) named: u32,
    /// The reason why the hardware does not execute the instruction.
    pub(super) illegal: Option<&'static str>,
    /// The registers in the slots of the operand caches, and which of them are kept.
    pub(super) slots: [Option<u8>; 3],
    pub(super) kept: u8,
}

impl Facts {
    pub(super) fn of(sm: Sm, inst: &Inst) -> Facts {
        let bit = |scoreboard: Option<u8>| scoreboard.map_or(0, |s| 1 << s);
        let range = |used: RegUse| {
            let range = flat(&used);
            (used, range.start as u16..range.end as u16)
        };
        let mut slots = [None; 3];
        for read in inst.reads(sm).filter(|read| read.file == RegFile::R) {
            let slot = match read.role {
                Role::A => 0,
                Role::B => 1,
                Role::C => 2,
                _ => continue,
            };
            slots[slot] = Some(read.index);
        }
        let general = inst.uses(sm).filter(|used| used.file == RegFile::R);
        let named = general.map(|used| u32::from(used.index) + u32::from(used.count)).max().unwrap_or(0);
        // In a 32-byte access with a mask, words that are left out use no registers of the group.
        let is_whole = !matches!(inst.form().mnemonic, "LDG" | "STG")
            || inst.get(Field::Mask).is_none_or(|words| words == 0xff);
        let named = if is_whole { named } else { 0 };
        // Accesses to the registers that the instruction releases must be complete.
        let given = first_given(inst).filter(|&first| first < u8::MAX);
        let given =
            given.map(|index| RegUse { file: RegFile::R, index, count: u8::MAX - index, role: Role::Dst });
        Facts {
            named,
            illegal: inst.illegal(sm),
            waits: waits(inst),
            at_issue: inst.control.wait,
            counted: counted_wait(inst),
            write_sb: bit(inst.control.write_sb),
            read_sb: bit(inst.control.read_sb),
            variable: inst.is_variable(sm),
            late: inst.reads_late(sm),
            atomic: inst.class(sm) == Class::Atomic,
            drains: inst.form().mnemonic == "BAR" && inst.get(Field::Flag) == Some(0),
            read_queue: read_queue(sm, inst),
            write_queue: write_queue(sm, inst),
            // With a stall count of zero, the hardware pauses longer than a scoreboard takes to become visible.
            stall: if inst.control.stall == 0 { SCOREBOARD_DELAY } else { inst.control.stall }.into(),
            reads: inst.reads(sm).map(range).collect(),
            writes: inst.writes(sm).chain(given).map(range).collect(),
            slots,
            kept: inst.control.reuse,
        }
    }
}

/// `DEPBAR.LE SB0, 0x4`: the scoreboard and its largest count, if that is not zero.
pub(crate) fn counted_wait(inst: &Inst) -> Option<(u8, usize)> {
    let scoreboard = inst.get(Field::Scoreboard).filter(|_| inst.form().mnemonic == "DEPBAR")?;
    let left = inst.get(Field::Imm2).filter(|&left| left > 0)?;
    Some((1 << scoreboard, left as usize))
}
