//! Decodes machine instructions once, before the run.

use super::address::Address;
use super::compute::Compute;
use super::facts::Facts;
use super::operand;
use super::step::{Step, What};
use super::{Kernel, Result};
use crate::launch::{Fault, FaultKind};
use sass::{Field, Inst, RegFile, Sm};

/// The predicate that is always true. As a destination, it means "no destination".
const PT: u8 = 7;

const KEEPS_METADATA: u128 = 1 << 125;

/// The mnemonics of memory instructions.
const MEMORY: &[&str] = &[
    "LDG", "STG", "LD", "ST", "LDS", "STS", "LDL", "STL", "LDC", "ULDC", "LDCU", "ATOM", "ATOMG", "ATOMS",
    "RED", "REDG", "QSPC", "LDGSTS", "LDGMC",
];
const SYNC: &[&str] = &[
    "NOP",
    "EXIT",
    "BRA",
    "BRX",
    "BRXU",
    "BSSY",
    "BSYNC",
    "BREAK",
    "YIELD",
    "WARPSYNC",
    "BPT",
    "NANOSLEEP",
    "BMOV",
    "BAR",
    "B2R",
    "DEPBAR",
    "SHFL",
    "FSWZADD",
    "ELECT",
    "VOTE",
    "VOTEU",
    "MATCH",
    "REDUX",
    "CREDUX",
    "R2UR",
    "MEMBAR",
    "ERRBAR",
    "CCTL",
    "CCTLL",
    "CGAERRBAR",
    "S2R",
    "CS2R",
    "S2UR",
    "LEPC",
    "CALL",
    "RET",
    "PMTRIG",
    "ENDCOLLECTIVE",
    "LDGDEPBAR",
    "RPCMOV",
    "UCGABAR_ARV",
    "UCGABAR_WAIT",
    "UTMACMDFLUSH",
    "UBLKPF",
    "UTMAPF",
    "UTMACCTL",
    "FENCE",
    "ACQBULK",
    "PREEXIT",
    "USETMAXREG",
];

pub(super) fn decode(kernel: &Kernel) -> std::result::Result<Vec<Step>, Fault> {
    let steps = kernel.code.iter().enumerate().map(|(at, &word)| {
        // If the metadata register of a sparse product is also that of the next product, ptxas sets a reuse bit that
        // has no effect on the result.
        let inst = sass::decode(kernel.sm, word).or_else(|| {
            let plain = sass::decode(kernel.sm, word & !KEEPS_METADATA)?;
            plain.form().name.contains(".SP").then_some(plain)
        });
        let inst = inst.ok_or_else(|| FaultKind::Unsupported(format!("the word {word:#034x}")).at(at))?;
        step(kernel.sm, inst).map_err(|kind| kind.at(at))
    });
    steps.collect()
}

fn step(sm: Sm, inst: Inst) -> Result<Step> {
    let form = inst.form();
    let find = |list: &[&'static str]| list.iter().copied().find(|&name| name == form.mnemonic);
    // The only atomic that operates on barrier objects.
    let what = if form.name == "ATOMS.ARRIVE" {
        What::Barrier("ATOMS.ARRIVE")
    } else if let Some(name) = find(MEMORY) {
        What::Memory(name)
    } else if let Some(name) = find(super::matrix::MNEMONICS) {
        What::Matrix(name)
    } else if let Some(name) = find(super::barrier::MNEMONICS) {
        What::Barrier(name)
    } else if let Some(name) = find(super::bulk::MNEMONICS) {
        What::Bulk(name)
    } else if let Some(name) = find(super::texture::MNEMONICS) {
        What::Texture(name)
    } else if let Some(name) = find(super::tensor::MNEMONICS) {
        What::Tensor(name)
    } else if find(super::warpgroup::MNEMONICS).is_some() {
        What::Warpgroup
    } else if let Some(name) = find(SYNC) {
        What::Sync(name)
    } else {
        Compute::of(&inst).map_or(What::Unknown, What::Compute)
    };
    let uniform = inst.has(Field::URd) || (form.mnemonic.starts_with('U') && form.mnemonic != "UNKNOWN");
    let destination = if inst.has(Field::URd) { Field::URd } else { Field::Rd };
    let none = if inst.has(Field::URd) || uniform { u64::from(sm.urz()) } else { 255 };
    let sources = operand::sources(sm, &inst)?;
    Ok(Step {
        what,
        guard: operand::predicate(&inst, Field::Guard, Field::GuardNot),
        uniform: uniform && matches!(what, What::Compute(_)),
        uniform_guard: form.guard == RegFile::UP,
        // A move specifies the lanes of each quad that it writes.
        lanes: match inst.get(Field::Mode) {
            Some(lanes) if form.name == "MOV" => lanes as u32 * 0x1111_1111,
            _ => u32::MAX,
        },
        address: Address::of(&inst, sources[0]),
        sources,
        predicates: [
            operand::predicate(&inst, Field::Pp, Field::PpNot),
            operand::predicate(&inst, Field::Pr, Field::PrNot),
            operand::predicate(&inst, Field::Ps, Field::PsNot),
        ],
        rd: inst.get(destination).unwrap_or(none) as u8,
        pd: inst.register(Field::Pd).unwrap_or(PT),
        pq: inst.register(Field::Pq).unwrap_or(PT),
        facts: Facts::of(sm, &inst),
        inst,
    })
}
