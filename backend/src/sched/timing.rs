//! How long things take, as far as it is only a matter of speed: weights for the list scheduler.
//!
//! Sources: the measurements of Huerta et al. (MICRO 2025) on Ampere for memory and of Jia et al. (2019) for
//! conversions and special functions. Global memory is assumed to hit the second-level cache half of the
//! time; what matters is that it is much longer than the rest.

/// Cycles until the result of a variable-latency instruction can be used.
pub(super) fn result(mnemonic: &str) -> u32 {
    match mnemonic {
        "LDG" | "LD" | "ATOM" | "ATOMG" | "TEX" | "TLD" | "TLD4" | "SULD" | "LDL" => 120,
        "LDS" | "LDSM" | "SHFL" | "ATOMS" => 24,
        "LDC" | "LDCU" => 30,
        "S2R" | "S2UR" | "B2R" | "R2UR" | "REDUX" | "MATCH" => 20,
        "DADD" | "DMUL" | "DFMA" | "DSETP" => 16,
        _ => 18,
    }
}

/// Cycles until an instruction has read its sources, where that is not at issue.
pub(super) fn release(mnemonic: &str) -> u32 {
    match mnemonic {
        "STG" | "ST" | "STS" | "STL" | "RED" | "REDG" => 14,
        _ => 10,
    }
}

/// Cycles for which an instruction keeps its unit busy, so that the next of its kind issues no earlier.
pub(super) fn occupancy(mnemonic: &str) -> u32 {
    match mnemonic {
        "LDG" | "LD" | "LDS" | "LDL" | "STG" | "ST" | "STS" | "STL" | "ATOM" | "ATOMG" | "ATOMS" | "RED"
        | "REDG" | "SHFL" | "LDSM" => 4,
        "MUFU" | "I2F" | "F2I" | "F2F" | "FRND" | "POPC" | "FLO" | "BREV" => 4,
        "DADD" | "DMUL" | "DFMA" | "DSETP" => 4,
        _ => 1,
    }
}

/// Instructions that share a unit, where [`occupancy`] is more than one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Unit {
    Memory,
    Special,
    Double,
}

pub(super) const UNITS: usize = 3;

pub(super) fn unit(mnemonic: &str) -> Option<Unit> {
    match mnemonic {
        "MUFU" | "I2F" | "F2I" | "F2F" | "FRND" | "POPC" | "FLO" | "BREV" => Some(Unit::Special),
        "DADD" | "DMUL" | "DFMA" | "DSETP" => Some(Unit::Double),
        _ if occupancy(mnemonic) > 1 => Some(Unit::Memory),
        _ => None,
    }
}
