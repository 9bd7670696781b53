//! Queries over PTX files: names, types, diagnostics, compilation and the editor features built on them.
//!
//! Neutral with respect to protocols: the input is offsets, the output plain data. Ranges are relative to the item;
//! only [`ide`] uses file offsets.

mod at_work;
mod callees;
pub mod check;
pub mod compile;
pub mod constant;
pub mod convention;
pub mod db;
mod debug_data;
pub mod declaration;
pub mod diagnostic;
pub mod dump;
mod externals;
mod findings;
pub mod flow;
mod heading;
pub mod ide;
pub mod initializer;
pub mod items;
mod lines;
pub mod link;
mod locate;
pub mod lower;
pub mod module;
mod pieces;
mod product_waits;
pub mod reach;
mod readable;
mod ready;
pub mod scope;
pub mod signature;
pub mod source_map;
mod syntax_errors;
mod text;

pub use callees::first_address_of_another_module;
pub use check::lints::INVALID_UTF8;
pub use compile::{check_all, compile_all, doubles};
pub use db::{
    CacheModifier, CacheModifiers, CancellationToken, Cancelled, Database, Db, LaunchBounds, Options,
    SourceFile, catch_cancelled,
};
pub use debug_data::has_section;
pub use link::{LineTables, LinkOptions, Linked, LinkedKernel, LinkedPart, link, link_watched};
pub use ptx_backend::occupancy;
pub use ready::{Code, is_ready, length, make_ready};
pub use text::{Text, counted};

/// Every lint, for lists and explanations.
pub fn lints() -> &'static [&'static diagnostic::Lint] {
    check::LINTS
}

#[cfg(test)]
mod tests;
