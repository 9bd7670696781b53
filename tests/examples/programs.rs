//! Compares compiled random programs with the interpreter: `programs FIRST SECONDS [--shrink]`, with seeds from
//! the first on.
//!
//! Prints how many agree by target and level, and each that does not, on request made small.

#![expect(clippy::print_stdout, reason = "a tool for a terminal")]

use conformance::case::{self, Case, Outcome};
use conformance::program;
use ptx_isa::Sm;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

const TARGETS: [u16; 2] = [80, 90];
const LEVELS: [u8; 4] = [0, 1, 2, 3];

/// How a case fails at a target and level.
fn failure(case: &Case, target: u16, level: u8) -> Option<String> {
    let input = case::input(&case.ptx, &case.kernel).ok()?;
    let interpreted = case::interpret(case, &input).ok()?;
    match case::check(case, &input, &interpreted, Sm::new(target), level) {
        Outcome::Agrees => None,
        Outcome::NotCompiled(error) => Some(format!("not compiled: {error}")),
        Outcome::Differs(how) => Some(how),
    }
}

fn main() {
    let numbers: Vec<u64> = std::env::args().skip(1).filter_map(|text| text.parse().ok()).collect();
    let shrinks = std::env::args().any(|argument| argument == "--shrink");
    let [first, seconds] = numbers[..] else {
        println!("programs FIRST SECONDS [--shrink]");
        return;
    };
    let start = Instant::now();
    let mut agree: BTreeMap<(u16, u8), (u64, u64)> = BTreeMap::new();
    let mut seed = first;
    while start.elapsed() < Duration::from_secs(seconds) {
        let case = program::case(seed);
        let interpreted = case::input(&case.ptx, &case.kernel)
            .and_then(|input| case::interpret(&case, &input).map(|interpreted| (input, interpreted)));
        let (input, interpreted) = match interpreted {
            Ok(both) => both,
            Err(error) => {
                println!("program {seed}: {error}");
                seed += 1;
                continue;
            }
        };
        for (target, level) in TARGETS.iter().flat_map(|&target| LEVELS.map(|level| (target, level))) {
            let outcome = case::check(&case, &input, &interpreted, Sm::new(target), level);
            let (good, all) = agree.entry((target, level)).or_default();
            *all += 1;
            if matches!(outcome, Outcome::Agrees) {
                *good += 1;
                continue;
            }
            let how = failure(&case, target, level).unwrap_or_default();
            println!("program {seed} sm_{target} -O{level}: {}", how.lines().next().unwrap_or_default());
            if !shrinks {
                continue;
            }
            let kind = |how: &str| how.split([' ', ':']).next().unwrap_or_default().to_owned();
            let small = program::shrink(&case, |case| {
                failure(case, target, level).is_some_and(|other| kind(&other) == kind(&how))
            });
            println!("{}\n{}", failure(&small, target, level).unwrap_or_default(), small.ptx);
        }
        seed += 1;
    }
    for ((target, level), (good, all)) in agree {
        println!("sm_{target} -O{level}: {good} of {all} agree");
    }
    println!("seeds {first}..{seed}");
}
