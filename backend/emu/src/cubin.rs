//! A cubin's kernels, ready to run: code, banks and sizes, addresses filled in.

use crate::device::Device;
use crate::machine::Kernel;
use crate::memory::number;
use sass::Sm;

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

/// The kernel of a name. Variables are those of the device, by name.
pub fn kernel(bytes: &[u8], name: &str, device: &Device) -> Result<Kernel, CubinError> {
    let sm = sass::cubin::read(bytes).map_err(|error| CubinError(error.to_string()))?.sm;
    let sections = sections(bytes)?;
    let find = |wanted: &str| sections.iter().position(|section| section.name == wanted);
    let text =
        find(&format!(".text.{name}")).ok_or_else(|| CubinError(format!("there is no kernel {name}")))?;
    let mut code: Vec<u128> = sass::cubin::words(sections[text].data).collect();
    let symbols = symbols(&sections)?;
    let data = |index: Option<usize>| index.map(|i| sections[i].data.to_vec()).unwrap_or_default();
    let bank4 = find(&format!(".nv.constant4.{name}")).or(find(".nv.constant4"));
    let bank3 = find(".nv.constant3");
    let mut kernel = Kernel {
        sm,
        code: Vec::new(),
        shared_bytes: find(&format!(".nv.shared.{name}")).map_or(0, |i| sections[i].size as u32),
        stack_bytes: 0,
        bank2: data(find(&format!(".nv.constant2.{name}")).or(find(".nv.constant2"))),
        bank3: data(bank3),
        bank4: data(bank4),
    };
    let reserved = reserved_shared(sm);
    kernel.shared_bytes = kernel.shared_bytes.saturating_sub(reserved);
    for section in sections.iter().filter(|section| RELOCATIONS.contains(&section.kind)) {
        let with_addend = section.kind == RELOCATIONS[0];
        for entry in section.data.chunks_exact(if with_addend { 24 } else { 16 }) {
            let (offset, info) = (number(&entry[..8]) as usize, number(&entry[8..16]));
            let symbol = symbols.get((info >> 32) as usize).ok_or_else(broken)?;
            let kind = info & 0xffff_ffff;
            let addend = if with_addend { number(&entry[16..24]) } else { 0 };
            let address = match device.variable(symbol.name) {
                Some(address) => address.wrapping_add(addend),
                None if Some(symbol.section) == bank3 => device.constants() + symbol.value + addend,
                None if section.info == text && Some(symbol.section) == bank3 => symbol.value,
                None => continue,
            };
            let target = Some(section.info);
            match kind {
                ADDRESS64 if target == bank4 => {
                    let field = kernel.bank4.get_mut(offset..offset + 8).ok_or_else(broken)?;
                    field.copy_from_slice(&address.to_le_bytes());
                }
                LOW32 | HIGH32 if section.info == text => {
                    let word = code.get_mut(offset / 16).ok_or_else(broken)?;
                    let half = if kind == LOW32 { address & 0xffff_ffff } else { address >> 32 };
                    *word = *word & !(0xffff_ffff << 32) | u128::from(half) << 32;
                }
                _ if target == bank4 || section.info == text => {
                    return Err(CubinError(format!("the relocation {kind} for {}", symbol.name)));
                }
                _ => {}
            }
        }
    }
    kernel.code = code;
    Ok(kernel)
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
