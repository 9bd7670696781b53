//! Scheduling after allocation: the instruction order within blocks, then the control fields.
//!
//! Before: blocks of instructions with neutral control words, in a correct order. After: control words that make the
//! code correct on hardware without interlocks. See `docs/scheduling.md`.

mod dag;
mod deps;
pub(crate) mod facts;
mod list;
pub mod pre;
mod reuse;
mod scoreboards;
mod stalls;
pub(crate) mod sweep;

use crate::mach::{Block, Code, Effect, MachInst};
use crate::target::Target;
use facts::InstFacts;
use sass::{Class, Field, FormId, Inst, Sm};

/// The work to do, by optimization level.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Reorder; otherwise keep the order of emission.
    pub reorder: bool,
}

/// Orders the instructions and sets their control fields.
pub fn schedule(code: &mut Code, options: Options, checkpoint: &dyn Fn()) {
    let sm = code.sm;
    let mut facts: Vec<_> = code.blocks.iter().map(|b| InstFacts::of(sm, &b.insts)).collect();
    if options.reorder {
        for (block, facts) in code.blocks.iter_mut().zip(&mut facts) {
            list::reorder(sm, &mut block.insts, facts, checkpoint);
        }
    }
    for (block, facts) in code.blocks.iter().zip(&mut facts) {
        InstFacts::arrive_for_products(&block.insts, facts);
    }
    settle_copies(code, &mut facts);
    deps::assign(code, &facts, checkpoint);
    if options.reorder {
        reuse::mark(code);
    }
}

/// The instruction that arrives at an mbarrier object after copies.
const ARRIVES: &str = "ARRIVES";
/// In a function with such arrivals: the number of idle loads before copies, on targets that also have idle loads
/// before arrivals.
const LOADS_BESIDE_ARRIVALS: u8 = 3;

/// Inserts idle loads before copies to shared memory that follow other users of the memory unit, or are first in their
/// block. ptxas does this on targets with a number of such loads.
fn settle_copies(code: &mut Code, facts: &mut [Vec<InstFacts>]) {
    let target = Target::nearest(ptx_isa::Sm::new(code.sm.0.into()));
    let (sm, arrivals) = (code.sm, target.map_or(0, |target| target.loads_before_arrivals));
    let arrives = |block: &Block| block.insts.iter().any(|inst| facts::name(&inst.inst) == ARRIVES);
    let count = match target {
        Some(_) if arrivals > 0 && code.blocks.iter().any(arrives) => LOADS_BESIDE_ARRIVALS,
        Some(target) => target.loads_before_copies,
        None => 0,
    };
    for (block, facts) in code.blocks.iter_mut().zip(facts).filter(|_| count > 0) {
        let mut settled = false;
        let mut at = 0;
        while at < block.insts.len() {
            let inst = &block.insts[at].inst;
            let wanted = match (facts::name(inst), inst.class(sm)) {
                (ARRIVES, _) if arrivals > 0 => arrivals,
                ("LDGSTS", _) if !settled => count,
                ("LDGSTS" | "LDGDEPBAR", _) => 0,
                (
                    _,
                    Class::Load | Class::Store | Class::Atomic | Class::Async | Class::Sync | Class::Texture,
                ) => {
                    settled = false;
                    0
                }
                _ => 0,
            };
            if wanted > 0 {
                settled = facts::name(inst) == "LDGSTS";
                let idle = idle_load(sm);
                let fact = InstFacts::new(sm, &idle.inst);
                block.insts.splice(at..at, (0..wanted).map(|_| idle.clone()));
                facts.splice(at..at, (0..wanted).map(|_| fact.clone()));
                at += usize::from(wanted);
            }
            at += 1;
        }
    }
}

/// `@!PT LDS RZ, [RZ]`.
fn idle_load(sm: Sm) -> MachInst {
    let form = sass::lookup(sm, "LDS", "").expect("every generation has LDS");
    let mut inst = Inst::new(form);
    inst.set(Field::GuardNot, 1);
    MachInst { inst, src: None, target: None, link: None, effect: Effect::None }
}

fn nop(sm: Sm) -> FormId {
    sass::lookup(sm, "NOP", "").expect("every generation has NOP")
}
