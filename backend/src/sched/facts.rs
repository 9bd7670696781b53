//! What scheduling needs to know of one instruction, asked of the machine table once.

use crate::mach::MachInst;
use sass::{Class, Field, Inst, RegFile, RegUse, Role, Sm, Told};
use smallvec::SmallVec;

#[derive(Clone, Debug)]
pub(crate) struct InstFacts {
    pub(crate) reads: SmallVec<[RegUse; 6]>,
    pub(crate) writes: SmallVec<[RegUse; 2]>,
    /// Results come at an unknown time, told by a scoreboard.
    pub(crate) variable: bool,
    /// A product of a warp group, of which no scoreboard tells.
    pub(crate) product: bool,
    /// Sources may be read after issue, told by a scoreboard.
    pub(crate) late: bool,
    /// The scoreboard that tells of the sources tells of predicates among the results too.
    pub(crate) early_predicate: bool,
    /// Reads memory that others may write; ordered before an invalidation of the first-level cache.
    pub(crate) loads: bool,
    /// Invalidates the first-level cache.
    pub(crate) invalidates: bool,
    /// What was read and written before it must be over: the maps of tensors may be among that.
    pub(crate) settles: bool,
    /// Raises the scoreboard that counts groups of copies, in this place.
    pub(crate) ends_copies: Option<Told>,
    /// Reads tensor memory. Other operations may overwrite it only after [`Self::awaits_tensor`].
    pub(crate) loads_tensor: bool,
    /// Loads from tensor memory must have completed.
    pub(crate) awaits_tensor: bool,
    /// A fence that is over only when this scoreboard tells.
    pub(crate) fences_late: Option<Told>,
    /// Such fences must be over before it.
    pub(crate) fenced: bool,
    /// Cycles before the next instruction may issue, whatever that is.
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
            // The other side may read and write any register, and waits for no scoreboard. What gives registers away has one
            // for all that comes after it.
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

    /// An arrival counts as using the registers of the products after it. They see what was written before it, and do
    /// not wait for scoreboards themselves.
    pub(crate) fn arrive_for_products(insts: &[MachInst], facts: &mut [InstFacts]) {
        let (mut taken, mut results): (Vec<RegUse>, Vec<RegUse>) = Default::default();
        for (made, facts) in insts.iter().zip(facts).rev() {
            if facts.product {
                taken.extend(facts.reads.iter().chain(&facts.writes).filter(|of| of.file == RegFile::R));
                results.extend(facts.writes.iter().copied());
            } else if made.inst.is_group_arrival() {
                facts.late = false;
                facts.writes.extend(results.drain(..));
                // A register that a product only writes counts as its sum.
                let role = |of: &RegUse| if of.role == Role::Dst { Role::C } else { of.role };
                facts.reads.extend(taken.drain(..).map(|of| RegUse { role: role(&of), ..of }));
            }
        }
    }

    /// Results that are there when the sources are read.
    pub(crate) fn early_writes(&self) -> impl Iterator<Item = &RegUse> {
        self.writes.iter().filter(|w| self.early_predicate && w.file == RegFile::P)
    }

    /// The other results.
    pub(crate) fn late_writes(&self) -> impl Iterator<Item = &RegUse> {
        self.writes.iter().filter(|w| !(self.early_predicate && w.file == RegFile::P))
    }

    /// Sources that are read after issue; predicates never are.
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
