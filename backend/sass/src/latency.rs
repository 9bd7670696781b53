//! Issue distances between instructions that depend on each other.
//!
//! The hardware does not check fixed latencies; these are the cycles that code must leave. One table per
//! generation (`latency/*.csv`): a row per kind of producer, a column per kind of use. Values are the smallest
//! distances that ptxas 13.0 leaves, which agree with the tables of Mesa's NAK where both have one.

use crate::class::Class;
use crate::inst::Inst;
use crate::model::{Field, RegFile, Role, Sm};
use crate::roles::RegUse;
use std::sync::LazyLock;

/// The result of [`raw`] and [`waw`] for a producer whose latency is not fixed.
pub const UNKNOWN: u8 = u8::MAX;

/// The shortest distance seen where it is shortened by what an operand is for.
const LEAST_READ: u8 = 1;

/// No result that a scoreboard guards lands earlier after issue.
const LEAST_VARIABLE: u8 = 8;

/// Cycles from the issue of a producer to that of a consumer of its result; [`UNKNOWN`] where only a
/// scoreboard tells. `def` and `read` are the operands of the two that share a register.
pub fn raw(sm: Sm, producer: &Inst, def: &RegUse, consumer: &Inst, read: &RegUse) -> u8 {
    if producer.is_variable(sm) {
        return UNKNOWN;
    }
    // What a convergence barrier holds is there for the next instruction.
    if def.file == RegFile::B {
        return 1;
    }
    match producer_row(sm, producer, def) {
        Some(row) => {
            let table = table(sm);
            let (row, column) = (row as usize, column(sm, consumer, read));
            early_low_half(sm, producer, def, column, read)
                .or(early_predicate(sm, producer, def, column))
                .unwrap_or(table[row][column as usize] - late_high_half(sm, def, column, read))
                .saturating_sub(late_operand(sm, consumer, read))
                .max(LEAST_READ)
        }
        // Nothing else writes registers.
        None => 1,
    }
}

/// Cycles from the issue of a writer to that of another one of the same register; [`UNKNOWN`] where only a
/// scoreboard tells.
pub fn waw(sm: Sm, first: &Inst, def: &RegUse, second: &Inst, over: &RegUse) -> u8 {
    if first.is_variable(sm) {
        return UNKNOWN;
    }
    let Some(row) = producer_row(sm, first, def) else { return 1 };
    // The first result must not land after the second one.
    let lands = |row: Row| table(sm)[row as usize][Column::Alu as usize];
    let second = match producer_row(sm, second, over) {
        Some(row) if !second.is_variable(sm) => lands(row),
        _ => LEAST_VARIABLE,
    };
    lands(row).saturating_sub(second).max(1)
}

/// Cycles from the issue of a reader, which reads at issue, to that of an instruction that overwrites what it read.
pub const WAR: u8 = 1;

/// Cycles from the issue of a producer after which no reader can be too early: no [`raw`] or [`waw`] of it is
/// longer. [`UNKNOWN`] where only a scoreboard tells.
pub fn longest(sm: Sm, producer: &Inst, def: &RegUse) -> u8 {
    if producer.is_variable(sm) {
        return UNKNOWN;
    }
    let row = producer_row(sm, producer, def);
    row.map_or(1, |row| table(sm)[row as usize].into_iter().max().unwrap_or(1))
}

/// Cycles until a result of a producer can be read by arithmetic, or by a guard; [`UNKNOWN`] where only a scoreboard tells.
pub(crate) fn typical(sm: Sm, producer: &Inst, def: &RegUse, guard: bool) -> u8 {
    if producer.is_variable(sm) {
        return UNKNOWN;
    }
    let column = if guard { Column::Guard } else { Column::Alu };
    producer_row(sm, producer, def).map_or(1, |row| table(sm)[row as usize][column as usize])
}

/// The low half of a wide product is there before the high one.
fn early_low_half(sm: Sm, producer: &Inst, def: &RegUse, column: Column, read: &RegUse) -> Option<u8> {
    let low =
        sm.0 >= 90 && producer.class(sm) == Class::ImadWide && def.count == 2 && read.file == RegFile::R;
    let only_low = read.count == 1 && read.index == def.index;
    match column {
        Column::Alu | Column::Viadd if low && only_low => Some(3),
        Column::Factor if low && only_low => Some(4),
        _ => None,
    }
}

/// What halves compare to is there before what they compute.
fn early_predicate(sm: Sm, producer: &Inst, def: &RegUse, column: Column) -> Option<u8> {
    let early = sm.0 >= 100 && producer.class(sm) == Class::Half && def.file == RegFile::P;
    (early && column == Column::Alu).then_some(4)
}

/// Cycles by which the operand of an atomic is read later than its address.
fn late_operand(sm: Sm, consumer: &Inst, read: &RegUse) -> u8 {
    let late = (80..90).contains(&sm.0) && consumer.class(sm) == Class::Atomic && read.role == Role::Data;
    if late { 5 } else { 0 }
}

/// Cycles by which the high half of an addend is read later than the low one.
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
    Alu "alu", Viadd "viadd", Fma "fma", Wide "wide", Half "half", HalfMma "halfmma", Fp64 "fp64",
    Compare64 "compare64", Clock "clock", Vote "vote", Uniform "uniform", UniformMove "uniformmove",
    UniformVote "uniformvote", Hmma16 "hmma16", Hmma32 "hmma32", Imma16 "imma16", Imma32 "imma32", Dmma "dmma",
    Imma8 "imma8", ToUniform "touniform", ToUniformTold "touniformtold",
} }

names! { Column {
    Alu "alu", Viadd "viadd", Fma "fma", Factor "factor", Addend "addend", Half "half", HalfMma "halfmma",
    Fp64 "fp64", Xu "xu", Memory "memory", Ldg "ldg", Texture "texture", Guard "guard", Tensor "tensor", Accumulate "accumulate",
    Uniform "uniform", Uldc "uldc",
} }

const ROWS: usize = Row::NAMES.len();
const COLUMNS: usize = Column::NAMES.len();

fn producer_row(sm: Sm, inst: &Inst, def: &RegUse) -> Option<Row> {
    Some(match inst.class(sm) {
        _ if inst.form().mnemonic == "ELECT" && def.file == RegFile::UR => Row::UniformVote,
        _ if inst.form().mnemonic == "ELECT" => Row::Alu,
        _ if inst.form().mnemonic == "CS2UR" => Row::Uniform,
        Class::Alu if inst.form().mnemonic == "VIADD" => Row::Viadd,
        Class::Alu => Row::Alu,
        Class::Fma => Row::Fma,
        Class::ImadWide => Row::Wide,
        Class::Half | Class::HalfToSingle => Row::Half,
        Class::HalfMma => Row::HalfMma,
        Class::Fp64 => Row::Fp64,
        Class::Fp64Compare => Row::Compare64,
        // Half of a clock is read as fast as a register is moved.
        Class::Cs2r if inst.get(Field::Wide) == Some(0) => Row::Alu,
        Class::Cs2r => Row::Clock,
        // What is fixed among what is not otherwise: `LEPC`, moves to barriers.
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
        // Where lanes differ.
        Class::UniformLoad if def.file == RegFile::P => Row::ToUniformTold,
        Class::UniformLoad => Row::ToUniform,
        _ => return None,
    })
}

/// A product of a matrix with eight rows, not sixteen.
fn has_eight_rows(inst: &Inst) -> bool {
    matches!(inst.text(Field::Size), Some(".8816" | ".8832" | ".88128"))
}

/// A product whose common dimension is too long for one step of the unit.
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
        Class::Alu if inst.form().mnemonic == "VIADD" => Column::Viadd,
        Class::Alu | Class::Vote | Class::Cs2r => Column::Alu,
        Class::Fma => Column::Fma,
        Class::ImadWide if read.role == Role::C || predicate => Column::Addend,
        Class::ImadWide => Column::Factor,
        Class::Half | Class::HalfToSingle => Column::Half,
        Class::HalfMma => Column::HalfMma,
        Class::Fp64 | Class::Fp64Compare => Column::Fp64,
        Class::Uniform | Class::VoteUniform => Column::Uniform,
        Class::UniformMove if inst.form().mnemonic == "ULDC" => Column::Uldc,
        Class::UniformMove => Column::Uniform,
        Class::Hmma16 | Class::Hmma32 | Class::Imma16 | Class::Imma32 | Class::Dmma
            if read.role == Role::C =>
        {
            Column::Accumulate
        }
        Class::Hmma16 | Class::Hmma32 | Class::Imma16 | Class::Imma32 | Class::Dmma => Column::Tensor,
        // Predicates of everything else are read when guards are.
        _ if predicate => Column::Guard,
        Class::Xu | Class::LoadConstant | Class::Branch => Column::Xu,
        Class::UniformLoad => Column::Xu,
        _ if ["MATCH", "SYNCS"].iter().any(|m| inst.form().mnemonic.starts_with(m)) => Column::Xu,
        Class::Texture => Column::Texture,
        _ if ["SUST", "SURED", "SUATOM", "STTM"].contains(&inst.form().mnemonic) => Column::Texture,
        Class::Load if inst.form().mnemonic == "LDG" => Column::Ldg,
        Class::Load if inst.form().mnemonic == "LD" && sm.0 < 100 => Column::Ldg,
        _ => Column::Memory,
    }
}

type Table = [[u8; COLUMNS]; ROWS];

/// First generation of each table. A program asks for few of them.
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

/// Reads a table; the tests check that the files are complete. A producer that a generation lacks has no row.
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

    /// The distance between two instructions, of which the second reads what the first one writes.
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
    fn a_pair_of_zeros_reaches_products_of_singles_as_soon_as_sums() {
        for sm in [75, 80, 90] {
            assert_eq!(distance(sm, "CS2R R6, SRZ", "FMUL R8, R6, R6"), 6);
            assert_eq!(distance(sm, "CS2R R6, SRZ", "IADD3 R8, R6, R6, RZ"), 6);
        }
    }

    #[test]
    fn tables_are_complete() {
        for (first, table) in &TABLES {
            for (row, name) in table.iter().zip(Row::NAMES) {
                let absent = *name == "halfmma" && *first >= 100;
                for cycles in row {
                    assert_eq!(*cycles == UNKNOWN, absent, "sm_{first} {name}");
                    assert!(absent || (1..=32).contains(cycles), "sm_{first} {name}");
                }
            }
        }
    }
}
