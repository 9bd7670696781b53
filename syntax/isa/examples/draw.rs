//! Prints kernels with one random statement each, drawn from the table, for comparisons with NVIDIA's assembler:
//!
//!     cargo run --release -p ptx-isa --example draw -- sm_90a 1 50
//!
//! prints a module for a target. The second argument is the seed, the third is the largest number of names per form.
//! Without the third argument, every two modifiers and types of a form that can occur in one name do so at least once.
//! The statement of a kernel is the only line that starts with a tab. After the third argument, `plain` prints
//! straight-line kernels with common operands. `varied` also puts statements under negated guards and into loops that
//! threads leave at different times, and also draws special registers, registers plus constants, wider registers,
//! sinks, and negative and absolute addresses.

use ptx_isa::{
    Class, Expected, ExpectedLanes, ExpectedType, Feature, Form, FormId, Opcode, Part, PtxVersion, Role,
    ScalarType, Sm, Space, Target, TypeKind, Values, Window, form, gates, resolve, signature,
};
use std::collections::BTreeSet;
use std::fmt::Write;

const VERSION: PtxVersion = PtxVersion::new(9, 0);
/// The number of random names that are tried before a form counts as exhausted.
const TRIES: usize = 3000;
const MODULE: &str = "\
.global .texref tex;\n.global .surfref srf;\n.global .align 128 .b8 gmem[4096];\n\
.const .align 16 .b8 cmem[256];\n.shared .align 128 .b8 smem[4096];\n";

fn main() {
    let mut arguments = std::env::args().skip(1);
    let sm = arguments.next().as_deref().and_then(target).expect("a target, such as sm_90a");
    let seed: u64 = arguments.next().and_then(|word| word.parse().ok()).unwrap_or(1);
    let most: usize = arguments.next().and_then(|word| word.parse().ok()).unwrap_or(usize::MAX);
    let varied = arguments.next().is_some_and(|word| word == "varied");
    let mut random = Random { state: 0x9e37_79b9_7f4a_7c15 ^ (seed << 7 | 1), varied };
    println!(".version {VERSION}\n.target {}\n.address_size 64\n{MODULE}", name_of(sm));
    let mut number = 0;
    for form in FormId::ALL.iter().map(|&id| form(id)) {
        for (name, opcode) in names(form, sm, &mut random).into_iter().take(most) {
            let Some(kernel) = Kernel::draw(&name, &opcode, sm, &mut random) else { continue };
            kernel.print(number, &mut random);
            number += 1;
        }
    }
}

fn target(name: &str) -> Option<Sm> {
    let number = name.strip_prefix("sm_")?;
    let (number, feature) = match number.strip_suffix(['a', 'f']) {
        Some(digits) if number.ends_with('a') => (digits, Feature::Arch),
        Some(digits) => (digits, Feature::Family),
        None => (number, Feature::None),
    };
    Some(Sm { number: number.parse().ok()?, feature })
}

fn name_of(sm: Sm) -> String {
    let suffix = match sm.feature {
        Feature::None => "",
        Feature::Family => "f",
        Feature::Arch => "a",
    };
    format!("sm_{}{suffix}", sm.number)
}

struct Random {
    state: u64,
    /// Also draw operands and surroundings that are rare in programs.
    varied: bool,
}

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % limit
    }

    /// True once in `times` calls on average, if kernels are varied.
    fn rarely(&mut self, times: usize) -> bool {
        self.varied && self.below(times) == 0
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}

/// The names of a form that are valid on a target.
fn names(form: &Form, sm: Sm, random: &mut Random) -> Vec<(String, Opcode)> {
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for _ in 0..TRIES {
        let mut choice = Vec::new();
        for group in form.groups {
            let absent = !group.required && random.below(2) == 0;
            choice.push(if absent { "" } else { random.pick(group.names).text() });
        }
        for (i, types) in form.types.iter().enumerate() {
            let absent = i >= form.required_types.into() && random.below(2) == 0;
            let types: Vec<ScalarType> = types.iter().collect();
            choice.push(if absent { "" } else { random.pick(&types).text() });
        }
        let words: Vec<&str> = choice.iter().copied().filter(|word| !word.is_empty()).collect();
        let Ok(opcode) = resolve(form.mnemonic(), &words) else { continue };
        if opcode.form != form.id || gates(&opcode).check(VERSION, sm).is_err() {
            continue;
        }
        let mut new = choice.is_empty() && found.is_empty();
        for i in 0..choice.len() {
            for j in 0..=i {
                new |= seen.insert((i, choice[i], j, choice[j]));
            }
        }
        if new {
            let dots: String = words.iter().map(|word| format!(".{word}")).collect();
            found.push((format!("{}{dots}", form.mnemonic()), opcode));
        }
    }
    found
}

/// A statement, and the registers that it uses.
struct Kernel {
    statement: String,
    registers: Vec<&'static str>,
}

impl Kernel {
    fn draw(name: &str, opcode: &Opcode, sm: Sm, random: &mut Random) -> Option<Kernel> {
        let mut kernel = Kernel { statement: String::new(), registers: Vec::new() };
        let signature = signature(opcode);
        let most = signature.operands.iter().take_while(|o| o.gate.check(VERSION, sm).is_ok()).count();
        if most < signature.least {
            return None;
        }
        let mut left_out = random.below(most - signature.least + 1);
        let mut operands = Vec::new();
        for operand in &signature.operands[..most] {
            if operand.optional && left_out > 0 {
                left_out -= 1;
                continue;
            }
            operands.push(kernel.operand(name, opcode, operand, random)?);
        }
        let guard = match random.below(4) {
            0 => {
                let not = if random.rarely(2) { "!" } else { "" };
                format!("@{not}{} ", kernel.register("pred"))
            }
            _ => String::new(),
        };
        kernel.statement = format!("{guard}{name} {};", operands.join(", "));
        Some(kernel)
    }

    fn register(&mut self, class: &'static str) -> String {
        self.registers.push(class);
        format!("%x{}", self.registers.len() - 1)
    }

    fn operand(&mut self, name: &str, opcode: &Opcode, is: &Expected, random: &mut Random) -> Option<String> {
        let class = is.class;
        let written = is.role != Role::Source;
        let kinds: Vec<Class> = [
            Class::REGISTER,
            Class::REGISTER,
            Class::IMMEDIATE,
            Class::ADDRESS,
            Class::PREDICATE,
            Class::SPECIAL,
            Class::VECTOR,
            Class::SINK,
            Class::PAIR,
            Class::PAIR_WITHOUT_FIRST,
            Class::TEXTURE,
        ]
        .into_iter()
        .filter(|kind| class.intersects(*kind))
        .collect();
        if kinds.is_empty() {
            return None;
        }
        let mut kind = random.pick(&kinds);
        if kind == Class::PREDICATE && class.intersects(Class::REGISTER) {
            kind = Class::REGISTER;
        }
        let ty = scalar(is.ty);
        let register = register_class(name, ty);
        Some(match kind {
            Class::REGISTER if ty == ScalarType::Pred => {
                let not = if !written && random.rarely(4) { "!" } else { "" };
                format!("{not}{}", self.register("pred"))
            }
            Class::REGISTER if !written && random.rarely(8) => {
                let constant = random.pick(&["4", "-1", "65535", "0x7fffffff"]);
                format!("{}+{constant}", self.register(register))
            }
            Class::REGISTER if !written && random.rarely(8) => self.source(register, random),
            Class::REGISTER if random.rarely(8) => self.register(wider(register)),
            Class::REGISTER => self.register(register),
            Class::IMMEDIATE => constant(is.values, ty, random)?,
            Class::ADDRESS => self.address(is.ty, random),
            Class::PREDICATE => {
                let not = if !written && random.below(3) == 0 { "!" } else { "" };
                format!("{not}{}", self.register("pred"))
            }
            Class::SPECIAL => match ty.bits() {
                64 => "%clock64".to_owned(),
                _ => "%tid.x".to_owned(),
            },
            Class::VECTOR if written && random.rarely(4) => {
                let lanes = lanes(is.lanes, class, random)?;
                let elements: Vec<String> = (0..lanes)
                    .map(|_| if random.below(2) == 0 { "_".to_owned() } else { self.register(register) })
                    .collect();
                format!("{{{}}}", elements.join(", "))
            }
            Class::VECTOR => {
                let lanes = lanes(is.lanes, class, random)?;
                self.vector(register, lanes)
            }
            Class::SINK => "_".to_owned(),
            // Two predicates, or a value and a predicate.
            Class::PAIR => {
                let first = match class.intersects(Class::VECTOR) {
                    true => {
                        let lanes = lanes(is.lanes, class, random)?;
                        self.vector(register, lanes)
                    }
                    false => self.register(register),
                };
                format!("{first}|{}", self.register("pred"))
            }
            Class::PAIR_WITHOUT_FIRST => format!("_|{}", self.register("pred")),
            _ => self.texture(opcode, is, random)?,
        })
    }

    /// A source that is not one of the registers that the kernel declares.
    fn source(&mut self, class: &'static str, random: &mut Random) -> String {
        let texts: &[&str] = match class {
            "b32" => {
                &["%laneid", "%smid", "%clock", "%ctaid.z", "%nctaid.x", "smem", "smem+8", "WARP_SZ", "-7"]
            }
            "b64" => &["%globaltimer", "%clock64", "gmem", "gmem+40", "cmem+8", "smem", "-7"],
            _ => &["%tid.y", "-7", "0x7f"],
        };
        random.pick(texts).to_owned()
    }

    fn vector(&mut self, class: &'static str, lanes: usize) -> String {
        let registers: Vec<String> = (0..lanes).map(|_| self.register(class)).collect();
        format!("{{{}}}", registers.join(", "))
    }

    fn address(&mut self, ty: ExpectedType, random: &mut Random) -> String {
        let (ExpectedType::Address(Target { base, space })
        | ExpectedType::AddressOf(_, Target { base, space })) = ty
        else {
            return format!("[{}]", self.register("b64"));
        };
        let tail = match random.below(2) {
            0 if random.rarely(2) => random.pick(&["+-32", "+0", "+8388608", "+-8388640", "+0x10000"]),
            0 => "+32",
            _ => "",
        };
        if random.rarely(16) && !matches!(base.window, Window::Tensor | Window::Unchecked) {
            return random.pick(&["[0]", "[256]", "[0x100000]"]).to_owned();
        }
        match (base.window, space) {
            (Window::Tensor, _) => format!("[{}]", self.register("b32")),
            (Window::Unchecked, _) if random.below(2) == 0 => format!("[{}]", self.register("b64")),
            (Window::Unchecked, _) => "[tex]".to_owned(),
            (_, Space::Global) if base.symbols && random.below(2) == 0 => format!("[gmem{tail}]"),
            (_, Space::Const) if base.symbols && random.below(2) == 0 => format!("[cmem{tail}]"),
            (_, Space::Local) if base.symbols && random.below(2) == 0 => format!("[lmem{tail}]"),
            (_, Space::Param) => "[in]".to_owned(),
            (_, Space::Shared) if base.symbols && random.below(2) == 0 => format!("[smem{tail}]"),
            (_, Space::Shared) => format!("[{}{tail}]", self.register("b32")),
            _ => format!("[{}{tail}]", self.register("b64")),
        }
    }

    fn texture(&mut self, opcode: &Opcode, is: &Expected, random: &mut Random) -> Option<String> {
        let mut parts = Vec::new();
        match opcode.form.mnemonic() {
            "tex" | "tld4" => {
                parts.push(if random.below(2) == 0 { "tex".to_owned() } else { self.register("b64") });
            }
            "suld" | "sust" | "sured" => {
                parts.push(if random.below(2) == 0 { "srf".to_owned() } else { self.register("b64") });
            }
            _ => parts.push(self.register("b64")),
        }
        for part in is.head {
            match part {
                Part::Integer(bits) => parts.push(self.register(bits_class(*bits))),
                Part::Sizes | Part::Strides => return None,
            }
        }
        let lanes = lanes(is.lanes, Class::VECTOR, random)?;
        let coordinates = match is.ty {
            ExpectedType::Coordinates(ty, true) => {
                let mut all = vec![self.register("b32")];
                all.extend((1..lanes).map(|_| self.register(register_class("", ty))));
                format!("{{{}}}", all.join(", "))
            }
            ty => self.vector(register_class("", scalar(ty)), lanes),
        };
        parts.push(coordinates);
        Some(format!("[{}]", parts.join(", ")))
    }

    /// Prints a kernel that loads all registers before the statement and stores them after it.
    fn print(&self, number: usize, random: &mut Random) {
        let mut text =
            format!(".visible .entry k{number}(.param .u64 in)\n{{\n.local .align 16 .b8 lmem[256];\n");
        text.push_str(".reg .b64 %in;\n.reg .b16 %h;\n.reg .b8 %n;\n.reg .b32 %w;\n.reg .b64 %l, %m;\n");
        let (mut before, mut after) = (String::new(), String::new());
        for (i, class) in self.registers.iter().enumerate() {
            let _ = writeln!(text, ".reg .{class} %x{i};");
            let at = i * 16;
            let _ = match *class {
                "pred" => {
                    let _ = writeln!(after, "selp.b32 %w, 1, 0, %x{i};\nst.global.b32 [%in+{at}], %w;");
                    writeln!(before, "ld.global.b32 %w, [%in+{at}];\nsetp.ne.s32 %x{i}, %w, 0;")
                }
                "b8" => {
                    let _ = writeln!(after, "mov.b16 %h, {{%x{i}, %x{i}}};\nst.global.b16 [%in+{at}], %h;");
                    writeln!(before, "ld.global.b16 %h, [%in+{at}];\nmov.b16 {{%x{i}, %n}}, %h;")
                }
                "b128" => {
                    let _ = writeln!(
                        after,
                        "mov.b128 {{%l, %m}}, %x{i};\nst.global.v2.b64 [%in+{at}], {{%l, %m}};"
                    );
                    writeln!(before, "ld.global.v2.b64 {{%l, %m}}, [%in+{at}];\nmov.b128 %x{i}, {{%l, %m}};")
                }
                class => {
                    let _ = writeln!(after, "st.global.{class} [%in+{at}], %x{i};");
                    writeln!(before, "ld.global.{class} %x{i}, [%in+{at}];")
                }
            };
        }
        if random.rarely(3) {
            text.push_str(".reg .pred %go;\n.reg .b32 %turn;\n");
            before.push_str("mov.b32 %turn, %tid.x;\nLOOP:\n");
            let again = "add.s32 %turn, %turn, -3;\nsetp.gt.s32 %go, %turn, 0;\n@%go bra LOOP;\n";
            after.insert_str(0, again);
        } else if random.rarely(3) {
            text.push_str(".reg .pred %go;\n.reg .b32 %turn;\n");
            before.push_str("mov.b32 %turn, %tid.x;\nsetp.gt.s32 %go, %turn, 5;\n@%go bra BEHIND;\n");
            after.insert_str(0, "BEHIND:\n");
        }
        println!("{text}ld.param.u64 %in, [in];\n{before}\t{}\n{after}ret;\n}}", self.statement);
    }
}

fn scalar(ty: ExpectedType) -> ScalarType {
    match ty {
        ExpectedType::Typed(ty)
        | ExpectedType::AddressOf(ty, _)
        | ExpectedType::OrDescriptor(ty)
        | ExpectedType::Coordinates(ty, _) => ty,
        ExpectedType::Integer(16) => ScalarType::B16,
        ExpectedType::Integer(64) | ExpectedType::Pointer | ExpectedType::Length => ScalarType::B64,
        ExpectedType::Integer(8) => ScalarType::B8,
        _ => ScalarType::B32,
    }
}

fn bits_class(bits: u32) -> &'static str {
    match bits {
        0..=16 => "b16",
        32 => "b32",
        64 => "b64",
        _ => "b128",
    }
}

/// The register class of a type. Packed narrow types in conversions with `.bf16` take eight bits.
fn register_class(name: &str, ty: ScalarType) -> &'static str {
    let narrow = ty.bits() == 8
        && (ty.kind() == TypeKind::Packed || name.contains(".bf16") || name.starts_with("multimem"));
    match ty.bits() {
        8 if narrow => "b8",
        bits => bits_class(bits),
    }
}

/// The next wider register class.
fn wider(class: &'static str) -> &'static str {
    match class {
        "b8" => "b16",
        "b16" => "b32",
        "b32" => "b64",
        _ => "b128",
    }
}

fn lanes(expected: ExpectedLanes, class: Class, random: &mut Random) -> Option<usize> {
    Some(match expected {
        ExpectedLanes::Any if class.intersects(Class::REGISTER) => random.pick(&[1, 2, 4]),
        ExpectedLanes::Any => 4,
        ExpectedLanes::Exactly(count) => count as usize,
        ExpectedLanes::Of(counts) | ExpectedLanes::OrBare(counts) if counts.is_empty() => return None,
        ExpectedLanes::Of(counts) | ExpectedLanes::OrBare(counts) => random.pick(counts).into(),
    })
}

fn constant(values: Values, ty: ScalarType, random: &mut Random) -> Option<String> {
    if ty.kind() == TypeKind::Float {
        let text = match ty {
            ScalarType::F64 => {
                random.pick(&["0d3FF0000000000000", "0d0000000000000000", "0dC004000000000000"])
            }
            ScalarType::F32 => random.pick(&["0f3F800000", "0f00000000", "0fC0200000", "0f3F000000"]),
            _ => return None,
        };
        return Some(text.to_owned());
    }
    let value = match values {
        Values::Any if ty == ScalarType::Pred => random.below(2) as i64,
        Values::Any => random.pick(&[0, 1, 3, 8, 31, 77, 255, -1]),
        Values::Range(from, to) => from + random.below((to.min(from + 4096) - from + 1) as usize) as i64,
        Values::Of([]) => return None,
        Values::Of(of) => random.pick(of),
        Values::Multiple(of, from, to) => {
            from + of * random.below(((to - from) / of + 1).min(64) as usize) as i64
        }
        Values::Multiples { of, .. } => of * (1 + random.below(8) as i64),
        Values::PowerOfTwo(from, _) => from,
        Values::UpTo(_) => random.below(5) as i64,
        Values::Low(values) => return constant(*values, ty, random),
        Values::Fraction => return Some("0f3F000000".to_owned()),
        Values::Each(_) => return None,
    };
    Some(value.to_string())
}
