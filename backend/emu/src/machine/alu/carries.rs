//! Tests that sums of several words equal wider arithmetic, for all possible carries.

use crate::machine::run;
use crate::machine::testing::{device, kernel};
use crate::{Launch, WARP};
use sass::Sm;

/// Values at which carries change.
const EDGES: [u32; 7] = [0, 1, 2, 0x7fff_ffff, 0x8000_0000, 0xffff_fffe, 0xffff_ffff];

/// Tuples of three 64-bit numbers: some with words at these values, some with arbitrary words.
fn numbers(count: usize) -> Vec<[u64; 3]> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut word = move || {
        let bits = random();
        let edge = EDGES[(bits >> 8) as usize % EDGES.len()];
        if bits & 3 == 0 { (bits >> 32) as u32 } else { edge }
    };
    (0..count).map(|_| [(); 3].map(|()| u64::from(word()) << 32 | u64::from(word()))).collect()
}

/// The values of R12 and R13 after the instructions. The input numbers are in R4, R6 and R8 and the registers after
/// them. Uniform instructions have the same numbers in UR4, UR6 and UR8, for one thread, and write UR12 and UR13.
fn results(sm: Sm, lines: &[String], numbers: &[[u64; 3]]) -> Vec<u64> {
    let uniform = lines[0].starts_with('U');
    let memory = |address| if sm.0 < 90 { format!("[{address}]") } else { format!("desc[UR2][{address}]") };
    let params = ptx_backend::target::Target::of_generation(sm).expect("a target").driver.params;
    let mut code = vec![
        format!("s15 w0: LDC.64 R0, c[0x0][{params:#x}]"),
        "s15 w1: S2R R2, SR_LANEID".into(),
        "s15 ?01: IMAD.WIDE.U32 R0, R2, 0x20, R0".into(),
        format!("s15 w0: LDG.E.128 R4, {}", memory("R0.64")),
        format!("s15 w1: LDG.E.64 R8, {}", memory("R0.64+0x10")),
        "s15 ?01: NOP".into(),
    ];
    if uniform {
        code.extend([4, 5, 6, 7, 8, 9].map(|i| format!("s15 w0: R2UR UR{i}, R{i}")));
    }
    code.push("s15 ?0: NOP".into());
    code.extend(lines.iter().map(|line| format!("s15: {line}")));
    if uniform {
        code.extend([12, 13].map(|i| format!("s15: MOV R{i}, UR{i}")));
    }
    code.push(format!("s15: STG.E.64 {}, R12", memory("R0.64+0x18")));
    let kernel = kernel(sm, &code);
    let threads = if uniform { 1 } else { WARP };
    let mut found = Vec::new();
    for numbers in numbers.chunks(threads) {
        let mut device = device(sm);
        let bytes = numbers.iter().flat_map(|[a, b, c]| [*a, *b, *c, 0]).flat_map(u64::to_le_bytes).collect();
        let buffer = device.global.add(bytes);
        let launch = Launch::new(1, numbers.len() as u32, buffer.to_le_bytes().to_vec());
        run(&kernel, &launch, &mut device).unwrap_or_else(|fault| panic!("{lines:?}: {fault}"));
        let bytes = device.global.buffer(buffer).expect("the buffer");
        found.extend(bytes.chunks(32).map(|bytes| crate::memory::number(&bytes[24..])));
    }
    found
}

/// Instructions for a generation, with `P0` and `P1` as the carries. On later generations, they also name predicates
/// for unused carry outputs.
fn lines(sm: Sm, text: &str, uniform: bool) -> Vec<String> {
    let line = |line: &str| {
        let mut line = line.trim().to_owned();
        if sm.0 < 100 {
            line = line.replace(" PT,", "");
        }
        if uniform {
            line = format!("U{}", line.replace('R', "UR").replace('P', "UP"));
        }
        line
    };
    text.lines().map(line).collect()
}

fn check(text: &str, expected: impl Fn([u64; 3]) -> u64) {
    for sm in [Sm(80), Sm(90), Sm(100), Sm(120)] {
        for uniform in [false, true] {
            let numbers = numbers(if uniform { 60 } else { 320 });
            let lines = lines(sm, text, uniform);
            for (numbers, found) in numbers.iter().zip(results(sm, &lines, &numbers)) {
                let expected = expected(*numbers);
                assert_eq!(found, expected, "sm_{}: {lines:?} of {numbers:x?}", sm.0);
            }
        }
    }
}

/// A sign: its spelling for the low word and for the high word, and its factor.
const SIGNS: [(&str, &str, u64); 2] = [("", "", 1), ("-", "~", u64::MAX)];

#[test]
fn sums_of_two() {
    for (a, not_a, sign_a) in SIGNS {
        for (b, not_b, sign_b) in SIGNS {
            if sign_a != 1 && sign_b != 1 {
                continue;
            }
            let text = format!(
                "IADD3 R12, P0, PT, {a}R4, {b}R6, RZ
                 IADD3.X R13, PT, PT, {not_a}R5, {not_b}R7, RZ, P0, !PT"
            );
            check(&text, |[x, y, _]| x.wrapping_mul(sign_a).wrapping_add(y.wrapping_mul(sign_b)));
        }
    }
}

#[test]
fn sums_of_three() {
    for (a, not_a, sign) in SIGNS {
        let text = format!(
            "IADD3 R12, P0, P1, {a}R4, R6, R8
             IADD3.X R13, PT, PT, {not_a}R5, R7, R9, P0, P1"
        );
        check(&text, |[x, y, z]| x.wrapping_mul(sign).wrapping_add(y).wrapping_add(z));
    }
}

#[test]
fn shifted_sums() {
    for shift in [1, 3, 9, 31] {
        for (sign, not, _) in SIGNS {
            let text = format!(
                "LEA R12, P0, R4, {sign}R6, {shift:#x}
                 LEA.HI.X R13, R4, {not}R7, R5, {shift:#x}, P0"
            );
            check(&text, |[x, y, _]| {
                let shifted = x << shift;
                if sign.is_empty() { shifted.wrapping_add(y) } else { shifted.wrapping_sub(y) }
            });
        }
        // ptxas computes the high word of a difference in this way.
        let text = format!(
            "LEA R12, P0, -R4, R6, {shift:#x}
             SHF.L.U64.HI R14, R4, {shift:#x}, R5
             IADD3.X R13, PT, PT, ~R14, R7, RZ, P0, !PT"
        );
        check(&text, |[x, y, _]| y.wrapping_sub(x << shift));
    }
}
