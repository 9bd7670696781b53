//! Tests that look at the whole: queries executed after edits, and the documentation of lints.

mod features;
mod incremental;
mod lint_docs;
