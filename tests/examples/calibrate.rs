//! Runs the vendor's code of every case in the emulator and compares it with the interpreter.
//!
//! `calibrate <ptxas> [<part of a case's text>]`: for each case and target the first difference, then how many agree.

use conformance::case::{agrees, input, interpret, listing};
use conformance::sweep;
use ptx_emu::cubin;
use std::process::Command;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let Some(ptxas) = arguments.next() else {
        eprintln!("usage: calibrate <ptxas> [<part of a case's text>]");
        std::process::exit(2);
    };
    let wanted = arguments.next().unwrap_or_default();
    let folder = std::env::temp_dir().join(format!("calibrate-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a temporary folder can be made");
    let (ptx, out) = (folder.join("k.ptx"), folder.join("k.cubin"));
    let (mut agreed, mut all) = (0, 0);
    for case in sweep::all().iter().filter(|case| case.ptx.contains(&wanted)) {
        let name = sweep::statement(case);
        let Ok(input) = input(&case.ptx, "") else { continue };
        let interpreted = match interpret(case, &input) {
            Ok(interpreted) => interpreted,
            Err(error) => {
                println!("{name}: {error}");
                continue;
            }
        };
        for sm in ["sm_80", "sm_90"] {
            std::fs::write(&ptx, &case.ptx).expect("the case can be written");
            let assembled = Command::new(&ptxas).args(["-arch", sm, "-o"]).arg(&out).arg(&ptx).output();
            if !assembled.is_ok_and(|output| output.status.success()) {
                println!("{name}: not assembled for {sm}");
                continue;
            }
            all += 1;
            let bytes = std::fs::read(&out).expect("the cubin can be read");
            let (prepared, expected) = &interpreted;
            let kernel = match cubin::kernel(&bytes, &input.function.name, &prepared.device) {
                Ok(kernel) => kernel,
                Err(error) => {
                    println!("{name} {sm}: {error}");
                    continue;
                }
            };
            match agrees(prepared, expected, &kernel) {
                Ok(()) => agreed += 1,
                Err(how) if wanted.is_empty() => println!("{name} {sm}: {how}"),
                Err(how) => println!("{name} {sm}: {how}\n{}", listing(&kernel)),
            }
        }
    }
    println!("{agreed} of {all} agree");
    let _ = std::fs::remove_dir_all(folder);
}
