//! The resources that an instruction uses each time it is issued.

use crate::machine::counted_wait;
use ptx_backend::hazard::waits;
use sass::rate::{Figure, Pipe, exchange, figure, rate};
use sass::{Class, Field, Inst, RegFile, Role, Sm};

#[derive(Clone, Debug)]
pub(super) struct Cost {
    pub(super) stall: u64,
    /// The warp does not issue in the next cycle.
    pub(super) yields: bool,
    /// The scoreboards that must be zero at issue, one bit each; and a scoreboard that must not exceed the given count.
    pub(super) waits: u8,
    pub(super) counted: Option<(u8, u32)>,
    pub(super) write_sb: Option<u8>,
    pub(super) read_sb: Option<u8>,
    pub(super) busy: [Option<(Pipe, u32)>; 2],
    /// The registers that are read at issue: operand slot and number. And the slots whose operand caches keep their
    /// register.
    pub(super) operands: Vec<(usize, u8)>,
    pub(super) kept: u8,
    /// The line of a constant bank that is accessed. If the access is an operand, a miss delays the issue; if it is a
    /// load, a miss delays the result.
    pub(super) constant: Option<Constant>,
    pub(super) loads_constant: bool,
    pub(super) what: What,
}

/// The effect of the instruction after issue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum What {
    /// Has only its stall count; or a result that is ready the given number of cycles after the pipe has begun.
    Computes(u64),
    Memory(MemoryInstruction),
    /// Holds the warp for the given number of cycles.
    Holds(u64),
    /// Invalidates the first-level cache.
    Invalidates,
    /// Closes a group of copies.
    ClosesCopies,
    ClosesBulkCopies,
    /// A matrix product of a warpgroup, and whether it ends a group.
    GroupProduct(bool),
    /// Waits until at most the given number of groups of products are in flight.
    WaitsForProducts(usize),
}

/// A memory instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct MemoryInstruction {
    pub(super) kind: AccessKind,
    /// The number of registers of a lane's data, and of its address.
    pub(super) words: u32,
    pub(super) address_registers: u32,
    /// The access bypasses the first-level cache.
    pub(super) strong: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum AccessKind {
    Load,
    Store,
    Atomic,
    /// An asynchronous copy from global to shared memory.
    Copy,
    /// An exchange between lanes or an operation on a barrier object. It uses the queue, for the given number of
    /// cycles.
    Exchange(u32),
}

/// A constant bank and a line in it.
pub(super) type Constant = (u64, u64);

const CONSTANT_LINE: u64 = 64;

impl Cost {
    pub(super) fn of(sm: Sm, inst: &Inst) -> Cost {
        let control = inst.control;
        let rate = rate(sm, inst);
        let mut operands = Vec::new();
        for read in inst.reads(sm).filter(|read| read.file == RegFile::R && !inst.reads_late(sm)) {
            let slot = match read.role {
                Role::A => 0,
                Role::B => 1,
                Role::C => 2,
                _ => continue,
            };
            operands.extend((read.index..read.index.saturating_add(read.count)).map(|index| (slot, index)));
        }
        let what = what(sm, inst, rate.result);
        Cost {
            stall: match control.stall {
                0 => figure(sm, Figure::Pause).into(),
                stall => u64::from(stall),
            } + jump(sm, inst),
            yields: control.yield_ && control.stall < 2,
            waits: waits(inst),
            counted: counted_wait(inst).map(|(bit, left)| (bit.trailing_zeros() as u8, left as u32)),
            write_sb: control.write_sb,
            read_sb: control.read_sb,
            busy: rate.busy,
            operands,
            kept: control.reuse,
            constant: constant(inst),
            loads_constant: matches!(inst.form().mnemonic, "LDC" | "LDCU"),
            what,
        }
    }
}

/// The cost of a branch to an address in a register, beyond its stall count.
fn jump(sm: Sm, inst: &Inst) -> u64 {
    match inst.form().mnemonic {
        "BRX" | "BRXU" | "RET" | "JMX" | "JMXU" => figure(sm, Figure::Indirect).into(),
        _ => 0,
    }
}

/// The line of an operand `c[bank][offset]`. An index is assumed to stay within the line.
fn constant(inst: &Inst) -> Option<Constant> {
    Some((inst.get(Field::CBank)?, inst.get(Field::COffset)? / CONSTANT_LINE))
}

fn what(sm: Sm, inst: &Inst, result: Option<u32>) -> What {
    let of = |name| figure(sm, name);
    let form = inst.form();
    match form.mnemonic {
        "LDGSTS" => access(sm, inst, AccessKind::Copy),
        "CCTL" if form.name.starts_with("CCTL.IVALL") => What::Invalidates,
        "LDGDEPBAR" => What::ClosesCopies,
        "UTMACMDFLUSH" => What::ClosesBulkCopies,
        _ if inst.is_group_product() => What::GroupProduct(inst.get(Field::Scoreboard) == Some(0)),
        "WARPGROUP" if form.name == "WARPGROUP.DEPBAR" => {
            What::WaitsForProducts(inst.get(Field::Imm2).unwrap_or(0) as usize)
        }
        "MEMBAR" => What::Holds(
            of(match inst.text(Field::Scope) {
                Some(".CTA" | ".SM") => Figure::FenceBlock,
                Some(".SYS") => Figure::FenceSystem,
                _ => Figure::FenceDevice,
            })
            .into(),
        ),
        "NANOSLEEP" | "YIELD" => What::Holds(of(Figure::Pause).into()),
        _ if let Some(cycles) = exchange(sm, inst) => access(sm, inst, AccessKind::Exchange(cycles)),
        _ => match inst.class(sm) {
            Class::Load => access(sm, inst, AccessKind::Load),
            Class::Store => access(sm, inst, AccessKind::Store),
            Class::Atomic if matches!(form.mnemonic, "RED" | "REDG") => access(sm, inst, AccessKind::Store),
            Class::Atomic => access(sm, inst, AccessKind::Atomic),
            _ => What::Computes(result.unwrap_or(0).into()),
        },
    }
}

fn access(sm: Sm, inst: &Inst, kind: AccessKind) -> What {
    let registers = |role: Role| -> u32 {
        let reads = inst.reads(sm).filter(|read| read.file == RegFile::R && read.role == role);
        reads.map(|read| u32::from(read.count)).sum()
    };
    let written: u32 =
        inst.writes(sm).filter(|def| def.file == RegFile::R).map(|def| u32::from(def.count)).sum();
    let strong = inst
        .text(Field::Order)
        .is_some_and(|order| [".GPU", ".SYS", ".MMIO"].iter().any(|of| order.contains(of)));
    What::Memory(MemoryInstruction {
        kind,
        words: written.max(registers(Role::Data)).max(1),
        address_registers: registers(Role::Address).max(registers(Role::A)),
        strong,
    })
}
