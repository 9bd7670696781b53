//! Finds the files to check: files, folders and standard input.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use ptx_embed::Language;
use walkdir::WalkDir;

/// The PTX files that the arguments name.
#[derive(Default)]
pub struct Found {
    pub paths: Vec<PathBuf>,
    /// Errors from reading folders. Each message names the path.
    pub errors: Vec<io::Error>,
}

/// Finds the PTX files that the arguments name: a file itself, the `.ptx` files of a folder (recursively, sorted), or
/// `-` for standard input. With `embedded`, also the files of a folder in languages that PTX is embedded in.
///
/// # Errors
/// A named path does not exist, or a named folder holds no such file. The message names the path.
pub fn find(arguments: &[PathBuf], embedded: bool) -> io::Result<Found> {
    let mut found = Found::default();
    for argument in arguments {
        if argument.as_os_str() != "-" && fs::metadata(argument).map_err(|e| named(&e, argument))?.is_dir() {
            let before = (found.paths.len(), found.errors.len());
            walk(argument, embedded, &mut found);
            if (found.paths.len(), found.errors.len()) == before {
                let (what, advice) = match embedded {
                    true => ("files of PTX, CUDA, C++, Rust or Python", ""),
                    false => (".ptx files", "; `--embedded` looks for PTX in CUDA, C++, Rust and Python too"),
                };
                return Err(io::Error::other(format!(
                    "{}: folder contains no {what}{advice}",
                    argument.display()
                )));
            }
        } else {
            found.paths.push(argument.clone());
        }
    }
    Ok(found)
}

/// Does not follow links in the folder: a link may lead out of the folder, or to a file that is checked anyway. Checks
/// also files that a `.gitignore` names, because PTX is often a build output. Ignores files of other languages in
/// hidden folders, where tools keep copies of packages.
fn walk(folder: &Path, embedded: bool, found: &mut Found) {
    let first = found.paths.len();
    for entry in WalkDir::new(folder) {
        match entry {
            Ok(entry)
                if entry.file_type().is_file()
                    && (entry.path().extension().is_some_and(|e| e == "ptx")
                        || embedded
                            && is_host(entry.path().strip_prefix(folder).unwrap_or(entry.path()))) =>
            {
                found.paths.push(entry.into_path());
            }
            Ok(_) => {}
            Err(error) => {
                let path = error.path().unwrap_or(folder);
                // The text of the whole error repeats the path.
                found.errors.push(match error.io_error() {
                    Some(reason) => named(reason, path),
                    None => io::Error::other(error),
                });
            }
        }
    }
    found.paths[first..].sort();
}

/// Whether a file in a folder may hold PTX embedded in another language.
fn is_host(path: &Path) -> bool {
    let is_hidden = |part: Component<'_>| part.as_os_str().as_encoded_bytes().starts_with(b".");
    Language::of_path(path).is_some() && !path.components().any(is_hidden)
}

/// Adds the path to an error.
pub fn named(error: &io::Error, path: &Path) -> io::Error {
    let message = match path.as_os_str() == "-" {
        true => format!("cannot read standard input: {error}"),
        false => format!("{}: {error}", path.display()),
    };
    io::Error::new(error.kind(), message)
}

/// Whether a text starts with markup and so is not PTX. PTX starts with blanks, comments or `.version`; PreTeXt
/// documents, which are XML, have the extension `.ptx` too.
pub fn looks_like_markup(text: &str) -> bool {
    text.trim_start_matches('\u{feff}').trim_start().starts_with("<?xml")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_other_languages() {
        for (path, is) in
            [("a/k.cu", true), ("b.py", true), (".venv/b.py", false), ("c.ptx", false), ("d.md", false)]
        {
            assert_eq!(is_host(Path::new(path)), is, "{path}");
        }
    }

    #[test]
    fn markup_is_told_from_ptx() {
        assert!(looks_like_markup("\u{feff} <?xml version=\"1.0\"?>"));
        assert!(!looks_like_markup("// <?xml\n.version 8.0"));
    }
}
