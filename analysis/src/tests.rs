//! Tests of the whole analysis: queries executed after edits, and the documentation of lints.

mod completion;
mod declarations;
mod features;
mod fixes;
mod format;
mod incremental;
mod instruction_docs;
mod lint_docs;
mod navigation;
mod operands;
mod refactor;
mod rename;
mod versions;

use crate::db::Database;
use crate::diagnostic::{Diagnostic, Levels, Lint, Severity};
use crate::ide;

/// The findings of one lint in a kernel with this body: the first line of the marked text, and the message.
pub(crate) fn marks(lint: &'static Lint, body: &str) -> Vec<String> {
    let text = format!(
        ".version 8.7\n.target sm_90a\n.address_size 64\n.visible .entry kernel(.param .u64 input)\n{{\n{body}\n}}\n"
    );
    let mut db = Database::default();
    let mut levels = Levels::default();
    levels.set(lint, Severity::Warning);
    db.set_levels(levels);
    let file = db.add_file(text.as_str());
    let found = ide::diagnostics(&db, file);
    let errors: Vec<&Diagnostic> = found.iter().filter(|d| d.code().starts_with('E')).collect();
    assert!(errors.is_empty(), "{errors:#?}");
    let marked = |d: &Diagnostic| text[d.range].lines().next().unwrap_or_default().to_owned();
    found.iter().filter(|d| d.lint == lint).map(|d| format!("{}: {}", marked(d), d.message)).collect()
}
