//! Random kernels: compiled code of every level must leave the same memory as the interpreter.

use conformance::case::differences;
use conformance::program;
use rayon::prelude::*;

#[test]
fn random_programs() {
    let mut wrong = Vec::new();
    let results: Vec<_> =
        (0..100_u64).into_par_iter().map(|seed| differences(&program::case(seed))).collect();
    for (seed, result) in results.into_iter().enumerate() {
        match result {
            Ok((differences, missing)) => {
                wrong.extend(
                    differences.into_iter().chain(missing).take(1).map(|how| format!("{seed}: {how}")),
                );
            }
            Err(error) => wrong.push(format!("{seed}: {error}")),
        }
    }
    assert!(wrong.is_empty(), "{} differ\n{}", wrong.len(), wrong.join("\n\n"));
}
