//! The code of a cubin, decoded, and the code that `cuobjdump` prints.

use gpu_files::cubin;
use object::{Object, ObjectSection};
use sass::{Inst, Sm};
use std::collections::BTreeMap;

/// A text section.
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) words: Vec<u128>,
    /// `None` if a word cannot be decoded.
    pub(crate) code: Option<Vec<Inst>>,
    /// For each indirect branch, the indices of its targets.
    pub(crate) tables: Vec<(usize, Vec<usize>)>,
}

const NOP: u128 = 0x918;
const OPCODE_MASK: u128 = 0xfff;

impl Function {
    /// Whether the function contains a call.
    pub(crate) fn calls(&self) -> bool {
        let is_call = |inst: &Inst| inst.form().mnemonic.starts_with("CALL");
        self.code.iter().flatten().any(is_call)
    }

    /// The number of instructions, without padding and the branch to itself before the padding.
    pub(crate) fn instructions(&self) -> usize {
        self.words.iter().filter(|&word| word & OPCODE_MASK != NOP).count().saturating_sub(1)
    }
}

pub(crate) fn read(bytes: &[u8]) -> Result<(Sm, Vec<Function>), String> {
    let cubin = cubin::read(bytes).map_err(|error| error.to_string())?;
    let sm = cubin.sm;
    let mut tables = indirect_branches(bytes)?;
    let functions = cubin
        .functions
        .iter()
        .map(|function| {
            let words: Vec<u128> = cubin::words(function.code).collect();
            Function {
                name: function.name.to_owned(),
                // In sparse products, ptxas sets a reuse bit that has no effect on the result.
                code: words.iter().map(|&word| sass::decode_tolerant(sm, word)).collect(),
                tables: tables.remove(function.name).unwrap_or_default(),
                words,
            }
        })
        .collect();
    Ok((sm, functions))
}

/// For each function, its indirect branches and their targets, from the attribute that lists them.
type IndirectBranches = BTreeMap<String, Vec<(usize, Vec<usize>)>>;

fn indirect_branches(bytes: &[u8]) -> Result<IndirectBranches, String> {
    const SIZED: u8 = 4;
    const TARGETS: u8 = 0x34;
    let file = object::File::parse(bytes).map_err(|error| error.to_string())?;
    let mut all = BTreeMap::new();
    for section in file.sections() {
        let (Ok(name), Ok(data)) = (section.name(), section.data()) else { continue };
        let Some(function) = name.strip_prefix(".nv.info.") else { continue };
        let mut tables = Vec::new();
        let mut rest = data;
        while let [format, attribute, low, high, tail @ ..] = rest {
            let size = if *format == SIZED { usize::from(u16::from_le_bytes([*low, *high])) } else { 0 };
            let value = tail.get(..size).ok_or("an attribute leads outside its section")?;
            if *attribute == TARGETS {
                tables.extend(targets(value));
            }
            rest = &tail[size..];
        }
        all.insert(function.to_owned(), tables);
    }
    Ok(all)
}

/// `{ branch, 0, count, targets… }`, in bytes from the function's start.
fn targets(value: &[u8]) -> Vec<(usize, Vec<usize>)> {
    let index = |offset: u32| (u64::from(offset) / sass::INST_BYTES) as usize;
    let mut numbers = value.as_chunks::<4>().0.iter().map(|b| u32::from_le_bytes(*b));
    let mut tables = Vec::new();
    while let (Some(branch), Some(_), Some(count)) = (numbers.next(), numbers.next(), numbers.next()) {
        tables.push((index(branch), numbers.by_ref().take(count as usize).map(index).collect()));
    }
    tables
}

/// The instructions of each function in the output of `cuobjdump -sass`.
pub(crate) fn printed(text: &str) -> BTreeMap<String, Vec<String>> {
    let mut functions: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut current = None;
    for line in text.lines() {
        let line = line.trim();
        if let Some(name) = line.strip_prefix("Function : ") {
            current = Some(functions.entry(name.to_owned()).or_default());
        } else if let (Some(lines), Some(rest)) = (&mut current, line.strip_prefix("/*"))
            // Lines with the second half of a word have no text.
            && let Some((_, rest)) = rest.split_once("*/")
            && let Some((text, _)) = rest.rsplit_once("/*")
        {
            lines.push(text.trim().trim_end_matches(';').trim_end().to_owned());
        }
    }
    functions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_listing() {
        let text = "\
		Function : f
        /*0000*/                   EXIT ;               /* 0x000000000000794d */
                                                        /* 0x000fea0003800000 */
        /*0010*/                   BRA 0x10;            /* 0xfffffff000007947 */
";
        assert_eq!(printed(text)["f"], ["EXIT", "BRA 0x10"]);
    }

    #[test]
    fn reads_branch_targets() {
        let numbers = [0x20u32, 0, 2, 0x30, 0x50];
        let bytes: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
        assert_eq!(targets(&bytes), [(2, vec![3, 5])]);
    }
}
