//! Compiles a document with one change: for another target, with another option, or with another text.
//!
//! The changed document has its own database. So the original document's functions need no new compilation afterwards.

use crate::owner::Snapshot;
use ptx_analysis::{Database, SourceFile};
use ptx_isa::Sm;

/// The change.
#[derive(Clone, Copy, Debug)]
pub enum Change<'a> {
    Text(&'a str),
    Target(Sm),
    Level(u8),
    Registers(u32),
}

/// The changed file, in its own database.
pub fn variant(s: &Snapshot, change: Change<'_>) -> (Database, SourceFile) {
    let mut db = s.db.scratch();
    let mut text = s.file.text(&s.db).to_string();
    match change {
        Change::Text(other) => text = other.to_owned(),
        Change::Level(level) => db.set_opt_level(level),
        Change::Registers(most) => db.set_max_registers(Some(most)),
        Change::Target(sm) => {
            // A newer target runs the code of the text as it is; for an older target, the text may use only features of
            // that target.
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
