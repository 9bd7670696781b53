//! List scheduling: of the instructions whose dependences are satisfied, the one with the longest remaining path is
//! issued.
//!
//! It processes each block in sections of bounded length, so that the time is linear. One simulation computes the cost
//! of the new order and of the old one, and the better order is kept; on a tie, the old one.

use super::dag::Dag;
use super::facts::InstFacts;
use crate::mach::{Effect, MachInst};
use sass::speed::{Unit, speed};
use sass::{Inst, Sm};

/// The maximum length of a section.
const STRETCH: usize = 400;

/// Reorders the instructions of a block, and their facts.
pub(super) fn reorder(sm: Sm, insts: &mut [MachInst], facts: &mut [InstFacts], checkpoint: &dyn Fn()) {
    let mut start = 0;
    while start < insts.len() {
        checkpoint();
        let stretch = start..start + stretch_end(&insts[start..]);
        start = stretch.end;
        let (insts, facts) = (&mut insts[stretch.clone()], &mut facts[stretch]);
        if let Some(order) = order(sm, insts, facts) {
            permute(insts, &order);
            permute(facts, &order);
        }
    }
}

/// Moves the item `order[i]` to index `i`.
fn permute<T: Clone>(items: &mut [T], order: &[usize]) {
    let old = items.to_vec();
    for (place, &from) in items.iter_mut().zip(order) {
        place.clone_from(&old[from]);
    }
}

/// The end of the section, after a pinned fence or the control instruction if there is one.
fn stretch_end(insts: &[MachInst]) -> usize {
    let last = insts
        .iter()
        .position(|i| matches!(i.effect, Effect::Control | Effect::Fence { pinned: true }))
        .map_or(insts.len(), |at| at + 1);
    last.min(STRETCH)
}

/// A better order than that of the source, if there is one.
fn order(sm: Sm, insts: &[MachInst], facts: &[InstFacts]) -> Option<Vec<usize>> {
    if insts.len() < 3 {
        return None;
    }
    let dag = Dag::build(sm, insts, facts);
    let heights = dag.heights(|at| if facts[at].variable { speed(insts[at].inst.form).result } else { 1 });
    let timings: Vec<Timing> = insts.iter().zip(facts).map(|(i, f)| Timing::of(&i.inst, f)).collect();
    let list = schedule(&dag, &timings, &heights);
    let cost = |order: &mut dyn Iterator<Item = usize>| simulate(&dag, &timings, order);
    let better = cost(&mut list.iter().copied()) < cost(&mut (0..insts.len()));
    better.then_some(list)
}

/// The unit that an instruction occupies, and for how many cycles.
struct Timing {
    unit: Option<Unit>,
    occupancy: u32,
    issue: u32,
}

impl Timing {
    fn of(inst: &Inst, facts: &InstFacts) -> Timing {
        let speed = speed(inst.form);
        Timing { unit: speed.unit, occupancy: speed.occupancy, issue: u32::from(facts.issue.max(1)) }
    }
}

/// Computes when instructions may issue, given the earlier ones.
struct Machine<'a> {
    dag: &'a Dag,
    timings: &'a [Timing],
    cycle: u32,
    /// The earliest cycle of each instruction according to its dependences.
    ready: Vec<u32>,
    /// The first cycle in which each unit accepts another instruction.
    free: [u32; Unit::COUNT],
}

impl<'a> Machine<'a> {
    fn new(dag: &'a Dag, timings: &'a [Timing]) -> Machine<'a> {
        Machine { dag, timings, cycle: 0, ready: vec![0; timings.len()], free: [0; Unit::COUNT] }
    }

    /// The cycle at which an instruction could issue next.
    fn earliest(&self, at: usize) -> u32 {
        let unit = self.timings[at].unit.map_or(0, |u| self.free[u as usize]);
        self.ready[at].max(unit).max(self.cycle)
    }

    fn issue(&mut self, at: usize) {
        let issue = self.earliest(at);
        let timing = &self.timings[at];
        if let Some(unit) = timing.unit {
            self.free[unit as usize] = issue + timing.occupancy;
        }
        for edge in &self.dag.edges[at] {
            let ready = &mut self.ready[edge.to as usize];
            *ready = (*ready).max(issue + edge.cycles);
        }
        self.cycle = issue + timing.issue;
    }
}

/// The cycle at which all instructions have issued and all results are available.
fn simulate(dag: &Dag, timings: &[Timing], order: &mut dyn Iterator<Item = usize>) -> u32 {
    let mut machine = Machine::new(dag, timings);
    order.for_each(|at| machine.issue(at));
    machine.cycle
}

fn schedule(dag: &Dag, timings: &[Timing], heights: &[u32]) -> Vec<usize> {
    let mut machine = Machine::new(dag, timings);
    let mut missing = dag.incoming.clone();
    let mut available: Vec<usize> = (0..timings.len()).filter(|&at| missing[at] == 0).collect();
    let mut order = Vec::with_capacity(timings.len());
    while !available.is_empty() {
        // Of the instructions that can issue now, the highest one; if there is none, the one that can issue first.
        let best = (0..available.len())
            .min_by_key(|&i| {
                let at = available[i];
                (machine.earliest(at), std::cmp::Reverse(heights[at]), at)
            })
            .unwrap_or(0);
        let at = available.swap_remove(best);
        machine.issue(at);
        order.push(at);
        for edge in &dag.edges[at] {
            missing[edge.to as usize] -= 1;
            if missing[edge.to as usize] == 0 {
                available.push(edge.to as usize);
            }
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mach::MemoryAccess;
    use crate::ori::memory::{Kind, Memory, Order, Space};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    const SM: Sm = Sm(80);

    /// An instruction of a random program. Registers are R0 to R7. The lowest three hold addresses.
    #[derive(Clone, Copy, Debug)]
    enum Step {
        Add { dst: u8, a: u8, b: u8, guarded: bool },
        Wide { dst: u8, a: u8 },
        Compare { a: u8 },
        Load { dst: u8, base: u8, offset: u8 },
        Store { data: u8, base: u8, offset: u8 },
        Barrier,
        Clock { dst: u8 },
    }

    fn step() -> impl Strategy<Value = Step> {
        let r = 0u8..8;
        prop_oneof![
            8 => (r.clone(), r.clone(), r.clone(), any::<bool>()).prop_map(|(dst, a, b, guarded)| Step::Add { dst, a, b, guarded }),
            2 => (0u8..4, r.clone()).prop_map(|(dst, a)| Step::Wide { dst: dst * 2, a }),
            2 => r.clone().prop_map(|a| Step::Compare { a }),
            5 => (r.clone(), 0u8..3, 0u8..3).prop_map(|(dst, base, offset)| Step::Load { dst, base, offset }),
            5 => (r.clone(), 0u8..3, 0u8..3).prop_map(|(data, base, offset)| Step::Store { data, base, offset }),
            1 => Just(Step::Barrier),
            1 => r.prop_map(|dst| Step::Clock { dst }),
        ]
    }

    fn made(step: Step) -> MachInst {
        let global = |base: u8, offset: u8, kind| {
            Effect::Memory(MemoryAccess {
                memory: Memory {
                    space: Space::Global,
                    kind,
                    order: Order::Weak,
                    offset: i32::from(offset) * 4,
                    scale: 0,
                    bytes: 4,
                },
                base: Some(base * 2),
                uniform: None,
                slot: false,
            })
        };
        let (text, effect) = match step {
            Step::Add { dst, a, b, guarded } => {
                let guard = if guarded { "@P0 " } else { "" };
                (format!("{guard}IADD3 R{dst}, R{a}, R{b}, RZ"), Effect::None)
            }
            Step::Wide { dst, a } => (format!("IMAD.WIDE.U32 R{dst}, R{a}, 0x3, RZ"), Effect::None),
            Step::Compare { a } => (format!("ISETP.LT.AND P0, PT, R{a}, 0x5, PT"), Effect::None),
            Step::Load { dst, base, offset } => (
                format!("LDG.E R{dst}, [R{}.64+{:#x}]", base * 2, offset * 4),
                global(base, offset, Kind::Load),
            ),
            Step::Store { data, base, offset } => (
                format!("STG.E [R{}.64+{:#x}], R{data}", base * 2, offset * 4),
                global(base, offset, Kind::Store),
            ),
            Step::Barrier => ("NOP".to_owned(), Effect::Fence { pinned: false }),
            Step::Clock { dst } => (format!("CS2R.32 R{dst}, SR_CLOCKLO"), Effect::Fence { pinned: true }),
        };
        let inst = sass::parse(SM, &text, 0).unwrap_or_else(|e| panic!("{text}: {}", e.message));
        MachInst { inst, src: None, target: None, link: None, effect }
    }

    fn reorder_alone(insts: &mut [MachInst]) {
        reorder(SM, insts, &mut InstFacts::of(SM, insts), &|| ());
    }

    /// Executes a program on registers and a small memory in which addresses often collide.
    fn run(insts: &[MachInst]) -> (BTreeMap<usize, u64>, BTreeMap<u64, u64>) {
        let mut registers: BTreeMap<usize, u64> = BTreeMap::new();
        let mut memory: BTreeMap<u64, u64> = BTreeMap::new();
        let mix =
            |a: u64, b: u64| (a ^ b.rotate_left(17)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23);
        for inst in insts {
            let facts = InstFacts::new(SM, &inst.inst);
            let name = sass::print(SM, &inst.inst, 0).bytes().fold(0, |h, b| mix(h, b.into()));
            let mut value = facts
                .reads
                .iter()
                .flat_map(crate::mach::flat)
                .fold(name, |h, r| mix(h, registers.get(&r).copied().unwrap_or(r as u64)));
            if let Effect::Memory(access) = inst.effect {
                let base = access.base.map_or(0, |b| registers.get(&b.into()).copied().unwrap_or(b.into()));
                let address = (base % 3) * 4 + access.memory.offset as u64;
                if access.memory.writes() {
                    memory.insert(address, value);
                } else {
                    value = mix(value, memory.get(&address).copied().unwrap_or(address));
                }
            }
            let guarded = inst.inst.get(sass::Field::Guard) != Some(7);
            for r in facts.writes.iter().flat_map(crate::mach::flat) {
                let old = registers.get(&r).copied().unwrap_or(r as u64);
                registers.insert(r, if guarded { mix(old, value) } else { mix(value, r as u64) });
            }
        }
        (registers, memory)
    }

    proptest! {
        #[test]
        fn the_new_order_computes_the_same(steps in prop::collection::vec(step(), 0..60)) {
            let before: Vec<MachInst> = steps.into_iter().map(made).collect();
            let mut after = before.clone();
            reorder_alone(&mut after);
            prop_assert_eq!(before.len(), after.len());
            prop_assert_eq!(run(&before), run(&after));
        }
    }

    #[test]
    fn loads_go_before_what_waits_for_them() {
        let steps = [
            Step::Load { dst: 6, base: 0, offset: 0 },
            Step::Add { dst: 6, a: 6, b: 6, guarded: false },
            Step::Load { dst: 7, base: 0, offset: 1 },
            Step::Add { dst: 7, a: 7, b: 7, guarded: false },
        ];
        let mut insts: Vec<MachInst> = steps.into_iter().map(made).collect();
        reorder_alone(&mut insts);
        let names: Vec<&str> = insts.iter().map(|i| i.inst.form().mnemonic).collect();
        assert_eq!(names, ["LDG", "LDG", "IADD3", "IADD3"]);
    }
}
