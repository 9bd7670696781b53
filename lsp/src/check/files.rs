//! What to check: files, folders and standard input.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// A text to check and how to name it.
#[derive(Debug)]
pub struct Input {
    pub name: String,
    pub bytes: Vec<u8>,
}

/// Finds the PTX files that the arguments name: a file as it is, a folder's `.ptx` files (recursively, sorted),
/// `-` for standard input.
pub fn find(arguments: &[PathBuf]) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for argument in arguments {
        if argument.as_os_str() != "-" && fs::metadata(argument).map_err(|e| named(e, argument))?.is_dir() {
            walk(argument, &mut found)?;
        } else {
            found.push(argument.clone());
        }
    }
    Ok(found)
}

fn walk(folder: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    let mut pending = vec![folder.to_owned()];
    let first = found.len();
    while let Some(folder) = pending.pop() {
        for entry in fs::read_dir(&folder).map_err(|e| named(e, &folder))? {
            let entry = entry?;
            // Links are not followed: a cycle would never end.
            let kind = entry.file_type()?;
            if kind.is_dir() {
                pending.push(entry.path());
            } else if kind.is_file() && entry.path().extension().is_some_and(|e| e == "ptx") {
                found.push(entry.path());
            }
        }
    }
    found[first..].sort();
    Ok(())
}

pub fn read(path: &Path) -> io::Result<Input> {
    if path.as_os_str() == "-" {
        let mut bytes = Vec::new();
        io::stdin().lock().read_to_end(&mut bytes)?;
        return Ok(Input { name: "<stdin>".into(), bytes });
    }
    let bytes = fs::read(path).map_err(|e| named(e, path))?;
    Ok(Input { name: path.display().to_string(), bytes })
}

fn named(error: io::Error, path: &Path) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// The text, with every sequence that is not UTF-8 replaced, and the byte offset of the first such.
pub fn decode(bytes: Vec<u8>) -> (String, Option<usize>) {
    match String::from_utf8(bytes) {
        Ok(text) => (text, None),
        Err(error) => {
            let at = error.utf8_error().valid_up_to();
            (String::from_utf8_lossy(error.as_bytes()).into_owned(), Some(at))
        }
    }
}

/// PTX begins with blanks, comments and `.version`; the extension is also that of PreTeXt documents, which are
/// XML. A file that starts with markup is none of ours.
pub fn looks_like_markup(text: &str) -> bool {
    text.trim_start_matches('\u{feff}').trim_start().starts_with("<?xml")
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
    fn markup_is_told_from_ptx() {
        assert!(looks_like_markup("\u{feff} <?xml version=\"1.0\"?>"));
        assert!(!looks_like_markup("// <?xml\n.version 8.0"));
    }
}
