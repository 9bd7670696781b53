//! Compiled code does what the interpreter does.

use conformance::case::differences;
use conformance::sweep;

#[test]
fn every_instruction_computes_what_the_manual_says() {
    let (mut wrong, mut missing) = (Vec::new(), Vec::new());
    let cases = sweep::all();
    for case in &cases {
        let name = sweep::statement(case);
        match differences(case) {
            Ok((differences, not_compiled)) => {
                wrong.extend(differences.into_iter().take(1).map(|how| format!("{name}\n{how}")));
                missing.extend(not_compiled.into_iter().take(1).map(|why| format!("{name} {why}")));
            }
            Err(error) => wrong.push(format!("{name}: {error}")),
        }
    }
    eprintln!("{} cases; not compiled:\n{}", cases.len(), missing.join("\n"));
    assert!(wrong.is_empty(), "{} differ\n{}", wrong.len(), wrong.join("\n\n"));
}
