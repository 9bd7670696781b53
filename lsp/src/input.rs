//! Reads the input texts of the programs. Rejects files that are too large or not text.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

/// The size of the largest input in MiB, unless the user raises it.
pub const LARGEST: u64 = 256;
/// The largest size that the user can choose, in MiB: positions have 32 bits.
pub const MOST: u64 = 4095;

/// A text and its name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Input {
    pub name: String,
    /// The text. U+FFFD replaces every sequence that is not UTF-8.
    pub text: String,
    /// The byte offset of the first replaced sequence.
    pub replaced: Option<usize>,
}

/// Reads a file of at most `largest` MiB, or standard input for `-`.
///
/// # Errors
/// The file cannot be read, is too large, or is not text. The message does not name the file.
pub fn read(path: &Path, largest: u64) -> io::Result<Input> {
    if path.as_os_str() == "-" {
        return text("<stdin>".to_owned(), bounded(stdin()?, largest)?);
    }
    let file = File::open(path)?;
    let found = file.metadata()?;
    if found.is_dir() {
        return Err(is_folder());
    }
    if found.is_file() && found.len() > largest << 20 {
        return Err(too_large(largest));
    }
    text(path.display().to_string(), bounded(file, largest)?)
}

/// Standard input.
///
/// # Errors
/// It is closed. The standard library has opened a closed standard input again: as `/dev/null`, for reading and writing.
pub fn stdin() -> io::Result<io::StdinLock<'static>> {
    #[cfg(unix)]
    {
        use rustix::fs::{OFlags, fcntl_getfl, fstat, stat};
        let (input, null) = (fstat(io::stdin())?, stat("/dev/null")?);
        let is_null = input.st_rdev == null.st_rdev && input.st_mode == null.st_mode;
        if is_null && fcntl_getfl(io::stdin())?.contains(OFlags::RDWR) {
            return Err(io::Error::other("it is closed"));
        }
    }
    Ok(io::stdin().lock())
}

/// Reads a settings file.
///
/// # Errors
/// The file cannot be read, is larger than one MiB, or is not UTF-8. The message does not name the file.
pub fn settings(path: &Path) -> io::Result<String> {
    const MOST: u64 = 1 << 20;
    let file = File::open(path)?;
    if file.metadata()?.is_dir() {
        return Err(is_folder());
    }
    let mut bytes = Vec::new();
    file.take(MOST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST {
        return Err(io::Error::new(ErrorKind::FileTooLarge, "larger than 1 MiB"));
    }
    String::from_utf8(bytes).map_err(|_| io::Error::new(ErrorKind::InvalidData, "is not UTF-8 text"))
}

fn is_folder() -> io::Error {
    io::Error::new(ErrorKind::IsADirectory, "it is a folder, not a file")
}

/// Reads to the end, but no more than the limit: a device may never end.
fn bounded(reader: impl Read, largest: u64) -> io::Result<Vec<u8>> {
    let most = largest << 20;
    let mut bytes = Vec::new();
    reader.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most { Err(too_large(largest)) } else { Ok(bytes) }
}

fn too_large(largest: u64) -> io::Error {
    let way_out = if largest < MOST { "; `--max-input-size MIB` raises the limit" } else { "" };
    io::Error::new(ErrorKind::FileTooLarge, format!("larger than {largest} MiB{way_out}"))
}

fn text(name: String, bytes: Vec<u8>) -> io::Result<Input> {
    if let Some(kind) = binary(&bytes) {
        return Err(io::Error::new(ErrorKind::InvalidData, format!("is {kind}, not PTX text")));
    }
    let (text, replaced) = decode(bytes);
    Ok(Input { name, text, replaced })
}

/// The text, in which U+FFFD replaces every sequence that is not UTF-8, and the byte offset of the first such sequence.
fn decode(bytes: Vec<u8>) -> (String, Option<usize>) {
    match String::from_utf8(bytes) {
        Ok(text) => (text, None),
        Err(error) => {
            let at = error.utf8_error().valid_up_to();
            (String::from_utf8_lossy(error.as_bytes()).into_owned(), Some(at))
        }
    }
}

/// What kind of file this is if it is not text. The first bytes tell, or more than one in ten of the first characters
/// is not a text character.
fn binary(bytes: &[u8]) -> Option<&'static str> {
    const START: usize = 8192;
    match bytes {
        [0x7f, b'E', b'L', b'F', ..] => {
            return Some("an ELF file such as a cubin (use `sass dis` to read it)");
        }
        [0x50, 0xed, 0x55, 0xba, ..] => return Some("a fatbin (use `sass dis` to read it)"),
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => return Some("UTF-16"),
        _ => {}
    }
    // The program that wrote the text may have written a zero byte at its end, as in C strings.
    let end = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    let start = String::from_utf8_lossy(&bytes[..end.min(START)]);
    let is_none = |c: &char| *c == char::REPLACEMENT_CHARACTER || c.is_control() && !c.is_whitespace();
    let (none, all) = (start.chars().filter(is_none).count(), start.chars().count());
    // A few such bytes prove nothing; the checks report each of them.
    (none > 8 && 10 * none > all).then_some("a binary file")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_no_text_are_replaced() {
        let (text, at) = decode(b".version \xff8.0".to_vec());
        assert_eq!((text.as_str(), at), (".version \u{fffd}8.0", Some(9)));
        assert_eq!(decode(b"ok".to_vec()), ("ok".into(), None));
    }

    #[test]
    fn binary_files_are_told_from_text() {
        let noise: Vec<u8> = (0..20_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        assert_eq!(binary(&noise), Some("a binary file"));
        assert_eq!(binary(b"\xff\xfe.\0v\0"), Some("UTF-16"));
        assert!(binary(b"\x7fELF\x02\x01").is_some_and(|kind| kind.contains("ELF")));
        let utf16: Vec<u8> = b".version 8.0\n".iter().flat_map(|&byte| [0, byte]).collect();
        assert_eq!(binary(&utf16), Some("a binary file"));
        let text = ".version 8.0 // \u{e4}\u{4e2d}\n".repeat(100);
        assert_eq!(binary(text.as_bytes()), None);
        // Text with a few other bytes, and with a terminating zero byte.
        assert_eq!(binary(b""), None);
        assert_eq!(binary(b".version \0 \xff 8.0"), None);
        assert_eq!(binary(format!("{text}{}", "\0".repeat(5000)).as_bytes()), None);
    }

    #[test]
    fn inputs_are_bounded() {
        let endless = || io::repeat(b' ');
        let error = bounded(endless(), 1).unwrap_err();
        assert_eq!(error.to_string(), "larger than 1 MiB; `--max-input-size MIB` raises the limit");
        assert_eq!(bounded(endless().take(1 << 20), 1).unwrap().len(), 1 << 20);
        let error = read(Path::new(env!("CARGO_MANIFEST_DIR")), 1).unwrap_err();
        assert_eq!(error.to_string(), "it is a folder, not a file");
        assert_eq!(read(Path::new("no such file"), 1).unwrap_err().kind(), ErrorKind::NotFound);
    }
}
