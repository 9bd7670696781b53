//! Runs the hazard checker on cubins, ours or NVIDIA's: `cargo run --example hazards FILES…`.
//!
//! Prints, for each generation, the number of functions without findings, and the findings in the others (up to
//! `--show N` of each kind). It is not a test, because it needs cubins.

use object::{Object, ObjectSection};
use ptx_backend::hazard::{self, Hazard};
use sass::{Inst, Sm};
use std::collections::BTreeMap;
use std::process::ExitCode;

#[derive(Default)]
struct Score {
    functions: usize,
    accepted: usize,
    undecoded: usize,
    instructions: usize,
    findings: usize,
}

fn main() -> ExitCode {
    let mut show = 0;
    let mut scores: BTreeMap<u8, Score> = BTreeMap::new();
    let mut kinds: BTreeMap<(u8, String), (usize, Vec<String>)> = BTreeMap::new();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        if argument == "--show" {
            show = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(0);
            continue;
        }
        let Ok(bytes) = std::fs::read(&argument) else {
            eprintln!("cannot read {argument}");
            return ExitCode::FAILURE;
        };
        let Ok(file) = object::File::parse(&*bytes) else {
            eprintln!("{argument} is not an object file");
            return ExitCode::FAILURE;
        };
        let object::FileFlags::Elf { e_flags, .. } = file.flags() else { continue };
        let sm = Sm((e_flags.0 >> 8) as u8);
        let score = scores.entry(sm.0).or_default();
        for section in file.sections() {
            let (Ok(name), Ok(data)) = (section.name(), section.data()) else { continue };
            if !name.starts_with(".text.") {
                continue;
            }
            score.functions += 1;
            let words = data.chunks_exact(16).map(|w| u128::from_le_bytes(w.try_into().expect("16 bytes")));
            let decoded: Option<Vec<Inst>> = words.map(|w| sass::decode(sm, w)).collect();
            let Some(code) = decoded else {
                score.undecoded += 1;
                continue;
            };
            score.instructions += code.len();
            let found = hazard::check(sm, &code, &[]);
            score.accepted += usize::from(found.is_empty());
            score.findings += found.len();
            for hazard in &found {
                let (count, texts) = kinds.entry((sm.0, describe(hazard, &code))).or_default();
                *count += 1;
                if texts.len() < show {
                    texts.push(format!("{argument} {name} {}", detail(sm, hazard, &code)));
                }
            }
        }
    }
    for (sm, score) in &scores {
        let Score { functions, accepted, undecoded, instructions, findings } = score;
        println!(
            "sm_{sm}: {accepted} of {functions} functions accepted, {undecoded} not decoded; {findings} findings in {instructions} instructions"
        );
    }
    let mut kinds: Vec<_> = kinds.into_iter().collect();
    kinds.sort_by_key(|(_, (count, _))| std::cmp::Reverse(*count));
    for ((sm, kind), (count, texts)) in kinds.iter().take(2000) {
        println!("{count:6} sm_{sm} {kind}");
        texts.iter().for_each(|t| println!("         {t}"));
    }
    ExitCode::SUCCESS
}

fn describe(hazard: &Hazard, code: &[Inst]) -> String {
    let name = |at: usize| code[at].form().mnemonic;
    let earlier = hazard.earlier.map_or("", name);
    format!("{:?} {earlier} -> {} needs {} has {}", hazard.kind, name(hazard.at), hazard.needed, hazard.found)
}

fn detail(sm: Sm, hazard: &Hazard, code: &[Inst]) -> String {
    let text = |at: usize| sass::print(sm, &code[at], at as u64 * 16);
    let earlier = hazard.earlier.map_or(String::new(), text);
    format!("{hazard}: {earlier} | {}", text(hazard.at))
}
