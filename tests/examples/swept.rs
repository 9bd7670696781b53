//! `swept TEXT` runs the kernels of the sweep whose instruction contains TEXT, on all targets.

use conformance::case::differences;
use conformance::sweep;

fn main() {
    let wanted = std::env::args().nth(1).unwrap_or_default();
    let (mut good, mut bad) = (0, 0);
    for case in &sweep::all() {
        let name = sweep::statement(case);
        if !name.contains(&wanted) {
            continue;
        }
        match differences(case) {
            Ok((differences, missing)) => {
                let found = differences.len() + missing.len();
                good += usize::from(found == 0);
                bad += usize::from(found > 0);
                for how in differences.iter().take(1).chain(&missing) {
                    println!("{name}\n{how}");
                }
            }
            Err(error) => {
                bad += 1;
                println!("{name}: {error}");
            }
        }
    }
    println!("{good} agree, {bad} do not");
}
