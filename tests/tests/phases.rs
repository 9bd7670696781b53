//! Code must be correct if any one of the compiler's optional phases is disabled.
//! `cargo run --release --example phases` tries all of them on every kernel; this test tries some of them on each
//! kernel.

use conformance::case::{self, Case};
use conformance::{description, program};
use ptx_backend::{Options, Switches, switches};
use ptx_emu::machine::Kernel;
use ptx_isa::Sm;
use std::path::Path;

const TARGETS: [u16; 5] = [75, 80, 90, 100, 120];
/// One in this many kernels is tried.
const KERNELS: usize = 8;
const PROGRAMS: u64 = 20;

/// How the kernel fails without a part. Code that cannot be compiled with all parts is not counted.
fn failure(case: &Case, sm: u16, switches: Switches) -> Option<String> {
    let input = case::input(&case.ptx, &case.kernel).ok()?;
    let sm = Sm { number: sm, feature: input.env.target.feature };
    if input.env.target.runs_on(sm).is_err() || case.except.contains(&sm.number.into()) {
        return None;
    }
    let code = match case::compile_with(&input, Options { switches, ..Options::new(sm) }) {
        Ok(code) => code,
        Err(error) => return case::compile(&input, sm, 3).is_ok().then(|| format!("not compiled: {error}")),
    };
    let (prepared, expected) = case::interpret(case, &input).ok()?;
    let kernel = Kernel::compiled(&input.env, &code, sass::Sm(sm.number as u8), &prepared.device);
    case::agrees(&prepared, &expected, &kernel).err()
}

#[test]
fn code_is_right_without_any_part() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels");
    let described = description::folder(&folder).unwrap_or_else(|error| panic!("{error}"));
    let described = described.into_iter().step_by(KERNELS).map(|described| (described.name, described.case));
    let programs = (0..PROGRAMS).map(|seed| (format!("program {seed}"), program::case(seed)));
    let mut parts: Vec<_> = switches::singles();
    parts.push(("all".into(), Switches::parse("-all").expect("a name")));
    let mut wrong = Vec::new();
    for (i, (name, case)) in described.chain(programs).enumerate() {
        let (part, switches) = &parts[i % parts.len()];
        let sm = TARGETS[i % TARGETS.len()];
        wrong.extend(
            failure(&case, sm, *switches).map(|how| format!("{name}, sm_{sm}, without {part}: {how}")),
        );
    }
    assert!(wrong.is_empty(), "{} differ\n{}", wrong.len(), wrong.join("\n\n"));
}
