//! What to check: files, folders and standard input.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Finds the PTX files that the arguments name: a file as it is, a folder's `.ptx` files (recursively, sorted),
/// `-` for standard input.
///
/// # Errors
/// Something named is not there, or a folder holds no such file. The message names it.
pub fn find(arguments: &[PathBuf]) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for argument in arguments {
        if argument.as_os_str() != "-" && fs::metadata(argument).map_err(|e| named(&e, argument))?.is_dir() {
            let before = found.len();
            walk(argument, &mut found)?;
            if found.len() == before {
                return Err(io::Error::other(format!(
                    "{}: folder contains no .ptx files",
                    argument.display()
                )));
            }
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
        for entry in fs::read_dir(&folder).map_err(|e| named(&e, &folder))? {
            let entry = entry.map_err(|e| named(&e, &folder))?;
            // Links are not followed: a cycle would never end.
            let kind = entry.file_type().map_err(|e| named(&e, &entry.path()))?;
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

/// The error with the path that it is about.
pub fn named(error: &io::Error, path: &Path) -> io::Error {
    let name = if path.as_os_str() == "-" { "<stdin>".into() } else { path.display().to_string() };
    io::Error::new(error.kind(), format!("{name}: {error}"))
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
    fn markup_is_told_from_ptx() {
        assert!(looks_like_markup("\u{feff} <?xml version=\"1.0\"?>"));
        assert!(!looks_like_markup("// <?xml\n.version 8.0"));
    }
}
