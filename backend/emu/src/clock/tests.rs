//! Small pieces of code with known costs: the cycles for each additional copy.

use super::{Reason, Report, Setting, time};
use crate::Launch;
use crate::machine::testing::{device, kernel};
use sass::Sm;

fn run(sm: u8, threads: u32, lines: &[&str]) -> Report {
    let sm = Sm(sm);
    let launch = Launch::new(1, threads, Vec::new());
    time(&kernel(sm, lines), &launch, &mut device(sm), Setting::default()).expect("it runs")
}

/// The cycles of a copy of some lines, in hundredths. Compares many copies with half as many, after some lines that
/// come first.
fn each(sm: u8, threads: u32, before: &[&str], lines: &[&str]) -> u64 {
    const COPIES: usize = 64;
    let of = |copies: usize| {
        let code: Vec<&str> =
            before.iter().copied().chain(lines.iter().copied().cycle().take(copies * lines.len())).collect();
        run(sm, threads, &code).cycles
    };
    (of(2 * COPIES) - of(COPIES)) * 100 / COPIES as u64
}

#[test]
fn stall_counts() {
    assert_eq!(each(80, 32, &[], &["s4: FFMA R0, R0, R1, R2"]), 400);
    assert_eq!(each(90, 32, &[], &["s13: FFMA R0, R0, R1, R2"]), 1300);
    // A loop that ptxas compiled: four sums, the counter, its test and the branch.
    let turn = [
        "s1: IADD3 R5, R5, 0x1, RZ",
        "s4: FFMA R0, R0, R1, R2",
        "s1: ISETP.NE.AND P0, PT, R5, R6, PT",
        "s3: NOP",
        "s4: FFMA R0, R0, R1, R2",
        "s5: FFMA R0, R0, R1, R2",
        "s5: FFMA R0, R0, R1, R2",
    ];
    assert_eq!(each(75, 32, &[], &turn), 2300);
}

#[test]
fn pipes() {
    let sum = ["s1 u7: FFMA R5, R1, R2, R3"];
    assert_eq!(each(86, 32, &[], &sum), 100);
    assert_eq!(each(80, 32, &[], &sum), 200);
    assert_eq!(each(120, 32, &[], &["s1: LOP3.LUT R5, R1, R2, RZ, 0xc0, !PT"]), 200);
    // Sums in the multiplier's pipe alternate with those of the adder, except where both share lanes.
    let both = ["s1: IADD3 R5, R1, R2, RZ", "s1: IMAD R6, R1, R2, RZ"];
    assert_eq!(each(80, 32, &[], &both), 200);
    assert_eq!(each(90, 32, &[], &both), 400);
    // All partitions share one pipe for doubles.
    assert_eq!(each(80, 128, &[], &["s2: DADD R4, R2, R2"]), 400);
    assert_eq!(each(86, 128, &[], &["s2 w0: DADD R4, R2, R2"]), 6400);
    assert_eq!(each(86, 32, &[], &["s2: MUFU.RCP R0, R1"]), 800);
}

#[test]
fn register_banks() {
    assert_eq!(each(86, 32, &[], &["s1: FFMA R9, R0, R2, R4"]), 300);
    assert_eq!(each(86, 32, &[], &["s1: FFMA R9, R0, R2, R1"]), 200);
    assert_eq!(each(86, 32, &[], &["s1 u7: FFMA R9, R0, R2, R4"]), 100);
}

#[test]
fn yields() {
    assert_eq!(each(80, 32, &[], &["s1: NOP"]), 100);
    assert_eq!(each(80, 32, &[], &["s1 y: NOP"]), 200);
}

#[test]
fn several_warps_share_a_partition() {
    // Two warps hide each other's stalls. Eight warps are limited by the pipe.
    assert_eq!(each(86, 32, &[], &["s4: FFMA R5, R1, R1, R2"]), 400);
    assert_eq!(each(86, 256, &[], &["s4: FFMA R5, R1, R1, R2"]), 400);
    assert_eq!(each(86, 1024, &[], &["s4: FFMA R5, R1, R1, R2"]), 800);
    assert_eq!(each(80, 1024, &[], &["s4: FFMA R5, R1, R1, R2"]), 1600);
}

#[test]
fn shared_memory() {
    let start = |address: &'static str| [address, "s4 r1: STS [R0], R0", "s4 ?1: NOP"];
    // A chain of dependent loads.
    let chain = ["s2 w0: LDS R0, [R0]", "s1 ?0: NOP"];
    assert_eq!(each(86, 32, &start("s6: MOV R0, RZ"), &chain), 2500);
    assert_eq!(each(90, 32, &start("s6: MOV R0, 0x400"), &chain), 3000);
    // Loads without a dependent instruction: one partition is bound by its address unit, four by the shared request port.
    let load = ["s1: LDS R2, [R0]"];
    assert_eq!(each(86, 32, &start("s6: MOV R0, RZ"), &load), 400);
    assert_eq!(each(86, 128, &start("s6: MOV R0, RZ"), &load) / 10, 80);
    assert_eq!(each(90, 32, &start("s6: MOV R0, 0x400"), &load), 200);
    assert_eq!(each(90, 128, &start("s6: MOV R0, 0x400"), &load) / 10, 40);
}

#[test]
fn queues_fill() {
    let lines: Vec<&str> = ["s6: MOV R0, RZ", "s4 r1: STS [R0], R0", "s4 ?1: NOP"]
        .into_iter()
        .chain(["s1: LDS R2, [R0]"; 16])
        .collect();
    let report = run(86, 32, &lines);
    assert!(report.lost[Reason::Queue as usize] > 20, "{report:?}");
}

#[test]
fn barriers() {
    let barrier = ["s6: BAR.SYNC.DEFER_BLOCKING 0x0"];
    assert_eq!(each(90, 256, &[], &barrier), 3900);
    assert_eq!(each(90, 1024, &[], &barrier), 9300);
}

#[test]
fn products() {
    let products = ["s4: HMMA.16816.F32 R4, R8, R12, RZ", "s4: HMMA.16816.F32 R16, R8, R12, RZ"];
    assert_eq!(each(80, 32, &[], &products), 1600);
    assert_eq!(each(120, 32, &[], &products), 6400);
}

#[test]
fn a_barrier_that_is_guarded_off_waits_for_nobody() {
    assert_eq!(each(80, 64, &[], &["s5: @!PT BAR.SYNC 0x0"]), 500);
}
