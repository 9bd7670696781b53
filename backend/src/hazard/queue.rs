//! The order in which units read their sources and finish, and which other events show that they have.

use sass::{Class, Field, Inst, RegUse, Role, Sm};

/// A unit that reads its sources, or finishes, in the order of issue. So the scoreboard of a later instruction also
/// covers earlier ones, and a later instruction cannot overtake an earlier one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Queue {
    /// All instructions of the memory input-output unit.
    Memory,
    /// Special functions and conversions.
    Special,
    /// Double precision on targets where it is slow.
    Double,
    Texture,
    /// `wgmma` products.
    WarpGroup,
    /// One kind of instruction, relative to itself.
    Same(&'static str),
}

/// The queue in which an instruction reads its sources.
pub fn read_queue(sm: Sm, inst: &Inst) -> Option<Queue> {
    match inst.class(sm) {
        Class::Async if inst.is_group_product() => Some(Queue::WarpGroup),
        Class::Load | Class::Store | Class::Atomic | Class::Async => Some(Queue::Memory),
        Class::Xu => Some(Queue::Special),
        Class::Fp64 | Class::Fp64Compare => Some(Queue::Double),
        Class::Dmma => Some(Queue::Same("DMMA")),
        // Before sm_80, products set scoreboards.
        Class::Hmma16 | Class::Hmma32 | Class::Imma16 | Class::Imma32 if inst.is_variable(sm) => {
            Some(Queue::Same(name(inst)))
        }
        Class::Texture => Some(Queue::Texture),
        Class::Sync if name(inst) == "CCTL" => Some(Queue::Memory),
        Class::S2r if name(inst) == "BMOV" && inst.has(sass::Field::Rb) => Some(Queue::Same("BMOV")),
        Class::UniformLoad => Some(Queue::Same(name(inst))).filter(|_| name(inst) != "LDCU"),
        _ => None,
    }
}

/// The queue in which an instruction writes its results. Loads from global memory may overtake one another.
pub fn write_queue(sm: Sm, inst: &Inst) -> Option<Queue> {
    match name(inst) {
        "LDS" | "LDSM" | "SHFL" | "ATOMS" | "MOVM" | "QSPC" => Some(Queue::Memory),
        "B2R" => Some(Queue::Same("B2R")),
        "LDTM" => Some(Queue::Same("LDTM")),
        _ => read_queue(sm, inst).filter(|q| *q != Queue::Memory),
    }
}

/// Whether the unit forwards a result to a later instruction of the same unit before it is written: sums of products,
/// and of double-precision products with eight rows.
pub fn forwards(sm: Sm, producer: &Inst, consumer: &Inst, read: &RegUse) -> bool {
    let both = |is: &dyn Fn(&Inst) -> bool| is(producer) && is(consumer);
    let eight_rows = |inst: &Inst| matches!(inst.text(Field::Size), None | Some(".8x8x4"));
    if producer.is_group_product() && consumer.is_group_arrival() {
        return true;
    }
    let sum =
        both(&Inst::is_group_product) || both(&|inst| inst.class(sm) == Class::Dmma && eight_rows(inst));
    sum && read.role == Role::C
}

/// For an instruction that waits for `wgmma` products: the number of latest groups that it leaves in flight.
pub fn group_wait(inst: &Inst) -> Option<u8> {
    (inst.form().name == "WARPGROUP.DEPBAR").then(|| inst.get(Field::Imm2).unwrap_or(0) as u8)
}

/// Whether an instruction closes the current group of `wgmma` products, which includes the instruction itself.
pub fn ends_product_group(inst: &Inst) -> bool {
    inst.is_group_product() && inst.get(Field::Scoreboard) == Some(0)
}

pub(super) fn same(a: Option<Queue>, b: Option<Queue>) -> bool {
    a.is_some() && a == b
}

/// The largest count that a counted wait can leave.
pub(super) const MOST_BEHIND: u8 = 63;

/// A wait until a scoreboard counts at most a given number; textures return in the order of issue.
pub(super) fn counted_wait(inst: &Inst) -> Option<(u8, u8)> {
    let but = inst.get(Field::Imm2).filter(|_| name(inst) == "DEPBAR")?;
    Some((inst.get(Field::Scoreboard)? as u8, but.min(MOST_BEHIND.into()) as u8))
}

/// The scoreboards that are at zero when an instruction issues or, for a `DEPBAR`, when it completes.
pub fn waits(inst: &Inst) -> u8 {
    let mut mask = inst.control.wait;
    if name(inst) == "DEPBAR" {
        mask |= inst.get(Field::Imm3).unwrap_or(0) as u8;
        if let Some(s) = inst.get(Field::Scoreboard)
            && inst.get(Field::Imm2) == Some(0)
        {
            mask |= 1 << s;
        }
    }
    mask
}

pub(super) fn name(inst: &Inst) -> &'static str {
    inst.form().mnemonic
}
