//! Loads a kernel from a cubin: its code, constant banks and sizes, with all addresses filled in.

mod link;

use crate::device::Device;
use crate::machine::{Kernel, system_address};
use crate::memory::number;
use gpu_files::elf::{Elf, ElfError, Relocation, Symbol};
use link::SymbolPlace;
use sass::Sm;
use std::collections::BTreeMap;

/// The reason why a cubin cannot be run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CubinError(pub String);

impl std::fmt::Display for CubinError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for CubinError {}

impl From<ElfError> for CubinError {
    fn from(error: ElfError) -> Self {
        CubinError(error.to_string())
    }
}

fn broken() -> CubinError {
    CubinError("the file is truncated".into())
}

/// The kernel with a name and the functions that it calls, linked. Variables are found by name among those of the
/// device.
pub fn kernel(bytes: &[u8], name: &str, device: &Device) -> Result<Kernel, CubinError> {
    let sm = gpu_files::cubin::read(bytes).map_err(|error| CubinError(error.to_string()))?.sm;
    let elf = Elf::new(bytes)?;
    let sections = elf.sections.iter().map(|section| {
        let gpu_files::elf::Section { name, kind, info, size, .. } = *section;
        Ok(Section { name, kind, info, size, data: elf.content(section)? })
    });
    let sections: Vec<Section<'_>> = sections.collect::<Result<_, ElfError>>()?;
    let find = |wanted: &str| sections.iter().position(|section| section.name == wanted);
    let text =
        find(&format!(".text.{name}")).ok_or_else(|| CubinError(format!("there is no kernel {name}")))?;
    let mut symbols = elf.symbols()?;
    name_variables_of_bodies(&mut symbols, device);
    let relocations = elf.relocations()?;
    if relocations.iter().any(|relocation| relocation.symbol >= symbols.len()) {
        return Err(broken());
    }
    let data = |index: Option<usize>| index.map(|i| sections[i].data.to_vec()).unwrap_or_default();
    let bank4 = find(&format!(".nv.constant4.{name}")).or(find(".nv.constant4"));
    let initial = find(".nv.global.init");
    let bank3 = find(".nv.constant3");
    let texts = texts(text, [initial, bank3], &sections, &symbols, &relocations);
    let mut code = Vec::new();
    let mut starts = Vec::with_capacity(texts.len());
    for &section in &texts {
        starts.push(16 * code.len() as u64);
        code.extend(gpu_files::cubin::words(sections[section].data));
    }
    let start = |section: usize| texts.iter().position(|&t| t == section).map(|i| starts[i]);
    let (bank2, tables) = tables(&texts, &sections);
    let used = relocations.iter().filter(|relocation| texts.contains(&relocation.section));
    let (shared, shared_bytes) =
        link::place_shared(&sections, &symbols, used.clone().map(|used| used.symbol))?;
    let parameters = find(&format!(".nv.constant0.{name}"));
    let bank0_bytes = parameters.map_or(0, |i| sections[i].size);
    let bound = link::place_handles(&symbols, used.map(|used| used.symbol), bank0_bytes);
    let place = |index: usize| -> Option<SymbolPlace> {
        let symbol = &symbols[index];
        if let Some(&(_, offset)) = bound.iter().find(|(placed, _)| *placed == index) {
            return Some(SymbolPlace::Constant { bank: 0, offset });
        }
        if let Some(&(_, start)) = shared.iter().find(|(placed, _)| *placed == index) {
            return Some(SymbolPlace::Shared(start));
        }
        if let Some(&(_, start)) = tables.iter().find(|(section, _)| *section == symbol.section) {
            return Some(SymbolPlace::Constant { bank: 2, offset: start + symbol.value });
        }
        if bank3 == Some(symbol.section) {
            return Some(SymbolPlace::Constant { bank: 3, offset: symbol.value });
        }
        if symbol.section == 0 && symbol.name.ends_with("DescSize") {
            return Some(SymbolPlace::Number(crate::texture::ENTRY_BYTES));
        }
        let address = device.variable(symbol.name).or_else(|| Some(start(symbol.section)? + symbol.value));
        let address = address.or_else(|| system_address(symbol.name)).map(SymbolPlace::Address);
        let number = || (symbol.section == 0 && symbol.name.starts_with(".nv.")).then_some(symbol.value);
        address.or_else(|| number().map(SymbolPlace::Number))
    };
    let mut kernel = Kernel {
        sm,
        code: Vec::new(),
        // As a linker does, uses the largest number of registers of all functions that may be called.
        registers: (texts.iter())
            .map(|&text| registers(&data(find(".nv.info")), sections[text].info, text, &symbols))
            .max()
            .unwrap_or(0),
        shared_bytes: find(&format!(".nv.shared.{name}")).map_or(0, |i| sections[i].size as u32),
        stack_bytes: frames(&data(find(".nv.info")), &texts, &symbols),
        local_bytes: find(&format!(".nv.local.{name}")).map_or(0, |i| sections[i].size as u32),
        bank2,
        bank3: data(bank3),
        bank4: data(bank4),
        function_words: Vec::new(),
        handles: Vec::new(),
        independent: relocations
            .iter()
            .any(|relocation| symbols[relocation.symbol].name.ends_with("DescSize"))
            .then(|| symbols.iter().any(|symbol| symbol.name.starts_with(".nv.independent."))),
        places: places(&data(find(&format!(".nv.info.{name}")))),
    };
    kernel.shared_bytes = kernel.shared_bytes.saturating_sub(reserved_shared(sm)).max(shared_bytes);
    let mut functions = function_words(device, &sections, &symbols, initial)?;
    let handle = |symbol: usize| {
        let unknown = || CubinError(format!("nothing is bound to {}", symbols[symbol].name));
        device.bound_handle(symbols[symbol].name).ok_or_else(unknown)
    };
    for &(symbol, offset) in &bound {
        let kind = link::handle_relocation(sm, &symbols[symbol]);
        kernel.handles.push((offset as u32, link::handle_bits(kind, handle(symbol)?)));
    }
    for &Relocation { section, offset, kind, symbol, addend } in &relocations {
        let offset = offset as usize;
        if Some(section) == parameters && link::is_handle(kind) {
            kernel.handles.push((offset as u32, link::handle_bits(kind, handle(symbol)?)));
            continue;
        }
        let text = start(section);
        if text.is_none() && ![bank3, bank4, initial].contains(&Some(section))
            || text.is_some() && link::changes_nothing(kind)
        {
            continue;
        }
        let unknown = || CubinError(format!("the relocation {kind} for {}", symbols[symbol].name));
        let place = place(symbol).map(|place| place.plus(addend as u64));
        if let Some(start) = text {
            let word = code.get_mut(((start + offset as u64) / 16) as usize).ok_or_else(broken)?;
            *word = link::relocate(sm, *word, kind, place.ok_or_else(unknown)?)?;
            continue;
        }
        match (kind, place) {
            (link::ADDRESS64, Some(SymbolPlace::Address(address))) if Some(section) == bank4 => {
                let field = kernel.bank4.get_mut(offset..offset + 8).ok_or_else(broken)?;
                field.copy_from_slice(&address.to_le_bytes());
            }
            (link::ADDRESS64 | link::GENERIC64 | link::FUNCTION64, Some(SymbolPlace::Address(address)))
                if Some(section) == bank3 =>
            {
                let field = kernel.bank3.get_mut(offset..offset + 8).ok_or_else(broken)?;
                // A relocation without an addend has the addend in its field.
                let address = number(field).wrapping_add(address);
                field.copy_from_slice(&address.to_le_bytes());
            }
            (link::ADDRESS64 | link::FUNCTION64, Some(SymbolPlace::Address(address)))
                if Some(section) == initial =>
            {
                let found = functions.iter_mut().find(|word| word.offset == offset);
                found.into_iter().for_each(|word| word.value = address);
            }
            // A symbol without an address, such as a driver function that the code does not reach, is left unchanged.
            (_, Some(_)) if Some(section) == bank4 => return Err(unknown()),
            _ => {}
        }
    }
    kernel.function_words = functions.iter().map(|word| (word.address, word.value)).collect();
    kernel.code = code;
    Ok(kernel)
}

/// A section of the file with its bytes.
struct Section<'a> {
    name: &'a str,
    kind: u32,
    info: usize,
    size: u64,
    data: &'a [u8],
}

/// Constant bank 2 of the code, which holds the constants of all code sections, and the start of each section's
/// constants.
fn tables(texts: &[usize], sections: &[Section<'_>]) -> (Vec<u8>, Vec<(usize, u64)>) {
    const ALIGN: usize = 16;
    let mut bank = Vec::new();
    let mut starts = Vec::new();
    for &text in texts {
        let name = sections[text].name.trim_start_matches(".text.");
        let own = |section: &Section<'_>| section.name.strip_prefix(".nv.constant2.") == Some(name);
        let whole = |section: &Section<'_>| section.name == ".nv.constant2" && text == texts[0];
        let Some(section) = sections.iter().position(own).or_else(|| sections.iter().position(whole)) else {
            continue;
        };
        bank.resize(usize::next_multiple_of(bank.len(), ALIGN), 0);
        starts.push((section, bank.len() as u64));
        bank.extend(sections[section].data);
    }
    (bank, starts)
}

/// The attributes with their values. If the value is in the attribute's own word, it is `None`.
fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    const SIZED: u8 = 4;
    std::iter::from_fn(move || {
        let [format, attribute, low, high, rest @ ..] = bytes else { return None };
        let size = if *format == SIZED { usize::from(u16::from_le_bytes([*low, *high])) } else { 0 };
        let (value, rest) = rest.split_at_checked(size)?;
        bytes = rest;
        Some((*attribute, value))
    })
}

/// The number of registers of a thread, from the attributes of the file or from the `sh_info` of the code section.
fn registers(file: &[u8], info: usize, section: usize, symbols: &[Symbol<'_>]) -> u32 {
    /// The attribute with a function's symbol and its number of registers.
    const REGISTERS: u8 = 0x2f;
    const SHIFT: u32 = 24;
    let own = |(attribute, value): (u8, &[u8])| {
        let symbol = symbols.get(number(value.get(..4)?) as usize)?;
        let is_own = attribute == REGISTERS && symbol.section == section;
        Some(number(value.get(4..8)?) as u32).filter(|_| is_own)
    };
    attributes(file).find_map(own).unwrap_or(info as u32 >> SHIFT)
}

/// The size of all frames of the functions in these sections, from the attributes of the file.
fn frames(file: &[u8], texts: &[usize], symbols: &[Symbol<'_>]) -> u32 {
    /// The attribute with a function's symbol and the size of its frame.
    const FRAME: u8 = 0x11;
    /// The size of a thread's local memory.
    const MOST: u32 = 512 << 10;
    let size = |(attribute, value): (u8, &[u8])| {
        let symbol = symbols.get(number(value.get(..4)?) as usize)?;
        let is_used = attribute == FRAME && texts.contains(&symbol.section);
        Some(number(value.get(4..8)?) as u32).filter(|_| is_used)
    };
    attributes(file).filter_map(size).fold(0, u32::saturating_add).min(MOST)
}

/// The offsets of a kernel's parameters in their order, from its attributes.
fn places(bytes: &[u8]) -> Vec<u32> {
    /// The attribute with a parameter's index, ordinal and offset.
    const PARAMETER: u8 = 0x17;
    const PARAMETER_OF_MANY: u8 = 0x45;
    let mut places = Vec::new();
    for (attribute, value) in attributes(bytes) {
        if let (PARAMETER | PARAMETER_OF_MANY, Some(order), Some(place)) =
            (attribute, value.get(4..6), value.get(6..8))
        {
            places.push((number(order), number(place) as u32));
        }
    }
    places.sort_unstable();
    places.into_iter().map(|(_, place)| place).collect()
}

/// The sections of a kernel and of the functions that it may call, by name or by an address in `data`.
fn texts(
    kernel: usize,
    data: [Option<usize>; 2],
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
            if is_text && (from == texts[next] || data.contains(&Some(from))) && !texts.contains(&to) {
                texts.push(to);
            }
        }
        next += 1;
    }
    texts
}

/// A word of a variable that holds the address of a function.
struct FunctionWord {
    /// The offset in the section with initial values.
    offset: usize,
    address: u64,
    value: u64,
}

/// Gives variables that functions declare the names that they have on the device. Compilers number them differently
/// (ptxas by lines and blocks), but in the same order.
fn name_variables_of_bodies<'a>(symbols: &mut [Symbol<'a>], device: &'a Device) {
    let split = |name: &'a str| -> Option<(&'a str, Vec<u32>)> {
        let (name, numbers) = name.strip_prefix("$__")?.rsplit_once("__")?;
        let numbers: Result<Vec<u32>, _> = numbers.split('$').map(str::parse).collect();
        Some((name, numbers.ok()?))
    };
    let mut known: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, _) in &device.variables {
        if let Some((own, _)) = split(name) {
            known.entry(own).or_default().push(name);
        }
    }
    let mut found: BTreeMap<&str, Vec<(Vec<u32>, usize)>> = BTreeMap::new();
    for (at, symbol) in symbols.iter().enumerate() {
        if let Some((own, numbers)) = split(symbol.name) {
            found.entry(own).or_default().push((numbers, at));
        }
    }
    for (own, mut places) in found {
        places.sort();
        let names = known.get(own).into_iter().flatten();
        names.zip(places).for_each(|(name, (_, at))| symbols[at].name = name);
    }
}

/// The words of variables that hold addresses of functions, with the addresses in this code.
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
        // A variable that no code uses is not in the file.
        let Some(symbol) = symbol else { continue };
        let offset = (symbol.value + address - start) as usize;
        let value = sections[initial].data.get(offset..offset + 8).map(number).ok_or_else(broken)?;
        words.push(FunctionWord { offset, address, value });
    }
    Ok(words)
}

/// The number of bytes of shared memory that the target reserves. The sizes of sections include them.
fn reserved_shared(sm: Sm) -> u32 {
    let target = ptx_backend::target::Target::of_generation(sm);
    target.map_or(0, |target| target.shared_base)
}
