//! Machine instructions taken apart once, before the run.

use super::alu::Compute;
use super::hazard::Facts;
use super::memory::Address;
use super::operand::{self, Predicate, Source};
use super::{Kernel, Result};
use crate::launch::{Fault, FaultKind};
use sass::{Field, Inst, RegFile, Sm};

/// The predicate that always holds; as a destination, none.
const PT: u8 = 7;

const KEEPS_METADATA: u128 = 1 << 125;

/// An instruction with its operands resolved.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) inst: Inst,
    pub(super) what: What,
    pub(super) guard: Predicate,
    /// The guard and the predicates are the warp's, and one value serves all lanes.
    pub(super) uniform: bool,
    pub(super) uniform_guard: bool,
    pub(super) sources: [Source; 3],
    pub(super) address: Address,
    /// Pp, Pr, Ps.
    pub(super) predicates: [Predicate; 3],
    pub(super) rd: u8,
    pub(super) pd: u8,
    pub(super) pq: u8,
    pub(super) facts: Facts,
}

/// What executes an instruction.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum What {
    /// Registers of one lane, or the warp's.
    Compute(Compute),
    Memory(&'static str),
    /// Control flow and what lanes do together.
    Sync(&'static str),
    /// What a warp does with matrices.
    Matrix(&'static str),
    /// Barrier objects, and what goes on beside the threads.
    Barrier(&'static str),
    Bulk(&'static str),
    Texture(&'static str),
    Warpgroup,
    Tensor(&'static str),
    Unknown,
}

/// Mnemonics of memory instructions.
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

impl Step {
    /// Of a product, whether it adds to its result.
    pub(super) fn accumulates(&self) -> Predicate {
        self.predicates[0]
    }
}

pub(super) fn decode(kernel: &Kernel) -> std::result::Result<Vec<Step>, Fault> {
    let steps = kernel.code.iter().enumerate().map(|(at, &word)| {
        // Where a sparse product has the metadata of the next one, ptxas sets a bit beside those that keep operands,
        // which changes no result.
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
    // The one atomic that knows barrier objects.
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
