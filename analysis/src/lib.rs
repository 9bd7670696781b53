//! Queries over PTX files: names, types, diagnostics, compilation and the editor features built on them.
//!
//! Protocol-neutral: offsets in, plain data out. Inside an item all ranges are relative to the item; only
//! [`ide`] and [`diagnostics`](ide::diagnostics) speak in file offsets.

pub mod db;
pub mod diagnostic;
pub mod occupancy;

pub use db::{Database, Db, Options, SourceFile};
