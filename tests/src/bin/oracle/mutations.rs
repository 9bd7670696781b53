//! Damage to control fields that the hazard checker must detect.
//!
//! A mutation removes one thing that the code strictly needs: a cycle between a fixed-latency instruction and a reader
//! of its result whose distance equals the latency, or a wait for the only scoreboard that signals an access. The
//! mutations are found within straight-line code, by a scan that is independent of the checker.

use crate::code::Function;
use ptx_backend::hazard;
use sass::{Inst, RegFile, RegUse, Sm, latency};

/// The number of mutations, and of those that the checker detected.
#[derive(Clone, Copy, Default)]
pub(crate) struct Tally {
    pub(crate) made: u32,
    pub(crate) caught: u32,
}

impl Tally {
    pub(crate) fn add(&mut self, other: Tally) {
        self.made += other.made;
        self.caught += other.caught;
    }
}

/// Applies mutations to one function, at most `most` of each kind (shortened stalls, removed waits), chosen by `seed`.
/// Describes undetected ones in `missed`.
pub(crate) fn mutate(
    sm: Sm,
    function: &Function,
    most: usize,
    seed: u64,
    missed: &mut Vec<String>,
) -> (Tally, Tally) {
    let Some(code) = &function.code else { return Default::default() };
    let mut random = fastrand::Rng::with_seed(seed);
    let mut caught = |mutations: Vec<Mutation>| {
        let mut tally = Tally::default();
        for mutation in random.choose_multiple(mutations, most) {
            let mut damaged = code.clone();
            mutation.apply(&mut damaged);
            let seen = !hazard::check(sm, &damaged, &function.tables).is_empty();
            tally.add(Tally { made: 1, caught: seen.into() });
            if !seen {
                missed.push(format!("{}: {mutation:?} is not seen", function.name));
            }
        }
        tally
    };
    let (stalls, waits) = needed(sm, code, &|_| true);
    (caught(stalls), caught(waits))
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Mutation {
    ShortenStall { at: usize },
    RemoveWait { at: usize },
}

impl Mutation {
    pub(crate) fn apply(self, code: &mut [Inst]) {
        match self {
            Mutation::ShortenStall { at } => {
                let control = &mut code[at].control;
                control.stall -= 1;
                // Keeps the word legal: with a long stall, the warp may yield.
                control.yield_ = control.stall >= 12;
                if control.yield_ {
                    control.reuse = 0;
                }
            }
            Mutation::RemoveWait { at } => code[at].control.wait = 0,
        }
    }
}

/// At most `most` mutations of a function's code between executed instructions, chosen by `seed`.
pub(crate) fn choose(sm: Sm, code: &[Inst], acted: &[bool], most: usize, seed: u64) -> Vec<Mutation> {
    let (stalls, waits) = needed(sm, code, &|at| acted[at]);
    fastrand::Rng::with_seed(seed).choose_multiple([stalls, waits].concat(), most)
}

/// All mutations that remove something that is strictly needed: stall cycles or waits.
fn needed(sm: Sm, code: &[Inst], acts: &dyn Fn(usize) -> bool) -> (Vec<Mutation>, Vec<Mutation>) {
    let (mut stalls, mut waits) = (Vec::new(), Vec::new());
    for (first, producer) in code.iter().enumerate() {
        for def in producer.writes(sm) {
            let reader = reader(sm, code, first, &def).filter(|reader| acts(first) && acts(reader.0));
            match reader {
                Some((second, read)) if !producer.is_variable(sm) => {
                    let cycles: u32 = code[first..second].iter().map(|i| u32::from(i.control.stall)).sum();
                    let latency = latency::raw(sm, producer, &def, &code[second], &read);
                    if cycles == u32::from(latency) {
                        let long = (first..second).filter(|&at| code[at].control.stall > 1);
                        stalls.extend(long.map(|at| Mutation::ShortenStall { at }));
                    }
                }
                // The unit forwards the result itself.
                Some((second, read)) if hazard::forwards(sm, producer, &code[second], &read) => {}
                Some((second, _)) => {
                    let set = producer.control.write_sb.map(|s| 1 << s);
                    let no_other = code[first + 1..second].iter().all(|i| i.control.wait == 0);
                    if no_other && set == Some(code[second].control.wait) {
                        waits.push(Mutation::RemoveWait { at: second });
                    }
                }
                None => {}
            }
        }
    }
    for list in [&mut stalls, &mut waits] {
        list.sort();
        list.dedup();
    }
    (stalls, waits)
}

/// The first reader of an instruction's result in the same straight-line code.
fn reader(sm: Sm, code: &[Inst], first: usize, def: &RegUse) -> Option<(usize, RegUse)> {
    if def.file == RegFile::B {
        return None;
    }
    for (at, inst) in code.iter().enumerate().skip(first + 1) {
        if let Some(read) = inst.reads(sm).find(|read| read.overlaps(def)) {
            return Some((at, read));
        }
        let overwritten = inst.writes(sm).any(|w| w.overlaps(def));
        // Waits for a count are waits too.
        let leaves = inst.form().class == sass::Class::Branch || inst.form().mnemonic.starts_with("DEPBAR");
        if overwritten || leaves || inst.control.stall == 0 {
            return None;
        }
    }
    None
}
