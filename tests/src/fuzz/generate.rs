//! Generates cases: parts of real programs, changed at random.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use ptx_isa::Sm;
use ptx_syntax::{ItemKind, lex, split};

use super::Case;
use fastrand::Rng as Random;

/// A number below `bound`; 0 for a bound of 0.
fn below(random: &mut Random, bound: usize) -> usize {
    random.usize(..bound.max(1))
}

fn pick<T: Copy>(random: &mut Random, from: &[T]) -> T {
    from[random.usize(..from.len())]
}

/// Longer parts of files are left out. Small cases are fast, and many small cases find more.
const MOST_BYTES: usize = 12 * 1024;

/// A file divided into the text that every case of it starts with, and optional parts.
#[derive(Debug)]
struct Seed {
    header: String,
    functions: Vec<String>,
}

/// The programs to start from. Never empty.
#[derive(Debug)]
pub struct Seeds(Vec<Seed>);

impl Seeds {
    /// Reads files and the `.ptx` files of folders.
    ///
    /// # Errors
    /// A file cannot be read, or there is no file.
    pub fn load(paths: &[PathBuf]) -> io::Result<Self> {
        let mut files = Vec::new();
        for path in paths {
            find(path, &mut files)?;
        }
        files.sort();
        let mut seeds = Vec::new();
        for file in files {
            let bytes = fs::read(&file)?;
            seeds.push(Seed::cut(&String::from_utf8_lossy(&bytes)));
        }
        if seeds.is_empty() {
            return Err(io::Error::new(io::ErrorKind::NotFound, "no seeds"));
        }
        Ok(Self(seeds))
    }

    /// A mutated program with up to three edits.
    pub fn case(&self, random: &mut Random) -> Case {
        let seed = &self.0[below(random, self.0.len())];
        let mut text = seed.header.clone();
        if !seed.functions.is_empty() {
            let first = below(random, seed.functions.len());
            let count = 1 + below(random, 3);
            for function in seed.functions.iter().skip(first).take(count) {
                if text.len() + function.len() <= 2 * MOST_BYTES {
                    text.push_str(function);
                }
            }
        }
        let donor = &self.0[below(random, self.0.len())];
        let donor = donor.functions.first().unwrap_or(&donor.header);
        let mut texts = Vec::new();
        for edit in 0..1 + below(random, 4) {
            let mutations = if edit == 0 { below(random, 4) } else { 1 + below(random, 2) };
            for _ in 0..mutations {
                text = mutate(&text, donor, random);
            }
            texts.push(text.clone());
        }
        let target = (below(random, 3) == 0).then(|| Sm::parse(pick(random, TARGETS))).flatten();
        Case { texts, target }
    }
}

const TARGETS: &[&str] =
    &["sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_100a", "sm_120", "sm_121"];

fn find(path: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    if !path.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    for entry in fs::read_dir(path)? {
        let path = entry?.path();
        if path.is_dir() || path.extension().is_some_and(|extension| extension == "ptx") {
            find(&path, files)?;
        }
    }
    Ok(())
}

impl Seed {
    fn cut(text: &str) -> Self {
        let mut seed = Self { header: String::new(), functions: Vec::new() };
        for item in split(text) {
            let part = &text[item.range];
            let is_body = matches!(item.kind, ItemKind::Entry | ItemKind::Func) && part.contains('{');
            if is_body && part.len() <= MOST_BYTES {
                seed.functions.push(part.to_owned());
            } else if !is_body && seed.header.len() + part.len() <= MOST_BYTES {
                seed.header.push_str(part);
            }
        }
        seed
    }
}

/// Tokens that have a meaning somewhere.
const WORDS: &[&str] = &[
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    "<",
    ">",
    ";",
    ",",
    ":",
    "|",
    "@",
    "@!",
    "+",
    "-",
    "!",
    "=",
    "_",
    "%",
    "\"",
    "/*",
    "*/",
    "//",
    "\n",
    "\t",
    "\r",
    "\0",
    "\u{feff}",
    "é",
    "𝄞",
    ".reg",
    ".param",
    ".shared",
    ".local",
    ".const",
    ".global",
    ".entry",
    ".func",
    ".visible",
    ".extern",
    ".align",
    ".version",
    ".target",
    ".b8",
    ".b16",
    ".b32",
    ".b64",
    ".b128",
    ".u32",
    ".s64",
    ".f16",
    ".f32",
    ".f64",
    ".f16x2",
    ".bf16",
    ".pred",
    ".v2",
    ".v4",
    ".sat",
    ".ftz",
    ".rn",
    ".rz",
    ".wide",
    ".lo",
    ".hi",
    ".cc",
    ".volatile",
    ".relaxed.gpu",
    ".to",
    ".loc 1 1 1",
    ".pragma \"nounroll\"",
    "%r1",
    "%rd1",
    "%f1",
    "%p1",
    "%tid.x",
    "%laneid",
    "%clock64",
    "WARP_SZ",
    "ret",
    "exit",
    "bra",
    "call",
    "mov.b32",
    "mov.b64",
    "cvt.rn.f32.s32",
    "setp.eq.s32",
    "selp.b32",
    "bar.sync 0",
    "shfl.sync.idx.b32",
    "prmt.b32",
    "bfe.u32",
    "lop3.b32",
    "mad.lo.s32",
    "div.rn.f32",
    "rem.u64",
    "sqrt.approx.f32",
    "atom.global.add.u32",
    "ld.global.nc.v4.f32",
];

const NUMBERS: &[&str] = &[
    "0",
    "1",
    "-1",
    "2",
    "3",
    "31",
    "32",
    "33",
    "63",
    "64",
    "255",
    "256",
    "4095",
    "65535",
    "65536",
    "0x7fffffff",
    "0x80000000",
    "4294967295",
    "4294967296",
    "0x7fffffffffffffff",
    "18446744073709551615",
    "99999999999999999999999",
    "0b1",
    "017",
    "0f3F800000",
    "0f7FC00000",
    "0d3FF0000000000000",
    "1.5",
    "1e400",
    "0x",
    "1U",
];

/// Changes a text in one place.
fn mutate(text: &str, donor: &str, random: &mut Random) -> String {
    match below(random, 16) {
        0..=5 => replace_token(text, random),
        6..=10 => change_lines(text, donor, random),
        11 => insert_at(text, pick(random, WORDS), random),
        12 => cut_bytes(text, random),
        13 => text[..boundary(text, random)].to_owned(),
        14 => insert_at(text, &donor[boundary(donor, random)..].chars().take(60).collect::<String>(), random),
        _ => {
            let mut bytes = text.as_bytes().to_vec();
            if !bytes.is_empty() {
                let at = below(random, bytes.len());
                bytes[at] = random.u8(..);
            }
            String::from_utf8_lossy(&bytes).into_owned()
        }
    }
}

fn boundary(text: &str, random: &mut Random) -> usize {
    let mut at = below(random, text.len() + 1);
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn insert_at(text: &str, what: &str, random: &mut Random) -> String {
    let at = boundary(text, random);
    format!("{}{what}{}", &text[..at], &text[at..])
}

fn cut_bytes(text: &str, random: &mut Random) -> String {
    let start = boundary(text, random);
    let mut end = text.len().min(start + below(random, 40));
    while !text.is_char_boundary(end) {
        end += 1;
    }
    format!("{}{}", &text[..start], &text[end..])
}

/// Replaces a token with another one of the file, a number, or a word of the language.
fn replace_token(text: &str, random: &mut Random) -> String {
    let mut ranges = Vec::new();
    let mut start = 0;
    for token in lex(text) {
        let end = start + token.len as usize;
        if !text[start..end].trim().is_empty() {
            ranges.push(start..end);
        }
        start = end;
    }
    if ranges.is_empty() {
        return pick(random, WORDS).to_owned();
    }
    let range = ranges[below(random, ranges.len())].clone();
    let old = &text[range.clone()];
    // Registers are replaced with registers and numbers with numbers, so that most results are still valid programs.
    let kind = old.as_bytes()[0];
    let alike: Vec<_> = ranges.iter().filter(|other| text.as_bytes()[other.start] == kind).collect();
    let new = match below(random, 8) {
        0 => pick(random, WORDS),
        1 => "",
        2..=4 if kind.is_ascii_digit() => pick(random, NUMBERS),
        5 => &text[ranges[below(random, ranges.len())].clone()],
        _ => &text[pick(random, &alike).clone()],
    };
    format!("{}{new}{}", &text[..range.start], &text[range.end..])
}

/// Deletes, doubles, swaps or adds lines.
fn change_lines(text: &str, donor: &str, random: &mut Random) -> String {
    let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
    if lines.is_empty() {
        return donor.to_owned();
    }
    let at = below(random, lines.len());
    match below(random, 5) {
        0 => drop(lines.remove(at)),
        1 => lines.insert(at, lines[at]),
        2 => {
            let other = below(random, lines.len());
            lines.swap(at, other);
        }
        3 => {
            let from: Vec<&str> = donor.split_inclusive('\n').collect();
            let first = below(random, from.len());
            let count = 1 + below(random, 4);
            lines.splice(at..at, from.into_iter().skip(first).take(count));
        }
        _ => {
            let end = lines.len().min(at + 1 + below(random, 6));
            lines.drain(at..end);
        }
    }
    lines.concat()
}
