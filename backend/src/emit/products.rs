//! Products of warp groups that follow each other go on together: one wait for all of them.
//!
//! Before: each is in a group of its own, which is waited for behind it. After: where nothing stands between two but
//! computations on other registers, the first is not waited for, and the second ends the group of both.

use crate::mach::{Effect, MachInst};
use sass::{Field, Inst, RegFile, RegUse, Role, Sm};

/// The registers of products under way: of sums, and of rows.
#[derive(Default)]
struct Busy(Vec<RegUse>);

impl Busy {
    fn touches(&self, of: &RegUse) -> bool {
        self.0.iter().any(|busy| overlap(busy, of))
    }

    /// A sum that is one of these is added to in its place.
    fn goes_on(&self, sum: &RegUse) -> bool {
        !self.touches(sum) || self.0.iter().any(|busy| (busy.index, busy.count) == (sum.index, sum.count))
    }
}

fn overlap(a: &RegUse, b: &RegUse) -> bool {
    let end = |of: &RegUse| u16::from(of.index) + u16::from(of.count);
    u16::from(a.index) < end(b) && u16::from(b.index) < end(a)
}

/// The general registers of an instruction.
fn general(sm: Sm, inst: &Inst) -> Vec<RegUse> {
    let mut all = Vec::new();
    inst.uses(sm).filter(|of| of.file == RegFile::R && of.count > 0).for_each(|of| all.push(of));
    all
}

pub(super) fn is_product(inst: &Inst) -> bool {
    matches!(inst.form().mnemonic, "HGMMA" | "IGMMA" | "QGMMA")
}

/// Joins the products of one block.
pub(super) fn join(sm: Sm, insts: &mut Vec<MachInst>) {
    let mut busy = Busy::default();
    // What was written since the first of them.
    let mut fresh = Busy::default();
    // The last product; its wait follows it.
    let mut last: Option<usize> = None;
    let mut dead = vec![false; insts.len()];
    for at in 0..insts.len() {
        let inst = &insts[at].inst;
        let name = inst.form().name;
        if is_product(inst) {
            let used = general(sm, inst);
            // Registers written after an arrival need another arrival.
            let joins = used.iter().all(|of| {
                !fresh.touches(of) && if of.role == Role::A { !busy.touches(of) } else { busy.goes_on(of) }
            });
            match last {
                Some(before) if joins => {
                    dead[before + 1] = true;
                    dead[at - 1] = true;
                    insts[before].inst.set(Field::Scoreboard, NO_GROUP);
                }
                _ => {
                    busy.0.clear();
                    fresh.0.clear();
                }
            }
            busy.0.extend(used);
            last = Some(at);
        } else if name != "WARPGROUP.DEPBAR" && name != "WARPGROUP.ARRIVE" {
            let plain = matches!(insts[at].effect, Effect::None | Effect::Convergent);
            let used = general(sm, inst);
            if !plain || used.iter().any(|of| busy.touches(of)) {
                (busy, fresh, last) = Default::default();
            } else if last.is_some() {
                fresh.0.extend(used.into_iter().filter(|of| of.role == Role::Dst));
            }
        }
    }
    let mut dead = dead.into_iter();
    insts.retain(|_| !dead.next().unwrap_or(false));
}

/// It ends no group.
const NO_GROUP: u64 = 7;
