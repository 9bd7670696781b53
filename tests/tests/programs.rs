//! Random kernels: compiled code of every level leaves in memory what the interpreter does.

use conformance::case::differences;
use conformance::program;

#[test]
fn random_programs() {
    let mut wrong = Vec::new();
    for seed in 0..100 {
        let case = program::case(seed);
        match differences(&case) {
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
