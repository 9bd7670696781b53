//! What to check: files, folders and standard input.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use ptx_embed::Language;
use walkdir::WalkDir;

/// The PTX files that the arguments name.
#[derive(Default)]
pub struct Found {
    pub paths: Vec<PathBuf>,
    /// What cannot be read in a folder. The message names it.
    pub errors: Vec<io::Error>,
}

/// Finds the PTX files that the arguments name: a file as it is, a folder's `.ptx` files (recursively, sorted),
/// `-` for standard input. `embedded`: also a folder's files of languages that PTX is embedded in.
///
/// # Errors
/// Something named is not there, or a folder holds no such file. The message names it.
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

/// Links in the folder are not followed: what they lead to may be outside of it, or be checked twice. Files that a
/// `.gitignore` names are checked: PTX is often built. Files of other languages are not looked for in hidden folders,
/// where tools keep copies of packages.
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
                let path = error.path().unwrap_or(folder).to_owned();
                found.errors.push(named(&error.into(), &path));
            }
        }
    }
    found.paths[first..].sort();
}

/// Whether a file in a folder may hold PTX in another language.
fn is_host(path: &Path) -> bool {
    let is_hidden = |part: Component<'_>| part.as_os_str().as_encoded_bytes().starts_with(b".");
    Language::of_path(path).is_some() && !path.components().any(is_hidden)
}

/// The error with the path that it is about.
pub fn named(error: &io::Error, path: &Path) -> io::Error {
    let name = if path.as_os_str() == "-" { "<stdin>".into() } else { path.display().to_string() };
    io::Error::new(error.kind(), format!("{name}: {error}"))
}

/// PTX begins with blanks, comments and `.version`; the extension is also that of PreTeXt documents, which are
/// XML. A file that starts with markup is not PTX.
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
