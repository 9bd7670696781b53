//! Just enough of a cubin to disassemble it: the generation and the code of each function.

use crate::model::Sm;
use std::fmt;

/// A cubin's code.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cubin<'a> {
    pub sm: Sm,
    /// In the order of the file's sections.
    pub functions: Vec<Function<'a>>,
}

/// A section of code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Function<'a> {
    pub name: &'a str,
    pub code: &'a [u8],
}

/// Why a file is no cubin that can be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CubinError {
    NotElf,
    /// The header names a generation that the table lacks.
    Generation(u32),
    /// A table or section leads outside the file.
    Truncated,
}

impl fmt::Display for CubinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CubinError::NotElf => f.write_str("not a 64-bit little-endian ELF file for the GPU"),
            CubinError::Generation(sm) => write!(f, "unknown generation sm_{sm}"),
            CubinError::Truncated => f.write_str("the file is truncated"),
        }
    }
}

impl std::error::Error for CubinError {}

const MACHINE_CUDA: u64 = 190;
const SECTION_HEADER_BYTES: usize = 64;
const TEXT_PREFIX: &str = ".text.";

/// Finds the generation and the text sections.
pub fn read(bytes: &[u8]) -> Result<Cubin<'_>, CubinError> {
    let file = File(bytes);
    // Magic number, 64 bits, little endian.
    if bytes.get(..6) != Some(b"\x7fELF\x02\x01") || file.number(18, 2)? != MACHINE_CUDA {
        return Err(CubinError::NotElf);
    }
    let flags = file.number(48, 4)? as u32;
    let sm = generation(flags).ok_or(CubinError::Generation(flags >> 8 & 0xff))?;
    let headers = file.number(40, 8)? as usize;
    let count = file.number(60, 2)? as usize;
    let names = file.number(62, 2)? as usize;
    let section = |index: usize| -> Result<(usize, usize, usize), CubinError> {
        let at = index
            .checked_mul(SECTION_HEADER_BYTES)
            .and_then(|offset| offset.checked_add(headers))
            .ok_or(CubinError::Truncated)?;
        Ok((
            file.number(at, 4)? as usize,
            file.number(at + 24, 8)? as usize,
            file.number(at + 32, 8)? as usize,
        ))
    };
    let (_, names, names_size) = section(names)?;
    let names = file.slice(names, names_size)?;
    let mut functions = Vec::new();
    for index in 0..count {
        let (name, offset, size) = section(index)?;
        let name = names.get(name..).ok_or(CubinError::Truncated)?;
        let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
        let name = std::str::from_utf8(name).unwrap_or_default();
        if let Some(name) = name.strip_prefix(TEXT_PREFIX) {
            functions.push(Function { name, code: file.slice(offset, size)? });
        }
    }
    Ok(Cubin { sm, functions })
}

/// The generation in the header's flags: in bits 8 to 15, or in files of older toolkits in the low byte.
fn generation(flags: u32) -> Option<Sm> {
    [flags >> 8 & 0xff, flags & 0xff].into_iter().map(|sm| Sm(sm as u8)).find(|sm| Sm::ALL.contains(sm))
}

/// The instruction words of a function; a rest of less than a word is left out.
pub fn words(code: &[u8]) -> impl Iterator<Item = u128> {
    code.as_chunks::<16>().0.iter().map(|word| u128::from_le_bytes(*word))
}

struct File<'a>(&'a [u8]);

impl<'a> File<'a> {
    fn slice(&self, offset: usize, size: usize) -> Result<&'a [u8], CubinError> {
        let end = offset.checked_add(size).ok_or(CubinError::Truncated)?;
        self.0.get(offset..end).ok_or(CubinError::Truncated)
    }

    /// A little-endian number of at most eight bytes.
    fn number(&self, offset: usize, size: usize) -> Result<u64, CubinError> {
        let bytes = self.slice(offset, size)?;
        Ok(bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_what_is_no_cubin() {
        assert_eq!(read(b""), Err(CubinError::NotElf));
        assert_eq!(read(b"\x7fELF\x02\x01"), Err(CubinError::Truncated));
        let mut header = vec![0; 64];
        header[..6].copy_from_slice(b"\x7fELF\x02\x01");
        header[18] = 190;
        assert_eq!(read(&header), Err(CubinError::Generation(0)));
        header[49] = 80;
        header[40..48].fill(0xff);
        assert_eq!(read(&header), Err(CubinError::Truncated));
    }
}
