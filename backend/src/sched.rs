//! Scheduling after allocation: the order of instructions within blocks, then the control fields.
//!
//! Before: blocks of instructions with neutral control words, in an order that is right.
//! After: control words that make the code right on hardware without interlocks.
//! See `docs/scheduling.md`.

mod dag;
mod deps;
pub(crate) mod facts;
mod list;
pub mod pre;
mod scoreboards;
mod stalls;
pub(crate) mod sweep;

use crate::mach::{Code, Effect, MachInst};
use crate::target::Target;
use facts::InstFacts;
use sass::{Class, Field, FormId, Inst, Sm};

/// What to do, by optimisation level.
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
    settle_copies(code, &mut facts);
    deps::assign(code, &facts, checkpoint);
}

/// Puts loads that do nothing before copies to shared memory that come after other users of the memory unit, or
/// first in their block: ptxas does on the targets that have a number of them.
fn settle_copies(code: &mut Code, facts: &mut [Vec<InstFacts>]) {
    let target = Target::nearest(ptx_isa::Sm::new(code.sm.0.into()));
    let (sm, count) = (code.sm, target.map_or(0, |target| target.loads_before_copies));
    for (block, facts) in code.blocks.iter_mut().zip(facts).filter(|_| count > 0) {
        let mut settled = false;
        let mut at = 0;
        while at < block.insts.len() {
            let inst = &block.insts[at].inst;
            match (facts::name(inst), inst.class(sm)) {
                ("LDGSTS", _) if !settled => {
                    let idle = idle_load(sm);
                    let fact = InstFacts::new(sm, &idle.inst);
                    block.insts.splice(at..at, (0..count).map(|_| idle.clone()));
                    facts.splice(at..at, (0..count).map(|_| fact.clone()));
                    at += usize::from(count);
                    settled = true;
                }
                ("LDGSTS" | "LDGDEPBAR", _) => {}
                (
                    _,
                    Class::Load | Class::Store | Class::Atomic | Class::Async | Class::Sync | Class::Texture,
                ) => {
                    settled = false;
                }
                _ => {}
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
