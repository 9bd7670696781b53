//! A cubin's kernels, ready to run: code, banks and sizes, addresses filled in.

use crate::device::Device;
use crate::machine::{Kernel, system_address};
use crate::memory::number;
use sass::{Field, Inst, Sm};

/// Why a cubin cannot be run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CubinError(pub String);

impl std::fmt::Display for CubinError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for CubinError {}

fn broken() -> CubinError {
    CubinError("the file is truncated".into())
}

struct Section<'a> {
    name: &'a str,
    kind: u64,
    link: usize,
    info: usize,
    size: usize,
    data: &'a [u8],
}

struct Symbol<'a> {
    name: &'a str,
    section: usize,
    value: u64,
}

const NO_BITS: u64 = 8;
const SYMBOLS: u64 = 2;
const RELOCATIONS: [u64; 2] = [4, 9];
/// A 64-bit address.
const ADDRESS64: u64 = 2;
/// Halves of an address in the wide slot of an instruction.
const LOW32: u64 = 56;
const HIGH32: u64 = 57;
/// The same of a function's.
const FUNCTION_LOW32: u64 = 112;
const FUNCTION_HIGH32: u64 = 113;
/// The target of a call.
const CALLEE: [u64; 2] = [58, 75];
/// The address of a function in memory, and what is added to it where it is called.
const FUNCTION64: u64 = 102;
const FUNCTION_OFFSET: u64 = 114;
/// Where a kernel's own constants start in their bank, which holds no others here.
const CONSTANTS: u64 = 66;
const OWN_CONSTANTS: u64 = 2;

/// The kernel of a name, and the functions that it calls. Variables are those of the device, by name.
pub fn kernel(bytes: &[u8], name: &str, device: &Device) -> Result<Kernel, CubinError> {
    let sm = sass::cubin::read(bytes).map_err(|error| CubinError(error.to_string()))?.sm;
    let sections = sections(bytes)?;
    let find = |wanted: &str| sections.iter().position(|section| section.name == wanted);
    let text =
        find(&format!(".text.{name}")).ok_or_else(|| CubinError(format!("there is no kernel {name}")))?;
    let symbols = symbols(&sections)?;
    let relocations = relocations(&sections, &symbols)?;
    let data = |index: Option<usize>| index.map(|i| sections[i].data.to_vec()).unwrap_or_default();
    let bank4 = find(&format!(".nv.constant4.{name}")).or(find(".nv.constant4"));
    let bank3 = find(".nv.constant3");
    let initial = find(".nv.global.init");
    let texts = texts(text, initial, &sections, &symbols, &relocations);
    let mut code = Vec::new();
    let mut starts = Vec::with_capacity(texts.len());
    for &section in &texts {
        starts.push(16 * code.len() as u64);
        code.extend(sass::cubin::words(sections[section].data));
    }
    let start = |section: usize| texts.iter().position(|&t| t == section).map(|i| starts[i]);
    let address = |symbol: &Symbol<'_>| match device.variable(symbol.name) {
        Some(address) => Some(address),
        None if Some(symbol.section) == bank3 => Some(device.constants() + symbol.value),
        None => start(symbol.section).map(|start| start + symbol.value).or(system_address(symbol.name)),
    };
    let mut kernel = Kernel {
        sm,
        code: Vec::new(),
        shared_bytes: find(&format!(".nv.shared.{name}")).map_or(0, |i| sections[i].size as u32),
        stack_bytes: 0,
        bank2: data(find(&format!(".nv.constant2.{name}")).or(find(".nv.constant2"))),
        bank3: data(bank3),
        bank4: data(bank4),
        function_words: Vec::new(),
        places: places(&data(find(&format!(".nv.info.{name}")))),
    };
    kernel.shared_bytes = kernel.shared_bytes.saturating_sub(reserved_shared(sm));
    let mut functions = function_words(device, &sections, &symbols, initial)?;
    for relocation in &relocations {
        let &Relocation { section, offset, kind, symbol, addend } = relocation;
        let symbol = &symbols[symbol];
        let text = start(section);
        if let Some(start) = text
            && matches!(kind, FUNCTION_OFFSET | CONSTANTS)
        {
            if kind == CONSTANTS {
                let at = ((start + offset as u64) / 16) as usize;
                let own = symbol.value.wrapping_add(addend);
                change(sm, &mut code, at, |inst| {
                    let offset = inst.get(Field::COffset).unwrap_or(0).wrapping_add(own) & 0xffff;
                    inst.set(Field::COffset, offset).set(Field::CBank, OWN_CONSTANTS);
                })?;
            }
            continue;
        }
        let Some(address) = address(symbol).map(|address| address.wrapping_add(addend)) else {
            if text.is_some() {
                return Err(CubinError(format!("the relocation {kind} for {}", symbol.name)));
            }
            continue;
        };
        let at = || text.map(|start| ((start + offset as u64) / 16) as usize);
        match kind {
            ADDRESS64 if Some(section) == bank4 => {
                let field = kernel.bank4.get_mut(offset..offset + 8).ok_or_else(broken)?;
                field.copy_from_slice(&address.to_le_bytes());
            }
            ADDRESS64 | FUNCTION64 if Some(section) == initial => {
                let found = functions.iter_mut().find(|word| word.offset == offset);
                found.into_iter().for_each(|word| word.value = address);
            }
            LOW32 | HIGH32 | FUNCTION_LOW32 | FUNCTION_HIGH32 if let Some(at) = at() => {
                let word = code.get_mut(at).ok_or_else(broken)?;
                let is_low = matches!(kind, LOW32 | FUNCTION_LOW32);
                let half = if is_low { address & 0xffff_ffff } else { address >> 32 };
                *word = *word & !(0xffff_ffff << 32) | u128::from(half) << 32;
            }
            _ if CALLEE.contains(&kind)
                && let Some(at) = at() =>
            {
                change(sm, &mut code, at, |inst| _ = inst.set(Field::Target, address))?
            }
            _ if Some(section) == bank4 || text.is_some() => {
                return Err(CubinError(format!("the relocation {kind} for {}", symbol.name)));
            }
            _ => {}
        }
    }
    kernel.function_words = functions.iter().map(|word| (word.address, word.value)).collect();
    kernel.code = code;
    Ok(kernel)
}

/// Where the parameters of a kernel are, by their order, from its attributes.
fn places(mut attributes: &[u8]) -> Vec<u32> {
    /// What has a size, and what is an attribute of a parameter: its index, its order and its place.
    const SIZED: u8 = 4;
    const PARAMETER: u8 = 0x17;
    let mut places = Vec::new();
    while let [format, attribute, low, high, rest @ ..] = attributes {
        let size = if *format == SIZED { usize::from(u16::from_le_bytes([*low, *high])) } else { 0 };
        let Some((value, rest)) = rest.split_at_checked(size) else { break };
        if let (PARAMETER, Some(order), Some(place)) = (*attribute, value.get(4..6), value.get(6..8)) {
            places.push((number(order), number(place) as u32));
        }
        attributes = rest;
    }
    places.sort_unstable();
    places.into_iter().map(|(_, place)| place).collect()
}

/// Changes an instruction.
fn change(sm: Sm, code: &mut [u128], at: usize, how: impl FnOnce(&mut Inst)) -> Result<(), CubinError> {
    let word = code.get_mut(at).ok_or_else(broken)?;
    let old = *word;
    let wrong = || CubinError(format!("a relocation of the word {old:#034x}"));
    let mut inst = sass::decode(sm, old).ok_or_else(wrong)?;
    how(&mut inst);
    *word = sass::encode(sm, &inst).map_err(|_| wrong())?;
    Ok(())
}

/// The section of a kernel, and those of the functions that it may call.
fn texts(
    kernel: usize,
    initial: Option<usize>,
    sections: &[Section<'_>],
    symbols: &[Symbol<'_>],
    relocations: &[Relocation],
) -> Vec<usize> {
    let mut texts = vec![kernel];
    let mut next = 0;
    while next < texts.len() {
        for relocation in relocations {
            let from = relocation.section;
            let to = symbols[relocation.symbol].section;
            let is_text = sections.get(to).is_some_and(|section| section.name.starts_with(".text."));
            if is_text && (from == texts[next] || Some(from) == initial) && !texts.contains(&to) {
                texts.push(to);
            }
        }
        next += 1;
    }
    texts
}

/// A word of a variable that holds the address of a function.
struct FunctionWord {
    /// In the section of initial values.
    offset: usize,
    address: u64,
    value: u64,
}

/// What the code has for the words of variables that hold addresses of functions.
fn function_words(
    device: &Device,
    sections: &[Section<'_>],
    symbols: &[Symbol<'_>],
    initial: Option<usize>,
) -> Result<Vec<FunctionWord>, CubinError> {
    let mut words = Vec::new();
    let Some(initial) = initial else { return Ok(words) };
    for &address in &device.function_words {
        let variable = device.variables.iter().filter(|(_, start)| *start <= address).max_by_key(|v| v.1);
        let Some((name, start)) = variable else { continue };
        let symbol = symbols.iter().find(|symbol| symbol.section == initial && symbol.name == name);
        // A variable that no code uses is left out.
        let Some(symbol) = symbol else { continue };
        let offset = (symbol.value + address - start) as usize;
        let value = sections[initial].data.get(offset..offset + 8).map(number).ok_or_else(broken)?;
        words.push(FunctionWord { offset, address, value });
    }
    Ok(words)
}

struct Relocation {
    /// What is changed.
    section: usize,
    offset: usize,
    kind: u64,
    symbol: usize,
    addend: u64,
}

fn relocations(sections: &[Section<'_>], symbols: &[Symbol<'_>]) -> Result<Vec<Relocation>, CubinError> {
    let mut relocations = Vec::new();
    for section in sections.iter().filter(|section| RELOCATIONS.contains(&section.kind)) {
        let with_addend = section.kind == RELOCATIONS[0];
        for entry in section.data.chunks_exact(if with_addend { 24 } else { 16 }) {
            let info = number(&entry[8..16]);
            let symbol = (info >> 32) as usize;
            if symbol >= symbols.len() {
                return Err(broken());
            }
            relocations.push(Relocation {
                section: section.info,
                offset: number(&entry[..8]) as usize,
                kind: info & 0xffff_ffff,
                symbol,
                addend: if with_addend { number(&entry[16..24]) } else { 0 },
            });
        }
    }
    Ok(relocations)
}

/// Bytes of shared memory that the target keeps for itself, and sections count.
fn reserved_shared(sm: Sm) -> u32 {
    let target = ptx_backend::target::Target::of(ptx_isa::Sm::new(sm.0.into()));
    target.map_or(0, |target| target.shared_base)
}

fn sections(bytes: &[u8]) -> Result<Vec<Section<'_>>, CubinError> {
    let field = |at: usize, size: usize| -> Result<usize, CubinError> {
        Ok(number(bytes.get(at..at.saturating_add(size)).ok_or_else(broken)?) as usize)
    };
    let (headers, count, names) = (field(40, 8)?, field(60, 2)?, field(62, 2)?);
    let raw = |index: usize| -> Result<[usize; 7], CubinError> {
        let at = headers.saturating_add(64 * index);
        Ok([
            field(at, 4)?,
            field(at + 4, 4)?,
            field(at + 24, 8)?,
            field(at + 32, 8)?,
            field(at + 40, 4)?,
            field(at + 44, 4)?,
            0,
        ])
    };
    let slice =
        |offset: usize, size: usize| bytes.get(offset..offset.saturating_add(size)).ok_or_else(broken);
    let [_, _, names_offset, names_size, ..] = raw(names)?;
    let names = slice(names_offset, names_size)?;
    let sections = (0..count).map(|index| {
        let [name, kind, offset, size, link, info, _] = raw(index)?;
        let data = if kind as u64 == NO_BITS { &[][..] } else { slice(offset, size)? };
        Ok(Section { name: text(names, name), kind: kind as u64, link, info, size, data })
    });
    sections.collect()
}

fn text(names: &[u8], at: usize) -> &str {
    let name = names.get(at..).unwrap_or_default();
    std::str::from_utf8(name.split(|&byte| byte == 0).next().unwrap_or_default()).unwrap_or_default()
}

fn symbols<'a>(sections: &[Section<'a>]) -> Result<Vec<Symbol<'a>>, CubinError> {
    let Some(table) = sections.iter().find(|section| section.kind == SYMBOLS) else { return Ok(Vec::new()) };
    let names = sections.get(table.link).ok_or_else(broken)?.data;
    let entries = table.data.chunks_exact(24);
    Ok(entries
        .map(|entry| Symbol {
            name: text(names, number(&entry[..4]) as usize),
            section: number(&entry[6..8]) as usize,
            value: number(&entry[8..16]),
        })
        .collect())
}
