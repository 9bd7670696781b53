//! Compares compiled random programs with the interpreter: `programs FIRST SECONDS [--shrink | --print]`. It uses all
//! seeds from FIRST on, each for one target.
//!
//! Prints the number of agreements by target and level, and each failure; `--shrink` shrinks the first failure of a
//! seed. `--print` prints the first program and runs nothing.

#![expect(clippy::print_stdout, reason = "a tool for a terminal")]

use conformance::case::{self, Case, Input, Outcome};
use conformance::program;
use ptx_emu::Device;
use ptx_isa::Sm;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The seeds use these targets in rotation.
const TARGETS: [u16; 6] = [75, 80, 86, 90, 100, 120];
const LEVELS: [u8; 4] = [0, 1, 2, 3];

type Interpreted = (Input, (case::Prepared, Device));

fn interpret(case: &Case) -> Result<Interpreted, String> {
    let input = case::input(&case.ptx, &case.kernel)?;
    let interpreted = case::interpret(case, &input)?;
    Ok((input, interpreted))
}

/// How a case fails at a target and level. `None` if it does not fail, or is not a program that terminates.
fn failure(case: &Case, target: u16, level: u8) -> Option<String> {
    let (input, interpreted) = interpret(case).ok()?;
    describe(case::check(&input, &interpreted, Sm::new(target), level))
}

fn describe(outcome: Outcome) -> Option<String> {
    match outcome {
        Outcome::Agrees => None,
        Outcome::NotCompiled(error) => Some(format!("not compiled: {error}")),
        Outcome::Differs(how) => Some(how),
    }
}

/// A target and a level.
type Setting = (u16, u8);

/// How the case fails at each level. Levels with the same code are run once.
fn failures(case: &Case, target: u16) -> Result<Vec<(Setting, Option<String>)>, String> {
    let (input, interpreted) = interpret(case)?;
    let mut all = Vec::new();
    let mut known: Vec<(Box<[u128]>, Option<String>)> = Vec::new();
    for level in LEVELS {
        let how = match case::compile(&input, Sm::new(target), level) {
            // The module needs features that only later targets have.
            Err(_) if input.env.target.number > target => continue,
            Err(error) if ["before sm_", "on this target"].iter().any(|s| error.to_string().contains(s)) => {
                continue;
            }
            Err(error) => Some(format!("not compiled: {error}")),
            Ok(function) => match known.iter().find(|(code, _)| code[..] == function.kernel.code[..]) {
                Some((_, how)) => how.clone(),
                None => {
                    let how = describe(case::run(&input, &interpreted, Sm::new(target), &function));
                    known.push((function.kernel.code[..].into(), how.clone()));
                    how
                }
            },
        };
        all.push(((target, level), how));
    }
    Ok(all)
}

fn main() {
    let numbers: Vec<u64> = std::env::args().skip(1).filter_map(|text| text.parse().ok()).collect();
    let wants = |name: &str| std::env::args().any(|argument| argument == name);
    let [first, seconds] = numbers[..] else {
        println!("programs FIRST SECONDS [--shrink | --print]");
        return;
    };
    if wants("--print") {
        println!("{}", program::case(first).ptx);
        return;
    }
    let start = Instant::now();
    let mut agree: BTreeMap<Setting, (u64, u64)> = BTreeMap::new();
    let mut seed = first;
    while start.elapsed() < Duration::from_secs(seconds) {
        let case = program::case(seed);
        match failures(&case, TARGETS[(seed % TARGETS.len() as u64) as usize]) {
            Err(error) => println!("program {seed}: {error}"),
            Ok(failures) => {
                let good_at = failures.iter().find(|(_, how)| how.is_none()).map(|((_, level), _)| *level);
                let mut is_shrunk = false;
                for ((target, level), how) in failures {
                    let (good, all) = agree.entry((target, level)).or_default();
                    *all += 1;
                    let Some(how) = how else {
                        *good += 1;
                        continue;
                    };
                    println!(
                        "program {seed} sm_{target} -O{level}: {}",
                        how.lines().next().unwrap_or_default()
                    );
                    if wants("--shrink") && !std::mem::replace(&mut is_shrunk, true) {
                        shrink(&case, target, (level, good_at), &how);
                    }
                }
            }
        }
        seed += 1;
    }
    for ((target, level), (good, all)) in agree {
        println!("sm_{target} -O{level}: {good} of {all} agree");
    }
    println!("seeds {first}..{seed}");
}

/// Prints a smaller case with the same failure. If the case agrees at another level, the smaller one does too: otherwise,
/// lines would be removed until the program computes with addresses, which differ from the interpreter's at all levels.
fn shrink(case: &Case, target: u16, (level, good_at): (u8, Option<u8>), how: &str) {
    let kind = |how: &str| how.split([' ', ':']).next().unwrap_or_default().to_owned();
    let small = program::shrink(case, |case| {
        failure(case, target, level).is_some_and(|other| kind(&other) == kind(how))
            && good_at.is_none_or(|good| failure(case, target, good).is_none())
    });
    println!("{}\n{}", failure(&small, target, level).unwrap_or_default(), small.ptx);
}
