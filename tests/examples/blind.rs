//! Launches kernels without a description: `blind [--target NN] [--only TEXT] FILE…`.
//!
//! A parameter from which addresses are computed points to a buffer. All buffers hold numbers of the same kind, and
//! each kind is tried. Other parameters are small numbers. If the PTX interpreter completes the launch without a fault,
//! the code of every level must leave the same contents in memory, apart from rounding differences. Prints each kernel
//! that differs, the number of kernels that ran, and the reasons why others did not.

#![expect(clippy::print_stdout, reason = "a tool for a terminal")]

use conformance::case::{self, Argument, Case, Compare, Input, Prepared};
use ptx_backend::input::{AddressBase, Function, Instr, Operand, RegId, Stmt, Symbol};
use ptx_backend::phases::CONTRACTION;
use ptx_backend::switches::Switches;
use ptx_backend::{CodegenError, Options};
use ptx_emu::Device;
use ptx_emu::machine::Kernel;
use ptx_isa::{FormId, Sm};
use std::collections::{BTreeMap, BTreeSet};

/// The kind of numbers in buffers.
#[derive(Clone, Copy, Debug)]
enum Numbers {
    Words,
    Longs,
    Floats,
    Doubles,
    Halves,
}

const NUMBERS: [Numbers; 5] =
    [Numbers::Words, Numbers::Longs, Numbers::Floats, Numbers::Doubles, Numbers::Halves];

/// The size of a buffer in bytes. Pointers refer to its middle.
const BUFFER: usize = 1 << 17;
/// The value of parameters that are not addresses.
const NUMBER: u32 = 40;
const STEPS: u64 = 400_000;
const DYNAMIC_SHARED: u32 = 32 << 10;
const LEVELS: [u8; 3] = [0, 1, 3];

impl Numbers {
    fn buffer(self, mut state: u64) -> Vec<u8> {
        let mut next = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 40) as u32 % 41
        };
        let single = |n: u32| (n as f32 - 20.0) / 16.0;
        let mut bytes = Vec::with_capacity(BUFFER);
        while bytes.len() < BUFFER {
            match self {
                Numbers::Words => bytes.extend(next().to_le_bytes()),
                Numbers::Longs => bytes.extend(u64::from(next()).to_le_bytes()),
                Numbers::Floats => bytes.extend(single(next()).to_le_bytes()),
                Numbers::Doubles => bytes.extend(f64::from(single(next())).to_le_bytes()),
                // From 1 to 2, with either sign.
                Numbers::Halves => {
                    bytes.extend((0x3c00 | (next() << 4) as u16 | (next() as u16 & 1) << 15).to_le_bytes())
                }
            }
        }
        bytes
    }
}

fn instrs(func: &Function) -> impl Iterator<Item = &Instr> {
    func.body.iter().filter_map(|stmt| match stmt {
        Stmt::Instr(instr) => Some(instr),
        Stmt::Label(_) => None,
    })
}

/// The registers from which addresses are computed.
fn addresses(func: &Function) -> BTreeSet<RegId> {
    let mut addresses = BTreeSet::new();
    let mut offsets = BTreeSet::new();
    for instr in instrs(func) {
        for operand in &instr.operands {
            if let Operand::Address(address) = operand
                && let AddressBase::Reg(reg) = address.base
            {
                addresses.insert(reg);
            }
        }
        use FormId as F;
        if let (Some(Operand::Reg(reg)), F::MulInt | F::Shl | F::Cvt | F::MadInt | F::And) =
            (instr.operands.first(), instr.opcode.form)
        {
            offsets.insert(*reg);
        }
    }
    let is_long = |reg: &RegId| func.regs.get(reg.0 as usize).is_some_and(|r| r.ty.bytes() == 8);
    loop {
        let before = addresses.len();
        for instr in instrs(func) {
            let Some(Operand::Reg(to)) = instr.operands.first() else { continue };
            if !addresses.contains(to) {
                continue;
            }
            let sources: Vec<RegId> = instr.operands[1..]
                .iter()
                .filter_map(|operand| match operand {
                    Operand::Reg(reg) | Operand::Sum(reg, _) if is_long(reg) => Some(*reg),
                    _ => None,
                })
                .collect();
            match instr.opcode.form {
                FormId::Mov | FormId::Cvta | FormId::Selp => addresses.extend(sources),
                FormId::AddInt | FormId::SubInt => {
                    let base = sources.iter().find(|reg| !offsets.contains(reg)).or(sources.first());
                    addresses.extend(base);
                }
                FormId::MadInt => addresses.extend(sources.last()),
                _ => {}
            }
        }
        if addresses.len() == before {
            return addresses;
        }
    }
}

/// Parameters, and offsets in them, that hold addresses.
fn pointers(func: &Function) -> BTreeSet<(u32, i64)> {
    let addresses = addresses(func);
    let mut pointers = BTreeSet::new();
    for instr in instrs(func).filter(|instr| instr.opcode.form == FormId::Ld) {
        let [to, Operand::Address(address), ..] = &instr.operands[..] else { continue };
        let AddressBase::Symbol(Symbol::Param(index)) = address.base else { continue };
        let all = match to {
            Operand::Vector(all) => &all[..],
            one => std::slice::from_ref(one),
        };
        for (i, operand) in (0..).zip(all) {
            if matches!(operand, Operand::Reg(reg) if addresses.contains(reg)) {
                pointers.insert((index, address.offset + 8 * i));
            }
        }
    }
    pointers
}

/// The memory before the launch, and the launch.
fn prepare(input: &Input, ptx: &str, numbers: Numbers) -> Result<Prepared, String> {
    let func = &input.function;
    let pointers = pointers(func);
    let number = |size: u32, float: bool| match (size, float) {
        (4, true) => 0.75f32.to_le_bytes().to_vec(),
        (8, true) => 0.75f64.to_le_bytes().to_vec(),
        (1 | 2 | 4 | 8, _) => u64::from(NUMBER).to_le_bytes()[..size as usize].to_vec(),
        _ => (0..size).map(|i| if i % 4 == 0 { NUMBER as u8 } else { 0 }).collect(),
    };
    let arguments = func.params.iter().map(|param| {
        let float = !param.is_array && param.ty.kind() == ptx_isa::TypeKind::Float;
        Argument::Bytes(number(param.size, float))
    });
    let cluster = func.launch.reqnctapercluster;
    let block = func.launch.reqntid.unwrap_or_else(|| {
        let most = func.launch.maxntid.map_or(64, |size| size.iter().product::<u32>());
        [most.min(64), 1, 1]
    });
    let described = Case {
        kernel: func.name.clone(),
        grid: cluster.map_or([2, 1, 1], |[x, y, z]| [2 * x, y, z]),
        block,
        dynamic_shared: DYNAMIC_SHARED,
        steps: Some(STEPS),
        ..Case::new(ptx, 1, 1, arguments.collect())
    };
    let mut prepared = case::prepare(&described, input)?;
    for (i, (index, offset)) in (1..).zip(pointers) {
        let Some(param) = func.params.get(index as usize) else { continue };
        let at = (i64::from(param.offset) + offset) as usize;
        let Some(place) = prepared.launch.params.get_mut(at..at + 8) else { continue };
        let address = prepared.device.global.add(numbers.buffer(i));
        place.copy_from_slice(&(address + BUFFER as u64 / 2).to_le_bytes());
        prepared.buffers.push((address, Compare::Exact));
    }
    Ok(prepared)
}

/// Whether two words are equal except for rounding: as words, floats, halves or parts of doubles.
fn alike(a: &[u8], b: &[u8]) -> bool {
    let near = |x: f64, y: f64, part: f64| {
        x.is_nan() && y.is_nan() || x == y || (x - y).abs() <= part * x.abs().max(y.abs()).max(1.0)
    };
    let single = |w: &[u8]| f64::from(f32::from_le_bytes([w[0], w[1], w[2], w[3]]));
    let double = |w: &[u8]| f64::from_le_bytes(w.try_into().unwrap_or_default());
    let normal = |x: f64| !(x.abs() > 0.0 && x.abs() < 1e-30);
    let words = a
        .chunks(4)
        .zip(b.chunks(4))
        .all(|(x, y)| x == y || normal(single(x)) && normal(single(y)) && near(single(x), single(y), 1e-3));
    words || normal(double(a)) && normal(double(b)) && near(double(a), double(b), 1e-6)
}

fn difference(prepared: &Prepared, expected: &Device, device: &Device) -> Option<String> {
    for (i, (address, _)) in prepared.buffers.iter().enumerate() {
        let (Some(a), Some(b)) = (expected.global.buffer(*address), device.global.buffer(*address)) else {
            continue;
        };
        for (at, (x, y)) in a.chunks_exact(8).zip(b.chunks_exact(8)).enumerate() {
            if x != y && !alike(x, y) {
                return Some(format!("buffer {i}, byte {}: interpreted {x:02x?}, emulated {y:02x?}", 8 * at));
            }
        }
    }
    None
}

fn main() {
    let (mut targets, mut only, mut files) = (vec![80, 90, 120], String::new(), Vec::new());
    let mut rest = std::env::args().skip(1);
    while let Some(word) = rest.next() {
        match &word[..] {
            "--target" => targets = rest.next().and_then(|n| n.parse().ok()).into_iter().collect(),
            "--only" => only = rest.next().unwrap_or_default(),
            _ => files.push(word),
        }
    }
    let (mut ran, mut reasons) = (0, BTreeMap::<String, usize>::new());
    for file in files {
        let Ok(ptx) = std::fs::read(&file) else { continue };
        let ptx = String::from_utf8_lossy(&ptx).into_owned();
        let Ok(module) = case::parse(&ptx) else { continue };
        for (func, _) in &module.functions {
            if !func.entry || !func.name.contains(&only) {
                continue;
            }
            let Ok(input) = case::kernel_of(&module, &func.name) else { continue };
            match launch(&input, &ptx, &targets) {
                Ok((count, wrong)) => {
                    ran += usize::from(count > 0);
                    for how in wrong.iter().take(4) {
                        println!("DIFFERS {file} {}: {how}", func.name);
                    }
                }
                Err(why) => *reasons.entry(why).or_default() += 1,
            }
        }
    }
    println!("{ran} kernels ran");
    let mut reasons: Vec<_> = reasons.into_iter().collect();
    reasons.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    reasons.iter().take(40).for_each(|(why, count)| println!("{count} did not: {why}"));
}

/// The number of launches that completed, and the differences.
fn launch(input: &Input, ptx: &str, targets: &[u16]) -> Result<(usize, Vec<String>), String> {
    let (mut count, mut wrong, mut why) = (0, Vec::new(), String::new());
    let mut codes = Vec::new();
    for numbers in NUMBERS {
        let prepared = prepare(input, ptx, numbers)?;
        let mut expected = prepared.device.clone();
        if let Err(fault) = input.interpret(ptx, &prepared.launch, &mut expected) {
            why = fault
                .split(": ")
                .skip(if fault.contains("line ") { 2 } else { 1 })
                .collect::<Vec<_>>()
                .join(": ");
            why.truncate(40);
            continue;
        }
        count += 1;
        if codes.is_empty() {
            codes = compile(input, targets, &mut wrong);
        }
        for (name, sm, code) in &codes {
            let kernel = Kernel::compiled(&input.env, code, sass::Sm(sm.number as u8), &prepared.device);
            let how = match case::execute(&prepared, &kernel) {
                Ok(device) => difference(&prepared, &expected, &device),
                Err(fault) if fault.contains("steps") => None,
                Err(fault) => Some(fault),
            };
            wrong.extend(how.map(|how| format!("{name} {numbers:?}: {how}")));
        }
    }
    if count == 0 { Err(why) } else { Ok((count, wrong)) }
}

type Code = (String, Sm, ptx_backend::join::Joined);

/// The code for all targets and levels, without contraction, so that it rounds as the interpreter does.
fn compile(input: &Input, targets: &[u16], wrong: &mut Vec<String>) -> Vec<Code> {
    let own = input.env.target;
    let mut all = Vec::new();
    for &number in targets {
        let sm = Sm { number, feature: own.feature };
        if own.runs_on(sm).is_err() {
            continue;
        }
        for level in LEVELS {
            let switches = Switches::parse(&format!("-{CONTRACTION}")).unwrap_or(Switches::ALL_ON);
            match case::compile_with(input, Options { opt_level: level, switches, ..Options::new(sm) }) {
                Ok(code) => all.push((format!("{sm} -O{level}"), sm, code)),
                Err(CodegenError::Unsupported { .. }) => {}
                Err(error) => wrong.push(format!("{sm} -O{level}: {error}")),
            }
        }
    }
    all
}
