//! List scheduling: among the instructions whose dependences are met, the one with the longest way to go.
//!
//! Works block by block, on stretches of bounded length so that time stays linear. What the new order costs is
//! computed by the same simulation as what the old one costs, and the better one is kept: the order of the
//! source on a tie.

use super::dag::Dag;
use super::facts::InstFacts;
use super::timing::{self, UNITS};
use crate::mach::{Effect, MachInst};
use sass::Sm;

/// The longest stretch scheduled as a whole.
const STRETCH: usize = 400;

/// Orders the instructions of a block.
pub(super) fn reorder(sm: Sm, insts: &mut Vec<MachInst>, checkpoint: &dyn Fn()) {
    let mut out = Vec::with_capacity(insts.len());
    let mut rest = insts.as_slice();
    while !rest.is_empty() {
        checkpoint();
        let (stretch, behind) = rest.split_at(stretch_end(rest));
        rest = behind;
        let facts = InstFacts::of(sm, stretch);
        out.extend(order(sm, stretch, &facts).into_iter().map(|i| stretch[i].clone()));
    }
    *insts = out;
}

/// Up to a pinned fence or the control instruction, inclusive.
fn stretch_end(insts: &[MachInst]) -> usize {
    let last = insts
        .iter()
        .position(|i| matches!(i.effect, Effect::Control | Effect::Fence { pinned: true }))
        .map_or(insts.len(), |at| at + 1);
    last.min(STRETCH)
}

fn order(sm: Sm, insts: &[MachInst], facts: &[InstFacts]) -> Vec<usize> {
    let source: Vec<usize> = (0..insts.len()).collect();
    if insts.len() < 3 {
        return source;
    }
    let dag = Dag::build(sm, insts, facts);
    let heights = dag.heights(|at| if facts[at].variable { timing::result(insts[at].inst.form().mnemonic) } else { 1 });
    let list = schedule(&dag, insts, facts, &heights);
    let cost = |order: &[usize]| simulate(&dag, insts, facts, order);
    if cost(&list) < cost(&source) { list } else { source }
}

/// When things may issue, given what issued before.
struct Machine<'a> {
    dag: &'a Dag,
    insts: &'a [MachInst],
    facts: &'a [InstFacts],
    cycle: u32,
    /// The earliest cycle of each instruction by its dependences.
    ready: Vec<u32>,
    /// The cycle from which each unit takes the next instruction.
    free: [u32; UNITS],
}

impl<'a> Machine<'a> {
    fn new(dag: &'a Dag, insts: &'a [MachInst], facts: &'a [InstFacts]) -> Machine<'a> {
        Machine { dag, insts, facts, cycle: 0, ready: vec![0; insts.len()], free: [0; UNITS] }
    }

    /// The cycle at which an instruction could issue next.
    fn earliest(&self, at: usize) -> u32 {
        let unit = timing::unit(self.insts[at].inst.form().mnemonic).map_or(0, |u| self.free[u as usize]);
        self.ready[at].max(unit).max(self.cycle)
    }

    fn issue(&mut self, at: usize) {
        let issue = self.earliest(at);
        let mnemonic = self.insts[at].inst.form().mnemonic;
        if let Some(unit) = timing::unit(mnemonic) {
            self.free[unit as usize] = issue + timing::occupancy(mnemonic);
        }
        for edge in &self.dag.edges[at] {
            let ready = &mut self.ready[edge.to as usize];
            *ready = (*ready).max(issue + edge.cycles);
        }
        self.cycle = issue + u32::from(self.facts[at].issue.max(1));
    }
}

/// The cycle at which everything has issued and every result is there.
fn simulate(dag: &Dag, insts: &[MachInst], facts: &[InstFacts], order: &[usize]) -> u32 {
    let mut machine = Machine::new(dag, insts, facts);
    order.iter().for_each(|&at| machine.issue(at));
    machine.cycle
}

fn schedule(dag: &Dag, insts: &[MachInst], facts: &[InstFacts], heights: &[u32]) -> Vec<usize> {
    let mut machine = Machine::new(dag, insts, facts);
    let mut missing = dag.incoming.clone();
    let mut available: Vec<usize> = (0..insts.len()).filter(|&at| missing[at] == 0).collect();
    let mut order = Vec::with_capacity(insts.len());
    while !available.is_empty() {
        // What can issue now by its height; if nothing can, what can soonest.
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
