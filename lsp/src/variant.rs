//! A document compiled otherwise: for another target, with another option, or with another text.
//!
//! Such a compilation has a database of its own, so that nothing of the document's is compiled again afterwards.

use crate::owner::Snapshot;
use ptx_analysis::{Database, SourceFile};
use ptx_isa::Sm;

/// What is different.
#[derive(Clone, Copy, Debug)]
pub enum Change<'a> {
    Text(&'a str),
    Target(Sm),
    Level(u8),
    Registers(u32),
}

/// The file of a document in a database of its own, where one thing is different.
pub fn variant(s: &Snapshot, change: Change<'_>) -> (Database, SourceFile) {
    let mut db = s.db.scratch();
    let mut text = s.file.text(&s.db).to_string();
    match change {
        Change::Text(other) => text = other.to_owned(),
        Change::Level(level) => db.set_opt_level(level),
        Change::Registers(most) => db.set_max_registers(Some(most)),
        Change::Target(sm) => {
            // Code for an older target runs on a newer one as it is; for an older one the text must do with less.
            let own = ptx_analysis::module::effective_target(&s.db, s.file);
            match own.is_some_and(|own| own.runs_on(sm).is_ok()) {
                true => db.set_architecture(Some(sm)),
                false => {
                    db.set_architecture(None);
                    db.set_target_override(Some(sm));
                }
            }
        }
    }
    let file = db.add_frozen_file(text);
    (db, file)
}
