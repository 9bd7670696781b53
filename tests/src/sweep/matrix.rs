//! Products of matrices in the registers of a warp: one kernel for each name in the instruction table and each
//! selector.
//!
//! Floating-point values are small multiples of a power of two, so that sums are the same in any order.

use super::forms::{VERSION, names, target};
use super::{Random, compare_of};
use crate::case::{Argument, Case, Compare};
use ptx_isa::{
    ExpectedLanes, ExpectedType, FormId, Mod, Opcode, ScalarType, Signature, Values, form, signature,
};
use std::fmt::Write;

/// Products of all threads of a warp.
pub(super) const FORMS: &[FormId] = &[
    FormId::MmaF16,
    FormId::MmaF16M8,
    FormId::MmaBf16,
    FormId::MmaTf32,
    FormId::MmaF64,
    FormId::MmaInt8,
    FormId::MmaInt4,
    FormId::MmaBits,
    FormId::MmaFp8,
    FormId::MmaKind,
    FormId::MmaBlockScale,
    FormId::MmaSpF16,
    FormId::MmaSpBf16,
    FormId::MmaSpTf32,
    FormId::MmaSpInt8,
    FormId::MmaSpInt4,
    FormId::MmaSpFp8,
    FormId::MmaSpKind,
    FormId::MmaSpBlockScale,
];
/// The kinds that have scale factors.
const SCALED: &[Mod] = &[Mod::KindMxf8f6f4, Mod::KindMxf4, Mod::KindMxf4nvf4];
const WARP: usize = 32;
/// Which two of four positions are present, the first one in the lower bits.
const PAIRS: [u32; 6] = [0x4, 0x8, 0xc, 0x9, 0xd, 0xe];
/// The same with the second one in the lower bits, for products in which the order does not matter. ptxas does not
/// reorder 6.
const REVERSED: [u32; 5] = [0x1, 0x2, 0x3, 0x7, 0xb];
/// Which of two elements is present, if each takes two positions.
const HALVES: [u32; 2] = [0x4, 0xe];

/// The reason why a name has no kernel.
pub(super) fn absence(opcode: &Opcode) -> Option<&'static str> {
    match opcode.form {
        FormId::MmaKind | FormId::MmaSpKind if SCALED.iter().any(|&kind| opcode.has(kind)) => {
            Some("ptxas takes the kind without `.block_scale`, which the manual does not have")
        }
        _ => None,
    }
}

/// The names of all products.
pub(super) fn all_names() -> impl Iterator<Item = (String, Opcode)> {
    FORMS.iter().flat_map(|&id| names(form(id)))
}

/// A word of a matrix's fragment.
pub(super) fn word(opcode: &Opcode, ty: ScalarType, random: &mut Random) -> u64 {
    let small = |random: &mut Random| random.below(9) as f32 / 2.0 - 2.0;
    let packed = |bits: u32, code: &mut dyn FnMut() -> u32| {
        (0..32 / bits).fold(0, |word, i| word | u64::from(code() & (u32::MAX >> (32 - bits))) << (i * bits))
    };
    match ty {
        ScalarType::F64 => f64::from(small(random)).to_bits(),
        ScalarType::F32 | ScalarType::Tf32 => u64::from(small(random).to_bits()),
        ScalarType::Bf16 => packed(16, &mut || small(random).to_bits() >> 16),
        ScalarType::F16 => packed(16, &mut || {
            const HALVES: [u32; 5] = [0, 0x3800, 0x3c00, 0x3e00, 0x4000];
            HALVES[random.below(5) as usize] | (random.below(2) as u32) << 15
        }),
        ScalarType::E4m3 => packed(8, &mut || {
            [0, 0x30, 0x38, 0x3c, 0x40][random.below(5) as usize] | (random.below(2) as u32) << 7
        }),
        ScalarType::E5m2 => packed(8, &mut || {
            [0, 0x38, 0x3c, 0x3e, 0x40][random.below(5) as usize] | (random.below(2) as u32) << 7
        }),
        ScalarType::E2m3 | ScalarType::E3m2 => packed(8, &mut || random.below(64) as u32),
        ScalarType::E2m1 if opcode.has(Mod::KindF8f6f4) || opcode.has(Mod::KindMxf8f6f4) => {
            packed(8, &mut || (random.below(16) as u32) << 2)
        }
        ScalarType::Ue8m0 => packed(8, &mut || 124 + random.below(7) as u32),
        ScalarType::Ue4m3 => packed(8, &mut || [0x30, 0x34, 0x38, 0x40][random.below(4) as usize]),
        _ => random.next() >> 32,
    }
}

/// The operands of a product, and the values of their registers.
struct Kernel<'a> {
    opcode: &'a Opcode,
    random: Random,
    declarations: String,
    body: String,
    written: Vec<String>,
    arguments: Vec<Argument>,
}

impl Kernel<'_> {
    /// Loads registers from a buffer for each thread, and returns their names.
    fn load(
        &mut self,
        name: &str,
        count: usize,
        bits: usize,
        values: &mut dyn FnMut(&mut Random) -> u64,
    ) -> Vec<String> {
        let registers: Vec<String> = (0..count).map(|i| format!("%{name}{i}")).collect();
        let _ = writeln!(self.declarations, "    .reg .b{bits} %{name}<{count}>;");
        let _ = writeln!(self.body, "    ld.param.u64 %at, [{name}];");
        let _ = writeln!(self.body, "    mad.wide.u32 %at, %lane, {}, %at;", count * bits / 8);
        for (i, register) in registers.iter().enumerate() {
            let _ = writeln!(self.body, "    ld.global.b{bits} {register}, [%at+{}];", i * bits / 8);
        }
        let words =
            (0..WARP * count).flat_map(|_| values(&mut self.random).to_le_bytes()[..bits / 8].to_vec());
        self.arguments.push(Argument::Buffer(words.collect(), Compare::Exact));
        registers
    }

    fn write(&mut self, registers: &[String]) {
        self.written.push(format!("{{{}}}", registers.join(", ")));
    }
}

/// The value of a selector in a turn.
fn selected(values: Values, turn: u64) -> u64 {
    match values {
        Values::Range(from, to) => from as u64 + turn % (to - from + 1) as u64,
        Values::Of(list) => list[turn as usize % list.len()] as u64,
        _ => 0,
    }
}

/// The number of combinations of selectors.
fn turns(signature: &Signature) -> u64 {
    let one = |values: Values| match values {
        Values::Range(from, to) => (to - from + 1) as u64,
        Values::Of(list) => list.len() as u64,
        _ => 1,
    };
    let of = |values: Values| match values {
        Values::Each(each) => each.iter().map(|&values| one(values)).max().unwrap_or(1),
        values => one(values),
    };
    signature.operands.iter().map(|operand| of(operand.values)).max().unwrap_or(1)
}

fn kernel(name: &str, opcode: &Opcode, signature: &Signature, turn: u64) -> Option<Case> {
    let seed = name.bytes().fold(turn + 7, |hash: u64, byte| hash.wrapping_mul(31) + u64::from(byte));
    let mut kernel = Kernel {
        opcode,
        random: Random::new(seed),
        declarations: String::new(),
        body: String::new(),
        written: Vec::new(),
        arguments: Vec::new(),
    };
    let mut results = (0, 32);
    let mut scales = 0;
    for operand in &signature.operands {
        // The types of a name: result, factors, accumulator, scale factors.
        let position = ["d", "a", "b", "c"].iter().position(|&name| name == operand.name);
        // If more registers are allowed, those beyond the minimum are not read.
        let count = match operand.lanes {
            ExpectedLanes::Exactly(count) => Some(count),
            ExpectedLanes::Of(counts) => counts.first().map(|&least| u32::from(least)),
            _ => None,
        };
        match (operand.name, count, position) {
            (_, Some(count), Some(position)) => {
                let ty = opcode.ty(position)?;
                let bits = if operand.ty == ExpectedType::Typed(ScalarType::F64) { 64 } else { 32 };
                if position == 0 {
                    results = (count as usize, bits);
                    let _ = writeln!(kernel.declarations, "    .reg .b{bits} %d<{count}>;");
                    let registers: Vec<String> = (0..count).map(|i| format!("%d{i}")).collect();
                    kernel.write(&registers);
                } else {
                    let registers = kernel
                        .load(operand.name, count as usize, bits, &mut |random| word(opcode, ty, random));
                    kernel.write(&registers);
                }
            }
            ("e", ..) => {
                let wide = opcode.ty(1) == Some(ScalarType::Tf32);
                let fields = match (wide, opcode.has(Mod::SpOrderedMetadata)) {
                    (true, _) => HALVES.to_vec(),
                    (_, true) => PAIRS.to_vec(),
                    _ => [&PAIRS[..], &REVERSED].concat(),
                };
                let registers = kernel.load("e", 1, 32, &mut |random| {
                    let field = |random: &mut Random| fields[random.below(fields.len() as u64) as usize];
                    (0..8).fold(0, |word, i| word | u64::from(field(random)) << (4 * i))
                });
                kernel.written.extend(registers);
            }
            ("scale-a-data" | "scale-b-data", ..) => {
                let ty = opcode.ty(4)?;
                let name = ["sa", "sb"][scales];
                scales += 1;
                let registers = kernel.load(name, 1, 32, &mut |random| word(opcode, ty, random));
                kernel.written.extend(registers);
            }
            _ => match operand.values {
                Values::Each(each) => {
                    // The two selectors do not change in the same turn.
                    let numbers =
                        each.iter().enumerate().map(|(i, &v)| selected(v, turn + (i + scales) as u64));
                    let numbers: Vec<String> = numbers.map(|number| number.to_string()).collect();
                    kernel.write(&numbers);
                }
                values => kernel.written.push(selected(values, turn).to_string()),
            },
        }
    }
    let (count, bits) = results;
    let bytes = count * bits / 8;
    let result = match kernel.opcode.ty(0)? {
        ScalarType::F16 => compare_of("f16"),
        ty => compare_of(ty.text()),
    };
    let names: Vec<&str> = ["a", "b", "c", "e", "sa", "sb"]
        .into_iter()
        .filter(|name| kernel.body.contains(&format!("[{name}]")))
        .collect();
    let params: Vec<String> = ["d"].iter().chain(&names).map(|name| format!(".param .u64 {name}")).collect();
    let mut stores = String::new();
    for i in 0..count {
        let _ = writeln!(stores, "    st.global.b{bits} [%at+{}], %d{i};", i * bits / 8);
    }
    let ptx = format!(
        ".version {VERSION}\n.target {}\n.address_size 64\n.visible .entry k({})\n{{\n    .reg .b32 %lane;\n    \
         .reg .b64 %at;\n{}    mov.u32 %lane, %tid.x;\n{}    {name} {};\n    ld.param.u64 %at, [d];\n    \
         mad.wide.u32 %at, %lane, {bytes}, %at;\n{stores}    ret;\n}}\n",
        target(opcode)?,
        params.join(", "),
        kernel.declarations,
        kernel.body,
        kernel.written.join(", "),
    );
    let mut arguments = vec![Argument::Buffer(vec![0; WARP * bytes], result)];
    arguments.append(&mut kernel.arguments);
    Some(Case::new(ptx, 1, WARP as u32, arguments))
}

/// The statement of a kernel.
pub(super) fn statement(case: &Case) -> Option<String> {
    case.ptx.lines().map(str::trim).find(|line| line.starts_with("mma.")).map(str::to_owned)
}

/// The kernels of all products.
pub(super) fn all() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, opcode) in all_names().filter(|(_, opcode)| absence(opcode).is_none()) {
        let signature = signature(&opcode);
        cases.extend((0..turns(&signature)).filter_map(|turn| kernel(&name, &opcode, &signature, turn)));
    }
    cases
}
