//! `wgmma` products run asynchronously. This pass ensures that no instruction conflicts with their registers before
//! they complete.
//!
//! Before: products may use any registers. Group ends and waits are those of the input. An arrival precedes each
//! product. After: every group is closed at the end of its block. A wait precedes each instruction that conflicts with
//! a register of a product in flight; it leaves only groups that began after that product's. Consecutive products share
//! an arrival.
//!
//! A program that obeys the rules of `wgmma` gets no further waits, unless the allocator gave a register of a product
//! in flight to another value. The code is correct in either case.

use crate::mach::{Block, Effect, MachInst};
use sass::{Field, Inst, RegFile, RegUse, Role, Sm};
use smallvec::SmallVec;
use std::collections::BTreeSet;

/// Values of the field that says whether a product ends a group.
pub(super) const GROUP: u64 = 0;
pub(super) const NO_GROUP: u64 = 7;

/// A count above the most groups that a wait can leave in flight. Counts saturate here.
const MANY: u8 = 9;

/// The number of groups that a wait leaves in flight.
fn wait(inst: &Inst) -> Option<u8> {
    (inst.form().name == "WARPGROUP.DEPBAR").then(|| inst.get(Field::Imm2).unwrap_or(0) as u8)
}

fn ends_group(inst: &Inst) -> bool {
    inst.is_group_product() && inst.get(Field::Scoreboard) == Some(GROUP)
}

/// Ends a group with the last product, if that is in no group yet.
pub(super) fn close(insts: &mut [MachInst]) -> bool {
    match insts.iter_mut().rev().find(|made| made.inst.is_group_product()) {
        Some(last) if !ends_group(&last.inst) => {
            last.inst.set(Field::Scoreboard, GROUP);
            true
        }
        _ => false,
    }
}

/// Closes groups, adds the missing waits, and removes redundant arrivals.
pub(super) fn settle(sm: Sm, blocks: &mut [Block]) {
    if !blocks.iter().flat_map(|block| &block.insts).any(|made| made.inst.is_group_product()) {
        return;
    }
    for block in blocks.iter_mut() {
        close(&mut block.insts);
    }
    // This terminates: waits are only added, and each one resolves the conflict that it was added for.
    while add_waits(sm, blocks) {}
    for block in blocks {
        share_arrivals(sm, &mut block.insts);
    }
}

/// The general registers that an instruction uses.
fn general(sm: Sm, inst: &Inst) -> SmallVec<[RegUse; 4]> {
    let mut all = SmallVec::new();
    inst.uses(sm).filter(|of| of.file == RegFile::R && of.count > 0).for_each(|of| all.push(of));
    all
}

/// A product in flight.
#[derive(Clone, PartialEq, Eq)]
struct Begun {
    /// The block of the product, and its index there.
    at: (usize, usize),
    used: SmallVec<[RegUse; 4]>,
    /// The minimum over all paths of the groups closed since it began, its own included.
    ended: u8,
}

impl Begun {
    /// Whether an instruction that uses registers has to wait for it.
    fn hinders(&self, inst: &Inst, used: &[RegUse]) -> bool {
        if matches!(inst.form().mnemonic, "CALL" | "RET" | "EXIT") || inst.gives_registers() {
            return true;
        }
        let sum = |of: &&RegUse| of.role == Role::Dst;
        // Products with the same accumulator registers accumulate in order.
        let (own, theirs) = (used.iter().find(sum), self.used.iter().find(sum));
        let goes_on = inst.is_group_product()
            && own.zip(theirs).is_some_and(|(a, b)| (a.index, a.count) == (b.index, b.count));
        let conflicts = |mine: &RegUse, its: &RegUse| {
            let written = [mine, its].map(|of| matches!(of.role, Role::Dst | Role::C));
            let in_order = goes_on && written == [true, true];
            mine.overlaps(its) && !in_order && (mine.role == Role::Dst || its.role == Role::Dst)
        };
        used.iter().any(|mine| self.used.iter().any(|its| conflicts(mine, its)))
    }
}

/// The products in flight at a point, sorted by position.
#[derive(Clone, Default, PartialEq, Eq)]
struct InFlight(Vec<Begun>);

impl InFlight {
    /// Advances past an instruction.
    fn pass(&mut self, sm: Sm, inst: &Inst, at: (usize, usize)) {
        if let Some(left) = wait(inst) {
            self.0.retain(|begun| begun.ended <= left);
        }
        if inst.is_group_product() {
            self.0.retain(|begun| begun.at != at);
            let place = self.0.partition_point(|begun| begun.at < at);
            self.0.insert(place, Begun { at, used: general(sm, inst), ended: 0 });
            if ends_group(inst) {
                self.0.iter_mut().for_each(|begun| begun.ended = (begun.ended + 1).min(MANY));
            }
        }
    }

    /// Merges the state of another path; returns whether this one changed.
    fn unite(&mut self, other: &InFlight) -> bool {
        let mut changed = false;
        for new in &other.0 {
            match self.0.binary_search_by_key(&new.at, |begun| begun.at) {
                Ok(i) => {
                    changed |= new.ended < self.0[i].ended;
                    self.0[i].ended = self.0[i].ended.min(new.ended);
                }
                Err(i) => {
                    self.0.insert(i, new.clone());
                    changed = true;
                }
            }
        }
        changed
    }
}

/// Adds waits where an instruction conflicts with products in flight. Returns whether it added any.
fn add_waits(sm: Sm, blocks: &mut [Block]) -> bool {
    let mut entry: Vec<InFlight> = vec![InFlight::default(); blocks.len()];
    let mut work: BTreeSet<usize> = (0..blocks.len()).collect();
    while let Some(b) = work.pop_first() {
        let mut state = entry[b].clone();
        for (at, made) in blocks[b].insts.iter().enumerate() {
            state.pass(sm, &made.inst, (b, at));
        }
        for next in &blocks[b].successors {
            if entry[next.index()].unite(&state) {
                work.insert(next.index());
            }
        }
    }
    let mut added = false;
    for (b, (block, mut state)) in blocks.iter_mut().zip(entry).enumerate() {
        let mut made = Vec::with_capacity(block.insts.len());
        for (at, inst) in std::mem::take(&mut block.insts).into_iter().enumerate() {
            let used = general(sm, &inst.inst);
            let hinder = state.0.iter().filter(|begun| begun.hinders(&inst.inst, &used));
            if let Some(ended) = hinder.map(|begun| begun.ended).min() {
                // Its group is open, so close it with the last product before this instruction.
                if ended == 0 && close(&mut made) {
                    state.0.iter_mut().for_each(|begun| begun.ended = (begun.ended + 1).min(MANY));
                }
                let left = ended.max(1) - 1;
                // It comes before the arrival.
                let place = made.len()
                    - usize::from(made.last().is_some_and(|last: &MachInst| last.inst.is_group_arrival()));
                let wait = wait_for(sm, left);
                state.pass(sm, &wait.inst, (b, at));
                made.insert(place, wait);
                added = true;
            }
            state.pass(sm, &inst.inst, (b, at));
            made.push(inst);
        }
        block.insts = made;
    }
    added
}

/// A wait that leaves the given number of groups in flight.
fn wait_for(sm: Sm, left: u8) -> MachInst {
    let form = sass::lookup(sm, "WARPGROUP.DEPBAR", "").expect("every SM with products has the wait");
    let mut inst = Inst::new(form);
    inst.set(Field::Imm2, left.into());
    MachInst { inst, src: None, target: None, link: None, effect: Effect::Fence { pinned: true } }
}

/// Removes an arrival if no register of its product was written since the previous arrival.
fn share_arrivals(sm: Sm, insts: &mut Vec<MachInst>) {
    let mut fresh: Option<Vec<RegUse>> = None;
    let mut dead = vec![false; insts.len()];
    for at in 0..insts.len() {
        let inst = &insts[at].inst;
        if inst.is_group_product() {
            let used = general(sm, inst);
            let touched = |fresh: &[RegUse]| fresh.iter().any(|of| used.iter().any(|own| own.overlaps(of)));
            if at > 0 && insts[at - 1].inst.is_group_arrival() {
                dead[at - 1] = fresh.as_ref().is_some_and(|fresh| !touched(fresh));
                if !dead[at - 1] {
                    fresh = Some(Vec::new());
                }
            }
        } else if wait(inst).is_some() {
            fresh = None;
        } else if let Some(fresh) = &mut fresh {
            fresh.extend(general(sm, inst).into_iter().filter(|of| of.role == Role::Dst));
        }
    }
    let mut dead = dead.into_iter();
    insts.retain(|_| !dead.next().unwrap_or(false));
}
