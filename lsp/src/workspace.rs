//! The names declared in the PTX files of the client's folder that are not open.
//!
//! The files are read for each request, within limits, so the server does not need to track their changes.

use std::fs;
use std::path::{Path, PathBuf};

use crate::document::{Document, Encoding};
use crate::input;
use ptx_analysis::ide::readable;
use ptx_syntax::{ItemKind, split};
use tower_lsp::lsp_types::{Location, SymbolInformation, SymbolKind, Url};

/// The largest number of folder entries that are visited, and of files that are read.
const ENTRIES: usize = 50_000;
const FILES: usize = 1_000;
/// The size of the largest file that is read in MiB, and the total size in bytes.
const LARGEST: u64 = 16;
const BYTES: usize = 128 << 20;

/// The functions and variables below a folder whose names are wanted, except those in the files of `open`.
pub fn symbols(
    folder: &Path,
    open: &[Url],
    encoding: Encoding,
    is_wanted: impl Fn(&str) -> bool,
) -> Vec<SymbolInformation> {
    let mut found = Vec::new();
    let mut left = BYTES;
    for path in files(folder) {
        let Ok(uri) = Url::from_file_path(&path) else { continue };
        if open.contains(&uri) {
            continue;
        }
        let Ok(input) = input::read(&path, LARGEST) else { continue };
        let Some(rest) = left.checked_sub(input.text.len()) else { break };
        left = rest;
        of_text(&input.text, &uri, encoding, &is_wanted, &mut found);
    }
    found
}

fn of_text(
    text: &str,
    uri: &Url,
    encoding: Encoding,
    is_wanted: &impl Fn(&str) -> bool,
    found: &mut Vec<SymbolInformation>,
) {
    let mut document = None;
    for item in split(text) {
        let kind = match item.kind {
            ItemKind::Entry | ItemKind::Func => SymbolKind::FUNCTION,
            ItemKind::Variable => SymbolKind::VARIABLE,
            _ => continue,
        };
        let Some(range) = item.name.filter(|&name| is_wanted(&text[name])) else { continue };
        let lines = document.get_or_insert_with(|| Document::new(text, 0, encoding));
        #[expect(deprecated, reason = "the protocol's struct still has the field")]
        found.push(SymbolInformation {
            name: readable(&text[range]).unwrap_or_else(|| text[range].to_owned()),
            kind,
            tags: None,
            deprecated: None,
            location: Location::new(uri.clone(), lines.range(range)),
            container_name: None,
        });
    }
}

/// The PTX files below a folder, sorted. Unreadable entries are left out, and so are folders of build outputs.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut pending = vec![folder.to_owned()];
    let mut left = ENTRIES;
    while let Some(folder) = pending.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            left -= 1;
            if left == 0 || found.len() == FILES {
                found.sort();
                return found;
            }
            // Links are not followed: a cycle of links would never end.
            let Ok(kind) = entry.file_type() else { continue };
            let is_hidden = name.to_string_lossy().starts_with('.');
            if kind.is_dir() && !is_hidden && name != "target" && name != "node_modules" {
                pending.push(path);
            } else if kind.is_file() && path.extension().is_some_and(|extension| extension == "ptx") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_a_text() {
        let text = "// π\n.func other();\n/* π */ .entry closed_k() { ret; }\n.global .b32 a, b;\n";
        let uri = Url::parse("file:///a.ptx").expect("a URI");
        let mut found = Vec::new();
        of_text(text, &uri, Encoding::Utf16, &|_| true, &mut found);
        let names: Vec<String> = found
            .iter()
            .map(|symbol| {
                let start = symbol.location.range.start;
                format!("{} {}:{}", symbol.name, start.line, start.character)
            })
            .collect();
        assert_eq!(names, ["other 1:6", "closed_k 2:15", "a 3:13"]);
    }
}
