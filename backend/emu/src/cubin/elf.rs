//! The sections, symbols and relocations of a cubin.

use super::{CubinError, broken};
use crate::memory::number;

pub(super) struct Section<'a> {
    pub(super) name: &'a str,
    kind: u64,
    link: usize,
    pub(super) info: usize,
    pub(super) size: usize,
    pub(super) data: &'a [u8],
}

pub(super) struct Symbol<'a> {
    pub(super) name: &'a str,
    /// Zero: in another file, or known to the driver.
    pub(super) section: usize,
    /// Of a variable in shared memory that is still to be placed, its alignment.
    pub(super) value: u64,
    pub(super) size: u64,
    other: u8,
}

/// Sections without contents: any, and variables of relocatable files in global memory.
const NO_BITS: u64 = 8;
const GLOBAL: u64 = 0x7000_0007;
const SYMBOLS: u64 = 2;
const RELOCATIONS: [u64; 2] = [4, 9];
/// A section of shared memory whose variables have no places yet.
const SHARED: u64 = 0x7000_000a;
/// Bits of a symbol that tell its space, and what they are for shared memory.
const SPACE: u8 = 0xe0;
const SPACE_SHARED: u8 = 0x40;

impl Symbol<'_> {
    /// A variable in shared memory that is still to be placed.
    pub(super) fn is_shared(&self, sections: &[Section<'_>]) -> bool {
        match self.section {
            0 => self.other & SPACE == SPACE_SHARED,
            section => sections.get(section).is_some_and(|section| section.kind == SHARED),
        }
    }
}

pub(super) struct Relocation {
    /// What is changed.
    pub(super) section: usize,
    pub(super) offset: usize,
    pub(super) kind: u64,
    pub(super) symbol: usize,
    pub(super) addend: u64,
}

pub(super) fn relocations(
    sections: &[Section<'_>],
    symbols: &[Symbol<'_>],
) -> Result<Vec<Relocation>, CubinError> {
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

pub(super) fn sections(bytes: &[u8]) -> Result<Vec<Section<'_>>, CubinError> {
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
        let kind = kind as u64;
        let data = if matches!(kind, NO_BITS | GLOBAL | SHARED) { &[][..] } else { slice(offset, size)? };
        Ok(Section { name: text(names, name), kind, link, info, size, data })
    });
    sections.collect()
}

fn text(names: &[u8], at: usize) -> &str {
    let name = names.get(at..).unwrap_or_default();
    std::str::from_utf8(name.split(|&byte| byte == 0).next().unwrap_or_default()).unwrap_or_default()
}

pub(super) fn symbols<'a>(sections: &[Section<'a>]) -> Result<Vec<Symbol<'a>>, CubinError> {
    let Some(table) = sections.iter().find(|section| section.kind == SYMBOLS) else { return Ok(Vec::new()) };
    let names = sections.get(table.link).ok_or_else(broken)?.data;
    let entries = table.data.chunks_exact(24);
    Ok(entries
        .map(|entry| Symbol {
            name: text(names, number(&entry[..4]) as usize),
            section: number(&entry[6..8]) as usize,
            value: number(&entry[8..16]),
            size: number(&entry[16..24]),
            other: entry[5],
        })
        .collect())
}
