//! The distances that dependent instructions must keep.
//!
//! For fixed latencies, the hardware does not check dependences; the code itself must leave these cycles between the
//! issue of two instructions. There is one table per generation (`latency/*.csv`), with a row per kind of producer and
//! a column per kind of use. Values are the smallest distances in code of ptxas 13.0. They agree with the tables of
//! Mesa's NAK where NAK has a value.

use crate::class::Class;
use crate::inst::Inst;
use crate::model::{Field, RegFile, Role, Sm};
use crate::roles::RegUse;
use std::sync::LazyLock;

/// The result of [`raw`] and [`waw`] for a producer with a variable latency.
pub const UNKNOWN: u8 = u8::MAX;

/// The smallest result of [`raw`] after the reductions for special operands.
const LEAST_READ: u8 = 1;

/// Cycles from any instruction with a fixed latency to an instruction with a variable latency that overwrites its
/// result.
const LEAST_OVERTAKEN: u8 = 6;

/// Cycles from a computation in a uniform register to a move to the same register.
const MOVE_OVERTAKES: u8 = 7;

/// Cycles from the issue of a producer to the issue of a consumer of its result. [`UNKNOWN`] if a scoreboard guards the
/// result. `def` and `read` are the operands of the two that share a register.
pub fn raw(sm: Sm, producer: &Inst, def: &RegUse, consumer: &Inst, read: &RegUse) -> u8 {
    if producer.is_variable(sm) {
        return UNKNOWN;
    }
    // The next instruction can use the value of a convergence barrier.
    if def.file == RegFile::B {
        return 1;
    }
    match producer_row(sm, producer, def) {
        // Integer instructions can read the result of a uniform vote at once.
        Some(Row::UniformVote) if def.file == RegFile::UP && column(sm, consumer, read) == Column::Alu => 1,
        Some(row) => {
            let table = table(sm);
            let column = match column(sm, consumer, read) {
                // `R2UR` reads the results of floating-point arithmetic early.
                Column::Alu if computes_floats(producer) && is_early_move(sm, consumer) => Column::Xu,
                Column::Half if leaves_half_unit(sm, producer, consumer) => Column::Fma,
                column => column,
            };
            let row = row as usize;
            early_low_half(sm, producer, def, column, read)
                .unwrap_or(table[row][column as usize] - late_high_half(sm, def, column, read))
                .saturating_sub(late_operand(sm, consumer, read))
                .max(least_for_product(consumer, read))
        }
        // Other instructions do not write registers.
        None => 1,
    }
}

/// Cycles from the issue of a writer to the issue of another writer of the same register. [`UNKNOWN`] if a scoreboard
/// guards the first result.
pub fn waw(sm: Sm, first: &Inst, def: &RegUse, second: &Inst, over: &RegUse) -> u8 {
    if first.is_variable(sm) {
        return UNKNOWN;
    }
    // The warp that receives the released registers does not know of results that are still to be written to them.
    if second.gives_registers() {
        return longest(sm, first, def);
    }
    let Some(row) = producer_row(sm, first, def) else { return 1 };
    let lands = |column: Column| table(sm)[row as usize][column as usize];
    // The first result must not be written after the second one.
    let cycles = match producer_row(sm, second, over).filter(|_| !second.is_variable(sm)) {
        // A result that a scoreboard guards might be written at once. Comparisons of doubles always take some time.
        None if def.file == RegFile::P && second.class(sm) == Class::Fp64Compare => lands(Column::Guard) - 5,
        None if matches!(def.file, RegFile::P | RegFile::UP) => lands(Column::Guard) - 1,
        None if def.file == RegFile::UR => lands(Column::Uldc) - 1,
        None if matches!(second.class(sm), Class::Fp64 | Class::Fp64Compare) => {
            lands(Column::Alu).saturating_sub(4)
        }
        None => lands(Column::Alu).saturating_sub(1).max(LEAST_OVERTAKEN),
        Some(Row::Half | Row::HalfMma)
            if def.file == RegFile::P && !matches!(row, Row::Half | Row::HalfMma) =>
        {
            // From sm_100 on, their results are written as early as those of other instructions.
            lands(Column::Guard) - if sm.0 >= 100 { 8 } else { 5 }
        }
        Some(Row::Fp64 | Row::Compare64)
            if def.file == RegFile::P && !matches!(row, Row::Fp64 | Row::Compare64) =>
        {
            lands(Column::Guard) - 6
        }
        // Moves to uniform registers are faster than computations.
        Some(Row::UniformMove | Row::UniformVote) if row == Row::Uniform => MOVE_OVERTAKES,
        // The low half of a wide product is written early.
        Some(Row::Wide) if over.count == 2 => lands(Column::Fma).saturating_sub(2),
        Some(second) => lands(Column::Alu).saturating_sub(table(sm)[second as usize][Column::Alu as usize]),
    };
    cycles.max(1)
}

/// Cycles from the issue of a reader to the issue of an instruction that overwrites the register, for readers without a
/// scoreboard. Most instructions read at issue.
pub fn war(sm: Sm, reader: &Inst, read: &RegUse, writer: &Inst) -> u8 {
    let quick = matches!(writer.class(sm), Class::UniformMove | Class::VoteUniform);
    match read.file {
        RegFile::UR if quick && reads_late(sm, reader) => LATE_READ,
        RegFile::UP if quick && reads_late(sm, reader) && read.role != Role::Guard => 2,
        _ => 1,
    }
}

/// The largest result of [`war`].
pub const LATE_READ: u8 = 3;

/// Whether an instruction reads uniform registers after its issue, as computations in uniform registers do.
pub fn reads_late(sm: Sm, inst: &Inst) -> bool {
    inst.class(sm) == Class::Uniform
}

/// Instructions that must keep a distance from certain earlier instructions, whatever registers they use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Spaced {
    /// A matrix product of a warp group.
    Product,
    /// A branch, which may be divergent.
    Branch,
    /// An instruction that ends a group of copies to shared memory, or arrives at a barrier object when the copies are
    /// complete.
    Commit,
}

impl Spaced {
    pub const ALL: [Spaced; 3] = [Spaced::Product, Spaced::Branch, Spaced::Commit];

    pub fn of(inst: &Inst) -> Option<Spaced> {
        match inst.form().mnemonic {
            _ if inst.is_group_product() => Some(Spaced::Product),
            "BRA" => Some(Spaced::Branch),
            "LDGDEPBAR" | "ARRIVES" => Some(Spaced::Commit),
            _ => None,
        }
    }

    /// Cycles from the issue of an instruction to the issue of the next instruction of this kind. These are the
    /// smallest distances in code of ptxas: from an arrival to a product, 6; from a product to the next one, one cycle
    /// per eight columns, minus 4; from an instruction that sets a convergence barrier to a branch, 4, from sm_90 on;
    /// from the last copy to the end of its group, 2.
    pub fn after(self, sm: Sm, inst: &Inst) -> u8 {
        match self {
            Spaced::Product if inst.is_group_arrival() => ARRIVAL,
            Spaced::Product if inst.is_group_product() => {
                let columns = inst.text(Field::Size).and_then(|shape| shape.split('x').nth(1));
                let columns: u16 = columns.and_then(|columns| columns.parse().ok()).unwrap_or(0);
                (columns / 8).saturating_sub(4) as u8
            }
            Spaced::Branch if sm.0 >= 90 && inst.form().mnemonic == "BSSY" => 4,
            Spaced::Commit if inst.form().mnemonic == "LDGSTS" => 2,
            _ => 0,
        }
    }
}

const ARRIVAL: u8 = 6;

/// The smallest distances in code of ptxas from arithmetic to a warp group's product that reads the result as its left
/// matrix, and to one that reads it as its accumulator. The arrival between them comes [`ARRIVAL`] cycles before the
/// product.
const LEFT_MATRIX: u8 = 10;
const SUM: u8 = 12;

/// The lower bound of [`raw`] for general registers that a warp group's product reads, and for the arrival before the
/// product.
fn least_for_product(consumer: &Inst, read: &RegUse) -> u8 {
    if read.file != RegFile::R {
        return LEAST_READ;
    }
    let cycles = if read.role == Role::C { SUM } else { LEFT_MATRIX };
    match consumer {
        arrival if arrival.is_group_arrival() => cycles - ARRIVAL,
        product if product.is_group_product() => cycles,
        _ => LEAST_READ,
    }
}

/// Cycles from the issue of a producer after which its result can be read and overwritten: no [`raw`] or [`waw`] of it
/// is larger. [`UNKNOWN`] if a scoreboard guards the result.
pub fn longest(sm: Sm, producer: &Inst, def: &RegUse) -> u8 {
    if producer.is_variable(sm) {
        return UNKNOWN;
    }
    let row = producer_row(sm, producer, def);
    row.map_or(1, |row| table(sm)[row as usize].into_iter().max().unwrap_or(1))
}

/// Cycles until arithmetic, or a guard if `guard` is set, can read the result of a producer. [`UNKNOWN`] if a
/// scoreboard guards the result.
pub(crate) fn typical(sm: Sm, producer: &Inst, def: &RegUse, guard: bool) -> u8 {
    if producer.is_variable(sm) {
        return UNKNOWN;
    }
    let column = if guard { Column::Guard } else { Column::Alu };
    producer_row(sm, producer, def).map_or(1, |row| table(sm)[row as usize][column as usize])
}

fn computes_floats(inst: &Inst) -> bool {
    matches!(inst.form().mnemonic, "FFMA" | "FMUL" | "FADD" | "HFMA2" | "HMUL2" | "HADD2")
}

/// The units for halves. A unit's own instructions read its results a cycle earlier than others do.
#[derive(Clone, Copy, PartialEq, Eq)]
enum HalfUnit {
    Arithmetic,
    Comparison,
}

/// The unit of an instruction; `None` for `HADD2.F32`, which reads late and whose result is read late.
fn half_unit(sm: Sm, inst: &Inst) -> Option<HalfUnit> {
    match inst.class(sm) {
        Class::Half if ["HSET2", "HSETP2", "HMNMX2", "VHMNMX"].contains(&inst.form().mnemonic) => {
            Some(HalfUnit::Comparison)
        }
        Class::Half => Some(HalfUnit::Arithmetic),
        _ => None,
    }
}

fn leaves_half_unit(sm: Sm, producer: &Inst, consumer: &Inst) -> bool {
    let unit = half_unit(sm, producer);
    sm.0 >= 80
        && matches!(producer.class(sm), Class::Half | Class::HalfToSingle)
        && (unit.is_none() || unit != half_unit(sm, consumer))
}

fn is_early_move(sm: Sm, inst: &Inst) -> bool {
    (80..90).contains(&sm.0) && inst.form().mnemonic == "R2UR"
}

/// The low half of a wide product can be read before the high half.
fn early_low_half(sm: Sm, producer: &Inst, def: &RegUse, column: Column, read: &RegUse) -> Option<u8> {
    let low =
        sm.0 >= 90 && producer.class(sm) == Class::ImadWide && def.count == 2 && read.file == RegFile::R;
    let only_low = read.count == 1 && read.index == def.index;
    match column {
        Column::Alu | Column::Light if low && only_low => Some(3),
        Column::Factor if low && only_low => Some(4),
        _ => None,
    }
}

/// Cycles by which the data operand of an atomic is read later than its address.
fn late_operand(sm: Sm, consumer: &Inst, read: &RegUse) -> u8 {
    let late = (80..90).contains(&sm.0) && consumer.class(sm) == Class::Atomic && read.role == Role::Data;
    if late { 5 } else { 0 }
}

/// Cycles by which the high half of an addend is read later than the low half.
fn late_high_half(sm: Sm, def: &RegUse, column: Column, read: &RegUse) -> u8 {
    let high = read.file == RegFile::R && read.count == 2 && def.index > read.index;
    match column {
        Column::Addend if high && sm.0 >= 90 => 2,
        _ => 0,
    }
}

macro_rules! names {
    ($name:ident { $($variant:ident $text:literal),* $(,)? }) => {
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        enum $name { $($variant),* }

        impl $name {
            const NAMES: &'static [&'static str] = &[$($text),*];
        }
    };
}

names! { Row {
    Alu "alu", Light "light", Long "long", Extreme "extreme", Fma "fma", Wide "wide", Half "half", HalfMma "halfmma", Fp64 "fp64",
    Compare64 "compare64", Clock "clock", Vote "vote", Uniform "uniform", UniformMove "uniformmove",
    UniformVote "uniformvote", Hmma16 "hmma16", Hmma32 "hmma32", Imma16 "imma16", Imma32 "imma32", Dmma "dmma",
    Imma8 "imma8", ToUniform "touniform", ToUniformTold "touniformtold",
} }

names! { Column {
    Alu "alu", Light "light", Long "long", Extreme "extreme", Fma "fma", Factor "factor", Addend "addend", Half "half", HalfMma "halfmma",
    Fp64 "fp64", Xu "xu", Memory "memory", Ldg "ldg", Texture "texture", Guard "guard", Predicate64 "predicate64", Tensor "tensor", Accumulate "accumulate",
    Uniform "uniform", Move "move", Uldc "uldc",
} }

const ROWS: usize = Row::NAMES.len();
const COLUMNS: usize = Column::NAMES.len();

fn producer_row(sm: Sm, inst: &Inst, def: &RegUse) -> Option<Row> {
    Some(match inst.class(sm) {
        _ if inst.form().mnemonic == "ELECT" && def.file == RegFile::UR => Row::UniformVote,
        _ if inst.form().mnemonic == "ELECT" => Row::Alu,
        _ if inst.form().mnemonic == "CS2UR" => Row::Uniform,
        // Integer instructions read the result of a half comparison as early as that of an integer comparison.
        _ if sm.0 >= 120 && inst.form().mnemonic == "HSETP2" => Row::Alu,
        _ if is_light(sm, inst) => Row::Light,
        _ if is_extreme(sm, inst) => Row::Extreme,
        _ if is_long(sm, inst) => Row::Long,
        Class::Alu => Row::Alu,
        Class::Fma => Row::Fma,
        Class::ImadWide => Row::Wide,
        Class::Half | Class::HalfToSingle => Row::Half,
        Class::HalfMma => Row::HalfMma,
        Class::Fp64 => Row::Fp64,
        Class::Fp64Compare => Row::Compare64,
        // One half of a clock can be read as early as the result of a move.
        Class::Cs2r if inst.get(Field::Wide) == Some(0) => Row::Alu,
        Class::Cs2r => Row::Clock,
        // Instructions of this class with a fixed latency: `LEPC`, moves to barriers.
        Class::S2r => Row::Clock,
        Class::Vote => Row::Vote,
        Class::VoteUniform => Row::UniformVote,
        Class::Uniform => Row::Uniform,
        Class::UniformMove => Row::UniformMove,
        Class::Hmma16 | Class::Hmma32 if takes_two_steps(inst) => Row::Hmma32,
        Class::Hmma16 | Class::Hmma32 => Row::Hmma16,
        Class::Imma16 | Class::Imma32 if has_eight_rows(inst) => Row::Imma8,
        Class::Imma16 | Class::Imma32 if takes_two_steps(inst) => Row::Imma32,
        Class::Imma16 | Class::Imma32 => Row::Imma16,
        Class::Dmma => Row::Dmma,
        // The predicate that says where lanes differ.
        Class::UniformLoad if def.file == RegFile::P => Row::ToUniformTold,
        Class::UniformLoad => Row::ToUniform,
        _ => return None,
    })
}

/// Whether the instruction runs on a second integer unit, beside the one for shifts, logic and additions. On sm_90 to
/// sm_110, this unit adds two numbers; from sm_120 on, it executes moves, selections, comparisons, minima and maxima,
/// including those of halves.
fn is_light(sm: Sm, inst: &Inst) -> bool {
    match inst.form().name {
        "VIADD" => true,
        "MOV" | "SEL" | "ISETP" | "FSETP" | "FSET" | "FSEL" | "FMNMX" | "VIMNMX" | "HMNMX2" | "HSET2"
        | "HSETP2" => sm.0 >= 120,
        _ => false,
    }
}

/// Whether the instruction runs on sm_120's unit for 64-bit additions, selections and moves.
fn is_long(sm: Sm, inst: &Inst) -> bool {
    sm.0 >= 120 && inst.class(sm) == Class::Alu && inst.form().name.ends_with(".64") && !is_extreme(sm, inst)
}

/// Whether the instruction runs on sm_120's unit for 64-bit comparisons, minima and maxima.
fn is_extreme(sm: Sm, inst: &Inst) -> bool {
    sm.0 >= 120 && matches!(inst.form().name, "ISETP.64" | "IMNMX")
}

/// Whether this is a matrix product with eight rows instead of sixteen.
fn has_eight_rows(inst: &Inst) -> bool {
    matches!(inst.text(Field::Size), Some(".8816" | ".8832" | ".88128"))
}

/// Whether the matrix product is too deep for one step of the unit.
fn takes_two_steps(inst: &Inst) -> bool {
    let longest = match inst.form().name {
        "HMMA" | "HMMA.SP.TF32" => ".16816",
        "HMMA.TF32" => ".1688",
        "HMMA.SP" | "IMMA" | "QMMA" => ".16832",
        "IMMA.S4" | "IMMA.SP" | "QMMA.SP" => ".16864",
        "IMMA.SP.S4" => ".168128",
        "BMMA" => ".168256",
        _ => return false,
    };
    inst.text(Field::Size) == Some(longest)
}

fn column(sm: Sm, inst: &Inst, read: &RegUse) -> Column {
    if read.role == Role::Guard {
        return Column::Guard;
    }
    let predicate = matches!(read.file, RegFile::P | RegFile::UP);
    match inst.class(sm) {
        _ if is_long(sm, inst) && !predicate => Column::Long,
        _ if is_extreme(sm, inst) && !predicate => Column::Extreme,
        _ if is_light(sm, inst) || is_long(sm, inst) || is_extreme(sm, inst) => Column::Light,
        // Votes and half instructions read predicates at the time of the guard; double instructions have a time of
        // their own.
        Class::Vote | Class::VoteUniform if read.file == RegFile::P => Column::Guard,
        Class::Fp64 | Class::Fp64Compare if predicate => Column::Predicate64,
        Class::Alu | Class::Vote | Class::Cs2r => Column::Alu,
        Class::Fma => Column::Fma,
        // Before sm_90, a carry is read at the same time as the factors.
        Class::ImadWide if read.role == Role::C || predicate && sm.0 >= 90 => Column::Addend,
        Class::ImadWide => Column::Factor,
        Class::Half if predicate && sm.0 != 103 => Column::Guard,
        Class::Half | Class::HalfToSingle => Column::Half,
        Class::HalfMma => Column::HalfMma,
        Class::Fp64 | Class::Fp64Compare => Column::Fp64,
        Class::Uniform | Class::VoteUniform => Column::Uniform,
        Class::UniformMove if inst.form().mnemonic == "ULDC" => Column::Uldc,
        // A uniform move reads uniform registers earlier than a uniform computation.
        Class::UniformMove => Column::Move,
        // A step of a product of a quarter-warp reads its sources as late as a double instruction.
        _ if inst.form().name == "HMMA.884" && !predicate => Column::Fp64,
        Class::Hmma16 | Class::Hmma32 | Class::Imma16 | Class::Imma32 | Class::Dmma
            if read.role == Role::C =>
        {
            Column::Accumulate
        }
        Class::Hmma16 | Class::Hmma32 | Class::Imma16 | Class::Imma32 | Class::Dmma => Column::Tensor,
        // All other instructions read predicates at the time of the guard.
        _ if predicate => Column::Guard,
        Class::Xu | Class::LoadConstant | Class::Branch => Column::Xu,
        Class::UniformLoad if inst.form().mnemonic == "R2UR" && sm.0 >= 80 => Column::Alu,
        Class::UniformLoad => Column::Xu,
        // Operations on barrier objects read data in uniform registers later than addresses.
        _ if inst.form().mnemonic == "SYNCS" && read.file == RegFile::UR => match read.role {
            Role::Data => Column::Uldc,
            _ => Column::Memory,
        },
        _ if ["MATCH", "SYNCS", "WARPGROUP"].iter().any(|m| inst.form().mnemonic.starts_with(m)) => {
            Column::Xu
        }
        Class::Texture => Column::Texture,
        _ if ["SUST", "SURED", "SUATOM", "STTM"].contains(&inst.form().mnemonic) => Column::Texture,
        Class::Load if inst.form().mnemonic == "LDG" => Column::Ldg,
        Class::Load if inst.form().mnemonic == "LD" && sm.0 < 100 => Column::Ldg,
        _ => Column::Memory,
    }
}

type Table = [[u8; COLUMNS]; ROWS];

/// The first generation of each table. A run of a program uses few of them.
static TABLES: [(u8, LazyLock<Table>); 5] = [
    (75, LazyLock::new(|| parse(include_str!("latency/sm75.csv")))),
    (80, LazyLock::new(|| parse(include_str!("latency/sm80.csv")))),
    (90, LazyLock::new(|| parse(include_str!("latency/sm90.csv")))),
    (100, LazyLock::new(|| parse(include_str!("latency/sm100.csv")))),
    (120, LazyLock::new(|| parse(include_str!("latency/sm120.csv")))),
];

fn table(sm: Sm) -> &'static Table {
    let newest = TABLES.iter().rposition(|(first, _)| *first <= sm.0).unwrap_or(0);
    &TABLES[newest].1
}

/// Parses a table. The tests check that the files are complete. A producer that a generation lacks has no row.
fn parse(text: &str) -> Table {
    let mut table = [[UNKNOWN; COLUMNS]; ROWS];
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().unwrap_or("").split(',').skip(1).collect();
    for line in lines {
        let mut cells = line.split(',');
        let Some(row) = cells.next().and_then(|name| Row::NAMES.iter().position(|n| *n == name)) else {
            continue;
        };
        for (cell, name) in cells.zip(&header) {
            if let (Ok(cycles), Some(column)) = (cell.parse(), Column::NAMES.iter().position(|n| n == name)) {
                table[row][column] = cycles;
            }
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The distance between two instructions. The second reads the result of the first.
    fn distance(sm: u8, producer: &str, consumer: &str) -> u8 {
        let sm = Sm(sm);
        let parse = |text| crate::parse(sm, text, 0).unwrap_or_else(|e| panic!("{text}: {}", e.message));
        let (producer, consumer) = (parse(producer), parse(consumer));
        let def = producer.writes(sm).next().expect("a result");
        let overlaps = |read: &RegUse| {
            read.file == def.file && read.index < def.index + def.count && def.index < read.index + read.count
        };
        let read = consumer.reads(sm).find(overlaps).expect("a reader");
        raw(sm, &producer, &def, &consumer, &read)
    }

    #[test]
    fn products_take_as_long_as_their_common_dimension() {
        let store = "STG.E [R2.64], R12";
        assert_eq!(distance(80, "HMMA.16816.F32 R12, R4, R8, R12", store), 23);
        assert_eq!(distance(80, "HMMA.1688.F32 R12, R4, R8, R12", store), 15);
        assert_eq!(distance(80, "HMMA.1688.F32.TF32 R12, R4, R8, R12", store), 23);
        assert_eq!(distance(80, "HMMA.1684.F32.TF32 R12, R4, R8, R12", store), 15);
        assert_eq!(distance(80, "IMMA.8816.S8.S8 R12, R4.ROW, R8.COL, R12", store), 12);
        assert_eq!(distance(80, "IMMA.16816.S8.S8 R12, R4.ROW, R8.COL, R12", store), 15);
        assert_eq!(distance(80, "IMMA.16832.S8.S8 R12, R4.ROW, R8.COL, R12", store), 23);
        assert_eq!(distance(80, "BMMA.168256.XOR.POPC R12, R4.ROW, R8.COL, R12", store), 23);
    }

    #[test]
    fn steps_of_quarter_warp_products_read_their_sources_late() {
        let step = "HMMA.884.F16.F16.STEP0 R8, R4.ROW, R6.COL, R10";
        for source in [4, 6, 10] {
            assert_eq!(distance(75, &format!("MOV R{source}, RZ"), step), 6);
            assert_eq!(distance(75, &format!("HADD2 R{source}, R0, R1"), step), 8);
        }
    }

    #[test]
    fn a_pair_of_zeros_reaches_products_of_singles_as_soon_as_sums() {
        for sm in [75, 80, 90] {
            assert_eq!(distance(sm, "CS2R R6, SRZ", "FMUL R8, R6, R6"), 6);
            assert_eq!(distance(sm, "CS2R R6, SRZ", "IADD3 R8, R6, R6, RZ"), 6);
        }
    }

    #[test]
    fn votes_doubles_and_halves_read_predicates_when_guards_are_read() {
        for sm in [75, 80, 90, 100, 120] {
            let compare = "ISETP.NE.AND P0, PT, R4, RZ, PT";
            let late = if sm == 120 { 5 } else { distance(sm, compare, "@P0 MOV R7, RZ") };
            assert_eq!(distance(sm, compare, "HSETP2.GT.AND P1, PT, R2, R3, P0"), late, "sm_{sm}");
            let guard = distance(sm, compare, "@P0 MOV R7, RZ");
            assert!(guard >= 12, "sm_{sm}: {guard}");
            assert_eq!(distance(sm, compare, "VOTE.ANY R7, PT, P0"), guard, "sm_{sm}");
            assert_eq!(distance(sm, compare, "VOTEU.ANY UR4, UPT, P0"), guard, "sm_{sm}");
            assert_eq!(distance(sm, compare, "DSETP.GT.AND P1, PT, R2, R4, P0"), guard, "sm_{sm}");
            let early = if sm == 120 { 5 } else { 4 };
            assert_eq!(distance(sm, compare, "SEL R7, RZ, 0x1, !P0"), early, "sm_{sm}");
        }
    }

    #[test]
    fn units_for_halves_read_results_of_each_other_late() {
        for sm in [80, 86, 90, 100, 120] {
            let (sum, smaller) = ("HADD2 R2, R4, R5", "HMNMX2 R2, R4, R5, PT");
            assert_eq!(distance(sm, sum, "HFMA2 R7, R2, R6, R6"), 4, "sm_{sm}");
            assert_eq!(distance(sm, sum, "HADD2.F32 R7, -RZ, R2.H0_H0"), 5, "sm_{sm}");
            assert_eq!(distance(sm, sum, "HSET2.BF.LT.AND R7, R2, R6, PT"), 5, "sm_{sm}");
            let own = if sm == 120 { 5 } else { 4 };
            assert_eq!(distance(sm, smaller, "HSET2.BF.LT.AND R7, R2, R6, PT"), own, "sm_{sm}");
            assert_eq!(distance(sm, smaller, "HADD2 R7, R2, R6"), 5, "sm_{sm}");
            let single = "HADD2.F32 R2, -RZ, R4.H0_H0";
            assert_eq!(distance(sm, single, "HADD2.F32 R7, -RZ, R2.H0_H0"), 5, "sm_{sm}");
            assert_eq!(distance(sm, single, "HADD2 R7, R2, R6"), 5, "sm_{sm}");
        }
    }

    /// The distance between two instructions that write the same register.
    fn overtaken(sm: u8, first: &str, second: &str) -> u8 {
        let sm = Sm(sm);
        let parse = |text| crate::parse(sm, text, 0).unwrap_or_else(|e| panic!("{text}: {}", e.message));
        let (first, second) = (parse(first), parse(second));
        let def = first.writes(sm).next().expect("a result");
        let over = second.writes(sm).find(|over| over.file == def.file && over.index == def.index);
        waw(sm, &first, &def, &second, &over.expect("another writer"))
    }

    #[test]
    fn what_a_scoreboard_guards_may_overtake_what_takes_known_time() {
        for sm in [80, 90, 100] {
            assert_eq!(overtaken(sm, "MOV R2, RZ", "MUFU.RCP R2, R4"), 6, "sm_{sm}");
            let vote = "MATCH.ALL P0, R7, R4";
            assert_eq!(overtaken(sm, "ISETP.NE.AND P0, PT, R4, RZ, PT", vote), 12, "sm_{sm}");
            let halves = "HSETP2.GT.AND P0, PT, R2, R3, PT";
            let wanted = if sm >= 100 { 5 } else { 8 };
            assert_eq!(overtaken(sm, "ISETP.NE.AND P0, PT, R4, RZ, PT", halves), wanted, "sm_{sm}");
        }
        assert_eq!(overtaken(90, "UIADD3 UR4, UR5, UR6, URZ", "UMOV UR4, 0x1"), 7);
    }

    #[test]
    fn comparisons_of_doubles_overtake_carries_sooner_than_votes_do() {
        let carry = "IADD3 R2, P0, R4, R5, RZ";
        let over = |sm| {
            let parse = |text| crate::parse(Sm(sm), text, 0).expect(text);
            let (sum, compare) = (parse(carry), parse("DSETP.GT.AND P0, PT, R6, R8, PT"));
            let find =
                |inst: &Inst| inst.writes(Sm(sm)).find(|def| def.file == RegFile::P).expect("a predicate");
            waw(Sm(sm), &sum, &find(&sum), &compare, &find(&compare))
        };
        assert_eq!((over(80), over(86)), (8, 8));
    }

    #[test]
    fn logic_reads_predicates_of_uniform_votes_at_once() {
        for sm in [80, 90, 100] {
            let sm = Sm(sm);
            let parse = |text| crate::parse(sm, text, 0).expect(text);
            let (vote, logic) =
                (parse("VOTEU.ANY UP0, P0"), parse("PLOP3.LUT P1, PT, P2, PT, UP0, 0x80, 0x0"));
            let def = vote.writes(sm).find(|def| def.file == RegFile::UP).expect("a predicate");
            let read = logic.reads(sm).find(|read| read.file == RegFile::UP).expect("a source");
            assert_eq!(raw(sm, &vote, &def, &logic, &read), 1, "{sm:?}");
        }
    }

    #[test]
    fn only_products_with_a_low_half_land_early() {
        let sum = "FFMA R7, R4, R5, R6";
        for sm in [80, 90, 100, 120] {
            assert_eq!(overtaken(sm, sum, "IMAD.HI R7, R2, R3, RZ"), 1, "sm_{sm}");
        }
    }

    #[test]
    fn uniform_arithmetic_reads_late() {
        let sm = Sm(90);
        let parse = |text| crate::parse(sm, text, 0).expect(text);
        let sum = parse("UIADD3 UR5, UR4, 0x1, URZ");
        let read = sum.reads(sm).find(|read| read.index == 4).expect("a source");
        assert_eq!(war(sm, &sum, &read, &parse("UMOV UR4, 0x1")), 3);
        assert_eq!(war(sm, &sum, &read, &parse("ULDC UR4, c[0x0][0x0]")), 3);
        assert_eq!(war(sm, &sum, &read, &parse("UIADD3 UR4, UR6, 0x1, URZ")), 1);
    }

    #[test]
    fn wide_products_follow_each_other_later_before_sm_90() {
        let product = "IMAD.WIDE.U32 R4, R2, R3, RZ";
        for (sm, cycles) in [(75, 6), (80, 6), (89, 6), (90, 4), (100, 4), (120, 4)] {
            assert_eq!(distance(sm, product, "IMAD.WIDE.U32 R6, R8, R9, R4"), cycles, "sm_{sm}");
            assert_eq!(distance(sm, product, "IMAD R6, R8, R9, R4"), 4, "sm_{sm}");
        }
    }

    #[test]
    fn textures_read_registers_later_on_sm_75() {
        for (sm, cycles) in [(75, 6), (80, 4), (89, 4)] {
            let read = "TEX.LL RZ, R6, R4, R7, 0x0, 0x5c, 2D";
            assert_eq!(distance(sm, "MOV R7, R3", read), cycles, "sm_{sm}");
        }
    }

    #[test]
    fn moves_to_uniform_registers_read_products_later_than_sums() {
        for sm in [80, 90, 100, 120] {
            let (sum, product) = ("LOP3.LUT R2, R4, R5, RZ, 0x3c, !PT", "IMAD R2, R4, R5, RZ");
            assert_eq!(distance(sm, sum, "R2UR UR4, R2"), 4, "sm_{sm}");
            assert_eq!(distance(sm, product, "R2UR UR4, R2"), 5, "sm_{sm}");
            let cycles = if sm == 80 { 4 } else { 5 };
            assert_eq!(distance(sm, "FFMA R2, R4, R5, R6", "R2UR UR4, R2"), cycles, "sm_{sm}");
            assert_eq!(distance(sm, "HFMA2 R2, R4, R5, R6", "R2UR UR4, R2"), cycles, "sm_{sm}");
        }
    }

    #[test]
    fn moves_of_uniform_registers_read_early_and_barrier_objects_late() {
        let sum = "UIADD3 UR4, UR6, 0x1, URZ";
        for sm in [75, 80, 90] {
            assert_eq!(distance(sm, sum, "UMOV UR8, UR4"), 7, "sm_{sm}");
            assert_eq!(distance(sm, sum, "UIADD3 UR8, UR4, 0x1, URZ"), 4, "sm_{sm}");
            assert_eq!(distance(sm, "UMOV UR4, 0x1", "UMOV UR8, UR4"), 2, "sm_{sm}");
        }
        assert_eq!(distance(90, sum, "SYNCS.EXCH.64 URZ, [UR4], UR8"), 9);
        assert_eq!(distance(90, sum, "SYNCS.EXCH.64 URZ, [UR8], UR4"), 12);
    }

    #[test]
    fn two_units_exchange_integers_later_than_each_of_them() {
        let (sum, shift) = ("IADD3 R2, PT, PT, R4, R5, RZ", "SHF.L.U32 R7, R2, 0x1, RZ");
        let (moved, chosen) = ("MOV R2, R4", "SEL R7, R2, R5, P0");
        for (sm, across) in [(100, 4), (110, 4), (120, 5), (121, 5)] {
            assert_eq!(distance(sm, sum, shift), 4, "sm_{sm}");
            assert_eq!(distance(sm, sum, chosen), across, "sm_{sm}");
            assert_eq!(distance(sm, moved, shift), across, "sm_{sm}");
            assert_eq!(distance(sm, moved, chosen), across, "sm_{sm}");
            assert_eq!(distance(sm, "ISETP.NE.U32.AND P0, PT, R4, RZ, PT", chosen), across, "sm_{sm}");
        }
        let long = "IADD.64 R2, R4, R6";
        assert_eq!(distance(120, long, "IADD.64 R8, R2, R6"), 4);
        assert_eq!(distance(120, long, "SEL.64 R8, R2, R6, P0"), 4);
        let extreme = "IMNMX.S64 PT, PT, R2, R4, R6, PT, !PT";
        for (result, within, across) in [(long, 6, 4), (extreme, 4, 6)] {
            assert_eq!(distance(120, result, "ISETP.GT.S64.AND P0, PT, R2, R6, PT"), within);
            assert_eq!(distance(120, result, "IMNMX.U64 PT, PT, R8, R2, R6, PT, !PT"), within);
            assert_eq!(distance(120, result, "IADD.64 R8, R2, R6"), across);
            assert_eq!(distance(120, result, "SEL.64 R8, R2, R6, P0"), across);
        }
        assert_eq!(distance(120, long, shift), 5);
        assert_eq!(distance(120, long, chosen), 6);
        let halves = "HSETP2.GT.AND P0, PT, R2, R3, PT";
        assert_eq!(distance(120, halves, "PLOP3.LUT P1, PT, P0, P2, PT, 0x80, 0x8"), 4);
        assert_eq!(distance(120, halves, chosen), 5);
        let compared = "ISETP.GT.S64.AND P0, PT, R4, R6, PT";
        assert_eq!(distance(120, compared, chosen), 6);
        assert_eq!(distance(120, compared, "SEL.64 R8, R4, R6, P0"), 6);
        assert_eq!(distance(120, compared, "@P0 MOV R7, R5"), 14);
    }

    #[test]
    fn tables_are_complete() {
        for (first, table) in &TABLES {
            for (row, name) in table.iter().zip(Row::NAMES) {
                let absent = match *name {
                    "halfmma" => *first >= 100,
                    "long" | "extreme" => *first < 120,
                    _ => false,
                };
                for cycles in row {
                    assert_eq!(*cycles == UNKNOWN, absent, "sm_{first} {name}");
                    assert!(absent || (1..=32).contains(cycles), "sm_{first} {name}");
                }
            }
        }
    }
}
