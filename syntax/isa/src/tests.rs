//! Tests of the table as a whole.

mod forms;
pub(crate) mod mutations;
