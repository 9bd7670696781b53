//! The facts about one instruction that scheduling needs, read from the machine table once.

use crate::mach::MachInst;
use sass::{Class, Field, Inst, RegFile, RegUse, Role, Sm, Told};
use smallvec::SmallVec;

#[derive(Clone, Debug)]
pub(crate) struct InstFacts {
    pub(crate) reads: SmallVec<[RegUse; 6]>,
    pub(crate) writes: SmallVec<[RegUse; 2]>,
    /// Results are written after a variable time, signaled by a scoreboard.
    pub(crate) variable: bool,
    /// A `wgmma` product, which sets no scoreboard.
    pub(crate) product: bool,
    /// Sources may be read after issue, signaled by a scoreboard.
    pub(crate) late: bool,
    /// The scoreboard for the sources also covers the predicates among the results.
    pub(crate) early_predicate: bool,
    /// Reads memory that other threads may write; ordered before an invalidation of the first-level cache.
    pub(crate) loads: bool,
    /// Invalidates the first-level cache.
    pub(crate) invalidates: bool,
    /// All earlier reads and writes must be complete, because they may be of tensor maps.
    pub(crate) settles: bool,
    /// Sets the scoreboard that counts groups of copies, in this field.
    pub(crate) ends_copies: Option<Told>,
    /// Reads tensor memory. Other operations may overwrite that memory only after [`Self::awaits_tensor`].
    pub(crate) loads_tensor: bool,
    /// Loads from tensor memory must have completed.
    pub(crate) awaits_tensor: bool,
    /// A fence that is complete only when this scoreboard is released.
    pub(crate) fences_late: Option<Told>,
    /// Such fences must be complete before the instruction.
    pub(crate) fenced: bool,
    /// The number of cycles before any next instruction may issue.
    pub(crate) issue: u8,
}

impl InstFacts {
    pub(crate) fn new(sm: Sm, inst: &Inst) -> InstFacts {
        let mnemonic = name(inst);
        let product = inst.is_group_product();
        let (mut reads, mut writes) = (SmallVec::new(), SmallVec::new());
        inst.uses(sm).for_each(|used| match used.role {
            Role::Dst => writes.push(used),
            _ => reads.push(used),
        });
        if matches!(mnemonic, "CALL" | "RET") || inst.gives_registers() {
            // The code on the other side may read and write any register, and waits for no scoreboard. After an
            // instruction that releases registers, the same holds for all later instructions.
            reads.extend(all_registers(Role::A));
            writes.extend(all_registers(Role::Dst));
        }
        InstFacts {
            reads,
            writes,
            variable: inst.is_variable(sm),
            product,
            late: inst.reads_late(sm) && !product,
            early_predicate: inst.predicate_told(sm) == Told::Read,
            loads: matches!(mnemonic, "LD" | "LDG" | "LDGMC" | "LDS" | "ATOM" | "ATOMG" | "ATOMS" | "SYNCS"),
            invalidates: mnemonic == "CCTL" && !inst.text(Field::Op).is_some_and(|op| op.starts_with(".PF")),
            settles: mnemonic == "UTMACCTL" && inst.text(Field::Op) == Some(".IV"),
            ends_copies: match mnemonic {
                "LDGDEPBAR" => Some(Told::Written),
                "UTMACMDFLUSH" => Some(Told::Read),
                _ => None,
            },
            loads_tensor: mnemonic == "LDTM",
            awaits_tensor: mnemonic == "NOP",
            fences_late: inst.fences_late(sm),
            // A wait for products has no other effect.
            fenced: inst.form().name != "WARPGROUP.DEPBAR"
                && matches!(
                    inst.class(sm),
                    Class::Load | Class::Store | Class::Atomic | Class::Texture | Class::Async | Class::Sync
                ),
            issue: inst.issue_cycles(sm),
        }
    }

    pub(crate) fn of(sm: Sm, insts: &[MachInst]) -> Vec<InstFacts> {
        insts.iter().map(|i| InstFacts::new(sm, &i.inst)).collect()
    }

    /// Makes an arrival a user of the registers of the products after it. The products depend on earlier writes through
    /// the arrival, and do not wait for scoreboards themselves.
    pub(crate) fn arrive_for_products(insts: &[MachInst], facts: &mut [InstFacts]) {
        let (mut taken, mut results): (Vec<RegUse>, Vec<RegUse>) = Default::default();
        for (made, facts) in insts.iter().zip(facts).rev() {
            if facts.product {
                taken.extend(facts.reads.iter().chain(&facts.writes).filter(|of| of.file == RegFile::R));
                results.extend(facts.writes.iter().copied());
            } else if made.inst.is_group_arrival() {
                facts.late = false;
                facts.writes.extend(results.drain(..));
                // A register that a product only writes counts as its accumulator.
                let role = |of: &RegUse| if of.role == Role::Dst { Role::C } else { of.role };
                facts.reads.extend(taken.drain(..).map(|of| RegUse { role: role(&of), ..of }));
            }
        }
    }

    /// The results that are available when the sources have been read.
    pub(crate) fn early_writes(&self) -> impl Iterator<Item = &RegUse> {
        self.writes.iter().filter(|w| self.early_predicate && w.file == RegFile::P)
    }

    /// The other results.
    pub(crate) fn late_writes(&self) -> impl Iterator<Item = &RegUse> {
        self.writes.iter().filter(|w| !(self.early_predicate && w.file == RegFile::P))
    }

    /// The sources that are read after issue; predicates never are.
    pub(crate) fn late_reads(&self) -> impl Iterator<Item = &RegUse> {
        self.reads.iter().filter(|r| matches!(r.file, RegFile::R | RegFile::UR))
    }
}

/// All registers of all files.
fn all_registers(role: Role) -> impl Iterator<Item = RegUse> {
    let files = [(RegFile::R, 255), (RegFile::P, 7), (RegFile::UR, 254), (RegFile::UP, 7), (RegFile::B, 16)];
    files.into_iter().map(move |(file, count)| RegUse { file, index: 0, count, role })
}

pub(crate) fn name(inst: &Inst) -> &'static str {
    inst.form().mnemonic
}
