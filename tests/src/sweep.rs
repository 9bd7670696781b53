//! One small kernel for each form of an instruction. Operands come from buffers, and results go to a buffer.

mod forms;
mod matrix;
mod moves;
mod wmma;

pub use forms::coverage;

use crate::case::{Argument, Case, Compare};
use ptx_isa::{Opcode, ScalarType, Sm};
use std::collections::BTreeSet;
use std::fmt::Write;

/// The number of threads of a launch. Each thread has its own operands.
const THREADS: usize = 256;

/// The names of the source operands in a kernel's text.
const OPERANDS: [&str; 6] = ["a", "b", "c", "e", "f", "g"];

/// A reproducible sequence of random numbers.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1234_5678_9abc_def1)
    }

    #[expect(clippy::should_implement_trait, reason = "a source of numbers never ends, so it is no iterator")]
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        (self.next() >> 11) % limit
    }
}

/// A value of a type: one that is difficult for instructions, or a random one.
pub fn value(ty: &str, random: &mut Random) -> u64 {
    let bits = width(ty);
    let pick = |values: &[u64], random: &mut Random| values[random.below(values.len() as u64) as usize];
    match ty {
        "f32" if random.below(3) > 0 => {
            let edges = [
                0.0f32,
                1.0,
                0.5,
                1.5,
                2.5,
                3.0,
                1e-40,
                f32::MIN_POSITIVE,
                f32::MAX,
                f32::INFINITY,
                f32::NAN,
                255.5,
                127.5,
                65535.0,
                2147483648.0,
                4294967296.0,
                9.2e18,
                0.1,
                3.7e-5,
                1e30,
            ];
            u64::from(edges[random.below(edges.len() as u64) as usize].to_bits()) | random.below(2) << 31
        }
        "f32" if random.below(2) == 0 => {
            u64::from((random.next() as i32 as f32 / (1u64 << random.below(40)) as f32).to_bits())
        }
        "f64" if random.below(3) > 0 => {
            let edges = [
                0.0f64,
                1.0,
                0.5,
                1.5,
                2.5,
                3.0,
                1e-310,
                f64::MIN_POSITIVE,
                f64::MAX,
                f64::INFINITY,
                f64::NAN,
                255.5,
                2147483648.0,
                9.3e18,
                0.1,
                1e200,
                1e-200,
                1e38,
                1e-40,
            ];
            edges[random.below(edges.len() as u64) as usize].to_bits() | random.below(2) << 63
        }
        "f64" if random.below(2) == 0 => {
            (random.next() as i64 as f64 / (1u64 << random.below(60)) as f64).to_bits()
        }
        "f32x2" => value("f32", random) << 32 | value("f32", random),
        "angle" => u64::from((random.below(1 << 16) as f32 / 8192.0 - 4.0).to_bits()),
        "f16" | "f16x2" | "bf16" | "bf16x2" if random.below(2) == 0 => {
            let edges = [
                0u64, 0x8000, 0x3c00, 0x3f80, 0x0001, 0x0400, 0x7bff, 0x7c00, 0x7e00, 0x7f80, 0x7fc0, 0xbc00,
                0x4248,
            ];
            pick(&edges, random) | pick(&edges, random) << 16
        }
        "pred" => random.below(2),
        "shift" => {
            pick(&[0, 1, 7, 8, 15, 16, 31, 32, 33, 63, 64, 65, 127, 255, 256, u32::MAX.into()], random)
        }
        // Positions and lengths of fields have 8 bits.
        "field" if random.below(2) == 0 => random.below(256),
        "field" => random.below(70),
        _ if random.below(2) == 0 => {
            let top = 1u64 << (bits - 1);
            let ones = u64::MAX >> (64 - bits);
            pick(
                &[0, 1, 2, 3, 5, 7, 10, 0x7f, 0x80, 0xff, top, top - 1, top + 1, ones, ones - 1, 0x5555_5555],
                random,
            ) & ones
        }
        _ => random.next() >> random.below(bits.into()) & (u64::MAX >> (64 - bits)),
    }
}

/// Whether an integer type includes all values of another one, so that conversions to it accept no `.sat`.
pub fn widens(to: &str, from: &str) -> bool {
    to == from || width(to) > width(from) && (from.starts_with('u') || to.starts_with('s'))
}

/// The size of a type in memory, in bits.
fn width(ty: &str) -> u32 {
    match ScalarType::parse(ty) {
        Some(ty) if ty != ScalarType::Pred => ty.bits(),
        // Predicates, and names that select values instead of a type.
        _ => 32,
    }
}

/// The register class of a type, and the instruction that loads it.
fn register(ty: &str) -> &'static str {
    match width(ty) {
        8 | 16 => "b16",
        32 => "b32",
        _ => "b64",
    }
}

/// Whether a value must be in an eight-bit register. Conversions from and to `.bf16` accept no wider ones.
fn is_byte(text: &str, ty: &str) -> bool {
    forms::is_byte_pair(ty) || matches!(ty, "u8" | "s8") && text.contains(".bf16")
}

/// The kernel of one instruction. In the text, `{d}`, `{a}`, `{b}` and so on stand for its operands.
///
/// A result is a type, `pred`, two predicates (`preds`), or a register and a predicate (`b32|pred`).
pub fn kernel(text: &str, result: &str, sources: &[&str]) -> String {
    let mut body = String::new();
    let mut params = String::from(".param .u64 out");
    let mut declarations = String::new();
    let mut statement = text.to_owned();
    for (i, ty) in sources.iter().enumerate() {
        let name = OPERANDS[i];
        let (bits, class) = (width(ty), register(ty));
        let _ = write!(params, ", .param .u64 in{i}");
        let _ = writeln!(declarations, "    .reg .{class} %{name};");
        let _ = writeln!(body, "    ld.param.u64 %in, [in{i}];");
        let _ = writeln!(body, "    mad.wide.u32 %in, %tid_, {}, %in;", bits / 8);
        let _ = writeln!(body, "    ld.global.b{bits} %{name}, [%in];");
        let mut operand = format!("%{name}");
        if *ty == "pred" {
            let _ = writeln!(declarations, "    .reg .pred %p{name};");
            let _ = writeln!(body, "    setp.ne.u32 %p{name}, %{name}, 0;");
            operand = format!("%p{name}");
        } else if is_byte(text, ty) {
            let _ = writeln!(declarations, "    .reg .b8 %n{name}, %u{name};");
            let _ = writeln!(body, "    mov.b16 {{%n{name}, %u{name}}}, %{name};");
            operand = format!("%n{name}");
        }
        statement = statement.replace(&format!("{{{name}}}"), &operand);
    }
    let (bits, class) = (width(result), register(result));
    if is_byte(text, result) {
        declarations.push_str("    .reg .b8 %nd;\n");
    }
    let (destination, rest) = match result {
        "pred" => ("%pd", "selp.b32 %d, 1, 0, %pd;"),
        "preds" => {
            ("%pd|%pq", "selp.b32 %d, 1, 0, %pd;\n    selp.b32 %dq, 2, 0, %pq;\n    or.b32 %d, %d, %dq;")
        }
        "b32|pred" => ("%d|%pd", "selp.b32 %dq, 0x5a5a5a5a, 0, %pd;\n    xor.b32 %d, %d, %dq;"),
        _ if is_byte(text, result) => ("%nd", "mov.b16 %d, {%nd, %nd};"),
        _ => ("%d", ""),
    };
    let _ = writeln!(declarations, "    .reg .{class} %d;\n    .reg .b32 %dq;\n    .reg .pred %pd, %pq;");
    let _ = writeln!(body, "    mov.b{} %d, 0;", if bits == 8 { 16 } else { bits });
    let _ = writeln!(body, "    {}", statement.replace("{d}", destination));
    let _ = writeln!(body, "    {rest}");
    format!(
        ".version {}\n.target {}\n.address_size 64\n.visible .entry k({params})\n{{\n    .reg .b32 %tid_;\n    \
         .reg .b64 %in, %out;\n{declarations}    mov.u32 %tid_, %tid.x;\n{body}    ld.param.u64 %out, [out];\n    \
         mad.wide.u32 %out, %tid_, {}, %out;\n    st.global.b{bits} [%out], %d;\n    ret;\n}}\n",
        forms::VERSION,
        target(text),
        bits / 8
    )
}

/// The lowest target that has all instructions of a text.
pub fn target(text: &str) -> Sm {
    let targets = text.split(';').filter_map(opcode).filter_map(|opcode| forms::target(&opcode));
    targets.max_by_key(|sm| (sm.feature, sm.number)).unwrap_or(Sm::new(75))
}

/// Whether a target has all instructions of a text.
pub fn runs_on(text: &str, sm: Sm) -> bool {
    text.split(';').filter_map(opcode).all(|opcode| forms::runs_on(&opcode, sm))
}

/// The instruction of a statement, or `None` if the statement is not one.
fn opcode(statement: &str) -> Option<Opcode> {
    let mut words = statement.split_whitespace().next()?.split('.');
    ptx_isa::resolve(words.next()?, &words.collect::<Vec<&str>>()).ok()
}

/// The case of one instruction with edge values and random values.
pub fn case(text: &str, result: &str, sources: &[&str], compare: Compare) -> Case {
    let mut random =
        Random::new(text.bytes().fold(7, |hash: u64, byte| hash.wrapping_mul(31) + u64::from(byte)));
    let bytes = |ty: &str| width(ty) as usize / 8;
    let mut arguments = vec![Argument::Buffer(vec![0; THREADS * bytes(result)], compare)];
    for ty in sources {
        let values = (0..THREADS).flat_map(|_| value(ty, &mut random).to_le_bytes()[..bytes(ty)].to_vec());
        arguments.push(Argument::Buffer(values.collect(), Compare::Exact));
    }
    Case::new(kernel(text, result, sources), 1, THREADS as u32, arguments)
}

/// All forms of instructions that have a kernel of their own.
pub fn all() -> Vec<Case> {
    let mut cases = Vec::new();
    let exact = Compare::Exact;
    let ints = ["u16", "s16", "u32", "s32", "u64", "s64"];
    for t in ints {
        for op in ["add", "sub", "min", "max", "mul.lo", "mul.hi"] {
            cases.push(case(&format!("{op}.{t} {{d}}, {{a}}, {{b}};"), t, &[t, t], exact));
        }
        for op in ["div", "rem"] {
            let text = format!("or.b{0} {{b}}, {{b}}, 1; {op}.{t} {{d}}, {{a}}, {{b}};", width(t));
            cases.push(case(&text, t, &[t, t], exact));
        }
        for op in ["mad.lo", "mad.hi", "sad"] {
            cases.push(case(&format!("{op}.{t} {{d}}, {{a}}, {{b}}, {{c}};"), t, &[t, t, t], exact));
        }
        if t.starts_with('s') {
            for op in ["abs", "neg"] {
                cases.push(case(&format!("{op}.{t} {{d}}, {{a}};"), t, &[t], exact));
            }
        }
        cases.push(case(&format!("shr.{t} {{d}}, {{a}}, {{b}};"), t, &[t, "shift"], exact));
        for cmp in ["eq", "ne", "lt", "le", "gt", "ge"] {
            cases.push(case(&format!("setp.{cmp}.{t} {{d}}, {{a}}, {{b}};"), "pred", &[t, t], exact));
            cases.push(case(
                &format!("setp.{cmp}.and.{t} {{d}}, {{a}}, {{b}}, {{c}};"),
                "pred",
                &[t, t, "pred"],
                exact,
            ));
            cases.push(case(&format!("set.{cmp}.u32.{t} {{d}}, {{a}}, {{b}};"), "u32", &[t, t], exact));
        }
        cases.push(case(&format!("selp.{t} {{d}}, {{a}}, {{b}}, {{c}};"), t, &[t, t, "pred"], exact));
        cases.push(case(&format!("slct.{t}.s32 {{d}}, {{a}}, {{b}}, {{c}};"), t, &[t, t, "s32"], exact));
    }
    for (t, wide) in [("u16", "u32"), ("s16", "s32"), ("u32", "u64"), ("s32", "s64")] {
        cases.push(case(&format!("mul.wide.{t} {{d}}, {{a}}, {{b}};"), wide, &[t, t], exact));
        cases.push(case(&format!("mad.wide.{t} {{d}}, {{a}}, {{b}}, {{c}};"), wide, &[t, t, wide], exact));
    }
    for t in ["u32", "s32"] {
        for op in ["mul24.lo", "mul24.hi"] {
            cases.push(case(&format!("{op}.{t} {{d}}, {{a}}, {{b}};"), t, &[t, t], exact));
        }
        for op in ["mad24.lo", "mad24.hi"] {
            cases.push(case(&format!("{op}.{t} {{d}}, {{a}}, {{b}}, {{c}};"), t, &[t, t, t], exact));
        }
        for mode in ["clamp", "wrap"] {
            cases.push(case(&format!("szext.{mode}.{t} {{d}}, {{a}}, {{b}};"), t, &[t, "shift"], exact));
        }
        for u in ["u32", "s32"] {
            let d = if t == "u32" && u == "u32" { "u32" } else { "s32" };
            cases.push(case(
                &format!("dp4a.{t}.{u} {{d}}, {{a}}, {{b}}, {{c}};"),
                d,
                &["b32", "b32", d],
                exact,
            ));
            for half in ["lo", "hi"] {
                cases.push(case(
                    &format!("dp2a.{half}.{t}.{u} {{d}}, {{a}}, {{b}}, {{c}};"),
                    d,
                    &["b32", "b32", d],
                    exact,
                ));
            }
        }
    }
    for op in ["add.sat", "sub.sat"] {
        cases.push(case(&format!("{op}.s32 {{d}}, {{a}}, {{b}};"), "s32", &["s32", "s32"], exact));
    }
    cases.push(case("mad.hi.sat.s32 {d}, {a}, {b}, {c};", "s32", &["s32", "s32", "s32"], exact));
    for t in ["u32", "s32", "u64", "s64"] {
        for op in ["bfind", "bfind.shiftamt"] {
            cases.push(case(&format!("{op}.{t} {{d}}, {{a}};"), "u32", &[t], exact));
        }
        cases.push(case(&format!("bfe.{t} {{d}}, {{a}}, {{b}}, {{c}};"), t, &[t, "field", "field"], exact));
        cases.push(case(&format!("bfe.{t} {{d}}, {{a}}, 5, 9;"), t, &[t], exact));
        let carry = format!("add.cc.{t} {{d}}, {{a}}, {{b}}; addc.{t} {{d}}, {{b}}, {{c}}; ");
        cases.push(case(&carry, t, &[t, t, t], exact));
        let borrow = format!("sub.cc.{t} {{d}}, {{a}}, {{b}}; subc.{t} {{d}}, {{b}}, {{c}};");
        cases.push(case(&borrow, t, &[t, t, t], exact));
        let chain = format!(
            "mad.lo.cc.{t} {{a}}, {{a}}, {{b}}, {{c}}; madc.hi.cc.{t} {{b}}, {{b}}, {{c}}, {{a}}; addc.{t} {{d}}, {{b}}, 0;"
        );
        cases.push(case(&chain, t, &[t, t, t], exact));
    }
    for t in ["b16", "b32", "b64"] {
        for op in ["and", "or", "xor"] {
            cases.push(case(&format!("{op}.{t} {{d}}, {{a}}, {{b}};"), t, &[t, t], exact));
        }
        for op in ["not", "cnot"] {
            cases.push(case(&format!("{op}.{t} {{d}}, {{a}};"), t, &[t], exact));
        }
        cases.push(case(&format!("shl.{t} {{d}}, {{a}}, {{b}};"), t, &[t, "shift"], exact));
        cases.push(case(&format!("shr.{t} {{d}}, {{a}}, {{b}};"), t, &[t, "shift"], exact));
    }
    for t in ["b32", "b64"] {
        for op in ["popc", "clz"] {
            cases.push(case(&format!("{op}.{t} {{d}}, {{a}};"), "u32", &[t], exact));
        }
        cases.push(case(&format!("brev.{t} {{d}}, {{a}};"), t, &[t], exact));
        cases.push(case(
            &format!("bfi.{t} {{d}}, {{a}}, {{b}}, {{c}}, {{e}};"),
            t,
            &[t, t, "field", "field"],
            exact,
        ));
        cases.push(case(&format!("bfi.{t} {{d}}, {{a}}, {{b}}, 4, 11;"), t, &[t, t], exact));
    }
    for mode in ["clamp", "wrap"] {
        for side in ["l", "r"] {
            let text = format!("shf.{side}.{mode}.b32 {{d}}, {{a}}, {{b}}, {{c}};");
            cases.push(case(&text, "b32", &["b32", "b32", "shift"], exact));
        }
        cases.push(case(&format!("bmsk.{mode}.b32 {{d}}, {{a}}, {{b}};"), "b32", &["shift", "shift"], exact));
    }
    for mode in ["", ".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16"] {
        cases.push(case(
            &format!("prmt.b32{mode} {{d}}, {{a}}, {{b}}, {{c}};"),
            "b32",
            &["b32", "b32", "b32"],
            exact,
        ));
    }
    for table in [0x80, 0xe8, 0x96, 0x1b, 0xca] {
        cases.push(case(
            &format!("lop3.b32 {{d}}, {{a}}, {{b}}, {{c}}, {table};"),
            "b32",
            &["b32", "b32", "b32"],
            exact,
        ));
    }
    for (from, to) in ints
        .into_iter()
        .chain(["u8", "s8"])
        .flat_map(|a| ints.into_iter().chain(["u8", "s8"]).map(move |b| (a, b)))
    {
        cases.push(case(&format!("cvt.{to}.{from} {{d}}, {{a}};"), to, &[from], exact));
        if !widens(to, from) {
            cases.push(case(&format!("cvt.sat.{to}.{from} {{d}}, {{a}};"), to, &[from], exact));
        }
    }
    floats(&mut cases);
    let written: BTreeSet<String> = cases.iter().map(statement).collect();
    cases.extend(forms::all().into_iter().filter(|case| !written.contains(&statement(case))));
    cases.extend(matrix::all());
    cases.extend(wmma::all());
    cases.extend(moves::all());
    // Cases for the same target are adjacent, so that they share modules.
    cases.sort_by_key(|case| target(&statement(case)));
    cases
}

fn compare_of(t: &str) -> Compare {
    match t {
        "f32" | "f32x2" => Compare::SINGLE,
        "f64" => Compare::DOUBLE,
        "f16" | "f16x2" => Compare::HALF,
        "bf16" | "bf16x2" => Compare::BFLOAT,
        _ => Compare::Exact,
    }
}

fn floats(cases: &mut Vec<Case>) {
    let exact = Compare::Exact;
    for t in ["f32", "f64"] {
        let close = compare_of(t);
        let flags: &[&str] = if t == "f32" { &["", ".ftz", ".sat", ".ftz.sat"] } else { &[""] };
        for round in ["rn", "rz", "rm", "rp"] {
            for flag in flags {
                for op in ["add", "sub", "mul"] {
                    cases.push(case(
                        &format!("{op}.{round}{flag}.{t} {{d}}, {{a}}, {{b}};"),
                        t,
                        &[t, t],
                        close,
                    ));
                }
                cases.push(case(
                    &format!("fma.{round}{flag}.{t} {{d}}, {{a}}, {{b}}, {{c}};"),
                    t,
                    &[t, t, t],
                    close,
                ));
            }
            for flag in flags.iter().filter(|flag| !flag.contains("sat")) {
                cases.push(case(&format!("div.{round}{flag}.{t} {{d}}, {{a}}, {{b}};"), t, &[t, t], close));
                cases.push(case(&format!("rcp.{round}{flag}.{t} {{d}}, {{a}};"), t, &[t], close));
                cases.push(case(&format!("sqrt.{round}{flag}.{t} {{d}}, {{a}};"), t, &[t], close));
            }
        }
        for flag in flags.iter().filter(|flag| !flag.contains("sat")) {
            for op in ["min", "max"] {
                cases.push(case(&format!("{op}{flag}.{t} {{d}}, {{a}}, {{b}};"), t, &[t, t], close));
            }
            for op in ["abs", "neg"] {
                cases.push(case(&format!("{op}{flag}.{t} {{d}}, {{a}};"), t, &[t], close));
            }
            for cmp in
                ["eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"]
            {
                cases.push(case(
                    &format!("setp.{cmp}{flag}.{t} {{d}}, {{a}}, {{b}};"),
                    "pred",
                    &[t, t],
                    exact,
                ));
                cases.push(case(
                    &format!("set.{cmp}{flag}.u32.{t} {{d}}, {{a}}, {{b}};"),
                    "u32",
                    &[t, t],
                    exact,
                ));
            }
            cases.push(case(
                &format!("setp.lt.or{flag}.{t} {{d}}, {{a}}, {{b}}, {{c}};"),
                "pred",
                &[t, t, "pred"],
                exact,
            ));
        }
        for property in ["finite", "infinite", "number", "notanumber", "normal", "subnormal"] {
            cases.push(case(&format!("testp.{property}.{t} {{d}}, {{a}};"), "pred", &[t], exact));
        }
        cases.push(case(&format!("copysign.{t} {{d}}, {{a}}, {{b}};"), t, &[t, t], close));
        cases.push(case(&format!("selp.{t} {{d}}, {{a}}, {{b}}, {{c}};"), t, &[t, t, "pred"], exact));
        cases.push(case(&format!("slct.{t}.f32 {{d}}, {{a}}, {{b}}, {{c}};"), t, &[t, t, "f32"], exact));
        for int in ["u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"] {
            for round in ["rni", "rzi", "rmi", "rpi"] {
                cases.push(case(&format!("cvt.{round}.{int}.{t} {{d}}, {{a}};"), int, &[t], exact));
            }
            for round in ["rn", "rz", "rm", "rp"] {
                cases.push(case(&format!("cvt.{round}.{t}.{int} {{d}}, {{a}};"), t, &[int], close));
            }
        }
        for round in ["rni", "rzi", "rmi", "rpi"] {
            cases.push(case(&format!("cvt.{round}.{t}.{t} {{d}}, {{a}};"), t, &[t], close));
        }
        for round in ["rn", "rz"] {
            cases.push(case(&format!("cvt.{round}.f16.{t} {{d}}, {{a}};"), "f16", &[t], Compare::HALF));
        }
        cases.push(case(&format!("cvt.{t}.f16 {{d}}, {{a}};"), t, &["f16"], close));
    }
    cases.push(case("cvt.f64.f32 {d}, {a};", "f64", &["f32"], Compare::DOUBLE));
    cases.push(case("cvt.ftz.f64.f32 {d}, {a};", "f64", &["f32"], Compare::DOUBLE));
    cases.push(case("cvt.ftz.sat.f32.f32 {d}, {a};", "f32", &["f32"], Compare::SINGLE));
    for round in ["rn", "rz", "rm", "rp"] {
        cases.push(case(&format!("cvt.{round}.f32.f64 {{d}}, {{a}};"), "f32", &["f64"], Compare::SINGLE));
        cases.push(case(&format!("cvt.{round}.ftz.f32.f64 {{d}}, {{a}};"), "f32", &["f64"], Compare::SINGLE));
    }
    cases.push(case("cvt.rn.bf16.f32 {d}, {a};", "bf16", &["f32"], Compare::BFLOAT));
    cases.push(case("cvt.f32.bf16 {d}, {a};", "f32", &["bf16"], Compare::SINGLE));
    cases.push(case("cvt.rn.f16x2.f32 {d}, {a}, {b};", "f16x2", &["f32", "f32"], Compare::HALF));
    cases.push(case("cvt.rn.bf16x2.f32 {d}, {a}, {b};", "bf16x2", &["f32", "f32"], Compare::BFLOAT));
    for t in ["f16", "f16x2"] {
        let c = compare_of(t);
        for flag in ["", ".ftz", ".sat"] {
            for op in ["add", "sub", "mul"] {
                cases.push(case(&format!("{op}{flag}.{t} {{d}}, {{a}}, {{b}};"), t, &[t, t], c));
            }
            cases.push(case(&format!("fma.rn{flag}.{t} {{d}}, {{a}}, {{b}}, {{c}};"), t, &[t, t, t], c));
        }
        for op in ["abs", "neg"] {
            cases.push(case(&format!("{op}.{t} {{d}}, {{a}};"), t, &[t], c));
        }
        for op in ["min", "max", "min.NaN", "max.NaN"] {
            cases.push(case(&format!("{op}.{t} {{d}}, {{a}}, {{b}};"), t, &[t, t], c));
        }
    }
    for t in ["bf16", "bf16x2"] {
        cases.push(case(&format!("fma.rn.{t} {{d}}, {{a}}, {{b}}, {{c}};"), t, &[t, t, t], compare_of(t)));
    }
    let approximate = Compare::F32 { ulps: 4, absolute: 2e-6 };
    for flag in ["", ".ftz"] {
        for op in ["rcp.approx", "sqrt.approx", "rsqrt.approx", "lg2.approx", "ex2.approx"] {
            cases.push(case(&format!("{op}{flag}.f32 {{d}}, {{a}};"), "f32", &["f32"], approximate));
        }
        for op in ["div.approx", "div.full"] {
            let scaled = format!("{op}{flag}.f32 {{d}}, {{a}}, {{b}};");
            cases.push(case(&scaled, "f32", &["s32", "s32"], approximate));
        }
    }
}

/// The statement that a case tests.
pub fn statement(case: &Case) -> String {
    let whole_warp =
        matrix::statement(case).or_else(|| wmma::statement(case)).or_else(|| moves::statement(case));
    if let Some(statement) = whole_warp {
        return statement;
    }
    let mut lines = case.ptx.lines().skip_while(|line| !line.contains("mov.b") || !line.contains(" %d, 0;"));
    lines.nth(1).unwrap_or_default().trim().to_owned()
}
