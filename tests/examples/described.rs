//! Runs described kernels whose names contain a text, on all targets and levels: `described NAME [FOLDER]`.

use conformance::case::{self, Outcome};
use conformance::description;
use ptx_isa::Sm;
use std::path::Path;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let wanted = arguments.next().unwrap_or_default();
    let folder = arguments.next().unwrap_or_else(|| format!("{}/kernels", env!("CARGO_MANIFEST_DIR")));
    let cases = description::folder(Path::new(&folder)).unwrap_or_else(|error| panic!("{error}"));
    let (mut good, mut bad) = (0, 0);
    for described in cases.iter().filter(|described| described.name.contains(&wanted)) {
        let case = &described.case;
        let done = case::input(&case.ptx, &case.kernel)
            .and_then(|input| Ok((case::interpret(case, &input)?, input)));
        let (interpreted, input) = match done {
            Ok(done) => done,
            Err(error) => {
                println!("{}: {error}", described.name);
                continue;
            }
        };
        for &number in &Sm::COMPILED {
            let sm = Sm { number, feature: input.env.target.feature };
            if input.env.target.runs_on(sm).is_err() || case.except.contains(&number.into()) {
                continue;
            }
            for level in [0, 1, 2, 3] {
                match case::check(&input, &interpreted, sm, level) {
                    Outcome::Agrees => good += 1,
                    Outcome::NotCompiled(error) => {
                        bad += 1;
                        println!("{} {sm} -O{level}: not compiled: {error}", described.name);
                    }
                    Outcome::Differs(how) => {
                        bad += 1;
                        println!("{} {sm} -O{level}: {how}", described.name);
                    }
                }
            }
        }
    }
    println!("{good} agree, {bad} do not");
}
