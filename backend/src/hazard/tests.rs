//! Programs with known hazards, random programs that the scheduler has processed, and such programs with something
//! removed.

use super::*;
use crate::assemble::assemble;
use crate::input::SrcId;
use crate::mach::{Block, BlockId, Code, Effect, MachInst};
use crate::sched::{Options, schedule};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestRunner};

const SM: Sm = Sm(80);

/// Instructions with stall count, yield, scoreboards and waits: `13Y w0 r1 w:01 TEXT`, in any order.
fn code(lines: &[&str]) -> Vec<Inst> {
    code_of(SM, lines)
}

pub(crate) fn code_of(sm: Sm, lines: &[&str]) -> Vec<Inst> {
    lines
        .iter()
        .enumerate()
        .map(|(at, line)| {
            let (control, text) = line.split_once(": ").expect("control: text");
            let mut inst = parse(sm, text, at as u64 * 16);
            inst.control.stall = 1;
            for field in control.split_ascii_whitespace() {
                let number = |text: &str| text.parse::<u8>().expect("a number");
                match field.split_at(1) {
                    ("s", n) => inst.control.stall = number(n),
                    ("y", n) => (inst.control.stall, inst.control.yield_) = (number(n), true),
                    ("w", n) => inst.control.write_sb = Some(number(n)),
                    ("r", n) => inst.control.read_sb = Some(number(n)),
                    ("?", n) => inst.control.wait = n.bytes().map(|b| 1 << (b - b'0')).sum(),
                    _ => panic!("{field}"),
                }
            }
            inst
        })
        .collect()
}

fn parse(sm: Sm, text: &str, address: u64) -> Inst {
    sass::parse(sm, text, address).unwrap_or_else(|e| panic!("{text}: {}", e.message))
}

fn findings(lines: &[&str]) -> Vec<String> {
    check(SM, &code(lines), &[]).iter().map(ToString::to_string).collect()
}

#[test]
fn fixed_latencies_need_their_cycles() {
    assert_eq!(findings(&["s4: MOV R0, 0x1", "s5: IADD3 R1, R0, R0, RZ", "s1: FADD R2, R1, R1"]), [""; 0]);
    assert_eq!(
        findings(&["s3: MOV R0, 0x1", "s4: IADD3 R1, R0, R0, RZ", "s1: FADD R2, R1, R1"]),
        [
            "0x0010: ReadAfterWrite of R0 after 0x0000, 3 of 4 cycles",
            "0x0020: ReadAfterWrite of R1 after 0x0010, 4 of 5 cycles"
        ]
    );
}

/// No access to released registers may be in progress, and later instructions must wait.
#[test]
fn registers_are_given_when_they_are_not_in_use() {
    let findings = |lines: &[&str]| -> Vec<String> {
        let sm = Sm(90);
        check(sm, &code_of(sm, lines), &[]).iter().map(ToString::to_string).collect()
    };
    let give = "y0 w0: USETMAXREG.DEALLOC.CTAPOOL 0x18";
    let waits = "s1 ?0: MOV R2, 0x1";
    assert_eq!(findings(&["s2 w1: S2R R21, SR_TID.X", "s8: MOV R20, 0x1", give, waits]), [""; 0]);
    assert_eq!(
        findings(&["s2 w1: S2R R22, SR_TID.X", give, waits]),
        ["0x0010: ReadAfterWrite of R22 after 0x0000, no wait"]
    );
    assert_eq!(
        findings(&["s2 r1: STS [R22], R3", give, waits]),
        ["0x0010: WriteAfterRead of R22 after 0x0000, no wait"]
    );
    assert_eq!(
        findings(&["s2: MOV R40, 0x1", give, waits]),
        ["0x0010: ReadAfterWrite of R40 after 0x0000, 2 of 13 cycles"]
    );
    assert_eq!(findings(&[give, "s1: MOV R2, 0x1"]), ["0x0010: WriteAfterWrite of R2 after 0x0000, no wait"]);
}

/// A wait for warpgroup products completes those of all groups except the latest.
#[test]
fn products_end_by_groups() {
    let found = |wait: &str, last: &str| {
        let lines = [
            "s1: HGMMA.64x8x16.F32 R24, gdesc[UR4], RZ, !UPT, gsb0",
            "s1: HGMMA.64x8x16.F32 R28, R32, gdesc[UR8], RZ, !UPT, gsb0",
            wait,
            last,
        ];
        let sm = Sm(90);
        let parse = |(at, line): (usize, &&str)| {
            let (_, text) = line.split_once(": ").expect("control: text");
            let mut inst = sass::parse(sm, text, at as u64 * 16).expect("an instruction");
            (inst.control.stall, inst.control.yield_) = (15, true);
            inst
        };
        let code: Vec<Inst> = lines.iter().enumerate().map(parse).collect();
        check(sm, &code, &[]).iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let (but_one, all) = ("s2: WARPGROUP.DEPBAR.LE gsb0, 0x1", "s2: WARPGROUP.DEPBAR.LE gsb0, 0x0");
    assert_eq!(found(but_one, "s5: FADD R0, R24, R25"), [""; 0]);
    assert_eq!(
        found(but_one, "s5: FADD R0, R28, R24"),
        ["0x0030: ReadAfterWrite of R28 after 0x0010, no wait"]
    );
    assert_eq!(found(but_one, "s5: FADD R0, R32, R33"), [""; 0]);
    assert_eq!(found(but_one, "s5: MOV R33, 0x1"), ["0x0030: WriteAfterRead of R33 after 0x0010, no wait"]);
    assert_eq!(found(all, "s5: FADD R33, R28, R24"), [""; 0]);
    // Unlike the accumulator, a factor is not forwarded within the unit.
    assert_eq!(found("s1: NOP", "s1: HGMMA.64x8x16.F32 R24, gdesc[UR4], R24"), [""; 0]);
    assert_eq!(
        found("s1: NOP", "s1: HGMMA.64x8x16.F32 R40, R24, gdesc[UR8], RZ, !UPT")[0],
        "0x0030: ReadAfterWrite of R24 after 0x0000, no wait"
    );
}

/// From sm_90 on, a branch must be some cycles after the instruction that sets a convergence barrier.
#[test]
fn branches_keep_a_distance_from_barriers() {
    let found = |sm: u8, stall: u8| {
        let parse = |(at, text): (usize, &&str)| {
            let mut inst = sass::parse(Sm(sm), text, at as u64 * 16).expect("an instruction");
            (inst.control.stall, inst.control.yield_) = (stall, true);
            inst
        };
        let code: Vec<Inst> =
            ["BSSY B0, 0x20", "@P0 BRA 0x20", "BSYNC B0"].iter().enumerate().map(parse).collect();
        check(Sm(sm), &code, &[]).iter().map(|hazard| hazard.kind).collect::<Vec<_>>()
    };
    for sm in [90, 100, 120] {
        assert_eq!(found(sm, 3), [Kind::TooClose]);
        assert_eq!(found(sm, 4), []);
    }
    assert_eq!(found(80, 2), []);
}

/// A group of copies must end two cycles after its last copy.
#[test]
fn ends_of_groups_keep_a_distance_from_copies() {
    let found = |sm: u8, stall: u8| {
        let parse = |(at, text): (usize, &&str)| {
            let mut inst = sass::parse(Sm(sm), text, at as u64 * 16).expect("an instruction");
            inst.control.stall = stall;
            inst
        };
        let code: Vec<Inst> =
            ["LDGSTS.E [R2], desc[UR4][R4.64]", "LDGDEPBAR"].iter().enumerate().map(parse).collect();
        check(Sm(sm), &code, &[]).iter().map(|hazard| hazard.kind).collect::<Vec<_>>()
    };
    for sm in [90, 100, 120] {
        assert_eq!(found(sm, 1), [Kind::TooClose], "sm_{sm}");
        assert_eq!(found(sm, 2), [], "sm_{sm}");
    }
}

/// Products must begin some cycles after the arrival, and the arrival some cycles after the writes to the products'
/// registers.
#[test]
fn products_begin_after_an_arrival() {
    let found = |lines: &[&str]| {
        let parse = |(at, line): (usize, &&str)| {
            let (stall, text) = line.split_once(": ").expect("stall: text");
            let mut inst = sass::parse(Sm(90), text, at as u64 * 16).expect("an instruction");
            (inst.control.stall, inst.control.yield_) = (stall[1..].parse().expect("cycles"), true);
            inst
        };
        let code: Vec<Inst> = lines.iter().enumerate().map(parse).collect();
        check(Sm(90), &code, &[]).iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let product = "s3: HGMMA.64x64x16.F32 R24, R4, gdesc[UR4], R24, gsb0";
    assert_eq!(found(&["s6: WARPGROUP.ARRIVE", product]), [""; 0]);
    assert_eq!(found(&["s5: WARPGROUP.ARRIVE", product]), ["0x0010: TooClose, 0 of 1 cycles"]);
    let wide = "s12: HGMMA.64x128x16.F32 R88, gdesc[UR8], R88";
    assert_eq!(found(&[wide, product]), [""; 0]);
    assert_eq!(found(&["s2: NOP", &wide.replace("s12", "s11"), product]).len(), 1);
    let sum = |stall: u8| found(&[&format!("s{stall}: FMUL R30, R1, R2"), "s9: WARPGROUP.ARRIVE", product]);
    assert_eq!(sum(6), [""; 0]);
    assert_eq!(sum(5), ["0x0010: ReadAfterWrite of R30 after 0x0000, 5 of 6 cycles"]);
    let factor = |stall: u8| found(&[&format!("s{stall}: MOV R5, R2"), "s6: WARPGROUP.ARRIVE", product]);
    assert_eq!(factor(4), [""; 0]);
    assert_eq!(
        factor(3),
        [
            "0x0010: ReadAfterWrite of R5 after 0x0000, 3 of 4 cycles",
            "0x0020: ReadAfterWrite of R5 after 0x0000, 9 of 10 cycles"
        ]
    );
}

/// If the threads have converged, a `BRA.DIV` falls through. Accesses after it are in progress at the join.
#[test]
fn a_branch_for_diverged_threads_may_not_be_taken() {
    for branch in ["BRA.DIV UR4, 0x40", "BRA.DIV ~URZ, 0x40", "@P0 BRA 0x40"] {
        let together = [&format!("s5: {branch}"), "s1: VOTE.ANY R0, PT, P0", "s1: BRA 0x50"];
        let apart = ["s5: EXIT", "s5: EXIT"];
        let join = ["s1: FADD R2, R0, R0", "s5: EXIT"];
        let found = findings(&[&together[..], &apart, &join].concat());
        assert_eq!(found, ["0x0050: ReadAfterWrite of R0 after 0x0010, 2 of 5 cycles"], "{branch}");
    }
}

#[test]
fn variable_latencies_need_their_scoreboard() {
    let load = "s2 w3: LDG.E R0, [R2.64]";
    assert_eq!(findings(&[load, "s1 ?3: FADD R1, R0, R0"]), [""; 0]);
    assert_eq!(
        findings(&[load, "s1 ?2: FADD R1, R0, R0"]),
        ["0x0010: ReadAfterWrite of R0 after 0x0000, no wait"]
    );
    assert_eq!(findings(&[load, "s1: MOV R0, 0x1"]), ["0x0010: WriteAfterWrite of R0 after 0x0000, no wait"]);
    assert_eq!(findings(&[load, "s1: MOV R2, 0x1"]), ["0x0010: WriteAfterRead of R2 after 0x0000, no wait"]);
    assert_eq!(findings(&["s2 w3 r1: LDG.E R0, [R2.64]", "s1 ?1: MOV R2, 0x1"]), [""; 0]);
    assert_eq!(
        findings(&["s1 w3: LDG.E R0, [R2.64]", "s1 ?3: FADD R1, R0, R0"]),
        ["0x0010: WaitTooEarly, 1 of 2 cycles"]
    );
    assert_eq!(findings(&["y0 w3: LDG.E R0, [R2.64]", "s1 ?3: FADD R1, R0, R0"]), [""; 0]);
}

#[test]
fn every_path_counts() {
    // The short path skips the load's wait.
    let body = |wait: &str| {
        findings(&[
            "s2 w0: LDG.E R0, [R2.64]",
            "s5: @P0 BRA 0x30",
            wait,
            "s5: FADD R1, R1, R1",
            "s1: FADD R4, R0, R0",
        ])
    };
    assert_eq!(body("s5 ?0: FADD R1, R0, R0"), ["0x0040: ReadAfterWrite of R0 after 0x0000, no wait"]);
    // A hazard around a loop.
    let looped = |stall: &str| findings(&[stall, "s5: @P0 BRA 0x0", "s5: EXIT"]);
    assert_eq!(looped("s4: IADD3 R0, R0, 0x1, RZ"), [""; 0]);
    assert_eq!(
        findings(&["s1: IMAD.WIDE.U32 R0, R0, R0, RZ", "s2: @P0 BRA 0x0", "s5: EXIT"]),
        ["0x0000: ReadAfterWrite of R0 after 0x0000, 3 of 6 cycles"]
    );
}

#[test]
fn control_words_and_operands_must_be_legal() {
    let kinds = |lines: &[&str]| check(SM, &code(lines), &[]).iter().map(|h| h.kind).collect::<Vec<_>>();
    assert_eq!(kinds(&["s12: NOP", "s0: NOP", "y0: NOP", "y12: NOP"]), [Kind::IllegalStall; 2]);
    assert_eq!(kinds(&["s5 w0: EXIT"]), [Kind::IllegalScoreboard]);
    assert_eq!(kinds(&["s5: IADD3 R0, -R1, -R2, RZ", "s5: IADD3 R0, -R1, R3, -R2"]), [Kind::IllegalOperands]);
    let mut reuse = code(&["y5: FADD R0, R1, R2"]);
    reuse[0].control.reuse = 1;
    assert_eq!(check(SM, &reuse, &[])[0].kind, Kind::IllegalReuse);
    // The next instruction would read the old value of the register.
    assert_eq!(kinds(&["s5: FADD.FTZ R1, R1.reuse, R2", "s5: FADD R3, R1, R2"]), [Kind::IllegalReuse]);
    assert_eq!(kinds(&["s5: FADD.FTZ R3, R1.reuse, R2", "s5: FADD R4, R1, R2"]), []);
}

/// Templates of instructions. Letters stand for registers.
const TEMPLATES: &[&str] = &[
    "IADD3 a, b, c, RZ",
    "@P0 IADD3 a, b, c, RZ",
    "FFMA a, b, c, a",
    "IMAD.WIDE.U32 A, b, c, B",
    "ISETP.LT.AND P0, PT, a, b, PT",
    "FADD a, b, c",
    "MUFU.RCP a, b",
    "LDG.E a, [B.64]",
    "LDG.E.64 A, [B.64]",
    "STG.E [A.64], b",
    "DADD A, B, C",
    "HADD2 a, b, c",
    "S2R a, SR_TID.X",
    "CS2R A, SRZ",
];

fn instantiate(template: &str, registers: [u8; 3]) -> MachInst {
    let mut text = String::new();
    for (i, word) in template.split_inclusive([' ', ',', '[', '.', ']']).enumerate() {
        let (name, rest) =
            word.split_at(word.len() - usize::from(!word.ends_with(|c: char| c.is_alphanumeric())));
        let register = |i: usize| registers[i] % 12;
        match name {
            "a" | "b" | "c" if i > 0 => {
                text += &format!("R{}", register(usize::from(name.as_bytes()[0] - b'a')))
            }
            "A" | "B" | "C" if i > 0 => {
                text += &format!("R{}", register(usize::from(name.as_bytes()[0] - b'A')) & !1)
            }
            _ => text += name,
        }
        text += rest;
    }
    MachInst {
        inst: parse(SM, &text, 0),
        src: Some(SrcId(0)),
        target: None,
        link: None,
        effect: Effect::None,
    }
}

/// An unscheduled program of up to six blocks with random branches between them.
fn program() -> impl Strategy<Value = Code> {
    let inst = (0..TEMPLATES.len(), any::<[u8; 3]>()).prop_map(|(t, r)| instantiate(TEMPLATES[t], r));
    let block = (prop::collection::vec(inst, 0..12), prop::option::of((0u32..6, any::<bool>())));
    prop::collection::vec(block, 1..6).prop_map(|blocks| {
        let count = blocks.len() as u32;
        let branch = |text: &str, target: Option<BlockId>| MachInst {
            link: None,
            inst: parse(SM, text, 0),
            src: Some(SrcId(0)),
            target,
            effect: Effect::Control,
        };
        let blocks = blocks
            .into_iter()
            .enumerate()
            .map(|(b, (mut insts, leave))| {
                let next = BlockId(b as u32 + 1);
                let mut successors = smallvec::SmallVec::new();
                if next.0 == count {
                    insts.push(branch("EXIT", None));
                } else if let Some((to, always)) = leave {
                    let to = BlockId(to % count);
                    insts.push(branch(if always { "BRA 0x0" } else { "@P0 BRA 0x0" }, Some(to)));
                    successors.push(to);
                    if !always {
                        successors.push(next);
                    }
                } else {
                    successors.push(next);
                }
                Block { insts, successors }
            })
            .collect();
        Code {
            sm: SM,
            blocks,
            tables: Vec::new(),
            facts: Default::default(),
            frame: Default::default(),
            called: Vec::new(),
            shown: Vec::new(),
        }
    })
}

fn scheduled(mut code: Code) -> Vec<Inst> {
    schedule(&mut code, Options { reorder: true }, &|| ());
    let assembled = assemble(&code).expect("assembles");
    assembled.code.iter().map(|&word| sass::decode(SM, word).expect("decodes")).collect()
}

proptest! {
    #[test]
    fn what_the_scheduler_makes_has_no_hazards(code in program()) {
        prop_assert_eq!(check(SM, &scheduled(code), &[]), []);
    }
}

/// Removes one thing at a time from scheduled programs. Some changes are harmless because not everything is needed (for
/// example, a branch stalls anyway). The share of detected changes must not fall.
#[test]
fn what_is_taken_away_is_found() {
    let mut runner = TestRunner::new_with_rng(
        Config::default(),
        proptest::test_runner::TestRng::deterministic_rng(proptest::test_runner::RngAlgorithm::ChaCha),
    );
    let (mut stalls, mut waits, mut scoreboards) = ((0, 0), (0, 0), (0, 0));
    for _ in 0..60 {
        let insts = scheduled(program().new_tree(&mut runner).expect("a program").current());
        let caught = |change: &dyn Fn(&mut Inst), at: usize, tally: &mut (u32, u32)| {
            let mut changed = insts.clone();
            change(&mut changed[at]);
            tally.1 += 1;
            tally.0 += u32::from(!check(SM, &changed, &[]).is_empty());
        };
        for (at, inst) in insts.iter().enumerate() {
            let control = inst.control;
            if control.stall > 2 && inst.form().mnemonic != "BRA" && inst.form().mnemonic != "EXIT" {
                let shorter = |inst: &mut Inst| {
                    inst.control.stall -= 1;
                    inst.control.yield_ = inst.control.stall >= 12;
                };
                caught(&shorter, at, &mut stalls);
            }
            for s in (0..6).filter(|s| control.wait >> s & 1 == 1) {
                caught(&|inst| inst.control.wait &= !(1 << s), at, &mut waits);
            }
            if let Some(s) = control.write_sb {
                caught(&|inst| inst.control.write_sb = Some((s + 1) % 6), at, &mut scoreboards);
            }
        }
    }
    let percent = |(caught, all): (u32, u32)| caught * 100 / all.max(1);
    let found =
        format!("stalls {}, waits {}, scoreboards {}", percent(stalls), percent(waits), percent(scoreboards));
    expect_test::expect!["stalls 100, waits 86, scoreboards 64"].assert_eq(&found);
}
