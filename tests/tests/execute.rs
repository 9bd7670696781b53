//! Compiled code must give the interpreter's results.

use conformance::blessed;
use conformance::case::differences;
use conformance::sweep;
use rayon::prelude::*;

#[test]
fn every_instruction_computes_what_the_manual_says() {
    let (mut wrong, mut missing) = (Vec::new(), Vec::new());
    let cases = sweep::all();
    let results: Vec<_> = cases.par_iter().map(differences).collect();
    for (case, result) in cases.iter().zip(results) {
        let name = sweep::statement(case);
        match result {
            Ok((differences, not_compiled)) => {
                wrong.extend(differences.into_iter().take(1).map(|how| format!("{name}\n{how}")));
                missing.extend(not_compiled.iter().map(|why| without_reason(&name, why)));
            }
            Err(error) => wrong.push(format!("{name}: {error}")),
        }
    }
    assert!(wrong.is_empty(), "{} differ\n{}", wrong.len(), wrong.join("\n\n"));
    blessed::compare("instructions_not_compiled", missing).unwrap_or_else(|error| panic!("{error}"));
}

/// The name of the instruction, and the target in `sm_80 -O0: why`.
fn without_reason(statement: &str, why: &str) -> (String, String) {
    let word = |text: &str| text.split_whitespace().next().unwrap_or(text).to_owned();
    (word(statement), word(why))
}
