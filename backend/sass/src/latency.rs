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

/// No result that a scoreboard guards lands earlier after issue.
const LEAST_VARIABLE: u8 = 8;

/// Cycles from the issue of a producer to that of a consumer of its result; [`UNKNOWN`] where only a
/// scoreboard tells. `def` and `read` are the operands of the two that share a register.
pub fn raw(sm: Sm, producer: &Inst, def: &RegUse, consumer: &Inst, read: &RegUse) -> u8 {
    if producer.is_variable(sm) {
        return UNKNOWN;
    }
    match producer_row(sm, producer, def) {
        Some(row) => {
            let table = table(sm);
            let (row, column) = (row as usize, column(sm, consumer, read));
            early_low_half(sm, producer, def, column, read)
                .unwrap_or(table[row][column as usize] - late_high_half(sm, def, column, read))
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

/// Cycles from the issue of a producer after which nobody can come too early: no [`raw`] or [`waw`] of it is
/// longer. [`UNKNOWN`] where only a scoreboard tells.
pub fn longest(sm: Sm, producer: &Inst, def: &RegUse) -> u8 {
    if producer.is_variable(sm) {
        return UNKNOWN;
    }
    let row = producer_row(sm, producer, def);
    row.map_or(1, |row| table(sm)[row as usize].into_iter().max().unwrap_or(1))
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

/// Cycles by which the high half of an addend or an address is read later than the low one.
fn late_high_half(sm: Sm, def: &RegUse, column: Column, read: &RegUse) -> u8 {
    let high = read.file == RegFile::R && read.count == 2 && def.index > read.index;
    match column {
        Column::Addend if high && sm.0 >= 90 => 2,
        Column::Ldg if high && sm.0 >= 100 => 1,
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
    Imma4 "imma4", ToUniform "touniform", ToUniformTold "touniformtold",
} }

names! { Column {
    Alu "alu", Viadd "viadd", Fma "fma", Factor "factor", Addend "addend", Half "half", HalfMma "halfmma",
    Fp64 "fp64", Xu "xu", Memory "memory", Ldg "ldg", Guard "guard", Tensor "tensor", Accumulate "accumulate",
    Uniform "uniform", Uldc "uldc",
} }

const ROWS: usize = Row::NAMES.len();
const COLUMNS: usize = Column::NAMES.len();

fn producer_row(sm: Sm, inst: &Inst, def: &RegUse) -> Option<Row> {
    Some(match inst.class(sm) {
        _ if inst.form().mnemonic == "ELECT" && def.file == RegFile::UR => Row::UniformVote,
        Class::Alu if inst.form().mnemonic == "VIADD" => Row::Viadd,
        Class::Alu => Row::Alu,
        Class::Fma => Row::Fma,
        Class::ImadWide => Row::Wide,
        Class::Half | Class::HalfToSingle => Row::Half,
        Class::HalfMma => Row::HalfMma,
        Class::Fp64 => Row::Fp64,
        Class::Fp64Compare => Row::Compare64,
        // One word of the extents that a launch allows its clusters comes as early as a sum.
        Class::Cs2r if sm.0 >= 100 && inst.get(Field::Wide) == Some(0) => Row::Alu,
        Class::Cs2r => Row::Clock,
        // What is fixed among what is not otherwise: `LEPC`, moves to barriers.
        Class::S2r => Row::Clock,
        Class::Vote => Row::Vote,
        Class::VoteUniform => Row::UniformVote,
        Class::Uniform => Row::Uniform,
        Class::UniformMove => Row::UniformMove,
        Class::Hmma16 => Row::Hmma16,
        Class::Hmma32 => Row::Hmma32,
        // Four bits and one bit.
        Class::Imma16 | Class::Imma32 if matches!(inst.form().name, "IMMA.S4" | "BMMA") => Row::Imma4,
        Class::Imma16 => Row::Imma16,
        Class::Imma32 => Row::Imma32,
        Class::Dmma => Row::Dmma,
        // Where lanes differ.
        Class::UniformLoad if def.file == RegFile::P => Row::ToUniformTold,
        Class::UniformLoad => Row::ToUniform,
        _ => return None,
    })
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
        Class::Load if inst.form().mnemonic == "LDG" => Column::Ldg,
        Class::Load if inst.form().mnemonic == "LD" && sm.0 < 100 => Column::Ldg,
        _ => Column::Memory,
    }
}

type Table = [[u8; COLUMNS]; ROWS];

/// First generation of each table.
static TABLES: LazyLock<[(u8, Table); 5]> = LazyLock::new(|| {
    [
        (75, parse(include_str!("latency/sm75.csv"))),
        (80, parse(include_str!("latency/sm80.csv"))),
        (90, parse(include_str!("latency/sm90.csv"))),
        (100, parse(include_str!("latency/sm100.csv"))),
        (120, parse(include_str!("latency/sm120.csv"))),
    ]
});

fn table(sm: Sm) -> &'static Table {
    let tables = &*TABLES;
    let newest = tables.iter().rposition(|(first, _)| *first <= sm.0).unwrap_or(0);
    &tables[newest].1
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

    #[test]
    fn tables_are_complete() {
        for (first, table) in TABLES.iter() {
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
