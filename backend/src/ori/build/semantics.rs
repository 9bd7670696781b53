//! What lowered instructions compute, against Rust's own arithmetic: edge and random values through
//! [`crate::ori::eval`].

#![expect(clippy::precedence, reason = "shifts of products and masks read as in the manual")]

use super::sample::Sample;
use crate::ori::eval::Machine;
use crate::ori::ir::Function;
use crate::ori::text;
use crate::ori::verify::{Stage, verify};
use crate::target::Target;
use ptx_isa::Sm;

/// A kernel with inputs `%rd1 %r1 %rs1 %f1 %fd1` (all views of the first parameter), `…2`, `…3`, and a result.
struct Kernel {
    func: Function,
    sm: u16,
    text: String,
}

const OUT: u64 = 0x1000;

impl Kernel {
    fn new(sm: u16, body: &str, result: &str) -> Kernel {
        let mut head = String::from("param u64 out; param u64 i1; param u64 i2; param u64 i3; param u64 i4;");
        for i in 1..=4 {
            for (ty, reg) in [("u64", "rd"), ("u32", "r"), ("u16", "rs"), ("f32", "f"), ("f64", "fd")] {
                head += &format!("ld.param.{ty} %{reg}{i}, [i{i}];");
            }
        }
        let size = match result.trim_start_matches('%').trim_end_matches(char::is_numeric) {
            "rd" => "u64",
            "fd" => "f64",
            "f" => "f32",
            "rs" => "u16",
            _ => "u32",
        };
        let text =
            format!("{head} ld.param.u64 %rd90, [out]; {body}; st.global.{size} [%rd90], {result}; ret");
        let func = match Sample::new(&text).build(sm) {
            Ok(func) => func,
            Err(e) => panic!("{body}: {e}"),
        };
        if let Err(errors) = verify(&func, Stage::Built) {
            let errors: Vec<String> = errors.iter().map(|e| e.to_string()).collect();
            panic!("{body}\n{}\n{}", errors.join("\n"), text::print(&func));
        }
        Kernel { func, sm, text: body.into() }
    }

    fn run(&self, inputs: [u64; 4], error: i32) -> u64 {
        let mut machine = Machine::new();
        machine.error = error;
        machine.global_base = OUT;
        machine.global = vec![0; 8];
        machine.shared = vec![0; 0x500];
        let base = Target::of(Sm::new(self.sm)).unwrap().driver.params;
        for (i, value) in [OUT].into_iter().chain(inputs).enumerate() {
            machine.set_constant(0, base + 8 * i as u16, value as u32);
            machine.set_constant(0, base + 8 * i as u16 + 4, (value >> 32) as u32);
        }
        if let Err(e) = machine.run(&self.func) {
            panic!("{} {inputs:x?}: {e}\n{}", self.text, text::print(&self.func));
        }
        u64::from_le_bytes(machine.global.try_into().unwrap())
    }
}

/// Values worth trying in every type.
const EDGES: [u64; 40] = [
    0,
    1,
    2,
    3,
    5,
    7,
    10,
    31,
    32,
    33,
    63,
    64,
    65,
    255,
    256,
    0x7fff,
    0x8000,
    0xffff,
    0x1_0000,
    0x7fff_ffff,
    0x8000_0000,
    0x8000_0001,
    0xffff_fffe,
    0xffff_ffff,
    0x1_0000_0000,
    0x1_0000_0001,
    0x7fff_ffff_ffff_ffff,
    0x8000_0000_0000_0000,
    0xffff_ffff_ffff_fffe,
    0xffff_ffff_ffff_ffff,
    0x3f80_0000,
    0xbf80_0000,
    0x7f80_0000,
    0xff80_0000,
    0x7fc0_0000,
    0x0080_0000,
    0x007f_ffff,
    0x3ff0_0000_0000_0000,
    0xffff_ffff_0000_0000,
    0x0000_0001_ffff_ffff,
];

/// Numbers of every magnitude, not only large ones.
fn number(random: &mut fastrand::Rng) -> u64 {
    random.u64(..) >> random.u32(..64).saturating_sub(8)
}

fn inputs() -> Vec<[u64; 4]> {
    let mut random = fastrand::Rng::with_seed(0x9e37_79b9_7f4a_7c15);
    let mut list = Vec::new();
    for (i, a) in EDGES.into_iter().enumerate() {
        for (j, b) in EDGES.into_iter().enumerate() {
            if i == j || (i + j) % 3 == 0 {
                list.push([a, b, number(&mut random), number(&mut random)]);
            }
        }
    }
    for _ in 0..400 {
        list.push([number(&mut random), number(&mut random), number(&mut random), number(&mut random)]);
    }
    list
}

/// Floats of every exponent, near each other and far.
fn floats() -> Vec<[u64; 4]> {
    let mut random = fastrand::Rng::with_seed(0x1234_5678_9abc_def1);
    let mut list = Vec::new();
    let edges = [
        0u32,
        1,
        2,
        3,
        0x7f_ffff,
        0x80_0000,
        0x80_0001,
        0x00ff_ffff,
        0x0100_0000,
        0x3f7f_ffff,
        0x3f80_0000,
        0x3f80_0001,
        0x4000_0000,
        0x4040_0000,
        0x7eff_ffff,
        0x7f00_0000,
        0x7f7f_ffff,
        0x7f80_0000,
        0x7fc0_0000,
        0x4b80_0000,
        0x1b80_0000,
        0x0040_0000,
        0x0020_0001,
        0x7e80_0000,
        0x7e80_0001,
        0x0c00_0000,
        0x3eaa_aaab,
    ];
    for a in edges {
        for b in edges {
            let sign = number(&mut random) as u32;
            list.push([a | (sign & 1) << 31, b | (sign & 2) << 30, 0, 0].map(u64::from));
        }
    }
    for i in 0..2000 {
        let mut bits =
            || (number(&mut random) << 32 | number(&mut random) & 0xffff_ffff).rotate_left(i) as u32;
        list.push([bits(), bits(), bits(), bits()].map(u64::from));
    }
    list
}

#[track_caller]
fn check(body: &str, result: &str, expected: impl Fn([u64; 4]) -> u64) {
    for sm in [80, 90] {
        let kernel = Kernel::new(sm, body, result);
        // Targets differ in addresses, not in arithmetic.
        for input in inputs().into_iter().step_by(if sm == 80 { 1 } else { 37 }) {
            let (got, want) = (kernel.run(input, 0), expected(input));
            assert_eq!(
                got,
                want,
                "sm_{sm} {body} of {input:x?}: {got:x}, not {want:x}\n{}",
                text::print(&kernel.func)
            );
        }
    }
}

/// As [`check`] on fp32 values, for each error of the multi-function unit; NaNs are all alike.
#[track_caller]
fn check_float(body: &str, errors: &[i32], expected: impl Fn(f32, f32, f32) -> f32) {
    let kernel = Kernel::new(80, body, "%f9");
    for input in floats() {
        let [a, b, c, _] = input.map(|v| f32::from_bits(v as u32));
        let want = expected(a, b, c);
        for &error in errors {
            let got = f32::from_bits(kernel.run(input, error) as u32);
            let same = got.to_bits() == want.to_bits() || (got.is_nan() && want.is_nan());
            assert!(same, "{body} of {a:e} {b:e} {c:e}, error {error}: {got:e}, not {want:e}");
        }
    }
}

fn u(v: u64) -> u64 {
    v & 0xffff_ffff
}

fn w(v: u32) -> u64 {
    v.into()
}

#[test]
fn addition_and_subtraction() {
    check("add.u64 %rd9, %rd1, %rd2", "%rd9", |[a, b, ..]| a.wrapping_add(b));
    check("sub.s64 %rd9, %rd1, %rd2", "%rd9", |[a, b, ..]| a.wrapping_sub(b));
    check("sub.u64 %rd9, %rd1, 4294967296", "%rd9", |[a, ..]| a.wrapping_sub(1 << 32));
    check("sub.u64 %rd9, 5, %rd1", "%rd9", |[a, ..]| 5u64.wrapping_sub(a));
    check("add.s64 %rd9, %rd1, -3", "%rd9", |[a, ..]| a.wrapping_sub(3));
    check("sub.s32 %r9, %r1, %r2", "%r9", |[a, b, ..]| u(a.wrapping_sub(b)));
    check("add.sat.s32 %r9, %r1, %r2", "%r9", |[a, b, ..]| w((a as i32).saturating_add(b as i32) as u32));
    check("sub.sat.s32 %r9, %r1, %r2", "%r9", |[a, b, ..]| w((a as i32).saturating_sub(b as i32) as u32));
    check("add.u16 %rs9, %rs1, %rs2", "%rs9", |[a, b, ..]| a.wrapping_add(b) & 0xffff);
    check("neg.s64 %rd9, %rd1", "%rd9", |[a, ..]| a.wrapping_neg());
    check("neg.s32 %r9, %r1", "%r9", |[a, ..]| u(a.wrapping_neg()));
    check("abs.s64 %rd9, %rd1", "%rd9", |[a, ..]| (a as i64).unsigned_abs());
    check("abs.s32 %r9, %r1", "%r9", |[a, ..]| w((a as i32).unsigned_abs()));
    check("abs.s16 %rs9, %rs1", "%rs9", |[a, ..]| (a as i16).unsigned_abs().into());
}

#[test]
fn carry_chains() {
    check(
        "add.cc.u32 %r7, %r1, %r2; addc.cc.u32 %r8, %r3, %r4; addc.u32 %r9, 0, 0; mov.b64 %rd9, {%r8, %r9}",
        "%rd9",
        |[a, b, c, d]| (u(c) + u(d) + ((u(a) + u(b)) >> 32)) & 0x1_ffff_ffff,
    );
    check(
        "sub.cc.u32 %r7, %r1, %r2; subc.cc.u32 %r8, %r3, %r4; subc.u32 %r9, 0, 0; mov.b64 %rd9, {%r8, %r9}",
        "%rd9",
        |[a, b, c, d]| {
            let borrow = u64::from(u(a) < u(b));
            let high = u(c) as i64 - u(d) as i64 - borrow as i64;
            high as u64
        },
    );
    check(
        "sub.cc.u32 %r7, %r1, 0; subc.cc.u32 %r8, %r3, 5; subc.u32 %r9, %r4, 0; mov.b64 %rd9, {%r8, %r9}",
        "%rd9",
        |[_, _, c, d]| {
            let low = (u(c) as i64 - 5) as u64;
            u(low) | u(u(d).wrapping_sub(u64::from(u(c) < 5))) << 32
        },
    );
    check("add.cc.u64 %rd7, %rd1, %rd2; addc.u64 %rd9, %rd3, %rd4", "%rd9", |[a, b, c, d]| {
        c.wrapping_add(d).wrapping_add(u64::from(a.checked_add(b).is_none()))
    });
    check(
        "mad.lo.cc.u32 %r7, %r1, %r2, %r3; madc.hi.u32 %r8, %r1, %r2, %r4; mov.b64 %rd9, {%r7, %r8}",
        "%rd9",
        |[a, b, c, d]| (u(a) * u(b)).wrapping_add(u(c) | u(d) << 32),
    );
    check(
        "mad.lo.cc.u64 %rd7, %rd1, %rd2, %rd3; madc.hi.cc.u64 %rd9, %rd1, %rd2, %rd4",
        "%rd9",
        |[a, b, c, d]| {
            let product = u128::from(a) * u128::from(b);
            (product.wrapping_add(u128::from(c) | u128::from(d) << 64) >> 64) as u64
        },
    );
    // After a subtraction the carry is set where it did not borrow; it is kept across a guard.
    check("sub.cc.u32 %r7, %r1, %r2; addc.u32 %r9, %r3, 0", "%r9", |[a, b, c, _]| {
        u(c.wrapping_add(u64::from(u(a) >= u(b))))
    });
    check(
        "setp.eq.u32 %p1, %r3, 0; add.cc.u32 %r7, %r1, %r2; @%p1 sub.cc.u32 %r7, %r1, %r2; addc.u32 %r9, 0, 0",
        "%r9",
        |[a, b, c, _]| u64::from(if u(c) == 0 { u(a) >= u(b) } else { u(a) + u(b) > 0xffff_ffff }),
    );
}

#[test]
fn multiplication() {
    check("mul.lo.u32 %r9, %r1, %r2", "%r9", |[a, b, ..]| u(a.wrapping_mul(b)));
    check("mul.hi.u32 %r9, %r1, %r2", "%r9", |[a, b, ..]| u(a) * u(b) >> 32);
    check("mul.hi.s32 %r9, %r1, %r2", "%r9", |[a, b, ..]| {
        u((i64::from(a as i32) * i64::from(b as i32) >> 32) as u64)
    });
    check("mul.wide.s32 %rd9, %r1, %r2", "%rd9", |[a, b, ..]| {
        (i64::from(a as i32) * i64::from(b as i32)) as u64
    });
    check("mul.wide.u16 %r9, %rs1, %rs2", "%r9", |[a, b, ..]| (a & 0xffff) * (b & 0xffff));
    check("mul.wide.s16 %r9, %rs1, %rs2", "%r9", |[a, b, ..]| {
        w((i32::from(a as i16) * i32::from(b as i16)) as u32)
    });
    check("mul.hi.s16 %rs9, %rs1, %rs2", "%rs9", |[a, b, ..]| {
        (i32::from(a as i16) * i32::from(b as i16) >> 16) as u64 & 0xffff
    });
    check("mad.wide.u32 %rd9, %r1, %r2, %rd3", "%rd9", |[a, b, c, _]| (u(a) * u(b)).wrapping_add(c));
    check("mad.hi.u32 %r9, %r1, %r2, %r3", "%r9", |[a, b, c, _]| u((u(a) * u(b) >> 32).wrapping_add(c)));
    check("mad.lo.s64 %rd9, %rd1, %rd2, %rd3", "%rd9", |[a, b, c, _]| a.wrapping_mul(b).wrapping_add(c));
    check("mul.lo.u64 %rd9, %rd1, 10", "%rd9", |[a, ..]| a.wrapping_mul(10));
    check("mul.hi.u64 %rd9, %rd1, %rd2", "%rd9", |[a, b, ..]| (u128::from(a) * u128::from(b) >> 64) as u64);
    check("mul.hi.s64 %rd9, %rd1, %rd2", "%rd9", |[a, b, ..]| {
        (i128::from(a as i64) * i128::from(b as i64) >> 64) as u64
    });
    let s24 = |v: u64| i64::from((v as i32) << 8 >> 8);
    check("mul24.lo.s32 %r9, %r1, %r2", "%r9", move |[a, b, ..]| u((s24(a) * s24(b)) as u64));
    check("mul24.hi.s32 %r9, %r1, %r2", "%r9", move |[a, b, ..]| u((s24(a) * s24(b) >> 16) as u64));
    check("mad24.hi.u32 %r9, %r1, %r2, %r3", "%r9", |[a, b, c, _]| {
        u(((a & 0xff_ffff) * (b & 0xff_ffff) >> 16).wrapping_add(c))
    });
    check("sad.s32 %r9, %r1, %r2, %r3", "%r9", |[a, b, c, _]| {
        w((a as i32).abs_diff(b as i32).wrapping_add(c as u32))
    });
    check("sad.u64 %rd9, %rd1, %rd2, %rd3", "%rd9", |[a, b, c, _]| a.abs_diff(b).wrapping_add(c));
    check("sad.s16 %rs9, %rs1, %rs2, %rs3", "%rs9", |[a, b, c, _]| {
        (a as i16).abs_diff(b as i16).wrapping_add(c as u16).into()
    });
    let s8 = |v: u64, i: u32| i64::from((v >> (8 * i)) as i8);
    check("dp4a.s32.u32 %r9, %r1, %r2, %r3", "%r9", move |[a, b, c, _]| {
        let sum: i64 = (0..4).map(|i| s8(a, i) * (b >> (8 * i) & 0xff) as i64).sum();
        u((sum as u64).wrapping_add(c))
    });
    check("dp2a.hi.s32.s32 %r9, %r1, %r2, %r3", "%r9", move |[a, b, c, _]| {
        let sum: i64 = (0..2).map(|i| i64::from((a >> (16 * i)) as i16) * s8(b, i + 2)).sum();
        u((sum as u64).wrapping_add(c))
    });
}

#[test]
fn minimum_and_maximum() {
    check("min.s32 %r9, %r1, %r2", "%r9", |[a, b, ..]| w((a as i32).min(b as i32) as u32));
    check("max.u32 %r9, %r1, 7", "%r9", |[a, ..]| u(a).max(7));
    check("min.u64 %rd9, %rd1, %rd2", "%rd9", |[a, b, ..]| a.min(b));
    check("max.s64 %rd9, %rd1, %rd2", "%rd9", |[a, b, ..]| (a as i64).max(b as i64) as u64);
    check("min.s16 %rs9, %rs1, %rs2", "%rs9", |[a, b, ..]| (a as i16).min(b as i16) as u16 as u64);
}

#[test]
fn logic_and_shifts() {
    check("xor.b64 %rd9, %rd1, 255", "%rd9", |[a, ..]| a ^ 255);
    check("and.b64 %rd9, %rd1, -256", "%rd9", |[a, ..]| a & !255);
    check("not.b64 %rd9, %rd1", "%rd9", |[a, ..]| !a);
    check("cnot.b16 %rs9, %rs1", "%rs9", |[a, ..]| u64::from(a as u16 == 0));
    check("cnot.b64 %rd9, %rd1", "%rd9", |[a, ..]| u64::from(a == 0));
    check("lop3.b32 %r9, %r1, %r2, %r3, 0xe4", "%r9", |[a, b, c, _]| u((a & c) | (b & !c)));
    check("shl.b32 %r9, %r1, %r2", "%r9", |[a, b, ..]| w((a as u32).checked_shl(b as u32).unwrap_or(0)));
    check("shr.u32 %r9, %r1, %r2", "%r9", |[a, b, ..]| w((a as u32).checked_shr(b as u32).unwrap_or(0)));
    check("shr.s32 %r9, %r1, %r2", "%r9", |[a, b, ..]| w((a as i32 >> (b as u32).min(31)) as u32));
    check("shl.b64 %rd9, %rd1, %r2", "%rd9", |[a, b, ..]| a.checked_shl(b as u32).unwrap_or(0));
    check("shr.u64 %rd9, %rd1, %r2", "%rd9", |[a, b, ..]| a.checked_shr(b as u32).unwrap_or(0));
    check("shr.s64 %rd9, %rd1, %r2", "%rd9", |[a, b, ..]| (a as i64 >> (b as u32).min(63)) as u64);
    check("shl.b16 %rs9, %rs1, %r2", "%rs9", |[a, b, ..]| {
        (a as u16).checked_shl(b as u32).unwrap_or(0).into()
    });
    check("shr.u16 %rs9, %rs1, %r2", "%rs9", |[a, b, ..]| {
        (a as u16).checked_shr(b as u32).unwrap_or(0).into()
    });
    check("shr.s16 %rs9, %rs1, %r2", "%rs9", |[a, b, ..]| (a as i16 >> (b as u32).min(15)) as u16 as u64);
    for by in [0u32, 1, 31, 32, 33, 63, 64, 70] {
        check(&format!("shl.b64 %rd9, %rd1, {by}"), "%rd9", move |[a, ..]| a.checked_shl(by).unwrap_or(0));
        check(&format!("shr.s64 %rd9, %rd1, {by}"), "%rd9", move |[a, ..]| (a as i64 >> by.min(63)) as u64);
        check(&format!("shr.u64 %rd9, %rd1, {by}"), "%rd9", move |[a, ..]| a.checked_shr(by).unwrap_or(0));
    }
    let both = |a: u64, b: u64| u(b) << 32 | u(a);
    check("shf.l.wrap.b32 %r9, %r1, %r2, %r3", "%r9", move |[a, b, c, _]| both(a, b) << (c & 31) >> 32);
    check("shf.r.wrap.b32 %r9, %r1, %r2, %r3", "%r9", move |[a, b, c, _]| u(both(a, b) >> (c & 31)));
    check("shf.l.clamp.b32 %r9, %r1, %r2, %r3", "%r9", move |[a, b, c, _]| both(a, b) << u(c).min(32) >> 32);
    check("shf.r.clamp.b32 %r9, %r1, %r2, %r3", "%r9", move |[a, b, c, _]| u(both(a, b) >> u(c).min(32)));
}

#[test]
fn counting_bits() {
    check("popc.b64 %r9, %rd1", "%r9", |[a, ..]| a.count_ones().into());
    check("clz.b32 %r9, %r1", "%r9", |[a, ..]| (a as u32).leading_zeros().into());
    check("clz.b64 %r9, %rd1", "%r9", |[a, ..]| a.leading_zeros().into());
    check("brev.b64 %rd9, %rd1", "%rd9", |[a, ..]| a.reverse_bits());
    check("bfind.u32 %r9, %r1", "%r9", |[a, ..]| w(31u32.wrapping_sub((a as u32).leading_zeros())));
    check("bfind.s64 %r9, %rd1", "%r9", |[a, ..]| {
        let v = if (a as i64) < 0 { !a } else { a };
        w(63u32.wrapping_sub(v.leading_zeros()))
    });
    check("bfind.shiftamt.u64 %r9, %rd1", "%r9", |[a, ..]| {
        w(if a == 0 { u32::MAX } else { a.leading_zeros() })
    });
}

/// PTX's own definition of `bfe`, bit by bit.
fn field(a: u64, from: u64, count: u64, bits: u64, signed: bool) -> u64 {
    let (from, count, top) = (from & 0xff, count & 0xff, bits - 1);
    let sign = if !signed || count == 0 { 0 } else { a >> (from + count - 1).min(top) & 1 };
    (0..bits).fold(0, |d, i| {
        let bit = if i < count && from + i <= top { a >> (from + i) & 1 } else { sign };
        d | bit << i
    })
}

fn inserted(a: u64, b: u64, to: u64, count: u64, bits: u64) -> u64 {
    let (to, count) = (to & 0xff, count & 0xff);
    (0..count).take_while(|i| to + i < bits).fold(b, |d, i| d & !(1 << (to + i)) | (a >> i & 1) << (to + i))
}

#[test]
fn bit_fields() {
    check("bfe.u32 %r9, %r1, %r2, %r3", "%r9", |[a, b, c, _]| field(a, b, c, 32, false));
    check("bfe.s32 %r9, %r1, %r2, %r3", "%r9", |[a, b, c, _]| field(a, b, c, 32, true));
    check("bfe.u64 %rd9, %rd1, %r2, %r3", "%rd9", |[a, b, c, _]| field(a, b, c, 64, false));
    check("bfe.s64 %rd9, %rd1, %r2, %r3", "%rd9", |[a, b, c, _]| field(a, b, c, 64, true));
    check("bfe.s32 %r9, %r1, 8, 4", "%r9", |[a, ..]| field(a, 8, 4, 32, true));
    check("bfi.b32 %r9, %r1, %r4, %r2, %r3", "%r9", |[a, b, c, d]| inserted(a, u(d), b, c, 32));
    check("bfi.b64 %rd9, %rd1, %rd4, %r2, %r3", "%rd9", |[a, b, c, d]| inserted(a, d, b, c, 64));
    check("bfi.b32 %r9, %r1, %r4, 5, 7", "%r9", |[a, _, _, d]| inserted(a, u(d), 5, 7, 32));
    let permuted = |a: u64, b: u64, s: u64| {
        (0..4).fold(0, |d, i| {
            let (n, all) = (s >> (4 * i) & 0xf, u(b) << 32 | u(a));
            let byte = all >> (8 * (n & 7)) & 0xff;
            let byte = if n & 8 == 0 { byte } else { 0xff * (byte >> 7) };
            d | byte << (8 * i)
        })
    };
    check("prmt.b32 %r9, %r1, %r2, %r3", "%r9", move |[a, b, c, _]| permuted(a, b, c));
    check("prmt.b32.f4e %r9, %r1, %r2, %r3", "%r9", |[a, b, c, _]| u((u(b) << 32 | u(a)) >> (8 * (c & 3))));
    check("prmt.b32.b4e %r9, %r1, %r2, %r3", "%r9", move |[a, b, c, _]| {
        permuted(a, b, [0x5670, 0x6701, 0x7012, 0x0123][c as usize & 3])
    });
    check("prmt.b32.ecl %r9, %r1, %r2, 2", "%r9", move |[a, b, ..]| permuted(a, b, 0x3222));
    check("mov.b32 {%rs7, %rs8}, %r1; mov.b32 %r9, {%rs8, %rs7}", "%r9", |[a, ..]| {
        w((a as u32).rotate_left(16))
    });
    check(
        "mov.b64 {%rs5, %rs6, %rs7, %rs8}, %rd1; mov.b64 %rd9, {%rs8, %rs5, %rs6, %rs7}",
        "%rd9",
        |[a, ..]| a.rotate_left(16),
    );
}

#[test]
fn comparisons() {
    let pick = |p: bool| if p { 1 } else { 2 };
    check("setp.lt.s64 %p1, %rd1, %rd2; selp.u32 %r9, 1, 2, %p1", "%r9", move |[a, b, ..]| {
        pick((a as i64) < b as i64)
    });
    check("setp.ge.u64 %p1, %rd1, %rd2; selp.u32 %r9, 1, 2, %p1", "%r9", move |[a, b, ..]| pick(a >= b));
    check("setp.ne.u64 %p1, %rd1, %rd2; selp.u32 %r9, 1, 2, %p1", "%r9", move |[a, b, ..]| pick(a != b));
    check("setp.eq.s64 %p1, %rd1, %rd2; selp.u32 %r9, 1, 2, %p1", "%r9", move |[a, b, ..]| pick(a == b));
    check("setp.lo.u32 %p1, %r1, %r2; selp.u32 %r9, 1, 2, %p1", "%r9", move |[a, b, ..]| pick(u(a) < u(b)));
    check("setp.gt.s16 %p1, %rs1, %rs2; selp.u32 %r9, 1, 2, %p1", "%r9", move |[a, b, ..]| {
        pick(a as i16 > b as i16)
    });
    check(
        "setp.gt.u32 %p3, %r3, 100; setp.lt.xor.s32 %p1|%p2, %r1, %r2, !%p3; selp.u32 %r9, 1, 2, %p1; @%p2 add.u32 %r9, %r9, 8",
        "%r9",
        move |[a, b, c, _]| {
            let (less, with) = ((a as i32) < b as i32, u(c) <= 100);
            pick(less != with) + if less == with { 8 } else { 0 }
        },
    );
    check(
        "set.le.u32.s32 %r9, %r1, %r2",
        "%r9",
        |[a, b, ..]| if a as i32 <= b as i32 { 0xffff_ffff } else { 0 },
    );
    check("slct.u64.s32 %rd9, %rd1, %rd2, %r3", "%rd9", |[a, b, c, _]| if c as i32 >= 0 { a } else { b });
    check(
        "setp.ne.u32 %p1, %r1, 0; not.pred %p2, %p1; selp.u64 %rd9, %rd2, %rd3, %p2",
        "%rd9",
        |[a, b, c, _]| {
            if u(a) == 0 { b } else { c }
        },
    );
}

#[test]
fn integer_division() {
    let by = |b: u64, q: u64| if b == 0 { u64::MAX } else { q };
    check("div.u32 %r9, %r1, %r2", "%r9", move |[a, b, ..]| u(by(u(b), u(a).checked_div(u(b)).unwrap_or(0))));
    check("rem.u32 %r9, %r1, %r2", "%r9", move |[a, b, ..]| u(by(u(b), u(a).checked_rem(u(b)).unwrap_or(0))));
    check("div.s32 %r9, %r1, %r2", "%r9", move |[a, b, ..]| {
        let (a, d) = (a as i32, b as i32);
        u(if d == 0 { u64::MAX } else { a.wrapping_div(d) as u64 })
    });
    check("rem.s32 %r9, %r1, %r2", "%r9", move |[a, b, ..]| {
        let (a, d) = (a as i32, b as i32);
        u(if d == 0 { u64::MAX } else { a.wrapping_rem(d) as u64 })
    });
    check("div.u64 %rd9, %rd1, %rd2", "%rd9", move |[a, b, ..]| by(b, a.checked_div(b).unwrap_or(0)));
    check("rem.u64 %rd9, %rd1, %rd2", "%rd9", move |[a, b, ..]| by(b, a.checked_rem(b).unwrap_or(0)));
    check("div.s64 %rd9, %rd1, %rd2", "%rd9", move |[a, b, ..]| {
        by(b, if b == 0 { 0 } else { (a as i64).wrapping_div(b as i64) as u64 })
    });
    check("rem.s64 %rd9, %rd1, %rd2", "%rd9", move |[a, b, ..]| {
        by(b, if b == 0 { 0 } else { (a as i64).wrapping_rem(b as i64) as u64 })
    });
    check("div.s16 %rs9, %rs1, %rs2", "%rs9", |[a, b, ..]| {
        let (a, d) = (a as i16, b as i16);
        if d == 0 { 0xffff } else { a.wrapping_div(d) as u16 as u64 }
    });
    // The unit's reciprocal may be off by one either way.
    for body in ["div.u32 %r9, %r1, %r2", "div.u64 %rd9, %rd1, %rd2"] {
        let wide = body.contains("rd9");
        let kernel = Kernel::new(80, body, if wide { "%rd9" } else { "%r9" });
        for input in inputs() {
            let [a, b, ..] = if wide { input } else { input.map(u) };
            for error in [-1, 1] {
                if let Some(quotient) = a.checked_div(b) {
                    assert_eq!(kernel.run(input, error), quotient, "{a:x} / {b:x}, error {error}");
                }
            }
        }
    }
}

#[test]
fn integer_conversions() {
    check("cvt.s64.s32 %rd9, %r1", "%rd9", |[a, ..]| a as i32 as i64 as u64);
    check("cvt.u64.u32 %rd9, %r1", "%rd9", |[a, ..]| u(a));
    check("cvt.s64.s8 %rd9, %rs1", "%rd9", |[a, ..]| a as i8 as i64 as u64);
    check("cvt.u32.u16 %r9, %rs1", "%r9", |[a, ..]| a & 0xffff);
    check("cvt.s16.s32 %r9, %r1", "%r9", |[a, ..]| w(a as i16 as u32));
    check("cvt.s8.s64 %r9, %rd1", "%r9", |[a, ..]| w(a as i8 as u32));
    check("cvt.u8.u32 %rs9, %r1", "%rs9", |[a, ..]| a & 0xff);
    check("cvt.u16.u64 %rs9, %rd1", "%rs9", |[a, ..]| a & 0xffff);
    check("cvt.sat.s32.s64 %r9, %rd1", "%r9", |[a, ..]| {
        w((a as i64).clamp(i32::MIN.into(), i32::MAX.into()) as u32)
    });
    check("cvt.sat.u8.s64 %r9, %rd1", "%r9", |[a, ..]| (a as i64).clamp(0, 255) as u64);
    check("cvt.sat.u32.s32 %r9, %r1", "%r9", |[a, ..]| w((a as i32).max(0) as u32));
    check("cvt.sat.s32.u32 %r9, %r1", "%r9", |[a, ..]| u(a).min(0x7fff_ffff));
    check("cvt.sat.s16.s32 %rs9, %r1", "%rs9", |[a, ..]| (a as i32).clamp(-0x8000, 0x7fff) as u16 as u64);
    check("cvt.sat.s64.u64 %rd9, %rd1", "%rd9", |[a, ..]| a.min(i64::MAX as u64));
    check("cvt.sat.u64.s32 %rd9, %r1", "%rd9", |[a, ..]| (a as i32).max(0) as u64);
    check("cvt.rn.f32.s64 %f9, %rd1", "%f9", |[a, ..]| w((a as i64 as f32).to_bits()));
    check("cvt.rn.f32.u8 %f9, %rs1", "%f9", |[a, ..]| w((a as u8 as f32).to_bits()));
    check("cvt.rn.f64.u64 %fd9, %rd1", "%fd9", |[a, ..]| (a as f64).to_bits());
    check("cvt.rn.f64.s16 %fd9, %rs1", "%fd9", |[a, ..]| (a as i16 as f64).to_bits());
}

fn flushed(v: f32) -> f32 {
    if v.is_subnormal() { 0f32.copysign(v) } else { v }
}

#[test]
fn float_arithmetic() {
    check_float("add.f32 %f9, %f1, %f2", &[0], |a, b, _| a + b);
    check_float("sub.ftz.f32 %f9, %f1, %f2", &[0], |a, b, _| flushed(flushed(a) - flushed(b)));
    check_float("sub.f32 %f9, 0f3F800000, %f2", &[0], |_, b, _| 1.0 - b);
    check_float("sub.f32 %f9, %f1, 0f00000000", &[0], |a, _, _| a - 0.0);
    check_float("mul.f32 %f9, %f1, %f2", &[0], |a, b, _| a * b);
    check_float("fma.rn.f32 %f9, %f1, %f2, %f3", &[0], |a, b, c| a.mul_add(b, c));
    check_float(
        "add.sat.f32 %f9, %f1, %f2",
        &[0],
        |a, b, _| if a + b > 0.0 { (a + b).min(1.0) } else { 0.0 },
    );
    check_float("neg.f32 %f9, %f1", &[0], |a, _, _| -a);
    check_float("abs.ftz.f32 %f9, %f1", &[0], |a, _, _| flushed(a).abs());
    check_float("copysign.f32 %f9, %f1, %f2", &[0], |a, b, _| {
        f32::from_bits(b.to_bits() & 0x7fff_ffff | a.to_bits() & 0x8000_0000)
    });
    check_float("cvt.rzi.f32.f32 %f9, %f1", &[0], |a, _, _| a.trunc());
    check_float("cvt.rni.f32.f32 %f9, %f1", &[0], |a, _, _| a.round_ties_even());
    check_float("cvt.sat.f32.f32 %f9, %f1", &[0], |a, _, _| if a > 0.0 { a.min(1.0) } else { 0.0 });
    check_float(
        "cvt.f64.f32 %fd8, %f1; add.f64 %fd8, %fd8, %fd8; cvt.rn.f32.f64 %f9, %fd8",
        &[0],
        |a, _, _| a + a,
    );
    check_float("slct.f32.f32 %f9, %f1, %f2, %f3", &[0], |a, b, c| if c >= 0.0 { a } else { b });
    check_float("setp.geu.f32 %p1, %f1, %f2; selp.f32 %f9, %f1, %f2, %p1", &[0], |a, b, _| {
        if a >= b || a.is_nan() || b.is_nan() { a } else { b }
    });
    check_float("min.f32 %f9, %f1, %f2", &[0], |a, b, _| match (a, b) {
        _ if a.is_nan() => b,
        _ if b.is_nan() => a,
        _ if a == b => f32::from_bits(a.to_bits() | b.to_bits()),
        _ => a.min(b),
    });
    check_float(
        "cvt.f64.f32 %fd7, %f1; cvt.f64.f32 %fd8, %f2; max.f64 %fd9, %fd7, %fd8; cvt.rn.f32.f64 %f9, %fd9",
        &[0],
        |a, b, _| match (a, b) {
            _ if a.is_nan() => b,
            _ if b.is_nan() => a,
            _ if a == b => f32::from_bits(a.to_bits() & b.to_bits()),
            _ => a.max(b),
        },
    );
    for (name, test) in [
        ("finite", f32::is_finite as fn(f32) -> bool),
        ("infinite", f32::is_infinite),
        ("notanumber", f32::is_nan),
        // Zeros count as normal.
        ("normal", |v| v.is_normal() || v == 0.0),
        ("subnormal", f32::is_subnormal),
    ] {
        let body = format!("testp.{name}.f32 %p1, %f1; selp.f32 %f9, 0f3F800000, 0f00000000, %p1");
        check_float(&body, &[0], move |a, _, _| if test(a) { 1.0 } else { 0.0 });
    }
}

#[test]
fn float_to_integer() {
    let kernel = Kernel::new(80, "cvt.rzi.s32.f32 %r9, %f1", "%r9");
    let wide = Kernel::new(80, "cvt.rmi.s64.f32 %rd9, %f1", "%rd9");
    let small = Kernel::new(80, "cvt.rzi.u8.f32 %r9, %f1", "%r9");
    for input in floats() {
        let a = f32::from_bits(input[0] as u32);
        assert_eq!(kernel.run(input, 0), w(a as i32 as u32), "{a:e}");
        assert_eq!(small.run(input, 0), (a as u8).into(), "{a:e}");
        if !a.is_nan() {
            assert_eq!(wide.run(input, 0), a.floor() as i64 as u64, "{a:e}");
        }
    }
}

#[test]
fn float_division_is_exact() {
    check_float("div.rn.f32 %f9, %f1, %f2", &[-1, 0, 1], |a, b, _| a / b);
    check_float("rcp.rn.f32 %f9, %f1", &[-1, 0, 1], |a, _, _| 1.0 / a);
    check_float("sqrt.rn.f32 %f9, %f1", &[-1, 0, 1], |a, _, _| a.sqrt());
    check_float("sqrt.rn.ftz.f32 %f9, %f1", &[-1, 0, 1], |a, _, _| flushed(a).sqrt());
    // A subnormal quotient is flushed even if rounding makes it normal.
    let flushed_quotient = |a: f32, b: f32| {
        let (a, b) = (flushed(a), flushed(b));
        let is_small = (f64::from(a) / f64::from(b)).abs() < f64::from(f32::MIN_POSITIVE);
        if is_small { (a / b) * 0.0 } else { a / b }
    };
    check_float("rcp.rn.ftz.f32 %f9, %f1", &[-1, 0, 1], move |a, _, _| flushed_quotient(1.0, a));
    check_float("div.rn.ftz.f32 %f9, %f1, %f2", &[-1, 0, 1], move |a, b, _| flushed_quotient(a, b));
}

/// Doubles of every exponent, special ones and neighbors of powers of two.
fn doubles() -> Vec<[u64; 4]> {
    let mut random = fastrand::Rng::with_seed(0x0fed_cba9_8765_4321);
    let mut list = Vec::new();
    let edges = [
        0u64,
        1,
        2,
        0xf_ffff_ffff_ffff,
        0x10_0000_0000_0000,
        0x10_0000_0000_0001,
        0x8_0000_0000_0001,
        0x0350_0000_0000_0000,
        0x035f_ffff_ffff_ffff,
        0x3fef_ffff_ffff_fffe,
        0x3ff0_0000_0000_0000,
        0x3ff0_0000_0000_0001,
        0x4008_0000_0000_0000,
        0x7fd0_0000_0000_0000,
        0x7fef_ffff_ffff_ffff,
        0x7ff0_0000_0000_0000,
        0x7ff0_0000_0000_0001,
        0x7ff8_0000_0000_0000,
        0x7f80_0000_0000_0000,
        0x7f8f_ffff_0000_0001,
    ];
    for a in edges {
        for b in edges {
            let sign = number(&mut random);
            list.push([a | (sign & 1) << 63, b | (sign & 2) << 62, 0, 0]);
        }
    }
    for i in 0..1500 {
        let mut bits = || number(&mut random).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(i);
        let (a, b) = (bits(), bits());
        list.push([a, b, 0, 0]);
        // Quotients about the least normal number.
        let exponent = 1 + (b >> 52 & 0x3ff);
        let near = (exponent + i as u64 % 60).saturating_sub(58).max(1) << 52;
        list.push([near | a & 0xf_ffff_ffff_ffff, (exponent + 1022) << 52 | b & 0xf_ffff_ffff_ffff, 0, 0]);
    }
    list
}

#[test]
fn double_division_is_exact() {
    type Case = (&'static str, fn(f64, f64) -> f64);
    let cases: [Case; 4] = [
        ("div.rn.f64 %fd9, %fd1, %fd2", |a, b| a / b),
        ("div.rn.f64 %fd9, 0d3ff0000000000000, %fd1", |a, _| 1.0 / a),
        ("rcp.rn.f64 %fd9, %fd1", |a, _| 1.0 / a),
        ("sqrt.rn.f64 %fd9, %fd1", |a, _| a.sqrt()),
    ];
    for (body, expected) in cases {
        let kernel = Kernel::new(80, body, "%fd9");
        for input in doubles() {
            let [a, b, ..] = input.map(f64::from_bits);
            let want = expected(a, b);
            for error in [-1, 0, 1] {
                let got = f64::from_bits(kernel.run(input, error));
                let same = got.to_bits() == want.to_bits() || (got.is_nan() && want.is_nan());
                assert!(
                    same,
                    "{body} of {a:e} {b:e} ({:x?}), error {error}: {got:e}, not {want:e}",
                    &input[..2]
                );
            }
        }
    }
}

/// Rounding down, up and toward zero gives a neighbor of the result rounded to nearest, or that result if it is exact.
#[test]
fn directed_double_division_brackets_the_result() {
    type Case = (&'static str, fn(f64, f64) -> f64);
    let cases: [Case; 3] = [
        ("div.{}.f64 %fd9, %fd1, %fd2", |a, b| a / b),
        ("rcp.{}.f64 %fd9, %fd1", |a, _| 1.0 / a),
        ("sqrt.{}.f64 %fd9, %fd1", |a, _| a.sqrt()),
    ];
    for (body, nearest) in cases {
        let kernels = ["rm", "rp", "rz"].map(|mode| Kernel::new(80, &body.replace("{}", mode), "%fd9"));
        for input in doubles() {
            let [a, b, ..] = input.map(f64::from_bits);
            let want = nearest(a, b);
            for error in [-1, 0, 1] {
                let [low, high, zero] = kernels.each_ref().map(|k| f64::from_bits(k.run(input, error)));
                if want.is_nan() {
                    assert!(low.is_nan() && high.is_nan() && zero.is_nan(), "{body} of {a:e} {b:e}");
                    continue;
                }
                let around = low <= want && want <= high && (low == high || low.next_up() == high);
                let expected = if want.is_sign_negative() { high } else { low };
                assert!(
                    around && zero.to_bits() == expected.to_bits() && (low == want || high == want),
                    "{body} of {a:e} {b:e}, error {error}: {low:e} {high:e} {zero:e}, nearest {want:e}"
                );
            }
        }
    }
}

#[test]
fn directed_float_division_brackets_the_quotient() {
    let [down, up] = ["rm", "rp"].map(|m| Kernel::new(80, &format!("div.{m}.f32 %f9, %f1, %f2"), "%f9"));
    for input in floats() {
        let [a, b, ..] = input.map(|v| f32::from_bits(v as u32));
        let [low, high] = [&down, &up].map(|k| f32::from_bits(k.run(input, 1) as u32));
        let exact = f64::from(a) / f64::from(b);
        if exact.is_nan() {
            assert!(low.is_nan() && high.is_nan());
            continue;
        }
        assert!(f64::from(low) <= exact && exact <= f64::from(high), "{a:e} / {b:e}: {low:e} {high:e}");
        let gap = low.to_bits().abs_diff(high.to_bits());
        assert!(gap <= 1 || low == 0.0 || high == 0.0, "{a:e} / {b:e}: {low:e} {high:e}");
    }
}

/// Ties go away from zero, and what exceeds the format to infinity; infinities and NaNs lose their low bits.
#[test]
fn rounding_to_tf32() {
    check("cvt.rna.tf32.f32 %r9, %f1", "%r9", |[a, ..]| {
        let a = a as u32;
        let up = if a << 1 < 0xff00_0000 { 0x1000 } else { 0 };
        w((a + up) & 0xffff_e000)
    });
    check("cvt.rna.tf32.f32 %r9, 0f3F801000", "%r9", |_| 0x3f80_2000);
}

/// The relative error of the approximations, without the unit's own; denormals included.
#[test]
fn approximations_keep_denormals() {
    type Case = (&'static str, fn(f64, f64) -> f64, f64);
    let cases: [Case; 7] = [
        ("rcp.approx.f32 %f9, %f1", |a, _| 1.0 / a, 3e-7),
        ("rsqrt.approx.f32 %f9, %f1", |a, _| 1.0 / a.sqrt(), 3e-7),
        ("sqrt.approx.f32 %f9, %f1", |a, _| a.sqrt(), 3e-7),
        ("ex2.approx.f32 %f9, %f1", |a, _| a.exp2(), 3e-7),
        ("lg2.approx.f32 %f9, %f1", |a, _| a.log2(), 3e-7),
        ("div.full.f32 %f9, %f1, %f2", |a, b| a / b, 6e-7),
        ("div.approx.f32 %f9, %f1, %f2", |a, b| a / b, 6e-7),
    ];
    for (body, exact, tolerance) in cases {
        let kernel = Kernel::new(90, body, "%f9");
        for input in floats() {
            let [a, b, ..] = input.map(|v| f32::from_bits(v as u32));
            let want = exact(a.into(), b.into());
            let range = (f64::from(f32::MIN_POSITIVE) * 1e-6)..=1e38;
            // div.approx is defined for divisors up to 2^126.
            if !range.contains(&want.abs()) || !a.is_finite() || b.abs() > 8e37 {
                continue;
            }
            let got = f64::from(f32::from_bits(kernel.run(input, 0) as u32));
            let slack = want.abs() * tolerance + 1.5e-45;
            assert!((got - want).abs() <= slack, "{body} of {a:e} {b:e}: {got:e}, not {want:e}");
        }
    }
}

#[test]
fn memory_round_trips() {
    check(
        "shared 64 s; st.shared.v2.u32 [s+8], {%r1, %r2}; ld.shared.u64 %rd9, [s+8]",
        "%rd9",
        |[a, b, ..]| u(a) | u(b) << 32,
    );
    check(
        "shared 64 s; st.shared.u64 [s], %rd1; ld.shared.v4.u8 {%rs5, %rs6, %rs7, %rs8}, [s+4]; cvt.u32.u16 %r9, %rs7",
        "%r9",
        |[a, ..]| a >> 48 & 0xff,
    );
    check(
        "shared 64 s; st.shared.v4.u8 [s], {%r1, %r2, %r3, %r4}; ld.shared.u32 %r9, [s]",
        "%r9",
        |[a, b, c, d]| a & 0xff | (b & 0xff) << 8 | (c & 0xff) << 16 | (d & 0xff) << 24,
    );
    check(
        "shared 64 s; st.shared.v2.u16 [s+4], {%rs1, %rs2}; ld.shared.s16 %rd9, [s+6]",
        "%rd9",
        |[_, b, ..]| b as i16 as u64,
    );
    check("ld.param.v2.u32 {%r7, %r9}, [i2]", "%r9", |[_, b, ..]| b >> 32);
    check("ld.param.s8 %r9, [i2+1]", "%r9", |[_, b, ..]| w((b >> 8) as i8 as u32));
    check(
        "setp.gt.u32 %p1, %r1, 9; mov.u32 %r9, 7; shared 64 s; st.shared.u32 [s], %r2; @%p1 ld.shared.u32 %r9, [s]",
        "%r9",
        |[a, b, ..]| if u(a) > 9 { u(b) } else { 7 },
    );
}

#[test]
fn control_flow() {
    check(
        "mov.u32 %r9, 0; and.b32 %r8, %r1, 15
         top:
         setp.eq.u32 %p1, %r8, 0; @%p1 bra done
         add.u32 %r9, %r9, %r8; sub.u32 %r8, %r8, 1; bra top
         done:",
        "%r9",
        |[a, ..]| (a & 15) * ((a & 15) + 1) / 2,
    );
    check(
        "mov.u64 %rd9, %rd1; mov.u64 %rd8, %rd2; mov.u32 %r8, 0
         again:
         mov.u64 %rd7, %rd9; mov.u64 %rd9, %rd8; mov.u64 %rd8, %rd7
         setp.lt.u32 %p1, %r8, 2; add.u32 %r8, %r8, 1; @%p1 bra again",
        "%rd9",
        |[_, b, ..]| b,
    );
    check(
        ".branchtargets a, b, a, c, c
         and.b32 %r8, %r1, 3; mov.u32 %r9, 9; setp.gt.u32 %p1, %r2, 5; add.u32 %r8, %r8, 1
         @%p1 brx.idx %r8, $0
         add.u32 %r9, %r9, 50
         a: add.u32 %r9, %r9, 100; bra end
         b: add.u32 %r9, %r9, 200; bra end
         c: add.u32 %r9, %r9, 300
         end:"
            .replace(": add", ":\n add")
            .as_str(),
        "%r9",
        |[a, b, ..]| {
            if u(b) <= 5 {
                return 159;
            }
            9 + [100, 200, 100, 300, 300][(a & 3) as usize + 1]
        },
    );
}
