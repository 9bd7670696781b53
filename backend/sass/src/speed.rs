//! How long instructions take, for the heuristics of schedulers. Correctness does not depend on these numbers.
//!
//! `latency/speed.csv` has a row per mnemonic; its first row applies to all mnemonics without a row. Sources: the
//! measurements of Huerta et al. (MICRO 2025) on Ampere for memory, and of Jia et al. (2019) for conversions and
//! special functions. Accesses to global memory are assumed to take a little longer than hits in the second-level cache, so
//! that a block starts its loads before its arithmetic. The distances that code must keep are in
//! [`crate::latency`].

use crate::expand::{form, named};
use crate::inst::Inst;
use crate::latency::{self, UNKNOWN};
use crate::model::{Field, FormId, Sm};
use std::collections::HashMap;
use std::sync::LazyLock;

/// The duration of an instruction, in cycles.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Speed {
    /// Until the result of a variable-latency instruction can be used.
    pub result: u32,
    /// Until the sources have been read, if that is later than issue.
    pub release: u32,
    /// The cycles for which the unit is busy. The next instruction of its kind cannot issue earlier.
    pub occupancy: u32,
    /// The unit, if several kinds of instructions share it.
    pub unit: Option<Unit>,
}

/// A unit that several kinds of instructions share.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    Memory,
    Special,
    Double,
}

impl Unit {
    pub const COUNT: usize = 3;

    fn named(name: &str) -> Option<Unit> {
        match name {
            "memory" => Some(Unit::Memory),
            "special" => Some(Unit::Special),
            "double" => Some(Unit::Double),
            _ => None,
        }
    }
}

struct Table {
    others: Speed,
    by_mnemonic: HashMap<&'static str, Speed>,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let mut rows = include_str!("latency/speed.csv").lines().skip(1).filter_map(row);
    let others = rows.next().map_or(Speed { result: 1, release: 1, occupancy: 1, unit: None }, |row| row.1);
    Table { others, by_mnemonic: rows.collect() }
});

/// The durations in a mnemonic's row. The form stores them.
pub(crate) fn of_mnemonic(mnemonic: &str) -> Speed {
    TABLE.by_mnemonic.get(mnemonic).copied().unwrap_or(TABLE.others)
}

/// Parses a row. The tests check that every row is complete.
fn row(line: &'static str) -> Option<(&'static str, Speed)> {
    let mut cells = line.split(',');
    let mnemonic = cells.next()?;
    let mut number = || cells.next()?.parse().ok();
    let (result, release, occupancy) = (number()?, number()?, number()?);
    Some((mnemonic, Speed { result, release, occupancy, unit: Unit::named(cells.next()?) }))
}

/// The durations of a form's instructions.
pub fn speed(id: FormId) -> Speed {
    form(id).speed
}

/// Any form of the family on the target, for properties that all its forms have in common. `None` if the target has
/// none.
pub fn any_form(sm: Sm, family: &str) -> Option<FormId> {
    named(sm, family).next()
}

/// Cycles until arithmetic, or a guard if `guard` is set, can read the result of a form.
pub fn result(sm: Sm, id: FormId, guard: bool) -> u32 {
    let mut inst = Inst::new(id);
    for field in [Field::Rd, Field::URd, Field::Pd].into_iter().filter(|&field| Inst::new(id).has(field)) {
        inst.set(field, 0);
    }
    let expected = || speed(id).result;
    match inst.writes(sm).next() {
        Some(def) => match latency::typical(sm, &inst, &def, guard) {
            UNKNOWN => expected(),
            cycles => cycles.into(),
        },
        None => expected(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forms;

    #[test]
    fn the_table_is_whole_and_names_instructions() {
        for line in include_str!("latency/speed.csv").lines().skip(2) {
            let (mnemonic, speed) = row(line).expect("a whole row");
            assert_eq!(speed.unit.is_some(), speed.occupancy > 1, "{mnemonic}");
            let id = forms().find(|&id| form(id).mnemonic == mnemonic).expect("an instruction");
            assert_eq!(super::speed(id), speed, "{mnemonic}");
        }
    }

    #[test]
    fn results_come_as_the_tables_say() {
        let of = |sm, family, guard| result(Sm(sm), any_form(Sm(sm), family).expect("a form"), guard);
        assert_eq!(of(80, "IADD3", false), 4);
        assert_eq!(of(80, "ISETP", true), 13);
        assert_eq!(of(80, "LDG", false), 360);
        assert_eq!(of(90, "DADD", false), 10);
        assert_eq!(of(86, "DADD", false), 16);
        assert_eq!(any_form(Sm(80), "UNKNOWN"), None);
    }
}
