//! Prints the forms that no recorded instruction has, as lines NAME<TAB>SHAPE<TAB>FIRST-LAST:
//!
//!     cargo run --release -p sass --example coverage
//!
//! `tests/oracle/forms.py --record` generates the missing ones.

use sass::{FormId, decode, form, forms};
use std::collections::BTreeSet;

#[path = "../tests/recorded/mod.rs"]
mod recorded;

fn main() {
    let mut unseen: BTreeSet<FormId> = forms().collect();
    for sample in recorded::samples() {
        if let Some(inst) = decode(sample.sm, sample.word) {
            unseen.remove(&inst.form);
        }
    }
    for form in unseen.into_iter().map(form) {
        println!("{}\t{}\t{}-{}", form.name, form.shape, form.sm.0, form.sm.1);
    }
}
