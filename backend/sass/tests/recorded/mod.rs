//! The recorded instructions: files of lines ADDRESS WORD TEXT, with NVIDIA's text.
//!
//! `sm_90.txt` contains instructions that NVIDIA's compiler emitted. `made_sm_90.txt` contains instructions generated
//! from the table's rows by `tests/oracle/forms.py --record`, for the forms that are missing in the former.

use sass::Sm;
use std::path::Path;

// Tests, benchmark and example each use only a part of this module.
#[allow(dead_code)]
pub(crate) struct Sample {
    pub(crate) sm: Sm,
    pub(crate) address: u64,
    pub(crate) word: u128,
    pub(crate) text: String,
}

/// All samples, in the order of the file names.
pub(crate) fn samples() -> Vec<Sample> {
    // The test may belong to another package of the workspace.
    let folders = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let found =
        folders.map(|folder| folder.join("backend/sass/tests/recorded")).find(|folder| folder.is_dir());
    let folder = found.expect("the folder of recorded instructions");
    let entries = std::fs::read_dir(folder).expect("the folder of recorded instructions");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "txt"));
    paths.sort();
    let mut samples = Vec::new();
    for path in paths {
        let name = path.file_stem().and_then(|stem| stem.to_str()).expect("a name");
        let sm = Sm::parse(name.trim_start_matches("made_")).expect("a name that tells the generation");
        let text = std::fs::read_to_string(&path).expect("a readable file");
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let mut parts = line.splitn(3, ' ');
            let mut next = || parts.next().expect("three columns");
            let address = u64::from_str_radix(next(), 16).expect("an address");
            let word = u128::from_str_radix(next(), 16).expect("a word");
            samples.push(Sample { sm, address, word, text: next().to_owned() });
        }
    }
    samples
}
