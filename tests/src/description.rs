//! Launches of kernels as text: `NAME.cases` beside `NAME.ptx`.
//!
//! Lines of words; `#` starts a comment. A case begins with `case NAME`. The following lines may be in a case:
//!
//! ```text
//! case sum of an array
//! kernel sum other_sum             # one case for each; the arguments are the same
//! grid 2 1 1                       # missing dimensions are 1
//! block 128
//! shared 1024                      # bytes of dynamic shared memory
//! buffer f32 1000 small 7          # type, count, contents: here from a seed
//! buffer f32 1 zero near 4 1e-6    # and how it is compared afterwards
//! into 16                          # the argument before is the address of so many bytes into its buffer
//! together                         # all blocks run at once, as in a cooperative launch
//! unchecked                        # memory may be read that was never written, and warps may race
//! except 75 80                     # targets that the case is not for; a comment says why
//! steps 1000000000                 # instructions of warps after which a run is given up
//! u32 1000                         # a number
//! bytes 16 random 3                # a parameter of many bytes
//! tensor f16 64x32 16x8 32         # a map of the buffer before: extents, the box, bytes of a swizzled row (16: not swizzled)
//! tensor f16 64x32 16x8 32 zero    # the same with a tensor of its own, whose contents and comparison follow as a buffer's
//! images f16 8x9x7x2 8x16 -1,-1x-1,-1 16 # as `tensor`, of images (channels, pixels, images): the channels and pixels that copies move,
//!                                  # and in each dimension where pixels begin and end, from the image's first and last
//! texture f32x4 8x2 small 2 linear # a texture or a surface: element, extents and contents
//! bind NAME f32x4 8x2 small 2      # the same for a variable of the module; a sampler is a texture that is never read
//! ```
//!
//! A map is passed by its address, or by value if the parameter has its 128 bytes.
//!
//! A texture may have `layers COUNT`, `normalized` coordinates, and `float` (its integers are read as fractions). For
//! coordinates out of bounds, `wrap`, `mirror` or `zero` replaces the nearest element.
//!
//! Contents are `zero`, `ones`, `index` (0, 1, 2 and so on), `values 1,2,3` (repeated), `random SEED`,
//! `below LIMIT SEED` (whole numbers), `small SEED` (multiples of 1/256 between -4 and 4), `edges SEED` (values that
//! are difficult for instructions), `file PATH` (the bytes of a file, in the machine's byte order) and `unwritten` (a
//! buffer that a kernel must not read before it writes it). A comparison is `exact` (all floating-point NaNs are
//! equal), `near ULPS ABSOLUTE` (for doubles and halves, only ULPS counts) or `ignored`. Buffers hold `u8` to `u64`,
//! `f16`, `bf16`, `f32` and `f64`.

use crate::case::{Argument, Case, Compare};
use crate::sweep::{self, Random};
use ptx_emu::tensormap::{Image, TensorMap};
use ptx_emu::texture::{Border, Channel, Texture};
use std::path::Path;

/// A case and its name.
#[derive(Clone, Debug)]
pub struct Described {
    pub name: String,
    pub case: Case,
}

/// The cases of every description in a folder, in the order of the files' names.
///
/// # Errors
/// The file, the line and the mistake.
pub fn folder(path: &Path) -> Result<Vec<Described>, String> {
    let entries = std::fs::read_dir(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut files: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "cases"));
    files.sort();
    let mut cases = Vec::new();
    for file in files {
        let read = |path: &Path| {
            std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
        };
        let (ptx, text) = (read(&file.with_extension("ptx"))?, read(&file)?);
        let stem = file.file_stem().unwrap_or_default().to_string_lossy();
        cases.extend(parse(&stem, &ptx, &text).map_err(|error| format!("{}: {error}", file.display()))?);
    }
    Ok(cases)
}

/// The cases that a text describes, with kernels of a module.
///
/// # Errors
/// The line and the mistake.
pub fn parse(stem: &str, ptx: &str, text: &str) -> Result<Vec<Described>, String> {
    let mut cases: Vec<(String, Vec<String>, Case)> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default();
        let mut words = line.split_whitespace();
        let Some(first) = words.next() else { continue };
        let words: Vec<&str> = words.collect();
        if first == "case" {
            cases.push((words.join(" "), Vec::new(), Case::new(ptx, 1, 1, Vec::new())));
            continue;
        }
        let (_, kernels, case) = cases.last_mut().ok_or(format!("line {}: no case", number + 1))?;
        let done = match first {
            "kernel" => {
                kernels.extend(words.iter().map(|&kernel| kernel.to_owned()));
                Some(())
            }
            _ => setting(case, first, &words),
        };
        done.ok_or(format!("line {}: {line}", number + 1))?;
    }
    let mut described = Vec::new();
    for (name, kernels, case) in cases {
        let kernels = if kernels.is_empty() { vec![String::new()] } else { kernels };
        let several = kernels.len() > 1;
        described.extend(kernels.into_iter().map(|kernel| {
            let suffix = if several { format!(" {kernel}") } else { String::new() };
            Described { name: format!("{stem}: {name}{suffix}"), case: Case { kernel, ..case.clone() } }
        }));
    }
    Ok(described)
}

/// Applies one line to a case.
fn setting(case: &mut Case, first: &str, words: &[&str]) -> Option<()> {
    let number = |at: usize| words.get(at)?.parse::<u64>().ok();
    let extent = || {
        let mut extent = [1; 3];
        for (dimension, word) in extent.iter_mut().zip(words) {
            *dimension = word.parse().ok()?;
        }
        Some(extent)
    };
    match first {
        "grid" => case.grid = extent()?,
        "block" => case.block = extent()?,
        "shared" => case.dynamic_shared = number(0)? as u32,
        "together" => case.together = true,
        "unchecked" => case.unchecked = true,
        "steps" => case.steps = Some(number(0)?),
        "except" => {
            case.except = words.iter().map(|word| word.parse().ok()).collect::<Option<_>>()?;
        }
        "into" => {
            let buffer = Box::new(case.arguments.pop()?);
            case.arguments.push(Argument::Into(buffer, number(0)?));
        }
        "buffer" => {
            let (ty, count) = (*words.first()?, number(1)? as usize);
            if words.get(2) == Some(&"unwritten") {
                case.arguments.push(Argument::Unwritten(count * size(ty)?, compare(ty, &words[3..])?));
                return Some(());
            }
            let (bytes, rest) = contents(ty, count, &words[2..])?;
            case.arguments.push(Argument::Buffer(bytes, compare(ty, rest)?));
        }
        "bytes" => {
            let (bytes, _) = contents("u8", number(0)? as usize, &words[1..])?;
            case.arguments.push(Argument::Bytes(bytes));
        }
        "bind" => {
            let (name, words) = words.split_first()?;
            let (texture, bytes) = texture(words)?;
            case.bound.push(((*name).to_owned(), texture, bytes));
        }
        "texture" => {
            let (texture, bytes) = texture(words)?;
            case.arguments.push(Argument::Texture(texture, bytes));
        }
        "tensor" | "images" => {
            let (map, after) = if first == "tensor" {
                (TensorMap::packed(words.first()?, &extents(words, 1)?, &extents(words, 2)?, number(3)?)?, 4)
            } else {
                (images(words)?, 5)
            };
            if words.len() == after {
                case.arguments.push(Argument::Tensor(map));
                return Some(());
            }
            let ty = words[0];
            let count = extents(words, 1)?.iter().product::<u64>() as usize;
            let buffer = match words[after..] {
                ["unwritten", ref rest @ ..] => Argument::Unwritten(count * size(ty)?, compare(ty, rest)?),
                _ => {
                    let (bytes, rest) = contents(ty, count, &words[after..])?;
                    Argument::Buffer(bytes, compare(ty, rest)?)
                }
            };
            case.arguments.push(Argument::TensorOf(map, Box::new(buffer)));
        }
        ty => {
            let text = words.first()?;
            let bytes = match ty {
                "f32" => text.parse::<f32>().ok()?.to_le_bytes().to_vec(),
                "f64" => text.parse::<f64>().ok()?.to_le_bytes().to_vec(),
                _ => {
                    let value: i128 = text.parse().ok()?;
                    value.to_le_bytes()[..size(ty)?].to_vec()
                }
            };
            case.arguments.push(Argument::Bytes(bytes));
        }
    }
    Some(())
}

/// The numbers of a word, separated by `x`.
fn extents<T: std::str::FromStr>(words: &[&str], at: usize) -> Option<Vec<T>> {
    words.get(at)?.split('x').map(|word| word.parse().ok()).collect()
}

/// A map of images.
fn images(words: &[&str]) -> Option<TensorMap> {
    let [channels, pixels] = extents(words, 2)?[..] else { return None };
    let corner = |word: &str| {
        let (first, last) = word.split_once(',')?;
        Some([first.parse().ok()?, last.parse().ok()?])
    };
    let corners = words.get(3)?.split('x').map(corner).collect::<Option<_>>()?;
    let swizzle = words.get(4)?.parse().ok()?;
    TensorMap::images(words.first()?, &extents(words, 1)?, channels, Image { corners, pixels }, swizzle)
}

/// A texture or a surface, and its contents.
fn texture(words: &[&str]) -> Option<(Texture, Vec<u8>)> {
    let (element, channels) = words.first()?.split_once('x').unwrap_or((words[0], "1"));
    let mut extent = [1; 3];
    for (extent, word) in extent.iter_mut().zip(words.get(1)?.split('x')) {
        *extent = word.parse().ok()?;
    }
    let channel = match element.as_bytes().first()? {
        b'f' => Channel::Float,
        b's' => Channel::Signed,
        _ => Channel::Unsigned,
    };
    let mut texture = Texture {
        address: 0,
        channel,
        bytes: size(element)? as u32,
        channels: channels.parse().ok()?,
        extent,
        layers: 0,
        linear: false,
        normalized: false,
        as_float: false,
        border: Border::Clamp,
    };
    let layers =
        words.iter().position(|word| *word == "layers").map_or(Some(1), |at| words.get(at + 1)?.parse().ok());
    let count = extent.iter().product::<u32>() * texture.channels * layers?;
    let (bytes, rest) = contents(element, count as usize, words.get(2..)?)?;
    let mut rest = rest.iter();
    while let Some(word) = rest.next() {
        match *word {
            "linear" => texture.linear = true,
            "normalized" => texture.normalized = true,
            "float" => texture.as_float = true,
            "wrap" => texture.border = Border::Wrap,
            "mirror" => texture.border = Border::Mirror,
            "zero" => texture.border = Border::Zero,
            "layers" => texture.layers = rest.next()?.parse().ok()?,
            _ => return None,
        }
    }
    Some((texture, bytes))
}

fn size(ty: &str) -> Option<usize> {
    Some(match ty {
        "u8" | "s8" => 1,
        "u16" | "s16" | "f16" | "bf16" => 2,
        "u32" | "s32" | "f32" => 4,
        "u64" | "s64" | "f64" => 8,
        _ => return None,
    })
}

/// `count` numbers of a type, and the words after their description.
fn contents<'a>(ty: &str, count: usize, words: &'a [&'a str]) -> Option<(Vec<u8>, &'a [&'a str])> {
    let size = size(ty)?;
    let number = |at: usize| words.get(at)?.parse::<u64>().ok();
    let float = |value: f64| -> u64 {
        match ty {
            "f64" => value.to_bits(),
            "f32" => (value as f32).to_bits().into(),
            "f16" => half(value as f32).into(),
            "bf16" => u64::from((value as f32).to_bits() >> 16),
            _ => value as i64 as u64,
        }
    };
    if words.first() == Some(&"file") {
        let bytes = std::fs::read(words.get(1)?).ok().filter(|bytes| bytes.len() == count * size)?;
        return Some((bytes, &words[2..]));
    }
    let is_float = ty.contains('f');
    let (used, seed) = match *words.first()? {
        "zero" | "ones" | "index" => (1, 0),
        "values" => (2, 0),
        "random" | "small" | "edges" => (2, number(1)?),
        "below" => (3, number(2)?),
        _ => return None,
    };
    let limit = if words[0] == "below" { number(1)?.max(1) } else { 1 };
    let values: Vec<u64> = match words[0] {
        "values" if is_float => {
            let values = words.get(1)?.split(',').map(|value| value.parse().ok().map(float));
            values.collect::<Option<_>>()?
        }
        "values" => {
            let values = words.get(1)?.split(',').map(|value| value.parse::<i128>().ok());
            values.map(|value| value.map(|value| value as u64)).collect::<Option<_>>()?
        }
        _ => Vec::new(),
    };
    let mut random = Random::new(seed);
    let mut value = |i: usize| match words[0] {
        "zero" => 0,
        "values" => values[i % values.len()],
        "ones" if is_float => float(1.0),
        "ones" => u64::MAX,
        "index" if is_float => float(i as f64),
        "index" => i as u64,
        "random" => random.next(),
        "small" => float((random.below(2048) as f64 - 1024.0) / 256.0),
        "below" if is_float => float(random.below(limit) as f64),
        "below" => random.below(limit),
        _ => sweep::value(ty, &mut random),
    };
    let bytes = (0..count).flat_map(|i| value(i).to_le_bytes()[..size].to_vec()).collect();
    Some((bytes, &words[used..]))
}

/// The half nearest to a number in the range of halves.
fn half(value: f32) -> u16 {
    ptx_emu::float::F32.convert(
        value.to_bits().into(),
        ptx_emu::float::F16,
        ptx_emu::float::Rounding::Nearest,
    ) as u16
}

fn compare(ty: &str, words: &[&str]) -> Option<Compare> {
    let exactly = match ty {
        "f32" => Compare::SINGLE,
        "f64" => Compare::DOUBLE,
        "f16" => Compare::HALF,
        "bf16" => Compare::BFLOAT,
        _ => Compare::Exact,
    };
    Some(match *words {
        [] | ["exact"] => exactly,
        ["ignored"] => Compare::Ignored,
        ["near", ulps, absolute] if ty == "f32" => {
            Compare::F32 { ulps: ulps.parse().ok()?, absolute: absolute.parse().ok()? }
        }
        ["near", ulps, _] => match ty {
            "f64" => Compare::F64 { ulps: ulps.parse().ok()? },
            "f16" => Compare::F16 { ulps: ulps.parse().ok()? },
            "bf16" => Compare::Bf16 { ulps: ulps.parse().ok()? },
            _ => return None,
        },
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_are_read() {
        let text = "# one\ncase a b\nkernel k l\ngrid 2 3\nblock 64\nbuffer u16 2 index\nbuffer f32 1 ones near 4 1e-6\ns32 -1\n";
        let cases = parse("f", "", text).unwrap();
        assert_eq!(cases.iter().map(|c| &*c.name).collect::<Vec<_>>(), ["f: a b k", "f: a b l"]);
        let case = &cases[1].case;
        assert_eq!((case.grid, case.block), ([2, 3, 1], [64, 1, 1]));
        let [Argument::Buffer(index, Compare::Exact), Argument::Buffer(ones, near), Argument::Bytes(number)] =
            &case.arguments[..]
        else {
            panic!("{:?}", case.arguments)
        };
        assert_eq!((&index[..], &ones[..]), (&[0, 0, 1, 0][..], &1.0f32.to_le_bytes()[..]));
        assert_eq!(*near, Compare::F32 { ulps: 4, absolute: 1e-6 });
        assert_eq!(number[..], [255; 4]);
        assert_eq!(parse("f", "", "case a\nbuffer f32 x").unwrap_err(), "line 2: buffer f32 x");
    }

    #[test]
    fn buffers_are_read_from_files() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        let bytes = std::fs::read(file).unwrap();
        let case = |count: usize| {
            parse("f", "", &format!("case a\nsteps 7\nbuffer u8 {count} file {file} ignored\n"))
        };
        let case = |count: usize| case(count).map(|mut cases| cases.remove(0).case);
        let read = case(bytes.len()).unwrap();
        assert_eq!(read.steps, Some(7));
        assert!(matches!(&read.arguments[..], [Argument::Buffer(held, Compare::Ignored)] if *held == bytes));
        assert!(case(bytes.len() + 1).is_err(), "a file of another length");
    }
}
