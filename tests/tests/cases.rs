//! The described kernels: compiled code must leave the same memory as the interpreter.

use conformance::blessed;
use conformance::case::differences;
use conformance::description;
use rayon::prelude::*;
use std::path::Path;

#[test]
fn described_kernels() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels");
    let cases = description::folder(&folder).unwrap_or_else(|error| panic!("{error}"));
    let (mut wrong, mut missing) = (Vec::new(), Vec::new());
    let results: Vec<_> = cases.par_iter().map(|described| differences(&described.case)).collect();
    for (described, result) in cases.iter().zip(results) {
        let name = &described.name;
        match result {
            Ok((differences, not_compiled)) => {
                wrong.extend(differences.into_iter().take(1).map(|how| format!("{name}\n{how}")));
                let targets = not_compiled.iter().filter_map(|why| why.split(' ').next());
                missing.extend(targets.map(|target| (name.clone(), target.to_owned())));
            }
            Err(error) => wrong.push(format!("{name}: {error}")),
        }
    }
    assert!(wrong.is_empty(), "{} differ\n{}", wrong.len(), wrong.join("\n\n"));
    blessed::compare("kernels_not_compiled", missing).unwrap_or_else(|error| panic!("{error}"));
}
