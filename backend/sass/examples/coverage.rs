//! Prints the forms that no recorded instruction has, as lines NAME<TAB>SHAPE<TAB>FIRST-LAST:
//!
//!     cargo run --release -p sass --example coverage
//!
//! `tests/oracle/forms.py --record` makes up what is missing.

use sass::{FormId, decode, form, forms};
use std::collections::BTreeSet;
use std::path::Path;

#[path = "../tests/recorded.rs"]
mod recorded;

fn main() -> std::io::Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded");
    let mut unseen: BTreeSet<FormId> = forms().collect();
    for file in std::fs::read_dir(folder)? {
        let path = file?.path();
        let text = std::fs::read_to_string(&path)?;
        let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
        for sample in recorded::samples(name, &text) {
            if let Some(inst) = decode(sample.sm, sample.word) {
                unseen.remove(&inst.form);
            }
        }
    }
    for form in unseen.into_iter().map(form) {
        println!("{}\t{}\t{}-{}", form.name, form.shape, form.sm.0, form.sm.1);
    }
    Ok(())
}
