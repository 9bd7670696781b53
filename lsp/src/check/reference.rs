//! The reference: prints the page of a code or mnemonic, or writes all pages to a folder.

use std::fs;
use std::io;
use std::path::Path;

use ptx_analysis::ide;

use crate::output;

/// The page of a diagnostic code, a diagnostic name or a mnemonic.
pub fn page(word: &str) -> Option<String> {
    let lints = ptx_analysis::lints();
    match lints.iter().find(|lint| lint.code.eq_ignore_ascii_case(word) || lint.name == word) {
        Some(lint) => Some(lint.page.to_owned()),
        // The page of `ld.global.u32` is that of `ld`.
        None => ide::instruction_page(word.split('.').next().unwrap_or(word)),
    }
}

/// The code, name or mnemonic nearest to a misspelled word.
pub fn nearest(word: &str) -> Option<&'static str> {
    let lints = ptx_analysis::lints().iter().flat_map(|lint| [lint.code, lint.name]);
    let word = word.split('.').next().unwrap_or(word);
    let mnemonics = ptx_isa::mnemonics().iter().copied();
    ptx_isa::suggestions(word, lints.chain(mnemonics)).into_iter().next()
}

/// Writes the whole reference to a folder. Returns the number of pages.
pub fn write(folder: &Path) -> io::Result<usize> {
    let pages = ide::pages();
    for page in &pages {
        let path = folder.join(&page.path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        output::write(&path, page.text.as_bytes())?;
    }
    Ok(pages.len())
}
