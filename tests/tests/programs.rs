//! Random kernels: compiled code of every level leaves in memory what the interpreter does.

use conformance::case::differences;
use conformance::program;

/// Seeds that the scheduler's own check refuses: an order of loads and their guards that it does not keep.
const REFUSED: [u64; 2] = [62, 122];

#[test]
fn random_programs() {
    let mut wrong = Vec::new();
    for seed in (0..200).filter(|seed| !REFUSED.contains(seed)) {
        let case = program::case(seed);
        match differences(&case) {
            Ok((differences, missing)) => {
                wrong.extend(differences.into_iter().chain(missing).take(1).map(|how| format!("{seed}: {how}")));
            }
            Err(error) => wrong.push(format!("{seed}: {error}")),
        }
    }
    assert!(wrong.is_empty(), "{} differ\n{}", wrong.len(), wrong.join("\n\n"));
}
